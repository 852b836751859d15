"""The charts of report.py: matplotlib draws them, and what it draws is made fit for a page: SVG whose text is text,
whose colours are the page's (so that light and dark need no second drawing), with titles for the pointer and for
readers of screens.

Everything is laid out in points from the sizes of the text, one point a pixel on a phone. A system is told by its
colour and by its marker, dashes or hatching, never by colour alone. The same input gives the same bytes.

SPDX-License-Identifier: BSD-3-Clause
"""

import html
import io
import math
import re
import warnings

import matplotlib

matplotlib.use("svg")
from matplotlib import pyplot, ticker  # noqa: E402 (after the choice of what draws)
from matplotlib.lines import Line2D  # noqa: E402
from matplotlib.patches import Patch  # noqa: E402

WIDTH = 360  # points
FONT = 10.5
LINE = 14.5  # points from one line of a legend to the next
ROW = 27  # points a matrix in a chart of bars
LABEL = 17  # characters of a name beside a bar; the whole name is in the bar's title and in the table

# Colours that stand for the page's: replaced by var(--NAME) in what is drawn.
COLOURS = {
    "ink": "#000101",
    "muted": "#000102",
    "grid": "#000103",
    "bg": "#000104",
    "ours": "#000105",
    "best": "#000106",
}
COLOURS.update({f"s{i}": f"#0002{i:02}" for i in range(6)})
INK, MUTED, GRID, BG, OURS, BEST = (COLOURS[name] for name in ("ink", "muted", "grid", "bg", "ours", "best"))

# Numbers of colours, markers and dashes that share no divisor: a pair of them comes back only after 7 * 6 systems.
MARKERS = "D^sv<>P"
DASHES = [(0, ()), (0, (5, 2)), (0, (1, 1.5)), (0, (5, 2, 1, 2)), (0, (8, 2))]

matplotlib.rcParams.update(
    {
        "svg.fonttype": "none",
        "font.size": FONT,
        "text.parse_math": False,
        "axes.edgecolor": MUTED,
        "axes.labelcolor": INK,
        "xtick.color": MUTED,
        "ytick.color": MUTED,
        "xtick.labelcolor": INK,
        "ytick.labelcolor": INK,
        "text.color": INK,
        "axes.facecolor": BG,
        "grid.color": GRID,
        "grid.linewidth": 0.8,
        "axes.axisbelow": True,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "legend.frameon": False,
        "legend.fontsize": FONT,
        "hatch.linewidth": 1.2,
        "xtick.labelsize": FONT,
        "ytick.labelsize": FONT,
        "axes.labelsize": FONT,
        "legend.handlelength": 2.2,
    }
)


class Styles:
    """How each system of a group is drawn, the same in all its charts."""

    def __init__(self, main, others):
        self.main = main
        self.index = {name: i for i, name in enumerate(others)}

    def colour(self, name):
        return OURS if name == self.main else COLOURS[f"s{self.index[name] % 6}"]

    def marker(self, name):
        return "o" if name == self.main else MARKERS[self.index[name] % len(MARKERS)]

    def dashes(self, name):
        return DASHES[0] if name == self.main else DASHES[1 + self.index[name] % (len(DASHES) - 1)]


def shorten(text, most=LABEL):
    return text if len(text) <= most else text[: most - 1] + "\u2026"


def plain(value, _=None):
    """A number of an axis, without powers of ten where it is read more easily so."""
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


class Chart:
    """One figure with one pair of axes of a given height in points; legend: [(handle, text)] above it."""

    def __init__(self, height, left, right, legend):
        columns = 2 if len(legend) > 1 and max(len(text) for _, text in legend) <= 24 else 1
        top = LINE * math.ceil(len(legend) / columns) + 16
        bottom = 40
        total = top + height + bottom
        self.figure = pyplot.figure(figsize=(WIDTH / 72, total / 72))
        self.figure.patch.set_alpha(0)
        self.axes = self.figure.add_axes((left / WIDTH, bottom / total, (WIDTH - left - right) / WIDTH, height / total))
        self.tips = {}
        if legend:
            # matplotlib leaves out labels that begin with _: a joiner of no width before them
            self.figure.legend(
                [h for h, _ in legend],
                [("\u2060" + t if t.startswith("_") else t) for _, t in legend],
                loc="upper left",
                bbox_to_anchor=(0, 1),
                ncol=columns,
                borderaxespad=0,
                labelspacing=0.35,
                columnspacing=1.2,
                borderpad=0.2,
            )

    def tip(self, artist, text):
        """The text that a pointer on the artist shows."""
        name = f"tip{len(self.tips)}"
        artist.set_gid(name)
        self.tips[name] = text

    def svg(self, name, title, description):
        """The drawing as an element of a page; name begins all its identifiers."""
        matplotlib.rcParams["svg.hashsalt"] = name
        out = io.StringIO()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # glyphs that matplotlib's font lacks: the browser has its own
            self.figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
        pyplot.close(self.figure)
        text = out.getvalue()
        text = re.sub(r"<metadata>.*?</metadata>", "", text[text.index("<svg") :], flags=re.S)
        text = re.sub(r'\s(xmlns(:\w+)?|version)="[^"]*"', "", text)
        text = re.sub(r'\sxlink:href="#', ' href="#', text)
        text = re.sub(
            r'<svg[^>]*?viewBox="([^"]*)"[^>]*>',
            lambda m: (
                f'<svg viewBox="{m.group(1)}" role="img" aria-labelledby="title desc">'
                f'<title id="title">{html.escape(title)}</title><desc id="desc">{html.escape(description)}</desc>'
            ),
            text,
            count=1,
        )
        for tip, words in self.tips.items():
            text = text.replace(f'<g id="{tip}">', f'<g id="{tip}"><title>{html.escape(words)}</title>')
        text = re.sub(r'\bid="([^"]+)"', rf'id="{name}-\1"', text)
        text = text.replace('aria-labelledby="title desc"', f'aria-labelledby="{name}-title {name}-desc"')
        text = re.sub(r'(href="|url\()#', rf"\1#{name}-", text)
        # Only inside tags: a matrix may be named like a colour.
        names = {value: f"var(--{key})" for key, value in COLOURS.items()}
        text = re.sub(
            r"<[^<>]*>",
            lambda tag: re.sub(r"#000[12]\d\d", lambda c: names.get(c.group(), c.group()), tag.group()),
            text,
        )
        # The page's fonts; how matplotlib writes its own depends on its version.
        text = re.sub(r"font: [\d.]+px[^;\"]*", f"font-size: {FONT}px", text)
        text = re.sub(r"font-family: [^;\"]*(; )?", "", text)
        text = re.sub(r'<style type="text/css">.*?</style>', "", text, flags=re.S)
        return "\n".join(line.rstrip() for line in text.strip().split("\n"))


def marks(low, high):
    """Where a logarithmic axis from low to high is marked: round numbers, three to eight of them."""
    if high / low < 6:
        return [m for m in ticker.MaxNLocator(5, steps=[1, 2, 2.5, 5, 10]).tick_values(low, high) if low <= m <= high]
    for factors in ((1, 2, 5), (1, 3), (1,)):
        exponents = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
        found = [f * 10.0**e for e in exponents for f in factors if low <= f * 10.0**e <= high]
        if len(found) <= 7:
            return found
    return found[:: math.ceil(len(found) / 7)]


def log_axis(axis, set_limits, low, high):
    """A logarithmic axis that shows low .. high."""
    set_limits(low, high)
    axis.set_major_locator(ticker.FixedLocator(marks(low, high)))
    axis.set_minor_locator(ticker.NullLocator())
    axis.set_major_formatter(plain)


def roofline(name, title, read, copy, ours, best, main):
    """ours, best: [(intensity in flops a byte, GFLOP/s, sits in cache, tip)]; read, copy: GB/s or None."""
    points = ours + best
    line = Line2D([], [], color=INK, linewidth=1.6)
    dashed = Line2D([], [], color=MUTED, linewidth=1.2, linestyle=(0, (4, 2)))
    mark = lambda m, c, full=True: Line2D(
        [], [], linestyle="", marker=m, markersize=6, color=c, markerfacecolor=c if full else BG, markeredgewidth=1.3
    )
    legend = [(mark("o", OURS), main)]
    if best:
        legend.append((mark("D", BEST), "best peer"))
    if any(p[2] for p in points):
        legend.append((mark("o", OURS, False), "hollow: sits in cache"))
    if read:
        legend.append((line, f"read {read:,.0f} GB/s"))
    if copy:
        legend.append((dashed, f"copy {copy:,.0f} GB/s"))
    chart = Chart(250, 52, 12, legend)
    axes = chart.axes
    axes.set_xscale("log")
    axes.set_yscale("log")
    xs, ys = [p[0] for p in points], [p[1] for p in points]
    low, high = min(xs) / 1.25, max(xs) * 1.25
    tops = [roof * x for roof in (read, copy) if roof for x in (low, high)]
    log_axis(axes.xaxis, axes.set_xlim, low, high)
    log_axis(axes.yaxis, axes.set_ylim, min(ys + tops) / 1.4, max(ys + tops) * 1.3)
    axes.grid(True)
    for roof, handle in ((read, line), (copy, dashed)):
        if roof:
            axes.plot(
                [low, high],
                [roof * low, roof * high],
                color=handle.get_color(),
                linewidth=handle.get_linewidth(),
                linestyle=handle.get_linestyle(),
                zorder=2,
            )
    for group, marker, colour, order in ((best, "D", BEST, 3), (ours, "o", OURS, 4)):
        for x, y, cached, tip in group:
            (point,) = axes.plot(
                [x],
                [y],
                linestyle="",
                marker=marker,
                markersize=6,
                color=colour,
                zorder=order,
                markerfacecolor=BG if cached else colour,
                markeredgewidth=1.3,
            )
            chart.tip(point, tip)
    axes.set_xlabel("arithmetic intensity, flops a byte")
    axes.set_ylabel("GFLOP/s")
    return chart.svg(
        name,
        title,
        f"Roofline on logarithmic axes with {len(ours)} results of {main} and {len(best)} of the best "
        "peer of each matrix. Every value is in the table of results.",
    )


def gutters(rows, room):
    """Left margin that the labels of rows need."""
    return min(max((len(shorten(r)) for r in rows), default=0), LABEL) * FONT * 0.58 + 10, room


def bar(chart, place, start, end, low, high, colour, hatch, height, tip):
    (shape,) = chart.axes.barh(
        place,
        end - start,
        left=start,
        height=height,
        color=BG if hatch else colour,
        edgecolor=colour,
        hatch="////" if hatch else None,
        linewidth=1,
        zorder=2,
    )
    chart.tip(shape, tip)
    if low is not None and high is not None:
        chart.axes.plot([low, high], [place, place], color=INK, linewidth=1.1, marker="|", markersize=5, zorder=4)


def rows_axis(chart, labels):
    chart.axes.set_ylim(len(labels) - 0.5, -0.5)
    chart.axes.set_yticks(range(len(labels)))
    chart.axes.set_yticklabels([shorten(label) for label in labels])
    chart.axes.tick_params(axis="y", length=0)
    chart.axes.grid(True, axis="x")


def times(name, title, rows, styles):
    """rows: [(label, ours Timing or None, (name, Timing) of the best peer or None, {name: Timing} of all others)], bars
    for the first two, marks for the rest; microseconds."""
    others = sorted({n for _, _, _, more in rows for n in more}, key=lambda n: list(styles.index).index(n))
    legend = [
        (Patch(facecolor=OURS, edgecolor=OURS), styles.main),
        (Patch(facecolor=BG, edgecolor=BEST, hatch="////"), "best peer"),
    ]
    legend += [
        (Line2D([], [], linestyle="", marker=styles.marker(n), color=styles.colour(n), markersize=5.5), n)
        for n in others
    ]
    left, right = gutters([r[0] for r in rows], 14)
    chart = Chart(ROW * len(rows), left, right, legend)
    axes = chart.axes
    axes.set_xscale("log")
    timings = [t for _, mine, best, more in rows for t in [mine, best and best[1], *more.values()] if t]
    low = min(t.min or t.median for t in timings) * 1e6 / 1.6
    high = max(t.max or t.median for t in timings) * 1e6 * 1.2
    log_axis(axes.xaxis, axes.set_xlim, low, high)
    for i, (label, mine, best, more) in enumerate(rows):
        pairs = [(mine, styles.main, OURS, False, -0.2)]
        if best:
            pairs.append((best[1], best[0], BEST, True, 0.2))
        for timing, system, colour, hatch, shift in pairs:
            if timing:
                spread = [v * 1e6 if v else None for v in (timing.min, timing.max)]
                bar(
                    chart,
                    i + shift,
                    low,
                    timing.median * 1e6,
                    *spread,
                    colour,
                    hatch,
                    0.36,
                    f"{label}: {system} {timing.median * 1e6:.4g} \u00b5s",
                )
        for system in others:
            if system in more:
                (point,) = axes.plot(
                    [more[system].median * 1e6],
                    [i + 0.2],
                    linestyle="",
                    marker=styles.marker(system),
                    zorder=5,
                    color=styles.colour(system),
                    markersize=5.5,
                    markeredgecolor=BG,
                    markeredgewidth=0.6,
                )
                chart.tip(point, f"{label}: {system} {more[system].median * 1e6:.4g} \u00b5s")
    rows_axis(chart, [r[0] for r in rows])
    axes.set_xlabel("\u00b5s, logarithmic; shorter is better")
    return chart.svg(
        name,
        title,
        f"For each of {len(rows)} rows a bar for {styles.main} and one for the fastest peer, with "
        "whiskers from the least to the greatest time, and a mark for every other system.",
    )


def ratios(name, title, rows, styles, what, better, worse, same="", others_of=()):
    """rows: [(label, ratio, low or None, high or None, {name: ratio}, tip, side)], bars from 1; side: 1 better, -1
    worse, 0 the same."""
    shown = [n for n in others_of if any(n in r[4] for r in rows)]
    legend = [
        (Patch(facecolor=OURS, edgecolor=OURS), better),
        (Patch(facecolor=BG, edgecolor=BEST, hatch="////"), worse),
    ]
    if same:
        legend.append((Patch(facecolor=MUTED, edgecolor=MUTED), same))
    legend += [
        (Line2D([], [], linestyle="", marker=styles.marker(n), color=styles.colour(n), markersize=5.5), n)
        for n in shown
    ]
    left, right = gutters([r[0] for r in rows], 46)
    chart = Chart(ROW * 0.85 * len(rows), left, right, legend)
    axes = chart.axes
    axes.set_xscale("log")
    values = [v for r in rows for v in [r[1], r[2], r[3], *r[4].values()] if v]
    low, high = min(values + [0.9]) / 1.08, max(values + [1.1]) * 1.08
    log_axis(axes.xaxis, axes.set_xlim, low, high)
    centre, below, thick = (-0.13, 0.31, 0.46) if shown else (0, 0, 0.56)
    for i, (label, ratio, least, most, more, tip, side) in enumerate(rows):
        bar(chart, i + centre, 1, ratio, least, most, (MUTED, OURS, BEST)[side], side < 0, thick, tip)
        for system in shown:
            if system in more:
                (point,) = axes.plot(
                    [more[system]],
                    [i + below],
                    linestyle="",
                    marker=styles.marker(system),
                    zorder=5,
                    markersize=5.5,
                    color=styles.colour(system),
                    markeredgecolor=BG,
                    markeredgewidth=0.6,
                )
                chart.tip(point, f"{label}: {system} {more[system]:.3g}")
        axes.text(1.02, i, f"{ratio:.2f}\u00d7", transform=axes.get_yaxis_transform(), va="center", ha="left")
    axes.axvline(1, color=INK, linewidth=1.2, zorder=3)
    rows_axis(chart, [r[0] for r in rows])
    axes.set_xlabel(what)
    return chart.svg(
        name,
        title,
        f"For each of {len(rows)} rows a bar from 1 to its ratio: to the right {better}, to the left "
        f"{worse}; whiskers are what the spreads allow. The values stand at the right.",
    )


MOST_TAU = 10


def profile(name, title, steps, styles):
    """steps: {system: [(tau, share)]} as report_numbers.performance_profile makes them."""
    end = max(tau for points in steps.values() for tau, _ in points)
    end = min(max(end * 1.1, 1.2), MOST_TAU)
    order = sorted(steps, key=lambda n: (n != styles.main, list(styles.index).index(n) if n in styles.index else -1))
    handles, lines = [], []
    for i, system in enumerate(order):
        taus, shares = [t for t, _ in steps[system]], [s for _, s in steps[system]]
        style = dict(
            color=styles.colour(system),
            linestyle=styles.dashes(system),
            linewidth=2.4 if i == 0 else 1.5,
            marker=styles.marker(system),
            markersize=5,
            markeredgecolor=BG,
            markeredgewidth=0.6,
        )
        handles.append((Line2D([], [], **style), system))
        lines.append((system, taus + [MOST_TAU * 10], shares + [shares[-1]], style))
    chart = Chart(220, 58, 14, handles)
    axes = chart.axes
    axes.set_xscale("log")
    log_axis(axes.xaxis, axes.set_xlim, 1, end)
    for system, taus, shares, style in reversed(lines):
        (line,) = axes.plot(taus, shares, drawstyle="steps-post", zorder=4 if system == styles.main else 3, **style)
        chart.tip(line, system)
    axes.set_ylim(0, 1.04)
    axes.yaxis.set_major_formatter(ticker.PercentFormatter(1))
    axes.grid(True)
    axes.set_xlabel("\u03c4: at most so many times the fastest")
    axes.set_ylabel("share of the matrices")
    return chart.svg(
        name,
        title,
        f"Performance profile of {len(steps)} systems: the share of the matrices on which each takes at "
        "most \u03c4 times as long as the fastest. Higher is better; the left end is how often each is the fastest.",
    )

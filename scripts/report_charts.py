"""Draws the charts of report.py with matplotlib and adapts its SVG to the page: text stays text,
colours are variables of the page (so one drawing works in light and dark mode), and elements have
titles for the pointer and for screen readers.

The layout is in points, computed from text sizes; one point is one pixel on a phone. Systems differ
by colour and by marker, dashes or hatching, never by colour alone. The same input gives the same
bytes.

SPDX-License-Identifier: BSD-3-Clause
"""

import functools
import html
import io
import math
import re
import warnings

import matplotlib

matplotlib.use("svg")
from matplotlib import pyplot, textpath, ticker  # noqa: E402 (after the choice of what draws)
from matplotlib.font_manager import FontProperties  # noqa: E402
from matplotlib.lines import Line2D  # noqa: E402
from matplotlib.patches import Patch  # noqa: E402

WIDTH = 360  # points
FONT = 10.5
LINE = 14.5  # points from one line of a legend to the next
ROW = 27  # points per matrix in a bar chart
GUTTER = 104  # points for a name beside a bar; if one is longer, all names are above their bars
# a value is outside the chart above this multiple of the median, or further if values vary more
FAR = 8

# Placeholders for the page's colours, replaced by var(--NAME) in the drawing.
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

# The numbers of colours, markers and dashes are coprime, so a pair repeats only after 7 * 6
# systems.
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
    """Colour, marker and dashes of each system of a group, the same in all its charts."""

    def __init__(self, main, others):
        self.main = main
        self.index = {name: i for i, name in enumerate(others)}

    def colour(self, name):
        return OURS if name == self.main else COLOURS[f"s{self.index[name] % 6}"]

    def marker(self, name):
        return "o" if name == self.main else MARKERS[self.index[name] % len(MARKERS)]

    def dashes(self, name):
        return DASHES[0] if name == self.main else DASHES[1 + self.index[name] % (len(DASHES) - 1)]


@functools.lru_cache(maxsize=None)
def sign_width(sign):
    """Width in points of a character in matplotlib's font, which is wider than fonts of pages."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # glyphs that the font lacks
        # between two letters, because a space alone has no width
        width = textpath.text_to_path.get_text_width_height_descent
        font = FontProperties(size=FONT)
        return width(f"n{sign}n", font, False)[0] - width("nn", font, False)[0]


def text_width(text):
    """Width in points of a line of text."""
    return sum(map(sign_width, text))


def wrap(text, room):
    """Breaks a text into lines of at most `room` points, after a space or punctuation if
    possible."""
    lines = []
    while text_width(text) > room:
        fits, width = 1, sign_width(text[0])
        while width + sign_width(text[fits]) <= room:
            width += sign_width(text[fits])
            fits += 1
        signs = [i + 1 for i in range(fits // 2, fits) if text[i] in " ,:;_-./"]
        end = signs[-1] if signs else fits
        lines.append(text[:end])
        text = text[end:]
    return lines + [text]


def factor(value):
    """A ratio with about three digits."""
    digits = f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"
    return (digits if value >= 0.1 else f"{value:.2g}") + "\u00d7"


def window(values):
    """(least, greatest) of the values that a logarithmic axis shows: those near the median,
    compared with the median distance from it."""
    if len(values) < 3:
        return min(values), max(values)
    middle = sorted(values)[len(values) // 2]
    distances = sorted(abs(math.log(v / middle)) for v in values)
    room = max(7 * distances[len(values) // 2], math.log(FAR))
    inside = [v for v in values if abs(math.log(v / middle)) <= room]
    return min(inside), max(inside)


def plain(value):
    """A number without an exponent from 1000 on, else with three digits."""
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def axis_text(value, _=None):
    """A short number for an axis: millions as M."""
    return plain(value / 1e6) + " M" if value >= 1e6 else plain(value)


class Chart:
    """A figure with one pair of axes of a given height in points and a legend [(handle, text)]
    above."""

    def __init__(self, height, left, right, legend):
        columns = 2 if len(legend) > 1 and max(text_width(text) for _, text in legend) <= WIDTH / 2 - 45 else 1
        legend = [(handle, "\n".join(wrap(text, WIDTH - 50))) for handle, text in legend]
        top = LINE * max(math.ceil(len(legend) / columns), sum(t.count("\n") + 1 for _, t in legend) / columns) + 16
        bottom = 40
        total = top + height + bottom
        self.figure = pyplot.figure(figsize=(WIDTH / 72, total / 72))
        self.figure.patch.set_alpha(0)
        self.axes = self.figure.add_axes((left / WIDTH, bottom / total, (WIDTH - left - right) / WIDTH, height / total))
        self.tips = {}
        if legend:
            # matplotlib drops labels that start with _, so they get a zero-width joiner first
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
        """Sets the text shown when the pointer is on the artist."""
        name = f"tip{len(self.tips)}"
        artist.set_gid(name)
        self.tips[name] = text

    def svg(self, name, title, description):
        """The drawing as an element of a page; all its identifiers start with name."""
        matplotlib.rcParams["svg.hashsalt"] = name
        out = io.StringIO()
        with warnings.catch_warnings():
            # glyphs missing in matplotlib's font, which the browser has
            warnings.simplefilter("ignore")
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
        # Only inside tags: a matrix may have the name of a colour.
        names = {value: f"var(--{key})" for key, value in COLOURS.items()}
        text = re.sub(
            r"<[^<>]*>",
            lambda tag: re.sub(r"#000[12]\d\d", lambda c: names.get(c.group(), c.group()), tag.group()),
            text,
        )
        # Use the page's fonts; how matplotlib writes its own depends on its version.
        text = re.sub(r"font: [\d.]+px[^;\"]*", f"font-size: {FONT}px", text)
        text = re.sub(r"font-family: [^;\"]*(; )?", "", text)
        text = re.sub(r'<style type="text/css">.*?</style>', "", text, flags=re.S)
        return "\n".join(line.rstrip() for line in text.strip().split("\n"))


def marks(low, high):
    """The tick marks of a logarithmic axis from low to high: three to eight round numbers."""
    if high / low < 6:
        return [m for m in ticker.MaxNLocator(5, steps=[1, 2, 2.5, 5, 10]).tick_values(low, high) if low <= m <= high]
    for factors in ((1, 2, 5), (1, 3), (1,)):
        exponents = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
        found = [f * 10.0**e for e in exponents for f in factors if low <= f * 10.0**e <= high]
        if len(found) <= 7:
            return found
    return found[:: math.ceil(len(found) / 7)]


def log_axis(axis, set_limits, low, high):
    """Makes an axis logarithmic, from low to high."""
    set_limits(low, high)
    axis.set_major_locator(ticker.FixedLocator(marks(low, high)))
    axis.set_minor_locator(ticker.NullLocator())
    axis.set_major_formatter(axis_text)


def roofline(name, title, read, copy, ours, best, main):
    """ours, best: [(intensity in flops per byte, GFLOP/s, whether in cache, tip)]; read, copy: GB/s
    or None."""
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
        legend.append((mark("o", OURS, False), "hollow: in cache"))
    if read:
        legend.append((line, f"read {read:,.0f} GB/s"))
    if copy:
        legend.append((dashed, f"copy {copy:,.0f} GB/s"))
    chart = Chart(250, 68, 22, legend)
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
    axes.set_xlabel("arithmetic intensity, flops per byte")
    axes.set_ylabel("GFLOP/s")
    return chart.svg(
        name,
        title,
        f"Roofline on logarithmic axes with {len(ours)} results of {main} and {len(best)} of the best "
        "peer of each matrix. Every value is in the table of results.",
    )


class Rows:
    """The layout of a bar chart's rows: the bars of a row take one unit of the axis, which is
    `unit` points. Names are beside the bars if all are short, else above them on one or more
    lines."""

    def __init__(self, labels, unit):
        self.labels = labels
        widest = max(map(text_width, labels), default=0)
        self.beside = widest <= GUTTER
        self.left = max(widest + 10, 24) if self.beside else 24
        self.lines = [[label] if self.beside else wrap(label, WIDTH - 12) for label in labels]
        self.step = LINE / unit
        self.centres, end = [], -0.5
        for lines in self.lines:
            end += 0 if self.beside else self.step * (len(lines) + 0.4)
            self.centres.append(end + 0.5)
            end += 1
        self.end = end
        self.height = unit * (end + 0.5)

    def axis(self, chart, right):
        axes = chart.axes
        axes.set_ylim(self.end, -0.5)
        axes.set_yticks(self.centres)
        axes.set_yticklabels(self.labels if self.beside else [""] * len(self.labels))
        axes.tick_params(axis="y", length=0)
        axes.grid(True, axis="x")
        for centre, lines in zip(self.centres, [] if self.beside else self.lines):
            for i, line in enumerate(lines):
                place = centre - 0.5 - self.step * (len(lines) - i - 0.5)
                start = (4 - self.left) / (WIDTH - self.left - right)
                ground = dict(facecolor=BG, edgecolor="none", pad=0.8)
                axes.text(start, place, line, transform=axes.get_yaxis_transform(), va="center", bbox=ground, zorder=7)


class Outside:
    """Values outside of a chart's axis: drawn as arrows at its edge and listed beside it."""

    def __init__(self, low, high):
        self.low, self.high, self.words = low, high, []

    def has(self, value, words):
        """Whether the value is outside of the axis; if so, adds the words to the list."""
        outside = not self.low <= value <= self.high
        if outside:
            self.words.append(words)
        return outside

    def clip(self, value):
        return min(max(value, self.low), self.high)

    def arrow(self, chart, value, place):
        chart.axes.plot(
            [self.clip(value)],
            [place],
            linestyle="",
            marker="<" if value < self.low else ">",
            markersize=7,
            color=INK,
            clip_on=False,
            zorder=6,
        )


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


def times(name, title, rows, styles):
    """rows: [(label, ours Timing or None, (name, Timing) of the best peer or None, {name: Timing}
    of all others)]. Bars for the first two, marks for the others; in microseconds. Returns the
    drawing and the list of values outside of its axis."""
    others = sorted({n for _, _, _, more in rows for n in more}, key=lambda n: list(styles.index).index(n))
    legend = [
        (Patch(facecolor=OURS, edgecolor=OURS), styles.main),
        (Patch(facecolor=BG, edgecolor=BEST, hatch="////"), "best peer"),
    ]
    legend += [
        (Line2D([], [], linestyle="", marker=styles.marker(n), color=styles.colour(n), markersize=5.5), n)
        for n in others
    ]
    layout, right = Rows([r[0] for r in rows], ROW), 26
    chart = Chart(layout.height, layout.left, right, legend)
    axes = chart.axes
    axes.set_xscale("log")
    timings = [t for _, mine, best, more in rows for t in [mine, best and best[1], *more.values()] if t]
    least, greatest = window([t.median for t in timings])
    inside = [t for t in timings if least <= t.median <= greatest]
    low = max(min(t.min or t.median for t in inside), least / 2) * 1e6 / 1.6
    high = min(max(t.max or t.median for t in inside), greatest * 2) * 1e6 * 1.2
    outside = Outside(low, high)
    log_axis(axes.xaxis, axes.set_xlim, low, high)
    for i, (label, mine, best, more) in zip(layout.centres, rows):
        pairs = [(mine, styles.main, OURS, False, -0.2)]
        if best:
            pairs.append((best[1], best[0], BEST, True, 0.2))
        for timing, system, colour, hatch, shift in pairs:
            if timing:
                words = f"{label}: {system} {plain(timing.median * 1e6)} \u00b5s"
                far = outside.has(timing.median * 1e6, words)
                if far:
                    outside.arrow(chart, timing.median * 1e6, i + shift)
                spread = [outside.clip(v * 1e6) if v and not far else None for v in (timing.min, timing.max)]
                bar(
                    chart,
                    i + shift,
                    low,
                    outside.clip(timing.median * 1e6),
                    *spread,
                    colour,
                    hatch,
                    0.36,
                    words,
                )
        for system in others:
            if system in more:
                words = f"{label}: {system} {plain(more[system].median * 1e6)} \u00b5s"
                if outside.has(more[system].median * 1e6, words):
                    continue
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
                chart.tip(point, words)
    layout.axis(chart, right)
    axes.set_xlabel("\u00b5s, logarithmic; shorter is better")
    svg = chart.svg(
        name,
        title,
        f"For each of {len(rows)} rows a bar for {styles.main} and one for the fastest peer, with "
        "whiskers from the least to the greatest time, and a mark for every other system.",
    )
    return svg, outside.words


def ratios(name, title, rows, styles, what, better, worse, same="", others_of=()):
    """rows: [(label, ratio, low or None, high or None, {name: ratio}, tip, side, steady)]. Bars
    start at 1; side: 1 better, -1 worse, 0 the same; a ratio that is not steady is in brackets.
    Returns the drawing and the list of values outside of its axis."""
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
    written = [factor(r[1]) if r[7] else f"({factor(r[1])})" for r in rows]
    right = max(map(text_width, written)) + 16
    layout = Rows([r[0] for r in rows], ROW * 0.85)
    chart = Chart(layout.height, layout.left, right, legend)
    axes = chart.axes
    axes.set_xscale("log")
    least, greatest = window([v for r in rows for v in [r[1], *r[4].values()]])
    spreads = [v for r in rows if least <= r[1] <= greatest for v in r[2:4] if v]
    low = min(least, 0.9, max(min(spreads, default=least), least / 2)) / 1.08
    high = max(greatest, 1.1, min(max(spreads, default=greatest), greatest * 2)) * 1.08
    outside = Outside(low, high)
    log_axis(axes.xaxis, axes.set_xlim, low, high)
    centre, below, thick = (-0.13, 0.31, 0.46) if shown else (0, 0, 0.56)
    for i, row, words in zip(layout.centres, rows, written):
        label, ratio, least, most, more, tip, side, _ = row
        far = outside.has(ratio, f"{label}: {words}")
        if far:
            outside.arrow(chart, ratio, i + centre)
        spread = [outside.clip(v) if v and not far else None for v in (least, most)]
        bar(chart, i + centre, 1, outside.clip(ratio), *spread, (MUTED, OURS, BEST)[side], side < 0, thick, tip)
        for system in shown:
            if system in more and not outside.has(more[system], f"{label}: {system} {factor(more[system])}"):
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
        axes.text(1.03, i, words, transform=axes.get_yaxis_transform(), va="center", ha="left")
    axes.axvline(1, color=INK, linewidth=1.2, zorder=3)
    layout.axis(chart, right)
    axes.set_xlabel(what)
    svg = chart.svg(
        name,
        title,
        f"For each of {len(rows)} rows a bar from 1 to its ratio: to the right {better}, to the left "
        f"{worse}; whiskers show the range between the least and greatest times. The values are at the right.",
    )
    return svg, outside.words


MOST_TAU = 10


def profile(name, title, steps, styles):
    """steps: {system: [(tau, share)]} as returned by report_numbers.performance_profile."""
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
    chart = Chart(220, 58, 22, handles)
    axes = chart.axes
    axes.set_xscale("log")
    log_axis(axes.xaxis, axes.set_xlim, 1, end)
    for system, taus, shares, style in reversed(lines):
        (line,) = axes.plot(taus, shares, drawstyle="steps-post", zorder=4 if system == styles.main else 3, **style)
        chart.tip(line, system)
    axes.set_ylim(0, 1.04)
    axes.yaxis.set_major_formatter(ticker.PercentFormatter(1))
    axes.grid(True)
    axes.set_xlabel("\u03c4: at most \u03c4 times the fastest")
    axes.set_ylabel("share of the matrices")
    return chart.svg(
        name,
        title,
        f"Performance profile of {len(steps)} systems: the share of the matrices on which each takes at "
        "most \u03c4 times as long as the fastest. Higher is better; the left end is how often each is the fastest.",
    )

#!/usr/bin/env python3
"""Makes one HTML page from the results of `spmv bench --json=FILE`: rooflines, times, speed-ups,
performance profiles and tables. The page is self-contained. docs/report.md explains the figures.

usage: report.py RESULTS... -o REPORT.html
       report.py --compare OLD NEW -o REPORT.html

Exit code: 0 done; 1 usage, or no matplotlib; 2 cannot read or write; 3 malformed results; 4 no
results.

SPDX-License-Identifier: BSD-3-Clause
"""

import argparse
import html
import os
import string
import sys
import tempfile

sys.dont_write_bytecode = True  # do not write into the folder of the scripts

import report_numbers as numbers  # noqa: E402
from report_numbers import STATES  # noqa: E402

SKELETON = os.path.join(os.path.dirname(os.path.abspath(__file__)), "report_page.html")
MOST_ROWS = 60  # of a bar chart; of more rows, only the lowest and the highest ratios are drawn
OPS = {"spmv": "y = A x", "cg": "conjugate gradients", "load": "loading"}


class Failure(Exception):
    def __init__(self, code, sentence):
        super().__init__(sentence)
        self.code = code


# ------------------------------------------------------------------------------ parts of a page


def esc(text):
    return html.escape(str(text))


def digits(value):
    """About three significant digits, without an exponent if possible."""
    if value == 0 or 1e-3 <= value < 10:
        return f"{value:.3g}" if value < 1 else f"{value:.2f}"
    return f"{value:.2g}" if value < 1e-3 else f"{value:.1f}" if value < 100 else f"{value:,.0f}"


def microseconds(seconds):
    return digits(seconds * 1e6)


def bytes_a_second(gbs):
    return f"{gbs:,.1f} GB/s" if gbs < 100 else f"{gbs:,.0f} GB/s"


def spread(timing, unit=1e6):
    if timing is None or timing.min is None or timing.max is None:
        return ""
    return f"{digits(timing.min * unit)} .. {digits(timing.max * unit)}"


def times_sign(ratio):
    return f"{ratio:.2f}\u00d7"


def ratio_cell(theirs, mine):
    """The ratio of two timings, either of which may be None; in brackets if one is not steady."""
    if not theirs or not mine:
        return number(None)
    ratio, counts = theirs.median / mine.median, numbers.steady(theirs) and numbers.steady(mine)
    css = ("good" if ratio > 1 else "bad") if counts else ""
    return number(ratio, times_sign if counts else lambda value: f"({times_sign(value)})", css)


class Cell:
    """A cell of a table: its text, and its value for sorting and for programs."""

    def __init__(self, shown, value=None, css="", markup=False):
        self.value = value
        self.shown = shown if markup else esc(shown)
        self.css = css


def number(value, show=digits, css=""):
    return Cell("", "", "number") if value is None else Cell(show(value), repr(float(value)), ("number " + css).strip())


def text(words, css=""):
    return Cell(words, None, css)


def name_cell(words):
    """The first cell of a row; a long name wraps."""
    return Cell(words, None, "wrap" if len(words) > 24 else "")


def table(name, caption, heads, rows):
    """heads: [(words, "number" or "")]. The first cell of each row is its name."""
    out = [
        f'<div class="scroll" role="region" tabindex="0" aria-label="{esc(caption)}">',
        f'<table class="sortable" id="{name}"><caption>{esc(caption)}</caption><thead><tr>',
    ]
    out += [f'<th scope="col"{f" class={css}" if css else ""}>{esc(words)}</th>' for words, css in heads]
    out.append("</tr></thead><tbody>")
    for row in rows:
        out.append("<tr>")
        for i, cell in enumerate(row):
            attributes = f' class="{cell.css}"' if cell.css else ""
            if cell.value is not None:
                attributes += f' data-v="{esc(cell.value)}"'
            tag = "td" if i else 'th scope="row"'
            out.append(f"<{tag}{attributes}>{cell.shown}</{'td' if i else 'th'}>")
        out.append("</tr>")
    out.append("</tbody></table></div>")
    return "".join(out) + "\n"


def tile(value, words):
    return f"<li><b>{esc(value)}</b><span>{esc(words)}</span></li>"


# ------------------------------------------------------------------------------------------ runs


class Runs:
    """The commands that produced the results, numbered in order of appearance."""

    def __init__(self, results):
        self.tools = list(dict.fromkeys(r.tool for r in results))

    def words(self, results):
        """ "run 3" or "runs 1-4, 7", with a link."""
        found = sorted({self.tools.index(r.tool) + 1 for r in results})
        parts = []
        while found:
            end = 1
            while end < len(found) and found[end] == found[0] + end:
                end += 1
            parts.append(str(found[0]) if end == 1 else f"{found[0]}\u2013{found[end - 1]}")
            found = found[end:]
        several = len(parts) > 1 or "\u2013" in parts[0]
        return f'<a href="#runs">run{"s" if several else ""} {", ".join(parts)}</a>'

    def section(self):
        rows = []
        for i, tool in enumerate(self.tools, 1):
            tool = dict(tool)
            rows.append(
                [
                    Cell(i, i),
                    text(tool["version"]),
                    text(tool["commit"]),
                    text(tool["cuda"]),
                    text(tool["flags"], "wrap"),
                    Cell(f"<code>{esc(tool['command'])}</code>", css="wrap", markup=True),
                ]
            )
        return '<h2 id="runs">Runs</h2>\n<p>The programs and commands that measured the figures.</p>\n' + table(
            "table-runs",
            "Runs: the program, how it was built, and its command line",
            [("run", "number"), ("version", ""), ("commit", ""), ("CUDA", ""), ("flags", ""), ("command", "")],
            rows,
        )


# ------------------------------------------------------------------------------------- one group


def group_title(group):
    words = OPS.get(group.op)
    return f"{group.op}, {words}, on {group.machine}" if words else f"{group.op} on {group.machine}"


def state_words(state):
    return "caches as the previous run left them" if state == "warm" else "caches emptied before each run"


def bars_shown(rows, ratio_of):
    """(the rows that a chart draws, a sentence if these are not all rows)."""
    if len(rows) <= MOST_ROWS:
        return rows, ""
    judged = sorted((r for r in rows if ratio_of(r)), key=ratio_of)
    if len(judged) <= MOST_ROWS:
        return rows[:MOST_ROWS], f"The first {MOST_ROWS} of {len(rows)}; all are in the table. "
    half = MOST_ROWS // 2
    kept = {id(r) for r in judged[:half] + judged[-half:]}
    return [
        r for r in rows if id(r) in kept
    ], f"The {half} lowest and the {half} highest ratios of {len(rows)}; all are in the table. "


def outside_list(words):
    """The list of values outside of a chart's axes, shown beside it."""
    if not words:
        return ""
    items = "".join(f"<li>{esc(one)}</li>" for one in words)
    return f'<div class="outside"><p>Outside of the chart:</p><ul>{items}</ul></div>\n'


class GroupPage:
    """The section of one group."""

    def __init__(self, index, group, runs, charts):
        self.name, self.group, self.runs, self.charts = f"g{index}", group, runs, charts
        self.others = [s for s in group.systems if s != group.main]
        self.styles = charts.Styles(group.main, self.others)

    def chart(self, kind, what):
        """The name of a chart, for identifiers. It contains no text of the results."""
        return f"{self.name}-t{self.group.types.index(kind)}-{what}"

    def figure(self, heading, svg, caption, results, outside=()):
        return (
            f"<figure><h4>{esc(heading)}</h4>\n{svg}\n{outside_list(outside)}"
            f"<figcaption>{esc(caption)} From {self.runs.words(results)}.</figcaption></figure>\n"
        )

    def sentence(self, heading, words):
        return f"<figure><h4>{esc(heading)}</h4><p>{esc(words)}</p></figure>\n"

    def section(self):
        group = self.group
        out = [f'<h2 id="{self.name}">{esc(group_title(group))}</h2>\n', self.machine(), self.tiles(), self.summary()]
        out.append('<h3>Rooflines</h3>\n<div class="charts">\n')
        out += [self.roofline(kind, group.of_type(kind)) for kind in group.types]
        out.append("</div>\n")
        for kind in group.types:
            out.append(f"<h3>Times in {esc(kind or 'no type')}</h3>\n<div class=\"charts\">\n")
            cases = group.of_type(kind)
            for state in STATES:
                if any(c.timing(s, state) for c in cases for s in group.systems):
                    out += [
                        self.times(kind, cases, state),
                        self.speedups(kind, cases, state),
                        self.profile(kind, cases, state),
                    ]
            out.append("</div>\n")
        out += [self.results(), self.peers()]
        return "".join(out)

    def machine(self):
        parts = []
        for kind, (median, low, high) in self.group.bandwidth.items():
            range_words = f" ({bytes_a_second(low)} to {bytes_a_second(high)} over the runs)" if high > low else ""
            parts.append(f"{kind} {bytes_a_second(median)}{range_words}")
        words = "; ".join(parts) if parts else "not in the results"
        count = len(self.group.results)
        out = f"<p>Memory bandwidth measured on this machine: {esc(words)}. Results: {count}.</p>\n"
        for before, after in self.group.replaced:
            out += (
                f'<p class="warning">{esc(before.label)} {esc(before.type)} ({esc(numbers.our_name(before.asked))}) '
                "was measured "
                f"twice; {esc(after.source)} is used, {esc(before.source)} is not.</p>\n"
            )
        for result in self.group.results:
            if numbers.wrong_result(result):
                out += (
                    f'<p class="warning">{esc(result.label)} {esc(result.type)}: the result of '
                    f"{esc(numbers.our_name(result.asked))} is wrong ({esc(digits(result.verify))} times the "
                    "bound); its time is not used.</p>\n"
                )
        return out + self.doubts()

    def doubts(self):
        """The warnings of the runs about their own figures."""
        found = {}
        for result in self.group.results:
            if result.doubt:
                found.setdefault(result.doubt, []).append(result)
        words = "".join(
            f"<li>{esc(doubt)} ({len(results)} of {len(self.group.results)} results, {self.runs.words(results)})</li>"
            for doubt, results in sorted(found.items(), key=lambda item: -len(item[1]))
        )
        return f'<div class="warning">Warnings of the runs:<ul>{words}</ul></div>\n' if words else ""

    def tiles(self):
        tiles, group = [], self.group
        for kind in group.types:
            cases = group.of_type(kind)
            found = numbers.comparisons(cases, group.main, [], "warm")
            if found:
                best = found[0]
                tiles.append(
                    tile(
                        times_sign(best.mean),
                        f"{kind}: geometric mean of the speed-up over the best peer of each of "
                        f"{best.count} matrices; worst {times_sign(best.worst)} ({best.worst_case})",
                    )
                )
            shares = [c.first.share for c in cases if c.first.share and not numbers.in_cache(c.first)]
            if shares:
                tiles.append(
                    tile(
                        f"{100 * numbers.geometric_mean(shares):.0f} %",
                        f"{kind}: share of the read bandwidth, geometric "
                        f"mean over {len(shares)} results not marked as in cache",
                    )
                )
        return f'<ul class="tiles">{"".join(tiles)}</ul>\n' if tiles else ""

    def summary(self):
        group, rows = self.group, []
        for kind in group.types:
            for state in STATES:
                for asked in group.asked:
                    ours = numbers.our_name(asked)
                    for c in numbers.comparisons(group.of_type(kind), ours, group.peers, state):
                        rows.append(
                            [
                                name_cell(c.opponent),
                                text(ours),
                                text(kind),
                                text(state),
                                number(c.count, lambda v: f"{v:.0f}"),
                                number(c.left_out, lambda v: f"{v:.0f}"),
                                number(c.mean, times_sign),
                                number(c.worst, times_sign),
                                text(c.worst_case, "wrap"),
                                number(c.greatest, times_sign),
                                text(c.greatest_case, "wrap"),
                                Cell(f"{c.wins} of {c.count}", repr(float(c.wins / c.count)), "number"),
                            ]
                        )
        if not rows:
            return "<p>No peer was measured beside these results, so there are no speed-ups.</p>\n"
        return table(
            f"summary-{self.name}",
            "Speed-up: the peer's median time over ours; above 1, ours is faster. Each row is over the "
            "matrices measured with both; left out: a median more than 20 % above its minimum.",
            [
                ("against", ""),
                ("ours", ""),
                ("type", ""),
                ("caches", ""),
                ("matrices", "number"),
                ("left out", "number"),
                ("geometric mean", "number"),
                ("worst", "number"),
                ("on", ""),
                ("greatest", "number"),
                ("on", ""),
                ("faster on", "number"),
            ],
            rows,
        )

    def roofline(self, kind, cases):
        group, ours, best = self.group, [], []
        heading = f"Roofline, {kind}, warm"
        used, without = [], 0
        for case in cases:
            r = case.first
            mine, peer = case.timing(group.main, "warm"), case.best("warm")
            if not r.flops or not r.bytes or not (mine or peer):
                without += 1
                continue
            used.append(r)
            intensity, cached = r.flops / r.bytes, numbers.in_cache(r)
            read = r.bandwidth.get("read")
            for points, timing, system in ((ours, mine, group.main), (best, peer and peer[1], peer and peer[0])):
                if timing:
                    rate = 1e-9 * r.flops / timing.median
                    hot = cached or bool(read and 1e-9 * r.bytes / timing.median > read)
                    points.append((intensity, rate, hot, f"{case.label}: {system} {digits(rate)} GFLOP/s"))
        if not used:
            return self.sentence(heading, "No roofline: the results have no number of flops, bytes or seconds.")
        read, copy = (self.group.bandwidth.get(k, (None,))[0] for k in ("read", "copy"))
        svg = self.charts.roofline(
            self.chart(kind, "roof"), f"Roofline of {group.op} in {kind}", read, copy, ours, best, group.main
        )
        words = (
            "The lines are the limits by memory: the bandwidths measured on this machine times the intensity. "
            "Bytes are those of the model, in which each array is read or written once."
        )
        if not read:
            words = "The results have no read bandwidth, so there is no roof. " + words
        if without:
            words += f" Not drawn because a time, bytes or sizes are missing: {without}."
        return self.figure(heading, svg, words, used)

    def rows(self, cases, state):
        """(the cases that a chart draws, a sentence if these are not all cases)."""
        drawn = [c for c in cases if any(c.timing(s, state) for s in self.group.systems)]

        def ratio(case):
            mine, best = case.timing(self.group.main, state), case.best(state)
            return best[1].median / mine.median if mine and best else None

        return bars_shown(drawn, ratio)

    def times(self, kind, cases, state):
        drawn, limit = self.rows(cases, state)
        rows = []
        for case in drawn:
            best = case.best(state)
            more = {s: case.timing(s, state) for s in self.others if not (best and s == best[0])}
            rows.append((case.label, case.timing(self.group.main, state), best, {s: t for s, t in more.items() if t}))
        heading = f"Time, {kind}, {state}"
        svg, outside = self.charts.times(
            self.chart(kind, "time-" + state), f"Time of {self.group.op} in {kind}, {state}", rows, self.styles
        )
        return self.figure(
            heading,
            svg,
            f"{limit}Medians, {state_words(state)}; whiskers from the least to the greatest time. The axis is "
            "logarithmic: compare the ends of the bars, not their lengths.",
            [c.first for c in drawn],
            outside,
        )

    def speedups(self, kind, cases, state):
        heading = f"Speed-up over the best peer, {kind}, {state}"
        drawn, limit = self.rows([c for c in cases if c.timing(self.group.main, state) and c.best(state)], state)
        if not drawn:
            return self.sentence(heading, "No peer was measured beside these results.")
        rows = []
        for case in drawn:
            mine, (name, theirs) = case.timing(self.group.main, state), case.best(state)
            ratio, low, high = numbers.speedup(mine, theirs)
            more = {p: case.timing(p, state) for p in self.group.peers}
            rows.append(
                (
                    case.label,
                    ratio,
                    low,
                    high,
                    {p: t.median / mine.median for p, t in more.items() if t},
                    f"{case.label}: {name} takes {ratio:.3g} times as long",
                    1 if ratio >= 1 else -1,
                    numbers.steady(mine) and numbers.steady(theirs),
                )
            )
        svg, outside = self.charts.ratios(
            self.chart(kind, "ratio-" + state),
            f"Speed-up of {self.group.op} in {kind}, {state}",
            rows,
            self.styles,
            "the peer's time over ours, logarithmic",
            "ours is faster",
            "a peer is faster",
            others_of=self.group.peers,
        )
        return self.figure(
            heading,
            svg,
            f"{limit}Bars: the fastest peer of each matrix; marks: each peer; {state_words(state)}. "
            "Whiskers: from the peer's least time over our greatest to the peer's greatest over our least. In "
            "brackets: a median more than 20 % above its minimum.",
            [c.first for c in drawn],
            outside,
        )

    def profile(self, kind, cases, state):
        heading = f"Performance profile, {kind}, {state}"
        systems = numbers.profile_systems(cases, self.group.systems, state)
        if len(systems) < 2:
            return self.sentence(heading, "A profile needs two systems.")
        times = numbers.profile_times(cases, systems, state)
        if not times:
            return self.sentence(heading, f"No matrix was tried on all of {', '.join(systems)}.")
        failures = sum(t is None for row in times.values() for t in row.values())
        svg = self.charts.profile(
            self.chart(kind, "profile-" + state),
            f"Performance profile of {self.group.op} in {kind}, {state}",
            numbers.performance_profile(times),
            self.styles,
        )
        words = (
            f"Dolan and Mor\u00e9 2002, over the {len(times)} of {len(cases)} matrices that every system was tried "
            f"on. A failure or a wrong result counts as slower than any \u03c4 ({failures} here). Missing systems and "
            "probes are left out. The order of two systems may depend on the others."
        )
        return self.figure(heading, svg, words, [c.first for c in cases if c.key in times])

    def results(self):
        rows = []
        for case in (c for kind in self.group.types for c in self.group.of_type(kind)):
            for r in sorted(case.ours.values(), key=lambda r: (r.asked != "auto", r.asked)):
                ours = numbers.our_name(r.asked)
                warm, flushed = case.timing(ours, "warm"), case.timing(ours, "flushed")
                best, cold = case.best("warm"), case.best("flushed")
                equal, repeats = r.bitwise
                same = (
                    "" if equal is None else ("yes" if equal else "no") + (f", {repeats:.0f} runs" if repeats else "")
                )
                method = f"{r.asked}: {r.method}" if r.method and r.method != r.asked else r.asked
                notes = [r.note] if r.note else []
                if r.share is not None and r.share > 1 and not r.note:
                    notes.append("above the memory bandwidth: data in cache")
                if numbers.wrong_result(r):
                    notes.append("wrong result")
                elif not r.warm:
                    notes.append("no time in the results")
                rows.append(
                    [
                        name_cell(r.label),
                        text(r.type),
                        text(method),
                        number(r.rows, lambda v: f"{v:,.0f}"),
                        number(r.nnz, lambda v: f"{v:,.0f}"),
                        number(r.warm and r.warm.median, microseconds),
                        Cell(spread(r.warm), css="range"),
                        number(r.flushed and r.flushed.median, microseconds),
                        number(r.gbs),
                        number(r.share, lambda v: f"{v:.2f}"),
                        text(best[0] if best else ""),
                        number(best[1].median if best else None, microseconds),
                        ratio_cell(best and best[1], warm),
                        ratio_cell(cold and cold[1], flushed),
                        number(r.plan, microseconds),
                        number(r.first, microseconds),
                        text(same),
                        number(r.verify),
                        text("; ".join(notes), "wrap"),
                    ]
                )
        return "<h3>All results</h3>\n" + table(
            f"results-{self.name}",
            "All results; times in microseconds, medians; speed-up over the best peer of that matrix. Verify: the "
            "worst error in units of its bound.",
            [
                ("matrix", ""),
                ("type", ""),
                ("method", ""),
                ("rows", "number"),
                ("nonzeros", "number"),
                ("time, \u00b5s", "number"),
                ("min .. max", "number"),
                ("flushed, \u00b5s", "number"),
                ("GB/s", "number"),
                ("share of read", "number"),
                ("best peer", ""),
                ("its time, \u00b5s", "number"),
                ("speed-up", "number"),
                ("flushed", "number"),
                ("plan, \u00b5s", "number"),
                ("first call, \u00b5s", "number"),
                ("same bits", ""),
                ("verify", "number"),
                ("note", ""),
            ],
            rows,
        )

    def peers(self):
        rows = []
        for case in (c for kind in self.group.types for c in self.group.of_type(kind)):
            for name, p in sorted(case.peers.items()):
                if p.missing:
                    continue
                status = (
                    f"failed: {p.failed}"
                    if p.failed
                    else "probe, does not compete" if p.probe else "passed" if p.passed else "not checked"
                )
                repeatable = "" if p.repeatable is None else "yes" if p.repeatable else "no"
                rows.append(
                    [
                        name_cell(case.label),
                        text(case.type),
                        text(name),
                        number(p.warm and p.warm.median, microseconds),
                        Cell(spread(p.warm), css="range"),
                        number(p.flushed and p.flushed.median, microseconds),
                        number(p.plan, microseconds),
                        number(p.first, microseconds),
                        text(repeatable),
                        number(p.verify),
                        Cell(status, css="bad" if p.failed else ""),
                        text(p.library),
                        text(p.settings, "wrap"),
                    ]
                )
        if not rows:
            return ""
        return (
            "<details><summary>All times of the peers</summary>\n"
            + table(
                f"peers-{self.name}",
                "All peers on all matrices; times in microseconds, medians. A probe moves data but computes no "
                "result.",
                [
                    ("matrix", ""),
                    ("type", ""),
                    ("peer", ""),
                    ("time, \u00b5s", "number"),
                    ("min .. max", "number"),
                    ("flushed, \u00b5s", "number"),
                    ("plan, \u00b5s", "number"),
                    ("first call, \u00b5s", "number"),
                    ("same bits", ""),
                    ("verify", "number"),
                    ("status", ""),
                    ("library", ""),
                    ("settings", ""),
                ],
                rows,
            )
            + "</details>\n"
        )


def absent(groups):
    """Missing and failed peers, each with the reason and the matrices."""
    found = {}
    for group in groups:
        for case in group.cases.values():
            for p in case.peers.values():
                if p.missing or p.failed:
                    key = (p.name, "missing" if p.missing else "failed", p.missing or p.failed)
                    found.setdefault(key, []).append(f"{case.label} {case.type}".strip())
    if not found:
        return '<h2 id="absent">Missing and failed peers</h2>\n<p>None.</p>\n'
    rows = []
    for (name, what, why), where in sorted(found.items()):
        places = ", ".join(where[:4]) + (f" and {len(where) - 4} more" if len(where) > 4 else "")
        rows.append(
            [text(name), text(what, "bad" if what == "failed" else ""), text(why, "wrap"), text(places, "wrap")]
        )
    return (
        '<h2 id="absent">Missing and failed peers</h2>\n<p>Missing: the library of the peer is not installed. Failed: the peer '
        "gave no result "
        "or a wrong one.</p>\n"
        + table(
            "table-absent",
            "Peers that were not measured, with the reason",
            [("peer", ""), ("what", ""), ("why", ""), ("on", "")],
            rows,
        )
    )


# ------------------------------------------------------------------------------------- two files


def comparison_summary(found):
    """Paragraphs with the number of results of each verdict, for each state of the caches."""
    out = []
    for verdict_state in STATES:
        part = [c for c in found if c.state == verdict_state]
        if part:
            counts = {
                v: sum(c.verdict == v for c in part)
                for v in (numbers.FASTER, numbers.SLOWER, numbers.SAME, numbers.UNKNOWN)
            }
            words = ", ".join(f"{n} {v}" for v, n in counts.items() if n)
            mean = numbers.geometric_mean([c.ratio for c in part])
            out.append(
                f"<p>{verdict_state.capitalize()}: {esc(words)}; geometric mean of old over new "
                f"{times_sign(mean)}.</p>\n"
            )
    return out


def comparison_figures(found, old, new, runs, charts):
    """A chart of old over new times for each operation, backend, type and state of the caches."""
    figures = []
    for kind in dict.fromkeys((c.op, c.backend, c.type, c.state) for c in found):
        part = [c for c in found if (c.op, c.backend, c.type, c.state) == kind]
        shown, limit = bars_shown(part, lambda c: c.ratio)
        rows = []
        for c in shown:
            ratio, low, high = numbers.speedup(c.new, c.old)
            label = c.label if c.asked == "auto" else f"{c.asked} {c.label}"
            side = {numbers.FASTER: 1, numbers.SLOWER: -1}.get(c.verdict, 0)
            rows.append((label, ratio, low, high, {}, f"{label}: {c.verdict}, {ratio:.3g}", side, True))
        words = " ".join(filter(None, kind))
        styles = charts.Styles("spmv", [])
        name = "-".join(("compare", str(len(figures))))
        svg, outside = charts.ratios(
            name,
            f"Old over new time, {words}",
            rows,
            styles,
            "old time over new, logarithmic",
            "faster",
            "slower",
            "same, or not judged",
        )
        drawn = {(c.op, c.label, c.type, c.backend, c.asked) for c in shown}
        used = [r for r in old + new if (r.op, r.label, r.type, r.backend, r.asked) in drawn]
        figures.append(
            f"<figure><h4>{esc(words)}</h4>\n{svg}\n{outside_list(outside)}<figcaption>{esc(limit)}Whiskers: the range of ratios "
            f"between the least and greatest times. From {runs.words(used)}.</figcaption></figure>\n"
        )
    return figures


def comparison_table(found):
    """The verdicts, the worst first; nothing if there is none."""
    css = {numbers.FASTER: "good", numbers.SLOWER: "bad"}
    order = [numbers.SLOWER, numbers.FASTER, numbers.UNKNOWN, numbers.SAME]
    found = sorted(found, key=lambda c: (order.index(c.verdict), c.ratio))
    rows = [
        [
            name_cell(c.label),
            text(f"{c.op} on {c.backend}"),
            text(c.type),
            text(c.asked),
            text(c.state),
            number(c.old.median, microseconds),
            Cell(spread(c.old), css="range"),
            number(c.new.median, microseconds),
            Cell(spread(c.new), css="range"),
            number(c.ratio, lambda v: f"{v:.3f}\u00d7"),
            text(c.verdict, css.get(c.verdict, "")),
        ]
        for c in found
    ]
    if not rows:
        return ""
    return table(
        "verdicts",
        "Verdicts; times in microseconds",
        [
            ("matrix", ""),
            ("operation", ""),
            ("type", ""),
            ("method", ""),
            ("caches", ""),
            ("old, \u00b5s", "number"),
            ("old min .. max", "number"),
            ("new, \u00b5s", "number"),
            ("new min .. max", "number"),
            ("old over new", "number"),
            ("verdict", ""),
        ],
        rows,
    )


def comparison(old, new, names, noise, runs, charts):
    """The section with the changes from one file to the other."""
    found, gone, added = numbers.changes(old, new, noise)
    out = [
        '<h2 id="compare">What changed</h2>\n',
        f"<p>Old: <code>{esc(names[0])}</code>. New: <code>{esc(names[1])}</code>. "
        "All other sections are about the new file.</p>\n",
    ]
    out += [
        f'<p class="warning">Warning: {esc(words)} Do not compare times of different machines.</p>\n'
        for words in numbers.machine_differences(old, new)
    ]
    out.append(
        f"<p><b>faster</b> (<b>slower</b>): every new time is below (above) every old one, so the intervals "
        f"[min, max] do not overlap, and the medians differ by more than {100 * noise:g} %. Otherwise "
        "<b>same within noise</b>. Results without min and max are not judged.</p>\n"
    )
    drift = numbers.peer_drift(old, new)
    if drift:
        out.append(
            f"<p>The peers, measured in both files, changed by a factor of {drift[0]:.3f} (geometric mean "
            f"of old over new of {drift[1]} times). A factor far from 1 means that the machine changed.</p>\n"
        )
    if not found:
        out.append("<p>The files have no result in common.</p>\n")
    out += comparison_summary(found)
    figures = comparison_figures(found, old, new, runs, charts)
    if figures:
        out.append(f'<div class="charts">\n{"".join(figures)}</div>\n')
    out.append(comparison_table(found))
    for words, results in (("old", gone), ("new", added)):
        if results:
            names = ", ".join(f"{r.label} {r.type} {numbers.our_name(r.asked)} ({r.op})" for r in results[:20])
            more = f" and {len(results) - 20} more" if len(results) > 20 else ""
            out.append(f"<p>Only in the {words} file: {esc(names)}{more}.</p>\n")
    return "".join(out)


# -------------------------------------------------------------------------------------- the page


def page(results, old, names, noise, charts):
    """The page. old: the results of an earlier file to compare with, or None."""
    groups = numbers.groups_of(results)
    runs = Runs((old or []) + results)
    machines = list(dict.fromkeys(g.machine for g in groups))
    sources = names if old is None else names[1:]
    title = "spmv benchmark: " + ", ".join(dict.fromkeys(g.op for g in groups)) + " on " + ", ".join(machines)
    entries = [("compare", "What changed")] if old is not None else []
    entries += [(f"g{i}", group_title(g)) for i, g in enumerate(groups)] + [
        ("absent", "Missing and failed peers"),
        ("runs", "Runs"),
    ]
    body = [
        f'<header><h1>{esc(title)}</h1>\n<p class="muted">{len(results)} results from {esc(", ".join(sources))}.</p>',
        "</header>\n",
        '<nav aria-label="Contents"><ul>'
        + "".join(f'<li><a href="#{a}">{esc(t)}</a></li>' for a, t in entries)
        + "</ul></nav>\n<main>\n",
    ]
    if old is not None:
        body.append(comparison(old, results, names, noise, runs, charts))
    body += [GroupPage(i, group, runs, charts).section() for i, group in enumerate(groups)]
    body += [absent(groups), runs.section(), "</main>"]
    with open(SKELETON, encoding="utf-8") as skeleton:
        return string.Template(skeleton.read()).substitute(title=esc(title), body="".join(body))


def read(path):
    try:
        results = numbers.read_file(path)
    except OSError as error:
        raise Failure(2, f"cannot read {path}: {error.strerror}") from None
    except numbers.Malformed as error:
        raise Failure(3, str(error)) from None
    return results


def write(path, content):
    """Writes a new file and renames it to path; writes directly to a pipe or device."""
    data = content.encode("utf-8")
    try:
        if os.path.exists(path) and not os.path.isfile(path):
            with open(path, "wb") as out:
                out.write(data)
            return
        path = os.path.realpath(path)
        handle, beside = tempfile.mkstemp(dir=os.path.dirname(path), prefix=os.path.basename(path) + ".")
        try:
            with os.fdopen(handle, "wb") as out:
                out.write(data)
            mask = os.umask(0)
            os.umask(mask)
            os.chmod(beside, 0o666 & ~mask)
            os.replace(beside, path)
        except BaseException:
            os.unlink(beside)
            raise
    except OSError as error:
        raise Failure(2, f"cannot write {path}: {error.strerror}") from None


class Arguments(argparse.ArgumentParser):
    def error(self, message):
        raise Failure(1, f"{message} (report.py --help)")


def load_charts():
    try:
        import report_charts  # imported here, so that bad input is reported without matplotlib too
    except ImportError as error:
        raise Failure(
            1,
            f"matplotlib 3.6 or later is required ({error}): apt-get install python3-matplotlib, or pip install "
            "matplotlib",
        ) from None
    return report_charts


def main():
    parser = Arguments(prog="report.py", description="Makes one HTML page from the results of spmv bench --json=FILE.")
    parser.add_argument(
        "results", nargs="+", help="JSON Lines; if a matrix, type and method is repeated, the later line is used"
    )
    parser.add_argument("-o", "--output", required=True, help="the HTML file")
    parser.add_argument("--compare", action="store_true", help="compare two files, OLD NEW: what is faster or slower")
    parser.add_argument(
        "--noise",
        type=float,
        default=100 * numbers.NOISE,
        metavar="PERCENT",
        help="with --compare: treat medians closer than this as equal (default: %(default)g)",
    )
    options = parser.parse_args()
    if options.compare and len(options.results) != 2:
        raise Failure(1, f"--compare takes two files, OLD and NEW; {len(options.results)} given")
    if not 0 <= options.noise < float("inf"):
        raise Failure(1, f"--noise {options.noise:g}: must be a finite number of at least 0")
    files = [read(path) for path in options.results]
    for path, results in zip(options.results, files):
        if not results and (options.compare or not any(files)):
            raise Failure(4, f"{path} has no results")
    charts = load_charts()
    names = [numbers.clean(path) for path in options.results]
    results = files[1] if options.compare else [r for f in files for r in f]
    write(options.output, page(results, files[0] if options.compare else None, names, options.noise / 100, charts))


if __name__ == "__main__":
    try:
        main()
    except Failure as failure:
        sys.stderr.write(numbers.clean(f"report.py: {failure}") + "\n")
        sys.exit(failure.code)

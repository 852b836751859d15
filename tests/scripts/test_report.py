#!/usr/bin/env python3
"""Tests scripts/report.py: the input that it accepts and rejects, its numbers against those
computed here, the page that it writes, and how a browser shows the page. The samples in
tests/data/report are made up; their machine is an example.

test_report.py SCRIPT numbers|page|browser [unittest arguments]. numbers needs only Python. Exit
code 77 if page finds no matplotlib, or browser no matplotlib or no Chromium.

SPDX-License-Identifier: BSD-3-Clause
"""

import collections
import copy
import html
import html.parser
import importlib.util
import json
import math
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest
import zlib

sys.dont_write_bytecode = True
SCRIPT = os.path.abspath(sys.argv[1])
SAMPLES = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "data", "report")
GPU, OLD, CPU, SCAN = (os.path.join(SAMPLES, f"sample_{name}.json") for name in ("gpu", "gpu_old", "cpu", "scan"))
SKIPPED = 77
sys.path.insert(0, os.path.dirname(SCRIPT))
import report_numbers as numbers  # noqa: E402


def report(*arguments, options=(), stdout=subprocess.PIPE):
    """Runs the script."""
    command = [sys.executable, *options, SCRIPT, *arguments]
    return subprocess.run(
        command, stdin=subprocess.DEVNULL, stdout=stdout, stderr=subprocess.PIPE, text=True, timeout=120, check=False
    )


def lines_of(path):
    with open(path, encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def line(name="A", kind="f64", asked="auto", seconds=1e-5, peers=(), **more):
    """One result with a spread of 1 %."""
    timing = seconds if isinstance(seconds, dict) else around(seconds)
    result = {"op": "spmv", "backend": "omp", "asked": asked, "method": asked, "type": kind, "seconds": timing}
    result.update(more, model_bytes=1000)
    return {
        "schema": "spmv/1",
        "tool": {"version": "1", "commit": "c", "cuda": "", "flags": "-O2", "command": "spmv bench"},
        "machine": {"cpu": {"name": "Example CPU", "threads": 4, "read_gbs": 50.0}},
        "matrix": {"name": name, "rows": 10, "cols": 10, "nnz": 60},
        "result": result,
        "peers": list(peers),
    }


def around(seconds):
    return {"median": seconds, "min": seconds * 0.99, "max": seconds * 1.01, "repeats": 5}


def peer(name, seconds, **more):
    return dict({"name": name, "seconds": around(seconds), "repeatable": True, "verify": {"passed": True}}, **more)


class Scratch(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.page = os.path.join(self.folder, "page.html")

    def file(self, name, content):
        """Writes a file with results (a list), text or bytes; returns its path."""
        path = os.path.join(self.folder, name)
        if isinstance(content, list):
            content = "".join(json.dumps(one) + "\n" for one in content)
        with open(path, "wb") as out:
            out.write(content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content)
        return path

    def refused(self, code, sentence, *arguments, **more):
        """Checks the exit code, that standard error is one line with the sentence, and that there
        is no page. Returns standard error."""
        done = report(*arguments, **more)
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertIn(sentence, done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertEqual(done.stdout, "")
        self.assertFalse(os.path.exists(self.page))
        return done.stderr


def cases_of(*results):
    """The cases of the given results (objects as returned by line()), on one machine."""
    read = [numbers.read_result(json.dumps(one), f"results:{i}") for i, one in enumerate(results, 1)]
    (group,) = numbers.groups_of(read)
    return group


class Numbers(Scratch):
    def test_geometric_mean(self):
        self.assertAlmostEqual(numbers.geometric_mean([2.0, 8.0]), 4.0, places=14)
        self.assertAlmostEqual(numbers.geometric_mean([1e-200, 1e-200, 1e-200]) * 1e200, 1.0, places=10)

    def test_profile_by_hand(self):
        # ratios: a 1, 2, 1; b 2, 1, 1; c 4, 3, none
        times = {
            1: {"a": 1.0, "b": 2.0, "c": 4.0},
            2: {"a": 2.0, "b": 1.0, "c": 3.0},
            3: {"a": 5.0, "b": 5.0, "c": None},
        }
        third = 1 / 3
        self.assertEqual(
            numbers.performance_profile(times),
            {
                "a": [(1.0, 2 * third), (2.0, 1.0)],
                "b": [(1.0, 2 * third), (2.0, 1.0)],
                "c": [(1.0, 0.0), (3.0, third), (4.0, 2 * third)],
            },
        )
        self.assertEqual(numbers.performance_profile({}), {})

    def test_profile_takes_what_all_were_tried_on(self):
        group = cases_of(
            line("A", peers=[peer("p", 2e-5), peer("q", 3e-5)]),
            line("B", peers=[peer("p", 2e-5), {"name": "q", "failed": "no room"}]),
            line("C", peers=[peer("p", 2e-5)]),  # q was not tried
            line("D", peers=[peer("p", 2e-5), peer("q", 1e-5, verify={"passed": False, "worst_error_over_bound": 7})]),
            line("E", peers=[peer("p", 2e-5), {"name": "q", "missing": "no module"}]),
        )
        cases = group.of_type("f64")
        systems = numbers.profile_systems(cases, group.systems, "warm")
        self.assertEqual(systems, ["spmv", "p", "q"])
        times = numbers.profile_times(cases, systems, "warm")
        found = {key[0][0]: row for key, row in times.items()}
        self.assertEqual(sorted(found), ["A", "B", "D"])
        self.assertEqual([found[name]["q"] for name in "ABD"], [3e-5, None, None])
        # nobody was measured with caches emptied
        self.assertEqual(numbers.profile_systems(cases, group.systems, "flushed"), [])

    def test_best_peer(self):
        group = cases_of(
            line(
                "A",
                seconds=4e-5,
                peers=[
                    peer("slow", 8e-5),
                    peer("fast", 5e-5, repeatable=False),
                    peer("yardstick", 1e-5, probe=True),
                    peer("wrong", 1e-6, verify={"passed": False}),
                    {"name": "absent", "missing": "no module"},
                    {"name": "broken", "failed": "no room"},
                    {"name": "mute"},
                ],
            )
        )
        (case,) = group.cases.values()
        self.assertEqual(case.best("warm")[0], "fast")
        self.assertEqual(case.best("warm", repeatable=True)[0], "slow")
        self.assertIsNone(case.best("flushed"))
        self.assertEqual(group.peers, ["broken", "fast", "mute", "slow", "wrong"])
        self.assertEqual(group.probes, ["yardstick"])
        found = {c.opponent: c.mean for c in numbers.comparisons(group.cases.values(), "spmv", group.peers, "warm")}
        self.assertEqual(sorted(found), sorted([numbers.BEST, numbers.BEST_REPEATABLE, "fast", "slow"]))
        self.assertAlmostEqual(found[numbers.BEST], 1.25, places=12)
        self.assertAlmostEqual(found[numbers.BEST_REPEATABLE], 2.0, places=12)

    def test_two_methods_share_the_peers(self):
        group = cases_of(line(asked="scalar", seconds=2e-5), line(seconds=1e-5, peers=[peer("p", 3e-5)]))
        self.assertEqual(group.systems, ["spmv", "spmv:scalar", "p"])
        (found,) = [
            c for c in numbers.comparisons(group.cases.values(), "spmv:scalar", ["p"], "warm") if c.opponent == "p"
        ]
        self.assertAlmostEqual(found.mean, 1.5, places=12)

    def test_own_wrong_result_counts_nowhere(self):
        bad = dict(line(peers=[peer("p", 3e-5)]), verify={"reference": "ref", "worst_error_over_bound": 1.5})
        group = cases_of(bad)
        (case,) = group.cases.values()
        self.assertIsNone(case.timing("spmv", "warm"))
        self.assertTrue(case.failed("spmv"))
        self.assertEqual(numbers.comparisons([case], "spmv", ["p"], "warm"), [])

    def test_later_line_counts(self):
        group = cases_of(line(seconds=1e-5), line(seconds=2e-5))
        (case,) = group.cases.values()
        self.assertEqual(case.timing("spmv", "warm").median, 2e-5)
        self.assertEqual([(a.source, b.source) for a, b in group.replaced], [("results:1", "results:2")])

    def test_machines_are_kept_apart(self):
        other = line()
        other["machine"]["cpu"]["threads"] = 8
        read = [numbers.read_result(json.dumps(one), "r") for one in (line(), other)]
        machines = [group.machine for group in numbers.groups_of(read)]
        self.assertEqual(machines, ["Example CPU (4 threads)", "Example CPU (8 threads)"])

    def test_verdicts(self):
        timing = numbers.Timing
        old = timing(10.0, 9.5, 10.5, 5)
        table = [
            (timing(8.0, 7.9, 9.4, 5), numbers.FASTER),
            (timing(8.0, 7.9, 9.5, 5), numbers.SAME),  # the intervals meet
            (timing(12.0, 10.6, 13.0, 5), numbers.SLOWER),
            (timing(12.0, 10.5, 13.0, 5), numbers.SAME),
            (timing(10.0, 9.0, 11.0, 5), numbers.SAME),
            (timing(8.0, None, None, 5), numbers.UNKNOWN),
        ]
        for new, expected in table:
            self.assertEqual(numbers.verdict(old, new), expected, new)
        narrow = timing(10.0, 9.999, 10.001, 5)
        for median, expected in (
            (9.85, numbers.SAME),
            (9.7, numbers.FASTER),
            (10.15, numbers.SAME),
            (10.3, numbers.SLOWER),
        ):
            new = timing(median, median - 0.001, median + 0.001, 5)
            self.assertEqual(numbers.verdict(narrow, new), expected, median)
        self.assertEqual(numbers.verdict(narrow, timing(9.85, 9.849, 9.851, 5), noise=0.01), numbers.FASTER)

    def test_speedup_spread(self):
        ours, theirs = numbers.Timing(2.0, 1.0, 4.0, 3), numbers.Timing(6.0, 4.0, 8.0, 3)
        self.assertEqual(numbers.speedup(ours, theirs), (3.0, 1.0, 8.0))
        self.assertEqual(numbers.speedup(ours, theirs._replace(max=None)), (3.0, None, None))

    def test_cache(self):
        plain, noted, fast = line("A"), line("B", note="sits in cache"), line("C", share_of_read_bandwidth=1.2)
        self.assertEqual(
            [numbers.in_cache(numbers.read_result(json.dumps(one), "r")) for one in (plain, noted, fast)],
            [False, True, True],
        )

    def test_primitive_label(self):
        first = numbers.read_file(SCAN)[0]
        self.assertEqual((first.op, first.label, first.flops), ("scan", "n = 2^12, inclusive, plus", 4096))

    def test_absent_parts_and_unknown_fields(self):
        for bare in ({"schema": "spmv/1"}, {"schema": "spmv/1", "result": None, "peers": None, "new": {"field": [1]}}):
            result = numbers.read_result(json.dumps(bare), "r")
            self.assertEqual((result.op, result.warm, result.peers), ("spmv", None, []))
            numbers.groups_of([result])

    def test_malformed_lines(self):
        def changed(*path, value):
            one = copy.deepcopy(line(peers=[peer("p", 1e-5)]))
            part = one
            for key in path[:-1]:
                part = part[key]
            part[path[-1]] = value
            return json.dumps(one)

        table = [
            ("{", "not JSON"),
            ("[" * 100000, "not JSON"),
            ("[]", "the line is [], not an object"),
            ('{"schema": "spmv/2"}', 'schema is "spmv/2"'),
            ("{}", "schema is null"),
            ('{"schema": "spmv/1", "result": {"gbs": NaN}}', "NaN is not a JSON number"),
            (changed("result", "seconds", "median", value="fast"), 'result.seconds.median is "fast", not a number'),
            (changed("result", "seconds", "median", value=True), "result.seconds.median is true, not a number"),
            (changed("result", "seconds", "median", value=0), "result.seconds.median is 0, not above 0"),
            (changed("result", "seconds", "median", value=10**400), "not a finite number"),
            (changed("result", "seconds", "min", value=1), "the median is not between min and max"),
            (changed("result", "seconds", value=3), "result.seconds is 3, not an object"),
            (changed("result", "plan_seconds", value=-1), "result.plan_seconds is -1, not at least 0"),
            (changed("matrix", "name", value=7), "matrix.name is 7, not text"),
            (changed("peers", value={}), "peers is {}, not an array"),
            (changed("peers", 0, "name", value=""), "peers[0] has no name"),
            (changed("peers", 0, "verify", "passed", value=1), "peers[0].verify.passed is 1, not true or false"),
        ]
        for text, reason in table:
            path = self.file("bad.json", json.dumps(line()) + "\n\n" + text + "\n")
            self.assertIn("bad.json:3:", self.refused(3, reason, path, "-o", self.page))

    def test_not_utf8(self):
        path = self.file("bytes.json", b'\n{"schema": "\xff"}\n')
        self.refused(3, "bytes.json:2: byte 13 is not UTF-8", path, "-o", self.page)

    def test_no_results(self):
        empty = self.file("empty.json", "\n \n")
        self.refused(4, "empty.json has no results", empty, "-o", self.page)
        self.refused(4, "empty.json has no results", "--compare", GPU, empty, "-o", self.page)

    def test_unreadable(self):
        self.refused(
            2, "cannot read " + os.path.join(self.folder, "none"), os.path.join(self.folder, "none"), "-o", self.page
        )
        self.refused(2, "cannot read " + self.folder, self.folder, "-o", self.page)

    def test_usage(self):
        self.refused(1, "-o", GPU)
        self.refused(1, "--compare takes two files", "--compare", GPU, "-o", self.page)
        self.refused(1, "--noise", "--compare", OLD, GPU, "--noise", "-1", "-o", self.page)
        self.refused(1, "--noise", "--compare", OLD, GPU, "--noise", "nan", "-o", self.page)
        self.assertEqual(report("--help").returncode, 0)

    def test_without_matplotlib(self):
        # -S leaves out installed packages, -E where else they could come from
        self.refused(1, "apt-get install python3-matplotlib", GPU, "-o", self.page, options=["-S", "-E"])

    def test_machine_differences(self):
        old, new = ([numbers.read_result(json.dumps(line()), "r")] for _ in range(2))
        self.assertEqual(numbers.machine_differences(old, new), [])
        new[0].bandwidth["read"] = 60.0
        (words,) = numbers.machine_differences(old, new)
        self.assertIn("50.0 GB/s, new 60.0 GB/s", words)
        new = [old[0]._replace(machine="Other CPU (4 threads)")]
        (words,) = numbers.machine_differences(old, new)
        self.assertIn("Example CPU (4 threads); new Other CPU (4 threads)", words)


# ---------------------------------------------------------------------------------------------------- the page


VOID = {"meta", "link", "br", "img", "input", "hr"}


class Parsed(html.parser.HTMLParser):
    """A parsed page: its tags with attributes, its tables as cells, and unclosed tags."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.tags, self.tables, self.styles, self.open, self.faults = [], {}, [], [], []
        self.table = self.cell = None
        self.feed(text)
        self.close()
        self.faults += [f"{tag} is not closed" for tag in self.open]

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)
        if tag == "table":
            self.table = self.tables.setdefault(dict(attrs).get("id"), [])
        elif tag == "tr":
            self.table.append([])
        elif tag in ("td", "th"):
            self.cell = {"text": "", "value": dict(attrs).get("data-v")}
            self.table[-1].append(self.cell)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.faults.append(f"</{tag}> at {self.getpos()}")
        if tag in ("td", "th"):
            self.cell = None

    def handle_data(self, data):
        if self.cell is not None:
            self.cell["text"] += data
        if self.open and self.open[-1] in ("style", "script"):
            self.styles.append(data)

    def rows(self, name):
        """The rows of a table as dicts by column name; of columns of the same name, the first."""
        head, *rows = self.tables[name]
        names = [cell["text"] for cell in head]
        return [{n: row[i] for i, n in reversed(list(enumerate(names)))} for row in rows]


def outside_references(parsed):
    """The references of the page to anything outside of it."""
    found = []
    for tag, attributes in parsed.tags:
        for key, value in attributes.items():
            if key in ("src", "href", "xlink:href", "srcset", "action", "data", "poster") and not (
                value.startswith("#") or value == "data:,"
            ):
                found.append(f"{tag} {key}={value}")
            if key == "style" and re.search(r"url\((?!#)", value):
                found.append(f"{tag} style={value}")
    found += re.findall(r"url\((?!#)[^)]*|@import[^;]*|\bfetch\(|XMLHttpRequest|https?://\S+", " ".join(parsed.styles))
    return found


LONG_NAME = "a-matrix-with-a-very-long-name-as-people-give-to-files-of-their-simulations_run_2024_step_000123"


def odd_results():
    """Twelve matrices. One has a peer that takes 1309 times as long, some have long names, and one
    time is not steady."""
    names = [LONG_NAME, "powerlaw:5600000,10.3,2,1290501"] + [f"matrix-{i}" for i in range(10)]
    results = []
    for kind in ("f64", "f32"):
        for i, name in enumerate(names):
            seconds = 1e-5 * (1 + i % 4)
            peers = [peer("a-peer", seconds * (1309 if i == 5 else 1.25)), peer("a-peer-with-a-name-of-many-words", seconds * 1.5)]
            times = {"median": seconds, "min": seconds / 2, "max": seconds * 1.1, "repeats": 5} if i == 3 else seconds
            results.append(line(name, kind, seconds=times, peers=peers, flushed=around(seconds * 1.5)))
            if i == 5:
                results[-1]["peers"][1]["seconds"] = around(seconds * 2000)
            results[-1]["matrix"].update(rows=16000000, cols=16000000, nnz=1234567890)
            results[-1]["result"].update(plan_seconds=0.123, first_call_seconds=0.0123, gbs=2345.6, method="persistent",
                                         bitwise={"equal": True, "repeats": 10})  # fmt: skip
            results[-1]["verify"] = {"worst_error_over_bound": 0.0512}
            results[-1]["trust"] = {"sentence": "figures cannot be trusted: other processes used 63% of the processors"}
    return results


class Page(Scratch):
    def make(self, *arguments):
        done = report(*arguments, "-o", self.page)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))
        with open(self.page, encoding="utf-8") as page:
            text = page.read()
        parsed = Parsed(text)
        self.assertEqual(parsed.faults, [])
        return text, parsed

    def test_self_contained(self):
        text, parsed = self.make(GPU, CPU, SCAN)
        self.assertEqual(outside_references(parsed), [])
        self.assertNotIn("://", text)
        self.assertEqual([tag for tag, _ in parsed.tags if tag in ("img", "iframe", "object", "embed")], [])
        # what would be found is found
        planted = Parsed(
            '<script src="https://a.b/c.js"></script><style>@import "x.css"; p { background: url(p.png) }</style>'
        )
        self.assertEqual(len(outside_references(planted)), 3)

    def test_identifiers_and_labels(self):
        for arguments in ((GPU, CPU, SCAN), ("--compare", OLD, GPU)):
            _, parsed = self.make(*arguments)
            ids = [attributes["id"] for _, attributes in parsed.tags if "id" in attributes]
            self.assertEqual([name for name, n in collections.Counter(ids).items() if n > 1], [])
            wanted = []
            for _, attributes in parsed.tags:
                wanted += [attributes[k][1:] for k in ("href", "xlink:href") if attributes.get(k, "").startswith("#")]
                wanted += re.findall(r"url\(#([^)]*)\)", " ".join(filter(None, attributes.values())))
                wanted += attributes.get("aria-labelledby", "").split()
            self.assertEqual(set(wanted) - set(ids), set())
            charts = [attributes for tag, attributes in parsed.tags if tag == "svg"]
            self.assertGreater(len(charts), 3)
            for attributes in charts:
                self.assertEqual(attributes["role"], "img")
                self.assertEqual(len(attributes["aria-labelledby"].split()), 2)

    def test_colours_are_the_page_s(self):
        text, parsed = self.make(GPU)
        drawn = " ".join(a.get("style", "") for _, a in parsed.tags)
        self.assertEqual(re.findall(r"#000[12]\d\d", text), [])
        self.assertGreater(drawn.count("var(--ours)"), 20)
        self.assertEqual(set(re.findall(r"(?:fill|stroke): (#\w+)", drawn)), set())
        used = set(re.findall(r"var\(--([\w-]+)\)", text))
        for scheme in re.findall(r":root \{(.*?)\}", text, flags=re.S):
            self.assertEqual(used - set(re.findall(r"--([\w-]+):", scheme)), set())

    def test_each_result_is_in_the_table(self):
        _, parsed = self.make(GPU, CPU, SCAN)
        shown = []
        for name in ("results-g0", "results-g1", "results-g2"):
            shown += [
                (row["matrix"]["text"], row["type"]["text"], float(row["time, \u00b5s"]["value"]))
                for row in parsed.rows(name)
            ]
        expected = []
        for path in (GPU, CPU, SCAN):
            for one in lines_of(path):
                name = (
                    one["matrix"]["name"]
                    if "matrix" in one
                    else "n = 2^%d, inclusive, plus" % math.log2(one["result"]["primitive"]["n"])
                )
                expected.append((name, one["result"]["type"], one["result"]["seconds"]["median"]))
        self.assertEqual(sorted(shown), sorted(expected))
        cached = [row for row in parsed.rows("results-g0") if "cache" in row["note"]["text"]]
        self.assertEqual(len(cached), sum("note" in one["result"] for one in lines_of(GPU)))
        self.assertGreater(len(cached), 0)

    def check_means(self, path, name, asked, ours):
        """Compares each mean and worst case of a group's summary with the sample's own lines."""
        results = lines_of(path)
        peers_of = {}
        for one in results:
            peers_of.setdefault((one["matrix"]["name"], one["result"]["type"]), one["peers"])
        ratios = collections.defaultdict(list)
        for one in results:
            if one["result"]["asked"] != asked:
                continue
            key = (one["matrix"]["name"], one["result"]["type"])
            for state, part in (("warm", "seconds"), ("flushed", "flushed")):
                rivals = {p["name"]: p for p in peers_of[key] if part in p and not p["probe"] and p["verify"]["passed"]}
                mine = one["result"][part]["median"]
                for rival, p in rivals.items():
                    ratios[rival, key[1], state].append((p[part]["median"] / mine, key[0]))
                for words, some in (
                    ("best peer per matrix", list(rivals.values())),
                    ("best repeatable peer per matrix", [p for p in rivals.values() if p["repeatable"]]),
                ):
                    if some:
                        ratios[words, key[1], state].append((min(p[part]["median"] for p in some) / mine, key[0]))
        _, parsed = self.make(path)
        rows = [row for row in parsed.rows(name) if row["ours"]["text"] == ours]
        self.assertEqual(
            sorted((r["against"]["text"], r["type"]["text"], r["caches"]["text"]) for r in rows), sorted(ratios)
        )
        for row in rows:
            found = ratios[row["against"]["text"], row["type"]["text"], row["caches"]["text"]]
            mean = math.prod(r for r, _ in found) ** (1 / len(found))
            self.assertAlmostEqual(float(row["geometric mean"]["value"]), mean, places=12)
            self.assertEqual(float(row["worst"]["value"]), min(found)[0])
            self.assertEqual(row["on"]["text"], min(found)[1])
            self.assertEqual(float(row["greatest"]["value"]), max(found)[0])
            self.assertEqual(int(row["matrices"]["text"]), len(found))
            self.assertEqual(row["geometric mean"]["text"], f"{mean:.2f}\u00d7")
            self.assertEqual(row["faster on"]["text"], f"{sum(r > 1 for r, _ in found)} of {len(found)}")
        return rows

    def test_means_gpu(self):
        rows = self.check_means(GPU, "summary-g0", "auto", "spmv")
        self.assertEqual(len(rows), 2 * 2 * 5)

    def test_means_of_a_second_method(self):
        self.check_means(CPU, "summary-g0", "auto", "spmv")
        rows = self.check_means(CPU, "summary-g0", "rows", "spmv:rows")
        librsb = next(r for r in rows if r["against"]["text"] == "librsb")
        self.assertEqual(librsb["matrices"]["text"], "4")  # its wrong result does not count

    def test_missing_and_failed(self):
        _, parsed = self.make(GPU, CPU)
        rows = {(r["peer"]["text"], r["what"]["text"]): r for r in parsed.rows("table-absent")}
        self.assertEqual(
            sorted(rows),
            [("cub-spmv", "missing"), ("cusparse-coo-alg1", "failed"), ("graphblas", "missing"), ("librsb", "failed")],
        )
        self.assertIn("libgraphblas-dev", rows["graphblas", "missing"]["why"]["text"])
        self.assertIn("circuit5M", rows["cusparse-coo-alg1", "failed"]["on"]["text"])
        self.assertIn("42 times the bound", rows["librsb", "failed"]["why"]["text"])

    def test_runs(self):
        text, parsed = self.make(CPU, SCAN)
        commands = [row["command"]["text"] for row in parsed.rows("table-runs")]
        expected = list(dict.fromkeys(one["tool"]["command"] for path in (CPU, SCAN) for one in lines_of(path)))
        self.assertEqual(commands, expected)
        captions = re.findall(r"<figcaption>(.*?)</figcaption>", text, flags=re.S)
        self.assertEqual([c for c in captions if 'href="#runs"' not in c], [])
        self.assertIn(">run 1</a>", captions[0])
        self.assertIn(">runs 2\u20136</a>", captions[-1])

    def test_compare(self):
        text, parsed = self.make("--compare", OLD, GPU)
        found = {
            (r["matrix"]["text"], r["type"]["text"], r["caches"]["text"]): r["verdict"]["text"]
            for r in parsed.rows("verdicts")
        }
        expected = {}
        old = {(o["matrix"]["name"], o["result"]["type"]): o["result"] for o in lines_of(OLD)}
        for one in lines_of(GPU):
            key = (one["matrix"]["name"], one["result"]["type"])
            for state, part in (("warm", "seconds"), ("flushed", "flushed")):
                if key in old:
                    a, b = old[key][part], one["result"][part]
                    faster = b["max"] < a["min"] and a["median"] > 1.02 * b["median"]
                    slower = b["min"] > a["max"] and b["median"] > 1.02 * a["median"]
                    expected[key + (state,)] = "faster" if faster else "slower" if slower else "same within noise"
        self.assertEqual(found, expected)
        order = [row["verdict"]["text"] for row in parsed.rows("verdicts")]
        self.assertEqual(order, sorted(order, key=["slower", "faster", "same within noise"].index))
        # what the old sample was made to differ in
        self.assertEqual({k[0] for k, v in found.items() if v == "faster"}, {"webbase-1M", "in-2004"})
        self.assertEqual({k[0] for k, v in found.items() if v == "slower"}, {"ldoor"})
        self.assertIn("the intervals [min, max] do not overlap", text)
        self.assertIn("Only in the new file: scircuit f64", text)
        self.assertNotIn("Warning:", text)

    def test_compare_warns_of_another_machine(self):
        moved = lines_of(OLD)
        for one in moved:
            one["machine"]["device"].update(name="Another GPU", read_gbs=2000.0)
        text, _ = self.make("--compare", self.file("moved.json", moved), GPU)
        self.assertIn("Warning: The machines differ: old Another GPU", text)
        self.assertIn("old 2,000.0 GB/s, new 3,104.7 GB/s", text)

    def test_compare_without_anything_in_common(self):
        text, parsed = self.make("--compare", CPU, SCAN)
        self.assertIn("no result in common", text)
        self.assertNotIn("verdicts", parsed.tables)

    def test_profile_sentence(self):
        text, _ = self.make(GPU)
        self.assertIn("over the 12 of 12 matrices that every system was tried on", text)
        self.assertIn("slower than any \u03c4 (1 here)", text)

    def test_hostile_names(self):
        evil = [
            "<script>alert(1)</script>",
            '"><img src=x onerror=alert(2)>',
            "$\\frac{1}{0}$",
            "_hidden",
            "a&amp;b",
            "#000105",
            "]]>-->",
            "\ud800\x00\x1b[31m",
            "\u65e5\u672c\u8a9e",
            "x" * 300,
            "$body ${title}",
            "</title></style></svg>",
        ]
        results = []
        for name in evil:
            one = line(
                name,
                kind=name,
                asked=name,
                note=name,
                peers=[
                    peer(name, 2e-5, library=name, settings=name),
                    {"name": name + "2", "missing": name},
                    {"name": name + "3", "failed": name},
                ],
            )
            one["tool"] = dict.fromkeys(one["tool"], name)
            one["machine"]["cpu"]["name"] = "evil"
            results.append(one)
        results.append(dict(line(evil[0]), machine={"cpu": {"name": evil[0], "threads": 4}}))
        path = self.file("evil.json", "".join(json.dumps(one) + "\n" for one in results))
        for arguments in ((path,), ("--compare", path, path)):
            text, parsed = self.make(*arguments)
            self.assertEqual(sum(tag == "script" for tag, _ in parsed.tags), 1)
            self.assertEqual([tag for tag, a in parsed.tags if tag == "img" or any(k.startswith("on") for k in a)], [])
            self.assertEqual(outside_references(parsed), [])
            names = {row["matrix"]["text"] for row in parsed.rows("results-g0")}
            self.assertEqual(names, set(map(numbers.clean, evil)))
            self.assertEqual(re.findall("[\x00-\x09\x0b-\x1f\x7f]", text), [])
            for name in ("$\\frac{1}{0}$", "_hidden", "a&amp;b"):  # beside the bars, as text, as it stands
                drawn = "<text[^>]*>" + re.escape(html.escape(name, quote=False)) + "</text>"
                self.assertTrue(re.search(drawn, text), f"{arguments}: no {name} in a chart")

    def test_sparse_results(self):
        bare = {"schema": "spmv/1", "result": {"op": "load", "backend": "omp", "seconds": {"median": 0.5}}}
        single = line("only one")
        del single["result"]["model_bytes"]
        text, parsed = self.make(self.file("sparse.json", [bare, single, {"schema": "spmv/1"}]))
        self.assertEqual(sum(len(rows) - 1 for name, rows in parsed.tables.items() if name.startswith("results")), 3)
        self.assertIn("No peer was measured beside these results", text)
        self.assertIn("no time in the results", text)

    def test_roofline_counts_bytes(self):
        # 120 flops and 1000 bytes in 10 us: 0.012 GFLOP/s
        text, _ = self.make(self.file("one.json", [line(peers=[peer("p", 2e-5)])]))
        self.assertIn("<title>A: spmv 0.012 GFLOP/s</title>", text)
        self.assertIn("<title>A: p 0.006 GFLOP/s</title>", text)
        self.assertIn("read 50 GB/s", text)

    def test_many_matrices(self):
        many = [line(f"m{i:03}", seconds=1e-5 * (1 + i / 100), peers=[peer("p", 2e-5)]) for i in range(90)]
        text, parsed = self.make(self.file("many.json", many))
        self.assertEqual(len(parsed.rows("results-g0")), 90)
        self.assertIn("The 30 lowest and the 30 highest ratios of 90; all are in the table.", text)
        for name, drawn in (
            ("m000", True),
            ("m029", True),
            ("m030", False),
            ("m059", False),
            ("m060", True),
            ("m089", True),
        ):
            self.assertEqual(f"<title>{name}: p takes " in text, drawn, name)

    def drawn(self, text, chart):
        """The drawing whose identifiers start with `chart`."""
        start = text.index(f'<svg viewBox', text.index(f'aria-labelledby="{chart}-title') - 200)
        return text[start : text.index("</svg>", start)]

    def test_outliers_are_listed_beside_the_chart(self):
        text, _ = self.make(self.file("odd.json", odd_results()))
        lists = re.findall(r'<div class="outside"><p>Outside of the chart:</p><ul>(.*?)</ul></div>', text)
        self.assertEqual(len(lists), 4)  # times and ratios, of two types; flushed times have no outliers
        self.assertEqual(lists[0].count("<li>"), 2)
        self.assertIn("<li>matrix-3: a-peer 26,180 \u00b5s</li>", lists[0])
        self.assertIn("<li>matrix-3: 1309\u00d7</li>", lists[1])
        self.assertIn("<li>matrix-3: a-peer-with-a-name-of-many-words 2000\u00d7</li>", lists[1])
        # the axis ends near the others: its largest mark is no thousand
        for chart in ("g0-t0-ratio-warm", "g0-t0-time-warm"):
            marks = re.findall(r">([0-9.,]+)</text>", self.drawn(text, chart))
            self.assertTrue(marks)
            self.assertLess(max(float(mark.replace(",", "")) for mark in marks), 100)
        self.assertIn(">1309\u00d7</text>", self.drawn(text, "g0-t0-ratio-warm"))

    def test_values_that_vary_are_no_outliers(self):
        many = [line(f"m{i}", seconds=1e-6 * 2**i, peers=[peer("p", 1.5e-6 * 2**i)]) for i in range(16)]
        text, _ = self.make(self.file("many.json", many))
        self.assertNotIn("Outside of the chart", text)

    def test_names_are_whole(self):
        text, _ = self.make(self.file("odd.json", odd_results()))
        for chart in ("g0-t0-ratio-warm", "g0-t1-time-flushed"):
            drawing = self.drawn(text, chart)
            self.assertNotIn("\u2026", drawing)
            words = "".join(re.findall(r"<text[^>]*>([^<]*)</text>", drawing))
            self.assertIn(LONG_NAME, words)  # its lines, one after the other
            self.assertIn("powerlaw:5600000,10.3,2,1290501", words)
        self.assertIn(">a-peer-with-a-name-of-many-words</text>", self.drawn(text, "g0-t0-ratio-warm"))

    def test_unsteady_times_count_nowhere(self):
        text, parsed = self.make(self.file("odd.json", odd_results()))
        rows = {row["matrix"]["text"]: row for row in parsed.rows("results-g0") if row["type"]["text"] == "f64"}
        self.assertEqual(rows["matrix-1"]["speed-up"]["text"], "(1.25\u00d7)")
        self.assertEqual(rows["matrix-0"]["speed-up"]["text"], "1.25\u00d7")
        summary = {(row["against"]["text"], row["caches"]["text"]): row for row in parsed.rows("summary-g0") if row["type"]["text"] == "f64"}
        found = summary["a-peer", "warm"]
        self.assertEqual((found["matrices"]["text"], found["left out"]["text"]), ("11", "1"))
        self.assertAlmostEqual(float(found["geometric mean"]["value"]), (1.25**10 * 1309) ** (1 / 11), places=6)
        self.assertIn(">(1.25\u00d7)</text>", self.drawn(text, "g0-t0-ratio-warm"))
        self.assertIn("figures cannot be trusted: other processes used 63% of the processors (24 of 24 results", text)

    def test_same_bytes(self):
        first, _ = self.make("--compare", OLD, GPU)
        second, _ = self.make("--compare", OLD, GPU)
        self.assertEqual(first, second)

    def test_unwritable(self):
        self.refused(2, "cannot write", CPU, "-o", os.path.join(self.folder, "none", "page.html"))
        self.refused(2, "cannot write", CPU, "-o", self.folder)
        self.assertEqual(os.listdir(self.folder), [])
        if os.path.exists("/dev/full"):
            self.refused(2, "cannot write /dev/full", CPU, "-o", "/dev/full")

    def test_existing_page_is_replaced_whole(self):
        self.file("page.html", "before")
        link = os.path.join(self.folder, "link.html")
        os.symlink(self.page, link)
        done = report(CPU, "-o", link)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertTrue(os.path.islink(link))
        with open(self.page, encoding="utf-8") as page:
            self.assertTrue(page.read().startswith("<!DOCTYPE html>"))
        self.assertEqual(sorted(os.listdir(self.folder)), ["link.html", "page.html"])
        mask = os.umask(0)
        os.umask(mask)
        self.assertEqual(os.stat(self.page).st_mode & 0o777, 0o666 & ~mask)


# ---------------------------------------------------------------------------------------------------- a browser


def chromium():
    return next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


def png_pixels(path):
    """(width, height, rows of bytes, bytes per pixel) of an 8-bit RGB or RGBA picture."""
    with open(path, "rb") as picture:
        data = picture.read()
    if data[:8] != b"\x89PNG\r\n\x1a\n":
        raise ValueError("no PNG")
    position, packed = 8, b""
    while position < len(data):
        size, kind = struct.unpack(">I4s", data[position : position + 8])
        body = data[position + 8 : position + 8 + size]
        if kind == b"IHDR":
            width, height, depth, colour, _, _, interlace = struct.unpack(">IIBBBBB", body)
        elif kind == b"IDAT":
            packed += body
        position += 12 + size
    if depth != 8 or colour not in (2, 6) or interlace:
        raise ValueError(f"depth {depth}, colour type {colour}, interlace {interlace}")
    step = 3 if colour == 2 else 4
    raw, stride = zlib.decompress(packed), width * step
    rows, above = [], bytearray(stride)
    for y in range(height):
        start = y * (stride + 1)
        method, row = raw[start], bytearray(raw[start + 1 : start + 1 + stride])
        if method == 1:
            for i in range(step, stride):
                row[i] = (row[i] + row[i - step]) & 255
        elif method == 2:
            row = bytearray((a + b) & 255 for a, b in zip(row, above))
        elif method in (3, 4):
            for i in range(stride):
                left = row[i - step] if i >= step else 0
                if method == 3:
                    guess = (left + above[i]) // 2
                else:
                    corner = above[i - step] if i >= step else 0
                    guess = left + above[i] - corner
                    guess = min((left, above[i], corner), key=lambda v, g=guess: abs(g - v))
                row[i] = (row[i] + guess) & 255
        rows.append(bytes(row))
        above = row
    return width, height, rows, step


def colours_of(path):
    """{(red, green, blue): share of the pixels} of a picture."""
    width, height, rows, step = png_pixels(path)
    counts = collections.Counter()
    for row in rows:
        counts.update(zip(row[0::step], row[1::step], row[2::step]))
    return {colour: n / (width * height) for colour, n in counts.items()}


def looks_blank(colours):
    """Whether nearly all pixels have the same colour."""
    return len(colours) < 16 or max(colours.values()) > 0.995


class Browser(Scratch):
    def browse(self, path, *arguments):
        """Opens a page in the browser: its standard output and the lines of the console."""
        command = [
            chromium(),
            "--headless",
            "--disable-gpu",
            "--hide-scrollbars",
            "--no-first-run",
            "--enable-logging=stderr",
            f"--user-data-dir={self.folder}/profile",
            *arguments,
            "file://" + path,
        ]
        if os.geteuid() == 0:
            command.insert(1, "--no-sandbox")
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=100, check=False, cwd=self.folder
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout, [one for one in done.stderr.splitlines() if "CONSOLE" in one]

    def make(self, *arguments):
        done = report(*arguments, "-o", self.page)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def screenshot(self, path, *arguments):
        picture = os.path.join(self.folder, "picture.png")
        self.browse(path, f"--screenshot={picture}", "--window-size=1000,1400", *arguments)
        return colours_of(picture)

    def test_runs_without_complaint(self):
        self.make("--compare", OLD, GPU)
        dom, complaints = self.browse(self.page, "--dump-dom")
        self.assertEqual(complaints, [])
        parsed = Parsed(dom)
        heads = [a for tag, a in parsed.tags if tag == "th" and a.get("scope") == "col"]
        self.assertEqual({a.get("aria-sort") for a in heads}, {"none"})  # the script made every column one that sorts
        self.assertIn("webbase-1M", {row["matrix"]["text"] for row in parsed.rows("verdicts")})
        broken = self.file("broken.html", "<script>undefined_function()</script>")
        self.assertEqual(len(self.browse(broken, "--dump-dom")[1]), 1)

    def test_sorting(self):
        self.make(GPU)
        with open(self.page, encoding="utf-8") as page:
            text = page.read()
        column = [cell["text"] for cell in Parsed(text).tables["results-g0"][0]].index("speed-up")
        click = f"document.querySelectorAll('#results-g0 thead button')[{column}].click();"
        for clicks, sign in ((1, 1), (2, -1)):
            path = self.file("sorted.html", text.replace("</body>", f"<script>{click * clicks}</script></body>"))
            parsed = Parsed(self.browse(path, "--dump-dom")[0])
            values = [float(row["speed-up"]["value"]) for row in parsed.rows("results-g0")]
            self.assertEqual(values, sorted(values, key=lambda v: sign * v))
            self.assertEqual(len(values), 24)

    def test_is_seen_in_light_and_dark(self):
        self.make("--compare", OLD, GPU)
        light = self.screenshot(self.page, "--blink-settings=preferredColorScheme=1")
        dark = self.screenshot(self.page, "--blink-settings=preferredColorScheme=0")
        self.assertFalse(looks_blank(light))
        self.assertFalse(looks_blank(dark))
        self.assertEqual(max(light, key=light.get), (0xFF, 0xFF, 0xFF))
        self.assertEqual(max(dark, key=dark.get), (0x14, 0x17, 0x1B))
        # bars in the colour of ours
        self.assertGreater(light.get((0x00, 0x72, 0xB2), 0), 1e-3)
        self.assertGreater(dark.get((0x56, 0xB4, 0xE9), 0), 1e-3)
        self.assertTrue(looks_blank(self.screenshot(self.file("blank.html", "<!DOCTYPE html><title>nothing</title>"))))

    def evaluate(self, text, width, expression):
        """The value, through JSON, of an expression with `page`, the page shown in a window of the
        given width."""
        frame = f'<iframe style="width:{width}px;height:3000px;border:0" srcdoc="{html.escape(text)}"></iframe>'
        script = (
            'onload = () => { const page = document.querySelector("iframe").contentDocument;'
            f'document.getElementById("value").textContent = JSON.stringify({expression}); }}'
        )
        path = self.file("frame.html", f"<!DOCTYPE html>{frame}<p id=value></p><script>{script}</script>")
        return json.loads(html.unescape(re.search(r'<p id="value">(.*?)</p>', self.browse(path, "--dump-dom")[0]).group(1)))

    def width_on_phone(self, text):
        return self.evaluate(text, 390, "page.documentElement.scrollWidth")

    def test_nothing_is_cut_off_at_1200_pixels(self):
        """Tables have no scroll bar, the text of charts is inside them, and pages have the width of
        the window."""
        self.make(self.file("odd.json", odd_results()), GPU, CPU, SCAN)
        with open(self.page, encoding="utf-8") as page:
            text = page.read().replace("<details>", "<details open>")
        tables = (
            "[...page.querySelectorAll('.scroll')].filter(e => e.scrollWidth > e.clientWidth)"
            ".map(e => `${e.ariaLabel}: ${e.scrollWidth - e.clientWidth} pixels`)"
        )
        self.assertEqual(self.evaluate(text, 1200, tables), [])
        self.assertEqual(self.evaluate(text, 1200, "page.documentElement.scrollWidth"), 1200)
        outside = (
            "[...page.querySelectorAll('svg')].flatMap(svg => { const box = svg.getBoundingClientRect();"
            "return [...svg.querySelectorAll('text')].filter(t => { const b = t.getBoundingClientRect();"
            "return b.left < box.left - 1 || b.right > box.right + 1 || b.top < box.top - 1 ||"
            "b.bottom > box.bottom + 1; }).map(t => t.textContent); })"
        )
        self.assertEqual(self.evaluate(text, 1200, outside), [])
        self.assertGreater(self.evaluate(text, 1200, "page.querySelectorAll('svg text').length"), 100)
        # what would be cut off is found
        wide = '<div class=scroll style="overflow:auto"><p style="width:2000px">x</p></div>'
        self.assertEqual(len(self.evaluate(wide, 1200, tables)), 1)
        narrow = '<svg width="50" height="20"><text y="10">a text that leaves its picture</text></svg>'
        self.assertEqual(len(self.evaluate(narrow, 1200, outside)), 1)

    def test_fits_a_phone(self):
        self.make(GPU, CPU, SCAN)
        with open(self.page, encoding="utf-8") as page:
            self.assertEqual(self.width_on_phone(page.read()), 390)
        self.assertEqual(
            self.width_on_phone('<p style="width:700px;margin:0">wide</p><style>body { margin: 0 }</style>'), 700
        )


if __name__ == "__main__":
    part = sys.argv[2]
    if part != "numbers" and not importlib.util.find_spec("matplotlib"):
        print("skipped: no matplotlib (Debian: python3-matplotlib)")
        sys.exit(SKIPPED)
    if part == "browser" and not chromium():
        print("skipped: no Chromium (Debian: chromium)")
        sys.exit(SKIPPED)
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]], defaultTest=part.capitalize())

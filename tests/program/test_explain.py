#!/usr/bin/env python3
"""Tests spmv explain: its exact output, and the steps of every rung against arrays computed here.

test_explain.py PROGRAM SOURCE_DIR [unittest arguments]. Python's standard library only.

SPDX-License-Identifier: BSD-3-Clause
"""

import itertools
import json
import os
import pty
import random
import re
import struct
import subprocess
import sys
import threading
import unittest
import xml.etree.ElementTree

import test_program
from test_program import run

LECTURE = ["3", "1", "7", "0", "4", "1", "6", "3"]
RUNGS = [
    "sequential",
    "definition",
    "hillis-steele",
    "hillis-steele-double",
    "blelloch-divergent",
    "blelloch",
    "chained",
]

# After the title and the costs, common to all rungs: the arrays of eight cells, three columns wide.
TOP = """\
*: the step changed the cell
{pad}   0   1   2   3   4   5   6   7
in{rest}   3   1   7   0   4   1   6   3
"""
# The steps of a block in the rungs blelloch and chained; pad: blanks before the cells.
BLELLOCH = """\
  load{pad}                     3   1   7   0   4   1   6   3
  reduce, distance 1{pad}       3   4*  7   7*  4   5*  6   9*
  reduce, distance 2{pad}       3   4   7  11*  4   5   6  14*
  reduce, distance 4{pad}       3   4   7  11   4   5   6  25*
  distribute, distance 2{pad}   3   4   7  11   4  16*  6  25
  distribute, distance 1{pad}   3   4  11* 11  15* 16  22* 25
"""
SCANS = {
    "sequential": """\
scan_sequential
  from left to right; the last result  25
out                                     3   4  11  11  15  16  22  25
7 operations, 1 step, 1 launch; a loop does 7 operations
""",
    "definition": """\
scan_definition
  each thread combines the elements up to its own   3   4  11  11  15  16  22  25
  store                                             3   4  11  11  15  16  22  25
out                                                 3   4  11  11  15  16  22  25
28 operations, 2 steps, 1 launch; a loop does 7 operations
""",
    "hillis-steele": """\
scan_blocks (hillis-steele)
  load                              3   1   7   0   4   1   6   3
  read from 1 before                3   1   7   0   4   1   6   3
  add what was read from 1 before   3   4*  8*  7*  4   5*  7*  9*
  read from 2 before                3   4   8   7   4   5   7   9
  add what was read from 2 before   3   4  11* 11* 12* 12* 11* 14*
  read from 4 before                3   4  11  11  12  12  11  14
  add what was read from 4 before   3   4  11  11  15* 16* 22* 25*
  store                             3   4  11  11  15  16  22  25
out                                 3   4  11  11  15  16  22  25
17 operations, 8 steps, 1 launch; a loop does 7 operations
""",
    "hillis-steele-double": """\
scan_blocks (hillis-steele-double)
  load                                   3   1   7   0   4   1   6   3
  from 1 before, into the other buffer   3   4*  8*  7*  4   5*  7*  9*
  from 2 before, into the other buffer   3   4  11* 11* 12* 12* 11* 14*
  from 4 before, into the other buffer   3   4  11  11  15* 16* 22* 25*
  store                                  3   4  11  11  15  16  22  25
out                                      3   4  11  11  15  16  22  25
17 operations, 5 steps, 1 launch; a loop does 7 operations
""",
    "blelloch": "scan_blocks (blelloch)\n" + BLELLOCH.format(pad="") + """\
  store                    3   4  11  11  15  16  22  25
out                        3   4  11  11  15  16  22  25
11 operations, 7 steps, 1 launch; a loop does 7 operations
""",
    "chained": """\
clear_links
  clear the flags
scan_chained
  take a ticket
""" + BLELLOCH.format(pad=25 * " ") + """\
  read the sum before, publish the sum up to here   3   4  11  11  15  16  22  25
  add the sum before, store                         3   4  11  11  15  16  22  25
out                                                 3   4  11  11  15  16  22  25
11 operations, 10 steps, 2 launches; a loop does 7 operations
""",
}
SCANS["blelloch-divergent"] = SCANS["blelloch"].replace("(blelloch)", "(blelloch-divergent)")

EXCLUSIVE = """\
exclusive scan of 3 values (f64) with the operator add, by the rung blelloch
blelloch: work 2 n per level, depth 2 log2 B per level (B: values of a block);
  primitives/scan/scan_2_blelloch.cuh
*: the step changed the cell
                            0     1     2     3
in                        0.5    -1    -2
scan_blocks (blelloch)
  load                    0.5    -1    -2     0
  reduce, distance 1      0.5  -0.5*   -2    -2*
  reduce, distance 2      0.5  -0.5    -2  -2.5*
  clear the root          0.5  -0.5    -2     0*
  swap down, distance 2   0.5     0*   -2  -0.5*
  swap down, distance 1     0*  0.5* -0.5* -2.5*
  store                     0   0.5  -0.5  -2.5
out                         0   0.5  -0.5
cells from 3 on are after the last value: they start as the identity
6 operations, 7 steps, 1 launch; a loop does 2 operations
"""

SEGMENTED = """\
inclusive segmented scan of 8 values (f64) with the operator add, by the rung blelloch
blelloch: work 2 n per level, depth 2 log2 B per level (B: values of a block);
  primitives/scan/scan_2_blelloch.cuh
*: the step changed the cell
|: a segment starts in the cell's range
                            0    1    2    3    4    5    6    7
in                         |3    1    7   |0   |4    1    6    3
head flags                  1    0    0    1    1    0    0    0
scan_blocks (blelloch)
  load                     |3    1    7   |0   |4    1    6    3
  reduce, distance 1       |3   |4*   7   |0   |4   |5*   6    9*
  reduce, distance 2       |3   |4    7   |0   |4   |5    6  |14*
  reduce, distance 4       |3   |4    7   |0   |4   |5    6  |14
  distribute, distance 2   |3   |4    7   |0   |4   |5    6  |14
  distribute, distance 1   |3   |4  |11*  |0   |4   |5  |11* |14
  store                    |3   |4  |11   |0   |4   |5  |11  |14
take_values
  copy the values           3    4   11    0    4    5   11   14
out                        |3    4   11   |0   |4    5   11   14
11 operations, 8 steps, 2 launches; a loop does 5 operations
"""

REDUCE = """\
reduce of 3 values (f64) with the operator add, by the rung tree
tree: work n - 1, depth log2 n; primitives/reduce/reduce_1_tree.cuh
*: the step changed the cell
                       0  1  2
in                     1  2  3
reduce_tree
  neighbours in pairs  3  3
reduce_tree
  neighbours in pairs  6
out                    6
2 operations, 2 steps, 2 launches; a loop does 2 operations
"""

COMPACT = """\
compact of 4 values (f64) by flags, exclusive scan and scatter; the scan by the rung
  hillis-steele-double
hillis-steele-double: work n log2 B - n + n/B, depth log2 B barriers per level (B: values of a
  block); primitives/scan/scan_1_hillis_steele.cuh
*: the step changed the cell
                                        0  1  2  3
in                                      3  1  7  0
flags: greater:2                        1  0  1  0
exclusive scan of the flags
scan_blocks (hillis-steele-double)
  load                                  0  1  0  1
  from 1 before, into the other buffer  0  1  1* 1
  from 2 before, into the other buffer  0  1  1  2*
  store                                 0  1  1  2
places                                  0  1  1  2
scatter: out[places[i]] = in[i] where flags[i] is 1; 2 of 4 kept
out                                     3  7
5 operations, 4 steps, 1 launch; a loop does 3 operations
"""

PRODUCT = """\
y = A x, {path}: 3 x 3, 4 nonzeros, f64; segmented scan by the rung
  hillis-steele-double
hillis-steele-double: work n log2 B - n + n/B, depth log2 B barriers per level (B: values of a
  block); primitives/scan/scan_1_hillis_steele.cuh
*: the step changed the cell; |: a segment starts in the cell's range
                                          0    1    2    3
V, values                                 3    1    2    4
C, columns                                0    2    0    1
R, rows begin at                          0    2    2    4
X, the vector                             1    2    3
G = X[C], gather                          1    3    1    2
P = V G, product                          3    3    2    8
head flags, from R                        1    0    1    0
segmented scan of P
scan_blocks (hillis-steele-double)
  load                                   |3    3   |2    8
  from 1 before, into the other buffer   |3   |6*  |2  |10*
  from 2 before, into the other buffer   |3   |6   |2  |10
  store                                  |3   |6   |2  |10
take_values
  copy the values                         3    6    2   10
S, scanned                               |3    6   |2   10
L, last of each row                       1   -1    3
L = -1: the row is empty, so the filtered gather skips it and y keeps its 0
y = S[L], gather                          6    0   10
5 operations, 5 steps, 2 launches; a loop does 2 operations
"""


EXPAND = """\
expand of 3 whole numbers: element i makes in[i] outputs; the scan by the rung sequential
scatter: work n + total, depth most outputs of an element; primitives/compact/expand_1_scatter.cuh
gather: work n + total log2 n, depth log2 n; primitives/compact/expand_2_gather.cuh
sequential: work n - 1, depth n - 1; primitives/scan/scan_0_definition.cuh
*: the step changed the cell
                                       0  1  2  3  4
in: numbers of outputs                 2  0  3
exclusive scan of the numbers
scan_sequential
  from left to right; the last result  2
offsets                                0  2  2  5
5 outputs: the last offset. scatter: element i writes outputs offsets[i] to offsets[i + 1] - 1
gather: output j finds the last element i with offsets[i] <= j
source: the element                    0  0  2  2  2
rank: j - offsets[source]              0  1  0  1  2
out = in[source]                       2  2  3  3  3
2 operations, 1 step, 1 launch; a loop does 2 operations
"""

GATHER = """\
gather of 4 of 3 values (f64), filtered, by the rung direct
direct: work n, depth 1; primitives/gather/gather_1_direct.cuh
                              0   1   2   3
in                           10  20  30
index                         2  -1   0   2
inside: 0 <= index < values   1   0   1   1
an index outside, such as -1, is skipped: out keeps its value, here 0
kept: greater:15              1   0   0   1
the filter tests in[index]; if it rejects a value, out keeps its value, here 0
out = in[index]              30   0   0  30
"""

SORT = """\
sort of 3 whole numbers by split, bit by bit; the scans by the rung definition
split: work 4 n each bit, depth that of a scan, each bit; primitives/sort/sort_1_split.cuh
definition: work n (n - 1) / 2, depth n - 1; primitives/scan/scan_0_definition.cuh
*: the step changed the cell
                                                   0  1  2
in                                                 7  5  7
bit 1
zeros: the bit is 0                                0  1  0
scan_definition
  each thread combines the elements up to its own  0  0  1
  store                                            0  0  1
before: zeros on the left                          0  0  1
to[i] = before[i] where zeros[i] is 1, else 1 + i - before[i]; 1 of 3 are zeros
to: the new places                                 1  0  2
keys, split                                        5  7  7
out                                                5  7  7
1 of 32 bits split: the others are the same in all keys and move nothing
3 operations, 2 steps, 1 launch
"""

HISTOGRAM = """\
histogram of 5 whole numbers, 3 bins, by the rung atomic
atomic: work n, depth that of the fullest bin; primitives/histogram/histogram_1_atomic.cuh
*: the step changed the cell
                          0   1   2   3   4
in: numbers of bins       2   0   2  -1   2
turn at its bin           1   1   2   0   3
histogram_atomic
  the bins start at 0     0   0   0
  those of turn 1 add 1   1*  0   1*
  those of turn 2 add 1   1   0   2*
  those of turn 3 add 1   1   0   3*
out: counts               1   0   3
1 value is below 0, without a bin: left out
4 operations, 4 steps, 1 launch; a loop does 4 operations
"""

PRIVATE = """\
histogram of 3 whole numbers, 2 bins, by the rung private:2
private: work n + blocks bins, depth that of a block's fullest bin + blocks;
  primitives/histogram/histogram_2_private.cuh
*: the step changed the cell
                               0  1  2
in: numbers of bins            1  1  0
histogram_private, block 0
  own counts of values 0 to 1  0  2
added to the result, one addition per bin
result after block 0           0  2
histogram_private, block 1
  own counts of values 2 to 2  1  0
added to the result, one addition per bin
result after block 1           1  2
out: counts                    1  2
7 operations, 2 steps, 1 launch; a loop does 3 operations
"""

REDUCE_PARTS = """\
reduce of 3 values (f64) with the operator add, by the rung divergent
divergent: work n - 1, depth log2 n; primitives/reduce/reduce_2_block.cuh
*: the step changed the cell
                                                0  1  2
in                                              1  2  3
reduce_divergent
  one element per thread                        1  2  3
  every 2 cells: combine with the one 1 on      3* 2  3
  every 4 cells: combine with the one 2 on      6* 2  3
  the block's result                            6  2  3
out                                             6
6 steps are not shown: the threads combine only identities after the last value; their operations
  are counted
255 operations, 10 steps, 1 launch; a loop does 2 operations
"""


def on_terminal(environment, *arguments):
    """Standard output of the program on a terminal."""
    leader, follower = pty.openpty()
    text = bytearray()

    def read():
        while not text.endswith(b"\0"):
            text.extend(os.read(leader, 4096))

    reader = threading.Thread(target=read)
    reader.start()
    try:
        subprocess.run([test_program.PROGRAM, *arguments], stdout=follower, env=environment, timeout=60, check=False)
    finally:
        os.write(follower, b"\0")  # comes after the output; when a terminal closes, its last lines can be lost
        reader.join()
        os.close(follower)
        os.close(leader)
    return text[:-1].decode().replace("\r\n", "\n")


def segmented(values, heads, exclusive):
    out, total = [], 0
    for i, value in enumerate(values):
        if i in heads:
            total = 0
        out.append(total if exclusive else total + value)
        total += value
    return out


class Explain(test_program.Case):
    def explain(self, *arguments):
        return self.ok("explain", *arguments).stdout

    def json_of(self, *arguments):
        return json.loads(self.explain(*arguments, "--json"))["explain"]

    def check_changed(self, steps):
        """The marked cells are exactly those that differ from the previous step of the same
        block."""
        marks = 0
        for before, step in zip([None] + steps, steps):
            if before is None or step["step"] == 0 or len(before["cells"]) != len(step["cells"]):
                self.assertEqual(step.get("changed", []), [])
                continue
            heads = lambda s, i: i in s.get("heads", [])
            changed = [
                i
                for i in range(len(step["cells"]))
                if before["cells"][i] != step["cells"][i]
                or ("heads" in before and "heads" in step and heads(before, i) != heads(step, i))
            ]
            self.assertEqual(step.get("changed", []), changed, step)
            marks += len(changed)
        return marks


class Pages(Explain):
    def test_scan_by_each_rung(self):
        for rung in RUNGS:
            with self.subTest(rung=rung):
                width = next(line for line in SCANS[rung].split("\n") if line.startswith("out")).index("3") - 3
                top = TOP.format(pad=" " * width, rest=" " * (width - 2))
                title = f"inclusive scan of 8 values (f64) with the operator add, by the rung {rung}"
                first, costs, rest = re.fullmatch(
                    r"(?s)(.*?)\n(.*?\n)(\*.*)", self.explain("--op", "scan", "--rung", rung, *LECTURE)
                ).groups()
                self.assertEqual((first, rest), (title, top + SCANS[rung]))
                self.assertRegex(costs, rf"(?s)^{rung}: work .*, depth .*;\s+primitives/scan/scan_\w+\.cuh\n$")
        self.assertEqual(
            self.explain("--op", "scan", *LECTURE), self.explain("--op", "scan", "--rung", "blelloch", *LECTURE)
        )

    def test_exclusive_padded_fractions_and_negative_values(self):
        self.assertEqual(self.explain("--op", "scan", ".5", "-1", "-2", "--exclusive"), EXCLUSIVE)
        self.assertEqual(self.explain("--exclusive", "--op", "scan", "--", "0.5", "-1.0", "-2e0"), EXCLUSIVE)

    def test_segmented_scan(self):
        self.assertEqual(self.explain("--op", "segscan", "--heads", "0,3,4", *LECTURE), SEGMENTED)
        self.assertEqual(self.explain("--op", "segscan", "--heads", "3,4", *LECTURE), SEGMENTED)
        bars = LECTURE[:3] + ["|", "0", "|"] + LECTURE[4:]
        self.assertEqual(self.explain("--op", "segscan", *bars), SEGMENTED)

    def test_reduce(self):
        self.assertEqual(self.explain("--op", "reduce", "--rung", "tree", "1", "2", "3"), REDUCE)

    def test_compact(self):
        page = self.explain("--op", "compact", "--keep", "greater:2", "--rung", "hillis-steele-double", *LECTURE[:4])
        self.assertEqual(page, COMPACT)

    def test_product(self):
        path = "data/lecture3x3.mtx"
        words = ["explain", path, self.data("lecture3x3_x.txt"), "--rung", "hillis-steele-double"]
        done = run(*words, cwd=test_program.SOURCE)
        self.assertEqual((done.returncode, done.stdout), (0, PRODUCT.format(path=path)))

    def test_a_product_without_empty_rows_has_no_word_about_them(self):
        self.assertNotIn("-1:", self.explain(self.data("symmetric4.mtx")))

    def test_expand(self):
        self.assertEqual(self.explain("--op", "expand", "--rung", "sequential", "2", "0", "3"), EXPAND)

    def test_gather(self):
        words = ["10", "20", "30", "|", "2", "-1", "0", "2"]
        self.assertEqual(self.explain("--op", "gather", "--keep", "greater:15", *words), GATHER)

    def test_sort(self):
        self.assertEqual(self.explain("--op", "sort", "--rung", "definition", "7", "5", "7"), SORT)

    def test_histogram(self):
        self.assertEqual(self.explain("--op", "histogram", "2", "0", "2", "-1", "2"), HISTOGRAM)
        self.assertEqual(self.explain("--op", "histogram", "--rung", "private:2", "1", "1", "0"), PRIVATE)

    def test_steps_that_work_on_nothing_are_not_shown(self):
        self.assertEqual(self.explain("--op", "reduce", "1", "2", "3"), REDUCE_PARTS.replace("   6\n", "   6\n"))
        for rung in ("divergent", "sequential", "chunked", "atomic"):
            for n in (1, 2, 5, 8, 9, 300):
                words = ["--op", "reduce", "--rung", rung, "--size", "300", *["1"] * n]
                steps = self.json_of(*words)["steps"]
                idle = [step for step in steps if "idle" in step]
                for block in {step["block"] for step in steps}:
                    here = min(256, n - 256 * block)
                    # A tree over this many cells, of the 8 levels of a block.
                    levels = sum("idle" not in s and "cells" in s["did"] for s in steps if s["block"] == block)
                    if len({step["launch"] for step in steps}) == 1 and n <= 256:
                        self.assertEqual(levels, (here - 1).bit_length())
                for step in idle:
                    self.assertEqual(step["changed"], [])
                page = self.explain(*words)
                self.assertEqual("not shown" in page, idle != [])

    def test_no_line_exceeds_100_columns(self):
        whole = [str(i * 37 % 32) for i in range(32)]
        broken = [str(1 / (i + 3)) for i in range(32)]
        pages = [["--op", op, "--rung", rung, *broken] for op in ("scan", "segscan") for rung in RUNGS]
        pages += [["--op", "reduce", "--rung", rung, *broken] for rung in ("tree", "divergent", "atomic")]
        pages += [["--op", "compact", "--keep", "greater:0.1", "--rung", rung, *broken] for rung in RUNGS]
        pages += [["--op", op, *whole] for op in ("sort", "histogram")] + [["--op", "expand", *["1"] * 32]]
        pages += [["--op", "gather", *broken, "|", *whole, "--keep", "less:0.2"]]
        pages += [[self.data("symmetric4.mtx"), "--rung", rung] for rung in RUNGS]
        for words in pages:
            page = self.explain(*words)
            self.assertLessEqual(max(map(len, page.split("\n"))), 100, words)
            self.assertEqual([line for line in page.split("\n") if line != line.rstrip()], [], words)

    def test_wrapped_arrays_hold_every_cell(self):
        values = [str(1000 + i) for i in range(32)]
        page = self.explain("--op", "scan", *values).split("\n")
        at = next(i for i, line in enumerate(page) if line.startswith("in "))
        rows = [page[at]] + [line for line in itertools.takewhile(lambda t: "from" in t, page[at + 1 :])]
        self.assertGreater(len(rows), 1)
        self.assertEqual([v for row in rows for v in re.sub(r"^(in|\s+from \d+)\s", "", row).split()], values)
        starts = [int(re.search(r"from (\d+)", row).group(1)) for row in rows[1:]]
        self.assertEqual(starts, list(range(starts[0], 32, starts[0])))

    def test_single_precision_is_written_in_its_own_digits(self):
        page = self.explain("--op", "scan", "--type", "f32", "0.1", "0.2")
        self.assertEqual(page.rstrip("\n").split("\n")[-2].split(), ["out", "0.1", "0.3"])
        page = self.explain("--op", "scan", "0.1", "0.2")
        self.assertEqual(page.rstrip("\n").split("\n")[-2].split(), ["out", "0.1", "0.30000000000000004"])

    def test_bold_on_a_terminal_only(self):
        plain = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "TERM")}
        arguments = ["explain", "--op", "scan", "3", "1"]
        page = self.ok(*arguments).stdout
        self.assertNotIn("\033", page)
        bold = on_terminal(dict(plain, TERM="xterm"), *arguments)
        self.assertIn("\033[1m4*\033[0m", bold)
        self.assertEqual(bold.replace("\033[1m", "").replace("\033[0m", ""), page)
        self.assertEqual(on_terminal(dict(plain, TERM="xterm", NO_COLOR="1"), *arguments), page)
        self.assertEqual(on_terminal(dict(plain, TERM="dumb"), *arguments), page)
        self.assertEqual(on_terminal(plain, *arguments), page)


class Steps(Explain):
    def test_scan_of_every_length_by_every_rung(self):
        rng = random.Random(1)
        for rung in RUNGS + [
            "hillis-steele:2",
            "hillis-steele-double:4",
            "blelloch:2",
            "blelloch-divergent:8",
            "chained:4",
        ]:
            for n in (1, 2, 3, 4, 7, 8, 9, 17, 32):
                for kind in ([], ["--exclusive"]):
                    values = [rng.randrange(-9, 10) for _ in range(n)]
                    got = self.json_of("--op", "scan", "--rung", rung, *kind, *map(str, values))
                    sums = list(itertools.accumulate(values))
                    self.assertEqual(got["out"], ([0] + sums[:-1]) if kind else sums)
                    self.assertEqual((got["in"], got["rung"], got["n"]), (values, rung, n))
                    self.assertEqual(got["kind"], "exclusive" if kind else "inclusive")
                    self.check_changed(got["steps"])
                    self.assertEqual(got["operations"], got["steps"][-1]["operations"])

    def test_marks_and_operations(self):
        got = self.json_of("--op", "scan", *LECTURE)
        # Each operation of this rung changes a cell here.
        self.assertEqual(self.check_changed(got["steps"]), 11)
        self.assertEqual(got["operations"], 11)
        self.assertEqual([s["step"] for s in got["steps"]], list(range(7)))

    def test_segmented_scan_by_every_rung(self):
        rng = random.Random(2)
        for rung in RUNGS + ["hillis-steele:2", "blelloch:4", "chained:2"]:
            for n in (1, 2, 5, 8, 21):
                for kind in ([], ["--exclusive"]):
                    values = [rng.randrange(-9, 10) for _ in range(n)]
                    heads = sorted({0} | {i for i in range(n) if rng.random() < 0.3})
                    got = self.json_of(
                        "--op",
                        "segscan",
                        "--rung",
                        rung,
                        "--heads",
                        ",".join(map(str, heads)),
                        *kind,
                        *map(str, values),
                    )
                    self.assertEqual(got["out"], segmented(values, heads, bool(kind)))
                    self.assertEqual(got["flags"], [int(i in heads) for i in range(n)])
                    self.check_changed(got["steps"])
                    loads = [s for s in got["steps"] if s["did"] == "load" and "heads" in s]
                    if rung == "hillis-steele-double" and not kind:
                        self.assertEqual(loads[0]["heads"], heads)

    def test_operators(self):
        values = [3, 0, 7, 0, 4]
        self.assertEqual(self.json_of("--op", "scan", "--operator", "max", *map(str, values))["out"], [3, 3, 7, 7, 7])
        self.assertEqual(self.json_of("--op", "scan", "--operator", "last", *map(str, values))["out"], [3, 3, 7, 7, 4])
        self.assertEqual(self.json_of("--op", "reduce", "--operator", "mul", "3", "-2", "7")["out"], [-42])
        got = self.json_of("--op", "segscan", "--operator", "last", "3", "0", "|", "0", "5", "0")
        self.assertEqual(got["out"], [3, 3, 0, 5, 5])

    def test_reduce_by_every_rung(self):
        for rung in ("tree", "divergent", "sequential", "chunked", "atomic"):
            for n in (1, 2, 5, 32):
                got = self.json_of("--op", "reduce", "--rung", rung, *map(str, range(1, n + 1)))
                self.assertEqual(got["out"], [n * (n + 1) / 2])
                self.assertEqual(got["rung"], rung)
                if n > 1:  # a tree of one cell has no steps
                    self.assertGreater(len(got["steps"]), 0)

    def test_compact(self):
        rng = random.Random(3)
        tests = {
            "less": lambda a: a < 2,
            "less_equal": lambda a: a <= 2,
            "greater": lambda a: a > 2,
            "greater_equal": lambda a: a >= 2,
            "equal": lambda a: a == 2,
            "not_equal": lambda a: a != 2,
            "nonzero": lambda a: a != 0,
        }
        for name, test in tests.items():
            values = [rng.randrange(-1, 5) for _ in range(20)]
            got = self.json_of("--op", "compact", "--keep", name + ":2", *map(str, values))
            self.assertEqual(got["flags"], [int(test(v)) for v in values])
            self.assertEqual(got["places"], [0] + list(itertools.accumulate(got["flags"]))[:-1])
            self.assertEqual(got["out"], [v for v in values if test(v)])
            self.check_changed(got["steps"])
        self.assertEqual(self.json_of("--op", "compact", "0", "-5", "0", "1")["out"], [-5, 1])
        self.assertEqual(self.json_of("--op", "compact", "0", "0")["out"], [])

    def test_product_is_what_mul_computes(self):
        empty = self.write("empty.mtx", "%%MatrixMarket matrix coordinate real general\n3 2 0\n")
        none = self.write("none.mtx", "%%MatrixMarket matrix coordinate real general\n0 0 0\n")
        names = ["lecture3x3.mtx", "symmetric4.mtx", "skew3.mtx", "pattern5x8.mtx", "array3x2.mtx", "duplicates.mtx"]
        for path in [self.data(name) for name in names] + [empty, none]:
            cols = json.loads(self.ok("info", path, "--json", "-q").stdout)["matrix"]["cols"]
            x = self.vector("x.txt", [float(3 * j - 4) for j in range(cols)])
            for vector in ([], [x]):
                for kind in ("f64", "f32"):
                    for rung in ("auto", "chained:2"):
                        got = self.json_of(path, *vector, "--type", kind, "--rung", rung)
                        y = self.ok("matvec", path, *vector, "--type", kind, "-q").stdout
                        rounded = [
                            struct.unpack("f", struct.pack("f", v))[0] if kind == "f32" else v
                            for v in test_program.numbers(y)
                        ]
                        self.assertEqual(got["y"], rounded, (path, vector, kind, rung))
                        self.assertEqual(len(got["R"]), len(got["y"]) + 1)
                        products = [v * got["X"][c] for v, c in zip(got.get("V", [1] * len(got["C"])), got["C"])]
                        self.assertEqual(got["P"], products)

    def test_4_x_4_matrix(self):
        got = self.json_of(self.data("symmetric4.mtx"))
        self.assertEqual(got["matrix"], {"name": "symmetric4", "rows": 4, "cols": 4, "nnz": 10})
        self.assertEqual(got["V"], [4, -1, -1, 4, -1, -1, 4, -1, -1, 4])
        self.assertEqual(got["C"], [0, 1, 0, 1, 2, 1, 2, 3, 2, 3])
        self.assertEqual(got["R"], [0, 2, 5, 8, 10])
        self.assertEqual(got["flags"], [1, 0, 1, 0, 0, 1, 0, 0, 1, 0])
        self.assertEqual(got["S"], [4, 3, -1, 3, 2, -1, 3, 2, -1, 3])
        self.assertEqual((got["last"], got["y"]), ([1, 4, 7, 9], [3, 2, 2, 3]))
        self.assertEqual(self.ok("matvec", self.data("symmetric4.mtx"), "-q").stdout, "3\n2\n2\n3\n")


class Costs(Explain):
    """Work, depth and source of a rung, compared with the library's table."""

    def costs_of(self, *words):
        costs = self.json_of(*words)["costs"]
        for cost in costs:
            self.assertTrue(os.path.isfile(os.path.join(test_program.SOURCE, cost["source"])), cost)
            self.assertTrue(cost["work"] and cost["depth"])
        return costs

    def assert_source_names(self, rung, source):
        """The source contains the rung in its name, or in quotes in its text if variants share a
        file."""
        with open(os.path.join(test_program.SOURCE, source), encoding="utf-8") as file:
            self.assertTrue(rung.split("-")[0] in os.path.basename(source) or f'"{rung}"' in file.read(), (rung, source))

    def test_every_page_names_rungs_whose_sources_exist(self):
        for rung in RUNGS:
            for op in ("scan", "segscan"):
                (cost,) = self.costs_of("--op", op, "--rung", rung, "1", "2")
                self.assertEqual((cost["primitive"], cost["rung"]), (op, rung))
                self.assert_source_names(rung, cost["source"])
        for rung in ("tree", "divergent", "sequential", "chunked", "atomic"):
            (cost,) = self.costs_of("--op", "reduce", "--rung", rung, "1", "2")
            self.assert_source_names(rung, cost["source"])
        names = lambda *words: [(c["primitive"], c["rung"]) for c in self.costs_of("--op", *words)]
        self.assertEqual(names("compact", "1"), [("scan", "blelloch")])
        self.assertEqual(names("spgemm", "dense:2,3", "dense:3,2"), [("scan", "blelloch")])
        self.assertEqual(names("sort", "1"), [("sort", "split"), ("scan", "blelloch")])
        self.assertEqual(names("expand", "1"), [("expand", "scatter"), ("expand", "gather"), ("scan", "blelloch")])
        self.assertEqual(names("gather", "1", "|", "0"), [("gather", "direct")])
        self.assertEqual(names("histogram", "1"), [("histogram", "atomic")])
        self.assertEqual(names("histogram", "1", "--rung", "private:8"), [("histogram", "private:8")])
        self.assertEqual([c["rung"] for c in self.costs_of(self.data("symmetric4.mtx"))], ["blelloch"])

    def test_the_document_says_the_same(self):
        with open(os.path.join(test_program.SOURCE, "docs", "ladder.md"), encoding="utf-8") as file:
            lines = [line.strip("|\n ").split(" | ") for line in file if line.startswith("| `")]
        table = {line[0].strip("` "): line for line in lines if "scan_" in line[1]}
        for rung in RUNGS:
            (cost,) = self.costs_of("--op", "scan", "--rung", rung, "1")
            name, source, work, depth = table[rung][:4]
            self.assertEqual((cost["work"], cost["depth"]), (work, depth))
            self.assertEqual(cost["source"], "primitives/scan/" + source.strip("`"))


class Moves(Explain):
    """The arrays of expand, gather, sort and histogram, compared with what Python computes."""

    def test_sort(self):
        rng = random.Random(4)
        ends = [-(2**31), 2**31 - 1, 0, -1, 1]
        for values in [[5], [3, 3, 3], ends] + [[rng.randrange(-4, 60) for _ in range(n)] for n in (2, 9, 32)]:
            got = self.json_of("--op", "sort", *map(str, values))
            self.assertEqual(got["out"], sorted(values))
            keys = values
            for one in got["passes"]:
                bit = lambda key: (key >> one["bit"] & 1) ^ (one["bit"] == 31)
                self.assertEqual(one["zeros"], [1 - bit(key) for key in keys])
                self.assertEqual(one["before"], [0] + list(itertools.accumulate(one["zeros"]))[:-1])
                split = [key for key in keys if not bit(key)] + [key for key in keys if bit(key)]
                self.assertEqual([split[to] for to in one["to"]], keys)
                keys = split
                self.assertEqual(one["keys"], keys)
            differ = 0
            for value in values:
                differ |= (value ^ values[0]) & (2**32 - 1)
            self.assertEqual([one["bit"] for one in got["passes"]], [b for b in range(32) if differ >> b & 1])
            self.check_changed(got["steps"])
            if got["steps"]:
                self.assertEqual(got["operations"], got["steps"][-1]["operations"])

    def test_histogram(self):
        rng = random.Random(5)
        for rung in ("atomic", "private", "private:1", "private:3", "private:64"):
            for n in (1, 5, 32):
                values = [rng.randrange(-2, 7) for _ in range(n)]
                got = self.json_of("--op", "histogram", "--rung", rung, *map(str, values))
                self.assertEqual(got["out"], [values.count(b) for b in range(max(max(values), 0) + 1)])
                inside = sum(value >= 0 for value in values)
                if rung == "atomic":
                    self.assertEqual(got["operations"], inside)
                    self.assertEqual(got["turn"], [0 if v < 0 else values[: i + 1].count(v) for i, v in enumerate(values)])
                    self.assertEqual(len(got["steps"]), 1 + max(got["out"]))
                    self.check_changed(got["steps"])
                else:
                    block = int((rung + ":4").split(":")[1])
                    parts = [values[i : i + block] for i in range(0, n, block)]
                    own = [[part.count(b) for b in range(len(got["out"]))] for part in parts]
                    self.assertEqual([step["cells"] for step in got["steps"]], own)
                    self.assertEqual(got["operations"], inside + len(parts) * len(got["out"]))

    def test_expand(self):
        rng = random.Random(6)
        for values in [[0], [0, 0, 0], [4], [0, 2, 0, 0, 1]] + [[rng.randrange(4) for _ in range(n)] for n in (7, 15)]:
            for rung in ("blelloch", "chained:2"):
                got = self.json_of("--op", "expand", "--rung", rung, "--size", "64", *map(str, values))
                self.assertEqual(got["offsets"], [0] + list(itertools.accumulate(values)))
                pairs = [(i, k) for i, value in enumerate(values) for k in range(value)]
                self.assertEqual(list(zip(got["source"], got["rank"])), pairs)
                self.assertEqual(got["out"], [values[i] for i, _ in pairs])

    def test_spgemm(self):
        """The steps of a product of two small matrices of whole numbers, and its sums."""
        for a, b in (("dense:3,4", "dense:4,2"), ("poisson2d:2", "poisson2d:2"), ("diagonal:5", "dense:5,2"),
                     ("empty:6,0.5,1", "dense:6,2")):
            got = self.json_of("--op", "spgemm", "--size", "200", a, b)
            rows_a, rows_b = got["A_row_ptr"], got["B_row_ptr"]
            products = [
                (i, got["B_col"][l], got["A_val"][k] * got["B_val"][l])
                for i in range(len(rows_a) - 1)
                for k in range(rows_a[i], rows_a[i + 1])
                for l in range(rows_b[got["A_col"][k]], rows_b[got["A_col"][k] + 1])
            ]
            self.assertEqual(list(zip(got["row"], got["col"], got["products"])), products)
            order = sorted(range(len(products)), key=lambda p: products[p][:2])
            self.assertEqual(got["order"], order)
            sums = {}
            for p in order:
                i, j, value = products[p]
                sums[i, j] = sums[i, j] + value if (i, j) in sums else value
            self.assertEqual(got["C_col"], [j for _, j in sums])
            self.assertEqual(got["C_val"], list(sums.values()))
            self.assertEqual(got["C_row_ptr"], [sum(i < row for i, _ in sums) for row in range(len(rows_a))])
            self.assertEqual(sum(got["heads"]), len(sums))
        self.fails(1, "explain", "--op", "spgemm", "dense:2,2", says="two matrices")
        self.fails(4, "explain", "--op", "spgemm", "dense:2,3", "dense:2,3", says="columns of A must be the rows of B")
        self.fails(3, "explain", "--op", "spgemm", "dense:5,5", "dense:5,5", says="125 products")
        self.fails(1, "explain", "--op", "spgemm", "dense:2,2", "dense:2,2", "--type", "f32", says="computes in f64")

    def test_gather(self):
        rng = random.Random(7)
        tests = {None: lambda a: True, "less:2": lambda a: a < 2, "nonzero": lambda a: a != 0, "equal:-1": lambda a: a == -1}
        for name, test in tests.items():
            for kind in ("f64", "f32"):
                values = [rng.randrange(-2, 5) for _ in range(11)]
                index = [rng.randrange(-3, 14) for _ in range(23)]
                words = ["--keep", name] if name else []
                got = self.json_of("--op", "gather", "--type", kind, *words, *map(str, values), "|", *map(str, index))
                inside = [0 <= i < len(values) for i in index]
                kept = [ok and test(values[i]) for ok, i in zip(inside, index)]
                self.assertEqual(got["inside"], [int(ok) for ok in inside])
                self.assertEqual(got.get("kept"), [int(ok) for ok in kept] if name else None)
                self.assertEqual(got["out"], [values[i] if ok else 0 for ok, i in zip(kept, index)])


class Json(Explain):
    def test_file_beside_the_page(self):
        path = os.path.join(self.folder, "e.json")
        page = self.explain("--op", "scan", *LECTURE, f"--json={path}")
        self.assertTrue(page.startswith("inclusive scan of 8 values"))
        with open(path, encoding="utf-8") as file:
            whole = json.load(file)
        self.assertEqual((whole["schema"], sorted(whole)), ("spmv/1", ["explain", "schema", "tool"]))
        explain = whole["explain"]
        self.assertEqual(
            explain["steps"][1],
            {
                "launch": "scan_blocks (blelloch)",
                "block": 0,
                "step": 1,
                "did": "reduce, distance 1",
                "operations": 4,
                "cells": [3, 4, 7, 7, 4, 5, 6, 9],
                "changed": [1, 3, 5, 7],
            },
        )
        self.assertEqual((explain["op"], explain["operator"], explain["type"]), ("scan", "add", "f64"))

    def test_what_is_not_finite_is_null(self):
        self.assertEqual(self.json_of("--op", "scan", "1", "inf", "nan")["out"], [1, None, None])

    def test_page_on_standard_output_alone(self):
        self.assertEqual(self.ok("explain", "--op", "scan", "1", "2").stderr, "")
        done = run("explain", "--op", "scan", "1", "2", stdout=subprocess.DEVNULL)
        self.assertEqual(done.returncode, 0)


class Mistakes(Explain):
    def test_values(self):
        for op in ("scan", "segscan", "reduce", "compact"):
            self.fails(1, "explain", "--op", op, says=f"explain --op {op} needs values")
            self.fails(1, "explain", "--op", op, "1", "x", says="x: not a number")
            self.fails(1, "explain", "--op", op, "1", "2 3", says="2 3: not a number")
            self.fails(1, "explain", "--op", op, "1e999", says="no f64 is so large")
            self.fails(3, "explain", "--op", op, *["1"] * 33, says=["33 values", "at most 32", "--size"])
            self.ok("explain", "--op", op, *["1"] * 33, "--size", "33")
        self.fails(1, "explain", "--op", "scan", "1", "|", "2", says="|: not a number")
        self.fails(1, "explain", "--op", "scan", "", says="not a number")

    def test_rungs_and_operations(self):
        for op in ("scan", "segscan"):
            self.fails(1, "explain", "--op", op, "--rung", "zig", "1", says=['"zig"', *RUNGS])
            self.fails(1, "explain", "--op", op, "--rung", "blelloch:3", "1", says="power of two")
        self.fails(1, "explain", "--op", "reduce", "--rung", "zig", "1", says=["zig", "tree", "divergent", "atomic"])
        self.fails(1, "explain", "--op", "compact", "--rung", "zig", "1", says=['"zig"', "blelloch"])
        self.fails(1, "explain", self.data("symmetric4.mtx"), "--rung", "zig", says=['"zig"', "blelloch"])
        self.fails(1, "explain", "--op", "segscan", "--rung", "serial", "1", says="no steps to show")
        self.fails(1, "explain", "--op", "sorted", "1", says=["sorted", "gather, sort, histogram"])
        for op in ("sort", "expand"):
            self.fails(1, "explain", "--op", op, "--rung", "zig", "1", says=['"zig"', "blelloch"])
        self.fails(1, "explain", "--op", "histogram", "--rung", "privates", "1", says="atomic and private")
        for block in ("0", "x", "", "1025"):
            self.fails(1, "explain", "--op", "histogram", "--rung", "private:" + block, "1", says="from 1 to 1024")
        self.fails(1, "explain", "--op", "gather", "--rung", "blelloch", "1", "|", "0", says="rung direct")
        self.fails(1, "explain", "--op", "scan", "--operator", "plus", "1", says="plus")
        self.fails(4, "explain", "--op", "segscan", "--operator", "max", "1", says="add and last")

    def test_whole_numbers(self):
        for op in ("sort", "histogram", "expand"):
            self.fails(1, "explain", "--op", op, says=f"explain --op {op} needs values")
            self.fails(1, "explain", "--op", op, "1", "x", says="x: not a number")
            for word in ("0.5", "2147483648", "nan"):
                self.fails(1, "explain", "--op", op, "1", word, says=f"{word}: a whole number")
            self.fails(3, "explain", "--op", op, *["1"] * 33, says=["33 values", "at most 32"])
            self.fails(3, "explain", "--op", op, *["1"] * 1025, says="1025 values")
            self.fails(1, "explain", "--op", op, "--type", "f32", "1", says="--type is not for")
            self.fails(1, "explain", "--op", op, "--keep", "nonzero", "1", says="--keep is not for")
        self.fails(3, "explain", "--op", "histogram", "32", says="33 bins")
        self.fails(3, "explain", "--op", "expand", "30", "3", says="33 outputs")
        self.fails(1, "explain", "--op", "expand", "3", "-1", says="-1: value i is the number of outputs")

    def test_gather(self):
        for words in ([], ["1", "2"], ["|", "1"], ["1", "|"]):
            self.fails(1, "explain", "--op", "gather", *words, says="needs values, '|' and indices")
        for word in ("x", "1.5", "", "99999999999"):
            self.fails(1, "explain", "--op", "gather", "1", "|", word, says="an index")
        self.fails(1, "explain", "--op", "gather", "x", "|", "1", says="x: not a number")
        self.fails(1, "explain", "--op", "gather", "1", "|", "0", "--keep", "odd", says="odd")
        self.fails(3, "explain", "--op", "gather", "1", "|", *["0"] * 33, says="33 indices")
        self.fails(3, "explain", "--op", "gather", *["1"] * 33, "|", "0", says="33 values")

    def test_segments_and_predicates(self):
        for heads in ("x", "1,", ",1", "1,,2", "1;2", ""):
            self.fails(1, "explain", "--op", "segscan", "--heads", heads, "1", "2", "3", says="separated by commas")
        for heads in ("3", "2,1", "1,1", "-1"):
            self.fails(1, "explain", "--op", "segscan", f"--heads={heads}", "1", "2", "3", says="from 0 to 2")
        self.fails(1, "explain", "--op", "segscan", "--heads", "1", "1", "|", "2", says="not with both")
        self.fails(1, "explain", "--op", "compact", "--keep", "odd", "1", says=["odd", "greater_equal"])
        self.fails(1, "explain", "--op", "compact", "--keep", "less:x", "1", says="x: not a number")

    def test_options_of_others(self):
        self.fails(
            1, "explain", "--op", "reduce", "--exclusive", "1", says="--exclusive is not for explain --op reduce"
        )
        self.fails(1, "explain", "--op", "scan", "--heads", "0", "1", says="--heads is not for")
        self.fails(1, "explain", "--op", "scan", "--keep", "nonzero", "1", says="--keep is not for")
        self.fails(1, "explain", "--operator", "max", self.data("symmetric4.mtx"), says="--operator is not for")
        self.fails(1, "matvec", "--exclusive", self.data("symmetric4.mtx"), says="spmv explain accepts it")
        self.fails(1, "explain", "--op", "scan", "--size", "1025", "1", says="at most 1024")
        self.fails(1, "explain", "--op", "scan", "--backend", "ref", "1", says="--backend is not for explain")
        self.fails(1, "explain", "--op", "scan", "--cache", "1", says="--cache has no effect")
        self.fails(1, self.data("symmetric4.mtx"), "-3", says="unknown option -3")

    def test_matrices(self):
        self.fails(1, "explain", says="needs a matrix")
        self.fails(1, "explain", "a", "b", "c", says="unexpected argument c")
        self.fails(2, "explain", "no-such.mtx", says="no-such.mtx")
        self.fails(3, "explain", self.data("arrow200.mtx"), says=["598 nonzeros", "at most 32"])
        self.fails(3, "explain", "poisson2d:6", "--size", "40", says="nonzeros")
        wide = self.write("wide.mtx", "%%MatrixMarket matrix coordinate real general\n1 99 1\n1 1 1\n")
        self.fails(3, "explain", wide, says="99 columns")
        self.fails(4, "explain", self.data("symmetric4.mtx"), self.vector("x.txt", [1.0]), says="x.txt")
        self.ok("explain", self.data("arrow200.mtx"), "--size", "598")


class Picture(test_program.Case):
    def drawn(self, *words):
        path = os.path.join(self.folder, "p.svg")
        done = self.ok("explain", *words, "-o", path)
        self.assertEqual((done.stdout, done.stderr), ("", ""))
        text = self.read("p.svg")
        os.remove(path)
        xml.etree.ElementTree.fromstring(text)
        self.cells = {float(x) for x in re.findall(r'<text x="(\d+)" y="\d+"[^>]*text-anchor="middle"', text)}
        return text

    def links(self, text, cells):
        """For each row of lines: {(from column, to column)}."""
        rows = []
        for path in re.findall(r'<path [^>]*stroke="rgb\(69,120,171\)"[^>]* d="([^"]*)"', text):
            ends = re.findall(r"M([\d.]+) [\d.]+L([\d.]+) [\d.]+", path)
            xs = sorted(self.cells)[:cells]
            column = lambda x: min(range(cells), key=lambda i: abs(xs[i] - float(x)))
            rows.append({(column(a), column(b)) for a, b in ends})
        return rows

    def test_operands(self):
        """The lines are those of the algorithm."""
        n = 8
        text = self.drawn("--op", "scan", "--rung", "hillis-steele-double", *LECTURE)
        self.assertEqual(self.links(text, n), [{(j, i) for i in range(d, n) for j in (i - d, i)} for d in (1, 2, 4)])
        text = self.drawn("--op", "scan", "--rung", "blelloch", *LECTURE)
        up = [{(j, i) for i in range(2 * d - 1, n, 2 * d) for j in (i - d, i)} for d in (1, 2, 4)]
        down = [{(j, i) for i in range(3 * d - 1, n, 2 * d) for j in (i - d, i)} for d in (2, 1)]
        self.assertEqual(self.links(text, n), up + down)
        text = self.drawn("--op", "scan", "--rung", "definition", *LECTURE)
        self.assertEqual(self.links(text, n), [{(j, i) for i in range(1, n) for j in range(i + 1)}])
        text = self.drawn("--op", "reduce", "--rung", "tree", *LECTURE)
        self.assertEqual(self.links(text, n), [{(j, j // 2) for j in range(k)} for k in (8, 4, 2)])
        text = self.drawn("--op", "scan", "--exclusive", *LECTURE)
        # a cell of zero, the identity, has no lines
        self.assertEqual(self.links(text, n)[-2:], [{(1, 3), (5, 7), (7, 7), (7, 5)},
                                                    {(0, 1), (2, 3), (3, 3), (3, 2), (4, 5), (5, 5), (5, 4), (6, 7), (7, 7), (7, 6)}])  # fmt: skip
        text = self.drawn("--op", "segscan", "--heads", "2,5,6", *LECTURE)
        self.assertEqual(self.links(text, n), [{(0, 1), (1, 1), (2, 3), (3, 3), (6, 7), (7, 7)}, {(3, 4), (4, 4)}])

    def test_what_is_drawn(self):
        text = self.drawn("--op", "scan", *LECTURE)
        for label in ("in", "load", "reduce, distance 4", "out"):
            self.assertIn(f">{label}</text>", text)
        self.assertEqual(text.count('fill="rgb(250,217,153)"'), 4 + 2 + 1 + 1 + 3)
        for words in (["poisson2d:2"], ["--op", "spgemm", "dense:2,2", "dense:2,2"], ["--op", "sort", "3", "1", "2"], ["--op", "scan", "1"],
                      ["--op", "compact", "1", "0"], ["--op", "histogram", "0", "1"], ["--op", "scan", "--rung", "chained:2", *LECTURE]):  # fmt: skip
            self.drawn(*words)

    def test_refused(self):
        self.fails(1, "explain", "--op", "scan", "1", "-o", "p.txt", says="-o p.txt: the name must end in .png or .svg")
        self.fails(2, "explain", "--op", "scan", "1", "-o", "/nowhere/p.svg", says="/nowhere/p.svg")
        path = os.path.join(self.folder, "p.svg")
        self.fails(3, "explain", "--op", "scan", "--size", "99", *["1"] * 65, "-o", path, says="at most 64 values side by side, and here are 128")
        self.assertEqual(os.listdir(self.folder), [])
        done = self.ok("explain", "--op", "scan", "1", "2", "-o", path, "--json")
        self.assertEqual(json.loads(done.stdout)["explain"]["out"], [1, 3])
        self.assertIn("<svg", self.read("p.svg"))


if __name__ == "__main__":
    test_program.PROGRAM, test_program.SOURCE = sys.argv[1:3]
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])

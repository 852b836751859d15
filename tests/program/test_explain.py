#!/usr/bin/env python3
"""spmv explain: what is printed, character by character; the steps of every rung against arrays computed here.

test_explain.py PROGRAM SOURCE_DIR [unittest arguments]. Python's standard library only.

SPDX-License-Identifier: BSD-3-Clause
"""

import itertools
import json
import os
import pty
import random
import struct
import subprocess
import sys
import unittest

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

# Behind the title and the legend, the same for all: the arrays of eight cells, three columns wide.
TOP = """
*: the step changed the cell
{pad}   0   1   2   3   4   5   6   7
in{rest}   3   1   7   0   4   1   6   3
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
  each thread folds all up to its element   3   4  11  11  15  16  22  25
  store                                     3   4  11  11  15  16  22  25
out                                         3   4  11  11  15  16  22  25
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
    "blelloch": """\
scan_blocks (blelloch)
  load                     3   1   7   0   4   1   6   3
  reduce, distance 1       3   4*  7   7*  4   5*  6   9*
  reduce, distance 2       3   4   7  11*  4   5   6  14*
  reduce, distance 4       3   4   7  11   4   5   6  25*
  distribute, distance 2   3   4   7  11   4  16*  6  25
  distribute, distance 1   3   4  11* 11  15* 16  22* 25
  store                    3   4  11  11  15  16  22  25
out                        3   4  11  11  15  16  22  25
11 operations, 7 steps, 1 launch; a loop does 7 operations
""",
    "chained": """\
clear_links
  take the flags down
scan_chained
  take a number
  load                                                   3   1   7   0   4   1   6   3
  reduce, distance 1                                     3   4*  7   7*  4   5*  6   9*
  reduce, distance 2                                     3   4   7  11*  4   5   6  14*
  reduce, distance 4                                     3   4   7  11   4   5   6  25*
  distribute, distance 2                                 3   4   7  11   4  16*  6  25
  distribute, distance 1                                 3   4  11* 11  15* 16  22* 25
  take over the sum before, pass on the sum up to here   3   4  11  11  15  16  22  25
  add what stands before, store                          3   4  11  11  15  16  22  25
out                                                      3   4  11  11  15  16  22  25
11 operations, 10 steps, 2 launches; a loop does 7 operations
""",
}
SCANS["blelloch-divergent"] = SCANS["blelloch"].replace("(blelloch)", "(blelloch-divergent)")

EXCLUSIVE = """\
exclusive scan of 3 values (f64) with the operator add, by the rung blelloch
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
cells from 3 on lie behind the last value: they begin as the identity
6 operations, 7 steps, 1 launch; a loop does 2 operations
"""

SEGMENTED = """\
inclusive segmented scan of 8 values (f64) with the operator add, by the rung blelloch
*: the step changed the cell
|: a segment starts in what the cell stands for
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
  take the values           3    4   11    0    4    5   11   14
out                        |3    4   11   |0   |4    5   11   14
11 operations, 8 steps, 2 launches; a loop does 5 operations
"""

REDUCE = """\
reduce of 3 values (f64) with the operator add, by the rung tree
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
compact of 4 values (f64) by flags, exclusive scan and scatter; the scan by the rung hillis-steele-double
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
y = A x, {path}: 3 x 3, 4 nonzeros, f64; segmented scan by the rung hillis-steele-double
*: the step changed the cell; |: a segment starts in what the cell stands for
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
  take the values                         3    6    2   10
S, scanned                               |3    6   |2   10
L, last of each row                       1   -1    3
y = S[L], gather                          6    0   10
5 operations, 5 steps, 2 launches; a loop does 2 operations
"""


def on_terminal(environment, *arguments):
    """Standard output as a terminal gets it."""
    leader, follower = pty.openpty()
    with subprocess.Popen([test_program.PROGRAM, *arguments], stdout=follower, env=environment) as child:
        os.close(follower)
        text = b""
        while True:
            try:
                part = os.read(leader, 4096)
            except OSError:  # the other end is closed
                break
            if not part:
                break
            text += part
        child.wait(timeout=60)
    os.close(leader)
    return text.decode().replace("\r\n", "\n")


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
        """Every cell that differs from the step before in the same block is marked, and no other."""
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
                self.assertEqual(self.explain("--op", "scan", "--method", rung, *LECTURE), title + top + SCANS[rung])
        self.assertEqual(
            self.explain("--op", "scan", *LECTURE), self.explain("--op", "scan", "--method", "blelloch", *LECTURE)
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
        self.assertEqual(self.explain("--op", "reduce", "--method", "tree", "1", "2", "3"), REDUCE)

    def test_compact(self):
        page = self.explain("--op", "compact", "--keep", "greater:2", "--method", "hillis-steele-double", *LECTURE[:4])
        self.assertEqual(page, COMPACT)

    def test_product(self):
        path = self.data("lecture3x3.mtx")
        page = self.explain(path, self.data("lecture3x3_x.txt"), "--method", "hillis-steele-double")
        self.assertEqual(page, PRODUCT.format(path=path))

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
                    got = self.json_of("--op", "scan", "--method", rung, *kind, *map(str, values))
                    sums = list(itertools.accumulate(values))
                    self.assertEqual(got["out"], ([0] + sums[:-1]) if kind else sums)
                    self.assertEqual((got["in"], got["rung"], got["n"]), (values, rung, n))
                    self.assertEqual(got["kind"], "exclusive" if kind else "inclusive")
                    self.check_changed(got["steps"])
                    self.assertEqual(got["operations"], got["steps"][-1]["operations"])

    def test_marks_and_operations(self):
        got = self.json_of("--op", "scan", *LECTURE)
        self.assertEqual(self.check_changed(got["steps"]), 11)  # each operation of this rung changes a cell here
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
                        "--method",
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
                got = self.json_of("--op", "reduce", "--method", rung, *map(str, range(1, n + 1)))
                self.assertEqual(got["out"], [n * (n + 1) / 2])
                self.assertEqual(got["rung"], rung)
                if n > 1:  # the tree has nothing to do for one
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
                        got = self.json_of(path, *vector, "--type", kind, "--method", rung)
                        y = self.ok("mul", path, *vector, "--type", kind, "-q").stdout
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
        self.assertEqual(self.ok("mul", self.data("symmetric4.mtx"), "-q").stdout, "3\n2\n2\n3\n")


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
            self.fails(1, "explain", "--op", op, "--method", "zig", "1", says=['"zig"', *RUNGS])
            self.fails(1, "explain", "--op", op, "--method", "blelloch:3", "1", says="power of two")
        self.fails(1, "explain", "--op", "reduce", "--method", "zig", "1", says=["zig", "tree", "divergent", "atomic"])
        self.fails(1, "explain", "--op", "compact", "--method", "zig", "1", says=['"zig"', "blelloch"])
        self.fails(1, "explain", self.data("symmetric4.mtx"), "--method", "zig", says=['"zig"', "blelloch"])
        self.fails(1, "explain", "--op", "segscan", "--method", "serial", "1", says="no steps to show")
        self.fails(1, "explain", "--op", "sort", "1", says=["unknown subject sort", "scan, segscan, reduce, compact"])
        self.fails(1, "explain", "--op", "scan", "--operator", "plus", "1", says="plus")
        self.fails(4, "explain", "--op", "segscan", "--operator", "max", "1", says="add and last")

    def test_segments_and_predicates(self):
        for heads in ("x", "1,", ",1", "1,,2", "1;2", ""):
            self.fails(1, "explain", "--op", "segscan", "--heads", heads, "1", "2", "3", says="separated by commas")
        for heads in ("3", "2,1", "1,1", "-1"):
            self.fails(1, "explain", "--op", "segscan", f"--heads={heads}", "1", "2", "3", says="from 0 to 2")
        self.fails(1, "explain", "--op", "segscan", "--heads", "1", "1", "|", "2", says="not by both")
        self.fails(1, "explain", "--op", "compact", "--keep", "odd", "1", says=["odd", "greater_equal"])
        self.fails(1, "explain", "--op", "compact", "--keep", "less:x", "1", says="x: not a number")

    def test_options_of_others(self):
        self.fails(
            1, "explain", "--op", "reduce", "--exclusive", "1", says="--exclusive is not for explain --op reduce"
        )
        self.fails(1, "explain", "--op", "scan", "--heads", "0", "1", says="--heads is not for")
        self.fails(1, "explain", "--op", "scan", "--keep", "nonzero", "1", says="--keep is not for")
        self.fails(1, "explain", "--operator", "max", self.data("symmetric4.mtx"), says="--operator is not for")
        self.fails(1, "mul", "--exclusive", self.data("symmetric4.mtx"), says="spmv explain takes it")
        self.fails(1, "explain", "--op", "scan", "--size", "1025", "1", says="at most 1024")
        self.fails(1, "explain", "--op", "scan", "--backend", "ref", "1", says="--backend is not for explain")
        self.fails(1, "explain", "--op", "scan", "--cache", "1", says="--cache has no effect")
        self.fails(1, self.data("symmetric4.mtx"), "-3", says="unknown option -3")

    def test_matrices(self):
        self.fails(1, "explain", says="needs a matrix")
        self.fails(1, "explain", "a", "b", "c", says="c is one argument too many")
        self.fails(2, "explain", "no-such.mtx", says="no-such.mtx")
        self.fails(3, "explain", self.data("arrow200.mtx"), says=["598 nonzeros", "at most 32"])
        self.fails(3, "explain", "poisson2d:6", "--size", "40", says="nonzeros")
        wide = self.write("wide.mtx", "%%MatrixMarket matrix coordinate real general\n1 99 1\n1 1 1\n")
        self.fails(3, "explain", wide, says="99 columns")
        self.fails(4, "explain", self.data("symmetric4.mtx"), self.vector("x.txt", [1.0]), says="x.txt")
        self.ok("explain", self.data("arrow200.mtx"), "--size", "598")


if __name__ == "__main__":
    test_program.PROGRAM, test_program.SOURCE = sys.argv[1:3]
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])

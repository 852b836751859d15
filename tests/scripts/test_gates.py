#!/usr/bin/env python3
"""Tests how the gates judge listings and figures: they find a planted change and nothing else.
Measures no time and builds nothing.

    test_gates.py SOURCE

SPDX-License-Identifier: BSD-3-Clause
"""
import os
import sys
import unittest

SOURCE = sys.argv.pop(1)
sys.path.insert(0, os.path.join(SOURCE, "scripts", "checks"))
import abi  # noqa: E402
import bits  # noqa: E402
import gates  # noqa: E402
import registers  # noqa: E402
import speed  # noqa: E402


class TestBits(unittest.TestCase):
    old = bits.read_listing(["ref.a 01\n", "ref.b.x 02\n", "ref.c SPMV_ERROR_TYPE\n"])

    def test_same(self):
        self.assertEqual(bits.compare(self.old, dict(self.old)), [])

    def test_differ_appear_vanish(self):
        found = bits.compare(self.old, {"ref.a": "01", "ref.b.x": "03", "ref.d": "04"})
        self.assertEqual([line.split()[:2] for line in found],
                         [["differs", "ref.b.x"], ["vanished", "ref.c"], ["appeared", "ref.d"]])

    def test_expected(self):
        new = dict(self.old, **{"ref.b.x": "03"})
        self.assertEqual(bits.compare(self.old, new, ["ref.b.*"]), [])
        self.assertEqual(bits.compare(self.old, new, ["ref.b.*", "omp.*"]), ["expected, but nothing differs: omp.*"])

    def test_broken_listing(self):
        for lines in (["ref.a 01", "ref.a 01"], ["nothing"]):
            with self.assertRaises(gates.Trouble):
                bits.read_listing(lines)


class TestSpeed(unittest.TestCase):
    def rows(self, *ratios, moved=1e8, group="products"):
        return {(group, str(i)): {"ratios": list(row), "bytes": moved} for i, row in enumerate(ratios)}

    def test_holds(self):
        lines, failed = speed.judge([self.rows([1.0, 0.99, 1.01], [1.0] * 3)] * 2)
        self.assertEqual(failed, [])
        self.assertIn("spread 0.0", lines[0])

    def test_group_mean(self):
        _, failed = speed.judge([{**self.rows([1.0] * 3), **self.rows([0.99] * 3, group="cg")}] * 2)
        self.assertEqual(len(failed), 1)
        self.assertTrue(failed[0].startswith("cg: the mean 0.9900"), failed)

    def test_large_row_in_two_runs(self):
        slow, fine = self.rows([0.96] * 3, [1.1] * 3), self.rows([1.0] * 3, [1.1] * 3)
        self.assertEqual(len(speed.judge([slow, slow])[1]), 1)
        self.assertEqual(speed.judge([slow, fine])[1], [])
        self.assertEqual(speed.judge([self.rows([0.96] * 3, [1.1] * 3, moved=5e7)] * 2)[1], [])

    def test_nothing_measured(self):
        self.assertEqual(speed.judge([{}, {}])[1], ["no figure was measured in both"])

    def test_figures(self):
        text = ('{"result": {"op": "spmv", "method": "tiles", "model_bytes": 9, "plan_seconds": 0.5, "seconds": {"median": 0.25}}}\n'
                '{"result": {"op": "spmv", "error": "none"}}\n')
        self.assertEqual(speed.figures("products", ["A"], text), {("products", "A tiles"): (0.25, 9), ("plans", "A tiles"): (0.5, 9)})
        load = '{"result": {"op": "load", "file_bytes": 7, "seconds": {"median": 2}}}'
        self.assertEqual(speed.figures("reader", ["A"], load), {("reader", "A"): (2, 7)})


class TestRegisters(unittest.TestCase):
    def rows(self, registers_of_scan, stack):
        kernels = registers.parse_dump(registers.DUMP % (registers_of_scan, stack))
        return registers.table(kernels, ["void apply<double>()", "void scan<float>()"])

    def test_changes(self):
        self.assertEqual(registers.compare(self.rows(32, 0), self.rows(32, 0)), ([], 0))
        self.assertEqual(registers.compare(self.rows(32, 0), self.rows(24, 0))[1], 0)
        found, worse = registers.compare(self.rows(32, 0), self.rows(40, 8))
        self.assertEqual((found, worse), (["more      sm_90 void scan<float>()  REG:32->40 STACK:0->8"], 1))

    def test_ptxas(self):
        text = ("ptxas info    : Compiling entry function '_Z5applyIdEvPT_' for 'sm_90'\n"
                "ptxas info    : Function properties for _Z5applyIdEvPT_\n"
                "    8 bytes stack frame, 4 bytes spill stores, 12 bytes spill loads\n"
                "ptxas info    : Used 10 registers, used 1 barriers, 8 bytes cumulative stack size, 64 bytes smem\n")
        self.assertEqual(registers.parse_ptxas(text),
                         [("sm_90", "_Z5applyIdEvPT_", {"REG": 10, "STACK": 8, "SHARED": 64, "LOCAL": 16})])

    def test_appear_vanish(self):
        one = self.rows(32, 0)
        two = {key: one[key] for key in list(one)[:1]}
        self.assertEqual([line.split()[0] for line in registers.compare(one, two)[0]], ["vanished"])
        self.assertEqual([line.split()[0] for line in registers.compare(two, one)[0]], ["appeared"])

    def test_listing_reads_back(self):
        rows = self.rows(32, 4)
        self.assertEqual(registers.rows_of(registers.lines_of(rows)), rows)

    def test_names_of_one_file(self):
        use = {"REG": 1, "STACK": 0, "SHARED": 0, "LOCAL": 0}
        rows = registers.table([("sm_90", "x", use), ("sm_90", "y", dict(use, REG=2))], ["f()", "f()"])
        self.assertEqual(list(rows), ["sm_90 f()", "sm_90 f() #2"])


class TestAbi(unittest.TestCase):
    def test_judge(self):
        self.assertEqual(abi.judge(0, ""), [])
        added = "Functions changes summary: 0 Removed, 1 Changed, 1 Added function\n  type size changed from 64 to 128 (in bits)\n  1 data member insertion:"
        self.assertEqual(abi.judge(4, added), [])
        self.assertEqual(len(abi.judge(4, "Functions changes summary: 1 Removed, 0 Changed, 0 Added function")), 1)
        self.assertEqual(len(abi.judge(4, "  'int a' offset changed from 32 to 64 (in bits) (by +32 bits)")), 1)
        self.assertEqual(len(abi.judge(4, "  type size changed from 128 to 64 (in bits)")), 1)
        self.assertEqual(len(abi.judge(12, "something")), 1)
        with self.assertRaises(gates.Trouble):
            abi.judge(3, "no such file")


if __name__ == "__main__":
    unittest.main()

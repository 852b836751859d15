#!/usr/bin/env python3
"""Tests spmv eigs and spmv svds: values, outputs, statuses, and each complaint.

test_eigs.py PROGRAM SOURCE_DIR [unittest arguments]. Python's standard library only.

SPDX-License-Identifier: BSD-3-Clause
"""

import json
import math
import os
import sys
import unittest

import test_program
from test_program import Matrix, numbers


def plane(n):
    """The eigenvalues of poisson2d:n, ascending."""
    line = [4 * math.sin(j * math.pi / (2 * (n + 1))) ** 2 for j in range(1, n + 1)]
    return sorted(a + b for a in line for b in line)


class Eigs(test_program.Case):
    def near(self, found, known, places=8):
        self.assertEqual(len(found), len(known))
        for a, b in zip(found, known):
            self.assertAlmostEqual(a, b, places)

    def test_values_in_the_order_asked_for(self):
        known = plane(20)
        done = self.ok("eigs", "poisson2d:20", "-k", "7", "--verify=bitwise")
        self.near(numbers(done.stdout), known[:7])
        for words in "lobpcg", "amg", "same bits", "summed again", "error at most":
            self.assertIn(words, done.stderr)
        self.near(numbers(self.ok("eigs", "poisson2d:20", "-k", "5", "--which", "largest").stdout), known[:-6:-1])
        self.near(numbers(self.ok("eigs", "poisson2d:20", "-k", "5", "--which", "magnitude").stdout), known[:-6:-1])
        near = sorted(known, key=lambda v: abs(v - 0.61))[:4]
        self.near(numbers(self.ok("eigs", "poisson2d:20", "-k", "4", "--which", "near:0.61").stdout), near)
        self.near(numbers(self.ok("eigs", "poisson2d:4", "-k", "16").stdout), plane(4))
        self.near(numbers(self.ok("svds", "poisson2d:20", "-k", "3").stdout), known[:-4:-1])

    def test_a_mass_matrix(self):
        mass = self.write("m.mtx", Matrix(400, 400, [(i, i, 2.0) for i in range(400)]).text())
        values = numbers(self.ok("eigs", "poisson2d:20", "-k", "3", "--mass", mass).stdout)
        self.near(values, [v / 2 for v in plane(20)[:3]])

    def test_files(self):
        paths = [os.path.join(self.folder, n) for n in ("h.csv", "p.svg", "v.mtx", "j.json")]
        self.ok("eigs", "poisson2d:20", "-k", "3", "--history", paths[0], "--plot", paths[1], "-o", paths[2],
                f"--json={paths[3]}")  # fmt: skip
        with open(paths[3], encoding="utf-8") as file:
            eigs = json.load(file)["result"]["eigs"]
        self.assertEqual([p["status"] for p in eigs["pairs"]], ["ok"] * 3)
        for pair in eigs["pairs"]:
            self.assertLessEqual(pair["separated_bound"], pair["error_bound"])
            self.assertLessEqual(pair["residual"], pair["tolerance"])
        with open(paths[0], encoding="utf-8") as file:
            lines = file.read().split("\n")
        self.assertEqual(lines[0], "iteration,pair,value,residual")
        self.assertEqual(len(lines), 2 + 3 * (eigs["iterations"] + 1))
        with open(paths[1], encoding="utf-8") as file:
            self.assertIn("<svg", file.read())
        with open(paths[2], encoding="utf-8") as file:
            self.assertIn("400 3", file.read())

    def test_a_limit(self):
        done = test_program.run("eigs", "poisson2d:20", "--max-iterations", "2")
        self.assertEqual(done.returncode, 7)
        self.assertEqual(len(numbers(done.stdout)), 6)
        for words in "6 of 6 pairs", "limit of 2 iterations":
            self.assertIn(words, done.stderr)

    def test_nothing_is_written_without_a_result(self):
        a, target = [(i, i, 2.0) for i in range(30)], os.path.join(self.folder, "x.mtx")
        bad = self.write("nan.mtx", Matrix(30, 30, a[:-1] + [(29, 29, "nan")]).text())
        for command in "eigs", "svds":
            done = test_program.run(command, bad, "-k", "2", "-o", target)
            self.assertEqual((done.returncode != 0, done.stdout, os.path.exists(target)), (True, "", False))
        mass = self.write("m25.mtx", Matrix(25, 25, a[:25] + [(3, 7, 0.5)]).text())
        self.fails(8, "eigs", "poisson2d:5", "-k", "2", "--mass", mass, says=["mass: the matrix is not symmetric"])

    def test_complaints(self):
        self.fails(8, "eigs", "convdiff2d:20,5", says=["not symmetric", "spmv svds"])
        self.fails(8, "eigs", "uniform:30,20,3", says=["30 x 20", "spmv_svds"])
        self.fails(1, "eigs", "poisson2d:3", "-k", "12", says=["12 pairs", "9 rows"])
        self.fails(1, "eigs", "poisson2d:20", "--which", "near:x", says=["near:S"])
        self.fails(1, "eigs", "poisson2d:20", "--which", "biggest", says=["smallest, largest"])
        self.fails(1, "eigs", "poisson2d:20", "--precond", "all", says=["spmv solve"])
        self.fails(1, "svds", "poisson2d:20", "--which", "largest", says=["--which"])
        self.fails(1, "solve", "poisson2d:20", "--mass", "poisson2d:20", says=["--mass"])


if __name__ == "__main__":
    test_program.PROGRAM, test_program.SOURCE = map(os.path.abspath, sys.argv[1:3])
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])

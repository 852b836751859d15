#!/usr/bin/env python3
"""Tests of spmv spgemm: products of small matrices against sums in Python, the triple product,
types, output, JSON, and refused arguments.

test_sparse_products.py PROGRAM [unittest arguments]. Python's standard library only.

SPDX-License-Identifier: BSD-3-Clause
"""

import json
import os
import random
import subprocess
import sys
import tempfile
import unittest

PROGRAM = ""


def run(*arguments):
    return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=120,
                          check=False)


def random_matrix(rows, cols, entries, seed):
    """A dictionary (row, column) -> small integer, so that sums are exact in every type."""
    rng = random.Random(seed)
    return {(rng.randrange(rows), rng.randrange(cols)): rng.randint(-9, 9) for _ in range(entries)}


def text_of(rows, cols, matrix):
    lines = [f"{i + 1} {j + 1} {value}" for (i, j), value in matrix.items()]
    return f"%%MatrixMarket matrix coordinate real general\n{rows} {cols} {len(lines)}\n" + "\n".join(lines) + "\n"


def product(a, b):
    c = {}
    for (i, k), x in a.items():
        for (row, j), y in b.items():
            if row == k:
                c[i, j] = c.get((i, j), 0) + x * y
    return c


def parse(text):
    """Sizes and entries of Matrix Market text; the real parts of complex values."""
    lines = [line for line in text.splitlines() if not line.startswith("%")]
    rows, cols, entries = map(int, lines[0].split())
    matrix = {}
    for line in lines[1:]:
        word = line.split()
        matrix[int(word[0]) - 1, int(word[1]) - 1] = float(word[2]) if len(word) > 2 else 1.0
    assert len(matrix) == entries
    return rows, cols, matrix


class SparseProductsTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = scratch.name
        self.a = random_matrix(40, 30, 200, 1)
        self.b = random_matrix(30, 50, 150, 2)
        self.r = random_matrix(10, 40, 90, 3)
        for name, rows, cols, matrix in (("a", 40, 30, self.a), ("b", 30, 50, self.b), ("r", 10, 40, self.r)):
            with open(self.path(name), "w", encoding="ascii") as f:
                f.write(text_of(rows, cols, matrix))

    def path(self, name):
        return os.path.join(self.folder, name + ".mtx")

    def ok(self, *arguments):
        done = run("spgemm", *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def test_against_python(self):
        expected = (40, 50, product(self.a, self.b))
        for backend, methods in (("ref", ("auto", "rows", "expand")), ("omp", ("auto", "rows", "expand"))):
            for method in methods:
                for kind in ("f64", "f32", "c128", "c64"):
                    done = self.ok(self.path("a"), self.path("b"), "--backend", backend, "--method", method,
                                   "--type", kind)
                    self.assertEqual(parse(done.stdout), expected)
        self.assertIn("A B: 40 x 50", done.stderr)
        self.assertIn("symbolic phase", done.stderr)
        self.assertIn("numeric phase", done.stderr)

    def test_triple(self):
        out = self.path("out")
        done = self.ok("--triple", self.path("r"), self.path("a"), self.path("b"), "-o", out)
        self.assertEqual(done.stdout, "")
        with open(out, encoding="ascii") as f:
            self.assertEqual(parse(f.read()), (10, 50, product(self.r, product(self.a, self.b))))
        self.assertIn("A P: 40 x 50", done.stderr)
        self.assertIn("R (A P): 10 x 50", done.stderr)

    def test_specs_and_binary_output(self):
        out = os.path.join(self.folder, "c.spmv")
        self.ok("poisson2d:9", "poisson2d:9", "-o", out, "--threads", "2")
        text = self.ok("poisson2d:9", "diagonal:81,values=constant", "-q").stdout
        done = run("convert", out, "-")
        square = self.ok("poisson2d:9", "poisson2d:9", "--backend", "ref", "-q")
        self.assertEqual(done.stdout, square.stdout)
        self.assertEqual(square.stderr, "")
        self.assertEqual(parse(text), parse(run("gen", "poisson2d:9").stdout))

    def test_json(self):
        done = self.ok("--json", self.path("a"), self.path("b"), "--backend", "omp", "--max-memory", "2G")
        told = json.loads(done.stdout)
        result = told["result"]
        self.assertEqual([i["matrix"]["rows"] for i in told["inputs"]], [40, 30])
        self.assertEqual((result["op"], result["backend"]), ("multiply", "omp"))
        step = result["products"][0]
        self.assertEqual((step["rows"], step["cols"], step["type"]), (40, 50, "f64"))
        self.assertEqual(step["nnz"], len(product(self.a, self.b)))
        self.assertEqual(step["products"], sum((k == row) for _, k in self.a for row, _ in self.b))
        self.assertGreater(result["symbolic_seconds"], 0)
        self.assertGreater(result["numeric_seconds"], 0)
        done = self.ok("--triple", "--json=" + self.path("told"), self.path("r"), self.path("a"), self.path("b"))
        with open(self.path("told"), encoding="ascii") as f:
            self.assertEqual(len(json.load(f)["result"]["products"]), 2)
        self.assertEqual(parse(done.stdout)[:2], (10, 50))

    def refused(self, code, sentence, *arguments):
        done = run("spgemm", *arguments)
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertIn(sentence, done.stderr)
        self.assertEqual(done.stdout, "")

    def test_refused(self):
        a, b = self.path("a"), self.path("b")
        with open(self.path("z"), "w", encoding="ascii") as f:
            f.write("%%MatrixMarket matrix coordinate complex general\n30 2 1\n1 1 1 2\n")
        self.refused(1, "an argument is missing", a)
        self.refused(1, "--triple needs three", "--triple", a, b)
        self.refused(1, "needs two, A B", a, b, b)
        self.refused(1, "unknown method", a, b, "--method", "tiles")
        self.refused(4, "columns of A must be the rows of B", b, a)
        self.refused(4, "--type c128", a, self.path("z"))
        self.refused(1, "--alpha is not for spgemm", a, b, "--alpha", "2")
        self.refused(2, "none.mtx", a, self.path("none"))
        self.refused(5, "", "arrow:1000000", "arrow:1000000")
        self.refused(5, "--max-memory", "poisson3d:60", "poisson3d:60", "--max-memory", "60M", "--method", "rows")
        self.assertEqual(parse(self.ok(a, self.path("z"), "--type", "c128").stdout)[:2], (40, 2))


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    PROGRAM = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=2)

#!/usr/bin/env python3
"""Kinds of inputs that users of other packages report: one table of input, command and outcome.

An input is solved or multiplied with a known answer, with or without a warning, or refused with a
sentence. Inputs are generated here; answers are computed in exact arithmetic.

test_reports.py PROGRAM SOURCE_DIR [unittest arguments]. Python's standard library only.

SPDX-License-Identifier: BSD-3-Clause
"""

import gzip
import math
import os
import re
import struct
import subprocess
import sys
import tempfile
import unittest
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

PROGRAM = ""
SOURCE = ""
FORMAT, OPEN, SIZE, MEMORY, UNSOLVED, UNSUITED = 3, 2, 4, 5, 7, 8


# ---------------------------------------------------------------- matrices


class Matrix:
    """A matrix of entries {(row, column): value}, from 0, and its Matrix Market text."""

    def __init__(self, rows, cols, entries, symmetry="general", field="real"):
        self.rows, self.cols, self.entries = rows, cols, dict(entries)
        self.symmetry, self.field = symmetry, field

    def text(self):
        stored = [(i, j, v) for (i, j), v in sorted(self.entries.items()) if self.symmetry == "general" or i >= j]
        head = f"%%MatrixMarket matrix coordinate {self.field} {self.symmetry}\n{self.rows} {self.cols} {len(stored)}\n"
        return head + "".join(f"{i + 1} {j + 1} {number(v)}\n" for i, j, v in stored)

    def times(self, x):
        """A x, exact."""
        y = [Fraction(0)] * self.rows
        for (i, j), v in self.entries.items():
            y[i] += Fraction(v) * Fraction(x[j])
        return y


def number(v):
    return f"{v.real!r} {v.imag!r}" if isinstance(v, complex) else repr(v)


def vector(values):
    return "".join(number(float(v)) + "\n" for v in values)


def dense(rows, symmetry="general", field="real"):
    """Of rows of numbers; None is not stored."""
    return Matrix(len(rows), len(rows[0]), {(i, j): v for i, row in enumerate(rows) for j, v in enumerate(row)
                                            if v is not None}, symmetry, field)


def diagonal(values):
    return Matrix(len(values), len(values), {(i, i): v for i, v in enumerate(values)})


def tridiagonal(n, lower, middle, upper):
    entries = {(i, i): middle for i in range(n)}
    entries.update({(i + 1, i): lower for i in range(n - 1)})
    entries.update({(i, i + 1): upper for i in range(n - 1)})
    return Matrix(n, n, entries)


def grid_edges(n):
    return [(i * n + j, i * n + j + step) for i in range(n) for j in range(n)
            for step, inside in ((1, j < n - 1), (n, i < n - 1)) if inside]


def path_edges(n):
    return [(i, i + 1) for i in range(n - 1)]


def laplacian(rows, edges, symmetry="symmetric", scale=1.0, weights=None):
    """Of a graph: singular, every row sums to 0."""
    entries = {(i, i): 0.0 for i in range(rows)}
    for k, (u, v) in enumerate(edges):
        w = scale * (weights[k] if weights else 1.0)
        entries[u, u] += w
        entries[v, v] += w
        entries[u, v] = entries[v, u] = -w
    return Matrix(rows, rows, entries, symmetry)


def poisson(n, shift=0.0, scale=1.0):
    entries = {(i, i): scale * (4.0 - shift) for i in range(n * n)}
    for u, v in grid_edges(n):
        entries[u, v] = entries[v, u] = -scale
    return Matrix(n * n, n * n, entries, "symmetric")


def penalty(n, p):
    """A Laplacian on a grid of (n + 2)^2 nodes with the values u = x on its boundary, set by a large
    diagonal. The solution is u = x."""
    m = n + 2
    entries, b, x = {}, [0.0] * (m * m), [(k % m) / (m - 1) for k in range(m * m)]
    for u, v in grid_edges(m):
        entries[u, v] = entries[v, u] = -1.0
        for k in u, v:
            entries[k, k] = entries.get((k, k), 0.0) + 1.0
    for k in range(m * m):
        if k // m in (0, m - 1) or k % m in (0, m - 1):
            entries[k, k] += p
            b[k] = p * x[k]
    return Matrix(m * m, m * m, entries, "symmetric"), b, x


def convection(n, speed):
    """Upwind differences: not symmetric."""
    entries = {}
    for i in range(n * n):
        entries[i, i] = 4.0 + speed
    for u, v in grid_edges(n):
        entries[v, u] = -1.0 - (speed if v == u + 1 else 0.0)
        entries[u, v] = -1.0
    return Matrix(n * n, n * n, entries)


def saddle(n):
    """[K B'; B 0] with K a Laplacian and B of full rank: symmetric and indefinite."""
    k = poisson(n)
    m = n * n
    entries = dict(k.entries)
    for r in range(n):
        for c in range(n):
            entries[m + r, r * n + c] = entries[r * n + c, m + r] = 1.0 + (c == r)
    return Matrix(m + n, m + n, entries, "symmetric")


def hilbert(n):
    return dense([[1.0 / (i + j + 1) for j in range(n)] for i in range(n)], "symmetric")


def ramp(n):
    return [1.0 + (i * 7 % 11) / 8 for i in range(n)]


def sides(n, mismatch):
    return [1.0] + [0.0] * (n - 2) + [-1.0 + mismatch]


def source(n):
    return [1.0] + [0.0] * (n - 1)


# ---------------------------------------------------------------- rows of the table

ROWS = []


def row(name, kind, **what):
    ROWS.append((name, kind, what))


def solved(name, a, x=None, b=None, bound=1e-6, *options, warns=None):
    """a: a Matrix or the text of one; b: default A x. The largest error of x is at most the bound times
    the largest |x|."""
    if b is None:
        b = a.times(x)
    row(name, "solve", a=a, x=x, b=b, bound=bound, options=options, warns=warns)


def honest(name, a, x, b=None, bound=1e-6, *options):
    """A system at the limits of its type: solved as above, or not solved, with a sentence."""
    row(name, "honest", a=a, x=x, b=b if b is not None else a.times(x), bound=bound, options=options)


def balanced(name, a, b, bound=1e-8, *options):
    """A singular system: any x with ||b - A x|| <= bound ||b|| is right."""
    row(name, "residual", a=a, b=b, bound=bound, options=options)


def unsolvable(name, a, b, least, says, *options):
    """No x solves it. The x that is written has the least possible residual, up to 10 %, and the last
    line of the failure has its true residual."""
    row(name, "least", a=a, b=b, least=least, says=says, options=options)


def multiplied(name, a, y, x=None, warns=None):
    """a: text or bytes; y: A x, exact."""
    row(name, "spgemm", a=a, x=x, y=y, warns=warns)


def solved_complex(name, a, x, b, *options):
    """a, b: texts; x: complex numbers."""
    row(name, "complex", a=a, x=x, b=b, options=options)


def refused(name, code, says, a, b=None, options=(), ending="mtx", command="solve", x0=None):
    row(name, "refuse", a=a, b=b, code=code, says=says, options=options, ending=ending, command=command, x0=x0)


GENERAL = "%%MatrixMarket matrix coordinate real general\n"
SYMMETRIC = "%%MatrixMarket matrix coordinate real symmetric\n"
INTEGER = "%%MatrixMarket matrix coordinate integer general\n"
PATTERN = "%%MatrixMarket matrix coordinate pattern general\n"
ARRAY = "%%MatrixMarket matrix array real general\n"
TWO = GENERAL + "2 2 3\n1 1 3\n2 1 7\n2 2 5\n"  # times ones: 3, 12


def table_of_files():
    # fields and symmetries
    multiplied("field double", TWO.replace("real", "double"), [3, 12], warns='field "double" is read as real')
    multiplied("field unsigned-integer, as SciPy writes", TWO.replace("real", "unsigned-integer"), [3, 12],
               warns='field "unsigned-integer" is read as integer')
    multiplied("field integer", TWO.replace("real", "integer"), [3, 12])
    multiplied("pattern", PATTERN + "2 2 3\n1 1\n2 1\n2 2\n", [1, 2])
    multiplied("pattern symmetric", PATTERN.replace("general", "symmetric") + "2 2 2\n1 1\n2 1\n", [2, 1])
    multiplied("skew-symmetric", GENERAL.replace("general", "skew-symmetric") + "2 2 1\n2 1 3\n", [-3, 3])
    multiplied("hermitian that is real", GENERAL.replace("general", "hermitian") + "2 2 2\n1 1 1\n2 1 3\n", [4, 3],
               warns="hermitian matrix that is not complex")
    multiplied("upper triangle of a symmetric file", SYMMETRIC + "2 2 2\n1 1 1\n1 2 3\n", [4, 3])
    multiplied("both triangles of a symmetric file", SYMMETRIC + "2 2 3\n1 1 1\n1 2 3\n2 1 3\n", [7, 6],
               warns="repeats? the position of another")
    multiplied("array", ARRAY + "2 2\n1\n2\n3\n4\n", [4, 6])
    multiplied("array written by rows", ARRAY + "2 2\n1 2\n3 4\n", [4, 6], warns="column by column")
    multiplied("symmetric array", ARRAY.replace("general", "symmetric") + "2 2\n1\n2\n3\n", [3, 5])
    # numbers
    multiplied("Fortran exponents without a letter", GENERAL + "2 2 2\n1 1 0.5771964-104\n2 2 0.1000000+003\n",
               [Fraction("0.5771964e-104"), 100])
    multiplied("Fortran exponents with D", GENERAL + "2 2 2\n1 1 1.5D+03\n2 2 1.5d3\n", [1500, 1500])
    multiplied("integers beyond 2^53", INTEGER + "1 1 1\n1 1 9007199254740993\n", [9007199254740992],
               warns="integer was rounded")
    multiplied("integers of 64 bits", INTEGER.replace("integer", "unsigned-integer") + "1 1 1\n1 1 18446744073709551615\n",
               [18446744073709551616], warns="integer was rounded")
    multiplied("denormal numbers", GENERAL + "1 1 1\n1 1 4.9e-324\n", [Fraction(5e-324)])
    multiplied("numbers near the largest", GENERAL + "1 1 1\n1 1 1.7976931348623157e308\n", [Fraction(1.7976931348623157e308)])
    multiplied("numbers below the smallest become 0", GENERAL + "1 1 1\n1 1 1e-400\n", [0])
    refused("numbers above the largest", FORMAT, "4:5: \"1e309\" is too large for f64", GENERAL + "1 1 1\n\n1 1 1e309\n")
    refused("decimal commas", FORMAT, '"1,5" is not a number; numbers have a decimal point', GENERAL + "1 1 1\n1 1 1,5\n")
    refused("a float in an integer file", FORMAT, '"1.5" is not an integer', INTEGER + "1 1 1\n1 1 1.5\n")
    refused("hexadecimal numbers", FORMAT, '"0x10" is not a number', GENERAL + "1 1 1\n1 1 0x10\n")
    # lines
    multiplied("CR LF", TWO.replace("\n", "\r\n"), [3, 12])
    multiplied("tabs", TWO.replace(" ", "\t").replace("%%MatrixMarket\tm", "%%MatrixMarket m"), [3, 12])
    multiplied("no end of the last line", TWO[:-1], [3, 12])
    multiplied("blank lines and comments between entries", TWO.replace("\n2", "\n\n % a comment\n2"), [3, 12])
    multiplied("banner in capitals", TWO.replace("%%MatrixMarket matrix", "%%MATRIXMARKET MATRIX"), [3, 12])
    multiplied("a byte order mark", "\ufeff" + TWO, [3, 12], warns="byte order mark")
    multiplied("one percent sign", TWO[1:], [3, 12], warns="one percent sign")
    multiplied("gzip without the ending", gzip.compress(TWO.encode()), [3, 12])
    refused("a comment behind an entry", FORMAT, 'extra text "%"', TWO.replace("1 1 3", "1 1 3 % three"))
    refused("lines that end with CR alone", FORMAT, "1:46: a carriage return alone does not end a line; .*tr ", TWO.replace("\n", "\r"))
    refused("two values in an entry", FORMAT, 'extra text "0"', TWO.replace("1 1 3", "1 1 3 0"))
    # indices and counts
    multiplied("explicit zeros", GENERAL + "2 2 4\n1 1 3\n1 2 0\n2 1 0\n2 2 5\n", [3, 5])
    multiplied("duplicate entries are added", GENERAL + "2 2 4\n1 1 1\n1 1 2\n2 2 5\n2 2 -1\n", [3, 4])
    multiplied("unsorted entries", GENERAL + "2 3 4\n2 3 1\n1 2 4\n2 1 8\n1 1 2\n", [6, 9])
    multiplied("an empty row and an empty column", GENERAL + "3 3 2\n1 1 3\n3 1 5\n", [3, 0, 5])
    multiplied("no entries", GENERAL + "2 2 0\n", [0, 0])
    multiplied("more columns than rows", GENERAL + "1 4 2\n1 1 3\n1 4 5\n", [8])
    refused("indices from 0", FORMAT, "row 0: rows and columns count from 1", TWO.replace("1 1 3", "0 0 3"))
    refused("rows and columns exchanged", FORMAT, "row 3 exceeds the 2 rows", GENERAL + "2 3 1\n3 1 4\n")
    refused("negative indices", FORMAT, 'row "-1" is negative', TWO.replace("1 1 3", "-1 1 3"))
    refused("indices with a point", FORMAT, 'row "1.0" is not an integer', TWO.replace("1 1 3", "1.0 1 3"))
    refused("truncated", FORMAT, "the file ends after 2 of the 3 entries", TWO.replace("2 1 7", "2 1 7.000000000")[:-6])
    refused("more entries than declared", FORMAT, "more entries than the 2 declared", TWO.replace("2 2 3\n", "2 2 2\n"))
    refused("a count that the file cannot hold", FORMAT, "cannot hold more than", TWO.replace("2 2 3\n", "2 2 1000000000\n"))
    refused("sizes beyond 63 bits", FORMAT, "does not fit in 63 bits", TWO.replace("2 2 3\n", "9999999999999999999 2 3\n"))
    refused("columns beyond 31 bits", FORMAT, "at most 2147483647", TWO.replace("2 2 3\n", "2 4294967296 3\n"))
    refused("sizes beyond the memory", MEMORY, "of memory", GENERAL + "900000000000000 2 1\n1 1 1\n", command="info")
    refused("no size line", FORMAT, "the size line is missing", GENERAL)
    refused("a skew-symmetric array with its diagonal", FORMAT, "a skew-symmetric array has no diagonal",
            ARRAY.replace("general", "skew-symmetric") + "3 3\n0\n2\n-1\n0\n5\n0\n")
    refused("a symmetric array with both triangles", FORMAT, "it has only the lower triangle",
            ARRAY.replace("general", "symmetric") + "2 2\n1\n2\n2\n3\n")
    refused("a nonzero diagonal of a skew-symmetric file", FORMAT, "the diagonal of a skew-symmetric matrix is 0",
            GENERAL.replace("general", "skew-symmetric") + "2 2 2\n2 2 1\n2 1 3\n")
    refused("symmetric and not square", FORMAT, "a symmetric matrix must be square", SYMMETRIC + "2 3 1\n2 1 3\n")


def table_of_other_files():
    looks = "1:1: this looks like "
    refused("a zip archive without arrays", FORMAT, "without arrays of NumPy", b"PK\5\6" + bytes(18), ending="zip")
    refused("a NumPy array cut short", FORMAT, "cut short", b"\x93NUMPY\1\0v\0{'descr': '<f8'}\n", ending="npy")
    refused("an empty MATLAB file", FORMAT, "without matrices or vectors", b"MATLAB 5.0 MAT-file".ljust(124) + b"\0\1IM", ending="mat")
    refused("PETSc's binary form cut short", FORMAT, "byte 4: 2 rows with 9 entries", struct.pack(">5i", 1211216, 2, 2, 9, 0))
    refused("a MATLAB 4 file", FORMAT, looks + "a MATLAB file of version 4.*-v7", struct.pack("<5i", 0, 2, 1, 0, 2) + b"x\0" + bytes(16))
    refused("a web page", FORMAT, looks + "a web page", "<!doctype html>\n<html></html>\n")
    refused("a pointer of Git LFS", FORMAT, looks + "a pointer of Git LFS.*git lfs pull",
            "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 3\n")
    refused("a table with commas", FORMAT, looks + "a table .*numpy.loadtxt", "1,0,2\n0,3,0\n2,0,5\n", ending="csv")
    refused("JSON", FORMAT, looks + "a JSON file", '{"rows": 2}\n')
    refused("UTF-16", FORMAT, looks + "text in UTF-16; .*iconv", TWO.encode("utf-16"))
    refused("triplets without a banner", FORMAT, "bad banner: line 1 must read", "2 2 3\n1 1 3\n2 1 7\n2 2 5\n")
    refused("an empty file", FORMAT, "the file is empty", "")
    refused("a gzip file cut short", FORMAT, "it is truncated", gzip.compress(TWO.encode())[:-9])
    refused("a matrix of PETSc as b", FORMAT, "not a vector", TWO, struct.pack(">7id", 1211216, 2, 2, 1, 1, 0, 0, 1.0))


def table_of_systems():
    solved("1 x 1", diagonal([4.0]), [0.5])
    solved("a diagonal", diagonal([1.0, -2.0, 4.0]), [1.0, 2.0, 3.0])
    solved("the identity", diagonal([1.0] * 9), ramp(9))
    solved("explicit zeros and duplicates", GENERAL + "2 2 5\n1 1 1\n1 1 2\n1 2 0\n2 1 7\n2 2 5\n", [1, 1], [3, 12])
    solved("empty upper triangle", tridiagonal(50, -1.0, 2.0, 0.0), ramp(50))
    solved("a permutation", Matrix(4, 4, {(0, 1): 1.0, (1, 2): 1.0, (2, 3): 1.0, (3, 0): 1.0}), [1, 2, 3, 4])
    solved("a skew-symmetric system", dense([[0.0, -1.0], [1.0, 0.0]]), [1, 2])
    solved("zero diagonal, symmetric", dense([[0.0, 1.0], [1.0, 0.0]], "symmetric"), [1, 2])
    solved("tiny pivots", dense([[1e-20, 1.0], [1.0, 1.0]]), [1, 1])
    solved("Laplacian of a grid", poisson(15), ramp(225))
    solved("negative definite", poisson(15, scale=-1.0), ramp(225))
    solved("negative definite, by cg of -A", poisson(12, scale=-1.0), ramp(144), None, 1e-6, "--max-iterations", "100")
    solved("indefinite (Helmholtz)", poisson(12, shift=1.3), ramp(144), None, 1e-5)
    solved("indefinite, near an eigenvalue", poisson(10, shift=3.9), ramp(100), None, 1e-4)
    solved("saddle point", saddle(6), ramp(42), None, 1e-5)
    solved("convection", convection(12, 10.0), ramp(144))
    solved("convection dominates", convection(12, 1e4), ramp(144))
    solved("not normal", tridiagonal(60, 0.0, 1.0, 3.0), [1.0] * 60, None, 1e-4)
    solved("rows of very different size", Matrix(3, 3, {(0, 0): 1e150, (0, 1): 1e149, (1, 1): 1.0, (2, 2): 1e-150,
                                                      (2, 0): 1e-151}), [1, 2, 3])
    solved("all entries tiny", poisson(8, scale=2.0 ** -900), ramp(64))
    solved("all entries huge", poisson(8, scale=2.0 ** 900), ramp(64))
    honest("entries that are denormal", poisson(6, scale=2.0 ** -1060), [2.0 ** 40 * v for v in ramp(36)])
    solved("b is tiny", poisson(8), [2.0 ** -1000 * v for v in ramp(64)])
    solved("b is huge", poisson(8), [2.0 ** 1000 * v for v in ramp(64)])
    solved("b near the largest number", diagonal([1.0, 2.0]), None, [1.7e308, 1.7e308])
    solved("b near the largest number, a Laplacian", poisson(8), [4e307] * 64)
    solved("b is 0", poisson(8), [0.0] * 64)
    solved("diagonal from 1e-12 to 1e12", diagonal([10.0 ** (k - 12) for k in range(25)]), [1.0] * 25)
    solved("a Hilbert matrix", hilbert(5), [1.0] * 5)
    honest("a Hilbert matrix, condition number 1e16", hilbert(12), [1.0] * 12, None, 1e3)
    solved("a symmetric matrix in a general file", Matrix(4, 4, tridiagonal(4, -1.0, 2.0, -1.0).entries), [1, 2, 3, 4])
    solved("b as one row", poisson(3), ramp(9), [ARRAY + "1 9\n"] + poisson(3).times(ramp(9)))
    solved("b with Fortran exponents", diagonal([1.0, 2.0]), [15, 100], "0.15+002\n0.2D+03\n")
    solved("f32", poisson(8), ramp(64), None, 1e-2, "--type", "f32")
    two = "%%MatrixMarket matrix coordinate complex {0}\n2 2 3\n1 1 2 0\n2 1 0 1\n2 2 2 0\n"
    solved_complex("complex symmetric", two.format("symmetric"), [1, 1], "2 1\n2 1\n")
    solved_complex("hermitian", two.format("hermitian"), [1, 1], "2 -1\n2 1\n")
    # boundary values set by a large diagonal
    for p in (1e8, 1e12, 1e20, 1e39):
        solved(f"a penalty of {p:g} in 2 rows", dense([[p, -1.0], [-1.0, 2.0]], "symmetric"), [1, 0.5], [p, 0])
    for n, p in ((12, 1e8), (12, 1e12), (12, 1e20), (40, 1e12), (40, 1e20)):
        a, b, x = penalty(n, p)
        solved(f"a penalty of {p:g} on a grid of {n}", a, x, b, 1e-5)
    # singular, with a solution: the tolerance is 1.41e-8, the least residual mismatch / n
    for n, mismatch in ((7, 0.0), (8, 1e-8), (15, 1e-8), (20, 1e-8), (20, 1e-7), (60, 1e-7), (100, 1e-6)):
        balanced(f"Neumann, grid of {n}, mismatch {mismatch:g}", laplacian(n * n, grid_edges(n)), sides(n * n, mismatch))
    for n in 8, 15, 20:
        balanced(f"Neumann, grid of {n}, minres with amg", laplacian(n * n, grid_edges(n)), sides(n * n, 1e-7), 1e-8,
                 "--solver", "minres", "--precond", "amg")
    balanced("Neumann, path of 100", laplacian(100, path_edges(100)), sides(100, 0.0))
    balanced("Neumann, general file", laplacian(100, grid_edges(10), "general"), sides(100, 0.0))
    balanced("a graph of two parts", laplacian(8, [(0, 1), (1, 2), (4, 5), (5, 6), (6, 7), (2, 3)]),
             [1.0, 0, 0, -1.0, 2.0, 0, 0, -2.0])
    balanced("a graph with an isolated vertex", laplacian(6, path_edges(5)), [1.0, 0, 0, 0, -1.0, 0])
    for p in "jacobi", "ic0", "amg":
        balanced(f"a graph with an isolated vertex, {p}", laplacian(26, [(u, v) for u, v in grid_edges(5)]),
                 sides(25, 0.0) + [0.0], 1e-8, "--precond", p)
    balanced("the zero matrix, b is 0", GENERAL + "2 2 0\n", [0.0, 0.0])
    balanced("rank 1, consistent", dense([[1.0, 2.0], [2.0, 4.0]], "symmetric"), [1.0, 2.0])
    # singular, without a solution
    unsolvable("Neumann, point source, grid of 7", laplacian(49, grid_edges(7)), source(49), 1 / 7,
               "singular.*every row sums to 0")
    unsolvable("Neumann, point source, path of 100", laplacian(100, path_edges(100)), source(100), 0.1,
               "singular.*every row sums to 0")
    unsolvable("explicit zeros, rank 2", Matrix(3, 3, {(0, 0): 1.0, (0, 1): 2.0, (0, 2): 0.0, (1, 0): 2.0, (1, 1): 4.0,
                                                     (1, 2): 0.0, (2, 0): 0.0, (2, 1): 0.0, (2, 2): 1.0}),
               [1.0, 1.0, 1.0], math.sqrt(0.2), "singular")
    unsolvable("rank 1, inconsistent", dense([[1.0, 1.0], [1.0, 1.0]], "symmetric"), [1.0, 3.0], math.sqrt(2), "singular")
    unsolvable("an empty row", Matrix(3, 3, {(0, 0): 2.0, (2, 2): 4.0}), [1.0, 1.0, 1.0], 1.0, "singular|row 2")
    unsolvable("the zero matrix", Matrix(2, 2, {}), [1.0, 1.0], math.sqrt(2), "singular|row 1")


def table_of_least_squares():
    wide = Matrix(2, 3, {(0, 0): 1.0, (1, 1): 1.0, (1, 2): 1.0})
    solved("wide: the smallest norm", wide, [2.0, 1.5, 1.5], [2.0, 3.0])
    tall = Matrix(3, 2, {(0, 0): 1.0, (1, 1): 1.0, (2, 1): 1.0})
    solved("tall: the mean of two", tall, [4.0, 2.0], [4.0, 1.0, 3.0])
    solved("a column without entries", Matrix(3, 2, {(0, 0): 1.0, (2, 0): 2.0}), [2.0, 0.0], [2.0, 7.0, 4.0])
    solved("columns that are equal", dense([[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]]), [2.0, 2.0], [4.0, 8.0, 12.0])


def table_of_refused_systems():
    refused("wide, cg", UNSUITED, "square", Matrix(2, 3, {(0, 0): 1.0, (1, 1): 1.0, (1, 2): 1.0}), options=("--solver", "cg"))
    refused("tall, gmres", UNSUITED, "square", Matrix(3, 2, {(0, 0): 1.0, (1, 1): 1.0, (2, 1): 1.0}),
            options=("--solver", "gmres"))
    refused("b as long as a wide A", SIZE, r"3\b.*\b2\b|2\b.*\b3\b", Matrix(2, 3, {(0, 0): 1.0, (1, 1): 1.0}), [1.0, 2.0, 3.0])
    refused("b too short", SIZE, r"3\b.*\b2\b|2\b.*\b3\b", diagonal([1.0, 2.0, 3.0]), [1.0, 2.0])
    refused("b too long", SIZE, r"3\b.*\b4\b|4\b.*\b3\b", diagonal([1.0, 2.0, 3.0]), [1.0, 2.0, 3.0, 4.0])
    refused("b with text", FORMAT, '2:1: "two" is not a number', diagonal([1.0, 2.0]), "1\ntwo\n")
    nan = float("nan")
    refused("NaN in b", None, r"(?i)\bb has (a )?nan\b", diagonal([1.0, 2.0, 3.0]), [1.0, nan, 1.0])
    refused("infinity in b", None, r"(?i)\bb has (an )?inf", diagonal([1.0, 2.0, 3.0]), [1.0, float("inf"), 1.0])
    refused("NaN in A", None, r"(?i)row 2, column 2 is (a )?nan|A has (a )?nan in row 2, column 2", poisson_with(4, (1, 1), nan), [1.0] * 16)
    refused("infinity in A", None, r"(?i)row 2, column 2 is inf|A has inf in row 2, column 2", poisson_with(4, (1, 1), float("inf")), [1.0] * 16)
    refused("NaN in the start", None, r"(?i)start x has (a )?nan", diagonal([1.0, 2.0]), [1.0, 2.0], x0=[nan, 1.0])
    refused("a start of another length", SIZE, r"3\b.*\b2\b|2\b.*\b3\b", diagonal([1.0, 2.0]), [1.0, 2.0], x0=[1.0] * 3)
    refused("cg of a complex symmetric matrix", UNSUITED, "not Hermitian", "%%MatrixMarket matrix coordinate complex "
            "symmetric\n2 2 3\n1 1 2 0\n2 1 0 1\n2 2 2 0\n", options=["--solver", "cg"])
    refused("complex values as f64", SIZE, "complex", GENERAL.replace("real", "complex") + "1 1 1\n1 1 1 2\n",
            options=["--type", "f64"])
    refused("an unknown solver", 1, "bicg", diagonal([1.0]), options=["--solver", "bicg"])
    refused("cg of an unsymmetric matrix", UNSUITED, "symmetric", dense([[2.0, 1.0], [0.0, 2.0]]),
            options=["--solver", "cg"])
    refused("cg of an indefinite matrix", UNSUITED, "positive", dense([[1.0, 2.0], [2.0, 1.0]], "symmetric"),
            options=["--solver", "cg", "--precond", "none"])
    refused("too few iterations", UNSOLVED, "after 2 iterations", poisson(30), options=["--max-iterations", "2"])
    refused("a tolerance below rounding", UNSOLVED, "rounding errors", poisson(30), options=["--rtol", "1e-19"])


def poisson_with(n, place, value):
    a = poisson(n)
    a.entries[place] = value
    return a


table_of_files()
table_of_other_files()
table_of_systems()
table_of_least_squares()
table_of_refused_systems()

# ---------------------------------------------------------------- running


class Outcome(Exception):
    """What is wrong with a row."""


def expect(condition, *what):
    if not condition:
        raise Outcome("\n".join(str(w) for w in what))


class Folder:
    """A row's inputs and outputs."""

    def __init__(self, path):
        self.path = path

    def put(self, name, content):
        path = os.path.join(self.path, name)
        if isinstance(content, Matrix):
            content = content.text()
        elif isinstance(content, list):
            content = "".join(v if isinstance(v, str) else vector([v]) for v in content)
        with open(path, "wb") as file:
            file.write(content if isinstance(content, bytes) else content.encode("utf-8"))
        return path

    def run(self, *arguments):
        done = subprocess.run([PROGRAM, *arguments, "--threads", "1"], stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, timeout=100, check=False)
        return done.returncode, " ".join(done.stderr.replace("\nspmv:  ", " ").split()), done.stderr

    def answer(self):
        try:
            with open(os.path.join(self.path, "x.txt"), encoding="ascii") as file:
                return [float(line) for line in file]
        except FileNotFoundError:
            return None

    def system(self, a, b, options):
        paths = [self.put("a.mtx", a)] + ([self.put("b.txt", b)] if b is not None else [])
        out = os.path.join(self.path, "x.txt")
        return self.run("solve", *paths, *options, "-o", out)


def norm(v):
    scale = max((abs(x) for x in v), default=0) or 1
    return float(scale) * math.sqrt(sum(float(Fraction(x) / Fraction(scale)) ** 2 for x in v))


def residual(a, x, b):
    return norm([Fraction(p) - q for p, q in zip(b, a.times(x))])


def check_warnings(warns, said):
    if warns is None:
        expect("warning" not in said, "a warning", said)
    else:
        expect(re.search("warning: .*" + warns, said), f"no warning {warns}", said)


def check_solve(folder, a, x, b, bound, options, warns):
    code, said, _ = folder.system(a, b, options)
    expect(code == 0, f"exit status {code}", said)
    got = folder.answer()
    if x is None:
        x = [Fraction(v) / Fraction(a.entries[i, i]) for i, v in enumerate(b)]
    expect(len(got) == len(x) and all(math.isfinite(v) for v in got), f"x: {got[:5]}", said)
    error, largest = max(abs(Fraction(p) - Fraction(q)) for p, q in zip(got, x)), max(abs(Fraction(v)) for v in x)
    expect(error <= Fraction(bound) * largest, f"an error of {float(error / (largest or 1)):g} of the largest", said)
    check_warnings(warns, said)


def check_honest(folder, a, x, b, bound, options):
    code, said, _ = folder.system(a, b, options)
    expect(code in (0, UNSOLVED, UNSUITED) and "warning" not in said, f"exit status {code}", said)
    got = folder.answer()
    expect(code != 0 or max(abs(Fraction(p) - Fraction(q)) for p, q in zip(got, x))
           <= Fraction(bound) * max(abs(Fraction(v)) for v in x), f"success with x: {got}", said)


def check_residual(folder, a, b, bound, options):
    code, said, _ = folder.system(a, b, options)
    expect(code == 0, f"exit status {code}", said)
    got = folder.answer()
    expect(all(math.isfinite(v) for v in got), f"x: {got[:5]}", said)
    matrix = a if isinstance(a, Matrix) else Matrix(len(b), len(b), {})
    reached = residual(matrix, got, b)
    expect(reached <= 1.001 * bound * norm(b), f"a residual of {reached:g}", said)


def check_least(folder, a, b, least, says, options):
    code, said, lines = folder.system(a, b, options)
    expect(code in (UNSOLVED, UNSUITED), f"exit status {code}", said)
    expect(re.search(says, said), f"it does not say {says}", said)
    got = folder.answer()
    if code == UNSUITED:
        return  # refused before a solver started: no x
    expect(got is not None and all(math.isfinite(v) for v in got), f"x: {got and got[:5]}", said)
    reached = residual(a, got, b)
    expect(reached <= 1.1 * least, f"a residual of {reached:g}; the least is {least:g}", said)
    told = [float(t) for t in re.findall(r"residual (?:is |of )?([0-9.]+(?:e[-+]?[0-9]+)?)", said)]
    expect(not told or abs(told[-1] - reached) <= 0.1 * reached, f"it says {told[-1:]}, the residual is {reached:g}", lines)


def check_multiply(folder, a, x, y, warns):
    out = os.path.join(folder.path, "x.txt")
    vectors = [folder.put("b.txt", x)] if x is not None else []
    code, said, _ = folder.run("matvec", folder.put("a.mtx", a), *vectors, "-o", out)
    expect(code == 0, f"exit status {code}", said)
    got = folder.answer()
    expect([Fraction(v) for v in got] == [Fraction(float(v)) for v in y], f"y: {got}", said)
    check_warnings(warns, said)


def check_complex(folder, a, x, b, options):
    code, said, _ = folder.system(a, b, options)
    expect(code == 0, f"exit status {code}", said)
    with open(os.path.join(folder.path, "x.txt"), encoding="ascii") as file:
        got = [complex(*map(float, line.split())) for line in file]
    expect(len(got) == len(x) and all(abs(p - q) <= 1e-6 for p, q in zip(got, x)), f"x: {got}", said)


def check_refuse(folder, a, b, code, says, options, ending, command, x0):
    paths = [folder.put("a." + ending, a)] + ([folder.put("b.txt", b)] if b is not None else [])
    if x0 is not None:
        options = [*options, "--x0", folder.put("x0.txt", x0)]
    got, said, _ = folder.run(command, *paths, *options)
    expect(got != 0 and got == (code if code is not None else got), f"exit status {got}", said)
    expect(re.search(says, said), f"it does not say {says}", said)


CHECKS = {"solve": check_solve, "honest": check_honest, "complex": check_complex, "residual": check_residual, "least": check_least, "spgemm": check_multiply,
          "refuse": check_refuse}


def judge(k):
    """None, or what is wrong with row k."""
    name, kind, what = ROWS[k]
    with tempfile.TemporaryDirectory() as path:
        try:
            CHECKS[kind](Folder(path), **what)
        except Outcome as wrong:
            return f"{name}: {wrong}"
    return None


class Reports(unittest.TestCase):
    maxDiff = None

    def test_names_are_unique(self):
        names = [name for name, _, _ in ROWS]
        self.assertEqual([name for name in names if names.count(name) > 1], [])

    def test_every_row(self):
        with ThreadPoolExecutor(2) as pool:
            wrong = [answer for answer in pool.map(judge, range(len(ROWS))) if answer is not None]
        if wrong:
            self.fail(f"{len(wrong)} of {len(ROWS)} rows:\n\n" + "\n\n".join(wrong))


def main():
    global PROGRAM, SOURCE
    PROGRAM, SOURCE = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])


if __name__ == "__main__":
    main()

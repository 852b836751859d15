#!/usr/bin/env python3
"""Tests the program spmv: results, streams, options, JSON, exit codes, the man page.

test_program.py PROGRAM SOURCE_DIR [unittest arguments]. Python's standard library only. The values
of the matrices are multiples of 1/8, so every product is exact in f32 and f64 and is compared
without a tolerance.

SPDX-License-Identifier: BSD-3-Clause
"""

import itertools
import json
import math
import os
import pathlib
import random
import re
import resource
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest

PROGRAM = SOURCE = ""
# A shell starts its background jobs with SIGINT ignored, and programs started from here inherit that.
for number in signal.SIGINT, signal.SIGTERM, signal.SIGHUP:
    if signal.getsignal(number) == signal.SIG_IGN:
        signal.signal(number, signal.SIG_DFL)

COMMANDS = ["matvec", "spgemm", "solve", "eigs", "svds", "bench", "info", "explain", "exercise", "gen", "convert", "spy", "doctor", "help"]


def read_terminal(leader):
    """All that is written to a terminal; closes the leader."""
    text = b""
    try:
        while chunk := os.read(leader, 65536):
            text += chunk
    except OSError:  # on Linux: the other end of the terminal is closed
        pass
    os.close(leader)
    return text


def suppress_fontconfig(folder):
    """Suppresses the leak sanitizer's report of a kilobyte that fontconfig, used by Cairo, never
    frees."""
    path = os.path.join(folder, "suppressions")
    with open(path, "w", encoding="utf-8") as file:
        file.write("leak:libfontconfig\n")
    given = os.environ.get("LSAN_OPTIONS")
    os.environ["LSAN_OPTIONS"] = (given + ":" if given else "") + f"suppressions={path}:print_suppressions=0"


def is_sanitized(program):
    """Whether the program has the address sanitizer, which needs terabytes of address space, and
    whose own memory counts as memory of the program. So does that of an emulator (scripts/checks/aarch64.sh)."""
    if "QEMU_LD_PREFIX" in os.environ:
        return True
    done = subprocess.run([program, "--version"], stdin=subprocess.DEVNULL, capture_output=True, check=False,
                          preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30)))
    return done.returncode != 0


def is_aarch64(program):
    """Whether the file is a program for this processor; it may run under an emulator."""
    with open(program, "rb") as file:
        return file.read(20)[18:] == b"\xb7\x00"


def run(*arguments, stdin=None, cwd=None, env=None, **more):
    """Runs the program; standard output and standard error are text."""
    environment = dict(os.environ, **(env or {}))
    done = subprocess.run(
        [PROGRAM, *arguments],
        input=stdin,
        stdin=subprocess.DEVNULL if stdin is None else None,
        stdout=more.pop("stdout", subprocess.PIPE),
        stderr=more.pop("stderr", subprocess.PIPE),
        text=True,
        errors="surrogateescape",
        cwd=cwd,
        env=environment,
        timeout=120,
        check=False,
        **more,
    )
    return done


def limit_files(size):
    """Limits the size of files, as a substitute for a full disk. Python ignores SIGXFSZ, and the
    program inherits that."""
    limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
    return {"preexec_fn": limit, "restore_signals": False}


def numbers(text):
    return [float(line) for line in text.split("\n")[:-1]]


def eighths(rng):
    return rng.choice([k for k in range(-40, 41) if k != 0]) / 8


class Matrix:
    """Entries (i, j, value) in the order of the file; repeated positions add up."""

    def __init__(self, rows, cols, entries):
        self.rows, self.cols, self.entries = rows, cols, entries

    @staticmethod
    def random(rows, cols, count, seed):
        rng = random.Random(seed)
        return Matrix(
            rows, cols, [(rng.randrange(rows), rng.randrange(cols), eighths(rng)) for _ in range(count)]
        )

    def text(self):
        lines = ["%%MatrixMarket matrix coordinate real general", f"{self.rows} {self.cols} {len(self.entries)}"]
        lines += [f"{i + 1} {j + 1} {v!r}" for i, j, v in self.entries]
        return "\n".join(lines) + "\n"

    def times(self, x, transpose=False):
        y = [0.0] * (self.cols if transpose else self.rows)
        for i, j, v in self.entries:
            if transpose:
                y[j] += v * x[i]
            else:
                y[i] += v * x[j]
        return y


def poisson2d(n):
    """Row sums of the 5-point Laplacian: 4 minus the number of neighbours."""
    return [
        4.0 - sum(0 <= i + di < n and 0 <= j + dj < n for di, dj in [(0, 1), (1, 0), (0, -1), (-1, 0)])
        for i in range(n)
        for j in range(n)
    ]


class Case(unittest.TestCase):
    backends = []

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="spmv-program-")
        self.addCleanup(shutil.rmtree, self.folder)

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def read(self, name):
        with open(os.path.join(self.folder, name), encoding="utf-8") as file:
            return file.read()

    def make_matrix(self, seed):
        """Makes a random 8 x 5 matrix and its file; returns a generator for vectors."""
        self.a = Matrix.random(8, 5, 25, seed=seed + 1)
        self.path = self.write("a.mtx", self.a.text())
        return random.Random(seed)

    def vector(self, name, values):
        return self.write(name, "".join(f"{v!r}\n" for v in values))

    def ok(self, *arguments, **more):
        done = run(*arguments, **more)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def fails(self, code, *arguments, says=(), **more):
        """Checks that a run fails with this exit code, no output, and a message that contains all
        of `says`."""
        done = run(*arguments, **more)
        self.assertEqual(done.returncode, code, f"{arguments}: {done.stderr}")
        for words in [says] if isinstance(says, str) else says:
            self.assertIn(words, done.stderr)
        self.assertTrue(done.stderr.startswith("spmv: "), done.stderr)
        if done.stdout is not None:
            self.assertEqual(done.stdout, "")
        return done

    def data(self, name):
        return os.path.join(SOURCE, "data", name)

    def usable_backends(self):
        """[(backend, its methods)] of all usable backends, as listed by doctor."""
        if not Case.backends:
            doctor = json.loads(self.ok("doctor", "--json", "-q").stdout)["doctor"]
            Case.backends = [(b["name"], b["methods"]) for b in doctor["backends"] if b["usable"]]
        return Case.backends


class MainJob(Case):
    def test_lecture_example(self):
        done = self.ok(self.data("lecture3x3.mtx"), self.data("lecture3x3_x.txt"))
        self.assertEqual(done.stdout, "6\n0\n10\n")

    def test_x_is_ones_when_absent(self):
        a = Matrix.random(9, 6, 30, seed=1)
        path = self.write("a.mtx", a.text())
        self.assertEqual(numbers(self.ok(path).stdout), a.times([1.0] * 6))

    def test_standard_input_holds_matrix_or_vector(self):
        a, x = Matrix.random(5, 4, 12, seed=2), [1.0, 2.5, -3.0, 0.125]
        expected = a.times(x)
        matrix, vector = self.write("a.mtx", a.text()), self.vector("x.txt", x)
        self.assertEqual(numbers(self.ok("-", vector, stdin=a.text()).stdout), expected)
        self.assertEqual(numbers(self.ok(matrix, "-", stdin=self.read("x.txt")).stdout), expected)
        self.fails(1, "-", "-", says="once")

    def test_spec(self):
        self.assertEqual(numbers(self.ok("poisson2d:7").stdout), poisson2d(7))
        self.assertEqual(len(numbers(self.ok("poisson3d:4").stdout)), 64)

    def test_existing_file_wins_over_spec_and_command_needs_folder(self):
        self.write("poisson2d:2", "%%MatrixMarket matrix array real general\n1 1\n7\n")
        self.assertEqual(self.ok("poisson2d:2", cwd=self.folder).stdout, "7\n")
        shutil.copy(os.path.join(self.folder, "poisson2d:2"), os.path.join(self.folder, "matvec"))
        self.assertEqual(self.ok("./matvec", cwd=self.folder).stdout, "7\n")
        self.fails(1, "matvec", cwd=self.folder, says=["argument is missing", "spmv matvec A"])

    def test_no_rows_no_columns(self):
        empty = "%%MatrixMarket matrix coordinate real general\n{} {} 0\n"
        self.assertEqual(self.ok("-", stdin=empty.format(0, 3)).stdout, "")
        self.assertEqual(self.ok("-", stdin=empty.format(3, 0)).stdout, "0\n0\n0\n")

    def test_f32_reads_computes_and_writes_f32(self):
        text = "%%MatrixMarket matrix array real general\n1 1\n0.1\n"
        self.assertEqual(self.ok("-", "--type", "f32", stdin=text).stdout, "0.1\n")
        exact = self.ok("-", "--type", "f32", "--format", "%.17g", stdin=text).stdout
        self.assertEqual(exact, "0.10000000149011612\n")

    def test_mixed_is_an_f32_matrix_with_f64_sums(self):
        text = "%%MatrixMarket matrix array real general\n1 2\n0.1\n1\n"
        x = self.vector("x.txt", [1, 1e-12])
        rounded = struct.unpack("f", struct.pack("f", 0.1))[0]
        self.assertEqual(float(self.ok("-", x, "--type", "mixed", stdin=text).stdout), rounded + 1e-12)
        done = self.ok("matvec", "-", x, "--type", "mixed", "--transpose", "--json", stdin=text.replace("1 2", "2 1"))
        document = json.loads(done.stdout)
        self.assertEqual((document["result"]["type"], document["result"]["value_type"]), ("f64", "f32"))
        self.assertLessEqual(document["verify"]["worst_error_over_bound"], 1)
        self.assertNotIn("value_type", json.loads(self.ok("matvec", "-", x, "--json", stdin=text).stdout)["result"])
        self.assertIn("f32 with vectors and sums in f64", self.ok("poisson2d:3", "--type", "mixed").stderr)
        self.ok("info", "poisson2d:3", "--type", "mixed")
        for backend in ("ref", "omp"):
            done = self.ok("solve", "poisson2d:20", "--solution", "ones", "--type", "mixed", "--rtol", "1e-12",
                           "--backend", backend, "--format", "%.9f")
            self.assertEqual(done.stdout, "1.000000000\n" * 400)
        self.fails(1, "bench", "poisson2d:3", "--type", "mixed", says="mixed is not for bench")
        self.fails(1, "gen", "poisson2d:3", "--type", "mixed", says="mixed is not for gen")

    def test_shortest_digits_and_format(self):
        text = "%%MatrixMarket matrix array real general\n2 1\n0.1\n-1e300\n"
        self.assertEqual([float(v) for v in self.ok("-", stdin=text).stdout.split()], [0.1, -1e300])
        self.assertEqual(self.ok("-", "--format", "%+.3e", stdin=text).stdout, "+1.000e-01\n-1.000e+300\n")
        for bad in ["%d", "%s", "%g %g", "plain", "%n"]:
            self.fails(1, "poisson2d:3", "--format", bad)


class SeveralVectors(Case):
    """mul A X with n x k numbers: all k products at once."""

    def setUp(self):
        super().setUp()
        rng = self.make_matrix(11)
        self.columns = {n: [[eighths(rng) for _ in range(n)] for _ in range(3)] for n in (5, 8)}

    @staticmethod
    def rows(columns):
        return "".join(" ".join(repr(v) for v in row) + "\n" for row in zip(*columns))

    def table(self, text):
        return [[float(word) for word in line.split()] for line in text.split("\n")[:-1]]

    def array(self, columns):
        return (f"%%MatrixMarket matrix array real general\n{len(columns[0])} {len(columns)}\n" +
                "".join(f"{v!r}\n" for column in columns for v in column))

    def test_on_every_backend_type_and_form(self):
        files = {n: [self.write(f"x{n}.txt", self.rows(c)), self.write(f"x{n}.mtx", self.array(c))]
                 for n, c in self.columns.items()}
        for (backend, _), kind, transpose, form in itertools.product(
            self.usable_backends(), ["f64", "f32", "mixed"], [False, True], [0, 1]
        ):
            n, m = (8, 5) if transpose else (5, 8)
            words = ["matvec", self.path, files[n][form], "--backend", backend, "--type", kind] + ["--transpose"] * transpose
            with self.subTest(words):
                products = [self.a.times(x, transpose) for x in self.columns[n]]
                done = self.ok(*words)
                self.assertEqual(self.table(done.stdout), [list(row) for row in zip(*products)])
                self.assertRegex(done.stderr, r"checked against \w+: passed; worst row \d+ of vector [123]")
                with_y0 = self.ok(*words, "--alpha", "2", "--beta", "-0.5", "--y0", files[m][form])
                self.assertEqual(self.table(with_y0.stdout), [[2 * p - 0.5 * y for p, y in zip(*rows)] for rows in
                                                              zip(zip(*products), zip(*self.columns[m]))])

    def test_the_same_bits_as_one_by_one(self):
        rng = random.Random(5)
        columns = [[rng.uniform(-1, 1) for _ in range(400)] for _ in range(4)]
        together = self.table(self.ok("poisson2d:20", self.write("x.txt", self.rows(columns)), "--backend", "ref").stdout)
        for v, column in enumerate(columns):
            alone = numbers(self.ok("poisson2d:20", self.vector("one.txt", column), "--backend", "ref").stdout)
            self.assertEqual([row[v] for row in together], alone)

    def test_forms_of_the_answer(self):
        x = self.write("x.txt", self.rows(self.columns[5]))
        text = self.ok(self.path, x).stdout
        unit = "diagonal:8,values=constant"
        for ending in "txt", "spmv", "gz":
            y = os.path.join(self.folder, "y." + ending)
            done = run("matvec", self.path, x, "-o", y)
            if ending == "gz" and done.returncode == 4 and "libarchive" in done.stderr:
                continue
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(self.ok(unit, y).stdout, text, ending)
        with open(os.path.join(self.folder, "y.spmv"), "rb") as file:
            self.assertEqual(file.read(8), b"\x89SPVC\r\n\x1a")
        self.fails(1, "matvec", self.path, x, "-o", os.path.join(self.folder, "z.spmv"), "--format", "%g", says="has no format of numbers")
        self.fails(3, "info", os.path.join(self.folder, "y.spmv"), says="the binary form of a vector, not of a matrix")

    def test_one_row_is_a_vector_or_several(self):
        row = self.write("row.txt", "1 2 3\n")
        self.assertEqual(self.ok("diagonal:3,values=constant", row).stdout, "1\n2\n3\n")
        self.assertEqual(self.ok("diagonal:1,values=constant", row).stdout, "1 2 3\n")

    def test_json_counts_all(self):
        x = self.write("x.txt", self.rows(self.columns[5]))
        one = json.loads(self.ok(self.path, self.vector("one.txt", self.columns[5][0]), "--json").stdout)["result"]
        three = json.loads(self.ok(self.path, x, "--json").stdout)["result"]
        self.assertEqual((three["vectors"], one.get("vectors")), (3, None))
        self.assertEqual(three["model_bytes"] - one["model_bytes"], 2 * 8 * (8 + 5))

    def test_a_wrong_row_is_found(self):
        x = self.write("x.txt", self.rows(self.columns[5]))
        done = run(self.path, x, env={"SPMV_TEST_PLANT_ERROR": "5"})
        self.assertEqual(done.returncode, 9)
        self.assertRegex(done.stderr, r"(?s)CHECK FAILED.*: 1 of 24 rows of y .*worst row 6 of vector 3: ")
        report = json.loads(run(self.path, x, "--json", env={"SPMV_TEST_PLANT_ERROR": "5"}).stdout)["verify"]
        self.assertEqual((report["worst_row"], report["worst_vector"]), (5, 2))
        bit = run(self.path, x, "--verify=bitwise", env={"SPMV_TEST_PLANT_ERROR": "bit:5"})
        self.assertEqual(bit.returncode, 9)
        self.assertIn("gave different bits", bit.stderr)

    def test_sizes_that_do_not_fit(self):
        x, y = self.write("x.txt", self.rows(self.columns[5])), self.write("y.txt", self.rows(self.columns[8][:2]))
        self.fails(4, self.path, y, says=["y.txt has 8 x 2 numbers, x needs 5 rows"])
        self.fails(4, "matvec", self.path, x, "--beta", "1", "--y0", y, says=["y.txt has 2 vectors, y0 needs 3"])
        self.fails(4, self.path, self.write("none.mtx", "%%MatrixMarket matrix array real general\n5 0\n"),
                   says=["none.mtx has 0 vectors"])


class Mul(Case):
    def setUp(self):
        super().setUp()
        rng = self.make_matrix(3)
        self.vectors = {n: [eighths(rng) for _ in range(n)] for n in (5, 8)}
        self.files = {n: self.vector(f"v{n}.txt", v) for n, v in self.vectors.items()}

    def test_alpha_beta_transpose_on_every_backend_method_and_type(self):
        for (backend, methods), type_name, transpose in itertools.product(
            self.usable_backends(), ["f64", "f32"], [False, True]
        ):
            n, m = (8, 5) if transpose else (5, 8)
            product = self.a.times(self.vectors[n], transpose)
            for method in ["auto", *methods]:
                common = ["matvec", self.path, self.files[n], "--backend", backend, "--method", method]
                common += ["--type", type_name] + ["--transpose"] * transpose
                with self.subTest(common):
                    done = self.ok(*common)
                    self.assertEqual(numbers(done.stdout), product)
                    self.assertIn("checked against", done.stderr)
                    done = self.ok(*common, "--alpha", "-2", "--beta", ".5", "--y0", self.files[m])
                    expected = [-2 * p + 0.5 * y for p, y in zip(product, self.vectors[m])]
                    self.assertEqual(numbers(done.stdout), expected)

    def test_output_file_is_replaced_and_kept_on_failure(self):
        out = self.write("y.txt", "old\n")
        done = self.ok("matvec", self.path, self.files[5], "-o", out)
        self.assertEqual(done.stdout, "")
        expected = self.read("y.txt")
        self.assertEqual(numbers(expected), self.a.times(self.vectors[5]))
        missing = os.path.join(self.folder, "no", "y.txt")
        self.fails(2, "matvec", self.path, "-o", missing, says=missing)

        before = sorted(os.listdir(self.folder))
        self.fails(2, "matvec", "poisson2d:100", "-o", out, says="y.txt", **limit_files(4096))
        self.assertEqual(self.read("y.txt"), expected)
        self.assertEqual(sorted(os.listdir(self.folder)), before)

    def test_options_that_need_each_other(self):
        self.fails(1, "matvec", self.path, "--beta", "2", says="--y0")
        self.fails(1, "matvec", self.path, "--y0", self.files[8], says="--beta")
        self.fails(1, "matvec", "-", "--beta", "2", "--y0", "-", says="once")

    def test_order_of_options_and_end_of_options(self):
        expected = numbers(self.ok("matvec", self.path, self.files[5], "--alpha", "3").stdout)
        self.assertEqual(expected, [3 * v for v in self.a.times(self.vectors[5])])
        for order in itertools.permutations(["matvec", self.path, self.files[5]]):
            if not (order.index("matvec") < order.index(self.path) < order.index(self.files[5])):
                continue
            for place in range(4):
                words = [*order[:place], "--alpha", "3", *order[place:]]
                self.assertEqual(numbers(self.ok(*words).stdout), expected, words)
        os.rename(self.path, os.path.join(self.folder, "-a.mtx"))
        self.assertEqual(numbers(self.ok("matvec", "--alpha=3", "--", "-a.mtx", "v5.txt", cwd=self.folder).stdout), expected)


class Complex(Case):
    """Complex matrices and vectors; Python's own complex numbers are the definition."""

    def matrix(self, symmetry, n=9, seed=5):
        """The text of a file, and its matrix."""
        rng = random.Random(seed)
        lines, full = [], [[0j] * n for _ in range(n)]
        for i, j in sorted(rng.sample([(i, j) for i in range(n) for j in range(n) if symmetry == "general" or i >= j], 30)):
            v = complex(eighths(rng), 0 if i == j and symmetry == "hermitian" else eighths(rng))
            if i == j and symmetry == "skew-symmetric":
                v = 0j
            lines.append(f"{i + 1} {j + 1} {v.real!r} {v.imag!r}")
            full[i][j] = v
            if i != j and symmetry != "general":
                full[j][i] = {"symmetric": v, "skew-symmetric": -v, "hermitian": v.conjugate()}[symmetry]
        return f"%%MatrixMarket matrix coordinate complex {symmetry}\n{n} {n} {len(lines)}\n" + "\n".join(lines) + "\n", full

    def pairs(self, text):
        return [complex(*map(float, line.split(" "))) for line in text.split("\n")[:-1]]

    def complex_vector(self, name, values):
        return self.write(name, "".join(f"{v.real!r} {v.imag!r}\n" for v in values))

    def test_products_are_those_of_the_definition(self):
        rng = random.Random(8)
        x, y0 = ([complex(eighths(rng), eighths(rng)) for _ in range(9)] for _ in range(2))
        x_path, y0_path = self.complex_vector("x.txt", x), self.complex_vector("y0.txt", y0)
        for symmetry in "general", "symmetric", "skew-symmetric", "hermitian":
            text, a = self.matrix(symmetry)
            path = self.write("a.mtx", text)
            for (backend, _), kind, transpose in itertools.product(self.usable_backends(), ([], ["--type", "c64"]), (False, True)):
                words = ["matvec", path, x_path, "--backend", backend, *kind] + ["--transpose"] * transpose
                with self.subTest(words, symmetry=symmetry):
                    product = [sum((a[j][i] if transpose else a[i][j]) * x[j] for j in range(9)) for i in range(9)]
                    done = self.ok(*words)
                    self.assertEqual(self.pairs(done.stdout), product)
                    self.assertIn("checked against", done.stderr)
                    self.assertIn("c64" if kind else "c128", done.stderr)
                    done = self.ok(*words, "--alpha", "-2", "--beta", ".5", "--y0", y0_path, "--verify=bitwise")
                    self.assertEqual(self.pairs(done.stdout), [-2 * p + 0.5 * y for p, y in zip(product, y0)])

    def test_x_of_ones_of_real_numbers_and_of_matrix_market(self):
        text, a = self.matrix("general")
        self.assertEqual(self.pairs(self.ok("-", stdin=text).stdout), [sum(row) for row in a])
        path = self.write("a.mtx", text)
        want = [sum(v * j for j, v in enumerate(row)) for row in a]
        for x in (self.vector("x.txt", range(9)),
                  self.write("x.mtx", "%%MatrixMarket matrix array complex general\n9 1\n" + "".join(f"{j} 0\n" for j in range(9)))):
            self.assertEqual(self.pairs(self.ok(path, x).stdout), want)
        self.assertEqual(self.ok(path, "--format", "%.1f").stdout.split("\n")[0], f"{sum(a[0]).real:.1f} {sum(a[0]).imag:.1f}")
        short = self.write("short.txt", "1 2\n3 4\n")
        self.fails(4, path, short, says=["short.txt has 2 numbers", "9"])
        mangled = self.write("mangled.txt", "1 2\n3 4i\n")
        self.fails(3, path, mangled, says='mangled.txt:2:3: "4i" is not a number')
        # Real matrices take complex vectors only if complex products are requested.
        self.assertEqual(self.pairs(self.ok("diagonal:2,values=constant", short, "--type", "c128").stdout), [1 + 2j, 3 + 4j])
        # Otherwise a pair of numbers is two vectors.
        self.assertEqual(self.ok("diagonal:2,values=constant", short).stdout, "1 2\n3 4\n")
        self.assertEqual(self.ok("solve", "diagonal:2,values=constant", short).stdout, "1 2\n3 4\n")

    def test_type_by_the_file_and_by_name(self):
        text, _ = self.matrix("general")
        for kind, want in ([], "c128"), (["--type", "c64"], "c64"), (["--type", "c128"], "c128"):
            result = json.loads(self.ok("-", "--json", "-q", *kind, stdin=text).stdout)["result"]
            self.assertEqual((result["type"], "value_type" in result), (want, False))
        real = "%%MatrixMarket matrix coordinate real general\n2 2 2\n1 1 2.5\n2 1 -1\n"
        self.assertEqual(self.ok("-", "--type", "c64", stdin=real).stdout, "2.5 0\n-1 0\n")
        pattern = "%%MatrixMarket matrix coordinate pattern general\n2 2 2\n1 1\n1 2\n"
        self.assertEqual(self.ok("-", "--type", "c128", stdin=pattern).stdout, "2 0\n0 0\n")
        for kind in "f64", "f32", "mixed":
            self.fails(4, "-", "--type", kind, stdin=text, says=["standard input:1:34: ", "complex"])

    def test_convert_there_and_back(self):
        text, a = self.matrix("hermitian")
        path = self.write("a.mtx", text)
        entries = sum(v != 0 for i, row in enumerate(a) for v in row[: i + 1])
        for kind in [], ["--type", "c64"]:
            plain = self.ok("convert", path, "-", *kind).stdout
            head = f"%%MatrixMarket matrix coordinate complex hermitian\n9 9 {entries}\n"
            self.assertTrue(plain.startswith(head), plain)
            binary = os.path.join(self.folder, "a.spmv")
            self.ok("convert", path, binary, *kind)
            with open(binary, "rb") as file:
                head = struct.unpack_from("<8s4I", file.read())
            self.assertEqual((head[1], head[3]), (1, 8 if kind else 5))
            self.assertEqual(self.ok("convert", binary, "-", *kind).stdout, plain)
            self.fails(4, "convert", binary, "-", "--type", "f64", says=["a.spmv", "complex", "not as f64"])
            self.assertEqual(self.ok(binary).stdout, self.ok(path).stdout)

    def test_info_tells_what_they_are(self):
        for symmetry in "general", "symmetric", "skew-symmetric", "hermitian":
            text, a = self.matrix(symmetry)
            shown = self.ok("info", "-", stdin=text).stdout
            self.assertRegex(shown, r"nonzeros +\d+, complex\n")
            self.assertRegex(shown, rf"symmetry +{'not symmetric' if symmetry == 'general' else symmetry}\n")
            info = json.loads(self.ok("info", "-", "--json", "-q", stdin=text).stdout)
            self.assertEqual(info["result"]["type"], "c128")
            self.assertEqual([info["info"][key] for key in ("symmetric", "skew_symmetric", "hermitian")],
                             [symmetry == word for word in ("symmetric", "skew-symmetric", "hermitian")])
        self.assertNotIn("hermitian", json.loads(self.ok("info", "poisson2d:3", "--json", "-q").stdout)["info"])

    def test_bench(self):
        path = self.write("a.mtx", self.matrix("hermitian")[0])
        for kind, want in ([], "c128"), (["--type", "c64"], "c64"):
            done = self.ok("bench", path, "--json", "-q", "--peers", "loops-static", *kind)
            report = json.loads(done.stdout)
            self.assertEqual(report["result"]["type"], want)
            self.assertTrue(report["verify"]["passed"])
            self.assertTrue(report["result"]["bitwise"]["equal"])
            self.assertIn("real types", report["peers"][0]["failed"])
        self.fails(4, "bench", path, "--type", "f64", says="complex")
        load = json.loads(self.ok("bench", "--op", "load", path, "--json", "-q").stdout)["result"]
        self.assertEqual((load["type"], load["op"]), ("c128", "load"))

    def test_several_right_hand_sides(self):
        path = self.write("a.mtx", "%%MatrixMarket matrix coordinate complex general\n5 5 9\n" + "".join(
            f"{i} {i} 4 {i}\n" for i in range(1, 6)) + "".join(f"{i} {i + 1} 1 -0.5\n" for i in range(1, 5)))
        for more in [], ["--ranks", "2"], ["--type", "c64", "--rtol", "1e-5"]:
            done = json.loads(self.ok("solve", path, "--vectors", "3", "--json", "-q", *more).stdout)
            sides = done["result"]["cg"]["right_hand_sides"]
            self.assertEqual([one["status"] for one in sides], ["ok"] * 3)
            self.assertTrue(all(one["true_residual"] <= one["tolerance"] for one in sides))

    def test_planted_error_is_found(self):
        path = self.write("a.mtx", self.matrix("general")[0])
        for (backend, _), kind in itertools.product(self.usable_backends(), ["c128", "c64"]):
            done = run(path, "--backend", backend, "--type", kind, env={"SPMV_TEST_PLANT_ERROR": "5"})
            self.assertEqual(done.returncode, 9)
            self.assertRegex(done.stderr, r"(?s)CHECK FAILED.*worst row 6: .*[-+]\d\S*i, expected .*[-+]\d\S*i,")

    def test_mangled_files_are_named_with_their_place(self):
        head = "%%MatrixMarket matrix coordinate complex hermitian\n2 2 2\n"
        for tail, place in (("1 1 1.5 0\n2 1 3.5\n", r"4:8: the imaginary part is missing"),
                            ("1 1 1.5 0\n2 1 3 x\n", r'4:7: "x" is not a number'),
                            ("1 1 1.5 2\n2 1 3 1\n", r"3:9: the diagonal of a hermitian matrix is real"),
                            ("1 1 1 0 0\n2 1 3 1\n", r'3:9: extra text "0" after the entry'),
                            ("1 1 1 0\n3 1 3 1\n", r"4:1: row 3 exceeds the 2 rows"),
                            ("1 1 1.000 0.0000\n", r"4:1: the file ends after 1 of the 2 entries")):
            self.assertRegex(self.fails(3, self.write("bad.mtx", head + tail)).stderr, r"bad\.mtx:" + place)

    def test_every_prefix_is_refused_or_the_whole(self):
        text = "%%MatrixMarket matrix coordinate complex symmetric\n2 2 2\n1 1 1.5 -2\n2 1 3 4\n"
        whole = self.ok("-q", "-", stdin=text).stdout
        for length in range(len(text) - 1):
            done = run("-q", "-", stdin=text[:length])
            self.assertEqual(done.returncode, 3, text[:length])
            self.assertRegex(done.stderr, r"^spmv: standard input:\d+:\d+: ")
        self.assertEqual(self.ok("-q", "-", stdin=text[:-1]).stdout, whole)


class Streams(Case):
    def test_summary_on_standard_error_only(self):
        done = self.ok(self.data("lecture3x3.mtx"), self.data("lecture3x3_x.txt"))
        self.assertEqual(done.stdout, "6\n0\n10\n")
        for words in ["3 x 3", "nonzeros", "f64", "method", "load", "plan", "product", "checked against", "worst row"]:
            self.assertIn(words, done.stderr)
        self.assertTrue(all(line.startswith("spmv: ") for line in done.stderr.splitlines()))
        self.assertNotIn("\r", done.stderr)

    def test_summary_names_backend_and_why(self):
        self.assertRegex(self.ok("poisson2d:3").stderr, r"on (omp|cuda).*\(auto")
        self.assertIn("method tiles", self.ok("poisson2d:3", "--backend", "omp").stderr)
        self.assertIn("against ref", self.ok("poisson2d:3", "--backend", "omp").stderr)
        self.assertIn("against omp", self.ok("poisson2d:3", "--backend", "ref").stderr)

    def test_quiet_and_verbose(self):
        self.assertEqual(self.ok("-q", "poisson2d:3").stderr, "")
        normal = self.ok("poisson2d:3").stderr
        self.assertGreater(len(self.ok("-v", "poisson2d:3").stderr.splitlines()), len(normal.splitlines()))
        self.fails(2, "-q", "nowhere/a.mtx", says="nowhere/a.mtx")

    def test_reader_of_pipe_gone(self):
        for arguments in (["-q", "poisson2d:400"], ["poisson2d:400"], ["solve", "poisson2d:60"], ["help"], ["info", "poisson2d:3"], ["gen", "poisson2d:200"]):
            reader, writer = os.pipe()
            os.close(reader)
            done = run(*arguments, stdout=writer)
            os.close(writer)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertNotIn("write", done.stderr)

    def test_reader_that_stops_early(self):
        shell = f"'{PROGRAM}' -q poisson2d:400 | head -n 1; echo ${{PIPESTATUS[0]}}"
        done = subprocess.run(["bash", "-c", shell], capture_output=True, text=True, timeout=120, check=True)
        self.assertEqual((done.stdout, done.stderr), ("2\n0\n", ""))

    @unittest.skipUnless(os.path.exists("/dev/full"), "no /dev/full")
    def test_full_disk(self):
        for arguments in (
            ["poisson2d:100"],
            ["poisson2d:2"],
            ["--json", "poisson2d:2"],
            ["info", "poisson2d:2"],
            ["solve", "poisson2d:100"],
            ["gen", "poisson2d:2"],
            ["--help"],
            ["--version"],
        ):
            with open("/dev/full", "w", encoding="utf-8") as full:
                self.fails(2, *arguments, stdout=full, says="write")

    def test_closed_standard_output(self):
        def close_output():
            os.close(1)

        a = self.write("a.mtx", Matrix.random(3, 3, 3, seed=5).text())
        before = self.read("a.mtx")
        self.assertEqual(run(a, preexec_fn=close_output).returncode, 2)
        self.assertEqual(self.read("a.mtx"), before)

    def on_terminal(self, *arguments, stdin=b"", delay=0.0):
        """The output on a terminal at standard error while the program waits for standard input."""
        leader, terminal = os.openpty()
        with subprocess.Popen(
            [PROGRAM, *arguments], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=terminal
        ) as process:
            os.close(terminal)
            time.sleep(delay)
            process.stdin.write(stdin)
            process.stdin.close()
            text = read_terminal(leader)
        self.assertEqual(process.returncode, 0, text)
        return text.decode()

    def test_progress_line_on_terminal_after_half_a_second(self):
        matrix = Matrix.random(40, 40, 200, seed=7).text().encode()
        for _ in range(20):  # a run that had to wait for a processor may take half a second
            quick = self.on_terminal("-", stdin=matrix)
            self.assertIn("checked against", quick)
            if "\x1b" not in quick:
                break
        self.assertNotIn("\x1b", quick)
        slow = self.on_terminal("-", stdin=matrix, delay=0.8)
        # The progress line is drawn, and erased before the summary.
        self.assertRegex(slow, r"^spmv: reading standard input: .*\r\x1b\[Kspmv: -: 40 x 40")
        self.assertEqual(self.on_terminal("-q", "-", stdin=matrix, delay=0.8), "")

    def interrupted(self, folder, number, *arguments, **more):
        """Sends the signal once an unfinished file is in the folder; returns the files that are
        left.

        If this test had to wait for a processor, the signal may come too late. The folder is then
        restored for another attempt.
        """
        before = {name: pathlib.Path(folder, name).read_bytes() for name in os.listdir(folder)}
        for _ in range(20):
            process = subprocess.Popen([PROGRAM, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, **more)
            with process:
                while process.poll() is None and not any(
                    name.endswith((".part", ".tmp")) for name in os.listdir(folder)
                ):
                    time.sleep(0.001)
                process.send_signal(number)
                _, errors = process.communicate(timeout=60)
            if process.returncode != 0:
                break
            for name in os.listdir(folder):
                os.unlink(os.path.join(folder, name))
            for name, content in before.items():
                pathlib.Path(folder, name).write_bytes(content)
        self.assertEqual(process.returncode, -number, errors)
        return os.listdir(folder)

    def test_interruption_leaves_no_unfinished_file(self):
        out = os.path.join(self.folder, "out")
        cache = os.path.join(self.folder, "cache")
        source = os.path.join(self.folder, "a.spmv")
        os.mkdir(out)
        os.mkdir(cache)
        self.ok("gen", "poisson2d:800", "-o", source)  # written in 0.1 s: long enough for a signal
        text = os.path.join(out, "a.mtx")
        for number in signal.SIGINT, signal.SIGTERM, signal.SIGHUP:
            self.assertEqual(self.interrupted(out, number, "convert", source, text), [])
        self.assertEqual(self.interrupted(out, signal.SIGINT, "gen", "poisson2d:800", "-o", text), [])
        # The program's own output files, also during other work: a set-up, which a signal ends.
        json_path = os.path.join(out, "s.json")
        solve = "solve", "poisson2d:700", "--precond", "ilut", f"--json={json_path}"
        self.assertEqual(self.interrupted(out, signal.SIGINT, *solve), [])
        # An existing file is left unchanged.
        with open(text, "w", encoding="ascii") as file:
            file.write("there")
        self.assertEqual(self.interrupted(out, signal.SIGINT, "convert", source, text), ["a.mtx"])
        with open(text, encoding="ascii") as file:
            self.assertEqual(file.read(), "there")
        # The cache.
        self.ok("gen", "poisson2d:800", "-o", text)
        env = dict(os.environ, SPMV_CACHE=cache)
        self.assertEqual(self.interrupted(cache, signal.SIGINT, "info", text, env=env), [])
        # A signal that is ignored stays ignored.
        ignore = lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN)
        with subprocess.Popen(
            [PROGRAM, "convert", source, text], stderr=subprocess.DEVNULL, preexec_fn=ignore
        ) as process:
            while process.poll() is None and not any(name.endswith(".part") for name in os.listdir(out)):
                time.sleep(0.001)
            process.send_signal(signal.SIGHUP)
            self.assertEqual(process.wait(timeout=60), 0)


class Checks(Case):
    plant = staticmethod(lambda where: {"env": {"SPMV_TEST_PLANT_ERROR": where}})

    def test_planted_error_is_found_on_every_backend_and_y_is_written(self):
        expected = poisson2d(4)
        expected[5] = 2 * expected[5] + 1
        for (backend, _), type_name in itertools.product(self.usable_backends(), ["f64", "f32"]):
            done = run("poisson2d:4", "--backend", backend, "--type", type_name, **self.plant("5"))
            self.assertEqual(done.returncode, 9)
            self.assertEqual(numbers(done.stdout), expected)
            self.assertIn("CHECK FAILED", done.stderr)
            self.assertIn("worst row 6: ", done.stderr)
            self.assertIn("1 of 16 rows", done.stderr)

    def test_planted_error_is_named_even_when_quiet_and_not_looked_for_when_off(self):
        self.assertIn("CHECK FAILED", run("-q", "poisson2d:4", **self.plant("0")).stderr)
        done = self.ok("poisson2d:4", "--verify=off", **self.plant("0"))
        self.assertIn("not checked", done.stderr)

    def test_last_bit_is_found_by_bitwise_alone(self):
        arguments = ["matvec", "poisson3d:5", "--verify"]
        self.ok(*arguments, **self.plant("bit:7"))
        done = run("poisson3d:5", "--verify=bitwise", **self.plant("bit:7"))
        self.assertEqual(done.returncode, 9)
        self.assertIn("different bits", done.stderr)
        self.assertIn("passed", done.stderr)
        self.assertIn("same bits", self.ok("poisson3d:5", "--verify=bitwise").stderr)

    def test_bitwise_with_beta_repeats_from_the_same_y0(self):
        y0 = self.vector("y0.txt", [0.1 * i for i in range(25)])
        done = self.ok("matvec", "poisson2d:5", "--alpha", "0.3", "--beta", "0.7", "--y0", y0, "--verify=bitwise")
        self.assertIn("same bits", done.stderr)

    def test_not_finite_values_pass_where_both_are(self):
        text = "%%MatrixMarket matrix array real general\n2 1\n1e308\n1\n"
        x = self.vector("x.txt", [1e10])
        done = self.ok("-", x, stdin=text)
        self.assertEqual(numbers(done.stdout), [float("inf"), 1e10])

    def test_doctor_reports_failure(self):
        done = run("doctor", **self.plant("3"))
        self.assertEqual(done.returncode, 9)
        self.assertIn("FAIL", done.stdout)
        self.assertNotIn("PASS", done.stdout)
        self.assertIn("FAILED", done.stderr)

    def test_failed_check_in_json(self):
        done = run("poisson2d:4", "--json", **self.plant("5"))
        self.assertEqual(done.returncode, 9)
        verify = json.loads(done.stdout)["verify"]
        self.assertEqual(verify["worst_row"], 5)
        self.assertGreater(verify["worst_error_over_bound"], 1)


class ExitCodes(Case):
    def test_1_usage(self):
        self.fails(1, says=["argument is missing", "--help"])
        self.fails(1, "poisson2d:3", "--nonsense", says="--nonsense")
        self.fails(1, "poisson2d:3", "-z", says="-z")
        self.fails(1, "poisson2d:3", "--method", says=["--method", "argument"])
        self.fails(1, "poisson2d:3", "--quiet=3", says=["--quiet", "no argument"])
        self.fails(1, "poisson2d:3", "x", "y", says="unexpected argument")
        self.fails(1, "info", says="argument is missing")
        self.fails(1, "doctor", "poisson2d:3", says="unexpected argument")
        self.fails(1, "help", "nothing", says=["nothing", *COMMANDS])
        self.fails(1, "info", "poisson2d:3", "--transpose", says=["--transpose", "info"])
        self.fails(1, "matvec", "poisson2d:3", "--alpha", "two", says="two")
        self.fails(1, "poisson2d:3", "--rtol", "1", says=["--rtol", "spmv solve"])
        self.fails(1, "solve", "poisson2d:3", "--alpha", "2", says=["--alpha", "solve", "spmv matvec"])
        for option, bad in [
            ("--backend", "tpu"), ("--type", "f65"), ("--threads", "-1"), ("--threads", "many"),
            ("--threads", "99999999999"), ("--device", "1x"), ("--verify", "=maybe"), ("--json", "="),
        ]:  # fmt: skip
            words = [option + bad] if bad.startswith("=") else [option, bad]
            self.fails(1, "poisson2d:3", *words, says=[option, bad.lstrip("=")])

    def test_1_numbers_that_are_too_large(self):
        for words in (["solve", "poisson2d:3", "--max-iterations", "99999999999"], ["poisson2d:3", "--threads", "9" * 30],
                      ["bench", "--op", "scan", "--seed", "9" * 20], ["bench", "--op", "scan", "--size", "9" * 20]):  # fmt: skip
            self.fails(1, *words, says=[f"{words[-2]} {words[-1]}: too large", "at most"])
        self.fails(1, "bench", "--op", "scan", "--seed", "-" + "9" * 20, says="at least 0")
        for words in (["matvec", "--alpha", "1e400"], ["matvec", "--beta", "-1e400"], ["solve", "--rtol", "1e400"],
                      ["solve", "--atol", "1e400"]):  # fmt: skip
            self.fails(1, *words, "poisson2d:3", says=[f"{words[1]} {words[2]}: too large for f64"])
        for type_name in ("f32", "c64"):
            self.fails(1, "matvec", "poisson2d:3", "--alpha", "1e300", "--type", type_name,
                       says=["--alpha 1e+300", f"too large for {type_name}"])  # fmt: skip
        y0 = self.vector("y0.txt", [0.0] * 9)
        self.fails(1, "matvec", "poisson2d:3", "--type", "f32", "--beta", "-1e39", "--y0", y0, says="too large for f32")
        for type_name in ("f64", "mixed", "c128"):
            self.ok("matvec", "poisson2d:3", "--alpha", "1e300", "--type", type_name)
        self.ok("matvec", "poisson2d:3", "--alpha", "3e38", "--type", "f32")

    def test_1_options_that_would_do_nothing(self):
        b = os.path.join(self.folder, "b.mtx")
        for words in (["convert", "poisson2d:3", b], ["gen", "poisson2d:3"]):
            self.fails(1, *words, "--type", "mixed", says=f"mixed is not for {words[0]}")
        for words in (["spy", "poisson2d:3"], ["doctor"]):
            self.fails(1, *words, "--type", "f64", says=f"--type is not for {words[0]}")
        self.assertEqual(os.listdir(self.folder), [])
        self.ok("info", "poisson2d:3", "--type", "mixed", "--method", "tiles")
        for words in (["--vectors", "2"], ["--summary"], ["--peers", "none"]):
            self.fails(1, "bench", "--op", "load", self.data("symmetric4.mtx"), *words, says=[words[0], "--op load"])

    def test_1_spec_and_method(self):
        self.fails(1, "poison2d:10", says="poison2d:10")
        self.fails(1, "poisson2d:ten", says="poisson2d:ten")
        self.fails(1, "poisson2d:-3")
        for backend, methods in self.usable_backends():
            self.fails(1, "poisson2d:3", "--backend", backend, "--method", "sparkle", says=["sparkle", *methods])

    def test_2_files(self):
        self.fails(2, "nowhere.mtx", says="nowhere.mtx")
        self.fails(2, "poisson2d:3", "nowhere.txt", says="nowhere.txt")
        self.fails(2, self.folder)
        self.fails(2, "solvee", says=["no file solvee", "no command", *COMMANDS])
        self.fails(2, "solvee", "--rtol", "1", says=["no file solvee", *COMMANDS])

    def test_3_malformed(self):
        bad = self.write("bad.mtx", "%%MatrixMarket matrix coordinate real general\n3 3 1\n1 9 1.0\n")
        self.assertRegex(self.fails(3, bad).stderr, r"bad\.mtx:3:\d+: ")
        vector = self.write("x.txt", "1\n2\nthree\n")
        self.assertRegex(self.fails(3, "poisson2d:3", vector).stderr, r"x\.txt:3:\d+: ")

    def test_4_things_that_do_not_fit(self):
        x = self.vector("x.txt", [1.0, 2.0])
        self.fails(4, "poisson2d:3", x, says=["x.txt", "2 numbers", "9"])
        self.fails(4, "matvec", "poisson2d:3", "--beta", "1", "--y0", x, says=["x.txt", "2 numbers", "9"])
        wide = self.write("wide.mtx", "%%MatrixMarket matrix coordinate real general\n2 3 0\n")
        self.fails(4, wide, x, says=["2 numbers", "3", "2 x 3"])
        self.ok("matvec", "--transpose", wide, x)
        complex_file = "%%MatrixMarket matrix coordinate complex general\n1 1 1\n1 1 1 1\n"
        self.fails(4, "-", "--type", "f64", stdin=complex_file, says=["standard input:1:34: ", "complex", "not as f64"])
        self.fails(4, "-", "--type", "mixed", stdin=complex_file, says=["complex", "not as f32"])
        self.fails(4, "explain", "-", stdin=complex_file, says=["complex values", "spmv explain"])
        for words in ("explain", "poisson2d:3"), ("bench", "--op", "scan"):
            self.fails(4, *words, "--type", "c64", says="c64")
        self.fails(4, "poisson2d:3", "--type", "i32", says=["i32", "f64"])

    def test_5_memory_says_how_much(self):
        # The declared number of rows alone needs 8 PB.
        text = "%%MatrixMarket matrix coordinate real general\n1000000000000000 1 1\n1 1 1\n"
        self.assertRegex(self.fails(5, "-", stdin=text).stderr, r"\d{16}")

    def test_6_device(self):
        usable = [name for name, _ in self.usable_backends()]
        if "cuda" in usable:
            self.fails(6, "poisson2d:3", "--backend", "cuda", "--device", "9999")
        else:
            # the build has no such backend, or there is no driver or no device
            self.assertRegex(self.fails(6, "poisson2d:3", "--backend", "cuda").stderr, "backend.* cuda|CUDA device")


class Outputs(Case):
    """Several outputs, and outputs that cannot be written."""

    def path(self, name):
        return os.path.join(self.folder, name)

    def test_bad_formats_are_refused_before_any_work(self):
        x, j = self.path("x.txt"), self.path("r.json")
        for command in (["poisson2d:3"], ["matvec", "poisson2d:3"], ["solve", "poisson2d:3"]):
            self.fails(1, *command, "--json", "--format", "%g", says=["--format has no effect", "-o"])
            for bad in ("%d", "%s", "%g%g", "none", "%"):
                self.fails(1, *command, "--json", "-o", x, "--format", bad, says=["format", "%.6g"])
                self.fails(1, *command, f"--json={j}", "--format", bad)
        for command in ("matvec", "solve"):
            done = self.fails(1, command, "poisson2d:3", "-o", x, "--format", "%d")
            self.assertNotIn("9 x 9", done.stderr)
            self.fails(1, command, "nowhere.mtx", "--format", "%d", says="%d")
            self.fails(1, command, "nowhere.mtx", "-o", self.path("x.spmv"), "--format", "%g", says="has no format of numbers")
        self.assertEqual(os.listdir(self.folder), [])

    @unittest.skipUnless(os.path.exists("/dev/full"), "no /dev/full")
    def test_x_is_written_when_the_json_is_not(self):
        x, history = self.path("x.txt"), self.path("h.csv")
        for command in (["solve", "poisson2d:4", "--history", history], ["matvec", "poisson2d:4"],
                        ["solve", "poisson2d:4", "--precond", "all", "--history", history]):  # fmt: skip
            expected = self.ok(*command, "-q").stdout
            for words, stdout in ((["--json=/dev/full"], os.devnull), (["--json"], "/dev/full")):
                for name in os.listdir(self.folder):
                    os.unlink(self.path(name))
                with open(stdout, "w", encoding="utf-8") as full:
                    done = run(*command, "-o", x, *words, stdout=full)
                self.assertEqual(done.returncode, 2)
                self.assertEqual(done.stderr.count("No space left"), 1, done.stderr)
                self.assertEqual(self.read("x.txt"), expected)
                self.assertEqual(os.path.exists(history), command[0] == "solve")

    def test_other_outputs_are_written_when_x_is_not(self):
        x, history, j = self.path("x.txt"), self.path("h.csv"), self.path("r.json")
        # The JSON and the history fit within the limit, x does not.
        done = run("solve", "poisson2d:70", "-o", x, "--history", history, f"--json={j}", **limit_files(32768))
        self.assertEqual(done.returncode, 2)
        self.assertIn("x.txt", done.stderr)
        self.assertEqual(sorted(os.listdir(self.folder)), ["h.csv", "r.json"])
        cg = json.loads(self.read("r.json"))["result"]["cg"]
        self.assertEqual(len(self.read("h.csv").splitlines()), cg["iterations"] + 2)
        y = self.path("y.txt")
        done = run("matvec", "uniform:3000,3000,2", "-o", y, f"--json={j}", **limit_files(8192))
        self.assertEqual(done.returncode, 2)
        self.assertFalse(os.path.exists(y))
        self.assertEqual(json.loads(self.read("r.json"))["result"]["op"], "spmv")

    def test_paths_that_cannot_be_written_are_refused_before_any_work(self):
        file, lost = self.write("file", "old\n"), self.path("lost.txt")
        os.symlink("nowhere", lost)
        bad = [(self.path("no/x"), "No such file"), (file + "/x", "Not a directory"), (self.folder, "Is a directory"),
               (lost, "a link to a missing file"), ("", "No such file")]  # fmt: skip
        before = sorted(os.listdir(self.folder))
        for path, reason in bad:
            for words in (["matvec", "nowhere.mtx", "-o", path], ["solve", "nowhere.mtx", "-o", path],
                          ["solve", "nowhere.mtx", "-o", path, "--json=" + self.path("k.json")]):  # fmt: skip
                self.fails(2, *words, says=["cannot write " + path, reason])
            if path:
                for option in ("--history", "--json"):
                    self.fails(2, "solve", "nowhere.mtx", option + "=" + path, says=["cannot write " + path, reason])
        plot = run("solve", "nowhere.mtx", "--plot", self.path("no/p.svg"))
        self.assertEqual(plot.returncode, 2)
        self.assertIn("no/p.svg", plot.stderr)
        for words in (["info", "nowhere.mtx"], ["spy", "nowhere.mtx"], ["doctor"]):
            self.fails(2, *words, "--json=" + self.path("no/r.json"), says="no/r.json: No such file")
        self.assertEqual(sorted(os.listdir(self.folder)), before)

    def test_links_are_followed_and_what_was_there_is_kept(self):
        target, link = self.write("t.json", "old\n"), self.path("l.json")
        os.chmod(target, 0o640)
        os.symlink("t.json", link)
        self.fails(1, "solve", "poisson2d:3", "--precond", "sparkle", f"--json={link}", says="sparkle")
        self.fails(2, "bench", "nowhere.mtx", f"--csv={link}", "--peers", "none", "--threads", "1", says="nowhere.mtx")
        self.assertEqual(self.read("t.json"), "old\n")
        self.ok("solve", "poisson2d:3", f"--json={link}")
        self.assertEqual(json.loads(self.read("t.json"))["schema"], "spmv/1")
        self.ok("solve", "poisson2d:3", "--history", link)
        self.assertTrue(self.read("t.json").startswith("iteration,residual\n0,"))
        self.assertTrue(os.path.islink(link))
        self.assertEqual(os.stat(target).st_mode & 0o7777, 0o640)
        self.assertEqual(sorted(os.listdir(self.folder)), ["l.json", "t.json"])

    def test_two_outputs_are_two_files(self):
        both = self.path("both.svg")
        pairs = [["-o", both, f"--json={both}"], ["-o", both, "--history", both], ["--history", both, f"--json={both}"],
                 ["-o", both, f"--json={self.folder}/./both.svg"]]  # fmt: skip
        for words in pairs:
            self.fails(1, "solve", "poisson2d:3", *words, says=["both.svg", "two outputs"])
        self.fails(1, "solve", "poisson2d:3", "-o", both, "--plot", both, says=["both.svg", "two outputs"])
        self.fails(1, "bench", "poisson2d:3", f"--csv={both}", f"--json={both}", says=["both.svg", "two outputs"])
        self.fails(1, "matvec", "poisson2d:3", "-o", both, f"--json={both}", says=["both.svg", "two outputs"])
        self.fails(1, "gen", "poisson2d:3", "-o", both, f"--json={both}", says=["both.svg", "two outputs"])
        mtx = self.path("b.mtx")
        self.fails(1, "convert", "poisson2d:3", mtx, f"--json={mtx}", says=["b.mtx", "two outputs"])
        self.assertEqual(os.listdir(self.folder), [])
        one, other = self.write("one", "old\n"), self.path("other")
        os.symlink("one", other)
        self.fails(1, "solve", "poisson2d:3", "-o", one, f"--json={other}", says=["other", "two outputs"])
        self.assertEqual(self.read("one"), "old\n")
        self.ok("solve", "poisson2d:3", "-o", os.devnull, f"--json={os.devnull}", "--history", os.devnull)
        self.ok("solve", "poisson2d:3", "-o", "-", f"--json={one}")


class Json(Case):
    def one(self, *arguments, **more):
        text = self.ok(*arguments, **more).stdout
        self.assertEqual(text.count("\n"), 1)
        return json.loads(text)

    def test_main_job(self):
        a = Matrix(3, 4, [(0, 1, 2.0), (0, 3, 1.0), (2, 0, 1.5)])
        path = self.write("small.mtx", a.text())
        result = self.one(path, "--json", "--backend", "omp", "--threads", "2", "--verify=bitwise")
        self.assertEqual(
            list(result), ["schema", "tool", "machine", "matrix", "load", "result", "verify"]
        )
        self.assertEqual(result["schema"], "spmv/1")
        self.assertEqual(list(result["tool"]), ["version", "commit", "cuda", "flags", "command"])
        self.assertRegex(result["tool"]["version"], r"^\d+\.\d+\.\d+$")
        self.assertTrue(result["tool"]["command"].endswith("--json --backend omp --threads 2 --verify=bitwise"))
        self.assertEqual(result["machine"]["cpu"]["threads"], 2)
        self.assertTrue(result["machine"]["cpu"]["name"])
        self.assertEqual(
            result["matrix"],
            {
                "name": "small", "rows": 3, "cols": 4, "nnz": 3,
                "row_nnz": {"min": 0, "mean": 1.0, "max": 2, "std": (2 / 3) ** 0.5},
            },
        )  # fmt: skip
        self.assertEqual(result["load"]["source"], "mtx")
        self.assertEqual(result["load"]["bytes"], len(a.text()))
        self.assertGreater(result["load"]["seconds"], 0)
        r = result["result"]
        self.assertEqual((r["op"], r["backend"], r["method"], r["type"]), ("spmv", "omp", "tiles", "f64"))
        self.assertTrue(r["why"])
        self.assertEqual(r["model_bytes"], 3 * 12 + 4 * 4 + 8 * 7)
        seconds = r["seconds"]
        self.assertTrue(0 < seconds["min"] <= seconds["median"] <= seconds["max"])
        self.assertGreaterEqual(seconds["repeats"], 1)
        self.assertAlmostEqual(r["gbs"], r["model_bytes"] / seconds["median"] * 1e-9, delta=1e-9 * r["gbs"])
        self.assertAlmostEqual(r["spmv"]["gflops"], 6e-9 / seconds["median"], delta=1e-9 * r["spmv"]["gflops"])
        self.assertTrue(r["bitwise"]["equal"] and r["bitwise"]["repeats"] >= 2)
        for key in ["plan_seconds", "plan_bytes", "upload_seconds", "first_call_seconds"]:
            self.assertGreaterEqual(r[key], 0)
        self.assertEqual(result["verify"]["reference"], "ref")
        self.assertLessEqual(result["verify"]["worst_error_over_bound"], 1)

    def test_parts_that_do_not_apply_are_absent(self):
        result = self.one("--json", "poisson2d:3", "--verify=off")
        self.assertNotIn("verify", result)
        self.assertNotIn("bitwise", result["result"])
        self.assertEqual(result["load"]["source"], "spec")
        self.assertEqual(result["matrix"]["name"], "poisson2d:3")
        self.assertEqual(set(result["load"]), {"source", "seconds", "memory_estimate", "memory_peak"})

    def test_command_line_reads_back(self):
        path = self.write("it's a.mtx", Matrix.random(2, 2, 2, seed=6).text())
        y = self.write("y 1.txt", "")
        command = self.one(path, "--json", "-o", y)["tool"]["command"]
        words = subprocess.run(
            ["bash", "-c", "printf '%s\\n' " + command], capture_output=True, text=True, check=True
        ).stdout.splitlines()
        self.assertEqual(words, [PROGRAM, path, "--json", "-o", y])

    def test_names_that_are_not_utf8(self):
        path = os.path.join(os.fsencode(self.folder), b"a\xff.mtx")
        with open(path, "w", encoding="utf-8") as file:
            file.write(Matrix.random(2, 2, 2, seed=8).text())
        result = self.one(os.fsdecode(path), "--json")
        self.assertEqual(result["matrix"]["name"], "a?")
        self.assertIn("a?.mtx", result["tool"]["command"])

    def test_where_y_and_json_go(self):
        j, y = os.path.join(self.folder, "r.json"), os.path.join(self.folder, "y.txt")
        done = self.ok("poisson2d:3", f"--json={j}")
        self.assertEqual(numbers(done.stdout), poisson2d(3))
        self.assertEqual(json.loads(self.read("r.json"))["matrix"]["rows"], 9)
        self.one("matvec", "poisson2d:3", "--json", "-o", y)
        self.assertEqual(numbers(self.read("y.txt")), poisson2d(3))
        self.fails(1, "matvec", "poisson2d:3", "--json", "-o", "-", says="--json=FILE")

    def test_json_file_is_replaced_or_kept(self):
        j = self.write("r.json", "old\n")
        self.ok("poisson2d:2", f"--json={j}")
        written = self.read("r.json")
        self.assertEqual(json.loads(written)["schema"], "spmv/1")
        # Some OpenMP runtimes write a shared file of 1 KiB; the limit must allow it.
        done = run("poisson2d:2", f"--json={j}", "-v", *["--threads=1"] * 200, **limit_files(1024))
        self.assertEqual(done.returncode, 2)
        self.assertIn("r.json", done.stderr)
        self.assertEqual(self.read("r.json"), written)
        done = run("poisson2d:2", f"--json={self.folder}/no/r.json")
        self.assertEqual(done.returncode, 2)
        self.assertIn("no/r.json", done.stderr)
        self.assertEqual(sorted(os.listdir(self.folder)), ["r.json"])


def symmetric(rows):
    """A Matrix with the entries of the dense rows."""
    n = len(rows)
    return Matrix(n, n, [(i, j, rows[i][j]) for i in range(n) for j in range(n) if rows[i][j] != 0])


class Solve(Case):
    quick = ["--backend", "omp", "--threads", "2"]

    def cg(self, *arguments, code=0, **more):
        """"result" of the JSON of a solve that ends with this exit code."""
        done = run("solve", *arguments, "--json", **more)
        self.assertEqual(done.returncode, code, done.stderr)
        return json.loads(done.stdout)["result"]

    def history(self, *arguments, code=0):
        """The residuals of the history; checks that its iterations count up from 0."""
        path = os.path.join(self.folder, "history.csv")
        done = run("solve", *arguments, "--history", path, "-q")
        self.assertEqual(done.returncode, code, done.stderr)
        header, *lines = self.read("history.csv").splitlines()
        self.assertEqual(header, "iteration,residual")
        pairs = [line.split(",") for line in lines]
        self.assertEqual([int(i) for i, _ in pairs], list(range(len(pairs))))
        return [float(r) for _, r in pairs]

    def test_known_iteration_counts_on_every_backend_and_method(self):
        for backend, methods in self.usable_backends():
            for method, size, known in [(m, 32, 62) for m in methods] + [("auto", 100, 183)]:
                spec = f"poisson2d:{size}"
                with self.subTest((backend, method, spec)):
                    result = self.cg(spec, "--solution", "ones", "--backend", backend, "--method", method)
                    cg = result["cg"]
                    self.assertLessEqual(abs(cg["iterations"] - known), 2 + known // 50)
                    self.assertEqual((result["backend"], cg["status"]), (backend, "ok"))
                    norm_b = sum(v * v for v in poisson2d(size)) ** 0.5
                    self.assertLessEqual(cg["true_residual"], 1e-8 * norm_b)

    def test_x_and_summary(self):
        done = self.ok("solve", "poisson2d:20", "--solution", "ones", "--rtol", "1e-12")
        x = numbers(done.stdout)
        self.assertEqual(len(x), 400)
        self.assertLess(max(abs(v - 1) for v in x), 1e-9)
        for words in ["400 x 400", "method", "solved after", "each", "(true)", "(recurrence)", "tolerance",
                      "error against ones", "b - A x checked against"]:  # fmt: skip
            self.assertIn(words, done.stderr)
        self.assertTrue(all(line.startswith(("spmv: ", "  ")) for line in done.stderr.splitlines()))
        self.assertEqual(self.ok("solve", "-q", "poisson2d:20").stderr, "")
        self.assertEqual(self.ok("solve", "poisson2d:20", "--solution", "ones", "--rtol", "1e-12", "--threads", "1").stdout, done.stdout)

    def test_b_x0_and_exact_start(self):
        a = symmetric([[4.0, -1.0, 0.0], [-1.0, 4.0, -0.5], [0.0, -0.5, 2.0]])
        exact = [1.5, -2.0, 8.0]
        matrix, b = self.write("a.mtx", a.text()), self.vector("b.txt", a.times(exact))
        done = self.ok("solve", matrix, b)
        for got, wanted in zip(numbers(done.stdout), exact):
            self.assertLess(abs(got - wanted), 1e-6)
        self.assertNotIn("against ones", done.stderr)
        start = self.vector("x0.txt", exact)
        self.assertEqual(self.cg(matrix, b, "--x0", start)["cg"]["iterations"], 0)
        self.assertEqual(numbers(self.ok("solve", matrix, b, "--x0", start).stdout), exact)
        self.assertGreater(self.cg(matrix, b)["cg"]["iterations"], 0)
        self.assertEqual(self.ok("solve", "-", b, stdin=a.text()).stdout, done.stdout)
        self.assertEqual(self.ok("solve", matrix, "-", stdin=self.read("b.txt")).stdout, done.stdout)
        self.fails(1, "solve", matrix, "-", "--x0", "-", says="once")

    def test_own_matrix_and_tiny_ones(self):
        x = numbers(self.ok("solve", self.data("symmetric4.mtx"), "--solution", "ones").stdout)
        self.assertEqual(len(x), 4)
        self.assertLess(max(abs(v - 1) for v in x), 1e-8)
        empty = "%%MatrixMarket matrix coordinate real general\n0 0 0\n"
        none = self.ok("solve", "-", stdin=empty)
        self.assertEqual(none.stdout, "")
        self.assertIn("no rows", none.stderr)
        self.assertNotIn("solved after", none.stderr)
        self.assertEqual(self.ok("solve", "-", "--solution", "ones", stdin=symmetric([[4.0]]).text()).stdout, "1\n")
        zero = self.vector("zero.txt", [0.0] * 9)
        self.assertEqual(self.ok("solve", "poisson2d:3", zero).stdout, "0\n" * 9)
        pattern = "%%MatrixMarket matrix coordinate pattern symmetric\n2 2 2\n1 1\n2 2\n"
        for type_name in ("f64", "f32"):
            self.assertEqual(self.ok("solve", "-", "--solution", "ones", "--type", type_name, stdin=pattern).stdout, "1\n1\n")

    def test_single_precision(self):
        result = self.cg("poisson2d:20", "--solution", "ones", "--type", "f32", "--rtol", "1e-5")
        self.assertEqual((result["type"], result["cg"]["precision"]), ("f32", "f32"))
        exact = self.ok("solve", "poisson2d:20", "--solution", "ones", "--type", "f32", "--rtol", "1e-5", "--format", "%.1f").stdout
        self.assertEqual(exact, "1.0\n" * 400)

    def test_tolerances(self):
        loose = self.cg("poisson2d:20", "--rtol", "1e-2")["cg"]
        tight = self.cg("poisson2d:20", "--rtol", "1e-10")["cg"]
        self.assertEqual((loose["rtol"], tight["rtol"]), (1e-2, 1e-10))
        self.assertTrue(0 < loose["iterations"] < tight["iterations"])
        self.assertTrue(tight["true_residual"] < 1e-6 * loose["true_residual"])
        self.assertLessEqual(self.cg("poisson2d:20", "--rtol", "0", "--atol", ".5")["cg"]["true_residual"], 0.5)
        self.assertEqual(self.cg("poisson2d:20", "--atol", "1e9")["cg"]["iterations"], 0)

    def test_history_has_a_line_for_each_iteration_and_the_start(self):
        residuals = self.history("poisson2d:32", "--solution", "ones")
        cg = self.cg("poisson2d:32", "--solution", "ones")["cg"]
        self.assertEqual(len(residuals), cg["iterations"] + 1)
        self.assertEqual(residuals[-1], cg["recurrence_residual"])
        self.assertAlmostEqual(residuals[0], sum(v * v for v in poisson2d(32)) ** 0.5, places=9)
        self.assertEqual(len(self.history("poisson2d:32", "--max-iterations", "5", code=7)), 6)
        self.assertEqual(len(self.history("poisson2d:32", "--rtol", "0", code=7)),
                         self.cg("poisson2d:32", "--rtol", "0", code=7)["cg"]["iterations"] + 1)  # fmt: skip
        self.assertEqual(self.history("poisson2d:2", self.vector("zero.txt", [0.0] * 4)), [0.0])

    def test_files_are_replaced_or_kept(self):
        x, history = self.write("x.txt", "old\n"), self.write("h.csv", "old\n")
        done = self.ok("solve", "poisson2d:40", "-o", x, "--history", history)
        self.assertEqual(done.stdout, "")
        written = [self.read(name) for name in ("x.txt", "h.csv")]
        self.assertEqual(len(numbers(written[0])), 1600)
        self.assertGreater(len(written[1]), 400)
        before = sorted(os.listdir(self.folder))
        self.fails(2, "solve", "poisson2d:40", "-o", x, says="x.txt", **limit_files(1024))
        done = run("solve", "poisson2d:40", "-q", "--history", history, **limit_files(1024))
        self.assertEqual(done.returncode, 2)
        self.assertIn("h.csv", done.stderr)
        self.assertEqual([self.read(name) for name in ("x.txt", "h.csv")], written)
        self.assertEqual(sorted(os.listdir(self.folder)), before)
        for bad in ("", "-"):
            self.fails(1, "solve", "poisson2d:2", "--history", bad, says="--history")

    def test_json(self):
        x = os.path.join(self.folder, "x.txt")
        words = ["solve", "poisson2d:30", "--solution", "ones", "--json", "-o", x, "--verify=bitwise"]
        words += ["--precond", "none"]
        text = self.ok(*words, *self.quick).stdout
        self.assertEqual(text.count("\n"), 1)
        result = json.loads(text)
        self.assertEqual(len(numbers(self.read("x.txt"))), 900)
        self.assertEqual(list(result), ["schema", "tool", "machine", "matrix", "load", "result", "verify"])
        self.assertEqual(result["matrix"]["rows"], 900)
        r = result["result"]
        self.assertEqual((r["op"], r["backend"], r["method"], r["type"]), ("cg", "omp", "tiles", "f64"))
        self.assertEqual(r["bitwise"], {"repeats": 1, "equal": True})
        cg = r["cg"]
        self.assertEqual(
            list(cg),
            ["solver", "why_solver", "precond", "precision", "status", "iterations", "rtol", "recurrence_residual",
             "true_residual", "setup_seconds", "seconds_per_iteration", "method", "why", "restarts", "rung", "largest_error",
             "estimated_error_energy_norm", "backward_error", "backward_row", "forward_error", "null_vectors", "null_part",
             "energy_norm"],
        )  # fmt: skip
        self.assertEqual((cg["precond"], cg["precision"], cg["status"], cg["rtol"]), ("none", "f64", "ok", 1e-8))
        self.assertLess(abs(cg["recurrence_residual"] - cg["true_residual"]), 1e-3 * cg["true_residual"])
        # ||ones||_A^2 = ones'b
        self.assertLess(abs(cg["energy_norm"] ** 2 / (4 * 30) - 1), 1e-6)
        self.assertTrue(0 < cg["estimated_error_energy_norm"] < 1e-6 * cg["energy_norm"])
        self.assertGreaterEqual(cg["setup_seconds"], 0)
        self.assertGreater(cg["seconds_per_iteration"], 0)
        # The iterations are a part of the time of the solve, which making the solver is not.
        self.assertGreaterEqual(r["seconds"]["median"], cg["iterations"] * cg["seconds_per_iteration"] * (1 - 1e-9))
        self.assertLessEqual(result["verify"]["worst_error_over_bound"], 1)
        # The rung may use another order of summation.
        self.assertLess(abs(result["verify"]["true_residual"] - cg["true_residual"]), 1e-5 * cg["true_residual"])
        self.assertNotIn("verify", json.loads(self.ok("solve", "poisson2d:3", "--json", "--verify=off").stdout))
        self.fails(1, "solve", "poisson2d:3", "--json", "-o", "-", says="--json=FILE")

    def test_7_limit(self):
        done = run("solve", "poisson2d:20", "--solution", "ones", "--max-iterations", "5")
        self.assertEqual(done.returncode, 7)
        self.assertIn("5 iterations", done.stderr)
        self.assertIn("stopped after 5", done.stderr)
        x = numbers(done.stdout)
        self.assertEqual(len(x), 400)
        # The corners, where b is largest.
        self.assertTrue(all(0 < v < 3 for v in (x[0], x[19], x[-1])))
        cg = self.cg("poisson2d:20", "--solution", "ones", "--max-iterations", "5", code=7)["cg"]
        self.assertEqual((cg["status"], cg["iterations"]), ("iterations", 5))
        # The solution so far is the start of the next run.
        start = self.write("x0.txt", done.stdout)
        again = self.cg("poisson2d:20", "--solution", "ones", "--max-iterations", "5", "--x0", start, code=7)["cg"]
        self.assertLess(again["true_residual"], cg["true_residual"])

    def test_7_stagnation(self):
        done = run("solve", "poisson2d:20", "--solution", "ones", "--type", "f32", "--rtol", "1e-12", "--format", "%.3f")
        self.assertEqual(done.returncode, 7)
        self.assertEqual(done.stderr.count("true residual stays at"), 1)
        self.assertEqual(done.stdout, "1.000\n" * 400)
        cg = self.cg("poisson2d:20", "--solution", "ones", "--type", "f32", "--rtol", "1e-12", "--verify=bitwise", code=7)
        self.assertEqual(cg["cg"]["status"], "stagnation")
        self.assertTrue(cg["bitwise"]["equal"])

    def test_7_not_finite(self):
        b = self.write("b.txt", "1\nnan\n1\n1\n")
        x0 = self.vector("x0.txt", [3.0, 1.0, 4.0, 1.0])
        done = run("solve", "poisson2d:2", b, "--x0", x0)
        self.assertEqual(done.returncode, 7)
        self.assertIn("b has nan in row 2", done.stderr)
        self.assertEqual(done.stdout, "3\n1\n4\n1\n")
        cg = self.cg("poisson2d:2", b, code=7)["cg"]
        self.assertEqual((cg["status"], cg["true_residual"]), ("not_finite", None))
        self.assertEqual(str(self.history("poisson2d:2", b, code=7)), "[nan]")
        a = symmetric([[1.0, float("nan")], [float("nan"), 1.0]])
        self.assertEqual(run("solve", "-", stdin=a.text()).returncode, 7)
        large = self.vector("large.txt", [1.0, math.inf, 1.0, 1.0])
        self.assertEqual(run("solve", "poisson2d:2", large).returncode, 7)

    def test_squares_out_of_range_are_checked(self):
        rng = random.Random(3)
        for type_name, scales in (("f64", (1e200, 1e-190)), ("f32", (1e30, 1e-24))):
            for scale in scales:
                b = self.vector("b.txt", [rng.uniform(-1, 1) * scale for _ in range(100)])
                done = self.ok("solve", "poisson2d:10", b, "--rtol", "1e-4", "--type", type_name)
                self.assertIn("b - A x checked", done.stderr)
                self.assertNotIn("CHECK FAILED", done.stderr)

    def test_8_not_suited(self):
        self.fails(8, "solve", self.data("pattern5x8.mtx"), "--solver", "gmres", says=["5 x 8", "square", "lsmr"])
        self.fails(8, "solve", self.data("skew3.mtx"), "--solver", "cg", says="skew")
        self.fails(8, "solve", "-", "--solver", "cg", stdin=Matrix(2, 2, [(0, 1, 1.0)]).text(), says="not symmetric")
        differ = [(0, 0, 1.0), (0, 1, 2.0), (1, 0, 3.0), (1, 1, 1.0)]
        self.fails(8, "solve", "-", "--solver", "cg", stdin=Matrix(2, 2, differ).text(), says="the values are not")

    def test_8_not_positive_names_the_iteration(self):
        first = symmetric([[1.0, 0.0], [0.0, -2.0]])
        self.fails(8, "solve", "-", "--solver", "cg", "--precond", "none", stdin=first.text(), says=["p'Ap", "iteration 0"])
        # The first direction has positive curvature, the second does not.
        later = self.write("later.mtx", symmetric([[1.0, 2.0], [2.0, 1.0]]).text())
        b = self.vector("b.txt", [1.0, 0.25])
        words = ["solve", later, b, "--solver", "cg", "--precond", "none"]
        self.fails(8, *words, says=["p'Ap", "iteration 1"])
        self.assertEqual(self.cg(*words[1:], code=8)["cg"]["status"], "not_positive")
        self.assertEqual(len(self.history(*words[1:], code=8)), 2)

    def test_4_sizes(self):
        b = self.vector("b.txt", [1.0, 2.0])
        self.fails(4, "solve", "poisson2d:3", b, says=["b.txt", "2 numbers", "b needs 9"])
        self.fails(4, "solve", "poisson2d:3", "--x0", b, says=["2 numbers", "x0 needs 9"])
        self.fails(4, "solve", "poisson2d:3", "--type", "i32", says="i32")

    def test_1_usage(self):
        for option, bad in [
            ("--rtol", "-1"), ("--rtol", "nan"), ("--rtol", "small"), ("--atol", "-0.5"), ("--max-iterations", "0"),
            ("--max-iterations", "-3"), ("--max-iterations", "2.5"),
        ]:  # fmt: skip
            self.fails(1, "solve", "poisson2d:3", option, bad, says=[option, bad])
        self.fails(1, "solve", "poisson2d:3", "b", "c", says="unexpected argument")
        self.fails(1, "solve", says="argument is missing")
        for backend, methods in self.usable_backends():
            self.fails(1, "solve", "poisson2d:3", "--backend", backend, "--method", "sparkle",
                       says=[*methods, "unknown method"])  # fmt: skip
            self.fails(1, "solve", "poisson2d:3", "--backend", backend, "--rung", "sparkle",
                       says=["unknown rung", "textbook"])  # fmt: skip
        self.fails(1, "solve", "poisson2d:3", "--backend", "ref", "--rung", "fused", says=["there are: auto, textbook"])
        self.fails(1, "solve", "poisson2d:3", "--backend", "omp", "--rung", "sparkle", says=["auto, fused, textbook"])

    def test_9_planted_errors_are_found(self):
        plant = Checks.plant("5")
        self.fails(9, "solve", "poisson2d:4", says=["CHECK FAILED", "b = A solution", "row 6: "], **plant)
        b = self.vector("b.txt", poisson2d(4))
        for (backend, _), type_name in itertools.product(self.usable_backends(), ["f64", "f32"]):
            words = ["solve", "poisson2d:4", b, "--rtol", "1e-4", "--backend", backend, "--type", type_name]
            done = run(*words, **plant)
            self.assertEqual(done.returncode, 9)
            self.assertIn("of b - A x exceed the bound\nspmv: worst row 6: ", done.stderr)
            # in f32 the norm is that of wide sums of x, which have no planted error
            self.assertEqual("the solver reports a true residual of" in done.stderr, type_name == "f64")
            self.assertEqual(len(numbers(done.stdout)), 16)
            self.assertIn("not checked", self.ok(*words, "--verify=off", **plant).stderr)

    def test_progress_line_on_terminal_after_half_a_second(self):
        quick = Streams.on_terminal(self, "solve", "poisson2d:10")
        self.assertNotIn("\x1b", quick)
        line = r"spmv: solving: iteration \d+, residual [-.e0-9]+, tolerance [-.e0-9]+, [.e+0-9]+ iterations a second"
        leader, terminal = os.openpty()
        arguments = "poisson2d:300", "--backend", "ref", "--precond", "none", "--rtol", "1e-300"
        with subprocess.Popen([PROGRAM, "solve", *arguments], stdout=subprocess.DEVNULL, stderr=terminal) as slow:
            os.close(terminal)
            text = b""
            while re.search(line.encode(), text) is None:  # OSError: the program has ended without it
                text += os.read(leader, 65536)
            slow.send_signal(signal.SIGINT)
            text += read_terminal(leader)
        self.assertRegex(text.decode(), line + r"[^\r]*(\r[^\r]*)*\r\x1b\[K")

    def test_profile_adds_up(self):
        lines = self.ok("solve", "poisson2d:60", "-o", os.devnull).stderr
        parts = re.findall(r"(?m)^  (load|plan|solve|check) +[.0-9e+]+ .?s +([.0-9]+) %$", lines)
        self.assertEqual([name for name, _ in parts], ["load", "plan", "solve", "check"])
        self.assertLess(abs(sum(float(share) for _, share in parts) - 100), 0.21)

    def test_rung_and_method(self):
        for words, rung, product in [
            (["--rung", "textbook"], "textbook", "tiles"), (["--rung", "fused"], "fused", "tiles"),
            (["--rung", "textbook", "--method", "staged"], "textbook", "staged"), (["--method", "staged"], "textbook", "staged"),
            (["--method", "tiles"], "fused", "tiles"), (["--rung", "auto"], "fused", "tiles"),
        ]:  # fmt: skip
            result = self.cg("poisson2d:20", *words, *self.quick)
            self.assertEqual((result["cg"]["rung"], result["method"]), (rung, product), words)

    def test_rungs_in_method(self):
        """The spelling until 0.11."""
        for words, rung, product in [
            ("textbook", "textbook", "tiles"), ("fused", "fused", "tiles"), ("textbook:staged", "textbook", "staged"),
            ("staged", "textbook", "staged"), ("tiles", "fused", "tiles"), ("auto", "fused", "tiles"),
        ]:  # fmt: skip
            result = self.cg("poisson2d:20", "--method", words, *self.quick)
            self.assertEqual((result["cg"]["method"], result["method"]), (rung, product), words)
        self.assertEqual(self.cg("poisson2d:20", "--backend", "ref")["cg"]["method"], "textbook")
        self.fails(4, "solve", "poisson2d:20", "--method", "fused:staged", *self.quick, says="staged")
        self.fails(1, "solve", "poisson2d:20", "--method", "fused:sparkle", *self.quick, says="sparkle")

    def scaled(self):
        """The Laplacian scaled by a diagonal matrix on both sides: Jacobi needs far fewer
        iterations."""
        n = 12
        s = [1.0 + 7 * i % 10 for i in range(n * n)]
        entries = []
        for i, j in itertools.product(range(n), range(n)):
            row = n * i + j
            for di, dj in [(0, 0), (0, 1), (1, 0), (0, -1), (-1, 0)]:
                if 0 <= i + di < n and 0 <= j + dj < n:
                    col = n * (i + di) + j + dj
                    entries.append((row, col, (4.0 if row == col else -1.0) * s[row] * s[col]))
        return self.write("scaled.mtx", Matrix(n * n, n * n, entries).text())

    def test_preconditioners(self):
        matrix = self.scaled()
        none, jacobi = (self.cg(matrix, "--precond", name)["cg"] for name in ("none", "jacobi"))
        self.assertEqual((none["precond"], jacobi["precond"]), ("none", "jacobi"))
        self.assertLess(2 * jacobi["iterations"], none["iterations"])
        self.assertTrue(jacobi["precond_layout"])
        auto = self.ok("solve", matrix, "--precond", "auto", "--solver", "cg") # without a method: a dense factor
        self.assertRegex(auto.stderr, r"spmv: preconditioner [a-z0-9-]+, set up in")
        self.fails(1, "solve", matrix, "--precond", "sparkle", says=["sparkle", "jacobi"])
        bad = self.write("bad.mtx", symmetric([[1.0, 2.0], [2.0, -1.0]]).text())
        self.fails(8, "solve", bad, "--precond", "jacobi", says="diagonal")

    def test_all_preconditioners(self):
        matrix, x = self.scaled(), os.path.join(self.folder, "x.txt")
        history = os.path.join(self.folder, "h.csv")
        done = self.ok("solve", matrix, "--solution", "ones", "--precond", "all", "--json", "-o", x, "--history", history)
        results = [json.loads(line) for line in done.stdout.splitlines()]
        names = [r["result"]["cg"]["precond"] for r in results]
        self.assertEqual(names[:2], ["none", "jacobi"])
        self.assertEqual(len(set(names)), len(names))
        solved = [r for r in results if r["result"]["cg"]["status"] == "ok"]
        self.assertGreaterEqual(len(solved), 4)
        for r in results:
            cg = r["result"]["cg"]
            self.assertEqual(cg["status"], "unsupported" if cg["precond"] == "schur" else "ok")  # there is one field
            if cg["precond"] == "schur":
                continue
            self.assertLess(cg["largest_error"], 1e-4)
            self.assertLessEqual(r["verify"]["worst_error_over_bound"], 1)
        for name in names:
            self.assertRegex(done.stderr, rf"(?m)^  {name} +(\d+|-) ")
        fewest = min(r["result"]["cg"]["iterations"] for r in solved)
        best = next(r["result"]["cg"] for r in solved if r["result"]["cg"]["iterations"] == fewest)
        self.assertIn("written as x", next(line for line in done.stderr.splitlines() if f" {best['precond']} " in line))
        self.assertLess(abs(max(abs(v - 1) for v in numbers(self.read("x.txt"))) - best["largest_error"]), 1e-15)
        header, *lines = self.read("h.csv").splitlines()
        self.assertEqual(header, "precond,iteration,residual")
        for r in solved:
            cg = r["result"]["cg"]
            self.assertEqual(sum(line.startswith(cg["precond"] + ",") for line in lines), cg["iterations"] + 1)
        # No preconditioner solves it: the exit code is that of the written x.
        done = run("solve", "poisson3d:14", "--solution", "ones", "--precond", "all", "--max-iterations", "1", "-o", x)
        self.assertEqual(done.returncode, 7)
        self.assertIn("1 iteration", done.stderr)
        self.assertEqual(len(numbers(self.read("x.txt"))), 14**3)

    def test_all_preconditioners_unsolved_write_the_x_of_the_smallest_residual(self):
        x = os.path.join(self.folder, "x.txt")  # a matrix with a large envelope, for which there is no cholesky
        done = run("solve", "poisson3d:14", "--solution", "ones", "--precond", "all", "--max-iterations", "1", "--json",
                   "-o", x)
        self.assertEqual(done.returncode, 7)
        results = [json.loads(line)["result"]["cg"] for line in done.stdout.splitlines()]
        self.assertNotIn("ok", [cg["status"] for cg in results])
        best = min((cg for cg in results if cg["status"] == "iterations"), key=lambda cg: cg["true_residual"])
        self.assertNotEqual(best["precond"], "none")  # the first one with this number of iterations
        marked = [line for line in done.stderr.splitlines() if "written as x" in line]
        self.assertEqual(len(marked), 1, done.stderr)
        self.assertIn(f" {best['precond']} ", marked[0])
        self.assertLess(abs(max(abs(v - 1) for v in numbers(self.read("x.txt"))) - best["largest_error"]), 1e-15)

    def test_all_preconditioners_tell_of_no_x_that_is_not_written(self):
        done = self.ok("solve", self.scaled(), "--precond", "all", "--json")
        self.assertIn("jacobi", done.stderr)
        self.assertNotIn("written as x", done.stderr)
        bad = self.write("bad.mtx", symmetric([[1.0, 0.0], [0.0, -2.0]]).text())
        done = run("solve", bad, "--solver", "cg", "--precond", "all")
        self.assertEqual((done.returncode, done.stdout), (8, ""))
        self.assertNotIn("written as x", done.stderr)

    def test_inner_iterations_in_f32(self):
        cg = self.cg("poisson2d:60", "--inner", "--rtol", "1e-12")["cg"]
        self.assertEqual((cg["precision"], cg["status"]), ("f64, inner f32", "ok"))
        self.assertLess(cg["largest_error"], 1e-9)
        self.fails(4, "solve", "poisson2d:3", "--inner", "--type", "f32", says="--inner")
        large = symmetric([[1e40, 0.0], [0.0, 1.0]]).text()
        self.fails(3, "solve", "-", "--inner", stdin=large, says=["inner iterations", "1e+40", "too large for f32"])
        self.assertEqual(self.cg("poisson2d:20", "--inner", "--precond", "jacobi")["cg"]["precond"], "jacobi")

    def test_manufactured_solutions(self):
        done = self.ok("solve", "poisson2d:20", "--rtol", "1e-12")
        self.assertEqual(self.ok("solve", "poisson2d:20", "--solution", "random", "--rtol", "1e-12").stdout, done.stdout)
        x = numbers(done.stdout)
        self.assertTrue(min(x) < -0.9 and max(x) > 0.9 and abs(sum(x)) < 60)
        self.assertRegex(done.stderr, r"largest error against the solution: [.0-9]+e-1[0-3]")
        self.fails(1, "solve", "poisson2d:3", "--solution", "twos", says="twos")
        b = self.vector("b.txt", [1.0] * 9)
        self.fails(1, "solve", "poisson2d:3", b, "--solution", "ones", says="--solution")

    def test_plot(self):
        svg, png = (os.path.join(self.folder, name) for name in ("p.svg", "p.PNG"))
        self.fails(1, "solve", "poisson2d:3", "--plot", "p.pdf", says=["p.pdf", ".png"])
        self.ok("solve", "poisson2d:20", "--precond", "all", "--plot", svg, "-q", "-o", os.devnull)
        picture = self.read("p.svg")
        self.assertTrue(picture.lstrip().startswith("<?xml") and picture.rstrip().endswith("</svg>"))
        colours = set(re.findall(r'stroke="(rgb\([^)]*\))"', picture)) | set(re.findall(r"stroke:(rgb\([^)]*\))", picture))
        self.assertGreaterEqual(len(colours), 5)  # one colour for each preconditioner, and the axes
        zero = self.vector("zero.txt", [0.0] * 9)
        self.ok("solve", "poisson2d:3", zero, "--plot", svg, "-o", os.devnull)
        done = run("solve", "poisson2d:20", "--plot", png, "-o", os.devnull)
        if done.returncode == 4:
            self.skipTest("no cairo")
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(png, "rb") as file:
            self.assertEqual(file.read(24), b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x03\x84\0\0\x02\x30")


class SolveSeveral(Case):
    """solve A B with n x k numbers: k systems at once."""

    n = 12
    factors = [1.0, 1e6, 0.0, -1e-4]

    def setUp(self):
        super().setUp()
        self.spec = f"poisson2d:{self.n}"
        rng = random.Random(21)
        self.x = [[f * rng.uniform(-1, 1) for _ in range(self.n**2)] for f in self.factors]
        self.b = [self.laplacian(x) for x in self.x]
        self.path = self.write("b.txt", self.lines(self.b))

    def laplacian(self, x):
        n = self.n
        at = lambda i, j: x[n * i + j] if 0 <= i < n and 0 <= j < n else 0.0
        return [
            4 * at(i, j) - at(i, j - 1) - at(i, j + 1) - at(i - 1, j) - at(i + 1, j) for i in range(n) for j in range(n)
        ]

    @staticmethod
    def lines(columns):
        return "".join(" ".join(repr(v) for v in row) + "\n" for row in zip(*columns))

    @staticmethod
    def columns(text):
        return list(zip(*([float(word) for word in line.split()] for line in text.split("\n")[:-1])))

    def cg(self, *arguments, code=0, **more):
        """"cg" of the JSON of a solve that ends with this exit code."""
        done = run("solve", *arguments, "--json", **more)
        self.assertEqual(done.returncode, code, done.stderr)
        self.last = json.loads(done.stdout)
        return self.last["result"]["cg"]

    def check(self, columns, rtol=1e-8):
        """Checks the error by its bound: the residual over the least eigenvalue, 8 sin^2(pi / (2 n
        + 2))."""
        least = 8 * math.sin(math.pi / (2 * self.n + 2)) ** 2
        self.assertEqual(len(columns), len(self.x))
        for got, want, b in zip(columns, self.x, self.b):
            bound = 1.01 * rtol * math.sqrt(sum(v * v for v in b)) / least
            self.assertLessEqual(math.sqrt(sum((g - w) ** 2 for g, w in zip(got, want))), bound)

    def test_x_on_every_backend_and_with_every_preconditioner(self):
        for backend, _ in self.usable_backends():
            for precond in "none", "jacobi", "block-jacobi", "chebyshev", "ic0", "fsai", "isai", "amg", "auto":
                if (backend, precond) == ("cuda", "ic0"):
                    self.fails(4, "solve", self.spec, self.path, "--backend", backend, "--precond", precond,
                               says="jacobi or amg")
                    continue
                with self.subTest((backend, precond)):
                    done = self.ok("solve", self.spec, self.path, "--backend", backend, "--precond", precond)
                    self.check(self.columns(done.stdout))
                    self.assertIn("b - A x checked against", done.stderr)

    def test_recycling(self):
        n, k = 30, 6
        steps = self.path + ".steps"
        with open(steps, "w") as f:
            for i in range(n * n):
                f.write(" ".join(repr(math.exp(-((i // n - 15 - 5 * math.cos(0.05 * v)) ** 2 + (i % n - 15) ** 2) / 30)) for v in range(k)) + "\n")
        words = f"poisson2d:{n}", steps, "--precond", "jacobi", "--solver", "cg"
        plain = self.cg(*words)["right_hand_sides"]
        told = self.ok("solve", *words, "--recycle", "4", "-o", os.devnull).stderr
        self.assertIn("recycling: 5 of 6 right-hand sides began in the span of solutions before", told)
        self.assertIn("reduced the residual by a factor of", told)
        each = self.cg(*words, "--recycle", "4")["right_hand_sides"]
        self.assertNotIn("recycled", plain[1])
        self.assertEqual([r.get("recycled") for r in each], [None, 1, 2, 3, 4, 4])
        for r in each:
            self.assertLessEqual(r["true_residual"], 1.01 * r["tolerance"])
        self.assertLess(each[-1]["iterations"], 0.7 * plain[-1]["iterations"])
        self.assertLess(each[-1]["start_residual"], 0.01 * each[-1]["given_residual"])
        self.fails(1, "solve", *words, "--recycle", "65", says="--recycle 65")

    def test_each_as_by_itself(self):
        for precond in "none", "ic0":
            together = self.cg(self.spec, self.path, "--precond", precond, "--backend", "omp")
            each = together["right_hand_sides"]
            self.assertEqual(len(each), 4)
            for v, r in enumerate(each):
                alone = self.cg(self.spec, self.vector("one.txt", self.b[v]), "--precond", precond, "--backend", "omp")
                self.assertNotIn("right_hand_sides", alone)
                self.assertLessEqual(abs(r["iterations"] - alone["iterations"]), 1)
                self.assertEqual((r["status"], alone["status"]), ("ok", "ok"))
                norm = math.sqrt(sum(b * b for b in self.b[v]))
                self.assertLessEqual(abs(r["norm_b"] - norm), 1e-13 * norm)
                self.assertLessEqual(r["true_residual"], r["tolerance"])
                self.assertLessEqual(abs(r["tolerance"] - 1e-8 * norm), 1e-20 * norm)
            self.assertEqual(each[2]["iterations"], 0)
            self.assertEqual(together["iterations"], max(r["iterations"] for r in each))

    def test_forms_in_and_out(self):
        array = self.write("b.mtx", f"%%MatrixMarket matrix array real general\n{self.n**2} 4\n" +
                           "".join(f"{v!r}\n" for column in self.b for v in column))  # fmt: skip
        binary = os.path.join(self.folder, "b.spmv")
        self.ok("matvec", f"diagonal:{self.n**2},values=constant", self.path, "-o", binary)
        text = self.ok("solve", self.spec, self.path).stdout
        for form in array, binary:
            self.assertEqual(self.ok("solve", self.spec, form).stdout, text)
        x = os.path.join(self.folder, "x.txt")
        self.assertEqual(self.ok("solve", self.spec, self.path, "-o", x).stdout, "")
        self.assertEqual(self.read("x.txt"), text)
        binary_x = os.path.join(self.folder, "x.spmv")
        self.ok("solve", self.spec, self.path, "-o", binary_x)
        self.assertEqual(self.ok(f"diagonal:{self.n**2},values=constant", binary_x).stdout, text)

    def test_start(self):
        start = self.write("x0.txt", self.lines([self.x[0], [5.0] * self.n**2, [1.0] * self.n**2, self.x[3]]))
        cg = self.cg(self.spec, self.path, "--x0", start)
        each = cg["right_hand_sides"]
        self.assertEqual([r["iterations"] > 0 for r in each], [False, True, False, False])
        self.check(self.columns(self.ok("solve", self.spec, self.path, "--x0", start).stdout))
        # Without b the message gives the number of generated right-hand sides.
        done = self.ok("solve", self.spec, "--x0", start, "-o", os.devnull)
        self.assertIn("4 of 4 right-hand sides solved", done.stderr)

    def test_manufactured_solutions(self):
        x = os.path.join(self.folder, "x.txt")
        cg = self.cg(self.spec, "--vectors", "3", "--solution", "random", "--rtol", "1e-12", "-o", x)
        each = cg["right_hand_sides"]
        self.assertTrue(all(0 < r["largest_error"] < 1e-10 for r in each))
        self.assertEqual(cg["largest_error"], max(r["largest_error"] for r in each))
        columns = self.columns(self.read("x.txt"))
        self.assertEqual(len({c[0] for c in columns}), 3)
        self.assertTrue(all(min(c) < -0.8 and max(c) > 0.8 for c in columns))
        words = [self.spec, "--vectors", "3", "--solution", "random", "--max-iterations", "3", "--solver", "cg", "-o", x]
        stopped = self.cg(*words, code=7)["right_hand_sides"]
        errors = [max(abs(v - w) for v, w in zip(*pair)) for pair in zip(self.columns(self.read("x.txt")), columns)]
        self.assertEqual(len(set(errors)), 3)
        for r, error in zip(stopped, errors):
            self.assertLess(abs(r["largest_error"] - error), 1e-9)
        ones = self.ok("solve", "poisson2d:2", "--vectors", "2", "--solution", "ones", "--format", "%.4f")
        self.assertEqual(ones.stdout, "1.0000 1.0000\n" * 4)

    def test_summary_has_the_worst_first(self):
        done = self.ok("solve", self.spec, self.path)
        table = re.findall(r"(?m)^ +(\d+) +(\d+) +(\S+) +(\S+) +(\S+) +(\S+)  (\w+)$", done.stderr)
        self.assertEqual(sorted(int(row[0]) for row in table), [1, 2, 3, 4])
        shares = [float(row[4]) / float(row[3]) if float(row[3]) > 0 else 0 for row in table]
        self.assertEqual(shares, sorted(shares, reverse=True))
        many = self.ok("solve", "poisson2d:3", "--vectors", "25", "-o", os.devnull)
        self.assertIn("the other 15 are not worse", many.stderr)
        self.assertEqual(len(re.findall(r"(?m)^ +\d+ .*  ok$", many.stderr)), 10)
        listed = self.ok("solve", "poisson2d:3", "--vectors", "25", "-o", os.devnull, "-v").stderr
        self.assertEqual(len(re.findall(r"(?m)^ +\d+ .*  ok$", listed)), 25)

    def test_failures_are_told_one_by_one(self):
        bad = [list(b) for b in self.b]
        bad[1][7] = float("nan")
        path = self.write("bad.txt", self.lines(bad))
        cg = self.cg(self.spec, path, code=7)
        each = [r["status"] for r in cg["right_hand_sides"]]
        self.assertEqual((each, cg["status"]), (["ok", "not_finite", "ok", "ok"], "not_finite"))
        self.assertIsNone(cg["right_hand_sides"][1]["true_residual"])
        self.assertIsNone(self.last["verify"]["true_residuals"][1])
        done = run("solve", self.spec, path)
        self.assertEqual(done.returncode, 7)
        self.assertIn("right-hand side 2 of 4", done.stderr)
        self.assertIn("3 of 4 right-hand sides solved", done.stderr)
        # The worst right-hand side comes first.
        self.assertRegex(done.stderr, r"(?m)^ +number .*\n +2 +0 .* not_finite$")
        columns = self.columns(done.stdout)
        self.assertEqual(set(columns[1]), {0.0})
        self.x[1] = columns[1]
        self.check(columns)
        # The limit: the message names the first right-hand side that needs more.
        cg = self.cg(self.spec, self.path, "--max-iterations", "3", "--solver", "cg", code=7)
        self.assertEqual([r["status"] for r in cg["right_hand_sides"]], ["iterations", "iterations", "ok", "iterations"])
        self.assertEqual(cg["status"], "iterations")

    def test_8_indefinite_for_one_is_no_x_for_all(self):
        matrix = self.write("a.mtx", symmetric([[1.0, 0.0, 0.0], [0.0, 2.0, 0.0], [0.0, 0.0, -2.0]]).text())
        b = self.write("b3.txt", "1 1\n2 0\n0 1\n")
        words = [matrix, b, "--solver", "cg", "--precond", "none"]
        done = self.fails(8, "solve", *words, says=["right-hand side 2 of 2", "p'Ap"])
        self.assertIn("1 of 2 right-hand sides solved", done.stderr)
        # Also if another one failed first, and in other ways.
        self.write("b3.txt", "1e-200 1\n2e-200 0\n0 1\n")
        self.fails(7, "solve", *words, says="right-hand side 1 of 2")
        self.assertEqual(self.cg(*words, code=7)["right_hand_sides"][1]["status"], "not_positive")

    def test_history_has_the_largest_residual(self):
        history = os.path.join(self.folder, "h.csv")
        self.ok("solve", self.spec, self.path, "--history", history, "-o", os.devnull)
        header, *lines = self.read("h.csv").splitlines()
        self.assertEqual(header, "iteration,residual")
        self.assertEqual([int(line.split(",")[0]) for line in lines], list(range(len(lines))))
        self.assertEqual(len(lines), self.cg(self.spec, self.path)["iterations"] + 1)
        norms = [math.sqrt(sum(v * v for v in b)) for b in self.b]
        self.assertLess(abs(float(lines[0].split(",")[1]) - max(norms)), 1e-12 * max(norms))

    def test_check_of_each(self):
        self.cg(self.spec, self.path, "--verify=bitwise", "--precond", "ic0")
        self.assertEqual((self.last["result"]["vectors"], self.last["result"]["bitwise"]["equal"]), (4, True))
        verify, each = self.last["verify"], self.last["result"]["cg"]["right_hand_sides"]
        self.assertLessEqual(verify["worst_error_over_bound"], 1)
        self.assertEqual(len(verify["true_residuals"]), 4)
        for checked, r in zip(verify["true_residuals"], each):
            self.assertLessEqual(abs(checked - r["true_residual"]), 1e-12 * r["true_residual"])
        # An error in the last right-hand side: the message names that one.
        done = run("solve", self.spec, self.path, env={"SPMV_TEST_PLANT_ERROR": "5"})
        self.assertEqual(done.returncode, 9)
        self.assertIn("worst row 6 of vector 4", done.stderr)
        self.assertIn("the solver reports a true residual of right-hand side 4 of 4 of", done.stderr)

    def test_all_preconditioners(self):
        done = self.ok("solve", self.spec, self.path, "--precond", "all", "--json", "-o", os.path.join(self.folder, "x.txt"))
        results = [json.loads(line)["result"]["cg"] for line in done.stdout.splitlines()]
        self.assertGreaterEqual(sum(r["status"] == "ok" for r in results), 5)
        for r in results:
            if r["status"] == "ok":
                self.assertEqual([one["status"] for one in r["right_hand_sides"]], ["ok"] * 4)
        self.check(self.columns(self.read("x.txt")))

    def test_what_does_not_go_together(self):
        self.fails(4, "solve", self.spec, self.path, "--inner", says=["--inner", "one right-hand side", "4"])
        self.fails(1, "solve", self.spec, self.path, "--vectors", "4", says=["--vectors", "cannot be used with b"])
        self.fails(1, "solve", self.spec, "--vectors", "0", says="--vectors")
        self.fails(1, "solve", self.spec, "--vectors", "2,3", says="one number of right-hand sides")
        three = self.write("three.txt", self.lines(self.x[:3]))
        self.fails(4, "solve", self.spec, self.path, "--x0", three, says=["three.txt has 3 vectors, x0 needs 4"])
        self.fails(4, "solve", self.spec, "--vectors", "2", "--x0", three, says=["three.txt has 3 vectors, x0 needs 2"])
        self.fails(4, "solve", "poisson2d:3", self.path, says=["b.txt has 144 x 4 numbers, b needs 9 rows"])
        self.fails(4, "solve", self.spec, self.path, "--rung", "fused", "--precond", "ic0", "--backend", "omp", says="fused")


class Info(Case):
    def info(self, text, *arguments):
        return json.loads(self.ok("info", "-", "--json", *arguments, stdin=text).stdout)

    def test_counts(self):
        entries = [(0, 0, 1.0), (0, 4, 2.0), (0, 0, 3.0), (2, 1, 0.0), (3, 0, 1.0), (3, 1, 1.0), (3, 2, 1.0)]
        result = self.info(Matrix(4, 5, entries).text())
        self.assertEqual((result["matrix"]["rows"], result["matrix"]["cols"], result["matrix"]["nnz"]), (4, 5, 6))
        info = result["info"]
        expected = {
            "empty_rows": 1, "empty_cols": 1, "bandwidth": 4, "diagonal": 1, "explicit_zeros": 1, "not_finite": 0,
            "duplicates": 1, "pattern": False, "square": False, "symmetric": False,
        }  # fmt: skip
        self.assertEqual({key: info[key] for key in expected}, expected)
        self.assertAlmostEqual(info["row_extent"], (5 + 1 + 3) / 3)
        self.assertAlmostEqual(info["bw_frac"], (5 + 0 + 1 + 3) / 4 / 5)
        self.assertAlmostEqual(info["avg_neighbours"], (0 + 0 + 0 + 1 + 2 + 1) / 6)
        self.assertAlmostEqual(info["cross_row_similarity"], (1 / 2 + 1 + 0) / 3)
        self.assertEqual(
            info["histogram"],
            [{"from": 0, "to": 0, "rows": 1}, {"from": 1, "to": 1, "rows": 1}, {"from": 2, "to": 3, "rows": 2}],
        )
        self.assertTrue(result["result"]["method"] and result["result"]["why"])

    def test_methods_that_are_not_taken(self):
        for backend in "auto", "ref", "omp":
            words = "info", "poisson2d:30", "--backend", backend
            result = json.loads(self.ok(*words, "--json", "-q").stdout)
            text = self.ok(*words).stdout
            passed = result["info"]["passed_over"]
            self.assertEqual(passed == [], result["result"]["backend"] != "cuda")  # the others have one method for all
            for i, row in enumerate(passed):
                label = "" if i > 0 else "not taken"
                self.assertIn(f"{label:24}{row['method']}: {row['reason']}"[:90], text)
            self.assertEqual("not taken" in text, passed != [])

    def test_symmetry_is_checked(self):
        for name, entries in {
            "symmetric": [(0, 1, 2.0), (1, 0, 2.0), (1, 1, 5.0)],
            "skew-symmetric": [(0, 1, 2.0), (1, 0, -2.0)],
            "symmetric pattern, values differ by at most 0.33 of the largest": [(0, 1, 2.0), (1, 0, 3.0)],
            "not symmetric": [(0, 1, 2.0)],
        }.items():
            text = self.ok("info", "-", stdin=Matrix(2, 2, entries).text()).stdout
            self.assertRegex(text, rf"(?m)^symmetry +{name}$")
        wide = self.ok("info", "-", stdin=Matrix(2, 3, []).text()).stdout
        self.assertRegex(wide, r"(?m)^symmetry +not square$")

    def test_text(self):
        text = self.ok("info", "poisson2d:10").stdout
        for words in ["100 x 100", "460", "bandwidth fraction", "neighbours in the row", "like the next row", "method", "tiles" if "omp" in text else "on ", "row length"]:
            self.assertIn(words, text)
        # rows of 3 (the corners), 4 and 5 entries: bins 2-3 and 4-7
        self.assertRegex(text, r"(?m)^ +2-3 +4  #$")
        self.assertRegex(text, r"(?m)^ +4-7 +96  #{40}$")

    def test_not_finite_and_pattern(self):
        result = self.info("%%MatrixMarket matrix coordinate pattern general\n2 2 1\n1 1\n")
        self.assertTrue(result["info"]["pattern"])
        result = self.info("%%MatrixMarket matrix coordinate real general\n2 2 2\n1 1 inf\n2 2 1\n")
        self.assertEqual(result["info"]["not_finite"], 1)
        self.assertIn("pattern", self.ok("info", self.data("pattern5x8.mtx")).stdout)

    def test_method_by_name(self):
        result = json.loads(self.ok("info", "poisson2d:3", "--method", "staged", "--json").stdout)
        self.assertEqual(result["result"]["method"], "staged")

    def test_plan(self):
        self.assertRegex(self.ok("info", "poisson2d:10").stdout, r"(?m)^memory of the plan +\d+ bytes, made in \S+ [mu]?s$")
        for how in ["auto", "off", "columns", "values"]:
            result = json.loads(self.ok("info", "poisson2d:3", "--compress", how, "--json").stdout)["result"]
            self.assertIsInstance(result["layout"], str)
            self.assertFalse(how == "off" and "16-bit columns in 100 %" in result["layout"])
        self.fails(1, "info", "poisson2d:3", "--compress", "maybe", says="--compress maybe: must be auto, off, columns or values")

    def test_table_of_values(self):
        """Only the methods slices and tiles on cuda have tables of values. Elsewhere the plan
        reports that, and y is the same as without."""
        says = "no table of values: only the methods slices and tiles on cuda have them"

        def run_with(command, size, backend, how, *more):
            return self.ok(command, f"poisson2d:{size}", "--backend", backend, "--compress", how, *more).stdout

        for backend in ["omp", "ref"]:
            for how in ["auto", "values"]:
                layout = json.loads(run_with("info", 9, backend, how, "--json"))["result"]["layout"]
                self.assertEqual(says in layout, how == "values", layout)
            self.assertEqual(*(run_with("matvec", 9, backend, how) for how in ["auto", "values"]))
        if "cuda" in dict(self.usable_backends()):
            layout = json.loads(run_with("info", 600, "cuda", "values", "--json"))["result"]["layout"]
            self.assertIn("a table of 2 values, 1 byte per nonzero", layout)
            for command in ["matvec", "solve"]:
                first, *others = (run_with(command, 600, "cuda", how) for how in ["off", "auto", "columns", "values"])
                for other in others:
                    self.assertEqual(first, other)
            for how, table in [("auto", True), ("columns", False)]:
                layout = json.loads(run_with("solve", 600, "cuda", how, "--json"))["result"]["layout"]
                self.assertEqual("a table of 2 values" in layout, table, layout)

    def test_table_of_values_in_a_solve_and_a_bench(self):
        for backend in ["omp", "ref"]:  # CPU backends make no attempt to build a table
            text = self.ok("solve", "poisson2d:20", "--backend", backend, "--json").stdout
            self.assertNotIn("table of values", text)
        for command in [["solve", "poisson2d:20", "--inner"], ["bench", "poisson2d:20", "--peers", "none"]]:
            with self.subTest(command):
                done = self.ok(*command, "--backend", "omp", "--compress", "values", "--json")
                self.assertIn("no table of values", json.dumps(json.loads(done.stdout)))


class Doctor(Case):
    def test_text(self):
        done = self.ok("doctor")
        self.assertEqual(done.stderr, "")
        for words in ["cpu", "backends", "ref", "omp", "cuda", "copy", "read", "triad", "PASS", "passed"]:
            self.assertIn(words, done.stdout)
        self.assertNotIn("FAIL", done.stdout)

    def test_json_covers_every_method_and_type(self):
        result = json.loads(self.ok("doctor", "--json").stdout)
        cpu = result["machine"]["cpu"]
        self.assertTrue(cpu["read_gbs"] > 0 and cpu["triad_gbs"] > 0 and cpu["threads"] >= 1)
        doctor = result["doctor"]
        self.assertGreater(doctor["memory"]["copy_gbs"], 0)
        usable = {b["name"] for b in doctor["backends"] if b["usable"]}
        self.assertEqual("device" in result["machine"], "cuda" in usable)
        if "cuda" in usable:
            gpu = result["machine"]["device"]
            self.assertTrue(gpu["name"] and gpu["copy_gbs"] > 0 and gpu["read_gbs"] > 0)
        wanted = {
            (b["name"], method, type_name)
            for b in doctor["backends"] if b["usable"]
            for method in b["methods"]
            for type_name in ("f64", "f32")
        }  # fmt: skip
        tested = {(t["backend"], t["method"], t["type"]) for t in doctor["self_test"]}
        self.assertEqual(tested, wanted)
        self.assertGreaterEqual(len(wanted), 4)
        self.assertTrue(doctor["passed"] and all(t["passed"] for t in doctor["self_test"]))
        self.assertTrue(all(t["reference"] != t["backend"] for t in doctor["self_test"]))


class Gen(Case):
    SPECS = [
        "poisson3d:4", "stencil27:4", "diagonal:9", "banded:9,2", "dense:4,7", "arrow:20,9,3", "uniform:30,40,2.5",
        "longrows:3,90,20", "empty:40,0.5", "powerlaw:50,3,2.1,20", "rmat:5,4,seed=3", "fem:20,2,5.5,values=constant",
        "interpolation3d:5,2", "elasticity2d:3,0.25", "elasticity3d:2", "rigid2d:3", "rigid3d:2",
    ]

    def test_round_trip(self):
        """The written matrix equals that of the SPEC bit for bit."""
        for spec in self.SPECS:
            for type_name in ("f64", "f32") if self.SPECS.index(spec) % 3 == 0 else ("f64",):
                with self.subTest(spec=spec, type=type_name):
                    path = os.path.join(self.folder, "a.mtx")
                    done = self.ok("gen", spec, "-o", path, "--type", type_name)
                    self.assertEqual(done.stdout, "")
                    self.assertIn(f"spmv: {spec}: ", done.stderr)
                    self.assertEqual(self.ok("gen", spec, "--type", type_name).stdout, self.read("a.mtx"))
                    self.assertEqual(self.ok("-q", path, "--type", type_name).stdout,
                                     self.ok("-q", spec, "--type", type_name).stdout)
                    read, made = (json.loads(self.ok("info", a, "--json").stdout) for a in (path, spec))
                    del read["info"]["duplicates"]
                    for info in read["info"], made["info"]:
                        info.pop("difference", None)  # of f32 values, and of their decimal numbers as f64
                    self.assertEqual(read["info"], made["info"])
                    self.assertEqual({**read["matrix"], "name": spec}, made["matrix"])

    def test_text(self):
        text = self.ok("gen", "banded:3,1,values=constant", "-o", "-", "-q").stdout
        entries = "1 1 1\n1 2 1\n2 1 1\n2 2 1\n2 3 1\n3 2 1\n3 3 1\n"
        self.assertEqual(text, "%%MatrixMarket matrix coordinate real general\n3 3 7\n" + entries)

    def test_json(self):
        result = json.loads(self.ok("gen", "dense:3,5", "--json").stdout)
        self.assertEqual((result["matrix"]["rows"], result["matrix"]["cols"], result["matrix"]["nnz"]), (3, 5, 15))
        self.assertEqual((result["matrix"]["name"], result["load"]["source"]), ("dense:3,5", "spec"))
        path, report = os.path.join(self.folder, "a.mtx"), os.path.join(self.folder, "r.json")
        result = json.loads(self.ok("gen", "dense:3,5", "--json", "-o", path).stdout)
        self.assertEqual(result["matrix"]["nnz"], 15)
        self.assertTrue(self.read("a.mtx").startswith("%%MatrixMarket"))
        text = self.ok("gen", "dense:3,5", f"--json={report}").stdout
        self.assertEqual(text, self.read("a.mtx"))
        self.assertEqual(json.loads(self.read("r.json"))["matrix"]["nnz"], 15)
        self.fails(1, "gen", "dense:3,5", "--json", "-o", "-", says="the matrix")

    def test_failures(self):
        path = self.write("a.mtx", "old\n")
        self.fails(1, "gen", says=["argument is missing", "spmv gen SPEC"])
        self.fails(1, "gen", "dense:3,5", "x", says="unexpected argument")
        self.fails(1, "gen", "cube:3", "-o", path, says=['"cube:3"', "poisson2d:N"])
        self.fails(1, "gen", path, says="no generator")  # an existing file is not a SPEC either
        self.fails(1, "gen", "dense:3", "-o", path, says=["dense:ROWS,COLS", "integers from 1"])
        self.fails(1, "gen", "dense:3,5", "--alpha", "2", says=["--alpha", "gen"])
        self.fails(3, "gen", "poisson2d:46341", "-o", path, says="46341^2")
        self.fails(5, "gen", "dense:100000000000,1000000", "-o", path, says="dense:100000000000,1000000")
        self.fails(4, "gen", "dense:3,5", "--type", "i32", says="i32")
        missing = os.path.join(self.folder, "no", "a.mtx")
        self.fails(2, "gen", "dense:3,5", "-o", missing, says=missing)
        before = sorted(os.listdir(self.folder))
        self.fails(2, "gen", "poisson2d:100", "-o", path, says="a.mtx", **limit_files(4096))
        self.assertEqual((self.read("a.mtx"), sorted(os.listdir(self.folder))), ("old\n", before))

    def test_other_commands_take_the_specs(self):
        # Inside, the diagonal 26 and 26 times -1 add up to 0.
        self.assertEqual(numbers(self.ok("stencil27:3").stdout)[13], 0)
        self.assertEqual(numbers(self.ok("dense:2,5,values=constant").stdout), [5.0, 5.0])
        self.assertEqual(len(numbers(self.ok("solve", "stencil27:5").stdout)), 125)


class Help(Case):
    def test_specs_are_listed(self):
        """The manual and the help list the same forms of SPEC."""
        forms = re.findall(r"(?m)^  ([a-z0-9]+:\S+)", self.ok("help", "gen").stdout)
        self.assertGreaterEqual(len(forms), 13)
        with open(os.path.join(SOURCE, "app", "spmv.1"), encoding="utf-8") as file:
            manual = re.findall(r"(?m)^\.It Cm ([a-z0-9]+)\\&: (.*)$", file.read())
        plain = [name + ":" + re.sub(r" ?\b(Ns|Ar)\b ?", "", rest).replace(" ", "") for name, rest in manual]
        closed = [form.replace("Op,", "[,") + "]" * form.count("Op,") for form in plain]
        self.assertEqual(closed, forms)

    def test_fits_a_screen(self):
        self.assertLessEqual(len(self.ok("--help").stdout.splitlines()), 24)
        self.assertEqual(len(self.fails(1).stderr.splitlines()), 10)

    def test_lists_commands_and_no_others(self):
        text = self.ok("--help").stdout
        self.assertEqual(re.findall(r"(?m)^  spmv ([a-z]+)", text), COMMANDS)
        self.assertEqual(self.ok("help").stdout, text)
        self.assertEqual(self.ok("-h").stdout, text)

    def test_of_one_command(self):
        for command in COMMANDS:
            text = self.ok("help", command).stdout
            self.assertIn(f"spmv {command}", text)
            self.assertEqual(self.ok(command, "--help").stdout, text)
            self.assertEqual("--transpose" in text, command == "matvec")
            self.assertEqual("--rtol" in text, command in ("solve", "eigs", "svds"))

    def test_every_default_is_shown(self):
        for command in COMMANDS:
            lists = self.ok(command, "--help").stdout.split("\nOptions:\n")[1].split("\n\n")[0]
            options = re.split(r"(?m)^  (?:-\w, |    )(?=--)", lists)[1:]
            self.assertGreater(len(options), 3)
            for option in options:
                name = re.match(r"--[a-z0-9-]+", option).group()
                self.assertEqual("(default: " in " ".join(option.split()), name not in ("--help", "--version"), option)

    def test_man_page_has_every_option_command_and_exit_code(self):
        with open(os.path.join(SOURCE, "app", "spmv.1"), encoding="utf-8") as file:
            page = file.read()
        helps = "".join(self.ok(command, "--help").stdout for command in COMMANDS)
        options = set(re.findall(r"(?m)^  (?:-\w, |    )--([a-z0-9][a-z0-9-]*)", helps))
        self.assertGreater(len(options), 35)
        documented = set(re.findall(r"(?m)^\.It .*Fl -([a-z0-9-]+)", page))
        self.assertEqual(documented, options)
        for command in COMMANDS:
            self.assertRegex(page, rf"(?m)^\.It Nm Cm {command}\b")
        listed = self.ok("--help").stdout.split("Exit codes:")[1]
        for code in range(11):
            self.assertRegex(page, rf"(?m)^\.It {code}$")
            self.assertRegex(listed, rf"(?m)(^| ){code} [a-z]")
        self.assertNotIn("best x", page)

    @unittest.skipUnless(shutil.which("mandoc"), "no mandoc")
    def test_man_page_is_clean(self):
        page = os.path.join(SOURCE, "app", "spmv.1")
        done = subprocess.run(
            ["mandoc", "-T", "lint", "-W", "warning", page], capture_output=True, text=True, check=False
        )
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))

    def test_version(self):
        self.assertRegex(self.ok("--version").stdout, r"^spmv \d+\.\d+\.\d+( \(.+\))?\n$")


def main(own_arguments=0):
    """The main of a test file: PROGRAM SOURCE, arguments of the file, arguments of unittest."""
    global PROGRAM, SOURCE
    PROGRAM, SOURCE = map(os.path.abspath, sys.argv[1:3])
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    with tempfile.TemporaryDirectory(prefix="spmv-program-") as suppressions:
        suppress_fontconfig(suppressions)
        unittest.main(argv=[sys.argv[0], *sys.argv[3 + own_arguments :]], verbosity=1, module="__main__")


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Tests spmv solve: its messages if it stops before the tolerance or rejects the matrix; its
defaults; near-null-space vectors; where it runs under --backend auto.

test_solve.py PROGRAM SOURCE_DIR [unittest arguments]. Python's standard library only.

SPDX-License-Identifier: BSD-3-Clause
"""

import json
import math
import os
import re
import signal
import subprocess
import sys
import unittest

import test_program
from test_program import Matrix, is_sanitized, numbers, run

CHECKED = "b - A x checked against"


class Solve(test_program.Case):
    def last(self, code, *arguments, **more):
        """The last line on standard error, the advice, of a solve that ends with this exit code."""
        done = run("solve", *arguments, "--backend", "omp", **more)
        self.assertEqual(done.returncode, code, done.stderr)
        lines = done.stderr.rstrip("\n").split("\n")
        self.assertNotIn("passed", lines[-1])
        return lines[-1]


    def run_solve(self, code, *arguments):
        """All of standard error, in one line."""
        done = run("solve", *arguments, "--backend", "omp")
        self.assertEqual(done.returncode, code, done.stderr)
        return " ".join(done.stderr.replace("\nspmv:  ", " ").split())


class LeastSquares(Solve):
    """Matrices that are not square, damping, and solvers of least squares."""

    def setUp(self):
        super().setUp()
        # a parabola through (-2, 4), (-1, 1), (0, 1), (1, 0), (2, 6)
        self.points = [(-2, 4.0), (-1, 1.0), (0, 1.0), (1, 0.0), (2, 6.0)]
        entries = [(i, j, float(t**j)) for i, (t, _) in enumerate(self.points) for j in range(3)]
        self.a = self.write("vander.mtx", Matrix(5, 3, entries).text())
        self.b = self.vector("vander.txt", [y for _, y in self.points])
        self.known = [-1 / 35, 0.3, 17 / 14]

    def test_each_solver_finds_the_parabola(self):
        for solver in "auto", "lsmr", "lsqr", "cgls":
            for scaling in "auto", "none", "columns":
                done = self.ok("solve", self.a, self.b, "--solver", solver, "--scaling", scaling, "--verify=bitwise")
                for found, known in zip(numbers(done.stdout), self.known):
                    self.assertAlmostEqual(found, known, 7)
                words = " ".join(done.stderr.replace("\nspmv:  ", " ").split())
                self.assertIn("x is a least-squares solution, and A x = b has none", words)
                self.assertIn("same bits", words)
                self.assertIn(CHECKED, words)
                self.assertIn("columns are scaled: requested by name" if scaling == "columns" else "solved after", words)

    def test_json_history_and_picture(self):
        history, picture = (os.path.join(self.folder, name) for name in ("h.csv", "p.svg"))
        done = self.ok("solve", self.a, self.b, "--json", "--history", history, "--plot", picture, "--damp", "0.5")
        solve = json.loads(done.stdout)["result"]["solve"]
        self.assertEqual((solve["status"], solve["stop"], solve["solver"], solve["damp"]), ("ok", 2, "lsmr", 0.5))
        self.assertEqual(solve["why_solver"], "least squares: the matrix is not square")
        self.assertLess(solve["true_gradient"], 1e-8)
        self.assertGreater(solve["damped_residual"], solve["true_residual"])
        with open(history, encoding="ascii") as file:
            lines = file.read().split()
        self.assertEqual(lines[0], "iteration,residual,gradient")
        self.assertEqual(len(lines), solve["iterations"] + 2)
        residuals = [float(line.split(",")[1]) for line in lines[1:]]
        self.assertEqual(residuals, sorted(residuals, reverse=True))
        with open(picture, encoding="utf-8") as file:
            self.assertIn("||b - A x||", file.read())

    def test_several_right_hand_sides_and_a_start(self):
        both = self.write("both.txt", "4 8\n1 2\n1 2\n0 0\n6 12\n")
        done = self.ok("solve", self.a, both, "--json")
        columns = json.loads(done.stdout)["result"]["solve"]["right_hand_sides"]
        self.assertEqual(len(columns), 2)
        self.assertAlmostEqual(columns[1]["norm_x"], 2 * columns[0]["norm_x"], 9)
        wide = self.write("wide.mtx", Matrix(1, 2, [(0, 0, 1.0), (0, 1, 1.0)]).text())
        one, start = self.vector("one.txt", [4.0]), self.vector("start.txt", [3.0, -1.0])
        for options, known in ([], [2.0, 2.0]), (["--x0", start], [4.0, 0.0]):
            for found, right in zip(numbers(self.ok("solve", wide, one, *options).stdout), known):
                self.assertAlmostEqual(found, right, 12)

    def test_info_estimates_the_condition_number(self):
        n = 30  # differences on a path: 2 sin(j pi / 2n)
        entries = [(i, i + k, 2.0 * k - 1) for i in range(n - 1) for k in range(2)]
        path = self.write("path.mtx", Matrix(n - 1, n, entries).text())
        known = math.sin((n - 1) * math.pi / (2 * n)) / math.sin(math.pi / (2 * n))
        for backend in "omp", "ref":
            done = self.ok("info", path, "--condition", "--json", "--backend", backend)
            found = json.loads(done.stdout)["info"]["singular_values"]
            self.assertTrue(found["converged"] and not found["singular"])
            self.assertAlmostEqual(found["condition"] / known, 1, 2)
        self.assertRegex(self.ok("info", path, "--condition").stdout, r"(?m)^condition number +about 19")
        ring = [(i, (i + k) % n, 2.0 * k - 1) for i in range(n) for k in range(2)]
        singular = self.ok("info", self.write("ring.mtx", Matrix(n, n, ring).text()), "--condition").stdout
        self.assertIn("the matrix has lost rank", " ".join(singular.split()))
        self.assertNotIn("singular values", self.ok("info", path).stdout)
        self.fails(7, "info", self.write("nan.mtx", Matrix(1, 1, [(0, 0, math.nan)]).text()), "--condition", says="not finite")

    def test_failures_are_named(self):
        n = 10
        hilbert = self.write("h.mtx", Matrix(n, n, [(i, j, 1 / (i + j + 1)) for i in range(n) for j in range(n)]).text())
        b = self.vector("h.txt", [(-1.0) ** i for i in range(n)])
        said = self.run_solve(7, hilbert, b, "--solver", "lsqr", "--rtol", "1e-15", "--conlim", "1e4")
        self.assertIn("nearly lost rank", said)
        self.assertIn("after 2 iterations, the limit", self.run_solve(7, hilbert, b, "--solver", "lsmr", "--max-iterations", "2"))
        for options, words in (
            (["--damp", "-1"], "damp"),
            (["--damp", "nan"], "damp"),
            (["--damp", "1", "--solver", "gmres"], "--solver gmres has no damping"),
            (["--damp", "1", "--scaling", "columns"], "another problem"),
        ):
            self.assertIn(words, self.run_solve(1, self.a, self.b, *options))
        self.assertIn("--precond has no effect", self.run_solve(4, self.a, self.b, "--precond", "jacobi"))
        self.assertIn("--rtol is the tolerance", self.run_solve(4, self.a, self.b, "--atol", "1e-3"))
        short = self.vector("short.txt", [1.0, 2.0, 3.0])
        said = self.run_solve(4, self.a, short)
        self.assertRegex(said, r"short.txt.*3.*5 x 3")
        self.assertIn("b has nan in row 2", self.run_solve(7, self.a, self.vector("nan.txt", [1.0, math.nan, 0.0, 0.0, 0.0])))
        self.assertIn("not supported on several ranks", self.run_solve(4, self.a, self.b, "--solver", "lsmr", "--ranks", "2"))
        square = self.write("i.mtx", Matrix(2, 2, [(0, 0, 1.0), (1, 1, 2.0)]).text())
        for option in ["--conlim", "10"], ["--scaling", "none"]:
            self.assertIn("is for least squares", self.run_solve(4, square, *option))
            self.run_solve(0, square, *option, "--solver", "lsmr")

    def test_what_is_not_finite_is_not_checked(self):
        """One right-hand side has NaN, another one ends at the limit."""
        two = self.write("two.txt", "1 4\nnan 0\n2 1\n3 1\n1 2\n")
        done = run("solve", self.a, two, "--json", "--max-iterations", "1")
        self.assertEqual(done.returncode, 7, done.stderr)
        self.assertIn("b - A x is not checked: it is not finite in f64", done.stderr)
        self.assertNotIn("verify", json.loads(done.stdout))


class Stopped(Solve):
    """A signal and a time limit end a solve: x is written, and a sentence says so."""

    endless = ["poisson2d:900", "--precond", "none", "--rtol", "1e-13", "--backend", "omp"]

    def test_sigterm_and_ctrl_c_write_the_x_reached(self):
        for number in signal.SIGTERM, signal.SIGINT:
            x = os.path.join(self.folder, f"x{number}.txt")
            process = subprocess.Popen([test_program.PROGRAM, "solve", *self.endless, "-v", "-o", x],
                                       stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            for line in process.stderr:
                if "the iterations begin" in line:
                    process.send_signal(number)
                    break
            _, errors = process.communicate(timeout=100)
            self.assertEqual(process.returncode, 10, errors)
            self.assertIn(f"stopped by {number.name} after", errors)
            self.assertIn(CHECKED, errors)
            with open(x, encoding="ascii") as file:
                self.assertEqual(sum(1 for line in file), 900 * 900)

    def test_max_seconds(self):
        x = os.path.join(self.folder, "x.txt")
        done = run("solve", *self.endless, "--max-seconds", "1e-6", "-o", x)
        self.assertEqual(done.returncode, 10, done.stderr)
        self.assertIn("there is no x yet", done.stderr)
        self.assertFalse(os.path.exists(x))
        done = run("solve", "poisson2d:30", "--max-seconds", "1000", "-o", x)
        self.assertEqual(done.returncode, 0, done.stderr)
        done = run("solve", "poisson2d:30", "--max-seconds", "5", "--ranks", "2")
        self.assertEqual(done.returncode, 4, done.stderr)
        self.assertIn("--max-seconds is not supported on several ranks", done.stderr)


class Memory(Solve):
    """--max-memory limits the peak of the resident set: preconditioners, bases, products and the
    direct solver count before they are made. Program text and libraries may come on top."""

    libraries = 25e6

    def peak(self, *arguments):
        """Runs the program; its exit code, what it said, its peak in bytes."""
        with open(os.path.join(self.folder, "e.txt"), "w+", encoding="utf-8") as errors:
            process = subprocess.Popen([test_program.PROGRAM, *arguments, "-o", os.devnull], stdin=subprocess.DEVNULL,
                                       stderr=errors)
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            errors.seek(0)
            return process.returncode, errors.read(), 1024 * usage.ru_maxrss

    def test_the_peak_stays_within_the_limit(self):
        for limit, *arguments in (
            (60, "solve", "convdiff2d:200,1"),
            (30, "solve", "convdiff2d:150,1", "--precond", "ilut"),
            (40, "solve", "convdiff2d:200,1", "--solver", "direct"),
            (40, "solve", "poisson3d:30", "--precond", "ic0"),
            (50, "spgemm", "dense:10000,1", "dense:1,10000", "--method", "expand"),
            (50, "spgemm", "dense:3000,1", "dense:1,3000", "--method", "expand"),
            (200, "spgemm", "dense:60000,1", "dense:1,60000"),
        ):
            with self.subTest(arguments=arguments):
                code, said, peak = self.peak(*arguments, "--max-memory", f"{limit}M")
                self.assertIn(code, (0, 4, 5), said)  # 4: a build without KLU
                self.assertLess(peak, limit * 2**20 + self.libraries)
                if code == 5:
                    self.assertIn("--max-memory", said)

    def test_auto_takes_what_fits_and_says_so(self):
        if is_sanitized(test_program.PROGRAM):
            self.skipTest("the sanitizer takes more than this memory")
        code, said, _ = self.peak("solve", "convdiff2d:200,1", "--max-memory", "26M")
        self.assertEqual(code, 0, said)
        self.assertRegex(" ".join(said.replace("spmv:", "").split()), "the first choice, [a-z0-9]+, cannot be made")


class Advice(Solve):
    def test_a_failed_solve_ends_with_the_failure_and_what_to_try(self):
        done = run("solve", "poisson2d:30", "--max-iterations", "5")
        self.assertEqual(done.returncode, 7)
        lines = done.stderr.rstrip("\n").split("\n")
        self.assertIn("after 5 iterations", lines[-2])
        self.assertIn("try --precond all", lines[-1])
        self.assertTrue(any(CHECKED in line and "passed" in line for line in lines[:-2]), done.stderr)
        # A successful solve still ends with its check.
        done = self.ok("solve", "poisson2d:10")
        self.assertIn("passed", done.stderr.rstrip("\n").split("\n")[-1])

    def test_quiet_too(self):
        done = run("solve", "poisson2d:30", "--max-iterations", "5", "-q", "--precond", "none")
        self.assertEqual(done.returncode, 7)
        self.assertEqual(len(done.stderr.rstrip("\n").split("\n")), 2)
        self.assertIn("try --precond auto", done.stderr)

    def test_nothing_that_was_used_is_recommended(self):
        limit = ["poisson2d:30", "--max-iterations", "2"]
        self.assertIn("--precond auto", self.last(7, *limit, "--precond", "none"))
        for name in ([], ["--precond", "jacobi"], ["--precond", "auto"]):
            said = self.last(7, *limit, *name)
            self.assertNotIn("--precond auto", said)
            self.assertIn("--precond all", said)
        said = self.last(7, "poisson3d:16", "--max-iterations", "1", "--precond", "all")  # cholesky refuses it
        self.assertNotIn("--precond", said)
        self.assertIn("--max-iterations above 1", said)
        self.assertNotIn("--type f64", self.last(7, *limit))
        self.assertIn("--type f64", self.last(7, *limit, "--type", "f32"))

    def test_the_default_limit(self):
        # 100 iterations are the smallest limit; all eigenvalues from 1 to 10^12 are distinct.
        entries = [(i, i, 10.0 ** (12 * i / 399)) for i in range(400)]
        path = self.write("wide.mtx", Matrix(400, 400, entries).text())
        said = self.last(7, path, "--max-iterations", "50", "--precond", "none")
        self.assertIn("--max-iterations above 50", said)

    def test_the_tolerance_that_it_names_is_reached(self):
        for kind in ("f64", "f32"):
            arguments = ["poisson2d:30", "--type", kind]
            said = self.last(7, *arguments, "--rtol", "1e-19")
            self.assertIn(f"rounding errors of {kind}", said)
            self.assertEqual("--type f64" in said, kind == "f32")
            self.ok("solve", *arguments, "--backend", "omp", "--rtol", re.search(r"--rtol (\S+),", said).group(1))

    def test_inner(self):
        # Condition number 1e10: singular in f32.
        entries = [(0, 0, 1.0), (0, 1, 1.0), (1, 0, 1.0), (1, 1, 1.0 + 1e-10)]
        path = self.write("close.mtx", Matrix(2, 2, entries).text())
        b = self.vector("b.txt", [1.0, 2.0])
        done = run("solve", path, b, "--inner", "--backend", "omp")
        if done.returncode == 7:
            self.assertIn("without --inner", done.stderr)
        self.assertNotIn("try --inner", done.stderr)

    def test_matrices_that_a_method_does_not_take(self):
        self.assertIn("--solver lsmr", self.last(8, self.data("pattern5x8.mtx"), "--solver", "gmres"))
        skew = self.data("skew3.mtx")
        self.assertIn("--solver gmres", self.last(8, skew, "--solver", "cg"))
        self.assertIn("minres needs a symmetric matrix", self.run_solve(8, skew, "--solver", "minres"))
        triangle = Matrix(3, 3, [(0, 0, 2.0), (1, 0, 1.0), (1, 1, 2.0), (2, 1, 1.0), (2, 2, 2.0)])
        path = self.write("lower.mtx", triangle.text())
        hint = "must have symmetric instead of general"
        self.assertIn(hint, self.last(8, path, "--solver", "cg"))
        # It is solved as it is, with the same hint. The suggested remedy works.
        self.assertIn(hint, " ".join(self.ok("solve", path).stderr.split()))
        with open(path, encoding="utf-8") as file:
            text = file.read().replace("general", "symmetric")
        self.assertNotIn(hint, self.ok("solve", self.write("symmetric.mtx", text)).stderr)

    def test_matrices_that_are_not_positive(self):
        negative = self.write("negative.mtx", Matrix(2, 2, [(0, 0, -2.0), (1, 1, -2.0), (0, 1, 1.0), (1, 0, 1.0)]).text())
        for precond in ("none", "jacobi"): # -A is positive definite
            for solver in ("cg", "auto"):
                done = self.ok("solve", negative, "--precond", precond, "--solver", solver, "--json")
                result = json.loads(done.stdout)["result"]["cg"]
                self.assertEqual((result["solver"], result["status"]), ("cg", "ok"))
                self.assertGreater(result["energy_norm"], 0)
        indefinite = self.write("indefinite.mtx", Matrix(2, 2, [(0, 0, 1.0), (1, 1, 1.0), (0, 1, 2.0), (1, 0, 2.0)]).text())
        b = self.vector("b.txt", [1.0, -1.0])
        self.assertIn("--solver minres", self.last(8, indefinite, b, "--solver", "cg"))
        # The suggested remedy works, and auto takes it; without a named preconditioner small systems get a factor.
        for solver, precond, used in (("minres", "auto", "minres"), ("auto", "jacobi", "minres"), ("auto", "auto", "direct")):
            words = ["--solver", solver, "--precond", precond, "--json"]
            result = json.loads(self.ok("solve", indefinite, b, *words).stdout)["result"]["cg"]
            self.assertEqual((result["solver"], result["status"]), (used, "ok"))
        result = json.loads(self.ok("solve", negative, "--precond", "none", "--json").stdout)["result"]["cg"]
        self.assertIn("-A x = -b is solved", result["why_solver"])
        both = self.write("both.mtx", Matrix(2, 2, [(0, 0, -2.0), (1, 1, 2.0), (0, 1, 1.0), (1, 0, 1.0)]).text())
        result = json.loads(self.ok("solve", both, "--precond", "none", "--json").stdout)["result"]["cg"]
        self.assertEqual(result["solver"], "minres")
        self.assertIn("a diagonal entry is -2", result["why_solver"])
        # Several right-hand sides go on as one does.
        columns = self.write("columns.txt", "1 1\n-1 2\n")
        result = json.loads(self.ok("solve", indefinite, columns, "--json").stdout)["result"]["cg"]
        self.assertEqual([one["status"] for one in result["right_hand_sides"]], ["ok", "ok"])
        pattern = "%%MatrixMarket matrix coordinate pattern symmetric\n2 2 2\n2 1\n1 1\n"
        b = self.vector("b.txt", [0.0, 1.0])
        said = self.last(8, self.write("pattern.mtx", pattern), b, "--solver", "cg")
        self.assertIn("pattern without values", said)

    def test_what_follows_a_failure(self):
        # The cyclic shift: gmres makes no progress before the last step.
        shift = self.write("shift.mtx", Matrix(30, 30, [(i, (i + 1) % 30, 1.0) for i in range(30)]).text())
        b = self.vector("e1.txt", [1.0] + 29 * [0.0])
        said = self.last(7, shift, b, "--solver", "gmres", "--precond", "none", "--restart", "29")
        for remedy in ("--restart above 29", "--precond auto", "--solver direct"):
            self.assertIn(remedy, said)
        self.ok("solve", shift, b, "--restart", "30", "--precond", "none")
        self.ok("solve", shift, b, "--restart", "29")
        rotation = self.write("rotation.mtx", Matrix(2, 2, [(0, 1, 1.0), (1, 0, -1.0)]).text())
        said = self.run_solve(7, rotation, "--solver", "bicgstab", "--precond", "none")
        self.assertIn("a product with the first residual is 0 at iteration 0; try gmres", said)
        singular = self.write("singular.mtx", Matrix(2, 2, [(0, 0, 1.0), (1, 0, 1.0)]).text())
        self.assertIn("no inverse", self.last(8, singular, "--precond", "ilut"))
        # auto goes on without incomplete factors, and says that there is no inverse.
        b = self.vector("b2.txt", [1.0, 2.0])
        for more, remedy in (([], "Krylov space ends at iteration 2"), (["--solver", "bicgstab"], "--solver gmres")):
            done = self.run_solve(7, singular, b, *more)
            self.assertIn("the matrix of 2 rows is singular: at most 1 of its rows", done)
            self.assertIn("no inverse", done)
            self.assertEqual("or the preconditioner is; the matrix of 2 rows is singular" in done, not more)
            self.assertIn(remedy, done)
            self.assertNotIn("try --precond", done)

        zero_row = self.write("zero_row.mtx", Matrix(2, 2, [(1, 1, 1.0)]).text())
        done = self.run_solve(7, zero_row, self.vector("b3.txt", [1.0, 1.0]), "-q")
        self.assertIn("A is singular (it has rows of zeros) and b has a part that no x reaches: it must be 0 there", done)
        self.assertIn("x is a least-squares solution", done)
        # amg needs a positive diagonal, but no symmetry.
        half = self.write("half.mtx", Matrix(2, 2, [(0, 0, 2.0), (0, 1, 1.0), (1, 0, -1.0)]).text())
        for solver in ("gmres", "bicgstab"):
            said = self.last(8, half, "--solver", solver, "--precond", "amg")
            self.assertIn("--precond auto or ilut", said)
            for precond in ("ilut", "amg"):
                self.ok("solve", "convdiff2d:30,1", "--solver", solver, "--precond", precond)

    def test_complex_matrices(self):
        entries = "\n".join(f"{i} {i} 3 1\n{i} {i % 9 + 1} -1 0.5" for i in range(1, 10))
        path = self.write("c.mtx", f"%%MatrixMarket matrix coordinate complex general\n9 9 18\n{entries}\n")
        for solver in ("auto", "gmres", "bicgstab"):
            done = self.ok("solve", path, "--solver", solver, "--solution", "random", "--json", "-q")
            result = json.loads(done.stdout)["result"]["cg"]
            self.assertEqual((result["status"], result["precision"]), ("ok", "c128"))
            self.assertLess(result["largest_error"], 1e-6)

    def test_not_finite(self):
        big = self.write("big.mtx", Matrix(2, 2, [(i, j, 3e38) for i in range(2) for j in range(2)]).text())
        b = self.vector("b.txt", [1.0, 1.0])
        self.assertIn("--type f64", self.last(7, big, b, "--type", "f32", "--precond", "none"))
        self.ok("solve", big, b, "--type", "f32") # with another preconditioner than the first choice
        nan = "%%MatrixMarket matrix coordinate real general\n1 1 1\n1 1 nan\n"
        self.assertIn("spmv: A has nan in row 1, column 1", self.last(7, self.write("nan.mtx", nan)))


class Named(Solve):
    """Messages that name the cause, and the other command."""

    def test_a_number_that_is_not_finite(self):
        b = self.write("b.txt", "1\n1\nnan\n" + "1\n" * 6)
        x0 = self.write("x0.txt", "1\n" * 8 + "inf\n")
        good = self.write("good.txt", "1\n" * 9)
        for solver in "cg", "minres", "gmres", "bicgstab":
            for words, named in ([[b], "b has nan in row 3"], [[good, "--x0", x0], "the start x has inf in row 9"]):
                done = self.fails(7, "solve", "poisson2d:3", *words, "--solver", solver, "--precond", "none", "-o", os.devnull)
                self.assertEqual(done.stderr.strip().splitlines()[-1], f"spmv: {named}")  # and no other advice

    def test_a_right_hand_side_of_zero(self):
        zero, ones = self.write("zero.txt", "0\n" * 9), self.write("ones.txt", "1\n" * 9)
        said = " b is 0, so x is 0 whatever the start; any other x with A x = 0 is an eigenvector for the eigenvalue 0"
        done = self.ok("solve", "poisson2d:3", zero, "--x0", ones)
        self.assertEqual(done.stdout.split(), ["0"] * 9)
        self.assertIn(said, " ".join(done.stderr.replace("\nspmv:  ", " ").split()))
        self.assertNotIn("b is 0", self.ok("solve", "poisson2d:3", zero).stderr)
        self.assertNotIn("b is 0", self.ok("solve", "poisson2d:3", ones, "--x0", ones).stderr)

    def band(self, name, field, diagonal, beside, changed, last=None):
        """A general file of 1500 rows with three diagonals, too large for a dense factor; the first entry beside the
        diagonal is another one, and the last on the diagonal."""
        n = 1500
        lines = [f"{i} {i} {diagonal if i < n or last is None else last}" for i in range(1, n + 1)]
        lines += [f"{i} {i + 1} {changed if i == 1 else beside}" for i in range(1, n)]
        lines += [f"{i + 1} {i} {beside}" for i in range(1, n)]
        return self.write(name, f"%%MatrixMarket matrix coordinate {field} general\n{n} {n} {len(lines)}\n" + "\n".join(lines) + "\n")

    def test_not_hermitian(self):
        """A complex symmetric matrix is not Hermitian, and the reason says so."""
        path = self.band("c.mtx", "complex", "4 1", "1 0.5", "1 0.5")
        done = self.ok("solve", path, "-o", os.devnull)
        said = " ".join(done.stderr.replace("\nspmv:  ", " ").split())
        self.assertIn("reason for cocg: the matrix is complex, its own transpose and not Hermitian", said)
        general = self.band("g.mtx", "complex", "4 1", "1 0.5", "2 0.5")
        self.assertIn("reason for gmres: the matrix is not Hermitian", self.ok("solve", general, "-o", os.devnull).stderr)
        self.assertIn("the matrix is not symmetric", self.run_solve(8, general, "--solver", "cocg", "-o", os.devnull))

    def test_mul_and_multiply_name_each_other(self):
        big = self.write("big.mtx", "%%MatrixMarket matrix coordinate real general\n30 30 1\n1 1 1\n")
        numbers = self.write("numbers.txt", "1\n2\n")
        self.fails(4, "matvec", "poisson2d:2", big, says="spmv spgemm A B")
        self.fails(2, "matvec", "poisson2d:2", "poisson2d:2", says="spmv spgemm A B")
        self.fails(3, "spgemm", "poisson2d:2", numbers, says="spmv matvec A x")
        self.assertNotIn("spgemm", self.fails(4, "matvec", "poisson2d:2", numbers).stderr)

    def test_json_has_a_neutral_name(self):
        for solver in "cg", "gmres":
            result = json.loads(self.ok("solve", "poisson2d:3", "--solver", solver, "--json").stdout)["result"]
            self.assertEqual(result["operation"], "solve")
            self.assertEqual(result["solve"]["solver"], solver)
            self.assertEqual(result["solve"], result["cg"])

    def test_info_says_what_solve_takes(self):
        near = self.band("near.mtx", "real", "4", "1", "1.0000000000000002")
        far = self.band("far.mtx", "real", "4", "1", "2")
        minus = self.band("minus.mtx", "real", "4", "1", "1", last="-4")
        flat = self.write("flat.mtx", "%%MatrixMarket matrix coordinate real general\n2 3 1\n1 1 4\n")
        small = self.write("small.mtx", "%%MatrixMarket matrix coordinate real general\n2 2 4\n1 1 4\n1 2 1\n2 1 1\n2 2 4\n")
        info, solved = (json.loads(self.ok(command, small, "--json").stdout) for command in ("info", "solve"))
        self.assertEqual(info["info"]["solver"], solved["result"]["solve"]["solver"])
        for path, solver, words in ((near, "cg", "values differ by at most 5.6e-17 of the largest"), (far, "gmres", "at most 0.25 of"),
                                    (minus, "minres", "symmetric"), (flat, "lsmr", "least squares: the matrix is not square")):
            text = " ".join(self.ok("info", path).stdout.split())
            self.assertIn(words, text)
            info = json.loads(self.ok("info", path, "--json").stdout)["info"]
            self.assertEqual(info["solver"], solver)
            if solver is not None:
                self.assertIn(f"spmv solve takes {solver}: {info['why_solver']}", text)
                solved = json.loads(self.ok("solve", path, "--json").stdout)["result"]["solve"]
                self.assertEqual((solved["solver"], solved["why_solver"]), (solver, info["why_solver"]))

    def test_all_gives_the_reason_for_its_x(self):
        done = self.ok("solve", "poisson2d:20", "--precond", "all", "-o", os.devnull)
        words = " ".join(done.stderr.replace("\nspmv:  ", " ").split())
        written = re.search(r"(\S+) +\d+ [^\n]*written as x", done.stderr).group(1)
        self.assertIn(f"x is that of {written}, which took the fewest iterations: times differ between runs", words)
        done = self.fails(7, "solve", "poisson2d:20", "--precond", "all", "--rtol", "0", "--max-iterations", "1", "-o", os.devnull)
        self.assertIn("which has the smallest residual", done.stderr)


class Singular(Solve):
    def neumann(self, side):
        """The Laplacian of a grid, whose rows sum to 0."""
        entries = []
        for i in range(side * side):
            near = [j for j, there in ((i - side, i >= side), (i - 1, i % side > 0), (i + 1, i % side < side - 1),
                                       (i + side, i < side * (side - 1))) if there]
            entries += [(i, i, float(len(near)))] + [(i, j, -1.0) for j in near]
        return self.write("neumann.mtx", Matrix(side * side, side * side, entries).text())

    def test_b_with_and_without_a_part_that_no_x_reaches(self):
        side = 12
        a = self.neumann(side)
        nearly = self.vector("nearly.txt", [1.0] + (side * side - 2) * [0.0] + [-1.0 + 1e-8])
        for more in ([], ["--precond", "amg"], ["--precond", "none"], ["--solver", "minres", "--precond", "amg"]):
            self.ok("solve", a, nearly, *more)
        source = self.vector("source.txt", [1.0] + (side * side - 1) * [0.0])
        x = os.path.join(self.folder, "x.txt")
        for more in ([], ["--precond", "amg"], ["--solver", "minres"], ["--type", "f32"]):
            done = run("solve", a, source, "-o", x, "--json", *more)
            self.assertEqual(done.returncode, 7, done.stderr)
            said = " ".join(done.stderr.replace("\nspmv:  ", " ").split())
            self.assertIn("A is singular (every row sums to 0) and b has a part that no x reaches: subtract its mean", said)
            self.assertNotIn("more iterations", said)
            result = json.loads(done.stdout)["result"]["cg"]
            self.assertEqual(result["status"], "inconsistent")
            self.assertAlmostEqual(result["true_residual"], 1 / side, 4)
            with open(x) as file:
                self.assertLess(max(abs(float(line)) for line in file), 10)
        if run("solve", "poisson2d:3", "--solver", "direct").returncode == 0:
            said = self.run_solve(7, a, source, "--solver", "direct")
            self.assertIn("direct: A is singular to rounding", said)
            self.assertNotIn("rounding errors of", said)

    def test_null_vectors(self):
        """--null: x of the smallest norm, the part of b that no x reaches, wrong vectors and combinations."""
        side = 10
        a, rows = self.neumann(side), side * side

        def dense(name, *columns):
            text = "%%MatrixMarket matrix array real general\n" + f"{len(columns[0])} {len(columns)}\n"
            return self.write(name, text + "".join(f"{v!r}\n" for column in columns for v in column))

        def solve(code, *arguments):
            done = run("solve", a, *arguments, "--json", "-q", "-o", x)
            self.assertEqual(done.returncode, code, done.stderr)
            return json.loads(done.stdout)["result"]["solve"]

        x = os.path.join(self.folder, "x.txt")
        ones = [1.0] * rows
        given = dense("ones.mtx", ones, [-3.0] * rows)
        b = self.vector("b.txt", [1.0] + (rows - 2) * [0.0] + [-1.0])
        source = self.vector("source.txt", [1.0] + (rows - 1) * [0.0])
        x0 = self.vector("x0.txt", [5.0] * rows)
        on_ranks = ["--null", given, "--ranks", "2"]
        for more in ([], ["--null", "ones"], ["--null", given], ["--null", "ones", "--solver", "gmres"], on_ranks):
            found = solve(0, b, "--x0", x0, *more)
            self.assertEqual(found["null_vectors"], 1)
            self.assertLess(found["null_part"], 1e-15)
            with open(x) as file:
                self.assertLess(abs(sum(map(float, file))), 1e-10)
            self.assertAlmostEqual(solve(7, source, *more)["null_part"], 1 / side, 12)
        self.assertEqual(solve(0, b, "--solver", "gmres")["null_vectors"], 0)
        self.assertIn("1 null vector known; the norm of the part of b along it is", self.run_solve(0, a, b))
        self.assertIn("subtract its part along the null vectors", self.run_solve(7, a, source, "--null", "ones", "--solver", "gmres"))
        wrong = dense("wrong.mtx", ones, [2.0] * (rows - 1) + [1.0])
        for code, arguments, words in (
            (1, ["--null", wrong], "vector 2 of 2 is not a null vector of A: for v of length 1, ||A v|| is 0.123"),
            (1, ["--null", "ones", "--block", "2"], "vector 1 of 2 is not a null vector of A"),
            (4, ["--null", "ones", "--block", "3"], "100 rows are not a multiple of the option null_block, 3"),
            (4, ["--null", dense("short.mtx", [1.0])], "has 1 number, --null needs 100"),
            (4, ["--null", "ones", "--solver", "direct"], "the solver direct needs a matrix that is not singular"),
            (4, ["--null", "ones", "--solver", "lsmr"], "--null has no effect on a least-squares solve"),
            (1, ["--null", wrong, "--ranks", "2"], "vector 2 of 2 is not a null vector of A"),
        ):
            self.assertIn(words, self.run_solve(code, a, b, *arguments))

    def test_unstable_factors_are_named(self):
        side = 120
        entries = []
        for i in range(side * side):
            entries.append((i, i, 0.1))
            entries += [(i, i + 1, -1.0), (i + 1, i, -1.0)] if i % side < side - 1 else []
            entries += [(i, i + side, -1.0), (i + side, i, -1.0)] if i < side * (side - 1) else []
        a = self.write("helmholtz.mtx", Matrix(side * side, side * side, entries).text())
        for name in ("ilu0", "ilut"):
            said = self.run_solve(7, a, "--precond", name)
            self.assertIn(f"preconditioner {name}: its factors are unstable", said)
            self.assertIn("try --precond auto", said)


class NearNull(Solve):
    """--near-null and --block."""

    def iterations(self, *arguments):
        cg = json.loads(self.ok("solve", "--json", "-q", "--backend", "omp", *arguments).stdout)["result"]["cg"]
        self.assertEqual(cg["precond"], "amg")
        return cg["iterations"]

    def test_vectors_of_a_spec_and_of_a_file_are_the_same(self):
        modes = os.path.join(self.folder, "rigid.mtx")
        self.ok("gen", "rigid2d:20", "-o", modes)
        system = ("elasticity2d:20", "--solution", "random")
        of_spec = self.iterations(*system, "--near-null", "rigid2d:20", "--block", "2")
        self.assertLessEqual(of_spec, 14)
        for more in ([], ["--inner"], ["--precond", "amg"], ["--type", "mixed"]):
            found = self.iterations(*system, "--near-null", modes, "--block", "2", *more)
            self.assertLessEqual(found, of_spec + ("--inner" in more) * 3, more)
        self.assertLess(of_spec, self.iterations(*system, "--precond", "amg", "--block", "2"))
        self.assertLessEqual(self.iterations(*system, "--near-null", modes, "--block", "2", "--type", "f32"), of_spec)

    def test_refusals(self):
        def dense(name, rows, columns, number=lambda i, j: "1.5"):
            numbers = [number(i, j) for j in range(columns) for i in range(rows)]
            return self.write(
                name, "%%MatrixMarket matrix array real general\n" + "\n".join([f"{rows} {columns}", *numbers]) + "\n"
            )

        broken = dense("broken.mtx", 18, 2, lambda i, j: "nan" if (i, j) == (6, 1) else "1")
        wide = dense("wide.mtx", 18, 9, lambda i, j: str(i**j % 7))
        cases = [
            (4, [dense("short.mtx", 17, 3)], "has 17 x 3 numbers, --near-null needs 18 rows"),
            (4, [wide], "wide.mtx is 18 x 9: elasticity2d:3 has 18 rows, and up to 8 vectors are possible"),
            (4, ["rigid2d:4"], "--near-null rigid2d:4 is 32 x 3: elasticity2d:3 has 18 rows"),
            (7, [broken], "broken.mtx: --near-null needs finite numbers, row 7 of vector 2 has nan"),
            (1, [dense("zero.mtx", 18, 2, lambda i, j: "0")], "the near-null-space vectors are zero"),
            (1, ["rigid2d:3", "--block", "9"], "nodes of 9 rows; 1 to 8 are possible"),
            (4, ["rigid2d:3", "--block", "4"], "18 rows are not a multiple of the 4 rows of a node"),
            (1, ["rigid2d:3", "--precond", "jacobi"], "--near-null is for --precond amg, auto and all, not for jacobi"),
        ]
        for code, arguments, message in cases:
            said = self.run_solve(code, "elasticity2d:3", "--near-null", *arguments)
            self.assertIn(message, said)
            self.assertNotIn("solved", said)
        turned = self.write("turned.mtx", "%%MatrixMarket matrix coordinate complex hermitian\n1 1 1\n1 1 2 0\n")
        self.assertIn("--near-null is for real matrices", self.run_solve(4, turned, "--near-null", broken))

    def coordinates(self, name, side, dimensions, form="{:.17g}"):
        """Those of the nodes of elasticity2d:side or elasticity3d:side, in a text file."""
        nodes = [[p // side**axis % side for axis in range(dimensions)] for p in range(side**dimensions)]
        return self.write(name, "".join(" ".join(form.format(3 + 0.1 * x) for x in node) + "\n" for node in nodes))

    def test_coordinates(self):
        """As with the rigid body modes, for text and Matrix Market."""
        for spec, side, dimensions in (("elasticity2d:20", 20, 2), ("elasticity3d:7", 7, 3)):
            expected = self.iterations(spec, "--near-null", f"rigid{dimensions}d:{side}", "--block", str(dimensions))
            text = self.coordinates("nodes.txt", side, dimensions)
            with open(text) as file:
                rows = file.read().splitlines()
            columns = zip(*(row.split() for row in rows))
            dense = self.write(
                "nodes.mtx",
                f"%%MatrixMarket matrix array real general\n{len(rows)} {dimensions}\n"
                + "\n".join(number for column in columns for number in column) + "\n",
            )  # fmt: skip
            for path, *more in ([text], [dense, "--block", str(dimensions)], [text, "--type", "mixed"], [text, "--inner"]):
                found = self.iterations(spec, "--coordinates", path, *more)
                self.assertLessEqual(abs(found - expected), 1 + 3 * ("--inner" in more), (spec, path, more))
            said = self.ok("solve", spec, "--coordinates", text, "--vectors", "2", "-o", os.devnull).stderr
            self.assertIn("coordinates are given, which only multigrid uses", " ".join(said.replace("spmv: ", "").split()))
            self.assertIn(f"{3 * dimensions - 3} near-null vectors", " ".join(said.replace("spmv: ", "").split()))

    def test_refusals_of_coordinates(self):
        plane, space = self.coordinates("plane.txt", 3, 2), self.coordinates("space.txt", 3, 3)
        line = self.write("line.txt", "1\n2\n3\n")
        turned = self.write("turned.txt", "1 2 3 4 5 6 7 8 9\n1 2 3 1 2 3 1 2 3\n")
        same = self.coordinates("same.txt", 3, 2, "1")
        broken = self.write("broken.txt", "0 1\n" * 2 + "nan 3\n" + "1 0\n" * 6)
        cases = [
            (4, [line], "line.txt has 3 x 1 numbers: --coordinates needs a row for each node, with 2 or 3 columns"),
            (4, [turned], "turned.txt has 2 x 9 numbers: --coordinates needs a row for each node, with 2 or 3 columns: "
                          "here rows and columns are exchanged"),
            (4, [space], "space.txt has the coordinates of 27 nodes: elasticity2d:3 has 18 rows, which is not a multiple"),
            (4, [self.write("few.txt", "0 0\n1 0\n")], "nodes of 9 rows with 2 coordinates: a node has 2 displacements"),
            (4, [plane, "--block", "3"], "coordinates of 9 nodes: 2 of the 18 rows belong to a node, block is 3"),
            (1, [same], "all 9 nodes have the same coordinates"),
            (7, [broken], "coordinate 1 of node 3 is nan"),
            (1, [plane, "--near-null", "rigid2d:3"], "--near-null and --coordinates exclude each other"),
            (1, [plane, "--precond", "jacobi"], "--coordinates is for --precond amg, auto and all, not for jacobi"),
        ]  # fmt: skip
        for code, arguments, message in cases:
            said = self.run_solve(code, "elasticity2d:3", "--coordinates", *arguments)
            self.assertIn(message, said)
            self.assertNotIn("solved", said)
        turned = self.write("complex.mtx", "%%MatrixMarket matrix coordinate complex hermitian\n1 1 1\n1 1 2 0\n")
        self.assertIn("--coordinates is for real matrices", self.run_solve(4, turned, "--coordinates", plane))

    def levels(self, *arguments):
        """The rows of the levels of amg."""
        return re.search(r"levels of ([\d, ]+)", self.ok("solve", *arguments, "-o", os.devnull).stderr).group(1)

    def test_options_of_preconditioners(self):
        """--fill, --drop, --degree and --strength reach the preconditioners that have them, and no other takes them."""
        system = ["diffusion2d:30,100", "--solver", "gmres"]

        def iterations(*more):
            return json.loads(self.ok("solve", *system, *more, "--json").stdout)["result"]["cg"]["iterations"]

        def layout(*more):
            return int(re.search(r"factors? of (\d+) entr", self.ok("solve", *system, *more, "-o", os.devnull).stderr).group(1))

        self.assertLess(layout("--precond", "ilut", "--fill", "1.5"), layout("--precond", "ilut"))
        self.assertLess(layout("--precond", "ilut", "--drop", "0.1"), layout("--precond", "ilut", "--drop", "1e-6"))
        for precond, few, many in (("chebyshev", "1", "12"), ("amg", "1", "5")):
            least = iterations("--precond", precond, "--degree", many)
            self.assertLess(least, iterations("--precond", precond, "--degree", few))
        thin = ["diffusion2d:40,1,0.001", "--precond", "amg"]
        self.assertNotEqual(self.levels(*thin), self.levels(*thin, "--strength", "1e-6"))
        self.fails(4, "solve", "poisson2d:40", "--precond", "cholesky", "--fill", "2", says="more than 2 times")
        names = {"fill": "1.5", "drop": "0.1", "degree": "1", "strength": "0.5", "block": "1"}
        takers = {"fill": {"cholesky", "ilut"}, "drop": {"ilut"}, "degree": {"chebyshev", "amg", "schur", "fsai", "isai"},
                  "strength": {"amg", "schur"}, "block": {"block-jacobi", "amg", "schur"}}  # fmt: skip
        every = self.fails(1, "solve", "x", "--precond", "zzz").stderr.strip().split("there are: ")[1].split(", ")
        for option, value in names.items():
            for precond in every:
                done = run("solve", "poisson2d:3", "--precond", precond, f"--{option}", value, "-o", os.devnull)
                refused = f"--{option} is for --precond" in done.stderr
                self.assertEqual(refused, precond not in takers[option] | {"auto", "all"}, (option, precond, done.stderr))
            self.fails(1, "solve", "poisson2d:3", f"--{option}", "-2", says=f"--{option} -2: must be")

    def test_two_fields(self):
        """--fields and --schur: the same x as without them, a form, and files that are wrong."""
        n = 40  # -u'' = f with u' = 0 forced at each point: A of n + 1 rows, B of n differences
        entries = [(i, i, 2.5) for i in range(n + 1)] + [(i + 1, i, -1.0) for i in range(n)]
        entries += [(n + 1 + i, i, 1.0) for i in range(n)] + [(n + 1 + i, i + 1, -1.0) for i in range(n)]
        rows = 2 * n + 1
        lines = [f"{i + 1} {j + 1} {v}" for i, j, v in entries]
        a = self.write("saddle.mtx", "\n".join(["%%MatrixMarket matrix coordinate real symmetric", f"{rows} {rows} {len(lines)}", *lines, ""]))
        fields = self.vector("fields.txt", [1] * (n + 1) + [2] * n)
        schur = self.write("schur.mtx", "\n".join(["%%MatrixMarket matrix coordinate real symmetric", f"{n} {n} {n}", *(f"{i} {i} 1" for i in range(1, n + 1)), ""]))
        of = [json.loads(self.ok("solve", a, "-q", "--json", *words).stdout)["result"]["cg"] for words in (
            ["--precond", "schur"], ["--fields", fields], ["--schur", schur], ["--schur", "simple", "--solver", "gmres"])]
        self.assertEqual([r["precond"] for r in of], ["schur"] * 4)
        self.assertEqual([r["solver"] for r in of], ["minres"] * 3 + ["gmres"])
        self.assertEqual(of[0]["iterations"], of[1]["iterations"])
        self.assertIn("amg of the given matrix", of[2]["precond_layout"])
        short, wrong = self.vector("short.txt", [1, 2]), self.vector("wrong.txt", [1] * (n + 1) + [2] * (n - 1) + [3])
        self.fails(4, "solve", a, "--fields", short, says="short.txt has 2 numbers, --fields needs 81")
        self.fails(1, "solve", a, "--fields", wrong, says="wrong.txt: --fields needs 1 or 2 (or 0 and 1) for each row, row 81 has 3")
        self.fails(8, "solve", a, "--schur", "dense:3,4", says="--schur needs a square matrix")
        self.fails(4, "solve", a, "--schur", "diagonal:7", says="7 x 7, the second field has 40 rows")
        self.fails(1, "solve", a, "--fields", fields, "--precond", "amg", says="--fields is for --precond schur")
        self.fails(4, "solve", a, "--precond", "schur", "--ranks", "2", says="not supported on several ranks")

    def test_block_of_block_jacobi(self):
        def layout(*arguments):
            done = self.ok("solve", "poisson2d:20", "--json", "-q", "--precond", "block-jacobi", *arguments)
            return json.loads(done.stdout)["result"]["cg"]["precond_layout"]

        self.assertEqual(layout(), layout("--block", "16"))
        self.assertIn("20", layout("--block", "20"))


class Defaults(Solve):
    def rtol_of(self, *arguments):
        done = self.ok("solve", "poisson2d:20", "--json", "-q", *arguments)
        return json.loads(done.stdout)["result"]["cg"]["rtol"]

    def test_tolerance_of_each_type(self):
        self.assertEqual(self.rtol_of(), 1e-8)
        self.assertEqual(self.rtol_of("--type", "f64"), 1e-8)
        self.assertEqual(self.rtol_of("--type", "mixed"), 1e-8)
        self.assertEqual(self.rtol_of("--type", "f32"), 1e-4)
        self.assertEqual(self.rtol_of("--rtol", "1e-3", "--type", "f32"), 1e-3)
        self.assertEqual(self.rtol_of("--type", "f32", "--rtol", "1e-3"), 1e-3)

    def test_tolerance_is_documented(self):
        text = " ".join(self.ok("solve", "--help").stdout.split() + self.ok("help", "solve").stdout.split())
        self.assertIn("(default: 1e-8; with --type f32 1e-4)", text)
        with open(test_program.SOURCE + "/app/spmv.1", encoding="utf-8") as file:
            page = file.read()
        self.assertRegex(page, r"Default: 1e-8; with\n\.Fl -type Cm f32\n1e-4")


class Rows(Solve):
    """The backward error of each row, and true residuals that are checked in the type of their sums."""

    SIDE = 24  # more points than a dense factor has rows, and than the last level of amg

    def penalty(self, p, name):
        """The Laplacian on SIDE x SIDE points; u = x on the boundary by a penalty p, so everywhere."""
        m = self.SIDE
        entries, b = [], []
        for i in range(m * m):
            row, column = divmod(i, m)
            near = [j for j, there in ((i - m, row > 0), (i - 1, column > 0), (i + 1, column < m - 1), (i + m, row < m - 1))
                    if there]
            edge = len(near) < 4
            entries += [(i + 1, i + 1, len(near) + (p if edge else 0))] + [(i + 1, j + 1, -1) for j in near if j < i]
            b.append(p * (column / (m - 1)) if edge else 0.0)
        lines = [f"{m * m} {m * m} {len(entries)}"] + ["%d %d %r" % e for e in entries]
        matrix = self.write(name + ".mtx", "%%MatrixMarket matrix coordinate real symmetric\n" + "\n".join(lines) + "\n")
        return matrix, self.vector(name + "_b.txt", b)

    def test_large_diagonals_do_not_hide_wrong_rows(self):
        for p in (1e8, 1e12, 1e20, 1e39):
            a, b = self.penalty(p, "penalty")
            x = os.path.join(self.folder, "x.txt")
            for words in ([], ["--solver", "cg", "--precond", "amg"], ["--type", "f32"]):
                if p > 1e38 and "f32" in words:
                    continue
                done = self.ok("solve", a, b, "-o", x, "--json=" + os.path.join(self.folder, "j.json"), *words)
                self.assertIn("largest backward error of a row: ", done.stderr)
                result = json.loads(self.read("j.json"))["result"]["cg"]
                limit = 1e-2 if "f32" in words else 1e-4
                self.assertTrue(0 <= result["backward_error"] <= limit, (p, words, result["backward_error"]))
                if p > 1e10 and "amg" in words:  # auto takes a complete factor of so few rows
                    self.assertIn("scaled rows and columns", result["why_solver"], (p, words))
                found = numbers(self.read("x.txt"))
                error = max(abs(v - i % self.SIDE / (self.SIDE - 1)) for i, v in enumerate(found))
                self.assertLess(error, limit, (p, words))

    def test_failure_names_the_row(self):
        a, b = self.penalty(1e12, "penalty")
        done = self.fails(7, "solve", a, b, "--precond", "jacobi", "--max-iterations", "4", "--json", "j.json",
                          "-o", "x.txt", cwd=self.folder, says="x is wrong: in row ")
        result = json.loads(self.read("j.json"))["result"]["cg"]
        self.assertEqual(result["status"], "stagnation")
        self.assertIn(f"in row {result['backward_row'] + 1} |b - A x| is", done.stderr)
        self.assertIn("try --solver direct", done.stderr)
        self.assertEqual(len(numbers(self.read("x.txt"))), self.SIDE ** 2)

    def test_small_systems_are_factored(self):
        a = self.write("a.mtx", "%%MatrixMarket matrix coordinate real general\n2 2 4\n1 1 1e39\n1 2 -1\n2 1 -1\n2 2 2\n")
        done = self.ok("solve", a, self.vector("b.txt", [1e39, 0.0]))
        self.assertEqual(numbers(done.stdout), [1.0, 0.5])
        self.assertIn("reason for direct: 2 rows: a dense factor", done.stderr)

    def test_determinant(self):
        a = self.write("a.mtx", "%%MatrixMarket matrix coordinate real general\n2 2 4\n1 1 1\n1 2 3\n2 1 4\n2 2 2\n")
        done = self.ok("solve", a, "--json=j.json", "--output=x.txt", "-v", cwd=self.folder)
        found = json.loads(self.read("j.json"))["result"]["solve"]
        self.assertAlmostEqual(found["determinant"]["log_abs"], math.log(10), 14)
        self.assertEqual(found["determinant"]["phase"], [-1, 0])
        self.assertNotIn("inertia", found)
        self.assertIn("determinant of A: negative, its logarithm 2.302585093", done.stderr)
        self.ok("solve", "poisson2d:20", "--json=j.json", "--output=x.txt", cwd=self.folder)
        self.assertNotIn("determinant", json.loads(self.read("j.json"))["result"]["solve"])
        if run("solve", "poisson2d:3", "--solver", "direct:cholmod").returncode == 0:
            done = self.ok("solve", "poisson2d:2", "--solver", "direct:cholmod", "--json=j.json", "--output=x.txt",
                           cwd=self.folder)
            found = json.loads(self.read("j.json"))["result"]["solve"]
            self.assertAlmostEqual(found["determinant"]["log_abs"], math.log(192), 13)
            self.assertEqual(found["inertia"], {"positive": 4, "negative": 0, "zero": 0})
            self.assertIn("eigenvalues of A: 4 above 0, 0 below, 0 that are 0 to rounding", done.stderr)

    def test_numbers_near_the_end_of_the_range(self):
        a = self.write("a.mtx", "%%MatrixMarket matrix coordinate real symmetric\n3 3 5\n1 1 4\n2 1 -1\n2 2 4\n3 2 -1\n3 3 4\n")
        for words in ([], ["--solver", "cg"], ["--solver", "gmres"], ["--solver", "minres"]):
            x = os.path.join(self.folder, "x.txt")
            done = self.fails(7, "solve", a, self.vector("b.txt", [1.7e308] * 3), "-o", x, *words, says="is not finite")
            self.assertNotIn("CHECK FAILED", done.stderr)
            self.assertIn("b - A x is not checked: it is not finite in f64", done.stderr)
            for got, want in zip(numbers(self.read("x.txt")), [1.7e308 / 14 * 5, 1.7e308 / 14 * 6, 1.7e308 / 14 * 5]):
                self.assertLess(abs(got - want), 1e-8 * want)

    def test_true_residual_of_f32(self):
        a = self.write("a.mtx", "%%MatrixMarket matrix coordinate real general\n2 2 2\n1 1 3\n2 2 3\n")
        path = os.path.join(self.folder, "j.json")
        done = self.fails(7, "solve", a, self.vector("b.txt", [1.0, 1.0]), "--type", "f32", "--rtol", "1e-12", "--json",
                          path, "-o", os.devnull)
        found = json.loads(self.read("j.json"))
        # f32(1/3) times 3 is 1 in f32; its distance from 1/3 is 1/3 2^-25
        for residual in (found["result"]["cg"]["true_residual"], found["verify"]["true_residual"]):
            self.assertAlmostEqual(residual, math.sqrt(2) * 2.0**-25, delta=1e-15)
        self.assertNotIn("residual 0 (true)", done.stderr)


class Place(Solve):
    """--backend auto in a build with CUDA, which a fault pretends, with or without a GPU."""

    BUILT = {"SPMV_TEST_CUDA_BUILT": "1"}

    def solve(self, *arguments, env=BUILT):
        """The result, and all of standard error in one line."""
        done = self.ok("solve", *arguments, "-v", "--json=" + os.path.join(self.folder, "j.json"), "-o",
                       os.path.join(self.folder, "x.txt"), env=env)
        return json.loads(self.read("j.json"))["result"], " ".join(done.stderr.replace("\nspmv:  ", " ").split())

    def kind(self, n, entries, form="real symmetric"):
        """What the estimates take a matrix for; entries: (row, column, value) from 1."""
        values = [" ".join(str(v) for v in (e[:2] if "pattern" in form else e)) for e in entries]
        head = f"%%MatrixMarket matrix coordinate {form}\n{n} {n} {len(entries)}\n"
        a = self.write("kind.mtx", head + "\n".join(values) + "\n")
        done = run("solve", a, "-v", "-o", os.devnull, "--max-iterations", "50", env=self.BUILT)
        found = re.search(r"estimates for ((?:.|\n)*?), with", done.stderr)
        self.assertIsNotNone(found, done.stderr)
        return " ".join(found[1].replace("spmv:", "").split())

    def test_small_systems_stay_on_the_cpu(self):
        result, said = self.solve("poisson2d:32")
        self.assertEqual(result["backend"], "omp")
        self.assertRegex(result["why_backend"],
                         r"^about \d+ ms of work, less than a GPU with its start: about 270 ms$")
        self.assertRegex(said, r"on omp, \d+ threads? \(auto: about \d+ ms of work, less")
        self.assertIn("estimates for a symmetric matrix, with 500 steps", said)
        x = self.read("x.txt")
        self.solve("poisson2d:32", "--backend", "omp")
        self.assertEqual(self.read("x.txt"), x)

    def test_large_systems_look_for_a_gpu(self):
        result, said = self.solve("poisson3d:40", "--threads", "1")
        self.assertIn("estimates for a symmetric matrix", said)
        if result["backend"] == "cuda":
            self.assertIn("of work, more than a GPU with its start: about", result["why_backend"])
        else:  # as without the estimates
            self.assertRegex(result["why_backend"], "^(this build has no CUDA|no usable CUDA device.*)$")
            self.assertIn("on omp, 1 thread (auto: " + result["why_backend"].split(":")[0], said)
        few, _ = self.solve("poisson3d:40", "--threads", "1", "--rtol", "1e-1", "--max-iterations", "200")
        self.assertIn("less than a GPU", few["why_backend"])

    def test_info_says_where_solve_runs(self):
        """As solve does; a system for a GPU is named only if there is one."""
        for spec, words in (("poisson2d:32", []), ("poisson3d:40", ["--threads", "1"]), ("convdiff2d:30,1", [])):
            solved, _ = self.solve(spec, *words)
            text = " ".join(self.ok("info", spec, *words, env=self.BUILT).stdout.split())
            info = json.loads(self.ok("info", spec, *words, "--json", env=self.BUILT).stdout)["info"]
            if solved["why_backend"].startswith(("this build", "no usable")):
                self.assertNotIn("place_of_solve", info)
                continue
            place = ("a GPU: " if solved["backend"] == "cuda" else "the CPU: ") + solved["why_backend"]
            self.assertEqual(info["place_of_solve"], place)
            self.assertIn("spmv solve runs on " + place, text)
            self.assertEqual(info["solver"], solved["solve"]["solver"])
        for spec, words, env in (("poisson2d:32", ["--backend", "omp"], self.BUILT), ("uniform:20,30,3", [], self.BUILT)):
            self.assertNotIn("solve runs on", self.ok("info", spec, *words, env=env).stdout)

    def test_kinds_of_systems(self):
        n = 300  # more rows than a dense factor has
        path = [(i + 1, i, -1) for i in range(1, n)]
        ends = (1, n)
        self.assertEqual(self.kind(n, path + [(i, i, 2) for i in range(1, n + 1)]), "a symmetric matrix")
        neumann = path + [(i, i, 1 if i in ends else 2) for i in range(1, n + 1)]
        self.assertEqual(self.kind(n, neumann), "a symmetric matrix")
        self.assertEqual(self.kind(n, [(i, j, -v * 0.1) for i, j, v in neumann]), "a symmetric matrix")
        # D A D is as definite as A, and half of its rows have sums below 0
        scaled = [(i, j, v * (1 + 0.2 * (i % 2)) * (1 + 0.2 * (j % 2))) for i, j, v in
                  path + [(i, i, 2) for i in range(1, n + 1)]]
        self.assertEqual(self.kind(n, scaled), "a symmetric matrix")
        indefinite = "a symmetric indefinite matrix"
        self.assertEqual(self.kind(n, path + [(i, i, 1.9) for i in range(1, n + 1)]), indefinite)
        self.assertEqual(self.kind(n, path + [(i, i, (-1) ** i) for i in range(1, n + 1)]), indefinite)
        self.assertEqual(self.kind(n, path + [(1, 1, 2)]), indefinite)
        self.assertEqual(self.kind(n, path, "pattern symmetric"), indefinite)
        self.assertEqual(self.kind(n, [(i, i, 0) for i in range(2, n)] + [(1, 1, 1), (2, 1, -3)]), indefinite)
        self.assertEqual(self.kind(n, path + [(i, i, 2) for i in range(1, n + 1)], "real general"), "a general matrix")
        hermitian = [(i, i, "2 0") for i in range(1, n + 1)] + [(i + 1, i, "0 1") for i in range(1, n)]
        self.assertEqual(self.kind(n, hermitian, "complex hermitian"), "a symmetric matrix")

    def test_a_large_diagonal_needs_few_steps(self):
        result, said = self.solve("poisson2d:400", "--threads", "1", "--max-iterations", "1000000")
        if result["backend"] == "omp":
            self.assertNotIn("less than", result["why_backend"])
        n = 1000
        entries = "".join(f"{i} {i} 4\n" for i in range(1, n + 1)) + "".join(f"{i + 1} {i} -1\n" for i in range(1, n))
        a = self.write("strong.mtx", f"%%MatrixMarket matrix coordinate real symmetric\n{n} {n} {2 * n - 1}\n" + entries)
        self.assertIn("with 18 steps", self.solve(a)[1])  # 9.6 sqrt((1 + 1/2) / (1 - 1/2)) + 1

    def test_options_that_mean_a_backend(self):
        result, said = self.solve("poisson2d:30", "--backend", "omp")
        self.assertEqual(result["why_backend"], "the option --backend omp")
        self.assertNotIn("estimates", said)
        for words in (["--precond", "ic0"], ["--precond", "cholesky"]):
            result, said = self.solve("poisson2d:30", *words)
            self.assertEqual((result["backend"], result["why_backend"]),
                             ("omp", " ".join(words) + " is for the CPU only"))
            self.assertNotIn("estimates", said)
        for words in (["--device", "0"], ["--compress", "values"]):
            self.assertNotIn("estimates", self.solve("poisson2d:30", *words)[1])
        methods = {name for backend, names in self.usable_backends() if backend == "cuda" for name in names}
        for method in sorted(methods)[:1]:
            self.assertEqual(self.solve("poisson2d:30", "--rung", "graph", "--precond", "none")[0]["backend"], "cuda")

    def test_without_cuda_nothing_is_estimated(self):
        result, said = self.solve("poisson2d:30", env={})
        self.assertEqual("estimates" in said, result["why_backend"] != "this build has no CUDA")

    def test_a_job_that_memory_does_not_suffice_for(self):
        if "cuda" in dict(self.usable_backends()):
            self.skipTest("CUDA itself takes more memory")
        words = ["solve", "poisson2d:300", "--max-memory", "24M", "-o", os.devnull]
        plain = self.fails(5, *words, "--backend", "omp", says="the whole job needs")
        done = self.fails(5, *words, env=self.BUILT, says="the whole job needs")
        self.assertEqual(*(re.sub(r"\d+ MB are allowed", "", d.stderr) for d in (plain, done)))


if __name__ == "__main__":
    test_program.PROGRAM, test_program.SOURCE = sys.argv[1:3]
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])

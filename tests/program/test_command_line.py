#!/usr/bin/env python3
"""Tests the command line: the form without a command, help of each command, options without an
effect, mistyped names, a space in place of "="; the default text on standard error; that the
released program, "spmv" in the folder of PROGRAM, contains no test code.

test_command_line.py PROGRAM SOURCE_DIR [unittest arguments]. Python's standard library only.

SPDX-License-Identifier: BSD-3-Clause
"""

import json
import os
import re
import signal
import subprocess
import sys
import unittest

import test_program
from test_program import COMMANDS, numbers, run

WIDTH = 100
FEW = {"OMP_NUM_THREADS": "2"}


def options_of(text):
    return re.findall(r"(?m)^  (?:-\w, |    )--([a-z0-9-]+)", text.split("\nOptions:\n")[1].split("\n\n")[0])


class PlainForm(test_program.Case):
    """spmv A [x] is spmv matvec A [x]."""

    def test_every_option_of_mul(self):
        a = self.write("a.mtx", "%%MatrixMarket matrix coordinate real general\n3 2 3\n1 1 2\n2 2 3\n3 1 4\n")
        x, t, y0 = self.vector("x.txt", [1.0, 2.0]), self.vector("t.txt", [1.0, 2.0, 3.0]), self.vector("y0.txt", [8.0] * 3)
        y = os.path.join(self.folder, "y.txt")
        for words in (["--alpha", "2"], ["--y0", y0, "--beta", "-1", "--alpha", "0.5"], ["--format", "%.3e"]):
            with_name = self.ok("matvec", a, x, *words)
            self.assertEqual(self.ok(a, x, *words).stdout, with_name.stdout)
            self.ok(*words, a, x, "-o", y)
            self.assertEqual(self.read("y.txt"), with_name.stdout)
        self.assertEqual(numbers(self.ok(a, t, "--transpose").stdout), [14.0, 6.0])
        self.assertEqual(numbers(self.ok(a, x, "--alpha", "2", "--beta", "1", "--y0", y0).stdout), [12.0, 20.0, 16.0])

    def test_options_of_others_are_refused_alike(self):
        for words in (["poisson2d:3"], ["matvec", "poisson2d:3"]):
            self.fails(1, *words, "--rtol", "1", says="option --rtol is not for matvec; spmv solve, spmv eigs and spmv svds accept it")

    def test_help(self):
        self.assertEqual(self.ok("poisson2d:3", "--help").stdout, self.ok("matvec", "--help").stdout)
        self.assertIn("spmv A [x]", self.ok("help", "matvec").stdout)


# For each option, arguments of a run that shows whether the command takes it.
VALUES = {
    "output": ["-o", "out.svg"], "alpha": ["--alpha", "2"], "beta": ["--beta", "2"], "y0": ["--y0", "v"], "transpose": ["--transpose"],
    "x0": ["--x0", "v"], "rtol": ["--rtol", "1"], "atol": ["--atol", "1"], "damp": ["--damp", "1"],
    "conlim": ["--conlim", "9"], "condition": ["--condition"], "scaling": ["--scaling", "none"], "max-iterations": ["--max-iterations", "3"],
    "max-seconds": ["--max-seconds", "100"], "pairs": ["-k", "3"], "which": ["--which", "largest"], "mass": ["--mass", "M"],
    "history": ["--history", "h.csv"], "plot": ["--plot", "p.svg"], "precond": ["--precond", "none"],
    "solution": ["--solution", "ones"], "inner": ["--inner"], "suite": ["--suite", "small"], "op": ["--op", "spmv"],
    "size": ["--size", "64"], "peers": ["--peers", "none"], "csv": ["--csv"], "summary": ["--summary"], "seed": ["--seed", "1"],
    "vectors": ["--vectors", "2"], "exclusive": ["--exclusive"], "operator": ["--operator", "add"], "heads": ["--heads", "0"],
    "keep": ["--keep", "nonzero"], "backend": ["--backend", "auto"], "method": ["--method", "auto"], "rung": ["--rung", "auto"],
    "compress": ["--compress", "auto"], "type": ["--type", "f64"], "threads": ["--threads", "1"], "device": ["--device", "0"],
    "verify": ["--verify=off"], "cache": ["--cache"], "json": ["--json"], "format": ["--format", "%g"], "quiet": ["-q"],
    "verbose": ["-v"], "recycle": ["--recycle", "4"],
}  # fmt: skip


class Help(test_program.Case):
    def test_options_of_a_command_alone(self):
        """The help of a command lists an option if and only if the command accepts it."""
        for command in COMMANDS:
            text = self.ok(command, "--help").stdout
            listed = options_of(text)
            old = [VALUES["method"]] if command == "explain" else []  # the spelling until 0.11
            # Help stops before any work, but after the check of the options. -q and -v exclude each other.
            accepted = [word for option, words in VALUES.items() if option in listed and option != "verbose" for word in words]
            for words in accepted, VALUES["verbose"], *old:
                self.assertEqual(self.ok(command, *words, "--help").stdout, text)
            for option, words in VALUES.items():
                if option not in listed and words not in old:
                    done = run(command, *words, "--help")
                    self.assertEqual(done.returncode, 1, (command, option))
                    self.assertRegex(done.stderr, rf"option --{option} is not for {command}; (spmv \w+,? ?(and )?)+accepts? it")

    def test_effects(self):
        takers = lambda option: {c for c in COMMANDS if option in options_of(self.ok(c, "--help").stdout)}
        self.assertEqual(takers("format"), {"matvec", "solve", "eigs", "svds"})
        self.assertEqual(takers("verify"), {"matvec", "solve", "eigs", "svds"})
        self.assertEqual(takers("compress"), {"matvec", "solve", "bench", "info"})
        self.assertEqual(takers("method"), {"matvec", "spgemm", "solve", "bench", "info"})
        self.assertEqual(takers("rung"), {"solve", "bench", "explain"})
        self.assertEqual(takers("json"), set(COMMANDS) - {"help"})
        self.assertEqual(takers("threads"), set(COMMANDS) - {"help", "explain", "exercise"})
        self.assertEqual(takers("quiet"), set(COMMANDS))

    def test_names_come_from_the_library(self):
        built = json.loads(self.ok("doctor", "--json").stdout)["doctor"]["backends"]
        text = self.ok("solve", "--help").stdout
        joined = text.replace(",\n    ", ", ")  # lists that take several lines
        for backend in built:
            if backend["built"]:
                self.assertIn(f"  {backend['name']}: auto, {', '.join(backend['methods'])}\n", joined)
                self.assertIn(f"  {backend['name']}: auto, {', '.join(backend['solvers'])}\n", joined)
            else:
                self.assertNotIn(f"  {backend['name']}: auto", text)
        listed = re.split(r",\s+", re.search(r"Preconditioners .*:\n  names: (.*(?:\n    .*)*)", text).group(1))
        self.assertEqual(listed[:2], ["none", "jacobi"])
        self.assertEqual(listed[-2:], ["auto", "all"])
        refused = self.fails(1, "solve", "poisson2d:3", "--precond", "zzz").stderr
        self.assertEqual(re.search(r"there are: (.*)", refused).group(1).split(", "), listed)
        self.assertNotIn("Preconditioners", self.ok("matvec", "--help").stdout)
        bench = self.ok("bench", "--help").stdout
        for word in ("gather-sequential", "scan-host", "load", "eigen", "small"):
            self.assertIn(word, bench)

    def test_width(self):
        for command in COMMANDS:
            for line in self.ok(command, "--help").stdout.splitlines():
                self.assertLessEqual(len(line), WIDTH, line)


class NoEffect(test_program.Case):
    def test_pairs(self):
        self.fails(1, "poisson2d:3", "-q", "-v", says="exclude each other")
        self.fails(1, "poisson2d:3", "--backend", "omp", "--device", "0", says="--device has no effect")
        self.fails(1, "poisson2d:3", "--json", "--format", "%g", says=["--format has no effect", "-o"])
        self.ok("poisson2d:3", "--json", "--format", "%.1f", "-o", os.path.join(self.folder, "y.txt"))
        self.assertEqual(self.read("y.txt").splitlines()[0], "2.0")

    def test_bench(self):
        a = self.data("symmetric4.mtx")
        self.fails(1, "bench", a, "--op", "cg", "--seed", "2", "--peers", "none", says="--seed has no effect")
        self.fails(1, "bench", a, "--peers", "none", "--summary", says="--summary has no effect")
        for words in (["--seed", "2"], ["--method", "tiles"], ["--compress", "off"]):
            self.fails(1, "bench", "--op", "load", a, *words, says=f"{words[0]} is not for bench --op load")


class DidYouMean(test_program.Case):
    def meant(self, name, *arguments, code=1):
        self.fails(code, *arguments, says=f"did you mean {name}?")

    def test_commands(self):
        self.meant("solve", "sovle", "poisson2d:3", code=2)
        self.meant("convert", "converr", "a", "b", code=2)
        self.meant("bench", "help", "benhc")
        self.meant("bench", "bnech", "--help", code=2)

    def test_options(self):
        for wrong, right in (("--metod", "method"), ("--precomd=x", "precond"), ("--trasnpose", "transpose"),
                             ("--ALPHA", "alpha"), ("--thread-count", None), ("--zzz", None)):  # fmt: skip
            done = self.fails(1, "poisson2d:3", wrong, says=f"unknown option {wrong}")
            self.assertEqual(f"did you mean --{right}?" in done.stderr, right is not None, done.stderr)
        for wrong, right in (("--maxiter", "max-iterations"), ("--max-iter-count", "max-iterations"), ("--tol=1e-3", "rtol"), ("--max-time", "max-seconds"),
                             ("--dtype", "type"), ("--num-threads", "threads")):  # fmt: skip
            self.meant(f"--{right}", "solve", "poisson2d:3", wrong)
        self.fails(1, "poisson2d:3", "--ver", says=["ambiguous", "--verify", "--verbose", "--version"])

    def test_names(self):
        self.meant("tiles", "poisson2d:3", "--method", "tlies")
        self.meant("fused", "solve", "poisson2d:3", "--method", "fuesd:tiles")
        self.meant("tiles", "solve", "poisson2d:3", "--method", "textbook:tile")
        self.meant("jacobi", "solve", "poisson2d:3", "--precond", "jakobi")
        self.meant("block-jacobi", "solve", "poisson2d:3", "--precond", "block")
        self.meant("small", "bench", "--suite", "smal")
        self.meant("spmm", "bench", "--op", "smpm", "poisson2d:3")
        self.meant("eigen", "bench", "poisson2d:3", "--peers", "none,eigne")
        self.meant("tiles", "bench", "poisson2d:3", "--peers", "none", "--method", "auto,tilse")
        self.meant("segscan", "explain", "--op", "segsacn", "1")

    def test_nothing_is_near(self):
        for words in (["--method", "x"], ["--method", "parallel"]):
            self.assertNotIn("did you mean", self.fails(1, "poisson2d:3", *words, says="there are: auto").stderr)
        self.assertNotIn("did you mean", self.fails(2, "matrix").stderr)

    def test_before_any_work(self):
        """An unknown name is reported before the matrix is read."""
        for words in (["--method", "tils"], ["solve", "--precond", "jac0bi"]):
            self.fails(1, *words, "absent.mtx", says="did you mean")


class Names(test_program.Case):
    def test_old_names(self):
        """The spelling until 0.11: accepted, and not listed."""
        square = ["poisson2d:3", "poisson2d:3"]
        for old, new in (
            (["mul", "poisson2d:3"], ["matvec", "poisson2d:3"]), (["multiply", *square], ["spgemm", *square]),
            (["help", "mul"], ["help", "matvec"]), (["multiply", "--help"], ["spgemm", "--help"]),
            (["explain", "--op", "multiply", "dense:2,2", "dense:2,2"], ["explain", "--op", "spgemm", "dense:2,2", "dense:2,2"]),
            (["explain", "--op", "scan", "--method", "blelloch", "1", "2"], ["explain", "--op", "scan", "--rung", "blelloch", "1", "2"]),
        ):  # fmt: skip
            self.assertEqual(self.ok(*old).stdout, self.ok(*new).stdout, old)
        for words in ([], ["explain"]):
            listed = self.ok(*words, "--help").stdout
            self.assertNotRegex(listed, r"\bmul\b(?!,)|\bmultiply A|--method" if words else r"\bmul\b|\bmultiply\b")
        self.fails(1, "bench", "poisson2d:3", "--op", "cg", "--rung", "textbook", "--method", "tiles", says="--rung or --method")

    def test_preconditioner_is_precond(self):
        for option in "--precond", "--preconditioner", "--preconditione":
            done = self.ok("solve", "poisson2d:9", option, "ic0", "-o", os.devnull)
            self.assertIn("preconditioner ic0, set up", done.stderr)
        self.assertNotIn("--preconditioner", self.ok("solve", "--help").stdout)

    def test_convert_takes_its_output_by_option(self):
        a, b = self.data("symmetric4.mtx"), os.path.join(self.folder, "b.mtx")
        self.ok("convert", a, "-o", b)
        self.assertEqual(self.ok("convert", a, "-").stdout, self.read("b.mtx"))
        self.fails(1, "convert", a, b, "-o", os.path.join(self.folder, "c.mtx"), says="two outputs")
        self.fails(1, "convert", a, says=["the output is missing", "convert A -o B"])
        self.fails(1, "convert", b, "-o", b, says="is an input")


class Integers(test_program.Case):
    """Numbers such as 1e3 are read wherever an integer is meant."""

    RIGHT = ("2e0", "1E1", "2.5e+1", "0.3e2", "120e-1", "12.0", "+7")
    WRONG = ("1.5", "1e-1", "0x10", "1e", "inf", "nan", "1 ", "", "1e1x", "--")

    def test_options(self):
        """Every option that the help lists with an integer reads both forms, and refuses other texts."""
        counts = 0
        for command in COMMANDS:
            for option, argument in re.findall(r"(?m)^  (?:-\w, |    )--([a-z0-9-]+) ([NKS])\b", self.ok(command, "--help").stdout):
                counts += 1
                self.assertNotIn("must be", run(command, f"--{option}", "0.2e1", "--help").stderr, (command, option))
                self.fails(1, command, f"--{option}=1.5", "--help", says=f"--{option} 1.5: must be an integer")
        self.assertGreater(counts, 15)
        for text in self.RIGHT:
            self.assertNotIn("must be", run("solve", "--restart", text, "--help").stderr, text)
        for text in self.WRONG:
            self.fails(1, "solve", f"--restart={text}", "--help", says=f"--restart {text}: must be an integer")

    def test_the_value_is_the_same(self):
        for text, value in (("1e0", 1), ("3.0", 3), ("0.4e1", 4)):
            done = run("solve", "poisson2d:9", "--max-iterations", text, "--precond", "none", "-q", "-o", os.devnull)
            self.assertIn(f"after {value} iteration", done.stderr)
        self.fails(1, "solve", "poisson2d:9", "--max-iterations", "1e300", says="too large, must be at most 2147483647")
        self.fails(1, "bench", "--op", "scan", "--size", "1e17", says="too large")

    def test_specs(self):
        for given, plain in (("poisson2d:1e1", "poisson2d:10"), ("poisson2d:30e-1", "poisson2d:3"), ("poisson2d:0.5e1", "poisson2d:5"),
                             ("diffusion2d:9,1e3", "diffusion2d:9,1000"), ("diffusion2d:9,10,1.5e-2", "diffusion2d:9,10,0.015"),
                             ("uniform:1e1,2e1,3,seed=1E2", "uniform:10,20,3,seed=100")):  # fmt: skip
            self.assertEqual(self.ok("gen", given).stdout, self.ok("gen", plain).stdout, given)
        self.ok("solve", "diffusion2d:20,1e8", "-o", os.devnull)
        for wrong in "poisson2d:1.5", "poisson2d:15e-1", "poisson2d:1e", "poisson2d:e1", "poisson2d:1e+", "poisson2d:-1e1", "poisson2d:0e3":
            self.fails(1, "gen", wrong, says="malformed")
        self.fails(3, "gen", "poisson2d:1e30", says="beyond 64 bits")
        self.fails(1, "gen", "diffusion2d:9,1e30")


class SpaceForEquals(test_program.Case):
    def path(self, name):
        return os.path.join(self.folder, name)

    def test_json_file(self):
        out = self.path("r.json")
        for words in (["poisson2d:3"], ["info", "poisson2d:3"], ["solve", "poisson2d:3", "-q"]):
            if os.path.exists(out):
                os.remove(out)
            done = self.ok(*words, "--json", out)
            self.assertNotEqual(done.stdout, "")
            self.assertEqual(json.loads(self.read("r.json"))["schema"], "spmv/1")
            text = self.read("r.json")
            self.fails(1, *words, "--json", out, says=["the file exists", f"--json={out}"])
            self.assertEqual(self.read("r.json"), text)
            self.ok(*words, f"--json={out}")

    def test_inputs_stay_inputs(self):
        a = self.write("a.mtx", "%%MatrixMarket matrix coordinate real general\n2 2 2\n1 1 2\n2 2 3\n")
        x = self.vector("x.txt", [1.0, 2.0])
        for words in ([a, "--json", x], ["--json", a, x], ["matvec", "--json", a, x], ["--json", "matvec", a, x]):
            result = json.loads(self.ok(*words).stdout)
            self.assertEqual(result["matrix"]["rows"], 2)
        self.assertEqual(json.loads(self.ok("--json", "poisson2d:3").stdout)["matrix"]["rows"], 9)
        self.assertEqual(self.read("x.txt"), "1.0\n2.0\n")

    def test_is_explained(self):
        new = self.path("result.txt")
        self.fails(1, "info", "poisson2d:3", "--json", new, says=f"--json={new}")
        self.fails(2, "poisson2d:3", "--json", new, says=f"--json={new}")
        self.fails(2, "bench", "--peers", "none", "--csv", new, says=f"--csv={new}")
        self.assertEqual(os.listdir(self.folder), [])

    def test_csv_file(self):
        out = self.path("r.csv")
        self.ok("bench", "poisson2d:9", "--peers", "none", "--csv", out, env=FEW)
        self.assertIn("poisson2d:9", self.read("r.csv"))
        self.fails(1, "bench", "poisson2d:9", "--peers", "none", "--csv", out, says=["the file exists", f"--csv={out}"])

    def test_verify_mode(self):
        done = self.ok("poisson2d:3", "--verify", "off")
        self.assertIn("not checked", done.stderr)
        self.assertIn("same bits", self.ok("--verify", "bitwise", "poisson2d:3").stderr)
        self.assertIn("checked against", self.ok("poisson2d:3", "--verify").stderr)
        self.assertIn("checked against", self.ok("--verify", "poisson2d:3").stderr)
        self.vector("off", [1.0] * 9)
        self.fails(1, "poisson2d:3", "--verify", "off", says=["--verify=off", "./off"], cwd=self.folder)
        self.ok("poisson2d:3", "--verify", "./off", cwd=self.folder)


class Text(test_program.Case):
    """The default text on standard error."""

    def commands(self):
        a, y = self.data("symmetric4.mtx"), os.path.join(self.folder, "y.txt")
        return [
            [a], ["matvec", "poisson2d:60", "--transpose", "-o", y], ["poisson2d:20", "--verify=bitwise", "-o", y],
            ["poisson2d:20", "--type", "mixed", "-o", y], ["solve", "poisson2d:30", "-o", y],
            ["solve", "poisson2d:30", "--precond", "all", "-o", y], ["solve", "poisson2d:30", "--precond", "auto", "-o", y],
            ["solve", "poisson2d:20", "--precond", "ic0", "--vectors", "3", "-o", y], ["gen", "poisson2d:9", "-o", y + ".mtx"],
            ["convert", a, y + ".spmv"], ["info", "poisson2d:30"], ["solve", "poisson2d:9", "--inner", "-o", y],
        ]  # fmt: skip

    def test_width_and_prefix(self):
        for words in self.commands():
            text = self.ok(*words, env=FEW).stderr
            for line in text.splitlines():
                self.assertLessEqual(len(line), WIDTH, line)
                self.assertRegex(line, r"^(spmv: \S|  +[a-z0-9]|spmv:   \S)", (words, line))
                if line.startswith("spmv: "):  # a table has no prefix
                    self.assertNotRegex(line, r"^spmv: (load|plan|solve|check|none|jacobi) {2,}")
        # lines of information are short enough not to be broken, but for reasons
        self.assertNotIn("\nspmv:   ", re.sub(r"spmv: reason.*(\nspmv:   .*)+", "", text))

    def test_long_texts_are_broken_at_blanks(self):
        text = self.ok("-v", "poisson2d:100", "-o", os.devnull).stderr
        self.assertIn("\nspmv:   ", text)
        self.assertRegex(text.replace("\nspmv:   ", " "), r"reason for the method: .*rows \+ nonzeros")
        for command in (["info", "poisson2d:100"], ["doctor"]):
            for line in self.ok(*command, env=FEW).stdout.splitlines():
                self.assertLessEqual(len(line), WIDTH, line)

    def test_reasons(self):
        """That of the preconditioner which auto chose always, the others with -v."""
        for words in (["poisson2d:60", "-o", os.devnull], ["solve", "poisson2d:30", "-o", os.devnull]):
            self.assertEqual(self.ok(*words).stderr.count("reason"), int(words[0] == "solve"))
            self.assertNotIn("keep all threads busy", self.ok(*words).stderr)
            self.assertIn("reason for the method", self.ok("-v", *words).stderr)
        self.assertIn("reason for the preconditioner: the diagonal", self.ok(*words).stderr)
        named = ["solve", "poisson2d:30", "--precond", "jacobi", "-o", os.devnull]
        self.assertNotIn("reason", self.ok(*named).stderr)
        self.assertIn("reason for the preconditioner: requested by name", self.ok("-v", *named).stderr)

    def test_one_fact_a_line(self):
        lines = self.ok("poisson2d:20", "--backend", "omp", "-o", os.devnull).stderr.splitlines()
        starts = ["poisson2d:20: 400 x 400", "on omp", "method tiles", "load ", "y checked against ref: passed"]
        self.assertEqual(len(lines), len(starts), lines)
        for line, start in zip(lines, starts):
            self.assertTrue(line.startswith("spmv: " + start), line)

    def test_no_function_names(self):
        bad = self.write("bad.mtx", "%%MatrixMarket matrix coordinate real symmetric\n2 2 2\n1 1 1\n2 2 -1\n")
        x = self.vector("x.txt", [1.0, float("nan")])
        for words in (["solve", bad, "--precond", "jacobi"], ["solve", bad], ["solve", "poisson2d:9", "--max-iterations", "1"],
                      ["solve", "poisson2d:9", "--rung", "textbook", "--max-iterations", "1", "--precond", "all"],
                      ["solve", self.data("symmetric4.mtx"), "--rtol", "0", "--atol", "0"],
                      ["solve", self.data("symmetric4.mtx"), x], ["bench", "uniform:9,9,2", "--op", "cg", "--peers", "none"],
                      ["bench", "uniform:9,8,2", "--op", "cg", "--peers", "none"], ["explain", "--op", "segscan", "--operator", "max", "1"],
                      ["explain", "--op", "scan", "--rung", "zig", "1"]):  # fmt: skip
            done = run(*words)
            self.assertNotRegex(done.stderr, r"\b(spmv|context|plan|cg|host|matrix)_[a-z_]+", words)

    def test_plurals(self):
        one = self.write("one.mtx", "%%MatrixMarket matrix coordinate real general\n1 1 1\n1 1 2\n")
        text = self.ok(one, "-o", os.devnull).stderr + run("solve", "poisson2d:9", "--max-iterations", "1", "--precond", "none", "-q").stderr
        text += self.ok("solve", one, "-v", "-o", os.devnull, "--threads", "1").stderr
        text += self.ok("convert", one, os.path.join(self.folder, "two.mtx")).stderr + self.ok("gen", "diagonal:1", "-o", os.devnull).stderr
        text += self.fails(3, self.write("bad.mtx", "%%MatrixMarket matrix coordinate real general\n1 1 1\n2 1 2\n")).stderr
        self.assertNotRegex(text, r"\b1 (nonzeros|iterations|restarts|threads|entries|rows|repeats|vectors)\b")
        self.assertIn("after 1 iteration;", text)
        self.assertIn("1 nonzero,", text)

    def test_plurals_of_small_systems(self):
        """Layouts and summaries of systems of one to three rows, with every preconditioner, on ranks, of a product."""
        text = ""
        three = self.write("three.mtx", "%%MatrixMarket matrix coordinate real symmetric\n3 3 5\n1 1 4\n2 1 1\n2 2 4\n3 2 1\n3 3 4\n")
        for system in "poisson2d:1", three:
            for precond in "jacobi", "block-jacobi", "chebyshev", "ic0", "cholesky", "ilu0", "ilut", "fsai", "isai", "amg":
                text += self.ok("solve", system, "--precond", precond, "-v", "-o", os.devnull).stderr
        self.assertIn("1 dense block of 3 rows", text)
        self.assertIn("1 dense block of 1 row,", text)
        self.assertIn("1 level of 1 row ", text)
        for ranks in "1", "2":
            text += self.ok("matvec", "diagonal:1", "--ranks", ranks, "-o", os.devnull).stderr
            text += self.ok("solve", "poisson2d:2", "--ranks", ranks, "-o", os.devnull).stderr
        self.assertIn("1 chunk of rows", text)
        text += self.ok("spgemm", "diagonal:1", "diagonal:1", "-o", os.devnull).stderr
        text += self.ok("diagonal:1", "--verify=bitwise", "-o", os.devnull).stderr
        text += self.ok("explain", "--op", "expand", "1").stdout + self.ok("explain", "--op", "spgemm", "diagonal:1", "diagonal:1").stdout
        one = self.vector("one.txt", [1.0])
        for words in (["matvec", "poisson2d:2", one], ["solve", "poisson2d:2", one], ["solve", "poisson2d:1", "--near-null", self.vector("two.txt", [1.0, 2.0])]):
            text += self.fails(4, *words).stderr
        plurals = "chunks|levels|rows|blocks|products|nonzeros|entries|elements|columns|numbers|vectors|repeats|iterations|restarts|outputs|levels"
        self.assertNotRegex(text, rf"\b1 ({plurals})\b")

    def test_rows_count_from_1(self):
        two = self.write("two.mtx", "%%MatrixMarket matrix coordinate real general\n3 3 3\n2 1 1\n2 2 1\n3 3 1\n")
        self.assertRegex(self.ok("info", two).stdout, r"(?m)^longest row +row 2, with 2 entries$")
        text = self.ok(self.write("d.mtx", "%%MatrixMarket matrix coordinate real general\n1 1 1\n1 1 2\n")).stderr
        self.assertIn("worst row 1,", text)
        bad = self.write("bad.mtx", "%%MatrixMarket matrix coordinate real symmetric\n2 2 2\n1 1 1\n2 2 -1\n")
        self.fails(8, "solve", bad, "--precond", "jacobi", says="row 2 is -1")
        alone = self.write("alone.mtx", "%%MatrixMarket matrix coordinate real symmetric\n3 3 3\n1 1 2\n3 1 -1\n3 3 2\n")
        for precond in "jacobi", "ic0":
            done = self.ok("solve", alone, "--solver", "cg", "--precond", precond, "-o", os.devnull)
            self.assertIn("1 row without entries, left alone: row 2", " ".join(done.stderr.split()).replace("spmv: ", ""))
        nan = self.write("nan.mtx", "%%MatrixMarket matrix coordinate real symmetric\n2 2 3\n1 1 4\n2 1 nan\n2 2 4\n")
        self.assertNotIn("counted from", self.fails(7, "solve", nan, "--precond", "none", "-o", os.devnull, says="A has nan in row 1, column 2").stderr)


class Release(test_program.Case):
    def test_no_faults(self):
        """Faults for tests are not in the released program or its manual, and have no effect."""
        released = os.path.join(os.path.dirname(test_program.PROGRAM), "spmv")
        with open(released, "rb") as file:
            program = file.read()
        with open(os.path.join(test_program.SOURCE, "app", "spmv.1"), encoding="utf-8") as file:
            page = file.read()
        for name in ("SPMV_TEST_", "PLANT_ERROR", "CACHE_BYTES"):
            self.assertNotIn(name, page)
        # Debug information may contain the names without their prefix.
        self.assertFalse(b"SPMV_TEST_" in program, "the program holds SPMV_TEST_")
        planted = dict(os.environ, SPMV_TEST_PLANT_ERROR="5")
        self.assertEqual(subprocess.run([released, "poisson2d:4", "-q", "-o", os.devnull], env=planted, check=False).returncode, 0)

    def test_json_is_documented(self):
        """docs/json.md documents every key that these commands write."""
        path = os.path.join(test_program.SOURCE, "docs", "json.md")
        if not os.path.exists(path):
            self.skipTest("no docs beside these tests")
        with open(path, encoding="utf-8") as file:
            known = set(re.findall(r"`([a-z_0-9.]+)`", file.read()))

        def keys(value):
            for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else []:
                yield from keys(item)
            if isinstance(value, dict):
                yield from value

        complex_file = self.write("c.mtx", "%%MatrixMarket matrix coordinate complex hermitian\n1 1 1\n1 1 2 0\n")
        x = self.write("x.txt", "1 2\n" * 4)
        found = set()
        for words in (["matvec", self.data("symmetric4.mtx"), x], ["poisson2d:3", "--type", "mixed", "--verify=bitwise"], ["info", complex_file],
                      ["solve", "poisson2d:9", "--vectors", "2"], ["solve", "poisson2d:9", "--precond", "jacobi", "--verify=bitwise"],
                      ["matvec", "poisson2d:9", "--ranks", "2"], ["solve", "poisson2d:9", "--ranks", "2"],
                      ["bench", "poisson2d:9", "--ranks", "2"], ["spgemm", "poisson2d:9", "poisson2d:9"],
                      ["eigs", "poisson2d:4", "--verify=bitwise"], ["svds", "poisson2d:4"], ["info", self.data("symmetric4.mtx")], ["doctor"], ["spy", "poisson2d:9"]):  # fmt: skip
            found |= set(keys(json.loads(self.ok(*words, "--json", env=FEW).stdout)))
        self.assertIn("worst_vector", found)
        self.assertIn("vectors", found)
        self.assertEqual(found - known, set())
        for word in ('"cache"', '"binary"', '"spec"', '"mtx"'):
            self.assertIn(word.replace('"', ""), known)

    def test_readme(self):
        path = os.path.join(test_program.SOURCE, "README.md")
        if not os.path.exists(path):
            self.skipTest("no README beside these tests")
        with open(path, encoding="utf-8") as file:
            text = file.read()
        self.assertLessEqual(text.count("\n"), 90)
        table = re.findall(r"(?m)^spmv ([a-z]+) ", text)
        self.assertEqual(len(table), len(set(table)), table)
        self.assertEqual(set(table), set(COMMANDS) - {"matvec", "help"})
        shown = re.search(r"\$ spmv (\S+ \S+)\n((?:.+\n)+)```", text)
        real = self.ok(*shown.group(1).split(), cwd=test_program.SOURCE, env=FEW)
        self.assertEqual(self.plain(shown.group(2)), self.plain(real.stdout + real.stderr))

    def plain(self, text):
        """The lines without times, shares of time, and the description of the machine."""
        varies = r" *[-+.0-9e]+( [mu]?s\b| GB/s| %$)|\d threads?|\(auto.*\)"
        return [re.sub(varies, "#", line) for line in text.splitlines()]

    def test_first_steps(self):
        """The solves that the page shows in full, and its refusals, are those of the program."""
        path = os.path.join(test_program.SOURCE, "docs", "first-steps.md")
        if not os.path.exists(path):
            self.skipTest("no pages beside these tests")
        with open(path, encoding="utf-8") as file:
            text = file.read()
        commands = re.findall(r"(?m)^\$ spmv (slove .*|solve poisson2d.*|solve data.*)\n((?:(?![$`]).+\n)+)", text)
        self.assertEqual(len(commands), 3)
        for words, shown in commands:
            real = run(*words.split(), cwd=self.folder if "-o" in words else test_program.SOURCE, env=FEW)
            self.assertEqual(self.plain(shown), self.plain(real.stdout + real.stderr))


if __name__ == "__main__":
    test_program.PROGRAM, test_program.SOURCE = map(os.path.abspath, sys.argv[1:3])
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]], verbosity=1)

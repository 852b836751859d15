#!/usr/bin/env python3
"""Tests spmv exercise: right solutions pass, wrong ones are refused with the reason, and a student's
code can neither hang nor crash the program.

test_exercise.py PROGRAM SOURCE_DIR [unittest arguments]. Python's standard library only, and a C
compiler, without which the test is skipped (exit code 77).

SPDX-License-Identifier: BSD-3-Clause
"""

import concurrent.futures
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import unittest

import test_program
from test_program import run

EXERCISES = ["scan", "parallel-scan", "segmented-scan", "spmv", "cg"]

# Each is a right solution with one change, and what the refusal says.
INCLUSIVE = "out[i] = i > 0 ? op(out[i - 1], in[i]) : in[i];"
WRONG = {
    "scan": [
        (INCLUSIVE, "out[i] = i > 1 ? op(out[i - 1], in[i - 1]) : i > 0 ? in[0] : 0;",
         ["scan_inclusive, operator add, 1 value: out[0] is 0, expected 3", "this is the exclusive scan"]),
        ("i < n; i++)\n        out[i] = i", "i <= n; i++)\n        out[i] = i", ["0 values: uses in[0], but in has 0 elements"]),
        ("op(out[i - 1], in[i])", "op(in[i], out[i - 1])",
         ["operator compose, 2 values", "compose(12, 34) = 30, compose(34, 12) = 36: it does not commute"]),
        ("out[i] = sum;\n        sum = next;", "out[i] = sum;\n        sum = op(sum, in[i]);", ["scan_exclusive", "in place (out is in): out["]),
        ("for (int64_t i = 0; i < n; i++)\n        " + INCLUSIVE, "for (int64_t i = n - 1; i >= 0; i--) {\n        int64_t sum = in[0];\n"
         "        for (int64_t j = 1; j <= i; j++)\n            sum = op(sum, in[j]);\n        out[i] = sum;\n    }",
         ["1024 values, measured: right, but op is called 523776 times (the work); at most 1024 are asked"]),
        ("sum = identity", "sum = 0", ["scan_exclusive, operator compose, 1 value: out[0] is 0, expected 10"]),
        ("out[i] = sum;", "((int64_t *)in)[i] = sum;", ["scan_exclusive", "writes to in[0], which is an input"]),
        (INCLUSIVE, "for (;;) ;", ["does not end within 1 s", "scan_inclusive, operator add, 1 value:"]),
        (INCLUSIVE, "*(volatile int *)0 = 1;", ["1 value: crashes: it uses an address outside its arrays"]),
        (INCLUSIVE, "exit(0);", ["1 value: ends the program"]),
        (INCLUSIVE, "scan_inclusive(op, in, out, n);", ["1 value: crashes: ", "calls itself too often"]),
        ("out[i] = i > 0", "out[-1] = 0, out[i] = i > 0", ["1 value: writes before the beginning of out"]),
        ("void scan_exclusive", "static void scan_exclusive", ["it has no function scan_exclusive; spmv exercise scan prints its form"]),
        ("sum = next;", "sum = next + undefined(1);", ["undefined symbol: undefined"]),
    ],
    "parallel-scan": [
        ("for (; d < n; d *= 2)", "for (int64_t i = 1; i < n; i++)\n        out[i] = op(out[i - 1], out[i]);\n    for (; d < 1;)",
         ["1000 values, measured: right, but 999 calls of op wait for each other (the depth); at most 20"]),
        ("for (int64_t i = 2 * d - 1; i < n; i += 2 * d)\n            out[i] = op(out[i - d], out[i]);\n    for (d /= 2;",
         "for (int64_t i = n - 1; i >= d; i--)\n            out[i] = op(out[i - d], out[i]);\n    for (d = 0;",
         ["right, but op is called 8977 times (the work); at most 2000", "measured"]),
        ("op(out[i - d], out[i]);\n    for (d", "op(out[i], out[i - d]);\n    for (d", ["compose, 2 values: out[1] is", "it does not commute"]),
        ("i = 3 * d - 1", "i = 3 * d", ["add, 3 values: out[2] is 7, expected 11"]),
        ("i < n; i++)\n        out", "i < n - 1; i++)\n        out", ["add, 1 value: out[0] is not written"]),
    ],
    "segmented-scan": [
        ("later.head ? later.value : ", "", ["2 values, each value a segment, scan by a loop: the value of cell 1 is 4, expected 1"]),
        ("earlier.head || later.head", "later.head", ["the head of cell 1 is 0, expected 1"]),
        ("op(earlier.value, later.value)", "op(later.value, earlier.value)", ["operator compose, 2 values", "it does not commute"]),
        ("later.head ?", "earlier.head ?", ["the value of cell 1 is 4, expected 1"]),
    ],
    "spmv": [
        ("head[k] ? scanned[k] : ", "", ["3 x 3, one entry in each row: y[1] is"]),
        ("row_ptr[i] < row_ptr[i + 1] ? scanned[row_ptr[i + 1] - 1] : 0", "row_ptr[i + 1] ? scanned[row_ptr[i + 1] - 1] : 0",
         ["the second row is empty: y[1] is", "expected 0", "row 1 has 0 entries, from row_ptr[1] = 2 on"]),
        ("scanned[row_ptr[i + 1] - 1] : 0", "scanned[row_ptr[i + 1] - 1] : y[i]", ["the second row is empty: y[1] is not written"]),
        ("head[k] ? scanned[k] : scanned[k - 1] + scanned[k];\n    for (int64_t i = 0; i < rows; i++)\n        y[i] = row_ptr[i] < row_ptr[i + 1] ? scanned[row_ptr[i + 1] - 1] : 0",
         "scanned[k - 1] + scanned[k];\n    for (int64_t i = 0; i < rows; i++)\n"
         "        y[i] = row_ptr[i] < row_ptr[i + 1] ? scanned[row_ptr[i + 1] - 1] - (row_ptr[i] ? scanned[row_ptr[i] - 1] : 0) : 0",
         ["a huge row, then a small one: y[1] is 0, expected"]),
        ("i < rows; i++)\n        y", "i <= rows; i++)\n        y", ["no rows: uses row_ptr[1], but row_ptr has 1 element"]),
        ("val[k] * x[col[k]]", "val[k] * x[col[k] + 1]", ["1 x 1, one row with one entry: uses x[1], but x has 1 element"]),
    ],
    "cg": [
        ("r[i] + rho / before * p[i]", "r[i]", ["a diagonal with 3 different values, n = 12: more than 6 products"]),
        (" && sqrt(rho) > goal", "", ["n = 0: more than 3 products"]),
        ("sqrt(rho) > goal", "(k == 0 && n > 0 || sqrt(rho) > goal)", ["b = 0: ||b - A x|| is nan"]),
        ("k < most && ", "", ["most = 5: more than 8 products"]),
        ("r[i] = b[i] - q[i]", "r[i] = b[i]", ["start x = random numbers"]),
        ("return k;", "return k + 1;", ["n = 0: returns 1 iterations; 0 are needed"]),
    ],
}  # fmt: skip


def solution(name):
    with open(os.path.join(test_program.SOURCE, "tests", "program", "exercises", f"{name}.c"), encoding="utf-8") as file:
        return file.read()


class Exercise(test_program.Case):
    def setUp(self):
        super().setUp()
        self.temporary = os.path.join(self.folder, "tmp")
        os.mkdir(self.temporary)
        self.env = {"TMPDIR": self.temporary}

    def check(self, name, path, *words, **env):
        """Runs the tests; nothing may stay in the folder of temporary files."""
        words = words if "--max-seconds" in words else [*words, "--max-seconds", "100"]  # other tests may take the processors
        return run("exercise", name, path, *words, cwd=self.folder, env=dict(self.env, **env))

    def tearDown(self):
        self.assertEqual(os.listdir(self.temporary), [])

    def test_list(self):
        done = self.ok("exercise")
        self.assertEqual(re.findall(r"(?m)^(\S+) +\S.*\(docs/lessons/", done.stdout), EXERCISES)
        listed = json.loads(self.ok("exercise", "--json").stdout)["exercises"]
        self.assertEqual([e["name"] for e in listed], EXERCISES)
        for e in listed:
            self.assertTrue(os.path.exists(os.path.join(test_program.SOURCE, "docs", "lessons", e["lesson"])), e)
        self.fails(1, "exercise", "sacn", says=['unknown exercise "sacn"', "did you mean scan?"])
        self.fails(1, "exercise", "scan", "a.c", "b.c")
        self.fails(1, "exercise", "scan", "--json", says="--json has no effect")

    def test_forms(self):
        """The form compiles without a warning, and its test says what is missing."""
        for name in EXERCISES:
            text = self.ok("exercise", name).stdout
            self.assertLessEqual(max(map(len, text.splitlines())), 110)
            self.assertIn(f"Test it: spmv exercise {name} {name}.c", text)
            path = self.write(f"{name}.c", text)
            done = self.check(name, f"{name}.c")
            self.assertEqual(done.returncode, 9, done.stderr)
            self.assertRegex(done.stderr, rf"\Aspmv: {name}\.c: .*:\n  .*(expected|asked)")
            self.assertEqual(done.stdout, "")
            strict = ["cc", "-std=c11", "-Wall", "-Wextra", "-Wno-unused-parameter", "-Werror", "-fsyntax-only", path]
            subprocess.run(strict, check=True)

    def test_right(self):
        says = {"scan": "1024 values: work 1023, depth 1023\n", "parallel-scan": "1024 values: work 2036, depth 18\n"}
        for name in EXERCISES:
            self.write("a b.c", solution(name))
            done = self.check(name, "a b.c")
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertRegex(done.stdout, rf"\A{name}: passed, \d+ cases\n.*\n{says.get(name, '')}\Z")

    def test_wrong(self):
        jobs = []
        for name, changes in WRONG.items():
            for number, (old, new, says) in enumerate(changes):
                text = solution(name)
                self.assertEqual(text.count(old), 1, old)
                self.write(f"{name}{number}.c", "#include <stdlib.h>\n" + text.replace(old, new))
                jobs.append((name, f"{name}{number}.c", says))
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            results = list(pool.map(lambda job: self.check(job[0], job[1], *(["--max-seconds", "1"] if "1 s" in job[2][0] else [])), jobs))
        for (name, path, says), done in zip(jobs, results):
            self.assertEqual((done.returncode, done.stdout), (9, ""), (path, done.stderr))
            text = done.stderr[done.stderr.index(f"spmv: {path}: ") :]
            for sentence in says:
                self.assertIn(sentence, text.replace("\n  ", " "), path)
            for line in text.splitlines():
                self.assertLessEqual(len(line), 100, line)

    def test_files(self):
        self.fails(2, "exercise", "scan", os.path.join(self.folder, "none.c"), says=["No such file", "spmv exercise scan > "])
        self.fails(1, "exercise", "scan", self.write("scan.txt", ""), says="must end in .c")
        self.fails(1, "exercise", "spmv", self.write("scan.txt", ""), says="must end in .c, or in .cu for CUDA code")
        self.fails(4, "exercise", "scan", self.write("scan.cu", ""), says="calls functions of the host")
        self.write("-o.c", solution("scan"))
        self.assertEqual(run("exercise", "scan", "--", "-o.c", cwd=self.folder, env=self.env).returncode, 0)

    def test_compiler(self):
        self.write("bad.c", "#include <stdint.h>\nint x = ;\n")
        done = self.check("scan", "bad.c")
        self.assertEqual(done.returncode, 3)
        self.assertRegex(done.stderr, r"bad\.c:2:9: error: (.*\n)+spmv: bad\.c does not compile: see the messages of cc above\n\Z")
        self.write("scan.c", solution("scan"))
        if "QEMU_LD_PREFIX" in os.environ:
            self.skipTest("an emulator starts a copy of itself, which then finds no compiler")
        for compiler in "no-such-compiler", " no-such-compiler -v ":
            done = self.check("scan", "scan.c", CC=compiler)
            self.assertEqual(done.returncode, 4)
            self.assertIn("spmv: no-such-compiler cannot be started: No such file or directory; install a compiler", done.stderr)
        done = self.check("scan", "scan.c", PATH=self.temporary, CC="")
        self.assertEqual(done.returncode, 4)
        self.assertIn("cc cannot be started", done.stderr)
        done = self.check("scan", "scan.c", "--verbose", CC="cc -DX=1")
        self.assertEqual(done.returncode, 0)
        self.assertRegex(done.stderr, r"\Aspmv: cc -DX=1 -std=gnu11 .* -shared ")
        self.assertEqual(self.check("scan", "scan.c", CC="true").returncode, 3)  # it writes nothing
        done = run("exercise", "scan", "scan.c", cwd=self.folder, env={"TMPDIR": "/nowhere"})
        self.assertEqual(done.returncode, 2)

    def test_cuda(self):
        """A .cu file goes to nvcc; a script plays it here."""
        with open(os.path.join(self.folder, "nvcc.sh"), "w", encoding="utf-8") as file:
            file.write('#!/bin/sh\n[ "$1 $2 $3 $4 $5" = "-O1 -Xcompiler -fPIC -shared -o" ] && exec c++ -x c++ -fPIC -shared -o "$6" "$7"\n')
        os.chmod(os.path.join(self.folder, "nvcc.sh"), 0o755)
        text = solution("spmv").replace("void spmv", 'extern "C" void spmv').replace("= malloc", "= (double *)malloc").replace("= calloc", "= (char *)calloc")
        self.write("spmv.cu", text)
        done = self.check("spmv", "spmv.cu", NVCC="./nvcc.sh")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        if "QEMU_LD_PREFIX" not in os.environ:  # see test_compiler
            self.assertEqual(self.check("spmv", "spmv.cu", NVCC="no-such-nvcc").returncode, 4)
        self.write("spmv.cu", text.replace('extern "C" ', ""))
        done = self.check("spmv", "spmv.cu", NVCC="./nvcc.sh")
        self.assertIn("it has no function spmv", done.stderr)

    @unittest.skipUnless(shutil.which("nvcc") and os.path.exists("/dev/nvidia0"), "no nvcc, or no GPU")
    def test_on_a_gpu(self):
        self.assertEqual(self.check("spmv", os.path.join(test_program.SOURCE, "tests", "program", "exercises", "spmv.cu")).returncode, 0)

    def test_names_of_libraries(self):
        """A helper of the student whose name a library has is the student's."""
        text = solution("scan").replace("op(sum, in[i])", "index(op, sum, in[i])")
        helper = "int64_t index(int64_t (*op)(int64_t, int64_t), int64_t a, int64_t b)\n{\n    return op(a, b);\n}\n"
        self.write("scan.c", text.replace("void scan_inc", helper + "void scan_inc", 1))
        self.assertEqual(self.check("scan", "scan.c", CC="cc -fno-builtin").returncode, 0)

    def test_prints(self):
        """What the student's code prints is seen, once."""
        self.write("scan.c", "#include <stdio.h>\n" + solution("scan").replace("    int64_t sum", '    if (n == 3)\n        puts("here");\n    int64_t sum'))
        done = self.check("scan", "scan.c")
        self.assertRegex(done.stdout, r"\A(here\n){4}scan: passed")

    def test_memory(self):
        """Memory is limited: malloc fails."""
        if test_program.is_sanitized(test_program.PROGRAM):
            self.skipTest("the sanitizer ends a program whose malloc fails")
        big = "    if (malloc((size_t)4 << 30) != NULL)\n        abort();\n    int64_t sum"
        self.write("scan.c", "#include <stdlib.h>\n" + solution("scan").replace("    int64_t sum", big))
        done = self.check("scan", "scan.c")
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_json(self):
        self.write("scan.c", solution("scan"))
        result = json.loads(self.check("scan", "scan.c", "--json").stdout)["exercise"]
        self.assertEqual({k: v for k, v in result.items() if k != "cases"},
                         {"name": "scan", "file": "scan.c", "passed": True, "n": 1024, "work": 1023, "depth": 1023})  # fmt: skip
        self.write("wrong.c", self.ok("exercise", "scan").stdout)
        done = self.check("scan", "wrong.c", "--json")
        self.assertEqual(done.returncode, 9)
        result = json.loads(done.stdout)["exercise"]
        self.assertEqual((result["passed"], result["message"].split("\n")[0]),
                         (False, "scan_inclusive, operator add, 2 values:"))  # fmt: skip
        with open(os.path.join(test_program.SOURCE, "docs", "json.md"), encoding="utf-8") as file:
            known = set(re.findall(r"`([a-z_0-9.]+)`", file.read()))
        self.assertEqual({*result, "exercise", "exercises", "lesson", "about", "work", "depth"} - known, set())

    def test_interrupt(self):
        self.write("scan.c", solution("scan").replace(INCLUSIVE, "for (;;) ;"))
        job = subprocess.Popen([test_program.PROGRAM, "exercise", "scan", "scan.c"], cwd=self.folder, env=dict(os.environ, **self.env),
                               stderr=subprocess.PIPE, text=True)  # fmt: skip
        children = f"/proc/{job.pid}/task/{job.pid}/children"
        while job.poll() is None:  # until the tests run: then the only child is the program's own
            time.sleep(0.01)
            with open(children, encoding="ascii") as file:
                child = file.read().split()
            try:
                if child and os.path.samefile(f"/proc/{child[0]}/exe", f"/proc/{job.pid}/exe"):
                    break
            except FileNotFoundError:  # the compiler has ended
                pass
        job.send_signal(signal.SIGTERM)
        self.assertIn("spmv: stopped by SIGTERM", job.communicate(timeout=20)[1])
        self.assertEqual(job.returncode, 10)
        self.assertFalse(os.path.exists(f"/proc/{child[0]}/fd"))


if __name__ == "__main__":
    if shutil.which("cc") is None:
        print("skipped: no C compiler cc")
        sys.exit(77)
    os.environ.pop("CC", None)
    test_program.PROGRAM, test_program.SOURCE = map(os.path.abspath, sys.argv[1:3])
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]], verbosity=1)

#!/usr/bin/env python3
"""Completion for bash and zsh: the candidates against the program's own lists.

usage: test_completion.py PROGRAM SOURCE

SPDX-License-Identifier: BSD-3-Clause
"""
import os
import shutil
import subprocess
import sys
import unittest

import test_program
from test_program import COMMANDS

BASH = r"""
. "$1"
shift
COMP_WORDS=("$@")
COMP_CWORD=$(($# - 1))
_spmv "$1" "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD-1]}"
printf '%s\n' "${COMPREPLY[@]}"
"""
# The functions that zsh's completion gives to a completer, which is run without a terminal.
ZSH = r"""
compadd() { while [[ $1 != -- ]]; do shift; done; shift; for word; do case $word in "${words[CURRENT]}"*) print -r -- "$word";; esac; done }
_files() { compadd -- *(N) }
words=("${@[2,-1]}")
CURRENT=$#words
. "$1"
"""


class Completion(test_program.Case):
    def completed(self, shell, *words):
        script = BASH if shell == "bash" else ZSH
        bare = ["--norc"] if shell == "bash" else ["-f"]
        path = os.path.join(test_program.SOURCE, "app", "completion", "spmv")
        command = [shell, *bare, "-c", script, shell, path, test_program.PROGRAM, *words]
        done = subprocess.run(
            command, capture_output=True, text=True, cwd=self.folder, stdin=subprocess.DEVNULL, check=False
        )
        self.assertEqual(done.stderr, "", words)
        return done.stdout.split()

    def check(self, shell):
        completed = lambda *words: self.completed(shell, *words)
        with open(os.path.join(self.folder, "matrix.mtx"), "w", encoding="utf-8") as file:
            file.write("\n")
        first = completed("")
        self.assertEqual([word for word in first if word in COMMANDS], COMMANDS)
        self.assertIn("poisson2d:", first)
        self.assertIn("matrix.mtx", first)
        self.assertEqual(completed("so"), ["solve"])
        self.assertEqual(completed("info", "poisson3"), ["poisson3d:"])
        self.assertEqual(completed("solve", "--prec"), ["--precond"])
        self.assertEqual(completed("solve", "a.mtx", "--transp"), [])
        self.assertEqual(completed("-q", "matvec", "--transp"), ["--transpose"])
        self.assertEqual(completed("--transp"), ["--transpose"])
        self.assertEqual(completed("solve", "--backend", "o"), ["omp"])
        self.assertEqual(completed("solve", "--max-memory", "o"), ["off"])
        self.assertEqual(completed("solve", "-o", "mat"), ["matrix.mtx"])
        self.assertEqual(completed("solve", "--output", "mat"), ["matrix.mtx"])
        names = self.fails(1, "solve", "poisson2d:3", "--precond", "zzz").stderr.strip().split("there are: ")[1].split(", ")
        self.assertEqual(completed("solve", "--precond", ""), names)
        solvers = self.fails(1, "solve", "poisson2d:3", "--solver", "zzz").stderr.strip().split("there are: ")[1].split(", ")
        self.assertEqual(completed("solve", "--solver", ""), solvers)
        self.assertIn("gmres", solvers)
        self.assertEqual(completed("solve", "--restart", ""), [])  # a number: no names of files
        self.assertEqual(completed("solve", "--rest"), ["--restart"])
        methods = completed("spgemm", "--method", "")
        self.assertIn("rows", methods)
        self.assertEqual(len(set(methods)), len(methods))
        self.assertIn("matrix.mtx", completed("spgemm", "poisson2d:3", ""))
        self.assertIn("textbook", completed("solve", "--rung", ""))
        self.assertNotIn("textbook", completed("matvec", "--method", ""))
        self.assertIn("std", completed("bench", "--suite", ""))
        self.assertIn("loops-merge", completed("bench", "--peers", ""))
        self.assertEqual(completed("help", "conv"), ["convert"])
        self.assertEqual(completed("exercise", "sp"), ["spmv"])
        self.assertIn("matrix.mtx", completed("exercise", "spmv", ""))

    def test_bash(self):
        self.check("bash")

    @unittest.skipUnless(shutil.which("zsh"), "no zsh")
    def test_zsh(self):
        self.check("zsh")


if __name__ == "__main__":
    test_program.PROGRAM, test_program.SOURCE = map(os.path.abspath, sys.argv[1:3])
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]], verbosity=1)

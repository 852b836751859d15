#!/usr/bin/env python3
"""Tests scripts/bundle/bundle_tests.py: how a test of a build is rewritten for a bundle; and which
modules and files scripts/bundle.sh packs.

usage: test_bundle.py SOURCE

SPDX-License-Identifier: BSD-3-Clause
"""
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE = sys.argv.pop(1) if __name__ == "__main__" else ""
sys.path.insert(0, os.path.join(SOURCE, "scripts", "bundle"))
from bundle_tests import Stays, Tests  # noqa: E402


class Entries(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.build = os.path.realpath(scratch.name)
        os.mkdir(os.path.join(self.build, "tests"))
        self.program = os.path.join(self.build, "tests", "test_one")
        with open(self.program, "w", encoding="ascii") as f:
            os.fchmod(f.fileno(), 0o755)
        with open(os.path.join(self.build, "CMakeCache.txt"), "w", encoding="ascii") as f:
            f.write(f"SPMV_MATRICES:PATH={self.build}/matrices\n")
        self.tests = Tests(SOURCE, self.build)

    def entry(self, *environment, more=()):
        properties = [*more, {"name": "LABELS", "value": ["gpu"]}, {"name": "ENVIRONMENT", "value": list(environment)}]
        return self.tests.entry({"name": "one.cuda", "command": [self.program, "cuda"], "properties": properties})

    def test_cache_folder_is_beside_the_logs(self):
        line = self.entry(f"XDG_CACHE_HOME={self.build}/tests/cache", "OMP_WAIT_POLICY=passive")
        self.assertEqual(line, 'entry one.cuda gpu 1500 none XDG_CACHE_HOME="$logs"/cache OMP_WAIT_POLICY=passive '
                               '"$here"/tests/test_one cuda')
        self.assertEqual(self.tests.files, {"tests/test_one": self.program})

    def test_other_folders_of_the_build_stay(self):
        with self.assertRaises(Stays):
            self.entry(f"SOME_FOLDER={self.build}/tests")


    def test_some_run_alone(self):
        line = self.entry(more=[{"name": "RUN_SERIAL", "value": True}])
        self.assertTrue(line.startswith("alone entry one.cuda gpu "), line)
        self.assertTrue(self.entry(more=[{"name": "RUN_SERIAL", "value": False}]).startswith("entry one.cuda gpu "))


class Runner(unittest.TestCase):
    """run_tests.sh of a bundle, with tests that are shell commands."""

    def run_tests(self, entries, *arguments):
        with tempfile.TemporaryDirectory() as folder:
            os.mkdir(os.path.join(folder, "tests"))
            shutil.copy(os.path.join(SOURCE, "scripts", "bundle", "bundle_run.sh"), os.path.join(folder, "run_tests.sh"))
            with open(os.path.join(folder, "tests", "list.sh"), "w", encoding="ascii") as listed:
                listed.write(entries.replace("FOLDER", folder))
            done = subprocess.run(["bash", os.path.join(folder, "run_tests.sh"), "-o", os.path.join(folder, "logs"),
                                   *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
            return done.returncode, done.stdout

    def test_alone(self):
        """Each test that others disturb fails if one of them runs: they share a folder."""
        other = "entry other{0} gpu 30 77 sh -c 'mkdir FOLDER/other{0} && sleep 0.3 && rmdir FOLDER/other{0}'\n"
        single = "alone entry single{0} gpu 30 77 sh -c '! ls -d FOLDER/other* FOLDER/single && mkdir FOLDER/single " \
                 "&& sleep 0.1 && ! ls -d FOLDER/other* && rmdir FOLDER/single'\n"
        entries = "".join(other.format(k) + other.format(k + 10) + single.format(k) for k in range(3))
        status, said = self.run_tests(entries, "-j", "4")
        self.assertEqual(status, 0, said)
        self.assertIn("9 passed, 0 failed, 0 skipped", said)
        status, said = self.run_tests(entries, "-l")
        self.assertEqual((status, said.count("gpu")), (0, 9), said)

    def test_others_run_at_once(self):
        """Two tests of which each waits for the other's file pass, as they run at the same time."""
        meets = "entry {0} gpu 50 77 sh -c 'touch FOLDER/{0} && until [ -e FOLDER/{1} ]; do sleep 0.02; done'\n"
        status, said = self.run_tests(meets.format("one", "two") + meets.format("two", "one"), "-j", "2")
        self.assertEqual(status, 0, said)
        self.assertIn("2 passed, 0 failed, 0 skipped", said)


class Modules(unittest.TestCase):
    def found(self, file, pattern):
        with open(os.path.join(SOURCE, file), encoding="utf-8") as text:
            return re.search(pattern, text.read(), re.M).group(1).split()

    def test_modules_of_all_mpis_are_packed(self):
        built = self.found("distributed/modules/CMakeLists.txt", r"^foreach\(mpi IN ITEMS (.*)\)$")
        self.assertEqual(self.found("scripts/bundle.sh", r"^transports=\((.*)\)$"), built)
        self.assertIn("openmpi", built)


class FilesOfTests(unittest.TestCase):
    """Test programs find files of the tree in a bundle, where the tree is elsewhere."""

    def setUp(self):
        self.programs = {}
        for path in glob.glob(os.path.join(SOURCE, "tests", "**", "*.c*"), recursive=True):
            if not path.endswith((".c", ".cu", ".cpp")):  # *.cpython-*.pyc
                continue
            with open(path, encoding="utf-8") as text:
                self.programs[os.path.basename(path)] = text.read()
        self.assertIn("test_mangled.c", self.programs)

    def test_paths_begin_with_a_folder_that_can_move(self):
        fixed = [name for name, text in self.programs.items() if re.search(r"(?<!SPMV_)\bSOURCE_DIR\b", text)]
        self.assertEqual(fixed, [], "use support_source_dir()")

    def test_files_are_packed(self):
        with open(os.path.join(SOURCE, "scripts", "bundle.sh"), encoding="utf-8") as text:
            folders = re.search(r'^for part in ([^$]*); do$', text.read(), re.M).group(1).split()
        read = set()
        for text in self.programs.values():
            if "support_source_dir()" in text:
                read |= set(re.findall(r'"%s/([a-z]\w*/[^"]*)"', text))
        self.assertIn("tests/data/mangled", read)
        lacking = [path for path in read if not any(path == f or path.startswith(f + "/") for f in folders)]
        self.assertEqual(lacking, [], "files that a test reads and bundle.sh does not pack")


if __name__ == "__main__":
    unittest.main()

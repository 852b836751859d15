#!/usr/bin/env python3
"""Tests scripts/bundle_tests.py: how a test of a build is rewritten for a bundle; and which modules
and files scripts/bundle.sh packs.

usage: test_bundle.py SOURCE

SPDX-License-Identifier: BSD-3-Clause
"""
import glob
import os
import re
import sys
import tempfile
import unittest

SOURCE = sys.argv.pop(1) if __name__ == "__main__" else ""
sys.path.insert(0, os.path.join(SOURCE, "scripts"))
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

    def entry(self, *environment):
        properties = [{"name": "LABELS", "value": ["gpu"]}, {"name": "ENVIRONMENT", "value": list(environment)}]
        return self.tests.entry({"name": "one.cuda", "command": [self.program, "cuda"], "properties": properties})

    def test_cache_folder_is_beside_the_logs(self):
        line = self.entry(f"XDG_CACHE_HOME={self.build}/tests/cache", "OMP_WAIT_POLICY=passive")
        self.assertEqual(line, 'entry one.cuda gpu 1500 none XDG_CACHE_HOME="$logs"/cache OMP_WAIT_POLICY=passive '
                               '"$here"/tests/test_one cuda')
        self.assertEqual(self.tests.files, {"tests/test_one": self.program})

    def test_other_folders_of_the_build_stay(self):
        with self.assertRaises(Stays):
            self.entry(f"SOME_FOLDER={self.build}/tests")


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
        for path in glob.glob(os.path.join(SOURCE, "tests", "*.c*")):
            with open(path, encoding="utf-8") as text:
                self.programs[os.path.basename(path)] = text.read()
        self.assertIn("test_mangled.c", self.programs)

    def test_paths_begin_with_a_folder_that_can_move(self):
        fixed = [name for name, text in self.programs.items() if re.search(r"(?<!SPMV_)\bSOURCE_DIR\b", text)]
        self.assertEqual(fixed, [], "use support_source_dir()")

    def test_files_are_packed(self):
        with open(os.path.join(SOURCE, "scripts", "bundle.sh"), encoding="utf-8") as text:
            folders = re.search(r'^for folder in ([^$]*); do$', text.read(), re.M).group(1).split()
        read = set()
        for text in self.programs.values():
            if "support_source_dir()" in text:
                read |= set(re.findall(r'"%s/([a-z]\w*/[^"]*)"', text))
        self.assertIn("tests/data/mangled", read)
        lacking = [path for path in read if not any(path == f or path.startswith(f + "/") for f in folders)]
        self.assertEqual(lacking, [], "files that a test reads and bundle.sh does not pack")


if __name__ == "__main__":
    unittest.main()

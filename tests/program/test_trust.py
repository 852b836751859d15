#!/usr/bin/env python3
"""Tests the cache and modules with files that others may have planted: links, FIFOs, foreign
entries and folders; values of SPMV_CACHE; set-uid programs.

test_trust.py PROGRAM SOURCE_DIR [unittest arguments]. Python's standard library only.

SPDX-License-Identifier: BSD-3-Clause
"""

import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import unittest

PROGRAM = ""
TEXT = "%%MatrixMarket matrix coordinate real general\n3 3 4\n1 1 2.5\n2 1 -1\n2 3 4e-3\n3 3 1\n"
OTHER = TEXT.replace("2.5", "7.5")
ANSWER = "2.5\n-0.996\n1\n"
NOBODY = 65534


def run(*arguments, env=None, cwd=None, umask=-1):
    return subprocess.run([PROGRAM, *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          env=dict(os.environ, **(env or {})), cwd=cwd, umask=umask, timeout=60, check=False)


class TrustTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = os.path.realpath(folder.name)
        self.cache = os.path.join(self.folder, "cache")
        self.a = self.put("a.mtx", TEXT)

    def put(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="ascii") as file:
            file.write(text)
        return path

    def load(self, cache=None, path=None, **more):
        """Runs a product, whose result must be right, and returns the source of its matrix and the
        run."""
        done = run("matvec", "--json", path or self.a, "-o", os.path.join(self.folder, "y.txt"),
                   env={"SPMV_CACHE": cache or self.cache}, **more)
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(os.path.join(self.folder, "y.txt"), encoding="ascii") as file:
            self.assertEqual(file.read(), ANSWER)
        return json.loads(done.stdout)["load"]["source"], done

    def fill(self):
        """Creates the only entry of the cache; returns its path."""
        self.assertEqual(self.load()[0], "mtx")
        (name,) = os.listdir(self.cache)
        self.assertEqual(self.load()[0], "cache")
        return os.path.join(self.cache, name)

    def kept(self):
        """Checks that the new entry is a regular file of this user and is used."""
        entry = os.path.join(self.cache, os.listdir(self.cache)[0])
        s = os.lstat(entry)
        self.assertTrue(stat.S_ISREG(s.st_mode))
        self.assertEqual((s.st_uid, stat.S_IMODE(s.st_mode)), (os.geteuid(), 0o600))
        self.assertEqual(self.load()[0], "cache")


class Entries(TrustTest):
    def test_modes(self):
        for umask in 0o000, 0o002, 0o077:
            self.cache = os.path.join(self.folder, f"deep{umask}", "cache")
            entry = None
            for source in "mtx", "cache":
                self.assertEqual(self.load(umask=umask)[0], source)
            entry = os.path.join(self.cache, os.listdir(self.cache)[0])
            self.assertEqual(stat.S_IMODE(os.stat(entry).st_mode), 0o600)
            for folder in self.cache, os.path.dirname(self.cache):
                self.assertEqual(stat.S_IMODE(os.stat(folder).st_mode), 0o700)

    def test_links(self):
        entry = self.fill()
        # A link to a valid entry elsewhere is not followed.
        elsewhere = os.path.join(self.folder, "elsewhere.spmv")
        os.rename(entry, elsewhere)
        with open(elsewhere, "rb") as file:
            before = file.read()
        os.symlink(elsewhere, entry)
        self.assertEqual(self.load()[0], "mtx")
        self.kept()
        # Nor is the target of a link written, whether it exists or not.
        for target in self.put("precious.txt", "precious"), os.path.join(self.folder, "nothing"):
            os.unlink(entry)
            os.symlink(target, entry)
            self.assertEqual(self.load()[0], "mtx")
            self.kept()
        with open(os.path.join(self.folder, "precious.txt"), encoding="ascii") as file:
            self.assertEqual(file.read(), "precious")
        self.assertFalse(os.path.exists(os.path.join(self.folder, "nothing")))
        with open(elsewhere, "rb") as file:
            self.assertEqual(file.read(), before)

    def test_temporary_parts(self):
        """Temporary files are not written through existing links."""
        entry = self.fill()
        os.unlink(entry)
        precious = self.put("precious.txt", "precious")
        # The process number of the program is unknown beforehand; exec keeps that of the shell.
        script = ('for k in 0 1 2 3 4 5; do ln -s "$PRECIOUS" "$ENTRY.$$.$k.part"; done; '
                  'exec "$PROGRAM" mul "$A" -o /dev/null')
        done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, timeout=60, check=False,
                              env=dict(os.environ, PRECIOUS=precious, ENTRY=entry, PROGRAM=PROGRAM, A=self.a,
                                       SPMV_CACHE=self.cache))
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(precious, encoding="ascii") as file:
            self.assertEqual(file.read(), "precious")
        self.assertTrue(stat.S_ISREG(os.lstat(entry).st_mode))

    def test_fifo(self):
        entry = self.fill()
        os.unlink(entry)
        os.mkfifo(entry)
        self.assertEqual(self.load()[0], "mtx")
        self.kept()

    def test_folder_in_the_place_of_an_entry(self):
        entry = self.fill()
        os.unlink(entry)
        os.mkdir(entry)
        source, done = self.load()
        self.assertEqual(source, "mtx")
        self.assertIn("not kept in the cache", done.stderr)

    def test_others_may_write(self):
        entry = self.fill()
        for mode in 0o620, 0o602:
            os.chmod(entry, mode)
            self.assertEqual(self.load()[0], "mtx")
            self.kept()

    @unittest.skipUnless(os.geteuid() == 0, "needs root, to give files to another user")
    def test_of_another_user(self):
        entry = self.fill()
        os.chown(entry, NOBODY, NOBODY)
        self.assertEqual(self.load()[0], "mtx")
        self.kept()


class Folders(TrustTest):
    def refused(self, says, cache=None):
        before = sorted(os.listdir(cache or self.cache))
        for _ in range(2):
            source, done = self.load(cache)
            self.assertEqual(source, "mtx")
            self.assertIn("the cache is not used", done.stderr)
            self.assertIn(says, done.stderr)
        self.assertEqual(sorted(os.listdir(cache or self.cache)), before)

    def test_link(self):
        real = os.path.join(self.folder, "real")
        os.mkdir(real, 0o700)
        os.symlink(real, self.cache)
        self.refused("a link")
        self.refused("a link", self.cache + "/")
        # A link above the folder is the user's responsibility.
        below = os.path.join(self.cache, "below")
        self.assertEqual([self.load(below)[0], self.load(below)[0]], ["mtx", "cache"])

    def test_others_may_write(self):
        for mode in 0o770, 0o707, 0o777 | stat.S_ISVTX:
            self.cache = os.path.join(self.folder, f"cache{mode}")
            os.mkdir(self.cache)
            os.chmod(self.cache, mode)
            self.refused("others may write to it")
            self.assertEqual(stat.S_IMODE(os.stat(self.cache).st_mode), mode)
        os.chmod(self.cache, 0o755)  # others may read the folder
        self.assertEqual([self.load()[0], self.load()[0]], ["mtx", "cache"])

    @unittest.skipUnless(os.geteuid() == 0, "needs root, to give files to another user")
    def test_of_another_user(self):
        self.fill()
        os.chown(self.cache, NOBODY, NOBODY)
        self.refused("another user")

    def test_no_folder(self):
        with open(self.cache, "w", encoding="ascii"):
            pass
        source, done = self.load()
        self.assertEqual(source, "mtx")
        self.assertIn("the cache is not used: it is not a folder", done.stderr)
        os.unlink(self.cache)
        os.mkfifo(self.cache)
        self.assertEqual(self.load()[0], "mtx")


class Variable(TrustTest):
    def test_relative(self):
        where = os.path.join(self.folder, "where")
        os.mkdir(where)
        for value, folder in {"./one": "one", "two/deep/": "two/deep", "../three": "../three"}.items():
            sources = [self.load(value, cwd=where)[0] for _ in range(2)]
            self.assertEqual(sources, ["mtx", "cache"], value)
            self.assertEqual(len(os.listdir(os.path.join(where, folder))), 1)

    def test_neither_a_flag_nor_a_path(self):
        for value in "mycache", "yes", "2", "...":
            done = run("matvec", self.a, env={"SPMV_CACHE": value, "HOME": self.folder}, cwd=self.folder)
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn(f"SPMV_CACHE is {value}: must be 0, 1 or a path with a slash (./{value})", done.stderr)
            self.assertEqual(done.stdout, "")
        self.assertEqual(sorted(os.listdir(self.folder)), ["a.mtx"])


class Modules(unittest.TestCase):
    """A file in the place of a module is not a library, so opening it fails with another message."""

    FILE = "spmv_direct_klu.so"

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = os.path.realpath(folder.name)
        os.chmod(self.folder, 0o755)
        self.program = os.path.join(self.folder, "bin", "spmv")
        os.mkdir(os.path.dirname(self.program))
        shutil.copy(PROGRAM, self.program)

    def plant(self, *names, folder_mode=0o755, file_mode=0o644, file=FILE):
        """Creates a module in the folder of these names; returns that folder."""
        place = os.path.join(self.folder, *names)
        os.makedirs(place, exist_ok=True)
        path = os.path.join(place, file)
        with open(path, "w", encoding="ascii") as module:
            module.write("no library\n")
        os.chmod(path, file_mode)
        os.chmod(place, folder_mode)
        return place

    def said(self, path=None, argv0=None, **more):
        """What solve says, which needs the module."""
        environ = {name: value for name, value in os.environ.items() if not name.startswith("SPMV_")}
        if path is not None:
            environ["SPMV_MODULE_PATH"] = path
        done = subprocess.run([argv0 or self.program, "solve", "poisson2d:3", "--solver", "direct:klu"],
                              executable=self.program, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              env=environ, timeout=60, check=False, **more)
        self.assertNotEqual(done.returncode, 0)
        return done.stderr

    def refused(self, place, why, **more):
        said = self.said(**more)
        self.assertIn(f"{os.path.join(place, self.FILE)} is not opened, because it is not safe: {why}", said)

    def opened(self, place, **more):
        """A trusted file is opened, which fails because it is not a library."""
        self.assertIn(f"cannot open {os.path.join(place, self.FILE)}: ", self.said(**more))

    def test_folders_and_files_that_others_may_write_to(self):
        for names in ("lib", "spmv", "modules"), ("named",):
            path = os.path.join(self.folder, "named") if names == ("named",) else None
            place = self.plant(*names)
            self.opened(os.path.realpath(place) if path else f"{self.folder}/bin/../lib/spmv/modules", path=path)
            shown = place if path else f"{self.folder}/bin/../lib/spmv/modules"
            for mode in 0o777, 0o757, 0o777 | stat.S_ISVTX:
                os.chmod(place, mode)
                self.refused(shown, "its folder: others may write to it", path=path)
            os.chmod(place, 0o755)
            for mode in 0o666, 0o646:
                os.chmod(os.path.join(place, self.FILE), mode)
                self.refused(shown, "others may write to it", path=path)

    @unittest.skipUnless(os.geteuid() == 0, "needs root, to give files to another user and group")
    def test_groups_and_owners(self):
        place = self.plant("lib", "spmv", "modules", folder_mode=0o775)
        shown = f"{self.folder}/bin/../lib/spmv/modules"
        os.chown(place, 0, 0)
        self.opened(shown)
        os.chown(place, 0, NOBODY)
        self.refused(shown, "its folder: others may write to it")
        os.chmod(place, 0o755)
        self.opened(shown)
        os.chown(place, NOBODY, NOBODY)
        self.refused(shown, "its folder: it belongs to another user")
        os.chown(place, 0, 0)
        os.chown(os.path.join(place, self.FILE), NOBODY, 0)
        self.refused(shown, "it belongs to another user")
        # The owner of the program could write any code into it.
        os.chown(place, NOBODY, NOBODY)
        os.chown(self.program, NOBODY, NOBODY)
        self.opened(shown)

    def test_name_that_the_caller_gives_to_the_program(self):
        place = self.plant("evil", "spmv", "modules")
        self.assertNotIn(place, self.said(argv0=os.path.join(self.folder, "evil", "spmv")))

    @unittest.skipUnless(os.geteuid() == 0, "needs root, to run a program as another user")
    def test_set_uid(self):
        if os.statvfs(self.folder).f_flag & os.ST_NOSUID:
            self.skipTest("set-uid programs are off in this folder")
        if "QEMU_LD_PREFIX" in os.environ:
            self.skipTest("an emulator does not tell its program that it is set-uid")
        place = self.plant("named")
        self.opened(place, path=place, user=NOBODY)
        os.chmod(self.program, 0o4755)
        self.assertNotIn(place, self.said(path=place, user=NOBODY))
        os.chown(place, NOBODY, NOBODY)
        self.assertNotIn(place, self.said(path=place, user=NOBODY))


def main():
    global PROGRAM
    PROGRAM = os.path.abspath(sys.argv[1])
    for name in "SPMV_CACHE", "XDG_CACHE_HOME":
        os.environ.pop(name, None)
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])


if __name__ == "__main__":
    main()

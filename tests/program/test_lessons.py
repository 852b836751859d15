#!/usr/bin/env python3
"""Runs every command of docs/lessons in an empty folder, as a student does: the output is that of the
page, and the pictures that the commands draw are those beside the page, byte for byte.

test_lessons.py PROGRAM SOURCE_DIR [unittest arguments]
test_lessons.py PROGRAM SOURCE_DIR --update    writes outputs and pictures of the program into the pages

A block of code that has lines with "$ " is a session: commands, which may end with a text between
<<'END' and END, and their output. "..." in the output stands for any text. A comment
<!-- solution: FILE --> before a block puts the right solution (tests/program/exercises) in place of
the student's file. Python's standard library only, and a C compiler, without which the test is
skipped (exit code 77).

SPDX-License-Identifier: BSD-3-Clause
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

PROGRAM = SOURCE = ""
SESSION = re.compile(r"(?:<!-- solution: (?P<solution>\S+) -->\n)?```\n(?P<text>\$ .*?)```\n", re.S)
COMMAND = re.compile(r"\$ (?P<command>[^\n]*<<'END'\n.*?\nEND|[^\n]*)\n(?P<output>(?:(?!\$ )[^\n]*\n)*)", re.S)
PAGES = ["1-scan.md", "2-parallel-scan.md", "3-segmented-scan.md", "4-spmv.md", "5-conjugate-gradients.md"]


def in_lessons(name):
    return os.path.join(SOURCE, "docs", "lessons", name)


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def matches(shown, real):
    return re.fullmatch(".*".join(map(re.escape, shown.split("..."))), real) is not None


class Page:
    """A page whose commands were run. text: with their real output; differences: [(shown, real)]."""

    def __init__(self, name, folder):
        self.folder, self.count, self.differences, self.statuses = folder, 0, [], []
        os.mkdir(os.path.join(folder, "bin"))
        os.symlink(PROGRAM, os.path.join(folder, "bin", "spmv"))
        self.work = os.path.join(folder, "work")
        os.mkdir(self.work)
        shown = read(in_lessons(name))
        self.text = SESSION.sub(self.session, shown)
        self.pictures = re.findall(r"!\[[^]]*\]\(([a-z-]+\.svg)\)", shown)

    def session(self, block):
        if block["solution"]:
            source = os.path.join(SOURCE, "tests", "program", "exercises", block["solution"])
            shutil.copy(source, os.path.join(self.work, block["solution"]))
        return block[0].replace(block["text"], COMMAND.sub(self.command, block["text"]))

    def command(self, found):
        path = os.path.join(self.folder, "bin") + os.pathsep + os.environ["PATH"]
        environment = dict(os.environ, PATH=path, OMP_NUM_THREADS="2", TERM="dumb", LC_ALL="C.UTF-8")
        environment.pop("CC", None)
        done = subprocess.run(["sh", "-c", found["command"]], cwd=self.work, env=environment, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120, check=False)  # fmt: skip
        self.count += 1
        if matches(found["output"], done.stdout):
            return found[0]
        self.differences.append((found[0], done.stdout))
        return f"$ {found['command']}\n{done.stdout}"


class Lessons(unittest.TestCase):
    maxDiff = None

    def check(self, name):
        with tempfile.TemporaryDirectory(prefix="spmv-lessons-") as folder:
            page = Page(name, folder)
            self.assertEqual(page.text, read(in_lessons(name)))
            self.assertGreaterEqual(page.count, 5)
            self.assertGreaterEqual(len(page.pictures), 1)
            for picture in page.pictures:
                self.assertEqual(read(os.path.join(page.work, picture)), read(in_lessons(picture)), picture)
        for part in ("Exercise", "Questions", "Reading", "Answers"):
            self.assertIn(f"\n## {part}\n", page.text)

    def test_index(self):
        self.assertEqual(re.findall(r"(?m)^\| \[[^]]*\]\((.*\.md)\)", read(in_lessons("README.md"))), PAGES)
        pictures = {name for name in os.listdir(in_lessons(".")) if name.endswith(".svg")}
        self.assertEqual(pictures, {p for name in PAGES for p in re.findall(r"\(([a-z-]+\.svg)\)", read(in_lessons(name)))})

    def test_text_that_varies(self):
        self.assertTrue(matches("solved ... us\n", "solved in 3 us\n"))
        self.assertFalse(matches("solved ... us\n", "solved in 3 us\nmore\n"))


for number, page_name in enumerate(PAGES, 1):
    setattr(Lessons, f"test_page_{number}", lambda self, name=page_name: self.check(name))


def update():
    for name in PAGES:
        with tempfile.TemporaryDirectory(prefix="spmv-lessons-") as folder:
            page = Page(name, folder)
            with open(in_lessons(name), "w", encoding="utf-8") as file:
                file.write(page.text)
            for picture in page.pictures:
                shutil.copy(os.path.join(page.work, picture), in_lessons(picture))
            print(f"{name}: {page.count} commands, {len(page.differences)} outputs changed")


if __name__ == "__main__":
    if shutil.which("cc") is None:
        print("skipped: no C compiler cc")
        sys.exit(77)
    PROGRAM, SOURCE = map(os.path.abspath, sys.argv[1:3])
    if sys.argv[3:] == ["--update"]:
        update()
    else:
        unittest.main(argv=[sys.argv[0], *sys.argv[3:]], verbosity=1)

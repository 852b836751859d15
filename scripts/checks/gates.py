"""Shared code of the gates bits.py, speed.py, abi.py and registers.py: chooses the commit to
compare with, checks it out and builds it.

A gate compares an OLD state with a NEW one. Each is a folder or a commit of this repository. A
commit gets its own work tree and builds below build/gates, which later runs reuse.

SPDX-License-Identifier: BSD-3-Clause
"""
import argparse
import hashlib
import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FOLDER = os.path.join(ROOT, "build", "gates")


class Trouble(Exception):
    """The comparison cannot be made; the message gives the reason. Exit status 2."""


def git(*arguments):
    """The output of a git command; None if it fails."""
    done = subprocess.run(["git", "-C", ROOT, *arguments], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, universal_newlines=True)
    return done.stdout.strip() if done.returncode == 0 else None


def base():
    """The commit to compare with by default: GATE_BASE if set; on a branch the commit where it left
    main; otherwise HEAD if tracked files have changed since, else the parent of HEAD."""
    given = os.environ.get("GATE_BASE")
    if given:
        return given
    if git("rev-parse", "HEAD") is None:
        raise Trouble("this tree is not a Git repository: give the state to compare with")
    head = git("rev-parse", "HEAD")
    for main in ("main", "origin/main"):
        fork = git("merge-base", "HEAD", main)
        if fork is not None and fork != head:
            return fork
    if git("status", "--porcelain", "--untracked-files=no"):
        return "HEAD"
    if git("rev-parse", "--verify", "HEAD~1^{commit}") is None:
        raise Trouble("the last commit has no parent in this clone: set GATE_BASE to the commit to compare with")
    return "HEAD~1"


def parser(text, lists=False):
    """A parser for the states and --self-test, and --list if the gate lists what it compares; text:
    the documentation of the gate."""
    made = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("states", nargs="*", metavar="STATE")
    made.add_argument("--self-test", action="store_true")
    if lists:
        made.add_argument("--list", action="store_true")
    return made


def arguments(made, self_test, most=2):
    """What the parser reads, with at most so many states; --self-test runs and ends the program."""
    given = made.parse_args()
    if given.self_test:
        sys.exit(self_test())
    if len(given.states) > most:
        made.error(f"at most {most} states")
    return given


def old_and_new(states):
    """The names of both states."""
    return states[0] if states else base(), states[1] if len(states) > 1 else ROOT


def run(command, **options):
    """Runs a command with its output on standard error; standard output is for the report."""
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=sys.stderr, **options)
    if done.returncode != 0:
        raise Trouble(f"{' '.join(command[:4])} ... failed")


class State:
    """A folder with CMakeLists.txt, or a commit: its source folder and its build folders."""

    def __init__(self, name):
        self.name = name
        if os.path.exists(os.path.join(name, "CMakeLists.txt")):
            self.source = os.path.abspath(name)
            self.home = os.path.join(FOLDER, "tree-" + hashlib.sha1(self.source.encode()).hexdigest()[:10])
            return
        commit = git("rev-parse", "--verify", "--quiet", name + "^{commit}")
        if commit is None:
            raise Trouble(f"{name}: neither a folder with the project's source nor a commit of {ROOT}")
        self.home = os.path.join(FOLDER, commit[:12])
        self.source = os.path.join(self.home, "source")
        if not os.path.exists(os.path.join(self.source, "CMakeLists.txt")):
            git("worktree", "prune")
            run(["git", "-C", ROOT, "worktree", "add", "--force", "--detach", self.source, commit])

    def build(self, kind, targets, *options):
        """Builds the targets in the folder for this kind of build; returns the folder."""
        folder = os.path.join(self.home, kind)
        jobs = os.environ.get("JOBS", str(os.cpu_count() or 1))
        run(["cmake", "-S", self.source, "-B", folder, "-G", "Ninja", *options])
        run(["cmake", "--build", folder, "-j", jobs, "--target", *targets])
        return folder


def main(work):
    """Runs work(), which returns the exit status; prints Trouble as a message, with status 2."""
    try:
        sys.exit(work())
    except Trouble as trouble:
        print(f"{os.path.basename(sys.argv[0])}: {trouble}", file=sys.stderr)
        sys.exit(2)

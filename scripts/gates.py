"""What the gates share: which commit is compared with, its tree and its build. Imported by bits.py, speed.py, abi.py, registers.py.

A gate compares an OLD state with a NEW one. Either is a folder or a commit of this repository. A commit gets a work tree and
builds of its own below build/gates, which later runs use again.

SPDX-License-Identifier: BSD-3-Clause
"""
import hashlib
import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FOLDER = os.path.join(ROOT, "build", "gates")


class Trouble(Exception):
    """The comparison cannot be made; the sentence says why. Exit status 2."""


def git(*arguments):
    """The command's output; None where it fails."""
    done = subprocess.run(["git", "-C", ROOT, *arguments], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, universal_newlines=True)
    return done.stdout.strip() if done.returncode == 0 else None


def base():
    """The commit to compare with by default: GATE_BASE; on a branch where it left main; else the last commit's parent, or the
    last commit itself where tracked files have changed since."""
    given = os.environ.get("GATE_BASE")
    if given:
        return given
    if git("rev-parse", "HEAD") is None:
        raise Trouble("this tree is no Git repository: name what to compare with")
    head = git("rev-parse", "HEAD")
    for main in ("main", "origin/main"):
        fork = git("merge-base", "HEAD", main)
        if fork is not None and fork != head:
            return fork
    if git("status", "--porcelain", "--untracked-files=no"):
        return "HEAD"
    if git("rev-parse", "--verify", "HEAD~1^{commit}") is None:
        raise Trouble("the last commit has no parent here: set GATE_BASE to the commit to compare with")
    return "HEAD~1"


def run(command, **options):
    """Runs it with its output on standard error, so that standard output holds the gate's report alone."""
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=sys.stderr, **options)
    if done.returncode != 0:
        raise Trouble(f"{' '.join(command[:4])} ... failed")


class State:
    """A folder with CMakeLists.txt, or a commit: where its source lies and where it is built."""

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
        """Configures in a folder for this kind of build, builds the targets, returns the folder."""
        folder = os.path.join(self.home, kind)
        jobs = os.environ.get("JOBS", str(os.cpu_count() or 1))
        run(["cmake", "-S", self.source, "-B", folder, "-G", "Ninja", *options])
        run(["cmake", "--build", folder, "-j", jobs, "--target", *targets])
        return folder


def main(work):
    """Runs work(), which returns the exit status, and turns Trouble into a sentence and status 2."""
    try:
        sys.exit(work())
    except Trouble as trouble:
        print(f"{os.path.basename(sys.argv[0])}: {trouble}", file=sys.stderr)
        sys.exit(2)

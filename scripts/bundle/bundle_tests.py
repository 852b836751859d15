"""Converts the tests of a build to a list that a bundle runs without CMake, from any folder.

    bundle_tests.py SOURCE BUILD BUNDLE < (the output of ctest --show-only=json-v1)

Writes BUNDLE/tests/list.sh for run_tests.sh, one line per test:

    [alone] entry NAME LABELS TIMEOUT SKIP_CODE [VARIABLE=VALUE...] COMMAND...

"alone": no other test runs at the same time (RUN_SERIAL of CMake).

Prints the files that the tests need: FROM, a tab, TO (relative to the bundle). A test that needs
anything not in the bundle, such as the compiler or the build folder, is left out and named on
standard error.

SPDX-License-Identifier: BSD-3-Clause
"""
import json
import os
import re
import shlex
import sys

# Files of the tree that tests read, and scripts that are tests.
TAKEN = re.compile(r"data/[^/]+|app/spmv\.1|tests/(?!install/|fuzz/)[a-z_]+/[^/]+\.(py|sh)")
# Seconds for a test without its own TIMEOUT, as in ctest.
TIMEOUT = 1500


class Stays(Exception):
    """The test needs a file that the bundle does not contain."""


def below(path, folder):
    """path relative to folder, "." for the folder itself; None if path is outside it."""
    relative = os.path.relpath(path, folder)
    return None if relative == ".." or relative.startswith("../") else relative


class Tests:
    def __init__(self, source, build):
        self.source, self.build = os.path.realpath(source), os.path.realpath(build)
        self.matrices = os.path.realpath(self.cached("SPMV_MATRICES"))
        self.files = {}

    def cached(self, name):
        with open(os.path.join(self.build, "CMakeCache.txt"), encoding="utf-8") as cache:
            return next(line.rstrip("\n").split("=", 1)[1] for line in cache if line.startswith(name + ":"))

    def take(self, path, to):
        if self.files.setdefault(to, path) != path:
            raise SystemExit(f"bundle_tests.py: {path} and {self.files[to]} would both be copied to {to}")
        return '"$here"/' + shlex.quote(to)

    def word(self, text):
        """A word of a command, rewritten and quoted for bash in the bundle."""
        if not os.path.isabs(text):
            return shlex.quote(text)
        path = os.path.realpath(text)
        if path == self.matrices:
            return '"$matrices"'
        in_build, in_source = below(path, self.build), below(path, self.source)
        if in_build is not None:
            if not (os.path.isfile(path) and os.access(path, os.X_OK)) or ".so" in os.path.basename(path):
                raise Stays("the build folder" if in_build == "." else f"build/{in_build}")
            return self.take(path, ("tests/" if in_build.startswith("tests/") else "bin/") + os.path.basename(path))
        if in_source == ".":
            return '"$here"/source'
        if in_source is not None:
            if not TAKEN.fullmatch(in_source):
                raise Stays(in_source)
            return self.take(path, "source/" + in_source)
        # a program of the system (python3, bash), found by the bundle's machine
        return shlex.quote(os.path.basename(text))

    def entry(self, test):
        properties = {p["name"]: p["value"] for p in test.get("properties", [])}
        if "command" not in test:
            raise Stays("a program that was not built")
        variables = []
        for setting in properties.get("ENVIRONMENT", []):
            name, value = setting.split("=", 1)
            # a folder that tests write to: beside the logs
            variables.append(name + '="$logs"/cache' if name == "XDG_CACHE_HOME" else f"{name}={self.word(value)}")
        skip = properties.get("SKIP_RETURN_CODE", "none")
        head = [test["name"], " ".join(properties.get("LABELS", [])), str(int(properties.get("TIMEOUT", TIMEOUT))), str(skip)]
        alone = ["alone"] if properties.get("RUN_SERIAL") else []
        return " ".join([*alone, "entry", *map(shlex.quote, head), *variables, *map(self.word, test["command"])])


def main():
    source, build, bundle = sys.argv[1:4]
    tests = Tests(source, build)
    lines = []
    for test in json.load(sys.stdin)["tests"]:
        kept = dict(tests.files)
        try:
            lines.append(tests.entry(test))
        except Stays as missing:
            tests.files = kept
            print(f"left out: {test['name']} (needs {missing})", file=sys.stderr)
    os.makedirs(os.path.join(bundle, "tests"), exist_ok=True)
    with open(os.path.join(bundle, "tests", "list.sh"), "w", encoding="utf-8") as out:
        out.write("# Sourced by run_tests.sh, which defines entry.\n")
        out.writelines(line + "\n" for line in lines)
    for to, path in sorted(tests.files.items()):
        print(f"{path}\t{to}")


if __name__ == "__main__":
    main()

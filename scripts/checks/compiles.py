#!/usr/bin/env python3
"""Whether Python compiles every file of the Python package, its tests and the scripts.

usage: compiles.py [--self-test]

--self-test: whether a file with an argument that is there twice is found.

SPDX-License-Identifier: BSD-3-Clause
"""

import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDERS = ("python", "scripts", "tests")


def error_of(text, name):
    """What the compiler says of a file: "name:line: message", or None."""
    try:
        compile(text, name, "exec", dont_inherit=True)
    except SyntaxError as e:
        return f"{name}:{e.lineno}: {e.msg}"
    return None


def main():
    if sys.argv[1:] == ["--self-test"]:
        found = error_of("f(a=1,\n  a=2)\n", "planted.py")
        print(found)
        return 0 if found is not None and error_of("f(a=1)\n", "planted.py") is None else 1
    files = sorted(f for folder in FOLDERS for f in (ROOT / folder).rglob("*.py"))
    errors = [e for e in (error_of(f.read_text(), str(f.relative_to(ROOT))) for f in files) if e is not None]
    print(*errors, f"{len(files)} files, {len(errors)} of them do not compile", sep="\n")
    return 1 if errors or not files else 0


if __name__ == "__main__":
    sys.exit(main())

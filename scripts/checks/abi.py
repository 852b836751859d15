#!/usr/bin/env python3
"""Compares the binary interface of libspmv.so with an earlier one, using abidiff (package
abigail-tools of Debian and Ubuntu).

    abi.py [OLD [NEW]]     commits or folders with the project's source; default: the commit that
                           gates.py chooses and this tree
    abi.py --self-test     changes a public struct of a small library in several ways: each
                           incompatible change must be found

Both states are built below build/gates as debug builds, because optimisation does not change the
interface, and without CUDA, because that backend exports no function of its own.

An addition is reported and passes: a function, or a field at the end of a struct whose first field
is its size. A removal, a move or a change of type fails. Exit status 1 if there is one.

SPDX-License-Identifier: BSD-3-Clause
"""
import os
import re
import subprocess
import tempfile

import gates

# abidiff's exit status is a set of bits.
ERROR, USAGE, CHANGE, INCOMPATIBLE = 1, 2, 4, 8
# Reports of abidiff about a field that moved, changed its type or was removed.
BROKEN = re.compile(r"data member deletion|data member changes?:|offset changed from|type of '.*' changed:|"
                    r"\bRemoved\b.*function|deleted|enumerator deletion|enumerator change|return type changed|parameter \d+ of type .* changed")
# A struct may grow at its end: the library reads only the caller's size of it.
GROWN = re.compile(r"type size changed from (\d+) to (\d+)")


def judge(status, text):
    """A message for each change that breaks programs built with the old library."""
    if status & (ERROR | USAGE):
        raise gates.Trouble(f"abidiff failed (status {status}): {text.strip()[:300]}")
    if not status & (CHANGE | INCOMPATIBLE):
        return []
    found = []
    for line in text.splitlines():
        removed = re.search(r"(\d+) Removed", line)
        if removed and int(removed.group(1)) > 0:
            found.append(line.strip())
        shrunk = GROWN.search(line)
        if shrunk and int(shrunk.group(2)) < int(shrunk.group(1)):
            found.append(line.strip())
        if "summary" not in line and BROKEN.search(line) and not re.search(r"Removed", line):
            found.append(line.strip())
    if status & INCOMPATIBLE and not found:
        found.append("abidiff reports that the interfaces are incompatible")
    return found


def abidiff(old, new, old_headers, new_headers):
    done = subprocess.run(["abidiff", "--no-show-locs", "--headers-dir1", old_headers, "--headers-dir2", new_headers, old, new],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, universal_newlines=True)
    return done.returncode, done.stdout


def library(name):
    """Paths of libspmv.so of a state and of its public headers."""
    state = gates.State(name)
    folder = state.build("abi", ["spmv_shared"], "-DCMAKE_BUILD_TYPE=Debug", "-DBUILD_TESTING=OFF", "-DSPMV_CUDA=OFF")
    return os.path.join(folder, "libspmv.so"), os.path.join(state.source, "include")


STRUCT = "typedef struct scratch {\n    unsigned long size;\n%s} scratch;\nint spmv_scratch(const scratch *s);\n"
SOURCE = '#include "scratch.h"\nint spmv_scratch(const scratch *s)\n{\n    return s->first + (int)s->second;\n}\n'
FIELDS = "    int first;\n    double second;\n"
PLANTED = {"the same": (FIELDS, False), "a field at the end": (FIELDS + "    int third;\n", False),
           "two fields exchanged": ("    double second;\n    int first;\n", True),
           "a field of another type": ("    int first;\n    float second;\n", True),
           "a field in between": ("    int first, new;\n    int other[2];\n    double second;\n", True)}


def scratch_library(folder, fields):
    os.makedirs(folder)
    for name, text in (("scratch.h", STRUCT % fields), ("scratch.c", SOURCE)):
        with open(os.path.join(folder, name), "w", encoding="utf-8") as out:
            out.write(text)
    built = os.path.join(folder, "libscratch.so")
    gates.run(["cc", "-g", "-shared", "-fPIC", "-o", built, os.path.join(folder, "scratch.c")])
    return built


def self_test():
    with tempfile.TemporaryDirectory() as folder:
        old = scratch_library(os.path.join(folder, "old"), FIELDS)
        for number, (what, (fields, broken)) in enumerate(PLANTED.items()):
            home = os.path.join(folder, str(number))
            found = judge(*abidiff(old, scratch_library(home, fields), os.path.join(folder, "old"), home))
            if bool(found) != broken:
                raise gates.Trouble(f"{what}: reported as {found}")
            print(f"{what}: {'found' if found else 'passes'}")
    return 0


def work():
    given = gates.arguments(gates.parser(__doc__), self_test)
    old, new = gates.old_and_new(given.states)
    (old_library, old_headers), (new_library, new_headers) = library(old), library(new)
    status, text = abidiff(old_library, new_library, old_headers, new_headers)
    found = judge(status, text)
    print(text.strip() or "abi: no change")
    for sentence in found:
        print(f"breaks programs: {sentence}")
    print(f"abi: {old} against {new}: {len(found)} incompatible changes")
    return 1 if found else 0


if __name__ == "__main__":
    gates.main(work)

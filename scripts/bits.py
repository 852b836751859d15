#!/usr/bin/env python3
"""Compares the results of two versions of the library bit by bit: products, solves, primitives, generators, files.

    bits.py [OLD [NEW]]              prints the cases that differ, appear or vanish; exit status 1 when there are any
    bits.py --list STATE             prints the listing of one state: NAME HASH, one line a case
    bits.py --self-test [STATE]      flips one bit of one case: the comparison must find that case and no other

OLD and NEW are each
    a commit, or a folder with the project's source   built below build/gates
    a build folder, or an unpacked bundle              its tests/bits (and tests/bits_host_cuda) is run as it is
    a file                                             a listing that --list wrote
Default: OLD the commit that gates.py says (variable GATE_BASE), NEW this tree.

    --backends LIST     of ref, omp, cuda and host_cuda, separated by commas; default: ref,omp,host_cuda. host_cuda runs the
                        CUDA kernels on the host that plays a GPU, with smaller chunks and cases, so its hashes are not those
                        of cuda. cuda needs a GPU; its backend is built where nvcc is found.
    --expected FILE     names of cases (shell patterns, one a line, # begins a comment) that may differ, appear or vanish: the
                        decisions of a change. One that matches nothing is an error.

A commit is built with the program of this tree (tests/bits.c), so both list the same cases; where it does not compile with the
commit's headers, with the commit's own. Both listings must be made on one machine: libraries of the system, such as zlib,
have a part in some cases.

SPDX-License-Identifier: BSD-3-Clause
"""
import argparse
import fnmatch
import os
import subprocess
import sys

import gates

BACKENDS = ("ref", "omp", "cuda", "host_cuda")
SKIPPED = 77


def read_listing(lines):
    """{name: hash} in order; a name twice is an error of the program."""
    listing = {}
    for line in lines:
        name, _, value = line.rstrip("\n").rpartition(" ")
        if name in listing or not name:
            raise gates.Trouble(f"not a listing of cases: {line.rstrip()!r}")
        listing[name] = value
    return listing


def compare(old, new, expected=()):
    """Sentences about the cases in which two listings differ, those that expected covers left out."""
    found, used = [], set()
    for name in dict.fromkeys([*old, *new]):
        if old.get(name) == new.get(name):
            continue
        pattern = next((p for p in expected if fnmatch.fnmatchcase(name, p)), None)
        if pattern is not None:
            used.add(pattern)
        elif name not in new:
            found.append(f"vanished  {name}")
        elif name not in old:
            found.append(f"appeared  {name}")
        else:
            found.append(f"differs   {name}  {old[name]} {new[name]}")
    found += [f"expected, but nothing differs: {pattern}" for pattern in expected if pattern not in used]
    return found


def read_expected(path):
    with open(path, encoding="utf-8") as lines:
        return [line.split("#")[0].strip() for line in lines if line.split("#")[0].strip()]


def build(state, backends):
    """The programs of a source tree: {backend: program}."""
    own = os.path.join(gates.ROOT, "scripts", "bits_overlay.cmake")
    options = ["-DCMAKE_BUILD_TYPE=Release", "-DBUILD_TESTING=ON", "-DSPMV_CUDA=" + ("ON" if "cuda" in backends else "OFF")]
    ends = sorted({"_host_cuda" if backend == "host_cuda" else "" for backend in backends})
    kind = "bits-cuda" if "cuda" in backends else "bits"
    if state.source == gates.ROOT:
        folder = os.path.join(state.build(kind, ["bits" + end for end in ends], *options), "tests", "bits")
    else:
        try:
            folder = os.path.join(
                state.build(kind, ["bits_gate" + end for end in ends], *options, "-DCMAKE_PROJECT_spmv_INCLUDE=" + own), "bits_gate")
        except gates.Trouble:
            if not os.path.exists(os.path.join(state.source, "tests", "bits.c")):
                raise
            print(f"bits.py: {state.name} is listed by its own program: ours does not compile there", file=sys.stderr)
            folder = os.path.join(state.build(kind, ["bits" + end for end in ends], *options), "tests", "bits")
    return {backend: folder + ("_host_cuda" if backend == "host_cuda" else "") for backend in backends}


def programs(name, backends):
    ready = os.path.join(name, "tests", "bits")
    if os.path.exists(ready):
        return {backend: os.path.abspath(ready) + ("_host_cuda" if backend == "host_cuda" else "") for backend in backends}
    return build(gates.State(name), backends)


def listing_text(name, backends, *arguments):
    """The lines of a state's cases, each name after its backend's."""
    lines = []
    for backend, program in programs(name, backends).items():
        done = subprocess.run([program, "cuda" if backend == "host_cuda" else backend, *arguments], stdout=subprocess.PIPE,
                              stdin=subprocess.DEVNULL, universal_newlines=True)
        if done.returncode == SKIPPED:
            raise gates.Trouble(f"no backend {backend} here: {done.stdout.strip()}; --backends leaves it out")
        if done.returncode != 0:
            raise gates.Trouble(f"{program} {backend} ended with status {done.returncode}")
        lines += [f"{backend}.{line}" for line in done.stdout.splitlines()]
    return lines


def listing(name, backends, *arguments):
    if os.path.isfile(name):
        with open(name, encoding="utf-8") as lines:
            return read_listing(lines)
    return read_listing(listing_text(name, backends, *arguments))


def report(old, new, found):
    for sentence in found:
        print(sentence)
    print(f"bits: {len(old)} cases before, {len(new)} after; {len(found)} not as expected")
    return 1 if found else 0


def self_test(name, backends):
    """One bit of the first case of each backend, and of one in the middle; of one group, to be quick."""
    some = ("--group", "moves")
    for backend in backends:
        true = listing(name, [backend], *some)
        for case in (next(iter(true)), list(true)[len(true) // 2]):
            planted = listing(name, [backend], *some, "--flip", case.split(".", 1)[1])
            found = compare(true, planted)
            if len(found) != 1 or case not in found[0]:
                raise gates.Trouble(f"a flipped bit of {case} was told as {found[:3]}")
            print(f"found: one flipped bit of {case}")
    return 0


def work():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("states", nargs="*", metavar="STATE")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--self-test", action="store_true")
    parser.add_argument("--backends", default="ref,omp,host_cuda")
    parser.add_argument("--expected", metavar="FILE")
    given = parser.parse_args()
    backends = given.backends.split(",")
    for backend in backends:
        if backend not in BACKENDS:
            parser.error(f"no backend {backend}; there are: {', '.join(BACKENDS)}")
    if given.list or given.self_test:
        if len(given.states) > 1:
            parser.error("one state at most")
        name = given.states[0] if given.states else gates.ROOT
        if given.self_test:
            return self_test(name, backends)
        print("\n".join(listing_text(name, backends)))
        return 0
    if len(given.states) > 2:
        parser.error("two states at most")
    old_name = given.states[0] if given.states else gates.base()
    new_name = given.states[1] if len(given.states) > 1 else gates.ROOT
    expected = read_expected(given.expected) if given.expected else []
    print(f"bits: {old_name} against {new_name}, {', '.join(backends)}", file=sys.stderr)
    old, new = listing(old_name, backends), listing(new_name, backends)
    return report(old, new, compare(old, new, expected))


if __name__ == "__main__":
    gates.main(work)

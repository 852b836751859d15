#!/usr/bin/env python3
"""Compares the results of two versions of the library bit by bit: products, solves, primitives,
generators, files.

    bits.py [OLD [NEW]]              prints the cases that differ, appear or vanish; exit status 1
                                     if there are any
    bits.py --list STATE             prints the listing of one state: NAME HASH, one line per case
    bits.py --self-test [STATE]      flips one bit of one case: the comparison must report that case
                                     and no other

OLD and NEW are each one of
    a commit, or a folder with the project's source     built below build/gates
    a build folder, or an unpacked bundle               its tests/bits (and tests/bits_host_cuda)
                                                        is run
    a file                                              a listing written by --list
Default: OLD is the commit that gates.py chooses (variable GATE_BASE), NEW is this tree.

    --backends LIST     a comma-separated list of ref, omp, cuda and host_cuda; default:
                        ref,omp,host_cuda. host_cuda runs the CUDA kernels on the CPU, on the GPU
                        emulated by tests/emulated_gpu. It uses smaller chunks and cases, so its
                        hashes differ from those of cuda. cuda needs nvcc and a GPU.
    --expected FILE     names of cases that may differ, appear or vanish because of an intended
                        change: shell patterns, one per line; # begins a comment. A pattern that
                        matches no difference is an error.

A commit is built with the listing program of this tree (tests/bits.c), so that both states list the
same cases. If that does not compile with the commit's headers, the commit's own program is used.
Both listings must be made on the same machine, because some hashes depend on system libraries such
as zlib.

SPDX-License-Identifier: BSD-3-Clause
"""
import fnmatch
import os
import subprocess
import sys

import gates

BACKENDS = ("ref", "omp", "cuda", "host_cuda")
SKIPPED = 77


def read_listing(lines):
    """{name: hash} in order; a repeated name is an error."""
    listing = {}
    for line in lines:
        name, _, value = line.rstrip("\n").rpartition(" ")
        if name in listing or not name:
            raise gates.Trouble(f"not a listing of cases: {line.rstrip()!r}")
        listing[name] = value
    return listing


def compare(old, new, expected=()):
    """A message for each case in which two listings differ, except those that expected covers."""
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
    """Builds the listing programs of a source tree: {backend: program}."""
    own = os.path.join(gates.ROOT, "scripts", "checks", "bits_overlay.cmake")
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
            print(f"bits.py: using tests/bits.c of {state.name}: that of this tree does not compile there", file=sys.stderr)
            folder = os.path.join(state.build(kind, ["bits" + end for end in ends], *options), "tests", "bits")
    return {backend: folder + ("_host_cuda" if backend == "host_cuda" else "") for backend in backends}


def programs(name, backends):
    ready = os.path.join(name, "tests", "bits")
    if os.path.exists(ready):
        return {backend: os.path.abspath(ready) + ("_host_cuda" if backend == "host_cuda" else "") for backend in backends}
    return build(gates.State(name), backends)


def listing_text(name, backends, *arguments):
    """The lines of a state's cases: BACKEND.NAME HASH."""
    lines = []
    for backend, program in programs(name, backends).items():
        done = subprocess.run([program, "cuda" if backend == "host_cuda" else backend, *arguments], stdout=subprocess.PIPE,
                              stdin=subprocess.DEVNULL, universal_newlines=True)
        if done.returncode == SKIPPED:
            raise gates.Trouble(f"backend {backend} is not available: {done.stdout.strip()}; exclude it with --backends")
        if done.returncode != 0:
            raise gates.Trouble(f"{program} {backend}: exit status {done.returncode}")
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
    print(f"bits: {len(old)} cases before, {len(new)} after; {len(found)} unexpected differences")
    return 1 if found else 0


def self_test(name, backends):
    """Flips one bit of the first and of the middle case of each backend, in one quick group."""
    some = ("--group", "moves")
    for backend in backends:
        true = listing(name, [backend], *some)
        for case in (next(iter(true)), list(true)[len(true) // 2]):
            planted = listing(name, [backend], *some, "--flip", case.split(".", 1)[1])
            found = compare(true, planted)
            if len(found) != 1 or case not in found[0]:
                raise gates.Trouble(f"a flipped bit of {case} was reported as {found[:3]}")
            print(f"found: one flipped bit of {case}")
    return 0


def work():
    parser = gates.parser(__doc__, lists=True)
    parser.add_argument("--backends", default="ref,omp,host_cuda")
    parser.add_argument("--expected", metavar="FILE")
    given = parser.parse_args()
    backends = given.backends.split(",")
    for backend in backends:
        if backend not in BACKENDS:
            parser.error(f"unknown backend {backend}; known: {', '.join(BACKENDS)}")
    if given.list or given.self_test:
        if len(given.states) > 1:
            parser.error("at most one state")
        name = given.states[0] if given.states else gates.ROOT
        if given.self_test:
            return self_test(name, backends)
        print("\n".join(listing_text(name, backends)))
        return 0
    if len(given.states) > 2:
        parser.error("at most two states")
    old_name, new_name = gates.old_and_new(given.states)
    expected = read_expected(given.expected) if given.expected else []
    print(f"bits: {old_name} against {new_name}, {', '.join(backends)}", file=sys.stderr)
    old, new = listing(old_name, backends), listing(new_name, backends)
    return report(old, new, compare(old, new, expected))


if __name__ == "__main__":
    gates.main(work)

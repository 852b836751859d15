#!/usr/bin/env python3
"""Limits the size of the shared library and of its CUDA objects. Reports their compile times, if
there is a log of Ninja.

    cuda_build.py LIBRARY BUILD_FOLDER MIB|none OBJECT...

MIB is the limit for all objects with the architectures of this build; "none" if no limit is known
(another compiler, another build type).

The compile time itself is not limited, because it depends on the machine and its load. The size of
nvcc's objects is proportional to it: an object of half a MiB or more takes 30 to 75 seconds per MiB
(compressed, two architectures and PTX, one quiet core), whatever kernels it contains. So five
minutes on two cores are 12 MiB of objects for the architectures of a release.

SPDX-License-Identifier: BSD-3-Clause
"""

import os
import sys

MIB = 1024 * 1024
MOST_LIBRARY = 30 * MIB
CORES = 2


def compile_seconds(build):
    """{absolute path of an object: seconds of its last compilation}."""
    seconds = {}
    log = os.path.join(build, ".ninja_log")
    if os.path.exists(log):
        with open(log, encoding="utf-8") as lines:
            for line in lines:
                fields = line.rstrip("\n").split("\t")
                if len(fields) >= 4:
                    seconds[os.path.realpath(os.path.join(build, fields[3]))] = (int(fields[1]) - int(fields[0])) / 1000
    return seconds


def within(name, size, most):
    good = most is None or size <= most
    print(f"{name}: {size / MIB:.1f} MiB" + ("" if most is None else f", at most {most / MIB:g}") + ("" if good else ": TOO LARGE"))
    return good


def main():
    library, build, most, *objects = sys.argv[1:]
    assert objects
    sizes = {os.path.realpath(name): os.path.getsize(name) for name in objects}
    seconds = compile_seconds(build)
    for name in sorted(sizes, key=sizes.get, reverse=True):
        took = f"{seconds[name]:8.1f} s" if name in seconds else " " * 10
        print(f"{sizes[name] / MIB:8.2f} MiB {took}  {os.path.basename(name)}")
    if all(name in seconds for name in sizes):
        total = sum(seconds[name] for name in sizes)
        print(f"CUDA sources: {total:.1f} s of compiling, {total / CORES:.1f} s on {CORES} cores")
    good = within("CUDA objects", sum(sizes.values()), None if most == "none" else float(most) * MIB)
    return 0 if within(os.path.basename(library), os.path.getsize(library), MOST_LIBRARY) and good else 1


if __name__ == "__main__":
    sys.exit(main())

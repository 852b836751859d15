#!/usr/bin/env python3
"""What the CUDA part costs: reports and limits the size of the shared library and the time its CUDA sources took to compile.

    cuda_build.py LIBRARY BUILD_FOLDER CONFIGURATION [LAUNCHER]

The times are read from Ninja's log. A machine that does other work beside takes twice the time on one day of what it
took on another, so the limit is no number of seconds: the CUDA sources may take MOST_TIMES what the library's C and C++
sources took in the same build. (Without Ninja's log, in a configuration other than Release, or with a LAUNCHER that
brings objects from a cache, the times are reported where there are any, and not compared.)

SPDX-License-Identifier: BSD-3-Clause
"""

import os
import sys

MOST_BYTES = 30 * 1024 * 1024
MOST_TIMES = 3.0
CORES = 2


def compile_seconds(build):
    """Seconds of the last compilation of each of the library's objects that is there, by its name in the log."""
    seconds = {}
    log = os.path.join(build, ".ninja_log")
    if os.path.exists(log):
        with open(log, encoding="utf-8") as lines:
            for line in lines:
                fields = line.rstrip("\n").split("\t")
                if len(fields) >= 4 and "spmv_objects.dir" in fields[3] and fields[3].endswith(".o"):
                    seconds[fields[3]] = (int(fields[1]) - int(fields[0])) / 1000
    return {name: s for name, s in seconds.items() if os.path.exists(os.path.join(build, name))}


def main():
    library, build, configuration = sys.argv[1:4]
    launched = len(sys.argv) > 4 and sys.argv[4] != ""
    size = os.path.getsize(library)
    print(f"{os.path.basename(library)}: {size / 2**20:.1f} MiB, at most {MOST_BYTES / 2**20:.0f}")
    good = size <= MOST_BYTES
    seconds = compile_seconds(build)
    cuda = {name: s for name, s in seconds.items() if name.endswith(".cu.o")}
    if cuda:
        for name in sorted(cuda, key=cuda.get, reverse=True):
            print(f"{cuda[name]:8.1f} s  {os.path.basename(name)}")
        total, rest = sum(cuda.values()), sum(seconds.values()) - sum(cuda.values())
        compared = rest > 0 and configuration == "Release" and not launched
        print(
            f"CUDA sources: {total:.1f} s of compiling, {total / CORES:.1f} s on {CORES} cores; C and C++ sources: {rest:.1f} s; "
            + (f"{total / rest:.2f} times, at most {MOST_TIMES:g}" if compared else "not compared")
        )
        good = good and (not compared or total <= MOST_TIMES * rest)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())

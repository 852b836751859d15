"""What the CUDA part costs: reports and limits the size of the shared library and the time its CUDA sources took to compile.

    cuda_build.py LIBRARY BUILD_FOLDER

The time is read from Ninja's log: the sum over the CUDA objects, divided by 2 (cores). Without that log (another
generator) only the size is looked at.

SPDX-License-Identifier: BSD-3-Clause
"""

import os
import sys

MOST_BYTES = 30 * 1024 * 1024
MOST_SECONDS = 300
CORES = 2


def compile_seconds(log):
    """Seconds of the last compilation of each CUDA object."""
    seconds = {}
    with open(log, encoding="utf-8") as lines:
        for line in lines:
            fields = line.rstrip("\n").split("\t")
            if len(fields) >= 4 and "spmv_objects" in fields[3] and fields[3].endswith(".cu.o"):
                seconds[fields[3]] = (int(fields[1]) - int(fields[0])) / 1000
    return seconds


def main():
    library, build = sys.argv[1:3]
    size = os.path.getsize(library)
    print(f"{os.path.basename(library)}: {size / 2**20:.1f} MiB, at most {MOST_BYTES / 2**20:.0f}")
    good = size <= MOST_BYTES
    log = os.path.join(build, ".ninja_log")
    seconds = compile_seconds(log) if os.path.exists(log) else {}
    seconds = {name: s for name, s in seconds.items() if os.path.exists(os.path.join(build, name))}
    if seconds:
        total = sum(seconds.values())
        for name in sorted(seconds, key=seconds.get, reverse=True):
            print(f"{seconds[name]:8.1f} s  {os.path.basename(name)}")
        print(f"CUDA sources: {total:.1f} s of compiling, {total / CORES:.1f} s on {CORES} cores, at most {MOST_SECONDS}")
        good = good and total / CORES <= MOST_SECONDS
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Compares the program's estimate of the memory that a command needs with its peak.

memory_table.py PROGRAM FILE...       a row per file and command: estimate, peak and their ratio
memory_table.py PROGRAM --hostile     a row per file whose header claims more data than the file
                                      has (20 files): exit codes and peak

The peak is VmHWM, which the program writes into its JSON. If the program rejects its input and
writes no JSON, the peak is ru_maxrss, which starts at the size of this script (about 10 MB). Needs
only Python's standard library.

SPDX-License-Identifier: BSD-3-Clause
"""

import json
import os
import subprocess
import sys
import tempfile

COMMANDS = [["info"], ["mul"], ["solve", "--max-iterations", "20"]]

BANNER = "%%MatrixMarket matrix "
COORDINATE = BANNER + "coordinate real general\n"
SYMMETRIC = BANNER + "coordinate real symmetric\n"
PATTERN = BANNER + "coordinate pattern general\n"
COMPLEX = BANNER + "coordinate complex hermitian\n"
ARRAY = BANNER + "array real general\n"
MOST = 2**31 - 1

# name and text of each file, all below 100 bytes
HOSTILE = [
    ("rows", f"{COORDINATE}{MOST} 3 1\n1 1 2\n"),
    ("columns", f"{COORDINATE}3 {MOST} 1\n1 1 2\n"),
    ("both", f"{COORDINATE}{MOST} {MOST} 1\n1 1 2\n"),
    ("symmetric", f"{SYMMETRIC}{MOST} {MOST} 1\n1 1 2\n"),
    ("pattern", f"{PATTERN}{MOST} 1 1\n1 1\n"),
    ("hermitian", f"{COMPLEX}{MOST} {MOST} 1\n1 1 2 0\n"),
    ("no entries", f"{COORDINATE}{MOST} {MOST} 0\n"),
    ("rows beyond 32 bits", f"{COORDINATE}{2**40} 3 1\n1 1 2\n"),
    ("rows beyond 64 bits", f"{COORDINATE}{2**70} 3 1\n1 1 2\n"),
    ("columns beyond 32 bits", f"{COORDINATE}3 {2**31} 1\n1 1 2\n"),
    ("entries", f"{COORDINATE}1000 1000 999999\n1 1 2\n"),
    ("entries of 2^40", f"{COORDINATE}{MOST} {MOST} {2**40}\n1 1 2\n"),
    ("entries of 2^62", f"{COORDINATE}{MOST} {MOST} {2**62}\n1 1 2\n"),
    ("entries beyond the cells", f"{COORDINATE}3 3 {2**33}\n1 1 2\n"),
    ("symmetric entries", f"{SYMMETRIC}{2**30} {2**30} {2**40}\n1 1 2\n"),
    ("array rows", f"{ARRAY}{MOST} 1\n1\n"),
    ("array columns", f"{ARRAY}1 {MOST}\n1\n"),
    ("array cells", f"{ARRAY}{2**30} {2**30}\n1\n"),
    ("array cells beyond 64 bits", f"{ARRAY}{2**62} {2**30}\n1\n"),
    ("array without cells", f"{ARRAY}{MOST} 0\n"),
]


def run(command):
    """Exit code, standard output, the last line of standard error, ru_maxrss in bytes."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=err)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        err.seek(0)
        lines = err.read().decode(errors="replace").splitlines()
        return process.returncode, out.read(), lines[-1] if lines else "", 1024 * usage.ru_maxrss


def measure(program, command, path):
    """Exit code, estimate and peak in bytes; None if the command rejects the matrix."""
    code, out, _, _ = run([program, *command, path, "--json", "-q"])
    if not out.strip():
        return None
    load = json.loads(out)["load"]
    return code, load["memory_estimate"], load["memory_peak"]


def table(program, paths):
    print("| file | command | estimate, MB | peak, MB | ratio |\n|---|---|---|---|---|")
    for path in paths:
        for command in COMMANDS:
            found = measure(program, command, path)
            name = os.path.basename(path)
            if found is None:
                print(f"| {name} | {command[0]} | refused | | |")
            else:
                _, estimate, peak = found
                print(f"| {name} | {command[0]} | {estimate * 1e-6:.1f} | {peak * 1e-6:.1f} | {estimate / peak:.2f} |")


def hostile(program):
    print("| header | size line | bytes | info | mul | solve | peak, MB |\n|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for name, text in HOSTILE:
            path = os.path.join(folder, "A.mtx")
            with open(path, "w", encoding="ascii") as file:
                file.write(text)
            codes, peak = [], 0
            for command in COMMANDS:
                code, _, _, rss = run([program, *command, path, "-q"])
                codes.append(str(code))
                peak = max(peak, rss)
            print(f"| {name} | {text.splitlines()[1]} | {len(text)} | {' | '.join(codes)} | {peak * 1e-6:.1f} |")


def main():
    if len(sys.argv) == 3 and sys.argv[2] == "--hostile":
        hostile(sys.argv[1])
    elif len(sys.argv) > 2:
        table(sys.argv[1], sys.argv[2:])
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()

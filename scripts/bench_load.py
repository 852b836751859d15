#!/usr/bin/env python3
"""Compares the time to read Matrix Market files: spmv, fast_matrix_market, scipy.io.mmread and the
original mmio, on the same files with the same number of threads.

usage: bench_load.py SPMV FILE... [--threads 1,2,4] [--mmio PROGRAM] [--python PYTHON]
                     [--rounds N] [--json FILE]

SPMV is the program; PROGRAM is tests/mmio_compare of the build tree; PYTHON is a Python with the
packages fast_matrix_market and scipy (default: the one that runs this script). A missing reader is
left out with a note. All readers produce CSR in memory except mmio, which produces lists of rows,
columns and values.

The readers run alternately for N rounds (default 3). Each run is a new process that reads the file
several times. The table has the median over the rounds of the first read and of the fastest later
read.

SPDX-License-Identifier: BSD-3-Clause
"""
import argparse
import json
import os
import statistics
import subprocess
import sys

PYTHON_READER = """
import sys, time
reader, path, threads = sys.argv[1], sys.argv[2], int(sys.argv[3])
if reader == "fast_matrix_market":
    import fast_matrix_market, scipy.sparse
    def read():
        return fast_matrix_market.mmread(path, parallelism=threads).tocsr()
else:
    import scipy.io
    try: # SciPy from 1.12 on reads with fast_matrix_market
        import scipy.io._fast_matrix_market
        scipy.io._fast_matrix_market.PARALLELISM = threads
    except ImportError:
        pass
    def read():
        return scipy.io.mmread(path).tocsr()
seconds = []
while len(seconds) < 4 and (len(seconds) < 2 or sum(seconds) < 6):
    began = time.perf_counter()
    matrix = read()
    seconds.append(time.perf_counter() - began)
    del matrix
print(seconds[0], min(seconds[1:]))
"""


def run(command):
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command[:3])}: exit {done.returncode}: {done.stderr.strip()[-300:]}")
    return done.stdout


def read_with_spmv(program, path, threads):
    result = json.loads(run([program, "bench", "--op", "load", path, "--threads", str(threads), "--json"]))["result"]
    return {"first": result["first_call_seconds"], "later": result["seconds"]["min"],
            "peak_over_csr": result.get("peak_bytes", 0) / result["matrix_bytes"]}


def read_with_python(python, reader, path, threads):
    first, later = map(float, run([python, "-c", PYTHON_READER, reader, path, str(threads)]).split())
    return {"first": first, "later": later}


def read_with_mmio(program, path):
    seconds = float(run([program, "--seconds", path]))
    return {"first": seconds, "later": seconds}


def has_package(python, name):
    return subprocess.run([python, "-c", f"import {name}"], capture_output=True).returncode == 0


def contenders(arguments):
    """[(name, whether it uses threads, function of path and threads)]"""
    python = arguments.python
    found = [("spmv", True, lambda path, threads: read_with_spmv(arguments.spmv, path, threads))]
    if has_package(python, "fast_matrix_market"):
        found.append(("fast_matrix_market", True, lambda path, threads: read_with_python(python, "fast_matrix_market", path, threads)))
    else:
        print(f"left out: {python} has no fast_matrix_market", file=sys.stderr)
    if has_package(python, "scipy.io"):
        found.append(("scipy.io.mmread", True, lambda path, threads: read_with_python(python, "scipy", path, threads)))
    else:
        print(f"left out: {python} has no scipy", file=sys.stderr)
    if arguments.mmio:
        found.append(("mmio", False, lambda path, threads: read_with_mmio(arguments.mmio, path)))
    else:
        print("left out: mmio (no --mmio PROGRAM)", file=sys.stderr)
    return found


def measure(path, threads, readers, rounds):
    """One row per reader: medians over the rounds."""
    samples = {name: [] for name, _, _ in readers}
    for _ in range(rounds):
        for name, _, read in readers:
            samples[name].append(read(path, threads))
    rows = []
    for name, uses_threads, _ in readers:
        row = {key: statistics.median(sample[key] for sample in samples[name]) for key in samples[name][0]}
        row.update(file=os.path.basename(path), bytes=os.path.getsize(path), threads=threads if uses_threads else 1, reader=name)
        rows.append(row)
    return rows


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1].split("\n\n")[0])
    parser.add_argument("spmv")
    parser.add_argument("files", nargs="+")
    parser.add_argument("--threads", default="1,2,4")
    parser.add_argument("--mmio")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json")
    arguments = parser.parse_args()
    readers = contenders(arguments)
    results = []
    print("| file | MB | threads | reader | first s | MB/s | later s | MB/s | spmv is faster: first, later |")
    print("|---|---|---|---|---|---|---|---|---|")
    for path in arguments.files:
        done = {}  # readers with one thread only: measured once per file
        for threads in map(int, arguments.threads.split(",")):
            wanted = [reader for reader in readers if reader[1] or reader[0] not in done]
            rows = measure(path, threads, wanted, arguments.rounds)
            done.update({row["reader"]: row for row in rows if not dict((r[0], r[1]) for r in readers)[row["reader"]]})
            results += rows
            ours = rows[0]
            for row in rows + [done[name] for name in done if name not in [r["reader"] for r in rows]]:
                ratio = "" if row is ours else f"{row['first'] / ours['first']:.1f}, {row['later'] / ours['later']:.1f}"
                speed = [1e-6 * row["bytes"] / row[key] for key in ("first", "later")]
                print(f"| {row['file']} | {1e-6 * row['bytes']:.0f} | {row['threads'] if row is not ours else threads} | {row['reader']} | "
                      f"{row['first']:.3f} | {speed[0]:.0f} | {row['later']:.3f} | {speed[1]:.0f} | {ratio} |", flush=True)
    if arguments.json:
        with open(arguments.json, "w") as f:
            json.dump({"schema": "spmv-bench-load/1", "cores": os.cpu_count(), "results": results}, f, indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())

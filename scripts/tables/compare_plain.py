#!/usr/bin/env python3
"""Compares the load and product times of the program with hand-written loops
(bench/programs/plain_loops.c: an fscanf loop, a plain OpenMP loop) on the largest matrices of a
folder of SuiteSparse files. Both programs run alternately. Prints a Markdown table of medians and
their ratios.

usage: compare_plain.py PROGRAM PLAIN_LOOPS FOLDER [--count 10] [--rounds 5] [--backend omp]

SPDX-License-Identifier: BSD-3-Clause
"""
import argparse
import csv
import json
import lzma
import os
import statistics
import subprocess
import tempfile


def largest(folder, count):
    with open(os.path.join(folder, "catalog.csv"), newline="") as f:
        rows = [r for r in csv.DictReader(f)
                if r["format"] == "coordinate" and r["field"] in ("real", "integer", "pattern") and r["symmetry"] != "hermitian"]
    rows.sort(key=lambda r: int(r["nnz_expanded"]), reverse=True)
    return rows[:count]


def output(*command):
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("program")
    parser.add_argument("plain_loops")
    parser.add_argument("folder")
    parser.add_argument("--count", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--backend", default="omp")
    options = parser.parse_args()
    print("| matrix | nnz | MB | load, ms | fscanf, ms | ratio | product, us | plain loop, us | ratio | GB/s |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as scratch:
        path = os.path.join(scratch, "A.mtx")
        for row in largest(options.folder, options.count):
            with lzma.open(os.path.join(options.folder, row["file"])) as packed, open(path, "wb") as plain:
                plain.write(packed.read())
            ours, theirs = [], []
            for _ in range(options.rounds):
                ours.append(output(options.program, "mul", path, "--backend", options.backend, "--json"))
                theirs.append(output(options.plain_loops, path))
            load = statistics.median(r["load"]["seconds"] for r in ours)
            product = statistics.median(r["result"]["seconds"]["median"] for r in ours)
            plain_load = statistics.median(r["load_seconds"] for r in theirs)
            plain_product = statistics.median(r["product_seconds"] for r in theirs)
            print(f"| {row['name']} | {ours[0]['matrix']['nnz']} | {os.path.getsize(path) / 1e6:.1f} | {load * 1e3:.1f} "
                  f"| {plain_load * 1e3:.1f} | {plain_load / load:.1f} | {product * 1e6:.0f} | {plain_product * 1e6:.0f} "
                  f"| {plain_product / product:.2f} | {ours[0]['result']['model_bytes'] / product * 1e-9:.1f} |")


if __name__ == "__main__":
    main()

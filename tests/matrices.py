#!/usr/bin/env python3
"""Every real, integer or pattern matrix of a folder of SuiteSparse files goes through the program, method by method, and
must pass its check.

usage: matrices.py PROGRAM FOLDER BACKEND [METHOD...]
The folder holds NAME.mtx.xz files and catalog.csv (columns file, field, symmetry, rows, cols, nnz_expanded, duplicates). Exit code 77:
the folder is not there, or the backend cannot be had here (the program's exit code 6).

SPDX-License-Identifier: BSD-3-Clause
"""
import concurrent.futures
import csv
import json
import lzma
import os
import subprocess
import sys
import tempfile

TAKEN = ("real", "integer", "pattern")
NO_DEVICE = 6


def rows_of(folder):
    with open(os.path.join(folder, "catalog.csv"), newline="") as f:
        for row in csv.DictReader(f):
            if row["field"] in TAKEN and row["symmetry"] != "hermitian":
                yield row


def run(program, path, backend, method, extra):
    command = [program, "mul", path, "--backend", backend, "--method", method, "--json", *extra]
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        return None, f"exit {done.returncode}: {done.stderr.strip()}"
    return json.loads(done.stdout), None


def missing(program, backend):
    """Why the backend cannot be had, in the program's words, or None."""
    command = [program, "mul", "poisson2d:4", "--backend", backend]
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    return done.stderr.strip() if done.returncode == NO_DEVICE else None


def check(row, result, backend, method):
    """The sentence about what is wrong, or None."""
    matrix, verify = result["matrix"], result["verify"]
    for key, column in (("rows", "rows"), ("cols", "cols")):
        if matrix[key] != int(row[column]):
            return f"{key} is {matrix[key]}, the catalog says {row[column]}"
    # merged duplicates and dropped zeros make the matrix smaller than the catalog's count, never larger
    if matrix["nnz"] > int(row["nnz_expanded"]):
        return f"nnz is {matrix['nnz']}, the catalog says {row['nnz_expanded']}"
    if row["duplicates"] == "0" and row["format"] == "coordinate" and matrix["nnz"] != int(row["nnz_expanded"]):
        return f"nnz is {matrix['nnz']}, the catalog says {row['nnz_expanded']}"
    if result["result"]["backend"] != backend or result["result"]["method"] != method:
        return f"ran {result['result']['backend']} {result['result']['method']}"
    if verify["reference"] == backend:
        return "checked against itself"
    if not verify["worst_error_over_bound"] <= 1:
        return f"past the bound: {verify['worst_error_over_bound']} in row {verify['worst_row']}"
    return None


def try_file(program, folder, backend, methods, row):
    """([ratio of each product that passed], [sentence of each that did not])"""
    passed, failures = [], []
    with tempfile.TemporaryDirectory() as scratch:
        path = os.path.join(scratch, "A.mtx")
        with lzma.open(os.path.join(folder, row["file"])) as packed, open(path, "wb") as plain:
            plain.write(packed.read())
        for method in methods:
            for extra in ((), ("--type", "f32"), ("--transpose",)):
                result, wrong = run(program, path, backend, method, extra)
                wrong = wrong or check(row, result, backend, method)
                if wrong:
                    failures.append(f"{row['file']} {method} {' '.join(extra)}: {wrong}")
                else:
                    passed.append(result["verify"]["worst_error_over_bound"])
    return passed, failures


def main():
    program, folder, backend, methods = sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4:]
    if not os.path.exists(os.path.join(folder, "catalog.csv")):
        print(f"skipped: no matrices in {folder}")
        return 77
    reason = missing(program, backend)
    if reason:
        print(f"skipped: {reason}")
        return 77
    rows = list(rows_of(folder))
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = list(pool.map(lambda row: try_file(program, folder, backend, methods, row), rows))
    ratios = [(ratio, row["file"]) for (passed, _), row in zip(results, rows) for ratio in passed]
    failures = [line for _, lines in results for line in lines]
    for line in failures:
        print(line)
    worst = max(ratios, default=(0, "none"))
    print(f"{len(rows)} files, {len(ratios)} products passed, {len(failures)} failed; "
          f"the largest error is {worst[0]:.3g} of its bound ({worst[1]})")
    return 1 if failures or not ratios else 0


if __name__ == "__main__":
    sys.exit(main())

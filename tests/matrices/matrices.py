#!/usr/bin/env python3
"""Computes products with every matrix of a folder of SuiteSparse files (on ref and omp: with a
third of them each, others; with SPMV_TEST_ALL=1, as in check.sh: with all): by every method of a
backend, in every type, with several vectors, transposed, and with an epilogue. Each product must
pass its check on another backend. Also runs `spmv matvec` on a tenth of the matrices.

usage: matrices.py PRODUCTS SPMV FOLDER BACKEND
PRODUCTS is tests/matrices/products.c, SPMV the program. FOLDER holds NAME.mtx.xz files and
catalog.csv (columns file, format, field, symmetry, rows, cols, nnz_expanded, duplicates). Exit code
77: the folder is missing or the backend is not available.

SPDX-License-Identifier: BSD-3-Clause
"""
import csv
import json
import lzma
import os
import subprocess
import sys
import tempfile

SKIPPED = 77


def rows_of(folder):
    """The rows of the catalog; None if there is no catalog."""
    path = os.path.join(folder, "catalog.csv")
    if not os.path.exists(path):
        print(f"skipped: no matrices in {folder}")
        return None
    with open(path, newline="") as f:
        return list(csv.DictReader(f))


def unpacked(rows, folder, scratch):
    """Unpacks the files of the rows into the folder scratch: the row by the path."""
    paths = {}
    for row in rows:
        path = os.path.join(scratch, row["file"].removesuffix(".xz"))
        with lzma.open(os.path.join(folder, row["file"])) as packed, open(path, "wb") as plain:
            plain.write(packed.read())
        paths[path] = row
    return paths


def wrong_sizes(row, rows, cols, nnz):
    """The difference from the catalog, or None. Merged duplicates and dropped zeros may make nnz
    smaller."""
    if (rows, cols) != (int(row["rows"]), int(row["cols"])):
        return f"{rows} x {cols}, the catalog says {row['rows']} x {row['cols']}"
    exact = row["duplicates"] == "0" and row["format"] == "coordinate"
    if nnz > int(row["nnz_expanded"]) or (exact and nnz != int(row["nnz_expanded"])):
        return f"{nnz} nonzeros, the catalog says {row['nnz_expanded']}"
    return None


def all_methods(products, backend, paths):
    """([(file, ratio)] of the products that passed, [message] of those that failed), or None if the
    backend is not available."""
    done = subprocess.run([products, backend, *paths], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode == SKIPPED:
        return None
    passed, failures = [], []
    for line in done.stdout.splitlines():
        path, method, variant, *rest = line.split(maxsplit=4)
        row = paths[path]
        if rest[0] == "failed":
            failures.append(f"{row['file']} {method} {variant}: {rest[1]}")
            continue
        cols, nnz, ratio = rest[1].split()
        wrong = wrong_sizes(row, int(rest[0]), int(cols), int(nnz))
        if wrong or not float(ratio) <= 1:
            failures.append(f"{row['file']} {method} {variant}: {wrong or f'{ratio} of the bound'}")
        else:
            passed.append((float(ratio), row["file"]))
    if done.returncode not in (0, 1) or (done.returncode == 1 and not failures):
        failures.append(f"{products}: exit {done.returncode}: {done.stderr.strip()}")
    return passed, failures


def through_the_program(program, backend, path, row):
    """Runs `spmv matvec` on the file: an error message, or None."""
    done = subprocess.run([program, "matvec", path, "--backend", backend, "--json"], capture_output=True, text=True,
                          stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        return f"{row['file']}: spmv matvec: exit {done.returncode}: {done.stderr.strip()}"
    result = json.loads(done.stdout)
    matrix, verify = result["matrix"], result["verify"]
    wrong = wrong_sizes(row, matrix["rows"], matrix["cols"], matrix["nnz"])
    if result["result"]["backend"] != backend:
        wrong = f"ran on {result['result']['backend']}"
    if verify["reference"] == backend:
        wrong = "checked against itself"
    if not verify["worst_error_over_bound"] <= 1:
        wrong = f"{verify['worst_error_over_bound']} of the bound in row {verify['worst_row']}"
    return f"{row['file']}: spmv matvec: {wrong}" if wrong else None


def main():
    products, program, folder, backend = sys.argv[1:]
    rows = rows_of(folder)
    if rows is None:
        return SKIPPED
    # a hermitian pattern is refused: the file does not say which entries are conjugates
    rows = [row for row in rows if (row["field"], row["symmetry"]) != ("pattern", "hermitian")]
    if backend != "cuda" and not os.environ.get("SPMV_TEST_ALL"):
        rows = rows[("ref", "omp").index(backend)::3]
    with tempfile.TemporaryDirectory() as scratch:
        paths = unpacked(rows, folder, scratch)
        results = all_methods(products, backend, paths)
        if results is None:
            print(f"skipped: backend {backend} is not available")
            return SKIPPED
        passed, failures = results
        # starting a process takes longer than a product, so only a tenth of the files, others for
        # each backend
        alone = list(paths.items())[("ref", "omp", "cuda").index(backend)::10]
        failures += [wrong for wrong in (through_the_program(program, backend, *item) for item in alone) if wrong]
    for line in failures:
        print(line)
    worst = max(passed, default=(0, "none"))
    print(f"{len(paths)} files, {len(passed)} products passed, {len(failures)} failures; {len(alone)} files through the program; "
          f"the largest error is {worst[0]:.3g} of its bound ({worst[1]})")
    return 1 if failures or not passed else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Compares the reader bit by bit with the original mmio and with SciPy, on a folder of SuiteSparse
files and on generated files.

usage: readers.py MMIO_COMPARE SPMV FOLDER
MMIO_COMPARE is tests/matrices/mmio_compare.c, SPMV the program. FOLDER holds NAME.mtx.xz files and
catalog.csv (columns file, format, field, symmetry, duplicates). Without SciPy that comparison is
left out with a note. Exit code 77: the folder is missing.

SPDX-License-Identifier: BSD-3-Clause
"""
import os
import random
import struct
import subprocess
import sys
import tempfile

from matrices import SKIPPED, rows_of, unpacked

try:
    import numpy
    import scipy.io
    import scipy.sparse
except ImportError:
    scipy = None

VALUES = {3: "<f4", 4: "<f8", 8: "<c8", 5: "<c16"}  # types of the values in the binary format
COMPLEX = ("general", "symmetric", "skew-symmetric", "hermitian")
SPECS = ("uniform:3000,2000,7.5", "powerlaw:4000,6.5,2.1,900", "fem:300,3,11.5", "banded:2000,3", "empty:5000,0.9", "longrows:5,60000,9000")


def run(*command):
    return subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)


def complex_text(form, symmetry, seed):
    """A square complex matrix with full mantissas. An array has all cells of the stored half or of
    the whole matrix, a coordinate file a third of them."""
    rng, n = random.Random(seed), 40
    cells = [(i, j) for j in range(n) for i in range(n) if symmetry == "general" or i > j or (i == j and symmetry != "skew-symmetric")]
    cells = cells if form == "array" else rng.sample(cells, len(cells) // 3)
    lines = [f"%%MatrixMarket matrix {form} complex {symmetry}", f"{n} {n}" + (f" {len(cells)}" if form == "coordinate" else "")]
    for i, j in cells:
        value = f"{rng.uniform(-1, 1) * 10 ** rng.randint(-20, 20)!r} {0.0 if i == j and symmetry == 'hermitian' else rng.gauss(0, 1)!r}"
        lines.append(value if form == "array" else f"{i + 1} {j + 1} {value}")
    return "\n".join(lines) + "\n"


def read_binary_form(path):
    """(rows, cols, row offsets, columns, values or None for a pattern) of a binary form, by
    docs/binary-form.md."""
    data = open(path, "rb").read()
    kind, _ = struct.unpack_from("<II", data, 16)
    rows, cols, nnz, at_rows, at_cols, at_vals = struct.unpack_from("<6Q", data, 24)
    array = lambda kind, n, at: numpy.frombuffer(data, kind, n, at)
    return rows, cols, array("<i8", rows + 1, at_rows), array("<i4", nnz, at_cols), array(VALUES[kind], nnz, at_vals) if kind else None


def differs_from_scipy(path, binary, pattern):
    """The difference from SciPy's matrix, or None."""
    rows, cols, row_ptr, columns, values = read_binary_form(binary)
    theirs = scipy.io.mmread(path)
    theirs = scipy.sparse.csr_matrix(theirs) if isinstance(theirs, numpy.ndarray) else theirs.tocsr()
    theirs.sort_indices()
    if theirs.shape != (rows, cols) or not numpy.array_equal(theirs.indptr, row_ptr) or not numpy.array_equal(theirs.indices, columns):
        return "the pattern differs from SciPy's"
    if pattern:
        return None if values is None else "a pattern has values"
    if not numpy.array_equal(theirs.data.astype(values.dtype).view("<u8"), values.view("<u8")):
        return "bits of values differ from SciPy's"
    return None


def main():
    compare, program, folder = sys.argv[1:]
    rows = rows_of(folder)
    if rows is None:
        return SKIPPED
    failures, compared = [], 0
    with tempfile.TemporaryDirectory() as scratch:
        paths = unpacked(rows, folder, scratch)
        for number, spec in enumerate(SPECS):
            path = os.path.join(scratch, f"generated{number}.mtx")
            done = run(program, "gen", spec, "-o", path)
            failures += [f"{spec}: {done.stderr}"] if done.returncode else []
            paths[path] = {"file": spec, "field": "real", "duplicates": "0"}
        for number, (form, symmetry) in enumerate((f, s) for f in ("coordinate", "array") for s in COMPLEX):
            path = os.path.join(scratch, f"complex{number}.mtx")
            with open(path, "w") as text:
                text.write(complex_text(form, symmetry, seed=number))
            paths[path] = {"file": f"complex {form} {symmetry}", "field": "complex", "duplicates": "0"}
        done = run(compare, *paths)
        lines = done.stdout.splitlines()
        failures += [f"{paths[line.split()[0]]['file']}: mmio: {line.split(maxsplit=1)[1]}" for line in lines if not line.endswith(" same")]
        if len(lines) != len(paths):
            failures.append(f"{len(lines)} answers for {len(paths)} files: {done.stderr}")
        # SciPy adds duplicate entries in another order
        for path, row in paths.items() if scipy else ():
            if row["duplicates"] != "0":
                continue
            binary = path.replace(".mtx", ".spmv")
            done = run(program, "convert", path, binary)
            wrong = done.stderr if done.returncode else differs_from_scipy(path, binary, row["field"] == "pattern")
            failures += [f"{row['file']}: {wrong}"] if wrong else []
            compared += 1
            if os.path.exists(binary):
                os.unlink(binary)
    for line in failures:
        print(line)
    print(f"{len(paths)} files compared with mmio, {compared} with {'SciPy ' + scipy.__version__ if scipy else 'SciPy (not installed)'}; "
          f"{len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

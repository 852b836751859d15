# SPDX-License-Identifier: BSD-3-Clause
"""Shared by the tests. Those for a GPU are skipped where there is none."""

import gc
import os
import sys

os.environ.setdefault("OMP_WAIT_POLICY", "passive")
os.environ.setdefault("JAX_PLATFORMS", "cpu")

import numpy as np
import pytest

DTYPES = ["float64", "float32", "complex128", "complex64"]


def bound(A, x, dtype):
    """A bound of the error of each row of A x, for any order of summation."""
    unit = np.finfo(dtype).eps
    lengths = np.diff(A.indptr) + 4
    return 8 * (lengths if x.ndim == 1 else lengths[:, None]) * unit * (abs(A) @ abs(x)) + np.finfo(dtype).tiny


def random_csr(rows, cols, dtype="float64", seed=1, density=0.05):
    sp = pytest.importorskip("scipy.sparse")
    rng = np.random.default_rng(seed)
    places = rng.choice(rows * cols, int(density * rows * cols), replace=False) if rows * cols else []
    where = [i.astype(np.int32) for i in np.unravel_index(np.asarray(places, int), (rows, max(cols, 1)))]
    A = sp.csr_array(sp.coo_array((rng.random(len(places)), tuple(where)), shape=(rows, cols))).astype(dtype)
    if np.dtype(dtype).kind == "c":
        A.data += (1j * rng.standard_normal(A.nnz)).astype(dtype)
    return A


def vector(n, dtype="float64", seed=2, columns=None):
    rng = np.random.default_rng(seed)
    shape = n if columns is None else (n, columns)
    x = rng.standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        x = x + 1j * rng.standard_normal(shape)
    return x.astype(dtype)


def outs_that_cannot_be_written(n):
    """Arrays of n float64 that a result cannot be written to in place, with the error and its words."""
    read_only = np.zeros(n)
    read_only.flags.writeable = False
    return [
        (np.zeros(n, ">f8"), TypeError, "byte order"),
        (np.frombuffer(bytearray(8 * n + 8), np.uint8)[1 : 8 * n + 1].view("f8"), ValueError, "aligned"),
        (np.zeros(2 * n)[::2], ValueError, "contiguous"),
        (np.zeros(n)[::-1], ValueError, "contiguous"),
        (read_only, ValueError, "read-only"),
        (np.zeros(n, "f4"), TypeError, "float32"),
        (np.zeros(n + 1), ValueError, "shape"),
        ([0.0] * n, TypeError, "list"),
    ]


def calls_of_python(iterations, solve):
    """The number of Python's calls during a solve that does not reach its tolerance."""
    solve(iterations)  # imports modules, fills caches
    counted = [0]

    def count(frame, event, argument):
        counted[0] += event in ("call", "c_call")

    gc.collect()
    gc.disable()  # packages have callbacks of the collector
    sys.setprofile(count)
    try:
        info = solve(iterations)[1]
    finally:
        sys.setprofile(None)
        gc.enable()
    assert info == iterations
    return counted[0]

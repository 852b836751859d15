# SPDX-License-Identifier: BSD-3-Clause
"""Sampled products and the softmax of rows, beside NumPy."""

import copy

import numpy as np
import pytest
import spmv

sp = pytest.importorskip("scipy.sparse")


def problem(dtype, k=19):
    rng = np.random.default_rng(3)
    P = sp.random_array((60, 50), density=0.2, rng=rng, format="csr", dtype=dtype)
    return P, rng.standard_normal((60, k)).astype(dtype), rng.standard_normal((50, k)).astype(dtype)


def rows_of(P):
    return np.repeat(np.arange(P.shape[0]), np.diff(P.indptr))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_products(dtype):
    P, A, B = problem(dtype)
    plain = (A[rows_of(P)] * B[P.indices]).sum(axis=1)
    limit = dict(rtol=0, atol=100 * np.finfo(dtype).eps)
    s = spmv.SDDMM(P, 19)
    y = s.multiply(A, B)
    assert y.dtype == dtype and "19 vectors" in repr(s)
    np.testing.assert_allclose(y, P.data * plain, **limit)
    np.testing.assert_array_equal(spmv.SDDMM(P, 19, device="ref").multiply(A, B).shape, (P.nnz,))
    out = np.empty(P.nnz, dtype)
    assert s.multiply(np.asfortranarray(A), B, out=out) is out
    np.testing.assert_array_equal(out, y)
    np.testing.assert_allclose(spmv.SDDMM(P, 19, values=False).multiply(A, B), plain, **limit)


def test_softmax_and_attention():
    P, A, B = problem(np.float64)
    s = spmv.SDDMM(P, 19, values=False)
    x = s.multiply(A, B)
    y = s.softmax(x)
    sums = np.bincount(rows_of(P), y, 60)
    np.testing.assert_allclose(sums[np.diff(P.indptr) > 0], 1, rtol=1e-14)
    largest = np.maximum.reduceat(x, P.indptr[:-1][np.diff(P.indptr) > 0])
    expected = np.exp(x - np.repeat(largest, np.diff(P.indptr)[np.diff(P.indptr) > 0]))
    np.testing.assert_allclose(y, expected / np.bincount(rows_of(P), expected, 60)[rows_of(P)], rtol=1e-13)
    kept = x.copy()
    assert s.softmax(x, out=x) is x
    np.testing.assert_array_equal(x, y)
    weights = sp.csr_array((y, P.indices, P.indptr), shape=P.shape)
    np.testing.assert_allclose(spmv.Plan(weights) @ B, weights @ B, rtol=1e-12)
    assert not np.array_equal(kept, x)


def test_complaints():
    P, A, B = problem(np.float64)
    s = spmv.SDDMM(P, 19)
    with pytest.raises(ValueError, match="A has the shape"):
        s.multiply(A[:, :3].copy(), B)
    with pytest.raises(ValueError, match="entries"):
        s.softmax(np.ones(3))
    with pytest.raises(ValueError, match="vectors"):
        spmv.SDDMM(P, 0)
    with pytest.raises(TypeError, match="float64, float32, bfloat16 and float16"):
        spmv.SDDMM(P.astype(np.complex128), 2)
    with pytest.raises(TypeError, match="convert"):
        spmv.SDDMM(P, 2, dtype="float32")
    with pytest.raises(TypeError, match="pickled"):
        copy.copy(s)

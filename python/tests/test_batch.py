# SPDX-License-Identifier: BSD-3-Clause
"""Batches of systems with one pattern, beside SciPy."""

import copy

import numpy as np
import pytest
import spmv

sp = pytest.importorskip("scipy.sparse")
sla = pytest.importorskip("scipy.sparse.linalg")

COUNT = 6


def problem(dtype=np.float64, n=50):
    """A pattern, values of COUNT diagonally dominant matrices, right-hand sides."""
    rng = np.random.default_rng(5)
    A = (sp.random_array((n, n), density=0.1, rng=rng, format="csr") + sp.eye_array(n)).tocsr().astype(dtype)
    values = rng.uniform(-1, 1, (COUNT, A.nnz)).astype(dtype)
    if np.issubdtype(dtype, np.complexfloating):
        values += 1j * rng.uniform(-1, 1, values.shape)
    rows = np.repeat(np.arange(n), np.diff(A.indptr))
    values[:, rows == A.indices] = 20
    B = rng.standard_normal((COUNT, n)).astype(dtype)
    return A, values, B


def matrices(A, values):
    return [sp.csr_array((v, A.indices, A.indptr), shape=A.shape) for v in values]


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.complex128, np.complex64])
@pytest.mark.parametrize("solver", ["auto", "gmres"])
def test_solutions(dtype, solver):
    A, values, B = problem(dtype)
    result = spmv.batch_solve(A, values, B, solver=solver)
    eps = np.finfo(dtype).eps
    assert result.x.dtype == dtype and result.converged.all() and result.message == ""
    assert (result.true_residual <= result.tolerance).all() and (result.iterations > 1).all()
    for k, matrix in enumerate(matrices(A, values)):
        exact = sla.spsolve(matrix.tocsc().astype(np.complex128), B[k])
        np.testing.assert_allclose(result.x[k], exact, atol=1e-3 if eps > 1e-10 else 1e-7)
    np.testing.assert_allclose(result.norm_b, np.linalg.norm(B.astype(np.complex128), axis=1), rtol=1e-14)


def test_products():
    A, values, B = problem()
    batch = spmv.Batch(A)
    Y = batch.multiply(values, B)
    np.testing.assert_allclose(Y, [m @ x for m, x in zip(matrices(A, values), B)], rtol=1e-12)
    np.testing.assert_array_equal(spmv.batch_multiply(A, values, B), Y)
    out = np.empty_like(B)
    assert batch.multiply(np.asfortranarray(values), B[::1], out=out) is out
    np.testing.assert_array_equal(out, Y)
    assert batch.dtype == np.float64 and batch.shape == A.shape and "50 x 50" in repr(batch)


def test_bits_do_not_depend_on_the_batch_or_the_device():
    A, values, B = problem()
    batch = spmv.Batch(A, solver="bicgstab")
    all_of_them = batch.solve(values, B)
    for k in range(COUNT):
        np.testing.assert_array_equal(batch.solve(values[k : k + 1], B[k : k + 1]).x[0], all_of_them.x[k])
    np.testing.assert_array_equal(spmv.Batch(A, device="ref").solve(values, B).x, all_of_them.x)


def test_each_system_has_its_status():
    A, values, B = problem()
    values[2] = 0
    B[3] = 0
    values[4, 7] = np.nan
    result = spmv.batch_solve(A, values, B)
    expected = ["SPMV_OK"] * 2 + ["SPMV_ERROR_BREAKDOWN", "SPMV_OK", "SPMV_ERROR_NOT_FINITE", "SPMV_OK"]
    assert list(result.status) == expected and list(result.converged) == [s == "SPMV_OK" for s in expected]
    assert "2 of 6 systems failed; first system 2" in result.message
    assert result.iterations[3] == 0 and not result.x[3].any() and result.true_residual[2] == result.norm_b[2]
    alone = spmv.batch_solve(A, values[5:], B[5:])
    np.testing.assert_array_equal(alone.x[0], result.x[5])


def test_start_and_out():
    A, values, B = problem()
    batch = spmv.Batch(A, rtol=1e-12)
    x = batch.solve(values, B).x
    out = np.empty_like(B)
    again = batch.solve(values, B, x0=x, out=out)
    assert again.x is out and not again.iterations.any()
    np.testing.assert_array_equal(out, x)
    limited = spmv.Batch(A, maxiter=1, rtol=1e-14).solve(values, B)
    assert (limited.status == "SPMV_ERROR_ITERATIONS").all() and (limited.iterations == 1).all()
    none = batch.solve(values[:0], B[:0])
    assert none.x.shape == (0, 50) and none.status.shape == (0,)
    whole_numbers = spmv.batch_solve(spmv.generate("diagonal:3"), [[1, 2, 4]], [[1, 2, 4]])
    np.testing.assert_allclose(whole_numbers.x, [[1, 1, 1]])


def test_complaints():
    A, values, B = problem()
    batch = spmv.Batch(A)
    with pytest.raises(TypeError, match="convert it to CSR"):
        spmv.Batch(A.tocsc())
    with pytest.raises(ValueError, match="values has the shape"):
        batch.solve(values[:, 1:], B)
    with pytest.raises(ValueError, match="B has the shape"):
        batch.solve(values, B[0])
    with pytest.raises(ValueError, match="values has 6 rows, B has 5"):
        batch.solve(values, B[1:])
    with pytest.raises(ValueError, match="x0 has the shape"):
        batch.solve(values, B, x0=B[1:])
    with pytest.raises(TypeError, match="x0 has the type complex128"):
        batch.solve(values, B, x0=1j * B)
    with pytest.raises(ValueError, match="overlaps"):
        batch.solve(values, B, out=B)
    with pytest.raises(TypeError, match="complex128"):
        batch.solve(values * 1j, B)
    with pytest.raises(ValueError, match="auto, cg, bicgstab, gmres"):
        spmv.Batch(A, solver="minres")
    with pytest.raises(ValueError, match="restart"):
        spmv.Batch(A, restart=201)
    with pytest.raises(TypeError, match="batches are in"):
        spmv.Batch(A, dtype=np.int64)
    with pytest.raises(TypeError, match="pickled"):
        copy.copy(batch)
    wide = spmv.Batch(sp.csr_array(np.ones((2, 3))))
    assert wide.multiply(np.ones((1, 6)), np.ones((1, 3))).tolist() == [[3.0, 3.0]]
    with pytest.raises(ValueError, match="2 rows and 3 columns"):
        wide.solve(np.ones((1, 6)), np.ones((1, 2)))

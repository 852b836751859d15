# SPDX-License-Identifier: BSD-3-Clause
"""Operators as A and M, and complex symmetric matrices."""

import numpy as np
import pytest

import spmv

scipy = pytest.importorskip("scipy")
sparse = pytest.importorskip("scipy.sparse")
LinearOperator = pytest.importorskip("scipy.sparse.linalg").LinearOperator

SIDE = 12
N = SIDE * SIDE


def laplacian(dtype=float):
    t = np.diag(np.full(SIDE, 2.0)) - np.diag(np.ones(SIDE - 1), 1) - np.diag(np.ones(SIDE - 1), -1)
    return sparse.csr_array(np.kron(t, np.eye(SIDE)) + np.kron(np.eye(SIDE), t), dtype=dtype)


def helmholtz():
    return sparse.csr_array(laplacian(complex).toarray() - np.diag(0.3 + 0.2j * (np.arange(N) % 3 == 0)))


def convection():
    flow = np.diag(np.full(N - 1, 0.5), -1) - np.diag(np.full(N - 1, 0.5), 1)
    return sparse.csr_array(laplacian().toarray() + flow)


def operator_of(A):
    return LinearOperator(A.shape, matvec=lambda x: A @ x, dtype=A.dtype)


class Own:
    """matvec, shape and dtype: no LinearOperator."""

    def __init__(self, A):
        self.A, self.shape, self.dtype = A, A.shape, A.dtype

    def matvec(self, x):
        return self.A @ x


def residual(A, x, b):
    return np.linalg.norm(b - A @ x) / np.linalg.norm(b)


@pytest.mark.parametrize("make", [operator_of, Own])
@pytest.mark.parametrize(
    "matrix, solver, found",
    [(laplacian, "auto", "cg"), (convection, "auto", "gmres"), (helmholtz, "auto", "cocg"), (laplacian, "minres", "minres"),
     (convection, "bicgstab", "bicgstab"), (helmholtz, "gmres", "gmres")],
)  # fmt: skip
def test_solvers(make, matrix, solver, found):
    A = matrix()
    b = A @ np.ones(N)
    result = spmv.solve(make(A), b, solver=solver, rtol=1e-9)
    assert result.converged and result.solver == found and result.preconditioner == "none"
    assert residual(A, result.x, b) <= 1.001e-9
    assert abs(residual(A, result.x, b) - result.true_residual / result.norm_b) <= 1e-13
    assert result.backward_error < 0


def test_preconditioners():
    A = laplacian()
    b = A @ np.ones(N)
    plain = spmv.solve(operator_of(A), b, rtol=1e-10)
    inverse = np.linalg.inv(A.toarray())
    for M in (operator_of(inverse), inverse, lambda r: inverse @ r):
        result = spmv.Solver(operator_of(A), M, "cg", rtol=1e-10).solve(b)
        assert result.converged and result.iterations <= 3 < plain.iterations
        x, info = spmv.cg(operator_of(A), b, rtol=1e-10, M=M)
        assert info == 0 and residual(A, x, b) <= 1.001e-10
    with pytest.raises((ValueError, NotImplementedError), match="needs the entries"):
        spmv.solve(operator_of(A), b, precond="jacobi")
    with pytest.raises((ValueError, NotImplementedError), match="needs the entries"):
        spmv.solve(operator_of(A), b, solver="direct")
    with pytest.raises(NotImplementedError, match="null needs the entries"):
        spmv.Solver(operator_of(A), null="ones")
    with pytest.raises(TypeError, match="unexpected"):
        spmv.Solver(operator_of(A), nonsense=1)


def test_several_types_and_sides():
    A = laplacian()
    B = A @ np.stack([np.ones(N), np.arange(N)], axis=1)
    solver = spmv.Solver(operator_of(A), rtol=1e-9)
    result = solver.solve(B)
    assert result.converged and len(result.columns) == 2 and residual(A, result.x, B) <= 2e-9
    b = A @ (np.ones(N) + 1j * np.arange(N))
    result = solver.solve(b)
    assert result.converged and result.x.dtype == complex and residual(A, result.x, b) <= 1.001e-9
    narrow = spmv.solve(operator_of(A.astype(np.float32)), (A @ np.ones(N)).astype(np.float32), rtol=1e-4)
    assert narrow.converged and narrow.x.dtype == np.float32
    again = solver.solve(A @ np.ones(N), x0=np.ones(N))
    assert again.iterations == 0
    assert abs(solver @ (A @ np.ones(N)) - 1).max() < 1e-6


@pytest.mark.parametrize("solver", ["auto", "cg", "gmres", "bicgstab", "minres"])
@pytest.mark.parametrize("at", [1, 2, 4, 7])
def test_exceptions(solver, at):
    A = laplacian()
    calls = []

    def product(x):
        calls.append(1)
        if len(calls) == at:
            raise KeyError("of the product")
        return A @ x

    with pytest.raises(KeyError, match="of the product"):
        spmv.solve(LinearOperator(A.shape, matvec=product, dtype=float), np.ones(N), solver=solver)
    assert len(calls) == at  # none after it
    del calls[:]
    calls += [1] * at
    result = spmv.solve(LinearOperator(A.shape, matvec=product, dtype=float), np.ones(N), solver=solver)
    assert result.converged  # the context is as before


def test_wrong_products():
    b = np.ones(N)
    nan = LinearOperator((N, N), matvec=lambda x: x * np.nan, dtype=float)
    result = spmv.solve(nan, b, solver="gmres")
    assert not result.converged and result.status == "SPMV_ERROR_NOT_FINITE"
    with pytest.raises(ValueError, match="result of A.matvec has the shape"):
        short = Own(laplacian())
        short.matvec = lambda x: x[:-1]
        spmv.solve(short, b, solver="gmres")
    with pytest.raises(TypeError):
        wide = Own(laplacian())
        wide.matvec = lambda x: x * 1j
        spmv.solve(wide, b, solver="gmres")
    with pytest.raises(ValueError, match="square"):
        spmv.solve(LinearOperator((N, N + 1), matvec=lambda x: x[:-1], dtype=float), b)
    with pytest.raises(ValueError, match="b has the shape"):
        spmv.solve(operator_of(laplacian()), b[:-1])
    with pytest.raises(ValueError, match="not symmetric"):
        spmv.solve(operator_of(convection()), b, solver="cg")
    assert spmv.solve(operator_of(laplacian()), b, solver="cg", check_symmetry=False).converged


def test_callbacks():
    A = laplacian()
    b, seen, norms = A @ np.ones(N), [], []
    result = spmv.Solver(operator_of(A)).solve(b, callback=seen.append, on_residual=lambda k, r: norms.append(r))
    assert len(seen) == result.iterations and len(norms) == result.iterations + 1
    assert abs(np.linalg.norm(b - A @ seen[3]) - norms[4]) <= 1e-9 * norms[0]
    result = spmv.Solver(operator_of(A)).solve(b, on_residual=lambda k, r: k == 3)
    assert result.status == "SPMV_CANCELLED" and result.iterations == 3


def test_same_as_with_entries():
    A = helmholtz()
    b = A @ np.ones(N)
    known = spmv.solve(A, b, solver="cocg", precond="none", device="cpu")
    result = spmv.solve(operator_of(A), b, solver="cocg", device="cpu")
    assert abs(result.iterations - known.iterations) <= 1 and abs(result.x - known.x).max() <= 1e-6
    assert result.true_residual == pytest.approx(known.true_residual, rel=0.5)


@pytest.mark.parametrize("precond", ["auto", "none", "jacobi", "fsai", "amg"])
def test_complex_symmetric(precond):
    A = sparse.csr_array(laplacian(complex).toarray() + 1j * np.eye(N))
    b = A @ np.ones(N)
    result = spmv.solve(A, b, precond=precond, solver="cocg" if precond == "auto" else "auto")
    assert result.converged and result.solver == "cocg" and residual(A, result.x, b) <= 1.001e-8


def test_transpose():
    A = helmholtz()  # its own transpose: the conjugate one needs no other solver, nor entries
    b = A @ np.ones(N)
    for trans, B in ("T", A.T), ("H", A.conj().T):
        for matrix in (A, operator_of(A)):
            result = spmv.Solver(matrix, solver="cocg", rtol=1e-9).solve(b, trans=trans)
            assert result.converged and residual(B, result.x, b) <= 1.001e-9
    with pytest.raises(NotImplementedError, match="with the transpose need the entries"):
        spmv.Solver(operator_of(convection())).solve(b.real, trans="T")

# SPDX-License-Identifier: BSD-3-Clause
"""Solvers: SciPy's signature and values, preconditioners, callbacks, failures."""

import copy
import dataclasses
import pickle

import numpy as np
import pytest
import spmv
from conftest import vector

sp = pytest.importorskip("scipy.sparse")
la = pytest.importorskip("scipy.sparse.linalg")


@pytest.fixture
def system():
    A = spmv.generate("diffusion2d:30,100")
    x = vector(900)
    return A, x, A @ x


def test_a_row_that_is_wrong_is_corrected_or_reported():
    # Dirichlet values by a penalty: only the norm of b - A x is small at first
    n, p = 300, 1e12
    A = sp.diags_array([-np.ones(n - 1), 2 * np.ones(n), -np.ones(n - 1)], offsets=[-1, 0, 1]).tolil()
    b = np.zeros(n)
    A[0, 0] = A[n - 1, n - 1] = p
    b[n - 1] = p
    A = A.tocsr()
    good = spmv.Solver(A, preconditioner="jacobi").solve(b)
    assert good.converged and good.backward_error < 1e-4
    assert abs(good.x - np.arange(n) / (n - 1)).max() < 1e-4
    bad = spmv.Solver(A, preconditioner="jacobi", maxiter=5).solve(b)
    assert not bad.converged and bad.status == "SPMV_ERROR_STAGNATION"
    assert bad.true_residual <= bad.tolerance and bad.backward_error > 1e-4
    assert f"in row {bad.backward_row} (counted from 0)" in bad.message


@pytest.mark.parametrize("M", [None, "jacobi", "ic0", "chebyshev", "block-jacobi", "fsai", "isai", "auto"])
def test_cg(system, M):
    A, x, b = system
    before = b.copy()
    solution, info = spmv.cg(A, b, rtol=1e-12, M=M)
    assert info == 0 and np.linalg.norm(b - A @ solution) <= 1e-12 * np.linalg.norm(b)
    assert abs(solution - x).max() < 1e-6
    np.testing.assert_array_equal(b, before)


def test_cg_of_a_plan_and_of_other_formats(system):
    A, x, b = system
    for form in (spmv.Plan(A), A.tocsc(), sp.coo_matrix(A)):
        solution, info = spmv.cg(form, b, rtol=1e-10)
        assert info == 0 and abs(solution - x).max() < 1e-5
    solution, info = spmv.cg(A, b[:, None], rtol=1e-10)
    assert solution.shape == (900, 1) and info == 0
    solution, info = spmv.cg(A.astype(np.float32), b.astype(np.float32), rtol=1e-4)
    assert solution.dtype == np.float32 and info == 0
    solution, info = spmv.cg(A.astype(np.float32), b, rtol=1e-8)
    assert solution.dtype == np.float64
    integers = sp.csr_array(spmv.generate("poisson2d:8").astype(int))
    solution, info = spmv.cg(integers, np.arange(64), rtol=1e-10)
    assert info == 0 and np.linalg.norm(integers @ solution - np.arange(64)) < 1e-6


def test_start(system):
    A, x, b = system
    x0 = x + 1e-3
    kept = x0.copy()
    iterations = []
    solution, info = spmv.cg(A, b, x0, rtol=1e-10, callback=lambda xk: iterations.append(1))
    np.testing.assert_array_equal(x0, kept)
    assert info == 0 and abs(solution - x).max() < 1e-5
    solution, info = spmv.cg(A, b, x, callback=lambda xk: pytest.fail("no iteration is needed"))
    assert info == 0
    np.testing.assert_array_equal(solution, x)
    with pytest.raises(ValueError, match="x0"):
        spmv.cg(A, b, x0[:-1])


def test_callback_gets_each_iterate(system):
    A, x, b = system
    ours, theirs = [], []
    spmv.cg(A, b, rtol=1e-10, callback=lambda xk: ours.append(xk))
    la.cg(A, b, rtol=1e-10, callback=lambda xk: theirs.append(xk.copy()))
    assert abs(len(ours) - len(theirs)) <= 2 and len(ours) > 10
    for a, c in zip(ours[:10], theirs[:10]):
        np.testing.assert_allclose(a, c, rtol=1e-9)
    with_plan = []
    spmv.cg(spmv.Plan(A), b, rtol=1e-10, callback=lambda xk: with_plan.append(xk))
    np.testing.assert_array_equal(np.array(with_plan), np.array(ours))


def test_callback_that_raises_or_stops(system):
    A, x, b = system

    def fails(xk):
        raise KeyError("from the callback")

    with pytest.raises(KeyError, match="from the callback"):
        spmv.cg(A, b, callback=fails)
    solver = spmv.Solver(A, preconditioner="none")
    result = solver.solve(b, callback=lambda xk: True)
    assert not result.converged and result.status == "SPMV_CANCELLED" and result.iterations == 1
    seen = []
    result = solver.solve(b, on_residual=lambda k, r: seen.append((k, r)))
    assert result.converged and [k for k, _ in seen] == list(range(result.iterations + 1))
    assert seen[0][1] == pytest.approx(np.linalg.norm(b))
    result = solver.solve(b, on_residual=lambda k, r: k == 3)
    assert result.status == "SPMV_CANCELLED"
    solution, info = spmv.cg(A, b, rtol=1e-10)  # the solver's context is as before
    assert info == 0


def test_callback_may_multiply(system):
    A, x, b = system
    plan, norms = spmv.Plan(A), []
    spmv.cg(plan, b, rtol=1e-10, callback=lambda xk: norms.append(np.linalg.norm(b - plan @ xk)))
    assert norms[-1] <= 1e-10 * np.linalg.norm(b)
    assert norms[-1] < norms[0]


@pytest.mark.parametrize("kind", ["operator", "matrix", "plan", "dense", "function"])
def test_own_preconditioners(system, kind):
    A, x, b = system
    inverse = sp.diags_array(1 / A.diagonal()).tocsr()
    M = {
        "operator": la.LinearOperator((900, 900), matvec=lambda r: r / A.diagonal()),
        "matrix": inverse,
        "plan": spmv.Plan(inverse),
        "dense": inverse.toarray(),
        "function": lambda r: r / A.diagonal(),
    }[kind]
    solution, info = spmv.cg(A, b, rtol=1e-10, M=M)
    assert info == 0 and abs(solution - x).max() < 1e-5
    ours, theirs = [], []
    spmv.cg(A, b, rtol=1e-10, M=M, callback=lambda xk: ours.append(1))
    spmv.cg(A, b, rtol=1e-10, M="jacobi", callback=lambda xk: theirs.append(1))
    assert abs(len(ours) - len(theirs)) <= 2


def test_preconditioners_that_fail(system):
    A, x, b = system

    def fails(r):
        raise LookupError("in M")

    with pytest.raises(LookupError, match="in M"):
        spmv.cg(A, b, M=la.LinearOperator((900, 900), matvec=fails))
    with pytest.raises(ValueError, match="shape"):
        spmv.cg(A, b, M=sp.eye_array(899).tocsr())
    with pytest.raises(ValueError, match="shape"):
        spmv.cg(A, b, M=lambda r: r[:-1])
    with pytest.raises(TypeError, match="not a preconditioner"):
        spmv.cg(A, b, M=3)
    with pytest.raises(TypeError, match="by name"):
        spmv.cg(spmv.Plan(A), b, M="jacobi")
    with pytest.raises(ValueError, match="jacobi"):
        spmv.cg(A, b, M="ilu(0)")
    _, info = spmv.cg(A, b, M=lambda r: -r)
    assert info < 0


@pytest.mark.parametrize("method", ["auto", "gmres", "bicgstab"])
@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
def test_systems_that_are_not_symmetric(method, dtype):
    A = spmv.generate("convdiff2d:20,10").astype(dtype)
    x = vector(400).astype(dtype)
    if dtype is np.complex128:
        A = A + 0.5j * sp.eye_array(400, format="csr")
        x = x + 1j * x[::-1]
    b = A @ x
    result = spmv.solve(A, b, solver=method, rtol=1e-12)
    assert result.converged and result.solver == ("gmres" if method == "auto" else method)
    assert result.x.dtype == dtype and abs(result.x - x).max() < 1e-8
    assert result.true_residual <= result.tolerance


def test_restart_and_limits():
    A, b = spmv.generate("convdiff2d:30,10"), np.ones(900)
    counts = [spmv.solve(A, b, solver="gmres", preconditioner="none", restart=m).iterations for m in (5, 100)]
    assert counts[0] > counts[1]
    with pytest.raises(ValueError, match="restart"):
        spmv.solve(A, b, solver="gmres", restart=1000)
    with pytest.raises(ValueError, match="symmetric"):
        spmv.solve(A, b, solver="minres")


def test_indefinite():
    A = (spmv.generate("poisson2d:20") - 2.5 * sp.eye_array(400)).tocsr()
    x = vector(400)
    result = spmv.solve(A, A @ x, rtol=1e-12)
    assert result.converged and result.solver in ("minres", "gmres", "direct") and abs(result.x - x).max() < 1e-6


def test_failures(system):
    A, x, b = system
    _, info = spmv.cg(A, b, rtol=1e-10, maxiter=3)
    assert info == 3
    with pytest.raises(ValueError, match="not symmetric|symmetric"):
        spmv.cg(spmv.generate("convdiff2d:20,10"), np.ones(400))
    indefinite = (spmv.generate("poisson2d:20") - 2.5 * sp.eye_array(400)).tocsr()
    _, info = spmv.cg(indefinite, vector(400))
    assert info < 0
    with pytest.raises(ValueError, match="not square|rows"):
        spmv.cg(A[:-1], b)
    with pytest.raises(ValueError, match="shape"):
        spmv.cg(A, b[:-1])
    z, info = spmv.cg(A.astype(complex), 1j * b, rtol=1e-12)
    assert info == 0 and abs(z - 1j * x).max() < 1e-6
    zero, info = spmv.cg(A, np.zeros(900))
    assert info == 0 and not zero.any()
    with pytest.raises(ValueError, match="rtol is -1"):
        spmv.cg(A, b, rtol=-1)


def test_solver(system):
    A, x, b = system
    solver = spmv.Solver(A, rtol=1e-10)
    result = solver.solve(b)
    assert result.converged and result.status == "SPMV_OK" and result.message == ""
    assert result.true_residual == pytest.approx(np.linalg.norm(b - A @ result.x), rel=1e-2)
    assert result.true_residual <= result.tolerance
    assert result.preconditioner and result.why_preconditioner and result.iterations > 0
    again = solver.solve(2 * b, x0=2 * result.x)
    assert again.converged and again.iterations <= 1
    solver.update_values(A.data * 4)
    np.testing.assert_allclose(solver.solve(b).x, result.x / 4, rtol=1e-6, atol=1e-8)
    limited = spmv.solve(A, b, rtol=1e-10, maxiter=2, preconditioner="none")
    assert not limited.converged and limited.status == "SPMV_ERROR_ITERATIONS" and "tolerance" in limited.message
    with pytest.raises(ValueError, match="option"):
        spmv.Solver(A, options={"blocks": 3})
    assert spmv.solve(A, b, preconditioner="block-jacobi", options={"block": 4}).converged
    modes = spmv.generate("rigid2d:20").toarray()
    elastic = spmv.generate("elasticity2d:20")
    rhs = elastic @ vector(800)
    solver = spmv.Solver(elastic, options={"near_null": np.asfortranarray(modes), "block": 2})
    first = solver.solve(rhs)
    assert first.converged and first.preconditioner == "amg" and first.iterations <= 14
    solver.update_values(elastic.data * 2)
    assert solver.solve(rhs).iterations == first.iterations
    assert spmv.solve(elastic, rhs, options={"near_null": modes[:, 0]}).preconditioner == "amg"
    with pytest.raises(ValueError, match="near_null has the shape"):
        spmv.Solver(elastic, options={"near_null": modes[1:]})
    mixed = spmv.solve(A, b, inner=True, preconditioner="jacobi", rtol=1e-12)
    assert mixed.converged and mixed.true_residual <= mixed.tolerance


def test_null():
    """Null vectors of a path, of two unknowns on it, and of a closed grid with convection."""
    n = 300
    path = sp.diags([-np.ones(n - 1), np.r_[1, 2 * np.ones(n - 2), 1], -np.ones(n - 1)], [-1, 0, 1]).tocsr()
    two = sp.kron(path, [[2, 0.5], [0.5, 2]]).tocsr()
    around = sp.diags([-2.5, 3, -0.5, -2.5, -0.5], [-1, 0, 1, n - 1, 1 - n], shape=(n, n)).tocsr()
    constants = np.kron(np.ones((n, 1)), np.eye(2))
    for A, null, vectors in (
        (path, None, 1), (path, "ones", 1), (path, np.ones(n), 1), (path, np.c_[np.ones(n), 7 * np.ones(n)], 1),
        (two, 2, 2), (two, constants @ [[1, 3], [2, 1]], 2), (two, np.asfortranarray(constants), 2), (around, "ones", 1),
    ):  # fmt: skip
        basis = np.ones((n, 1)) if A.shape[0] == n else constants
        basis = basis / np.sqrt(n)
        x = vector(A.shape[0])
        x -= basis @ (basis.T @ x)
        solver = spmv.Solver(A, null=null, rtol=1e-12)
        found = solver.solve(A @ x, x0=np.ones(A.shape[0]))
        assert found.converged and found.null_vectors == vectors and found.null_part < 1e-12
        assert np.abs(found.x - x).max() < 1e-6
        found = solver.solve(A @ x + 0.25 * basis[:, 0])
        assert found.status == "SPMV_ERROR_INCONSISTENT" and abs(found.null_part - 0.25) < 1e-12
        assert np.abs(found.x - x).max() < 1e-6
    hermitian = path.astype(complex)
    assert spmv.Solver(hermitian, null="ones").solve(hermitian @ vector(n)).null_vectors == 1
    for null, words in (
        (np.ones(n - 1), "null has the shape"), (np.arange(n), "vector 1 of 1 is not a null vector"),
        ("constants", "it must be"), (0, "null"), (7, "not a multiple"), (np.zeros(n), "null vector 1 of 1 is 0"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=words):
            spmv.Solver(path, null=null)


def test_fields():
    """A saddle point system: fields found and given, a matrix and a form for the Schur complement, refusals."""
    A, B = spmv.generate("poisson2d:16"), sp.diags([1.0, -1.0], offsets=[0, 1], shape=(255, 256))
    K = sp.bmat([[A, B.T], [B, None]], format="csr")
    b, fields = K @ vector(511), np.repeat([1, 2], [256, 255])
    schur = (B @ B.T / 4).tocsr()
    calls = (
        dict(precond="schur"), dict(fields=fields), dict(fields=fields - 1), dict(fields=fields.astype(np.int8).tolist()),
        dict(schur=schur), dict(schur="simple"), dict(schur="commutator", solver="gmres"), dict(schur="diagonal", fields=fields),
    )  # fmt: skip
    results = [spmv.solve(K, b, **call) for call in calls]
    assert all(r.converged and r.preconditioner == "schur" for r in results)
    assert [r.solver for r in results] == ["minres"] * 6 + ["gmres", "minres"]
    assert all(np.array_equal(results[0].x, r.x) for r in results[1:4])
    own, other = fields.copy(), schur.copy()
    solver = spmv.Solver(K, fields=own, schur=other)
    first = solver.solve(b).iterations
    own[:], other.data[:] = 0, np.nan
    solver.update_values(K.data * 2)
    assert abs(solver.solve(2 * b).iterations - first) <= 4  # the matrix for the Schur complement stays
    assert solver.solve(b.astype(np.float32), trans="T").converged
    for call, error, text in (
        (dict(fields=fields[1:]), ValueError, "one number for each of the 511 rows"),
        (dict(fields=fields * 1.5), TypeError, "integers"),
        (dict(fields=3 * fields), ValueError, r"fields\[0\] is 3"),
        (dict(fields=0 * fields), ValueError, "one field"),
        (dict(schur=A), ValueError, "256 x 256, the second field has 255 rows"),
        (dict(schur="simpel"), ValueError, "simpel"),
        (dict(fields=fields, precond="amg"), ValueError, "for the preconditioner 'schur'"),
    ):
        with pytest.raises(error, match=text):
            spmv.Solver(K, **call)
    with pytest.raises(NotImplementedError, match="every diagonal entry is positive"):
        spmv.Solver(A, "schur")


def test_coordinates():
    """The rigid body modes of coordinates, which need not live as long as the solver."""
    A = spmv.generate("elasticity2d:20")
    b = A @ vector(800)
    y, x = np.mgrid[0:20.0, 0:20.0]
    nodes = np.column_stack([x.ravel(), y.ravel()])
    modes = spmv.generate("rigid2d:20").toarray()
    expected = spmv.solve(A, b, options={"near_null": modes, "block": 2}).iterations
    for given in (nodes, np.asfortranarray(nodes), nodes.astype(np.float32), nodes.astype(int).tolist(), 5 + 1e-3 * nodes):
        result = spmv.solve(A, b, coordinates=given)
        assert result.converged and result.preconditioner == "amg" and abs(result.iterations - expected) <= 1
    own = nodes.copy()
    solver = spmv.Solver(A, "amg", coordinates=own, options={"block": 2, "update_values": True})
    first = solver.solve(b)
    own[:] = np.nan
    solver.update_values(A.data * 2)
    assert solver.solve(b).iterations == first.iterations
    assert solver.solve(np.column_stack([b, 2 * b])).converged
    np.testing.assert_allclose(2 * (A @ (solver.H @ b)), b, atol=1e-6 * np.linalg.norm(b))
    for wrong, error, text in (
        (nodes[1:], ValueError, "399 nodes: the 800 rows"),
        (nodes[:200], ValueError, "nodes of 4 rows with 2 coordinates"),
        (nodes[:, 0], ValueError, "coordinates have the shape"),
        (nodes.T, ValueError, "coordinates have the shape"),
        (nodes * 1j, TypeError, "real numbers"),
        (np.where(nodes == 3, np.nan, nodes), ValueError, "must be finite"),
        (0 * nodes, ValueError, "the same coordinates"),
    ):
        with pytest.raises(error, match=text):
            spmv.Solver(A, coordinates=wrong)
    with pytest.raises(ValueError, match="both given"):
        spmv.Solver(A, coordinates=nodes, options={"near_null": modes})
    with pytest.raises(ValueError, match="for the preconditioners"):
        spmv.Solver(A, "jacobi", coordinates=nodes)
    with pytest.raises(NotImplementedError, match="real matrices"):
        spmv.Solver(A * (1 + 0j), coordinates=nodes)


def test_several_right_hand_sides(system):
    A, x, b = system
    B = np.column_stack([b, 2 * b, np.zeros(900)])
    result = spmv.solve(A, B, vectors=3, rtol=1e-10)
    assert result.converged and len(result.columns) == 3
    np.testing.assert_allclose(result.x[:, 1], 2 * result.x[:, 0], rtol=1e-6, atol=1e-8)
    assert not result.x[:, 2].any()
    with pytest.raises(NotImplementedError, match="one right-hand side"):
        spmv.solve(A, B, vectors=3, callback=print)


@pytest.mark.parametrize("vectors", [1, 2, 3, 5])
def test_any_number_of_right_hand_sides(system, vectors):
    A, x, b = system
    B = np.column_stack([b, 2 * b, np.zeros(900), b[::-1], -b])
    solver = spmv.Solver(A, vectors=vectors, rtol=1e-10)
    for form in (B, np.asfortranarray(B), B.tolist()):
        result = solver.solve(form)
        assert result.converged and len(result.columns) == 5 and result.x.shape == (900, 5)
        assert (np.linalg.norm(B - A @ result.x, axis=0) <= 1.01e-10 * np.linalg.norm(B, axis=0)).all()
    again = solver.solve(B, x0=result.x)
    assert again.converged and all(c["iterations"] <= 1 for c in again.columns)
    for columns in (1, 2, 4):
        assert solver.solve(B[:, :columns]).x.shape == (900, columns)
    assert solver.solve(b).x.shape == (900,) and abs(solver.solve(b).x - x).max() < 1e-5
    for x0 in (x, result.x[:, :2], result.x.T):
        with pytest.raises(ValueError, match="x0 has the shape"):
            solver.solve(B, x0)
    with pytest.raises(ValueError, match="no columns"):
        solver.solve(B[:, :0])
    limited = spmv.Solver(A, "none", vectors=vectors, maxiter=2, rtol=1e-12).solve(B)
    assert not limited.converged and limited.status == "SPMV_ERROR_ITERATIONS"
    assert vectors == 5 or "of b (counted from 0)" in limited.message


def test_matrix_of_right_hand_sides(system):
    """spmv.solve with a matrix b needs no option; each column is solved as if alone."""
    A, x, b = system
    B = np.column_stack([b, b[::-1]])
    result = spmv.solve(A, B)
    assert result.converged and result.x.shape == (900, 2)
    for j in range(2):
        np.testing.assert_array_equal(result.x[:, j], spmv.solve(A, B[:, j].copy()).x)
    general = spmv.generate("convdiff2d:20,10")
    C = np.ones((400, 2)) + 1j * np.arange(800).reshape(400, 2)
    result = spmv.solve(general, C, rtol=1e-10)
    assert result.converged and np.linalg.norm(C - general @ result.x) <= 1e-9 * np.linalg.norm(C)
    seen = []
    stopped = spmv.solve(A, B, preconditioner="none", on_residual=lambda k, r: seen.append(k) or k == 2)
    assert stopped.status == "SPMV_CANCELLED" and not stopped.converged and seen == [0, 1, 2]
    assert len(stopped.columns) == 2 and not stopped.x[:, 1].any()
    # a matrix that is not positive definite, though its diagonal is
    indefinite = sp.csr_array(sp.block_diag([sp.coo_array([[1.0, 3.0], [3.0, 1.0]])] * 20))
    assert spmv.solve(indefinite, np.eye(40)[:, :3]).converged
    jax = pytest.importorskip("jax")
    result = spmv.solve(A.astype(np.float32), jax.numpy.asarray(B, dtype="float32"), rtol=1e-5)
    assert isinstance(result.x, jax.Array) and result.x.shape == (900, 2) and result.converged


def test_many_right_hand_sides(system):
    """After the first column, those that follow are solved several at once, or one by one if one of them fails."""
    A, x, b = system
    B = np.random.default_rng(3).standard_normal((900, 12))
    B[:, 5] = 0
    for precond in ("auto", "none", "jacobi", "amg", "ic0"):
        for form in (B, B.tolist()):
            result = spmv.solve(A, form, precond=precond, rtol=1e-10)
            assert result.converged and result.x.shape == B.shape and len(result.columns) == 12
            assert (np.linalg.norm(B - A @ result.x, axis=0) <= 1.01e-10 * np.linalg.norm(B, axis=0)).all()
        np.testing.assert_array_equal(result.x[:, 0], spmv.solve(A, B[:, 0].copy(), precond=precond, rtol=1e-10).x)
        again = spmv.solve(A, B, result.x, precond=precond, rtol=1e-10)
        assert again.converged and all(c["iterations"] <= 1 for c in again.columns)
        one_by_one = spmv.solve(A, B, precond=precond, rtol=1e-10, vectors=1)
        assert abs(one_by_one.x - result.x).max() <= 1e-7 * abs(one_by_one.x).max()
    limited = spmv.solve(A, np.c_[np.zeros(900), B], precond="none", maxiter=2)
    assert not limited.converged and "column 1 of b" in limited.message and limited.columns[6]["status"] == "SPMV_OK"
    assert [c["iterations"] for c in limited.columns] == [0, 2, 2, 2, 2, 2, 0, 2, 2, 2, 2, 2, 2]
    seen = []
    stopped = spmv.solve(A, B, precond="none", on_residual=lambda k, r: seen.append(k) or len(seen) == 200)
    assert stopped.status == "SPMV_CANCELLED" and len(seen) == 200 and len(stopped.columns) == 12


def test_blocks_of_bsr():
    """The blocks of a BSR matrix are those of the preconditioners that have blocks, unless others are given."""
    A = spmv.generate("elasticity2d:16")
    b, blocks = A @ vector(512), sp.bsr_array(A, blocksize=(2, 2))
    for name, option in (("block-jacobi", {}), ("amg", {}), ("block-jacobi", {"block": 4}), ("amg", {"strength": 0.1})):
        given = spmv.solve(A, b, precond=name, options={"block": 2, **option})
        found = spmv.solve(blocks, b, precond=name, options=option)
        assert found.converged and found.precond == name
        np.testing.assert_array_equal(found.x, given.x)
    assert "of 2 rows" in found.why_preconditioner or spmv.solve(A, b, precond="block-jacobi").iterations != given.iterations
    assert spmv.solve(sp.bsr_array(A, blocksize=(16, 16)), b, precond="amg").converged  # too large for a node
    assert spmv.solve(sp.bsr_array(A, blocksize=(2, 4)), b, precond="block-jacobi").converged
    solver = spmv.Solver(blocks, "block-jacobi")
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(solver)).solve(b).x, solver.solve(b).x)


def test_types_of_b(system):
    """b decides the type of x as the matrix does."""
    A, x, b = system
    narrow = A.astype(np.float32)
    for solve in (lambda c: spmv.solve(narrow, c, rtol=1e-9), spmv.Solver(narrow, rtol=1e-9).solve):
        result = solve(b)
        assert result.x.dtype == np.float64 and result.converged
        assert np.linalg.norm(b - narrow.astype(float) @ result.x) <= 1.01e-9 * np.linalg.norm(b)
    z = b + 1j * b[::-1]
    solver = spmv.Solver(A, rtol=1e-10)
    for solve in (lambda c: spmv.solve(A, c, rtol=1e-10), solver.solve):
        result = solve(z)
        assert result.x.dtype == np.complex128 and result.converged
        assert np.linalg.norm(z - A @ result.x) <= 1.01e-10 * np.linalg.norm(z)
    assert solver.solve(z.astype(np.complex64)).x.dtype == np.complex128
    assert solver.solve(b.astype(np.float32)).x.dtype == np.float64
    solver.update_values(2 * A.data)
    np.testing.assert_allclose(solver.solve(z).x, result.x / 2, rtol=1e-6, atol=1e-8)
    with pytest.raises(TypeError, match="complex128"):
        spmv.Solver(A, dtype="float64").solve(z)
    with pytest.raises(TypeError, match="x0.real"):
        solver.solve(b, x0=x + 1j)
    with pytest.raises(TypeError, match="x0.real"):
        spmv.cg(A, b, x0=x + 1j)
    assert solver.solve(z, x0=x).converged


@pytest.mark.parametrize("method", ["auto", "cg", "minres", "gmres", "bicgstab"])
@pytest.mark.parametrize("kind", ["operator", "matrix", "function", "plan", "solver"])
def test_solver_with_own_preconditioner(system, kind, method):
    A, x, b = system
    diagonal = A.diagonal()
    inverse = sp.diags_array(1 / diagonal).tocsr()
    M = {
        "operator": la.LinearOperator((900, 900), matvec=lambda r: r / diagonal),
        "matrix": inverse,
        "function": lambda r: r / diagonal,
        "plan": spmv.Plan(inverse),
        "solver": spmv.Solver(sp.diags_array(diagonal).tocsr(), "jacobi"),
    }[kind]
    result = spmv.Solver(A, M, method, rtol=1e-10).solve(b)
    assert result.converged and abs(result.x - x).max() < 1e-5
    assert result.preconditioner == type(M).__name__[:31] == result.precond
    named = spmv.Solver(A, "jacobi", method, rtol=1e-10).solve(b)
    assert abs(result.iterations - named.iterations) <= 2


def test_solver_as_preconditioner(system):
    """gmres with a preconditioner that changes: a few steps of another solver."""
    A, x, b = system
    inner = spmv.Solver(A, "jacobi", "cg", maxiter=8, rtol=1e-14)
    plain = spmv.solve(A, b, solver="gmres", preconditioner="none", rtol=1e-10)
    result = spmv.solve(A, b, solver="gmres", precond=inner, rtol=1e-10)
    assert result.converged and result.iterations < plain.iterations / 4
    solution, info = spmv.cg(A, b, M=spmv.Solver(A, "none", rtol=1e-12), rtol=1e-10)
    assert info == 0 and abs(solution - x).max() < 1e-5
    z = b + 1j * b[::-1]
    complex_one = spmv.solve(A, z, preconditioner=lambda r: r / A.diagonal(), rtol=1e-10)
    assert complex_one.converged and np.linalg.norm(z - A @ complex_one.x) <= 1.01e-10 * np.linalg.norm(z)
    general = spmv.generate("convdiff2d:20,10")
    factor = la.splu(general.tocsc())
    result = spmv.solve(general, np.ones(400), preconditioner=factor.solve)
    assert result.converged and result.iterations <= 2
    mixed = spmv.solve(A, b, preconditioner=lambda r: r / A.diagonal(), inner=True, solver="cg")
    assert mixed.converged
    with pytest.raises(LookupError, match="in M"):
        spmv.solve(A, b, preconditioner=lambda r: {}["in M"])
    with pytest.raises(ValueError, match="shape"):
        spmv.Solver(A, sp.eye_array(899).tocsr())
    with pytest.raises(TypeError, match="not a preconditioner"):
        spmv.Solver(A, 3)
    with pytest.raises(TypeError, match="two names"):
        spmv.Solver(A, "jacobi", precond="ic0")
    assert spmv.Solver(A, precond="ic0").solve(b).precond == "ic0"


def test_solver_is_an_operator(system):
    A, x, b = system
    solver = spmv.Solver(A, rtol=1e-12)
    assert isinstance(solver, la.LinearOperator) and solver.shape == (900, 900) and solver.dtype == np.float64
    assert abs(solver @ b - x).max() < 1e-6 and abs(solver.matvec(b) - x).max() < 1e-6
    assert (solver @ np.column_stack([b, b])).shape == (900, 2)
    ours = la.eigsh(A, 3, sigma=0, OPinv=solver, return_eigenvectors=False)
    np.testing.assert_allclose(ours, la.eigsh(A, 3, sigma=0, return_eigenvectors=False), rtol=1e-8)
    general = spmv.generate("convdiff2d:12,10")
    c = vector(144)
    for B in (general, general + 1j * sp.eye_array(144, format="csr")):
        inverse = spmv.Solver(B, rtol=1e-12)
        np.testing.assert_allclose(B.conj().T @ (inverse.H @ c), c, atol=1e-8)
        np.testing.assert_allclose(B.T @ (inverse.T @ c), c, atol=1e-8)
    with pytest.raises(RuntimeError, match="tolerance") as failed:
        spmv.Solver(A, "none", maxiter=2) @ b
    assert failed.value.status == "SPMV_ERROR_ITERATIONS"


def test_options_of_preconditioners(system):
    """Each option that a message or the page names is reachable, under that name."""
    A, x, b = system
    general = spmv.generate("convdiff2d:20,10")
    few, many = (
        spmv.solve(general, np.ones(400), precond="ilut", solver="gmres", options={"drop": d}).iterations
        for d in (0.5, 1e-6)
    )
    assert few > many
    less, more = (
        spmv.solve(A, b, precond="chebyshev", options={"degree": d}).iterations for d in (1, 8)
    )
    assert less > more
    with pytest.raises(NotImplementedError, match="fill"):
        spmv.solve(A, b, precond="cholesky", options={"fill": 1.0})
    assert spmv.solve(A, b, precond="cholesky", options={"fill": 100}).converged
    for options in ({"strength": 0.1, "smoother": "l1-jacobi"}, {"smoother": None, "near_null": None}):
        assert spmv.solve(A, b, precond="amg", options=options).converged
    assert spmv.solve(A, b, precond="chebyshev", options={"lowest": 0.01, "highest": 2.1, "steps": 5}).converged
    assert spmv.solve(A, b, precond="ic0", options={"shift": 0.01}).converged
    kept = spmv.Solver(A, "amg", options={"update_values": True})
    kept.update_values(2 * A.data)
    np.testing.assert_allclose(2 * (A @ kept.solve(b).x), b, atol=1e-6 * np.linalg.norm(b))
    with pytest.raises(ValueError, match="smoother"):
        spmv.Solver(A, "amg", options={"smoother": "ilu"})
    with pytest.raises(TypeError, match="option block.*integer"):
        spmv.Solver(A, "block-jacobi", options={"block": 2.5})
    with pytest.raises(ValueError, match="option fill"):
        spmv.Solver(A, "ilut", options={"fill": float("nan")})


def test_numbers_that_are_not_finite(system):
    A, x, b = system
    wrong = b.copy()
    wrong[[7, 20]] = np.nan, np.inf
    for call in (spmv.solve, spmv.cg):
        with pytest.raises(ValueError, match="b has a NaN at index 7, 2 in all"):
            call(A, wrong)
        with pytest.raises(ValueError, match="x0 has an infinite number at index 3$"):
            call(A, b, x0=np.where(np.arange(900) == 3, np.inf, b))
        B = A.copy()
        B.data[B.indptr[5] + 1] = np.nan
        with pytest.raises(ValueError, match=rf"A has a NaN in row 5, column {B.indices[B.indptr[5] + 1]} \(counted from 0"):
            call(B, b)
    with pytest.raises(ValueError, match=r"b has a NaN at index \(7, 0\)"):
        spmv.solve(A, np.column_stack([wrong, b]), vectors=2)
    solver = spmv.Solver(A)
    with pytest.raises(ValueError, match="A has a NaN in row 0"):
        solver.update_values(np.full(A.nnz, np.nan))
    assert solver.solve(b).converged  # with the values before
    large = np.full(900, 1.7e308)
    assert np.isfinite(spmv.solve(sp.csr_array(sp.eye_array(900)), large).x).all()  # the sum is not


@pytest.mark.parametrize(
    "wrong, error, match",
    [
        (dict(rtol=float("nan")), ValueError, "rtol is nan"),
        (dict(atol=-1), ValueError, "atol is -1.0, must not be negative"),
        (dict(rtol="small"), TypeError, "rtol is 'small'"),
        (dict(maxiter=0), ValueError, "maxiter is 0"),
        (dict(maxiter=2.5), TypeError, "maxiter is 2.5, an integer"),
        (dict(restart=0), ValueError, "restart is 0"),
        (dict(vectors=0), ValueError, "vectors is 0"),
        (dict(vectors=2**31), ValueError, f"vectors is {2**31}, must be 1 to {2**31 - 1}"),
        (dict(vectors=1.5), TypeError, "vectors is 1.5, an integer is needed"),
    ],
)
def test_arguments_of_solvers(system, wrong, error, match):
    A, x, b = system
    with pytest.raises(error, match=match):
        spmv.Solver(A, **wrong)
    for calls, call in (("rtol atol maxiter", spmv.cg), ("vectors", spmv.Plan)):
        if set(wrong) <= set(calls.split()):
            with pytest.raises(error, match=match):
                call(*(A, b) if call is spmv.cg else (A,), **wrong)
            if call is spmv.cg:
                with pytest.raises(error, match=match):
                    call(spmv.Plan(A), b, **wrong)


def test_a_square_matrix_is_needed():
    with pytest.raises(ValueError, match="square matrix, A has 6 rows and 4 columns"):
        spmv.solve(sp.csr_array(np.ones((6, 4))), np.ones(6))
    assert spmv.solve(spmv.generate("poisson2d:5"), np.ones(25), maxiter=1e3).converged


def test_same_bits():
    A = spmv.generate("poisson2d:50")
    b = vector(2500)
    first = spmv.cg(A, b, rtol=1e-10)[0]
    for threads in (1, 2, 3):
        other = spmv.cg(A, b, rtol=1e-10, device=spmv.Context("cpu", threads))[0]
        np.testing.assert_array_equal(first, other)


PAIRS = [("cg", "none"), ("cg", "ic0"), ("cg", "amg"), ("minres", "jacobi"), ("gmres", "ilut"), ("bicgstab", "none")]


@pytest.mark.parametrize("kind", ["on_residual", "callback"])
@pytest.mark.parametrize("method, preconditioner", PAIRS)
def test_callbacks_that_use_their_solver(method, preconditioner, kind):
    """They get an error; the solve goes on as if they had not called."""
    A = spmv.generate("poisson2d:30")
    b = A @ vector(900)
    solver = spmv.Solver(A, preconditioner, method)
    other = spmv.Solver(A, preconditioner, method)
    expected, twice = solver.solve(b), other.solve(2 * b)
    errors, inner = [], []

    def call(*_):
        if len(errors) < 2:
            for use in (lambda: solver.update_values(2 * A.data), lambda: solver.solve(1e12 * b)):
                with pytest.raises(RuntimeError) as failed:
                    use()
                errors.append(failed.value.status)
            inner.append(other.solve(2 * b).x)

    result = solver.solve(b, **{kind: call})
    assert errors == ["SPMV_ERROR_BUSY"] * 2 and result.converged
    np.testing.assert_array_equal(result.x, expected.x)
    np.testing.assert_array_equal(inner[0], twice.x)
    solver.update_values(2 * A.data)
    assert np.linalg.norm(b - 2 * (A @ solver.solve(b).x)) < 1e-6 * np.linalg.norm(b)


def test_after_failed_new_values_every_solve_fails():
    A = spmv.generate("poisson2d:10")
    solver = spmv.Solver(A, "ic0", "cg")
    solver.solve(np.ones(100) + 1j)
    wrong = A.data.copy()
    wrong[A.indptr[3] : A.indptr[4]] *= -1
    with pytest.raises(ValueError, match="diagonal"):
        solver.update_values(wrong)
    for call in (lambda xk: pytest.fail("a solve of the matrix before"), None):
        result = solver.solve(np.ones(100), callback=call)
        assert not result.converged and "diagonal" in result.message
    with pytest.raises(ValueError, match="diagonal"):
        solver.solve(np.ones(100) + 1j)
    with pytest.raises(RuntimeError, match="diagonal"):  # as solver @ b
        solver.H @ np.ones(100)
    solver.update_values(A.data)
    assert solver.solve(np.ones(100)).converged and solver.solve(np.ones(100) + 1j).converged


@pytest.mark.parametrize("dtype", [float, complex])
@pytest.mark.parametrize("preconditioner", ["ilut", "jacobi", "isai", "auto"])
def test_transposed_solves(dtype, preconditioner):
    A = spmv.generate("convdiff2d:22,10").astype(dtype)
    if dtype is complex:
        A.data *= 1 + 0.2j * np.cos(np.arange(A.nnz))
    solver = spmv.Solver(A, preconditioner, rtol=1e-10)
    b = vector(484, dtype)
    for trans, B in (("N", A), ("T", A.T), ("H", A.conj().T)):
        result = solver.solve(b, trans=trans)
        assert result.converged and np.linalg.norm(b - B @ result.x) <= 2e-10 * np.linalg.norm(b)
        many = solver.solve(np.column_stack([b, 2 * b, b]), np.ones((484, 3), dtype), trans=trans).x
        np.testing.assert_allclose(many[:, 1], 2 * result.x, rtol=0, atol=1e-7 * abs(result.x).max())
    if preconditioner == "ilut":
        assert result.why_preconditioner == "that of A, applied transposed"
    np.testing.assert_array_equal(solver.H @ b, solver.solve(b, trans="H").x)
    with pytest.raises(ValueError, match="trans is 'X'"):
        solver.solve(b, trans="X")
    if dtype is complex:
        with pytest.raises(NotImplementedError, match="on_iterate"):
            solver.solve(b, trans="T", callback=lambda xk: None)


def test_transposed_solves_with_an_own_preconditioner():
    A = spmv.generate("convdiff2d:15,10")
    M = sp.csr_array(np.linalg.inv(sp.tril(A).toarray()))
    b = vector(225)
    calls = []

    class Operator:
        def __matmul__(self, r):
            return M @ r

        @property
        def H(self):
            calls.append("H")
            return M.T

    for own in (M, Operator(), spmv.Solver(A, "none", "gmres", maxiter=5), spmv.Plan(M)):
        result = spmv.Solver(A, own, "gmres").solve(b, trans="T")
        assert result.converged and np.linalg.norm(b - A.T @ result.x) <= 1.01e-8 * np.linalg.norm(b)
    assert calls
    with pytest.raises(NotImplementedError, match="the transpose of A needs that of the preconditioner"):
        spmv.Solver(A, lambda r: M @ r, "gmres").solve(b, trans="T")
    S = spmv.generate("poisson2d:15")  # A is symmetric: M serves both
    assert spmv.Solver(S, lambda r: r / 4, "cg").solve(b, trans="T").converged


def test_recycling():
    A = spmv.generate("poisson2d:40")
    i, j = np.divmod(np.arange(1600), 40)
    sums = {}
    for recycle in (0, 6):
        solver, x, iterations = spmv.Solver(A, "jacobi", "cg", recycle=recycle), np.zeros(1600), []
        for k in range(12):
            b = np.exp(-0.02 * ((i - 20 - 10 * np.cos(0.02 * k)) ** 2 + (j - 20 - 10 * np.sin(0.02 * k)) ** 2))
            result = solver.solve(b, x)
            x = result.x
            assert result.converged and np.linalg.norm(b - A @ x) <= 1.01 * result.tolerance
            iterations.append(result.iterations)
        sums[recycle] = sum(iterations[1:])
        if recycle:
            assert result.recycled == recycle and result.start_residual < 1e-3 * result.given_residual
        else:
            assert result.recycled == 0 and result.given_residual < 0
    assert sums[6] < 0.5 * sums[0]
    columns = np.column_stack([b * (1 + 0.1 * k) for k in range(4)])
    result = spmv.Solver(A, "jacobi", "cg", recycle=2, vectors=4).solve(columns)
    assert result.converged and [c["recycled"] for c in result.columns] == [0, 1, 1, 1]
    with pytest.raises(ValueError, match="recycle"):
        spmv.Solver(A, recycle=65)


def test_backward_error():
    """A Dirichlet value set by a large diagonal: a small residual is not enough."""
    A = sp.csr_array(np.array([[1e39, -1.0], [-1.0, 2.0]]))
    result = spmv.solve(A, np.array([1e39, 0.0]))
    assert not result.converged or abs(result.x - [1, 0.5]).max() < 1e-6
    A = spmv.generate("poisson2d:20")
    result = spmv.solve(A, np.ones(400))
    assert result.converged and 0 <= result.backward_error < 1e-4 and 0 <= result.backward_row < 400


def test_old_names():
    """The names until 0.11."""
    A = spmv.generate("poisson2d:10")
    b = np.ones(100)
    result = spmv.solve(A, b, method="minres")
    assert result.method == result.solver == "minres"
    np.testing.assert_array_equal(spmv.Solver(A, "auto", "minres").solve(b).x, result.x)
    np.testing.assert_array_equal(spmv.solve(A, b, mixed=True).x, spmv.solve(A, b, inner=True).x)
    several = spmv.solve(A, np.ones((100, 2)))
    assert [c["method"] for c in several.columns] == [c["solver"] for c in several.columns]
    with pytest.raises(TypeError, match="old name"):
        spmv.Solver(A, solver="cg", method="gmres")
    assert spmv.multiply is spmv.spgemm and spmv.multiply_triple is spmv.spgemm_triple
    assert spmv.MultiplyPlan is spmv.SpgemmPlan


def _squared_path(n: int):
    """The square of a path's Laplacian: integers, with a condition number of 0.16 n^4."""
    path = sp.diags_array([-np.ones(n - 1), 2 * np.ones(n), -np.ones(n - 1)], offsets=[-1, 0, 1])
    return sp.csr_array(path @ path)


def test_forward_error_is_estimated():
    A, x = _squared_path(300), np.arange(300) % 17 - 8.0
    for columns in (1, 3):
        exact = x if columns == 1 else np.outer(x, [1.0, 2.0, -4.0])
        result = spmv.Solver(A, "jacobi", "cg", rtol=1e-11, maxiter=10**5).solve(A @ exact)
        true = np.linalg.norm(result.x - exact) / np.linalg.norm(exact)
        assert result.converged and 0.1 * true < result.forward_error < 10 * true
    assert spmv.Solver(A, "jacobi", "cg", maxiter=10**5, estimate_error=False).solve(A @ x).forward_error < 0


def test_few_digits_warn():
    A, x = _squared_path(300), np.arange(300) % 17 - 8.0
    with pytest.warns(spmv.AccuracyWarning, match="fewer than three right digits"):
        result = spmv.solve(A, A @ x, preconditioner="none", solver="cg", rtol=1e-3, maxiter=10**5)
    assert result.converged and result.forward_error > 1e-3


def test_accuracy_is_met_or_told():
    A, x = _squared_path(300), np.arange(300) % 17 - 8.0
    result = spmv.solve(A, A @ x, accuracy=13)
    assert result.converged and np.linalg.norm(result.x - x) <= 2e-13 * np.linalg.norm(x)
    H = 1 / (np.arange(12)[:, None] + np.arange(12) + 1.0)
    result = spmv.solve(sp.csr_array(H), H.sum(1), preconditioner="none", solver="cg", rtol=1e-3, accuracy=15)
    assert not result.converged and result.status == "SPMV_ERROR_ACCURACY" and "15 digits" in result.message
    with pytest.raises(ValueError, match="accuracy"):
        spmv.Solver(A, accuracy=16)


def test_pickle_and_copy(system):
    """Copies of a solver have its matrix and options, and make the preconditioner again."""
    A, x, b = system
    for solver in (
        spmv.Solver(A, "ic0", "cg", rtol=1e-10), spmv.Solver(A, options={"block": 2}, precond="block-jacobi", maxiter=40),
        spmv.Solver(A.astype("float32"), rtol=1e-4, vectors=2), spmv.Solver(A, spmv.Plan(sp.diags_array(1 / A.diagonal()))),
        spmv.Solver(spmv.Plan(A), solver="minres", rtol=1e-10), spmv.Solver(A, solver="gmres", precond="jacobi", restart=7, maxiter=30),
    ):  # fmt: skip
        expected = None
        for other in (copy.copy(solver), copy.deepcopy(solver), pickle.loads(pickle.dumps(solver))):
            result, expected = other.solve(b.astype(solver.dtype)), expected or solver.solve(b.astype(solver.dtype))
            np.testing.assert_array_equal(result.x, expected.x)
            assert (result.status, result.solver, result.precond) == (expected.status, expected.solver, expected.precond)
    solver = spmv.Solver(A, rtol=1e-10)
    solver.update_values(2 * A.data)
    np.testing.assert_array_equal(copy.copy(solver).solve(b).x, spmv.Solver(2 * A, rtol=1e-10).solve(b).x)
    assert copy.copy(solver).solve(b + 1j).x.dtype == np.complex128  # the type is still free
    with pytest.raises((TypeError, AttributeError, pickle.PicklingError)):
        pickle.dumps(spmv.Solver(A, lambda r: r))


# ---------------------------------------------------------------- factors: determinant, inertia, many columns


def _factors(A, name, **options):
    try:
        return spmv.Solver(sp.csr_array(A) if isinstance(A, np.ndarray) else A, solver=name, **options)
    except NotImplementedError as error:  # no module, or not for this matrix
        pytest.skip(str(error))


_LIBRARIES = ["auto", "direct", "direct:cholmod", "direct:mumps", "direct:klu", "direct:umfpack"]


@pytest.mark.parametrize("name", _LIBRARIES)
@pytest.mark.parametrize("kind", ["f", "c"])
def test_slogdet_is_that_of_numpy(name, kind):
    rng = np.random.default_rng(3)
    for n in (1, 2, 7, 40):
        A = rng.standard_normal((n, n)) + (1j * rng.standard_normal((n, n)) if kind == "c" else 0)
        if name == "direct:cholmod":
            A = A @ A.conj().T + np.eye(n)
            A = (A + A.conj().T) / 2  # the diagonal is real
        if name == "direct:mumps":
            A = A + A.T
        solver = _factors(A, name)
        sign, log = solver.slogdet()
        expected = np.linalg.slogdet(A)
        assert type(sign) is type(expected.sign)
        np.testing.assert_allclose(sign, expected.sign, atol=1e-10)
        np.testing.assert_allclose(log, expected.logabsdet, atol=1e-10)
        solver.update_values(2 * A[A != 0])
        np.testing.assert_allclose(solver.slogdet().logabsdet, log + n * np.log(2), atol=1e-10)


@pytest.mark.parametrize("name", ["direct:cholmod", "direct:mumps"])
def test_inertia(name):
    rng = np.random.default_rng(4)
    A = rng.standard_normal((30, 30))
    A = A @ A.T + np.eye(30) if name == "direct:cholmod" else A + A.T
    values = np.linalg.eigvalsh(A)
    assert _factors(A, name).inertia() == ((values > 0).sum(), (values < 0).sum(), 0)


def test_without_factors():
    A = spmv.generate("poisson2d:20")
    solver = spmv.Solver(A, solver="cg")
    with pytest.raises(NotImplementedError, match="no factors"):
        solver.slogdet()
    with pytest.raises(NotImplementedError, match="no factors"):
        solver.inertia()
    with pytest.raises(NotImplementedError, match="inertia is not known"):
        spmv.Solver(sp.diags_array([1.0, 2.0]).tocsr()).inertia()  # dense factors


@pytest.mark.parametrize("name", _LIBRARIES[1:])
@pytest.mark.parametrize("trans", ["N", "T"])
def test_factors_take_any_number_of_columns(name, trans):
    A = spmv.generate("poisson2d:20" if name != "direct:umfpack" else "convdiff2d:20,5")
    solver = _factors(A, name)
    rng = np.random.default_rng(5)
    X = rng.integers(-9, 10, (400, 37)).astype(float)
    op = A.T if trans == "T" else A
    for columns in (37, 3, 1, 40):
        x = np.resize(X, (400, columns))
        result = solver.solve(op @ x, trans=trans)
        assert result.converged and result.solver == "direct"
        np.testing.assert_allclose(result.x, x, atol=1e-9)
        assert len(result.columns) == (columns if columns > 1 else 0)
    start = solver.solve(op @ X, x0=X + 1, trans=trans)
    np.testing.assert_allclose(start.x, X, atol=1e-9)
    B = op @ X
    B[3, 2] = np.nan
    with pytest.raises(ValueError):
        solver.solve(B, trans=trans)
    np.testing.assert_allclose(solver.solve((op @ X)[:, 0], trans=trans).x, X[:, 0], atol=1e-9)


@pytest.mark.parametrize("trans", ["N", "T", "H"])
def test_factors_take_complex_columns(trans):
    A = spmv.generate("convdiff2d:8,5").astype(complex)
    A.data = A.data * np.exp(0.1j * np.arange(A.nnz))
    op = {"N": A, "T": A.T, "H": A.conj().T}[trans]
    X = np.arange(64 * 5).reshape(64, 5) % 7 + 1j * (np.arange(64 * 5).reshape(64, 5) % 5)
    for solver in _factors(A, "direct"), spmv.Solver(A, solver="direct", vectors=5):
        result = solver.solve(op @ X, trans=trans)
        assert result.converged and result.solver == "direct" and len(result.columns) == 5
        np.testing.assert_allclose(result.x, X, atol=1e-9)


def test_result_has_all_fields():
    """A result is filled without __init__."""
    A = spmv.generate("poisson2d:4")
    for b in (np.ones(16), np.ones((16, 3))):
        result = spmv.solve(A, b)
        names = [f.name for f in dataclasses.fields(spmv.Result)]
        assert sorted(vars(result)) == sorted(names)
        assert dataclasses.replace(result, message="other").message == "other"
        assert pickle.loads(pickle.dumps(result)).iterations == result.iterations
        with pytest.raises(dataclasses.FrozenInstanceError):
            result.converged = False


@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128", "complex64"])
def test_numbers_that_are_not_finite(dtype):
    """Each number of a matrix and of b is looked at, and large ones are finite."""
    indices, indptr = np.arange(9), np.arange(10)
    large = np.full(9, np.finfo(dtype).max / 2, dtype)
    b = np.ones(9, dtype)
    assert spmv.solve((large, indices, indptr), large, shape=(9, 9)).converged
    for at in range(9):
        for wrong in (np.nan, np.inf, -np.inf) + ((1j * np.inf,) if np.dtype(dtype).kind == "c" else ()):
            bad = large.copy()
            bad[at] = wrong
            with pytest.raises(ValueError, match=f"row {at}"):
                spmv.Solver((bad, indices, indptr), shape=(9, 9))
            with pytest.raises(ValueError, match=f"index {at}"):
                spmv.solve((b, indices, indptr), bad, shape=(9, 9))
    everywhere = np.ones((9, 2), dtype)[:, 0]  # neither contiguous nor writable
    everywhere.flags.writeable = False
    assert np.allclose(spmv.solve((b, indices, indptr), everywhere, shape=(9, 9)).x, 1)

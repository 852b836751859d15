# SPDX-License-Identifier: BSD-3-Clause
"""Solvers: SciPy's signature and values, preconditioners, callbacks, failures."""

import inspect

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


def test_signature_is_that_of_scipy():
    ours = {n: p for n, p in inspect.signature(spmv.cg).parameters.items() if n != "device"}
    theirs = dict(inspect.signature(la.cg).parameters)
    theirs.pop("tol", None)  # before SciPy 1.14
    assert list(ours) == list(theirs)
    for name, parameter in theirs.items():
        assert ours[name].default == (1e-5 if name == "rtol" else parameter.default), name
        assert ours[name].kind == parameter.kind, name


@pytest.mark.parametrize("M", [None, "jacobi", "ic0", "chebyshev", "block-jacobi", "auto"])
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
    result = spmv.solve(A, b, method=method, rtol=1e-12)
    assert result.converged and result.method == ("gmres" if method == "auto" else method)
    assert result.x.dtype == dtype and abs(result.x - x).max() < 1e-8
    assert result.true_residual <= result.tolerance


def test_restart_and_limits():
    A, b = spmv.generate("convdiff2d:30,10"), np.ones(900)
    counts = [spmv.solve(A, b, method="gmres", preconditioner="none", restart=m).iterations for m in (5, 100)]
    assert counts[0] > counts[1]
    with pytest.raises(ValueError, match="restart"):
        spmv.solve(A, b, method="gmres", restart=1000)
    with pytest.raises(ValueError, match="symmetric"):
        spmv.solve(A, b, method="minres")


def test_indefinite():
    A = (spmv.generate("poisson2d:20") - 2.5 * sp.eye_array(400)).tocsr()
    x = vector(400)
    result = spmv.solve(A, A @ x, rtol=1e-12)
    assert result.converged and result.method == "minres" and abs(result.x - x).max() < 1e-6


def test_failures(system):
    A, x, b = system
    _, info = spmv.cg(A, b, rtol=1e-10, maxiter=3)
    assert info == 3
    with pytest.raises(ValueError, match="not symmetric|symmetric"):
        spmv.cg(spmv.generate("convdiff2d:20,10"), np.ones(400))
    _, info = spmv.cg(-A, b)
    assert info < 0
    with pytest.raises(ValueError, match="not square|rows"):
        spmv.cg(A[:-1], b)
    with pytest.raises(ValueError, match="shape"):
        spmv.cg(A, b[:-1])
    z, info = spmv.cg(A.astype(complex), 1j * b, rtol=1e-12)
    assert info == 0 and abs(z - 1j * x).max() < 1e-6
    _, info = spmv.cg(A, np.full(900, np.nan))
    assert info != 0
    zero, info = spmv.cg(A, np.zeros(900))
    assert info == 0 and not zero.any()
    with pytest.raises(ValueError, match="rtol -1"):
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
    mixed = spmv.solve(A, b, mixed=True, preconditioner="jacobi", rtol=1e-12)
    assert mixed.converged and mixed.true_residual <= mixed.tolerance


def test_several_right_hand_sides(system):
    A, x, b = system
    B = np.column_stack([b, 2 * b, np.zeros(900)])
    result = spmv.solve(A, B, vectors=3, rtol=1e-10)
    assert result.converged and len(result.columns) == 3
    np.testing.assert_allclose(result.x[:, 1], 2 * result.x[:, 0], rtol=1e-6, atol=1e-8)
    assert not result.x[:, 2].any()
    with pytest.raises(ValueError, match="shape"):
        spmv.solve(A, b, vectors=3)
    with pytest.raises(NotImplementedError, match="one right-hand side"):
        spmv.solve(A, B, vectors=3, callback=print)


def test_same_bits():
    A = spmv.generate("poisson2d:50")
    b = vector(2500)
    first = spmv.cg(A, b, rtol=1e-10)[0]
    for threads in (1, 2, 3):
        other = spmv.cg(A, b, rtol=1e-10, device=spmv.Context("cpu", threads))[0]
        np.testing.assert_array_equal(first, other)


@pytest.mark.parametrize("method, preconditioner", [("cg", "amg"), ("minres", "jacobi"), ("gmres", "ilut")])
def test_calls_in_a_callback_are_refused(method, preconditioner):
    """New values and a second solve within a callback change nothing."""
    A = spmv.generate("poisson2d:20")
    b, other = np.sin(np.arange(400.0)), A.data * 2
    solver = spmv.Solver(A, preconditioner, method)
    expected, refused = solver.solve(b), []

    def act(*_):
        for call in (lambda: solver.update_values(other), lambda: solver.solve(1e12 * b)):
            with pytest.raises(Exception, match="(?i)busy|in use|uses the solver"):
                call()
            refused.append(call)

    for name in ("callback", "on_residual"):
        result = solver.solve(b, **{name: act})
        assert result.converged and np.array_equal(result.x, expected.x)
    assert len(refused) >= 4


def test_after_failed_values_every_solve_fails():
    A = spmv.generate("poisson2d:20")
    b = np.ones(400)
    solver = spmv.Solver(A, "jacobi", "cg")
    good = solver.solve(b)
    with pytest.raises(Exception):
        solver.update_values(np.zeros(A.nnz))
    for calls in ({}, {"callback": lambda x: None}, {"on_residual": lambda i, r: None}):
        try:
            assert not solver.solve(b, **calls).converged
        except ValueError as error:
            assert "diagonal" in str(error)
    solver.update_values(A.data * 2)
    for calls in ({}, {"callback": lambda x: None}):
        assert np.allclose(solver.solve(b, **calls).x, good.x / 2, rtol=1e-6)

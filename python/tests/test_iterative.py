# SPDX-License-Identifier: BSD-3-Clause
"""cg, gmres, minres and bicgstab: SciPy's signatures, values, numbers and callbacks."""

import inspect

import numpy as np
import pytest
import spmv
from conftest import vector

sp = pytest.importorskip("scipy.sparse")
la = pytest.importorskip("scipy.sparse.linalg")

NAMES = ["cg", "gmres", "minres", "bicgstab"]


@pytest.fixture(params=NAMES)
def pair(request):
    """The function here and in SciPy, A and b."""
    name = request.param
    A = {
        "cg": lambda: spmv.generate("diffusion2d:12,100"),
        "minres": lambda: (spmv.generate("poisson2d:12") - 0.9 * sp.eye_array(144)).tocsr(),
    }.get(name, lambda: spmv.generate("convdiff2d:12,5"))()
    return getattr(spmv, name), getattr(la, name), A, A @ vector(144)


def residual(A, x, b):
    return np.linalg.norm(b - A @ x) / np.linalg.norm(b)


@pytest.mark.parametrize("name", NAMES)
def test_signature_is_that_of_scipy(name):
    ours = {n: p for n, p in inspect.signature(getattr(spmv, name)).parameters.items() if n != "device"}
    theirs = dict(inspect.signature(getattr(la, name)).parameters)
    theirs.pop("tol", None)  # before SciPy 1.14
    assert list(ours) == list(theirs)
    for n, parameter in theirs.items():
        assert ours[n].default == (1e-5 if n == "rtol" else parameter.default), n
        assert ours[n].kind == parameter.kind, n


def test_values(pair):
    ours, theirs, A, b = pair
    expected, info = theirs(A, b, rtol=1e-12)
    assert info == 0
    M = sp.diags_array(1 / A.diagonal()).tocsr() if ours is not spmv.minres else None
    operator = la.LinearOperator(A.shape, matvec=lambda x: A @ x, dtype=float)
    for form in (A, spmv.Plan(A), A.tocsc(), operator, spmv.Plan(A, vectors=3)):
        for m in (None, M):
            x, info = ours(form, b, rtol=1e-11, M=m)
            assert info == 0 and residual(A, x, b) <= 1.01e-11
            np.testing.assert_allclose(x, expected, rtol=1e-6, atol=1e-7)
    x, info = ours(A, b)
    assert info == 0 and type(info) is int and residual(A, x, b) <= 1e-5
    x, info = ours(A, b[:, None], b)
    assert info == 0 and x.shape == (144, 1) and residual(A, x[:, 0], b) <= 1e-5
    x, info = ours(A, b, expected)
    np.testing.assert_array_equal(x, expected)
    x, info = ours(A.astype("float32"), b.astype("float32"))
    assert info == 0 and x.dtype == np.float32
    x, info = ours(A, b, M="jacobi" if ours is not spmv.minres else "none", rtol=1e-11)
    assert info == 0 and residual(A, x, b) <= 1.01e-11


def test_info(pair):
    ours, theirs, A, b = pair
    for limit in (1, 2):
        restart = dict(restart=3) if ours is spmv.gmres else {}
        x, info = ours(A, b, rtol=1e-14, maxiter=limit, **restart)
        expected, number = theirs(A, b, rtol=1e-14, maxiter=limit, **restart)
        assert info == number == limit
        if ours is not spmv.minres:
            np.testing.assert_allclose(x, expected, rtol=1e-9, atol=1e-9 * abs(expected).max())
    x, info = ours(A, np.zeros(144))
    assert info == 0 and not x.any()


def test_callback_gets_each_iterate(pair):
    ours, theirs, A, b = pair
    kind = dict(callback_type="x", restart=4) if ours is spmv.gmres else {}
    mine, other = [], []
    x, info = ours(A, b, rtol=1e-8, callback=mine.append, **kind)
    theirs(A, b, rtol=1e-8, callback=lambda xk: other.append(xk.copy()), **kind)
    assert info == 0 and len(mine) > 5 and (abs(len(mine) - len(other)) <= 2 or ours is spmv.minres)
    for i in range(5):
        np.testing.assert_allclose(mine[i], other[i], rtol=1e-7, atol=1e-7 * abs(other[i]).max())
    np.testing.assert_allclose(mine[-1], x, rtol=1e-6, atol=1e-6)
    with pytest.raises(KeyError, match="of the callback"):
        ours(A, b, callback=lambda xk: {}["of the callback"], **kind)


def test_wrong_arguments(pair):
    ours, _, A, b = pair
    with pytest.raises(ValueError, match="one right-hand side is needed"):
        ours(A, np.column_stack([b, b]))
    with pytest.raises(ValueError, match="shape"):
        ours(A, b[:-1])
    with pytest.raises(ValueError, match="x0"):
        ours(A, b, b[:-1])
    with pytest.raises(TypeError, match="by name"):
        ours(spmv.Plan(A), b, M="jacobi")
    with pytest.raises(ValueError, match="rtol is -1"):
        ours(A, b, rtol=-1)
    with pytest.raises(ValueError, match="maxiter"):
        ours(A, b, maxiter=0)
    with pytest.raises(TypeError, match="the plan has|complex"):
        ours(spmv.Plan(A), b + 1j)


@pytest.mark.parametrize("kind", ["pr_norm", "legacy", None])
@pytest.mark.parametrize("start", [False, True])
@pytest.mark.filterwarnings("ignore:scipy.sparse.linalg.gmres:DeprecationWarning")
def test_gmres_callback_gets_norms(kind, start):
    A = spmv.generate("convdiff2d:12,5")
    b = A @ vector(144)
    x0 = vector(144, seed=7) if start else None
    ours, theirs = [], []
    spmv.gmres(A, b, x0, rtol=1e-6, restart=6, callback=ours.append, callback_type=kind)
    la.gmres(A, b, x0, rtol=1e-6, restart=6, callback=theirs.append, callback_type=kind)
    assert len(ours) > 12 and abs(len(ours) - len(theirs)) <= 6
    np.testing.assert_allclose(ours[:12], theirs[:12], rtol=1e-6)
    ours, theirs = [], []
    unit = dict(rtol=1e-12, restart=5, maxiter=7, callback_type=kind)
    assert spmv.gmres(A, b, callback=ours.append, **unit)[1] == la.gmres(A, b, callback=theirs.append, **unit)[1] == 7
    assert len(ours) == len(theirs) == (35 if kind == "pr_norm" else 7)


def test_gmres():
    A = spmv.generate("convdiff2d:12,5")
    b = A @ vector(144)
    with pytest.raises(ValueError, match="callback_type is 'y'"):
        spmv.gmres(A, b, callback=print, callback_type="y")
    with pytest.raises(ValueError, match="restart"):
        spmv.gmres(spmv.generate("convdiff2d:20,5"), np.ones(400), restart=201)
    small = sp.csr_array(np.array([[3.0, 2, 0], [1, -1, 0], [0, 5, 1]]))
    x, info = spmv.gmres(small, np.array([2.0, 4, -1]), restart=500)  # at most the rows
    assert info == 0 and np.allclose(small @ x, [2, 4, -1])
    x, info = spmv.gmres(A, b, M="ilut", rtol=1e-10)
    assert info == 0 and residual(A, x, b) <= 1e-10
    z, info = spmv.gmres(A + 1j * sp.eye_array(144), 1j * b, rtol=1e-10)
    assert info == 0 and residual(A + 1j * sp.eye_array(144), z, 1j * b) <= 1.01e-10
    singular = sp.csr_array(np.diag([1.0, 0.0]))
    assert spmv.gmres(singular, np.array([1.0, 1.0]))[1] != 0


@pytest.mark.parametrize("form", ["csr", "plan", "operator", "own", "missing", "unsorted"])
def test_minres_shift(form):
    A, shift = spmv.generate("poisson2d:12"), 3.3
    if form == "missing":  # diagonal entries
        A = sp.csr_array(A - sp.diags_array(np.r_[np.zeros(70), 4 * np.ones(74)]))
        A.eliminate_zeros()
        assert A.nnz < spmv.generate("poisson2d:12").nnz
    expected = (A - shift * sp.eye_array(144)).tocsr()
    b = expected @ vector(144)
    given = {
        "plan": spmv.Plan, "operator": la.aslinearoperator, "own": lambda A: spmv.CSR(A.data, A.indices, A.indptr, A.shape),
        "unsorted": lambda A: A[:, ::-1].tocsr()[:, ::-1] if not A.has_sorted_indices else A,
    }.get(form, lambda A: A)(A)  # fmt: skip
    before = A.data.copy()
    x, info = spmv.minres(given, b, shift=shift, rtol=1e-10, M=None)
    assert info == 0 and residual(expected, x, b) <= 1.01e-10
    np.testing.assert_array_equal(A.data, before)
    np.testing.assert_allclose(x, la.minres(A, b, shift=shift, rtol=1e-13, maxiter=2000)[0], rtol=1e-4, atol=1e-4)
    if form == "csr":
        x, info = spmv.minres(A, A @ b + b, shift=-1, rtol=1e-10, M="ic0")  # of the shifted matrix
        assert info == 0 and abs(x - b).max() <= 1e-6
    if form in ("plan", "operator"):
        with pytest.raises(TypeError, match="by name"):
            spmv.minres(given, b, shift=shift, M="ic0")


def test_minres(capsys):
    A = spmv.generate("poisson2d:12")
    b = A @ vector(144)
    assert spmv.minres(A, b, show=True)[1] == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("minres: iteration") and lines[-1] == "minres: the tolerance is reached" and len(lines) > 5
    inverse = sp.diags_array(np.linspace(1, 2, 144)).tocsr()
    for M in (inverse, spmv.Plan(inverse), lambda r: inverse @ r, "jacobi", None):
        assert spmv.minres(A, b, M=M, check=True)[1] == 0
    for M in (sp.csr_array(np.triu(np.ones((144, 144)))), lambda r: np.cumsum(r)):
        with pytest.raises(ValueError, match="M is not symmetric"):
            spmv.minres(A, b, M=M, check=True)
    with pytest.raises(ValueError, match="symmetric"):
        spmv.minres(spmv.generate("convdiff2d:12,5"), b)


def test_plan_with_new_values():
    """A solver of a plan multiplies in the library, by the plan's present values."""
    A = spmv.generate("diffusion2d:12,10")
    b, calls = A @ vector(144), []
    plan = spmv.Plan(A)
    solver = spmv.Solver(plan, solver="cg", rtol=1e-12)
    plan.matvec = lambda x: calls.append(x)
    first = solver.solve(b)
    for factor in (2, 4, 8):
        plan.update_values(factor * A.data)
        np.testing.assert_allclose(solver.solve(b).x, first.x / factor, rtol=1e-8)
    assert first.converged and not calls
    x, info = spmv.gmres(plan.T, b, rtol=1e-10)
    assert info == 0 and np.linalg.norm(b - 8 * (A.T @ x)) <= 1.01e-10 * np.linalg.norm(b)
    with pytest.raises(TypeError, match="the plan has the type float64"):
        spmv.Solver(plan, dtype="complex128")
    with pytest.raises(ValueError, match="A has a NaN"):
        spmv.cg(spmv.Plan(sp.csr_array(A * np.nan)), b)

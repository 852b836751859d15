# SPDX-License-Identifier: BSD-3-Clause
"""Least squares: SciPy's signatures, values and iterations; statuses, several right-hand sides, errors."""

import inspect

import numpy as np
import pytest
import spmv
from conftest import DTYPES, random_csr, vector

sp = pytest.importorskip("scipy.sparse")
la = pytest.importorskip("scipy.sparse.linalg")


def incidence(k):
    """Differences of neighbours on a k x k grid: rank k^2 - 1."""
    d = sp.diags_array([-np.ones(k), np.ones(k - 1)], offsets=[0, 1], shape=(k - 1, k))
    return sp.csr_array(sp.vstack([sp.kron(d, sp.eye_array(k)), sp.kron(sp.eye_array(k), d)]))


CASES = {
    "tall": random_csr(400, 150, seed=3),
    "wide": random_csr(120, 300, seed=4),
    "grid": incidence(12),
    "grid, transposed": sp.csr_array(incidence(12).T),
}


@pytest.mark.parametrize("name", ["lsmr", "lsqr"])
def test_signatures_are_those_of_scipy(name):
    ours = inspect.signature(getattr(spmv, name)).parameters
    theirs = inspect.signature(getattr(la, name)).parameters
    assert [n for n in ours if n not in ("scaling", "device")] == list(theirs)
    for n, parameter in theirs.items():
        assert ours[n].default == parameter.default and ours[n].kind == parameter.kind, n


@pytest.mark.parametrize("damp", [0, 0.3])
@pytest.mark.parametrize("tolerance", [1e-6, 1e-11])
@pytest.mark.parametrize("name", ["lsmr", "lsqr"])
@pytest.mark.parametrize("case", list(CASES))
def test_values_and_iterations_are_those_of_scipy(case, name, tolerance, damp):
    A = CASES[case]
    b = vector(A.shape[0]) if case in ("tall", "grid") else A @ vector(A.shape[1])
    limit = {"maxiter" if name == "lsmr" else "iter_lim": 2000}
    ours = getattr(spmv, name)(A, b, damp, tolerance, tolerance, **limit)
    theirs = getattr(la, name)(A, b, damp, tolerance, tolerance, **limit)
    assert len(ours) == len(theirs) and ours[1] == theirs[1]
    assert abs(ours[2] - theirs[2]) <= 0.05 * theirs[2] + 1
    assert np.linalg.norm(ours[0] - theirs[0]) <= 1e4 * tolerance * np.linalg.norm(theirs[0])
    r = b - A @ ours[0]
    damped = np.hypot(np.linalg.norm(r), damp * np.linalg.norm(ours[0]))
    gradient = np.linalg.norm(A.T @ r - damp**2 * ours[0])
    values = ours[3:8] if name == "lsmr" else (ours[4], ours[7], ours[5], ours[6], ours[8])
    rounding = 1e-13 * np.linalg.norm(b)
    assert abs(values[0] - damped) <= rounding and abs(values[1] - gradient) <= 100 * rounding
    assert abs(values[4] - np.linalg.norm(ours[0])) <= 1e-13 * values[4]
    if name == "lsqr":
        assert abs(ours[3] - np.linalg.norm(r)) <= rounding and not ours[9].any()
    if ours[2] == theirs[2]:
        their_a = theirs[5]
        assert abs(values[2] - their_a) <= 0.05 * their_a


def test_a_start_is_kept_and_used():
    A = CASES["wide"]
    b, x0 = A @ vector(300), vector(300, seed=9)
    before = x0.copy()
    for name in "lsmr", "lsqr":
        for damp in 0, 0.2:
            ours = getattr(spmv, name)(A, b, damp, 1e-12, 1e-12, x0=x0)
            theirs = getattr(la, name)(A, b, damp, 1e-12, 1e-12, x0=x0)
            np.testing.assert_allclose(ours[0], theirs[0], atol=1e-7)
    np.testing.assert_array_equal(x0, before)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("solver", ["lsmr", "lsqr", "cgls"])
def test_types_and_several_right_hand_sides(solver, dtype):
    A = random_csr(60, 25, dtype, seed=5, density=0.3)
    b = vector(60, dtype, columns=3)
    tolerance = 1e-4 if np.dtype(dtype).itemsize // (1 + (np.dtype(dtype).kind == "c")) == 4 else 1e-11
    result = spmv.least_squares(A, b, solver=solver, atol=tolerance, btol=tolerance)
    assert result.converged and result.stop == 2 and result.x.dtype == dtype and result.x.shape == (25, 3)
    known = np.linalg.lstsq(A.toarray(), b, rcond=None)[0]
    np.testing.assert_allclose(result.x, known, atol=200 * tolerance)
    assert len(result.columns) == 3
    single = spmv.least_squares(A, np.ascontiguousarray(b[:, 1]), solver=solver, atol=tolerance, btol=tolerance)
    np.testing.assert_array_equal(single.x, result.x[:, 1])
    assert single.columns == () and single.x.shape == (25,)


def test_the_smallest_norm():
    for A in CASES["grid"], CASES["wide"], sp.csr_array(sp.hstack([CASES["tall"], CASES["tall"]])):
        b = vector(A.shape[0])
        known = np.linalg.lstsq(A.toarray(), b, rcond=1e-10)[0]
        result = spmv.least_squares(A, b, atol=1e-13, btol=1e-13)
        assert not result.scaled
        np.testing.assert_allclose(result.x, known, atol=1e-7 * np.linalg.norm(known))


def test_columns_are_scaled_where_that_cannot_change_x():
    A = sp.csr_array(sp.vstack([sp.eye_array(100), random_csr(150, 100, seed=6)]) @ sp.diags_array(10.0 ** (np.arange(100) % 7 - 3)))
    b = vector(250)
    known = np.linalg.lstsq(A.toarray(), b, rcond=None)[0]
    scaled = spmv.least_squares(A, b, atol=1e-12, btol=1e-12)
    plain = spmv.least_squares(A, b, atol=1e-12, btol=1e-12, scaling="none", maxiter=20000)
    assert scaled.scaled and "full column rank" in scaled.why_scaling and not plain.scaled
    assert scaled.iterations * 5 < plain.iterations
    assert abs(scaled.x / known - 1).max() < 1e-6


def test_failures():
    A = CASES["tall"]
    b = vector(400)
    short = spmv.least_squares(A, b, maxiter=3)
    assert not short.converged and short.status == "SPMV_ERROR_ITERATIONS" and short.stop == 7 and "limit" in short.message
    assert spmv.lsmr(A, b, maxiter=3)[1:3] == (7, 3)
    hilbert = sp.csr_array(1.0 / (np.arange(12)[:, None] + np.arange(12) + 1))
    assert spmv.lsqr(hilbert, (-1.0) ** np.arange(12), atol=1e-15, btol=1e-15, conlim=1e4)[1] == 3
    seen = []
    stopped = spmv.least_squares(A, b, on_residual=lambda k, r, g: seen.append((k, r, g)) or k == 4)
    assert stopped.status == "SPMV_CANCELLED" and [k for k, _, _ in seen] == list(range(5))
    assert seen[0][1] == pytest.approx(np.linalg.norm(b)) and seen[0][2] == pytest.approx(np.linalg.norm(A.T @ b))
    with pytest.raises(ValueError, match="400 rows"):
        spmv.lsmr(A, vector(399))
    with pytest.raises(ValueError, match="x0 has the shape"):
        spmv.lsmr(A, b, x0=vector(151))
    with pytest.raises(ValueError, match="damp"):
        spmv.lsmr(A, b, damp=-1)
    with pytest.raises(ValueError, match="b"):
        spmv.lsmr(A, np.full(400, np.nan))
    with pytest.raises(ValueError, match="scaling"):
        spmv.least_squares(A, b, scaling="rows")
    with pytest.raises(NotImplementedError, match="calc_var"):
        spmv.lsqr(A, b, calc_var=True)
    with pytest.raises(ValueError, match="spmv.least_squares"):
        spmv.solve(A, b)


def test_show_prints_as_it_goes(capsys):
    spmv.lsmr(CASES["tall"], vector(400), show=True)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("lsmr") and lines[1].split()[0] == "0" and "least-squares" in lines[-1]

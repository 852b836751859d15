# SPDX-License-Identifier: BSD-3-Clause
"""Eigenvalues and singular values: SciPy's signatures and values; types, mass matrices, errors."""

import inspect

import numpy as np
import pytest
import spmv
from conftest import DTYPES, random_csr

sp = pytest.importorskip("scipy.sparse")
la = pytest.importorskip("scipy.sparse.linalg")


def line(n):
    return sp.diags_array([-np.ones(n - 1), 2 * np.ones(n), -np.ones(n - 1)], offsets=[-1, 0, 1])


def plane(k):
    return sp.csr_array(sp.kron(line(k), sp.eye_array(k + 1)) + sp.kron(sp.eye_array(k), line(k + 1)))


def plate(k):
    """The bending of a plate with simple supports: eigenvalues are squares of those of the plane."""
    A = plane(k)
    return sp.csr_array(A @ A), np.sort(np.linalg.eigvalsh(A.toarray()) ** 2)


def check(A, w, v, M=None, tol=1e-7):
    right = v if M is None else M @ v
    assert np.abs(A @ v - right * w).max() <= tol * np.abs(w).max()
    assert np.abs(v.conj().T @ right - np.eye(len(w))).max() < 1e-5


@pytest.mark.parametrize("name", ["eigsh", "svds"])
def test_signatures_are_those_of_scipy(name):
    ours = inspect.signature(getattr(spmv, name)).parameters
    theirs = inspect.signature(getattr(la, name)).parameters
    own = ("solver", "precond", "on_residual", "device") if name == "eigsh" else ("on_residual", "device")
    shared = [n for n in theirs if n != "random_state"]
    assert [n for n in ours if n not in own or n in theirs][: len(shared)] == shared or "rng" not in theirs
    for n in shared:
        assert ours[n].default == theirs[n].default, n


@pytest.mark.parametrize("which", ["LM", "LA", "SA", "SM"])
def test_values_are_those_of_scipy(which):
    A = plane(18)
    w, v = spmv.eigsh(A, 5, which=which)
    np.testing.assert_allclose(w, np.sort(la.eigsh(A, 5, which=which, return_eigenvectors=False)), rtol=1e-9)
    assert (np.diff(w) >= 0).all()
    check(A, w, v)


def test_near_sigma_and_a_mass_matrix():
    A, M = plane(18), sp.csr_array(sp.kron(sp.eye_array(18) * 4 + line(18) * -0.5, sp.eye_array(19)))
    for sigma in None, 0.7:
        w, v = spmv.eigsh(A, 4, M, sigma, "SA" if sigma is None else "LM", solver="lanczos" if sigma else "lobpcg")
        theirs = la.eigsh(A.tocsc(), 4, M.tocsc(), sigma=sigma or 0, return_eigenvectors=False)
        np.testing.assert_allclose(w, np.sort(theirs), rtol=1e-9)
        check(A, w, v, M)
    w = spmv.eigsh(A - 0.7 * M, 4, M, -0.3, return_eigenvectors=False)
    theirs = la.eigsh((A - 0.7 * M).tocsc(), 4, M.tocsc(), sigma=-0.3, return_eigenvectors=False)
    np.testing.assert_allclose(w, np.sort(theirs), rtol=1e-8)


def test_a_plate():
    A, known = plate(19)
    w = spmv.eigsh(A, 10, which="SA", return_eigenvectors=False, solver="lobpcg", tol=1e-8)
    np.testing.assert_allclose(w, known[:10], rtol=1e-8)


def test_the_fiedler_vector_splits_a_graph():
    rng = np.random.default_rng(3)
    sides = [sp.random_array((200, 200), density=0.05, rng=rng) for _ in range(2)]
    W = sp.block_diag(sides, format="lil")
    W[5, 205] = W[17, 377] = 0.1
    W = sp.csr_array(W + W.T)
    L = sp.csr_array(sp.diags_array(W.sum(axis=0)) - W)
    w, v = spmv.eigsh(L, 2, which="SA", tol=1e-8, solver="lobpcg")
    assert abs(w[0]) < 1e-12 and 0 < w[1] < 0.01
    side = v[:, 1] > 0
    assert side[:200].all() != side[200:].all() and side[:200].any() == side[:200].all()


@pytest.mark.parametrize("dtype", DTYPES)
def test_types(dtype):
    B = random_csr(330, 330, dtype, density=0.02)
    A = sp.csr_array(B + B.conj().T)
    w, v = spmv.eigsh(A, 3, which="LA")
    assert v.dtype == A.dtype and w.dtype == np.finfo(dtype).dtype and isinstance(v, np.ndarray)
    single = np.finfo(dtype).eps > 1e-10
    known = np.linalg.eigvalsh(A.astype("c16").toarray())[-3:]
    np.testing.assert_allclose(w, known, rtol=1e-5 if single else 1e-10)
    check(A, w, v, tol=1e-4 if single else 1e-8)


@pytest.mark.parametrize("shape", [(400, 320), (320, 400)])
def test_singular_values(shape):
    A = random_csr(*shape, density=0.03)
    u, s, vh = spmv.svds(A, 4)
    np.testing.assert_allclose(s, np.sort(la.svds(A, 4, return_singular_vectors=False)), rtol=1e-9)
    assert u.shape == (shape[0], 4) and vh.shape == (4, shape[1])
    assert np.abs(A @ vh.T - u * s).max() < 1e-8 * s[-1] and np.abs(A.T @ u - vh.T * s).max() < 1e-8 * s[-1]
    assert spmv.svds(A, 4, return_singular_vectors="u")[2] is None
    np.testing.assert_array_equal(spmv.svds(A, 4, return_singular_vectors=False), s)


def test_starts_and_callbacks():
    A = plane(20)
    w, v = spmv.eigsh(A, 3, which="SA", solver="lobpcg")
    calls = []
    w2 = spmv.eigsh(
        A, 3, which="SA", v0=v, solver="lobpcg", return_eigenvectors=False,
        on_residual=lambda iteration, residual: calls.append((iteration, residual)),
    )  # fmt: skip
    np.testing.assert_allclose(w, w2, rtol=1e-9)
    assert calls[0][0] == 0 and calls[0][1] < 1


def test_errors():
    A = plane(18)
    with pytest.raises(spmv.EigenError, match="not converged") as caught:
        spmv.eigsh(A, 4, which="SA", maxiter=2, solver="lobpcg")
    assert len(caught.value.pairs) == 4 and len(caught.value.eigenvalues) < 4
    with pytest.raises(ValueError, match="symmetric"):
        spmv.eigsh(random_csr(400, 400), 2)
    with pytest.raises(ValueError, match="square"):
        spmv.eigsh(random_csr(20, 30), 2)
    with pytest.raises(ValueError, match="k is 400"):
        spmv.eigsh(A, 400)
    with pytest.raises(ValueError, match="which"):
        spmv.eigsh(A, 2, which="XX")
    for bad in {"which": "BE"}, {"Minv": A}, {"sigma": 1, "which": "SA"}, {"mode": "buckling"}:
        with pytest.raises(NotImplementedError):
            spmv.eigsh(A, 2, **bad)
    with pytest.raises(NotImplementedError, match="largest"):
        spmv.svds(A, 2, which="SM")
    with pytest.raises(ValueError, match="v0"):
        spmv.eigsh(A, 2, v0=np.ones(3))
    with pytest.raises(Exception, match="positive definite"):
        spmv.eigsh(A, 2, sp.csr_array(-sp.eye_array(A.shape[0])))

# SPDX-License-Identifier: BSD-3-Clause
"""What users of other packages have complained about."""

import subprocess
import sys

import numpy as np
import pytest
import spmv
from conftest import calls_of_python, random_csr, vector

sp = pytest.importorskip("scipy.sparse")


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("array", [sp.csr_array, sp.csr_matrix, sp.coo_array, sp.csc_array])
def test_64_bit_indices_are_no_crash(bits, array):
    """pypardiso 77 and 79: csr_array with 64-bit indices segfaults."""
    A = array(random_csr(50, 50))
    for name in ("indices", "indptr", "row", "col"):
        if getattr(A, name, None) is not None and array is not sp.coo_array:
            setattr(A, name, getattr(A, name).astype(f"int{bits}"))
    x = vector(50)
    np.testing.assert_allclose(spmv.Plan(A) @ x, A @ x, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(spmv.spgemm(A, A).toarray(), (A @ A).toarray(), rtol=1e-12, atol=1e-14)
    S = spmv.generate("poisson2d:10")
    S.indices, S.indptr = S.indices.astype(f"int{bits}"), S.indptr.astype(f"int{bits}")
    x, info = spmv.cg(S, np.ones(100), rtol=1e-8)
    assert info == 0


def test_64_bit_indices_that_do_not_fit_are_an_error():
    with pytest.raises(ValueError, match="columns|indices"):
        spmv.Plan((np.ones(1), np.array([2**31]), np.array([0, 1])), shape=(1, 2**31 + 5))
    with pytest.raises(ValueError, match="indices"):
        spmv.Plan((np.ones(1), np.array([2**32]), np.array([0, 1])), shape=(1, 5))  # 0 in 32 bits


@pytest.mark.filterwarnings("ignore::spmv.AccuracyWarning")  # right, for this matrix
@pytest.mark.parametrize("rtol", [1e-6, 1e-10, 1e-14, 1e-17])
def test_success_means_a_small_true_residual(rtol):
    """cupy 7512: cg reports success although the true residual is above the tolerance."""
    n = 400
    diagonal = 10.0 ** np.linspace(0, 12, n)
    rng = np.random.default_rng(7)
    U = np.linalg.qr(rng.standard_normal((n, n)))[0]
    dense = (U * diagonal) @ U.T
    A = sp.csr_array((dense + dense.T) / 2)
    b = A @ rng.standard_normal(n)
    x, info = spmv.cg(A, b, rtol=rtol, maxiter=4000)
    residual, tolerance = np.linalg.norm(b - A @ x), rtol * np.linalg.norm(b)
    # SciPy adds in another order: allow for the rounding of its product
    rounding = n * np.finfo(float).eps * np.linalg.norm(abs(A) @ abs(x))
    assert info > 0 or residual <= tolerance + rounding
    result = spmv.solve(A, b, rtol=rtol, maxiter=4000, preconditioner="none")
    assert result.converged == (result.true_residual <= result.tolerance)
    assert result.converged == (info == 0)


def test_installs_and_runs_without_anything_but_numpy():
    """torch-fem 51: a solver on GPUs without wheels, whose setup is complicated."""
    script = """
import sys
class Only:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("scipy", "cupy", "torch", "jax", "cffi", "numba"):
            raise ImportError(name)
sys.meta_path.insert(0, Only())
import numpy as np, spmv
A = spmv.generate("poisson2d:20")
assert type(A) is spmv.CSR and A.shape == (400, 400) and A.toarray()[0, 0] == 4
plan = spmv.Plan(A)
y = plan @ np.ones(400)
assert np.allclose(plan.T @ np.ones(400), y) and np.allclose(plan.matvec(np.ones(400)), y)
x, info = spmv.cg(A, y, rtol=1e-10, M="ic0")
assert info == 0 and np.allclose(x, 1)
assert spmv.spgemm(A, A).toarray()[0, 0] == 18
assert (plan.dot(np.ones((400, 2))) == y[:, None]).all()
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr.decode()
    from importlib import metadata

    try:
        needs = [r for r in metadata.requires("spmv") or [] if "extra" not in r]
    except metadata.PackageNotFoundError:
        pytest.skip("runs from the source tree")
    assert [r.partition(">")[0] for r in needs] == ["numpy"]


def test_iterations_run_without_python():
    """amgcl 305 and torch-fem 63: a program spends its time in a loop of Python, call by call.

    test_gpu.py has the same test with arrays on a GPU.
    """
    A = spmv.generate("poisson2d:60")
    b = np.ones(A.shape[0])
    la = pytest.importorskip("scipy.sparse.linalg")
    diagonal = A.diagonal()
    M = la.LinearOperator(A.shape, matvec=lambda r: r / diagonal)
    few, many = (calls_of_python(k, lambda k: spmv.cg(A, b, rtol=1e-14, maxiter=k, M=M)) for k in (10, 60))
    assert many >= few + 50  # an operator of Python is called in each iteration
    for name in (None, "jacobi", "ic0", "amg"):
        few, many = (calls_of_python(k, lambda k: spmv.cg(A, b, rtol=1e-14, maxiter=k, M=name)) for k in (4, 8))
        assert few == many, name


def test_new_values_keep_the_solver():
    """A time step with new values does not begin from nothing."""
    A = spmv.generate("diffusion2d:40,50")
    solver = spmv.Solver(A, preconditioner="ic0", rtol=1e-10)
    for step in range(1, 4):
        solver.update_values(A.data * step)
        result = solver.solve(np.ones(1600))
        assert result.converged and result.preconditioner == "ic0"
        np.testing.assert_allclose(step * (A @ result.x), 1, atol=1e-6)


def test_multigrid_needs_no_other_package():
    """pyamg 260: a solver of another package, whose preconditioner must be installed as well."""
    result = spmv.solve(spmv.generate("poisson2d:200"), np.ones(40000), preconditioner="amg")
    assert result.preconditioner == "amg" and result.converged and result.iterations < 25


def test_a_preconditioner_that_is_missing_says_so():
    """pyamg 260: what is not there is an error with a remedy, not another method."""
    A = spmv.generate("poisson2d:20")
    with pytest.raises(ValueError, match="there are: auto"):
        spmv.solve(A, np.ones(400), preconditioner="multigrid")

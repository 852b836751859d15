# SPDX-License-Identifier: BSD-3-Clause
"""Plans: products of every kind of matrix and vector, against SciPy."""

import copy
import gc
import pickle

import numpy as np
import pytest
import spmv
from conftest import DTYPES, bound, outs_that_cannot_be_written, random_csr, vector

sp = pytest.importorskip("scipy.sparse")
la = pytest.importorskip("scipy.sparse.linalg")


def check(A, x, y):
    reference = A @ x
    assert y.shape == reference.shape and y.dtype == reference.dtype
    limits = bound(sp.csr_array(A), x, y.dtype)
    assert np.all(abs(y - reference) <= limits)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(0, 0), (0, 5), (5, 0), (1, 1), (33, 47), (1000, 300), (300, 1000)])
def test_products(dtype, shape):
    A = random_csr(*shape, dtype)
    plan = spmv.Plan(A)
    assert plan.shape == shape and plan.dtype == dtype and plan.nnz == A.nnz
    x, t = vector(shape[1], dtype), vector(shape[0], dtype)
    check(A, x, plan @ x)
    check(A.T, t, plan.T @ t)
    check(A.conj().T, t, plan.H @ t)
    check(A.conj().T, t, plan.rmatvec(t))
    X = vector(shape[1], dtype, columns=3)
    check(A, X, plan @ X)
    check(A, X[:, :1], plan @ X[:, :1])
    assert (plan @ np.empty((shape[1], 0), dtype)).shape == (shape[0], 0)


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "bsr", "dia", "dok", "lil"])
@pytest.mark.parametrize("array", [True, False])
def test_formats_of_scipy(form, array):
    A = random_csr(40, 30)
    B = A.asformat(form) if array else sp.csr_matrix(A).asformat(form)
    x = vector(30)
    check(A, x, spmv.Plan(B) @ x)


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int32", "int64", "bool"])
def test_matrices_of_other_types(dtype):
    A = random_csr(40, 30)
    A.data = (100 * A.data).astype(dtype)
    plan = spmv.Plan(A)
    assert plan.dtype == "float64"
    x = vector(30)
    np.testing.assert_allclose(plan @ x, A.astype("float64") @ x, rtol=1e-12, atol=1e-5)


def halves(name):
    """The element type of a 16-bit type in NumPy."""
    return np.dtype(pytest.importorskip("ml_dtypes").bfloat16) if name == "bfloat16" else np.dtype(name)


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_16_bit_types(name):
    dtype = halves(name)
    A = random_csr(40, 30)
    narrow = A.data.astype(dtype)
    parts = (narrow, A.indices, A.indptr)
    exact = A.copy()
    exact.data = narrow.astype("float64")
    half = 2.0**-8 if name == "bfloat16" else 2.0**-11
    plan = spmv.Plan(parts, shape=A.shape)
    x = vector(30).astype(dtype)
    y = plan @ x
    assert plan.dtype == dtype and y.dtype == dtype and name in repr(plan)
    np.testing.assert_allclose(y.astype("float64"), exact @ x.astype("float64"), rtol=2 * half, atol=1e-4)
    several = spmv.Plan(parts, shape=A.shape, vectors=3)
    X = np.stack([x, x, x], axis=1)
    np.testing.assert_array_equal((several @ X)[:, 1], y)
    start = np.ones(40, dtype)
    out = plan.apply(x, alpha=2.0, beta=-1.0, out=start)
    expected = 2 * (exact @ x.astype("float64")) - 1
    np.testing.assert_allclose(out.astype("float64"), expected, rtol=2 * half, atol=4 * half)
    with pytest.raises(TypeError, match=f"float32, {name} is needed"):
        plan @ x.astype("float32")
    with pytest.raises(TypeError, match="values of the type"):
        spmv.Plan(parts, "bfloat16" if name == "float16" else "float16", shape=A.shape)
    s = spmv.SDDMM(parts, 5, shape=A.shape, values=False)
    left, right = np.ones((40, 5), dtype), np.ones((30, 5), dtype)
    np.testing.assert_array_equal(s.multiply(left, right).astype("float64"), 5)


def test_16_bit_tensors():
    torch = pytest.importorskip("torch")
    A = random_csr(40, 30)
    for dtype in (torch.bfloat16, torch.float16):
        values = torch.from_numpy(A.data).to(dtype)
        made = torch.sparse_csr_tensor(
            torch.from_numpy(A.indptr).long(), torch.from_numpy(A.indices).long(), values, A.shape, dtype=dtype
        )
        x = torch.from_numpy(vector(30)).to(dtype)
        y = spmv.Plan(made) @ x
        exact = made.to(torch.float64).to_dense() @ x.to(torch.float64)
        assert y.dtype == dtype
        torch.testing.assert_close(y.to(torch.float64), exact, rtol=2.0**-7, atol=1e-3)


def test_mixed_precision():
    A = random_csr(100, 100, "float32")
    plan = spmv.Plan(A, "float64")
    x = vector(100)
    check(A.astype("float64"), x, plan @ x)
    check(A.astype("complex128"), vector(100, "complex128"), spmv.Plan(A, "complex128") @ vector(100, "complex128"))
    check(A, vector(100, "float32"), spmv.Plan(A.astype("float64"), np.float32) @ vector(100, "float32"))


def test_csr_is_not_copied():
    A = random_csr(500, 500)
    plan = spmv.Plan(A, method="tiles")
    assert plan._matrix.data.address == A.data.ctypes.data
    assert plan._matrix.indices.address == A.indices.ctypes.data
    assert plan._matrix.indptr.address == A.indptr.ctypes.data
    copied = spmv.Plan(A, copy=True)
    before = copied @ np.ones(500)
    A.data[:] = 7
    np.testing.assert_array_equal(copied @ np.ones(500), before)
    np.testing.assert_allclose(plan @ np.ones(500), 7.0 * np.diff(A.indptr))


@pytest.mark.parametrize("bits", [32, 64])
def test_a_copy_is_made_once(bits):
    """copy=True: all that is made from the object later uses the copy, not the caller's arrays."""
    A = spmv.generate("poisson2d:10")
    A.indices, A.indptr = A.indices.astype(f"int{bits}"), A.indptr.astype(f"int{bits}")
    x, b = vector(100), vector(100, seed=3)
    new = 2 * A.data
    plan, solver, whole = spmv.Plan(A, copy=True), spmv.Solver(A, copy=True), A.copy()
    for part in (A.data, A.indices, A.indptr):
        part[:] = 2**30  # out of range, where that is an index
    check(whole, x, plan @ x)
    check(whole, x, plan.T @ x)
    check(whole, np.column_stack([x, b]), plan @ np.column_stack([x, b]))
    solution = solver.solve(b, callback=lambda xk: None).x
    assert np.linalg.norm(b - whole @ solution) < 1e-6
    assert np.linalg.norm(b - whole @ solver.solve(b + 0j).x) < 1e-6
    whole.data = new.copy()
    plan.update_values(new)
    solver.update_values(new)
    new[:] = np.nan
    check(whole, x, plan @ x)
    check(whole, x, plan.T @ x)
    assert np.linalg.norm(b - whole @ solver.solve(b, callback=lambda xk: None).x) < 1e-6
    assert np.linalg.norm(b - whole @ (solver.H @ b)) < 1e-6


def test_the_plan_keeps_its_arrays():
    A = random_csr(500, 500)
    x = vector(500)
    expected = A @ x
    plan = spmv.Plan(A)
    del A
    gc.collect()
    junk = [np.full(5000, np.nan) for _ in range(50)]
    np.testing.assert_allclose(plan @ x, expected, rtol=1e-12)
    transposed = plan.T
    del plan, junk
    gc.collect()
    assert transposed.T.shape == (500, 500)


def test_out_alpha_beta():
    A = random_csr(60, 50)
    plan, x, y = spmv.Plan(A), vector(50), vector(60, seed=3)
    expected = 2 * (A @ x) - 3 * y
    given = y.copy()
    assert plan.apply(x, out=given, alpha=2, beta=-3) is given
    np.testing.assert_allclose(given, expected, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(plan.apply(x, alpha=0.5), 0.5 * (A @ x), rtol=1e-12)
    matrix = np.empty((60, 2))
    assert plan.apply(vector(50, columns=2), out=matrix) is matrix
    check(A, vector(50, columns=2), matrix)
    complex_plan = spmv.Plan(A.astype(complex))
    z = vector(50, "complex128")
    np.testing.assert_allclose(complex_plan.apply(z, alpha=1 - 2j), (1 - 2j) * (A @ z), rtol=1e-12)


def test_vectors():
    A = random_csr(60, 50)
    plan = spmv.Plan(A, vectors=4)
    for columns in (4, 1, 7, 4, None):
        x = vector(50, columns=columns)
        check(A, x, plan @ x)
    check(A.T, vector(60, columns=4), plan.T @ vector(60, columns=4))


def test_strided_and_converted_x():
    A = random_csr(60, 50)
    plan, x = spmv.Plan(A), vector(100)
    check(A, x[::2], plan @ x[::2])
    check(A, x[50:][::-1], plan @ x[50:][::-1])
    check(A, np.asfortranarray(vector(50, columns=3)), plan @ np.asfortranarray(vector(50, columns=3)))
    np.testing.assert_allclose(plan @ np.arange(50), A @ np.arange(50.0), rtol=1e-12)
    np.testing.assert_allclose(plan @ list(range(50)), A @ np.arange(50.0), rtol=1e-12)
    swapped = x[:50].astype(">f8")
    check(A, x[:50], plan @ swapped)
    unaligned = np.frombuffer(b"\0" + x[:50].tobytes(), np.uint8)[1:].view("f8")
    check(A, x[:50], plan @ unaligned)
    with pytest.raises(ValueError, match="contiguous"):
        plan.apply(x[:50], out=np.empty(120)[::2])


@pytest.mark.parametrize("dtype", DTYPES)
def test_fortran_order_is_not_copied(dtype, monkeypatch):
    """The library reads the columns of X where they are, with few entries in a row and with many."""
    from spmv import _arrays

    A = random_csr(600, 500, dtype, density=0.01)
    dense = random_csr(60, 50, dtype, density=0.5)
    X = np.asfortranarray(vector(500, dtype, columns=7))
    converted = []
    original = _arrays._converted
    monkeypatch.setattr(_arrays, "_converted", lambda v, *rest: converted.append(v.shape) or original(v, *rest))
    for plan in (spmv.Plan(A), spmv.Plan(A, vectors=7), spmv.Plan(A.T.tocsr(), transpose=True)):
        Y = plan @ X
        check(A, X, Y)
        assert Y.flags.f_contiguous and Y.dtype == dtype
        np.testing.assert_array_equal(plan.apply(X, alpha=2), 2 * Y)
    for order in "CF":
        out = np.ones((600, 7), dtype, order)
        assert spmv.Plan(A).apply(X, out=out, beta=0) is out
        check(A, X, out)
        out = np.ones((600, 7), dtype, order)
        spmv.Plan(A).apply(X.copy("C"), out=out, beta=3)
        limits = bound(A, X, out.dtype) + 32 * np.finfo(dtype).eps  # with the rounding of the 3
        assert np.all(abs(out - (A @ X + 3)) <= limits)
    few = X[:50].copy("F")
    Y = spmv.Plan(dense) @ few
    check(dense, few, Y)
    assert Y.flags.f_contiguous
    np.testing.assert_array_equal(Y, spmv.Plan(dense) @ few.copy("C"))
    assert not converted
    check(A, X[:, ::-1], spmv.Plan(A) @ X[:, ::-1])
    assert converted == [(500, 7)]


@pytest.mark.parametrize("beta", [None, 2.0])
def test_out_that_cannot_be_written_is_refused(beta):
    plan, x = spmv.Plan(random_csr(60, 50)), vector(50)
    for out, error, match in outs_that_cannot_be_written(60):
        before = np.array(out)
        with pytest.raises(error, match=match):
            plan.apply(x, out=out, beta=beta)
        np.testing.assert_array_equal(np.array(out), before)
    with pytest.raises(ValueError, match="C or Fortran order"):
        plan.apply(np.ones((50, 2)), out=np.zeros((120, 2))[::2], beta=beta)


def test_out_must_not_be_an_array_of_the_matrix():
    A = sp.csr_array(np.arange(1.0, 26).reshape(5, 5))
    kept = A.data.copy()
    plan = spmv.Plan(A)
    wide = spmv.Plan(A, vectors=5)
    values = np.arange(25.0)
    for use in (lambda: plan.apply(np.ones(5), out=A.data[20:]), lambda: wide.apply(np.ones((5, 5)), out=A.data.reshape(5, 5))):
        with pytest.raises(ValueError, match="out overlaps the arrays of the matrix"):
            use()
    np.testing.assert_array_equal(A.data, kept)
    plan.update_values(values)
    with pytest.raises(ValueError, match="out overlaps the arrays of the matrix"):
        plan.apply(np.ones(5), out=values[:5])
    plan.apply(np.ones(5), out=A.data[:5])
    spmv.Plan(A, copy=True).apply(np.ones(5), out=A.data[:5])


def test_wrong_arguments():
    A = random_csr(60, 50)
    plan = spmv.Plan(A)
    with pytest.raises(ValueError, match=r"shape \(49,\).*50"):
        plan @ np.ones(49)
    with pytest.raises(ValueError, match="shape"):
        plan @ np.ones((50, 2, 2))
    with pytest.raises(ValueError, match="shape"):
        plan @ np.float64(3)
    with pytest.raises(TypeError, match="complex128"):
        plan @ np.ones(50, complex)
    with pytest.raises(TypeError, match="float64"):
        spmv.Plan(A, "float32") @ np.ones(50)
    with pytest.raises(ValueError, match=r"out has the shape"):
        plan.apply(np.ones(50), out=np.empty(61))
    with pytest.raises(TypeError, match=r"out has the type float32"):
        plan.apply(np.ones(50), out=np.empty(60, np.float32))
    with pytest.raises(ValueError, match="beta needs out"):
        plan.apply(np.ones(50), beta=1)
    with pytest.raises(TypeError):
        plan @ "text"
    with pytest.raises(TypeError, match="sparse"):
        plan.apply(A)
    shared = np.zeros(110)
    with pytest.raises(ValueError, match="overlap"):
        plan.apply(shared[:50], out=shared[40:100])
    with pytest.raises(TypeError):
        spmv.Plan("A.mtx")
    with pytest.raises(TypeError, match="not a matrix"):
        spmv.Plan(np.eye(3))
    with pytest.raises(ValueError, match="there are|unknown"):
        spmv.Plan(A, method="fast")
    with pytest.raises(ValueError, match="transpose"):
        spmv.Plan(A, transpose="X")
    with pytest.raises(ValueError, match="device"):
        spmv.Plan(A, device="tpu")
    with pytest.raises(ValueError, match="vectors"):
        spmv.Plan(A, vectors=0)
    with pytest.raises(TypeError, match="int32"):
        spmv.Plan(A, np.int32)
    with pytest.raises(TypeError, match="complex matrix"):
        spmv.Plan(A.astype(complex), np.float64)
    with pytest.raises(TypeError, match="longdouble|float128"):
        spmv.Plan(A.astype(np.longdouble))
    if not spmv.cuda_built():
        with pytest.raises(RuntimeError, match="cuda") as raised:
            spmv.Plan(A, device="cuda")
        assert "spmv-cu13" in raised.value.__notes__[0]


def test_arrays_that_are_no_matrix():
    """Everything that would make the library read outside of the arrays is refused."""
    data, indices, indptr = np.ones(4), np.array([0, 1, 0, 2]), np.array([0, 1, 2, 4])

    def plan(data=data, indices=indices, indptr=indptr, shape=(3, 3)):
        return spmv.Plan((data, indices, indptr), shape=shape)

    np.testing.assert_array_equal(plan() @ np.ones(3), [1, 1, 2])
    for wrong in (-1, 3, 2**31, 2**32, 2**62, -(2**63)):
        with pytest.raises(ValueError, match="indices|column"):
            plan(indices=np.array([0, 1, wrong, 2]))
    with pytest.raises(ValueError, match="column|row"):
        plan(indices=np.array([0, 1, 7, 2], np.int32))
    for wrong in ([0, 1, 2, 5], [0, 1, 2, 2**40], [1, 1, 2, 4], [0, 3, 2, 4], [0, 1, 2, -4], [0, -1, 2, 4]):
        with pytest.raises(ValueError):
            plan(indptr=np.array(wrong))
    with pytest.raises(ValueError, match="indptr has"):
        plan(indptr=indptr[:3])
    with pytest.raises(ValueError, match="data has"):
        plan(data=data[:3])
    with pytest.raises(ValueError, match="indices has"):
        plan(indices=indices[:2])
    with pytest.raises(ValueError, match="dimensions"):
        plan(data=np.ones((4, 1)))
    with pytest.raises(TypeError, match="integers"):
        plan(indices=indices.astype(float))
    with pytest.raises(ValueError, match="shape"):
        spmv.Plan((data, indices, indptr))
    with pytest.raises(ValueError, match="shape|sizes"):
        plan(shape=(3, -3))
    for wrong in ("ab", (3.5, 3), (3, 3, 3), (3,), 3):
        with pytest.raises(ValueError, match=r"shape is .*, not \(rows, columns\), two integers"):
            plan(shape=wrong)
    with pytest.raises(ValueError, match="32-bit"):
        plan(shape=(3, 2**31))
    np.testing.assert_array_equal(plan(indices=indices.astype(np.uint16)) @ np.ones(3), [1, 1, 2])
    np.testing.assert_array_equal(plan(indptr=indptr.astype(np.uint8)) @ np.ones(3), [1, 1, 2])


def test_update_values():
    A = random_csr(80, 80)
    plan, x = spmv.Plan(A), vector(80)
    transposed = plan.T
    block = plan @ vector(80, columns=3)
    for factor in (2.0, 3.0):
        new = A.data * factor
        plan.update_values(new)
        np.testing.assert_allclose(plan @ x, factor * (A @ x), rtol=1e-12)
        np.testing.assert_allclose(plan @ vector(80, columns=3), factor * block, rtol=1e-11)
        np.testing.assert_allclose(plan.T @ x, factor * (A.T @ x), rtol=1e-11)
    np.testing.assert_allclose(transposed @ x, A.T @ x, rtol=1e-11)  # has kept the old values
    plan = spmv.Plan(A, transpose=True)
    plan.update_values(A.data * 2)
    plan.update_values(A.data * 5)
    np.testing.assert_allclose(plan @ x, 5 * (A.T @ x), rtol=1e-11)
    with pytest.raises(ValueError, match="entries"):
        plan.update_values(np.ones(3))
    with pytest.raises(TypeError, match="complex"):
        plan.update_values(np.ones(A.nnz, complex))
    np.testing.assert_allclose(plan @ x, 5 * (A.T @ x), rtol=1e-11)


def test_linear_operator():
    A = spmv.generate("poisson2d:20")
    plan = spmv.Plan(A)
    assert isinstance(plan, la.LinearOperator)
    x = vector(400)
    np.testing.assert_allclose(plan.matvec(x), A @ x)
    np.testing.assert_allclose(plan.dot(x), A @ x)
    np.testing.assert_allclose(plan(x), A @ x)
    np.testing.assert_allclose((2 * plan) @ x, 2 * (A @ x))
    np.testing.assert_allclose((plan @ plan) @ x, A @ (A @ x))
    np.testing.assert_allclose((plan + plan).T @ x, 2 * (A @ x))
    solution, info = la.cg(plan, A @ x, rtol=1e-12)
    assert info == 0 and abs(solution - x).max() < 1e-9
    assert abs(la.eigsh(plan, k=1)[0][0] - la.eigsh(A, k=1)[0][0]) < 1e-9
    B = random_csr(60, 40)
    np.testing.assert_allclose(la.lsqr(spmv.Plan(B), np.ones(60))[0], la.lsqr(B, np.ones(60))[0], rtol=1e-8)


def test_describe():
    plan = spmv.Plan(spmv.generate("poisson2d:20"))
    about = plan.describe()
    assert about["method"] in spmv.Plan.methods() and about["why"] and about["rows"] == 400
    assert "omp" in about["device"] and "400 x 400" in repr(plan)


@pytest.mark.parametrize("method", spmv.Plan.methods())
def test_every_method(method):
    A = random_csr(200, 200)
    x = vector(200)
    check(A, x, spmv.Plan(A, method=method) @ x)


def test_ref():
    A = random_csr(200, 200)
    x = vector(200)
    check(A, x, spmv.Plan(A, device="ref") @ x)


def test_complex_transpose_of_conjugate():
    plan = spmv.Plan(random_csr(20, 20, "complex128"))
    assert plan.H.H.shape == plan.shape
    with pytest.raises(NotImplementedError, match="conjugate"):
        plan.H.T


def copies_of(thing):
    return copy.copy(thing), copy.deepcopy(thing), pickle.loads(pickle.dumps(thing))


@pytest.mark.parametrize("dtype", DTYPES)
def test_pickle_and_copy(dtype):
    A, x = random_csr(20, 30, dtype), vector(30, dtype)
    plan = spmv.Plan(A, method="tiles")
    for other in copies_of(plan):
        assert other is not plan and other.describe()["method"] == "tiles" and other.dtype == plan.dtype
        assert other.context is plan.context
        np.testing.assert_array_equal(other @ x, plan @ x)
        np.testing.assert_array_equal(other.H @ x[:20], plan.H @ x[:20])
    plan.update_values(2 * A.data)  # of the present values
    for other, owns in zip(copies_of(plan.T), (False, True, True)):
        np.testing.assert_array_equal(other @ x[:20], plan.T @ x[:20])
        assert np.shares_memory(other._matrix.indices.array, A.indices) != owns
    other.update_values(A.data)
    np.testing.assert_allclose(2 * (other @ x[:20]), plan.T @ x[:20], rtol=1e-5)


def test_pickle_and_copy_of_others():
    A, X = random_csr(20, 20), vector(20, columns=3)
    mixed = spmv.Plan(A.astype("float32"), dtype="float64", vectors=3, copy=True, device=spmv.Context(threads=1))
    for other in copies_of(mixed):
        np.testing.assert_array_equal(other @ X, mixed @ X)
        assert other._copy and other.dtype == np.float64 and other.context.threads == 1
    for other in copies_of(2 * spmv.Plan(A)):  # an operator of SciPy that holds a plan
        np.testing.assert_array_equal(other @ X, 2 * (A @ X))
    product = spmv.SpgemmPlan(A, A, A)
    for other in copies_of(product):
        np.testing.assert_array_equal(other.multiply(None, 2 * A.data, None).data, product.multiply(None, 2 * A.data, None).data)
    pattern = spmv.Pattern(A)
    for other in copies_of(pattern):
        assert (other.shape, other.nnz, other.context) == (pattern.shape, pattern.nnz, pattern.context)
    own = spmv.CSR(A.data, A.indices, A.indptr, A.shape)
    for matrix in (own, spmv.generate("poisson2d:5"), spmv.spgemm(A, A)):  # the last two have arrays of the library
        for other in copies_of(matrix):
            assert type(other) is type(matrix) and other.shape == matrix.shape
            np.testing.assert_array_equal(other.toarray(), matrix.toarray())
    assert copy.copy(own).data is own.data and not np.shares_memory(copy.deepcopy(own).data, own.data)

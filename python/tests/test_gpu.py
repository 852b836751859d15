# SPDX-License-Identifier: BSD-3-Clause
"""CuPy and PyTorch on a GPU; skipped where there is none.

The tests of CuPy also run on the emulated GPU of tests/emulated_gpu with the stand-in for CuPy in
tests/host_gpu (SPMV_TEST_HOST_GPU=1), which has no graphs.
"""

import copy
import os
import pickle

import numpy as np
import pytest
import spmv
from conftest import calls_of_python, random_csr, vector

EMULATED = os.environ.get("SPMV_TEST_HOST_GPU") == "1"
if not spmv.cuda_built():
    pytest.skip("this build has no CUDA", allow_module_level=True)
try:
    spmv.Context("cuda")
except RuntimeError as reason:
    pytest.skip(str(reason), allow_module_level=True)

sp = pytest.importorskip("scipy.sparse")
close = dict(rtol=1e-11, atol=1e-12)


def with_gpu(name):
    module = pytest.importorskip(name)
    if not module.cuda.is_available():
        pytest.skip(f"{name} has no GPU")
    return module


# ------------------------------------------------------------------ CuPy


@pytest.fixture
def cupy():
    return with_gpu("cupy")


def there(cupy, A, bits=32):
    from cupyx.scipy.sparse import csr_matrix

    index = np.int32 if bits == 32 else np.int64
    parts = (cupy.asarray(A.data), cupy.asarray(A.indices.astype(index)), cupy.asarray(A.indptr.astype(index)))
    return csr_matrix(parts, shape=A.shape)


@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128", "complex64"])
def test_cupy_products(cupy, dtype):
    A = random_csr(300, 200, dtype)
    plan = spmv.Plan(there(cupy, A))
    x, t, X = vector(200, dtype), vector(300, dtype), vector(200, dtype, columns=3)
    y = plan @ cupy.asarray(x)
    assert isinstance(y, cupy.ndarray) and plan.context.is_cuda
    limit = dict(rtol=1e-4, atol=1e-4) if dtype in ("float32", "complex64") else close
    np.testing.assert_allclose(y.get(), A @ x, **limit)
    np.testing.assert_allclose((plan.T @ cupy.asarray(t)).get(), A.T @ t, **limit)
    np.testing.assert_allclose((plan.H @ cupy.asarray(t)).get(), A.conj().T @ t, **limit)
    np.testing.assert_allclose((plan @ cupy.asarray(X)).get(), A @ X, **limit)


def test_cupy_is_not_copied(cupy):
    A = there(cupy, random_csr(300, 200))
    plan = spmv.Plan(A)
    assert plan._matrix.data.address == A.data.data.ptr and plan._matrix.indices.address == A.indices.data.ptr
    wide = there(cupy, random_csr(300, 200), bits=64)
    x = cupy.asarray(vector(200))
    np.testing.assert_array_equal((spmv.Plan(wide) @ x).get(), (plan @ x).get())
    out = cupy.empty(300)
    assert plan.apply(x, out=out) is out
    np.testing.assert_array_equal(out.get(), (plan @ x).get())


def test_cupy_copies_and_products(cupy):
    """A copy is made once; plans of products; several right-hand sides."""
    A = spmv.generate("poisson2d:20")
    on_gpu = there(cupy, A, bits=64)
    plan, solver = spmv.Plan(on_gpu, copy=True), spmv.Solver(on_gpu, "jacobi", copy=True)
    x, B = vector(400), vector(400, columns=3)
    on_gpu.data[:] = 7
    np.testing.assert_allclose((plan.T @ cupy.asarray(x)).get(), A @ x, **close)
    result = solver.solve(cupy.asarray(B))
    assert isinstance(result.x, cupy.ndarray) and result.converged
    np.testing.assert_allclose(A @ result.x.get(), B, atol=1e-6)
    on_gpu = there(cupy, A)
    product = spmv.SpgemmPlan(on_gpu, on_gpu).multiply(cupy.asarray(2 * A.data), None)
    np.testing.assert_allclose(product.data.get(), spmv.spgemm(2 * A, A).data, **close)
    triple = spmv.spgemm_triple(on_gpu, on_gpu, on_gpu)
    np.testing.assert_allclose(triple.data.get(), spmv.spgemm_triple(A, A, A).data, **close)
    wrong = cupy.asarray(np.where(np.arange(400) == 7, np.nan, x))
    with pytest.raises(ValueError, match="b has a NaN at index 7"):
        solver.solve(wrong)


def test_cupy_out_alpha_beta(cupy, monkeypatch):
    A = random_csr(300, 200)
    for vectors in (1, 3):
        columns = None if vectors == 1 else vectors
        plan = spmv.Plan(there(cupy, A), vectors=vectors)
        x, y = vector(200, columns=columns), vector(300, seed=3, columns=columns)
        v, out = cupy.asarray(x), cupy.asarray(y)
        with monkeypatch.context() as patch:
            patch.setattr(spmv.Plan, "_product", None)  # these arrays need no conversion
            np.testing.assert_allclose((plan @ v).get(), A @ x, **close)
            assert plan.apply(v, out=out, alpha=2, beta=-1) is out
            np.testing.assert_allclose(out.get(), 2 * (A @ x) - y, **close)
    wide = cupy.asarray(np.stack([vector(200), vector(200)], axis=1))
    plan = spmv.Plan(there(cupy, A))
    np.testing.assert_allclose((plan @ wide[:, 1]).get(), A @ vector(200), **close)
    np.testing.assert_allclose((plan @ cupy.asarray(vector(200, "float32"))).get(), A @ vector(200, "float32"), **close)
    square = spmv.Plan(there(cupy, random_csr(200, 200)))
    v = cupy.asarray(vector(250))
    with pytest.raises(ValueError, match="overlap"):
        square.apply(v[:200], out=v[50:])
    with pytest.raises(ValueError, match="beta"):
        square.apply(v[:200], beta=1)
    with pytest.raises(ValueError, match="shape"):
        square.apply(v[:200], out=v)


def test_cupy_streams(cupy):
    A = random_csr(300, 200)
    plan, x = spmv.Plan(there(cupy, A)), vector(200)
    with cupy.cuda.Stream(non_blocking=True):
        v = cupy.asarray(x)
        from spmv import _core

        y = plan @ v
        assert _core.get_stream(plan.context._handle) == cupy.cuda.get_current_stream().ptr
        cupy.cuda.Device().synchronize()
    np.testing.assert_allclose(y.get(), A @ x, **close)
    np.testing.assert_allclose((plan @ cupy.asarray(x)).get(), A @ x, **close)
    assert _core.get_stream(plan.context._handle) == 1


def test_host_arrays_with_a_plan_on_a_gpu():
    A = random_csr(300, 200)
    plan, x = spmv.Plan(A, device="cuda"), vector(200)
    y = plan @ x
    assert isinstance(y, np.ndarray) and plan.context.is_cuda
    np.testing.assert_allclose(y, A @ x, **close)
    out = np.ones(300)
    plan.apply(x, out=out, alpha=2, beta=-1)
    np.testing.assert_allclose(out, 2 * (A @ x) - 1, **close)
    np.testing.assert_allclose(plan @ vector(200, columns=2), A @ vector(200, columns=2), **close)
    plan.update_values(A.data * 3)
    np.testing.assert_allclose(plan @ x, 3 * (A @ x), **close)
    np.testing.assert_allclose(plan.T @ np.ones(300), 3 * (A.T @ np.ones(300)), **close)


def test_cupy_update_values(cupy):
    A = random_csr(300, 200)
    plan, x = spmv.Plan(there(cupy, A)), cupy.asarray(vector(200))
    for factor in (2, 5):
        plan.update_values(cupy.asarray(A.data * factor))
        np.testing.assert_allclose((plan @ x).get(), factor * (A @ x.get()), **close)
        np.testing.assert_allclose((plan.T @ cupy.asarray(np.ones(300))).get(), factor * (A.T @ np.ones(300)), **close)


@pytest.mark.parametrize("transpose", [False, True])
def test_patterns(cupy, transpose):
    """What spmv.torch and spmv.jax call, on the current stream: several products, in both orders of X."""
    A = random_csr(300, 200)
    P = spmv.Pattern(there(cupy, A))
    values, shape = np.stack([A.data, 2 * A.data]), A.shape[::-1] if transpose else A.shape
    stream, f8 = cupy.cuda.get_current_stream().ptr or 1, np.dtype("f8")
    for k, columns in ((4, False), (4, True), (1, False)):
        x = np.stack([vector(shape[1], columns=k), vector(shape[1], columns=k, seed=3)])
        v, X = cupy.asarray(values), cupy.asarray(x.swapaxes(1, 2).copy() if columns else x)
        Y = cupy.empty((2, shape[0], k))
        steps = [(a.data.ptr, 8 * a.size // 2) for a in (v, X, Y)]
        P._products(f8, transpose, k, 2, stream, *steps, columns)
        for h in range(2):
            M = sp.csr_array((values[h], A.indices, A.indptr), shape=A.shape)
            np.testing.assert_allclose(Y.get()[h], (M.T if transpose else M) @ x[h], **close)
        if k == 1:  # the same values for all: one product
            P._products(f8, transpose, k, 2, stream, (steps[0][0], 0), *steps[1:])
            M = A.T if transpose else A
            np.testing.assert_allclose(Y.get()[:, :, 0], (M @ x[:, :, 0].T).T, **close)
    host = spmv.Pattern(A, device="cuda")
    assert (host.device, host.nnz) == (P.device, P.nnz)
    q, k, y = cupy.asarray(vector(300, columns=5)), cupy.asarray(vector(200, columns=5)), cupy.empty(A.nnz)
    rows = np.repeat(np.arange(300), np.diff(A.indptr))
    for pattern in (P, host):
        pattern._sddmm(f8, 5, 1, stream, *((a.data.ptr, 0) for a in (q, k, y)))
        np.testing.assert_allclose(y.get(), (q.get()[rows] * k.get()[A.indices]).sum(axis=1), **close)
    P._softmax(f8, 1, stream, (y.data.ptr, 0), (y.data.ptr, 0))
    np.testing.assert_allclose(np.bincount(rows, y.get(), 300)[np.diff(A.indptr) > 0], 1, rtol=1e-13)


def test_backward_plans(cupy):
    """The plan that gradients use; of a matrix in host memory too."""
    A, x = random_csr(300, 200), vector(300, columns=3)
    np.testing.assert_allclose((spmv.Plan(there(cupy, A))._backward() @ cupy.asarray(x)).get(), A.T @ x, **close)
    np.testing.assert_allclose(spmv.Plan(A, device="cuda")._backward() @ x, A.T @ x, **close)


def test_wrong_arrays_on_a_gpu(cupy):
    A = random_csr(300, 200)
    plan = spmv.Plan(there(cupy, A))
    with pytest.raises(ValueError, match="shape"):
        plan @ cupy.asarray(vector(199))
    with pytest.raises(ValueError, match="cuda:0.*cpu"):
        spmv.Plan(A) @ cupy.asarray(vector(200))
    with pytest.raises(ValueError, match="cpu"):
        plan.apply(cupy.asarray(vector(200)), out=np.empty(300))
    with pytest.raises(ValueError, match="cuda:0"):
        spmv.Plan(there(cupy, A), device="cpu")
    B = random_csr(300, 200)
    B.indices[7] = 200
    with pytest.raises(ValueError, match="200|range"):
        spmv.Plan(there(cupy, B))
    B = random_csr(300, 200)
    B.indptr[7], B.indptr[8] = B.indptr[8], B.indptr[7] - 1
    with pytest.raises(ValueError, match="decreases"):
        spmv.Plan(there(cupy, B))
    wide = random_csr(300, 200)
    indices = wide.indices.astype("int64")
    indices[3] += 2**32
    with pytest.raises(ValueError):
        spmv.Plan((cupy.asarray(wide.data), cupy.asarray(indices), cupy.asarray(wide.indptr)), shape=wide.shape)


def test_cupy_solves(cupy):
    A = spmv.generate("poisson2d:16")
    x = vector(256)
    b = cupy.asarray(A @ x)
    for M in (None, "jacobi", "chebyshev", "amg"):
        solution, info = spmv.cg(there(cupy, A), b, rtol=1e-10, M=M)
        assert isinstance(solution, cupy.ndarray) and info == 0
        np.testing.assert_allclose(solution.get(), x, rtol=1e-6, atol=1e-7)
    shown = []
    solution, info = spmv.cg(there(cupy, A), b, rtol=1e-10, callback=shown.append)
    assert info == 0 and isinstance(shown[0], cupy.ndarray) and len(shown) > 5
    np.testing.assert_allclose(shown[-1].get(), solution.get(), rtol=1e-6, atol=1e-8)
    diagonal = cupy.asarray(A.diagonal())
    solution, info = spmv.cg(there(cupy, A), b, rtol=1e-10, M=lambda r: r / diagonal)
    assert info == 0
    np.testing.assert_allclose(solution.get(), x, rtol=1e-6, atol=1e-7)
    solution, info = spmv.cg(A, b.get(), rtol=1e-10, M="jacobi", device="cuda")
    assert isinstance(solution, np.ndarray) and info == 0
    warm, info = spmv.cg(there(cupy, A), b, cupy.asarray(x), rtol=1e-8)
    np.testing.assert_array_equal(warm.get(), x)
    solver = spmv.Solver(there(cupy, A), preconditioner="jacobi", rtol=1e-10)
    solver.update_values(cupy.asarray(A.data * 2))
    np.testing.assert_allclose(solver.solve(b).x.get(), x / 2, rtol=1e-6, atol=1e-7)


def test_cupy_solves_as_scipy(cupy):
    A = spmv.generate("poisson2d:16")
    x = vector(256)
    on_gpu, b = there(cupy, A), cupy.asarray(A @ x)
    for solve in (spmv.gmres, spmv.minres, spmv.bicgstab):
        for form in (on_gpu, spmv.Plan(on_gpu)):
            solution, info = solve(form, b, rtol=1e-10)
            assert isinstance(solution, cupy.ndarray) and info == 0
            np.testing.assert_allclose(solution.get(), x, rtol=1e-6, atol=1e-7)
    norms, shown = [], []
    solution, info = spmv.gmres(on_gpu, b, b, rtol=1e-10, callback=norms.append)
    assert info == 0 and norms[-1] <= 1e-10
    x0, info = spmv.gmres(on_gpu, b, rtol=1e-10, callback=shown.append, callback_type="x", restart=12)
    np.testing.assert_allclose(shown[-1].get(), x0.get(), rtol=1e-6, atol=1e-7)
    solution, info = spmv.minres(spmv.Plan(on_gpu), cupy.asarray(A @ x + x), shift=-1, rtol=1e-10, M=lambda r: 0.5 * r, check=True)
    assert info == 0
    np.testing.assert_allclose(solution.get(), x, rtol=1e-6, atol=1e-7)
    with pytest.raises(NotImplementedError, match="on a GPU"):
        spmv.minres(on_gpu, b, shift=-1)
    B = cupy.asarray(A @ vector(256, columns=6))
    result = spmv.solve(on_gpu, B, precond="amg", rtol=1e-10)
    assert result.converged and isinstance(result.x, cupy.ndarray) and len(result.columns) == 6
    np.testing.assert_allclose(result.x.get(), vector(256, columns=6), rtol=1e-6, atol=1e-6)


def test_cupy_pickle_and_copy(cupy):
    A = spmv.generate("poisson2d:16")
    x = cupy.asarray(vector(256))
    plan, solver = spmv.Plan(there(cupy, A)), spmv.Solver(there(cupy, A), "jacobi", rtol=1e-10)
    plan.update_values(cupy.asarray(3 * A.data))
    for other in (copy.copy(plan), copy.deepcopy(plan), pickle.loads(pickle.dumps(plan))):
        assert other.context is plan.context
        np.testing.assert_array_equal((other @ x).get(), (plan @ x).get())
        np.testing.assert_array_equal((other.T @ x).get(), (plan.T @ x).get())
    for other in (copy.copy(solver), pickle.loads(pickle.dumps(solver))):
        np.testing.assert_allclose(other.solve(x).x.get(), solver.solve(x).x.get(), rtol=1e-6, atol=1e-7)
    pattern = pickle.loads(pickle.dumps(spmv.Pattern(there(cupy, A))))
    assert pattern.device == plan.context.device and pattern.nnz == A.nnz
    product = spmv.SpgemmPlan(there(cupy, A), there(cupy, A))
    with pytest.raises(TypeError, match="pickled"):
        pickle.dumps(product)


@pytest.mark.parametrize("rtol", [1e-6, 1e-10, 1e-14, 1e-17])
def test_success_means_a_small_true_residual(cupy, rtol):
    """cupy 7512: cg reports success although the true residual is above the tolerance."""
    diagonal = 10.0 ** np.linspace(0, 8, 200)
    couple = 0.3 * np.sqrt(diagonal[:-1] * diagonal[1:])
    A = sp.csr_array(sp.diags([couple, diagonal, couple], [-1, 0, 1]))
    b = A @ vector(200)
    x, info = spmv.cg(there(cupy, A), cupy.asarray(b), rtol=rtol, maxiter=4000)
    rounding = 6 * np.finfo(float).eps * np.linalg.norm(abs(A) @ abs(x.get()))
    assert info > 0 or np.linalg.norm(b - A @ x.get()) <= rtol * np.linalg.norm(b) + rounding
    result = spmv.solve(there(cupy, A), cupy.asarray(b), rtol=rtol, maxiter=4000, preconditioner="none", solver="cg")
    assert result.converged == (result.true_residual <= result.tolerance) == (info == 0)


@pytest.mark.parametrize("M", [None, "jacobi"])
def test_iterations_run_without_python(cupy, M):
    """amgcl 305 and torch-fem 63: a program spends its time in a loop of Python, call by call."""
    A = there(cupy, spmv.generate("poisson2d:40"))
    b = cupy.asarray(np.ones(1600))
    few, many = (calls_of_python(k, lambda k: spmv.cg(A, b, rtol=1e-14, maxiter=k, M=M)) for k in (10, 60))
    assert few == many


def test_cupy_multiply(cupy):
    A, B = random_csr(60, 50), random_csr(50, 40, seed=3)
    C = spmv.spgemm(there(cupy, A), there(cupy, B))
    assert type(C).__module__.startswith("cupyx")
    host = sp.csr_array((C.data.get(), C.indices.get(), C.indptr.get()), shape=C.shape)
    np.testing.assert_allclose(host.toarray(), (A @ B).toarray(), **close)


def test_cupy_primitives(cupy):
    a = np.random.default_rng(1).integers(-9, 9, 5000).astype("int64")
    v = cupy.asarray(a)
    np.testing.assert_array_equal(spmv.scan(v).get(), np.cumsum(a))
    assert int(spmv.reduce(v).get()[0]) == a.sum()
    np.testing.assert_array_equal(spmv.sort(v).get(), np.sort(a))
    np.testing.assert_array_equal(spmv.compact(v, where=("greater", 2)).get(), a[a > 2])
    np.testing.assert_array_equal(spmv.expand(v, cupy.asarray(np.full(5000, 2))).get(), np.repeat(a, 2))
    offsets = cupy.asarray(np.array([0, 7, 7, 5000]))
    np.testing.assert_array_equal(spmv.segmented_reduce(v, offsets).get(), [a[:7].sum(), 0, a[7:].sum()])
    with pytest.raises(ValueError):
        spmv.segmented_reduce(v, cupy.asarray(np.array([0, 9000, 5000])))
    np.testing.assert_array_equal(spmv.scan(a, device="cuda"), np.cumsum(a))


def test_any_cuda_array_interface(cupy):
    class Foreign:
        def __init__(self, a):
            self.__cuda_array_interface__ = a.__cuda_array_interface__
            self.a = a

    A = random_csr(300, 200)
    plan, x = spmv.Plan(there(cupy, A)), vector(200)
    y = plan @ Foreign(cupy.asarray(x))
    np.testing.assert_allclose(y.numpy(), A @ x, **close)
    out = cupy.empty(300)
    plan.apply(Foreign(cupy.asarray(x)), out=Foreign(out))
    np.testing.assert_array_equal(out.get(), y.numpy())


# ------------------------------------------------------------------ PyTorch, JAX


@pytest.fixture
def torch():
    return with_gpu("torch")


def tensor(torch, A):
    parts = (torch.from_numpy(A.indptr.astype("int64")), torch.from_numpy(A.indices.astype("int64")))
    return torch.sparse_csr_tensor(*parts, torch.from_numpy(A.data), size=A.shape).cuda()


def test_torch_products(torch):
    A = random_csr(300, 200)
    plan, x = spmv.Plan(tensor(torch, A)), vector(200)
    v = torch.from_numpy(x).cuda()
    y = plan @ v
    assert isinstance(y, torch.Tensor) and y.is_cuda
    np.testing.assert_allclose(y.cpu().numpy(), A @ x, **close)
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        w = plan @ (2 * v)
    stream.synchronize()
    np.testing.assert_allclose(w.cpu().numpy(), 2 * (A @ x), **close)
    assert (plan @ v.clone().requires_grad_()).requires_grad
    out = torch.ones(300, dtype=torch.float64, device="cuda")
    assert plan.apply(v, out=out, alpha=2, beta=-1) is out
    np.testing.assert_allclose(out.cpu().numpy(), 2 * (A @ x) - 1, **close)
    with pytest.raises(ValueError, match="cuda:0.*cpu|cpu.*cuda:0"):
        plan.apply(v, out=torch.ones(300, dtype=torch.float64))
    negative = torch.complex(0 * v, v).conj().imag  # a view whose elements are stored with the other sign
    assert negative.is_neg()
    np.testing.assert_allclose((plan @ negative).cpu().numpy(), -(A @ x), **close)
    strided = torch.stack([v, v], dim=1)[:, 1]
    np.testing.assert_allclose((plan @ strided).cpu().numpy(), A @ x, **close)


def test_torch_arrays_are_read_directly(torch, monkeypatch):
    A = random_csr(300, 200, "complex128")
    x = vector(200, "complex128")
    plan, v = spmv.Plan(tensor(torch, A)), torch.from_numpy(x).cuda()
    np.testing.assert_allclose((plan @ v.conj()).cpu().numpy(), A @ x.conj(), **close)  # a view with a mark
    monkeypatch.setattr(spmv.Plan, "_product", None)
    np.testing.assert_allclose((plan @ v).cpu().numpy(), A @ x, **close)
    with torch.cuda.stream(torch.cuda.Stream()):
        y = plan @ v
        torch.cuda.synchronize()
    np.testing.assert_allclose(y.cpu().numpy(), A @ x, **close)


def test_torch_graph(torch):
    A = random_csr(300, 200)
    plan, x = spmv.Plan(tensor(torch, A)), torch.ones(200, dtype=torch.float64, device="cuda")
    y = plan @ x
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        plan.apply(x, out=y)
    x.fill_(3)
    plan @ x  # on the stream of before
    graph.replay()
    np.testing.assert_allclose(y.cpu().numpy(), 3 * (A @ np.ones(200)), **close)


def test_torch_solve(torch):
    A = spmv.generate("poisson2d:30")
    x = vector(900)
    result = spmv.solve(tensor(torch, A), torch.from_numpy(A @ x).cuda(), rtol=1e-10)
    assert result.converged and result.x.is_cuda
    np.testing.assert_allclose(result.x.cpu().numpy(), x, rtol=1e-6, atol=1e-7)


@pytest.mark.skipif(EMULATED, reason="JAX needs a real GPU")
def test_jax_on_a_gpu():
    jax = pytest.importorskip("jax")
    if jax.default_backend() != "gpu":
        pytest.skip("JAX has no GPU")
    A = random_csr(300, 200, "float32")
    x = vector(200, "float32")
    plan = spmv.Plan(A, device="cuda")
    np.testing.assert_allclose(jax.jit(lambda x: plan @ x)(x), A @ x, rtol=1e-4, atol=1e-4)
    y = plan @ jax.numpy.asarray(x)
    assert isinstance(y, jax.Array)
    np.testing.assert_allclose(np.asarray(y), A @ x, rtol=1e-4, atol=1e-4)


# ------------------------------------------------------------------ ranks on a GPU


def test_ranks_that_share_a_gpu(cupy):
    A = spmv.generate("poisson2d:24")
    b = vector(A.shape[0])
    seen = []
    for ranks in (1, 3):
        with spmv.Group(ranks=ranks, device="cuda") as group:
            assert group.devices == ["cuda:0"] * ranks
            D = group.matrix(there(cupy, A))
            solver = group.solver(D, "jacobi")
            result = solver.solve(cupy.asarray(b))
            assert isinstance(result.x, cupy.ndarray) and result.converged
            y = D @ b
            assert isinstance(y, np.ndarray)
            solver.update_values(2 * A.data)
            again = solver.solve(2 * b)
            np.testing.assert_allclose(again.x, result.x.get(), rtol=1e-6)
            seen.append((result.x.get().tobytes(), y.tobytes(), again.x.tobytes()))
    assert seen[0] == seen[1]


def test_all_gpus():
    A = spmv.generate("poisson2d:16")
    b = vector(A.shape[0])
    with spmv.Group(gpus="all") as group:
        x = group.solve(A, b, precond="jacobi").x
    with spmv.Group(gpus=[0]) as group:
        assert np.array_equal(group.solve(A, b, precond="jacobi").x, x)
    assert np.array_equal(spmv.solve(A, b, precond="jacobi", device="cuda:all").x, x)
    with pytest.raises(ValueError, match="each GPU needs a rank"):
        spmv.Group(ranks=1, gpus=[0, 0])
    with pytest.raises(RuntimeError):
        spmv.Group(gpus=[99])

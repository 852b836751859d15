# SPDX-License-Identifier: BSD-3-Clause
"""Vectors of other libraries: the result is of the same kind, and nothing is copied."""

import array

import numpy as np
import pytest
import spmv
from conftest import random_csr, vector


@pytest.fixture
def plan_and_reference():
    A = random_csr(64, 48)
    return spmv.Plan(A), A


def test_jax(plan_and_reference):
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)
    plan, A = plan_and_reference
    x = vector(48)
    y = plan @ jax.numpy.asarray(x)
    assert isinstance(y, jax.Array)
    np.testing.assert_allclose(np.asarray(y), A @ x, rtol=1e-12, atol=1e-14)
    Y = plan @ jax.numpy.asarray(vector(48, columns=3))
    assert Y.shape == (64, 3)
    np.testing.assert_allclose(np.asarray(Y), A @ vector(48, columns=3), rtol=1e-12, atol=1e-14)
    with pytest.raises(TypeError, match="JAX"):
        plan.apply(x, out=jax.numpy.zeros(64))
    out = np.empty(64)
    assert plan.apply(jax.numpy.asarray(x), out=out) is out
    np.testing.assert_allclose(out, A @ x, rtol=1e-12, atol=1e-14)
    P = spmv.generate("poisson2d:10")
    b = jax.numpy.ones(100)
    solution, info = spmv.cg(P, b, rtol=1e-10)
    assert isinstance(solution, jax.Array) and info == 0
    assert np.linalg.norm(P @ np.asarray(solution) - 1) < 1e-8
    np.testing.assert_array_equal(np.asarray(spmv.scan(jax.numpy.arange(5.0))), [0, 1, 3, 6, 10])
    jax.config.update("jax_enable_x64", False)


def test_jax_that_traces_and_types_that_are_missing(plan_and_reference):
    jax = pytest.importorskip("jax")
    plan, A = plan_and_reference
    narrow = spmv.Plan(A.astype(np.float32))
    square = spmv.generate("poisson2d:5")
    for function in (lambda x: narrow.apply(x), lambda x: spmv.solve(square, x).x, lambda x: spmv.scan(x)):
        with pytest.raises(TypeError, match="can be traced"):
            jax.jit(function)(jax.numpy.ones(48, "float32"))
    with pytest.raises(TypeError, match="type bfloat16, float64 is needed"):
        plan @ jax.numpy.ones(48, dtype="bfloat16")
    shape = jax.ShapeDtypeStruct((64,), "float32")
    called = jax.jit(lambda x: jax.pure_callback(lambda x: narrow @ np.asarray(x), shape, x))
    x = vector(48).astype(np.float32)
    np.testing.assert_allclose(called(x), A @ x, rtol=1e-4, atol=1e-5)


def test_jax_arrays_are_read_in_place():
    jax = pytest.importorskip("jax")
    from spmv import _arrays

    x = jax.numpy.arange(64, dtype="float32")
    v = _arrays.view(x, "x")
    assert v.kind == "jax" and not v.writable and v.contiguous
    assert v.address == x.unsafe_buffer_pointer()


def test_torch_on_the_host(plan_and_reference):
    torch = pytest.importorskip("torch")
    plan, A = plan_and_reference
    x = torch.from_numpy(vector(48))
    y = plan @ x
    assert isinstance(y, torch.Tensor)
    np.testing.assert_allclose(y.numpy(), A @ x.numpy(), rtol=1e-12, atol=1e-14)
    out = torch.empty(64, dtype=torch.float64)
    assert plan.apply(x, out=out) is out
    np.testing.assert_array_equal(out.numpy(), y.numpy())
    with pytest.raises(ValueError, match="gradient"):
        plan.apply(torch.ones(48, dtype=torch.float64, requires_grad=True))
    with pytest.raises(TypeError):
        plan @ torch.ones(48, dtype=torch.bfloat16)
    strided = torch.from_numpy(vector(96))[::2]
    np.testing.assert_allclose((plan @ strided).numpy(), A @ strided.numpy(), rtol=1e-12, atol=1e-14)
    T = torch.sparse_csr_tensor(
        torch.from_numpy(A.indptr.astype("int64")),
        torch.from_numpy(A.indices.astype("int64")),
        torch.from_numpy(A.data),
        size=A.shape,
    )
    np.testing.assert_allclose((spmv.Plan(T) @ x).numpy(), y.numpy(), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose((spmv.Plan(T.to_sparse_coo()) @ x).numpy(), y.numpy(), rtol=1e-12, atol=1e-14)


def test_openmp_beside_torch():
    """Two OpenMP runtimes in one process: right results, no hang, in turns."""
    torch = pytest.importorskip("torch")
    A = spmv.generate("poisson2d:300")
    plan = spmv.Plan(A)
    x = np.ones(90000)
    expected = A @ x
    for _ in range(20):
        large = torch.ones(400, 400) @ torch.ones(400, 400)
        assert float(large[0, 0]) == 400
        np.testing.assert_array_equal(plan @ x, expected)


def test_standard_buffers(plan_and_reference):
    plan, A = plan_and_reference
    x = array.array("d", vector(48))
    np.testing.assert_allclose(plan @ x, A @ np.array(x), rtol=1e-12, atol=1e-14)
    out = array.array("d", [0.0] * 64)
    assert plan.apply(x, out=out) is out
    np.testing.assert_allclose(np.array(out), A @ np.array(x), rtol=1e-12, atol=1e-14)


class Exporter:
    """An array that is known by DLPack only."""

    def __init__(self, a):
        self.a = a

    def __dlpack__(self, **options):
        return self.a.__dlpack__()

    def __dlpack_device__(self):
        return self.a.__dlpack_device__()


def test_any_dlpack(plan_and_reference):
    plan, A = plan_and_reference
    x = vector(48)
    np.testing.assert_allclose(plan @ Exporter(x), A @ x, rtol=1e-12, atol=1e-14)
    wide = vector(96)
    np.testing.assert_allclose(plan @ Exporter(wide[::2]), A @ wide[::2], rtol=1e-12, atol=1e-14)
    with pytest.raises(TypeError, match="complex128"):
        plan @ Exporter(x.astype(complex))


def test_memory_is_released_by_dlpack():
    import gc

    from spmv._arrays import Memory
    from spmv._context import context_of

    memory = Memory(context_of("cpu"), (1000,), np.dtype("float64"))
    taken = np.from_dlpack(memory)
    address = memory.address
    del memory
    gc.collect()
    assert taken.ctypes.data == address
    taken_twice = Memory(context_of("cpu"), (4, 3), np.dtype("complex64"))
    assert np.from_dlpack(taken_twice).shape == (4, 3)
    capsule = taken_twice.__dlpack__()  # never consumed
    del capsule, taken, taken_twice
    gc.collect()


class OnAGpu:
    """An array that claims to be on a GPU."""

    __cuda_array_interface__ = {"shape": (48,), "typestr": "<f8", "data": (4096, False), "version": 3}


def test_device_array_on_a_cpu_plan(plan_and_reference):
    plan, _ = plan_and_reference
    with pytest.raises(ValueError, match="cuda:0.*cpu"):
        plan @ OnAGpu()
    with pytest.raises(ValueError, match="cuda:0"):
        plan.apply(np.ones(48), out=type("Out", (), {"__cuda_array_interface__": {
            "shape": (64,), "typestr": "<f8", "data": (4096, False), "version": 3}})())  # fmt: skip

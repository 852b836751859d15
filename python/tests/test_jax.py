# SPDX-License-Identifier: BSD-3-Clause
"""Gradients and compiled functions of JAX."""

import gc

import numpy as np
import pytest
import spmv
from conftest import random_csr

jax = pytest.importorskip("jax")
pytest.importorskip("scipy.sparse")
import jax.numpy as jnp  # noqa: E402
import spmv.jax as sj  # noqa: E402
from jax.test_util import check_grads  # noqa: E402

ROWS, COLS = 24, 17
DEVICE = "cuda" if jax.default_backend() == "gpu" else "cpu"


@pytest.fixture(autouse=True)
def double():
    with jax.enable_x64(True), jax.default_matmul_precision("highest"):
        yield


def problem(dtype="float64"):
    A = random_csr(ROWS, COLS, dtype, density=0.2)
    return spmv.Pattern(A, device=DEVICE), A


def normal(*shape, seed=1, dtype="float64"):
    return jnp.asarray(np.random.default_rng(seed).standard_normal(shape).astype(dtype))


def dense(A, values):
    rows = np.repeat(np.arange(ROWS), np.diff(A.indptr))
    return jnp.zeros((ROWS, COLS), values.dtype).at[rows, A.indices].set(values)


def close(a, b, tolerance=1e-12):
    np.testing.assert_allclose(a, b, rtol=0, atol=tolerance)


@pytest.mark.parametrize(
    "columns, transpose, dtype", [(5, False, "float64"), (5, True, "float32"), (None, True, "float64")]
)
def test_spmm(columns, transpose, dtype):
    P, A = problem()
    sizes = (ROWS if transpose else COLS,) + (() if columns is None else (columns,))
    v, x = normal(P.nnz, dtype=dtype), normal(*sizes, seed=2, dtype=dtype)

    def ours(v, x):
        return jnp.tanh(sj.spmm(P, v, x, transpose=transpose)).sum()

    def plain(v, x):
        D = dense(A, v)
        return jnp.tanh((D.T if transpose else D) @ x).sum()

    tolerance = 1e-12 if dtype == "float64" else 1e-4
    (y, g), (z, h) = (jax.jit(jax.value_and_grad(f, (0, 1)))(v, x) for f in (ours, plain))
    for a, b in zip((y, *g), (z, *h)):
        assert a.dtype == dtype
        close(a, b, tolerance)


def attention(P, q, k, v):
    return sj.spmm(P, sj.softmax(P, sj.sddmm(P, q, k)), v)


def plain_attention(A, q, k, v):
    scores = jnp.where(A.toarray() != 0, q @ k.T, -jnp.inf)
    return jax.nn.softmax(scores, axis=1) @ v


def test_attention():
    P, A = problem()
    q, k, v = (normal(n, 4, seed=i) for i, n in enumerate((ROWS, COLS, COLS)))
    close(attention(P, q, k, v), plain_attention(A, q, k, v))
    close(jax.jit(attention)(P, q, k, v), plain_attention(A, q, k, v))
    check_grads(jax.jit(lambda *a: attention(P, *a)), (q, k, v), order=2, modes=["rev"])


def test_heads():
    """vmap, of some or all operands, and twice."""
    P, A = problem()
    q, k, v = (normal(3, n, 4, seed=i) for i, n in enumerate((ROWS, COLS, COLS)))
    for axes, given in (((0, None, 0), (q, k[0], v)), ((None, None, 0), (q[0], k[0], v))):
        mapped = jax.vmap(lambda *a: attention(P, *a), in_axes=axes)
        plain = jax.vmap(lambda *a: plain_attention(A, *a), in_axes=axes)

        def results(f, given=given):
            return jax.jit(jax.value_and_grad(lambda *a: (f(*a) ** 2).sum(), (0, 1, 2)))(*given)

        jax.tree.map(close, results(mapped), results(plain))
    values, x = normal(5, P.nnz), normal(6, COLS, seed=2)
    every = jax.vmap(lambda v: jax.vmap(lambda x: sj.spmm(P, v, x))(x))(values)
    plain = np.stack([np.asarray(x) @ np.asarray(dense(A, v)).T for v in values])
    close(every, plain)
    close(jax.vmap(lambda x: sj.spmm(P, values[0], x))(x), plain[0])


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_plans(dtype):
    A = random_csr(ROWS, COLS, dtype)
    plan = spmv.Plan(A, device=DEVICE)
    x, X = (normal(*shape, dtype="float64").astype(dtype) for shape in ((COLS,), (COLS, 3)))
    matrix = jnp.asarray(A.toarray())

    def size(y):
        return (jnp.sin(y) * jnp.arange(ROWS).reshape(-1, *(1,) * (y.ndim - 1))).real.sum()

    for v in (x, X):
        (y, ours), (z, plain) = (jax.jit(jax.value_and_grad(lambda x: size(M @ x)))(v) for M in (plan, matrix))
        close(y, z, 1e-11)
        close(ours, plain, 1e-11)
    if dtype == "complex128":
        return
    mapped = jax.vmap(lambda x: plan @ x)
    close(mapped(normal(5, COLS)), normal(5, COLS) @ matrix.T)
    close(jax.vmap(lambda x: plan @ x, 1, 1)(X), matrix @ X)
    close(mapped(normal(4, COLS, 2)), np.einsum("ij,bjk->bik", matrix, normal(4, COLS, 2)))
    close(jax.jit(lambda plan, x: plan @ x)(plan, x), matrix @ x)
    close(jax.jacrev(lambda x: plan @ x)(x), A.toarray())
    close(jax.jit(lambda x: plan.T @ x)(np.ones(ROWS)), A.T @ np.ones(ROWS))
    close(jax.jit(lambda x: plan @ x)(x.astype("float32")), matrix @ x.astype("float32"))


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_half_types(dtype):
    P, A = problem()
    v, x = normal(P.nnz).astype(dtype), normal(COLS, 3).astype(dtype)

    def size(v, x):
        return sj.spmm(P, v, x).astype("float32").sum()

    ours, exact = (jax.jit(jax.grad(size, (0, 1)))(*a) for a in ((v, x), (v.astype("float32"), x.astype("float32"))))
    for a, b in zip(ours, exact):
        assert a.dtype == dtype
        close(a.astype("float32"), b, 0.05)


def test_empty():
    P = spmv.Pattern((np.empty(0), np.empty(0, "int32"), np.zeros(4, "int32")), shape=(3, 5), device=DEVICE)
    v = jnp.zeros(0)
    close(sj.spmm(P, v, jnp.ones((5, 2))), np.zeros((3, 2)))
    assert sj.softmax(P, v).shape == (0,)
    Q, _ = problem()
    close(sj.sddmm(Q, jnp.ones((ROWS, 0)), jnp.ones((COLS, 0))), np.zeros(Q.nnz))


def test_complaints():
    P, A = problem()
    v, x = normal(P.nnz), normal(COLS, 3)
    for call, error, words in (
        (lambda: sj.spmm(A, v, x), TypeError, "not a spmv.Pattern"),
        (lambda: sj.spmm(P, v[1:], x), ValueError, "entries"),
        (lambda: sj.spmm(P, v, x[1:]), ValueError, "X has the shape"),
        (lambda: sj.spmm(P, v.astype("float32"), x), TypeError, "float32"),
        (lambda: sj.sddmm(P, normal(ROWS, 2), x), ValueError, "columns"),
        (lambda: jax.jit(lambda x: spmv.Plan(A) @ x)(normal(COLS + 1)), ValueError, "shape"),
        (lambda: jax.jit(lambda x: spmv.Plan(A) @ x)(normal(COLS).astype(complex)), TypeError, "float64 is needed"),
        (lambda: jax.jvp(lambda x: sj.spmm(P, v, x), (x,), (x,)), TypeError, "forward-mode|jvp"),
    ):
        with pytest.raises(error, match=words):
            call()
    with jax.enable_x64(False), pytest.raises(TypeError, match="jax_enable_x64"):
        jax.jit(lambda x: spmv.Plan(A) @ x)(normal(COLS, dtype="float32"))


def test_a_pattern_that_is_gone():
    P, _ = problem()
    lost = np.array([0, P._number, 0, 1, 2, 2], np.int64)
    shape = jax.ShapeDtypeStruct((ROWS, 3), "float64")
    v, x = normal(P.nnz), normal(COLS, 3)
    del P
    gc.collect()
    with pytest.raises(Exception, match="no longer exists"):
        jax.ffi.ffi_call("spmv", shape)(v, x, call=lost).block_until_ready()

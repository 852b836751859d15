# SPDX-License-Identifier: BSD-3-Clause
"""Products, sampled products and the softmax of rows for arrays of JAX, under ``jit``, ``grad`` and ``vmap``.

    P = spmv.Pattern(A)                      # the places of the entries
    scores = spmv.jax.sddmm(P, Q, K)         # a number for each entry
    weights = spmv.jax.softmax(P, scores)
    Y = spmv.jax.spmm(P, weights, V)

They are foreign functions of XLA (``jax.ffi``) with gradients (``jax.custom_vjp``), each made of the
others as in spmv.torch. ``plan @ x`` in a traced function comes here too. Derivatives in forward
mode (``jax.jvp``) do not exist.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from . import _core
from ._arrays import DEFAULT_STREAM
from ._context import type_of
from ._numbers import with_number
from ._pattern import TYPE_NAMES, TYPES, Pattern
from ._plan import Plan

__all__ = ["matmul", "sddmm", "softmax", "spmm"]

_SPMM, _SDDMM, _SOFTMAX, _PRODUCT = range(4)
_XLA = {10: "float16", 16: "bfloat16", 11: "float32", 12: "float64", 15: "complex64", 18: "complex128"}


# ------------------------------------------------------------------ what XLA calls


class _Buffer:
    """An argument or result: its first dimensions are mapped ones, of size 1 where it is the same for all."""

    def __init__(self, address: int, code: int, shape: tuple[int, ...], own: int) -> None:
        self.address, self.dtype = address, type_of(_XLA[code])
        mapped = len(shape) - own
        self.mapped, self.shape = shape[:mapped], shape[mapped:]
        self.bytes = math.prod(self.shape) * self.dtype.itemsize

    def steps(self) -> list[int]:
        """Bytes from one element of each mapped dimension to the next."""
        steps, here = [], self.bytes
        for n in reversed(self.mapped):
            steps.append(here if n > 1 else 0)
            here *= n
        return steps[::-1]


def _operands(buffers: list[_Buffer]) -> Any:
    """(count, [(address, step) of each buffer]) of calls that together run over all mapped dimensions."""
    mapped = buffers[-1].mapped
    steps = [b.steps() for b in buffers]
    for place in np.ndindex(*mapped[:-1]):
        starts = [b.address + sum(i * s for i, s in zip(place, step)) for b, step in zip(buffers, steps)]
        yield (mapped[-1] if mapped else 1), [(a, step[-1] if step else 0) for a, step in zip(starts, steps)]


def _run(on_gpu: int, stream: int, numbers: tuple[int, ...], given: list[Any]) -> None:
    """One call of XLA."""
    kind, number, flag, *own = numbers
    thing = with_number(number)
    if thing.context.is_cuda != bool(on_gpu):
        here = "a GPU" if on_gpu else "the CPU"
        raise ValueError(
            f"the {type(thing).__name__.lower()} is on {thing.context.device}, but JAX runs this function on {here}: "
            "make it with another device="
        )
    buffers = [_Buffer(address, code, shape, n) for (address, code, shape), n in zip(given, own)]
    stream = stream or DEFAULT_STREAM if on_gpu else 0
    dtype = buffers[0].dtype
    for count, operands in _operands(buffers):
        if kind == _SPMM:
            thing._products(dtype, bool(flag), buffers[1].shape[1], count, stream, *operands)
        elif kind == _SDDMM:
            thing._sddmm(dtype, buffers[0].shape[1], count, stream, *operands)
        elif kind == _SOFTMAX:
            thing._softmax(dtype, count, stream, *operands)
        else:
            if dtype != thing.dtype:
                raise TypeError(f"X has the type {dtype}, the plan {thing.dtype}")
            plan = thing._backward(conjugate=False) if flag else thing
            plan._addresses(buffers[0].shape[1:], count, stream, *operands)


for _handler, _platform in zip(_core.jax_handlers(_run), ("cpu", "CUDA")):
    jax.ffi.register_ffi_target("spmv", _handler, platform=_platform)


for _static in (Pattern, Plan):  # arguments of functions under jit
    jax.tree_util.register_static(_static)


def _call(kind: int, thing: Any, flag: bool, shape: tuple[int, ...], *arrays: jax.Array) -> jax.Array:
    own = [a.ndim for a in arrays] + [len(shape)]
    numbers = np.array([kind, thing._number, int(flag), *own], np.int64)
    result = jax.ShapeDtypeStruct(shape, arrays[0].dtype)
    return jax.ffi.ffi_call("spmv", result, vmap_method="expand_dims")(*arrays, call=numbers)


# ------------------------------------------------------------------ gradients


@functools.partial(jax.custom_vjp, nondiff_argnums=(0, 1))
def _spmm(pattern: Pattern, transpose: bool, values: jax.Array, x: jax.Array) -> jax.Array:
    return _call(_SPMM, pattern, transpose, (pattern.shape[1 if transpose else 0], x.shape[1]), values, x)


def _spmm_forward(pattern: Pattern, transpose: bool, values: jax.Array, x: jax.Array) -> Any:
    return _spmm(pattern, transpose, values, x), (values, x)


def _spmm_backward(pattern: Pattern, transpose: bool, kept: Any, g: jax.Array) -> Any:
    values, x = kept
    a, b = (x, g) if transpose else (g, x)
    return _sddmm(pattern, a, b), _spmm(pattern, not transpose, values, g)


_spmm.defvjp(_spmm_forward, _spmm_backward)


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def _sddmm(pattern: Pattern, a: jax.Array, b: jax.Array) -> jax.Array:
    return _call(_SDDMM, pattern, False, (pattern.nnz,), a, b)


def _sddmm_forward(pattern: Pattern, a: jax.Array, b: jax.Array) -> Any:
    return _sddmm(pattern, a, b), (a, b)


def _sddmm_backward(pattern: Pattern, kept: Any, g: jax.Array) -> Any:
    a, b = kept
    return _spmm(pattern, False, g, b), _spmm(pattern, True, g, a)


_sddmm.defvjp(_sddmm_forward, _sddmm_backward)


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def _softmax(pattern: Pattern, x: jax.Array) -> jax.Array:
    return _call(_SOFTMAX, pattern, False, (pattern.nnz,), x)


def _softmax_forward(pattern: Pattern, x: jax.Array) -> Any:
    y = _softmax(pattern, x)
    return y, y


def _softmax_backward(pattern: Pattern, y: jax.Array, g: jax.Array) -> Any:
    """As in spmv.torch."""
    t = y * g
    ones = jnp.ones((pattern.shape[1], 1), t.dtype)
    return (t - y * _sddmm(pattern, _spmm(pattern, False, t, ones), ones),)


_softmax.defvjp(_softmax_forward, _softmax_backward)


@functools.partial(jax.custom_vjp, nondiff_argnums=(0, 1))
def _product(plan: Plan, transpose: bool, x: jax.Array) -> jax.Array:
    return _call(_PRODUCT, plan, transpose, (plan.shape[1 if transpose else 0], *x.shape[1:]), x)


def _product_forward(plan: Plan, transpose: bool, x: jax.Array) -> Any:
    return _product(plan, transpose, x), None


def _product_backward(plan: Plan, transpose: bool, kept: None, g: jax.Array) -> Any:
    return (_product(plan, not transpose, g),)


_product.defvjp(_product_forward, _product_backward)


# ------------------------------------------------------------------ functions


def _check(pattern: Any, **arrays: Any) -> list[jax.Array]:
    if not isinstance(pattern, Pattern):
        raise TypeError(f"the first argument is not a spmv.Pattern but {type(pattern).__name__}")
    made = {name: jnp.asarray(a) for name, a in arrays.items()}
    types = {a.dtype for a in made.values()}
    if len(types) > 1 or not types <= set(TYPES):
        found = ", ".join(f"{n}: {a.dtype}" for n, a in made.items())
        raise TypeError(f"the arrays must all be of {TYPE_NAMES} ({found})")
    return list(made.values())


def _values(pattern: Pattern, values: jax.Array) -> jax.Array:
    if values.shape != (pattern.nnz,):
        raise ValueError(f"values has the shape {values.shape}, the pattern has {pattern.nnz} entries")
    return values


def _matrix(name: str, x: jax.Array, rows: int) -> jax.Array:
    if x.ndim != 2 or x.shape[0] != rows:
        raise ValueError(f"{name} has the shape {x.shape}; ({rows}, columns) is needed")
    return x


def spmm(pattern: Pattern, values: Any, X: Any, *, transpose: bool = False) -> jax.Array:
    """Y = A X for the sparse matrix A with the given pattern and values. Gradients: of values and X.

    Parameters
    ----------
    pattern : Pattern
        Where A has entries. It must exist as long as functions that were compiled with it.
    values : Array
        A number for each entry, float32, float64, bfloat16 or float16, in the order of the pattern.
    X : Array
        A vector or a matrix, of the type of values.
    transpose : bool, optional
        True: Y = A' X.

    Examples
    --------
    >>> import jax, numpy as np, spmv, spmv.jax
    >>> P = spmv.Pattern((np.ones(2), np.array([0, 1]), np.array([0, 1, 2])), shape=(2, 2))
    >>> X = np.ones((2, 4), "float32")
    >>> jax.jit(jax.grad(lambda v: spmv.jax.spmm(P, v, X).sum()))(np.ones(2, "float32"))
    Array([4., 4.], dtype=float32)
    """
    v, x = _check(pattern, values=values, X=X)
    matrix = _matrix("X", x[:, None] if x.ndim == 1 else x, pattern.shape[0 if transpose else 1])
    y = _spmm(pattern, bool(transpose), _values(pattern, v), matrix)
    return y[:, 0] if x.ndim == 1 else y


def sddmm(pattern: Pattern, A: Any, B: Any) -> jax.Array:
    """The sampled product: for each entry, in row i and column j, row i of A times row j of B.

    Gradients: of A and B. For several heads of attention: ``jax.vmap``.

    Parameters
    ----------
    pattern : Pattern
        Where the product is computed.
    A, B : Array
        ``pattern.shape[0]`` and ``pattern.shape[1]`` rows of equal length, of a type of spmm.
    """
    a, b = _check(pattern, A=A, B=B)
    a, b = _matrix("A", a, pattern.shape[0]), _matrix("B", b, pattern.shape[1])
    if a.shape[1] != b.shape[1]:
        raise ValueError(f"A has {a.shape[1]} columns, B has {b.shape[1]}")
    if a.shape[1] == 0:
        return jnp.zeros(pattern.nnz, a.dtype)
    return _sddmm(pattern, a, b)


def softmax(pattern: Pattern, values: Any) -> jax.Array:
    """The softmax of the entries of each row of a sparse matrix. Gradient: of values.

    Parameters
    ----------
    pattern : Pattern
        Where the matrix has entries.
    values : Array
        A number for each entry, of a type of spmm.
    """
    (x,) = _check(pattern, values=values)
    return _softmax(pattern, _values(pattern, x))


def matmul(plan: Plan, X: Any) -> jax.Array:
    """Y = A X for the matrix of a plan, as ``plan @ X`` in a traced function. Gradient: of X.

    Parameters
    ----------
    plan : Plan
        Of any type. It must exist as long as functions that were compiled with it.
    X : Array
        A vector or a matrix, of the type of the plan or one that converts without loss.
    """
    if not isinstance(plan, Plan):
        raise TypeError(f"the first argument is not a spmv.Plan but {type(plan).__name__}")
    x = jnp.asarray(X)
    if x.ndim not in (1, 2) or x.shape[0] != plan.shape[1]:
        raise ValueError(f"X has the shape {x.shape}; the first size must be {plan.shape[1]}, as the matrix has columns")
    if x.dtype != plan.dtype:
        if not np.can_cast(x.dtype, plan.dtype, "safe"):
            raise TypeError(f"X has the type {x.dtype}, {plan.dtype} is needed: convert it, or choose dtype=")
        if jax.dtypes.canonicalize_dtype(plan.dtype) != plan.dtype:
            raise TypeError(f"the plan has the type {plan.dtype}, which JAX has with jax_enable_x64 only")
        x = x.astype(plan.dtype)
    return _product(plan, False, x)

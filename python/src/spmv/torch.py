# SPDX-License-Identifier: BSD-3-Clause
"""Products, sampled products and the softmax of rows for tensors of PyTorch, with gradients.

    P = spmv.Pattern(A)                        # the places of the entries
    scores = spmv.torch.sddmm(P, Q, K)         # a number for each entry
    weights = spmv.torch.softmax(P, scores)
    Y = spmv.torch.spmm(P, weights, V)

All of them are operators of PyTorch (``torch.ops.spmv``), so that ``torch.compile``, ``torch.func``
and second derivatives work. The gradient of each is made of the others:

    Y = A X          dX = A' dY        dA = the entries of dY X' at the places of A
    Y = P o (A B')   dA = dY B         dB = dY' A

where dY of the second line is the sparse matrix with the values dY.

For the fixed values of a plan: ``plan @ X`` or ``spmv.torch.matmul(plan, X)``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from ._arrays import direct
from ._context import type_name
from ._numbers import with_number
from ._pattern import TYPE_NAMES, TYPES, Pattern
from ._plan import Plan

__all__ = ["matmul", "sddmm", "softmax", "spmm"]

_DTYPES = {getattr(torch, type_name(t)): t for t in TYPES}


# ------------------------------------------------------------------ what the operators compute


def _device(thing: Pattern | Plan) -> int:
    """Where it is, as Tensor.get_device() says it."""
    return thing.context.number if thing.context.is_cuda else -1


def _stream(t: torch.Tensor) -> int:
    """The current stream of the tensor's device; 0: a CPU."""
    return direct(torch.Tensor).stream(t.device.index)[0] if t.is_cuda else 0


def _taken(pattern: Pattern, sizes: tuple[int, ...], **tensors: torch.Tensor) -> tuple[np.dtype, int]:
    """The type of the tensors and the current stream, if the pattern can take them. sizes: of their second dimensions."""
    first = next(iter(tensors.values()))
    for (name, t), n in zip(tensors.items(), sizes):
        if t.shape[:2] != (first.shape[0], n):
            raise ValueError(f"{name} has the shape {tuple(t.shape)}, not ({first.shape[0]}, {n}, ...)")
        if t.dtype is not first.dtype or t.dtype not in _DTYPES:
            found = ", ".join(f"{n}: {t.dtype}" for n, t in tensors.items())
            raise TypeError(f"the tensors must all be of {TYPE_NAMES} ({found})")
        if t.get_device() != _device(pattern):
            raise ValueError(f"{name} is on the device {t.device}, the pattern on {pattern.device}")
    return _DTYPES[first.dtype], _stream(first)


def _operand(t: torch.Tensor) -> tuple[torch.Tensor, tuple[int, int]]:
    """A tensor whose elements of the first dimension lie in C order, its address, and the bytes between those."""
    if not t.is_contiguous() and t.shape[0] > 0 and not t[0].is_contiguous():
        t = t.contiguous()
    return t, (t.data_ptr(), t.stride(0) * t.element_size())


def _spmm(values: torch.Tensor, x: torch.Tensor, pattern: int, transpose: bool) -> torch.Tensor:
    P = with_number(pattern)
    dtype, stream = _taken(P, (P.nnz, P.shape[0 if transpose else 1]), values=values, X=x)
    y = _spmm_shape(values, x, pattern, transpose)
    by_columns = x.shape[0] == 1 and not x.is_contiguous() and x[0].t().is_contiguous()
    values, of_values = _operand(values)
    x, of_x = (x, (x.data_ptr(), 0)) if by_columns else _operand(x)
    P._products(dtype, transpose, x.shape[2], x.shape[0], stream, of_values, of_x, _operand(y)[1], by_columns)
    return y


def _spmm_shape(values: torch.Tensor, x: torch.Tensor, pattern: int, transpose: bool) -> torch.Tensor:
    return x.new_empty((x.shape[0], with_number(pattern).shape[1 if transpose else 0], x.shape[2]))


def _sddmm(a: torch.Tensor, b: torch.Tensor, pattern: int) -> torch.Tensor:
    P = with_number(pattern)
    dtype, stream = _taken(P, P.shape, A=a, B=b)
    if a.shape[2] != b.shape[2]:
        raise ValueError(f"A has {a.shape[2]} columns, B has {b.shape[2]}")
    y = _sddmm_shape(a, b, pattern)
    if a.shape[2] == 0:
        return y.zero_()
    (a, of_a), (b, of_b) = _operand(a), _operand(b)
    P._sddmm(dtype, a.shape[2], a.shape[0], stream, of_a, of_b, _operand(y)[1])
    return y


def _sddmm_shape(a: torch.Tensor, b: torch.Tensor, pattern: int) -> torch.Tensor:
    return a.new_empty((a.shape[0], with_number(pattern).nnz))


def _softmax(x: torch.Tensor, pattern: int) -> torch.Tensor:
    P = with_number(pattern)
    dtype, stream = _taken(P, (P.nnz,), values=x)
    y = _softmax_shape(x, pattern)
    x, of_x = _operand(x)
    P._softmax(dtype, x.shape[0], stream, of_x, _operand(y)[1])
    return y


def _softmax_shape(x: torch.Tensor, pattern: int) -> torch.Tensor:
    return x.new_empty(x.shape)


def _product(x: torch.Tensor, plan: int, adjoint: bool) -> torch.Tensor:
    A = with_number(plan)
    y = _product_shape(x, plan, adjoint)
    if adjoint:
        A = A._backward()
    as_it_is = x.is_contiguous() and x.shape[0] == A.shape[1] and x.dtype is getattr(torch, type_name(A.dtype))
    if not as_it_is or x.get_device() != _device(A):
        return A.apply(x.detach(), out=y)
    A._addresses(x.shape[1:], 1, _stream(x), (x.data_ptr(), 0), (y.data_ptr(), 0))
    return y


def _product_shape(x: torch.Tensor, plan: int, adjoint: bool) -> torch.Tensor:
    return x.new_empty((with_number(plan).shape[1 if adjoint else 0], *x.shape[1:]))


# ------------------------------------------------------------------ gradients


def _keep_spmm(ctx: Any, inputs: Any, output: Any) -> None:
    values, x, ctx.pattern, ctx.transpose = inputs
    ctx.save_for_backward(values, x if ctx.needs_input_grad[0] else None)


def _spmm_gradient(ctx: Any, g: torch.Tensor) -> Any:
    values, x = ctx.saved_tensors
    of_values = of_x = None
    if ctx.needs_input_grad[0]:
        a, b = (x, g) if ctx.transpose else (g, x)
        of_values = _ops.sddmm(a, b, ctx.pattern)
    if ctx.needs_input_grad[1]:
        of_x = _ops.spmm(values, g, ctx.pattern, not ctx.transpose)
    return of_values, of_x, None, None


def _keep_sddmm(ctx: Any, inputs: Any, output: Any) -> None:
    a, b, ctx.pattern = inputs
    ctx.save_for_backward(a if ctx.needs_input_grad[1] else None, b if ctx.needs_input_grad[0] else None)


def _sddmm_gradient(ctx: Any, g: torch.Tensor) -> Any:
    a, b = ctx.saved_tensors
    of_a = _ops.spmm(g, b, ctx.pattern, False) if ctx.needs_input_grad[0] else None
    of_b = _ops.spmm(g, a, ctx.pattern, True) if ctx.needs_input_grad[1] else None
    return of_a, of_b, None


def _keep_softmax(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.pattern = inputs[1]
    ctx.save_for_backward(output)


def _softmax_gradient(ctx: Any, g: torch.Tensor) -> Any:
    """y (g - the sum of y g in the row): the sums are a product with ones, and reach the entries by another."""
    (y,) = ctx.saved_tensors
    t = y * g
    ones = t.new_ones((1, with_number(ctx.pattern).shape[1], 1)).expand(t.shape[0], -1, -1)
    sums = _ops.spmm(t, ones, ctx.pattern, False)
    return t - y * _ops.sddmm(sums, ones, ctx.pattern), None


def _keep_product(ctx: Any, inputs: Any, output: Any) -> None:
    _, ctx.plan, ctx.adjoint = inputs


def _product_gradient(ctx: Any, g: torch.Tensor) -> Any:
    return _ops.product(g, ctx.plan, not ctx.adjoint), None, None


# ------------------------------------------------------------------ torch.func.vmap


def _front(t: torch.Tensor, dim: int | None, size: int) -> torch.Tensor:
    """The mapped dimension first, and joined with that of the products."""
    t = t.unsqueeze(0).expand(size, *t.shape) if dim is None else t.movedim(dim, 0)
    return t.flatten(0, 1)


def _mapped(operator: Any, tensors: int) -> Any:
    def rule(info: Any, in_dims: Any, *inputs: Any) -> Any:
        joined = [_front(t, d, info.batch_size) for t, d in zip(inputs[:tensors], in_dims)]
        return operator(*joined, *inputs[tensors:]).unflatten(0, (info.batch_size, -1)), 0

    return rule


def _mapped_product(info: Any, in_dims: Any, x: torch.Tensor, plan: int, adjoint: bool) -> Any:
    """All of them are columns of one product."""
    x = x.movedim(in_dims[0], 1)
    return _ops.product(x.flatten(1), plan, adjoint).unflatten(1, x.shape[1:]), 1


# ------------------------------------------------------------------ the operators


def _define(schema: str, run: Any, shape: Any, keep: Any, gradient: Any) -> Any:
    name = "spmv::" + schema.partition("(")[0]
    torch.library.define(name, schema[schema.index("(") :], tags=(torch.Tag.pt2_compliant_tag,))
    torch.library.impl(name, ("cpu", "cuda"), run)
    torch.library.register_fake(name, shape)
    torch.library.register_autograd(name, gradient, setup_context=keep)


_define(
    "spmm(Tensor values, Tensor x, int pattern, bool transpose) -> Tensor", _spmm, _spmm_shape, _keep_spmm, _spmm_gradient
)
_define("sddmm(Tensor a, Tensor b, int pattern) -> Tensor", _sddmm, _sddmm_shape, _keep_sddmm, _sddmm_gradient)
_define("softmax(Tensor x, int pattern) -> Tensor", _softmax, _softmax_shape, _keep_softmax, _softmax_gradient)
_define(
    "product(Tensor x, int plan, bool adjoint) -> Tensor", _product, _product_shape, _keep_product, _product_gradient
)
_ops = torch.ops.spmv
for _name in ("spmm", "sddmm", "softmax"):
    for _place in ("cpu", "cuda"):
        torch.library.register_autocast(f"spmv::{_name}", _place, torch.float32)
torch.library.register_vmap("spmv::spmm", _mapped(_ops.spmm, 2))
torch.library.register_vmap("spmv::sddmm", _mapped(_ops.sddmm, 2))
torch.library.register_vmap("spmv::softmax", _mapped(_ops.softmax, 1))
torch.library.register_vmap("spmv::product", _mapped_product)


# ------------------------------------------------------------------ functions


def _check(pattern: Any, **tensors: torch.Tensor) -> None:
    if not isinstance(pattern, Pattern):
        raise TypeError(f"the first argument is not a spmv.Pattern but {type(pattern).__name__}")
    for name, t in tensors.items():
        if not isinstance(t, torch.Tensor):
            raise TypeError(f"{name} is not a tensor but {type(t).__name__}")


def _values(pattern: Pattern, values: torch.Tensor) -> torch.Tensor:
    """values with a first dimension of heads."""
    if values.dim() not in (1, 2) or values.shape[-1] != pattern.nnz:
        raise ValueError(
            f"values has the shape {tuple(values.shape)}; ({pattern.nnz},) or (heads, {pattern.nnz}) is needed, "
            f"as the pattern has {pattern.nnz} entries"
        )
    return values if values.dim() == 2 else values.unsqueeze(0)


def _matrix(name: str, x: torch.Tensor, rows: int) -> torch.Tensor:
    if x.dim() not in (2, 3) or x.shape[-2] != rows:
        raise ValueError(
            f"{name} has the shape {tuple(x.shape)}; ({rows}, columns) or (heads, {rows}, columns) is needed"
        )
    return x if x.dim() == 3 else x.unsqueeze(0)


def _together(a: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Both with as many heads: one is used for all heads of the other."""
    heads = b.shape[0] if a.shape[0] == 1 else a.shape[0]
    if heads != b.shape[0] and b.shape[0] != 1:
        raise ValueError(f"{a.shape[0]} and {b.shape[0]} heads: the numbers must be equal, or one of them 1")
    a, b = (t if t.shape[0] == heads else t.expand(heads, *t.shape[1:]) for t in (a, b))
    return a, b


def spmm(pattern: Pattern, values: torch.Tensor, X: torch.Tensor, *, transpose: bool = False) -> torch.Tensor:
    """Y = A X for the sparse matrix A with the given pattern and values. Gradients: of values and X.

    Parameters
    ----------
    pattern : Pattern
        Where A has entries.
    values : Tensor
        A number for each entry, float32, float64, bfloat16 or float16, in the order of the pattern; or (heads, nnz).
    X : Tensor
        A vector, a matrix, or one for each head: (heads, rows, columns), of the type of values. Not copied if
        its matrices are in C order, or a single one in Fortran order.
    transpose : bool, optional
        True: Y = A' X.

    Returns
    -------
    Tensor
        In C order. The same bits every run.

    Examples
    --------
    >>> import torch, spmv, spmv.torch
    >>> P = spmv.Pattern(torch.eye(2).to_sparse_csr())
    >>> v = torch.tensor([2.0, 3.0], requires_grad=True)
    >>> spmv.torch.spmm(P, v, torch.ones(2, 4)).sum().backward()
    >>> v.grad
    tensor([4., 4.])
    """
    _check(pattern, values=values, X=X)
    v, x = _values(pattern, values), X.unsqueeze(1) if X.dim() == 1 else X
    x = _matrix("X", x, pattern.shape[0 if transpose else 1])
    y = _ops.spmm(*_together(v, x), pattern._number, transpose)
    if X.dim() == 1:
        y = y.squeeze(2)
    return y if values.dim() == 2 or X.dim() == 3 else y.squeeze(0)


def sddmm(pattern: Pattern, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
    """The sampled product: for each entry, in row i and column j, row i of A times row j of B.

    Gradients: of A and B.

    Parameters
    ----------
    pattern : Pattern
        Where the product is computed.
    A, B : Tensor
        ``pattern.shape[0]`` and ``pattern.shape[1]`` rows of equal length, of a type of spmm; or one such
        matrix for each head: (heads, rows, columns).

    Returns
    -------
    Tensor
        (nnz,), or (heads, nnz) if A or B has heads.

    Examples
    --------
    >>> import torch, spmv, spmv.torch
    >>> P = spmv.Pattern(torch.eye(2).to_sparse_csr())
    >>> spmv.torch.sddmm(P, torch.ones(2, 3), torch.tensor([[1.0, 2, 3], [4, 5, 6]]))
    tensor([ 6., 15.])
    """
    _check(pattern, A=A, B=B)
    a, b = _together(_matrix("A", A, pattern.shape[0]), _matrix("B", B, pattern.shape[1]))
    y = _ops.sddmm(a, b, pattern._number)
    return y if A.dim() == 3 or B.dim() == 3 else y.squeeze(0)


def softmax(pattern: Pattern, values: torch.Tensor) -> torch.Tensor:
    """The softmax of the entries of each row of a sparse matrix. Gradient: of values.

    Parameters
    ----------
    pattern : Pattern
        Where the matrix has entries.
    values : Tensor
        A number for each entry, of a type of spmm; or (heads, nnz).

    Examples
    --------
    >>> import torch, spmv, spmv.torch
    >>> P = spmv.Pattern(torch.ones(2, 2).to_sparse_csr())
    >>> spmv.torch.softmax(P, torch.zeros(4))
    tensor([0.5000, 0.5000, 0.5000, 0.5000])
    """
    _check(pattern, values=values)
    y = _ops.softmax(_values(pattern, values), pattern._number)
    return y if values.dim() == 2 else y.squeeze(0)


def matmul(plan: Plan, X: torch.Tensor) -> torch.Tensor:
    """Y = A X for the matrix of a plan. Gradient: of X, by a product with the transpose, which is made once.

    ``plan @ X`` is the same, but ``torch.compile`` divides the program there: in compiled functions
    write ``matmul``. The values of the plan must not change between a product and its gradient.

    Parameters
    ----------
    plan : Plan
        Of any type.
    X : Tensor
        A vector or a matrix, of the type of the plan or one that converts without loss.

    Returns
    -------
    Tensor
        In C order.

    Examples
    --------
    >>> import torch, spmv, spmv.torch
    >>> plan = spmv.Plan(torch.tensor([[2.0, 1.0], [0.0, 3.0]]).to_sparse_csr())
    >>> x = torch.ones(2, requires_grad=True)
    >>> spmv.torch.matmul(plan, x).sum().backward()
    >>> x.grad
    tensor([2., 4.])
    """
    if not isinstance(plan, Plan):
        raise TypeError(f"the first argument is not a spmv.Plan but {type(plan).__name__}")
    if X.dim() not in (1, 2) or X.shape[0] != plan.shape[1]:
        raise ValueError(
            f"X has the shape {tuple(X.shape)}; the first size must be {plan.shape[1]}, as the matrix has columns"
        )
    wanted = getattr(torch, type_name(plan.dtype))
    if X.dtype is not wanted:
        if torch.promote_types(X.dtype, wanted) is not wanted:
            raise TypeError(f"X has the type {X.dtype}, {wanted} is needed: convert it, or choose dtype=")
        X = X.to(wanted)
    return _ops.product(X, plan._number, False)

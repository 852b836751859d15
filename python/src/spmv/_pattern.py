# SPDX-License-Identifier: BSD-3-Clause
"""Sparsity patterns: products whose values are arguments, for functions with gradients.

The functions for PyTorch are in torch.py, those for JAX in jax.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _core
from ._arrays import Memory, View, kept, on_device, view
from ._context import ALL_CODES, HALVES, Context, context_of
from ._matrix import CONTEXT_MEMORY, Taken, host_arrays, take, transposed
from ._numbers import numbered
from ._plan import Plan

TYPES: tuple[np.dtype[Any], ...] = (np.dtype("float32"), np.dtype("float64"), *HALVES)
TYPE_NAMES = "float32, float64, bfloat16 or float16"


class _Side:
    """A pattern or its transpose in the context's memory, and the plans for it."""

    def __init__(self, matrix: Taken) -> None:
        self.matrix, self.shape = matrix, matrix.shape
        self.numbers: View | None = None  # of the entries in the caller's order; None: they are in that order
        self.plans: dict[Any, Any] = {}
        self.spaces: dict[np.dtype, Memory] = {}  # for values in this side's order

    def parts(self, values: int, dtype: np.dtype) -> tuple[int, ...]:
        parts = list(self.matrix.tuple(CONTEXT_MEMORY))
        parts[6], parts[7] = values, ALL_CODES[dtype]
        return tuple(parts)

    @property
    def keep(self) -> tuple[Any, ...]:
        return self.matrix.keep[1:]


class Pattern:
    """The places of a sparse matrix's entries, for products whose values are arguments.

    The functions of ``spmv.torch`` and ``spmv.jax`` take it: products, sampled products and the
    softmax of rows, with gradients. What they need is made on first use: plans for each number of
    vectors (those of the last 8 are kept), and the transpose for gradients, once.

    Parameters
    ----------
    A : sparse matrix, tuple or Plan
        As for ``Plan``; its values are not used. CSR is not copied: ``indices`` and ``indptr`` must
        not change. Of a plan, the pattern of its matrix, in the plan's memory.
    device, shape, copy
        As for ``Plan``.

    Attributes
    ----------
    shape : tuple of int
    nnz : int
        The number of entries. Arrays of values have them in the order of ``A.data`` of the CSR form.

    Examples
    --------
    >>> import spmv
    >>> spmv.Pattern(spmv.generate("poisson2d:10"))
    <spmv.Pattern: 100 x 100, 460 entries on cpu>
    """

    def __init__(
        self, A: Any, *, device: Any = "auto", shape: tuple[int, int] | None = None, copy: bool = False
    ) -> None:
        if isinstance(A, Plan):
            matrix, context = A._matrix, A._context
        else:
            matrix, _, context = take(A, lambda where: context_of(device, where), shape, copy=copy, halves=True)
        self._context = context
        self.shape, self.nnz = matrix.shape, matrix.nnz
        indices, indptr = (on_device(v, "A", context) for v in (matrix.indices, matrix.indptr))
        self._given = _Side(Taken(self.shape, indices, indices, indptr, matrix.kind))
        self._given.matrix.nnz = self.nnz
        self._other: _Side | None = None
        self._sampled: dict[Any, Any] = {}
        self._number = numbered(self)

    @property
    def context(self) -> Context:
        """The context that products run on."""
        return self._context

    @property
    def device(self) -> str:
        """``"cpu"`` or ``"cuda:NUMBER"``."""
        return self._context.device

    def __repr__(self) -> str:
        return f"<spmv.Pattern: {self.shape[0]} x {self.shape[1]}, {self.nnz} entries on {self.device}>"

    def __reduce__(self) -> Any:
        return _again, (host_arrays(self._given.matrix, self._context), self.shape, self._context)

    # ------------------------------------------------------------------ with addresses

    def _side(self, transpose: bool) -> _Side:
        if not transpose:
            return self._given
        if self._other is None:
            self._other = self._transposed()
        return self._other

    def _transposed(self) -> _Side:
        """The transpose, made with the numbers of the entries as values."""
        numbers = view(np.arange(self.nnz, dtype="int32" if self.nnz < 2**31 else "int64"), "numbers")
        given = self._given.matrix
        made = transposed(self._context, given, on_device(numbers, "numbers", self._context))
        side = _Side(made)
        side.numbers = made.data
        return side

    def _products(
        self,
        dtype: np.dtype,
        transpose: bool,
        vectors: int,
        count: int,
        stream: int,
        values: tuple[int, int],
        x: tuple[int, int],
        y: tuple[int, int],
        x_by_columns: bool = False,
    ) -> None:
        """count products with the pattern or its transpose, each of some vectors.

        values, x and y are addresses, with the bytes from one product to the next. x_by_columns: x is in Fortran
        order.
        """
        # of 16-bit values there is no gather: each plan has a transpose of its own
        inside = transpose and dtype in HALVES
        side, context = self._side(transpose and not inside), self._context
        rows, cols = side.shape[::-1] if inside else side.shape
        if vectors == 0 or count == 0 or rows == 0:
            return
        columns = x_by_columns, False
        if vectors == 1 and count > 1 and (values[1], x[1], y[1]) == (0, cols * dtype.itemsize, rows * dtype.itemsize):
            vectors, count, columns = count, 1, (True, True)  # one product of several vectors
        if stream:
            context._use_stream(stream)
        numbers, bits, space = 0, 32, 0
        if side.numbers is not None and self.nnz:
            if dtype not in side.spaces:
                side.spaces[dtype] = Memory(context, (self.nnz,), dtype)
            numbers, bits = side.numbers.address, 8 * side.numbers.dtype.itemsize
            space = side.spaces[dtype].address
        key = dtype, int(inside), vectors, columns
        plan = kept(side.plans, key, lambda: self._plan(side, space or values[0], *key))
        _core.products(plan, stream, count, *values, *x, *y, numbers, bits, space)

    def _plan(
        self, side: _Side, values: int, dtype: np.dtype, operation: int, vectors: int, columns: tuple[bool, bool]
    ) -> Any:
        context, code = self._context._handle, ALL_CODES[dtype]
        matrix = side.parts(values if self.nnz else 0, dtype)
        return _core.plan(context, matrix, operation, None, code, vectors, int(self.nnz > 0), -1, *columns, side.keep)

    def _sampled_of(self, dtype: np.dtype, vectors: int) -> Any:
        given = self._given
        return kept(
            self._sampled,
            (dtype, vectors),
            lambda: _core.sddmm(self._context._handle, given.parts(0, dtype), ALL_CODES[dtype], vectors, given.keep),
        )

    def _sddmm(
        self,
        dtype: np.dtype,
        vectors: int,
        count: int,
        stream: int,
        a: tuple[int, int],
        b: tuple[int, int],
        y: tuple[int, int],
    ) -> None:
        """count sampled products; operands as in _products."""
        made = self._sampled_of(dtype, vectors)
        for i in range(count if self.nnz else 0):
            _core.sddmm_apply(made, a[0] + i * a[1], b[0] + i * b[1], y[0] + i * y[1], stream)

    def _softmax(self, dtype: np.dtype, count: int, stream: int, x: tuple[int, int], y: tuple[int, int]) -> None:
        made = next((s for (of, _), s in self._sampled.items() if of == dtype), None) or self._sampled_of(dtype, 1)
        for i in range(count if self.nnz else 0):
            _core.sddmm_softmax(made, x[0] + i * x[1], y[0] + i * y[1], stream)


def _again(arrays: tuple[Any, ...], shape: tuple[int, int], context: Context) -> Pattern:
    """The pattern that was pickled or copied, made again."""
    return Pattern(arrays, shape=shape, device=context)

# SPDX-License-Identifier: BSD-3-Clause
"""Products of dense matrices at the entries of a sparse one, and the softmax of its rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _core
from ._arrays import View, check_out, empty, finished, on_device, overlap, taken, view, whole
from ._context import ALL_CODES, HALVES, Context, context_of, type_name, type_of
from ._matrix import CONTEXT_MEMORY, HOST_MEMORY, take
from ._plan import _writable


class SDDMM:
    """A sparse matrix P prepared for sampled products, Y = P o (A B').

    Entry e of P, in row i and column j, gives the number p_e times the product of row i of A and row j
    of B. With ``softmax`` and a product of ``Plan`` it makes graph attention.

    Parameters
    ----------
    P : matrix
        As for ``Plan``, with values of float64 or float32. CSR is not copied: its arrays must not change.
    vectors : int
        The number of columns of A and of B.
    values : bool, optional
        False: P is a pattern, p_e is 1. Default True.
    dtype : numpy.dtype, optional
        The type of A, B and Y if P is a pattern. Default: that of the values of P.
    device, shape
        As for ``Plan``.

    Examples
    --------
    >>> import numpy as np, spmv
    >>> from scipy.sparse import csr_array
    >>> P = csr_array(np.array([[2.0, 0, 1], [0, 1, 0]]))
    >>> s = spmv.SDDMM(P, vectors=2)
    >>> y = s.multiply(np.array([[1.0, 2], [3, 4]]), np.array([[1.0, 1], [2, 0], [0, 5]]))
    >>> y
    array([ 6., 10.,  6.])
    >>> s.softmax(np.array([1.0, 1, 7]))
    array([0.5, 0.5, 1. ])
    """

    def __init__(
        self,
        P: Any,
        vectors: int,
        *,
        values: bool = True,
        dtype: Any = None,
        device: Any = "auto",
        shape: tuple[int, int] | None = None,
    ) -> None:
        self._vectors = whole(vectors, "vectors", 1)
        matrix, _, context = take(P, lambda where: context_of(device, where), shape, halves=True)
        self._dtype = type_of(dtype if dtype is not None else matrix.data.dtype)
        if self._dtype not in HALVES and (self._dtype.kind != "f" or self._dtype.itemsize not in (4, 8)):
            raise TypeError(
                f"sampled products are in float64, float32, bfloat16 and float16, not in {type_name(self._dtype)}"
            )
        if values and self._dtype != matrix.data.dtype:
            raise TypeError(
                f"P has values of the type {type_name(matrix.data.dtype)}, not of {type_name(self._dtype)}: convert them"
            )
        self._context = context
        self.shape, self.nnz = matrix.shape, matrix.nnz
        borrow = matrix.device == ("cpu" if not context.is_cuda else context.device)
        if context.is_cuda and borrow and matrix.data.stream is not None:
            context._use_stream(*matrix.data.stream)
        parts = list(matrix.tuple(CONTEXT_MEMORY if borrow else HOST_MEMORY))
        if not values:
            parts[6] = 0
        self._handle = _core.sddmm(
            context._handle, tuple(parts), ALL_CODES[self._dtype], self._vectors, matrix.keep if borrow else None
        )

    @property
    def context(self) -> Context:
        """The context that it runs on."""
        return self._context

    def multiply(self, A: Any, B: Any, out: Any = None) -> Any:
        """Compute Y, an array with a number for each entry of P, in the order of ``P.data``.

        Parameters
        ----------
        A, B : array
            ``P.shape[0]`` and ``P.shape[1]`` rows of ``vectors`` numbers. Arrays in C order are not copied.
        out : array, optional
            Receives the result, which is also returned.
        """
        context = self._context
        (a, given), (b, _) = (taken(x, name, self._dtype, context) for x, name in ((A, "A"), (B, "B")))
        for v, name, rows in ((a, "A", self.shape[0]), (b, "B", self.shape[1])):
            if v.shape != (rows, self._vectors):
                raise ValueError(f"{name} has the shape {v.shape}, {(rows, self._vectors)} is needed")
        result, target = self._result(given, out)
        if overlap(a, target) or overlap(b, target):
            raise ValueError("out overlaps A or B")
        stream = a.stream[0] if a.stream else 0
        _core.sddmm_apply(self._handle, a.address, b.address, target.address, stream)
        return self._ended(result, target, given, out)

    def softmax(self, x: Any, out: Any = None) -> Any:
        """The softmax of each row of a matrix with the pattern of P and the values x.

        Parameters
        ----------
        x : array
            A number for each entry of P.
        out : array, optional
            Receives the result, which is also returned; it may be x.
        """
        source, given = taken(x, "x", self._dtype, self._context)
        if source.shape != (self.nnz,):
            raise ValueError(f"x has the shape {source.shape}, P has {self.nnz} entries")
        result, target = self._result(given, out)
        if target.address != source.address and overlap(source, target):
            raise ValueError("x and out overlap in part")
        stream = source.stream[0] if source.stream else 0
        _core.sddmm_softmax(self._handle, source.address, target.address, stream)
        return self._ended(result, target, given, out)

    def _result(self, given: View, out: Any) -> tuple[View, View]:
        """The view of the result, and that of the memory of the context in which it is computed."""
        context, shape = self._context, (self.nnz,)
        if out is None:
            result = empty(given, shape, self._dtype, context)
        else:
            result = check_out(out, shape, self._dtype, given, context)
        return result, on_device(result, "out", context) if context.is_cuda and result.on_host else result

    def _ended(self, result: View, target: View, given: View, out: Any) -> Any:
        if target is not result and result.bytes:
            _core.download(self._context._handle, target.address, _writable(result))
        return finished(result, given) if out is None else out

    def __repr__(self) -> str:
        return (
            f"<spmv.SDDMM: {self.shape[0]} x {self.shape[1]}, {self.nnz} entries, {self._vectors} vectors, "
            f"{self._dtype} on {self._context.device}>"
        )

    def __reduce__(self) -> Any:
        raise TypeError("a sampled product cannot be pickled or copied: make one where it is needed")

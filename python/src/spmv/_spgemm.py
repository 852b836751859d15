# SPDX-License-Identifier: BSD-3-Clause
"""Products of sparse matrices, and plans that repeat them with new values."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np

from . import _core
from ._arrays import as_numpy, check_out, empty, on_device, taken, view
from ._context import Context, context_of
from ._matrix import CONTEXT_MEMORY, CSR, HOST_MEMORY, Taken, assembled, host_arrays, made, pattern_arrays, take
from ._plan import _writable


def spgemm(A: Any, B: Any, *, method: str = "auto", device: Any = "auto") -> Any:
    """The product of two sparse matrices, C = A B.

    Parameters
    ----------
    A, B : matrix
        As for ``Plan``, both in the same memory. Values of fewer digits are converted.
    method : str, optional
        The name of a method; default ``"auto"``.

    Returns
    -------
    matrix
        Of the kind of A: for a ``csr_matrix`` of SciPy a ``csr_matrix``, for its other matrices too,
        for its arrays a ``csr_array``. An entry is there if a product contributes to it, also if the
        sum is 0. Columns ascend. Repeated entries of A and B are summed first; those of a matrix on
        a GPU are a ValueError.

    Examples
    --------
    >>> import spmv
    >>> A = spmv.generate("poisson2d:2")
    >>> spmv.spgemm(A, A).toarray()[0]
    array([18., -8., -8.,  2.])
    """
    (first, second), context = _taken_together((A, B), device)
    return made(_product(context, first, second, method), context, first.kind)


def spgemm_triple(R: Any, A: Any, P: Any, *, method: str = "auto", device: Any = "auto") -> Any:
    """The product of three sparse matrices, R (A P), such as P' A P of multigrid; A P is made first.

    The parameters and the result are as for ``spgemm``.

    Examples
    --------
    >>> import numpy as np, spmv
    >>> from scipy.sparse import csr_array
    >>> P = csr_array(np.array([[1.0, 0], [1, 0], [0, 1], [0, 1]]))
    >>> spmv.spgemm_triple(P.T, spmv.generate("poisson2d:2"), P).toarray()
    array([[ 6., -2.],
           [-2.,  6.]])
    """
    (r, a, p), context = _taken_together((R, A, P), device)
    half = made(_product(context, a, p, method), context, a.kind if a.device != "cpu" else "numpy")
    return made(_product(context, r, take(half, lambda where: context)[0], method), context, r.kind)


class SpgemmPlan:
    """A product of two or three sparse matrices that is repeated with new values.

    It keeps the pattern of the product; ``multiply`` computes its values only.

    Parameters
    ----------
    *matrices : matrix
        A and B for A B, or R, A and P for R (A P), all in the same memory. The columns of each row
        must ascend without repeats; ``A.sum_duplicates()`` of SciPy does that. The arrays of a
        matrix on a GPU are used as they are and must not change.
    method, device
        As for ``spgemm``.

    Examples
    --------
    >>> import numpy as np, spmv
    >>> A = spmv.generate("poisson2d:2")
    >>> plan = spmv.SpgemmPlan(A, A)
    >>> plan.multiply(2 * A.data, None).toarray()[0]
    array([ 36., -16., -16.,   4.])
    """

    def __init__(self, *matrices: Any, method: str = "auto", device: Any = "auto") -> None:
        if len(matrices) not in (2, 3):
            raise TypeError(f"a product of two or three matrices, not {len(matrices)}")
        self._matrices, self._context = _taken_together(matrices, device)
        context, first = self._context, self._matrices[0]
        for i, m in enumerate(self._matrices):
            if m.device == "cpu" and m.nnz and _out_of_order(m, strictly=True).size:
                raise ValueError(
                    f"matrix {i + 1} has columns that do not ascend or are repeated: A.sum_duplicates() sorts and sums"
                )
        self._method = None if method == "auto" else str(method)
        self._dtype = first.data.dtype
        self._last = self._plan(self._matrices[-2], self._matrices[-1])
        self._plans, self._half = [self._last], None
        if len(matrices) == 3:  # A P, whose values are computed into memory of the plan
            _, cols, nnz, *_ = _core.spgemm_pattern(self._last)
            self._half = on_device(view(np.zeros(nnz, self._dtype), "A P"), "A P", context)
            parts = list(_core.spgemm_pattern(self._last))
            parts[6] = self._half.address
            last = _core.spgemm_plan(
                context._handle, self._parts(first), tuple(parts), self._method, (first.keep, self._last)
            )
            self._plans.append(last)
            self._last = last
        rows, cols, nnz, *_ = _core.spgemm_pattern(self._last)
        self.shape, self.nnz = (rows, cols), nnz

    def _parts(self, m: Taken) -> tuple[int, ...]:
        return m.tuple(CONTEXT_MEMORY if m.device != "cpu" or not self._context.is_cuda else HOST_MEMORY)

    def _plan(self, a: Taken, b: Taken) -> Any:
        with _repeats_named(a):
            return _core.spgemm_plan(
                self._context._handle, self._parts(a), self._parts(b), self._method, (a.keep, b.keep)
            )

    def values(self, *values: Any, out: Any = None) -> Any:
        """The values of the product: ``data`` of the matrix that ``multiply`` makes.

        Parameters
        ----------
        *values : array or None
            For each matrix an array as its ``data``. None: the array that the plan was made with.
        out : array, optional
            Receives the result. Default: a new array of the kind of the first matrix.
        """
        if len(values) != len(self._matrices):
            raise TypeError(f"{len(self._matrices)} arrays of values are needed, not {len(values)}")
        context, first = self._context, self._matrices[0]
        given = [m.data if v is None else view(v, "values", context) for m, v in zip(self._matrices, values)]
        sources = []
        for i, (v, m) in enumerate(zip(given, self._matrices)):
            if len(v.shape) != 1 or v.shape[0] < m.nnz or (v.shape[0] > m.nnz and v is not m.data):
                raise ValueError(f"the values of matrix {i + 1} have the shape {v.shape}, it has {m.nnz} entries")
            sources.append(taken(v, f"the values of matrix {i + 1}", self._dtype, context)[0])
        like = first.data
        result = (
            empty(like, (self.nnz,), self._dtype, context)
            if out is None
            else check_out(out, (self.nnz,), self._dtype, like, context)
        )
        target = on_device(result, "out", context)
        if any(v.address < target.address + target.bytes and target.address < v.address + v.bytes for v in sources):
            raise ValueError("out overlaps the values of a matrix")
        addresses = [v.address for v in sources]
        if self._half is not None:
            _core.spgemm_values(self._plans[0], addresses[1], addresses[2], self._half.address)
            addresses = [addresses[0], self._half.address]
        _core.spgemm_values(self._last, *addresses, target.address)
        if target is not result and result.bytes:
            _core.download(context._handle, target.address, _writable(result))
        return result.array if out is None else out

    def multiply(self, *values: Any) -> Any:
        """The product as a matrix of its own, of the kind of the first one; values as for ``values``."""
        data = self.values(*values)
        first = self._matrices[0]
        indptr, indices = pattern_arrays(self._last, _core.spgemm_pattern(self._last), self._context, first)
        return assembled(data, indices, indptr, self.shape, first.kind)

    def describe(self) -> list[dict[str, Any]]:
        """For each of the products: method and why, sizes, products of entries, bytes, seconds."""
        return [_core.spgemm_info(plan) for plan in self._plans]

    def __repr__(self) -> str:
        return f"<spmv.SpgemmPlan: {self.shape[0]} x {self.shape[1]}, {self.nnz} entries, {self._dtype}>"

    def __reduce__(self) -> Any:
        matrices = self._matrices
        if any(m.device != "cpu" for m in matrices):
            raise TypeError("a plan for matrices on a GPU cannot be pickled or copied: make one where it is needed")
        parts = tuple(assembled(*host_arrays(m, self._context), m.shape, m.kind) for m in matrices)
        return _again, (parts, self._method or "auto", self._context)


def _again(matrices: tuple[Any, ...], method: str, context: Context) -> SpgemmPlan:
    """The plan that was pickled or copied, made again."""
    return SpgemmPlan(*matrices, method=method, device=context)


# Old names, until 0.11.
multiply, multiply_triple, MultiplyPlan = spgemm, spgemm_triple, SpgemmPlan


def _taken_together(matrices: tuple[Any, ...], device: Any) -> tuple[list[Taken], Any]:
    """The matrices with values of one type in one memory, and the context for them."""
    taken_all = [take(m, lambda where: context_of(device, where)) for m in matrices]
    wanted = np.result_type(*(m.data.dtype for m, _, _ in taken_all))
    for i, (m, _, context) in enumerate(taken_all):
        if m.data.dtype != wanted:
            taken_all[i] = take(_cast(matrices[i], wanted), lambda where: context_of(device, where))
        if m.device != taken_all[0][0].device:
            raise ValueError(f"matrix 1 is on {taken_all[0][0].device}, matrix {i + 1} on {m.device}")
    return [m for m, _, _ in taken_all], taken_all[0][2]


@contextlib.contextmanager
def _repeats_named(m: Taken) -> Any:
    """Names the cure of repeated entries of a matrix on a GPU, which are not summed here."""
    try:
        yield
    except ValueError as error:
        if m.device != "cpu" and "ascend" in str(error):
            raise ValueError(f"{error}; if entries are repeated, sum them: A.sum_duplicates()") from None
        raise


def _product(context: Any, first: Taken, second: Taken, method: str) -> Any:
    """The product, as a matrix of the library."""
    memory = HOST_MEMORY if first.device == "cpu" else CONTEXT_MEMORY
    a, b = (_sorted(context, m, memory) for m in (first, second))
    with _repeats_named(first):
        return _core.matrix_spgemm(context._handle, a[0], b[0], None if method == "auto" else str(method))


def _cast(A: Any, dtype: np.dtype) -> Any:
    """The matrix with values of the type."""
    if hasattr(A, "astype"):
        return A.astype(dtype)
    if hasattr(A, "tocsr") or not hasattr(A, "to"):
        if isinstance(A, CSR):
            return CSR(A.data.astype(dtype), A.indices, A.indptr, A.shape)
        raise TypeError("A and B must have the same type")
    import torch

    return A.to(getattr(torch, dtype.name))


def _sorted(context: Any, matrix: Taken, memory: int) -> tuple[Any, Any]:
    """The matrix with strictly ascending columns in host memory, and what keeps it alive.

    Repeated entries are summed in their order. On a GPU the library refuses them.
    """
    parts = matrix.tuple(memory)
    if not matrix.nnz or (matrix.device == "cpu" and not _out_of_order(matrix, strictly=True).size):
        return parts, matrix
    if matrix.device != "cpu" or _out_of_order(matrix, strictly=False).size:
        once = _core.matrix_transpose(context._handle, parts)
        twice = _core.matrix_transpose(context._handle, _core.matrix_view(once))
        if matrix.device != "cpu":
            return _core.matrix_view(twice), twice
        held = made(twice, context, "numpy")
        matrix, _, _ = take(held, lambda where: context)
    columns, offsets, values = (as_numpy(v) for v in (matrix.indices, matrix.indptr, matrix.data))
    columns, values = columns[: matrix.nnz], values[: matrix.nnz]
    repeated = np.zeros(matrix.nnz + 1, bool)
    repeated[_out_of_order(matrix, strictly=True)] = True
    first = np.flatnonzero(~repeated[:-1])
    summed = values[first].copy()
    np.add.at(summed, np.cumsum(~repeated[:-1])[repeated[:-1]] - 1, values[repeated[:-1]])
    fewer = offsets - np.concatenate([[0], np.cumsum(repeated[:-1])])[offsets].astype(offsets.dtype)
    matrix, _, _ = take(CSR(summed, columns[first], fewer, matrix.shape), lambda where: context)
    return matrix.tuple(memory), matrix


def _out_of_order(matrix: Taken, strictly: bool) -> np.ndarray:
    """The entries whose column is less than (strictly: or equal to) that of the entry before in the row."""
    columns = as_numpy(matrix.indices)[: matrix.nnz]
    steps = np.diff(columns)
    found = np.flatnonzero(steps <= 0 if strictly else steps < 0) + 1
    return found[~np.isin(found, as_numpy(matrix.indptr))]

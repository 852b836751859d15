# SPDX-License-Identifier: BSD-3-Clause
"""Plans: a matrix prepared for products."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _core
from ._arrays import (
    View,
    by_columns,
    check_out,
    copied,
    differentiable,
    direct,
    empty,
    finished,
    kept,
    on_device,
    overlap,
    taken,
    view,
    whole,
)
from ._context import ALL_CODES, HALVES, Context, context_of, type_name
from ._matrix import CONTEXT_MEMORY, HOST_MEMORY, Taken, host_arrays, take, transposed
from ._numbers import numbered

try:
    from scipy.sparse.linalg import LinearOperator as _Base
except ImportError:

    class _Base:  # type: ignore[no-redef]
        """The part of SciPy's LinearOperator that works without SciPy."""

        def __init__(self, dtype: Any, shape: tuple[int, int]) -> None:
            self.dtype, self.shape = np.dtype(dtype), shape

        ndim = 2

        def matvec(self, x: Any) -> Any:
            return self._matvec(x)  # type: ignore[attr-defined]

        def rmatvec(self, x: Any) -> Any:
            return self._rmatvec(x)  # type: ignore[attr-defined]

        def matmat(self, x: Any) -> Any:
            return self._matmat(x)  # type: ignore[attr-defined]

        def dot(self, x: Any) -> Any:
            return self @ x  # type: ignore[operator]

        def __call__(self, x: Any) -> Any:
            return self @ x  # type: ignore[operator]


_ndarray = np.ndarray
_empty = np.empty
_multiply = _core.multiply

# Whether x and y lie column by column.
_ROWS = (False, False)

_OPERATIONS = {False: 0, True: 1, "N": 0, "T": 1, "H": 2}


class Plan(_Base):  # type: ignore[misc, valid-type]
    """A matrix prepared for products y = A x.

    A plan examines the matrix once and chooses a method. Products then allocate nothing but their
    result. A plan is a ``scipy.sparse.linalg.LinearOperator``, so the solvers of SciPy take it.

    Parameters
    ----------
    A : sparse matrix or tuple
        A sparse array or matrix of SciPy, of ``cupyx.scipy.sparse`` or of PyTorch, or three arrays
        ``(data, indices, indptr)`` with ``shape``. CSR is not copied: the plan uses the arrays of
        the matrix, which must not change (``update_values`` replaces the values). 64-bit column
        indices are copied to 32 bits.
    dtype : numpy.dtype, optional
        The type of x, y and the sums: float64, float32, complex128 or complex64; float16 or bfloat16 for a matrix
        of this type, with sums in float32. Default: that of
        the matrix, float64 for integers. With float64, a float32 matrix stays in float32.
    transpose : bool or str, optional
        True or ``"T"``: products with the transpose, ``"H"`` with its conjugate.
    vectors : int, optional
        The number of vectors that one product multiplies. A product with another number makes a
        plan for it, and keeps the last one.
    method : str, optional
        A name of ``Plan.methods()``; default ``"auto"``.
    device : str or Context, optional
        ``"cpu"``, ``"cuda"``, ``"cuda:1"``, ``"ref"`` or a context. Default ``"auto"``: where the
        arrays of the matrix are. ``"cuda"`` copies a matrix in host memory to the GPU.
    shape : tuple of int, optional
        With three arrays: rows and columns.
    copy : bool, optional
        True: copy the arrays, so that the matrix may change. Default False.

    Examples
    --------
    >>> import numpy as np, spmv
    >>> data, indices, indptr = np.array([2.0, 1, 3, 4, 5]), np.array([0, 2, 1, 0, 2]), np.array([0, 2, 3, 5])
    >>> plan = spmv.Plan((data, indices, indptr), shape=(3, 3))
    >>> plan @ np.ones(3)
    array([3., 3., 9.])
    >>> plan.T @ np.ones(3)
    array([6., 3., 6.])
    >>> y = np.ones(3)
    >>> plan.apply(np.ones(3), out=y, alpha=2.0, beta=-1.0)
    array([ 5.,  5., 17.])
    """

    def __init__(
        self,
        A: Any,
        dtype: Any = None,
        transpose: bool | str = False,
        vectors: int = 1,
        method: str = "auto",
        device: Any = "auto",
        *,
        shape: tuple[int, int] | None = None,
        copy: bool = False,
    ) -> None:
        if transpose not in _OPERATIONS:
            raise ValueError(f'transpose is {transpose!r}, not True, False, "N", "T" or "H"')
        vectors = whole(vectors, "vectors", 1)
        matrix, vector_type, context = take(A, lambda where: context_of(device, where), shape, dtype, copy, True)
        self._open(matrix, vector_type, context, _OPERATIONS[transpose], vectors, method, copy, None, _ROWS)

    @classmethod
    def _of(cls, other: Plan, operation: int, vectors: int, columns: tuple[bool, bool]) -> Plan:
        """Another plan for the same matrix."""
        self = cls.__new__(cls)
        method = other._method if operation == other._operation and vectors == other._vectors else "auto"
        self._open(other._matrix, other._dtype, other._context, operation, vectors, method, other._copy, other, columns)
        return self

    def _open(
        self,
        matrix: Taken,
        dtype: np.dtype,
        context: Context,
        operation: int,
        vectors: int,
        method: str,
        copy: bool,
        parent: Plan | None,
        columns: tuple[bool, bool],
    ) -> None:
        rows, cols = matrix.shape if operation == 0 else matrix.shape[::-1]
        super().__init__(dtype, (rows, cols))
        self._matrix, self._dtype, self._context, self._copy = matrix, dtype, context, copy
        self._operation, self._vectors, self._method, self._columns = operation, vectors, method, columns
        self._values: View = parent._values if parent is not None else matrix.data
        self._others: dict[Any, Plan] = {}
        self._reverse: Plan | None = None
        self._number = numbered(self)
        # On a GPU from the start: graphs that captured products must not lose their plan.
        self._updates = context.is_cuda
        self._x_shape = (cols,) if vectors == 1 else (cols, vectors)
        self._y_shape = (rows,) if vectors == 1 else (rows, vectors)
        self._x_bytes, self._y_bytes = (n * vectors * self._dtype.itemsize for n in (cols, rows))
        self._on_host = not context.is_cuda
        self._make()

    def _make(self) -> None:
        m, context = self._matrix, self._context
        borrow = m.device == ("cpu" if not context.is_cuda else context.device)
        if context.is_cuda and borrow and m.data.stream is not None:
            context._use_stream(*m.data.stream)
        parts = list(m.tuple(CONTEXT_MEMORY if borrow else HOST_MEMORY))
        parts[6] = self._values.address if m.nnz else 0
        keep = (*m.keep, self._values.keep) if borrow else None
        self._handle = _core.plan(
            context._handle,
            tuple(parts),
            self._operation,
            None if self._method == "auto" else str(self._method),
            ALL_CODES[self._dtype],
            self._vectors,
            int(self._updates and m.nnz > 0),
            -1,
            *self._columns,
            keep,
        )

    # ------------------------------------------------------------------ products

    def __matmul__(self, x: Any) -> Any:
        if type(x) is _ndarray and self._on_host:
            out = _empty(self._y_shape, self._dtype)
            if _multiply(self._handle, x, out, None, None):
                return out
            return self._product(x, None, None, None)
        traced = differentiable(x)
        if traced is not None:
            return traced.matmul(self, x)
        if not self._on_host:
            out = self._direct(x, None, None, None)
            if out is not None:
                return out
        if isinstance(x, _Base):
            return super().__matmul__(x)  # type: ignore[misc]
        return self._product(x, None, None, None)

    def apply(self, x: Any, out: Any = None, alpha: Any = None, beta: Any = None) -> Any:
        """Compute alpha A x + beta out.

        Parameters
        ----------
        x : array
            One vector, or a matrix whose columns are vectors. An array of NumPy, CuPy, PyTorch or
            JAX is not copied if it has the type of the plan and is contiguous in C order, nor a matrix
            of NumPy, CuPy or PyTorch in Fortran order. On a GPU the work is queued on the current
            stream of x's library.
        out : array, optional
            Receives the result, which is also returned, in C or Fortran order. It must not overlap x.
            Default: a new array of the kind and in the order of x.
        alpha, beta : number, optional
            Default 1 and 0. With beta, out is also read.

        Returns
        -------
        array
            Of the kind of x.
        """
        if not self._on_host:
            result = self._direct(x, out, alpha, beta)
            if result is not None:
                return result
        elif out is not None and _multiply(self._handle, x, out, alpha, beta):
            return out
        return self._product(x, out, alpha, beta)

    def _direct(self, x: Any, out: Any, alpha: Any, beta: Any) -> Any:
        """The product of arrays of CuPy or PyTorch that are used as they are. None: others, or an error."""
        reader = direct(type(x))
        if reader is None or (type(out) is not type(x) if out is not None else beta is not None):
            return None
        context = self._context
        number = context.number
        source = reader.address(x, self._x_shape, self._dtype, number)
        if not source:
            return None
        if out is None:
            result, target = reader.empty(x, self._y_shape, number)
        else:
            result, target = out, reader.address(out, self._y_shape, self._dtype, number)
        if not target or (source < target + self._y_bytes and target < source + self._x_bytes):
            return None
        stream, owner = reader.stream(number)
        _core.apply(self._handle, source, target, alpha, beta, stream)
        context._stream_owner = owner
        return result

    def _product(self, x: Any, out: Any, alpha: Any, beta: Any) -> Any:
        context, (rows, cols) = self._context, self.shape
        given = view(x, "x", context)
        if len(given.shape) not in (1, 2) or given.shape[0] != cols:
            raise ValueError(f"x has the shape {given.shape}; the first size must be {cols}, as the matrix has columns")
        vectors = 1 if len(given.shape) == 1 else given.shape[1]
        shape = (rows,) + given.shape[1:]
        if beta is not None and out is None:
            raise ValueError("beta needs out")
        if vectors == 0:
            return finished(empty(given, shape, self._dtype, context), given)
        source, given = taken(given, "x", self._dtype, context, columns=True)
        x_columns = given.dtype == self._dtype and by_columns(given)
        result = empty(given, shape, self._dtype, context, x_columns) if out is None else check_out(
            out, shape, self._dtype, given, context, columns=True
        )
        columns = x_columns, by_columns(result)
        if overlap(source, result):
            raise ValueError("x and out overlap")
        same = vectors == self._vectors and columns == self._columns
        plan = self if same else self._with(self._operation, vectors, columns)
        target = result
        if context.is_cuda and result.on_host:
            target = on_device(result, "out", context)  # uploads it, for beta
        # the stream again, under the lock: another thread may have changed it
        _core.apply(plan._handle, source.address, target.address, alpha, beta, source.stream[0] if source.stream else 0)
        if target is not result and result.bytes:
            _core.download(context._handle, target.address, _writable(result))
        return finished(result, given) if out is None else out

    def _with(self, operation: int, vectors: int, columns: tuple[bool, bool] = _ROWS) -> Plan:
        """The plan for another operation, number of vectors or order; those used last are kept.

        Where the plans copy the matrix, one of several vectors is kept for each operation and order.
        """
        borrows = operation == 0 and (self._matrix.device != "cpu" or self._on_host)
        key = (operation, vectors if borrows else vectors > 1, columns)
        return kept(
            self._others,
            key,
            lambda: Plan._of(self, operation, vectors, columns),
            lambda other: other._vectors == vectors,
        )

    def _backward(self, conjugate: bool = True) -> Plan:
        """The plan for the (conjugate) transpose that gradients use: any number of vectors with one transpose."""
        if self._operation != 0 or self._dtype.kind == "c" or self._dtype in HALVES:
            return self.H if conjugate else self.T
        if self._reverse is None:
            matrix = transposed(self._context, self._matrix, self._values)
            self._reverse = Plan.__new__(Plan)
            self._reverse._open(matrix, self._dtype, self._context, 0, 1, "auto", False, None, _ROWS)
        return self._reverse

    def _addresses(self, shape: tuple[int, ...], count: int, stream: int, x: tuple[int, int], y: tuple[int, int]) -> None:
        """count products of arrays whose sizes are rows and shape: addresses, and bytes from one to the next."""
        vectors, columns = shape[0] if shape else 1, _ROWS
        if not shape and count > 1:
            vectors, count, columns = count, 1, (True, True)
        if vectors == 0 or self.shape[0] == 0:
            return
        same = vectors == self._vectors and columns == self._columns
        plan = self if same else self._with(self._operation, vectors, columns)
        for i in range(count):
            _core.apply(plan._handle, x[0] + i * x[1], y[0] + i * y[1], None, None, stream)

    def _matvec(self, x: Any) -> Any:
        return self @ x

    def _matmat(self, x: Any) -> Any:
        return self @ x

    def _rmatvec(self, x: Any) -> Any:
        return self.H @ x

    def _rmatmat(self, x: Any) -> Any:
        return self.H @ x

    def matvec(self, x: Any) -> Any:
        """A x, as ``plan @ x``."""
        return self._product(x, None, None, None)

    def rmatvec(self, x: Any) -> Any:
        """The product with the conjugate transpose, as ``plan.H @ x``."""
        return self.H._product(x, None, None, None)

    def _change(self, to: dict[int, int]) -> Plan | None:
        operation = to.get(self._operation)
        if self._dtype.kind != "c" and operation is None:
            operation = 0
        if operation is None:
            return None
        if operation == 2 and self._dtype.kind != "c":
            operation = 1
        return self._with(operation, self._vectors)

    def _transposed(self, change: dict[int, int]) -> Any:
        other = self._change(change)
        if other is None:
            raise NotImplementedError("no products with the conjugate of a complex matrix: conjugate x and y instead")
        return other

    @property
    def T(self) -> Any:
        """A plan for products with the transpose; made on first use."""
        return self._transposed({0: 1, 1: 0})

    @property
    def H(self) -> Any:
        """A plan for products with the conjugate transpose; made on first use."""
        return self._transposed({0: 2, 2: 0})

    def _transpose(self) -> Any:
        return self.T

    def _adjoint(self) -> Any:
        return self.H

    def transpose(self) -> Any:
        """As ``plan.T``."""
        return self.T

    def adjoint(self) -> Any:
        """As ``plan.H``."""
        return self.H

    # ------------------------------------------------------------------ values, description

    def update_values(self, values: Any) -> None:
        """Replace the values of the matrix; its pattern stays.

        Parameters
        ----------
        values : array
            As many elements as the matrix has entries, in their order: ``A.data`` of the CSR form.
            The plan uses this array from now on, so it must not change; with ``copy=True`` it is
            copied.

        Examples
        --------
        >>> import numpy as np, spmv
        >>> plan = spmv.Plan((np.ones(2), np.array([0, 1]), np.array([0, 1, 2])), shape=(2, 2))
        >>> plan.update_values(np.array([5.0, 7.0]))
        >>> plan @ np.ones(2)
        array([5., 7.])
        """
        m, context = self._matrix, self._context
        stored = m.data.dtype
        v, given = taken(values, "values", stored, context)
        if v.shape != (m.nnz,):
            raise ValueError(f"values has the shape {v.shape}, the matrix has {m.nnz} entries")
        if self._copy and v is given:
            v = copied(v, context)
        self._others.clear()
        self._reverse = None
        if m.nnz == 0:
            return
        if self._updates:
            _core.update_values(self._handle, v.address, (*m.keep, v.keep))
            if m.device != "cpu" or not context.is_cuda:
                self._values = v
            else:
                self._values = _on_host(v, values)
            return
        old = self._values
        self._values, self._updates = v, True
        try:
            self._make()
        except BaseException:
            self._values, self._updates = old, False
            raise

    def describe(self) -> dict[str, Any]:
        """What the plan is: method and why, layout, type, sizes, bytes, seconds, device.

        Examples
        --------
        >>> import spmv
        >>> spmv.Plan(spmv.generate("poisson2d:10")).describe()["nnz"]
        460
        """
        about = _core.plan_info(self._handle)
        about["device"] = self._context.description
        return about

    @property
    def nnz(self) -> int:
        """The number of entries."""
        return self._matrix.nnz

    @property
    def context(self) -> Context:
        """The context that the plan runs on."""
        return self._context

    @staticmethod
    def methods(device: str = "cpu") -> list[str]:
        """The names of the methods on a device.

        Examples
        --------
        >>> import spmv
        >>> "tiles" in spmv.Plan.methods()
        True
        """
        return _core.method_names("plan", {"cpu": "omp"}.get(device, device.partition(":")[0]))

    def __repr__(self) -> str:
        about = self.describe()
        return (
            f"<spmv.Plan: {about['rows']} x {about['cols']}, {about['nnz']} entries, {type_name(self._dtype)}, "
            f"method {about['method']} on {self._context.device}>"
        )

    def __reduce__(self) -> Any:
        about = self._dtype, self._operation, self._vectors, self._method, self._copy, self._columns
        return _again, (host_arrays(self._matrix, self._context, self._values), self._matrix.shape, self._context, *about)


def _again(
    arrays: tuple[Any, ...],
    shape: tuple[int, int],
    context: Context,
    dtype: np.dtype,
    operation: int,
    vectors: int,
    method: str,
    copy: bool,
    columns: tuple[bool, bool],
) -> Plan:
    """The plan that was pickled or copied, made again."""
    plan = Plan.__new__(Plan)
    matrix, _, _ = take(arrays, lambda where: context, shape, dtype, False, True)
    plan._open(matrix, dtype, context, operation, vectors, method, copy, None, columns)
    return plan


def _writable(v: View) -> Any:
    array = v.array if isinstance(v.array, np.ndarray) else v.array.numpy()
    return (array.T if by_columns(v) else array).reshape(-1).view(np.uint8)


def _on_host(v: View, values: Any) -> View:
    """The values of a matrix that lies in host memory, for plans that are made from it later."""
    return view(np.array(values, dtype=v.dtype), "values")

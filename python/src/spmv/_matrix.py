# SPDX-License-Identifier: BSD-3-Clause
"""Matrices as the library reads them: three arrays, borrowed where possible."""

from __future__ import annotations

import operator
import sys
from typing import Any

import numpy as np

from . import _core
from ._arrays import View, as_numpy, copied, is_finite, view, warn_rounded
from ._context import ALL_CODES, DTYPES, FLOATING, HALVES, Context, type_name, type_of

CONTEXT_MEMORY, HOST_MEMORY = 0, 1
INT32, INT64 = np.dtype("int32"), np.dtype("int64")


class CSR:
    """A matrix in compressed sparse rows, where SciPy is not installed.

    Attributes
    ----------
    shape : tuple of int
    indptr, indices, data : numpy.ndarray
        As in ``scipy.sparse.csr_array``.
    """

    def __init__(self, data: np.ndarray, indices: np.ndarray, indptr: np.ndarray, shape: tuple[int, int]) -> None:
        self.data, self.indices, self.indptr = data, indices, indptr
        self.shape = (int(shape[0]), int(shape[1]))

    @property
    def nnz(self) -> int:
        return int(self.indptr[-1])

    @property
    def dtype(self) -> np.dtype:
        return self.data.dtype

    def toarray(self) -> np.ndarray:
        """The matrix with all its zeros; entries at the same place are added."""
        full = np.zeros(self.shape, self.data.dtype)
        rows = np.repeat(np.arange(self.shape[0]), np.diff(self.indptr))
        np.add.at(full, (rows, self.indices), self.data)
        return full

    def __repr__(self) -> str:
        return f"<spmv.CSR: {self.shape[0]} x {self.shape[1]}, {self.nnz} entries, {self.dtype}>"


class Taken:
    """A matrix: three views, with 32-bit columns (64-bit ones: ``take`` with wide), and the values' type."""

    def __init__(self, shape: tuple[int, int], data: View, indices: View, indptr: View, kind: str) -> None:
        self.shape = (int(shape[0]), int(shape[1]))
        self.data, self.indices, self.indptr = data, indices, indptr
        self.device = data.device
        self.kind = kind  # of the matrix, for a result of the same kind
        self.nnz = 0

    @property
    def keep(self) -> tuple[Any, ...]:
        return (self.data.keep, self.indices.keep, self.indptr.keep)

    def tuple(self, memory: int) -> tuple[int, ...]:
        return (
            self.shape[0],
            self.shape[1],
            self.nnz,
            self.indptr.address,
            8 * self.indptr.dtype.itemsize,
            self.indices.address,
            self.data.address if self.nnz else 0,
            ALL_CODES[self.data.dtype],
            memory,
        )


def host_arrays(matrix: Taken, context: Context, values: View | None = None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """data, indices and indptr in host memory, for a copy of what was made of the matrix; not copied if they are there."""
    views = (matrix.data if values is None else values, matrix.indices, matrix.indptr)
    data, indices, indptr = (as_numpy(v) if v.on_host else downloaded(context, v) for v in views)
    return data[: matrix.nnz], indices[: matrix.nnz], indptr


def value_type(dtype: np.dtype, wanted: Any = None, halves: bool = False) -> tuple[np.dtype, np.dtype]:
    """The types of the values and of x and y, for values of dtype and the argument dtype.

    halves: 16-bit types are possible; otherwise their values become float32.
    """
    possible = (*FLOATING, *HALVES) if halves else FLOATING
    if wanted is not None:
        wanted = type_of(wanted)
        if wanted not in possible:
            names = ", ".join(map(type_name, possible))
            raise TypeError(f"no products in the type {type_name(wanted)}, only in {names}")
    if dtype in HALVES and wanted in (None, dtype) and halves:
        return dtype, dtype
    if dtype in HALVES and wanted in HALVES:
        raise TypeError(f"values of the type {type_name(dtype)}, not {type_name(wanted)}: convert them")
    if dtype in FLOATING:
        stored = dtype
    elif dtype.kind in "biu":
        stored = np.dtype("float64")
    elif dtype in HALVES:
        stored = np.dtype("float32")
    else:
        raise TypeError(f"the matrix has the type {type_name(dtype)}; spmv has {', '.join(map(type_name, possible))}")
    if wanted is None or wanted == stored:
        return stored, stored
    if stored == np.float32 and wanted == np.float64:
        return stored, wanted
    if stored.kind == "c" and wanted.kind == "f":
        raise TypeError(f"a complex matrix cannot be multiplied in the type {wanted}")
    return wanted, wanted


def _as_type(v: View, dtype: np.dtype, name: str) -> View:
    if v.dtype == dtype and v.contiguous:
        return v
    if v.kind == "cupy":
        return view(sys.modules["cupy"].ascontiguousarray(v.array, dtype), name)
    if v.kind == "torch":
        return view(v.array.to(getattr(sys.modules["torch"], type_name(dtype))).contiguous(), name)
    if v.on_host:
        given = as_numpy(v)
        made = np.ascontiguousarray(given, dtype)
        if dtype.kind in "fc":
            warn_rounded(given, made, name)
        return view(made, name)
    raise TypeError(f"{name} must be a contiguous array of the type {dtype}")


def arrays_of(A: Any, shape: Any) -> tuple[Any, Any, Any, Any, str]:
    """data, indices, indptr, shape and kind of any kind of matrix."""
    if isinstance(A, CSR):
        return A.data, A.indices, A.indptr, A.shape, "numpy"
    root = type(A).__module__.partition(".")[0]
    if root == "torch" and hasattr(A, "layout"):
        torch = sys.modules["torch"]
        if A.layout == torch.sparse_coo:
            A = A.coalesce().to_sparse_csr()
        if A.layout != torch.sparse_csr:
            raise TypeError(f"a tensor of the layout {A.layout}; torch.sparse_csr or torch.sparse_coo is needed")
        if A.requires_grad:
            raise ValueError(
                "the matrix requires a gradient: pass A.detach(). spmv.torch.spmm has gradients of values"
            )
        if A.dim() != 2:
            raise ValueError(f"a tensor of {A.dim()} dimensions; 2 are needed")
        return A.values(), A.col_indices(), A.crow_indices(), tuple(A.shape), "torch"
    if hasattr(A, "tocsr"):
        A = A.tocsr()
        if len(A.shape) != 2:
            raise ValueError(f"a matrix of {len(A.shape)} dimensions; 2 are needed")
        kind = "cupy" if root == "cupyx" else "scipy-matrix" if _is_spmatrix(A) else "scipy"
        return A.data, A.indices, A.indptr, A.shape, kind
    if isinstance(A, tuple) and len(A) == 3:
        if shape is None:
            raise ValueError("three arrays (data, indices, indptr) need shape=(rows, columns)")
        return (*A, shape, "numpy")
    raise TypeError(
        f"not a matrix but {type(A).__name__}: pass a sparse matrix of SciPy, CuPy or PyTorch, "
        "or three arrays (data, indices, indptr) with shape="
    )


def _is_spmatrix(A: Any) -> bool:
    """Whether A is a matrix of SciPy, for which * multiplies matrices, not one of its sparse arrays."""
    scipy = sys.modules.get("scipy.sparse")
    return scipy is not None and isinstance(A, scipy.spmatrix)


def _sizes(shape: Any) -> tuple[int, int]:
    """The argument shape, checked."""
    try:
        rows, cols = (operator.index(n) for n in shape)
    except (TypeError, ValueError):
        raise ValueError(f"shape is {shape!r}, not (rows, columns), two integers") from None
    if min(rows, cols) < 0:
        raise ValueError(f"shape is {(rows, cols)}: sizes must not be negative")
    return rows, cols


def _index_range(context: Context, index: View, limit: int, n: int) -> None:
    _core.index_check(context._handle, index.address, 8 * index.dtype.itemsize, 0, limit, n)


def take(
    A: Any,
    context_for: Any,
    shape: Any = None,
    wanted: Any = None,
    copy: bool = False,
    halves: bool = False,
    wide: bool = False,
) -> tuple[Taken, np.dtype, Context]:
    """The matrix, the type of x and y, and the context for it.

    context_for(device) gives the context for arrays on that device. Everything that the library
    does not check itself is checked here, so no matrix makes it read outside of the arrays. With
    copy, none of the arrays is the caller's, and the copies are what is checked. halves: 16-bit types are possible.
    wide, for arrays in host memory: more columns than 32 bits hold are possible, and then have 64 bits; the library
    checks them.
    """
    data, indices, indptr, shape, kind = arrays_of(A, shape)
    shape = _sizes(shape)
    views = [view(a, n) for a, n in ((data, "data"), (indices, "indices"), (indptr, "indptr"))]
    for v, name in zip(views, ("data", "indices", "indptr")):
        if len(v.shape) != 1:
            raise ValueError(f"{name} has {len(v.shape)} dimensions, 1 is needed")
        if v.device != views[0].device:
            raise ValueError(f"{name} is on the device {v.device}, data on {views[0].device}")
    context = context_for(views[0].device)
    if views[0].device not in ("cpu", context.device):
        raise ValueError(f"the matrix is on {views[0].device}, the device is {context.device}")
    if copy:
        views = [copied(v, context) for v in views]
    values, indices, indptr = views
    for v, name in ((indices, "indices"), (indptr, "indptr")):
        if v.dtype.kind not in "iu":
            raise TypeError(f"{name} has the type {v.dtype}; integers are needed")
    stored, vectors = value_type(values.dtype, wanted, halves)
    values = _as_type(values, stored, "data")
    if indptr.dtype not in (INT32, INT64) or not indptr.contiguous:
        indptr = _as_type(indptr, INT64, "indptr")
    if indices.dtype not in (INT32, INT64):
        indices = _as_type(indices, INT64, "indices")
    if indptr.shape[0] != shape[0] + 1:
        raise ValueError(f"indptr has {indptr.shape[0]} elements, {shape[0] + 1} are needed for {shape[0]} rows")
    offsets = as_numpy(indptr) if indptr.on_host else downloaded(context, indptr)
    nnz = int(offsets[-1])
    if offsets[0] != 0 or nnz < 0:
        raise ValueError(f"indptr runs from {offsets[0]} to {nnz}; it must begin with 0 and must not decrease")
    for v, name in ((values, "data"), (indices, "indices")):
        if v.shape[0] < nnz:
            raise ValueError(f"{name} has {v.shape[0]} elements, indptr ends with {nnz}")
    many = shape[1] > 2**31 - 1
    if many and not wide:
        raise ValueError(f"{shape[1]} columns: the library has 32-bit columns, at most {2**31 - 1}")
    if many:
        if np.any(np.diff(offsets) < 0):
            raise ValueError("indptr decreases")
        indices = _as_type(indices, INT64, "indices")
    elif values.on_host:
        if indices.dtype == INT64:
            columns = as_numpy(indices)[:nnz]
            if nnz and not (0 <= columns.min() and columns.max() < shape[1]):
                bad = int(np.flatnonzero((columns < 0) | (columns >= shape[1]))[0])
                raise ValueError(f"indices[{bad}] is {columns[bad]}, but the matrix has {shape[1]} columns")
            indices = view(columns.astype(np.int32), "indices")
        indices = _as_type(indices, INT32, "indices")
    else:
        if np.any(np.diff(offsets) < 0):
            raise ValueError("indptr decreases")
        if values.stream is not None:
            context._use_stream(*values.stream)
        if not indices.contiguous:
            indices = _as_type(indices, indices.dtype, "indices")
        if nnz:
            _index_range(context, indices, shape[1], nnz)
        indices = _as_type(indices, INT32, "indices")
    taken = Taken(shape, values, indices, indptr, kind)
    taken.nnz = nnz
    if values.on_host and not many:
        checker = context
        parts = list(taken.tuple(HOST_MEMORY))
        if stored in HALVES:
            parts[6] = 0  # the check is of the pattern
        _core.matrix_check(checker._handle, tuple(parts))
    return taken, vectors, context


def transposed(context: Context, matrix: Taken, values: View) -> Taken:
    """The transpose of the matrix with these values, in the same memory."""
    on_host = matrix.device == "cpu"
    parts = list(matrix.tuple(HOST_MEMORY if on_host else CONTEXT_MEMORY))
    parts[6], parts[7] = values.address if matrix.nnz else 0, ALL_CODES[values.dtype]
    handle = _core.matrix_transpose(context._handle, tuple(parts))
    rows, cols, nnz, row_ptr, bits, col, val, code, _ = _core.matrix_view(handle)

    def part(at: int, n: int, dtype: Any) -> View:
        return View(at, (n,), np.dtype(dtype), matrix.device, "other", True, False, None, handle)

    indptr = part(row_ptr, rows + 1, f"int{bits}")
    made = Taken((rows, cols), part(val, nnz, DTYPES[code]), part(col, nnz, "int32"), indptr, matrix.kind)
    made.nnz = nnz
    return made


def downloaded(context: Context, v: View) -> np.ndarray:
    if v.stream is not None:
        context._use_stream(*v.stream)
    out = np.empty(v.shape, v.dtype)
    _core.download(context._handle, v.address, out.view(np.uint8))
    return out


def check_values(matrix: Taken, values: View | None = None) -> None:
    """Raise a ValueError that names the place of a value that is not finite. Those on a GPU are not read."""
    data = matrix.data if values is None else values
    if not data.on_host or not matrix.nnz or is_finite(data, matrix.nnz):
        return
    array = as_numpy(data)[: matrix.nnz]
    wrong = np.flatnonzero(~np.isfinite(array))
    if wrong.size:
        k = int(wrong[0])
        row = int(np.searchsorted(as_numpy(matrix.indptr), k, "right")) - 1
        what = "a NaN" if np.isnan(array[k]) else "an infinite number"
        more = f", {wrong.size} in all" if wrong.size > 1 else ""
        raise ValueError(f"A has {what} in row {row}, column {int(as_numpy(matrix.indices)[k])} (counted from 0){more}")


class _Held:
    """An array of a matrix of the library, which it keeps alive."""

    def __init__(self, owner: Any, address: int, n: int, dtype: np.dtype, cuda: bool) -> None:
        self.owner = owner
        about = {"shape": (n,), "typestr": dtype.str, "data": (address, False), "version": 3}
        if cuda:
            self.__cuda_array_interface__ = about
        else:
            self.__array_interface__ = about


def _array(owner: Any, address: int, n: int, dtype: Any) -> np.ndarray:
    return np.asarray(_Held(owner, address, n, np.dtype(dtype), False)) if n else np.empty(0, dtype)


def made(handle: Any, context: Context, kind: str) -> Any:
    """A matrix of the library as one of the caller's kind; its arrays are not copied."""
    rows, cols, nnz, row_ptr, bits, col, val, code, memory = _core.matrix_view(handle)
    offset, on_gpu = np.dtype(f"int{bits}"), memory == CONTEXT_MEMORY and context.is_cuda
    if on_gpu:
        context.wait()
    parts = (val, nnz, DTYPES[code]), (col, nnz, np.dtype("int32")), (row_ptr, rows + 1, offset)
    if not on_gpu:
        indices, indptr = (_array(handle, *part) for part in parts[1:])
        data = _array(handle, *parts[0]) if val or not nnz else np.ones(nnz)
        return assembled(data, indices, indptr, (rows, cols), kind)
    data, indices, indptr = (_device_array(context, kind, handle, *part) for part in parts)
    return assembled(data, indices, indptr, (rows, cols), kind)


def pattern_arrays(handle: Any, parts: tuple[int, ...], context: Context, like: Taken) -> tuple[Any, Any]:
    """Copies of the offsets and columns of a pattern in the context's memory, for a matrix as like."""
    rows, _, nnz, row_ptr, bits, col, *_ = parts
    made = []
    for address, n, dtype in ((row_ptr, rows + 1, np.dtype(f"int{bits}")), (col, nnz, np.dtype("int32"))):
        if context.is_cuda and like.device != "cpu":
            array = _device_array(context, like.kind, handle, address, n, dtype)
            made.append(array.clone() if like.kind == "torch" else array.copy())
        else:
            made.append(np.empty(n, dtype))
            if n:
                _core.download(context._handle, address, made[-1].view(np.uint8))
    return made[0], made[1]


def _device_array(context: Context, kind: str, owner: Any, address: int, n: int, dtype: np.dtype) -> Any:
    held = _Held(owner, address, n, dtype, True)
    if kind == "torch":
        return sys.modules["torch"].as_tensor(held, device=context.device)
    import cupy

    with cupy.cuda.Device(context.number):
        return cupy.asarray(held)


def assembled(data: Any, indices: Any, indptr: Any, shape: tuple[int, int], kind: str) -> Any:
    """A matrix of the caller's kind of three arrays, which it uses; offsets get 32 bits if they fit."""
    on_host = isinstance(data, np.ndarray)
    if kind == "torch":
        torch = sys.modules["torch"]
        parts = [torch.as_tensor(a.astype(np.int64) if on_host else a.long()) for a in (indptr, indices)]
        return torch.sparse_csr_tensor(*parts, torch.as_tensor(data), size=shape)
    if data.shape[0] < 2**31:
        indptr = indptr.astype(np.int32)
    if on_host and (kind == "numpy" or not _scipy()):
        return CSR(data, indices, indptr, shape)
    if on_host:
        from scipy.sparse import csr_array, csr_matrix

        return (csr_matrix if kind == "scipy-matrix" else csr_array)((data, indices, indptr), shape=shape)
    import cupy
    from cupyx.scipy.sparse import csr_matrix as csr_on_gpu

    with cupy.cuda.Device(indices.device.id):
        return csr_on_gpu((cupy.asarray(data), indices, indptr), shape=shape)


def _scipy() -> bool:
    try:
        import scipy.sparse  # noqa: F401
    except ImportError:
        return False
    return True

# SPDX-License-Identifier: BSD-3-Clause
"""Files, generated matrices, products of matrices."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from . import _core
from ._arrays import code_of
from ._context import context_of
from ._matrix import CONTEXT_MEMORY, HOST_MEMORY, made, take

_SYMMETRIES = {"general": 1, "symmetric": 2, "skew-symmetric": 3, "hermitian": 4}
_STANDARD = {b"\x1f\x8b": "gzip", b"BZ": "bz2", b"\xfd7": "lzma"}


def _type(dtype: Any) -> int:
    return 0 if dtype is None else code_of(np.dtype(dtype), "dtype")


def read(path: Any, dtype: Any = None, *, device: Any = "cpu") -> Any:
    """Read a matrix from a file.

    Parameters
    ----------
    path : str or path
        A Matrix Market file, or one in the binary form of spmv; compressed by gzip, xz or bzip2,
        or, where libarchive is installed, by zstd or in a tar archive.
    dtype : numpy.dtype, optional
        float64, float32, complex128 or complex64. Default: complex128 for complex files, else
        float64.

    Returns
    -------
    scipy.sparse.csr_array
        Without SciPy a ``spmv.CSR``. Columns are sorted, both triangles of a symmetric file are
        there, and a pattern has ones.

    Examples
    --------
    >>> import spmv, tempfile, os
    >>> path = os.path.join(tempfile.mkdtemp(), "A.mtx")
    >>> spmv.write(path, spmv.generate("poisson2d:3"))
    >>> spmv.read(path).shape
    (9, 9)
    """
    context = context_of(device)
    name = os.fspath(path)
    try:
        handle = _core.matrix_read(context._handle, os.fsencode(name), _type(dtype))
    except NotImplementedError:
        handle = _read_unpacked(context, name, dtype)
    return made(handle, context, "scipy")


def _read_unpacked(context: Any, name: Any, dtype: Any) -> Any:
    """A compressed file by Python's own modules, where libarchive is not installed."""
    with open(name, "rb") as file:
        module = _STANDARD.get(file.read(2))
    if module is None or os.fsdecode(name).endswith((".tar.gz", ".tar.xz", ".tar.bz2", ".tgz")):
        raise NotImplementedError(f"{os.fsdecode(name)}: install libarchive to read archives and other compressions")
    opener = __import__(module).open
    memory = os.memfd_create("spmv")
    shown = f"/proc/self/fd/{memory}"
    try:
        with opener(name, "rb") as text, os.fdopen(os.dup(memory), "wb") as plain:
            while block := text.read(1 << 20):
                plain.write(block)
        return _core.matrix_read(context._handle, shown.encode(), _type(dtype))
    except (ValueError, OSError, TypeError, MemoryError) as error:
        message = str(error).replace(shown, os.fsdecode(name))
        raise type(error)(message) from None
    except EOFError as error:
        raise ValueError(f"{os.fsdecode(name)}: {error}") from None
    finally:
        os.close(memory)


def write(path: Any, A: Any, *, symmetry: str = "general", comment: str | None = None, device: Any = "cpu") -> None:
    """Write a matrix to a file, which appears complete or not at all.

    Parameters
    ----------
    path : str or path
        ``.spmv``: the binary form; ``.gz``, ``.xz``, ``.zst``, ``.bz2``: compressed Matrix Market,
        where libarchive is installed; any other name: Matrix Market.
    A : matrix
        As for ``Plan``, in host memory.
    symmetry : str, optional
        ``"general"``, ``"symmetric"``, ``"skew-symmetric"`` or ``"hermitian"``. Other than general,
        the lower triangle is written, and the matrix must have the symmetry.
    comment : str, optional
        Lines for the head of the file.
    """
    if symmetry not in _SYMMETRIES:
        raise ValueError(f"symmetry is {symmetry!r}; there are {', '.join(_SYMMETRIES)}")
    context = context_of(device)
    matrix, _, _ = take(A, lambda where: _host(context, where))
    _core.matrix_write(
        context._handle, matrix.tuple(HOST_MEMORY), os.fsencode(path), _SYMMETRIES[symmetry], comment
    )


def _host(context: Any, where: str) -> Any:
    if where != "cpu":
        raise ValueError(f"the matrix is on {where}; copy it to host memory first")
    return context


def generate(spec: str, dtype: Any = None, *, device: Any = "cpu") -> Any:
    """Generate a matrix from a text such as ``"poisson2d:1000"`` or ``"uniform:1000,1000,8"``.

    Parameters
    ----------
    spec : str
        NAME:NUMBERS. A wrong one gives a message with the right form; the page ``docs/formats.md``
        lists all.
    dtype : numpy.dtype, optional
        float64 (the default), float32, complex128 or complex64.

    Returns
    -------
    scipy.sparse.csr_array
        Without SciPy a ``spmv.CSR``.

    Examples
    --------
    >>> import spmv
    >>> spmv.generate("poisson2d:2").toarray()
    array([[ 4., -1., -1.,  0.],
           [-1.,  4.,  0., -1.],
           [-1.,  0.,  4., -1.],
           [ 0., -1., -1.,  4.]])
    """
    context = context_of(device)
    return made(_core.matrix_generate(context._handle, str(spec), _type(dtype)), context, "scipy")


def multiply(A: Any, B: Any, *, method: str = "auto", device: Any = "auto") -> Any:
    """The product of two sparse matrices, C = A B.

    Parameters
    ----------
    A, B : matrix
        As for ``Plan``, both in the same memory. The types must be equal; the one of fewer digits is
        converted.
    method : str, optional
        The name of a method; default ``"auto"``.

    Returns
    -------
    matrix
        Of the kind of A. An entry is there if a product contributes to it, also if the sum is 0.
        Columns ascend.

    Examples
    --------
    >>> import spmv
    >>> A = spmv.generate("poisson2d:2")
    >>> spmv.multiply(A, A).toarray()[0]
    array([18., -8., -8.,  2.])
    """
    for_arrays = lambda where: context_of(device, where)  # noqa: E731
    first, type_a, context = take(A, for_arrays)
    second, type_b, _ = take(B, for_arrays)
    if first.data.dtype != second.data.dtype:
        wanted = np.result_type(first.data.dtype, second.data.dtype)
        first, _, context = take(_cast(A, wanted), for_arrays)
        second, _, _ = take(_cast(B, wanted), for_arrays)
    if first.device != second.device:
        raise ValueError(f"A is on {first.device}, B on {second.device}")
    on_device = first.device != "cpu"
    memory = CONTEXT_MEMORY if on_device else HOST_MEMORY
    a, b = (_sorted(context, m, memory) for m in (first, second))
    handle = _core.matrix_multiply(context._handle, a[0], b[0], None if method == "auto" else str(method))
    return made(handle, context, first.kind)


def _cast(A: Any, dtype: np.dtype) -> Any:
    """The matrix with values of the type."""
    if hasattr(A, "astype"):
        return A.astype(dtype)
    if hasattr(A, "tocsr") or not hasattr(A, "to"):
        from ._matrix import CSR

        if isinstance(A, CSR):
            return CSR(A.data.astype(dtype), A.indices, A.indptr, A.shape)
        raise TypeError("A and B must have the same type")
    import torch

    return A.to(getattr(torch, dtype.name))


def _sorted(context: Any, matrix: Any, memory: int) -> tuple[Any, Any]:
    """The matrix with ascending columns, and what keeps it alive. Repeated entries are refused."""
    parts = matrix.tuple(memory)
    if matrix.device == "cpu" and matrix.nnz:
        from ._arrays import as_numpy

        columns = as_numpy(matrix.indices)[: matrix.nnz]
        offsets = as_numpy(matrix.indptr)
        falls = np.flatnonzero(np.diff(columns) < 0) + 1
        if np.isin(falls, offsets, assume_unique=False).all():
            return parts, matrix
    elif not matrix.nnz:
        return parts, matrix
    once = _core.matrix_transpose(context._handle, parts)
    twice = _core.matrix_transpose(context._handle, _core.matrix_view(once))
    return _core.matrix_view(twice), twice

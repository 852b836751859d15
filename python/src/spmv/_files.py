# SPDX-License-Identifier: BSD-3-Clause
"""Files and generated matrices."""

from __future__ import annotations

import io
import os
import struct
import zipfile
import zlib
from typing import Any

import numpy as np

from . import _core
from ._arrays import code_of
from ._context import context_of
from ._matrix import HOST_MEMORY, made, take

_SYMMETRIES = {"general": 1, "symmetric": 2, "skew-symmetric": 3, "hermitian": 4}
_STANDARD = {b"\x1f\x8b": "gzip", b"BZ": "bz2", b"\xfd7": "lzma"}


def _type(dtype: Any) -> int:
    return 0 if dtype is None else code_of(np.dtype(dtype), "dtype")


def read(path: Any, dtype: Any = None, *, name: str | None = None, device: Any = "cpu") -> Any:
    """Read a matrix from a file, an open file or a buffer.

    Parameters
    ----------
    path : str, path, file opened in binary mode, or buffer
        A Matrix Market file, one in the binary form of spmv, or one of Harwell-Boeing,
        Rutherford-Boeing, PETSc, NumPy and SciPy (.npz, .npy) or MATLAB (.mat); compressed by gzip,
        xz or bzip2, or, where libarchive is installed, by zstd or in a tar archive. The contents
        decide, not the name. A file is read from its position on. A bytearray, a memoryview and
        another buffer are the contents of a file, and so are bytes with a line end or a zero byte;
        other bytes are a path.
    dtype : numpy.dtype, optional
        float64, float32, complex128 or complex64. Default: complex128 for complex files, else
        float64.
    name : str, optional
        The variable of a MATLAB file, the array of an .npz file, or the member of an archive. In a
        path, ``"A.mat:NAME"`` is the same.

    Returns
    -------
    scipy.sparse.csr_array
        Without SciPy a ``spmv.CSR``. Columns are sorted, both triangles of a symmetric file are
        there, and a pattern has ones.

    Examples
    --------
    >>> import io, spmv, tempfile, os
    >>> path = os.path.join(tempfile.mkdtemp(), "A.npz")
    >>> spmv.write(path, spmv.generate("poisson2d:3"))
    >>> spmv.read(path).shape
    (9, 9)
    >>> with open(path, "rb") as file:
    ...     spmv.read(file).shape
    (9, 9)
    >>> spmv.read(io.BytesIO(b"%%MatrixMarket matrix array real general\\n1 2\\n3\\n4\\n")).toarray()
    array([[3., 4.]])
    """
    context = context_of(device)
    if isinstance(path, (bytearray, memoryview)) or (isinstance(path, bytes) and (b"\n" in path or b"\0" in path)):
        handle = _read_stream(context, io.BytesIO(path), "the buffer", dtype, name)
    elif hasattr(path, "read"):
        handle = _read_stream(context, path, str(getattr(path, "name", "the file")), dtype, name)
    elif hasattr(path, "__fspath__") or isinstance(path, (str, bytes)):
        handle = _read_file(context, os.fspath(path), dtype, name)
    else:
        handle = _read_stream(context, io.BytesIO(memoryview(path)), "the buffer", dtype, name)
    return made(handle, context, "scipy")


def _read_file(context: Any, path: Any, dtype: Any, name: str | None, unpack: bool = True) -> Any:
    part = b"" if name is None else b":" + os.fsencode(name)
    try:
        return _core.matrix_read(context._handle, os.fsencode(path) + part, _type(dtype))
    except NotImplementedError:
        stream = _unpacked(path) if unpack else None
        if stream is None:
            raise
    with stream:
        return _read_stream(context, stream, os.fsdecode(path), dtype, name, not isinstance(stream, io.BytesIO))


def _unpacked(path: Any) -> Any:
    """The file, unpacked by Python's own modules, where libarchive and zlib are not installed; None: no such file."""
    with open(path, "rb") as file:
        head = file.read(128)
        module = _STANDARD.get(head[:2])
        if module is not None:
            return __import__(module).open(path, "rb")
        if head.startswith(b"PK"):
            return _stored(path)
        if head[124:] in (b"\0\1IM", b"\1\0MI"):
            return _plain_mat(head, file.read())
    return None


def _stored(path: Any) -> Any:
    """An .npz file without compression."""
    archive = io.BytesIO()
    with zipfile.ZipFile(path) as packed, zipfile.ZipFile(archive, "w") as stored:
        for member in packed.namelist():
            stored.writestr(member, packed.read(member))
    archive.seek(0)
    return archive


def _plain_mat(head: bytes, elements: bytes) -> Any:
    """A MATLAB file without compressed elements."""
    order, compressed, at = "<" if head.endswith(b"IM") else ">", 15, 0
    plain = [head]
    while at + 8 <= len(elements):
        kind, size = struct.unpack_from(order + "II", elements, at)
        end = at + 8 + size
        plain.append(zlib.decompress(elements[at + 8 : end]) if kind == compressed else elements[at:end])
        at = end
    return io.BytesIO(b"".join(plain))


def _read_stream(
    context: Any, stream: Any, shown: str, dtype: Any, name: str | None, unpack: bool = True
) -> Any:
    """Copies the stream to a file in memory, which the library reads."""
    memory = os.memfd_create("spmv")
    path = f"/proc/self/fd/{memory}"
    try:
        with os.fdopen(os.dup(memory), "wb") as copy:
            while block := stream.read(1 << 20):
                if isinstance(block, str):
                    raise TypeError(f"{shown} is open for text; open it in binary mode, \"rb\"")
                copy.write(block)
        return _read_file(context, path, dtype, name, unpack)
    except (ValueError, OSError, TypeError, MemoryError, NotImplementedError) as error:
        raise type(error)(str(error).replace(path, shown)) from None
    except (EOFError, zlib.error) as error:
        raise ValueError(f"{shown}: {error}") from None
    finally:
        os.close(memory)


def write(path: Any, A: Any, *, symmetry: str = "general", comment: str | None = None, device: Any = "cpu") -> None:
    """Write a matrix to a file, which appears complete or not at all.

    Parameters
    ----------
    path : str or path
        ``.spmv``: the binary form; ``.npz``: SciPy's; ``.mat``: MATLAB's, version 5; ``.petsc``:
        PETSc's binary form; ``.rb`` and ``.hb``: Rutherford-Boeing and Harwell-Boeing; any other
        name: Matrix Market. After all but ``.spmv`` may stand ``.gz``, ``.xz``, ``.zst`` or
        ``.bz2``, where libarchive is installed.
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

# SPDX-License-Identifier: BSD-3-Clause
"""Files and generated matrices."""

from __future__ import annotations

import os
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

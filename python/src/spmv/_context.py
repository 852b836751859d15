# SPDX-License-Identifier: BSD-3-Clause
"""Contexts: a device, its threads and its lock."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _core


class Context:
    """A device on which plans, solvers and primitives run.

    Functions that take ``device`` also take a context. Without one, everything on a device shares
    one context, so that two threads take turns. Threads with contexts of their own run side by side.

    Parameters
    ----------
    device : str, optional
        ``"cpu"`` (the default), ``"cuda"`` for the current GPU, ``"cuda:1"`` for GPU 1, or ``"ref"``
        for the serial code that defines every result.
    threads : int, optional
        OpenMP threads. Default 0: what OpenMP offers. The results do not depend on it.

    Examples
    --------
    >>> import spmv
    >>> context = spmv.Context("cpu", threads=1)
    >>> context.threads
    1
    >>> spmv.scan([3.0, 1.0, 7.0], device=context)
    array([ 3.,  4., 11.])
    """

    def __init__(self, device: str = "cpu", threads: int = 0) -> None:
        kind, _, number = str(device).partition(":")
        if str(device) == "cuda:all":
            raise ValueError('"cuda:all" is for spmv.solve and spmv.Group: one plan, solver or primitive runs on one device')
        if kind not in ("cpu", "cuda", "ref", "gpu") or (number and not (number.isdigit() and kind in ("cuda", "gpu"))):
            raise ValueError(f'unknown device "{device}": "cpu", "cuda", "cuda:NUMBER" or "ref"')
        backend = {"cpu": "omp", "gpu": "cuda"}.get(kind, kind)
        try:
            self._handle = _core.context(backend, int(number) if number else -1, int(threads))
        except RuntimeError as error:
            if backend == "cuda" and not cuda_built():
                error.add_note("With CUDA: the package spmv-cu13 in place of spmv, or spmv compiled where a GPU and nvcc are.")
            raise
        self._stream_owner: Any = None
        backend, self.description, self.threads = _core.context_info(self._handle)
        self.is_cuda = backend == "cuda"
        self.number = int(self.description.split(", device ")[1].split(",")[0]) if self.is_cuda else 0
        self.device = f"cuda:{self.number}" if self.is_cuda else ("ref" if backend == "ref" else "cpu")
        self._backend = backend
        self._asked = str(device), int(threads)

    def __repr__(self) -> str:
        return f"<spmv.Context: {self.description}>"

    def wait(self) -> None:
        """Wait until the work queued on a GPU is done."""
        _core.wait(self._handle)

    def __reduce__(self) -> Any:
        shared = _shared.get(self.device) is self
        return (context_of, (self.device,)) if shared else (Context, self._asked)

    def _use_stream(self, stream: int | None, owner: Any = None) -> None:
        """Order the next calls on the caller's stream; owner keeps that stream alive."""
        if self.is_cuda and stream is not None:
            _core.set_stream(self._handle, stream)
            self._stream_owner = owner


_shared: dict[str, Context] = {}


def context_of(device: Any, arrays_on: str = "cpu") -> Context:
    """The context for the argument device; "auto" is the device of the arrays."""
    if isinstance(device, Context):
        return device
    name = str(device)
    if name == "auto":
        name = arrays_on
    if name in ("cuda", "gpu"):
        name = arrays_on if arrays_on.startswith("cuda") else "cuda"
    if name not in _shared:
        made = Context(name)
        _shared[name] = made
        _shared.setdefault(made.device, made)
        _shared[name] = _shared[made.device]
    return _shared[name]


def cuda_built() -> bool:
    """Whether this build of the package contains CUDA. It says nothing about a GPU."""
    return bool(_core.backend_built("cuda"))


# Element types of the library, by NumPy's names.
CODES: dict[np.dtype[Any], int] = {
    np.dtype("int32"): _core.TYPES["i32"],
    np.dtype("int64"): _core.TYPES["i64"],
    np.dtype("float32"): _core.TYPES["f32"],
    np.dtype("float64"): _core.TYPES["f64"],
    np.dtype("complex64"): _core.TYPES["c64"],
    np.dtype("complex128"): _core.TYPES["c128"],
}
DTYPES = {code: dtype for dtype, code in CODES.items()}
FLOATING = tuple(d for d in CODES if d.kind in "fc")


def _bfloat16() -> np.dtype[Any]:
    """The type of ml_dtypes; without that package a stand-in, since NumPy has none. It is then one of tensors."""
    try:
        import ml_dtypes
    except ImportError:
        return np.dtype([("bfloat16", np.uint16)])
    return np.dtype(ml_dtypes.bfloat16)


# 16-bit types, which products with vectors and sampled products have, and nothing else.
BFLOAT16 = _bfloat16()
HALVES = {BFLOAT16: _core.TYPES["bf16"], np.dtype("float16"): _core.TYPES["f16"]}
ALL_CODES = {**CODES, **HALVES}


def type_name(dtype: np.dtype[Any]) -> str:
    """The name of an element type, also in PyTorch."""
    return "bfloat16" if dtype == BFLOAT16 else dtype.name


def type_of(name: Any) -> np.dtype[Any]:
    """An element type by what NumPy, PyTorch or JAX call it."""
    text = str(name).removeprefix("torch.")
    return BFLOAT16 if text == "bfloat16" else np.dtype(text if text != str(name) else name)

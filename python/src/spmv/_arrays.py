# SPDX-License-Identifier: BSD-3-Clause
"""Arrays of NumPy, CuPy, PyTorch, JAX and others as addresses, without a copy.

A View is what the library needs of an array. ``view`` makes one, ``empty`` makes an array of the
same kind for a result.
"""

from __future__ import annotations

import importlib
import math
import operator
import sys
import warnings
from typing import Any, Literal

import numpy as np

from . import _core
from ._context import BFLOAT16, CODES, FLOATING, HALVES, Context, type_name, type_of

HOST, PINNED, CUDA, MANAGED = 1, 3, 2, 13  # DLPack's device types
DEFAULT_STREAM = 1  # cudaStreamLegacy, which a pointer of 0 would mean


class View:
    """The address, shape and type of an array, and what keeps it alive."""

    __slots__ = ("address", "shape", "dtype", "device", "kind", "contiguous", "writable", "array", "keep", "stream")

    def __init__(self, address, shape, dtype, device, kind, contiguous, writable, array, keep, stream=None):
        self.address = address
        self.shape = tuple(shape)
        self.dtype = dtype
        self.device = device  # "cpu" or "cuda:NUMBER"
        self.kind = kind  # "numpy", "cupy", "torch", "jax", "other"
        self.contiguous = contiguous
        self.writable = writable
        self.array = array
        self.keep = keep
        self.stream = stream  # (the caller's current stream, its owner), or None

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def bytes(self) -> int:
        return self.size * self.dtype.itemsize

    @property
    def on_host(self) -> bool:
        return self.device == "cpu"


def _in_c_order(shape, strides, itemsize) -> bool:
    if strides is None:
        return True
    expected = itemsize
    for extent, stride in zip(reversed(shape), reversed(strides)):
        if extent > 1 and stride != expected:
            return False
        expected *= extent
    return True


def _of_numpy(array: np.ndarray, kind: str = "numpy", keep: Any = None) -> View:
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    flags = array.flags
    return View(
        _core.buffer_address(array) or array.ctypes.data,  # which takes ten times as long
        array.shape,
        array.dtype,
        "cpu",
        kind,
        flags.c_contiguous and flags.aligned,
        flags.writeable,
        array,
        keep if keep is not None else array,
    )


def _of_cupy(array: Any) -> View:
    stream = sys.modules["cupy"].cuda.get_current_stream()
    return View(
        array.data.ptr,
        array.shape,
        np.dtype(array.dtype),
        f"cuda:{array.device.id}",
        "cupy",
        array.flags.c_contiguous,
        True,
        array,
        array,
        (stream.ptr or DEFAULT_STREAM, stream),
    )


def _of_torch(array: Any, name: str) -> View:
    torch = sys.modules["torch"]
    if array.layout != torch.strided:
        raise TypeError(f"{name} is a sparse tensor")
    if array.requires_grad and torch.is_grad_enabled():
        raise ValueError(f"{name} requires a gradient, which this function does not compute: pass {name}.detach()")
    if array.device.type not in ("cpu", "cuda"):
        raise TypeError(f"{name} is on the device {array.device}; spmv uses cpu and cuda")
    try:
        dtype = type_of(array.dtype)
    except TypeError:
        raise TypeError(
            f"{name} has the type {array.dtype}, which spmv does not have: {', '.join(map(str, CODES))}"
        ) from None
    contiguous = array.is_contiguous() and not array.is_conj() and not array.is_neg()
    if array.device.type == "cpu":
        return View(array.data_ptr(), array.shape, dtype, "cpu", "torch", contiguous, True, array, array)
    current = torch.cuda.current_stream(array.device)
    stream = (current.cuda_stream or DEFAULT_STREAM, current)
    device = f"cuda:{array.device.index}"
    return View(array.data_ptr(), array.shape, dtype, device, "torch", contiguous, True, array, array, stream)


def _of_interface(array: Any, kind: str) -> View:
    """__cuda_array_interface__, as Numba and others have it."""
    about = array.__cuda_array_interface__
    dtype = np.dtype(about["typestr"])
    address, read_only = about["data"]
    stream = about.get("stream")
    if stream is not None and stream <= 0:
        raise ValueError("the stream of __cuda_array_interface__ must not be 0")
    device = getattr(getattr(array, "device", None), "id", None)
    if not isinstance(device, int):
        device = _device_of_pointer()
    contiguous = _in_c_order(about["shape"], about.get("strides"), dtype.itemsize)
    return View(
        address,
        about["shape"],
        dtype,
        f"cuda:{device}",
        kind,
        contiguous,
        not read_only,
        array,
        array,
        (stream or DEFAULT_STREAM, array),
    )


def _device_of_pointer() -> int:
    """The interface does not name a device: the current one."""
    torch, cupy = sys.modules.get("torch"), sys.modules.get("cupy")
    if cupy is not None and cupy.cuda.is_available():
        return int(cupy.cuda.Device().id)
    if torch is not None and torch.cuda.is_available():
        return int(torch.cuda.current_device())
    return 0


_CODES = {0: "i", 1: "u", 2: "f", 5: "c", 6: "b"}
BFLOAT = 4  # DLPack's code of bfloat16


def _of_dlpack(array: Any, kind: str, name: str, context: Context | None) -> View:
    device_type, number = array.__dlpack_device__()
    device_type = int(device_type)
    if device_type in (HOST, PINNED):
        capsule = array.__dlpack__()
    elif device_type in (CUDA, MANAGED):
        # the producer orders the array's work before what follows on this stream
        stream = _core.get_stream(context._handle) if context is not None and context.is_cuda else 0
        capsule = array.__dlpack__(stream=stream or DEFAULT_STREAM)
    else:
        raise TypeError(f"{name} is on a device that spmv does not use (DLPack type {device_type})")
    keep, address, shape, strides, code, bits, _, number = _core.dlpack_import(capsule)
    letter = "bfloat" if (code, bits) == (BFLOAT, 16) else _CODES.get(code)
    if letter is None:
        named = getattr(array, "dtype", f"with the DLPack code {code}")
        raise TypeError(f"{name} has the type {named}, which spmv does not have: {', '.join(map(str, CODES))}")
    dtype = BFLOAT16 if letter == "bfloat" else np.dtype("bool" if letter == "b" else f"{letter}{bits // 8}")
    in_bytes = None if strides is None else [s * dtype.itemsize for s in strides]
    contiguous = _in_c_order(shape, in_bytes, dtype.itemsize)
    device = "cpu" if device_type in (HOST, PINNED) else f"cuda:{number}"
    writable = kind != "jax"  # JAX treats arrays as constants
    return View(address, shape, dtype, device, kind, contiguous, writable, array, keep)


def kind_of(array: Any) -> str:
    root = type(array).__module__.partition(".")[0]
    if root == "jaxlib" or root == "jax":
        return "jax"
    if root in ("numpy", "cupy", "torch"):
        return root
    return "other"


def differentiable(x: Any) -> Any:
    """The module spmv.torch or spmv.jax, if x belongs to a function that PyTorch or JAX differentiates or compiles."""
    torch, jax = sys.modules.get("torch"), sys.modules.get("jax")
    if torch is not None and isinstance(x, torch.Tensor):
        wanted = x.requires_grad and torch.is_grad_enabled()
        if wanted or torch.compiler.is_compiling() or torch._C._functorch.maybe_current_level() is not None:
            return importlib.import_module("spmv.torch")
    elif jax is not None and isinstance(x, jax.core.Tracer):
        return importlib.import_module("spmv.jax")
    return None


def view(array: Any, name: str, context: Context | None = None) -> View:
    """The view of an array; anything that NumPy makes an array of is one in host memory."""
    if isinstance(array, View):
        return array
    if isinstance(array, np.ndarray):
        return _of_numpy(array)
    kind = kind_of(array)
    if kind == "cupy":
        return _of_cupy(array)
    if kind == "torch":
        return _of_torch(array, name)
    if kind == "jax" and isinstance(array, sys.modules["jax"].core.Tracer):
        raise TypeError(
            f"{name} has no values yet: JAX traces the function (jit, grad, vmap). Only plan @ x and the functions "
            "of spmv.jax can be traced: call others outside of the traced function, or by jax.pure_callback"
        )
    if kind == "jax" and getattr(array, "is_fully_addressable", True) is False:
        raise TypeError(f"{name} is spread over several processes")
    if hasattr(array, "__dlpack__") and hasattr(array, "__dlpack_device__"):
        return _of_dlpack(array, kind, name, context)
    if hasattr(array, "__cuda_array_interface__"):
        return _of_interface(array, kind)
    if hasattr(array, "tocsr") or hasattr(array, "todense"):
        raise TypeError(f"{name} is a sparse matrix; an array is needed")
    try:
        made = np.asarray(array)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name} is not an array: {error}") from None
    if made.dtype.kind not in "biufc":
        raise TypeError(f"{name} is not an array of numbers but {type(array).__name__}")
    return _of_numpy(made)


def as_numpy(v: View) -> np.ndarray:
    """The NumPy array of a view in host memory, without a copy."""
    if isinstance(v.array, np.ndarray):
        return v.array
    if v.kind == "torch" and v.dtype == BFLOAT16:
        return v.array.view(sys.modules["torch"].int16).numpy().view(BFLOAT16)
    if v.kind == "torch":
        return v.array.resolve_conj().resolve_neg().numpy()
    if v.size == 0:
        return np.empty(v.shape, v.dtype)
    if v.contiguous:
        flat = np.frombuffer(_core.view_memory(v.address, v.bytes), v.dtype).reshape(v.shape)
        return _keeping(flat, v.keep)
    return np.from_dlpack(v.array)


class _Keeper(np.ndarray):
    """An array that keeps the owner of its memory alive."""

    keep: Any = None


def _keeping(array: np.ndarray, keep: Any) -> np.ndarray:
    kept = array.view(_Keeper)
    kept.keep = keep
    return kept


class Memory:
    """An array in the memory of a context, for results that no other library allocates.

    Other libraries take it by DLPack, and on a GPU by ``__cuda_array_interface__``.
    """

    def __init__(self, context: Context, shape: tuple[int, ...], dtype: np.dtype) -> None:
        self.context = context
        self.shape = tuple(int(n) for n in shape)
        self.dtype = np.dtype(dtype)
        count = math.prod(self.shape)
        self._block = _core.block(context._handle, count * self.dtype.itemsize)
        self.address: int = _core.address(self._block)

    def view(self) -> View:
        device = self.context.device if self.context.is_cuda else "cpu"
        return View(self.address, self.shape, self.dtype, device, "other", True, True, self, self)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        if not self.context.is_cuda:
            raise AttributeError("the array is in host memory")
        self.context.wait()
        return {
            "shape": self.shape,
            "typestr": self.dtype.str,
            "data": (self.address, False),
            "version": 3,
            "stream": None,
        }

    def __dlpack_device__(self) -> tuple[int, int]:
        return (CUDA, self.context.number) if self.context.is_cuda else (HOST, 0)

    def __dlpack__(self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: Any = None) -> Any:
        self.context.wait()
        code = BFLOAT if self.dtype == BFLOAT16 else {"i": 0, "u": 1, "f": 2, "c": 5}[self.dtype.kind]
        columns = self.shape[1] if len(self.shape) == 2 else 0
        bits = 8 * self.dtype.itemsize
        device = self.__dlpack_device__()
        return _core.dlpack_export(self._block, self.address, self.shape[0], columns, code, bits, *device)

    def numpy(self) -> np.ndarray:
        """A copy in host memory."""
        out = np.empty(self.shape, self.dtype)
        if out.nbytes:
            _core.download(self.context._handle, self.address, out.reshape(-1).view(np.uint8))
        return out


class Borrowed:
    """Memory of the library that is valid for a moment: the iterate of a callback."""

    def __init__(self, context: Context, address: int, shape: tuple[int, ...], dtype: np.dtype) -> None:
        self.context, self.address, self.shape, self.dtype = context, address, shape, dtype
        self.__cuda_array_interface__ = {
            "shape": shape,
            "typestr": dtype.str,
            "data": (address, False),
            "version": 3,
            "stream": None,
        }

    def copy_as(self, kind: str, context: Context) -> Any:
        """A copy, as an array of this kind."""
        if not context.is_cuda or kind not in ("cupy", "torch"):
            out = np.empty(self.shape, self.dtype)
            _core.download(context._handle, self.address, out.view(np.uint8).reshape(-1))
            return out
        context.wait()
        if kind == "cupy":
            return sys.modules["cupy"].asarray(self).copy()
        return sys.modules["torch"].as_tensor(self, device=context.device).clone()


class _DirectCuPy:
    """Arrays of CuPy for products without a View: the few attributes that the check needs."""

    def __init__(self, cupy: Any) -> None:
        self.cupy, self.current, self.device = cupy, cupy.cuda.get_current_stream, cupy.cuda.runtime.getDevice

    def address(self, a: Any, shape: tuple[int, ...], dtype: np.dtype, number: int) -> int:
        """The address of an array that is read as it is; 0: another shape, type, device or layout."""
        data = a.data
        fits = a.shape == shape and a.dtype == dtype and data.device_id == number and a.flags.c_contiguous
        return data.ptr if fits else 0

    def stream(self, number: int) -> tuple[int, Any]:
        """The current stream, and what keeps it alive."""
        stream = self.current()
        return stream.ptr or DEFAULT_STREAM, stream

    def empty(self, like: Any, shape: tuple[int, ...], number: int) -> tuple[Any, int]:
        """A new array and its address."""
        if self.device() == number:
            made = self.cupy.empty(shape, like.dtype)
        else:
            with self.cupy.cuda.Device(number):
                made = self.cupy.empty(shape, like.dtype)
        return made, made.data.ptr


class _DirectTorch:
    """The same for tensors of PyTorch, whose streams live as long as the process."""

    def __init__(self, torch: Any) -> None:
        self.strided = torch.strided
        self.types = {dtype: getattr(torch, type_name(dtype)) for dtype in (*FLOATING, *HALVES)}
        # torch.cuda.current_stream() makes an object, which takes longer than a small product
        raw = getattr(torch._C, "_cuda_getCurrentRawStream", None)
        self.raw = raw or (lambda number: torch.cuda.current_stream(number).cuda_stream)

    def address(self, a: Any, shape: tuple[int, ...], dtype: np.dtype, number: int) -> int:
        fits = (
            a.shape == shape
            and a.dtype is self.types[dtype]
            and a.get_device() == number
            and a.layout is self.strided
            and a.is_contiguous()
            and not (a.requires_grad or a.is_conj() or a.is_neg())
        )
        return a.data_ptr() if fits else 0

    def stream(self, number: int) -> tuple[int, Any]:
        return self.raw(number) or DEFAULT_STREAM, None

    def empty(self, like: Any, shape: tuple[int, ...], number: int) -> tuple[Any, int]:
        made = like.new_empty(shape)
        return made, made.data_ptr()


_direct: dict[type, Any] = {}


def direct(kind: type) -> Any:
    """How to read arrays of this type without a View, or None."""
    found = _direct.get(kind)
    if found is None:
        cupy, torch = sys.modules.get("cupy"), sys.modules.get("torch")
        if cupy is not None and kind is cupy.ndarray:
            found = _direct[kind] = _DirectCuPy(cupy)
        elif torch is not None and kind is torch.Tensor:
            found = _direct[kind] = _DirectTorch(torch)
    return found


def by_columns(v: View) -> bool:
    """Whether a matrix of NumPy, CuPy or PyTorch lies in memory column by column, and not row by row."""
    array = v.array
    if len(v.shape) != 2 or v.contiguous:
        return False
    if isinstance(array, np.ndarray):
        return array.flags.f_contiguous and array.flags.aligned
    if v.kind == "torch":
        return array.T.is_contiguous() and not (array.is_conj() or array.is_neg())
    return v.kind == "cupy" and array.flags.f_contiguous


def empty(like: View, shape: tuple[int, ...], dtype: np.dtype, context: Context, columns: bool = False) -> View:
    """A new array of the kind and on the device of like. columns: a matrix that lies column by column (by_columns)."""
    order: Literal["C", "F"] = "F" if columns else "C"
    if like.kind == "cupy":
        cupy = sys.modules["cupy"]
        with cupy.cuda.Device(context.number):
            return view(cupy.empty(shape, dtype, order), "out")
    if like.kind == "torch":
        torch = sys.modules["torch"]
        of_torch = getattr(torch, type_name(dtype))
        made = torch.empty(shape[::-1] if columns else shape, dtype=of_torch, device=like.array.device)
        return view(made.T if columns else made, "out")
    if like.kind == "jax":
        return Memory(context, shape, dtype).view()
    if like.on_host:
        return _of_numpy(np.empty(shape, dtype, order))
    return Memory(context, shape, dtype).view()


def finished(result: View, like: View) -> Any:
    """The array that the caller gets."""
    if like.kind == "jax" and isinstance(result.array, Memory):
        import jax.dlpack

        if result.size == 0:
            return jax.numpy.zeros(result.shape, result.dtype)
        return jax.dlpack.from_dlpack(result.array)
    return result.array


def fill(target: View, value: Any, context: Context) -> None:
    """target = value: 0, or an array of the same kind or in host memory."""
    if isinstance(target.array, np.ndarray):
        target.array[...] = value if np.isscalar(value) else as_numpy(view(value, "x0"))
    elif isinstance(target.array, Memory) or target.kind not in ("cupy", "torch"):
        source = np.zeros(target.shape, target.dtype) if np.isscalar(value) else None
        if source is None:
            given = view(value, "x0")
            source = np.asarray(value) if given.kind == "jax" else as_numpy(given)
            source = np.ascontiguousarray(source, target.dtype).reshape(target.shape)
        if source.nbytes:
            _core.upload(context._handle, target.address, source.reshape(-1).view(np.uint8))
    elif np.isscalar(value) or kind_of(value) == target.kind:
        target.array[...] = value
    elif target.kind == "cupy":
        target.array.set(np.asarray(value, target.dtype))
    else:
        torch = sys.modules["torch"]
        target.array.copy_(torch.as_tensor(np.asarray(value, target.dtype)))


def warn_rounded(given: np.ndarray, converted: np.ndarray, name: str) -> None:
    """Warn if integers changed when they became real numbers, as the reader of files does."""
    if given.dtype.kind not in "iu" or given.dtype.itemsize < 8 or not given.size:
        return
    exact = 2**53
    if int(given.max()) <= exact and (given.dtype.kind == "u" or int(given.min()) >= -exact):
        return
    real = converted.real
    limit = 2.0**63 if given.dtype.kind == "i" else 2.0**64  # not an integer of the type: rounded up
    beyond = real >= limit
    changed = np.flatnonzero(beyond | (np.where(beyond, 0, real).astype(given.dtype) != given))
    if changed.size:
        first = int(changed[0]) if given.ndim == 1 else tuple(int(i) for i in np.unravel_index(changed[0], given.shape))
        warnings.warn(
            f"{name}[{first}]: this integer was rounded: not representable in {converted.dtype}"
            + (f" ({changed.size - 1} more)" if changed.size > 1 else ""),
            stacklevel=_levels_outside(),
        )


def _levels_outside() -> int:
    """The argument stacklevel of a warning that names the line which called this package."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("spmv."):
        level, frame = level + 1, frame.f_back
    return level


def check_finite(v: View, name: str) -> None:
    """Raise a ValueError that names the first element that is not finite. Arrays on a GPU are not read."""
    if not v.on_host or v.dtype.kind not in "fc":
        return
    if not is_finite(v):
        raise_not_finite(as_numpy(v), name)


def is_finite(v: View, size: int | None = None) -> bool:
    """Whether all numbers in host memory are finite, or the first so many; False for some types that are not of vectors."""
    parts = 2 if v.dtype.kind == "c" else 1
    return v.contiguous and _core.all_finite(v.address, parts * (v.size if size is None else size), v.dtype.itemsize // parts)


def raise_not_finite(array: np.ndarray, name: str) -> None:
    """Raise a ValueError if an element is not finite."""
    wrong = np.flatnonzero(~np.isfinite(array))
    if not wrong.size:
        return
    place = np.unravel_index(wrong[0], array.shape)
    at = int(place[0]) if array.ndim == 1 else f"({', '.join(str(int(i)) for i in place)})"
    what = "a NaN" if np.isnan(array[place]) else "an infinite number"
    raise ValueError(f"{name} has {what} at index {at}" + (f", {wrong.size} in all" if wrong.size > 1 else ""))


def whole(value: Any, name: str, lowest: int, highest: int = 2**31 - 1) -> int:
    """An argument as an integer; 1e3 is one."""
    try:
        number = operator.index(value)
    except TypeError:
        if not (isinstance(value, (float, np.floating)) and float(value).is_integer()):
            raise TypeError(f"{name} is {value!r}, an integer is needed") from None
        number = int(value)
    if not lowest <= number <= highest:
        raise ValueError(f"{name} is {number}, must be {lowest} to {highest}")
    return number


def number(value: Any, name: str, signed: bool = False) -> float:
    """An argument as a real number that is not NaN and, unless it is signed, not negative."""
    try:
        real = float(value)
    except (TypeError, ValueError):
        raise TypeError(f"{name} is {value!r}, a number is needed") from None
    if not (signed and not math.isnan(real)) and not real >= 0:
        raise ValueError(f"{name} is {real}, must not be {'negative' if real < 0 else 'a NaN'}")
    return real


def taken(array: Any, name: str, dtype: np.dtype, context: Context, columns: bool = False) -> tuple[View, View]:
    """An input array as the library reads it on the context, and the view of the caller's array.

    Both are the same view, unless the array had to be converted, made contiguous or uploaded. columns: a
    matrix that lies column by column (by_columns) stays so, unless its type is another one.
    """
    given = view(array, name, context)
    v = given
    if v.dtype != dtype:
        if not (np.can_cast(v.dtype, dtype, "safe") and v.dtype.kind in "biufc"):
            raise TypeError(
                f"{name} has the type {type_name(v.dtype)}, {type_name(dtype)} is needed: convert it, or choose dtype="
            )
        v = _converted(v, dtype, name)
    if not v.contiguous and not (columns and by_columns(v)):
        v = _converted(v, dtype, name)
    return on_device(v, name, context), given


def _converted(v: View, dtype: np.dtype, name: str) -> View:
    if v.kind == "cupy":
        return view(sys.modules["cupy"].ascontiguousarray(v.array, dtype), name)
    if v.kind == "torch":
        torch = sys.modules["torch"]
        array = v.array.to(getattr(torch, dtype.name)).resolve_conj().resolve_neg().contiguous()
        return view(array, name)
    if v.on_host:
        given = as_numpy(v)
        source = np.array(given, dtype=dtype, order="C", copy=True)
        warn_rounded(given, source, name)
        return _of_numpy(source, v.kind)
    raise TypeError(f"{name} must be a contiguous array of the type {dtype}")


def on_device(v: View, name: str, context: Context) -> View:
    """The view on the context's device. Host arrays are uploaded; a device array must be there."""
    if context.is_cuda:
        if v.device == context.device:
            if v.stream is not None:
                context._use_stream(*v.stream)
            return v
        if v.on_host:
            there = Memory(context, v.shape, v.dtype)
            if v.bytes:
                _core.upload(context._handle, there.address, _core.view_memory(v.address, v.bytes))
            return there.view()
    elif v.on_host:
        return v
    raise ValueError(f"{name} is on the device {v.device}, the plan or function works on {context.device}")


def check_out(
    out: Any, shape: tuple[int, ...], dtype: np.dtype, like: View, context: Context, columns: bool = False
) -> View:
    """The view of the caller's out, checked. columns: a matrix may lie column by column (by_columns)."""
    if kind_of(out) == "jax":
        raise TypeError("out must not be an array of JAX, which are constant")
    if not isinstance(out, np.ndarray) and kind_of(out) == "other" and not hasattr(out, "__dlpack__"):
        if not hasattr(out, "__cuda_array_interface__"):
            raise TypeError(f"out is not an array but {type(out).__name__}")
    v = view(out, "out", context)
    if v.shape != shape:
        raise ValueError(f"out has the shape {v.shape}, {shape} is needed")
    if isinstance(out, np.ndarray) and not out.dtype.isnative:
        raise TypeError(f"out has the type {out.dtype.str}, in another byte order than this machine's")
    if v.dtype != dtype:
        raise TypeError(f"out has the type {v.dtype}, {dtype} is needed")
    if isinstance(out, np.ndarray) and not out.flags.aligned:
        raise ValueError("out is not aligned: its address is not a multiple of the size of an element")
    if not v.contiguous and not (columns and by_columns(v)):
        raise ValueError("out is not contiguous" + (" in C or Fortran order" if columns else " in C order"))
    if not v.writable:
        raise ValueError("out is read-only")
    if v.device != like.device:
        raise ValueError(f"out is on the device {v.device}, x on {like.device}")
    return v


def copied(v: View, context: Context) -> View:
    """A copy in new memory on the same device."""
    if v.on_host:
        return _of_numpy(np.array(as_numpy(v)), v.kind)
    if v.kind == "cupy":
        return _of_cupy(v.array.copy())
    if v.kind == "torch":
        return _of_torch(v.array.clone(), "data")
    if not v.contiguous or v.dtype.itemsize < 4:
        raise TypeError("an array on a GPU that is not of CuPy or PyTorch must be contiguous, of 4 bytes or more")
    there = Memory(context, v.shape, v.dtype).view()
    if v.bytes:
        if v.stream is not None:
            context._use_stream(*v.stream)
        part = np.dtype("int32" if v.dtype.itemsize == 4 else "int64")  # copies bits
        _core.map(context._handle, "copy", CODES[part], v.address, there.address, v.bytes // part.itemsize)
    return there


KEPT = 8


def kept(made: dict[Any, Any], key: Any, make: Any, fits: Any = None) -> Any:
    """made[key], which make() makes if there is none that fits; the KEPT keys that were used last are kept."""
    found = made.pop(key, None)
    if found is None or (fits is not None and not fits(found)):
        found = make()
        while len(made) >= KEPT:
            made.pop(next(iter(made)), None)
    made[key] = found
    return found


def overlap(a: View, b: View) -> bool:
    return a.address < b.address + b.bytes and b.address < a.address + a.bytes and a.device == b.device


def code_of(dtype: np.dtype, name: str) -> int:
    if dtype not in CODES:
        raise TypeError(f"{name} has the type {dtype}, which spmv does not have: {', '.join(map(str, CODES))}")
    return CODES[dtype]

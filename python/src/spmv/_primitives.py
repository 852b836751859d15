# SPDX-License-Identifier: BSD-3-Clause
"""The data-parallel primitives on arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _core
from ._arrays import Memory, View, check_out, code_of, empty, finished, on_device, overlap, taken, view
from ._context import CODES, Context, context_of
from ._plan import _writable

_NUMBERS = tuple(d for d in CODES if d.kind in "if")


def _open(array: Any, name: str, device: Any, types: tuple[np.dtype, ...] = _NUMBERS) -> tuple[View, View, Context]:
    """An input: as the library reads it, as the caller gave it, and the context."""
    given = view(array, name)
    if given.dtype not in types:
        if given.dtype.kind in "biu" and np.can_cast(given.dtype, np.int64, "safe") and np.dtype("int64") in types:
            given = view(np.asarray(array, np.int64), name)
        else:
            raise TypeError(f"{name} has the type {given.dtype}; there are {', '.join(str(t) for t in types)}")
    if len(given.shape) != 1:
        raise ValueError(f"{name} has {len(given.shape)} dimensions, 1 is needed")
    context = context_of(device, given.device)
    source, given = taken(given, name, given.dtype, context)
    return source, given, context


class _Output:
    """A result: a new array of the kind of like, or the caller's out."""

    def __init__(self, out: Any, n: int, dtype: np.dtype, like: View, context: Context) -> None:
        self.out, self.like, self.context = out, like, context
        shape = (n,)
        if out is None:
            self.result = empty(like, shape, dtype, context)
        else:
            self.result = check_out(out, shape, dtype, like, context)
        self.target = self.result
        if context.is_cuda and self.result.on_host:
            self.target = on_device(self.result, "out", context)
        self.address = self.target.address

    def get(self, n: int | None = None) -> Any:
        """The array, or its first n elements."""
        if self.target is not self.result and self.result.bytes:
            _core.download(self.context._handle, self.target.address, _writable(self.result))
        if self.out is not None:
            return self.out
        array = finished(self.result, self.like)
        if n is None or n == self.result.shape[0]:
            return array
        return array[:n] if not isinstance(array, Memory) else array


def _apart(output: _Output, *inputs: View, in_place: bool = True) -> None:
    """Raise a ValueError if out overlaps an input; in_place: the first one may be out itself."""
    for i, v in enumerate(inputs):
        same = i == 0 and in_place and v.address == output.address
        if not same and overlap(v, output.target):
            raise ValueError("an input and out overlap")


def _scalar(output: _Output) -> Any:
    array = output.get()
    return array[0] if isinstance(array, np.ndarray) else array


def map(function: str, a: Any, out: Any = None, *, device: Any = "auto") -> Any:
    """f(a[i]) for each element: ``"copy"``, ``"neg"``, ``"abs"``, ``"square"``, ``"reciprocal"``, ``"sqrt"``.

    Examples
    --------
    >>> import spmv
    >>> spmv.map("square", [1.0, -2.0, 3.0])
    array([1., 4., 9.])
    """
    source, given, context = _open(a, "a", device)
    n = source.shape[0]
    output = _Output(out, n, source.dtype, given, context)
    _apart(output, source)
    _core.map(context._handle, function, CODES[source.dtype], source.address, output.address, n)
    return output.get()


def combine(op: str, a: Any, b: Any, out: Any = None, *, device: Any = "auto") -> Any:
    """a[i] op b[i] for each i, with an operator as for ``scan``.

    Examples
    --------
    >>> import spmv
    >>> spmv.combine("max", [1.0, 5.0], [2.0, 3.0])
    array([2., 5.])
    """
    source, given, context = _open(a, "a", device)
    second, _ = taken(b, "b", source.dtype, context)
    n = source.shape[0]
    if second.shape != (n,):
        raise ValueError(f"b has the shape {second.shape}, a has {(n,)}")
    output = _Output(out, n, source.dtype, given, context)
    _apart(output, source)
    _apart(output, second)
    _core.map_binary(
        context._handle, op, CODES[source.dtype], source.address, second.address, output.address, n
    )
    return output.get()


def dot(x: Any, y: Any, *, device: Any = "auto") -> Any:
    """The sum of x[i] y[i], in a fixed order.

    Examples
    --------
    >>> import spmv
    >>> float(spmv.dot([1.0, 2.0], [3.0, 4.0]))
    11.0
    """
    source, given, context = _open(x, "x", device, tuple(d for d in _NUMBERS if d.kind == "f"))
    second, _ = taken(y, "y", source.dtype, context)
    n = source.shape[0]
    if second.shape != (n,):
        raise ValueError(f"y has the shape {second.shape}, x has {(n,)}")
    output = _Output(None, 1, source.dtype, given, context)
    _core.dot(context._handle, CODES[source.dtype], source.address, second.address, output.address, n)
    return _scalar(output)


def reduce(a: Any, op: str = "add", *, device: Any = "auto") -> Any:
    """a[0] op a[1] op ..., with an operator as for ``scan``.

    Returns
    -------
    scalar, or on a GPU an array of one element

    Examples
    --------
    >>> import spmv
    >>> int(spmv.reduce([3, 1, 7, 0], "max"))
    7
    """
    source, given, context = _open(a, "a", device)
    output = _Output(None, 1, source.dtype, given, context)
    _core.reduce(context._handle, op, CODES[source.dtype], source.address, output.address, source.shape[0])
    return _scalar(output)


def scan(a: Any, op: str = "add", *, exclusive: bool = False, out: Any = None, device: Any = "auto") -> Any:
    """Prefix sums with any operator: result[i] = a[0] op ... op a[i].

    Parameters
    ----------
    a : array
        int32, int64, float32 or float64.
    op : str, optional
        ``"add"`` (the default), ``"mul"``, ``"min"``, ``"max"``, ``"last"`` (the last element that is
        not 0).
    exclusive : bool, optional
        True: without element i itself.
    out : array, optional
        Receives the result; may be a.

    Examples
    --------
    >>> import spmv
    >>> spmv.scan([3, 1, 7, 0, 4])
    array([ 3,  4, 11, 11, 15])
    >>> spmv.scan([3, 1, 7, 0, 4], exclusive=True)
    array([ 0,  3,  4, 11, 11])
    """
    source, given, context = _open(a, "a", device)
    n = source.shape[0]
    output = _Output(out, n, source.dtype, given, context)
    _apart(output, source)
    _core.scan(context._handle, exclusive, op, CODES[source.dtype], source.address, output.address, n)
    return output.get()


_FLAGS, _STARTS, _OFFSETS = 1, 2, 3


def _positions(positions: Any, name: str, n: int, context: Context, form: int) -> View:
    heads = view(positions, name)
    if heads.dtype.kind not in "iu" or len(heads.shape) != 1:
        raise TypeError(f"{name} must be a vector of integers")
    if heads.dtype not in (np.int32, np.int64):
        heads = view(np.asarray(positions, np.int64), name)
    heads, _ = taken(heads, name, heads.dtype, context)
    count = heads.shape[0] - (form == _OFFSETS)
    if count < (1 if n else 0):
        raise ValueError(f"{name} has {heads.shape[0]} elements, too few")
    if context.is_cuda:  # on host memory the library checks
        values = np.empty(heads.shape, heads.dtype)
        _core.download(context._handle, heads.address, values.view(np.uint8))
        if values[0] != 0 or np.any(np.diff(values) < 0) or values[-1] > n or (form == _OFFSETS and values[-1] != n):
            raise ValueError(f"{name} must begin with 0, must not decrease, and must be at most {n}")
    return heads


def segmented_scan(
    a: Any,
    op: str = "add",
    *,
    offsets: Any = None,
    flags: Any = None,
    exclusive: bool = False,
    out: Any = None,
    device: Any = "auto",
) -> Any:
    """A scan that starts again at each segment.

    Parameters
    ----------
    a, op, exclusive, out
        As for ``scan``.
    offsets : array of int, optional
        Where the segments start, and the end of the last one, as ``indptr`` of a matrix.
    flags : array of bool, optional
        One for each element: whether a segment starts there.

    Examples
    --------
    >>> import spmv
    >>> spmv.segmented_scan([1, 2, 3, 4], offsets=[0, 2, 4])
    array([1, 3, 3, 7])
    """
    source, given, context = _open(a, "a", device)
    n = source.shape[0]
    if (offsets is None) == (flags is None):
        raise ValueError("segmented_scan needs either offsets or flags")
    if flags is not None:
        heads, form, bits, count = _flags(flags, n, context), _FLAGS, 8, 0
    else:
        heads = _positions(offsets, "offsets", n, context, _OFFSETS)
        form, bits, count = _OFFSETS, 8 * heads.dtype.itemsize, heads.shape[0] - 1
    output = _Output(out, n, source.dtype, given, context)
    _apart(output, source, heads)
    _core.segmented(
        context._handle, False, exclusive, op, CODES[source.dtype], form, heads.address, bits, count, source.address,
        output.address, n,
    )  # fmt: skip
    return output.get()


def _flags(flags: Any, n: int, context: Context) -> View:
    v = view(flags, "flags")
    if v.shape != (n,):
        raise ValueError(f"flags has the shape {v.shape}, {(n,)} is needed")
    if v.dtype not in (np.dtype("bool"), np.dtype("uint8"), np.dtype("int8")) or not v.contiguous:
        if not v.on_host:
            raise TypeError(f"flags has the type {v.dtype}; bool or uint8 is needed")
        v = view(np.ascontiguousarray(np.asarray(flags) != 0), "flags")
    return on_device(v, "flags", context)


def segmented_reduce(a: Any, offsets: Any, op: str = "add", *, out: Any = None, device: Any = "auto") -> Any:
    """The reduction of each segment; the identity of the operator for an empty one.

    Examples
    --------
    >>> import spmv
    >>> spmv.segmented_reduce([1, 2, 3, 4], [0, 1, 4])
    array([1, 9])
    """
    source, given, context = _open(a, "a", device)
    n = source.shape[0]
    heads = _positions(offsets, "offsets", n, context, _OFFSETS)
    count = heads.shape[0] - 1
    output = _Output(out, count, source.dtype, given, context)
    _apart(output, source, heads, in_place=False)
    _core.segmented(
        context._handle, True, False, op, CODES[source.dtype], _OFFSETS, heads.address, 8 * heads.dtype.itemsize, count,
        source.address, output.address, n,
    )  # fmt: skip
    return output.get()


def sort(keys: Any, values: Any = None, *, device: Any = "auto") -> Any:
    """Sort keys in ascending order, and values with them. Equal keys keep their order.

    Parameters
    ----------
    keys : array
        int32, int64, float32 or float64. NaN are sorted by sign, beyond the infinities.
    values : array, optional
        One element of 4 or 8 bytes for each key.

    Returns
    -------
    array, or with values a tuple (keys, values)

    Examples
    --------
    >>> import spmv
    >>> spmv.sort([3, 1, 2], [0.5, 1.5, 2.5])
    (array([1, 2, 3]), array([1.5, 2.5, 0.5]))
    """
    source, given, context = _open(keys, "keys", device)
    n = source.shape[0]
    output = _Output(None, n, source.dtype, given, context)
    width, out_values, address, size = 8 * source.dtype.itemsize, None, 0, 0
    if values is not None:
        moved = view(values, "values")
        if moved.shape != (n,) or moved.dtype.itemsize not in (4, 8):
            raise ValueError(f"values needs one element of 4 or 8 bytes for each of the {n} keys")
        given_values = moved
        moved, _ = taken(moved, "values", moved.dtype, context)
        out_values = _Output(None, n, moved.dtype, given_values, context)
        address, size = moved.address, moved.dtype.itemsize
    _core.sort(
        context._handle, CODES[source.dtype], width, source.address, address, size, output.address,
        out_values.address if out_values is not None else 0, n,
    )  # fmt: skip
    return output.get() if out_values is None else (output.get(), out_values.get())


def histogram(index: Any, bins: int, *, device: Any = "auto") -> Any:
    """How often each number 0, ..., bins - 1 occurs in an int32 array; other numbers do not count.

    Examples
    --------
    >>> import numpy as np, spmv
    >>> spmv.histogram(np.array([0, 2, 2, 5], np.int32), 3)
    array([1, 0, 2])
    """
    given = view(index, "index")
    if given.on_host and given.dtype != np.int32:
        if given.dtype.kind not in "iu":
            raise TypeError(f"index has the type {given.dtype}; int32 is needed")
        whole = np.asarray(index)
        given = view(np.where((whole < 0) | (whole >= min(int(bins), 2**31)), -1, whole).astype(np.int32), "index")
    source, given, context = _open(given, "index", device, (np.dtype("int32"),))
    output = _Output(None, int(bins), np.dtype("int64"), given, context)
    _core.histogram(context._handle, source.address, output.address, int(bins), source.shape[0])
    return output.get()


def compact(a: Any, flags: Any = None, *, where: tuple[str, Any] | None = None, device: Any = "auto") -> Any:
    """The selected elements, in order.

    Parameters
    ----------
    a : array
    flags : array of bool, optional
        One for each element.
    where : tuple, optional
        A predicate and a number: ``("less", 3)``. Predicates: ``"less"``, ``"less_equal"``,
        ``"greater"``, ``"greater_equal"``, ``"equal"``, ``"not_equal"``, ``"nonzero"``.

    Examples
    --------
    >>> import spmv
    >>> spmv.compact([3, 1, 7, 0, 4], where=("greater", 2))
    array([3, 7, 4])
    """
    source, given, context = _open(a, "a", device)
    n = source.shape[0]
    if (flags is None) == (where is None):
        raise ValueError("compact needs either flags or where")
    output = _Output(None, n, source.dtype, given, context)
    count = Memory(context, (1,), np.dtype("int64"))
    code = CODES[source.dtype]
    if flags is not None:
        chosen = _flags(flags, n, context)
        _core.compact(context._handle, code, source.address, chosen.address, output.address, count.address, n)
    else:
        predicate, number = where  # type: ignore[misc]
        number = source.dtype.type(number if number is not None else 0).item()
        _core.compact_if(
            context._handle, predicate, code, number, source.address, output.address, count.address, n
        )
    return output.get(int(count.numpy()[0]))


def _indices(index: Any, context: Context) -> View:
    v = view(index, "index")
    if v.dtype.kind not in "iu" or len(v.shape) != 1:
        raise TypeError("index must be a vector of integers")
    if v.dtype not in (np.int32, np.int64):
        v = view(np.asarray(index, np.int64), "index")
    return taken(v, "index", v.dtype, context)[0]


def gather(a: Any, index: Any, *, out: Any = None, device: Any = "auto") -> Any:
    """a[index[i]] for each i. An index that is out of range is a ValueError.

    Examples
    --------
    >>> import spmv
    >>> spmv.gather([1.5, 2.5, 3.5], [2, 0])
    array([3.5, 1.5])
    """
    source, given, context = _open(a, "a", device)
    where = _indices(index, context)
    n, bits = where.shape[0], 8 * where.dtype.itemsize
    _core.index_check(context._handle, where.address, bits, 0, source.shape[0], n)
    output = _Output(out, n, source.dtype, given, context)
    _apart(output, source, where, in_place=False)
    _core.gather(
        context._handle, CODES[source.dtype], source.address, source.shape[0], where.address, bits, output.address, n
    )
    return output.get()


def scatter(a: Any, index: Any, out: Any, *, device: Any = "auto") -> Any:
    """out[index[i]] = a[i] for each i. An index must not occur twice; one that is out of range is a ValueError.

    Examples
    --------
    >>> import numpy as np, spmv
    >>> spmv.scatter([1.5, 2.5], [2, 0], np.zeros(3))
    array([2.5, 0. , 1.5])
    """
    source, given, context = _open(a, "a", device)
    where = _indices(index, context)
    n, bits = where.shape[0], 8 * where.dtype.itemsize
    if source.shape[0] != n:
        raise ValueError(f"a has {source.shape[0]} elements, index {n}")
    room = view(out, "out").shape
    if len(room) != 1:
        raise ValueError("out must be a vector")
    output = _Output(out, room[0], source.dtype, given, context)
    _apart(output, source, where, in_place=False)
    _core.index_check(context._handle, where.address, bits, 0, room[0], n)
    _core.scatter(
        context._handle, CODES[source.dtype], source.address, where.address, bits, output.address, room[0], n
    )
    return output.get()


def expand(a: Any, counts: Any, *, device: Any = "auto") -> Any:
    """Element i of a, counts[i] times; a negative count is 0.

    Examples
    --------
    >>> import spmv
    >>> spmv.expand([1.5, 2.5, 3.5], [2, 0, 1])
    array([1.5, 1.5, 3.5])
    """
    source, given, context = _open(a, "a", device)
    n = source.shape[0]
    times = _indices(counts, context)
    if times.shape != (n,):
        raise ValueError(f"counts has the shape {times.shape}, a has {(n,)}")
    offsets = Memory(context, (n + 1,), np.dtype("int64"))
    _core.expand_offsets(context._handle, times.address, 8 * times.dtype.itemsize, offsets.address, n)
    last = Memory.__new__(Memory)
    last.context, last.shape, last.dtype, last.address = context, (1,), np.dtype("int64"), offsets.address + 8 * n
    total = int(last.numpy()[0])
    output = _Output(None, total, source.dtype, given, context)
    _core.expand(
        context._handle, CODES[source.dtype], source.address, offsets.address, n, output.address, total
    )
    return output.get()

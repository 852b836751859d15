# SPDX-License-Identifier: BSD-3-Clause
"""The ranks of a group that this process has, and the parts of vectors that they share.

The functions of the library that ranks call together are called by a thread for each rank of this
process, rank 0 on the caller's. Under MPI each process is one rank. What differs between the two is in
Threads and Processes: who has which part of a vector, and how ranks learn of a failure.
"""

from __future__ import annotations

import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Callable, Iterable

import numpy as np

from . import _core
from ._arrays import Memory, View, as_numpy, view, warn_rounded, whole
from ._context import Context, context_of
from ._matrix import downloaded

_MOST_RANKS = 256  # that are threads


def nothing(r: int) -> None:
    """What ranks prepare that have all they need."""


class Threads:
    """Ranks that are threads of this process. Vectors are whole."""

    transport = "threads"
    rank = 0

    def __init__(self, contexts: list[Context]) -> None:
        self.contexts, self.size = contexts, len(contexts)
        self._pool = ThreadPoolExecutor(self.size - 1, "spmv-rank") if self.size > 1 else None
        self._lock, self._owner, self._process = threading.Lock(), 0, os.getpid()
        self._of_ranks = tuple(c._handle for c in contexts)

    def handles(self) -> tuple[Any, ...]:
        return _core.group_threads(self._of_ranks)

    def close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=False)

    def prepared(self, make: Callable[[], Any]) -> Any:
        return make()

    def together(self, groups: Any, prepare: Callable[[int], Any], enter: Callable[[int, Any], Any]) -> list[Any]:
        """[enter(r, prepare(r)) for each rank r], all at the same time; an exception of one of them.

        enter calls the function of the library that ranks call together. A rank that fails before it
        breaks the group, so that the others do not wait for it.
        """
        if self._process != os.getpid():
            _core.wait(self.contexts[0]._handle)  # says that this process was forked
        if self._owner == threading.get_ident():
            raise RuntimeError("a callback of a solve on ranks cannot use the same ranks")
        with self._lock:
            self._owner = threading.get_ident()
            try:
                return self._run(groups, prepare, enter)
            finally:
                self._owner = 0

    def _run(self, groups: Any, prepare: Callable[[int], Any], enter: Callable[[int, Any], Any]) -> list[Any]:
        answers: list[Any] = [None] * self.size
        errors: list[BaseException | None] = [None] * self.size
        others: list[Any] = []
        _core.group_lead(self._of_ranks)

        def one(r: int) -> None:
            ready = False
            try:
                if r == 0 and self._pool is not None:
                    others.extend(self._pool.submit(one, other) for other in range(1, self.size))
                prepared = prepare(r)
                ready = True
                answers[r] = enter(r, prepared)
            except BaseException as error:
                errors[r] = error
                if not (ready and hasattr(error, "status")):  # all ranks know of those of the library
                    _core.group_break(groups[r], f"{type(error).__name__}: {error}")

        one(0)
        for other in others:
            while not other.done():
                try:
                    other.result()
                except KeyboardInterrupt as error:  # the ranks end first
                    errors[0] = error
        told = [error for error in errors if error is not None]
        if told:  # the one that others only tell of
            raise next((e for e in told if not str(e).startswith("rank ")), told[0])
        return answers

    def total(self, n: int) -> int:
        """The length of a vector of which the ranks of this process give n elements."""
        return n

    def bounds(self, firsts: list[int], end: int) -> list[int]:
        return [*firsts, end]

    def spread(self, array: np.ndarray, bounds: list[int]) -> list[np.ndarray]:
        """The part of each rank of this process: views, if all ranks are here."""
        return [array[a:b] for a, b in zip(bounds, bounds[1:])]

    def gather(self, parts: list[np.ndarray], bounds: list[int], array: np.ndarray) -> None:
        """Writes what spread has divided back to the array."""


class Processes:
    """This process is one rank of MPI. Vectors are the part that the process has."""

    transport = "mpi"
    _handle: Any = None  # the library's, one for the process: MPI ends with it
    _context: Any = None

    def __init__(self, comm: Any, context: Context) -> None:
        self.contexts, self.size, self.rank = [context], comm.size, comm.rank
        self._comm = comm.Dup()
        if Processes._handle is None:
            Processes._context, Processes._handle = context, _core.group_mpi(context._handle)

    def handles(self) -> tuple[Any, ...]:
        return (Processes._handle,)

    def close(self) -> None:
        self._comm.Free()

    def prepared(self, make: Callable[[], Any]) -> Any:
        """make(), unless it raises an exception on some rank: then all ranks raise one."""
        made, error = None, None
        try:
            made = make()
        except Exception as raised:
            error = raised
        texts = self._comm.allgather(None if error is None else f"{type(error).__name__}: {error}")
        if error is not None:
            raise error
        for rank, text in enumerate(texts):
            if text is not None:
                raise RuntimeError(f"rank {rank}: {text}")
        return made

    def together(self, groups: Any, prepare: Callable[[int], Any], enter: Callable[[int, Any], Any]) -> list[Any]:
        try:
            prepared = prepare(0)
        except BaseException as error:
            _core.group_break(groups[0], f"{type(error).__name__}: {error}")
            raise
        return [enter(0, prepared)]

    def total(self, n: int) -> int:
        return sum(self._comm.allgather(n))

    def bounds(self, firsts: list[int], end: int) -> list[int]:
        return [*self._comm.allgather(firsts[0]), end]

    def _given(self, n: int) -> list[int]:
        return [0, *np.cumsum(self._comm.allgather(n)).tolist()]

    def spread(self, array: np.ndarray, bounds: list[int]) -> list[np.ndarray]:
        part = np.empty((bounds[self.rank + 1] - bounds[self.rank], *array.shape[1:]), array.dtype)
        self._move(array, self._given(len(array)), part, bounds)
        return [part]

    def gather(self, parts: list[np.ndarray], bounds: list[int], array: np.ndarray) -> None:
        self._move(parts[0], bounds, array, self._given(len(array)))

    def _move(self, source: np.ndarray, have: list[int], target: np.ndarray, want: list[int]) -> None:
        """Sends elements from the ranks that have them to those that want them; both are in order."""
        requests, me = [], self.rank
        for receives, other in [(True, r) for r in range(self.size)] + [(False, r) for r in range(self.size)]:
            of, to = (other, me) if receives else (me, other)
            begin, end = max(have[of], want[to]), min(have[of + 1], want[to + 1])
            if begin >= end:
                continue
            here = source[begin - have[me] : end - have[me]] if of == me else None
            there = target[begin - want[me] : end - want[me]] if to == me else None
            if other == me:
                if receives:
                    there[...] = here  # type: ignore[index]
            elif receives:
                requests.append(self._comm.Irecv(there, other))
            else:
                requests.append(self._comm.Isend(here, other))
        for request in requests:
            request.Wait()


def open_threads(ranks: int | None, gpus: Any, device: Any, threads: int) -> Threads:
    name = str(device)
    if name == "cuda:all":
        gpus, name = ("all" if gpus is None else gpus), "cuda"
    if gpus is not None:
        numbers = _gpus(gpus)
        count = len(numbers) if ranks is None else whole(ranks, "ranks", 1, _MOST_RANKS)
        if count < len(numbers):
            raise ValueError(f"{len(numbers)} GPUs for {count} ranks: each GPU needs a rank")
        return Threads([Context(f"cuda:{numbers[r % len(numbers)]}") for r in range(count)])
    if ranks is None:
        raise TypeError(
            'a group needs ranks=, gpus= or comm=: Group(ranks=4), Group(gpus="all"), Group(comm=MPI.COMM_WORLD)'
        )
    count = whole(ranks, "ranks", 1, _MOST_RANKS)
    name = "cpu" if name == "auto" else name
    share = max(1, (threads or context_of("cpu").threads) // count)
    return Threads([Context(name, share) for _ in range(count)])


def _gpus(gpus: Any) -> list[int]:
    """The numbers of GPUs: "all", how many, or the numbers themselves."""
    if isinstance(gpus, Iterable) and not isinstance(gpus, str):
        numbers = [whole(getattr(n, "id", n), "the number of a GPU", 0) for n in gpus]  # id: of CuPy's devices
        if not numbers:
            raise ValueError("gpus is empty")
        return numbers
    if gpus != "all":
        return list(range(whole(gpus, "gpus", 1, _MOST_RANKS)))
    found = 0
    while True:
        try:
            Context(f"cuda:{found}")
        except RuntimeError as error:
            if found and getattr(error, "status", "") == "SPMV_ERROR_NO_DEVICE":
                return list(range(found))
            raise
        found += 1


_MPI_NAMES = {"Open MPI": "openmpi", "MPICH": "mpich", "Intel MPI": "mpich", "MVAPICH": "mpich", "MVAPICH2": "mpich"}


def open_processes(comm: Any, device: Any, threads: int) -> Threads | Processes:
    try:
        from mpi4py import MPI
    except ImportError:
        raise TypeError("comm must be a communicator of mpi4py, which is not installed") from None
    if not isinstance(comm, MPI.Intracomm):
        raise TypeError(f"comm is not a communicator of mpi4py but {type(comm).__name__}")
    if MPI.Comm.Compare(comm, MPI.COMM_WORLD) not in (MPI.IDENT, MPI.CONGRUENT):
        raise NotImplementedError(
            "comm must have the processes of MPI.COMM_WORLD: the library has one group, of all that mpirun has started"
        )
    if comm.size == 1:
        return open_threads(1, None, device, threads)
    vendor, launcher = _MPI_NAMES.get(MPI.get_vendor()[0], ""), _core.group_launcher()
    if vendor and launcher and vendor != launcher:
        raise ValueError(
            f"mpi4py uses {MPI.get_vendor()[0]}, but mpirun is that of {launcher}: start the processes by the mpirun of the "
            "same MPI"
        )
    if Processes._handle is not None:  # of an earlier group
        context = Processes._context
        if str(device) != "auto" and not context.device.startswith(str(device)):
            raise ValueError(f"the rank of this process is on {context.device}: one process has one device")
        return Processes(comm, context)
    here = comm.Split_type(MPI.COMM_TYPE_SHARED)
    number, sharing = here.rank, here.size
    here.Free()
    name = "cpu" if str(device) == "auto" else str(device)
    if name in ("cuda", "cuda:all", "gpu"):
        name = f"cuda:{number}"
    context = Context(name, threads)
    if not threads and "OMP_NUM_THREADS" not in os.environ and not context.is_cuda:
        if context.threads > 1 and context.threads * sharing > (os.cpu_count() or 1):
            context = Context(name, max(1, context.threads // sharing))
    return Processes(comm, context)


# ---------------------------------------------------------------- vectors


def on_host(array: Any, name: str, dtype: np.dtype) -> tuple[np.ndarray, View]:
    """A vector as the ranks share it, in host memory, contiguous and of this type; the view of the caller's."""
    v = view(array, name)
    if v.dtype != dtype and not (np.can_cast(v.dtype, dtype, "safe") and v.dtype.kind in "biufc"):
        raise TypeError(f"{name} has the type {v.dtype}, {dtype} is needed: convert it, or choose dtype=")
    given = as_numpy(v) if v.on_host else downloaded(context_of(v.device), v)
    converted = np.ascontiguousarray(given, dtype)
    if v.dtype != dtype:
        warn_rounded(given, converted, name)
    return converted, v


def as_given(array: np.ndarray, like: View) -> Any:
    """A result as an array of the caller's kind, where the caller's array is."""
    if like.kind == "cupy":
        cupy = sys.modules["cupy"]
        with cupy.cuda.Device(like.array.device.id):
            return cupy.asarray(array)
    if like.kind == "torch":
        return sys.modules["torch"].from_numpy(array).to(like.array.device)
    if like.kind == "jax":
        return sys.modules["jax"].numpy.asarray(array)
    return array


class Part:
    """A part of a vector in the memory of a rank: that of the host itself, or a copy on a GPU."""

    def __init__(self, context: Context, part: np.ndarray, upload: bool = True) -> None:
        self._context, self._part = context, part
        self._there = Memory(context, part.shape, part.dtype) if context.is_cuda else None
        self.address = self._there.address if self._there is not None else part.ctypes.data
        if self._there is not None and upload and part.nbytes:
            _core.upload(context._handle, self.address, part.reshape(-1).view(np.uint8))

    def fetch(self) -> None:
        if self._there is not None and self._part.nbytes:
            _core.download(self._context._handle, self.address, self._part.reshape(-1).view(np.uint8))

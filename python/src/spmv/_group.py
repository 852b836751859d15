# SPDX-License-Identifier: BSD-3-Clause
"""Groups of ranks: one matrix on several GPUs, or shared by threads or by processes of MPI.

The functions of the library that ranks call together are called by a thread for each rank of this
process, rank 0 on the caller's. Under MPI each process is one rank. What differs between the two is in
_Threads and _Processes: who has which part of a vector, and how ranks learn of a failure.
"""

from __future__ import annotations

import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Callable, Iterable

import numpy as np

from . import _core
from ._arrays import Memory, View, as_numpy, check_finite, view, warn_rounded, whole
from ._context import CODES, DTYPES, Context, context_of
from ._files import _type
from ._matrix import HOST_MEMORY, Taken, arrays_of, check_values, downloaded, take
from ._plan import _Base
from ._solve import (
    Result,
    addresses,
    check_square,
    common_type,
    host_coordinates,
    one_preconditioner,
    option_numbers,
    options_given,
    result_of,
    settings,
    solved,
)

_MOST_RANKS = 256  # that are threads
_MOST_NODE = 8  # rows of a node, for the cut of a matrix


# ---------------------------------------------------------------- ranks of this process


def _nothing(r: int) -> None:
    """What ranks prepare that have all they need."""


class _Threads:
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


class _Processes:
    """This process is one rank of MPI. Vectors are the part that the process has."""

    transport = "mpi"
    _handle: Any = None  # the library's, one for the process: MPI ends with it
    _context: Any = None

    def __init__(self, comm: Any, context: Context) -> None:
        self.contexts, self.size, self.rank = [context], comm.size, comm.rank
        self._comm = comm.Dup()
        if _Processes._handle is None:
            _Processes._context, _Processes._handle = context, _core.group_mpi(context._handle)

    def handles(self) -> tuple[Any, ...]:
        return (_Processes._handle,)

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


def _open_threads(ranks: int | None, gpus: Any, device: Any, threads: int) -> _Threads:
    name = str(device)
    if name == "cuda:all":
        gpus, name = ("all" if gpus is None else gpus), "cuda"
    if gpus is not None:
        numbers = _gpus(gpus)
        count = len(numbers) if ranks is None else whole(ranks, "ranks", 1, _MOST_RANKS)
        if count < len(numbers):
            raise ValueError(f"{len(numbers)} GPUs for {count} ranks: each GPU needs a rank")
        return _Threads([Context(f"cuda:{numbers[r % len(numbers)]}") for r in range(count)])
    if ranks is None:
        raise TypeError(
            'a group needs ranks=, gpus= or comm=: Group(ranks=4), Group(gpus="all"), Group(comm=MPI.COMM_WORLD)'
        )
    count = whole(ranks, "ranks", 1, _MOST_RANKS)
    name = "cpu" if name == "auto" else name
    share = max(1, (threads or context_of("cpu").threads) // count)
    return _Threads([Context(name, share) for _ in range(count)])


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


def _open_processes(comm: Any, device: Any, threads: int) -> _Threads | _Processes:
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
        return _open_threads(1, None, device, threads)
    vendor, launcher = _MPI_NAMES.get(MPI.get_vendor()[0], ""), _core.group_launcher()
    if vendor and launcher and vendor != launcher:
        raise ValueError(
            f"mpi4py uses {MPI.get_vendor()[0]}, but mpirun is that of {launcher}: start the processes by the mpirun of the "
            "same MPI"
        )
    if _Processes._handle is not None:  # of an earlier group
        context = _Processes._context
        if str(device) != "auto" and not context.device.startswith(str(device)):
            raise ValueError(f"the rank of this process is on {context.device}: one process has one device")
        return _Processes(comm, context)
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
    return _Processes(comm, context)


# ---------------------------------------------------------------- vectors


def _on_host(array: Any, name: str, dtype: np.dtype) -> tuple[np.ndarray, View]:
    """A vector as the ranks share it, in host memory, contiguous and of this type; the view of the caller's."""
    v = view(array, name)
    if v.dtype != dtype and not (np.can_cast(v.dtype, dtype, "safe") and v.dtype.kind in "biufc"):
        raise TypeError(f"{name} has the type {v.dtype}, {dtype} is needed: convert it, or choose dtype=")
    given = as_numpy(v) if v.on_host else downloaded(context_of(v.device), v)
    converted = np.ascontiguousarray(given, dtype)
    if v.dtype != dtype:
        warn_rounded(given, converted, name)
    return converted, v


def _as_given(array: np.ndarray, like: View) -> Any:
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


class _Part:
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


# ---------------------------------------------------------------- matrices


class GroupMatrix(_Base):  # type: ignore[misc, valid-type]
    """A matrix whose rows belong to the ranks of a group, made by ``Group.matrix``, ``read`` or ``generate``.

    ``matrix @ x`` is the product, ``matrix.T`` the transpose; the solvers of the group take it. It has its
    own copy of the rows. With ranks that are threads it is a ``scipy.sparse.linalg.LinearOperator``.

    Examples
    --------
    >>> import numpy as np, spmv
    >>> with spmv.Group(ranks=2) as group:
    ...     A = group.generate("poisson2d:20")
    ...     y = A @ np.ones(400)
    >>> y.shape, float(y.sum())
    ((400,), 80.0)
    """

    def __init__(self, group: Group, groups: Any, handles: list[Any]) -> None:
        self._group, self._groups, self._handles = group, groups, handles
        infos = [_core.group_matrix_info(h) for h in handles]
        ranks = group._open()
        about = infos[0]
        self._type: np.dtype = np.dtype(_NUMPY[about["type"]])
        super().__init__(self._type, (about["rows"], about["cols"]))
        self._rows = ranks.bounds([i["first_row"] for i in infos], about["rows"])
        self._cols = ranks.bounds([i["first_col"] for i in infos], about["cols"])
        self._turned: GroupMatrix | None = None
        self._given_rows: int | None = None  # that this process gave; None: the library made them
        self._stored: np.dtype | None = None  # the type of values
        self._entries: list[int] = [0]  # the first entry of each rank of this process, of those that it gave; and all

    def _gave(self, rows: int, stored: np.dtype, counts: Iterable[int]) -> None:
        """What the ranks of this process gave: rows, the type of values, and the entries of each."""
        self._given_rows, self._stored = rows, stored
        self._entries = [0, *np.cumsum(list(counts)).tolist()]

    @property
    def nnz(self) -> int:
        """The number of entries."""
        return int(_core.group_matrix_info(self._handles[0])["nnz"])

    @property
    def group(self) -> Group:
        """The group that the matrix belongs to."""
        return self._group

    def describe(self) -> dict[str, Any]:
        """The facts of the matrix, and of rank 0 (under MPI: of this rank); ``docs/distributed.md`` explains them.

        Examples
        --------
        >>> import spmv
        >>> spmv.Group(ranks=3).generate("poisson2d:50").describe()["ranks"]
        3
        """
        ranks = self._group._open()
        about = _core.group_matrix_info(self._handles[0])
        return {**about, "ranks": ranks.size, "transport": ranks.transport, "device": ranks.contexts[0].description}

    # ------------------------------------------------------------ products

    def _product(self, x: Any) -> Any:
        ranks = self._group._open()

        def prepare() -> tuple[np.ndarray, View]:
            array, given = _on_host(x, "x", self._type)
            if array.ndim not in (1, 2):
                raise ValueError(f"x has the shape {array.shape}: a vector, or a matrix with one in each column, is needed")
            return array, given

        array, given = ranks.prepared(prepare)
        n = ranks.total(len(array))
        if n != self.shape[1]:
            raise ValueError(f"x has {n} elements, the matrix has {self.shape[1]} columns")
        rows = self._own_rows(len(array))
        y = np.empty((rows, *array.shape[1:]), self._type)
        for column in range(1 if array.ndim == 1 else array.shape[1]):
            if array.ndim == 1:
                self._multiply(ranks, array, y)
                break
            of_y = np.empty(rows, self._type)
            self._multiply(ranks, np.ascontiguousarray(array[:, column]), of_y)
            y[:, column] = of_y
        return _as_given(y, given)

    def _own_rows(self, own_cols: int) -> int:
        """The rows of a result that this process gets: those that it gave, or those of its part of x."""
        ranks = self._group._open()
        if ranks.transport == "threads":
            return self.shape[0]
        if self._given_rows is not None:
            return int(self._given_rows)
        if self.shape[0] == self.shape[1]:
            return own_cols
        return self._rows[ranks.rank + 1] - self._rows[ranks.rank]

    def _multiply(self, ranks: Any, x: np.ndarray, y: np.ndarray) -> None:
        xs, ys = ranks.spread(x, self._cols), ranks.spread(y, self._rows)

        def prepare(r: int) -> tuple[_Part, _Part]:
            return _Part(ranks.contexts[r], xs[r]), _Part(ranks.contexts[r], ys[r], upload=False)

        def enter(r: int, parts: tuple[_Part, _Part]) -> None:
            _core.group_apply(self._handles[r], parts[0].address, parts[1].address)
            parts[1].fetch()

        ranks.together(self._groups, prepare, enter)
        ranks.gather(ys, self._rows, y)

    def __matmul__(self, x: Any) -> Any:
        if isinstance(x, _Base):
            return super().__matmul__(x)  # type: ignore[misc]
        return self._product(x)

    def _matvec(self, x: Any) -> Any:
        return self._product(x)

    _matmat = matvec = _matvec

    def _rmatvec(self, x: Any) -> Any:
        if self._type.kind == "c":
            return np.conj(self.T._product(np.conj(x)))
        return self.T._product(x)

    _rmatmat = rmatvec = _rmatvec

    @property
    def T(self) -> Any:
        """The transpose, not conjugated, on the same ranks; made on first use."""
        if self._turned is None:
            ranks = self._group._open()
            handles = ranks.together(self._groups, _nothing, lambda r, _: _core.group_transpose(self._handles[r]))
            self._turned = GroupMatrix(self._group, self._groups, handles)
            self._turned._given_rows = self._given_rows if self.shape[0] == self.shape[1] else None
            self._turned._turned = self
        return self._turned

    def transpose(self) -> Any:
        """As ``matrix.T``."""
        return self.T

    def _transpose(self) -> Any:
        return self.T

    # ------------------------------------------------------------ new values

    def update_values(self, values: Any) -> None:
        """Replace the values of the matrix; its pattern and the division stay.

        values has an element for each entry that this process gave to ``Group.matrix`` or got from
        ``generate``, in their order: ``A.data`` of the CSR form. It is copied. Solvers of the matrix make
        their set-up again, in the next solve.
        """
        self._update(values, lambda r, address: _core.group_update(self._handles[r], address))

    def _update(self, values: Any, call: Callable[[int, int], Any]) -> None:
        ranks, of = self._group._open(), self._stored

        def prepare() -> np.ndarray:
            if of is None:
                raise NotImplementedError("a matrix that was read, or a transpose, takes no new values: make it again")
            array, _ = _on_host(values, "values", of)
            if array.shape != (self._entries[-1],):
                raise ValueError(f"values has the shape {array.shape}, the matrix has {self._entries[-1]} entries")
            check_finite(view(array, "values"), "values")
            return array

        array = ranks.prepared(prepare)
        self._turned = None
        starts = [array.ctypes.data + first * array.itemsize for first in self._entries]
        ranks.together(self._groups, _nothing, lambda r, _: call(r, starts[r]))

    # ------------------------------------------------------------ description

    def _adjoint(self) -> Any:
        if self._type.kind == "c":
            raise NotImplementedError(
                "the conjugate transpose on ranks: take matrix.rmatvec, or matrix.T and conjugate x and y"
            )
        return self.T

    def __repr__(self) -> str:
        return f"<spmv.GroupMatrix: {self.shape[0]} x {self.shape[1]}, {self._type}, on {self._group._words()}>"

    def __reduce__(self) -> Any:
        raise TypeError("a matrix on ranks cannot be pickled or copied: make one where it is needed")


_NUMPY = {"f64": "float64", "f32": "float32", "c128": "complex128", "c64": "complex64"}


# ---------------------------------------------------------------- solvers


class GroupSolver(_Base):  # type: ignore[misc, valid-type]
    """A solver for A x = b on the ranks of a group, made by ``Group.solver``: as ``Solver``.

    Examples
    --------
    >>> import numpy as np, spmv
    >>> with spmv.Group(ranks=2) as group:
    ...     solver = group.solver(spmv.generate("poisson2d:50"), "amg")
    ...     [solver.solve(b).converged for b in (np.ones(2500), np.arange(2500.0))]
    [True, True]
    """

    def __init__(
        self,
        group: Group,
        A: Any,
        preconditioner: Any = "auto",
        solver: str = "auto",
        *,
        rtol: float = 1e-8,
        atol: float = 0.0,
        maxiter: int | None = None,
        restart: int | None = None,
        dtype: Any = None,
        check_symmetry: bool = True,
        rung: str = "auto",
        options: dict[str, Any] | None = None,
        coordinates: Any = None,
        exchange: str = "auto",
        shape: tuple[int, int] | None = None,
        precond: Any = None,
        vectors: int = 1,
        inner: bool = False,
    ) -> None:
        ranks = group._open()
        preconditioner = one_preconditioner(preconditioner, precond)
        if not isinstance(preconditioner, str):
            raise NotImplementedError(
                "on ranks a preconditioner is a name: an operator would need all of r in each iteration"
            )
        if vectors != 1:
            raise NotImplementedError(
                "several right-hand sides at once are not solved on ranks: leave vectors out, and solve(B) takes the "
                "columns of B one after the other, with one set-up"
            )
        if inner:
            raise NotImplementedError(
                "inner iterations in float32 are not done on ranks: take dtype float32 and a larger rtol, or float64"
            )
        given = options_given(options)
        at = None
        if coordinates is not None:
            if preconditioner not in ("auto", "amg"):
                raise ValueError("coordinates are for the preconditioners 'amg' and 'auto'")
            at = host_coordinates(coordinates, ranks.contexts[0])
        if not isinstance(A, GroupMatrix):
            block = _rows_of_a_node(given["block"], at, A, shape)
            A = group.matrix(A, dtype, block=block, exchange=exchange, shape=shape)
        elif A.group is not group:
            raise ValueError("the matrix belongs to another group")
        check_square(A.shape)
        self._group, self._matrix = group, A
        super().__init__(A._type, A.shape)
        self._settings = dict(
            preconditioner=preconditioner, solver=solver, rtol=rtol, atol=atol, maxiter=maxiter, restart=restart,
            check_symmetry=check_symmetry, rung=rung, options=options, coordinates=coordinates,
        )  # fmt: skip
        args = (
            *settings(solver, preconditioner, rung, A._type, 1, False, rtol, atol, maxiter, restart, check_symmetry),
            option_numbers(given),
        )
        near = self._shared_vectors(ranks, given["near_null"])
        places = self._shared_coordinates(ranks, at)

        def prepare(r: int) -> tuple[tuple[Any, ...], Any]:
            at_r = None if places is None else places[r]
            if near is None:
                return (*args, *addresses(None, at_r)), args
            part, seen = _Part(ranks.contexts[r], near[r]), view(near[r], "near_null")
            seen.address = part.address
            return (*args, *addresses(seen, at_r)), (args, part)

        self._handles = ranks.together(A._groups, prepare, lambda r, made: _core.group_solver(A._handles[r], *made))
        self._turned: GroupSolver | None = None

    def _shared_vectors(self, ranks: Any, array: Any) -> list[np.ndarray] | None:
        """The rows of near_null of each rank of this process."""

        def prepare() -> np.ndarray | None:
            if array is None:
                return None
            v, _ = _on_host(array, "near_null", self._matrix._type)
            if v.ndim not in (1, 2):
                raise ValueError(f"near_null has the shape {v.shape}, the matrix has {self.shape[0]} rows")
            return v

        v = ranks.prepared(prepare)
        if v is None:
            return None
        if (n := ranks.total(len(v))) != self.shape[0]:
            raise ValueError(f"near_null has {n} rows, the matrix has {self.shape[0]}")
        return ranks.spread(v, self._matrix._rows)

    def _shared_coordinates(self, ranks: Any, at: np.ndarray | None) -> list[np.ndarray] | None:
        """The coordinates of the nodes of each rank of this process."""
        if at is None:
            return None
        nodes, rows = ranks.total(len(at)), self.shape[0]
        if nodes == 0 or rows % nodes != 0:
            raise ValueError(f"coordinates have {nodes} nodes, the matrix has {rows} rows: not as many rows for each node")
        each = rows // nodes
        if any(bound % each for bound in self._matrix._rows):
            raise ValueError(
                f"a node of {each} rows is divided among ranks: make the matrix by group.matrix(A, block={each})"
            )
        return ranks.spread(at, [bound // each for bound in self._matrix._rows])

    def solve(
        self,
        b: Any,
        x0: Any = None,
        *,
        callback: Any = None,
        on_residual: Callable[[int, float], Any] | None = None,
    ) -> Result:
        """Solve A x = b, as ``Solver.solve``.

        b is whole with ranks that are threads; under MPI it is the part of this process, and so is x.
        Several columns are solved one after the other. ``on_residual`` is called by rank 0, in the
        thread that called; it must not use the group. ``callback`` is not supported.
        """
        if callback is not None:
            raise NotImplementedError("callback needs all of x in each iteration, which no rank has: on_residual works")
        ranks = self._group._open()
        dtype, expected = self._matrix._type, self._matrix._given_rows

        def prepare() -> tuple[np.ndarray, View, np.ndarray]:
            array, given = _on_host(b, "b", dtype)
            if array.ndim not in (1, 2) or (expected is not None and len(array) != expected):
                of_matrix = self.shape[0] if expected is None else expected
                raise ValueError(f"b has the shape {array.shape}, the matrix has {of_matrix} rows")
            if array.ndim == 2 and array.shape[1] == 0:
                raise ValueError("b has no columns")
            check_finite(view(array, "b"), "b")
            if x0 is None:
                return array, given, np.zeros(array.shape, dtype)
            start, _ = _on_host(x0, "x0", dtype)
            if start.shape != array.shape and start.size != array.size:
                raise ValueError(f"x0 has the shape {start.shape}, b has {array.shape}")
            check_finite(view(start, "x0"), "x0")
            return array, given, np.array(start.reshape(array.shape))

        array, given, x = ranks.prepared(prepare)
        if (n := ranks.total(len(array))) != self.shape[0]:
            raise ValueError(f"b has {n} rows, the matrix has {self.shape[0]}")
        if array.ndim == 1:
            status, message, rows = self._solve_one(ranks, array, x, on_residual)
            return result_of(_as_given(x, given), status, message, rows)
        status, message, rows = "SPMV_OK", "", []
        for column in range(array.shape[1]):
            of_x = np.ascontiguousarray(x[:, column])
            if status != "SPMV_CANCELLED":
                one, text, row = self._solve_one(ranks, np.ascontiguousarray(array[:, column]), of_x, on_residual)
                x[:, column] = of_x
            else:
                one, text, row = status, message, [{**rows[-1], "status": status, "iterations": 0, "true_residual": np.nan}]
            rows += row
            if one != "SPMV_OK" and (status == "SPMV_OK" or one == "SPMV_CANCELLED"):
                status, message = one, f"column {column} of b (counted from 0): {text}"
        return result_of(_as_given(x, given), status, message, rows)

    def _solve_one(
        self, ranks: Any, b: np.ndarray, x: np.ndarray, on_residual: Any
    ) -> tuple[str, str, list[dict[str, Any]]]:
        bounds = self._matrix._rows
        bs, xs = ranks.spread(b, bounds), ranks.spread(x, bounds)

        def prepare(r: int) -> tuple[_Part, _Part]:
            return _Part(ranks.contexts[r], bs[r]), _Part(ranks.contexts[r], xs[r])

        def enter(r: int, parts: tuple[_Part, _Part]) -> Any:
            tell = on_residual if r == 0 else None
            answer = _core.group_solve(self._handles[r], parts[0].address, parts[1].address, tell)
            parts[1].fetch()
            return answer

        answers = ranks.together(self._matrix._groups, prepare, enter)
        ranks.gather(xs, bounds, x)
        return answers[0]

    def __matmul__(self, b: Any) -> Any:
        if isinstance(b, _Base):
            return super().__matmul__(b)  # type: ignore[misc]
        return solved(self.solve(b))

    def _matvec(self, b: Any) -> Any:
        return solved(self.solve(b))

    _matmat = _matvec

    def _rmatvec(self, b: Any) -> Any:
        if self._turned is None:
            self._turned = GroupSolver(self._group, self._matrix.T, **self._settings)  # type: ignore[arg-type]
        if self.dtype.kind == "c":
            return np.conj(solved(self._turned.solve(np.conj(b))))
        return solved(self._turned.solve(b))

    _rmatmat = _rmatvec

    def update_values(self, values: Any) -> None:
        """Replace the values of the matrix, as ``GroupMatrix.update_values``, and make the set-up again now."""
        self._turned = None
        self._matrix._update(values, lambda r, address: _core.group_solver_update(self._handles[r], address))

    @property
    def matrix(self) -> GroupMatrix:
        """The matrix on the ranks."""
        return self._matrix

    def __repr__(self) -> str:
        return f"<spmv.GroupSolver: {self.shape[0]} rows, {self.dtype}, on {self._group._words()}>"

    def __reduce__(self) -> Any:
        raise TypeError("a solver cannot be pickled or copied: make one where it is needed")


def _rows_of_a_node(block: int, coordinates: np.ndarray | None, A: Any, shape: Any) -> int:
    """The rows of a node for the cut of the matrix; 0: the library finds them."""
    if coordinates is not None:
        rows = (shape if isinstance(A, tuple) else A.shape)[0]  # under MPI both are of this process
        if len(coordinates) == 0 or rows % len(coordinates) != 0:
            return 0
        return rows // len(coordinates) if rows // len(coordinates) <= _MOST_NODE else 0
    return int(block) if 1 <= block <= _MOST_NODE else 0


# ---------------------------------------------------------------- groups


class Group:
    """Several ranks that share matrices: GPUs or threads of this process, or processes of MPI.

    With threads and GPUs this process has all ranks, and vectors are whole, as on one device: pass
    arrays and get arrays. Under MPI each process gives its own rows and its part of vectors, and
    gets its part of results; all processes call the same methods in the same order. Products and
    solves have the same bits for any number of ranks (``docs/distributed.md`` says which).

    Parameters
    ----------
    ranks : int, optional
        Threads of this process; they share its cores, or with ``device="cuda"`` one GPU.
    gpus : int, list or str, optional
        How many GPUs, from number 0 on; their numbers (or devices of CuPy); or ``"all"``. Each has a
        rank, or with more ``ranks``, in turn.
    comm : mpi4py.MPI.Comm, optional
        ``MPI.COMM_WORLD``: each process that mpirun has started is a rank. This needs the library's
        module for that MPI; ``SPMV_MODULE_PATH`` names a folder with it.
    device : str, optional
        ``"cpu"``, ``"cuda"``, ``"cuda:1"``, ``"cuda:all"`` or ``"ref"``. Default: the GPUs if ``gpus`` is
        given, else ``"cpu"``. With ``comm`` and ``"cuda"`` a process takes the GPU of its number on the
        host.
    threads : int, optional
        OpenMP threads: of all ranks of this process together. Default: what OpenMP offers; the
        processes of a host share its cores.

    Examples
    --------
    >>> import numpy as np, spmv
    >>> A = spmv.generate("poisson2d:40")
    >>> with spmv.Group(ranks=4) as group:
    ...     four = group.solve(A, np.ones(1600), precond="amg", rtol=1e-10)
    >>> with spmv.Group(ranks=1) as group:
    ...     one = group.solve(A, np.ones(1600), precond="amg", rtol=1e-10)
    >>> four.converged, bool((four.x == one.x).all())
    (True, True)
    """

    def __init__(
        self, ranks: int | None = None, *, gpus: Any = None, comm: Any = None, device: Any = "auto", threads: int = 0
    ) -> None:
        threads = whole(threads, "threads", 0)
        if comm is not None:
            if ranks is not None or gpus is not None:
                raise TypeError("comm says how many ranks there are: leave out ranks and gpus")
            self._ranks: Any = _open_processes(comm, device, threads)
        else:
            self._ranks = _open_threads(ranks, gpus, device, threads)

    def _open(self) -> Any:
        if self._ranks is None:
            raise ValueError("the group is closed")
        return self._ranks

    def _words(self) -> str:
        if self._ranks is None:
            return "a closed group"
        return f"{self._ranks.size} ranks ({self._ranks.transport}), {self._ranks.contexts[0].device}"

    def close(self) -> None:
        """Release the ranks. Matrices and solvers of the group cannot be used any more."""
        if self._ranks is not None:
            self._ranks.close()
            self._ranks = None

    def __enter__(self) -> Group:
        self._open()
        return self

    def __exit__(self, *failure: Any) -> None:
        self.close()

    @property
    def size(self) -> int:
        """The number of ranks."""
        return int(self._open().size)

    @property
    def rank(self) -> int:
        """The number of this process among those of MPI, from 0; 0 if the ranks are threads."""
        return int(self._open().rank)

    @property
    def transport(self) -> str:
        """``"threads"`` or ``"mpi"``."""
        return str(self._open().transport)

    @property
    def devices(self) -> list[str]:
        """The devices of the ranks of this process."""
        return [c.device for c in self._open().contexts]

    def matrix(
        self, A: Any, dtype: Any = None, *, block: int = 0, exchange: str = "auto", shape: tuple[int, int] | None = None
    ) -> GroupMatrix:
        """Divide a matrix among the ranks.

        Parameters
        ----------
        A : matrix
            As for ``Plan``. Under MPI: the rows of this process, with the columns of the whole matrix;
            those of rank 0 come first.
        dtype : numpy.dtype, optional
            The type of vectors and sums, as for ``Plan``.
        block : int, optional
            Rows of a node, which stay on one rank. Default: found from the pattern.
        exchange : str, optional
            On GPUs: ``"peer"``, ``"nccl"`` or ``"host"``.
        """
        ranks = self._open()
        rows_of_node, name = whole(block, "block", 0, _MOST_NODE), None if exchange == "auto" else str(exchange)

        def prepare() -> tuple[Taken, np.dtype]:
            data, indices, indptr, of, kind = arrays_of(A, shape)
            named = ((data, "data"), (indices, "indices"), (indptr, "indptr"))
            arrays = [_on_host(a, n, view(a, n).dtype)[0] for a, n in named]
            matrix, dtype_of_x, _ = take(tuple(arrays), lambda where: context_of("cpu"), of, dtype)
            check_values(matrix)
            return matrix, dtype_of_x

        matrix, of_x = ranks.prepared(prepare)
        groups = ranks.handles()
        cuts = [matrix.shape[0] * r // len(groups) for r in range(len(groups) + 1)]
        parts = [_rows_of(matrix, a, b) for a, b in zip(cuts, cuts[1:])]
        made = ranks.together(
            groups, _nothing, lambda r, _: _core.group_matrix(groups[r], parts[r][0], CODES[of_x], rows_of_node, name)
        )
        divided = GroupMatrix(self, groups, made)
        divided._gave(matrix.shape[0], matrix.data.dtype, (part[0][2] for part in parts))
        return divided

    def read(self, path: Any, dtype: Any = None, *, exchange: str = "auto") -> GroupMatrix:
        """Read a matrix from a file, as ``spmv.read``: each rank reads a part, and none has the whole matrix.

        Under MPI vectors are divided as the caller likes: their parts only have to be in the order of
        ranks, and those of b, x and y of the same length.
        """
        ranks, name = self._open(), os.fsencode(os.fspath(path))
        groups, of = ranks.handles(), _type(dtype)
        exchanged = None if exchange == "auto" else str(exchange)
        made = ranks.together(groups, _nothing, lambda r, _: _core.group_read(groups[r], name, of, of, 0, exchanged))
        return GroupMatrix(self, groups, made)

    def generate(self, spec: str, dtype: Any = None, *, exchange: str = "auto") -> GroupMatrix:
        """Generate a matrix, as ``spmv.generate``: each rank makes its rows, and none has the whole matrix."""
        ranks, of = self._open(), _type(dtype)
        groups, exchanged = ranks.handles(), None if exchange == "auto" else str(exchange)
        here = ranks.rank

        def prepare() -> list[Any]:
            return [
                _core.group_generate(context._handle, str(spec), of, here + r, ranks.size)
                for r, context in enumerate(ranks.contexts)
            ]

        parts = ranks.prepared(prepare)
        views = [_core.matrix_view(part) for part in parts]
        made = ranks.together(groups, _nothing, lambda r, _: _core.group_matrix(groups[r], views[r], of, 0, exchanged))
        divided = GroupMatrix(self, groups, made)
        divided._gave(sum(v[0] for v in views), DTYPES[views[0][7]], (v[2] for v in views))
        return divided

    def solver(self, A: Any, preconditioner: Any = "auto", solver: str = "auto", **options: Any) -> GroupSolver:
        """A solver for A x = b that keeps its set-up, with the arguments of ``Solver``.

        A is a matrix as for ``matrix``, or one that is divided already. ``vectors``, ``inner`` and
        preconditioners that are no names are not supported on ranks.
        """
        return GroupSolver(self, A, preconditioner, solver, **options)

    def solve(self, A: Any, b: Any, x0: Any = None, **options: Any) -> Result:
        """Solve A x = b once; the options are those of ``solver`` and of ``GroupSolver.solve``, as ``spmv.solve``.

        Examples
        --------
        >>> import numpy as np, spmv
        >>> with spmv.Group(ranks=3) as group:
        ...     group.solve(spmv.generate("convdiff2d:20,5"), np.ones(400)).solver
        'gmres'
        """
        calls = {name: options.pop(name) for name in ("callback", "on_residual") if name in options}
        if options.get("dtype") is None and not isinstance(A, GroupMatrix):
            options["dtype"] = common_type(A, b)
        return self.solver(A, **options).solve(b, x0, **calls)

    def __repr__(self) -> str:
        return f"<spmv.Group: {self._words()}>"

    def __reduce__(self) -> Any:
        raise TypeError("a group cannot be pickled or copied: make one where it is needed")


def _rows_of(matrix: Taken, begin: int, end: int) -> tuple[Any, ...]:
    """The rows of a matrix in host memory as the library takes them, and what keeps them alive."""
    offsets = as_numpy(matrix.indptr)[begin : end + 1]
    first, count = int(offsets[0]), int(offsets[-1] - offsets[0])
    own = offsets if first == 0 else offsets - offsets[0]
    return (
        (
            end - begin,
            matrix.shape[1],
            count,
            own.ctypes.data,
            8 * own.dtype.itemsize,
            matrix.indices.address + first * matrix.indices.dtype.itemsize if count else 0,
            matrix.data.address + first * matrix.data.dtype.itemsize if count else 0,
            CODES[matrix.data.dtype],
            HOST_MEMORY,
        ),
        own,
    )


_all_gpus: Group | None = None


def group_of(device: Any) -> Group | None:
    """The group that the argument device names; None: no group."""
    global _all_gpus
    if isinstance(device, Group):
        return device
    if not isinstance(device, str) or device != "cuda:all":
        return None
    if _all_gpus is None or _all_gpus._ranks is None:
        _all_gpus = Group(gpus="all")
    return _all_gpus

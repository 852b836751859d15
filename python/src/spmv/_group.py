# SPDX-License-Identifier: BSD-3-Clause
"""Groups of ranks: one matrix on several GPUs, or shared by threads or by processes of MPI.

Here: the group itself. Its ranks are in _group_ranks.py, its matrices in _group_matrix.py, its solvers in
_group_solver.py.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from . import _core
from ._arrays import as_numpy, view, whole
from ._context import CODES, DTYPES, context_of
from ._files import _type
from ._group_matrix import MOST_NODE, GroupMatrix
from ._group_ranks import nothing, on_host, open_processes, open_threads
from ._group_solver import GroupSolver
from ._matrix import HOST_MEMORY, Taken, arrays_of, check_values, take
from ._solve import Result, common_type


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
            self._ranks: Any = open_processes(comm, device, threads)
        else:
            self._ranks = open_threads(ranks, gpus, device, threads)

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
            As for ``Plan``, also of 2**31 columns and more. Under MPI: the rows of this process, with the
            columns of the whole matrix; those of rank 0 come first.
        dtype : numpy.dtype, optional
            The type of vectors and sums, as for ``Plan``.
        block : int, optional
            Rows of a node, which stay on one rank. Default: found from the pattern.
        exchange : str, optional
            On GPUs: ``"peer"``, ``"nccl"`` or ``"host"``.
        """
        ranks = self._open()
        rows_of_node, name = whole(block, "block", 0, MOST_NODE), None if exchange == "auto" else str(exchange)

        def prepare() -> tuple[Taken, np.dtype]:
            data, indices, indptr, of, kind = arrays_of(A, shape)
            named = ((data, "data"), (indices, "indices"), (indptr, "indptr"))
            arrays = [on_host(a, n, view(a, n).dtype)[0] for a, n in named]
            matrix, dtype_of_x, _ = take(tuple(arrays), lambda where: context_of("cpu"), of, dtype, wide=True)
            check_values(matrix)
            return matrix, dtype_of_x

        matrix, of_x = ranks.prepared(prepare)
        groups = ranks.handles()
        cuts = [matrix.shape[0] * r // len(groups) for r in range(len(groups) + 1)]
        parts = [_rows_of(matrix, a, b) for a, b in zip(cuts, cuts[1:])]
        rest = (CODES[of_x], rows_of_node, name, matrix.indices.dtype == np.int64)
        made = ranks.together(groups, nothing, lambda r, _: _core.group_matrix(groups[r], parts[r][0], *rest))
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
        made = ranks.together(groups, nothing, lambda r, _: _core.group_read(groups[r], name, of, of, 0, exchanged))
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
        rest = (of, 0, exchanged, False)
        made = ranks.together(groups, nothing, lambda r, _: _core.group_matrix(groups[r], views[r], *rest))
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

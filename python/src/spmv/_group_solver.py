# SPDX-License-Identifier: BSD-3-Clause
"""Solvers of the matrices of a group."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable

import numpy as np

from . import _core
from ._arrays import View, check_finite, view
from ._group_matrix import MOST_NODE, GroupMatrix
from ._group_ranks import Part, as_given, on_host
from ._plan import _Base
from ._solve import (
    Result,
    addresses,
    check_square,
    host_coordinates,
    null_block,
    one_preconditioner,
    option_numbers,
    options_given,
    result_of,
    settings,
    solved,
    with_block,
)

if TYPE_CHECKING:
    from ._group import Group


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
        null: Any = None,
        exchange: str = "auto",
        shape: tuple[int, int] | None = None,
        precond: Any = None,
        vectors: int = 1,
        inner: bool = False,
        estimate_error: bool = True,
        accuracy: int = 0,
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
        options = options if coordinates is not None else with_block(options, A, preconditioner)
        given = options_given(options)
        block_of_null = null_block(null)
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
            estimate_error=estimate_error, accuracy=accuracy,
        )  # fmt: skip
        args = (
            *settings(
                solver, preconditioner, rung, A._type, 1, False, rtol, atol, maxiter, restart, check_symmetry, 0,
                estimate_error, accuracy,
            ),
            option_numbers(given),
        )
        near = self._shared_vectors(ranks, given["near_null"], "near_null")
        nulls = self._shared_vectors(ranks, None if block_of_null else null, "null")
        places = self._shared_coordinates(ranks, at)

        def prepare(r: int) -> tuple[tuple[Any, ...], Any]:
            at_r = None if places is None else places[r]
            of_near, near_r = self._part_of(ranks, near, r)
            of_null, null_r = self._part_of(ranks, nulls, r)
            return (*args, *addresses(near_r, at_r, null_r, block_of_null)), (args, of_near, of_null)

        self._handles = ranks.together(A._groups, prepare, lambda r, made: _core.group_solver(A._handles[r], *made))
        self._turned: GroupSolver | None = None

    @staticmethod
    def _part_of(ranks: Any, vectors: list[np.ndarray] | None, r: int) -> tuple[Part | None, View | None]:
        """The vectors of a rank in its memory."""
        if vectors is None:
            return None, None
        part, seen = Part(ranks.contexts[r], vectors[r]), view(vectors[r], "vectors")
        seen.address = part.address
        return part, seen

    def _shared_vectors(self, ranks: Any, array: Any, name: str) -> list[np.ndarray] | None:
        """The rows of these vectors of each rank of this process."""

        def prepare() -> np.ndarray | None:
            if array is None:
                return None
            v, _ = on_host(array, name, self._matrix._type)
            if v.ndim not in (1, 2):
                raise ValueError(f"{name} has the shape {v.shape}, the matrix has {self.shape[0]} rows")
            return v

        v = ranks.prepared(prepare)
        if v is None:
            return None
        if (n := ranks.total(len(v))) != self.shape[0]:
            raise ValueError(f"{name} has {n} rows, the matrix has {self.shape[0]}")
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
            array, given = on_host(b, "b", dtype)
            if array.ndim not in (1, 2) or (expected is not None and len(array) != expected):
                of_matrix = self.shape[0] if expected is None else expected
                raise ValueError(f"b has the shape {array.shape}, the matrix has {of_matrix} rows")
            if array.ndim == 2 and array.shape[1] == 0:
                raise ValueError("b has no columns")
            check_finite(view(array, "b"), "b")
            if x0 is None:
                return array, given, np.zeros(array.shape, dtype)
            start, _ = on_host(x0, "x0", dtype)
            if start.shape != array.shape and start.size != array.size:
                raise ValueError(f"x0 has the shape {start.shape}, b has {array.shape}")
            check_finite(view(start, "x0"), "x0")
            return array, given, np.array(start.reshape(array.shape))

        array, given, x = ranks.prepared(prepare)
        if (n := ranks.total(len(array))) != self.shape[0]:
            raise ValueError(f"b has {n} rows, the matrix has {self.shape[0]}")
        if array.ndim == 1:
            status, message, rows = self._solve_one(ranks, array, x, on_residual)
            return result_of(as_given(x, given), status, message, rows)
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
        return result_of(as_given(x, given), status, message, rows)

    def _solve_one(
        self, ranks: Any, b: np.ndarray, x: np.ndarray, on_residual: Any
    ) -> tuple[str, str, list[dict[str, Any]]]:
        bounds = self._matrix._rows
        bs, xs = ranks.spread(b, bounds), ranks.spread(x, bounds)

        def prepare(r: int) -> tuple[Part, Part]:
            return Part(ranks.contexts[r], bs[r]), Part(ranks.contexts[r], xs[r])

        def enter(r: int, parts: tuple[Part, Part]) -> Any:
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
        return rows // len(coordinates) if rows // len(coordinates) <= MOST_NODE else 0
    return int(block) if 1 <= block <= MOST_NODE else 0

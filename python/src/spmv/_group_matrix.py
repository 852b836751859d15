# SPDX-License-Identifier: BSD-3-Clause
"""Matrices whose rows belong to the ranks of a group."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Iterable

import numpy as np

from . import _core
from ._arrays import View, check_finite, view
from ._group_ranks import Part, as_given, nothing, on_host
from ._plan import _Base

if TYPE_CHECKING:
    from ._group import Group

MOST_NODE = 8  # rows of a node, for the cut of a matrix


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
            array, given = on_host(x, "x", self._type)
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
        return as_given(y, given)

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

        def prepare(r: int) -> tuple[Part, Part]:
            return Part(ranks.contexts[r], xs[r]), Part(ranks.contexts[r], ys[r], upload=False)

        def enter(r: int, parts: tuple[Part, Part]) -> None:
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
            handles = ranks.together(self._groups, nothing, lambda r, _: _core.group_transpose(self._handles[r]))
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
            array, _ = on_host(values, "values", of)
            if array.shape != (self._entries[-1],):
                raise ValueError(f"values has the shape {array.shape}, the matrix has {self._entries[-1]} entries")
            check_finite(view(array, "values"), "values")
            return array

        array = ranks.prepared(prepare)
        self._turned = None
        starts = [array.ctypes.data + first * array.itemsize for first in self._entries]
        ranks.together(self._groups, nothing, lambda r, _: call(r, starts[r]))

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

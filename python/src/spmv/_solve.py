# SPDX-License-Identifier: BSD-3-Clause
"""Solvers for A x = b."""

from __future__ import annotations

import math
import sys
import threading
import warnings
from dataclasses import dataclass, field, fields
from typing import Any, Callable, NamedTuple

import numpy as np

from . import _core
from ._arrays import (
    Borrowed,
    View,
    as_numpy,
    check_finite,
    copied,
    empty,
    fill,
    finished,
    number,
    on_device,
    raise_not_finite,
    taken,
    view,
    whole,
)
from ._context import CODES, FLOATING, Context, context_of
from ._matrix import CONTEXT_MEMORY, HOST_MEMORY, check_values, downloaded, host_arrays, take
from ._plan import Plan, _Base, _writable


class AccuracyWarning(UserWarning):
    """x may have few right digits, though its residual is small."""


class SlogDet(NamedTuple):
    """Sign and logarithm of a determinant, as ``numpy.linalg.slogdet`` returns."""

    sign: Any
    logabsdet: Any


class Inertia(NamedTuple):
    """The numbers of eigenvalues above 0, below 0 and 0 to rounding."""

    positive: int
    negative: int
    zero: int


@dataclass(frozen=True)
class Result:
    """The outcome of a solve, of one right-hand side.

    ``true_residual`` is the norm of b - A x, computed for the x returned. ``converged`` means that
    it is within ``tolerance``, and that no row of b - A x is large beside the row's own numbers; the
    residual of the recurrence does not count. ``backward_error`` is the largest component-wise
    backward error of a row, or an upper bound of it that is small enough, and ``backward_row`` that
    row, from 0 (negative: not computed). ``null_vectors`` is the number of known null vectors of A, and
    ``null_part`` the norm of the part of b along them, which no x reaches (negative: not computed).
    With ``recycle``, ``recycled`` vectors made the start (0: x0 is it), whose residual has the norm
    ``start_residual``; that of x0 has ``given_residual`` (negative: not computed).
    ``forward_error`` is an estimate of norm(x - exact) / norm(x); of several right-hand sides one number
    for all, about the largest (negative: not estimated). Above 5e-4, a solve warns.
    """

    x: Any = field(repr=False)
    converged: bool
    status: str
    message: str
    iterations: int
    true_residual: float
    tolerance: float
    recurrence_residual: float
    norm_b: float
    restarts: int
    solver: str
    rung: str
    why_rung: str
    preconditioner: str
    why_preconditioner: str
    setup_seconds: float
    solve_seconds: float
    backward_error: float
    backward_row: int
    null_vectors: int
    null_part: float
    recycled: int
    given_residual: float
    start_residual: float
    forward_error: float
    columns: tuple[dict[str, Any], ...] = field(default=(), repr=False)  # with several right-hand sides

    @property
    def precond(self) -> str:
        """Another name of ``preconditioner``, that of the program and the C library."""
        return self.preconditioner

    @property
    def method(self) -> str:
        """The old name of ``solver``, until 0.11."""
        return self.solver


def result_of(x: Any, status: str, message: str, rows: list[dict[str, Any]]) -> Result:
    several = len(rows) > 1
    row = dict(max(rows, key=lambda r: (r["status"] != "SPMV_OK", r["true_residual"])) if several else rows[0])
    row["status"] = status
    converged = status == "SPMV_OK"
    columns = tuple({**r, "method": r["solver"]} for r in rows) if several else ()  # method: the old name
    row.pop("method", None)
    if converged and row["forward_error"] > 5e-4:
        warnings.warn(
            "x may have fewer than three right digits, though b - A x is within the tolerance: its estimated "
            f"relative error is {row['forward_error']:.1g}. A is ill-conditioned; accuracy=3 corrects x",
            AccuracyWarning,
            stacklevel=4,
        )
    row.update(x=x, converged=converged, message=message, columns=columns)
    made = object.__new__(Result)
    made.__dict__.update(row)  # a fifth of the time of __init__, which sets each attribute of a frozen class alone
    return made


def _shown(context: Context, n: int, dtype: np.dtype, like: View, callback: Callable[[Any], Any]) -> Any:
    """The callback of the library for a callback with x. It stops if the latter returns True."""

    def tell(iteration: int, residual: float, address: int) -> bool:
        if iteration == 0:
            return False
        return callback(Borrowed(context, address, (n,), dtype).copy_as(like.kind, context)) is True

    return tell


_OPERATIONS = {"N": 0, "T": 1, "H": 2}  # spmv_operation


class Solver(_Base):  # type: ignore[misc, valid-type]
    """A solver for A x = b with a square A, for many right-hand sides.

    It makes a plan and a preconditioner once. A solver is a ``scipy.sparse.linalg.LinearOperator``
    that multiplies by the inverse of A: ``solver @ b`` is the solution, or a RuntimeError if the
    tolerance is not reached. ``eigsh(A, sigma=0, OPinv=solver)`` and ``cg(B, b, M=solver)`` work.

    Parameters
    ----------
    A : matrix or operator
        As for ``Plan``; or an operator of which only products are known: a ``LinearOperator`` of SciPy, or
        any object with ``matvec(x)``, ``shape`` and ``dtype``. It is called once or twice in each iteration,
        with arrays of the kind of b, and must be linear and the same in each call. Its
        exceptions end the solve and come out as they are. The solvers are ``"cg"``, ``"minres"``,
        ``"gmres"``, ``"bicgstab"`` and ``"cocg"``; ``"auto"`` finds by three products whether A is
        symmetric. The preconditioner is none (``"auto"`` means that) or an operator: others need entries.
    preconditioner : str, operator, matrix, function or Solver, optional
        ``"auto"`` (the default), ``"none"``, ``"jacobi"``, ``"block-jacobi"``, ``"chebyshev"``,
        ``"ic0"``, ``"cholesky"``, ``"fsai"``, ``"isai"`` or ``"amg"``; for systems of two fields
        ``"schur"``; for matrices that are not symmetric also ``"ilu0"`` and ``"ilut"``. Or an approximation M of the inverse of A: anything that multiplies with
        ``@`` or as a function, called in each iteration. With the solvers cg and minres, M must be
        symmetric (Hermitian) positive definite and the same in each iteration, and with bicgstab
        the same in each iteration. Only gmres allows an M that changes, such as another iterative
        solver. A solver as M need not reach its tolerance.
    solver : str, optional
        ``"auto"`` (the default), ``"cg"``, ``"minres"``, ``"gmres"``, ``"bicgstab"``, ``"cocg"`` (complex
        symmetric matrices), ``"direct"``, or ``"direct:cholmod"`` and so on for one library.
    rtol, atol : float, optional
        The solve ends when ``norm(b - A x) <= max(rtol * norm(b), atol)``. Default 1e-8 and 0.
    maxiter : int, optional
        From 1. Default: 10 times the rows, at least 100.
    restart : int, optional
        Steps of a cycle of GMRES, at most 200. Default 50.
    dtype : numpy.dtype, optional
        float64, float32, complex128 or complex64, as for ``Plan``. Default: that of the matrix; a b
        of a type with more digits, or a complex one, is then solved in that type, by another solver
        that is made on first use.
    vectors : int, optional
        Right-hand sides that are solved at once; default 1. ``solve`` takes any number of them.
    inner : bool, optional
        True: iterate in float32 and correct x in float64.
    check_symmetry : bool, optional
        False: do not sample whether A is symmetric.
    rung : str, optional
        How conjugate gradients runs; default ``"auto"``.
    options : dict, optional
        Of the preconditioner (``docs/preconditioners.md``):
        ``block`` (block-jacobi: rows of a block; amg: rows of a node; default: the blocks of a BSR matrix of
        SciPy), ``degree`` (chebyshev, amg, fsai, isai),
        ``steps``, ``lowest``, ``highest`` (chebyshev), ``shift`` (ic0), ``strength``, ``smoother``
        (amg), ``drop`` (ilut), ``fill`` (ilut, cholesky), ``update_values`` (amg: True: new values
        keep the aggregates and patterns, which is quicker than to make it again), and ``near_null``
        (amg): an array with a row for each row of A and up to 8 columns v with A v near 0.
    coordinates : array, optional
        For elasticity: a row for each node, with its 2 or 3 coordinates. ``"amg"`` makes the rigid
        body modes from them, in place of the option ``near_null``, and ``"auto"`` takes ``"amg"``.
        The rows of A are numbered node by node: 2 displacements for each node, or these and a
        rotation; in space 3, or these and 3 rotations.
    null : "ones", int or array, optional
        Null vectors v of a singular A, A v = 0: an array with a row for each row of A and up to 64
        columns; ``"ones"``; or the number of unknowns of a node, each of which is constant in one of
        the vectors. They need not be orthonormal. A vector that is none is a ValueError. The part of b
        along them (``null_part``) is split off; x has no part along them, so its norm is the smallest.
        Constants on the connected parts of a symmetric matrix whose rows sum to 0 are found. Not with
        ``"direct"``.
    recycle : int, optional
        For right-hand sides that follow each other, such as time steps: the last solutions, at most so
        many, up to 64, span a space in which each solve looks for its start. 8 is a good number. The
        result tells what that gained. Default 0: none.
    estimate_error : bool, optional
        True (the default): a solve estimates the error of its x, ``forward_error`` in the result, by a rough
        solve for the error itself, and warns (``AccuracyWarning``) where x may have fewer than three right
        digits. It takes some 10 % of the time. False: it does not.
    accuracy : int, optional
        Decimal digits of x that are wanted, up to 15, with float32 up to 6: x is corrected until its estimated
        error is so small, by residuals in twice the precision and, with the solver and the preconditioner
        ``"auto"``, by ``"direct"``. If nothing helps, ``converged`` is False and the status
        ``SPMV_ERROR_ACCURACY``. Default 0: the residual decides alone.
    fields : array of int, optional
        Systems of two fields, such as velocity and pressure: the field of each row, 1 or 2 (or 0 and 1), for
        the preconditioner ``"schur"``, which ``"auto"`` then takes. Default: the second field are the rows
        whose diagonal entry is 0 or absent, or has another sign than the others.
    schur : matrix or str, optional
        For ``"schur"``: a positive definite matrix in the place of the Schur complement, such as the mass matrix
        of the pressure over the viscosity, with a row for each row of the second field; or a form of it:
        ``"diagonal"``, ``"simple"`` or ``"commutator"`` (``docs/preconditioners.md``). Default: the best form.
    device, shape, copy
        As for ``Plan``.
    precond
        Another name of ``preconditioner``, that of the program and the C library.
    method, mixed
        The old names of ``solver`` and ``inner``, until 0.11.

    Examples
    --------
    >>> import numpy as np, spmv
    >>> A = spmv.generate("poisson2d:30")
    >>> solver = spmv.Solver(A, preconditioner="jacobi")
    >>> result = solver.solve(A @ np.ones(900))
    >>> result.converged, bool(abs(result.x - 1).max() < 1e-6)
    (True, True)
    >>> (solver @ np.ones((900, 3))).shape
    (900, 3)
    >>> steps, x = spmv.Solver(A, "jacobi", recycle=4), np.zeros(900)
    >>> for t in (0.1, 0.2, 0.3, 0.4):  # b is a polynomial of t of degree 2
    ...     result = steps.solve(A @ np.ones(900) + t * np.arange(900) + t**2, x)
    ...     x = result.x
    >>> result.recycled, result.start_residual < 1e-6 * result.given_residual, result.iterations < 10
    (3, True, True)
    >>> laplacian = [1.0, -1, -1, 2, -1, -1, 1], [0, 1, 0, 1, 2, 1, 2], [0, 2, 5, 7]
    >>> L = tuple(np.array(a) for a in laplacian)  # of a path of three vertices
    >>> result = spmv.Solver(L, shape=(3, 3), null="ones").solve(np.array([1.5, 0.0, -0.5]))
    >>> result.status, result.x.round(3).tolist(), round(result.null_part, 3)  # b has a sum of 1
    ('SPMV_ERROR_INCONSISTENT', [1.056, -0.111, -0.944], 0.577)
    >>> import scipy.sparse as sp
    >>> laplace, B = spmv.generate("poisson2d:8"), sp.diags([1.0, -1.0], offsets=[0, 1], shape=(63, 64))
    >>> K = sp.bmat([[laplace, B.T], [B, None]], format="csr")  # two fields
    >>> result = spmv.Solver(K, "schur").solve(K @ np.ones(127))
    >>> result.solver, bool(abs(result.x - 1).max() < 1e-5)
    ('minres', True)
    >>> class Twice:
    ...     shape, dtype = (4, 4), np.float64
    ...     def matvec(self, x):
    ...         return 2 * x
    >>> spmv.Solver(Twice()).solve(np.ones(4)).x.tolist()
    [0.5, 0.5, 0.5, 0.5]
    """

    def __new__(cls, A: Any = None, *args: Any, **kwargs: Any) -> Any:
        kind = _OperatorSolver if cls is Solver and is_operator(A) else cls
        return object.__new__(kind)

    def __init__(
        self,
        A: Any,
        preconditioner: Any = "auto",
        solver: str = "auto",
        *,
        rtol: float = 1e-8,
        atol: float = 0.0,
        maxiter: int | None = None,
        restart: int | None = None,
        dtype: Any = None,
        vectors: int = 1,
        inner: bool = False,
        check_symmetry: bool = True,
        rung: str = "auto",
        options: dict[str, Any] | None = None,
        coordinates: Any = None,
        null: Any = None,
        recycle: int = 0,
        estimate_error: bool = True,
        accuracy: int = 0,
        fields: Any = None,
        schur: Any = None,
        device: Any = "auto",
        shape: tuple[int, int] | None = None,
        copy: bool = False,
        precond: Any = None,
        method: str | None = None,
        mixed: bool | None = None,
    ) -> None:
        preconditioner = one_preconditioner(preconditioner, precond)
        if method is not None and solver not in ("auto", method):
            raise TypeError("method is the old name of solver: pass solver only")
        solver = solver if method is None else method
        inner = bool(inner if mixed is None else mixed)
        vectors = whole(vectors, "vectors", 1)
        options = options if coordinates is not None else with_block(options, A, preconditioner)
        given = options_given(options)
        matrix, of_b, context = take(A, lambda where: context_of(device, where), shape, dtype, copy)
        check_square(matrix.shape)
        check_values(matrix)
        super().__init__(of_b, matrix.shape)
        self._dtype, self._free_type, self._copy = of_b, dtype is None, copy
        self._matrix, self._context, self._vectors = matrix, context, vectors
        self._settings = dict(
            preconditioner=preconditioner, solver=solver, rtol=rtol, atol=atol, maxiter=maxiter, restart=restart,
            inner=inner, check_symmetry=check_symmetry, rung=rung, options=options,
            coordinates=coordinates, null=null, recycle=recycle, fields=fields, schur=schur,
            estimate_error=estimate_error, accuracy=accuracy,
        )  # fmt: skip
        self._near_null = None if given["near_null"] is None else self._vectors_of(given["near_null"], "near_null")
        self._null_block = null_block(null)
        self._null = None if null is None or self._null_block else self._vectors_of(null, "null")
        self._coordinates = None
        if coordinates is not None:
            if not isinstance(preconditioner, str) or preconditioner not in ("auto", "amg"):
                raise ValueError("coordinates are for the preconditioners 'amg' and 'auto'")
            self._coordinates = self._settings["coordinates"] = host_coordinates(coordinates, context)
        if (fields is not None or schur is not None) and preconditioner not in ("auto", "schur"):
            raise ValueError("fields and schur are for the preconditioner 'schur'")
        self._fields = None
        if fields is not None:
            self._fields = self._settings["fields"] = _host_fields(fields, matrix.shape[0], context)
        self._schur = schur
        if schur is not None and not isinstance(schur, str):
            given_schur, _, _ = take(schur, lambda where: context, None, of_b, copy)
            check_values(given_schur)
            there = given_schur.device != "cpu" or not context.is_cuda
            self._schur = given_schur.tuple(CONTEXT_MEMORY if there else HOST_MEMORY)
            self._given_schur = given_schur  # whose arrays these are
        # kind: of the arrays that an operator as preconditioner gets
        self._calling = calling = threading.local()
        own = None
        if not isinstance(preconditioner, str):
            in_m = np.dtype("float32") if inner else of_b
            own = _wrapped(preconditioner, matrix.shape[0], in_m, lambda: calling.kind, context)
        self._options = option_numbers(given) if options else _DEFAULTS
        name = "none" if own is not None else preconditioner
        self._args = (
            *settings(
                solver, name, rung, of_b, vectors, inner, rtol, atol, maxiter, restart, check_symmetry,
                whole(recycle, "recycle", 0), estimate_error, accuracy,
            ),
            self._options,
        )
        self._own = own
        self._direct = solver.startswith("direct")  # or found by a solve
        self._joins = False  # whether b of several columns may be solved by a solver for several, made on the way
        self._others: dict[Any, Solver] = {}  # made on first use: for other types
        borrow = matrix.device != "cpu" or not context.is_cuda
        self._parts = matrix.tuple(CONTEXT_MEMORY if borrow else HOST_MEMORY)
        self._keep = matrix.keep if borrow else None
        self._handle = self._make()

    def _vectors_of(self, array: Any, name: str) -> View:
        v, _ = taken(array, name, self._dtype, self._context)
        if len(v.shape) not in (1, 2) or v.shape[0] != self.shape[0]:
            raise ValueError(f"{name} has the shape {v.shape}, the matrix has {self.shape[0]} rows")
        return v

    def _make(self) -> Any:
        v, at = self._near_null, self._coordinates
        return _core.solver(
            self._context._handle,
            self._parts,
            (*self._args, *addresses(v, at, self._null, self._null_block, self._fields, self._schur)),
            self._own,
            (self._keep, self._options, self._own),
        )

    def solve(
        self,
        b: Any,
        x0: Any = None,
        *,
        trans: str = "N",
        callback: Callable[[Any], Any] | None = None,
        on_residual: Callable[[int, float], Any] | None = None,
    ) -> Result:
        """Solve A x = b, or with the transpose of A, by the same preconditioner or factors.

        Parameters
        ----------
        b : array
            The right-hand side, or a matrix with one in each column. Columns are solved ``vectors``
            (of the solver) at a time.
        x0 : array, optional
            The start, of the shape of b, which stays as it is; default 0.
        trans : {"N", "T", "H"}, optional
            ``"N"``: A x = b (the default); ``"T"``: A.T x = b; ``"H"``: A.conj().T x = b. As for
            ``scipy.sparse.linalg.SuperLU.solve``. No preconditioner is made a second time: that of A is
            applied transposed. An own preconditioner needs ``.H``, or to be a matrix, unless A is
            symmetric. With ``"T"``, a complex A and ``callback``: NotImplementedError.
        callback : function, optional
            Called with a copy of x after each iteration, for one right-hand side. On a GPU the solver
            then runs its simplest form; ``on_residual`` costs less. It stops the solve by returning
            True.
        on_residual : function, optional
            Called with the iteration and the norm of the residual, for iteration 0 too. It stops the
            solve by returning a true value. Where columns are solved in turn, the iterations of each
            begin at 0.

        Returns
        -------
        Result
            Its x is of the kind of b. If the solver stops early, ``converged`` is False and
            ``message`` says why. With several right-hand sides, ``columns`` has a dictionary for each.
            A b, x0 or A with a NaN is a ValueError. With ``solver="cg"`` or ``"minres"``, a matrix
            that is not symmetric is one too.

        Examples
        --------
        >>> import numpy as np, spmv
        >>> A = spmv.generate("convdiff2d:30,5")
        >>> solver = spmv.Solver(A, preconditioner="ilut")
        >>> x = solver.solve(np.ones(900), trans="T").x
        >>> bool(np.linalg.norm(A.T @ x - 1) <= 1e-8 * 30)
        True
        """
        if trans not in _OPERATIONS:
            raise ValueError(f"trans is {trans!r}: it must be 'N', 'T' or 'H'")
        context, n = self._context, self.shape[0]
        given = view(b, "b", context)
        typed = self._typed(given.dtype)
        if typed is not self:
            return typed.solve(b, x0, trans=trans, callback=callback, on_residual=on_residual)
        if len(given.shape) not in (1, 2) or given.shape[0] != n:
            raise ValueError(f"b has the shape {given.shape}, the matrix has {n} rows")
        start = None if x0 is None else _checked_start(x0, given.shape, self._dtype, context)
        columns = given.shape[1] if len(given.shape) == 2 else 1
        if columns == self._vectors or (columns > 1 and callback is None and self._takes_any_number()):
            return self._solve_at_once(given, start, trans, callback, on_residual)
        if callback is not None:
            raise NotImplementedError(f"callback needs one right-hand side, b has {columns}: on_residual works")
        return self._solve_in_parts(given, start, trans, on_residual)

    def _solve_at_once(self, b: View, start: View | None, trans: str, callback: Any, on_residual: Any) -> Result:
        """b with as many columns as the solver has vectors, or with any number for its factors."""
        context = self._context
        columns = b.shape[1] if len(b.shape) == 2 else 1
        rhs, _ = taken(b, "b", self._dtype, context)
        check_finite(rhs if rhs.on_host else b, "b")
        result, target = _start(start, b, b.shape, self._dtype, context)
        tell = None if callback is None else _shown(context, self.shape[0], self._dtype, b, callback)
        before = getattr(self._calling, "kind", None)
        self._calling.kind = b.kind
        try:
            status, message, rows = _core.solver_solve(
                self._handle, _OPERATIONS[trans], rhs.address, target.address, columns, tell, on_residual
            )
        finally:
            self._calling.kind = before
        if status == "SPMV_ERROR_NOT_FINITE":  # the arrays on a GPU
            for v, name in ((b, "b"), (start, "x0"), (self._values(), "A.data")):
                if v is not None and not v.on_host:
                    raise_not_finite(downloaded(context, v), name)
        self._direct = rows[-1]["solver"] == "direct"
        return result_of(_end(result, target, b, context), status, message, rows)

    def _takes_any_number(self) -> bool:
        """Whether columns are solved at once, whatever their number is: by factors, which take several together."""
        return self._direct

    def _solve_in_parts(self, b: View, start: View | None, trans: str, on_residual: Any) -> Result:
        """b with any number of columns, as many at a time as the solver has vectors, or as those that follow can be."""
        context, n = self._context, self.shape[0]
        flat = len(b.shape) == 1
        whole_b, whole_start = _sliceable(b, "b"), None if start is None else _sliceable(start, "x0")
        columns = 1 if flat else b.shape[1]
        result = empty(view(whole_b, "b"), b.shape, self._dtype, context)
        rows: list[dict[str, Any]] = []
        status, message = "SPMV_OK", ""
        solver, last = self, 0
        while last < columns:
            first, k = last, solver._vectors
            last = min(first + k, columns)
            where = slice(None) if flat else (slice(None), first if k == 1 else slice(first, last))
            parts = [None if a is None else a[where] for a in (whole_b, whole_start)]
            if k > 1 and last - first < k:
                parts = [None if a is None else _filled_up(a, (n, k), self._dtype, context) for a in parts]
            if status == "SPMV_CANCELLED":
                result.array[where] = 0 if parts[1] is None else parts[1]
                rows += [{**rows[-1], "status": status, "iterations": 0, "true_residual": math.nan}] * (last - first)
                continue
            part_start = None if parts[1] is None else view(parts[1], "x0", context)
            part = solver._solve_at_once(view(parts[0], "b", context), part_start, trans, None, on_residual)
            if solver is not self and not part.converged and part.status != "SPMV_CANCELLED":
                solver, last = self, first  # one by one, with all that this solver can try
                continue
            if first == 0 and self._joins:
                solver = self._joined(part, columns - last) or self
            found = part.x if k == 1 or last - first == k else part.x[:, 0 if flat else slice(0, last - first)]
            result.array[where] = found
            rows += [_row(part)] if k == 1 else part.columns[: last - first]
            if not part.converged and (status == "SPMV_OK" or part.status == "SPMV_CANCELLED"):
                name = f"column {first}" if last - first == 1 else f"columns {first} to {last - 1}"
                status, message = part.status, f"{name} of b (counted from 0): {part.message}"
        if not rows:
            raise ValueError("b has no columns")
        x: Any = result.array
        if b.kind == "jax":
            x = sys.modules["jax"].numpy.asarray(x)
        return result_of(x, status, message, rows)

    def _joined(self, first: Result, columns: int) -> Solver | None:
        """A solver for the other columns at once, like the one that has solved the first; None: it would not pay.

        With these preconditioners an iteration of cg reads A once for all columns, where the library finds that quicker.
        """
        pays = first.converged and first.solver == "cg" and first.preconditioner in ("none", "jacobi", "amg")
        if not pays or columns < 3 or not isinstance(self._settings["preconditioner"], str):
            return None
        return self._again(self._source(), dtype=self._dtype, vectors=columns, preconditioner=first.preconditioner)

    def _values(self) -> View | None:
        return self._matrix.data

    def _typed(self, dtype: np.dtype) -> Solver:
        """The solver for a b of this type: this one, or another if b has more digits or is complex."""
        if dtype == self._dtype:
            return self
        wanted = np.result_type(self._dtype, dtype) if dtype.kind in "biufc" else self._dtype
        if not self._free_type or wanted == self._dtype or wanted not in FLOATING:
            return self
        if wanted not in self._others:
            self._others[wanted] = self._again(self._source(), dtype=wanted, vectors=self._vectors)
        return self._others[wanted]

    def _source(self) -> Any:
        """A, for other solvers."""
        m = self._matrix
        return m.data, m.indices, m.indptr

    def _again(self, arrays: Any, **settings: Any) -> Solver:
        """A solver of the same settings for another matrix of the same shape."""
        return Solver(arrays, shape=self.shape, device=self._context, **{**self._settings, **settings})

    # ------------------------------------------------------------------ as a LinearOperator

    def _solved(self, b: Any) -> Any:
        """x, or a RuntimeError."""
        return solved(self.solve(b))

    def __matmul__(self, b: Any) -> Any:
        if isinstance(b, _Base):
            return super().__matmul__(b)  # type: ignore[misc]
        return self._solved(b)

    def _matvec(self, b: Any) -> Any:
        return self._solved(b)

    def _matmat(self, b: Any) -> Any:
        return self._solved(b)

    def _rmatvec(self, b: Any) -> Any:
        return solved(self.solve(b, trans="H"))

    def _rmatmat(self, b: Any) -> Any:
        return solved(self.solve(b, trans="H"))

    # ------------------------------------------------------------------ values, description

    def update_values(self, values: Any) -> None:
        """Replace the values of the matrix, as ``Plan.update_values``, and make the preconditioner again."""
        m = self._matrix
        v, given = taken(values, "values", m.data.dtype, self._context)
        if v.shape != (m.nnz,):
            raise ValueError(f"values has the shape {v.shape}, the matrix has {m.nnz} entries")
        if self._copy and v is given:
            v = copied(v, self._context)
        check_values(m, v)
        kept = v
        if self._keep is None:  # the library copies: what later solvers are made from
            kept = view(np.array(values, dtype=m.data.dtype), "values")
        status = "SPMV_OK"
        try:
            _core.solver_update(self._handle, v.address, ((*m.keep, v.keep), self._options, self._own))
        except Exception as error:
            status = getattr(error, "status", "")
            raise
        finally:
            if status not in ("SPMV_ERROR_BUSY", "SPMV_ERROR_UNSUPPORTED"):  # these change nothing
                m.data = kept
                self._parts = (*self._parts[:6], kept.address, *self._parts[7:])
                self._others.clear()
                if self._keep is not None:
                    self._keep = m.keep

    def slogdet(self) -> SlogDet:
        """Sign and logarithm of the determinant of A, from the factors of ``"direct"``.

        Nothing is computed: both come with the factors. A solver without factors, or a library that does not
        tell (``"direct:cudss"``), is a NotImplementedError. An ``"auto"`` solver has
        factors for at most 200 rows, or after a solve that took ``"direct"``.

        Returns
        -------
        SlogDet
            ``sign``: det A / abs(det A), a float, or a complex number for a complex A; ``logabsdet``: the
            natural logarithm of abs(det A). As ``numpy.linalg.slogdet``. An A that is exactly singular
            has no factors: making the solver raises.

        Examples
        --------
        >>> import numpy as np, spmv
        >>> sign, log = spmv.Solver(spmv.generate("poisson2d:2")).slogdet()
        >>> float(sign), round(float(np.exp(log)), 9)  # the eigenvalues are 2, 4, 4 and 6
        (1.0, 192.0)
        """
        log, phase, *_ = _core.solver_determinant(self._handle)
        is_complex = self._matrix.data is not None and self._matrix.data.dtype.kind == "c"
        return SlogDet(np.complex128(complex(*phase)) if is_complex else np.float64(phase[0]), np.float64(log))

    def inertia(self) -> Inertia:
        """The numbers of positive, negative and zero eigenvalues of a symmetric or Hermitian A.

        From the factors of CHOLMOD or MUMPS (``"direct"`` takes one of them where it is there). Zero
        eigenvalues are those that are 0 to rounding. NotImplementedError if they are not known.
        """
        *_, positive, negative, zero = _core.solver_determinant(self._handle)
        if negative < 0:
            raise NotImplementedError(
                "the inertia is not known: it comes with factors of a symmetric matrix by direct:cholmod or "
                "direct:mumps"
            )
        return Inertia(positive, negative, zero)

    def __repr__(self) -> str:
        return f"<spmv.Solver: {self.shape[0]} rows, {self._dtype}, on {self._context.device}>"

    def __reduce__(self) -> Any:
        about = {**self._settings, "vectors": self._vectors, "dtype": None if self._free_type else self._dtype}
        return _again, (self._arrays(), self._context, about)

    def _arrays(self) -> tuple[Any, Any]:
        """A and its shape, for a copy."""
        return host_arrays(self._matrix, self._context), self.shape


def _again(source: tuple[Any, Any], context: Context, settings: dict[str, Any]) -> Solver:
    """The solver that was pickled or copied, made again."""
    return Solver(source[0], shape=source[1], device=context, **settings)


def is_operator(A: Any) -> bool:
    """Whether A has products and no entries."""
    return callable(getattr(A, "matvec", None)) and hasattr(A, "shape") and not hasattr(A, "indptr")


class _OperatorSolver(Solver):
    """A Solver of an operator."""

    def __init__(
        self,
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
        estimate_error: bool = True,
        accuracy: int = 0,
        device: Any = "auto",
        precond: Any = None,
        **others: Any,
    ) -> None:
        preconditioner = one_preconditioner(preconditioner, precond)
        defaults = dict(
            vectors=1, inner=False, options=None, coordinates=None, null=None, recycle=0, fields=None, schur=None, shape=None,
            copy=False, method=None, mixed=None,
        )
        for name, value in others.items():
            if name not in defaults:
                raise TypeError(f"Solver got an unexpected argument {name!r}")
            if value is not None and value != defaults[name] and name != "shape":
                raise NotImplementedError(f"{name} needs the entries of A, which an operator has not")
        rows, cols = (whole(n, "a size of A", 0, 2**63 - 1) for n in A.shape)
        check_square((rows, cols))
        of_plan = isinstance(A, Plan)
        of_a = getattr(A, "dtype", None)
        found = np.dtype(dtype if dtype is not None else "float64" if of_a is None else of_a)
        of_b = found if found.kind in "fc" else np.dtype("float64")
        if of_b not in FLOATING:
            raise TypeError(f"A has the type {of_b}: float64, float32, complex128 or complex64 is needed")
        if of_plan and of_b != A._dtype:
            raise TypeError(f"the plan has the type {A._dtype}, not {of_b}: make one with this dtype")
        context = A._context if of_plan else context_of(device, "cpu")
        _Base.__init__(self, of_b, (rows, rows))
        self._dtype, self._free_type, self._vectors = of_b, dtype is None and not of_plan, 1
        self._operator, self._context = A, context
        self._settings = dict(
            preconditioner=preconditioner, solver=solver, rtol=rtol, atol=atol, maxiter=maxiter, restart=restart,
            check_symmetry=check_symmetry, rung=rung, estimate_error=estimate_error, accuracy=accuracy,
        )  # fmt: skip
        self._calling = calling = threading.local()
        self._direct, self._joins, self._others = False, False, {}

        def kind() -> str:
            return getattr(calling, "kind", "numpy")  # the check of symmetry comes before any b

        own = None if isinstance(preconditioner, str) else _wrapped(preconditioner, rows, of_b, kind, context)
        name = "none" if own is not None else preconditioner
        args = settings(
            solver, name, rung, of_b, 1, False, rtol, atol, maxiter, restart, check_symmetry, 0, estimate_error, accuracy
        )
        self._args, self._own = (*args, option_numbers(options_given(None)), *addresses(None, None)), own
        self._product: Any = None
        if not of_plan:
            product = _called(A.matvec, "A.matvec", rows, of_b, kind, context)
            self._product = _core.operator_wrap(context._handle, CODES[of_b], rows, rows, type(A).__name__[:31], product)
        self._handle = self._make()

    def _multiplied(self) -> Any:
        """What multiplies by A: the callback, or the plan for one vector with its present values."""
        A = self._operator
        if not isinstance(A, Plan):
            return self._product
        return (A if A._vectors == 1 else A._with(A._operation, 1))._handle

    def _make(self) -> Any:
        self._plan = self._multiplied()
        if isinstance(self._operator, Plan):
            check_values(self._operator._matrix, self._operator._values)
        return _core.solver_for_plan(self._plan, self._args, self._own, (self._plan, self._own))

    def _solve_at_once(self, b: View, start: View | None, trans: str, callback: Any, on_residual: Any) -> Result:
        if self._multiplied() is not self._plan:  # new values
            self._handle = self._make()
        return super()._solve_at_once(b, start, trans, callback, on_residual)

    def _values(self) -> View | None:
        return None

    def _source(self) -> Any:
        return self._operator

    def _arrays(self) -> tuple[Any, Any]:
        return self._operator, None

    def _again(self, arrays: Any, **settings: Any) -> Solver:
        settings.pop("vectors", None)
        return Solver(arrays, device=self._context, **{**self._settings, **settings})

    def _adjoint_solver(self) -> Solver:
        raise NotImplementedError("the adjoint of a solver needs the entries of A, which an operator has not")

    def update_values(self, values: Any) -> None:
        raise NotImplementedError("an operator has no values: make a solver for the new one")


def solved(result: Result) -> Any:
    """x, or a RuntimeError."""
    if not result.converged:
        error = RuntimeError(result.message)
        error.status = result.status  # type: ignore[attr-defined]
        raise error
    return result.x


def one_preconditioner(preconditioner: Any, precond: Any) -> Any:
    """The one of two names of an argument that is given."""
    if precond is None:
        return preconditioner
    if not (isinstance(preconditioner, str) and preconditioner == "auto"):
        raise TypeError("preconditioner and precond are two names of one argument: pass one of them")
    return precond


def null_block(null: Any) -> int:
    """The unknowns of a node, each of which has a null vector; 0: null is an array, or None."""
    if isinstance(null, str):
        if null != "ones":
            raise ValueError(f'null is {null!r}: it must be "ones", a number of unknowns or an array')
        return 1
    return whole(null, "null", 1) if null is not None and np.ndim(null) == 0 else 0


def check_square(shape: tuple[int, int]) -> None:
    if shape[0] != shape[1]:
        error = ValueError(
            f"A x = b needs a square matrix, A has {shape[0]} rows and {shape[1]} columns: for a "
            "least-squares solution, call spmv.least_squares"
        )
        error.status = "SPMV_ERROR_NOT_SQUARE"  # type: ignore[attr-defined]
        raise error


def options_given(options: dict[str, Any] | None) -> dict[str, Any]:
    """All options of a preconditioner: those of the caller, and the defaults."""
    given = {**_OPTIONS, "near_null": None}
    for name, value in (options or {}).items():
        if name not in given:
            raise ValueError(f"unknown option {name!r} of the preconditioner; there are {', '.join(given)}")
        if value is not None:
            given[name] = value
    return given


_LARGEST_BLOCK = {"amg": 8, "block-jacobi": 64}  # preconditioners with the option block


def with_block(options: dict[str, Any] | None, A: Any, preconditioner: Any) -> dict[str, Any] | None:
    """The options, with the blocks of a matrix in blocks of rows (BSR) for a preconditioner that uses them."""
    rows, cols = getattr(A, "blocksize", None) or (0, 0)
    largest = _LARGEST_BLOCK.get(preconditioner, 0) if isinstance(preconditioner, str) else 0
    if rows != cols or not 1 < rows <= largest or (options or {}).get("block") is not None:
        return options
    return {**(options or {}), "block": rows}


def settings(
    solver: Any, precond: Any, rung: Any, dtype: np.dtype, vectors: int, inner: bool, rtol: Any, atol: Any,
    maxiter: Any, restart: Any, check_symmetry: Any, recycle: int, estimate_error: Any, accuracy: Any,
) -> tuple[Any, ...]:  # fmt: skip
    """The first of the settings that _core.solver and _core.group_solver take, checked."""
    return (
        None if solver == "auto" else str(solver),
        precond,
        None if rung == "auto" else str(rung),
        CODES[dtype],
        vectors,
        int(inner),
        number(rtol, "rtol"),
        number(atol, "atol"),
        0 if maxiter is None else whole(maxiter, "maxiter", 1, 2**63 - 1),
        0 if restart is None else whole(restart, "restart", 1),
        int(bool(check_symmetry)),
        recycle,
        int(bool(estimate_error)),
        whole(accuracy, "accuracy", 0),
    )


def addresses(
    near_null: View | None, coordinates: np.ndarray | None, null: View | None = None, null_block: int = 0,
    fields: np.ndarray | None = None, schur: Any = None,
) -> tuple[Any, ...]:  # fmt: skip
    """The last of these settings."""
    at = coordinates
    return (
        *_vectors(near_null),
        at.ctypes.data if at is not None else 0,
        *(at.shape if at is not None else (0, 0)),
        *_vectors(null),
        null_block,
        fields.ctypes.data if fields is not None else 0,
        *((None, schur) if isinstance(schur, str) else (schur, None)),
    )


def _vectors(v: View | None) -> tuple[int, int]:
    """The address and the number of vectors."""
    return (v.address, v.shape[1] if len(v.shape) == 2 else 1) if v is not None else (0, 0)


# Options of preconditioners, with the values that stand for the library's defaults.
_OPTIONS: dict[str, Any] = dict(
    block=0, degree=-1, steps=0, shift=0.0, strength=0.0, fill=0.0, drop=-1.0, lowest=0.0, highest=0.0, smoother=None,
    update_values=0,
)
_DEFAULTS = tuple(_OPTIONS.values())


def option_numbers(given: dict[str, Any]) -> tuple[Any, ...]:
    """The options in the order of _core.solver."""
    made: list[Any] = []
    for name, default in _OPTIONS.items():
        value = given[name]
        if value == default and isinstance(value, type(default)):
            made.append(value)
        elif isinstance(default, int):
            made.append(whole(value, f"the option {name}", 0))
        elif isinstance(default, float):
            made.append(number(value, f"the option {name}"))
        else:
            made.append(str(value))
    return tuple(made)


def host_coordinates(array: Any, context: Context) -> np.ndarray:
    """A copy of coordinates, as the library reads them."""
    v = view(array, "coordinates", context)
    if v.dtype.kind not in "biuf":
        raise TypeError(f"coordinates have the type {v.dtype}, real numbers are needed")
    if len(v.shape) != 2 or v.shape[1] not in (2, 3):
        raise ValueError(f"coordinates have the shape {v.shape}: a row for each node, with 2 or 3 columns, is needed")
    return np.array(as_numpy(v) if v.on_host else downloaded(context, v), np.float64, order="C")


def _host_fields(array: Any, rows: int, context: Context) -> np.ndarray:
    """A copy of the fields of the rows, as the library reads them."""
    v = view(array, "fields", context)
    if v.dtype.kind not in "biu":
        raise TypeError(f"fields have the type {v.dtype}, integers are needed")
    if v.shape != (rows,):
        raise ValueError(f"fields have the shape {v.shape}: one number for each of the {rows} rows is needed")
    numbers = as_numpy(v) if v.on_host else downloaded(context, v)
    wrong = np.flatnonzero((numbers < 0) | (numbers > 2))
    if len(wrong):
        raise ValueError(f"fields[{wrong[0]}] is {numbers[wrong[0]]}: 1 or 2 (or 0 and 1) is needed")
    return np.array(numbers, np.int32)


def _row(result: Result) -> dict[str, Any]:
    """What Result.columns has of one right-hand side."""
    return {f.name: getattr(result, f.name) for f in fields(result) if f.name not in ("x", "converged", "message", "columns")}


def _sliceable(v: View, name: str) -> Any:
    """The array of a view, with columns that can be read and written."""
    if v.kind in ("cupy", "torch"):
        return v.array
    if v.kind == "jax":
        return np.asarray(v.array)
    if v.on_host:
        return as_numpy(v)
    raise TypeError(f"{name} has several columns: make the solver with as many vectors, or pass an array of CuPy")


def _filled_up(part: Any, shape: tuple[int, int], dtype: np.dtype, context: Context) -> Any:
    """The columns of part, followed by columns of 0."""
    like = view(part, "b", context)
    full = empty(like, shape, dtype, context)
    fill(full, 0, context)
    if len(like.shape) == 1:
        full.array[:, 0] = part
    else:
        full.array[:, : like.shape[1]] = part
    return full.array


def _checked_start(x0: Any, shape: Any, dtype: np.dtype, context: Context) -> View:
    """The view of x0, which has the shape of b but for an axis of 1."""
    v = view(x0, "x0", context)
    if v.shape != tuple(shape) and not (math.prod(shape) == shape[0] and v.shape in (shape[:1], (shape[0], 1))):
        raise ValueError(f"x0 has the shape {v.shape}, b has {tuple(shape)}")
    if v.dtype.kind not in ("biufc" if dtype.kind == "c" else "biuf"):
        raise TypeError(f"x0 has the type {v.dtype}, but the solve is in {dtype}: pass x0.real, or a complex b")
    check_finite(v, "x0")
    return v


def _start(x0: View | None, given: View, shape: Any, dtype: np.dtype, context: Context) -> tuple[View, View]:
    """x with its start value: the array that the caller gets, and the one that the library uses."""
    result = empty(given, shape, dtype, context)
    if x0 is None:
        fill(result, 0, context)
    else:
        value = x0.array if x0.kind in ("cupy", "torch", "jax") or not x0.on_host else as_numpy(x0)
        fill(result, value.reshape(shape) if hasattr(value, "reshape") else value, context)
    if context.is_cuda and result.on_host:
        return result, on_device(result, "x", context)
    return result, result


def _end(result: View, target: View, given: View, context: Context) -> Any:
    if target is not result and result.bytes:
        _core.download(context._handle, target.address, _writable(result))
    return finished(result, given)


def solve(A: Any, b: Any, x0: Any = None, **options: Any) -> Result:
    """Solve A x = b once; the options are those of ``Solver`` and of ``Solver.solve``.

    ``device`` may also be a ``Group``, or ``"cuda:all"``: all GPUs of this host together.

    b is one right-hand side, or a matrix with one in each column; where that pays, the columns after the
    first are solved at once (``vectors=1``: they are not). x has a type that A and b fit into, unless
    ``dtype`` names another.

    Examples
    --------
    >>> import numpy as np, spmv
    >>> spmv.solve(spmv.generate("convdiff2d:20,5"), np.ones(400)).solver
    'gmres'
    >>> import numpy as np, spmv
    >>> result = spmv.solve(spmv.generate("poisson2d:20"), np.ones(400), rtol=1e-10)
    >>> result.converged, result.true_residual <= result.tolerance
    (True, True)
    """
    from ._group import group_of  # which imports this file

    group = group_of(options.get("device"))
    if group is not None:
        options.pop("device")
        return group.solve(A, b, x0, **options)
    calls = {name: options.pop(name) for name in ("callback", "on_residual") if name in options}
    if options.get("dtype") is None and not isinstance(A, Plan):
        options["dtype"] = common_type(A, b)
    solver = Solver(A, **options)
    alone = ("vectors", "inner", "mixed", "recycle", "accuracy", "rung")  # options that are for one column, or say how many
    solver._joins = solver._dtype.kind == "f" and not any(name in options for name in alone) and not is_operator(A)
    return solver.solve(b, x0, **calls)


def common_type(A: Any, b: Any) -> Any:
    """SciPy's choice of the type: that which both A and b fit into."""
    try:
        of_a = view(A[0], "data").dtype if isinstance(A, tuple) else np.dtype(str(A.dtype).removeprefix("torch."))
        of_b = view(b, "b").dtype
    except (AttributeError, TypeError):
        return None
    found = np.result_type(of_a, of_b)
    return found if found in CODES and found.kind in "fc" else (None if of_a.kind in "fc" else np.dtype("float64"))


def _adjoint_of(M: Any) -> Callable[[Any], Any]:
    """The product with the conjugate transpose of a preconditioner."""
    if isinstance(M, Solver):
        return lambda r: M.solve(r, trans="H").x
    try:
        adjoint = M.H if hasattr(M, "H") else M.conj().T
    except AttributeError:
        raise NotImplementedError(
            "the transpose of A needs that of the preconditioner: pass a matrix, or an operator with .H"
        ) from None
    return adjoint.__matmul__  # type: ignore[no-any-return]


def multiplication_of(M: Any) -> Callable[[Any], Any]:
    """The product with a preconditioner."""
    if isinstance(M, Solver):  # the x reached will do
        return lambda r: M.solve(r).x
    return M.__matmul__ if hasattr(M, "__matmul__") else M  # type: ignore[no-any-return]


def _wrapped(M: Any, rows: int, dtype: np.dtype, kind: Callable[[], str], context: Context) -> Any:
    """A preconditioner of the library that calls M with arrays of the kind."""
    # for the library, a complex vector is one of real and imaginary parts
    part, parts = (np.dtype(f"f{dtype.itemsize // 2}"), 2) if dtype.kind == "c" else (dtype, 1)
    shape = getattr(M, "shape", None)
    if shape is not None and tuple(shape) != (rows, rows):
        raise ValueError(f"M has the shape {tuple(shape)}, the matrix has {rows} rows")
    if isinstance(M, Plan) and M._context is context and M._dtype == dtype and M._vectors == 1:

        def apply(r: int, z: int, transposed: bool) -> None:
            _core.apply((M.H if transposed else M)._handle, r, z, None, None)

    else:
        if not hasattr(M, "__matmul__") and not callable(M):
            raise TypeError(f"M is not a preconditioner but {type(M).__name__}")
        ahead = _called(multiplication_of(M), "M", rows, dtype, kind, context)
        back = _called(lambda r: _adjoint_of(M)(r), "M", rows, dtype, kind, context)

        def apply(r: int, z: int, transposed: bool) -> None:
            (back if transposed else ahead)(r, z)

    return _core.precond_wrap(context._handle, CODES[part], parts * rows, type(M).__name__[:31], apply)


def _called(
    multiply: Callable[[Any], Any], name: str, rows: int, dtype: np.dtype, kind: Callable[[], str], context: Context
) -> Callable[[int, int], None]:
    """The callback of the library that multiplies arrays of the kind."""
    # a complex vector is one of real and imaginary parts
    part, parts = (np.dtype(f"f{dtype.itemsize // 2}"), 2) if dtype.kind == "c" else (dtype, 1)

    def apply(x: int, y: int) -> None:
        answer = multiply(Borrowed(context, x, (rows,), dtype).copy_as(kind(), context))
        if isinstance(answer, np.ndarray) and np.can_cast(answer.dtype, dtype, "same_kind"):
            answer = answer.astype(dtype, copy=False)  # digits that the iteration in float32 does not have
        back, _ = taken(answer, f"the result of {name}", dtype, context)
        if back.shape not in ((rows,), (rows, 1)):
            raise ValueError(f"the result of {name} has the shape {back.shape}, {(rows,)} is needed")
        _core.map(context._handle, "copy", CODES[part], back.address, y, parts * rows)

    return apply

# SPDX-License-Identifier: BSD-3-Clause
"""Solvers for A x = b."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Callable

import numpy as np

from . import _core
from ._arrays import Borrowed, View, empty, fill, finished, overlap, taken, view
from ._context import CODES, Context, context_of
from ._matrix import CONTEXT_MEMORY, HOST_MEMORY, take
from ._plan import Plan, _writable


@dataclass(frozen=True)
class Result:
    """The outcome of a solve, of one right-hand side.

    ``true_residual`` is the norm of b - A x, computed for the x returned. ``converged`` means that
    it is within ``tolerance``; the residual of the recurrence does not count.
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
    method: str
    rung: str
    why_rung: str
    preconditioner: str
    why_preconditioner: str
    setup_seconds: float
    solve_seconds: float
    columns: tuple[dict[str, Any], ...] = field(default=(), repr=False)  # with several right-hand sides


def _result(x: Any, status: str, message: str, rows: list[dict[str, Any]]) -> Result:
    worst = max(rows, key=lambda r: (r["status"] != "SPMV_OK", r["true_residual"]))
    row = dict(worst)
    row["status"] = status
    converged = status == "SPMV_OK"
    return Result(x=x, converged=converged, message=message, columns=tuple(rows) if len(rows) > 1 else (), **row)


def _shown(context: Context, n: int, dtype: np.dtype, like: View, callback: Callable[[Any], Any]) -> Any:
    """The callback of the library for a callback with x. It stops if the latter returns True."""

    def tell(iteration: int, residual: float, address: int) -> bool:
        if iteration == 0:
            return False
        return callback(Borrowed(context, address, (n,), dtype).copy_as(like.kind, context)) is True

    return tell


class Solver:
    """A solver for A x = b with a square A, for many right-hand sides.

    It makes a plan and a preconditioner once.

    Parameters
    ----------
    A : matrix
        As for ``Plan``.
    preconditioner : str, optional
        ``"auto"`` (the default), ``"none"``, ``"jacobi"``, ``"block-jacobi"``, ``"chebyshev"``,
        ``"ic0"``, ``"cholesky"`` or ``"amg"``; for matrices that are not symmetric also ``"ilu0"``
        and ``"ilut"``.
    method : str, optional
        ``"auto"`` (the default), ``"cg"``, ``"minres"``, ``"gmres"``, ``"bicgstab"`` or ``"direct"``.
    rtol, atol : float, optional
        The solve ends when ``norm(b - A x) <= max(rtol * norm(b), atol)``. Default 1e-8 and 0.
    maxiter : int, optional
        Default: 10 times the rows, at least 100.
    restart : int, optional
        Steps of a cycle of GMRES, at most 200. Default 50.
    dtype : numpy.dtype, optional
        float64, float32, complex128 or complex64, as for ``Plan``.
    vectors : int, optional
        Right-hand sides that one call solves; default 1.
    mixed : bool, optional
        True: iterate in float32 and correct x in float64.
    check_symmetry : bool, optional
        False: do not sample whether A is symmetric.
    rung : str, optional
        The implementation of the method; default ``"auto"``.
    options : dict, optional
        Of the preconditioner: ``block``, ``degree``, ``steps``, ``shift``, ``strength``; ``near_null``:
        for ``"amg"``, an array with a row for each row of A and up to 8 columns v with A v near 0.
    device, shape, copy
        As for ``Plan``.

    Examples
    --------
    >>> import numpy as np, spmv
    >>> A = spmv.generate("poisson2d:30")
    >>> solver = spmv.Solver(A, preconditioner="jacobi")
    >>> result = solver.solve(A @ np.ones(900))
    >>> result.converged, bool(abs(result.x - 1).max() < 1e-6)
    (True, True)
    """

    def __init__(
        self,
        A: Any,
        preconditioner: str = "auto",
        method: str = "auto",
        *,
        rtol: float = 1e-8,
        atol: float = 0.0,
        maxiter: int | None = None,
        restart: int | None = None,
        dtype: Any = None,
        vectors: int = 1,
        mixed: bool = False,
        check_symmetry: bool = True,
        rung: str = "auto",
        options: dict[str, Any] | None = None,
        device: Any = "auto",
        shape: tuple[int, int] | None = None,
        copy: bool = False,
    ) -> None:
        matrix, self._dtype, context = take(A, lambda where: context_of(device, where), shape, dtype)
        given = {"block": 0, "degree": -1, "steps": 0, "shift": 0.0, "strength": 0.0, "near_null": None}
        for name, value in (options or {}).items():
            if name not in given:
                raise ValueError(f"unknown option {name!r} of the preconditioner; there are {', '.join(given)}")
            given[name] = value
        self._matrix, self._context, self._vectors = matrix, context, int(vectors)
        if self._vectors < 1 or self._vectors > 2**20:
            raise ValueError(f"vectors is {vectors}, must be at least 1")
        self.shape = matrix.shape
        self._near_null = None if given["near_null"] is None else self._vectors_near_null(given["near_null"])
        borrow = (matrix.device != "cpu" or not context.is_cuda) and not (copy and matrix.device == "cpu")
        self._args = (method, preconditioner, rung, mixed, rtol, atol, maxiter, restart, check_symmetry, given)
        self._parts = matrix.tuple(CONTEXT_MEMORY if borrow else HOST_MEMORY)
        self._keep = matrix.keep if borrow else None
        self._handle = self._make()

    def _vectors_near_null(self, array: Any) -> View:
        v, _ = taken(array, "near_null", self._dtype, self._context)
        if len(v.shape) not in (1, 2) or v.shape[0] != self.shape[0]:
            raise ValueError(f"near_null has the shape {v.shape}, the matrix has {self.shape[0]} rows")
        return v

    def _make(self) -> Any:
        v = self._near_null
        method, preconditioner, rung, mixed, rtol, atol, maxiter, restart, check, given = self._args
        return _core.solver(
            self._context._handle,
            self._parts,
            None if method == "auto" else str(method),
            str(preconditioner),
            None if rung == "auto" else str(rung),
            CODES[self._dtype],
            self._vectors,
            int(bool(mixed)),
            float(rtol),
            float(atol),
            int(maxiter or 0),
            int(restart or 0),
            int(bool(check)),
            int(given["block"]),
            int(given["degree"]),
            int(given["steps"]),
            float(given["shift"]),
            float(given["strength"]),
            v.address if v is not None else 0,
            v.shape[1] if v is not None and len(v.shape) == 2 else int(v is not None),
            self._keep,
        )

    def solve(
        self,
        b: Any,
        x0: Any = None,
        *,
        callback: Callable[[Any], Any] | None = None,
        on_residual: Callable[[int, float], Any] | None = None,
    ) -> Result:
        """Solve A x = b.

        Parameters
        ----------
        b : array
            The right-hand side, or with ``vectors`` a matrix with one in each column.
        x0 : array, optional
            The start, which stays as it is; default 0.
        callback : function, optional
            Called with a copy of x after each iteration. On a GPU the solver then runs its simplest
            form; ``on_residual`` costs less. It stops the solve by returning True.
        on_residual : function, optional
            Called with the iteration and the norm of the residual, for iteration 0 too. It stops the
            solve by returning a true value.

        Returns
        -------
        Result
            Its x is of the kind of b. If the solver stops early, ``converged`` is False and
            ``message`` says why. With ``method="cg"`` or ``"minres"``, a matrix that is not symmetric is
            a ValueError.
        """
        context, n, k = self._context, self.shape[0], self._vectors
        rhs, given = taken(b, "b", self._dtype, context)
        shape = given.shape
        if (k == 1 and shape not in ((n,), (n, 1))) or (k > 1 and shape != (n, k)):
            raise ValueError(f"b has the shape {shape}, the solver needs {(n,) if k == 1 else (n, k)}")
        result, target = _start(x0, given, shape, self._dtype, context)
        tell = None if callback is None else _shown(context, n, self._dtype, given, callback)
        status, message, rows = _core.solver_solve(self._handle, rhs.address, target.address, k, tell, on_residual)
        return _result(_end(result, target, given, context), status, message, rows)

    def update_values(self, values: Any) -> None:
        """Replace the values of the matrix, as ``Plan.update_values``, and make the preconditioner again.

        On a CPU ``"amg"`` keeps the aggregates and patterns of the first values, which takes a third of
        the time of a new solver. If an update fails, solves raise its error until another one succeeds.
        """
        m = self._matrix
        v, _ = taken(values, "values", m.data.dtype, self._context)
        if v.shape != (m.nnz,):
            raise ValueError(f"values has the shape {v.shape}, the matrix has {m.nnz} entries")
        _core.solver_update(self._handle, v.address, (*m.keep, v.keep))

    def __repr__(self) -> str:
        return f"<spmv.Solver: {self.shape[0]} rows, {self._dtype}, on {self._context.device}>"

    def __reduce__(self) -> Any:
        raise TypeError("a solver cannot be pickled or copied: make one where it is needed")


def _start(x0: Any, given: View, shape: Any, dtype: np.dtype, context: Context) -> tuple[View, View]:
    """x with its start value: the array that the caller gets, and the one that the library uses."""
    result = empty(given, shape, dtype, context)
    if x0 is not None and tuple(np.shape(x0)) not in (shape, (shape[0],), (shape[0], 1)):
        raise ValueError(f"x0 has the shape {tuple(np.shape(x0))}, b has {shape}")
    if x0 is None:
        fill(result, 0, context)
    else:
        fill(result, x0.reshape(shape) if hasattr(x0, "reshape") else np.reshape(x0, shape), context)
    if context.is_cuda and result.on_host:
        from ._arrays import on_device

        return result, on_device(result, "x", context)
    return result, result


def _end(result: View, target: View, given: View, context: Context) -> Any:
    if target is not result and result.bytes:
        _core.download(context._handle, target.address, _writable(result))
    return finished(result, given)


def solve(A: Any, b: Any, x0: Any = None, **options: Any) -> Result:
    """Solve A x = b once; the options are those of ``Solver`` and of ``Solver.solve``.

    Examples
    --------
    >>> import numpy as np, spmv
    >>> spmv.solve(spmv.generate("convdiff2d:20,5"), np.ones(400)).method
    'gmres'
    >>> import numpy as np, spmv
    >>> result = spmv.solve(spmv.generate("poisson2d:20"), np.ones(400), rtol=1e-10)
    >>> result.converged, result.true_residual <= result.tolerance
    (True, True)
    """
    calls = {name: options.pop(name) for name in ("callback", "on_residual") if name in options}
    return Solver(A, **options).solve(b, x0, **calls)


def cg(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    rtol: float = 1e-5,
    atol: float = 0.0,
    maxiter: int | None = None,
    M: Any = None,
    callback: Callable[[Any], Any] | None = None,
    device: Any = "auto",
) -> tuple[Any, int]:
    """Solve A x = b by conjugate gradients, with the signature of ``scipy.sparse.linalg.cg``.

    Parameters
    ----------
    A : matrix or Plan
        Symmetric positive definite. A ``Plan`` saves the time to make one.
    b : array
        Shape (n,) or (n, 1).
    x0 : array, optional
        The start; default 0.
    rtol, atol : float, optional
        Success means ``norm(b - A x) <= max(rtol * norm(b), atol)`` for the x returned.
    maxiter : int, optional
        Default: 10 times the rows, at least 100.
    M : str, operator, matrix or function, optional
        The preconditioner, an approximation of the inverse of A: a name as for ``Solver``, or
        anything that multiplies with ``@`` or as a function. Default None.
    callback : function, optional
        Called as ``callback(xk)`` after each iteration.

    Returns
    -------
    x : array
        Of the kind of b.
    info : int
        0: success. Positive: the tolerance was not reached; the number of iterations. Negative:
        the numbers say that A or M is not positive definite, or are not finite.

    Examples
    --------
    >>> import numpy as np, spmv
    >>> A = spmv.generate("poisson2d:20")
    >>> x, info = spmv.cg(A, A @ np.ones(400), rtol=1e-10, M="jacobi")
    >>> info, bool(abs(x - 1).max() < 1e-8)
    (0, True)
    """
    named = M is None or isinstance(M, str)
    if named and not isinstance(A, Plan):
        result = solve(
            A,
            b,
            x0,
            preconditioner="none" if M is None else M,
            method="cg",
            rtol=rtol,
            atol=atol,
            maxiter=maxiter,
            callback=callback,
            device=device,
            dtype=_common(A, b),
        )
        return result.x, _info(result.status, result.iterations)
    if isinstance(M, str):
        raise TypeError("a preconditioner by name needs the matrix: pass A itself, or keep a Solver")
    plan = A if isinstance(A, Plan) else Plan(A, _common(A, b), device=device)
    if plan._vectors != 1:
        plan = plan._with(plan._operation, 1)
    context, (rows, cols), dtype = plan._context, plan.shape, plan._dtype
    rhs, given = taken(b, "b", dtype, context)
    if given.shape not in ((cols,), (cols, 1)):
        raise ValueError(f"b has the shape {given.shape}, the matrix has {cols} columns")
    x, target = _start(x0, given, given.shape, dtype, context)
    wrapped = None if M is None else _wrapped(M, rows, dtype, given, context)
    tell = None if callback is None else _shown(context, rows, dtype, given, callback)
    status, _, table = _core.cg(
        plan._handle, wrapped, rhs.address, target.address, None, float(rtol), float(atol), int(maxiter or 0), 1, tell, None
    )
    return _end(x, target, given, context), _info(status, table[0]["iterations"])


def _info(status: str, iterations: int) -> int:
    if status == "SPMV_OK":
        return 0
    return -1 if status in ("SPMV_ERROR_NOT_POSITIVE", "SPMV_ERROR_NOT_FINITE") else max(1, int(iterations))


def _common(A: Any, b: Any) -> Any:
    """SciPy's choice of the type: that which both A and b fit into."""
    try:
        of_a = np.dtype(str(A.dtype).removeprefix("torch."))
        of_b = view(b, "b").dtype
    except (AttributeError, TypeError):
        return None
    found = np.result_type(of_a, of_b)
    return found if found in CODES and found.kind in "fc" else (None if of_a.kind in "fc" else np.dtype("float64"))


def _wrapped(M: Any, rows: int, dtype: np.dtype, like: View, context: Context) -> Any:
    """A preconditioner of the library that calls M."""
    shape = getattr(M, "shape", None)
    if shape is not None and tuple(shape) != (rows, rows):
        raise ValueError(f"M has the shape {tuple(shape)}, the matrix has {rows} rows")
    if isinstance(M, Plan) and M._context is context and M._dtype == dtype and M._vectors == 1:

        def apply(r: int, z: int) -> None:
            _core.apply(M._handle, r, z, None, None)

    else:
        if not hasattr(M, "__matmul__") and not callable(M):
            raise TypeError(f"M is not a preconditioner but {type(M).__name__}")
        multiply = M.__matmul__ if hasattr(M, "__matmul__") else M

        def apply(r: int, z: int) -> None:
            answer = multiply(Borrowed(context, r, (rows,), dtype).copy_as(like.kind, context))
            back, _ = taken(answer, "the result of M", dtype, context)
            if back.shape not in ((rows,), (rows, 1)):
                raise ValueError(f"the result of M has the shape {back.shape}, {(rows,)} is needed")
            _core.map(context._handle, "copy", CODES[dtype], back.address, z, rows)

    return _core.precond_wrap(context._handle, CODES[dtype], rows, type(M).__name__[:31], apply)

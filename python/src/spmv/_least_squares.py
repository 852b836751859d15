# SPDX-License-Identifier: BSD-3-Clause
"""Least squares: min ||A x - b|| with any A."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Any, Callable

import numpy as np

from . import _core
from ._arrays import check_finite, number, raise_not_finite, taken, view, whole
from ._context import CODES, context_of
from ._matrix import CONTEXT_MEMORY, HOST_MEMORY, check_values, downloaded, take
from ._solve import _end, _start, common_type

_SCALING = {"auto": 0, "none": 1, "columns": 2}


@dataclass(frozen=True)
class LeastSquaresResult:
    """The outcome of a least-squares solve, of one right-hand side.

    ``true_residual`` is the norm of r = b - A x, ``damped_residual`` that of r and damp (x - x0),
    ``true_gradient`` that of A'r - damp^2 (x - x0), all computed for the x returned. ``stop`` is
    SciPy's ``istop``: 1 A x = b has a solution, 2 x is a least-squares solution, 3 A has nearly lost
    rank, 4 to 6 the same up to rounding, 7 the iteration limit, 0 the start is a solution, 8 other
    failures. ``norm_a`` and ``condition`` are estimates, with scaled columns of the scaled matrix.
    """

    x: Any = field(repr=False)
    converged: bool
    status: str
    message: str
    stop: int
    why_stop: str
    iterations: int
    true_residual: float
    damped_residual: float
    true_gradient: float
    norm_x: float
    norm_b: float
    norm_a: float
    condition: float
    recurrence_residual: float
    recurrence_gradient: float
    restarts: int
    solver: str
    scaled: bool
    why_scaling: str
    setup_seconds: float
    solve_seconds: float
    columns: tuple[dict[str, Any], ...] = field(default=(), repr=False)  # with several right-hand sides


def least_squares(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    solver: str = "lsmr",
    damp: float = 0.0,
    atol: float = 1e-8,
    btol: float = 1e-8,
    conlim: float = 1e8,
    maxiter: int | None = None,
    scaling: str = "auto",
    on_residual: Callable[[int, float, float], Any] | None = None,
    device: Any = "auto",
) -> LeastSquaresResult:
    """Minimise ``||A x - b||^2 + damp^2 ||x - x0||^2`` for a matrix A of any size.

    Of several solutions, x is the one nearest to x0: without x0 that of smallest norm.

    Parameters
    ----------
    A : matrix
        As for ``Plan``, with any numbers of rows and columns.
    b : array
        As many numbers as A has rows, or a matrix with a right-hand side in each column. Columns are
        solved together where A has many entries a row; each has its own status in ``columns``.
    x0 : array, optional
        The start; default 0.
    solver : str, optional
        ``"lsmr"`` (the default), ``"lsqr"`` or ``"cgls"``.
    damp : float, optional
        At least 0; default 0.
    atol, btol : float, optional
        Relative errors of A and of b. The solve ends when x is a solution of a system that differs by
        no more. Default 1e-8.
    conlim : float, optional
        The solve ends when the estimated condition number exceeds this; 0: no limit. Default 1e8.
    maxiter : int, optional
        From 1. Default: 10 times the smaller size of A, at least 100.
    scaling : str, optional
        ``"auto"`` (the default): the columns of A are scaled to norms of about 1 where that cannot
        change x; ``"none"``; ``"columns"``: always (without full column rank, x then is not the one of
        smallest norm).
    on_residual : function, optional
        Called with the iteration and the norms of the residual and of A'r, for iteration 0 too. It
        stops the solve by returning a true value.
    device
        As for ``Plan``.

    Examples
    --------
    >>> import numpy as np, scipy.sparse as sp, spmv
    >>> A = sp.csr_array(np.vander([-2.0, -1.0, 0.0, 1.0, 2.0], 2))  # a straight line through points
    >>> result = spmv.least_squares(A, np.array([0.0, 1.0, 2.0, 3.0, 4.0]))
    >>> result.x.round(6).tolist(), result.stop
    ([1.0, 2.0], 1)
    >>> result = spmv.least_squares(A, np.array([1.0, 0.0, 0.0, 0.0, 1.0]))
    >>> round(float(result.x[1]), 6), result.stop, round(result.true_residual ** 2, 6)
    (0.4, 2, 1.2)
    """
    if scaling not in _SCALING:
        raise ValueError(f"scaling is {scaling!r}: there are {', '.join(map(repr, _SCALING))}")
    matrix, dtype, context = take(A, lambda where: context_of(device, where), None, common_type(A, b), False)
    check_values(matrix)
    rows, cols = matrix.shape
    rhs, given = taken(b, "b", dtype, context)
    if len(given.shape) not in (1, 2) or given.shape[0] != rows:
        raise ValueError(f"b has the shape {given.shape}, the matrix has {rows} rows")
    vectors = given.shape[1] if len(given.shape) == 2 else 1
    if vectors == 0:
        raise ValueError("b has no columns")
    check_finite(rhs if rhs.on_host else given, "b")
    shape = (cols, *given.shape[1:])
    start = None
    if x0 is not None:
        start = view(x0, "x0", context)
        if start.shape != shape and not (vectors == 1 and start.shape in ((cols,), (cols, 1))):
            raise ValueError(f"x0 has the shape {start.shape}, x has {shape}")
        if start.dtype.kind not in ("biufc" if dtype.kind == "c" else "biuf"):
            raise TypeError(f"x0 has the type {start.dtype}, but the solve is in {dtype}")
        check_finite(start, "x0")
    x, target = _start(start, given, shape, dtype, context)
    borrow = matrix.device != "cpu" or not context.is_cuda
    status, message, table = _core.least_squares(
        context._handle,
        matrix.tuple(CONTEXT_MEMORY if borrow else HOST_MEMORY),
        str(solver),
        CODES[dtype],
        vectors,
        number(damp, "damp"),
        number(atol, "atol"),
        number(btol, "btol"),
        number(conlim, "conlim"),
        0 if maxiter is None else whole(maxiter, "maxiter", 1, 2**63 - 1),
        _SCALING[scaling],
        int(x0 is None),
        rhs.address,
        target.address,
        on_residual,
    )
    if status == "SPMV_ERROR_NOT_FINITE":  # the arrays on a GPU
        for v, name in ((given, "b"), (start, "x0"), (matrix.data, "A.data")):
            if v is not None and not v.on_host:
                raise_not_finite(downloaded(context, v), name)
    worst = dict(max(table, key=lambda r: (r["status"] != "SPMV_OK", r["iterations"])))
    worst["status"] = status
    return LeastSquaresResult(
        x=_end(x, target, given, context),
        converged=status == "SPMV_OK",
        message=message,
        columns=tuple(table) if vectors > 1 else (),
        **worst,
    )


def _as_scipy(name: str, A: Any, b: Any, x0: Any, show: bool, **options: Any) -> LeastSquaresResult:
    """The solve of lsmr or lsqr, with b of one column."""
    shape = getattr(b, "shape", None)
    if shape is not None and len(shape) == 2 and shape[1] == 1:
        b = b.reshape(-1) if hasattr(b, "reshape") else b

    def tell(iteration: int, residual: float, gradient: float) -> None:
        if iteration <= 10 or iteration % 10 == 0:
            print(f"{iteration:8d} {residual:14.7e} {gradient:14.7e}")

    if show:
        print(f"{name}: iteration, norm of the residual, norm of A'r")
    result = least_squares(A, b, x0, solver=name, on_residual=tell if show else None, **options)
    if result.status not in ("SPMV_OK", "SPMV_ERROR_ITERATIONS", "SPMV_ERROR_CONDITION"):
        if result.status == "SPMV_ERROR_NOT_FINITE":
            raise ValueError(result.message)
        warnings.warn(result.message, RuntimeWarning, stacklevel=3)
    if show:
        print(f"{name}: {result.why_stop}")
    return result


def lsmr(
    A: Any,
    b: Any,
    damp: float = 0.0,
    atol: float = 1e-6,
    btol: float = 1e-6,
    conlim: float = 1e8,
    maxiter: int | None = None,
    show: bool = False,
    x0: Any = None,
    *,
    scaling: str = "none",
    device: Any = "auto",
) -> tuple[Any, int, int, float, float, float, float, float]:
    """Least squares by LSMR, with the signature of ``scipy.sparse.linalg.lsmr``.

    Parameters
    ----------
    A : matrix
        As for ``Plan``, with any numbers of rows and columns.
    b : array
        Shape (m,) or (m, 1).
    damp, atol, btol, conlim, maxiter, show, x0
        As in SciPy. maxiter: default the smaller size of A.
    scaling : str, optional
        As for ``least_squares``; default ``"none"``, as in SciPy.
    device
        As for ``Plan``.

    Returns
    -------
    x : array
        Of the kind of b.
    istop : int
        Why the solve stopped, as in SciPy; 8 with a warning for other failures.
    itn : int
        Iterations.
    normr, normar, norma, conda, normx : float
        Norms of the residual (with damp, of the damped system), of its gradient, of A, its condition
        number, and the norm of x. The first two and the last are computed from x.

    Examples
    --------
    >>> import numpy as np, scipy.sparse as sp, spmv
    >>> A = sp.csr_array([[1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])
    >>> x, istop, itn, normr = spmv.lsmr(A, np.array([1.0, 0.0, -1.0]))[:4]
    >>> x.round(6).tolist(), istop, itn
    ([1.0, -1.0], 1, 1)
    """
    shape = np.shape(A) if not hasattr(A, "shape") else A.shape
    limit = max(1, min(shape)) if maxiter is None else maxiter
    r = _as_scipy(
        "lsmr", A, b, x0, show, damp=damp, atol=atol, btol=btol, conlim=conlim, maxiter=limit, scaling=scaling,
        device=device,
    )  # fmt: skip
    return (
        r.x, r.stop, r.iterations, r.damped_residual, r.true_gradient, r.norm_a, r.condition, r.norm_x
    )  # fmt: skip


def lsqr(
    A: Any,
    b: Any,
    damp: float = 0.0,
    atol: float = 1e-6,
    btol: float = 1e-6,
    conlim: float = 1e8,
    iter_lim: int | None = None,
    show: bool = False,
    calc_var: bool = False,
    x0: Any = None,
    *,
    scaling: str = "none",
    device: Any = "auto",
) -> tuple[Any, int, int, float, float, float, float, float, float, Any]:
    """Least squares by LSQR, with the signature of ``scipy.sparse.linalg.lsqr``.

    Parameters
    ----------
    A, b, damp, atol, btol, conlim, show, x0, scaling, device
        As for ``lsmr``.
    iter_lim : int, optional
        Default: twice the columns of A.
    calc_var : bool, optional
        Must be False: variances are not computed.

    Returns
    -------
    x : array
        Of the kind of b.
    istop, itn : int
        As for ``lsmr``.
    r1norm, r2norm, anorm, acond, arnorm, xnorm : float
        Norms of b - A x, of the residual of the damped system, of A, its condition number, the norm
        of the gradient, and that of x.
    var : array
        Zeros, as in SciPy without calc_var.

    Examples
    --------
    >>> import numpy as np, scipy.sparse as sp, spmv
    >>> A = sp.csr_array([[1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])
    >>> x, istop, itn, r1norm = spmv.lsqr(A, np.array([0.0, 1.0, 2.0]))[:4]
    >>> x.round(4).tolist(), istop, round(r1norm, 4)
    ([-0.3333, 1.6667], 2, 0.5774)
    """
    if calc_var:
        raise NotImplementedError("calc_var: variances are not computed")
    cols = (np.shape(A) if not hasattr(A, "shape") else A.shape)[1]
    limit = max(1, 2 * cols) if iter_lim is None else iter_lim
    r = _as_scipy(
        "lsqr", A, b, x0, show, damp=damp, atol=atol, btol=btol, conlim=conlim, maxiter=limit, scaling=scaling,
        device=device,
    )  # fmt: skip
    return (
        r.x, r.stop, r.iterations, r.true_residual, r.damped_residual, r.norm_a, r.condition, r.true_gradient,
        r.norm_x, np.zeros(cols),
    )  # fmt: skip

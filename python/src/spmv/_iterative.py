# SPDX-License-Identifier: BSD-3-Clause
"""Iterative solvers with the signatures of SciPy: cg, gmres, minres and bicgstab."""

from __future__ import annotations

import math
from typing import Any, Callable

import numpy as np

from ._arrays import as_numpy, number, view, whole
from ._context import context_of
from ._matrix import CSR, downloaded, take
from ._plan import Plan
from ._solve import Result, is_operator, multiplication_of, solve

_NEGATIVE = ("SPMV_ERROR_NOT_POSITIVE", "SPMV_ERROR_NOT_FINITE", "SPMV_ERROR_BREAKDOWN")


def _solved(solver: str, A: Any, b: Any, x0: Any, M: Any, **options: Any) -> Result:
    """The solve of all functions of this file, of one right-hand side."""
    if isinstance(M, str) and is_operator(A):
        raise TypeError("a preconditioner by name needs the matrix: pass A itself, or keep a Solver")
    shape = view(b, "b").shape
    if len(shape) == 2 and shape[1] != 1:
        raise ValueError(f"b has the shape {shape}, one right-hand side is needed: spmv.solve takes several")
    return solve(A, b, x0, preconditioner="none" if M is None else M, solver=solver, estimate_error=False, **options)


def _info(result: Result, done: int | None = None) -> int:
    """SciPy's number for the end of a solve; done: its iterations, where these are not those of the result."""
    if result.converged:
        return 0
    return -1 if result.status in _NEGATIVE else max(1, result.iterations if done is None else done)


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
    A : matrix, Plan or operator
        Symmetric (Hermitian) positive definite. A ``Plan`` saves the time to make one. An operator: as for
        ``Solver``.
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
    device
        As for ``solve``.

    Returns
    -------
    x : array
        Of the kind and the shape of b.
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
    result = _solved(
        "cg", A, b, x0, M, rtol=rtol, atol=atol, maxiter=maxiter, callback=callback, device=device
    )  # fmt: skip
    return result.x, _info(result)


def bicgstab(
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
    """Solve A x = b by BiCGStab, with the signature of ``scipy.sparse.linalg.bicgstab``.

    Parameters
    ----------
    A : matrix, Plan or operator
        Any square one, as for ``cg``.
    b, x0, rtol, atol, maxiter, M, callback, device
        As for ``cg``. An iteration has two products with A and two with M.

    Returns
    -------
    x : array
        Of the kind and the shape of b.
    info : int
        As for ``cg``; negative also if the recurrence cannot continue.

    Examples
    --------
    >>> import numpy as np, spmv
    >>> A = spmv.generate("convdiff2d:20,5")
    >>> x, info = spmv.bicgstab(A, A @ np.ones(400), rtol=1e-10, M="jacobi")
    >>> info, bool(abs(x - 1).max() < 1e-6)
    (0, True)
    """
    result = _solved(
        "bicgstab", A, b, x0, M, rtol=rtol, atol=atol, maxiter=maxiter, callback=callback, device=device
    )  # fmt: skip
    return result.x, _info(result)


def gmres(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    rtol: float = 1e-5,
    atol: float = 0.0,
    restart: int | None = None,
    maxiter: int | None = None,
    M: Any = None,
    callback: Callable[[Any], Any] | None = None,
    callback_type: str | None = None,
    device: Any = "auto",
) -> tuple[Any, int]:
    """Solve A x = b by restarted GMRES, with the signature of ``scipy.sparse.linalg.gmres``.

    M preconditions from the right, in SciPy from the left: here the residual that is minimised is
    that of A x = b, and M may change from iteration to iteration.

    Parameters
    ----------
    A : matrix, Plan or operator
        Any square one, as for ``cg``.
    b, x0, rtol, atol, M, device
        As for ``cg``.
    restart : int, optional
        Iterations of a cycle, at most 200. Default: 20, or the rows if they are fewer.
    maxiter : int, optional
        Cycles; with a callback of the type ``"legacy"``, iterations. Default: 10 times the rows.
    callback : function, optional
        What it is called with is told by ``callback_type``.
    callback_type : {"x", "pr_norm", "legacy"}, optional
        ``"x"``: the iterate, after each cycle. ``"pr_norm"``: the norm of the residual divided by
        that of b, after each iteration. ``"legacy"`` (the default): the same, and ``maxiter`` counts
        iterations.

    Returns
    -------
    x : array
        Of the kind and the shape of b.
    info : int
        As for ``cg``; a positive number has the unit of ``maxiter``.

    Examples
    --------
    >>> import numpy as np, spmv
    >>> A, norms = spmv.generate("convdiff2d:20,5"), []
    >>> x, info = spmv.gmres(A, A @ np.ones(400), rtol=1e-10, M="ilut", callback=norms.append, callback_type="pr_norm")
    >>> info, bool(abs(x - 1).max() < 1e-6), norms[-1] < 1e-10
    (0, True, True)
    """
    if callback_type not in (None, "x", "pr_norm", "legacy"):
        raise ValueError(f"callback_type is {callback_type!r}: it must be 'x', 'pr_norm' or 'legacy'")
    given = view(b, "b")
    rows = given.shape[0] if given.shape else 1
    steps = min(20 if restart is None else whole(restart, "restart", 1), max(rows, 1))
    of_iterations = callback is not None and callback_type in (None, "legacy")
    limit = (10 * max(rows, 1) if maxiter is None else whole(maxiter, "maxiter", 1)) * (1 if of_iterations else steps)
    seen = [0, 0.0]  # iterates, the norm of b

    def after_cycles(x: Any) -> None:
        seen[0] += 1
        if seen[0] % steps == 0:
            callback(x)  # type: ignore[misc]

    def after_iterations(iteration: int, residual: float) -> None:
        if iteration == 0:
            host = as_numpy(given) if given.on_host else downloaded(context_of("auto", given.device), given)
            seen[1] = float(np.linalg.norm(host)) or 1.0
        else:
            callback(residual / seen[1])  # type: ignore[misc]

    watch: dict[str, Any] = {}
    if callback is not None:
        watch = dict(callback=after_cycles) if callback_type == "x" else dict(on_residual=after_iterations)
    result = _solved(
        "gmres", A, b, x0, M, rtol=rtol, atol=atol, maxiter=limit, restart=steps, device=device, **watch
    )  # fmt: skip
    if callback is not None and callback_type == "x" and seen[0] % steps:  # the cycle that the solve ended in
        callback(result.x)
    return result.x, _info(result, None if of_iterations else -(-result.iterations // steps))


def minres(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    rtol: float = 1e-5,
    shift: float = 0.0,
    maxiter: int | None = None,
    M: Any = None,
    callback: Callable[[Any], Any] | None = None,
    show: bool = False,
    check: bool = False,
    device: Any = "auto",
) -> tuple[Any, int]:
    """Solve A x = b, or (A - shift I) x = b, by MINRES, with the signature of ``scipy.sparse.linalg.minres``.

    Parameters
    ----------
    A : matrix, Plan or operator
        Real and symmetric, as for ``cg``, and of either sign.
    b, x0, maxiter, M, callback, device
        As for ``cg``. M must be symmetric positive definite.
    rtol : float, optional
        Success means ``norm(b - A x) <= rtol * norm(b)``. In SciPy, rtol is relative to estimates of
        ``norm(A) * norm(x)``.
    shift : float, optional
        Not 0: solve (A - shift I) x = b. A matrix on a GPU must be a ``Plan`` then.
    show : bool, optional
        True: print the norms of the residual.
    check : bool, optional
        True: also check that an M which is no name is symmetric. That A is symmetric is always checked.

    Returns
    -------
    x : array
        Of the kind and the shape of b.
    info : int
        As for ``cg``.

    Examples
    --------
    >>> import numpy as np, spmv
    >>> A = spmv.generate("poisson2d:20")
    >>> x, info = spmv.minres(A, A @ np.ones(400) - 2.5, shift=2.5, rtol=1e-10)
    >>> info, bool(abs(x - 1).max() < 1e-6)
    (0, True)
    """

    def tell(iteration: int, residual: float) -> None:
        if iteration <= 10 or iteration % 10 == 0:
            print(f"{iteration:8d} {residual:14.7e}")

    shift = number(shift, "shift", signed=True)
    if shift:
        A, device = _shifted(A, shift, device)
    if check and M is not None and not isinstance(M, str):
        _check_symmetric(M, b)
    if show:
        print("minres: iteration, norm of the residual")
    result = _solved(
        "minres", A, b, x0, M, rtol=rtol, maxiter=maxiter, callback=callback, device=device,
        on_residual=tell if show else None,
    )  # fmt: skip
    if show:
        print(f"minres: {result.message or 'the tolerance is reached'}")
    return result.x, _info(result)


class _Shifted:
    """The operator A - shift I."""

    def __init__(self, A: Any, shift: float) -> None:
        self._of, self._shift, self.shape, self.dtype = A, shift, A.shape, getattr(A, "dtype", None)

    def matvec(self, x: Any) -> Any:
        return self._of.matvec(x) - self._shift * x


def _shifted(A: Any, shift: float, device: Any) -> tuple[Any, Any]:
    """A - shift I, and the device for it."""
    if is_operator(A):
        return _Shifted(A, shift), A.context if isinstance(A, Plan) else device
    matrix, _, _ = take(A, lambda where: context_of(device, where))
    if not matrix.data.on_host:
        raise NotImplementedError("shift: A is on a GPU: pass spmv.Plan(A), or A with the shift in it")
    rows, nnz = matrix.shape[0], matrix.nnz
    data, col, indptr = as_numpy(matrix.data)[:nnz].copy(), as_numpy(matrix.indices)[:nnz], as_numpy(matrix.indptr)
    row = np.repeat(np.arange(rows), np.diff(indptr))
    there = np.flatnonzero(row == col)
    found, first = np.unique(row[there], return_index=True)  # of repeated entries one
    data[there[first]] -= shift
    missing = np.setdiff1d(np.arange(min(matrix.shape)), found)
    at = indptr[missing] + np.bincount(row[col < row], minlength=rows)[missing]
    data, col = np.insert(data, at, -shift), np.insert(col, at, missing)
    indptr = np.r_[0, np.cumsum(np.diff(indptr) + np.bincount(missing, minlength=rows))]
    return CSR(data, col, indptr, matrix.shape), device


def _check_symmetric(M: Any, b: Any) -> None:
    """Raise a ValueError if (M b)'(M b) and b'(M M b) differ by more than rounding errors, as SciPy."""
    r = np.asarray(b, np.float64).reshape(-1) if view(b, "b").kind == "numpy" else b.reshape(-1)
    multiply = multiplication_of(M)
    y = multiply(r)
    one, other = float((y * y).sum()), float((r * multiply(y)).sum())
    unit = 1.2e-7 if "32" in str(y.dtype) else 2.2e-16
    if not abs(one - other) <= math.cbrt(unit) * (one + unit):
        raise ValueError("M is not symmetric: minres needs a symmetric preconditioner")

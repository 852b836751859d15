# SPDX-License-Identifier: BSD-3-Clause
"""Eigenvalues of symmetric matrices and singular values, with the signatures of SciPy."""

from __future__ import annotations

from typing import Any, Callable

import numpy as np

from . import _core
from ._arrays import View, check_finite, empty, number, on_device, raise_not_finite, taken, whole
from ._context import CODES, Context, context_of
from ._matrix import CONTEXT_MEMORY, HOST_MEMORY, Taken, check_values, downloaded, take
from ._solve import _end

_SMALLEST, _LARGEST, _MAGNITUDE, _NEAR = range(4)
_WHICH = {"LM": _MAGNITUDE, "LA": _LARGEST, "SA": _SMALLEST, "SM": _SMALLEST}


class EigenError(RuntimeError):
    """Not all pairs have converged.

    ``eigenvalues`` and ``eigenvectors`` are those that have, as SciPy's ``ArpackNoConvergence`` has
    them; ``pairs`` has a dictionary for each pair wanted, also with its residual and bounds.
    """

    def __init__(self, message: str, eigenvalues: Any, eigenvectors: Any, pairs: list[dict[str, Any]]) -> None:
        super().__init__(message)
        self.eigenvalues, self.eigenvectors, self.pairs = eigenvalues, eigenvectors, pairs


class _Problem:
    """A matrix, and what all calls with it share."""

    def __init__(self, A: Any, device: Any) -> None:
        self.matrix, self.dtype, self.context = take(A, lambda where: context_of(device, where), None, None, False)
        check_values(self.matrix)

    def parts(self, matrix: Taken) -> Any:
        borrow = matrix.device != "cpu" or not self.context.is_cuda
        return matrix.tuple(CONTEXT_MEMORY if borrow else HOST_MEMORY)

    def vectors(self, rows: int, k: int) -> tuple[View, View]:
        """The array that the caller gets, and the one that the library uses."""
        result = empty(self.matrix.data, (rows, k), self.dtype, self.context)
        if self.context.is_cuda and result.on_host:
            return result, on_device(result, "vectors", self.context)
        return result, result

    def solve(self, k: int, which: int, *, rows: int, other: int = 0, starts: int = 0, mass: Any = None, shift: float = 0.0,
              solver: str = "auto", precond: str = "auto", tol: float = 0.0, maxiter: Any = None, v0: Any = None,
              on_residual: Any = None) -> tuple[str, str, list[dict[str, Any]], Any, Any]:  # fmt: skip
        """Status, message, pairs, vectors, and the left singular vectors if ``other`` rows of them are wanted."""
        context: Context = self.context
        start = None
        if v0 is not None:
            start, given = taken(v0, "v0", self.dtype, context)
            length = starts or rows
            if len(given.shape) not in (1, 2) or given.shape[0] != length:
                raise ValueError(f"v0 has the shape {given.shape}, a start has {length} numbers")
            check_finite(start if start.on_host else given, "v0")
        x, target = self.vectors(rows, k)
        u, target_u = self.vectors(other, k) if other else (None, None)
        status, message, pairs = _core.eigs(
            context._handle,
            self.parts(self.matrix),
            None if mass is None else self.parts(mass),
            str(solver),
            str(precond),
            CODES[self.dtype],
            k,
            which,
            shift,
            tol if tol > 0 else (1e-5 if np.finfo(self.dtype).eps > 1e-10 else 1e-10),
            0 if maxiter is None else whole(maxiter, "maxiter", 1, 2**63 - 1),
            0 if start is None else (start.shape[1] if len(start.shape) == 2 else 1),
            0 if start is None else start.address,
            target.address,
            0 if target_u is None else target_u.address,
            int(other > 0),
            on_residual,
        )
        if status == "SPMV_ERROR_NOT_FINITE" and not self.matrix.data.on_host:
            raise_not_finite(downloaded(context, self.matrix.data), "A.data")
        like = self.matrix.data
        return status, message, pairs, _end(x, target, like, context), (
            None if u is None or target_u is None else _end(u, target_u, like, context)
        )


def _sorted(values: np.ndarray, vectors: Any, order: np.ndarray) -> tuple[np.ndarray, Any]:
    return values[order], vectors if vectors is None else vectors[:, order.tolist()]


def _pairs(k: Any, most: int) -> int:
    k = whole(k, "k", 1)
    if k > most:
        raise ValueError(f"k is {k}: there are {most} pairs")
    return k


def eigsh(
    A: Any,
    k: int = 6,
    M: Any = None,
    sigma: float | None = None,
    which: str = "LM",
    v0: Any = None,
    ncv: int | None = None,
    maxiter: int | None = None,
    tol: float = 0,
    return_eigenvectors: bool = True,
    Minv: Any = None,
    OPinv: Any = None,
    mode: str = "normal",
    rng: Any = None,
    *,
    solver: str = "auto",
    precond: str = "auto",
    on_residual: Callable[[int, float], Any] | None = None,
    device: Any = "auto",
) -> Any:
    """k eigenvalues of a symmetric or Hermitian matrix, with the signature of ``scipy.sparse.linalg.eigsh``.

    The smallest (``which="SA"``) are found with a preconditioner, amg where it can be made, in some 20
    iterations where ``eigsh`` of SciPy takes hundreds; values of any multiplicity are complete.

    Parameters
    ----------
    A : matrix
        As for ``Plan``, symmetric (Hermitian if complex).
    k : int, optional
        From 1 to 256, at most the rows. Default 6.
    M : matrix, optional
        Symmetric positive definite: A x = w M x.
    sigma : float, optional
        Find the eigenvalues nearest to it, by solves with A - sigma M.
    which : str, optional
        ``"LM"``: of largest modulus (the default); ``"LA"``: the largest; ``"SA"``: the smallest;
        ``"SM"``: of smallest modulus. With sigma only ``"LM"``: the nearest.
    v0 : array, optional
        Start vector, or several as columns.
    ncv, rng
        Accepted, without effect: the basis is chosen, and start vectors are always the same.
    maxiter : int, optional
        Iterations (of lanczos restarts). Default 1000.
    tol : float, optional
        Tolerance of residuals relative to the eigenvalue; 0 (the default): 1e-10, in single precision
        1e-5.
    return_eigenvectors : bool, optional
        Default True.
    Minv, OPinv, mode
        Not supported: must be None, None, ``"normal"``.
    solver : str, optional
        ``"auto"`` (the default), ``"lobpcg"``, ``"lanczos"`` or ``"dense"``.
    precond : str, optional
        Of lobpcg, a name as for ``Solver``. Default ``"auto"``.
    on_residual : function, optional
        Called with the iteration and the largest residual. It stops the solve by returning a true
        value.
    device
        As for ``Plan``.

    Returns
    -------
    w : NumPy array
        The eigenvalues, ascending.
    v : array
        The eigenvectors as columns, of the kind of A's arrays; only with return_eigenvectors.

    Examples
    --------
    >>> import spmv
    >>> w, v = spmv.eigsh(spmv.generate("poisson2d:30"), 4, which="SA")
    >>> w.round(6).tolist(), v.shape
    ([0.020523, 0.051201, 0.051201, 0.08188], (900, 4))
    """
    if Minv is not None or OPinv is not None or mode != "normal":
        raise NotImplementedError("Minv, OPinv and mode are not supported: solves are made by the library")
    if which not in _WHICH:
        raise (NotImplementedError if which == "BE" else ValueError)(
            f"which is {which!r}: there are {', '.join(map(repr, _WHICH))}"
        )
    if sigma is not None and which != "LM":
        raise NotImplementedError('with sigma, which must be "LM": the eigenvalues nearest to sigma')
    problem = _Problem(A, device)
    rows = problem.matrix.shape[0]
    if problem.matrix.shape[1] != rows:
        raise ValueError(f"A has the shape {tuple(problem.matrix.shape)}: it must be square; see svds")
    k = _pairs(k, rows)
    mass = None
    if M is not None:
        mass = _Problem(M, device).matrix
        if tuple(mass.shape) != (rows, rows):
            raise ValueError(f"M has the shape {tuple(mass.shape)}, A has {rows} rows")
    options: dict[str, Any] = dict(rows=rows, mass=mass, tol=number(tol, "tol"), maxiter=maxiter, v0=v0,
                                   on_residual=on_residual)  # fmt: skip
    status, message, pairs, vectors, _ = problem.solve(
        k, _WHICH[which] if sigma is None else _NEAR, shift=0.0 if sigma is None else number(sigma, "sigma", signed=True),
        solver=solver, precond=precond, **options,
    )  # fmt: skip
    if which == "SM" and status == "SPMV_OK" and pairs[0]["value"] < -pairs[0]["error_bound"]:  # A is indefinite
        status, message, pairs, vectors, _ = problem.solve(k, _NEAR, **options)
    values = np.array([p["value"] for p in pairs], np.finfo(problem.dtype).dtype)
    if status != "SPMV_OK":
        good = np.flatnonzero([p["status"] == "SPMV_OK" for p in pairs])
        raise EigenError(message, *_sorted(values, vectors, good), pairs)
    values, vectors = _sorted(values, vectors, np.argsort(values, kind="stable"))
    return (values, vectors) if return_eigenvectors else values


def svds(
    A: Any,
    k: int = 6,
    ncv: int | None = None,
    tol: float = 0,
    which: str = "LM",
    v0: Any = None,
    maxiter: int | None = None,
    return_singular_vectors: bool | str = True,
    solver: str = "arpack",
    rng: Any = None,
    options: dict[str, Any] | None = None,
    *,
    on_residual: Callable[[int, float], Any] | None = None,
    device: Any = "auto",
) -> Any:
    """k largest singular values of a matrix of any size, with the signature of ``scipy.sparse.linalg.svds``.

    Parameters
    ----------
    A : matrix
        As for ``Plan``.
    k : int, optional
        From 1 to 256, at most the smaller size of A. Default 6.
    ncv, rng, options
        Accepted, without effect.
    tol, maxiter
        As for ``eigsh``.
    which : str, optional
        Must be ``"LM"``, the largest.
    v0 : array, optional
        Start vector, with the smaller size of A.
    return_singular_vectors : bool or str, optional
        True (the default), False, ``"u"`` or ``"vh"``.
    solver : str, optional
        ``"arpack"`` (the default) and ``"auto"``: chosen by the library; ``"lanczos"``, ``"dense"``.
    on_residual, device
        As for ``eigsh``.

    Returns
    -------
    u : array
        Left singular vectors as columns, of the kind of A's arrays; None with ``"vh"``.
    s : NumPy array
        Singular values, ascending as in SciPy.
    vh : array
        Right singular vectors, conjugated, as rows; None with ``"u"``.

    Examples
    --------
    >>> import numpy as np, scipy.sparse as sp, spmv
    >>> u, s, vh = spmv.svds(sp.diags_array([3.0, 1.0, 4.0, 2.0], format="csr"), 2)
    >>> s.round(6).tolist(), u.shape, vh.shape
    ([3.0, 4.0], (4, 2), (2, 4))
    """
    if which != "LM":
        raise NotImplementedError(f'which is {which!r}: only "LM" is supported, the largest singular values')
    problem = _Problem(A, device)
    rows, cols = problem.matrix.shape
    k = _pairs(k, min(rows, cols))
    status, message, pairs, right, left = problem.solve(
        k, _LARGEST, rows=cols, other=rows, starts=min(rows, cols), tol=number(tol, "tol"), maxiter=maxiter, v0=v0,
        solver="auto" if solver == "arpack" else solver, on_residual=on_residual,
    )  # fmt: skip
    values = np.array([p["value"] for p in pairs], np.finfo(problem.dtype).dtype)
    if status != "SPMV_OK":
        good = np.flatnonzero([p["status"] == "SPMV_OK" for p in pairs])
        raise EigenError(message, *_sorted(values, right, good), pairs)
    order = np.argsort(values, kind="stable")
    if return_singular_vectors is False:
        return values[order]
    left, right = _sorted(values, left, order)[1], _sorted(values, right, order)[1]
    transposed = right.T.conj() if problem.dtype.kind == "c" else right.T
    return (
        None if return_singular_vectors == "vh" else left,
        values[order],
        None if return_singular_vectors == "u" else transposed,
    )

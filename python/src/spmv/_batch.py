# SPDX-License-Identifier: BSD-3-Clause
"""Batches: many small systems whose matrices have one sparsity pattern."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from . import _core
from ._arrays import View, check_out, empty, fill, finished, number, on_device, overlap, taken, view, whole
from ._context import CODES, Context, context_of, type_of
from ._matrix import CONTEXT_MEMORY, HOST_MEMORY, take
from ._plan import _writable


@dataclass(frozen=True)
class BatchResult:
    """The outcome of a batch of solves.

    All but ``x`` and ``message`` are arrays with an element for each system. ``status`` has names such as
    "SPMV_OK" and "SPMV_ERROR_BREAKDOWN"; ``true_residual`` is the norm of b - A x, computed for the x
    returned, and ``converged`` means that it is within ``tolerance``. ``message`` names the first system
    that failed; "" if none did.
    """

    x: Any = field(repr=False)
    converged: np.ndarray = field(repr=False)
    status: np.ndarray = field(repr=False)
    iterations: np.ndarray = field(repr=False)
    restarts: np.ndarray = field(repr=False)
    norm_b: np.ndarray = field(repr=False)
    tolerance: np.ndarray = field(repr=False)
    recurrence_residual: np.ndarray = field(repr=False)
    true_residual: np.ndarray = field(repr=False)
    message: str


class Batch:
    """A sparsity pattern prepared for products and solves with many sets of values.

    On a GPU, one kernel solves all systems. A system has the same bits whatever the others are, and on
    every device.

    Parameters
    ----------
    A : CSR matrix, or tuple with ``shape``
        The pattern, which is copied; its values are not used. Other formats must be converted, because the
        values of a batch have the order of ``A.data``.
    solver : str
        "auto" (bicgstab), "cg" (Hermitian positive definite matrices), "bicgstab" or "gmres".
    precond : str
        "auto" (jacobi, without it for a system with a zero on the diagonal), "none" or "jacobi".
    rtol, atol : float
        A system is solved if ||b - A x|| <= max(rtol ||b||, atol). rtol None: 1e-8, in single precision 1e-4.
    maxiter : int, optional
        The limit of iterations. Default: 10 times the rows, at least 100.
    restart : int, optional
        gmres: iterations between restarts. Default 50.
    dtype : numpy.dtype, optional
        float64, float32, complex128 or complex64. Default: that of ``A.data``.
    device, shape
        As for ``Plan``.

    Examples
    --------
    >>> import numpy as np, spmv
    >>> from scipy.sparse import csr_array
    >>> A = csr_array(np.array([[2.0, 1], [0, 4]]))
    >>> batch = spmv.Batch(A)
    >>> values = np.array([[2.0, 1, 4], [1, 1, 1]])
    >>> batch.multiply(values, np.array([[1.0, 1], [3, 2]]))
    array([[3., 4.],
           [5., 2.]])
    >>> result = batch.solve(values, np.array([[3.0, 4], [5, 2]]))
    >>> result.x.round(6)
    array([[1., 1.],
           [3., 2.]])
    >>> bool(result.converged.all())
    True
    """

    def __init__(
        self,
        A: Any,
        *,
        solver: str = "auto",
        precond: str = "auto",
        rtol: float | None = None,
        atol: float = 0.0,
        maxiter: int | None = None,
        restart: int | None = None,
        dtype: Any = None,
        device: Any = "auto",
        shape: tuple[int, int] | None = None,
    ) -> None:
        form = getattr(A, "format", "csr")
        if form != "csr":
            raise TypeError(f"the pattern has the format {form}: convert it to CSR, whose order values have")
        matrix, _, context = take(A, lambda where: context_of(device, where), shape)
        self._dtype = type_of(dtype if dtype is not None else matrix.data.dtype)
        if self._dtype not in CODES or self._dtype.kind not in "fc":
            raise TypeError(f"batches are in float64, float32, complex128 and complex64, not in {self._dtype}")
        single = self._dtype in (np.dtype("float32"), np.dtype("complex64"))
        self._context = context
        self.shape, self.nnz = matrix.shape, matrix.nnz
        there = matrix.device == ("cpu" if not context.is_cuda else context.device)
        if context.is_cuda and there and matrix.data.stream is not None:
            context._use_stream(*matrix.data.stream)
        parts = list(matrix.tuple(CONTEXT_MEMORY if there else HOST_MEMORY))
        parts[6] = 0
        settings = (
            solver,
            precond,
            CODES[self._dtype],
            number(rtol, "rtol") if rtol is not None else 1e-4 if single else 1e-8,
            number(atol, "atol"),
            whole(maxiter, "maxiter", 1) if maxiter is not None else 0,
            whole(restart, "restart", 1) if restart is not None else 0,
        )
        self._handle = _core.batch(context._handle, tuple(parts), settings)

    @property
    def context(self) -> Context:
        """The context that it runs on."""
        return self._context

    @property
    def dtype(self) -> np.dtype:
        """The type of values and vectors."""
        return self._dtype

    def multiply(self, values: Any, X: Any, out: Any = None) -> Any:
        """Compute the products y_k = A_k x_k.

        Parameters
        ----------
        values : array
            A row of ``nnz`` values for each matrix, in the order of ``A.data``.
        X : array
            A row of ``shape[1]`` numbers for each matrix.
        out : array, optional
            Receives the result, which is also returned.

        Returns
        -------
        array
            A row of ``shape[0]`` numbers for each matrix, of the kind of X.
        """
        a, x, given = self._inputs(values, X, "X", self.shape[1])
        result, target = self._result(given, (x.shape[0], self.shape[0]), out)
        if overlap(a, target) or overlap(x, target):
            raise ValueError("out overlaps values or X")
        stream = x.stream[0] if x.stream else 0
        _core.batch_apply(self._handle, a.address, x.address, target.address, x.shape[0], stream)
        return self._ended(result, target, given, out)

    def solve(self, values: Any, B: Any, x0: Any = None, out: Any = None) -> BatchResult:
        """Solve the systems A_k x_k = b_k.

        Parameters
        ----------
        values : array
            A row of ``nnz`` values for each matrix, in the order of ``A.data``.
        B : array
            A row of ``shape[0]`` numbers for each system.
        x0 : array, optional
            The start, with the shape of B. Default: 0.
        out : array, optional
            Receives x.

        Returns
        -------
        BatchResult
            ``x``, of the kind and shape of B, and the status of each system. A system that fails raises nothing.
        """
        a, b, given = self._inputs(values, B, "B", self.shape[0])
        result, target = self._result(given, b.shape, out)
        if overlap(a, target) or overlap(b, target):
            raise ValueError("out overlaps values or B")
        if x0 is not None:
            start = view(x0, "x0", self._context)
            if start.shape != b.shape:
                raise ValueError(f"x0 has the shape {start.shape}, B has {b.shape}")
            if start.dtype.kind not in ("biufc" if self._dtype.kind == "c" else "biuf"):
                raise TypeError(f"x0 has the type {start.dtype}, but the solve is in {self._dtype}: pass x0.real")
        fill(target, 0 if x0 is None else x0, self._context)
        count = b.shape[0]
        integers, reals = np.zeros((2, count), np.int64), np.zeros((4, count))
        stream = b.stream[0] if b.stream else 0
        names, message = _core.batch_solve(
            self._handle, a.address, b.address, target.address, count, stream, integers.ctypes.data, reals.ctypes.data
        )
        status = np.array(names, dtype=object)
        x = self._ended(result, target, given, out)
        iterations, restarts = integers
        norm_b, tolerance, recurrence, true = reals
        converged = status == "SPMV_OK"
        return BatchResult(x, converged, status, iterations, restarts, norm_b, tolerance, recurrence, true, message)

    def _inputs(self, values: Any, X: Any, name: str, length: int) -> tuple[View, View, View]:
        """The values, the vectors, and the caller's view of these."""
        (a, _), (x, given) = (taken(v, n, self._dtype, self._context) for v, n in ((values, "values"), (X, name)))
        for v, n, elements in ((a, "values", self.nnz), (x, name, length)):
            if len(v.shape) != 2 or v.shape[1] != elements:
                raise ValueError(f"{n} has the shape {v.shape}, (systems, {elements}) is needed")
        if a.shape[0] != x.shape[0]:
            raise ValueError(f"values has {a.shape[0]} rows, {name} has {x.shape[0]}")
        return a, x, given

    def _result(self, given: View, shape: tuple[int, ...], out: Any) -> tuple[View, View]:
        """The view of the result, and that of the memory of the context in which it is computed."""
        context = self._context
        if out is None:
            result = empty(given, shape, self._dtype, context)
        else:
            result = check_out(out, shape, self._dtype, given, context)
        return result, on_device(result, "out", context) if context.is_cuda and result.on_host else result

    def _ended(self, result: View, target: View, given: View, out: Any) -> Any:
        if target is not result and result.bytes:
            _core.download(self._context._handle, target.address, _writable(result))
        return finished(result, given) if out is None else out

    def __repr__(self) -> str:
        return (
            f"<spmv.Batch: {self.shape[0]} x {self.shape[1]}, {self.nnz} entries, "
            f"{self._dtype} on {self._context.device}>"
        )

    def __reduce__(self) -> Any:
        raise TypeError("a batch cannot be pickled or copied: make one where it is needed")


def batch_multiply(A: Any, values: Any, X: Any, out: Any = None, **options: Any) -> Any:
    """Compute the products y_k = A_k x_k of matrices with the pattern of A: ``Batch(A).multiply``.

    ``options`` are those of ``Batch``.

    Examples
    --------
    >>> import numpy as np, spmv
    >>> A = spmv.generate("diagonal:2")
    >>> spmv.batch_multiply(A, np.array([[1.0, 2], [3, 4]]), np.ones((2, 2)))
    array([[1., 2.],
           [3., 4.]])
    """
    return _of(A, values, options).multiply(values, X, out)


def batch_solve(A: Any, values: Any, B: Any, x0: Any = None, out: Any = None, **options: Any) -> BatchResult:
    """Solve the systems A_k x_k = b_k, whose matrices have the pattern of A: ``Batch(A).solve``.

    ``options`` are those of ``Batch``. The default of ``dtype`` is the type of ``values``. For several calls with
    one pattern, a ``Batch`` prepares it once.

    Examples
    --------
    >>> import numpy as np, spmv
    >>> A = spmv.generate("poisson2d:10")
    >>> values = A.data * np.array([[1.0], [2], [3]])
    >>> result = spmv.batch_solve(A, values, np.ones((3, 100)), solver="cg")
    >>> result.status
    array(['SPMV_OK', 'SPMV_OK', 'SPMV_OK'], dtype=object)
    """
    return _of(A, values, options).solve(values, B, x0, out)


def _of(A: Any, values: Any, options: dict[str, Any]) -> Batch:
    """The batch for one call: its type is that of the values, integers as float64."""
    if options.get("dtype") is None:
        given = view(values, "values").dtype
        options = {**options, "dtype": given if given in CODES and given.kind in "fc" else np.float64}
    return Batch(A, **options)

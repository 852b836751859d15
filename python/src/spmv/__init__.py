# SPDX-License-Identifier: BSD-3-Clause
"""Sparse matrix-vector products and solvers, on a CPU (OpenMP) and on an NVIDIA GPU.

>>> import numpy as np, spmv
>>> A = spmv.generate("poisson2d:100")
>>> plan = spmv.Plan(A)
>>> y = plan @ np.ones(10000)
>>> x, info = spmv.cg(A, y)
>>> info
0

Matrices are those of SciPy, CuPy and PyTorch, vectors the arrays of NumPy, CuPy, PyTorch and JAX.
Nothing is copied where memory and types agree, and results are arrays of the same kind.
"""

from . import _library  # noqa: F401  the first to load the library
from ._batch import Batch, BatchResult, batch_multiply, batch_solve
from ._context import Context, cuda_built
from ._eigen import EigenError, eigsh, svds
from ._files import generate, read, write
from ._group import Group, GroupMatrix, GroupSolver
from ._iterative import bicgstab, cg, gmres, minres
from ._least_squares import LeastSquaresResult, least_squares, lsmr, lsqr
from ._matrix import CSR
from ._pattern import Pattern
from ._plan import Plan
from ._primitives import (
    combine,
    compact,
    dot,
    expand,
    gather,
    histogram,
    map,
    reduce,
    scan,
    scatter,
    segmented_reduce,
    segmented_scan,
    sort,
)
from ._sddmm import SDDMM
from ._solve import AccuracyWarning, Inertia, Result, SlogDet, Solver, solve
from ._spgemm import MultiplyPlan, SpgemmPlan, multiply, multiply_triple, spgemm, spgemm_triple
from ._version import __version__

__all__ = [
    "AccuracyWarning",
    "Batch",
    "BatchResult",
    "CSR",
    "Context",
    "EigenError",
    "Group",
    "GroupMatrix",
    "GroupSolver",
    "Inertia",
    "LeastSquaresResult",
    "MultiplyPlan",
    "Pattern",
    "Plan",
    "Result",
    "SDDMM",
    "SlogDet",
    "Solver",
    "SpgemmPlan",
    "__version__",
    "batch_multiply",
    "batch_solve",
    "bicgstab",
    "cg",
    "combine",
    "compact",
    "cuda_built",
    "dot",
    "eigsh",
    "expand",
    "gather",
    "generate",
    "gmres",
    "histogram",
    "least_squares",
    "lsmr",
    "lsqr",
    "map",
    "minres",
    "multiply",
    "multiply_triple",
    "read",
    "reduce",
    "scan",
    "scatter",
    "segmented_reduce",
    "segmented_scan",
    "solve",
    "sort",
    "spgemm",
    "spgemm_triple",
    "svds",
    "write",
]

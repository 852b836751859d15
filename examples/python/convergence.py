#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Plots the residual of conjugate gradients for several preconditioners.

usage: convergence.py [MATRIX [PICTURE]]

MATRIX is a Matrix Market file or a text such as poisson2d:100 (default diffusion2d:100,1000),
PICTURE a file (default convergence.svg).
"""

import os
import sys

import matplotlib
import numpy as np
import spmv

matplotlib.use("Agg")
from matplotlib import pyplot as plt  # noqa: E402

source = sys.argv[1] if len(sys.argv) > 1 else "diffusion2d:100,1000"
picture = sys.argv[2] if len(sys.argv) > 2 else "convergence.svg"
A = spmv.read(source) if os.path.exists(source) else spmv.generate(source)
b = A @ np.ones(A.shape[1])
for name in ("none", "jacobi", "chebyshev", "ic0"):
    residuals: list[float] = []
    result = spmv.solve(A, b, preconditioner=name, rtol=1e-10, on_residual=lambda k, r, to=residuals: to.append(r))
    print(f"{name}: {result.iterations} iterations, {result.solve_seconds:.3g} s, {result.message or 'converged'}")
    plt.semilogy(np.array(residuals) / result.norm_b, label=name)
plt.xlabel("iteration")
plt.ylabel("norm of the residual / norm of b")
plt.title(source)
plt.legend()
plt.savefig(picture)
print(picture)

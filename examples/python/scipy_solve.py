#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A matrix of SciPy: products, conjugate gradients, new values, SciPy's own solvers."""

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg as la
import spmv

n = 200
line = sp.diags_array([-np.ones(n - 1), 2 * np.ones(n), -np.ones(n - 1)], offsets=[-1, 0, 1])
A = sp.csr_array(sp.kronsum(line, line))
x = np.random.default_rng(1).standard_normal(n * n)

plan = spmv.Plan(A)  # uses the arrays of A, examines them once
b = plan @ x
print(plan)
print("product: largest difference to SciPy", abs(b - A @ x).max())

solution, info = spmv.cg(A, b, rtol=1e-10, M="auto")  # as scipy.sparse.linalg.cg
print("cg: info", info, "largest error", abs(solution - x).max())

solver = spmv.Solver(A, preconditioner="ic0", rtol=1e-10)  # keeps plan and preconditioner
for step in (1, 2):
    solver.update_values(A.data * step)
    result = solver.solve(b)
    print(f"step {step}: {result.iterations} iterations, true residual {result.true_residual:.3g}")

value = la.eigsh(plan, k=1, which="LA", return_eigenvectors=False)[0]  # a plan is a LinearOperator
print("largest eigenvalue", value)

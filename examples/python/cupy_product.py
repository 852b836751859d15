#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A matrix and vectors of CuPy on a GPU: nothing is copied, work goes to CuPy's current stream."""

import cupy as cp
import spmv
from cupyx.scipy.sparse import csr_matrix

host = spmv.generate("poisson2d:1000")
A = csr_matrix((cp.asarray(host.data), cp.asarray(host.indices), cp.asarray(host.indptr)), shape=host.shape)
plan = spmv.Plan(A)
print(plan)
with cp.cuda.Stream(non_blocking=True):
    x = cp.random.standard_normal(A.shape[1])
    y = cp.empty(A.shape[0])
    plan.apply(x, out=y)
    print("largest difference to CuPy", float(abs(y - A @ x).max()))
    solution, info = spmv.cg(A, y, rtol=1e-8, M="jacobi")
    print("cg: info", info, "relative residual", float(cp.linalg.norm(y - A @ solution) / cp.linalg.norm(y)))

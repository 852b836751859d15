#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A sparse tensor of PyTorch, on a GPU if there is one: products into given tensors, a CUDA graph."""

import spmv
import torch

device = "cuda" if torch.cuda.is_available() and spmv.cuda_built() else "cpu"
host = spmv.generate("poisson2d:500")
parts = (torch.from_numpy(host.indptr), torch.from_numpy(host.indices), torch.from_numpy(host.data))
A = torch.sparse_csr_tensor(*parts, size=host.shape).to(device)
plan = spmv.Plan(A)
print(plan)
x = torch.rand(A.shape[1], dtype=torch.float64, device=device)
y = plan @ x
print("largest difference to PyTorch", float((y - A.to_sparse_coo() @ x).abs().max()))
if device == "cuda":
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        plan.apply(x, out=y)
    x.fill_(1)
    graph.replay()
    print("from a graph", float((y - A.to_sparse_coo() @ x).abs().max()))
result = spmv.solve(A, y, rtol=1e-8)
print(f"{result.iterations} iterations with {result.preconditioner}, true residual {result.true_residual:.3g}")

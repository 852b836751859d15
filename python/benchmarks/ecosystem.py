#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Times of the functions of docs/ecosystem.md beside what scikit-fem, NetworkX and scikit-learn use by default.

usage: ecosystem.py [small]
"""

import pathlib
import re
import sys
import time

import spmv  # isort: skip  before packages that load libgomp: docs/python.md, Threads

import networkx as nx
import numpy as np
import skfem
import sklearn.manifold
import sklearn.neighbors

SMALL = "small" in sys.argv[1:]
print(f"spmv {spmv.__version__}, scikit-fem {skfem.__version__}, NetworkX {nx.__version__}, scikit-learn {sklearn.__version__}")
page = pathlib.Path(__file__).resolve().parents[2] / "docs" / "ecosystem.md"
space = {}
for block in re.findall(r"```python\n(.*?)```", page.read_text(), re.S):
    exec(compile(block, str(page), "exec"), space)


def compare(what, theirs, ours, difference):
    """Prints the best times of two calls of each in turn, elapsed and of the processor, and how far the results are apart."""
    best, results = np.full((2, 2), np.inf), [None, None]
    for _ in range(2):
        for i, call in enumerate((theirs, ours)):
            begin = time.perf_counter(), time.process_time()
            results[i] = call()
            best[i] = np.minimum(best[i], (time.perf_counter() - begin[0], time.process_time() - begin[1]))
    print(what)
    for name, (elapsed, processor) in zip(("default", "spmv"), best):
        print(f"  {name}: {elapsed:.3g} s, {processor:.3g} s of the processor")
    print(f"  {best[0, 0] / best[1, 0]:.1f} times, apart {difference(*results):.1e}", flush=True)


def relative(x, y):
    return np.linalg.norm(np.asarray(x) - np.asarray(y)) / np.linalg.norm(np.asarray(x))


def span(X, Y):
    """How far the columns of Y are from the space of those of X."""
    Q, P = np.linalg.qr(X)[0], np.linalg.qr(Y)[0]
    return np.linalg.norm(P - Q @ (Q.T @ P), 2)


basis = skfem.Basis(skfem.MeshTet.init_tensor(*3 * [np.linspace(0, 1, 8 if SMALL else 25)]), skfem.ElementTetP1())
A, b = space["laplace"].assemble(basis), space["unit_load"].assemble(basis)
system = skfem.condense(A, b, D=basis.get_dofs())
solver = space["by_spmv"](rtol=1e-10)
compare(f"scikit-fem: Poisson, {system[0].shape[0]} unknowns, tetrahedra", lambda: skfem.solve(*system),
        lambda: skfem.solve(*system, solver=solver), relative)  # fmt: skip

web = nx.scale_free_graph(1000 if SMALL else 20000, seed=1)
compare(f"NetworkX: PageRank, {web.number_of_nodes()} nodes, {web.number_of_edges()} edges",
        lambda: list(nx.pagerank(web, tol=1e-10).values()), lambda: list(space["pagerank"](web, tol=1e-10).values()),
        relative)  # fmt: skip

street = nx.random_geometric_graph(300 if SMALL else 2000, 0.12 if SMALL else 0.05, seed=1)
street = nx.convert_node_labels_to_integers(street.subgraph(max(nx.connected_components(street), key=len)))
compare(f"NetworkX: Fiedler vector, {street.number_of_nodes()} nodes, {street.number_of_edges()} edges",
        lambda: nx.fiedler_vector(street, seed=1)[:, None], lambda: space["fiedler_vector"](street)[1][:, None], span)  # fmt: skip

points = np.random.default_rng(1).standard_normal((500 if SMALL else 5000, 3))
affinity = sklearn.neighbors.kneighbors_graph(points, 10)
affinity = 0.5 * (affinity + affinity.T)
compare(f"scikit-learn: spectral embedding, {affinity.shape[0]} points, {affinity.nnz} entries, 8 components",
        lambda: sklearn.manifold.spectral_embedding(affinity, n_components=8, random_state=1),
        lambda: space["spectral_embedding"](affinity), span)  # fmt: skip

# SPDX-License-Identifier: BSD-3-Clause
"""The functions of docs/ecosystem.md beside the defaults of scikit-fem, NetworkX and scikit-learn."""

import pathlib
import re

import numpy as np
import pytest
import spmv

pytest.importorskip("scipy.sparse")
PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "ecosystem.md"


def functions_of(package, place):
    """What the block of the page at this place defines."""
    pytest.importorskip(package)
    if not PAGE.exists():
        pytest.skip("not in the source tree")
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.S)
    assert len(blocks) == 3
    space: dict = {}
    exec(compile(blocks[place], str(PAGE), "exec"), space)
    return space


def span(X, Y):
    """How far the columns of Y are from the space of those of X."""
    Q, P = np.linalg.qr(X)[0], np.linalg.qr(Y)[0]
    return np.linalg.norm(P - Q @ (Q.T @ P), 2)


def test_scikit_fem():
    space = functions_of("skfem", 0)
    skfem, A, b, basis = space["skfem"], space["A"], space["b"], space["basis"]
    system = skfem.condense(A, b, D=basis.get_dofs())
    np.testing.assert_allclose(space["x"], skfem.solve(*system), rtol=1e-7, atol=1e-10)
    with pytest.raises(RuntimeError, match="tolerance"):
        skfem.solve(*system, solver=space["by_spmv"](preconditioner="none", solver="cg"), maxiter=1)
    M = skfem.models.poisson.mass.assemble(basis)
    pencil = skfem.condense(A, M, D=basis.get_dofs())
    w, _ = skfem.solve(*pencil, solver=lambda K, M, **_: spmv.eigsh(K, 5, M, which="SA"))
    expected, _ = skfem.solve(*pencil, solver=skfem.utils.solver_eigen_scipy_sym(k=5, sigma=0))
    np.testing.assert_allclose(w, np.sort(expected), rtol=1e-7)


def test_networkx():
    space = functions_of("networkx", 1)
    nx = space["nx"]
    for web in (nx.scale_free_graph(200, seed=1), nx.path_graph(20, create_using=nx.DiGraph), nx.karate_club_graph()):
        ours, theirs = space["pagerank"](web, tol=1e-10), nx.pagerank(web, tol=1e-10)
        assert list(ours) == list(theirs) and sum(ours.values()) == pytest.approx(1)
        np.testing.assert_allclose(list(ours.values()), list(theirs.values()), rtol=1e-8)
    with pytest.raises(nx.PowerIterationFailedConvergence):
        space["pagerank"](web, tol=1e-12, max_iter=2)
    graph = nx.grid_2d_graph(20, 9)
    value, vector = space["fiedler_vector"](graph)
    assert value == pytest.approx(nx.algebraic_connectivity(graph, tol=1e-10), rel=1e-7)
    assert value == pytest.approx(4 * np.sin(np.pi / 40) ** 2)
    assert span(nx.fiedler_vector(graph, tol=1e-10, seed=1)[:, None], vector[:, None]) <= 1e-5


def test_scikit_learn():
    space = functions_of("sklearn", 2)
    from sklearn.cluster import KMeans
    from sklearn.manifold import spectral_embedding
    from sklearn.metrics import adjusted_rand_score
    from sklearn.neighbors import kneighbors_graph

    rng = np.random.default_rng(1)
    labels = np.repeat(np.arange(3), 80)
    points = rng.standard_normal((240, 2)) + 7 * np.array([[0, 0], [1, 0], [0, 1]])[labels]
    affinity = kneighbors_graph(points, 10) + 1e-4 * kneighbors_graph(points, 100)  # connected
    affinity = 0.5 * (affinity + affinity.T)
    ours = space["spectral_embedding"](affinity, 2)
    theirs = spectral_embedding(affinity, n_components=2, random_state=1)
    assert ours.shape == (240, 2)
    np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-5 * abs(theirs).max())
    found = KMeans(3, n_init=4, random_state=1).fit_predict(ours)
    assert adjusted_rand_score(labels, found) > 0.95

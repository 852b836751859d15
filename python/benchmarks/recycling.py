# SPDX-License-Identifier: BSD-3-Clause
"""Sequences of 50 finite-element systems, each solved from the last x, without and with recycling.

    python3 recycling.py POINTS [NAME[/PRECOND[/SOLVER]] ...]

POINTS: along a side; needs SciPy and scikit-fem.

Prints the steps and the time of the solves but the first (which may race), each the best of two runs.
"""

import sys
import time
import warnings

import numpy as np
import scipy.sparse as sp
import skfem
from scipy.spatial import Delaunay
from skfem.helpers import dot, grad
from skfem.models.poisson import laplace, mass

import spmv

STEPS = 50


def mesh(n):
    """Triangles of jittered points of the unit square."""
    rng = np.random.default_rng(7)
    x, y = np.meshgrid(np.linspace(0, 1, n), np.linspace(0, 1, n))
    points = np.c_[x.ravel(), y.ravel()]
    inner = ((points > 1e-9) & (points < 1 - 1e-9)).all(1)
    points[inner] += rng.uniform(-0.35, 0.35, (inner.sum(), 2)) / n
    triangles = Delaunay(points).simplices
    a = points[triangles]
    e, f = a[:, 1] - a[:, 0], a[:, 2] - a[:, 0]
    triangles = triangles[abs(e[:, 0] * f[:, 1] - e[:, 1] * f[:, 0]) > 1e-3 / n**2]
    return skfem.MeshTri(points.T.copy(), triangles.T.astype(np.int64).copy())


def symmetric(A):
    A = ((A + A.T) / 2).tocsr()
    A.sort_indices()
    return A


def source(p, t, width):
    return np.exp(-width * ((p[0] - 0.5 - 0.3 * np.cos(2 * np.pi * t)) ** 2 + (p[1] - 0.5 - 0.3 * np.sin(2 * np.pi * t)) ** 2))


def parts(n):
    m = mesh(n)
    basis = skfem.Basis(m, skfem.ElementTriP1())
    boundary = basis.get_dofs().all()
    inside = np.setdiff1d(np.arange(basis.N), boundary)
    return m.p, basis, boundary, inside


def heat(n, dt):
    """Implicit Euler, with a source that moves and boundary values that change. Yields (A or None, b, start)."""
    p, basis, boundary, inside = parts(n)
    K, M = laplace.assemble(basis), mass.assemble(basis)
    whole = (M + dt * K).tocsr()
    A, u = symmetric(whole[inside][:, inside]), np.zeros(basis.N)
    for k in range(STEPS):
        t = (k + 1) * dt
        given = np.sin(2 * np.pi * t) * p[0][boundary] * (1 + p[1][boundary])
        b = (M @ (u + 100 * dt * source(p, t, 200)))[inside] - whole[inside][:, boundary] @ given
        x = yield None if k else A, b, u[inside]
        u = u.copy()
        u[inside], u[boundary] = x, given


def poisson(n, speed):
    """A source that moves by `speed` of a round in each step."""
    p, basis, _, inside = parts(n)
    M, A, x = mass.assemble(basis), symmetric(laplace.assemble(basis)[inside][:, inside]), np.zeros(len(inside))
    for k in range(STEPS):
        b = (M @ (source(p, k * speed, 100) + 0.5 * np.sin(3 * k * speed) * p[0]))[inside]
        x = yield None if k else A, b, x


def unrelated(n):
    """Random right-hand sides."""
    rng, (_, basis, _, inside) = np.random.default_rng(3), parts(n)
    A, x = symmetric(laplace.assemble(basis)[inside][:, inside]), np.zeros(len(inside))
    for k in range(STEPS):
        x = yield None if k else A, rng.standard_normal(len(inside)), x


def newton(n, dt, full, whole=False):
    """u' = div((1 + u^2) grad u) + f by implicit Euler: the corrections of Newton's method (full), or with the
    coefficient of the last iterate (symmetric), from 0. whole: the next u, from the last one."""
    p, basis, _, inside = parts(n)
    M, u, done = mass.assemble(basis), np.zeros(basis.N), 0

    @skfem.BilinearForm
    def last(u, v, w):
        return (1 + w["u"] ** 2) * dot(grad(u), grad(v))

    @skfem.BilinearForm
    def change(u, v, w):
        return 2 * w["u"] * u * dot(w["u"].grad, grad(v))

    for step in range(1, STEPS + 1):
        old, first = u, None
        for _ in range(8):
            w = basis.interpolate(u)
            K = last.assemble(basis, u=w)
            r = (M @ (50 * source(p, step * dt, 50) - (u - old) / dt) - K @ u)[inside]
            first = first or np.linalg.norm(r)
            if np.linalg.norm(r) <= 1e-8 * first:
                break
            J = (K + M / dt + (change.assemble(basis, u=w) if full else 0 * K)).tocsr()[inside][:, inside]
            J = J.tocsr() if full else symmetric(J)
            J.sort_indices()
            last_u = u[inside]
            x = yield J, r + J @ last_u if whole else r, last_u if whole else np.zeros(len(inside))
            u = u.copy()
            u[inside] = x if whole else last_u + x
            done += 1
            if done >= STEPS:
                return


SEQUENCES = {
    "heat-1e-2": lambda n: heat(n, 1e-2),
    "heat-1e-3": lambda n: heat(n, 1e-3),
    "poisson-slow": lambda n: poisson(n, 0.002),
    "poisson-fast": lambda n: poisson(n, 0.02),
    "unrelated": unrelated,
    "newton-5e-2": lambda n: newton(n, 5e-2, True),
    "newton-5e-3": lambda n: newton(n, 5e-3, True),
    "newton-u-5e-2": lambda n: newton(n, 5e-2, True, True),
    "newton-u-5e-3": lambda n: newton(n, 5e-3, True, True),
    "picard-5e-2": lambda n: newton(n, 5e-2, False),
    "picard-5e-3": lambda n: newton(n, 5e-3, False),
    "picard-u-5e-2": lambda n: newton(n, 5e-2, False, True),
    "picard-u-5e-3": lambda n: newton(n, 5e-3, False, True),
}


def run(systems, recycle, precond, method):
    """Iterations and seconds (of this process) of each solve, the names, and the gains of the starts."""
    solver, steps, seconds, gains = None, [], [], []
    item = next(systems)
    try:
        while True:
            A, b, start = item
            if solver is None:
                solver = spmv.Solver(A, precond, method, recycle=recycle, device="cpu")
            elif A is not None:
                solver.update_values(A.data)
            began = time.process_time()
            result = solver.solve(b, start)
            seconds.append(time.process_time() - began)
            assert result.converged, result.message
            steps.append(result.iterations)
            gains.append(result.given_residual / result.start_residual if result.recycled else 1)
            item = systems.send(result.x)
    except StopIteration:
        return np.array(steps), np.array(seconds), f"{result.solver}, {result.preconditioner}", np.median(gains)


def main():
    warnings.filterwarnings("ignore")
    n, names = int(sys.argv[1]), sys.argv[2:] or SEQUENCES
    print(f"{'sequence':14s} {'by':12s} {'recycle':>7s} {'steps':>7s} {'ratio':>6s} {'ms':>8s} {'ratio':>6s} {'start':>8s}")
    for name in names:
        name, precond, method = (name.split("/") + ["auto", "auto"])[:3]
        base = None
        for recycle in (0, 4, 8, 16):
            turns = [run(SEQUENCES[name](n), recycle, precond, method) for _ in range(2)]
            steps, took = turns[0][0][1:].sum(), 1e3 * np.minimum(turns[0][1], turns[1][1])[1:].sum()
            base = base or (steps, took)
            print(
                f"{name:14s} {turns[0][2]:12s} {recycle:7d} {steps:7d} {steps / base[0]:6.2f} {took:8.1f}"
                f" {took / base[1]:6.2f} {1 / turns[0][3]:8.1e}",
                flush=True,
            )


if __name__ == "__main__":
    main()

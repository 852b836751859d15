#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Times and iterations of lsmr and lsqr beside SciPy, and on a GPU beside CuPy.

usage: least_squares.py [--gpu] [--large] [--repeats N]

Each pair runs in turn, N times (default 5); the time of a call is the least, and the ratio that of the
least times. --gpu: CuPy's lsmr (it has no lsqr), with arrays on the GPU. --large: systems of millions of
rows too.
"""

import argparse
import time

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg as la
import spmv


def uniform(rows, cols, per_row, seed=1):
    """Random places and numbers."""
    rng = np.random.default_rng(seed)
    places = rng.integers(0, rows, per_row * rows), rng.integers(0, cols, per_row * rows)
    A = sp.csr_array(sp.coo_array((rng.standard_normal(per_row * rows), places), shape=(rows, cols)))
    A.sum_duplicates()
    return A


def differences(k):
    """Differences of neighbours on a k x k grid, as in surveying; rank k^2 - 1."""
    d = sp.diags_array([-np.ones(k), np.ones(k - 1)], offsets=[0, 1], shape=(k - 1, k))
    return sp.csr_array(sp.vstack([sp.kron(d, sp.eye_array(k)), sp.kron(sp.eye_array(k), d)]))


def projections(k, angles):
    """Lines through a k x k picture, one crossing a row or column at a time, as in tomography."""
    rows, cols = [], []
    line = 0
    for angle in np.linspace(0, np.pi, angles, endpoint=False):
        c, s = np.cos(angle), np.sin(angle)
        steps = np.arange(-k, k, 0.7)
        for offset in np.arange(-k / 2, k / 2, 1.0):
            x, y = (np.floor(k / 2 + offset * a + steps * b).astype(int) for a, b in ((-s, c), (c, s)))
            inside = (x >= 0) & (x < k) & (y >= 0) & (y < k)
            cols.append(x[inside] * k + y[inside])
            rows.append(np.full(inside.sum(), line))
            line += 1
    rows, cols = np.concatenate(rows), np.concatenate(cols)
    A = sp.csr_array(sp.coo_array((np.full(rows.size, 0.7), (rows, cols)), shape=(line, k * k)))
    A.sum_duplicates()
    return A


def cases(large):
    yield "random 500 x 200", uniform(500, 200, 8), False
    yield "random 20,000 x 8,000", uniform(20_000, 8_000, 8), False
    yield "random 200,000 x 80,000", uniform(200_000, 80_000, 10), False
    yield "its transpose", sp.csr_array(uniform(200_000, 80_000, 10).T), True
    yield "differences, 44,700 x 22,500", differences(150), False
    yield "differences, 179,400 x 90,000", differences(300), False
    yield "tomography, 12,000 x 10,000", projections(100, 120), True
    if large:
        yield "random 4,000,000 x 1,000,000", uniform(4_000_000, 1_000_000, 8), False
        yield "differences, 7,996,000 x 4,000,000", differences(2000), False


def timed(function, wait):
    begin = time.perf_counter()
    answer = function()
    wait()
    return time.perf_counter() - begin, answer


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gpu", action="store_true")
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--repeats", type=int, default=5)
    args = parser.parse_args()
    wait, names, peer = (lambda: None), ("lsmr", "lsqr"), "SciPy"
    if args.gpu:
        import cupy
        import cupyx.scipy.sparse as gsp
        import cupyx.scipy.sparse.linalg as gla

        wait, names, peer = cupy.cuda.get_current_stream().synchronize, ("lsmr",), "CuPy"
    print(f"{'system':36} {'solver':6} {'iterations':>14} {peer + ', ms':>12} {'spmv, ms':>12} {'ratio':>7} {'difference':>11}")
    for name, A, consistent in cases(args.large):
        b = A @ np.ones(A.shape[1]) if consistent else np.random.default_rng(2).standard_normal(A.shape[0])
        theirs, where = la, (A, b)
        if args.gpu:
            theirs = gla
            where = gsp.csr_matrix((cupy.asarray(A.data), cupy.asarray(A.indices), cupy.asarray(A.indptr)), shape=A.shape), cupy.asarray(b)
        for solver in names:
            limit = {"maxiter" if solver == "lsmr" else "iter_lim": 10 * max(A.shape)}
            best = [np.inf, np.inf]
            answers = [None, None]
            for repeat in range(args.repeats + 1):
                for which, package in enumerate((theirs, spmv)):
                    call = getattr(package, solver)
                    seconds, answers[which] = timed(lambda: call(*where, atol=1e-8, btol=1e-8, **limit), wait)
                    best[which] = min(best[which], seconds) if repeat > 0 else np.inf  # the first is to warm up
            x = [np.asarray(a[0].get() if args.gpu else a[0]) for a in answers]
            difference = np.linalg.norm(x[0] - x[1]) / np.linalg.norm(x[0])
            iterations = f"{int(answers[0][2])}, {answers[1][2]}"
            print(f"{name:36} {solver:6} {iterations:>14} {1e3 * best[0]:12.2f} {1e3 * best[1]:12.2f} "
                  f"{best[0] / best[1]:7.2f} {difference:11.1e}", flush=True)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Times, iterations and ||A'r|| of lsmr: SciPy, spmv on the CPU, and with --gpu CuPy and spmv on a GPU.

usage: least_squares.py [--gpu] [--large] [--lsqr] [--repeats N] [--seconds S]

On each system the packages run in turn, N times (default 3) after one run to warm up; the time of a call
is the least, with all that the call makes (spmv: plans and the transpose). GPU: arrays are there already.
After S seconds (default 80) no further system begins. SciPy runs once where a call takes over 2 s.
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
    indices = np.sort(rng.integers(0, cols, (rows, per_row), dtype=np.int32), axis=1)
    A = sp.csr_array((rng.standard_normal(rows * per_row), indices.ravel(), np.arange(rows + 1, dtype=np.int32) * per_row), shape=(rows, cols))
    A.sum_duplicates()
    return A


def differences(k):
    """Differences of neighbours on a k x k grid, as in surveying; rank k^2 - 1."""
    d = sp.diags_array([-np.ones(k), np.ones(k - 1)], offsets=[0, 1], shape=(k - 1, k))
    return sp.csr_array(sp.vstack([sp.kron(d, sp.eye_array(k)), sp.kron(sp.eye_array(k), d)]))


def projections(k, angles):
    """Lines through a k x k picture, as in tomography."""
    rows, cols = [], []
    steps, line = np.arange(-k, k, 0.7), 0
    for angle in np.linspace(0, np.pi, angles, endpoint=False):
        c, s = np.cos(angle), np.sin(angle)
        for offset in np.arange(-k / 2, k / 2, 1.0):
            x, y = (np.floor(k / 2 + offset * a + steps * b).astype(int) for a, b in ((-s, c), (c, s)))
            inside = (x >= 0) & (x < k) & (y >= 0) & (y < k)
            cols.append(x[inside] * k + y[inside])
            rows.append(np.full(inside.sum(), line))
            line += 1
    where = np.concatenate(rows), np.concatenate(cols)
    A = sp.csr_array(sp.coo_array((np.full(where[0].size, 0.7), where), shape=(line, k * k)))
    A.sum_duplicates()
    return A


# name, function that makes it, whether b is in the range of A, limit of iterations
SYSTEMS = [
    ("random 500 x 200", lambda: uniform(500, 200, 8), False, 2000),
    ("random 1,000 x 300", lambda: uniform(1000, 300, 8), False, 2000),
    ("random 5,000 x 2,000", lambda: uniform(5000, 2000, 8), False, 2000),
    ("random 20,000 x 8,000", lambda: uniform(20_000, 8_000, 8), False, 2000),
    ("tomography 12,000 x 10,000", lambda: projections(100, 120), True, 400),
    ("differences 44,700 x 22,500", lambda: differences(150), False, 2000),
    ("random 200,000 x 80,000", lambda: uniform(200_000, 80_000, 10), False, 2000),
    ("its transpose", lambda: sp.csr_array(uniform(200_000, 80_000, 10).T), True, 2000),
]
LARGE = [
    ("differences 1,998,000 x 1,000,000", lambda: differences(1000), False, 300),
    ("random 2,000,000 x 500,000", lambda: uniform(2_000_000, 500_000, 8), False, 2000),
]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for flag in "gpu", "large", "lsqr":
        parser.add_argument("--" + flag, action="store_true")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=80)
    args = parser.parse_args()
    began = time.perf_counter()
    solver, limit = ("lsqr", "iter_lim") if args.lsqr else ("lsmr", "maxiter")
    cupy = None
    if args.gpu:
        import cupy
        import cupyx.scipy.sparse as gsp
        import cupyx.scipy.sparse.linalg as gla
    print(f"{solver}, atol = btol = 1e-8")
    for name, make, consistent, most in SYSTEMS + (LARGE if args.large else []):
        if time.perf_counter() - began > args.seconds:
            print("no time for the rest")
            break
        A = make()
        b = A @ np.ones(A.shape[1]) if consistent else np.random.default_rng(2).standard_normal(A.shape[0])
        options = dict(atol=1e-8, btol=1e-8, conlim=0, **{limit: most})
        calls = {
            "SciPy": lambda: getattr(la, solver)(A, b, **options),
            "spmv, CPU": lambda: getattr(spmv, solver)(A, b, device="cpu", **options),
        }
        if cupy is not None:
            there = gsp.csr_matrix(tuple(map(cupy.asarray, (A.data, A.indices, A.indptr))), shape=A.shape), cupy.asarray(b)
            if hasattr(gla, solver) and not args.lsqr:  # CuPy's lsqr is a QR factorisation
                calls["CuPy"] = lambda: gla.lsmr(*there, **options)
            calls["spmv, GPU"] = lambda: getattr(spmv, solver)(*there, **options)
        best, answers = dict.fromkeys(calls, np.inf), {}
        for repeat in range(args.repeats + 1):
            for who, call in calls.items():
                if who == "SciPy" and answers.get(who) is not None and best[who] > 2 and np.isfinite(best[who]):
                    continue
                start = time.perf_counter()
                answers[who] = call()
                if cupy is not None:
                    cupy.cuda.runtime.deviceSynchronize()
                seconds = time.perf_counter() - start
                if repeat > 0 or seconds > 2:  # the first is to warm up
                    best[who] = min(best[who], seconds)
        print(f"{name}: {A.nnz} nonzeros")
        for who, answer in answers.items():
            x = answer[0].get() if hasattr(answer[0], "get") else answer[0]
            gradient = np.linalg.norm(A.T @ (b - A @ x))
            print(f"  {who:10} {1e3 * best[who]:10.2f} ms {int(answer[2]):6} iterations, stop {int(answer[1])}, "
                  f"||A'r|| {gradient:8.2e}, spmv GPU x {best[who] / best.get('spmv, GPU', np.nan):6.2f}, "
                  f"spmv CPU x {best[who] / best['spmv, CPU']:6.2f}", flush=True)


if __name__ == "__main__":
    main()

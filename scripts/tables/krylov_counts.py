#!/usr/bin/env python3
"""Compares iteration counts of spmv solve without a preconditioner with those of SciPy.

usage: krylov_counts.py PROGRAM SYSTEM... [--most 300]
  PROGRAM  spmv
  SYSTEM   a SPEC such as convdiff2d:40,1, or a Matrix Market file, also .xz; square, real
  --most   leave out systems for which SciPy needs this many iterations or more

b = A x for a fixed random x, tolerance 1e-8. MINRES for symmetric matrices, GMRES(50) and BiCGStab
for all. Counts of SciPy: of MINRES, the first iterate with ||b - A x|| <= 1e-8 ||b||, since its own
rule is another one; of the others, as its rule decides. Prints a line for each system and method,
and whether the count of minres or gmres is within 10 % + 3; then, for each method, how many are,
and the median ratio. The exit status is 1 if one of minres or gmres is not. Needs SciPy 1.12 or
later.

SPDX-License-Identifier: BSD-3-Clause"""
import argparse
import json
import lzma
import os
import statistics
import subprocess
import sys
import tempfile

import numpy as np
import scipy.io
import scipy.sparse
import scipy.sparse.linalg

RTOL, LIMIT = 1e-8, 60  # seconds per solve


class Enough(Exception):
    """Ends a solve of SciPy from its callback."""


def load(program, system, folder):
    path = system
    if not os.path.exists(system):
        path = os.path.join(folder, "a.mtx")
        subprocess.run([program, "convert", system, path, "-q"], check=True)
    with lzma.open(path) if path.endswith(".xz") else open(path, "rb") as f:
        return path, scipy.sparse.csr_matrix(scipy.io.mmread(f))


def count_scipy(method, a, b, most):
    """The iterations, or None: not within most."""
    norm, counted = np.linalg.norm(b), 0

    def count(state):
        nonlocal counted
        counted += 1
        if method == "minres" and np.linalg.norm(b - a @ state) <= RTOL * norm:
            raise Enough
        if counted >= most:
            counted = most
            raise Enough

    try:
        if method == "minres":
            scipy.sparse.linalg.minres(a, b, rtol=1e-16, maxiter=most + 1, callback=count)
            return None
        if method == "gmres":
            _, info = scipy.sparse.linalg.gmres(a, b, rtol=RTOL, atol=0, restart=50, maxiter=most, callback=count,
                                                callback_type="pr_norm")  # fmt: skip
        else:
            _, info = scipy.sparse.linalg.bicgstab(a, b, rtol=RTOL, atol=0, maxiter=most, callback=count)
        return counted if info == 0 else None
    except Enough:
        return counted if counted < most else None


def count_spmv(program, method, path, b, folder):
    np.savetxt(folder + "/b.txt", b, fmt="%.17g")
    words = [program, "solve", path, folder + "/b.txt", "-o", folder + "/x.txt", "--solver", method, "--precond", "none",
             "--backend", "omp", "--json", "-q"]  # fmt: skip
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=LIMIT)
    cg = json.loads(done.stdout)["result"]["cg"] if done.stdout else {"status": done.stderr.strip()}
    return cg["iterations"] if cg["status"] == "ok" else None


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("program")
    p.add_argument("system", nargs="+")
    p.add_argument("--most", type=int, default=300)
    o = p.parse_args()
    ratios, missed = {"minres": [], "gmres": [], "bicgstab": []}, []
    print(f"{'system':28} {'method':9} {'SciPy':>6} {'spmv':>6}")
    for system in o.system:
        with tempfile.TemporaryDirectory(prefix="krylov-counts-") as folder:
            path, a = load(o.program, system, folder)
            if a.shape[0] != a.shape[1] or np.iscomplexobj(a.data):
                continue
            a = a.astype(np.float64)
            b = a @ np.random.default_rng(1).uniform(-1, 1, a.shape[0])
            symmetric = abs(a - a.T).max() == 0
            for method in ("minres", "gmres", "bicgstab") if symmetric else ("gmres", "bicgstab"):
                theirs = count_scipy(method, a, b, o.most)
                if theirs is None:
                    continue
                ours = count_spmv(o.program, method, path, b, folder)
                near = ours is not None and ours <= 1.1 * theirs + 3
                if ours is not None:
                    ratios[method].append(ours / max(theirs, 1))
                if method != "bicgstab" and not near:
                    missed.append((system, method))
                name = os.path.basename(system).split(".mtx")[0]
                print(f"{name:28} {method:9} {theirs:6} {ours if ours is not None else 'failed':>6}"
                      f"{'' if near or method == 'bicgstab' else '  more than 10 % + 3'}", flush=True)  # fmt: skip
    for method, found in ratios.items():
        if found:
            beyond = f", {sum(m == method for _, m in missed)} beyond 10 % + 3" if method != "bicgstab" else ""
            print(f"{method}: {len(found)} systems{beyond}, median ratio {statistics.median(found):.3f}, "
                  f"largest {max(found):.3f}")  # fmt: skip
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()

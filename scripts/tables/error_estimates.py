#!/usr/bin/env python3
"""Compares the estimated error of spmv solve in the energy norm with the true one.

usage: error_estimates.py PROGRAM FILE...
  PROGRAM  spmv
  FILE     symmetric positive definite matrices in Matrix Market form, also .xz

b = A x for random x. Prints a line for each file and preconditioner (none, jacobi, auto): the
iterations, ||x - x_k||_A / ||x||_A, its estimate, and estimate / truth. Systems that are not solved
to 1e-8 are left out, and so are those whose true error is below 1e-13, where rounding decides. Ends
with the share of estimates below a tenth of the true error, and the median. Needs NumPy and SciPy.

SPDX-License-Identifier: BSD-3-Clause"""
import json
import lzma
import os
import subprocess
import sys
import tempfile

import numpy as np
import scipy.io

LIMIT = 60  # seconds per solve


def solve(program, matrix, b, x, precond):
    words = [program, "solve", matrix, b, "-o", x, "--precond", precond, "--backend", "omp", "--json", "-q"]
    words += ["--verify=off"]
    try:
        done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=LIMIT)
    except subprocess.TimeoutExpired:
        return None
    return json.loads(done.stdout)["result"]["cg"] if done.returncode == 0 else None


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    program, ratios = sys.argv[1], []
    print(f"{'matrix':24} {'precond':14} {'iterations':>10} {'true':>9} {'estimated':>9} {'ratio':>7}")
    with tempfile.TemporaryDirectory(prefix="error-estimates-") as folder:
        b, x = os.path.join(folder, "b.txt"), os.path.join(folder, "x.txt")
        for path in sys.argv[2:]:
            with lzma.open(path) if path.endswith(".xz") else open(path, "rb") as f:
                a = scipy.io.mmread(f).tocsr()
            solution = np.random.default_rng(1).uniform(-1, 1, a.shape[0])
            np.savetxt(b, a @ solution, fmt="%.17g")
            norm = np.sqrt(solution @ (a @ solution))
            for precond in ("none", "jacobi", "auto"):
                cg = solve(program, path, b, x, precond)
                if cg is None or cg["estimated_error_energy_norm"] is None:
                    continue
                error = np.loadtxt(x) - solution
                truth = np.sqrt(max(error @ (a @ error), 0)) / norm
                estimate = cg["estimated_error_energy_norm"] / norm
                if truth < 1e-13:
                    continue
                ratios.append(estimate / truth)
                name = os.path.basename(path).split(".")[0]
                print(f"{name:24} {cg['precond']:14} {cg['iterations']:10} {truth:9.1e} {estimate:9.1e}"
                      f" {ratios[-1]:7.2f}", flush=True)  # fmt: skip
    if ratios:
        low = sum(r < 0.1 for r in ratios)
        print(f"{len(ratios)} solves; below a tenth: {low} ({100 * low / len(ratios):.1f} %); median ratio "
              f"{np.median(ratios):.2f}, smallest {min(ratios):.2g}, largest {max(ratios):.3g}")  # fmt: skip


if __name__ == "__main__":
    main()

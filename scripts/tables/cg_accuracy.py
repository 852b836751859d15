#!/usr/bin/env python3
"""Prints the tables of docs/solvers.md, "Accuracy": the true residual that each rung of conjugate
gradients reaches, in f64 and in f32 with corrections in f64 (--inner). b is A times a vector of
random numbers in [-1, 1).

usage: cg_accuracy.py PROGRAM [option...] SYSTEM...
  PROGRAM           spmv
  SYSTEM            a SPEC, or a file that spmv reads
  --backend omp     omp, ref or cuda
  --rtol 1e-12      the tolerance; 0: the smallest residual that the solver reaches
  --precond none    the preconditioner
  --threads N       OpenMP threads

A cell has ||b - A x|| / ||b|| computed from x, the number of iterations, and "+ n" after n restarts
from the true residual. It is in brackets if the solver stopped before the tolerance. "-" means that
the rung cannot solve the system; the reason goes to standard error.

SPDX-License-Identifier: BSD-3-Clause"""
import argparse
import csv
import json
import os
import subprocess
import sys
import tempfile

LIMIT = 300  # seconds per solve
DONE = {0, 7}  # exit codes with an x: solved, or stopped before the tolerance


def spmv(program, *arguments):
    return subprocess.run([program, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False,
                          timeout=LIMIT, env=dict(os.environ, OMP_WAIT_POLICY="passive"))


def rungs_of(program, backend):
    """The names of the backend's rungs, the simplest first."""
    done = spmv(program, "doctor", "--json")
    for one in json.loads(done.stdout)["doctor"]["backends"] if done.stdout else []:
        if one["name"] == backend and one["usable"]:
            return one["solvers"][::-1]
    sys.exit(f"{program} doctor: no usable backend {backend}\n{done.stderr}")


def cell(o, system, rung, inner):
    with tempfile.TemporaryDirectory(prefix="cg-accuracy-") as folder:
        history = os.path.join(folder, "h.csv")
        words = ["solve", system, "--backend", o.backend, "--method", rung, "--rtol", o.rtol, "--precond", o.precond,
                 "--solution", "random", "--history", history, "--json", "-q"]  # fmt: skip
        words += ["--threads", o.threads] if o.threads else []
        try:
            done = spmv(o.program, *words, *(["--inner"] if inner else []))
        except subprocess.TimeoutExpired:
            print(f"{system}, {rung}: more than {LIMIT} s", file=sys.stderr)
            return "-", None
        if done.returncode not in DONE:
            print(f"{system}, {rung}: {done.stderr.strip()}", file=sys.stderr)
            return "-", None
        with open(history, newline="", encoding="utf-8") as f:
            norm_b = float(next(csv.DictReader(f))["residual"])  # the residual of x = 0
    result = json.loads(done.stdout)
    cg = result["result"]["cg"]
    residual = "nan" if cg["true_residual"] is None else f"{cg['true_residual'] / norm_b:.1e}"
    text = f"{residual}, {cg['iterations']}" + (f" + {cg['restarts']}" if cg["restarts"] else "")
    return (text if cg["status"] == "ok" else f"({text})"), result["matrix"]


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("program")
    parser.add_argument("systems", nargs="+")
    parser.add_argument("--backend", default="omp")
    parser.add_argument("--rtol", default="1e-12")
    parser.add_argument("--precond", default="none")
    parser.add_argument("--threads")
    o = parser.parse_args()
    columns = [(rung, inner) for inner in (False, True) for rung in rungs_of(o.program, o.backend)]
    print("| system | rows | " + " | ".join(rung + ", inner f32" * inner for rung, inner in columns) + " |")
    print("|---" * (2 + len(columns)) + "|")
    complete = True
    for system in o.systems:
        cells = [cell(o, system, rung, inner) for rung, inner in columns]
        matrix = next((m for _, m in cells if m is not None), None)
        if matrix is None:
            print(f"{system}: no rung returned a result", file=sys.stderr)
            complete = False
            continue
        print(f"| {matrix['name']} | {matrix['rows']} | " + " | ".join(text for text, _ in cells) + " |", flush=True)
    return 0 if complete else 1


if __name__ == "__main__":
    sys.exit(main())

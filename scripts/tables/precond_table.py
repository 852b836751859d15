#!/usr/bin/env python3
"""Prints the table of docs/preconditioners.md: conjugate gradients with each preconditioner on the
matrices of a folder that SuiteSparse, and so catalog.csv, lists as positive definite.

usage: precond_table.py PROGRAM FOLDER [THREADS|cuda [NAME...]]
  PROGRAM: bench/precond_table of a build

Each cell has the iterations, then the milliseconds of set-up + solve. The best time of a row is
bold. A number of iterations alone in brackets means that the solve stopped before the tolerance.
The last column is the preconditioner that "auto" chooses.

SPDX-License-Identifier: BSD-3-Clause"""
import csv
import io
import os
import subprocess
import sys

LIMIT = 200  # seconds per matrix


def matrices(folder, names):
    seen = set()
    with open(os.path.join(folder, "catalog.csv"), newline="") as f:
        for row in csv.DictReader(f):
            if (row["posdef_suitesparse"] == "yes" and row["genuine"].startswith("verified") and row["name"] not in seen
                    and row["symmetry"] == "symmetric" and row["field"] == "real" and int(row["rows"]) > 50
                    and (not names or row["name"] in names)):
                seen.add(row["name"])
                yield row["name"], os.path.join(folder, row["file"])


def run(program, threads, names, path):
    done = subprocess.run([program, threads, names, path], stdout=subprocess.PIPE, text=True, timeout=LIMIT,
                          env=dict(os.environ, OMP_WAIT_POLICY="passive"))
    return {row["preconditioner"]: row for row in csv.DictReader(io.StringIO(done.stdout))}


def number(milliseconds):
    return f"{milliseconds:.3g}" if milliseconds < 100 else f"{milliseconds:.0f}"


def cell(row, best):
    if row["status"] == "not made":
        return "-"
    if row["status"] != "ok":
        return f"({row['iterations']})"
    setup, solve = 1e3 * float(row["setup_seconds"]), 1e3 * float(row["solve_seconds"])
    text = f"{number(setup)} + {number(solve)}"
    return f"{row['iterations']}: " + (f"**{text}**" if setup + solve == best else text)


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    program, folder = sys.argv[1:3]
    threads = sys.argv[3] if len(sys.argv) > 3 else "1"
    heads = None
    for name, path in matrices(folder, sys.argv[4:]):
        try:
            rows = run(program, threads, "none,jacobi,block-jacobi,chebyshev,ic0,cholesky,amg,hypre-amg,auto", path)
        except subprocess.TimeoutExpired:
            print(f"{name}: more than {LIMIT} s", file=sys.stderr)
            continue
        auto = rows.pop("auto", None)
        if auto is None or not rows:
            print(f"{name}: no answer", file=sys.stderr)
            continue
        if heads is None:
            heads = list(rows)
            print("| matrix | rows | nonzeros | " + " | ".join(heads) + " | auto |")
            print("|---|---|---|" + "---|" * (len(heads) + 1))
        times = [1e3 * float(r["setup_seconds"]) + 1e3 * float(r["solve_seconds"]) for r in rows.values()
                 if r["status"] == "ok"]
        first = next(iter(rows.values()))
        took = auto["layout"].rsplit("auto: ", 1)[-1] if "auto: " in auto["layout"] else "?"
        print(f"| {name} | {first['rows']} | {first['nnz']} | "
              + " | ".join(cell(rows[h], min(times, default=0)) for h in heads) + f" | {took} |", flush=True)


if __name__ == "__main__":
    main()

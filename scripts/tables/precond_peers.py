#!/usr/bin/env python3
"""Compares `auto` with the preconditioned conjugate gradients of other libraries on a CPU: Eigen's
incomplete Cholesky, hypre's BoomerAMG with one MPI rank a core and with one rank, PyAMG's smoothed
aggregation.
b = A x for a random x, rtol 1e-8, set-up and solve. The solvers take turns; each repeats the solve
up to five times in its process. Medians count.

usage: precond_peers.py BUILD FOLDER [-r ROUNDS] [-l SECONDS] [-o TABLE.csv] [-p PAGE.md]
       [all|NAME|FILE|SPEC...] precond_peers.py -f TABLE.csv [-r ROUNDS] [-p PAGE.md]
  BUILD:  a build with the targets spmv, precond_table, precond_with_eigen and precond_with_hypre
  FOLDER: matrices with catalog.csv; all, the default: the positive definite ones
          (definite_matrices.py) of more than 1,000 rows
  -l:     the limit for one solve, 60 by default
  -f:     prints the table of an earlier run of ROUNDS rounds
  -p:     also replaces the table in the page, and the paragraphs before and after it
Needs Python with numpy, scipy and pyamg, and mpiexec.

SPDX-License-Identifier: BSD-3-Clause"""
import argparse
import csv
import datetime
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time

from definite_matrices import definite_matrices, read

SOLVED = 2e-8  # the largest true residual of a solved system, relative to ||b||
RANKS = len(os.sched_getaffinity(0))
PEERS = {"eigen-ic": "Eigen", "hypre": f"hypre, {RANKS} ranks", "hypre-1": "hypre, 1 rank", "pyamg": "PyAMG"}
FIELDS = "iterations setup solve cpu residual error".split()


def splitmix(count):
    """x of spmv solve --solution random."""
    import numpy as np
    step = np.uint64(0x9E3779B97F4A7C15)
    with np.errstate(over="ignore"):
        z = np.uint64(1) + step * np.arange(1, count + 1, dtype=np.uint64)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z ^= z >> np.uint64(31)
    return z.astype(np.int64) * 2.0 ** -63


def write_system(path, system):
    """See bench/programs/precond_system.h."""
    import numpy as np
    a = read(path)
    x = splitmix(a.shape[0])
    with open(system, "wb") as f:
        f.write(np.array([a.shape[0], a.nnz], dtype=np.int64).tobytes())
        f.write(a.indptr.astype(np.int32).tobytes() + a.indices.astype(np.int32).tobytes())
        f.write(bytes(4 * ((a.shape[0] + 1 + a.nnz) % 2)))
        f.write(a.data.tobytes() + (a @ x).tobytes() + x.tobytes())
    return a.shape[0], a.nnz


def pyamg_solve(system, most):
    """Runs in a process of its own; prints the line of the other programs."""
    import numpy as np
    import pyamg
    import scipy.sparse
    with open(system, "rb") as f:
        rows, nnz = np.fromfile(f, np.int64, 2)
        index = np.fromfile(f, np.int32, (rows + 1 + nnz + 1) // 2 * 2)
        val, b, x = (np.fromfile(f, np.float64, n) for n in (nnz, rows, rows))
    a = scipy.sparse.csr_matrix((val, index[rows + 1:rows + 1 + nnz], index[:rows + 1]), shape=(rows, rows))
    tries = []
    while len(tries) < 5 and sum(setup + solved for setup, solved, _ in tries) < 2:
        used, begin = time.process_time(), time.monotonic()
        m = pyamg.smoothed_aggregation_solver(a).aspreconditioner()
        made = time.monotonic()
        residuals = []
        y, _ = pyamg.krylov.cg(a, b, tol=1e-8, maxiter=most, M=m, residuals=residuals)
        tries.append((made - begin, time.monotonic() - made, time.process_time() - used))
    setup, solved, used = map(statistics.median, zip(*tries))
    print(f"{len(residuals) - 1},{setup:.6f},{solved:.6f},{used:.6f},"
          f"{np.linalg.norm(b - a @ y) / np.linalg.norm(b):.3g},{np.linalg.norm(y - x) / np.linalg.norm(x):.3g}")


def run(command, limit):
    """The last line of the output; None if it fails or takes too long."""
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, timeout=limit,
                              env=dict(os.environ, OMP_NUM_THREADS=str(RANKS), OPENBLAS_NUM_THREADS="1"))
    except subprocess.TimeoutExpired:
        return None
    lines = done.stdout.strip().splitlines()
    return lines[-1] if done.returncode == 0 and lines else None


def solve(name, build, path, system, most, limit):
    """A dictionary of FIELDS, and "took" for auto; None if nothing came back."""
    if name == "auto":
        line = run([os.path.join(build, "bench/precond_table"), str(RANKS), "auto", path], limit)
        row = next(csv.reader([line])) if line else None
        if row is None or row[11] == "not made":
            return None
        values = [row[4], row[5], row[7], row[8], row[9], row[10]]
        return dict(zip(FIELDS, map(float, values)), took=row[12].rsplit("auto: ", 1)[-1])
    command = {"eigen-ic": [os.path.join(build, "bench/precond_with_eigen"), system, str(RANKS), str(most)],
               "hypre-1": [os.path.join(build, "bench/precond_with_hypre"), system, "0.25", str(most)],
               "hypre": ["mpiexec", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "--mca",
                         "mpi_yield_when_idle", "1", "-n", str(RANKS),
                             os.path.join(build, "bench/precond_with_hypre"), system, "0.25", str(most)],
               "pyamg": [sys.executable, os.path.abspath(__file__), "--pyamg", system, str(most)]}[name]
    line = run(command, limit)
    return dict(zip(FIELDS, map(float, line.split(",")))) if line and line.count(",") == 5 else None


def compare(o, name, path, folder):
    """The medians of each solver."""
    system = os.path.join(folder, "system")
    rows, nnz = write_system(path, system)
    names = ["auto", *PEERS]
    tries = {n: [] for n in names}
    for _ in range(o.rounds):
        for n in names:
            if len(tries[n]) == 0 or tries[n][-1] is not None:
                tries[n].append(solve(n, o.build, path, system, min(10 * rows, 50000), o.limit))
    os.remove(system)
    result = {"matrix": name, "rows": rows, "nnz": nnz}
    for n in names:
        got = [t for t in tries[n] if t is not None and t["residual"] <= SOLVED]
        for field in FIELDS:
            result[f"{n} {field}"] = statistics.median(t[field] for t in got) if got else math.nan
    took = [t["took"] for t in tries["auto"] if t is not None]
    result["took"] = took[0] if took else "?"
    return result


def total(row, name, processors):
    return row[f"{name} cpu"] if processors else row[f"{name} setup"] + row[f"{name} solve"]


def number(x):
    return "-" if math.isnan(x) else f"{x:.3g}" if x < 100 else f"{x:.0f}"


PARAGRAPH = "All matrices:"
HEAD = "| matrix | rows | `auto` took | `auto` | "


def table(rows, rounds):
    """The lines of a paragraph, of the table by the clock, and of the paragraph after it."""
    yield f"{PARAGRAPH} {datetime.date.today()}, {RANKS} cores, as many threads or ranks (hypre also with one), by the"
    yield f"clock; medians of up to five solves in a process, and of {rounds} such round{'' if rounds == 1 else 's'}."
    yield "Milliseconds of set-up and solve, and the error ||x computed - x|| / ||x||. A system counts as solved"
    yield f"if ||b - A x|| <= {SOLVED:.0e} ||b||."
    yield ""
    yield HEAD + " | ".join(PEERS.values()) + " | best peer / `auto` |"
    yield "|---" * (len(PEERS) + 5) + "|"
    for row in rows:
        cells = [f"{number(1e3 * total(row, n, False))}, {row[f'{n} error']:.0e}"
                 if not math.isnan(row[f"{n} setup"]) else "not solved" for n in ("auto", *PEERS)]
        yield f"| {row['matrix']} | {row['rows']} | {row['took']} | " + " | ".join(cells) + f" | {number(ratio(row))} |"
    yield ""
    lost = [row["matrix"] for row in rows if math.isnan(row["auto setup"])
            and any(not math.isnan(row[f"{n} setup"]) for n in PEERS)]
    solved = [row for row in rows if not math.isnan(ratio(row))]
    for words, some in ("On all systems", solved), ("On the matrices from files", [r for r in solved if ":" not in r["matrix"]]):
        ratios, processor = [ratio(row) for row in some], [ratio(row, True) for row in some]
        if ratios:
            slower = sum(r < 1 for r in ratios)
            yield f"{words}, {len(ratios)}, the best peer takes {mean(ratios):.2f} times as long as `auto` in the"
            yield (f"geometric mean ({mean(processor):.2f} times the processor time). `auto` is slower on "
                   + (f"{slower}, by at most {1 / min(ratios):.2f} times." if slower else "none."))
    yield "`auto` solves every system that a peer solves." if not lost else "`auto` does not solve " + ", ".join(lost) + "."


def mean(numbers):
    return math.exp(sum(map(math.log, numbers)) / len(numbers))


def replace_in(page, lines):
    """Puts the lines in place of this paragraph, the table and the paragraph after it."""
    with open(page) as f:
        old = f.read().split("\n")
    begin = next(i for i, line in enumerate(old) if line.startswith(PARAGRAPH))
    end = begin
    for _ in range(3):
        end = old.index("", end + 1)
    with open(page, "w") as f:
        f.write("\n".join(old[:begin] + lines + old[end:]))


def ratio(row, processors=False):
    peers = [t for t in (total(row, n, processors) for n in PEERS) if not math.isnan(t)]
    return min(peers) / total(row, "auto", processors) if peers else math.nan


def measure(o):
    known = {name: path for name, path, _ in definite_matrices(o.folder, 1001)}
    results = []
    with tempfile.TemporaryDirectory() as folder:
        for name in [n for word in o.names or ["all"] for n in (known if word == "all" else [word])]:
            path = known.get(name, name)
            if not os.path.exists(path):
                path = os.path.join(folder, "grid.mtx")
                subprocess.run([os.path.join(o.build, "app/spmv"), "gen", name, "-o", path, "-q"], check=True)
            label = os.path.basename(name).partition(".")[0] if path == name else name
            results.append(compare(o, label, path, folder))
            print(results[-1], file=sys.stderr, flush=True)
            if o.output:
                with open(o.output, "w", newline="") as f:
                    writer = csv.DictWriter(f, results[0])
                    writer.writeheader()
                    writer.writerows(results)
    return results


def main():
    if len(sys.argv) == 4 and sys.argv[1] == "--pyamg":
        pyamg_solve(sys.argv[2], int(sys.argv[3]))
        return
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("build", nargs="?")
    parser.add_argument("folder", nargs="?")
    parser.add_argument("names", nargs="*")
    parser.add_argument("-r", "--rounds", type=int, default=3)
    parser.add_argument("-l", "--limit", type=float, default=60)
    parser.add_argument("-o", "--output")
    parser.add_argument("-f", "--from", dest="earlier")
    parser.add_argument("-p", "--page")
    o = parser.parse_intermixed_args()
    if o.earlier:
        with open(o.earlier, newline="") as f:
            results = [{k: v if k in ("matrix", "rows", "took") else float(v) for k, v in row.items()}
                       for row in csv.DictReader(f)]
    elif o.folder:
        results = measure(o)
    else:
        parser.error("BUILD and FOLDER, or --from TABLE.csv")
    lines = list(table(results, o.rounds))
    print("\n".join(lines))
    if o.page:
        replace_in(o.page, lines)


if __name__ == "__main__":
    main()

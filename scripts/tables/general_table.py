#!/usr/bin/env python3
"""Solves A x = b with every distinct square matrix of a folder, by spmv solve and by peers.

usage: general_table.py run PROGRAM FOLDER RESULTS.csv [--eigen EIGEN_SYSTEM] [--systems LIST]
                        [--only NAME,...] [--limit 60] [--options WORDS] [--petsc-complex PATH]
       general_table.py print RESULTS.csv        # Markdown tables
  PROGRAM    spmv
  FOLDER     NAME.mtx.xz and catalog.csv
  RESULTS    one line for each matrix and system; lines that are there are not computed again
  --eigen    bench/peers/eigen_system of a build; without it, Eigen is left out
  --petsc-complex  where the petsc4py of a PETSc with complex numbers is
  --options  more options of spmv solve
  --systems  of spmv, scipy, petsc0, petsc2, eigen-bicgstab, eigen-gmres (default: all)

Takes real, integer and complex files of 100 to 20,000 rows. Files with the same entries, to nine
digits, are one matrix. b = A x for a fixed random x in [-1, 1) (complex: both parts). A matrix is
solved if ||b - A x|| <= 1e-8 ||b||, which is computed here, in long double, from the x returned.
Each system runs in a process of its own, with one thread, for at most --limit seconds of processor
time. The time of spmv includes the start of the program and the reading of the file. Where a peer
is done and the residual is larger, it goes on from its x with a tenth of the tolerance, three
times.

  scipy            gmres(restart=50) with spilu(drop_tol=1e-4, fill_factor=10)
  petsc0, petsc2   KSPGMRES, restart 50, right preconditioning, PCILU with 0 and 2 levels
  eigen-bicgstab, eigen-gmres   with IncompleteLUT; GMRES with restart 50

Singular matrices are marked: "structure" if no permutation gives a diagonal without zeros, "values"
if the condition number (1-norm, estimated) of the equilibrated matrix is above 1e16.

Needs NumPy and SciPy 1.12 or later, petsc4py for PETSc.

SPDX-License-Identifier: BSD-3-Clause"""
import argparse
import csv
import hashlib
import json
import lzma
import os
import resource
import subprocess
import sys
import tempfile
import time
import warnings

import numpy as np
import scipy.io
import scipy.sparse
import scipy.sparse.linalg

RTOL, LEAST, MOST = 1e-8, 100, 20000
MEMORY = 8 << 30  # bytes of a process
SYSTEMS = ["spmv", "scipy", "petsc0", "petsc2", "eigen-bicgstab", "eigen-gmres"]
SINGULAR = 1e16  # condition number
FIELDS = ["matrix", "file", "rows", "nnz", "field", "symmetry", "singular", "condition", "system", "solved", "residual",
          "iterations", "seconds", "method", "precond", "status", "message"]  # fmt: skip


# ------------------------------------------------------------ matrices


def read(path):
    with lzma.open(path) if path.endswith(".xz") else open(path, "rb") as f:
        a = scipy.sparse.csr_matrix(scipy.io.mmread(f))
    a.sum_duplicates()
    a.eliminate_zeros()
    return a.astype(np.complex128 if np.iscomplexobj(a.data) else np.float64)


def fingerprint(a):
    """Of the entries to nine digits, because copies were written by different programs."""
    h = hashlib.sha256(repr(a.shape).encode())
    values = [f"{v:.8e}" for v in np.column_stack([a.data.real, a.data.imag]).ravel()]
    h.update(" ".join(values).encode())
    for part in (a.indptr.astype(np.int64), a.indices.astype(np.int64)):
        h.update(part.tobytes())
    return h.hexdigest()


def matrices(folder, names):
    """(row of the catalogue, matrix) of each distinct matrix."""
    seen = set()
    with open(os.path.join(folder, "catalog.csv"), newline="", encoding="utf-8") as f:
        rows = sorted(csv.DictReader(f), key=lambda r: (int(r["rows"]), r["name"], r["file"]))
    for row in rows:
        if (row["rows"] != row["cols"] or not LEAST <= int(row["rows"]) <= MOST or row["field"] == "pattern"
                or (names and row["name"] not in names)):  # fmt: skip
            continue
        a = read(os.path.join(folder, row["file"]))
        key = fingerprint(a)
        if key not in seen:
            seen.add(key)
            yield row, a


def structural_rank(a):
    """The most rows that can be matched to columns, by augmenting paths (I. S. Duff, ACM TOMS 7(3), 1981)."""
    ptr, col = a.indptr.tolist(), a.indices.tolist()
    row_of, visited, rank = [-1] * a.shape[1], [-1] * a.shape[1], 0
    for start in range(a.shape[0]):
        path, place, chosen, found = [start], [ptr[start]], [], False
        while path and not found:
            row = path[-1]
            free = [c for c in col[ptr[row] : ptr[row + 1]] if row_of[c] < 0] if place[-1] == ptr[row] else []
            if free:
                chosen.append(free[0])
                found = True
                break
            while place[-1] < ptr[row + 1] and visited[col[place[-1]]] == start:
                place[-1] += 1
            if place[-1] == ptr[row + 1]:
                path.pop()
                place.pop()
                chosen = chosen[: max(len(path) - 1, 0)]
            else:
                c = col[place[-1]]
                visited[c] = start
                chosen.append(c)
                path.append(row_of[c])
                place.append(ptr[row_of[c]])
        if found:
            rank += 1
            for row, c in zip(path, chosen):
                row_of[c] = row
    return rank


def equilibrate(a):
    a = a.copy()
    for _ in range(10):
        for axis in (1, 0):
            largest = abs(a).max(axis=axis).toarray().ravel()
            scale = scipy.sparse.diags(1 / np.sqrt(np.where(largest > 0, largest, 1)))
            a = scale @ a if axis == 1 else a @ scale
    return a


def condition(a):
    """The condition number of the equilibrated matrix; infinite without a factorisation."""
    try:
        scaled = equilibrate(a).tocsc()
        factors = scipy.sparse.linalg.splu(scaled)
    except RuntimeError:
        return np.inf
    inverse = scipy.sparse.linalg.LinearOperator(
        a.shape, matvec=factors.solve, rmatvec=lambda v: factors.solve(v, "H"), dtype=a.dtype
    )
    return scipy.sparse.linalg.onenormest(inverse) * scipy.sparse.linalg.norm(scaled, 1)


def residual(a, x, b):
    kind = np.clongdouble if np.iscomplexobj(a.data) else np.longdouble
    if x is None or x.shape != b.shape or not np.all(np.isfinite(x)):
        return np.inf
    r = b.astype(kind) - a.astype(kind) @ x.astype(kind)
    return float(np.linalg.norm(np.abs(r)) / np.linalg.norm(np.abs(b)))


# ------------------------------------------------------------ peers, each in its own process


def refine(solve, a, b):
    """solve(x, rtol): (x, iterations, converged)"""
    x, total = np.zeros_like(b), 0
    for k in range(4):
        x, iterations, converged = solve(x, RTOL / 10**k)
        total += iterations
        if not converged or np.linalg.norm(b - a @ x) <= RTOL * np.linalg.norm(b):
            break
    return x, total, converged


def worker_scipy(a, b):
    m = scipy.sparse.linalg.spilu(a.tocsc(), drop_tol=1e-4, fill_factor=10)
    m = scipy.sparse.linalg.LinearOperator(a.shape, m.solve, dtype=a.dtype)

    def solve(x, rtol):
        counted = []
        x, info = scipy.sparse.linalg.gmres(a, b, x0=x, rtol=rtol, atol=0, restart=50, M=m, maxiter=len(b) // 5 + 1,
                                            callback=counted.append, callback_type="pr_norm")  # fmt: skip
        return x, len(counted), info == 0

    return refine(solve, a, b)


def worker_petsc(a, b, levels):
    from petsc4py import PETSc

    if np.iscomplexobj(b) != np.issubdtype(PETSc.ScalarType, np.complexfloating):
        raise RuntimeError("this PETSc has the other kind of numbers")
    m = PETSc.Mat().createAIJ(a.shape, csr=(a.indptr.astype(PETSc.IntType), a.indices.astype(PETSc.IntType), a.data))
    right, x_vec = PETSc.Vec().createWithArray(b), m.createVecRight()
    ksp = PETSc.KSP().create()
    ksp.setOperators(m)
    ksp.setType("gmres")
    ksp.setGMRESRestart(50)
    ksp.setPCSide(PETSc.PC.Side.RIGHT)
    ksp.getPC().setType("ilu")
    ksp.getPC().setFactorLevels(levels)

    def solve(x, rtol):
        x_vec.setArray(x)
        ksp.setInitialGuessNonzero(bool(np.any(x)))
        ksp.setTolerances(rtol=rtol, atol=0)
        ksp.solve(right, x_vec)
        return x_vec.getArray().copy(), ksp.getIterationNumber(), ksp.getConvergedReason() > 0

    return refine(solve, a, b)


def worker(system, folder):
    a, b = scipy.sparse.load_npz(folder + "/a.npz"), np.load(folder + "/b.npy")
    warnings.simplefilter("ignore")
    if system.startswith("petsc"):
        from petsc4py import PETSc  # the time of loading it does not count

        PETSc.Sys.getVersion()
    began = time.process_time()
    try:
        x, iterations, converged = worker_scipy(a, b) if system == "scipy" else worker_petsc(a, b, int(system[-1]))
    except Exception as error:  # pylint: disable=broad-exception-caught
        text = " ".join(str(error).split())[:200]
        print(json.dumps({"status": "failed", "message": text, "seconds": time.process_time() - began}))
        return
    seconds = time.process_time() - began
    np.save(folder + "/x.npy", x)
    print(json.dumps({"status": "done" if converged else "stopped", "iterations": iterations, "seconds": seconds}))


# ------------------------------------------------------------ running them


def limited(words, limit, environment=None):
    """Runs a process: (exit status, output, errors, processor time); None as status: out of time."""

    def limits():
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 5))
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))

    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(words, capture_output=True, text=True, check=False, preexec_fn=limits,
                          env=dict(os.environ, OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", **(environment or {})))  # fmt: skip
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return None if used > limit - 1 else done.returncode, done.stdout, done.stderr, used


def write_vector(path, v):
    kind = "complex" if np.iscomplexobj(v) else "real"
    numbers = np.column_stack([v.real, v.imag]) if kind == "complex" else v
    np.savetxt(path, numbers, fmt="%.17g", comments="",
               header=f"%%MatrixMarket matrix array {kind} general\n{len(v)} 1")  # fmt: skip


def run_spmv(o, folder, path, b):
    write_vector(folder + "/b.mtx", b)
    out = folder + "/x.mtx"
    if os.path.exists(out):
        os.remove(out)
    status, text, errors, used = limited([o.program, "solve", path, folder + "/b.mtx", "-o", out, "--backend", "omp",
                                          "--threads", "1", "--json", *o.options.split()], o.limit)  # fmt: skip
    # the failure, and what to try
    said = "; ".join(t.removeprefix("spmv: ") for t in errors.strip().split("\n")[-2:]) if status != 0 else ""
    line = {"seconds": used, "status": "out of time" if status is None else "", "message": said[-500:]}
    try:
        result = json.loads(text)["result"]["cg"]
        line |= {"status": result.get("status", "failed"), "iterations": result.get("iterations"),
                 "method": result.get("solver"), "precond": result.get("precond")}  # fmt: skip
    except (ValueError, KeyError):
        line["status"] = line["status"] or f"exit code {status}"
    if not os.path.exists(out):
        return line, None
    return line, np.asarray(scipy.io.mmread(out)).ravel()


def write_system(path, a, b):
    """What bench/peers/eigen_system.cc reads."""
    with open(path, "wb") as f:
        np.array([a.shape[0], a.nnz, np.iscomplexobj(b)], dtype=np.int64).tofile(f)
        a.indptr.astype(np.int32).tofile(f)
        a.indices.astype(np.int32).tofile(f)
        a.data.tofile(f)
        b.tofile(f)


def run_eigen(o, folder, system, a, b):
    write_system(folder + "/system", a, b)
    words = [o.eigen, system.removeprefix("eigen-"), folder + "/system", folder + "/x"]
    status, text, errors, used = limited(words, o.limit)
    if status != 0:
        return {"seconds": used, "status": "out of time" if status is None else "failed", "message": errors[-200:]}, None
    return json.loads(text), np.fromfile(folder + "/x", dtype=b.dtype)


def run_worker(o, folder, system, a, b):
    scipy.sparse.save_npz(folder + "/a.npz", a, compressed=False)
    np.save(folder + "/b.npy", b)
    complex_petsc = {"PYTHONPATH": o.petsc_complex} if np.iscomplexobj(b) and o.petsc_complex else {}
    if os.path.exists(folder + "/x.npy"):
        os.remove(folder + "/x.npy")
    words = [sys.executable, __file__, "worker", system, folder]
    status, text, errors, used = limited(words, o.limit, complex_petsc)
    if status != 0 or not text:
        return {"seconds": used, "status": "out of time" if status is None else "failed", "message": errors[-200:]}, None
    line = json.loads(text.strip().split("\n")[-1])
    return line, np.load(folder + "/x.npy") if os.path.exists(folder + "/x.npy") else None


def solve(o, folder, system, row, a, b):
    if system == "spmv":
        return run_spmv(o, folder, os.path.join(o.folder, row["file"]), b)
    if system.startswith("eigen"):
        return run_eigen(o, folder, system, a, b)
    return run_worker(o, folder, system, a, b)


def load(path):
    if not os.path.exists(path):
        return []
    with open(path, newline="", encoding="utf-8") as f:
        return list(csv.DictReader(f))


def run(o):
    known = load(o.results)
    done = {(r["file"], r["system"]) for r in known}
    about = {r["file"]: r for r in known}
    new = not known
    with open(o.results, "a", newline="", encoding="utf-8") as f, tempfile.TemporaryDirectory(prefix="general-") as folder:
        out = csv.DictWriter(f, FIELDS, extrasaction="ignore", lineterminator="\n")
        if new:
            out.writeheader()
        for row, a in matrices(o.folder, o.only.split(",") if o.only else []):
            todo = [s for s in o.systems.split(",") if (row["file"], s) not in done]
            if not todo:
                continue
            n = a.shape[0]
            if row["file"] in about:
                line = {k: about[row["file"]][k] for k in FIELDS[:8]}
            else:
                whole = structural_rank(a) == n
                number = condition(a) if whole else np.inf
                line = {"matrix": row["name"], "file": row["file"], "rows": n, "nnz": a.nnz, "field": row["field"],
                        "symmetry": row["symmetry"], "condition": f"{number:.1e}",
                        "singular": "structure" if not whole else "values" if not number <= SINGULAR else ""}  # fmt: skip
            random = np.random.default_rng(1)
            x = random.uniform(-1, 1, n)
            b = a @ (x + 1j * random.uniform(-1, 1, n) if np.iscomplexobj(a.data) else x)
            for system in todo:
                found, x = solve(o, folder, system, row, a, b)
                error = residual(a, x, b)
                found |= {"system": system, "solved": int(error <= RTOL * (1 + 1e-6)), "residual": f"{error:.1e}",
                          "seconds": f"{found['seconds']:.3f}"}  # fmt: skip
                out.writerow(line | found)
                f.flush()
                print(line["matrix"], n, system, "solved" if found["solved"] else "NOT SOLVED", found["residual"],
                      found["seconds"], found.get("status"), flush=True)  # fmt: skip


# ------------------------------------------------------------ tables


def seconds_of(row):
    seconds = float(row["seconds"])
    return f"{seconds:.2f}" if seconds < 10 else f"{seconds:.0f}"


def cell(row):
    if row is None:
        return ""
    return f"{row['iterations']}, {seconds_of(row)}" if row["solved"] == "1" else "-"


def by_matrix(rows):
    found = {}
    for r in rows:
        found.setdefault(r["file"], {})[r["system"]] = r
    return found


def print_systems(found, systems):
    print("| matrix | rows | nonzeros | method, preconditioner | iterations | s | residual | "
          + " | ".join(systems[1:]) + " |")  # fmt: skip
    print("|---|---|---|---|---|---|---|" + "---|" * (len(systems) - 1))
    for of in sorted(found, key=lambda one: (int(one["spmv"]["rows"]), one["spmv"]["matrix"])):
        r = of["spmv"]
        name = r["matrix"] + (" (complex)" if r["field"] == "complex" else "")
        how = f"{r['method']}, {r['precond']}" if r["solved"] == "1" else f"({r['status']}: {r['method']}, {r['precond']})"
        print(f"| {name} | {r['rows']} | {r['nnz']} | {how} | {r['iterations']} | {seconds_of(r)} | {r['residual']} | "
              + " | ".join(cell(of.get(s)) for s in systems[1:]) + " |")  # fmt: skip


def print_tables(path):
    rows = load(path)
    found = {k: v for k, v in by_matrix(rows).items() if "spmv" in v}
    systems = [s for s in SYSTEMS if any(r["system"] == s for r in rows)]
    groups = {"": [], "singular": []}
    for of in found.values():
        groups["singular" if of["spmv"]["singular"] else ""].append(of)
    total = len(groups[""])
    print("| system | solved | share | seconds (sum) |\n|---|---|---|---|")
    for s in systems:
        have = [of[s] for of in groups[""] if s in of]
        solved = sum(r["solved"] == "1" for r in have)
        print(f"| {s} | {solved} of {len(have)} | {100 * solved / max(len(have), 1):.0f} % | "
              f"{sum(float(r['seconds']) for r in have):.0f} |")  # fmt: skip
    print(f"\n{total} matrices that are not singular:\n")
    print_systems(groups[""], systems)
    print("\nSingular matrices:\n")
    print_systems(groups["singular"], systems)
    print("\nNot solved by spmv:\n")
    for of in found.values():
        r = of["spmv"]
        if r["solved"] != "1":
            others = [s for s in systems[1:] if s in of and of[s]["solved"] == "1"]
            print(f"- {r['matrix']}, {r['rows']} rows{', solved by ' + ', '.join(others) if others else ''}: {r['message']}")


def main():
    if sys.argv[1:2] == ["worker"]:
        worker(*sys.argv[2:4])
        return
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = p.add_subparsers(dest="command", required=True)
    r = commands.add_parser("run")
    for name in ("program", "folder", "results"):
        r.add_argument(name)
    r.add_argument("--eigen")
    r.add_argument("--systems")
    r.add_argument("--only")
    r.add_argument("--limit", type=int, default=60)
    r.add_argument("--options", default="", help="more options of spmv solve")
    r.add_argument("--petsc-complex")
    commands.add_parser("print").add_argument("results")
    o = p.parse_args()
    if o.command == "print":
        print_tables(o.results)
        return
    o.systems = o.systems or ",".join(s for s in SYSTEMS if o.eigen or not s.startswith("eigen"))
    run(o)


if __name__ == "__main__":
    main()

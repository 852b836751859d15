#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Time, memory and error of x of auto, of each library of direct, of SciPy's SuperLU and of PyPardiso.

usage: direct.py RESULTS [FOLDER ...] [--other LABEL=PATH] [--tools NAME ...] [--limit SECONDS] [--most NONZEROS]

FOLDER: Matrix Market files (.mtx, .mtx.gz, .mtx.xz) of one group; files with equal matrices count once.
RESULTS gets a JSON line for each system and tool. What it has is not measured again. Then tables are printed:
how many are right, and geometric means of time and memory over the least of all tools as right. PATH: a folder with the package of another build, whose auto is the tool "auto LABEL".

b is A times random numbers, rounded. Errors are those against the solution of A x = b for this rounded b: by
factors, refined in long double until x stands. Where it does not, only what the tools tell is counted. A
measurement has a process of its own, which solves a small system first. Time: of the processor, for set-up
and solve by one thread, the least of up to five runs. Memory: the most that the first run adds to the matrix.
"""

import argparse
import collections
import gzip
import hashlib
import importlib
import json
import lzma
import mmap
import os
import pathlib
import resource
import sys
import time
import warnings

for library in "OMP", "OPENBLAS", "MKL":
    os.environ[library + "_NUM_THREADS"] = "1"

import numpy as np
import scipy.io
import scipy.sparse as sp
import scipy.sparse.linalg as la
import spmv

try:
    from pypardiso.scipy_aliases import pypardiso_solver  # another one would search for MKL again
except ImportError:
    pypardiso_solver = None

RIGHT, DIGITS = 1e-3, 1e-8
LEAST = {"seconds": 0, "bytes": 2**20}  # less counts as this much


def spmv_solve(**options):
    """A solve by the package."""

    def solve(A, b):
        result = spmv.Solver(A, device="cpu", **options).solve(b)
        return result.x, result.status, f"{result.solver} {result.preconditioner}"

    return solve


def superlu(A, b):
    return la.splu(A.tocsc()).solve(b), "SPMV_OK", ""


def pardiso(A, b):
    try:
        return pypardiso_solver.solve(A, b), "SPMV_OK", ""
    finally:
        pypardiso_solver.free_memory(everything=True)


TOOLS = {
    "auto": spmv_solve(),
    "auto, accuracy 8": spmv_solve(accuracy=8),
    **{f"direct:{name}": spmv_solve(solver=f"direct:{name}") for name in ("cholmod", "mumps", "klu", "umfpack")},
    "SuperLU": superlu,
    **({"PyPardiso": pardiso} if pypardiso_solver is not None else {}),
}


def in_process(call, limit):
    """What call() returns, as JSON, in a process of its own. None: that was killed."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
        resource.setrlimit(resource.RLIMIT_AS, (2**34, 2**34))
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        try:
            os.write(write, json.dumps(call()).encode())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        said = pipe.read()
    os.waitpid(child, 0)
    return json.loads(said) if said else None


def wide(A):
    return A.astype(np.clongdouble if A.dtype.kind == "c" else np.longdouble)


def reference(A, b, made_of, limit):
    """The solution in long double. None: it is not known."""
    exact = wide(A)
    shared = np.frombuffer(mmap.mmap(-1, 2 * A.shape[0] * exact.dtype.itemsize), exact.dtype).reshape(2, -1)  # by processes

    def refine(x, factors):
        solve = factors()
        x[:] = solve(b)
        last = np.inf
        for _ in range(40):
            d = solve((b - exact @ x).astype(b.dtype))
            step = float(np.linalg.norm(d) / np.linalg.norm(x))
            if not step < 0.5 * last:
                break
            x[:] += d
            last = step
        return last

    def direct():
        solver = spmv.Solver(A, solver="direct", device="cpu", estimate_error=False)
        return lambda r: solver.solve(r).x

    def stands(x, factors):
        last = in_process(lambda: refine(x, factors), 3 * limit)
        return last is not None and last < 1e-10

    def differ(x, y):
        return float(np.linalg.norm(x - y) / np.linalg.norm(x))

    x, y = shared
    if not stands(x, lambda: la.splu(A.tocsc()).solve) and not stands(x, direct):
        return None
    if differ(x, made_of) < 1e-5:  # a singular A has other solutions, and so do other factors
        return x
    return x if stands(y, lambda: la.splu(A.tocsc(), permc_spec="MMD_AT_PLUS_A").solve) and differ(x, y) < 1e-9 else None


def memory(name):
    """VmRSS or VmHWM of this process."""
    lines = pathlib.Path("/proc/self/status").read_text().splitlines()
    return 1024 * int(next(line for line in lines if line.startswith(name)).split()[1])


def measure(solve, path, A, b, x):
    """One tool on one system."""
    global spmv
    if path is not None:
        sys.path.insert(0, path)
        for name in [name for name in sys.modules if name.split(".")[0] == "spmv"]:
            del sys.modules[name]
        spmv = importlib.import_module("spmv")
    small = sp.csr_array(sp.diags_array([2.0, -1.0, -1.0], offsets=[0, 1, -1], shape=(9, 9)).astype(A.dtype))
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            solve(small, np.ones(9, A.dtype))  # loads libraries
            said.clear()
            pathlib.Path("/proc/self/clear_refs").write_text("5")  # VmHWM begins again
            before, seconds = memory("VmRSS"), []
            while len(seconds) < 5 and sum(seconds) < 0.5:
                start = time.thread_time()  # that of a process is coarse where it has a limit
                y, status, by = solve(A, b)
                seconds.append(time.thread_time() - start)
                most = memory("VmHWM") - before if len(seconds) == 1 else most
        except Exception as error:  # of whatever kind a package raises
            return {"status": f"{type(error).__name__}: {error}"[:200], "told": True}
    told = status != "SPMV_OK" or not np.isfinite(y).all() or any("digits" in str(w.message) for w in said)
    row = {"seconds": min(seconds), "bytes": most, "status": status, "told": told, "by": by}
    if x is not None and np.isfinite(y).all():
        row["error"] = float(np.linalg.norm(y - x) / np.linalg.norm(x))
    return row


def load(path):
    with {".xz": lzma.open, ".gz": gzip.open}.get(path.suffix, open)(path, "rb") as file:
        A = sp.csr_array(scipy.io.mmread(file))
    A = A.astype(complex if A.dtype.kind == "c" else float)
    A.sum_duplicates()
    return A


def run(args):
    """Measures what the file of results does not have yet."""
    label, _, path = args.other.partition("=")
    tools = {name: (solve, None) for name, solve in TOOLS.items()} | ({f"auto {label}": (TOOLS["auto"], path)} if path else {})
    rows = read(args.results)
    done, systems = {(r["system"], r["tool"]) for r in rows}, {r["hash"]: r["system"] for r in rows}
    with args.results.open("a") as out:
        for file in (file for folder in args.folders for file in sorted(folder.glob("*.mtx*"))):
            name, A = f"{file.parent.name}/{file.name.split('.mtx')[0]}", load(file)
            key = hashlib.sha1(b"".join(part.tobytes() for part in (A.indptr, A.indices, A.data))).hexdigest()
            left = [tool for tool in args.tools or tools if (name, tool) not in done]
            if A.shape[0] != A.shape[1] or A.nnz > args.most or systems.setdefault(key, name) != name or not left:
                continue
            made_of = np.random.default_rng(A.shape[0]).standard_normal(A.shape[0])
            b = (wide(A) @ made_of).astype(A.dtype)
            x = reference(A, b, made_of, args.limit)
            for tool in left:
                row = in_process(lambda tool=tool: measure(*tools[tool], A, b, x), args.limit)
                row = row or {"status": "ended by a signal: over the limit, or a crash", "told": True}
                row |= {"system": name, "rows": A.shape[0], "nnz": A.nnz, "known": x is not None, "tool": tool, "hash": key}
                print(json.dumps(row), file=out, flush=True)


def read(path):
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def ratios(systems, tool, what, most):
    """For each system: over the least of all tools with an error as small."""
    of = {}
    for name, tools in systems.items():
        rows = {who: row for who, row in tools.items() if who in (tool, *TOOLS) and row.get("error", 1) <= most}
        if tool in rows:
            good = {who: max(row[what], LEAST[what]) for who, row in rows.items()}
            of[name] = good[tool] / min(good.values())
    return of


def mean(of):
    return f"{np.exp(np.mean(np.log(list(of.values())))):.2f}" if of else ""


def table(group, systems):
    known = {name: tools for name, tools in systems.items() if all(row["known"] for row in tools.values())}
    print(f"\n{group}: {len(systems)} systems, the solution of {len(known)} is known\n")
    print("| tool | error below 1e-3 | worse, not told | time | memory | error below 1e-8 | time | slowest |\n|---|---|---|---|---|---|---|---|")
    for tool in dict.fromkeys([*TOOLS, *(tool for tools in systems.values() for tool in tools)]):
        right, digits = (ratios(known, tool, "seconds", most) for most in (RIGHT, DIGITS))
        wanted = DIGITS if "accuracy" in tool else RIGHT
        silent = [name for name, tools in known.items() if tool in tools and not tools[tool]["told"] and not tools[tool].get("error", 1) <= wanted]
        slow = [f"{name.split('/')[1]} {right[name]:.1f}" for name in sorted(right, key=right.get)[:-4:-1]]
        memory = ratios(known, tool, "bytes", RIGHT)
        cells = tool, len(right), len(silent), mean(right), mean(memory), len(digits), mean(digits), ", ".join(slow)
        print("| " + " | ".join(map(str, cells)) + " |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", type=pathlib.Path)
    parser.add_argument("folders", type=pathlib.Path, nargs="*")
    parser.add_argument("--other", default="", help="LABEL=PATH")
    parser.add_argument("--tools", nargs="+", help="some of the tools")
    parser.add_argument("--limit", type=int, default=20, help="seconds of the processor for a measurement")
    parser.add_argument("--most", type=int, default=10**9, help="nonzeros of a matrix")
    args = parser.parse_args()
    run(args)
    groups = collections.defaultdict(lambda: collections.defaultdict(dict))
    for row in read(args.results):
        for group in row["system"].split("/")[0], "all":
            groups[group][row["system"]][row["tool"]] = row
    for group in sorted(groups, key=lambda group: group == "all"):
        table(group, groups[group])


if __name__ == "__main__":
    main()

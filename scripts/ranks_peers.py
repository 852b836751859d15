#!/usr/bin/env python3
"""Compares whole solutions on ranks, set-up and solve, with those of other libraries: conjugate gradients
with multigrid of spmv on ranks that are threads and on processes of MPI, hypre's PCG with BoomerAMG and
PETSc's KSPCG with GAMG, all with as many ranks on the cores of one machine.

usage: ranks_peers.py BUILD [-n RANKS] [-r ROUNDS] [--precond NAME] [--json FILE] SPEC|FILE...

BUILD: a build with spmv, the peers hypre and petsc (spmv_peer_hypre, spmv_peer_petsc) and the module
spmv_transport_openmpi. b = A times ones, x begins at 0. All stop at norm(r) <= 1e-8 norm(b); the norm of
b - A x of each x is computed by the program, and a solution that misses it by more than 1 % is left out.
The time does not include the distribution of the matrix. The peers choose the fastest of four settings for
each matrix before they are timed; spmv has one.

The solvers run in turns for ROUNDS rounds (default 3), each with several solutions. The least time of each
counts, because other programs only add to it; the table also has the median of the rounds' medians. Standard
library only.

SPDX-License-Identifier: BSD-3-Clause"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

LIMIT = 1200  # seconds for one run
RTOL = 1.01e-8
PEERS = {"hypre-amg-cg": "hypre BoomerAMG", "petsc-gamg-cg": "PETSc GAMG"}
OURS = ("spmv, threads", "spmv, Open MPI")
ALONE = "spmv, no ranks"


def run(command, folder, build, **more):
    """The JSON of a run of spmv bench; None: it failed."""
    path = os.path.join(folder, "result.json")
    environment = dict(os.environ, OMP_WAIT_POLICY="passive", OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
                       OMPI_MCA_rmaps_base_oversubscribe="1", OMPI_MCA_plm_rsh_agent="", OMPI_MCA_mpi_yield_when_idle="1",
                       SPMV_MODULE_PATH=os.path.join(build, "solvers/modules"), **more)
    done = subprocess.run([*command, f"--json={path}"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                          stdin=subprocess.DEVNULL, timeout=LIMIT, env=environment)
    if not os.path.exists(path):
        print(done.stderr, file=sys.stderr)
        return None
    with open(path) as f:
        answer = json.load(f)
    os.remove(path)
    return answer


def figures(of):
    """What counts of a result or a peer; None: it is not there or wrong."""
    cg = of.get("cg")
    if not cg or cg.get("relative_residual", 1) > RTOL:
        return None
    return {"min": of["seconds"]["min"], "median": of["seconds"]["median"], "set-up": cg["precond_seconds"],
            "iterations": cg["iterations"]}


def compare(o, matrix, folder):
    """For each solver the figures of each round."""
    spmv = [os.path.join(o.build, "app/spmv"), "bench", matrix, "--op", "cg", "--precond", o.precond, "-q"]
    mpi = ["mpirun.openmpi", "--bind-to", "none", "-n", str(o.ranks)]
    rounds = {name: [] for name in (*OURS, ALONE, *PEERS.values())}
    for _ in range(o.rounds):
        for name, command in zip(OURS, ([*spmv, "--ranks", str(o.ranks)], [*mpi, *spmv, "--threads", "1"])):
            answer = run(command, folder, o.build)
            rounds[name].append(answer and figures(answer["result"]))
        answer = run([*spmv, "--threads", str(o.ranks), "--peers", ",".join(PEERS)], folder, o.build,
                     SPMV_HYPRE_TIMEOUT=str(LIMIT), SPMV_PETSC_TIMEOUT=str(LIMIT))
        peers = {p["name"]: p for p in answer["peers"]} if answer else {}
        rounds[ALONE].append(answer and figures(answer["result"]))
        for name, label in PEERS.items():
            rounds[label].append(figures(peers.get(name, {})))
    return {name: [one for one in got if one] for name, got in rounds.items()}


def least(got):
    return min(got, key=lambda one: one["min"]) if got else None


def cell(got):
    best = least(got)
    if best is None:
        return "-"
    return f"{1e3 * best['min']:.0f} ({1e3 * statistics.median(one['median'] for one in got):.0f}), {best['iterations']}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("build")
    parser.add_argument("matrices", nargs="+")
    parser.add_argument("-n", "--ranks", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("-r", "--rounds", type=int, default=3)
    parser.add_argument("--precond", default="amg")
    parser.add_argument("--json", dest="output")
    o = parser.parse_intermixed_args()
    results = {}
    with tempfile.TemporaryDirectory() as folder:
        for matrix in o.matrices:
            results[matrix] = compare(o, matrix, folder)
            print(matrix, results[matrix], file=sys.stderr, flush=True)
            if o.output:
                with open(o.output, "w") as f:
                    json.dump(results, f)
    print(f"Set-up and solve on {o.ranks} ranks, ms: the least (the median), iterations")
    print("| matrix | " + " | ".join((*OURS, ALONE, *PEERS.values())) + " | better peer / threads | / Open MPI |")
    print("|---" * (len(OURS) + len(PEERS) + 4) + "|")
    for matrix, got in results.items():
        peers = [least(got[name])["min"] for name in PEERS.values() if got[name]]
        ratios = [f"{min(peers) / least(got[name])['min']:.2f}" if peers and got[name] else "-" for name in OURS]
        print(f"| {os.path.basename(matrix)} | " + " | ".join(map(cell, got.values())) + " | " + " | ".join(ratios) + " |")


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Compares conjugate gradients on ranks with PETSc's KSPCG and hypre's PCG, one MPI rank a core,
all without a preconditioner: the processor time of all ranks for an iteration, and the time on the
clock. Each is the difference of two runs with different numbers of iterations. The solvers take
turns; of each run the least time counts, because other programs only add to it.

usage: ranks_peers.py BUILD [-n RANKS] [-r ROUNDS] [-i FEW,MANY] SPEC|FILE...
  BUILD: a build with the targets spmv_program, cg_with_petsc and precond_with_hypre
The processor time of a rank that polls includes waits for a rank that has lost its core; -n 1 has
none. Needs mpiexec of the MPI that the libraries were built with, and Python with numpy and scipy.

SPDX-License-Identifier: BSD-3-Clause"""
import argparse
import os
import resource
import subprocess
import tempfile
import time

from precond_peers import write_system

LIMIT = 120  # seconds for one run
MPIEXEC = ["mpiexec", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "--mca", "mpi_yield_when_idle",
           "1"]


def children():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def measured(command, threads):
    """Processor time and time of a command, in seconds."""
    used, begin = children(), time.monotonic()
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL,
                   timeout=LIMIT, check=True,
                   env=dict(os.environ, OMP_NUM_THREADS=str(threads), OMP_WAIT_POLICY="passive", OPENBLAS_NUM_THREADS="1",
                            OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1"))
    return children() - used, time.monotonic() - begin


def commands(build, path, system, ranks):
    """The command of each solver, for a number of iterations, and its threads."""
    mpi = [*MPIEXEC, "-n", str(ranks)]
    spmv = [os.path.join(build, "app/spmv"), "solve", path, "--rtol", "1e-14", "--verify=off", "--precond", "none", "-q",
            "--backend", "omp", "-o", "/dev/null", "--max-iterations"]
    return {
        "spmv --ranks": lambda n: ([*spmv, str(n), "--ranks", str(ranks), "--threads", str(ranks)], ranks),
        "spmv, MPI": lambda n: ([*mpi, *spmv, str(n), "--threads", "1"], 1),
        "PETSc": lambda n: ([*mpi, os.path.join(build, "bench/cg_with_petsc"), system, str(n)], 1),
        "hypre": lambda n: ([*mpi, os.path.join(build, "bench/precond_with_hypre"), system, "0", str(n)], 1),
    }


def run(command, threads):
    """As measured, where a solve that stops at its last iteration is no failure (exit code 7)."""
    return measured(["sh", "-c", '"$@"; code=$?; [ $code = 7 ] || exit $code', "sh", *command], threads)


def compare(build, path, ranks, rounds, few, many, folder):
    system = os.path.join(folder, "system")
    write_system(path, system)
    tries = {name: [] for name in commands(build, path, system, ranks)}
    for _ in range(rounds):
        for name, command in commands(build, path, system, ranks).items():
            tries[name].append((run(*command(few)), run(*command(many))))
    os.remove(system)
    return {name: [1e6 * (min(t[1][k] for t in got) - min(t[0][k] for t in got)) / (many - few) for k in range(2)]
            for name, got in tries.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("build")
    parser.add_argument("matrices", nargs="+")
    parser.add_argument("-n", "--ranks", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("-r", "--rounds", type=int, default=5)
    parser.add_argument("-i", "--iterations", default="50,250")
    o = parser.parse_intermixed_args()
    few, many = map(int, o.iterations.split(","))
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for matrix in o.matrices:
            path = matrix
            if not os.path.exists(matrix):
                path = os.path.join(folder, "grid.mtx")
                subprocess.run([os.path.join(o.build, "app/spmv"), "gen", matrix, "-o", path, "-q"], check=True)
            rows.append((matrix, compare(o.build, path, o.ranks, o.rounds, few, many, folder)))
    names = list(rows[0][1])
    print(f"Processor time of {o.ranks} ranks for an iteration (time on the clock), us")
    print("| matrix | " + " | ".join(names) + " | best peer / spmv, MPI |")
    print("|---" * (len(names) + 2) + "|")
    for matrix, got in rows:
        ratio = min(got["PETSc"][0], got["hypre"][0]) / got["spmv, MPI"][0]
        print(f"| {os.path.basename(matrix)} | " + " | ".join(f"{got[n][0]:.0f} ({got[n][1]:.0f})" for n in names)
              + f" | {ratio:.2f} |")


if __name__ == "__main__":
    main()

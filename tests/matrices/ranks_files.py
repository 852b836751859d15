#!/usr/bin/env python3
"""Compares several ranks with one, bit by bit, on files of a folder of SuiteSparse matrices and on
generated matrices: y of spmv matvec; x and the history of spmv solve for symmetric positive
definite ones. Ranks are threads, and processes of an MPI: of each in turn, because its start takes
longer than the work.

usage: ranks_files.py SPMV FOLDER BACKEND MPIS
SPMV is the program. FOLDER as for matrices.py. BACKEND: omp, or cuda, where all ranks share one GPU
and files are unpacked before. MPIS: the modules that were built, such as "openmpi,mpich"; "none":
threads only. Takes every sixth matrix; with SPMV_TEST_ALL=1 (check.sh), and on cuda, all, on every
MPI. Exit code 77: the folder is missing or the backend is not available.

SPDX-License-Identifier: BSD-3-Clause
"""
import concurrent.futures
import os
import shutil
import subprocess
import sys
import tempfile

from matrices import SKIPPED, rows_of, unpacked

FILES, SOLVES = 30, 12
RANKS = (2, 3, 4, 7, 8)
SPECS = ("poisson2d:60", "poisson3d:16", "stencil27:12", "diffusion2d:50,1000", "diffusion3d:14,100", "convdiff2d:50,3",
         "convdiff3d:14,3", "diagonal:9000", "banded:5000,3", "dense:200,300", "arrow:20000", "uniform:4000,6000,8",
         "longrows:60,30000,5000", "empty:9000,0.8", "powerlaw:9000,8,2.2,3000", "rmat:12,8", "fem:700,3,9",
         "twin:rows=4000,nnz=60000")
DEFINITE = ("poisson2d:", "poisson3d:", "stencil27:", "diffusion2d:", "diffusion3d:", "diagonal:")


def spread(rows, count):
    """About this many of the rows, evenly by their nonzeros."""
    rows = sorted(rows, key=lambda row: int(row["nnz_expanded"]))
    step = max(1, len(rows) / count)
    return [rows[int(i * step)] for i in range(min(count, len(rows)))]


def outputs(program, backend, matrix, solves, ranks, mpi, folder):
    """The bytes of y, and of x and the history; with the exit code."""
    environment = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
                       OMPI_MCA_rmaps_base_oversubscribe="1", OMPI_MCA_hwloc_base_binding_policy="none")
    start = ["mpirun." + mpi, "-n", str(ranks), program] if mpi else [program]
    more = [] if mpi else ["--ranks", str(ranks)]
    found = []
    jobs = [["matvec", matrix]]
    if solves:
        jobs.append(["solve", matrix, "--max-iterations", "300", "--history", os.path.join(folder, "history")])
    for job in jobs:
        out = os.path.join(folder, "out")
        done = subprocess.run([*start, *job, *more, "--backend", backend, "-o", out, "-q"], capture_output=True, env=environment,
                              stdin=subprocess.DEVNULL)
        found.append(done.returncode)
        if done.returncode not in (0, 7, 8): # 8: p'Ap <= 0; x and the history are written too
            raise RuntimeError(f"{' '.join(job)} on {ranks} ranks: {done.stderr.decode()}")
        with open(out, "rb") as f:
            found.append(f.read())
    if solves:
        with open(os.path.join(folder, "history"), "rb") as f:
            found.append(f.read())
    return found


def compare(program, backend, matrix, solves, mpis):
    """What differs from one rank; []: nothing."""
    with tempfile.TemporaryDirectory() as folder:
        one = outputs(program, backend, matrix, solves, 1, None, folder)
        ways = [(None, ranks) for ranks in RANKS] + [(mpi, 2) for mpi in mpis]
        return [f"{matrix}: {ranks} ranks, {mpi or 'threads'}" for mpi, ranks in ways
                if outputs(program, backend, matrix, solves, ranks, mpi, folder) != one]


def main(program, folder, backend, mpis):
    rows = rows_of(folder)
    if rows is None:
        return SKIPPED
    if subprocess.run([program, "matvec", "diagonal:1", "-q", "--backend", backend, "-o", os.devnull]).returncode == 6:
        print(f"skipped: no {backend}")
        return SKIPPED
    mpis = [mpi for mpi in mpis.split(",") if shutil.which("mpirun." + mpi)]
    real = [row for row in rows if row["field"] != "complex" and int(row["nnz_expanded"]) > 0]
    definite = [row for row in real if row["posdef_suitesparse"] == "yes"]
    files = [(row, True) for row in spread(definite, SOLVES)]
    chosen = [row["file"] for row, _ in files]
    others = [row for row in real if row["file"] not in chosen]
    files += [(row, False) for row in spread(others, FILES - len(files))]
    if len(files) < FILES:
        print(f"{len(files)} files, wanted {FILES}")
        return 1
    everything = backend == "cuda" or bool(os.environ.get("SPMV_TEST_ALL"))
    with tempfile.TemporaryDirectory() as scratch:
        paths = [os.path.join(folder, row["file"]) for row, _ in files]
        if backend == "cuda":
            paths = list(unpacked([row for row, _ in files], folder, scratch))
        jobs = list(zip(paths, [solves for _, solves in files]))
        jobs += [(spec, spec.startswith(DEFINITE)) for spec in SPECS]
        jobs = jobs if everything else jobs[::6]
        mpis_of = [mpis if everything or not mpis else [mpis[number % len(mpis)]] for number in range(len(jobs))]
        # A run on a GPU mostly waits for its start, one on omp uses all cores.
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count() // 2 or 1 if backend == "cuda" else 1) as pool:
            found = pool.map(lambda job, some: compare(program, backend, *job, some), jobs, mpis_of)
            different = [line for lines in found for line in lines]
    for line in different:
        print("other bits:", line)
    print(f"{len(jobs)} matrices, {sum(solves for _, solves in jobs)} of them solved; ranks 1, "
          f"{', '.join(map(str, RANKS))}; MPI: {', '.join(mpis) or 'none'}; {len(different)} differ")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:5]))

# SPDX-License-Identifier: BSD-3-Clause
"""A group of processes of MPI, each with its own rows.

Needs mpi4py, mpirun of its MPI, and the library's module for that MPI in SPMV_MODULE_PATH or in a build
folder of the source tree.
"""

import os
import pathlib
import shutil
import subprocess
import sys

import pytest

SCRIPT = """
import sys
import numpy as np
import spmv
from mpi4py import MPI

comm = MPI.COMM_WORLD
A = spmv.generate("poisson3d:12")
n = A.shape[0]
cuts = [n * k * k // comm.size**2 for k in range(comm.size + 1)]  # not the library's own
mine = slice(cuts[comm.rank], cuts[comm.rank + 1])
own = A[mine]
rng = np.random.default_rng(3)
b, B = rng.standard_normal(n), rng.standard_normal((n, 2))
near = np.ones((n, 1))


def same(part, whole):
    assert np.array_equal(part, whole[mine]), "other bits than on threads"


def raises(error, words, call):
    try:
        call()
    except error as raised:
        assert words in str(raised), raised
    else:
        raise AssertionError("no " + words)


with spmv.Group(ranks=2) as threads:
    D = threads.matrix(A)
    y, x = D @ b, threads.solve(A, b, precond="amg").x
    X, turned = threads.solver(A, "jacobi").solve(B).x, D.T @ b
    nulls = threads.solve(A, b, precond="amg", options={"near_null": near}).x
    rows = np.repeat(np.arange(n), np.diff(A.indptr))
    sums = np.bincount(rows, A.data, n)
    free = A.data - sums[rows] * (rows == A.indices)  # each row sums to 0
    singular = threads.solve((free, A.indices, A.indptr), A @ b - sums * b, shape=(n, n), null=near).x
    unsymmetric = threads.solve(spmv.generate("convdiff2d:15,3"), np.ones(225), precond="jacobi").x

with spmv.Group(comm=comm) as group:
    assert (group.size, group.rank, group.transport) == (comm.size, comm.rank, "mpi")
    D = group.matrix(own)
    assert D.shape == (n, n) and D.nnz == A.nnz
    same(D @ b[mine], y)
    same(D.T @ b[mine], turned)
    history = []
    result = group.solve(D, b[mine], precond="amg", on_residual=lambda k, r: history.append(r))
    assert result.converged and (len(history) == result.iterations + 1) == (comm.rank == 0)
    same(result.x, x)
    again = group.solve(D, b[mine], x0=result.x, precond="amg")
    assert again.iterations == 0
    same(group.solver(D, "jacobi").solve(B[mine]).x, X)
    same(group.solve(own, b[mine], precond="amg", options={"near_null": near[mine]}).x, nulls)
    begin, end = A.indptr[mine.start], A.indptr[mine.stop]
    parts = free[begin:end], A.indices[begin:end], A.indptr[mine.start : mine.stop + 1] - begin
    right = (A @ b - sums * b)[mine]
    same(group.solve(parts, right, shape=(len(right), n), null=near[mine]).x, singular)
    G = group.generate("convdiff2d:15,3")
    part = np.ones(225 // comm.size + (225 % comm.size if comm.rank == 0 else 0))
    raises(ValueError, "shape", lambda: group.solve(G, np.ones(300)))
    found = group.solve(group.read(sys.argv[1]), part, precond="jacobi").x
    assert np.array_equal(np.concatenate(comm.allgather(found)), unsymmetric)

    solver = group.solver(D, "jacobi")
    solver.update_values(2 * own.data)
    same(D @ b[mine], 2 * y)
    assert solver.solve(2 * b[mine]).converged
    D.update_values(own.data)

    # what one rank does wrong, all ranks learn
    wrong = b[mine].copy()
    if comm.rank == 1:
        wrong[0] = np.nan
    solver = group.solver(D, "jacobi")
    raises((ValueError, RuntimeError), "a NaN at index 0", lambda: solver.solve(wrong))
    raises((ValueError, RuntimeError), "rows", lambda: solver.solve(b[mine][comm.rank:]))
    raises(NotImplementedError, "COMM_WORLD", lambda: spmv.Group(comm=MPI.COMM_SELF) if comm.size > 1 else 0)
    assert solver.solve(b[mine]).converged

with spmv.Group(comm=comm, device="cpu") as group:  # a second one
    same(group.matrix(own) @ b[mine], y)
raises(ValueError, "one device", lambda: spmv.Group(comm=comm, device="ref"))
comm.Barrier()
print("ended well")
"""


def module_folder():
    """The folder of the library's module for Open MPI; None: none."""
    named = os.environ.get("SPMV_MODULE_PATH", "").split(":")
    built = pathlib.Path(__file__).parents[2].glob("build/*/solvers/modules")
    for folder in [*filter(None, named), *built]:
        if (pathlib.Path(folder) / "spmv_transport_openmpi.so").exists():
            return str(folder)
    return None


def test_processes_of_mpi(tmp_path):
    ranks = 3
    mpirun, folder = shutil.which("mpirun.openmpi"), module_folder()
    asked = subprocess.run(
        [sys.executable, "-c", "from mpi4py import MPI; print(MPI.get_vendor()[0])"], capture_output=True, text=True
    )
    if mpirun is None or folder is None or asked.stdout != "Open MPI\n":
        pytest.skip("mpi4py with Open MPI, its mpirun, or the module spmv_transport_openmpi.so is not there")
    import spmv

    spmv.write(tmp_path / "A.mtx", spmv.generate("convdiff2d:15,3"))
    (tmp_path / "script.py").write_text(SCRIPT)
    environment = dict(
        os.environ, SPMV_MODULE_PATH=folder, OMP_NUM_THREADS="1", OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
        OMPI_MCA_rmaps_base_oversubscribe="1", OMPI_MCA_plm_rsh_agent="", OMPI_MCA_hwloc_base_binding_policy="none",
    )  # fmt: skip
    done = subprocess.run(
        [mpirun, "-n", str(ranks), sys.executable, str(tmp_path / "script.py"), str(tmp_path / "A.mtx")],
        capture_output=True, text=True, timeout=60, env=environment, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert done.stdout.count("ended well") == ranks, done.stderr

# SPDX-License-Identifier: BSD-3-Clause
"""Groups of ranks: threads of this process. Processes of MPI: test_group_mpi.py."""

import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
import spmv
from conftest import DTYPES, bound, random_csr, vector


def spd(n=12):
    return spmv.generate(f"poisson3d:{n}")


@pytest.mark.parametrize("dtype", DTYPES)
def test_products(dtype):
    A = random_csr(900, 700, dtype)
    x, wide = vector(700, dtype), vector(700, dtype, columns=3)
    with spmv.Group(ranks=1) as group:
        one = group.matrix(A) @ x
    with spmv.Group(ranks=3) as group:
        D = group.matrix(A)
        assert D.shape == A.shape and D.nnz == A.nnz and D.dtype == dtype
        assert np.array_equal(D @ x, one)
        assert (abs(one - A @ x) <= bound(A, x, dtype)).all()
        assert np.array_equal((D @ wide)[:, 1], D @ np.ascontiguousarray(wide[:, 1]))
        z = vector(900, dtype)
        assert (abs(D.T @ z - A.T @ z) <= bound(A.T.tocsr(), z, dtype)).all()
        assert (abs(D.rmatvec(z) - A.conj().T @ z) <= bound(A.T.tocsr(), z, dtype)).all()
        assert D.T.T is D


def test_many_columns():
    """Columns of 64 bits. A product would need memory for all of x."""
    cols = 2**32 + 7
    columns = np.array([0, cols - 1, 2**31, 5, 2**32])
    arrays = (np.ones(5, np.float32), columns, np.arange(6))
    with spmv.Group(ranks=8) as group:
        try:
            D = group.matrix(arrays, shape=(5, cols))
        except MemoryError:
            pytest.skip("this system does not give memory that is not used")
        assert D.shape == (5, cols) and D.nnz == 5
        with pytest.raises(NotImplementedError, match="transpose"):
            D.T @ np.ones(5, np.float32)
        del D
        for wrong in (-1, cols):
            columns[3] = wrong
            with pytest.raises(ValueError, match=f"column {wrong} is outside the {cols} columns"):
                group.matrix(arrays, shape=(5, cols))
        columns[3] = 5
        with pytest.raises(ValueError, match="decreases"):
            group.matrix((arrays[0], columns, np.array([0, 4, 5, 3, 4, 5])), shape=(5, cols))
    with spmv.Group(ranks=1) as group, pytest.raises(ValueError, match="take 3 ranks or more"):
        group.matrix(arrays, shape=(5, cols))


def test_an_operator_of_scipy():
    linalg = pytest.importorskip("scipy.sparse.linalg")
    with spmv.Group(ranks=2) as group:
        D = group.generate("poisson2d:12")
        ours = linalg.eigsh(D, k=2, return_eigenvectors=False)
        inverse = group.solver(D, rtol=1e-12)
        least = linalg.eigsh(D, k=1, sigma=0, OPinv=inverse, return_eigenvectors=False)
    A = spmv.generate("poisson2d:12")
    assert np.allclose(ours, linalg.eigsh(A, k=2, return_eigenvectors=False))
    assert np.allclose(least, linalg.eigsh(A, k=1, sigma=0, return_eigenvectors=False))


@pytest.mark.parametrize("precond", ["none", "jacobi", "chebyshev", "amg", "auto"])
def test_bits_do_not_depend_on_ranks(precond):
    A, seen = spd(), []
    b = vector(A.shape[0])
    for ranks in (1, 2, 5):
        history = []
        with spmv.Group(ranks=ranks) as group:
            result = group.solve(A, b, precond=precond, rtol=1e-10, on_residual=lambda k, r: history.append((k, r)))
        assert result.converged and result.true_residual <= result.tolerance
        assert history[0][0] == 0 and len(history) == result.iterations + 1
        seen.append((result.x.tobytes(), result.iterations, history))
    assert seen[1] == seen[0] and seen[2] == seen[0]


def test_bits_of_no_ranks_on_ref():
    A = spd(8)
    b = vector(A.shape[0])
    alone = spmv.Plan(A, device="ref") @ b
    with spmv.Group(ranks=3, device="ref") as group:
        assert np.array_equal(group.matrix(A) @ b, alone)


@pytest.mark.parametrize("solver", ["minres", "gmres", "bicgstab"])
def test_other_solvers_and_the_transpose(solver):
    pytest.importorskip("scipy.sparse")
    A = spd(8) if solver == "minres" else spmv.generate("convdiff2d:20,5")
    b = vector(A.shape[0])
    seen = []
    for ranks in (1, 3):
        with spmv.Group(ranks=ranks) as group:
            D = group.matrix(A)
            result = group.solve(D, b, solver=solver, precond="jacobi")
            turned = group.solve(D.T, b, solver=solver, precond="jacobi")
            assert group.solver(D, "jacobi", solver).rmatvec(b).tobytes() == turned.x.tobytes()
        assert result.converged and result.solver == solver
        assert np.linalg.norm(A @ result.x - b) <= 1.01e-8 * np.linalg.norm(b)
        assert np.linalg.norm(A.T @ turned.x - b) <= 1.01e-8 * np.linalg.norm(b)
        seen.append((result.x.tobytes(), turned.x.tobytes()))
    assert seen[0] == seen[1]


def test_complex_systems():
    pytest.importorskip("scipy.sparse")
    A = spmv.generate("convdiff2d:15,3").astype("complex128")
    A.data += 0.1j * np.arange(A.nnz) / A.nnz
    b = vector(225, "complex128")
    with spmv.Group(ranks=2) as group:
        solver = group.solver(A, "jacobi", rtol=1e-10)
        assert np.allclose(A @ (solver @ b), b) and solver.dtype == "complex128"
        assert np.allclose(A.conj().T @ solver.rmatvec(b), b)
        # x has the type that A and b fit into
        assert group.solve(A.real.astype("float32"), b, precond="jacobi", rtol=1e-6).x.dtype == "complex128"


def test_a_start_several_columns_and_reuse():
    A = spd(8)
    n = A.shape[0]
    B = vector(n, columns=3)
    with spmv.Group(ranks=2) as group:
        solver = group.solver(A, "amg")
        each = [solver.solve(np.ascontiguousarray(B[:, k])) for k in range(3)]
        together = solver.solve(B)
        assert np.array_equal(together.x, np.column_stack([r.x for r in each]))
        assert [c["iterations"] for c in together.columns] == [r.iterations for r in each]
        start = each[0].x.copy()
        again = solver.solve(B[:, 0], x0=start)
        assert again.iterations == 0 and np.array_equal(again.x, start)
        stopped = solver.solve(B, on_residual=lambda k, r: k == 1)
        assert not stopped.converged and stopped.status == "SPMV_CANCELLED"
        assert stopped.columns[1]["iterations"] == 0 and (stopped.x[:, 1:] == 0).all()
        assert solver.solve(B[:, 0], x0=start).iterations == 0  # the group goes on


@pytest.mark.parametrize("by", ["solver", "matrix"])
def test_new_values_have_the_bits_of_a_new_solver(by):
    pytest.importorskip("scipy.sparse")
    A = spmv.generate("poisson2d:25")
    b = vector(625)
    new = A.data + np.where(A.indices == np.repeat(np.arange(625), np.diff(A.indptr)), 0.5, 0.0)
    B = A.copy()
    B.data = new
    with spmv.Group(ranks=3) as group:
        D = group.matrix(A)
        solver = group.solver(D, "amg")
        old = solver.solve(b).x
        turned = D.T @ b
        (solver if by == "solver" else D).update_values(new)
        fresh = group.solver(B, "amg")
        assert np.array_equal(D @ b, fresh.matrix @ b)
        assert np.array_equal(solver.solve(b).x, fresh.solve(b).x) and not np.array_equal(D.T @ b, turned)
        D.update_values(A.data)
        assert np.array_equal(solver.solve(b).x, old) and np.array_equal(D.T @ b, turned)
        for wrong, error, words in [
            (new[:-1], ValueError, "values has the shape"),
            (np.full(A.nnz, np.nan), ValueError, "values has a NaN"),
        ]:
            with pytest.raises(error, match=words):
                D.update_values(wrong)
        with pytest.raises(NotImplementedError, match="make it again"):
            D.T.update_values(new)
        G = group.generate("poisson2d:25")
        G.update_values(new)
        assert np.array_equal(G @ b, fresh.matrix @ b)


def test_elasticity():
    A = spmv.generate("elasticity3d:6")
    nodes = A.shape[0] // 3
    side = round(nodes ** (1 / 3))
    at = np.array([(i // side**2, i // side % side, i % side) for i in range(nodes)], float) if side**3 == nodes else None
    b = vector(A.shape[0])
    V = np.zeros((A.shape[0], 3))
    for k in range(3):
        V[k::3, k] = 1
    seen = []
    for ranks in (1, 3):
        with spmv.Group(ranks=ranks) as group:
            results = [group.solve(A, b, precond="amg", options={"near_null": V, "block": 3})]
            if at is not None:
                results.append(group.solve(A, b, coordinates=at))
                assert results[1].preconditioner == "amg"
        assert all(r.converged for r in results)
        seen.append([r.x.tobytes() for r in results])
    assert seen[0] == seen[1]


def test_null_vectors():
    A = spmv.generate("poisson2d:12")
    values, n = np.array(A.data), A.shape[0]
    rows = np.repeat(np.arange(n), np.diff(A.indptr))
    diagonal = rows == A.indices
    values[diagonal] = np.diff(A.indptr) - 1  # each row sums to 0
    weight = 1.0 + np.arange(n) % 3
    scaled = (values / weight[rows] / weight[A.indices], A.indices, A.indptr)
    V = np.column_stack([weight, 2 * weight])
    known = vector(n)
    expected = known - weight * (weight @ known) / (weight @ weight)
    seen = []
    for ranks in (1, 3):
        with spmv.Group(ranks=ranks) as group:
            D = group.matrix(scaled, shape=(n, n))
            found = group.solve(D, D @ known, null=V)
            assert found.converged and found.null_vectors == 1 and np.abs(found.x - expected).max() < 1e-5
            ones = group.solve((values, A.indices, A.indptr), D @ known, null="ones", shape=(n, n), solver="gmres")
            assert ones.null_vectors == 1 and ones.null_part > 0
            with pytest.raises(ValueError, match="not a null vector"):
                group.solver(D, null=np.ones(n))
            with pytest.raises(ValueError, match="null has 3 rows"):
                group.solver(D, null=np.ones(3))
            seen.append((found.x.tobytes(), ones.x.tobytes()))
    assert seen[0] == seen[1]


def test_files(tmp_path):
    A = spd(6)
    spmv.write(tmp_path / "A.mtx", A)
    with spmv.Group(ranks=3) as group:
        D = group.read(tmp_path / "A.mtx")
        x = vector(A.shape[0])
        assert np.array_equal(D @ x, group.matrix(A) @ x)
        with pytest.raises(OSError, match="none.mtx"):
            group.read(tmp_path / "none.mtx")


def test_device_names_a_group():
    A = spd(6)
    b = vector(A.shape[0])
    with spmv.Group(ranks=2) as group:
        assert np.array_equal(spmv.solve(A, b, device=group, precond="jacobi").x, group.solve(A, b, precond="jacobi").x)
    with pytest.raises(ValueError, match="spmv.Group"):
        spmv.Plan(A, device="cuda:all")


def test_descriptions():
    with spmv.Group(ranks=2) as group:
        assert (group.size, group.rank, group.transport, group.devices) == (2, 0, "threads", ["cpu", "cpu"])
        D = group.generate("poisson2d:30")
        about = D.describe()
        assert about["ranks"] == 2 and about["rows"] == 900 and about["own_rows"] < 900
        assert "900 x 900" in repr(D) and "2 ranks" in repr(group) and "900 rows" in repr(group.solver(D))


def test_complaints():
    A = spd(6)
    n = A.shape[0]
    b = np.ones(n)
    with pytest.raises(TypeError, match="ranks=, gpus= or comm="):
        spmv.Group()
    with pytest.raises(ValueError, match="ranks is 0"):
        spmv.Group(ranks=0)
    with pytest.raises(TypeError, match="communicator"):
        spmv.Group(comm=3)
    with spmv.Group(ranks=2) as group, spmv.Group(ranks=2) as other:
        for wrong, error, words in [
            (dict(vectors=4), NotImplementedError, "one after the other"),
            (dict(inner=True), NotImplementedError, "float32"),
            (dict(precond=lambda r: r), NotImplementedError, "a name"),
            (dict(solver="direct"), NotImplementedError, "not on ranks"),
            (dict(precond="nonsense"), ValueError, "nonsense"),
            (dict(options={"near_null": np.ones((3, 1))}), ValueError, "near_null has 3 rows"),
            (dict(rtol=-1), ValueError, "rtol"),
        ]:
            with pytest.raises(error, match=words):
                group.solver(A, **wrong)
        D = group.matrix(A)
        with pytest.raises(ValueError, match="another group"):
            other.solver(D)
        with pytest.raises(ValueError, match="x has 3 elements"):
            D @ np.ones(3)
        solver = group.solver(D, "jacobi")
        for wrong, error, words in [
            (np.ones(3), ValueError, "shape"),
            (np.full(n, np.nan), ValueError, "a NaN at index 0"),
            (np.ones(n, complex), TypeError, "complex128"),
        ]:
            with pytest.raises(error, match=words):
                solver.solve(wrong)
        with pytest.raises(NotImplementedError, match="on_residual"):
            solver.solve(b, callback=print)
        with pytest.raises(ValueError, match="square"):
            group.solver(random_csr(4, 5))
        bad = A.copy()
        bad.data[3] = np.inf
        with pytest.raises(ValueError, match="infinite number in row"):
            group.solve(bad, b)
        assert solver.solve(b).converged  # nothing of that has broken the group
    with pytest.raises(ValueError, match="closed"):
        solver.solve(b)


def test_a_callback_that_raises_or_uses_the_group():
    A = spd(8)
    b = np.ones(A.shape[0])
    with spmv.Group(ranks=3) as group:
        solver = group.solver(A, "jacobi")

        def fails(k, r):
            raise KeyError("mine")

        with pytest.raises(KeyError, match="mine"):
            solver.solve(b, on_residual=fails)
        with pytest.raises(RuntimeError, match="the same ranks"):
            solver.solve(b, on_residual=lambda k, r: solver.solve(b))
        assert solver.solve(b).converged


def test_threads_of_python_take_turns():
    A = spd(8)
    bs = [vector(A.shape[0], seed=s) for s in range(4)]
    with spmv.Group(ranks=2) as group:
        solver = group.solver(A, "jacobi")
        alone = [solver.solve(b).x for b in bs]
        found = [None] * 4

        def work(k):
            found[k] = solver.solve(bs[k]).x

        threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        assert all(np.array_equal(a, f) for a, f in zip(alone, found))


def test_other_threads_run_during_a_solve():
    A = spd(16)
    b = np.ones(A.shape[0])
    turns = []
    with spmv.Group(ranks=2) as group:
        solver = group.solver(A, "none", rtol=1e-300, maxiter=400)
        stop = threading.Event()

        def count():
            while not stop.is_set():
                turns.append(time.monotonic())
                time.sleep(0.0005)

        other = threading.Thread(target=count)
        other.start()
        began = time.monotonic()
        solver.solve(b)
        ended = time.monotonic()
        stop.set()
        other.join()
    assert any(began < t < ended for t in turns)


def test_control_c_stops_all_ranks():
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores the signal
    A = spmv.generate("diffusion2d:80,1000")
    b, last, norms = vector(6400), 10**6, {}  # far more than there is time for
    with spmv.Group(ranks=2) as group:
        solver = group.solver(A, "none", "cg", rtol=1e-300, maxiter=last, check_symmetry=False)

        def interrupt():
            while len(norms) < 10:  # until the solve runs
                time.sleep(0.001)
            os.kill(os.getpid(), signal.SIGINT)

        thread = threading.Thread(target=interrupt)
        thread.start()
        with pytest.raises(KeyboardInterrupt):
            # A method of a dictionary runs no Python code, so only the solve itself can raise.
            solver.solve(b, on_residual=norms.__setitem__)
        thread.join()
        assert last not in norms  # it did not run to its end
        assert solver.solve(b, on_residual=lambda k, r: k == 3).iterations == 3  # all is as before


def test_control_c_in_a_set_up_of_each_rank():
    """Only rank 0 sees the signal; the others are in a set-up of their own rows."""
    pytest.importorskip("scipy.sparse")
    script = """
import os, signal, threading
import scipy.sparse, spmv
A = spmv.generate("uniform:30000,30000,12") + 20 * scipy.sparse.eye_array(30000)
with spmv.Group(ranks=2) as group:
    D = group.matrix(A)
    threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    try:
        group.solver(D, "ilut", "gmres", options={"drop": 0, "fill": 1e5})
    except KeyboardInterrupt:
        print("stopped")
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert done.stdout == "stopped\n", done.stderr


def test_a_forked_process_says_so():
    with spmv.Group(ranks=2) as group:
        D = group.generate("poisson2d:5")
        reads, writes = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                D @ np.ones(25)
                text = b"no error"
            except RuntimeError as error:
                text = str(error).encode()
            os.write(writes, text)
            os._exit(0)
        os.close(writes)
        assert b"forked" in os.read(reads, 1000)
        os.waitpid(child, 0)

# SPDX-License-Identifier: BSD-3-Clause
"""Threads, signals and forks."""

import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
import spmv
from conftest import vector

pytest.importorskip("scipy.sparse")


def hard_system():
    """Takes seconds: many iterations, no tolerance."""
    A = spmv.generate("poisson2d:400")
    return A, np.ones(160000)


def test_python_runs_during_a_solve():
    A, b = hard_system()
    counted = [0]
    stop = threading.Event()

    def count():
        while not stop.is_set():
            counted[0] += 1
            time.sleep(0.001)

    thread = threading.Thread(target=count)
    thread.start()
    before = counted[0]
    spmv.solve(A, b, rtol=1e-14, maxiter=400, preconditioner="none")
    after = counted[0]
    stop.set()
    thread.join()
    assert after - before > 10  # at most 1 while the solve holds the lock


def run_threads(work):
    """Calls work(k) in four threads, 0 <= k < 4."""
    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()


@pytest.mark.parametrize("own", [False, True])
def test_threads_share_or_own_a_context(own):
    A = spmv.generate("poisson2d:150")
    x = vector(A.shape[0])
    expected = spmv.Plan(A) @ x
    shared = spmv.Plan(A)
    wrong = []

    def work(_):
        plan = spmv.Plan(A, device=spmv.Context("cpu", threads=1)) if own else shared
        for _ in range(200):
            if not np.array_equal(plan @ x, expected):
                wrong.append(1)

    run_threads(work)
    assert not wrong


def test_errors_of_threads_do_not_mix():
    A = spmv.generate("poisson2d:20")
    wrong = []

    def work(k):
        for _ in range(200):
            try:
                spmv.Plan(A, method=f"none{k}")
            except ValueError as error:
                if f"none{k}" not in str(error):
                    wrong.append(str(error))

    run_threads(work)
    assert not wrong


def test_plans_dropped_while_another_thread_computes():
    A, b = hard_system()
    small = spmv.generate("poisson2d:20")
    stop = threading.Event()

    def churn():
        while not stop.is_set():
            spmv.Plan(small, device="cpu")

    other = spmv.Context("cpu", threads=1)
    plans = [spmv.Plan(small, device=other) for _ in range(200)]

    def drop():
        while plans:
            plans.pop()
            time.sleep(0.0005)

    thread = threading.Thread(target=drop)
    thread.start()
    solver = spmv.Solver(A, preconditioner="none", maxiter=100, rtol=1e-14, device=other)
    solver.solve(b)
    stop.set()
    thread.join()
    np.testing.assert_allclose(spmv.Plan(small, device=other) @ np.ones(400), small @ np.ones(400))


def test_ctrl_c_stops_a_solve():
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores the signal
    A, b = hard_system()
    last = 800
    solver = spmv.Solver(A, preconditioner="none", rtol=1e-300, maxiter=last, check_symmetry=False)
    norms = {}

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
    assert len(norms) >= 10
    assert last not in norms  # it did not run to its end
    x, info = spmv.cg(spmv.generate("poisson2d:20"), np.ones(400))  # all is as before
    assert info == 0


FORK = """
import os, sys, warnings
warnings.simplefilter("ignore")
import numpy as np, spmv
use_before, use_in_child = sys.argv[1] == "1", sys.argv[2] == "1"
data = (np.ones(3), np.arange(3), np.arange(4))
plan = spmv.Plan(data, shape=(3, 3)) if use_before else None
child = os.fork()
if child == 0:
    code = 1
    try:
        if plan is not None and not use_in_child:
            plan @ np.ones(3)
        else:
            new = spmv.Plan(data, shape=(3, 3))
            code = 0 if (new @ np.ones(3)).sum() == 3 else 2
    except RuntimeError as error:
        code = 7 if "fork" in str(error) else 3
    del plan
    sys.exit(code)
status = os.waitpid(child, 0)[1]
if plan is not None:
    assert (plan @ np.ones(3)).sum() == 3
sys.exit(os.waitstatus_to_exitcode(status))
"""


@pytest.mark.parametrize("before, child, code", [(1, 0, 7), (1, 1, 7), (0, 1, 0)])
def test_use_after_fork_is_an_error(before, child, code):
    done = subprocess.run([sys.executable, "-c", FORK, str(before), str(child)], timeout=60, capture_output=True)
    assert done.returncode == code, done.stderr.decode()


def test_exit_during_a_solve_of_a_daemon_thread():
    """The interpreter may end while a thread is in the library."""
    script = """
import threading, time, numpy as np, spmv
A = spmv.generate("poisson2d:300")
threading.Thread(target=lambda: spmv.solve(A, np.ones(90000), rtol=1e-14, preconditioner="none"), daemon=True).start()
time.sleep(0.2)
"""
    done = subprocess.run([sys.executable, "-c", script], timeout=60, capture_output=True)
    assert done.returncode == 0, done.stderr.decode()


@pytest.mark.parametrize(
    "given, read", [({}, "'3000'"), ({"GOMP_SPINCOUNT": "7"}, "'7'"), ({"OMP_WAIT_POLICY": "passive"}, "'0'")]
)
def test_spinning_is_bounded(given, read):
    """libgomp reads the limit when it is loaded; the processes that this one starts do not inherit it."""
    script = "import os, spmv; print(os.environ.get('GOMP_SPINCOUNT'))"
    kept = {k: v for k, v in os.environ.items() if k not in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY")}
    environment = {**kept, **given, "OMP_DISPLAY_ENV": "verbose"}
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, timeout=60, check=True
    )
    shown = [line.partition("=")[2].strip() for line in done.stderr.splitlines() if "GOMP_SPINCOUNT" in line]
    if not shown:
        pytest.skip("the OpenMP library is not libgomp")
    assert shown == [read] and done.stdout.strip() == str(given.get("GOMP_SPINCOUNT"))


def test_interrupt_in_a_set_up():
    """Ctrl-C ends the set-up of a preconditioner or of factors, not only iterations."""
    script = """
import os, signal, threading, time
import spmv
A = spmv.generate("uniform:30000,30000,12")
threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try:
    spmv.Solver(A, "ilut", "gmres", options={"drop": 0, "fill": 1e5})
except KeyboardInterrupt:
    print("stopped")
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert done.stdout == "stopped\n", done.stderr

# SPDX-License-Identifier: BSD-3-Clause
"""Loads the extension module, with a limit on how long threads of OpenMP spin.

A waiting thread of libgomp spins for 300,000 rounds, some milliseconds, before it sleeps. If other
programs need the cores too, a spinning thread may occupy the core of the thread that it waits for,
and a solve takes several times as long (docs/cpu.md, "Threads"). The program spmv has the same
limit (app/spinning.c).

libgomp reads GOMP_SPINCOUNT once, when it is loaded. So the variable is set while the extension
module is imported, and not for the processes that this one starts. If the user has set it, or
OMP_WAIT_POLICY, nothing is changed. A libgomp that another package has loaded before keeps its own
setting.
"""

import os

SPIN_ROUNDS = "3000"  # of 20 to 50 ns each

_chosen = "GOMP_SPINCOUNT" in os.environ or "OMP_WAIT_POLICY" in os.environ
if not _chosen:
    os.environ["GOMP_SPINCOUNT"] = SPIN_ROUNDS
try:
    from . import _core  # noqa: F401
finally:
    if not _chosen:
        del os.environ["GOMP_SPINCOUNT"]

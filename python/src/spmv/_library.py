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
import warnings

SPIN_ROUNDS = "3000"  # of 20 to 50 ns each

_chosen = "GOMP_SPINCOUNT" in os.environ or "OMP_WAIT_POLICY" in os.environ
if not _chosen:
    os.environ["GOMP_SPINCOUNT"] = SPIN_ROUNDS
try:
    from . import _core  # noqa: F401
finally:
    if not _chosen:
        del os.environ["GOMP_SPINCOUNT"]


def installed(folder: str) -> list[str]:
    """The names of the packages in a folder of packages that have the files of spmv: spmv, spmv-cu13, ..."""
    try:
        names = [name for name in os.listdir(folder) if name.startswith("spmv") and name.endswith(".dist-info")]
    except OSError:  # not a folder: imported from an archive
        return []
    packages = {name.partition("-")[0] for name in names}
    return sorted(name.replace("_", "-") for name in packages if name == "spmv" or name.startswith("spmv_cu"))


def warn_of_two(folder: str) -> None:
    """pip does not notice that a package overwrites the files of another one."""
    packages = installed(folder)
    if len(packages) > 1:
        warnings.warn(
            f"{' and '.join(packages)} are installed in {folder}, and each overwrites the files of the other: "
            f"pip uninstall {' '.join(packages)}, then install one of them",
            stacklevel=2,
        )


warn_of_two(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

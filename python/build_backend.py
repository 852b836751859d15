# SPDX-License-Identifier: BSD-3-Clause
"""scikit-build-core, and the source tree around this folder as part of the sdist.

A wheel of a clone is built from the tree around this folder. An sdist cannot refer to files outside
of it, so they are copied to the folder library while the sdist is made.
"""

import contextlib
import os
import shutil
import subprocess

from scikit_build_core import build as _build
from scikit_build_core.build import *  # noqa: F403

HERE = os.path.dirname(os.path.abspath(__file__))
TREE = os.path.dirname(HERE)
FOLDERS = ("CMakeLists.txt", "cmake", "include", "primitives", "formats", "spmv", "spgemm", "solvers",
           "distributed", "data/twins.csv")


def _copied(relative):
    target = os.path.join(HERE, "library", relative)
    os.makedirs(os.path.dirname(target), exist_ok=True)
    shutil.copyfile(os.path.join(TREE, relative), target)


@contextlib.contextmanager
def _licences():
    """LICENSE and NOTICE beside this file while a package is made."""
    copied = [n for n in ("LICENSE", "NOTICE") if not os.path.exists(os.path.join(HERE, n))]
    try:
        for name in copied:
            shutil.copyfile(os.path.join(TREE, name), os.path.join(HERE, name))
        yield
    finally:
        for name in copied:
            os.remove(os.path.join(HERE, name))


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    with _licences():
        return _build.build_wheel(wheel_directory, config_settings, metadata_directory)


def build_sdist(sdist_directory, config_settings=None):
    in_clone = os.path.exists(os.path.join(TREE, "cmake", "SpmvLibraries.cmake"))
    if not in_clone:  # an sdist of an unpacked sdist
        return _build.build_sdist(sdist_directory, config_settings)
    listed = subprocess.run(["git", "ls-files", "--", *FOLDERS], cwd=TREE, capture_output=True, text=True, check=True)
    try:
        for relative in listed.stdout.splitlines():
            _copied(relative)
        with _licences():
            return _build.build_sdist(sdist_directory, config_settings)
    finally:
        shutil.rmtree(os.path.join(HERE, "library"), ignore_errors=True)

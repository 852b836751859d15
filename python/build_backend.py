# SPDX-License-Identifier: BSD-3-Clause
"""scikit-build-core, with the source tree around this folder.

A wheel of a clone is built from the tree around this folder, in build/pip of that tree, and leaves
nothing in this folder. An sdist cannot refer to files outside of it, so they are copied to the
folder library while the sdist is made.

CUDA code is compiled only where a GPU is found, for that GPU: for all GPUs it takes some 20
minutes. SPMV_CUDA=ON in the environment, or pip's option -C cmake.define.SPMV_CUDA=ON, compiles it
anyway (OFF: never; AUTO: where nvcc is found).
"""

import contextlib
import os
import shutil
import subprocess

from scikit_build_core import build as _build
from scikit_build_core.build import *  # noqa: F403

HERE = os.path.dirname(os.path.abspath(__file__))
TREE = os.path.dirname(HERE)
FOLDERS = ("CMakeLists.txt", "LICENSE", "NOTICE", "cmake", "include", "core", "device", "primitives",
           "formats", "product", "spgemm", "solvers", "distributed", "data/twins.csv")


def _in_clone():
    return os.path.exists(os.path.join(TREE, "cmake", "SpmvLibraries.cmake"))


def _copied(relative):
    target = os.path.join(HERE, "library", relative)
    os.makedirs(os.path.dirname(target), exist_ok=True)
    shutil.copyfile(os.path.join(TREE, relative), target)


def _drop_copies():
    """What an sdist that was interrupted left here would be taken for the source tree."""
    shutil.rmtree(os.path.join(HERE, "library"), ignore_errors=True)


def settings_of(config_settings, environment, in_clone):
    """pip's settings, and what they leave open."""
    settings = dict(config_settings or {})
    chosen = any("SPMV_CUDA=" in str(v) or "SPMV_CUDA" in k for k, v in settings.items())
    chosen = chosen or any("SPMV_CUDA=" in environment.get(k, "") for k in ("SKBUILD_CMAKE_ARGS", "SKBUILD_CMAKE_DEFINE"))
    if not chosen:
        settings["cmake.define.SPMV_CUDA"] = environment.get("SPMV_CUDA") or "GPU"
    if in_clone and "build-dir" not in settings:
        settings["build-dir"] = os.path.join(TREE, "build", "pip", "{wheel_tag}")
    return settings


def _say(settings):
    """One line for the user: pip shows what a build prints only with -v."""
    cuda = settings.get("cmake.define.SPMV_CUDA")
    code = {"OFF": "for the CPU", "GPU": "for the CPU, and for the GPU if there is one"}.get(cuda, "for the CPU and GPUs")
    text = f"spmv: compiling the library {code}. This takes minutes; pip install -v shows each file.\n"
    with contextlib.suppress(OSError), open("/dev/tty", "w", encoding="utf-8") as terminal:
        terminal.write("\n" + text)
    print(text, end="", flush=True)


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    in_clone = _in_clone()
    if in_clone:
        _drop_copies()
    settings = settings_of(config_settings, os.environ, in_clone)
    _say(settings)
    return _build.build_wheel(wheel_directory, settings, metadata_directory)


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    settings = settings_of(config_settings, os.environ, _in_clone())
    _say(settings)
    return _build.build_editable(wheel_directory, settings, metadata_directory)


def build_sdist(sdist_directory, config_settings=None):
    if not _in_clone():  # an sdist of an unpacked sdist
        return _build.build_sdist(sdist_directory, config_settings)
    listed = subprocess.run(["git", "ls-files", "--", *FOLDERS], cwd=TREE, capture_output=True, text=True, check=True)
    _drop_copies()
    try:
        for relative in listed.stdout.splitlines():
            _copied(relative)
        return _build.build_sdist(sdist_directory, config_settings)
    finally:
        _drop_copies()

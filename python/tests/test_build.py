# SPDX-License-Identifier: BSD-3-Clause
"""The build of the package from a clone: what it compiles, and what it leaves behind."""

import importlib.util
import pathlib
import shutil
import subprocess
import sys
import types

import pytest

FOLDER = pathlib.Path(__file__).resolve().parents[1]


@pytest.fixture
def backend(monkeypatch):
    if not (FOLDER / "build_backend.py").exists():
        pytest.skip("not in the source tree")
    below = types.ModuleType("scikit_build_core.build")
    package = types.ModuleType("scikit_build_core")
    package.build = below
    monkeypatch.setitem(sys.modules, "scikit_build_core", package)
    monkeypatch.setitem(sys.modules, "scikit_build_core.build", below)
    spec = importlib.util.spec_from_file_location("build_backend", FOLDER / "build_backend.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def files():
    return {p.relative_to(FOLDER) for p in FOLDER.rglob("*") if "__pycache__" not in p.parts}


@pytest.mark.parametrize(
    "settings, environment, cuda",
    [
        (None, {}, "GPU"),
        ({}, {"SPMV_CUDA": "ON"}, "ON"),
        ({"cmake.define.SPMV_CUDA": "OFF"}, {"SPMV_CUDA": "ON"}, "OFF"),
        ({"cmake.args": "-DSPMV_CUDA=ON"}, {}, None),
        ({}, {"SKBUILD_CMAKE_ARGS": "-DSPMV_CUDA=ON"}, None),
        ({"cmake.build-type": "Debug"}, {"SPMV_CUDA": ""}, "GPU"),
    ],
)
def test_cuda_is_compiled_for_the_gpu_of_the_machine(backend, settings, environment, cuda):
    made = backend.settings_of(settings, environment, True)
    assert made.get("cmake.define.SPMV_CUDA") == cuda
    assert made["build-dir"].startswith(str(FOLDER.parent / "build"))
    assert "build-dir" not in backend.settings_of(settings, environment, False)
    choice = (FOLDER.parent / "CMakeLists.txt").read_text()
    assert 'spmv_choice(SPMV_CUDA "' in choice and "GPU)" in choice


def test_an_interrupted_build_leaves_nothing(backend, capfd):
    """pip kills the build, so that nothing can be removed at its end."""
    before, seen = files(), []

    def interrupted(folder, settings, metadata):
        seen.append(files())
        raise KeyboardInterrupt

    backend._build.build_wheel = interrupted
    with pytest.raises(KeyboardInterrupt):
        backend.build_wheel("/nowhere")
    assert seen == [before] and files() == before
    assert "compiling the library" in capfd.readouterr().out


def test_an_sdist_has_the_library_and_its_licence(backend):
    if not shutil.which("git"):
        pytest.skip("no Git")
    if subprocess.run(["git", "ls-files", "LICENSE"], cwd=FOLDER.parent, capture_output=True).stdout != b"LICENSE\n":
        pytest.skip("not in a clone")
    before, seen = files(), []
    backend._build.build_sdist = lambda folder, settings: seen.append(files())
    backend.build_sdist("/nowhere")
    for needed in ("LICENSE", "NOTICE", "CMakeLists.txt", "include/spmv/spmv.h"):
        assert pathlib.Path("library") / needed in seen[0]
    assert files() == before

# SPDX-License-Identifier: BSD-3-Clause
"""The package itself: version, names, documentation, types."""

import doctest
import importlib
import importlib.util
import inspect
import pathlib
import pkgutil
import re

import pytest
import spmv
from spmv import _core, _library


def test_version():
    assert spmv.__version__ == _core.VERSION


@pytest.mark.parametrize("name", ["spmv"] + ["spmv." + m.name for m in pkgutil.iter_modules(spmv.__path__)])
def test_examples(name):
    if name == "spmv._core":
        return
    pytest.importorskip("scipy.sparse")
    if name in ("spmv.torch", "spmv.jax"):
        pytest.importorskip(name.partition(".")[2])
    failed, tried = doctest.testmod(importlib.import_module(name))
    assert failed == 0


@pytest.mark.parametrize("name", [n for n in spmv.__all__ if not n.startswith("__")])
def test_everything_is_documented(name):
    thing = getattr(spmv, name)
    assert thing.__doc__ and len(thing.__doc__.splitlines()[0]) > 10
    if inspect.isfunction(thing):
        signature = inspect.signature(thing)
        assert all(p.annotation is not inspect.Parameter.empty for p in signature.parameters.values()), name
        assert signature.return_annotation is not inspect.Signature.empty, name


@pytest.mark.parametrize(
    "names, packages",
    [
        (["spmv-0.9.0.dist-info", "spmv", "spmv_tools-1.0.dist-info", "numpy-2.0.dist-info"], ["spmv"]),
        (["spmv-0.9.0.dist-info", "spmv_cu13-0.9.0.dist-info"], ["spmv", "spmv-cu13"]),
        (["spmv_cu12-0.9.0.dist-info", "spmv_cu13-0.9.0.dist-info"], ["spmv-cu12", "spmv-cu13"]),
        ([], []),
    ],
)
def test_two_packages_with_the_same_files(tmp_path, names, packages):
    for name in names:
        (tmp_path / name).mkdir()
    assert _library.installed(str(tmp_path)) == packages
    if len(packages) > 1:
        with pytest.warns(UserWarning, match=f"pip uninstall {' '.join(packages)}, then"):
            _library.warn_of_two(str(tmp_path))
    else:
        _library.warn_of_two(str(tmp_path))
        assert _library.installed(str(tmp_path / "nothing")) == []


def test_typed():
    assert (pathlib.Path(spmv.__path__[0]) / "py.typed").exists()


def test_page():
    """The examples of docs/python.md run."""
    page = pathlib.Path(__file__).resolve().parents[2] / "docs" / "python.md"
    if not page.exists():
        pytest.skip("not in the source tree")
    pytest.importorskip("scipy.sparse")
    blocks = re.findall(r"```python\n(.*?)```", page.read_text(), re.S)
    assert blocks
    space: dict = {}
    for block in blocks:
        if any(name in block for name in ("cupy", "mpi4py")):
            continue
        if any(f"import {name}\n" in block and not importlib.util.find_spec(name) for name in ("torch", "jax")):
            continue
        exec(compile(block, str(page), "exec"), space)

# SPDX-License-Identifier: BSD-3-Clause
"""The primitives, against NumPy."""

import numpy as np
import pytest
import spmv
from conftest import outs_that_cannot_be_written

SIZES = [0, 1, 31, 32, 33, 8191, 8192, 8193, 100003]
TYPES = ["int32", "int64", "float32", "float64"]


def numbers(n, dtype, seed=1):
    rng = np.random.default_rng(seed)
    return rng.integers(-50, 50, n).astype(dtype)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("dtype", TYPES)
def test_scans_and_reductions(n, dtype):
    a = numbers(n, dtype)
    exact = np.cumsum(a.astype("int64"))
    np.testing.assert_array_equal(spmv.scan(a), exact.astype(dtype))
    np.testing.assert_array_equal(spmv.scan(a, exclusive=True), np.concatenate([[0], exact])[:n].astype(dtype))
    np.testing.assert_array_equal(spmv.scan(a, "max"), np.maximum.accumulate(a) if n else a)
    assert spmv.reduce(a) == a.astype("int64").sum()
    if n:
        assert spmv.reduce(a, "min") == a.min()
    assert spmv.scan(a).dtype == dtype and spmv.reduce(a).dtype == dtype
    same = a.copy()
    assert spmv.scan(same, out=same) is same
    np.testing.assert_array_equal(same, exact.astype(dtype))


@pytest.mark.parametrize("n", SIZES)
def test_segments(n):
    a = numbers(n, "float64")
    rng = np.random.default_rng(3)
    offsets = np.concatenate([[0], np.sort(rng.integers(0, n + 1, 20)), [n]])
    reduced = spmv.segmented_reduce(a, offsets)
    np.testing.assert_array_equal(reduced, [a[b:e].sum() for b, e in zip(offsets, offsets[1:])])
    expected = np.concatenate([np.cumsum(a[b:e]) for b, e in zip(offsets, offsets[1:])] or [a])
    np.testing.assert_array_equal(spmv.segmented_scan(a, offsets=offsets), expected)
    np.testing.assert_array_equal(spmv.segmented_scan(a, offsets=offsets.astype("int32")), expected)
    flags = np.zeros(n, bool)
    flags[offsets[:-1][offsets[:-1] < n]] = True
    np.testing.assert_array_equal(spmv.segmented_scan(a, flags=flags), expected)
    np.testing.assert_array_equal(spmv.segmented_scan(a, flags=list(flags)), expected)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("dtype", TYPES)
def test_moves(n, dtype):
    a = numbers(n, dtype)
    rng = np.random.default_rng(5)
    order = rng.permutation(n)
    np.testing.assert_array_equal(spmv.gather(a, order), a[order])
    np.testing.assert_array_equal(spmv.gather(a, order.astype("int32")), a[order])
    out = np.zeros(n, dtype)
    assert spmv.scatter(a, order, out) is out
    np.testing.assert_array_equal(out[order], a)
    np.testing.assert_array_equal(spmv.compact(a, a > 3), a[a > 3])
    np.testing.assert_array_equal(spmv.compact(a, where=("less_equal", -7)), a[a <= -7])
    np.testing.assert_array_equal(spmv.compact(a, where=("nonzero", None)), a[a != 0])
    counts = rng.integers(0, 4, n)
    np.testing.assert_array_equal(spmv.expand(a, counts), np.repeat(a, counts))
    np.testing.assert_array_equal(spmv.sort(a), np.sort(a))
    keys, values = spmv.sort(a, np.arange(n, dtype="int64"))
    np.testing.assert_array_equal(values, np.argsort(a, kind="stable"))
    np.testing.assert_array_equal(keys, np.sort(a))


def test_maps():
    a = np.array([1.0, -4.0, 9.0])
    np.testing.assert_array_equal(spmv.map("abs", a), abs(a))
    np.testing.assert_array_equal(spmv.map("reciprocal", a), 1 / a)
    np.testing.assert_array_equal(spmv.combine("mul", a, a), a * a)
    assert spmv.dot(a, a) == a @ a
    np.testing.assert_array_equal(spmv.histogram([0, 1, 1, 7, -1, 2**40], 3), [1, 2, 0])


def test_wrong_arguments():
    a = np.arange(5.0)
    with pytest.raises(ValueError, match="xor"):
        spmv.scan(a, "xor")
    with pytest.raises(TypeError, match="complex"):
        spmv.scan(a.astype(complex))
    with pytest.raises(ValueError, match="dimensions"):
        spmv.scan(np.ones((2, 2)))
    with pytest.raises(ValueError, match="overlap"):
        spmv.scan(a[:4], out=a[1:])
    with pytest.raises(ValueError, match="shape"):
        spmv.scan(a, out=np.empty(4))
    with pytest.raises(ValueError, match="index|5"):
        spmv.gather(a, [0, 5])
    with pytest.raises(ValueError):
        spmv.gather(a, [-1])
    with pytest.raises(ValueError):
        spmv.scatter(a, [0, 1, 2, 3, 9], np.zeros(5))
    with pytest.raises(ValueError):
        spmv.segmented_reduce(a, [0, 9])
    with pytest.raises(ValueError):
        spmv.segmented_reduce(a, [0, 3, 1, 5])
    with pytest.raises(ValueError, match="either"):
        spmv.segmented_scan(a)
    with pytest.raises(TypeError):
        spmv.map("sqrt", np.arange(3))
    with pytest.raises(ValueError, match="cube"):
        spmv.map("cube", a)
    with pytest.raises(ValueError):
        spmv.compact(a)
    with pytest.raises(ValueError, match="predicate"):
        spmv.compact(a, where=("near", 3))
    with pytest.raises(ValueError):
        spmv.histogram(np.zeros(3, np.int32), -1)


CALLS_WITH_OUT = {
    "scan": lambda a, out: spmv.scan(a, out=out),
    "segmented_scan": lambda a, out: spmv.segmented_scan(a, offsets=[0, 3, len(a)], out=out),
    "segmented_reduce": lambda a, out: spmv.segmented_reduce(a, np.arange(len(a) + 1), out=out),
    "gather": lambda a, out: spmv.gather(a, np.arange(len(a)), out=out),
    "scatter": lambda a, out: spmv.scatter(a, np.arange(len(a)), out),
    "map": lambda a, out: spmv.map("neg", a, out=out),
    "combine": lambda a, out: spmv.combine("add", a, a, out=out),
}


@pytest.mark.parametrize("name", CALLS_WITH_OUT)
def test_out_that_cannot_be_written_is_refused(name):
    for out, error, match in outs_that_cannot_be_written(8):
        if (name, match) == ("scatter", "shape"):
            continue  # there out has any size
        before = np.array(out)
        with pytest.raises(error, match=match):
            CALLS_WITH_OUT[name](np.arange(1.0, 9), out)
        np.testing.assert_array_equal(np.array(out), before)
    shared = np.arange(12.0)
    with pytest.raises(ValueError, match="overlap"):
        CALLS_WITH_OUT[name](shared[:8], shared[4:])
    if name in ("gather", "scatter", "segmented_reduce"):
        with pytest.raises(ValueError, match="overlap"):
            CALLS_WITH_OUT[name](shared[:8], shared[:8])


def test_out_must_not_be_the_index():
    index = np.arange(4)
    for call in (
        lambda: spmv.gather(np.arange(4) * 2, index, out=index),
        lambda: spmv.scatter(np.arange(4) * 2, index, index),
        lambda: spmv.segmented_reduce(np.arange(3) * 2, index, out=index[:3]),
        lambda: spmv.segmented_scan(np.arange(3) * 2, offsets=index, out=index[:3]),
    ):
        with pytest.raises(ValueError, match="overlap"):
            call()
    np.testing.assert_array_equal(index, np.arange(4))

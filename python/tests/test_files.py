# SPDX-License-Identifier: BSD-3-Clause
"""Files, generators, products of matrices."""

import bz2
import gzip
import lzma
import pathlib
import warnings

import numpy as np
import pytest
import spmv
from conftest import DTYPES, random_csr

sp = pytest.importorskip("scipy.sparse")
io = pytest.importorskip("scipy.io")


def same(A, B):
    A, B = sp.csr_array(A), sp.csr_array(B)
    A.sort_indices()
    B.sort_indices()
    assert A.shape == B.shape and A.dtype == B.dtype
    np.testing.assert_array_equal(A.indptr, B.indptr)
    np.testing.assert_array_equal(A.indices, B.indices)
    np.testing.assert_array_equal(A.data, B.data)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["A.mtx", "A.spmv"])
def test_round_trip(tmp_path, dtype, name):
    A = random_csr(50, 40, dtype)
    A.sort_indices()
    spmv.write(tmp_path / name, A)
    same(spmv.read(tmp_path / name, dtype=dtype), A)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of mmread, about its kind of result
def test_as_scipy_reads(tmp_path):
    A = random_csr(50, 40)
    io.mmwrite(tmp_path / "A.mtx", A, precision=17)
    same(spmv.read(tmp_path / "A.mtx"), io.mmread(tmp_path / "A.mtx").tocsr())
    S = spmv.generate("poisson2d:8")
    spmv.write(tmp_path / "S.mtx", S, symmetry="symmetric", comment="a comment")
    assert "symmetric" in (tmp_path / "S.mtx").read_text().splitlines()[0]
    assert "a comment" in (tmp_path / "S.mtx").read_text()
    same(spmv.read(tmp_path / "S.mtx"), S)
    same(spmv.read(str(tmp_path / "S.mtx")), io.mmread(tmp_path / "S.mtx").tocsr())
    (tmp_path / "P.mtx").write_text("%%MatrixMarket matrix coordinate pattern general\n2 3 2\n1 1\n2 3\n")
    np.testing.assert_array_equal(spmv.read(tmp_path / "P.mtx").toarray(), [[1, 0, 0], [0, 0, 1]])


@pytest.mark.parametrize("module, ending", [(gzip, ".gz"), (lzma, ".xz"), (bz2, ".bz2")])
def test_compressed(tmp_path, module, ending):
    A = random_csr(50, 40)
    A.sort_indices()
    spmv.write(tmp_path / "A.mtx", A)
    path = tmp_path / ("A.mtx" + ending)
    with module.open(path, "wb") as file:
        file.write((tmp_path / "A.mtx").read_bytes())
    same(spmv.read(path), A)
    from spmv import _files
    from spmv._context import context_of
    from spmv._matrix import made

    context = context_of("cpu")  # as where libarchive is not installed
    same(made(_files._read_unpacked(context, path, None), context, "scipy"), A)
    with module.open(path, "wb") as file:
        file.write(b"%%MatrixMarket matrix coordinate real general\n2 2 1\n3 1 1\n")
    with pytest.raises(ValueError, match=str(path)):
        _files._read_unpacked(context, path, None)
    path.write_bytes(path.read_bytes()[:-4])
    with pytest.raises((ValueError, OSError)):
        _files._read_unpacked(context, path, None)


def test_errors(tmp_path):
    with pytest.raises(OSError, match="missing.mtx"):
        spmv.read(tmp_path / "missing.mtx")
    (tmp_path / "B.mtx").write_text("%%MatrixMarket matrix coordinate real general\n2 2 1\n1 9 1\n")
    with pytest.raises(ValueError, match=r"B.mtx:3:.*column 9"):
        spmv.read(tmp_path / "B.mtx")
    with pytest.raises(TypeError, match="i32"):
        spmv.read(tmp_path / "B.mtx", dtype="int32")
    with pytest.raises(ValueError, match="poisson2d:N"):
        spmv.generate("poisson2d")
    with pytest.raises(ValueError, match="symmetry"):
        spmv.write(tmp_path / "C.mtx", random_csr(3, 3), symmetry="none")
    with pytest.raises(ValueError, match="symmetr"):
        spmv.write(tmp_path / "C.mtx", random_csr(30, 30), symmetry="symmetric")
    assert not (tmp_path / "C.mtx").exists()
    with pytest.raises(OSError):
        spmv.write(tmp_path / "no" / "folder.mtx", random_csr(3, 3))
    with pytest.raises(TypeError):
        spmv.read(3.5)


def test_warnings_of_the_library(tmp_path):
    (tmp_path / "I.mtx").write_text("%%MatrixMarket matrix coordinate real general\n1 1 1\n1 1 inf\n")
    with pytest.warns(UserWarning, match="not finite"):
        A = spmv.read(tmp_path / "I.mtx")
    assert np.isinf(A.data[0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match="not finite"):
            spmv.read(tmp_path / "I.mtx")


def test_names_that_are_no_text(tmp_path):
    path = bytes(tmp_path) + b"/\xff\xfe.mtx"
    spmv.write(path, spmv.generate("poisson2d:3"))
    assert spmv.read(path).shape == (9, 9)
    assert spmv.read(pathlib.Path(__import__("os").fsdecode(path))).shape == (9, 9)


@pytest.mark.parametrize("spec", ["poisson3d:6", "uniform:100,50,4", "rmat:7,4", "banded:30,2"])
def test_generate(spec):
    A = spmv.generate(spec)
    assert isinstance(A, sp.csr_array) and A.has_sorted_indices
    assert spmv.generate(spec, np.float32).dtype == np.float32
    same(A, spmv.generate(spec))


def test_matrices_keep_their_memory():
    import gc

    data = spmv.generate("poisson2d:200").data
    gc.collect()
    _ = [np.full(100000, np.nan) for _ in range(20)]
    assert data.sum() == 4 * 40000 - 4 * 200 * 199


@pytest.mark.parametrize("dtype", DTYPES)
def test_spgemm(dtype):
    A, B = random_csr(60, 50, dtype), random_csr(50, 40, dtype, seed=3)
    C = spmv.spgemm(A, B)
    assert isinstance(C, sp.csr_array) and C.dtype == dtype and C.has_sorted_indices
    reference = (A @ B).toarray()
    np.testing.assert_allclose(C.toarray(), reference, rtol=1e-4 if "64" not in str(dtype) or dtype == "complex64" else 1e-12, atol=1e-5)
    unsorted = A.tocsc().tocsr()[:, ::-1]
    np.testing.assert_allclose(spmv.spgemm(unsorted, B).toarray(), (unsorted @ B).toarray(), rtol=1e-4, atol=1e-5)
    with pytest.raises(ValueError, match="50|60"):
        spmv.spgemm(A, A)


def test_multiply_unsorted_and_mixed():
    A = random_csr(60, 50)
    A.sort_indices()
    order = np.concatenate([np.arange(a, b)[::-1] for a, b in zip(A.indptr, A.indptr[1:])]).astype(int)
    shuffled = sp.csr_array((A.data[order], A.indices[order], A.indptr), shape=A.shape)
    B = random_csr(50, 40, "float32", seed=3)
    np.testing.assert_allclose(spmv.spgemm(shuffled, B).toarray(), (A @ B).toarray(), rtol=1e-6)
    np.testing.assert_allclose(spmv.spgemm(A.tocsc(), B.tocoo()).toarray(), (A @ B).toarray(), rtol=1e-6)


@pytest.mark.parametrize("form", [sp.csr_matrix, sp.csr_array, sp.csc_matrix, sp.coo_array])
def test_products_keep_the_class(form):
    A = form(random_csr(40, 40))
    expected = sp.csr_matrix if isinstance(A, sp.spmatrix) else sp.csr_array
    for C in (spmv.spgemm(A, A), spmv.spgemm_triple(A, A, A), spmv.SpgemmPlan(A.tocsr(), A.tocsr()).multiply(None, None)):
        assert type(C) is expected
    parts = A.tocsr()
    C = spmv.spgemm(spmv.CSR(parts.data, parts.indices, parts.indptr, A.shape), A)
    assert type(C) is spmv.CSR
    np.testing.assert_allclose(C.toarray(), (A @ A).toarray(), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("ordered", [True, False])
def test_repeated_entries_are_summed(ordered):
    """As SciPy does; the matrices stay as they are."""
    rng = np.random.default_rng(5)
    offsets = np.concatenate([[0], np.cumsum(rng.integers(0, 9, 30))])
    columns = rng.integers(0, 12, offsets[-1])
    if ordered:
        columns = np.concatenate([np.sort(columns[a:b]) for a, b in zip(offsets, offsets[1:])])
    A = sp.csr_array((rng.standard_normal(offsets[-1]), columns, offsets), shape=(30, 12))
    B = sp.csr_array(A.T.tocoo())
    kept = A.indices.copy()
    expected = (A.toarray() @ B.toarray())
    np.testing.assert_allclose(spmv.spgemm(A, B).toarray(), expected, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(spmv.spgemm_triple(B, A, B).toarray(), B.toarray() @ expected, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(A.indices, kept)
    with pytest.raises(ValueError, match=r"matrix 2 .*sum_duplicates"):
        spmv.SpgemmPlan(B, A)
    A.sum_duplicates()
    same(spmv.spgemm(A, B), spmv.SpgemmPlan(A, B).multiply(None, None))


@pytest.mark.parametrize("dtype", DTYPES)
def test_plans_of_products(dtype):
    """The bits are those of multiply."""
    R, A, P = random_csr(20, 60, dtype), random_csr(60, 50, dtype, seed=3), random_csr(50, 10, dtype, seed=4)
    for M in (R, A, P):
        M.sort_indices()
    two, three = spmv.SpgemmPlan(A, P), spmv.SpgemmPlan(R, A, P)
    same(two.multiply(None, None), spmv.spgemm(A, P))
    same(three.multiply(None, None, None), spmv.spgemm_triple(R, A, P))
    A2 = A.copy()
    A2.data = A.data[::-1].copy()
    first = three.multiply(None, A2.data, None)
    same(first, spmv.spgemm_triple(R, A2, P))
    same(two.multiply(A2.data, P.data), spmv.spgemm(A2, P))
    out = np.empty(two.nnz, dtype)
    assert two.values(A.data, None, out=out) is out
    np.testing.assert_array_equal(out, spmv.spgemm(A, P).data)
    first.indices[:] = 0  # an array of the result, not of the plan
    same(three.multiply(None, A2.data, None), spmv.spgemm_triple(R, A2, P))
    about = three.describe()
    assert len(about) == 2 and about[1]["nnz"] == three.nnz and three.shape == (20, 10) and about[0]["method"]
    with pytest.raises(ValueError, match="values of matrix 1 have the shape"):
        two.values(A.data[:-1], None)
    with pytest.raises(TypeError, match="2 arrays of values"):
        two.values(A.data)
    with pytest.raises(TypeError, match="out has the type"):
        two.values(None, None, out=np.empty(two.nnz, "int32"))
    with pytest.raises(ValueError, match="60|50"):
        spmv.SpgemmPlan(A, A)
    with pytest.raises(TypeError, match="two or three"):
        spmv.SpgemmPlan(A)


def test_integers_that_are_rounded():
    """As the reader: one warning that names the first."""
    A = sp.csr_array(np.array([[2**53, 0, 2**60], [0, 2**53 + 1, -(2**62) - 1]]))
    for call in (lambda: spmv.Plan(A), lambda: spmv.spgemm(A, sp.eye_array(3, format="csr"))):
        with pytest.warns(UserWarning, match=r"^data\[2\]: this integer was rounded: .* float64 \(1 more\)$") as found:
            call()
        assert found[0].filename == __file__
    plan = spmv.Plan(sp.eye_array(2, format="csr"))
    for x in ([1, 2**63 - 1], np.array([1, 2**64 - 1], np.uint64)):
        with pytest.warns(UserWarning, match=r"^x\[1\]: this integer was rounded"):
            plan @ x
    with pytest.warns(UserWarning, match=r"^b\[0\]"):
        spmv.solve(sp.eye_array(2, format="csr"), [2**53 + 1, 1])
    plan @ np.array([2**53, -(2**62)])
    plan @ np.array([True, False])

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

    def without_libarchive(context, path):
        with module.open(path, "rb") as text:
            return _files._read_stream(context, text, str(path), None, None)

    context = context_of("cpu")
    same(made(without_libarchive(context, path), context, "scipy"), A)
    with module.open(path, "wb") as file:
        file.write(b"%%MatrixMarket matrix coordinate real general\n2 2 1\n3 1 1\n")
    with pytest.raises(ValueError, match=str(path)):
        without_libarchive(context, path)
    path.write_bytes(path.read_bytes()[:-4])
    with pytest.raises((ValueError, OSError)):
        without_libarchive(context, path)


# ---------------------------------------------------------------- files of other programs

OTHER_DTYPES = ["float64", "float32", "complex128", "complex64", "int32", "int64", "uint8", "bool"]


def other(dtype, square=False):
    """With -0, a denormal number, numbers of three-digit exponents and empty rows."""
    A = sp.random_array((40, 40 if square else 30), density=0.15, rng=np.random.default_rng(1), format="csr")
    if np.dtype(dtype).kind in "fc":
        A.data[:4] = [-0.0, 1e-44, -1.5e30, 3e-30]
        A = A.astype(dtype)
        if A.dtype.kind == "c":
            A.data += 1j * A.data[::-1]
        return A
    A.data = np.arange(1, A.nnz + 1)
    return A.astype(dtype)


def wanted(A):
    return A if A.dtype.kind in "fc" else A.astype("float64")


@pytest.mark.parametrize("dtype", OTHER_DTYPES)
@pytest.mark.parametrize("form", ["csr", "csc", "coo", "bsr", "dia"])
def test_npz(tmp_path, dtype, form):
    A = other(dtype)
    B = A.asformat(form)
    for matrix in (B, getattr(sp, form + "_matrix")(B)):
        for compressed in (True, False):
            sp.save_npz(tmp_path / "A.npz", matrix, compressed=compressed)
            read = spmv.read(tmp_path / "A.npz", wanted(A).dtype)
            if form in ("bsr", "dia"):  # with the zeros of blocks, without those of diagonals
                np.testing.assert_array_equal(read.toarray(), wanted(A).toarray())
            else:
                same(read, wanted(A))
    spmv.write(tmp_path / "B.npz", wanted(A))
    same(sp.csr_array(sp.load_npz(tmp_path / "B.npz")), wanted(A))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of loadmat, about its kind of result
@pytest.mark.parametrize("dtype", OTHER_DTYPES)
def test_mat(tmp_path, dtype):
    A = other(dtype)
    for compressed in (True, False):
        io.savemat(tmp_path / "A.mat", {"A": A.tocsc(), "b": np.arange(3)}, do_compression=compressed)
        same(spmv.read(tmp_path / "A.mat", wanted(A).dtype), wanted(A))
    io.savemat(tmp_path / "A.mat", {"A": A.toarray()})
    np.testing.assert_array_equal(spmv.read(tmp_path / "A.mat", wanted(A).dtype).toarray(), wanted(A).toarray())
    spmv.write(tmp_path / "B.mat", wanted(A))
    same(sp.csr_array(io.loadmat(tmp_path / "B.mat")["A"]).astype(wanted(A).dtype), wanted(A))


def test_variables(tmp_path):
    A, B = other("float64"), other("float64", True)
    path = tmp_path / "A.mat"
    io.savemat(path, {"A": A, "B": B, "x": np.arange(3)})
    with pytest.raises(OSError, match=r"several variables: A \(sparse\), B \(sparse\), x \(dense\)"):
        spmv.read(path)
    same(spmv.read(path, name="B"), B)
    same(spmv.read(f"{path}:A"), A)
    same(spmv.read(path.read_bytes(), name="B"), B)
    with pytest.raises(OSError, match="no variable C; there are A"):
        spmv.read(path, name="C")
    io.savemat(path, {"Problem": {"A": A, "Zeros": A, "kind": "x"}})
    same(spmv.read(path), A)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of hb_read, about its kind of result
def test_harwell_boeing(tmp_path):
    A = other("float64", True)
    for ending in ("rb", "hb", "rb.gz"):
        spmv.write(tmp_path / f"A.{ending}", A)
        same(spmv.read(tmp_path / f"A.{ending}"), A)
        if ending != "rb.gz":
            same(sp.csr_array(io.hb_read(tmp_path / f"A.{ending}")), A)
    S = sp.csr_array(A + A.T)
    spmv.write(tmp_path / "S.rb", S, symmetry="symmetric")
    same(spmv.read(tmp_path / "S.rb"), S)
    B = A.copy()
    B.data = np.abs(np.clip(B.data, -1e9, 1e9)) + 1
    io.hb_write(tmp_path / "B.rua", B.tocsc())
    same(spmv.read(tmp_path / "B.rua"), B)
    B.data *= -1  # SciPy's fields are then narrower than its format says
    io.hb_write(tmp_path / "B.rua", B.tocsc())
    with pytest.warns(UserWarning, match="do not keep to the format"):
        same(spmv.read(tmp_path / "B.rua"), B)


@pytest.mark.parametrize("integer", [">i4", ">i8"])
@pytest.mark.parametrize("number", [">f8", ">c16", ">f4"])
def test_petsc(tmp_path, integer, number):
    """The bytes as PETSc's manual describes them."""
    A = other(np.dtype(number).newbyteorder("="))
    head = np.array([1211216, *A.shape, A.nnz], integer).tobytes()
    arrays = [np.diff(A.indptr).astype(integer), A.indices.astype(integer), A.data.astype(number)]
    vector = np.array([1211214, 5], integer).tobytes() + np.arange(5).astype(number).tobytes()
    (tmp_path / "A.petsc").write_bytes(head + b"".join(a.tobytes() for a in arrays) + vector)
    same(spmv.read(tmp_path / "A.petsc", A.dtype), A)
    if integer == ">i4" and number != ">f4":
        spmv.write(tmp_path / "B.petsc", A)
        assert (tmp_path / "B.petsc").read_bytes() + vector == (tmp_path / "A.petsc").read_bytes()


def test_dense_arrays(tmp_path):
    X = np.random.default_rng(2).standard_normal((7, 5))
    for array in (X, np.asfortranarray(X), X.astype(">f4"), (10 * X).astype("i2")):
        np.save(tmp_path / "X.npy", array)
        np.testing.assert_array_equal(spmv.read(tmp_path / "X.npy").toarray(), array)
    np.savez(tmp_path / "X.npz", first=X, second=2 * X)
    np.testing.assert_array_equal(spmv.read(tmp_path / "X.npz", name="second").toarray(), 2 * X)
    with pytest.raises(OSError, match="several arrays: first, second"):
        spmv.read(tmp_path / "X.npz")
    np.save(tmp_path / "O.npy", np.array([{}]))
    with pytest.raises(NotImplementedError, match=r"type '\|O'"):
        spmv.read(tmp_path / "O.npy")


@pytest.mark.parametrize("name", ["A.mtx", "A.spmv", "A.npz", "A.mat", "A.petsc", "A.rb", "A.mtx.gz"])
def test_open_files_and_buffers(tmp_path, name):
    A = other("float64")
    spmv.write(tmp_path / name, A)
    contents = (tmp_path / name).read_bytes()
    with open(tmp_path / name, "rb") as file:
        same(spmv.read(file), A)
    with open(tmp_path / "after", "wb") as file:
        file.write(b"head" + contents)
    with open(tmp_path / "after", "rb") as file:
        file.seek(4)
        same(spmv.read(file), A)
    for buffer in (contents, bytearray(contents), memoryview(contents), np.frombuffer(contents, np.uint8)):
        same(spmv.read(buffer), A)


def test_without_zlib(tmp_path):
    """As where the library cannot unpack."""
    from spmv import _files

    A = other("complex128")
    sp.save_npz(tmp_path / "A.npz", A)
    io.savemat(tmp_path / "A.mat", {"A": A, "b": np.arange(9)}, do_compression=True)
    for name in ("A.npz", "A.mat"):
        plain = _files._unpacked(tmp_path / name).read()
        assert len(plain) > (tmp_path / name).stat().st_size
        same(spmv.read(plain), A)
    assert _files._unpacked(__file__) is None


def test_buffers_that_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"^the buffer:1:1: bad banner"):
        spmv.read(b"rubbish\n")
    (tmp_path / "A.mtx").write_text("rubbish")
    with open(tmp_path / "A.mtx", "rb") as file, pytest.raises(ValueError, match=r"A.mtx:1:1: bad banner"):
        spmv.read(file)
    with open(tmp_path / "A.mtx") as file, pytest.raises(TypeError, match="binary mode"):
        spmv.read(file)


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

"""The symmetric positive definite matrices of a folder with catalog.csv: real or integer, with
values.

Those are taken that SuiteSparse lists as positive definite. Where the catalogue does not say, the
pivots of an elimination without exchanges decide: after scaling to a diagonal of ones, each must
exceed the rounding errors. Needs numpy and scipy for these only.

SPDX-License-Identifier: BSD-3-Clause"""
import csv
import io
import lzma
import os


def read(path):
    """The matrix as CSR."""
    import scipy.io
    opened = lzma.open(path) if path.endswith(".xz") else open(path, "rb")
    with opened as f:
        a = scipy.io.mmread(io.BytesIO(f.read())).tocsr().astype(float)
    a.sum_duplicates()
    a.sort_indices()
    return a


def is_definite(a):
    import numpy as np
    import scipy.sparse
    from scipy.sparse.linalg import splu
    diagonal = a.diagonal()
    if not (diagonal > 0).all() or abs(a - a.T).count_nonzero() > 0:
        return False
    scale = scipy.sparse.diags(1 / np.sqrt(diagonal))
    try:
        factors = splu((scale @ a @ scale).tocsc(), permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0,
                       options={"SymmetricMode": True})
    except RuntimeError:  # singular
        return False
    return ((factors.perm_r == factors.perm_c).all()
            and (factors.U.diagonal() > a.shape[0] * np.finfo(float).eps).all())


def definite_matrices(folder, least=1):
    """Yields name, path and rows of each with at least so many rows; of several files the first."""
    seen = set()
    with open(os.path.join(folder, "catalog.csv"), newline="") as f:
        for row in csv.DictReader(f):
            path = os.path.join(folder, row["file"])
            if (row["name"] in seen or row["rows"] != row["cols"] or int(row["rows"]) < least
                    or row["format"] != "coordinate" or row["field"] not in ("real", "integer")
                    or row["symmetry"] not in ("symmetric", "general")):
                continue
            listed = row["symmetry"] == "symmetric" and row["genuine"].startswith("verified")
            if row["posdef_suitesparse"] == "yes" and listed or (not row["posdef_suitesparse"]
                                                                and is_definite(read(path))):
                seen.add(row["name"])
                yield row["name"], path, int(row["rows"])

#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Times of the package beside NumPy, SciPy, fast_matrix_market, CuPy and PyTorch.

usage: figures.py [FOLDER]

FOLDER has Matrix Market files (.mtx, also .mtx.xz) for the comparison of readers; without it, a
generated one is read. Every time is the least of several. Each result is compared before its time
counts.
"""

import lzma
import pathlib
import sys
import tempfile
import time

import numpy as np
import scipy.io
import scipy.sparse as sp
import scipy.sparse.linalg as la
import spmv


def least(function, repeats=7, seconds=0.02):
    """The least time of a call, over several batches of about so many seconds."""
    function()
    begin = time.perf_counter()
    function()
    count = max(1, int(seconds / max(time.perf_counter() - begin, 1e-9)))
    best = float("inf")
    for _ in range(repeats):
        begin = time.perf_counter()
        for _ in range(count):
            function()
        best = min(best, (time.perf_counter() - begin) / count)
    return best


def say(what, *numbers):
    print(f"{what:52}", *(f"{n:>14}" for n in numbers))


def text(seconds):
    for unit, scale in (("s", 1), ("ms", 1e3), ("us", 1e6)):
        if seconds * scale >= 1:
            return f"{seconds * scale:.3g} {unit}"
    return f"{seconds * 1e9:.0f} ns"


def overhead():
    say("overhead of a product (1 x 1, 1 entry)", "spmv", "scipy")
    A = sp.csr_array(np.eye(1))
    plan, x, y = spmv.Plan(A), np.ones(1), np.empty(1)
    say("plan.apply(x, out=y)", text(least(lambda: plan.apply(x, out=y))), "")
    say("plan @ x", text(least(lambda: plan @ x)), text(least(lambda: A @ x)))


def products():
    say("product, f64", "spmv", "scipy", "ratio")
    for spec in ("poisson2d:100", "poisson2d:1000", "poisson3d:100", "fem:20000,3,20", "rmat:17,8"):
        A = spmv.generate(spec)
        plan, x = spmv.Plan(A), np.random.default_rng(1).standard_normal(A.shape[1])
        y = np.empty(A.shape[0])
        assert np.allclose(plan @ x, A @ x)
        ours, theirs = least(lambda: plan.apply(x, out=y)), least(lambda: A @ x)
        say(spec, text(ours), text(theirs), f"{theirs / ours:.1f}")
        on_gpus(spec, A, x)


def on_gpus(spec, A, x):
    if not spmv.cuda_built():
        return
    try:
        import cupy
        from cupyx.scipy.sparse import csr_matrix

        there, v = csr_matrix(sp.csr_matrix(A)), cupy.asarray(x)
    except Exception:
        pass
    else:
        plan, out = spmv.Plan(there), cupy.empty(A.shape[0])
        assert cupy.allclose(plan @ v, there @ v)
        wait = cupy.cuda.Device().synchronize
        ours, theirs = (least(lambda f=f: [f() for _ in range(20)] + [wait()]) / 20
                        for f in (lambda: plan.apply(v, out=out), lambda: there @ v))  # fmt: skip
        say(f"{spec}, cupy", text(ours), text(theirs), f"{theirs / ours:.1f}")
    try:
        import torch

        if not torch.cuda.is_available():
            return
        parts = (torch.from_numpy(A.indptr), torch.from_numpy(A.indices), torch.from_numpy(A.data))
        there = torch.sparse_csr_tensor(*parts, size=A.shape).cuda()
        v = torch.from_numpy(x).cuda()
    except Exception:
        return
    plan = spmv.Plan(there)
    assert torch.allclose(plan @ v, there @ v)
    ours, theirs = (least(lambda f=f: [f() for _ in range(20)] + [torch.cuda.synchronize()]) / 20
                    for f in (lambda: plan @ v, lambda: there @ v))  # fmt: skip
    say(f"{spec}, torch", text(ours), text(theirs), f"{theirs / ours:.1f}")


def solves():
    say("cg, rtol 1e-8, f64", "spmv", "scipy", "ratio")
    for spec in ("poisson2d:50", "poisson2d:300", "diffusion2d:200,1000"):
        A = spmv.generate(spec)
        b = A @ np.random.default_rng(1).standard_normal(A.shape[1])
        inverse = 1 / A.diagonal()
        M = la.LinearOperator(A.shape, matvec=lambda r, inverse=inverse: inverse * r)
        for name, theirs_m in ((None, None), ("jacobi", M), ("auto", None)):
            x, info = spmv.cg(A, b, rtol=1e-8, M=name)
            assert info == 0 and np.linalg.norm(b - A @ x) <= 1.01e-8 * np.linalg.norm(b)
            ours = least(lambda name=name: spmv.cg(A, b, rtol=1e-8, M=name), 3)
            theirs = least(lambda m=theirs_m: la.cg(A, b, rtol=1e-8, M=m), 3)
            beside = "" if name != "auto" else " (scipy: none)"
            say(f"{spec}, M = {name}{beside}", text(ours), text(theirs), f"{theirs / ours:.1f}")


def readers(folder):
    try:
        import fast_matrix_market
    except ImportError:
        fast_matrix_market = None
    say("reading Matrix Market", "spmv", "scipy", "fast_mm", "MB")
    with tempfile.TemporaryDirectory() as here:
        made = pathlib.Path(here) / "poisson3d_60.mtx"
        spmv.write(made, spmv.generate("poisson3d:60"))
        files = [made]
        if folder is not None:
            given = sorted(folder.glob("*.mtx")) + sorted(folder.glob("*.mtx.xz"))
            for path in sorted(given, key=lambda p: -p.stat().st_size)[:6]:
                plain = pathlib.Path(here) / path.name.removesuffix(".xz")
                data = path.read_bytes()
                plain.write_bytes(lzma.decompress(data) if path.suffix == ".xz" else data)
                files.append(plain)
        for path in files:
            head = path.read_text(errors="replace")[:200].lower()
            if "coordinate" not in head:
                continue
            A, B = spmv.read(path), scipy.io.mmread(path).tocsr()
            assert A.shape == B.shape and abs(A - B).sum() == 0
            times = [least(lambda: spmv.read(path), 3), least(lambda: scipy.io.mmread(path).tocsr(), 3)]
            times.append(
                least(lambda: fast_matrix_market.mmread(str(path)).tocsr(), 3) if fast_matrix_market else float("nan")
            )
            say(path.name, *(text(t) for t in times), f"{path.stat().st_size / 1e6:.1f}")


def main():
    if len(sys.argv) > 2 or (len(sys.argv) == 2 and not pathlib.Path(sys.argv[1]).is_dir()):
        sys.exit(__doc__)
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) == 2 else None
    print(f"spmv {spmv.__version__}, {spmv.Context('cpu').description}; NumPy {np.__version__}, SciPy {__import__('scipy').__version__}")
    for part in (overhead, products, solves):
        part()
        print()
    readers(folder)


if __name__ == "__main__":
    main()

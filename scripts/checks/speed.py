#!/usr/bin/env python3
"""Compares the speed of two versions of the program, which run alternately.

    speed.py [OLD [NEW]]       prints each group's geometric mean and worst row; exit status 1 if
                               the mean of a group is below 0.995, or if a row of more than 50 MB is
                               more than 3 % slower in both of two runs
    speed.py --self-test       judges made-up figures

OLD and NEW are commits or folders with the project's source (built below build/gates), programs, or
unpacked bundles (their bin/spmv). Default: OLD is the commit that gates.py chooses, NEW is this
tree.

    --backend omp|cuda   default omp; cuda needs a GPU
    --rounds N           pairs of calls per row and run, alternately OLD or NEW first; default 7
    --quick              small sizes: tests this script, not the speed

A row is one figure of "spmv bench --json". Its group is products, plans (the time to create one),
cg, primitives or reader (bench --op load). A ratio is the seconds of OLD divided by those of NEW in
one round, so NEW is faster if it is above 1. The ratio of a row is the median over its rounds, the
spread their interquartile range. Rows of up to 50 MB count only in the means. Run this on a quiet
machine: a spread above about 2 % shows that it is not quiet.

SPDX-License-Identifier: BSD-3-Clause
"""
import json
import math
import os
import statistics
import subprocess
import tempfile

import gates

LEAST_MEAN = 0.995
MOST_SLOWER = 0.03
LARGE = 50e6
RUNS = 2

# SPECs of matrices, full and quick
MATRICES = {"full": ("poisson3d:128", "fem:60000,3,20", "powerlaw:1000000,12,1.9,20000", "uniform:1000000,1000000,9"),
            "quick": ("poisson2d:60", "fem:500,3,9")}
SOLVED = {"full": ("poisson3d:96", "stencil27:48"), "quick": ("poisson2d:40",)}
READ = {"full": "uniform:500000,500000,9", "quick": "poisson2d:60"}
SIZE = {"full": str(1 << 24), "quick": "100000"}
PRIMITIVES = ("map", "reduce", "scan", "segscan", "segreduce", "gather", "scatter", "compact", "sort", "histogram")


def calls(scale, matrix_file):
    """[(group, arguments of bench)]"""
    found = [("products", ["--op", op, matrix, "--type", of])
             for matrix in MATRICES[scale] for op, of in (("spmv", "f64"), ("spmv", "f32"), ("spmm", "f64"))]
    found += [("cg", ["--op", "cg", matrix]) for matrix in SOLVED[scale]]
    found += [("primitives", ["--op", op, "--size", SIZE[scale]]) for op in PRIMITIVES]
    return found + [("reader", ["--op", "load", matrix_file])]


def figures(group, arguments, text):
    """{(group, row): (seconds, bytes)} from the output of bench, one JSON object per line. A
    product also has the time of its plan."""
    found = {}
    for line in text.splitlines():
        record = json.loads(line)
        result = record["result"]
        name = " ".join([*arguments, *(str(result[key]) for key in ("method", "kind") if result.get(key) is not None)])
        seconds = result.get("seconds")
        if seconds is None:
            continue
        moved = result.get("model_bytes") or result.get("file_bytes") or 0
        found[group, name] = (seconds["median"] if isinstance(seconds, dict) else seconds, moved)
        if group == "products" and result.get("plan_seconds"):
            found["plans", name] = (result["plan_seconds"], moved)
    return found


def measure(program, backend, group, arguments):
    command = [program, "bench", *arguments, "--json", "-q"]
    if group != "reader":
        command += ["--peers", "none", "--backend", backend]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, universal_newlines=True)
    if done.returncode != 0:
        raise gates.Trouble(f"{' '.join(command)}: status {done.returncode}: {done.stderr.strip()[-300:]}")
    return figures(group, arguments, done.stdout)


def one_run(old, new, backend, wanted, rounds):
    """{(group, row): {"ratios": [...], "bytes": b}}; old and new alternate as the first."""
    rows = {}
    for group, arguments in wanted:
        for turn in range(rounds):
            first, second = (measure(p, backend, group, arguments) for p in ((old, new) if turn % 2 == 0 else (new, old)))
            if turn % 2 == 1:
                first, second = second, first
            for key in first.keys() & second.keys():
                row = rows.setdefault(key, {"ratios": [], "bytes": first[key][1]})
                row["ratios"].append(first[key][0] / second[key][0])
    return rows


def spread(ratios):
    if len(ratios) < 2:
        return 0.0
    low, _, high = statistics.quantiles(ratios, n=4, method="inclusive")
    return high - low


def judge(runs):
    """(lines of the report, a message for each failure) from the rows of several runs."""
    lines, failed = [], []
    groups = dict.fromkeys(group for rows in runs for group, _ in rows)
    if not groups:
        return lines, ["no figure was measured in both"]
    for group in groups:
        names = dict.fromkeys(name for rows in runs for g, name in rows if g == group)
        ratio = {name: [statistics.median(rows[group, name]["ratios"]) for rows in runs if (group, name) in rows] for name in names}
        every = [value for values in ratio.values() for value in values]
        mean = math.exp(statistics.fmean(math.log(value) for value in every))
        worst = min(names, key=lambda name: max(ratio[name]))
        widths = [spread(rows[key]["ratios"]) for rows in runs for key in rows if key[0] == group]
        lines.append(f"{group:<11} mean {mean:.4f}  worst {max(ratio[worst]):.4f} ({worst})  spread {statistics.median(widths):.4f}"
                     f"  {len(names)} rows")
        if mean < LEAST_MEAN:
            failed.append(f"{group}: the mean {mean:.4f} is below {LEAST_MEAN}")
        for name in names:
            moved = max(rows[group, name]["bytes"] for rows in runs if (group, name) in rows)
            # slower in every run: a single slow run may be noise of the machine
            if moved > LARGE and max(ratio[name]) < 1 / (1 + MOST_SLOWER):
                failed.append(f"{group}: {name} takes {1 / max(ratio[name]) - 1:.1%} longer in each of {len(ratio[name])} runs")
    return lines, failed


def program(name):
    for path in (os.path.join(name, "bin", "spmv"), os.path.join(name, "app", "spmv"), name):
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return os.path.abspath(path)
    cuda = "OFF" if os.environ.get("SPMV_CUDA") == "OFF" else "AUTO"
    folder = gates.State(name).build("speed", ["spmv_program"], "-DCMAKE_BUILD_TYPE=Release", "-DBUILD_TESTING=OFF",
                                     f"-DSPMV_CUDA={cuda}", "-DCMAKE_CUDA_ARCHITECTURES=" + os.environ.get("GATE_ARCHITECTURES", "90-real"))
    return os.path.join(folder, "app", "spmv")


def self_test():
    def run(first, second, moved=1e8):
        return {("products", "a"): {"ratios": first, "bytes": moved}, ("products", "b"): {"ratios": second, "bytes": moved}}
    good, slow, noisy = [1.0, 1.01, 0.995], [0.96, 0.95, 0.955], [1.0, 0.5, 1.1]
    cases = (("equal", [run(good, good)] * 2, 0), ("one row slower", [run(good, slow)] * 2, 2),
             ("one row slower in one run", [run([1.03] * 3, slow), run([1.03] * 3, good)], 0),
             ("a small row slower, the mean not", [run([1.05] * 3, slow, 1e6)] * 2, 0), ("one slow round", [run(good, noisy)] * 2, 0),
             ("nothing", [{}, {}], 1))
    for what, runs, count in cases:
        _, failed = judge(runs)
        if len(failed) != count:
            raise gates.Trouble(f"{what}: reported as {failed}")
        print(f"{what}: {failed or 'passed'}")
    return 0


def work():
    parser = gates.parser(__doc__)
    parser.add_argument("--backend", default="omp", choices=("omp", "cuda"))
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--quick", action="store_true")
    given = gates.arguments(parser, self_test)
    if given.rounds < 1:
        parser.error("at least one round")
    old_name, new_name = gates.old_and_new(given.states)
    old, new = program(old_name), program(new_name)
    scale = "quick" if given.quick else "full"
    if given.quick:
        # small arrays for the bandwidth measurement
        os.environ["SPMV_TEST_CACHE_BYTES"] = "4194304"
    with tempfile.TemporaryDirectory() as folder:
        matrix = os.path.join(folder, "read.mtx")
        gates.run([new, "gen", READ[scale], "-o", matrix, "-q"])
        runs = [one_run(old, new, given.backend, calls(scale, matrix), given.rounds) for _ in range(RUNS)]
    lines, failed = judge(runs)
    print("\n".join(lines + [f"failed: {sentence}" for sentence in failed]))
    print(f"speed: {old_name} against {new_name} on {given.backend}: {'passed' if not failed else 'failed'}")
    return 1 if failed else 0


if __name__ == "__main__":
    gates.main(work)

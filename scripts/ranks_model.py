#!/usr/bin/env python3
"""The model of conjugate gradients with multigrid on many GPUs (docs/notebook/ranks.md): prints its tables.

usage: ranks_model.py

Counted: levels, products, exchanges, elements of other ranks. Measured: the constants below. Standard
library only.

SPDX-License-Identifier: BSD-3-Clause"""
import math

# Levels of poisson3d: rows of a level over those of the level before it, and entries of a row
# (spmv solve poisson3d:64 and :100 --precond amg -v: 262144, 23915, 687, 30 and 1000000, 90185, 2461, 93 rows,
# operator complexity 1.44).
RATIO, ENTRIES = [1, 1 / 11, 1 / 36, 1 / 25], [7, 32, 45, 30]  # deeper ones: as the last
FIRST, DEEPER = 6, 8  # products of a level in a cycle (amg_cycle.c); each needs elements of other ranks
INVERTED = 100  # rows of the last level, about
WHOLE = 65536  # rows of a level that each GPU computes alone (amg_ranks.c)
SUMS = 4  # p'Ap, r'r, r'z, and the scaling of the cycle
SIZE = 4  # bytes of an element in the cycle; the product of conjugate gradients has 8

# poisson3d:400, H200, 10 iterations: solve without ranks and on four GPUs, ms (docs/notebook/ranks.md, "Four H200
# again"), which give a and c below. The solve of poisson3d:256 on two GPUs tests them.
MEASURED, GRID, ITERATIONS = {1: 119, 4: 40}, 400, 10
TEST = {"grid": 256, "gpus": 2, "solve": 21.3}
# Set-up of poisson3d:256 and :400 on one GPU and two, ms: a line in the rows of a GPU each.
SETUP = {1: {256: 45.7, 400: 178}, 2: {256: 36.5, 400: 109}}
# The links, as in the model of conjugate gradients: bytes a second, and microseconds of an exchange with neighbours.
LINK = {"host": 395e9, "hosts": 40e9}
EXCHANGE = {1: 0, 2: 10 / 3, 4: 14 / 3, 8: 14 / 3, 64: 5 + 3}


def gather(gpus):
    """Microseconds until all have what each gives: on one host as any exchange, else a ring."""
    hosts = gpus // 8
    return EXCHANGE[gpus] if hosts < 2 else 5 + (gpus - hosts) + 3 * hosts


def levels(rows):
    """Rows, entries and products of each level but those that are inverted."""
    n, k, found = rows, 0, []
    while n > INVERTED:
        found.append((n, n * ENTRIES[k], DEEPER if found else FIRST))
        k = min(k + 1, len(RATIO) - 1)
        n *= RATIO[k]
    return found


def iteration(side, gpus, work_ps):
    """Microseconds of what a GPU does in an iteration, of the fine (divided) and the coarse (whole) levels."""
    rows, link = side**3, LINK["host" if gpus <= 8 else "hosts"]
    work = sum(entries * products for _, entries, products in levels(rows)) + 2 * 7 * rows  # f64 counts twice
    divided, whole, moved, exchanges = 0, 0, 0, 0
    for k, (n, entries, products) in enumerate(levels(rows)):
        own = entries * products + (2 * 7 * n if k == 0 else 0)
        if n <= WHOLE:
            whole += own
            continue
        divided += own
        plane = n ** (2 / 3) * min(2, gpus - 1)  # slabs: a plane of each neighbour
        exchanges += products + (k == 0)
        moved += plane * (products * SIZE + (8 if k == 0 else 0))
    first_whole = next(n for n, _, _ in levels(rows) if n <= WHOLE)
    per_unit = work_ps * 1e-6 * rows / work  # us of a unit of work
    fine = [divided * per_unit / gpus, exchanges * EXCHANGE[gpus], 1e6 * moved / link]
    coarse = [whole * per_unit, gather(gpus) if gpus > 1 else 0, 1e6 * first_whole * SIZE / link if gpus > 1 else 0]
    return {"fine": fine, "coarse": coarse, "sums": SUMS * gather(gpus) if gpus > 1 else 0,
            "exchanges": exchanges, "moved": moved, "gathered": first_whole * SIZE}


def total(side, gpus, fixed, work_ps):
    i = iteration(side, gpus, work_ps)
    return fixed + sum(i["fine"]) + sum(i["coarse"]) + i["sums"]


def calibrate():
    """fixed us and ps a row of an iteration, so that one GPU and four are as measured."""
    one, four = (1e3 * MEASURED[n] / ITERATIONS for n in (1, 4))
    low, high = 0.0, 1e4
    for _ in range(60):
        middle = (low + high) / 2
        gain = total(GRID, 1, 0, middle) - total(GRID, 4, 0, middle)
        low, high = (middle, high) if gain < one - four else (low, middle)
    return one - total(GRID, 1, 0, low), low


def setup_line(gpus):
    """Set-up: ms, and ms for a million rows of a GPU."""
    (small, low), (large, high) = sorted(SETUP[gpus].items())
    each = (high - low) / ((large**3 - small**3) / 1e6 / gpus)
    return low - each * small**3 / 1e6 / gpus, each


def setup(side, gpus):
    constant, each = setup_line(min(gpus, 2))
    return max(0.0, constant) + each * side**3 / 1e6 / gpus


def table(title, cases, fixed, work_ps):
    print(f"{title}\n")
    print("| GPUs | grid | fine: work | fine: exchanges | fine: bytes | coarse: work | coarse: gather | sums | iteration | "
          "iteration without a | one / several | without a |\n|" + "---|" * 12)
    first = None
    for side, gpus in cases:
        i = iteration(side, gpus, work_ps)
        all_of = total(side, gpus, fixed, work_ps)
        first = first or all_of
        print(f"| {gpus} | {side} | {i['fine'][0]:.0f} | {i['fine'][1]:.0f} ({i['exchanges']}) | {i['fine'][2]:.0f} "
              f"({i['moved'] / 1e6:.1f} MB) | {i['coarse'][0]:.0f} | {sum(i['coarse'][1:]):.0f} "
              f"({i['gathered'] / 1e3:.0f} KB) | {i['sums']:.0f} | {all_of:.0f} | {all_of - fixed:.0f} | {first / all_of:.2f} | "
              f"{(first - fixed) / (all_of - fixed):.2f} |")
    print()


def setup_table(cases):
    for gpus in SETUP:
        print("Set-up on %s: %.1f ms + %.2f ms for a million rows of a GPU" % ("one" if gpus == 1 else "several", *setup_line(gpus)))
    print("\n| GPUs | grid | set-up, ms |\n|---|---|---|")
    for side, gpus in cases:
        print(f"| {gpus} | {side} | {setup(side, gpus):.0f} |")
    print()


def main():
    fixed, work_ps = calibrate()
    tested = total(TEST["grid"], TEST["gpus"], fixed, work_ps) * ITERATIONS / 1e3
    print(f"a = {fixed:.0f} us, c = {work_ps:.0f} ps a row; poisson3d:{TEST['grid']} on {TEST['gpus']}: {tested:.1f} ms, "
          f"measured {TEST['solve']}\n")
    table("Strong: 64,000,000 rows.", [(400, n) for n in (1, 2, 4, 8, 64)], fixed, work_ps)
    setup_table([(400, n) for n in (1, 2, 4, 8, 64)])
    table("Weak: 16,000,000 rows a GPU.", [(round((16e6 * n) ** (1 / 3)), n) for n in (1, 2, 4, 8, 64)], fixed, work_ps)


if __name__ == "__main__":
    main()

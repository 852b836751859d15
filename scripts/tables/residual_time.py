#!/usr/bin/env python3
"""Draws the residual over the time for several preconditioners, set-up included: an SVG picture of
docs/preconditioners.md. An iteration is drawn as the same part of the solve.

usage: residual_time.py PROGRAM MATRIX|SPEC FILE.svg NAME...
  PROGRAM: spmv; further options of it in SPMV_OPTIONS, such as "--backend cuda"

SPDX-License-Identifier: BSD-3-Clause"""
import csv
import json
import math
import os
import subprocess
import sys
import tempfile

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 760, 420, 70, 130, 40, 50
COLOURS = ["#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#bbbbbb"]
MOST = 200  # points of a line


def measure(program, matrix, name, folder):
    """The points (seconds, relative residual)."""
    history, figures = os.path.join(folder, "history"), os.path.join(folder, "json")
    subprocess.run([program, "solve", matrix, "--precond", name, "--solution", "random", "-q", "-o", os.devnull,
                    "--history", history, f"--json={figures}", *os.environ.get("SPMV_OPTIONS", "").split()], check=True)
    with open(figures) as f:
        result = json.load(f)["result"]["cg"]
    with open(history, newline="") as f:
        residuals = [float(row["residual"]) for row in csv.DictReader(f)]
    setup, step = result["setup_seconds"], result["seconds_per_iteration"]
    every = max(1, len(residuals) // MOST)
    points = [(setup + k * step, r / residuals[0]) for k, r in enumerate(residuals) if r > 0]
    return points[::every] + points[-1:]


def draw(path, matrix, lines):
    last = max(t for points in lines.values() for t, _ in points)
    first = min(max(points[0][0], last * 1e-5) for points in lines.values())
    first = 10 ** math.floor(math.log10(first))
    decades = math.log10(last * 1.1 / first)
    low = -9

    def x(t):
        return LEFT + (WIDTH - LEFT - RIGHT) * math.log10(max(t, first) / first) / decades

    def y(r):
        return TOP + (HEIGHT - TOP - BOTTOM) * (1 - math.log10(max(r, 10.0 ** low)) / 1) / (1 - low)

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" font-family="sans-serif" '
           f'font-size="12"><rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>'
           f'<text x="{LEFT}" y="22" font-size="15">{matrix}: residual over time, set-up included</text>']
    for power in range(1, low - 1, -1):
        at = y(10.0 ** power)
        out.append(f'<path d="M{LEFT} {at:.1f}H{WIDTH - RIGHT}" stroke="#ddd"/>'
                   f'<text x="{LEFT - 8}" y="{at + 4:.1f}" text-anchor="end">1e{power}</text>')
    for k in range(int(decades) + 1):
        t = first * 10 ** k
        out.append(f'<path d="M{x(t):.1f} {TOP}V{HEIGHT - BOTTOM}" stroke="#ddd"/>'
                   f'<text x="{x(t):.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{1e3 * t:g} ms</text>')
    for i, (name, points) in enumerate(lines.items()):
        path_of = "M" + "L".join(f"{x(t):.1f} {y(r):.1f}" for t, r in points)
        colour = COLOURS[i % len(COLOURS)]
        out.append(f'<path d="{path_of}" fill="none" stroke="{colour}" stroke-width="2"/>'
                   f'<text x="{WIDTH - RIGHT + 10}" y="{TOP + 14 + 18 * i}" fill="{colour}">'
                   f'{name}: {1e3 * points[-1][0]:.3g} ms</text>')
    out.append("</svg>\n")
    with open(path, "w") as f:
        f.write("\n".join(out))


def main():
    if len(sys.argv) < 5:
        sys.exit(__doc__)
    program, matrix, path = sys.argv[1:4]
    with tempfile.TemporaryDirectory() as folder:
        draw(path, matrix, {name: measure(program, matrix, name, folder) for name in sys.argv[4:]})


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Tests spmv spy: compares the pixels of pictures and the characters of drawings in the terminal
with cells counted here.

test_spy.py PROGRAM SOURCE_DIR ON|OFF [unittest arguments]. ON: this build draws files, with cairo.
Python's standard library only.

SPDX-License-Identifier: BSD-3-Clause
"""

import base64
import ctypes
import fcntl
import itertools
import json
import os
import random
import re
import shutil
import struct
import subprocess
import sys
import termios
import unittest
import xml.etree.ElementTree
import zlib

import test_program
from test_program import limit_files, run

PICTURES = len(sys.argv) > 3 and sys.argv[3] == "ON"
try:  # The program loads the library at run time, so a build that was moved may not find it.
    ctypes.CDLL("libcairo.so.2")
    CAIRO = True
except OSError:
    CAIRO = False
UTF8 = {"LC_ALL": "C.UTF-8"}
ASCII = {"LC_ALL": "C"}
WHITE = (255, 255, 255)


def with_columns(environment, columns):
    return dict(environment, COLUMNS=str(columns))


def mtx(rows, cols, places):
    lines = ["%%MatrixMarket matrix coordinate pattern general", f"{rows} {cols} {len(places)}"]
    return "\n".join(lines + [f"{i + 1} {j + 1}" for i, j in places]) + "\n"


def scattered(rows, cols, count, seed):
    """`count` random positions, fewer to the right, so that densities differ."""
    rng = random.Random(seed)
    places = {(rng.randrange(rows), int(cols * rng.random() ** 2)) for _ in range(count)}
    return sorted(places)


def densities(rows, cols, places, block_rows, block_cols):
    """{(cell row, cell column): share of the cell's entries that are nonzero}."""
    count = {}
    for i, j in places:
        cell = (i // block_rows, j // block_cols)
        count[cell] = count.get(cell, 0) + 1
    height = lambda r: min(block_rows, rows - r * block_rows)
    width = lambda c: min(block_cols, cols - c * block_cols)
    return {(r, c): n / (height(r) * width(c)) for (r, c), n in count.items()}


def unfiltered(data, width, height, depth):
    """Undoes the filters of PNG (section 9.2): each row starts with the number of its filter."""
    rows, before = [], bytearray(width * depth)
    for y in range(height):
        start = y * (width * depth + 1)
        kind, row = data[start], bytearray(data[start + 1 : start + 1 + width * depth])
        if kind == 2:
            row = bytearray((x + b) & 255 for x, b in zip(row, before))
        elif kind == 1:
            for channel in range(depth):
                row[channel::depth] = bytes(x & 255 for x in itertools.accumulate(row[channel::depth]))
        elif kind > 2:
            for x in range(len(row)):
                a, b = row[x - depth] if x >= depth else 0, before[x]
                c = before[x - depth] if x >= depth else 0
                if kind == 4:
                    p = a + b - c
                    near = min((abs(p - a), 0, a), (abs(p - b), 1, b), (abs(p - c), 2, c))[2]
                    row[x] = (row[x] + near) & 255
                else:
                    row[x] = (row[x] + (a + b) // 2) & 255
        rows.append(row)
        before = row
    return rows


class Png:
    """An RGB image, or one with a palette, whose pixels become RGB; checks its checksums."""

    def __init__(self, data):
        assert data[:8] == b"\x89PNG\r\n\x1a\n"
        at, packed, self.kinds = 8, b"", []
        while at < len(data):
            size, kind = struct.unpack(">I4s", data[at : at + 8])
            body = data[at + 8 : at + 8 + size]
            assert struct.unpack(">I", data[at + 8 + size : at + 12 + size])[0] == zlib.crc32(kind + body)
            self.kinds.append(kind)
            if kind == b"IHDR":
                self.width, self.height, bits, colour, _, _, interlaced = struct.unpack(">IIBBBBB", body)
                assert (bits, interlaced) == (8, 0) and colour in (2, 3)
            if kind == b"PLTE":
                palette = [body[i : i + 3] for i in range(0, len(body), 3)]
            packed += body if kind == b"IDAT" else b""
            at += 12 + size
        assert self.kinds[-1] == b"IEND"
        self.rows = unfiltered(zlib.decompress(packed), self.width, self.height, 3 if colour == 2 else 1)
        if colour == 3:
            self.rows = [bytearray(b"".join(palette[index] for index in row)) for row in self.rows]

    def pixel(self, x, y):
        return tuple(self.rows[y][3 * x : 3 * x + 3])

    def frame(self):
        """The area in the frame: x, y, width, height. Its top and bottom are the longest grey
        lines."""
        runs = []
        for y, row in enumerate(self.rows):
            for match in re.finditer(rb"((?:\x80\x80\x80)+|(?:\x7f\x7f\x7f)+)", bytes(row)):
                if match.start() % 3 == 0:
                    runs.append((len(match.group()) // 3, y, match.start() // 3))
        longest = max(runs)[0]
        tops = [(y, x) for length, y, x in runs if length == longest]
        (top, x), (bottom, other) = tops[0], tops[-1]
        assert len(tops) == 2 and x == other and longest > 10
        return x + 1, top + 1, longest - 2, bottom - top - 1


def darkness(pixel):
    """255 minus the luminance 0.2126 R + 0.7152 G + 0.0722 B: the darkness of a print in grey."""
    return 255 - (0.2126 * pixel[0] + 0.7152 * pixel[1] + 0.0722 * pixel[2])


class Case(test_program.Case):
    def matrix(self, rows, cols, places, name="a.mtx"):
        return self.write(name, mtx(rows, cols, places))

    def bytes_of(self, name):
        with open(os.path.join(self.folder, name), "rb") as file:
            return file.read()

    def lines(self, *arguments, env, **more):
        done = self.ok("spy", *arguments, env=env, **more)
        self.assertEqual(done.stderr, "")
        return done.stdout.split("\n")


@unittest.skipUnless(PICTURES, "this build has no cairo")
@unittest.skipUnless(CAIRO, "this machine has no cairo")
class Pictures(Case):
    def draw(self, *arguments, name="a.png"):
        """The picture and "spy" of the JSON."""
        path = os.path.join(self.folder, name)
        done = self.ok("spy", *arguments, "-o", path, "--json")
        return self.bytes_of(name), json.loads(done.stdout)["spy"]

    def cells(self, *arguments):
        """The picture, "spy" of the JSON, and the pixel in the middle of each cell. Checks that
        each cell has one colour except for a grid."""
        data, spy = self.draw(*arguments)
        png = Png(data)
        self.assertEqual((png.width, png.height), (spy["picture"]["width"], spy["picture"]["height"]))
        left, top, width, height = png.frame()
        rows, cols = spy["rows"]["cells"], spy["cols"]["cells"]
        self.assertEqual((width % cols, height % rows), (0, 0))
        wide, tall = width // cols, height // rows
        middle = {}
        for r in range(rows):
            for c in range(cols):
                x, y = left + c * wide, top + r * tall
                middle[r, c] = png.pixel(x + wide // 2, y + tall // 2)
                corner = png.pixel(x + max(wide - 2, 0), y + max(tall - 2, 0))
                self.assertEqual((png.pixel(x, y), corner), (middle[r, c], middle[r, c]), (r, c))
        return png, spy, middle

    def check(self, rows, cols, places, size):
        """Empty cells are blank; among whole cells, darker means denser."""
        _, spy, middle = self.cells(self.matrix(rows, cols, places), "--size", str(size))
        block_rows, block_cols = spy["rows"]["block"], spy["cols"]["block"]
        expected = densities(rows, cols, places, block_rows, block_cols)
        self.assertEqual({cell for cell, pixel in middle.items() if pixel != WHITE}, set(expected))
        self.assertEqual(spy["filled"], len(expected))
        whole = {
            (r, c): d for (r, c), d in expected.items()
            if (r + 1) * block_rows <= rows and (c + 1) * block_cols <= cols
        }  # fmt: skip
        self.assertEqual(spy["density"], {"min": min(whole.values()), "max": max(whole.values())})
        shades = sorted((d, darkness(middle[cell])) for cell, d in whole.items())
        self.assertTrue(all(a[1] <= b[1] for a, b in zip(shades, shades[1:])), "a denser cell is lighter")
        self.assertGreater(shades[0][1], 70, "the thinnest cell is hardly seen")
        return spy, middle, shades

    def test_diagonal(self):
        spy, middle, _ = self.check(50, 50, [(i, i) for i in range(50)], 100)
        self.assertEqual((spy["rows"], spy["cols"]), ({"cells": 50, "block": 1}, {"cells": 50, "block": 1}))
        self.assertEqual(len({p for p in middle.values()}), 2)

    def test_arrow(self):
        png, spy, middle = self.cells(self.data("arrow200.mtx"), "--size", "200")
        self.assertEqual(png.frame()[2:], (200, 200))
        dark = {cell for cell, pixel in middle.items() if darkness(pixel) > 150}
        self.assertEqual(dark, {(r, c) for r in range(200) for c in range(200) if r == c or r == 0 or c == 0})
        self.assertEqual(set(middle.values()) - {middle[0, 0]}, {WHITE})
        self.assertEqual(spy["filled"], 598)

    def test_lower_triangle_in_blocks(self):
        places = [(i, j) for i in range(300) for j in range(i + 1)]
        spy, middle, shades = self.check(300, 300, places, 100)
        self.assertEqual(spy["rows"], {"cells": 100, "block": 3})
        self.assertEqual(spy["density"], {"min": 6 / 9, "max": 1})
        self.assertEqual(middle[0, 1], WHITE)
        self.assertGreater(darkness(middle[1, 0]), darkness(middle[1, 1]) + 50)
        self.assertEqual(len({d for _, d in shades}), 2)

    def test_small_matrix_has_a_grid(self):
        png, _, middle = self.cells(self.data("lecture3x3.mtx"), "--size", "96")
        dark = {cell for cell, pixel in middle.items() if pixel != WHITE}
        self.assertEqual(dark, {(0, 0), (0, 2), (2, 0), (2, 1)})
        left, top, width, height = png.frame()
        self.assertEqual((width, height), (36, 36))
        for k in range(36):
            for line in (11, 23):
                self.assertIn(png.pixel(left + line, top + k), [(209, 209, 209)], "no line of the grid")
                self.assertIn(png.pixel(left + k, top + line), [(209, 209, 209)], "no line of the grid")

    def test_every_cell_of_scattered_matrices(self):
        # With and without a smaller cell at the ends; one and several pixels for each cell; either
        # side longer.
        for rows, cols, count, size in [(230, 170, 2000, 64), (64, 64, 300, 64), (97, 300, 6000, 50), (40, 31, 200, 90)]:
            with self.subTest(rows=rows, cols=cols, size=size):
                spy, _, shades = self.check(rows, cols, scattered(rows, cols, count, seed=rows), size)
                block = -(-max(rows, cols) // size)
                self.assertEqual((spy["rows"]["block"], spy["cols"]["block"]), (block, block))
                if block > 1:
                    self.assertGreater(len({d for _, d in shades}), 5)

    def test_shades_are_logarithmic(self):
        # Four cells of 8 x 8 with 1, 4, 16 and 64 nonzeros: equal steps of the scale.
        places = [(q, 8 * k + r) for k, n in enumerate([1, 4, 16, 64]) for q in range(8) for r in range(8) if 8 * q + r < n]
        places += [(8 + i, 0) for i in range(120)]
        _, spy, middle = self.cells(self.matrix(128, 128, places), "--size", "16")
        self.assertEqual((spy["rows"]["block"], spy["density"]), (8, {"min": 1 / 64, "max": 1}))
        # The ramp between two shades: both ends and the two thirds in between, interpolated
        # linearly.
        blue = [(107, 166, 222), None, None, (5, 33, 92)]
        self.assertEqual([middle[0, 0], middle[0, 3]], [blue[0], blue[3]])
        half = (48, 122, 191)
        for cell, ends, part in [(1, (blue[0], half), 2 / 3), (2, (half, blue[3]), 1 / 3)]:
            for got, a, b in zip(middle[0, cell], *ends):
                self.assertAlmostEqual(got, a + part * (b - a), delta=2)

    def test_one_nonzero_in_a_huge_matrix(self):
        png, spy, middle = self.cells(self.matrix(10**6, 10**6, [(765432, 123456)]), "--size", "125")
        self.assertEqual(spy["rows"], {"cells": 125, "block": 8000})
        self.assertEqual([cell for cell, pixel in middle.items() if pixel != WHITE], [(95, 15)])
        left, top, _, _ = png.frame()
        self.assertGreater(darkness(png.pixel(left + 15, top + 95)), 150)

    def test_aspect_is_kept_or_bounded(self):
        for rows, cols, frame in [
            (200, 300, (100, 150)), (80, 640, (20, 160)), (100, 1000, (20, 143)), (100000, 100, (160, 20)), (1, 4000, (20, 160)),
        ]:  # fmt: skip
            with self.subTest(rows=rows, cols=cols):
                png, spy, middle = self.cells(self.matrix(rows, cols, [(0, 0), (rows - 1, cols - 1)]), "--size", "160")
                _, _, width, height = png.frame()
                self.assertEqual((height, width), frame)
                last = (spy["rows"]["cells"] - 1, spy["cols"]["cells"] - 1)
                self.assertEqual({cell for cell, pixel in middle.items() if pixel != WHITE}, {(0, 0), last})

    def test_without_nonzeros(self):
        for rows, cols in [(0, 0), (0, 5), (5, 0), (5, 7), (10**7, 10**7)]:
            with self.subTest(rows=rows, cols=cols):
                data, spy = self.draw(self.matrix(rows, cols, []), "--size", "100")
                self.assertEqual((spy["filled"], "density" in spy), (0, False))
                png = Png(data)
                left, top, width, height = png.frame()
                self.assertTrue(all(png.pixel(left + x, top + y) == WHITE for x in range(width) for y in range(height)))
                svg, _ = self.draw(self.matrix(rows, cols, []), "--size", "100", name="a.svg")
                self.assertTrue(xml.etree.ElementTree.fromstring(svg).tag.endswith("}svg"))

    def test_sizes(self):
        for size in [16, 100, 800]:
            png, _, _ = self.cells("poisson2d:5", "--size", str(size))
            self.assertEqual(png.frame()[2:], (25 * min(size // 25 or 1, size // 8),) * 2 if size >= 25 else (13, 13))
        standard, _ = self.draw("poisson2d:20")
        self.assertEqual(standard, self.draw("poisson2d:20", "--size", "800")[0])

    def test_svg(self):
        for matrix, embedded in [(self.data("lecture3x3.mtx"), 0), ("poisson2d:30", 1)]:
            with self.subTest(matrix):
                svg, spy = self.draw(matrix, "--size", "300", name="a.svg")
                png = Png(self.draw(matrix, "--size", "300")[0])
                root = xml.etree.ElementTree.fromstring(svg)
                self.assertEqual(root.tag, "{http://www.w3.org/2000/svg}svg")
                size = [float(re.sub("p[xt]$", "", root.get(key))) for key in ("width", "height")]
                self.assertEqual(size, [png.width, png.height])
                self.assertEqual(size, [spy["picture"]["width"], spy["picture"]["height"]])
                images = list(root.iter("{http://www.w3.org/2000/svg}image"))
                self.assertEqual(len(images), embedded)
                for image in images:
                    text = image.get("{http://www.w3.org/1999/xlink}href")
                    place = [int(image.get(key)) for key in ("x", "y", "width", "height")]
                    self.assertEqual(place, list(png.frame()))
                    image = Png(base64.b64decode(text.split("base64,")[1]))
                    x, y, width, height = place
                    rows, cols = spy["rows"]["cells"], spy["cols"]["cells"]
                    self.assertEqual((image.width, image.height), (cols, rows))  # a pixel for each cell
                    shown = [[png.pixel(x + c * width // cols, y + r * height // rows) for c in range(cols)] for r in range(rows)]
                    self.assertEqual([[image.pixel(c, r) for c in range(cols)] for r in range(rows)], shown)

    def test_svg_stays_small(self):
        svg, spy = self.draw("uniform:1800,1800,222", "--size", "4000", name="a.svg")
        self.assertEqual(spy["rows"], {"cells": 900, "block": 2})
        self.assertLess(len(svg), 2000000)

    def test_any_team_draws_the_same_bytes(self):
        for name in ["a.png", "a.svg"]:
            drawn = {self.draw("poisson2d:200", "--threads", t, name=name)[0] for t in ("1", "3", "4")}
            self.assertEqual(len(drawn), 1)

    def test_million_rows(self):
        data, spy = self.draw("poisson2d:1000")
        self.assertEqual(spy["rows"], {"cells": 800, "block": 1250})
        # The diagonals at 1000 extend into the next cell of 1250 rows.
        self.assertEqual(spy["filled"], 800 + 2 * 799)
        self.assertIn(b"IDAT", data)

    def test_files_specs_and_standard_input(self):
        path, out = self.matrix(9, 9, [(i, i) for i in range(9)], name="m.mtx"), os.path.join(self.folder, "b.png")
        expected, _ = self.draw(path)
        done = self.ok("spy", "-", "-o", out, stdin=mtx(9, 9, [(i, i) for i in range(9)]))
        self.assertEqual(done.stdout, "")
        self.assertRegex(done.stderr, r"^spmv: -: 9 x 9, 9 nonzeros; .*b\.png: \d+ x \d+ pixels, a cell: one entry\n$")
        frame = Png(expected).frame()
        self.assertEqual(Png(self.bytes_of("b.png")).frame(), frame)
        self.assertEqual(self.ok("spy", path, "-q", "-o", out).stderr, "")
        self.assertEqual(self.bytes_of("b.png"), expected)
        self.ok("spy", path, "-o", os.path.join(self.folder, "C.PNG"))
        self.assertEqual(self.bytes_of("C.PNG"), expected)

    def test_names_that_are_long_or_not_utf8(self):
        pattern = [(0, 0)]
        short = Png(self.draw(self.matrix(4, 4, pattern))[0])
        for name in [b"\xe9\xff.mtx", "ä".encode() * 120 + b".mtx", b"x" * 250 + b".mtx", "日本語".encode() + b".mtx"]:
            path = os.path.join(os.fsencode(self.folder), name)
            with open(path, "w", encoding="utf-8") as file:
                file.write(mtx(4, 4, pattern))
            png = Png(self.draw(os.fsdecode(path))[0])
            self.assertEqual((png.width, png.height), (short.width, short.height))
            # The end of the name is inside the picture.
            self.assertTrue(all(png.pixel(png.width - x, y) == WHITE for x in range(1, 8) for y in range(60)))

    def test_2_files(self):
        path = self.matrix(3, 3, [(0, 0)])
        # The first picture on a machine creates the font cache, which a limit on file sizes would
        # prevent.
        self.draw(path)
        os.remove(os.path.join(self.folder, "a.png"))
        out = os.path.join(self.folder, "none", "a.png")
        self.fails(2, "spy", path, "-o", out, says=[out, "No such file or directory"])
        for name in ["old.png", "old.svg"]:
            old = self.write(name, "old")
            self.fails(2, "spy", path, "-o", old, says=["cannot write", name], **limit_files(1024))
            self.fails(2, "spy", os.path.join(self.folder, "missing.mtx"), "-o", old, says="missing.mtx")
            self.fails(3, "spy", self.write("bad.mtx", "bad\n"), "-o", old, says="bad.mtx:1:")
            self.assertEqual(self.read(name), "old")
        self.assertEqual(sorted(os.listdir(self.folder)), ["a.mtx", "bad.mtx", "old.png", "old.svg"])
        self.ok("spy", path, "-o", old)
        self.assertIn("<svg", self.read("old.svg"))

    def test_4_cairo_is_gone(self):
        path, libraries = self.matrix(3, 3, [(0, 0)]), {"LD_LIBRARY_PATH": self.folder}
        self.write("libcairo.so.2", "not a library, and longer than the head of one would have to be\n" * 10)
        out = os.path.join(self.folder, "a.png")
        self.fails(4, "spy", path, "-o", out, env=libraries, says=["libcairo.so.2", "name an .svg", "libcairo2"])
        self.assertFalse(os.path.exists(out))
        self.ok("spy", path, env=libraries)


class WithoutCairo(Case):
    def svg(self, name):
        return xml.etree.ElementTree.fromstring(self.bytes_of(name))

    def test_svg_needs_no_cairo(self):
        """Both pictures, with a library in cairo's place that cannot be opened."""
        libraries = {"LD_LIBRARY_PATH": self.folder}
        self.write("libcairo.so.2", "not a library, and longer than the head of one would have to be\n" * 10)
        out, plot = (os.path.join(self.folder, name) for name in ("a.svg", "p.svg"))
        shutil.copy(self.data("lecture3x3.mtx"), os.path.join(self.folder, "a<&b.mtx"))
        self.ok("spy", "a<&b.mtx", "-o", out, env=libraries, cwd=self.folder)
        texts = [text.text for text in self.svg("a.svg").iter("{http://www.w3.org/2000/svg}text")]
        self.assertEqual(texts[-3:-1], ["a<&b", "3 x 3, 4 nonzeros"])
        self.assertTrue({"column", "row", "0", "1", "2"} <= set(texts))
        blue = [box for box in self.svg("a.svg").iter("{http://www.w3.org/2000/svg}rect") if box.get("fill") == "rgb(5,33,92)"]
        self.assertEqual(len(blue), 4)
        self.ok("solve", "poisson2d:9", "--precond", "all", "--plot", plot, "-o", os.devnull, env=libraries)
        root = self.svg("p.svg")
        lines = [line for line in root.iter("{http://www.w3.org/2000/svg}path") if line.get("stroke-width") == "1.75"]
        self.assertGreaterEqual(len({line.get("stroke") for line in lines}), 7)
        for line in lines:
            points = [tuple(map(float, point.split())) for point in re.split("[ML]", line.get("d"))[1:]]
            self.assertEqual(points, sorted(points))  # iterations ascend
        self.fails(4, "solve", "poisson2d:9", "--plot", "p.png", env=libraries, says=["cairo", "name an .svg"])

    @unittest.skipIf(PICTURES, "this build has cairo")
    def test_4_says_so(self):
        out = os.path.join(self.folder, "a.png")
        self.fails(4, "spy", self.data("lecture3x3.mtx"), "-o", out, says=["this build has no cairo", "name an .svg", "libcairo2-dev"])
        self.assertFalse(os.path.exists(out))


class Usage(Case):
    def test_1_usage(self):
        path = self.data("lecture3x3.mtx")
        for out in ["a.jpg", "a", "-", "png", ".png", "", "a.png.gz"]:
            self.fails(1, "spy", path, "-o", out, says=".png or .svg", cwd=self.folder)
        for size in ["0", "15", "-4", "many", "4097"]:
            self.fails(1, "spy", path, "-o", "a.png", "--size", size, says="--size", cwd=self.folder)
        self.fails(1, "spy", path, "--size", "100", says=["--size", "-o"])
        self.fails(1, "spy", says="argument is missing")
        self.fails(1, "spy", path, path, says="unexpected argument")
        self.fails(1, "matvec", path, "--size", "100", says="spmv bench, spmv explain and spmv spy accept it")
        self.fails(1, "spy", path, "--alpha", "2", says="--alpha")
        self.fails(1, "spy", "poisson2d:x", says="poisson2d")
        self.assertEqual(os.listdir(self.folder), [])

    def test_2_and_3(self):
        self.fails(2, "spy", os.path.join(self.folder, "missing.mtx"), says="missing.mtx")
        self.fails(3, "spy", "-", stdin="bad\n", says=":1:")

    def test_json(self):
        done = self.ok("spy", self.data("pattern5x8.mtx"), "--json")
        result = json.loads(done.stdout)
        self.assertEqual(result["schema"], "spmv/1")
        self.assertEqual(result["matrix"], {"name": "pattern5x8", "rows": 5, "cols": 8, "nnz": 9})
        self.assertEqual(result["load"]["source"], "mtx")
        one = {"min": 1, "max": 1}
        expected = {"rows": {"cells": 5, "block": 1}, "cols": {"cells": 8, "block": 1}, "filled": 9, "density": one}
        self.assertEqual(result["spy"], expected)
        coarse = json.loads(self.ok("spy", "poisson2d:10", "--json", "--size", "16").stdout)["spy"]
        self.assertEqual(coarse["rows"], {"cells": 15, "block": 7})
        path = os.path.join(self.folder, "a.json")
        done = self.ok("spy", self.data("pattern5x8.mtx"), f"--json={path}", env=UTF8)
        self.assertIn("■", done.stdout)
        self.assertEqual(json.loads(self.read("a.json"))["spy"], expected)


def braille(rows, cols, filled):
    """The lines of a drawing with the bits of U+2800: 1 2 4 40 down the left, 8 10 20 80 down the
    right."""
    bits = [[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]]
    lines = []
    for top in range(0, rows, 4):
        line = ""
        for left in range(0, cols, 2):
            dots = [bits[r][c] for r in range(4) for c in range(2) if (top + r, left + c) in filled]
            line += chr(0x2800 + sum(dots))
        lines.append(line)
    return lines


def framed(lines, sides="┌─┐│└┘"):
    width = len(lines[0]) if lines else 0
    top, bottom = sides[0] + width * sides[1] + sides[2], sides[4] + width * sides[1] + sides[5]
    return [top] + [sides[3] + line + sides[3] for line in lines] + [bottom]


PLAIN = "+-+|++"


class Terminal(Case):
    def test_lecture_example(self):
        path = self.data("lecture3x3.mtx")
        legend = ["lecture3x3: 3 x 3, 4 nonzeros"]
        drawing = ["┌───────┐", "│ ■ · ■ │", "│ · · · │", "│ ■ ■ · │", "└───────┘"]
        self.assertEqual(self.lines(path, env=UTF8), drawing + legend + ["■ a nonzero, · none", ""])
        drawing = ["+-------+", "| # . # |", "| . . . |", "| # # . |", "+-------+"]
        self.assertEqual(self.lines(path, env=ASCII), drawing + legend + ["# a nonzero, . none", ""])

    def test_braille(self):
        places = [(i, i) for i in range(100)] + [(99, 0)]
        lines = self.lines(self.matrix(100, 100, places), env=with_columns(UTF8, 27))
        # 100 columns need 25 characters of 2 dots.
        filled = {(i // 2, j // 2) for i, j in places}
        self.assertEqual(lines[:-3], framed(braille(50, 50, filled)))
        legend = ["a: 100 x 100, 101 nonzeros", "a dot: 2 x 2 entries, at least one of them nonzero", ""]
        self.assertEqual(lines[-3:], legend)

    def test_braille_of_scattered_matrices(self):
        for rows, cols, width, block in [(230, 170, 40, 4), (57, 57, 31, 1), (90, 500, 20, 14)]:
            places = scattered(rows, cols, rows * 4, seed=cols)
            lines = self.lines(self.matrix(rows, cols, places), env=with_columns(UTF8, width))
            filled = set(densities(rows, cols, places, block, block))
            drawing = framed(braille(-(-rows // block), -(-cols // block), filled))
            self.assertEqual(lines[:-3], drawing, (rows, cols, width))
            entries = "one entry" if block == 1 else f"{block} x {block} entries, at least one of them nonzero"
            self.assertEqual(lines[-2], f"a dot: {entries}")

    def test_shades_in_ascii(self):
        # Each character shows 2 x 1 entries of 28; the densities 1/2 and 1 are the ends of the
        # scale.
        places = [(i, j) for i in range(28) for j in range(i + 1)]
        lines = self.lines(self.matrix(28, 28, places), env=with_columns(ASCII, 30))
        drawing = ["@" * (2 * r + 1) + "." + " " * (28 - 2 * r - 2) for r in range(14)]
        self.assertEqual(lines[:-3], framed(drawing, PLAIN))
        self.assertEqual(lines[-2], "a character: 2 x 1 entries; .:-=+*#%@: densities from 0.5 to 1, log scale")
        lines = self.lines(self.matrix(10**6, 10**6, [(0, 0), (999999, 999999)]), env=ASCII)
        self.assertEqual((lines[1][:3], lines[-5][-3:]), ("|@ ", " @|"))
        self.assertRegex(lines[-2], r"^a character: 25642 x 12821 entries; ")

    def test_long_and_narrow(self):
        lines = self.lines(self.matrix(100000, 100, [(i, i // 1000) for i in range(0, 100000, 50)]), env=ASCII)
        # The width is an eighth of the length: a character is twice as tall as wide.
        self.assertEqual((len(lines) - 5, len(lines[0]) - 2), (39, 9))
        self.assertTrue(all(len(line) == 11 for line in lines[:-3]))
        lines = self.lines(self.matrix(1, 10**6, [(0, 999999)]), env=UTF8)
        self.assertEqual(lines[1], "│" + "⠀" * 77 + "⠈│")

    def test_without_nonzeros(self):
        self.assertEqual(self.lines("-", stdin=mtx(0, 0, []), env=UTF8), ["┌─┐", "└─┘", "-: 0 x 0, 0 nonzeros", ""])
        lines = self.lines("-", stdin=mtx(2, 1, []), env=ASCII)
        self.assertEqual(lines, ["+---+", "| . |", "| . |", "+---+", "-: 2 x 1, 0 nonzeros", ""])
        lines = self.lines("-", stdin=mtx(10**7, 10**7, []), env=with_columns(UTF8, 20))
        self.assertEqual(lines[:-2], framed(["⠀" * 18] * 9))

    def test_width_is_kept(self):
        for columns, inner in [("", 78), ("0", 78), ("x", 78), ("1", 14), ("50", 48), ("200", 198)]:
            for locale in (UTF8, ASCII):
                lines = self.lines("poisson2d:40", env=with_columns(locale, columns))
                self.assertLessEqual(len(lines[0]) - 2, inner)
                self.assertGreater(len(lines[0]) - 2, inner / 2)

    def test_locale_by_the_first_variable_that_is_set(self):
        for names, unicode in [
            (("C.UTF-8", "C", "C"), True), (("C", "C.UTF-8", "en_US.UTF-8"), False), (("", "de_DE.utf8", "C"), True),
            (("", "", "en_US.UTF-8"), True), (("", "", ""), False), (("", "de_DE@euro", "C.UTF-8"), False),
        ]:  # fmt: skip
            env = dict(zip(("LC_ALL", "LC_CTYPE", "LANG"), names))
            self.assertEqual("■" in "".join(self.lines(self.data("lecture3x3.mtx"), env=env)), unicode, names)

    def test_any_team_draws_the_same(self):
        for locale in (UTF8, ASCII):
            drawn = {tuple(self.lines("poisson2d:200", "--threads", t, env=locale)) for t in ("1", "4")}
            self.assertEqual(len(drawn), 1)

    def test_reader_of_pipe_gone_and_full_disk(self):
        reader, writer = os.pipe()
        os.close(reader)
        self.assertEqual(run("spy", "poisson2d:100", stdout=writer).returncode, 0)
        os.close(writer)
        with open("/dev/full", "w", encoding="utf-8") as full:
            self.assertEqual(run("spy", "poisson2d:100", stdout=full).returncode, 2)

    def on_terminal(self, *arguments, env, columns=60, lines=24):
        """The output on a terminal of the given size at standard output."""
        leader, terminal = os.openpty()
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        command = [test_program.PROGRAM, "spy", *arguments]
        with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=terminal, env=dict(os.environ, **env)) as process:
            os.close(terminal)
            text = test_program.read_terminal(leader)
        self.assertEqual(process.returncode, 0)
        return text.decode().replace("\r\n", "\n")

    def test_on_a_terminal(self):
        env = dict(UTF8, TERM="xterm", COLUMNS="30", NO_COLOR="")
        coloured = self.on_terminal("poisson2d:60", env=env)
        self.assertRegex(coloured, r"\x1b\[38;5;\d+m[⠁-⣿]")
        lines = re.sub(r"\x1b\[[0-9;]*m", "", coloured).split("\n")
        # The shorter side has 18 lines of 4 dots: 3600 / 72 rows for each dot.
        self.assertEqual((len(lines), len(lines[0])), (18 + 5, 18 * 2 + 2))
        self.assertTrue(all(line.endswith("\x1b[0m│") for line in coloured.split("\n")[1:-4]))
        self.assertRegex(lines[-2], r"^a dot: 50 x 50 entries, .*; ⣿{5}: densities from \S+ to \S+, log scale$")
        for change in [{"NO_COLOR": "1"}, {"TERM": "dumb"}, {"LC_ALL": "C"}]:
            plain = self.on_terminal("poisson2d:60", env=dict(env, **change))
            self.assertNotIn("\x1b", plain)
            self.assertEqual("⣀" <= max(plain) <= "⣿", "LC_ALL" not in change)
        narrow = self.on_terminal("poisson2d:60", env=dict(env, NO_COLOR="1"), columns=20).split("\n")
        self.assertLessEqual(len(narrow[0]), 20)  # COLUMNS is 30
        self.assertNotIn("\x1b", self.ok("spy", "poisson2d:60", env=env).stdout)


if __name__ == "__main__":
    test_program.main(own_arguments=1)

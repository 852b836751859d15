#!/usr/bin/env python3
"""Tests how the program loads and converts files: compressed, in archives, from standard input,
damaged and hostile.

test_loading.py PROGRAM SOURCE_DIR [unittest arguments]. Python's standard library only. Exit code
77 if the program was built without libarchive or cannot open it.

SPDX-License-Identifier: BSD-3-Clause
"""

import bz2
import gzip
import io
import json
import lzma
import os
import pty
import random
import subprocess
import sys
import tarfile
import tempfile
import time
import unittest

from test_program import is_sanitized

PROGRAM = SOURCE = ""
TEXT = "%%MatrixMarket matrix coordinate real general\n3 3 4\n1 1 2.5\n2 1 -1\n2 3 4e-3\n3 3 1\n"
ANSWER = "2.5\n-0.996\n1\n"
SKIPPED = 77


def run(*arguments, stdin=None, env=None, cwd=None):
    """Runs the program; standard output is bytes, standard error text."""
    done = subprocess.run([PROGRAM, *arguments], input=stdin, stdin=subprocess.DEVNULL if stdin is None else None,
                          capture_output=True, env=dict(os.environ, **(env or {})), cwd=cwd, timeout=120, check=False)
    done.stderr = done.stderr.decode(errors="replace")
    return done


def random_text(rows, cols, entries, seed):
    rng = random.Random(seed)
    lines = [f"{rng.randint(1, rows)} {rng.randint(1, cols)} {rng.uniform(-1, 1)!r}" for _ in range(entries)]
    return "%%MatrixMarket matrix coordinate real general\n" + f"{rows} {cols} {entries}\n" + "\n".join(lines) + "\n"


def tar(members, mode="w:gz", **how):
    """An archive of members (name, text) or (name, TarInfo attributes)."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode=mode, **how) as archive:
        for name, content in members:
            info = tarfile.TarInfo(name)
            if isinstance(content, dict):
                for key, value in content.items():
                    setattr(info, key, value)
                archive.addfile(info)
            else:
                info.size = len(content)
                archive.addfile(info, io.BytesIO(content.encode()))
    return packed.getvalue()


class LoadingTest(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.folder = self.scratch.name
        self.addCleanup(self.scratch.cleanup)

    def put(self, name, content):
        path = os.path.join(self.folder, name)
        with open(path, "wb") as f:
            f.write(content if isinstance(content, bytes) else content.encode())
        return path

    def get(self, name):
        with open(os.path.join(self.folder, name), "rb") as f:
            return f.read()

    def ok(self, *arguments, **more):
        done = run(*arguments, **more)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def fails(self, code, *arguments, says="", **more):
        done = run(*arguments, **more)
        self.assertEqual(done.returncode, code, done.stderr)
        for part in [says] if isinstance(says, str) else says:
            self.assertIn(part, done.stderr)
        self.assertEqual(done.stdout, b"")
        return done

    def load(self, *arguments, **more):
        return json.loads(self.ok("info", "--json", *arguments, **more).stdout)


class Packed(LoadingTest):
    def test_every_compression_from_files_and_standard_input(self):
        text = random_text(5000, 4000, 25000, seed=1)
        want = self.ok(self.put("plain.mtx", text)).stdout
        forms = {"gz": gzip.compress(text.encode()), "bz2": bz2.compress(text.encode()), "xz": lzma.compress(text.encode(), preset=0),
                 "tar.gz": tar([("a/", {"type": tarfile.DIRTYPE}), ("a/a.mtx", text)]),
                 "tar.xz": tar([("a/a.mtx", text)], "w:xz", preset=0), "tar": tar([("a/a.mtx", text)], "w")}
        for threads, (form, packed) in zip("131313", forms.items()):
            path = self.put("a." + ("mtx." + form if "tar" not in form else form), packed)
            self.assertEqual(self.ok(path, "--threads", threads).stdout, want, form)
            self.assertEqual(self.ok("-", stdin=packed).stdout, want, form)
            result = self.load(path)
            self.assertEqual(result["load"]["source"], form)
            self.assertEqual(result["load"]["bytes"], len(text))
            self.assertEqual(result["matrix"]["name"], "a")
        # The ending does not matter; several compressed texts form one text.
        two = gzip.compress(text[:70000].encode()) + gzip.compress(text[70000:].encode())
        self.assertEqual(self.ok(self.put("b.mtx", two)).stdout, want)

    def test_lines_count_through_every_tile(self):
        lines = random_text(900, 900, 80000, seed=2).split("\n")
        lines[70001] = "1 901 5"
        path = self.put("bad.mtx.gz", gzip.compress("\n".join(lines).encode(), compresslevel=1))
        for threads in "1", "4":
            self.fails(3, path, "--threads", threads, says="bad.mtx.gz:70002:3: column 901 exceeds the 900 columns declared on line 2")
        del lines[70001]
        self.fails(3, self.put("short.mtx.gz", gzip.compress("\n".join(lines).encode(), compresslevel=1)),
                   says="short.mtx.gz:80002:1: the file ends after 79999 of the 80000 entries")
        lines[1] = "900 900 50000"
        self.fails(3, self.put("long.mtx.gz", gzip.compress("\n".join(lines).encode(), compresslevel=1)),
                   says="long.mtx.gz:50003:1: more entries than the 50000 declared on line 2")

    def test_members(self):
        b = "%%MatrixMarket matrix array real general\n3 1\n1\n2\n3\n"
        path = self.put("three.tar.gz", tar([("three/three_b.mtx", b), ("three/three.mtx", TEXT), ("three/three_x.mtx", "1\n1\n1\n")]))
        self.assertEqual(self.ok(path).stdout.decode(), ANSWER)
        want = self.ok(path, self.put("b.txt", "1\n2\n3\n")).stdout
        for member in "_b", "three_b", "three_b.mtx", "three/three_b.mtx":
            self.assertEqual(self.ok(path, f"{path}:{member}").stdout, want, member)
        self.assertEqual(self.ok(f"{path}:three", f"{path}:_x").stdout.decode(), ANSWER)
        # An archive of another name: the folder in it identifies the matrix.
        self.assertEqual(self.ok(self.put("copy.tgz", self.get("three.tar.gz"))).stdout.decode(), ANSWER)
        # No name matches: the only matrix is used, although a stream cannot be read twice.
        only = self.put("only.tgz", tar([("readme", "text"), ("odd/name.mtx", TEXT)]))
        self.assertEqual(self.ok(only).stdout.decode(), ANSWER)
        self.fails(2, "-", stdin=self.get("only.tgz"), says="the archive has 1 matrix, such as odd/name.mtx")
        # No suitable member.
        self.fails(2, f"{path}:_c", says=["three.tar.gz", "the archive has no member _c"])
        two = self.put("two.tgz", tar([("x.mtx", TEXT), ("y.mtx", TEXT)]))
        self.fails(2, two, says="the archive has 2 matrices, such as x.mtx and y.mtx; give a name after a colon")
        self.assertEqual(self.ok(two + ":y").stdout.decode(), ANSWER)
        self.fails(2, self.put("none.tgz", tar([("readme", "text")])), says="no member whose name ends in .mtx")
        self.fails(2, self.put("plain.mtx", TEXT) + ":_b", says="not an archive")
        self.fails(2, self.put("one.mtx.gz", gzip.compress(TEXT.encode())) + ":_b", says="not an archive")
        self.fails(3, self.put("empty.mtx.gz", gzip.compress(b"")), says="empty.mtx.gz:1:1: the file is empty")

    def test_the_only_member_has_a_long_path(self):
        for folders in 1, 3, 40:
            member = "/".join(letter * 100 for letter in "abcd" * 10)[:101 * folders] + "some.mtx"
            for kind in tarfile.PAX_FORMAT, tarfile.GNU_FORMAT:
                packed = io.BytesIO()
                with tarfile.open(fileobj=packed, mode="w", format=kind) as archive:
                    info = tarfile.TarInfo(member)
                    info.size = len(TEXT)
                    archive.addfile(info, io.BytesIO(TEXT.encode()))
                path = self.put("long.tar", packed.getvalue())
                self.assertEqual(self.ok(path).stdout.decode(), ANSWER, (folders, kind))

    def test_hostile_members_stay_in_the_archive(self):
        outside = os.path.join(self.folder, "outside.mtx")
        hostile = tar([("../outside.mtx", "evil"), (outside, "evil"), ("a/a.mtx", {"type": tarfile.SYMTYPE, "linkname": "/etc/passwd"}),
                       ("a/a.mtx", {"type": tarfile.LNKTYPE, "linkname": "/etc/passwd"}),
                       ("a/a.mtx", {"type": tarfile.CHRTYPE, "devmajor": 1, "devminor": 5}),
                       ("a/\x1b[31m\n.mtx", "evil"), ("a/" + "n" * 3000 + ".mtx", "evil"), ("a/a.mtx", TEXT)])
        path = self.put("a.tar.gz", hostile)
        before = sorted(os.listdir(self.folder))
        self.assertEqual(self.ok(path, cwd=self.folder).stdout.decode(), ANSWER)
        self.assertEqual(sorted(os.listdir(self.folder)), before)
        self.assertFalse(os.path.exists(outside))
        shown = self.fails(2, self.put("b.tgz", tar([("\x1b[31m\n.mtx", "x"), ("y.mtx", "x")])), says="?[31m?.mtx")
        self.assertNotIn("\x1b", shown.stderr)

    def test_bombs(self):
        bomb = self.put("bomb.mtx.gz", gzip.compress(TEXT.encode() + b"%\n" * 10_000_000))
        self.fails(3, bomb, says="times as many")
        self.assertEqual(self.ok(bomb, env={"SPMV_MAX_UNPACKED_RATIO": "2000"}).stdout.decode(), ANSWER)
        for bad in ("abc", "-3", "0", "2x", "9" * 30):
            self.fails(1, bomb, env={"SPMV_MAX_UNPACKED_RATIO": bad}, says=f"SPMV_MAX_UNPACKED_RATIO is {bad}: must be")
        line = self.put("line.mtx.gz", gzip.compress(TEXT.encode() + b"%" * 20_000_000, 1))
        self.fails(3, line, env={"SPMV_MAX_UNPACKED_RATIO": "2000"}, says="line.mtx.gz:7:1: a line of more than 16777215 bytes")
        # Regular matrices give no such warning. More than 16 MiB, which every file may have.
        one = "1." + 32 * "0"
        regular = "%%MatrixMarket matrix coordinate real general\n150000 150000 450000\n" + "".join(
            f"{i} {j} {one}\n" for i in range(1, 150001) for j in (i, max(1, i - 1), min(150000, i + 1)))
        self.assertGreater(len(regular), 17 << 20)
        self.ok("info", self.put("regular.mtx.xz", lzma.compress(regular.encode(), preset=1)))

    def test_long_comments_take_little_memory(self):
        # 26 comments of 8 MiB each, together more than the limit, from a pipe and compressed.
        head, entries = TEXT.split("\n", 1)
        head, comment, entries = (part.encode() for part in (head + "\n", "%" + "x" * (8 << 20) + "\n", entries))
        text = head + comment * 26 + entries
        # portions, so that the comment is compressed once
        packed = self.put("long.mtx.gz", gzip.compress(head) + gzip.compress(comment) * 26 + gzip.compress(entries))
        limited = ["sh", "-c", 'ulimit -v 200000; exec "$@"', "sh", PROGRAM]
        if is_sanitized(PROGRAM):
            self.skipTest("a sanitizer's program needs more address space")
        for path, stdin in (("-", text), (packed, None)):
            done = subprocess.run(limited + ["-q", path, "--threads", "2"], input=stdin, capture_output=True, check=False,
                                  env=dict(os.environ, SPMV_MAX_UNPACKED_RATIO="2000"))
            self.assertEqual((done.returncode, done.stdout.decode()), (0, ANSWER), done.stderr)

    def test_damage_that_still_unpacks(self):
        text = random_text(500, 500, 9000, seed=8)
        stored = bytearray(gzip.compress(text.encode(), compresslevel=0))
        self.ok("info", self.put("a.mtx.gz", bytes(stored)))
        for at in (1000, 40000, 200000, len(stored) - 6):
            damaged = bytearray(stored)
            digit = next(k for k in range(at, len(stored)) if chr(stored[k]).isdigit() or k >= len(stored) - 8)
            damaged[digit] ^= 1
            self.assertNotEqual(damaged, stored)
            self.fails(3, self.put("b.mtx.gz", bytes(damaged)), says="the checksum of its text does not match")
        # Each compressed text has its own checksum, also the data after a member of an archive.
        texts = bytearray(gzip.compress(text[:5000].encode(), compresslevel=0) + gzip.compress(text[5000:].encode()))
        self.ok("info", self.put("c.mtx.gz", bytes(texts)))
        texts[next(k for k in range(4000, 5000) if chr(texts[k]).isdigit())] ^= 1
        self.fails(3, self.put("d.mtx.gz", bytes(texts)), says="the checksum of its text does not match")
        archive = bytearray(gzip.compress(gzip.decompress(tar([("e/e.mtx", text), ("e/e_b.mtx", text)])), compresslevel=0))
        self.ok("info", self.put("e.tar.gz", bytes(archive)))
        archive[next(k for k in range(3000, 4000) if chr(archive[k]).isdigit())] ^= 1
        self.fails(3, self.put("e.tar.gz", bytes(archive)), says="the checksum of its text does not match")

    def test_every_prefix_of_a_packed_file(self):
        text = random_text(40, 40, 100, seed=3)
        whole = self.ok(self.put("a.mtx", text)).stdout
        for form, packed in (("gz", gzip.compress(text.encode())), ("tar.gz", tar([("a/a.mtx", text)])), ("xz", lzma.compress(text.encode()))):
            for length in list(range(0, 24)) + list(range(24, len(packed), max(1, len(packed) // 20))) + [len(packed) - 1]:
                done = run(self.put("cut", packed[:length]))
                # An archive that lacks only its last bytes may be read.
                self.assertIn(done.returncode, (0, 2, 3), f"{form} {length}: {done.stderr}")
                if done.returncode == 0:
                    self.assertEqual(done.stdout, whole, f"{form} {length}")
                    self.assertGreater(length, len(packed) - 9 if form == "gz" else len(packed) // 2)
                else:
                    self.assertIn("cut", done.stderr)


class Progress(LoadingTest):
    def test_a_line_on_a_terminal(self):
        text = random_text(5000, 5000, 60000, seed=7).encode()
        leader, follower = pty.openpty()
        spmv = subprocess.Popen([PROGRAM, "info", "-", "--json"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=follower)
        os.close(follower)
        for part in range(8):
            spmv.stdin.write(text[part * len(text) // 8:(part + 1) * len(text) // 8])
            spmv.stdin.flush()
            time.sleep(0.2)
        spmv.stdin.close()
        shown = b""
        try:
            while chunk := os.read(leader, 4096):
                shown += chunk
        except OSError:
            pass
        self.assertEqual(json.load(spmv.stdout)["load"]["bytes"], len(text))
        spmv.stdout.close()
        self.assertEqual(spmv.wait(), 0)
        os.close(leader)
        self.assertRegex(shown.decode(), r"reading standard input: [0-9.]+ [kM]B, [0-9.]+ [kM]B/s")


class Measured(LoadingTest):
    def test_time_and_memory(self):
        # the limit of the peak holds for every matrix and team: each once
        for spec, name, threads in (("uniform:40000,40000,14", "a.mtx", 1), ("powerlaw:90000,9,2.1,50000", "b.mtx", 3)):
            path = os.path.join(self.folder, name)
            self.ok("gen", spec, "-o", path)
            with self.subTest(threads=threads):
                lines = self.ok("bench", "--op", "load", path, "--threads", str(threads), "--json").stdout.splitlines()
                self.assertEqual(len(lines), 1)
                result = json.loads(lines[0])["result"]
                self.assertEqual((result["op"], result["threads"], result["file_bytes"]), ("load", threads, os.path.getsize(path)))
                self.assertEqual(result["text_bytes"], os.path.getsize(path))
                self.assertGreaterEqual(result["seconds"]["repeats"], 5)
                self.assertTrue(0 < result["seconds"]["min"] <= result["seconds"]["median"] <= result["seconds"]["max"])
                # The peak is at most the file plus 1.6 times the matrix.
                if "peak_bytes" in result:
                    self.assertLess(result["peak_bytes"], result["file_bytes"] + 1.6 * result["matrix_bytes"])
        path = self.put("c.mtx", TEXT)
        table = self.ok("bench", "--op", "load", path).stdout.decode().splitlines()
        self.assertIn(path, [line.split()[0] for line in table])

    def test_refused(self):
        path = self.put("a.mtx", TEXT)
        self.fails(1, "bench", "--op", "load", says="--op load needs files")
        self.fails(1, "bench", "--op", "load", path, "--csv", says="JSON")
        self.fails(2, "bench", "--op", "load", "-", says="must be readable repeatedly")
        self.fails(2, "bench", "--op", "load", path + ".none", says="a.mtx.none: cannot open: No such file")
        self.fails(2, "bench", "--op", "load", self.folder, says="must be readable repeatedly")
        self.fails(3, "bench", "--op", "load", self.put("bad.mtx", "1 1 1\n"), says="bad.mtx:1:1: bad banner")


class Converted(LoadingTest):
    def test_there_and_back(self):
        text = random_text(3000, 2500, 40000, seed=4)
        a = self.put("a.mtx", text)
        want = self.ok(a).stdout
        self.ok("convert", a, os.path.join(self.folder, "b.spmv"))
        for source, target in (("b.spmv", "c.mtx.gz"), ("c.mtx.gz", "d.mtx"), ("d.mtx", "e.spmv"), ("e.spmv", "f.mtx")):
            self.ok("convert", os.path.join(self.folder, source), os.path.join(self.folder, target))
            self.assertEqual(self.ok(os.path.join(self.folder, target)).stdout, want, target)
        self.assertEqual(self.get("d.mtx"), self.get("f.mtx"))
        self.assertEqual(self.get("b.spmv"), self.get("e.spmv"))
        self.assertEqual(gzip.decompress(self.get("c.mtx.gz")), self.get("d.mtx"))
        self.assertEqual(self.ok("convert", a, "-").stdout, self.get("d.mtx"))
        self.assertEqual(self.load(os.path.join(self.folder, "b.spmv"))["load"]["source"], "binary")
        self.assertEqual(self.load(os.path.join(self.folder, "b.spmv"))["matrix"]["name"], "b")

    def test_files_of_other_programs(self):
        for n, text in enumerate((random_text(300, 250, 4000, seed=4),
                                  "%%MatrixMarket matrix coordinate complex hermitian\n3 3 3\n1 1 2 0\n3 1 1 -0.1\n2 2 0 0\n",
                                  "%%MatrixMarket matrix coordinate real skew-symmetric\n3 3 1\n3 1 1e-310\n",
                                  "%%MatrixMarket matrix coordinate pattern general\n2 3 2\n1 3\n2 1\n",
                                  "%%MatrixMarket matrix coordinate real general\n5 0 0\n",
                                  "%%MatrixMarket matrix coordinate real general\n0 4 0\n")):
            a, want = self.put("a.mtx", text), os.path.join(self.folder, "want.npz")
            self.ok("convert", a, want)
            for ending in "rb", "hb.gz", "npz", "mat", "petsc":
                b, c = (os.path.join(self.folder, name) for name in ("b." + ending, "c.npz"))
                self.ok("convert", a, b)
                self.ok("convert", b, c)
                if n != 3 or ending != "petsc":  # which has no patterns
                    self.assertEqual(self.get("c.npz"), self.get("want.npz"), (n, ending))
        self.assertEqual(self.load(os.path.join(self.folder, "b.petsc"))["load"]["source"], "petsc")
        a = self.put("a.mtx", random_text(30, 25, 100, seed=4))
        want = self.ok(a).stdout
        for ending in "npz", "npy", "mat", "petsc":  # y, and as x of the transpose
            y = os.path.join(self.folder, "y." + ending)
            self.ok(a, "-o", y)
            self.assertEqual(self.ok(a, y, "--transpose").stdout,
                             self.ok(a, self.put("y.txt", want), "--transpose").stdout)
        self.fails(1, a, "-o", os.path.join(self.folder, "y.rb"), says="cannot hold vectors")
        self.fails(1, "gen", "poisson2d:3", "-o", os.path.join(self.folder, "y.npy"), says="cannot hold a matrix")

    def test_types_patterns_and_sizes(self):
        for name, text in (("pattern", "%%MatrixMarket matrix coordinate pattern symmetric\n4 4 2\n2 1\n4 4\n"),
                           ("none", "%%MatrixMarket matrix coordinate real general\n0 0 0\n"),
                           ("rows", "%%MatrixMarket matrix coordinate real general\n5 0 0\n"),
                           ("tenths", "%%MatrixMarket matrix coordinate real general\n1 2 2\n1 1 0.1\n1 2 1e-300\n")):
            a, b = self.put(name + ".mtx", text), os.path.join(self.folder, name + ".spmv")
            for kind in "f64", "f32":
                self.ok("convert", a, b, "--type", kind)
                self.assertEqual(self.ok("convert", b, "-", "--type", kind).stdout,
                                 self.ok("convert", a, "-", "--type", kind).stdout, name)
        # f64 in the file, f32 requested: rounded once.
        self.ok("convert", a, b)
        self.assertEqual(self.ok("convert", b, "-", "--type", "f32").stdout.split(b"\n")[2:4], [b"1 1 0.1", b"1 2 0"])

    def test_too_large_for_f32(self):
        a = self.put("a.mtx", "%%MatrixMarket matrix coordinate real general\n1 2 2\n1 1 1\n1 2 1e300\n")
        b = os.path.join(self.folder, "b.spmv")
        self.ok("convert", a, b)
        self.fails(3, b, "--type", "f32", says="b.spmv: entry 2, 1e+300, is too large for f32")
        self.fails(3, a, "--type", "f32", says="too large for f32")

    def test_refused(self):
        a = self.put("a.mtx", TEXT)
        self.fails(1, "convert", a, os.path.join(self.folder, "a.txt"), says="selects the form: .mtx .spmv .rb .hb .petsc .npz .mat")
        self.fails(1, "convert", a)
        self.fails(1, "convert", a, "-", "--json", says="standard output")
        self.fails(2, "convert", a, os.path.join(self.folder, "no", "b.spmv"), says="b.spmv")
        self.fails(2, "convert", os.path.join(self.folder, "no.mtx"), os.path.join(self.folder, "b.spmv"), says="no.mtx")
        self.assertEqual(os.listdir(self.folder), ["a.mtx"])

    def test_a_full_disk_keeps_the_old_file(self):
        a = self.put("a.mtx", random_text(3000, 2500, 40000, seed=5))
        for name in "old.mtx", "old.mtx.gz", "old.spmv":
            old = self.put(name, b"old")
            # The limit on file sizes simulates a full disk.
            done = subprocess.run(["sh", "-c", f'trap "" XFSZ; ulimit -f 40; exec "$@"', "sh", PROGRAM, "convert", a, old],
                                  capture_output=True, check=False)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertEqual(self.get(name), b"old")
        self.assertEqual(sorted(os.listdir(self.folder)), ["a.mtx", "old.mtx", "old.mtx.gz", "old.spmv"])

    def test_every_byte_of_the_binary_form_matters(self):
        self.ok("convert", self.put("a.mtx", TEXT), os.path.join(self.folder, "a.spmv"))
        whole = self.get("a.spmv")
        # Magic, version, head, arrays; the gaps between the arrays are unused.
        used = set(range(128)) | set(range(128, 128 + 32)) | set(range(192, 192 + 16)) | set(range(256, 256 + 32))
        self.assertEqual(len(whole), 288)
        # of the gaps, the first and the last byte
        for at in sorted(used | {160, 191, 208, 255}):
            path = self.put("b.spmv", whole[:at] + bytes([whole[at] ^ 0x41]) + whole[at + 1:])
            code = run(path).returncode
            self.assertEqual(code in (3, 4), at in used, f"byte {at}: exit {code}")
        borders = {0, 1, 127, 128, 129, 160, 191, 192, 208, 255, 256, 287}
        for length in sorted(borders | set(range(0, len(whole), 7))):
            self.fails(3, self.put("b.spmv", whole[:length]), says="b.spmv")
        self.fails(3, self.put("b.spmv", whole + b"x"), says="expected 288 bytes, found 289")

    def test_right_sums_of_wrong_arrays(self):
        def mix(total, word):
            mixed = ((total ^ word) * 0x9E3779B97F4A7C15) % 2**64
            return (mixed << 29 | mixed >> 35) % 2**64

        def tile(data):
            lanes = [0, 0, 0, 0]
            for k, at in enumerate(range(0, len(data), 8)):
                lanes[k % 4] = mix(lanes[k % 4], int.from_bytes(data[at:at + 8], "little"))
            total = 0
            for word in lanes + [len(data)]:
                total = mix(total, word)
            return total

        def form(row_ptr, col, val, rows=3, cols=3, nnz=4):
            """A file of the binary form (docs/binary-form.md)."""
            words = lambda values, size: b"".join(int(v).to_bytes(size, "little", signed=v < 0) for v in values)
            import struct
            arrays = [words(row_ptr, 8), words(col, 4), struct.pack(f"<{len(val)}d", *val)]
            at, places, body = 128, [], b""
            for array in arrays:
                body += bytes(-(128 + len(body)) % 64)
                places.append(128 + len(body))
                body += array
            sums = [mix(0, tile(array)) if array else 0 for array in arrays]
            head = b"\x89SPMV\r\n\x1a" + words([1, 128, 4, 64], 4) + words([rows, cols, nnz, *places, 128 + len(body), *sums, 0, 0], 8)
            return head + words([mix(0, tile(head))], 8) + body

        good = dict(row_ptr=[0, 1, 3, 4], col=[0, 0, 2, 2], val=[2.5, -1, 4e-3, 1])
        self.ok("convert", self.put("a.mtx", TEXT), os.path.join(self.folder, "a.spmv"))
        self.assertEqual(form(**good), self.get("a.spmv"))
        wrong = {"row_ptr[0] is 1": {"row_ptr": [1, 1, 3, 4]}, "ends before it starts": {"row_ptr": [0, 3, 1, 4]},
                 "outside the 3 columns": {"col": [0, 0, 3, 2]}, "columns must ascend": {"col": [0, 2, 2, 2]},
                 "column 0 is outside the 3 columns": {"col": [0, -1, 2, 2]}, "b.spmv": {"row_ptr": [0, 1, 3, 2**40]},
                 "sizes are impossible": {"nnz": 2**62}, "outside of the file": {"rows": 2**40}, "sizes": {"cols": 2**31}}
        for says, change in wrong.items():
            self.fails(3, self.put("b.spmv", form(**dict(good, **change))), says=says)


class Cached(LoadingTest):
    def setUp(self):
        super().setUp()
        self.cache = os.path.join(self.folder, "deep", "cache")
        self.env = {"SPMV_CACHE": self.cache}

    def source(self, path, **more):
        return self.load(path, env=self.env, **more)["load"]["source"]

    def test_kept_and_found(self):
        a = self.put("a.mtx", random_text(300, 300, 4000, seed=6))
        want = self.ok(a).stdout
        self.assertEqual(self.source(a), "mtx")
        self.assertEqual(len(os.listdir(self.cache)), 1)
        self.assertEqual(self.source(a), "cache")
        self.assertEqual(self.ok(a, env=self.env).stdout, want)
        # Another type is cached in addition.
        self.assertEqual(self.ok(a, "--type", "f32", env=self.env).stdout, self.ok(a, "--type", "f32").stdout)
        self.assertEqual(len(os.listdir(self.cache)), 2)
        # Other contents of the same size and time; another time.
        text = self.get("a.mtx").replace(b"0.1", b"0.2")
        times = os.stat(a)
        self.put("a.mtx", text)
        os.utime(a, ns=(times.st_atime_ns, times.st_mtime_ns))
        self.assertEqual(self.source(a), "mtx")
        self.assertEqual(self.ok(a, env=self.env).stdout, self.ok(a).stdout)
        os.utime(a, (1, 1))
        self.assertEqual(self.source(a), "mtx")
        self.assertEqual(len(os.listdir(self.cache)), 2)
        # A compressed file is cached too.
        b = self.put("b.mtx.gz", gzip.compress(text))
        self.assertEqual([self.source(b), self.source(b)], ["gz", "cache"])

    def test_an_archive_under_two_names(self):
        one = "%%MatrixMarket matrix coordinate real general\n1 1 1\n1 1 {}\n"
        a = self.put("a.tar", tar([("a.mtx", one.format(1)), ("b.mtx", one.format(2))], "w"))
        b = os.path.join(self.folder, "b.tar")
        os.symlink(a, b)
        # The given name selects the matrix, whatever file it leads to.
        for source in "tar", "cache":
            for path, value in (a, b"1"), (b, b"2"):
                self.assertEqual(self.source(path), source)
                self.assertEqual(self.ok("convert", path, "-", env=self.env).stdout.split()[-1], value)

    def test_info_says_the_same_of_a_kept_matrix(self):
        text = "%%MatrixMarket matrix coordinate integer symmetric\n3 3 4\n1 2 9007199254740993\n2 1 1\n1 1 3\n3 3 1\n"
        for path in self.put("a.mtx", text), self.put("b.mtx.gz", gzip.compress(text.encode())):
            said = []
            for source in os.path.basename(path).split(".")[-1], "cache":
                done = self.ok("info", "--json", path, env=self.env)
                told = json.loads(done.stdout)
                self.assertEqual(told["load"]["source"], source)
                self.assertEqual(told["load"]["bytes"], len(text))
                self.assertEqual(told["info"]["duplicates"], 1)
                said.append((told["info"], done.stderr.replace(path, "")))
            self.assertEqual(said[0], said[1])
            self.assertIn("rounded", said[1][1])
            self.assertIn("the values were added", said[1][1])

    def test_damaged_and_impossible_caches(self):
        a = self.put("a.mtx", TEXT)
        self.assertEqual(self.source(a), "mtx")
        kept = os.path.join(self.cache, os.listdir(self.cache)[0])
        with open(kept, "r+b") as f:
            f.seek(260)
            f.write(b"\xff")
        self.assertEqual(self.source(a), "mtx")
        self.assertEqual(self.source(a), "cache")
        blocked = self.put("file", b"")
        done = self.ok(a, env={"SPMV_CACHE": os.path.join(blocked, "cache")})
        self.assertEqual(done.stdout.decode(), ANSWER)
        self.assertIn("cannot create the cache", done.stderr)

    def test_where_it_is(self):
        a = self.put("a.mtx", TEXT)
        home = os.path.join(self.folder, "home")
        places = {os.path.join(home, ".cache", "spmv"): {"HOME": home, "XDG_CACHE_HOME": "", "SPMV_CACHE": "1"},
                  os.path.join(self.folder, "xdg", "spmv"): {"HOME": home, "XDG_CACHE_HOME": os.path.join(self.folder, "xdg"), "SPMV_CACHE": "1"}}
        for place, env in places.items():
            self.ok(a, env=env)
            self.assertEqual(len(os.listdir(place)), 1, place)
        self.ok(a, "--cache", env={"HOME": os.path.join(self.folder, "other"), "XDG_CACHE_HOME": "", "SPMV_CACHE": ""})
        self.assertEqual(len(os.listdir(os.path.join(self.folder, "other", ".cache", "spmv"))), 1)
        for asked in "", "0":
            self.ok(a, env={"HOME": os.path.join(self.folder, "nobody"), "SPMV_CACHE": asked})
        self.assertFalse(os.path.exists(os.path.join(self.folder, "nobody")))
        # Standard input has no name, so it is not cached.
        self.assertEqual(self.ok("-", stdin=TEXT.encode(), env=self.env).stdout.decode(), ANSWER)
        self.assertFalse(os.path.exists(self.cache))


def main():
    global PROGRAM, SOURCE
    PROGRAM, SOURCE = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    for name in "SPMV_CACHE", "SPMV_MAX_UNPACKED_RATIO":
        os.environ.pop(name, None)
    trial = run("info", "-", stdin=gzip.compress(TEXT.encode()))
    if trial.returncode == 4 and "libarchive" in trial.stderr:
        print("skipped:", trial.stderr)
        sys.exit(SKIPPED)
    unittest.main(argv=[sys.argv[0]] + sys.argv[3:])


if __name__ == "__main__":
    main()

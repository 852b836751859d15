#!/usr/bin/env python3
"""Tests the limits of memory, threads and unpacking: hostile sizes give an error message.

test_limits.py PROGRAM SOURCE_DIR [unittest arguments]. Python's standard library only.

SPDX-License-Identifier: BSD-3-Clause
"""

import gzip
import json
import lzma
import os
import resource
import signal
import struct
import subprocess
import sys
import tempfile
import unittest

import test_program
from test_program import Case, is_aarch64, is_sanitized, run

TEXT = "%%MatrixMarket matrix coordinate real general\n3 3 4\n1 1 2.5\n2 1 -1\n2 3 4e-3\n3 3 1\n"
ANSWER = "2.5\n-0.996\n1\n"
ROWS = "%%MatrixMarket matrix coordinate real general\n2147483647 3 1\n1 1 2\n"
COLUMNS = "%%MatrixMarket matrix coordinate real general\n3 2147483647 1\n1 1 2\n"
GIGA = 1 << 30

BANNER = "%%MatrixMarket matrix "
COORDINATE = BANNER + "coordinate real general\n"
SYMMETRIC = BANNER + "coordinate real symmetric\n"
PATTERN = BANNER + "coordinate pattern general\n"
COMPLEX = BANNER + "coordinate complex hermitian\n"
ARRAY = BANNER + "array real general\n"
MOST = 2**31 - 1

# Name and text of files that claim more data than they have, all below 100 bytes.
HOSTILE = [
    ("rows", f"{COORDINATE}{MOST} 3 1\n1 1 2\n"),
    ("columns", f"{COORDINATE}3 {MOST} 1\n1 1 2\n"),
    ("both", f"{COORDINATE}{MOST} {MOST} 1\n1 1 2\n"),
    ("symmetric", f"{SYMMETRIC}{MOST} {MOST} 1\n1 1 2\n"),
    ("pattern", f"{PATTERN}{MOST} 1 1\n1 1\n"),
    ("hermitian", f"{COMPLEX}{MOST} {MOST} 1\n1 1 2 0\n"),
    ("no entries", f"{COORDINATE}{MOST} {MOST} 0\n"),
    ("rows beyond 32 bits", f"{COORDINATE}{2**40} 3 1\n1 1 2\n"),
    ("rows beyond 64 bits", f"{COORDINATE}{2**70} 3 1\n1 1 2\n"),
    ("columns beyond 32 bits", f"{COORDINATE}3 {2**31} 1\n1 1 2\n"),
    ("entries", f"{COORDINATE}1000 1000 999999\n1 1 2\n"),
    ("entries of 2^40", f"{COORDINATE}{MOST} {MOST} {2**40}\n1 1 2\n"),
    ("entries of 2^62", f"{COORDINATE}{MOST} {MOST} {2**62}\n1 1 2\n"),
    ("entries beyond the cells", f"{COORDINATE}3 3 {2**33}\n1 1 2\n"),
    ("symmetric entries", f"{SYMMETRIC}{2**30} {2**30} {2**40}\n1 1 2\n"),
    ("array rows", f"{ARRAY}{MOST} 1\n1\n"),
    ("array columns", f"{ARRAY}1 {MOST}\n1\n"),
    ("array cells", f"{ARRAY}{2**30} {2**30}\n1\n"),
    ("array cells beyond 64 bits", f"{ARRAY}{2**62} {2**30}\n1\n"),
    ("array without cells", f"{ARRAY}{MOST} 0\n"),
]


def peak_of(command):
    """Exit code, the last line of standard error, ru_maxrss in bytes."""
    with tempfile.TemporaryFile() as err:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=err)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        err.seek(0)
        lines = err.read().decode(errors="replace").splitlines()
        return process.returncode, lines[-1] if lines else "", 1024 * usage.ru_maxrss


def space(size):
    """Arguments for run() that limit the address space of the program."""
    return {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_AS, (size, size))}


def needs_plain_program(test):
    """Skips the test in a sanitizer build."""
    if is_sanitized(test_program.PROGRAM):
        test.skipTest("a sanitizer's program needs more address space")


class LimitsCase(Case):
    def refused(self, code, *arguments, says=(), **more):
        done = run(*arguments, **more)
        self.assertEqual(done.returncode, code, (arguments, done.stderr))
        for text in says:
            self.assertIn(text, done.stderr)
        return done

    def answer(self, *arguments, **more):
        done = run(*arguments, **more)
        self.assertEqual(done.returncode, 0, (arguments, done.stderr))
        return done.stdout


class Memory(LimitsCase):
    def test_the_whole_job_is_added_up(self):
        rows, columns = self.write("rows.mtx", ROWS), self.write("columns.mtx", COLUMNS)
        out = os.path.join(self.folder, "out.mtx")
        needed = {}
        for command in ("info", "matvec", "solve", "spy", "explain"):
            done = self.refused(5, command, rows, "--max-memory", "1G", says=["rows.mtx:2:1:", "2147483647 x 3", "--max-memory SIZE"])
            needed[command] = int(done.stderr.split("the whole job needs ")[1].split(" MB")[0])
        self.refused(5, "convert", rows, out, "--max-memory", "1G", says=["the whole job needs"])
        # bench: test_bench_command.py, whose program does not measure a bandwidth for seconds first
        # Row offsets take 17 GB, vectors 17 GB each.
        self.assertGreater(needed["info"], 17_000)
        self.assertGreater(needed["matvec"], needed["info"] + 2 * 17_000)
        self.assertGreater(needed["solve"], needed["matvec"] + 4 * 17_000)
        self.refused(5, columns, "--max-memory", "1G", says=["3 x 2147483647"])
        self.refused(5, "info", columns, "--max-memory", "1G", says=["3 x 2147483647"])
        self.assertFalse(os.path.exists(out))

    def test_generated_matrices(self):
        for spec in ("poisson2d:40000", "uniform:2000000000,3,1", "rmat:27,16", "twin:rows=100000000,nnz=900000000",
                     "diagonal:2000000000", "fem:100000000,3,23"):
            self.refused(5, "info", spec, "--max-memory", "1G", says=[spec, "--max-memory SIZE"])
        self.refused(5, "gen", "poisson2d:40000", "--max-memory", "1G", says=["poisson2d:40000"])

    def test_limits_of_the_system(self):
        needs_plain_program(self)
        rows = self.write("rows.mtx", ROWS)
        for command in ("info", "matvec", "solve"):
            self.refused(5, command, rows, **space(8 * GIGA), says=["the limit of the address space, ulimit -v"])
        # The option overrides the limit, so the allocation itself fails.
        done = self.refused(5, "info", rows, "--max-memory", "off", **space(8 * GIGA))
        self.assertNotIn("the whole job", done.stderr)

    def test_sizes_of_the_option(self):
        self.answer("poisson2d:10", "-q", "--max-memory", "off")
        for size in ("900000000", "900000K", "900m", "0.9G", "1T"):
            self.answer("poisson2d:10", "-q", "--max-memory", size)
        for size in ("", "0", "-1", "x", "1x", "1GB", "nan", "inf", "1e30"):
            self.refused(1, "poisson2d:10", "--max-memory", size, says=["must be a size such as 4000000, 512M or 1.5G, or off"])

    def estimate(self, *arguments):
        load = json.loads(self.answer(*arguments, "--json", "-q"))["load"]
        return load["memory_estimate"], load["memory_peak"]

    def test_binary_and_cached_matrices(self):
        needs_plain_program(self)
        matrix = os.path.join(self.folder, "A.spmv")
        self.answer("convert", "uniform:400000,400000,2", matrix)
        cache = {"SPMV_CACHE": os.path.join(self.folder, "cache")}
        text = self.write("A.mtx", f"%%MatrixMarket matrix coordinate pattern general\n400000 400000 1\n1 1\n")
        self.answer("info", text, env=cache)
        for path in (matrix, text):
            estimate, _ = self.estimate(path)
            self.answer(path, "-q", "--max-memory", str(2 * estimate), env=cache)
            self.refused(5, path, "-q", "--max-memory", str(estimate // 4), env=cache, says=["--max-memory"])

    def test_the_estimate_is_near_the_peak(self):
        needs_plain_program(self)
        file, packed = os.path.join(self.folder, "A.mtx"), os.path.join(self.folder, "A.mtx.gz")
        self.answer("gen", "uniform:100000,100000,8", "-o", file)
        with open(file, "rb") as text, gzip.open(packed, "wb", 1) as to:
            to.write(text.read())
        for i, a in enumerate((file, packed, "poisson2d:400", "uniform:200000,200000,8", "uniform:1000,300000,500",
                               "longrows:1,2000000,1000000", "diagonal:300000", "rmat:15,8")):
            for command in (["info"], ["matvec"]) if i < 2 else (["info"],) if i % 2 else (["matvec"],):
                estimate, peak = self.estimate(*command, a, "--threads", "2")
                self.assertTrue(0.6 < estimate / peak < 1.5, (command, a, estimate, peak))
        for a in ("poisson2d:400", "poisson3d:40"):
            estimate, peak = self.solved(a)
            self.assertTrue(0.6 < estimate / peak < 1.5, (a, estimate, peak))

    def solved(self, a):
        done = run("solve", a, "--max-iterations", "5", "--threads", "2", "--json", "-q")
        load = json.loads(done.stdout)["load"]
        return load["memory_estimate"], load["memory_peak"]

    def test_hostile_headers(self):
        for name, text in HOSTILE:
            path = self.write("A.mtx", text)
            for command in ["info"], ["matvec"], ["solve", "--max-iterations", "20"]:
                code, last, peak = peak_of([test_program.PROGRAM, *command, path, "-q", "--max-memory", "1G"])
                self.assertIn(code, (3, 5), (name, command, last))
                self.assertLess(peak, 500_000_000, (name, command))


class Threads(LimitsCase):
    def test_an_upper_bound(self):
        for many in ("100000", "1025", "99999999999999999999"):
            self.refused(1, "--threads", many, "poisson2d:3", says=["too large, must be at most 1024"])
        done = run("--threads", "1024", "-q", "poisson2d:3")
        self.assertIn(done.returncode, (0, 5), done.stderr)
        if done.returncode == 5:
            self.assertIn("use fewer", done.stderr)

    def test_threads_that_do_not_fit(self):
        needs_plain_program(self)
        done = self.refused(5, "--threads", "1000", "-q", "poisson2d:300", **space(3 * GIGA), says=["1000 threads: the system allows only", "use fewer"])
        self.assertNotIn("libgomp", done.stderr)
        # The number of threads in the message does run.
        most = int(done.stderr.split("allows only ")[1].split()[0]) // 2
        self.answer("--threads", str(most), "-q", "poisson2d:300", **space(3 * GIGA))

    def test_small_stacks(self):
        # There a stack has at least 128 KiB, so libgomp itself leaves smaller ones out.
        refused = not is_aarch64(test_program.PROGRAM)
        for name, size in (("OMP_STACKSIZE", "32k"), ("OMP_STACKSIZE", "32768B"), ("OMP_STACKSIZE", " 32 "), ("GOMP_STACKSIZE", "100")):
            if not refused:
                self.answer("matvec", "poisson2d:200", "-q", "--threads", "4", env={name: size})
                continue
            self.refused(1, "solve", "poisson2d:200", "--threads", "4", env={name: size}, says=[f"({name}), at least 131072 are needed"])
        for size in ("1M", " 1024 k ", "200", "not a size"):
            self.answer("matvec", "poisson2d:200", "-q", "--threads", "4", env={"OMP_STACKSIZE": size})
        self.answer("poisson2d:200", "-q", "--threads", "1", env={"OMP_STACKSIZE": "32k"})

    def test_the_affinity_mask(self):
        one = min(os.sched_getaffinity(0))
        threads = lambda **more: json.loads(self.answer("poisson2d:3", "--json", "-q", **more))["machine"]["cpu"]["threads"]
        self.assertEqual(threads(preexec_fn=lambda: os.sched_setaffinity(0, {one})), 1)
        self.assertEqual(threads(env={"OMP_NUM_THREADS": "3"}), 3)

    def environment(self, *options, env=None):
        """The name and the environment of the running program while it waits for a FIFO."""
        fifo = os.path.join(self.folder, "fifo.mtx")
        if not os.path.exists(fifo):
            os.mkfifo(fifo)
        given = {k: v for k, v in os.environ.items() if k not in ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT")}
        process = subprocess.Popen([test_program.PROGRAM, *options, "-q", fifo], env={**given, **(env or {})}, stdout=subprocess.PIPE)
        # open() waits until the program has opened the FIFO for reading.
        with open(fifo, "w", encoding="ascii") as to:
            with open(f"/proc/{process.pid}/environ", "rb") as file:
                found = dict(entry.split(b"=", 1) for entry in file.read().split(b"\0") if b"=" in entry)
            with open(f"/proc/{process.pid}/comm", encoding="utf-8") as file:
                name = file.read().strip()
            to.write(TEXT)
        self.assertEqual(process.communicate()[0].decode(), ANSWER)
        self.assertEqual(name, os.path.basename(test_program.PROGRAM)[:15])
        return found.get(b"GOMP_SPINCOUNT")

    def test_spinning_is_bounded(self):
        if len(os.sched_getaffinity(0)) == 1:
            self.skipTest("one processor: no thread waits for another")
        self.assertEqual(self.environment(), b"3000")
        self.assertEqual(self.environment("--threads", "2"), b"3000")
        self.assertEqual(self.environment(env={"GOMP_SPINCOUNT": "7"}), b"7")
        self.assertIsNone(self.environment(env={"OMP_WAIT_POLICY": "passive"}))
        self.assertIsNone(self.environment("--threads", "1"))

    def test_places_are_kept(self):
        """The first thread is bound before main; the program that executes itself must not be left with its place."""
        processors = len(os.sched_getaffinity(0))
        if processors == 1:
            self.skipTest("one processor is one place")
        given = {k: v for k, v in os.environ.items() if k not in ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "OMP_NUM_THREADS")}
        for places in ({"OMP_PLACES": "threads"}, {"OMP_PROC_BIND": "true"}, {"OMP_PLACES": "cores", "OMP_PROC_BIND": "spread"}):
            done = subprocess.run([test_program.PROGRAM, "poisson2d:3", "--json", "-q"], env={**given, **places}, capture_output=True, check=True)
            self.assertEqual(json.loads(done.stdout)["machine"]["cpu"]["threads"], processors, places)


class Unpacking(LimitsCase):
    @staticmethod
    def zstd(text):
        """A frame with one raw block (RFC 8878, section 3.1.1)."""
        return b"\x28\xb5\x2f\xfd\x20" + bytes([len(text)]) + struct.pack("<I", 1 | len(text) << 3)[:3] + text

    def put(self, name, content):
        path = os.path.join(self.folder, name)
        with open(path, "wb") as file:
            file.write(content)
        return path

    def setUp(self):
        super().setUp()
        trial = run("info", self.put("trial.mtx.xz", lzma.compress(TEXT.encode())))
        if trial.returncode == 4 and "libarchive" in trial.stderr:
            self.skipTest("no libarchive")

    def test_what_inner_compressions_unpack_counts(self):
        text, zeros = TEXT.encode(), bytes(40 << 20)
        # A skippable frame after the text.
        skipped = self.zstd(text) + struct.pack("<II", 0x184D2A50, len(zeros)) + zeros
        padded = lzma.compress(text) + zeros  # padding of a stream
        for name, inner in (("skipped", skipped), ("padded", padded)):
            path = self.put(name + ".mtx", lzma.compress(inner, preset=0))
            self.assertLess(os.path.getsize(path), 10_000)
            self.refused(3, path, "-q", says=["in an inner compression: more than the limit of 300 times as many"])

    def test_stacked_compressions_are_read(self):
        text = TEXT.encode()
        for packed in (lzma.compress(lzma.compress(text)), lzma.compress(self.zstd(self.zstd(text))), self.zstd(gzip.compress(self.zstd(text))),
                       struct.pack("<III", 0x184D2A50, 4, 77) + self.zstd(text)):
            self.assertEqual(self.answer(self.put("A.mtx", packed), "-q"), ANSWER)


if __name__ == "__main__":
    test_program.PROGRAM, test_program.SOURCE = map(os.path.abspath, sys.argv[1:3])
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]], verbosity=1)

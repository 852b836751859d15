#!/usr/bin/env python3
"""Tests the files that the program writes: no input is replaced, no good file is lost, no
unfinished file stays, and the name of a file selects its form.

test_outputs.py PROGRAM SOURCE_DIR [unittest arguments]. Python's standard library only.

SPDX-License-Identifier: BSD-3-Clause
"""

import bz2
import gzip
import json
import lzma
import os
import re
import resource
import signal
import stat
import subprocess
import time
import unittest

import test_program
from test_program import run

SYMMETRIC = "%%MatrixMarket matrix coordinate real symmetric\n% by hand\n3 3 4\n1 1 2.5\n2 1 -1e-300\n3 2 0\n3 3 4\n"
ENDINGS = [".mtx", ".mtx.gz", ".mtx.xz", ".mtx.zst", ".mtx.bz2"]
Y = [2.5, -1e-300, 4.0]


def has_archive(folder):
    return run("gen", "diagonal:2", "-o", os.path.join(folder, "probe.gz"), "-q").returncode == 0


class Case(test_program.Case):
    def path(self, name):
        return os.path.join(self.folder, name)

    def files(self):
        return sorted(os.listdir(self.folder))

    def start(self, *arguments, **more):
        more.setdefault("stdin", subprocess.DEVNULL)
        return subprocess.Popen([test_program.PROGRAM, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, **more)

    def wait_for(self, process, found):
        """Waits until found() is true; fails if the process ends first."""
        until = time.monotonic() + 100
        while not found():
            if process.poll() is not None:
                self.fail(f"ended before: {process.stderr.read()}")
            self.assertLess(time.monotonic(), until)
            time.sleep(0.001)


class Inputs(Case):
    """An output that is also an input is rejected before any work."""

    def setUp(self):
        super().setUp()
        self.a = self.write("a.mtx", SYMMETRIC)
        self.x = self.write("x.txt", "1\n1\n1\n")
        os.symlink("a.mtx", self.path("link.mtx"))
        os.link(self.a, self.path("hard.mtx"))

    def refused(self, *arguments, **more):
        before = {name: self.read(name) for name in self.files()}
        self.fails(1, *arguments, says="is an input", **more)
        self.assertEqual({name: self.read(name) for name in self.files()}, before)

    def test_every_name_of_the_matrix(self):
        for name in "a.mtx", "link.mtx", "hard.mtx", "../" + os.path.basename(self.folder) + "/a.mtx":
            self.refused("matvec", self.a, "-o", self.path(name))
            self.refused("solve", self.a, "-o", self.path(name))
            self.refused("convert", self.path(name), self.a)
            self.refused("convert", self.a, self.path(name))

    def test_every_input_and_every_output(self):
        a, x = self.a, self.x
        self.refused("matvec", a, x, "-o", x)
        self.refused("matvec", a, "--y0", x, "--beta", "1", "-o", x)
        self.refused("matvec", a, x, f"--json={x}")
        self.refused(a, x, f"--json={a}")
        self.refused("solve", a, x, "-o", x)
        self.refused("solve", a, "--x0", x, "--history", x)
        self.refused("solve", a, "--plot", a)
        for command in "info", "spy", "explain":
            self.refused(command, a, f"--json={a}")
        self.refused("bench", a, "--peers", "none", f"--csv={a}")
        self.refused("bench", "poisson2d:3", a, "--peers", "none", f"--json={a}")
        self.refused("bench", "--op", "load", a, f"--json={a}")
        self.refused("convert", a, self.path("b.mtx"), f"--json={a}")

    def test_every_option_that_reads_and_every_option_that_writes(self):
        """The pairs come from the help, so that a new option is covered. FILE, B and P are names of files."""
        files = {}  # command: names of options with a file
        for command in test_program.COMMANDS:
            text = self.ok(command, "--help").stdout
            named = re.findall(r"(?m)^  (?:-\w, |    )--([a-z0-9-]+)(?: |\[=)(?:FILE|B|P)\b", text)
            files[command] = named
        written = {"output", "history", "plot", "json", "csv"}
        self.assertEqual(set(sum(files.values(), [])) - written, {"x0", "y0", "near-null", "null", "coordinates", "right", "project", "fields", "schur"})
        for command in "matvec", "solve", "bench", "spgemm", "convert", "spy", "info", "explain":
            for option in files[command]:
                if option in written:
                    self.refused(command, self.a, *["poisson2d:3"] * (command == "spgemm"), f"--{option}={self.a}")
                    continue
                for output in written & set(files[command]):
                    self.refused(command, "poisson2d:3", f"--{option}={self.x}", f"--{output}={self.x}")

    def test_standard_input_once(self):
        for words in (["-", "--near-null", "-"], ["-", "--x0", "-"], ["poisson2d:3", "-", "--near-null", "-"]):
            self.fails(1, "solve", *words, says="read once only")
        self.fails(1, "bench", "-", "--op", "spgemm", "--right", "-", says="read once only")

    def test_standard_streams(self):
        with open(self.a, encoding="utf-8") as stdin:
            done = subprocess.run([test_program.PROGRAM, "matvec", "-", "-o", self.a], stdin=stdin, capture_output=True, check=False)
        self.assertEqual((done.returncode, self.read("a.mtx")), (1, SYMMETRIC))
        with open(self.a, "a", encoding="utf-8") as stdout:
            self.fails(1, self.a, stdout=stdout, says="standard output is an input")
        self.assertEqual(self.read("a.mtx"), SYMMETRIC)

    def test_others_are_not(self):
        # gen reads no file, a SPEC is not a file, and a device may be input and output.
        self.write("poisson2d:2", "old\n")
        self.ok("gen", "poisson2d:2", "-o", "poisson2d:2", cwd=self.folder)
        self.ok("matvec", self.a, "-o", self.path("y.txt"), f"--json={os.devnull}")
        self.ok("matvec", self.a, self.x, "-o", os.devnull)


class Kept(Case):
    """An existing file is only replaced by a complete one."""

    def test_bench_that_measured_nothing(self):
        for name in "r.json", "r.csv":
            self.write(name, "good\n")
        two = [f"--json={self.path('r.json')}", f"--csv={self.path('r.csv')}"]
        self.fails(2, "bench", "no1.mtx", "no2.mtx", "--peers", "none", *two, says=["no1.mtx", "no2.mtx"])
        self.assertEqual((self.read("r.json"), self.read("r.csv")), ("good\n", "good\n"))
        done = run("bench", "poisson2d:3", "--peers", "none", two[0], "--csv=/dev/full")
        self.assertEqual(done.returncode, 2)
        self.assertIn("/dev/full: cannot write: No space left", done.stderr)
        self.assertEqual(self.read("r.json"), "good\n")
        self.assertEqual(self.files(), ["r.csv", "r.json"])

    def test_file_size_limit(self):
        """The shell sets the limit, so SIGXFSZ has its default action, as for a user."""
        a = self.write("a.mtx", test_program.Matrix.random(500, 500, 20000, seed=3).text())
        cache = self.path("cache")
        text = "\n".join(["old"] * 3)
        jobs = [["convert", a, self.path("b.mtx")], ["convert", a, self.path("b.spmv")],
                ["gen", "poisson2d:40", "-o", self.path("g.mtx")], ["matvec", a, "-o", self.path("y.mtx"), "--format", "%.90f"],
                ["solve", "poisson2d:40", "--history", self.path("h.csv"), "-o", os.devnull],
                ["solve", "poisson2d:2", "--json=" + self.path("r.json")]]  # fmt: skip
        # Blocks of 512 bytes. With less than two, LLVM's OpenMP fails before main() begins.
        for blocks, job in [(8, jobs[0]), (8, jobs[1]), (8, jobs[2]), (8, jobs[3]), (2, jobs[4]), (2, jobs[5])]:
            target = next(word for word in reversed(job) if self.folder in word).split("=")[-1]
            name = os.path.basename(target)
            self.write(name, text)
            done = subprocess.run(["sh", "-c", f'ulimit -f {blocks}; exec "$@"', "sh", test_program.PROGRAM, *job],
                                  stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)  # fmt: skip
            self.assertEqual(done.returncode, 2, (job, done.stderr))
            self.assertIn("File too large", done.stderr)
            self.assertEqual(self.read(name), text)
            os.unlink(target)
            self.assertEqual(self.files(), ["a.mtx"])
        # A cache that cannot be written is a warning.
        done = subprocess.run(["sh", "-c", 'ulimit -f 8; exec "$@"', "sh", test_program.PROGRAM, "info", a],
                              env=dict(os.environ, SPMV_CACHE=cache), capture_output=True, text=True, check=False)  # fmt: skip
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("not kept in the cache", done.stderr)
        self.assertEqual(os.listdir(cache), [])

    def test_left_over_parts_do_not_matter(self):
        """A process with the same number (possible in containers) has left its temporary file."""
        script = 'touch "$0.$$.tmp" "$0.$$.0.part"; exec "$@"'
        for option in "--json=", "--history=":
            out = self.path("out")
            subprocess.run(["sh", "-c", script, out, test_program.PROGRAM, "solve", "poisson2d:3", "-q", option + out],
                           stdout=subprocess.DEVNULL, check=True)  # fmt: skip
            self.assertGreater(os.path.getsize(out), 20)

    def test_left_over_parts_of_the_cache_go(self):
        a, cache = self.write("a.mtx", SYMMETRIC), self.path("cache")
        os.mkdir(cache)
        for name in "spmv-00112233445566ff.part", "0123-1-2-3-f64.spmv.77.0.part":
            with open(os.path.join(cache, name), "w", encoding="ascii"):
                pass
        self.ok("info", a, env={"SPMV_CACHE": cache})
        self.assertEqual([os.path.splitext(name)[1] for name in os.listdir(cache)], [".spmv"])

    def test_names_of_255_bytes(self):
        a = self.write("a.mtx", SYMMETRIC)
        long = lambda ending: self.path("n" * (255 - len(ending)) + ending)
        jobs = [["solve", a, "--json=" + long(".json")], ["solve", a, "--history", long(".csv")],
                ["matvec", a, "-o", long(".txt")], ["convert", a, long(".mtx")], ["gen", "poisson2d:3", "-o", long(".spmv")],
                ["bench", "poisson2d:3", "--peers", "none", "--csv=" + long(".csv")]]  # fmt: skip
        for job, ending in (["spy", a, "-o"], ".svg"), (["solve", a, "-o", os.devnull, "--plot"], ".png"):
            if run(*job, self.path("probe" + ending)).returncode == 0:  # a .png needs cairo
                os.unlink(self.path("probe" + ending))
                jobs.append([*job, long(ending)])
        for job in jobs:
            for _ in range(2):  # new, and over the old file
                self.ok(*job, "-q")
                (name,) = [n for n in self.files() if n != "a.mtx"]
                self.assertEqual(len(name), 255)
                self.assertGreater(os.path.getsize(self.path(name)), 0)
            os.unlink(self.path(name))

    def test_set_id_bits_owner_and_group(self):
        for name, job in ("y.txt", ["matvec", "poisson2d:3", "-o"]), ("r.json", ["matvec", "poisson2d:3", "--json"]):
            path = self.write(name, "old\n")
            if os.geteuid() == 0:
                os.chown(path, 1234, 2345)
            os.chmod(path, 0o6755)
            self.ok(*job[:-1], f"{'--output' if job[-1] == '-o' else '--json'}={path}")
            self.assertNotEqual(self.read(name), "old\n")
            s = os.stat(path)
            self.assertEqual(stat.S_IMODE(s.st_mode), 0o755)
            if os.geteuid() == 0:
                self.assertEqual((s.st_uid, s.st_gid), (1234, 2345))


class Signals(Case):
    def parts(self, folder):
        return [name for name in os.listdir(folder) if name.endswith((".part", ".tmp"))]

    def test_two_signals_at_once(self):
        """timeout signals the process and its group; a user may press Ctrl-C twice."""
        out = self.path("out")
        os.mkdir(out)
        source = self.path("a.spmv")
        self.ok("gen", "poisson2d:700", "-o", source)
        jobs = [["convert", source, os.path.join(out, "a.mtx")],
                ["bench", "poisson2d:300", "poisson2d:301", "poisson2d:302", "--peers", "none", "--json=" + os.path.join(out, "r.json"),
                 "--csv=" + os.path.join(out, "r.csv")]]  # fmt: skip
        for job in jobs:
            for pair in (signal.SIGTERM, signal.SIGTERM), (signal.SIGINT, signal.SIGTERM), (signal.SIGINT, signal.SIGINT):
                process = self.start(*job)
                with process:
                    self.wait_for(process, lambda: self.parts(out))
                    for number in pair:
                        process.send_signal(number)
                    _, errors = process.communicate(timeout=100)
                self.assertIn(process.returncode, (10, -pair[0], -pair[1]), errors)
                self.assertEqual(self.parts(out), [])
                for name in os.listdir(out):  # existing files are complete
                    with open(os.path.join(out, name), encoding="ascii") as file:
                        self.assertTrue(file.read().endswith("\n"), name)

    def test_any_signal_that_ends_the_program(self):
        source, out = self.path("a.spmv"), self.path("out")
        os.mkdir(out)
        self.ok("gen", "poisson2d:700", "-o", source)
        for number in signal.SIGUSR1, signal.SIGALRM, signal.SIGXCPU, signal.SIGQUIT, signal.SIGABRT:
            process = self.start("convert", source, os.path.join(out, "a.mtx"),
                                 preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CORE, (0, 0)))  # fmt: skip
            with process:
                self.wait_for(process, lambda: self.parts(out))
                process.send_signal(number)
                process.communicate(timeout=100)
            self.assertEqual((process.returncode, os.listdir(out)), (-number, []))

    def ends_by_one(self, expected, *job, **more):
        """Sends one SIGINT once the program sleeps in read() or open()."""
        process = self.start(*job, **more)

        def waits():
            with open(f"/proc/{process.pid}/stat", encoding="ascii") as file:
                state = file.read().rsplit(")", 1)[1].split()[0]
            with open(f"/proc/{process.pid}/syscall", encoding="ascii") as file:
                call = file.read().split()[0]
            return state == "S" and call in ("0", "2", "257")  # read, open, openat of x86-64

        with process:
            self.wait_for(process, waits)
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=100)
        self.assertEqual(process.returncode, expected, errors)
        return errors.decode()

    @unittest.skipUnless(os.uname().machine == "x86_64" and os.access("/proc/self/syscall", os.R_OK), "no /proc to see it wait")
    def test_one_ctrl_c_while_it_waits_for_input(self):
        fifo, cache = self.path("fifo"), self.path("cache")
        os.mkfifo(fifo)
        for env in os.environ, dict(os.environ, SPMV_CACHE=cache):
            self.ends_by_one(-signal.SIGINT, "matvec", fifo, "-o", self.path("y.txt"), env=env)
            self.ends_by_one(-signal.SIGINT, "info", "-", stdin=subprocess.PIPE, env=env)
            self.ends_by_one(-signal.SIGINT, "convert", fifo, self.path("b.mtx"), env=env)
            # bench ends regularly, with the results so far.
            bench = ["bench", "poisson2d:5", fifo, "--peers", "none", "--json=" + self.path("r.json")]
            self.assertIn("the results so far are kept", self.ends_by_one(10, *bench, env=env))
            self.assertEqual(json.loads(self.read("r.json"))["matrix"]["name"], "poisson2d:5")
            os.unlink(self.path("r.json"))
        self.assertEqual([name for name in self.files() if name not in ("fifo", "cache")], [])


class Forms(Case):
    def unpacked(self, name):
        with open(self.path(name), "rb") as file:
            packed = file.read()
        ending = os.path.splitext(name)[1]
        if ending == ".zst":
            return None
        return {".gz": gzip.decompress, ".xz": lzma.decompress, ".bz2": bz2.decompress}.get(ending, bytes)(packed).decode()

    def test_vectors(self):
        a = self.write("a.mtx", SYMMETRIC)
        plain = "".join(f"{v:g}\n" for v in Y)
        mtx = "%%MatrixMarket matrix array real general\n3 1\n" + plain
        packings = ["", ".gz", ".xz", ".zst", ".bz2"] if has_archive(self.folder) else [""]
        answer = self.ok(a, self.vector("y", Y)).stdout
        for stem, text in ("y.txt", plain), ("y", plain), ("y.mtx", mtx), ("Y.MTX", mtx):
            for packing in packings:
                self.ok("matvec", a, "-o", self.path(stem + packing))
                self.assertIn(self.unpacked(stem + packing), (text, None))
                self.assertEqual(self.ok(a, self.path(stem + packing)).stdout, answer)
        self.ok("solve", "poisson2d:2", "-o", self.path("s.mtx"))
        self.assertTrue(self.read("s.mtx").startswith("%%MatrixMarket matrix array real general\n4 1\n"))
        # Several right-hand sides are columns.
        self.ok("matvec", "diagonal:2,values=constant", self.write("k.txt", "1 2 3\n4 5 6\n"), "-o", self.path("k.mtx"))
        self.assertEqual(self.read("k.mtx").split("\n", 1)[1], "2 3\n1\n4\n2\n5\n3\n6\n")

    def test_generated(self):
        text = self.ok("gen", "poisson2d:9").stdout
        for name in ["p", "p.mtx"] + (["p.gz", "p.xz", "p.zst", "p.mtx.bz2"] if has_archive(self.folder) else []):
            self.ok("gen", "poisson2d:9", "-o", self.path(name))
            self.assertIn(self.unpacked(name), (text, None))
            self.assertEqual(self.ok("convert", self.path(name), "-").stdout, text)

    def test_refused_before_any_work(self):
        for name in "y.zip", "y.tar.gz", "y.tgz", "y.lz4", "y.spmv.xz", "y.gz.bz2":
            for job in ["matvec", "nowhere.mtx"], ["solve", "nowhere.mtx"], ["gen", "nothing:3"]:
                self.fails(1, *job, "-o", self.path(name), says=name)
            self.fails(1, "convert", "nowhere.mtx", self.path(name), says=name)
        self.fails(1, "matvec", "nowhere.mtx", "-o", self.path("y.mtx"), "--format", "%g;", says="can contain only numbers")
        self.assertEqual(self.files(), [])

    def test_convert_keeps_symmetry_and_comments(self):
        texts = {
            "real": SYMMETRIC,
            "skew": "%%MatrixMarket matrix coordinate real skew-symmetric\n%\n%% two\n3 3 2\n2 1 0.1\n3 1 -4\n",
            "hermitian": "%%MatrixMarket matrix coordinate complex hermitian\n2 2 2\n1 1 3 0\n2 1 1 -0.5\n",
            "pattern": "%%MatrixMarket matrix coordinate pattern symmetric\n% p\n4 4 2\n2 1\n4 4\n",
            "general": "%%MatrixMarket matrix coordinate real general\n% g\n2 3 2\n1 3 -0\n2 1 7\n",
        }
        cache, archive = {"SPMV_CACHE": self.path("cache")}, has_archive(self.folder)
        for name, text in texts.items():
            a, binary = self.write(f"{name}.mtx", text), self.path("b.spmv")
            for ending in ENDINGS if archive else ENDINGS[:1]:
                packed, again = self.path("c" + ending), self.path("d.mtx")
                self.ok("convert", a, packed)
                self.assertIn(self.unpacked("c" + ending), (text, None))
                self.ok("convert", packed, binary)
                self.ok("convert", binary, again)
                self.assertEqual(self.read("d.mtx"), text)
            for _ in range(2):
                self.assertEqual(self.ok("convert", a, "-", env=cache).stdout, text)

    def test_convert_says_when_symmetry_cannot_stay(self):
        """The imaginary parts of real skew-symmetric values are 0, but mirrored entries of a
        complex file would have -0."""
        a = self.write("a.mtx", "%%MatrixMarket matrix coordinate real skew-symmetric\n2 2 1\n2 1 3\n")
        done = self.ok("convert", a, "-", "--type", "c128")
        self.assertEqual(done.stdout, "%%MatrixMarket matrix coordinate complex general\n2 2 2\n1 2 -3 0\n2 1 3 0\n")
        self.assertIn("written as a general matrix", done.stderr)

    def test_the_same_bytes_every_time(self):
        """Compressed files contain no time stamp and do not depend on the number of threads."""
        if not has_archive(self.folder):
            self.skipTest("no libarchive")
        names = ["p.mtx.gz", "p.mtx.xz", "p.mtx.zst", "p.mtx.bz2"]
        for name in names:
            contents = []
            for threads in "1", "3":
                self.ok("gen", "poisson2d:120", "-o", self.path(name), "--threads", threads)
                with open(self.path(name), "rb") as file:
                    contents.append(file.read())
            self.assertEqual(*contents)
        with open(self.path("p.mtx.gz"), "rb") as file:
            self.assertEqual(file.read(8)[4:], b"\0\0\0\0")  # RFC 1952: the time stamp is 0


if __name__ == "__main__":
    test_program.main()

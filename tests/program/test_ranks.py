#!/usr/bin/env python3
"""Tests spmv matvec and spmv solve on several ranks: --ranks N, and mpirun with each MPI whose
module was built.

test_ranks.py PROGRAM SOURCE_DIR MPIS [unittest arguments]. MPIS: the modules, such as
"openmpi,mpich", or "none". Python's standard library only.

SPDX-License-Identifier: BSD-3-Clause
"""

import bz2
import gzip
import json
import lzma
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
import unittest

PROGRAM = SOURCE = None
MPIS = []


def environment():
    """mpirun of Open MPI as root in a container, with more ranks than cores, not bound to busy cores."""
    return dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
                OMPI_MCA_rmaps_base_oversubscribe="1", OMPI_MCA_plm_rsh_agent="", OMPI_MCA_hwloc_base_binding_policy="none",
                OMPI_MCA_pml="ob1")  # it takes a fifth of a second to look for others


def run(*arguments, mpi=None, ranks=0):
    """Runs the program: on `ranks` processes of an MPI, or with --ranks."""
    before = ["mpirun." + mpi, "-n", str(ranks)] if mpi else []
    after = ["--ranks", str(ranks)] if ranks and not mpi else []
    return subprocess.run([*before, PROGRAM, *arguments, *after], capture_output=True, text=True, timeout=120,
                          env=environment(), stdin=subprocess.DEVNULL)


def ways(mpi=True):
    """Ways to start ranks: (mpi, ranks). A start of mpirun takes up to a second, so few tests use all.
    Not one rank as a thread, with which the tests compare."""
    return [(None, n) for n in (2, 3, 4)] + ([(mpi, n) for mpi in MPIS for n in (1, 2)] if mpi else [])


def few_ways():
    return [(None, 3)] + [(mpi, 2) for mpi in MPIS]


def turn(k):
    """As few_ways, with one MPI in turn."""
    return [(None, 3)] + ([(MPIS[k % len(MPIS)], 2)] if MPIS else [])


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def path(self, name):
        return str(pathlib.Path(self.folder.name) / name)

    def answer(self, name, *arguments, code=0, **how):
        """The answer of a run, as bytes."""
        done = run(*arguments, "-o", self.path(name), **how)
        self.assertEqual(done.returncode, code, f"{how}: {done.stderr}")
        return pathlib.Path(self.path(name)).read_bytes()

    def matrix(self, spec, name):
        """A file with this matrix."""
        done = subprocess.run([PROGRAM, "gen", spec, "-o", self.path(name)], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return self.path(name)


class Bits(Case):
    def test_products_have_the_bits_of_one_rank(self):
        files = [self.matrix("powerlaw:4000,9,2.1,2000", "power.mtx"), "uniform:3000,4000,5", "arrow:3000"]
        for file in files:
            one = self.answer("one", "matvec", file, ranks=1)
            self.assertGreater(len(one.split()), 2999)
            for mpi, ranks in ways(mpi=file == files[0]):
                with self.subTest(file=file, mpi=mpi, ranks=ranks):
                    self.assertEqual(self.answer("y", "matvec", file, mpi=mpi, ranks=ranks), one)

    def test_vectors_scalars_and_types(self):
        x, y0 = self.path("x.txt"), self.path("y0.txt")
        pathlib.Path(x).write_text("".join(f"{i % 7 - 3}.5\n" for i in range(900)))
        pathlib.Path(y0).write_text("".join(f"{i % 5}.25\n" for i in range(900)))
        wish = ["matvec", "poisson2d:30", x, "--alpha", "0.3", "--beta", "-2", "--y0", y0]
        for kind in ("f64", "f32", "mixed"):
            one = self.answer("one", *wish, "--type", kind, ranks=1)
            for mpi, ranks in few_ways() if kind == "mixed" else ways(mpi=False):
                with self.subTest(kind=kind, mpi=mpi, ranks=ranks):
                    self.assertEqual(self.answer("y", *wish, "--type", kind, mpi=mpi, ranks=ranks), one)

    def test_several_vectors_have_the_bits_of_each_alone(self):
        rows, k = 900, 3
        numbers = [[(7 * i + 5 * v) % 11 - 4.5 + v for v in range(k)] for i in range(rows)]

        def write(name, columns):
            text = "".join(" ".join(str(row[v]) for v in columns) + "\n" for row in numbers)
            pathlib.Path(self.path(name)).write_text(text)
            return self.path(name)

        every = write("all.txt", range(k))
        for wish, given in ((["matvec", "poisson2d:30", "--beta", "0.5"], "--y0"),
                            (["solve", "poisson2d:30", "--precond", "amg", "--backend", "omp"], "--x0")):
            alone = []
            for v in range(k):
                one = write("one.txt", [v])
                alone.append(self.answer("one", wish[0], wish[1], one, *wish[2:], given, one, ranks=1).split())
            expected = [word for row in zip(*alone) for word in row]
            for mpi, ranks in [(None, 1), *few_ways()]:
                with self.subTest(wish=wish, mpi=mpi, ranks=ranks):
                    got = self.answer("x", wish[0], wish[1], every, *wish[2:], given, every, mpi=mpi, ranks=ranks,
                                      code=0)
                    self.assertEqual(got.split(), expected)
        wish = ["solve", "poisson2d:30", "--vectors", "3", "--solution", "random", "--precond", "jacobi",
                "--json=" + self.path("json"), "--history", self.path("history")]
        one = self.answer("x", *wish, ranks=1)
        first = pathlib.Path(self.path("history")).read_bytes()
        for mpi, ranks in few_ways():
            with self.subTest(mpi=mpi, ranks=ranks):
                self.assertEqual(self.answer("x", *wish, mpi=mpi, ranks=ranks), one)
                self.assertEqual(pathlib.Path(self.path("history")).read_bytes(), first)
                answer = json.loads(pathlib.Path(self.path("json")).read_text())
                each = answer["result"]["cg"]["right_hand_sides"]
                self.assertEqual([r["status"] for r in each], ["ok"] * k)
                self.assertTrue(all(r["largest_error"] < 1e-4 for r in each))

    def test_solutions_and_histories_have_the_bits_of_one_rank(self):
        file = self.matrix("diffusion2d:45,100", "diffusion.mtx")
        for more in ([], ["--precond", "none"], ["--rung", "textbook", "--precond", "jacobi"],
                     ["--backend", "ref", "--precond", "jacobi"],
                     ["--backend", "omp", "--precond", "chebyshev"]):
            history = ["--history", self.path("history")]
            one = self.answer("one", "solve", file, *more, *history, ranks=1)
            first = pathlib.Path(self.path("history")).read_bytes()
            self.assertGreater(first.count(b"\n"), 20 if more else 1)  # auto takes a factor
            for mpi, ranks in ways(mpi=False) + ([] if more else few_ways()[1:]):
                with self.subTest(more=more, mpi=mpi, ranks=ranks):
                    self.assertEqual(self.answer("x", "solve", file, *more, *history, mpi=mpi, ranks=ranks), one)
                    self.assertEqual(pathlib.Path(self.path("history")).read_bytes(), first)

    def test_multigrid_has_the_bits_of_one_rank(self):
        """The first level has parts on all ranks, and is large enough for that."""
        places = self.path("places.txt")
        with open(places, "w") as out:
            out.writelines(f"{k % 50 / 3} {k // 50}\n" for k in range(2500))
        for k, wish in enumerate((
            ["diffusion2d:66,1000000"],
            ["elasticity2d:48", "--near-null", "rigid2d:48", "--degree", "3"],
            ["elasticity2d:50", "--coordinates", places],
        )):
            wish = ["solve", *wish, "--precond", "amg", "--backend", "omp", "--history", self.path("history")]
            one = self.answer("one", *wish, ranks=1)
            first = pathlib.Path(self.path("history")).read_bytes()
            self.assertGreater(first.count(b"\n"), 5)
            for mpi, ranks in turn(k):
                with self.subTest(wish=wish, mpi=mpi, ranks=ranks):
                    self.assertEqual(self.answer("x", *wish, mpi=mpi, ranks=ranks), one)
                    self.assertEqual(pathlib.Path(self.path("history")).read_bytes(), first)

    def test_every_solver_has_the_bits_of_one_rank(self):
        shifted = self.path("shifted.mtx")  # symmetric and indefinite
        with open(shifted, "w") as out:
            out.write("%%MatrixMarket matrix coordinate real symmetric\n3000 3000 5999\n")
            out.writelines(f"{i} {i} {-3 if i < 40 else 3}\n" for i in range(1, 3001))
            out.writelines(f"{i + 1} {i} -1\n" for i in range(1, 3000))
        negative = self.path("minus.mtx")
        text = pathlib.Path(self.matrix("poisson2d:40", "plus.mtx")).read_text().splitlines(keepends=True)
        at = next(k for k, line in enumerate(text) if line[0] != "%") + 1
        with open(negative, "w") as out:
            out.writelines(text[:at] + [re.sub(r"(\S+)$", r"-\1", line).replace("--", "") for line in text[at:]])
        for k, (wish, solver) in enumerate(((["convdiff2d:45,3", "--solver", "gmres", "--precond", "jacobi"], "gmres"),
                             (["convdiff2d:45,3", "--solver", "bicgstab", "--precond", "jacobi"], "bicgstab"),
                             (["convdiff2d:70,3", "--solver", "gmres", "--precond", "amg"], "gmres"),
                             (["convdiff2d:45,3"], "gmres"), ([shifted], "minres"), ([negative], "cg"),
                             (["poisson2d:45", "--solver", "minres", "--type", "f32", "--rtol", "1e-5"], "minres"))):
            wish = ["solve", *wish, "--backend", "omp", "--history", self.path("history")]
            one = self.answer("one", *wish, ranks=1)
            first = pathlib.Path(self.path("history")).read_bytes()
            for mpi, ranks in turn(k):
                with self.subTest(wish=wish, mpi=mpi, ranks=ranks):
                    self.assertEqual(self.answer("x", *wish, mpi=mpi, ranks=ranks), one)
                    self.assertEqual(pathlib.Path(self.path("history")).read_bytes(), first)
            for ranks in (0, 3):  # as without ranks
                done = run(*wish[:-2], "--json", "-q", "-o", self.path("x"), ranks=ranks)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual(json.loads(done.stdout)["result"]["solve"]["solver"], solver)

    def test_transposed_products(self):
        for k, spec in enumerate(("convdiff2d:40,3", "uniform:3000,500,7", "uniform:500,3000,7")):
            one = self.answer("one", "matvec", spec, "--transpose", ranks=1)
            self.assertEqual(len(one.split()), len(self.answer("y", "matvec", spec, "--transpose").split()))
            for mpi, ranks in turn(k):
                self.assertEqual(self.answer("y", "matvec", spec, "--transpose", mpi=mpi, ranks=ranks), one)

    def test_every_preconditioner_in_turn(self):
        done = run("solve", "poisson2d:40", "--precond", "all", "-o", self.path("x"), ranks=2)
        self.assertEqual(done.returncode, 0, done.stderr)
        for name in ("none", "jacobi", "chebyshev", "amg", "ic0", "ilut", "isai"):
            self.assertRegex(done.stderr, rf"(?m)^  {name} .* ok")

    def test_b_and_x0_from_files(self):
        x0 = self.path("x0.txt")
        b = self.path("b.txt")
        pathlib.Path(b).write_text("".join(f"{i % 3}\n" for i in range(400)))
        self.answer("x0.txt", "solve", "poisson2d:20", b, "--rtol", "1e-3", ranks=2)
        one = self.answer("one", "solve", "poisson2d:20", b, "--x0", x0, ranks=1)
        for mpi, ranks in few_ways():
            self.assertEqual(self.answer("x", "solve", "poisson2d:20", b, "--x0", x0, mpi=mpi, ranks=ranks), one)


class Reading(Case):
    """Files of all forms: what ranks read is what one reader reads, and so are errors and warnings."""

    def write(self, name, text):
        pathlib.Path(self.path(name)).write_bytes(text if isinstance(text, bytes) else text.encode())
        return self.path(name)

    def entries(self, banner, rows, cols, entries, more="", end="\n"):
        lines = "".join(f"{line}\n" for line in entries)
        text = f"%%MatrixMarket matrix coordinate {banner}\n% a comment\n{rows} {cols} {len(entries)}\n{lines}{more}"
        return text[:-1] + end

    def agrees(self, file, counts=(1, 2, 3, 8)):
        """y = A x of this file has the bits that the binary form of what one reader reads gives."""
        whole = self.path("whole.spmv")
        done = subprocess.run([PROGRAM, "convert", file, whole], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        one = self.answer("one", "matvec", whole, ranks=1)
        for n in counts:
            self.assertEqual(self.answer("y", "matvec", file, ranks=n), one, f"{file} on {n} ranks")
            self.assertEqual(self.answer("y", "matvec", whole, ranks=n), one, f"{whole} on {n} ranks")

    def test_fields_and_symmetries(self):
        def value(field, i, j):
            return {"real": f" {(i * 7 + j) % 11}.{i % 9 + 1}e-{j % 3}", "integer": f" {i - 2 * j}", "pattern": ""}[field]
        for field in ("real", "integer", "pattern"):
            for symmetry in ("general", "symmetric", "skew-symmetric"):
                if (field, symmetry) == ("pattern", "skew-symmetric"):
                    continue
                places = [(i, (i * k * 13) % i + 1) for i in range(2, 400) for k in (1, 2, 5)]
                if symmetry == "skew-symmetric":
                    places = [(i, j) for i, j in places if i != j]
                lines = [f"{i} {j}{value(field, i, j)}" for i, j in places] # some twice: added in order
                with self.subTest(field=field, symmetry=symmetry):
                    self.agrees(self.write("a.mtx", self.entries(f"{field} {symmetry}", 400, 400, lines)))

    def test_repeats_are_added_in_the_order_of_the_file(self):
        lines = [f"{k % 7 + 1} {k % 3 + 1} {(-1) ** k * 1.1 ** (k % 400):.17g}" for k in range(3000)]
        self.agrees(self.write("a.mtx", self.entries("real general", 7, 3, lines)))
        self.agrees(self.write("b.mtx", self.entries("real general", 7000, 3, lines)))
        lines = [f"{k % 7 + 1} {k % 3 + 1} {(-1) ** k * 1.0001 ** (k % 99991):.17g}" for k in range(150000)]
        text = self.entries("real general", 7, 3, lines) # dealt in several turns
        one = self.answer("one", "matvec", self.write("c.mtx", text), ranks=1)
        for ranks in (1, 2, 3):
            with open(self.path("c.mtx"), "rb") as file:
                done = subprocess.run([PROGRAM, "matvec", "-", "-o", self.path("y"), "--ranks", str(ranks)], stdin=file,
                                      capture_output=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(pathlib.Path(self.path("y")).read_bytes(), one, ranks)

    def test_odd_texts(self):
        few = [f"{i} {i} {i}" for i in range(1, 6)]
        for text in (self.entries("real general", 5, 5, few), self.entries("real general", 5, 5, few, end=""),
                     self.entries("real general", 5, 5, few).replace("\n", "\r\n"),
                     self.entries("real general", 5, 5, few, more="% the end\n\n \n"),
                     self.entries("real general", 5, 5, few).replace("3 3 3", "% " + "x" * 3000 + "\n\n3 3 3"),
                     self.entries("real general", 5, 5, []), self.entries("real general", 3, 900, ["2 900 1"])):
            self.agrees(self.write("a.mtx", text))

    def test_packed_files_and_standard_input_are_dealt_in_turns(self):
        file = self.matrix("powerlaw:12000,16,2.1,6000", "a.mtx") # several turns
        self.assertGreater(os.path.getsize(file), 3 << 20)
        one = self.answer("one", "matvec", file, ranks=1)
        data = pathlib.Path(file).read_bytes()
        packed = {"a.mtx.gz": gzip.compress(data, 1), "a.mtx.xz": lzma.compress(data, preset=0),
                  "a.mtx.bz2": bz2.compress(data, 1)}
        with tarfile.open(self.path("a.tar.gz"), "w:gz", compresslevel=1) as archive:
            archive.add(file, "a/a.mtx")
        for name, content in packed.items():
            self.write(name, content)
        for name in [*packed, "a.tar.gz"]:
            for mpi, ranks in few_ways() if name == "a.mtx.gz" else [(None, 3)]:
                done = run("matvec", self.path(name), "-o", self.path("y"), mpi=mpi, ranks=ranks)
                if done.returncode == 4 and "libarchive" in done.stderr:
                    self.skipTest("no libarchive")
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual(pathlib.Path(self.path("y")).read_bytes(), one, (name, mpi, ranks))
        for ranks in (1, 3):
            with open(file, "rb") as text:
                done = subprocess.run([PROGRAM, "matvec", "-", "-o", self.path("y"), "--ranks", str(ranks)], stdin=text,
                                      capture_output=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(pathlib.Path(self.path("y")).read_bytes(), one)

    def test_arrays_and_the_cache_are_read_by_rank_0(self):
        numbers = "".join(f"{k % 5 - 2}\n" for k in range(60 * 61 // 2))
        self.agrees(self.write("a.mtx", f"%%MatrixMarket matrix array real symmetric\n60 60\n{numbers}"))
        file = self.matrix("poisson2d:20", "b.mtx")
        one = self.answer("one", "matvec", file, ranks=1)
        environ = dict(environment(), SPMV_CACHE=self.path("cache"))
        for _ in range(2):
            done = subprocess.run([PROGRAM, "matvec", file, "-o", self.path("y"), "--ranks", "2"], env=environ,
                                  stdin=subprocess.DEVNULL, capture_output=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(pathlib.Path(self.path("y")).read_bytes(), one)

    def test_binary_files_of_other_types(self):
        file = self.matrix("powerlaw:900,9,2.1,400", "a.mtx")
        for kind in ("f32", "f64"):
            subprocess.run([PROGRAM, "convert", file, self.path("a.spmv"), "--type", kind], check=True,
                           capture_output=True)
            for more in ("f64", "f32", "mixed"):
                one = self.answer("one", "matvec", self.path("a.spmv"), "--type", more, ranks=1)
                self.assertEqual(self.answer("y", "matvec", self.path("a.spmv"), "--type", more, ranks=3), one)

    def same_words(self, file, counts=(1, 2, 3, 8), mpi=False):
        """Ranks end as one reader does, with the same message or warnings."""
        def said(done):
            return [line for line in done.stderr.replace("\nspmv:  ", " ").splitlines() if ".mtx:" in line or ".spmv:" in line]
        alone = run("matvec", file, "-o", self.path("y"))
        self.assertTrue(said(alone), alone.stderr)
        for way in [(None, n) for n in counts] + ([(m, 2) for m in MPIS] if mpi else []):
            done = run("matvec", file, "-o", self.path("y"), mpi=way[0], ranks=way[1])
            self.assertEqual((done.returncode, said(done)), (alone.returncode, said(alone)), way)
        return said(alone)[0]

    def test_errors_name_the_line_of_the_file(self):
        lines = [f"{i} {i % 50 + 1} {i}.5" for i in range(1, 301)]
        good = self.entries("real general", 300, 50, lines)
        wrong = {"299 50 299.5": "299 51 299.5", "150 1 150.5": "150 1 15x", "2 3 2.5": "2 3", "300 1 300.5": "300 1 1 1",
                 "7 8 7.5": "301 8 7.5"}
        for line, instead in wrong.items():
            number = good.splitlines().index(line) + 1
            first = self.same_words(self.write("a.mtx", good.replace(f"\n{line}\n", f"\n{instead}\n")), mpi=number > 200)
            self.assertIn(f"a.mtx:{number}:", first)
        two = good.replace("\n200 1 200.5\n", "\n200 1 x\n").replace("\n290 41 290.5\n", "\n290 41 y\n")
        self.assertIn("a.mtx:203:", self.same_words(self.write("a.mtx", two)))
        for more in ("1 1 1\n", "\n\n1 1 1\n% c\n2 2 2\n", "trailing\n"):
            self.same_words(self.write("a.mtx", good + more))
        early = good.replace("300 50 300", "300 50 120") # the first superfluous line is in the midst
        self.assertIn("a.mtx:124:", self.same_words(self.write("a.mtx", early)))
        for cut in (10, 1000, len(good) - 9):
            self.same_words(self.write("a.mtx", good[:cut]))
        self.same_words(self.write("a.mtx", good.replace("300 50 300", "300 50 301")))
        self.same_words(self.write("a.mtx", "%%MatrixMarket matrix coordinate real skew-symmetric\n9 9 1\n3 3 1\n"))

    def test_errors_in_packed_files(self):
        spoilt = self.path("a.mtx")
        text = pathlib.Path(self.matrix("poisson2d:300", "whole.mtx")).read_text() # some turns
        for at in (len(text) // 7, len(text) * 6 // 7):
            self.write("a.mtx", text[:at] + "x" + text[at:])
            expected = [line for line in run("matvec", spoilt).stderr.splitlines() if "a.mtx:" in line]
            self.write("a.mtx.gz", gzip.compress(pathlib.Path(spoilt).read_bytes(), 1))
            for ranks in (2, 3):
                done = run("matvec", self.path("a.mtx.gz"), "-o", self.path("y"), ranks=ranks)
                if "libarchive" in done.stderr:
                    self.skipTest("no libarchive")
                self.assertEqual(done.returncode, 3)
                self.assertIn(expected[0].split("a.mtx:")[1].split(": ")[0], done.stderr)

    def test_warnings(self):
        lines = ["1 1 1", "2 1 inf", "3 2 nan", "3 3 2", "2 1 4", "2 2 5"]
        self.assertIn("not finite (2 such", self.same_words(self.write("a.mtx", self.entries("real symmetric", 3, 3, lines))))
        whole = ["1 1 1", "2 1 9007199254740993", "3 3 90071992547409931"]
        self.assertIn("a.mtx:5:5: this integer was rounded",
                      self.same_words(self.write("a.mtx", self.entries("integer general", 3, 3, whole))))

    def test_damaged_binary_files(self):
        file = self.matrix("poisson2d:80", "a.spmv")
        good = pathlib.Path(file).read_bytes()
        for at in (40, 200, len(good) // 2, len(good) - 5):
            bad = bytearray(good)
            bad[at] ^= 4
            self.same_words(self.write("a.spmv", bytes(bad)), counts=(2, 3))
        self.same_words(self.write("a.spmv", good[:-9]), counts=(2,))

    def test_complex_files(self):
        lines = "".join(f"{i} {i} {i} 2\n" for i in range(1, 3001))
        text = f"%%MatrixMarket matrix coordinate complex general\n3000 3000 3000\n{lines}".encode()
        for name in ("a.mtx", "a.mtx.gz"):
            file = self.write(name, gzip.compress(text) if name.endswith("gz") else text)
            one = self.answer("one", "matvec", file, ranks=1)
            self.assertEqual(one.split()[-2:], [b"3000", b"2"])
            for mpi, ranks in few_ways():
                self.assertEqual(self.answer("y", "matvec", file, mpi=mpi, ranks=ranks), one)

    def test_no_rank_needs_much_more_memory_than_its_share(self):
        """Peaks of 4 processes, less those for a small matrix. 24 MiB: buffers, vectors, the answer on rank 0."""
        file, ranks, side = self.matrix("poisson3d:90", "a.mtx"), 4, 90
        small = self.matrix("poisson3d:4", "small.mtx")
        share = (8 * side ** 3 + 12 * (7 * side ** 3 - 6 * side ** 2)) / ranks
        code = ("import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True); "
                "print('peak', resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)")
        def peak(path, mpi):
            done = subprocess.run(["mpirun." + mpi, "-n", str(ranks), sys.executable, "-c", code, PROGRAM, "matvec", path, "-q",
                                   "--verify=off", "--backend", "omp", "--threads", "1", "-o", self.path("y.spmv")],
                                  capture_output=True, text=True, timeout=120, env=environment(), stdin=subprocess.DEVNULL)
            self.assertEqual(done.returncode, 0, done.stderr)
            peaks = [int(n) for n in re.findall(r"\d+", done.stdout)]
            self.assertEqual(len(peaks), ranks, done.stdout)
            return 1024 * max(peaks)
        for mpi in MPIS[:1]:
            before = peak(small, mpi)
            for path in (file, self.converted(file, "a.spmv")):
                self.assertLess(peak(path, mpi) - before, 1.5 * share + (24 << 20), path)

    def converted(self, file, name):
        subprocess.run([PROGRAM, "convert", file, self.path(name)], check=True, capture_output=True)
        return self.path(name)

    def test_a_file_that_one_host_lacks_is_dealt(self):
        file = self.matrix("diffusion2d:60,100", "a.mtx")
        one = self.answer("one", "matvec", file, ranks=1)
        for mpi in MPIS:
            number = "OMPI_COMM_WORLD_RANK" if mpi == "openmpi" else "PMI_RANK"
            other = self.path("elsewhere")
            os.makedirs(other, exist_ok=True)
            script = f'[ "${number}" = 0 ] || cd {other}; exec "$0" "$@"'
            done = subprocess.run(["mpirun." + mpi, "-n", "2", "sh", "-c", script, PROGRAM, "matvec", "a.mtx", "-o",
                                   self.path("y")], capture_output=True, text=True, timeout=120, env=environment(),
                                  stdin=subprocess.DEVNULL, cwd=self.folder.name)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(pathlib.Path(self.path("y")).read_bytes(), one)


class Reports(Case):
    def test_the_summary_and_json(self):
        # both from one run, because an MPI takes longer to start than to solve
        for mpi, ranks in ways(mpi=False) + few_ways()[1:]:
            done = run("solve", "poisson2d:40", "-o", self.path("x"), "--json", mpi=mpi, ranks=ranks)
            self.assertEqual(done.returncode, 0, done.stderr)
            said = " ".join(done.stderr.replace("\nspmv:  ", " ").split())
            self.assertRegex(said, rf"on {ranks} rank{'s' if ranks > 1 else ''} \({'mpi' if mpi else 'threads'}"
                                   r"(, exchange (peer|nccl|host))?\)")
            self.assertRegex(said, r"the largest share of a rank is 1\.\d\d times the mean")
            self.assertRegex(said, r"halo: \d+ elements of x move for a product, at most \d+ to a rank; \d+ % of the "
                                   r"time in exchange")
            self.assertEqual(said.count("b - A x checked against ref: passed"), 1)
            self.assertEqual(said.count("solved after"), 1)
            root = json.loads(done.stdout)  # once, not once for each rank
            said = root["result"]["ranks"]
            self.assertEqual(said["count"], ranks)
            self.assertEqual(said["transport"], "mpi" if mpi else "threads")
            self.assertEqual(said["halo"], 80 * (ranks - 1))
            self.assertLessEqual(0, said["exchange_share"])
            self.assertLessEqual(said["exchange_share"], 1)
            self.assertEqual(root["result"]["cg"]["status"], "ok")
            self.assertEqual(root["matrix"]["nnz"], 7840)
            self.assertLess(root["verify"]["worst_error_over_bound"], 1)

    def test_json_has_the_members_of_one_context(self):
        def members(value, path=""):
            if not isinstance(value, dict):
                return {path}
            return {name for key in value for name in members(value[key], f"{path}.{key}")}

        for command in (["matvec", "poisson2d:20", "--type", "mixed"], ["solve", "poisson2d:20"]):
            alone, ranks = (json.loads(run(*command, "--json", "-q", "-o", self.path("y"), ranks=n).stdout) for n in (0, 2))
            lost = {name for name in members(alone) - members(ranks)
                    if "row_nnz" not in name and not name.endswith("energy_norm")}
            self.assertEqual(lost, set())
            self.assertEqual({name.split(".")[2] for name in members(ranks) - members(alone)}, {"ranks"})

    def test_bench_without_peers(self):
        done = run("bench", "poisson2d:9", "--peers", "none", ranks=2)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"\Aspmv of poisson2d:9: .* Gflop/s in products\n\Z")

    def test_quiet_ranks(self):
        done = run("solve", "poisson2d:40", "--json", "-q", ranks=3)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(json.loads(done.stdout)["result"]["ranks"]["count"], 3)

    def test_bench(self):
        jobs = [("spmv", None), ("cg", None)] + [("cg", mpi) for mpi in MPIS[:1]]
        for op, mpi in jobs:
            limit = ("--max-iterations", "60") if op == "cg" else ()
            done = run("bench", "poisson2d:60", "--op", op, "--json", "-q", *limit, mpi=mpi, ranks=2)
            self.assertEqual(done.returncode, 0, done.stderr)
            result = json.loads(done.stdout)["result"]
            self.assertEqual(result["op"], op)
            self.assertEqual(result["ranks"]["count"], 2)
            self.assertEqual(result["ranks"]["transport"], "mpi" if mpi else "threads")
            self.assertLessEqual(result["seconds"]["min"], result["seconds"]["median"])
            if op == "spmv":
                self.assertLess(0, result["seconds"]["min"])
            else:  # the difference of two solves, which other programs may make negative
                self.assertEqual(result["cg"]["iterations"], 60)

    def test_bench_times_whole_solutions(self):
        for mpi in [None, *MPIS[:1]]:
            done = run("bench", "poisson2d:30", "--op", "cg", "--precond", "amg", "--json", "-q", mpi=mpi, ranks=2)
            self.assertEqual(done.returncode, 0, done.stderr)
            result = json.loads(done.stdout)["result"]
            cg = result["cg"]
            self.assertEqual(cg["precond"], "amg")
            self.assertEqual(cg["solution_seconds"], result["seconds"]["median"])
            self.assertLess(0, cg["precond_seconds"])
            self.assertLessEqual(cg["relative_residual"], cg["rtol"])
        done = run("bench", "poisson2d:30", "--op", "cg", "--precond", "amg", "--max-iterations", "2", ranks=2)
        self.assertEqual(done.returncode, 7, done.stderr)

    def test_unsuitable_ranks_are_named(self):
        done = run("matvec", "poisson2d:5", "-o", self.path("y"), ranks=3)
        self.assertIn("note: the matrix has 1 chunk of rows for 3 ranks: 2 have no rows", done.stderr)
        done = run("matvec", "arrow:30000", "-o", self.path("y"), ranks=8)
        self.assertIn("a long row makes the share of one rank", done.stderr)

    def test_blocks_of_ranks_say_that_iterations_depend_on_them(self):
        done = run("solve", "diffusion2d:60,100", "--precond", "ic0", "-o", self.path("x"), ranks=2)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("iterations depend on the number of ranks", " ".join(done.stderr.split()))


class Failures(Case):
    def fails(self, code, text, *arguments, with_mpi=False):
        """Ranks end with this exit code and the message, once, without an output."""
        for mpi, ranks in [(None, 1), *few_ways()] if with_mpi else ways(mpi=False):
            with self.subTest(arguments=arguments, mpi=mpi, ranks=ranks):
                out = self.path("out")
                done = run(*arguments, "-o", out, mpi=mpi, ranks=ranks)
                self.assertEqual(done.returncode, code, done.stderr)
                self.assertEqual(" ".join(done.stderr.replace("\nspmv:  ", " ").split()).count(text), 1, done.stderr)
                self.assertEqual([name for name in os.listdir(self.folder.name) if name.startswith("out")], [])

    def test_a_truncated_file(self):
        file = self.matrix("poisson2d:50", "whole.mtx")
        text = pathlib.Path(file).read_text()
        short = self.path("short.mtx")
        pathlib.Path(short).write_text(text[: len(text) // 2])
        self.fails(3, "short.mtx", "solve", short, with_mpi=True)
        self.fails(3, "short.mtx", "matvec", short)

    def test_matrices_that_do_not_suit(self):
        self.fails(8, "needs a square matrix", "solve", "uniform:30,40,3")
        self.fails(8, "a least-squares solution; not on ranks", "solve", "uniform:30,40,3")
        self.fails(8, "not symmetric", "solve", "convdiff2d:30,2", "--solver", "cg", "--precond", "none")
        self.fails(8, "must be positive", "solve", self.negative(), "--precond", "jacobi", with_mpi=True)

    def test_what_to_try_on_ranks(self):
        """A failed solve ends with a line about what else there is."""
        for words, tried in ((["convdiff2d:30,2", "--solver", "cg"], "try --solver gmres, or auto"),
                             ([self.negative(), "--solver", "cg", "--precond", "none"], "try --solver minres, or auto"),
                             (["poisson2d:30", "--max-iterations", "3"], "try --precond amg, or a --max-iterations above 3"),
                             (["poisson2d:30", "--rtol", "1e-9", "--type", "f32"], "try --type f64, or accept --rtol")):
            done = run("solve", *words, "-o", self.path("out"), ranks=2)
            self.assertIn(done.returncode, (7, 8), done.stderr)
            self.assertIn(tried, done.stderr.strip().splitlines()[-1])

    def test_a_number_that_is_not_finite_is_named(self):
        b = self.path("b.txt")
        pathlib.Path(b).write_text("1\n" * 8999 + "nan\n" + "1\n" * 1000)
        for mpi, ranks in few_ways():
            done = run("solve", "poisson2d:100", b, "--precond", "none", "-o", self.path("out"), mpi=mpi, ranks=ranks)
            self.assertEqual(done.returncode, 7, done.stderr)
            self.assertRegex(done.stderr, r"(?m)^spmv: .*b has nan in row 9000$")

    def test_ilu0_takes_the_diagonal_that_it_takes_without_ranks(self):
        done = run("solve", self.negative(), "--precond", "ilu0", "-o", self.path("out"), ranks=1)
        self.assertNotIn("must be positive", done.stderr)

    def test_ranks_with_different_jobs_end_alike(self):
        for mpi in MPIS:
            for first, second in ((["matvec", "poisson2d:9"], ["solve", "poisson2d:9"]),
                                  (["solve", "poisson2d:9"], ["solve", "poisson2d:9", "--x0", "nowhere"]),
                                  (["matvec", "poisson2d:9"], ["matvec", "poisson2d:8"])):
                out = ["-o", self.path("out")]
                done = subprocess.run(["mpirun." + mpi, "-n", "1", PROGRAM, *first, *out, ":", "-n", "1", PROGRAM, *second, *out],
                                      capture_output=True, text=True, timeout=60, env=environment(), stdin=subprocess.DEVNULL)
                self.assertEqual(done.returncode, 1, done.stderr)
                self.assertEqual(done.stderr.count("spmv: rank 1 has another command or other options than rank 0"), 1, done.stderr)
                self.assertEqual(os.listdir(self.folder.name), [])
            done = subprocess.run(["mpirun." + mpi, "-n", "1", PROGRAM, "matvec", "poisson2d:9", "--threads", "1", *out, ":",
                                   "-n", "1", PROGRAM, "matvec", "poisson2d:9", *out, "-q"],
                                  capture_output=True, text=True, timeout=60, env=environment(), stdin=subprocess.DEVNULL)
            self.assertEqual(done.returncode, 0, done.stderr)
            os.remove(self.path("out"))

    def negative(self):
        file = self.path("negative.mtx")
        pathlib.Path(file).write_text("%%MatrixMarket matrix coordinate real symmetric\n2 2 2\n1 1 4\n2 2 -3\n")
        return file

    def test_wrong_vectors(self):
        short = self.path("short.txt")
        pathlib.Path(short).write_text("1\n2\n")
        self.fails(4, "short.txt", "matvec", "poisson2d:4", short)
        self.fails(2, "nowhere.txt", "solve", "poisson2d:4", self.path("nowhere.txt"))

    def test_too_little_memory_on_one_rank(self):
        for mpi in MPIS:
            number = "OMPI_COMM_WORLD_RANK" if mpi == "openmpi" else "PMI_RANK"
            script = f'[ "${number}" != 1 ] || ulimit -v 250000; exec "$0" "$@"'
            done = subprocess.run(["mpirun." + mpi, "-n", "2", "sh", "-c", script, PROGRAM, "matvec", "poisson2d:1800",
                                   "--threads", "1", "--verify=off", "-o", self.path("out")], capture_output=True,
                                  text=True, timeout=120, env=environment(), stdin=subprocess.DEVNULL)
            self.assertEqual(done.returncode, 5, done.stderr)
            self.assertEqual(done.stderr.count("spmv: rank 1: "), 1, done.stderr)
            self.assertIn("memory", done.stderr)
            self.assertEqual(os.listdir(self.folder.name), [])

    def test_an_indefinite_matrix_has_no_x(self):
        self.fails(8, "minres", "solve", self.negative(), "--solver", "cg", "--precond", "none", with_mpi=True)

    def test_an_early_stop_writes_x(self):
        one = self.answer("one", "solve", "poisson2d:40", "--max-iterations", "7", ranks=1, code=7)
        for mpi, ranks in few_ways():
            self.assertEqual(self.answer("x", "solve", "poisson2d:40", "--max-iterations", "7", mpi=mpi, ranks=ranks,
                                         code=7), one)

    def test_what_ranks_do_not_do_is_refused(self):
        for more in (["--verify=bitwise"],):
            done = run("matvec", "poisson2d:4", *more, ranks=2)
            self.assertEqual(done.returncode, 4, more)
            self.assertIn("not supported on several ranks", done.stderr)
        for more in (["--inner"], ["--plot", self.path("p.svg")], ["--solver", "direct"], ["--recycle", "4"]):
            done = run("solve", "poisson2d:4", *more, ranks=2)
            self.assertEqual(done.returncode, 4, more)
            self.assertIn("several ranks", done.stderr)
        done = run("solve", "poisson2d:4", "--solution", "twos", ranks=2)
        self.assertEqual(done.returncode, 1)
        self.assertIn("--solution twos: must be ones or random", done.stderr)
        for more in (["--op", "scan"], ["--op", "cg", "--peers", "all"], ["--op", "cg", "--precond", "amg,jacobi"],
                     ["--op", "cg", "--precond", "all"]):
            done = run("bench", "poisson2d:4", *more, ranks=2)
            self.assertEqual(done.returncode, 4, more)
            self.assertIn("several ranks", done.stderr)
        done = run("matvec", "poisson2d:4", "--ranks", "0")
        self.assertEqual(done.returncode, 1)
        for more, why in ((["--gpus", "2", "--backend", "omp"], "--gpus has no effect"),
                          (["--gpus", "3", "--ranks", "2"], "each GPU needs a rank"),
                          (["--exchange", "peer", "--backend", "omp", "--ranks", "2"], "--exchange has no effect"),
                          (["--exchange", "post", "--ranks", "2"], "auto, peer, nccl, host")):
            done = run("matvec", "poisson2d:4", *more)
            self.assertEqual(done.returncode, 1, more)
            self.assertIn(why, done.stderr)
        done = run("matvec", "poisson2d:4", "--gpus", "200", "-o", self.path("y"))  # no host has as many
        self.assertEqual(done.returncode, 6)
        self.assertRegex(done.stderr, "no CUDA device 199|no usable CUDA device|no backend cuda")
        for mpi in MPIS[:1]:
            done = run("matvec", "poisson2d:4", "--ranks", "2", mpi=mpi, ranks=1)
            self.assertEqual(done.returncode, 1)
            self.assertIn("--ranks has no effect under mpirun", done.stderr)

    def test_a_missing_module_is_named(self):
        environ = dict(environment(), SPMV_MPI="openmpi", SPMV_MODULE_PATH="/nowhere")
        with tempfile.TemporaryDirectory() as folder:
            alone = shutil.copy(PROGRAM, folder)
            done = subprocess.run([alone, "matvec", "poisson2d:4"], capture_output=True, text=True, env=environ)
        self.assertEqual(done.returncode, 4)
        self.assertIn("spmv_transport_openmpi.so", done.stderr)


class Killed(Case):
    def test_a_killed_rank_ends_all_without_an_output(self):
        for mpi in MPIS:
            out = self.path("x")
            started = subprocess.Popen(["mpirun." + mpi, "-n", "2", PROGRAM, "solve", "poisson2d:900", "--rtol", "1e-15",
                                        "--threads", "1", "-o", out], stderr=subprocess.PIPE, stdout=subprocess.PIPE,
                                       env=environment(), stdin=subprocess.DEVNULL)
            victims = []
            for _ in range(500):
                time.sleep(0.02)
                victims = [pid for pid in descendants(started.pid) if is_program(pid)]
                if len(victims) == 2:
                    break
            self.assertEqual(len(victims), 2)
            time.sleep(0.3)  # into the set-up or the solve, which takes many seconds
            self.assertIsNone(started.poll(), "the solve is over before the rank is killed")
            os.kill(victims[1], signal.SIGKILL)
            began = time.monotonic()
            while any(is_program(pid) for pid in victims) and time.monotonic() - began < 60:
                time.sleep(0.05)
            self.assertFalse(any(is_program(pid) for pid in victims))
            try:
                started.communicate(timeout=10)
                self.assertNotEqual(started.returncode, 0)
            except subprocess.TimeoutExpired:  # mpirun of Open MPI 4 sometimes hangs when its ranks have ended
                started.kill()
                started.communicate()
            self.assertEqual(os.listdir(self.folder.name), [])


def descendants(pid):
    """The processes that this one has started, and theirs."""
    found = []
    try:
        children = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        children = []
    for child in children:
        found += [int(child)] + descendants(int(child))
    return found


def is_program(pid):
    try:
        words = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        state = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return False
    return state != "Z" and words[0].decode() == PROGRAM


def starts(mpi):
    """Whether this machine can start two processes of the MPI; containers may forbid it."""
    if not shutil.which("mpirun." + mpi):
        return False
    try:
        return subprocess.run(["mpirun." + mpi, "-n", "2", "true"], env=environment(), stdin=subprocess.DEVNULL,
                              capture_output=True, timeout=60).returncode == 0
    except subprocess.TimeoutExpired:
        return False


if __name__ == "__main__":
    PROGRAM, SOURCE = sys.argv[1], sys.argv[2]
    MPIS = [mpi for mpi in sys.argv[3].split(",") if starts(mpi)]
    print("MPI:", ", ".join(MPIS) or "none", file=sys.stderr)
    unittest.main(argv=[sys.argv[0]] + sys.argv[4:])

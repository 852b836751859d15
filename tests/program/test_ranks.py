#!/usr/bin/env python3
"""Tests spmv mul and spmv solve on several ranks: --ranks N, and mpirun with each MPI whose module
was built.

test_ranks.py PROGRAM SOURCE_DIR MPIS [unittest arguments]. MPIS: the modules, such as
"openmpi,mpich", or "". Python's standard library only.

SPDX-License-Identifier: BSD-3-Clause
"""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

PROGRAM = SOURCE = None
MPIS = []


def environment():
    """mpirun of Open MPI as root in a container, with more ranks than cores, not bound to busy cores."""
    return dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
                OMPI_MCA_rmaps_base_oversubscribe="1", OMPI_MCA_plm_rsh_agent="", OMPI_MCA_hwloc_base_binding_policy="none")


def run(*arguments, mpi=None, ranks=0):
    """Runs the program: on `ranks` processes of an MPI, or with --ranks."""
    before = ["mpirun." + mpi, "-n", str(ranks)] if mpi else []
    after = ["--ranks", str(ranks)] if ranks and not mpi else []
    return subprocess.run([*before, PROGRAM, *arguments, *after], capture_output=True, text=True, timeout=120,
                          env=environment(), stdin=subprocess.DEVNULL)


def ways(mpi=True):
    """Ways to start ranks: (mpi, ranks). A start of mpirun takes up to a second, so few tests use all."""
    return [(None, n) for n in (1, 2, 3, 4)] + ([(mpi, n) for mpi in MPIS for n in (1, 2)] if mpi else [])


def few_ways():
    return [(None, 1), (None, 3)] + [(mpi, 2) for mpi in MPIS]


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
            one = self.answer("one", "mul", file, ranks=1)
            self.assertGreater(len(one.split()), 2999)
            for mpi, ranks in ways(mpi=file == files[0]):
                with self.subTest(file=file, mpi=mpi, ranks=ranks):
                    self.assertEqual(self.answer("y", "mul", file, mpi=mpi, ranks=ranks), one)

    def test_vectors_scalars_and_types(self):
        x, y0 = self.path("x.txt"), self.path("y0.txt")
        pathlib.Path(x).write_text("".join(f"{i % 7 - 3}.5\n" for i in range(900)))
        pathlib.Path(y0).write_text("".join(f"{i % 5}.25\n" for i in range(900)))
        wish = ["mul", "poisson2d:30", x, "--alpha", "0.3", "--beta", "-2", "--y0", y0]
        for kind in ("f64", "f32", "mixed"):
            one = self.answer("one", *wish, "--type", kind, ranks=1)
            for mpi, ranks in few_ways() if kind == "mixed" else ways(mpi=False):
                with self.subTest(kind=kind, mpi=mpi, ranks=ranks):
                    self.assertEqual(self.answer("y", *wish, "--type", kind, mpi=mpi, ranks=ranks), one)

    def test_solutions_and_histories_have_the_bits_of_one_rank(self):
        file = self.matrix("diffusion2d:45,100", "diffusion.mtx")
        for more in ([], ["--precond", "none"], ["--method", "textbook"], ["--backend", "ref"]):
            history = ["--history", self.path("history")]
            one = self.answer("one", "solve", file, *more, *history, ranks=1)
            first = pathlib.Path(self.path("history")).read_bytes()
            self.assertGreater(first.count(b"\n"), 20)
            for mpi, ranks in ways(mpi=not more):
                with self.subTest(more=more, mpi=mpi, ranks=ranks):
                    self.assertEqual(self.answer("x", "solve", file, *more, *history, mpi=mpi, ranks=ranks), one)
                    self.assertEqual(pathlib.Path(self.path("history")).read_bytes(), first)

    def test_b_and_x0_from_files(self):
        x0 = self.path("x0.txt")
        b = self.path("b.txt")
        pathlib.Path(b).write_text("".join(f"{i % 3}\n" for i in range(400)))
        self.answer("x0.txt", "solve", "poisson2d:20", b, "--rtol", "1e-3", ranks=2)
        one = self.answer("one", "solve", "poisson2d:20", b, "--x0", x0, ranks=1)
        for mpi, ranks in few_ways():
            self.assertEqual(self.answer("x", "solve", "poisson2d:20", b, "--x0", x0, mpi=mpi, ranks=ranks), one)


class Reports(Case):
    def test_the_summary_names_ranks_imbalance_halo_and_exchange(self):
        for mpi, ranks in ways(mpi=False) + few_ways()[2:]:
            done = run("solve", "poisson2d:40", "-o", self.path("x"), mpi=mpi, ranks=ranks)
            self.assertEqual(done.returncode, 0, done.stderr)
            said = " ".join(done.stderr.replace("\nspmv:  ", " ").split())
            self.assertRegex(said, rf"on {ranks} rank{'s' if ranks > 1 else ''} \({'mpi' if mpi else 'threads'}"
                                   r"(, exchange (peer|nccl|host))?\)")
            self.assertRegex(said, r"the largest share of a rank is 1\.\d\d times the mean")
            self.assertRegex(said, r"halo: \d+ elements of x move for a product, at most \d+ to a rank; \d+ % of the "
                                   r"time in exchange")
            self.assertEqual(said.count("b - A x checked against ref: passed"), 1)
            self.assertEqual(said.count("solved after"), 1)

    def test_json(self):
        for mpi, ranks in ways(mpi=False) + few_ways()[2:]:
            done = run("solve", "poisson2d:40", "--json", "-q", mpi=mpi, ranks=ranks)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(done.stderr, "")
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

    def test_bench(self):
        for op, limit in (("spmv", ()), ("cg", ("--max-iterations", "60"))):
            done = run("bench", "poisson2d:60", "--op", op, "--json", "-q", *limit, ranks=2)
            self.assertEqual(done.returncode, 0, done.stderr)
            result = json.loads(done.stdout)["result"]
            self.assertEqual(result["op"], op)
            self.assertEqual(result["ranks"]["count"], 2)
            self.assertLess(0, result["seconds"]["min"])
            self.assertLessEqual(result["seconds"]["min"], result["seconds"]["median"])
            if op == "cg":
                self.assertEqual(result["cg"]["iterations"], 60)

    def test_unsuitable_ranks_are_named(self):
        done = run("mul", "poisson2d:5", "-o", self.path("y"), ranks=3)
        self.assertIn("note: the matrix has 1 chunks of rows for 3 ranks: 2 have no rows", done.stderr)
        done = run("mul", "arrow:30000", "-o", self.path("y"), ranks=8)
        self.assertIn("a long row makes the share of one rank", done.stderr)

    def test_blocks_of_ranks_say_that_iterations_depend_on_them(self):
        done = run("solve", "diffusion2d:60,100", "--precond", "ic0", "-o", self.path("x"), ranks=2)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("iterations depend on the number of ranks", " ".join(done.stderr.split()))


class Failures(Case):
    def fails(self, code, text, *arguments, with_mpi=False):
        """Ranks end with this exit code and the message, once, without an output."""
        for mpi, ranks in few_ways() if with_mpi else ways(mpi=False):
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
        self.fails(3, "short.mtx", "mul", short)

    def test_matrices_that_do_not_suit(self):
        self.fails(8, "needs a square matrix", "solve", "uniform:30,40,3")
        self.fails(8, "not symmetric", "solve", "convdiff2d:30,2", "--precond", "none")
        self.fails(8, "must be positive", "solve", self.negative(), "--precond", "jacobi", with_mpi=True)

    def negative(self):
        file = self.path("negative.mtx")
        pathlib.Path(file).write_text("%%MatrixMarket matrix coordinate real symmetric\n2 2 2\n1 1 4\n2 2 -3\n")
        return file

    def test_wrong_vectors(self):
        short = self.path("short.txt")
        pathlib.Path(short).write_text("1\n2\n")
        self.fails(4, "short.txt", "mul", "poisson2d:4", short)
        self.fails(2, "nowhere.txt", "solve", "poisson2d:4", self.path("nowhere.txt"))

    def test_too_little_memory_on_one_rank(self):
        for mpi in MPIS:
            number = "OMPI_COMM_WORLD_RANK" if mpi == "openmpi" else "PMI_RANK"
            script = f'[ "${number}" != 1 ] || ulimit -v 250000; exec "$0" "$@"'
            done = subprocess.run(["mpirun." + mpi, "-n", "2", "sh", "-c", script, PROGRAM, "mul", "poisson2d:1800",
                                   "--threads", "1", "--verify=off", "-o", self.path("out")], capture_output=True,
                                  text=True, timeout=120, env=environment(), stdin=subprocess.DEVNULL)
            self.assertEqual(done.returncode, 5, done.stderr)
            self.assertEqual(done.stderr.count("spmv: rank 1: "), 1, done.stderr)
            self.assertIn("memory", done.stderr)
            self.assertEqual(os.listdir(self.folder.name), [])

    def test_an_early_stop_writes_x(self):
        one = self.answer("one", "solve", "poisson2d:40", "--max-iterations", "7", ranks=1, code=7)
        for mpi, ranks in few_ways():
            self.assertEqual(self.answer("x", "solve", "poisson2d:40", "--max-iterations", "7", mpi=mpi, ranks=ranks,
                                         code=7), one)

    def test_what_ranks_do_not_do_is_refused(self):
        for more in (["--transpose"], ["--verify=bitwise"]):
            done = run("mul", "poisson2d:4", *more, ranks=2)
            self.assertEqual(done.returncode, 4, more)
            self.assertIn("not supported on several ranks", done.stderr)
        for more in (["--inner"], ["--plot", self.path("p.svg")], ["--precond", "chebyshev"], ["--solver", "gmres"],
                     ["--vectors", "2"], ["--solution", "random"]):
            done = run("solve", "poisson2d:4", *more, ranks=2)
            self.assertEqual(done.returncode, 4, more)
            self.assertIn("several ranks", done.stderr)
        for more in (["--op", "scan"], ["--op", "cg", "--peers", "none"], ["--op", "cg", "--precond", "amg"]):
            done = run("bench", "poisson2d:4", *more, ranks=2)
            self.assertEqual(done.returncode, 4, more)
            self.assertIn("several ranks", done.stderr)
        done = run("mul", "poisson2d:4", "--ranks", "0")
        self.assertEqual(done.returncode, 1)
        for more, why in ((["--gpus", "2", "--backend", "omp"], "--gpus has no effect"),
                          (["--gpus", "3", "--ranks", "2"], "each GPU needs a rank"),
                          (["--exchange", "peer", "--backend", "omp", "--ranks", "2"], "--exchange has no effect"),
                          (["--exchange", "post", "--ranks", "2"], "auto, peer, nccl, host")):
            done = run("mul", "poisson2d:4", *more)
            self.assertEqual(done.returncode, 1, more)
            self.assertIn(why, done.stderr)
        done = run("mul", "poisson2d:4", "--gpus", "200", "-o", self.path("y"))  # no host has as many
        self.assertEqual(done.returncode, 6)
        self.assertRegex(done.stderr, "no CUDA device 199|no usable CUDA device|not in this build")
        for mpi in MPIS[:1]:
            done = run("mul", "poisson2d:4", "--ranks", "2", mpi=mpi, ranks=1)
            self.assertEqual(done.returncode, 1)
            self.assertIn("--ranks has no effect under mpirun", done.stderr)

    def test_a_missing_module_is_named(self):
        environ = dict(environment(), SPMV_MPI="openmpi", SPMV_MODULE_PATH="/nowhere")
        with tempfile.TemporaryDirectory() as folder:
            alone = shutil.copy(PROGRAM, folder)
            done = subprocess.run([alone, "mul", "poisson2d:4"], capture_output=True, text=True, env=environ)
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
            for _ in range(100):
                time.sleep(0.1)
                victims = [pid for pid in descendants(started.pid) if is_program(pid)]
                if len(victims) == 2:
                    break
            self.assertEqual(len(victims), 2)
            time.sleep(1)
            self.assertIsNone(started.poll(), "the solve is over before the rank is killed")
            os.kill(victims[1], signal.SIGKILL)
            began = time.monotonic()
            started.communicate(timeout=10)
            self.assertNotEqual(started.returncode, 0)
            while any(is_program(pid) for pid in victims) and time.monotonic() - began < 10:
                time.sleep(0.05)
            self.assertFalse(any(is_program(pid) for pid in victims))
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
    if not mpi or not shutil.which("mpirun." + mpi):
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

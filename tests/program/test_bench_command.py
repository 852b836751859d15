#!/usr/bin/env python3
"""Tests spmv bench: table, CSV, JSON, summary, exit codes, and the files left by an interruption.

test_bench_command.py PROGRAM SOURCE_DIR [unittest arguments]. Python's standard library only.

SPDX-License-Identifier: BSD-3-Clause
"""

import csv
import io
import json
import math
import os
import pty
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from test_program import is_sanitized

PROGRAM = SOURCE = ""
OPERATIONS = ["map", "reduce", "scan", "segscan", "segreduce", "gather", "gather-sequential", "scatter", "sort", "histogram", "scan-host"]


def run(*arguments, env=None, cwd=None):
    return subprocess.run(
        [PROGRAM, "bench", "--backend", "omp", "--threads", "2", *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        env=dict(os.environ, **(env or {})),
        cwd=cwd,
        timeout=120,
        check=False,
    )


class Bench(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name, text=None):
        path = os.path.join(self.folder, name)
        if text is not None:
            with open(path, "w", encoding="ascii") as file:
                file.write(text)
        return path

    def ok(self, *arguments, **more):
        done = run(*arguments, **more)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def fails(self, code, sentence, *arguments, **more):
        done = run(*arguments, **more)
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertIn(sentence, done.stderr)
        return done

    # ------------------------------------------------------------ output

    def test_table(self):
        done = self.ok("poisson2d:50", "poisson3d:9", "--peers", "loops", "--method", "all")
        lines = [line for line in done.stdout.splitlines() if not line.startswith(("#", "  "))]
        self.assertIn("read", done.stdout.splitlines()[1])
        self.assertEqual(lines[0].split()[:4], ["system", "us", "min", "spread"])
        self.assertEqual([lines[1], lines[8]], ["poisson2d:50 f64", "poisson3d:9 f64"])
        rows = lines[2:8] + lines[9:]
        self.assertEqual(len(rows), 12)  # each: auto, tiles, staged, three loops
        for row in rows:
            self.assertRegex(row, r"^(auto|tiles|staged|loops-)")
            self.assertIn(" same ", row)
        self.assertNotIn("WRONG", done.stdout)
        self.assertRegex(done.stdout, r"(?m)^# peers: OpenMP, [^;]+$")
        self.assertEqual(done.stderr, "")
        self.assertNotIn("# peers:", self.ok("poisson2d:9", "--peers", "none").stdout)

    def test_json(self):
        matrix = os.path.join(SOURCE, "data", "arrow200.mtx")
        done = self.ok(matrix, "poisson2d:40", "--peers", "loops-merge,eigen,cub-scan", "--json", "--type", "f32")
        results = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual([r["matrix"]["name"] for r in results], ["arrow200", "poisson2d:40"])
        self.assertEqual([r["load"]["source"] for r in results], ["mtx", "spec"])
        for r in results:
            self.assertEqual(r["schema"], "spmv/1")
            self.assertIn("bench", r["tool"]["command"])
            cpu = r["machine"]["cpu"]
            self.assertTrue(cpu["name"] and cpu["threads"] == 2)
            self.assertTrue(min(cpu["read_gbs"], cpu["copy_gbs"], cpu["triad_gbs"]) > 0)
            result = r["result"]
            self.assertEqual([result[k] for k in ("op", "backend", "type", "asked")], ["spmv", "omp", "f32", "auto"])
            self.assertTrue(result["method"] and result["why"])
            times = result["seconds"]
            self.assertTrue(0 < times["min"] <= times["median"] <= times["max"])
            self.assertGreaterEqual(times["repeats"], 5)
            self.assertTrue(0 < result["flushed"]["min"] <= result["flushed"]["median"])
            m = r["matrix"]
            self.assertEqual(
                result["model_bytes"], m["nnz"] * 8 + 4 * (m["rows"] + 1) + 4 * (m["rows"] + m["cols"])
            )
            self.assertAlmostEqual(result["gbs"], 1e-9 * result["model_bytes"] / times["median"], delta=1e-6)
            self.assertAlmostEqual(result["spmv"]["gflops"], 2e-9 * m["nnz"] / times["median"], delta=1e-6)
            self.assertAlmostEqual(result["share_of_read_bandwidth"], result["gbs"] / cpu["read_gbs"], delta=1e-6)
            self.assertTrue(result["bitwise"]["equal"] and result["bitwise"]["repeats"] >= 10)
            self.assertTrue(r["verify"]["passed"] and r["verify"]["worst_error_over_bound"] <= 1)
            self.assertEqual(r["verify"]["reference"], "ref")
            peers = {p["name"]: p for p in r["peers"]}
            self.assertEqual(set(peers), {"loops-merge", "eigen", "cub-scan"})
            self.assertIn("cuda", peers["cub-scan"]["missing"])
            loops = peers["loops-merge"]
            self.assertTrue(loops["repeatable"] and loops["verify"]["passed"] and loops["library"])
            self.assertTrue(loops["plan_seconds"] >= 0 and loops["first_call_seconds"] > 0)
            self.assertTrue(loops["seconds"]["median"] > 0 and loops["flushed"]["median"] > 0)

    def test_conjugate_gradients(self):
        table = self.path("a.csv")
        done = self.ok(
            "poisson2d:40", "poisson3d:9", "--op", "cg", "--rung", "all", "--peers", "eigen", "--json", f"--csv={table}"
        )
        results = [json.loads(line) for line in done.stdout.splitlines()]
        with open(table, encoding="ascii", newline="") as file:
            rows = {(row["name"], row["system"]): row for row in csv.DictReader(file)}
        by_name = {}
        for r in results:
            result, cg = r["result"], r["result"]["cg"]
            name = r["matrix"]["name"]
            by_name.setdefault(name, []).append(cg)
            self.assertEqual([result["op"], cg["precond"], cg["precision"], cg["status"]], ["cg", "none", "f64", "ok"])
            self.assertEqual(cg["rtol"], 1e-8)
            self.assertTrue(0 < cg["relative_residual"] <= 1e-8)
            self.assertTrue(0 < cg["recurrence_residual"] <= 1.001e-8 * cg["true_residual"] / cg["relative_residual"])
            self.assertAlmostEqual(cg["seconds_per_iteration"] * cg["iterations"], result["seconds"]["median"], delta=1e-12)
            self.assertEqual(cg["setup_seconds"], result["plan_seconds"])
            m = r["matrix"]
            self.assertEqual(result["model_bytes"], m["nnz"] * 12 + 4 * (m["rows"] + 1) + 80 * m["rows"])
            self.assertAlmostEqual(result["gbs"], 1e-9 * result["model_bytes"] / cg["seconds_per_iteration"], delta=1e-6)
            self.assertTrue(result["bitwise"]["equal"] and "flushed" not in result and "spmv" not in result)
            row = rows[name, result["asked"]]
            self.assertEqual(int(row["iterations"]), cg["iterations"])
            self.assertEqual(float(row["true_relative"]), cg["relative_residual"])
            for peer in r["peers"]:
                self.assertEqual(peer["name"], "eigen-cg")
                if "missing" in peer:
                    continue
                theirs = peer["cg"]
                self.assertLessEqual(abs(theirs["iterations"] - cg["iterations"]), 2)
                self.assertTrue(theirs["counts"] and theirs["status"] == "ok" and theirs["relative_residual"] <= 2e-8)
                self.assertEqual(theirs["iterations_as_ours"], theirs["iterations"] == by_name[name][0]["iterations"])
        self.assertEqual(set(by_name), {"poisson2d:40", "poisson3d:9"})
        self.assertTrue(all(len(cgs) >= 2 for cgs in by_name.values()))  # auto, and every rung
        text = self.ok("poisson2d:40", "--op", "cg", "--type", "f32", "--peers", "none").stdout
        self.assertRegex(text, r"\nsystem .* iterations .*\npoisson2d:40 f32\nauto .*\n    converged")
        self.fails(8, "not symmetric", "uniform:9,9,2", "--op", "cg", "--peers", "none")
        self.fails(8, "9 rows and 8 columns", "uniform:9,8,2", "--op", "cg", "--peers", "none")
        self.fails(1, "unknown rung \"none\"", "poisson2d:9", "--op", "cg", "--rung", "none", "--peers", "none")

    def test_csv_agrees_with_json_and_summary(self):
        table, lines = self.path("a.csv"), self.path("a.json")
        done = self.ok(
            "poisson2d:60", "poisson3d:12", "--peers", "loops", f"--csv={table}", f"--json={lines}", "--summary"
        )
        with open(table, encoding="ascii", newline="") as file:
            rows = list(csv.DictReader(file))
        with open(lines, encoding="ascii") as file:
            results = [json.loads(line) for line in file]
        self.assertEqual(len(rows), 8)
        self.assertEqual(len(results), 2)
        for result in results:
            name = result["matrix"]["name"]
            of_matrix = {row["system"]: row for row in rows if row["name"] == name}
            self.assertEqual(of_matrix["auto"]["kind"], "own")
            self.assertEqual(float(of_matrix["auto"]["median"]), result["result"]["seconds"]["median"])
            self.assertEqual(int(of_matrix["auto"]["nnz"]), result["matrix"]["nnz"])
            for peer in result["peers"]:
                self.assertEqual(float(of_matrix[peer["name"]]["median"]), peer["seconds"]["median"])
                self.assertEqual(of_matrix[peer["name"]]["state"], "ok")
            best = min(peer["seconds"]["median"] for peer in result["peers"])
            speedup = best / result["result"]["seconds"]["median"]
            self.assertAlmostEqual(float(of_matrix["auto"]["speedup_over_best_peer"]), speedup, places=9)
        # The means in the summary, computed from the results.
        summary = done.stdout[done.stdout.index("# summary") :].splitlines()
        means = {" ".join(line.split()[2:-6]): (line.split()[-6:], after)
                 for line, after in zip(summary, summary[1:] + [""]) if line.startswith("f64 ")}
        self.assertEqual(set(means), {"the best peer", "loops-static", "loops-guided", "loops-merge"})
        for peer, (words, after) in means.items():
            ratios = {}
            for result in results:
                ours = result["result"]["seconds"]
                times = [p["seconds"] for p in result["peers"] if peer in ("the best peer", p["name"])]
                theirs = min(times, key=lambda seconds: seconds["median"])
                if ours["steady"] and theirs["steady"]:
                    ratios[result["matrix"]["name"]] = theirs["median"] / ours["median"]
            self.assertEqual([int(word) for word in words[:2]], [len(ratios), 2 - len(ratios)])
            if not ratios:
                self.assertEqual([words[2], *words[4:]], ["-"] * 3)
                continue
            mean = math.exp(sum(map(math.log, ratios.values())) / len(ratios))
            self.assertAlmostEqual(float(words[2]), mean, delta=6e-4)
            self.assertAlmostEqual(float(words[4]), min(ratios.values()), delta=6e-4)
            self.assertAlmostEqual(float(words[5]), max(ratios.values()), delta=6e-4)
            self.assertIn(f"worst on {min(ratios, key=ratios.get)}, best on {max(ratios, key=ratios.get)}", after)

    def test_primitives(self):
        for operation in OPERATIONS:
            done = self.ok("--op", operation, "--size", "5000", "--json", "--type", "f32")
            (result,) = [json.loads(line) for line in done.stdout.splitlines()]
            primitive = result["result"]["primitive"]
            self.assertEqual([primitive["name"], primitive["n"]], [operation, 5000])
            self.assertTrue(result["verify"]["passed"])
            self.assertNotIn("matrix", result)
            # The peer of this operation, if it was built.
            self.assertLessEqual({peer["name"] for peer in result["peers"]}, {f"tbb-{operation}"})
            for peer in result["peers"]:
                if "missing" in peer:
                    self.assertIn("libtbb-dev", peer["missing"])
                else:
                    self.assertTrue(peer["verify"]["passed"])
            if operation.startswith("seg"):
                self.assertTrue(5000 / 64 < primitive["segments"] < 5000 / 16)

    def test_values_are_random_unless_said_otherwise(self):
        """The bits do not show whether values are random, but the name of the matrix does: a SPEC
        with values= is used unchanged."""
        for spec, good in (("poisson2d:9,values=constant", True), ("poisson2d:9,values=none", False)):
            done = run(spec, "--peers", "none", "--json")
            self.assertEqual(done.returncode == 0, good, done.stderr)
            if good:
                self.assertEqual(json.loads(done.stdout)["matrix"]["name"], spec)
            else:
                self.assertEqual(done.returncode, 1)
                self.assertNotIn("values=random", done.stderr)

    def test_suite_has_both_types(self):
        out = self.path("s.json")
        process = subprocess.Popen(
            [PROGRAM, "bench", "--backend", "omp", "--suite", "small", "--peers", "none", f"--json={out}"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        # Once both rows of the first matrix are there, there is no need to wait for the rest.
        rows = []
        for line in process.stdout:
            if re.match(r"\S+ f(64|32)$", line):
                rows.append(line.split())
            if len(rows) == 2:
                process.send_signal(signal.SIGINT)
                break
        _, errors = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 10, errors)
        self.assertIn("interrupted", errors)
        self.assertEqual(rows, [["poisson2d:1000", "f64"], ["poisson2d:1000", "f32"]])
        with open(out, encoding="ascii") as file:
            types = [json.loads(line)["result"]["type"] for line in file]
        self.assertEqual(types[:2], ["f64", "f32"])
        self.assertEqual(os.listdir(self.folder), ["s.json"])

    def test_progress_on_a_terminal(self):
        """On a terminal, standard error shows what runs and the remaining time; otherwise it shows
        neither."""
        arguments = ["--peers", "loops", "poisson2d:400", "poisson2d:401", "poisson2d:402"]
        self.assertEqual(self.ok(*arguments[:-1]).stderr, "")
        terminal, stderr = pty.openpty()
        process = subprocess.Popen(
            [PROGRAM, "bench", "--backend", "omp", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=stderr,
        )
        os.close(stderr)
        seen = b""
        try:
            while chunk := os.read(terminal, 4096):
                seen += chunk
        except OSError:  # the other end of the terminal is closed
            pass
        os.close(terminal)
        self.assertEqual(process.wait(timeout=60), 0)
        self.assertRegex(seen, rb"[23] of 3: poisson2d:40[12] f64, (auto|loops-[a-z]+|preparing); about \d+ s left")

    def test_progress_within_a_solve(self):
        """A solve may take minutes: its iterations are shown, and an interruption ends it."""
        terminal, stderr = pty.openpty()
        process = subprocess.Popen(
            [PROGRAM, "bench", "--backend", "omp", "--op", "gmres", "poisson2d:400", "--peers", "none", "--max-iterations", "1e6"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=stderr,
        )
        self.addCleanup(process.kill)
        os.close(stderr)
        seen, interrupted = b"", False
        try:
            while chunk := os.read(terminal, 4096):
                seen += chunk
                if b"solving: iteration" in seen and not interrupted:
                    process.send_signal(signal.SIGINT)
                    interrupted = True
        except OSError:  # the other end of the terminal is closed
            pass
        os.close(terminal)
        self.assertTrue(interrupted, seen)
        self.assertRegex(seen, rb"1 of 1: poisson2d:400 f64, solving: iteration \d+, residual \S+")
        self.assertEqual(process.wait(timeout=60), 10)

    # ------------------------------------------------------------ errors

    def test_usage(self):
        self.fails(1, "give matrices", "--peers", "none")
        self.fails(1, "unknown operation \"multiply\"; there are: spmv, cg, gmres, bicgstab, batch, spmm", "--op", "multiply")
        self.fails(1, 'unknown peer "ours"; there are', "poisson2d:9", "--peers", "loops,ours")
        self.fails(1, "unknown suite \"x17\"; there are: small", "--suite", "x17")
        self.fails(1, "either matrices or --suite", "poisson2d:9", "--suite", "small")
        self.fails(1, "--size is the number of elements", "poisson2d:9", "--size", "5")
        self.fails(1, "give their number with --size", "poisson2d:9", "--op", "scan")
        self.fails(1, "--size 0: must be an integer of at least 1", "--op", "scan", "--size", "0")
        self.fails(1, "both JSON and CSV", "poisson2d:9", "--json", "--csv")
        self.fails(1, 'unknown method "nothing"', "poisson2d:9", "--method", "auto,nothing", "--peers", "none")
        self.fails(1, 'unknown rung "nothing"', "--op", "map", "--rung", "nothing")
        self.fails(1, 'unknown rung "nothing"; there are: auto, all, tiles', "--op", "scan", "--rung", "nothing")
        self.fails(1, 'unknown rung "nothing"; there are: auto, all, tiles', "--op", "segscan", "--rung", "nothing")
        self.fails(1, "poisson2d:N", "poisson2d:x", "--peers", "none")
        self.fails(1, "no generator has the name", "poisson9d:4", "--peers", "none")
        done = subprocess.run(
            [PROGRAM, "info", "poisson2d:9", "--suite", "small"], capture_output=True, text=True, check=False
        )
        self.assertEqual(done.returncode, 1)
        self.assertIn("spmv bench accepts it", done.stderr)

    def test_unwritable_outputs_are_known_before_the_work(self):
        nowhere = os.path.join(self.folder, "none", "out")
        for option in (f"--json={nowhere}", f"--csv={nowhere}"):
            done = self.fails(2, nowhere, "--suite", "small", option)
            self.assertEqual(done.stdout, "")

    def test_failure_keeps_the_old_output(self):
        old = self.path("old.json", "old\n")
        self.fails(1, "unknown method", "poisson2d:9", "--method", "nothing", f"--json={old}")
        self.fails(2, "absent.mtx", self.path("absent.mtx"), f"--json={old}")
        with open(old, encoding="ascii") as file:
            self.assertEqual(file.read(), "old\n")
        self.assertEqual(os.listdir(self.folder), ["old.json"])

    def test_one_bad_matrix_of_several(self):
        bad = self.path("bad.mtx", "%%MatrixMarket matrix coordinate real general\n2 2 1\n3 1 1.0\n")
        done = self.fails(3, "bad.mtx:3", bad, "poisson2d:9", "--peers", "none", "--json")
        (result,) = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual(result["matrix"]["name"], "poisson2d:9")

    def test_several_vectors_and_a_dot_product(self):
        squared = 1709 / 369  # products of C = A A per entry of A
        for arguments, op, name, vectors in [
            (["--vectors", "3"], "spmm", "poisson2d:9, 3 vectors", 3),
            (["--op", "spmm"], "spmm", "poisson2d:9, 4 vectors", 4),
            (["--op", "spmv-dot"], "spmv-dot", "poisson2d:9", 1),
            (["--op", "spgemm"], "spgemm", "poisson2d:9", squared),
            (["--op", "spgemm-numeric"], "spgemm-numeric", "poisson2d:9", squared),
        ]:
            done = self.ok("poisson2d:9", "--type", "f32", "--peers", "none", "--json", *arguments)
            result = json.loads(done.stdout)
            self.assertEqual((result["result"]["op"], result["matrix"]["name"]), (op, name))
            self.assertTrue(result["verify"]["passed"])
            gflops = 2e-9 * 369 * vectors / result["result"]["seconds"]["median"]
            self.assertAlmostEqual(result["result"]["spmv"]["gflops"] / gflops, 1, places=6)
        for arguments, name, products in [
            (["--right", "interpolation3d:6,2"], "poisson3d:6, times interpolation3d:6,2", 4032),
            (["--project", "interpolation3d:6,2"], "poisson3d:6, projected by interpolation3d:6,2", 4368),
        ]:
            done = self.ok("poisson3d:6", "--op", "spgemm", "--peers", "none", "--json", *arguments)
            result = json.loads(done.stdout)
            self.assertEqual(result["matrix"]["name"], name)
            self.assertTrue(result["verify"]["passed"])
            gflops = 2e-9 * products / result["result"]["seconds"]["median"]
            self.assertAlmostEqual(result["result"]["spmv"]["gflops"] / gflops, 1, places=6)
        self.fails(1, "--right is for --op spgemm", "poisson2d:9", "--right", "poisson2d:9")
        self.fails(1, "either --right or --project", "--op", "spgemm", "poisson2d:9", "--right", "poisson2d:9",
                   "--project", "poisson2d:9")
        done = self.ok("poisson2d:200", "--op", "spgemm", "--peers", "none", "--json", "--threads", "1")
        columns = 4 * 516004  # bytes of C's columns; the plan has them once, and once more while it is made
        most = math.inf if is_sanitized(PROGRAM) else 4 * columns
        self.assertTrue(columns < json.loads(done.stdout)["result"]["run_bytes"] < most)
        self.fails(4, "has 81 columns, the second one 4 rows", "--op", "spgemm", "poisson2d:9", "--right",
                   "poisson2d:2", "--peers", "none")
        self.fails(1, "--vectors is for --op spmm, sddmm and batch", "--op", "scan", "--vectors", "2")
        self.fails(1, "--vectors is for --op spmm, sddmm and batch", "--op", "spmv-dot", "--vectors", "2", "poisson2d:9")
        self.fails(1, "--vectors 0", "--vectors", "0", "poisson2d:9")
        self.fails(1, "--layout is for --op spmm", "--layout", "columns", "poisson2d:9")
        self.fails(4, "real types", "--op", "spmv-dot", "--type", "c64", "poisson2d:9")

    def test_several_widths(self):
        many = ["--vectors", "2,17", "poisson2d:9", "uniform:30,40,5", "--layout", "columns"]
        results = [json.loads(line) for line in self.ok(*many, "--peers", "none", "--json").stdout.splitlines()]
        self.assertEqual([r["matrix"]["name"] for r in results],
                         ["poisson2d:9, 2 vectors", "poisson2d:9, 17 vectors", "uniform:30,40,5, 2 vectors",
                          "uniform:30,40,5, 17 vectors"])
        self.assertTrue(all(r["verify"]["passed"] for r in results))
        done = self.fails(9, "CHECK FAILED", *many, "--peers", "none", env={"SPMV_TEST_PLANT_ERROR": "0"})
        self.assertEqual(done.stderr.count("CHECK FAILED"), 4)
        done = self.ok("--op", "sddmm", "--vectors", "3,20", "uniform:30,40,5", "--peers", "none", "--json")
        results = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual([r["matrix"]["name"][-10:] for r in results], [" 3 vectors", "20 vectors"])
        self.assertTrue(all(r["verify"]["passed"] and r["result"]["op"] == "sddmm" for r in results))
        self.fails(9, "CHECK FAILED", "--op", "sddmm", "uniform:30,40,5", env={"SPMV_TEST_PLANT_ERROR": "0"})
        done = self.ok("--op", "batch", "--vectors", "3", "poisson2d:6", "--method", "cg,loop-cg", "--json")
        results = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertTrue(len(results) == 2 and all(r["verify"]["passed"] for r in results))
        self.fails(9, "CHECK FAILED", "--op", "batch", "poisson2d:6", env={"SPMV_TEST_PLANT_ERROR": "0"})
        self.fails(1, "--vectors : must be an integer", "--vectors", "2,", "poisson2d:9")
        self.fails(1, "--vectors x: must be an integer", "--vectors", "2,x", "poisson2d:9")
        self.fails(1, "at most 8 numbers", "--vectors", "1,2,3,4,5,6,7,8,9", "poisson2d:9")

    def test_wrong_results_are_told(self):
        planted = {"SPMV_TEST_PLANT_ERROR": "0"}
        self.fails(9, "CHECK FAILED", "poisson2d:9", "--op", "spmv-dot", "--peers", "none", env=planted)
        self.fails(9, "CHECK FAILED", "poisson2d:9", "--vectors", "2", "--peers", "none", env=planted)
        done = self.fails(9, "CHECK FAILED", "poisson2d:9", "--peers", "none", env=planted)
        self.assertIn("WRONG", done.stdout)
        done = self.fails(9, "CHECK FAILED", "poisson2d:9", "--peers", "none", "--json", env=planted)
        self.assertFalse(json.loads(done.stdout)["verify"]["passed"])
        self.fails(9, "CHECK FAILED", "--op", "scan", "--size", "999", env=planted)

    def test_misbehaving_peers(self):
        """A module that cannot be opened and peers with wrong results are reported; spmv is still
        measured."""
        broken = self.path("spmv_peer_loops.so", "no library\n")
        done = self.ok("poisson2d:20", "--peers", "loops", env={"SPMV_PEER_PATH": os.path.dirname(broken)})
        self.assertEqual(done.stdout.count("missing:"), 3)
        fakes = os.environ.get("SPMV_FAKE_PEERS")
        self.assertTrue(fakes, "the test needs the folder of fake peers")
        done = self.ok("poisson2d:20", "--peers", "loops", "--json", env={"SPMV_PEER_PATH": fakes})
        peers = {p["name"]: p for p in json.loads(done.stdout)["peers"]}
        self.assertFalse(peers["loops-static"]["verify"]["passed"])
        self.assertFalse(peers["loops-guided"]["repeatable"])
        self.assertIn("failed", peers["loops-merge"])
        self.assertIn("loops-static", done.stderr)

    def test_a_job_above_the_limit_is_added_up(self):
        rows = self.path("rows.mtx", "%%MatrixMarket matrix coordinate real general\n2147483647 3 1\n1 1 2\n")
        self.fails(5, "the whole job needs", rows, "--peers", "none", "--max-memory=1G")

    def test_empty_matrices(self):
        sizes = ((0, 0), (3, 0), (0, 4), (5, 5))
        paths = [
            self.path(f"e{rows}x{cols}.mtx", f"%%MatrixMarket matrix coordinate real general\n{rows} {cols} 0\n")
            for rows, cols in sizes
        ]
        results = [json.loads(line) for line in self.ok(*paths, "--peers", "loops", "--json").stdout.splitlines()]
        self.assertEqual([(r["matrix"]["rows"], r["matrix"]["cols"]) for r in results], list(sizes))
        self.assertTrue(all(r["verify"]["passed"] for r in results))


if __name__ == "__main__":
    PROGRAM, SOURCE = os.path.abspath(sys.argv[1]), sys.argv[2]
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])

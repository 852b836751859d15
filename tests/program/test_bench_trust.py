#!/usr/bin/env python3
"""Tests spmv bench: warnings about unreliable figures, the stored bandwidth, solves with
preconditioners, the width of its table.

test_bench_trust.py PROGRAM SOURCE_DIR [unittest arguments]. Python's standard library only.
SPMV_FAKE_PEERS: the folder of the modules of fake peers.

SPDX-License-Identifier: BSD-3-Clause
"""

import csv
import json
import os
import re
import stat
import subprocess
import sys
import time
import unittest

import test_program

PROGRAM = SOURCE = ""
SENTENCE = "figures cannot be trusted: "


def last_level_array_bytes():
    """The size in bytes of an array of the bandwidth measurement, under SPMV_TEST_CACHE_BYTES."""
    bytes_ = min(4 * int(os.environ["SPMV_TEST_CACHE_BYTES"]), 1 << 30)
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGESIZE")
    return min(bytes_, memory // 16)


def property_of(path, name):
    with open(path, encoding="ascii") as file:
        for line in file:
            if line.startswith(name):
                return line.split(":", 1)[1].strip()
    return ""


class Bench(test_program.Case):
    def setUp(self):
        super().setUp()
        self.cache = os.path.join(self.folder, "cache")
        self.env = {"XDG_CACHE_HOME": self.cache, "SPMV_TEST_CACHE_BYTES": "1048576"}
        os.environ.update(SPMV_TEST_CACHE_BYTES="1048576")

    def use_full_times(self):
        """Makes batches of this test as long as a user's."""
        short = os.environ.pop("SPMV_TEST_SHORT_TIMES", None)
        if short is not None:
            self.addCleanup(os.environ.update, SPMV_TEST_SHORT_TIMES=short)

    def run_bench(self, *arguments, env=None, threads=2, **more):
        return subprocess.run(
            [PROGRAM, "bench", "--backend", "omp", "--threads", str(threads), *arguments],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, check=False,
            env=dict(os.environ, **self.env, **(env or {})), **more)

    def ok(self, *arguments, **more):
        done = self.run_bench(*arguments, **more)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def rows(self, table):
        """The words of each row of the table of one matrix, by system; the key of the header is
        "system"."""
        return {line.split()[0]: line.split() for line in table.splitlines() if not line.startswith(("#", " "))}

    # ------------------------------------------------------------ the spread of rows

    def bench_fakes(self, *arguments):
        self.use_full_times()  # the modules' clock counts in batches
        fakes = os.path.join(os.environ["SPMV_FAKE_PEERS"], "clock")
        return self.ok("poisson2d:20", "--peers", "loops", *arguments, env={"SPMV_PEER_PATH": fakes})

    def test_rows_with_a_large_spread_are_marked(self):
        lines, table = os.path.join(self.folder, "r.json"), os.path.join(self.folder, "r.csv")
        done = self.bench_fakes(f"--json={lines}", f"--csv={table}", "--summary")
        with open(lines, encoding="utf-8") as file:
            (result,) = [json.loads(line) for line in file]
        with open(table, encoding="utf-8", newline="") as file:
            by_csv = {row["system"]: row for row in csv.DictReader(file)}
        rows = self.rows(done.stdout.split("# summary")[0])
        own_steady = result["result"]["seconds"]["steady"]
        # Columns: system, us with its mark, min, spread, flushed, GB/s, share, x best.
        self.assertEqual(rows["loops-static"][1:4], ["1000.00", "1000.00", "0%"])
        self.assertEqual(rows["loops-guided"][1:4], ["3000.00*", "1000.00", "200%"])
        self.assertEqual(rows["loops-merge"][1:4], ["2000.00", "2000.00", "0%"])
        self.assertEqual([rows[name][7] for name in ("loops-static", "loops-guided", "loops-merge")],
                         ["1.000", "(0.333)", "0.500"])
        auto = rows["auto"][1:]  # followed by "(tiles)"
        self.assertEqual(auto[1].endswith("*"), not own_steady)
        self.assertEqual(auto[7].startswith("("), not own_steady)
        peers = {peer["name"]: peer for peer in result["peers"]}
        for name, spread in ("loops-static", 0), ("loops-guided", 2), ("loops-merge", 0):
            self.assertAlmostEqual(peers[name]["seconds"]["spread"], spread, places=9)
            self.assertEqual(peers[name]["seconds"]["steady"], spread == 0)
            self.assertAlmostEqual(float(by_csv[name]["spread"]), spread, places=9)
            self.assertEqual(by_csv[name]["steady"], "yes" if spread == 0 else "no")
            self.assertEqual(by_csv[name]["speedup_counts"], "yes" if spread == 0 else "no")
        self.assertEqual(by_csv["auto"]["steady"], "yes" if own_steady else "no")
        seconds = result["result"]["seconds"]
        self.assertAlmostEqual(seconds["spread"], seconds["median"] / seconds["min"] - 1, places=9)
        self.assertEqual(own_steady, seconds["spread"] <= 0.2)

        trust = result["trust"]
        unsteady = 1 + (not own_steady)
        self.assertEqual((trust["rows"], trust["unsteady_rows"], trust["trusted"]), (4, unsteady, False))
        self.assertTrue(trust["sentence"].startswith(SENTENCE))
        self.assertIn(f"{unsteady} of 4 rows", trust["sentence"])
        self.assertIn("# " + SENTENCE, done.stdout)
        self.assertIn(trust["sentence"], " ".join(done.stdout.split()).replace(" # ", " "))
        self.assertEqual(done.stderr, "")

    def test_marked_rows_are_left_out_of_means(self):
        done = self.bench_fakes("--summary", "--json=" + os.path.join(self.folder, "r.json"))
        with open(os.path.join(self.folder, "r.json"), encoding="utf-8") as file:
            (result,) = [json.loads(line) for line in file]
        own = result["result"]["seconds"]
        summary = done.stdout[done.stdout.index("# summary") :].splitlines()
        rows = {" ".join(line.split()[2:-6]): line.split()[-6:] for line in summary if line.startswith("f64 ")}
        self.assertEqual(rows["loops-guided"], ["0", "1", "-", rows["loops-guided"][3], "-", "-"])
        for name, ms in ("loops-static", 1), ("loops-merge", 2), ("the best peer", 1):
            if own["steady"]:
                self.assertEqual(rows[name][:2], ["1", "0"])
                ratio = 1e-3 * ms / own["median"]
                self.assertAlmostEqual(float(rows[name][2]) / ratio, 1, delta=0.01)
            else:
                self.assertEqual(rows[name][:3], ["0", "1", "-"])

    # ------------------------------------------------------------ the load at the start

    def test_a_busy_machine_is_told(self):
        """The program shares one processor with a process that never sleeps."""
        self.use_full_times()
        processor = min(os.sched_getaffinity(0))

        def pin():
            os.sched_setaffinity(0, {processor})

        with subprocess.Popen([sys.executable, "-c", "print(flush=True)\nwhile True: pass"],
                              stdout=subprocess.PIPE, preexec_fn=pin) as spinner:
            try:
                spinner.stdout.readline()
                done = self.ok("poisson2d:20", "--peers", "none", "--json", threads=1, preexec_fn=pin)
                quiet = self.ok("poisson2d:20", "--peers", "none", "--json", "-q", threads=1, preexec_fn=pin)
                table = self.ok("poisson2d:20", "--peers", "none", threads=1, preexec_fn=pin)
            finally:
                spinner.kill()
        result = json.loads(done.stdout)
        trust = result["trust"]
        self.assertGreater(trust["others_share"], 0.5)
        self.assertLessEqual(trust["others_share"], 1)
        self.assertEqual((trust["processors"], trust["trusted"]), (1, False))
        self.assertGreaterEqual(trust["load_average"], 0)
        self.assertGreaterEqual(trust["machine_processors"], 1)
        percent = f"{100 * trust['others_share']:.0f}%"
        self.assertIn(f"other processes used {percent} of the processors", trust["sentence"])
        self.assertIn(SENTENCE, done.stderr)
        self.assertEqual(quiet.stderr, "")
        self.assertRegex(table.stdout, r"# at the start: load average [0-9.]+, other processes used \d+% of 1 processor\n")
        self.assertIn("# " + SENTENCE, table.stdout)
        self.assertEqual(table.stderr, "")
        # Later runs do not use a bandwidth that was measured under load.
        self.assertEqual(result["bandwidth_age_seconds"], 0)
        self.assertFalse(os.path.exists(os.path.join(self.cache, "spmv")))

    def test_more_threads_than_processors(self):
        processor = min(os.sched_getaffinity(0))
        done = self.ok("poisson2d:9", "--peers", "none", "--json", threads=3,
                       preexec_fn=lambda: os.sched_setaffinity(0, {processor}))
        trust = json.loads(done.stdout)["trust"]
        self.assertFalse(trust["trusted"])
        self.assertRegex(trust["sentence"], "3 threads share 1 processors|other processes used")

    def test_reading_is_told_likewise(self):
        path = os.path.join(SOURCE, "data", "arrow200.mtx")
        done = self.ok("--op", "load", path, "--json")
        result = json.loads(done.stdout)
        seconds, trust = result["result"]["seconds"], result["trust"]
        self.assertAlmostEqual(seconds["spread"], seconds["median"] / seconds["min"] - 1, places=9)
        self.assertEqual(trust["rows"], 1)
        self.assertEqual(trust["unsteady_rows"], 0 if seconds["steady"] else 1)
        self.assertEqual(trust["trusted"], "sentence" not in trust)
        self.assertEqual(SENTENCE in done.stderr, not trust["trusted"])

    # ------------------------------------------------------------ the saved bandwidth

    def plant(self, age=600, figures="1234000000000 5678000000000 910000000000", threads=2):
        """Writes the file that an earlier run would have left, with the name and text of
        bench/devices/bandwidth_cache.c; returns its path."""
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            boot = file.read().strip()
        cpu = property_of("/proc/cpuinfo", "model name") or "unknown"
        rest = (f";spmv bandwidth 1;{cpu[:103]};;;{threads} threads;"
                f"processors {property_of('/proc/self/status', 'Cpus_allowed_list')};{last_level_array_bytes()} bytes")
        sum_ = 14695981039346656037
        for byte in rest.encode():
            sum_ = (sum_ ^ byte) * 1099511628211 % 2**64
        folder = os.path.join(self.cache, "spmv")
        os.makedirs(folder, mode=0o700, exist_ok=True)
        path = os.path.join(folder, f"bandwidth-{sum_:016x}")
        with open(path, "w", encoding="ascii") as file:
            file.write(f"{boot}{rest}\n{int(time.time()) - age} {figures} {last_level_array_bytes()} {threads}\n")
        return path

    def bandwidth(self):
        """The bandwidth in the JSON of one run: read GB/s, age in seconds."""
        result = json.loads(self.ok("poisson2d:9", "--peers", "none", "--json").stdout)
        return result["machine"]["cpu"]["read_gbs"], result["bandwidth_age_seconds"]

    def test_a_kept_bandwidth_is_used(self):
        path = self.plant()
        read, age = self.bandwidth()
        self.assertAlmostEqual(read, 5678, places=6)
        self.assertTrue(600 <= age < 3600)
        table = self.ok("poisson2d:9", "--peers", "none").stdout
        self.assertRegex(table, r"# bandwidth measured 1\d min ago: copy 1234.0 GB/s, read 5678.0 GB/s, triad 910.0 GB/s")
        self.assertEqual(os.listdir(os.path.dirname(path)), [os.path.basename(path)])

    def test_what_cannot_be_used_is_measured_anew(self):
        def unlink_and(make):
            def plant(path):
                os.unlink(path)
                make(path)
            return plant

        def write(text):
            def plant(path):
                with open(path, "wb") as file:
                    file.write(text)
            return plant

        def edit(change):
            def plant(path):
                with open(path, encoding="ascii") as file:
                    text = file.read()
                with open(path, "w", encoding="ascii") as file:
                    file.write(change(text))
            return plant

        def link(path):
            os.rename(path, path + ".elsewhere")
            os.symlink(path + ".elsewhere", path)

        def link_of_the_folder(path):
            folder = os.path.dirname(path)
            os.rename(folder, folder + ".elsewhere")
            os.symlink(folder + ".elsewhere", folder)

        spoils = {
            "old": lambda path: self.plant(age=3700), "of the future": lambda path: self.plant(age=-3600),
            "empty": write(b""), "no text": write(bytes(range(256)) * 64), "cut off": edit(lambda text: text[:-20]),
            "more text": edit(lambda text: text + "1\n"), "another boot": edit(lambda text: ("1" if text[0] == "0" else "0") + text[1:]),
            "0 GB/s": edit(lambda text: text.replace(" 5678000000000 ", " 0 ")),
            "long numbers": edit(lambda text: text.replace(" 5678000000000 ", " " + "9" * 5000 + " ")),
            "a FIFO": unlink_and(os.mkfifo), "a folder": unlink_and(os.mkdir), "a link": link,
            "a link to the folder": link_of_the_folder,
            "writable by all": lambda path: os.chmod(path, 0o666),
            "a folder writable by all": lambda path: os.chmod(os.path.dirname(path), 0o777),
        }  # fmt: skip
        for name, spoil in spoils.items():
            with self.subTest(name):
                self.cache = os.path.join(self.folder, name)
                self.env["XDG_CACHE_HOME"] = self.cache
                spoil(self.plant())
                read, age = self.bandwidth()
                self.assertNotAlmostEqual(read, 5678, places=3)
                self.assertEqual(age, 0)

    def test_no_folder_is_no_failure(self):
        blocked = os.path.join(self.folder, "blocked")
        with open(blocked, "w", encoding="ascii"):
            pass
        for place in blocked, os.path.join(self.folder, "none", "none"), "relative", "":
            self.env.update(XDG_CACHE_HOME=place, HOME=blocked)
            self.assertEqual(self.bandwidth()[1], 0)
        self.assertFalse(os.path.exists("relative"))

    def test_what_is_kept_is_the_users_alone(self):
        """Only an undisturbed measurement is kept; on a busy machine nothing is."""
        done = json.loads(self.ok("poisson2d:9", "--peers", "none", "--json").stdout)
        folder = os.path.join(self.cache, "spmv")
        trust = done["trust"]
        disturbed = trust["others_share"] > 0.1 or trust["load_average"] > 1.5 * trust["machine_processors"]
        disturbed = disturbed or trust["processors"] < 2
        self.assertEqual(os.path.isdir(folder), not disturbed, trust)
        if disturbed:
            return
        (name,) = os.listdir(folder)
        self.assertEqual(stat.S_IMODE(os.stat(folder).st_mode), 0o700)
        self.assertEqual(stat.S_IMODE(os.stat(os.path.join(folder, name)).st_mode), 0o600)
        self.assertEqual(os.path.join(folder, name), self.plant())

    # ------------------------------------------------------------ solutions

    def test_solutions_with_preconditioners(self):
        lines, table = os.path.join(self.folder, "r.json"), os.path.join(self.folder, "r.csv")
        names = ["none", "jacobi", "block-jacobi", "chebyshev", "ic0"]
        done = self.ok("poisson2d:24", "--op", "cg", "--precond", ",".join([*names, "auto"]), "--peers", "none",
                       f"--json={lines}", f"--csv={table}")
        with open(lines, encoding="utf-8") as file:
            results = [json.loads(line)["result"] for line in file]
        with open(table, encoding="utf-8", newline="") as file:
            by_csv = {row["precond"]: row for row in csv.DictReader(file)}
        self.assertEqual([r["cg"]["precond_asked"] for r in results], [*names, "auto"])
        iterations = {}
        for r in results:
            cg = r["cg"]
            asked = cg["precond_asked"]
            self.assertTrue(cg["precond"] == asked if asked != "auto" else cg["precond"] in names)
            self.assertEqual(cg["status"], "ok")
            self.assertLessEqual(cg["relative_residual"], 1e-8)
            self.assertEqual(cg["solution_seconds"], r["seconds"]["median"])
            self.assertAlmostEqual(cg["seconds_per_iteration"] * cg["iterations"], cg["solution_seconds"], delta=1e-12)
            self.assertGreaterEqual(cg["precond_seconds"], 0)
            self.assertNotIn("gbs", r)
            self.assertTrue(r["bitwise"]["equal"])
            self.assertEqual(float(by_csv[asked]["median"]), cg["solution_seconds"])
            self.assertEqual(float(by_csv[asked]["precond_seconds"]), cg["precond_seconds"])
            iterations[asked] = cg["iterations"]
        # The solver uses the preconditioner: ic0 takes fewer iterations, and its setup takes time.
        self.assertLess(iterations["ic0"], iterations["none"])
        self.assertGreater(results[4]["cg"]["precond_seconds"], 0)
        # The time of a run includes the setup.
        self.assertGreater(results[4]["seconds"]["max"], 0)
        head = next(line for line in done.stdout.splitlines() if line.startswith("system"))
        self.assertIn("set-up, us", head)
        self.assertIn("whole solutions", done.stdout)
        self.assertRegex(done.stdout, r"(?m)^auto \([a-z]+\), ic0 ")

    def test_peers_of_whole_solutions(self):
        fakes, table = os.path.join(os.environ["SPMV_FAKE_PEERS"], "solvers"), os.path.join(self.folder, "r.csv")
        done = self.ok("poisson2d:24", "--op", "cg", "--precond", "ic0,none", "--peers", "hypre", "--json", "--summary",
                       f"--csv={table}", env={"SPMV_PEER_PATH": fakes})
        for line in done.stdout.splitlines():
            plain, own = json.loads(line)["peers"]
            self.assertEqual([peer["name"] for peer in (plain, own)], ["hypre-cg", "hypre-amg-cg"])
            for peer, precond, seconds in (plain, "none", 0), (own, "own", 3600):
                cg = peer["cg"]
                self.assertEqual((cg["precond"], cg["precond_asked"], cg["counts"]), (precond, precond, True))
                self.assertEqual((cg["solution_seconds"], cg["precond_seconds"]), (peer["seconds"]["median"], seconds))
            self.assertIs(plain["cg"]["iterations_as_ours"], False)
            self.assertNotIn("iterations_as_ours", own["cg"])
        with open(table, encoding="utf-8", newline="") as file:
            by_name = {row["system"]: (row["precond"], row["precond_seconds"]) for row in csv.DictReader(file)}
        self.assertEqual(by_name["hypre-cg"], ("", ""))
        self.assertEqual((by_name["hypre-amg-cg"][0], float(by_name["hypre-amg-cg"][1])), ("own", 3600))
        rows = re.findall(r"(?m)^f64 +(auto, [a-z0-9]+) +(the best peer|hypre(?:-amg)?-cg) ", done.stderr)
        self.assertEqual(sorted(rows), sorted((own, peer) for own in ("auto, ic0", "auto, none")
                                              for peer in ("the best peer", "hypre-cg", "hypre-amg-cg")))  # fmt: skip
        alone = self.ok("poisson2d:24", "--op", "cg", "--peers", "hypre-amg-cg", env={"SPMV_PEER_PATH": fakes})
        self.assertIn("missing: it takes part with --precond only", alone.stdout)

    def test_all_preconditioners(self):
        done = self.ok("poisson2d:12", "--op", "cg", "--precond", "all", "--peers", "none", "--json")
        results = [json.loads(line)["result"] for line in done.stdout.splitlines()]
        self.assertEqual(len(results), 9)
        self.assertEqual([r["asked"] for r in results], ["auto"] * 9)
        self.assertTrue(all("cg" in r for r in results))

    def test_preconditioners_that_there_are_not(self):
        for words, sentence in ((("--op", "cg", "--precond", "none,icc"), 'unknown preconditioner "icc"; '),
                                (("--precond", "jacobi"), "--precond is for --op cg, gmres and bicgstab, not for --op spmv"),
                                (("--op", "load", "--precond", "jacobi"), "--precond is not for bench --op load")):
            done = self.run_bench("poisson2d:9", *words)
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn(sentence, done.stderr)

    # ------------------------------------------------------------ the table

    def test_the_table_has_120_columns(self):
        """The table has at most 120 columns also with missing peers, failures and long names. Names
        are not cut, and no line has the program's prefix."""
        long_name = os.path.join(self.folder, "a-matrix-with-a-name-of-more-than-sixty-characters-in-its-file-name.mtx")
        with open(os.path.join(SOURCE, "data", "symmetric4.mtx"), "rb") as file, open(long_name, "wb") as copy:
            copy.write(file.read())
        stem = os.path.basename(long_name)[:-4]
        fakes = os.environ["SPMV_FAKE_PEERS"]
        for words, env in (
            ([long_name, "poisson2d:100", "--peers", "all", "--method", "all", "--summary"], {}),
            ([long_name, "--peers", "loops", "--summary"], {"SPMV_PEER_PATH": os.path.join(fakes, "clock")}),
            ([long_name, "--peers", "loops", "--summary"], {"SPMV_PEER_PATH": self.folder}),
            (["poisson2d:10", "--op", "cg", "--rung", "all", "--precond", "all", "--summary"], {}),
            (["poisson2d:30", "--op", "cg", "--summary"], {"SPMV_PEER_PATH": os.path.join(fakes, "solvers")}),
            (["--op", "scan", "--size", "3000", "--rung", "all"], {}),
            (["--op", "load", long_name, os.path.join(SOURCE, "data", "symmetric4.mtx")], {}),
        ):
            done = self.run_bench(*words, env=env)
            self.assertIn(done.returncode, (0, 9), done.stderr)
            for line in done.stdout.splitlines():
                if not line.startswith(self.folder):  # a path may make a line longer
                    self.assertLessEqual(len(line), 120, line)
                self.assertNotIn("spmv:", line)
            if long_name in words and "load" not in words:
                self.assertIn(f"\n{stem} f64\n", done.stdout)
            if "--summary" in words and "solvers" not in str(env):
                self.assertIn("# summary", done.stdout)

    def test_large_times_keep_their_columns(self):
        done = self.ok("poisson2d:200", "--op", "cg", "--precond", "none", "--peers", "none")
        lines = done.stdout.splitlines()
        head = next(i for i, line in enumerate(lines) if line.startswith("system"))
        self.assertEqual(len(lines[head + 2]), len(lines[head]))


if __name__ == "__main__":
    PROGRAM, SOURCE = os.path.abspath(sys.argv[1]), sys.argv[2]
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])

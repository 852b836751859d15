#!/usr/bin/env python3
"""Tests scripts/suitesparse.py with a local server that truncates, delays, changes and corrupts its
files.

test_suitesparse.py SUITESPARSE_PY [unittest arguments]. Needs no network. The server logs the
requests.

SPDX-License-Identifier: BSD-3-Clause
"""

import contextlib
import fcntl
import gzip
import hashlib
import http.server
import importlib.util
import io
import json
import os
import pty
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
import unittest
import unittest.mock

SCRIPT = ""
INDEX = """4
20-Jul-2018 14:33:25
HB,tiny,3,3,4,1,0,0,1,1,1,structural problem,4
Graphs,web,5,7,9,1,1,0,0,0.25,0.25,"directed graph, weighted",9
Graphs,tiny,50,50,200,1,0,0,0,1,1,undirected graph
Big,huge-1,100000,100000,5000000,0,0,1,0,1,0.5,2D/3D problem,5000001
"""
MTX = "%%MatrixMarket matrix coordinate real general\n3 3 2\n1 1 2\n3 2 -1\n"
# The program that is measured. The name of the matrix says how it behaves.
FAKE = f"#!{sys.executable}" + """
import json, os, sys, time
subject, written = sys.argv[2], sys.argv[-1]
assert sys.argv[1] == "bench" and written.startswith("--json=")
name = os.path.basename(subject)
text = open(subject).read() if subject.endswith(".mtx") else ""
result = {"matrix": {"name": name}, "argv": sys.argv[3:-1], "subject": subject, "text": text}
if name == "hangs.mtx":
    time.sleep(60)
with open(written[7:], "w") as out:
    if name == "garbage.mtx":
        out.write("[1]\\n")
    elif name != "silent.mtx":
        out.write(json.dumps(result) + "\\n" + json.dumps({"second": name}) + "\\n")
print("a table for people")
sys.exit(9 if name == "fails.mtx" else 0)
"""


def archive(name, members=None):
    """A .tar.gz with NAME/NAME.mtx, or with the members [(TarInfo or path, text)] of any type."""
    packed = io.BytesIO()
    with gzip.GzipFile(fileobj=packed, mode="wb", compresslevel=1, mtime=0) as plain:
        for member, text in members or [(f"{name}/{name}.mtx", MTX)]:
            info = tarfile.TarInfo(member) if isinstance(member, str) else member
            data = text if isinstance(text, bytes) else text.encode()
            info.size = info.size or len(data)
            plain.write(info.tobuf(tarfile.GNU_FORMAT) + data + bytes(-len(data) % 512))
        plain.write(bytes(1024))
    return packed.getvalue()


def noise(name, seed=1, size=200_000):
    """An archive of incompressible data, so that it is long."""
    return archive(name, [(f"{name}/{name}.mtx", random.Random(seed).getrandbits(8 * size).to_bytes(size, "little"))])


class Served:
    def __init__(self, data, tag='"1"', date="Fri, 20 Jul 2018 14:33:25 GMT"):
        self.data, self.tag, self.date = data, tag, date


class Server(http.server.ThreadingHTTPServer):
    """files: path -> Served. moves: path -> the faults of the next requests, in order; later
    requests are served correctly."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.files, self.moves, self.log = {}, {}, []
        self.over = threading.Event()
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server_address[1]}"

    def handle_error(self, request, client_address):
        pass  # clients that hang up are what this is about

    def asked(self, path):
        """(Range, If-Range) of each request for a path."""
        return [entry[1:] for entry in self.log if entry[0] == path]


class Handler(http.server.BaseHTTPRequestHandler):
    wbufsize = 1 << 16  # headers and body in one packet: two small ones wait for each other

    def log_message(self, *arguments):
        pass

    def do_GET(self):
        self.server.log.append((self.path, self.headers.get("Range"), self.headers.get("If-Range")))
        moves = self.server.moves.get(self.path, [])
        move = moves.pop(0) if moves else {}
        if "change" in move:
            self.server.files[self.path] = move["change"]
        file = self.server.files.get(self.path)
        status = move.get("status", 404 if file is None else 200)
        if status not in (200, 206):
            self.send_response(status, move.get("reason"))
            for name, value in move.get("headers", {}).items():
                self.send_header(name, value)
            self.end_headers()
            return
        start, wanted = 0, self.headers.get("Range")
        if wanted and not move.get("ignore_range"):
            same = self.headers.get("If-Range") in (None, file.tag, file.date) or move.get("ignore_if_range")
            start = int(re.fullmatch(r"bytes=(\d+)-", wanted)[1]) if same else 0
        if start and start >= len(file.data):
            self.send_response(416)
            self.end_headers()
            return
        body = file.data[start:]
        self.send_response(206 if start else 200)
        if start:
            told = start + move.get("shift", 0)
            span = f"bytes {told}-{len(file.data) - 1}/{len(file.data)}"
            self.send_header("Content-Range", move.get("range", span))
        if not move.get("no_length"):
            self.send_header("Content-Length", move.get("length", str(len(body))))
        for name, value in (("ETag", file.tag), ("Last-Modified", file.date)):
            if value is not None:
                self.send_header(name, value)
        self.end_headers()
        first = move.get("after", len(body))
        self.wfile.write(body[:first])
        self.wfile.flush()
        if move.get("stall"):
            self.server.over.wait(30)
        elif "pause" in move:
            time.sleep(move["pause"])
            self.wfile.write(body[first:])


class Case(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        self.server = Server()
        self.addCleanup(self.stop)
        self.server.files["/files/ssstats.csv"] = Served(INDEX.encode())
        self.cache = os.path.join(self.folder, "cache", "spmv", "suitesparse")
        self.script = SCRIPT

    def stop(self):
        self.server.over.set()
        self.server.shutdown()
        self.server.server_close()

    def start(self, *arguments, **pipes):
        """The script as a process that runs beside the test."""
        return subprocess.Popen(self.command(*arguments), env=self.environment(), stdin=subprocess.DEVNULL, **pipes)

    def environment(self):
        keep = {name: os.environ[name] for name in ("LANG", "LD_LIBRARY_PATH") if name in os.environ}
        return dict(
            keep,
            PATH=os.path.join(self.folder, "bin"),
            HOME=self.folder,
            XDG_CACHE_HOME=os.path.join(self.folder, "cache"),
            no_proxy="*",
            SPMV_SUITESPARSE_URL=self.server.url,
            PYTHONDONTWRITEBYTECODE="1",
            TMPDIR=self.folder,
        )

    def command(self, *words):
        quick = [] if "--backoff" in words else ["--backoff", "0.01"]
        # -S: no package beside Python's own is in reach
        return [sys.executable, "-S", self.script, words[0], *quick, *words[1:]]

    def run_script(self, *words, apart=False, **more):
        """Runs the script as a process or, ten times as fast, in this one: exit status and
        output."""
        if apart or more:
            return subprocess.run(
                self.command(*words),
                env=self.environment(),
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                timeout=60,
                check=False,
                **more,
            )
        spec = importlib.util.spec_from_file_location("suitesparse", self.script)
        script = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(script)
        with contextlib.ExitStack() as after:
            out, err = (after.enter_context(tempfile.TemporaryFile("w+")) for _ in range(2))
            after.callback(os.chdir, os.getcwd())
            os.chdir(self.folder)
            after.callback(setattr, tempfile, "tempdir", tempfile.tempdir)
            tempfile.tempdir = None  # so that TMPDIR is read again
            after.enter_context(unittest.mock.patch.dict(os.environ, self.environment(), clear=True))
            after.enter_context(unittest.mock.patch.object(sys, "argv", self.command(*words)[2:]))
            after.enter_context(contextlib.redirect_stdout(out))
            after.enter_context(contextlib.redirect_stderr(err))
            try:
                status = script.main()
            except SystemExit as left:
                status = left.code
            out.flush()
            err.flush()
            texts = []
            for file in (out, err):
                file.seek(0)
                texts.append(file.read())
        return subprocess.CompletedProcess(words, status, *texts)

    def expect(self, status, *words, **more):
        """Runs the script, checks its exit status, and returns its standard error."""
        done = self.run_script(*words, **more)
        self.assertEqual(done.returncode, status, done.stderr)
        self.assertNotIn("Traceback", done.stderr)
        self.assertNotIn("\r", done.stderr)
        self.out = done.stdout
        return done.stderr

    def serve(self, matrix, data=None, **more):
        """Puts an archive on the server; returns its path there."""
        path = f"/MM/{matrix}.tar.gz"
        self.server.files[path] = Served(archive(matrix.split("/")[1]) if data is None else data, **more)
        return path

    def cached(self, matrix):
        with open(os.path.join(self.cache, matrix + ".tar.gz"), "rb") as file:
            return file.read()

    def assert_fetched(self, matrix, data):
        self.assertEqual(hashlib.sha256(self.cached(matrix)).hexdigest(), hashlib.sha256(data).hexdigest())
        beside = os.listdir(os.path.dirname(os.path.join(self.cache, matrix)))
        self.assertEqual([name for name in beside if not name.endswith(".tar.gz")], [])
        with open(os.path.join(self.cache, "sha256sums"), encoding="utf-8") as sums:
            self.assertIn(f"{hashlib.sha256(data).hexdigest()}  {matrix}.tar.gz\n", sums.readlines())

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path


class TestList(Case):
    def names(self, *words):
        self.expect(0, "list", "--json", *words)
        return [f"{m['group']}/{m['name']}" for m in map(json.loads, self.out.splitlines())]

    def test_filters(self):
        self.assertEqual(self.names(), ["HB/tiny", "Graphs/web", "Graphs/tiny", "Big/huge-1"])
        for words, expected in [
            (["--group", "graphs"], ["Graphs/web", "Graphs/tiny"]),
            (["--group", "*B*"], ["HB/tiny", "Big/huge-1"]),
            (["--kind", "GRAPH"], ["Graphs/web", "Graphs/tiny"]),
            (["--kind", "graph, w"], ["Graphs/web"]),
            (["--name", "t?ny"], ["HB/tiny", "Graphs/tiny"]),
            (["--min-nnz", "9", "--max-nnz", "200"], ["Graphs/web", "Graphs/tiny"]),
            (["--min-nnz", "5e6"], ["Big/huge-1"]),
            (["--max-rows", "5"], ["HB/tiny", "Graphs/web"]),
            (["--min-rows", "6", "--max-cols", "50"], ["Graphs/tiny"]),
            (["--min-cols", "51"], ["Big/huge-1"]),
            (["--spd"], ["HB/tiny"]),
            (["--spd", "--group", "Graphs"], []),
        ]:
            self.assertEqual(self.names(*words), expected, words)
        self.assertEqual(len(self.server.asked("/files/ssstats.csv")), 1)  # then it is in the cache
        self.names("--refresh")
        self.assertEqual(len(self.server.asked("/files/ssstats.csv")), 2)

    def test_fields(self):
        self.names()
        shown = [json.loads(line) for line in self.out.splitlines()]
        self.assertEqual(
            shown[0],
            {
                "group": "HB",
                "name": "tiny",
                "rows": 3,
                "cols": 3,
                "nnz": 4,
                "entries": 4,
                "field": "real",
                "spd": True,
                "pattern_symmetry": 1,
                "numerical_symmetry": 1,
                "kind": "structural problem",
            },
        )
        self.assertEqual((shown[1]["field"], shown[1]["pattern_symmetry"]), ("binary", 0.25))
        self.assertNotIn("entries", shown[2])
        self.assertEqual((shown[3]["field"], shown[3]["entries"]), ("complex", 5000001))
        self.expect(0, "list", "--name", "web")
        self.assertEqual(self.out.split(), ["Graphs/web", "5", "7", "9", "directed", "graph,", "weighted"])

    def test_malformed_lines_are_named(self):
        lines = INDEX.splitlines()
        lines[3:3] = [
            "HB,short,1,1",
            "HB,word,1,many,1,1,0,0,1,1,1,k",
            "HB,../up,1,1,1,1,0,0,1,1,1,k",
            "HB,yes,1,1,1,1,0,0,maybe,1,1,k",
        ]
        self.server.files["/files/ssstats.csv"] = Served("\n".join(lines).encode())
        said = self.expect(0, "list", "--json")
        self.assertEqual(len(self.out.splitlines()), 4)
        for number, why in [
            (4, "4 fields instead of 12 or more"),
            (5, "'many' is not a valid number of columns"),
            (6, "'HB/../up' is not a valid GROUP/NAME"),
            (7, "'maybe' is neither 0 nor 1"),
        ]:
            self.assertRegex(said, rf"ssstats\.csv[.a-z]*:{number}: left out: {re.escape(why)}\n")
        self.server.files["/files/ssstats.csv"] = Served(INDEX.replace("4\n", "5\n", 1).encode())
        self.assertIn("4 matrices read, but the first line announces 5", self.expect(0, "list", "--refresh"))

    def test_odd_numbers_are_left_out(self):
        """Non-ASCII digits and very long numbers give a message."""
        long_number = "9" * 5000
        odd = [
            ("HB,a,\u00b2,1,1,1,0,0,1,1,1,k", "'\u00b2' is not a valid number of rows"),
            ("HB,b,1,\u0663,1,1,0,0,1,1,1,k", "'\u0663' is not a valid number of columns"),
            (f"HB,c,1,1,{long_number},1,0,0,1,1,1,k", "(5000 characters) is not a valid number of nonzeros"),
            ("HB,d,1,1,-1,1,0,0,1,1,1,k", "'-1' is not a valid number of nonzeros"),
            (f"HB,e,1,1,1,1,0,0,1,1,1,k,{long_number}", "(5000 characters) is not a valid number of entries"),
            ("HB,f,1,1,1,\u00b9,0,0,1,1,1,k", "'\u00b9' is neither 0 nor 1"),
            ("HB,g,1,1,1,1,0,0,1,nan,1,k", "'nan' is not a degree of symmetry"),
            ("HB,h,1,1,1,1,0,0,1,\u0661,1,k", "'\u0661' is not a degree of symmetry"),
            (f"HB,i,1,1,1,1,0,0,1,1,{long_number},k", "(5000 characters) is not a degree of symmetry"),
            ("HB,\u00b2,1,1,1,1,0,0,1,1,1,k", "'HB/\u00b2' is not a valid GROUP/NAME"),
            ('"HB,j', "1 fields instead of 12"),
            ("x" * 200000, "field larger than field limit"),
        ]
        lines = INDEX.splitlines()
        lines[2:2] = [line for line, _ in odd]
        self.server.files["/files/ssstats.csv"] = Served("\n".join(lines).encode())
        said = self.expect(0, "list", "--json").splitlines()
        for number, (_, why) in enumerate(odd, 3):
            (sentence,) = [line for line in said if f":{number}: left out: " in line]
            self.assertIn(why, sentence)
            self.assertLess(len(sentence), 500)
        self.assertEqual(len(self.out.splitlines()), 4)

    def test_odd_first_lines_and_many_bad_ones(self):
        for first in "\u00b2", "9" * 5000, "\u0663", "-4", "":
            self.server.files["/files/ssstats.csv"] = Served(INDEX.replace("4\n", first + "\n", 1).encode())
            self.assertIn("not an index of the collection", self.expect(2, "list", "--refresh"))
        self.server.files["/files/ssstats.csv"] = Served((INDEX + "short,line\n" * 3000).encode())
        said = self.expect(0, "list", "--refresh", "--json").splitlines()
        self.assertEqual(len([line for line in said if "2 fields instead of 12" in line]), 20)
        self.assertTrue(any("2980 more malformed lines" in line for line in said))

    def test_control_characters_stay_out_of_the_terminal(self):
        """Those in the index, in answers and in arguments are shown as question marks."""
        hostile = "\x1b[31mred\x07\x9b2J\u202eback\u2028"
        lines = INDEX.splitlines()
        lines[2:2] = [f"HB,evil,1,1,1,1,0,0,1,1,1,{hostile}", f"HB,{hostile},1,1,1,1,0,0,1,1,1,k",
                      f"HB,evil2,{hostile},1,1,1,0,0,1,1,1,k"]  # fmt: skip
        self.server.files["/files/ssstats.csv"] = Served("\n".join(lines).encode())
        said = self.expect(0, "list")
        shown = self.out + said
        self.assertIn("?[31mred??2J?back", self.out)
        self.assertEqual(said.count("?[31mred"), 2)
        said = self.expect(0, "list", "--json")
        shown += self.out + said + self.expect(1, "fetch", "HB/\x1b[2J")
        self.server.moves["/MM/HB/tiny.tar.gz"] = [{"status": 403, "reason": "no\x1b[2J"}]
        said = self.expect(2, "fetch", "HB/tiny")
        self.assertIn("the server answered 403 no?[2J", said)
        shown += said
        self.assertEqual([c for c in shown if c != "\n" and not c.isprintable()], [])

    def test_bad_utf_8_and_other_encodings(self):
        index = INDEX.encode().replace(b"structural", b"struct\xff\xc3ural").replace(b"2D/3D", "3D \u00e9".encode())
        self.server.files["/files/ssstats.csv"] = Served(index)
        self.expect(0, "list")
        self.assertIn("struct\ufffd\ufffdural problem", self.out)
        environment = dict(self.environment(), PYTHONIOENCODING="ascii:strict")
        done = subprocess.run(self.command("list"), env=environment, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("3D ? problem", done.stdout)
        self.assertNotIn("Traceback", done.stderr)

    def test_what_is_no_index_replaces_none(self):
        for text in ("<html>log in first</html>\n", "", "3\ndate\n"):
            self.server.files["/files/ssstats.csv"] = Served(text.encode())
            self.assertIn("not an index of the collection", self.expect(2, "list"))
        self.server.files["/files/ssstats.csv"] = Served(INDEX.encode())
        self.assertEqual(len(self.names()), 4)
        self.server.files["/files/ssstats.csv"] = Served(b"sorry")
        self.expect(2, "list", "--refresh")
        self.assertEqual(len(self.names()), 4)

    def test_index_that_breaks_off(self):
        self.server.moves["/files/ssstats.csv"] = [{"after": 100}]
        self.assertEqual(len(self.names()), 4)
        self.assertEqual(self.server.asked("/files/ssstats.csv"), [(None, None), ("bytes=100-", '"1"')])


class TestFetch(Case):
    def test_plain(self):
        data = noise("tiny")
        path = self.serve("HB/tiny", data)
        self.expect(0, "fetch", "HB/tiny", apart=True)
        self.assertEqual(self.out, os.path.join(self.cache, "HB/tiny.tar.gz") + "\n")
        self.assert_fetched("HB/tiny", data)
        self.assertEqual(self.server.log, [(path, None, None)])  # no index for GROUP/NAME
        self.expect(0, "fetch", "HB/tiny")
        self.expect(0, "fetch", "tiny")  # one of that name is here, and no index
        self.assertEqual(len(self.server.log), 1)
        sums = subprocess.run(
            ["sha256sum", "-c", "sha256sums"], cwd=self.cache, capture_output=True, text=True, check=False
        )
        self.assertEqual((sums.returncode, sums.stdout), (0, "HB/tiny.tar.gz: OK\n"))

    def test_names(self):
        self.serve("Graphs/web")
        self.expect(0, "fetch", "web")
        self.assert_fetched("Graphs/web", archive("web"))
        said = self.expect(1, "fetch", "tiny", apart=True)
        self.assertIn("'tiny' is the name of 2 matrices: use HB/tiny or Graphs/tiny", said)
        self.assertIn("no matrix 'wep'; did you mean Graphs/web?", self.expect(1, "fetch", "wep"))
        said = self.expect(1, "fetch", "HB/web", "Graphs/web")
        self.assertIn("/MM/HB/web.tar.gz: not found (404 Not Found); did you mean Graphs/web?", said)
        self.assertEqual(self.out, os.path.join(self.cache, "Graphs/web.tar.gz") + "\n")  # the other one is fetched
        for name in ("../web", "a/b/c", "/web", "HB/", "", "..", "HB/.tar", "a b"):
            self.assertIn("is not a matrix name: expected NAME or GROUP/NAME", self.expect(1, "fetch", name))

    def test_lists(self):
        self.serve("HB/tiny")
        self.serve("Graphs/web")
        path = self.write("mine.list", "# a comment\n\n  HB/tiny   # and why\nweb\nGraphs/web\r\n#HB/none\n")
        self.expect(0, "fetch", path)
        self.assertEqual([os.path.basename(line) for line in self.out.splitlines()], ["tiny.tar.gz", "web.tar.gz"])
        for text, status, why in [
            ("HB/tiny\nHB/web HB/b\n", 1, ":2: expected one name per line, not 'HB/web HB/b'"),
            ("# nothing\n", 1, "is empty"),
            ("\n\nHB/../x\n", 1, ":3: 'HB/../x' is not a matrix name"),
            ("wep\n", 1, ":1: the collection has no matrix 'wep'"),
        ]:
            self.assertIn(
                "broken.list" + (why if why[0] == ":" else ": the list " + why),
                self.expect(status, "fetch", self.write("broken.list", text)),
            )
        self.assertIn("none.list: No such file or directory", self.expect(2, "fetch", "none.list"))

    def test_cut_transfer_goes_on(self):
        data = noise("tiny")
        path = self.serve("HB/tiny", data)
        self.server.moves[path] = [{"after": 70_000}, {"after": 50_001}, {"after": 0}]
        said = self.expect(0, "fetch", "HB/tiny")
        self.assert_fetched("HB/tiny", data)
        self.assertEqual(
            self.server.asked(path),
            [(None, None), ("bytes=70000-", '"1"'), ("bytes=120001-", '"1"'), ("bytes=120001-", '"1"')],
        )
        self.assertIn(f"the transfer ended after 70000 of {len(data)} bytes; trying again", said)

    def test_giving_up_keeps_what_came(self):
        data = noise("tiny")
        path = self.serve("HB/tiny", data)
        # an attempt that transfers something resets the count
        self.server.moves[path] = [
            {"after": 10},
            {"after": 10},
            {"after": 10},
            {"status": 500},
            {"status": 502},
            {"status": 503},
        ]
        said = self.expect(2, "fetch", "--retries", "2", "HB/tiny")
        self.assertIn("the server answered 503 Service Unavailable; 3 attempts in a row without new data\n", said)
        self.assertIn("not in the cache: HB/tiny", said)
        self.assertEqual(len(self.server.asked(path)), 6)
        self.expect(0, "fetch", "HB/tiny")
        self.assertEqual(self.server.asked(path)[-1], ("bytes=30-", '"1"'))
        self.assert_fetched("HB/tiny", data)

    def test_interrupted_and_killed(self):
        data = noise("tiny")
        path = self.serve("HB/tiny", data)
        for kill, status, have in ((signal.SIGINT, 130, 60_000), (signal.SIGKILL, -signal.SIGKILL, 110_000)):
            self.server.moves[path] = [{"after": 60_000 if have == 60_000 else 50_000, "stall": True}]
            process = self.start("fetch", "HB/tiny", stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            part = os.path.join(self.cache, "HB/tiny.tar.gz.part")
            # a block below the size of the file's buffer lies there still: all but the last 8192 bytes must be seen
            until = time.monotonic() + 20
            while not (os.path.exists(part) and os.path.getsize(part) > have - 8192) and time.monotonic() < until:
                time.sleep(0.01)
            process.send_signal(kill)
            said = process.communicate(timeout=20)[1]
            self.assertEqual(process.returncode, status, said)
            self.assertNotIn("Traceback", said)
            if kill == signal.SIGINT:
                self.assertIn("interrupted; the same command resumes", said)
                self.assertEqual(os.path.getsize(part), have)
            have = os.path.getsize(part)
            self.server.moves[path] = [{"after": 0}]
            self.expect(2, "fetch", "--retries", "0", "HB/tiny")
            self.assertEqual(self.server.asked(path)[-1], (f"bytes={have}-", '"1"'))
        self.expect(0, "fetch", "HB/tiny")
        self.assert_fetched("HB/tiny", data)

    def serve_with_part(self):
        """The data of HB/tiny, its path on the server, and the name of a part of it in the cache."""
        data = noise("tiny")
        path = self.serve("HB/tiny", data)
        os.makedirs(os.path.join(self.cache, "HB"))
        return data, path, os.path.join(self.cache, "HB/tiny.tar.gz.part")

    def test_whole_part_needs_no_request(self):
        data, path, part = self.serve_with_part()
        with open(part, "wb") as file:
            file.write(data)
        with open(part + ".json", "w", encoding="utf-8") as file:
            json.dump({"url": self.server.url + path, "length": len(data), "validator": '"1"'}, file)
        self.expect(0, "fetch", "HB/tiny")
        self.assertEqual(self.server.log, [])
        self.assert_fetched("HB/tiny", data)

    def test_part_of_unknown_origin_is_not_used(self):
        data, path, part = self.serve_with_part()
        good = {"url": self.server.url + path, "length": len(data), "validator": '"1"'}
        for note in (
            None,
            "{",
            "[]",
            json.dumps(dict(good, url="http://elsewhere/tiny")),
            json.dumps(dict(good, validator=None)),
            json.dumps(dict(good, length=5)),
            json.dumps(dict(good, length="x")),
        ):
            with open(part, "wb") as file:
                file.write(b"x" * 1000)
            if note is not None:
                self.write(part + ".json", note)
            self.expect(0, "fetch", "HB/tiny")
            self.assertEqual(self.server.asked(path), [(None, None)], note)
            self.server.log.clear()
            self.assert_fetched("HB/tiny", data)
            os.unlink(os.path.join(self.cache, "HB/tiny.tar.gz"))

    def test_stall_times_out(self):
        data = noise("tiny")
        path = self.serve("HB/tiny", data)
        self.server.moves[path] = [{"after": 40_000, "stall": True}]
        started = time.monotonic()
        said = self.expect(0, "fetch", "--timeout", "1", "HB/tiny")
        self.assertGreater(time.monotonic() - started, 0.9)
        self.assertIn("timed out after 40000 bytes; trying again", said)
        self.assertEqual(self.server.asked(path), [(None, None), ("bytes=40000-", '"1"')])
        self.assert_fetched("HB/tiny", data)

    def test_server_without_ranges(self):
        data = noise("tiny")
        path = self.serve("HB/tiny", data)
        self.server.moves[path] = [{"after": 40_000}, {"ignore_range": True}]
        self.expect(0, "fetch", "HB/tiny")
        self.assertEqual(self.server.asked(path), [(None, None), ("bytes=40000-", '"1"')])
        self.assert_fetched("HB/tiny", data)
        # one that never gets further must not go on for ever
        self.server.moves[path] = [{"after": 40_000, "ignore_range": True}] * 10
        said = self.expect(2, "fetch", "--renew", "--retries", "3", "HB/tiny")
        self.assertIn("4 attempts in a row without new data", said)
        self.assertEqual(len(self.server.asked(path)), 2 + 5)

    def test_file_changes_between_the_parts(self):
        for move in ({}, {"ignore_if_range": True}):
            old = noise("tiny", 1)
            for new in (old[:2] + old[:1:-1], noise("tiny", 2, 150_000)):  # the same length, another length
                with self.subTest(move=move, size=len(new)):
                    path = self.serve("HB/tiny", old)
                    self.server.moves[path] = [
                        {"after": 40_000},
                        dict(move, change=Served(new, '"2"', "Sat, 21 Jul 2018 00:00:00 GMT")),
                    ]
                    self.expect(0, "fetch", "HB/tiny")
                    self.assert_fetched("HB/tiny", new)
                    self.assertIn(("bytes=40000-", '"1"'), self.server.asked(path))
                    shutil.rmtree(self.cache)
        # a part, but not the one asked for
        path = self.serve("HB/tiny", old)
        self.server.moves[path] = [{"after": 40_000}, {"shift": 1}]
        self.expect(0, "fetch", "HB/tiny")
        self.assert_fetched("HB/tiny", old)
        self.assertEqual(self.server.asked(path)[-2:], [("bytes=40000-", '"1"'), (None, None)])
        shutil.rmtree(self.cache)
        # shorter than what is here: 416
        path = self.serve("HB/tiny", noise("tiny", 1))
        self.server.moves[path] = [
            {"after": 190_000},
            {"change": Served(noise("tiny", 2, 1000), '"2"'), "ignore_if_range": True},
        ]
        self.expect(0, "fetch", "HB/tiny")
        self.assert_fetched("HB/tiny", noise("tiny", 2, 1000))

    def test_validators(self):
        date = "Fri, 20 Jul 2018 14:33:25 GMT"
        for tag, day, second in [
            ('"1"', date, ("bytes=500-", '"1"')),
            (None, date, ("bytes=500-", date)),
            ('W/"1"', date, ("bytes=500-", date)),
            ('W/"1"', None, (None, None)),
            (None, None, (None, None)),
        ]:
            path = self.serve("HB/tiny", noise("tiny"), tag=tag, date=day)
            self.server.log.clear()
            self.server.moves[path] = [{"after": 500}]
            self.expect(0, "fetch", "--renew", "HB/tiny")
            self.assertEqual(self.server.asked(path), [(None, None), second])
            self.assert_fetched("HB/tiny", noise("tiny"))

    def test_odd_numbers_in_headers(self):
        """An invalid length, range or number of seconds to wait is ignored."""
        data = noise("a")
        for number, odd in enumerate(("\u00b2", "9" * 5000, "-1", "")):
            with self.subTest(odd[:10]):
                matrix = f"G/a{number}"
                path = self.serve(matrix, data)
                self.server.moves[path] = [{"status": 503, "headers": {"Retry-After": odd}}, {"length": odd}]
                self.expect(0, "fetch", matrix)
                self.assert_fetched(matrix, data)
                matrix = f"G/b{number}"
                path = self.serve(matrix, data)
                self.server.moves[path] = [{"after": 1000}, {"range": f"bytes {odd}-5/{odd}"}]
                said = self.expect(0, "fetch", matrix)
                self.assertIn("restarting", said)
                self.assert_fetched(matrix, data)

    def test_a_validator_that_cannot_be_sent_back(self):
        data = noise("a")
        path = self.serve("G/a", data, tag='"\u00b2\x01"', date=None)
        self.server.moves[path] = [{"after": 1000}]
        self.expect(0, "fetch", "G/a")
        self.assert_fetched("G/a", data)
        self.assertEqual(self.server.asked(path), [(None, None)] * 2)

    def test_status(self):
        path = self.serve("HB/tiny")
        self.server.moves[path] = [{"status": 500}, {"status": 429}, {"status": 503, "headers": {"Retry-After": "1"}}]
        started = time.monotonic()
        said = self.expect(0, "fetch", "HB/tiny")
        self.assertGreater(time.monotonic() - started, 0.99)
        self.assertIn("the server answered 503 Service Unavailable; trying again in 1 s", said)
        self.assert_fetched("HB/tiny", archive("tiny"))
        self.server.log.clear()
        self.server.moves[path] = [{"status": 403}]
        self.assertIn("the server answered 403 Forbidden", self.expect(2, "fetch", "--renew", "HB/tiny"))
        self.assertEqual(len(self.server.log), 1)  # not again
        self.server.moves[path] = [{"status": 500}] * 3
        self.assertIn(
            "500 Internal Server Error; 3 attempts in a row",
            self.expect(2, "fetch", "--renew", "--retries", "2", "HB/tiny"),
        )
        self.assertEqual(self.cached("HB/tiny"), archive("tiny"))

    def test_damage_in_the_cache_is_healed(self):
        data = noise("tiny")
        path = self.serve("HB/tiny", data)
        self.expect(0, "fetch", "HB/tiny")
        broken = bytearray(data)
        broken[1000] ^= 1
        for damage in (bytes(broken), data[:-1], b""):
            with open(os.path.join(self.cache, "HB/tiny.tar.gz"), "wb") as file:
                file.write(damage)
            self.assertIn("has changed since its download (SHA-256)", self.expect(2, "fetch", "--offline", "HB/tiny"))
            self.assertIn("has changed since its download (SHA-256); fetching it again", self.expect(0, "fetch", "HB/tiny"))
            self.assert_fetched("HB/tiny", data)
        # the server has another file now: refused, until it is asked for
        self.server.files[path] = Served(bytes(broken), '"2"')
        os.unlink(os.path.join(self.cache, "HB/tiny.tar.gz"))
        said = self.expect(2, "fetch", "HB/tiny")
        for digest in (data, bytes(broken)):
            self.assertIn(hashlib.sha256(digest).hexdigest(), said)
        self.assertIn("--renew", said)
        self.assertEqual(os.listdir(os.path.join(self.cache, "HB")).count("tiny.tar.gz"), 0)
        self.expect(2, "fetch", "HB/tiny")  # what was refused is not taken up as a part
        self.expect(0, "fetch", "--renew", "HB/tiny")
        self.assert_fetched("HB/tiny", bytes(broken))

    def test_what_is_no_archive(self):
        self.serve("HB/tiny", b"<html>please log in</html>")
        self.assertIn("the server's file is not a gzip archive", self.expect(2, "fetch", "HB/tiny"))
        data = noise("tiny")
        path = self.serve("HB/tiny", data)
        self.expect(0, "fetch", "HB/tiny")
        # without a length, the end of the archive tells whether all is there
        self.server.moves[path] = [{"no_length": True, "after": 100_000}]
        said = self.expect(2, "fetch", "--renew", "HB/tiny")
        self.assertIn("truncated or damaged", said)
        self.assertEqual(self.cached("HB/tiny"), data)
        self.server.moves[path] = [{"no_length": True}]
        self.expect(0, "fetch", "--renew", "HB/tiny")
        self.assert_fetched("HB/tiny", data)

    def test_one_process_a_file(self):
        self.serve("HB/tiny")
        os.makedirs(os.path.join(self.cache, "HB"))
        with open(os.path.join(self.cache, "HB/tiny.tar.gz.part"), "ab") as part:
            fcntl.flock(part, fcntl.LOCK_SH)
            self.assertIn("another process is fetching it", self.expect(2, "fetch", "HB/tiny"))
        self.assertEqual(self.server.log, [])
        self.expect(0, "fetch", "HB/tiny")

    def test_offline(self):
        self.serve("HB/tiny")
        self.expect(0, "fetch", "HB/tiny")
        self.server.log.clear()
        said = self.expect(2, "fetch", "--offline", "HB/tiny", "Graphs/web")
        self.assertIn("not in the cache: Graphs/web\n", said)
        self.assertEqual(self.out, os.path.join(self.cache, "HB/tiny.tar.gz") + "\n")
        self.assertIn("the index is not in the cache", self.expect(2, "list", "--offline"))
        self.assertEqual(self.server.log, [])

    def test_unreachable(self):
        # nobody listens there any more; the third is not even tried
        nowhere = Server()
        nowhere.shutdown()
        nowhere.server_close()
        said = self.expect(
            2, "fetch", "--base-url", nowhere.url, "--retries", "1", "HB/tiny", "Graphs/web", "Big/huge-1"
        )
        self.assertEqual(said.count("Connection refused"), 2)
        self.assertIn("not in the cache: HB/tiny Graphs/web Big/huge-1\n", said)
        self.assertIn(
            "cannot fetch the index: http",
            self.expect(2, "list", "--base-url", nowhere.url, "--retries", "0"),
        )

    def test_files_that_cannot_be_written(self):
        self.serve("HB/tiny", noise("tiny"))
        self.write("file", "")
        self.assertIn(
            "Not a directory", self.expect(2, "fetch", "--cache", os.path.join(self.folder, "file/below"), "HB/tiny")
        )
        # files may not grow: stands in for a full disk
        limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, resource.RLIM_INFINITY))
        self.assertIn(
            "tiny.tar.gz.part: File too large",
            self.expect(2, "fetch", "HB/tiny", preexec_fn=limit, restore_signals=False),
        )
        self.expect(0, "fetch", "HB/tiny")
        self.assert_fetched("HB/tiny", noise("tiny"))
        self.write(os.path.join(self.cache, "sha256sums"), "nonsense\n")
        self.assertIn("sha256sums:1: expected a SHA-256 and a file name", self.expect(2, "fetch", "HB/tiny"))

    def test_progress_on_a_terminal(self):
        data = noise("tiny")
        path = self.serve("HB/tiny", data)
        self.server.moves[path] = [{"after": 100_000, "pause": 0.7}]
        ours, theirs = pty.openpty()
        process = self.start("fetch", "HB/tiny", stdout=subprocess.DEVNULL, stderr=theirs)
        os.close(theirs)
        shown = b""
        with contextlib.suppress(OSError):  # how a terminal says that its other end is closed
            while True:
                shown += os.read(ours, 4096)
        os.close(ours)
        self.assertEqual(process.wait(20), 0)
        self.assertRegex(shown.decode(), r"\r\x1b\[KHB/tiny: 0\.[0-2] of 0\.2 MB, \d+ %")
        self.assertTrue(shown.endswith(b"\r\x1b[K"))


class TestBench(Case):
    def setUp(self):
        super().setUp()
        # a tree of its own, with twins
        self.script = os.path.join(self.folder, "tree", "scripts", "suitesparse.py")
        os.makedirs(os.path.dirname(self.script))
        shutil.copy(SCRIPT, self.script)
        self.write("tree/data/twins.csv", "# statistics\n# of three\nname,rows,cols,nnz\nweb,5,7,9\nother,1,1,1\n")
        self.fake = self.write("tree/build/some-preset/app/spmv", FAKE)
        os.chmod(self.fake, 0o755)

    def put(self, matrix, data=None):
        """Puts an archive into the cache, as if fetched."""
        self.serve(matrix, data)
        self.expect(0, "fetch", matrix)

    def results(self, name="suitesparse.jsonl"):
        with open(os.path.join(self.folder, name), encoding="utf-8") as file:
            return [json.loads(line) for line in file]

    def scratch_left(self):
        return [name for name in os.listdir(self.folder) if name.startswith("spmv-")]

    def test_results_of_all(self):
        self.put("HB/tiny")
        self.put("Graphs/web")
        self.server.log.clear()
        said = self.expect(
            0, "bench", "HB/tiny", "Graphs/web", "-o", "r.jsonl", "--", "--op", "spmv", "--", "--csv", apart=True
        )
        results = self.results("r.jsonl")
        self.assertEqual([r["matrix"]["name"] for r in results[::2]], ["tiny.mtx", "web.mtx"])
        self.assertEqual([r["second"] for r in results[1::2]], ["tiny.mtx", "web.mtx"])
        self.assertEqual(results[0]["argv"], ["--op", "spmv", "--", "--csv"])
        self.assertEqual(results[0]["text"], MTX)
        self.assertIn("2 of 2 measured; results in r.jsonl", said)
        self.assertIn("a table for people", said)
        self.assertEqual(self.out, "")
        self.assertFalse(os.path.exists(results[0]["subject"]))
        self.assertEqual((self.scratch_left(), self.server.log), ([], []))
        # results are not lost to a second run
        self.assertIn("r.jsonl: File exists", self.expect(2, "bench", "HB/tiny", "-o", "r.jsonl"))
        self.expect(0, "bench", "HB/tiny", "-o", "r.jsonl", "--append")
        self.assertEqual(len(self.results("r.jsonl")), 6)

    def test_goes_on_after_failures(self):
        names = ["HB/fails", "HB/garbage", "HB/silent", "HB/hangs", "HB/damaged", "HB/tiny"]
        for name in names:
            self.put(name)
        with open(os.path.join(self.cache, "HB/damaged.tar.gz"), "ab") as file:
            file.write(b"x")
        said = self.expect(2, "bench", *names, "--limit", "1")
        for why in (
            "HB/fails: exit status 9",
            "HB/garbage: line 1 of its result is not a JSON object",
            "HB/silent: spmv bench wrote no result",
            "HB/hangs: stopped after 1 s",
            "damaged.tar.gz has changed since its download (SHA-256)",
            "1 of 6 measured",
            "failed: HB/fails HB/garbage HB/silent HB/hangs HB/damaged\n",
        ):
            self.assertIn(why, said)
        # what a run wrote before it failed is kept
        self.assertEqual([r["matrix"]["name"] for r in self.results()[::2]], ["fails.mtx", "tiny.mtx"])
        self.assertEqual(self.scratch_left(), [])

    def test_missing_matrices_and_their_twins(self):
        self.put("HB/tiny")
        self.server.log.clear()
        mine = self.write("mine.list", "HB/tiny\nGraphs/web\nBig/none\n")
        said = self.expect(2, "bench", mine)
        self.assertIn("not in the cache: Graphs/web Big/none\n", said)
        self.assertIn("generated matrices with the same statistics, without a download: spmv bench twin:web\n", said)
        self.assertEqual(len(self.results()), 2)
        said = self.expect(2, "bench", "--twins", mine, "-o", "twins.jsonl", "--", "--op", "cg")
        self.assertIn("not in the cache: Big/none\n", said)
        self.assertNotIn("twin:", said)
        self.assertEqual([r["subject"] for r in self.results("twins.jsonl")[2::2]], ["twin:web"])
        self.expect(0, "bench", "--twins", "Graphs/web", "-o", "alone.jsonl")
        self.assertEqual(self.server.log, [])
        # a bare name, and no index to look it up
        said = self.expect(2, "bench", "--offline", "web", "-o", "bare.jsonl")
        self.assertIn("not in the cache: web\n", said)
        self.assertIn("spmv bench twin:web\n", said)
        self.assertIn("the index is not in the cache", said)
        # without the table there are none
        os.unlink(os.path.join(self.folder, "tree/data/twins.csv"))
        self.assertNotIn("twin:", self.expect(2, "fetch", "--offline", "Graphs/web"))

    def test_hostile_archives(self):
        def made(name, kind, **fields):
            info = tarfile.TarInfo(name)
            info.type = kind
            for field, value in fields.items():
                setattr(info, field, value)
            return info

        def pax(key, value):
            record = f" {key}={value}\n".encode()
            length = len(record) + len(str(len(record) + 4))
            return made("././@PaxHeader", tarfile.XHDTYPE), str(length).encode() + record

        outside = os.path.join(self.folder, "outside.mtx")
        link = "is not a regular file"
        none = "does not contain evil/evil.mtx"
        cases = [
            (link, [(made("evil/evil.mtx", tarfile.SYMTYPE, linkname="/etc/passwd"), "")]),
            (link, [(made("evil/evil.mtx", tarfile.LNKTYPE, linkname="/etc/passwd"), "")]),
            (link, [(made("evil/evil.mtx", tarfile.DIRTYPE), "")]),
            (link, [(made("evil/evil.mtx", tarfile.FIFOTYPE), "")]),
            (none, [("../outside.mtx", MTX), (outside, MTX), ("../evil/evil.mtx", MTX), ("/evil/evil.mtx", MTX)]),
            (
                none,
                [
                    ("evil.mtx", MTX),
                    ("evil/../evil/evil.mtx", MTX),
                    ("evil/evil.mtx/evil", MTX),
                    ("evil/evil_b.mtx", MTX),
                ],
            ),
            (none, [(f"evil/{i}", "") for i in range(1001)] + [("evil/evil.mtx", MTX)]),
            ("has 600 bytes; at most 500 are free or allowed", [("evil/evil.mtx", "x" * 600)]),
            (
                "a header of 2097152 bytes",
                [(made("././@PaxHeader", tarfile.XHDTYPE), b"x" * 2**21), ("evil/evil.mtx", MTX)],
            ),
            ("not a readable archive", [pax("GNU.sparse.size", "\u00b2"), ("evil/evil.mtx", MTX)]),
            ("not a readable archive", [pax("GNU.sparse.map", "0,1," + "9" * 5000), ("evil/evil.mtx", MTX)]),
        ]
        self.put("HB/tiny")
        for number, (why, members) in enumerate(cases):
            with self.subTest(why=why, number=number):
                self.put("Bad/evil", archive("evil", members))
                said = self.expect(2, "bench", "Bad/evil", "HB/tiny", "--limit-bytes", "500", "-o", f"{number}.jsonl")
                self.assertIn(why, said)
                self.assertEqual([r["matrix"]["name"] for r in self.results(f"{number}.jsonl")[::2]], ["tiny.mtx"])
                self.assertFalse(os.path.exists(outside))
                self.assertEqual(self.scratch_left(), [])
                shutil.rmtree(os.path.join(self.cache, "Bad"))
                os.unlink(os.path.join(self.cache, "sha256sums"))
        # larger than the disk
        self.put("Bad/evil", archive("evil", [(made("evil/evil.mtx", tarfile.REGTYPE, size=2**50), MTX)]))
        said = self.expect(2, "bench", "Bad/evil", "--limit-bytes", "1e18", "-o", "large.jsonl")
        self.assertRegex(said, rf"has {2**50} bytes; at most \d+ are free or allowed")
        shutil.rmtree(self.cache)
        # good things beside the matrix do no harm
        self.put("Bad/evil", archive("evil", [("evil/README", "x"), ("/abs", "x"), ("evil/evil.mtx", MTX)]))
        self.expect(0, "bench", "Bad/evil", "-o", "good.jsonl")
        self.assertEqual(self.results("good.jsonl")[0]["text"], MTX)

    def test_sparse_members_and_short_archives(self):
        # an old GNU sparse member: 1 TiB on disk out of nothing in the archive
        header = bytearray(tarfile.TarInfo("evil/evil.mtx").tobuf(tarfile.GNU_FORMAT))
        header[156:157] = tarfile.GNUTYPE_SPARSE
        header[386:398] = b"%011o\0" % 0
        header[398:410] = b"%011o\0" % 0
        header[483:495] = b"\x80" + (2**40).to_bytes(11, "big")
        header[148:156] = b" " * 8
        header[148:156] = b"%06o\0 " % sum(header)
        self.put("Bad/evil", gzip.compress(bytes(header) + bytes(1024)))
        self.assertIn("is not a regular file", self.expect(2, "bench", "Bad/evil", "-o", "sparse.jsonl"))
        # ends inside the member; not a tar; a checksum of gzip that does not fit
        whole = gzip.decompress(noise("evil"))
        damaged = bytearray(archive("evil"))
        damaged[-8] ^= 1
        for data in (
            gzip.compress(whole[:50_000]),
            gzip.compress(b"hello" * 300),
            noise("evil")[:50_000],
            gzip.compress(b""),
            bytes(damaged),
        ):
            shutil.rmtree(self.cache)
            self.put("Bad/evil", data)
            said = self.expect(2, "bench", "Bad/evil", "-o", "short.jsonl")
            self.assertIn("Bad/evil.tar.gz: not a readable archive", said)
            self.assertIn("0 of 1 measured; no results", said)
            self.assertFalse(os.path.exists(os.path.join(self.folder, "short.jsonl")))

    def test_program(self):
        self.put("HB/tiny")
        elsewhere = self.write("bin/spmv", FAKE.replace('"subject": subject', '"subject": "elsewhere"'))
        os.chmod(elsewhere, 0o755)
        named = shutil.copy(elsewhere, os.path.join(self.folder, "named"))
        self.expect(0, "bench", "HB/tiny", "--spmv", "named")
        os.unlink(elsewhere)
        self.expect(0, "bench", "HB/tiny", "--append")  # as built
        os.rename(named, elsewhere)
        self.expect(0, "bench", "HB/tiny", "--append")  # of the PATH
        self.assertEqual(
            [os.path.basename(r["subject"]) for r in self.results()[::2]], ["elsewhere", "tiny.mtx", "elsewhere"]
        )
        for name in ("none", self.write("text", "")):
            self.assertIn(f"{name}: not a program", self.expect(2, "bench", "HB/tiny", "--spmv", name))
        os.unlink(self.fake)
        os.chmod(elsewhere, 0o644)
        self.assertIn("spmv was not found on the PATH or in ", self.expect(2, "bench", "HB/tiny"))
        os.chmod(elsewhere, 0o755)
        self.assertIn(
            "--json is reserved for this script", self.expect(1, "bench", "HB/tiny", "--spmv", elsewhere, "--", "--json=x")
        )
        said = self.expect(2, "bench", "HB/tiny", "--spmv", elsewhere, "-o", "s.jsonl", "--scratch", "none")
        self.assertIn("No such file or directory", said)


class TestUsage(Case):
    def test_exit_status(self):
        for words in (
            ["list", "--frequency"],
            ["fetch"],
            ["list", "--min-nnz", "x"],
            ["list", "--min-nnz", "-1"],
            ["list", "--", "x"],
            ["fetch", "--timeout", "0", "HB/tiny"],
            ["fetch", "--retries", "-1", "HB/tiny"],
            ["weigh"],
            ["list", "--base-url", "ftp://127.0.0.1"],
            ["list", "--base-url", "file:///etc"],
            ["bench"],
        ):
            done = self.run_script(*words)
            self.assertEqual((done.returncode, done.stdout), (1, ""), words)
            self.assertRegex(done.stderr, r"\nsuitesparse\.py: .+\n$", words)
        done = subprocess.run([sys.executable, SCRIPT], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 1)
        done = self.run_script("fetch", "--help", apart=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("--timeout S", done.stdout)
        self.assertEqual(self.server.log, [])

    def test_a_reader_that_goes_away(self):
        self.server.files["/files/ssstats.csv"] = Served(
            ("30000\nd\n" + "".join(f"HB,m{i},3,3,4,1,0,0,1,1,1,structural problem,4\n" for i in range(30000))).encode()
        )
        self.expect(0, "list")
        listing = self.start("list", "--json", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertEqual(json.loads(listing.stdout.readline())["name"], "m0")
        listing.stdout.close()
        self.assertEqual((listing.stderr.read(), listing.wait(20)), (b"", 0))
        listing.stderr.close()

    def test_our_lists(self):
        folder = os.path.join(os.path.dirname(SCRIPT), "suitesparse")
        counts = {}
        for name in sorted(os.listdir(folder)):
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                text = file.read()
            self.assertTrue(text.startswith("# "), name)
            entries = [line.split("#")[0].strip() for line in text.splitlines()]
            entries = [entry for entry in entries if entry]
            for entry in entries:
                self.assertRegex(entry, r"^[A-Za-z0-9_]+/[A-Za-z0-9_-]+$")
            self.assertEqual(len(set(entries)), len(entries), name)
            counts[name] = len(entries)
            # found by name alone, from any folder
            said = self.expect(2, "fetch", "--offline", name)
            self.assertIn(f"not in the cache: {' '.join(entries)}\n", said)
        self.assertEqual(set(counts), {"classic14.list", "irregular.list", "large.list", "spd.list"})
        self.assertEqual(counts["classic14.list"], 13)


if __name__ == "__main__":
    sys.dont_write_bytecode = True  # beside the script
    SCRIPT = os.path.abspath(sys.argv.pop(1))
    unittest.main()

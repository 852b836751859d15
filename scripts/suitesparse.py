#!/usr/bin/env python3
"""Lists, fetches and measures matrices of the SuiteSparse Matrix Collection.

    suitesparse.py list [--group G] [--kind K] [--name GLOB] [--min-nnz N] ... [--json]
    suitesparse.py fetch NAME|GROUP/NAME|FILE.list...
    suitesparse.py bench NAME|GROUP/NAME|FILE.list... [-o FILE] [-- OPTIONS OF spmv bench]

The index of the collection and the archives are kept unchanged in a folder of the user's cache. An
interrupted transfer resumes where it stopped (Range), unless the server's file has changed
(If-Range). The SHA-256 of an archive is recorded when it is first downloaded, and checked from then
on. docs/suitesparse.md has the details.

Exit status: 0 done; 1 usage or unknown name; 2 something could not be fetched, read, written or
measured; 130 interrupted.

Source: T. A. Davis, Y. Hu, "The University of Florida Sparse Matrix Collection", ACM Trans. Math.
Softw. 38(1), 2011; for resuming RFC 9110, sections 13.1.5 and 14.

SPDX-License-Identifier: BSD-3-Clause
"""
import argparse
import contextlib
import csv
import difflib
import errno
import fcntl
import fnmatch
import glob
import gzip
import hashlib
import http.client
import json
import math
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
import zlib

COLLECTION = "https://sparse.tamu.edu"
TREE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LISTS = os.path.join(TREE, "scripts", "suitesparse")
TWINS = os.path.join(TREE, "data", "twins.csv")

USAGE, TROUBLE, INTERRUPTED = 1, 2, 130
BLOCK = 1 << 20
# Longest wait in seconds between two attempts, whatever the server requests.
LONGEST_WAIT = 60
# Temporary HTTP errors.
PASSING = (408, 425, 429, 500, 502, 503, 504)
WORD = re.compile(r"[A-Za-z0-9_+-][A-Za-z0-9_.+-]*")
# An archive contains a matrix and perhaps a few vectors; one with more members or longer headers is
# refused.
MOST_MEMBERS = 1000
# Number of malformed index lines that are reported one by one.
MOST_COMPLAINTS = 20


class Failure(Exception):
    """An error message for the user, with an exit status."""

    def __init__(self, sentence, status=TROUBLE):
        super().__init__(sentence)
        self.status = status


class Unreachable(Failure):
    """The server cannot be reached, so no further file is requested from it."""


class Broken(Exception):
    """A transfer that may succeed in another attempt. wait: seconds to wait, as the server
    requests; reached: whether the server answered."""

    def __init__(self, sentence, wait=0.0, reached=True):
        super().__init__(sentence)
        self.wait, self.reached = wait, reached


def printable(text):
    """The text with a question mark for each control or other unprintable character."""
    return "".join(c if c.isprintable() else "?" for c in text)


def say(sentence):
    print(f"suitesparse.py: {printable(sentence)}", file=sys.stderr, flush=True)


def brief(text):
    """The text in quotes for a message; only its beginning if it is long."""
    return f"'{text}'" if len(text) <= 60 else f"'{text[:40]}...' ({len(text)} characters)"


def natural(text):
    """The number that a text of up to 18 ASCII digits stands for, else None. int() would accept
    other digits and raises an error for very long numbers."""
    return int(text) if re.fullmatch(r"[0-9]{1,18}", text) else None


def reason(error):
    """The message of an error, without Python's class names."""
    if isinstance(error, urllib.error.URLError):
        error = error.reason
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error) or type(error).__name__


@contextlib.contextmanager
def naming(path):
    """Converts errors of the file system to a Failure that names path."""
    try:
        yield
    except gzip.BadGzipFile:
        raise  # concerns the content of the file
    except OSError as error:
        raise Failure(f"{error.filename or path}: {reason(error)}") from error


def write_whole(path, text):
    """Replaces the contents of path atomically: writes another file, then renames it."""
    with naming(path):
        with open(path + ".new", "w", encoding="utf-8") as out:
            out.write(text)
            out.flush()
            os.fsync(out.fileno())
        os.replace(path + ".new", path)


def sha256(path):
    digest = hashlib.sha256()
    with naming(path), open(path, "rb") as file:
        for block in iter(lambda: file.read(BLOCK), b""):
            digest.update(block)
    return digest.hexdigest()


# ---- transfers


class Progress:
    """A progress line, after half a second, if standard error is a terminal."""

    def __init__(self, label):
        self.label, self.started, self.shown = label, time.monotonic(), 0.0
        self.on = sys.stderr.isatty()

    def at(self, have, length):
        now = time.monotonic()
        if not self.on or now - self.started < 0.5 or now - self.shown < 0.1:
            return
        share = f" of {length / 1e6:.1f} MB, {100 * have // max(length, 1)} %" if length is not None else " MB"
        sys.stderr.write(f"\r\x1b[K{self.label}: {have / 1e6:.1f}{share}")
        sys.stderr.flush()
        self.shown = now

    def end(self):
        if self.shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


@contextlib.contextmanager
def claimed(part):
    """Opens part for appending and locks it, so that two processes never write to the same file."""
    with naming(part):
        os.makedirs(os.path.dirname(part), exist_ok=True)
        while True:
            file = open(part, "ab")
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                file.close()
                if error.errno not in (errno.EAGAIN, errno.EACCES):
                    raise
                raise Failure(f"{part}: another process is fetching it") from error
            # The previous holder of the lock may have renamed the file between these two calls.
            if os.path.exists(part) and os.path.samestat(os.stat(part), os.fstat(file.fileno())):
                break
            file.close()
    try:
        yield file
    finally:
        # A full disk fails here again; the first failure is already reported.
        with contextlib.suppress(OSError):
            file.close()


class Transfer:
    """The transfer of a file from url to the claimed file `out`. A second file `note` identifies
    the source of its bytes, so that parts of different files are never joined: url, length and
    validator (entity tag or date) of the server's answer."""

    def __init__(self, url, out, timeout, progress):
        self.url, self.out, self.timeout, self.progress = url, out, timeout, progress
        self.path = out.name
        self.note = out.name + ".json"
        self.length = self.validator = None
        self.recall()

    def size(self):
        with naming(self.path):
            self.out.flush()
            return os.fstat(self.out.fileno()).st_size

    def recall(self):
        """Keeps the part left by an earlier process if the note identifies it, else empties it."""
        known = {}
        with contextlib.suppress(OSError, ValueError, RecursionError):
            with open(self.note, encoding="utf-8") as file:
                known = json.load(file)
        usable = isinstance(known, dict) and known.get("url") == self.url and isinstance(known.get("validator"), str)
        if usable and isinstance(known.get("length"), (int, type(None))):
            self.length, self.validator = known.get("length"), known["validator"]
        if self.validator is None or (self.length is not None and self.size() > self.length):
            self.restart()

    def restart(self, length=None, validator=None):
        with naming(self.path):
            self.out.truncate(0)
        self.length, self.validator = length, validator
        write_whole(self.note, json.dumps({"url": self.url, "length": length, "validator": validator}) + "\n")

    def forget(self):
        with naming(self.note), contextlib.suppress(FileNotFoundError):
            os.unlink(self.note)

    def ask(self):
        """Requests the rest of the file: (position of its first byte, the server's answer)."""
        have = self.size()
        headers = {"User-Agent": "spmv-suitesparse", "Accept-Encoding": "identity"}
        if have:
            headers.update({"Range": f"bytes={have}-", "If-Range": self.validator})
        try:
            request = urllib.request.Request(self.url, headers=headers)
            return have, urllib.request.urlopen(request, timeout=self.timeout)
        except urllib.error.HTTPError as error:
            error.close()
            if error.code == 416 and have:
                self.restart()
                raise Broken("the server's file is shorter than the part here, restarting") from error
            if error.code in PASSING:
                wait = natural(error.headers.get("Retry-After", ""))
                raise Broken(f"the server answered {error.code} {error.reason}", float(wait or 0)) from error
            if error.code in (404, 410):
                raise Failure(f"{self.url}: not found ({error.code} {error.reason})", USAGE) from error
            raise Failure(f"{self.url}: the server answered {error.code} {error.reason}") from error
        except (OSError, http.client.HTTPException) as error:
            raise Broken(reason(error), reached=False) from error
        except ValueError as error:
            raise Unreachable(f"{self.url}: not a valid URL: {error}") from error

    def place(self, have, answer):
        """Keeps the part if the answer continues it, else empties it."""
        tag, date = answer.headers.get("ETag"), answer.headers.get("Last-Modified")
        strong = tag is not None and not tag.startswith("W/")
        validator = tag if strong else date
        if validator is not None and not (validator.isascii() and validator.isprintable()):
            validator = None  # it could not be sent back
        if answer.status == 206:
            span = re.fullmatch(r"bytes ([0-9]{1,18})-[0-9]{1,18}/([0-9]{1,18}|\*)", answer.headers.get("Content-Range", "").strip())
            total = None if span is None or span[2] == "*" else int(span[2])
            continues = span is not None and int(span[1]) == have and validator in (None, self.validator)
            if not continues or (total is not None and self.length not in (None, total)):
                # the server supports Range but not If-Range
                self.restart()
                raise Broken("the server's file has changed, restarting")
            self.length = total if self.length is None else self.length
            return
        if answer.status != 200:
            raise Failure(f"{self.url}: the server answered {answer.status} {answer.reason}")
        self.restart(natural(answer.headers.get("Content-Length", "")), validator)

    def attempt(self):
        have = self.size()
        if have and have == self.length:
            return  # complete; the previous process ended before it renamed the file
        if have and self.validator is None:
            self.restart()  # the rest may be of another file
        have, answer = self.ask()
        with answer:
            self.place(have, answer)
            have = self.size()
            while self.length is None or have < self.length:
                try:
                    block = answer.read1(BLOCK if self.length is None else min(BLOCK, self.length - have))
                except (OSError, ValueError, http.client.HTTPException) as error:
                    raise Broken(f"{reason(error)} after {have} bytes") from error
                if not block:
                    break
                with naming(self.path):
                    self.out.write(block)
                have += len(block)
                self.progress.at(have, self.length)
        if self.size() < (self.length or 0):
            raise Broken(f"the transfer ended after {have} of {self.length} bytes")

    def run(self, label, retries, backoff):
        """Repeats attempts until the file is complete. Fails if more than `retries` attempts in a
        row bring no new data."""
        furthest, failures = self.size(), 0
        while True:
            try:
                self.attempt()
                with naming(self.path):
                    self.out.flush()
                    os.fsync(self.out.fileno())
                return
            except Broken as broken:
                failures = 0 if self.size() > furthest else failures + 1
                furthest = max(furthest, self.size())
                if failures > retries:
                    kind = Failure if broken.reached else Unreachable
                    tries = "1 attempt" if failures == 1 else f"{failures} attempts in a row"
                    raise kind(f"{self.url}: {broken}; {tries} without new data") from broken
                wait = min(LONGEST_WAIT, max(backoff * 2 ** max(0, min(failures - 1, 30)), broken.wait))
                self.progress.end()
                say(f"{label}: {broken}; trying again in {wait:.3g} s")
                time.sleep(wait)


def transfer(url, part, label, options):
    """Downloads url to part, which the caller has claimed."""
    progress = Progress(label)
    try:
        moved = Transfer(url, part, options.timeout, progress)
        moved.run(label, options.retries, options.backoff)
        return moved
    finally:
        progress.end()


# ---- the index


class Entry:
    """A line of the index. nnz counts nonzeros; entries also counts the zeros that the file stores
    (None in older indexes)."""

    def __init__(self, fields):
        if len(fields) < 12:
            raise ValueError(f"{len(fields)} fields instead of 12 or more")
        self.group, self.name = fields[0], fields[1]
        if not WORD.fullmatch(self.group) or not WORD.fullmatch(self.name):
            raise ValueError(f"{brief(f'{self.group}/{self.name}')} is not a valid GROUP/NAME")
        self.rows, self.cols = count(fields[2], "rows"), count(fields[3], "columns")
        self.nnz = count(fields[4], "nonzeros")
        self.real, self.binary, self.nd, self.spd = (flag(field) for field in fields[5:9])
        self.pattern_symmetry, self.symmetry = (degree(field) for field in fields[9:11])
        self.kind = printable(fields[11])
        self.entries = count(fields[12], "entries") if len(fields) > 12 else None

    def full(self):
        return f"{self.group}/{self.name}"

    def shown(self):
        field = "binary" if self.binary else "real" if self.real else "complex"
        shown = {"group": self.group, "name": self.name, "rows": self.rows, "cols": self.cols, "nnz": self.nnz,
                 "entries": self.entries, "field": field, "spd": self.spd, "pattern_symmetry": self.pattern_symmetry,
                 "numerical_symmetry": self.symmetry, "kind": self.kind}
        return {key: value for key, value in shown.items() if value is not None}


def count(field, what):
    number = natural(field)
    if number is None:
        raise ValueError(f"{brief(field)} is not a valid number of {what}")
    return number


def degree(field):
    """The degree of a symmetry: a number in ASCII, not nan or inf, which JSON does not have."""
    with contextlib.suppress(ValueError):
        if field.isascii() and math.isfinite(float(field)):
            return float(field)
    raise ValueError(f"{brief(field)} is not a degree of symmetry")


def flag(field):
    if field not in ("0", "1"):
        raise ValueError(f"{brief(field)} is neither 0 nor 1")
    return field == "1"


def parse_index(path):
    """The entries of an index. Its first line is their number, its second a date. Malformed lines
    are reported and left out; a file without a valid line is rejected."""
    with naming(path), open(path, encoding="utf-8", errors="replace", newline="") as file:
        promised = natural(file.readline().strip())
        file.readline()
        entries, malformed = [], 0
        for number, line in enumerate(file, 3):
            if not line.strip():
                continue
            try:
                entries.append(Entry([field.strip() for field in next(csv.reader([line]), [])]))
            except (ValueError, csv.Error) as error:
                malformed += 1
                if promised is not None and malformed <= MOST_COMPLAINTS:
                    say(f"{path}:{number}: left out: {error}")
    if promised is None or not entries:
        raise Failure(f"{path}:1: not an index of the collection (expected the number of matrices); "
                      "list --refresh fetches it again")
    if malformed > MOST_COMPLAINTS:
        say(f"{path}: {malformed - MOST_COMPLAINTS} more malformed lines left out")
    if promised != len(entries):
        say(f"{path}: {len(entries)} matrices read, but the first line announces {promised}")
    return entries


class Cache:
    """The cache folder: ssstats.csv (the index), GROUP/NAME.tar.gz as downloaded, and sha256sums in
    the format of sha256sum -c."""

    def __init__(self, options):
        self.options = options
        home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
        self.folder = os.path.abspath(options.cache or os.path.join(home, "spmv", "suitesparse"))
        self.base = options.base_url.rstrip("/")
        self.sums_path = os.path.join(self.folder, "sha256sums")
        self.index_path = os.path.join(self.folder, "ssstats.csv")
        self.entries = None

    # -- index

    def index(self, refresh=False):
        if refresh or (self.entries is None and not os.path.exists(self.index_path)):
            self.fetch_index()
        if self.entries is None:
            self.entries = parse_index(self.index_path)
        return self.entries

    def fetch_index(self):
        if self.options.offline:
            raise Failure(f"{self.index_path}: the index is not in the cache (--offline)")
        with claimed(self.index_path + ".part") as part:
            try:
                moved = transfer(self.base + "/files/ssstats.csv", part, "index", self.options)
            except Failure as error:
                kind = Unreachable if isinstance(error, Unreachable) else Failure
                raise kind(f"cannot fetch the index: {error}") from error
            try:
                self.entries = parse_index(part.name)  # before it replaces a good index
            except Failure:
                moved.restart()
                raise
            with naming(self.index_path):
                os.replace(part.name, self.index_path)
            moved.forget()

    # -- names

    def resolve(self, name):
        """(group, name) for NAME or GROUP/NAME. A name without group needs the index, or an archive
        of that name in the cache."""
        group, slash, short = name.rpartition("/")
        if not WORD.fullmatch(short) or (slash and not WORD.fullmatch(group)):
            raise Failure(f"'{name}' is not a matrix name: expected NAME or GROUP/NAME", USAGE)
        if slash:
            return group, short
        if not os.path.exists(self.index_path):
            with contextlib.suppress(OSError):
                held = [g for g in sorted(os.listdir(self.folder)) if os.path.isfile(self.archive((g, short)))]
                if len(held) == 1:
                    return held[0], short
        groups = [entry.group for entry in self.index() if entry.name == short]
        if len(groups) > 1:
            choices = " or ".join(f"{g}/{short}" for g in groups)
            raise Failure(f"'{short}' is the name of {len(groups)} matrices: use {choices}", USAGE)
        if not groups:
            raise Failure(f"the collection has no matrix '{short}'{self.near(short)}", USAGE)
        return groups[0], short

    def near(self, name):
        """A hint with similar names, if the index is in the cache."""
        if self.entries is None and not os.path.exists(self.index_path):
            return ""
        names = {entry.name.lower(): entry.full() for entry in self.index()}
        close = difflib.get_close_matches(name.lower(), names, n=3)
        return f"; did you mean {' or '.join(names[c] for c in close)}?" if close else ""

    def matrices(self, arguments):
        """The matrices that the arguments name, in order, without repetitions."""
        found = []
        for argument in arguments:
            names = read_list(argument) if argument.endswith(".list") else [("", argument)]
            for place, name in names:
                try:
                    matrix = self.resolve(name)
                except Failure as error:
                    if error.status == TROUBLE and not os.path.exists(self.index_path):
                        lacking([(name,)])
                    raise type(error)(f"{place}{error}", error.status) from error
                if matrix not in found:
                    found.append(matrix)
        if not found:
            raise Failure("no matrix given", USAGE)
        return found

    # -- archives

    def archive(self, matrix):
        return os.path.join(self.folder, matrix[0], matrix[1] + ".tar.gz")

    def sums(self):
        known = {}
        with naming(self.sums_path), contextlib.suppress(FileNotFoundError):
            with open(self.sums_path, encoding="utf-8", errors="replace") as file:
                for number, line in enumerate(file, 1):
                    match = re.fullmatch(r"([0-9a-f]{64})  (\S+)\n?", line)
                    if match is None:
                        raise Failure(f"{self.sums_path}:{number}: expected a SHA-256 and a file name; remove or correct the line")
                    known[match[2]] = match[1]
        return known

    def record(self, matrix, digest):
        with naming(self.sums_path), open(self.sums_path + ".lock", "w", encoding="utf-8") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            known = self.sums()
            known["/".join(matrix) + ".tar.gz"] = digest
            write_whole(self.sums_path, "".join(f"{known[name]}  {name}\n" for name in sorted(known)))

    def recorded(self, matrix):
        return self.sums().get("/".join(matrix) + ".tar.gz")

    def has(self, matrix):
        return os.path.exists(self.archive(matrix))

    def verify(self, matrix):
        """Whether the archive has the recorded SHA-256. If none is recorded, records it."""
        digest, known = sha256(self.archive(matrix)), self.recorded(matrix)
        if known is None:
            self.record(matrix, digest)
        return known in (None, digest)

    def fetch(self, matrix, renew=False):
        """Downloads the archive unless a valid one is in the cache; returns its path."""
        path, label = self.archive(matrix), "/".join(matrix)
        if self.has(matrix) and not renew:
            if self.verify(matrix):
                return path
            if not self.options.offline:
                say(f"{label}: {path} has changed since its download (SHA-256); fetching it again")
        if self.options.offline:
            state = "has changed since its download (SHA-256)" if self.has(matrix) else "is not in the cache"
            raise Failure(f"{label}: {path} {state}; --offline prevents a download")
        with claimed(path + ".part") as part:
            try:
                moved = transfer(f"{self.base}/MM/{matrix[0]}/{matrix[1]}.tar.gz", part, label, self.options)
            except Failure as error:
                if error.status != USAGE:
                    raise
                raise Failure(f"{label}: {error}{self.near(matrix[1])}", USAGE) from error
            try:
                digest = self.judge(matrix, part.name, moved.length is None, renew)
            except Failure:
                moved.restart()
                raise
            with naming(path):
                os.replace(part.name, path)
            moved.forget()
            self.record(matrix, digest)
        return path

    def judge(self, matrix, part, unmeasured, renew):
        """The SHA-256 of a downloaded archive; raises Failure if the archive is rejected."""
        label = "/".join(matrix)
        with naming(part), open(part, "rb") as file:
            if file.read(2) != b"\x1f\x8b":
                raise Failure(f"{label}: the server's file is not a gzip archive")
            if unmeasured:
                # without a length from the server, only the archive's end shows that it is complete
                file.seek(0)
                try:
                    with gzip.open(file) as plain:
                        while plain.read(BLOCK):
                            pass
                except (EOFError, zlib.error, gzip.BadGzipFile) as error:
                    raise Failure(f"{label}: the downloaded archive is truncated or damaged: {error}") from error
        digest, known = sha256(part), self.recorded(matrix)
        if known not in (None, digest) and not renew:
            raise Failure(f"{label}: the server's file has SHA-256 {digest}, but {known} was recorded at the first "
                          "download; to accept the new file, use --renew")
        return digest


def read_list(path):
    """[(place, name)] of a .list file: one name per line, # begins a comment. Searched in the
    current folder, then beside this script."""
    if not os.path.exists(path) and not os.path.dirname(path) and os.path.exists(os.path.join(LISTS, path)):
        path = os.path.join(LISTS, path)
    names = []
    with naming(path), open(path, encoding="utf-8", errors="replace") as file:
        for number, line in enumerate(file, 1):
            words = line.split("#")[0].split()
            if len(words) > 1:
                raise Failure(f"{path}:{number}: expected one name per line, not '{' '.join(words)[:60]}'", USAGE)
            names += [(f"{path}:{number}: ", word) for word in words]
    if not names:
        raise Failure(f"{path}: the list is empty", USAGE)
    return names


def twins():
    """Names of the matrices that have a twin, a generated matrix with the same statistics."""
    if not os.path.exists(TWINS):
        return set()
    with naming(TWINS), open(TWINS, encoding="utf-8", newline="") as file:
        lines = [line for line in file if line.strip() and not line.startswith("#")]
    return {row["name"] for row in csv.DictReader(lines) if row.get("name")}


def lacking(matrices):
    """Prints which matrices are not in the cache, and which of them have a twin."""
    if not matrices:
        return
    say(f"not in the cache: {' '.join('/'.join(m) for m in matrices)}")
    known = twins()
    offered = [f"twin:{m[-1]}" for m in matrices if m[-1] in known]
    if offered:
        say(f"generated matrices with the same statistics, without a download: spmv bench {' '.join(offered)}")


# ---- commands


def command_list(cache, options):
    def within(value, least, most):
        return (least is None or value >= least) and (most is None or value <= most)

    def fits(entry):
        return ((options.group is None or fnmatch.fnmatchcase(entry.group.lower(), options.group.lower()))
                and (options.name is None or fnmatch.fnmatchcase(entry.name.lower(), options.name.lower()))
                and (options.kind is None or options.kind.lower() in entry.kind.lower())
                and within(entry.nnz, options.min_nnz, options.max_nnz)
                and within(entry.rows, options.min_rows, options.max_rows)
                and within(entry.cols, options.min_cols, options.max_cols)
                and (entry.spd or not options.spd))

    found = [entry for entry in cache.index(options.refresh) if fits(entry)]
    if options.json:
        for entry in found:
            print(json.dumps(entry.shown()))
        return 0
    width = max([len(entry.full()) for entry in found], default=0)
    for entry in found:
        print(f"{entry.full():{width}} {entry.rows:>10} {entry.cols:>10} {entry.nnz:>12}  {entry.kind}")
    say(f"{len(found)} of {len(cache.entries)} matrices: name, rows, columns, nonzeros, kind")
    return 0


def command_fetch(cache, options):
    failures, status = [], 0
    matrices = cache.matrices(options.names)
    for at, matrix in enumerate(matrices):
        try:
            print(cache.fetch(matrix, options.renew), flush=True)
        except Failure as error:
            say(str(error))
            failures.append(matrix)
            status = max(status, error.status)
            if isinstance(error, Unreachable):
                failures += matrices[at + 1:]
                break
    lacking([matrix for matrix in failures if not cache.has(matrix)])
    return status


class Bounded:
    """A decompressed stream for tarfile with bounds: a read of at most one block, no position
    beyond limit."""

    def __init__(self, stream, limit):
        self.stream, self.limit = stream, limit

    def read(self, size):
        if size > BLOCK:
            raise tarfile.ReadError(f"a header of {size} bytes")
        return self.stream.read(size)

    def seek(self, position):
        if position > self.limit:
            raise tarfile.ReadError(f"more than {self.limit} bytes")
        return self.stream.seek(position)

    def tell(self):
        return self.stream.tell()

    def finish(self):
        """Reads to the end, where gzip verifies its checksum."""
        while self.stream.read(BLOCK):
            if self.stream.tell() > self.limit:
                raise tarfile.ReadError(f"more than {self.limit} bytes")


def extract(archive, name, folder, limit):
    """Writes only the member NAME/NAME.mtx to folder; returns its path, which does not depend on
    paths in the archive."""
    target = os.path.join(folder, name + ".mtx")
    wanted = f"{name}/{name}.mtx"
    with naming(folder):
        limit = min(limit, shutil.disk_usage(folder).free)
    try:
        with naming(archive), gzip.open(archive) as plain:
            stream = Bounded(plain, 2 * limit + MOST_MEMBERS * BLOCK)
            tar = tarfile.open(fileobj=stream, mode="r:")
            for number, member in enumerate(tar):
                if number == MOST_MEMBERS:
                    break
                if member.name != wanted:
                    continue
                if member.type not in (tarfile.REGTYPE, tarfile.AREGTYPE) or member.issparse():
                    raise Failure(f"{archive}: {wanted} is not a regular file")
                if member.size > limit:
                    raise Failure(f"{archive}: {wanted} has {member.size} bytes; at most {limit} are free or allowed")
                with tar.extractfile(member) as source, naming(target), open(target, "wb") as out:
                    shutil.copyfileobj(source, out, BLOCK)
                if os.path.getsize(target) != member.size:
                    raise Failure(f"{archive}: the archive ends inside {wanted}")
                stream.finish()
                return target
    except (tarfile.TarError, gzip.BadGzipFile, EOFError, zlib.error, ValueError, OverflowError, IndexError) as error:
        # the last three: tarfile raises them for some numbers in headers
        raise Failure(f"{archive}: not a readable archive: {error}") from error
    raise Failure(f"{archive}: does not contain {wanted}")


def is_program(path):
    return os.path.isfile(path) and os.access(path, os.X_OK)


def built_programs():
    """Paths of spmv in all builds of the tree, the newest first, and of the installed spmv if this
    script is installed."""
    folders = glob.glob(os.path.join(glob.escape(TREE), "build", "*", "app")) + [os.path.join(TREE, "build", "app")]
    built = [path for path in (os.path.join(folder, "spmv") for folder in folders) if is_program(path)]
    installed = os.path.join(os.path.dirname(os.path.dirname(TREE)), "bin", "spmv")
    beside = [installed] if os.path.basename(os.path.dirname(TREE)) == "share" and is_program(installed) else []
    return sorted(built, key=os.path.getmtime, reverse=True) + beside


def find_program(named):
    """The given program, else spmv on the PATH, else spmv in a build of the tree."""
    if named and not is_program(named):
        raise Failure(f"{named}: not a program")
    found = [named] if named else [path for path in [shutil.which("spmv")] if path] or built_programs()
    if not found:
        raise Failure(f"spmv was not found on the PATH or in {TREE}/build/*/app; build it, or use --spmv PROGRAM")
    return os.path.abspath(found[0])


def measure(program, subject, options, folder, results):
    """Runs the benchmark on one subject and adds its result lines to results. Raises Failure."""
    written = os.path.join(folder, "result.json")
    command = [program, "bench", subject, *options.extra, f"--json={written}"]
    trouble = None
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=sys.stderr, check=False, timeout=options.limit)
        if done.returncode:
            trouble = f"exit status {done.returncode}"
    except subprocess.TimeoutExpired:
        trouble = f"stopped after {options.limit:g} s"
    except OSError as error:
        raise Failure(f"{program}: {reason(error)}") from error
    lines = []
    with naming(written), contextlib.suppress(FileNotFoundError):
        with open(written, encoding="utf-8", errors="replace") as file:
            lines = [line.strip() for line in file if line.strip()]
    for number, line in enumerate(lines, 1):
        try:
            fine = isinstance(json.loads(line), dict)
        except (ValueError, RecursionError):
            fine = False
        if fine:
            with naming(results.name):
                results.write(line + "\n")
                results.flush()
        else:
            trouble = trouble or f"line {number} of its result is not a JSON object"
    if trouble or not lines:
        raise Failure(trouble or "spmv bench wrote no result")


def command_bench(cache, options):
    if any(word == "--json" or word.startswith("--json=") for word in options.extra):
        raise Failure("--json is reserved for this script: use -o FILE for the results", USAGE)
    program = find_program(options.spmv)
    matrices = cache.matrices(options.names)
    imitable = twins() if options.twins else set()
    failures, missing, measured = [], [], 0
    with naming(options.output):
        results = open(options.output, "a" if options.append else "x", encoding="utf-8")
    with results:
        for matrix in matrices:
            held, label = cache.has(matrix), "/".join(matrix)
            if not held and matrix[1] not in imitable:
                missing.append(matrix)
                continue
            try:
                with naming(options.scratch or tempfile.gettempdir()):
                    scratch = tempfile.TemporaryDirectory(prefix="spmv-", dir=options.scratch)
                with scratch as folder:
                    if held and not cache.verify(matrix):
                        raise Failure(f"{cache.archive(matrix)} has changed since its download (SHA-256): fetch it again")
                    subject = f"twin:{matrix[1]}"
                    if held:
                        subject = extract(cache.archive(matrix), matrix[1], folder, options.limit_bytes)
                    measure(program, subject, options, folder, results)
                measured += 1
            except Failure as error:
                say(f"{label}: {error}")
                failures.append(label)
    lacking(missing)
    with naming(options.output):
        empty = os.path.getsize(options.output) == 0
        if empty and not options.append:
            os.unlink(options.output)  # an empty file would block the next run
    say(f"{measured} of {len(matrices)} measured; {'no results' if empty else 'results in ' + options.output}")
    if failures:
        say(f"failed: {' '.join(failures)}")
    return TROUBLE if failures or missing else 0


# ---- command line


class Parser(argparse.ArgumentParser):
    def error(self, message):
        self.print_usage(sys.stderr)
        say(message)
        sys.exit(USAGE)


def positive(convert, least):
    def read(text):
        value = convert(text)
        if not least <= value < float("inf"):
            raise ValueError(text)
        return value

    read.__name__ = "number"
    return read


def number_of(text):
    """A count written like 1000000 or like 1e6."""
    value = float(text)
    if not 0 <= value < 2**63 or value != int(value):
        raise ValueError(text)
    return int(text) if text.isdigit() else int(value)


number_of.__name__ = "count"


def parse(words):
    extra = []
    if "--" in words:
        at = words.index("--")
        words, extra = words[:at], words[at + 1:]
    shared = Parser(add_help=False)
    shared.add_argument("--base-url", default=os.environ.get("SPMV_SUITESPARSE_URL") or COLLECTION, metavar="URL",
                        help="the server (default: $SPMV_SUITESPARSE_URL, else %(default)s)")
    shared.add_argument("--cache", metavar="FOLDER",
                        help="default: spmv/suitesparse in $XDG_CACHE_HOME, else in ~/.cache")
    shared.add_argument("--offline", action="store_true", help="fetch nothing: use what is in the cache")
    shared.add_argument("--timeout", type=positive(float, 0.001), default=60.0, metavar="S",
                        help="try again if the server sends nothing for S seconds (default: %(default)g)")
    shared.add_argument("--retries", type=positive(int, 0), default=5, metavar="N",
                        help="give up after N retries in a row without new data (default: %(default)s)")
    shared.add_argument("--backoff", type=positive(float, 0.0), default=1.0, metavar="S",
                        help=f"seconds before a retry, doubled each time up to {LONGEST_WAIT} (default: %(default)g)")
    parser = Parser(prog="suitesparse.py", description="Matrices of the SuiteSparse Matrix Collection.")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=Parser)
    commands.required = True

    one = commands.add_parser("list", parents=[shared], help="list matrices of the collection, from its index")
    one.add_argument("--group", metavar="G", help="the group; * and ? are wildcards")
    one.add_argument("--kind", metavar="K", help="text in the kind of problem")
    one.add_argument("--name", metavar="GLOB", help="the name; * and ? are wildcards")
    for what in ("nnz", "rows", "cols"):
        one.add_argument(f"--min-{what}", type=number_of, metavar="N")
        one.add_argument(f"--max-{what}", type=number_of, metavar="N")
    one.add_argument("--spd", action="store_true", help="symmetric positive definite ones only")
    one.add_argument("--refresh", action="store_true", help="fetch the index again")
    one.add_argument("--json", action="store_true", help="one JSON object per line")
    one.set_defaults(run=command_list)

    names = Parser(add_help=False)
    names.add_argument("names", nargs="+", metavar="NAME|GROUP/NAME|FILE.list")
    one = commands.add_parser("fetch", parents=[shared, names], help="download archives into the cache")
    one.add_argument("--renew", action="store_true", help="fetch again, and record the new sha256")
    one.set_defaults(run=command_fetch)

    one = commands.add_parser("bench", parents=[shared, names],
                              help="run spmv bench on matrices in the cache; options for it after --")
    one.add_argument("-o", "--output", default="suitesparse.jsonl", metavar="FILE",
                     help="the results, one JSON object per line (default: %(default)s)")
    one.add_argument("--append", action="store_true", help="add to FILE; otherwise it must not exist")
    one.add_argument("--spmv", metavar="PROGRAM", help="default: spmv on the PATH, else the newest build/*/app/spmv")
    one.add_argument("--twins", action="store_true",
                     help="for a matrix that is not in the cache, measure its twin:NAME if there is one")
    one.add_argument("--limit", type=positive(float, 0.001), metavar="S", help="stop a run after S seconds")
    one.add_argument("--limit-bytes", type=number_of, default=256 * 2**30, metavar="N",
                     help="the largest .mtx to unpack (default: %(default)s)")
    one.add_argument("--scratch", metavar="FOLDER", help="unpack there, one matrix at a time (default: $TMPDIR)")
    one.set_defaults(run=command_bench)

    options = parser.parse_args(words)
    options.extra = extra
    if extra and options.command != "bench":
        parser.error(f"{options.command} takes no arguments after --")
    url = urllib.parse.urlsplit(options.base_url)
    if url.scheme not in ("http", "https") or not url.netloc:
        parser.error(f"'{options.base_url}' is not a URL: expected http://... or https://...")
    return options


def main():
    # names of kinds are UTF-8, even if the terminal's encoding is not
    sys.stdout.reconfigure(errors="replace")
    options = parse(sys.argv[1:])
    try:
        status = options.run(Cache(options), options)
        sys.stdout.flush()
        return status
    except Failure as error:
        say(str(error))
        return error.status
    except BrokenPipeError:
        # the reader has closed the pipe
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        say(f"{error.filename or 'standard output'}: {reason(error)}")
        return TROUBLE
    except KeyboardInterrupt:
        say("interrupted; the same command resumes")
        return INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())

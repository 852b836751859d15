#!/usr/bin/env python3
"""Tests the tests with planted bugs: a mutant is a small change of one definition, and a named test
must catch it.

    mutate.py BUILD [WORD]     judges the mutants whose name contains WORD; without WORD all
    mutate.py BUILD --fixed    judges the mutants marked "fixed": a quick subset, which the test
                               scripts.mutants runs

With --tested the tests are not run without a mutant first: ctest runs them beside scripts.mutants.
Mutants of which a test is disabled in BUILD are left out.

BUILD is an up-to-date build folder of this tree, made with Ninja. mutants.txt lists the mutants and
describes its format. A mutant is caught if one of its tests fails, crashes or exceeds its time
limit. JOBS=N sets the number of mutants judged in parallel.

Exit status:
    0   every judged mutant was caught
    1   a mutant survives or does not compile, or its text does not occur exactly once in its
        definition (checked for every mutant of the table)
    2   nothing was judged, for example because a test fails without any mutant
    77  skipped: BUILD was not made with Ninja

The tree and the files of BUILD are not changed. Each mutant gets a scratch folder BUILD/mutate/*
with the changed file and links to all other source files. The objects and programs that depend on
the changed file (by Ninja's dependency log) and that the test needs are built there, with the
commands of BUILD and replaced paths. Warnings are off because a mutant may leave a variable unused.

R. A. DeMillo, R. J. Lipton, F. G. Sayward, "Hints on test data selection", Computer 11(4), 1978.

SPDX-License-Identifier: BSD-3-Clause
"""
import argparse
import collections
import concurrent.futures
import json
import os
import re
import resource
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TABLE = os.path.join(ROOT, "scripts", "checks", "mutants.txt")
SKIPPED = 77
# Time limit of a test with a mutant: LIMIT seconds plus LIMIT_FACTOR times its time without.
LIMIT, LIMIT_FACTOR = 30, 4


class Trouble(Exception):
    """Nothing can be judged; the message gives the reason."""


class Bad(Exception):
    """This mutant cannot be judged, which fails the run; the message gives the reason."""


# ------------------------------------------------------------------ the table
Mutant = collections.namedtuple("Mutant", "name file function text replacement tests fixed")


def read_table(lines):
    """The mutants of a table; mutants.txt describes the format."""
    mutants, names = [], set()
    entry = None
    for number, line in enumerate([*lines, ""], 1):
        line = line.rstrip()
        if line.startswith("#"):
            continue
        if line.startswith(" "):
            key, _, value = line.strip().partition(" ")
            if entry is None or key not in ("in", "-", "+", "test", "fixed"):
                raise Trouble(f"mutants.txt:{number}: unexpected {line.strip()!r}")
            entry[key].append(value.strip())
            continue
        if entry is not None:
            place = " ".join(entry["in"]).split()
            tests = " ".join(entry["test"]).split()
            text = "\n".join(entry["-"])
            if len(place) != 2 or not tests or not text or not entry["+"] or name in names:
                raise Trouble(f"mutants.txt: the mutant {name!r} (before line {number}) is incomplete or repeated")
            names.add(name)
            mutants.append(Mutant(name, *place, text, "\n".join(entry["+"]), tests, "fixed" in entry))
        name, entry = line, collections.defaultdict(list) if line else None
    return mutants


# ------------------------------------------------------------------ definitions
HIDDEN = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|(?<!\w)'(?:\\.|[^'\\\n])+'", re.S)
CLOSING = {"(": ")", "{": "}"}
# Text between a function's parameters and its body; between an array's or struct's name and its
# body.
BEFORE_BODY = re.compile(r"(?:\s|const\b|noexcept\b|->[^;{}]*)*\{")
BEFORE_FIELDS = re.compile(r"(?:\s*\[[^][]*\])*\s*=\s*\{|\s*(?:\bfinal\s*)?(?::[^;{}()]*)?\{")


def closed(code, at):
    """The position after the bracket that closes the one at `at`; None if there is none."""
    opens, depth = code[at], 0
    for match in re.finditer("[" + re.escape(opens + CLOSING[opens]) + "]", code[at:]):
        depth += 1 if match.group() == opens else -1
        if depth == 0:
            return at + match.end()
    return None


def definitions(text, name, shell=False):
    """[(begin, end)] of each definition of a name in C, C++ or a shell script: functions, macros,
    arrays, structs. A name may have several: overloads, alternatives by #if."""
    if shell:
        return [match.span() for match in re.finditer(r"^%s\(\) \{$.*?^\}$" % re.escape(name), text, re.S | re.M)]
    code = HIDDEN.sub(lambda match: re.sub(r"[^\n]", " ", match.group()), text)
    found = []
    for match in re.finditer(r"(?<!\w)%s(?!\w)" % re.escape(name), code):
        line = code.rfind("\n", 0, match.start()) + 1
        end = None
        if re.fullmatch(r"#\s*define\s+", code[line:match.start()]):
            end = re.compile(r"(?:[^\n]*\\\n)*[^\n]*").match(code, line).end()
        elif code.startswith("(", match.end()):
            behind = closed(code, match.end())
            body = behind and BEFORE_BODY.match(code, behind)
            end = body and closed(code, body.end() - 1)
        else:
            body = BEFORE_FIELDS.match(code, match.end())
            end = body and closed(code, body.end() - 1)
        if end is not None:
            found.append((line, end))
    return found


def planted(mutant, text):
    """The text of the file with the mutant. White space in the mutant matches any white space."""
    places = definitions(text, mutant.function, mutant.file.endswith(".sh"))
    if not places:
        raise Bad(f"{mutant.file} has no definition of {mutant.function}")
    pattern = re.compile(r"\s+".join(map(re.escape, mutant.text.split())))
    found = {match.span() for begin, end in places for match in pattern.finditer(text, begin, end)}
    if len(found) != 1:
        raise Bad(f"its text occurs {len(found)} times in {mutant.function} of {mutant.file}, expected once")
    begin, end = found.pop()
    return text[:begin] + mutant.replacement + text[end:]


# ------------------------------------------------------------------ processes
children = set()
ending = threading.Event()


def run(command, limit=None, **options):
    """Runs a command: its exit status (None after `limit` seconds) and its output."""
    if ending.is_set():
        raise Trouble("another mutant or test ended this run")
    with tempfile.TemporaryFile() as said:
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=said, stderr=subprocess.STDOUT,
                                 start_new_session=True, **options)
        children.add(child)
        try:
            status = child.wait(limit)
        except subprocess.TimeoutExpired:
            stop(child)
            status = None
        children.discard(child)
        said.seek(0)
        return status, said.read().decode("utf-8", "replace")


def stop(child):
    """Kills the child and its process group."""
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    child.wait()


def each(work, items):
    """Yields (item, work(item)) as each is done, JOBS in parallel; an exception stops all."""
    ending.clear()
    with concurrent.futures.ThreadPoolExecutor(int(os.environ.get("JOBS") or len(os.sched_getaffinity(0)))) as pool:
        futures = {pool.submit(work, item): item for item in items}
        try:
            for future in concurrent.futures.as_completed(futures):
                yield futures[future], future.result()
        except BaseException:
            ending.set()
            for child in list(children):
                stop(child)
            raise


# ------------------------------------------------------------------ the build
class Build:
    """A build folder made with Ninja: commands, dependencies, tests. A node is a file that a
    command produces, named by its path relative to the folder."""

    def __init__(self, folder):
        try:
            with open(os.path.join(folder, "CMakeCache.txt"), encoding="utf-8") as lines:
                cache = dict(re.findall(r"^([\w-]+):\w+=(.*)$", lines.read(), re.M))
        except FileNotFoundError:
            raise Trouble(f"{folder} is not a build folder")
        if cache["CMAKE_GENERATOR"] != "Ninja":
            print(f"skipped: {folder} was made with {cache['CMAKE_GENERATOR']}, not with Ninja")
            sys.exit(SKIPPED)
        self.root, self.folder = cache["CMAKE_HOME_DIRECTORY"], cache["CMAKE_CACHEFILE_DIR"]
        if not os.path.samefile(self.root, ROOT):
            raise Trouble(f"{folder} is a build of {self.root}, not of {ROOT}")
        self.ninja, self.ctest = cache["CMAKE_MAKE_PROGRAM"], cache["CMAKE_CTEST_COMMAND"]
        self.commands = {self.node(step["output"]): step["command"]
                         for step in json.loads(self.ask("-t", "compdb", "-x")) if step["command"]}
        self.modules = [node for node in self.commands if ".so" in os.path.basename(node) and os.path.isfile(self.path(node))]
        self.read_dependencies()
        self.tests = {test["name"]: test for test in self.list_tests()}
        self.words, self.members = {}, {}
        self.lock = threading.Lock()

    def ask(self, *arguments):
        """The output of Ninja. With -n it writes no file, not even its own logs."""
        done = subprocess.run([self.ninja, "-n", *arguments], cwd=self.folder, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True)
        if done.returncode != 0:
            raise Trouble(f"ninja {' '.join(arguments)} in {self.folder}: {done.stderr[-500:]}")
        return done.stdout

    def path(self, word):
        return os.path.normpath(os.path.join(self.folder, word))

    def node(self, word):
        return os.path.relpath(self.path(word), self.folder)

    def read_dependencies(self):
        """Sets reads: {object: files it was made from}, and readers: {file: objects}. Only files in
        the tree and the build folder."""
        self.reads, self.readers = {}, {}
        for line in self.ask("-t", "deps").splitlines():
            if line.startswith(" "):
                path = self.path(line.strip())
                if path.startswith((self.root + "/", self.folder + "/")):
                    self.reads[node].add(path)
                    self.readers.setdefault(path, set()).add(node)
            elif line:
                node = self.node(line.split(": #deps")[0])
                self.reads[node] = set()

    def list_tests(self):
        """The tests that ctest lists, from a copy of its files: in the build folder it would clear
        the log of a ctest that runs there."""
        with tempfile.TemporaryDirectory() as copy:
            copy = os.path.realpath(copy)
            folders = [""]
            for folder in folders: # the loop appends to this list
                os.makedirs(os.path.join(copy, folder), exist_ok=True)
                own = shutil.copy(os.path.join(self.folder, folder, "CTestTestfile.cmake"), os.path.join(copy, folder))
                with open(own, encoding="utf-8") as text:
                    folders += [os.path.join(folder, below) for below in re.findall(r'^subdirs\("(.*)"\)$', text.read(), re.M)]
            said = subprocess.run([self.ctest, "--show-only=json-v1"], cwd=copy, stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, check=True, universal_newlines=True).stdout
        for test in json.loads(said.replace(copy, self.folder))["tests"]:
            properties = {p["name"]: p["value"] for p in test.get("properties", [])}
            yield {"name": test["name"], "command": test.get("command"), "folder": properties["WORKING_DIRECTORY"],
                   "environment": properties.get("ENVIRONMENT", []), "skip": properties.get("SKIP_RETURN_CODE"),
                   "disabled": properties.get("DISABLED", False)}

    def programs(self, test):
        """The nodes in the command of the test."""
        words = (self.node(word) for word in self.tests[test]["command"] if os.path.isabs(word))
        return [word for word in words if word in self.commands]

    def inputs(self, node):
        """The files of the build folder that the node's command reads."""
        if node not in self.words:
            words = shlex.split(self.commands[node])
            nodes = [self.node(word) for before, word in zip(words, words[1:]) if before != "-o" and not word.startswith("-")]
            self.words[node] = [word for word in dict.fromkeys(nodes)
                                if word != node and not word.startswith("../") and os.path.isfile(self.path(word))]
        return self.words[node]

    def linked(self, program):
        """The archive members that the program is linked from, by the linker's map."""
        with self.lock:
            if program not in self.members:
                with Scratch(self, {}) as scratch:
                    status, said = scratch.make(program, "-Wl,-Map=members")
                    if status != 0:
                        raise Trouble(f"cannot link {program} again: {said[-500:]}")
                    with open(os.path.join(scratch.folder, "members"), encoding="utf-8", errors="replace") as text:
                        self.members[program] = set(re.findall(r"\(([^()\s]+\.o)\)", text.read()))
            return self.members[program]

    def made_from(self, changed, program):
        """The nodes to rebuild for the program, in order, if these files change."""
        order, seen = [], {}

        def visit(node):
            if node not in seen:
                if node in self.reads:
                    seen[node] = not changed.isdisjoint(self.reads[node])
                elif node in self.commands:
                    inputs = self.inputs(node)
                    # Of an archive with many objects that include the header, only those that the
                    # program links.
                    if node.endswith(".a") and sum(not changed.isdisjoint(self.reads.get(i, ())) for i in inputs) > 1:
                        inputs = [i for i in inputs if os.path.basename(i) in self.linked(program)]
                    # a list, not a generator, so that every input is visited
                    seen[node] = any([visit(i) for i in inputs])
                else:
                    seen[node] = False
                if seen[node]:
                    order.append(node)
            return seen[node]

        visit(program)
        return order

    def changed_files(self, mutant):
        """{path: text} of the files that the mutant changes: its own, and the copies that CMake
        made of it in the build folder."""
        path = os.path.join(self.root, mutant.file)
        text = read(path)
        mutated = planted(mutant, text)
        changed = {path: mutated}
        for other in self.readers:
            if (os.path.basename(other) == os.path.basename(path) and other.startswith(self.folder + "/") and
                    self.node(other) not in self.commands):
                copy = read(other)
                for version in (str, without_folders): # cmake/SpmvDevice.cmake shortens includes
                    if copy == version(text):
                        changed[other] = version(mutated)
        return changed


def without_folders(text):
    return re.sub(r'(# *include ")[^"\n]*/', r"\1", text)


def read(path):
    try:
        with open(path, encoding="utf-8", newline="") as file:
            return file.read()
    except FileNotFoundError:
        raise Bad(f"{path} does not exist")


class Scratch:
    """A folder with copies of the tree and the build folder for a test: the changed files, the
    nodes made from them, and links to everything else."""

    def __init__(self, build, changed):
        self.build, self.changed = build, changed
        os.makedirs(os.path.join(build.folder, "mutate"), exist_ok=True)

    def __enter__(self):
        self.home = tempfile.mkdtemp(dir=os.path.join(self.build.folder, "mutate"))
        self.folder = os.path.join(self.home, "build")
        self.moved = {self.build.root: os.path.join(self.home, "tree"), self.build.folder: self.folder}
        self.path = re.compile(r"(?:(?<=-[IL])|(?<![\w./-]))(%s)(?![\w.-])" %
                               "|".join(re.escape(path) for path in sorted(self.moved, key=len, reverse=True)))
        os.makedirs(os.path.join(self.home, "tmp"))
        for path, text in self.changed.items():
            os.makedirs(os.path.dirname(self.place(path)), exist_ok=True)
            with open(self.place(path), "w", encoding="utf-8", newline="") as file:
                file.write(text)
            shutil.copymode(path, self.place(path))
        self.link_around(self.build.root)
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.home, ignore_errors=True)

    def place(self, text):
        """The text with the paths of the tree and the build folder replaced by the copies'
        paths."""
        return self.path.sub(lambda match: self.moved[match.group()], text)

    def link(self, path):
        here = self.place(path)
        if not os.path.lexists(here):
            os.makedirs(os.path.dirname(here), exist_ok=True)
            os.symlink(path, here)

    def link_around(self, folder):
        """Links the contents of a folder of the tree; a folder with a changed file is a real
        one."""
        os.makedirs(self.place(folder), exist_ok=True)
        for name in os.listdir(folder):
            path = os.path.join(folder, name)
            if path == self.build.folder or self.build.folder.startswith(path + "/"):
                continue
            if any(changed.startswith(path + "/") for changed in self.changed):
                self.link_around(path)
            else:
                self.link(path)

    def make(self, node, option=""):
        """Builds a node here; the option is for the linker. The exit status and the output."""
        command = self.build.commands[node]
        if node in self.build.reads:
            command += " -w -O1" # compiled more often than run
            needs = [path for path in self.build.reads[node] if path.startswith(self.build.folder + "/")]
        else:
            command = command.replace(" -o ", f" {option} -o ", 1)
            needs = [self.build.path(word) for word in self.build.inputs(node)]
        for path in needs:
            self.link(path)
        here = os.path.join(self.folder, node)
        os.makedirs(os.path.dirname(here), exist_ok=True)
        # Commands must not write through a link.
        assert os.path.realpath(os.path.dirname(here)).startswith(os.path.realpath(self.home)), here
        if os.path.islink(here):
            os.unlink(here)
        return run(self.place(command), shell=True, cwd=self.folder)

    def test(self, name, limit=None, whole=True):
        """Runs a test here. Programs and modules not built here are links to the build folder. Unless
        whole, a program of cmocka ends at the first failure."""
        test = self.build.tests[name]
        for node in [*self.build.programs(name), *self.build.modules]:
            self.link(self.build.path(node))
        folder = self.place(test["folder"])
        assert folder.startswith(self.home + "/"), folder
        os.makedirs(folder, exist_ok=True)
        environment = dict(self.place(setting).split("=", 1) for setting in test["environment"])
        return run([self.place(word) for word in test["command"]], limit, cwd=folder,
                   env={**os.environ, "TMPDIR": os.path.join(self.home, "tmp"), "PYTHONDONTWRITEBYTECODE": "1",
                        "CMOCKA_TEST_ABORT": "0" if whole else "1", **environment})


# ------------------------------------------------------------------ judging
def baseline(build, tests, tested):
    """{test: seconds} of the tests without any mutant; all must pass. tested: they are known to; then
    0 seconds."""
    for test in tests:
        if test not in build.tests:
            raise Trouble(f"{build.folder} has no test {test}")
        if build.tests[test]["command"] is None:
            raise Trouble(f"{build.folder}: the program of {test} is not built")
    programs = {program for test in tests for program in build.programs(test)}
    if programs and "no work to do" not in build.ask(*sorted(programs)):
        raise Trouble(f"{build.folder} is not up to date: build it first")

    if tested:
        return dict.fromkeys(tests, 0)

    def measure(test):
        start = time.monotonic()
        with Scratch(build, {}) as scratch:
            status, said = scratch.test(test)
        if status == build.tests[test]["skip"]:
            raise Trouble(f"{test} is skipped on this machine, so it cannot catch a mutant: {said.strip()[-500:]}")
        if status != 0:
            raise Trouble(f"{test} fails without any mutant:\n{said[-4000:]}")
        return time.monotonic() - start

    return dict(each(measure, tests))


def judge(build, mutant, seconds):
    """Whether the mutant is caught, and a message about it."""
    changed = build.changed_files(mutant)
    for test in mutant.tests:
        programs = build.programs(test)
        made = list(dict.fromkeys(node for program in programs for node in build.made_from(set(changed), program)))
        if not made and not build.readers.keys().isdisjoint(changed):
            raise Bad(f"{test} uses no program that is built from {mutant.file}")
        with Scratch(build, changed) as scratch:
            for node in made:
                status, said = scratch.make(node)
                if status != 0:
                    errors = [line for line in said.splitlines() if "error" in line] or said.splitlines()[-1:]
                    raise Bad(f"does not compile: {' '.join(errors[:1])}")
            limit = LIMIT + LIMIT_FACTOR * seconds[test]
            status, _ = scratch.test(test, limit, whole=False)
        if status is None:
            return True, f"{test} exceeded its limit of {limit:.0f} s"
        if status not in (0, build.tests[test]["skip"]):
            return True, test
    return False, f"{' '.join(mutant.tests)} passes"


def judge_all(build, mutants, chosen, tested=False):
    """Judges the chosen mutants and prints each result. Returns the numbers of caught and failed
    mutants. Mutants of the table that were not chosen also count as failed if their text is not
    found."""
    start = time.monotonic()
    caught, failed = 0, 0

    def tell(result, mutant, sentence):
        print(f"{result}: {mutant.name} ({mutant.file}): {sentence}", flush=True)

    found = []
    for mutant in mutants:
        try:
            build.changed_files(mutant)
            found += [mutant] if mutant in chosen else []
        except Bad as bad:
            failed += 1
            tell("NOT FOUND", mutant, bad)
    seconds = baseline(build, list(dict.fromkeys(test for mutant in found for test in mutant.tests)), tested)

    def attempt(mutant):
        try:
            return judge(build, mutant, seconds)
        except Bad as bad:
            return False, str(bad)

    # Mutants in headers of many objects take longest, so they start first.
    found.sort(key=lambda mutant: -len(build.readers.get(os.path.join(build.root, mutant.file), ())))
    for mutant, (is_caught, sentence) in each(attempt, found):
        tell("caught" if is_caught else "SURVIVED", mutant, sentence)
        caught += is_caught
        failed += not is_caught
    print(f"{caught} mutants caught, {failed} not, in {time.monotonic() - start:.0f} s")
    return caught, failed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", metavar="BUILD")
    parser.add_argument("word", metavar="WORD", nargs="?", default="")
    parser.add_argument("--fixed", action="store_true")
    parser.add_argument("--tested", action="store_true")
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(2))
    # mutants may crash
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    with open(TABLE, encoding="utf-8") as lines:
        mutants = read_table(lines)
    chosen = [mutant for mutant in mutants if given.word in mutant.name and (mutant.fixed or not given.fixed)]
    if not chosen:
        raise Trouble(f"no mutant has {given.word!r} in its name")
    build = Build(given.build)
    enabled = [mutant for mutant in chosen if not any(build.tests.get(test, {}).get("disabled") for test in mutant.tests)]
    if len(enabled) < len(chosen):
        print(f"left out: {len(chosen) - len(enabled)} mutants of which a test is disabled in this build")
    caught, failed = judge_all(build, mutants, enabled, given.tested)
    return 0 if caught > 0 and failed == 0 else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Trouble as trouble:
        print(f"mutate.py: {trouble}", file=sys.stderr)
        sys.exit(2)

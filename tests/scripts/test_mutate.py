#!/usr/bin/env python3
"""Tests scripts/checks/mutate.py, which judges planted bugs: how it reads its table and finds
definitions, and that it fails if a mutant survives, does not compile or its text is not found.

    test_mutate.py SOURCE BUILD [unittest arguments]

SPDX-License-Identifier: BSD-3-Clause
"""
import contextlib
import io
import os
import sys
import tempfile
import unittest

SOURCE, BUILD = sys.argv.pop(1), sys.argv.pop(1)
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(SOURCE, "scripts", "checks"))
import mutate  # noqa: E402

TEXT = r"""/* first(x) { is only a comment, and so is this brace: } */
#define SUM(a, b) \
    ((a) + \
     (b))
#define SUM_OF_NONE 0

static const char *const names[] = {"one }", "two"};
struct pair {
    int a, b;
};

static int first(const struct pair *p,
                 int more)
{
    if (p->a == '}') { /* } */
        return more;
    }
    return p->a + 1'000;
}

static void TYPED(walk)(struct TYPED(job) * job)
{
    job->n = first(job->p, 1);
}

#if defined SMALL
int last(void)
{
    return 1;
}
#else
int last(void)
{
    return 2;
}
#endif

template <typename T> struct counter : base<T> {
    __device__ bool next() const
    {
        return count > 0;
    }
};
"""

SCRIPT = """one() {
    echo "${1// /}" 'it}'
}

two() {
    one # {
}
"""


def mutant(text, replacement="", function="pace_left", file="app/solve/solve_pace.c", name="a mutant", tests=("test_pace",)):
    return mutate.Mutant(name, file, function, text, replacement, tests, False)


class TestTable(unittest.TestCase):
    ENTRY = ["a name", "  in   f.c g", "  -    if (a)", "  -        b;", "  +", "  test one two.ref"]

    def test_entries(self):
        table = ["# a comment", "", *self.ENTRY, "", "# another", *["other" + self.ENTRY[0], *self.ENTRY[1:]], "  fixed"]
        first, second = mutate.read_table(line + "\n" for line in table)
        self.assertEqual(first, ("a name", "f.c", "g", "if (a)\nb;", "", ["one", "two.ref"], False))
        self.assertEqual((second.name, second.fixed), ("othera name", True))

    def test_mistakes(self):
        for left_out in range(len(self.ENTRY)):
            with self.assertRaises(mutate.Trouble, msg=self.ENTRY[left_out]):
                mutate.read_table(self.ENTRY[:left_out] + self.ENTRY[left_out + 1:] if left_out not in (2, 3) else
                                  self.ENTRY[:2] + self.ENTRY[4:])
        for line in ("  tset one", "  in   f.c g h"):
            with self.assertRaises(mutate.Trouble, msg=line):
                mutate.read_table([*self.ENTRY, line])
        with self.assertRaises(mutate.Trouble):
            mutate.read_table([*self.ENTRY, "", *self.ENTRY])

    def test_own_table_has_some_for_the_tests(self):
        with open(mutate.TABLE, encoding="utf-8") as lines:
            mutants = mutate.read_table(lines)
        self.assertGreaterEqual(len(mutants), 80)
        self.assertEqual(sum(one.fixed for one in mutants), 13)


class TestDefinitions(unittest.TestCase):
    def found(self, name, text=TEXT, **more):
        return [text[begin:end] for begin, end in mutate.definitions(text, name, **more)]

    def test_kinds(self):
        for name, begin, end in (("SUM", "#define SUM(a", "(b))"), ("SUM_OF_NONE", "#define SUM_OF", "NONE 0"),
                                 ("names", "static const char", '"two"}'), ("pair", "struct pair {", "}"),
                                 ("first", "static int first", "1'000;\n}"), ("TYPED(walk)", "static void TYPED", "1);\n}"),
                                 ("counter", "template", "    }\n}"), ("next", "    __device__", "0;\n    }")):
            found = self.found(name)
            self.assertEqual(len(found), 1, (name, found))
            self.assertTrue(found[0].startswith(begin) and found[0].endswith(end), found[0])

    def test_several_and_none(self):
        self.assertEqual(len(self.found("last")), 2)
        for name in ("count", "TYPED(job)", "job", "defined", "NONE", "fir"):
            self.assertEqual(self.found(name), [], name)

    def test_scripts(self):
        self.assertEqual("\n\n".join(self.found(name, SCRIPT, shell=True)[0] for name in ("one", "two")) + "\n", SCRIPT)
        self.assertEqual(self.found("on", SCRIPT, shell=True), [])

    def plant(self, function, text, replacement="x"):
        return mutate.planted(mutant(text, replacement, function), TEXT)

    def test_planted(self):
        self.assertEqual(self.plant("first", "return more;", "return 0;"), TEXT.replace("return more;", "return 0;"))
        # white space as it comes; several definitions of which one has the text
        self.assertEqual(self.plant("first", "p,\nint more)\n{ if"), TEXT.replace("p,\n                 int more)\n{\n    if", "x"))
        self.assertEqual(self.plant("last", "return 2;", r"return \1;"), TEXT.replace("return 2;", r"return \1;"))

    def test_not_found(self):
        for function, text, said in (("first", "return 2;", "occurs 0 times in first"), ("first", "p->a", "occurs 2 times in first"),
                                     ("last", "return", "occurs 2 times in last"), ("fir", "more", "no definition of fir")):
            with self.assertRaises(mutate.Bad) as raised:
                self.plant(function, text)
            self.assertIn(said, str(raised.exception))


class TestJudging(unittest.TestCase):
    """Mutants of one small file, app/solve/solve_pace.c, which is part of the program of a quick test."""

    @classmethod
    def setUpClass(cls):
        try:
            cls.build = mutate.Build(BUILD)
        except SystemExit:
            raise unittest.SkipTest("the build was not made with Ninja")

    def judge(self, *mutants, chosen=None):
        """(how many are caught, how many are not, the output)"""
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            counts = mutate.judge_all(self.build, mutants, mutants if chosen is None else chosen)
        return (*counts, said.getvalue())

    @staticmethod
    def state(paths):
        """The properties of files that change when a file is written."""
        return {path: (os.stat(path).st_mtime_ns, os.stat(path).st_size, os.stat(path).st_ino) for path in paths}

    def test_caught(self):
        source = os.path.join(self.build.root, "app", "solve", "solve_pace.c")
        made = self.build.made_from({source}, "tests/test_pace")
        self.assertEqual([os.path.basename(node) for node in made], ["solve_pace.c.o", "test_pace"])
        state = self.state([source, *(os.path.join(BUILD, node) for node in made)])
        caught, failed, said = self.judge(mutant("left <= far_ahead * last", "left <= 1e9"),
                                          mutant("int64_t iteration", "int8_t iteration", "pace", "app/solve/solve_pace.h", "a header"))
        self.assertEqual((caught, failed), (2, 0), said)
        self.assertIn("caught: a mutant (app/solve/solve_pace.c): test_pace\n", said)
        self.assertEqual(self.state(state), state)
        with mutate.Scratch(self.build, {}) as scratch:
            self.assertTrue(os.path.exists(scratch.home))
        self.assertFalse(os.path.exists(scratch.home))

    def test_header_with_a_copy_in_the_build_folder(self):
        if self.build.tests["test_cuda_host_parts"]["disabled"]:
            self.skipTest("the tests on an emulated GPU are not built")
        header = mutant("more > 0 ? more : 0", "0", "shared_filler", "device/launch.cuh", tests=["test_cuda_host_parts"])
        changed = self.build.changed_files(header)
        self.assertEqual(sorted(os.path.relpath(path, self.build.folder) for path in changed if path.startswith(self.build.folder)),
                         ["device_include/spmv/device/launch.cuh"])
        made = self.build.made_from(set(changed), "tests/test_cuda_host_parts")
        self.assertLess(len(made), 5, "archive members that the program does not use are not rebuilt")
        state = self.state([*changed, *(os.path.join(BUILD, node) for node in made)])
        self.assertEqual(self.judge(header)[:2], (1, 0))
        self.assertEqual(self.state(state), state)

    def test_survives(self):
        caught, failed, said = self.judge(mutant("left <= far_ahead * last", "left <= last * far_ahead"))
        self.assertEqual((caught, failed), (0, 1))
        self.assertIn("SURVIVED: a mutant (app/solve/solve_pace.c): test_pace passes\n", said)

    def test_does_not_compile(self):
        caught, failed, said = self.judge(mutant("left <= far_ahead * last", "left <= far_behind"))
        self.assertEqual((caught, failed), (0, 1))
        self.assertRegex(said, r"SURVIVED: a mutant .*: does not compile: .*error.*far_behind")

    def test_warnings_are_no_errors(self):
        self.assertEqual(self.judge(mutant("const double left =", "int unused; const double left = 1e9 *"))[:2], (1, 0))

    def test_text_missing(self):
        # also where the mutant is not among those that are judged
        lost = mutant("no such text", name="a lost one")
        for chosen in ((lost,), ()):
            caught, failed, said = self.judge(lost, chosen=chosen)
            self.assertEqual((caught, failed), (0, 1))
            self.assertIn("NOT FOUND: a lost one (app/solve/solve_pace.c): its text occurs 0 times in pace_left", said)
        for other in (mutant("x", function="nothing"), mutant("x", file="app/nothing.c")):
            self.assertIn("NOT FOUND", self.judge(other)[2])

    def test_wrong_test(self):
        self.assertIn("uses no program that is built from app/main.c", self.judge(mutant("int argc", "int argc", "main", "app/main.c"))[2])
        with self.assertRaises(mutate.Trouble):
            self.judge(mutant("far_ahead", tests=["no_such_test"]))

    def test_hang_is_caught(self):
        limits = mutate.LIMIT, mutate.LIMIT_FACTOR
        mutate.LIMIT, mutate.LIMIT_FACTOR = 1, 0
        try:
            caught, failed, said = self.judge(mutant("if (!(left <=", "for (;;) ; if (!(left <="))
        finally:
            mutate.LIMIT, mutate.LIMIT_FACTOR = limits
        self.assertEqual((caught, failed), (1, 0))
        self.assertIn("test_pace exceeded its limit of 1 s", said)

    def test_exit_status(self):
        table = "good\n  in app/solve/solve_pace.c pace_left\n  - far_ahead\n  + %s\n  test test_pace\n"
        with tempfile.TemporaryDirectory() as folder:
            kept, argv = mutate.TABLE, sys.argv
            mutate.TABLE = os.path.join(folder, "mutants.txt")
            try:
                for replacement, word, expected in (("1.0 * far_ahead", "", 1), ("1e9", "goo", 0)):
                    with open(mutate.TABLE, "w", encoding="utf-8") as file:
                        file.write(table % replacement)
                    sys.argv = ["mutate.py", BUILD, *([word] if word else [])]
                    with contextlib.redirect_stdout(io.StringIO()):
                        self.assertEqual(mutate.main(), expected, replacement)
                sys.argv = ["mutate.py", BUILD, "nothing has this name"]
                with self.assertRaises(mutate.Trouble):
                    mutate.main()
            finally:
                mutate.TABLE, sys.argv = kept, argv


if __name__ == "__main__":
    unittest.main()

/* The exercises on scans: scan, parallel-scan, segmented-scan.
 *
 * Values are integers, so any order of the operations that keeps the order of the operands gives the
 * same result. The operator compose does not commute: a number 10 a + b stands for the map
 * x -> a x + b modulo 10, and "f op g" is f first, then g (G. E. Blelloch, "Prefix sums and their
 * applications", 1990, section 1.4: linear recurrences).
 *
 * Work and depth are measured: an operator counts its calls, and the upper half of a value has the
 * depth, the longest chain of operations before it.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/exercise/exercise.h"

typedef int64_t binary(int64_t earlier, int64_t later);

static int64_t add(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a + (uint64_t)b);
}

static int64_t compose(int64_t f, int64_t g)
{
    const uint64_t a = (uint64_t)f / 10 % 10, b = (uint64_t)f % 10, c = (uint64_t)g / 10 % 10, d = (uint64_t)g % 10;
    return (int64_t)(a * c % 10 * 10 + (b * c + d) % 10);
}

static const struct operator_case {
    const char *name;
    binary *op;
    int64_t identity;
} operators[] = {{"add", add, 0}, {"compose", compose, 10}};
enum { OPERATORS = 2 };

/* Why the operands may not be exchanged. */
static void show_operator(struct table *t, const struct operator_case *o)
{
    if (o->op == compose)
        table_add(t, "  compose(12, 34) = %lld, compose(34, 12) = %lld: it does not commute\n",
                  (long long)compose(12, 34), (long long)compose(34, 12));
}

/* The numbers of the lessons, then random ones from 1 to 9; for compose 10 a + b, where a has an
 * inverse modulo 10, so nothing is lost. */
static void fill(const struct operator_case *o, int64_t *values, int64_t n)
{
    static const int64_t lesson[] = {3, 1, 7, 0, 4, 1, 6, 3}, units[] = {1, 3, 7, 9};
    uint64_t state = 2007 + (uint64_t)n;
    for (int64_t i = 0; i < n; i++) {
        const int64_t digit = i < 8 ? lesson[i] : 1 + random_below(&state, 9);
        values[i] = o->op == compose ? 10 * units[random_below(&state, 4)] + digit : digit;
    }
}

/* Sizes of the tests of the ladder. */
static const int64_t sizes[] = {0, 1, 2, 3, 4, 5, 7, 8, 9, 31, 32, 33, 63, 64, 65, 1000, 1023, 1024, 1025, 100003};
enum { SIZES = sizeof sizes / sizeof sizes[0], LARGEST = 100003, MEASURED = 1024, SHOWN = 8 };

static int64_t work; /* calls of counted_add */

static int64_t counted_add(int64_t a, int64_t b)
{
    const uint64_t x = (uint64_t)a, y = (uint64_t)b, before = x >> 32 > y >> 32 ? x >> 32 : y >> 32;
    work++;
    return (int64_t)((before + 1) << 32 | ((x + y) & 0xffffffffU));
}

static int64_t depth_of(const int64_t *values, int64_t n)
{
    int64_t most = 0;
    for (int64_t i = 0; i < n; i++)
        most = (int64_t)((uint64_t)values[i] >> 32) > most ? (int64_t)((uint64_t)values[i] >> 32) : most;
    return most;
}

static int64_t log2_up(int64_t n)
{
    int64_t log = 0;
    while ((int64_t)1 << log < n)
        log++;
    return log;
}

static void scan_of(const struct operator_case *o, bool exclusive, const int64_t *in, int64_t *out, int64_t n)
{
    int64_t sum = o->identity;
    for (int64_t i = 0; i < n; i++) {
        const int64_t with = i > 0 || exclusive ? o->op(sum, in[i]) : in[i];
        out[i] = exclusive ? sum : with;
        sum = with;
    }
}

static int64_t first_difference(const int64_t *a, const int64_t *b, int64_t n)
{
    int64_t i = 0;
    while (i < n && a[i] == b[i])
        i++;
    return i;
}

/* The cells around the first wrong one. */
static void show_cells(struct table *t, int64_t at, int64_t n, int64_t *first, int64_t *end)
{
    *first = at < SHOWN ? 0 : at - SHOWN / 2;
    *end = n - *first < SHOWN ? n : *first + SHOWN;
    table_add(t, "  %-10s", "i");
    for (int64_t i = *first; i < *end; i++)
        table_add(t, " %5lld", (long long)i);
    table_add(t, "\n");
}

/* Compares; if a typical mistake gives what was found, the message says so. */
static void compare(const struct operator_case *o, bool exclusive, const int64_t *in, const int64_t *found, int64_t n)
{
    int64_t *const right = case_scratch(n, sizeof *right), *const other = case_scratch(n, sizeof *other);
    struct table t = {.length = 0};
    int64_t first, end;
    scan_of(o, exclusive, in, right, n);
    const int64_t at = first_difference(right, found, n);
    if (at == n)
        return;
    show_cells(&t, at, n, &first, &end);
    table_integers(&t, "in", in, first, end);
    table_integers(&t, "expected", right, first, end);
    table_integers(&t, "found", found, first, end);
    show_operator(&t, o);
    scan_of(o, !exclusive, in, other, n);
    if (first_difference(other, found, n) == n)
        table_add(&t, "  this is the %s scan\n", exclusive ? "inclusive" : "exclusive");
    if (!case_is_set(&found[at], sizeof *found))
        case_wrong(t.text, "out[%lld] is not written", (long long)at);
    case_wrong(t.text, "out[%lld] is %lld, expected %lld", (long long)at, (long long)found[at], (long long)right[at]);
}

/* Runs a scan of either kind. identity: of an exclusive scan. */
static void call(void *function, bool exclusive, binary *op, int64_t identity, const int64_t *in, int64_t *out,
                 int64_t n)
{
    void (*inclusive_form)(binary *, const int64_t *, int64_t *, int64_t);
    void (*exclusive_form)(binary *, int64_t, const int64_t *, int64_t *, int64_t);
    /* C has no cast from an object pointer to a function pointer */
    memcpy(&inclusive_form, &function, sizeof function);
    memcpy(&exclusive_form, &function, sizeof function);
    if (exclusive)
        exclusive_form(op, identity, in, out, n);
    else
        inclusive_form(op, in, out, n);
}

static void test_scan(void *function, const char *name, bool exclusive, int64_t n, bool in_place)
{
    for (int k = 0; k < OPERATORS; k++) {
        const struct operator_case *const o = &operators[k];
        case_begin("%s, operator %s, %lld value%s%s", name, o->name, (long long)n, n == 1 ? "" : "s",
                   in_place ? ", in place (out is in)" : "");
        int64_t *const values = case_scratch(n, sizeof *values);
        fill(o, values, n);
        int64_t *const out = case_output("out", n, sizeof *out);
        if (in_place)
            memcpy(out, values, (size_t)n * sizeof *out);
        const int64_t *const in = in_place ? out : case_input("in", values, n, sizeof *in);
        call(function, exclusive, o->op, o->identity, in, out, n);
        case_end();
        compare(o, exclusive, values, out, n);
    }
}

/* Measures one call on n ones, and checks that the work is within a bound. 0: no bound of the depth. */
static void measure(void *function, const char *name, bool exclusive, int64_t n, int64_t most_work, int64_t most_depth)
{
    static int64_t ones[MEASURED];
    case_begin("%s, %lld values, measured", name, (long long)n);
    for (int64_t i = 0; i < n; i++)
        ones[i] = 1;
    int64_t *const out = case_output("out", n, sizeof *out), *const in = case_input("in", ones, n, sizeof *in);
    work = 0;
    call(function, exclusive, counted_add, 0, in, out, n);
    const int64_t depth = depth_of(out, n);
    if (work > most_work)
        case_wrong(NULL, "right, but op is called %lld times (the work); at most %lld are asked", (long long)work,
                   (long long)most_work);
    if (most_depth > 0 && depth > most_depth)
        case_wrong(NULL, "right, but %lld calls of op wait for each other (the depth); at most %lld are asked",
                   (long long)depth, (long long)most_depth);
    case_counts(n, work, depth);
}

/* ---------------------------------------------------------------- scan */

static void run_scan(void *const *functions)
{
    for (int k = 0; k < 2; k++) {
        const char *const name = exercise_scan.functions[k];
        for (int s = 0; s < SIZES; s++) {
            if (sizes[s] == LARGEST) /* n^2 operations would take too long there */
                measure(functions[k], name, k == 1, MEASURED, MEASURED, 0);
            test_scan(functions[k], name, k == 1, sizes[s], false);
            test_scan(functions[k], name, k == 1, sizes[s], true);
        }
    }
    measure(functions[0], exercise_scan.functions[0], false, MEASURED, MEASURED, 0);
    case_passed("inclusive and exclusive, 0 to 100003 values, operators add and compose, in place too");
}

const struct exercise exercise_scan = {
    "scan",
    "1-scan.md",
    "the inclusive and the exclusive scan, each by one loop",
    {"scan_inclusive", "scan_exclusive"},
    false,
    run_scan,
    "/* Exercise scan (docs/lessons/1-scan.md): two scans, each by one loop.\n"
    " *\n"
    " *   inclusive: out[i] = in[0] op in[1] op ... op in[i]\n"
    " *   exclusive: out[i] = in[0] op in[1] op ... op in[i - 1], and out[0] = identity\n"
    " *\n"
    " * Call op(a, b) for \"a op b\". op is associative. It may not commute: op(a, b) is not op(b, a).\n"
    " * At most n calls of op. n may be 0. out may be the same array as in.\n"
    " *\n"
    " * Test it: spmv exercise scan scan.c */\n"
    "#include <stdint.h>\n"
    "\n"
    "void scan_inclusive(int64_t (*op)(int64_t, int64_t), const int64_t *in, int64_t *out, int64_t n)\n"
    "{\n"
    "    for (int64_t i = 0; i < n; i++)\n"
    "        out[i] = in[i]; /* your code here: this only copies */\n"
    "}\n"
    "\n"
    "void scan_exclusive(int64_t (*op)(int64_t, int64_t), int64_t identity, const int64_t *in, int64_t *out,\n"
    "                    int64_t n)\n"
    "{\n"
    "    for (int64_t i = 0; i < n; i++)\n"
    "        out[i] = in[i]; /* your code here */\n"
    "}\n"};

/* ---------------------------------------------------------------- parallel-scan */

static void run_parallel_scan(void *const *functions)
{
    const char *const name = exercise_parallel_scan.functions[0];
    for (int s = 0; s < SIZES; s++) {
        if (sizes[s] == LARGEST) {
            measure(functions[0], name, false, 1000, 2 * 1000, 2 * log2_up(1000));
            measure(functions[0], name, false, MEASURED, 2 * MEASURED, 2 * log2_up(MEASURED));
        }
        test_scan(functions[0], name, false, sizes[s], false);
    }
    case_passed("0 to 100003 values, operators add and compose, work at most 2 n, depth at most 2 log2 n");
}

const struct exercise exercise_parallel_scan = {
    "parallel-scan",
    "2-parallel-scan.md",
    "the inclusive scan with work 2 n and depth 2 log2 n",
    {"parallel_scan"},
    false,
    run_parallel_scan,
    "/* Exercise parallel-scan (docs/lessons/2-parallel-scan.md): the inclusive scan for many threads.\n"
    " *\n"
    " *   out[i] = in[0] op in[1] op ... op in[i]\n"
    " *\n"
    " * Work: at most 2 n calls of op. Depth: at most 2 log2 n calls wait for each other. A call waits for\n"
    " * those that compute its operands. So write a loop over steps; inside it, a loop over independent\n"
    " * operations, which threads could do at the same time.\n"
    " *\n"
    " * n may be 0 and need not be a power of two. out is not in. Keep the order of the operands.\n"
    " *\n"
    " * Test it: spmv exercise parallel-scan parallel-scan.c */\n"
    "#include <stdint.h>\n"
    "\n"
    "void parallel_scan(int64_t (*op)(int64_t, int64_t), const int64_t *in, int64_t *out, int64_t n)\n"
    "{\n"
    "    for (int64_t i = 0; i < n; i++)\n"
    "        out[i] = in[i];\n"
    "\n"
    "    /* Your code here: the steps up (reduce), then the steps down (distribute), in out. */\n"
    "}\n"};

/* ---------------------------------------------------------------- segmented-scan */

struct pair {
    int64_t value;
    int head;
};

typedef struct pair combination(binary *op, struct pair earlier, struct pair later);

/* Where segments start. */
static const char *const cuts[] = {"one segment",
                                   "each value a segment",
                                   "a segment starts at the last value",
                                   "segments of 3 values",
                                   "segments of random lengths",
                                   "two halves",
                                   "a start in the first cell only"};
enum { CUTS = sizeof cuts / sizeof cuts[0], RANDOM_LENGTHS = 4 };

static bool is_head(int cut, uint64_t *state, int64_t i, int64_t n)
{
    const bool heads[CUTS] = {false, true, i == n - 1, i % 3 == 0, random_below(state, 5) == 0, i == n / 2, i == 0};
    return heads[cut];
}

/* The scans of pairs: each keeps the order of the operands, and groups them in another way. */
static void pairs_by_loop(combination *combine, binary *op, struct pair *cells, int64_t n)
{
    for (int64_t i = 1; i < n; i++)
        cells[i] = combine(op, cells[i - 1], cells[i]);
}

static void pairs_by_blelloch(combination *combine, binary *op, struct pair *cells, int64_t n)
{
    int64_t d = 1;
    for (; d < n; d *= 2)
        for (int64_t i = 2 * d - 1; i < n; i += 2 * d)
            cells[i] = combine(op, cells[i - d], cells[i]);
    for (d /= 2; d >= 1; d /= 2)
        for (int64_t i = 3 * d - 1; i < n; i += 2 * d)
            cells[i] = combine(op, cells[i - d], cells[i]);
}

static void pairs_by_hillis_steele(combination *combine, binary *op, struct pair *cells, int64_t n)
{
    for (int64_t d = 1; d < n; d *= 2)
        for (int64_t i = n - 1; i >= d; i--)
            cells[i] = combine(op, cells[i - d], cells[i]);
}

static const struct {
    const char *name;
    void (*run)(combination *, binary *, struct pair *, int64_t);
} trees[] = {{"a loop", pairs_by_loop}, {"Blelloch", pairs_by_blelloch}, {"Hillis and Steele", pairs_by_hillis_steele}};
enum { TREES = 3 };

static void compare_pairs(const struct operator_case *o, const int64_t *values, const int64_t *heads,
                          const struct pair *cells, int64_t n)
{
    int64_t *const right = case_scratch(n, sizeof *right), *const right_head = case_scratch(n, sizeof *right_head);
    int64_t *const found = case_scratch(n, sizeof *found), *const found_head = case_scratch(n, sizeof *found_head);
    struct table t = {.length = 0};
    int64_t first, end;
    for (int64_t i = 0; i < n; i++) {
        right[i] = i == 0 || heads[i] ? values[i] : o->op(right[i - 1], values[i]);
        right_head[i] = heads[i] || (i > 0 && right_head[i - 1]);
        found[i] = cells[i].value;
        found_head[i] = cells[i].head != 0;
    }
    const int64_t at = first_difference(right, found, n), at_head = first_difference(right_head, found_head, n);
    if (at == n && at_head == n)
        return;
    show_cells(&t, at < n ? at : at_head, n, &first, &end);
    table_integers(&t, "values", values, first, end);
    table_integers(&t, "heads", heads, first, end);
    table_integers(&t, "expected", at < n ? right : right_head, first, end);
    table_integers(&t, "found", at < n ? found : found_head, first, end);
    if (at < n) {
        show_operator(&t, o);
        case_wrong(t.text, "the value of cell %lld is %lld, expected %lld", (long long)at, (long long)found[at],
                   (long long)right[at]);
    }
    case_wrong(t.text, "the head of cell %lld is %lld, expected %lld", (long long)at_head,
               (long long)found_head[at_head], (long long)right_head[at_head]);
}

static void run_segmented_scan(void *const *functions)
{
    combination *combine;
    memcpy(&combine, functions, sizeof combine);
    for (int s = 1; s < SIZES; s++)
        for (int cut = 0; cut < CUTS; cut++)
            for (int tree = 0; tree < TREES; tree++)
                for (int k = 0; k < OPERATORS; k++) {
                    const int64_t n = sizes[s];
                    if (n == LARGEST && cut != RANDOM_LENGTHS)
                        continue;
                    const struct operator_case *const o = &operators[k];
                    uint64_t state = (uint64_t)n;
                    case_begin("operator %s, %lld value%s, %s, scan by %s", o->name, (long long)n, n == 1 ? "" : "s",
                               cuts[cut], trees[tree].name);
                    int64_t *const values = case_scratch(n, sizeof *values);
                    int64_t *const heads = case_scratch(n, sizeof *heads);
                    struct pair *const cells = case_scratch(n, sizeof *cells);
                    fill(o, values, n);
                    for (int64_t i = 0; i < n; i++) {
                        heads[i] = is_head(cut, &state, i, n);
                        cells[i] = (struct pair){values[i], (int)heads[i]};
                    }
                    trees[tree].run(combine, o->op, cells, n);
                    compare_pairs(o, values, heads, cells, n);
                }
    case_passed("1 to 100003 values, segments of every kind, scans by a loop, Blelloch, Hillis and Steele");
}

const struct exercise exercise_segmented_scan = {
    "segmented-scan",
    "3-segmented-scan.md",
    "the operator on pairs that makes any scan a segmented scan",
    {"combine"},
    false,
    run_segmented_scan,
    "/* Exercise segmented-scan (docs/lessons/3-segmented-scan.md): the operator on pairs.\n"
    " *\n"
    " * A pair stands for neighbouring elements of the array:\n"
    " *   value  the elements of the last segment that they touch, combined with op\n"
    " *   head   1 if a segment starts in one of them, else 0\n"
    " *\n"
    " * combine: the pair of the elements of earlier and later, which follow each other in the array.\n"
    " * Scans by a loop, by Blelloch, and by Hillis and Steele use it; all must give the segmented scan.\n"
    " *\n"
    " * Test it: spmv exercise segmented-scan segmented-scan.c */\n"
    "#include <stdint.h>\n"
    "\n"
    "struct pair {\n"
    "    int64_t value;\n"
    "    int head;\n"
    "};\n"
    "\n"
    "struct pair combine(int64_t (*op)(int64_t, int64_t), struct pair earlier, struct pair later)\n"
    "{\n"
    "    struct pair both;\n"
    "    both.value = op(earlier.value, later.value); /* your code here: this ignores the segments */\n"
    "    both.head = 0;\n"
    "    return both;\n"
    "}\n"};

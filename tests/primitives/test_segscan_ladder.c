/* The rungs of segmented scan by name: each against the definition, inclusive and exclusive, in
 * place and not; random segments, one segment, one for each element, heads at and next to every
 * tile border; several levels of small blocks; the number of operations of each rung, and its pairs
 * step by step; the same bits in every run; statuses.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "tests/support/support_ladder.h"

/* Ways to cut n elements; the seams are at the blocks of the rungs or at the tiles. */
enum cut { CUT_NONE, CUT_EACH, CUT_RANDOM, CUT_LONG, CUT_BORDERS, CUT_BEFORE, CUT_BEHIND, CUT_ONE_BORDER, CUTS };

/* Flags with various nonzero values; element 0 starts a segment with or without a flag. */
static uint8_t *make_flags(enum cut cut, int64_t n, int64_t block, uint64_t seed)
{
    uint8_t *flags = host_array(n);
    for (int64_t i = 0; i < n; i++) {
        const uint64_t r = support_random(&seed) >> 32;
        const bool head = cut == CUT_EACH      ? true
                          : cut == CUT_RANDOM  ? r % 4 == 0
                          : cut == CUT_LONG    ? r % 700 == 0
                          : cut == CUT_BORDERS ? i % block == 0
                          : cut == CUT_BEFORE  ? i % block == block - 1
                          : cut == CUT_BEHIND  ? i % block == 1
                          : cut == CUT_ONE_BORDER && n / block >= 1
                              ? i == n / block / 2 * block + block * (n < 2 * block)
                              : false;
        flags[i] = head ? (uint8_t)(1 + r % 255) : 0;
    }
    return flags;
}

static void *run(spmv_context *ctx, const char *rung, spmv_scan_kind kind, const struct pair *p, const uint8_t *flags,
                 const void *in, int64_t n, bool in_place)
{
    const int64_t bytes = n * p->size;
    void *from = support_upload(ctx, in, bytes);
    void *heads = support_upload(ctx, flags, n);
    void *to = in_place ? guarded_copy(ctx, in, bytes) : guarded_result(ctx, bytes);
    assert_ok(ctx, spmv_segscan_rung(ctx, rung, kind, p->op, p->type, heads, in_place ? to : from, to, n));
    void *untouched = host_array(bytes);
    assert_ok(ctx, spmv_download(ctx, from, untouched, bytes));
    assert_same(untouched, in, p->size, n, "the input");
    assert_ok(ctx, spmv_download(ctx, heads, untouched, n));
    assert_same(untouched, flags, 1, n, "the flags");
    free(untouched);
    support_free_in(ctx, from, heads);
    return take_result(ctx, to, bytes, rung);
}

/* block: distance of the seams of the cuts. */
static void check_rung(spmv_context *ctx, const char *rung, const struct pair *p, enum cut cut, int64_t block,
                       int64_t n)
{
    char text[32];
    uint8_t *flags = make_flags(cut, n, block, 67 + (uint64_t)n);
    snprintf(text, sizeof text, ", cut %d", (int)cut);
    check_definition(ctx, run, rung, p, flags, text, n, 71 + (uint64_t)n);
    free(flags);
}

#define FOR_RUNGS(name) FOR_RUNGS_OF(spmv_segscan_rung_name, name)

/* Only the own method of a backend takes every pair; the teaching rungs are built for a few
 * pairs. */
static bool is_teaching(const char *name)
{
    return !is(name, "serial") && !is(name, "tiles") && !is(name, "single-pass");
}

static bool is_taught(const struct pair *p)
{
    return (p->op == SPMV_ADD || p->op == SPMV_LAST) &&
           (p->type == SPMV_F32 || p->type == SPMV_F64 || p->type == SPMV_I32);
}

static const char *const by_block[] = {"hillis-steele", "hillis-steele-double", "blelloch-divergent", "blelloch",
                                       "chained"};
enum { BY_BLOCK = 5 };

static void names_are_listed(void **state)
{
    (void)state;
    static const char *const ref[] = {
        "serial",   "sequential", "definition", "hillis-steele", "hillis-steele-double", "blelloch-divergent",
        "blelloch", "chained",    NULL};
    static const char *const omp[] = {"tiles", NULL};
    static const char *const cuda[] = {"definition",         "hillis-steele", "hillis-steele-double",
                                       "blelloch-divergent", "blelloch",      "chained",
                                       "reduce-scan",        "single-pass",   NULL};
    const char *const *want = support_backend == SPMV_BACKEND_REF   ? ref
                              : support_backend == SPMV_BACKEND_OMP ? omp
                                                                    : cuda;
    int count = 0;
    for (; want[count] != NULL; count++)
        assert_string_equal(spmv_segscan_rung_name(support_backend, count), want[count]);
    assert_rung_count(spmv_segscan_rung_name, count);
}

/* Around one block of 1024 and two levels, with every cut. The largest size uses one type that
 * detects a wrong operand order. */
static void every_rung_at_the_seams(void **state)
{
    static const int64_t sizes[] = {1, 2, 31, 32, 33, 255, 257, 1023, 1024, 1025, 2049, 30011};
    spmv_context *ctx = *state;
    FOR_RUNGS(name)
    for (int s = 0; s < (int)(sizeof sizes / sizeof sizes[0]); s++)
        for (int cut = 0; cut < CUTS; cut++)
            FOR_PAIRS(p)
            {
                const int64_t n = sizes[s];
                if (is_teaching(name) && !is_taught(p))
                    continue;
                if (n > 1100 && is(name, "definition"))
                    continue; /* no blocks, and n^2 operations */
                if (n > 257 && is_teaching(name) && (p - pairs + s + cut) % 2 != 0)
                    continue; /* every other pair */
                const bool one = p->type == SPMV_I32 && p->op == SPMV_LAST;
                if ((n > 257 && SLOW && is_teaching(name)) ? one && n <= 1025 && cut != CUT_LONG
                    : n > 2100                             ? one
                                                           : is_teaching(name) || one)
                    check_rung(ctx, name, p, (enum cut)cut, 1024, n);
            }
}

/* Blocks of 2, 4, 8 and 32: up to ten levels; heads at and next to the block borders. */
static void several_levels(void **state)
{
    if (support_backend == SPMV_BACKEND_OMP)
        skip(); /* its tiles have one size */
    static const int64_t lengths[] = {1, 7, 8, 9, 31, 32, 33, 63, 65, 513, 1000};
    static const int blocks[] = {2, 4, 8, 32};
    spmv_context *ctx = *state;
    const struct pair *tests[] = {pair_of(SPMV_LAST, SPMV_I32), pair_of(SPMV_ADD, SPMV_F64),
                                  pair_of(SPMV_ADD, SPMV_F32)};
    for (int k = 0; k < BY_BLOCK; k++)
        for (int b = 0; b < 4; b++)
            for (int n = 0; n < (SLOW ? 9 : 11); n++)
                for (int cut = 0; cut < CUTS; cut++) {
                    char rung[64];
                    snprintf(rung, sizeof rung, "%s:%d", by_block[k], blocks[b]);
                    check_rung(ctx, rung, tests[(n + cut) % 3], (enum cut)cut, blocks[b], lengths[n]);
                }
}

/* Tiles, and chunks of several tiles, of the rungs that have them (host_cuda: 6 chunks). */
static void tuned_at_their_tiles(void **state)
{
    static const int64_t tiles[] = {HOST_TILE, 1024, 2048, 4096, 7168, 3584};
    spmv_context *ctx = *state;
    const struct pair *tests[] = {pair_of(SPMV_LAST, SPMV_I32), pair_of(SPMV_ADD, SPMV_F64)};
    FOR_RUNGS(name)
    {
        if (is_teaching(name) && !is(name, "reduce-scan"))
            continue;
        for (int k = 0; k < 6; k++)
            for (int t = 0; t < 2; t++)
                for (int64_t n = tiles[k] - 1; n <= tiles[k] + 1; n++)
                    for (int cut = 0; cut < CUTS; cut++)
                        if (!SLOW || cut == CUT_BORDERS || cut == CUT_LONG || n == tiles[k])
                            check_rung(ctx, name, tests[t], (enum cut)cut, tiles[k] / 2, n);
    }
}

/* Checks each rung on at most n elements in segments of about 700. */
static void check_rungs(spmv_context *ctx, rung_check *check, int64_t n, uint64_t seed)
{
    uint8_t *flags = make_flags(CUT_LONG, n, 1024, seed);
    FOR_RUNGS(name)
    check(ctx, run, name, flags, length_for(name, n), seed + 1);
    free(flags);
}

static void rounding_stays_in_its_bound(void **state)
{
    check_rungs(*state, check_rounding, SLOW ? 3000 : 50021, 79);
}

static void the_same_bits_again(void **state)
{
    check_rungs(*state, check_same_bits, SLOW ? 2500 : 30011, 89);
}

/* An infinity stays in its segment; infinity minus infinity must not appear in the next one. */
static void segments_do_not_touch(void **state)
{
    spmv_context *ctx = *state;
    double x[64];
    uint8_t flags[64];
    const struct pair *p = pair_of(SPMV_ADD, SPMV_F64);
    for (int i = 0; i < 64; i++) {
        x[i] = i % 4 == 1 ? (i % 8 == 1 ? (double)INFINITY : -(double)INFINITY) : 1;
        flags[i] = i % 4 == 0;
    }
    FOR_RUNGS(name)
    for (int kind = SPMV_INCLUSIVE; kind <= SPMV_EXCLUSIVE; kind++) {
        double want[64];
        oracle_scan(p, (spmv_scan_kind)kind, flags, x, want, 64);
        void *got = run(ctx, name, (spmv_scan_kind)kind, p, flags, x, 64, false);
        assert_same(got, want, p->size, 64, name);
        free(got);
    }
}

/* ---------------------------------------------------------------- the trace */

struct seen {
    int row, rows;
    const int32_t (*want)[8];
    const char *const *heads; /* "x..x...." */
};

static spmv_status trace(spmv_context *ctx, const char *rung, spmv_scan_kind kind, const struct pair *p,
                         const uint8_t *flags, const void *in, void *out, int64_t n, spmv_trace_fn tell, void *user)
{
    return spmv_segscan_trace(ctx, rung, kind, p->op, p->type, flags, in, out, n, tell, user);
}

/* A rung needs as many operations on pairs as on numbers. */
static void operations_are_counted(void **state)
{
    uint8_t *flags = make_flags(CUT_RANDOM, 1024, 1024, 97);
    (void)state;
    check_operations(trace, pair_of(SPMV_ADD, SPMV_I32), flags);
    free(flags);
}

static void compare_step(const spmv_trace *t, void *user)
{
    struct seen *seen = user;
    assert_true(seen->row < seen->rows);
    assert_int_equal(t->type, SPMV_I32);
    assert_int_equal(t->n, 8);
    assert_same(t->host_cells, seen->want[seen->row], sizeof(int32_t), 8, t->label);
    const char *const heads = seen->heads[seen->row];
    if (heads == NULL)
        assert_null(t->host_heads);
    for (int i = 0; heads != NULL && i < 8; i++)
        assert_int_equal(t->host_heads[i], heads[i] == 'x');
    seen->row++;
}

/* The numbers of the lectures in segments that begin at 0, 3 and 4, step by step. */
static void arrays_are_shown(void **state)
{
    static const int32_t in[8] = {3, 1, 7, 0, 4, 1, 6, 3};
    static const uint8_t flags[8] = {1, 0, 0, 1, 1, 0, 0, 0};
    static const int32_t inclusive[][8] = {{3, 1, 7, 0, 4, 1, 6, 3},    {3, 4, 8, 0, 4, 5, 7, 9},
                                           {3, 4, 11, 0, 4, 5, 11, 14}, {3, 4, 11, 0, 4, 5, 11, 14},
                                           {3, 4, 11, 0, 4, 5, 11, 14}, {3, 4, 11, 0, 4, 5, 11, 14}};
    static const char *const inclusive_heads[] = {"x..xx...", "xx.xxx..", "xxxxxxxx", "xxxxxxxx", "xxxxxxxx", NULL};
    /* Up: sums since the last head. Down: swapped with the preceding value, cut at heads. */
    static const int32_t exclusive[][8] = {
        {3, 1, 7, 0, 4, 1, 6, 3},   {3, 4, 7, 0, 4, 5, 6, 9}, {3, 4, 7, 0, 4, 5, 6, 14}, {3, 4, 7, 0, 4, 5, 6, 14},
        {3, 4, 7, 0, 4, 5, 6, 0},   {3, 4, 7, 0, 4, 5, 6, 0}, {3, 0, 7, 4, 4, 0, 6, 5},  {0, 3, 4, 11, 0, 4, 5, 11},
        {0, 3, 4, 11, 0, 4, 5, 11}, {0, 3, 4, 0, 0, 4, 5, 11}};
    static const char *const exclusive_heads[] = {"x..xx...", "xx.xxx..", "xx.xxx.x", "xx.xxx.x", "xx.xxx..",
                                                  "xx..xx.x", "x..xxx.x", ".xxxxxxx", ".xxxxxxx", NULL};
    spmv_context *ctx = *state;
    int32_t out[8];
    struct seen seen = {.want = inclusive, .heads = inclusive_heads, .rows = 6};
    assert_ok(ctx, spmv_segscan_trace(ctx, "hillis-steele-double", SPMV_INCLUSIVE, SPMV_ADD, SPMV_I32, flags, in, out,
                                      8, compare_step, &seen));
    assert_int_equal(seen.row, 6);
    assert_same(out, inclusive[5], sizeof out[0], 8, "out");
    seen = (struct seen){.want = exclusive, .heads = exclusive_heads, .rows = 10};
    assert_ok(
        ctx, spmv_segscan_trace(ctx, NULL, SPMV_EXCLUSIVE, SPMV_ADD, SPMV_I32, flags, in, out, 8, compare_step, &seen));
    assert_int_equal(seen.row, 10);
    assert_same(out, exclusive[9], sizeof out[0], 8, "out");
}

/* ---------------------------------------------------------------- statuses */

static void statuses(void **state)
{
    spmv_context *ctx = *state;
    const char *rung = spmv_segscan_rung_name(support_backend, 0);
    double x[2] = {1, 2};
    const uint8_t f[2] = {1, 1};
    void *m = support_upload(ctx, x, sizeof x), *h = support_upload(ctx, f, sizeof f);
    assert_fails(ctx, spmv_segscan_rung(ctx, "no-such", SPMV_INCLUSIVE, SPMV_ADD, SPMV_F64, h, m, m, 2),
                 SPMV_ERROR_METHOD, "no-such");
    FOR_RUNGS(name)
    {
        assert_fails(ctx, spmv_segscan_rung(ctx, "", SPMV_INCLUSIVE, SPMV_ADD, SPMV_F64, h, m, m, 2), SPMV_ERROR_METHOD,
                     name);
        FOR_PAIRS(p)
        if (is_teaching(name) && !is_taught(p))
            assert_fails(ctx, spmv_segscan_rung(ctx, name, SPMV_INCLUSIVE, p->op, p->type, h, m, m, 2), SPMV_ERROR_TYPE,
                         "no teaching rung");
    }
    assert_fails(ctx, spmv_segscan_rung(ctx, rung, SPMV_INCLUSIVE, SPMV_ADD, SPMV_F64, h, m, m, -1),
                 SPMV_ERROR_ARGUMENT, "n = -1");
    assert_fails(ctx, spmv_segscan_rung(ctx, rung, SPMV_INCLUSIVE, SPMV_ADD, SPMV_F64, h, NULL, m, 2),
                 SPMV_ERROR_ARGUMENT, "in is NULL");
    assert_fails(ctx, spmv_segscan_rung(ctx, rung, SPMV_INCLUSIVE, SPMV_ADD, SPMV_F64, h, m, NULL, 2),
                 SPMV_ERROR_ARGUMENT, "out is NULL");
    assert_fails(ctx, spmv_segscan_rung(ctx, rung, SPMV_INCLUSIVE, SPMV_ADD, SPMV_F64, NULL, m, m, 2),
                 SPMV_ERROR_ARGUMENT, "flags is NULL");
    assert_fails(ctx, spmv_segscan_rung(ctx, NULL, SPMV_INCLUSIVE, SPMV_ADD, SPMV_F64, NULL, m, m, 2),
                 SPMV_ERROR_ARGUMENT, "NULL");
    assert_fails(ctx, spmv_segscan_rung(ctx, rung, (spmv_scan_kind)5, SPMV_ADD, SPMV_F64, h, m, m, 2),
                 SPMV_ERROR_ARGUMENT, "5 is not a kind");
    assert_fails(ctx, spmv_segscan_rung(ctx, rung, SPMV_INCLUSIVE, (spmv_op)31, SPMV_F64, h, m, m, 2), SPMV_ERROR_TYPE,
                 "f64");
    assert_ok(ctx, spmv_segscan_rung(ctx, rung, SPMV_EXCLUSIVE, SPMV_ADD, SPMV_F64, NULL, NULL, NULL, 0));
    if (support_backend != SPMV_BACKEND_OMP) {
        static const char *const bad[] = {"blelloch:", "blelloch:1", "blelloch:3", "blelloch:2048", "blelloch:64x"};
        for (int k = 0; k < 5; k++)
            assert_fails(ctx, spmv_segscan_rung(ctx, bad[k], SPMV_INCLUSIVE, SPMV_ADD, SPMV_F64, h, m, m, 2),
                         SPMV_ERROR_METHOD, "power of two");
        assert_fails(ctx, spmv_segscan_rung(ctx, "definition:8", SPMV_INCLUSIVE, SPMV_ADD, SPMV_F64, h, m, m, 2),
                     SPMV_ERROR_METHOD, "no block size");
        assert_fails(ctx, spmv_segscan_rung(ctx, "definition", SPMV_INCLUSIVE, SPMV_ADD, SPMV_F64, h, m, m, 131073),
                     SPMV_ERROR_SIZE, "131072");
    }
    assert_fails(ctx, spmv_segscan_trace(ctx, NULL, SPMV_INCLUSIVE, SPMV_ADD, SPMV_F64, f, x, x, 2, NULL, NULL),
                 SPMV_ERROR_ARGUMENT, "trace is NULL");
    assert_fails(ctx, spmv_segscan_trace(ctx, "x", SPMV_INCLUSIVE, SPMV_ADD, SPMV_F64, f, x, x, 2, count_step, NULL),
                 SPMV_ERROR_METHOD, "blelloch");
    assert_fails(ctx,
                 spmv_segscan_trace(ctx, "serial", SPMV_INCLUSIVE, SPMV_ADD, SPMV_F64, f, x, x, 2, count_step, NULL),
                 SPMV_ERROR_METHOD, "no steps");
    assert_fails(ctx,
                 spmv_segscan_trace(ctx, NULL, SPMV_INCLUSIVE, SPMV_ADD, SPMV_F64, NULL, x, x, 2, count_step, NULL),
                 SPMV_ERROR_ARGUMENT, "flags is NULL");
    assert_holds(ctx, m, x, sizeof x);
    support_free_in(ctx, m, h);
}

SUPPORT_MAIN(cmocka_unit_test(names_are_listed), with_context(every_rung_at_the_seams), with_context(several_levels),
             with_context(tuned_at_their_tiles), with_context(rounding_stays_in_its_bound),
             with_context(the_same_bits_again), with_context(segments_do_not_touch),
             cmocka_unit_test(operations_are_counted), with_context(arrays_are_shown), with_context(statuses))

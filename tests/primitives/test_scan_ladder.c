/* The rungs of scan by name: each against the definition at the seams, for every operator and type,
 * inclusive and exclusive, in place; several levels of small blocks; the error bound of
 * floating-point sums; block scans with and without block sums; the number of operations of each
 * rung, and its arrays step by step; the same bits in every run; statuses.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "tests/support/support_ladder.h"

/* Sizes around one block of 1024 elements, two levels, and more blocks than one warp looks back
 * over. */
static const int64_t sizes[] = {1, 2, 3, 31, 32, 33, 255, 256, 257, 1023, 1024, 1025, 2048, 4099, 100003};
enum { SIZES = sizeof sizes / sizeof sizes[0] };

static void *run(spmv_context *ctx, const char *rung, spmv_scan_kind kind, const struct pair *p, const uint8_t *flags,
                 const void *in, int64_t n, bool in_place)
{
    const int64_t bytes = n * p->size;
    assert_null(flags);
    void *from = support_upload(ctx, in, bytes);
    void *to = in_place ? guarded_copy(ctx, in, bytes) : guarded_result(ctx, bytes);
    assert_ok(ctx, spmv_scan_rung(ctx, rung, kind, p->op, p->type, in_place ? to : from, to, n));
    void *untouched = host_array(bytes);
    assert_ok(ctx, spmv_download(ctx, from, untouched, bytes));
    assert_same(untouched, in, p->size, n, "the input");
    free(untouched);
    spmv_free(ctx, from);
    return take_result(ctx, to, bytes, rung);
}

static void check_rung(spmv_context *ctx, const char *rung, const struct pair *p, int64_t n)
{
    check_definition(ctx, run, rung, p, NULL, "", n, 41 + (uint64_t)n);
}

#define FOR_RUNGS(name) FOR_RUNGS_OF(spmv_scan_rung_name, name)

/* Teaching rungs keep the elements of a block in shared memory, so they take numbers only. */
static bool is_teaching(const char *name)
{
    static const char *const others[] = {"tiles", "reduce-scan", "look-back", "single-pass"};
    bool other = false;
    for (int k = 0; k < 4; k++)
        other = other || is(name, others[k]);
    return !other;
}

/* The rungs with a selectable block size. */
static const char *const by_block[] = {"hillis-steele", "hillis-steele-double", "blelloch-divergent", "blelloch"};
enum { BY_BLOCK = 4 };

static void names_are_listed(void **state)
{
    (void)state;
    static const char *const ladder[] = {"definition",         "hillis-steele", "hillis-steele-double",
                                         "blelloch-divergent", "blelloch",      "chained"};
    int found = 0, count = 0;
    FOR_RUNGS(name)
    {
        count++;
        for (int k = 0; k < 6; k++)
            found += is(name, ladder[k]);
    }
    assert_int_equal(found, support_backend == SPMV_BACKEND_OMP ? 0 : 6);
    assert_true(count > 0);
    assert_rung_count(spmv_scan_rung_name, count);
}

static void every_rung_at_the_seams(void **state)
{
    spmv_context *ctx = *state;
    FOR_RUNGS(name)
    for (int s = 0; s < SIZES; s++)
        FOR_PAIRS(p)
        {
            /* Rungs with n^2 operations and emulated threads run only small sizes in all types;
             * larger sizes use one type that detects a wrong operand order. On ref the pairs take
             * turns at 1023 to 4099 elements: each has one or two of these sizes, and more than one
             * block. */
            const bool all = sizes[s] < (is(name, "definition") ? 2000 : 5000) && !(SLOW && sizes[s] > 257) &&
                             (support_backend != SPMV_BACKEND_REF || sizes[s] <= 257 || (p - pairs + s) % 3 == 0);
            if (is(name, "definition") ? sizes[s] > 4099 : SLOW && sizes[s] > 5000 && !is(name, "reduce-scan"))
                continue;
            if (p->size > 8 && is_teaching(name)) {
                assert_fails(ctx, spmv_scan_rung(ctx, name, SPMV_INCLUSIVE, p->op, p->type, ctx, ctx, sizes[s]),
                             SPMV_ERROR_TYPE, "no teaching rung");
                continue;
            }
            if (all || (p->type == SPMV_I64 && (p->op == SPMV_ADD || p->op == SPMV_LAST)))
                check_rung(ctx, name, p, sizes[s]);
        }
}

/* Blocks of 2, 4 and 8: up to ten levels. */
static void several_levels(void **state)
{
    if (support_backend == SPMV_BACKEND_OMP)
        skip(); /* its tiles have one size */
    static const int64_t lengths[] = {7, 8, 9, 63, 64, 65, 511, 512, 513, 1000};
    spmv_context *ctx = *state;
    const struct pair *tests[] = {pair_of(SPMV_LAST, SPMV_I32), pair_of(SPMV_ADD, SPMV_F64),
                                  pair_of(SPMV_ADD, SPMV_I64)};
    for (int k = 0; k < BY_BLOCK + 1; k++)
        for (int block = 2; block <= 8; block *= 2)
            for (int n = 0; n < 10; n++)
                for (int t = 0; t < 3; t++) {
                    char rung[64];
                    snprintf(rung, sizeof rung, "%s:%d", k < BY_BLOCK ? by_block[k] : "chained", block);
                    check_rung(ctx, rung, tests[t], lengths[n]);
                }
}

static void rounding_stays_in_its_bound(void **state)
{
    spmv_context *ctx = *state;
    FOR_RUNGS(name)
    check_rounding(ctx, run, name, NULL, length_for(name, SLOW ? 3000 : 50021), 43);
}

static void the_same_bits_again(void **state)
{
    spmv_context *ctx = *state;
    FOR_RUNGS(name)
    check_same_bits(ctx, run, name, NULL, length_for(name, SLOW ? 2500 : 30011), 47);
}

/* Two forms of one tree have the same parentheses, so the same bits; so do one buffer and two. */
static void forms_of_one_rung_agree(void **state)
{
    if (support_backend == SPMV_BACKEND_OMP)
        skip(); /* it has no teaching rungs */
    spmv_context *ctx = *state;
    const struct pair *p = pair_of(SPMV_ADD, SPMV_F32);
    void *x = pair_values(p, 3000, false, 53);
    for (int kind = SPMV_INCLUSIVE; kind <= SPMV_EXCLUSIVE; kind++)
        for (int k = 0; k < BY_BLOCK; k += 2) {
            void *one = run(ctx, by_block[k], (spmv_scan_kind)kind, p, NULL, x, 3000, false);
            void *other = run(ctx, by_block[k + 1], (spmv_scan_kind)kind, p, NULL, x, 3000, false);
            assert_same(one, other, p->size, 3000, by_block[k]);
            support_free(one, other);
        }
    free(x);
}

/* ---------------------------------------------------------------- blocks */

static void check_blocks(spmv_context *ctx, const char *rung, const struct pair *p, spmv_scan_kind kind, int64_t block,
                         int64_t n)
{
    const int64_t blocks = (n + block - 1) / block, size = p->size;
    void *in = pair_values(p, n, true, 59 + (uint64_t)n), *want = host_array(n * size);
    void *want_sums = host_array(blocks * size), *from = support_upload(ctx, in, n * size);
    for (int64_t b = 0; b < blocks; b++) {
        const int64_t begin = b * block, end = begin + block < n ? begin + block : n;
        oracle_scan(p, kind, NULL, element(in, (size_t)size, begin), element_out(want, (size_t)size, begin),
                    end - begin);
        oracle_reduce(p, in, begin, end, element_out(want_sums, (size_t)size, b));
    }
    for (int in_place = 0; in_place < 2; in_place++) {
        void *to = in_place ? guarded_copy(ctx, in, n * size) : guarded_result(ctx, n * size);
        void *sums = guarded_result(ctx, blocks * size);
        assert_ok(ctx, spmv_block_scan(ctx, rung, kind, p->op, p->type, in_place ? to : from, to, sums, block, n));
        void *got_sums = take_result(ctx, sums, blocks * size, "sums");
        assert_same(got_sums, want_sums, size, blocks, "sums, taken");
        free(got_sums);
        sums = guarded_result(ctx, blocks * size);
        if (in_place && kind == SPMV_EXCLUSIVE)
            assert_fails(ctx, spmv_block_sums(ctx, kind, p->op, p->type, to, to, sums, block, n), SPMV_ERROR_ARGUMENT,
                         "last element");
        assert_ok(ctx,
                  spmv_block_sums(ctx, kind, p->op, p->type, kind == SPMV_EXCLUSIVE ? from : NULL, to, sums, block, n));
        got_sums = take_result(ctx, sums, blocks * size, "sums");
        assert_same(got_sums, want_sums, size, blocks, "sums, read off");
        free(got_sums);
        void *got = take_result(ctx, to, n * size, p->name);
        assert_same(got, want, size, n, "blocks");
        free(got);
    }
    spmv_free(ctx, from);
    support_free(in, want, want_sums);
}

static void blocks_one_by_one(void **state)
{
    static const int64_t blocks[] = {2, 16, 256, 1024}, lengths[] = {1, 15, 16, 17, 1024, 2049};
    spmv_context *ctx = *state;
    const struct pair *tests[] = {pair_of(SPMV_LAST, SPMV_F32), pair_of(SPMV_ADD, SPMV_I32),
                                  pair_of(SPMV_MAX, SPMV_F64)};
    for (int k = 0; k < BY_BLOCK + 1; k++)
        for (int b = 0; b < 4; b++)
            for (int n = 0; n < 6; n++)
                for (int t = 0; t < 3; t++)
                    for (int kind = SPMV_INCLUSIVE; kind <= SPMV_EXCLUSIVE; kind++)
                        if (k == BY_BLOCK || support_backend != SPMV_BACKEND_OMP)
                            check_blocks(ctx, k < BY_BLOCK ? by_block[k] : "auto", tests[t], (spmv_scan_kind)kind,
                                         blocks[b], lengths[n]);
    /* Without block sums. */
    double x[4] = {1, 2, 3, 4};
    double *memory = support_upload(ctx, x, sizeof x);
    assert_ok(ctx, spmv_block_scan(ctx, NULL, SPMV_INCLUSIVE, SPMV_ADD, SPMV_F64, memory, memory, NULL, 2, 4));
    assert_ok(ctx, spmv_download(ctx, memory, x, sizeof x));
    assert_true(x[0] == 1 && x[1] == 3 && x[2] == 3 && x[3] == 7);
    spmv_free(ctx, memory);
}

/* ---------------------------------------------------------------- the trace */

struct seen {
    int row, rows;
    const int64_t (*want)[8];
};

static spmv_status trace(spmv_context *ctx, const char *rung, spmv_scan_kind kind, const struct pair *p,
                         const uint8_t *flags, const void *in, void *out, int64_t n, spmv_trace_fn tell, void *user)
{
    (void)flags;
    return spmv_scan_trace(ctx, rung, kind, p->op, p->type, in, out, n, tell, user);
}

static void operations_are_counted(void **state)
{
    (void)state;
    check_operations(trace, pair_of(SPMV_ADD, SPMV_I64), NULL);
}

static void compare_step(const spmv_trace *t, void *user)
{
    struct seen *seen = user;
    assert_true(seen->row < seen->rows);
    assert_int_equal(t->step, seen->row);
    assert_int_equal(t->block, 0);
    assert_int_equal(t->type, SPMV_I64);
    assert_int_equal(t->n, 8);
    assert_same(t->host_cells, seen->want[seen->row], sizeof(int64_t), 8, t->label);
    seen->row++;
}

static void check_steps(const char *rung, spmv_scan_kind kind, const int64_t (*want)[8], int rows)
{
    static const int64_t in[8] = {3, 1, 7, 0, 4, 1, 6, 3};
    int64_t out[8];
    spmv_context *ctx = support_context();
    struct seen seen = {.want = want, .rows = rows};
    assert_ok(ctx, spmv_scan_trace(ctx, rung, kind, SPMV_ADD, SPMV_I64, in, out, 8, compare_step, &seen));
    assert_int_equal(seen.row, rows);
    assert_same(out, want[rows - 1], sizeof out[0], 8, rung);
    spmv_context_destroy(ctx);
}

/* The example of the lectures, step by step. */
static void arrays_are_shown(void **state)
{
    (void)state;
    static const int64_t hillis_steele[][8] = {{3, 1, 7, 0, 4, 1, 6, 3},
                                               {3, 4, 8, 7, 4, 5, 7, 9},
                                               {3, 4, 11, 11, 12, 12, 11, 14},
                                               {3, 4, 11, 11, 15, 16, 22, 25},
                                               {3, 4, 11, 11, 15, 16, 22, 25}};
    static const int64_t inclusive[][8] = {{3, 1, 7, 0, 4, 1, 6, 3},      {3, 4, 7, 7, 4, 5, 6, 9},
                                           {3, 4, 7, 11, 4, 5, 6, 14},    {3, 4, 7, 11, 4, 5, 6, 25},
                                           {3, 4, 7, 11, 4, 16, 6, 25},   {3, 4, 11, 11, 15, 16, 22, 25},
                                           {3, 4, 11, 11, 15, 16, 22, 25}};
    static const int64_t exclusive[][8] = {
        {3, 1, 7, 0, 4, 1, 6, 3},   {3, 4, 7, 7, 4, 5, 6, 9},      {3, 4, 7, 11, 4, 5, 6, 14},
        {3, 4, 7, 11, 4, 5, 6, 25}, {3, 4, 7, 11, 4, 5, 6, 0},     {3, 4, 7, 0, 4, 5, 6, 11},
        {3, 0, 7, 4, 4, 11, 6, 16}, {0, 3, 4, 11, 11, 15, 16, 22}, {0, 3, 4, 11, 11, 15, 16, 22}};
    check_steps("hillis-steele-double", SPMV_INCLUSIVE, hillis_steele, 5);
    check_steps("blelloch", SPMV_INCLUSIVE, inclusive, 7);
    check_steps("blelloch-divergent", SPMV_INCLUSIVE, inclusive, 7);
    check_steps("blelloch", SPMV_EXCLUSIVE, exclusive, 9);
    check_steps(NULL, SPMV_EXCLUSIVE, exclusive, 9);
}

/* ---------------------------------------------------------------- statuses */

static void statuses(void **state)
{
    spmv_context *ctx = *state;
    const char *rung = spmv_scan_rung_name(support_backend, 0);
    double x[2] = {1, 2};
    void *m = support_upload(ctx, x, sizeof x);
    assert_fails(ctx, spmv_scan_rung(ctx, "no-such", SPMV_INCLUSIVE, SPMV_ADD, SPMV_F64, m, m, 2), SPMV_ERROR_METHOD,
                 "no-such");
    FOR_RUNGS(name)
    assert_fails(ctx, spmv_scan_rung(ctx, "", SPMV_INCLUSIVE, SPMV_ADD, SPMV_F64, m, m, 2), SPMV_ERROR_METHOD, name);
    assert_fails(ctx, spmv_scan_rung(ctx, rung, SPMV_INCLUSIVE, SPMV_ADD, SPMV_F64, m, m, -1), SPMV_ERROR_ARGUMENT,
                 "n = -1");
    assert_fails(ctx, spmv_scan_rung(ctx, rung, SPMV_INCLUSIVE, SPMV_ADD, SPMV_F64, NULL, m, 2), SPMV_ERROR_ARGUMENT,
                 "in is NULL");
    assert_fails(ctx, spmv_scan_rung(ctx, rung, SPMV_INCLUSIVE, SPMV_ADD, SPMV_F64, m, NULL, 2), SPMV_ERROR_ARGUMENT,
                 "out is NULL");
    assert_fails(ctx, spmv_scan_rung(ctx, rung, (spmv_scan_kind)5, SPMV_ADD, SPMV_F64, m, m, 2), SPMV_ERROR_ARGUMENT,
                 "5 is not a kind");
    assert_fails(ctx, spmv_scan_rung(ctx, rung, SPMV_INCLUSIVE, (spmv_op)31, SPMV_F64, m, m, 2), SPMV_ERROR_TYPE,
                 "f64");
    assert_ok(ctx, spmv_scan_rung(ctx, rung, SPMV_EXCLUSIVE, SPMV_ADD, SPMV_F64, NULL, NULL, 0));
    if (support_backend != SPMV_BACKEND_OMP) {
        static const char *const bad[] = {"blelloch:",
                                          "blelloch:0",
                                          "blelloch:1",
                                          "blelloch:3",
                                          "blelloch:2048",
                                          "blelloch:64x",
                                          "blelloch:99999999999999999999"};
        for (int k = 0; k < 7; k++)
            assert_fails(ctx, spmv_scan_rung(ctx, bad[k], SPMV_INCLUSIVE, SPMV_ADD, SPMV_F64, m, m, 2),
                         SPMV_ERROR_METHOD, "power of two");
        assert_fails(ctx, spmv_scan_rung(ctx, "definition:8", SPMV_INCLUSIVE, SPMV_ADD, SPMV_F64, m, m, 2),
                     SPMV_ERROR_METHOD, "no block size");
        assert_fails(ctx, spmv_scan_rung(ctx, "definition", SPMV_INCLUSIVE, SPMV_ADD, SPMV_F64, m, m, 131073),
                     SPMV_ERROR_SIZE, "131072");
        assert_fails(ctx, spmv_block_scan(ctx, "chained", SPMV_INCLUSIVE, SPMV_ADD, SPMV_F64, m, m, NULL, 2, 2),
                     SPMV_ERROR_METHOD, "no block scan");
        assert_fails(ctx, spmv_block_scan(ctx, "blelloch:2", SPMV_INCLUSIVE, SPMV_ADD, SPMV_F64, m, m, NULL, 2, 2),
                     SPMV_ERROR_METHOD, "as an argument");
    }
    assert_fails(ctx, spmv_block_scan(ctx, NULL, SPMV_INCLUSIVE, SPMV_ADD, SPMV_F64, m, m, NULL, 3, 2),
                 SPMV_ERROR_ARGUMENT, "block size 3");
    assert_fails(ctx, spmv_block_scan(ctx, NULL, SPMV_INCLUSIVE, SPMV_ADD, SPMV_F64, m, m, NULL, 2048, 2),
                 SPMV_ERROR_ARGUMENT, "block size 2048");
    assert_fails(ctx, spmv_block_scan(ctx, NULL, SPMV_INCLUSIVE, SPMV_ADD, SPMV_F64, m, NULL, NULL, 2, 2),
                 SPMV_ERROR_ARGUMENT, "out is NULL");
    assert_fails(ctx, spmv_block_sums(ctx, SPMV_INCLUSIVE, SPMV_ADD, SPMV_F64, NULL, m, NULL, 2, 2),
                 SPMV_ERROR_ARGUMENT, "sums is NULL");
    assert_fails(ctx, spmv_block_sums(ctx, SPMV_INCLUSIVE, SPMV_ADD, SPMV_F64, NULL, NULL, m, 2, 2),
                 SPMV_ERROR_ARGUMENT, "scanned is NULL");
    assert_fails(ctx, spmv_scan_trace(ctx, NULL, SPMV_INCLUSIVE, SPMV_ADD, SPMV_F64, x, x, 2, NULL, NULL),
                 SPMV_ERROR_ARGUMENT, "trace is NULL");
    assert_fails(ctx, spmv_scan_trace(ctx, "x", SPMV_INCLUSIVE, SPMV_ADD, SPMV_F64, x, x, 2, count_step, NULL),
                 SPMV_ERROR_METHOD, "blelloch");
    assert_holds(ctx, m, x, sizeof x);
    spmv_free(ctx, m);
}

/* "brief": every rung, operator and type on three blocks; ten levels; block scans. */
static void each_kernel(void **state)
{
    spmv_context *ctx = *state;
    FOR_RUNGS(name)
    FOR_PAIRS(p)
    {
        if (p->size <= 8 || !is_teaching(name))
            check_rung(ctx, name, p, is(name, "definition") ? 300 : 2 * 1024 + 77);
    }
    for (int k = 0; k < BY_BLOCK + 1; k++) {
        char rung[64];
        snprintf(rung, sizeof rung, "%s:2", k < BY_BLOCK ? by_block[k] : "chained");
        check_rung(ctx, rung, pair_of(SPMV_LAST, SPMV_I32), 1000);
    }
    for (int k = 0; k < BY_BLOCK; k++)
        for (int kind = SPMV_INCLUSIVE; kind <= SPMV_EXCLUSIVE; kind++)
            check_blocks(ctx, by_block[k], pair_of(SPMV_ADD, SPMV_F64), (spmv_scan_kind)kind, 256, 1000);
}

SUPPORT_MAIN_OR_BRIEF((with_context(each_kernel)), cmocka_unit_test(names_are_listed),
                      with_context(every_rung_at_the_seams), with_context(several_levels),
                      with_context(rounding_stays_in_its_bound), with_context(the_same_bits_again),
                      with_context(forms_of_one_rung_agree), with_context(blocks_one_by_one),
                      cmocka_unit_test(operations_are_counted), cmocka_unit_test(arrays_are_shown),
                      with_context(statuses))

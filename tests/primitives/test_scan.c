/* Scan: the examples of the lectures, every operator and type at the seams, in place, operand
 * order, wrap-around, NaN, the same bits for any number of threads, statuses.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <omp.h>

#include "tests/support/support_pairs.h"

/* The scan of a host array, in place or not, copied back to the host; the caller frees it. */
static void *scan(spmv_context *ctx, spmv_scan_kind kind, const struct pair *p, const void *in, int64_t n,
                  bool in_place)
{
    const int64_t bytes = n * p->size;
    void *from = support_upload(ctx, in, bytes);
    void *to = in_place ? guarded_copy(ctx, in, bytes) : guarded_result(ctx, bytes);
    assert_ok(ctx, spmv_scan(ctx, kind, p->op, p->type, in_place ? to : from, to, n));
    void *untouched = host_array(bytes);
    assert_ok(ctx, spmv_download(ctx, from, untouched, bytes));
    assert_same(untouched, in, p->size, n, "the input");
    free(untouched);
    spmv_free(ctx, from);
    return take_result(ctx, to, bytes, p->name);
}

/* in and want: LIST(...) of the same length */
#define CHECK_SCAN(kind, op, type, T, in, want)                                                                        \
    do {                                                                                                               \
        const T in_[] = in, want_[sizeof in_ / sizeof(T)] = want;                                                      \
        const int64_t n_ = (int64_t)(sizeof in_ / sizeof(T));                                                          \
        void *got_ = scan(ctx, kind, pair_of(op, type), in_, n_, false);                                               \
        assert_same(got_, want_, sizeof(T), n_, #op " " #type " " #kind);                                              \
        free(got_);                                                                                                    \
    } while (0)

static void lectures(void **state)
{
    spmv_context *ctx = *state;
    CHECK_SCAN(SPMV_INCLUSIVE, SPMV_ADD, SPMV_I32, int32_t, LIST(1, 2, 3, 2, 3, 1, 4, 5),
               LIST(1, 3, 6, 8, 11, 12, 16, 21));
    CHECK_SCAN(SPMV_EXCLUSIVE, SPMV_ADD, SPMV_I32, int32_t, LIST(1, 2, 3, 2, 3, 1, 4, 5),
               LIST(0, 1, 3, 6, 8, 11, 12, 16));
    CHECK_SCAN(SPMV_INCLUSIVE, SPMV_ADD, SPMV_F64, double, LIST(3, 1, 7, 0, 4, 1, 6, 3),
               LIST(3, 4, 11, 11, 15, 16, 22, 25));
    CHECK_SCAN(SPMV_EXCLUSIVE, SPMV_ADD, SPMV_F64, double, LIST(3, 1, 7, 0, 4, 1, 6, 3),
               LIST(0, 3, 4, 11, 11, 15, 16, 22));
    CHECK_SCAN(SPMV_INCLUSIVE, SPMV_MAX, SPMV_I64, int64_t, LIST(3, 5, 2, 7, 28, 4, 3, 0, 8, 1),
               LIST(3, 5, 5, 7, 28, 28, 28, 28, 28, 28));
    CHECK_SCAN(SPMV_INCLUSIVE, SPMV_ADD, SPMV_F32, float, LIST(3, 5, 2, 7, 28, 4, 3, 0, 8, 1),
               LIST(3, 8, 10, 17, 45, 49, 52, 52, 60, 61));
}

static void identity_begins_an_exclusive_scan(void **state)
{
    spmv_context *ctx = *state;
    CHECK_SCAN(SPMV_EXCLUSIVE, SPMV_ADD, SPMV_F32, float, LIST(5, 6), LIST(0, 5));
    CHECK_SCAN(SPMV_EXCLUSIVE, SPMV_MUL, SPMV_I64, int64_t, LIST(5, 6), LIST(1, 5));
    CHECK_SCAN(SPMV_EXCLUSIVE, SPMV_MIN, SPMV_I32, int32_t, LIST(5, 6), LIST(INT32_MAX, 5));
    CHECK_SCAN(SPMV_EXCLUSIVE, SPMV_MIN, SPMV_F64, double, LIST(5, 6), LIST(INFINITY, 5));
    CHECK_SCAN(SPMV_EXCLUSIVE, SPMV_MAX, SPMV_I64, int64_t, LIST(5, 6), LIST(INT64_MIN, 5));
    CHECK_SCAN(SPMV_EXCLUSIVE, SPMV_MAX, SPMV_F32, float, LIST(5, 6), LIST(-INFINITY, 5));
    CHECK_SCAN(SPMV_EXCLUSIVE, SPMV_LAST, SPMV_I32, int32_t, LIST(5, 6), LIST(0, 5));
}

/* An inclusive scan starts with the element itself; starting with 0 would turn -0 into 0. */
static void negative_zero_stays(void **state)
{
    if (support_backend == SPMV_BACKEND_CUDA)
        /* CUDA kernels start with the identity; they do not promise the sign of a zero. */
        skip();
    spmv_context *ctx = *state;
    CHECK_SCAN(SPMV_INCLUSIVE, SPMV_ADD, SPMV_F64, double, LIST(-0.0, -0.0), LIST(-0.0, -0.0));
}

static void order_of_operands(void **state)
{
    spmv_context *ctx = *state;
    CHECK_SCAN(SPMV_INCLUSIVE, SPMV_LAST, SPMV_I32, int32_t, LIST(0, 3, 0, 0, 5, 0, 7, 0),
               LIST(0, 3, 3, 3, 5, 5, 7, 7));
    CHECK_SCAN(SPMV_EXCLUSIVE, SPMV_LAST, SPMV_F64, double, LIST(0, 3, 0, 0, 5, 0, 7, 0), LIST(0, 0, 3, 3, 3, 5, 5, 7));
}

static void integers_wrap(void **state)
{
    spmv_context *ctx = *state;
    CHECK_SCAN(SPMV_INCLUSIVE, SPMV_ADD, SPMV_I32, int32_t, LIST(INT32_MAX, 1, 1),
               LIST(INT32_MAX, INT32_MIN, INT32_MIN + 1));
    CHECK_SCAN(SPMV_INCLUSIVE, SPMV_ADD, SPMV_I64, int64_t, LIST(INT64_MAX, 1, -1),
               LIST(INT64_MAX, INT64_MIN, INT64_MAX));
    CHECK_SCAN(SPMV_INCLUSIVE, SPMV_MUL, SPMV_I32, int32_t, LIST(65536, 65536, 3), LIST(65536, 0, 0));
    CHECK_SCAN(SPMV_INCLUSIVE, SPMV_MUL, SPMV_I64, int64_t, LIST(INT64_MIN, -1, 3),
               LIST(INT64_MIN, INT64_MIN, INT64_MIN));
}

/* After a NaN all results of min and max are NaN, across tiles too. */
static void nan_stays(void **state)
{
    spmv_context *ctx = *state;
    const int64_t n = 4 * HOST_TILE + 5, at = HOST_TILE + 3;
    const spmv_op ops[] = {SPMV_MIN, SPMV_MAX};
    for (int k = 0; k < 2; k++) {
        double *x = pair_values(pair_of(ops[k], SPMV_F64), n, false, 5);
        x[at] = (double)NAN;
        double *y = scan(ctx, SPMV_INCLUSIVE, pair_of(ops[k], SPMV_F64), x, n, false);
        for (int64_t i = 0; i < n; i++)
            if (!isnan(y[i]) != (i < at))
                fail_msg("%s: element %lld is %g", spmv_op_name(ops[k]), (long long)i, y[i]);
        support_free(x, y);
    }
}

static void check_size(spmv_context *ctx, const struct pair *p, int64_t n)
{
    void *in = pair_values(p, n, true, 11 + (uint64_t)n), *want = host_array(n * p->size);
    for (int kind = SPMV_INCLUSIVE; kind <= SPMV_EXCLUSIVE; kind++) {
        oracle_scan(p, (spmv_scan_kind)kind, NULL, in, want, n);
        for (int in_place = 0; in_place < 2; in_place++) {
            void *got = scan(ctx, (spmv_scan_kind)kind, p, in, n, in_place != 0);
            assert_same(got, want, p->size, n, p->name);
            free(got);
        }
    }
    support_free(in, want);
}

static void every_pair_at_the_seams(void **state)
{
    spmv_context *ctx = *state;
    FOR_PAIRS(p)
    FOR_SEAM_SIZES(n)
    check_size(ctx, p, n);
}

static void same_bits_for_any_team(void **state)
{
    (void)state;
    const int64_t n = 10 * HOST_TILE + 13;
    FOR_PAIRS(p)
    {
        void *in = pair_values(p, n, false, 23), *first = NULL;
        for (int t = 0; t < teams(); t++) {
            spmv_context *ctx = support_context_on(support_backend, team_sizes[t]);
            void *got = scan(ctx, SPMV_INCLUSIVE, p, in, n, false);
            if (first == NULL)
                first = got;
            assert_same(got, first, p->size, n, p->name);
            if (got != first)
                free(got);
            spmv_context_destroy(ctx);
        }
        support_free(in, first);
    }
}

/* |computed - exact| <= (i + 1) u (|x_0| + ... + |x_i|) to first order in any summation order
 * (Higham, "Accuracy and Stability of Numerical Algorithms", 2002, section 4.2). Twice that covers
 * the higher orders and the reference. */
static void rounding_stays_in_its_bound(void **state)
{
    spmv_context *ctx = *state;
    const int64_t n = 10 * HOST_TILE + 13;
    float *x = pair_values(pair_of(SPMV_ADD, SPMV_F32), n, false, 29);
    float *y = scan(ctx, SPMV_INCLUSIVE, pair_of(SPMV_ADD, SPMV_F32), x, n, false);
    long double sum = 0, magnitude = 0;
    for (int64_t i = 0; i < n; i++) {
        sum += x[i];
        magnitude += fabsf(x[i]);
        const long double bound = 2 * (long double)(i + 1) * 0x1p-24L * magnitude;
        if (!(fabsl(y[i] - sum) <= bound))
            fail_msg("element %lld is %.9g instead of %.9Lg", (long long)i, y[i], sum);
    }
    support_free(x, y);
}

/* spmv_map_scan of a host array, or spmv_map and then spmv_scan. */
static void *map_scan(spmv_context *ctx, bool fused, spmv_function f, spmv_scan_kind kind, const struct pair *p,
                      const void *in, int64_t n, bool in_place)
{
    const int64_t bytes = n * p->size;
    void *from = support_upload(ctx, in, bytes);
    void *to = in_place ? guarded_copy(ctx, in, bytes) : guarded_result(ctx, bytes);
    const void *source = in_place ? to : from;
    if (fused) {
        assert_ok(ctx, spmv_map_scan(ctx, f, kind, p->op, p->type, source, to, n));
    } else {
        assert_ok(ctx, spmv_map(ctx, f, p->type, source, to, n));
        assert_ok(ctx, spmv_scan(ctx, kind, p->op, p->type, to, to, n));
    }
    spmv_free(ctx, from);
    return take_result(ctx, to, bytes, p->name);
}

/* Any NaN equals any other. */
static bool both_nan(const struct pair *p, const void *a, const void *b)
{
    float x, y;
    double u, v;
    if (p->type == SPMV_F32) {
        memcpy(&x, a, 4);
        memcpy(&y, b, 4);
        return isnan(x) && isnan(y);
    }
    memcpy(&u, a, 8);
    memcpy(&v, b, 8);
    return p->type == SPMV_F64 && isnan(u) && isnan(v);
}

static void check_map_scan(spmv_context *ctx, spmv_function f, const struct pair *p, const void *in, int64_t n,
                           int turn)
{
    const spmv_scan_kind kind = turn % 2 ? SPMV_INCLUSIVE : SPMV_EXCLUSIVE;
    char *want = map_scan(ctx, false, f, kind, p, in, n, false);
    char *got = map_scan(ctx, true, f, kind, p, in, n, turn % 3 == 0);
    for (int64_t i = 0; i < n; i++)
        if (memcmp(got + i * p->size, want + i * p->size, (size_t)p->size) != 0 &&
            !both_nan(p, got + i * p->size, want + i * p->size))
            fail_msg("%s of %s, n = %lld: element %lld differs", p->name, spmv_function_name(f), (long long)n,
                     (long long)i);
    support_free(want, got);
}

/* Gives the bits of a map followed by a scan, for every function, operator and type. */
static void map_scan_is_map_then_scan(void **state)
{
    static const int64_t lengths[] = {1, 33, 9217, 30011};
    check_maps(*state, check_map_scan, lengths, 4);
}

static void map_scan_by_hand(void **state)
{
    spmv_context *ctx = *state;
    const double x[] = {3, -4, 12, -1}, squares[] = {9, 25, 169, 170};
    const int32_t i[] = {-5, 2, -7}, largest[] = {INT32_MIN, 5, 5};
    void *got = map_scan(ctx, true, SPMV_MAP_SQUARE, SPMV_INCLUSIVE, pair_of(SPMV_ADD, SPMV_F64), x, 4, false);
    assert_same(got, squares, 8, 4, "sums of squares");
    free(got);
    got = map_scan(ctx, true, SPMV_MAP_ABS, SPMV_EXCLUSIVE, pair_of(SPMV_MAX, SPMV_I32), i, 3, true);
    assert_same(got, largest, 4, 3, "largest magnitude before");
    support_free(got, map_scan(ctx, true, SPMV_MAP_ABS, SPMV_EXCLUSIVE, pair_of(SPMV_MAX, SPMV_I32), i, 0, true));
}

/* Many tiles; several launches where the host emulates the GPU. */
static void map_scan_of_many(void **state)
{
    spmv_context *ctx = *state;
    const int64_t n = 20 * HOST_TILE + 3;
    const struct pair *p = pair_of(SPMV_ADD, SPMV_I64);
    int64_t *in = pair_values(p, n, true, 67), *mapped = host_array(n * 8), *want = host_array(n * 8);
    for (int64_t i = 0; i < n; i++)
        mapped[i] = (int64_t)(0 - (uint64_t)in[i]);
    oracle_scan(p, SPMV_INCLUSIVE, NULL, mapped, want, n);
    void *got = map_scan(ctx, true, SPMV_MAP_NEG, SPMV_INCLUSIVE, p, in, n, true);
    assert_same(got, want, 8, n, "many");
    support_free(got, in, mapped, want);
}

/* Results larger than the caches use non-temporal stores, except in place; the bits are the
 * same. */
static void large_results_have_the_same_bits(void **state)
{
    (void)state;
    if (support_backend != SPMV_BACKEND_OMP)
        skip();
    const struct pair *p = pair_of(SPMV_ADD, SPMV_F32);
    const int64_t n = ((int64_t)32 << 20) / p->size + HOST_TILE / 2 + 3;
    void *in = pair_values(p, n, false, 37);
    for (int kind = SPMV_INCLUSIVE; kind <= SPMV_EXCLUSIVE; kind++) {
        spmv_context *one = support_context_on(support_backend, 1), *four = support_context_on(support_backend, 4);
        void *want = scan(one, (spmv_scan_kind)kind, p, in, n, true);
        for (int team = 0; team < 2; team++) {
            void *got = scan(team ? four : one, (spmv_scan_kind)kind, p, in, n, false);
            assert_same(got, want, p->size, n, p->name);
            free(got);
        }
        free(want);
        spmv_context_destroy(one);
        spmv_context_destroy(four);
    }
    free(in);
}

static void settings_of_the_caller_stay(void **state)
{
    (void)state;
    const int before = omp_get_max_threads(), dynamic = omp_get_dynamic();
    omp_set_num_threads(2);
    spmv_context *ctx = support_context_on(support_backend, 3);
    const struct pair *p = pair_of(SPMV_ADD, SPMV_F64);
    void *in = pair_values(p, 100003, true, 31);
    free(scan(ctx, SPMV_INCLUSIVE, p, in, 100003, false));
    assert_int_equal(omp_get_max_threads(), 2);
    assert_int_equal(omp_get_dynamic(), dynamic);
    omp_set_num_threads(before);
    free(in);
    spmv_context_destroy(ctx);
}

/* Contexts are independent: each thread of a caller's team scans on a context of its own. */
static void inside_a_team_of_the_caller(void **state)
{
    (void)state;
    if (support_backend == SPMV_BACKEND_CUDA)
        skip(); /* tests OpenMP inside OpenMP */
    enum { TEAM = 2 };
    const struct pair *p = pair_of(SPMV_ADD, SPMV_I64);
    const int64_t n = 100003, bytes = n * p->size;
    void *in = pair_values(p, n, true, 37), *want = host_array(bytes), *got[TEAM];
    spmv_status status[TEAM];
    spmv_context *ctx[TEAM];
    void *memory[TEAM];
    oracle_scan(p, SPMV_INCLUSIVE, NULL, in, want, n);
    for (int t = 0; t < TEAM; t++) {
        ctx[t] = support_context_on(support_backend, 3);
        memory[t] = support_upload(ctx[t], in, bytes);
        got[t] = host_array(bytes);
    }
#pragma omp parallel for num_threads(TEAM)
    for (int t = 0; t < TEAM; t++) {
        status[t] = spmv_scan(ctx[t], SPMV_INCLUSIVE, p->op, p->type, memory[t], memory[t], n);
        if (status[t] == SPMV_OK)
            status[t] = spmv_download(ctx[t], memory[t], got[t], bytes);
    }
    for (int t = 0; t < TEAM; t++) {
        assert_int_equal(status[t], SPMV_OK);
        assert_same(got[t], want, p->size, n, "one of a team");
        spmv_free(ctx[t], memory[t]);
        spmv_context_destroy(ctx[t]);
        free(got[t]);
    }
    support_free(in, want);
}

static void statuses(void **state)
{
    spmv_context *ctx = *state;
    double x[2] = {1, 2};
    void *memory = support_upload(ctx, x, sizeof x);
    assert_fails(ctx, spmv_scan(ctx, SPMV_INCLUSIVE, SPMV_ADD, SPMV_F64, memory, memory, -1), SPMV_ERROR_ARGUMENT,
                 "n = -1");
    assert_fails(ctx, spmv_scan(ctx, SPMV_INCLUSIVE, SPMV_ADD, SPMV_F64, NULL, memory, 2), SPMV_ERROR_ARGUMENT,
                 "in is NULL");
    assert_fails(ctx, spmv_scan(ctx, SPMV_INCLUSIVE, SPMV_ADD, SPMV_F64, memory, NULL, 2), SPMV_ERROR_ARGUMENT,
                 "out is NULL");
    assert_fails(ctx, spmv_map_scan(ctx, SPMV_MAP_SQRT, SPMV_INCLUSIVE, SPMV_ADD, SPMV_I64, memory, memory, 2),
                 SPMV_ERROR_TYPE, "sqrt");
    assert_fails(ctx, spmv_map_scan(ctx, SPMV_MAP_ABS, SPMV_INCLUSIVE, (spmv_op)31, SPMV_F64, memory, memory, 2),
                 SPMV_ERROR_TYPE, "f64");
    assert_fails(ctx, spmv_map_scan(ctx, SPMV_MAP_ABS, SPMV_INCLUSIVE, SPMV_ADD, SPMV_F64, memory, memory, -1),
                 SPMV_ERROR_ARGUMENT, "n = -1");
    assert_fails(ctx, spmv_map_scan(ctx, SPMV_MAP_ABS, SPMV_INCLUSIVE, SPMV_ADD, SPMV_F64, NULL, memory, 2),
                 SPMV_ERROR_ARGUMENT, "in is NULL");
    assert_fails(ctx, spmv_scan(ctx, (spmv_scan_kind)2, SPMV_ADD, SPMV_F64, memory, memory, 2), SPMV_ERROR_ARGUMENT,
                 "2 is not a kind");
    assert_fails(ctx, spmv_scan(ctx, SPMV_INCLUSIVE, (spmv_op)31, SPMV_F64, memory, memory, 2), SPMV_ERROR_TYPE, "f64");
    assert_fails(ctx, spmv_scan(ctx, SPMV_INCLUSIVE, SPMV_ADD, (spmv_type)-1, memory, memory, 2), SPMV_ERROR_TYPE,
                 "add");
    assert_ok(ctx, spmv_scan(ctx, SPMV_EXCLUSIVE, SPMV_ADD, SPMV_F64, NULL, NULL, 0));
    assert_holds(ctx, memory, x, sizeof x);
    spmv_free(ctx, memory);
}

/* "brief": every operator and type, both kinds, on several tiles (of up to 9216 elements). */
static void each_kernel(void **state)
{
    spmv_context *ctx = *state;
    FOR_PAIRS(p)
    check_size(ctx, p, 3 * 9216 + 77);
}

SUPPORT_MAIN_OR_BRIEF((with_context(each_kernel)), with_context(lectures),
                      with_context(identity_begins_an_exclusive_scan), with_context(negative_zero_stays),
                      with_context(order_of_operands), with_context(integers_wrap), with_context(nan_stays),
                      with_context(every_pair_at_the_seams), cmocka_unit_test(same_bits_for_any_team),
                      with_context(rounding_stays_in_its_bound), with_context(map_scan_is_map_then_scan),
                      with_context(map_scan_by_hand), with_context(map_scan_of_many),
                      cmocka_unit_test(large_results_have_the_same_bits), cmocka_unit_test(settings_of_the_caller_stay),
                      cmocka_unit_test(inside_a_team_of_the_caller), with_context(statuses))

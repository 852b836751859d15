/* Operators on tuples: linear recurrences and polynomials by affine maps, the maximum segment sum;
 * by scan, segmented scan, reduce and segmented reduce. All values are whole numbers that f64 holds
 * exactly, so results are compared for equality.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>

#include "tests/support/support_pairs.h"

/* Scans (kind 0, 1) or reduces (kind 2) a host array of a pair; the caller frees the result. */
enum { REDUCE = 2 };
static void *compute(spmv_context *ctx, int kind, const struct pair *p, const void *in, int64_t n)
{
    const int64_t bytes = (kind == REDUCE ? 1 : n) * p->size;
    void *from = support_upload(ctx, in, n * p->size), *to = guarded_result(ctx, bytes);
    if (kind == REDUCE)
        assert_ok(ctx, spmv_reduce(ctx, p->op, p->type, from, to, n));
    else
        assert_ok(ctx, spmv_scan(ctx, (spmv_scan_kind)kind, p->op, p->type, from, to, n));
    spmv_free(ctx, from);
    return take_result(ctx, to, bytes, p->name);
}

static const struct pair *compose(void)
{
    return pair_of(SPMV_COMPOSE, SPMV_AFFINE_F64);
}

static const struct pair *maxsum(void)
{
    return pair_of(SPMV_MAXSUM, SPMV_SEGSUM_F64);
}

/* ------------------------------------------------------------- affine maps */

/* x_i = a_i x_{i-1} + b_i, x_{-1} = 3, by hand: 2 3 + 1 = 7, -7 + 4 = -3, 0 + 5 = 5, 3 5 - 2 =
 * 13. */
static void recurrence_by_hand(void **state)
{
    spmv_context *ctx = *state;
    const spmv_affine_f64 map[] = {{2, 1}, {-1, 4}, {0, 5}, {3, -2}};
    const double want[] = {7, -3, 5, 13};
    spmv_affine_f64 *got = compute(ctx, SPMV_INCLUSIVE, compose(), map, 4);
    spmv_affine_f64 *before = compute(ctx, SPMV_EXCLUSIVE, compose(), map, 4);
    for (int i = 0; i < 4; i++) {
        assert_true(got[i].a * 3 + got[i].b == want[i]);
        assert_true(before[i].a * 3 + before[i].b == (i == 0 ? 3 : want[i - 1]));
    }
    assert_true(before[0].a == 1 && before[0].b == 0);
    support_free(got, before);
}

/* A recurrence of two terms, like Fibonacci's, split into two recurrences of one: with d_i = x_i -
 * c x_{i-1}, x_i = (c + e) x_{i-1} - c e x_{i-2} is d_i = e d_{i-1}, x_i = c x_{i-1} + d_i. Here c
 * = 1, e = -1 and the source s is whole numbers, so values stay small: x_i = x_{i-2} + s_i, a sum
 * of every second element. */
static void second_order_by_two_scans(void **state)
{
    spmv_context *ctx = *state;
    FOR_SEAM_SIZES(n)
    {
        uint64_t seed = 41 + (uint64_t)n;
        spmv_affine_f64 *step = host_array(n * (int64_t)sizeof *step);
        double *source = host_array(n * (int64_t)sizeof *source);
        for (int64_t i = 0; i < n; i++) {
            source[i] = (double)(int)(support_random(&seed) % 17) - 8;
            step[i] = (spmv_affine_f64){-1, source[i]};
        }
        spmv_affine_f64 *d = compute(ctx, SPMV_INCLUSIVE, compose(), step, n);
        for (int64_t i = 0; i < n; i++)
            step[i] = (spmv_affine_f64){1, d[i].b};
        spmv_affine_f64 *x = compute(ctx, SPMV_INCLUSIVE, compose(), step, n);
        double before = 0, two_before = 0;
        for (int64_t i = 0; i < n; i++) {
            const double want = two_before + source[i];
            if (x[i].b != want)
                fail_msg("n = %lld: x_%lld is %g instead of %g", (long long)n, (long long)i, x[i].b, want);
            two_before = before;
            before = want;
        }
        support_free(step, source, d, x);
    }
}

/* Factors that double, change the sign or reset to 0: every step depends on the one before it. */
static void recurrence_at_the_seams(void **state)
{
    spmv_context *ctx = *state;
    FOR_SEAM_SIZES(n)
    {
        uint64_t seed = 43 + (uint64_t)n;
        spmv_affine_f64 *map = host_array(n * (int64_t)sizeof *map);
        for (int64_t i = 0; i < n; i++) {
            const uint64_t r = support_random(&seed) >> 32;
            map[i] = (spmv_affine_f64){r % 23 == 0 ? 0 : r % 2 ? 2 : -1, (double)(int)(r / 64 % 9) - 4};
            if (i % 20 == 19) /* the factors in between are at most 2^20 */
                map[i].a = 0;
        }
        spmv_affine_f64 *got = compute(ctx, SPMV_INCLUSIVE, compose(), map, n);
        double x = 0;
        for (int64_t i = 0; i < n; i++) {
            x = map[i].a * x + map[i].b;
            if (got[i].b != x)
                fail_msg("n = %lld: x_%lld is %g instead of %g", (long long)n, (long long)i, got[i].b, x);
        }
        support_free(map, got);
    }
}

/* p(x) = c_0 x^(n-1) + ... + c_{n-1}: each map is v -> x v + c_i. At x = -1 and 1 for every length,
 * and at x = 3 for one length with a known value, against the sum of powers. */
static void polynomials(void **state)
{
    spmv_context *ctx = *state;
    FOR_SEAM_SIZES(n)
    {
        for (int x = -1; x <= 1; x += 2) {
            uint64_t seed = 47 + (uint64_t)n;
            spmv_affine_f64 *map = host_array(n * (int64_t)sizeof *map);
            double naive = 0;
            for (int64_t i = 0; i < n; i++) {
                map[i] = (spmv_affine_f64){x, (double)(int)(support_random(&seed) % 1001) - 500};
                naive += (n - 1 - i) % 2 ? x * map[i].b : map[i].b;
            }
            spmv_affine_f64 *got = compute(ctx, REDUCE, compose(), map, n);
            assert_true(got->b == naive);
            support_free(map, got);
        }
    }
    spmv_affine_f64 cubes[30];
    double naive = 0, power = 1;
    for (int i = 29; i >= 0; i--, power *= 3) {
        cubes[i] = (spmv_affine_f64){3, i % 5 - 2};
        naive += cubes[i].b * power;
    }
    spmv_affine_f64 *got = compute(ctx, REDUCE, compose(), cubes, 30);
    assert_true(got->b == naive && got->a == power);
    free(got);
}

/* --------------------------------------------------- maximum segment sum */

static spmv_segsum_f64 single(double x, bool empty_counts)
{
    const double best = empty_counts && x < 0 ? 0 : x;
    return (spmv_segsum_f64){x, best, best, best};
}

/* Bentley's example: 59 + 26 - 53 + 58 + 97 = 187. */
static void maximum_by_hand(void **state)
{
    spmv_context *ctx = *state;
    static const double x[] = {31, -41, 59, 26, -53, 58, 97, -93, -23, 84};
    static const double best[] = {31, 31, 59, 85, 85, 90, 187, 187, 187, 187};
    spmv_segsum_f64 in[10];
    for (int i = 0; i < 10; i++)
        in[i] = single(x[i], false);
    spmv_segsum_f64 *all = compute(ctx, REDUCE, maxsum(), in, 10);
    assert_true(all->sum == 145 && all->best == 187 && all->prefix == 177 && all->suffix == 155);
    spmv_segsum_f64 *so_far = compute(ctx, SPMV_INCLUSIVE, maxsum(), in, 10);
    for (int i = 0; i < 10; i++)
        assert_true(so_far[i].best == best[i]);
    support_free(all, so_far);
    all = compute(ctx, REDUCE, maxsum(), NULL, 0);
    assert_true(all->sum == 0 && all->best == -(double)INFINITY);
    free(all);
    const double negative[] = {-3, -1, -2};
    for (int empty = 0; empty < 2; empty++) {
        for (int i = 0; i < 3; i++)
            in[i] = single(negative[i], empty != 0);
        all = compute(ctx, REDUCE, maxsum(), in, 3);
        assert_true(all->best == (empty ? 0 : -1));
        free(all);
    }
}

/* Tries all segments of a short array. */
static void maximum_against_brute_force(void **state)
{
    spmv_context *ctx = *state;
    uint64_t seed = 53;
    for (int64_t n = 1; n <= 700; n = n * 3 / 2 + 1) {
        spmv_segsum_f64 in[700];
        for (int64_t i = 0; i < n; i++)
            in[i] = single((double)(int)(support_random(&seed) % 201) - 100, false);
        spmv_segsum_f64 want = {0, -INFINITY, -INFINITY, -INFINITY};
        for (int64_t i = 0; i < n; i++) {
            double sum = 0;
            for (int64_t j = i; j < n; j++) {
                sum += in[j].sum;
                want.best = fmax(want.best, sum);
                if (i == 0)
                    want.prefix = fmax(want.prefix, sum);
            }
            want.suffix = fmax(want.suffix, sum);
            if (i == 0)
                want.sum = sum;
        }
        spmv_segsum_f64 *got = compute(ctx, REDUCE, maxsum(), in, n);
        assert_same(got, &want, sizeof want, 1, "maximum segment sum");
        free(got);
    }
}

/* Long arrays against Kadane's loop, at every element. */
static void maximum_at_the_seams(void **state)
{
    spmv_context *ctx = *state;
    FOR_SEAM_SIZES(n)
    {
        uint64_t seed = 59 + (uint64_t)n;
        spmv_segsum_f64 *in = host_array(n * (int64_t)sizeof *in);
        for (int64_t i = 0; i < n; i++)
            in[i] = single((double)(int)(support_random(&seed) % 201) - 101, false);
        spmv_segsum_f64 *got = compute(ctx, SPMV_INCLUSIVE, maxsum(), in, n);
        double best = -INFINITY, here = -INFINITY;
        for (int64_t i = 0; i < n; i++) {
            here = fmax(here, 0) + in[i].sum;
            best = fmax(best, here);
            if (got[i].best != best || got[i].suffix != here)
                fail_msg("n = %lld: best up to %lld is %g instead of %g", (long long)n, (long long)i, got[i].best,
                         best);
        }
        support_free(in, got);
    }
}

/* Comparisons must not drop a NaN. */
static void nan_stays(void **state)
{
    spmv_context *ctx = *state;
    spmv_segsum_f64 in[100];
    for (int i = 0; i < 100; i++)
        in[i] = single(i == 40 ? (double)NAN : i % 7 - 3, false);
    spmv_segsum_f64 *got = compute(ctx, REDUCE, maxsum(), in, 100);
    assert_true(isnan(got->sum) && isnan(got->best) && isnan(got->prefix) && isnan(got->suffix));
    free(got);
}

/* ---------------------------------------------------------------- other primitives */

/* Gather and scatter take tuples; primitives for numbers refuse them. */
static void gather_scatter_fill(void **state)
{
    spmv_context *ctx = *state;
    enum { N = 1000 };
    const struct pair *const both[] = {compose(), maxsum()};
    for (int k = 0; k < 2; k++) {
        const struct pair *const p = both[k];
        const size_t size = (size_t)p->size;
        void *in = pair_values(p, N, false, 61), *want = host_array(N * p->size);
        int32_t index[N];
        /* 387 and 1000 are coprime. */
        for (int i = 0; i < N; i++) {
            index[i] = i * 387 % N;
            memcpy(element_out(want, size, i), element(in, size, index[i]), size);
        }
        void *from = support_upload(ctx, in, N * p->size), *at = support_upload(ctx, index, sizeof index);
        void *to = guarded_result(ctx, N * p->size), *back = guarded_result(ctx, N * p->size);
        assert_ok(ctx, spmv_gather(ctx, p->type, from, N, at, 32, to, N));
        assert_ok(ctx, spmv_scatter(ctx, p->type, to, at, 32, back, N, N));
        void *got = take_result(ctx, to, N * p->size, "gather");
        assert_same(got, want, p->size, N, "gather");
        free(got);
        got = take_result(ctx, back, N * p->size, "scatter");
        assert_same(got, in, p->size, N, "scatter");
        free(got);
        assert_fails(ctx, spmv_map_index(ctx, p->type, in, NULL, from, N), SPMV_ERROR_TYPE, "no sums");
        assert_fails(ctx, spmv_map(ctx, SPMV_MAP_COPY, p->type, from, from, N), SPMV_ERROR_TYPE, p->name + 8);
        support_free_in(ctx, from, at);
        support_free(in, want);
    }
}

/* Empty segments get the identity, the others the result of reduce. */
static void segments(void **state)
{
    spmv_context *ctx = *state;
    const int64_t n = 3 * HOST_TILE + 7;
    const int64_t starts[] = {0, 0, 5, HOST_TILE, HOST_TILE, HOST_TILE + 1, n, n};
    enum { COUNT = 7 };
    const spmv_affine_f64 *in = pair_values(compose(), n, true, 67);
    spmv_affine_f64 want[COUNT];
    for (int s = 0; s < COUNT; s++)
        oracle_reduce(compose(), in, starts[s], starts[s + 1], &want[s]);
    assert_true(want[0].a == 1 && want[0].b == 0);
    void *from = support_upload(ctx, in, n * (int64_t)sizeof *in), *heads = support_upload(ctx, starts, sizeof starts);
    void *to = guarded_result(ctx, sizeof want);
    const spmv_segments cut = {.form = SPMV_SEGMENT_OFFSETS, .heads = heads, .bits = 64, .count = COUNT};
    assert_ok(ctx, spmv_segreduce(ctx, SPMV_COMPOSE, SPMV_AFFINE_F64, &cut, from, to, n));
    void *got = take_result(ctx, to, sizeof want, "segreduce");
    assert_same(got, want, sizeof want[0], COUNT, "segreduce");
    free(got);
    support_free_in(ctx, from, heads);
    free((void *)in);
}

static void statuses(void **state)
{
    spmv_context *ctx = *state;
    spmv_segsum_f64 x = single(1, false);
    void *m = support_upload(ctx, &x, sizeof x);
    assert_fails(ctx, spmv_reduce(ctx, SPMV_COMPOSE, SPMV_SEGSUM_F64, m, m, 1), SPMV_ERROR_TYPE, "segsum_f64");
    assert_fails(ctx, spmv_scan(ctx, SPMV_INCLUSIVE, SPMV_MAXSUM, SPMV_AFFINE_F64, m, m, 1), SPMV_ERROR_TYPE, "maxsum");
    assert_fails(ctx, spmv_reduce(ctx, SPMV_ADD, SPMV_AFFINE_F64, m, m, 1), SPMV_ERROR_TYPE, "affine_f64");
    assert_fails(ctx, spmv_reduce(ctx, SPMV_COMPOSE, SPMV_F64, m, m, 1), SPMV_ERROR_TYPE, "compose");
    assert_false(spmv_op_commutes(SPMV_COMPOSE) || spmv_op_commutes(SPMV_MAXSUM));
    spmv_free(ctx, m);
}

SUPPORT_MAIN(with_context(recurrence_by_hand), with_context(second_order_by_two_scans),
             with_context(recurrence_at_the_seams), with_context(polynomials), with_context(maximum_by_hand),
             with_context(maximum_against_brute_force), with_context(maximum_at_the_seams), with_context(nan_stays),
             with_context(gather_scatter_fill), with_context(segments), with_context(statuses))

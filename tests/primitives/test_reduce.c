/* Reduce: the examples of the lectures, every operator and type at the seams, the identity for an
 * empty array, operand order, wrap-around, NaN, the same bits for any number of threads, scratch
 * sizes, statuses.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>

#include "core/backend.h"
#include "tests/support/support_pairs.h"

/* Reduces a host array; out: one element on the host. */
static void reduce(spmv_context *ctx, const struct pair *p, const void *in, int64_t n, void *out)
{
    void *from = support_upload(ctx, in, n * p->size), *to = guarded_result(ctx, p->size);
    assert_ok(ctx, spmv_reduce(ctx, p->op, p->type, from, to, n));
    void *result = take_result(ctx, to, p->size, p->name);
    memcpy(out, result, (size_t)p->size);
    free(result);
    spmv_free(ctx, from);
}

/* in: LIST(...) */
#define CHECK_REDUCE(op, type, T, in, want)                                                                            \
    do {                                                                                                               \
        const T in_[] = in, want_ = want;                                                                              \
        T got_;                                                                                                        \
        reduce(ctx, pair_of(op, type), in_, (int64_t)(sizeof in_ / sizeof(T)), &got_);                                 \
        assert_same(&got_, &want_, sizeof(T), 1, #op " " #type);                                                       \
    } while (0)

static void lectures(void **state)
{
    spmv_context *ctx = *state;
    CHECK_REDUCE(SPMV_ADD, SPMV_I32, int32_t, LIST(1, 2, 3, 2, 3, 1, 4, 5), 21);
    CHECK_REDUCE(SPMV_ADD, SPMV_F64, double, LIST(3, 1, 7, 0, 4, 1, 6, 3), 25);
    CHECK_REDUCE(SPMV_MAX, SPMV_I64, int64_t, LIST(3, 5, 2, 7, 28, 4, 3, 0, 8, 1), 28);
    CHECK_REDUCE(SPMV_MIN, SPMV_F32, float, LIST(3, 5, 2, 7, 28, 4, 3, 0, 8, 1), 0);
    CHECK_REDUCE(SPMV_ADD, SPMV_F32, float, LIST(3, 5, 2, 7, 28, 4, 3, 0, 8, 1), 61);
    CHECK_REDUCE(SPMV_MUL, SPMV_I64, int64_t, LIST(1, 2, 3, 2, 3, 1, 4, 5), 720);
}

#define CHECK_NOTHING(op, type, T, want)                                                                               \
    do {                                                                                                               \
        const T want_ = want;                                                                                          \
        T got_;                                                                                                        \
        reduce(ctx, pair_of(op, type), NULL, 0, &got_);                                                                \
        assert_same(&got_, &want_, sizeof(T), 1, "nothing " #op " " #type);                                            \
    } while (0)

static void nothing_gives_the_identity(void **state)
{
    spmv_context *ctx = *state;
    CHECK_NOTHING(SPMV_ADD, SPMV_F64, double, 0);
    CHECK_NOTHING(SPMV_MUL, SPMV_F32, float, 1);
    CHECK_NOTHING(SPMV_MUL, SPMV_I32, int32_t, 1);
    CHECK_NOTHING(SPMV_MIN, SPMV_I32, int32_t, INT32_MAX);
    CHECK_NOTHING(SPMV_MIN, SPMV_I64, int64_t, INT64_MAX);
    CHECK_NOTHING(SPMV_MIN, SPMV_F32, float, INFINITY);
    CHECK_NOTHING(SPMV_MIN, SPMV_F64, double, (double)INFINITY);
    CHECK_NOTHING(SPMV_MAX, SPMV_I32, int32_t, INT32_MIN);
    CHECK_NOTHING(SPMV_MAX, SPMV_I64, int64_t, INT64_MIN);
    CHECK_NOTHING(SPMV_MAX, SPMV_F64, double, -(double)INFINITY);
    CHECK_NOTHING(SPMV_LAST, SPMV_I64, int64_t, 0);
}

static void order_of_operands(void **state)
{
    spmv_context *ctx = *state;
    CHECK_REDUCE(SPMV_LAST, SPMV_I32, int32_t, LIST(3, 0, 5, 0, 0), 5);
    CHECK_REDUCE(SPMV_LAST, SPMV_F64, double, LIST(9, 8, 7, 6, 5, 4, 3, 2, 1, 0), 1);
    /* The last nonzero of a long array of zeros; the nonzero before it must not be the result. */
    const int64_t n = 5 * HOST_TILE + 3;
    int64_t *x = host_array(n * 8), got;
    for (int64_t at = 1; at < n; at += 1009) {
        memset(x, 0, (size_t)n * 8);
        x[at - 1] = 77;
        x[at] = at;
        reduce(ctx, pair_of(SPMV_LAST, SPMV_I64), x, n, &got);
        assert_int_equal(got, at);
    }
    free(x);
}

static void integers_wrap(void **state)
{
    spmv_context *ctx = *state;
    CHECK_REDUCE(SPMV_ADD, SPMV_I32, int32_t, LIST(INT32_MAX, INT32_MAX, 3), 1);
    CHECK_REDUCE(SPMV_ADD, SPMV_I64, int64_t, LIST(INT64_MAX, 1), INT64_MIN);
    CHECK_REDUCE(SPMV_MUL, SPMV_I32, int32_t, LIST(65537, 65537), 131073);
    CHECK_REDUCE(SPMV_MUL, SPMV_I64, int64_t, LIST(INT64_MIN, -1), INT64_MIN);
}

/* A NaN anywhere gives NaN, as the left operand and as the right one. */
static void nan_wins(void **state)
{
    spmv_context *ctx = *state;
    const spmv_op ops[] = {SPMV_MIN, SPMV_MAX};
    const int64_t n = 3 * HOST_TILE + 7, places[] = {0, 1, 8, 9, HOST_TILE - 1, HOST_TILE, n - 1};
    for (int k = 0; k < 2; k++) {
        for (size_t at = 0; at < sizeof places / sizeof places[0]; at++) {
            float *x = pair_values(pair_of(ops[k], SPMV_F32), n, false, 3), got = 0;
            x[places[at]] = NAN;
            reduce(ctx, pair_of(ops[k], SPMV_F32), x, n, &got);
            if (!isnan(got))
                fail_msg("%s with NaN at %lld: %g", spmv_op_name(ops[k]), (long long)places[at], (double)got);
            free(x);
        }
    }
}

static void every_pair_at_the_seams(void **state)
{
    spmv_context *ctx = *state;
    _Alignas(16) char want[32], got[32];
    FOR_PAIRS(p)
    FOR_SEAM_SIZES(n)
    {
        void *in = pair_values(p, n, true, 41 + (uint64_t)n);
        oracle_reduce(p, in, 0, n, want);
        reduce(ctx, p, in, n, got);
        if (memcmp(got, want, (size_t)p->size) != 0)
            fail_msg("%s, n = %lld: another result", p->name, (long long)n);
        free(in);
    }
}

static void same_bits_for_any_team(void **state)
{
    (void)state;
    _Alignas(16) char first[32], got[32];
    const int64_t n = 40 * HOST_TILE + 13;
    FOR_PAIRS(p)
    {
        void *in = pair_values(p, n, false, 43);
        for (int t = 0; t < teams(); t++) {
            spmv_context *ctx = support_context_on(support_backend, team_sizes[t]);
            reduce(ctx, p, in, n, t == 0 ? first : got);
            if (t > 0)
                assert_same(got, first, p->size, 1, p->name);
            spmv_context_destroy(ctx);
        }
        free(in);
    }
}

static void rounding_stays_in_its_bound(void **state)
{
    spmv_context *ctx = *state;
    const int64_t n = 10 * HOST_TILE + 13;
    double *x = pair_values(pair_of(SPMV_ADD, SPMV_F64), n, false, 47), got = 0;
    reduce(ctx, pair_of(SPMV_ADD, SPMV_F64), x, n, &got);
    check_sum(bounded_sum(x, n), got, "auto");
    free(x);
}

/* Scratch sizes beyond 32 bits, without allocating the arrays: 8 bytes for each tile. */
static void scratch_of_large_arrays(void **state)
{
    if (support_backend != SPMV_BACKEND_OMP)
        skip();
    spmv_context *ctx = *state;
    const int64_t n = (int64_t)1 << 50, tiles = n / HOST_TILE;
    const spmv_segments segments = {.form = SPMV_SEGMENT_OFFSETS, .bits = 64, .count = n};
    assert_true(reduce_scratch_omp(ctx, SPMV_F64, n) == 8 * tiles);
    assert_true(reduce_scratch_omp(ctx, SPMV_F32, n + 1) == 4 * (tiles + 1));
    assert_true(scan_scratch_omp(ctx, SPMV_I64, n) == 8 * tiles);
    assert_true(segscan_scratch_omp(ctx, SPMV_F64, &segments, n) >= 2 * 8 * tiles);
    assert_true(segreduce_scratch_omp(ctx, SPMV_F64, &segments, n) >= 2 * 8 * tiles);
}

static void statuses(void **state)
{
    spmv_context *ctx = *state;
    double x[2] = {1, 2};
    void *in = support_upload(ctx, x, sizeof x), *out = guarded_result(ctx, 8);
    assert_fails(ctx, spmv_reduce(ctx, SPMV_ADD, SPMV_F64, in, out, -7), SPMV_ERROR_ARGUMENT, "n = -7");
    assert_fails(ctx, spmv_reduce(ctx, SPMV_ADD, SPMV_F64, NULL, out, 2), SPMV_ERROR_ARGUMENT, "in is NULL");
    assert_fails(ctx, spmv_reduce(ctx, SPMV_ADD, SPMV_F64, in, NULL, 2), SPMV_ERROR_ARGUMENT, "out is NULL");
    assert_fails(ctx, spmv_reduce(ctx, SPMV_ADD, SPMV_F64, NULL, NULL, 0), SPMV_ERROR_ARGUMENT, "out is NULL");
    assert_fails(ctx, spmv_reduce(ctx, (spmv_op)9, SPMV_F64, in, out, 2), SPMV_ERROR_TYPE, "f64");
    assert_fails(ctx, spmv_reduce(ctx, SPMV_ADD, SPMV_TYPE_DEFAULT, in, out, 2), SPMV_ERROR_TYPE, "add");
    uint8_t *untouched = take_result(ctx, out, 8, "statuses");
    for (int b = 0; b < 8; b++)
        assert_int_equal(untouched[b], GUARD_BYTE);
    free(untouched);
    spmv_free(ctx, in);
}

SUPPORT_MAIN(with_context(lectures), with_context(nothing_gives_the_identity), with_context(order_of_operands),
             with_context(integers_wrap), with_context(nan_wins), with_context(every_pair_at_the_seams),
             cmocka_unit_test(same_bits_for_any_team), with_context(rounding_stays_in_its_bound),
             with_context(scratch_of_large_arrays), with_context(statuses))

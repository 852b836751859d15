/* Segmented reduce: the example of the lectures, every operator and type at the seams, heads at
 * every position near a seam, many empty segments, operand order, the same bits for any number of
 * threads, statuses. The check of positions is tested with the segmented scan.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>

#include "tests/support/support_segments.h"
#include "tests/support/support_slow.h"

static void *segreduce(spmv_context *ctx, const struct pair *p, const spmv_segments *segments, const void *in,
                       int64_t n)
{
    const int64_t bytes = segments->count * p->size;
    void *from = support_upload(ctx, in, n * p->size), *to = guarded_result(ctx, bytes);
    assert_ok(ctx, spmv_segreduce(ctx, p->op, p->type, segments, from, to, n));
    spmv_free(ctx, from);
    return take_result(ctx, to, bytes, p->name);
}

static void check_cut(spmv_context *ctx, const struct pair *p, const struct cut *cut, const char *what)
{
    void *in = pair_values(p, cut->n, true, 107), *want = host_array(cut->count * p->size);
    for (int64_t s = 0; s < cut->count; s++)
        oracle_reduce(p, in, cut->positions[s], cut->positions[s + 1], element_out(want, (size_t)p->size, s));
    for (int f = 0; f < POSITION_FORMS; f++) {
        const spmv_segments segments = upload_cut(ctx, cut, segment_forms[f].form, segment_forms[f].bits);
        void *got = segreduce(ctx, p, &segments, in, cut->n);
        char text[128];
        snprintf(text, sizeof text, "%s, %s, form %d of %d bits", what, p->name, (int)segments.form, segments.bits);
        check_segments(ctx, &segments, got, want, p->size, cut->count, text);
    }
    support_free(in, want);
}

static void lectures(void **state)
{
    spmv_context *ctx = *state;
    const int64_t positions[] = {0, 3, 9};
    struct cut cut = cut_at(positions, 3, 12);
    const double in[] = {1, 2, 1, 3, 1, 1, 3, 3, 2, 1, 2, 2}, sums[] = {4, 13, 5};
    const int32_t whole[] = {1, 2, 1, 3, 1, 1, 3, 3, 2, 1, 2, 2}, most[] = {2, 3, 2};
    for (int f = 0; f < POSITION_FORMS; f++) {
        const spmv_segments segments = upload_cut(ctx, &cut, segment_forms[f].form, segment_forms[f].bits);
        void *got = segreduce(ctx, pair_of(SPMV_ADD, SPMV_F64), &segments, in, 12);
        assert_same(got, sums, 8, 3, "sums");
        free(got);
        got = segreduce(ctx, pair_of(SPMV_MAX, SPMV_I32), &segments, whole, 12);
        check_segments(ctx, &segments, got, most, 4, 3, "largest");
    }
    free_cut(&cut);
}

/* positions 0 0 2 5 5 of 5 elements: empty segments at the start, in the middle and at the end */
#define CHECK_EMPTY(op, type, T, in, want)                                                                             \
    do {                                                                                                               \
        const T in_[5] = in, want_[5] = want;                                                                          \
        void *got_ = segreduce(ctx, pair_of(op, type), &segments, in_, 5);                                             \
        assert_same(got_, want_, sizeof(T), 5, #op " " #type);                                                         \
        free(got_);                                                                                                    \
    } while (0)

static void empty_segments_give_the_identity(void **state)
{
    spmv_context *ctx = *state;
    const int64_t positions[] = {0, 0, 2, 5, 5};
    const spmv_segments segments = segments_at(ctx, positions, 5, 5, SPMV_SEGMENT_STARTS, 64);
    CHECK_EMPTY(SPMV_ADD, SPMV_F64, double, LIST(1, 2, 3, 4, 5), LIST(0, 3, 12, 0, 0));
    CHECK_EMPTY(SPMV_MUL, SPMV_F32, float, LIST(1, 2, 3, 4, 5), LIST(1, 2, 60, 1, 1));
    CHECK_EMPTY(SPMV_MIN, SPMV_F64, double, LIST(1, 2, 3, 4, 5), LIST(INFINITY, 1, 3, INFINITY, INFINITY));
    CHECK_EMPTY(SPMV_MAX, SPMV_I32, int32_t, LIST(1, 2, 3, 4, 5), LIST(INT32_MIN, 2, 5, INT32_MIN, INT32_MIN));
    CHECK_EMPTY(SPMV_MIN, SPMV_I64, int64_t, LIST(1, 2, 3, 4, 5), LIST(INT64_MAX, 1, 3, INT64_MAX, INT64_MAX));
    CHECK_EMPTY(SPMV_LAST, SPMV_I64, int64_t, LIST(8, 0, 0, 6, 0), LIST(0, 8, 6, 0, 0));
    CHECK_EMPTY(SPMV_ADD, SPMV_I32, int32_t, LIST(INT32_MAX, 1, INT32_MIN, -1, 0), LIST(0, INT32_MIN, INT32_MAX, 0, 0));
    free_segments(ctx, &segments);
}

static void nan_stays_in_its_segment(void **state)
{
    spmv_context *ctx = *state;
    const int64_t positions[] = {0, 2, 4};
    const spmv_segments segments = segments_at(ctx, positions, 3, 6, SPMV_SEGMENT_OFFSETS, 32);
    const float in[] = {1, NAN, 3, 2, NAN, 5};
    float *got = segreduce(ctx, pair_of(SPMV_MAX, SPMV_F32), &segments, in, 6);
    assert_true(isnan(got[0]) && got[1] == 3 && isnan(got[2]));
    free(got);
    free_segments(ctx, &segments);
}

/* Segments without any element: the positions are all 0 and may be missing. */
static void no_elements(void **state)
{
    spmv_context *ctx = *state;
    const struct pair *p = pair_of(SPMV_MAX, SPMV_F64);
    const int64_t positions[] = {0, 0, 0};
    spmv_segments segments = segments_at(ctx, positions, 3, 0, SPMV_SEGMENT_OFFSETS, 64);
    const void *heads = segments.heads;
    const double want[] = {-(double)INFINITY, -(double)INFINITY, -(double)INFINITY};
    for (int missing = 0; missing < 2; missing++) {
        segments.heads = missing ? NULL : heads;
        void *got = segreduce(ctx, p, &segments, NULL, 0);
        assert_same(got, want, 8, 3, "no elements");
        free(got);
    }
    segments = (spmv_segments){SPMV_SEGMENT_STARTS, NULL, 32, 0};
    assert_ok(ctx, spmv_segreduce(ctx, SPMV_MAX, SPMV_F64, &segments, NULL, NULL, 0));
    segments.heads = heads;
    free_segments(ctx, &segments);
}

static void every_pair_at_the_seams(void **state)
{
    spmv_context *ctx = *state;
    FOR_PAIRS(p)
    {
        FOR_SEAM_SIZES(n)
        {
            if (SLOW && (p - pairs + n) % 2 != 0) /* every other size; the others for the next pair */
                continue;
            if (SLOW && n > 100000 && p->op != SPMV_ADD && p->op != SPMV_LAST)
                continue;
            struct cut cut = make_cut(n % 2 ? CUT_SHORT : CUT_LONG, n, 109 + (uint64_t)n);
            check_cut(ctx, p, &cut, "seams");
            free_cut(&cut);
        }
    }
}

/* A million empty segments around one of 100,000 elements. */
static void a_million_empty_segments(void **state)
{
    spmv_context *ctx = *state;
    const int64_t n = 100000, count = SLOW ? 200001 : 1000001;
    int64_t *positions = host_array(count * 8);
    for (int64_t s = 0; s < count; s++)
        positions[s] = s <= count / 2 ? 0 : n;
    struct cut cut = cut_at(positions, count, n);
    check_cut(ctx, pair_of(SPMV_ADD, SPMV_F64), &cut, "a million");
    free_cut(&cut);
    free(positions);
}

static void same_bits_for_any_team(void **state)
{
    (void)state;
    check_any_team(segreduce, true, POSITION_FORMS, 127);
}

static void statuses(void **state)
{
    spmv_context *ctx = *state;
    const double x[] = {1, 2};
    const int32_t starts[] = {0, 1};
    void *in = support_upload(ctx, x, sizeof x), *heads = support_upload(ctx, starts, sizeof starts);
    void *out = guarded_result(ctx, 16);
    const spmv_segments good = {SPMV_SEGMENT_STARTS, heads, 32, 2};
    spmv_segments bad = good;
#define SEGREDUCE(segments, in, out, n) spmv_segreduce(ctx, SPMV_ADD, SPMV_F64, segments, in, out, n)
    assert_fails(ctx, SEGREDUCE(&good, in, out, -1), SPMV_ERROR_ARGUMENT, "n = -1");
    assert_fails(ctx, SEGREDUCE(&good, NULL, out, 2), SPMV_ERROR_ARGUMENT, "in is NULL");
    assert_fails(ctx, SEGREDUCE(&good, in, NULL, 2), SPMV_ERROR_ARGUMENT, "out is NULL");
    assert_fails(ctx, SEGREDUCE(NULL, in, out, 2), SPMV_ERROR_ARGUMENT, "segments is NULL");
    bad = (spmv_segments){SPMV_SEGMENT_FLAGS, heads, 8, 2};
    assert_fails(ctx, SEGREDUCE(&bad, in, out, 2), SPMV_ERROR_ARGUMENT, "flags");
    bad = good;
    bad.heads = NULL;
    assert_fails(ctx, SEGREDUCE(&bad, in, out, 2), SPMV_ERROR_ARGUMENT, "heads is NULL");
    bad = good;
    bad.count = 0;
    assert_fails(ctx, SEGREDUCE(&bad, in, out, 2), SPMV_ERROR_SIZE, "no segment");
    bad.count = -2;
    assert_fails(ctx, SEGREDUCE(&bad, in, out, 2), SPMV_ERROR_ARGUMENT, "count = -2");
    assert_fails(ctx, spmv_segreduce(ctx, (spmv_op)31, SPMV_F64, &good, in, out, 2), SPMV_ERROR_TYPE, "f64");
    assert_fails(ctx, spmv_segreduce(ctx, SPMV_ADD, (spmv_type)31, &good, in, out, 2), SPMV_ERROR_TYPE, "add");
#undef SEGREDUCE
    uint8_t *untouched = take_result(ctx, out, 16, "statuses");
    for (int b = 0; b < 16; b++)
        assert_int_equal(untouched[b], GUARD_BYTE);
    free(untouched);
    support_free_in(ctx, in, heads);
}

/* "brief": every operator and type in every form, on several tiles. */
static void each_kernel(void **state)
{
    check_each_kernel(*state, check_cut, 141);
}

static const struct cut_test cuts = {check_cut, 113};

SUPPORT_MAIN_OR_BRIEF((with_context(each_kernel)), with_context(lectures),
                      with_context(empty_segments_give_the_identity), with_context(nan_stays_in_its_segment),
                      with_context(no_elements), with_context(every_pair_at_the_seams), with_cuts(every_cut, &cuts),
                      with_cuts(heads_around_the_seams, &cuts), with_context(a_million_empty_segments),
                      cmocka_unit_test(same_bits_for_any_team), with_context(statuses))

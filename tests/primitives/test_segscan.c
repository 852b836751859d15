/* Segmented scan: the example of the lectures in every form, every operator and type at the seams,
 * heads at every position near a seam, many empty segments, in place, operand order, the same bits
 * for any number of threads; the check of positions; statuses.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>

#include "tests/support/support_segments.h"

static void *segscan(spmv_context *ctx, spmv_scan_kind kind, const struct pair *p, const spmv_segments *segments,
                     const void *in, int64_t n, bool in_place)
{
    const int64_t bytes = n * p->size;
    void *from = support_upload(ctx, in, bytes);
    void *to = in_place ? guarded_copy(ctx, in, bytes) : guarded_result(ctx, bytes);
    assert_ok(ctx, spmv_segscan(ctx, kind, p->op, p->type, segments, in_place ? to : from, to, n));
    spmv_free(ctx, from);
    return take_result(ctx, to, bytes, p->name);
}

/* One cut and one pair, inclusive and exclusive, in every form; in place alternates. */
static void check_cut(spmv_context *ctx, const struct pair *p, const struct cut *cut, const char *what)
{
    void *in = pair_values(p, cut->n, true, 83), *want = host_array(cut->n * p->size);
    for (int kind = SPMV_INCLUSIVE; kind <= SPMV_EXCLUSIVE; kind++) {
        oracle_scan(p, (spmv_scan_kind)kind, cut->flags, in, want, cut->n);
        for (int f = 0; f < SEGMENT_FORMS; f++) {
            const spmv_segments segments = upload_cut(ctx, cut, segment_forms[f].form, segment_forms[f].bits);
            void *got = segscan(ctx, (spmv_scan_kind)kind, p, &segments, in, cut->n, (f + kind) % 2 != 0);
            char text[128];
            snprintf(text, sizeof text, "%s, %s, form %d of %d bits, kind %d", what, p->name, (int)segments.form,
                     segments.bits, kind);
            check_segments(ctx, &segments, got, want, p->size, cut->n, text);
        }
    }
    support_free(in, want);
}

static void lectures(void **state)
{
    spmv_context *ctx = *state;
    const struct pair *p = pair_of(SPMV_ADD, SPMV_F64);
    const double in[] = {1, 2, 1, 3, 1, 1, 3, 3, 2, 1, 2, 2};
    const double inclusive[] = {1, 3, 4, 3, 4, 5, 8, 11, 13, 1, 3, 5};
    const double exclusive[] = {0, 1, 3, 0, 3, 4, 5, 8, 11, 0, 1, 3};
    const uint8_t flags[] = {1, 0, 0, 1, 0, 0, 0, 0, 0, 1, 0, 0};
    const int32_t starts[] = {0, 3, 9};
    const int64_t offsets[] = {0, 3, 9, 12};
    const struct {
        spmv_segment_form form;
        const void *heads;
        int64_t bytes, count;
        int bits;
    } forms[] = {{SPMV_SEGMENT_FLAGS, flags, sizeof flags, 0, 8},
                 {SPMV_SEGMENT_STARTS, starts, sizeof starts, 3, 32},
                 {SPMV_SEGMENT_OFFSETS, offsets, sizeof offsets, 3, 64}};
    for (int f = 0; f < 3; f++) {
        void *heads = support_upload(ctx, forms[f].heads, forms[f].bytes);
        const spmv_segments segments = {forms[f].form, heads, forms[f].bits, forms[f].count};
        void *got = segscan(ctx, SPMV_INCLUSIVE, p, &segments, in, 12, false);
        assert_same(got, inclusive, 8, 12, "inclusive");
        free(got);
        got = segscan(ctx, SPMV_EXCLUSIVE, p, &segments, in, 12, true);
        assert_same(got, exclusive, 8, 12, "exclusive");
        free(got);
        spmv_free(ctx, heads);
    }
}

/* By hand: each segment starts again, an exclusive scan with the identity; the earlier element is
 * the left operand. */
static void segments_begin_anew(void **state)
{
    spmv_context *ctx = *state;
    const int64_t positions[] = {0, 0, 2, 5, 5};
    const spmv_segments segments = segments_at(ctx, positions, 5, 7, SPMV_SEGMENT_STARTS, 64);
    const int32_t in[] = {4, 0, 0, 7, 0, 0, 9}, last[] = {4, 4, 0, 7, 7, 0, 9};
    const int32_t least[] = {INT32_MAX, 4, INT32_MAX, 0, 0, INT32_MAX, 0};
    int32_t *got = segscan(ctx, SPMV_INCLUSIVE, pair_of(SPMV_LAST, SPMV_I32), &segments, in, 7, false);
    assert_same(got, last, 4, 7, "last");
    free(got);
    got = segscan(ctx, SPMV_EXCLUSIVE, pair_of(SPMV_MIN, SPMV_I32), &segments, in, 7, false);
    check_segments(ctx, &segments, got, least, 4, 7, "min");
}

/* A NaN or a wrapped value stays in its segment. */
static void segments_do_not_leak(void **state)
{
    spmv_context *ctx = *state;
    const int64_t positions[] = {0, 2, 4};
    const spmv_segments segments = segments_at(ctx, positions, 3, 6, SPMV_SEGMENT_OFFSETS, 32);
    const double in[] = {(double)NAN, 1, 2, 1, (double)INFINITY, 5};
    double *got = segscan(ctx, SPMV_INCLUSIVE, pair_of(SPMV_MIN, SPMV_F64), &segments, in, 6, false);
    assert_true(isnan(got[0]) && isnan(got[1]) && got[2] == 2 && got[3] == 1 && isinf(got[4]) && got[5] == 5);
    free(got);
    const int64_t wrap[] = {INT64_MAX, 1, 3, 4, -1, INT64_MIN}, want[] = {INT64_MAX, INT64_MIN, 3, 7, -1, INT64_MAX};
    int64_t *sums = segscan(ctx, SPMV_INCLUSIVE, pair_of(SPMV_ADD, SPMV_I64), &segments, wrap, 6, false);
    check_segments(ctx, &segments, sums, want, 8, 6, "wrapping sums");
}

static void every_pair_at_the_seams(void **state)
{
    spmv_context *ctx = *state;
    const int64_t sizes[] = {0, 1, 2, 31, 32, 33, HOST_TILE - 1, HOST_TILE, HOST_TILE + 1, 3 * HOST_TILE + 7};
    FOR_PAIRS(p)
    {
        for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
            if (SLOW && ((size_t)(p - pairs) + k) % 2 != 0) /* every other size; the others for the next pair */
                continue;
            struct cut cut = make_cut(k / 2 % 2 ? CUT_SHORT : CUT_LONG, sizes[k], 89 + k);
            check_cut(ctx, p, &cut, "seams");
            free_cut(&cut);
        }
    }
}

static void *inclusive(spmv_context *ctx, const struct pair *p, const spmv_segments *segments, const void *in,
                       int64_t n)
{
    return segscan(ctx, SPMV_INCLUSIVE, p, segments, in, n, false);
}

static void same_bits_for_any_team(void **state)
{
    (void)state;
    check_any_team(inclusive, false, SEGMENT_FORMS, 101);
}

/* --------------------------------------------------- the check of positions */

/* Segmented scan and segmented reduce refuse the positions with a message that contains `text`. */
static void check_refused(spmv_context *ctx, spmv_segment_form form, int bits, const int64_t *positions,
                          int64_t entries, int64_t n, const char *text)
{
    struct cut cut = {.n = n, .count = entries, .positions = (int64_t *)(uintptr_t)positions};
    spmv_segments segments = upload_cut(ctx, &cut, SPMV_SEGMENT_STARTS, bits);
    segments.form = form;
    segments.count = entries - (form == SPMV_SEGMENT_OFFSETS);
    void *in = guarded_result(ctx, n * 8), *out = guarded_result(ctx, (n + entries) * 8);
    assert_fails(ctx, spmv_segscan(ctx, SPMV_INCLUSIVE, SPMV_ADD, SPMV_F64, &segments, in, out, n), SPMV_ERROR_SIZE,
                 text);
    assert_fails(ctx, spmv_segreduce(ctx, SPMV_ADD, SPMV_F64, &segments, in, out, n), SPMV_ERROR_SIZE, text);
    uint8_t *untouched = take_result(ctx, out, 0, text);
    free(untouched);
    spmv_free(ctx, in);
    free_segments(ctx, &segments);
}

#define CHECK_REFUSED(form, n, text, positions)                                                                        \
    do {                                                                                                               \
        const int64_t positions_[] = positions;                                                                        \
        const int64_t entries_ = (int64_t)(sizeof positions_ / sizeof positions_[0]);                                  \
        check_refused(ctx, form, 32, positions_, entries_, n, text);                                                   \
        check_refused(ctx, form, 64, positions_, entries_, n, text);                                                   \
    } while (0)

static void wrong_positions_are_named(void **state)
{
    if (support_backend == SPMV_BACKEND_CUDA)
        skip(); /* CUDA does not check positions */
    spmv_context *ctx = *state;
    CHECK_REFUSED(SPMV_SEGMENT_STARTS, 9, "entry 0 is 1,", LIST(1, 3, 9));
    CHECK_REFUSED(SPMV_SEGMENT_STARTS, 9, "entry 0 is -1,", LIST(-1, 3, 9));
    CHECK_REFUSED(SPMV_SEGMENT_STARTS, 9, "entry 2 is 2, less than the 3", LIST(0, 3, 2, 1, 9));
    CHECK_REFUSED(SPMV_SEGMENT_STARTS, 9, "entry 1 is -4, less than the 0", LIST(0, -4, 2));
    CHECK_REFUSED(SPMV_SEGMENT_STARTS, 9, "entry 2 is 10, beyond n = 9", LIST(0, 9, 10, 11));
    CHECK_REFUSED(SPMV_SEGMENT_OFFSETS, 9, "entry 0 is 2,", LIST(2, 3, 9));
    CHECK_REFUSED(SPMV_SEGMENT_OFFSETS, 9, "entry 3 is 7, less than the 8", LIST(0, 3, 8, 7, 9));
    CHECK_REFUSED(SPMV_SEGMENT_OFFSETS, 9, "entry 2, the last one, is 8, must be n = 9", LIST(0, 3, 8));
    CHECK_REFUSED(SPMV_SEGMENT_OFFSETS, 9, "entry 2, the last one, is 10, must be n = 9", LIST(0, 3, 10));
    CHECK_REFUSED(SPMV_SEGMENT_OFFSETS, 9, "no segment", LIST(0));
    CHECK_REFUSED(SPMV_SEGMENT_OFFSETS, 0, "entry 1, the last one, is 1, must be n = 0", LIST(0, 1));
}

/* One wrong entry among many, in every tile and at its seams. If a later entry is wrong too, the
 * message names the first. */
static void a_wrong_position_is_found_anywhere(void **state)
{
    (void)state;
    if (support_backend == SPMV_BACKEND_CUDA)
        skip();
    spmv_context *ctx = support_context_on(support_backend, 4);
    const int64_t count = 5 * HOST_TILE + 3, n = 2 * count;
    int64_t *positions = host_array(count * 8);
    for (int64_t s = 0; s < count; s++)
        positions[s] = 2 * s;
    for (int64_t s = 1; s < count - 1; s += s % HOST_TILE < HOST_TILE - 3 ? HOST_TILE - 3 - s % HOST_TILE : 1) {
        char text[64];
        snprintf(text, sizeof text, "entry %lld is %lld, less than", (long long)s, (long long)(2 * s - 3));
        positions[s] = 2 * s - 3;
        check_refused(ctx, SPMV_SEGMENT_STARTS, 32, positions, count, n, text);
        positions[count - 1] = 1;
        check_refused(ctx, SPMV_SEGMENT_STARTS, 64, positions, count, n, text);
        positions[count - 1] = n;
        positions[s] = 2 * s;
    }
    free(positions);
    spmv_context_destroy(ctx);
}

static void statuses(void **state)
{
    spmv_context *ctx = *state;
    const double x[] = {1, 2};
    const int64_t starts[] = {0, 1};
    void *m = support_upload(ctx, x, sizeof x), *heads = support_upload(ctx, starts, sizeof starts);
    spmv_segments good = {SPMV_SEGMENT_STARTS, heads, 64, 2}, bad = good;
#define SEGSCAN(segments, in, out, n) spmv_segscan(ctx, SPMV_INCLUSIVE, SPMV_ADD, SPMV_F64, segments, in, out, n)
    assert_fails(ctx, SEGSCAN(&good, m, m, -1), SPMV_ERROR_ARGUMENT, "n = -1");
    assert_fails(ctx, SEGSCAN(&good, NULL, m, 2), SPMV_ERROR_ARGUMENT, "in is NULL");
    assert_fails(ctx, SEGSCAN(&good, m, NULL, 2), SPMV_ERROR_ARGUMENT, "out is NULL");
    assert_fails(ctx, SEGSCAN(NULL, m, m, 2), SPMV_ERROR_ARGUMENT, "segments is NULL");
    bad.heads = NULL;
    assert_fails(ctx, SEGSCAN(&bad, m, m, 2), SPMV_ERROR_ARGUMENT, "heads is NULL");
    bad = good;
    bad.bits = 8;
    assert_fails(ctx, SEGSCAN(&bad, m, m, 2), SPMV_ERROR_ARGUMENT, "8 bits");
    bad = good;
    bad.form = SPMV_SEGMENT_FLAGS;
    assert_fails(ctx, SEGSCAN(&bad, m, m, 2), SPMV_ERROR_ARGUMENT, "64 bits");
    bad.form = (spmv_segment_form)7;
    assert_fails(ctx, SEGSCAN(&bad, m, m, 2), SPMV_ERROR_ARGUMENT, "7 is not a form");
    bad = good;
    bad.count = -3;
    assert_fails(ctx, SEGSCAN(&bad, m, m, 2), SPMV_ERROR_ARGUMENT, "count = -3");
    bad.count = 0;
    assert_fails(ctx, SEGSCAN(&bad, m, m, 2), SPMV_ERROR_SIZE, "no segment");
    assert_fails(ctx, spmv_segscan(ctx, (spmv_scan_kind)5, SPMV_ADD, SPMV_F64, &good, m, m, 2), SPMV_ERROR_ARGUMENT,
                 "5 is not a kind");
    assert_fails(ctx, spmv_segscan(ctx, SPMV_INCLUSIVE, (spmv_op)31, SPMV_F64, &good, m, m, 2), SPMV_ERROR_TYPE, "f64");
    assert_fails(ctx, spmv_segscan(ctx, SPMV_INCLUSIVE, SPMV_ADD, (spmv_type)9, &good, m, m, 2), SPMV_ERROR_TYPE,
                 "add");
    bad = good;
    bad.heads = NULL;
    assert_ok(ctx, SEGSCAN(&bad, NULL, NULL, 0));
    bad.count = 0;
    assert_ok(ctx, SEGSCAN(&bad, NULL, NULL, 0));
    bad = (spmv_segments){SPMV_SEGMENT_FLAGS, NULL, 8, 0};
    assert_ok(ctx, SEGSCAN(&bad, NULL, NULL, 0));
#undef SEGSCAN
    assert_holds(ctx, m, x, sizeof x);
    support_free_in(ctx, m, heads);
}

/* "brief": every operator and type, both kinds, in every form, on several tiles. */
static void each_kernel(void **state)
{
    check_each_kernel(*state, check_cut, 139);
}

static const struct cut_test cuts = {check_cut, 97};

SUPPORT_MAIN_OR_BRIEF((with_context(each_kernel)), with_context(lectures), with_context(segments_begin_anew),
                      with_context(segments_do_not_leak), with_context(every_pair_at_the_seams),
                      with_cuts(every_cut, &cuts), with_cuts(heads_around_the_seams, &cuts),
                      cmocka_unit_test(same_bits_for_any_team), with_context(wrong_positions_are_named),
                      cmocka_unit_test(a_wrong_position_is_found_anywhere), with_context(statuses))

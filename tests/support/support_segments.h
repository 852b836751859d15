/* Segments for the tests of segmented scan and segmented reduce: many ways to cut n elements, in
 * every form and width.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SUPPORT_SEGMENTS_H
#define SUPPORT_SEGMENTS_H

#include "tests/support/support_pairs.h"
#include "tests/support/support_slow.h"

/* A cut of n elements: count + 1 positions, the last of them n. flags: nonzero where a nonempty
 * segment begins, except that flags[0] is 0. */
struct cut {
    int64_t n, count;
    int64_t *positions;
    uint8_t *flags;
};

enum cut_kind {
    CUT_ONE,            /* one segment */
    CUT_EACH,           /* one element each */
    CUT_SHORT,          /* 0 to 9 elements */
    CUT_LONG,           /* up to 3 tiles */
    CUT_EMPTY_FRONT,    /* more than a tile of empty segments, then short ones */
    CUT_EMPTY_END,      /* short segments, then more than a tile of empty ones */
    CUT_EMPTY_SEGMENTS, /* repeatedly more than a tile of empty segments at one place */
    CUT_KINDS
};

static inline int64_t cut_length(enum cut_kind kind, int64_t s, uint64_t *seed)
{
    const int64_t r = (int64_t)(support_random(seed) >> 32);
    switch (kind) {
    case CUT_ONE:
        return INT64_MAX;
    case CUT_EACH:
        return 1;
    case CUT_LONG:
        return r % (3 * HOST_TILE);
    case CUT_EMPTY_FRONT:
        return s < HOST_TILE + 9 ? 0 : r % 10;
    case CUT_EMPTY_SEGMENTS:
        return s % (HOST_TILE + 50) < HOST_TILE + 9 ? 0 : r % (HOST_TILE / 8);
    default:
        return r % 10;
    }
}

static inline void cut_append(struct cut *cut, int64_t position, int64_t *room)
{
    if (cut->count + 1 >= *room) {
        *room *= 2;
        cut->positions = realloc(cut->positions, (size_t)*room * 8);
        assert_non_null(cut->positions);
    }
    cut->positions[cut->count++] = position;
}

/* Sets the flags, to various nonzero values, from the positions. */
static inline void cut_finish(struct cut *cut)
{
    cut->positions[cut->count] = cut->n;
    cut->flags = calloc((size_t)cut->n + 1, 1);
    assert_non_null(cut->flags);
    for (int64_t s = 0; s < cut->count; s++)
        if (cut->positions[s] > 0 && cut->positions[s] < cut->n)
            cut->flags[cut->positions[s]] = (uint8_t)(1 + s % 255);
}

static inline struct cut make_cut(enum cut_kind kind, int64_t n, uint64_t seed)
{
    int64_t room = 16;
    struct cut cut = {.n = n, .positions = host_array(room * 8)};
    for (int64_t at = 0; at < n;) {
        cut_append(&cut, at, &room);
        const int64_t length = cut_length(kind, cut.count - 1, &seed);
        at = length < n - at ? at + length : n;
    }
    if (kind == CUT_EMPTY_END)
        for (int64_t s = 0; s < HOST_TILE + 9; s++)
            cut_append(&cut, n, &room);
    cut_finish(&cut);
    return cut;
}

/* A cut at these positions. */
static inline struct cut cut_at(const int64_t *positions, int64_t count, int64_t n)
{
    struct cut cut = {.n = n, .count = count, .positions = host_array((count + 1) * 8)};
    memcpy(cut.positions, positions, (size_t)count * 8);
    cut_finish(&cut);
    return cut;
}

static inline void free_cut(struct cut *cut)
{
    support_free(cut->positions, cut->flags);
}

/* Uploads the cut. The caller frees the heads with spmv_free. */
static inline spmv_segments upload_cut(spmv_context *ctx, const struct cut *cut, spmv_segment_form form, int bits)
{
    const int64_t entries = cut->count + (form == SPMV_SEGMENT_OFFSETS);
    spmv_segments segments = {.form = form, .bits = bits, .count = cut->count};
    if (form == SPMV_SEGMENT_FLAGS && bits == 1) {
        uint32_t *words = pack_flags(cut->flags, cut->n);
        segments.heads = support_upload(ctx, words, (cut->n + 31) / 32 * 4);
        free(words);
    } else if (form == SPMV_SEGMENT_FLAGS) {
        segments.heads = support_upload(ctx, cut->flags, cut->n);
    } else if (bits == 64) {
        segments.heads = support_upload(ctx, cut->positions, entries * 8);
    } else {
        int32_t *narrow = host_array(entries * 4);
        for (int64_t s = 0; s < entries; s++)
            narrow[s] = (int32_t)cut->positions[s];
        segments.heads = support_upload(ctx, narrow, entries * 4);
        free(narrow);
    }
    return segments;
}

/* The segments that begin at these positions. */
static inline spmv_segments segments_at(spmv_context *ctx, const int64_t *positions, int64_t count, int64_t n,
                                        spmv_segment_form form, int bits)
{
    struct cut cut = cut_at(positions, count, n);
    const spmv_segments segments = upload_cut(ctx, &cut, form, bits);
    free_cut(&cut);
    return segments;
}

static inline void free_segments(spmv_context *ctx, const spmv_segments *segments)
{
    spmv_free(ctx, (void *)(uintptr_t)segments->heads);
}

/* Compares n results of a type and releases them and the segments. */
static inline void check_segments(spmv_context *ctx, const spmv_segments *segments, void *got, const void *want,
                                  int64_t size, int64_t n, const char *what)
{
    assert_same(got, want, size, n, what);
    free(got);
    free_segments(ctx, segments);
}

/* All forms and widths; those of segmented reduce come first. */
static const struct {
    spmv_segment_form form;
    int bits;
} segment_forms[] = {{SPMV_SEGMENT_STARTS, 32},  {SPMV_SEGMENT_STARTS, 64}, {SPMV_SEGMENT_OFFSETS, 32},
                     {SPMV_SEGMENT_OFFSETS, 64}, {SPMV_SEGMENT_FLAGS, 8},   {SPMV_SEGMENT_FLAGS, 1}};
enum { POSITION_FORMS = 4, SEGMENT_FORMS = 6 };

/* Checks one operation for a pair on one cut. what: name of the case in failure messages. */
typedef void cut_check(spmv_context *ctx, const struct pair *p, const struct cut *cut, const char *what);

/* The state of the tests below. */
struct cut_test {
    cut_check *check;
    uint64_t seed;
};
#define with_cuts(test, cuts) cmocka_unit_test_prestate(test, (void *)(uintptr_t)(cuts))

/* Every kind of cut at sizes of one tile and several, for a commutative and a noncommutative
 * operator; on an emulated GPU for one of them, in turns. */
static inline void every_cut(void **state)
{
    const struct cut_test *const test = *state;
    spmv_context *ctx = support_context();
    const spmv_op ops[] = {SPMV_ADD, SPMV_LAST};
    const int64_t sizes[] = {1, HOST_TILE, 5 * HOST_TILE + 3, 100003};
    for (int kind = 0; kind < CUT_KINDS; kind++) {
        for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
            struct cut cut = make_cut((enum cut_kind)kind, sizes[k], test->seed);
            char what[32];
            snprintf(what, sizeof what, "cut %d", kind);
            if (!SLOW || ((size_t)kind + k / 2) % 2 == 0)
                test->check(ctx, pair_of(ops[k % 2], SPMV_I64), &cut, what);
            if (!SLOW || ((size_t)kind + k / 2) % 2 == 1)
                test->check(ctx, pair_of(ops[(k + 1) % 2], SPMV_F32), &cut, what);
            free_cut(&cut);
        }
    }
    spmv_context_destroy(ctx);
}

/* One head, or as many as fill a tile together with the elements before, at every place near the
 * seams of tiles; on an emulated GPU for one operator, in turns. */
static inline void heads_around_the_seams(void **state)
{
    const struct cut_test *const test = *state;
    spmv_context *ctx = support_context();
    const int64_t n = 3 * HOST_TILE + 7;
    const int64_t repeats[] = {1, 2, HOST_TILE};
    int64_t *positions = host_array((HOST_TILE + 1) * 8);
    positions[0] = 0;
    for (int64_t seam = HOST_TILE; seam <= 3 * HOST_TILE; seam += HOST_TILE) {
        for (int64_t at = seam - 4; at <= seam + 2; at++) {
            for (int r = 0; r < 3; r++) {
                for (int64_t s = 1; s <= repeats[r]; s++)
                    positions[s] = at;
                struct cut cut = cut_at(positions, repeats[r] + 1, n);
                char what[64];
                snprintf(what, sizeof what, "%d heads at %lld", (int)repeats[r], (long long)at);
                if (!SLOW || (at + r) % 2 == 0)
                    test->check(ctx, pair_of(SPMV_LAST, SPMV_I32), &cut, what);
                if (!SLOW || (at + r) % 2 != 0)
                    test->check(ctx, pair_of(SPMV_ADD, SPMV_F64), &cut, what);
                free_cut(&cut);
            }
        }
    }
    free(positions);
    spmv_context_destroy(ctx);
}

/* Every pair, with segments longer than a tile and short ones, then runs of empty ones. */
static inline void check_each_kernel(spmv_context *ctx, cut_check *check, uint64_t seed)
{
    const int64_t n = 3 * 7168 + 77;
    FOR_PAIRS(p)
    {
        struct cut cut = make_cut((p - pairs) % 3 == 0 ? CUT_LONG : CUT_SHORT, n, seed);
        check(ctx, p, &cut, "brief");
        free_cut(&cut);
    }
    struct cut cut = make_cut(CUT_EMPTY_SEGMENTS, n, seed);
    check(ctx, pair_of(SPMV_ADD, SPMV_F64), &cut, "empty segments");
    free_cut(&cut);
}

/* Runs one operation on host arrays; the result is to be freed. */
typedef void *segment_call(spmv_context *ctx, const struct pair *p, const spmv_segments *segments, const void *in,
                           int64_t n);

/* The same bits of real sums and products for any number of threads, in the first `forms` forms; on
 * an emulated GPU each second pair of operator and form.
 * reduces: the result has an element for each segment, otherwise n. */
static inline void check_any_team(segment_call *run, bool reduces, int forms, uint64_t seed)
{
    const int64_t n = 10 * HOST_TILE + 13;
    const enum cut_kind kinds[] = {CUT_ONE, CUT_SHORT, CUT_LONG, CUT_EMPTY_SEGMENTS};
    const struct pair *const real[] = {pair_of(SPMV_ADD, SPMV_F32), pair_of(SPMV_ADD, SPMV_F64),
                                       pair_of(SPMV_MUL, SPMV_F32), pair_of(SPMV_MUL, SPMV_F64)};
    for (int k = 0; k < 4; k++) {
        struct cut cut = make_cut(kinds[k], n, seed);
        for (int q = 0; q < 4 * forms; q++) {
            if (SLOW && (k + q + q / 4) % 2 != 0)
                continue;
            const struct pair *p = real[q % 4];
            void *in = pair_values(p, n, false, seed + 2), *first = NULL;
            for (int t = 0; t < teams(); t++) {
                spmv_context *ctx = support_context_on(support_backend, team_sizes[t]);
                const spmv_segments segments =
                    upload_cut(ctx, &cut, segment_forms[q / 4].form, segment_forms[q / 4].bits);
                void *got = run(ctx, p, &segments, in, n);
                first = first != NULL ? first : got;
                assert_same(got, first, p->size, reduces ? cut.count : n, p->name);
                if (got != first)
                    free(got);
                free_segments(ctx, &segments);
                spmv_context_destroy(ctx);
            }
            support_free(in, first);
        }
        free_cut(&cut);
    }
}

#endif

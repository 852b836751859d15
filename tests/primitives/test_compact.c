/* Compact and expand: hand-computed cases; every type, predicate and method at the seams against
 * simple loops; any number of threads; statuses.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "tests/support/support_pairs.h"
#include "tests/support/support_slow.h"

/* Downloads and frees a count. */
static int64_t take_count(spmv_context *ctx, void *count)
{
    int64_t *const host = take_result(ctx, count, sizeof(int64_t), "count"), kept = *host;
    free(host);
    return kept;
}

/* ---------------------------------------------------------------- by hand */

static void compact_by_hand(void **state)
{
    spmv_context *ctx = *state;
    const float x[] = {3, 5, 2, 7, 28, 4, 3};
    const uint8_t flags[] = {1, 0, 0, 255, 2, 0, 128};
    const float want[] = {3, 7, 28, 3};
    void *in = support_upload(ctx, x, sizeof x), *keep = support_upload(ctx, flags, sizeof flags);
    void *out = guarded_result(ctx, sizeof want), *count = guarded_result(ctx, 8);
    assert_ok(ctx, spmv_compact(ctx, SPMV_F32, in, keep, out, count, 7));
    assert_int_equal(take_count(ctx, count), 4);
    float *got = take_result(ctx, out, sizeof want, "compact");
    assert_same(got, want, 4, 4, "compact");
    free(got);
    support_free_in(ctx, in, keep);
}

/* Every predicate on numbers around the scalar, true and false. NaN equals nothing and is
 * nonzero. */
static void predicates_by_hand(void **state)
{
    static const struct {
        spmv_predicate predicate;
        const char *name;
        int holds[6];
    } rows[] = {
        {SPMV_IS_LESS, "less", {1, 1, 0, 0, 0, 1}},       {SPMV_IS_LESS_EQUAL, "less_equal", {1, 1, 1, 0, 0, 1}},
        {SPMV_IS_GREATER, "greater", {0, 0, 0, 1, 0, 0}}, {SPMV_IS_GREATER_EQUAL, "greater_equal", {0, 0, 1, 1, 0, 0}},
        {SPMV_IS_EQUAL, "equal", {0, 0, 1, 0, 0, 0}},     {SPMV_IS_NOT_EQUAL, "not_equal", {1, 1, 0, 1, 1, 1}},
        {SPMV_IS_NONZERO, "nonzero", {1, 0, 1, 1, 1, 1}},
    };
    spmv_context *ctx = *state;
    const double x[] = {-2, 0, 2, 3, NAN, -INFINITY}, two = 2;
    void *in = support_upload(ctx, x, sizeof x);
    for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++) {
        spmv_predicate parsed;
        assert_string_equal(spmv_predicate_name(rows[r].predicate), rows[r].name);
        assert_int_equal(spmv_predicate_parse(rows[r].name, &parsed), SPMV_OK);
        assert_int_equal(parsed, rows[r].predicate);
        for (int when = 0; when <= 1; when++) {
            double want[6];
            int64_t n = 0;
            for (int i = 0; i < 6; i++)
                if (rows[r].holds[i] == when)
                    want[n++] = x[i];
            void *out = guarded_result(ctx, n * 8), *count = guarded_result(ctx, 8);
            assert_ok(ctx, spmv_compact_if(ctx, rows[r].predicate, when, SPMV_F64, &two, in, out, count, 6));
            assert_int_equal(take_count(ctx, count), n);
            double *got = take_result(ctx, out, n * 8, rows[r].name);
            assert_same(got, want, 8, n, rows[r].name);
            free(got);
        }
    }
    assert_string_equal(spmv_predicate_name((spmv_predicate)9), "?");
    assert_int_equal(spmv_predicate_takes(SPMV_IS_LESS, SPMV_I64), 1);
    assert_int_equal(spmv_predicate_takes(SPMV_IS_LESS, (spmv_type)17), 0);
    spmv_free(ctx, in);
}

/* Counts 2, 0, 3, -5 (taken as 0), 0, 1: six outputs. Both forms, total and rank. */
static void expand_by_hand(void **state)
{
    spmv_context *ctx = *state;
    const int32_t counts[] = {2, 0, 3, -5, 0, 1};
    const int64_t wide[] = {2, 0, 3, -5, 0, 1, 99}, offsets_wanted[] = {0, 2, 2, 5, 5, 5, 6};
    const double x[] = {10, 20, 30, 40, 50, 60}, out_wanted[] = {10, 10, 30, 30, 30, 60};
    const int32_t source_wanted[] = {0, 0, 2, 2, 2, 5}, rank_wanted[] = {0, 1, 0, 1, 2, 0};
    void *narrow = support_upload(ctx, counts, sizeof counts), *in = support_upload(ctx, x, sizeof x);
    void *offsets = guarded_result(ctx, 7 * 8), *in_place = guarded_copy(ctx, wide, sizeof wide);
    assert_ok(ctx, spmv_expand_offsets(ctx, narrow, 32, offsets, 6));
    assert_ok(ctx, spmv_expand_offsets(ctx, in_place, 64, in_place, 6));
    for (int form = SPMV_EXPAND_SCATTER; form <= SPMV_EXPAND_GATHER; form++) {
        void *out = guarded_result(ctx, 48), *source = guarded_result(ctx, 24), *rank = guarded_result(ctx, 24);
        assert_ok(ctx, spmv_expand(ctx, (spmv_expand_form)form, SPMV_F64, in, offsets, 6, 32, out, source, rank, 6));
        void *got[] = {take_result(ctx, out, 48, "out"), take_result(ctx, source, 24, "source"),
                       take_result(ctx, rank, 24, "rank")};
        assert_same(got[0], out_wanted, 8, 6, "out");
        assert_same(got[1], source_wanted, 4, 6, "source");
        assert_same(got[2], rank_wanted, 4, 6, "rank");
        for (int k = 0; k < 3; k++)
            free(got[k]);
    }
    void *got[] = {take_result(ctx, offsets, 56, "offsets"), take_result(ctx, in_place, 56, "offsets in place")};
    assert_same(got[0], offsets_wanted, 8, 7, "offsets");
    assert_same(got[1], offsets_wanted, 8, 7, "offsets in place");
    support_free(got[0], got[1]);
    support_free_in(ctx, narrow, in);
}

/* ------------------------------------------------- every type and size */

/* One pair per type. */
#define FOR_TYPES(p) FOR_PAIRS(p) if (p->op == SPMV_ADD || p->op == SPMV_COMPOSE || p->op == SPMV_MAXSUM)

/* Patterns of flags. */
enum flag_kind { NONE, ALL, HALF, FEW, RUNS, FLAG_KINDS };

static uint8_t flag_of(enum flag_kind kind, int64_t i, uint64_t *seed)
{
    const uint64_t r = support_random(seed);
    const bool set = kind == ALL || (kind == HALF && r % 2 == 0) || (kind == FEW && r % 20 == 0) ||
                     (kind == RUNS && i / 3000 % 2 == 0);
    return set ? (uint8_t)(1 + (r >> 32) % 255) : 0;
}

/* An array that starts skew bytes after an aligned address. *block is the memory to free. */
static void *upload_skewed(spmv_context *ctx, const void *host, int64_t bytes, int64_t skew, void **block)
{
    assert_ok(ctx, spmv_alloc(ctx, bytes + skew + 1, block));
    if (bytes > 0)
        assert_ok(ctx, spmv_upload(ctx, host, (char *)*block + skew, bytes));
    return (char *)*block + skew;
}

/* skew: offset in elements (and flags) from vector alignment. */
static void check_flags(spmv_context *ctx, const struct pair *p, enum flag_kind kind, const char *method, int64_t n,
                        int skew)
{
    uint64_t seed = 7 + (uint64_t)n;
    uint8_t *flags = host_array(n);
    void *x = pair_values(p, n, true, 83), *want = host_array(n * p->size);
    int64_t kept = 0;
    for (int64_t i = 0; i < n; i++) {
        flags[i] = flag_of(kind, i, &seed);
        if (flags[i] != 0)
            memcpy(element_out(want, (size_t)p->size, kept++), element(x, (size_t)p->size, i), (size_t)p->size);
    }
    void *in_block, *keep_block;
    void *in = upload_skewed(ctx, x, n * p->size, skew * p->size, &in_block);
    void *keep = upload_skewed(ctx, flags, n, skew, &keep_block);
    void *out = guarded_result(ctx, kept * p->size), *count = guarded_result(ctx, 8);
    assert_ok(ctx, spmv_compact_by(ctx, method, p->type, in, keep, out, count, n));
    assert_int_equal(take_count(ctx, count), kept);
    void *got = take_result(ctx, out, kept * p->size, p->name);
    assert_same(got, want, p->size, kept, p->name);
    void *words = pack_flags(flags, n), *bits = support_upload(ctx, words, (n + 31) / 32 * 4), *by_bits;
    out = guarded_result(ctx, kept * p->size), count = guarded_result(ctx, 8);
    assert_ok(ctx, spmv_compact_bits(ctx, p->type, in, bits, out, count, n));
    assert_int_equal(take_count(ctx, count), kept);
    by_bits = take_result(ctx, out, kept * p->size, p->name);
    assert_same(by_bits, want, p->size, kept, "by bits");
    spmv_free(ctx, bits);
    void *const all[] = {flags, x, want, got, words, by_bits};
    for (size_t k = 0; k < sizeof all / sizeof all[0]; k++)
        free(all[k]);
    support_free_in(ctx, in_block, keep_block);
}

static void flags_at_the_seams(void **state)
{
    spmv_context *ctx = *state;
    for (int m = 0; spmv_compact_rung_name(support_backend, m) != NULL; m++) {
        const char *const method = spmv_compact_rung_name(support_backend, m);
        FOR_TYPES(p)
        {
            FOR_SEAM_SIZES(n)
            {
                const enum flag_kind kind = n > 1000 ? HALF : FEW;
                if (!SLOW || (k_ + m) % 2 == 0) /* an emulated GPU: aligned and not in turns */
                    check_flags(ctx, p, kind, method, n, 0);
                if (!SLOW || (k_ + m) % 2 == 1)
                    check_flags(ctx, p, kind, method, n, 1);
            }
            for (enum flag_kind kind = NONE; kind < FLAG_KINDS; kind++)
                check_flags(ctx, p, kind, method, 3 * HOST_TILE + 7, 0);
        }
    }
}

/* Sizes around the tiles of the kernels: 256 threads with 64 bytes of elements each. */
static void flags_at_the_tiles_of_a_gpu(void **state)
{
    spmv_context *ctx = *state;
    FOR_TYPES(p)
    {
        const int64_t tile = 256 * 64 / p->size,
                      sizes[] = {tile - 1, tile, tile + 1, 6 * tile, 6 * tile + 1, 7 * tile - 1, 13 * tile + 5};
        for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++)
            check_flags(ctx, p, k % 2 == 0 ? HALF : RUNS, "auto", sizes[k], 0);
    }
}

/* Bytes to bits and back, with flags at any offset. */
static void flags_to_bits_and_back(void **state)
{
    spmv_context *ctx = *state;
    const int64_t sizes[] = {0,
                             1,
                             2,
                             7,
                             8,
                             15,
                             16,
                             17,
                             31,
                             32,
                             33,
                             255,
                             HOST_TILE,
                             8191,
                             HOST_TILE + 1,
                             3 * HOST_TILE + 7,
                             63,
                             8193,
                             8223,
                             16384,
                             100003,
                             4 * 65536,
                             70000,
                             9 * HOST_TILE + 31};
    for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
        const int64_t n = sizes[k], bytes = (n + 31) / 32 * 4;
        uint64_t seed = 31 + (uint64_t)n;
        uint8_t *flags = host_array(n), *ones = host_array(n);
        for (int64_t i = 0; i < n; i++) {
            flags[i] = flag_of(HALF, i, &seed);
            ones[i] = flags[i] != 0;
        }
        uint32_t *want = pack_flags(flags, n);
        if (n % 32 != 0)
            want[n / 32] &= ((uint32_t)1 << (n % 32)) - 1;
        for (int skew = 0; skew < 4; skew += 3) {
            void *block, *from = upload_skewed(ctx, flags, n, skew, &block);
            void *to = guarded_result(ctx, bytes), *back = guarded_result(ctx, n);
            assert_ok(ctx, spmv_flags_pack(ctx, from, to, n));
            assert_ok(ctx, spmv_flags_unpack(ctx, to, back, n));
            void *bits = take_result(ctx, to, bytes, "bits"), *again = take_result(ctx, back, n, "bytes");
            assert_same(bits, want, 4, bytes / 4, "bits");
            assert_same(again, ones, 1, n, "bytes again");
            support_free(bits, again);
            spmv_free(ctx, block);
        }
        support_free(flags, ones, want);
    }
    void *some = guarded_result(ctx, 8);
    assert_fails(ctx, spmv_flags_pack(ctx, some, some, -1), SPMV_ERROR_ARGUMENT, "n = -1");
    assert_fails(ctx, spmv_flags_pack(ctx, NULL, some, 1), SPMV_ERROR_ARGUMENT, "flags is NULL");
    assert_fails(ctx, spmv_flags_unpack(ctx, NULL, some, 1), SPMV_ERROR_ARGUMENT, "bits is NULL");
    assert_fails(ctx, spmv_compact_bits(ctx, SPMV_F32, some, NULL, some, some, 1), SPMV_ERROR_ARGUMENT, "bits is NULL");
    free(take_result(ctx, some, 8, "untouched"));
}

/* The predicates by definition, for every type. */
#define DEFINE(NAME, name, TYPE, type, T, CLASS)                                                                       \
    static bool holds_##name##_##type(const void *a, const void *s)                                                    \
    {                                                                                                                  \
        const T x = *(const T *)a, y = *(const T *)s;                                                                  \
        const bool below = x<y, same = x == y, above = x> y;                                                           \
        switch (SPMV_IS_##NAME) {                                                                                      \
        case SPMV_IS_LESS:                                                                                             \
            return below;                                                                                              \
        case SPMV_IS_LESS_EQUAL:                                                                                       \
            return below || same;                                                                                      \
        case SPMV_IS_GREATER:                                                                                          \
            return above;                                                                                              \
        case SPMV_IS_GREATER_EQUAL:                                                                                    \
            return above || same;                                                                                      \
        case SPMV_IS_EQUAL:                                                                                            \
            return same;                                                                                               \
        case SPMV_IS_NOT_EQUAL:                                                                                        \
            return !same;                                                                                              \
        case SPMV_IS_NONZERO:                                                                                          \
            return !(x == 0);                                                                                          \
        }                                                                                                              \
        return false;                                                                                                  \
    }
SPMV_PREDICATE_PAIRS(DEFINE)
#undef DEFINE

struct predicate_row {
    spmv_predicate predicate;
    spmv_type type;
    bool (*holds)(const void *a, const void *s);
};
#define ROW(NAME, name, TYPE, type, T, CLASS) {SPMV_IS_##NAME, SPMV_##TYPE, holds_##name##_##type},
static const struct predicate_row predicate_rows[] = {SPMV_PREDICATE_PAIRS(ROW)};
#undef ROW
enum { PREDICATE_ROWS = sizeof predicate_rows / sizeof predicate_rows[0] };

static void check_predicate(spmv_context *ctx, const struct predicate_row *row, int when, int64_t n)
{
    const struct pair *const p = pair_of(SPMV_ADD, row->type);
    void *x = pair_values(p, n, true, 89), *want = host_array(n * p->size);
    _Alignas(8) char scalar[8];
    memcpy(scalar, element(x, (size_t)p->size, n / 2), (size_t)p->size); /* one of the elements */
    int64_t kept = 0;
    for (int64_t i = 0; i < n; i++)
        if (row->holds(element(x, (size_t)p->size, i), scalar) == when)
            memcpy(element_out(want, (size_t)p->size, kept++), element(x, (size_t)p->size, i), (size_t)p->size);
    void *in = support_upload(ctx, x, n * p->size), *out = guarded_result(ctx, kept * p->size);
    void *count = guarded_result(ctx, 8);
    assert_ok(ctx, spmv_compact_if(ctx, row->predicate, when, row->type, scalar, in, out, count, n));
    assert_int_equal(take_count(ctx, count), kept);
    void *got = take_result(ctx, out, kept * p->size, spmv_predicate_name(row->predicate));
    assert_same(got, want, p->size, kept, spmv_predicate_name(row->predicate));
    support_free(x, want, got);
    spmv_free(ctx, in);
}

static void every_predicate_and_type(void **state)
{
    spmv_context *ctx = *state;
    static const int64_t sizes[] = {1, 33, 4097, 3 * HOST_TILE + 7, HOST_PARALLEL_TILES * HOST_TILE + 1};
    for (int r = 0; r < PREDICATE_ROWS; r++)
        for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++)
            check_predicate(ctx, &predicate_rows[r], (int)(k % 2), sizes[k]);
}

/* ------------------------------------------------------ generalised compact */

/* Numbers of outputs: usually few, runs of zeros longer than a tile of a GPU, sometimes
 * thousands. */
static int64_t count_of(int64_t i, uint64_t *seed)
{
    const uint64_t r = support_random(seed);
    if (i / 2500 % 3 == 1)
        return r % 2 ? 0 : -(int64_t)(r % 9);
    return r % 997 == 0 ? (int64_t)(r >> 32) % 5000 : (int64_t)(r >> 32) % 4;
}

/* room: cells in addition to the outputs; negative: too few cells. */
static void check_expand(spmv_context *ctx, const struct pair *p, spmv_expand_form form, int bits, int64_t n,
                         int64_t room)
{
    uint64_t seed = 97 + (uint64_t)n;
    int64_t *counts = host_array(n * 8), *offsets = host_array((n + 1) * 8), made = 0;
    int32_t *narrow = host_array(n * 4);
    for (int64_t i = 0; i < n; i++) {
        counts[i] = count_of(i, &seed);
        narrow[i] = (int32_t)counts[i];
        offsets[i] = made;
        made += counts[i] > 0 ? counts[i] : 0;
    }
    offsets[n] = made;
    const int64_t total = made + room > 0 ? made + room : 0, size = p->size, index_size = bits / 8;
    void *x = pair_values(p, n, true, 101), *out_wanted = host_array(total * size);
    void *source_wanted = host_array(total * index_size), *rank_wanted = host_array(total * index_size);
    memset(out_wanted, GUARD_BYTE, (size_t)(total * size)); /* unwritten cells keep their values */
    memset(source_wanted, GUARD_BYTE, (size_t)(total * index_size));
    memset(rank_wanted, GUARD_BYTE, (size_t)(total * index_size));
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = offsets[i]; j < offsets[i + 1] && j < total; j++) {
            const int64_t k = j - offsets[i]; /* little-endian: the low bytes come first */
            memcpy(element_out(out_wanted, (size_t)size, j), element(x, (size_t)size, i), (size_t)size);
            memcpy(element_out(source_wanted, (size_t)index_size, j), &i, (size_t)index_size);
            memcpy(element_out(rank_wanted, (size_t)index_size, j), &k, (size_t)index_size);
        }
    }
    void *numbers = bits == 32 ? support_upload(ctx, narrow, n * 4) : support_upload(ctx, counts, n * 8);
    void *in = support_upload(ctx, x, n * size), *places = guarded_result(ctx, (n + 1) * 8);
    void *out = guarded_result(ctx, total * size), *source = guarded_result(ctx, total * index_size);
    void *rank = guarded_result(ctx, total * index_size);
    assert_ok(ctx, spmv_expand_offsets(ctx, numbers, bits, places, n));
    assert_ok(ctx, spmv_expand(ctx, form, p->type, in, places, n, bits, out, source, rank, total));
    assert_ok(ctx,
              /* writes nothing */
              spmv_expand(ctx, form, p->type, NULL, places, n, bits, NULL, NULL, NULL, total));
    void *got[] = {take_result(ctx, places, (n + 1) * 8, "offsets"), take_result(ctx, out, total * size, "out"),
                   take_result(ctx, source, total * index_size, "source"),
                   take_result(ctx, rank, total * index_size, "rank")};
    assert_same(got[0], offsets, 8, n + 1, "offsets");
    assert_same(got[1], out_wanted, size, total, "out");
    assert_same(got[2], source_wanted, index_size, total, "source");
    assert_same(got[3], rank_wanted, index_size, total, "rank");
    void *const all[] = {counts,      offsets, narrow, x,      out_wanted, source_wanted,
                         rank_wanted, got[0],  got[1], got[2], got[3]};
    for (size_t k = 0; k < sizeof all / sizeof all[0]; k++)
        free(all[k]);
    support_free_in(ctx, numbers, in);
}

static void expand_at_the_seams(void **state)
{
    spmv_context *ctx = *state;
    for (int form = SPMV_EXPAND_SCATTER; form <= SPMV_EXPAND_GATHER; form++) {
        FOR_TYPES(p)
        {
            FOR_SEAM_SIZES(n)
            {
                const bool big = n > 3 * HOST_TILE + 7; /* large sizes with one type only */
                if (big && p->type != SPMV_F32)
                    continue;
                check_expand(ctx, p, (spmv_expand_form)form, n % 2 ? 32 : 64, n, 0);
            }
            check_expand(ctx, p, (spmv_expand_form)form, 32, 1000, -100);
            check_expand(ctx, p, (spmv_expand_form)form, 64, 1000, 3000);
        }
    }
}

/* ------------------------------------------------------------------ threads */

/* compact_if gives the same result for any number of threads. */
static void any_number_of_threads(void **state)
{
    (void)state;
    enum { N = 100003 };
    const double zero = 0;
    double *x = pair_values(pair_of(SPMV_ADD, SPMV_F64), N, false, 103), *first = NULL;
    int64_t kept = 0;
    for (int t = 0; t < teams(); t++) {
        spmv_context *ctx = support_context_on(support_backend, team_sizes[t]);
        void *in = support_upload(ctx, x, N * 8), *out = guarded_result(ctx, N * 8), *count = guarded_result(ctx, 8);
        assert_ok(ctx, spmv_compact_if(ctx, SPMV_IS_GREATER, 1, SPMV_F64, &zero, in, out, count, N));
        const int64_t now = take_count(ctx, count);
        double *got = take_result(ctx, out, N * 8, "compact_if");
        if (first == NULL) {
            first = got;
            kept = now;
            assert_in_range(kept, N / 2 - 1000, N / 2 + 1000);
        } else {
            assert_int_equal(now, kept);
            /* nothing is written after the last kept element */
            assert_same(got, first, 8, N, "compact_if");
            free(got);
        }
        spmv_free(ctx, in);
        spmv_context_destroy(ctx);
    }
    support_free(first, x);
}

/* ----------------------------------------------------------------- statuses */

static void statuses(void **state)
{
    spmv_context *ctx = *state;
    const int64_t zeros[4] = {0, 0, 0, 0};
    void *m = support_upload(ctx, zeros, sizeof zeros), *r = guarded_result(ctx, 8);
    int64_t *const o = m, *const c = r;
    assert_fails(ctx, spmv_compact(ctx, SPMV_F64, m, m, r, c, -1), SPMV_ERROR_ARGUMENT, "-1");
    assert_fails(ctx, spmv_compact(ctx, SPMV_F64, NULL, m, r, c, 2), SPMV_ERROR_ARGUMENT, "in is NULL");
    assert_fails(ctx, spmv_compact(ctx, SPMV_F64, m, NULL, r, c, 2), SPMV_ERROR_ARGUMENT, "flags is NULL");
    assert_fails(ctx, spmv_compact(ctx, SPMV_F64, m, m, NULL, c, 2), SPMV_ERROR_ARGUMENT, "out is NULL");
    assert_fails(ctx, spmv_compact(ctx, SPMV_F64, m, m, r, NULL, 0), SPMV_ERROR_ARGUMENT, "count is NULL");
    assert_fails(ctx, spmv_compact(ctx, (spmv_type)31, m, m, r, c, 2), SPMV_ERROR_TYPE, "31");
    assert_fails(ctx, spmv_compact(ctx, SPMV_C64, m, m, r, c, 2), SPMV_ERROR_TYPE, "8 is not a type of primitives");
    assert_fails(ctx, spmv_compact_by(ctx, "tree", SPMV_F64, m, m, r, c, 2), SPMV_ERROR_METHOD, "map-scan-scatter");
    assert_fails(ctx, spmv_compact_if(ctx, SPMV_IS_LESS, 1, SPMV_F64, NULL, m, r, c, 2), SPMV_ERROR_ARGUMENT,
                 "the scalar of less is NULL");
    assert_fails(ctx, spmv_compact_if(ctx, (spmv_predicate)30, 1, SPMV_F64, m, m, r, c, 2), SPMV_ERROR_TYPE,
                 "predicate ? is not supported");
    assert_fails(ctx, spmv_expand_offsets(ctx, m, 16, c, 2), SPMV_ERROR_ARGUMENT, "16");
    assert_fails(ctx, spmv_expand_offsets(ctx, m, 32, c, -3), SPMV_ERROR_ARGUMENT, "-3");
    assert_fails(ctx, spmv_expand_offsets(ctx, NULL, 32, c, 2), SPMV_ERROR_ARGUMENT, "counts is NULL");
    assert_fails(ctx, spmv_expand_offsets(ctx, m, 32, NULL, 0), SPMV_ERROR_ARGUMENT, "offsets is NULL");
    assert_fails(ctx, spmv_expand(ctx, (spmv_expand_form)3, SPMV_F64, m, o, 2, 32, r, NULL, NULL, 1),
                 SPMV_ERROR_ARGUMENT, "unknown form 3");
    assert_fails(ctx, spmv_expand(ctx, SPMV_EXPAND_GATHER, SPMV_TYPE_DEFAULT, m, o, 2, 32, r, NULL, NULL, 1),
                 SPMV_ERROR_TYPE, "0");
    assert_fails(ctx, spmv_expand(ctx, SPMV_EXPAND_GATHER, SPMV_F64, m, o, 2, 8, r, NULL, NULL, 1), SPMV_ERROR_ARGUMENT,
                 "8");
    assert_fails(ctx, spmv_expand(ctx, SPMV_EXPAND_GATHER, SPMV_F64, NULL, o, 2, 32, r, NULL, NULL, 1),
                 SPMV_ERROR_ARGUMENT, "in is NULL");
    assert_fails(ctx, spmv_expand(ctx, SPMV_EXPAND_GATHER, SPMV_F64, m, NULL, 2, 32, r, NULL, NULL, 1),
                 SPMV_ERROR_ARGUMENT, "offsets is NULL");
    assert_fails(ctx, spmv_expand(ctx, SPMV_EXPAND_GATHER, SPMV_F64, m, o, 2, 32, r, NULL, NULL, -1),
                 SPMV_ERROR_ARGUMENT, "-1");
    assert_fails(ctx, spmv_expand(ctx, SPMV_EXPAND_GATHER, SPMV_F64, m, o, 2, 32, r, NULL, NULL, (int64_t)1 << 31),
                 SPMV_ERROR_SIZE, "2147483648");
    /* nothing to do: only the count is written */
    assert_ok(ctx, spmv_compact(ctx, SPMV_F64, NULL, NULL, NULL, c, 0));
    assert_int_equal(take_count(ctx, r), 0);
    r = guarded_result(ctx, 8);
    assert_ok(ctx, spmv_compact_if(ctx, SPMV_IS_NONZERO, 1, SPMV_I32, NULL, NULL, NULL, r, 0));
    assert_int_equal(take_count(ctx, r), 0);
    r = guarded_result(ctx, 8);
    assert_ok(ctx, spmv_expand_offsets(ctx, NULL, 32, r, 0));
    assert_int_equal(take_count(ctx, r), 0);
    assert_ok(ctx, spmv_expand(ctx, SPMV_EXPAND_SCATTER, SPMV_F64, NULL, NULL, 0, 64, NULL, NULL, NULL, 0));
    assert_null(spmv_compact_rung_name(support_backend, support_backend == SPMV_BACKEND_CUDA ? 3 : 2));
    assert_null(spmv_compact_rung_name((spmv_backend)77, 0));
    spmv_free(ctx, m);
}

/* "brief": every method, type and predicate of compact, both forms of expand, on several tiles. */
static void each_kernel(void **state)
{
    spmv_context *ctx = *state;
    const int64_t n = 3 * 4096 + 77;
    for (int m = 0; spmv_compact_rung_name(support_backend, m) != NULL; m++)
        FOR_TYPES(p)
    check_flags(ctx, p, HALF, spmv_compact_rung_name(support_backend, m), n, m % 2);
    for (int r = 0; r < PREDICATE_ROWS; r++)
        check_predicate(ctx, &predicate_rows[r], r % 2, n);
    for (int form = SPMV_EXPAND_SCATTER; form <= SPMV_EXPAND_GATHER; form++)
        FOR_TYPES(p)
    for (int bits = 32; bits <= 64; bits += 32)
        check_expand(ctx, p, (spmv_expand_form)form, bits, 3001, 0);
}

SUPPORT_MAIN_OR_BRIEF((with_context(each_kernel)), with_context(compact_by_hand), with_context(predicates_by_hand),
                      with_context(expand_by_hand), with_context(flags_at_the_seams),
                      with_context(flags_at_the_tiles_of_a_gpu), with_context(flags_to_bits_and_back),
                      with_context(every_predicate_and_type), with_context(expand_at_the_seams),
                      cmocka_unit_test(any_number_of_threads), with_context(statuses))

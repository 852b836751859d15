/* Gather and scatter, with and without filters, and the check of indices: hand-computed cases,
 * invalid indices, every type and width of index at the seams, statuses.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "tests/support/support_pairs.h"

/* ---------------------------------------------------------------- by hand */

/* With n indices of both widths: gathers from x[m] into a copy of before[n], or scatters x[n] into
 * a copy of before[m]. Elements have 8 bytes. */
static void check_by_hand(spmv_context *ctx, bool gathers, spmv_type type, const void *x, int64_t m,
                          const int32_t *index, const int64_t *wide, int64_t n, const void *before, const void *want)
{
    const int64_t cells = gathers ? n : m;
    void *in = support_upload(ctx, x, (gathers ? m : n) * 8);
    for (int bits = 32; bits <= 64; bits += 32) {
        void *at = support_upload(ctx, bits == 32 ? (const void *)index : wide, n * bits / 8);
        void *out = guarded_copy(ctx, before, cells * 8);
        assert_ok(ctx, gathers ? spmv_gather(ctx, type, in, m, at, bits, out, n)
                               : spmv_scatter(ctx, type, in, at, bits, out, m, n));
        void *got = take_result(ctx, out, cells * 8, "by hand");
        assert_same(got, want, 8, cells, "by hand");
        free(got);
        spmv_free(ctx, at);
    }
    spmv_free(ctx, in);
}

static void gather_by_hand(void **state)
{
    const double x[] = {3, 5, 2, 7, 28};
    const int32_t index[] = {4, 0, 0, -1, 2, 5, INT32_MIN, INT32_MAX, 3};
    /* 2^32 is 0 in 32 bits */
    const int64_t wide[] = {4, 0, 0, -1, 2, 5, INT64_MIN, (int64_t)1 << 32, 3};
    const double before[] = {-1, -2, -3, -4, -5, -6, -7, -8, -9}, want[] = {28, 3, 3, -4, 2, -6, -7, -8, 7};
    check_by_hand(*state, true, SPMV_F64, x, 5, index, wide, 9, before, want);
}

static void scatter_by_hand(void **state)
{
    const int64_t x[] = {3, 5, 2, 7, 28, 4, 3};
    const int32_t index[] = {4, 0, -1, 5, INT32_MIN, INT32_MAX, 2};
    const int64_t wide[] = {4, 0, -1, 5, INT64_MIN, ((int64_t)1 << 32) + 1, 2};
    const int64_t before[] = {-1, -2, -3, -4, -5}, want[] = {5, -2, 3, -4, 3};
    check_by_hand(*state, false, SPMV_I64, x, 5, index, wide, 7, before, want);
}

/* No element to gather, no cell to scatter to: every index is invalid. */
static void nothing_to_index(void **state)
{
    spmv_context *ctx = *state;
    const int32_t index[] = {0, -1, 1};
    const float before[] = {1, 2, 3};
    void *at = support_upload(ctx, index, sizeof index), *out = guarded_copy(ctx, before, sizeof before);
    assert_ok(ctx, spmv_gather(ctx, SPMV_F32, NULL, 0, at, 32, out, 3));
    assert_ok(ctx, spmv_scatter(ctx, SPMV_F32, out, at, 32, NULL, 0, 3));
    float *got = take_result(ctx, out, sizeof before, "nothing");
    assert_memory_equal(got, before, sizeof before);
    free(got);
    spmv_free(ctx, at);
}

/* --------------------------------------------- every type, width and size */

/* A permutation of 0 .. n-1 in which about every eighth entry is replaced by an invalid index. */
static int64_t *indices_of(int64_t n, uint64_t *seed)
{
    int64_t *index = host_array(n * 8);
    for (int64_t i = 0; i < n; i++) {
        /* Fisher and Yates, inside out */
        const int64_t j = (int64_t)(support_random(seed) % (uint64_t)(i + 1));
        index[i] = index[j];
        index[j] = i;
    }
    for (int64_t i = 0; i < n; i++)
        if (support_random(seed) % 8 == 0)
            index[i] = support_random(seed) % 2 ? -1 - i : n + i;
    return index;
}

static void *upload_indices(spmv_context *ctx, const int64_t *index, int bits, int64_t n)
{
    if (bits == 64)
        return support_upload(ctx, index, n * 8);
    int32_t *narrow = host_array(n * 4);
    for (int64_t i = 0; i < n; i++)
        narrow[i] = (int32_t)index[i];
    void *memory = support_upload(ctx, narrow, n * 4);
    free(narrow);
    return memory;
}

/* Gathers with the permutation, then scatters with the same one: the cells with valid indices are
 * restored. */
static void check_round(spmv_context *ctx, const struct pair *p, int bits, int64_t n)
{
    uint64_t seed = 71 + (uint64_t)n;
    const size_t size = (size_t)p->size;
    const int64_t bytes = n * p->size;
    int64_t *index = indices_of(n, &seed);
    void *x = pair_values(p, n, true, 73), *y = pair_values(p, n, true, 79);
    void *in = support_upload(ctx, x, bytes), *out = guarded_copy(ctx, y, bytes), *back = guarded_copy(ctx, y, bytes);
    void *at = upload_indices(ctx, index, bits, n);
    assert_ok(ctx, spmv_gather(ctx, p->type, in, n, at, bits, out, n));
    assert_ok(ctx, spmv_scatter(ctx, p->type, in, at, bits, back, n, n));
    void *gathered = take_result(ctx, out, bytes, p->name), *scattered = take_result(ctx, back, bytes, p->name);
    void *want_gathered = host_array(bytes), *want_scattered = host_array(bytes);
    memcpy(want_gathered, y, (size_t)bytes);
    memcpy(want_scattered, y, (size_t)bytes);
    for (int64_t i = 0; i < n; i++) {
        if (index[i] < 0 || index[i] >= n)
            continue;
        memcpy(element_out(want_gathered, size, i), element(x, size, index[i]), size);
        memcpy(element_out(want_scattered, size, index[i]), element(x, size, i), size);
    }
    assert_same(gathered, want_gathered, p->size, n, "gather");
    assert_same(scattered, want_scattered, p->size, n, "scatter");
    support_free_in(ctx, in, at);
    support_free(index, x, y, gathered, scattered, want_gathered, want_scattered);
}

static void every_type_at_the_seams(void **state)
{
    spmv_context *ctx = *state;
    FOR_TYPES(p)
    {
        FOR_SEAM_SIZES(n)
        {
            check_round(ctx, p, 32, n);
            check_round(ctx, p, 64, n);
        }
    }
}

/* ---------------------------------------------------------------- filters */

static void filters_by_hand(void **state)
{
    spmv_context *ctx = *state;
    const double x[] = {3, 5, 2, 7, NAN}, five = 5;
    const int32_t index[] = {3, -1, 4, 0, 1, 9, 2};
    const uint8_t mask[] = {1, 1, 0, 255, 0, 1, 2};
    const double before[] = {-1, -2, -3, -4, -5, -6, -7};
    const double masked[] = {7, -2, -3, 3, -5, -6, 2}, at_least[] = {7, -2, -3, -4, 5, -6, -7};
    const double not_at_least[] = {-1, -2, NAN, 3, -5, -6, 2}; /* NaN is not at least five */
    const struct {
        int when; /* -1: with a mask */
        const double *want;
    } rows[] = {{-1, masked}, {1, at_least}, {0, not_at_least}};
    void *in = support_upload(ctx, x, sizeof x), *at = support_upload(ctx, index, sizeof index);
    void *take = support_upload(ctx, mask, sizeof mask);
    for (int r = 0; r < 3; r++) {
        void *out = guarded_copy(ctx, before, sizeof before);
        if (rows[r].when < 0)
            assert_ok(ctx, spmv_gather_masked(ctx, SPMV_F64, in, 5, at, 32, take, out, 7));
        else
            assert_ok(ctx,
                      spmv_gather_if(ctx, SPMV_IS_GREATER_EQUAL, rows[r].when, SPMV_F64, &five, in, 5, at, 32, out, 7));
        double *got = take_result(ctx, out, sizeof before, "gather");
        assert_same(got, rows[r].want, 8, 7, "gather");
        free(got);
    }
    /* seven elements into five cells */
    const double y[] = {6, 1, NAN, 4, 9, 8, 5}, into[] = {-1, -2, -3, -4, -5};
    const double put_masked[] = {4, -2, 5, 6, -5}, put_at_least[] = {-1, 9, 5, 6, -5};
    const double put_not_at_least[] = {4, -2, -3, -4, NAN}, *const wants[] = {put_masked, put_at_least,
                                                                              put_not_at_least};
    void *from = support_upload(ctx, y, sizeof y);
    for (int r = 0; r < 3; r++) {
        void *out = guarded_copy(ctx, into, sizeof into);
        if (rows[r].when < 0)
            assert_ok(ctx, spmv_scatter_masked(ctx, SPMV_F64, from, at, 32, take, out, 5, 7));
        else
            assert_ok(ctx, spmv_scatter_if(ctx, SPMV_IS_GREATER_EQUAL, rows[r].when, SPMV_F64, &five, from, at, 32, out,
                                           5, 7));
        double *got = take_result(ctx, out, sizeof into, "scatter");
        assert_same(got, wants[r], 8, 5, "scatter");
        free(got);
    }
    void *const all[] = {in, at, take, from};
    for (int k = 0; k < 4; k++)
        spmv_free(ctx, all[k]);
}

/* The first bad index is reported, wherever it is. */
static void checked_indices(void **state)
{
    spmv_context *ctx = *state;
    enum { N = 100003 };
    static const int64_t places[] = {0, 1, HOST_TILE - 1, HOST_TILE, 50000, N - 1};
    int64_t *index = host_array(N * 8);
    for (int64_t i = 0; i < N; i++)
        index[i] = i % 100;
    for (int bits = 32; bits <= 64; bits += 32) {
        void *at = upload_indices(ctx, index, bits, N);
        assert_ok(ctx, spmv_index_check(ctx, at, bits, 0, 100, N));
        assert_fails(ctx, spmv_index_check(ctx, at, bits, 0, 99, N), SPMV_ERROR_SIZE, "index[99] is 99");
        assert_fails(ctx, spmv_index_check(ctx, at, bits, 1, 100, N), SPMV_ERROR_SIZE,
                     "index[0] is 0, must be at least 1");
        spmv_free(ctx, at);
    }
    for (size_t k = 0; k < sizeof places / sizeof places[0]; k++) {
        char text[64];
        const int64_t good = index[places[k]], last = index[N - 1];
        index[N - 1] = 1000; /* a later one is not reported */
        index[places[k]] = -1;
        snprintf(text, sizeof text, "index[%lld] is -1, must be at least 0 and less than 100", (long long)places[k]);
        for (int bits = 32; bits <= 64; bits += 32) {
            void *at = upload_indices(ctx, index, bits, N);
            assert_fails(ctx, spmv_index_check(ctx, at, bits, 0, 100, N), SPMV_ERROR_SIZE, text);
            /* -1 and 1000 are valid here */
            assert_ok(ctx, spmv_index_check(ctx, at, bits, -1, 1001, N));
            spmv_free(ctx, at);
        }
        index[N - 1] = last;
        index[places[k]] = good;
    }
    const int64_t wide[] = {5, (int64_t)1 << 32, INT64_MIN};
    void *at = support_upload(ctx, wide, sizeof wide);
    assert_fails(ctx, spmv_index_check(ctx, at, 64, 0, 10, 3), SPMV_ERROR_SIZE, "index[1] is 4294967296");
    assert_ok(ctx, spmv_index_check(ctx, NULL, 64, 0, 0, 0));
    assert_fails(ctx, spmv_index_check(ctx, NULL, 64, 0, 0, 1), SPMV_ERROR_ARGUMENT, "index is NULL");
    assert_fails(ctx, spmv_index_check(ctx, at, 8, 0, 10, 3), SPMV_ERROR_ARGUMENT, "8");
    assert_fails(ctx, spmv_index_check(ctx, at, 64, 0, 10, -3), SPMV_ERROR_ARGUMENT, "-3");
    spmv_free(ctx, at);
    free(index);
}

/* Every predicate and type as a function of an element and the scalar. */
struct test {
    spmv_predicate predicate;
    spmv_type type;
    bool (*is)(const void *a, const void *s);
};
#define DEFINE(NAME, name, TYPE, type, T, CLASS)                                                                       \
    static bool is_##name##_##type(const void *a, const void *s)                                                       \
    {                                                                                                                  \
        return SPMV_TEST_##NAME##_##CLASS(*(const T *)a, *(const T *)s);                                               \
    }
SPMV_PREDICATE_PAIRS(DEFINE)
#undef DEFINE
#define ROW(NAME, name, TYPE, type, T, CLASS) {SPMV_IS_##NAME, SPMV_##TYPE, is_##name##_##type},
static const struct test tests_of_elements[] = {SPMV_PREDICATE_PAIRS(ROW)};
#undef ROW
enum { TESTS = sizeof tests_of_elements / sizeof tests_of_elements[0] };

/* test NULL: with a mask */
static void check_filtered(spmv_context *ctx, const struct pair *p, const struct test *test, bool when, int bits,
                           int64_t n)
{
    uint64_t seed = 107 + (uint64_t)n;
    const size_t size = (size_t)p->size;
    const int64_t bytes = n * p->size;
    int64_t *index = indices_of(n, &seed);
    uint8_t *mask = host_array(n);
    for (int64_t i = 0; i < n; i++)
        mask[i] = support_random(&seed) % 3 == 0 ? (uint8_t)(1 + i % 255) : 0;
    void *x = pair_values(p, n, true, 109), *y = pair_values(p, n, true, 113);
    void *want_gathered = host_array(bytes), *want_scattered = host_array(bytes);
    _Alignas(16) char scalar[sizeof(spmv_segsum_f64)] = {0}; /* the widest element */
    memcpy(scalar, element(x, size, n / 2), n > 0 ? size : 0);
    memcpy(want_gathered, y, (size_t)bytes);
    memcpy(want_scattered, y, (size_t)bytes);
    for (int64_t i = 0; i < n; i++) {
        const void *const to_gather = index[i] >= 0 && index[i] < n ? element(x, size, index[i]) : NULL;
        if (to_gather == NULL)
            continue;
        if (test != NULL ? test->is(to_gather, scalar) == when : mask[i] != 0)
            memcpy(element_out(want_gathered, size, i), to_gather, size);
        if (test != NULL ? test->is(element(x, size, i), scalar) == when : mask[i] != 0)
            memcpy(element_out(want_scattered, size, index[i]), element(x, size, i), size);
    }
    void *in = support_upload(ctx, x, bytes), *out = guarded_copy(ctx, y, bytes), *back = guarded_copy(ctx, y, bytes);
    void *at = upload_indices(ctx, index, bits, n), *take = support_upload(ctx, mask, n);
    if (test == NULL) {
        assert_ok(ctx, spmv_gather_masked(ctx, p->type, in, n, at, bits, take, out, n));
        assert_ok(ctx, spmv_scatter_masked(ctx, p->type, in, at, bits, take, back, n, n));
    } else {
        assert_ok(ctx, spmv_gather_if(ctx, test->predicate, when, p->type, scalar, in, n, at, bits, out, n));
        assert_ok(ctx, spmv_scatter_if(ctx, test->predicate, when, p->type, scalar, in, at, bits, back, n, n));
    }
    const char *const what = test != NULL ? spmv_predicate_name(test->predicate) : "mask";
    void *gathered = take_result(ctx, out, bytes, what), *scattered = take_result(ctx, back, bytes, what);
    assert_same(gathered, want_gathered, p->size, n, what);
    assert_same(scattered, want_scattered, p->size, n, what);
    support_free_in(ctx, in, at, take);
    support_free(index, mask, x, y, want_gathered, want_scattered, gathered, scattered);
}

static void filters_at_the_seams(void **state)
{
    spmv_context *ctx = *state;
    FOR_TYPES(p)
    {
        FOR_SEAM_SIZES(n)
        {
            check_filtered(ctx, p, NULL, true, 32, n);
            check_filtered(ctx, p, NULL, true, 64, n);
        }
        for (int t = 0; t < TESTS; t++) {
            for (int way = 0; way < 4 && tests_of_elements[t].type == p->type; way++) {
                check_filtered(ctx, p, &tests_of_elements[t], way % 2, way < 2 ? 32 : 64, 33 + way);
                check_filtered(ctx, p, &tests_of_elements[t], way % 2, way < 2 ? 64 : 32, HOST_TILE + 1 + way);
            }
        }
    }
}

static void statuses(void **state)
{
    spmv_context *ctx = *state;
    const int64_t zeros[2] = {0, 0};
    void *m = support_upload(ctx, zeros, sizeof zeros), *at = support_upload(ctx, zeros, sizeof zeros);
    assert_fails(ctx, spmv_gather(ctx, SPMV_F64, m, 2, at, 64, m, -1), SPMV_ERROR_ARGUMENT, "-1");
    assert_fails(ctx, spmv_gather(ctx, SPMV_F64, m, -2, at, 64, m, 2), SPMV_ERROR_ARGUMENT, "-2");
    assert_fails(ctx, spmv_gather(ctx, SPMV_F64, NULL, 2, at, 64, m, 2), SPMV_ERROR_ARGUMENT, "in is NULL");
    assert_fails(ctx, spmv_gather(ctx, SPMV_F64, m, 2, NULL, 64, m, 2), SPMV_ERROR_ARGUMENT, "index is NULL");
    assert_fails(ctx, spmv_gather(ctx, SPMV_F64, m, 2, at, 64, NULL, 2), SPMV_ERROR_ARGUMENT, "out is NULL");
    assert_fails(ctx, spmv_gather(ctx, SPMV_F64, m, 2, at, 16, m, 2), SPMV_ERROR_ARGUMENT, "16");
    assert_fails(ctx, spmv_gather(ctx, (spmv_type)31, m, 2, at, 64, m, 2), SPMV_ERROR_TYPE, "31");
    assert_fails(ctx, spmv_gather(ctx, SPMV_C128, m, 1, at, 64, m, 1), SPMV_ERROR_TYPE,
                 "5 is not a type of primitives");
    assert_fails(ctx, spmv_scatter(ctx, SPMV_C64, m, at, 64, m, 1, 1), SPMV_ERROR_TYPE,
                 "8 is not a type of primitives");
    assert_ok(ctx, spmv_gather(ctx, SPMV_F64, NULL, 0, NULL, 32, NULL, 0));
    assert_fails(ctx, spmv_scatter(ctx, SPMV_F64, m, at, 64, m, 2, -1), SPMV_ERROR_ARGUMENT, "-1");
    assert_fails(ctx, spmv_scatter(ctx, SPMV_F64, m, at, 64, m, -2, 2), SPMV_ERROR_ARGUMENT, "-2");
    assert_fails(ctx, spmv_scatter(ctx, SPMV_F64, NULL, at, 64, m, 2, 2), SPMV_ERROR_ARGUMENT, "in is NULL");
    assert_fails(ctx, spmv_scatter(ctx, SPMV_F64, m, NULL, 64, m, 2, 2), SPMV_ERROR_ARGUMENT, "index is NULL");
    assert_fails(ctx, spmv_scatter(ctx, SPMV_F64, m, at, 64, NULL, 2, 2), SPMV_ERROR_ARGUMENT, "out is NULL");
    assert_fails(ctx, spmv_scatter(ctx, SPMV_F64, m, at, 8, m, 2, 2), SPMV_ERROR_ARGUMENT, "8");
    assert_fails(ctx, spmv_scatter(ctx, SPMV_TYPE_DEFAULT, m, at, 64, m, 2, 2), SPMV_ERROR_TYPE, "0");
    assert_ok(ctx, spmv_scatter(ctx, SPMV_F64, NULL, NULL, 64, NULL, 0, 0));
    assert_fails(ctx, spmv_gather_masked(ctx, SPMV_F64, m, 2, at, 64, NULL, m, 2), SPMV_ERROR_ARGUMENT, "mask is NULL");
    assert_fails(ctx, spmv_scatter_masked(ctx, SPMV_F64, m, at, 64, NULL, m, 2, 2), SPMV_ERROR_ARGUMENT,
                 "mask is NULL");
    assert_fails(ctx, spmv_gather_if(ctx, SPMV_IS_LESS, 1, SPMV_F64, NULL, m, 2, at, 64, m, 2), SPMV_ERROR_ARGUMENT,
                 "scalar");
    assert_fails(ctx, spmv_scatter_if(ctx, (spmv_predicate)0, 1, SPMV_F64, zeros, m, at, 64, m, 2, 2), SPMV_ERROR_TYPE,
                 "is not supported for type");
    assert_fails(ctx, spmv_gather_if(ctx, SPMV_IS_NONZERO, 1, SPMV_F64, NULL, m, 2, at, 7, m, 2), SPMV_ERROR_ARGUMENT,
                 "7");
    assert_fails(ctx, spmv_scatter_if(ctx, SPMV_IS_NONZERO, 1, SPMV_F64, NULL, m, at, 64, m, -2, 2),
                 SPMV_ERROR_ARGUMENT, "-2");
    support_free_in(ctx, m, at);
}

SUPPORT_MAIN(with_context(gather_by_hand), with_context(scatter_by_hand), with_context(nothing_to_index),
             with_context(every_type_at_the_seams), with_context(filters_by_hand), with_context(checked_indices),
             with_context(filters_at_the_seams), with_context(statuses))

/* Gather and scatter: by hand, indices that lie outside, every type and width of index at the seams, statuses.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "support_pairs.h"

/* ---------------------------------------------------------------- by hand */

static void gather_by_hand(void **state)
{
    (void)state;
    spmv_context *ctx = support_context();
    const double x[] = {3, 5, 2, 7, 28};
    const int32_t index[] = {4, 0, 0, -1, 2, 5, INT32_MIN, INT32_MAX, 3};
    const int64_t wide[] = {4, 0, 0, -1, 2, 5, INT64_MIN, (int64_t)1 << 32, 3}; /* 2^32 is 0 in 32 bits */
    const double before[] = {-1, -2, -3, -4, -5, -6, -7, -8, -9}, want[] = {28, 3, 3, -4, 2, -6, -7, -8, 7};
    void *in = support_upload(ctx, x, sizeof x);
    const void *indices[] = {index, wide};
    for (int k = 0; k < 2; k++) {
        const int bits = k == 0 ? 32 : 64;
        void *at = support_upload(ctx, indices[k], 9 * bits / 8), *out = guarded_copy(ctx, before, sizeof before);
        assert_ok(ctx, spmv_gather(ctx, SPMV_F64, in, 5, at, bits, out, 9));
        double *got = take_result(ctx, out, sizeof before, "gather");
        assert_same(got, want, 8, 9, "gather");
        free(got);
        spmv_free(ctx, at);
    }
    spmv_free(ctx, in);
    spmv_context_destroy(ctx);
}

static void scatter_by_hand(void **state)
{
    (void)state;
    spmv_context *ctx = support_context();
    const int64_t x[] = {3, 5, 2, 7, 28, 4, 3};
    const int32_t index[] = {4, 0, -1, 5, INT32_MIN, INT32_MAX, 2};
    const int64_t wide[] = {4, 0, -1, 5, INT64_MIN, ((int64_t)1 << 32) + 1, 2};
    const int64_t before[] = {-1, -2, -3, -4, -5}, want[] = {5, -2, 3, -4, 3};
    void *in = support_upload(ctx, x, sizeof x);
    const void *indices[] = {index, wide};
    for (int k = 0; k < 2; k++) {
        const int bits = k == 0 ? 32 : 64;
        void *at = support_upload(ctx, indices[k], 7 * bits / 8), *out = guarded_copy(ctx, before, sizeof before);
        assert_ok(ctx, spmv_scatter(ctx, SPMV_I64, in, at, bits, out, 5, 7));
        int64_t *got = take_result(ctx, out, sizeof before, "scatter");
        assert_same(got, want, 8, 5, "scatter");
        free(got);
        spmv_free(ctx, at);
    }
    spmv_free(ctx, in);
    spmv_context_destroy(ctx);
}

/* No element to gather, no cell to scatter to: every index lies outside. */
static void nothing_to_index(void **state)
{
    (void)state;
    spmv_context *ctx = support_context();
    const int32_t index[] = {0, -1, 1};
    const float before[] = {1, 2, 3};
    void *at = support_upload(ctx, index, sizeof index), *out = guarded_copy(ctx, before, sizeof before);
    assert_ok(ctx, spmv_gather(ctx, SPMV_F32, NULL, 0, at, 32, out, 3));
    assert_ok(ctx, spmv_scatter(ctx, SPMV_F32, out, at, 32, NULL, 0, 3));
    float *got = take_result(ctx, out, sizeof before, "nothing");
    assert_memory_equal(got, before, sizeof before);
    free(got);
    spmv_free(ctx, at);
    spmv_context_destroy(ctx);
}

/* --------------------------------------------- every type, width and size */

/* A permutation of 0 .. n-1 in which about every eighth entry is replaced by one outside. */
static int64_t *indices_of(int64_t n, uint64_t *seed)
{
    int64_t *index = host_array(n * 8);
    for (int64_t i = 0; i < n; i++) {
        const int64_t j = (int64_t)(support_random(seed) % (uint64_t)(i + 1)); /* Fisher and Yates, inside out */
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

/* Gathers with the permutation, then scatters with the same one: cells named come back to where they were. */
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
    spmv_free(ctx, in);
    spmv_free(ctx, at);
    void *const all[] = {index, x, y, gathered, scattered, want_gathered, want_scattered};
    for (size_t k = 0; k < sizeof all / sizeof all[0]; k++)
        free(all[k]);
}

static void every_type_at_the_seams(void **state)
{
    (void)state;
    spmv_context *ctx = support_context();
    FOR_PAIRS(p)
    {
        if (p->op != SPMV_ADD && p->op != SPMV_COMPOSE && p->op != SPMV_MAXSUM) /* one pair a type */
            continue;
        FOR_SEAM_SIZES(n)
        {
            check_round(ctx, p, 32, n);
            check_round(ctx, p, 64, n);
        }
    }
    spmv_context_destroy(ctx);
}

static void statuses(void **state)
{
    (void)state;
    spmv_context *ctx = support_context();
    const int64_t zeros[2] = {0, 0};
    void *m = support_upload(ctx, zeros, sizeof zeros), *at = support_upload(ctx, zeros, sizeof zeros);
    assert_fails(ctx, spmv_gather(ctx, SPMV_F64, m, 2, at, 64, m, -1), SPMV_ERROR_ARGUMENT, "-1");
    assert_fails(ctx, spmv_gather(ctx, SPMV_F64, m, -2, at, 64, m, 2), SPMV_ERROR_ARGUMENT, "-2");
    assert_fails(ctx, spmv_gather(ctx, SPMV_F64, NULL, 2, at, 64, m, 2), SPMV_ERROR_ARGUMENT, "in is NULL");
    assert_fails(ctx, spmv_gather(ctx, SPMV_F64, m, 2, NULL, 64, m, 2), SPMV_ERROR_ARGUMENT, "index is NULL");
    assert_fails(ctx, spmv_gather(ctx, SPMV_F64, m, 2, at, 64, NULL, 2), SPMV_ERROR_ARGUMENT, "out is NULL");
    assert_fails(ctx, spmv_gather(ctx, SPMV_F64, m, 2, at, 16, m, 2), SPMV_ERROR_ARGUMENT, "16");
    assert_fails(ctx, spmv_gather(ctx, (spmv_type)31, m, 2, at, 64, m, 2), SPMV_ERROR_TYPE, "31");
    assert_ok(ctx, spmv_gather(ctx, SPMV_F64, NULL, 0, NULL, 32, NULL, 0));
    assert_fails(ctx, spmv_scatter(ctx, SPMV_F64, m, at, 64, m, 2, -1), SPMV_ERROR_ARGUMENT, "-1");
    assert_fails(ctx, spmv_scatter(ctx, SPMV_F64, m, at, 64, m, -2, 2), SPMV_ERROR_ARGUMENT, "-2");
    assert_fails(ctx, spmv_scatter(ctx, SPMV_F64, NULL, at, 64, m, 2, 2), SPMV_ERROR_ARGUMENT, "in is NULL");
    assert_fails(ctx, spmv_scatter(ctx, SPMV_F64, m, NULL, 64, m, 2, 2), SPMV_ERROR_ARGUMENT, "index is NULL");
    assert_fails(ctx, spmv_scatter(ctx, SPMV_F64, m, at, 64, NULL, 2, 2), SPMV_ERROR_ARGUMENT, "out is NULL");
    assert_fails(ctx, spmv_scatter(ctx, SPMV_F64, m, at, 8, m, 2, 2), SPMV_ERROR_ARGUMENT, "8");
    assert_fails(ctx, spmv_scatter(ctx, SPMV_TYPE_DEFAULT, m, at, 64, m, 2, 2), SPMV_ERROR_TYPE, "0");
    assert_ok(ctx, spmv_scatter(ctx, SPMV_F64, NULL, NULL, 64, NULL, 0, 0));
    spmv_free(ctx, m);
    spmv_free(ctx, at);
    spmv_context_destroy(ctx);
}

int main(int argc, char **argv)
{
    support_begin(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gather_by_hand),   cmocka_unit_test(scatter_by_hand),
        cmocka_unit_test(nothing_to_index), cmocka_unit_test(every_type_at_the_seams),
        cmocka_unit_test(statuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Histogram: hand-computed cases; every rung at sizes and numbers of bins around the seams; indices
 * out of range; nearly all indices in one bin; the same result for any number of threads; statuses.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "tests/support/support_pairs.h"

#define FOR_RUNGS(rung)                                                                                                \
    for (int r_ = 0; r_ < 16; r_++)                                                                                    \
        for (const char *rung = spmv_histogram_rung_name(support_backend, r_); rung != NULL; rung = NULL)

/* A host array of bins + 1 counts of the type; the last counts indices out of range. The caller
 * frees it. */
static void *count(spmv_context *ctx, const char *rung, spmv_type type, const int32_t *index, int64_t n, int64_t bins)
{
    const int64_t size = (int64_t)spmv_type_size(type);
    void *in = support_upload(ctx, index, n * 4), *counts = guarded_result(ctx, bins * size);
    void *left_out = guarded_result(ctx, size);
    assert_ok(ctx, spmv_histogram_rung(ctx, rung, type, in, counts, bins, left_out, n));
    char *got = take_result(ctx, counts, bins * size, "counts"), *last = take_result(ctx, left_out, size, "left out");
    char *all = host_array((bins + 1) * size);
    memcpy(all, got, (size_t)(bins * size));
    memcpy(all + bins * size, last, (size_t)size);
    support_free(got, last);
    spmv_free(ctx, in);
    return all;
}

static void check(spmv_context *ctx, const char *rung, const int32_t *index, int64_t n, int64_t bins)
{
    int64_t *want = calloc((size_t)bins + 1, sizeof *want);
    int32_t *narrow = host_array((bins + 1) * 4);
    assert_non_null(want);
    for (int64_t i = 0; i < n; i++)
        want[index[i] < 0 || index[i] >= bins ? bins : index[i]]++;
    for (int64_t b = 0; b <= bins; b++)
        narrow[b] = (int32_t)want[b];
    char what[96];
    snprintf(what, sizeof what, "%s, %lld elements in %lld bins", rung, (long long)n, (long long)bins);
    void *got = count(ctx, rung, SPMV_I64, index, n, bins);
    assert_same(got, want, 8, bins + 1, what);
    free(got);
    got = count(ctx, rung, SPMV_I32, index, n, bins);
    assert_same(got, narrow, 4, bins + 1, what);
    support_free(got, want, narrow);
}

static void by_hand(void **state)
{
    spmv_context *ctx = *state;
    const int32_t index[] = {2, 0, 2, 5, -1, 2, 4, INT32_MIN, INT32_MAX, 0};
    const int64_t want[] = {2, 0, 3, 0, 1, 4};
    int rungs = 0;
    FOR_RUNGS(rung)
    {
        int64_t *got = count(ctx, rung, SPMV_I64, index, 10, 5);
        assert_memory_equal(got, want, sizeof want);
        free(got);
        rungs++;
    }
    assert_int_equal(rungs, support_backend == SPMV_BACKEND_CUDA ? 2 : 1);
    /* without the count of indices out of range; nothing to count; no bins */
    int32_t zero[2] = {7, 7};
    void *in = support_upload(ctx, index, sizeof index), *m = support_upload(ctx, zero, sizeof zero);
    assert_ok(ctx, spmv_histogram(ctx, SPMV_I32, in, m, 2, NULL, 10));
    assert_ok(ctx, spmv_download(ctx, m, zero, sizeof zero));
    assert_true(zero[0] == 2 && zero[1] == 0);
    assert_ok(ctx, spmv_histogram(ctx, SPMV_I32, NULL, m, 1, (char *)m + 4, 0));
    assert_ok(ctx, spmv_download(ctx, m, zero, sizeof zero));
    assert_true(zero[0] == 0 && zero[1] == 0);
    assert_ok(ctx, spmv_histogram(ctx, SPMV_I32, in, NULL, 0, m, 10));
    assert_ok(ctx, spmv_download(ctx, m, zero, sizeof zero));
    assert_true(zero[0] == 10);
    support_free_in(ctx, in, m);
}

/* Indices spread over slightly more than the bins; nearly all in one bin; ascending. */
enum kind { SPREAD, CROWDED, ASCENDING, KINDS };

static int32_t *indices(enum kind kind, int64_t n, int64_t bins)
{
    uint64_t seed = 97 + (uint64_t)n;
    int32_t *index = host_array(n * 4);
    for (int64_t i = 0; i < n; i++) {
        const uint64_t r = support_random(&seed) >> 8;
        index[i] = (int32_t)(r % (uint64_t)(bins + bins / 8 + 2)) - 1;
        if (kind == CROWDED && r % 64 != 0)
            index[i] = (int32_t)(bins / 2);
        if (kind == ASCENDING)
            index[i] = (int32_t)(i * bins / n);
    }
    return index;
}

static void every_rung_at_the_seams(void **state)
{
    spmv_context *ctx = *state;
    /* around the size of shared memory; fewer and more bins than elements */
    static const int64_t bins[] = {0, 1, 2, 31, 255, 256, 3071, 6142, 6143, 6144, 50000};
    const bool gpu = support_backend == SPMV_BACKEND_CUDA;
    static const int64_t gpu_sizes[] = {0, 1, 31, 33, 256, 4095, 4096, 4097, 6 * 4096 + 1, 100003};
    FOR_RUNGS(rung)
    {
        for (int s = 0; s < (gpu ? 10 : SEAM_SIZES); s++) {
            const int64_t n = gpu ? gpu_sizes[s] : seam_sizes[s];
            for (int b = 0; b < 11; b++) {
                int32_t *index = indices((enum kind)((s + b) % KINDS), n, bins[b]);
                check(ctx, rung, index, n, bins[b]);
                free(index);
            }
        }
    }
}

/* Enough elements for several parts, with numbers of bins that fit in parts and that do not. */
static void same_for_any_team(void **state)
{
    (void)state;
    const int64_t n = support_backend == SPMV_BACKEND_OMP ? 700003 : 20001;
    static const int64_t bins[] = {10, 20000, 400000};
    for (int b = 0; b < 3; b++) {
        int32_t *index = indices(b == 0 ? CROWDED : SPREAD, n, bins[b]);
        for (int t = 0; t < teams(); t++) {
            spmv_context *ctx = support_context_on(support_backend, team_sizes[t]);
            check(ctx, "auto", index, n, bins[b]);
            spmv_context_destroy(ctx);
        }
        free(index);
    }
}

static void statuses(void **state)
{
    spmv_context *ctx = *state;
    const int32_t x[4] = {0, 1, 0, 1};
    void *m = support_upload(ctx, x, sizeof x), *to = guarded_result(ctx, 16);
    assert_fails(ctx, spmv_histogram(ctx, SPMV_F64, m, to, 2, NULL, 4), SPMV_ERROR_TYPE, "f64");
    assert_fails(ctx, spmv_histogram(ctx, SPMV_I64, m, to, 2, NULL, -4), SPMV_ERROR_ARGUMENT, "-4");
    assert_fails(ctx, spmv_histogram(ctx, SPMV_I64, m, to, -2, NULL, 4), SPMV_ERROR_ARGUMENT, "-2");
    assert_fails(ctx, spmv_histogram(ctx, SPMV_I64, NULL, to, 2, NULL, 4), SPMV_ERROR_ARGUMENT, "index is NULL");
    assert_fails(ctx, spmv_histogram(ctx, SPMV_I64, m, NULL, 2, NULL, 4), SPMV_ERROR_ARGUMENT, "counts is NULL");
    assert_fails(ctx, spmv_histogram_rung(ctx, "hash", SPMV_I64, m, to, 2, NULL, 4), SPMV_ERROR_METHOD,
                 "unknown rung \"hash\"");
    assert_non_null(strstr(spmv_last_error(ctx), spmv_histogram_rung_name(support_backend, 0)));
    assert_null(spmv_histogram_rung_name(support_backend, 99));
    assert_ok(ctx, spmv_histogram(ctx, SPMV_I64, NULL, NULL, 0, NULL, 0));
    uint8_t *untouched = take_result(ctx, to, 16, "counts");
    for (int b = 0; b < 16; b++)
        assert_int_equal(untouched[b], GUARD_BYTE);
    free(untouched);
    spmv_free(ctx, m);
}

/* "brief": every rung on several tiles, with numbers of bins that fit in shared memory and that do
 * not. */
static void each_kernel(void **state)
{
    spmv_context *ctx = *state;
    static const int64_t bins[] = {1, 256, 6143, 50000};
    const int64_t n = 3 * 4096 + 77;
    FOR_RUNGS(rung)
    for (int b = 0; b < 4; b++) {
        int32_t *index = indices(b % 2 ? SPREAD : CROWDED, n, bins[b]);
        check(ctx, rung, index, n, bins[b]);
        free(index);
    }
}

SUPPORT_MAIN_OR_BRIEF((with_context(each_kernel)), with_context(by_hand), with_context(every_rung_at_the_seams),
                      cmocka_unit_test(same_for_any_team), with_context(statuses))

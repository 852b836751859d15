/* The kernels of the backend cuda with more than 2^31 elements, where 32-bit sizes would overflow.
 * All data is made and compared on the device: i32 wraps, so out[i] = i + 1 modulo 2^32 is known
 * for every i. Skipped on devices with too little memory.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "tests/support/support_large.h"

static const int64_t N = ((int64_t)1 << 31) + 4099;
static const int32_t zero = 0, one = 1, minus_one = -1;

/* n elements of i32 on the device; skips the test if the device is too small. */
static int32_t *array(spmv_context *ctx, int64_t n)
{
    void *memory = NULL;
    const spmv_status st = spmv_alloc(ctx, n * (int64_t)sizeof(int32_t), &memory);
    if (st == SPMV_ERROR_MEMORY)
        support_no_memory(ctx);
    assert_ok(ctx, st);
    return memory;
}

static int32_t *filled(spmv_context *ctx, int64_t n, int32_t first, int32_t step)
{
    int32_t *const a = array(ctx, n);
    assert_ok(ctx, spmv_map_index(ctx, SPMV_I32, &first, &step, a, n));
    return a;
}

/* Asserts a[i] == first + i step: subtracts it, then checks that minimum and maximum are 0. */
static void expect_index(spmv_context *ctx, int32_t *a, int64_t n, int32_t first, int32_t step)
{
    int32_t *const index = filled(ctx, n, first, step), *const extremes = array(ctx, 2), host[2];
    support_difference(ctx, SPMV_I32, &minus_one, index, a, n, extremes, host);
    support_free_in(ctx, index, extremes);
    assert_int_equal(host[0], 0);
    assert_int_equal(host[1], 0);
}

static int32_t at(spmv_context *ctx, const int32_t *a, int64_t i)
{
    int32_t host;
    assert_ok(ctx, spmv_download(ctx, a + i, &host, sizeof host));
    return host;
}

static void map_and_reduce(void **state)
{
    spmv_context *ctx = *state;
    int32_t *const a = filled(ctx, N, 5, 1), *const sum = array(ctx, 1);
    assert_int_equal(at(ctx, a, N - 1), (int32_t)(uint32_t)((uint64_t)N + 4));
    assert_int_equal(at(ctx, a, 77), 82);
    assert_ok(ctx, spmv_map_index(ctx, SPMV_I32, &one, &zero, a, N));
    assert_ok(ctx, spmv_reduce(ctx, SPMV_ADD, SPMV_I32, a, sum, N));
    assert_int_equal(at(ctx, sum, 0), (int32_t)(uint32_t)(uint64_t)N);
    support_free_in(ctx, a, sum);
}

static void scans(void **state)
{
    spmv_context *ctx = *state;
    int32_t *const a = filled(ctx, N, 1, 0);
    assert_ok(ctx, spmv_scan(ctx, SPMV_INCLUSIVE, SPMV_ADD, SPMV_I32, a, a, N));
    expect_index(ctx, a, N, 1, 1);
    assert_ok(ctx, spmv_map_index(ctx, SPMV_I32, &one, &zero, a, N));
    assert_ok(ctx, spmv_scan(ctx, SPMV_EXCLUSIVE, SPMV_ADD, SPMV_I32, a, a, N));
    expect_index(ctx, a, N, 0, 1);
    spmv_free(ctx, a);
}

/* Three segments; the second is long and crosses 2^31. */
static void segments_across(void **state)
{
    spmv_context *ctx = *state;
    const int64_t positions[] = {0, 1000, N - 10, N - 10, N};
    void *const heads = support_upload(ctx, positions, sizeof positions);
    const spmv_segments segments = {.form = SPMV_SEGMENT_OFFSETS, .heads = heads, .bits = 64, .count = 4};
    int32_t *const a = filled(ctx, N, 1, 0), *const sums = array(ctx, 4);
    assert_ok(ctx, spmv_segreduce(ctx, SPMV_ADD, SPMV_I32, &segments, a, sums, N));
    assert_int_equal(at(ctx, sums, 0), 1000);
    assert_int_equal(at(ctx, sums, 1), (int32_t)(uint32_t)(uint64_t)(N - 1010));
    assert_int_equal(at(ctx, sums, 2), 0);
    assert_int_equal(at(ctx, sums, 3), 10);
    assert_ok(ctx, spmv_segscan(ctx, SPMV_INCLUSIVE, SPMV_ADD, SPMV_I32, &segments, a, a, N));
    expect_index(ctx, a, 1000, 1, 1);
    expect_index(ctx, a + N - 10, 10, 1, 1);
    expect_index(ctx, a + 1000, N - 1010, 1, 1);
    support_free_in(ctx, heads, a, sums);
}

/* More than 2^31 segments, all but a few empty. */
static void many_segments(void **state)
{
    spmv_context *ctx = *state;
    enum { ELEMENTS = 1000 };
    int32_t *const offsets = filled(ctx, N + 1, 0, 0), *const a = filled(ctx, ELEMENTS, 1, 0);
    const int32_t end = ELEMENTS;
    assert_ok(ctx, spmv_upload(ctx, &end, offsets + N, sizeof end));
    const spmv_segments segments = {.form = SPMV_SEGMENT_OFFSETS, .heads = offsets, .bits = 32, .count = N};
    int32_t *const sums = array(ctx, N);
    assert_ok(ctx, spmv_segreduce(ctx, SPMV_ADD, SPMV_I32, &segments, a, sums, ELEMENTS));
    assert_int_equal(at(ctx, sums, N - 1), ELEMENTS);
    expect_index(ctx, sums, N - 1, 0, 0);
    assert_ok(ctx, spmv_segscan(ctx, SPMV_INCLUSIVE, SPMV_ADD, SPMV_I32, &segments, a, a, ELEMENTS));
    expect_index(ctx, a, ELEMENTS, 1, 1);
    support_free_in(ctx, offsets, sums, a);
}

/* Reverses the order and restores it. */
static void gather_and_scatter(void **state)
{
    spmv_context *ctx = *state;
    void *index = NULL;
    int32_t *const a = filled(ctx, N, 0, 1), *const b = array(ctx, N);
    if (spmv_alloc(ctx, N * 8, &index) != SPMV_OK) {
        print_message("skipped: %s\n", spmv_last_error(ctx));
        skip();
    }
    const int64_t last = N - 1, down = -1;
    assert_ok(ctx, spmv_map_index(ctx, SPMV_I64, &last, &down, index, N));
    assert_ok(ctx, spmv_gather(ctx, SPMV_I32, a, N, index, 64, b, N));
    assert_int_equal(at(ctx, b, 0), (int32_t)(uint32_t)(uint64_t)last);
    assert_int_equal(at(ctx, b, N - 1), 0);
    assert_ok(ctx, spmv_map_index(ctx, SPMV_I32, &zero, &zero, a, N));
    assert_ok(ctx, spmv_scatter(ctx, SPMV_I32, b, index, 64, a, N, N));
    support_free_in(ctx, index, b);
    expect_index(ctx, a, N, 0, 1);
    spmv_free(ctx, a);
}

SUPPORT_MAIN(with_context(map_and_reduce), with_context(scans), with_context(segments_across),
             with_context(many_segments), with_context(gather_and_scatter))

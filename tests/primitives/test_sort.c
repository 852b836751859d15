/* Sort by key: examples by hand; every rung, key type and value size at the seams against a stable
 * sort of this test; in place, stability, bits, signed zeros and NaN, the same result for any
 * number of threads, statuses, capture.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>

#include "core/backend.h"
#include "tests/support/support_pairs.h"
#ifdef HOST_CUDA
#include <cuda_runtime_api.h>
#endif

static const spmv_type key_types[] = {SPMV_I32, SPMV_I64, SPMV_F32, SPMV_F64};
enum { KEY_TYPES = 4 };

/* The parameters of a sort. */
struct job {
    spmv_type type;
    int value_bytes, begin_bit, end_bit;
};

static int width_of(spmv_type type)
{
    return 8 * (int)spmv_type_size(type);
}

/* ------------------------------------------------------- the reference sort */

/* One element: its sort key and its index. */
struct place {
    uint64_t order;
    int64_t i;
};

static int by_order_then_number(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
    if (x->order != y->order)
        return x->order < y->order ? -1 : 1;
    return x->i < y->i ? -1 : 1;
}

/* The sort key of an element, from comparisons of sign and magnitude; the library uses a bit trick
 * instead. */
static uint64_t order_of(const struct job *j, const void *keys, int64_t i)
{
    const bool real = j->type == SPMV_F32 || j->type == SPMV_F64;
    const int width = width_of(j->type);
    uint64_t bits = 0, order;
    memcpy(&bits, element(keys, (size_t)width / 8, i), (size_t)width / 8); /* little-endian */
    const uint64_t half = (uint64_t)1 << (width - 1), magnitude = bits & (half - 1);
    const bool negative = (bits & half) != 0;
    if (!negative)
        order = half + magnitude;
    else
        order = real ? half - 1 - magnitude : magnitude;
    const int count = j->end_bit - j->begin_bit;
    return count == 0 ? 0 : order >> j->begin_bit & (UINT64_MAX >> (64 - count));
}

static int64_t *stable_order(const struct job *j, const void *keys, int64_t n)
{
    struct place *places = host_array(n * (int64_t)sizeof *places);
    int64_t *order = host_array(n * 8);
    for (int64_t i = 0; i < n; i++)
        places[i] = (struct place){order_of(j, keys, i), i};
    qsort(places, (size_t)n, sizeof *places, by_order_then_number);
    for (int64_t k = 0; k < n; k++)
        order[k] = places[k].i;
    free(places);
    return order;
}

/* -------------------------------------------------------------------- calls */

struct sorted {
    void *keys, *values;
};

/* Sorts host arrays. in_place: bit 0 for the keys, bit 1 for the values. */
static struct sorted sort(spmv_context *ctx, const char *rung, const struct job *j, const void *keys,
                          const void *values, int64_t n, int in_place)
{
    const int64_t key_bytes = n * width_of(j->type) / 8, value_bytes = n * j->value_bytes;
    const bool with = j->value_bytes > 0;
    void *in_keys = guarded_copy(ctx, keys, key_bytes),
         *in_values = with ? guarded_copy(ctx, values, value_bytes) : NULL;
    void *out_keys = in_place & 1 ? in_keys : guarded_result(ctx, key_bytes);
    void *out_values = !with ? NULL : in_place & 2 ? in_values : guarded_result(ctx, value_bytes);
    assert_ok(ctx, spmv_sort_rung(ctx, rung, j->type, j->begin_bit, j->end_bit, in_keys, in_values, j->value_bytes,
                                  out_keys, out_values, n));
    if (out_keys != in_keys) { /* the input must not change */
        void *still = take_result(ctx, in_keys, key_bytes, "input");
        assert_memory_equal(still, keys, (size_t)key_bytes);
        free(still);
    }
    if (with && out_values != in_values) {
        void *still = take_result(ctx, in_values, value_bytes, "input");
        assert_memory_equal(still, values, (size_t)value_bytes);
        free(still);
    }
    return (struct sorted){take_result(ctx, out_keys, key_bytes, "keys"),
                           with ? take_result(ctx, out_values, value_bytes, "values") : NULL};
}

static void check(spmv_context *ctx, const char *rung, const struct job *j, const void *keys, int64_t n, int in_place)
{
    const size_t size = (size_t)width_of(j->type) / 8, value_size = (size_t)j->value_bytes;
    int64_t *order = stable_order(j, keys, n), *numbers = host_array(n * 8);
    char *want_keys = host_array(n * (int64_t)size), *want_values = host_array(n * 8), what[96];
    /* The values are the indices of the elements, in either width. */
    for (int64_t i = 0; i < n; i++)
        memcpy(element_out(numbers, value_size, i), &i, value_size);
    for (int64_t k = 0; k < n; k++) {
        memcpy(element_out(want_keys, size, k), element(keys, size, order[k]), size);
        memcpy(element_out(want_values, value_size, k), &order[k], value_size);
    }
    const struct sorted got = sort(ctx, rung, j, keys, numbers, n, in_place);
    snprintf(what, sizeof what, "%s, keys %s, values of %d bytes, bits %d to %d, in place %d", rung,
             spmv_type_name(j->type), j->value_bytes, j->begin_bit, j->end_bit, in_place);
    assert_same(got.keys, want_keys, (int64_t)size, n, what);
    if (j->value_bytes > 0)
        assert_same(got.values, want_values, j->value_bytes, n, what);
    support_free(got.keys, got.values, order, numbers, want_keys, want_values);
}

/* n keys: any bits, including NaN and infinities; few different keys; ascending; descending; all
 * equal. */
enum kind { ANY, FEW, ASCENDING, DESCENDING, SAME, KINDS };

static void *make_keys(spmv_type type, enum kind kind, int64_t n)
{
    uint64_t seed = 83 + (uint64_t)n + (uint64_t)kind;
    void *keys = host_array(n * 8);
    for (int64_t i = 0; i < n; i++) {
        const uint64_t r = support_random(&seed);
        const int64_t whole = kind == FEW         ? (int64_t)(r % 5) - 2
                              : kind == ASCENDING ? i - n / 2
                              : kind == SAME      ? -7
                                                  : n / 2 - i;
        const double real = kind == FEW && whole == 0 && r >> 63 ? -0.0 : (double)whole;
        if (kind == ANY)
            memcpy(element_out(keys, (size_t)width_of(type) / 8, i), &r, (size_t)width_of(type) / 8);
        else if (type == SPMV_I32)
            ((int32_t *)keys)[i] = (int32_t)whole;
        else if (type == SPMV_I64)
            ((int64_t *)keys)[i] = whole;
        else if (type == SPMV_F32)
            ((float *)keys)[i] = (float)real;
        else
            ((double *)keys)[i] = real;
    }
    return keys;
}

/* Runs the body for every rung of the backend. */
#define FOR_RUNGS(rung)                                                                                                \
    for (int r_ = 0; r_ < 16; r_++)                                                                                    \
        for (const char *rung = spmv_sort_rung_name(support_backend, r_); rung != NULL; rung = NULL)

/* -------------------------------------------------------------------- tests */

static void by_hand(void **state)
{
    spmv_context *ctx = *state;
    const int32_t keys[] = {3, -1, 2, 3, INT32_MIN, -1, INT32_MAX, 0};
    const float values[] = {0, 1, 2, 3, 4, 5, 6, 7};
    const int32_t want_keys[] = {INT32_MIN, -1, -1, 0, 2, 3, 3, INT32_MAX};
    const float want_values[] = {4, 1, 5, 7, 2, 0, 3, 6};
    const struct job j = {SPMV_I32, 4, 0, 32};
    int rungs = 0;
    FOR_RUNGS(rung)
    {
        const struct sorted got = sort(ctx, rung, &j, keys, values, 8, 0);
        assert_memory_equal(got.keys, want_keys, sizeof keys);
        assert_memory_equal(got.values, want_values, sizeof values);
        support_free(got.keys, got.values);
        rungs++;
    }
    assert_int_equal(rungs, support_backend == SPMV_BACKEND_CUDA ? 3 : 1);
}

static void reals_by_hand(void **state)
{
    spmv_context *ctx = *state;
    const double nan = (double)NAN, inf = (double)INFINITY;
    const double keys[] = {nan, 1, -0.0, inf, 0.0, -1, 5e-324, -5e-324, copysign(nan, -1), -inf};
    const double want[] = {copysign(nan, -1), -inf, -1, -5e-324, -0.0, 0.0, 5e-324, 1, inf, nan};
    const struct job j = {SPMV_F64, 0, 0, 64};
    FOR_RUNGS(rung)
    {
        const struct sorted got = sort(ctx, rung, &j, keys, NULL, 10, 1);
        assert_memory_equal(got.keys, want, sizeof want);
        free(got.keys);
    }
}

/* The public function without a rung name uses the last rung of the list. */
static void the_automatic_choice(void **state)
{
    spmv_context *ctx = *state;
    const int64_t keys[] = {5, -5, 0};
    const uint32_t values[] = {50, 51, 52}, want_values[] = {51, 52, 50};
    const int64_t want[] = {-5, 0, 5};
    void *k = guarded_copy(ctx, keys, sizeof keys), *v = guarded_copy(ctx, values, sizeof values);
    assert_ok(ctx, spmv_sort_by_key(ctx, SPMV_I64, 0, 64, k, v, 4, k, v, 3));
    assert_ok(ctx, spmv_sort_rung(ctx, "auto", SPMV_I64, 0, 64, k, v, 4, k, v, 3));
    int64_t *got = take_result(ctx, k, sizeof keys, "keys");
    uint32_t *got_values = take_result(ctx, v, sizeof values, "values");
    assert_memory_equal(got, want, sizeof want);
    assert_memory_equal(got_values, want_values, sizeof want_values);
    support_free(got, got_values);
}

/* The seams of the tiles on the host; on a GPU those of its tiles and chunks. */
static int sizes_of(const spmv_context *ctx, const char *rung, int64_t *sizes)
{
    int count = 0;
    if (support_backend != SPMV_BACKEND_CUDA) {
        memcpy(sizes, seam_sizes, sizeof seam_sizes);
        return SEAM_SIZES;
    }
    /* split makes 32 or 64 passes: fewer and smaller sizes where the host emulates the GPU. */
    const bool split = strcmp(rung, "split") == 0;
    const int64_t tiles[] = {2048, 4096};
    const int64_t small[] = {0, 1, 2, 31, 32, 33, 255, 256, 257};
    for (int k = 0; k < 9; k++)
        sizes[count++] = small[k];
    for (int k = 0; k < 2; k++)
        for (int off = -1; off <= 1; off++)
            sizes[count++] = tiles[k] + off;
    if (!support_host_plays(ctx) || !split)
        sizes[count++] = 6 * 4096 + 12345;
    if (!support_host_plays(ctx))
        sizes[count++] = 9000001;
    return count;
}

static void every_rung_at_the_seams(void **state)
{
    spmv_context *ctx = *state;
    int64_t sizes[32];
    int variant = 0;
    FOR_RUNGS(rung)
    {
        const int count = sizes_of(ctx, rung, sizes);
        for (int s = 0; s < count; s++) {
            for (int t = 0; t < KEY_TYPES; t++) {
                void *keys = make_keys(key_types[t], ANY, sizes[s]);
                for (int bytes = 0; bytes <= 8; bytes += 4, variant++) {
                    /* A large size takes one size of values in turn. */
                    const int each = strcmp(rung, "split") == 0 ? 7 : 3;
                    if (sizes[s] > (support_host_plays(ctx) ? 1000 : 20000) && (variant + s) % each != 0)
                        continue;
                    const struct job j = {key_types[t], bytes, 0, width_of(key_types[t])};
                    check(ctx, rung, &j, keys, sizes[s], variant % 4);
                }
                free(keys);
            }
        }
    }
}

/* The values identify equal keys. */
static void equal_keys_keep_their_order(void **state)
{
    spmv_context *ctx = *state;
    FOR_RUNGS(rung)
    {
        const int64_t n = support_host_plays(ctx) ? 5003 : 3 * HOST_TILE + 7;
        for (int kind = 0; kind < KINDS; kind++) {
            for (int t = 0; t < KEY_TYPES; t++) {
                if (support_host_plays(ctx) && t % 2 != kind % 2)
                    continue;
                void *keys = make_keys(key_types[t], (enum kind)kind, n);
                const struct job j = {key_types[t], 8, 0, width_of(key_types[t])};
                check(ctx, rung, &j, keys, n, 0);
                free(keys);
            }
        }
    }
}

/* Bit ranges of every length around that of a digit, at the bottom, in the middle and up to the
 * sign; with an odd and an even number of passes, in place too. */
static void ranges_of_bits(void **state)
{
    spmv_context *ctx = *state;
    static const int lengths[] = {0, 1, 2, 7, 8, 9, 16, 17, 24, 31};
    FOR_RUNGS(rung)
    {
        for (int t = 0; t < KEY_TYPES; t++) {
            const int64_t n = support_host_plays(ctx) ? 700 : 9001;
            const int width = width_of(key_types[t]);
            void *keys = make_keys(key_types[t], ANY, n);
            for (int l = 0; l < 10; l++) {
                const int begins[] = {0, (width - lengths[l]) / 2, width - lengths[l]};
                for (int b = 0; b < 3; b++) {
                    const struct job j = {key_types[t], l % 3 * 4, begins[b], begins[b] + lengths[l]};
                    check(ctx, rung, &j, keys, n, (l + b) % 4);
                    if (!support_host_plays(ctx) || (l + b) % 2 == 0)
                        check(ctx, rung, &j, keys, n, 3);
                }
            }
            free(keys);
        }
    }
}

static void same_for_any_team(void **state)
{
    (void)state;
    const int64_t n = support_backend == SPMV_BACKEND_OMP ? 20 * HOST_TILE + 11 : 5003;
    void *keys = make_keys(SPMV_F64, FEW, n);
    const struct job j = {SPMV_F64, 8, 0, 64};
    for (int t = 0; t < teams(); t++) {
        spmv_context *ctx = support_context_on(support_backend, team_sizes[t]);
        check(ctx, "auto", &j, keys, n, 0);
        spmv_context_destroy(ctx);
    }
    free(keys);
}

/* More elements than the limit on the number of tiles allows for ordinary tiles, so tiles are
 * longer. */
static void long_tiles(void **state)
{
    (void)state;
    if (support_backend != SPMV_BACKEND_OMP)
        skip();
    spmv_context *ctx = support_context_on(support_backend, 3);
    const int64_t n = (int64_t)520 * HOST_TILE + 3;
    int32_t *keys = make_keys(SPMV_I32, ANY, n), *got;
    int64_t *numbers = host_array(n * 8), *moved;
    for (int64_t i = 0; i < n; i++)
        numbers[i] = i;
    const struct job j = {SPMV_I32, 8, 0, 32};
    const struct sorted s = sort(ctx, NULL, &j, keys, numbers, n, 0);
    got = s.keys;
    moved = s.values;
    for (int64_t k = 0; k < n; k++) {
        if (k > 0 && !(got[k - 1] < got[k] || (got[k - 1] == got[k] && moved[k - 1] < moved[k])))
            fail_msg("elements %lld and %lld are out of order", (long long)k - 1, (long long)k);
        if (moved[k] < 0 || moved[k] >= n || keys[moved[k]] != got[k])
            fail_msg("element %lld is not the one that its value names", (long long)k);
    }
    support_free(keys, numbers, got, moved);
    spmv_context_destroy(ctx);
}

static void statuses(void **state)
{
    spmv_context *ctx = *state;
    const int64_t x[4] = {4, 3, 2, 1};
    char *m = support_upload(ctx, x, sizeof x), *to = guarded_result(ctx, sizeof x);
#define FAILS(type, begin, end, keys, values, bytes, out, out_values, n, status, text)                                 \
    assert_fails(ctx, spmv_sort_by_key(ctx, type, begin, end, keys, values, bytes, out, out_values, n), status, text)
    FAILS(SPMV_AFFINE_F64, 0, 8, m, NULL, 0, to, NULL, 2, SPMV_ERROR_TYPE, "affine_f64");
    FAILS((spmv_type)31, 0, 8, m, NULL, 0, to, NULL, 2, SPMV_ERROR_TYPE, "i32");
    FAILS(SPMV_I32, 0, 33, m, NULL, 0, to, NULL, 2, SPMV_ERROR_ARGUMENT, "bits 0 to 33 for keys of 32");
    FAILS(SPMV_I64, -1, 8, m, NULL, 0, to, NULL, 2, SPMV_ERROR_ARGUMENT, "-1");
    FAILS(SPMV_I64, 9, 8, m, NULL, 0, to, NULL, 2, SPMV_ERROR_ARGUMENT, "9 to 8");
    FAILS(SPMV_I64, 0, 64, m, NULL, 0, to, NULL, -2, SPMV_ERROR_ARGUMENT, "-2");
    FAILS(SPMV_I64, 0, 64, m, m, 5, to, to, 2, SPMV_ERROR_ARGUMENT, "5 bytes");
    FAILS(SPMV_I64, 0, 64, NULL, NULL, 0, to, NULL, 2, SPMV_ERROR_ARGUMENT, "in_keys is NULL");
    FAILS(SPMV_I64, 0, 64, m, NULL, 0, NULL, NULL, 2, SPMV_ERROR_ARGUMENT, "out_keys is NULL");
    FAILS(SPMV_I64, 0, 64, m, NULL, 8, to, to, 2, SPMV_ERROR_ARGUMENT, "in_values is NULL");
    FAILS(SPMV_I64, 0, 64, m, m, 8, to, NULL, 2, SPMV_ERROR_ARGUMENT, "out_values is NULL");
    FAILS(SPMV_I64, 0, 64, m, NULL, 0, to, NULL, INT64_MAX / 2, SPMV_ERROR_SIZE, "64 bits");
    assert_ok(ctx, spmv_sort_by_key(ctx, SPMV_I64, 0, 64, NULL, NULL, 8, NULL, NULL, 0));
    assert_fails(ctx, spmv_sort_rung(ctx, "bubble", SPMV_I64, 0, 64, m, NULL, 0, to, NULL, 4), SPMV_ERROR_METHOD,
                 "unknown rung \"bubble\"");
    assert_non_null(strstr(spmv_last_error(ctx), spmv_sort_rung_name(support_backend, 0)));
    assert_null(spmv_sort_rung_name(support_backend, 99));
    assert_null(spmv_sort_rung_name(support_backend, -1));
    assert_null(spmv_sort_rung_name((spmv_backend)77, 0));
    uint8_t *untouched = take_result(ctx, to, sizeof x, "out");
    for (size_t b = 0; b < sizeof x; b++)
        assert_int_equal(untouched[b], GUARD_BYTE);
    free(untouched);
    spmv_free(ctx, m);
}

/* The buffer of a sort grows only outside of captures, and never moves the scratch that captured
 * graphs use. */
static void capture(void **state)
{
    (void)state;
#ifdef HOST_CUDA
    spmv_context *ctx = support_context();
    enum { N = 3000 };
    void *keys = make_keys(SPMV_I64, ANY, 2 * N), *m = support_upload(ctx, keys, 2 * N * 8);
    void *const scratch = ctx->scratch;
    host_cuda.capturing = 1;
    assert_fails(ctx, spmv_sort_by_key(ctx, SPMV_I64, 0, 64, m, NULL, 0, m, NULL, N), SPMV_ERROR_CAPTURE, "captured");
    host_cuda.capturing = 0;
    assert_ok(ctx, spmv_sort_by_key(ctx, SPMV_I64, 0, 64, m, NULL, 0, m, NULL, N));
    host_cuda.capturing = 1;
    assert_ok(ctx, spmv_sort_by_key(ctx, SPMV_I64, 0, 64, m, NULL, 0, m, NULL, N));
    assert_fails(ctx, spmv_sort_by_key(ctx, SPMV_I64, 0, 64, m, NULL, 0, m, NULL, 2 * N), SPMV_ERROR_CAPTURE,
                 "captured");
    assert_int_equal(host_cuda.capture_broken, 0);
    host_cuda.capturing = 0;
    assert_ok(ctx, spmv_sort_by_key(ctx, SPMV_I64, 0, 64, m, NULL, 0, m, NULL, 2 * N));
    assert_ptr_equal(ctx->scratch, scratch);
    const int64_t with = host_cuda.allocations;
    spmv_free(ctx, m);
    spmv_context_destroy(ctx);
    /* These are the keys, the scratch, a ticket, the chain and the buffer. */
    assert_int_equal(host_cuda.allocations, with - 5);
    free(keys);
#else
    skip();
#endif
}

/* "brief": every rung, type and value size on several tiles; few bits, an odd and an even number of
 * passes. */
static void each_kernel(void **state)
{
    spmv_context *ctx = *state;
    const int64_t n = 3 * 4096 + 77;
    FOR_RUNGS(rung)
    for (int t = 0; t < KEY_TYPES; t++) {
        void *keys = make_keys(key_types[t], ANY, n);
        for (int bytes = 0; bytes <= 8; bytes += 4) {
            const int bits = strcmp(rung, "split") == 0 ? 2 + bytes / 4 : bytes == 4 ? 8 : 16;
            const struct job j = {key_types[t], bytes, 5, 5 + bits};
            check(ctx, rung, &j, keys, n, t % 4);
        }
        free(keys);
    }
}

SUPPORT_MAIN_OR_BRIEF((with_context(each_kernel)), with_context(by_hand), with_context(reals_by_hand),
                      with_context(the_automatic_choice), with_context(every_rung_at_the_seams),
                      with_context(equal_keys_keep_their_order), with_context(ranges_of_bits),
                      cmocka_unit_test(same_for_any_team), cmocka_unit_test(long_tiles), with_context(statuses),
                      cmocka_unit_test(capture))

/* The look-back of the single-pass rungs on CUDA. With many small tiles and with states delayed and
 * hidden at random, results are right and have the bits of a run without delays, in every run. The
 * same holds for all shapes and for several launches with a carry between them.
 *
 * usage: test_lookback cuda time [log2 n]    times the shapes against a copy of the same bytes
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "tests/support/support.h"

#include <math.h>

#include "core/clock.h"
#include "tests/device/lookback_rungs.h"

static spmv_context *context;
static bool real_gpu, brief,
    repeat_often; /* brief: each kernel once, for checkers that slow a GPU down a hundredfold */

static const struct lookback_rung *rung_of(const char *name)
{
    for (int r = 0; r < lookback_rungs_count; r++)
        if (strcmp(lookback_rungs[r].name, name) == 0)
            return &lookback_rungs[r];
    fail_msg("no rung %s", name);
    return NULL;
}

/* Input: n values of a pair, cut by flags and by positions, which agree except for empty
 * segments. */
struct input {
    spmv_op op;
    spmv_type type;
    int64_t size, n, count;
    void *host_in, *in, *out, *flags, *positions, *scratch;
    unsigned char *host_flags;
    int32_t *host_positions;
};

static const struct pair {
    spmv_op op;
    spmv_type type;
} pairs[] = {{SPMV_ADD, SPMV_F32}, {SPMV_ADD, SPMV_F64}, {SPMV_LAST, SPMV_I32}};
enum { PAIRS = sizeof pairs / sizeof pairs[0] };

/* Lengths of segments: a few elements, many tiles, or none. */
static int64_t length_of(uint64_t *random)
{
    const uint64_t r = support_random(random), kind = r % 100;
    return kind < 30 ? 0 : kind < 97 ? (int64_t)(r >> 32) % 40 : (int64_t)(r >> 32) % 60000;
}

static struct input make_input(struct pair pair, int64_t n, uint64_t seed)
{
    struct input x = {.op = pair.op, .type = pair.type, .size = (int64_t)spmv_type_size(pair.type), .n = n};
    uint64_t random = seed;
    x.host_in = malloc((size_t)(n * x.size));
    x.host_flags = calloc((size_t)n, 1);
    x.host_positions = malloc((size_t)(n + 1) * sizeof *x.host_positions);
    assert_true(x.host_in != NULL && x.host_flags != NULL && x.host_positions != NULL);
    for (int64_t i = 0; i < n; i++) {
        const double u = support_uniform(&random);
        if (x.type == SPMV_F32)
            ((float *)x.host_in)[i] = (float)u;
        else if (x.type == SPMV_F64)
            ((double *)x.host_in)[i] = u;
        else
            /* mostly 0, which last skips */
            ((int32_t *)x.host_in)[i] = fabs(u) < 0.0002 ? (int32_t)(u * 1e9) : 0;
    }
    for (int64_t at = 0; at < n && x.count < n;) {
        x.host_positions[x.count++] = (int32_t)at;
        x.host_flags[at] = 1;
        at += length_of(&random);
    }
    x.host_positions[x.count] = (int32_t)n;
    x.in = support_upload(context, x.host_in, n * x.size);
    x.out = support_upload(context, x.host_in, n * x.size);
    x.flags = support_upload(context, x.host_flags, n);
    x.positions = support_upload(context, x.host_positions, (x.count + 1) * (int64_t)sizeof(int32_t));
    assert_ok(context, spmv_alloc(context, lookback_rung_scratch(x.type, n, x.count), &x.scratch));
    return x;
}

static void free_input(struct input *x)
{
    support_free_in(context, x->in, x->out, x->flags, x->positions, x->scratch);
    support_free(x->host_in, x->host_flags, x->host_positions);
}

enum call {
    SCAN,
    SCAN_EXCLUSIVE,
    SEGSCAN_FLAGS,
    SEGSCAN_FLAGS_EXCLUSIVE,
    SEGSCAN_POSITIONS,
    SEGSCAN_POSITIONS_EXCLUSIVE,
    SEGREDUCE,
    CALLS
};

static const char *const call_names[] = {"scan",
                                         "exclusive scan",
                                         "segscan by flags",
                                         "exclusive segscan by flags",
                                         "segscan by positions",
                                         "exclusive segscan by positions",
                                         "segreduce"};

static bool is_by_flags(enum call call)
{
    return call == SEGSCAN_FLAGS || call == SEGSCAN_FLAGS_EXCLUSIVE;
}

static bool is_exclusive(enum call call)
{
    return call == SCAN_EXCLUSIVE || call == SEGSCAN_FLAGS_EXCLUSIVE || call == SEGSCAN_POSITIONS_EXCLUSIVE;
}

static spmv_segments segments_of(const struct input *x, enum call call)
{
    if (is_by_flags(call))
        return (spmv_segments){.form = SPMV_SEGMENT_FLAGS, .heads = x->flags, .bits = 8};
    return (spmv_segments){.form = SPMV_SEGMENT_OFFSETS, .heads = x->positions, .bits = 32, .count = x->count};
}

static void queue(const struct lookback_rung *rung, const struct input *x, enum call call)
{
    const spmv_segments segments = segments_of(x, call);
    const spmv_scan_kind kind = is_exclusive(call) ? SPMV_EXCLUSIVE : SPMV_INCLUSIVE;
    if (call == SCAN || call == SCAN_EXCLUSIVE)
        assert_ok(context, rung->scan(context, kind, x->op, x->type, x->in, x->out, x->n, x->scratch));
    else if (call == SEGREDUCE)
        assert_ok(context, rung->segreduce(context, x->op, x->type, &segments, x->in, x->out, x->n, x->scratch));
    else
        assert_ok(context, rung->segscan(context, kind, x->op, x->type, &segments, x->in, x->out, x->n, x->scratch));
}

static int64_t results_of(const struct input *x, enum call call)
{
    return call == SEGREDUCE ? x->count : x->n;
}

/* The result of the rung, which the caller frees. */
static void *run(const struct lookback_rung *rung, const struct input *x, enum call call)
{
    const int64_t bytes = results_of(x, call) * x->size;
    void *const got = malloc((size_t)bytes);
    assert_non_null(got);
    queue(rung, x, call);
    assert_ok(context, spmv_download(context, x->out, got, bytes));
    return got;
}

/* A running sum from left to right: its value, and the bound on the difference of any order of
 * summation, twice (m + 1) u (|x_0| + ... + |x_m|) (Higham 2002, section 4.2). For last: the value,
 * exactly. */
struct running {
    long double value, magnitude;
    int64_t terms;
};

static void take(const struct input *x, struct running *sum, int64_t i)
{
    if (x->type == SPMV_I32) {
        const int32_t v = ((const int32_t *)x->host_in)[i];
        sum->value = v != 0 ? v : sum->value;
        return;
    }
    const double v = x->type == SPMV_F32 ? (double)((const float *)x->host_in)[i] : ((const double *)x->host_in)[i];
    sum->value += v;
    sum->magnitude += fabs(v);
    sum->terms++;
}

static void expect(const struct input *x, const struct running *sum, const void *got, int64_t i, const char *what)
{
    const double v = x->type == SPMV_F32   ? (double)((const float *)got)[i]
                     : x->type == SPMV_F64 ? ((const double *)got)[i]
                                           : (double)((const int32_t *)got)[i];
    const long double roundoff = x->type == SPMV_F32 ? 0x1p-24L : 0x1p-53L;
    if (!(fabsl(v - sum->value) <= 2 * roundoff * (long double)(sum->terms + 1) * sum->magnitude))
        fail_msg("%s, %s %s: result %lld is %.17g instead of %.17Lg", what, spmv_op_name(x->op),
                 spmv_type_name(x->type), (long long)i, v, sum->value);
}

static void check(const struct lookback_rung *rung, const struct input *x, enum call call, const void *got)
{
    char what[80];
    snprintf(what, sizeof what, "%s of %s", call_names[call], rung->name);
    struct running sum = {0, 0, 0};
    for (int64_t s = 0; call == SEGREDUCE && s < x->count; s++) {
        sum = (struct running){0, 0, 0};
        for (int64_t i = x->host_positions[s]; i < x->host_positions[s + 1]; i++)
            take(x, &sum, i);
        expect(x, &sum, got, s, what);
    }
    for (int64_t i = 0; call != SEGREDUCE && i < x->n; i++) {
        if (call != SCAN && call != SCAN_EXCLUSIVE && x->host_flags[i])
            sum = (struct running){0, 0, 0};
        if (is_exclusive(call))
            expect(x, &sum, got, i, what);
        take(x, &sum, i);
        if (!is_exclusive(call))
            expect(x, &sum, got, i, what);
    }
}

static void delays_do_not_show(void **state)
{
    (void)state;
    const int repeats = brief ? 1 : repeat_often ? 200 : real_gpu ? 20 : 1;
    /* another stream keeps some multiprocessors busy, so that blocks start, and draw their tickets,
     * in another order each time */
    spmv_context *const noise = support_context();
    const int64_t noise_n = real_gpu ? 4000000 : 1000;
    const double one = 1;
    void *noise_values = NULL;
    assert_ok(noise, spmv_alloc(noise, noise_n * 8, &noise_values));
    assert_ok(noise, spmv_map_index(noise, SPMV_F64, &one, &one, noise_values, noise_n));
    static const char *const ways[][2] = {{"small", "delayed"}, {"small-pipeline", "delayed-pipeline"}};
    for (int w_p = 0; w_p < (real_gpu ? 2 : 1) * PAIRS; w_p++) {
        const int w = w_p / PAIRS, p = w_p % PAIRS;
        /* tiles of 1 KiB and more: more than a look-back inspects, and more than one launch has
         * states for */
        struct input x = make_input(pairs[p],
                                    brief          ? 30001
                                    : repeat_often ? (int64_t)1 << 20
                                    : real_gpu     ? (int64_t)5 << 20
                                                   : 150001,
                                    41 + (uint64_t)p);
        for (int call = 0; call < CALLS; call++) {
            if (call == SEGREDUCE && w == 0) { /* at most the size for the form for few elements */
                const int64_t n = x.n;
                free_input(&x);
                x = make_input(pairs[p], n < 600000 ? n : 600000, 41 + (uint64_t)p);
            }
            /* on an emulated GPU inclusive and exclusive scans in turns */
            if (!real_gpu && call != SEGREDUCE && is_exclusive((enum call)call) != (p % 2))
                continue;
            const struct lookback_rung *const small = rung_of(ways[w][0]);
            void *const straight = run(small, &x, (enum call)call);
            check(small, &x, (enum call)call, straight);
            for (int repeat = 0; repeat < repeats; repeat++) {
                assert_ok(noise, spmv_map(noise, SPMV_MAP_SQRT, SPMV_F64, noise_values, noise_values, noise_n));
                void *const delayed = run(rung_of(ways[w][1]), &x, (enum call)call);
                if (memcmp(straight, delayed, (size_t)(results_of(&x, (enum call)call) * x.size)) != 0)
                    fail_msg("%s, %s %s: other bits under delays", call_names[call], spmv_op_name(x.op),
                             spmv_type_name(x.type));
                free(delayed);
            }
            free(straight);
        }
        free_input(&x);
    }
    spmv_free(noise, noise_values);
    spmv_context_destroy(noise);
}

static void every_shape_is_right_and_repeats(void **state)
{
    (void)state;
    for (int p = 0; p < PAIRS; p++) {
        struct input x = make_input(pairs[p], real_gpu && !brief ? 3000017 : 30011, 51 + (uint64_t)p);
        for (int r = 0; r < lookback_rungs_count; r++) {
            for (int call = 0; call < CALLS; call++) {
                void *const first = run(&lookback_rungs[r], &x, (enum call)call);
                check(&lookback_rungs[r], &x, (enum call)call, first);
                if (real_gpu || p == 0) { /* one type on an emulated GPU */
                    void *const again = run(&lookback_rungs[r], &x, (enum call)call);
                    assert_memory_equal(first, again, (size_t)(results_of(&x, (enum call)call) * x.size));
                    free(again);
                }
                free(first);
            }
        }
        free_input(&x);
    }
}

/* Sizes around a tile, from memory unaligned for vectors, in place. */
static void odd_addresses_and_sizes(void **state)
{
    (void)state;
    struct input x = make_input(pairs[0], 20000, 61);
    static const int64_t sizes[] = {1, 3, 4, 255, 256, 257, 5119, 5120, 5121, 9215, 9216, 9217, 11264, 18437};
    for (int r = 0; r < lookback_rungs_count; r++) {
        for (int s = 0; s < (int)(sizeof sizes / sizeof sizes[0]); s += brief ? 6 : 1) {
            for (int skew = 0; skew < 2; skew++) {
                struct input y = x;
                y.n = sizes[s];
                y.in = y.out = (float *)x.out + skew;
                assert_ok(context, spmv_upload(context, x.host_in, y.in, y.n * y.size));
                const enum call call = s % 2 ? SEGSCAN_FLAGS : SCAN;
                void *const got = run(&lookback_rungs[r], &y, call);
                check(&lookback_rungs[r], &y, call, got);
                free(got);
            }
        }
    }
    free_input(&x);
}

static void other_pairs_are_refused(void **state)
{
    (void)state;
    struct input x = make_input(pairs[0], 100, 71);
    const struct lookback_rung *const rung = rung_of("lookback");
    const spmv_segments segments = segments_of(&x, SEGREDUCE);
    assert_fails(context, rung->scan(context, SPMV_INCLUSIVE, SPMV_MUL, SPMV_F32, x.in, x.out, 100, x.scratch),
                 SPMV_ERROR_TYPE, "a shape of scan");
    assert_fails(context, rung->segreduce(context, SPMV_ADD, SPMV_I64, &segments, x.in, x.out, 100, x.scratch),
                 SPMV_ERROR_TYPE, "a shape of segreduce");
    free_input(&x);
}

/* ------------------------------------------------------------------- timing */

/* Seconds of one of several queued calls: the minimum of three rounds after a warm-up. rung NULL: a
 * copy. */
static double time_of(const struct lookback_rung *rung, const struct input *x, enum call call)
{
    enum { ROUNDS = 4, QUEUED = 10 };
    double least = INFINITY;
    for (int round = 0; round < ROUNDS; round++) {
        assert_ok(context, spmv_synchronize(context));
        const double start = monotonic_seconds();
        for (int k = 0; k < QUEUED; k++)
            if (rung == NULL)
                assert_ok(context, spmv_map(context, SPMV_MAP_COPY, x->type, x->in, x->out, x->n));
            else
                queue(rung, x, call);
        assert_ok(context, spmv_synchronize(context));
        const double each = (monotonic_seconds() - start) / QUEUED;
        if (round > 0 && each < least)
            least = each;
    }
    return least;
}

/* Bytes that the call must move. */
static double model_bytes(const struct input *x, enum call call)
{
    const double v = (double)x->size, n = (double)x->n, count = (double)x->count;
    if (call == SEGREDUCE)
        return n * v + count * (v + 4);
    return 2 * n * v + (is_by_flags(call) ? n : call == SCAN || call == SCAN_EXCLUSIVE ? 0 : 4 * count);
}

static void print_times(const struct input *x, int64_t length)
{
    const double copy = 2 * (double)(x->n * x->size) / time_of(NULL, x, SCAN);
    printf("\n%s, n = %lld, segments of %lld: copy %.0f GB/s; fractions of it\n", spmv_type_name(x->type),
           (long long)x->n, (long long)length, copy * 1e-9);
    for (int r = 0; r < lookback_rungs_count; r++) {
        if (strcmp(lookback_rungs[r].name, "small") == 0)
            break;
        printf("%-12s", lookback_rungs[r].name);
        for (int call = 0; call < CALLS; call++)
            printf("  %s %.3f", call_names[call],
                   model_bytes(x, (enum call)call) / time_of(&lookback_rungs[r], x, (enum call)call) / copy);
        printf("\n");
        fflush(stdout);
    }
}

/* The values do not matter, so only the positions and flags are uploaded. */
static void time_shapes(int log2_n)
{
    static const int64_t lengths[] = {32, 2, 1000000};
    const int64_t n = (int64_t)1 << log2_n;
    for (int p = 0; p < 2; p++) {
        struct input x = {
            .op = pairs[p].op, .type = pairs[p].type, .size = (int64_t)spmv_type_size(pairs[p].type), .n = n};
        const double zero = 0;
        const int32_t first = 0;
        assert_ok(context, spmv_alloc(context, n * x.size, &x.in));
        assert_ok(context, spmv_alloc(context, n * x.size, &x.out));
        assert_ok(context, spmv_map_index(context, x.type, &zero, NULL, x.in, n));
        assert_ok(context, spmv_alloc(context, n, &x.flags));
        assert_ok(context, spmv_alloc(context, (n / 2 + 2) * 4, &x.positions));
        assert_ok(context, spmv_alloc(context, lookback_rung_scratch(x.type, n, n), &x.scratch));
        unsigned char *const flags = malloc((size_t)n);
        assert_non_null(flags);
        for (int l = 0; l < (int)(sizeof lengths / sizeof lengths[0]); l++) {
            const int32_t step = (int32_t)lengths[l];
            const int32_t end = (int32_t)n;
            x.count = (n + step - 1) / step;
            for (int64_t i = 0; i < n; i++)
                flags[i] = i % step == 0;
            assert_ok(context, spmv_upload(context, flags, x.flags, n));
            assert_ok(context, spmv_map_index(context, SPMV_I32, &first, &step, x.positions, x.count));
            assert_ok(context, spmv_upload(context, &end, (int32_t *)x.positions + x.count, 4));
            print_times(&x, lengths[l]);
        }
        free(flags);
        support_free_in(context, x.in, x.out, x.flags, x.positions, x.scratch);
    }
}

int main(int argc, char **argv)
{
    support_begin(argc, argv);
    context = support_context();
    real_gpu = !support_host_plays(context);
    brief = support_brief(argc, argv);
    repeat_often = support_mode(argc, argv, "repeat");
    int failed = 0;
    if (support_mode(argc, argv, "time")) {
        time_shapes(argc > 3 ? atoi(argv[3]) : 28);
    } else {
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(delays_do_not_show),
            cmocka_unit_test(every_shape_is_right_and_repeats),
            cmocka_unit_test(odd_addresses_and_sizes),
            cmocka_unit_test(other_pairs_are_refused),
        };
        failed = cmocka_run_group_tests(tests, NULL, NULL);
    }
    spmv_context_destroy(context);
    return failed;
}

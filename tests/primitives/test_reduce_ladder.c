/* The rungs of reduce by name, and map and reduce fused: every rung, operator and type at the seams
 * against the definition; refused operators that do not commute; the same bits in every run and for
 * any alignment of the array; both ways to finish; unknown names.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>

#ifdef HOST_CUDA
#include <cuda_runtime_api.h>
#endif

#include "core/backend.h"
#include "tests/support/support_pairs.h"

/* A list of its own, not the library's, so that a missing rung is detected. */
struct rung {
    const char *name;
    bool reorders, repeats;
};
static const struct rung on_ref[] = {{"serial", false, true},    {"tree", false, true},   {"divergent", false, true},
                                     {"sequential", true, true}, {"chunked", true, true}, {"atomic", true, true},
                                     {NULL, false, false}};
static const struct rung on_omp[] = {{"tiles", false, true}, {NULL, false, false}};
static const struct rung on_cuda[] = {
    {"tree", false, true},           {"tree:host", false, true},   {"divergent", false, true},
    {"divergent:host", false, true}, {"sequential", true, true},   {"sequential:host", true, true},
    {"chunked", true, true},         {"chunked:host", true, true}, {"atomic", true, false},
    {"shuffles", false, true},       {"packs", false, true},       {NULL, false, false}};

static const struct rung *rungs(void)
{
    return support_backend == SPMV_BACKEND_REF ? on_ref : support_backend == SPMV_BACKEND_OMP ? on_omp : on_cuda;
}

#define FOR_RUNGS(r) for (const struct rung *r = rungs(); r->name != NULL; r++)

/* Sizes around blocks of 256, their squares, tiles of 16 KiB, and the number of results that a host
 * finishes. */
static const int64_t sizes[] = {0,    1,    2,    31,   32,   33,   255,  256,  257,   511,   512,   513,   1023,
                                1024, 1025, 2047, 2048, 2049, 4095, 4096, 4097, 12289, 24577, 65536, 65537, 100003};
enum { SIZES = sizeof sizes / sizeof sizes[0] };

/* An array in the context's memory, `skew` elements past its alignment; *block is the
 * allocation. */
static void *upload_behind(spmv_context *ctx, const struct pair *p, const void *host, int64_t n, int skew, void **block)
{
    assert_ok(ctx, spmv_alloc(ctx, (n + skew + 1) * p->size, block));
    char *const at = (char *)*block + skew * p->size;
    assert_ok(ctx, spmv_upload(ctx, host, at, n * p->size));
    return at;
}

/* Values with exact results in any order: for a product only 1 and -1, since alternating 2 and 1/2
 * would overflow in some orders. */
static void *values_in_any_order(const struct pair *p, int64_t n, uint64_t seed)
{
    void *const x = pair_values(p, n, true, seed);
    for (int64_t i = 0; i < n && p->op == SPMV_MUL; i++) {
        if (p->type == SPMV_F32)
            ((float *)x)[i] = copysignf(1, ((float *)x)[i]);
        if (p->type == SPMV_F64)
            ((double *)x)[i] = copysign(1, ((double *)x)[i]);
    }
    return x;
}

/* function 0: no function */
static void reduce(spmv_context *ctx, const char *rung, spmv_function function, const struct pair *p, const void *in,
                   int64_t n, int skew, void *out)
{
    void *block, *to = guarded_result(ctx, p->size);
    const void *from = upload_behind(ctx, p, in, n, skew, &block);
    if ((int)function != 0)
        assert_ok(ctx, spmv_map_reduce(ctx, function, p->op, p->type, from, to, n));
    else
        assert_ok(ctx, spmv_reduce_rung(ctx, rung, p->op, p->type, from, to, n));
    void *result = take_result(ctx, to, p->size, rung);
    memcpy(out, result, (size_t)p->size);
    free(result);
    void *after = host_array(n * p->size);
    assert_ok(ctx, spmv_download(ctx, from, after, n * p->size));
    assert_same(after, in, p->size, n, "the input");
    free(after);
    spmv_free(ctx, block);
}

static void names(void **state)
{
    (void)state;
    int count = 0;
    FOR_RUNGS(r)
    {
        assert_non_null(spmv_reduce_rung_name(support_backend, count));
        assert_string_equal(spmv_reduce_rung_name(support_backend, count), r->name);
        count++;
    }
    assert_null(spmv_reduce_rung_name(support_backend, count));
    assert_null(spmv_reduce_rung_name(support_backend, count + 1));
    assert_null(spmv_reduce_rung_name(support_backend, -1));
    assert_null(spmv_reduce_rung_name(SPMV_BACKEND_AUTO, 0));
    assert_null(spmv_reduce_rung_name((spmv_backend)99, 0));
}

/* Launches of many blocks take long where the host emulates the GPU, so each pair gets only some
 * sizes there. */
static bool is_taken(int pair, int size)
{
#ifdef HOST_CUDA
    return (pair + size) % 5 == 0 || (pair == 0 && sizes[size] <= 4097);
#else
    (void)pair;
    (void)size;
    return true;
#endif
}

static void every_rung_and_pair_at_the_seams(void **state)
{
    spmv_context *ctx = *state;
    _Alignas(16) char want[32], got[32];
    FOR_PAIRS(p)
    for (int k = 0; k < SIZES; k++) {
        if (!is_taken((int)(p - pairs), k))
            continue;
        const int64_t n = sizes[k];
        void *in = values_in_any_order(p, n, 51 + (uint64_t)n);
        oracle_reduce(p, in, 0, n, want);
        FOR_RUNGS(r)
        {
            if (r->reorders && !spmv_op_commutes(p->op))
                continue;
            reduce(ctx, r->name, (spmv_function)0, p, in, n, k % 3, got);
            if (memcmp(got, want, (size_t)p->size) != 0)
                fail_msg("%s, rung %s, n = %lld: another result", p->name, r->name, (long long)n);
        }
        free(in);
    }
}

/* The last nonzero at many positions; the nonzero before it must not be the result. This checks
 * operand order. */
static void order_of_operands(void **state)
{
    spmv_context *ctx = *state;
    const struct pair *const p = pair_of(SPMV_LAST, SPMV_I32);
    const int64_t n = 30011;
    int32_t *x = host_array(n * 4), got;
    FOR_RUNGS(r)
    for (int64_t at = 1; at < n && !r->reorders; at += 3001) {
        memset(x, 0, (size_t)n * 4);
        x[at - 1] = 77;
        x[at] = (int32_t)at;
        reduce(ctx, r->name, (spmv_function)0, p, x, n, (int)(at % 2), &got);
        if (got != at)
            fail_msg("rung %s: %d instead of %lld", r->name, got, (long long)at);
    }
    free(x);
}

static void those_that_reorder_refuse(void **state)
{
    spmv_context *ctx = *state;
    const int64_t x[3] = {1, 2, 3};
    void *in = support_upload(ctx, x, sizeof x), *out = guarded_result(ctx, 8);
    FOR_RUNGS(r)
    for (int64_t n = 0; n < 4; n += 3) {
        const spmv_status st = spmv_reduce_rung(ctx, r->name, SPMV_LAST, SPMV_I64, in, out, n);
        if (st != (r->reorders ? SPMV_ERROR_COMMUTE : SPMV_OK))
            fail_msg("rung %s, last, n = %lld: %s", r->name, (long long)n, spmv_status_name(st));
        if (r->reorders) {
            assert_non_null(strstr(spmv_last_error(ctx), r->name));
            assert_non_null(strstr(spmv_last_error(ctx), "last is not commutative"));
        }
    }
    free(take_result(ctx, out, 8, "refused"));
    spmv_free(ctx, in);
}

/* With full mantissas every parenthesization gives other bits. A rung must give the bits of its
 * first run every time and for any alignment. The GPU emulation runs the threads in a different
 * order each time. */
static void same_bits_every_run(void **state)
{
    (void)state;
    const int64_t n = 70001;
    const spmv_type types[] = {SPMV_F32, SPMV_F64};
    _Alignas(16) char first[32], got[32];
    for (int t = 0; t < 2; t++) {
        const struct pair *const p = pair_of(SPMV_ADD, types[t]);
        void *in = pair_values(p, n, false, 57);
        FOR_RUNGS(r)
        for (int run = 0; run < 4 && r->repeats; run++) {
            spmv_context *ctx = support_context_on(support_backend, 1 + run);
            reduce(ctx, r->name, (spmv_function)0, p, in, n, run, run == 0 ? first : got);
            if (run > 0)
                assert_same(got, first, p->size, 1, r->name);
            spmv_context_destroy(ctx);
        }
        free(in);
    }
}

static void rounding_stays_in_its_bound(void **state)
{
    spmv_context *ctx = *state;
    const struct pair *const p = pair_of(SPMV_ADD, SPMV_F64);
    const int64_t n = 70001;
    double *x = pair_values(p, n, false, 59), got = 0;
    const struct bounded_sum exact = bounded_sum(x, n);
    FOR_RUNGS(r)
    {
        reduce(ctx, r->name, (spmv_function)0, p, x, n, 0, &got);
        check_sum(exact, got, r->name);
    }
    free(x);
}

static void check_map_reduce(spmv_context *ctx, spmv_function f, const struct pair *p, const void *in, int64_t n,
                             int turn)
{
    _Alignas(16) char want[32], got[32];
    void *block, *const from = upload_behind(ctx, p, in, n, 0, &block);
    assert_ok(ctx, spmv_map(ctx, f, p->type, from, from, n));
    void *const to = guarded_result(ctx, p->size);
    assert_ok(ctx, spmv_reduce(ctx, p->op, p->type, from, to, n));
    void *const result = take_result(ctx, to, p->size, p->name);
    memcpy(want, result, (size_t)p->size);
    free(result);
    spmv_free(ctx, block);
    reduce(ctx, "map_reduce", f, p, in, n, turn % 2, got);
    if (memcmp(got, want, (size_t)p->size) != 0) {
        double a = 0, b = 0;
        memcpy(&a, want, 8);
        memcpy(&b, got, 8);
        if (!(p->type == SPMV_F64 && a != a && b != b)) /* any NaN equals any other */
            fail_msg("%s of %s, n = %lld: another result", p->name, spmv_function_name(f), (long long)n);
    }
}

/* Gives the bits of a map followed by a reduce, for every function, operator and type. */
static void map_reduce_is_map_then_reduce(void **state)
{
    static const int64_t lengths[] = {1, 33, 4097, 30011};
    check_maps(*state, check_map_reduce, lengths, 4);
}

static void map_reduce_by_hand(void **state)
{
    spmv_context *ctx = *state;
    const double x[] = {3, -4, 12, -1};
    const int32_t i[] = {-5, 2, -7};
    double got = 0;
    int32_t got_i = 0;
    reduce(ctx, "sum of squares", SPMV_MAP_SQUARE, pair_of(SPMV_ADD, SPMV_F64), x, 4, 0, &got);
    assert_true(got == 170);
    reduce(ctx, "largest magnitude", SPMV_MAP_ABS, pair_of(SPMV_MAX, SPMV_F64), x, 4, 1, &got);
    assert_true(got == 12);
    reduce(ctx, "nothing", SPMV_MAP_ABS, pair_of(SPMV_MUL, SPMV_F64), x, 0, 0, &got);
    assert_true(got == 1);
    reduce(ctx, "smallest negative", SPMV_MAP_NEG, pair_of(SPMV_MIN, SPMV_I32), i, 3, 1, &got_i);
    assert_int_equal(got_i, -2);
}

static void statuses(void **state)
{
    spmv_context *ctx = *state;
    const double x[2] = {1, 2};
    void *in = support_upload(ctx, x, sizeof x), *out = guarded_result(ctx, 8);
    const char *const first = rungs()->name;
    assert_fails(ctx, spmv_reduce_rung(ctx, "bush", SPMV_ADD, SPMV_F64, in, out, 2), SPMV_ERROR_METHOD,
                 "unknown rung \"bush\"");
    FOR_RUNGS(r)
    assert_non_null(strstr(spmv_last_error(ctx), r->name));
    assert_fails(ctx, spmv_reduce_rung(ctx, "", SPMV_ADD, SPMV_F64, in, out, 2), SPMV_ERROR_METHOD, "auto");
    assert_fails(ctx, spmv_reduce_rung(ctx, first, SPMV_ADD, SPMV_F64, in, out, -7), SPMV_ERROR_ARGUMENT, "n = -7");
    assert_fails(ctx, spmv_reduce_rung(ctx, first, SPMV_ADD, SPMV_F64, NULL, out, 2), SPMV_ERROR_ARGUMENT, "in is");
    assert_fails(ctx, spmv_reduce_rung(ctx, first, SPMV_ADD, SPMV_F64, in, NULL, 2), SPMV_ERROR_ARGUMENT, "out is");
    assert_fails(ctx, spmv_reduce_rung(ctx, first, (spmv_op)9, SPMV_F64, in, out, 2), SPMV_ERROR_TYPE, "f64");
    assert_fails(ctx, spmv_map_reduce(ctx, SPMV_MAP_SQRT, SPMV_ADD, SPMV_I32, in, out, 2), SPMV_ERROR_TYPE, "sqrt");
    assert_fails(ctx, spmv_map_reduce(ctx, SPMV_MAP_ABS, (spmv_op)9, SPMV_F64, in, out, 2), SPMV_ERROR_TYPE, "f64");
    assert_fails(ctx, spmv_map_reduce(ctx, SPMV_MAP_ABS, SPMV_ADD, SPMV_F64, in, out, -1), SPMV_ERROR_ARGUMENT, "-1");
    assert_fails(ctx, spmv_map_reduce(ctx, SPMV_MAP_ABS, SPMV_ADD, SPMV_F64, NULL, out, 1), SPMV_ERROR_ARGUMENT, "in");
    uint8_t *untouched = take_result(ctx, out, 8, "statuses");
    for (int b = 0; b < 8; b++)
        assert_int_equal(untouched[b], GUARD_BYTE);
    free(untouched);
    void *const defaults = guarded_result(ctx, 8);
    assert_ok(ctx, spmv_reduce_rung(ctx, NULL, SPMV_ADD, SPMV_F64, in, defaults, 2));
    double *three = take_result(ctx, defaults, 8, "the default");
    assert_true(*three == 3);
    free(three);
    spmv_free(ctx, in);
}

/* The events of a trace. */
struct told {
    int steps;
    int64_t operations;
    double cells[16];
    char text[1024];
};

static void listen(const spmv_trace *trace, void *user)
{
    struct told *const told = user;
    told->steps++;
    told->operations = trace->operations;
    assert_true(trace->n > 0 && trace->n <= 256);
    assert_int_equal(trace->type, SPMV_F64);
    memcpy(told->cells, trace->host_cells, (size_t)(trace->n < 16 ? trace->n : 16) * 8);
    if (strlen(told->text) + strlen(trace->label) + 2 < sizeof told->text)
        strcat(strcat(told->text, trace->label), ";");
}

/* The arrays of the tree, by hand, and the count of additions: n - 1, plus those with identities
 * where a rung pads. */
static void traces(void **state)
{
    spmv_context *ctx = *state;
    const double x[8] = {3, 1, 7, 0, 4, 1, 6, 3};
    double out = 0;
    struct told told = {0};
    assert_ok(ctx, spmv_reduce_trace(ctx, "tree", SPMV_ADD, SPMV_F64, x, &out, 8, listen, &told));
    assert_true(out == 25 && told.cells[0] == 25);
    assert_int_equal(told.steps, 3);
    assert_int_equal(told.operations, 7);
    told = (struct told){0};
    assert_ok(ctx, spmv_reduce_trace(ctx, NULL, SPMV_ADD, SPMV_F64, x, &out, 8, listen, &told));
    /* Odd cells keep their input; even cells hold the partial sum of their last step. */
    const double divergent[8] = {25, 1, 7, 0, 14, 1, 9, 3};
    assert_memory_equal(told.cells, divergent, sizeof divergent);
    assert_int_equal(told.steps, 10);
    assert_int_equal(told.operations, 255);
    assert_non_null(
        strstr(told.text, "every 2 cells: combine with the one 1 on;every 4 cells: combine with the one 2 on;"));
    double many[1024];
    for (int i = 0; i < 1024; i++)
        many[i] = i;
    const struct {
        const char *rung;
        int64_t operations;
    } counts[] = {{"tree", 1023}, {"divergent", 4 * 255 + 255}, {"sequential", 4 * 255 + 255}, {"atomic", 0}};
    for (int k = 0; k < 4; k++) {
        told = (struct told){0};
        assert_ok(ctx, spmv_reduce_trace(ctx, counts[k].rung, SPMV_ADD, SPMV_F64, many, &out, 1024, listen, &told));
        assert_true(out == 1023 * 512);
        if (counts[k].operations > 0)
            assert_int_equal(told.operations, counts[k].operations);
    }
    assert_ok(ctx, spmv_reduce_trace(ctx, "tree", SPMV_MUL, SPMV_F64, NULL, &out, 0, listen, &told));
    assert_true(out == 1);
    assert_fails(ctx, spmv_reduce_trace(ctx, "serial", SPMV_ADD, SPMV_F64, x, &out, 8, listen, &told),
                 SPMV_ERROR_METHOD, "no steps");
    assert_fails(ctx, spmv_reduce_trace(ctx, "bush", SPMV_ADD, SPMV_F64, x, &out, 8, listen, &told), SPMV_ERROR_METHOD,
                 "divergent");
    assert_fails(ctx, spmv_reduce_trace(ctx, "chunked", SPMV_LAST, SPMV_F64, x, &out, 8, listen, &told),
                 SPMV_ERROR_COMMUTE, "last");
    assert_fails(ctx, spmv_reduce_trace(ctx, "tree", SPMV_ADD, SPMV_F64, x, &out, 8, NULL, NULL), SPMV_ERROR_ARGUMENT,
                 "trace");
}

#ifdef HOST_CUDA

/* A captured graph may hold launches only, and scratch must not grow. The rung that finishes on the
 * host must wait, so it is refused. */
static void capture(void **state)
{
    spmv_context *ctx = *state;
    const double x[4] = {1, 2, 3, 4};
    void *in = support_upload(ctx, x, sizeof x), *out = guarded_result(ctx, 8);
    const int64_t kept = host_cuda.allocations;
    host_cuda.capturing = 1;
    const spmv_status on_device = spmv_reduce_rung(ctx, "packs", SPMV_ADD, SPMV_F64, in, out, 4);
    const spmv_status mapped = spmv_map_reduce(ctx, SPMV_MAP_ABS, SPMV_ADD, SPMV_F64, in, out, 4);
    const spmv_status on_host = spmv_reduce_rung(ctx, "chunked:host", SPMV_ADD, SPMV_F64, in, out, 4);
    host_cuda.capturing = 0;
    assert_int_equal(on_device, SPMV_OK);
    assert_int_equal(mapped, SPMV_OK);
    assert_int_equal(on_host, SPMV_ERROR_CAPTURE);
    assert_false(host_cuda.capture_broken);
    assert_int_equal(host_cuda.allocations, kept);
    /* The context stays usable; a reduce of many chunks takes one launch. */
    const int64_t n = 50001, launches = host_cuda.launches;
    double *ones = host_array(n * 8), got = 0;
    for (int64_t i = 0; i < n; i++)
        ones[i] = 1;
    reduce(ctx, "packs", (spmv_function)0, pair_of(SPMV_ADD, SPMV_F64), ones, n, 0, &got);
    assert_true(got == (double)n);
    assert_int_equal(host_cuda.launches - launches, 1);
    support_free(ones, take_result(ctx, out, 8, "captured"));
    spmv_free(ctx, in);
}

#endif

/* "brief": every rung, operator and type, and every mapped function, on several tiles. */
static void each_kernel(void **state)
{
    spmv_context *ctx = *state;
    const int64_t n = 3 * 4096 + 77;
    _Alignas(16) char want[32], got[32];
    FOR_PAIRS(p)
    {
        void *in = values_in_any_order(p, n, 67);
        oracle_reduce(p, in, 0, n, want);
        FOR_RUNGS(r)
        {
            if (r->reorders && !spmv_op_commutes(p->op))
                continue;
            reduce(ctx, r->name, (spmv_function)0, p, in, n, 0, got);
            assert_same(got, want, p->size, 1, r->name);
        }
        for (int f = 1; f < SPMV_FUNCTION_LIMIT; f++)
            if (spmv_function_takes((spmv_function)f, p->type))
                /* Only launched here; other tests check the result. */
                reduce(ctx, "map_reduce", (spmv_function)f, p, in, n, 1, got);
        free(in);
    }
}

int main(int argc, char **argv)
{
    support_begin(argc, argv);
    if (support_brief(argc, argv)) {
        const struct CMUnitTest kernels[] = {with_context(each_kernel)};
        return cmocka_run_group_tests(kernels, NULL, NULL);
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names),
        with_context(every_rung_and_pair_at_the_seams),
        with_context(order_of_operands),
        with_context(those_that_reorder_refuse),
        cmocka_unit_test(same_bits_every_run),
        with_context(rounding_stays_in_its_bound),
        with_context(map_reduce_is_map_then_reduce),
        with_context(map_reduce_by_hand),
        with_context(statuses),
        with_context(traces),
#ifdef HOST_CUDA
        with_context(capture),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

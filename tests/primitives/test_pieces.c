/* Scan and reduce of host arrays in pieces: every operator and type, both kinds, at the seams of
 * grains and pieces, in place; the same bits for any piece size; page-locked arrays; progress and
 * cancelling; the state after a shortage of memory and after a failed call; on a GPU an array
 * larger than the free memory.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifdef SPMV_HAVE_CUDA
#include <cuda_runtime_api.h>
#endif

#include "core/pieces.h"
#include "tests/support/support_pairs.h"

/* Elements of a grain; a small number where the host emulates the GPU. */
enum { U = PIECE_GRAIN };

static spmv_pieces_options pieces_of(int64_t bytes)
{
    spmv_pieces_options options = support_pieces_options();
    assert_int_equal(options.piece_bytes, 0);
    options.piece_bytes = bytes;
    return options;
}

/* The scan of a host array; the caller frees it. */
static void *scan(spmv_context *ctx, spmv_scan_kind kind, const struct pair *p, const void *in, int64_t n,
                  int64_t piece_bytes, bool in_place)
{
    const int64_t bytes = n * p->size;
    const spmv_pieces_options options = pieces_of(piece_bytes);
    char *const from = host_array(bytes), *const out = in_place ? from : host_array(bytes + GUARD);
    memcpy(from, in, (size_t)bytes);
    if (!in_place)
        memset(out, GUARD_BYTE, (size_t)bytes + GUARD);
    assert_ok(ctx, spmv_scan_host(ctx, kind, p->op, p->type, from, out, n, &options));
    if (!in_place) {
        assert_memory_equal(from, in, (size_t)bytes);
        for (int64_t b = bytes; b < bytes + GUARD; b++)
            assert_int_equal((uint8_t)out[b], GUARD_BYTE);
        free(from);
    }
    return out;
}

/* grains: number of grains in a piece */
static void check(spmv_context *ctx, const struct pair *p, int64_t n, int grains)
{
    void *in = pair_values(p, n, true, 17 + (uint64_t)n), *want = host_array(n * p->size);
    const int64_t piece_bytes = grains * (int64_t)U * p->size;
    for (int kind = SPMV_INCLUSIVE; kind <= SPMV_EXCLUSIVE; kind++) {
        oracle_scan(p, (spmv_scan_kind)kind, NULL, in, want, n);
        void *got = scan(ctx, (spmv_scan_kind)kind, p, in, n, piece_bytes, (kind + grains) % 2);
        assert_same(got, want, p->size, n, p->name);
        free(got);
    }
    const spmv_pieces_options options = pieces_of(piece_bytes);
    _Alignas(16) char sum[64], sum_wanted[64];
    assert_ok(ctx, spmv_reduce_host(ctx, p->op, p->type, in, sum, n, &options));
    oracle_reduce(p, in, 0, n, sum_wanted);
    assert_same(sum, sum_wanted, p->size, 1, p->name);
    support_free(in, want);
}

static void every_pair(void **state)
{
    spmv_context *ctx = *state;
    static const int64_t sizes[] = {1, 33, 2 * (int64_t)U + 7};
    FOR_PAIRS(p)
    for (int s = 0; s < 3; s++)
        /* several pieces: every other pair on ref, the others on omp, which cut arrays alike */
        if (s < 2 || U < 2000 || (p - pairs) % 2 == (support_backend == SPMV_BACKEND_OMP))
            check(ctx, p, sizes[s], 1);
}

/* Around grains, and pieces of one and two grains; several times more pieces than are in flight at
 * once. */
static void seams(void **state)
{
    spmv_context *ctx = *state;
    static const int64_t sizes[] = {2,
                                    U - 1,
                                    U,
                                    U + 1,
                                    2 * (int64_t)U,
                                    2 * (int64_t)U + 1,
                                    3 * (int64_t)U,
                                    (int64_t)U * 3 + 1,
                                    (int64_t)U * 4,
                                    (int64_t)U * 7 - 1};
    const struct pair *const some[] = {pair_of(SPMV_LAST, SPMV_I32), pair_of(SPMV_ADD, SPMV_I64),
                                       pair_of(SPMV_MAX, SPMV_F32)};
    for (int s = 0; s < (int)(sizeof sizes / sizeof sizes[0]); s++)
        for (int grains = 1; grains <= 2; grains++)
            /* of large grains one number in turn */
            if (U < 2000 || (s + grains + (support_backend == SPMV_BACKEND_OMP)) % 2 == 0)
                check(ctx, some[(s + grains) % 3], sizes[s], grains);
}

static void nothing(void **state)
{
    spmv_context *ctx = *state;
    double out = 7;
    assert_ok(ctx, spmv_scan_host(ctx, SPMV_INCLUSIVE, SPMV_ADD, SPMV_F64, NULL, NULL, 0, NULL));
    assert_ok(ctx, spmv_reduce_host(ctx, SPMV_MUL, SPMV_F64, NULL, &out, 0, NULL));
    assert_true(out == 1);
}

/* With full mantissas, neither the pieces nor repeated runs change the bits. */
static void pieces_do_not_show(void **state)
{
    (void)state;
    const int64_t n = 6 * (int64_t)U + 5;
    const spmv_type types[] = {SPMV_F32, SPMV_F64};
    for (int t = 0; t < 2; t++) {
        const struct pair *const p = pair_of(SPMV_ADD, types[t]);
        void *in = pair_values(p, n, false, 19), *first = NULL;
        double sum = 0, first_sum = 0;
        for (int run = 0; run < 6; run++) {
            spmv_context *ctx = support_context_on(support_backend, 1 + run % 3);
            const int64_t bytes = run < 5 ? run * U * p->size : 1000 * (int64_t)U * p->size;
            const spmv_pieces_options options = pieces_of(bytes);
            void *got = scan(ctx, SPMV_EXCLUSIVE, p, in, n, bytes, run % 2);
            assert_ok(ctx, spmv_reduce_host(ctx, p->op, p->type, in, run == 0 ? &first_sum : &sum, n, &options));
            if (run == 0)
                first = got;
            assert_same(got, first, p->size, n, "other pieces");
            if (run > 0)
                assert_memory_equal(&sum, &first_sum, sizeof sum);
            if (got != first)
                free(got);
            spmv_context_destroy(ctx);
        }
        support_free(in, first);
    }
}

struct heard {
    int64_t done, total;
    int events, most; /* most: events before it cancels */
};

static int on_event(const spmv_event *event, void *user)
{
    struct heard *const heard = user;
    assert_int_equal(event->kind, SPMV_EVENT_PROGRESS);
    assert_non_null(strstr(event->text, "_host"));
    assert_true(event->done > heard->done || heard->events == 0);
    heard->done = event->done;
    heard->total = event->total;
    return ++heard->events >= heard->most;
}

static void progress_and_cancelling(void **state)
{
    (void)state;
    if (support_backend != SPMV_BACKEND_CUDA)
        skip(); /* no pieces */
    struct heard heard = {.most = 1000};
    spmv_context_options options = support_context_options();
    options.backend = support_backend;
    options.on_event = on_event;
    options.user = &heard;
    spmv_context *ctx = NULL;
    assert_int_equal(spmv_context_create(&options, &ctx), SPMV_OK);
    const struct pair *const p = pair_of(SPMV_ADD, SPMV_I64);
    const int64_t n = 6 * (int64_t)U + 5;
    int64_t *in = pair_values(p, n, true, 23), *want = host_array(n * 8), *out = host_array(n * 8), sum = 77;
    oracle_scan(p, SPMV_INCLUSIVE, NULL, in, want, n);
    const spmv_pieces_options one = pieces_of(U * 8);
    assert_ok(ctx, spmv_scan_host(ctx, SPMV_INCLUSIVE, p->op, p->type, in, out, n, &one));
    assert_int_equal(heard.events, 7);
    assert_true(heard.done == n && heard.total == n);
    assert_same(out, want, 8, n, "with progress");
    memset(out, 0, (size_t)n * 8);
    heard = (struct heard){.most = 3};
    assert_fails(ctx, spmv_scan_host(ctx, SPMV_INCLUSIVE, p->op, p->type, in, out, n, &one), SPMV_CANCELLED,
                 "spmv_scan_host");
    assert_int_equal(heard.events, 3);
    assert_same(out, want, 8, heard.done, "what was there when it was cancelled");
    heard = (struct heard){.most = 1};
    assert_fails(ctx, spmv_reduce_host(ctx, p->op, p->type, in, &sum, n, &one), SPMV_CANCELLED, "spmv_reduce_host");
    assert_int_equal(sum, 77);
    heard = (struct heard){.most = 1000};
    /* the context stays usable */
    assert_ok(ctx, spmv_reduce_host(ctx, p->op, p->type, in, &sum, n, &one));
    assert_int_equal(sum, want[n - 1]);
    spmv_context_destroy(ctx);
    support_free(in, want, out);
}

static void statuses(void **state)
{
    spmv_context *ctx = *state;
    double x[2] = {1, 2}, y[2] = {3, 4};
    spmv_pieces_options options = pieces_of(-1);
#define SCAN(kind, op, type, in, out, n, options, status, text)                                                        \
    assert_fails(ctx, spmv_scan_host(ctx, kind, op, type, in, out, n, options), status, text)
    SCAN(SPMV_INCLUSIVE, SPMV_ADD, SPMV_F64, x, y, -1, NULL, SPMV_ERROR_ARGUMENT, "n = -1");
    SCAN(SPMV_INCLUSIVE, SPMV_ADD, SPMV_F64, NULL, y, 2, NULL, SPMV_ERROR_ARGUMENT, "host_in is NULL");
    SCAN(SPMV_INCLUSIVE, SPMV_ADD, SPMV_F64, x, NULL, 2, NULL, SPMV_ERROR_ARGUMENT, "host_out is NULL");
    SCAN((spmv_scan_kind)2, SPMV_ADD, SPMV_F64, x, y, 2, NULL, SPMV_ERROR_ARGUMENT, "2 is not a kind");
    SCAN(SPMV_INCLUSIVE, (spmv_op)31, SPMV_F64, x, y, 2, NULL, SPMV_ERROR_TYPE, "f64");
    SCAN(SPMV_INCLUSIVE, SPMV_ADD, SPMV_F64, x, y, 2, &options, SPMV_ERROR_ARGUMENT, "pieces of -1 bytes");
    options = (spmv_pieces_options){.size = 3};
    SCAN(SPMV_INCLUSIVE, SPMV_ADD, SPMV_F64, x, y, 2, &options, SPMV_ERROR_ARGUMENT, "spmv_pieces_options_init");
    assert_fails(ctx, spmv_reduce_host(ctx, SPMV_ADD, SPMV_F64, x, NULL, 0, NULL), SPMV_ERROR_ARGUMENT, "host_out");
    assert_fails(ctx, spmv_reduce_host(ctx, SPMV_ADD, SPMV_F64, NULL, y, 2, NULL), SPMV_ERROR_ARGUMENT, "host_in");
    assert_true(y[0] == 3 && y[1] == 4);
}

#ifdef SPMV_HAVE_CUDA

/* The device copies directly from these arrays: no buffers, the same bits. */
static void page_locked_arrays(void **state)
{
    if (support_backend != SPMV_BACKEND_CUDA)
        skip();
    spmv_context *ctx = *state;
    const struct pair *const p = pair_of(SPMV_ADD, SPMV_F64);
    const int64_t n = 5 * (int64_t)U + 3;
    double *in = pair_values(p, n, false, 29), *want = scan(ctx, SPMV_INCLUSIVE, p, in, n, U * 8, false);
    void *from = NULL, *to = NULL;
    assert_int_equal(cudaHostAlloc(&from, (size_t)n * 8, 0), cudaSuccess);
    assert_int_equal(cudaHostAlloc(&to, (size_t)n * 8, 0), cudaSuccess);
    memcpy(from, in, (size_t)n * 8);
    memset(to, 0, (size_t)n * 8);
    const spmv_pieces_options options = pieces_of(U * 8);
    /* both arrays page-locked, only one of them, in place */
    for (int form = 0; form < 4; form++) {
        double *const pageable = host_array(n * 8);
        void *const out = form == 1 ? pageable : form == 3 ? from : to;
        const void *const source = form == 2 ? (void *)in : from;
        assert_ok(ctx, spmv_scan_host(ctx, SPMV_INCLUSIVE, p->op, p->type, source, out, n, &options));
        assert_same(out, want, 8, n, "page-locked");
        memset(to, 0, (size_t)n * 8);
        free(pageable);
    }
    assert_int_equal(cudaFreeHost(from), cudaSuccess);
    assert_int_equal(cudaFreeHost(to), cudaSuccess);
    support_free(in, want);
}

#endif

#ifdef HOST_CUDA

/* The caller's current device stays; a capture is refused but not broken; pieces shrink where
 * memory is short; a failing device leaves nothing allocated. */
static void what_is_left(void **state)
{
    (void)state;
    if (support_backend != SPMV_BACKEND_CUDA)
        skip();
    const int64_t blocks = host_cuda.allocations, others = host_cuda.others;
    const struct pair *const p = pair_of(SPMV_ADD, SPMV_I64);
    const int64_t n = 9 * (int64_t)U;
    int64_t *in = pair_values(p, n, true, 31), *want = host_array(n * 8), *out = host_array(n * 8);
    oracle_scan(p, SPMV_INCLUSIVE, NULL, in, want, n);
    spmv_context *ctx = support_context();
    assert_int_equal(cudaSetDevice(1), cudaSuccess);
    const int64_t kept = host_cuda.others;
    /* Memory for three pieces of two grains; a default piece has nine. */
    host_cuda.most_bytes = 3 * (2 * U + 2) * 8 + 4 * 256;
    assert_ok(ctx, spmv_scan_host(ctx, SPMV_INCLUSIVE, p->op, p->type, in, out, n, NULL));
    host_cuda.most_bytes = (size_t)1 << 33;
    assert_same(out, want, 8, n, "short of memory");
    assert_int_equal(host_cuda.others, kept + 1); /* the buffers */
    const int64_t locked = host_cuda.locked;
    assert_ok(ctx, spmv_scan_host(ctx, SPMV_INCLUSIVE, p->op, p->type, in, out, 2 * U, NULL));
    assert_true(host_cuda.others == kept + 1 && host_cuda.locked == locked); /* the same buffers */
    int device = -1;
    assert_int_equal(cudaGetDevice(&device), cudaSuccess);
    assert_int_equal(device, 1);
    host_cuda.capturing = 1;
    assert_fails(ctx, spmv_scan_host(ctx, SPMV_INCLUSIVE, p->op, p->type, in, out, n, NULL), SPMV_ERROR_CAPTURE,
                 "captured");
    host_cuda.capturing = 0;
    assert_int_equal(host_cuda.capture_broken, 0);
    /* No memory for a single grain. */
    spmv_context *const poor = support_context();
    host_cuda.most_bytes = U;
    assert_fails(poor, spmv_scan_host(poor, SPMV_INCLUSIVE, p->op, p->type, in, out, n, NULL), SPMV_ERROR_MEMORY,
                 "device memory");
    host_cuda.most_bytes = (size_t)1 << 33;
    assert_ok(poor, spmv_scan_host(poor, SPMV_INCLUSIVE, p->op, p->type, in, out, n, NULL));
    /* Kernel launches fail. */
    host_cuda.launch_error = cudaErrorIllegalAddress;
    assert_fails(poor, spmv_scan_host(poor, SPMV_INCLUSIVE, p->op, p->type, in, out, n, NULL), SPMV_ERROR_DEVICE,
                 "scan");
    host_cuda.launch_error = cudaSuccess;
    spmv_context_destroy(poor);
    spmv_context_destroy(ctx);
    assert_int_equal(cudaSetDevice(0), cudaSuccess);
    assert_int_equal(host_cuda.allocations, blocks);
    assert_int_equal(host_cuda.others, others);
    support_free(in, want, out);
}

#elif defined(SPMV_HAVE_CUDA)

/* Nearly all device memory is taken; the array is several times larger than the rest. */
static void larger_than_what_is_left(void **state)
{
    if (support_backend != SPMV_BACKEND_CUDA)
        skip();
    enum { MIB = 1 << 20 };
    spmv_context *ctx = *state;
    size_t free_bytes = 0, all_bytes = 0;
    void *ballast = NULL;
    const int64_t left = 300 * (int64_t)MIB, n = 4 * left / 8;
    assert_int_equal(cudaMemGetInfo(&free_bytes, &all_bytes), cudaSuccess);
    if ((int64_t)free_bytes > left)
        assert_ok(ctx, spmv_alloc(ctx, (int64_t)free_bytes - left, &ballast));
    void *whole = NULL;
    assert_int_equal(spmv_alloc(ctx, n * 8, &whole), SPMV_ERROR_MEMORY);
    int64_t *x = host_array(n * 8), sum = 0;
    for (int64_t i = 0; i < n; i++)
        x[i] = i % 1000 - 300;
    assert_ok(ctx, spmv_reduce_host(ctx, SPMV_ADD, SPMV_I64, x, &sum, n, NULL));
    assert_ok(ctx, spmv_scan_host(ctx, SPMV_INCLUSIVE, SPMV_ADD, SPMV_I64, x, x, n, NULL));
    int64_t all = 0;
    for (int64_t i = 0; i < n; i++) {
        all += i % 1000 - 300;
        if (x[i] != all)
            fail_msg("element %lld is %lld, not %lld", (long long)i, (long long)x[i], (long long)all);
    }
    assert_int_equal(sum, all);
    spmv_free(ctx, ballast);
    free(x);
}

#endif

int main(int argc, char **argv)
{
    support_begin(argc, argv);
    const struct CMUnitTest tests[] = {
        with_context(every_pair),
        with_context(seams),
        with_context(nothing),
        cmocka_unit_test(pieces_do_not_show),
        cmocka_unit_test(progress_and_cancelling),
        with_context(statuses),
#ifdef SPMV_HAVE_CUDA
        with_context(page_locked_arrays),
#endif
#ifdef HOST_CUDA
        cmocka_unit_test(what_is_left),
#elif defined(SPMV_HAVE_CUDA)
        with_context(larger_than_what_is_left),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

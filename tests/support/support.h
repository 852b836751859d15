/* Shared by all test programs: cmocka, the backend named in argv[1], a context on it, random
 * numbers.
 *
 * A test program ends with SUPPORT_MAIN(with_context(...), cmocka_unit_test(...), ...). A program
 * that takes more arguments than the backend has its own main, which starts with
 * support_begin(argc, argv).
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SUPPORT_H
#define SUPPORT_H

/* cmocka.h needs these four */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <spmv/spmv.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/reals.h"
#include "core/splitmix.h"

enum { SKIPPED = 77 };

/* support_NAME_options(): the defaults of spmv_NAME_options. */
#define SUPPORT_OPTIONS(name)                                                                                          \
    static inline spmv_##name##_options support_##name##_options(void)                                                 \
    {                                                                                                                  \
        spmv_##name##_options options;                                                                                 \
        spmv_##name##_options_init(&options, sizeof options);                                                          \
        return options;                                                                                                \
    }
SUPPORT_OPTIONS(cg)
SUPPORT_OPTIONS(context)
SUPPORT_OPTIONS(generate)
SUPPORT_OPTIONS(spgemm)
SUPPORT_OPTIONS(pieces)
SUPPORT_OPTIONS(plan)
SUPPORT_OPTIONS(preconditioner)
SUPPORT_OPTIONS(read)
SUPPORT_OPTIONS(solver)
SUPPORT_OPTIONS(write)

static spmv_backend support_backend = SPMV_BACKEND_AUTO;

#ifdef SOURCE_DIR
/* The source folder; for packed tests (scripts/bundle.sh) the copy of parts of it. */
static inline const char *support_source_dir(void)
{
    const char *const moved = getenv("SPMV_SOURCE_DIR");
    return moved != NULL ? moved : SOURCE_DIR;
}
#endif

static inline bool support_mode(int argc, char **argv, const char *mode)
{
    return argc > 2 && strcmp(argv[2], mode) == 0;
}

/* argv[2] is "brief": run each kernel once, on several tiles, for checkers that slow a GPU down a
 * hundredfold. */
static inline bool support_brief(int argc, char **argv)
{
    return support_mode(argc, argv, "brief");
}

/* Reads argv[1]. Exits as skipped if this machine does not have the backend, and with 1 if it has but
 * the backend cannot be opened: a GPU whose memory is full. Then exits with 0 if argv[2] is
 * "none". */
static inline void support_begin(int argc, char **argv)
{
    if (argc < 2)
        return;
    if (spmv_backend_parse(argv[1], &support_backend) != SPMV_OK) {
        fprintf(stderr, "no backend %s\n", argv[1]);
        exit(1);
    }
    spmv_context_options options = support_context_options();
    options.backend = support_backend;
    spmv_context *ctx = NULL;
    const spmv_status st = spmv_context_create(&options, &ctx);
    if (st == SPMV_ERROR_NO_DEVICE) {
        printf("skipped: %s\n", spmv_last_error(NULL));
        exit(SKIPPED);
    }
    if (st != SPMV_OK) {
        fprintf(stderr, "no context on %s: %s\n", argv[1], spmv_last_error(NULL));
        exit(1);
    }
    spmv_context_destroy(ctx);
    if (support_mode(argc, argv, "none"))
        exit(0);
}

/* main: runs these cmocka tests in order. */
#define SUPPORT_MAIN(...)                                                                                              \
    int main(int argc, char **argv)                                                                                    \
    {                                                                                                                  \
        support_begin(argc, argv);                                                                                     \
        const struct CMUnitTest tests[] = {__VA_ARGS__};                                                               \
        return cmocka_run_group_tests(tests, NULL, NULL);                                                              \
    }

/* Like SUPPORT_MAIN; with "brief" it runs only brief_tests, a list in parentheses. */
#define SUPPORT_MAIN_OR_BRIEF(brief_tests, ...)                                                                        \
    int main(int argc, char **argv)                                                                                    \
    {                                                                                                                  \
        support_begin(argc, argv);                                                                                     \
        const struct CMUnitTest some[] = {SUPPORT_LIST brief_tests}, tests[] = {__VA_ARGS__};                          \
        return support_brief(argc, argv) ? cmocka_run_group_tests(some, NULL, NULL)                                    \
                                         : cmocka_run_group_tests(tests, NULL, NULL);                                  \
    }
#define SUPPORT_LIST(...) __VA_ARGS__

static inline spmv_context *support_context_with(const spmv_context_options *options)
{
    spmv_context *ctx = NULL;
    if (spmv_context_create(options, &ctx) != SPMV_OK)
        fail_msg("no context on %s: %s", spmv_backend_name(options->backend), spmv_last_error(NULL));
    return ctx;
}

/* A context on a backend with this number of threads (0: the default). */
static inline spmv_context *support_context_on(spmv_backend backend, int threads)
{
    spmv_context_options options = support_context_options();
    options.backend = backend;
    options.threads = threads;
    return support_context_with(&options);
}

/* A context on this device (-1: the default) and stream of cuda; stream: NULL for its own. */
static inline spmv_context *support_context_of(int device, void *stream)
{
    spmv_context_options options = support_context_options();
    options.backend = SPMV_BACKEND_CUDA;
    options.device = device;
    options.stream = stream;
    return support_context_with(&options);
}

/* A context without options. */
static inline spmv_context *support_context_by_default(void)
{
    spmv_context *ctx = NULL;
    assert_int_equal(spmv_context_create(NULL, &ctx), SPMV_OK);
    return ctx;
}

/* A context on omp that tells a function its events. */
static inline spmv_context *support_context_telling(int threads, spmv_event_fn tell, void *user)
{
    spmv_context_options options = support_context_options();
    options.backend = SPMV_BACKEND_OMP;
    options.threads = threads;
    options.on_event = tell;
    options.user = user;
    return support_context_with(&options);
}

/* A context on the backend of argv[1]. */
static inline spmv_context *support_context(void)
{
    return support_context_on(support_backend, 0);
}

/* The array in the context's memory still has these bytes. */
static inline void assert_holds(spmv_context *ctx, const void *memory, const void *expected, size_t bytes)
{
    void *const copy = malloc(bytes);
    assert_non_null(copy);
    assert_int_equal(spmv_download(ctx, memory, copy, (int64_t)bytes), SPMV_OK);
    assert_memory_equal(copy, expected, bytes);
    free(copy);
}

/* Setup and teardown of with_context. */
static inline int support_open(void **state)
{
    *state = support_context();
    return 0;
}
static inline int support_close(void **state)
{
    spmv_context_destroy(*state);
    return 0;
}

/* A test that finds a new context on the backend of argv[1] in *state. The context is destroyed
 * after the test, also if it failed. */
#define with_context(test) cmocka_unit_test_setup_teardown(test, support_open, support_close)

/* The same on omp with this number of threads. */
static inline int support_open_omp(void **state)
{
    *state = support_context_on(SPMV_BACKEND_OMP, (int)(intptr_t)*state);
    return 0;
}
#define with_omp(test, threads)                                                                                        \
    cmocka_unit_test_prestate_setup_teardown(test, support_open_omp, support_close, (void *)(intptr_t)(threads))

/* Whether the host plays the context's GPU (tests/emulated_gpu). */
static inline bool support_host_plays(const spmv_context *ctx)
{
    return strstr(spmv_context_describe(ctx), "host playing") != NULL;
}

/* Fails the test with the context's message unless the call returns SPMV_OK. */
#define assert_ok(ctx, call)                                                                                           \
    do {                                                                                                               \
        const spmv_status status_ = (call);                                                                            \
        if (status_ != SPMV_OK)                                                                                        \
            fail_msg("%s: %s: %s", #call, spmv_status_name(status_), spmv_last_error(ctx));                            \
    } while (0)

/* Fails unless the call returns the status and leaves a message that contains text. */
#define assert_fails(ctx, call, expected, text)                                                                        \
    do {                                                                                                               \
        const spmv_status status_ = (call);                                                                            \
        if (status_ != (expected))                                                                                     \
            fail_msg("%s: %s instead of %s (%s)", #call, spmv_status_name(status_), spmv_status_name(expected),        \
                     spmv_last_error(ctx));                                                                            \
        if (strstr(spmv_last_error(ctx), (text)) == NULL)                                                              \
            fail_msg("%s: message \"%s\" does not contain \"%s\"", #call, spmv_last_error(ctx), (text));               \
    } while (0)

/* Random bits, the same on every machine. */
static inline uint64_t support_random(uint64_t *state)
{
    return splitmix_next(state);
}

/* Uniform in [-1, 1), all 53 bits random. */
static inline double support_uniform(uint64_t *state)
{
    return (double)(int64_t)support_random(state) * 0x1p-63;
}

/* count elements of 0 in host memory, to be released with free; never NULL. */
static inline void *support_zeros(int64_t count, size_t size)
{
    void *const memory = calloc((size_t)count + 1, size);
    assert_non_null(memory);
    return memory;
}

static inline void support_free_each(void *const *memory, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free(memory[i]);
}

/* Releases each of these pointers with free. */
#define support_free(...)                                                                                              \
    support_free_each((void *const[]){__VA_ARGS__}, sizeof((void *[]){__VA_ARGS__}) / sizeof(void *))

static inline void support_free_each_in(spmv_context *ctx, void *const *memory, size_t count)
{
    for (size_t i = 0; i < count; i++)
        spmv_free(ctx, memory[i]);
}

/* Releases each of these pointers into the context's memory. */
#define support_free_in(ctx, ...)                                                                                      \
    support_free_each_in(ctx, (void *const[]){__VA_ARGS__}, sizeof((void *[]){__VA_ARGS__}) / sizeof(void *))

/* A matrix in host memory with offsets of row_ptr_bits; val: NULL for a pattern. */
static inline spmv_csr support_csr_with(int64_t rows, int64_t cols, int64_t nnz, const void *row_ptr, int row_ptr_bits,
                                        const int32_t *col, const void *val, spmv_type type)
{
    return (spmv_csr){.rows = rows,
                      .cols = cols,
                      .nnz = nnz,
                      .row_ptr = row_ptr,
                      .row_ptr_bits = row_ptr_bits,
                      .col = col,
                      .val = val,
                      .type = type,
                      .memory = SPMV_MEMORY_HOST};
}

/* The same in the context's memory. */
static inline spmv_csr support_csr_there(int64_t rows, int64_t cols, int64_t nnz, const void *row_ptr, int row_ptr_bits,
                                         const int32_t *col, const void *val, spmv_type type)
{
    spmv_csr a = support_csr_with(rows, cols, nnz, row_ptr, row_ptr_bits, col, val, type);
    a.memory = SPMV_MEMORY_CONTEXT;
    return a;
}

/* In host memory, with offsets of 64 bits. */
static inline spmv_csr support_view(int64_t rows, int64_t cols, int64_t nnz, const int64_t *row_ptr, const int32_t *col,
                                    const void *val, spmv_type type)
{
    return support_csr_with(rows, cols, nnz, row_ptr, 64, col, val, type);
}

/* A view of a small f64 matrix in host arrays, with 32-bit offsets. */
static inline spmv_csr support_csr(int64_t rows, int64_t cols, const int32_t *row_ptr, const int32_t *col,
                                   const double *val)
{
    return support_csr_with(rows, cols, row_ptr[rows], row_ptr, 32, col, val, SPMV_F64);
}

/* An epilogue with these arrays. */
static inline spmv_epilogue support_epilogue(const void *w, void *dot, const void *gamma, void *z)
{
    spmv_epilogue e;
    spmv_epilogue_init(&e, sizeof e);
    e.w = w;
    e.dot = dot;
    e.gamma = gamma;
    e.z = z;
    return e;
}

/* Copies host data into context memory. */
static inline void *support_upload(spmv_context *ctx, const void *host, int64_t bytes)
{
    void *memory = NULL;
    assert_ok(ctx, spmv_alloc(ctx, bytes, &memory));
    assert_ok(ctx, spmv_upload(ctx, host, memory, bytes));
    return memory;
}

/* n numbers as elements skew, skew + 1, ... of this real type; release with free. */
static inline void *support_as(spmv_type type, const double *values, int64_t n, int64_t skew)
{
    void *const copy = support_zeros(n + skew, sizeof(double));
    for (int64_t i = 0; i < n; i++)
        real_set(type, copy, skew + i, values[i]);
    return copy;
}

/* The same in context memory. */
static inline void *support_upload_as(spmv_context *ctx, spmv_type type, const double *values, int64_t n, int64_t skew)
{
    void *const copy = support_as(type, values, n, skew);
    void *const memory = support_upload(ctx, copy, (n + skew) * (int64_t)spmv_type_size(type));
    free(copy);
    return memory;
}

/* n elements of this real type in context memory, as doubles; release with free. */
static inline double *support_download_as(spmv_context *ctx, spmv_type type, const void *memory, int64_t n)
{
    double *const values = support_zeros(n, sizeof *values);
    void *const copy = support_zeros(n, sizeof *values);
    assert_ok(ctx, spmv_download(ctx, memory, copy, n * (int64_t)spmv_type_size(type)));
    for (int64_t i = 0; i < n; i++)
        values[i] = real_at(type, copy, i);
    free(copy);
    return values;
}

/* to = n elements of this real type in context memory, as doubles */
static inline void support_fetch_as(spmv_context *ctx, spmv_type type, const void *memory, int64_t n, double *to)
{
    double *const values = support_download_as(ctx, type, memory, n);
    memcpy(to, values, (size_t)n * sizeof *to);
    free(values);
}

/* Whether a method takes row offsets of 64 bits, which plans keep for 2^31 nonzeros and more only. Tests put them into
 * smaller plans. */
static inline bool support_takes_wide_offsets(const char *method)
{
    return strcmp(method, "abreast") != 0;
}

/* A plan of the method (NULL: chosen), for op(A) and vectors of this type (SPMV_TYPE_DEFAULT: chosen). */
static inline spmv_plan *support_plan(spmv_context *ctx, const spmv_csr *a, const char *method,
                                      spmv_operation operation, spmv_type type)
{
    spmv_plan_options options;
    spmv_plan *plan = NULL;
    spmv_plan_options_init(&options, sizeof options);
    options.method = method;
    options.operation = operation;
    options.type = type;
    assert_ok(ctx, spmv_plan_create(ctx, a, &options, &plan));
    return plan;
}

#endif

/* Products and solves on the backend cuda: every kernel at the seams of its threads, warps and
 * grids; CUDA graphs on the application's stream; repeatable bits, also beside other work. Runs on
 * a GPU and on the host emulation of CUDA.
 *
 * The matrices and vectors of the first two groups hold small integers, so every order of summation
 * gives the same floating-point result and results are compared for equality.
 *
 * argv[2] selects what runs:
 *
 *   (none)    everything
 *   "brief"   each kernel once, for checkers that slow a GPU down a hundredfold
 *   "repeat"  only the repetitions, many, while the device does other work
 *   "none"    nothing; only finds out whether there is a GPU
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "tests/support/support_stream.h"

#include <math.h>
#include <stdbool.h>

#include "product/plan_internal.h"

/* ------------------------------------------------------ counting allocations */

static int64_t allocations;

cudaError_t __real_cudaMalloc(void **memory, size_t bytes);
cudaError_t __wrap_cudaMalloc(void **memory, size_t bytes);
cudaError_t __real_cudaMallocFromPoolAsync(void **memory, size_t bytes, cudaMemPool_t pool, cudaStream_t stream);
cudaError_t __wrap_cudaMallocFromPoolAsync(void **memory, size_t bytes, cudaMemPool_t pool, cudaStream_t stream);
spmv_status __real_host_alloc(spmv_context *ctx, int64_t bytes, const char *what, void **memory);
spmv_status __wrap_host_alloc(spmv_context *ctx, int64_t bytes, const char *what, void **memory);

cudaError_t __wrap_cudaMalloc(void **memory, size_t bytes)
{
    allocations++;
    return __real_cudaMalloc(memory, bytes);
}

cudaError_t __wrap_cudaMallocFromPoolAsync(void **memory, size_t bytes, cudaMemPool_t pool, cudaStream_t stream)
{
    allocations++;
    return __real_cudaMallocFromPoolAsync(memory, bytes, pool, stream);
}

spmv_status __wrap_host_alloc(spmv_context *ctx, int64_t bytes, const char *what, void **memory)
{
    allocations++;
    return __real_host_alloc(ctx, bytes, what, memory);
}

/* ------------------------------------------------------------------ matrices */

static bool real_gpu, brief, repeat_often;

struct matrix {
    int64_t rows, cols;
    int64_t *row_ptr;
    int32_t *col;
    double *val; /* NULL: pattern */
};

/* Row lengths around that of a warp; the same for all rows of a large matrix; one row much longer
 * than the others. */
static int64_t length_of(int64_t rows, int64_t row)
{
    static const int64_t seams[] = {0, 1, 2, 31, 32, 33, 0, 63, 64, 65, 127, 129, 0, 0, 300};
    if (row == rows / 2)
        return 5000;
    return rows > 10000 ? row % 3 : seams[row % (int64_t)(sizeof seams / sizeof seams[0])];
}

/* values: integers from -8 to 8, or uniform in [-1, 1) */
static double draw(bool whole, uint64_t *random)
{
    return whole ? (double)((int)(support_random(random) >> 40) % 17 - 8) : support_uniform(random);
}

static struct matrix make_matrix(int64_t rows, int64_t cols, bool pattern, bool whole)
{
    uint64_t random = (uint64_t)(rows + cols);
    struct matrix m = {.rows = rows, .cols = cols, .row_ptr = support_zeros(rows + 1, sizeof *m.row_ptr)};
    for (int64_t i = 0; i < rows; i++)
        m.row_ptr[i + 1] = m.row_ptr[i] + length_of(rows, i);
    const int64_t nnz = m.row_ptr[rows];
    m.col = support_zeros(nnz, sizeof *m.col);
    m.val = pattern ? NULL : support_zeros(nnz, sizeof *m.val);
    for (int64_t k = 0; k < nnz; k++) {
        m.col[k] = (int32_t)(support_random(&random) % (uint64_t)cols);
        if (!pattern)
            m.val[k] = draw(whole, &random);
    }
    return m;
}

static void free_matrix(struct matrix *m)
{
    support_free(m->row_ptr, m->col, m->val);
}

static double *make_vector(int64_t n, uint64_t seed, bool whole)
{
    double *const v = support_zeros(n, sizeof *v);
    for (int64_t i = 0; i < n; i++)
        v[i] = draw(whole, &seed);
    return v;
}

/* A copy of the values in the type, which the caller frees. */
static void *in_type(spmv_type type, const double *values, int64_t n)
{
    void *const copy = support_zeros(n, sizeof *values);
    for (int64_t i = 0; i < n; i++)
        if (type == SPMV_F32)
            ((float *)copy)[i] = (float)values[i];
        else
            ((double *)copy)[i] = values[i];
    return copy;
}

static void upload_to(spmv_context *ctx, spmv_type type, const double *values, int64_t n, void *memory)
{
    void *const host = in_type(type, values, n);
    assert_ok(ctx, spmv_upload(ctx, host, memory, n * (int64_t)spmv_type_size(type)));
    free(host);
}

static void *upload(spmv_context *ctx, spmv_type type, const double *values, int64_t n)
{
    void *memory = NULL;
    assert_ok(ctx, spmv_alloc(ctx, n * (int64_t)spmv_type_size(type), &memory));
    upload_to(ctx, type, values, n, memory);
    return memory;
}

static spmv_plan *make_plan(spmv_context *ctx, const struct matrix *m, const char *method, spmv_type type,
                            spmv_operation operation)
{
    void *const val = m->val != NULL ? in_type(type, m->val, m->row_ptr[m->rows]) : NULL;
    const spmv_csr a = support_csr_with(m->rows, m->cols, m->row_ptr[m->rows], m->row_ptr, 64, m->col, val, type);
    spmv_plan *plan = support_plan(ctx, &a, method, operation, type);
    free(val);
    return plan;
}

/* Gives the plan 64-bit offsets, which plans normally have only for 2^31 nonzeros and more. */
static void *widen(spmv_context *ctx, const struct matrix *m, spmv_plan *plan)
{
    void *const wide = support_upload(ctx, m->row_ptr, (m->rows + 1) * 8);
    plan_release_state(plan);
    plan->a.row_ptr = wide;
    plan->a.row_ptr_bits = 64;
    assert_ok(ctx, method_prepare(plan));
    return wide;
}

/* ------------------------------------------------------------------ products */

static const double alpha = 2, beta = -3;
static const float alpha32 = 2, beta32 = -3;

/* y = alpha op(A) x + beta y, or y = op(A) x */
static spmv_status apply(spmv_plan *plan, spmv_type type, bool scaled, const void *x, void *y)
{
    if (!scaled)
        return spmv_apply(plan, NULL, x, NULL, y);
    return type == SPMV_F32 ? spmv_apply(plan, &alpha32, x, &beta32, y) : spmv_apply(plan, &alpha, x, &beta, y);
}

/* The product entry by entry, exact for integers. */
static double *product(const struct matrix *m, spmv_operation operation, bool scaled, const double *x, const double *y0)
{
    const bool transposed = operation != SPMV_OPERATION_N;
    const int64_t n = transposed ? m->cols : m->rows;
    double *const y = support_zeros(n, sizeof *y);
    for (int64_t i = 0; i < m->rows; i++)
        for (int64_t k = m->row_ptr[i]; k < m->row_ptr[i + 1]; k++)
            y[transposed ? m->col[k] : i] += (m->val != NULL ? m->val[k] : 1) * x[transposed ? i : m->col[k]];
    for (int64_t i = 0; scaled && i < n; i++)
        y[i] = alpha * y[i] + beta * y0[i];
    return y;
}

static void expect(spmv_context *ctx, const char *what, spmv_type type, const double *expected, const void *memory,
                   int64_t n)
{
    void *const got = support_zeros(n, sizeof *expected);
    assert_ok(ctx, spmv_download(ctx, memory, got, n * (int64_t)spmv_type_size(type)));
    for (int64_t i = 0; i < n; i++) {
        const double y = type == SPMV_F32 ? (double)((float *)got)[i] : ((double *)got)[i];
        if (y != expected[i])
            fail_msg("%s, %s: row %lld of %lld is %g, not %g", what, spmv_type_name(type), (long long)i, (long long)n,
                     y, expected[i]);
    }
    free(got);
}

struct variant {
    spmv_type type;
    spmv_operation operation;
    bool wide, scaled;
};

/* A product scaled as said and, with `both`, one by the same plan that is not. */
static void check_product(spmv_context *ctx, const struct matrix *m, const char *method, struct variant v, bool both)
{
    const bool transposed = v.operation != SPMV_OPERATION_N;
    const int64_t x_n = transposed ? m->rows : m->cols, y_n = transposed ? m->cols : m->rows;
    double *const x = make_vector(x_n, 3, true), *const y0 = make_vector(y_n, 4, true);
    void *const device_x = upload(ctx, v.type, x, x_n);
    spmv_plan *const plan = make_plan(ctx, m, method, v.type, v.operation);
    void *const wide = v.wide && support_takes_wide_offsets(method) ? widen(ctx, m, plan) : NULL;
    for (int k = 0; k < 1 + both; k++) {
        const bool scaled = v.scaled && k == 0;
        double *const expected = product(m, v.operation, scaled, x, y0);
        for (int64_t i = 0; !scaled && i < y_n; i++)
            y0[i] = NAN; /* must not be read */
        void *const device_y = upload(ctx, v.type, y0, y_n);
        assert_ok(ctx, apply(plan, v.type, scaled, device_x, device_y));
        expect(ctx, method, v.type, expected, device_y, y_n);
        spmv_free(ctx, device_y);
        free(expected);
    }
    spmv_plan_destroy(plan);
    support_free_in(ctx, wide, device_x);
    support_free(x, y0);
}

/* Every method, type and width of offsets, with and without values; transposed with 32-bit
 * offsets. On an emulated GPU each second of these; the others if `turn` is odd. */
static void check_matrix(spmv_context *ctx, int64_t rows, int64_t cols, int turn)
{
    for (int pattern = 0; pattern < 2; pattern++) {
        struct matrix m = make_matrix(rows, cols, pattern, true);
        const char *method;
        for (int i = 0; (method = spmv_method_name(SPMV_BACKEND_CUDA, i)) != NULL; i++) {
            for (int number = 0; number < 6; number++) {
                const struct variant v = {.type = number % 2 ? SPMV_F32 : SPMV_F64,
                                          .scaled = true,
                                          .wide = number / 2 == 1,
                                          .operation = number / 2 == 2 ? SPMV_OPERATION_T : SPMV_OPERATION_N};
                if (real_gpu || (turn + pattern + i + number + number / 2) % 2 == 0)
                    check_product(ctx, &m, method, v, true);
            }
        }
        free_matrix(&m);
    }
}

static void products_at_seams(void **state)
{
    spmv_context *const ctx = *state;
    const int64_t rows[] = {133, 1, 3, 4, 5, 127, 128, 129, 1025};
    const size_t count = brief ? 1 : sizeof rows / sizeof rows[0];
    for (size_t r = 0; r < count; r++)
        check_matrix(ctx, rows[r], rows[r] % 2 ? 200 : 1, (int)r);
}

/* More rows than the grid has warps and threads, so each block processes several groups. */
static void products_beyond_the_grid(void **state)
{
    spmv_context *const ctx = *state;
    const struct {
        const char *method;
        int64_t rows;
    } cases[] = {{"vector", 65536 * 4 + 5}, {"scalar", 65536 * 128 + 77}};
    for (size_t k = 0; k < (brief ? 1 : sizeof cases / sizeof cases[0]); k++) {
        struct matrix m = make_matrix(cases[k].rows, 1000, false, true);
        check_product(ctx, &m, cases[k].method, (struct variant){.type = SPMV_F32, .scaled = true}, false);
        free_matrix(&m);
    }
}

/* ---------------------------------------------------------- conjugate gradients */

/* Solves A x = b with b = A * ones from x = 0. Returns a copy of x, which the caller frees. */
static void *solve(spmv_context *ctx, const char *spec, const char *method, spmv_type type, int64_t *n,
                   spmv_cg_result *result)
{
    spmv_matrix *matrix = NULL;
    spmv_csr a;
    assert_ok(ctx, spmv_matrix_generate(ctx, spec, type, &matrix));
    spmv_matrix_view(matrix, &a);
    *n = a.rows;
    spmv_plan_options plan_options = support_plan_options();
    plan_options.method = method;
    spmv_plan *plan = NULL;
    assert_ok(ctx, spmv_plan_create(ctx, &a, &plan_options, &plan));
    double *const host = support_zeros(a.rows, sizeof *host);
    for (int64_t i = 0; i < a.rows; i++)
        host[i] = 1;
    void *const x = upload(ctx, type, host, a.rows), *const b = upload(ctx, type, host, a.rows);
    assert_ok(ctx, spmv_apply(plan, NULL, x, NULL, b));
    spmv_cg_options options = support_cg_options();
    options.rtol = type == SPMV_F32 ? 1e-4 : 1e-10;
    options.zero_start = 1;
    assert_ok(ctx, spmv_cg(plan, b, x, &options, result, sizeof *result));
    assert_ok(ctx, spmv_download(ctx, x, host, a.rows * (int64_t)spmv_type_size(type)));
    support_free_in(ctx, x, b);
    spmv_plan_destroy(plan);
    spmv_matrix_destroy(matrix);
    return host;
}

static void solves(void **state)
{
    spmv_context *const ctx = *state;
    const char *method;
    for (int i = 0; (method = spmv_method_name(SPMV_BACKEND_CUDA, i)) != NULL; i++) {
        for (int t = 0; t < 2; t++) {
            const spmv_type type = t ? SPMV_F32 : SPMV_F64;
            spmv_cg_result result;
            int64_t n = 0;
            void *const x = solve(ctx, "poisson2d:9", method, type, &n, &result);
            assert_true(result.iterations > 5 && result.true_residual <= result.tolerance);
            for (int64_t k = 0; k < n; k++)
                assert_true(fabs((t ? (double)((float *)x)[k] : ((double *)x)[k]) - 1) < (t ? 1e-2 : 1e-8));
            free(x);
        }
    }
}

/* -------------------------------------------------------------------- repeats */

static int repeats(void)
{
    return repeat_often ? 200 : real_gpu ? 20 : 3;
}

/* Concurrent work on another stream. */
struct noise {
    spmv_context *ctx;
    void *values;
    int64_t n;
};

static struct noise make_noise(void)
{
    struct noise noise = {.ctx = support_context(), .n = real_gpu ? 4000000 : 1000};
    const double first = 1, step = 1;
    assert_ok(noise.ctx, spmv_alloc(noise.ctx, noise.n * 8, &noise.values));
    assert_ok(noise.ctx, spmv_map_index(noise.ctx, SPMV_F64, &first, &step, noise.values, noise.n));
    return noise;
}

static void make_more(const struct noise *noise)
{
    for (int i = 0; i < 3; i++)
        assert_ok(noise->ctx, spmv_map(noise->ctx, SPMV_MAP_SQRT, SPMV_F64, noise->values, noise->values, noise->n));
}

static void free_noise(struct noise *noise)
{
    spmv_free(noise->ctx, noise->values);
    spmv_context_destroy(noise->ctx);
}

static void bits_of_products_repeat(void **state)
{
    spmv_context *const ctx = *state;
    struct noise noise = make_noise();
    const int64_t rows = real_gpu ? 9001 : 301;
    struct matrix m = make_matrix(rows, rows, false, false);
    double *const x = make_vector(rows, 5, false);
    const char *method;
    for (int i = 0; (method = spmv_method_name(SPMV_BACKEND_CUDA, i)) != NULL; i++) {
        for (int t = 0; t < 2; t++) {
            const spmv_type type = t ? SPMV_F32 : SPMV_F64;
            const int64_t bytes = rows * (int64_t)spmv_type_size(type);
            const double poison = NAN;
            const float poison32 = NAN;
            void *const device_x = upload(ctx, type, x, rows), *const device_y = upload(ctx, type, x, rows);
            spmv_plan *const plan = make_plan(ctx, &m, method, type, SPMV_OPERATION_N);
            void *const first = support_zeros(rows, 8), *const again = support_zeros(rows, 8);
            for (int repeat = 0; repeat < repeats(); repeat++) {
                make_more(&noise);
                assert_ok(ctx, spmv_map_index(ctx, type, t ? (const void *)&poison32 : (const void *)&poison, NULL,
                                              device_y, rows));
                assert_ok(ctx, spmv_apply(plan, NULL, device_x, NULL, device_y));
                assert_ok(ctx, spmv_download(ctx, device_y, repeat == 0 ? first : again, bytes));
                if (repeat > 0)
                    assert_memory_equal(first, again, (size_t)bytes);
            }
            for (int64_t k = 0; k < rows; k++)
                assert_true(isfinite(t ? (double)((float *)first)[k] : ((double *)first)[k]));
            support_free(first, again);
            spmv_plan_destroy(plan);
            support_free_in(ctx, device_x, device_y);
        }
    }
    free(x);
    free_matrix(&m);
    free_noise(&noise);
}

static void bits_of_solves_repeat(void **state)
{
    spmv_context *const ctx = *state;
    struct noise noise = make_noise();
    for (int t = 0; t < 2; t++) {
        const spmv_type type = t ? SPMV_F32 : SPMV_F64;
        void *first = NULL;
        spmv_cg_result first_result = {0};
        for (int repeat = 0; repeat < repeats(); repeat++) {
            spmv_cg_result result;
            int64_t n = 0;
            make_more(&noise);
            void *const x = solve(ctx, real_gpu ? "poisson2d:40" : "poisson2d:9", NULL, type, &n, &result);
            if (first == NULL) {
                first = x;
                first_result = result;
                continue;
            }
            assert_memory_equal(first, x, (size_t)n * spmv_type_size(type));
            assert_int_equal(result.iterations, first_result.iterations);
            assert_memory_equal(&result.true_residual, &first_result.true_residual, sizeof result.true_residual);
            free(x);
        }
        free(first);
    }
    free_noise(&noise);
}

/* --------------------------------------------------------------------- graphs */

#ifdef HOST_CUDA

/* The host emulation records launches without running them. This checks that the capture stays
 * valid, that nothing is allocated, and that all work is in the launches, because y does not
 * change. */
static void capture_and_replay(spmv_context *ctx, spmv_plan *plan, struct variant v, void *x, void *y,
                               const struct matrix *m)
{
    double *const before = make_vector(m->rows, 40, true);
    upload_to(ctx, v.type, before, m->rows, y);
    const int64_t kept = allocations;
    host_cuda.capturing = 1;
    const spmv_status status = apply(plan, v.type, v.scaled, x, y);
    host_cuda.capturing = 0;
    assert_ok(ctx, status);
    assert_false(host_cuda.capture_broken);
    assert_int_equal(allocations, kept);
    expect(ctx, "only captured", v.type, before, y, m->rows);
    free(before);
}

#else

/* Captured once, then replayed with other numbers in the same arrays. */
static void capture_and_replay(spmv_context *ctx, spmv_plan *plan, struct variant v, void *x, void *y,
                               const struct matrix *m)
{
    const cudaStream_t stream = (cudaStream_t)spmv_context_stream(ctx);
    cudaGraph_t graph = NULL;
    cudaGraphExec_t replay = NULL;
    const int64_t kept = allocations;
    assert_int_equal(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), cudaSuccess);
    const spmv_status status = apply(plan, v.type, v.scaled, x, y);
    assert_int_equal(cudaStreamEndCapture(stream, &graph), cudaSuccess);
    assert_ok(ctx, status);
    assert_int_equal(allocations, kept);
    assert_int_equal(cudaGraphInstantiate(&replay, graph, 0), cudaSuccess);
    for (uint64_t seed = 30; seed < 33; seed++) {
        double *const host_x = make_vector(m->cols, seed, true), *const y0 = make_vector(m->rows, seed + 9, true);
        double *const expected = product(m, v.operation, v.scaled, host_x, y0);
        upload_to(ctx, v.type, host_x, m->cols, x);
        upload_to(ctx, v.type, y0, m->rows, y);
        assert_int_equal(cudaGraphLaunch(replay, stream), cudaSuccess);
        expect(ctx, "replayed", v.type, expected, y, m->rows);
        support_free(host_x, y0, expected);
    }
    assert_int_equal(cudaGraphExecDestroy(replay), cudaSuccess);
    assert_int_equal(cudaGraphDestroy(graph), cudaSuccess);
}

#endif

static void graphs(void **state)
{
    (void)state;
    cudaStream_t stream = support_stream();
    spmv_context *ctx = support_context_of(-1, stream);
    struct matrix m = make_matrix(1025, 200, false, true);
    double *const x = make_vector(m.cols, 3, true), *const y0 = make_vector(m.rows, 4, true);
    const char *method;
    for (int i = 0; (method = spmv_method_name(SPMV_BACKEND_CUDA, i)) != NULL; i++) {
        for (int number = 0; number < 4; number++) {
            const struct variant v = {.type = number % 2 ? SPMV_F32 : SPMV_F64, .scaled = number / 2};
            const int64_t before = allocations;
            void *const device_x = upload(ctx, v.type, x, m.cols), *const device_y = upload(ctx, v.type, y0, m.rows);
            spmv_plan *const plan = make_plan(ctx, &m, method, v.type, SPMV_OPERATION_N);
            assert_true(allocations > before + 2); /* they are counted */
            double *const expected = product(&m, v.operation, v.scaled, x, y0);
            const int64_t kept = allocations;
            assert_ok(ctx, apply(plan, v.type, v.scaled, device_x, device_y));
            assert_int_equal(allocations, kept);
            expect(ctx, method, v.type, expected, device_y, m.rows);
            capture_and_replay(ctx, plan, v, device_x, device_y, &m);
            free(expected);
            spmv_plan_destroy(plan);
            support_free_in(ctx, device_x, device_y);
        }
    }
    support_free(x, y0);
    free_matrix(&m);
    spmv_context_destroy(ctx);
    assert_int_equal(cudaStreamDestroy(stream), cudaSuccess);
}

static bool plays_on_the_host(void)
{
    spmv_context *const ctx = support_context();
    const bool plays = support_host_plays(ctx);
    spmv_context_destroy(ctx);
    return plays;
}

int main(int argc, char **argv)
{
    support_begin(argc, argv);
    brief = support_brief(argc, argv);
    repeat_often = support_mode(argc, argv, "repeat");
    real_gpu = !plays_on_the_host();
    const struct CMUnitTest once[] = {with_context(products_at_seams), with_context(solves)};
    const struct CMUnitTest large[] = {with_context(products_beyond_the_grid)};
    const struct CMUnitTest again[] = {with_context(bits_of_products_repeat), with_context(bits_of_solves_repeat)};
    const struct CMUnitTest captured[] = {cmocka_unit_test(graphs)};
    int failed = 0;
    if (!repeat_often)
        failed += cmocka_run_group_tests(once, NULL, NULL);
    if (!repeat_often && real_gpu)
        failed += cmocka_run_group_tests(large, NULL, NULL);
    if (!brief)
        failed += cmocka_run_group_tests(again, NULL, NULL);
    if (!brief && !repeat_often)
        failed += cmocka_run_group_tests(captured, NULL, NULL);
    return failed;
}

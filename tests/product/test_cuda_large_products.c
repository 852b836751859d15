/* Products with more than 2^31 nonzeros on the backend cuda: 64-bit offsets and indices. The matrix
 * is made on the device: row i of a band has ones (or threes) in columns i ... i + length - 1, so
 * with x_j = j every sum is known exactly and compared there. Skipped on devices with too little
 * memory. On the host emulation of CUDA the matrix is small, which only tests this program.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "core/runtime_cuda.h"
#include "tests/support/support_large.h"

#ifdef HOST_CUDA
static const int64_t NONZEROS = 70000;
#else
static const int64_t NONZEROS = ((int64_t)1 << 31) + 4099; /* at least */
#endif

static spmv_context *ctx;

/* Memory; skips the test if the device is too small. */
static void *get(int64_t bytes)
{
    void *memory = NULL;
    const spmv_status st = spmv_alloc(ctx, bytes, &memory);
    if (st == SPMV_ERROR_MEMORY)
        support_no_memory(ctx);
    assert_ok(ctx, st);
    return memory;
}

/* An array of first + i step. */
static double *numbers(int64_t n, double first, double step)
{
    double *const v = get(n * 8);
    assert_ok(ctx, spmv_map_index(ctx, SPMV_F64, &first, &step, v, n));
    return v;
}

struct band {
    int64_t rows, length, nnz;
    int64_t *row_ptr;
    int32_t *col;
    float *val; /* NULL: a pattern */
};

/* The columns are an inclusive scan of differences: 1 within a row, a step back at each new row. */
static struct band make_band(int64_t length, bool with_values)
{
    struct band b = {.rows = NONZEROS / length + 1, .length = length};
    b.nnz = b.rows * length;
    const int64_t zero = 0;
    const int32_t one = 1, none = 0, back = (int32_t)(2 - length);
    const float three = 3, nothing = 0;
    b.row_ptr = get((b.rows + 1) * 8);
    assert_ok(ctx, spmv_map_index(ctx, SPMV_I64, &zero, &length, b.row_ptr, b.rows + 1));
    b.col = get(b.nnz * 4);
    assert_ok(ctx, spmv_map_index(ctx, SPMV_I32, &one, &none, b.col, b.nnz));
    int32_t *const steps = get(b.rows * 4);
    assert_ok(ctx, spmv_map_index(ctx, SPMV_I32, &back, &none, steps, b.rows));
    assert_ok(ctx, spmv_scatter(ctx, SPMV_I32, steps, b.row_ptr, 64, b.col, b.nnz, b.rows));
    assert_ok(ctx, spmv_upload(ctx, &none, b.col, 4));
    assert_ok(ctx, spmv_scan(ctx, SPMV_INCLUSIVE, SPMV_ADD, SPMV_I32, b.col, b.col, b.nnz));
    spmv_free(ctx, steps);
    if (with_values) {
        b.val = get(b.nnz * 4);
        assert_ok(ctx, spmv_map_index(ctx, SPMV_F32, &three, &nothing, b.val, b.nnz));
    }
    return b;
}

static void free_band(struct band *b)
{
    support_free_in(ctx, b->row_ptr, b->col, b->val);
}

static spmv_csr view_of(const struct band *b)
{
    return support_csr_there(b->rows, b->rows + b->length - 1, b->nnz, b->row_ptr, 64, b->col, b->val,
                             b->val != NULL ? SPMV_F32 : SPMV_F64);
}

/* NULL if the device has too little memory for the plan. */
static spmv_plan *plan_of(const spmv_csr *a, const char *method, int compression, int vectors)
{
    spmv_plan_options options = support_plan_options();
    options.method = method;
    options.type = SPMV_F64;
    options.compression = compression;
    options.vectors = vectors;
    spmv_plan *plan = NULL;
    const spmv_status st = spmv_plan_create(ctx, a, &options, &plan);
    if (st == SPMV_ERROR_MEMORY || st == SPMV_ERROR_UNSUPPORTED) {
        print_message("%s, %d vectors, left out: %s\n", method, vectors, spmv_last_error(ctx));
        return NULL;
    }
    assert_ok(ctx, st);
    return plan;
}

/* Asserts y_i == first + i step for i < n; overwrites y. */
static void expect(const char *what, double *y, int64_t n, double first, double step)
{
    const double minus_one = -1;
    double *const index = numbers(n, first, step), *const extremes = get(16), host[2];
    support_difference(ctx, SPMV_F64, &minus_one, index, y, n, extremes, host);
    support_free_in(ctx, index, extremes);
    if (host[0] != 0 || host[1] != 0)
        fail_msg("%s: off by %g to %g", what, host[0], host[1]);
}

/* layout: text that the plan must report; NULL: none */
static void check(const struct band *b, const char *method, int compression, const char *layout)
{
    const spmv_csr a = view_of(b);
    spmv_plan *const plan = plan_of(&a, method, compression, 1);
    if (plan == NULL)
        return;
    spmv_plan_info info;
    assert_ok(ctx, spmv_plan_describe(plan, &info, sizeof info));
    assert_true(info.nnz == b->nnz);
    if (layout != NULL && strstr(info.layout, layout) == NULL)
        fail_msg("\"%s\" does not contain \"%s\"", info.layout, layout);
    double *const x = numbers(a.cols, 0, 1), *const y = numbers(a.rows, 0.5, 0);
    assert_ok(ctx, spmv_apply(plan, NULL, x, NULL, y));
    const double each = b->val != NULL ? 3 : 1, length = (double)b->length;
    expect(method, y, a.rows, each * (length * (length - 1) / 2), each * length);
    support_free_in(ctx, x, y);
    spmv_plan_destroy(plan);
}

/* Asserts that the pool of the context keeps at most its share of the device memory after a plan of
 * gigabytes is freed. */
static void expect_given_back(void)
{
#ifndef HOST_CUDA
    const struct cuda_state *const s = ctx->device;
    uint64_t held = UINT64_MAX;
    if (s->pool == NULL)
        return;
    assert_int_equal(cudaMemPoolGetAttribute(s->pool, cudaMemPoolAttrReservedMemCurrent, &held), cudaSuccess);
    assert_true(held <= s->memory_bytes / CUDA_POOL_KEEPS);
#endif
}

/* With the diagonal, 16-bit and plain formats, with and without values, by every method. */
static void a_band(void **state)
{
    (void)state;
    for (int with_values = 0; with_values < 2; with_values++) {
        struct band b = make_band(130, with_values);
        check(&b, "tiles", -1, "16-bit columns in 100 %");
        check(&b, "tiles", 0, "16-bit columns in 0 %");
        const char *method;
        for (int i = 0; (method = spmv_method_name(SPMV_BACKEND_CUDA, i)) != NULL; i++)
            check(&b, method, -1, NULL);
        expect_given_back();
        free_band(&b);
    }
}

/* Two vectors, x_j and 2 x_j. */
static void two_vectors(void **state)
{
    (void)state;
    struct band b = make_band(130, false);
    const spmv_csr a = view_of(&b);
    spmv_plan *const plan = plan_of(&a, "columns", -1, 2);
    assert_non_null(plan);
    /* element (j, v) is 2 j + v: y (i, v) = sum of 2 (i + j) + v */
    double *const x = numbers(2 * a.cols, 0, 1), *const y = numbers(2 * a.rows, 0.5, 0);
    assert_ok(ctx, spmv_apply(plan, NULL, x, NULL, y));
    const double length = (double)b.length;
    expect("two vectors", y, 2 * a.rows, length * (length - 1), length);
    support_free_in(ctx, x, y);
    spmv_plan_destroy(plan);
    free_band(&b);
}

/* One row with all nonzeros but a few. */
static void one_row(void **state)
{
    (void)state;
    struct band b = make_band(130, false);
    const int64_t offsets[] = {0, 5, b.nnz - 7, b.nnz};
    spmv_csr a = view_of(&b);
    void *const row_ptr = support_upload(ctx, offsets, sizeof offsets);
    a.rows = 3;
    a.row_ptr = row_ptr;
    spmv_plan *const plan = plan_of(&a, "tiles", -1, 1);
    assert_non_null(plan);
    double *const x = numbers(a.cols, 3, 0), *const y = numbers(3, 0.5, 0), host[3];
    for (int again = 0; again < 2; again++) {
        assert_ok(ctx, spmv_apply(plan, NULL, x, NULL, y));
        assert_ok(ctx, spmv_download(ctx, y, host, sizeof host));
        for (int i = 0; i < 3; i++)
            assert_true(host[i] == 3.0 * (double)(offsets[i + 1] - offsets[i]));
    }
    support_free_in(ctx, x, y, row_ptr);
    spmv_plan_destroy(plan);
    free_band(&b);
}

int main(int argc, char **argv)
{
    support_begin(argc, argv);
    ctx = support_context();
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_band), cmocka_unit_test(two_vectors),
                                       cmocka_unit_test(one_row)};
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    spmv_context_destroy(ctx);
    return failed;
}

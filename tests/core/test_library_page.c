/* The C code of docs/library.md and of README.md, compiled unchanged and run. tests/CMakeLists.txt
 * extracts it.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
/* generated; comes first to show that it includes every header it needs */
#include <library_page.inc>
#undef TRY

#include <math.h>

#include "tests/support/support_io.h"

/* The example of README.md as the body of a function: x and y are in memory of a default
 * context. */
static void readme_page(const int32_t *R, const int32_t *C, const double *V, const void *x, void *y)
{
#include <readme_page.inc>
    spmv_plan_destroy(plan);
    spmv_context_destroy(ctx);
}

/*     | 2 0 1 |
 * A = | 0 3 0 |, A (1 2 3)' = (5 6 19)'
 *     | 4 0 5 | */
static const int32_t row_ptr[] = {0, 2, 3, 5}, col[] = {0, 2, 1, 0, 2};
static const double val[] = {2, 1, 3, 4, 5}, x123[] = {1, 2, 3}, product[] = {5, 6, 19};

static void expect(spmv_context *ctx, const void *y, const double *expected, int n)
{
    double host_y[16] = {0};
    assert_in_range(n, 1, 16);
    assert_ok(ctx, spmv_download(ctx, y, host_y, n * (int64_t)sizeof(double)));
    for (int i = 0; i < n; i++)
        assert_true(host_y[i] == expected[i]);
}

static void files(void **state)
{
    static const char matrix[] = "%%MatrixMarket matrix coordinate real general\n3 3 4\n1 1 3\n1 3 1\n3 2 2\n3 3 4\n";
    char a_path[128], x_path[128], y_path[128];
    spmv_context *const ctx = *state;
    void *y = NULL;
    int64_t n = 0;
    put_file(in_folder("a.mtx", a_path), matrix, strlen(matrix));
    put_file(in_folder("x.txt", x_path), "1\n1\n2\n", 6);
    in_folder("y.txt", y_path);
    assert_ok(ctx, multiply_files(ctx, a_path, x_path, y_path));
    assert_ok(ctx, spmv_vector_read(ctx, y_path, SPMV_F64, &y, &n));
    assert_int_equal(n, 3);
    assert_true(((double *)y)[0] == 5 && ((double *)y)[1] == 0 && ((double *)y)[2] == 10);
    spmv_host_free(y);
    put_file(x_path, "1\n1\n", 4);
    assert_fails(ctx, multiply_files(ctx, a_path, x_path, y_path), SPMV_ERROR_SIZE, "one element per column");
    assert_fails(ctx, multiply_files(ctx, y_path, x_path, y_path), SPMV_ERROR_FORMAT, "y.txt:1:1: bad banner");
    unlink(a_path);
    unlink(x_path);
    unlink(y_path);
}

static void arrays_on_the_cpu(void **state)
{
    (void)state;
    const int32_t beyond[] = {0, 3, 1, 0, 2};
    double y[3] = {NAN, NAN, NAN};
    assert_int_equal(multiply_arrays(3, 3, row_ptr, col, val, x123, y), SPMV_OK);
    assert_memory_equal(y, product, sizeof y);
    assert_int_equal(multiply_arrays(3, 3, row_ptr, beyond, val, x123, y), SPMV_ERROR_SIZE);
}

static void arrays_on_a_gpu(void **state)
{
    if (support_backend != SPMV_BACKEND_CUDA)
        skip();
    spmv_context *const ctx = *state;
    void *const r = support_upload(ctx, row_ptr, sizeof row_ptr), *const c = support_upload(ctx, col, sizeof col);
    void *const v = support_upload(ctx, val, sizeof val), *const x = support_upload(ctx, x123, sizeof x123);
    const double nan[3] = {NAN, NAN, NAN};
    void *const y = support_upload(ctx, nan, sizeof nan);
    assert_int_equal(multiply_on_device(3, 3, 5, r, c, v, x, y, spmv_context_stream(ctx)), SPMV_OK);
    expect(ctx, y, product, 3);
    support_free_in(ctx, y, x, v, c, r);
}

static void new_values(void **state)
{
    const double others[] = {1, 1, 1, 1, -1}, expected[] = {4, 2, -2};
    spmv_context *const ctx = *state;
    const spmv_csr a = support_csr(3, 3, row_ptr, col, val);
    void *const values = support_upload(ctx, others, sizeof others), *const x = support_upload(ctx, x123, sizeof x123);
    void *const y1 = support_upload(ctx, val, sizeof product), *const y2 = support_upload(ctx, val, sizeof product);
    assert_ok(ctx, multiply_twice(ctx, &a, values, x, y1, y2));
    expect(ctx, y1, product, 3);
    expect(ctx, y2, expected, 3);
    support_free_in(ctx, y2, y1, x, values);
}

static void several_vectors(void **state)
{
    const double x[] = {1, 0, 2, 1, 3, 0}, y[] = {1, 2, 3, 4, 5, 6}, expected[] = {9, -2, 9, 2, 33, -6};
    spmv_context *const ctx = *state;
    const spmv_csr a = support_csr(3, 3, row_ptr, col, val);
    void *const device_x = support_upload(ctx, x, sizeof x), *const device_y = support_upload(ctx, y, sizeof y);
    assert_ok(ctx, multiply_block(ctx, &a, 2, device_x, device_y));
    expect(ctx, device_y, expected, 6);
    support_free_in(ctx, device_y, device_x);
}

static void products_in_16_bits(void **state)
{
    const float x[] = {1, 0, 2, 1, 3, 0}, expected[] = {5, 0, 6, 3, 19, 0};
    float numbers[5], y[6];
    spmv_context *const ctx = *state;
    spmv_csr a = support_csr(3, 3, row_ptr, col, NULL);
    a.type = SPMV_F32;
    a.val = numbers;
    for (int k = 0; k < 5; k++)
        numbers[k] = (float)val[k];
    assert_ok(ctx, multiply_in_bf16(ctx, &a, 2, x, y));
    assert_memory_equal(y, expected, sizeof y); /* small whole numbers are exact */
}

static void sampled_products(void **state)
{
    const float a[] = {1, 0, 0, 1, 0, 0}, b[] = {3, 0, 0, 5, 3, 2}, expected[] = {0.5F, 0.5F, 1, 0.5F, 0.5F};
    spmv_context *const ctx = *state;
    const spmv_csr p = support_csr(3, 3, row_ptr, col, NULL);
    float y[5];
    void *const device_a = support_upload(ctx, a, sizeof a), *const device_b = support_upload(ctx, b, sizeof b);
    void *const device_y = support_upload(ctx, expected, sizeof expected);
    assert_ok(ctx, attention(ctx, &p, 2, device_a, device_b, device_y));
    assert_ok(ctx, spmv_download(ctx, device_y, y, sizeof y));
    assert_memory_equal(y, expected, sizeof y);
    support_free_in(ctx, device_y, device_b, device_a);
}

static void checks(void **state)
{
    (void)state;
    const spmv_csr a = support_csr(3, 3, row_ptr, col, val);
    const double wrong[] = {5, 6, 20};
    assert_int_equal(check_product(&a, x123, product), SPMV_OK);
    assert_int_equal(check_product(&a, x123, wrong), SPMV_ERROR_CHECK);
}

static void fits(void **state)
{
    /* a straight line through (0, 0), (1, 1), (2, 1), (3, 2): 0.1 + 0.6 t, ||r||^2 = 0.2 */
    static const int32_t rows[] = {0, 2, 4, 6, 8}, columns[] = {0, 1, 0, 1, 0, 1, 0, 1};
    static const double values[] = {1, 0, 1, 1, 1, 2, 1, 3}, b[] = {0, 1, 1, 2};
    spmv_context *const ctx = *state;
    const spmv_csr a = support_csr(4, 2, rows, columns, values);
    spmv_least_squares_result result;
    double x[2];
    assert_ok(ctx, fit(ctx, &a, b, x, &result));
    assert_true(fabs(x[0] - 0.1) < 1e-9 && fabs(x[1] - 0.6) < 1e-9);
    assert_true(fabs(result.true_residual - sqrt(0.2)) < 1e-12 && result.stop == SPMV_STOP_LEAST_SQUARES);
}

static void batches(void **state)
{
    /* 2 and 4 times the identity, with an entry of 1 above the diagonal */
    static const int32_t rows[] = {0, 2, 3}, columns[] = {0, 1, 1};
    static const double values[] = {2, 1, 2, 4, 1, 4}, b[] = {3, 2, 9, 4}, expected[] = {1, 1, 2, 1};
    spmv_context *const ctx = *state;
    const spmv_csr pattern = support_csr(2, 2, rows, columns, NULL);
    double x[4];
    void *const device_values = support_upload(ctx, values, sizeof values),
                *const device_b = support_upload(ctx, b, sizeof b), *const device_x = support_upload(ctx, b, sizeof b);
    assert_ok(ctx, solve_all(ctx, &pattern, device_values, device_b, device_x, 2));
    assert_ok(ctx, spmv_download(ctx, device_x, x, sizeof x));
    for (int i = 0; i < 4; i++)
        assert_true(fabs(x[i] - expected[i]) < 1e-7);
    support_free_in(ctx, device_values, device_b, device_x);
}

static void solves(void **state)
{
    enum { N = 100 };
    spmv_context *const ctx = *state;
    spmv_matrix *matrix = NULL;
    spmv_csr a;
    double b[N], x[N];
    assert_ok(ctx, spmv_matrix_generate(ctx, "poisson2d:10", SPMV_F64, &matrix));
    spmv_matrix_view(matrix, &a);
    for (int i = 0; i < N; i++) { /* the row sums: 4 less the neighbours */
        const int at_an_edge = (i % 10 == 0) + (i % 10 == 9) + (i < 10) + (i >= 90);
        b[i] = at_an_edge;
        x[i] = NAN;
    }
    assert_ok(ctx, solve(ctx, &a, b, x));
    /* ||x - ones|| <= ||b - A x|| / smallest eigenvalue <= 1e-10 ||b|| / 0.16 */
    for (int i = 0; i < N; i++)
        assert_true(fabs(x[i] - 1) <= 1e-8);
    b[0] = INFINITY;
    assert_int_equal(solve(ctx, &a, b, x), SPMV_ERROR_NOT_FINITE);
    /* A x1 = b1, then 2 A x2 = b2 = 2 b1 */
    double twice[5 * N], b2[N];
    b[0] = 2;
    for (int i = 0; i < N; i++)
        b2[i] = 2 * b[i];
    for (int64_t k = 0; k < a.nnz; k++)
        twice[k] = 2 * ((const double *)a.val)[k];
    const double zeros[N] = {0};
    void *const there[] = {support_upload(ctx, b, sizeof b), support_upload(ctx, zeros, sizeof zeros),
                           support_upload(ctx, b2, sizeof b2), support_upload(ctx, zeros, sizeof zeros),
                           support_upload(ctx, twice, a.nnz * (int64_t)sizeof *twice)};
    assert_ok(ctx, solve_three(ctx, &a, there[0], there[1], there[2], there[3], there[4]));
    for (int which = 1; which <= 3; which += 2) {
        assert_ok(ctx, spmv_download(ctx, there[which], x, sizeof x));
        for (int i = 0; i < N; i++) /* ||b - A x|| <= 1e-8 ||b|| */
            assert_true(fabs(x[i] - 1) <= 1e-6);
    }
    for (int i = 0; i < 5; i++)
        spmv_free(ctx, there[i]);
    spmv_matrix_destroy(matrix);
}

static void events(void **state)
{
    (void)state;
    /* one percent sign */
    static const char matrix[] = "%MatrixMarket matrix coordinate real general\n1 1 1\n1 1 3\n";
    char path[128];
    int warnings = 0;
    spmv_context *ctx = NULL;
    spmv_matrix *read = NULL;
    assert_int_equal(context_with_events(&ctx, &warnings), SPMV_OK);
    put_file(in_folder("warns.mtx", path), matrix, strlen(matrix));
    assert_ok(ctx, spmv_matrix_read(ctx, path, NULL, &read, NULL, 0));
    assert_int_equal(warnings, 1);
    unlink(path);
    spmv_matrix_destroy(read);
    spmv_context_destroy(ctx);
}

static void readme(void **state)
{
    (void)state;
    const int32_t R[] = {0, 2, 2, 4}, C[] = {0, 2, 1, 2};
    const double V[] = {3, 1, 2, 4}, x[] = {1, 1, 2}, expected[] = {5, 0, 10};
    spmv_context *ctx = support_context_by_default();
    void *const device_x = support_upload(ctx, x, sizeof x), *const y = support_upload(ctx, V, sizeof expected);
    readme_page(R, C, V, device_x, y);
    expect(ctx, y, expected, 3);
    support_free_in(ctx, y, device_x);
    spmv_context_destroy(ctx);
}

int main(int argc, char **argv)
{
    support_begin(argc, argv);
    const struct CMUnitTest tests[] = {
        with_context(files),
        cmocka_unit_test(arrays_on_the_cpu),
        with_context(arrays_on_a_gpu),
        with_context(new_values),
        with_context(several_vectors),
        with_context(products_in_16_bits),
        with_context(sampled_products),
        cmocka_unit_test(checks),
        with_context(solves),
        with_context(fits),
        with_context(batches),
        cmocka_unit_test(events),
        cmocka_unit_test(readme),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}

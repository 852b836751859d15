/* The product y = alpha op(A) x + beta y: every method of the backend against values by hand and an
 * independent oracle. Plans: what they borrow, copy, refuse and describe.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <float.h>
#include <math.h>

#include <stdbool.h>

#include "product/plan_internal.h"
#include "tests/support/support_lengths.h"
#include "tests/support/support_slow.h"

/* ------------------------------------------------------------------ matrices */

/* ---------------------------------------------------------------- the oracle
 * Sums the entries as coordinates, in stored order, in long double, and applies the bound of
 * spmv_verify. */
static void oracle(const struct matrix *m, bool transposed, spmv_type type, double alpha, const double *x, double beta,
                   const double *y0, const double *y)
{
    const int64_t n = transposed ? m->cols : m->rows;
    long double *sum = support_zeros(n, sizeof *sum), *size = support_zeros(n, sizeof *size);
    int64_t *terms = support_zeros(n, sizeof *terms);
    const bool f32 = type == SPMV_F32;
    for (int64_t i = 0; i < m->rows; i++) {
        for (int64_t k = m->row_ptr[i]; k < m->row_ptr[i + 1]; k++) {
            const int64_t to = transposed ? m->col[k] : i, from = transposed ? i : m->col[k];
            long double a = m->val != NULL ? m->val[k] : 1, b = x[from];
            if (f32) {
                a = (float)a;
                b = (float)b;
            }
            sum[to] += a * b;
            size[to] += fabsl(a * b);
            terms[to]++;
        }
    }
    for (int64_t i = 0; i < n; i++) {
        const long double start = beta == 0 ? 0 : f32 ? (long double)(float)y0[i] : (long double)y0[i];
        const long double expected = alpha * sum[i] + beta * start;
        const long double roundoff = f32 ? FLT_EPSILON / 2 : DBL_EPSILON / 2;
        const long double bound =
            (terms[i] + 4) * roundoff * (fabsl(alpha) * size[i] + fabsl(beta * start)) * 1.01L + 1e-300L;
        if (!(fabsl((long double)y[i] - expected) <= bound))
            fail_msg("row %lld of %lld: %.17g, expected %.17Lg +- %.3Lg", (long long)i, (long long)n, y[i], expected,
                     bound);
    }
    support_free(sum, size, terms);
}

static spmv_csr view_of(const struct matrix *m, const int32_t *narrow, const void *val, spmv_type type)
{
    return support_csr_with(m->rows, m->cols, m->nnz, narrow != NULL ? (const void *)narrow : (const void *)m->row_ptr,
                            narrow != NULL ? 32 : 64, m->col, m->val != NULL ? val : NULL, type);
}

struct scaling {
    double alpha, beta;
};

/* Products by one plan from host arrays, each compared with the oracle; y is filled with NaN
 * before. */
static void check_products(spmv_context *ctx, const struct matrix *m, const char *method, spmv_operation operation,
                           spmv_type type, int bits, const struct scaling *scalings, int count)
{
    const bool transposed = operation != SPMV_OPERATION_N;
    const int64_t x_n = transposed ? m->rows : m->cols, y_n = transposed ? m->cols : m->rows;
    double *x = make_vector(x_n, 11, false);
    float *val32 = support_zeros(m->nnz, sizeof *val32);
    int32_t *narrow = support_zeros(m->rows + 1, sizeof *narrow);
    for (int64_t k = 0; m->val != NULL && k < m->nnz; k++)
        val32[k] = (float)m->val[k];
    for (int64_t i = 0; i <= m->rows; i++)
        narrow[i] = (int32_t)m->row_ptr[i];
    const spmv_csr a =
        view_of(m, bits == 32 ? narrow : NULL, type == SPMV_F32 ? (const void *)val32 : (const void *)m->val, type);
    void *device_x = support_upload_as(ctx, type, x, x_n, 0);
    spmv_plan *plan = support_plan(ctx, &a, method, operation, type);
    for (int s = 0; s < count; s++) {
        const double alpha = scalings[s].alpha, beta = scalings[s].beta;
        const float alpha32 = (float)alpha, beta32 = (float)beta;
        double *y0 = make_vector(y_n, 12, false);
        if (beta == 0)
            for (int64_t i = 0; i < y_n; i++)
                y0[i] = NAN; /* must not be read */
        void *device_y = support_upload_as(ctx, type, y0, y_n, 0);
        assert_ok(ctx, spmv_apply(plan, type == SPMV_F32 ? (const void *)&alpha32 : (const void *)&alpha, device_x,
                                  type == SPMV_F32 ? (const void *)&beta32 : (const void *)&beta, device_y));
        double *y = support_download_as(ctx, type, device_y, y_n);
        oracle(m, transposed, type, alpha, x, beta, y0, y);
        spmv_free(ctx, device_y);
        support_free(y0, y);
    }
    spmv_plan_destroy(plan);
    spmv_free(ctx, device_x);
    support_free(x, val32, narrow);
}

static void check_everything(spmv_context *ctx, const struct matrix *m)
{
    static const struct scaling of_wide[] = {{1, 0}, {1, 1}, {0, 2}}, of_narrow[] = {{-0.75, 0}, {0.5, -3}};
    const char *method;
    for (int i = 0; (method = spmv_method_name(support_backend, i)) != NULL; i++)
        for (int t = 0; t < 2; t++)
            for (int operation = SPMV_OPERATION_N; operation <= SPMV_OPERATION_H; operation++) {
                const spmv_type type = t == 0 ? SPMV_F64 : SPMV_F32;
                /* On an emulated GPU the types take turns; nnz makes the order differ between shapes. */
                if (SLOW && (t + i + operation / 2 + (m->val == NULL) + m->nnz) % 2 != 0)
                    continue;
                /* T and H are the same for real numbers. */
                if (!SLOW || operation != SPMV_OPERATION_H)
                    check_products(ctx, m, method, (spmv_operation)operation, type, 64, of_wide, 3);
                if (!SLOW || operation != SPMV_OPERATION_T)
                    check_products(ctx, m, method, (spmv_operation)operation, type, 32, of_narrow, 2);
            }
}

/* --------------------------------------------------------------------- tests */

/* The 3 x 3 example of the lectures: A = [3 0 1; 0 0 0; 2 4 0], x = (1 2 3), y = (6 0 10). */
static void lecture_example(void **state)
{
    spmv_context *ctx = *state;
    const int32_t row_ptr[] = {0, 2, 2, 4}, col[] = {0, 2, 0, 1};
    const double val[] = {3, 1, 2, 4}, x[] = {1, 2, 3}, expected[] = {6, 0, 10};
    const spmv_csr a = support_csr(3, 3, row_ptr, col, val);
    const char *method;
    for (int i = 0; (method = spmv_method_name(support_backend, i)) != NULL; i++) {
        double y[3] = {-1, -1, -1};
        spmv_plan *plan = support_plan(ctx, &a, method, SPMV_OPERATION_N, SPMV_TYPE_DEFAULT);
        void *device_x = support_upload(ctx, x, sizeof x), *device_y = support_upload(ctx, y, sizeof y);
        assert_ok(ctx, spmv_apply(plan, NULL, device_x, NULL, device_y));
        assert_ok(ctx, spmv_download(ctx, device_y, y, sizeof y));
        assert_memory_equal(y, expected, sizeof y);
        spmv_plan_info info;
        assert_ok(ctx, spmv_plan_describe(plan, &info, sizeof info));
        assert_string_equal(info.method, method);
        assert_true(info.rows == 3 && info.cols == 3 && info.nnz == 4 && info.bytes > 0 && info.seconds >= 0);
        assert_int_equal(info.type, SPMV_F64);
        support_free_in(ctx, device_x, device_y);
        spmv_plan_destroy(plan);
    }
    assert_non_null(spmv_method_name(support_backend, 1)); /* the loop above ran */
}

/* Every method, type, operation and scaling, on matrices with equal rows, random row lengths,
 * mostly empty rows (also the first and last), one long row among short ones, a single row, and
 * only empty rows. */
static void all_shapes(void **state)
{
    spmv_context *ctx = *state;
    enum { ROWS = SLOW ? 300 : 700, LONG = SLOW ? 12000 : 30000 };
    static int64_t length[ROWS];
    uint64_t seed = 5;
    for (int shape = 0; shape < 6; shape++) {
        for (int64_t i = 0; i < ROWS; i++) {
            const int64_t draw = (int64_t)(support_random(&seed) % 100);
            length[i] = shape == 0   ? 9
                        : shape == 1 ? draw
                        : shape == 2 ? (i > 50 && i < ROWS - 50 && draw < 5 ? draw + 1 : 0)
                        : shape == 3 ? (i == ROWS / 2 ? LONG : draw % 4)
                                     : 0;
        }
        if (shape == 4)
            length[0] = LONG - 10;
        const int64_t rows = shape == 4 ? 1 : ROWS, cols = shape == 1 ? 90 : 1300;
        for (int pattern = 0; pattern < 2; pattern++) {
            struct matrix m = make_matrix(length, rows, cols, false, pattern);
            check_everything(ctx, &m);
            free_matrix(&m);
        }
    }
}

/* Sizes around the border of a tile of the method "tiles" (4096 rows and nonzeros), and rows that
 * span several. */
static void tile_borders(void **state)
{
    spmv_context *ctx = *state;
    static int64_t length[9000];
    const struct scaling plain = {1, 0};
    /* An emulated GPU leaves out the last two: each kernel has met three tiles by then. Of the rest,
     * each method takes every other matrix. */
    const int64_t rows[] = {1, 2, 31, 32, 33, 1023, 1024, 1025, 4095, 4096, 4097, 8193, 8191, 8192};
    for (size_t r = 0; r < sizeof rows / sizeof rows[0] - (SLOW ? 2 : 0); r++) {
        for (int each = 0; each < 4; each++) {
            for (int64_t i = 0; i < rows[r]; i++)
                length[i] = each == 3 ? (i % 1000 == 1 ? 9000 : 0) : each;
            struct matrix m = make_matrix(length, rows[r], 500, false, false);
            const char *method;
            for (int i = 0; (method = spmv_method_name(support_backend, i)) != NULL; i++)
                if (!SLOW || ((int)r + each + i) % 2 == 0)
                    check_products(ctx, &m, method, SPMV_OPERATION_N, SPMV_F64, 64, &plain, 1);
            free_matrix(&m);
        }
    }
}

/* No rows, no columns, neither; columns without entries. */
static void empty_sizes(void **state)
{
    spmv_context *ctx = *state;
    static const int64_t none[5];
    const struct {
        int64_t rows, cols;
    } sizes[] = {{0, 0}, {0, 5}, {5, 0}, {5, 5}, {1, 1}};
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
        struct matrix m = make_matrix(none, sizes[s].rows, sizes[s].cols, false, false);
        check_everything(ctx, &m);
        free_matrix(&m);
    }
}

/* The same bits from 1, 2, 3 and 7 threads and in a second run; a backend without threads is only
 * run again. */
static void bits_do_not_depend_on_threads(void **state)
{
    (void)state;
    /* An emulated GPU has no threads, and its tiles and large shapes begin at a few thousand. */
    enum { ROWS = SLOW ? 5000 : 20000, LONG = SLOW ? 25000 : 100000 };
    static int64_t length[ROWS];
    uint64_t seed = 9;
    for (int64_t i = 0; i < ROWS; i++)
        length[i] = i == 1234 ? LONG : (int64_t)(support_random(&seed) % 30);
    struct matrix m = make_matrix(length, ROWS, ROWS, false, false);
    double *x = make_vector(ROWS, 4, false);
    const spmv_csr a = view_of(&m, NULL, m.val, SPMV_F64);
    const char *method;
    for (int i = 0; (method = spmv_method_name(support_backend, i)) != NULL; i++) {
        double *first = NULL;
        const int threads[] = {1, 2, 3, 7, 7};
        for (size_t t = SLOW ? 3 : 0; t < sizeof threads / sizeof threads[0]; t++) {
            spmv_context *ctx = support_context_on(support_backend, threads[t]);
            spmv_plan *plan = support_plan(ctx, &a, method, SPMV_OPERATION_N, SPMV_TYPE_DEFAULT);
            void *device_x = support_upload(ctx, x, ROWS * 8), *device_y = support_upload(ctx, x, ROWS * 8);
            assert_ok(ctx, spmv_apply(plan, NULL, device_x, NULL, device_y));
            double *y = support_download_as(ctx, SPMV_F64, device_y, ROWS);
            if (first == NULL) {
                first = y;
            } else {
                assert_memory_equal(first, y, ROWS * 8);
                free(y);
            }
            support_free_in(ctx, device_x, device_y);
            spmv_plan_destroy(plan);
            spmv_context_destroy(ctx);
        }
        free(first);
    }
    free(x);
    free_matrix(&m);
}

/* Plans use 64-bit offsets only from 2^31 nonzeros on. The test puts them into a smaller plan; the
 * method must give the same bits. */
static void wide_offsets(void **state)
{
    enum { ROWS = 3000 };
    static int64_t length[ROWS];
    uint64_t seed = 21;
    for (int64_t i = 0; i < ROWS; i++)
        length[i] = i == 77 ? 20000 : (int64_t)(support_random(&seed) % 12);
    spmv_context *ctx = *state;
    for (int variant = 0; variant < 4; variant++) {
        const spmv_type type = variant % 2 == 0 ? SPMV_F64 : SPMV_F32;
        const int64_t size = (int64_t)spmv_type_size(type);
        struct matrix m = make_matrix(length, ROWS, ROWS, false, variant / 2 == 1);
        double *x = make_vector(ROWS, 8, false);
        void *device_x = support_upload_as(ctx, type, x, ROWS, 0), *device_y = support_upload_as(ctx, type, x, ROWS, 0);
        void *device_val = m.val != NULL ? support_upload_as(ctx, type, m.val, m.nnz, 0) : NULL;
        void *device_col = support_upload(ctx, m.col, m.nnz * 4);
        void *wide = support_upload(ctx, m.row_ptr, (ROWS + 1) * 8);
        spmv_csr a = view_of(&m, NULL, device_val, type);
        a.row_ptr = wide;
        a.col = device_col;
        a.memory = SPMV_MEMORY_CONTEXT;
        const char *method;
        for (int i = 0; (method = spmv_method_name(support_backend, i)) != NULL; i++) {
            if (!support_takes_wide_offsets(method))
                continue;
            spmv_plan *plan = support_plan(ctx, &a, method, SPMV_OPERATION_N, type);
            assert_int_equal(plan->a.row_ptr_bits, 32);
            assert_ok(ctx, spmv_apply(plan, NULL, device_x, NULL, device_y));
            double *narrow_y = support_download_as(ctx, type, device_y, ROWS);
            plan_release_state(plan);
            plan->a.row_ptr = wide;
            plan->a.row_ptr_bits = 64;
            assert_ok(ctx, method_prepare(plan));
            assert_ok(ctx, spmv_upload(ctx, x, device_y, ROWS * size));
            assert_ok(ctx, spmv_apply(plan, NULL, device_x, NULL, device_y));
            double *wide_y = support_download_as(ctx, type, device_y, ROWS);
            assert_memory_equal(narrow_y, wide_y, ROWS * 8);
            support_free(narrow_y, wide_y);
            spmv_plan_destroy(plan);
        }
        support_free_in(ctx, device_x, device_y, device_val, device_col, wide);
        free(x);
        free_matrix(&m);
    }
}

/* Infinity and NaN reach only the rows that use them. */
static void not_finite_values(void **state)
{
    spmv_context *ctx = *state;
    const int32_t row_ptr[] = {0, 2, 3, 4}, col[] = {0, 1, 1, 2};
    const double val[] = {1, 1, 1, 1}, x[] = {INFINITY, 5, NAN};
    const spmv_csr a = support_csr(3, 3, row_ptr, col, val);
    const char *method;
    for (int i = 0; (method = spmv_method_name(support_backend, i)) != NULL; i++) {
        double y[3];
        spmv_plan *plan = support_plan(ctx, &a, method, SPMV_OPERATION_N, SPMV_TYPE_DEFAULT);
        void *device_x = support_upload(ctx, x, sizeof x), *device_y = support_upload(ctx, x, sizeof x);
        assert_ok(ctx, spmv_apply(plan, NULL, device_x, NULL, device_y));
        assert_ok(ctx, spmv_download(ctx, device_y, y, sizeof y));
        assert_true(isinf(y[0]) && y[1] == 5 && isnan(y[2]));
        support_free_in(ctx, device_x, device_y);
        spmv_plan_destroy(plan);
    }
}

/* Rows of 0 to 5 entries with lengths in any order, up to the last row: values that are not finite
 * stay in the rows that use them, and sums of small integers are exact. */
static void short_rows_keep_apart(void **state)
{
    enum { ROWS = 9000, COLS = 400, MOST = 5, STEP = 7 };
    static int32_t row_ptr[ROWS + 1], col[ROWS * MOST];
    static double val[ROWS * MOST], x[COLS], want[ROWS], y[ROWS];
    spmv_context *ctx = *state;
    uint64_t seed = 21;
    int64_t finite = 0;
    for (int i = 0; i < COLS; i++)
        x[i] = i % 10 == 3 ? INFINITY : i % 10 == 6 ? NAN : (double)(i % 17) - 8;
    for (int row = 0; row < ROWS; row++) {
        const int length = (int)(support_random(&seed) % (MOST + 1));
        const int first = (int)(support_random(&seed) % (COLS - MOST * STEP));
        int32_t k = row_ptr[row];
        for (int j = 0; j < length; j++, k++) {
            col[k] = first + j * STEP;
            val[k] = (double)(1 + j);
            want[row] += val[k] * x[col[k]];
        }
        row_ptr[row + 1] = k;
        finite += isfinite(want[row]) && length > 0;
    }
    assert_true(finite > ROWS / 8 && finite < ROWS / 2);
    const spmv_csr a = support_csr(ROWS, COLS, row_ptr, col, val);
    void *device_x = support_upload(ctx, x, sizeof x), *device_y = support_upload(ctx, want, sizeof want);
    const char *method;
    for (int i = 0; (method = spmv_method_name(support_backend, i)) != NULL; i++) {
        spmv_plan *plan = support_plan(ctx, &a, method, SPMV_OPERATION_N, SPMV_TYPE_DEFAULT);
        assert_ok(ctx, spmv_apply(plan, NULL, device_x, NULL, device_y));
        assert_ok(ctx, spmv_download(ctx, device_y, y, sizeof y));
        for (int row = 0; row < ROWS; row++)
            if (isfinite(want[row]) ? y[row] != want[row] : isfinite(y[row]))
                fail_msg("%s: y[%d] = %g instead of %g", method, row, y[row], want[row]);
        spmv_plan_destroy(plan);
    }
    support_free_in(ctx, device_x, device_y);
}

/* Host arrays may be freed after the plan is created. Arrays in the context's memory are borrowed,
 * so changes to them have an effect. */
static void copies_and_borrows(void **state)
{
    spmv_context *ctx = *state;
    int32_t row_ptr[] = {0, 1, 2}, col[] = {1, 0};
    double val[] = {2, 3};
    const double x[] = {10, 100};
    double y[2];
    spmv_csr a = support_csr(2, 2, row_ptr, col, val);
    spmv_plan *plan = NULL;
    void *device_x = support_upload(ctx, x, sizeof x), *device_y = support_upload(ctx, x, sizeof x);
    assert_ok(ctx, spmv_plan_create(ctx, &a, NULL, &plan));
    memset(val, 0xff, sizeof val);
    memset(col, 0xff, sizeof col);
    memset(row_ptr, 0xff, sizeof row_ptr);
    assert_ok(ctx, spmv_apply(plan, NULL, device_x, NULL, device_y));
    assert_ok(ctx, spmv_download(ctx, device_y, y, sizeof y));
    assert_true(y[0] == 200 && y[1] == 30);
    spmv_plan_destroy(plan);

    const int32_t good_row_ptr[] = {0, 1, 2}, good_col[] = {1, 0};
    double good_val[] = {2, 3};
    void *device_row_ptr = support_upload(ctx, good_row_ptr, sizeof good_row_ptr);
    void *device_col = support_upload(ctx, good_col, sizeof good_col);
    void *device_val = support_upload(ctx, good_val, sizeof good_val);
    a.row_ptr = device_row_ptr;
    a.col = device_col;
    a.val = device_val;
    a.memory = SPMV_MEMORY_CONTEXT;
    assert_ok(ctx, spmv_plan_create(ctx, &a, NULL, &plan));
    good_val[0] = 7;
    assert_ok(ctx, spmv_upload(ctx, good_val, device_val, sizeof good_val));
    assert_ok(ctx, spmv_apply(plan, NULL, device_x, NULL, device_y));
    assert_ok(ctx, spmv_download(ctx, device_y, y, sizeof y));
    assert_true(y[0] == 700 && y[1] == 30);
    spmv_plan_destroy(plan);

    /* The transpose of borrowed arrays. */
    spmv_plan_options options = support_plan_options();
    options.operation = SPMV_OPERATION_T;
    assert_ok(ctx, spmv_plan_create(ctx, &a, &options, &plan));
    assert_ok(ctx, spmv_apply(plan, NULL, device_x, NULL, device_y));
    assert_ok(ctx, spmv_download(ctx, device_y, y, sizeof y));
    assert_true(y[0] == 300 && y[1] == 70);
    spmv_plan_destroy(plan);
    support_free_in(ctx, device_row_ptr, device_col, device_val, device_x, device_y);
}

static void refusals(void **state)
{
    spmv_context *ctx = *state;
    const int32_t row_ptr[] = {0, 1, 2}, col[] = {1, 0};
    const double val[] = {2, 3};
    const spmv_csr good = support_csr(2, 2, row_ptr, col, val);
    spmv_plan_options o = support_plan_options();
    spmv_plan *plan = (spmv_plan *)&o;
    spmv_csr a = good;
#define REFUSES(status, text)                                                                                          \
    do {                                                                                                               \
        assert_fails(ctx, spmv_plan_create(ctx, &a, &o, &plan), status, text);                                         \
        assert_null(plan);                                                                                             \
        a = good;                                                                                                      \
        spmv_plan_options_init(&o, sizeof o);                                                                          \
    } while (0)
    a.rows = -1;
    REFUSES(SPMV_ERROR_ARGUMENT, "-1 x 2");
    a.cols = (int64_t)INT32_MAX + 1;
    REFUSES(SPMV_ERROR_LIMIT, "2147483648 columns");
    a.row_ptr_bits = 16;
    REFUSES(SPMV_ERROR_ARGUMENT, "row_ptr_bits is 16");
    a.row_ptr = NULL;
    REFUSES(SPMV_ERROR_ARGUMENT, "row_ptr is NULL");
    a.col = NULL;
    REFUSES(SPMV_ERROR_ARGUMENT, "col is NULL");
    a.nnz = 3;
    REFUSES(SPMV_ERROR_SIZE, "from 0 to 2, but there are 3 nonzeros");
    a.memory = (spmv_memory)7;
    REFUSES(SPMV_ERROR_ARGUMENT, "memory is 7");
    a.type = SPMV_I32;
    REFUSES(SPMV_ERROR_TYPE, "i32");
    o.type = SPMV_F32;
    REFUSES(SPMV_ERROR_TYPE, "f64 with vectors of type f32");
    o.method = "fastest";
    REFUSES(SPMV_ERROR_METHOD, "there are: auto, ");
    o.operation = (spmv_operation)9;
    REFUSES(SPMV_ERROR_ARGUMENT, "option operation 9: must be 0 to 2");
    o.vectors = 0;
    REFUSES(SPMV_ERROR_ARGUMENT, "option vectors 0: must be at least 1");
    o.symmetric = 1;
    REFUSES(SPMV_ERROR_UNSUPPORTED, "symmetric");
    o.update_values = 1;
    a.val = NULL;
    REFUSES(SPMV_ERROR_ARGUMENT, "a pattern has no values");
    if (support_backend != SPMV_BACKEND_OMP) {
        o.compression = 1;
        REFUSES(SPMV_ERROR_UNSUPPORTED, "compression");
    }
    o.size = 3;
    REFUSES(SPMV_ERROR_ARGUMENT, "spmv_plan_options_init");
#undef REFUSES
    assert_ok(ctx, spmv_plan_create(ctx, &good, &o, &plan));
    double y[2] = {1, 2};
    assert_fails(ctx, spmv_apply(plan, NULL, NULL, NULL, y), SPMV_ERROR_ARGUMENT, "x is NULL");
    assert_fails(ctx, spmv_apply(plan, NULL, y, NULL, NULL), SPMV_ERROR_ARGUMENT, "y is NULL");
    assert_fails(ctx, spmv_apply(plan, NULL, y, NULL, y), SPMV_ERROR_ARGUMENT, "same array");
    spmv_plan_destroy(plan);
    spmv_plan_destroy(NULL);
}

SUPPORT_MAIN(with_context(lecture_example), with_context(all_shapes), with_context(tile_borders),
             with_context(empty_sizes), with_context(not_finite_values),
             cmocka_unit_test(bits_do_not_depend_on_threads), with_context(copies_and_borrows), with_context(refusals),
             with_context(wide_offsets), with_context(short_rows_keep_apart))

/* 16-bit numbers, bf16 and f16: conversions, against a slow definition by powers of two; products with one and with
 * several vectors by every method that takes them, against exact sums; special values; and what refuses them.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <spmv/primitives.h>
#include <spmv/sddmm.h>
#include <spmv/solvers.h>
#include <spmv/spgemm.h>

#include "product/plan_internal.h"
#include "tests/support/support.h"

/* A 16-bit format: bits of the fraction, the least exponent of a normal number, the largest number. */
struct format {
    spmv_type type;
    int fraction, least;
    double greatest;
    uint16_t infinity;
};
static const struct format formats[] = {{SPMV_BF16, 7, -126, 0x1.fep127, 0x7f80}, {SPMV_F16, 10, -14, 65504, 0x7c00}};
enum { FORMATS = 2 };

/* The definition: the multiple of the last place that is nearest to x, ties to the even one. */
static long double rounded(const struct format *f, long double x)
{
    int exponent = 0;
    if (x == 0 || !isfinite(x))
        return x;
    frexpl(x, &exponent);
    const int last = (exponent - 1 > f->least ? exponent - 1 : f->least) - f->fraction;
    const long double result = ldexpl(rintl(ldexpl(x, -last)), last);
    return fabsl(result) > (long double)f->greatest ? copysignl(INFINITY, x) : result;
}

/* Element i of an array of the format, by its bits. */
static long double element(const struct format *f, const void *values, int64_t i)
{
    const uint16_t bits = ((const uint16_t *)values)[i];
    const int fraction = bits & ((1 << f->fraction) - 1), biased = (bits & 0x7fff) >> f->fraction;
    const long double sign = bits >> 15 ? -1 : 1;
    if ((bits & f->infinity) == f->infinity)
        return fraction != 0 ? (long double)NAN : sign * (long double)INFINITY;
    return sign * ldexpl(biased != 0 ? fraction + (1 << f->fraction) : fraction,
                         (biased != 0 ? biased - 1 : 0) + f->least - f->fraction);
}

static bool same(long double a, long double b)
{
    return isnan(a) ? isnan(b) : a == b && signbit(a) == signbit(b);
}

/* ---------------------------------------------------------------- conversions */

static void bits_of_every_number(void **state)
{
    (void)state;
    static uint16_t all[1 << 16], back[1 << 16];
    static float f32[1 << 16];
    static double f64[1 << 16];
    for (int i = 0; i < 1 << 16; i++)
        all[i] = (uint16_t)i;
    for (int f = 0; f < FORMATS; f++) {
        const spmv_type type = formats[f].type;
        for (int wide = 0; wide < 2; wide++) {
            const spmv_type other = wide ? SPMV_F64 : SPMV_F32;
            void *const there = wide ? (void *)f64 : (void *)f32;
            assert_int_equal(spmv_convert_numbers(type, all, other, there, 1 << 16), SPMV_OK);
            assert_int_equal(spmv_convert_numbers(other, there, type, back, 1 << 16), SPMV_OK);
            for (int i = 0; i < 1 << 16; i++) {
                const long double x = element(&formats[f], all, i);
                assert_true(same(x, wide ? (long double)f64[i] : (long double)f32[i]));
                assert_true(isnan(x) ? isnan(element(&formats[f], back, i)) && back[i] >> 15 == i >> 15 : back[i] == i);
            }
        }
    }
}

static void rounding(void **state)
{
    (void)state;
    uint64_t random = 3;
    for (int f = 0; f < FORMATS; f++)
        for (int i = 0; i < 40000; i++) {
            /* random numbers of all magnitudes; every second one near the middle of two numbers of the format */
            const uint16_t at = (uint16_t)(support_random(&random) & 0xffff);
            const long double low = element(&formats[f], &at, 0);
            const uint16_t next = (uint16_t)(at + 1);
            const long double high = element(&formats[f], &next, 0), middle = (low + high) / 2;
            const double around[] = {0, 0x1p-30, -0x1p-30, 0x1p-50, -0x1p-50};
            double x = (double)(middle * (1 + (long double)around[i / 2 % 5]));
            if (i % 2 == 1 || !isfinite(x))
                x = ldexp(support_uniform(&random), (int)(support_random(&random) % 300) - 160);
            const float single = (float)x;
            uint16_t of_f64 = 0, of_f32 = 0;
            assert_int_equal(spmv_convert_numbers(SPMV_F64, &x, formats[f].type, &of_f64, 1), SPMV_OK);
            assert_int_equal(spmv_convert_numbers(SPMV_F32, &single, formats[f].type, &of_f32, 1), SPMV_OK);
            if (!same(element(&formats[f], &of_f64, 0), rounded(&formats[f], x)) ||
                !same(element(&formats[f], &of_f32, 0), rounded(&formats[f], single)))
                fail_msg("%s: %a and %a become %04x and %04x", spmv_type_name(formats[f].type), x, (double)single,
                         of_f64, of_f32);
        }
    double x[2] = {1, 2};
    assert_int_equal(spmv_convert_numbers(SPMV_F64, x, SPMV_C64, x, 1), SPMV_ERROR_TYPE);
    assert_int_equal(spmv_convert_numbers(SPMV_I32, x, SPMV_F64, x, 1), SPMV_ERROR_TYPE);
    assert_int_equal(spmv_convert_numbers(SPMV_F64, x, SPMV_F16, NULL, 1), SPMV_ERROR_ARGUMENT);
    assert_int_equal(spmv_convert_numbers(SPMV_F64, x, SPMV_F16, x, -1), SPMV_ERROR_ARGUMENT);
    assert_int_equal(spmv_convert_numbers(SPMV_F64, NULL, SPMV_F16, NULL, 0), SPMV_OK);
}

/* ------------------------------------------------------------------- products */

struct variant {
    const struct format *format;
    const char *method;
    bool pattern, scaled;
    spmv_operation operation;
    int vectors, gap; /* elements between rows of x and of y */
    bool columns;     /* vectors stored by columns */
};

static void *random_halves(const struct format *f, int64_t n, uint64_t seed)
{
    uint16_t *const values = support_zeros(n + 1, 2);
    for (int64_t i = 0; i < n; i++) {
        const double x = support_uniform(&seed);
        assert_int_equal(spmv_convert_numbers(SPMV_F64, &x, f->type, values + i, 1), SPMV_OK);
    }
    return values;
}

static int64_t place_of(const struct variant *v, int64_t n, int64_t i, int column)
{
    return v->columns ? column * (n + v->gap) + i : i * (v->vectors + v->gap) + column;
}

static int64_t size_of(const struct variant *v, int64_t n)
{
    return v->columns ? v->vectors * (n + v->gap) : n * (v->vectors + v->gap);
}

static const float alpha = 0.75f, beta = -1.5f;

/* Compares y with exact sums: f32 sums of n terms, scaled, then one rounding. */
static void check_y(const spmv_csr *a, const struct variant *v, const void *x, const void *y0, const void *y)
{
    const struct format *const f = v->format;
    const bool turned = v->operation != SPMV_OPERATION_N;
    const int64_t rows = turned ? a->cols : a->rows, cols = turned ? a->rows : a->cols;
    const int64_t *const row_ptr = a->row_ptr;
    for (int column = 0; column < v->vectors; column++) {
        long double *const sum = support_zeros(rows + 1, sizeof *sum), *const all =
                                                                           support_zeros(rows + 1, sizeof *all);
        int64_t *const terms = support_zeros(rows + 1, 8);
        for (int64_t i = 0; i < a->rows; i++)
            for (int64_t k = row_ptr[i]; k < row_ptr[i + 1]; k++) {
                const int64_t to = turned ? a->col[k] : i, from = turned ? i : a->col[k];
                const long double term =
                    (v->pattern ? 1 : element(f, a->val, k)) * element(f, x, place_of(v, cols, from, column));
                sum[to] += term;
                all[to] += fabsl(term);
                terms[to]++;
            }
        for (int64_t i = 0; i < rows; i++) {
            const int64_t at = place_of(v, rows, i, column);
            if (v->scaled) {
                sum[i] = (long double)alpha * sum[i] + (long double)beta * element(f, y0, at);
                all[i] = (long double)alpha * all[i] + fabsl((long double)beta * element(f, y0, at));
            }
            /* what a sum in f32 may be, rounded once */
            const long double error = (long double)(terms[i] + 3) * 0x1p-24L * all[i] * 1.001L;
            const long double got = element(f, y, at);
            if (!(rounded(f, sum[i] - error) <= got && got <= rounded(f, sum[i] + error)))
                fail_msg("%s %s, %d vectors%s: row %lld of column %d is %Lg, not %Lg", spmv_type_name(f->type),
                         v->method, v->vectors, v->columns ? " by columns" : "", (long long)i, column, got, sum[i]);
        }
        support_free(sum, all, terms);
    }
    for (int64_t i = 0; i < rows && !v->columns; i++)
        for (int g = 0; g < v->gap; g++)
            assert_int_equal(((const uint16_t *)y)[i * (v->vectors + v->gap) + v->vectors + g], 0xffff);
}

/* Whether there is a plan; y becomes that of a product. again: with new values in a second product. */
static bool multiply(spmv_context *ctx, const spmv_csr *a, const struct variant *v, const void *x, void *y, bool again)
{
    const bool turned = v->operation != SPMV_OPERATION_N;
    const int64_t rows = turned ? a->cols : a->rows, cols = turned ? a->rows : a->cols;
    spmv_plan_options o = support_plan_options();
    spmv_plan *plan = NULL;
    spmv_csr given = *a;
    o.method = v->method;
    o.operation = v->operation;
    o.vectors = v->vectors;
    o.type = v->pattern ? v->format->type : SPMV_TYPE_DEFAULT;
    o.x_layout = o.y_layout = v->columns ? SPMV_LAYOUT_COLUMNS : SPMV_LAYOUT_ROWS;
    o.x_stride = (v->columns ? cols : v->vectors) + v->gap;
    o.y_stride = (v->columns ? rows : v->vectors) + v->gap;
    o.update_values = again;
    void *const other = again ? random_halves(v->format, a->nnz, 77) : NULL;
    if (again)
        given.val = other;
    const spmv_status st = spmv_plan_create(ctx, &given, &o, &plan);
    if (st == SPMV_ERROR_UNSUPPORTED) {
        free(other);
        return false;
    }
    assert_ok(ctx, st);
    void *const device_x = support_upload(ctx, x, size_of(v, cols) * 2);
    void *const device_y = support_upload(ctx, y, size_of(v, rows) * 2);
    void *const values = again ? support_upload(ctx, a->val, a->nnz * 2) : NULL;
    if (again)
        assert_ok(ctx, spmv_plan_update_values(plan, values));
    assert_ok(ctx, spmv_apply(plan, v->scaled ? &alpha : NULL, device_x, v->scaled ? &beta : NULL, device_y));
    assert_ok(ctx, spmv_download(ctx, device_y, y, size_of(v, rows) * 2));
    spmv_plan_destroy(plan);
    support_free_in(ctx, device_x, device_y, values);
    free(other);
    return true;
}

/* y before: random elements, and 0xffff, NaN, in gaps. */
static void *start(const struct variant *v, int64_t n)
{
    uint16_t *const y = support_zeros(size_of(v, n) + 1, 2), *const own = random_halves(v->format, n * v->vectors, 5);
    memset(y, 0xff, (size_t)size_of(v, n) * 2);
    for (int64_t i = 0; i < n; i++)
        for (int c = 0; c < v->vectors; c++)
            y[place_of(v, n, i, c)] = own[i * v->vectors + c];
    free(own);
    return y;
}

/* Checks a product, and that a repeat and, where this is promised, each column alone have the same bits. */
static bool check(spmv_context *ctx, const spmv_csr *matrix, const struct variant *v, bool again)
{
    const bool turned = v->operation != SPMV_OPERATION_N;
    const int64_t rows = turned ? matrix->cols : matrix->rows, cols = turned ? matrix->rows : matrix->cols;
    void *const val = random_halves(v->format, matrix->nnz, 1);
    uint16_t *const x = start(v, cols), *const y0 = start(v, rows), *const y = start(v, rows),
                    *const y2 = start(v, rows);
    spmv_csr a = *matrix;
    a.val = v->pattern ? NULL : val;
    a.type = v->format->type;
    const bool takes = multiply(ctx, &a, v, x, y, again);
    if (takes) {
        check_y(&a, v, x, y0, y);
        assert_true(multiply(ctx, &a, v, x, y2, false));
        assert_memory_equal(y, y2, (size_t)size_of(v, rows) * 2);
    }
    const bool alike = support_backend != SPMV_BACKEND_CUDA || strcmp(v->method, "wide") == 0 ||
                       strcmp(v->method, "panels") == 0 || strcmp(v->method, "octets") == 0 ||
                       strcmp(v->method, "abreast") == 0;
    if (takes && alike && v->vectors > 1 && v->vectors < 20) {
        struct variant one = *v;
        one.vectors = 1;
        one.gap = 0;
        for (int c = 0; c < v->vectors; c += v->vectors - 1) {
            uint16_t *const single = support_zeros(rows + 1, 2), *const from = support_zeros(cols + 1, 2);
            for (int64_t i = 0; i < cols; i++)
                from[i] = x[place_of(v, cols, i, c)];
            for (int64_t i = 0; i < rows; i++)
                single[i] = y0[place_of(v, rows, i, c)];
            assert_true(multiply(ctx, &a, &one, from, single, false));
            for (int64_t i = 0; i < rows; i++)
                assert_int_equal(single[i], y[place_of(v, rows, i, c)]);
            support_free(single, from);
        }
    }
    support_free(val, x, y0, y, y2);
    return takes;
}

static const char *const specs[] = {"powerlaw:300,6,2,200", "poisson2d:17", "uniform:90,210,20", "fem:60,3,9",
                                    "arrow:1300,1300,3"};
enum { SPECS = sizeof specs / sizeof specs[0] };

static void products(void **state)
{
    spmv_context *const ctx = *state;
    static const struct variant variants[] = {
        {.vectors = 1},
        {.vectors = 1, .scaled = true, .operation = SPMV_OPERATION_T},
        {.vectors = 1, .pattern = true},
        {.vectors = 8, .scaled = true},
        {.vectors = 4, .gap = 4, .pattern = true, .scaled = true},
        {.vectors = 19, .gap = 1},
        {.vectors = 33, .columns = true, .gap = 1, .scaled = true},
        {.vectors = 40, .operation = SPMV_OPERATION_T},
    };
    int taken[16] = {0};
    for (int s = 0; s < SPECS; s++) {
        spmv_matrix *matrix = NULL;
        spmv_csr a;
        assert_ok(ctx, spmv_matrix_generate(ctx, specs[s], SPMV_F64, &matrix));
        spmv_matrix_view(matrix, &a);
        a.memory = SPMV_MEMORY_HOST;
        for (size_t i = 0; i < sizeof variants / sizeof variants[0]; i++)
            for (int m = -1; m < 0 || spmv_method_name(support_backend, m) != NULL; m++) {
                struct variant v = variants[i];
                v.format = &formats[(s + i) % FORMATS];
                v.method = m < 0 ? "auto" : spmv_method_name(support_backend, m);
                const bool takes = check(ctx, &a, &v, (s + i) % 3 == 0 && !v.pattern);
                if (m < 0)
                    assert_true(takes);
                else
                    taken[m] += takes;
            }
        spmv_matrix_destroy(matrix);
    }
    for (int m = 0; spmv_method_name(support_backend, m) != NULL; m++) {
        const bool can = (method_named(support_backend, spmv_method_name(support_backend, m))->can & METHOD_HALF) != 0;
        assert_int_equal(taken[m] > 0, can);
    }
}

/* One row with the given entries times the given vector; k vectors alike. */
static long double of_row(spmv_context *ctx, const struct format *f, int n, const double *values, const double *x,
                          int k)
{
    uint16_t val[8], rows[8 * 32], y[32];
    const int32_t row_ptr[2] = {0, n}, col[8] = {0, 1, 2, 3, 4, 5, 6, 7};
    spmv_csr a = {.rows = 1,
                  .cols = n,
                  .nnz = n,
                  .row_ptr = row_ptr,
                  .row_ptr_bits = 32,
                  .col = col,
                  .val = val,
                  .type = f->type,
                  .memory = SPMV_MEMORY_HOST};
    spmv_plan_options o = support_plan_options();
    spmv_plan *plan = NULL;
    for (int i = 0; i < n; i++) {
        assert_int_equal(spmv_convert_numbers(SPMV_F64, &values[i], f->type, &val[i], 1), SPMV_OK);
        for (int v = 0; v < k; v++)
            assert_int_equal(spmv_convert_numbers(SPMV_F64, &x[i], f->type, &rows[i * k + v], 1), SPMV_OK);
    }
    o.vectors = k;
    assert_ok(ctx, spmv_plan_create(ctx, &a, &o, &plan));
    void *const device_x = support_upload(ctx, rows, (int64_t)n * k * 2), *const device_y =
                                                                              support_upload(ctx, rows, k * 2);
    assert_ok(ctx, spmv_apply(plan, NULL, device_x, NULL, device_y));
    assert_ok(ctx, spmv_download(ctx, device_y, y, k * 2));
    spmv_plan_destroy(plan);
    support_free_in(ctx, device_x, device_y);
    for (int v = 1; v < k; v++)
        assert_true(same(element(f, y, v), element(f, y, 0)));
    return element(f, y, 0);
}

static void special_values(void **state)
{
    spmv_context *const ctx = *state;
    static const int widths[] = {1, 4, 32};
    for (int f = 0; f < FORMATS; f++)
        for (int w = 0; w < 3; w++) {
            const struct format *const of = &formats[f];
            const int k = widths[w];
            const double big = of->greatest, ulp = ldexp(1, -of->fraction), least = ldexp(1, of->least - of->fraction);
#define ROW(n, ...) of_row(ctx, of, n, (const double[8]){__VA_ARGS__}, (const double[8]){1, 1, 1, 1, 1, 1, 1, 1}, k)
            assert_true(isnan(ROW(2, NAN, 1)));
            assert_true(ROW(2, INFINITY, 1) == (long double)INFINITY && ROW(2, 1, -INFINITY) == -(long double)INFINITY);
            assert_true(isnan(ROW(2, INFINITY, -INFINITY)));
            /* the sum is too large for the type, and not in between */
            assert_true(ROW(2, big, big) == (long double)INFINITY);
            if (of->type == SPMV_F16)
                assert_true(ROW(3, big, big, -big) == (long double)big);
            /* ties to even; the sum in f32 keeps what 16 bits do not */
            assert_true(ROW(2, 1, ulp / 2) == 1);
            assert_true(ROW(2, 1 + ulp, ulp / 2) == 1 + 2 * (long double)ulp);
            assert_true(ROW(3, 1, ulp / 2, ulp / 4) == 1 + (long double)ulp);
            assert_true(ROW(3, 1, ulp / 2, ulp / 2) == 1 + (long double)ulp);
            assert_true(ROW(1, least) == (long double)least && ROW(2, least, least) == 2 * (long double)least);
#undef ROW
            const double half[] = {0.5}, one[] = {least};
            assert_true(of_row(ctx, of, 1, one, half, k) == 0);
        }
}

static void check_of_products(void **state)
{
    spmv_context *const ctx = *state;
    spmv_matrix *matrix = NULL;
    spmv_csr a;
    spmv_verify_result result;
    if (support_backend == SPMV_BACKEND_CUDA)
        return;
    assert_ok(ctx, spmv_matrix_generate(ctx, "uniform:60,50,9", SPMV_F64, &matrix));
    spmv_matrix_view(matrix, &a);
    for (int f = 0; f < FORMATS; f++)
        for (int turned = 0; turned < 2; turned++) {
            const struct variant v = {.format = &formats[f],
                                      .method = "auto",
                                      .vectors = 1,
                                      .scaled = true,
                                      .operation = turned ? SPMV_OPERATION_T : SPMV_OPERATION_N};
            const int64_t rows = turned ? a.cols : a.rows, cols = turned ? a.rows : a.cols;
            void *const val = random_halves(v.format, a.nnz, 1);
            uint16_t *const x = start(&v, cols), *const y0 = start(&v, rows), *const y = start(&v, rows);
            spmv_csr half = a;
            half.val = val;
            half.type = v.format->type;
            half.memory = SPMV_MEMORY_HOST;
            assert_true(multiply(ctx, &half, &v, x, y, false));
            assert_ok(ctx,
                      spmv_verify(ctx, &half, v.operation, &alpha, x, &beta, y0, y, half.type, &result, sizeof result));
            assert_true(result.worst_ratio <= 1);
            y[7] ^= 4;
            assert_int_equal(
                spmv_verify(ctx, &half, v.operation, &alpha, x, &beta, y0, y, half.type, &result, sizeof result),
                SPMV_ERROR_CHECK);
            assert_int_equal(result.worst_row, 7);
            support_free(val, x, y0, y);
        }
    spmv_matrix_destroy(matrix);
}

static void refusals(void **state)
{
    spmv_context *const ctx = *state;
    const int32_t row_ptr[3] = {0, 1, 2}, col[2] = {0, 1};
    const uint16_t val[2] = {0x3c00, 0x3c00};
    const spmv_csr a = {.rows = 2,
                        .cols = 2,
                        .nnz = 2,
                        .row_ptr = row_ptr,
                        .row_ptr_bits = 32,
                        .col = col,
                        .val = val,
                        .type = SPMV_F16,
                        .memory = SPMV_MEMORY_HOST};
    spmv_solver *solver = NULL;
    spmv_preconditioner *precond = NULL;
    spmv_matrix *matrix = NULL;
    spmv_plan *plan = NULL;
    spmv_plan_options o = support_plan_options();
    spmv_solver_options solves;
    spmv_epilogue epilogue;
    spmv_cg_result result;
    double x[2] = {0, 0}, y[2] = {0, 0};
    static const char why[] = "only products with vectors and sampled products take 16-bit values";
    assert_fails(ctx, spmv_solver_create(ctx, &a, NULL, &solver), SPMV_ERROR_TYPE, why);
    assert_fails(ctx, spmv_preconditioner_create(ctx, "jacobi", &a, NULL, &precond), SPMV_ERROR_TYPE, why);
    assert_fails(ctx, spmv_matrix_transpose(ctx, &a, &matrix), SPMV_ERROR_TYPE, why);
    assert_fails(ctx, spmv_spgemm(ctx, &a, &a, NULL, &matrix), SPMV_ERROR_TYPE, why);
    spmv_csr pattern = a;
    pattern.val = NULL;
    spmv_solver_options_init(&solves, sizeof solves);
    solves.type = SPMV_BF16;
    assert_fails(ctx, spmv_solver_create(ctx, &pattern, &solves, &solver), SPMV_ERROR_TYPE, "bf16");
    assert_int_equal(spmv_reduce(ctx, SPMV_ADD, SPMV_BF16, x, y, 2), SPMV_ERROR_TYPE);
    assert_ok(ctx, spmv_plan_create(ctx, &a, NULL, &plan));
    spmv_epilogue_init(&epilogue, sizeof epilogue);
    epilogue.z = y;
    assert_fails(ctx, spmv_apply_with(plan, NULL, x, NULL, x + 1, &epilogue), SPMV_ERROR_UNSUPPORTED,
                 "not in type f16");
    assert_fails(ctx, spmv_cg(plan, x, y, NULL, &result, sizeof result), SPMV_ERROR_TYPE, "f16");
    spmv_plan_destroy(plan);
    o.type = SPMV_BF16;
    assert_fails(ctx, spmv_plan_create(ctx, &a, &o, &plan), SPMV_ERROR_TYPE,
                 "values of type f16 with vectors of type bf16");
    o.type = SPMV_F32;
    assert_fails(ctx, spmv_plan_create(ctx, &a, &o, &plan), SPMV_ERROR_TYPE,
                 "values of type f16 with vectors of type f32");
}

SUPPORT_MAIN(with_context(bits_of_every_number), with_context(rounding), with_context(products),
             with_context(special_values), with_context(check_of_products), with_context(refusals))

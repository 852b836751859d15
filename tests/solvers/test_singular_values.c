/* Estimates of extreme singular values, against closed forms: differences along a path (2 sin(j pi / 2n)),
 * diagonal matrices, singular and wide ones, complex ones.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>

#include "tests/support/support.h"
#include "tests/support/support_slow.h"

static const double pi = 3.14159265358979323846;

/* Differences of n neighbours on a path, (n - 1) x n, or its transpose. */
static spmv_singular_values of_path(spmv_context *ctx, int n, bool tall, double rtol)
{
    spmv_singular_values s;
    int64_t *const row_ptr = support_zeros(n + 1, 8);
    int32_t *const col = support_zeros(2 * n, 4);
    double *const val = support_zeros(2 * n, 8);
    int64_t k = 0;
    const int rows = tall ? n : n - 1;
    for (int i = 0; i < rows; i++) {
        for (int j = tall ? i - 1 : i; j <= (tall ? i : i + 1); j++)
            if (j >= 0 && j < (tall ? n - 1 : n)) {
                col[k] = j;
                val[k++] = (tall ? j == i : j == i + 1) ? 1 : -1;
            }
        row_ptr[i + 1] = k;
    }
    const spmv_csr a = support_view(rows, tall ? n - 1 : n, k, row_ptr, col, val, SPMV_F64);
    assert_ok(ctx, spmv_estimate_singular_values(ctx, &a, rtol, 0, &s, sizeof s));
    support_free(row_ptr, col, val);
    return s;
}

static void path(void **state)
{
    static const int sizes[] = {2, 3, 10, SLOW ? 24 : 100};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int tall = 0; tall < 2; tall++) {
            const int n = sizes[i];
            const spmv_singular_values s = of_path(*state, n, tall, 1e-6);
            const double largest = 2 * sin((n - 1) * pi / (2 * n)), smallest = 2 * sin(pi / (2 * n));
            assert_true(s.converged && !s.singular && s.iterations <= 8 * n);
            assert_true(fabs(s.largest - largest) <= s.largest_error + 1e-12);
            assert_true(fabs(s.smallest - smallest) <= s.smallest_error + 1e-12);
            assert_true(fabs(s.smallest / smallest - 1) < 1e-5 && s.largest_error < 1e-5);
        }
}

/* A diagonal; complex: times i. */
static spmv_singular_values of_diagonal(spmv_context *ctx, const double *diagonal, int n, spmv_type type, double rtol)
{
    spmv_singular_values s;
    const int parts = type_parts(type);
    int64_t *const row_ptr = support_zeros(n + 1, 8);
    int32_t *const col = support_zeros(n, 4);
    void *const val = support_zeros(n * parts, 8);
    for (int i = 0; i < n; i++) {
        row_ptr[i + 1] = i + 1;
        col[i] = i;
        real_set(type_part(type), val, parts * i + parts - 1, diagonal[i]);
    }
    const spmv_csr a = support_view(n, n, n, row_ptr, col, val, type);
    assert_ok(ctx, spmv_estimate_singular_values(ctx, &a, rtol, 0, &s, sizeof s));
    support_free(row_ptr, col, val);
    return s;
}

static void diagonals(void **state)
{
    static const spmv_type types[] = {SPMV_F64, SPMV_F32, SPMV_C128, SPMV_C64};
    enum { N = 12 };
    double diagonal[N];
    for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
        const bool single = type_part(types[t]) == SPMV_F32;
        for (int i = 0; i < N; i++)
            diagonal[i] = pow(single ? 1.5 : 4, -i) * (i % 2 ? -3 : 3);
        const spmv_singular_values s = of_diagonal(*state, diagonal, N, types[t], 1e-3);
        assert_true(s.converged && !s.singular);
        assert_true(fabs(s.largest / 3 - 1) < 1e-2 && fabs(s.smallest / fabs(diagonal[N - 1]) - 1) < 1e-2);
    }
    for (size_t t = 0; t < sizeof types / sizeof *types; t++) /* squares are out of range */
        for (int up = 0; up < 2; up++) {
            const double scale = pow(2, (type_part(types[t]) == SPMV_F32 ? 110 : 900) * (up ? 1 : -1));
            for (int i = 0; i < N; i++)
                diagonal[i] = scale * (1 + i);
            const spmv_singular_values s = of_diagonal(*state, diagonal, N, types[t], 1e-3);
            assert_true(s.converged && !s.singular);
            assert_true(fabs(s.largest / scale / N - 1) < 1e-2 && fabs(s.smallest / scale - 1) < 1e-2);
            assert_true(s.largest_error <= 1e-2 * scale && s.smallest_error <= 1e-2 * scale);
        }
    for (int i = 0; i < N; i++)
        diagonal[i] = i == 4 ? 0 : 1 + i; /* explicit */
    const spmv_singular_values s = of_diagonal(*state, diagonal, N, SPMV_F64, 1e-3);
    assert_true(s.converged && s.singular && fabs(s.largest / N - 1) < 1e-2 && s.smallest < 1e-13);
}

/* One element, no entries, a limit of iterations, wrong options, NaN. */
static void edges(void **state)
{
    spmv_context *const ctx = *state;
    static const double one[] = {-7};
    spmv_singular_values s = of_diagonal(ctx, one, 1, SPMV_F64, 1e-3);
    assert_true(fabs(s.largest - 7) < 1e-12 && fabs(s.smallest - 7) < 1e-12 && s.converged && !s.singular);
    static const int32_t row_ptr[] = {0, 0, 1}, col[] = {0};
    static const double nan[] = {NAN};
    spmv_csr a = support_csr(1, 4, row_ptr, col, one);
    assert_ok(ctx, spmv_estimate_singular_values(ctx, &a, 0.1, 0, &s, sizeof s));
    assert_true(s.largest == 0 && s.smallest == 0 && s.iterations == 0 && s.size == sizeof s);
    a = support_csr(2, 2, row_ptr, col, nan);
    assert_fails(ctx, spmv_estimate_singular_values(ctx, &a, 0.1, 0, &s, sizeof s), SPMV_ERROR_NOT_FINITE, "a norm is");
    assert_fails(ctx, spmv_estimate_singular_values(ctx, &a, 0, 0, &s, sizeof s), SPMV_ERROR_ARGUMENT, "rtol");
    assert_fails(ctx, spmv_estimate_singular_values(ctx, &a, 0.1, -1, &s, sizeof s), SPMV_ERROR_ARGUMENT,
                 "max_iterations");
    double diagonal[40];
    for (int i = 0; i < 40; i++)
        diagonal[i] = 1 + i * i;
    const spmv_singular_values full = of_diagonal(ctx, diagonal, 40, SPMV_F64, 1e-4);
    int64_t pointers[41];
    int32_t columns[40];
    for (int i = 0; i < 40; i++) {
        pointers[i] = columns[i] = i;
        pointers[i + 1] = i + 1;
    }
    a = support_view(40, 40, 40, pointers, columns, diagonal, SPMV_F64);
    assert_ok(ctx, spmv_estimate_singular_values(ctx, &a, 1e-4, 5, &s, sizeof s));
    assert_true(!s.converged && s.iterations == 5 && s.largest <= full.largest * (1 + 1e-12) &&
                s.smallest >= full.smallest * (1 - 1e-12) && full.converged && fabs(full.smallest - 1) < 1e-2);
}

SUPPORT_MAIN(with_context(path), with_context(diagonals), with_context(edges))

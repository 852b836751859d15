/* spmv_verify: accepts correct results, detects wrong ones and names the row; its bound is the
 * documented one.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <float.h>
#include <math.h>

#include "tests/support/support.h"

/* 3 x 3: [3 0 1; 0 0 0; 2 4 0] */
static const int32_t row_ptr[] = {0, 2, 2, 4}, col[] = {0, 2, 0, 1};
static const double val[] = {3, 1, 2, 4}, x[] = {1, 2, 3};
static const spmv_csr *lecture(void)
{
    static spmv_csr a;
    a = support_csr(3, 3, row_ptr, col, val);
    return &a;
}

static spmv_status verify(spmv_context *ctx, spmv_operation operation, const double *y, spmv_verify_result *result)
{
    return spmv_verify(ctx, lecture(), operation, NULL, x, NULL, NULL, y, SPMV_F64, result, sizeof *result);
}

static void right_answers_pass(void **state)
{
    spmv_context *ctx = *state;
    spmv_verify_result result;
    const double y[] = {6, 0, 10}, yt[] = {9, 12, 1};
    assert_ok(ctx, verify(ctx, SPMV_OPERATION_N, y, &result));
    assert_true(result.failed_rows == 0 && result.worst_ratio == 0 && result.worst_row == 0);
    assert_int_equal(result.size, sizeof result);
    assert_ok(ctx, verify(ctx, SPMV_OPERATION_T, yt, &result));
    assert_true(result.failed_rows == 0);
}

static void wrong_answers_fail(void **state)
{
    spmv_context *ctx = *state;
    spmv_verify_result result;
    const double wrong[] = {6, 0, 10.5}, yt[] = {9, 12, 1}, nan_row[] = {NAN, 0, 10}, all_wrong[] = {-6, 1e-300, 11};
    assert_fails(ctx, verify(ctx, SPMV_OPERATION_N, wrong, &result), SPMV_ERROR_CHECK, "row 2 (counted from 0)");
    assert_true(result.failed_rows == 1 && result.worst_row == 2 && result.worst_ratio > 1e12);
    assert_true(result.worst_value == 10.5 && result.worst_reference == 10);
    assert_fails(ctx, verify(ctx, SPMV_OPERATION_N, yt, &result), SPMV_ERROR_CHECK, "3 of 3 rows");
    assert_fails(ctx, verify(ctx, SPMV_OPERATION_N, nan_row, &result), SPMV_ERROR_CHECK, "row 0 (counted from 0)");
    assert_true(isinf(result.worst_ratio));
    /* an empty row must be 0, up to the smallest subnormal */
    assert_fails(ctx, verify(ctx, SPMV_OPERATION_N, all_wrong, &result), SPMV_ERROR_CHECK, "3 of 3 rows");
}

/* Row 0 has two terms, 3 and 3: the bound is 2 (2 + 3) 2^-53 6. */
static void the_bound_is_the_documented_one(void **state)
{
    spmv_context *ctx = *state;
    spmv_verify_result result;
    const double bound = 2 * 5 * (DBL_EPSILON / 2) * 6;
    const double inside[] = {6 + 0.9 * bound, 0, 10}, outside[] = {6 + 1.2 * bound, 0, 10};
    assert_ok(ctx, verify(ctx, SPMV_OPERATION_N, inside, &result));
    assert_true(result.worst_ratio > 0.7 && result.worst_ratio < 1 && result.worst_row == 0);
    assert_fails(ctx, verify(ctx, SPMV_OPERATION_N, outside, &result), SPMV_ERROR_CHECK, "row 0 (counted from 0)");
    assert_true(result.worst_ratio < 1.4 && result.failed_rows == 1);
}

/* A product that underflows before a large alpha is accepted; a larger error is not. */
static void underflow_is_scaled(void **state)
{
    static const int32_t ptr[] = {0, 1}, first[] = {0};
    const float a[] = {1e-25f}, in[] = {1e-24f}, alpha = 1e10f, zero = 0, wrong = 1e-33f;
    spmv_csr one = support_csr(1, 1, ptr, first, NULL);
    spmv_context *ctx = *state;
    spmv_verify_result result;
    one.val = a;
    one.type = SPMV_F32;
    assert_ok(
        ctx, spmv_verify(ctx, &one, SPMV_OPERATION_N, &alpha, in, NULL, NULL, &zero, SPMV_F32, &result, sizeof result));
    assert_fails(
        ctx, spmv_verify(ctx, &one, SPMV_OPERATION_N, &alpha, in, NULL, NULL, &wrong, SPMV_F32, &result, sizeof result),
        SPMV_ERROR_CHECK, "row 0 (counted from 0)");
}

static void scaling_takes_part(void **state)
{
    spmv_context *ctx = *state;
    spmv_verify_result result;
    const double alpha = 2, beta = -1, y0[] = {1, 5, 4}, y[] = {11, -5, 16};
    assert_ok(ctx,
              spmv_verify(ctx, lecture(), SPMV_OPERATION_N, &alpha, x, &beta, y0, y, SPMV_F64, &result, sizeof result));
    assert_true(y0[0] == 1); /* not written */
    assert_fails(
        ctx, spmv_verify(ctx, lecture(), SPMV_OPERATION_N, &alpha, x, NULL, y0, y, SPMV_F64, &result, sizeof result),
        SPMV_ERROR_CHECK, "rows");
    assert_fails(
        ctx, spmv_verify(ctx, lecture(), SPMV_OPERATION_N, &alpha, x, &beta, NULL, y, SPMV_F64, &result, sizeof result),
        SPMV_ERROR_ARGUMENT, "NULL");
    assert_fails(
        ctx, spmv_verify(ctx, lecture(), SPMV_OPERATION_N, NULL, x, NULL, NULL, y, SPMV_I32, &result, sizeof result),
        SPMV_ERROR_TYPE, "i32");
}

static void single_precision(void **state)
{
    spmv_context *ctx = *state;
    spmv_verify_result result;
    const float val32[] = {0.1f, 1, 2, 4}, x32[] = {1, 2, 3};
    spmv_csr a = *lecture();
    a.val = val32;
    a.type = SPMV_F32;
    float y[] = {0.1f + 3, 0, 10};
    assert_ok(ctx, spmv_verify(ctx, &a, SPMV_OPERATION_N, NULL, x32, NULL, NULL, y, SPMV_F32, &result, sizeof result));
    y[0] += 1e-5f; /* the bound is 2 * 5 * 2^-24 * 3.1 = 1.8e-6 */
    assert_fails(ctx,
                 spmv_verify(ctx, &a, SPMV_OPERATION_N, NULL, x32, NULL, NULL, y, SPMV_F32, &result, sizeof result),
                 SPMV_ERROR_CHECK, "row 0 (counted from 0)");
    a.val = NULL; /* a pattern: row 0 is x0 + x2 */
    y[0] = 4;
    y[2] = 3;
    assert_ok(ctx, spmv_verify(ctx, &a, SPMV_OPERATION_N, NULL, x32, NULL, NULL, y, SPMV_F32, &result, sizeof result));
}

static void not_finite_in_both(void **state)
{
    spmv_context *ctx = *state;
    spmv_verify_result result;
    const double big[] = {1, INFINITY, 3}, y[] = {6, 0, NAN}, finite[] = {6, 0, 10};
    assert_ok(
        ctx, spmv_verify(ctx, lecture(), SPMV_OPERATION_N, NULL, big, NULL, NULL, y, SPMV_F64, &result, sizeof result));
    assert_fails(
        ctx,
        spmv_verify(ctx, lecture(), SPMV_OPERATION_N, NULL, big, NULL, NULL, finite, SPMV_F64, &result, sizeof result),
        SPMV_ERROR_CHECK, "row 2 (counted from 0)");
}

/* The norm of what narrow vectors stand for is summed in a wider type. */
static void norms_are_wide(void **state)
{
    spmv_context *ctx = *state;
    spmv_verify_result result;
    static const int32_t begins[] = {0, 2, 3}, columns[] = {0, 1, 1};
    static const float ones[] = {1, 1, 1}, narrow_x[] = {1, 0x1p-30f}, narrow_y[] = {1, 0x1p-30f};
    const spmv_csr a = support_csr_with(2, 2, 3, begins, 32, columns, ones, SPMV_F32);
    const double first = 1 + 0x1p-30, norm = sqrt(first * first + 0x1p-60);
    assert_ok(ctx, spmv_verify(ctx, &a, SPMV_OPERATION_N, NULL, narrow_x, NULL, NULL, narrow_y, SPMV_F32, &result,
                               sizeof result));
    assert_true(fabs(result.norm - norm) <= DBL_EPSILON && result.norm_error > 0 && result.norm_error < 1e-14);
    const double y[] = {6, 0, 10};
    assert_ok(ctx, verify(ctx, SPMV_OPERATION_N, y, &result));
    assert_true(result.norm == 0 && result.norm_error > 0 && result.norm_error < 1e-13);
}

SUPPORT_MAIN(with_context(right_answers_pass), with_context(wrong_answers_fail), with_context(scaling_takes_part),
             with_context(underflow_is_scaled), with_context(the_bound_is_the_documented_one),
             with_context(single_precision), with_context(not_finite_in_both), with_context(norms_are_wide))

/* Preconditioners jacobi and block-jacobi of general matrices (the option general): the inverses of
 * the diagonal and of the diagonal blocks, singular blocks, entries of 0.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <float.h>
#include <math.h>

#include "tests/support/support_precond.h"

static spmv_status create(spmv_context *ctx, const char *name, const spmv_csr *a, int block, spmv_preconditioner **m)
{
    spmv_preconditioner_options options = support_preconditioner_options();
    options.general = 1;
    options.block = block;
    return spmv_preconditioner_create(ctx, name, a, &options, m);
}

/* A tridiagonal matrix with diagonal entries of either sign, in host memory and in the context's:
 * M^-1 r by hand. */
static void jacobi_of_either_sign(void **state)
{
    enum { N = 300 };
    spmv_context *ctx = *state;
    int32_t row_ptr[N + 1] = {0}, col[3 * N];
    double val[3 * N], r[N], z[N];
    for (int i = 0; i < N; i++) {
        row_ptr[i + 1] = row_ptr[i];
        for (int j = i > 0 ? i - 1 : 0; j <= i + 1 && j < N; j++) {
            col[row_ptr[i + 1]] = j;
            val[row_ptr[i + 1]++] = j == i ? ldexp(i % 3 == 1 ? -1 : 1, i % 7 - 3) : 9;
        }
        r[i] = i - 0.5;
    }
    const int64_t nnz = row_ptr[N];
    for (int t = 0; t < 2; t++)
        for (int memory = 0; memory < 2; memory++) {
            spmv_csr a = support_csr(N, N, row_ptr, col, val);
            a.type = t == 0 ? SPMV_F64 : SPMV_F32;
            void *const values = support_as(a.type, val, nnz, 0);
            a.val = values;
            void *there[] = {support_upload(ctx, row_ptr, sizeof row_ptr), support_upload(ctx, col, nnz * 4),
                             support_upload(ctx, values, nnz * (int64_t)spmv_type_size(a.type))};
            if (memory == 1) {
                a.memory = SPMV_MEMORY_CONTEXT;
                a.row_ptr = there[0];
                a.col = there[1];
                a.val = there[2];
            }
            spmv_preconditioner *m = NULL;
            assert_ok(ctx, create(ctx, "jacobi", &a, 0, &m));
            apply(ctx, m, r, z);
            for (int i = 0; i < N; i++)
                assert_true(z[i] == ldexp(i % 3 == 1 ? -r[i] : r[i], 3 - i % 7));
            assert_non_null(precond_inverse_diagonal(m));
            spmv_preconditioner_destroy(m);
            for (int i = 0; i < 3; i++)
                spmv_free(ctx, there[i]);
            free(values);
        }
}

/* z with B z = r for the diagonal blocks B of random matrices, of which some need pivoting; in both
 * types. */
static void blocks_as_defined(void **state)
{
    enum { N = 53 };
    spmv_context *ctx = *state;
    static double dense[N * N];
    static const int sizes[] = {1, 2, 5, 16, 53, 64};
    double r[N], z[N];
    uint64_t seed = 4;
    for (int i = 0; i < N; i++) {
        for (int j = 0; j < N; j++)
            dense[i * N + j] = i == j && i % 2 == 0 ? 1e-9 : support_uniform(&seed);
        r[i] = (float)support_uniform(&seed);
    }
    int32_t *row_ptr = NULL, *col = NULL;
    double *val = NULL;
    for (int t = 0; t < 2; t++)
        for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
            spmv_csr a = support_csr_of_dense(N, dense, &row_ptr, &col, &val);
            a.type = t == 0 ? SPMV_F64 : SPMV_F32;
            void *const values = support_as(a.type, val, a.nnz, 0);
            a.val = values;
            spmv_preconditioner *m = NULL;
            spmv_preconditioner_info info;
            assert_ok(ctx, create(ctx, "block-jacobi", &a, sizes[s], &m));
            assert_ok(ctx, spmv_preconditioner_describe(m, &info, sizeof info));
            assert_true(info.fallen == 0);
            apply(ctx, m, r, z);
            for (int i = 0; i < N; i++) {
                const int first = i / sizes[s] * sizes[s], end = first + sizes[s] < N ? first + sizes[s] : N;
                double sum = -r[i], largest = 0;
                for (int j = first; j < end; j++) {
                    sum += real_at(a.type, values, i * N + j) * z[j];
                    for (int k = first; k < end; k++) /* of the terms of all rows of the block */
                        largest = fmax(largest, fabs(dense[k * N + j] * z[j]));
                }
                /* rounding errors grow with the condition of the block, some 1000 */
                if (!(fabs(sum) <= 1e4 * (t == 0 ? DBL_EPSILON : FLT_EPSILON) * largest))
                    fail_msg("blocks of %d: row %d is off by %g of %g", sizes[s], i, sum, largest);
            }
            spmv_preconditioner_destroy(m);
            support_free(values, row_ptr, col, val);
        }
}

/* A singular block becomes its diagonal, which must have no 0. */
static void singular_blocks(void **state)
{
    spmv_context *ctx = *state;
    const double exchange[] = {0, 2, 0, 0, -4, 0, 0, 0, 0, 0, -4, 8, 0, 0, 1, -2};
    const double r[] = {1, 1, 1, 1};
    double z[4];
    int32_t *row_ptr = NULL, *col = NULL;
    double *val = NULL;
    spmv_preconditioner *m = NULL;
    spmv_preconditioner_info info;
    spmv_csr a = support_csr_of_dense(4, exchange, &row_ptr, &col, &val);
    assert_ok(ctx, create(ctx, "block-jacobi", &a, 2, &m));
    apply(ctx, m, r, z);
    assert_true(z[0] == -0.25 && z[1] == 0.5 && z[2] == -0.25 && z[3] == -0.5);
    assert_ok(ctx, spmv_preconditioner_describe(m, &info, sizeof info));
    assert_true(info.fallen == 1);
    assert_non_null(
        strstr(info.layout, "singular, replaced by their diagonal: 1 (the first at row 2 (counted from 0))"));
    spmv_preconditioner_destroy(m);
    assert_fails(ctx, create(ctx, "block-jacobi", &a, 1, &m), SPMV_ERROR_SINGULAR, "row 0 (counted from 0) is 0");
    assert_null(m);
    assert_fails(ctx, create(ctx, "jacobi", &a, 0, &m), SPMV_ERROR_SINGULAR, "row 0 (counted from 0) is 0");
    assert_null(m);
    support_free(row_ptr, col, val);
    const double bad[] = {2, 0, 0, NAN}, infinite[] = {-2, 1, 0, INFINITY}, tiny[] = {1, 0, 1, -1e-320};
    a = support_csr_of_dense(2, bad, &row_ptr, &col, &val);
    assert_fails(ctx, create(ctx, "jacobi", &a, 0, &m), SPMV_ERROR_NOT_FINITE, "row 1 (counted from 0) is nan");
    assert_fails(ctx, create(ctx, "block-jacobi", &a, 2, &m), SPMV_ERROR_NOT_FINITE, "row 1 (counted from 0) is nan");
    support_free(row_ptr, col, val);
    a = support_csr_of_dense(2, infinite, &row_ptr, &col, &val);
    assert_fails(ctx, create(ctx, "jacobi", &a, 0, &m), SPMV_ERROR_NOT_FINITE, "row 1 (counted from 0) is inf");
    support_free(row_ptr, col, val);
    a = support_csr_of_dense(2, tiny, &row_ptr, &col, &val);
    assert_fails(ctx, create(ctx, "jacobi", &a, 0, &m), SPMV_ERROR_NOT_FINITE, "reciprocal overflows");
    assert_fails(ctx, create(ctx, "chebyshev", &a, 0, &m), SPMV_ERROR_NOT_POSITIVE, "row 1");
    assert_null(m);
    support_free(row_ptr, col, val);
}

SUPPORT_MAIN(with_context(jacobi_of_either_sign), with_context(blocks_as_defined), with_context(singular_blocks))

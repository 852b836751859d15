/* The rounding errors of a residual: whether a solver stopped because the type has no more digits.
 *
 * Row i of b - A x is computed with an error of about roundoff (|A||x| + |b|)_i, whatever x is (N. J.
 * Higham, "Accuracy and Stability of Numerical Algorithms", 2nd ed., 2002, chapter 12). No solver
 * reaches a much smaller residual in this type.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>

#include "formats/matrix_internal.h"
#include "solvers/solver_internal.h"

static double modulus_at(spmv_type type, const void *values, int64_t i)
{
    if (values == NULL)
        return 1;
    return type_is_complex(type)
               ? hypot(real_at(type_part(type), values, 2 * i), real_at(type_part(type), values, 2 * i + 1))
               : fabs(real_at(type, values, i));
}

/* *array: the array, copied to *copy where the host cannot read it. */
static spmv_status read_array(spmv_context *ctx, const void *from, int64_t bytes, void **copy, const void **array)
{
    spmv_status st = SPMV_OK;
    *array = from;
    if (ctx->backend->id != SPMV_BACKEND_CUDA || from == NULL || bytes == 0)
        return st;
    TRY(host_alloc(ctx, bytes, "a copy for a residual", copy));
    TRY(spmv_download(ctx, from, *copy, bytes));
    *array = *copy;
done:
    return st;
}

spmv_status solver_rounding(const spmv_solver *s, spmv_type type, const void *b, const void *x, double *norm)
{
    spmv_status st = SPMV_OK;
    spmv_context *const ctx = s->ctx;
    spmv_csr a = *solver_matrix(s);
    const int64_t bytes = a.rows * (int64_t)spmv_type_size(type);
    void *copies[5] = {NULL};
    const void *col = NULL, *host_b = NULL, *host_x = NULL;
    double square = 0;
    TRY(spmv_synchronize(ctx));
    TRY(read_array(ctx, a.row_ptr, (a.rows + 1) * (a.row_ptr_bits / 8), &copies[0], &a.row_ptr));
    TRY(read_array(ctx, a.col, a.nnz * (int64_t)sizeof *a.col, &copies[1], &col));
    TRY(read_array(ctx, a.val, a.val != NULL ? a.nnz * (int64_t)spmv_type_size(a.type) : 0, &copies[2], &a.val));
    TRY(read_array(ctx, b, bytes, &copies[3], &host_b));
    TRY(read_array(ctx, x, bytes, &copies[4], &host_x));
    a.col = col;
    for (int64_t i = 0; i < a.rows; i++) {
        double sum = modulus_at(type, host_b, i);
        for (int64_t k = row_first(&a, i); k < row_first(&a, i + 1); k++)
            sum += modulus_at(a.type, a.val, k) * modulus_at(type, host_x, a.col[k]);
        square += sum * sum;
    }
    *norm = real_limits_of(type_part(type)).roundoff * sqrt(square);
done:
    for (size_t i = 0; i < sizeof copies / sizeof *copies; i++)
        host_free(copies[i]);
    return st;
}

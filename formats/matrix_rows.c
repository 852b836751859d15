/* The diagonal and the row sums of a matrix.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "matrix_internal.h"
#include "ops.h"

#define TEMPLATE "matrix_rows_typed.h"
#include "each_value.h"

typedef void (*rows_fn)(spmv_context *, const spmv_csr *, void *);

/* The type of the results. */
static spmv_type type_of(const spmv_csr *a)
{
    return a->val != NULL ? a->type : SPMV_F64;
}

static spmv_status check(spmv_context *ctx, const char *call, const spmv_csr *a, const char *name, const void *result,
                         int64_t n)
{
    const spmv_status st = csr_check_shape(ctx, call, a);
    if (st != SPMV_OK)
        return st;
    if (result == NULL && n > 0)
        return context_fail(ctx, SPMV_ERROR_ARGUMENT, "%s: %s is NULL", call, name);
    if (!csr_on_device(ctx, a))
        return csr_check(ctx, call, a, CSR_ANY_ORDER);
    if (!values_aligned(ctx, type_of(a), a->val) || !values_aligned(ctx, type_of(a), result))
        return context_fail(ctx, SPMV_ERROR_ARGUMENT, "%s: val or %s is not aligned to %zu bytes", call, name,
                            spmv_type_size(a->type));
    return SPMV_OK;
}

spmv_status spmv_matrix_diagonal(spmv_context *ctx, const spmv_csr *a, void *diagonal)
{
    static const rows_fn run[SPMV_TYPE_LIMIT] = VALUE_TABLE(diagonal);
    const int64_t n = a != NULL ? min_i64(a->rows, a->cols) : 0;
    const spmv_status st = check(ctx, "spmv_matrix_diagonal", a, "diagonal", diagonal, n);
    if (st != SPMV_OK || n == 0)
        return st;
#ifdef SPMV_HAVE_CUDA
    if (csr_on_device(ctx, a))
        return matrix_diagonal_cuda(ctx, a, diagonal);
#endif
    run[type_of(a)](ctx, a, diagonal);
    return SPMV_OK;
}

spmv_status spmv_matrix_row_sums(spmv_context *ctx, const spmv_csr *a, void *sums)
{
    static const rows_fn run[SPMV_TYPE_LIMIT] = VALUE_TABLE(row_sums);
    const spmv_status st = check(ctx, "spmv_matrix_row_sums", a, "sums", sums, a != NULL ? a->rows : 0);
    if (st != SPMV_OK || a->rows == 0)
        return st;
#ifdef SPMV_HAVE_CUDA
    if (csr_on_device(ctx, a))
        return matrix_row_sums_cuda(ctx, a, sums);
#endif
    run[type_of(a)](ctx, a, sums);
    return SPMV_OK;
}

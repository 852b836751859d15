/* The diagonal and the row sums of a matrix.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "core/loops/ops.h"
#include "formats/matrix_internal.h"

#define TEMPLATE "formats/matrix_rows_typed.h"
#include "core/each/each_value.h"

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

/* A function of the rows, with n results in an argument of this name. */
struct rows_call {
    const char *call, *name;
    rows_fn run[SPMV_TYPE_LIMIT];
    spmv_status (*on_device)(spmv_context *ctx, const spmv_csr *a, void *result);
};

static spmv_status compute(const struct rows_call *c, spmv_context *ctx, const spmv_csr *a, void *result, int64_t n)
{
    const spmv_status st = check(ctx, c->call, a, c->name, result, n);
    if (st != SPMV_OK || n == 0)
        return st;
    if (csr_on_device(ctx, a))
        return c->on_device(ctx, a, result);
    c->run[type_of(a)](ctx, a, result);
    return SPMV_OK;
}

spmv_status spmv_matrix_diagonal(spmv_context *ctx, const spmv_csr *a, void *diagonal)
{
    static const struct rows_call c = {"spmv_matrix_diagonal", "diagonal", VALUE_TABLE(diagonal), matrix_diagonal_cuda};
    return compute(&c, ctx, a, diagonal, a != NULL ? min_i64(a->rows, a->cols) : 0);
}

spmv_status spmv_matrix_row_sums(spmv_context *ctx, const spmv_csr *a, void *sums)
{
    static const struct rows_call c = {"spmv_matrix_row_sums", "sums", VALUE_TABLE(row_sums), matrix_row_sums_cuda};
    return compute(&c, ctx, a, sums, a != NULL ? a->rows : 0);
}

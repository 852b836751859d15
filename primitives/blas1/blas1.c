/* Maps and reductions of vectors for solvers (divide, axpby, dot): the public fronts.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "core/backend.h"

static spmv_status check(spmv_context *ctx, const char *name, spmv_type type, int64_t n, bool arrays)
{
    if (ctx == NULL)
        return SPMV_ERROR_ARGUMENT;
    if (!type_is_real(type))
        return context_fail(ctx, SPMV_ERROR_TYPE, "%s: type %s; supported: f32 and f64", name, spmv_type_name(type));
    if (n < 0)
        return context_fail(ctx, SPMV_ERROR_ARGUMENT, "%s: n = %lld is negative", name, (long long)n);
    if (!arrays)
        return context_fail(ctx, SPMV_ERROR_ARGUMENT, "%s: an array is NULL though n = %lld", name, (long long)n);
    return SPMV_OK;
}

spmv_status spmv_map_divide(spmv_context *ctx, spmv_type type, const void *a, const void *b, void *out, int64_t n)
{
    const spmv_status st = check(ctx, "spmv_map_divide", type, n, n <= 0 || (a != NULL && b != NULL && out != NULL));
    return st != SPMV_OK || n == 0 ? st : ctx->backend->map_divide(ctx, type, a, b, out, n);
}

spmv_status spmv_map_axpby(spmv_context *ctx, spmv_type type, const void *alpha, const void *x, const void *beta,
                           void *y, int64_t n)
{
    const spmv_status st = check(ctx, "spmv_map_axpby", type, n, n <= 0 || (x != NULL && y != NULL));
    return st != SPMV_OK || n == 0 ? st : ctx->backend->map_axpby(ctx, type, alpha, x, beta, y, n);
}

spmv_status spmv_dot(spmv_context *ctx, spmv_type type, const void *x, const void *y, void *out, int64_t n)
{
    void *scratch = NULL;
    spmv_status st = check(ctx, "spmv_dot", type, n, out != NULL && (n <= 0 || (x != NULL && y != NULL)));
    if (st == SPMV_OK && n == 0)
        return spmv_reduce(ctx, SPMV_ADD, type, NULL, out, 0);
    if (st == SPMV_OK)
        st = context_scratch(ctx, ctx->backend->dot_scratch(ctx, type, n), &scratch);
    return st != SPMV_OK ? st : ctx->backend->dot(ctx, type, x, y, out, n, scratch);
}

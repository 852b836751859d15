/* reduce: the public front.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "backend.h"
#include "map_fill.h"

spmv_status spmv_reduce(spmv_context *ctx, spmv_op op, spmv_type type, const void *in, void *out, int64_t n)
{
    if (!spmv_op_takes(op, type))
        return context_fail(ctx, SPMV_ERROR_TYPE, "spmv_reduce: no operator %s for type %s", spmv_op_name(op),
                            spmv_type_name(type));
    if (n < 0)
        return context_fail(ctx, SPMV_ERROR_ARGUMENT, "spmv_reduce: n = %lld is negative", (long long)n);
    if (out == NULL || (n > 0 && in == NULL))
        return context_fail(ctx, SPMV_ERROR_ARGUMENT, "spmv_reduce: %s is NULL though n = %lld",
                            out == NULL ? "out" : "in", (long long)n);
    if (n == 0)
        return fill_identity(ctx, op, type, out, 1);
    void *scratch = NULL;
    const spmv_status st = context_scratch(ctx, ctx->backend->reduce_scratch(ctx, type, n), &scratch);
    return st != SPMV_OK ? st : ctx->backend->reduce(ctx, op, type, in, out, n, scratch);
}

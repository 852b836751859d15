/* scan: the public front.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "backend.h"

spmv_status spmv_scan(spmv_context *ctx, spmv_scan_kind kind, spmv_op op, spmv_type type, const void *in, void *out,
                      int64_t n)
{
    if (!spmv_op_takes(op, type))
        return context_fail(ctx, SPMV_ERROR_TYPE, "spmv_scan: no operator %s for type %s", spmv_op_name(op),
                            spmv_type_name(type));
    if (kind != SPMV_INCLUSIVE && kind != SPMV_EXCLUSIVE)
        return context_fail(ctx, SPMV_ERROR_ARGUMENT, "spmv_scan: %d is no kind of scan", (int)kind);
    if (n < 0)
        return context_fail(ctx, SPMV_ERROR_ARGUMENT, "spmv_scan: n = %lld is negative", (long long)n);
    if (n == 0)
        return SPMV_OK;
    if (in == NULL || out == NULL)
        return context_fail(ctx, SPMV_ERROR_ARGUMENT, "spmv_scan: %s is NULL", in == NULL ? "in" : "out");
    void *scratch = NULL;
    const spmv_status st = context_scratch(ctx, ctx->backend->scan_scratch(ctx, type, n), &scratch);
    return st != SPMV_OK ? st : ctx->backend->scan(ctx, kind, op, type, in, out, n, scratch);
}

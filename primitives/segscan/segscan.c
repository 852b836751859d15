/* segmented scan: the public front.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "backend.h"
#include "segments.h"

spmv_status spmv_segscan(spmv_context *ctx, spmv_scan_kind kind, spmv_op op, spmv_type type,
                         const spmv_segments *segments, const void *in, void *out, int64_t n)
{
    if (!spmv_op_takes(op, type))
        return context_fail(ctx, SPMV_ERROR_TYPE, "spmv_segscan: no operator %s for type %s", spmv_op_name(op),
                            spmv_type_name(type));
    if (kind != SPMV_INCLUSIVE && kind != SPMV_EXCLUSIVE)
        return context_fail(ctx, SPMV_ERROR_ARGUMENT, "spmv_segscan: %d is no kind of scan", (int)kind);
    if (n < 0)
        return context_fail(ctx, SPMV_ERROR_ARGUMENT, "spmv_segscan: n = %lld is negative", (long long)n);
    if (n > 0 && (in == NULL || out == NULL))
        return context_fail(ctx, SPMV_ERROR_ARGUMENT, "spmv_segscan: %s is NULL though n = %lld",
                            in == NULL ? "in" : "out", (long long)n);
    spmv_status st = SPMV_OK;
    void *scratch = NULL;
    TRY(segments_check(ctx, "spmv_segscan", segments, n));
    if (n == 0)
        goto done;
    TRY(context_scratch(ctx, ctx->backend->segscan_scratch(ctx, type, segments, n), &scratch));
    TRY(ctx->backend->segscan(ctx, kind, op, type, segments, in, out, n, scratch));
done:
    return st;
}

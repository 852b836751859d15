/* segmented reduce: the public front.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "core/backend.h"
#include "primitives/map/map_fill.h"
#include "primitives/segscan/segments.h"

spmv_status spmv_segreduce(spmv_context *ctx, spmv_op op, spmv_type type, const spmv_segments *segments, const void *in,
                           void *out, int64_t n)
{
    if (ctx == NULL)
        return SPMV_ERROR_ARGUMENT;
    if (!spmv_op_takes(op, type))
        return context_fail(ctx, SPMV_ERROR_TYPE, "spmv_segreduce: no operator %s for type %s", spmv_op_name(op),
                            spmv_type_name(type));
    if (n < 0)
        return context_fail(ctx, SPMV_ERROR_ARGUMENT, "spmv_segreduce: n = %lld is negative", (long long)n);
    spmv_status st = SPMV_OK;
    void *scratch = NULL;
    TRY(segments_check(ctx, "spmv_segreduce", segments, n));
    if (segments->form == SPMV_SEGMENT_FLAGS)
        return context_fail(ctx, SPMV_ERROR_ARGUMENT,
                            "spmv_segreduce: flags do not give the number of results: use positions");
    if (segments->count == 0)
        goto done;
    if (out == NULL || (n > 0 && in == NULL))
        return context_fail(ctx, SPMV_ERROR_ARGUMENT, "spmv_segreduce: %s is NULL though n = %lld, count = %lld",
                            out == NULL ? "out" : "in", (long long)n, (long long)segments->count);
    if (n == 0) { /* the positions, all 0, may be NULL */
        st = fill_identity(ctx, op, type, out, segments->count);
        goto done;
    }
    TRY(context_scratch(ctx, ctx->backend->segreduce_scratch(ctx, type, segments, n), &scratch));
    TRY(ctx->backend->segreduce(ctx, op, type, segments, in, out, n, scratch));
done:
    return st;
}

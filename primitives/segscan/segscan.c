/* segmented scan and segmented reduce: the public fronts.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "backend.h"

static spmv_status check(spmv_context *ctx, const char *name, spmv_op op, spmv_type type, const spmv_segments *s,
                         int64_t n)
{
    if (!spmv_op_takes(op, type))
        return context_fail(ctx, SPMV_ERROR_TYPE, "%s: no operator %s for type %s", name, spmv_op_name(op),
                            spmv_type_name(type));
    if (n < 0)
        return context_fail(ctx, SPMV_ERROR_ARGUMENT, "%s: n = %lld is negative", name, (long long)n);
    if (s == NULL)
        return context_fail(ctx, SPMV_ERROR_ARGUMENT, "%s: segments is NULL", name);
    if (s->form == SPMV_SEGMENT_FLAGS) {
        if (s->bits != 8)
            return context_fail(ctx, SPMV_ERROR_ARGUMENT, "%s: flags of %d bits, 8 wanted", name, s->bits);
        return n == 0 || s->heads != NULL ? SPMV_OK : context_fail(ctx, SPMV_ERROR_ARGUMENT, "%s: heads is NULL", name);
    }
    if (s->form != SPMV_SEGMENT_STARTS && s->form != SPMV_SEGMENT_OFFSETS)
        return context_fail(ctx, SPMV_ERROR_ARGUMENT, "%s: segments of form %d", name, (int)s->form);
    if (s->bits != 32 && s->bits != 64)
        return context_fail(ctx, SPMV_ERROR_ARGUMENT, "%s: positions of %d bits, 32 or 64 wanted", name, s->bits);
    if (s->count < 0)
        return context_fail(ctx, SPMV_ERROR_ARGUMENT, "%s: %lld segments", name, (long long)s->count);
    if (s->heads == NULL && (s->count > 0 || n > 0))
        return context_fail(ctx, SPMV_ERROR_ARGUMENT, "%s: heads is NULL", name);
    if (n > 0 && s->count == 0)
        return context_fail(ctx, SPMV_ERROR_SIZE, "%s: %lld elements, but no segment to hold them", name, (long long)n);
    return SPMV_OK;
}

static spmv_status check_positions(spmv_context *ctx, const spmv_segments *s, int64_t n)
{
    const bool positions = s->form != SPMV_SEGMENT_FLAGS && s->count > 0;
    return positions && ctx->backend->segments_check != NULL ? ctx->backend->segments_check(ctx, s, n) : SPMV_OK;
}

spmv_status spmv_segscan(spmv_context *ctx, spmv_scan_kind kind, spmv_op op, spmv_type type,
                         const spmv_segments *segments, const void *in, void *out, int64_t n)
{
    void *scratch = NULL;
    spmv_status st = SPMV_OK;
    TRY(check(ctx, "spmv_segscan", op, type, segments, n));
    if (kind != SPMV_INCLUSIVE && kind != SPMV_EXCLUSIVE)
        return context_fail(ctx, SPMV_ERROR_ARGUMENT, "spmv_segscan: kind is %d", (int)kind);
    if (n > 0 && (in == NULL || out == NULL))
        return context_fail(ctx, SPMV_ERROR_ARGUMENT, "spmv_segscan: %s is NULL", in == NULL ? "in" : "out");
    TRY(check_positions(ctx, segments, n));
    if (n == 0)
        return SPMV_OK;
    TRY(context_scratch(ctx, ctx->backend->segscan_scratch(ctx, type, segments, n), &scratch));
    TRY(ctx->backend->segscan(ctx, kind, op, type, segments, in, out, n, scratch));
done:
    return st;
}

spmv_status spmv_segreduce(spmv_context *ctx, spmv_op op, spmv_type type, const spmv_segments *segments, const void *in,
                           void *out, int64_t n)
{
    void *scratch = NULL;
    spmv_status st = SPMV_OK;
    TRY(check(ctx, "spmv_segreduce", op, type, segments, n));
    if (segments->form == SPMV_SEGMENT_FLAGS)
        return context_fail(ctx, SPMV_ERROR_ARGUMENT,
                            "spmv_segreduce: flags do not tell how many results there are; use positions");
    if (segments->count == 0)
        return SPMV_OK;
    if (out == NULL || (n > 0 && in == NULL))
        return context_fail(ctx, SPMV_ERROR_ARGUMENT, "spmv_segreduce: %s is NULL", out == NULL ? "out" : "in");
    TRY(check_positions(ctx, segments, n));
    TRY(context_scratch(ctx, ctx->backend->segreduce_scratch(ctx, type, segments, n), &scratch));
    TRY(ctx->backend->segreduce(ctx, op, type, segments, in, out, n, scratch));
done:
    return st;
}

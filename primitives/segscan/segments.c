/* Checks a description of segments: see segments.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "primitives/segscan/segments.h"

/* The checks that do not read the heads. */
static spmv_status check_form(spmv_context *ctx, const char *name, const spmv_segments *segments, int64_t n)
{
    const bool flags = segments->form == SPMV_SEGMENT_FLAGS;
    if (!flags && segments->form != SPMV_SEGMENT_STARTS && segments->form != SPMV_SEGMENT_OFFSETS)
        return context_fail(ctx, SPMV_ERROR_ARGUMENT, "%s: %d is not a form of segments", name, (int)segments->form);
    if (flags && segments->bits != 8 && segments->bits != 1)
        return context_fail(ctx, SPMV_ERROR_ARGUMENT, "%s: flags of %d bits, must be 8 or 1", name, segments->bits);
    if (!flags && segments->bits != 32 && segments->bits != 64)
        return context_fail(ctx, SPMV_ERROR_ARGUMENT, "%s: positions of %d bits, must be 32 or 64", name,
                            segments->bits);
    if (!flags && segments->count < 0)
        return context_fail(ctx, SPMV_ERROR_ARGUMENT, "%s: count = %lld is negative", name, (long long)segments->count);
    if (!flags && segments->count == 0 && n > 0)
        return context_fail(ctx, SPMV_ERROR_SIZE, "%s: no segments for the n = %lld elements", name, (long long)n);
    if (segments->heads == NULL && n > 0)
        return context_fail(ctx, SPMV_ERROR_ARGUMENT, "%s: heads is NULL though n = %lld", name, (long long)n);
    return SPMV_OK;
}

spmv_status segments_check(spmv_context *ctx, const char *name, const spmv_segments *segments, int64_t n)
{
    if (segments == NULL)
        return context_fail(ctx, SPMV_ERROR_ARGUMENT, "%s: segments is NULL", name);
    const spmv_status st = check_form(ctx, name, segments, n);
    const bool positions = segments->form != SPMV_SEGMENT_FLAGS && segments->heads != NULL;
    return st == SPMV_OK && positions && ctx->backend->segments_check != NULL
               ? ctx->backend->segments_check(ctx, segments, n)
               : st;
}

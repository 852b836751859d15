/* Conversion between flags as bytes and flags as bits: the public fronts.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "core/backend.h"

static spmv_status check(spmv_context *ctx, const char *name, const void *flags, const void *bits, int64_t n)
{
    if (ctx == NULL)
        return SPMV_ERROR_ARGUMENT;
    if (n < 0)
        return context_fail(ctx, SPMV_ERROR_ARGUMENT, "%s: n = %lld is negative", name, (long long)n);
    if (n > 0 && (flags == NULL || bits == NULL))
        return context_fail(ctx, SPMV_ERROR_ARGUMENT, "%s: %s is NULL though n = %lld", name,
                            flags == NULL ? "flags" : "bits", (long long)n);
    return SPMV_OK;
}

spmv_status spmv_flags_pack(spmv_context *ctx, const uint8_t *flags, uint32_t *bits, int64_t n)
{
    const spmv_status st = check(ctx, "spmv_flags_pack", flags, bits, n);
    return st != SPMV_OK || n == 0 ? st : ctx->backend->flags_pack(ctx, flags, bits, n);
}

spmv_status spmv_flags_unpack(spmv_context *ctx, const uint32_t *bits, uint8_t *flags, int64_t n)
{
    const spmv_status st = check(ctx, "spmv_flags_unpack", flags, bits, n);
    return st != SPMV_OK || n == 0 ? st : ctx->backend->flags_unpack(ctx, bits, flags, n);
}

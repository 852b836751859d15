/* gather: the public fronts.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "backend.h"

/* What all forms ask of their arguments. */
static spmv_status check(spmv_context *ctx, const char *caller, spmv_type type, const void *in, int64_t in_n,
                         const void *index, int index_bits, const void *out, int64_t n)
{
    if (ctx == NULL)
        return SPMV_ERROR_ARGUMENT;
    if (!type_in_primitives(type))
        return context_fail(ctx, SPMV_ERROR_TYPE, "%s: %d is no type of primitives", caller, (int)type);
    if (index_bits != 32 && index_bits != 64)
        return context_fail(ctx, SPMV_ERROR_ARGUMENT, "%s: index_bits is %d, 32 or 64 wanted", caller, index_bits);
    if (n < 0 || in_n < 0)
        return context_fail(ctx, SPMV_ERROR_ARGUMENT, "%s: %lld of %lld elements: a negative size", caller,
                            (long long)n, (long long)in_n);
    if (n > 0 && (index == NULL || out == NULL || (in == NULL && in_n > 0)))
        return context_fail(ctx, SPMV_ERROR_ARGUMENT, "%s: %s is NULL", caller,
                            index == NULL ? "index"
                            : out == NULL ? "out"
                                          : "in");
    return SPMV_OK;
}

spmv_status spmv_gather(spmv_context *ctx, spmv_type type, const void *in, int64_t in_n, const void *index,
                        int index_bits, void *out, int64_t n)
{
    const spmv_status st = check(ctx, "spmv_gather", type, in, in_n, index, index_bits, out, n);
    return st != SPMV_OK || n == 0 ? st : ctx->backend->gather(ctx, type, in, in_n, index, index_bits, out, n);
}

spmv_status spmv_gather_masked(spmv_context *ctx, spmv_type type, const void *in, int64_t in_n, const void *index,
                               int index_bits, const uint8_t *mask, void *out, int64_t n)
{
    const spmv_status st = check(ctx, "spmv_gather_masked", type, in, in_n, index, index_bits, out, n);
    if (st != SPMV_OK || n == 0)
        return st;
    if (mask == NULL)
        return context_fail(ctx, SPMV_ERROR_ARGUMENT, "spmv_gather_masked: mask is NULL");
    const struct filter filter = {.mask = mask};
    return ctx->backend->gather_filtered(ctx, &filter, type, in, in_n, index, index_bits, out, n);
}

spmv_status spmv_gather_if(spmv_context *ctx, spmv_predicate predicate, int when, spmv_type type,
                           const void *host_scalar, const void *in, int64_t in_n, const void *index, int index_bits,
                           void *out, int64_t n)
{
    struct filter filter;
    spmv_status st = check(ctx, "spmv_gather_if", type, in, in_n, index, index_bits, out, n);
    if (st == SPMV_OK)
        st = filter_by_predicate(ctx, "spmv_gather_if", predicate, when, type, host_scalar, &filter);
    if (st != SPMV_OK || n == 0)
        return st;
    return ctx->backend->gather_filtered(ctx, &filter, type, in, in_n, index, index_bits, out, n);
}

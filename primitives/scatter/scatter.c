/* scatter: the public fronts.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "backend.h"

/* What all forms ask of their arguments. */
static spmv_status check(spmv_context *ctx, const char *caller, spmv_type type, const void *in, const void *index,
                         int index_bits, const void *out, int64_t out_n, int64_t n)
{
    if (ctx == NULL)
        return SPMV_ERROR_ARGUMENT;
    if (!type_in_primitives(type))
        return context_fail(ctx, SPMV_ERROR_TYPE, "%s: %d is no type of primitives", caller, (int)type);
    if (index_bits != 32 && index_bits != 64)
        return context_fail(ctx, SPMV_ERROR_ARGUMENT, "%s: index_bits is %d, 32 or 64 wanted", caller, index_bits);
    if (n < 0 || out_n < 0)
        return context_fail(ctx, SPMV_ERROR_ARGUMENT, "%s: %lld into %lld elements: a negative size", caller,
                            (long long)n, (long long)out_n);
    if (n > 0 && (in == NULL || index == NULL || (out == NULL && out_n > 0)))
        return context_fail(ctx, SPMV_ERROR_ARGUMENT, "%s: %s is NULL", caller,
                            in == NULL      ? "in"
                            : index == NULL ? "index"
                                            : "out");
    return SPMV_OK;
}

spmv_status spmv_scatter(spmv_context *ctx, spmv_type type, const void *in, const void *index, int index_bits,
                         void *out, int64_t out_n, int64_t n)
{
    const spmv_status st = check(ctx, "spmv_scatter", type, in, index, index_bits, out, out_n, n);
    return st != SPMV_OK || n == 0 ? st : ctx->backend->scatter(ctx, type, in, index, index_bits, out, out_n, n);
}

spmv_status spmv_scatter_masked(spmv_context *ctx, spmv_type type, const void *in, const void *index, int index_bits,
                                const uint8_t *mask, void *out, int64_t out_n, int64_t n)
{
    const spmv_status st = check(ctx, "spmv_scatter_masked", type, in, index, index_bits, out, out_n, n);
    if (st != SPMV_OK || n == 0)
        return st;
    if (mask == NULL)
        return context_fail(ctx, SPMV_ERROR_ARGUMENT, "spmv_scatter_masked: mask is NULL");
    const struct filter filter = {.mask = mask};
    return ctx->backend->scatter_filtered(ctx, &filter, type, in, index, index_bits, out, out_n, n);
}

spmv_status spmv_scatter_if(spmv_context *ctx, spmv_predicate predicate, int when, spmv_type type,
                            const void *host_scalar, const void *in, const void *index, int index_bits, void *out,
                            int64_t out_n, int64_t n)
{
    struct filter filter;
    spmv_status st = check(ctx, "spmv_scatter_if", type, in, index, index_bits, out, out_n, n);
    if (st == SPMV_OK)
        st = filter_by_predicate(ctx, "spmv_scatter_if", predicate, when, type, host_scalar, &filter);
    if (st != SPMV_OK || n == 0)
        return st;
    return ctx->backend->scatter_filtered(ctx, &filter, type, in, index, index_bits, out, out_n, n);
}

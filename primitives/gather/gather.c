/* gather: the public front.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "backend.h"

spmv_status spmv_gather(spmv_context *ctx, spmv_type type, const void *in, int64_t in_n, const void *index,
                        int index_bits, void *out, int64_t n)
{
    if (spmv_type_size(type) == 0)
        return context_fail(ctx, SPMV_ERROR_TYPE, "spmv_gather: %d is no type", (int)type);
    if (index_bits != 32 && index_bits != 64)
        return context_fail(ctx, SPMV_ERROR_ARGUMENT, "spmv_gather: index_bits is %d, 32 or 64 wanted", index_bits);
    if (n < 0 || in_n < 0)
        return context_fail(ctx, SPMV_ERROR_ARGUMENT, "spmv_gather: %lld of %lld elements: a negative size",
                            (long long)n, (long long)in_n);
    if (n == 0)
        return SPMV_OK;
    if (index == NULL || out == NULL || (in == NULL && in_n > 0))
        return context_fail(ctx, SPMV_ERROR_ARGUMENT, "spmv_gather: %s is NULL",
                            index == NULL ? "index"
                            : out == NULL ? "out"
                                          : "in");
    return ctx->backend->gather(ctx, type, in, in_n, index, index_bits, out, n);
}

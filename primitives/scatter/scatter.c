/* scatter: the public front.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "backend.h"

spmv_status spmv_scatter(spmv_context *ctx, spmv_type type, const void *in, const void *index, int index_bits,
                         void *out, int64_t out_n, int64_t n)
{
    if (spmv_type_size(type) == 0)
        return context_fail(ctx, SPMV_ERROR_TYPE, "spmv_scatter: %d is no type", (int)type);
    if (index_bits != 32 && index_bits != 64)
        return context_fail(ctx, SPMV_ERROR_ARGUMENT, "spmv_scatter: index_bits is %d, 32 or 64 wanted", index_bits);
    if (n < 0 || out_n < 0)
        return context_fail(ctx, SPMV_ERROR_ARGUMENT, "spmv_scatter: %lld into %lld elements: a negative size",
                            (long long)n, (long long)out_n);
    if (n == 0)
        return SPMV_OK;
    if (in == NULL || index == NULL || (out == NULL && out_n > 0))
        return context_fail(ctx, SPMV_ERROR_ARGUMENT, "spmv_scatter: %s is NULL",
                            in == NULL      ? "in"
                            : index == NULL ? "index"
                                            : "out");
    return ctx->backend->scatter(ctx, type, in, index, index_bits, out, out_n, n);
}

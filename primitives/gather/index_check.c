/* The index check for gather and scatter: the public front.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "backend.h"

spmv_status spmv_index_check(spmv_context *ctx, const void *index, int index_bits, int64_t lowest, int64_t limit,
                             int64_t n)
{
    if (ctx == NULL)
        return SPMV_ERROR_ARGUMENT;
    if (index_bits != 32 && index_bits != 64)
        return context_fail(ctx, SPMV_ERROR_ARGUMENT, "spmv_index_check: index_bits is %d, must be 32 or 64",
                            index_bits);
    if (n < 0)
        return context_fail(ctx, SPMV_ERROR_ARGUMENT, "spmv_index_check: n = %lld is negative", (long long)n);
    if (n == 0)
        return SPMV_OK;
    if (index == NULL)
        return context_fail(ctx, SPMV_ERROR_ARGUMENT, "spmv_index_check: index is NULL");
    void *scratch = NULL;
    int64_t first = n, value = 0;
    spmv_status st = context_scratch(ctx, ctx->backend->index_check_scratch(ctx, n), &scratch);
    if (st == SPMV_OK)
        st = ctx->backend->index_check(ctx, index, index_bits, lowest, limit, n, &first, &value, scratch);
    if (st != SPMV_OK || first == n)
        return st;
    return context_fail(ctx, SPMV_ERROR_SIZE,
                        "spmv_index_check: index[%lld] is %lld, must be at least %lld and less than %lld",
                        (long long)first, (long long)value, (long long)lowest, (long long)limit);
}

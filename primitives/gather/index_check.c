/* The index check for gather and scatter: the public front.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "core/backend.h"

spmv_status spmv_index_check(spmv_context *ctx, const void *index, int index_bits, int64_t lowest, int64_t limit,
                             int64_t n)
{
    spmv_status st = context_need_integers(ctx, "spmv_index_check", "index_bits", index_bits, n);
    if (st != SPMV_OK || n == 0)
        return st;
    if (index == NULL)
        return context_fail(ctx, SPMV_ERROR_ARGUMENT, "spmv_index_check: index is NULL");
    void *scratch = NULL;
    int64_t first = n, value = 0;
    st = context_scratch(ctx, ctx->backend->index_check_scratch(ctx, n), &scratch);
    if (st == SPMV_OK)
        st = ctx->backend->index_check(ctx, index, index_bits, lowest, limit, n, &first, &value, scratch);
    if (st != SPMV_OK || first == n)
        return st;
    return context_fail(ctx, SPMV_ERROR_SIZE,
                        "spmv_index_check: index[%lld] is %lld, must be at least %lld and less than %lld",
                        (long long)first, (long long)value, (long long)lowest, (long long)limit);
}

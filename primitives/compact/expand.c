/* Generalised compact: element i makes counts[i] outputs. The public fronts.
 *
 * The formulas of the lectures, with two slips of the slides corrected. The number of all outputs
 * is total = ESS[n-1] + num(x[n-1]), where ESS is the exclusive scan of the numbers. Output j is
 * output k of element i with k = j - ESS[i], where ESS[i] is the place of the element's first
 * output.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "core/backend.h"

spmv_status spmv_expand_offsets(spmv_context *ctx, const void *counts, int count_bits, int64_t *offsets, int64_t n)
{
    const int64_t zero = 0;
    spmv_status st = context_need_integers(ctx, "spmv_expand_offsets", "count_bits", count_bits, n);
    if (st != SPMV_OK)
        return st;
    if (offsets == NULL || (counts == NULL && n > 0))
        return context_fail(ctx, SPMV_ERROR_ARGUMENT, "spmv_expand_offsets: %s is NULL",
                            offsets == NULL ? "offsets" : "counts");
    if (n == 0)
        return ctx->backend->map_index(ctx, SPMV_I64, &zero, NULL, offsets, 1);
    void *scratch = NULL;
    st = context_scratch(ctx, ctx->backend->expand_scratch(ctx, n), &scratch);
    return st != SPMV_OK ? st : ctx->backend->expand_offsets(ctx, counts, count_bits, offsets, n, scratch);
}

spmv_status spmv_expand(spmv_context *ctx, spmv_expand_form form, spmv_type type, const void *in,
                        const int64_t *offsets, int64_t n, int index_bits, void *out, void *source, void *rank,
                        int64_t total)
{
    if (ctx == NULL)
        return SPMV_ERROR_ARGUMENT;
    if (form != SPMV_EXPAND_SCATTER && form != SPMV_EXPAND_GATHER)
        return context_fail(ctx, SPMV_ERROR_ARGUMENT, "spmv_expand: unknown form %d", (int)form);
    if (!type_in_primitives(type))
        return context_fail(ctx, SPMV_ERROR_TYPE, "spmv_expand: %d is not a type of primitives", (int)type);
    if (index_bits != 32 && index_bits != 64)
        return context_fail(ctx, SPMV_ERROR_ARGUMENT, "spmv_expand: index_bits is %d, must be 32 or 64", index_bits);
    if (n < 0 || total < 0)
        return context_fail(ctx, SPMV_ERROR_ARGUMENT,
                            "spmv_expand: %lld outputs of %lld elements: sizes must not be negative", (long long)total,
                            (long long)n);
    if (index_bits == 32 && (n > INT32_MAX || total > INT32_MAX))
        return context_fail(ctx, SPMV_ERROR_SIZE,
                            "spmv_expand: %lld outputs of %lld elements exceed 32 bits: use index_bits 64",
                            (long long)total, (long long)n);
    if (n == 0 || total == 0)
        return SPMV_OK;
    if (offsets == NULL || (in == NULL && out != NULL))
        return context_fail(ctx, SPMV_ERROR_ARGUMENT, "spmv_expand: %s is NULL", offsets == NULL ? "offsets" : "in");
    const struct expansion expansion = {.type = type,
                                        .in = in,
                                        .offsets = offsets,
                                        .n = n,
                                        .index_bits = index_bits,
                                        .out = out,
                                        .source = source,
                                        .rank = rank,
                                        .total = total};
    return ctx->backend->expand(ctx, form, &expansion);
}

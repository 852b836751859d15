/* Method "staged": a sequence of calls of primitives, on every backend.
 *
 *     G = gather X by C                       G[k] = x[col[k]]
 *     P = map multiply by V                   P[k] = val[k] G[k]            (not for a pattern)
 *     S = segmented inclusive sum scan by R   S[k] = P[row start] + ... + P[k]
 *     y = the last element of each segment    y[i] = S[row_ptr[i + 1] - 1], 0 for an empty row
 *
 * Maps for alpha and beta follow. Work is O(nnz + rows). The products travel through memory three
 * times, which the fused methods avoid. S. Sengupta, M. Harris, Y. Zhang, J. D. Owens, "Scan
 * primitives for GPU computing", 2007, section 4.2.
 *
 * The plan owns all intermediate arrays, so a product allocates nothing.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "core/reals.h"
#include "product/plan_internal.h"

/* lengths[i] = row_ptr[i + 1] - row_ptr[i], as wide as row_ptr, in the context's memory. */
static spmv_status row_lengths(spmv_context *ctx, const spmv_csr *a, void *lengths)
{
    const int64_t size = a->row_ptr_bits / 8;
    const spmv_type type = size == 8 ? SPMV_I64 : SPMV_I32;
    const spmv_status st = spmv_map(ctx, SPMV_MAP_NEG, type, a->row_ptr, lengths, a->rows);
    return st != SPMV_OK
               ? st
               : spmv_map_binary(ctx, SPMV_ADD, type, (const char *)a->row_ptr + size, lengths, lengths, a->rows);
}

struct staged {
    void *products; /* nnz: G, then P, then S, in place */
    void *sums;     /* rows: S at the ends of the rows, where beta is not 0 */
    void *last;     /* rows: row_ptr[i + 1] - 1, or -1 for an empty row; as wide as row_ptr */
    void *scratch;  /* of the segmented scan */
};

static spmv_segments segments_of(const spmv_csr *a)
{
    return (spmv_segments){
        .form = SPMV_SEGMENT_OFFSETS, .heads = a->row_ptr, .bits = a->row_ptr_bits, .count = a->rows};
}

/* last[i] = min(row_ptr[i + 1] - row_ptr[i], 1) * row_ptr[i + 1] - 1, which is row_ptr[i + 1] - 1,
 * or -1 for an empty row. */
static spmv_status find_last(spmv_context *ctx, const spmv_csr *a, void *last)
{
    spmv_status st = SPMV_OK;
    const bool wide = a->row_ptr_bits == 64;
    const spmv_type type = wide ? SPMV_I64 : SPMV_I32;
    const void *end = (const char *)a->row_ptr + a->row_ptr_bits / 8;
    const int64_t one64 = 1, minus64 = -1;
    const int32_t one32 = 1, minus32 = -1;
    const void *one = wide ? (const void *)&one64 : (const void *)&one32;
    const void *minus_one = wide ? (const void *)&minus64 : (const void *)&minus32;
    TRY(row_lengths(ctx, a, last));
    TRY(spmv_map_scalar(ctx, SPMV_MIN, type, one, last, last, a->rows));
    TRY(spmv_map_binary(ctx, SPMV_MUL, type, end, last, last, a->rows));
    TRY(spmv_map_scalar(ctx, SPMV_ADD, type, minus_one, last, last, a->rows));
done:
    return st;
}

spmv_status staged_prepare(spmv_plan *plan)
{
    spmv_status st = SPMV_OK;
    spmv_context *ctx = plan->ctx;
    const spmv_csr *a = &plan->a;
    const int64_t size = (int64_t)spmv_type_size(plan->type);
    const spmv_segments segments = segments_of(a);
    struct staged *s = NULL;
    TRY(plan_new_state(plan, sizeof *s));
    s = plan->state;
    TRY(plan_alloc(plan, a->nnz * size, &s->products));
    TRY(plan_alloc(plan, a->rows * size, &s->sums));
    TRY(plan_alloc(plan, a->rows * (a->row_ptr_bits / 8), &s->last));
    if (a->nnz > 0)
        TRY(plan_alloc(plan, ctx->backend->segscan_scratch(ctx, plan->type, &segments, a->nnz), &s->scratch));
    TRY(find_last(ctx, a, s->last));
done:
    return st;
}

void staged_release(spmv_plan *plan)
{
    const struct staged *s = plan->state;
    context_free_all(plan->ctx, s->products, s->sums, s->last, s->scratch);
}

/* Computes S in s->products: the pipeline up to the scan. */
static spmv_status scanned_products(const spmv_plan *plan, const struct staged *s, const void *x)
{
    spmv_status st = SPMV_OK;
    spmv_context *ctx = plan->ctx;
    const spmv_csr *a = &plan->a;
    const spmv_segments segments = segments_of(a);
    /* G = X[C] */
    TRY(ctx->backend->gather(ctx, &(struct move){NULL, plan->type, x, a->col, 32, s->products, a->cols, a->nnz}));
    /* P = V G */
    if (a->val != NULL)
        TRY(ctx->backend->map_binary(ctx, SPMV_MUL, plan->type, a->val, s->products, s->products, a->nnz));
    /* S = segmented scan of P, by the backend's table, because the plan owns the scratch memory */
    TRY(ctx->backend->segscan(ctx, SPMV_INCLUSIVE, SPMV_ADD, plan->type, &segments, s->products, s->products, a->nnz,
                              s->scratch));
done:
    return st;
}

spmv_status staged_apply(const spmv_plan *plan, const struct plan_product *product)
{
    void *const y = product->y;
    static const double zero = 0; /* all bits 0, so also a zero of float */
    spmv_status st = SPMV_OK;
    spmv_context *ctx = plan->ctx;
    const spmv_csr *a = &plan->a;
    const struct staged *s = plan->state;
    void *sums = product->beta_zero ? y : s->sums;
    const bool unscaled = real_at(plan->type, product->alpha, 0) == 1;
    TRY(ctx->backend->map_index(ctx, plan->type, &zero, NULL, sums, a->rows));
    if (a->nnz > 0) {
        TRY(scanned_products(plan, s, product->x));
        /* the filtered gather skips empty rows, which keep their 0 */
        TRY(ctx->backend->gather(
            ctx, &(struct move){NULL, plan->type, s->products, s->last, a->row_ptr_bits, sums, a->nnz, a->rows}));
    }
    if (!unscaled)
        TRY(ctx->backend->map_scalar(ctx, SPMV_MUL, plan->type, product->alpha, sums, sums, a->rows));
    if (!product->beta_zero) {
        TRY(ctx->backend->map_scalar(ctx, SPMV_MUL, plan->type, product->beta, y, y, a->rows));
        TRY(ctx->backend->map_binary(ctx, SPMV_ADD, plan->type, sums, y, y, a->rows));
    }
done:
    return st;
}

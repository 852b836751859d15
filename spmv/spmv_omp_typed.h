/* The typed part of spmv_omp.c, included once a type with VALUE (the C type) and TYPED(name) (name with the type's
 * suffix).
 *
 * SPDX-License-Identifier: BSD-3-Clause */

/* sum_k val[k] x[col[k]], val NULL: all ones. Four sums side by side hide the latency of the additions; which element
 * goes into which sum depends on n alone. */
static VALUE TYPED(dot)(const VALUE *val, const int32_t *col, const VALUE *x, int64_t n)
{
    VALUE s0 = 0, s1 = 0, s2 = 0, s3 = 0;
    int64_t k = 0;
    if (val == NULL) {
        for (; k + 4 <= n; k += 4) {
            s0 += x[col[k]];
            s1 += x[col[k + 1]];
            s2 += x[col[k + 2]];
            s3 += x[col[k + 3]];
        }
        for (; k < n; k++)
            s0 += x[col[k]];
    } else {
        for (; k + 4 <= n; k += 4) {
            s0 += val[k] * x[col[k]];
            s1 += val[k + 1] * x[col[k + 1]];
            s2 += val[k + 2] * x[col[k + 2]];
            s3 += val[k + 3] * x[col[k + 3]];
        }
        for (; k < n; k++)
            s0 += val[k] * x[col[k]];
    }
    return (s0 + s1) + (s2 + s3);
}

static void TYPED(finish)(struct scaling scaling, VALUE sum, VALUE *y)
{
    const VALUE alpha = *(const VALUE *)scaling.alpha;
    *y = scaling.beta_zero ? alpha * sum : alpha * sum + *(const VALUE *)scaling.beta * *y;
}

/* One tile: rows that begin and end in it go to y; what belongs to a row begun before goes to *head, to a row that ends
 * later to *tail. */
static void TYPED(tile)(const spmv_csr *a, struct position from, struct position to, struct scaling scaling,
                        const VALUE *x, VALUE *y, VALUE *head, VALUE *tail)
{
    const VALUE *val = a->val;
    int64_t k = from.k;
    *head = 0;
    for (int64_t row = from.row; row < to.row; row++) {
        const int64_t end = offset_at(a->row_ptr, a->row_ptr_bits, row + 1);
        const VALUE sum = TYPED(dot)(val != NULL ? val + k : NULL, a->col + k, x, end - k);
        if (row == from.row && begun_before(a, from))
            *head = sum;
        else
            TYPED(finish)(scaling, sum, &y[row]);
        k = end;
    }
    *tail = TYPED(dot)(val != NULL ? val + k : NULL, a->col + k, x, to.k - k);
}

/* Rows that cross tiles: their parts, added in tile order. */
static void TYPED(join)(const struct tiles *tiles, const spmv_csr *a, struct scaling scaling, VALUE *y)
{
    const VALUE *head = tiles->head, *tail = tiles->tail;
    VALUE open = 0;
    for (int64_t t = 0; t < tiles->count; t++) {
        const struct position from = tiles->begin[t], to = tiles->begin[t + 1];
        const bool continues = begun_before(a, from);
        if (from.row == to.row) {
            open = continues ? open + tail[t] : tail[t];
            continue;
        }
        if (continues)
            TYPED(finish)(scaling, open + head[t], &y[from.row]);
        open = tail[t];
    }
}

static void TYPED(product)(const spmv_plan *plan, struct scaling scaling, const VALUE *x, VALUE *y)
{
    const struct tiles *tiles = plan->state;
    const spmv_csr *a = &plan->a;
    VALUE *head = tiles->head, *tail = tiles->tail;
#pragma omp parallel for schedule(guided) num_threads(plan->ctx->threads) if (tiles->count >= PARALLEL_TILES)
    for (int64_t t = 0; t < tiles->count; t++)
        TYPED(tile)(a, tiles->begin[t], tiles->begin[t + 1], scaling, x, y, &head[t], &tail[t]);
    TYPED(join)(tiles, a, scaling, y);
}

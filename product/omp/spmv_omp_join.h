/* The start and the end of a product (spmv_omp.c), included once for each pair of types
 * (each_plan_type.h).
 *
 * SPDX-License-Identifier: BSD-3-Clause */

/* Writes the arguments of a product, as its tiles read them. */
static void TYPED(fill_source)(const spmv_plan *plan, const struct plan_product *product, void *to)
{
    const spmv_csr *a = &plan->a;
    const bool empty = a->nnz == 0; /* no pointer is NULL: some are computed also without entries */
    struct TYPED(source) source = {.a = a,
                                   .val = empty ? a : a->val,
                                   .col = empty ? (const void *)a : a->col,
                                   .x = product->x != NULL ? product->x : product->y,
                                   .y = product->y,
                                   .f = {.alpha = *(const T *)product->alpha, .beta_zero = product->beta_zero},
                                   .epilogue = product->epilogue,
                                   .keep = product->epilogue != NULL && streams(plan, product),
                                   .vectors = plan->vectors,
                                   .x_stride = plan->x_stride,
                                   .y_stride = plan->y_stride,
                                   .tiles = plan->state};
    if (!product->beta_zero)
        source.f.beta = *(const T *)product->beta;
    _Static_assert(sizeof source <= sizeof((struct tile_loop *)0)->source, "room for a source");
    memcpy(to, &source, sizeof source);
}

/* Adds the partial sums of rows that cross tiles, in tile order, and the epilogue's sums, in the
 * order of the rows. */
static void TYPED(join)(const struct omp_tiles *tiles, const void *from)
{
    const struct TYPED(source) *s = from;
    const T *heads = tiles->head, *tails = tiles->tail, *dots = tiles->dots;
    const spmv_epilogue *e = s->epilogue;
    T dot = {0};
    for (int v = 0; v < s->vectors; v++) {
        T open = {0};
        for (int64_t t = 0; t < tiles->count; t++) {
            const struct position begin = tiles->tile[t].begin, end = tiles->tile[t + 1].begin;
            const bool continues = tiles->tile[t].begun;
            const T head = heads[t * s->vectors + v], tail = tails[t * s->vectors + v];
            if (begin.row == end.row) {
                open = continues ? TYPED(plus)(open, tail) : tail;
                continue;
            }
            if (continues) {
                ELEMENT *y = &s->y[begin.row * s->y_stride + v];
                *y = ROUNDED(TYPED(scaled)(s->f, TYPED(plus)(open, head), y));
                if (e != NULL)
                    dot = TYPED(plus)(dot, TYPED(epilogue)(e, s->y, (const T *)y, begin.row, begin.row + 1));
            }
            if (e != NULL)
                dot = TYPED(plus)(dot, dots[t]);
            open = tail;
        }
    }
    if (e != NULL && e->w != NULL)
        *(T *)e->dot = dot;
}

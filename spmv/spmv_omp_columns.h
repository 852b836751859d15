/* The typed part of spmv_omp_columns.c, included once a pair of types: VALUE (of vectors and sums), STORED (of the
 * matrix's values), TIMES(stored, value), PLUS(value, value), and TYPED(name), the name with both types in it.
 *
 * SPDX-License-Identifier: BSD-3-Clause */

/* What a tile works with. */
struct TYPED(columns) {
    const spmv_csr *a;
    const VALUE *x;
    VALUE *y;
    int64_t x_stride, y_stride;
    int vectors;
    VALUE alpha, beta;
    bool beta_zero;
};

static ALWAYS_INLINE void TYPED(add)(VALUE *sum, const STORED *val, bool pattern, int64_t k, const VALUE *x, int width)
{
    for (int v = 0; v < width; v++)
        sum[v] = PLUS(sum[v], pattern ? x[v] : TIMES(val[k], x[v]));
}

/* sums[v] = the sum of entries begin ... end - 1 for width columns of x, which are constants once inlined. Each column
 * is summed in the order of spmv_omp_typed.h. */
static ALWAYS_INLINE void TYPED(sum)(const struct TYPED(columns) * c, bool pattern, const VALUE *x, int64_t begin,
                                     int64_t end, int width, VALUE *sums)
{
    enum { SERIAL = 32, LANES = 8, AT_ONCE = 4 };
    const STORED *val = c->a->val;
    const int32_t *col = c->a->col;
    const int64_t stride = c->x_stride;
    if (end - begin <= SERIAL) {
        VALUE sum[MOST_COLUMNS] = {ZERO};
        for (int64_t k = begin; k < end; k++)
            TYPED(add)(sum, val, pattern, k, x + col[k] * stride, width);
        for (int v = 0; v < width; v++)
            sums[v] = sum[v];
        return;
    }
    const int part = width < AT_ONCE ? width : AT_ONCE;
    for (int first = 0; first < width; first += part) {
        VALUE sum[LANES][AT_ONCE] = {{ZERO}}, rest[AT_ONCE] = {ZERO};
        int64_t k = begin;
        for (; k + LANES <= end; k += LANES)
            for (int i = 0; i < LANES; i++)
                TYPED(add)(sum[i], val, pattern, k + i, x + first + col[k + i] * stride, part);
        for (; k < end; k++)
            TYPED(add)(rest, val, pattern, k, x + first + col[k] * stride, part);
        for (int v = 0; v < part; v++)
            sums[first + v] = PLUS(PLUS(PLUS(PLUS(sum[0][v], sum[4][v]), PLUS(sum[2][v], sum[6][v])),
                                        PLUS(PLUS(sum[1][v], sum[5][v]), PLUS(sum[3][v], sum[7][v]))),
                                   rest[v]);
    }
}

/* The same for as many columns as there are from the first on, MOST_COLUMNS at most; gives how many. */
static ALWAYS_INLINE int TYPED(sum_some)(const struct TYPED(columns) * c, bool pattern, int first, int64_t begin,
                                         int64_t end, VALUE *sums)
{
    const int left = c->vectors - first;
    const VALUE *x = c->x + first;
    if (left >= 16) {
        TYPED(sum)(c, pattern, x, begin, end, 16, sums);
        return 16;
    }
    if (left >= 8) {
        TYPED(sum)(c, pattern, x, begin, end, 8, sums);
        return 8;
    }
    if (left >= 4) {
        TYPED(sum)(c, pattern, x, begin, end, 4, sums);
        return 4;
    }
    if (left >= 2) {
        TYPED(sum)(c, pattern, x, begin, end, 2, sums);
        return 2;
    }
    TYPED(sum)(c, pattern, x, begin, end, 1, sums);
    return 1;
}

static ALWAYS_INLINE void TYPED(finish)(const struct TYPED(columns) * c, VALUE sum, VALUE *y)
{
    const VALUE scaled = SCALE(c->alpha, sum);
    *y = c->beta_zero ? scaled : PLUS(scaled, SCALE(c->beta, *y));
}

/* One tile: rows that begin and end in it go to y; the end of a row begun before goes to head, the begin of one that
 * ends later to tail, a sum a column. */
static ALWAYS_INLINE void TYPED(tile)(const struct tiles *tiles, int64_t t, const struct TYPED(columns) * c,
                                      bool pattern)
{
    const spmv_csr *a = c->a;
    const struct tile *tile = &tiles->tile[t];
    const struct position from = tile->begin, to = tile[1].begin;
    VALUE *head = (VALUE *)tiles->head + t * c->vectors, *tail = (VALUE *)tiles->tail + t * c->vectors;
    int64_t begin = from.k;
    for (int64_t row = from.row; row <= to.row; row++) {
        const bool ends_later = row == to.row, begun = row == from.row && tile->begun;
        const int64_t end = ends_later ? to.k : offset_at(a->row_ptr, a->row_ptr_bits, row + 1);
        for (int first = 0; first < c->vectors;) {
            VALUE sums[MOST_COLUMNS];
            const int count = TYPED(sum_some)(c, pattern, first, begin, end, sums);
            for (int v = 0; v < count; v++)
                if (ends_later)
                    tail[first + v] = sums[v];
                else if (begun)
                    head[first + v] = sums[v];
                else
                    TYPED(finish)(c, sums[v], &c->y[row * c->y_stride + first + v]);
            first += count;
        }
        begin = end;
    }
}

#define TILE_FUNCTION(name, target, pattern)                                                                           \
    static target void TYPED(name)(const struct tiles *tiles, int64_t t, const void *source)                           \
    {                                                                                                                  \
        TYPED(tile)(tiles, t, source, pattern);                                                                        \
    }
TILE_FUNCTION(tile_plain, , false)
TILE_FUNCTION(tile_pattern_plain, , true)
#ifdef __x86_64__
TILE_FUNCTION(tile_avx2, __attribute__((target("avx2"))), false)
TILE_FUNCTION(tile_pattern_avx2, __attribute__((target("avx2"))), true)
#endif
#undef TILE_FUNCTION

static tile_function *TYPED(tile_function_for)(bool avx2, bool pattern)
{
#ifdef __x86_64__
    if (avx2)
        return pattern ? TYPED(tile_pattern_avx2) : TYPED(tile_avx2);
#endif
    (void)avx2;
    return pattern ? TYPED(tile_pattern_plain) : TYPED(tile_plain);
}

/* Rows that cross tiles: their parts, added in tile order. */
static void TYPED(join)(const struct tiles *tiles, const struct TYPED(columns) * c)
{
    const VALUE *heads = tiles->head, *tails = tiles->tail;
    for (int v = 0; v < c->vectors; v++) {
        VALUE open = ZERO;
        for (int64_t t = 0; t < tiles->count; t++) {
            const struct position from = tiles->tile[t].begin, to = tiles->tile[t + 1].begin;
            const bool continues = tiles->tile[t].begun;
            const VALUE head = heads[t * c->vectors + v], tail = tails[t * c->vectors + v];
            if (from.row == to.row) {
                open = continues ? PLUS(open, tail) : tail;
                continue;
            }
            if (continues)
                TYPED(finish)(c, PLUS(open, head), &c->y[from.row * c->y_stride + v]);
            open = tail;
        }
    }
}

static void TYPED(product)(const spmv_plan *plan, const void *alpha, const void *x, const void *beta, bool beta_zero,
                           void *y)
{
    struct tiles *tiles = plan->state;
    const struct TYPED(columns) c = {.a = &plan->a,
                                     .x = x,
                                     .y = y,
                                     .x_stride = plan->x_stride,
                                     .y_stride = plan->y_stride,
                                     .vectors = plan->vectors,
                                     .alpha = *(const VALUE *)alpha,
                                     .beta = *(const VALUE *)beta,
                                     .beta_zero = beta_zero};
    tiles_share_out(tiles, plan->ctx->threads, TYPED(tile_function_for)(tiles->avx2, plan->a.val == NULL), &c);
    TYPED(join)(tiles, &c);
}

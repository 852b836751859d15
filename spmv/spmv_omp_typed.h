/* The typed part of spmv_omp.c, included once a value type and width of the row offsets: VALUE, VALUE_BITS (the
 * unsigned integer of its size), OFFSET, and TYPED(name), the name with both in it.
 *
 * SPDX-License-Identifier: BSD-3-Clause */

/* Rows up to this length are summed one after the other; in longer ones four sums side by side hide the latency of the
 * additions. Which element goes into which sum depends on the length alone. */
enum { TYPED(serial_up_to) = 16 };

/* sum_k val[k] x[col[k]], begin <= k < end */
static inline VALUE TYPED(dot)(const VALUE *val, const int32_t *col, const VALUE *x, int64_t begin, int64_t end)
{
    VALUE s0 = 0, s1 = 0, s2 = 0, s3 = 0;
    int64_t k = begin;
    if (end - begin <= TYPED(serial_up_to)) {
        for (; k < end; k++)
            s0 += val[k] * x[col[k]];
        return s0;
    }
    for (; k + 4 <= end; k += 4) {
        s0 += val[k] * x[col[k]];
        s1 += val[k + 1] * x[col[k + 1]];
        s2 += val[k + 2] * x[col[k + 2]];
        s3 += val[k + 3] * x[col[k + 3]];
    }
    for (; k < end; k++)
        s0 += val[k] * x[col[k]];
    return (s0 + s1) + (s2 + s3);
}

/* The same for a pattern: sum_k x[col[k]] */
static inline VALUE TYPED(sum)(const int32_t *col, const VALUE *x, int64_t begin, int64_t end)
{
    VALUE s0 = 0, s1 = 0, s2 = 0, s3 = 0;
    int64_t k = begin;
    if (end - begin <= TYPED(serial_up_to)) {
        for (; k < end; k++)
            s0 += x[col[k]];
        return s0;
    }
    for (; k + 4 <= end; k += 4) {
        s0 += x[col[k]];
        s1 += x[col[k + 1]];
        s2 += x[col[k + 2]];
        s3 += x[col[k + 3]];
    }
    for (; k < end; k++)
        s0 += x[col[k]];
    return (s0 + s1) + (s2 + s3);
}

/* term, or 0 where it is no part of the row, whatever it is; without a branch */
static inline VALUE TYPED(where)(bool part, VALUE term)
{
    VALUE_BITS bits;
    memcpy(&bits, &term, sizeof bits);
    bits &= -(VALUE_BITS)part;
    memcpy(&term, &bits, sizeof bits);
    return term;
}

/* dot of a row of at most BRIEF entries, with begin + BRIEF <= nnz: the same bits, since 0 is added for what lies
 * behind it. Where a few entries a row come in any number, a wrong guess of it costs more than the entries behind,
 * which are needed next anyway. */
static inline VALUE TYPED(brief)(const VALUE *val, const int32_t *col, const VALUE *x, int64_t begin, int64_t end)
{
    VALUE sum = 0;
    for (int64_t j = 0; j < BRIEF; j++)
        sum += TYPED(where)(begin + j < end, val[begin + j] * x[col[begin + j]]);
    return sum;
}

static VALUE TYPED(part)(const spmv_csr *a, const VALUE *x, int64_t begin, int64_t end)
{
    return a->val != NULL ? TYPED(dot)(a->val, a->col, x, begin, end) : TYPED(sum)(a->col, x, begin, end);
}

/* alpha and beta, loaded once: a compiler must fear that y is where they lie. */
struct TYPED(factors) {
    VALUE alpha, beta;
    bool beta_zero;
};

static inline void TYPED(finish)(struct TYPED(factors) f, VALUE sum, VALUE *y)
{
    *y = f.beta_zero ? f.alpha * sum : f.alpha * sum + f.beta * *y;
}

/* Whether rows are best done by brief: few entries each, none rarely, and in numbers that vary, which the first rows of
 * a tile tell. Where numbers repeat, the processor foresees them. Bits do not depend on the answer. */
static bool TYPED(brief_pays)(const OFFSET *row_ptr, int64_t first, int64_t last)
{
    enum { LOOKED_AT = 16, CHANGES = 4 };
    const int64_t rows = last - first, entries = row_ptr[last] - row_ptr[first];
    if (rows <= LOOKED_AT || entries < rows || entries > BRIEF * rows)
        return false;
    int changes = 0;
    for (int64_t row = first + 1; row <= first + LOOKED_AT; row++)
        changes += row_ptr[row + 1] - row_ptr[row] != row_ptr[row] - row_ptr[row - 1];
    return changes >= CHANGES;
}

/* Rows that lie in one tile from end to end. The contract says that y overlaps nothing; telling the compiler lets it
 * keep what it has loaded. */
static void TYPED(whole_rows)(const spmv_csr *a, int64_t first, int64_t last, struct TYPED(factors) f,
                              const VALUE *restrict x, VALUE *restrict y)
{
    const OFFSET *row_ptr = a->row_ptr;
    const VALUE *val = a->val;
    const int32_t *col = a->col;
    int64_t row = first;
    if (val != NULL && TYPED(brief_pays)(row_ptr, first, last)) {
        for (; row < last && row_ptr[row] + BRIEF <= a->nnz; row++) {
            const int64_t begin = row_ptr[row], end = row_ptr[row + 1];
            const bool brief = end - begin <= BRIEF;
            TYPED(finish)
            (f, brief ? TYPED(brief)(val, col, x, begin, end) : TYPED(dot)(val, col, x, begin, end), &y[row]);
        }
    }
    if (val != NULL)
        for (; row < last; row++)
            TYPED(finish)(f, TYPED(dot)(val, col, x, row_ptr[row], row_ptr[row + 1]), &y[row]);
    else
        for (; row < last; row++)
            TYPED(finish)(f, TYPED(sum)(col, x, row_ptr[row], row_ptr[row + 1]), &y[row]);
}

/* One tile: rows that begin and end in it go to y; what belongs to a row begun before goes to *head, to a row that ends
 * later to *tail. */
static void TYPED(tile)(const spmv_csr *a, struct position from, struct position to, struct TYPED(factors) f,
                        const VALUE *x, VALUE *y, VALUE *head, VALUE *tail)
{
    const OFFSET *row_ptr = a->row_ptr;
    int64_t first = from.row, k = from.k;
    *head = 0;
    if (first < to.row && begun_before(a, from)) {
        *head = TYPED(part)(a, x, k, row_ptr[first + 1]);
        first++;
    }
    if (first < to.row) {
        TYPED(whole_rows)(a, first, to.row, f, x, y);
        k = row_ptr[to.row];
    } else if (first > from.row) {
        k = row_ptr[first];
    }
    *tail = TYPED(part)(a, x, k, to.k);
}

/* Rows that cross tiles: their parts, added in tile order. */
static void TYPED(join)(const struct tiles *tiles, const spmv_csr *a, struct TYPED(factors) f, VALUE *y)
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
            TYPED(finish)(f, open + head[t], &y[from.row]);
        open = tail[t];
    }
}

static void TYPED(product)(const spmv_plan *plan, struct scaling scaling, const void *x, void *y)
{
    const struct tiles *tiles = plan->state;
    const spmv_csr *a = &plan->a;
    VALUE *head = tiles->head, *tail = tiles->tail;
    const struct TYPED(factors) f = {.alpha = *(const VALUE *)scaling.alpha,
                                     .beta = scaling.beta_zero ? 0 : *(const VALUE *)scaling.beta,
                                     .beta_zero = scaling.beta_zero};
#pragma omp parallel for schedule(guided) num_threads(plan->ctx->threads) if (tiles->count >= PARALLEL_TILES)
    for (int64_t t = 0; t < tiles->count; t++)
        TYPED(tile)(a, tiles->begin[t], tiles->begin[t + 1], f, x, y, &head[t], &tail[t]);
    TYPED(join)(tiles, a, f, y);
}

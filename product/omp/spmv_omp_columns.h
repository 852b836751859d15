/* The typed part of spmv_omp_columns.c, included once for each pair of types: VALUE (of vectors and
 * sums), STORED (of the matrix's values), TIMES(stored, value), SCALE(value, value), PLUS(value,
 * value), CONJUGATE(value), ZERO, and TYPED(name), the name with both types in it. PACK: a vector
 * of the processor that holds COLUMNS values. PACK_TERM(type, sum, pattern, stored, row) adds the
 * term of an entry to sum.
 *
 * SPDX-License-Identifier: BSD-3-Clause */

/* The arguments of a tile's product. */
struct TYPED(columns) {
    const spmv_csr *a;
    const VALUE *x;
    VALUE *y;
    int64_t x_stride, y_stride;
    int vectors;
    VALUE alpha, beta;
    bool beta_zero;
    const spmv_epilogue *epilogue; /* NULL: none; otherwise vectors is 1 and there are no strides */
};

#include "product/omp/spmv_omp_epilogue.h"

#define PACK_TYPE PACK
#define PACK_COLUMNS COLUMNS
#define PACKED(name) TYPED(name)
#include "product/omp/spmv_omp_packs.h"
#undef PACK_TYPE
#undef PACK_COLUMNS
#undef PACKED
#ifdef HALF_PACK
#define PACK_TYPE HALF_PACK
#define PACK_COLUMNS (COLUMNS / 2)
#define PACKED(name) TYPED(half_##name)
#include "product/omp/spmv_omp_packs.h"
#undef PACK_TYPE
#undef PACK_COLUMNS
#undef PACKED
#endif

/* The sum of entries begin ... end - 1 for one column. */
static ALWAYS_INLINE VALUE TYPED(sum_one)(const struct TYPED(columns) * c, bool pattern, const VALUE *x, int64_t begin,
                                          int64_t end)
{
    const STORED *val = c->a->val;
    const int32_t *col = c->a->col;
    const int64_t stride = c->x_stride;
    VALUE s[LANES] = {ZERO}, rest = ZERO;
    int64_t k = begin;
    if (end - begin > SERIAL)
        for (; k + LANES <= end; k += LANES)
            for (int i = 0; i < LANES; i++) {
                const VALUE xs = x[col[k + i] * stride];
                s[i] = PLUS(s[i], pattern ? xs : TIMES(val[k + i], xs));
            }
    for (; k < end; k++) {
        const VALUE xs = x[col[k] * stride];
        rest = PLUS(rest, pattern ? xs : TIMES(val[k], xs));
    }
    return end - begin <= SERIAL
               ? rest
               : PLUS(PLUS(PLUS(PLUS(s[0], s[4]), PLUS(s[2], s[6])), PLUS(PLUS(s[1], s[5]), PLUS(s[3], s[7]))), rest);
}

static ALWAYS_INLINE void TYPED(finish)(const struct TYPED(columns) * c, VALUE sum, VALUE *y)
{
    const VALUE scaled = SCALE(c->alpha, sum);
    *y = c->beta_zero ? scaled : PLUS(scaled, SCALE(c->beta, *y));
}

/* One tile for `width` columns from `first` on; width is a constant after inlining. Rows that begin
 * and end in the tile go to y. The end of a row that began before goes to head, the start of a row
 * that ends later to tail, one sum for each column. */
static ALWAYS_INLINE void TYPED(some)(const struct omp_tiles *tiles, int64_t t, const struct TYPED(columns) * c,
                                      bool pattern, int first, int width)
{
    const spmv_csr *a = c->a;
    const struct tile *tile = &tiles->tile[t];
    const struct position from = tile->begin, to = tile[1].begin;
    const struct TYPED(columns) copy = *c; /* a local copy, which no store to y can change */
    VALUE *head = (VALUE *)tiles->head + t * c->vectors + first, *tail = (VALUE *)tiles->tail + t * c->vectors + first;
    const VALUE *x = copy.x + first;
    int64_t begin = from.k;
    for (int64_t row = from.row; row <= to.row; row++) {
        const bool ends_later = row == to.row;
        const int64_t end = ends_later ? to.k : offset_at(a->row_ptr, a->row_ptr_bits, row + 1);
        VALUE sums[MOST_COLUMNS];
        if (width >= COLUMNS)
            TYPED(sum_packs)(&copy, pattern, x, begin, end, width / COLUMNS, sums);
#ifdef HALF_PACK
        else if (width == COLUMNS / 2)
            TYPED(half_sum_packs)(&copy, pattern, x, begin, end, 1, sums);
#endif
        else
            for (int v = 0; v < width; v++)
                sums[v] = TYPED(sum_one)(&copy, pattern, x + v, begin, end);
        if (ends_later || (row == from.row && tile->begun)) {
            memcpy(ends_later ? tail : head, sums, (size_t)width * sizeof *sums);
        } else {
            VALUE *y = copy.y + row * copy.y_stride + first;
            for (int v = 0; v < width; v++)
                TYPED(finish)(&copy, sums[v], &y[v]);
        }
        begin = end;
    }
}

/* All columns. Where there are more than MOST_COLUMNS, the next group reads the tile's entries from
 * the second-level cache. */
static ALWAYS_INLINE void TYPED(tile)(const struct omp_tiles *tiles, int64_t t, const struct TYPED(columns) * c,
                                      bool pattern)
{
    for (int first = 0; first < c->vectors;) {
        const int left = c->vectors - first;
        if (left >= 16) {
            TYPED(some)(tiles, t, c, pattern, first, 16);
            first += 16;
        } else if (left >= 8) {
            TYPED(some)(tiles, t, c, pattern, first, 8);
            first += 8;
        } else if (left >= 4) {
            TYPED(some)(tiles, t, c, pattern, first, 4);
            first += 4;
        } else if (left >= 2) {
            TYPED(some)(tiles, t, c, pattern, first, 2);
            first += 2;
        } else {
            TYPED(some)(tiles, t, c, pattern, first, 1);
            first += 1;
        }
    }
}

/* The epilogue of the tile's own rows. */
static ALWAYS_INLINE void TYPED(finish_tile)(const struct omp_tiles *tiles, int64_t t, const struct TYPED(columns) * c)
{
    const struct own_rows rows = own_rows_of(&tiles->tile[t]);
    if (c->epilogue != NULL)
        ((VALUE *)tiles->dots)[t] = TYPED(epilogue)(c->epilogue, c->y, c->y + rows.first, rows.first, rows.last);
}

#define TILE_FUNCTION(name, target, pattern)                                                                           \
    static target void TYPED(name)(const struct omp_tiles *tiles, int64_t t, const void *source)                       \
    {                                                                                                                  \
        TYPED(tile)(tiles, t, source, pattern);                                                                        \
        TYPED(finish_tile)(tiles, t, source);                                                                          \
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

/* Adds the partial sums of rows that cross tiles, in tile order, and the epilogue's sums, in the
 * order of the rows. */
static void TYPED(join)(const struct omp_tiles *tiles, const struct TYPED(columns) * c)
{
    const VALUE *heads = tiles->head, *tails = tiles->tail, *dots = tiles->dots;
    const spmv_epilogue *e = c->epilogue;
    VALUE dot = ZERO;
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
            if (continues) {
                TYPED(finish)(c, PLUS(open, head), &c->y[from.row * c->y_stride + v]);
                if (e != NULL)
                    dot = PLUS(dot, TYPED(epilogue)(e, c->y, &c->y[from.row], from.row, from.row + 1));
            }
            if (e != NULL)
                dot = PLUS(dot, dots[t]);
            open = tail;
        }
    }
    if (e != NULL && e->w != NULL)
        *(VALUE *)e->dot = dot;
}

static void TYPED(product)(const spmv_plan *plan, const struct plan_product *p)
{
    struct omp_tiles *tiles = plan->state;
    const struct TYPED(columns) c = {.a = &plan->a,
                                     .x = p->x != NULL ? p->x : p->y, /* without columns it is not read */
                                     .y = p->y,
                                     .x_stride = plan->x_stride,
                                     .y_stride = plan->y_stride,
                                     .vectors = plan->vectors,
                                     .alpha = *(const VALUE *)p->alpha,
                                     .beta = *(const VALUE *)p->beta,
                                     .beta_zero = p->beta_zero,
                                     .epilogue = p->epilogue};
    tiles_share_out(tiles, TYPED(tile_function_for)(tiles->avx2, plan->a.val == NULL), &c);
    TYPED(join)(tiles, &c);
}

#ifdef LOOP
static void TYPED(loop)(const spmv_plan *plan, const void *x, void *y, struct tile_loop *loop)
{
    const struct omp_tiles *tiles = plan->state;
    const struct TYPED(columns) c = {.a = &plan->a,
                                     .x = x != NULL ? x : y,
                                     .y = y,
                                     .x_stride = plan->x_stride,
                                     .y_stride = plan->y_stride,
                                     .vectors = plan->vectors,
                                     .alpha = 1,
                                     .beta_zero = true};
    _Static_assert(sizeof c <= sizeof loop->source, "room for a source");
    memcpy(loop->source, &c, sizeof c);
    loop->function = TYPED(tile_function_for)(tiles->avx2, plan->a.val == NULL);
}
#endif

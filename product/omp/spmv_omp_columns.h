/* The product of a tile for several vectors or complex numbers, included once for each pair of
 * types (each_plan_type.h). `width`, the number of columns computed at once, is a constant after
 * inlining.
 *
 * SPDX-License-Identifier: BSD-3-Clause */

#define PACK_PARTS 4
#define PACKED(name) TYPED(name)
#include "product/omp/spmv_omp_packs.h"
#undef PACK_PARTS
#undef PACKED
#if !IS_COMPLEX
#define PACK_PARTS 2
#define PACKED(name) TYPED(half_##name)
#include "product/omp/spmv_omp_packs.h"
#undef PACK_PARTS
#undef PACKED
#endif

/* The sum of entries begin ... end - 1 for one column. */
static ALWAYS_INLINE T TYPED(sum_one)(const struct TYPED(source) * source, bool pattern, const T *x, int64_t begin,
                                      int64_t end)
{
    const STORED *val = source->val;
    const int32_t *col = source->col;
    const int64_t stride = source->x_stride;
    T s[LANES] = {0}, rest = {0};
    int64_t k = begin;
    if (end - begin > SERIAL)
        for (; k + LANES <= end; k += LANES)
            for (int i = 0; i < LANES; i++) {
                const T xs = x[col[k + i] * stride];
                s[i] = TYPED(plus)(s[i], pattern ? xs : TYPED(times)(val[k + i], xs));
            }
    for (; k < end; k++) {
        const T xs = x[col[k] * stride];
        rest = TYPED(plus)(rest, pattern ? xs : TYPED(times)(val[k], xs));
    }
    return end - begin <= SERIAL ? rest : TYPED(plus)(TYPED(tree)(s), rest);
}

/* The same for `width` columns. */
static ALWAYS_INLINE void TYPED(sum)(const struct TYPED(source) * source, bool pattern, const T *x, int64_t begin,
                                     int64_t end, int width, T *sums)
{
    if (width >= TYPED(COLUMNS))
        TYPED(sum_packs)(source, pattern, x, begin, end, width / TYPED(COLUMNS), sums);
#if !IS_COMPLEX
    else if (width == TYPED(half_COLUMNS))
        TYPED(half_sum_packs)(source, pattern, x, begin, end, 1, sums);
#endif
    else
        sums[0] = TYPED(sum_one)(source, pattern, x, begin, end);
}

/* One tile for `width` columns from `first` on. Rows that begin and end in the tile go to y. The
 * end of a row that began before goes to head, the start of a row that ends later to tail, one sum
 * for each column. */
static ALWAYS_INLINE void TYPED(some)(int64_t t, const struct TYPED(source) * source, bool pattern, int first,
                                      int width)
{
    const struct TYPED(source) s = *source; /* a local copy, which no store to y can change */
    const struct omp_tiles *tiles = s.tiles;
    const struct tile *tile = &tiles->tile[t];
    const struct position from = tile->begin, to = tile[1].begin;
    T *head = (T *)tiles->head + t * s.vectors + first, *tail = (T *)tiles->tail + t * s.vectors + first;
    int64_t begin = from.k;
    for (int64_t row = from.row; row <= to.row; row++) {
        const bool ends_later = row == to.row;
        const int64_t end = ends_later ? to.k : offset_at(s.a->row_ptr, s.a->row_ptr_bits, row + 1);
        T sums[MOST_COLUMNS];
        TYPED(sum)(&s, pattern, s.x + first, begin, end, width, sums);
        if (ends_later || (row == from.row && tile->begun)) {
            memcpy(ends_later ? tail : head, sums, (size_t)width * sizeof *sums);
        } else {
            T *y = s.y + row * s.y_stride + first;
            for (int v = 0; v < width; v++)
                y[v] = TYPED(scaled)(s.f, sums[v], &y[v]);
        }
        begin = end;
    }
}

/* All columns, then the epilogue of the tile's own rows. Where there are more than MOST_COLUMNS,
 * the next ones read the tile's entries from the second-level cache. */
static ALWAYS_INLINE void TYPED(tile)(int64_t t, const struct TYPED(source) * s, bool pattern)
{
    for (int first = 0; first < s->vectors;) {
        const int left = s->vectors - first;
        if (left >= 16) {
            TYPED(some)(t, s, pattern, first, 16);
            first += 16;
        } else if (left >= 8) {
            TYPED(some)(t, s, pattern, first, 8);
            first += 8;
        } else if (left >= 4) {
            TYPED(some)(t, s, pattern, first, 4);
            first += 4;
        } else if (left >= 2) {
            TYPED(some)(t, s, pattern, first, 2);
            first += 2;
        } else {
            TYPED(some)(t, s, pattern, first, 1);
            first += 1;
        }
    }
    if (s->epilogue != NULL) {
        const struct own_rows rows = own_rows_of(&s->tiles->tile[t]);
        ((T *)s->tiles->dots)[t] = TYPED(epilogue)(s->epilogue, s->y, s->y + rows.first, rows.first, rows.last);
    }
}

/* The variants. */
#define VARIANT_FUNCTION(name, target, avx2, pattern)                                                                  \
    static target void TYPED(name)(const struct omp_tiles *tiles, int64_t t, const void *source)                       \
    {                                                                                                                  \
        (void)tiles;                                                                                                   \
        TYPED(tile)(t, source, pattern);                                                                               \
    }

COLUMNS_VARIANTS(VARIANT_FUNCTION)

#define ENTRY(name, target, avx2, pattern) [avx2][pattern] = TYPED(name),
static tile_function *const TYPED(variants)[2][2] = {COLUMNS_VARIANTS(ENTRY)};

#undef VARIANT_FUNCTION
#undef ENTRY

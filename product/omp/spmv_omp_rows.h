/* The functions for the rows of a tile (spmv_omp_tile.h), included once for each way to read the
 * matrix: NARROW and FAR (see struct reading), and ROWS(name), the names. All three are undefined
 * at the end. These are separate functions because a compiler that inlines a whole tile runs out of
 * registers in the innermost loops.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#define READING ((struct reading){PATTERN, NARROW, FAR, STREAM})

static __attribute__((noinline)) TARGET int64_t ROWS(_regular)(const struct TYPED(source) * s, struct stretch stretch,
                                                               int64_t k, int64_t first, int64_t last)
{
    return TYPED(stretch)(s, READING, stretch, k, first, last);
}

static __attribute__((noinline)) TARGET void ROWS(_plain)(const struct TYPED(source) * s, int64_t first, int64_t last)
{
    if (s->a->row_ptr_bits == 32)
        TYPED(plain_rows)(s, READING, 32, first, last);
    else
        TYPED(plain_rows)(s, READING, 64, first, last);
}

static __attribute__((noinline)) TARGET void ROWS(_sorted)(const struct TYPED(source) * s, const struct group *group,
                                                           int64_t groups, const struct place *place, int64_t rows,
                                                           int64_t k, int64_t next, VALUE *y)
{
    TYPED(sorted_rows)(s, READING, group, groups, place, rows, k, next, y);
}

static __attribute__((noinline)) TARGET void ROWS()(const struct omp_tiles *tiles, int64_t t,
                                                    const struct TYPED(source) * s, VALUE *head, VALUE *tail)
{
    const struct TYPED(rows) rows = {ROWS(_regular), ROWS(_plain), ROWS(_sorted), TILE(_formed)};
    TYPED(tile)(tiles, t, *s, READING, rows, head, tail);
}

#undef READING
#undef NARROW
#undef FAR
#undef ROWS

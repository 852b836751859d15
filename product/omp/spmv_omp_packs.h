/* The product of a tile for some columns, included once for each vector of the processor, of PACK_PARTS real
 * parts. PACKED(name): the name with the vector and the types in it.
 *
 * SPDX-License-Identifier: BSD-3-Clause */

/* GCC and Clang support vectors on every machine. */
#if PACK_PARTS > 1
typedef PART PACKED(pack) __attribute__((vector_size(PACK_PARTS * sizeof(PART))));
#else
typedef PART PACKED(pack);
#endif
enum { PACKED(COLUMNS) = sizeof(PACKED(pack)) / sizeof(T) };

/* Multiplies the numbers of a pack by a value. A complex value a + bi times two numbers z, w, stored as (z.re, z.im,
 * w.re, w.im), is a (z.re, z.im, w.re, w.im) + (-b, b, -b, b) (z.im, z.re, w.im, w.re), with the bits of times. */
static ALWAYS_INLINE void PACKED(scale)(PACKED(pack) * pack, T val)
{
#if IS_COMPLEX
#define SWAPPED_2(i) x[i + 1], x[i]
#define SWAPPED_4(i) SWAPPED_2(i), SWAPPED_2(i + 2)
#define SWAPPED_8(i) SWAPPED_4(i), SWAPPED_4(i + 4)
#define SWAPPED_16(i) SWAPPED_8(i), SWAPPED_8(i + 8)
#define SIGNS_2 -val.im, val.im
#define SIGNS_4 SIGNS_2, SIGNS_2
#define SIGNS_8 SIGNS_4, SIGNS_4
#define SIGNS_16 SIGNS_8, SIGNS_8
#define OF_PARTS(name) OF_PARTS_(name, PACK_PARTS)
#define OF_PARTS_(name, parts) OF_PARTS__(name, parts)
#define OF_PARTS__(name, parts) name##_##parts
    const PACKED(pack) x = *pack, swapped = {OF_PARTS(SWAPPED)(0)}, signs = {OF_PARTS(SIGNS)};
    *pack = val.re * x + signs * swapped;
#else
    *pack = val * *pack;
#endif
}

/* Reads and writes a pack of a row of x or y. */
static ALWAYS_INLINE void PACKED(read)(PACKED(pack) * pack, const ELEMENT *from)
{
    if (sizeof(ELEMENT) == sizeof(T)) {
        memcpy(pack, from, sizeof *pack);
    } else {
        T number[PACKED(COLUMNS)];
        for (int i = 0; i < PACKED(COLUMNS); i++)
            number[i] = WIDENED(from[i]);
        memcpy(pack, number, sizeof *pack);
    }
}

static ALWAYS_INLINE void PACKED(write)(ELEMENT *to, const PACKED(pack) * pack)
{
    if (sizeof(ELEMENT) == sizeof(T)) {
        memcpy(to, pack, sizeof *pack);
    } else {
        T number[PACKED(COLUMNS)];
        memcpy(number, pack, sizeof number);
        for (int i = 0; i < PACKED(COLUMNS); i++)
            to[i] = ROUNDED(number[i]);
    }
}

/* Adds the terms of entries begin, begin + step, ... before end to the sums of `packs` packs of columns. x begins
 * with these columns. */
static ALWAYS_INLINE void PACKED(add)(PACKED(pack) * sum, int packs, const struct TYPED(source) * source,
                                      const ELEMENT *x, int64_t begin, int64_t end, int64_t step)
{
    const struct TYPED(values) values = TYPED(values_of)(source);
    const int32_t *col = source->col;
    const size_t bytes = (size_t)(packs * PACKED(COLUMNS)) * sizeof *x;
    const int64_t stride = source->x_stride, last = source->a->nnz - 1, ahead = entries_ahead(bytes);
    for (int64_t k = begin; k < end; k += step) {
        const ELEMENT *row = x + col[k] * stride;
        const T val = WIDENED(values.val[k & values.mask]);
        prefetch_row(x + col[min_i64(k + ahead, last)] * stride, bytes);
        for (int p = 0; p < packs; p++) {
            PACKED(pack) term;
            PACKED(read)(&term, row + p * PACKED(COLUMNS));
            if (!IS_COMPLEX || values.mask != 0)
                PACKED(scale)(&term, val);
            sum[p] += term;
        }
    }
}

/* sum = the sums of a row. The LANES sums of a long row are computed one after the other: each takes every
 * LANES-th entry, so the sums of many columns stay in registers, and an entry is still read once. */
static ALWAYS_INLINE void PACKED(row)(PACKED(pack) * sum, int packs, const struct TYPED(source) * source,
                                      const ELEMENT *x, int64_t begin, int64_t end)
{
    const PACKED(pack) zero = {0};
    for (int p = 0; p < packs; p++)
        sum[p] = zero;
    if (end - begin <= SERIAL) {
        PACKED(add)(sum, packs, source, x, begin, end, 1);
        return;
    }
    const int64_t whole = end - (end - begin) % LANES;
    PACKED(pack) pair[LANES / 2][MOST_PACKS]; /* sums 0 + 4, 2 + 6, 1 + 5, 3 + 7, as in tree */
    for (int i = 0; i < LANES; i++) {
        PACKED(pack) its[MOST_PACKS];
        for (int p = 0; p < packs; p++)
            its[p] = zero;
        PACKED(add)(its, packs, source, x, begin + i % 2 * 4 + i / 2 % 2 * 2 + i / 4, whole, LANES);
        for (int p = 0; p < packs; p++)
            pair[i / 2][p] = i % 2 == 0 ? its[p] : pair[i / 2][p] + its[p];
    }
    PACKED(add)(sum, packs, source, x, whole, end, 1);
    for (int p = 0; p < packs; p++)
        sum[p] = ((pair[0][p] + pair[1][p]) + (pair[2][p] + pair[3][p])) + sum[p];
}

/* Rows of a tile for the columns of `packs` packs from `first` on. Rows that begin and end in the tile go to y. The
 * end of a row that began before goes to head, the start of a row that ends later to tail, one sum for each column. */
static ALWAYS_INLINE void PACKED(columns)(int64_t t, const struct TYPED(source) * source, struct rows rows, int first,
                                          int packs)
{
    const struct TYPED(source) s = *source; /* a local copy, which no store to y can change */
    const struct omp_tiles *tiles = s.tiles;
    const struct tile *tile = &tiles->tile[t];
    const struct position from = tile->begin, to = tile[1].begin;
    T *head = (T *)tiles->head + t * s.vectors + first, *tail = (T *)tiles->tail + t * s.vectors + first;
    int64_t begin = rows.begin == from.row ? from.k : offset_at(s.a->row_ptr, s.a->row_ptr_bits, rows.begin);
    for (int64_t row = rows.begin; row < rows.end; row++) {
        const bool ends_later = row == to.row;
        const int64_t end = ends_later ? to.k : offset_at(s.a->row_ptr, s.a->row_ptr_bits, row + 1);
        PACKED(pack) sum[MOST_PACKS];
        PACKED(row)(sum, packs, &s, s.x + first, begin, end);
        if (ends_later || (row == from.row && tile->begun)) {
            memcpy(ends_later ? tail : head, sum, (size_t)packs * sizeof *sum);
        } else {
            ELEMENT *y = s.y + row * s.y_stride + first;
            for (int p = 0; p < packs; p++) {
                PACKED(scale)(&sum[p], s.f.alpha);
                if (!s.f.beta_zero) {
                    PACKED(pack) before;
                    PACKED(read)(&before, y + p * PACKED(COLUMNS));
                    PACKED(scale)(&before, s.f.beta);
                    sum[p] += before;
                }
                PACKED(write)(y + p * PACKED(COLUMNS), &sum[p]);
            }
        }
        begin = end;
    }
}

/* The product of the slices of a tile (struct slice in spmv_omp.h), included for each pair of types with vectors of
 * PART_BYTES bytes, of which LANE_BYTES / PART_BYTES hold the sums of a slice. LANES_SET: the instruction set.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#define PARTED(name) PARTED_NAME(name, PART_BYTES)
#define PARTED_NAME(name, bytes) PARTED_NAME_(name, bytes)
#define PARTED_NAME_(name, bytes) TYPED(name##_##bytes)

typedef T PARTED(part) __attribute__((vector_size(PART_BYTES)));
enum { PARTED(WIDTH) = PART_BYTES / sizeof(T), PARTED(PARTS) = LANE_BYTES / PART_BYTES };

/* What the steps of a slice read; diagonals and narrow are constants after inlining. In step j, lane i has the element of
 * x at offset j + i (diagonals), or that at its column. */
struct PARTED(steps) {
    const STORED *val;
    const T *x;
    const void *at; /* offsets; columns of 32 or 16 bits */
    bool diagonals, narrow;
};

/* x of WIDTH columns. The gather instruction of AVX2 takes as long as single loads. */
static ALWAYS_INLINE LANES_SET void PARTED(gather)(PARTED(part) * to, const T *x, const void *col, bool narrow)
{
#if PART_BYTES == 64
    if (sizeof(T) == 4) {
        const __m512i at =
            narrow ? _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)col)) : _mm512_loadu_si512(col);
        const __m512 its = _mm512_i32gather_ps(at, x, sizeof(T));
        memcpy(to, &its, sizeof *to);
    } else {
        const __m256i at = narrow ? _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)col))
                                  : _mm256_loadu_si256((const __m256i *)col);
        const __m512d its = _mm512_i32gather_pd(at, x, sizeof(T));
        memcpy(to, &its, sizeof *to);
    }
#else
    for (int i = 0; i < PARTED(WIDTH); i++)
        (*to)[i] = x[column_at(col, narrow, i)];
#endif
}

/* *sum += part p of step j. */
static ALWAYS_INLINE LANES_SET void PARTED(add)(PARTED(part) * sum, const struct PARTED(steps) * s, int64_t j, int p)
{
    enum { WIDTH = PARTED(WIDTH) };
    const int64_t at = j * (WIDTH * PARTED(PARTS)) + p * WIDTH;
    PARTED(part) val = {0}, x = {0};
    if (sizeof(STORED) == sizeof(T))
        memcpy(&val, s->val + at, sizeof val);
    else
        for (int i = 0; i < WIDTH; i++)
            val[i] = s->val[at + i];
    if (s->diagonals)
        memcpy(&x, s->x + column_at(s->at, false, j) + p * WIDTH, sizeof x);
    else
        PARTED(gather)(&x, s->x, (const char *)s->at + (s->narrow ? 2 : 4) * at, s->narrow);
    *sum += val * x;
}

/* The sums of a slice of n steps, each as in dot. With more than SERIAL steps every row has an entry in each. */
static ALWAYS_INLINE LANES_SET void PARTED(slice)(PARTED(part) sum[PARTED(PARTS)], struct PARTED(steps) s, int64_t n)
{
    enum { PARTS = PARTED(PARTS), STEP = LANE_BYTES / sizeof(T) };
    int64_t j = 0;
    if (n <= SERIAL || !s.diagonals) {
        PARTED(part) its[PARTS] = {{0}};
        for (; j < n; j++) {
            prefetch(s.val + j * STEP, VALUES_AHEAD);
            for (int p = 0; p < PARTS; p++)
                PARTED(add)(&its[p], &s, j, p);
        }
        for (int p = 0; p < PARTS; p++)
            sum[p] = its[p];
        return;
    }
    for (int p = 0; p < PARTS; p++) {
        PARTED(part) l[LANES] = {{0}}, rest = {0};
        for (j = 0; j + LANES <= n; j += LANES)
            for (int i = 0; i < LANES; i++) {
                prefetch(s.val + (j + i) * STEP, VALUES_AHEAD);
                PARTED(add)(&l[i], &s, j + i, p);
            }
        for (; j < n; j++)
            PARTED(add)(&rest, &s, j, p);
        sum[p] = (((l[0] + l[4]) + (l[2] + l[6])) + ((l[1] + l[5]) + (l[3] + l[7]))) + rest;
    }
}

static ALWAYS_INLINE LANES_SET bool PARTED(has_nan)(const PARTED(part) sum[PARTED(PARTS)])
{
    bool nan = false;
    for (int p = 0; p < PARTED(PARTS); p++) {
#if PART_BYTES == 64
        if (sizeof(T) == 4)
            nan |= _mm512_cmp_ps_mask((__m512)sum[p], (__m512)sum[p], _CMP_UNORD_Q) != 0;
        else
            nan |= _mm512_cmp_pd_mask((__m512d)sum[p], (__m512d)sum[p], _CMP_UNORD_Q) != 0;
#else
        if (sizeof(T) == 4)
            nan |= _mm256_movemask_ps(_mm256_cmp_ps((__m256)sum[p], (__m256)sum[p], _CMP_UNORD_Q)) != 0;
        else
            nan |= _mm256_movemask_pd(_mm256_cmp_pd((__m256d)sum[p], (__m256d)sum[p], _CMP_UNORD_Q)) != 0;
#endif
    }
    return nan;
}

/* y of the rows of a slice, from number skip on. row: their places in y; NULL: one after the other. */
static ALWAYS_INLINE LANES_SET void PARTED(write)(struct TYPED(factors) f, const PARTED(part) sum[PARTED(PARTS)],
                                                  const uint16_t *row, int skip, T *y)
{
    enum { PARTS = PARTED(PARTS), WIDTH = PARTED(WIDTH) };
    T its[PARTS * WIDTH];
    if (row == NULL && skip == 0) {
        for (int p = 0; p < PARTS; p++) {
            PARTED(part) result = f.alpha * sum[p], before;
            if (!f.beta_zero) {
                memcpy(&before, y + p * WIDTH, sizeof before);
                result += f.beta * before;
            }
            memcpy(y + p * WIDTH, &result, sizeof result);
        }
        return;
    }
    memcpy(its, sum, sizeof its);
    for (int i = skip; i < PARTS * WIDTH; i++)
        TYPED(finish)(f, false, its[i], &y[row != NULL ? row[i] : i]);
}

/* The slices of the tile. plain: rows that are read from the matrix itself. */
static NOINLINE LANES_SET void PARTED(lanes)(const struct TYPED(source) * source, TYPED(rows_function) * plain)
{
    enum { ROWS = LANE_BYTES / sizeof(T) };
    const struct TYPED(source) s = *source;
    const struct stretch any = {.kind = STRETCH_PLAIN};
    const struct lanes *lanes = &s.tiles->lanes;
    const struct lane_tile *tile = &lanes->tile[s.tile - s.tiles->tile];
    const struct slice *const end = lanes->slice + tile[1].slice;
    const int64_t first = own_rows_of(s.tile).first;
    const STORED *val = (const STORED *)lanes->val + tile->value;
    T *const y = s.y + first;
    for (const struct slice *slice = lanes->slice + tile->slice; slice < end; slice++) {
        const int64_t n = slice->n, begin = slice->row;
        const int32_t *offset = lanes->offset + tile->offset + slice->at;
        const uint16_t *row = lanes->row + tile->row + begin;
        const int skip = slice->skip;
        PARTED(part) sum[PARTED(PARTS)];
        if (slice->kind == LANES_ROWS) {
            plain(source, any, 0, first + begin, first + begin + n);
            continue;
        }
        if (slice->kind == LANES_DIAGONALS) {
            PARTED(slice)(sum, (struct PARTED(steps)){val, s.x + first + begin, offset, true, false}, n);
            row = NULL;
        } else if (tile->narrow) {
            const uint16_t *col = lanes->col + tile->column + slice->at;
            PARTED(slice)(sum, (struct PARTED(steps)){val, s.x + s.tile->base, col, false, true}, n);
        } else {
            PARTED(slice)(sum, (struct PARTED(steps)){val, s.x, offset, false, false}, n);
        }
        val += n * ROWS;
        if (PARTED(has_nan)(sum)) {
            for (int i = skip; i < ROWS; i++) {
                const int64_t its = first + (row != NULL ? row[i] : begin + i);
                plain(source, any, 0, its, its + 1);
            }
        } else if (row != NULL) {
            PARTED(write)(s.f, sum, row, skip, y);
        } else {
            PARTED(write)(s.f, sum, NULL, skip, y + begin);
        }
    }
}
#undef PARTED
#undef PARTED_NAME
#undef PARTED_NAME_

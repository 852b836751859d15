/* The typed part of eigen_passes.c: VALUE of the blocks; on the host the numbers of a preconditioner are read and written
 * by real_at and real_set of its type, OTHER.
 *
 * SPDX-License-Identifier: BSD-3-Clause */

/* to = rows first to first + ROWS - 1 of columns `column` to column + PANEL - 1 of a block, 0 beyond its ends. */
static ALWAYS_INLINE void TYPED(pack)(const void *block, int64_t stride, int columns, int column, int64_t first,
                                      int64_t last, double *to)
{
    const VALUE *const from = block;
    const int width = columns - column < PANEL ? columns - column : PANEL;
    for (int64_t i = first; i < last; i++, to += PANEL) {
        for (int c = 0; c < width; c++)
            to[c] = (double)from[i * stride + column + c];
        for (int c = width; c < PANEL; c++)
            to[c] = 0;
    }
}

/* sums (p x q, from row a, column b on) += X'Y over packed rows. */
static ALWAYS_INLINE void TYPED(multiply_panels)(const double *x, const double *y, int64_t rows, int p, int q, int a,
                                                 int b, double *sums)
{
    for (int i = 0; i < PANEL && a + i < p; i += 4)
        for (int j = 0; j < PANEL && b + j < q; j += 8) {
            four sum[4][2] = {{{0}}};
            const double *xr = x + i, *yr = y + j;
            for (int64_t r = 0; r < rows; r++, xr += PANEL, yr += PANEL) {
                const four y0 = *(const four *)yr, y1 = *(const four *)(yr + 4);
                for (int k = 0; k < 4; k++) {
                    sum[k][0] += xr[k] * y0;
                    sum[k][1] += xr[k] * y1;
                }
            }
            for (int k = 0; k < 4 && a + i + k < p; k++)
                for (int c = 0; c < 8 && b + j + c < q; c++)
                    sums[(int64_t)(a + i + k) * q + b + j + c] += sum[k][c / 4][c % 4];
        }
}

static ALWAYS_INLINE void TYPED(gram)(const struct eigen_pass *e, int64_t stripe)
{
    double x[ROWS * PANEL] __attribute__((aligned(32))), y[ROWS * PANEL] __attribute__((aligned(32)));
    const int64_t size = (int64_t)e->p * e->q, rows = e->stripe_rows;
    const int64_t end = min_i64(e->n, (stripe + 1) * rows);
    double *const sums = e->parts + stripe * size * (e->z != NULL ? 2 : 1);
    memset(sums, 0, (size_t)(size * (e->z != NULL ? 2 : 1)) * sizeof *sums);
    for (int64_t first = stripe * rows; first < end; first += ROWS) {
        const int64_t last = min_i64(end, first + ROWS);
        for (int a = 0; a < e->p; a += PANEL) {
            TYPED(pack)(e->x, e->x_stride, e->p, a, first, last, x);
            for (int b = 0; b < e->q; b += PANEL) {
                TYPED(pack)(e->y, e->y_stride, e->q, b, first, last, y);
                TYPED(multiply_panels)(x, y, last - first, e->p, e->q, a, b, sums);
                if (e->z == NULL)
                    continue;
                TYPED(pack)(e->z, e->z_stride, e->q, b, first, last, y);
                TYPED(multiply_panels)(x, y, last - first, e->p, e->q, a, b, sums + size);
            }
        }
    }
}

/* Four rows at a time are read as a whole before they are written. c has rows of `width` numbers, a multiple of 8. */
static ALWAYS_INLINE void TYPED(combine)(const struct eigen_pass *e, int64_t stripe)
{
    double x[4][EIGEN_MOST_COLUMNS];
    const int64_t rows = e->stripe_rows, end = min_i64(e->n, (stripe + 1) * rows);
    const int width = (e->q + 7) / 8 * 8;
    for (int64_t i = stripe * rows; i < end; i += 4) {
        const int here = (int)min_i64(4, end - i);
        for (int r = 0; r < here; r++)
            for (int a = 0; a < e->p; a++)
                x[r][a] = (double)((const VALUE *)e->x)[(i + r) * e->x_stride + a];
        for (int r = here; r < 4; r++)
            memset(x[r], 0, (size_t)e->p * sizeof(double));
        for (int b = 0; b < e->q; b += 8) {
            four sum[4][2] = {{{0}}};
            const double *c = e->c + b;
            for (int a = 0; a < e->p; a++, c += width) {
                const four c0 = *(const four *)c, c1 = *(const four *)(c + 4);
                for (int r = 0; r < 4; r++) {
                    sum[r][0] += x[r][a] * c0;
                    sum[r][1] += x[r][a] * c1;
                }
            }
            for (int r = 0; r < here; r++)
                for (int k = 0; k < 8 && b + k < e->q; k++)
                    ((VALUE *)e->to)[(i + r) * e->to_stride + b + k] = (VALUE)sum[r][k / 4][k % 4];
        }
    }
}

static ALWAYS_INLINE double TYPED(residual)(const struct eigen_pass *e, int64_t i, int c, int part)
{
    const int v = e->which != NULL ? e->which[c] : c;
    const int64_t at = (int64_t)v * e->parts_of_number + part;
    const double a = (double)((const VALUE *)e->x)[i * e->x_stride + at];
    return e->values == NULL ? a : a - e->values[v] * (double)((const VALUE *)e->y)[i * e->y_stride + at];
}

static ALWAYS_INLINE void TYPED(squares)(const struct eigen_pass *e, int64_t stripe)
{
    const int64_t rows = e->stripe_rows, end = min_i64(e->n, (stripe + 1) * rows);
    double *const sums = e->parts + stripe * e->count;
    memset(sums, 0, (size_t)e->count * sizeof *sums);
    for (int64_t i = stripe * rows; i < end; i++) {
        const double weight = e->weight != NULL ? (double)((const VALUE *)e->weight)[i] : 1;
        for (int c = 0; c < e->count; c++)
            for (int part = 0; part < e->parts_of_number; part++) {
                const double r = TYPED(residual)(e, i, c, part);
                sums[c] += weight * (r * r);
            }
    }
}

static ALWAYS_INLINE void TYPED(send)(const struct eigen_pass *e, int64_t stripe)
{
    const int64_t rows = e->stripe_rows, end = min_i64(e->n, (stripe + 1) * rows);
    for (int64_t i = stripe * rows; i < end; i++)
        for (int part = 0; part < e->parts_of_number; part++)
            for (int64_t c = 0; c < e->to_stride; c++)
                real_set(e->other, e->to, (i * e->parts_of_number + part) * e->to_stride + c,
                         c < e->count ? TYPED(residual)(e, i, (int)c, part) / e->size[c] : 0);
}

static ALWAYS_INLINE void TYPED(receive)(const struct eigen_pass *e, int64_t stripe)
{
    const int64_t rows = e->stripe_rows, end = min_i64(e->n, (stripe + 1) * rows);
    for (int64_t i = stripe * rows; i < end; i++)
        for (int part = 0; part < e->parts_of_number; part++)
            for (int c = 0; c < e->count; c++)
                ((VALUE *)e->to)[i * e->to_stride + (int64_t)c * e->parts_of_number + part] =
                    (VALUE)(e->size[c] * real_at(e->other, e->x, (i * e->parts_of_number + part) * e->x_stride + c));
}

static ALWAYS_INLINE void TYPED(random)(const struct eigen_pass *e, int64_t stripe)
{
    const int64_t rows = e->stripe_rows, end = min_i64(e->n, (stripe + 1) * rows);
    for (int64_t i = stripe * rows; i < end; i++)
        for (int c = 0; c < e->q; c++)
            ((VALUE *)e->to)[i * e->to_stride + c] = (VALUE)eigen_random(e->seed, i * e->q + c);
}

#define TILE(name)                                                                                                     \
    static void TYPED(name##_tile)(void *state, int64_t tile)                                                          \
    {                                                                                                                  \
        TYPED(name)(state, tile);                                                                                      \
    }                                                                                                                  \
    TARGET_AVX2 static void TYPED(name##_avx2)(void *state, int64_t tile)                                              \
    {                                                                                                                  \
        TYPED(name)(state, tile);                                                                                      \
    }
TILE(gram)
TILE(combine)
TILE(squares)
TILE(send)
TILE(receive)
TILE(random)
#undef TILE

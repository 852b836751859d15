/* The typed part of krylov_columns.c: VALUE of x, r, p, q; OTHER of in and out.
 *
 * SPDX-License-Identifier: BSD-3-Clause */

/* The parts of the sums of a tile: 1 or SUMS. */
struct TYPED(parts) {
    VALUE of[SUMS][TOGETHER];
};

static ALWAYS_INLINE void TYPED(end)(const struct TYPED(parts) * s, int parts, const struct columns_state *to,
                                     int64_t tile, int v, int width)
{
    for (int c = 0; c < width; c++) {
        const VALUE sum = parts == 1 ? s->of[0][c]
                                     : ((s->of[0][c] + s->of[4][c]) + (s->of[2][c] + s->of[6][c])) +
                                           ((s->of[1][c] + s->of[5][c]) + (s->of[3][c] + s->of[7][c]));
        ((VALUE *)to->sums)[(v + c) * to->tiles + tile] = sum;
    }
}

static ALWAYS_INLINE void TYPED(dot)(const struct columns_job *j, int64_t first, int64_t last,
                                     const struct columns_state *to, int64_t tile, int parts, int v, int width)
{
    const int k = j->columns;
    const VALUE *r = (const VALUE *)j->r + v, *q = (const VALUE *)j->q + v;
    struct TYPED(parts) sum = {0};
    for (int64_t i = first; i < last; i++)
        for (int c = 0; c < width; c++)
            sum.of[(size_t)(i - first) % (size_t)parts][c] += r[i * k + c] * q[i * k + c];
    TYPED(end)(&sum, parts, to, tile, v, width);
}

static ALWAYS_INLINE void TYPED(residual)(const struct columns_job *j, int64_t first, int64_t last,
                                          const struct columns_state *to, int64_t tile, int parts, int v, int width)
{
    const int k = j->columns;
    const int64_t stride = j->stride;
    const VALUE *q = (const VALUE *)j->q + v;
    VALUE *restrict r = (VALUE *)j->r + v;
    OTHER *restrict in = j->in != NULL ? (OTHER *)j->in + v : NULL;
    struct TYPED(parts) sum = {0};
    VALUE alpha[TOGETHER];
    double inverse[TOGETHER];
    for (int c = 0; c < width; c++) {
        alpha[c] = (VALUE)j->alpha[v + c];
        inverse[c] = 1 / j->size[v + c];
    }
    for (int64_t i = first; i < last; i++)
        for (int c = 0; c < width; c++) {
            const VALUE value = r[i * k + c] - alpha[c] * q[i * k + c];
            r[i * k + c] = value;
            if (in != NULL)
                in[i * stride + c] = (OTHER)((double)value * inverse[c]);
            sum.of[(size_t)(i - first) % (size_t)parts][c] += value * value;
        }
    TYPED(end)(&sum, parts, to, tile, v, width);
}

static ALWAYS_INLINE void TYPED(product)(const struct columns_job *j, int64_t first, int64_t last,
                                         const struct columns_state *to, int64_t tile, int parts, int v, int width)
{
    const int k = j->columns;
    const int64_t stride = j->stride;
    const VALUE *r = (const VALUE *)j->r + v;
    const OTHER *out = (const OTHER *)j->out + v;
    struct TYPED(parts) sum = {0};
    double factor[TOGETHER];
    for (int c = 0; c < width; c++)
        factor[c] = j->factor * j->size[v + c];
    for (int64_t i = first; i < last; i++)
        for (int c = 0; c < width; c++)
            sum.of[(size_t)(i - first) % (size_t)parts][c] +=
                r[i * k + c] * (VALUE)((double)out[i * stride + c] * factor[c]);
    TYPED(end)(&sum, parts, to, tile, v, width);
}

static ALWAYS_INLINE void TYPED(direction)(const struct columns_job *j, int64_t first, int64_t last, bool solution_only,
                                           int v, int width)
{
    const int k = j->columns;
    const int64_t stride = j->stride;
    const OTHER *out = (const OTHER *)j->out + v;
    VALUE *restrict x = (VALUE *)j->x + v, *restrict p = (VALUE *)j->p + v;
    VALUE alpha[TOGETHER], beta[TOGETHER] = {0};
    double factor[TOGETHER] = {0};
    for (int c = 0; c < width; c++) {
        alpha[c] = (VALUE)j->alpha[v + c];
        if (!solution_only) {
            beta[c] = (VALUE)j->beta[v + c];
            factor[c] = j->factor * j->size[v + c];
        }
    }
    for (int64_t i = first; i < last; i++)
        for (int c = 0; c < width; c++) {
            const VALUE old = p[i * k + c];
            x[i * k + c] += alpha[c] * old;
            if (!solution_only)
                p[i * k + c] = (VALUE)((double)out[i * stride + c] * factor[c]) + beta[c] * old;
        }
}

static ALWAYS_INLINE void TYPED(update)(const struct columns_job *j, int64_t first, int64_t last, int v, int width)
{
    TYPED(direction)(j, first, last, false, v, width);
}

static ALWAYS_INLINE void TYPED(solution)(const struct columns_job *j, int64_t first, int64_t last, int v, int width)
{
    TYPED(direction)(j, first, last, true, v, width);
}

static ALWAYS_INLINE void TYPED(narrow)(const struct columns_job *j, int64_t first, int64_t last)
{
    const VALUE *r = j->r;
    OTHER *in = j->in;
    for (int64_t i = first; i < last; i++)
        for (int64_t v = 0; v < j->stride; v++)
            in[i * j->stride + v] = v < j->columns && runs(j, (int)v)
                                        ? (OTHER)((double)r[i * j->columns + v] * (1 / j->size[v]))
                                        : (OTHER)0;
}

static ALWAYS_INLINE void TYPED(begin)(const struct columns_job *j, int64_t first, int64_t last)
{
    const OTHER *out = j->out;
    VALUE *p = j->p;
    for (int64_t i = first; i < last; i++)
        for (int v = 0; v < j->columns; v++)
            p[i * j->columns + v] =
                runs(j, v) ? (VALUE)((double)out[i * j->stride + v] * (j->factor * j->size[v])) : (VALUE)0;
}

static ALWAYS_INLINE void TYPED(work)(void *state, int64_t tile)
{
    const struct columns_state *const s = state;
    const struct columns_job *const j = s->job;
    const int64_t *const chunk = j->ranks != NULL ? j->ranks->chunk : NULL;
    const int64_t first = chunk != NULL ? chunk[tile] : tile * TILE_ROWS;
    const int64_t last = chunk != NULL ? chunk[tile + 1] : min_i64(j->n, first + TILE_ROWS);
    for (int v = 0; v < j->columns && has_sums(s->pass); v++)
        ((VALUE *)s->sums)[v * s->tiles + tile] = 0;
    switch (s->pass) {
    case COLUMNS_DOT:
        EACH_SUMMED(j, TYPED(dot), j, first, last, s, tile);
        break;
    case COLUMNS_RESIDUAL:
        EACH_SUMMED(j, TYPED(residual), j, first, last, s, tile);
        break;
    case COLUMNS_PRODUCT:
        EACH_SUMMED(j, TYPED(product), j, first, last, s, tile);
        break;
    case COLUMNS_DIRECTION:
        EACH_COLUMNS(j, TYPED(update), j, first, last);
        break;
    case COLUMNS_SOLUTION:
        EACH_COLUMNS(j, TYPED(solution), j, first, last);
        break;
    case COLUMNS_NARROW:
        TYPED(narrow)(j, first, last);
        break;
    case COLUMNS_FIRST:
        TYPED(begin)(j, first, last);
        break;
    }
}

static void TYPED(tile)(void *state, int64_t tile)
{
    TYPED(work)(state, tile);
}
#ifdef __x86_64__
__attribute__((target("avx2"))) static void TYPED(tile_avx2)(void *state, int64_t tile)
{
    TYPED(work)(state, tile);
}
#endif

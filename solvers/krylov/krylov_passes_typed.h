/* The typed part of krylov_passes.c, included once for each type (each_floating.h).
 *
 * SPDX-License-Identifier: BSD-3-Clause */

#if IS_COMPLEX
static inline struct krylov_scalar TYPED(scalar)(T a)
{
    return (struct krylov_scalar){(double)a.re, (double)a.im};
}
static inline T TYPED(value)(struct krylov_scalar a)
{
    return (T){(PART)a.re, (PART)a.im};
}
static inline void TYPED(add)(T *sum, T a, T b)
{
    sum->re += a.re * b.re - a.im * b.im;
    sum->im += a.re * b.im + a.im * b.re;
}
/* sum += a b with bilinear, else conj(a) b */
static inline void TYPED(add_term)(T *sum, T a, T b, bool bilinear)
{
    if (bilinear) {
        TYPED(add)(sum, a, b);
    } else {
        sum->re += a.re * b.re + a.im * b.im;
        sum->im += a.re * b.im - a.im * b.re;
    }
}
#else
static inline struct krylov_scalar TYPED(scalar)(T a)
{
    return (struct krylov_scalar){(double)a, 0};
}
static inline T TYPED(value)(struct krylov_scalar a)
{
    return (T)a.re;
}
static inline void TYPED(add)(T *sum, T a, T b)
{
    *sum += a * b;
}
static inline void TYPED(add_term)(T *sum, T a, T b, bool bilinear)
{
    (void)bilinear;
    *sum += a * b;
}
#endif

/* The sum of conj(a) b, or with bilinear of a b, over n elements: element i is added to sum i mod LANES. */
static inline struct krylov_scalar TYPED(dot_of)(const T *a, const T *b, int64_t n, bool bilinear)
{
    enum { LANES = 8 };
    T lane[LANES] = {0};
    struct krylov_scalar sum = {0, 0};
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int l = 0; l < LANES; l++)
            TYPED(add_term)(&lane[l], a[i + l], b[i + l], bilinear);
    for (int l = 0; i + l < n; l++)
        TYPED(add_term)(&lane[l], a[i + l], b[i + l], bilinear);
    for (int l = 0; l < LANES; l++)
        sum = scalar_sum(sum, TYPED(scalar)(lane[l]));
    return sum;
}

/* The sums of conj(a_s) b for TOGETHER vectors a_s, each with the bits of dot_of: b is read once. */
static inline void TYPED(dots)(const T *a, int64_t stride, const T *b, int64_t n, struct krylov_scalar *sums)
{
    enum { LANES = 8 };
    T lane[TOGETHER][LANES];
    int64_t i = 0;
    memset(lane, 0, sizeof lane);
    for (; i + LANES <= n; i += LANES)
        for (int s = 0; s < TOGETHER; s++)
            for (int l = 0; l < LANES; l++)
                TYPED(add_term)(&lane[s][l], a[s * stride + i + l], b[i + l], false);
    for (int s = 0; s < TOGETHER; s++) {
        for (int l = 0; i + l < n; l++)
            TYPED(add_term)(&lane[s][l], a[s * stride + i + l], b[i + l], false);
        sums[s] = scalar_of(0);
        for (int l = 0; l < LANES; l++)
            sums[s] = scalar_sum(sums[s], TYPED(scalar)(lane[s][l]));
    }
}

static struct krylov_scalar TYPED(dot)(const T *a, const T *b, int64_t n)
{
    return TYPED(dot_of)(a, b, n, false);
}

static struct krylov_scalar TYPED(bilinear)(const T *a, const T *b, int64_t n)
{
    return TYPED(dot_of)(a, b, n, true);
}

/* to += by * from */
static inline void TYPED(add_multiple)(T *restrict to, struct krylov_scalar by, const T *restrict from, int64_t n)
{
    const T factor = TYPED(value)(by);
    for (int64_t i = 0; i < n; i++)
        TYPED(add)(&to[i], factor, from[i]);
}

static WIDE void TYPED(combine_tile)(void *state, int64_t tile)
{
    const struct combine_job *const job = state;
    const struct krylov_combination *const a = job->a;
    const struct krylov_state *const scalars = job->v->state;
    struct krylov_scalar *const parts = parts_of(job->v) + tile * KRYLOV_MOST_SUMS;
    const struct range range = range_of(job->v, tile, TILE);
    T fresh[KRYLOV_MOST_OUTPUTS][CACHE_BLOCK];
    for (int d = 0; d < a->sums; d++)
        parts[d] = scalar_of(0);
    for (int64_t begin = range.begin; begin < range.end; begin += CACHE_BLOCK) {
        const int64_t n = min_i64(CACHE_BLOCK, range.end - begin);
        for (int o = 0; o < a->outputs; o++) {
            memset(fresh[o], 0, (size_t)n * sizeof(T));
            for (int i = 0; i < a->inputs; i++)
                if (a->c[o][i] != C_ZERO)
                    TYPED(add_multiple)(fresh[o], scalars->c[a->c[o][i]], (const T *)a->in[i] + begin, n);
        }
        for (int d = 0; d < a->sums; d++) {
            const T *side[2];
            for (int k = 0; k < 2; k++) {
                const int operand = k == 0 ? a->left[d] : a->right[d];
                side[k] = operand < KRYLOV_MOST_INPUTS ? (const T *)a->in[operand] + begin
                                                       : fresh[operand - KRYLOV_MOST_INPUTS];
            }
            parts[d] = scalar_sum(parts[d], (a->bilinear[d] ? TYPED(bilinear) : TYPED(dot))(side[0], side[1], n));
        }
        for (int o = 0; o < a->outputs; o++)
            memcpy((T *)a->out[o] + begin, fresh[o], (size_t)n * sizeof(T));
    }
}

/* to += sum over i < count of sign by[i] basis_i, in this order: several of them each time that to is read */
static inline void TYPED(add_basis)(T *restrict to, double sign, const struct krylov_scalar *by, int count,
                                    const T *restrict basis, int64_t stride, int64_t n)
{
    int i = 0;
    for (; i + TOGETHER <= count; i += TOGETHER) {
        const T *const from = basis + i * stride;
        T factor[TOGETHER];
        for (int s = 0; s < TOGETHER; s++)
            factor[s] = TYPED(value)(scalar_scaled(sign, by[i + s]));
        for (int64_t k = 0; k < n; k++) {
            T sum = to[k];
            for (int s = 0; s < TOGETHER; s++)
                TYPED(add)(&sum, factor[s], from[s * stride + k]);
            to[k] = sum;
        }
    }
    for (; i < count; i++)
        TYPED(add_multiple)(to, scalar_scaled(sign, by[i]), basis + i * stride, n);
}

static WIDE void TYPED(project_tile)(void *state, int64_t tile)
{
    const struct project_job *const job = state;
    const struct krylov_projection *const a = job->a;
    const struct krylov_state *const scalars = job->v->state;
    struct krylov_scalar *const parts = parts_of(job->v) + tile * job->sums;
    const struct range range = range_of(job->v, tile, BASIS_TILE);
    for (int d = 0; d < job->sums; d++)
        parts[d] = scalar_of(0);
    for (int64_t begin = range.begin; begin < range.end; begin += CACHE_BLOCK) {
        const int64_t n = min_i64(CACHE_BLOCK, range.end - begin);
        const T *const basis = (const T *)a->basis + begin;
        T *const w = (T *)a->w + begin;
        if (a->subtracts)
            TYPED(add_basis)(w, -1, scalars->pass, scalars->j + 1, basis, a->stride, n);
        int i = 0;
        for (; i + TOGETHER <= scalars->j + 1; i += TOGETHER) {
            struct krylov_scalar sums[TOGETHER];
            TYPED(dots)(basis + i * a->stride, a->stride, w, n, sums);
            for (int s = 0; s < TOGETHER; s++)
                parts[i + s] = scalar_sum(parts[i + s], sums[s]);
        }
        for (; i <= scalars->j; i++)
            parts[i] = scalar_sum(parts[i], TYPED(dot)(basis + i * a->stride, w, n));
        parts[job->sums - 1] = scalar_sum(parts[job->sums - 1], TYPED(dot)(w, w, n));
    }
}

static WIDE void TYPED(store_tile)(void *state, int64_t tile)
{
    const struct store_job *const job = state;
    const struct krylov_storing *const a = job->a;
    const struct krylov_state *const scalars = job->v->state;
    const struct range range = range_of(job->v, tile, TILE);
    const T factor = TYPED(value)(scalars->c[a->factor]);
    T rest[CACHE_BLOCK];
    for (int64_t begin = range.begin; begin < range.end; begin += CACHE_BLOCK) {
        const int64_t n = min_i64(CACHE_BLOCK, range.end - begin);
        T *const basis = (T *)a->basis + begin, *const to = basis + scalars->j * a->stride;
        memcpy(rest, (const T *)a->from + begin, (size_t)n * sizeof(T));
        if (a->subtracts)
            TYPED(add_basis)(rest, -1, scalars->pass, scalars->j, basis, a->stride, n);
        for (int64_t i = 0; i < n; i++) {
            T value = {0};
            TYPED(add)(&value, factor, rest[i]);
            to[i] = value;
        }
        if (a->copy != NULL)
            memcpy((T *)a->copy + begin, to, (size_t)n * sizeof(T));
    }
}

static WIDE void TYPED(expand_tile)(void *state, int64_t tile)
{
    const struct expand_job *const job = state;
    const struct krylov_state *const scalars = job->v->state;
    const struct range range = range_of(job->v, tile, BASIS_TILE);
    const int64_t n = range.end - range.begin;
    T *const to = (T *)job->to + range.begin;
    if (job->x != job->to)
        memcpy(to, (const T *)job->x + range.begin, (size_t)n * sizeof(T));
    TYPED(add_basis)(to, 1, scalars->g, scalars->j, (const T *)job->basis + range.begin, job->stride, n);
}

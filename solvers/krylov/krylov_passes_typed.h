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
/* sum += a b; sum += conj(a) b */
static inline void TYPED(add)(T *sum, T a, T b)
{
    sum->re += a.re * b.re - a.im * b.im;
    sum->im += a.re * b.im + a.im * b.re;
}
static inline void TYPED(add_dot)(T *sum, T a, T b)
{
    sum->re += a.re * b.re + a.im * b.im;
    sum->im += a.re * b.im - a.im * b.re;
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
static inline void TYPED(add_dot)(T *sum, T a, T b)
{
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
            (bilinear ? TYPED(add) : TYPED(add_dot))(&lane[l], a[i + l], b[i + l]);
    for (int l = 0; i + l < n; l++)
        (bilinear ? TYPED(add) : TYPED(add_dot))(&lane[l], a[i + l], b[i + l]);
    for (int l = 0; l < LANES; l++)
        sum = scalar_sum(sum, TYPED(scalar)(lane[l]));
    return sum;
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

static void TYPED(combine_tile)(void *state, int64_t tile)
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

/* to -= sum over i < count of pass[i] basis_i */
static void TYPED(subtract)(T *to, const struct krylov_scalar *pass, int count, const T *basis, int64_t stride,
                            int64_t n)
{
    for (int i = 0; i < count; i++)
        TYPED(add_multiple)(to, scalar_scaled(-1, pass[i]), basis + i * stride, n);
}

static void TYPED(project_tile)(void *state, int64_t tile)
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
            TYPED(subtract)(w, scalars->pass, scalars->j + 1, basis, a->stride, n);
        for (int i = 0; i <= scalars->j; i++)
            parts[i] = scalar_sum(parts[i], TYPED(dot)(basis + i * a->stride, w, n));
        parts[job->sums - 1] = scalar_sum(parts[job->sums - 1], TYPED(dot)(w, w, n));
    }
}

static void TYPED(store_tile)(void *state, int64_t tile)
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
            TYPED(subtract)(rest, scalars->pass, scalars->j, basis, a->stride, n);
        for (int64_t i = 0; i < n; i++) {
            T value = {0};
            TYPED(add)(&value, factor, rest[i]);
            to[i] = value;
        }
        if (a->copy != NULL)
            memcpy((T *)a->copy + begin, to, (size_t)n * sizeof(T));
    }
}

static void TYPED(expand_tile)(void *state, int64_t tile)
{
    const struct expand_job *const job = state;
    const struct krylov_state *const scalars = job->v->state;
    const struct range range = range_of(job->v, tile, BASIS_TILE);
    const int64_t n = range.end - range.begin;
    T *const to = (T *)job->to + range.begin;
    if (job->x != job->to)
        memcpy(to, (const T *)job->x + range.begin, (size_t)n * sizeof(T));
    for (int i = 0; i < scalars->j; i++)
        TYPED(add_multiple)(to, scalars->g[i], (const T *)job->basis + i * job->stride + range.begin, n);
}

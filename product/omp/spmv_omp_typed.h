/* What all products share for a pair of types (each_plan_type.h): arithmetic, the arguments of a
 * product, and the epilogue (spmv_apply_with).
 *
 * The epilogue runs right after a tile, while the tile's own rows of y are in the first-level
 * cache. Row i of the n rows is added to sum i % LANES. Each tile gives one number, and join adds
 * these in tile order, so the bits of a dot product depend on the tiles alone.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#if IS_COMPLEX
static ALWAYS_INLINE T TYPED(plus)(T a, T b)
{
    return (T){a.re + b.re, a.im + b.im};
}

static ALWAYS_INLINE T TYPED(times)(T a, T b)
{
    return (T){a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}

static ALWAYS_INLINE T TYPED(conjugate)(T a)
{
    return (T){a.re, -a.im};
}
#else
static ALWAYS_INLINE T TYPED(plus)(T a, T b)
{
    return a + b;
}

static ALWAYS_INLINE T TYPED(times)(T a, T b)
{
    return a * b;
}

static ALWAYS_INLINE T TYPED(conjugate)(T a)
{
    return a;
}
#endif

/* The sum of LANES sums. */
static ALWAYS_INLINE T TYPED(tree)(const T *s)
{
    return TYPED(plus)(TYPED(plus)(TYPED(plus)(s[0], s[4]), TYPED(plus)(s[2], s[6])),
                       TYPED(plus)(TYPED(plus)(s[1], s[5]), TYPED(plus)(s[3], s[7])));
}

/* alpha and beta, loaded once: y could alias them. */
struct TYPED(factors) {
    T alpha, beta;
    bool beta_zero;
};

/* alpha sum + beta y. *y is not read if beta is 0. */
static ALWAYS_INLINE T TYPED(scaled)(struct TYPED(factors) f, T sum, const ELEMENT *y)
{
    const T scaled = TYPED(times)(f.alpha, sum);
    return f.beta_zero ? scaled : TYPED(plus)(scaled, TYPED(times)(f.beta, WIDENED(*y)));
}

/* The arguments of a product, as one tile reads them. The column of entry k is col[k - left_out]; x
 * is shifted by the base of 16-bit columns. keep: a tile's rows of y wait in the first-level cache
 * for the epilogue, then streaming stores write them. */
struct TYPED(source) {
    const spmv_csr *a;
    const void *val, *col;
    int64_t left_out;
    const ELEMENT *x;
    ELEMENT *y;
    struct TYPED(factors) f;
    const spmv_epilogue *epilogue; /* NULL: none; otherwise there is one vector without strides */
    bool keep;
    int vectors;
    int64_t x_stride, y_stride;
    const struct omp_tiles *tiles;
    const struct tile *tile; /* of one vector: the tile that is read */
};

/* For rows first ... last - 1, whose elements of y are at own: z_i = z_i + gamma y_i, and the sum
 * of conj(w_i) y_i, or 0 if no dot product is requested. */
static ALWAYS_INLINE T TYPED(epilogue)(const spmv_epilogue *e, const void *y, const T *own, int64_t first, int64_t last)
{
    const int64_t n = last - first;
    T s[LANES] = {0};
    int64_t i = 0;
    if (e->z != NULL) {
        T *restrict z = (T *)e->z + first;
        const T *gamma = e->gamma;
        if (gamma == NULL) {
            for (int64_t k = 0; k < n; k++)
                z[k] = TYPED(plus)(z[k], own[k]);
        } else {
            const T factor = *gamma;
            for (int64_t k = 0; k < n; k++)
                z[k] = TYPED(plus)(z[k], TYPED(times)(factor, own[k]));
        }
    }
    if (e->w == NULL)
        return s[0];
    /* Do not read back from y what streaming stores have written. */
    const T *w = e->w == y ? own : (const T *)e->w + first;
    for (; i + LANES <= n; i += LANES)
        for (int j = 0; j < LANES; j++)
            s[j] = TYPED(plus)(s[j], TYPED(times)(TYPED(conjugate)(w[i + j]), own[i + j]));
    for (int j = 0; i + j < n; j++)
        s[j] = TYPED(plus)(s[j], TYPED(times)(TYPED(conjugate)(w[i + j]), own[i + j]));
    return TYPED(tree)(s);
}

/* The definition of a product of complex numbers and of its epilogue (spmv_ref.c), included once
 * for each type (each_complex.h).
 *
 * SPDX-License-Identifier: BSD-3-Clause */
static struct wide TYPED(widen)(T z)
{
    return (struct wide){(long double)z.re, (long double)z.im};
}

static void TYPED(definition)(const spmv_plan *plan, int v, const struct plan_product *p)
{
    const spmv_csr *a = &plan->a;
    const T alpha = *(const T *)p->alpha, *x = p->x;
    T *const y = p->y;
    const T *val = a->val;
    for (int64_t i = 0; i < a->rows; i++) {
        struct wide sum = {0, 0};
        for (int64_t k = offset_at(a->row_ptr, a->row_ptr_bits, i); k < offset_at(a->row_ptr, a->row_ptr_bits, i + 1);
             k++) {
            const struct wide factor = TYPED(widen)(x[a->col[k] * plan->x_stride + v]);
            sum = plus(sum, val != NULL ? times(TYPED(widen)(val[k]), factor) : factor);
        }
        sum = times(TYPED(widen)(alpha), sum);
        T *out = &y[i * plan->y_stride + v];
        if (!p->beta_zero)
            sum = plus(sum, times(TYPED(widen)(*(const T *)p->beta), TYPED(widen)(*out)));
        *out = (T){(PART)sum.re, (PART)sum.im};
    }
}

static void TYPED(epilogue)(int64_t n, const T *y, const spmv_epilogue *e)
{
    const T *w = e->w;
    T *z = e->z;
    struct wide sum = {0, 0};
    for (int64_t i = 0; i < n && z != NULL; i++) {
        const struct wide own = TYPED(widen)(y[i]);
        const struct wide add = e->gamma != NULL ? times(TYPED(widen)(*(const T *)e->gamma), own) : own;
        z[i] = (T){(PART)(z[i].re + add.re), (PART)(z[i].im + add.im)};
    }
    for (int64_t i = 0; i < n && w != NULL; i++)
        sum = plus(sum, times(TYPED(widen)((T){w[i].re, -w[i].im}), TYPED(widen)(y[i])));
    if (w != NULL)
        *(T *)e->dot = (T){(PART)sum.re, (PART)sum.im};
}

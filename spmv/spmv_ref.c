/* Method "definition" of the backend ref: y_i = alpha sum_j a_ij x_j + beta y_i, a row after the other, in the order in
 * which the entries are stored, every product and sum in long double, rounded once at the end; for several vectors, one
 * after the other. What all else is tested against.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "plan_internal.h"

/* V: of the values, T: of vectors and sums */
#define DEFINE(name, V, T)                                                                                             \
    static void definition_##name(const spmv_plan *plan, int v, const T *alpha, const T *x, const T *beta,             \
                                  bool beta_zero, T *y)                                                                \
    {                                                                                                                  \
        const spmv_csr *a = &plan->a;                                                                                  \
        const V *val = a->val;                                                                                         \
        for (int64_t i = 0; i < a->rows; i++) {                                                                        \
            long double sum = 0;                                                                                       \
            for (int64_t k = offset_at(a->row_ptr, a->row_ptr_bits, i);                                                \
                 k < offset_at(a->row_ptr, a->row_ptr_bits, i + 1); k++)                                               \
                sum += (val != NULL ? (long double)val[k] : 1) * (long double)x[a->col[k] * plan->x_stride + v];       \
            sum *= (long double)*alpha;                                                                                \
            T *out = &y[i * plan->y_stride + v];                                                                       \
            *out = (T)(beta_zero ? sum : sum + (long double)*beta * (long double)*out);                                \
        }                                                                                                              \
    }
DEFINE(f32, float, float)
DEFINE(f64, double, double)
DEFINE(mixed, float, double)
#undef DEFINE

struct wide {
    long double re, im;
};

static struct wide times(struct wide a, struct wide b)
{
    return (struct wide){a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}

static struct wide plus(struct wide a, struct wide b)
{
    return (struct wide){a.re + b.re, a.im + b.im};
}

#define DEFINE(name, T, R)                                                                                             \
    static struct wide widen_##name(T z)                                                                               \
    {                                                                                                                  \
        return (struct wide){(long double)z.re, (long double)z.im};                                                    \
    }                                                                                                                  \
    static void definition_##name(const spmv_plan *plan, int v, const T *alpha, const T *x, const T *beta,             \
                                  bool beta_zero, T *y)                                                                \
    {                                                                                                                  \
        const spmv_csr *a = &plan->a;                                                                                  \
        const T *val = a->val;                                                                                         \
        for (int64_t i = 0; i < a->rows; i++) {                                                                        \
            struct wide sum = {0, 0};                                                                                  \
            for (int64_t k = offset_at(a->row_ptr, a->row_ptr_bits, i);                                                \
                 k < offset_at(a->row_ptr, a->row_ptr_bits, i + 1); k++) {                                             \
                const struct wide factor = widen_##name(x[a->col[k] * plan->x_stride + v]);                            \
                sum = plus(sum, val != NULL ? times(widen_##name(val[k]), factor) : factor);                           \
            }                                                                                                          \
            sum = times(widen_##name(*alpha), sum);                                                                    \
            T *out = &y[i * plan->y_stride + v];                                                                       \
            if (!beta_zero)                                                                                            \
                sum = plus(sum, times(widen_##name(*beta), widen_##name(*out)));                                       \
            *out = (T){(R)sum.re, (R)sum.im};                                                                          \
        }                                                                                                              \
    }                                                                                                                  \
    static void epilogue_##name(int64_t n, const T *y, const spmv_epilogue *e)                                         \
    {                                                                                                                  \
        const T *w = e->w;                                                                                             \
        T *z = e->z;                                                                                                   \
        struct wide sum = {0, 0};                                                                                      \
        for (int64_t i = 0; i < n && z != NULL; i++) {                                                                 \
            const struct wide own = widen_##name(y[i]);                                                                \
            const struct wide add = e->gamma != NULL ? times(widen_##name(*(const T *)e->gamma), own) : own;           \
            z[i] = (T){(R)(z[i].re + add.re), (R)(z[i].im + add.im)};                                                  \
        }                                                                                                              \
        for (int64_t i = 0; i < n && w != NULL; i++)                                                                   \
            sum = plus(sum, times(widen_##name((T){w[i].re, -w[i].im}), widen_##name(y[i])));                          \
        if (w != NULL)                                                                                                 \
            *(T *)e->dot = (T){(R)sum.re, (R)sum.im};                                                                  \
    }
DEFINE(c64, spmv_c64, float)
DEFINE(c128, spmv_c128, double)
#undef DEFINE

spmv_status definition_ref_apply(const spmv_plan *plan, const void *alpha, const void *x, const void *beta,
                                 bool beta_zero, void *y)
{
    for (int v = 0; v < plan->vectors; v++)
        if (plan->type == SPMV_F32)
            definition_f32(plan, v, alpha, x, beta, beta_zero, y);
        else if (plan->type == SPMV_C64)
            definition_c64(plan, v, alpha, x, beta, beta_zero, y);
        else if (plan->type == SPMV_C128)
            definition_c128(plan, v, alpha, x, beta, beta_zero, y);
        else if (plan->a.type == SPMV_F32)
            definition_mixed(plan, v, alpha, x, beta, beta_zero, y);
        else
            definition_f64(plan, v, alpha, x, beta, beta_zero, y);
    return SPMV_OK;
}

spmv_status definition_ref_apply_with(const spmv_plan *plan, const void *alpha, const void *x, const void *beta,
                                      bool beta_zero, void *y, const spmv_epilogue *epilogue)
{
    spmv_status st = SPMV_OK;
    TRY(definition_ref_apply(plan, alpha, x, beta, beta_zero, y));
    if (plan->type == SPMV_C64)
        epilogue_c64(plan->a.rows, y, epilogue);
    else if (plan->type == SPMV_C128)
        epilogue_c128(plan->a.rows, y, epilogue);
    else
        TRY(epilogue_behind(plan, y, epilogue));
done:
    return st;
}

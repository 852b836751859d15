/* divide, axpby, dot: the definitions. The dot product is summed in long double and rounded once.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "backend.h"

#define DEFINE(T, name)                                                                                                \
    static void divide_##name(const T *a, const T *b, T *out, int64_t n)                                               \
    {                                                                                                                  \
        for (int64_t i = 0; i < n; i++)                                                                                \
            out[i] = a[i] / b[i];                                                                                      \
    }                                                                                                                  \
    static void axpby_##name(T alpha, const T *x, T beta, T *y, int64_t n)                                             \
    {                                                                                                                  \
        for (int64_t i = 0; i < n; i++)                                                                                \
            y[i] = alpha * x[i] + beta * y[i];                                                                         \
    }                                                                                                                  \
    static void dot_##name(const T *x, const T *y, T *out, int64_t n)                                                  \
    {                                                                                                                  \
        long double sum = 0;                                                                                           \
        for (int64_t i = 0; i < n; i++)                                                                                \
            sum += (long double)x[i] * (long double)y[i];                                                              \
        *out = (T)sum;                                                                                                 \
    }
DEFINE(float, f32)
DEFINE(double, f64)
#undef DEFINE

spmv_status map_divide_ref(spmv_context *ctx, spmv_type type, const void *a, const void *b, void *out, int64_t n)
{
    (void)ctx;
    if (type == SPMV_F32)
        divide_f32(a, b, out, n);
    else
        divide_f64(a, b, out, n);
    return SPMV_OK;
}

spmv_status map_axpby_ref(spmv_context *ctx, spmv_type type, const void *alpha, const void *x, const void *beta,
                          void *y, int64_t n)
{
    (void)ctx;
    if (type == SPMV_F32)
        axpby_f32(alpha != NULL ? *(const float *)alpha : 1, x, beta != NULL ? *(const float *)beta : 1, y, n);
    else
        axpby_f64(alpha != NULL ? *(const double *)alpha : 1, x, beta != NULL ? *(const double *)beta : 1, y, n);
    return SPMV_OK;
}

int64_t dot_scratch_ref(const spmv_context *ctx, spmv_type type, int64_t n)
{
    (void)ctx;
    (void)type;
    (void)n;
    return 0;
}

spmv_status dot_ref(spmv_context *ctx, spmv_type type, const void *x, const void *y, void *out, int64_t n,
                    void *scratch)
{
    (void)ctx;
    (void)scratch;
    if (type == SPMV_F32)
        dot_f32(x, y, out, n);
    else
        dot_f64(x, y, out, n);
    return SPMV_OK;
}

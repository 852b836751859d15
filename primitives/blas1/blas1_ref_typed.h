/* The typed part of blas1_ref.c, included once per real type (each_real.h). A missing scalar is 1.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
static void TYPED(divide)(const void *a, const void *b, void *out, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        ((T *)out)[i] = ((const T *)a)[i] / ((const T *)b)[i];
}

static void TYPED(axpby)(const void *alpha, const void *x, const void *beta, void *y, int64_t n)
{
    const T a = alpha != NULL ? *(const T *)alpha : 1, b = beta != NULL ? *(const T *)beta : 1;
    for (int64_t i = 0; i < n; i++)
        ((T *)y)[i] = a * ((const T *)x)[i] + b * ((const T *)y)[i];
}

static void TYPED(dot)(const void *x, const void *y, void *out, int64_t n)
{
    long double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += (long double)((const T *)x)[i] * (long double)((const T *)y)[i];
    *(T *)out = (T)sum;
}

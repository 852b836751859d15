/* The typed part of blas1_omp.c, included once a type with VALUE (the C type) and TYPED(name) (name with the type's
 * suffix).
 *
 * SPDX-License-Identifier: BSD-3-Clause */

static void TYPED(divide)(int threads, const VALUE *a, const VALUE *b, VALUE *out, int64_t n)
{
#pragma omp parallel for simd schedule(static) num_threads(threads) if (n >= HOST_PARALLEL)
    for (int64_t i = 0; i < n; i++)
        out[i] = a[i] / b[i];
}

/* A missing scalar is 1. */
static VALUE TYPED(scalar)(const void *scalar)
{
    return scalar != NULL ? *(const VALUE *)scalar : 1;
}

static void TYPED(axpby)(int threads, VALUE alpha, const VALUE *x, VALUE beta, VALUE *y, int64_t n)
{
#pragma omp parallel for simd schedule(static) num_threads(threads) if (n >= HOST_PARALLEL)
    for (int64_t i = 0; i < n; i++)
        y[i] = alpha * x[i] + beta * y[i];
}

/* Eight sums side by side hide the latency of the additions; element i goes into sum i mod 8. */
static VALUE TYPED(dot_of_tile)(const VALUE *x, const VALUE *y, int64_t n)
{
    VALUE s[8] = {0};
    const int64_t whole = n - n % 8;
    for (int64_t i = 0; i < whole; i += 8)
        for (int j = 0; j < 8; j++)
            s[j] += x[i + j] * y[i + j];
    for (int64_t i = whole; i < n; i++)
        s[i - whole] += x[i] * y[i];
    return ((s[0] + s[1]) + (s[2] + s[3])) + ((s[4] + s[5]) + (s[6] + s[7]));
}

static void TYPED(dot)(int threads, const VALUE *x, const VALUE *y, VALUE *out, int64_t n, VALUE *sums)
{
    const int64_t tiles = ceil_divide(n, HOST_TILE);
    VALUE total = 0;
#pragma omp parallel for schedule(static) num_threads(threads) if (n >= HOST_PARALLEL)
    for (int64_t t = 0; t < tiles; t++)
        sums[t] = TYPED(dot_of_tile)(x + t * HOST_TILE, y + t * HOST_TILE, min_i64(HOST_TILE, n - t * HOST_TILE));
    for (int64_t t = 0; t < tiles; t++)
        total += sums[t];
    *out = total;
}

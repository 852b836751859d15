/* divide, axpby, dot on OpenMP. Maps: one loop shared by the team. dot: tiles fixed by n, their sums added in tile
 * order.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "backend.h"

/* Elements of a tile of the dot product: 64 KB in f64, long against what a tile costs, short against a cache. */
enum { DOT_TILE = 4096 };

/* Below so many elements one thread is done before a team has started. */
enum { PARALLEL_FROM = 1 << 15 };

#define DEFINE_MAPS(T, name)                                                                                           \
    static void divide_##name(int threads, const T *a, const T *b, T *out, int64_t n)                                  \
    {                                                                                                                  \
        _Pragma(                                                                                                       \
            "omp parallel for simd schedule(static) num_threads(threads) if (n >= PARALLEL_FROM)") for (int64_t i = 0; \
                                                                                                        i < n; i++)    \
            out[i] = a[i] / b[i];                                                                                      \
    }                                                                                                                  \
    static void axpby_##name(int threads, T alpha, const T *x, T beta, T *y, int64_t n)                                \
    {                                                                                                                  \
        _Pragma(                                                                                                       \
            "omp parallel for simd schedule(static) num_threads(threads) if (n >= PARALLEL_FROM)") for (int64_t i = 0; \
                                                                                                        i < n; i++)    \
            y[i] = alpha * x[i] + beta * y[i];                                                                         \
    }

/* Eight sums side by side hide the latency of the additions; element i goes into sum i mod 8. */
#define DEFINE_DOT(T, name)                                                                                            \
    static T tile_##name(const T *x, const T *y, int64_t n)                                                            \
    {                                                                                                                  \
        T s[8] = {0};                                                                                                  \
        const int64_t whole = n - n % 8;                                                                               \
        for (int64_t i = 0; i < whole; i += 8)                                                                         \
            for (int j = 0; j < 8; j++)                                                                                \
                s[j] += x[i + j] * y[i + j];                                                                           \
        for (int64_t i = whole; i < n; i++)                                                                            \
            s[i - whole] += x[i] * y[i];                                                                               \
        return ((s[0] + s[1]) + (s[2] + s[3])) + ((s[4] + s[5]) + (s[6] + s[7]));                                      \
    }                                                                                                                  \
    static void dot_##name(int threads, const T *x, const T *y, T *out, int64_t n, T *sums)                            \
    {                                                                                                                  \
        const int64_t tiles = ceil_divide(n, DOT_TILE);                                                                \
        T total = 0;                                                                                                   \
        _Pragma("omp parallel for schedule(static) num_threads(threads) if (n >= PARALLEL_FROM)") for (int64_t t = 0;  \
                                                                                                       t < tiles; t++) \
            sums[t] = tile_##name(x + t * DOT_TILE, y + t * DOT_TILE, min_i64(DOT_TILE, n - t * DOT_TILE));            \
        for (int64_t t = 0; t < tiles; t++)                                                                            \
            total += sums[t];                                                                                          \
        *out = total;                                                                                                  \
    }
DEFINE_MAPS(float, f32)
DEFINE_MAPS(double, f64)
DEFINE_DOT(float, f32)
DEFINE_DOT(double, f64)

spmv_status map_divide_omp(spmv_context *ctx, spmv_type type, const void *a, const void *b, void *out, int64_t n)
{
    if (type == SPMV_F32)
        divide_f32(ctx->threads, a, b, out, n);
    else
        divide_f64(ctx->threads, a, b, out, n);
    return SPMV_OK;
}

spmv_status map_axpby_omp(spmv_context *ctx, spmv_type type, const void *alpha, const void *x, const void *beta,
                          void *y, int64_t n)
{
    if (type == SPMV_F32)
        axpby_f32(ctx->threads, alpha != NULL ? *(const float *)alpha : 1, x, beta != NULL ? *(const float *)beta : 1,
                  y, n);
    else
        axpby_f64(ctx->threads, alpha != NULL ? *(const double *)alpha : 1, x, beta != NULL ? *(const double *)beta : 1,
                  y, n);
    return SPMV_OK;
}

int64_t dot_scratch_omp(const spmv_context *ctx, spmv_type type, int64_t n)
{
    (void)ctx;
    return ceil_divide(n, DOT_TILE) * (int64_t)spmv_type_size(type);
}

spmv_status dot_omp(spmv_context *ctx, spmv_type type, const void *x, const void *y, void *out, int64_t n,
                    void *scratch)
{
    if (type == SPMV_F32)
        dot_f32(ctx->threads, x, y, out, n, scratch);
    else
        dot_f64(ctx->threads, x, y, out, n, scratch);
    return SPMV_OK;
}

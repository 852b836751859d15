/* divide, axpby, dot on OpenMP. Maps: one loop shared by the team. dot: tiles fixed by n, their sums added in tile
 * order.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "backend.h"
#include "host_tiles.h"

#define VALUE float
#define TYPED(name) name##_f32
#include "blas1_omp_typed.h"
#undef VALUE
#undef TYPED
#define VALUE double
#define TYPED(name) name##_f64
#include "blas1_omp_typed.h"
#undef VALUE
#undef TYPED

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
        axpby_f32(ctx->threads, scalar_f32(alpha), x, scalar_f32(beta), y, n);
    else
        axpby_f64(ctx->threads, scalar_f64(alpha), x, scalar_f64(beta), y, n);
    return SPMV_OK;
}

int64_t dot_scratch_omp(const spmv_context *ctx, spmv_type type, int64_t n)
{
    (void)ctx;
    return ceil_divide(n, HOST_TILE) * (int64_t)spmv_type_size(type);
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

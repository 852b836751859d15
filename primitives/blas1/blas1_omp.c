/* divide, axpby, dot on OpenMP. Maps: one loop shared by the team. dot: tiles fixed by n, their sums added in tile
 * order.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "backend.h"
#include "host_tiles.h"

/* What a tile needs: the operands, and out: the result, or a partial sum a tile. */
struct vectors {
    const void *alpha, *beta, *x, *y;
    void *out;
    int64_t n;
};

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
    struct vectors v = {.x = a, .y = b, .out = out, .n = n};
    tiles_each(ctx, tiles_of(n), type == SPMV_F32 ? divide_f32 : divide_f64, &v);
    return SPMV_OK;
}

spmv_status map_axpby_omp(spmv_context *ctx, spmv_type type, const void *alpha, const void *x, const void *beta,
                          void *y, int64_t n)
{
    struct vectors v = {.alpha = alpha, .beta = beta, .x = x, .out = y, .n = n};
    tiles_each(ctx, tiles_of(n), type == SPMV_F32 ? axpby_f32 : axpby_f64, &v);
    return SPMV_OK;
}

int64_t dot_scratch_omp(const spmv_context *ctx, spmv_type type, int64_t n)
{
    (void)ctx;
    return tiles_of(n) * (int64_t)spmv_type_size(type);
}

spmv_status dot_omp(spmv_context *ctx, spmv_type type, const void *x, const void *y, void *out, int64_t n,
                    void *scratch)
{
    struct vectors v = {.x = x, .y = y, .out = scratch, .n = n};
    tiles_each(ctx, tiles_of(n), type == SPMV_F32 ? dot_f32 : dot_f64, &v);
    if (type == SPMV_F32)
        sum_up_f32(scratch, tiles_of(n), out);
    else
        sum_up_f64(scratch, tiles_of(n), out);
    return SPMV_OK;
}

/* divide, axpby, dot on OpenMP. Maps: one loop over the tiles. dot: tiles that depend only on n;
 * their sums are added in tile order.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "core/backend.h"
#include "core/loops/host_tiles.h"
#include "core/loops/ops.h"

/* The operands of a tile, and out: the result, or one partial sum per tile. */
struct vectors {
    const void *alpha, *beta, *x, *y;
    void *out;
    int64_t n;
};

#define TEMPLATE "primitives/blas1/blas1_omp_typed.h"
#include "core/each/each_real.h"

/* The functions of a type. */
static const struct real_loops {
    void (*divide)(void *state, int64_t tile);
    void (*axpby)(void *state, int64_t tile);
    void (*dot)(void *state, int64_t tile);
    void (*sum_up)(const void *sums, int64_t n, void *out);
} loops[SPMV_TYPE_LIMIT] = {
#define ROW(NAME, name, T) [SPMV_##NAME] = {divide_##name, axpby_##name, dot_##name, sum_up_##name},
    REAL_LIST(ROW)
#undef ROW
};

spmv_status map_divide_omp(spmv_context *ctx, spmv_type type, const void *a, const void *b, void *out, int64_t n)
{
    struct vectors v = {.x = a, .y = b, .out = out, .n = n};
    tiles_each(ctx, tiles_of(n), loops[type].divide, &v);
    return SPMV_OK;
}

spmv_status map_axpby_omp(spmv_context *ctx, spmv_type type, const void *alpha, const void *x, const void *beta,
                          void *y, int64_t n)
{
    struct vectors v = {.alpha = alpha, .beta = beta, .x = x, .out = y, .n = n};
    tiles_each(ctx, tiles_of(n), loops[type].axpby, &v);
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
    tiles_each(ctx, tiles_of(n), loops[type].dot, &v);
    loops[type].sum_up(scratch, tiles_of(n), out);
    return SPMV_OK;
}

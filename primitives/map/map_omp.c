/* map on OpenMP: elements do not depend on one another, so each thread runs the loop over tiles of its own.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "backend.h"
#include "host_tiles.h"
#include "map_loops.h"

/* The loop over tiles that every form shares: body sees the tile's first element i and its length count. */
#define FOR_TILES(...)                                                                                                 \
    const int64_t tiles = ceil_divide(n, HOST_TILE);                                                                   \
    _Pragma("omp parallel for schedule(static) num_threads(ctx->threads) if (n >= HOST_PARALLEL)") for (int64_t t = 0; \
                                                                                                        t < tiles;     \
                                                                                                        t++)           \
    {                                                                                                                  \
        const int64_t i = t * HOST_TILE, count = min_i64(HOST_TILE, n - i);                                            \
        __VA_ARGS__;                                                                                                   \
    }                                                                                                                  \
    return SPMV_OK

spmv_status map_omp(spmv_context *ctx, spmv_function function, spmv_type type, const void *in, void *out, int64_t n)
{
    const size_t size = spmv_type_size(type);
    FOR_TILES(map_loop(function, type, element(in, size, i), element_out(out, size, i), count));
}

spmv_status map_binary_omp(spmv_context *ctx, spmv_op op, spmv_type type, const void *a, const void *b, void *out,
                           int64_t n)
{
    const size_t size = spmv_type_size(type);
    FOR_TILES(map_binary_loop(op, type, element(a, size, i), element(b, size, i), element_out(out, size, i), count));
}

spmv_status map_scalar_omp(spmv_context *ctx, spmv_op op, spmv_type type, const void *host_scalar, const void *in,
                           void *out, int64_t n)
{
    const size_t size = spmv_type_size(type);
    FOR_TILES(map_scalar_loop(op, type, host_scalar, element(in, size, i), element_out(out, size, i), count));
}

spmv_status map_index_omp(spmv_context *ctx, spmv_type type, const void *host_first, const void *host_step, void *out,
                          int64_t n)
{
    const size_t size = spmv_type_size(type);
    FOR_TILES(map_index_loop(type, host_first, host_step, element_out(out, size, i), i, count));
}

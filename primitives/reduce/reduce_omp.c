/* reduce on OpenMP: the fold of each tile, then the fold of those. Tiles are fixed by n, so the bits are the same for
 * any number of threads.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "backend.h"
#include "host_tiles.h"
#include "loops.h"

int64_t reduce_scratch_omp(const spmv_context *ctx, spmv_type type, int64_t n)
{
    (void)ctx;
    return ceil_divide(n, HOST_TILE) * (int64_t)spmv_type_size(type);
}

spmv_status reduce_omp(spmv_context *ctx, spmv_op op, spmv_type type, const void *in, void *out, int64_t n,
                       void *scratch)
{
    const struct op_loops *loops = op_loops(op, type);
    const int64_t tiles = ceil_divide(n, HOST_TILE);
#pragma omp parallel for schedule(static) num_threads(ctx->threads) if (n >= HOST_PARALLEL)
    for (int64_t t = 0; t < tiles; t++)
        loops->fold(element(in, loops->size, t * HOST_TILE), min_i64(HOST_TILE, n - t * HOST_TILE),
                    element_out(scratch, loops->size, t));
    loops->fold(scratch, tiles, out);
    return SPMV_OK;
}

/* scatter on OpenMP: elements do not depend on one another; each thread runs the loop over tiles of the index.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "backend.h"
#include "host_tiles.h"
#include "scatter_loops.h"

spmv_status scatter_omp(spmv_context *ctx, spmv_type type, const void *in, const void *index, int index_bits, void *out,
                        int64_t out_n, int64_t n)
{
    const scatter_loop loop = scatter_loop_for(type, index_bits);
    const int64_t tiles = ceil_divide(n, HOST_TILE);
#pragma omp parallel for schedule(static) num_threads(ctx->threads) if (n >= HOST_PARALLEL)
    for (int64_t t = 0; t < tiles; t++) {
        const int64_t from = t * HOST_TILE, to = min_i64(n, from + HOST_TILE);
        loop(in, index, out, out_n, from, to);
    }
    return SPMV_OK;
}

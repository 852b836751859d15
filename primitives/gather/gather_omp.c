/* gather on OpenMP: elements do not depend on one another; each thread runs the loop over tiles of the index.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "backend.h"
#include "gather_loops.h"
#include "host_tiles.h"

spmv_status gather_omp(spmv_context *ctx, spmv_type type, const void *in, int64_t in_n, const void *index,
                       int index_bits, void *out, int64_t n)
{
    const gather_loop loop = gather_loop_for(type, index_bits);
    const int64_t tiles = ceil_divide(n, HOST_TILE);
#pragma omp parallel for schedule(static) num_threads(ctx->threads) if (n >= HOST_PARALLEL)
    for (int64_t t = 0; t < tiles; t++) {
        const int64_t from = t * HOST_TILE, to = min_i64(n, from + HOST_TILE);
        loop(in, in_n, index, out, from, to);
    }
    return SPMV_OK;
}

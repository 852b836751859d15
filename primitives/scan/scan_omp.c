/* scan on OpenMP, reduce-then-scan: the fold of each tile, an inclusive scan of the folds, then each tile with what
 * stands to its left. 2 reads and 1 write an element. Tiles are fixed by n: the bits are the same for any number of
 * threads.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "backend.h"
#include "host_tiles.h"
#include "loops.h"

int64_t scan_scratch_omp(const spmv_context *ctx, spmv_type type, int64_t n)
{
    (void)ctx;
    return ceil_divide(n, HOST_TILE) * (int64_t)spmv_type_size(type);
}

spmv_status scan_omp(spmv_context *ctx, spmv_scan_kind kind, spmv_op op, spmv_type type, const void *in, void *out,
                     int64_t n, void *scratch)
{
    const struct op_loops *loops = op_loops(op, type);
    const size_t size = loops->size;
    const int64_t tiles = ceil_divide(n, HOST_TILE);
#pragma omp parallel for schedule(static) num_threads(ctx->threads) if (n >= HOST_PARALLEL)
    for (int64_t t = 0; t < tiles - 1; t++)
        loops->fold(element(in, size, t * HOST_TILE), HOST_TILE, element_out(scratch, size, t));
    if (tiles > 1)
        loops->scan(SPMV_INCLUSIVE, NULL, scratch, scratch, tiles - 1);
#pragma omp parallel for schedule(static) num_threads(ctx->threads) if (n >= HOST_PARALLEL)
    for (int64_t t = 0; t < tiles; t++)
        loops->scan(kind, t > 0 ? element(scratch, size, t - 1) : NULL, element(in, size, t * HOST_TILE),
                    element_out(out, size, t * HOST_TILE), min_i64(HOST_TILE, n - t * HOST_TILE));
    return SPMV_OK;
}

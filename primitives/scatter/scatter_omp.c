/* scatter on OpenMP: the loop over each tile of the index. No index occurs twice, so threads never
 * write the same cell.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "primitives/gather/moves.h"

spmv_status scatter_omp(spmv_context *ctx, const struct move *move)
{
    move_in_tiles(ctx, move, scatter_range);
    return SPMV_OK;
}

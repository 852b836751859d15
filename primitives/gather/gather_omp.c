/* gather on OpenMP: the loop over each tile of the index.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "primitives/gather/moves.h"

spmv_status gather_omp(spmv_context *ctx, const struct move *move)
{
    move_in_tiles(ctx, move, gather_range);
    return SPMV_OK;
}

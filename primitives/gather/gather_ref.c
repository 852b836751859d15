/* gather, the definition: the loop over the whole index.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "primitives/gather/moves.h"

spmv_status gather_ref(spmv_context *ctx, const struct move *move)
{
    (void)ctx;
    move_serially(move, gather_range);
    return SPMV_OK;
}

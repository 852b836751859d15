/* gather: the public fronts.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "primitives/gather/moves.h"

spmv_status spmv_gather(spmv_context *ctx, spmv_type type, const void *in, int64_t in_n, const void *index,
                        int index_bits, void *out, int64_t n)
{
    const struct move move = {NULL, type, in, index, index_bits, out, in_n, n};
    return move_all(ctx, "spmv_gather", MOVE_GATHER, move);
}

spmv_status spmv_gather_masked(spmv_context *ctx, spmv_type type, const void *in, int64_t in_n, const void *index,
                               int index_bits, const uint8_t *mask, void *out, int64_t n)
{
    const struct move move = {NULL, type, in, index, index_bits, out, in_n, n};
    return move_masked(ctx, "spmv_gather_masked", MOVE_GATHER, move, mask);
}

spmv_status spmv_gather_if(spmv_context *ctx, spmv_predicate predicate, int when, spmv_type type,
                           const void *host_scalar, const void *in, int64_t in_n, const void *index, int index_bits,
                           void *out, int64_t n)
{
    const struct move move = {NULL, type, in, index, index_bits, out, in_n, n};
    return move_if(ctx, "spmv_gather_if", MOVE_GATHER, move, predicate, when, host_scalar);
}

/* scatter: the public fronts.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "primitives/gather/moves.h"

spmv_status spmv_scatter(spmv_context *ctx, spmv_type type, const void *in, const void *index, int index_bits,
                         void *out, int64_t out_n, int64_t n)
{
    const struct move move = {NULL, type, in, index, index_bits, out, out_n, n};
    return move_all(ctx, "spmv_scatter", MOVE_SCATTER, move);
}

spmv_status spmv_scatter_masked(spmv_context *ctx, spmv_type type, const void *in, const void *index, int index_bits,
                                const uint8_t *mask, void *out, int64_t out_n, int64_t n)
{
    const struct move move = {NULL, type, in, index, index_bits, out, out_n, n};
    return move_masked(ctx, "spmv_scatter_masked", MOVE_SCATTER, move, mask);
}

spmv_status spmv_scatter_if(spmv_context *ctx, spmv_predicate predicate, int when, spmv_type type,
                            const void *host_scalar, const void *in, const void *index, int index_bits, void *out,
                            int64_t out_n, int64_t n)
{
    const struct move move = {NULL, type, in, index, index_bits, out, out_n, n};
    return move_if(ctx, "spmv_scatter_if", MOVE_SCATTER, move, predicate, when, host_scalar);
}

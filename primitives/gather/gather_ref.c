/* gather, the definition: the loop from end to end.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "backend.h"
#include "moves.h"

spmv_status gather_filtered_ref(spmv_context *ctx, const struct filter *filter, spmv_type type, const void *in,
                                int64_t in_n, const void *index, int index_bits, void *out, int64_t n)
{
    const struct move move = {filter, type, in, index, index_bits, out, in_n, n};
    (void)ctx;
    move_serially(&move, gather_part);
    return SPMV_OK;
}

spmv_status gather_ref(spmv_context *ctx, spmv_type type, const void *in, int64_t in_n, const void *index,
                       int index_bits, void *out, int64_t n)
{
    return gather_filtered_ref(ctx, NULL, type, in, in_n, index, index_bits, out, n);
}

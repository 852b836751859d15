/* scatter, the definition: the loop from end to end.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "backend.h"
#include "moves.h"

spmv_status scatter_filtered_ref(spmv_context *ctx, const struct filter *filter, spmv_type type, const void *in,
                                 const void *index, int index_bits, void *out, int64_t out_n, int64_t n)
{
    const struct move move = {filter, type, in, index, index_bits, out, out_n, n};
    (void)ctx;
    move_serially(&move, scatter_part);
    return SPMV_OK;
}

spmv_status scatter_ref(spmv_context *ctx, spmv_type type, const void *in, const void *index, int index_bits, void *out,
                        int64_t out_n, int64_t n)
{
    return scatter_filtered_ref(ctx, NULL, type, in, index, index_bits, out, out_n, n);
}

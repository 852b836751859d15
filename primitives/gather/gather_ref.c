/* gather, the definition: the loop from end to end.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "backend.h"
#include "gather_loops.h"

spmv_status gather_ref(spmv_context *ctx, spmv_type type, const void *in, int64_t in_n, const void *index,
                       int index_bits, void *out, int64_t n)
{

    (void)ctx;
    gather_loop_for(type, index_bits)(in, in_n, index, out, 0, n);
    return SPMV_OK;
}

spmv_status gather_filtered_ref(spmv_context *ctx, const struct filter *filter, spmv_type type, const void *in,
                                int64_t in_n, const void *index, int index_bits, void *out, int64_t n)
{
    (void)ctx;
    gather_filtered_part(filter, type, in, in_n, index, index_bits, out, 0, n);
    return SPMV_OK;
}

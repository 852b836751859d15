/* scatter, the definition: the loop from end to end.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "backend.h"
#include "host_tiles.h"
#include "scatter_loops.h"

spmv_status scatter_ref(spmv_context *ctx, spmv_type type, const void *in, const void *index, int index_bits, void *out,
                        int64_t out_n, int64_t n)
{

    (void)ctx;
    scatter_loop_for(type, index_bits)(in, index, out, out_n, 0, n);
    return SPMV_OK;
}

spmv_status scatter_filtered_ref(spmv_context *ctx, const struct filter *filter, spmv_type type, const void *in,
                                 const void *index, int index_bits, void *out, int64_t out_n, int64_t n)
{
    (void)ctx;
    for (int64_t t = 0; t < tiles_of(n); t++) {
        const struct range r = tile_range(t, n);
        scatter_filtered_part(filter, type, in, index, index_bits, out, out_n, r.begin, r.end);
    }
    return SPMV_OK;
}

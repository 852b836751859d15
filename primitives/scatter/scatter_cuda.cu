/* scatter on CUDA: the rungs for every size of element and index; with a predicate, for every type.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "moves.cuh"
#include "scatter_1_direct.cuh"

extern "C" spmv_status scatter_filtered_cuda(spmv_context *ctx, const struct filter *filter, spmv_type of,
                                             const void *in, const void *index, int index_bits, void *out,
                                             int64_t out_n, int64_t n)
{
    return on_device(ctx, [=] {
        return with_filter(ctx, "scatter", filter, of, [=](auto take) {
            return scatter_1_launch(ctx, take, in, index, index_bits, out, out_n, n);
        });
    });
}

extern "C" spmv_status scatter_cuda(spmv_context *ctx, spmv_type of, const void *in, const void *index, int index_bits,
                                    void *out, int64_t out_n, int64_t n)
{
    return scatter_filtered_cuda(ctx, NULL, of, in, index, index_bits, out, out_n, n);
}

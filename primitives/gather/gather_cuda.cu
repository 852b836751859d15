/* gather on CUDA: the rungs for every size of element and index; with a predicate, for every type.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "gather_1_direct.cuh"
#include "moves.cuh"

extern "C" spmv_status gather_filtered_cuda(spmv_context *ctx, const struct filter *filter, spmv_type of,
                                            const void *in, int64_t in_n, const void *index, int index_bits, void *out,
                                            int64_t n)
{
    return on_device(ctx, [=] {
        return with_filter(ctx, "gather", filter, of,
                           [=](auto take) { return gather_1_launch(ctx, take, in, in_n, index, index_bits, out, n); });
    });
}

extern "C" spmv_status gather_cuda(spmv_context *ctx, spmv_type of, const void *in, int64_t in_n, const void *index,
                                   int index_bits, void *out, int64_t n)
{
    return gather_filtered_cuda(ctx, NULL, of, in, in_n, index, index_bits, out, n);
}

/* scatter on CUDA: the rungs for every size of element and index.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "scatter_1_direct.cuh"

template <typename Element>
static spmv_status dispatch_index(spmv_context *ctx, const void *in, const void *index, int index_bits, void *out,
                                  int64_t out_n, int64_t n)
{
    return index_bits == 32 ? scatter_1_launch<Element, int32_t>(ctx, in, index, out, out_n, n)
                            : scatter_1_launch<Element, int64_t>(ctx, in, index, out, out_n, n);
}

extern "C" spmv_status scatter_cuda(spmv_context *ctx, spmv_type of, const void *in, const void *index, int index_bits,
                                    void *out, int64_t out_n, int64_t n)
{
    return on_device(ctx, [=] {
        switch (spmv_type_size(of)) {
        case 4:
            return dispatch_index<uint32_t>(ctx, in, index, index_bits, out, out_n, n);
        case 8:
            return dispatch_index<uint64_t>(ctx, in, index, index_bits, out, out_n, n);
        case 16:
            return dispatch_index<words<2>>(ctx, in, index, index_bits, out, out_n, n);
        case 32:
            return dispatch_index<words<4>>(ctx, in, index, index_bits, out, out_n, n);
        default:
            return context_fail(ctx, SPMV_ERROR_TYPE, "scatter: no kernel for type %s", spmv_type_name(of));
        }
    });
}

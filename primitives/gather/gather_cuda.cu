/* gather on CUDA: the rungs for every size of element and index.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "gather_1_direct.cuh"

template <typename Element>
static spmv_status dispatch_index(spmv_context *ctx, const void *in, int64_t in_n, const void *index, int index_bits,
                                  void *out, int64_t n)
{
    return index_bits == 32 ? gather_1_launch<Element, int32_t>(ctx, in, in_n, index, out, n)
                            : gather_1_launch<Element, int64_t>(ctx, in, in_n, index, out, n);
}

extern "C" spmv_status gather_cuda(spmv_context *ctx, spmv_type of, const void *in, int64_t in_n, const void *index,
                                   int index_bits, void *out, int64_t n)
{
    return on_device(ctx, [=] {
        switch (spmv_type_size(of)) {
        case 4:
            return dispatch_index<uint32_t>(ctx, in, in_n, index, index_bits, out, n);
        case 8:
            return dispatch_index<uint64_t>(ctx, in, in_n, index, index_bits, out, n);
        case 16:
            return dispatch_index<words<2>>(ctx, in, in_n, index, index_bits, out, n);
        case 32:
            return dispatch_index<words<4>>(ctx, in, in_n, index, index_bits, out, n);
        default:
            return context_fail(ctx, SPMV_ERROR_TYPE, "gather: no kernel for type %s", spmv_type_name(of));
        }
    });
}

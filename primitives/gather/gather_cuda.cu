/* gather on CUDA: the rungs for every size of element and index; with a predicate, for every type.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "gather_1_direct.cuh"

static spmv_status no_kernel(spmv_context *ctx, spmv_type of)
{
    return context_fail(ctx, SPMV_ERROR_TYPE, "gather: no kernel for type %s", spmv_type_name(of));
}

extern "C" spmv_status gather_cuda(spmv_context *ctx, spmv_type of, const void *in, int64_t in_n, const void *index,
                                   int index_bits, void *out, int64_t n)
{
    return on_device(ctx, [=] {
        switch (spmv_type_size(of)) {
        case 4:
            return gather_1_launch(ctx, take_all<uint32_t>{}, in, in_n, index, index_bits, out, n);
        case 8:
            return gather_1_launch(ctx, take_all<uint64_t>{}, in, in_n, index, index_bits, out, n);
        case 16:
            return gather_1_launch(ctx, take_all<words<2>>{}, in, in_n, index, index_bits, out, n);
        case 32:
            return gather_1_launch(ctx, take_all<words<4>>{}, in, in_n, index, index_bits, out, n);
        default:
            return no_kernel(ctx, of);
        }
    });
}

static spmv_status dispatch_masked(spmv_context *ctx, const uint8_t *mask, spmv_type of, const void *in, int64_t in_n,
                                   const void *index, int index_bits, void *out, int64_t n)
{
    switch (spmv_type_size(of)) {
    case 4:
        return gather_1_launch(ctx, take_masked<uint32_t>{mask}, in, in_n, index, index_bits, out, n);
    case 8:
        return gather_1_launch(ctx, take_masked<uint64_t>{mask}, in, in_n, index, index_bits, out, n);
    case 16:
        return gather_1_launch(ctx, take_masked<words<2>>{mask}, in, in_n, index, index_bits, out, n);
    case 32:
        return gather_1_launch(ctx, take_masked<words<4>>{mask}, in, in_n, index, index_bits, out, n);
    default:
        return no_kernel(ctx, of);
    }
}

static spmv_status dispatch_if(spmv_context *ctx, const struct filter *filter, spmv_type of, const void *in,
                               int64_t in_n, const void *index, int index_bits, void *out, int64_t n)
{
    switch (of) {
#define CASE(TYPE, type, value, T, D, CLASS, ARG)                                                                      \
    case SPMV_##TYPE:                                                                                                  \
        return gather_1_launch(ctx, take_if<D>{predicate_by<D>(filter)}, in, in_n, index, index_bits, out, n);
        SPMV_NUMBER_LIST(CASE, )
#undef CASE
    default:
        return no_kernel(ctx, of);
    }
}

extern "C" spmv_status gather_filtered_cuda(spmv_context *ctx, const struct filter *filter, spmv_type of,
                                            const void *in, int64_t in_n, const void *index, int index_bits, void *out,
                                            int64_t n)
{
    return on_device(ctx, [=] {
        return filter->mask != NULL ? dispatch_masked(ctx, filter->mask, of, in, in_n, index, index_bits, out, n)
                                    : dispatch_if(ctx, filter, of, in, in_n, index, index_bits, out, n);
    });
}

/* sort on CUDA: the rungs for every size of keys and values.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "sort_1_split.cuh"
#include "sort_2_radix.cuh"

static int64_t split_scratch(const sort_request *r)
{
    return sort_1_scratch(r);
}

static spmv_status split(spmv_context *ctx, const sort_request *r, void *scratch)
{
    return on_device(ctx, [=] {
        return with_types(
            r, [=](auto key, auto value) { return sort_1_launch<decltype(key), decltype(value)>(ctx, r, scratch); });
    });
}

static int64_t radix_scratch(const sort_request *r)
{
    return sort_2_scratch(r);
}

static spmv_status radix(spmv_context *ctx, const sort_request *r, void *scratch)
{
    return on_device(ctx, [=] {
        return with_types(
            r, [=](auto key, auto value) { return sort_2_launch<decltype(key), decltype(value)>(ctx, r, scratch); });
    });
}

extern "C" const sort_rung sort_rungs_cuda[] = {
    {"split", 1, split_scratch, split}, {"radix", RADIX_BITS, radix_scratch, radix}, {NULL, 0, NULL, NULL}};

/* sort on CUDA: the rungs for every size of keys and values.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "primitives/sort/sort_1_split.cuh"
#include "primitives/sort/sort_3_onesweep.cuh"

template <typename Body> static spmv_status launch_with_types(spmv_context *ctx, const sort_request *r, Body body)
{
    return on_device(ctx, [=] { return with_types(r, body); });
}

static spmv_status split(spmv_context *ctx, const sort_request *r, void *scratch)
{
    return launch_with_types(
        ctx, r, [=](auto key, auto value) { return sort_1_launch<decltype(key), decltype(value)>(ctx, r, scratch); });
}

static spmv_status radix(spmv_context *ctx, const sort_request *r, void *scratch)
{
    return launch_with_types(
        ctx, r, [=](auto key, auto value) { return sort_2_launch<decltype(key), decltype(value)>(ctx, r, scratch); });
}

static int64_t onesweep_scratch(const sort_request *r)
{
    int64_t bytes = 0;
    with_types(r, [&](auto key, auto value) {
        bytes = sort_3_scratch<decltype(key), decltype(value)>(r);
        return SPMV_OK;
    });
    return bytes;
}

static spmv_status onesweep_run(spmv_context *ctx, const sort_request *r, void *scratch)
{
    return launch_with_types(
        ctx, r, [=](auto key, auto value) { return sort_3_launch<decltype(key), decltype(value)>(ctx, r, scratch); });
}

extern "C" const sort_rung sort_rungs_cuda[] = {{"split", 1, sort_1_scratch, split},
                                                {"radix", RADIX_BITS, sort_2_scratch, radix},
                                                {"onesweep", RADIX_BITS, onesweep_scratch, onesweep_run},
                                                {NULL, 0, NULL, NULL}};

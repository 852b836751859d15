/* histogram on CUDA: the rungs for both widths of counts.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "primitives/histogram/histogram_2_private.cuh"

extern "C" {
#include "primitives/histogram/histogram_request.h"
}

static int64_t no_scratch(const histogram_request *)
{
    return 0;
}

/* body(zero), with a 0 of the type of the counts */
template <typename Body> static spmv_status with_counts(spmv_context *ctx, const histogram_request *r, Body body)
{
    return on_device(ctx, [=] { return r->count_bits == 32 ? body(0u) : body(0ull); });
}

static spmv_status atomic(spmv_context *ctx, const histogram_request *r, void *)
{
    return with_counts(ctx, r, [=](auto zero) {
        using Count = decltype(zero);
        return histogram_1_launch<Count>(ctx, r->index, (Count *)r->counts, r->bins, (Count *)r->left_out, r->n);
    });
}

static spmv_status privatised(spmv_context *ctx, const histogram_request *r, void *)
{
    return with_counts(ctx, r, [=](auto zero) {
        using Count = decltype(zero);
        return histogram_2_launch<Count>(ctx, r->index, (Count *)r->counts, r->bins, (Count *)r->left_out, r->n);
    });
}

extern "C" const histogram_rung histogram_rungs_cuda[] = {
    {"atomic", no_scratch, atomic}, {"private", no_scratch, privatised}, {NULL, NULL, NULL}};

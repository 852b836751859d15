/* histogram on CUDA: the rungs for both widths of counts.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "histogram_2_private.cuh"

extern "C" {
#include "histogram_request.h"
}

static int64_t no_scratch(const histogram_request *)
{
    return 0;
}

static spmv_status atomic(spmv_context *ctx, const histogram_request *r, void *)
{
    using wide = unsigned long long;
    return on_device(ctx, [=] {
        return r->count_bits == 32
                   ? histogram_1_launch<unsigned>(ctx, r->index, (unsigned *)r->counts, r->bins,
                                                  (unsigned *)r->left_out, r->n)
                   : histogram_1_launch<wide>(ctx, r->index, (wide *)r->counts, r->bins, (wide *)r->left_out, r->n);
    });
}

static spmv_status privatised(spmv_context *ctx, const histogram_request *r, void *)
{
    using wide = unsigned long long;
    return on_device(ctx, [=] {
        return r->count_bits == 32
                   ? histogram_2_launch<unsigned>(ctx, r->index, (unsigned *)r->counts, r->bins,
                                                  (unsigned *)r->left_out, r->n)
                   : histogram_2_launch<wide>(ctx, r->index, (wide *)r->counts, r->bins, (wide *)r->left_out, r->n);
    });
}

extern "C" const histogram_rung histogram_rungs_cuda[] = {
    {"atomic", no_scratch, atomic}, {"private", no_scratch, privatised}, {NULL, NULL, NULL}};

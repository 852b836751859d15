/* The rungs of scan by name on CUDA: the teaching rungs as kernels, and the tuned rungs of
 * scan_cuda.cu.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "primitives/scan/scan_ladder.cuh"

static int64_t tuned_scratch(const spmv_context *ctx, const scan_request *r)
{
    return scan_scratch_cuda(ctx, r->type, r->n);
}

static spmv_status run_single_pass(spmv_context *ctx, const scan_request *r)
{
    return scan_cuda(ctx, r->kind, r->op, r->type, r->in, r->out, r->n, r->scratch);
}

static spmv_status run_look_back(spmv_context *ctx, const scan_request *r)
{
    return scan_look_back_cuda(ctx, r->kind, r->op, r->type, r->in, r->out, r->n, r->scratch);
}

static spmv_status run_chunks(spmv_context *ctx, const scan_request *r)
{
    return scan_chunks_cuda(ctx, r->kind, r->op, r->type, r->in, r->out, r->n, r->scratch);
}

static const struct scan_rung rungs[] = {
    SCAN_LADDER_ROWS(scan_ladder, ladder_on_gpu){"reduce-scan", 0, false, 0, tuned_scratch, run_chunks},
    {"look-back", 0, false, 0, tuned_scratch, run_look_back},
    {"single-pass", 0, false, 0, tuned_scratch, run_single_pass},
    {NULL, 0, false, 0, NULL, NULL},
};

extern "C" const struct scan_rung *scan_rungs_cuda(void)
{
    return rungs;
}

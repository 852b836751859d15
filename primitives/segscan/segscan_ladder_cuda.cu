/* The rungs of segmented scan by name on CUDA: the teaching rungs as kernels, and the tuned ones.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "primitives/segscan/segscan_3_chunks.cuh"
#include "primitives/segscan/segscan_ladder.cuh"

/* "reduce-scan": scan, rung 3, on pairs with heads as bits (segscan_3_chunks.cuh). */
static int64_t chunks_scratch(const spmv_context *, const scan_request *r)
{
    return segscan_3_scratch((int64_t)spmv_type_size(r->type));
}

static spmv_status run_chunks(spmv_context *ctx, const scan_request *r)
{
    return on_device(ctx, [=] {
        return segscan_ladder_with_op(ctx, r, [=](auto op) {
            using T = typename decltype(op)::type;
            const spmv_segments segments = segments_of_request(r);
            return segscan_3_launch<decltype(op)>(ctx, load_array<T>{(const T *)r->in}, store_array<T>{(T *)r->out},
                                                  starts_of(&segments), r->n, r->kind == SPMV_EXCLUSIVE, r->scratch);
        });
    });
}

static const struct scan_rung rungs[] = {
    SCAN_LADDER_ROWS(segscan_ladder, ladder_on_gpu){"reduce-scan", 0, false, 0, chunks_scratch, run_chunks},
    {"single-pass", 0, false, 0, scratch_with_segments<segscan_scratch_cuda>, run_with_segments<segscan_cuda>},
    {NULL, 0, false, 0, NULL, NULL},
};

extern "C" const struct scan_rung *segscan_rungs_cuda(void)
{
    return rungs;
}

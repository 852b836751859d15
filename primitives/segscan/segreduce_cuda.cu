/* segmented reduce on CUDA: the rungs for every operator and type.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "segreduce_1_walk.cuh"
#include "segreduce_2_pipeline.cuh"
#include "segreduce_3_resident.cuh"

extern "C" int64_t segreduce_scratch_cuda(const spmv_context *ctx, spmv_type type, const spmv_segments *segments,
                                          int64_t n)
{
    const int64_t chunked = segreduce_1_scratch((int64_t)spmv_type_size(type));
    const int64_t tiled = segreduce_2_scratch((int64_t)spmv_type_size(type), segments->bits / 8, n + segments->count);
    return !engine_there(ctx) || chunked > tiled ? chunked : tiled;
}

/* For few elements rung 3; else rung 2 where it can run, else rung 1. */
template <typename Op>
static spmv_status best(spmv_context *ctx, load_array<typename Op::type> load, store_array<typename Op::type> store,
                        segment_closings closings, void *scratch)
{
    if (segreduce_resident_there(ctx) && segreduce_resident_fits<typename Op::type>(closings.n + closings.count))
        return segreduce_resident_launch<Op>(ctx, load, store, closings);
    return engine_there(ctx) ? segreduce_2_launch<Op>(ctx, load, store, closings, scratch)
                             : segreduce_1_launch<Op, true>(ctx, load, store, closings, scratch);
}

static spmv_status dispatch(spmv_context *ctx, spmv_op by, spmv_type of, segment_closings closings, const void *in,
                            void *out, void *scratch)
{
    switch ((int)by * SPMV_TYPE_LIMIT + (int)of) {
#define CASE(OP, op, TYPE, type, T, D, CLASS)                                                                          \
    case SPMV_##OP *SPMV_TYPE_LIMIT + SPMV_##TYPE:                                                                     \
        return best<op_##op##_##type>(ctx, load_array<D>{(const D *)in}, store_array<D>{(D *)out}, closings, scratch);
        SPMV_PAIR_LIST(CASE)
#undef CASE
    default:
        return context_fail(ctx, SPMV_ERROR_TYPE, "segmented reduce: no kernel for operator %d and type %d", (int)by,
                            (int)of);
    }
}

extern "C" spmv_status segreduce_cuda(spmv_context *ctx, spmv_op by, spmv_type of, const spmv_segments *segments,
                                      const void *in, void *out, int64_t n, void *scratch)
{
    return on_device(ctx, [=] { return dispatch(ctx, by, of, closings_of(segments, n), in, out, scratch); });
}

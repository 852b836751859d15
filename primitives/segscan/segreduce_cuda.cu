/* segmented reduce on CUDA: the rungs for every operator and type.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "device/dispatch.cuh"
#include "primitives/segscan/segreduce_1_walk.cuh"
#include "primitives/segscan/segreduce_2_pipeline.cuh"
#include "primitives/segscan/segreduce_3_resident.cuh"

extern "C" int64_t segreduce_scratch_cuda(const spmv_context *ctx, spmv_type type, const spmv_segments *segments,
                                          int64_t n)
{
    const int64_t chunked = segreduce_1_scratch((int64_t)spmv_type_size(type));
    const int64_t tiled = segreduce_2_scratch((int64_t)spmv_type_size(type), segments->bits / 8, n + segments->count);
    return !engine_there(ctx) || chunked > tiled ? chunked : tiled;
}

/* Rung 3 for few elements; else rung 2 if the device can run it, else rung 1. */
template <typename Op>
static spmv_status best(spmv_context *ctx, load_array<typename Op::type> load, store_array<typename Op::type> store,
                        segment_closings closings, void *scratch)
{
    if (segreduce_resident_there(ctx) && segreduce_resident_fits<typename Op::type>(closings.n + closings.count))
        return segreduce_resident_launch<Op>(ctx, load, store, closings);
    return engine_there(ctx) ? segreduce_2_launch<Op>(ctx, load, store, closings, scratch)
                             : segreduce_1_launch<Op, true>(ctx, load, store, closings, scratch);
}

extern "C" spmv_status segreduce_cuda(spmv_context *ctx, spmv_op by, spmv_type of, const spmv_segments *segments,
                                      const void *in, void *out, int64_t n, void *scratch)
{
    return on_device(ctx, [=] {
        return with_op(ctx, "segmented reduce", by, of, [=](auto op) {
            using T = typename decltype(op)::type;
            return best<decltype(op)>(ctx, load_array<T>{(const T *)in}, store_array<T>{(T *)out},
                                      closings_of(segments, n), scratch);
        });
    });
}

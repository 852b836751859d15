/* segmented scan on CUDA: the rungs for every operator and type.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "device/dispatch.cuh"
#include "primitives/segscan/segscan_5_lookback.cuh"
#include "primitives/segscan/segscan_6_pipeline.cuh"

extern "C" int64_t segscan_scratch_cuda(const spmv_context *ctx, spmv_type type, const spmv_segments *segments,
                                        int64_t n)
{
    (void)ctx;
    (void)segments;
    return segscan_5_scratch((int64_t)spmv_type_size(type), n);
}

/* Rung 3 if the device can run it, else rung 2. */
template <typename Op>
static spmv_status single_pass(spmv_context *ctx, load_array<typename Op::type> load,
                               store_array<typename Op::type> store, segment_starts segments, int64_t n, bool exclusive,
                               void *scratch)
{
    if (engine_there(ctx))
        return segscan_6_launch<Op>(ctx, load, store, segments, n, exclusive);
    return segscan_5_launch<Op, typename segscan_5_best::older>(ctx, load, store, segments, n, exclusive, scratch);
}

extern "C" spmv_status segscan_cuda(spmv_context *ctx, spmv_scan_kind kind, spmv_op by, spmv_type of,
                                    const spmv_segments *segments, const void *in, void *out, int64_t n, void *scratch)
{
    return on_device(ctx, [=] {
        return with_op(ctx, "segmented scan", by, of, [=](auto op) {
            using T = typename decltype(op)::type;
            return single_pass<decltype(op)>(ctx, load_array<T>{(const T *)in}, store_array<T>{(T *)out},
                                             starts_of(segments), n, kind == SPMV_EXCLUSIVE, scratch);
        });
    });
}

/* segmented scan on CUDA: the rungs for every operator and type.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "segscan_2_lookback.cuh"
#include "segscan_3_pipeline.cuh"

extern "C" int64_t segscan_scratch_cuda(const spmv_context *ctx, spmv_type type, const spmv_segments *segments,
                                        int64_t n)
{
    (void)ctx;
    (void)segments;
    return segscan_2_scratch((int64_t)spmv_type_size(type), n);
}

/* Rung 3 where it can run, else rung 2. */
template <typename Op>
static spmv_status single_pass(spmv_context *ctx, load_array<typename Op::type> load,
                               store_array<typename Op::type> store, segment_starts segments, int64_t n, bool exclusive,
                               void *scratch)
{
    if (engine_there(ctx))
        return segscan_3_launch<Op>(ctx, load, store, segments, n, exclusive);
    return segscan_2_launch<Op, typename segscan_2_best::older>(ctx, load, store, segments, n, exclusive, scratch);
}

static spmv_status dispatch(spmv_context *ctx, bool exclusive, spmv_op by, spmv_type of, segment_starts segments,
                            const void *in, void *out, int64_t n, void *scratch)
{
    switch ((int)by * SPMV_TYPE_LIMIT + (int)of) {
#define CASE(OP, op, TYPE, type, T, D, CLASS)                                                                          \
    case SPMV_##OP *SPMV_TYPE_LIMIT + SPMV_##TYPE:                                                                     \
        return single_pass<op_##op##_##type>(ctx, load_array<D>{(const D *)in}, store_array<D>{(D *)out}, segments, n, \
                                             exclusive, scratch);
        SPMV_PAIR_LIST(CASE)
#undef CASE
    default:
        return context_fail(ctx, SPMV_ERROR_TYPE, "segmented scan: no kernel for operator %d and type %d", (int)by,
                            (int)of);
    }
}

extern "C" spmv_status segscan_cuda(spmv_context *ctx, spmv_scan_kind kind, spmv_op by, spmv_type of,
                                    const spmv_segments *segments, const void *in, void *out, int64_t n, void *scratch)
{
    return on_device(
        ctx, [=] { return dispatch(ctx, kind == SPMV_EXCLUSIVE, by, of, starts_of(segments), in, out, n, scratch); });
}

/* segmented scan on CUDA: the rungs for every operator and type.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "segscan_2_lookback.cuh"

extern "C" int64_t segscan_scratch_cuda(const spmv_context *ctx, spmv_type type, const spmv_segments *segments,
                                        int64_t n)
{
    (void)ctx;
    (void)segments;
    return segscan_2_scratch((int64_t)spmv_type_size(type), n);
}

static spmv_status dispatch(spmv_context *ctx, bool exclusive, spmv_op by, spmv_type of, segment_starts segments,
                            const void *in, void *out, int64_t n, void *scratch)
{
    switch ((int)by * SPMV_TYPE_LIMIT + (int)of) {
#define CASE(OP, op, TYPE, type, T, D, CLASS)                                                                          \
    case SPMV_##OP *SPMV_TYPE_LIMIT + SPMV_##TYPE:                                                                     \
        return segscan_2_launch<op_##op##_##type>(ctx, load_array<D>{(const D *)in}, store_array<D>{(D *)out},         \
                                                  segments, n, exclusive, scratch);
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

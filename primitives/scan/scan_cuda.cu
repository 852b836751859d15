/* scan on CUDA: the rungs for every operator and type.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "scan_5_lookback.cuh"

extern "C" int64_t scan_scratch_cuda(const spmv_context *ctx, spmv_type type, int64_t n)
{
    (void)ctx;
    return scan_5_scratch((int64_t)spmv_type_size(type), n);
}

static spmv_status dispatch(spmv_context *ctx, bool exclusive, spmv_op by, spmv_type of, const void *in, void *out,
                            int64_t n, void *scratch)
{
    switch ((int)by * SPMV_TYPE_LIMIT + (int)of) {
#define CASE(OP, op, TYPE, type, T, D, CLASS)                                                                          \
    case SPMV_##OP *SPMV_TYPE_LIMIT + SPMV_##TYPE:                                                                     \
        return scan_5_launch<op_##op##_##type>(ctx, load_array<D>{(const D *)in}, store_array<D>{(D *)out}, n,         \
                                               exclusive, scratch);
        SPMV_PAIR_LIST(CASE)
#undef CASE
    default:
        return context_fail(ctx, SPMV_ERROR_TYPE, "scan: no kernel for operator %d and type %d", (int)by, (int)of);
    }
}

extern "C" spmv_status scan_cuda(spmv_context *ctx, spmv_scan_kind kind, spmv_op by, spmv_type of, const void *in,
                                 void *out, int64_t n, void *scratch)
{
    return on_device(ctx, [=] { return dispatch(ctx, kind == SPMV_EXCLUSIVE, by, of, in, out, n, scratch); });
}

/* scan on CUDA: the tuned rungs for every operator and type. The teaching rungs are in scan_ladder_cuda.cu.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "scan_3_chunks.cuh"
#include "scan_ladder.h"

extern "C" int64_t scan_scratch_cuda(const spmv_context *ctx, spmv_type type, int64_t n)
{
    (void)ctx;
    (void)n;
    return SCAN_3_SCRATCH_ELEMENTS * (int64_t)spmv_type_size(type);
}

static spmv_status dispatch(spmv_context *ctx, bool exclusive, spmv_op by, spmv_type of, const void *in, void *out,
                            int64_t n, void *scratch)
{
    switch ((int)by * SPMV_TYPE_LIMIT + (int)of) {
#define CASE(OP, op, TYPE, type, T, D, CLASS)                                                                          \
    case SPMV_##OP *SPMV_TYPE_LIMIT + SPMV_##TYPE:                                                                     \
        return scan_3_launch<op_##op##_##type>(ctx, load_array<D>{(const D *)in}, store_array<D>{(D *)out}, n,         \
                                               exclusive, scratch);
        SPMV_PAIR_LIST(CASE)
#undef CASE
    default:
        return context_fail(ctx, SPMV_ERROR_TYPE, "scan: no kernel for operator %d and type %d", (int)by, (int)of);
    }
}

/* Rung 3 by its name. */
extern "C" spmv_status scan_chunks_cuda(spmv_context *ctx, spmv_scan_kind kind, spmv_op by, spmv_type of,
                                        const void *in, void *out, int64_t n, void *scratch)
{
    return on_device(ctx, [=] { return dispatch(ctx, kind == SPMV_EXCLUSIVE, by, of, in, out, n, scratch); });
}

extern "C" spmv_status scan_cuda(spmv_context *ctx, spmv_scan_kind kind, spmv_op by, spmv_type of, const void *in,
                                 void *out, int64_t n, void *scratch)
{
    return scan_chunks_cuda(ctx, kind, by, of, in, out, n, scratch);
}

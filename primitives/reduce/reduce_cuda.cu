/* reduce on CUDA: the default rung for every operator and type, and the list of all rungs.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "reduce_6_packs.cuh"

extern "C" {
#include "reduce_ladder.h"
}

extern "C" int64_t reduce_scratch_cuda(const spmv_context *ctx, spmv_type type, int64_t n)
{
    (void)ctx;
    (void)n;
    return reduce_6_scratch_elements * (int64_t)spmv_type_size(type);
}

static spmv_status dispatch(spmv_context *ctx, spmv_op by, spmv_type of, const void *in, void *out, int64_t n,
                            void *scratch)
{
    switch ((int)by * SPMV_TYPE_LIMIT + (int)of) {
#define CASE(OP, op, TYPE, type, T, D, CLASS)                                                                          \
    case SPMV_##OP *SPMV_TYPE_LIMIT + SPMV_##TYPE:                                                                     \
        return reduce_6_launch<op_##op##_##type>(ctx, "reduce_packs", source_array<D>{(const D *)in}, n, out, scratch);
        SPMV_PAIR_LIST(CASE)
#undef CASE
    default:
        return context_fail(ctx, SPMV_ERROR_TYPE, "reduce: no kernel for operator %d and type %d", (int)by, (int)of);
    }
}

extern "C" spmv_status reduce_cuda(spmv_context *ctx, spmv_op by, spmv_type of, const void *in, void *out, int64_t n,
                                   void *scratch)
{
    return on_device(ctx, [=] { return dispatch(ctx, by, of, in, out, n, scratch); });
}

/* reduce on CUDA: the default rung for every operator and type, and the list of all rungs.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "device/dispatch.cuh"
#include "primitives/reduce/reduce_6_packs.cuh"

extern "C" {
#include "primitives/reduce/reduce_ladder.h"
}

extern "C" int64_t reduce_scratch_cuda(const spmv_context *ctx, spmv_type type, int64_t n)
{
    (void)ctx;
    (void)n;
    return reduce_6_scratch_elements * (int64_t)spmv_type_size(type);
}

extern "C" spmv_status reduce_cuda(spmv_context *ctx, spmv_op by, spmv_type of, const void *in, void *out, int64_t n,
                                   void *scratch)
{
    return on_device(ctx, [=] {
        return with_op(ctx, "reduce", by, of, [=](auto op) {
            using T = typename decltype(op)::type;
            return reduce_6_launch<decltype(op)>(ctx, "reduce_packs", source_array<T>{(const T *)in}, n, out, scratch);
        });
    });
}

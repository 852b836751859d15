/* scan on CUDA: the tuned rungs for every operator and type. The teaching rungs are in
 * scan_ladder_cuda.cu.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "device/dispatch.cuh"
#include "primitives/scan/scan_3_chunks.cuh"
#include "primitives/scan/scan_5_lookback.cuh"
#include "primitives/scan/scan_6_pipeline.cuh"
#include "primitives/scan/scan_ladder.h"

extern "C" int64_t scan_scratch_cuda(const spmv_context *ctx, spmv_type type, int64_t n)
{
    (void)ctx;
    const int64_t chunks = SCAN_3_SCRATCH_ELEMENTS * (int64_t)spmv_type_size(type);
    const int64_t lookback = scan_5_scratch((int64_t)spmv_type_size(type), n);
    return chunks > lookback ? chunks : lookback;
}

/* Rung 6 if the device can run it, else rung 5. */
template <typename Op>
static spmv_status scan_single_pass(spmv_context *ctx, load_array<typename Op::type> load,
                                    store_array<typename Op::type> store, int64_t n, bool exclusive, void *scratch)
{
    if (engine_there(ctx))
        return scan_6_launch<Op>(ctx, load, store, no_heads(), n, exclusive);
    return scan_5_launch<Op>(ctx, load, store, n, exclusive, scratch);
}

/* launch(operator, loader, storer) for the operator and the type. */
template <typename Launch>
static spmv_status scan_arrays(spmv_context *ctx, spmv_op by, spmv_type of, const void *in, void *out, Launch launch)
{
    return on_device(ctx, [=] {
        return with_op(ctx, "scan", by, of, [=](auto op) {
            using T = typename decltype(op)::type;
            return launch(op, load_array<T>{(const T *)in}, store_array<T>{(T *)out});
        });
    });
}

/* Rung 3, for calls by name. */
extern "C" spmv_status scan_chunks_cuda(spmv_context *ctx, spmv_scan_kind kind, spmv_op by, spmv_type of,
                                        const void *in, void *out, int64_t n, void *scratch)
{
    return scan_arrays(ctx, by, of, in, out, [=](auto op, auto load, auto store) {
        return scan_3_launch<decltype(op)>(ctx, load, store, n, kind == SPMV_EXCLUSIVE, scratch);
    });
}

/* Rung 5, for calls by name. */
extern "C" spmv_status scan_look_back_cuda(spmv_context *ctx, spmv_scan_kind kind, spmv_op by, spmv_type of,
                                           const void *in, void *out, int64_t n, void *scratch)
{
    return scan_arrays(ctx, by, of, in, out, [=](auto op, auto load, auto store) {
        return scan_5_launch<decltype(op)>(ctx, load, store, n, kind == SPMV_EXCLUSIVE, scratch);
    });
}

extern "C" spmv_status scan_cuda(spmv_context *ctx, spmv_scan_kind kind, spmv_op by, spmv_type of, const void *in,
                                 void *out, int64_t n, void *scratch)
{
    return scan_arrays(ctx, by, of, in, out, [=](auto op, auto load, auto store) {
        return scan_single_pass<decltype(op)>(ctx, load, store, n, kind == SPMV_EXCLUSIVE, scratch);
    });
}

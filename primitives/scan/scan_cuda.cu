/* scan on CUDA: the tuned rungs for every operator and type. The teaching rungs are in scan_ladder_cuda.cu.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "scan_3_chunks.cuh"
#include "scan_5_lookback.cuh"
#include "scan_6_pipeline.cuh"
#include "scan_ladder.h"

extern "C" int64_t scan_scratch_cuda(const spmv_context *ctx, spmv_type type, int64_t n)
{
    (void)ctx;
    const int64_t chunks = SCAN_3_SCRATCH_ELEMENTS * (int64_t)spmv_type_size(type);
    const int64_t lookback = scan_5_scratch((int64_t)spmv_type_size(type), n);
    return chunks > lookback ? chunks : lookback;
}

/* Rung 6 where it can run, else rung 5. */
template <typename Op>
static spmv_status scan_single_pass(spmv_context *ctx, load_array<typename Op::type> load,
                                    store_array<typename Op::type> store, int64_t n, bool exclusive, void *scratch)
{
    if (engine_there(ctx))
        return scan_6_launch<Op>(ctx, load, store, no_heads(), n, exclusive);
    return scan_5_launch<Op>(ctx, load, store, n, exclusive, scratch);
}

/* A rung's launch for every pair. */
#define DISPATCH(name, rung_launch)                                                                                    \
    static spmv_status name(spmv_context *ctx, bool exclusive, spmv_op by, spmv_type of, const void *in, void *out,    \
                            int64_t n, void *scratch)                                                                  \
    {                                                                                                                  \
        switch ((int)by * SPMV_TYPE_LIMIT + (int)of) {                                                                 \
            SPMV_PAIR_LIST(CASE_##rung_launch)                                                                         \
        default:                                                                                                       \
            return context_fail(ctx, SPMV_ERROR_TYPE, "scan: no kernel for operator %d and type %d", (int)by,          \
                                (int)of);                                                                              \
        }                                                                                                              \
    }
#define CASE(rung_launch, OP, op, TYPE, type, D)                                                                       \
    case SPMV_##OP *SPMV_TYPE_LIMIT + SPMV_##TYPE:                                                                     \
        return rung_launch<op_##op##_##type>(ctx, load_array<D>{(const D *)in}, store_array<D>{(D *)out}, n,           \
                                             exclusive, scratch);
#define CASE_scan_3_launch(OP, op, TYPE, type, T, D, CLASS) CASE(scan_3_launch, OP, op, TYPE, type, D)
#define CASE_scan_single_pass(OP, op, TYPE, type, T, D, CLASS) CASE(scan_single_pass, OP, op, TYPE, type, D)
DISPATCH(scan_by_chunks, scan_3_launch)
#define CASE_scan_5_launch(OP, op, TYPE, type, T, D, CLASS) CASE(scan_5_launch, OP, op, TYPE, type, D)
DISPATCH(scan_looking_back, scan_5_launch)
DISPATCH(scan_in_one_pass, scan_single_pass)

/* Rung 3 by its name. */
extern "C" spmv_status scan_chunks_cuda(spmv_context *ctx, spmv_scan_kind kind, spmv_op by, spmv_type of,
                                        const void *in, void *out, int64_t n, void *scratch)
{
    return on_device(ctx, [=] { return scan_by_chunks(ctx, kind == SPMV_EXCLUSIVE, by, of, in, out, n, scratch); });
}

/* Rung 5 by its name. */
extern "C" spmv_status scan_look_back_cuda(spmv_context *ctx, spmv_scan_kind kind, spmv_op by, spmv_type of,
                                           const void *in, void *out, int64_t n, void *scratch)
{
    return on_device(ctx, [=] { return scan_looking_back(ctx, kind == SPMV_EXCLUSIVE, by, of, in, out, n, scratch); });
}

extern "C" spmv_status scan_cuda(spmv_context *ctx, spmv_scan_kind kind, spmv_op by, spmv_type of, const void *in,
                                 void *out, int64_t n, void *scratch)
{
    return on_device(ctx, [=] { return scan_in_one_pass(ctx, kind == SPMV_EXCLUSIVE, by, of, in, out, n, scratch); });
}

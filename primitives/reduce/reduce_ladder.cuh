/* The teaching rungs of reduce for every operator and type, on a GPU or on the host.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SPMV_REDUCE_LADDER_CUH
#define SPMV_REDUCE_LADDER_CUH

#include "device/dispatch.cuh"
#include "primitives/reduce/reduce_1_tree.cuh"
#include "primitives/reduce/reduce_2_block.cuh"
#include "primitives/reduce/reduce_4_atomic.cuh"

extern "C" {
#include "primitives/reduce/reduce_ladder.h"
}

/* Partial results of any type. */
struct reduce_some_left {
    const void *sums;
    int64_t count;
};

/* Runs a rung for a pair that exists until at most `few` results are left. */
template <template <typename> class Rung, typename Place>
spmv_status reduce_on(Place &place, spmv_context *ctx, spmv_op by, spmv_type of, const void *in, void *out, int64_t n,
                      void *scratch, int64_t few, reduce_some_left *some)
{
    return with_op(ctx, "reduce", by, of, [=, &place](auto op) {
        using Op = decltype(op);
        using T = typename Op::type;
        reduce_left<T> left = {};
        Place::template choose<Op>();
        const spmv_status st = Rung<typename Place::template applied<Op>>::run(place, (const T *)in, (T *)out, n,
                                                                               (T *)scratch, few, &left);
        *some = {left.sums, left.count};
        return st;
    });
}

/* Bytes of scratch; the number of elements is the same for every operator and type. */
template <template <typename> class Rung> int64_t reduce_scratch_of(const spmv_context *ctx, spmv_type type, int64_t n)
{
    (void)ctx;
    return Rung<op_add_f64>::scratch_elements(n) * (int64_t)spmv_type_size(type);
}

#endif

/* map and reduce in one, on CUDA: reduce, rung 6, with a source that maps what it fetches.
 *
 * Which function it is, is asked once a pack, the same for all threads: a kernel for each pair of operator and type,
 * instead of one for each function too.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <type_traits>

#include "reduce_6_packs.cuh"

template <typename T> struct source_mapped {
    static constexpr int length = source_array<T>::length;
    using raw = typename source_array<T>::raw;
    source_array<T> in;
    spmv_function function;

    bool aligned() const
    {
        return in.aligned();
    }
    __device__ raw fetch(int64_t p) const
    {
        return in.fetch(p);
    }
    __device__ raw fetch_some(int64_t p, int64_t n) const
    {
        return in.fetch_some(p, n);
    }
    __device__ raw values(raw x) const
    {
#define CASE(FN, fn, TYPE, type, C, D, CLASS)                                                                          \
    if constexpr (std::is_same<T, D>::value) {                                                                         \
        if (function == SPMV_MAP_##FN)                                                                                 \
            for (int j = 0; j < length; j++)                                                                           \
                x.at[j] = function_##fn##_##type()(x.at[j]);                                                           \
    }
        SPMV_FUNCTION_PAIR_LIST(CASE)
#undef CASE
        return x;
    }
};

static spmv_status dispatch(spmv_context *ctx, spmv_function function, spmv_op by, spmv_type of, const void *in,
                            void *out, int64_t n, void *scratch)
{
    switch ((int)by * SPMV_TYPE_LIMIT + (int)of) {
#define CASE(OP, op, TYPE, type, T, D, CLASS)                                                                          \
    case SPMV_##OP *SPMV_TYPE_LIMIT + SPMV_##TYPE:                                                                     \
        return reduce_6_launch<op_##op##_##type>(ctx, "reduce_packs (map_reduce)",                                     \
                                                 source_mapped<D>{{(const D *)in}, function}, n, out, scratch);
        SPMV_PAIR_LIST(CASE)
#undef CASE
    default:
        return context_fail(ctx, SPMV_ERROR_TYPE, "map_reduce: no kernel for operator %d and type %d", (int)by,
                            (int)of);
    }
}

extern "C" spmv_status map_reduce_cuda(spmv_context *ctx, spmv_function function, spmv_op by, spmv_type of,
                                       const void *in, void *out, int64_t n, void *scratch)
{
    return on_device(ctx, [=] { return dispatch(ctx, function, by, of, in, out, n, scratch); });
}

/* map and reduce fused, on CUDA: reduce, rung 6, with a source that maps the elements it fetches.
 *
 * The function is a run-time argument, tested once per pack with the same result in all threads. So
 * there is one kernel for each pair of operator and type, not one for each function too.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <type_traits>

#include "device/dispatch.cuh"
#include "primitives/reduce/reduce_6_packs.cuh"

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
#define CASE(FN, fn, TYPE, type, C, CLASS)                                                                             \
    if constexpr (std::is_same<T, C>::value) {                                                                         \
        if (function == SPMV_MAP_##FN)                                                                                 \
            for (int j = 0; j < length; j++)                                                                           \
                x.at[j] = function_##fn##_##type()(x.at[j]);                                                           \
    }
        SPMV_FUNCTION_PAIRS(CASE)
#undef CASE
        return x;
    }
};

extern "C" spmv_status map_reduce_cuda(spmv_context *ctx, spmv_function function, spmv_op by, spmv_type of,
                                       const void *in, void *out, int64_t n, void *scratch)
{
    return on_device(ctx, [=] {
        return with_op(ctx, "map_reduce", by, of, [=](auto op) {
            using T = typename decltype(op)::type;
            return reduce_6_launch<decltype(op)>(ctx, "reduce_packs (map_reduce)",
                                                 source_mapped<T>{{(const T *)in}, function}, n, out, scratch);
        });
    });
}

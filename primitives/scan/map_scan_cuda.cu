/* map and scan fused, on CUDA: scan, rungs 5 and 6, with a loader that maps the elements.
 *
 * The function is a run-time argument, tested for every element with the same result in all
 * threads. So there is one kernel for each pair of operator and type, not one for each function
 * too.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <type_traits>

#include "device/dispatch.cuh"
#include "primitives/scan/scan_5_lookback.cuh"
#include "primitives/scan/scan_6_pipeline.cuh"

template <typename T> struct function_told {
    spmv_function function;

    __host__ __device__ T operator()(T x) const
    {
#define CASE(FN, fn, TYPE, type, C, CLASS)                                                                             \
    if constexpr (std::is_same<T, C>::value) {                                                                         \
        if (function == SPMV_MAP_##FN)                                                                                 \
            return function_##fn##_##type()(x);                                                                        \
    }
        SPMV_FUNCTION_PAIRS(CASE)
#undef CASE
        return x;
    }
};

template <typename Op>
static spmv_status run(spmv_context *ctx, spmv_function function, bool exclusive, const void *in, void *out, int64_t n,
                       void *scratch)
{
    using T = typename Op::type;
    const load_mapped<load_array<T>, function_told<T>> mapped = {{(const T *)in}, {function}};
    const store_array<T> store = {(T *)out};
    if (engine_there(ctx))
        return scan_6_launch<Op>(ctx, mapped, store, no_heads(), n, exclusive);
    return scan_5_launch<Op, typename scan_5_best<T>::older>(ctx, mapped, store, n, exclusive, scratch);
}

extern "C" spmv_status map_scan_cuda(spmv_context *ctx, spmv_function function, spmv_scan_kind kind, spmv_op by,
                                     spmv_type of, const void *in, void *out, int64_t n, void *scratch)
{
    return on_device(ctx, [=] {
        return with_op(ctx, "map_scan", by, of, [=](auto op) -> spmv_status {
            using Op = decltype(op);
            if constexpr (std::is_arithmetic<typename Op::type>::value)
                return run<Op>(ctx, function, kind == SPMV_EXCLUSIVE, in, out, n, scratch);
            else /* no function takes tuples */
                return dispatch_refuse(ctx, "map_scan", of);
        });
    });
}

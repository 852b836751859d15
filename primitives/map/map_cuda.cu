/* map on CUDA: the rungs for every function, operator and type.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "device/dispatch.cuh"
#include "primitives/map/map_1_packs.cuh"

extern "C" spmv_status map_cuda(spmv_context *ctx, spmv_function by, spmv_type of, const void *in, void *out, int64_t n)
{
    return on_device(ctx, [=] {
        return with_function(ctx, "map", by, of, [=](auto function) {
            using T = typename decltype(function)::type;
            return map_1_launch(ctx, "map_packs (map)", map_unary<decltype(function)>{(const T *)in, function}, out, n);
        });
    });
}

extern "C" spmv_status map_binary_cuda(spmv_context *ctx, spmv_op by, spmv_type of, const void *a, const void *b,
                                       void *out, int64_t n)
{
    return on_device(ctx, [=] {
        return with_op(ctx, "map_binary", by, of, [=](auto op) {
            using T = typename decltype(op)::type;
            return map_1_launch(ctx, "map_packs (map_binary)", map_pairs<decltype(op)>{(const T *)a, (const T *)b}, out,
                                n);
        });
    });
}

extern "C" spmv_status map_scalar_cuda(spmv_context *ctx, spmv_op by, spmv_type of, const void *host_scalar,
                                       const void *in, void *out, int64_t n)
{
    return on_device(ctx, [=] {
        return with_op(ctx, "map_scalar", by, of, [=](auto op) {
            using T = typename decltype(op)::type;
            return map_1_launch(ctx, "map_packs (map_scalar)",
                                map_unary<with_scalar<decltype(op)>>{(const T *)in, {*(const T *)host_scalar}}, out, n);
        });
    });
}

/* For tuples, only filling with a value. */
template <typename Traits>
static spmv_status index_launch(spmv_context *ctx, const void *host_first, const void *host_step, void *out, int64_t n)
{
    using T = typename Traits::type;
    const T first = *(const T *)host_first;
    if constexpr (Traits::kind == type_class::TUPLE) {
        return map_1_launch(ctx, "map_packs (map_index)", map_of_value<T>{first}, out, n);
    } else {
        const T step = host_step != NULL ? *(const T *)host_step : Traits::add::identity();
        return map_1_launch(ctx, "map_packs (map_index)",
                            map_of_index<typename Traits::add, typename Traits::mul>{first, step}, out, n);
    }
}

extern "C" spmv_status map_index_cuda(spmv_context *ctx, spmv_type of, const void *host_first, const void *host_step,
                                      void *out, int64_t n)
{
    return on_device(ctx, [=] {
        return with_type(ctx, "map_index", of,
                         [=](auto type) { return index_launch<decltype(type)>(ctx, host_first, host_step, out, n); });
    });
}

extern "C" spmv_status map_divide_cuda(spmv_context *ctx, spmv_type of, const void *a, const void *b, void *out,
                                       int64_t n)
{
    return on_device(ctx, [=] {
        return with_real(ctx, "map_divide", of, [=](auto real) {
            using T = typename decltype(real)::type;
            return map_1_launch(ctx, "map_packs (map_divide)", map_pairs<divide<T>>{(const T *)a, (const T *)b}, out,
                                n);
        });
    });
}

extern "C" spmv_status map_axpby_cuda(spmv_context *ctx, spmv_type of, const void *alpha, const void *x,
                                      const void *beta, void *y, int64_t n)
{
    return on_device(ctx, [=] {
        return with_real(ctx, "map_axpby", of, [=](auto real) {
            using T = typename decltype(real)::type;
            return map_1_launch(ctx, "map_packs (map_axpby)",
                                map_axpby<T>{(const T *)alpha, (const T *)x, (const T *)beta, (const T *)y}, y, n);
        });
    });
}

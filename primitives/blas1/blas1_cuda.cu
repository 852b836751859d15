/* divide, axpby, dot on CUDA: expressions for map's rung, a loader for reduce's.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "map_1_packs.cuh"
#include "ops.cuh"
#include "reduce_1_chunks.cuh"

namespace
{

template <typename Number> struct quotients {
    using T = Number;
    const T *a, *b;
    bool aligned() const
    {
        return (uintptr_t)a % 16 == 0 && (uintptr_t)b % 16 == 0;
    }
    template <int V> __device__ pack<T, V> get(int64_t p, int64_t n) const
    {
        pack<T, V> x = read_pack<V>(a, p, n);
        const pack<T, V> y = read_pack<V>(b, p, n);
#pragma unroll
        for (int j = 0; j < V; j++)
            x.at[j] = x.at[j] / y.at[j];
        return x;
    }
};

/* alpha x + beta y; alpha and beta lie in device memory, NULL: 1. */
template <typename Number> struct weighted_sums {
    using T = Number;
    const T *alpha, *beta, *x, *y;
    bool aligned() const
    {
        return (uintptr_t)x % 16 == 0 && (uintptr_t)y % 16 == 0;
    }
    template <int V> __device__ pack<T, V> get(int64_t p, int64_t n) const
    {
        const T a = alpha != nullptr ? *alpha : T(1), b = beta != nullptr ? *beta : T(1);
        pack<T, V> sum = read_pack<V>(y, p, n);
        const pack<T, V> from = read_pack<V>(x, p, n);
#pragma unroll
        for (int j = 0; j < V; j++)
            sum.at[j] = a * from.at[j] + b * sum.at[j];
        return sum;
    }
};

template <typename T> struct load_products {
    const T *x, *y;
    __device__ T operator()(int64_t i) const
    {
        return x[i] * y[i];
    }
};

template <typename T> spmv_status divide(spmv_context *ctx, const void *a, const void *b, void *out, int64_t n)
{
    return map_1_launch(ctx, "map_divide", quotients<T>{(const T *)a, (const T *)b}, out, n);
}

template <typename T>
spmv_status axpby(spmv_context *ctx, const void *alpha, const void *x, const void *beta, void *y, int64_t n)
{
    const weighted_sums<T> sums = {(const T *)alpha, (const T *)beta, (const T *)x, (const T *)y};
    return map_1_launch(ctx, "map_axpby", sums, y, n);
}

} // namespace

extern "C" spmv_status map_divide_cuda(spmv_context *ctx, spmv_type type, const void *a, const void *b, void *out,
                                       int64_t n)
{
    return on_device(ctx, [=] { return (type == SPMV_F32 ? divide<float> : divide<double>)(ctx, a, b, out, n); });
}

extern "C" spmv_status map_axpby_cuda(spmv_context *ctx, spmv_type type, const void *alpha, const void *x,
                                      const void *beta, void *y, int64_t n)
{
    return on_device(ctx, [=] { return (type == SPMV_F32 ? axpby<float> : axpby<double>)(ctx, alpha, x, beta, y, n); });
}

extern "C" int64_t dot_scratch_cuda(const spmv_context *ctx, spmv_type type, int64_t n)
{
    return reduce_scratch_cuda(ctx, type, n);
}

extern "C" spmv_status dot_cuda(spmv_context *ctx, spmv_type type, const void *x, const void *y, void *out, int64_t n,
                                void *scratch)
{
    return on_device(ctx, [=] {
        return type == SPMV_F32
                   ? reduce_1_launch<op_add_f32>(ctx, load_products<float>{(const float *)x, (const float *)y}, n,
                                                 (float *)out, scratch)
                   : reduce_1_launch<op_add_f64>(ctx, load_products<double>{(const double *)x, (const double *)y}, n,
                                                 (double *)out, scratch);
    });
}

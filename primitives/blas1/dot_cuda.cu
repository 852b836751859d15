/* dot on CUDA: reduce, rung 5, with a loader that multiplies: a map fused into a reduce.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "device/dispatch.cuh"
#include "primitives/reduce/reduce_5_shuffles.cuh"

template <typename T> struct load_products {
    const T *x, *y;
    __device__ T operator()(int64_t i) const
    {
        return x[i] * y[i];
    }
};

extern "C" int64_t dot_scratch_cuda(const spmv_context *ctx, spmv_type type, int64_t n)
{
    (void)ctx;
    (void)n;
    return REDUCE_5_SCRATCH_ELEMENTS * (int64_t)spmv_type_size(type);
}

extern "C" spmv_status dot_cuda(spmv_context *ctx, spmv_type of, const void *x, const void *y, void *out, int64_t n,
                                void *scratch)
{
    return on_device(ctx, [=] {
        return with_real(ctx, "dot", of, [=](auto real) {
            using T = typename decltype(real)::type;
            return reduce_5_launch<typename decltype(real)::add>(ctx, load_products<T>{(const T *)x, (const T *)y}, n,
                                                                 (T *)out, scratch);
        });
    });
}

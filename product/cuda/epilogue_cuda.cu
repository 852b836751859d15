/* The epilogue of complex products for the CUDA methods without one of their own: rung 5 of reduce
 * with a loader that multiplies, as in dot_cuda.cu for real types, and a map.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "primitives/reduce/reduce_5_shuffles.cuh"
#include "product/cuda/spmv_cuda.cuh"
#include "product/cuda/spmv_types.cuh"

namespace
{

template <typename T> struct add {
    using type = T;
    __device__ T operator()(T earlier, T later) const
    {
        return earlier + later;
    }
    static __device__ T identity()
    {
        return T();
    }
};

template <typename T> struct load_conjugate_products {
    const T *w, *y;
    __device__ T operator()(int64_t i) const
    {
        return conjugated(load_whole(w + i)) * load_whole(y + i);
    }
};

template <typename T> __global__ void __launch_bounds__(block_threads) axpy(const T *gamma, const T *y, T *z, int64_t n)
{
    for (int64_t i = (int64_t)blockIdx.x * block_threads + threadIdx.x; i < n; i += (int64_t)gridDim.x * block_threads)
        z[i] = load_whole(z + i) + scaled_by(gamma, load_whole(y + i));
}

template <typename T> spmv_status run(const spmv_plan *plan, const T *y, const spmv_epilogue *e, void *scratch)
{
    spmv_context *const ctx = plan->ctx;
    const int64_t n = plan->a.rows;
    return on_device(ctx, [=] {
        spmv_status st = SPMV_OK;
        if (e->z != nullptr)
            st = launch(ctx, "spmv epilogue axpy", grid_for(n, block_threads), block_threads, axpy<T>,
                        (const T *)e->gamma, y, (T *)e->z, n);
        if (st == SPMV_OK && e->w != nullptr)
            st = reduce_5_launch<add<T>>(ctx, load_conjugate_products<T>{(const T *)e->w, y}, n, (T *)e->dot, scratch);
        return st;
    });
}

} // namespace

extern "C" int64_t epilogue_scratch_cuda(const spmv_plan *plan)
{
    return REDUCE_5_SCRATCH_ELEMENTS * (int64_t)spmv_type_size(plan->type);
}

extern "C" spmv_status epilogue_cuda(const spmv_plan *plan, const void *y, const spmv_epilogue *e, void *scratch)
{
    return with_complex(plan->type, [&](auto of) { return run(plan, (const decltype(of) *)y, e, scratch); });
}

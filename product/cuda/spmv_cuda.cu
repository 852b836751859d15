/* The CUDA methods "scalar" and "vector": selects the template instance for the types of a plan.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "device/block.cuh"
#include "product/cuda/spmv_1_scalar.cuh"
#include "product/cuda/spmv_2_vector.cuh"
#include "product/cuda/spmv_types.cuh"

namespace
{

struct scalar_rung {
    template <typename T, typename Offset, typename Stored>
    spmv_status operator()(spmv_context *ctx, csr_arrays<T, Offset, Stored> a, scaling<T> s, const T *x, T *y) const
    {
        return scalar::run(ctx, a, s, x, y);
    }
};

struct vector_rung {
    int shift;

    template <typename T, typename Offset, typename Stored>
    spmv_status operator()(spmv_context *ctx, csr_arrays<T, Offset, Stored> a, scaling<T> s, const T *x, T *y) const
    {
        return vector::run(ctx, a, s, x, y, shift);
    }
};

template <typename T, typename Offset, typename Stored, typename Rung>
spmv_status run_with(const spmv_plan *plan, scaling<T> s, const T *x, T *y, Rung rung)
{
    const spmv_csr &a = plan->a;
    const csr_arrays<T, Offset, Stored> arrays = {a.rows, (const Offset *)a.row_ptr, a.col, (const Stored *)a.val};
    return rung(plan->ctx, arrays, s, x, y);
}

template <typename Rung> spmv_status apply(const spmv_plan *plan, const struct plan_product *p, Rung rung)
{
    return with_types(plan, [&](auto sums, auto stored) {
        using T = decltype(sums);
        using Stored = decltype(stored);
        const scaling<T> s = {*(const T *)p->alpha, *(const T *)p->beta, p->beta_zero};
        return on_device(plan->ctx, [&] {
            return plan->a.row_ptr_bits == 32 ? run_with<T, int32_t, Stored>(plan, s, (const T *)p->x, (T *)p->y, rung)
                                              : run_with<T, int64_t, Stored>(plan, s, (const T *)p->x, (T *)p->y, rung);
        });
    });
}

__global__ void __launch_bounds__(block_threads) narrow_offsets(const int64_t *from, int32_t *to, int64_t n)
{
    for (int64_t i = (int64_t)blockIdx.x * block_threads + threadIdx.x; i < n; i += (int64_t)gridDim.x * block_threads)
        to[i] = (int32_t)from[i];
}

} // namespace

extern "C" spmv_status narrow_offsets_cuda(spmv_context *ctx, const int64_t *from, int32_t *to, int64_t n)
{
    return on_device(ctx, [&] {
        return launch(ctx, "spmv narrow offsets", grid_for(n, block_threads), block_threads, narrow_offsets, from, to,
                      n);
    });
}

extern "C" spmv_status scalar_cuda_apply(const spmv_plan *plan, const struct plan_product *product)
{
    return apply(plan, product, scalar_rung());
}

extern "C" spmv_status vector_cuda_apply(const spmv_plan *plan, const struct plan_product *product)
{
    const struct plan_ranks *const ranks = plan->ranks;
    const int shift = ranks != nullptr && ranks->rows > 0 ? vector::shift_for((double)ranks->nnz / (double)ranks->rows)
                                                          : (int)vector::MOST_SHIFT;
    return apply(plan, product, vector_rung{shift});
}

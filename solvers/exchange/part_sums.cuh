/* The sum of a block's values, and of numbers that a whole block adds. The order follows from how many
 * there are, so all kernels that use these functions get the same bits.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef PART_SUMS_CUH
#define PART_SUMS_CUH

#include "device/block.cuh"
#include "product/cuda/spmv_cuda.cuh"

namespace part_sums
{

enum { BLOCK = 512 };

/* A pair of sums. */
template <typename T> struct two_of {
    using type = spmv_c128;
};
template <> struct two_of<float> {
    using type = spmv_c64;
};
template <typename T> using two = typename two_of<T>::type;

/* The sums that begin a step with one vector kernel (cg_2_fused_predicted.cuh). */
template <typename T> struct step_sums {
    two<T> squares, products; /* r'r, r'z; p'q, that of the squares of q */

    __device__ step_sums &operator+=(const step_sums &b)
    {
        squares += b.squares;
        products += b.products;
        return *this;
    }
};

/* The sum of a block's values. Lane 0 of each warp gets it. */
template <typename T> __device__ T sum_block(T value)
{
    constexpr int BLOCK_WARPS = BLOCK / warp_lanes;
    __shared__ T of_warps[BLOCK_WARPS];
    const int thread = (int)threadIdx.x;
    const T sum = warp_sum(value, warp_lanes);
    __syncthreads(); /* every thread has read the previous sum */
    if (thread % warp_lanes == 0)
        of_warps[thread / warp_lanes] = sum;
    __syncthreads();
    return warp_sum(thread % warp_lanes < BLOCK_WARPS ? of_warps[thread % warp_lanes] : T(), BLOCK_WARPS);
}

/* All threads of a block get what sum_block returned. */
template <typename T> __device__ T broadcast(T sum)
{
    return shuffle_by(sum, [](auto word) { return __shfl_sync(0xffffffffu, word, 0); });
}

/* The sum of number(i), 0 <= i < count. All threads get it. */
template <typename T, typename Number> __device__ T sum_numbers(int count, const Number &number)
{
    T sum = T();
#pragma unroll 4
    for (int i = (int)threadIdx.x; i < count; i += BLOCK)
        sum += number(i);
    return broadcast(sum_block(sum));
}

} // namespace part_sums

#endif

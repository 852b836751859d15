/* Shared by the CUDA rungs of the product: the matrix's arrays, passed by value, and how a sum
 * becomes an element of y.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SPMV_CUDA_CUH
#define SPMV_CUDA_CUH

#include "device/block.cuh"
#include "device/complex.cuh"
#include "device/launch.cuh"

/* A plan's matrix with its types. T: of vectors and sums. val: NULL for a pattern. */
template <typename T, typename Offset, typename Stored> struct csr_arrays {
    int64_t rows;
    const Offset *row_ptr;
    const int32_t *col;
    const Stored *val;

    /* The term of entry k in the sum of its row. */
    __device__ T term(int64_t k, const T *x) const
    {
        const T element = load_whole(x + col[k]);
        return val != nullptr ? T(load_whole(val + k)) * element : element;
    }
};

/* y_i = alpha sum + beta y_i; y is not read when beta is 0. Element: of y, T or a 16-bit type. */
template <typename T> struct scaling {
    T alpha, beta;
    bool beta_zero;

    template <typename Element> __device__ T value(T sum, const Element *y) const
    {
        return beta_zero ? alpha * sum : alpha * sum + beta * T(*y);
    }

    template <typename Element> __device__ void store(T sum, Element *y) const
    {
        *y = Element(value(sum, y));
    }
};

/* The sum over `width` lanes in a fixed tree; the result is in lane 0. */
template <typename T> __device__ T warp_sum(T sum, int width)
{
    for (int distance = width / 2; distance > 0; distance /= 2)
        sum += shuffle_down(sum, distance);
    return sum;
}

/* The sums of a and of b over the warp, each in the tree of warp_sum; lanes 0 and 16 get them. */
template <typename T> __device__ T warp_sum_two(T a, T b)
{
    constexpr int HALF = warp_lanes / 2;
    const bool of_b = threadIdx.x % warp_lanes >= HALF;
    const T given = of_b ? a : b;
    T sum = of_b ? b : a;
    sum += shuffle_by(given, [](auto word) { return __shfl_xor_sync(0xffffffffu, word, HALF); });
    return warp_sum(sum, HALF);
}

/* gamma y. gamma: a scalar in the device's memory, NULL for 1. */
template <typename T> __device__ T scaled_by(const T *gamma, T y)
{
    return gamma != nullptr ? load_whole(gamma) * y : y;
}

#endif

/* For kernels of Gram-Schmidt over a basis of many vectors: the arithmetic of a row and of a warp.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef KRYLOV_BASIS_CUH
#define KRYLOV_BASIS_CUH

#include "device/block.cuh"
#include "device/complex.cuh"

extern "C" {
#include "solvers/krylov/krylov_scalars.h"
}

namespace krylov_basis
{

/* Sums: double, or a complex number of doubles. */
template <typename T> struct sum_of {
    using type = double;
};
template <> struct sum_of<spmv_c64> {
    using type = spmv_c128;
};
template <> struct sum_of<spmv_c128> {
    using type = spmv_c128;
};
template <typename T> using sum_type = typename sum_of<T>::type;

/* A sum as a scalar, and a scalar as a value of the type. */
__device__ inline krylov_scalar scalar_from(double a)
{
    return {a, 0};
}
__device__ inline krylov_scalar scalar_from(spmv_c128 a)
{
    return {a.re, a.im};
}

template <typename T> __device__ T value_of(krylov_scalar a)
{
    if constexpr (sizeof(sum_type<T>) == sizeof(double))
        return (T)a.re;
    else {
        T value;
        value.re = (decltype(value.re))a.re;
        value.im = (decltype(value.im))a.im;
        return value;
    }
}

__device__ inline double widened(float a)
{
    return (double)a;
}
__device__ inline double widened(double a)
{
    return a;
}
__device__ inline spmv_c128 widened(spmv_c64 a)
{
    return {(double)a.re, (double)a.im};
}
__device__ inline spmv_c128 widened(spmv_c128 a)
{
    return a;
}

__device__ inline float negative(float a)
{
    return -a;
}
__device__ inline double negative(double a)
{
    return -a;
}
template <typename C> __device__ C negative(C a)
{
    return {-a.re, -a.im};
}

__device__ inline double shuffled(double a, int mask)
{
    return __shfl_xor_sync(0xffffffffu, a, mask);
}
__device__ inline spmv_c128 shuffled(spmv_c128 a, int mask)
{
    return {__shfl_xor_sync(0xffffffffu, a.re, mask), __shfl_xor_sync(0xffffffffu, a.im, mask)};
}

/* The sum over the lanes of a warp, in all lanes. */
template <typename S> __device__ S sum_of_warp(S value)
{
    for (int mask = warp_lanes / 2; mask > 0; mask /= 2)
        value += shuffled(value, mask);
    return value;
}

/* The elements of SIZE vectors from v_i on in one row, loaded together; after the last vector they
 * repeat it. column: the element of v_0; the others follow, `stride` elements apart. */
template <int SIZE, typename T, typename Stride>
__device__ void load_vectors(int i, int end, const T *column, Stride stride, T (&v)[SIZE])
{
#pragma unroll
    for (int k = 0; k < SIZE; k++)
        v[k] = column[(i + k < end ? i + k : end - 1) * stride];
}

/* batch(i, size) for begin <= i < end in steps of BATCH, and of half as many at the end. */
template <int BATCH, typename Batch> __device__ void in_batches(int begin, int end, const Batch &batch)
{
    int i = begin;
    for (; end - i > BATCH / 2; i += BATCH)
        batch(i, std::integral_constant<int, BATCH>());
    if (i < end)
        batch(i, std::integral_constant<int, BATCH / 2>());
}

/* Calls take(i, chain, v_i), begin <= i < end, for one row. chain: one of CHAINS parts of a sum, which
 * hide the latency of the arithmetic. */
enum { CHAINS = 4 };
template <int BATCH, typename T, typename Stride, typename Take>
__device__ void for_vectors(int begin, int end, const T *column, Stride stride, const Take &take)
{
    in_batches<BATCH>(begin, end, [&](int i, auto size) {
        constexpr int SIZE = decltype(size)::value;
        T v[SIZE];
        load_vectors(i, end, column, stride, v);
#pragma unroll
        for (int k = 0; k < SIZE; k++)
            if (i + k < end)
                take(i + k, k % CHAINS, v[k]);
    });
}

/* Adds -by[i] v_i, begin <= i < end, to the parts of a sum, and calls see(i, v_i), perhaps twice: with a
 * condition around it, as in for_vectors, the passes over four million rows took a third longer. */
template <int BATCH, typename T, typename By, typename Stride, typename See>
__device__ void subtract_vectors(T (&sum)[CHAINS], int begin, int end, const By *by, const T *column, Stride stride,
                                 const See &see)
{
    in_batches<BATCH>(begin, end, [&](int i, auto size) {
        constexpr int SIZE = decltype(size)::value;
        T v[SIZE];
        load_vectors(i, end, column, stride, v);
#pragma unroll
        for (int k = 0; k < SIZE; k++) {
            see(i + k < end ? i + k : end - 1, v[k]);
            if (i + k < end)
                sum[k % CHAINS] += negative((T)by[i + k]) * v[k];
        }
    });
}

template <typename T> __device__ T sum_chains(const T (&sum)[CHAINS])
{
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

/* sum = one'w and two'w over `count` rows, by one warp, in all lanes. */
template <typename T>
__device__ void multiply_two(const T *w, int count, const T *one, const T *two, sum_type<T> (&sum)[2])
{
    using S = sum_type<T>;
    S first = S(), second = S();
#pragma unroll 8
    for (int r = (int)threadIdx.x % warp_lanes; r < count; r += warp_lanes) {
        const T its = w[r];
        first += widened(conjugated(one[r]) * its);
        second += widened(conjugated(two[r]) * its);
    }
    sum[0] = sum_of_warp(first);
    sum[1] = sum_of_warp(second);
}

/* sum = one'u, one'w, two'u, two'w over `count` rows: the lane's part. */
template <typename T>
__device__ void multiply_both(const T *u, const T *w, int count, const T *one, const T *two, double (&sum)[4])
{
    sum[0] = sum[1] = sum[2] = sum[3] = 0;
#pragma unroll 8
    for (int r = (int)threadIdx.x % warp_lanes; r < count; r += warp_lanes) {
        const double its_u = (double)u[r], its_w = (double)w[r], first = (double)one[r], second = (double)two[r];
        sum[0] += first * its_u;
        sum[1] += first * its_w;
        sum[2] += second * its_u;
        sum[3] += second * its_w;
    }
}

/* The sums of four numbers over the lanes of a warp: number k in lanes 8 k ... 8 k + 7. Each exchange
 * halves what a lane has left, so there are fewer than for four single sums. */
__device__ inline double four_sums_of_warp(const double (&value)[4])
{
    const bool upper = (threadIdx.x & 16) != 0, odd = (threadIdx.x & 8) != 0;
    const double even_sum = (upper ? value[2] : value[0]) + shuffled(upper ? value[0] : value[2], 16);
    const double odd_sum = (upper ? value[3] : value[1]) + shuffled(upper ? value[1] : value[3], 16);
    double sum = (odd ? odd_sum : even_sum) + shuffled(odd ? even_sum : odd_sum, 8);
    for (int mask = 4; mask > 0; mask /= 2)
        sum += shuffled(sum, mask);
    return sum;
}

} // namespace krylov_basis

#endif

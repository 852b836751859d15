/* Writes, copies and sums at the full speed of a GPU's memory.
 *
 * Threads move 16 bytes at a time, in strides of the whole grid, with four loads in flight before
 * the first is used. At full occupancy that exceeds latency times bandwidth on current GPUs. Sums
 * are of integers, so that they are exact in any order and errors are detected.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "bench/devices/bandwidth_cuda.h"

#include <cuda_runtime.h>

namespace
{

enum { UNROLL = 4, WARP = 32 };

__device__ size_t grid_index()
{
    return (size_t)blockIdx.x * blockDim.x + threadIdx.x;
}

__device__ size_t grid_size()
{
    return (size_t)gridDim.x * blockDim.x;
}

__global__ void __launch_bounds__(BANDWIDTH_THREADS) write_kernel(uint32_t first, uint32_t step, uint4 *to, size_t n)
{
    for (size_t i = grid_index(); i < n; i += grid_size()) {
        const uint32_t word = first + step * (uint32_t)(4 * i);
        to[i] = make_uint4(word, word + step, word + 2 * step, word + 3 * step);
    }
}

/* Calls take(i, from[i]) for the thread's words; UNROLL of them are loaded at once. */
template <typename Take> __device__ __forceinline__ void for_words(const uint4 *from, size_t n, const Take &take)
{
    const size_t stride = grid_size();
    size_t i = grid_index();
    for (; i + (UNROLL - 1) * stride < n; i += UNROLL * stride) {
        uint4 words[UNROLL];
#pragma unroll
        for (int u = 0; u < UNROLL; u++)
            words[u] = from[i + u * stride];
#pragma unroll
        for (int u = 0; u < UNROLL; u++)
            take(i + u * stride, words[u]);
    }
    for (; i < n; i += stride)
        take(i, from[i]);
}

__global__ void __launch_bounds__(BANDWIDTH_THREADS) copy_kernel(const uint4 *from, uint4 *to, size_t n)
{
    for_words(from, n, [=](size_t i, uint4 word) { to[i] = word; });
}

__device__ unsigned long long sum_of(uint4 words)
{
    return ((unsigned long long)words.x + words.y) + ((unsigned long long)words.z + words.w);
}

/* One atomic addition per warp. Integer sums do not depend on the order. */
__global__ void __launch_bounds__(BANDWIDTH_THREADS) sum_kernel(const uint4 *from, size_t n, unsigned long long *sum)
{
    unsigned long long mine = 0;
    for_words(from, n, [&](size_t, uint4 word) { mine += sum_of(word); });
    for (int distance = WARP / 2; distance > 0; distance /= 2)
        mine += __shfl_down_sync(0xffffffffu, mine, distance);
    if (threadIdx.x % WARP == 0)
        atomicAdd(sum, mine);
}

/* Bytes beyond the last whole word are compared one by one. */
__global__ void __launch_bounds__(BANDWIDTH_THREADS)
    differ_kernel(const unsigned char *a, const unsigned char *b, size_t bytes, unsigned long long *differ)
{
    bool other = false;
    const size_t words = bytes / 16;
    for (size_t i = grid_index(); i < words; i += grid_size()) {
        const uint4 of_a = ((const uint4 *)a)[i], of_b = ((const uint4 *)b)[i];
        other = other || of_a.x != of_b.x || of_a.y != of_b.y || of_a.z != of_b.z || of_a.w != of_b.w;
    }
    for (size_t i = 16 * words + grid_index(); i < bytes; i += grid_size())
        other = other || a[i] != b[i];
    if (other)
        *differ = 1; /* all that write, write the same */
}

} // namespace

extern "C" cudaError_t words_write(cudaStream_t stream, int blocks, uint32_t first, uint32_t step, void *to,
                                   size_t bytes)
{
    write_kernel<<<blocks, BANDWIDTH_THREADS, 0, stream>>>(first, step, static_cast<uint4 *>(to), bytes / 16);
    return cudaGetLastError();
}

extern "C" cudaError_t words_copy(cudaStream_t stream, int blocks, const void *from, void *to, size_t bytes)
{
    copy_kernel<<<blocks, BANDWIDTH_THREADS, 0, stream>>>(static_cast<const uint4 *>(from), static_cast<uint4 *>(to),
                                                          bytes / 16);
    return cudaGetLastError();
}

extern "C" cudaError_t words_sum(cudaStream_t stream, int blocks, const void *from, size_t bytes,
                                 unsigned long long *sum)
{
    sum_kernel<<<blocks, BANDWIDTH_THREADS, 0, stream>>>(static_cast<const uint4 *>(from), bytes / 16, sum);
    return cudaGetLastError();
}

extern "C" cudaError_t bytes_differ(cudaStream_t stream, int blocks, const void *a, const void *b, size_t bytes,
                                    unsigned long long *differ)
{
    differ_kernel<<<blocks, BANDWIDTH_THREADS, 0, stream>>>(static_cast<const unsigned char *>(a),
                                                            static_cast<const unsigned char *>(b), bytes, differ);
    return cudaGetLastError();
}

/* For kernels whose blocks wait for each other: a barrier of the whole grid, and loads of what other
 * blocks wrote in the same launch. The launch must be cooperative, so that all blocks run at once.
 *
 * A barrier is one counter: each block adds 1 after its writes and waits until all blocks have.
 * Release and acquire make these writes visible after it, except in the multiprocessor's own cache,
 * which load_others bypasses. On a host that emulates a GPU, blocks are processes
 * (tests/emulated_gpu).
 *
 * Source: PTX ISA, "Memory consistency model".
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef GRID_BARRIER_CUH
#define GRID_BARRIER_CUH

#include <sched.h>

#include "device/launch.cuh"

namespace grid_barrier
{

/* Two elements that a row gathers together. z = M^-1 r; t = M^-1 of a second vector. */
template <typename T> struct alignas(2 * sizeof(T)) pair {
    T z, t;
};

/* By one thread of a block. */
__device__ inline void arrive(unsigned *count)
{
#ifdef __CUDA_ARCH__
    asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(count) : "memory");
#else
    __atomic_fetch_add(count, 1u, __ATOMIC_RELEASE);
#endif
}

__device__ inline void await_all(const unsigned *count, unsigned all)
{
#ifdef __CUDA_ARCH__
    unsigned now;
    do
        asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(now) : "l"(count) : "memory");
    while ((int)(now - all) < 0);
#else
    while ((int)(__atomic_load_n(count, __ATOMIC_ACQUIRE) - all) < 0)
        sched_yield();
#endif
}

/* Loads what other blocks wrote in this launch. */
template <typename T> __device__ T load_others(const T *from)
{
#ifdef __CUDA_ARCH__
    return __ldcg(from);
#else
    return *from;
#endif
}

template <typename T> __device__ pair<T> load_others(const pair<T> *from)
{
#ifdef __CUDA_ARCH__
    if constexpr (sizeof(T) == sizeof(float)) {
        const float2 both = __ldcg((const float2 *)from);
        return {both.x, both.y};
    } else {
        const double2 both = __ldcg((const double2 *)from);
        return {both.x, both.y};
    }
#else
    return *from;
#endif
}

/* The limits of the device: shared memory of a block, and the blocks that run at once with that
 * much. Without cooperative launches only one block can run. For on_device. */
inline spmv_status limits(spmv_context *ctx, int *shared_bytes, int *most_blocks)
{
    const cuda_state *const device = (const cuda_state *)ctx->device;
    int cooperative = 0;
    cudaError_t error = cudaDeviceGetAttribute(&cooperative, cudaDevAttrCooperativeLaunch, device->device);
    if (error == cudaSuccess)
        error = cudaDeviceGetAttribute(shared_bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device->device);
    *most_blocks = cooperative != 0 ? device->multiprocessors : 1;
    return cuda_check(ctx, error, "cudaDeviceGetAttribute");
}

} // namespace grid_barrier

#endif

/* Kernels on the host: the threads of a block run as fibers, one after the other from barrier to
 * barrier, in an order that is shuffled each time. A missing barrier gives a wrong result; a
 * barrier or shuffle that not all threads reach ends the program. See cuda_runtime_api.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef HOST_CUDA_RUNTIME_H
#define HOST_CUDA_RUNTIME_H

#include "tests/emulated_gpu/cuda_runtime_api.h"

#include <cstring>

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __shared__ static /* blocks run one after the other */
#define __launch_bounds__(...)
#define __grid_constant__

struct dim3 {
    unsigned x, y, z;
    dim3(unsigned xs = 1, unsigned ys = 1, unsigned zs = 1) : x(xs), y(ys), z(zs)
    {
    }
};

struct alignas(16) int4 {
    int x, y, z, w;
};

extern dim3 threadIdx, blockIdx, blockDim, gridDim;

enum cudaLaunchAttributeID {
    cudaLaunchAttributeCooperative = 2,
    cudaLaunchAttributeClusterDimension = 4,
    cudaLaunchAttributeProgrammaticStreamSerialization = 6
};

struct cudaLaunchAttribute {
    cudaLaunchAttributeID id;
    union {
        int cooperative, programmaticStreamSerializationAllowed;
        struct {
            unsigned x, y, z;
        } clusterDim;
    } val;
};

struct cudaLaunchConfig_t {
    dim3 gridDim, blockDim;
    size_t dynamicSmemBytes;
    cudaStream_t stream;
    cudaLaunchAttribute *attrs; /* all but cooperative are ignored: a kernel ends before the next begins */
    unsigned numAttrs;
};

/* The dynamic shared memory of a block: blocks run one after the other. */
enum { HOST_CUDA_SHARED_BYTES = 136 * 1024 };
alignas(16) extern unsigned char host_cuda_shared[HOST_CUDA_SHARED_BYTES];
#define SPMV_DYNAMIC_SHARED(name) unsigned char *const name = host_cuda_shared

/* Runs a kernel: each thread calls thread(arguments). (std::function would take a third of a second
 * to compile in each file.) kernel: for its attributes. */
cudaError_t host_cuda_launch(const cudaLaunchConfig_t &config, const void *kernel, void (*thread)(const void *),
                             const void *arguments);

template <typename... Parameters, typename... Arguments>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t *config, void (*kernel)(Parameters...), Arguments... arguments)
{
    const auto call = [=] { kernel(arguments...); };
    return host_cuda_launch(
        *config, (const void *)kernel, [](const void *at) { (*static_cast<decltype(&call)>(at))(); }, &call);
}

/* Waits for all threads of the block. Returns the number of those with yes. */
int host_cuda_barrier(const char *file, int line, bool yes);

#define __syncthreads() ((void)host_cuda_barrier(__FILE__, __LINE__, false))
#define __syncthreads_count(yes) host_cuda_barrier(__FILE__, __LINE__, (yes))
#define __syncthreads_or(yes) (host_cuda_barrier(__FILE__, __LINE__, (yes)) > 0)

/* Where the lanes of the running warp publish values, in lane order. */
extern char *host_cuda_lanes;

/* Waits for all lanes of the warp. They must have published values of the same size. */
void host_cuda_wait_for_lanes(size_t bytes);

/* Publishes the value to the warp, waits for all its lanes, and returns that of lane `from`. */
template <typename T> inline T host_cuda_exchange(T value, int from)
{
    char *const lanes = host_cuda_lanes; /* the next exchange has another place */
    std::memcpy(lanes + threadIdx.x % 32 * sizeof value, &value, sizeof value);
    host_cuda_wait_for_lanes(sizeof value);
    std::memcpy(&value, lanes + (size_t)from * sizeof value, sizeof value);
    return value;
}

template <typename T> inline T __shfl_up_sync(unsigned, T value, unsigned distance)
{
    const int lane = (int)(threadIdx.x % 32);
    return host_cuda_exchange(value, lane >= (int)distance ? lane - (int)distance : lane);
}

template <typename T> inline T __shfl_down_sync(unsigned, T value, unsigned distance)
{
    const int lane = (int)(threadIdx.x % 32);
    return host_cuda_exchange(value, lane + (int)distance < 32 ? lane + (int)distance : lane);
}

template <typename T> inline T __shfl_xor_sync(unsigned, T value, int mask)
{
    return host_cuda_exchange(value, (int)(threadIdx.x % 32) ^ mask);
}

template <typename T> inline T __shfl_sync(unsigned, T value, int from, int width = 32)
{
    return host_cuda_exchange(value, (int)(threadIdx.x % 32) / width * width + from % width);
}

inline void __syncwarp()
{
    host_cuda_wait_for_lanes(0);
}

/* Bit l is set if lane l passes yes. */
unsigned host_cuda_ballot(bool yes);

#define __ballot_sync(mask, yes) host_cuda_ballot(yes)

/* The least value of the warp. */
int host_cuda_least(int value);

inline int __reduce_min_sync(unsigned, int value)
{
    return host_cuda_least(value);
}

/* The lanes with the same value as this one. */
unsigned host_cuda_match(unsigned value);

inline unsigned __match_any_sync(unsigned, unsigned value)
{
    return host_cuda_match(value);
}

/* Atomic, because only one thread runs at a time between two barriers. */
template <typename T> T atomicAdd(T *cell, T value)
{
    const T before = *cell;
    *cell = before + value;
    return before;
}

inline unsigned atomicOr(unsigned *cell, unsigned bits)
{
    const unsigned before = *cell;
    *cell = before | bits;
    return before;
}

inline int __ffs(int bits)
{
    return __builtin_ffs(bits);
}

template <typename T> T atomicMax(T *cell, T value)
{
    const T before = *cell;
    if (before < value)
        *cell = value;
    return before;
}

template <typename T> T atomicCAS(T *cell, T expected, T value)
{
    const T before = *cell;
    if (before == expected)
        *cell = value;
    return before;
}

inline unsigned atomicInc(unsigned *cell, unsigned most)
{
    const unsigned before = *cell;
    *cell = before >= most ? 0 : before + 1;
    return before;
}

inline void __threadfence()
{
}

inline void __threadfence_system()
{
}

inline int __clz(int bits)
{
    return bits == 0 ? 32 : __builtin_clz((unsigned)bits);
}

inline int __popc(unsigned bits)
{
    return __builtin_popcount(bits);
}

#endif

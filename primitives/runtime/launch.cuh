/* Launching kernels: grids from 64-bit sizes, and a check after each launch that names the kernel.
 *
 * In a program of a user, spmv/device.cuh has said what stands for a context: a stream.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef LAUNCH_CUH
#define LAUNCH_CUH

#include <cuda_runtime.h>
#include <limits.h>
#include <stdint.h>
#include <string.h>

#ifndef SPMV_DEVICE_CUH
extern "C" {
#include "runtime_cuda.h"
}
#endif

/* Architectures with a copy engine (copy_engine.cuh), times 10: kernels for them alone, and for the others alone, are
 * left empty elsewhere. */
#define ENGINE_FROM 90
#define ENGINE_BELOW 120

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 10 * ENGINE_FROM && __CUDA_ARCH__ < 10 * ENGINE_BELOW
#define HAVE_COPY_ENGINE 1
#else
#define HAVE_COPY_ENGINE 0
#endif

/* Blocks for n independent items, each_block a block; kernels loop where that is more than the cap. */
enum { GRID_CAP = 1 << 16 };

inline int grid_for(int64_t n, int each_block)
{
    const int64_t blocks = n / each_block + (n % each_block != 0);
    return blocks < GRID_CAP ? (int)blocks : (int)GRID_CAP;
}

/* Queues kernel<<<blocks, threads>>>(arguments...) on the context's stream. */
template <typename... Parameters, typename... Arguments>
spmv_status launch(spmv_context *ctx, const char *name, int blocks, int threads, void (*kernel)(Parameters...),
                   Arguments... arguments)
{
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3((unsigned)blocks);
    config.blockDim = dim3((unsigned)threads);
    config.stream = (cudaStream_t)ctx->stream;
    const cudaError_t error = cudaLaunchKernelEx(&config, kernel, static_cast<Parameters>(arguments)...);
    ((cuda_state *)ctx->device)->last_kernel = name;
    return cuda_check(ctx, error, name);
}

#ifndef SPMV_DEVICE_CUH
/* The same for a kernel with dynamic shared memory, which may be more than 48 KiB: the kernel is told so once for each
 * device. */
template <auto Kernel, typename... Arguments>
spmv_status launch_with_shared(spmv_context *ctx, const char *name, int blocks, int threads, int shared_bytes,
                               Arguments... arguments)
{
    static uint64_t told; /* a bit a device */
    const int device = ((cuda_state *)ctx->device)->device;
    const uint64_t bit = device < 64 ? (uint64_t)1 << device : 0;
    if ((__atomic_load_n(&told, __ATOMIC_RELAXED) & bit) == 0) {
        const cudaError_t error =
            cudaFuncSetAttribute((const void *)Kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes);
        if (error != cudaSuccess)
            return cuda_check(ctx, error, name);
        __atomic_fetch_or(&told, bit, __ATOMIC_RELAXED);
    }
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3((unsigned)blocks);
    config.blockDim = dim3((unsigned)threads);
    config.dynamicSmemBytes = (size_t)shared_bytes;
    config.stream = (cudaStream_t)ctx->stream;
    const cudaError_t error = cudaLaunchKernelEx(&config, Kernel, arguments...);
    ((cuda_state *)ctx->device)->last_kernel = name;
    return cuda_check(ctx, error, name);
}

/* Runs body, which queues kernels, on the context's device. */
template <typename Body> spmv_status on_device(spmv_context *ctx, Body body)
{
    const spmv_status st = cuda_enter(ctx);
    return st != SPMV_OK ? st : cuda_leave(ctx, body());
}
#endif

#endif

/* Kernel launches: grids from 64-bit sizes, and a check after each launch that names the kernel.
 *
 * In a user's program, spmv/device.cuh provides a context that is only a stream.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SPMV_LAUNCH_CUH
#define SPMV_LAUNCH_CUH

#include <cuda_runtime.h>
#include <initializer_list>
#include <limits.h>
#include <stdint.h>
#include <string.h>

#ifndef SPMV_DEVICE_CUH
extern "C" {
#include "core/runtime_cuda.h"
}
#endif

/* Architectures with a copy engine (copy_engine.cuh), times 10. Kernels for only these, or only the
 * others, have empty bodies elsewhere. */
#define SPMV_ENGINE_FROM 90
#define SPMV_ENGINE_BELOW 120

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 10 * SPMV_ENGINE_FROM && __CUDA_ARCH__ < 10 * SPMV_ENGINE_BELOW
#define SPMV_HAVE_COPY_ENGINE 1
#else
#define SPMV_HAVE_COPY_ENGINE 0
#endif

/* Blocks for n independent items, each_block per block. Kernels loop if n needs more blocks than
 * the cap. */
enum { grid_cap = 1 << 16 };

inline int grid_for(int64_t n, int each_block)
{
    const int64_t blocks = n / each_block + (n % each_block != 0);
    return blocks < grid_cap ? (int)blocks : (int)grid_cap;
}

/* shared_bytes: dynamic shared memory.
 * early: the kernel may start while the one before it in the stream still runs, if the device and
 * its code support that. Such a kernel calls griddepcontrol.wait before it accesses anything that
 * earlier kernels access. Ignored on the default stream, which synchronises with other streams.
 * together: the blocks wait for each other, so all must run at once (a cooperative launch).
 * cluster: this many blocks share their shared memory (at most 8, a divisor of the grid,
 * architecture 9.0 or newer) and also run at once; 0: none. */
struct launch_shape {
    int blocks, threads, shared_bytes;
    bool early, together = false;
    int cluster = 0;
};

/* Queues kernel<<<...>>>(arguments...) on the context's stream. */
template <typename... Parameters, typename... Arguments>
spmv_status launch_shaped(spmv_context *ctx, const char *name, launch_shape shape, void (*kernel)(Parameters...),
                          Arguments... arguments)
{
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3((unsigned)shape.blocks);
    config.blockDim = dim3((unsigned)shape.threads);
    config.dynamicSmemBytes = (size_t)shape.shared_bytes;
    config.stream = (cudaStream_t)ctx->stream;
#ifndef SPMV_DEVICE_CUH
    cudaLaunchAttribute attribute = {};
    if (shape.cluster > 0) {
        attribute.id = cudaLaunchAttributeClusterDimension;
        attribute.val.clusterDim.x = (unsigned)shape.cluster;
        attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
    } else if (shape.together) {
        attribute.id = cudaLaunchAttributeCooperative;
        attribute.val.cooperative = 1;
    } else {
        attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
        attribute.val.programmaticStreamSerializationAllowed = 1;
    }
    cuda_state *const device = (cuda_state *)ctx->device;
    const bool early =
        shape.early && !device->in_order && device->code_version >= 90 && config.stream != cudaStreamLegacy;
    device->in_order = false;
    config.attrs = &attribute;
    config.numAttrs = early || shape.together || shape.cluster > 0 ? 1 : 0;
#endif
    const cudaError_t error = cudaLaunchKernelEx(&config, kernel, static_cast<Parameters>(arguments)...);
    ((cuda_state *)ctx->device)->last_kernel = name;
    return cuda_check(ctx, error, name);
}

template <typename... Parameters, typename... Arguments>
spmv_status launch(spmv_context *ctx, const char *name, int blocks, int threads, void (*kernel)(Parameters...),
                   Arguments... arguments)
{
    return launch_shaped(ctx, name, {blocks, threads, 0, false}, kernel, arguments...);
}

#ifndef SPMV_DEVICE_CUH
template <typename... Parameters, typename... Arguments>
spmv_status launch_early(spmv_context *ctx, const char *name, int blocks, int threads, void (*kernel)(Parameters...),
                         Arguments... arguments)
{
    return launch_shaped(ctx, name, {blocks, threads, 0, true}, kernel, arguments...);
}

/* Sets an attribute of a kernel once per device; told has one bit per device. */
inline spmv_status once_a_device(spmv_context *ctx, const char *name, uint64_t *told, const void *kernel,
                                 cudaFuncAttribute attribute, int value)
{
    const int device = ((cuda_state *)ctx->device)->device;
    const uint64_t bit = device < 64 ? (uint64_t)1 << device : 0;
    if ((__atomic_load_n(told, __ATOMIC_RELAXED) & bit) != 0)
        return SPMV_OK;
    const spmv_status st = cuda_check(ctx, cudaFuncSetAttribute(kernel, attribute, value), name);
    if (st == SPMV_OK)
        __atomic_fetch_or(told, bit, __ATOMIC_RELAXED);
    return st;
}

/* Launches a kernel with dynamic shared memory, which may exceed 48 KiB. */
template <auto Kernel, typename... Arguments>
spmv_status launch_with_shared(spmv_context *ctx, const char *name, launch_shape shape, Arguments... arguments)
{
    static uint64_t told;
    const spmv_status st = once_a_device(ctx, name, &told, (const void *)Kernel,
                                         cudaFuncAttributeMaxDynamicSharedMemorySize, shape.shared_bytes);
    return st != SPMV_OK ? st : launch_shaped(ctx, name, shape, Kernel, arguments...);
}

/* Bytes of shared memory in a multiprocessor's `bytes` of combined cache and shared memory if
 * `percent` are requested: the next larger size that any architecture supports (CUDA C++
 * Programming Guide, "Shared memory"). */
inline int shared_part(int bytes, int percent)
{
    const int64_t asked = (int64_t)bytes * percent / 100;
    for (int kib : {8, 16, 32, 64, 100, 132, 164, 196})
        if (asked <= kib * 1024 && kib * 1024 <= bytes)
            return kib * 1024;
    return bytes;
}

/* Dynamic shared memory to request besides the `fixed` bytes of a block, so that a multiprocessor
 * with `shared` bytes holds at most `most` blocks at once. Limited to what every kernel may
 * request. */
inline int shared_filler(int shared, int most, int fixed)
{
    constexpr int reserved = 1024 /* a block */, line = 128 /* granularity */, any = 48 * 1024;
    const int each = (shared / most - reserved) / line * line, more = (each < any ? each : any) - fixed;
    return more > 0 ? more : 0;
}

/* For a kernel without dynamic shared memory: the blocks that a multiprocessor holds at once, and
 * the bytes of a block's shared memory. known caches both for the process; 0 at first. */
inline spmv_status kernel_facts(spmv_context *ctx, const char *name, const void *kernel, int threads, uint64_t *known,
                                int *resident, int *fixed)
{
    uint64_t facts = __atomic_load_n(known, __ATOMIC_RELAXED);
    if (facts == 0) {
        cudaFuncAttributes attributes = {};
        int blocks = 0;
        spmv_status st = cuda_check(ctx, cudaFuncGetAttributes(&attributes, kernel), name);
        if (st == SPMV_OK)
            st = cuda_check(ctx, cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, threads, 0), name);
        if (st != SPMV_OK)
            return st;
        facts = (uint64_t)(blocks > 0 ? blocks : 1) << 32 | attributes.sharedSizeBytes;
        __atomic_store_n(known, facts, __ATOMIC_RELAXED);
    }
    *resident = (int)(facts >> 32);
    *fixed = (int)(uint32_t)facts;
    return SPMV_OK;
}

/* Launches a kernel early that has no dynamic shared memory and prefers at most shared_percent of a
 * multiprocessor's memory as shared memory, the rest as cache. Early blocks start where the
 * previous launch leaves room. Without a limit, the multiprocessors that finish first take the
 * remaining blocks, and some get half as many again as others. So each block requests unused shared
 * memory that limits a multiprocessor to its share. */
template <auto Kernel, typename... Arguments>
spmv_status launch_cached(spmv_context *ctx, const char *name, int blocks, int threads, int shared_percent,
                          Arguments... arguments)
{
    static uint64_t told, known;
    const cuda_state *const device = (const cuda_state *)ctx->device;
    int resident = 0, fixed = 0;
    spmv_status st = once_a_device(ctx, name, &told, (const void *)Kernel,
                                   cudaFuncAttributePreferredSharedMemoryCarveout, shared_percent);
    if (st == SPMV_OK)
        st = kernel_facts(ctx, name, (const void *)Kernel, threads, &known, &resident, &fixed);
    if (st != SPMV_OK)
        return st;
    const int share = (blocks - 1) / device->multiprocessors + 1;
    const bool crowded = share <= resident && 2 * share > resident;
    const int filler = crowded ? shared_filler(shared_part(device->shared_bytes, shared_percent), share, fixed) : 0;
    return launch_shaped(ctx, name, {blocks, threads, filler, true}, Kernel, arguments...);
}

/* Declares the block's dynamic shared memory, bytes at a multiple of 16. A seam: tests on the host
 * define it as other memory. */
#ifndef SPMV_DYNAMIC_SHARED
#define SPMV_DYNAMIC_SHARED(name) extern __shared__ __align__(16) unsigned char name[]
#endif

/* Lets the next kernel start; it calls await_kernel_before where it depends on this one. */
__device__ inline void let_next_begin()
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

/* Waits until the kernel before this one has finished and its writes are visible. */
__device__ inline void await_kernel_before()
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

/* Runs body, which queues kernels, with the context's device current. */
template <typename Body> spmv_status on_device(spmv_context *ctx, Body body)
{
    const spmv_status st = cuda_enter(ctx);
    return st != SPMV_OK ? st : cuda_leave(ctx, body());
}
#endif

#endif

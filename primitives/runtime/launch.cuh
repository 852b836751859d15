/* Launching kernels: grids from 64-bit sizes, and a check after each launch that names the kernel.
 *
 * In a program of a user, spmv/device.cuh has said what stands for a context: a stream.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SPMV_LAUNCH_CUH
#define SPMV_LAUNCH_CUH

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
#define SPMV_ENGINE_FROM 90
#define SPMV_ENGINE_BELOW 120

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 10 * SPMV_ENGINE_FROM && __CUDA_ARCH__ < 10 * SPMV_ENGINE_BELOW
#define SPMV_HAVE_COPY_ENGINE 1
#else
#define SPMV_HAVE_COPY_ENGINE 0
#endif

/* Blocks for n independent items, each_block a block; kernels loop where that is more than the cap. */
enum { grid_cap = 1 << 16 };

inline int grid_for(int64_t n, int each_block)
{
    const int64_t blocks = n / each_block + (n % each_block != 0);
    return blocks < grid_cap ? (int)blocks : (int)grid_cap;
}

/* shared_bytes: of dynamic shared memory. early: the kernel calls griddepcontrol.wait before it reads or writes what
 * kernels before it wrote or read, so it may begin while the one before it in the stream still runs, where the device
 * and the code that it runs can do that. (The default stream is left out: it waits for other streams in ways of its
 * own.) together: the blocks wait for each other, so all must run at once (a cooperative launch). cluster: so many
 * blocks share their memories (at most 8; the grid a multiple; from 9.0 on), which also run at once; 0: none. */
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

/* Tells the device something about a kernel, once a device; told: a bit each. */
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

/* For a kernel with dynamic shared memory, which may be more than 48 KiB. */
template <auto Kernel, typename... Arguments>
spmv_status launch_with_shared(spmv_context *ctx, const char *name, launch_shape shape, Arguments... arguments)
{
    static uint64_t told;
    const spmv_status st = once_a_device(ctx, name, &told, (const void *)Kernel,
                                         cudaFuncAttributeMaxDynamicSharedMemorySize, shape.shared_bytes);
    return st != SPMV_OK ? st : launch_shaped(ctx, name, shape, Kernel, arguments...);
}

/* Of an SM's memory for caches and shared memory, in bytes, the shared part when so many percent are asked for: the
 * next larger of the parts that there are on any architecture (CUDA C++ Programming Guide, "Shared memory"). */
inline int shared_part(int bytes, int percent)
{
    const int64_t asked = (int64_t)bytes * percent / 100;
    for (int kib : {8, 16, 32, 64, 100, 132, 164, 196})
        if (asked <= kib * 1024 && kib * 1024 <= bytes)
            return kib * 1024;
    return bytes;
}

/* Shared memory that a block is to ask for besides the `fixed` bytes it has, so that an SM with `shared` bytes holds no
 * more than `most` of them at once; as much as any kernel may ask for, at most. */
inline int shared_filler(int shared, int most, int fixed)
{
    constexpr int reserved = 1024 /* of each block, by the system */, line = 128 /* in whole ones */, any = 48 * 1024;
    const int each = (shared / most - reserved) / line * line, more = (each < any ? each : any) - fixed;
    return more > 0 ? more : 0;
}

/* Of a kernel without dynamic shared memory, once a process: how many blocks an SM holds at once, and the bytes of a
 * block's shared memory. known: both, 0 at first. */
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

/* For a kernel without dynamic shared memory that begins early, and that wants no more than so many percent of an SM's
 * memory as shared memory, the rest as cache. Blocks that begin early go where the launch before them has left room.
 * Where that is some for each SM, but not enough for all blocks, the rest comes to who is free first, and some SMs get
 * half as many blocks again as others. So an SM is to hold no more of such a launch than is its share: what keeps
 * others off is shared memory that nobody uses. */
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

/* The kernel after this one may begin: it waits for this one's end where it must. */
__device__ inline void let_next_begin()
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

/* Until the kernel before this one has ended and what it wrote is there. */
__device__ inline void await_kernel_before()
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

/* Runs body, which queues kernels, on the context's device. */
template <typename Body> spmv_status on_device(spmv_context *ctx, Body body)
{
    const spmv_status st = cuda_enter(ctx);
    return st != SPMV_OK ? st : cuda_leave(ctx, body());
}
#endif

#endif

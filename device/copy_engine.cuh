/* The copy engine: a unit of a multiprocessor that copies contiguous bytes between device and
 * shared memory while the threads do other work.
 *
 * One thread starts a copy. To shared memory: an mbarrier in shared memory counts the bytes that
 * arrive, and all threads wait on it. To device memory: the thread that started the copy waits
 * until the engine has read shared memory, or until everything is written. Addresses and byte
 * counts are multiples of 16.
 * The engine and the threads access shared memory through different proxies. The engine sees what
 * threads wrote after each of them has called engine_fence and then passed a barrier.
 * Available on architectures 9.0 to 11. On others the functions do nothing, and the host checks
 * engine_there first.
 * Source: PTX ISA, "Data movement and conversion instructions: bulk copy", "mbarrier".
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SPMV_COPY_ENGINE_CUH
#define SPMV_COPY_ENGINE_CUH

#include "device/launch.cuh"

/* Whether the code that runs on the context's device was compiled for an architecture with the
 * engine. */
inline bool engine_there(const spmv_context *ctx)
{
    const int code = ((const cuda_state *)ctx->device)->code_version;
    return code >= SPMV_ENGINE_FROM && code < SPMV_ENGINE_BELOW;
}

/* An mbarrier. A phase ends when engine_expect or engine_expect_nothing has been called as often as
 * engine_prepare was told, and the bytes have arrived. */
using arrival = uint64_t;

__device__ inline unsigned shared_address(const void *shared)
{
#ifdef __CUDA_ARCH__
    return (unsigned)__cvta_generic_to_shared(shared);
#else
    (void)shared;
    return 0;
#endif
}

/* Called by all lanes of a warp, then engine_prepared, then a barrier. calls: those that end a
 * phase. */
__device__ inline void engine_prepare(arrival *arrivals, int count, int calls = 1)
{
#if SPMV_HAVE_COPY_ENGINE
    for (int a = (int)threadIdx.x % 32; a < count; a += 32)
        asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(arrivals + a)), "r"(calls)
                     : "memory");
#else
    (void)arrivals;
    (void)count;
    (void)calls;
#endif
}

__device__ inline void engine_prepared()
{
#if SPMV_HAVE_COPY_ENGINE
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncwarp();
#endif
}

__device__ inline void engine_expect(arrival *at, unsigned bytes)
{
#if SPMV_HAVE_COPY_ENGINE
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(at)), "r"(bytes)
                 : "memory");
#else
    (void)at;
    (void)bytes;
#endif
}

__device__ inline void engine_expect_nothing(arrival *at)
{
#if SPMV_HAVE_COPY_ENGINE
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(at)) : "memory");
#else
    (void)at;
#endif
}

/* Waits until phase number phase (0, 1, ...) has ended. It may be the last that has ended, or the one
 * after that; no other, because only the parity of the number counts. */
__device__ inline void engine_await(arrival *at, unsigned phase)
{
#if SPMV_HAVE_COPY_ENGINE
    unsigned ended = 0;
    while (ended == 0)
        asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
                     : "=r"(ended)
                     : "r"(shared_address(at)), "r"(phase & 1u)
                     : "memory");
#else
    (void)at;
    (void)phase;
#endif
}

/* Whether that phase has ended. */
__device__ inline bool engine_arrived(arrival *at, unsigned phase)
{
    unsigned ended = 0;
#if SPMV_HAVE_COPY_ENGINE
    asm volatile("{ .reg .pred p; mbarrier.test_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
                 : "=r"(ended)
                 : "r"(shared_address(at)), "r"(phase & 1u)
                 : "memory");
#else
    (void)at;
    (void)phase;
#endif
    return ended != 0;
}

__device__ inline void engine_load(void *shared, const void *memory, unsigned bytes, arrival *at)
{
#if SPMV_HAVE_COPY_ENGINE
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                     shared_address(shared)),
                 "l"(memory), "r"(bytes), "r"(shared_address(at))
                 : "memory");
#else
    (void)shared;
    (void)memory;
    (void)bytes;
    (void)at;
#endif
}

__device__ inline void engine_store(void *memory, const void *shared, unsigned bytes)
{
#if SPMV_HAVE_COPY_ENGINE
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(memory),
                 "r"(shared_address(shared)), "r"(bytes)
                 : "memory");
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
#else
    (void)memory;
    (void)shared;
    (void)bytes;
#endif
}

/* Waits until all stores of this thread except the PENDING latest have read shared memory. */
template <int PENDING> __device__ void engine_await_reads()
{
#if SPMV_HAVE_COPY_ENGINE
    asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(PENDING) : "memory");
#endif
}

__device__ inline void engine_fence()
{
#if SPMV_HAVE_COPY_ENGINE
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
}

#endif

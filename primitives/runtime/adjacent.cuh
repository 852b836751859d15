/* What blocks need that wait for each other: tickets, and flags that publish what was written before them.
 *
 * Progress: a block that waits must wait only for blocks with smaller tickets. A ticket is taken by a block that runs,
 * so all with smaller tickets run or are done; the one with the smallest unfinished ticket waits for nobody, so it
 * ends; and so on. Block numbers of the hardware promise no such order. On the host blocks run one after the other, in
 * the order of their tickets: nobody ever waits.
 *
 * PTX ISA, "Memory consistency model": release and acquire at device scope.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SPMV_ADJACENT_CUH
#define SPMV_ADJACENT_CUH

#include "host_device.cuh"

/* 0, 1, 2, ...: the next of a counter that began at 0. */
__host__ __device__ inline int64_t take_ticket(unsigned long long *counter)
{
#ifdef __CUDA_ARCH__
    return (int64_t)atomicAdd(counter, 1ull);
#else
    return (int64_t)(*counter)++;
#endif
}

/* What this thread wrote before is seen by whoever sees the flag. */
__host__ __device__ inline void raise_flag(unsigned *flag)
{
#ifdef __CUDA_ARCH__
    asm volatile("st.release.gpu.u32 [%0], %1;" : : "l"(flag), "r"(1u) : "memory");
#else
    __atomic_store_n(flag, 1u, __ATOMIC_RELEASE);
#endif
}

__host__ __device__ inline bool flag_is_up(const unsigned *flag)
{
    unsigned up;
#ifdef __CUDA_ARCH__
    asm volatile("ld.acquire.gpu.u32 %0, [%1];" : "=r"(up) : "l"(flag) : "memory");
#else
    up = __atomic_load_n(flag, __ATOMIC_ACQUIRE);
#endif
    return up != 0;
}

#endif

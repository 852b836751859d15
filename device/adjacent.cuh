/* Synchronisation between blocks of one launch: tickets, and flags that publish earlier writes.
 *
 * Progress: a block may wait only for blocks with smaller tickets. Only a running block takes a
 * ticket, so all blocks with smaller tickets are running or finished. The block with the smallest
 * unfinished ticket waits for no other block and finishes; the rest follows by induction. Hardware
 * block numbers guarantee no such order. On the host, blocks run one after the other in ticket
 * order and never wait.
 *
 * Source: PTX ISA, "Memory consistency model": release and acquire at device scope.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SPMV_ADJACENT_CUH
#define SPMV_ADJACENT_CUH

#include "device/host_device.cuh"

/* Returns 0, 1, 2, ... from a counter that starts at 0. */
__host__ __device__ inline int64_t take_ticket(unsigned long long *counter)
{
#ifdef __CUDA_ARCH__
    return (int64_t)atomicAdd(counter, 1ull);
#else
    return (int64_t)(*counter)++;
#endif
}

/* Release: a thread that sees the flag also sees everything that this thread wrote before. */
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

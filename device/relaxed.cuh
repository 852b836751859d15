/* Reads of shared memory that other lanes may change in the meantime, by atomic operations.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SPMV_RELAXED_CUH
#define SPMV_RELAXED_CUH

#include <stdint.h>

__device__ inline int read_relaxed(const int *word)
{
#ifdef __CUDA_ARCH__
    int value;
    asm volatile("ld.relaxed.cta.shared.s32 %0, [%1];" : "=r"(value) : "r"((uint32_t)__cvta_generic_to_shared(word)));
    return value;
#else
    return *(const volatile int *)word;
#endif
}

#endif

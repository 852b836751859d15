/* Accesses to shared memory that other threads change in the meantime.
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

/* Words of 4 or 8 bytes in shared memory, each read and written by one access. Holds the address as
 * the instructions take it; otherwise the compiler computes it again for each of them. */
template <typename Word> struct shared_words {
    static_assert(sizeof(Word) == 4 || sizeof(Word) == 8, "a register or a pair");
#ifdef __CUDA_ARCH__
    uint32_t first;

    /* Called by all lanes of a warp. The compiler computes the result of a shuffle once only. */
    __device__ explicit shared_words(Word *words)
        : first(__shfl_sync(0xffffffffu, (uint32_t)__cvta_generic_to_shared(words), 0))
    {
    }
    __device__ Word read(int at) const
    {
        Word word;
        if constexpr (sizeof(Word) == 8)
            asm volatile("ld.relaxed.cta.shared.u64 %0, [%1];" : "=l"(word) : "r"(first + (uint32_t)at * 8));
        else
            asm volatile("ld.relaxed.cta.shared.u32 %0, [%1];" : "=r"(word) : "r"(first + (uint32_t)at * 4));
        return word;
    }
    __device__ void write(int at, Word word) const
    {
        if constexpr (sizeof(Word) == 8)
            asm volatile("st.relaxed.cta.shared.u64 [%0], %1;" ::"r"(first + (uint32_t)at * 8), "l"(word));
        else
            asm volatile("st.relaxed.cta.shared.u32 [%0], %1;" ::"r"(first + (uint32_t)at * 4), "r"(word));
    }
#else
    volatile Word *first;

    explicit shared_words(Word *words) : first(words)
    {
    }
    Word read(int at) const
    {
        return first[at];
    }
    void write(int at, Word word) const
    {
        first[at] = word;
    }
#endif
};

#endif

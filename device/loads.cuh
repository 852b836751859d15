/* Loads with cache hints.
 *
 * All are volatile, so they run in program order and none moves across a wait for the kernel before
 * (launch.cuh).
 * Source: PTX ISA, "Data movement and conversion instructions: ld", "createpolicy".
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SPMV_LOADS_CUH
#define SPMV_LOADS_CUH

#include <spmv/types.h>
#include <string.h>
#include <type_traits>

#include "device/host_device.cuh"

enum class caching {
    ONCE, /* for data read once: evicted first, so that it does not evict x */
    /* the last-level cache keeps a fixed share of the addresses; the others are evicted first */
    RETAINED,
};

/* The cache hint of the instruction. share: fraction of the addresses, for RETAINED. */
template <caching Policy> struct cache_hint {
    __device__ explicit cache_hint(float)
    {
    }
};

template <> struct cache_hint<caching::RETAINED> {
    uint64_t policy;

    __device__ explicit cache_hint(float share) : policy(0)
    {
#ifdef __CUDA_ARCH__
        asm volatile("createpolicy.fractional.L2::evict_last.L2::evict_first.b64 %0, %1;" : "=l"(policy) : "f"(share));
#else
        (void)share;
#endif
    }
};

/* load(from) is *from, of 1, 2, 4, 8 or 16 bytes. An integer of 8 or 16 bits is returned as
 * int, because the instruction widens it. */
template <caching Policy> struct loads : cache_hint<Policy> {
    using cache_hint<Policy>::cache_hint;

#ifdef __CUDA_ARCH__
#define LOAD_WORD_(width, constraint, word)                                                                            \
    if constexpr (Policy == caching::ONCE)                                                                             \
        asm volatile("ld.global.cs" width " %0, [%1];" : constraint(word) : "l"(from));                                \
    else                                                                                                               \
        asm volatile("ld.global.L1::no_allocate.L2::cache_hint" width " %0, [%1], %2;"                                 \
                     : constraint(word)                                                                                \
                     : "l"(from), "l"(this->policy))

    template <typename T> __device__ auto operator()(const T *from) const
    {
        T value;
        if constexpr (std::is_integral<T>::value && sizeof(T) <= 2) {
            static_assert(std::is_unsigned<T>::value, "widened by zeros");
            int word;
            if constexpr (sizeof(T) == 1) {
                LOAD_WORD_(".u8", "=r", word);
            } else {
                LOAD_WORD_(".u16", "=r", word);
            }
            return word;
        } else if constexpr (sizeof(T) == 2) {
            uint16_t word;
            LOAD_WORD_(".u16", "=h", word);
            memcpy(&value, &word, sizeof value);
            return value;
        } else if constexpr (sizeof(T) == 4) {
            uint32_t word;
            LOAD_WORD_(".u32", "=r", word);
            memcpy(&value, &word, sizeof value);
            return value;
        } else if constexpr (sizeof(T) == 8) {
            uint64_t word;
            LOAD_WORD_(".u64", "=l", word);
            memcpy(&value, &word, sizeof value);
            return value;
        } else {
            static_assert(sizeof(T) == 16, "1, 2, 4, 8 or 16 bytes");
            uint64_t word[2];
            if constexpr (Policy == caching::ONCE)
                asm volatile("ld.global.cs.v2.u64 {%0, %1}, [%2];" : "=l"(word[0]), "=l"(word[1]) : "l"(from));
            else
                asm volatile("ld.global.L1::no_allocate.L2::cache_hint.v2.u64 {%0, %1}, [%2], %3;"
                             : "=l"(word[0]), "=l"(word[1])
                             : "l"(from), "l"(this->policy));
            memcpy(&value, word, sizeof value);
            return value;
        }
    }
#undef LOAD_WORD_
#else
    template <typename T> __device__ auto operator()(const T *from) const
    {
        if constexpr (std::is_integral<T>::value && sizeof(T) <= 2)
            return (int)*from;
        else
            return *from;
    }
#endif
};

template <typename T> __device__ auto load_once(const T *from)
{
    return loads<caching::ONCE>(0)(from);
}

/* Loads an element of x with normal caching, after the wait for the kernel before, which may have
 * written it. */
template <typename T> __device__ T load_gathered(const T *from)
{
#ifdef __CUDA_ARCH__
    T value;
    if constexpr (std::is_same<T, spmv_c64>::value)
        asm volatile("ld.global.v2.f32 {%0, %1}, [%2];" : "=f"(value.re), "=f"(value.im) : "l"(from));
    else if constexpr (std::is_same<T, spmv_c128>::value)
        asm volatile("ld.global.v2.f64 {%0, %1}, [%2];" : "=d"(value.re), "=d"(value.im) : "l"(from));
    else if constexpr (sizeof(T) == 2) {
        uint16_t word;
        asm volatile("ld.global.u16 %0, [%1];" : "=h"(word) : "l"(from));
        memcpy(&value, &word, sizeof value);
    } else if constexpr (sizeof(T) == 4)
        asm volatile("ld.global.f32 %0, [%1];" : "=f"(value) : "l"(from));
    else
        asm volatile("ld.global.f64 %0, [%1];" : "=d"(value) : "l"(from));
    return value;
#else
    return *from;
#endif
}

#ifdef __CUDA_ARCH__
#define LOAD_IF_(instruction, constraint, word)                                                                        \
    asm volatile("{ .reg .pred p; setp.ne.s32 p, %2, 0; @p " instruction " %0, [%1]; }"                                \
                 : constraint(word)                                                                                    \
                 : "l"(from), "r"((int)wanted))
#define LOAD_PAIR_IF_(instruction, constraint, first, second)                                                          \
    asm volatile("{ .reg .pred p; setp.ne.s32 p, %3, 0; @p " instruction " {%0, %1}, [%2]; }"                          \
                 : constraint(first), constraint(second)                                                               \
                 : "l"(from), "r"((int)wanted))
#endif

/* Where `wanted`: *number = *from, as load_gathered. Otherwise nothing is accessed, and number keeps
 * its value. No branch. */
template <typename T> __device__ void load_gathered_if(bool wanted, const T *from, T *number)
{
#ifdef __CUDA_ARCH__
    if constexpr (std::is_same<T, spmv_c64>::value) {
        LOAD_PAIR_IF_("ld.global.v2.f32", "+f", number->re, number->im);
    } else if constexpr (std::is_same<T, spmv_c128>::value) {
        LOAD_PAIR_IF_("ld.global.v2.f64", "+d", number->re, number->im);
    } else if constexpr (sizeof(T) == 4) {
        LOAD_IF_("ld.global.f32", "+f", *number);
    } else if constexpr (sizeof(T) == 2) {
        uint16_t word;
        memcpy(&word, number, sizeof word);
        LOAD_IF_("ld.global.u16", "+h", word);
        memcpy(number, &word, sizeof word);
    } else {
        static_assert(std::is_floating_point<T>::value, "one register or a pair");
        LOAD_IF_("ld.global.f64", "+d", *number);
    }
#else
    if (wanted)
        *number = *from;
#endif
}

/* The same as load_once; 2, 4, 8 or 16 bytes. */
template <typename T> __device__ void load_once_if(bool wanted, const T *from, T *value)
{
#ifdef __CUDA_ARCH__
    static_assert(sizeof(T) == 2 || sizeof(T) == 4 || sizeof(T) == 8 || sizeof(T) == 16, "one instruction");
    if constexpr (sizeof(T) == 2) {
        uint16_t word;
        memcpy(&word, value, sizeof word);
        LOAD_IF_("ld.global.cs.u16", "+h", word);
        memcpy(value, &word, sizeof word);
    } else if constexpr (sizeof(T) == 4) {
        uint32_t word;
        memcpy(&word, value, sizeof word);
        LOAD_IF_("ld.global.cs.u32", "+r", word);
        memcpy(value, &word, sizeof word);
    } else {
        uint64_t word[sizeof(T) / 8];
        memcpy(word, value, sizeof word);
        if constexpr (sizeof(T) == 8)
            LOAD_IF_("ld.global.cs.u64", "+l", word[0]);
        else
            LOAD_PAIR_IF_("ld.global.cs.v2.u64", "+l", word[0], word[1]);
        memcpy(value, word, sizeof word);
    }
#else
    if (wanted)
        *value = *from;
#endif
}
#undef LOAD_IF_
#undef LOAD_PAIR_IF_

/* Begins to copy 16 bytes, at multiples of 16, to shared memory, past the registers and the
 * first-level cache. Other threads see them after await_copies and a barrier. */
template <typename T> __device__ void begin_copy(T *shared, const T *from)
{
    static_assert(sizeof(T) == 16, "one instruction");
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    asm volatile("{ .reg .u64 to; .reg .u32 at; cvta.to.shared.u64 to, %0; cvt.u32.u64 at, to; "
                 "cp.async.cg.shared.global [at], [%1], 16; }" ::"l"(shared),
                 "l"(from)
                 : "memory");
#else
    *shared = *from;
#endif
}

/* The same for BYTES = 4, 8 or 16 at multiples of BYTES: a copy, or zeros if it is not wanted. */
template <int BYTES, typename T> __device__ void begin_copy_if(bool wanted, T *shared, const T *from)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    const unsigned at = (unsigned)__cvta_generic_to_shared(shared);
    const int bytes = wanted ? BYTES : 0;
    if constexpr (BYTES == 16)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(at), "l"(from), "r"(bytes) : "memory");
    else
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(at), "l"(from), "n"(BYTES), "r"(bytes)
                     : "memory");
#else
    for (int k = 0; k < BYTES / (int)sizeof(T); k++)
        shared[k] = wanted ? from[k] : T();
#endif
}

/* Ends a batch of copies; await_copies_but<N> waits for all batches of this thread but the last N. */
__device__ inline void end_copies()
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

template <int N> __device__ void await_copies_but()
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
#endif
}

/* Waits for the copies that this thread has begun. */
__device__ inline void await_copies()
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_all;" ::: "memory");
#endif
}

/* Makes the compiler compute an address here once, instead of before each use. */
template <typename T> __device__ const T *settled(const T *address)
{
#ifdef __CUDA_ARCH__
    asm volatile("" : "+l"(address));
#endif
    return address;
}

/* Tells the compiler that an address is in global memory, which it does not see from a settled one. */
template <typename T> __device__ const T *in_global(const T *address)
{
#ifdef __CUDA_ARCH__
    __builtin_assume(__isGlobal(address));
#endif
    return address;
}

#endif

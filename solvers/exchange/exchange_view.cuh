/* For kernels that exchange data with kernels of other ranks, on other GPUs.
 *
 * Parts:     the part of a sum of each chunk goes to all ranks. It travels in words of 64 bits, half
 *            data and half the number of the exchange, which a GPU writes and reads as one. A thread
 *            that reads the right number thus has the data: no flag, no fence and no last block. (NCCL's
 *            protocol "LL" is the source of this idea.)
 * Elements:  are written, then a flag is set.
 *
 * Nothing that is still needed is overwritten. A rank publishes parts of sum k + 2 only after it has
 * collected sum k + 1 of all ranks, which these publish after they have collected sum k. (Each block that
 * publishes parts of the squares has collected p'q before.) Between two fetches either there is a sum,
 * which a rank publishes after it has stored the elements of the first one; or elements come from all ranks
 * to which some go (exchange_peer.c, is_mutual); or the host waits for all ranks (exchange.h, "careful").
 * For this each rank must have a chunk.
 *
 * Source: PTX ISA, "Memory consistency model": a release at system scope makes what a block has
 * written, and what it has seen of others by a fence, visible to the one that acquires.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef EXCHANGE_VIEW_CUH
#define EXCHANGE_VIEW_CUH

#include <sched.h>
#include <string.h>
#include <time.h>

#include "device/launch.cuh"
#include "solvers/exchange/part_sums.cuh"

extern "C" {
#include "solvers/exchange/exchange_view.h"
}

namespace exchanging
{

__device__ inline void set_flag(exchange_flag *flag, unsigned number)
{
#ifdef __CUDA_ARCH__
    asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(&flag->number), "r"(number) : "memory");
#else
    __atomic_store_n(&flag->number, number, __ATOMIC_RELEASE);
#endif
}

__device__ inline unsigned flag_number(const exchange_flag *flag)
{
#ifdef __CUDA_ARCH__
    unsigned number;
    asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(number) : "l"(&flag->number) : "memory");
    return number;
#else
    return __atomic_load_n(&flag->number, __ATOMIC_ACQUIRE);
#endif
}

__device__ inline unsigned long long nanoseconds()
{
#ifdef __CUDA_ARCH__
    unsigned long long now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
#else
    timespec now;
    timespec_get(&now, TIME_UTC);
    return (unsigned long long)now.tv_sec * 1000000000 + (unsigned long long)now.tv_nsec;
#endif
}

/* Waits until ready(), for at most EXCHANGE_MOST_SECONDS, and while nothing stops all waits. Looks at host
 * memory seldom: if all threads of a GPU do, that takes longer than the usual wait, so the other GPUs would
 * come to do so too. */
template <typename Ready> __device__ void wait_until(const Ready &ready, volatile int *stop)
{
    constexpr unsigned POLLS = 256; /* between looks at the clock */
    constexpr unsigned long long LOOK = 5000000, MOST = EXCHANGE_MOST_SECONDS * 1000000000ull;
    const unsigned long long begin = nanoseconds();
    unsigned long long look = begin + LOOK;
    for (unsigned polls = 1; !ready(); polls++) {
        if (polls % POLLS != 0)
            continue;
#ifndef __CUDA_ARCH__
        sched_yield();
#endif
        const unsigned long long now = nanoseconds();
        if (now < look)
            continue;
        look = now + LOOK;
        if (*stop != 0)
            return;
        if (now - begin > MOST)
            *stop = EXCHANGE_LOST;
    }
}

__device__ inline void await_flag(const exchange_flag *flag, unsigned number, volatile int *stop)
{
    wait_until([=] { return (int)(flag_number(flag) - number) >= 0; }, stop);
}

/* What a block has written becomes visible to the other blocks of this GPU, or also to other GPUs. */
enum fence { ONE_GPU, ALL_GPUS };

template <fence REACH> __device__ void make_visible()
{
    if (REACH == ALL_GPUS)
        __threadfence_system();
    else
        __threadfence();
}

/* Whether this is the last of `all` arrivals of blocks; all threads get the answer, and the last block
 * sees what the others wrote. */
template <fence REACH> __device__ bool is_last(unsigned *blocks, unsigned all)
{
    __shared__ int last;
    __syncthreads();
    if (threadIdx.x == 0) {
        make_visible<REACH>();
        last = atomicInc(blocks, all - 1) == all - 1;
        make_visible<REACH>();
    }
    __syncthreads();
    return last != 0;
}

/* ------------------------------------------------------------- parts */

/* Words of a part, which may have several numbers: an even number of words. */
template <typename Part> __host__ __device__ constexpr int words_of()
{
    return (int)((sizeof(Part) + 7) / 8 * 2);
}

/* Two words in one access: each of them is whole. */
__device__ inline void store_words(uint64_t *to, uint64_t first, uint64_t second)
{
#ifdef __CUDA_ARCH__
    asm volatile("st.relaxed.sys.global.v2.u64 [%0], {%1, %2};" ::"l"(to), "l"(first), "l"(second) : "memory");
#else
    __atomic_store_n(to, first, __ATOMIC_RELAXED);
    __atomic_store_n(to + 1, second, __ATOMIC_RELAXED);
#endif
}

__device__ inline void load_words(const uint64_t *from, uint64_t *first, uint64_t *second)
{
#ifdef __CUDA_ARCH__
    asm volatile("ld.relaxed.sys.global.v2.u64 {%0, %1}, [%2];" : "=l"(*first), "=l"(*second) : "l"(from) : "memory");
#else
    *first = __atomic_load_n(from, __ATOMIC_RELAXED);
    *second = __atomic_load_n(from + 1, __ATOMIC_RELAXED);
#endif
}

/* Writes the part with the number of its exchange. */
template <typename Part> __device__ void send_part(uint64_t *to, Part part, unsigned number)
{
    constexpr int WORDS = words_of<Part>();
    uint32_t half[WORDS] = {};
    memcpy(half, &part, sizeof part);
#pragma unroll
    for (int w = 0; w < WORDS; w += 2)
        store_words(to + w, (uint64_t)number << 32 | half[w], (uint64_t)number << 32 | half[w + 1]);
}

/* Reads a part. Whether it is that of the exchange. */
template <typename Part> __device__ bool receive_part(const uint64_t *from, unsigned number, Part *part)
{
    constexpr int WORDS = words_of<Part>();
    uint32_t half[WORDS];
    bool here = true;
#pragma unroll
    for (int w = 0; w < WORDS; w += 2) {
        uint64_t first, second;
        load_words(from + w, &first, &second);
        half[w] = (uint32_t)first;
        half[w + 1] = (uint32_t)second;
        here = here && (unsigned)(first >> 32) == number && (unsigned)(second >> 32) == number;
    }
    memcpy(part, half, sizeof *part);
    return here;
}

/* Waits for a part; apart from the loop around it, which so needs few registers. */
template <typename Part>
__device__ __attribute__((noinline)) Part await_part(const uint64_t *from, unsigned number, volatile int *stop)
{
    Part part;
    wait_until([&] { return receive_part(from, number, &part); }, stop);
    return part;
}

/* Sends the part of own chunk c to all ranks. By a warp. */
template <typename Part> __device__ void publish(const exchange_view &v, int64_t c, Part part, unsigned number)
{
    for (int r = (int)threadIdx.x % warp_lanes; r < v.ranks; r += warp_lanes)
        send_part(v.boards[r].parts[number % 2] + (v.first_chunk + c) * words_of<Part>(), part, number);
}

/* The sum of the parts of all ranks, added as part_sums::sum_numbers does. All threads of a block get it. */
template <typename Part> __device__ Part collect(const exchange_view &v, unsigned number)
{
    constexpr int AT_ONCE = 3, WORDS = words_of<Part>(), BLOCK = part_sums::BLOCK; /* 3 * 512: all chunks */
    const int all = (int)v.all_chunks;
    const uint64_t *const from = v.parts[number % 2];
    Part sum = Part();
    for (int c = (int)threadIdx.x; c < all; c += AT_ONCE * BLOCK) {
        Part part[AT_ONCE];
        bool here[AT_ONCE];
#pragma unroll
        for (int k = 0; k < AT_ONCE; k++)
            here[k] = c + k * BLOCK >= all || receive_part(from + (c + k * BLOCK) * WORDS, number, &part[k]);
#pragma unroll
        for (int k = 0; k < AT_ONCE; k++) {
            if (!here[k])
                part[k] = await_part<Part>(from + (c + k * BLOCK) * WORDS, number, v.stop);
            if (c + k * BLOCK < all)
                sum += part[k];
        }
    }
    return part_sums::broadcast(part_sums::sum_block(sum));
}

/* ------------------------------------------------------------- elements */

/* Sends x_i for the sent elements i of chunk order[k], k < sending, which this block has written, and
 * after those of all chunks sets the flags. By a block: few have elements to send, so each thread has
 * several on their way at a time. */
template <typename T> __device__ void put_chunk(const exchange_view &v, int k, const T *x, unsigned number)
{
    constexpr int AT_ONCE = 8;
    __syncthreads();
    for (int r = v.range_of[k]; r < v.range_of[k + 1]; r++) {
        const exchange_range range = v.ranges[r];
        const exchange_target &target = v.targets[range.target];
        T *const to = (T *)target.to[number % 2] + (range.first - target.first);
        const int32_t *const sent = v.sent + range.first;
        for (int64_t i = threadIdx.x; i < range.count; i += AT_ONCE * part_sums::BLOCK) {
            int32_t from[AT_ONCE];
            T value[AT_ONCE];
#pragma unroll
            for (int j = 0; j < AT_ONCE; j++)
                from[j] = i + j * part_sums::BLOCK < range.count ? sent[i + j * part_sums::BLOCK] : sent[0];
#pragma unroll
            for (int j = 0; j < AT_ONCE; j++)
                value[j] = x[from[j]];
#pragma unroll
            for (int j = 0; j < AT_ONCE; j++)
                if (i + j * part_sums::BLOCK < range.count)
                    to[i + j * part_sums::BLOCK] = value[j];
        }
    }
    if (!is_last<ALL_GPUS>(&v.counters->put_blocks, (unsigned)v.sending))
        return;
    for (int t = (int)threadIdx.x; t < v.target_count; t += part_sums::BLOCK)
        set_flag(v.targets[t].flag, number);
}

} // namespace exchanging

#endif

/* Collective operations of a warp and of a block: ordered scans, ordered folds, a search.
 *
 * Order: operands are ordered by lane and thread number, so an operator need not be commutative.
 * The parenthesisation depends only on the block's fixed shape, so results are bitwise repeatable.
 * All block_threads threads of a block must call a function named block_... together.
 *
 * Source: W. D. Hillis, G. L. Steele 1986 (the scan within a warp); Sengupta et al. 2007 (warps,
 * then the block).
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SPMV_BLOCK_CUH
#define SPMV_BLOCK_CUH

#include <string.h>
#include <type_traits>

#include "device/ops.cuh"

enum { warp_lanes = 32, block_threads = 256, block_warps = block_threads / warp_lanes };
/* Applies shuffle to a number, or to each word of a struct. */
template <typename Type, typename Shuffle> __device__ Type shuffle_by(Type value, const Shuffle &shuffle)
{
    if constexpr (std::is_arithmetic<Type>::value) {
        return shuffle(value);
    } else {
        static_assert(sizeof(Type) % sizeof(int) == 0, "whole words");
        int word[sizeof(Type) / sizeof(int)];
        memcpy(word, &value, sizeof value);
#pragma unroll
        for (int w = 0; w < (int)(sizeof(Type) / sizeof(int)); w++)
            word[w] = shuffle(word[w]);
        memcpy(&value, word, sizeof value);
        return value;
    }
}

template <typename Type> __device__ Type shuffle_up(Type value, int distance)
{
    return shuffle_by(value, [=](auto word) { return __shfl_up_sync(0xffffffffu, word, (unsigned)distance); });
}

template <typename Type> __device__ Type shuffle_down(Type value, int distance)
{
    return shuffle_by(value, [=](auto word) { return __shfl_down_sync(0xffffffffu, word, (unsigned)distance); });
}

template <typename Type> __device__ segmented<Type> shuffle_up(segmented<Type> pair, int distance)
{
    return {shuffle_up(pair.value, distance), shuffle_up(pair.start, distance)};
}

/* The bits of an element of 8 Count bytes, for code that only moves elements. */
template <int Count> struct words {
    uint64_t at[Count];
};

/* Lane l gets value_0 op ... op value_l. */
template <typename Op> __device__ typename Op::type warp_inclusive(Op op, typename Op::type value)
{
    const int lane = (int)threadIdx.x % warp_lanes;
#pragma unroll
    for (int distance = 1; distance < warp_lanes; distance *= 2) {
        const typename Op::type before = shuffle_up(value, distance);
        if (lane >= distance)
            value = op(before, value);
    }
    return value;
}

/* Thread t gets value_0 op ... op value_{t-1} (thread 0 the identity). *all is the fold of the
 * values of all block_threads threads (or of a block of Warps warps), the same in every thread. Two
 * halves with a barrier between them; the second half takes the result of the first. warp_sums:
 * block_warps cells of shared memory, in use until the next barrier. */
template <typename Op>
__device__ typename Op::type block_exclusive_first(Op op, typename Op::type value, typename Op::type *warp_sums)
{
    const typename Op::type through = warp_inclusive(op, value);
    if (threadIdx.x % warp_lanes == warp_lanes - 1)
        warp_sums[threadIdx.x / warp_lanes] = through;
    return through;
}

template <int Warps = block_warps, typename Op>
__device__ typename Op::type block_exclusive_second(Op op, typename Op::type through,
                                                    const typename Op::type *warp_sums, typename Op::type *all)
{
    using Type = typename Op::type;
    const int lane = (int)threadIdx.x % warp_lanes, warp = (int)threadIdx.x / warp_lanes;
    Type before = Op::identity(), sum = warp_sums[0];
#pragma unroll
    for (int w = 1; w < Warps; w++) {
        if (w == warp)
            before = sum;
        sum = op(sum, warp_sums[w]);
    }
    const Type lanes_before = shuffle_up(through, 1);
    if (lane > 0)
        before = warp > 0 ? op(before, lanes_before) : lanes_before;
    *all = sum;
    return before;
}

/* Both halves, with the barrier. */
template <int Warps = block_warps, typename Op>
__device__ typename Op::type block_exclusive_once(Op op, typename Op::type value, typename Op::type *warp_sums,
                                                  typename Op::type *all)
{
    const typename Op::type through = block_exclusive_first(op, value, warp_sums);
    __syncthreads();
    return block_exclusive_second<Warps>(op, through, warp_sums, all);
}

/* The same; warp_sums is free again on return. */
template <int Warps = block_warps, typename Op>
__device__ typename Op::type block_exclusive(Op op, typename Op::type value, typename Op::type *warp_sums,
                                             typename Op::type *all)
{
    const typename Op::type before = block_exclusive_once<Warps>(op, value, warp_sums, all);
    __syncthreads(); /* all threads have read warp_sums */
    return before;
}

/* Whether this block is the last of the launch to get here; the others' earlier writes are then visible to
 * all its threads. ticket: 0 before and after.
 * Source: CUDA C++ Programming Guide, "Memory fence functions". */
__device__ inline bool block_is_last(unsigned *ticket)
{
    __shared__ bool last;
    __threadfence(); /* the writes are visible before the ticket */
    __syncthreads();
    if (threadIdx.x == 0)
        last = atomicInc(ticket, gridDim.x - 1) == gridDim.x - 1;
    __syncthreads();
    __threadfence(); /* all tickets are visible, so all writes are */
    return last;
}

/* Adds the numbers of the lanes to *to, in global memory. Called by all lanes of a warp. */
__device__ inline void atomic_add_of_warp(int64_t number, int64_t *to)
{
    for (int distance = warp_lanes / 2; distance > 0; distance /= 2)
        number += __shfl_down_sync(0xffffffffu, number, distance);
    if (threadIdx.x % warp_lanes == 0 && number != 0)
        atomicAdd((unsigned long long *)to, (unsigned long long)number);
}

/* Addition of counts. */
template <typename Count> struct add_counts_of {
    using type = Count;
    __host__ __device__ Count operator()(Count a, Count b) const
    {
        return a + b;
    }
    static __host__ __device__ Count identity()
    {
        return 0;
    }
};
using add_counts = add_counts_of<int>;

/* One round of the search below: [lo, hi) is split into block_threads parts of step entries. Thread
 * t reads the last entry of part t. */
struct search_round {
    int64_t lo, hi, step;

    __host__ __device__ search_round(int64_t from, int64_t to)
        : lo(from), hi(to), step((to - from + block_threads - 1) / block_threads)
    {
    }
    __host__ __device__ int64_t probe(int t) const
    {
        return lo + (t + 1) * step - 1;
    }
    /* below: the number of parts whose last entry is less than the target. The answer is in the
     * next part. */
    __host__ __device__ void narrow(int below)
    {
        lo += below * step;
        hi = lo + step - 1 < hi ? lo + step - 1 : hi;
    }
};

/* Returns the first s in [lo, hi) with position(s) >= target, else hi. position must be
 * nondecreasing. Takes a few rounds of block_threads probes in place of a chain of log2 dependent
 * loads. */
template <typename Position>
__device__ int64_t block_lower_bound(const Position &position, int64_t lo, int64_t hi, int64_t target)
{
    while (lo < hi) {
        search_round round(lo, hi);
        const int64_t s = round.probe((int)threadIdx.x);
        round.narrow(__syncthreads_count(s < hi && position(s) < target));
        lo = round.lo;
        hi = round.hi;
    }
    return lo;
}

/* The same search in [0, count) by one warp; guess is near the answer. First probes the 32 entries
 * around guess, which lie in one or two cache lines, then entries at doubling distances, then
 * narrows the interval in rounds of 32 probes. */
template <typename Position>
__device__ int64_t warp_lower_bound_near(const Position &position, int64_t count, int64_t guess, int64_t target)
{
    const int lane = (int)threadIdx.x % warp_lanes;
    const auto less = [&](int64_t at) {
        return __popc(__ballot_sync(0xffffffffu, at < 0 || (at < count && position(at) < target)));
    };
    const int64_t first = guess - warp_lanes / 2;
    int below = less(first + lane);
    /* the answer if the 32 entries include entries on both sides of it */
    int64_t lo = first + below, hi = lo;
    if (below == 0 || below == warp_lanes) {
        const int sign = below == 0 ? -1 : 1;
        const int64_t from = below == 0 ? first : first + warp_lanes - 1;
        /* ascending: to the left, lane 0 is the farthest; to the right, the nearest */
        const auto at = [=](int l) {
            return from + sign * ((int64_t)warp_lanes << (below == 0 ? warp_lanes - 1 - l : l));
        };
        const int farther = less(at(lane));
        lo = farther > 0 ? at(farther - 1) + 1 : 0;
        hi = farther < warp_lanes ? at(farther) : count;
        lo = sign > 0 && lo <= from ? from + 1 : lo;
        hi = sign < 0 && hi > from ? from : hi;
    }
    lo = lo < 0 ? 0 : lo;
    hi = hi < count ? hi : count;
    while (lo < hi) {
        const int64_t step = (hi - lo + warp_lanes - 1) / warp_lanes, at = lo + (lane + 1) * step - 1;
        below = __popc(__ballot_sync(0xffffffffu, at < hi && position(at) < target));
        lo += below * step;
        hi = lo + step - 1 < hi ? lo + step - 1 : hi;
    }
    return lo < count ? lo : count;
}

#endif

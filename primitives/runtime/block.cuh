/* What the threads of a warp and of a block do together: ordered scans, ordered folds, a search.
 *
 * Order: lane and thread numbers are the order of the operands, so an operator need not commute. How the operands are
 * parenthesised depends on nothing but the block's fixed shape, so the bits repeat.
 * All functions named block_... are called by all block_threads threads of a block, from code they all reach together.
 *
 * W. D. Hillis, G. L. Steele 1986 (the scan within a warp); Sengupta et al. 2007 (warps, then the block).
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SPMV_BLOCK_CUH
#define SPMV_BLOCK_CUH

#include <string.h>
#include <type_traits>

#include "ops.cuh"

enum { warp_lanes = 32, block_threads = 256, block_warps = block_threads / warp_lanes };
/* shuffle(number) for a number; a struct travels word by word. */
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

/* The bits of an element of 8 Count bytes, for what only moves elements. */
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

/* Thread t gets value_0 op ... op value_{t-1} (thread 0 the identity), and in *all, the same for all, the fold of all
 * block_threads values (or of a block of Warps warps). In two halves, with a barrier between them: the first returns
 * what the second takes. warp_sums: block_warps cells of shared memory, in use until the next barrier. */
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

/* Both, with the barrier. */
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
    __syncthreads(); /* all have read warp_sums */
    return before;
}

/* The operator of counts. */
struct add_counts {
    using type = int;
    __host__ __device__ int operator()(int a, int b) const
    {
        return a + b;
    }
    static __host__ __device__ int identity()
    {
        return 0;
    }
};

/* One round of the search below: [lo, hi) in block_threads pieces of step entries; thread t looks at the last entry of piece
 * t. */
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
    /* below pieces end below the target, so the next one holds the answer, or its last entry is the answer. */
    __host__ __device__ void narrow(int below)
    {
        lo += below * step;
        hi = lo + step - 1 < hi ? lo + step - 1 : hi;
    }
};

/* The first s in [lo, hi) with position(s) >= target, else hi. position must not descend. A few rounds of block_threads
 * probes instead of a chain of log2 dependent loads. */
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

/* The same of a warp on its own, in [0, count); guess: where the answer may be. First the 32 entries there, of one or
 * two lines of memory; then steps of growing length away from them; then rounds of 32 probes. */
template <typename Position>
__device__ int64_t warp_lower_bound_near(const Position &position, int64_t count, int64_t guess, int64_t target)
{
    const int lane = (int)threadIdx.x % warp_lanes;
    const auto less =
        [&](int64_t at) { /* how many of the lanes' entries, ascending, are */
                          return __popc(__ballot_sync(0xffffffffu, at < 0 || (at < count && position(at) < target)));
        };
    const int64_t first = guess - warp_lanes / 2;
    int below = less(first + lane);
    int64_t lo = first + below, hi = lo; /* the answer, where there are entries on both sides */
    if (below == 0 || below == warp_lanes) {
        const int sign = below == 0 ? -1 : 1;
        const int64_t from = below == 0 ? first : first + warp_lanes - 1;
        /* ascending: lane 0 the farthest to the left, or the nearest to the right */
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

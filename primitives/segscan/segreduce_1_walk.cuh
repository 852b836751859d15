/* segmented reduce, rung 1: a balanced walk along elements and segment ends.
 *
 * idea      n + count steps, each of which takes an element or closes a segment (segments.cuh), are
 *           divided into tiles and chunks as scan divides elements. In a tile the closing steps are
 *           bits; its elements are contiguous in memory, and so are its results. A thread folds its
 *           steps, the block scans the threads' (value, closed) pairs, and each thread walks its
 *           steps again and writes a result at each closing. A segment that crosses chunks is
 *           joined afterwards: the chunk that closes it keeps its part separately; one block scans
 *           the open values of the chunks and appends that part.
 * work      2 n + count operations and a few per thread
 * depth     2 (n + count) / 2048 / 256 + log
 * launches  2 (1 if there is one chunk)
 * bytes     n v + count (v + position)
 * wins      for any mix of segments: the time does not depend on their lengths or on empty ones
 * order     keeps the order of the operands; bits depend on n and the positions alone
 * source    Green, McColl, Bader 2012; Merrill, Garland 2016; S. Baxter, "moderngpu", 2013
 *           (segmented reduction)
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SPMV_SEGREDUCE_1_WALK_CUH
#define SPMV_SEGREDUCE_1_WALK_CUH

#include "primitives/segscan/segscan_3_chunks.cuh"

/* The results of the chunks for the second launch; arrays of most_chunks entries. */
template <typename Type> struct walk_chunks {
    int64_t *first;        /* the first segment that the chunk may close */
    Type *first_part;      /* the fold of its elements in this chunk; only if closed here */
    Type *left_open;       /* the fold of the elements after the last closing, or of all */
    unsigned char *closed; /* whether the chunk closes a segment */
};

/* Older: only for architectures without a copy engine. */
template <typename Op, bool Older, typename Load, typename Store>
__global__ void __launch_bounds__(block_threads) segreduce_walk(Load load, Store store, segment_closings closings,
                                                                chunking cut, walk_chunks<typename Op::type> result)
{
    if constexpr (Older && SPMV_HAVE_COPY_ENGINE)
        return;
    using Type = typename Op::type;
    using tile = tile_of<Type>;
    __shared__ Type stage[tile::cells];
    __shared__ segmented<Type> warp_sums[block_warps];
    __shared__ int warp_counts[block_warps];
    __shared__ unsigned words[tile_bits<Type>::word_count];
    const Op op{};
    const int chunk = (int)blockIdx.x;
    const int64_t steps = closings.n + closings.count;
    const int64_t first = block_lower_bound(closings, 0, closings.count, cut.first_tile(chunk) * tile::size);
    int64_t segment = first; /* the open segment */
    Type carry = Op::identity();
    for (int64_t t = cut.first_tile(chunk); t < cut.first_tile(chunk + 1); t++) {
        const int64_t begin = t * tile::size;
        const int valid = tile_valid(begin, steps, tile::size);
        const int64_t next = block_mark<Type>(closings, segment, closings.count, begin, valid, words);
        const int closing = (int)(next - segment);
        const unsigned closes = tile_bits<Type>::of_thread(words, (int)threadIdx.x);
        int all_closing;
        const int closed_before = block_exclusive(add_counts(), __popc(closes), warp_counts, &all_closing);

        /* the steps of the thread: item[j] is the element taken, or the identity if a segment is
         * closed */
        block_stage_in(load, begin - segment, valid - closing, Op::identity(), stage);
        int taken = (int)threadIdx.x * tile::items - closed_before;
        Type item[tile::items];
        segmented<Type> mine = {Op::identity(), closes != 0}, all;
#pragma unroll
        for (int j = 0; j < tile::items; j++) {
            const bool close = closes >> j & 1u;
            item[j] = close ? Op::identity() : stage[tile::cell(taken)];
            taken += !close;
            mine.value = close ? Op::identity() : op(mine.value, item[j]);
        }

        /* walk again, starting with the open value before the thread; results go to the stage,
         * which all threads have read by now */
        const segmented<Type> earlier = block_exclusive(combine_segments<Op>(), mine, warp_sums, &all);
        Type open = earlier.start ? earlier.value : op(carry, earlier.value);
        int closed = closed_before;
#pragma unroll
        for (int j = 0; j < tile::items; j++) {
            const bool close = closes >> j & 1u;
            if (close)
                stage[tile::cell(closed++)] = open;
            open = close ? Op::identity() : op(open, item[j]);
        }
        __syncthreads();
        for (int i = (int)threadIdx.x; i < closing; i += block_threads) {
            const Type value = stage[tile::cell(i)];
            if (chunk > 0 && segment + i == first)
                result.first_part[chunk] = value;
            else
                store(segment + i, value);
        }
        carry = all.start ? all.value : op(carry, all.value);
        segment = next;
    }
    if (threadIdx.x == 0) {
        result.first[chunk] = first;
        result.left_open[chunk] = carry;
        result.closed[chunk] = segment > first;
    }
}

/* The storer for the scan over the chunks: joins the open value at the end of chunk i with the part
 * that the next chunk kept. */
template <typename Op, typename Store> struct store_joined {
    Store store;
    walk_chunks<typename Op::type> result;
    int chunks;

    __device__ void operator()(int64_t i, typename Op::type open) const
    {
        const int64_t next = i + 1;
        if (next < chunks && result.closed[next])
            store(result.first[next], Op()(open, result.first_part[next]));
    }
};

inline int64_t segreduce_1_scratch(int64_t element_bytes)
{
    return most_chunks * ((int64_t)sizeof(int64_t) + 2 * element_bytes + 1);
}

/* store(s, the fold of load over segment s), once for every segment; closings.count > 0. */
template <typename Op, bool Older = false, typename Load, typename Store>
spmv_status segreduce_1_launch(spmv_context *ctx, Load load, Store store, segment_closings closings, void *scratch)
{
    using Type = typename Op::type;
    const chunking cut = cut_into_chunks(closings.n + closings.count, tile_of<Type>::size);
    walk_chunks<Type> result;
    result.first = (int64_t *)scratch;
    result.first_part = (Type *)(result.first + most_chunks);
    result.left_open = result.first_part + most_chunks;
    result.closed = (unsigned char *)(result.left_open + most_chunks);
    const spmv_status st = launch(ctx, "segreduce_walk", cut.count, block_threads,
                                  segreduce_walk<Op, Older, Load, Store>, load, store, closings, cut, result);
    if (st != SPMV_OK || cut.count == 1)
        return st;
    return segscan_3_launch_over_chunks<Op>(ctx, result.left_open, store_joined<Op, Store>{store, result, cut.count},
                                            result.closed, cut.count);
}

#endif

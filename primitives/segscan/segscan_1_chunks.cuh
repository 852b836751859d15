/* segmented scan, rung 1: the scan of (value, start) pairs, chunk by chunk.
 *
 * Idea: a start in the later operand cuts the earlier one off: combine((a, s), (b, t)) = (t ? b : a op b, s or t). With
 * that operator the three steps of scan, rung 1, do it: fold the chunks, scan their results, scan the chunks. The
 * starts of a tile are one bit an element in shared memory, made from flag bytes or from positions (segments.cuh); the
 * pairs themselves exist in registers only.
 * Work and depth as scan, rung 1; launches 3 (1 when one chunk holds all); bytes moved 3 n v and twice the flags or
 * positions.
 * Wins: any mix of segments: millions of empty ones, a single giant one.
 * Keeps the order of the operands; bits depend on n alone (not on where the segments lie: that decides only which
 * operands meet).
 * Schwartz 1980; Blelloch 1990; Sengupta et al. 2007.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SEGSCAN_1_CHUNKS_CUH
#define SEGSCAN_1_CHUNKS_CUH

#include "launch.cuh"
#include "segments.cuh"

/* The thread's elements as one pair; bit j of starts: element j starts a segment. */
template <typename Op>
__device__ segmented<typename Op::type> fold_items(Op op, const typename Op::type *item, unsigned starts)
{
    segmented<typename Op::type> pair = {item[0], starts != 0};
#pragma unroll
    for (int j = 1; j < tile_of<typename Op::type>::ITEMS; j++)
        pair.value = starts >> j & 1u ? item[j] : op(pair.value, item[j]);
    return pair;
}

/* sums[chunk], started[chunk] = the chunk as one pair. */
template <typename Op, typename Load>
__global__ void __launch_bounds__(THREADS)
    segscan_fold_chunks(Load load, segment_starts segments, int64_t n, chunking cut, typename Op::type *sums,
                        unsigned char *started)
{
    using T = typename Op::type;
    using tile = tile_of<T>;
    __shared__ T stage[tile::CELLS];
    __shared__ segmented<T> warp_sums[WARPS];
    __shared__ unsigned words[tile_bits<T>::WORDS];
    const combine_segments<Op> combine{};
    const int chunk = (int)blockIdx.x;
    int64_t cursor = segments.block_seek(cut.first_tile(chunk) * tile::SIZE);
    segmented<T> sum = combine_segments<Op>::identity();
    for (int64_t t = cut.first_tile(chunk); t < cut.first_tile(chunk + 1); t++) {
        const int64_t begin = t * tile::SIZE;
        const int valid = tile_valid(begin, n, tile::SIZE);
        T item[tile::ITEMS];
        segmented<T> all;
        block_load_tile(load, begin, valid, Op::identity(), stage, item);
        const unsigned starts = segments.block_starts<T>(&cursor, begin, valid, words);
        block_exclusive(combine, fold_items(Op(), item, starts), warp_sums, &all);
        sum = combine(sum, all);
    }
    if (threadIdx.x == 0) {
        sums[chunk] = sum.value;
        started[chunk] = (unsigned char)sum.start;
    }
}

/* store(i, the segmented scan up to i) over each chunk. before[c - 1]: what the open segment has gathered in the chunks
 * before c (NULL: one chunk). */
template <typename Op, typename Load, typename Store>
__global__ void __launch_bounds__(THREADS) segscan_chunks(Load load, Store store, segment_starts segments, int64_t n,
                                                          chunking cut, const typename Op::type *before, bool exclusive)
{
    using T = typename Op::type;
    using tile = tile_of<T>;
    __shared__ T stage[tile::CELLS];
    __shared__ segmented<T> warp_sums[WARPS];
    __shared__ unsigned words[tile_bits<T>::WORDS];
    const Op op{};
    const int chunk = (int)blockIdx.x;
    int64_t cursor = segments.block_seek(cut.first_tile(chunk) * tile::SIZE);
    T carry = chunk > 0 ? before[chunk - 1] : Op::identity();
    for (int64_t t = cut.first_tile(chunk); t < cut.first_tile(chunk + 1); t++) {
        const int64_t begin = t * tile::SIZE;
        const int valid = tile_valid(begin, n, tile::SIZE);
        T item[tile::ITEMS];
        segmented<T> all;
        block_load_tile(load, begin, valid, Op::identity(), stage, item);
        const unsigned starts = segments.block_starts<T>(&cursor, begin, valid, words);
        const segmented<T> earlier =
            block_exclusive(combine_segments<Op>(), fold_items(op, item, starts), warp_sums, &all);
        T through = earlier.start ? earlier.value : op(carry, earlier.value);
#pragma unroll
        for (int j = 0; j < tile::ITEMS; j++) {
            const bool start = starts >> j & 1u;
            const T preceding = start ? Op::identity() : through;
            through = start ? item[j] : op(through, item[j]);
            item[j] = exclusive ? preceding : through;
        }
        block_store_tile(store, begin, valid, stage, item);
        carry = all.start ? all.value : op(carry, all.value);
    }
}

/* The results of the chunks (value, started) turned in place into what the open segment has gathered up to each
 * chunk's end, handed to store. */
template <typename Op, typename Store>
spmv_status segscan_1_launch_over_chunks(spmv_context *ctx, const typename Op::type *sums, Store store,
                                         const unsigned char *started, int chunks)
{
    using T = typename Op::type;
    const segment_starts segments = {started, SPMV_SEGMENT_FLAGS, 8, 0};
    return launch(ctx, "segscan_chunks (of chunks)", 1, THREADS, segscan_chunks<Op, load_array<T>, Store>,
                  load_array<T>{sums}, store, segments, (int64_t)chunks, one_chunk(chunks, tile_of<T>::SIZE),
                  (const T *)NULL, false);
}

/* Scratch: an element and a byte a chunk. */
inline int64_t segscan_1_scratch(int64_t element_bytes)
{
    return CHUNKS * (element_bytes + 1);
}

/* store(i, the scan of load restarted at each start), n > 0. Load and store may touch the same memory. */
template <typename Op, typename Load, typename Store>
spmv_status segscan_1_launch(spmv_context *ctx, Load load, Store store, segment_starts segments, int64_t n,
                             bool exclusive, void *scratch)
{
    using T = typename Op::type;
    const chunking cut = cut_into_chunks(n, tile_of<T>::SIZE);
    T *const sums = (T *)scratch;
    unsigned char *const started = (unsigned char *)(sums + CHUNKS);
    spmv_status st = SPMV_OK;
    if (cut.count > 1) {
        st = launch(ctx, "segscan_fold_chunks", cut.count, THREADS, segscan_fold_chunks<Op, Load>, load, segments, n,
                    cut, sums, started);
        if (st == SPMV_OK)
            st = segscan_1_launch_over_chunks<Op>(ctx, sums, store_array<T>{sums}, started, cut.count);
    }
    if (st == SPMV_OK)
        st = launch(ctx, "segscan_chunks", cut.count, THREADS, segscan_chunks<Op, Load, Store>, load, store, segments,
                    n, cut, (const T *)sums, exclusive);
    return st;
}

#endif

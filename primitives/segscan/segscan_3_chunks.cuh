/* segmented scan, rung 3: the scan of (value, start) pairs, chunk by chunk.
 *
 * idea      a start in the later operand discards the earlier one: combine((a, s), (b, t)) = (t ? b
 *           : a op b, s or t). The three steps of scan, rung 3, use that operator: fold the chunks,
 *           scan their results, scan the chunks. The starts of a tile are one bit per element in
 *           shared memory, made from flag bytes or from positions (segments.cuh); the pairs exist
 *           only in registers.
 * work      as scan, rung 3
 * depth     as scan, rung 3
 * launches  3 (1 if there is one chunk)
 * bytes     3 n v and twice the flags or positions
 * wins      for any mix of segments: millions of empty ones, or a single giant one
 * order     keeps the order of the operands; the parenthesisation depends on n alone, and the
 *           segments decide only which operands are combined
 * source    Schwartz 1980; Blelloch 1990; Sengupta et al. 2007
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SPMV_SEGSCAN_3_CHUNKS_CUH
#define SPMV_SEGSCAN_3_CHUNKS_CUH

#include "device/launch.cuh"
#include "device/segments.cuh"

/* The fold of the thread's elements as one pair; bit j of starts: element j starts a segment. */
template <typename Op>
__device__ segmented<typename Op::type> fold_items(Op op, const typename Op::type *item, unsigned starts)
{
    segmented<typename Op::type> pair = {item[0], starts != 0};
#pragma unroll
    for (int j = 1; j < tile_of<typename Op::type>::items; j++)
        pair.value = starts >> j & 1u ? item[j] : op(pair.value, item[j]);
    return pair;
}

/* sums[chunk], started[chunk] = the fold of the chunk as one pair. */
template <typename Op, typename Load>
__global__ void __launch_bounds__(block_threads)
    segscan_fold_chunks(Load load, segment_starts segments, int64_t n, chunking cut, typename Op::type *sums,
                        unsigned char *started)
{
    using Type = typename Op::type;
    using tile = tile_of<Type>;
    __shared__ Type stage[tile::cells];
    __shared__ segmented<Type> warp_sums[block_warps];
    __shared__ unsigned words[tile_bits<Type>::word_count];
    const combine_segments<Op> combine{};
    const int chunk = (int)blockIdx.x;
    int64_t cursor = segments.block_seek(cut.first_tile(chunk) * tile::size);
    segmented<Type> sum = combine_segments<Op>::identity();
    for (int64_t t = cut.first_tile(chunk); t < cut.first_tile(chunk + 1); t++) {
        const int64_t begin = t * tile::size;
        const int valid = tile_valid(begin, n, tile::size);
        Type item[tile::items];
        segmented<Type> all;
        block_load_tile(load, begin, valid, Op::identity(), stage, item);
        const unsigned starts = segments.block_starts<Type>(&cursor, begin, valid, words);
        block_exclusive(combine, fold_items(Op(), item, starts), warp_sums, &all);
        sum = combine(sum, all);
    }
    if (threadIdx.x == 0) {
        sums[chunk] = sum.value;
        started[chunk] = (unsigned char)sum.start;
    }
}

/* store(i, the segmented scan up to i) over each chunk. before[c - 1]: the fold of the open segment
 * in the chunks before c (NULL: one chunk). */
template <typename Op, typename Load, typename Store>
__global__ void __launch_bounds__(block_threads)
    segscan_chunks(Load load, Store store, segment_starts segments, int64_t n, chunking cut,
                   const typename Op::type *before, bool exclusive)
{
    using Type = typename Op::type;
    using tile = tile_of<Type>;
    __shared__ Type stage[tile::cells];
    __shared__ segmented<Type> warp_sums[block_warps];
    __shared__ unsigned words[tile_bits<Type>::word_count];
    const Op op{};
    const int chunk = (int)blockIdx.x;
    int64_t cursor = segments.block_seek(cut.first_tile(chunk) * tile::size);
    Type carry = chunk > 0 ? before[chunk - 1] : Op::identity();
    for (int64_t t = cut.first_tile(chunk); t < cut.first_tile(chunk + 1); t++) {
        const int64_t begin = t * tile::size;
        const int valid = tile_valid(begin, n, tile::size);
        Type item[tile::items];
        segmented<Type> all;
        block_load_tile(load, begin, valid, Op::identity(), stage, item);
        const unsigned starts = segments.block_starts<Type>(&cursor, begin, valid, words);
        const segmented<Type> earlier =
            block_exclusive(combine_segments<Op>(), fold_items(op, item, starts), warp_sums, &all);
        Type through = earlier.start ? earlier.value : op(carry, earlier.value);
#pragma unroll
        for (int j = 0; j < tile::items; j++) {
            const bool start = starts >> j & 1u;
            const Type preceding = start ? Op::identity() : through;
            through = start ? item[j] : op(through, item[j]);
            item[j] = exclusive ? preceding : through;
        }
        block_store_tile(store, begin, valid, stage, item);
        carry = all.start ? all.value : op(carry, all.value);
    }
}

/* Scans the results of the chunks (value, started): store(c, the fold of the open segment up to the
 * end of chunk c). May work in place. */
template <typename Op, typename Store>
spmv_status segscan_3_launch_over_chunks(spmv_context *ctx, const typename Op::type *sums, Store store,
                                         const unsigned char *started, int chunks)
{
    using Type = typename Op::type;
    const segment_starts segments = {started, SPMV_SEGMENT_FLAGS, 8, 0};
    return launch(ctx, "segscan_chunks (of chunks)", 1, block_threads, segscan_chunks<Op, load_array<Type>, Store>,
                  load_array<Type>{sums}, store, segments, (int64_t)chunks, one_chunk(chunks, tile_of<Type>::size),
                  (const Type *)NULL, false);
}

/* Bytes of scratch: an element and a byte per chunk. */
inline int64_t segscan_3_scratch(int64_t element_bytes)
{
    return most_chunks * (element_bytes + 1);
}

/* store(i, the scan of load, restarted at each start), n > 0. Load and store may access the same
 * memory. */
template <typename Op, typename Load, typename Store>
spmv_status segscan_3_launch(spmv_context *ctx, Load load, Store store, segment_starts segments, int64_t n,
                             bool exclusive, void *scratch)
{
    using Type = typename Op::type;
    const chunking cut = cut_into_chunks(n, tile_of<Type>::size);
    Type *const sums = (Type *)scratch;
    unsigned char *const started = (unsigned char *)(sums + most_chunks);
    spmv_status st = SPMV_OK;
    if (cut.count > 1) {
        st = launch(ctx, "segscan_fold_chunks", cut.count, block_threads, segscan_fold_chunks<Op, Load>, load, segments,
                    n, cut, sums, started);
        if (st == SPMV_OK)
            st = segscan_3_launch_over_chunks<Op>(ctx, sums, store_array<Type>{sums}, started, cut.count);
    }
    if (st == SPMV_OK)
        st = launch(ctx, "segscan_chunks", cut.count, block_threads, segscan_chunks<Op, Load, Store>, load, store,
                    segments, n, cut, (const Type *)sums, exclusive);
    return st;
}

#endif

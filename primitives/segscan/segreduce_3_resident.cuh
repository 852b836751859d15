/* segmented reduce, rung 3, for few elements: the walk of rung 2 in one launch, one tile per block.
 *
 * idea      if all blocks are resident on the device, neither a launch that finds the tiles' starts
 *           nor a chain is needed. A block's first warps search where its tile starts and ends; one
 *           probe suffices if segments have similar lengths. A tile publishes its open value. A
 *           tile that closes a segment which started before it looks back, 32 tiles at a time,
 *           until one of them has a start, and folds the values in between.
 * work      n + count operations and a few per thread
 * depth     that of a tile, and a look at 32 tiles
 * launches  1
 * bytes     n v + count (v + position)
 * wins      up to some 10^5 steps, where launches take most of the time
 * order     the distance of a look-back depends on the segments alone, so bits depend on n and the
 *           positions alone
 * source    Green, McColl, Bader 2012; Merrill, Garland 2016
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SPMV_SEGREDUCE_3_RESIDENT_CUH
#define SPMV_SEGREDUCE_3_RESIDENT_CUH

#include "primitives/segscan/segreduce_2_pipeline.cuh"

/* At most RESIDENT_TILES per launch on every device, because bits must not depend on it. */
enum { RESIDENT_TILES = 512, RESIDENT_BLOCKS = 5 };
static_assert((int)RESIDENT_TILES <= (int)CHAIN_RING, "a cell each");

template <typename T> struct resident_tile {
    static constexpr int items = sizeof(T) <= 8 ? 7 : sizeof(T) <= 16 ? 3 : 1, size = block_threads * items;
};

template <typename T> bool segreduce_resident_fits(int64_t steps)
{
    return steps <= (int64_t)RESIDENT_TILES * resident_tile<T>::size;
}

/* Whether the device holds all blocks at once. */
inline bool segreduce_resident_there(const spmv_context *ctx)
{
    return RESIDENT_TILES <= ((const cuda_state *)ctx->device)->multiprocessors * RESIDENT_BLOCKS;
}

/* The fold of the part of tile t's first segment in earlier tiles. Called by one warp. */
template <typename Op> __device__ typename Op::type look_back(const chain<chain_segmented<Op>> &tiles, int64_t t)
{
    using fold = chain_segmented<Op>;
    using X = typename fold::type;
    X before = fold::identity();
    for (int64_t end = t; end > 0 && !fold::starts(before); end -= warp_lanes) {
        const int64_t tile = end - warp_lanes + (int)threadIdx.x % warp_lanes;
        X mine = fold::identity();
        if (tile >= 0) {
            typename Op::type value;
            bool start;
            while (!chain_get(tiles.memory->aggregates, (int)tile, tiles.round_of(tile), &start, &value)) {
            }
            mine = fold::make(value, start);
        }
        __syncwarp();
        const X through = warp_inclusive(fold(), mine);
        before = fold()(shuffle_by(through, [](auto word) { return __shfl_sync(0xffffffffu, word, warp_lanes - 1); }),
                        before);
    }
    return fold::value_of(before);
}

template <typename Op, typename Load, typename Store>
__global__ void __launch_bounds__(block_threads, RESIDENT_BLOCKS)
    segreduce_resident(Load load, Store store, segment_closings closings, chain<chain_segmented<Op>> tiles)
{
    using T = typename Op::type;
    using fold = chain_segmented<Op>;
    using X = typename fold::type;
    using tile = resident_tile<T>;
    __shared__ T elements[tile::size], results[tile::size];
    __shared__ int closing_steps[tile::size];
    __shared__ X warp_sums[block_warps];
    __shared__ T first_part;
    __shared__ int64_t bounds[2];
    __shared__ unsigned first_round; /* read once, before this block calls end */
    const Op op{};
    const bool alone = tiles.tiles == 1;
    const int64_t number = blockIdx.x, begin = number * tile::size, steps = closings.n + closings.count;
    const int valid = tile_valid(begin, steps, tile::size), warp = (int)threadIdx.x / warp_lanes;

    let_next_begin();
    await_kernel_before();
    if (!alone && threadIdx.x == 2 * warp_lanes) {
        tiles.begin();
        first_round = tiles.first_round;
    }
    if (warp < 2) {
        const int64_t step = begin + (warp == 0 ? 0 : valid);
        const int64_t bound =
            step == steps ? closings.count
                          : warp_lower_bound_near(closings, closings.count, likely_closing(closings, step), step);
        if (threadIdx.x % warp_lanes == 0)
            bounds[warp] = bound;
    }
    __syncthreads();
    const int64_t closed = bounds[0], element = begin - closed;
    const int closing = (int)(bounds[1] - closed), taking = valid - closing;
    T in[tile::items];
#pragma unroll
    for (int j = 0; j < tile::items; j++) {
        const int i = j * block_threads + (int)threadIdx.x;
        in[j] = i < taking ? load(element + i) : Op::identity();
    }
    for (int c = (int)threadIdx.x; c < closing; c += block_threads)
        closing_steps[c] = (int)(closings(closed + c) - begin);
    tiles.first_round = first_round;
    const bool early = tiles.may_end_early();
    if (!alone && early && threadIdx.x == 2 * warp_lanes) /* while the loads are in progress */
        tiles.end();
#pragma unroll
    for (int j = 0; j < tile::items; j++)
        elements[j * block_threads + (int)threadIdx.x] = in[j];
    __syncthreads();

    const thread_steps walked =
        steps_of_thread<tile::items>((int)threadIdx.x, [=](int c) { return closing_steps[c]; }, closing);
    const T open = walk_of_thread<Op, tile::items>((int)threadIdx.x, elements, results, walked, valid);
    X all;
    const X earlier = block_exclusive_once(fold(), fold::make(open, walked.closes != 0), warp_sums, &all);
    if (threadIdx.x == 0 && number + 1 < tiles.tiles)
        tiles.publish(number, fold::value_of(all), fold::starts(all));
    if (walked.closes != 0) { /* join the thread's first closing with the part before it */
        const T part = op(fold::value_of(earlier), results[walked.first]);
        if (walked.first == 0)
            first_part = part;
        else
            results[walked.first] = part;
    }
    __syncthreads();
    if (warp == 0 && closing > 0) {
        const T before = number > 0 ? look_back<Op>(tiles, number) : Op::identity();
        if (threadIdx.x == 0)
            store(closed, number > 0 ? op(before, first_part) : first_part);
    }
    for (int c = (int)threadIdx.x + 1; c < closing; c += block_threads)
        store(closed + c, results[c]);
    if (!alone && !early) {
        __syncthreads(); /* no state is read after this */
        if (threadIdx.x == 0)
            tiles.end();
    }
}

/* store(s, the fold of load over segment s), once for every segment; closings.count > 0. Requires
 * segreduce_resident_fits and segreduce_resident_there. */
template <typename Op, typename Load, typename Store>
spmv_status segreduce_resident_launch(spmv_context *ctx, Load load, Store store, segment_closings closings)
{
    const int64_t steps = closings.n + closings.count, size = resident_tile<typename Op::type>::size;
    const chain<chain_segmented<Op>> tiles = {chain_of(ctx), steps / size + (steps % size != 0), 0};
    return launch_early(ctx, "segreduce_resident", (int)tiles.tiles, block_threads, segreduce_resident<Op, Load, Store>,
                        load, store, closings, tiles);
}

#endif

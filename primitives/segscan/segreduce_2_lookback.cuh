/* segmented reduce, rung 2: the balanced walk in one pass, tiles look back.
 *
 * Idea: the walk of rung 1 along elements and segment ends, cut into tiles of equally many steps, one block a tile.
 * What lies open where a tile begins comes from the states of the tiles before it (lookback.cuh). A tile that closes a
 * segment knows by itself what it leaves open, so it publishes a prefix at once; only inside segments longer than a
 * tile does a look-back go further than one.
 * In a tile: the first segment is found by one round of probes where segments are of about equal length, by a search
 * otherwise; closings become bits, THREADS times BATCH positions at a time; elements come in 16 bytes at a time.
 * Work 2 n + count operations and a few a thread and tile; depth: a tile's, and one operation a tile; launches 1 for a
 * single tile, else 2, and 2 more for every 2^17 tiles of 31 KiB (2^16 with 8-byte elements); bytes moved
 * n v + count (v + position).
 * Changed since rung 1: no chunks, so that no block walks through tiles one after the other; all positions of a tile
 * are under way together; results leave in one pass.
 * Wins: everywhere.
 * Keeps the order of the operands; bits depend on n and the positions alone.
 * Green, McColl, Bader 2012; Merrill, Garland 2016 (both papers).
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SEGREDUCE_2_LOOKBACK_CUH
#define SEGREDUCE_2_LOOKBACK_CUH

#include "segscan_2_lookback.cuh"

/* Bytes: of the elements of a thread, at most. Their number is odd, so that threads that read side by side meet no bank
 * twice, and at most 31, so that a word holds their bits. */
template <typename T, int Bytes> struct walk_tile {
    static constexpr int WHOLE = Bytes / (int)sizeof(T) > 0 ? Bytes / (int)sizeof(T) : 1;
    static constexpr int ITEMS = WHOLE % 2 == 1 ? WHOLE : WHOLE - 1;
    static constexpr int SIZE = THREADS * ITEMS;
    static constexpr int WORDS = SIZE / 32;

    static constexpr bool PACKED = 16 % sizeof(T) == 0;
    static constexpr int EACH = PACKED ? 16 / (int)sizeof(T) : 1;             /* elements of a vector */
    static constexpr int VECTORS = (SIZE / EACH + 1 + THREADS - 1) / THREADS; /* a thread; the first may be cut */

    struct alignas(PACKED ? 16 : alignof(T)) vector {
        T at[EACH];
    };
};

template <int Bytes, int Blocks, int PauseNs = 0> struct walk_shape {
    static constexpr int BYTES = Bytes, BLOCKS = Blocks, PAUSE_NS = PauseNs;
};

using segreduce_2_shape = walk_shape<124, 4>;

/* words = the bits of the closings first, first + 1, ... that are steps begin ... begin + valid - 1. */
__device__ inline void block_mark_closings(const segment_closings &closings, int64_t first, int64_t begin, int valid,
                                           unsigned *words, int count)
{
    enum { BATCH = 4 };
    for (int w = (int)threadIdx.x; w < count; w += THREADS)
        words[w] = 0;
    __syncthreads();
    for (int64_t cursor = first;; cursor += BATCH * THREADS) {
        const int64_t last = cursor + BATCH * THREADS - 1;
        const bool more = last < closings.count && closings(last) - begin < valid; /* the same for all threads */
#pragma unroll
        for (int k = 0; k < BATCH; k++) {
            const int64_t s = cursor + k * THREADS + threadIdx.x;
            const int64_t at = s < closings.count ? closings(s) - begin : valid;
            if (at < valid)
                atomicOr(&words[at / 32], 1u << (at % 32));
        }
        if (!more)
            break;
    }
    __syncthreads();
}

/* stage, seen as elements: cells shift, shift + 1, ... = load(begin), ..., load(begin + count - 1); returns shift. n:
 * how many elements there are. */
template <typename Tile, typename T, typename Load>
__device__ int block_stage_run(const Load &load, int64_t begin, int count, int64_t n, typename Tile::vector *stage)
{
    const T *const array = array_of<T>(load);
    const bool vectors = in_vectors(array);
    const int shift = vectors ? (int)(begin % Tile::EACH) : 0;
    typename Tile::vector striped[Tile::VECTORS];
#pragma unroll
    for (int k = 0; k < Tile::VECTORS; k++) {
        const int at = (k * THREADS + (int)threadIdx.x) * Tile::EACH; /* the vector's first cell */
        const int64_t i = begin - shift + at;
        if (vectors && at < shift + count && i + Tile::EACH <= n) {
            striped[k] = load_streaming((const typename Tile::vector *)(array + i));
        } else {
#pragma unroll
            for (int j = 0; j < Tile::EACH; j++)
                if (at + j >= shift && at + j < shift + count)
                    striped[k].at[j] = load(i + j);
                else
                    striped[k].at[j] = T();
        }
    }
#pragma unroll
    for (int k = 0; k < Tile::VECTORS; k++)
        stage[k * THREADS + (int)threadIdx.x] = striped[k];
    __syncthreads();
    return shift;
}

template <typename Op, typename Shape, typename Load, typename Store, typename Hook>
__global__ void __launch_bounds__(THREADS, Shape::BLOCKS)
    segreduce_lookback(Load load, Store store, segment_closings closings, int64_t first_tile,
                       lookback_states<typename Op::type> states, Hook hook)
{
    using T = typename Op::type;
    using tile = walk_tile<T, Shape::BYTES>;
    static_assert(tile::ITEMS <= 31, "a word of bits a thread");
    __shared__ typename tile::vector stage[THREADS * tile::VECTORS];
    __shared__ segmented<T> warp_sums[WARPS];
    __shared__ int warp_counts[WARPS];
    __shared__ unsigned words[tile::WORDS + 1];
    __shared__ T before_tile;
    __shared__ int number;
    const Op op{};
    const int mine = states.tiles > 1 ? block_draw_ticket(states.ticket, &number) : 0;
    const int64_t steps = closings.n + closings.count;
    const int64_t begin = (first_tile + mine) * tile::SIZE;
    const int valid = tile_valid(begin, steps, tile::SIZE);
    const int64_t first = /* the open segment */
        block_lower_bound_near(closings, closings.count, (double)begin / (double)steps, begin);
    block_mark_closings(closings, first, begin, valid, words, tile::WORDS);
    const unsigned closes = bits_of_thread(words, tile::ITEMS);
    int closing;
    const int closed_before = block_exclusive(add_counts(), __popc(closes), warp_counts, &closing);

    /* the steps of the thread: item[j] is the element taken, or the identity where a segment is closed */
    const int taking = valid - closing;
    const int shift = block_stage_run<tile, T>(load, begin - first, taking, closings.n, stage);
    int taken = (int)threadIdx.x * tile::ITEMS - closed_before;
    T item[tile::ITEMS];
    segmented<T> sum = {Op::identity(), closes != 0}, all;
#pragma unroll
    for (int j = 0; j < tile::ITEMS; j++) {
        const bool close = closes >> j & 1u, take = !close && taken < taking;
        item[j] = take ? stage[(shift + taken) / tile::EACH].at[(shift + taken) % tile::EACH] : Op::identity();
        taken += !close;
        sum.value = close ? Op::identity() : op(sum.value, item[j]);
    }

    /* walk again from what is open before the thread; results gather in the stage, which all have read by now */
    const segmented<T> earlier = block_exclusive(combine_segments<Op>(), sum, warp_sums, &all);
    const T before = block_look_back(op, states, mine, all.value, all.start != 0, &before_tile, Shape::PAUSE_NS, hook);
    T open = earlier.start ? earlier.value : op(before, earlier.value);
    int closed = closed_before;
#pragma unroll
    for (int j = 0; j < tile::ITEMS; j++) {
        const bool close = closes >> j & 1u;
        if (close) {
            stage[closed / tile::EACH].at[closed % tile::EACH] = open;
            closed++;
        }
        open = close ? Op::identity() : op(open, item[j]);
    }
    __syncthreads();
    for (int i = (int)threadIdx.x; i < closing; i += THREADS)
        store(first + i, stage[i / tile::EACH].at[i % tile::EACH]);
}

/* Enough for every shape of 12 KiB a tile and more. */
inline int64_t segreduce_2_scratch(int64_t element_bytes, int64_t steps)
{
    return lookback_scratch(element_bytes, steps / (12 * 1024 / element_bytes) + 1);
}

/* store(s, the fold of load over segment s), once for every segment; closings.count > 0. */
template <typename Op, typename Shape = segreduce_2_shape, typename Load, typename Store, typename Hook = no_hook>
spmv_status segreduce_2_launch(spmv_context *ctx, Load load, Store store, segment_closings closings, void *scratch,
                               Hook hook = Hook())
{
    using T = typename Op::type;
    const int64_t size = walk_tile<T, Shape::BYTES>::SIZE, steps = closings.n + closings.count;
    return lookback_launches<T>(ctx, steps / size + (steps % size != 0), scratch,
                                [=](int64_t first_tile, lookback_states<T> states) {
                                    return launch(ctx, "segreduce_lookback", states.tiles, THREADS,
                                                  segreduce_lookback<Op, Shape, Load, Store, Hook>, load, store,
                                                  closings, first_tile, states, hook);
                                });
}

#endif

/* segmented reduce, rung 2: the walk of rung 1 with persistent blocks and the copy engine.
 *
 * idea      the n + count steps of the walk (segments.cuh) are divided into tiles. A first launch
 *           finds for every tile the number of segments closed before it, which determines its
 *           elements and segment ends. In the second launch, which starts while the first one
 *           finishes, the copy engine loads both into shared memory one tile ahead. A thread finds
 *           its place there by a binary search (merge path), walks its steps once, and writes a
 *           result at each closing except its first, which needs the open value of earlier threads.
 *           The block scans the threads' open values. Only the tile's first closing waits for the
 *           chain (chain.cuh), as one number, while the block continues with the next tile. One
 *           additional warp loads tiles and waits for that number.
 * work      n + count operations and a few per thread
 * depth     that of a tile, and the chain
 * launches  2
 * bytes     n v + count (v + position)
 * changed   loads overlap with work within a block; elements are walked once, in shared memory; no
 *           second launch joins chunks
 * wins      everywhere on devices with a copy engine (9.0 to 11)
 * order     keeps the order of the operands; bits depend on n and the positions alone
 * source    Green, McColl, Bader 2012; Merrill, Garland 2016
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SPMV_SEGREDUCE_2_PIPELINE_CUH
#define SPMV_SEGREDUCE_2_PIPELINE_CUH

#include "chain.cuh"
#include "copy_engine.cuh"
#include "segments.cuh"
#include "vector_tiles.cuh"

/* Bytes: of elements or ends per thread and tile. The number of cells is odd, so that neighbouring
 * threads have few bank conflicts. */
template <int Bytes, int Blocks> struct merge_shape {
    static constexpr int bytes = Bytes, blocks = Blocks;
};
using segreduce_2_shape = merge_shape<124, 2>;

/* Tiles of a block that may wait for their prefixes. Together with the current tile and the next
 * two, a block holds CHAIN_HELD. */
enum { MERGE_WAITING = CHAIN_HELD - 3 };

template <typename Shape> constexpr int64_t merge_items(int64_t cell)
{
    return (Shape::bytes / cell - 1) | 1;
}

template <typename T, typename P, typename Shape> struct merge_tile {
    static constexpr int cell = sizeof(T) > sizeof(P) ? (int)sizeof(T) : (int)sizeof(P);
    static constexpr int items = (int)merge_items<Shape>(cell);
    static_assert(items <= 32, "a word of bits a thread");
    static constexpr int size = block_threads * items;
    /* both runs start and end at multiples of 16 bytes, so they need extra space */
    static constexpr int buffer_bytes = size * cell + 64;
    static constexpr int buffers = 2;

    static int64_t count(int64_t steps)
    {
        return steps / size + (steps % size != 0);
    }
};

/* A run of an array in a buffer, in units of 16 bytes. */
struct engine_run {
    int64_t from;    /* address, a multiple of 16 */
    int bytes, skip; /* the first skip bytes do not belong to the run */

    template <typename T> static __device__ engine_run of(const T *array, int64_t first, int64_t count)
    {
        const int64_t begin = (int64_t)(array + first), end = (int64_t)(array + first + count);
        engine_run run;
        run.from = begin & ~(int64_t)15;
        run.skip = (int)(begin - run.from);
        run.bytes = (int)(((end + 15) & ~(int64_t)15) - run.from);
        return run;
    }
};

template <typename Op, typename P, typename Shape> struct merge_memory {
    using T = typename Op::type;
    using fold = chain_segmented<Op>;
    using tile = merge_tile<T, P, Shape>;
    struct alignas(16) buffer {
        unsigned char bytes[tile::buffer_bytes];
    };
    buffer stage[tile::buffers];
    alignas(16) T results[tile::size];
    arrival arrived[tile::buffers];
    typename fold::type warp_sums[block_warps];
    /* of the current tile and of the next, alternating */
    int64_t number[2], closed[2], closed_behind[2];
    T first_part;
    chain_cells<fold> cells;
};

/* The index of a step among the closings if all segments had the same length. */
__device__ inline int64_t likely_closing(const segment_closings &closings, int64_t step)
{
    return (int64_t)((double)step / (double)(closings.n + closings.count) * (double)closings.count);
}

/* starts[t] = the number of segments closed before tile t of SIZE steps; starts[tiles] = all. One
 * warp per tile. */
template <int SIZE>
__global__ void __launch_bounds__(block_threads) merge_starts(segment_closings closings, int64_t tiles, int64_t *starts)
{
    const int64_t t = (int64_t)blockIdx.x * block_warps + (int)threadIdx.x / warp_lanes;
    let_next_begin();
    await_kernel_before();
    if (t > tiles)
        return;
    const int64_t step = t * SIZE;
    const int64_t closed = t == tiles
                               ? closings.count
                               : warp_lower_bound_near(closings, closings.count, likely_closing(closings, step), step);
    if (threadIdx.x % warp_lanes == 0)
        starts[t] = closed;
}

/* Walks steps begin ... begin + ITEMS - 1 of the tile that exist (WHOLE: all; otherwise the first
 * `there`). A step closes a segment if its bit in closes is set; then the next result is the fold
 * of the elements since the thread's last closing. Returns the fold of the elements after the last
 * closing. element: that of the thread's first step, if it takes one. */
template <typename Op, int ITEMS, bool WHOLE>
__device__ typename Op::type walk(const typename Op::type *__restrict__ element, typename Op::type *__restrict__ result,
                                  unsigned closes, int there)
{
    using T = typename Op::type;
    const Op op{};
    T sum = Op::identity();
    bool fresh = true; /* sum has no element yet */
#pragma unroll(WHOLE ? ITEMS : 1)
    for (int j = 0; j < ITEMS; j++) {
        const bool close = closes >> j & 1u;
        if (close)
            *result = sum;
        const bool take = !close && (WHOLE || j < there);
        const T v = take ? *element : Op::identity();
        sum = close ? Op::identity() : !take ? sum : fresh ? v : op(sum, v);
        fresh = close || (fresh && !take);
        element += take;
        result += close;
    }
    return sum;
}

/* The result of a thread's walk in a tile. */
template <typename T> struct thread_walk {
    int first;       /* closings of the tile before the thread's steps */
    unsigned closes; /* bit j: step j of the thread closes a segment */
    T open;          /* the fold of the elements after the last closing */
};

/* closing_step(c): the step of the tile that closes its segment c < closing. elements: those of the
 * tile. The tile has valid steps. Writes results[c] for the thread's own closings, as walk does. */
template <typename Op, int ITEMS, typename ClosingStep>
__device__ thread_walk<typename Op::type> walk_of_thread(const typename Op::type *elements, typename Op::type *results,
                                                         const ClosingStep &closing_step, int closing, int valid)
{
    const int begin = (int)threadIdx.x * ITEMS;
    int lo = 0, hi = closing;
    while (lo < hi) {
        const int middle = (lo + hi) / 2;
        if (closing_step(middle) < begin)
            lo = middle + 1;
        else
            hi = middle;
    }
    unsigned closes = 0;
    for (int c = lo; c < closing; c++) {
        const int j = closing_step(c) - begin;
        if (j >= ITEMS)
            break;
        closes |= 1u << j;
    }
    const typename Op::type *const element = elements + (begin - lo);
    return {lo, closes,
            valid == block_threads * ITEMS ? walk<Op, ITEMS, true>(element, results + lo, closes, 0)
                                           : walk<Op, ITEMS, false>(element, results + lo, closes, valid - begin)};
}

/* The elements and segments of a tile, and where the engine finds them. */
struct merge_share {
    int64_t closed, element; /* the first ones */
    int closing, taking;
    engine_run elements, ends;
    bool by_engine;
};

/* The share of tile number of tiles, with SIZE steps. closed, closed_behind: segments closed before
 * it and up to its end. */
template <int SIZE, typename T, typename P>
__device__ __forceinline__ merge_share merge_share_of(const segment_closings &closings, int64_t tiles, const T *from,
                                                      const P *ends, int64_t number, int64_t closed,
                                                      int64_t closed_behind)
{
    merge_share s;
    const int64_t begin = number * SIZE;
    const int valid = tile_valid(begin, closings.n + closings.count, SIZE);
    s.closed = closed;
    s.element = begin - closed;
    s.closing = (int)(closed_behind - closed);
    s.taking = valid - s.closing;
    s.elements = engine_run::of(from, s.element, s.taking);
    s.ends = engine_run::of(ends, closed, s.closing);
    /* the engine reads no byte beyond the arrays */
    s.by_engine = number + 1 < tiles && s.elements.from + s.elements.bytes <= (int64_t)(from + closings.n) &&
                  s.ends.from + s.ends.bytes <= (int64_t)(ends + closings.count - 1);
    return s;
}

/* Loads what the engine cannot load, with the threads that walk. */
template <typename T, typename P, typename Load>
__device__ __forceinline__ void merge_stage_in(const Load &load, const segment_closings &closings,
                                               const merge_share &mine, T *elements, P *ends)
{
    for (int i = (int)threadIdx.x; i < mine.taking; i += block_threads)
        elements[i] = load(mine.element + i);
    for (int c = (int)threadIdx.x; c < mine.closing; c += block_threads)
        ends[c] = (P)(closings(mine.closed + c) - (mine.closed + c));
}

/* The second half of the block's scan of the threads' open values. Publishes the tile, and joins
 * the thread's first closing with the part before it. */
template <typename Op, typename Memory>
__device__ __forceinline__ void merge_join(Memory &m, const chain<chain_segmented<Op>> &tiles, int64_t number,
                                           const thread_walk<typename Op::type> &walked,
                                           typename chain_segmented<Op>::type through)
{
    using fold = chain_segmented<Op>;
    typename fold::type all;
    const typename fold::type earlier = block_exclusive_second(fold(), through, m.warp_sums, &all);
    if (threadIdx.x == 0 && tiles.tiles != 1)
        tiles.publish(number, fold::value_of(all), fold::starts(all));
    if (walked.closes != 0) {
        const typename Op::type part = Op()(fold::value_of(earlier), m.results[walked.first]);
        if (walked.first == 0)
            m.first_part = part;
        else
            m.results[walked.first] = part;
    }
}

/* Stores the results of a tile's segments except the first, which waits for the tile's prefix. */
template <typename T, typename Store>
__device__ __forceinline__ void merge_store(const Store &store, const merge_share &mine, const T *results)
{
    for (int c = (int)threadIdx.x + 1; c < mine.closing; c += block_threads)
        store(mine.closed + c, results[c]);
}

/* The number of a tile, and the segments closed before it and up to its end. */
struct merge_order {
    int64_t number, closed, closed_behind;
};

/* The carrier draws the next tile. alone: there is only one. */
template <typename Tiles>
__device__ __forceinline__ merge_order merge_draw(const Tiles &tiles, const int64_t *starts, bool alone)
{
    merge_order drawn = {alone ? 0 : tiles.draw(), 0, 0};
    if (drawn.number >= 0 && drawn.number < tiles.tiles) {
        drawn.closed = starts[drawn.number];
        drawn.closed_behind = starts[drawn.number + 1];
    }
    return drawn;
}

/* The carrier announces the tile of the next turn, 0 or 1. */
template <typename Memory> __device__ __forceinline__ void merge_announce(Memory &m, const merge_order &what, int turn)
{
    m.number[turn] = what.number;
    m.closed[turn] = what.closed;
    m.closed_behind[turn] = what.closed_behind;
}

/* The engine loads a tile's share into a buffer, if it can. */
template <typename Memory> __device__ __forceinline__ void merge_load(Memory &m, const merge_share &s, int buffer)
{
    if (s.by_engine) {
        const unsigned in = s.taking > 0 ? (unsigned)s.elements.bytes : 0u;
        const unsigned ends_in = s.closing > 0 ? (unsigned)s.ends.bytes : 0u;
        engine_expect(&m.arrived[buffer], in + ends_in);
        if (in > 0)
            engine_load(m.stage[buffer].bytes, (const void *)s.elements.from, in, &m.arrived[buffer]);
        if (ends_in > 0)
            engine_load(m.stage[buffer].bytes + in, (const void *)s.ends.from, ends_in, &m.arrived[buffer]);
    } else {
        engine_expect_nothing(&m.arrived[buffer]);
    }
}

/* A lane that waits for the prefix of a tile, to store the result of the tile's first segment. */
template <typename Op> struct merge_waiter {
    using T = typename Op::type;
    int64_t tile, segment; /* tile: -1 if the lane waits for none */
    bool closes;           /* whether the segment ends in the tile */
    T part;                /* the segment's part in the tile */

    template <typename Tiles, typename Store>
    __device__ __forceinline__ void look(const Tiles &tiles, const Store &store, bool alone)
    {
        T before = Op::identity();
        if (tile < 0 || !(alone || tiles.pick_up(tile, &before)))
            return;
        if (closes)
            store(segment, Op()(before, part));
        tile = -1;
    }
};

/* Where a tile's elements and ends are in a buffer, in bytes. No pointers: the compiler must see that
 * the memory is shared. */
struct merge_places {
    int elements, ends;
};

/* The block that has no tiles runs the chain. */
template <typename Tiles, typename Cells>
__device__ __forceinline__ void merge_run_chain(const Tiles &tiles, Cells *cells, bool carrier)
{
    tiles.run(cells);
    __syncthreads();
    if (carrier)
        tiles.end();
}

/* Waits for the engine, or loads the tile without it. Passed by all threads; those that walk wait. */
template <typename T, typename P, typename Load>
__device__ __forceinline__ merge_places merge_arrive(const Load &load, const segment_closings &closings,
                                                     const merge_share &mine, unsigned char *bytes, arrival *arrived,
                                                     unsigned phase)
{
    const bool walks = threadIdx.x < block_threads;
    if (walks)
        engine_await(arrived, phase);
    merge_places at = {mine.elements.skip, (mine.taking > 0 ? mine.elements.bytes : 0) + mine.ends.skip};
    if (!mine.by_engine) {
        at = {0, (mine.taking * (int)sizeof(T) + 15) & ~15};
        if (walks)
            merge_stage_in(load, closings, mine, (T *)bytes, (P *)(bytes + at.ends));
        __syncthreads();
    }
    return at;
}

/* A thread's walk in tile number, by the staged elements and ends. */
template <typename Op, typename Tile, typename P>
__device__ __forceinline__ thread_walk<typename Op::type> merge_walk(const typename Op::type *elements, const P *ends,
                                                                     const merge_share &mine, int64_t number,
                                                                     typename Op::type *results)
{
    const unsigned shift = (unsigned)(mine.closed - number * Tile::size);
    return walk_of_thread<Op, Tile::items>(
        elements, results, [=](int c) { return (int)((unsigned)ends[c] + shift) + c; }, mine.closing,
        mine.taking + mine.closing);
}

template <typename Op, typename P, typename Shape, typename Load, typename Store>
__global__ void __launch_bounds__(block_threads + warp_lanes, Shape::blocks)
    segreduce_pipeline([[maybe_unused]] Load load, [[maybe_unused]] Store store,
                       [[maybe_unused]] segment_closings closings, [[maybe_unused]] const int64_t *starts,
                       [[maybe_unused]] chain<chain_segmented<Op>> tiles)
{
#if SPMV_HAVE_COPY_ENGINE
    using T = typename Op::type;
    using fold = chain_segmented<Op>;
    using memory = merge_memory<Op, P, Shape>;
    using tile = merge_tile<T, P, Shape>;
    extern __shared__ unsigned char dynamic_shared[];
    memory &m = *(memory *)dynamic_shared;
    /* Small elements: draw a tile's number and look up its start one tile earlier, because tiles
     * are processed quickly. Large elements: not worth it, because blocks would hold their tiles
     * longer. */
    constexpr bool AHEAD = sizeof(T) <= 4;
    const bool carrier = threadIdx.x == block_threads, alone = tiles.tiles == 1;
    const T *const from = array_of<T>(load);
    /* ends[s]: of segment s; the last may not exist */
    const P *const ends = (const P *)closings.heads + 1;
    const auto share_of = [&](int64_t number, int64_t closed, int64_t closed_behind) {
        return merge_share_of<tile::size>(closings, tiles.tiles, from, ends, number, closed, closed_behind);
    };
    const auto bring = [&](const merge_order &what, int turn, int buffer) {
        merge_announce(m, what, turn);
        if (what.number >= 0 && what.number < tiles.tiles)
            merge_load(m, share_of(what.number, what.closed, what.closed_behind), buffer);
    };

    const merge_order none = {tiles.tiles, 0, 0};
    merge_order ahead = none;
    let_next_begin();
    await_kernel_before();
    if (!alone)
        tiles.begin();
    if (carrier) {
        engine_prepare(m.arrived, tile::buffers);
        m.cells.prepare();
        bring(merge_draw(tiles, starts, alone), 0, 0);
        if (AHEAD && m.number[0] >= 0 && !alone)
            ahead = merge_draw(tiles, starts, alone);
    }
    __syncthreads();
    if (m.number[0] < 0) {
        merge_run_chain(tiles, &m.cells, carrier);
        return;
    }

    /* The additional warp: lane 0 loads, MERGE_WAITING other lanes wait for the prefix of one tile
     * each. */
    const bool walks = threadIdx.x < block_threads;
    const int turn_of_lane = (int)threadIdx.x - block_threads - 1;
    merge_waiter<Op> waiter = {-1, 0, false, Op::identity()};

    /* All warps pass the same barriers: arrival, walk, join, results. */
    int64_t number;
    for (int step = 0; (number = m.number[step % 2]) < tiles.tiles; step++) {
        const int buffer = step % tile::buffers;
        const merge_share mine = share_of(number, m.closed[step % 2], m.closed_behind[step % 2]);
        unsigned char *const bytes = m.stage[buffer].bytes;
        if (carrier) {
            bring(alone   ? none
                  : AHEAD ? ahead
                          : merge_draw(tiles, starts, alone),
                  1 - step % 2, (step + 1) % tile::buffers);
            if (AHEAD && !alone)
                ahead = merge_draw(tiles, starts, alone);
        }
        const merge_places at =
            merge_arrive<T, P>(load, closings, mine, bytes, &m.arrived[buffer], (unsigned)(step / tile::buffers));
        thread_walk<T> walked = {0, 0, Op::identity()};
        typename fold::type through = fold::identity();
        if (walks) {
            walked = merge_walk<Op, tile>((const T *)(bytes + at.elements), (const P *)(bytes + at.ends), mine, number,
                                          m.results);
            through = block_exclusive_first(fold(), fold::make(walked.open, walked.closes != 0), m.warp_sums);
        }
        __syncthreads(); /* the warps' sums are written */
        if (walks) {
            merge_join<Op>(m, tiles, number, walked, through);
        } else {
            waiter.look(tiles, store, alone);
            while (turn_of_lane == step % MERGE_WAITING && waiter.tile >= 0)
                waiter.look(tiles, store, alone);
            __syncwarp();
        }
        __syncthreads(); /* the results are written */
        if (walks)
            merge_store(store, mine, m.results);
        else if (turn_of_lane == step % MERGE_WAITING)
            waiter = {number, mine.closed, mine.closing > 0, m.first_part};
        __syncthreads(); /* buffers and results are free */
    }
    while (waiter.tile >= 0)
        waiter.look(tiles, store, alone);
    __syncthreads();
    if (carrier && !alone)
        tiles.end();
#endif
}

/* Bytes of scratch: the starts of the tiles. */
inline int64_t segreduce_2_scratch(int64_t element_bytes, int64_t position_bytes, int64_t steps)
{
    const int64_t items =
        merge_items<segreduce_2_shape>(element_bytes > position_bytes ? element_bytes : position_bytes);
    return (steps / (block_threads * items) + 2) * (int64_t)sizeof(int64_t);
}

template <typename Op, typename P, typename Shape, typename Load, typename Store>
spmv_status segreduce_2_launch_ends(spmv_context *ctx, Load load, Store store, segment_closings closings, void *scratch)
{
    using tile = merge_tile<typename Op::type, P, Shape>;
    const int64_t count = tile::count(closings.n + closings.count);
    int64_t *const starts = (int64_t *)scratch;
    spmv_status st = launch_early(ctx, "merge_starts", (int)(count / block_warps + 1), block_threads,
                                  merge_starts<tile::size>, closings, count, starts);
    if (st != SPMV_OK)
        return st;
    const chain<chain_segmented<Op>> tiles = {chain_of(ctx), count, 0};
    const int blocks = count == 1 ? 1 : chain_blocks(ctx, Shape::blocks, count);
    return launch_with_shared<segreduce_pipeline<Op, P, Shape, Load, Store>>(
        ctx, "segreduce_pipeline", {blocks, block_threads + warp_lanes, (int)sizeof(merge_memory<Op, P, Shape>), true},
        load, store, closings, (const int64_t *)starts, tiles);
}

/* store(s, the fold of load over segment s), once for every segment; closings.count > 0. Requires
 * engine_there(ctx). */
template <typename Op, typename Shape = segreduce_2_shape, typename Load, typename Store>
spmv_status segreduce_2_launch(spmv_context *ctx, Load load, Store store, segment_closings closings, void *scratch)
{
    return closings.bits == 32 ? segreduce_2_launch_ends<Op, int32_t, Shape>(ctx, load, store, closings, scratch)
                               : segreduce_2_launch_ends<Op, int64_t, Shape>(ctx, load, store, closings, scratch);
}

#endif

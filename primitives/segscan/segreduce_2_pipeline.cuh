/* segmented reduce, rung 2: the walk of rung 1 with persistent blocks and the copy engine.
 *
 * idea      the n + count steps of the walk (segments.cuh) are divided into tiles. A first launch
 *           finds for every tile the number of segments closed before it, which determines its
 *           elements and segment ends. In the second launch, which starts while the first one
 *           finishes, the warps have the roles of scan, rung 6 (pipeline.cuh), and the copy engine
 *           loads elements and ends into shared memory. Teams of takers process tiles in turn: a
 *           thread finds its place by a binary search (merge path), walks its steps once, and
 *           writes a result at each closing except its first, which needs the open value of earlier
 *           threads. The results take the place of the ends. Only the tile's first closing waits
 *           for the chain, as one number in a ring of its own, so that it holds no buffer.
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

#include "device/pipeline.cuh"
#include "device/segments.cuh"

/* Bytes: of elements or ends per thread and tile. The number of cells is odd, so that neighbouring
 * threads have few bank conflicts. Teams: of threads that walk, each in its own tile. Buffers: at
 * most so many in the ring. */
template <int Bytes, int Teams, int Buffers = CHAIN_HELD> struct merge_shape {
    static constexpr int bytes = Bytes, teams = Teams, buffers = Buffers;
};
using segreduce_2_shape = merge_shape<124, 3>;

/* Tiles of a block that may wait for their prefixes. */
enum { MERGE_WAITING = 12 };

template <typename Shape> constexpr int64_t merge_items(int64_t cell)
{
    return (Shape::bytes / cell - 1) | 1;
}

/* A range of an array in a buffer. It starts where a line of the last-level cache starts, both in
 * memory and in the buffer. From another start, the engine requests each line twice. */
struct engine_range {
    enum { LINE = 128 };
    int64_t from;    /* address, a multiple of 16 */
    int bytes, skip; /* bytes: a multiple of 16; the first skip bytes do not belong to the range */

    template <typename T> static __device__ engine_range of(const T *array, int64_t first, int64_t count)
    {
        const int64_t begin = (int64_t)(array + first), end = (int64_t)(array + first + count);
        const int64_t line = begin & ~(int64_t)(LINE - 1);
        engine_range range;
        range.from = line >= (int64_t)array ? line : begin & ~(int64_t)15;
        range.skip = (int)(begin - range.from);
        range.bytes = count > 0 ? (int)(((end + 15) & ~(int64_t)15) - range.from) : 0;
        return range;
    }

    /* The first start of a line that is not before byte number `bytes` of a buffer. */
    static __device__ int line_from(int bytes)
    {
        return (bytes + LINE - 1) & ~(LINE - 1);
    }
};

template <typename T, typename P, typename Shape> struct merge_tile {
    static constexpr int cell = sizeof(T) > sizeof(P) ? (int)sizeof(T) : (int)sizeof(P);
    static constexpr int items = (int)merge_items<Shape>(cell);
    static_assert(items <= 32, "a word of bits a thread");
    static constexpr int size = block_threads * items;
    /* Both ranges start with a line and end at a multiple of 16 bytes, so they need extra space. The
     * results take the place of the ends. */
    static constexpr int buffer_bytes = size * cell + 3 * engine_range::LINE + 32;

    static int64_t count(int64_t steps)
    {
        return steps / size + (steps % size != 0);
    }
};

/* The first segment that ends in a tile, which waits for the tile's prefix. */
template <typename T> struct merge_first {
    int64_t number, segment; /* number: of the tile */
    T part;                  /* the segment's part in the tile */
    bool closes;             /* whether it ends in the tile; otherwise there is none */
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

/* Where a thread's steps begin in a tile. */
struct thread_steps {
    int first;       /* closings of the tile before the thread's steps */
    unsigned closes; /* bit j: step j of the thread closes a segment */
};

/* closing_step(c): the step of the tile that closes its segment c < closing. */
template <int ITEMS, typename ClosingStep>
__device__ __forceinline__ thread_steps steps_of_thread(int thread, const ClosingStep &closing_step, int closing)
{
    const int begin = thread * ITEMS;
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
    return {lo, closes};
}

/* elements: those of the tile, which has valid steps. Writes results[c] for the thread's own
 * closings, as walk does. Returns the fold of the elements after the last closing. */
template <typename Op, int ITEMS>
__device__ __forceinline__ typename Op::type walk_of_thread(int thread, const typename Op::type *elements,
                                                            typename Op::type *results, thread_steps at, int valid)
{
    const int begin = thread * ITEMS;
    const typename Op::type *const element = elements + (begin - at.first);
    return valid == block_threads * ITEMS
               ? walk<Op, ITEMS, true>(element, results + at.first, at.closes, 0)
               : walk<Op, ITEMS, false>(element, results + at.first, at.closes, valid - begin);
}

/* The elements and segments of a tile, and where they are in its buffer. */
struct merge_share {
    int64_t closed, element; /* the first ones */
    int closing, taking;
    int elements_at, ends_at, results_at; /* bytes */
    bool by_engine;
};

template <typename Op, typename P, typename Shape> struct merge_memory {
    using T = typename Op::type;
    using fold = chain_segmented<Op>;
    using tile = merge_tile<T, P, Shape>;
    struct alignas(engine_range::LINE) buffer {
        unsigned char bytes[tile::buffer_bytes];
    };
    static constexpr int MOST = CHAIN_HELD - MERGE_WAITING;
    static constexpr int BUFFERS = pipeline_buffers((int)sizeof(buffer), Shape::buffers < MOST ? Shape::buffers : MOST);
    buffer stage[BUFFERS];
    pipeline_state<fold, BUFFERS> state;
    merge_share shares[BUFFERS];
    merge_first<T> first[MERGE_WAITING];
    arrival waits[MERGE_WAITING], stored[MERGE_WAITING]; /* first is there; is stored */

    __device__ void prepare()
    {
        engine_prepare(waits, MERGE_WAITING, block_warps);
        engine_prepare(stored, MERGE_WAITING);
    }
};

/* Loads what the engine cannot load, with the threads that walk. */
template <typename T, typename P, typename Load>
__device__ __forceinline__ void merge_stage_in(const Load &load, const segment_closings &closings,
                                               const merge_share &mine, T *elements, P *ends)
{
    for (int i = pipeline_thread(); i < mine.taking; i += block_threads)
        elements[i] = load(mine.element + i);
    for (int c = pipeline_thread(); c < mine.closing; c += block_threads)
        ends[c] = (P)(closings(mine.closed + c) - (mine.closed + c));
}

/* The work of the roles on a tile. */
template <typename Op, typename P, typename Shape, typename Load, typename Store> struct merge_work {
    using T = typename Op::type;
    using fold = chain_segmented<Op>;
    using memory = merge_memory<Op, P, Shape>;
    using tile = merge_tile<T, P, Shape>;
    static constexpr int TAKERS = Shape::teams, FINISHERS = 0, BUFFERS = memory::BUFFERS;
    static constexpr bool ENGINE_STORES = false, LOADS_APART = true; /* the place of a tile is read from memory */

    pipeline_state<fold, BUFFERS> &m;
    memory &own;
    const Load &load;
    const Store &store;
    const segment_closings &closings;
    const int64_t *starts;
    int64_t tiles;
    const T *from;
    const P *ends; /* of segment s: ends[s]; the last may not exist */

    __device__ void prepare() const
    {
        own.prepare();
    }

    /* Waits until the fetcher has read the cell of own.first that the block's tile `index` uses. */
    __device__ __forceinline__ void await_cell(int index) const
    {
        if (index >= MERGE_WAITING)
            engine_await(&own.stored[index % MERGE_WAITING], (unsigned)(index / MERGE_WAITING - 1));
    }

    __device__ __forceinline__ void bring(int64_t number, int buffer, int index) const
    {
        await_cell(index);
        const int64_t begin = number * tile::size;
        merge_share s;
        s.closed = starts[number];
        s.element = begin - s.closed;
        s.closing = (int)(starts[number + 1] - s.closed);
        s.taking = tile_valid(begin, closings.n + closings.count, tile::size) - s.closing;
        const engine_range in = engine_range::of(from, s.element, s.taking),
                           ends_in = engine_range::of(ends, s.closed, s.closing);
        /* the engine reads no byte beyond the arrays */
        s.by_engine = number + 1 < tiles && in.from + in.bytes <= (int64_t)(from + closings.n) &&
                      ends_in.from + ends_in.bytes <= (int64_t)(ends + closings.count - 1);
        s.elements_at = s.by_engine ? in.skip : 0;
        s.results_at = engine_range::line_from(s.by_engine ? in.bytes : s.taking * (int)sizeof(T));
        s.ends_at = s.results_at + (s.by_engine ? ends_in.skip : 0);
        own.shares[buffer] = s;
        if (!s.by_engine) {
            engine_expect_nothing(&m.full[buffer]);
            return;
        }
        engine_expect(&m.full[buffer], (unsigned)(in.bytes + ends_in.bytes));
        unsigned char *const bytes = own.stage[buffer].bytes;
        if (in.bytes > 0)
            engine_load(bytes, (const void *)in.from, (unsigned)in.bytes, &m.full[buffer]);
        if (ends_in.bytes > 0)
            engine_load(bytes + s.results_at, (const void *)ends_in.from, (unsigned)ends_in.bytes, &m.full[buffer]);
    }

    __device__ __forceinline__ void take(int64_t number, int buffer, unsigned phase, int index) const
    {
        const int thread = pipeline_thread();
        const merge_share mine = own.shares[buffer];
        unsigned char *const bytes = own.stage[buffer].bytes;
        P *const tile_ends = (P *)(bytes + mine.ends_at);
        T *const results = (T *)(bytes + mine.results_at);
        if (!mine.by_engine) {
            merge_stage_in(load, closings, mine, (T *)bytes, tile_ends);
            pipeline_sync();
        }
        const thread_steps steps = steps_of_thread<tile::items>(
            thread, [=](int c) { return (int)((unsigned)tile_ends[c] - (unsigned)mine.element) + c; }, mine.closing);
        pipeline_sync(); /* all have read the ends */
        const T open = walk_of_thread<Op, tile::items>(thread, (const T *)(bytes + mine.elements_at), results, steps,
                                                       mine.taking + mine.closing);
        const typename fold::type through = warp_inclusive(fold(), fold::make(open, steps.closes != 0));
        m.hand_sum(buffer, through);
        engine_await(&m.summed[buffer], phase);
        join(number, buffer, index % MERGE_WAITING, mine, steps, through, results);
        pipeline_sync(); /* the results are written */
        for (int c = thread + 1; c < mine.closing; c += block_threads)
            store(mine.closed + c, results[c]);
    }

    /* Joins the thread's first closing with the part before it. The tile's first goes to the fetcher. */
    __device__ __forceinline__ void join(int64_t number, int buffer, int slot, const merge_share &mine,
                                         thread_steps steps, typename fold::type through, T *results) const
    {
        const typename fold::type earlier = pipeline_earlier(fold(), through, m.warp_sums[buffer]);
        if (steps.closes != 0) {
            const T part = Op()(fold::value_of(earlier), results[steps.first]);
            if (steps.first == 0)
                own.first[slot].part = part;
            else
                results[steps.first] = part;
        }
        if (pipeline_thread() == 0) {
            own.first[slot].number = number;
            own.first[slot].segment = mine.closed;
            own.first[slot].closes = mine.closing > 0;
        }
        pipeline_arrive(&own.waits[slot]);
    }

    /* Called by a team of takers that gets no further tile. */
    __device__ __forceinline__ void end(int index) const
    {
        await_cell(index);
        if (pipeline_thread() == 0)
            own.first[index % MERGE_WAITING].number = tiles;
        pipeline_arrive(&own.waits[index % MERGE_WAITING]);
    }

    __device__ __forceinline__ void fetch(const chain<fold> &chain) const
    {
        for (int index = 0;; index++) {
            const int slot = index % MERGE_WAITING;
            engine_await(&own.waits[slot], (unsigned)(index / MERGE_WAITING));
            const merge_first<T> first = own.first[slot];
            if (first.number >= tiles)
                return;
            engine_expect_nothing(&own.stored[slot]);
            T before = Op::identity();
            while (tiles != 1 && !chain.pick_up(first.number, &before)) {
            }
            if (first.closes)
                store(first.segment, Op()(before, first.part));
        }
    }
};

template <typename Op, typename P, typename Shape, typename Load, typename Store>
__global__ void __launch_bounds__(pipeline_threads(Shape::teams, 0), 1)
    segreduce_pipeline([[maybe_unused]] Load load, [[maybe_unused]] Store store,
                       [[maybe_unused]] segment_closings closings, [[maybe_unused]] const int64_t *starts,
                       [[maybe_unused]] chain<chain_segmented<Op>> tiles)
{
#if SPMV_HAVE_COPY_ENGINE
    using work = merge_work<Op, P, Shape, Load, Store>;
    extern __shared__ __align__(engine_range::LINE) unsigned char dynamic_shared[];
    auto &memory = *(typename work::memory *)dynamic_shared;
    work of_block = {memory.state,
                     memory,
                     load,
                     store,
                     closings,
                     starts,
                     tiles.tiles,
                     array_of<typename Op::type>(load),
                     (const P *)closings.heads + 1};
    pipeline_run(of_block, tiles);
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
    const int blocks = count == 1 ? 1 : chain_blocks(ctx, 1, count);
    return launch_with_shared<segreduce_pipeline<Op, P, Shape, Load, Store>>(
        ctx, "segreduce_pipeline",
        {blocks, pipeline_threads(Shape::teams, 0), (int)sizeof(merge_memory<Op, P, Shape>), true}, load, store,
        closings, (const int64_t *)starts, tiles);
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

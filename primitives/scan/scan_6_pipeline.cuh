/* scan, rung 6: one pass with persistent blocks; the copy engine loads and stores.
 *
 * idea      in rung 5 a block loads, computes, waits for its prefix and stores; while it waits it
 *           has no memory accesses in flight. Here a block processes tile after tile. While the
 *           copy engine loads the next tile into shared memory and stores the last one, the block
 *           folds the current tile and publishes the sum. Then it finishes the previous tile, whose
 *           prefix has arrived from the chain block in the meantime (the order of steps:
 *           pipeline.cuh).
 * work      as rung 5
 * depth     as rung 5
 * launches  1, whatever n
 * bytes     2 n v
 * changed   loads, stores and the transport of prefixes overlap with work within a block, not only
 *           between blocks; a prefix comes from the chain, not from a look-back; no states to reset
 * wins      everywhere on devices with a copy engine (9.0 to 11)
 * order     keeps the order of the operands; bits depend on n alone
 * source    Merrill, Garland 2016 (single pass); S. Yan, G. Long, Y. Zhang, "StreamScan", PPoPP
 *           2013 (persistent blocks, adjacent synchronisation)
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SPMV_SCAN_6_PIPELINE_CUH
#define SPMV_SCAN_6_PIPELINE_CUH

#include "pipeline.cuh"

/* Two blocks per multiprocessor, 36 KiB per tile: on an H100 with 2^28 elements faster than tiles
 * of 28 KiB, and than one block per multiprocessor. */
using scan_6_shape = lookback_shape<block_threads, 9, 2>;

/* The segment heads of a plain scan: none. A segmented scan has its own class
 * (segscan_3_pipeline.cuh). */
struct no_heads {
    static constexpr bool ANY = false;
    template <typename Op> using fold = chain_plain<Op>;
    template <typename Tile> struct cells {
    };
    template <typename Tile> __host__ __device__ unsigned engine_bytes() const
    {
        return 0;
    }
    template <typename Tile> __device__ void bring(int64_t, cells<Tile> *, arrival *) const
    {
    }
    template <typename Tile> __device__ unsigned starts(int64_t, int, bool, cells<Tile> *) const
    {
        return 0;
    }
};

/* A block's shared memory. */
template <typename Op, typename Shape, typename Heads> struct scan_6_stage {
    using T = typename Op::type;
    using tile = vector_tile<T, Shape>;
    using fold = typename Heads::template fold<Op>;
    struct alignas(16) buffer {
        typename tile::vector elements[Shape::threads * tile::vectors];
    };
    buffer stage[PIPELINE_BUFFERS];
    typename Heads::template cells<tile> heads[PIPELINE_BUFFERS];
    /* used alternately, so that one barrier per tile suffices */
    typename fold::type warp_sums[2][Shape::warps];
};

template <typename Op, typename Shape, typename Heads>
struct scan_6_memory : scan_6_stage<Op, Shape, Heads>, pipeline_state<typename Heads::template fold<Op>> {
};

/* The work of a block on a tile. The engine moves whole, aligned tiles; the threads move the
 * others. */
template <typename Op, typename Shape, typename Heads, typename Load, typename Store> struct scan_6_work {
    using T = typename Op::type;
    using tile = vector_tile<T, Shape>;
    using memory = scan_6_memory<Op, Shape, Heads>;
    using fold = typename Heads::template fold<Op>;
    using X = typename fold::type;
    static constexpr int THREADS = Shape::threads;
    static constexpr bool ENGINE_STORES = true;
    static constexpr unsigned BYTES = tile::size * sizeof(T);
    static_assert(BYTES % 16 == 0, "what the engine moves");
    /* Of a tile: the fold of its elements before the thread's; which of the thread's elements start
     * a segment. */
    struct left {
        X earlier = fold::identity();
        unsigned starts = 0;
    };

    memory &m;
    const Load &load;
    const Store &store;
    const Heads &heads;
    const chain<fold> &tiles;
    int64_t n, whole; /* elements; tiles without a short last one */
    bool exclusive, engine_in, engine_out;
    const T *from;
    T *to;

    __device__ __forceinline__ void bring(int64_t number, int buffer) const
    {
        if (number >= tiles.tiles)
            return;
        if (engine_in && number < whole) {
            engine_expect(&m.arrived[buffer], BYTES + heads.template engine_bytes<tile>());
            engine_load(m.stage[buffer].elements, from + number * tile::size, BYTES, &m.arrived[buffer]);
            heads.template bring<tile>(number * tile::size, &m.heads[buffer], &m.arrived[buffer]);
        } else {
            engine_expect_nothing(&m.arrived[buffer]);
        }
    }

    /* Waits until the tile is in its buffer; applies the loader's function. */
    __device__ __forceinline__ void await(int64_t begin, int valid, bool by_engine, int buffer, int step) const
    {
        engine_await(&m.arrived[buffer], (unsigned)(step / PIPELINE_BUFFERS));
        if (!by_engine) {
            __syncthreads(); /* the first thread has waited for the buffer */
            T *const cells = m.stage[buffer].elements[0].at;
            for (int i = (int)threadIdx.x; i < tile::size; i += Shape::threads)
                cells[i] = i < valid ? unmapped<T>(load)(begin + i) : Op::identity();
            __syncthreads();
        }
        if constexpr (is_mapped<T, Load>::yes) {
            auto *const row = tile_row<Shape, T>(m.stage[buffer].elements);
#pragma unroll 1
            for (int k = 0; k < tile::vectors; k++)
#pragma unroll
                for (int j = 0; j < tile::each; j++)
                    if (((int)threadIdx.x * tile::vectors + k) * tile::each + j < valid)
                        row[k].at[j] = load.function(row[k].at[j]);
        }
    }

    /* Folds the tile and publishes the result. */
    __device__ __forceinline__ left take(int64_t number, int step) const
    {
        const Op op{};
        const int buffer = step % PIPELINE_BUFFERS;
        const int64_t begin = number * tile::size;
        const int valid = tile_valid(begin, n, tile::size);
        const bool by_engine = engine_in && number < whole;
        await(begin, valid, by_engine, buffer, step);
        auto *const row = tile_row<Shape, T>(m.stage[buffer].elements);
        left mine;
        mine.starts = heads.template starts<tile>(begin, valid, by_engine, &m.heads[buffer]);
        T sum = Op::identity();
#pragma unroll
        for (int k = 0; k < tile::vectors; k++) {
            const typename tile::vector v = row[k];
#pragma unroll
            for (int j = 0; j < tile::each; j++) {
                const bool start = Heads::ANY && (mine.starts >> (k * tile::each + j) & 1u);
                sum = k + j == 0 || start ? v.at[j] : op(sum, v.at[j]);
            }
        }
        X all;
        mine.earlier =
            block_exclusive_once<Shape::warps>(fold(), fold::make(sum, mine.starts != 0), m.warp_sums[step % 2], &all);
        if (threadIdx.x == 0 && tiles.tiles != 1)
            tiles.publish(number, fold::value_of(all), fold::starts(all));
        return mine;
    }

    /* Scans the tile, starting with its prefix, and stores it. */
    __device__ __forceinline__ void finish(int64_t number, int buffer, const left &of) const
    {
        scan_row(buffer, of);
        const int64_t begin = number * tile::size;
        const bool by_engine = engine_out && number < whole;
        if (by_engine)
            engine_fence();
        __syncthreads();
        if (by_engine) {
            if (threadIdx.x == 0)
                engine_store(to + begin, m.stage[buffer].elements, BYTES);
        } else {
            const int valid = tile_valid(begin, n, tile::size);
            const T *const cells = m.stage[buffer].elements[0].at;
            for (int i = (int)threadIdx.x; i < valid; i += Shape::threads)
                store(begin + i, cells[i]);
            __syncthreads(); /* the buffer is free */
        }
    }

    __device__ __forceinline__ void scan_row(int buffer, const left &of) const
    {
        const Op op{};
        auto *const row = tile_row<Shape, T>(m.stage[buffer].elements);
        T through = fold::starts(of.earlier) ? fold::value_of(of.earlier) : op(m.before, fold::value_of(of.earlier));
#pragma unroll
        for (int k = 0; k < tile::vectors; k++) {
            typename tile::vector v = row[k];
#pragma unroll
            for (int j = 0; j < tile::each; j++) {
                const bool start = Heads::ANY && (of.starts >> (k * tile::each + j) & 1u);
                const T preceding = start ? Op::identity() : through;
                through = start ? v.at[j] : op(through, v.at[j]);
                v.at[j] = exclusive ? preceding : through;
            }
            row[k] = v;
        }
    }
};

/* store(i, the scan up to i). */
template <typename Op, typename Shape, typename Heads, typename Load, typename Store>
__global__ void __launch_bounds__(Shape::threads, Shape::blocks)
    scan_pipeline([[maybe_unused]] Load load, [[maybe_unused]] Store store, [[maybe_unused]] Heads heads,
                  [[maybe_unused]] int64_t n, [[maybe_unused]] chain<typename Heads::template fold<Op>> tiles,
                  [[maybe_unused]] bool exclusive)
{
#if SPMV_HAVE_COPY_ENGINE
    using T = typename Op::type;
    using work = scan_6_work<Op, Shape, Heads, Load, Store>;
    extern __shared__ unsigned char dynamic_shared[];
    const T *const from = array_of<T>(unmapped<T>(load));
    T *const to = (T *)array_of<T>(store);
    work of_block = {*(typename work::memory *)dynamic_shared,
                     load,
                     store,
                     heads,
                     tiles,
                     n,
                     n / work::tile::size,
                     exclusive,
                     in_vectors(from),
                     in_vectors(to),
                     from,
                     to};
    pipeline_run(of_block, tiles);
#endif
}

/* store(i, load(0) op ... op load(i)); exclusive: without load(i), starting with the identity.
 * Restarts at each head. n > 0. Load and store may access the same memory. Requires
 * engine_there(ctx). */
template <typename Op, typename Shape = scan_6_shape, typename Heads = no_heads, typename Load, typename Store>
spmv_status scan_6_launch(spmv_context *ctx, Load load, Store store, Heads heads, int64_t n, bool exclusive)
{
    using T = typename Op::type;
    const int64_t size = vector_tile<T, Shape>::size, tiles = n / size + (n % size != 0);
    const chain<typename Heads::template fold<Op>> states = {chain_of(ctx), tiles, 0};
    const int blocks = tiles == 1 ? 1 : chain_blocks(ctx, Shape::blocks, tiles);
    return launch_with_shared<scan_pipeline<Op, Shape, Heads, Load, Store>>(
        ctx, "scan_pipeline", {blocks, Shape::threads, (int)sizeof(scan_6_memory<Op, Shape, Heads>), true}, load, store,
        heads, n, states, exclusive);
}

#endif

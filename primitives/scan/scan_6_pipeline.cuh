/* scan, rung 6: one pass, blocks that stay, the copy engine in front of them and behind them.
 *
 * Idea: in rung 5 a block loads, then computes, then waits for what stands before its tile, then stores; while it waits
 * it asks memory for nothing. Here a block goes from tile to tile. While the copy engine brings the next tile into
 * shared memory and takes the last one away, the block folds the current tile, publishes the sum, and then finishes the
 * tile before it, whose prefix has arrived in the meantime from the chain block (chain.cuh). Three buffers: one being
 * filled, one folded, one finished or on its way out.
 * Work and depth as rung 5; launches 1, whatever n; bytes moved 2 n v.
 * Changed since rung 5: loads, stores and the way of the prefixes overlap with work in one block, not only between
 * blocks; a prefix comes from the chain instead of a look-back; no states to be reset.
 * Wins: everywhere on devices with a copy engine (9.0 to 11).
 * Keeps the order of the operands; bits depend on n alone.
 * Merrill, Garland 2016 (single pass); S. Yan, G. Long, Y. Zhang, "StreamScan", PPoPP 2013 (blocks that stay, adjacent
 * synchronisation).
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SPMV_SCAN_6_PIPELINE_CUH
#define SPMV_SCAN_6_PIPELINE_CUH

#include "chain.cuh"
#include "copy_engine.cuh"
#include "vector_tiles.cuh"

/* Two blocks a multiprocessor, 36 KiB a tile. On an H100, 2^28 elements: 0.98 of a copy in f32, 0.95 in f64; with 28
 * KiB 0.96 and 0.91; with one block a multiprocessor 0.94 and 0.88. */
using scan_6_shape = lookback_shape<block_threads, 9, 2>;

enum { PIPELINE_BUFFERS = 3 };

/* The heads of a plain scan: there are none. A segmented scan has its own (segscan_3_pipeline.cuh). */
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
template <typename Op, typename Shape, typename Heads> struct pipeline_memory {
    using T = typename Op::type;
    using tile = vector_tile<T, Shape>;
    using fold = typename Heads::template fold<Op>;
    struct alignas(16) buffer {
        typename tile::vector elements[Shape::threads * tile::vectors];
    };
    buffer stage[PIPELINE_BUFFERS];
    typename Heads::template cells<tile> heads[PIPELINE_BUFFERS];
    arrival arrived[PIPELINE_BUFFERS];
    typename fold::type warp_sums[2][Shape::warps]; /* in turn, so that one barrier a tile is enough */
    T before_tile;
    int64_t number[2]; /* of the tile in hand and of the next, in turn */
    chain_cells<fold> cells;
};

/* store(i, the scan up to i). Tiles that are whole and aligned go through the engine, others thread by thread. */
template <typename Op, typename Shape, typename Heads, typename Load, typename Store>
__global__ void __launch_bounds__(Shape::threads, Shape::blocks)
    scan_pipeline([[maybe_unused]] Load load, [[maybe_unused]] Store store, [[maybe_unused]] Heads heads,
                  [[maybe_unused]] int64_t n, [[maybe_unused]] chain<typename Heads::template fold<Op>> tiles,
                  [[maybe_unused]] bool exclusive)
{
#if SPMV_HAVE_COPY_ENGINE
    using T = typename Op::type;
    using tile = vector_tile<T, Shape>;
    using fold = typename Heads::template fold<Op>;
    using X = typename fold::type;
    using memory = pipeline_memory<Op, Shape, Heads>;
    constexpr unsigned BYTES = tile::size * sizeof(T);
    static_assert(BYTES % 16 == 0, "what the engine moves");
    extern __shared__ unsigned char dynamic_shared[];
    memory &m = *(memory *)dynamic_shared;
    const Op op{};
    const bool first = threadIdx.x == 0, last = threadIdx.x == Shape::threads - 1, alone = tiles.tiles == 1;
    const T *const from = array_of<T>(unmapped<T>(load));
    T *const to = (T *)array_of<T>(store);
    const int64_t whole = n / tile::size;
    const bool engine_in = in_vectors(from), engine_out = in_vectors(to);

    /* One thread: the copy of a tile into its buffer, or word that there is none. */
    const auto bring = [&](int64_t number, int buffer) {
        if (number >= tiles.tiles)
            return;
        if (engine_in && number < whole) {
            engine_expect(&m.arrived[buffer], BYTES + heads.template engine_bytes<tile>());
            engine_load(m.stage[buffer].elements, from + number * tile::size, BYTES, &m.arrived[buffer]);
            heads.template bring<tile>(number * tile::size, &m.heads[buffer], &m.arrived[buffer]);
        } else {
            engine_expect_nothing(&m.arrived[buffer]);
        }
    };

    let_next_begin();
    await_kernel_before();
    if (!alone)
        tiles.begin();
    if (first) {
        engine_prepare(m.arrived, PIPELINE_BUFFERS);
        m.cells.prepare();
        m.number[0] = alone ? 0 : tiles.draw();
        if (m.number[0] >= 0)
            bring(m.number[0], 0);
    }
    __syncthreads();
    if (m.number[0] < 0) {
        tiles.run(&m.cells);
        __syncthreads();
        if (first)
            tiles.end();
        return;
    }
    int64_t behind = -1;          /* the tile before the one in hand, -1: none */
    X earlier = fold::identity(); /* in it, before the thread's elements */
    unsigned starts = 0;          /* of the thread's elements in it */
    for (int step = 0;; step++) {
        const int64_t number = m.number[step % 2];
        const bool in_hand = number < tiles.tiles;
        if (!in_hand && behind < 0)
            break;
        if (first) {
            int64_t next = tiles.tiles;
            if (in_hand && !alone)
                next = tiles.draw();
            m.number[(step + 1) % 2] = next;
            if (next < tiles.tiles)
                engine_await_reads<PIPELINE_BUFFERS - 3>(); /* of what left the buffer */
            bring(next, (step + 1) % PIPELINE_BUFFERS);
        }
        T before = Op::identity();
        bool known = alone;
        if (last && behind >= 0 && !known)
            known = tiles.pick_up(behind, &before);

        /* the tile in hand: fold, publish */
        X sum_before = fold::identity();
        unsigned starts_here = 0;
        if (in_hand) {
            const int buffer = step % PIPELINE_BUFFERS;
            const int64_t begin = number * tile::size;
            const int valid = tile_valid(begin, n, tile::size);
            const bool by_engine = engine_in && number < whole;
            engine_await(&m.arrived[buffer], (unsigned)(step / PIPELINE_BUFFERS));
            if (!by_engine) {
                __syncthreads(); /* the first thread has waited for the buffer */
                T *const cells = m.stage[buffer].elements[0].at;
                for (int i = (int)threadIdx.x; i < tile::size; i += Shape::threads)
                    cells[i] = i < valid ? unmapped<T>(load)(begin + i) : Op::identity();
                __syncthreads();
            }
            auto *const row = tile_row<Shape, T>(m.stage[buffer].elements);
            if constexpr (is_mapped<T, Load>::yes) {
#pragma unroll 1
                for (int k = 0; k < tile::vectors; k++)
#pragma unroll
                    for (int j = 0; j < tile::each; j++)
                        if (((int)threadIdx.x * tile::vectors + k) * tile::each + j < valid)
                            row[k].at[j] = load.function(row[k].at[j]);
            }
            starts_here = heads.template starts<tile>(begin, valid, by_engine, &m.heads[buffer]);
            T sum = Op::identity();
#pragma unroll
            for (int k = 0; k < tile::vectors; k++) {
                const typename tile::vector v = row[k];
#pragma unroll
                for (int j = 0; j < tile::each; j++) {
                    const bool start = Heads::ANY && (starts_here >> (k * tile::each + j) & 1u);
                    sum = k + j == 0 || start ? v.at[j] : op(sum, v.at[j]);
                }
            }
            X all;
            sum_before = block_exclusive_once<Shape::warps>(fold(), fold::make(sum, starts_here != 0),
                                                            m.warp_sums[step % 2], &all);
            if (first && !alone)
                tiles.publish(number, fold::value_of(all), fold::starts(all));
        }

        /* the tile behind it: what stands before it, its scan, its way out */
        if (behind >= 0) {
            if (last) {
                while (!known)
                    known = tiles.pick_up(behind, &before);
                m.before_tile = before;
            }
            __syncthreads();
            const int buffer = (step + PIPELINE_BUFFERS - 1) % PIPELINE_BUFFERS;
            const int64_t begin = behind * tile::size;
            auto *const row = tile_row<Shape, T>(m.stage[buffer].elements);
            T through = fold::starts(earlier) ? fold::value_of(earlier) : op(m.before_tile, fold::value_of(earlier));
#pragma unroll
            for (int k = 0; k < tile::vectors; k++) {
                typename tile::vector v = row[k];
#pragma unroll
                for (int j = 0; j < tile::each; j++) {
                    const bool start = Heads::ANY && (starts >> (k * tile::each + j) & 1u);
                    const T preceding = start ? Op::identity() : through;
                    through = start ? v.at[j] : op(through, v.at[j]);
                    v.at[j] = exclusive ? preceding : through;
                }
                row[k] = v;
            }
            const bool by_engine = engine_out && behind < whole;
            if (by_engine)
                engine_fence();
            __syncthreads();
            if (by_engine) {
                if (first)
                    engine_store(to + begin, m.stage[buffer].elements, BYTES);
            } else {
                const int valid = tile_valid(begin, n, tile::size);
                const T *const cells = m.stage[buffer].elements[0].at;
                for (int i = (int)threadIdx.x; i < valid; i += Shape::threads)
                    store(begin + i, cells[i]);
                __syncthreads(); /* the buffer is free */
            }
        } else {
            __syncthreads(); /* the next number is there */
        }
        behind = in_hand ? number : -1;
        earlier = sum_before;
        starts = starts_here;
    }
    if (first) {
        engine_await_reads<0>();
        if (!alone)
            tiles.end();
    }
#endif
}

/* store(i, load(0) op ... op load(i)), or without load(i) and starting from the identity, restarted where heads say so;
 * n > 0. Load and store may touch the same memory. engine_there(ctx). */
template <typename Op, typename Shape = scan_6_shape, typename Heads = no_heads, typename Load, typename Store>
spmv_status scan_6_launch(spmv_context *ctx, Load load, Store store, Heads heads, int64_t n, bool exclusive)
{
    using T = typename Op::type;
    const int64_t size = vector_tile<T, Shape>::size, tiles = n / size + (n % size != 0);
    const chain<typename Heads::template fold<Op>> states = {chain_of(ctx), tiles, 0};
    const int blocks = tiles == 1 ? 1 : chain_blocks(ctx, Shape::blocks, tiles);
    return launch_with_shared<scan_pipeline<Op, Shape, Heads, Load, Store>>(
        ctx, "scan_pipeline", {blocks, Shape::threads, (int)sizeof(pipeline_memory<Op, Shape, Heads>), true}, load,
        store, heads, n, states, exclusive);
}

#endif

/* scan, rung 6: one pass with persistent blocks; the copy engine loads and stores.
 *
 * idea      in rung 5 a block loads, computes, waits for its prefix and stores; while it waits it
 *           has no memory accesses in flight. Here a block has a ring of tiles in shared memory,
 *           which the copy engine loads and stores, and its warps have roles (pipeline.cuh). Takers
 *           fold a tile. Finishers fold it again, because a thread's place in the fold costs less
 *           to compute than to keep, and scan it, starting with the prefix that has arrived from
 *           the chain block in the meantime.
 * work      3 n
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

#include "device/pipeline.cuh"

/* 36 KiB per tile. */
using scan_6_shape = pipeline_shape<9>;

/* The segment heads of a plain scan: none. A segmented scan has its own class
 * (segscan_6_pipeline.cuh). */
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
    template <typename Tile> __device__ void stage(int64_t, int, bool, cells<Tile> *) const
    {
    }
    template <typename Tile> __device__ unsigned starts(bool, const cells<Tile> *) const
    {
        return 0;
    }
};

/* Returns the bits; the compiler cannot know that they are the same. ptxas 13.0 keeps the test of a
 * bit in a predicate register across instructions (R2P) that overwrite it, if the same bits are
 * tested twice: the last element of a thread in an exclusive segmented scan was wrong. */
__device__ inline unsigned other_register(unsigned bits)
{
#ifdef __CUDA_ARCH__
    asm volatile("" : "+r"(bits));
#endif
    return bits;
}

/* A tile in shared memory. */
template <typename Op, typename Shape, typename Heads> struct scan_6_buffer {
    using tile = vector_tile<typename Op::type, Shape>;
    alignas(128) typename tile::vector elements[Shape::threads * tile::vectors];
    typename Heads::template cells<tile> heads;
};

template <typename Op, typename Shape, typename Heads> struct scan_6_memory {
    using buffer = scan_6_buffer<Op, Shape, Heads>;
    using fold = typename Heads::template fold<Op>;
    static constexpr int BUFFERS = pipeline_buffers((int)sizeof(buffer), CHAIN_HELD);
    buffer stage[BUFFERS];
    pipeline_state<fold, BUFFERS> state;
};

/* The work of the roles on a tile. The engine moves whole, aligned tiles; the threads move the
 * others. */
template <typename Op, typename Shape, typename Heads, typename Load, typename Store> struct scan_6_work {
    using T = typename Op::type;
    using tile = vector_tile<T, Shape>;
    using memory = scan_6_memory<Op, Shape, Heads>;
    using fold = typename Heads::template fold<Op>;
    using X = typename fold::type;
    static constexpr int BUFFERS = memory::BUFFERS;
    static constexpr int TAKERS = Shape::takers, FINISHERS = 1;
    static constexpr bool LOADS_APART = false, ENGINE_STORES = true;
    static constexpr unsigned BYTES = tile::size * sizeof(T);
    static_assert(BYTES % 16 == 0, "what the engine moves");

    pipeline_state<fold, BUFFERS> &m;
    typename memory::buffer *stage;
    const Load &load;
    const Store &store;
    const Heads &heads;
    int64_t n, whole; /* elements; tiles without a short last one */
    bool exclusive, engine_in, engine_out;
    const T *from;
    T *to;

    __device__ __forceinline__ void bring(int64_t number, int buffer, int) const
    {
        if (engine_in && number < whole) {
            engine_expect(&m.full[buffer], BYTES + heads.template engine_bytes<tile>());
            engine_load(stage[buffer].elements, from + number * tile::size, BYTES, &m.full[buffer]);
            heads.template bring<tile>(number * tile::size, &stage[buffer].heads, &m.full[buffer]);
        } else {
            engine_expect_nothing(&m.full[buffer]);
        }
    }

    /* The elements of the warp's threads: the first, and how many. */
    static constexpr int WARP_ITEMS = warp_lanes * tile::items;
    static __device__ int first_of_warp()
    {
        return pipeline_thread() / warp_lanes * WARP_ITEMS;
    }

    /* The thread's elements. */
    __device__ typename tile::vector *row_of(int buffer) const
    {
        return stage[buffer].elements + pipeline_thread() * tile::vectors;
    }

    /* Completes the warp's part of the tile in its buffer: loads what the engine did not load; applies the loader's
     * function. */
    __device__ __forceinline__ void complete(int64_t begin, int valid, bool by_engine, int buffer) const
    {
        if (!by_engine) {
            T *const cells = stage[buffer].elements[0].at;
            for (int i = first_of_warp() + (int)threadIdx.x % warp_lanes; i < first_of_warp() + WARP_ITEMS;
                 i += warp_lanes)
                cells[i] = i < valid ? unmapped<T>(load)(begin + i) : Op::identity();
            __syncwarp();
        }
        if constexpr (is_mapped<T, Load>::yes) {
            auto *const row = row_of(buffer);
#pragma unroll 1
            for (int k = 0; k < tile::vectors; k++)
#pragma unroll
                for (int j = 0; j < tile::each; j++)
                    if ((pipeline_thread() * tile::vectors + k) * tile::each + j < valid)
                        row[k].at[j] = load.function(row[k].at[j]);
        }
        heads.template stage<tile>(begin, valid, by_engine, &stage[buffer].heads);
    }

    /* The fold of the elements of the warp's lanes up to this one. */
    __device__ __forceinline__ X warp_fold(const typename tile::vector *row, unsigned starts) const
    {
        const Op op{};
        T sum = Op::identity();
#pragma unroll
        for (int k = 0; k < tile::vectors; k++) {
            const typename tile::vector v = row[k];
#pragma unroll
            for (int j = 0; j < tile::each; j++) {
                const bool start = Heads::ANY && (starts >> (k * tile::each + j) & 1u);
                sum = k + j == 0 || start ? v.at[j] : op(sum, v.at[j]);
            }
        }
        return warp_inclusive(fold(), fold::make(sum, starts != 0));
    }

    __device__ __forceinline__ void take(int64_t number, int buffer, unsigned, int) const
    {
        const int64_t begin = number * tile::size;
        const bool by_engine = engine_in && number < whole;
        complete(begin, tile_valid(begin, n, tile::size), by_engine, buffer);
        m.hand_sum(buffer, warp_fold(row_of(buffer), heads.template starts<tile>(by_engine, &stage[buffer].heads)));
    }

    /* Scans the tile, starting with its prefix. */
    __device__ __forceinline__ void finish(int64_t number, int buffer) const
    {
        const Op op{};
        auto *const row = row_of(buffer);
        unsigned starts = heads.template starts<tile>(engine_in && number < whole, &stage[buffer].heads);
        typename tile::vector mine[tile::vectors];
#pragma unroll
        for (int k = 0; k < tile::vectors; k++)
            mine[k] = row[k];
        const X earlier = pipeline_earlier(fold(), warp_fold(mine, starts), m.warp_sums[buffer]);
        T through = fold::starts(earlier) ? fold::value_of(earlier) : op(m.before[buffer], fold::value_of(earlier));
#pragma unroll
        for (int k = 0; k < tile::vectors; k++) {
            if (Heads::ANY)
                starts = other_register(starts);
#pragma unroll
            for (int j = 0; j < tile::each; j++) {
                const bool start = Heads::ANY && (starts >> (k * tile::each + j) & 1u);
                const T preceding = start ? Op::identity() : through;
                through = start ? mine[k].at[j] : op(through, mine[k].at[j]);
                mine[k].at[j] = exclusive ? preceding : through;
            }
            row[k] = mine[k];
        }
        if (engine_out && number < whole)
            return;
        __syncwarp();
        const int64_t begin = number * tile::size;
        const int valid = tile_valid(begin, n, tile::size);
        const T *const cells = stage[buffer].elements[0].at;
        for (int i = first_of_warp() + (int)threadIdx.x % warp_lanes; i < first_of_warp() + WARP_ITEMS && i < valid;
             i += warp_lanes)
            store(begin + i, cells[i]);
    }

    __device__ __forceinline__ void send(int64_t number, int buffer) const
    {
        if (engine_out && number < whole)
            engine_store(to + number * tile::size, stage[buffer].elements, BYTES);
    }
};

/* store(i, the scan up to i). */
template <typename Op, typename Shape, typename Heads, typename Load, typename Store>
__global__ void __launch_bounds__(pipeline_threads(Shape::takers, 1), 1)
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
    auto &memory = *(typename work::memory *)dynamic_shared;
    work of_block = {memory.state, memory.stage,     load,           store, heads, n, n / work::tile::size,
                     exclusive,    in_vectors(from), in_vectors(to), from,  to};
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
    const int blocks = tiles == 1 ? 1 : chain_blocks(ctx, 1, tiles);
    return launch_with_shared<scan_pipeline<Op, Shape, Heads, Load, Store>>(
        ctx, "scan_pipeline",
        {blocks, pipeline_threads(Shape::takers, 1), (int)sizeof(scan_6_memory<Op, Shape, Heads>), true}, load, store,
        heads, n, states, exclusive);
}

#endif

/* The pipeline: persistent blocks whose warps have roles, with the copy engine loading ahead and
 * the chain computing the prefixes.
 *
 * A block has a ring of buffers in shared memory. Tiles pass through it in the order in which the
 * block draws them. Each role processes tile after tile:
 *
 *     drawer     one thread: draws a number for each free buffer; starts the engine's loads, unless
 *                the work reads where the tile is (LOADS_APART): then another thread, the loader,
 *                starts them
 *     takers     a team of block_threads threads, or several that take tiles in turn: fold tiles
 *     publisher  one thread: joins the folds of a tile's warps and publishes its aggregate
 *     fetcher    one thread: waits for the prefix, which the chain block (chain.cuh) computes
 *     finishers  a team: write the results, starting with the prefix. A work without finishers
 *                writes them when it takes the tile
 *     storer     one thread: starts the engine's stores, and frees the buffer when they are read
 *
 * Roles hand over by mbarriers, one for each buffer and hand-over; no barrier stops the block. So
 * loads, folds, prefixes on their way through the chain, and stores of several tiles overlap, and a
 * late prefix delays no fold of a later tile until the ring is full. A number is drawn when its
 * buffer is free, not before: all later tiles wait for a tile that is drawn but not folded. If no
 * block has more than one tile, none is drawn (chain.cuh).
 *
 * The work class defines what is done with a tile:
 *
 *     struct work {
 *         static constexpr int TAKERS, FINISHERS;  teams; FINISHERS: 0 or 1
 *         static constexpr int BUFFERS;            in the ring
 *         static constexpr bool ENGINE_STORES;     a storer calls send
 *         static constexpr bool LOADS_APART;       there is a loader, and no storer
 *         using fold = ...;                        of the chain
 *         pipeline_state<fold, BUFFERS> &m;        in shared memory
 *         void bring(number, buffer, index)        starts the loads; the phase of m.full[buffer]
 *                                                  ends when they are complete
 *         void take(number, buffer, phase, index)  folds the tile; each warp calls
 *                                                  m.hand_sum(buffer, its fold)
 *         void finish(number, buffer)              m.before[buffer] is the tile's prefix
 *         void send(number, buffer)                starts the stores
 *     };
 *
 * index counts the tiles of the block, and phase how often their buffer was used before. Threads of
 * a team have the number pipeline_thread(). Without finishers, the class also defines prepare()
 * (a warp, at the beginning), fetch(tiles), the work of the fetcher, and end(index), called by each
 * team of takers after its last tile.
 *
 * Source: Merrill, Garland 2016 (single pass); S. Yan, G. Long, Y. Zhang, "StreamScan", PPoPP 2013
 * (persistent blocks, adjacent synchronisation); M. Bauer, H. Cook, B. Khailany, "CudaDMA", SC 2011
 * (warps that only copy).
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SPMV_PIPELINE_CUH
#define SPMV_PIPELINE_CUH

#include "device/chain.cuh"
#include "device/copy_engine.cuh"
#include "device/vector_tiles.cuh"

/* The threads of a block: teams of takers, the team of finishers, and a warp for each role of one
 * thread. */
enum { PIPELINE_DRAWER, PIPELINE_PUBLISHER, PIPELINE_FETCHER, PIPELINE_STORER_OR_LOADER, PIPELINE_SINGLES };

constexpr int pipeline_threads(int takers, int finishers)
{
    return (takers + finishers) * (int)block_threads + (int)PIPELINE_SINGLES * (int)warp_lanes;
}

/* Shared memory of a block on each architecture with a copy engine, and the part that is not for
 * tiles. */
enum { PIPELINE_BYTES = 227 * 1024, PIPELINE_STATE_BYTES = 6 * 1024 };

/* A block has a multiprocessor for itself, and as many buffers as fit. */
constexpr int pipeline_buffers(int tile_bytes, int most)
{
    const int fit = ((int)PIPELINE_BYTES - (int)PIPELINE_STATE_BYTES) / tile_bytes;
    return fit < most ? fit : most;
}

/* A tile has Vectors times 16 bytes for each thread of a team: an odd number, for few bank
 * conflicts. Takers: teams of them. */
template <int Vectors, int Takers = 1> struct pipeline_shape {
    static_assert(Vectors % 2 == 1, "odd");
    static constexpr int threads = block_threads, vectors = Vectors, takers = Takers;
};

/* The thread's number in its team. */
__device__ inline int pipeline_thread()
{
    return (int)threadIdx.x % block_threads;
}

/* A barrier of one team of block_threads threads. */
__device__ inline void pipeline_sync()
{
#if SPMV_HAVE_COPY_ENGINE
    __syncwarp();
    asm volatile("barrier.sync %0, %1;" ::"r"(1 + (int)threadIdx.x / block_threads), "n"((int)block_threads)
                 : "memory");
#endif
}

/* All that the threads of a warp have done is visible after the phase. */
__device__ inline void pipeline_arrive(arrival *at)
{
    __syncwarp();
    if (threadIdx.x % warp_lanes == 0)
        engine_expect_nothing(at);
}

/* In a block's shared memory. */
template <typename Fold, int Buffers> struct pipeline_state {
    arrival drawn[Buffers];    /* the number is there; only for a loader */
    arrival full[Buffers];     /* the tile is in the buffer, or the number is that of no tile */
    arrival summed[Buffers];   /* the folds of the tile's warps are there */
    arrival taken[Buffers];    /* the takers have finished */
    arrival known[Buffers];    /* the prefix is there */
    arrival finished[Buffers]; /* finishers and publisher, or takers and publisher, have finished */
    arrival empty[Buffers];    /* the engine has read the buffer; only with a storer */
    int64_t first;             /* the first number drawn */
    int64_t number[Buffers];
    typename Fold::value before[Buffers];
    typename Fold::type warp_sums[Buffers][block_warps];
    chain_cells<Fold> cells;

    /* Called by all lanes of a warp, then engine_prepared, then a barrier. */
    __device__ void prepare()
    {
        engine_prepare(drawn, Buffers);
        engine_prepare(full, Buffers);
        engine_prepare(summed, Buffers, block_warps);
        engine_prepare(taken, Buffers, block_warps);
        engine_prepare(known, Buffers);
        engine_prepare(finished, Buffers, block_warps + 1);
        engine_prepare(empty, Buffers);
        cells.prepare();
    }

    /* sum: the fold of the warp's elements, in its last lane. */
    __device__ void hand_sum(int buffer, typename Fold::type sum)
    {
        if (threadIdx.x % warp_lanes == warp_lanes - 1) {
            warp_sums[buffer][pipeline_thread() / warp_lanes] = sum;
            engine_expect_nothing(&summed[buffer]);
        }
    }
};

/* The fold of all elements of a tile before the thread's. through: the fold of those of the warp's
 * lanes up to this one. The same operations in the same order as block_exclusive_second. */
template <typename Op>
__device__ __forceinline__ typename Op::type pipeline_earlier(Op op, typename Op::type through,
                                                              const typename Op::type *warp_sums)
{
    using Type = typename Op::type;
    const int warp = pipeline_thread() / warp_lanes;
    const Type lanes_before = shuffle_up(through, 1);
    if (warp == 0)
        return threadIdx.x % warp_lanes == 0 ? Op::identity() : lanes_before;
    Type before = warp_sums[0];
    for (int w = 1; w < warp; w++)
        before = op(before, warp_sums[w]);
    return threadIdx.x % warp_lanes == 0 ? before : op(before, lanes_before);
}

/* Calls body(number, buffer, phase, index) for the block's tiles first, first + stride, ... Returns
 * the index after them. With a stride, the tile that the buffer held before was another team's. It
 * may not have arrived yet, because tiles arrive in any order, and then engine_await must not be
 * called for the next phase. So the team first waits until that tile is finished. */
template <typename Work, typename Body>
__device__ __forceinline__ int pipeline_each(Work &work, int64_t tiles, const Body &body, int first = 0, int stride = 1)
{
    static_assert(Work::BUFFERS > Work::TAKERS, "one buffer for each team, and one more");
    int buffer = first, index = first;
    for (unsigned phase = 0;;) {
        if (stride > 1 && phase > 0)
            engine_await(&work.m.finished[buffer], phase - 1);
        engine_await(&work.m.full[buffer], phase);
        const int64_t number = work.m.number[buffer];
        if (number >= tiles)
            return index;
        body(number, buffer, phase, index);
        index += stride;
        buffer += stride;
        if (buffer >= Work::BUFFERS) {
            buffer -= Work::BUFFERS;
            phase++;
        }
    }
}

/* Announces the number and starts the loads, or leaves them to the loader. */
template <typename Work>
__device__ __forceinline__ void pipeline_announce(Work &work, int64_t tiles, int64_t number, int buffer, int index)
{
    auto &m = work.m;
    m.number[buffer] = number;
    if (Work::LOADS_APART)
        engine_expect_nothing(&m.drawn[buffer]);
    else if (number < tiles)
        work.bring(number, buffer, index);
    else
        engine_expect_nothing(&m.full[buffer]);
}

/* The drawer, after the first tile. At the end each team of takers gets the number of no tile. */
template <typename Work>
__device__ __forceinline__ void pipeline_draw(Work &work, const chain<typename Work::fold> &tiles)
{
    auto &m = work.m;
    int ends = m.first >= tiles.tiles;
    for (int index = 1, buffer = 1; ends < Work::TAKERS; index++) {
        if (index >= Work::BUFFERS)
            engine_await(Work::ENGINE_STORES ? &m.empty[buffer] : &m.finished[buffer],
                         (unsigned)(index / Work::BUFFERS - 1));
        const int64_t number = tiles.one_each() ? tiles.tiles : tiles.draw();
        ends += number >= tiles.tiles;
        pipeline_announce(work, tiles.tiles, number, buffer, index);
        buffer = buffer + 1 < Work::BUFFERS ? buffer + 1 : 0;
    }
    if (tiles.tiles > 1 && tiles.may_end_early())
        tiles.end();
}

/* The loader. */
template <typename Work> __device__ __forceinline__ void pipeline_load(Work &work, int64_t tiles)
{
    auto &m = work.m;
    for (int index = 0, ends = 0; ends < Work::TAKERS; index++) {
        const int buffer = index % Work::BUFFERS;
        engine_await(&m.drawn[buffer], (unsigned)(index / Work::BUFFERS));
        const int64_t number = m.number[buffer];
        if (number < tiles) {
            work.bring(number, buffer, index);
        } else {
            engine_expect_nothing(&m.full[buffer]);
            ends++;
        }
    }
}

/* The publisher. */
template <typename Work>
__device__ __forceinline__ void pipeline_publish(Work &work, const chain<typename Work::fold> &tiles)
{
    using fold = typename Work::fold;
    pipeline_each(work, tiles.tiles, [&](int64_t number, int buffer, unsigned phase, int) {
        engine_await(&work.m.summed[buffer], phase);
        typename fold::type all = work.m.warp_sums[buffer][0];
#pragma unroll
        for (int w = 1; w < block_warps; w++)
            all = fold()(all, work.m.warp_sums[buffer][w]);
        engine_expect_nothing(&work.m.finished[buffer]);
        if (tiles.tiles != 1)
            tiles.publish(number, fold::value_of(all), fold::starts(all));
    });
}

/* The fetcher of a work with finishers. */
template <typename Work>
__device__ __forceinline__ void pipeline_fetch(Work &work, const chain<typename Work::fold> &tiles)
{
    using fold = typename Work::fold;
    pipeline_each(work, tiles.tiles, [&](int64_t number, int buffer, unsigned, int) {
        auto before = fold::value_of(fold::identity());
        while (tiles.tiles != 1 && !tiles.pick_up(number, &before)) {
        }
        work.m.before[buffer] = before;
        engine_expect_nothing(&work.m.known[buffer]);
    });
}

/* The roles of one thread. */
template <typename Work>
__device__ __forceinline__ void pipeline_single(Work &work, const chain<typename Work::fold> &tiles, int role)
{
    static_assert(!Work::ENGINE_STORES || !Work::LOADS_APART, "one role or the other");
    auto &m = work.m;
    if (role == PIPELINE_DRAWER) {
        pipeline_draw(work, tiles);
    } else if (role == PIPELINE_PUBLISHER) {
        pipeline_publish(work, tiles);
    } else if (role == PIPELINE_FETCHER) {
        if constexpr (Work::FINISHERS == 0)
            work.fetch(tiles);
        else
            pipeline_fetch(work, tiles);
    } else if (role == PIPELINE_STORER_OR_LOADER) {
        if constexpr (Work::LOADS_APART)
            pipeline_load(work, tiles.tiles);
        if constexpr (Work::ENGINE_STORES)
            pipeline_each(work, tiles.tiles, [&](int64_t number, int buffer, unsigned phase, int) {
                engine_await(&m.finished[buffer], phase);
                work.send(number, buffer);
                engine_await_reads<0>();
                engine_expect_nothing(&m.empty[buffer]);
            });
    }
}

/* The whole work of a block of pipeline_threads(TAKERS, FINISHERS). */
template <typename Work> __device__ __forceinline__ void pipeline_run(Work &work, chain<typename Work::fold> &tiles)
{
    auto &m = work.m;
    const int team = (int)threadIdx.x / block_threads;
    const int single = (int)threadIdx.x - (Work::TAKERS + Work::FINISHERS) * (int)block_threads;
    const int role = single >= 0 && single % warp_lanes == 0 ? single / warp_lanes : -1;
    const bool alone = tiles.tiles == 1;
    let_next_begin();
    if (single >= 0 && single < warp_lanes) { /* the drawer's warp; needs no result of the kernel before */
        m.prepare();
        if constexpr (Work::FINISHERS == 0)
            work.prepare();
        engine_prepared();
    }
    await_kernel_before();
    if (!alone)
        tiles.begin();
    if (role == PIPELINE_DRAWER) {
        m.first = alone ? 0 : tiles.one_each() ? (int64_t)blockIdx.x - 1 : tiles.draw();
        if (m.first >= 0)
            pipeline_announce(work, tiles.tiles, m.first, 0, 0);
    }
    __syncthreads();
    if (m.first < 0) {
        if (role == PIPELINE_DRAWER && tiles.may_end_early())
            tiles.end();
        __syncwarp();
        tiles.run(&m.cells);
    } else if (team < Work::TAKERS) {
        [[maybe_unused]] const int last = pipeline_each(
            work, tiles.tiles,
            [&](int64_t number, int buffer, unsigned phase, int index) {
                work.take(number, buffer, phase, index);
                if constexpr (Work::FINISHERS == 0)
                    engine_fence();
                pipeline_arrive(Work::FINISHERS == 0 ? &m.finished[buffer] : &m.taken[buffer]);
            },
            team, Work::TAKERS);
        if constexpr (Work::FINISHERS == 0)
            work.end(last);
    } else if (team < Work::TAKERS + Work::FINISHERS) {
        pipeline_each(work, tiles.tiles, [&](int64_t number, int buffer, unsigned phase, int) {
            engine_await(&m.taken[buffer], phase);
            engine_await(&m.known[buffer], phase);
            if constexpr (Work::FINISHERS > 0)
                work.finish(number, buffer);
            engine_fence();
            pipeline_arrive(&m.finished[buffer]);
        });
    } else {
        pipeline_single(work, tiles, role);
    }
    if (alone || tiles.may_end_early())
        return;
    __syncthreads(); /* no state is read after this */
    if (role == PIPELINE_DRAWER)
        tiles.end();
}

#endif

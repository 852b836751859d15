/* The pipeline: blocks that stay and go from tile to tile, the copy engine in front of them, the chain beside them.
 *
 * While the engine brings the next tile into shared memory, a block works on the tile in hand and publishes its
 * aggregate; then it finishes the tile behind that one, whose prefix the chain block (chain.cuh) has told in the
 * meantime. Three buffers: one being filled, one in hand, one finished or on its way out. What is done with a tile is the
 * work's:
 *
 *     struct work {
 *         static constexpr int THREADS;         of a block
 *         static constexpr bool ENGINE_STORES;  finish leaves stores to the engine; else a barrier follows it
 *         using fold = ...;                     of the chain
 *         struct left;                          what a thread keeps of a tile for finish; left() is of no tile
 *         memory &m;                            in shared memory: what the work needs, then pipeline_state
 *         void bring(number, buffer)            first thread: asks for the tile, or says that nothing comes
 *         left take(number, step)               the tile in hand, in buffer step % PIPELINE_BUFFERS; publishes
 *         void finish(number, buffer, left)     the tile behind it; m.before is its prefix
 *     };
 *
 * Merrill, Garland 2016 (single pass); S. Yan, G. Long, Y. Zhang, "StreamScan", PPoPP 2013 (blocks that stay, adjacent
 * synchronisation).
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SPMV_PIPELINE_CUH
#define SPMV_PIPELINE_CUH

#include "chain.cuh"
#include "copy_engine.cuh"
#include "vector_tiles.cuh"

enum { PIPELINE_BUFFERS = 3 };

/* In a block's shared memory. */
template <typename Fold> struct pipeline_state {
    arrival arrived[PIPELINE_BUFFERS];
    typename Fold::value before; /* the tile behind: its prefix */
    int64_t number[2];           /* of the tile in hand and of the next, in turn */
    chain_cells<Fold> cells;
};

/* Before the first tile. The chain block: false, when all is done. */
template <typename Work> __device__ __forceinline__ bool pipeline_begin(Work &work, chain<typename Work::fold> &tiles)
{
    auto &m = work.m;
    const bool first = threadIdx.x == 0, alone = tiles.tiles == 1;
    let_next_begin();
    await_kernel_before();
    if (!alone)
        tiles.begin();
    if (first) {
        engine_prepare(m.arrived, PIPELINE_BUFFERS);
        m.cells.prepare();
        m.number[0] = alone ? 0 : tiles.draw();
        if (m.number[0] >= 0)
            work.bring(m.number[0], 0);
    }
    __syncthreads();
    if (m.number[0] >= 0)
        return true;
    tiles.run(&m.cells);
    __syncthreads();
    if (first)
        tiles.end();
    return false;
}

/* First thread: the next tile is on its way into the buffer that left. */
template <typename Work>
__device__ __forceinline__ void pipeline_bring_next(Work &work, const chain<typename Work::fold> &tiles, int step,
                                                    bool in_hand)
{
    int64_t next = tiles.tiles;
    if (in_hand && tiles.tiles != 1)
        next = tiles.draw();
    work.m.number[(step + 1) % 2] = next;
    if constexpr (Work::ENGINE_STORES)
        if (next < tiles.tiles)
            engine_await_reads<PIPELINE_BUFFERS - 3>(); /* of what left the buffer */
    work.bring(next, (step + 1) % PIPELINE_BUFFERS);
}

/* All of a block. */
template <typename Work> __device__ __forceinline__ void pipeline_run(Work &work, chain<typename Work::fold> &tiles)
{
    auto &m = work.m;
    const bool first = threadIdx.x == 0, last = threadIdx.x == Work::THREADS - 1, alone = tiles.tiles == 1;
    if (!pipeline_begin(work, tiles))
        return;
    int64_t behind = -1; /* the tile before the one in hand, -1: none */
    typename Work::left left{};
    for (int step = 0;; step++) {
        const int64_t number = m.number[step % 2];
        const bool in_hand = number < tiles.tiles;
        if (!in_hand && behind < 0)
            break;
        if (first)
            pipeline_bring_next(work, tiles, step, in_hand);
        auto before = Work::fold::value_of(Work::fold::identity());
        bool known = alone;
        if (last && behind >= 0 && !known)
            known = tiles.pick_up(behind, &before);
        typename Work::left mine{};
        if (in_hand)
            mine = work.take(number, step);
        if (behind >= 0) {
            if (last) {
                while (!known)
                    known = tiles.pick_up(behind, &before);
                m.before = before;
            }
            __syncthreads();
            work.finish(behind, (step + PIPELINE_BUFFERS - 1) % PIPELINE_BUFFERS, left);
        }
        if (behind < 0 || !Work::ENGINE_STORES)
            __syncthreads(); /* the buffer is free; the next number is there */
        behind = in_hand ? number : -1;
        left = mine;
    }
    if (first) {
        if constexpr (Work::ENGINE_STORES)
            engine_await_reads<0>();
        if (!alone)
            tiles.end();
    }
}

#endif

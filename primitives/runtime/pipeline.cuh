/* The pipeline: persistent blocks that process tile after tile, with the copy engine loading ahead
 * and the chain computing the prefixes.
 *
 * While the engine loads the next tile into shared memory, a block works on the current tile and
 * publishes its aggregate. Then it finishes the previous tile, whose prefix the chain block
 * (chain.cuh) has computed in the meantime. Three buffers: one being loaded, one with the current
 * tile, one being finished or stored. The work class defines what is done with a tile:
 *
 *     struct work {
 *         static constexpr int THREADS;         of a block
 *         static constexpr bool ENGINE_STORES;  finish stores by the engine; else a
 *                                               barrier follows it
 *         using fold = ...;                     of the chain
 *         struct left;                          what a thread keeps of a tile for finish;
 *                                               left() for no tile
 *         memory &m;                            in shared memory: the work's data, then
 *                                               pipeline_state
 *         void bring(number, buffer)            first thread: starts loading the tile, or signals
 *                                               that none follows
 *         left take(number, step)               works on the current tile, in buffer
 *                                               step % PIPELINE_BUFFERS; publishes its aggregate
 *         void finish(number, buffer, left)     finishes the previous tile; m.before is its prefix
 *     };
 *
 * Source: Merrill, Garland 2016 (single pass); S. Yan, G. Long, Y. Zhang, "StreamScan", PPoPP 2013
 * (persistent blocks, adjacent synchronisation).
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
    typename Fold::value before; /* the prefix of the previous tile */
    int64_t number[2];           /* of the current tile and of the next, alternating */
    chain_cells<Fold> cells;
};

/* Prepares the block and loads the first tile. The chain block does all its work here and returns
 * false. */
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

/* First thread: starts loading the next tile into the free buffer. */
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
            engine_await_reads<PIPELINE_BUFFERS - 3>(); /* stores from that buffer */
    work.bring(next, (step + 1) % PIPELINE_BUFFERS);
}

/* The whole work of a block. */
template <typename Work> __device__ __forceinline__ void pipeline_run(Work &work, chain<typename Work::fold> &tiles)
{
    auto &m = work.m;
    const bool first = threadIdx.x == 0, last = threadIdx.x == Work::THREADS - 1, alone = tiles.tiles == 1;
    if (!pipeline_begin(work, tiles))
        return;
    int64_t behind = -1; /* the tile before the current one, -1: none */
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
            __syncthreads(); /* the buffer is free; the next number is written */
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

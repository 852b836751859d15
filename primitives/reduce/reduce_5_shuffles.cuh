/* reduce, rung 5: chunks, staged in element order and folded by shuffles.
 *
 * idea      n is divided into at most 2048 chunks of neighbouring tiles; one block folds one chunk.
 *           A tile is transposed in shared memory so that each thread folds neighbouring elements.
 *           Then warps and the block fold in thread order, and the tile's result is appended to the
 *           chunk's. A second launch of the same kernel folds the chunks' results in one block.
 * work      n - 1 operations and a few per thread
 * depth     n / 2048 / 256 + log
 * launches  2 (1 if there is one chunk)
 * bytes     n v (v: the size of an element)
 * changed   since rung 3: blocks and threads take neighbouring elements, so the order is kept and
 *           the operator need not commute; warps fold by shuffles, without barriers
 * wins      never: rung 6 avoids the staging, which costs three barriers and two passes through
 *           shared memory per tile
 * order     keeps the order of the operands; bits depend on n alone
 * source    M. Harris, "Optimizing parallel reduction in CUDA", 2007 (two levels, a fixed grid);
 *           Merrill, Grimshaw 2009 (chunks)
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SPMV_REDUCE_5_SHUFFLES_CUH
#define SPMV_REDUCE_5_SHUFFLES_CUH

#include "device/launch.cuh"
#include "device/tiles.cuh"

/* sums[chunk] = the fold of load(i) over the chunk. */
template <typename Op, typename Load>
__global__ void __launch_bounds__(block_threads)
    reduce_chunks(Load load, int64_t n, chunking cut, typename Op::type *sums)
{
    using T = typename Op::type;
    using tile = tile_of<T>;
    __shared__ T stage[tile::cells];
    __shared__ T warp_sums[block_warps];
    const Op op{};
    const int chunk = (int)blockIdx.x;
    T sum = Op::identity();
    for (int64_t t = cut.first_tile(chunk); t < cut.first_tile(chunk + 1); t++) {
        const int64_t begin = t * tile::size;
        T item[tile::items], all;
        block_load_tile(load, begin, tile_valid(begin, n, tile::size), Op::identity(), stage, item);
        T mine = item[0];
#pragma unroll
        for (int j = 1; j < tile::items; j++)
            mine = op(mine, item[j]);
        block_exclusive(op, mine, warp_sums, &all);
        sum = op(sum, all);
    }
    if (threadIdx.x == 0)
        sums[chunk] = sum;
}

enum { REDUCE_5_SCRATCH_ELEMENTS = most_chunks };

/* *out = load(0) op ... op load(n - 1), n > 0. */
template <typename Op, typename Load>
spmv_status reduce_5_launch(spmv_context *ctx, Load load, int64_t n, typename Op::type *out, void *scratch)
{
    using T = typename Op::type;
    const chunking cut = cut_into_chunks(n, tile_of<T>::size);
    T *const sums = cut.count > 1 ? (T *)scratch : out;
    const spmv_status st =
        launch(ctx, "reduce_chunks", cut.count, block_threads, reduce_chunks<Op, Load>, load, n, cut, sums);
    if (st != SPMV_OK || cut.count == 1)
        return st;
    return launch(ctx, "reduce_chunks (of chunks)", 1, block_threads, reduce_chunks<Op, load_array<T>>,
                  load_array<T>{sums}, (int64_t)cut.count, one_chunk(cut.count, tile_of<T>::size), out);
}

#endif

/* scan, rung 3: reduce, then scan, in three launches.
 *
 * idea      fold every chunk (reduce, rung 5); scan the at most 2048 results in one block; then
 *           scan every chunk, starting with its carry. In a tile each thread folds its neighbouring
 *           elements, the block scans the threads' results, and each thread scans its elements
 *           starting with its prefix.
 * work      2 n operations and a few per thread
 * depth     2 n / 2048 / 256 + log
 * launches  3 (1 if there is one chunk)
 * bytes     3 n v: every element is read twice and written once
 * changed   blocks are folded before anything is scanned, so nothing is added afterwards (rung 2
 *           extended to any length reads 2 n v and writes 2 n v). A fixed number of chunks, so one
 *           level above them suffices for every size. Threads process several elements each in
 *           registers, so the trees in shared memory have one leaf per thread.
 * wins      simple, for any n, in place, without waiting between blocks; a single-pass scan moves 2
 *           n v
 * order     keeps the order of the operands; bits depend on n alone
 * source    Sengupta et al. 2007; D. Merrill, A. Grimshaw, "Parallel scan for stream
 *           architectures", 2009
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SPMV_SCAN_3_CHUNKS_CUH
#define SPMV_SCAN_3_CHUNKS_CUH

#include "primitives/reduce/reduce_5_shuffles.cuh"

/* store(i, the scan up to i) over each chunk. before[c - 1]: the fold of all chunks before c (NULL:
 * one chunk). */
template <typename Op, typename Load, typename Store>
__global__ void __launch_bounds__(block_threads)
    scan_chunks(Load load, Store store, int64_t n, chunking cut, const typename Op::type *before, bool exclusive)
{
    using T = typename Op::type;
    using tile = tile_of<T>;
    __shared__ T stage[tile::cells];
    __shared__ T warp_sums[block_warps];
    const Op op{};
    const int chunk = (int)blockIdx.x;
    T carry = chunk > 0 ? before[chunk - 1] : Op::identity();
    for (int64_t t = cut.first_tile(chunk); t < cut.first_tile(chunk + 1); t++) {
        const int64_t begin = t * tile::size;
        const int valid = tile_valid(begin, n, tile::size);
        T item[tile::items], all;
        block_load_tile(load, begin, valid, Op::identity(), stage, item);
        T mine = item[0];
#pragma unroll
        for (int j = 1; j < tile::items; j++)
            mine = op(mine, item[j]);
        T through = op(carry, block_exclusive(op, mine, warp_sums, &all));
#pragma unroll
        for (int j = 0; j < tile::items; j++) {
            const T preceding = through;
            through = op(preceding, item[j]);
            item[j] = exclusive ? preceding : through;
        }
        block_store_tile(store, begin, valid, stage, item);
        carry = op(carry, all);
    }
}

enum { SCAN_3_SCRATCH_ELEMENTS = REDUCE_5_SCRATCH_ELEMENTS };

/* store(i, load(0) op ... op load(i)); exclusive: without load(i), starting with the identity.
 * n > 0. Load and store may access the same memory. */
template <typename Op, typename Load, typename Store>
spmv_status scan_3_launch(spmv_context *ctx, Load load, Store store, int64_t n, bool exclusive, void *scratch)
{
    using T = typename Op::type;
    const chunking cut = cut_into_chunks(n, tile_of<T>::size);
    T *const sums = (T *)scratch;
    spmv_status st = SPMV_OK;
    if (cut.count > 1) {
        st = launch(ctx, "reduce_chunks", cut.count, block_threads, reduce_chunks<Op, Load>, load, n, cut, sums);
        if (st == SPMV_OK)
            st = launch(ctx, "scan_chunks (of chunks)", 1, block_threads,
                        scan_chunks<Op, load_array<T>, store_array<T>>, load_array<T>{sums}, store_array<T>{sums},
                        (int64_t)cut.count, one_chunk(cut.count, tile_of<T>::size), (const T *)NULL, false);
    }
    if (st == SPMV_OK)
        st = launch(ctx, "scan_chunks", cut.count, block_threads, scan_chunks<Op, Load, Store>, load, store, n, cut,
                    (const T *)sums, exclusive);
    return st;
}

#endif

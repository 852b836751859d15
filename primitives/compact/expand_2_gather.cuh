/* Generalised compact, rung 2: each output searches for its element.
 *
 * idea      a block processes a tile of outputs. All its threads together search for the elements of
 *           the tile's first and last outputs; then each output finds its own element between these
 *           by bisection.
 * work      n + total log(elements of a tile)
 * depth     log n
 * launches  1
 * bytes     as rung 1, and the offsets that the searches read, which a run shares in cache
 * changed   work is divided by outputs, not by elements, and neighbouring threads write
 *           neighbouring outputs
 * wins      if the numbers of outputs differ
 * source    the lectures' generalised compact, gather form; S. Baxter, moderngpu, "load-balancing
 *           search", 2013
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SPMV_EXPAND_2_GATHER_CUH
#define SPMV_EXPAND_2_GATHER_CUH

#include "device/tiles.cuh"
#include "primitives/compact/expand_1_scatter.cuh"

/* Outputs of a thread: enough to make the block's two searches negligible. */
enum { EXPAND_ITEMS = 8, EXPAND_TILE = EXPAND_ITEMS * block_threads };

/* The last i in [lo, hi] with offsets[i] <= j, if offsets[lo] <= j. */
__device__ inline int64_t element_of_output(const int64_t *offsets, int64_t lo, int64_t hi, int64_t j)
{
    while (lo < hi) {
        const int64_t middle = hi - (hi - lo) / 2;
        if (offsets[middle] <= j)
            lo = middle;
        else
            hi = middle - 1;
    }
    return lo;
}

template <typename Put>
__global__ void __launch_bounds__(block_threads)
    expand_gather(Put put, const int64_t *offsets, int64_t n, int64_t total)
{
    const int64_t made = offsets[n], end = made < total ? made : total;
    for (int64_t tile = blockIdx.x; tile * EXPAND_TILE < end; tile += gridDim.x) {
        const int64_t begin = tile * EXPAND_TILE, behind = end - begin < EXPAND_TILE ? end : begin + EXPAND_TILE;
        /* the element of output j is the one before the first that starts at j + 1 or later */
        const int64_t first = block_lower_bound(load_array<int64_t>{offsets}, 0, n + 1, begin + 1) - 1;
        const int64_t last = block_lower_bound(load_array<int64_t>{offsets}, first, n + 1, behind) - 1;
        for (int64_t j = begin + threadIdx.x; j < behind; j += block_threads) {
            const int64_t i = element_of_output(offsets, first, last, j);
            put(j, i, j - offsets[i]);
        }
    }
}

template <typename Put>
spmv_status expand_2_launch(spmv_context *ctx, Put put, const int64_t *offsets, int64_t n, int64_t total)
{
    return launch(ctx, "expand_gather", grid_for(total, EXPAND_TILE), block_threads, expand_gather<Put>, put, offsets,
                  n, total);
}

#endif

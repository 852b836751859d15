/* histogram, rung 2: counts of each block's own.
 *
 * Idea: a block counts a chunk in shared memory, where additions to one cell wait far less, and adds its counts to the
 * result at the end: one addition in memory a block and bin, instead of one an element. When the bins are few, there
 * are several copies of the counts, so that neighbouring threads meet less often. The last cell of a copy counts what
 * is left out.
 * Changed since rung 1: where the additions meet.
 * Work n + blocks (bins + cells / 256); launches 1; bytes moved 4 n and an addition in the L2 cache a block and bin.
 * Wins: everywhere that the bins fit in shared memory.
 * V. Podlozhnyuk, "Histogram calculation in CUDA", NVIDIA, 2007.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SPMV_HISTOGRAM_2_PRIVATE_CUH
#define SPMV_HISTOGRAM_2_PRIVATE_CUH

#include "histogram_1_atomic.cuh"
#include "tiles.cuh"

/* 24 KiB: with it an SM holds enough blocks to have all its threads, and a chunk is far longer than its cells. */
enum { HISTOGRAM_CELLS = 6 * 1024, HISTOGRAM_TILE = 16 * block_threads };

template <typename Count>
__global__ void __launch_bounds__(block_threads) histogram_private(const int32_t *index, Count *counts, int bins,
                                                                   int copies, Count *left_out, int64_t n, chunking cut)
{
    __shared__ unsigned cell[HISTOGRAM_CELLS];
    const int chunk = (int)blockIdx.x, t = (int)threadIdx.x, each = bins + 1;
    for (int c = t; c < copies * each; c += block_threads)
        cell[c] = 0;
    __syncthreads();
    unsigned *const own = cell + t % copies * each;
    const int64_t last = cut.first_tile(chunk + 1) * HISTOGRAM_TILE, end = last < n ? last : n;
#pragma unroll 4
    for (int64_t i = cut.first_tile(chunk) * HISTOGRAM_TILE + t; i < end; i += block_threads) {
        const int32_t bin = index[i];
        atomicAdd(&own[bin >= 0 && bin < bins ? bin : bins], 1u);
    }
    __syncthreads();
    for (int b = t; b < each; b += block_threads) {
        Count sum = 0;
        for (int k = 0; k < copies; k++)
            sum += cell[k * each + b];
        Count *const to = b < bins ? counts + b : left_out;
        if (sum > 0 && to != NULL)
            atomicAdd(to, sum);
    }
}

template <typename Count>
spmv_status histogram_2_launch(spmv_context *ctx, const int32_t *index, Count *counts, int64_t bins, Count *left_out,
                               int64_t n)
{
    if (bins >= HISTOGRAM_CELLS)
        return histogram_1_launch<Count>(ctx, index, counts, bins, left_out, n);
    const int fit = (int)(HISTOGRAM_CELLS / (bins + 1)), copies = fit < warp_lanes ? fit : (int)warp_lanes;
    const chunking cut = cut_into_chunks(n, HISTOGRAM_TILE);
    return launch(ctx, "histogram_private", cut.count, block_threads, histogram_private<Count>, index, counts,
                  (int)bins, copies, left_out, n, cut);
}

#endif

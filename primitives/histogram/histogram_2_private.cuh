/* histogram, rung 2: each block has its own counts.
 *
 * idea      a block counts a chunk in shared memory, where additions to one cell wait far less, and
 *           finally adds its counts to the result: one addition in memory per block and bin,
 *           instead of one per element. If there are few bins, there are several copies of the
 *           counts, so that neighbouring threads collide less often. The last cell of a copy counts
 *           the elements that are left out.
 * work      n + blocks (bins + cells / 256)
 * launches  1
 * bytes     4 n, and an addition in the L2 cache per block and bin
 * changed   additions to one cell collide in shared memory, not in the L2 cache
 * wins      whenever the bins fit in shared memory
 * source    V. Podlozhnyuk, "Histogram calculation in CUDA", NVIDIA, 2007
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SPMV_HISTOGRAM_2_PRIVATE_CUH
#define SPMV_HISTOGRAM_2_PRIVATE_CUH

#include "device/tiles.cuh"
#include "primitives/histogram/histogram_1_atomic.cuh"

/* 24 KiB: a multiprocessor then holds enough blocks to use all its threads, and a chunk has far
 * more elements than cells. */
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

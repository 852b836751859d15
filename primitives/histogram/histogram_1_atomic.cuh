/* histogram, rung 1: every element adds one to its bin in memory.
 *
 * idea      integer additions commute exactly, so the counts do not depend on their order
 * work      n
 * depth     that of the fullest bin: additions to one cell are serialised
 * launches  1
 * bytes     4 n, and an addition in the L2 cache per element
 * wins      for many bins, evenly filled
 * source    J. Gomez-Luna et al., "An optimized approach to histogram computation on GPU", Machine
 *           Vision and Applications 24, 2013
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SPMV_HISTOGRAM_1_ATOMIC_CUH
#define SPMV_HISTOGRAM_1_ATOMIC_CUH

#include "device/block.cuh"
#include "device/launch.cuh"

/* Count: uint32_t or unsigned long long, the types of the device's atomic addition. left_out may be
 * NULL. */
template <typename Count>
__global__ void __launch_bounds__(block_threads)
    histogram_atomic(const int32_t *index, Count *counts, int64_t bins, Count *left_out, int64_t n)
{
    const int64_t stride = (int64_t)gridDim.x * block_threads;
    Count outside = 0;
    for (int64_t i = (int64_t)blockIdx.x * block_threads + threadIdx.x; i < n; i += stride) {
        const int32_t bin = index[i];
        if (bin >= 0 && bin < bins)
            atomicAdd(&counts[bin], Count(1));
        else
            outside++;
    }
    if (left_out != NULL && outside > 0)
        atomicAdd(left_out, outside);
}

/* Elements per thread: a thread adds the number of elements that it leaves out only once. */
enum { HISTOGRAM_ITEMS = 16 };

template <typename Count>
spmv_status histogram_1_launch(spmv_context *ctx, const int32_t *index, Count *counts, int64_t bins, Count *left_out,
                               int64_t n)
{
    return launch(ctx, "histogram_atomic", grid_for(n, HISTOGRAM_ITEMS * block_threads), block_threads,
                  histogram_atomic<Count>, index, counts, bins, left_out, n);
}

#endif

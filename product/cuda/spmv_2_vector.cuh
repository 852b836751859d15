/* Rung 2, "vector": one warp a row.
 *
 * Idea:       the lanes of a warp take neighbouring entries of one row, so loads coalesce, and add
 *             their sums by shuffles.
 * Work:       nnz products, rows * 32 partial sums.
 * Depth:      longest row / 32 + 5.
 * Launches:   1.
 * Bytes:      the matrix once, in whole lines where rows are long.
 * Changed:    since rung 1, 32 threads instead of one process a row, with a shuffle reduction at
 *             its end.
 * Wins when:  rows are at least as long as a warp.
 * Loses when: rows are short (idle lanes), or one row is huge, since one warp processes it.
 * Bits:       lane l takes entries l, l + 32, ... of its row, and the lanes combine in a fixed
 *             tree, so the bits depend on the row alone.
 * Source:     Bell and Garland, SC09, kernel "CSR (vector)".
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SPMV_2_VECTOR_CUH
#define SPMV_2_VECTOR_CUH

#include "device/block.cuh"
#include "product/cuda/spmv_cuda.cuh"

namespace vector
{

enum { THREADS = 128, LANES = 32, ROWS = THREADS / LANES };

template <typename T, typename Offset, typename Stored>
__global__ void __launch_bounds__(THREADS) kernel(csr_arrays<T, Offset, Stored> a, scaling<T> s, const T *x, T *y)
{
    const int lane = threadIdx.x % LANES;
    const int64_t stride = (int64_t)gridDim.x * ROWS;
    /* row is the same for all lanes of a warp, so they leave the loop together. */
    for (int64_t row = (int64_t)blockIdx.x * ROWS + threadIdx.x / LANES; row < a.rows; row += stride) {
        const int64_t end = a.row_ptr[row + 1];
        T sum = {};
        for (int64_t k = a.row_ptr[row] + lane; k < end; k += LANES)
            sum += a.term(k, x);
        for (int distance = LANES / 2; distance > 0; distance /= 2)
            sum += shuffle_down(sum, distance);
        if (lane == 0)
            s.store(sum, &y[row]);
    }
}

template <typename T, typename Offset, typename Stored>
spmv_status run(spmv_context *ctx, csr_arrays<T, Offset, Stored> a, scaling<T> s, const T *x, T *y)
{
    return launch(ctx, "spmv vector", grid_for(a.rows, ROWS), THREADS, kernel<T, Offset, Stored>, a, s, x, y);
}

} // namespace vector

#endif

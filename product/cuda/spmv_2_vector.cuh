/* Rung 2, "vector": one warp a row. On ranks, where no faster method has bits that do not depend on
 * the cut, a row has as many lanes as half of the mean row of the whole matrix, up to a warp.
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
 *             tree, so the bits depend on the row and the number of lanes alone.
 * Source:     Bell and Garland, SC09, kernel "CSR (vector)".
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SPMV_2_VECTOR_CUH
#define SPMV_2_VECTOR_CUH

#include "device/block.cuh"
#include "product/cuda/spmv_cuda.cuh"

namespace vector
{

enum { THREADS = 128, MOST_SHIFT = 5 };

/* A row has 2^shift lanes. */
template <typename T, typename Offset, typename Stored>
__global__ void __launch_bounds__(THREADS)
    kernel(csr_arrays<T, Offset, Stored> a, scaling<T> s, const T *x, T *y, int shift)
{
    const int lanes = 1 << shift, lane = (int)threadIdx.x & (lanes - 1), first_of_warp = (int)threadIdx.x & -warp_lanes;
    const int64_t stride = (int64_t)gridDim.x * (THREADS >> shift);
    /* first is the same for all lanes of a warp, so they leave the loop together. */
    for (int64_t first = ((int64_t)blockIdx.x * THREADS + first_of_warp) >> shift; first < a.rows; first += stride) {
        const int64_t row = first + (((int)threadIdx.x - first_of_warp) >> shift);
        const int64_t end = row < a.rows ? (int64_t)a.row_ptr[row + 1] : 0;
        T sum = {};
        for (int64_t k = row < a.rows ? (int64_t)a.row_ptr[row] + lane : 0; k < end; k += lanes)
            sum += a.term(k, x);
        for (int distance = lanes / 2; distance > 0; distance /= 2)
            sum += shuffle_down(sum, distance);
        if (lane == 0 && row < a.rows)
            s.store(sum, &y[row]);
    }
}

/* mean: entries of a row. */
inline int shift_for(double mean)
{
    int shift = 0;
    while (shift < MOST_SHIFT && (2 << shift) < mean)
        shift++;
    return shift;
}

template <typename T, typename Offset, typename Stored>
spmv_status run(spmv_context *ctx, csr_arrays<T, Offset, Stored> a, scaling<T> s, const T *x, T *y, int shift)
{
    return launch(ctx, "spmv vector", grid_for(a.rows, THREADS >> shift), THREADS, kernel<T, Offset, Stored>, a, s, x,
                  y, shift);
}

} // namespace vector

#endif

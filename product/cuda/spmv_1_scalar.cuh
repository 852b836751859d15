/* Rung 1, "scalar": one thread a row.
 *
 * Idea:       each thread processes its own row and writes its own y_i; nothing is shared.
 * Work:       nnz products, rows sums.
 * Depth:      the longest row.
 * Launches:   1.
 * Bytes:      the matrix once, but uncoalesced: neighbouring threads read addresses a row length
 *             apart, so a load of a warp touches up to 32 lines, which must stay in cache for the
 *             next steps.
 * Wins when:  rows have 2 to 4 entries and nearly equal length.
 * Loses when: rows are long (uncoalesced), or unequal: a warp takes as long as its longest row.
 * Source:     N. Bell, M. Garland, "Implementing sparse matrix-vector multiplication on
 *             throughput-oriented processors", SC09, kernel "CSR (scalar)".
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SPMV_1_SCALAR_CUH
#define SPMV_1_SCALAR_CUH

#include "product/cuda/spmv_cuda.cuh"

namespace scalar
{

enum { THREADS = 128 };

template <typename T, typename Offset, typename Stored>
__global__ void __launch_bounds__(THREADS) kernel(csr_arrays<T, Offset, Stored> a, scaling<T> s, const T *x, T *y)
{
    const int64_t stride = (int64_t)gridDim.x * THREADS;
    for (int64_t row = (int64_t)blockIdx.x * THREADS + threadIdx.x; row < a.rows; row += stride) {
        const int64_t end = a.row_ptr[row + 1];
        T sum = {};
        for (int64_t k = a.row_ptr[row]; k < end; k++)
            sum += a.term(k, x);
        s.store(sum, &y[row]);
    }
}

template <typename T, typename Offset, typename Stored>
spmv_status run(spmv_context *ctx, csr_arrays<T, Offset, Stored> a, scaling<T> s, const T *x, T *y)
{
    return launch(ctx, "spmv scalar", grid_for(a.rows, THREADS), THREADS, kernel<T, Offset, Stored>, a, s, x, y);
}

} // namespace scalar

#endif

/* Makes sliced ELLPACK from CSR with one thread per stored element, which finds its slice in the
 * offsets. So a long row costs no more than many short ones.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "bench/peers/sliced_ell.h"

#include <cuda_runtime.h>

namespace
{

enum { THREADS = 256 };
const int64_t MOST_BLOCKS = 65536;

/* The last slice that begins at or before element, among those that are not empty. */
__device__ int64_t slice_of(const int32_t *offsets, int64_t slices, int64_t element)
{
    int64_t low = 0, high = slices; /* offsets[low] <= element < offsets[high] */
    while (high - low > 1) {
        const int64_t middle = low + (high - low) / 2;
        if (offsets[middle] <= element)
            low = middle;
        else
            high = middle;
    }
    return low;
}

template <typename T>
__global__ void __launch_bounds__(THREADS)
    fill_kernel(int64_t rows, int height, int64_t slices, const int32_t *row_ptr, const int32_t *col, const T *val,
                const int32_t *offsets, int64_t stored, int32_t *sell_col, T *sell_val)
{
    for (int64_t e = (int64_t)blockIdx.x * THREADS + threadIdx.x; e < stored; e += (int64_t)gridDim.x * THREADS) {
        const int64_t slice = slice_of(offsets, slices, e), within = e - offsets[slice];
        const int64_t row = slice * height + within % height;
        const int64_t from = row < rows ? row_ptr[row] + within / height : 0;
        const bool padding = row >= rows || from >= row_ptr[row + 1];
        sell_col[e] = padding ? -1 : col[from];
        sell_val[e] = padding ? T(0) : val[from];
    }
}

} // namespace

extern "C" cudaError_t sliced_ell_fill(cudaStream_t stream, int64_t rows, int height, int64_t slices,
                                       const int32_t *row_ptr, const int32_t *col, const void *val, int value_size,
                                       const int32_t *offsets, int64_t stored, int32_t *sell_col, void *sell_val)
{
    const int64_t blocks = (stored + THREADS - 1) / THREADS;
    const int grid = (int)(blocks < 1 ? 1 : blocks > MOST_BLOCKS ? MOST_BLOCKS : blocks);
    if (value_size == sizeof(float))
        fill_kernel<<<grid, THREADS, 0, stream>>>(rows, height, slices, row_ptr, col, static_cast<const float *>(val),
                                                  offsets, stored, sell_col, static_cast<float *>(sell_val));
    else if (value_size == sizeof(uint16_t)) /* moved only, so any 16-bit type will do */
        fill_kernel<<<grid, THREADS, 0, stream>>>(rows, height, slices, row_ptr, col,
                                                  static_cast<const uint16_t *>(val), offsets, stored, sell_col,
                                                  static_cast<uint16_t *>(sell_val));
    else
        fill_kernel<<<grid, THREADS, 0, stream>>>(rows, height, slices, row_ptr, col, static_cast<const double *>(val),
                                                  offsets, stored, sell_col, static_cast<double *>(sell_val));
    return cudaGetLastError();
}

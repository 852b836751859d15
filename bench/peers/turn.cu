/* Turns rows into columns by tiles in shared memory, so that reads and writes go along memory.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "bench/peers/turn.h"

#include <cuda_runtime.h>

namespace
{

enum { TILE = 32, THREADS = 256, ROWS_A_PASS = THREADS / TILE };
const int64_t MOST_BLOCKS = 65536;

template <typename T>
__global__ void __launch_bounds__(THREADS) turn_kernel(int64_t rows, int64_t columns, const T *from, T *to)
{
    __shared__ T tile[TILE][TILE + 1];
    const int64_t across = (columns + TILE - 1) / TILE, tiles = across * ((rows + TILE - 1) / TILE);
    const int along = (int)threadIdx.x % TILE, first = (int)threadIdx.x / TILE;
    for (int64_t t = blockIdx.x; t < tiles; t += gridDim.x) {
        const int64_t row = t / across * TILE, column = t % across * TILE;
        for (int i = first; i < TILE; i += ROWS_A_PASS)
            if (row + i < rows && column + along < columns)
                tile[i][along] = from[(row + i) * columns + column + along];
        __syncthreads();
        for (int i = first; i < TILE; i += ROWS_A_PASS)
            if (column + i < columns && row + along < rows)
                to[(column + i) * rows + row + along] = tile[along][i];
        __syncthreads();
    }
}

template <typename T> cudaError_t turn(cudaStream_t stream, int64_t rows, int64_t columns, const void *from, void *to)
{
    const int64_t tiles = (rows + TILE - 1) / TILE * ((columns + TILE - 1) / TILE);
    if (tiles == 0)
        return cudaSuccess;
    turn_kernel<T><<<(unsigned)(tiles < MOST_BLOCKS ? tiles : MOST_BLOCKS), THREADS, 0, stream>>>(
        rows, columns, static_cast<const T *>(from), static_cast<T *>(to));
    return cudaGetLastError();
}

} // namespace

extern "C" cudaError_t turn_rows(cudaStream_t stream, int64_t rows, int64_t columns, int size, const void *from,
                                 void *to)
{
    return size == 2   ? turn<uint16_t>(stream, rows, columns, from, to)
           : size == 4 ? turn<uint32_t>(stream, rows, columns, from, to)
                       : turn<uint64_t>(stream, rows, columns, from, to);
}

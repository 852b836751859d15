/* Loops of kernels that make plans, with block_threads threads a block.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef DEVICE_LOOPS_CUH
#define DEVICE_LOOPS_CUH

#include "device/block.cuh"
#include "formats/columns.h"

/* body(i) for 0 <= i < n, by all threads of the grid. */
template <typename Body> __device__ void for_each(int64_t n, const Body &body)
{
    for (int64_t i = (int64_t)blockIdx.x * block_threads + threadIdx.x; i < n; i += (int64_t)gridDim.x * block_threads)
        body(i);
}

/* begins[key] = the number of sorted elements less than key, 0 <= key <= keys, by binary search. */
template <typename Offset>
__global__ void __launch_bounds__(block_threads)
    find_begins(const int32_t *sorted, int64_t n, Offset *begins, int64_t keys)
{
    for_each(keys + 1, [=](int64_t key) { begins[key] = (Offset)first_column_from(sorted, 0, n, key); });
}

#endif

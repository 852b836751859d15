/* The plan of long, made on the device in one launch: the row of each unit's first nonzero, the
 * 16-bit columns of the units whose columns span less than 2^16, and the lengths of the rows.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef PRODUCT_LONG_PLAN_CUH
#define PRODUCT_LONG_PLAN_CUH

#include "product/cuda/long/long.cuh"
#include "product/cuda/tiles/spmv_4_tiles_plan.cuh"

namespace long_rows
{

enum { PLAN_THREADS = 256, PLAN_WARPS = PLAN_THREADS / warp_lanes };

/* A row with fewer entries is short: its end takes a warp longer than its entries. */
enum { SHORT = 64 };

/* Read by the host; all 0 at first. */
struct statistics {
    unsigned long long longest, empty, shorts; /* shorts: without the empty rows */
    unsigned long long narrow;                 /* units with 16-bit columns */
};

__device__ inline int32_t warp_largest(int32_t number)
{
    return -tiles::warp_least(-number);
}

/* Writes the 16-bit columns of a unit if they span less than 2^16. Returns the base, or NO_BASE.
 * Called by a warp. */
__device__ inline int32_t narrow_unit(const int32_t *col, int64_t begin, int64_t end, uint16_t *out)
{
    const int lane = (int)threadIdx.x % warp_lanes;
    int32_t low = INT32_MAX, high = 0;
#pragma unroll 8
    for (int64_t k = begin + lane; k < end; k += warp_lanes) {
        const int32_t column = col[k];
        low = column < low ? column : low;
        high = column > high ? column : high;
    }
    low = tiles::warp_least(low);
    high = warp_largest(high);
    if (high - low > UINT16_MAX)
        return tiles::NO_BASE;
#pragma unroll 8
    for (int64_t k = begin + lane; k < end; k += warp_lanes)
        out[k] = (uint16_t)(col[k] - low);
    return low;
}

/* Warps loop over the units, threads over the rows. narrow: NULL for no 16-bit columns. */
template <int UNIT, typename T, typename Stored>
__global__ void __launch_bounds__(PLAN_THREADS)
    look(matrix<T, Stored> m, unit *table, uint16_t *narrow, statistics *about)
{
    const int lane = (int)threadIdx.x % warp_lanes;
    const int64_t first = (int64_t)blockIdx.x * PLAN_WARPS + (int)threadIdx.x / warp_lanes;
    const int64_t threads = (int64_t)gridDim.x * PLAN_THREADS;
    unsigned long long with_base = 0, longest = 0, empty = 0, shorts = 0;
    for (int64_t u = first; u < m.units; u += threads / warp_lanes) {
        const int64_t begin = u * UNIT, end = begin + UNIT < m.nnz ? begin + UNIT : m.nnz;
        const int64_t row =
            tiles::last_row((int64_t)0, (int64_t)m.rows - 1, [&](int64_t r) { return m.offset((int32_t)r) <= begin; });
        const int32_t base = narrow != nullptr ? narrow_unit(m.col, begin, end, narrow) : (int32_t)tiles::NO_BASE;
        if (lane == 0) {
            table[u] = {(int32_t)row, base};
            with_base += base != tiles::NO_BASE;
        }
    }
    for (int64_t row = (int64_t)blockIdx.x * PLAN_THREADS + threadIdx.x; row < m.rows; row += threads) {
        const unsigned long long length = (unsigned long long)(m.offset((int32_t)row + 1) - m.offset((int32_t)row));
        longest = length > longest ? length : longest;
        empty += length == 0;
        shorts += length > 0 && length < SHORT;
    }
    for (int distance = warp_lanes / 2; distance > 0; distance /= 2) {
        const unsigned long long other = __shfl_down_sync(0xffffffffu, longest, (unsigned)distance);
        longest = other > longest ? other : longest;
        empty += __shfl_down_sync(0xffffffffu, empty, (unsigned)distance);
        shorts += __shfl_down_sync(0xffffffffu, shorts, (unsigned)distance);
    }
    if (lane > 0)
        return;
    atomicMax(&about->longest, longest);
    if (empty > 0)
        atomicAdd(&about->empty, empty);
    if (shorts > 0)
        atomicAdd(&about->shorts, shorts);
    if (with_base > 0)
        atomicAdd(&about->narrow, with_base);
}

} // namespace long_rows

#endif

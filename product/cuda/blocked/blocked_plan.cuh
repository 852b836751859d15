/* Computes the order of blocked on the device, with two stable sorts.
 *
 * mark_lines  in how many lines of x a sample of the nonzeros lies; only where the plan chooses
 * number    (block of columns, index) of each nonzero
 * (sort)    by block: rows and columns keep their order within one. from[i]: the nonzero at place i
 * begins    where the blocks begin, by binary search; the host cuts shares and sections from them
 * local     columns within their blocks, in 16 bits
 * tile_of   the tile of each nonzero, from the table of the packing of tiles
 * tile_keys (tile, i) of place i
 * (sort)    by tile: order[j], the place of the nonzero that is number j in the order (tile, block,
 *           row, column). The numbers j of a tile are the same as its positions in the matrix
 * mark      place among its tile's products, and whether an interval begins, that is, order[j] is not
 *           order[j - 1] + 1; the number of intervals that begin in each 32 places
 * (scan)    the number of intervals that begin before
 * shift     of each interval: from j to order[j]
 *
 * Index: 32 bits for fewer than 2^31 nonzeros.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef PRODUCT_BLOCKED_PLAN_CUH
#define PRODUCT_BLOCKED_PLAN_CUH

/* This file uses only a part of the packing. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"
#include "product/cuda/tiles/spmv_4_tiles_plan.cuh"
#pragma GCC diagnostic pop
#include "formats/device_loops.cuh"
#include "product/cuda/blocked/blocked.cuh"

namespace blocked
{

enum { PLAN_THREADS = block_threads };

/* The sample of the nonzeros by which a plan chooses: WINDOWS windows of neighbouring nonzeros, evenly
 * distributed. A window has as many nonzeros as the last-level cache has lines of LINE bytes, which
 * is what a gather loads that misses this cache. A line that a window uses twice is found in the
 * cache the second time. */
enum { WINDOWS = 4, LINE = 64 };
struct sample {
    int64_t nnz;
    int32_t window; /* nonzeros of a window */
    int shift;      /* log2 of the columns of a line */
    int64_t words;  /* 32-bit words that have a bit for each line of x */

    __host__ __device__ int32_t size() const
    {
        return WINDOWS * window;
    }
};

/* Adds up the lines of the windows. bits, at first 0: a bit for each window and line. */
static __global__ void __launch_bounds__(PLAN_THREADS)
    mark_lines(sample s, const int32_t *col, uint32_t *bits, unsigned long long *lines)
{
    unsigned found = 0;
    for_each(s.size(), [&](int64_t k) {
        const int32_t which = (int32_t)k / s.window;
        const int64_t begin = (s.nnz - s.window) / (WINDOWS - 1) * which;
        const int32_t line = col[begin + k - (int64_t)which * s.window] >> s.shift;
        uint32_t *const word = bits + which * s.words + line / 32;
        const uint32_t bit = 1u << line % 32;
        if ((*(const volatile uint32_t *)word & bit) == 0)
            found += (atomicOr(word, bit) & bit) == 0;
    });
    found = warp_sum(found, warp_lanes);
    if (threadIdx.x % warp_lanes == 0 && found > 0)
        atomicAdd(lines, (unsigned long long)found);
}

template <typename Index>
__global__ void __launch_bounds__(PLAN_THREADS)
    number(const int32_t *col, int columns, int64_t nnz, int32_t *block, Index *index)
{
    for_each(nnz, [=](int64_t k) {
        block[k] = col[k] / columns;
        index[k] = (Index)k;
    });
}

template <typename Index>
__global__ void __launch_bounds__(PLAN_THREADS)
    local(const int32_t *col, const int32_t *sorted, const Index *from, int columns, int64_t nnz, uint16_t *column)
{
    for_each(nnz, [=](int64_t i) { column[i] = (uint16_t)(col[from[i]] - sorted[i] * columns); });
}

static __global__ void __launch_bounds__(PLAN_THREADS) tile_of(const tiles::tile *table, int32_t *its_tile)
{
    const int64_t end = table[blockIdx.x + 1].begin;
    for (int64_t k = table[blockIdx.x].begin + threadIdx.x; k < end; k += PLAN_THREADS)
        its_tile[k] = (int32_t)blockIdx.x;
}

template <typename Index>
__global__ void __launch_bounds__(PLAN_THREADS)
    tile_keys(const int32_t *its_tile, const Index *from, int64_t nnz, int32_t *key, Index *index)
{
    for_each(nnz, [=](int64_t i) {
        key[i] = its_tile[from[i]];
        index[i] = (Index)i;
    });
}

/* Whether an interval begins at j. */
template <typename Index> __device__ bool is_head(const Index *order, int64_t j, int64_t nnz)
{
    return j < nnz && (j == 0 || order[j] != order[j - 1] + 1);
}

/* Each warp loops over lines of 32 places. */
template <typename Body> __device__ void for_each_line(int64_t nnz, const Body &body)
{
    const int64_t stride = (int64_t)gridDim.x * PLAN_THREADS;
    for (int64_t line = (int64_t)blockIdx.x * PLAN_THREADS + threadIdx.x / warp_lanes * warp_lanes; line < nnz;
         line += stride)
        body(line / warp_lanes, line + threadIdx.x % warp_lanes);
}

template <typename Index>
__global__ void __launch_bounds__(PLAN_THREADS)
    mark(const tiles::tile *table, const int32_t *its_tile, const Index *from, const Index *order, int64_t nnz,
         int line_length, uint16_t *place, Index *heads)
{
    for_each_line(nnz, [=](int64_t line, int64_t j) {
        const bool head = is_head(order, j, nnz);
        const unsigned all = __ballot_sync(0xffffffffu, head);
        if (threadIdx.x % warp_lanes == 0)
            heads[line] = (Index)__popc(all);
        if (j < nnz) {
            const int64_t begin = table[its_tile[j]].begin & ~(int64_t)(line_length - 1);
            place[j] = (uint16_t)((int64_t)from[order[j]] - begin + (head ? (int)HEAD : 0));
        }
    });
}

template <typename Index>
__global__ void __launch_bounds__(PLAN_THREADS)
    shifts(const Index *order, const Index *before, int64_t nnz, Index *shift)
{
    for_each_line(nnz, [=](int64_t line, int64_t j) {
        const bool head = is_head(order, j, nnz);
        const unsigned all = __ballot_sync(0xffffffffu, head);
        if (head)
            shift[before[line] + (Index)__popc(all & ((1u << threadIdx.x % warp_lanes) - 1u))] = (Index)(order[j] - j);
    });
}

} // namespace blocked

#endif

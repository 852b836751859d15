/* Computes the order of rung 6 on the device, with two stable sorts.
 *
 * number    (block of columns, index) of each nonzero
 * (sort)    by block: rows and columns keep their order within one. from[i]: the nonzero at place i
 * begins    where the blocks begin, by binary search; the host cuts parts and segments from them
 * local     columns within their blocks, in 16 bits
 * tile_of   the tile of each nonzero, from the table of rung 4's packing
 * tile_keys (tile, i) of place i
 * (sort)    by tile: order[j], the place of the nonzero that is number j in the order (tile, block,
 *           row, column). The numbers j of a tile are the same as its positions in the matrix
 * mark      place among its tile's products, and whether a run begins, that is, order[j] is not
 *           order[j - 1] + 1; the number of runs that begin in each 32 places
 * (scan)    the number of runs that begin before
 * shift     of each run: from j to order[j]
 *
 * Index: 32 bits for fewer than 2^31 nonzeros.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SPMV_6_BLOCKED_PLAN_CUH
#define SPMV_6_BLOCKED_PLAN_CUH

/* This file uses only a part of the packing. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"
#include "spmv_4_tiles_plan.cuh"
#pragma GCC diagnostic pop
#include "device_loops.cuh"
#include "spmv_6_blocked.cuh"

namespace blocked
{

enum { PLAN_THREADS = block_threads };

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

/* Whether a run begins at j. */
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

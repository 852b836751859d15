/* The rows of a rank in its GPU's memory: offsets that begin at another number, the columns that other
 * ranks own, columns of the whole matrix as places in a vector of the rank, and blocks of own columns.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "device/block.cuh"
#include "device/launch.cuh"
#include "formats/device_loops.cuh"

extern "C" {
#include "distributed/group_rows.h"
}

namespace
{

template <typename From, typename To>
__global__ void __launch_bounds__(block_threads) shift_offsets(const From *from, int64_t shift, To *to, int64_t n)
{
    for_each(n, [=](int64_t i) { to[i] = (To)((int64_t)from[i] + shift); });
}

__device__ bool is_own(const group_columns &own, int32_t column)
{
    return own.begin <= column && column < own.end;
}

__device__ int64_t begin_of(const group_spans &spans, int64_t i)
{
    return spans.bound != nullptr ? spans.bound[i] : group_span_begin(0, spans.entries, spans.count, i);
}

/* counts[i] = the entries of span i whose columns other ranks own. */
__global__ void __launch_bounds__(block_threads)
    count_ghosts(const int32_t *col, group_spans spans, group_columns own, int64_t *counts)
{
    __shared__ int64_t of_block;
    for (int64_t i = blockIdx.x; i < spans.count; i += gridDim.x) {
        const int64_t begin = begin_of(spans, i), end = begin_of(spans, i + 1);
        if (threadIdx.x == 0)
            of_block = 0;
        __syncthreads();
        int64_t mine = 0;
        for (int64_t k = begin + threadIdx.x; k < end; k += block_threads)
            mine += !is_own(own, col[k]);
        __syncwarp();
        atomic_add_of_warp(mine, &of_block);
        __syncthreads();
        if (threadIdx.x == 0)
            counts[i] = of_block;
        __syncthreads(); /* before the next span overwrites the count */
    }
}

/* Lists these columns, those of span i from place begins[i] on, in any order. */
__global__ void __launch_bounds__(block_threads)
    list_ghosts(const int32_t *col, group_spans spans, group_columns own, const int64_t *begins, int32_t *list)
{
    __shared__ unsigned long long listed;
    const int lane = (int)threadIdx.x % warp_lanes;
    for (int64_t i = blockIdx.x; i < spans.count; i += gridDim.x) {
        if (begins[i + 1] == begins[i])
            continue;
        const int64_t begin = begin_of(spans, i), end = begin_of(spans, i + 1);
        if (threadIdx.x == 0)
            listed = (unsigned long long)begins[i];
        __syncthreads();
        for (int64_t first = begin; first < end; first += block_threads) {
            const int64_t k = first + threadIdx.x;
            const int32_t column = k < end ? col[k] : (int32_t)own.begin;
            const bool ghost = k < end && !is_own(own, column);
            const unsigned ghosts = __ballot_sync(0xffffffffu, ghost);
            unsigned long long at = 0;
            if (ghosts != 0 && lane == 0)
                at = atomicAdd(&listed, (unsigned long long)__popc(ghosts));
            at = __shfl_sync(0xffffffffu, at, 0);
            if (ghost)
                list[at + (unsigned)__popc(ghosts & ((1u << lane) - 1))] = column;
        }
        __syncthreads();
    }
}

/* flags[i] = whether the sorted number i differs from the one before. */
__global__ void __launch_bounds__(block_threads) flag_first(const int32_t *sorted, uint8_t *flags, int64_t n)
{
    for_each(n, [=](int64_t i) { flags[i] = i == 0 || sorted[i] != sorted[i - 1]; });
}

/* ghosts: the sorted columns of other ranks, of which `before` are in front of the own ones. */
__global__ void __launch_bounds__(block_threads)
    renumber(int32_t *col, int64_t nnz, group_columns own, const int32_t *ghosts, int64_t before, int64_t count,
             int64_t room)
{
    for_each(nnz, [=](int64_t k) {
        const int32_t column = col[k];
        int64_t place = room + column - own.begin;
        if (column < own.begin)
            place = room - before + first_column_from(ghosts, 0, before, column);
        else if (column >= own.end)
            place = room + own.end - own.begin + first_column_from(ghosts, before, count, column) - before;
        col[k] = (int32_t)place;
    });
}

/* Whether an entry of a row belongs to the block: its column, counted from the first own one, is that of
 * the row, or any own one. */
__device__ bool is_in_block(const group_block &b, int64_t row, int32_t column)
{
    return b.diagonal ? column - b.first == row : b.first <= column && column < b.first + b.rows;
}

template <typename Offset>
__global__ void __launch_bounds__(block_threads)
    count_block(const Offset *row_ptr, const int32_t *col, group_block b, int32_t *counts)
{
    for_each(b.rows, [=](int64_t row) {
        int32_t count = 0;
        for (int64_t k = row_ptr[row]; k < (int64_t)row_ptr[row + 1]; k++)
            count += is_in_block(b, row, col[k]);
        counts[row] = count;
    });
}

template <typename Offset, typename Value>
__global__ void __launch_bounds__(block_threads)
    fill_block(const Offset *row_ptr, const int32_t *col, const Value *val, group_block b, const int64_t *offsets,
               int32_t *to_col, Value *to_val)
{
    for_each(b.rows, [=](int64_t row) {
        int64_t to = offsets[row];
        for (int64_t k = row_ptr[row]; k < (int64_t)row_ptr[row + 1]; k++) {
            if (!is_in_block(b, row, col[k]))
                continue;
            to_col[to] = (int32_t)(col[k] - b.first);
            if (val != nullptr)
                to_val[to] = val[k];
            to++;
        }
    });
}

template <typename Offset>
spmv_status fill(spmv_context *ctx, const spmv_csr *a, group_block b, const int64_t *offsets, int32_t *col, void *val)
{
    const int grid = grid_for(b.rows, block_threads);
    const Offset *const row_ptr = (const Offset *)a->row_ptr;
    if (spmv_type_size(a->type) == 4)
        return launch(ctx, "group block", grid, block_threads, fill_block<Offset, int32_t>, row_ptr, a->col,
                      (const int32_t *)a->val, b, offsets, col, (int32_t *)val);
    if (spmv_type_size(a->type) == 16)
        return launch(ctx, "group block", grid, block_threads, fill_block<Offset, spmv_c128>, row_ptr, a->col,
                      (const spmv_c128 *)a->val, b, offsets, col, (spmv_c128 *)val);
    return launch(ctx, "group block", grid, block_threads, fill_block<Offset, int64_t>, row_ptr, a->col,
                  (const int64_t *)a->val, b, offsets, col, (int64_t *)val);
}

} // namespace

extern "C" spmv_status group_shift_offsets_cuda(spmv_context *ctx, const void *from, int from_bits, int64_t shift,
                                                void *to, int to_bits, int64_t n)
{
    return on_device(ctx, [=] {
        const int grid = grid_for(n, block_threads);
        if (from_bits == 32 && to_bits == 32)
            return launch(ctx, "group offsets", grid, block_threads, shift_offsets<int32_t, int32_t>,
                          (const int32_t *)from, shift, (int32_t *)to, n);
        if (from_bits == 32)
            return launch(ctx, "group offsets", grid, block_threads, shift_offsets<int32_t, int64_t>,
                          (const int32_t *)from, shift, (int64_t *)to, n);
        if (to_bits == 32)
            return launch(ctx, "group offsets", grid, block_threads, shift_offsets<int64_t, int32_t>,
                          (const int64_t *)from, shift, (int32_t *)to, n);
        return launch(ctx, "group offsets", grid, block_threads, shift_offsets<int64_t, int64_t>, (const int64_t *)from,
                      shift, (int64_t *)to, n);
    });
}

extern "C" spmv_status group_count_ghosts_cuda(spmv_context *ctx, const int32_t *col, const struct group_spans *spans,
                                               struct group_columns own, int64_t *counts)
{
    return on_device(ctx, [=] {
        return launch(ctx, "group ghosts", (int)spans->count, block_threads, count_ghosts, col, *spans, own, counts);
    });
}

extern "C" spmv_status group_list_ghosts_cuda(spmv_context *ctx, const int32_t *col, const struct group_spans *spans,
                                              struct group_columns own, const int64_t *begins, int32_t *list)
{
    return on_device(ctx, [=] {
        return launch(ctx, "group ghosts", (int)spans->count, block_threads, list_ghosts, col, *spans, own, begins,
                      list);
    });
}

extern "C" spmv_status group_flag_first_cuda(spmv_context *ctx, const int32_t *sorted, uint8_t *flags, int64_t n)
{
    return on_device(ctx, [=] {
        return launch(ctx, "group ghosts", grid_for(n, block_threads), block_threads, flag_first, sorted, flags, n);
    });
}

extern "C" spmv_status group_renumber_cuda(spmv_context *ctx, int32_t *col, int64_t nnz, struct group_columns own,
                                           const int32_t *ghosts, int64_t before, int64_t count, int64_t room)
{
    return on_device(ctx, [=] {
        return launch(ctx, "group columns", grid_for(nnz, block_threads), block_threads, renumber, col, nnz, own,
                      ghosts, before, count, room);
    });
}

extern "C" spmv_status group_count_block_cuda(spmv_context *ctx, const spmv_csr *a, struct group_block b,
                                              int32_t *counts)
{
    return on_device(ctx, [=] {
        const int grid = grid_for(b.rows, block_threads);
        if (a->row_ptr_bits == 32)
            return launch(ctx, "group block", grid, block_threads, count_block<int32_t>, (const int32_t *)a->row_ptr,
                          a->col, b, counts);
        return launch(ctx, "group block", grid, block_threads, count_block<int64_t>, (const int64_t *)a->row_ptr,
                      a->col, b, counts);
    });
}

extern "C" spmv_status group_fill_block_cuda(spmv_context *ctx, const spmv_csr *a, struct group_block b,
                                             const int64_t *offsets, int32_t *col, void *val)
{
    return on_device(ctx, [=] {
        return a->row_ptr_bits == 32 ? fill<int32_t>(ctx, a, b, offsets, col, val)
                                     : fill<int64_t>(ctx, a, b, offsets, col, val);
    });
}

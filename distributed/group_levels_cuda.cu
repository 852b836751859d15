/* What moves between ranks in the set-up of a hierarchy is packed in the GPU's memory.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "device/block.cuh"
#include "device/launch.cuh"
#include "formats/device_loops.cuh"

extern "C" {
#include "distributed/group_levels.h"
#include "distributed/group_places.h"
}

namespace
{

/* So many threads copy a row. */
enum { ROW_LANES = 8 };

__global__ void __launch_bounds__(block_threads)
    move_elements(group_elements e, const int32_t *from, int32_t *to, bool back)
{
    for_each(e.count * e.words, [=](int64_t k) {
        const int64_t there = (int64_t)e.index[k / e.words] * e.words + k % e.words;
        to[back ? there : k] = from[back ? k : there];
    });
}

template <typename Offset>
__global__ void __launch_bounds__(block_threads) row_lengths(group_elements e, const Offset *row_ptr, int64_t *length)
{
    for_each(e.count, [=](int64_t i) {
        const int64_t row = e.index != nullptr ? e.index[i] : i;
        length[i] = (int64_t)row_ptr[row + 1] - (int64_t)row_ptr[row];
    });
}

template <typename Offset>
__global__ void __launch_bounds__(block_threads)
    take_rows(group_elements e, const Offset *row_ptr, const int64_t *begin, const int32_t *from, int32_t *to)
{
    for_each(e.count * ROW_LANES, [=](int64_t k) {
        const int64_t i = k / ROW_LANES, first = (int64_t)row_ptr[e.index[i]] * e.words;
        const int64_t words = (begin[i + 1] - begin[i]) * e.words;
        for (int64_t w = k % ROW_LANES; w < words; w += ROW_LANES)
            to[begin[i] * e.words + w] = from[first + w];
    });
}

constexpr uint64_t NOWHERE = UINT64_MAX;

__global__ void __launch_bounds__(block_threads)
    place_lengths(group_elements e, const uint64_t *place, int64_t *length, int64_t *missing)
{
    for_each(e.count, [=](int64_t i) {
        const uint64_t its = place[e.index[i]];
        length[i] = its == NOWHERE ? 0 : (int64_t)(its & 0xffff);
        if (its == NOWHERE)
            *missing = 1;
    });
}

__global__ void __launch_bounds__(block_threads)
    take_places(group_elements e, const uint64_t *place, const int64_t *begin, const int32_t *from, int32_t *to)
{
    for_each(e.count * ROW_LANES, [=](int64_t k) {
        const int64_t i = k / ROW_LANES, first = (int64_t)(place[e.index[i]] >> 16) * e.words;
        const int64_t words = (begin[i + 1] - begin[i]) * e.words;
        for (int64_t w = k % ROW_LANES; w < words; w += ROW_LANES)
            to[begin[i] * e.words + w] = from[first + w];
    });
}

__global__ void __launch_bounds__(block_threads)
    put_places(rank_halo h, const int64_t *begin, int64_t first, uint64_t *place)
{
    for_each(h.before + h.after, [=](int64_t g) {
        place[g < h.before ? h.room - h.before + g : h.room + h.own + g - h.before] =
            (uint64_t)(first + begin[g]) << 16 | (uint64_t)(begin[g + 1] - begin[g]);
    });
}

__global__ void __launch_bounds__(block_threads)
    want_rows(rank_halo h, const int32_t *place, int64_t count, int32_t *wanted)
{
    for_each(count, [=](int64_t k) {
        const int64_t ghost = ghost_at(&h, place[k]);
        if (ghost >= 0)
            wanted[ghost] = 1;
    });
}

__global__ void __launch_bounds__(block_threads) drop_rows(const int32_t *asked, int64_t count, int64_t *length)
{
    for_each(count, [=](int64_t i) { length[i] = asked[i] != 0 ? length[i] : 0; });
}

__global__ void __launch_bounds__(block_threads)
    find_numbers(rank_halo h, const int32_t *ghost, int32_t *col, int64_t count)
{
    for_each(count, [=](int64_t k) { col[k] = number_at(&h, ghost, col[k]); });
}

template <typename Value>
__global__ void __launch_bounds__(block_threads)
    find_places(rank_halo h, const int32_t *ghost, int32_t *col, Value *val, int64_t count)
{
    for_each(count, [=](int64_t k) {
        bool there = false;
        col[k] = place_up_to(&h, ghost, col[k], &there);
        if (!there && val != nullptr)
            val[k] = Value();
    });
}

__device__ bool is_kept(const group_split &s, int32_t column)
{
    return s.first <= column && column < s.end;
}

__global__ void __launch_bounds__(block_threads) split_count(group_split s)
{
    const int64_t *const row_ptr = (const int64_t *)s.own.row_ptr;
    for_each(s.own.rows, [=](int64_t row) {
        int64_t kept = 0;
        for (int64_t k = row_ptr[row]; k < row_ptr[row + 1]; k++)
            kept += is_kept(s, s.own.col[k]);
        s.kept[row] = kept;
        s.left[row] = row_ptr[row + 1] - row_ptr[row] - kept;
    });
}

template <typename Value> __global__ void __launch_bounds__(block_threads) split_fill(group_split s)
{
    const int64_t *const row_ptr = (const int64_t *)s.own.row_ptr;
    const Value *const val = (const Value *)s.own.val;
    for_each(s.own.rows, [=](int64_t row) {
        int64_t kept = s.kept[row], left = s.left[row];
        for (int64_t k = row_ptr[row]; k < row_ptr[row + 1]; k++) {
            const int32_t column = s.own.col[k];
            if (is_kept(s, column)) {
                s.col[kept] = (int32_t)(column - s.first);
                ((Value *)s.val)[kept++] = val[k];
            } else {
                s.row_out[left] = (int32_t)(s.first_row + row);
                s.col_out[left] = column;
                ((Value *)s.val_out)[left++] = val[k];
            }
        }
    });
}

/* The entries of a row that are not kept. */
__device__ int count_left(const group_split &s, int64_t row)
{
    const int64_t *const row_ptr = (const int64_t *)s.own.row_ptr;
    int left = 0;
    for (int64_t k = row_ptr[row]; k < row_ptr[row + 1]; k++)
        left += !is_kept(s, s.own.col[k]);
    return left;
}

__global__ void __launch_bounds__(block_threads) count_all_left(group_split s, int64_t *count)
{
    int64_t left = 0;
    for (int64_t row = (int64_t)blockIdx.x * block_threads + threadIdx.x; row < s.own.rows;
         row += (int64_t)gridDim.x * block_threads)
        left += count_left(s, row);
    __syncwarp();
    atomic_add_of_warp(left, count);
}

template <typename Value>
__global__ void __launch_bounds__(block_threads) list_left(group_split s, unsigned long long *count)
{
    const int64_t *const row_ptr = (const int64_t *)s.own.row_ptr;
    for_each(s.own.rows, [=](int64_t row) {
        const int left = count_left(s, row);
        if (left == 0)
            return;
        unsigned long long at = atomicAdd(count, (unsigned long long)left);
        for (int64_t k = row_ptr[row]; k < row_ptr[row + 1]; k++)
            if (!is_kept(s, s.own.col[k])) {
                s.row_out[at] = (int32_t)(s.first_row + row);
                s.col_out[at] = s.own.col[k];
                ((Value *)s.val_out)[at++] = ((const Value *)s.own.val)[k];
            }
    });
}

__global__ void __launch_bounds__(block_threads)
    find_owners(const int64_t *first, int ranks, const int32_t *col, int64_t count, int32_t *owner)
{
    for_each(count, [=](int64_t k) {
        int low = 0, high = ranks - 1;
        while (low < high) {
            const int middle = (low + high + 1) / 2;
            if (first[middle] <= col[k])
                low = middle;
            else
                high = middle - 1;
        }
        owner[k] = low;
    });
}

__global__ void __launch_bounds__(block_threads)
    count_owners(const int32_t *owner, int64_t count, int ranks, int64_t *begin)
{
    for_each(ranks + 1, [=](int64_t r) { begin[r] = first_column_from(owner, 0, count, r); });
}

spmv_status run_move(spmv_context *ctx, const group_elements &e, const void *from, void *to, bool back)
{
    return on_device(ctx, [&] {
        return launch(ctx, "group elements", grid_for(e.count * e.words, block_threads), block_threads, move_elements,
                      e, (const int32_t *)from, (int32_t *)to, back);
    });
}

} // namespace

extern "C" spmv_status group_take_elements_cuda(spmv_context *ctx, const struct group_elements *e, const void *array,
                                                void *packed)
{
    return run_move(ctx, *e, array, packed, false);
}

extern "C" spmv_status group_put_elements_cuda(spmv_context *ctx, const struct group_elements *e, const void *packed,
                                               void *array)
{
    return run_move(ctx, *e, packed, array, true);
}

extern "C" spmv_status group_row_lengths_cuda(spmv_context *ctx, const struct group_elements *e, const void *row_ptr,
                                              int bits, int64_t *length)
{
    return on_device(ctx, [&] {
        const int grid = grid_for(e->count, block_threads);
        if (bits == 32)
            return launch(ctx, "group row lengths", grid, block_threads, row_lengths<int32_t>, *e,
                          (const int32_t *)row_ptr, length);
        return launch(ctx, "group row lengths", grid, block_threads, row_lengths<int64_t>, *e, (const int64_t *)row_ptr,
                      length);
    });
}

extern "C" spmv_status group_take_rows_cuda(spmv_context *ctx, const struct group_elements *e, const void *row_ptr,
                                            int bits, const int64_t *begin, const void *array, void *packed)
{
    return on_device(ctx, [&] {
        const int grid = grid_for(e->count * ROW_LANES, block_threads);
        if (bits == 32)
            return launch(ctx, "group rows", grid, block_threads, take_rows<int32_t>, *e, (const int32_t *)row_ptr,
                          begin, (const int32_t *)array, (int32_t *)packed);
        return launch(ctx, "group rows", grid, block_threads, take_rows<int64_t>, *e, (const int64_t *)row_ptr, begin,
                      (const int32_t *)array, (int32_t *)packed);
    });
}

extern "C" spmv_status group_place_lengths_cuda(spmv_context *ctx, const struct group_elements *e,
                                                const uint64_t *place, int64_t *length, int64_t *missing)
{
    return on_device(ctx, [&] {
        return launch(ctx, "group row lengths", grid_for(e->count, block_threads), block_threads, place_lengths, *e,
                      place, length, missing);
    });
}

extern "C" spmv_status group_take_places_cuda(spmv_context *ctx, const struct group_elements *e, const uint64_t *place,
                                              const int64_t *begin, const void *array, void *packed)
{
    return on_device(ctx, [&] {
        return launch(ctx, "group rows", grid_for(e->count * ROW_LANES, block_threads), block_threads, take_places, *e,
                      place, begin, (const int32_t *)array, (int32_t *)packed);
    });
}

extern "C" spmv_status group_put_places_cuda(spmv_context *ctx, const struct rank_halo *halo, const int64_t *begin,
                                             int64_t first, uint64_t *place)
{
    return on_device(ctx, [&] {
        return launch(ctx, "group rows", grid_for(halo->before + halo->after, block_threads), block_threads, put_places,
                      *halo, begin, first, place);
    });
}

extern "C" spmv_status group_want_rows_cuda(spmv_context *ctx, const struct rank_halo *halo, const int32_t *place,
                                            int64_t count, int32_t *wanted)
{
    return on_device(ctx, [&] {
        return launch(ctx, "group rows", grid_for(count, block_threads), block_threads, want_rows, *halo, place, count,
                      wanted);
    });
}

extern "C" spmv_status group_drop_rows_cuda(spmv_context *ctx, const int32_t *asked, int64_t count, int64_t *length)
{
    return on_device(ctx, [&] {
        return launch(ctx, "group rows", grid_for(count, block_threads), block_threads, drop_rows, asked, count,
                      length);
    });
}

extern "C" spmv_status group_find_numbers_cuda(spmv_context *ctx, const struct rank_halo *halo, const int32_t *ghost,
                                               int32_t *col, int64_t count)
{
    return on_device(ctx, [&] {
        return launch(ctx, "group columns", grid_for(count, block_threads), block_threads, find_numbers, *halo, ghost,
                      col, count);
    });
}

extern "C" spmv_status group_find_places_cuda(spmv_context *ctx, const struct rank_halo *halo, const int32_t *ghost,
                                              const struct rank_arrays *all, spmv_type type)
{
    return on_device(ctx, [&] {
        const int grid = grid_for(all->nnz, block_threads);
        if (spmv_type_size(type) == 4)
            return launch(ctx, "group columns", grid, block_threads, find_places<int32_t>, *halo, ghost, all->col,
                          (int32_t *)all->val, all->nnz);
        return launch(ctx, "group columns", grid, block_threads, find_places<int64_t>, *halo, ghost, all->col,
                      (int64_t *)all->val, all->nnz);
    });
}

extern "C" spmv_status group_split_count_cuda(spmv_context *ctx, const struct group_split *s)
{
    return on_device(ctx, [&] {
        return launch(ctx, "group columns", grid_for(s->own.rows, block_threads), block_threads, split_count, *s);
    });
}

extern "C" spmv_status group_split_fill_cuda(spmv_context *ctx, const struct group_split *s)
{
    return on_device(ctx, [&] {
        return launch(ctx, "group columns", grid_for(s->own.rows, block_threads), block_threads,
                      spmv_type_size(s->own.type) == 4   ? split_fill<int32_t>
                      : spmv_type_size(s->own.type) == 8 ? split_fill<int64_t>
                                                         : split_fill<spmv_c128>,
                      *s);
    });
}

extern "C" spmv_status group_count_left_cuda(spmv_context *ctx, const struct group_split *s, int64_t *count)
{
    return on_device(ctx, [&] {
        return launch(ctx, "group columns", grid_for(s->own.rows, block_threads), block_threads, count_all_left, *s,
                      count);
    });
}

extern "C" spmv_status group_list_left_cuda(spmv_context *ctx, const struct group_split *s, int64_t *count)
{
    return on_device(ctx, [&] {
        return launch(ctx, "group columns", grid_for(s->own.rows, block_threads), block_threads,
                      spmv_type_size(s->own.type) == 4 ? list_left<int32_t> : list_left<int64_t>, *s,
                      (unsigned long long *)count);
    });
}

extern "C" spmv_status group_find_owners_cuda(spmv_context *ctx, const int64_t *first, int ranks, const int32_t *col,
                                              int64_t count, int32_t *owner)
{
    return on_device(ctx, [&] {
        return launch(ctx, "group columns", grid_for(count, block_threads), block_threads, find_owners, first, ranks,
                      col, count, owner);
    });
}

extern "C" spmv_status group_count_owners_cuda(spmv_context *ctx, const int32_t *owner, int64_t count, int ranks,
                                               int64_t *begin)
{
    return on_device(ctx, [&] {
        return launch(ctx, "group columns", grid_for(ranks + 1, block_threads), block_threads, count_owners, owner,
                      count, ranks, begin);
    });
}

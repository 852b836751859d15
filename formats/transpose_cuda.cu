/* B = transpose(A) on the device: sorts the entries of A by column with the stable radix sort of
 * the primitives.
 *
 * sort    (column, index of the entry) by column: entries of a column keep their order, which is by
 *         row
 * begins  row_ptr[c] = the number of sorted columns less than c, by binary search
 * rows    the row of each entry of A, by binary search in its offsets
 * take    B's columns are the rows of the entries in sorted order; its values likewise
 *
 * So B has the same bits as the counting sort of transpose.c. The searches take the same
 * time for one full column as for mostly empty ones. Temporary memory: 12 bytes an entry (16 beyond
 * 2^31 entries). F. G. Gustavson, ACM TOMS 4(3), 1978; M. Zagha, G. E. Blelloch, SC 1991.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "device/block.cuh"
#include "device/complex.cuh"
#include "device/launch.cuh"
#include "formats/device_loops.cuh"

extern "C" {
#include "formats/matrix_internal.h"
#include "primitives/sort/sort_request.h"
}

namespace
{

/* Entries for which a block finds the rows at a time. */
enum { TILE = 8 * block_threads };

template <typename Number> __global__ void __launch_bounds__(block_threads) number_entries(Number *to, int64_t n)
{
    for_each(n, [=](int64_t i) { to[i] = (Number)i; });
}

/* The first row in [low, high] that ends after entry k. Row high must end after it. */
template <typename Offset> __device__ int64_t row_of(const Offset *row_ptr, int64_t low, int64_t high, int64_t k)
{
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if ((int64_t)row_ptr[middle + 1] > k)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* The rows of a tile's entries lie between those of its first and last entry, which two threads
 * find. */
template <typename Offset>
__global__ void __launch_bounds__(block_threads)
    entry_rows(const Offset *row_ptr, int64_t rows, int64_t nnz, int32_t *row, int64_t tiles)
{
    __shared__ int64_t border[2];
    for (int64_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        const int64_t begin = tile * TILE, end = begin + TILE < nnz ? begin + TILE : nnz;
        if (threadIdx.x < 2)
            border[threadIdx.x] = row_of(row_ptr, 0, rows - 1, threadIdx.x == 0 ? begin : end - 1);
        __syncthreads();
        for (int64_t k = begin + threadIdx.x; k < end; k += block_threads)
            row[k] = (int32_t)row_of(row_ptr, border[0], border[1], k);
        __syncthreads();
    }
}

/* Functions on elements. */
template <typename T> struct as_it_is {
    __device__ T operator()(T z) const
    {
        return z;
    }
};

template <typename T> struct conjugate {
    __device__ T operator()(T z) const
    {
        z.im = -z.im;
        return z;
    }
};

template <typename T, typename Number, typename Function>
__global__ void __launch_bounds__(block_threads) take(const T *values, const Number *from, T *to, int64_t n)
{
    for_each(n, [=](int64_t k) { to[k] = Function()(load_whole(values + from[k])); });
}

template <typename T, typename Function>
spmv_status run_take(spmv_context *ctx, const void *values, const void *from, int from_bits, void *to, int64_t n)
{
    const int blocks = grid_for(n, block_threads);
    return from_bits == 32 ? launch(ctx, "transpose take", blocks, block_threads, take<T, int32_t, Function>,
                                    (const T *)values, (const int32_t *)from, (T *)to, n)
                           : launch(ctx, "transpose take", blocks, block_threads, take<T, int64_t, Function>,
                                    (const T *)values, (const int64_t *)from, (T *)to, n);
}

spmv_status run_number(spmv_context *ctx, void *to, int bits, int64_t n)
{
    const int blocks = grid_for(n, block_threads);
    return bits == 32
               ? launch(ctx, "transpose number", blocks, block_threads, number_entries<int32_t>, (int32_t *)to, n)
               : launch(ctx, "transpose number", blocks, block_threads, number_entries<int64_t>, (int64_t *)to, n);
}

spmv_status run_begins(spmv_context *ctx, const int32_t *sorted, int64_t nnz, void *row_ptr, int bits, int64_t cols)
{
    const int blocks = grid_for(cols + 1, block_threads);
    return bits == 32 ? launch(ctx, "transpose begins", blocks, block_threads, find_begins<int32_t>, sorted, nnz,
                               (int32_t *)row_ptr, cols)
                      : launch(ctx, "transpose begins", blocks, block_threads, find_begins<int64_t>, sorted, nnz,
                               (int64_t *)row_ptr, cols);
}

spmv_status run_rows(spmv_context *ctx, const spmv_csr &a, int32_t *row)
{
    const int64_t tiles = ceil_divide(a.nnz, (int64_t)TILE);
    const int blocks = grid_for(tiles, 1);
    return a.row_ptr_bits == 32 ? launch(ctx, "transpose rows", blocks, block_threads, entry_rows<int32_t>,
                                         (const int32_t *)a.row_ptr, a.rows, a.nnz, row, tiles)
                                : launch(ctx, "transpose rows", blocks, block_threads, entry_rows<int64_t>,
                                         (const int64_t *)a.row_ptr, a.rows, a.nnz, row, tiles);
}

/* Sorts the entries by column. from receives their indices in this order. *columns receives the
 * sorted columns, an array of room or a.col. */
spmv_status sort_entries(spmv_context *ctx, const spmv_csr &a, void *from, int from_bits, char *room, int64_t room_part,
                         void *spare_from, const int32_t **columns)
{
    int bits = 0;
    while ((a.cols - 1) >> bits != 0)
        bits++;
    *columns = a.col; /* one column or one entry: already sorted */
    if (bits == 0 || a.nnz == 1)
        return on_device(ctx, [&] { return run_number(ctx, from, from_bits, a.nnz); });
    const struct sort_rung *rung = ctx->backend->sort_rungs;
    while (rung[1].name != nullptr)
        rung++;
    sort_request r = {};
    r.key_bytes = 4;
    r.value_bytes = from_bits / 8;
    r.end_bit = bits;
    r.in_keys = a.col;
    r.out_keys = room;
    r.spare_keys = room + room_part;
    r.out_values = from;
    r.spare_values = spare_from;
    r.n = a.nnz;
    /* The last pass writes the out arrays, so the input may be in the other pair (backend.h). */
    const bool even = rung->digit_bits > 0 && sort_passes(&r, rung->digit_bits) % 2 == 0;
    r.in_values = even ? from : spare_from;
    void *scratch = nullptr;
    spmv_status st = context_alloc(ctx, rung->scratch(&r), &scratch);
    if (st == SPMV_OK)
        st = on_device(ctx, [&] { return run_number(ctx, (void *)r.in_values, from_bits, a.nnz); });
    if (st == SPMV_OK)
        st = rung->run(ctx, &r, scratch);
    context_free(ctx, scratch);
    *columns = (const int32_t *)r.out_keys;
    return st;
}

} // namespace

extern "C" spmv_status transpose_cuda(spmv_context *ctx, const spmv_csr *a, void *row_ptr, int row_ptr_bits,
                                      int32_t *col, void *from, int from_bits)
{
    if (a->nnz == 0)
        return on_device(ctx, [&] { return run_begins(ctx, nullptr, 0, row_ptr, row_ptr_bits, a->cols); });
    const int64_t keys = ceil_divide(a->nnz * 4, 256) * 256, numbers = a->nnz * (from_bits / 8);
    const int32_t *columns = nullptr;
    void *room = nullptr;
    spmv_status st = context_alloc(ctx, 2 * keys + numbers, &room);
    if (st == SPMV_OK)
        st = sort_entries(ctx, *a, from, from_bits, (char *)room, keys, (char *)room + 2 * keys, &columns);
    if (st == SPMV_OK)
        st = on_device(ctx, [&] {
            int32_t *const rows = (int32_t *)((char *)room + keys);
            spmv_status step = run_begins(ctx, columns, a->nnz, row_ptr, row_ptr_bits, a->cols);
            if (step == SPMV_OK)
                step = run_rows(ctx, *a, rows);
            return step != SPMV_OK ? step
                                   : run_take<int32_t, as_it_is<int32_t>>(ctx, rows, from, from_bits, col, a->nnz);
        });
    context_free(ctx, room);
    return st;
}

extern "C" spmv_status take_values_cuda(spmv_context *ctx, spmv_type type, bool conjugates, const void *values,
                                        const void *from, int from_bits, void *to, int64_t n)
{
    return on_device(ctx, [&] {
        const auto run = [&](auto element, auto function) {
            return run_take<decltype(element), decltype(function)>(ctx, values, from, from_bits, to, n);
        };
        if (conjugates)
            return with_complex(type, [&](auto of) { return run(of, conjugate<decltype(of)>()); });
        switch (spmv_type_size(type)) {
        case 2:
            return run(uint16_t(), as_it_is<uint16_t>());
        case 4:
            return run(int32_t(), as_it_is<int32_t>());
        case 8:
            return run(int64_t(), as_it_is<int64_t>());
        case 16:
            return run(spmv_c128(), as_it_is<spmv_c128>());
        default:
            return SPMV_ERROR_TYPE;
        }
    });
}

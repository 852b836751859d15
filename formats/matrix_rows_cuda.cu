/* The diagonal and the row sums of a matrix on the device: one thread for each row, which reads its
 * entries in order. So the sums have the bits of the CPU.
 *
 * The connected components of its graph: all entries merge sets of rows at once. A root is only ever put below a
 * smaller one, so in the end the root of a component is its first row, whatever the order of the threads
 * (J. Jaiganesh and M. Burtscher, "A high-performance connected components implementation for GPUs", HPDC 2018).
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "device/complex.cuh"
#include "device/launch.cuh"
#include "formats/device_loops.cuh"

extern "C" {
#include "formats/matrix_internal.h"
}

namespace
{

/* val is NULL for a pattern. */
template <typename T, typename Offset>
__global__ void __launch_bounds__(block_threads)
    diagonal(const Offset *row_ptr, const int32_t *col, const T *val, T *to, int64_t n)
{
    for_each(n, [=](int64_t i) {
        const int64_t end = (int64_t)row_ptr[i + 1];
        int64_t k = (int64_t)row_ptr[i];
        while (k < end && col[k] != i)
            k++;
        to[i] = k == end ? real_value<T>(0) : val != nullptr ? load_whole(val + k) : real_value<T>(1);
    });
}

template <typename T, typename Offset>
__global__ void __launch_bounds__(block_threads) row_sums(const Offset *row_ptr, const T *val, T *to, int64_t n)
{
    for_each(n, [=](int64_t i) {
        const int64_t begin = (int64_t)row_ptr[i], end = (int64_t)row_ptr[i + 1];
        T sum = real_value<T>(val != nullptr ? 0 : (double)(end - begin));
        if (val != nullptr && begin < end)
            sum = load_whole(val + begin);
        for (int64_t k = begin + 1; k < end && val != nullptr; k++)
            sum = sum + load_whole(val + k);
        to[i] = sum;
    });
}

/* The root of the set of i, whose path becomes shorter. Other threads may write the same words: rows above these. */
__device__ int32_t root_of(volatile int32_t *above, int32_t i)
{
    int32_t next = above[i];
    while (next != i) {
        const int32_t after = above[next];
        above[i] = after;
        i = next;
        next = after;
    }
    return i;
}

constexpr int component_lanes = 8; /* threads of a row */

template <typename Offset>
__global__ void __launch_bounds__(block_threads)
    merge_entries(const Offset *row_ptr, const int32_t *col, int32_t *above, int64_t n)
{
    for_each(n * component_lanes, [=](int64_t t) {
        const int64_t i = t / component_lanes, end = (int64_t)row_ptr[i + 1];
        for (int64_t k = (int64_t)row_ptr[i] + t % component_lanes; k < end; k += component_lanes) {
            int32_t one = root_of(above, (int32_t)i), other = root_of(above, col[k]);
            while (one != other) {
                const int32_t small = one < other ? one : other, large = one < other ? other : one;
                if (atomicCAS(&above[large], large, small) == large)
                    break;
                one = root_of(above, small);
                other = root_of(above, large);
            }
        }
    });
}

__global__ void __launch_bounds__(block_threads) begin_sets(int32_t *above, int64_t n)
{
    for_each(n, [=](int64_t i) { above[i] = (int32_t)i; });
}

__global__ void __launch_bounds__(block_threads) end_sets(int32_t *above, int64_t n)
{
    for_each(n, [=](int64_t i) { above[i] = root_of(above, (int32_t)i); });
}

template <typename Offset> spmv_status run_components(spmv_context *ctx, const spmv_csr *a, int32_t *first)
{
    spmv_status st = SPMV_OK;
    const int64_t n = a->rows;
    TRY(launch(ctx, "components", grid_for(n, block_threads), block_threads, begin_sets, first, n));
    TRY(launch(ctx, "components", grid_for(n * component_lanes, block_threads), block_threads, merge_entries<Offset>,
               (const Offset *)a->row_ptr, a->col, first, n));
    TRY(launch(ctx, "components", grid_for(n, block_threads), block_threads, end_sets, first, n));
done:
    return st;
}

template <typename T, typename Offset> spmv_status run_diagonal(spmv_context *ctx, const spmv_csr *a, void *to)
{
    const int64_t n = min_i64(a->rows, a->cols);
    return launch(ctx, "diagonal", grid_for(n, block_threads), block_threads, diagonal<T, Offset>,
                  (const Offset *)a->row_ptr, a->col, (const T *)a->val, (T *)to, n);
}

template <typename T, typename Offset> spmv_status run_row_sums(spmv_context *ctx, const spmv_csr *a, void *to)
{
    return launch(ctx, "row sums", grid_for(a->rows, block_threads), block_threads, row_sums<T, Offset>,
                  (const Offset *)a->row_ptr, (const T *)a->val, (T *)to, a->rows);
}

/* Calls body(value, offset) with objects of the types of the values and of the row offsets. */
template <typename Body> spmv_status with_matrix(spmv_context *ctx, const spmv_csr *a, const Body &body)
{
    return on_device(ctx, [&] {
        return with_value(a->val != nullptr ? a->type : SPMV_F64, [&](auto value) {
            return a->row_ptr_bits == 32 ? body(value, int32_t()) : body(value, int64_t());
        });
    });
}

} // namespace

extern "C" spmv_status matrix_diagonal_cuda(spmv_context *ctx, const spmv_csr *a, void *diagonal)
{
    return with_matrix(ctx, a, [&](auto value, auto offset) {
        return run_diagonal<decltype(value), decltype(offset)>(ctx, a, diagonal);
    });
}

extern "C" spmv_status matrix_row_sums_cuda(spmv_context *ctx, const spmv_csr *a, void *sums)
{
    return with_matrix(
        ctx, a, [&](auto value, auto offset) { return run_row_sums<decltype(value), decltype(offset)>(ctx, a, sums); });
}

extern "C" spmv_status matrix_components_cuda(spmv_context *ctx, const spmv_csr *a, int32_t *first)
{
    return on_device(ctx, [&] {
        return a->row_ptr_bits == 32 ? run_components<int32_t>(ctx, a, first) : run_components<int64_t>(ctx, a, first);
    });
}

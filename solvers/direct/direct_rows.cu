/* Kernels for the matrix and the vectors of a direct solver on a GPU (direct_rows.h).
 *
 * Idea:   a warp has a row, so a row of many entries is shared; sums of a row are in an order that its length gives.
 * Bytes:  look: each entry is read, and its mirror image is searched for in the row of its column. solved: the entries
 *         once, and x where they point.
 * Loses when: never the bottleneck, since factors are made or used each time.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "device/launch.cuh"
#include "formats/device_loops.cuh"

extern "C" {
#include "solvers/direct/direct_rows.h"
}

namespace
{

typedef unsigned long long cell; /* of atomic operations */

/* The pattern and the values; Parts: doubles per number. */
struct matrix_rows {
    const int32_t *row_ptr, *col;
    const double *val;
    int64_t n;
};

matrix_rows of_rows(const direct_rows *rows)
{
    return {rows->row_ptr, rows->col, rows->val, rows->n};
}

/* body(i, lane) for 0 <= i < n, by the warps of the grid. */
template <typename Body> __device__ void for_each_row(int64_t n, const Body &body)
{
    const int64_t warp = ((int64_t)blockIdx.x * block_threads + threadIdx.x) / warp_lanes;
    const int64_t warps = (int64_t)gridDim.x * block_warps;
    for (int64_t i = warp; i < n; i += warps)
        body(i, (int)threadIdx.x % warp_lanes);
}

/* Lane 0 gets the sum of the lanes. */
__device__ double sum_of_lanes(double x)
{
    for (int distance = warp_lanes / 2; distance > 0; distance /= 2)
        x += shuffle_down(x, distance);
    return x;
}

__global__ void __launch_bounds__(block_threads) narrow(const int64_t *from, int32_t *to, int64_t n)
{
    for_each(n, [=](int64_t i) { to[i] = (int32_t)from[i]; });
}

template <typename From, typename To>
__global__ void __launch_bounds__(block_threads) convert(const From *from, To *to, int64_t n)
{
    for_each(n, [=](int64_t i) { to[i] = (To)from[i]; });
}

__global__ void __launch_bounds__(block_threads)
    count_columns(const int32_t *row_ptr, const int32_t *col, int32_t *counts, int64_t n)
{
    for_each(n + 1, [=](int64_t i) {
        int32_t count = 0;
        for (int32_t k = i < n ? row_ptr[i] : 0; i < n && k < row_ptr[i + 1]; k++)
            count += k == row_ptr[i] || col[k] != col[k - 1];
        counts[i] = count;
    });
}

__global__ void __launch_bounds__(block_threads)
    find_first(const int32_t *row_ptr, const int32_t *col, const int32_t *sums, int32_t *first, int32_t *to, int64_t n)
{
    for_each(n + 1, [=](int64_t i) {
        int32_t e = sums[i];
        if (i == n) {
            first[e] = row_ptr[n];
            return;
        }
        for (int32_t k = row_ptr[i]; k < row_ptr[i + 1]; k++)
            if (k == row_ptr[i] || col[k] != col[k - 1]) {
                first[e] = k;
                to[e++] = col[k];
            }
    });
}

template <typename Real>
__global__ void __launch_bounds__(block_threads)
    take_values(const Real *values, const int32_t *order, const int32_t *first, double *to, int64_t entries, int parts)
{
    for_each(entries * parts, [=](int64_t number) {
        const int64_t e = number / parts, part = number % parts;
        const int64_t begin = first != nullptr ? first[e] : e, end = first != nullptr ? first[e + 1] : e + 1;
        double sum = 0;
        for (int64_t k = begin; k < end; k++) {
            const int64_t source = order != nullptr ? order[k] : k;
            sum += values == nullptr ? (double)(part == 0) : (double)values[source * parts + part];
        }
        to[number] = sum;
    });
}

template <int Parts> __global__ void __launch_bounds__(block_threads) look(const matrix_rows a, direct_marks *marks)
{
    int diagonal = 0; /* below 2^31, as rows are */
    bool symmetric = true, hermitian = true;
    for_each_row(a.n, [&](int64_t i, int lane) {
        for (int64_t k = a.row_ptr[i] + lane; k < a.row_ptr[i + 1]; k += warp_lanes) {
            const int64_t j = a.col[k], end = a.row_ptr[j + 1];
            const double *const value = a.val + k * Parts;
            for (int p = 0; p < Parts; p++)
                if (!isfinite(value[p])) {
                    atomicMax((cell *)&marks->not_finite, ~(cell)(k * Parts + p));
                    atomicMax((cell *)&marks->place, ~((cell)i << 32 | (cell)j));
                }
            const int64_t mirror = symmetric || hermitian ? first_column_from(a.col, a.row_ptr[j], end, i) : end;
            if (mirror == end || a.col[mirror] != i)
                symmetric = hermitian = false;
            else
                direct_compare(value, a.val + mirror * Parts, Parts, &symmetric, &hermitian);
            diagonal += j == i && value[0] > 0;
        }
    });
    atomic_add_of_warp(diagonal, &marks->diagonal);
    const unsigned unlike = (symmetric ? 0 : DIRECT_NOT_SYMMETRIC) | (hermitian ? 0 : DIRECT_NOT_HERMITIAN);
    if (unlike != 0)
        atomicOr(&marks->unlike, unlike);
}

/* The sum of a row, in lane 0; those of all lanes before that with each entry. */
template <int Parts> __global__ void __launch_bounds__(block_threads) sum_rows(const matrix_rows a, double *x)
{
    for_each_row(a.n, [&](int64_t i, int lane) {
        double sum[Parts] = {};
        for (int64_t k = a.row_ptr[i] + lane; k < a.row_ptr[i + 1]; k += warp_lanes)
            for (int p = 0; p < Parts; p++)
                sum[p] += a.val[k * Parts + p];
        for (int p = 0; p < Parts; p++) {
            sum[p] = sum_of_lanes(sum[p]);
            if (lane == 0)
                x[i * Parts + p] = sum[p];
        }
    });
}

__device__ double size_of(const double *number, int parts)
{
    return parts == 2 ? real_hypot(number[0], number[1]) : fabs(number[0]);
}

template <int Parts>
__global__ void __launch_bounds__(block_threads)
    find_wrong(const matrix_rows a, const double *x, double most, direct_marks *marks)
{
    bool wrong = false;
    for_each_row(a.n, [&](int64_t i, int lane) {
        double rest[Parts] = {}, size = 0; /* of a_ij (1 - x_j) */
        for (int64_t k = a.row_ptr[i] + lane; k < a.row_ptr[i + 1]; k += warp_lanes) {
            const double *const value = a.val + k * Parts, *const at = x + (int64_t)a.col[k] * Parts;
            const double re = 1 - at[0], of_x = size_of(at, Parts);
            if constexpr (Parts == 2) {
                rest[0] += value[0] * re + value[1] * at[1];
                rest[1] += value[1] * re - value[0] * at[1];
            } else {
                rest[0] += value[0] * re;
            }
            size += size_of(value, Parts) * (of_x > 1 ? of_x : 1);
        }
        for (int p = 0; p < Parts; p++)
            rest[p] = sum_of_lanes(rest[p]);
        size = sum_of_lanes(size);
        wrong = wrong || (lane == 0 && !(size > 0 && size_of(rest, Parts) <= most * size));
    });
    if (wrong)
        atomicOr(&marks->wrong, 1u);
}

template <typename Real>
__global__ void __launch_bounds__(block_threads)
    find_not_finite(const Real *numbers, int64_t columns, int64_t count, int64_t apart, direct_marks *marks)
{
    for_each(columns * count, [=](int64_t e) {
        if (!isfinite(numbers[e / count * apart + e % count]))
            atomicMax((cell *)&marks->not_finite, ~(cell)e);
    });
}

/* Blocks for n rows, of which a warp takes one at a time. */
int blocks_for_rows(const spmv_context *ctx, int64_t n)
{
    enum { RESIDENT = 8 }; /* of a multiprocessor */
    const int64_t most = (int64_t)RESIDENT * ((const cuda_state *)ctx->device)->multiprocessors;
    return (int)max_i64(1, min_i64(most, ceil_divide(n, (int64_t)block_warps)));
}

/* Calls body with a number of this type: float or double. */
template <typename Body> spmv_status with_part(spmv_type part, const Body &body)
{
    return part == SPMV_F32 ? body(0.0f) : body(0.0);
}

/* The marks become 0. */
spmv_status clear(spmv_context *ctx, const direct_rows *rows)
{
    return cuda_check(ctx, cudaMemsetAsync(rows->marks, 0, sizeof *rows->marks, (cudaStream_t)ctx->stream),
                      "cudaMemsetAsync");
}

} // namespace

extern "C" spmv_status direct_enter_cuda(spmv_context *ctx)
{
    return cuda_enter(ctx);
}

extern "C" spmv_status direct_leave_cuda(spmv_context *ctx, spmv_status st)
{
    return cuda_leave(ctx, st);
}

extern "C" spmv_status direct_narrow_cuda(spmv_context *ctx, const int64_t *from, int32_t *to, int64_t n)
{
    return on_device(ctx, [=] {
        return launch(ctx, "direct narrow", grid_for(n, block_threads), block_threads, narrow, from, to, n);
    });
}

extern "C" spmv_status direct_count_cuda(spmv_context *ctx, const int32_t *row_ptr, const int32_t *col, int32_t *counts,
                                         int64_t n)
{
    return on_device(ctx, [=] {
        return launch(ctx, "direct count", grid_for(n + 1, block_threads), block_threads, count_columns, row_ptr, col,
                      counts, n);
    });
}

extern "C" spmv_status direct_first_cuda(spmv_context *ctx, const int32_t *row_ptr, const int32_t *col,
                                         const int32_t *sums, int32_t *first, int32_t *to, int64_t n)
{
    return on_device(ctx, [=] {
        return launch(ctx, "direct first", grid_for(n + 1, block_threads), block_threads, find_first, row_ptr, col,
                      sums, first, to, n);
    });
}

extern "C" spmv_status direct_values_cuda(spmv_context *ctx, const direct_rows *rows, spmv_type part,
                                          const void *values)
{
    const int64_t entries = rows->device.nnz;
    const int blocks = grid_for(max_i64(1, entries * rows->parts), block_threads);
    return on_device(ctx, [=] {
        return with_part(part, [=](auto of) {
            using Real = decltype(of);
            return launch(ctx, "direct values", blocks, block_threads, take_values<Real>, (const Real *)values,
                          rows->order, rows->first, rows->val, entries, rows->parts);
        });
    });
}

extern "C" spmv_status direct_look_cuda(spmv_context *ctx, const direct_rows *rows)
{
    const int blocks = blocks_for_rows(ctx, rows->n);
    return on_device(ctx, [=] {
        const spmv_status st = clear(ctx, rows);
        return st != SPMV_OK ? st
                             : launch(ctx, "direct look", blocks, block_threads, rows->parts == 2 ? look<2> : look<1>,
                                      of_rows(rows), rows->marks);
    });
}

extern "C" spmv_status direct_sum_cuda(spmv_context *ctx, const direct_rows *rows)
{
    const int blocks = blocks_for_rows(ctx, rows->n);
    return on_device(ctx, [=] {
        return launch(ctx, "direct sum", blocks, block_threads, rows->parts == 2 ? sum_rows<2> : sum_rows<1>,
                      of_rows(rows), rows->x);
    });
}

extern "C" spmv_status direct_solved_cuda(spmv_context *ctx, const direct_rows *rows, double most)
{
    const int blocks = blocks_for_rows(ctx, rows->n);
    return on_device(ctx, [=] {
        const spmv_status st = clear(ctx, rows);
        return st != SPMV_OK ? st
                             : launch(ctx, "direct solved", blocks, block_threads,
                                      rows->parts == 2 ? find_wrong<2> : find_wrong<1>, of_rows(rows), rows->x, most,
                                      rows->marks);
    });
}

extern "C" spmv_status direct_finite_cuda(spmv_context *ctx, const direct_rows *rows, spmv_type part,
                                          const void *numbers, int64_t columns, int64_t count, int64_t apart)
{
    const int blocks = grid_for(columns * count, block_threads);
    return on_device(ctx, [=] {
        const spmv_status st = clear(ctx, rows);
        return st != SPMV_OK ? st : with_part(part, [=](auto of) {
            using Real = decltype(of);
            return launch(ctx, "direct finite", blocks, block_threads, find_not_finite<Real>, (const Real *)numbers,
                          columns, count, apart, rows->marks);
        });
    });
}

extern "C" spmv_status direct_convert_cuda(spmv_context *ctx, spmv_type from_part, const void *from, spmv_type to_part,
                                           void *to, int64_t count)
{
    const int blocks = grid_for(count, block_threads);
    return on_device(ctx, [=] {
        return with_part(from_part, [=](auto source) {
            return with_part(to_part, [=](auto target) {
                using From = decltype(source);
                using To = decltype(target);
                return launch(ctx, "direct convert", blocks, block_threads, convert<From, To>, (const From *)from,
                              (To *)to, count);
            });
        });
    });
}

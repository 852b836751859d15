/* b - A x in twice the precision, on CUDA (wide_residual.h).
 *
 * Idea:  a subwarp of a fixed number of lanes takes a row; its sums are combined in a fixed order.
 * Bytes: the matrix, b, x and r once.
 * Loses when: rows are very long. It runs once for each correction of x.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "device/block.cuh"
#include "device/complex.cuh"
#include "device/launch.cuh"

extern "C" {
#include "formats/matrix_internal.h"
#include "solvers/accuracy/wide_residual.h"
}
#include "solvers/accuracy/wide_row.h"

namespace
{

enum { LANES = 8 };

/* The sum over the lanes of a subwarp, in all of them. */
__device__ double over_lanes(wide_sum sum)
{
    for (int distance = LANES / 2; distance > 0; distance /= 2) {
        const double high = __shfl_xor_sync(0xffffffffu, sum.high, distance);
        const double low = __shfl_xor_sync(0xffffffffu, sum.low, distance);
        wide_add(&sum, high);
        sum.low += low;
    }
    return wide_value(sum);
}

/* Adds a lane's part of row i, from entry `begin` on. */
template <typename T, typename V>
__device__ void add_part(const int32_t *col, const V *val, const T *x, int64_t begin, int64_t end, wide_sum *re,
                         wide_sum *im)
{
    for (int64_t k = begin; k < end; k += LANES) {
        const T of = x[col[k]];
        const V value = val != nullptr ? val[k] : real_value<V>(1);
        if constexpr (std::is_arithmetic<T>::value) {
            wide_add_product(re, -(double)value, (double)of);
        } else {
            wide_add_product(re, -(double)value.re, (double)of.re);
            wide_add_product(re, (double)value.im, (double)of.im);
            wide_add_product(im, -(double)value.re, (double)of.im);
            wide_add_product(im, -(double)value.im, (double)of.re);
        }
    }
}

template <typename T, typename V, typename Offset>
__global__ void __launch_bounds__(block_threads)
    find_residual(const Offset *row_ptr, const int32_t *col, const V *val, int64_t rows, const T *b, const T *x, T *r)
{
    constexpr int subwarps = block_threads / LANES;
    const int lane = (int)threadIdx.x % LANES;
    for (int64_t first = (int64_t)blockIdx.x * subwarps; first < rows; first += (int64_t)gridDim.x * subwarps) {
        const int64_t i = first + threadIdx.x / LANES;
        const bool has_b = i < rows && lane == 0;
        wide_sum re = {0, 0}, im = {0, 0};
        if constexpr (std::is_arithmetic<T>::value) {
            re.high = has_b ? (double)b[i] : 0;
        } else {
            re.high = has_b ? (double)b[i].re : 0;
            im.high = has_b ? (double)b[i].im : 0;
        }
        if (i < rows)
            add_part(col, val, x, (int64_t)row_ptr[i] + lane, (int64_t)row_ptr[i + 1], &re, &im);
        const double sum = over_lanes(re);
        if constexpr (std::is_arithmetic<T>::value) {
            if (has_b)
                r[i] = (T)sum;
        } else {
            const double sum_im = over_lanes(im);
            if (has_b) {
                r[i].re = (decltype(r[i].re))sum;
                r[i].im = (decltype(r[i].im))sum_im;
            }
        }
    }
}

} // namespace

extern "C" spmv_status wide_residual_cuda(spmv_context *ctx, const spmv_csr *a, spmv_type type, const void *b,
                                          const void *x, void *r)
{
    const auto with_value = [&](auto vector, auto value) {
        using T = decltype(vector);
        using V = decltype(value);
        const auto run = [&](auto offset) {
            using Offset = decltype(offset);
            return launch(ctx, "residual in twice the precision", grid_for(a->rows, block_threads / LANES),
                          block_threads, find_residual<T, V, Offset>, (const Offset *)a->row_ptr, a->col,
                          (const V *)a->val, a->rows, (const T *)b, (const T *)x, (T *)r);
        };
        return a->row_ptr_bits == 32 ? run((int32_t)0) : run((int64_t)0);
    };
    return on_device(ctx, [&] {
        return with_floating(type, [&](auto vector) {
            if constexpr (std::is_same<decltype(vector), double>::value)
                if (a->val != nullptr && a->type == SPMV_F32)
                    return with_value(vector, 0.0f);
            return with_value(vector, vector);
        });
    });
}

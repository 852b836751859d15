/* The vectors and the sums of the check of symmetry on CUDA (krylov_symmetry.c).
 *
 * Idea:     a block adds the terms of one part, in a fixed order; the host adds the parts.
 * Bytes:    fill writes v, add_up reads A v; the elements of the other vectors are computed again.
 * Loses when: never the bottleneck, since the product reads more.
 * Bits:     the parts follow from the number of rows, or from the chunks of the ranks.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "device/block.cuh"
#include "device/launch.cuh"

extern "C" {
#include "solvers/krylov/krylov_symmetry.h"
}

namespace
{

template <typename T>
__global__ void __launch_bounds__(block_threads) fill_kernel(T *to, int64_t count, int64_t first, int which)
{
    for (int64_t i = (int64_t)blockIdx.x * block_threads + threadIdx.x; i < count;
         i += (int64_t)gridDim.x * block_threads)
        to[i] = (T)symmetry_element(symmetry_bits(first + i), which);
}

/* The sum over the block, in thread 0. warp_sums: block_warps cells of shared memory. */
__device__ double sum_of_block(double value, double *warp_sums)
{
    for (int distance = warp_lanes / 2; distance > 0; distance /= 2)
        value += shuffle_down(value, distance);
    if (threadIdx.x % warp_lanes == 0)
        warp_sums[threadIdx.x / warp_lanes] = value;
    __syncthreads();
    double sum = 0;
    for (int w = 0; w < block_warps && threadIdx.x == 0; w++)
        sum += warp_sums[w];
    __syncthreads(); /* warp_sums is free again */
    return sum;
}

/* Adds u v for number i of two vectors, and the same as a part of the sum without conjugation. */
__device__ void symmetry_add_product(double u, double v, bool imaginary, double *dot, double *bilinear)
{
    const double product = u * v;
    *dot += product;
    *bilinear += imaginary ? -product : product;
}

template <typename T>
__global__ void __launch_bounds__(block_threads)
    add_up_kernel(const T *product, const int64_t *begin, int64_t parts, int64_t first, int which, bool complex,
                  symmetry_sums *of)
{
    __shared__ double warp_sums[block_warps];
    const int one = (which + 1) % SYMMETRY_VECTORS, other = (which + 2) % SYMMETRY_VECTORS;
    for (int64_t part = blockIdx.x; part < parts; part += gridDim.x) {
        double dot = 0, other_dot = 0, bilinear = 0, other_bilinear = 0, square[SYMMETRY_SQUARES] = {0, 0, 0};
        for (int64_t i = begin[part] + threadIdx.x; i < begin[part + 1]; i += block_threads) {
            const double value = (double)product[i];
            const uint64_t bits = symmetry_bits(first + i);
            const bool imaginary = complex && i % 2 != 0;
            symmetry_add_product(symmetry_element(bits, one), value, imaginary, &dot, &bilinear);
            symmetry_add_product(symmetry_element(bits, other), value, imaginary, &other_dot, &other_bilinear);
            symmetry_add_square(value, square);
        }
        dot = sum_of_block(dot, warp_sums);
        other_dot = sum_of_block(other_dot, warp_sums);
        bilinear = sum_of_block(bilinear, warp_sums);
        other_bilinear = sum_of_block(other_bilinear, warp_sums);
        for (int s = 0; s < SYMMETRY_SQUARES; s++)
            square[s] = sum_of_block(square[s], warp_sums);
        if (threadIdx.x == 0) {
            of[part].dot[which] = 0;
            of[part].dot[one] = dot;
            of[part].dot[other] = other_dot;
            of[part].bilinear[which] = 0;
            of[part].bilinear[one] = bilinear;
            of[part].bilinear[other] = other_bilinear;
            for (int s = 0; s < SYMMETRY_SQUARES; s++)
                of[part].square[s] = square[s];
        }
    }
}

template <typename T> spmv_status fill(spmv_context *ctx, const struct symmetry_sample *s, int which)
{
    return launch(ctx, "symmetry vector", grid_for(s->count, block_threads), block_threads, fill_kernel<T>, (T *)s->in,
                  s->count, s->first, which);
}

template <typename T>
spmv_status add_up(spmv_context *ctx, const struct symmetry_sample *s, int which, struct symmetry_sums *of)
{
    return launch(ctx, "symmetry sums", grid_for(s->parts, 1), block_threads, add_up_kernel<T>, (const T *)s->out,
                  s->begin, s->parts, s->first, which, s->complex, of);
}

} // namespace

extern "C" spmv_status krylov_symmetry_fill_cuda(spmv_context *ctx, const struct symmetry_sample *s, int which)
{
    if (s->count == 0)
        return SPMV_OK;
    return on_device(ctx, [=] { return (s->type == SPMV_F32 ? fill<float> : fill<double>)(ctx, s, which); });
}

extern "C" spmv_status krylov_symmetry_add_up_cuda(spmv_context *ctx, const struct symmetry_sample *s, int which,
                                                   struct symmetry_sums *of)
{
    if (s->parts == 0)
        return SPMV_OK;
    return on_device(ctx, [=] { return (s->type == SPMV_F32 ? add_up<float> : add_up<double>)(ctx, s, which, of); });
}

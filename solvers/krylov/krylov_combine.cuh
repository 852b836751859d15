/* Linear combinations of vectors with dot products on CUDA (krylov_combine in krylov_passes.h), for the
 * solvers that krylov_passes.cu and krylov_least_squares.cu name.
 *
 * Idea:       a block has a contiguous range of elements, and each thread every 256th of them.
 * Sums:       each block stores its part. The last block to arrive adds the parts in a fixed order
 *             and computes the scalars of the next pass, so the host need not wait.
 * Launches:   one a pass.
 * Bits:       the number of blocks, and so the order of each sum, depends on n alone.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef KRYLOV_COMBINE_CUH
#define KRYLOV_COMBINE_CUH

#include "device/block.cuh"
#include "device/launch.cuh"
#include "solvers/krylov/krylov_basis.cuh"

extern "C" {
#include "solvers/krylov/krylov_passes.h"
}

namespace
{

using namespace krylov_basis;

/* FEW_BLOCKS: two for each multiprocessor of an H100; MANY_BLOCKS: for vectors of more than FEW_FOR
 * elements, where the time for the parts does not show.  */
enum { BLOCK = 256, WARPS = BLOCK / warp_lanes, FEW_BLOCKS = 264, FEW_FOR = 1 << 20, MANY_BLOCKS = 4 * FEW_BLOCKS };
enum { HEAD = 256 /* bytes before the parts: the counter */ };

int blocks_for(int64_t n)
{
    const int64_t most = n > FEW_FOR ? (int64_t)MANY_BLOCKS : (int64_t)FEW_BLOCKS, wanted = (n - 1) / BLOCK + 1;
    return (int)(wanted < most ? wanted : most);
}

/* The elements of a block: a contiguous range, in whole warps of elements. */
struct own_range {
    int64_t begin, end;
};
__device__ own_range range_of_block(int64_t n)
{
    const int64_t lines = (n + warp_lanes - 1) / warp_lanes;
    const int64_t end = lines * (blockIdx.x + 1) / gridDim.x * warp_lanes;
    return {lines * blockIdx.x / gridDim.x * warp_lanes, end < n ? end : n};
}

/* Where the parts are: `sums` for each block. */
template <typename T> __device__ sum_type<T> *parts_in(void *memory)
{
    return (sum_type<T> *)((char *)memory + HEAD);
}

/* Adds the parts of all blocks, in a fixed order: warp w those of blocks w, w + WARPS, ...; then the
 * warps in turn. totals: shared memory. */
template <typename T> __device__ void add_parts(const sum_type<T> *parts, int sums, sum_type<T> *totals)
{
    using S = sum_type<T>;
    __shared__ S of_warps[WARPS][warp_lanes];
    const int lane = (int)threadIdx.x % warp_lanes, warp = (int)threadIdx.x / warp_lanes;
    for (int first = 0; first < sums; first += warp_lanes) {
        const int d = first + lane;
        S sum = S();
        if (d < sums) {
#pragma unroll 8
            for (int b = warp; b < (int)gridDim.x; b += WARPS)
                sum += parts[(int64_t)b * sums + d];
        }
        of_warps[warp][lane] = sum;
        __syncthreads();
        if (warp == 0 && d < sums) {
            S total = of_warps[0][lane];
            for (int w = 1; w < WARPS; w++)
                total += of_warps[w][lane];
            totals[d] = total;
        }
        __syncthreads();
    }
}

template <typename T> struct combination {
    const T *in[KRYLOV_MOST_INPUTS];
    T *out[KRYLOV_MOST_OUTPUTS];
    signed char c[KRYLOV_MOST_OUTPUTS][KRYLOV_MOST_INPUTS];
    signed char left[KRYLOV_MOST_SUMS], right[KRYLOV_MOST_SUMS];
    bool bilinear[KRYLOV_MOST_SUMS];
    int sums;
    krylov_finish finish;
    bool always;
    int64_t n;
    krylov_state *state;
    void *parts;
};

/* The operand of that number, of inputs and new outputs in registers. */
template <typename T, int INPUTS, int FRESH>
__device__ T operand(int number, const T (&in)[INPUTS], const T (&fresh)[FRESH])
{
    T value = T();
#pragma unroll
    for (int i = 0; i < INPUTS; i++)
        value = number == i ? in[i] : value;
#pragma unroll
    for (int o = 0; o < FRESH; o++)
        value = number == KRYLOV_MOST_INPUTS + o ? fresh[o] : value;
    return value;
}

/* Finish::run(finish, state, sums): in the last block. Solvers have their own, so that the scalars of one cost the
 * kernels of another no registers. */
template <typename T, int INPUTS, int OUTPUTS, typename Finish>
__global__ void __launch_bounds__(BLOCK) combine(combination<T> a)
{
    using S = sum_type<T>;
    __shared__ S of_warps[WARPS][KRYLOV_MOST_SUMS], totals[KRYLOV_MOST_SUMS];
    let_next_begin();
    await_kernel_before();
    if (a.state->ending != 0 && !a.always)
        return;
    constexpr int FRESH = OUTPUTS > 0 ? OUTPUTS : 1;
    T by[FRESH][INPUTS];
#pragma unroll
    for (int o = 0; o < OUTPUTS; o++)
#pragma unroll
        for (int i = 0; i < INPUTS; i++)
            by[o][i] = value_of<T>(a.state->c[a.c[o][i]]);
    S sum[KRYLOV_MOST_SUMS] = {};
    const own_range own = range_of_block(a.n);
#pragma unroll(INPUTS <= 2 ? 4 : 2)
    for (int64_t e = own.begin + threadIdx.x; e < own.end; e += BLOCK) {
        T in[INPUTS], fresh[FRESH] = {};
#pragma unroll
        for (int i = 0; i < INPUTS; i++)
            in[i] = a.in[i][e];
#pragma unroll
        for (int o = 0; o < OUTPUTS; o++) {
#pragma unroll
            for (int i = 0; i < INPUTS; i++)
                if (a.c[o][i] != C_ZERO)
                    fresh[o] += by[o][i] * in[i];
            a.out[o][e] = fresh[o];
        }
#pragma unroll
        for (int d = 0; d < KRYLOV_MOST_SUMS; d++)
            if (d < a.sums) {
                const T left = operand(a.left[d], in, fresh);
                sum[d] += widened((a.bilinear[d] ? left : conjugated(left)) * operand(a.right[d], in, fresh));
            }
    }
    if (a.finish == FINISH_NOTHING)
        return;
    const int thread = (int)threadIdx.x;
    for (int d = 0; d < a.sums; d++) {
        const S of_warp = sum_of_warp(sum[d]);
        if (thread % warp_lanes == 0)
            of_warps[thread / warp_lanes][d] = of_warp;
    }
    __syncthreads();
    S *const parts = parts_in<T>(a.parts);
    if (thread < a.sums) {
        S part = of_warps[0][thread];
        for (int w = 1; w < WARPS; w++)
            part += of_warps[w][thread];
        parts[(int64_t)blockIdx.x * a.sums + thread] = part;
    }
    if (!block_is_last((unsigned *)a.parts))
        return;
    add_parts<T>(parts, a.sums, totals);
    if (thread == 0) {
        krylov_scalar sums[KRYLOV_MOST_SUMS];
        for (int d = 0; d < KRYLOV_MOST_SUMS; d++)
            sums[d] = d < a.sums ? scalar_from(totals[d]) : scalar_of(0);
        Finish::run(a.finish, a.state, sums);
    }
}

template <typename T, int INPUTS, int OUTPUTS, typename Finish>
spmv_status launch_combination(const krylov_vectors *v, const krylov_combination *from)
{
    combination<T> a = {};
    for (int i = 0; i < INPUTS; i++)
        a.in[i] = (const T *)from->in[i];
    for (int o = 0; o < from->outputs; o++) {
        a.out[o] = (T *)from->out[o];
        for (int i = 0; i < from->inputs; i++)
            a.c[o][i] = from->c[o][i];
    }
    for (int d = 0; d < from->sums; d++) {
        a.left[d] = from->left[d];
        a.right[d] = from->right[d];
        a.bilinear[d] = from->bilinear[d];
    }
    a.sums = from->sums;
    a.finish = from->finish;
    a.always = from->always;
    a.n = v->n;
    a.state = v->state;
    a.parts = v->parts;
    return launch_early(v->ctx, "krylov combination", blocks_for(v->n), BLOCK, combine<T, INPUTS, OUTPUTS, Finish>, a);
}

} // namespace

#endif

/* The sums of passes of several ranks on CUDA (krylov_passes.h): one part for each chunk of rows, which
 * pass through the host to the other ranks.
 *
 * Idea:       the vectors of a pass are updated by the kernels of one rank, without sums. Then a block adds
 *             the part of a chunk, for one of the sums.
 * Launches:   a pass with sums has two or three, and waits twice.
 * Bits:       a part depends on the elements of its chunk alone.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "device/block.cuh"
#include "device/launch.cuh"
#include "solvers/krylov/krylov_basis.cuh"

extern "C" {
#include "solvers/krylov/krylov_passes.h"
}

namespace
{

using namespace krylov_basis;

enum { BLOCK = 256, WARPS = BLOCK / warp_lanes };

/* The vectors of sum d: of a projection, basis vector d and w, and at last w twice. */
template <typename T> struct dots {
    const T *left[KRYLOV_MOST_SUMS], *right[KRYLOV_MOST_SUMS];
    bool bilinear[KRYLOV_MOST_SUMS];
    const T *basis, *w; /* NULL: no projection */
    int64_t stride;
    int sums;
    const int64_t *chunk;
    krylov_scalar *parts; /* sums numbers for each chunk */
};

template <typename T> __global__ void __launch_bounds__(BLOCK) chunk_sums(dots<T> a)
{
    using S = sum_type<T>;
    __shared__ S of_warps[WARPS];
    const int chunk = (int)blockIdx.x / a.sums, d = (int)blockIdx.x % a.sums, thread = (int)threadIdx.x;
    /* constant indices: a projection has more sums than operands, and loads are moved before tests */
    static_assert(KRYLOV_MOST_SUMS == 2);
    const T *left = d == 0 ? a.left[0] : a.left[1], *right = d == 0 ? a.right[0] : a.right[1];
    if (a.basis != nullptr) {
        left = d < a.sums - 1 ? a.basis + d * a.stride : a.w;
        right = a.w;
    }
    const bool bilinear = a.basis == nullptr && (d == 0 ? a.bilinear[0] : a.bilinear[1]);
    S sum = S();
    for (int64_t e = a.chunk[chunk] + thread; e < a.chunk[chunk + 1]; e += BLOCK)
        sum += widened((bilinear ? left[e] : conjugated(left[e])) * right[e]);
    const S of_warp = sum_of_warp(sum);
    if (thread % warp_lanes == 0)
        of_warps[thread / warp_lanes] = of_warp;
    __syncthreads();
    if (thread != 0)
        return;
    S part = of_warps[0];
    for (int w = 1; w < WARPS; w++)
        part += of_warps[w];
    a.parts[(int64_t)chunk * a.sums + d] = scalar_from(part);
}

/* w -= sum over i <= j of pass[i] basis_i */
template <typename T>
__global__ void __launch_bounds__(BLOCK)
    subtract(const krylov_state *s, const T *basis, int64_t stride, T *w, int64_t n)
{
    __shared__ T pass[KRYLOV_MOST_BASIS];
    if (s->ending != 0)
        return;
    const int vectors = s->j + 1;
    for (int i = (int)threadIdx.x; i < vectors; i += BLOCK)
        pass[i] = value_of<T>(s->pass[i]);
    __syncthreads();
    for (int64_t e = (int64_t)blockIdx.x * BLOCK + threadIdx.x; e < n; e += (int64_t)gridDim.x * BLOCK) {
        T rest = w[e];
#pragma unroll 16
        for (int i = 0; i < vectors; i++)
            rest += negative(pass[i]) * basis[i * stride + e];
        w[e] = rest;
    }
}

__global__ void finish(krylov_state *s, krylov_finish which, bool always, const krylov_scalar *sums)
{
    if (s->ending != 0 && !always)
        return;
    if (which == GMRES_FIRST)
        gmres_first(s, sums);
    else if (which == GMRES_SECOND)
        gmres_second(s, sums);
    else
        krylov_finish_scalars(which, s, sums);
}

template <typename T> spmv_status launch_sums(const krylov_vectors *v, dots<T> a)
{
    a.chunk = v->ranks->context_chunk;
    a.parts = (krylov_scalar *)v->parts;
    if (v->ranks->chunks == 0)
        return SPMV_OK;
    return launch(v->ctx, "krylov sums of chunks", (int)(v->ranks->chunks * a.sums), BLOCK, chunk_sums<T>, a);
}

} // namespace

extern "C" spmv_status krylov_rank_dots_cuda(const krylov_vectors *v, const krylov_combination *from)
{
    return on_device(v->ctx, [&] {
        return with_floating(v->type, [&](auto of) {
            using T = decltype(of);
            const auto operand = [&](int number) {
                return (const T *)(number < KRYLOV_MOST_INPUTS ? from->in[number]
                                                               : from->out[number - KRYLOV_MOST_INPUTS]);
            };
            dots<T> a = {};
            a.sums = from->sums;
            for (int d = 0; d < from->sums; d++) {
                a.left[d] = operand(from->left[d]);
                a.right[d] = operand(from->right[d]);
                a.bilinear[d] = from->bilinear[d];
            }
            return launch_sums<T>(v, a);
        });
    });
}

extern "C" spmv_status krylov_rank_project_cuda(const krylov_vectors *v, const krylov_projection *from, int sums)
{
    return on_device(v->ctx, [&] {
        return with_floating(v->type, [&](auto of) {
            using T = decltype(of);
            spmv_status st = SPMV_OK;
            if (from->subtracts && v->n > 0)
                st = launch(v->ctx, "krylov subtraction", grid_for(v->n, BLOCK), BLOCK, subtract<T>,
                            (const krylov_state *)v->state, (const T *)from->basis, from->stride, (T *)from->w, v->n);
            dots<T> a = {};
            a.sums = sums;
            a.basis = (const T *)from->basis;
            a.w = (const T *)from->w;
            a.stride = from->stride;
            return st != SPMV_OK ? st : launch_sums<T>(v, a);
        });
    });
}

extern "C" spmv_status krylov_rank_finish_cuda(const krylov_vectors *v, krylov_finish which, bool always)
{
    return on_device(v->ctx, [&] {
        return launch(v->ctx, "krylov scalars", 1, 1, finish, v->state, which, always, (const krylov_scalar *)v->parts);
    });
}

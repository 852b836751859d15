/* The passes over vectors of minres, gmres, bicgstab and cocg on CUDA (krylov_passes.h).
 *
 * Idea:       Gram-Schmidt reads a basis of many vectors; all else is small. A block takes a tile of
 *             rows at a time. A pass that subtracts and projects reads the tile's part of the basis
 *             once and keeps it in shared memory.
 * Sums:       each block stores its part. The last block to arrive adds the parts in a fixed order
 *             and computes the scalars of the next pass, so the host need not wait.
 * Launches:   one a pass.
 * Bits:       the number of blocks, and so the order of each sum, depends on n alone.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "solvers/krylov/krylov_combine.cuh"

namespace
{

/* The scalars at the end of a combination of minres, gmres, bicgstab and cocg. */
struct finish_krylov {
    __device__ static void run(krylov_finish which, krylov_state *state, const krylov_scalar *sums)
    {
        krylov_finish_scalars(which, state, sums);
    }
};

/* ------------------------------------------------------------- Gram-Schmidt */

/* Basis vectors whose elements a thread loads at once. */
template <typename T> constexpr int batch_of = std::is_floating_point_v<T> ? 32 : sizeof(T) > 8 ? 8 : 16;

template <typename T> struct projection {
    const T *basis;
    int64_t stride;
    T *w;
    bool subtracts;
    krylov_finish finish;
    int64_t n;
    krylov_state *state;
    void *parts;
    int room, kept; /* kept: vectors of a tile in shared memory */
};

/* Shared memory of a projection: a tile of w; sums of the block; totals; what finish_second needs;
 * factors; the tile of the basis. room: the most sums. */
template <typename T> struct room_of {
    T *tile;
    sum_type<T> *sums, *totals;
    krylov_scalar *h, *sines;
    double *cosines;
    T *pass, *kept;

    static int bytes(int room, int kept)
    {
        return (kept + 1) * BLOCK * (int)sizeof(T) +
               room * (int)(2 * sizeof(sum_type<T>) + 2 * sizeof(krylov_scalar) + sizeof(double) + sizeof(T));
    }
    __device__ room_of(unsigned char *memory, int room, int vectors)
    {
        tile = (T *)memory;
        kept = tile + BLOCK;
        sums = (sum_type<T> *)(kept + vectors * BLOCK);
        totals = sums + room;
        h = (krylov_scalar *)(totals + room);
        sines = h + room;
        cosines = (double *)(sines + room);
        pass = (T *)(cosines + room);
    }
};

/* h = the coefficients of the first pass, which the second subtracts. */
template <typename T> __device__ void finish_first(krylov_state *s, const sum_type<T> *totals)
{
    const int j = s->j;
    for (int i = (int)threadIdx.x; i <= j; i += BLOCK)
        s->h[i] = s->pass[i] = scalar_from(totals[i]);
    if (threadIdx.x == 0)
        s->before = sqrt(scalar_from(totals[j + 1]).re);
}

/* The new column of the Hessenberg matrix, from the coefficients of both passes. The rotations are
 * read from shared memory, since each depends on the one before. */
template <typename T> __device__ void finish_second(krylov_state *s, const room_of<T> &shared)
{
    const sum_type<T> *const totals = shared.totals;
    const int j = s->j, thread = (int)threadIdx.x;
    double projected = 0;
    for (int i = thread; i <= j; i += BLOCK) {
        const krylov_scalar sum = scalar_from(totals[i]);
        s->pass[i] = sum;
        shared.h[i] = scalar_sum(s->h[i], sum);
        shared.sines[i] = s->sines[i];
        shared.cosines[i] = s->cosines[i];
    }
    if (thread < warp_lanes) {
        for (int i = thread; i <= j; i += warp_lanes) {
            const krylov_scalar sum = scalar_from(totals[i]);
            projected += sum.re * sum.re + sum.im * sum.im;
        }
        projected = sum_of_warp(projected);
    }
    __syncthreads();
    if (thread == 0)
        gmres_column(s, gmres_norm(scalar_from(totals[j + 1]).re, projected), shared.h, shared.cosines, shared.sines);
}

/* A tile of rows at a time: each thread has a row for the subtraction, then each warp some vectors
 * for the sums, two at a time. A subtraction keeps the tile's part of the basis for the sums. */
template <typename T> __global__ void __launch_bounds__(BLOCK) project(projection<T> a)
{
    using S = sum_type<T>;
    SPMV_DYNAMIC_SHARED(memory);
    let_next_begin();
    await_kernel_before();
    if (a.state->ending != 0)
        return;
    const int thread = (int)threadIdx.x, lane = thread % warp_lanes, warp = thread / warp_lanes;
    const room_of<T> shared(memory, a.room, a.kept);
    const int vectors = a.state->j + 1, sums = vectors + 1, near = vectors < a.kept ? vectors : a.kept;
    for (int i = thread; i < vectors && a.subtracts; i += BLOCK)
        shared.pass[i] = value_of<T>(a.state->pass[i]);
    for (int i = thread; i < sums; i += BLOCK)
        shared.sums[i] = S();
    __syncthreads();
    const own_range own = range_of_block(a.n);
    for (int64_t first = own.begin; first < own.end; first += BLOCK) {
        const int64_t left = own.end - first;
        const int count = left < BLOCK ? (int)left : (int)BLOCK;
        const T *const rows = a.basis + first;
        if (thread < count) {
            T w[CHAINS] = {a.w[first + thread]};
            if (a.subtracts) {
                subtract_vectors<batch_of<T>>(w, 0, near, shared.pass, rows + thread, a.stride,
                                              [&](int i, T v) { shared.kept[i * BLOCK + thread] = v; });
                subtract_vectors<batch_of<T>>(w, near, vectors, shared.pass, rows + thread, a.stride, [](int, T) {});
                w[0] = a.w[first + thread] = sum_chains(w);
            }
            shared.tile[thread] = w[0];
        }
        __syncthreads();
        for (int i = warp; i < sums; i += 2 * WARPS) {
            const int other = i + WARPS;
            const auto kept = [&](int k) { return k < vectors ? shared.kept + k * BLOCK : shared.tile; };
            const auto any = [&](int k) -> const T * {
                return k < vectors && k >= near ? rows + k * a.stride : kept(k);
            };
            S sum[2];
            if (near == vectors)
                multiply_two(shared.tile, count, kept(i), kept(other), sum);
            else
                multiply_two(shared.tile, count, any(i), any(other), sum);
            if (lane == 0) {
                shared.sums[i] += sum[0];
                if (other < sums)
                    shared.sums[other] += sum[1];
            }
        }
        __syncthreads();
    }
    S *const parts = parts_in<T>(a.parts);
    for (int i = thread; i < sums; i += BLOCK)
        parts[(int64_t)blockIdx.x * sums + i] = shared.sums[i];
    if (!block_is_last((unsigned *)a.parts))
        return;
    add_parts<T>(parts, sums, shared.totals);
    if (a.finish == GMRES_FIRST)
        finish_first<T>(a.state, shared.totals);
    else
        finish_second<T>(a.state, shared);
}

/* ------------------------------------------------------------- the rest */

template <typename T> struct storing {
    const krylov_state *s;
    int factor;
    const T *from;
    T *basis, *copy;
    int64_t stride, n;
    bool subtracts;
};

template <typename T> __global__ void __launch_bounds__(BLOCK) store(storing<T> a)
{
    __shared__ T pass[KRYLOV_MOST_BASIS];
    let_next_begin();
    await_kernel_before();
    if (a.s->ending != 0)
        return;
    const int j = a.s->j, vectors = a.subtracts ? j : 0;
    for (int i = (int)threadIdx.x; i < vectors; i += BLOCK)
        pass[i] = value_of<T>(a.s->pass[i]);
    __syncthreads();
    const own_range own = range_of_block(a.n);
    const T by = value_of<T>(a.s->c[a.factor]);
    for (int64_t e = own.begin + threadIdx.x; e < own.end; e += BLOCK) {
        T rest = a.from[e];
#pragma unroll 16
        for (int i = 0; i < vectors; i++)
            rest += negative(pass[i]) * a.basis[i * a.stride + e];
        const T value = by * rest;
        a.basis[j * a.stride + e] = value;
        if (a.copy != nullptr)
            a.copy[e] = value;
    }
}

template <typename T>
__global__ void __launch_bounds__(BLOCK)
    expand(const krylov_state *s, const T *basis, int64_t stride, const T *x, T *to, int64_t n)
{
    __shared__ T by[KRYLOV_MOST_BASIS];
    let_next_begin();
    await_kernel_before();
    const int vectors = s->j;
    for (int i = (int)threadIdx.x; i < vectors; i += BLOCK)
        by[i] = value_of<T>(s->g[i]);
    __syncthreads();
    const own_range own = range_of_block(n);
    for (int64_t e = own.begin + threadIdx.x; e < own.end; e += BLOCK) {
        T sum = x[e];
#pragma unroll 16
        for (int i = 0; i < vectors; i++)
            sum += by[i] * basis[i * stride + e];
        to[e] = sum;
    }
}

/* The triangular solve of gmres, column by column, by one block: a thread has a row. The next column is
 * loaded before this one is used. */
__global__ void __launch_bounds__(BLOCK) solve_triangle(krylov_state *s)
{
    static_assert((int)KRYLOV_MOST_BASIS <= (int)BLOCK, "a thread for each row");
    __shared__ krylov_scalar solved[2]; /* used in turn */
    let_next_begin();
    await_kernel_before();
    const int j = s->j, i = (int)threadIdx.x;
    const auto entry_of = [&](int k) { return i <= k ? s->r[(int64_t)k * s->most + i] : scalar_of(0); };
    krylov_scalar g = i < j ? s->g[i] : scalar_of(0), next = entry_of(j - 1);
    for (int k = j - 1; k >= 0; k--) {
        const krylov_scalar entry = next;
        next = entry_of(k - 1);
        if (i == k)
            solved[k % 2] = g = scalar_quotient(g, entry);
        __syncthreads();
        if (i < k)
            g = scalar_sum(g, scalar_scaled(-1, scalar_product(entry, solved[k % 2])));
    }
    if (i < j)
        s->g[i] = g;
}

/* Shared memory of a block of which a multiprocessor holds two. 0: unknown. */
int shared_for_two(spmv_context *ctx)
{
    enum { RESERVED = 1024 /* a block */ };
    int bytes = 0;
    const cudaError_t error = cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin,
                                                     ((const cuda_state *)ctx->device)->device);
    return error == cudaSuccess && bytes > 2 * RESERVED ? bytes / 2 - RESERVED : 0;
}

} // namespace

extern "C" int64_t krylov_parts_bytes_cuda(int sums, const plan_ranks *ranks)
{
    const int64_t parts = ranks != nullptr ? max_i64(1, ranks->chunks) : (int64_t)MANY_BLOCKS;
    return HEAD + parts * sums * (int64_t)sizeof(krylov_scalar);
}

extern "C" spmv_status krylov_combine_cuda(const krylov_vectors *v, const krylov_combination *a)
{
    return on_device(v->ctx, [&] {
        return with_floating(v->type, [&](auto of) {
            using T = decltype(of);
            switch (10 * a->inputs + a->outputs) {
#define CASE(inputs, outputs)                                                                                          \
    case 10 * inputs + outputs:                                                                                        \
        return launch_combination<T, inputs, outputs, finish_krylov>(v, a);
                CASE(1, 0)
                CASE(1, 1)
                CASE(1, 2)
                CASE(1, 3)
                CASE(2, 0)
                CASE(2, 1)
                CASE(2, 2)
                CASE(3, 1)
                CASE(4, 2)
                CASE(5, 2)
                CASE(5, 4)
                CASE(6, 2)
                CASE(6, 3)
                CASE(6, 4)
#undef CASE
            default:
                return context_fail(v->ctx, SPMV_ERROR_UNSUPPORTED, "no kernel combines %d vectors to %d", a->inputs,
                                    a->outputs);
            }
        });
    });
}

extern "C" spmv_status krylov_project_cuda(const krylov_vectors *v, const krylov_projection *from)
{
    const int most = blocks_for(v->n), wanted = from->subtracts ? (int)FEW_BLOCKS : 2 * (int)FEW_BLOCKS;
    const int blocks = most < wanted ? most : wanted;
    return on_device(v->ctx, [&] {
        return with_floating(v->type, [&](auto of) {
            using T = decltype(of);
            static uint64_t known;
            const int room = from->most + 1, shared = shared_for_two(v->ctx);
            const int least = room_of<T>::bytes(room, 0), spare = (shared - least) / (BLOCK * (int)sizeof(T));
            const int kept = !from->subtracts || spare < 0 ? 0 : spare < from->most ? spare : from->most;
            const projection<T> a = {(const T *)from->basis,
                                     from->stride,
                                     (T *)from->w,
                                     from->subtracts,
                                     from->finish,
                                     v->n,
                                     v->state,
                                     v->parts,
                                     room,
                                     kept};
            const spmv_status ready =
                once_a_device(v->ctx, "krylov projection", &known, (const void *)project<T>,
                              cudaFuncAttributeMaxDynamicSharedMemorySize, shared > least ? shared : least);
            return ready != SPMV_OK
                       ? ready
                       : launch_shaped(v->ctx, "krylov projection",
                                       {blocks, BLOCK, room_of<T>::bytes(room, kept), true}, project<T>, a);
        });
    });
}

extern "C" spmv_status krylov_store_cuda(const krylov_vectors *v, const krylov_storing *from)
{
    return on_device(v->ctx, [&] {
        return with_floating(v->type, [&](auto of) {
            using T = decltype(of);
            const storing<T> a = {v->state,     from->factor, (const T *)from->from, (T *)from->basis, (T *)from->copy,
                                  from->stride, v->n,         from->subtracts};
            return launch_early(v->ctx, "krylov basis vector", blocks_for(v->n), BLOCK, store<T>, a);
        });
    });
}

extern "C" spmv_status krylov_expand_cuda(const krylov_vectors *v, const void *basis, int64_t stride, const void *x,
                                          void *to)
{
    return on_device(v->ctx, [&] {
        return with_floating(v->type, [&](auto of) {
            using T = decltype(of);
            return launch_early(v->ctx, "krylov expansion", blocks_for(v->n), BLOCK, expand<T>,
                                (const krylov_state *)v->state, (const T *)basis, stride, (const T *)x, (T *)to, v->n);
        });
    });
}

extern "C" spmv_status krylov_solve_triangle_cuda(const krylov_vectors *v)
{
    return on_device(v->ctx,
                     [&] { return launch_early(v->ctx, "krylov triangle", 1, BLOCK, solve_triangle, v->state); });
}

/* The passes over vectors of minres, gmres and bicgstab on CUDA (krylov_passes.h).
 *
 * Idea:       Gram-Schmidt reads a basis of many vectors; all else is small. A thread keeps an
 *             element of w and lets the basis pass by, in groups of 32 vectors, so many loads are in
 *             flight. A warp adds up the products of a group at once, with one shuffle each instead
 *             of five. A pass that subtracts and projects has the last group still in registers, and
 *             the others in the caches.
 * Sums:       each block stores its part. The last block to arrive adds the parts in a fixed order
 *             and computes the scalars of the next pass, so the host need not wait.
 * Launches:   one a pass.
 * Bits:       the number of blocks, and so the order of each sum, depends on n alone.
 * Source:     last block: CUDA C++ Programming Guide, "Memory fence functions".
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "block.cuh"
#include "complex.cuh"
#include "launch.cuh"

extern "C" {
#include "krylov_passes.h"
}

namespace
{

/* FEW_BLOCKS: two for each multiprocessor of an H100; MANY_BLOCKS: for vectors of more than FEW_FOR
 * elements, where the time for the parts does not show.  */
enum { BLOCK = 256, WARPS = BLOCK / warp_lanes, FEW_BLOCKS = 264, FEW_FOR = 1 << 20, MANY_BLOCKS = 4 * FEW_BLOCKS };
enum { HEAD = 256 /* bytes before the parts: the counter */ };

/* A sum of parts: double, or a complex number of doubles. */
template <typename T> struct sum_of {
    using type = double;
};
template <> struct sum_of<spmv_c64> {
    using type = spmv_c128;
};
template <> struct sum_of<spmv_c128> {
    using type = spmv_c128;
};
template <typename T> using sum_type = typename sum_of<T>::type;

__device__ double widened(float a)
{
    return (double)a;
}
__device__ double widened(double a)
{
    return a;
}
__device__ spmv_c128 widened(spmv_c64 a)
{
    return {(double)a.re, (double)a.im};
}
__device__ spmv_c128 widened(spmv_c128 a)
{
    return a;
}
__device__ krylov_scalar scalar_from(double a)
{
    return {a, 0};
}
__device__ krylov_scalar scalar_from(spmv_c128 a)
{
    return {a.re, a.im};
}

/* The scalar as a value of the type. */
template <typename T> __device__ T value_of(krylov_scalar a)
{
    if constexpr (sizeof(sum_type<T>) == sizeof(double))
        return (T)a.re;
    else {
        T value;
        value.re = (decltype(value.re))a.re;
        value.im = (decltype(value.im))a.im;
        return value;
    }
}

__device__ double shuffled(double a, int mask)
{
    return __shfl_xor_sync(0xffffffffu, a, mask);
}
__device__ float shuffled(float a, int mask)
{
    return __shfl_xor_sync(0xffffffffu, a, mask);
}
template <typename C> __device__ C shuffled(C a, int mask)
{
    return {__shfl_xor_sync(0xffffffffu, a.re, mask), __shfl_xor_sync(0xffffffffu, a.im, mask)};
}

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

/* The sum over the lanes of a warp, in all lanes. */
template <typename S> __device__ S sum_of_warp(S value)
{
    for (int mask = warp_lanes / 2; mask > 0; mask /= 2)
        value += shuffled(value, mask);
    return value;
}

/* Where the parts are: `sums` for each block. */
template <typename T> __device__ sum_type<T> *parts_in(void *memory)
{
    return (sum_type<T> *)((char *)memory + HEAD);
}

/* Whether this block is the last to arrive; its parts are stored. For all threads. */
__device__ bool is_last_block(void *memory)
{
    __shared__ bool last;
    __threadfence(); /* the parts are visible before the ticket */
    __syncthreads();
    if (threadIdx.x == 0)
        last = atomicInc((unsigned *)memory, gridDim.x - 1) == gridDim.x - 1;
    __syncthreads();
    __threadfence(); /* all tickets are visible, so all parts are */
    return last;
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

/* ------------------------------------------------------------- combinations */

template <typename T> struct combination {
    const T *in[KRYLOV_MOST_INPUTS];
    T *out[KRYLOV_MOST_OUTPUTS];
    signed char c[KRYLOV_MOST_OUTPUTS][KRYLOV_MOST_INPUTS];
    signed char left[KRYLOV_MOST_SUMS], right[KRYLOV_MOST_SUMS];
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

template <typename T, int INPUTS, int OUTPUTS> __global__ void __launch_bounds__(BLOCK) combine(combination<T> a)
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
            if (d < a.sums)
                sum[d] += widened(conjugated(operand(a.left[d], in, fresh)) * operand(a.right[d], in, fresh));
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
    if (!is_last_block(a.parts))
        return;
    add_parts<T>(parts, a.sums, totals);
    if (thread == 0) {
        krylov_scalar sums[KRYLOV_MOST_SUMS];
        for (int d = 0; d < KRYLOV_MOST_SUMS; d++)
            sums[d] = d < a.sums ? scalar_from(totals[d]) : scalar_of(0);
        krylov_finish_scalars(a.finish, a.state, sums);
    }
}

/* ------------------------------------------------------------- Gram-Schmidt */

/* Basis vectors at a time; a thread has an element of each in registers. */
template <typename T> constexpr int group_of = sizeof(T) > 8 ? 16 : 32;

template <typename T> struct projection {
    const T *basis;
    int64_t stride;
    T *w;
    bool subtracts;
    krylov_finish finish;
    int64_t n;
    krylov_state *state;
    void *parts;
    int room;
};

/* The lanes of each half of a group of 2 MASK lanes keep one half of the 2 HALF values, summed over
 * both; and so on, until each lane has one value. */
template <int HALF, int MASK, typename T, int COUNT> __device__ void fold_group(T (&value)[COUNT])
{
    if constexpr (HALF > 0) {
        const bool upper = (threadIdx.x & MASK) != 0;
#pragma unroll
        for (int k = 0; k < HALF; k++) {
            const T keep = upper ? value[k + HALF] : value[k], give = upper ? value[k] : value[k + HALF];
            value[k] = keep + shuffled(give, MASK);
        }
        fold_group<HALF / 2, MASK / 2>(value);
    } else if constexpr (MASK > 0) {
        value[0] += shuffled(value[0], MASK);
        fold_group<0, MASK / 2>(value);
    }
}

/* Adds up COUNT values over the warp at once, with about one shuffle each. Lane l gets the sum of
 * value l COUNT / 32. */
template <typename T, int COUNT> __device__ T sum_group(T (&value)[COUNT])
{
    fold_group<COUNT / 2, warp_lanes / 2>(value);
    return value[0];
}

/* Shared memory of a projection: sums of each warp, later the arrays of finish_column; totals;
 * factors. room: the most sums. */
template <typename T> struct room_of {
    sum_type<T> *of_warps, *totals;
    T *pass;

    static int bytes(int room)
    {
        return room * (int)((WARPS + 1) * sizeof(sum_type<T>) + sizeof(T));
    }
    __device__ room_of(unsigned char *memory, int room)
    {
        of_warps = (sum_type<T> *)memory;
        totals = of_warps + WARPS * room;
        pass = (T *)(totals + room);
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
template <typename T> __device__ void finish_second(krylov_state *s, const sum_type<T> *totals, void *shared)
{
    static_assert(2 * sizeof(krylov_scalar) + sizeof(double) <= WARPS * sizeof(sum_type<T>), "the arrays fit");
    krylov_scalar *const h = (krylov_scalar *)shared, *const sines = h + s->most + 1;
    double *const cosines = (double *)(sines + s->most + 1);
    const int j = s->j, thread = (int)threadIdx.x;
    double projected = 0;
    for (int i = thread; i <= j; i += BLOCK) {
        const krylov_scalar sum = scalar_from(totals[i]);
        s->pass[i] = sum;
        h[i] = scalar_sum(s->h[i], sum);
        sines[i] = s->sines[i];
        cosines[i] = s->cosines[i];
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
        gmres_column(s, gmres_norm(scalar_from(totals[j + 1]).re, projected), h, cosines, sines);
}

template <typename T> __global__ void __launch_bounds__(BLOCK) project(projection<T> a)
{
    using S = sum_type<T>;
    SPMV_DYNAMIC_SHARED(memory);
    let_next_begin();
    await_kernel_before();
    if (a.state->ending != 0)
        return;
    constexpr int GROUP = group_of<T>;
    const int thread = (int)threadIdx.x, lane = thread % warp_lanes, warp = thread / warp_lanes;
    const room_of<T> shared(memory, a.room);
    S *const of_warp = shared.of_warps + warp * a.room;
    const int vectors = a.state->j + 1, sums = vectors + 1;
    for (int i = thread; i < vectors && a.subtracts; i += BLOCK)
        shared.pass[i] = value_of<T>(scalar_scaled(-1, a.state->pass[i]));
    for (int i = lane; i < sums; i += warp_lanes)
        of_warp[i] = S();
    __syncthreads();
    const own_range own = range_of_block(a.n);
    S norm = S();
    const int last = (vectors - 1) / GROUP * GROUP; /* the first of the last group */
    for (int64_t first = own.begin; first < own.end; first += BLOCK) {
        const int64_t e = first + thread;
        const bool mine = e < own.end;
        const T *const column = a.basis + (mine ? e : own.begin);
        T w = mine ? a.w[e] : T(), element[GROUP];
        const auto load = [&](int i) {
#pragma unroll
            for (int k = 0; k < GROUP; k++)
                element[k] = i + k < vectors ? column[(i + k) * a.stride] : T();
        };
        for (int i = 0; i <= last && a.subtracts; i += GROUP) {
            load(i);
#pragma unroll
            for (int k = 0; k < GROUP; k++)
                if (i + k < vectors)
                    w += shared.pass[i + k] * element[k];
        }
        if (!mine)
            w = T();
        else if (a.subtracts)
            a.w[e] = w;
        norm += widened(conjugated(w) * w);
        for (int i = last; i >= 0; i -= GROUP) { /* after a subtraction the last group is at hand */
            if (!a.subtracts || i != last)
                load(i);
#pragma unroll
            for (int k = 0; k < GROUP; k++)
                element[k] = conjugated(element[k]) * w;
            const T sum = sum_group(element);
            const int k = i + lane / (warp_lanes / GROUP);
            if (lane % (warp_lanes / GROUP) == 0 && k < vectors)
                of_warp[k] += widened(sum);
        }
    }
    norm = sum_of_warp(norm);
    if (lane == 0)
        of_warp[vectors] = norm;
    __syncthreads();
    S *const parts = parts_in<T>(a.parts);
    for (int i = thread; i < sums; i += BLOCK) {
        S part = shared.of_warps[i];
        for (int w = 1; w < WARPS; w++)
            part += shared.of_warps[w * a.room + i];
        parts[(int64_t)blockIdx.x * sums + i] = part;
    }
    if (!is_last_block(a.parts))
        return;
    add_parts<T>(parts, sums, shared.totals);
    if (a.finish == GMRES_FIRST)
        finish_first<T>(a.state, shared.totals);
    else
        finish_second<T>(a.state, shared.totals, memory);
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
        pass[i] = value_of<T>(scalar_scaled(-1, a.s->pass[i]));
    __syncthreads();
    const own_range own = range_of_block(a.n);
    const T by = value_of<T>(a.s->c[a.factor]);
    for (int64_t e = own.begin + threadIdx.x; e < own.end; e += BLOCK) {
        T rest = a.from[e];
#pragma unroll 16
        for (int i = 0; i < vectors; i++)
            rest += pass[i] * a.basis[i * a.stride + e];
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

/* The triangular solve of gmres, column by column, by one block. */
__global__ void __launch_bounds__(BLOCK) solve_triangle(krylov_state *s)
{
    __shared__ krylov_scalar g[KRYLOV_MOST_BASIS];
    let_next_begin();
    await_kernel_before();
    const int j = s->j;
    for (int i = (int)threadIdx.x; i < j; i += BLOCK)
        g[i] = s->g[i];
    __syncthreads();
    for (int k = j - 1; k >= 0; k--) {
        const krylov_scalar *const column = s->r + (int64_t)k * s->most;
        const krylov_scalar solved = scalar_quotient(g[k], column[k]);
        __syncthreads();
        for (int i = (int)threadIdx.x; i < k; i += BLOCK)
            g[i] = scalar_sum(g[i], scalar_scaled(-1, scalar_product(column[i], solved)));
        if (threadIdx.x == 0)
            g[k] = solved;
        __syncthreads();
    }
    for (int i = (int)threadIdx.x; i < j; i += BLOCK)
        s->g[i] = g[i];
}

/* Calls body(T()) for the type of the vectors. */
template <typename Body> spmv_status with_vectors(const krylov_vectors *v, const Body &body)
{
    switch ((int)v->type) {
    case SPMV_F32:
        return body(float());
    case SPMV_F64:
        return body(double());
    case SPMV_C64:
        return body(spmv_c64());
    default:
        return body(spmv_c128());
    }
}

template <typename T, int INPUTS, int OUTPUTS>
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
    }
    a.sums = from->sums;
    a.finish = from->finish;
    a.always = from->always;
    a.n = v->n;
    a.state = v->state;
    a.parts = v->parts;
    return launch_early(v->ctx, "krylov combination", blocks_for(v->n), BLOCK, combine<T, INPUTS, OUTPUTS>, a);
}

} // namespace

extern "C" int64_t krylov_parts_bytes_cuda(int sums)
{
    return HEAD + (int64_t)MANY_BLOCKS * sums * (int64_t)sizeof(krylov_scalar);
}

extern "C" spmv_status krylov_combine_cuda(const krylov_vectors *v, const krylov_combination *a)
{
    return on_device(v->ctx, [&] {
        return with_vectors(v, [&](auto of) {
            using T = decltype(of);
            switch (10 * a->inputs + a->outputs) {
#define CASE(inputs, outputs)                                                                                          \
    case 10 * inputs + outputs:                                                                                        \
        return launch_combination<T, inputs, outputs>(v, a);
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
                CASE(6, 2)
                CASE(6, 3)
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
    /* of the pass that subtracts, the part of the basis that all blocks have at hand fits the caches */
    const int most = blocks_for(v->n), blocks = from->subtracts && most > FEW_BLOCKS ? (int)FEW_BLOCKS : most;
    return on_device(v->ctx, [&] {
        return with_vectors(v, [&](auto of) {
            using T = decltype(of);
            const projection<T> a = {(const T *)from->basis, from->stride, (T *)from->w, from->subtracts,
                                     from->finish,           v->n,         v->state,     v->parts,
                                     from->most + 1};
            return launch_shaped(v->ctx, "krylov projection", {blocks, BLOCK, room_of<T>::bytes(a.room), true},
                                 project<T>, a);
        });
    });
}

extern "C" spmv_status krylov_store_cuda(const krylov_vectors *v, const krylov_storing *from)
{
    return on_device(v->ctx, [&] {
        return with_vectors(v, [&](auto of) {
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
        return with_vectors(v, [&](auto of) {
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

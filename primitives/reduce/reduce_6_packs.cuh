/* reduce, rung 6: packs of 16 bytes, one launch. The default.
 *
 * idea      a thread loads several packs of 16 bytes at once, one load each, and folds them in
 *           registers. Nothing is staged, and no thread waits for another until its block's chunk
 *           is read. Then lanes fold by shuffles, and warps through shared memory. The block that
 *           finishes last, determined by a ticket, folds the blocks' results in block order, so the
 *           result does not depend on which block it is.
 * work      n - 1 operations and a few per thread
 * depth     n / 2048 / 256 + log
 * launches  1
 * bytes     n v
 * changed   no staging, no barrier in the loop, no second launch
 * wins      everywhere
 * order     the threads of a block load neighbouring packs; for a commutative operator each thread
 *           folds its own. For other operators, each warp processes a contiguous part of the chunk,
 *           where lane order is element order, and folds each row of packs with five shuffles,
 *           which costs less than the memory accesses. Bits depend on n alone: an array that is not
 *           aligned to 16 bytes is read element by element in the same packs.
 * source    M. Harris, "Optimizing parallel reduction in CUDA", 2007; the last block: CUDA C++
 *           Programming Guide, "Memory fence functions"
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SPMV_REDUCE_6_PACKS_CUH
#define SPMV_REDUCE_6_PACKS_CUH

#include "device/launch.cuh"
#include "device/tiles.cuh"
#include "primitives/map/map_1_packs.cuh"

/* Packs that a thread loads at once: 64 bytes, so that a tile is that of tiles.cuh. */
enum { packs_each = 4 };

/* Whether the operands may be reordered; false for unknown operators. */
template <typename Op> struct commutes {
    static constexpr bool yes = false;
};
#define SPMV_COMMUTES_(OP, op, value, yes, i, r, t, ARG) commuting_##OP = yes,
enum { SPMV_OPERATORS(SPMV_COMMUTES_, ) };
#undef SPMV_COMMUTES_
#define SPMV_COMMUTES_(OP, op, TYPE, type, T, CLASS)                                                                   \
    template <> struct commutes<op_##op##_##type> {                                                                    \
        static constexpr bool yes = commuting_##OP != 0;                                                               \
    };
SPMV_OPERATOR_PAIRS(SPMV_COMMUTES_)
#undef SPMV_COMMUTES_

/* A source provides packs of elements. fetch starts the load of pack p, of 16 bytes if in is
 * aligned. fetch_some loads element by element, with zeros beyond n. values converts what they
 * loaded into the elements to fold. */
template <typename Type> struct source_array {
    using type = Type;
    static constexpr int length = pack_length<type>();
    using raw = pack<type, length>;
    const type *in;

    bool aligned() const
    {
        return (uintptr_t)in % 16 == 0;
    }
    __device__ raw fetch(int64_t p) const
    {
        return ((const raw *)in)[p];
    }
    __device__ raw fetch_some(int64_t p, int64_t n) const
    {
        const type *const at = in + p * length;
        const int64_t there = n - p * length;
        raw x;
#pragma unroll
        for (int j = 0; j < length; j++)
            x.at[j] = j < there ? at[j] : type();
        return x;
    }
    __device__ raw values(raw x) const
    {
        return x;
    }
};

template <typename Op, int Count> __device__ typename Op::type fold_neighbours(Op op, const typename Op::type *x)
{
    typename Op::type even = x[0];
    if constexpr (Count > 1)
        even = op(fold_neighbours<Op, Count / 2>(op, x), fold_neighbours<Op, Count - Count / 2>(op, x + Count / 2));
    return even;
}

/* Lane 0 gets value_0 op ... op value_31, in this order. */
template <typename Op> __device__ typename Op::type warp_fold(Op op, typename Op::type value)
{
#pragma unroll
    for (int distance = 1; distance < warp_lanes; distance *= 2)
        value = op(value, shuffle_down(value, distance));
    return value;
}

/* Returns sum op the packs first, first + Apart, ... (packs_each of them), in order. If the
 * operator does not commute, a pack means the row of packs of the warp's lanes, and lane 0 has the
 * result. whole: all these packs exist; otherwise the identity replaces missing elements. */
template <int Apart, typename Op, typename Source>
__device__ typename Op::type fold_packs(Op op, const Source &source, int64_t n, bool wide, bool whole, int64_t first,
                                        typename Op::type sum)
{
    constexpr int Length = Source::length;
    using values = pack<typename Op::type, Length>;
    const auto with = [=](typename Op::type before, const values &x) {
        const typename Op::type mine = fold_neighbours<Op, Length>(op, x.at);
        return op(before, commutes<Op>::yes ? mine : warp_fold(op, mine));
    };
    if (wide && whole) { /* all loads start before the first is waited for */
        typename Source::raw raw[packs_each];
#pragma unroll
        for (int k = 0; k < packs_each; k++)
            raw[k] = source.fetch(first + k * Apart);
#pragma unroll
        for (int k = 0; k < packs_each; k++)
            sum = with(sum, source.values(raw[k]));
        return sum;
    }
#pragma unroll 1
    for (int k = 0; k < packs_each; k++) {
        const int64_t p = first + k * Apart;
        values x = source.values(source.fetch_some(p, n));
#pragma unroll
        for (int j = 0; j < Length; j++)
            if (p * Length + j >= n)
                x.at[j] = Op::identity();
        sum = with(sum, x);
    }
    return sum;
}

/* Lane 0 gets the fold of the warp's share of tiles begin ... end - 1. The warps' results in warp
 * order give the fold of these tiles. */
template <typename Op, typename Source>
__device__ typename Op::type fold_share(Op op, const Source &source, int64_t n, bool wide, int64_t begin, int64_t end)
{
    const int lane = (int)threadIdx.x % warp_lanes, warp = (int)threadIdx.x / warp_lanes;
    typename Op::type sum = Op::identity();
    if constexpr (commutes<Op>::yes) {
        constexpr int size = block_threads * packs_each; /* packs of a tile */
        const int64_t whole = n / (size * Source::length);
        for (int64_t t = begin; t < end; t++)
            sum = fold_packs<block_threads>(op, source, n, wide, t < whole, t * size + (int)threadIdx.x, sum);
        return warp_fold(op, sum);
    } else {
        constexpr int size = warp_lanes * packs_each; /* packs of a warp's part of a tile */
        const int64_t whole = n / (size * Source::length), first = begin * block_warps + warp * (end - begin);
        for (int64_t t = first; t < first + (end - begin); t++)
            sum = fold_packs<warp_lanes>(op, source, n, wide, t < whole, t * size + lane, sum);
        return sum;
    }
}

/* Thread 0 gets the fold of the values of the warps' lanes 0, in warp order. */
template <typename Op>
__device__ typename Op::type fold_warps(Op op, typename Op::type value, typename Op::type *warp_sums)
{
    if (threadIdx.x % warp_lanes == 0)
        warp_sums[threadIdx.x / warp_lanes] = value;
    __syncthreads();
    if (threadIdx.x == 0)
        value = fold_neighbours<Op, block_warps>(op, warp_sums);
    return value;
}

/* *out = the fold of all elements. wide: the source is aligned. sums: one cell per block. ticket:
 * counts finished blocks; 0 before and after. No block waits for another, so the order in which
 * they run is irrelevant. */
template <typename Op, typename Source>
__global__ void __launch_bounds__(block_threads)
    reduce_packs(Source source, int64_t n, bool wide, chunking cut, typename Op::type *sums, unsigned *ticket,
                 typename Op::type *out)
{
    using Type = typename Op::type;
    __shared__ Type warp_sums[block_warps];
    __shared__ bool last;
    const Op op{};
    const int block = (int)blockIdx.x;
    const int64_t begin = cut.first_tile(block), end = cut.first_tile(block + 1);
    Type sum = fold_warps(op, fold_share(op, source, n, wide, begin, end), warp_sums);
    if (cut.count == 1) {
        if (threadIdx.x == 0)
            *out = sum;
        return;
    }
    if (threadIdx.x == 0) {
        sums[block] = sum;
        __threadfence(); /* the sum is visible before the ticket */
        /* resets it to 0 */
        last = atomicInc(ticket, (unsigned)cut.count - 1) == (unsigned)cut.count - 1;
    }
    __syncthreads();
    if (!last)
        return;
    __threadfence(); /* all tickets are visible, so all sums are */
    const int each = (cut.count + block_threads - 1) / block_threads;
    sum = Op::identity();
    for (int k = 0; k < each; k++) {
        const int i = (int)threadIdx.x * each + k;
        sum = op(sum, i < cut.count ? sums[i] : Op::identity());
    }
    sum = fold_warps(op, warp_fold(op, sum), warp_sums);
    if (threadIdx.x == 0)
        *out = sum;
}

enum { reduce_6_scratch_elements = most_chunks };

/* *out = the fold of the source's elements 0 .. n - 1 in order, n > 0. */
template <typename Op, typename Source>
spmv_status reduce_6_launch(spmv_context *ctx, const char *name, Source source, int64_t n, void *out, void *scratch)
{
    using Type = typename Op::type;
    const chunking cut = cut_into_chunks(n, block_threads * packs_each * Source::length);
    return launch(ctx, name, cut.count, block_threads, reduce_packs<Op, Source>, source, n, source.aligned(), cut,
                  (Type *)scratch, ((cuda_state *)ctx->device)->ticket, (Type *)out);
}

#endif

/* compact, rung 2: count, then write.
 *
 * idea      n is divided into at most 2048 chunks of neighbouring tiles. One block counts the kept
 *           elements of its chunk; then one block per chunk adds the counts before its own and
 *           writes tile after tile. In a tile a thread holds compact_steps packs of 16 bytes, a
 *           warp a range of the tile. The counts of a lane's packs are the bytes of one word, so one
 *           scan per warp ranks them all. The kept elements are collected in shared memory in order
 *           and written from there with coalesced accesses.
 * work      2 n
 * depth     n / 2048 / 256 + log
 * launches  2 (1 if there is one chunk)
 * bytes     flags twice (2 n), elements once, kept elements once; with a predicate the elements are
 *           read twice instead
 * changed   the elements' destinations are not stored in memory: 40 n bytes less
 * wins      everywhere
 * order     only integers are added, so the order of additions is irrelevant
 * source    M. Billeter, O. Olsson, U. Assarsson, "Efficient stream compaction on wide SIMD
 *           many-core architectures", HPG 2009 (counts, destinations, a compaction in each warp)
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SPMV_COMPACT_2_COUNT_WRITE_CUH
#define SPMV_COMPACT_2_COUNT_WRITE_CUH

#include "device/filter.cuh"
#include "device/tiles.cuh"
#include "primitives/map/map_1_packs.cuh"

/* Packs of a thread in a tile. Four counts are the bytes of a word; the sum over a warp is at most
 * 32 x 4 each. */
enum { compact_steps = 4 };

template <int Length> struct compact_tile {
    static constexpr int size = block_threads * compact_steps * Length;
};

/* Bit j: byte j of the word is not 0. */
__host__ __device__ inline unsigned bytes_set(unsigned word)
{
    /* bit 7 of those bytes */
    const unsigned high = (((word & 0x7f7f7f7fu) + 0x7f7f7f7fu) | word) & 0x80808080u;
    return (high >> 7) * 0x01020408u >> 24; /* bit 8 j goes to bit 24 + j */
}

/* Elements of a pack: 16 bytes of them, limited by the counts above. */
template <typename Type> constexpr int compact_pack_length()
{
    return pack_length<Type>() < 4 ? pack_length<Type>() : 4;
}

/* Which elements are kept, as the bits of pack p of Length elements. counted: elements of a pack
 * for counting only. */
template <typename Type> struct keep_flagged {
    using type = Type;
    static constexpr bool looks_at_elements = false;
    static constexpr int counted = 16;
    const uint8_t *flags;

    bool aligned() const
    {
        return (uintptr_t)flags % 16 == 0;
    }
    template <int Length> __device__ unsigned bits(int64_t p, int64_t n) const
    {
        const pack<uint8_t, Length> some = read_pack<Length>(flags, p, n);
        unsigned set = 0;
#pragma unroll
        for (int k = 0; k < Length; k += 4) {
            unsigned word = 0;
            memcpy(&word, some.at + k, Length - k < 4 ? Length - k : 4);
            set |= bytes_set(word) << k;
        }
        return set;
    }
    template <int Length> __device__ unsigned bits_of(const pack<Type, Length> &, int64_t p, int64_t n) const
    {
        return bits<Length>(p, n);
    }
};

/* By flags that are bits, as in spmv_flags_pack. */
template <typename Type> struct keep_bits {
    using type = Type;
    static constexpr bool looks_at_elements = false;
    static constexpr int counted = 32;
    const uint32_t *flags;

    bool aligned() const
    {
        return true;
    }
    template <int Length> __device__ unsigned bits(int64_t p, int64_t n) const
    {
        const int64_t there = n - p * Length;
        if (there <= 0)
            return 0;
        const unsigned set = flags[p * Length / 32] >> (p * Length % 32);
        return there < Length ? set & ((1u << there) - 1u) : Length < 32 ? set & ((1u << Length % 32) - 1u) : set;
    }
    template <int Length> __device__ unsigned bits_of(const pack<Type, Length> &, int64_t p, int64_t n) const
    {
        return bits<Length>(p, n);
    }
};

template <typename Type, typename Test = by_predicate<Type>> struct keep_if {
    using type = Type;
    static constexpr bool looks_at_elements = true;
    static constexpr int counted = compact_pack_length<Type>();
    Test test;
    const Type *in;

    bool aligned() const
    {
        return true;
    }
    template <int Length> __device__ unsigned bits(int64_t p, int64_t n) const
    {
        return bits_of<Length>(read_pack<Length>(in, p, n), p, n);
    }
    template <int Length> __device__ unsigned bits_of(const pack<Type, Length> &some, int64_t p, int64_t n) const
    {
        unsigned set = 0;
#pragma unroll
        for (int j = 0; j < Length; j++)
            set |= (unsigned)(p * Length + j < n && test(some.at[j])) << j;
        return set;
    }
};

/* Addition of counts: of elements, and of the bytes of a word. */
using add_places = add_counts_of<int64_t>;
using add_bytes = add_counts_of<unsigned>;

/* The sum of the four bytes. */
__host__ __device__ inline unsigned sum_of_bytes(unsigned word)
{
    const unsigned halves = (word & 0x00ff00ffu) + (word >> 8 & 0x00ff00ffu);
    return (halves & 0xffffu) + (halves >> 16);
}

/* counts[chunk] = the number of elements kept in the chunk. Reads Length elements at a time; tiles
 * are those of packs of TileLength. */
template <int Length, int TileLength, typename Keep>
__global__ void __launch_bounds__(block_threads) compact_count(Keep keep, int64_t n, chunking cut, int64_t *counts)
{
    constexpr int size = compact_tile<TileLength>::size;
    __shared__ int64_t warp_sums[block_warps];
    const int chunk = (int)blockIdx.x;
    const int64_t first = cut.first_tile(chunk) * (size / Length), behind = cut.first_tile(chunk + 1) * (size / Length);
    const int64_t packs = n / Length + (n % Length != 0), end = behind < packs ? behind : packs;
    int64_t mine = 0, all;
#pragma unroll 4
    for (int64_t p = first + threadIdx.x; p < end; p += block_threads)
        mine += __popc(keep.template bits<Length>(p, n));
    block_exclusive(add_places(), mine, warp_sums, &all);
    if (threadIdx.x == 0)
        counts[chunk] = all;
}

/* Writes the kept elements of each chunk after those of the chunks before. *count: the number of
 * all kept elements. */
template <int Length, typename Keep>
__global__ void __launch_bounds__(block_threads)
    compact_write(Keep keep, const typename Keep::type *in, typename Keep::type *out, int64_t *count, int64_t n,
                  chunking cut, const int64_t *counts)
{
    using Type = typename Keep::type;
    constexpr int size = compact_tile<Length>::size;
    __shared__ Type stage[size];
    __shared__ unsigned warp_counts[block_warps];
    __shared__ int64_t warp_sums[block_warps];
    const int chunk = (int)blockIdx.x, lane = (int)threadIdx.x % warp_lanes, warp = (int)threadIdx.x / warp_lanes;
    int64_t before = 0, place;
    for (int c = (int)threadIdx.x; c < chunk; c += block_threads)
        before += counts[c];
    block_exclusive(add_places(), before, warp_sums, &place);
    for (int64_t t = cut.first_tile(chunk); t < cut.first_tile(chunk + 1); t++) {
        const int64_t first =
            /* the thread's first pack */
            t * (size / Length) + warp * (compact_steps * warp_lanes) + lane;
        pack<Type, Length> element[compact_steps];
        unsigned bits[compact_steps], kept = 0;
        if (Keep::looks_at_elements) {
#pragma unroll
            for (int s = 0; s < compact_steps; s++)
                element[s] = read_pack<Length>(in, first + s * warp_lanes, n);
#pragma unroll
            for (int s = 0; s < compact_steps; s++)
                bits[s] = keep.template bits_of<Length>(element[s], first + s * warp_lanes, n);
        } else { /* a pack without kept elements is not read */
#pragma unroll
            for (int s = 0; s < compact_steps; s++)
                bits[s] = keep.template bits<Length>(first + s * warp_lanes, n);
#pragma unroll
            for (int s = 0; s < compact_steps; s++)
                element[s] = bits[s] != 0 ? read_pack<Length>(in, first + s * warp_lanes, n) : pack<Type, Length>();
        }
#pragma unroll
        for (int s = 0; s < compact_steps; s++)
            kept |= (unsigned)__popc(bits[s]) << (8 * s);
        const unsigned through = warp_inclusive(add_bytes(), kept);
        if (lane == warp_lanes - 1)
            warp_counts[warp] = through;
        __syncthreads(); /* also: all threads have read the stage */
        unsigned at = 0, all = 0;
#pragma unroll
        for (int w = 0; w < block_warps; w++) {
            if (w == warp)
                at = all;
            all += sum_of_bytes(warp_counts[w]);
        }
        const unsigned lanes_before = through - kept, in_warp = warp_counts[warp];
#pragma unroll
        for (int s = 0; s < compact_steps; s++) {
            unsigned to = at + (lanes_before >> (8 * s) & 0xffu);
#pragma unroll
            for (int j = 0; j < Length; j++)
                if (bits[s] >> j & 1u)
                    stage[to++] = element[s].at[j];
            at += in_warp >> (8 * s) & 0xffu;
        }
        __syncthreads();
        /* each warp writes whole lines of 128 bytes; the first may be partial */
        const int skew = (int)(((uintptr_t)(out + place) / sizeof(Type)) % warp_lanes);
        for (int i = (int)threadIdx.x - skew; i < (int)all; i += block_threads)
            if (i >= 0)
                out[place + i] = stage[i];
        place += all;
    }
    if (chunk == cut.count - 1 && threadIdx.x == 0)
        *count = place;
}

enum { compact_2_scratch_elements = most_chunks };

template <int Length, int Counted, typename Keep>
spmv_status compact_2_launch_packs(spmv_context *ctx, Keep keep, const void *in, void *out, int64_t *count, int64_t n,
                                   void *scratch)
{
    using Type = typename Keep::type;
    const chunking cut = cut_into_chunks(n, compact_tile<Length>::size);
    int64_t *const counts = (int64_t *)scratch;
    spmv_status st = SPMV_OK;
    if (cut.count > 1)
        st = launch(ctx, "compact_count", cut.count, block_threads, compact_count<Counted, Length, Keep>, keep, n, cut,
                    counts);
    if (st == SPMV_OK)
        st = launch(ctx, "compact_write", cut.count, block_threads, compact_write<Length, Keep>, keep, (const Type *)in,
                    (Type *)out, count, n, cut, counts);
    return st;
}

/* n > 0 */
template <typename Keep>
spmv_status compact_2_launch(spmv_context *ctx, Keep keep, const void *in, void *out, int64_t *count, int64_t n,
                             void *scratch)
{
    constexpr int Length = compact_pack_length<typename Keep::type>();
    if ((uintptr_t)in % 16 == 0 && keep.aligned())
        return compact_2_launch_packs<Length, Keep::counted>(ctx, keep, in, out, count, n, scratch);
    return compact_2_launch_packs<1, 1>(ctx, keep, in, out, count, n, scratch);
}

#endif

/* compact, rung 2: count, then write.
 *
 * Idea: n is cut into at most 2048 chunks of neighbouring tiles. One block counts what its chunk keeps; then one block
 * a chunk adds up the counts before its own and writes, tile after tile. In a tile a thread holds STEPS packs of 16
 * bytes, a warp a run of the tile; how many elements a lane keeps of each of its packs are the bytes of one word, so
 * one scan of a warp ranks them all. The elements kept gather in shared memory in their order, and go from there to
 * memory side by side. Work 2 n; depth n / 2048 / 256 + log; launches 2 (1 when one chunk holds all); bytes moved, v
 * the size of an element: flags twice (2 n), elements once, those kept once. With a predicate the elements are read
 * twice instead. Changed since rung 1: no place of an element goes through memory: 40 n bytes less. Wins: everywhere.
 * Integers alone are added, so the way of adding does not show. M. Billeter, O. Olsson, U. Assarsson, "Efficient stream
 * compaction on wide SIMD many-core architectures", HPG 2009 (counts, places, a compaction in each warp).
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef COMPACT_2_COUNT_WRITE_CUH
#define COMPACT_2_COUNT_WRITE_CUH

#include "filter.cuh"
#include "map_1_packs.cuh"
#include "tiles.cuh"

/* Packs of a thread in a tile. Four counts are the bytes of a word; a warp's are at most 32 x 4 each. */
enum { COMPACT_STEPS = 4 };

template <int V> struct compact_tile {
    static constexpr int SIZE = THREADS * COMPACT_STEPS * V;
};

/* Bit j: byte j of the word is not 0. */
__host__ __device__ inline unsigned bytes_set(unsigned word)
{
    const unsigned high = (((word & 0x7f7f7f7fu) + 0x7f7f7f7fu) | word) & 0x80808080u; /* bit 7 of those bytes */
    return (high >> 7) * 0x01020408u >> 24;                                            /* bit 8 j goes to bit 24 + j */
}

/* Elements of a pack: 16 bytes of them, but no more than those counts allow. */
template <typename T> constexpr int compact_pack_length()
{
    return pack_length<T>() < 4 ? pack_length<T>() : 4;
}

/* What is kept, as the bits of pack p of V elements. COUNTED: elements of a pack when all that is asked is how many. */
template <typename T> struct keep_flagged {
    using type = T;
    static constexpr bool LOOKS_AT_ELEMENTS = false;
    static constexpr int COUNTED = 16;
    const uint8_t *flags;

    bool aligned() const
    {
        return (uintptr_t)flags % 16 == 0;
    }
    template <int V> __device__ unsigned bits(int64_t p, int64_t n) const
    {
        const pack<uint8_t, V> some = read_pack<V>(flags, p, n);
        unsigned set = 0;
#pragma unroll
        for (int k = 0; k < V; k += 4) {
            unsigned word = 0;
            memcpy(&word, some.at + k, V - k < 4 ? V - k : 4);
            set |= bytes_set(word) << k;
        }
        return set;
    }
    template <int V> __device__ unsigned bits_of(const pack<T, V> &, int64_t p, int64_t n) const
    {
        return bits<V>(p, n);
    }
};

/* By flags that are bits, as in spmv_flags_pack. */
template <typename T> struct keep_bits {
    using type = T;
    static constexpr bool LOOKS_AT_ELEMENTS = false;
    static constexpr int COUNTED = 32;
    const uint32_t *flags;

    bool aligned() const
    {
        return true;
    }
    template <int V> __device__ unsigned bits(int64_t p, int64_t n) const
    {
        const int64_t there = n - p * V;
        if (there <= 0)
            return 0;
        const unsigned set = flags[p * V / 32] >> (p * V % 32);
        return there < V ? set & ((1u << there) - 1u) : V < 32 ? set & ((1u << V % 32) - 1u) : set;
    }
    template <int V> __device__ unsigned bits_of(const pack<T, V> &, int64_t p, int64_t n) const
    {
        return bits<V>(p, n);
    }
};

template <typename T, typename Test = by_predicate<T>> struct keep_if {
    using type = T;
    static constexpr bool LOOKS_AT_ELEMENTS = true;
    static constexpr int COUNTED = compact_pack_length<T>();
    Test test;
    const T *in;

    bool aligned() const
    {
        return true;
    }
    template <int V> __device__ unsigned bits(int64_t p, int64_t n) const
    {
        return bits_of<V>(read_pack<V>(in, p, n), p, n);
    }
    template <int V> __device__ unsigned bits_of(const pack<T, V> &some, int64_t p, int64_t n) const
    {
        unsigned set = 0;
#pragma unroll
        for (int j = 0; j < V; j++)
            set |= (unsigned)(p * V + j < n && test(some.at[j])) << j;
        return set;
    }
};

/* The operators of counts: of elements, and of the bytes of a word. */
struct add_places {
    using type = int64_t;
    __host__ __device__ int64_t operator()(int64_t a, int64_t b) const
    {
        return a + b;
    }
    static __host__ __device__ int64_t identity()
    {
        return 0;
    }
};

struct add_bytes {
    using type = unsigned;
    __host__ __device__ unsigned operator()(unsigned a, unsigned b) const
    {
        return a + b;
    }
    static __host__ __device__ unsigned identity()
    {
        return 0;
    }
};

/* The sum of the four bytes. */
__host__ __device__ inline unsigned sum_of_bytes(unsigned word)
{
    const unsigned halves = (word & 0x00ff00ffu) + (word >> 8 & 0x00ff00ffu);
    return (halves & 0xffffu) + (halves >> 16);
}

/* counts[chunk] = elements kept in the chunk. V elements are looked at a time; tiles are those of packs of W. */
template <int V, int W, typename Keep>
__global__ void __launch_bounds__(THREADS) compact_count(Keep keep, int64_t n, chunking cut, int64_t *counts)
{
    constexpr int SIZE = compact_tile<W>::SIZE;
    __shared__ int64_t warp_sums[WARPS];
    const int chunk = (int)blockIdx.x;
    const int64_t first = cut.first_tile(chunk) * (SIZE / V), behind = cut.first_tile(chunk + 1) * (SIZE / V);
    const int64_t packs = n / V + (n % V != 0), end = behind < packs ? behind : packs;
    int64_t mine = 0, all;
#pragma unroll 4
    for (int64_t p = first + threadIdx.x; p < end; p += THREADS)
        mine += __popc(keep.template bits<V>(p, n));
    block_exclusive(add_places(), mine, warp_sums, &all);
    if (threadIdx.x == 0)
        counts[chunk] = all;
}

/* The elements kept of each chunk, behind those of the chunks before; *count: all there are. */
template <int V, typename Keep>
__global__ void __launch_bounds__(THREADS)
    compact_write(Keep keep, const typename Keep::type *in, typename Keep::type *out, int64_t *count, int64_t n,
                  chunking cut, const int64_t *counts)
{
    using T = typename Keep::type;
    constexpr int SIZE = compact_tile<V>::SIZE;
    __shared__ T stage[SIZE];
    __shared__ unsigned warp_counts[WARPS];
    __shared__ int64_t warp_sums[WARPS];
    const int chunk = (int)blockIdx.x, lane = (int)threadIdx.x % WARP, warp = (int)threadIdx.x / WARP;
    int64_t before = 0, place;
    for (int c = (int)threadIdx.x; c < chunk; c += THREADS)
        before += counts[c];
    block_exclusive(add_places(), before, warp_sums, &place);
    for (int64_t t = cut.first_tile(chunk); t < cut.first_tile(chunk + 1); t++) {
        const int64_t first = t * (SIZE / V) + warp * (COMPACT_STEPS * WARP) + lane; /* the thread's first pack */
        pack<T, V> element[COMPACT_STEPS];
        unsigned bits[COMPACT_STEPS], kept = 0;
        if (Keep::LOOKS_AT_ELEMENTS) {
#pragma unroll
            for (int s = 0; s < COMPACT_STEPS; s++)
                element[s] = read_pack<V>(in, first + s * WARP, n);
#pragma unroll
            for (int s = 0; s < COMPACT_STEPS; s++)
                bits[s] = keep.template bits_of<V>(element[s], first + s * WARP, n);
        } else { /* where nothing is kept, nothing is read */
#pragma unroll
            for (int s = 0; s < COMPACT_STEPS; s++)
                bits[s] = keep.template bits<V>(first + s * WARP, n);
#pragma unroll
            for (int s = 0; s < COMPACT_STEPS; s++)
                element[s] = bits[s] != 0 ? read_pack<V>(in, first + s * WARP, n) : pack<T, V>();
        }
#pragma unroll
        for (int s = 0; s < COMPACT_STEPS; s++)
            kept |= (unsigned)__popc(bits[s]) << (8 * s);
        const unsigned through = warp_inclusive(add_bytes(), kept);
        if (lane == WARP - 1)
            warp_counts[warp] = through;
        __syncthreads(); /* and all are done with what the stage held */
        unsigned at = 0, all = 0;
#pragma unroll
        for (int w = 0; w < WARPS; w++) {
            if (w == warp)
                at = all;
            all += sum_of_bytes(warp_counts[w]);
        }
        const unsigned lanes_before = through - kept, in_warp = warp_counts[warp];
#pragma unroll
        for (int s = 0; s < COMPACT_STEPS; s++) {
            unsigned to = at + (lanes_before >> (8 * s) & 0xffu);
#pragma unroll
            for (int j = 0; j < V; j++)
                if (bits[s] >> j & 1u)
                    stage[to++] = element[s].at[j];
            at += in_warp >> (8 * s) & 0xffu;
        }
        __syncthreads();
        /* whole lines of 128 bytes a warp, so the first may lack a piece in front */
        const int skew = (int)(((uintptr_t)(out + place) / sizeof(T)) % WARP);
        for (int i = (int)threadIdx.x - skew; i < (int)all; i += THREADS)
            if (i >= 0)
                out[place + i] = stage[i];
        place += all;
    }
    if (chunk == cut.count - 1 && threadIdx.x == 0)
        *count = place;
}

enum { COMPACT_2_SCRATCH_ELEMENTS = CHUNKS };

template <int V, int COUNTED, typename Keep>
spmv_status compact_2_launch_packs(spmv_context *ctx, Keep keep, const void *in, void *out, int64_t *count, int64_t n,
                                   void *scratch)
{
    using T = typename Keep::type;
    const chunking cut = cut_into_chunks(n, compact_tile<V>::SIZE);
    int64_t *const counts = (int64_t *)scratch;
    spmv_status st = SPMV_OK;
    if (cut.count > 1)
        st = launch(ctx, "compact_count", cut.count, THREADS, compact_count<COUNTED, V, Keep>, keep, n, cut, counts);
    if (st == SPMV_OK)
        st = launch(ctx, "compact_write", cut.count, THREADS, compact_write<V, Keep>, keep, (const T *)in, (T *)out,
                    count, n, cut, counts);
    return st;
}

/* n > 0 */
template <typename Keep>
spmv_status compact_2_launch(spmv_context *ctx, Keep keep, const void *in, void *out, int64_t *count, int64_t n,
                             void *scratch)
{
    constexpr int V = compact_pack_length<typename Keep::type>();
    if ((uintptr_t)in % 16 == 0 && keep.aligned())
        return compact_2_launch_packs<V, Keep::COUNTED>(ctx, keep, in, out, count, n, scratch);
    return compact_2_launch_packs<1, 1>(ctx, keep, in, out, count, n, scratch);
}

#endif

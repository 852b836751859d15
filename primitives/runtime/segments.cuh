/* Where segments start and end, tile by tile, as one bit an element.
 *
 * Positions (ascending) become bits of a tile without a flags array in memory: each chunk finds its first position by
 * one search and from there on streams through them; a batch of block_threads positions sets its bits in shared memory, and
 * how many of them fell into the tile moves the cursor. A run of equal positions (empty segments) longer than a batch
 * is jumped over by a search, so that millions of empty segments at one place cost one tile nothing.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SPMV_SEGMENTS_CUH
#define SPMV_SEGMENTS_CUH

#include <spmv/primitives.h>

#include "tiles.cuh"

template <typename Type> struct tile_bits {
    static constexpr int word_count = tile_of<Type>::size / 32;

    /* The items bits of thread t, bit 0 the first. */
    static __host__ __device__ unsigned of_thread(const unsigned *words, int t)
    {
        constexpr int items = tile_of<Type>::items;
        const int bit = t * items, from = bit % 32;
        unsigned bits = words[bit / 32] >> from;
        if (32 % items != 0 && from + items > 32) /* elements of 12 bytes, say */
            bits |= words[bit / 32 + 1] << (32 - from);
        return bits & ((1u << items) - 1u);
    }
};

__device__ inline int64_t position_at(const void *positions, int bits, int64_t i)
{
    return bits == 32 ? (int64_t)((const int32_t *)positions)[i] : ((const int64_t *)positions)[i];
}

/* words = the bits of the positions cursor, cursor + 1, ... that lie in [begin, begin + valid); the cursor behind them.
 * position(cursor) >= begin. */
template <typename Position>
__device__ int64_t block_mark_words(const Position &position, int64_t cursor, int64_t count, int64_t begin, int valid,
                                    unsigned *words, int words_count)
{
    for (int w = (int)threadIdx.x; w < words_count; w += block_threads)
        words[w] = 0;
    __syncthreads();
    for (;;) {
        const int64_t s = cursor + threadIdx.x;
        const int64_t at = s < count ? position(s) - begin : valid;
        const bool inside = at >= 0 && at < valid;
        if (inside)
            atomicOr(&words[at / 32], 1u << (at % 32));
        const int taken = __syncthreads_count(inside); /* and the bits are seen by all */
        cursor += taken;
        if (taken < block_threads)
            return cursor;
        const int64_t last = position(cursor - 1);
        if (position(cursor - block_threads) == last)
            cursor = block_lower_bound(position, cursor, count, last + 1);
    }
}

/* The same for the bits of a tile_of<Type>. */
template <typename Type, typename Position>
__device__ int64_t block_mark(const Position &position, int64_t cursor, int64_t count, int64_t begin, int valid,
                              unsigned *words)
{
    return block_mark_words(position, cursor, count, begin, valid, words, tile_bits<Type>::word_count);
}

/* Starts of the segments of n elements, in any form. */
struct segment_starts {
    const void *heads;
    spmv_segment_form form;
    int bits; /* of a position, or of a flag: 8 or 1 */
    int64_t count;

    __device__ int64_t operator()(int64_t s) const
    {
        return position_at(heads, bits, s);
    }

    /* Where the positions from element begin on are to be found. */
    __device__ int64_t block_seek(int64_t begin) const
    {
        return form == SPMV_SEGMENT_FLAGS ? 0 : block_lower_bound(*this, 0, count, begin);
    }

    /* Bit j: the thread's element j of the tile starts a segment. Element 0 needs no bit: what is carried into it is
     * the identity. Moves the cursor. words: the
     * tile's bits in shared memory; a barrier lies between two uses. */
    template <typename Type>
    __device__ unsigned block_starts(int64_t *cursor, int64_t begin, int valid, unsigned *words) const
    {
        constexpr int items = tile_of<Type>::items;
        if (form != SPMV_SEGMENT_FLAGS) {
            *cursor = block_mark<Type>(*this, *cursor, count, begin, valid, words);
            return tile_bits<Type>::of_thread(words, (int)threadIdx.x);
        }
        unsigned mine = 0;
        const int first = (int)threadIdx.x * items;
        if (bits == 1) {
            const unsigned *const flag_words = (const unsigned *)heads;
            for (int j = 0; j < items; j++)
                if (first + j < valid)
                    mine |= (flag_words[(begin + first + j) / 32] >> ((begin + first + j) % 32) & 1u) << j;
            return mine;
        }
        const unsigned char *flags = (const unsigned char *)heads + begin + first;
        /* begin and first are multiples of 4, unless elements are so large that a thread has fewer */
        if (items % 4 == 0 && valid == tile_of<Type>::size && (uintptr_t)heads % 4 == 0) {
#pragma unroll
            for (int k = 0; k < items / 4; k++) {
                const unsigned four = ((const unsigned *)flags)[k];
#pragma unroll
                for (int j = 0; j < 4; j++)
                    mine |= (unsigned)((four >> (8 * j) & 0xffu) != 0) << (4 * k + j);
            }
        } else {
            for (int j = 0; j < items; j++)
                if (first + j < valid && flags[j] != 0)
                    mine |= 1u << j;
        }
        return mine;
    }
};

inline segment_starts starts_of(const spmv_segments *segments)
{
    return {segments->heads, segments->form, segments->bits, segments->count};
}

/* The walk along elements and segment ends: n + count steps, each of which takes an element or closes a segment, a
 * segment being closed once all elements before its end are taken. Step end(s) + s closes segment s; that never
 * repeats, so however many segments are empty, no tile of steps gets more than its share.
 * (The merge path of S. Green, R. McColl, D. Bader, ICS 2012, and D. Merrill, M. Garland, "Merge-based parallel sparse
 * matrix-vector multiplication", SC 2016, with the search along the diagonal turned into a plain lower bound.) */
struct segment_closings {
    const void *heads;
    int bits;
    int64_t count, n;

    __device__ int64_t operator()(int64_t s) const
    {
        return (s + 1 < count ? position_at(heads, bits, s + 1) : n) + s;
    }
};

inline segment_closings closings_of(const spmv_segments *segments, int64_t n)
{
    return {segments->heads, segments->bits, segments->count, n};
}

#endif

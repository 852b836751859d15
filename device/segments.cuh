/* The segment starts and ends of a tile, as one bit per element.
 *
 * Positions (ascending) are converted to the bits of a tile without an array of flags in memory.
 * Each chunk finds its first position by one search and then streams through the positions. A batch
 * of block_threads positions sets its bits in shared memory; the number of them in the tile
 * advances the cursor. A search skips equal positions (empty segments) that are more than a
 * batch, so millions of empty segments at one place add no time to a tile.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SPMV_SEGMENTS_CUH
#define SPMV_SEGMENTS_CUH

#include <spmv/primitives.h>

#include "device/tiles.cuh"

template <typename Type> struct tile_bits {
    static constexpr int word_count = tile_of<Type>::size / 32;

    /* The bits of thread t's elements; bit 0 is the first element. */
    static __host__ __device__ unsigned of_thread(const unsigned *words, int t)
    {
        constexpr int items = tile_of<Type>::items;
        const int bit = t * items, from = bit % 32;
        unsigned bits = words[bit / 32] >> from;
        if (32 % items != 0 && from + items > 32) /* an element of 12 bytes, for example */
            bits |= words[bit / 32 + 1] << (32 - from);
        return bits & ((1u << items) - 1u);
    }
};

__device__ inline int64_t position_at(const void *positions, int bits, int64_t i)
{
    return bits == 32 ? (int64_t)((const int32_t *)positions)[i] : ((const int64_t *)positions)[i];
}

/* Sets words to the bits of the positions cursor, cursor + 1, ... that lie in [begin,
 * begin + valid). Returns the cursor after them. position(cursor) >= begin. */
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
        /* also a barrier: all threads see the bits */
        const int taken = __syncthreads_count(inside);
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

/* The starts of the segments of n elements, in any form. */
struct segment_starts {
    const void *heads;
    spmv_segment_form form;
    int bits; /* of a position, or of a flag: 8 or 1 */
    int64_t count;

    __device__ int64_t operator()(int64_t s) const
    {
        return position_at(heads, bits, s);
    }

    /* The index of the first position at or after element begin. */
    __device__ int64_t block_seek(int64_t begin) const
    {
        return form == SPMV_SEGMENT_FLAGS ? 0 : block_lower_bound(*this, 0, count, begin);
    }

    /* Bit j: element j of the thread starts a segment. Element 0 of the array needs no bit, because
     * its carry is the identity. Advances the cursor. words: the tile's bits in shared memory; a
     * barrier must separate two uses. */
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
        /* begin and first are multiples of 4, unless large elements leave a thread fewer */
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

/* The merge path along elements and segment ends: n + count steps. Each step takes an element or
 * closes a segment; a segment is closed after all elements before its end are taken. Step end(s) +
 * s closes segment s. These steps are distinct, so no tile of steps has more than its share of
 * work, however many segments are empty. Source: S. Green, R. McColl, D. Bader, ICS 2012; D.
 * Merrill, M. Garland, "Merge-based parallel sparse matrix-vector multiplication", SC 2016; here
 * with a lower bound in place of the search along the diagonal. */
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

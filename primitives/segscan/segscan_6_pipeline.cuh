/* segmented scan, rung 6: that of scan on (value, start) pairs.
 *
 * idea      the persistent blocks, the copy engine and the chain of scan, rung 6. The engine loads
 *           flag bytes with the elements; takers read flags of one bit and positions, each warp for
 *           its own elements. The chain folds pairs.
 * work      as scan, rung 6
 * depth     as scan, rung 6
 * launches  1
 * bytes     2 n v and once the flags or positions
 * changed   as from rung 5 to rung 6 of scan
 * wins      everywhere on devices with a copy engine (9.0 to 11)
 * order     keeps the order of the operands; bits depend on n alone
 * source    Schwartz 1980; Sengupta et al. 2007; Merrill, Garland 2016
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SPMV_SEGSCAN_6_PIPELINE_CUH
#define SPMV_SEGSCAN_6_PIPELINE_CUH

#include "primitives/scan/scan_6_pipeline.cuh"
#include "primitives/segscan/segscan_5_lookback.cuh"

/* 28 elements of 4 bytes per thread: their bits fit in one word. Two teams of takers, because they
 * wait for positions. */
using segscan_6_shape = pipeline_shape<7, 2>;

/* Sets words to the bits of the positions cursor, cursor + 1, ... that lie in [begin,
 * begin + valid). Called by a warp. position(cursor) >= begin. After a batch of positions that are
 * all inside, further batches are read several at a time, so that their loads overlap. */
__device__ inline void warp_mark_words(const segment_starts &position, int64_t cursor, int64_t begin, int valid,
                                       unsigned *words, int words_count)
{
    constexpr int MANY = 4;
    const int lane = (int)threadIdx.x % warp_lanes;
    if (lane < words_count)
        words[lane] = 0;
    __syncwarp();
    for (int batches = 1;; batches = MANY) {
        bool inside[MANY] = {};
#pragma unroll
        for (int b = 0; b < MANY; b++) {
            const int64_t s = cursor + b * warp_lanes + lane;
            if (b >= batches)
                continue;
            const int64_t at = s < position.count ? position(s) - begin : valid;
            inside[b] = at < valid;
            if (inside[b])
                atomicOr(&words[at / 32], 1u << (at % 32));
        }
        int taken = 0;
#pragma unroll
        for (int b = 0; b < MANY; b++)
            taken += __popc(__ballot_sync(0xffffffffu, inside[b]));
        cursor += taken;
        if (taken < batches * warp_lanes)
            return;
        const int64_t last = position(cursor - 1);
        if (position(cursor - warp_lanes) == last) /* many empty segments */
            cursor = warp_lower_bound_near(position, position.count, cursor, last + 1);
    }
}

struct segment_heads {
    static constexpr bool ANY = true;
    template <typename Op> using fold = chain_segmented<Op>;
    template <typename Tile> union alignas(16) cells {
        unsigned char flags[Tile::size]; /* loaded by the engine */
        unsigned words[Tile::size / 32]; /* bits */
    };

    segment_starts segments;
    int64_t n;
    bool engine; /* flags are bytes, aligned */

    template <typename Tile> __device__ unsigned engine_bytes() const
    {
        return engine ? Tile::size : 0;
    }
    template <typename Tile> __device__ void bring(int64_t begin, cells<Tile> *to, arrival *at) const
    {
        if (engine)
            engine_load(to->flags, (const unsigned char *)segments.heads + begin, Tile::size, at);
    }

    /* Called by the takers. by_engine: the engine loaded the tile. Otherwise each warp converts the
     * segment starts of its elements to bits, a word for each of its first Tile::items lanes. */
    template <typename Tile> __device__ void stage(int64_t begin, int valid, bool by_engine, cells<Tile> *in) const
    {
        constexpr int WORDS = Tile::items;
        static_assert(WORDS <= warp_lanes, "a word a lane");
        if (engine && by_engine)
            return;
        const int lane = (int)threadIdx.x % warp_lanes, first = pipeline_thread() / warp_lanes * WORDS;
        unsigned *const words = in->words + first;
        if (segments.form != SPMV_SEGMENT_FLAGS) {
            const int64_t from = begin + 32 * first;
            const int64_t likely = (int64_t)((double)from / (double)n * (double)segments.count);
            warp_mark_words(segments, warp_lower_bound_near(segments, segments.count, likely, from), from,
                            valid - 32 * first < 32 * WORDS ? valid - 32 * first : 32 * WORDS, words, WORDS);
        } else if (lane < WORDS) {
            words[lane] = segments.bits == 1
                              ? load_flag_bits((const unsigned *)segments.heads, begin, valid, first + lane)
                              : load_flags((const unsigned char *)segments.heads, begin, valid, first + lane);
        }
        __syncwarp();
    }

    /* Bit j: element j of the thread starts a segment. */
    template <typename Tile> __device__ unsigned starts(bool by_engine, const cells<Tile> *in) const
    {
        return engine && by_engine ? bits_of_flags<Tile::items>(in->flags + pipeline_thread() * Tile::items)
                                   : bits_of_words<Tile::items>(in->words);
    }

    /* Reads no word of another warp, which may not be there yet. */
    template <int ITEMS> static __device__ unsigned bits_of_words(const unsigned *words)
    {
        const int bit = pipeline_thread() * ITEMS;
        const unsigned high = bit % 32 + ITEMS > 32 ? words[bit / 32 + 1] : 0;
        const uint64_t two = (uint64_t)high << 32 | words[bit / 32];
        return (unsigned)(two >> (bit % 32)) & (0xffffffffu >> (32 - ITEMS));
    }

    /* Reads from shared memory, as many bytes at a time as the alignment allows. */
    template <int ITEMS> static __device__ unsigned bits_of_flags(const unsigned char *flags)
    {
        unsigned bits = 0;
        if constexpr (ITEMS % 4 == 0) {
#pragma unroll
            for (int k = 0; k < ITEMS / 4; k++)
                bits |= nonzero_bytes(((const unsigned *)flags)[k]) << (4 * k);
        } else if constexpr (ITEMS % 2 == 0) {
#pragma unroll
            for (int k = 0; k < ITEMS / 2; k++)
                bits |= nonzero_bytes(((const unsigned short *)flags)[k]) << (2 * k);
        } else {
#pragma unroll
            for (int k = 0; k < ITEMS; k++)
                bits |= (flags[k] != 0 ? 1u : 0u) << k;
        }
        return bits;
    }
};

/* store(i, the scan of load, restarted at each start), n > 0. Load and store may access the same
 * memory. Requires engine_there(ctx). */
template <typename Op, typename Shape = segscan_6_shape, typename Load, typename Store>
spmv_status segscan_6_launch(spmv_context *ctx, Load load, Store store, segment_starts segments, int64_t n,
                             bool exclusive)
{
    const bool bytes = segments.form == SPMV_SEGMENT_FLAGS && segments.bits != 1;
    const segment_heads heads = {segments, n, bytes && (uintptr_t)segments.heads % 16 == 0};
    return scan_6_launch<Op, Shape>(ctx, load, store, heads, n, exclusive);
}

#endif

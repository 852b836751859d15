/* segmented scan, rung 3: scan, rung 6, on (value, start) pairs.
 *
 * idea      the persistent blocks, the copy engine and the chain of scan, rung 6. The engine loads
 *           flag bytes with the elements; the threads read flags of one bit and positions. The
 *           chain folds pairs.
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
#ifndef SPMV_SEGSCAN_3_PIPELINE_CUH
#define SPMV_SEGSCAN_3_PIPELINE_CUH

#include "scan_6_pipeline.cuh"
#include "segscan_2_lookback.cuh"

/* 28 elements of 4 bytes per thread: their bits fit in one word. */
using segscan_3_shape = lookback_shape<block_threads, 7, 2>;

struct segment_heads {
    static constexpr bool ANY = true;
    template <typename Op> using fold = chain_segmented<Op>;
    template <typename Tile> union alignas(16) cells {
        unsigned char flags[Tile::size];     /* loaded by the engine */
        unsigned words[Tile::size / 32 + 1]; /* bits */
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

    /* Bit j: element j of the thread starts a segment. by_engine: the engine loaded the tile. */
    template <typename Tile> __device__ unsigned starts(int64_t begin, int valid, bool by_engine, cells<Tile> *in) const
    {
        constexpr int ITEMS = Tile::items, WORDS = Tile::size / 32;
        static_assert(ITEMS <= 32 && WORDS <= block_threads && Tile::size == block_threads * ITEMS,
                      "a word of bits a thread");
        if (engine && by_engine)
            return bits_of_flags<ITEMS>(in->flags + (int)threadIdx.x * ITEMS);
        if (segments.form == SPMV_SEGMENT_FLAGS) {
            if (threadIdx.x < WORDS)
                in->words[threadIdx.x] = segments.bits == 1
                                             ? load_flag_bits((const unsigned *)segments.heads, begin, valid)
                                             : load_flags((const unsigned char *)segments.heads, begin, valid);
            __syncthreads();
        } else {
            block_mark_words(segments,
                             block_lower_bound_near(segments, segments.count, (double)begin / (double)n, begin),
                             segments.count, begin, valid, in->words, WORDS);
            __syncthreads();
        }
        return bits_of_thread(in->words, ITEMS);
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
template <typename Op, typename Shape = segscan_3_shape, typename Load, typename Store>
spmv_status segscan_3_launch(spmv_context *ctx, Load load, Store store, segment_starts segments, int64_t n,
                             bool exclusive)
{
    const bool bytes = segments.form == SPMV_SEGMENT_FLAGS && segments.bits != 1;
    const segment_heads heads = {segments, n, bytes && (uintptr_t)segments.heads % 16 == 0};
    return scan_6_launch<Op, Shape>(ctx, load, store, heads, n, exclusive);
}

#endif

/* The chain: one block of a launch folds the results of all tiles in order and gives each tile its
 * prefix.
 *
 * A tile publishes its aggregate, the fold of its own elements, and later reads its prefix, the
 * fold of all tiles before it. The chain block computes the prefixes. Each of its warps watches a
 * window of 32 tiles, scans their aggregates and combines them with the carry from the warp of the
 * window before. The carry goes through shared memory; the warp waits for it on an mbarrier,
 * without polling device memory. Compared with look-back (lookback.cuh), a tile reads one word in
 * place of a hundred, and a prefix advances 32 tiles per shared-memory access in place of some 60
 * per access to another multiprocessor.
 *
 * Bits: windows, the scan within a window and the order of windows are fixed. Timing affects when a
 * prefix is published, not its value.
 *
 * Progress: blocks draw numbers from a counter; number 0 is the chain block. A tile publishes its
 * aggregate without waiting for another tile. The prefix of tile t is published as soon as all
 * aggregates before t are there, even if others of the window are missing. So a block may hold
 * several tiles if it publishes the aggregate of each without waiting for the prefix of a later
 * one: the smallest tile without an aggregate then never waits for a prefix that depends on it. The
 * device must be able to run the chain block and one more block at the same time. If each block has
 * one tile, its index replaces the drawn number, which saves an access to device memory before the
 * loads; a device starts blocks in the order of their index.
 *
 * Memory: rings of CHAIN_RING cells, independent of n, owned by the context. They need no clearing:
 * a word carries the round of the ring that it belongs to, and rounds are counted across launches.
 * An aggregate's cell is reused after one round of the ring. A block holds at most CHAIN_HELD
 * tiles, so at most CHAIN_HELD * blocks tiles are drawn after the first tile that is not folded
 * yet; this is less than the ring (chain_blocks). A tile marks its prefix's cell as free by writing
 * 0 after reading it.
 * Words: as in lookback.cuh, an element is stored in parts of 32 bits, each with its round in the
 * same word, so relaxed accesses suffice.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SPMV_CHAIN_CUH
#define SPMV_CHAIN_CUH

#include "device/copy_engine.cuh"
#include "device/lookback.cuh"

enum { CHAIN_RING = 4096, CHAIN_WORDS = 8, CHAIN_HELD = 24, CHAIN_WARPS = 32 };

/* Rounds are 31-bit numbers above 0. When they reach this limit, the aggregates are cleared and
 * counting restarts. */
enum : unsigned { CHAIN_LAST_ROUND = 1u << 30 };

/* All 0 before the first launch. */
struct chain_memory {
    int drawn;      /* numbers drawn in this launch */
    int ended;      /* blocks of this launch that have finished */
    unsigned round; /* rounds before this launch */
    uint64_t aggregates[CHAIN_WORDS][CHAIN_RING], prefixes[CHAIN_WORDS][CHAIN_RING];
};

/* Stores value in 32-bit parts, each with the round. start: whether a segment starts in the
 * tile. */
template <typename T>
__device__ void chain_put(uint64_t (*words)[CHAIN_RING], int cell, unsigned round, bool start, T value)
{
    const element_words<T> p = element_words<T>::of(value);
    static_assert(element_words<T>::count <= CHAIN_WORDS, "an element has room");
#pragma unroll
    for (int w = 0; w < element_words<T>::count; w++)
        store_relaxed(&words[w][cell], (uint64_t)(round << 1 | (start ? 1u : 0u)) << 32 | p.at[w]);
}

template <typename T>
__device__ bool chain_get(const uint64_t (*words)[CHAIN_RING], int cell, unsigned round, bool *start, T *value)
{
    uint64_t word[element_words<T>::count];
    element_words<T> p;
    bool there = true;
#pragma unroll
    for (int w = 0; w < element_words<T>::count; w++)
        word[w] = load_relaxed(&words[w][cell]);
#pragma unroll
    for (int w = 0; w < element_words<T>::count; w++) {
        there = there && (unsigned)(word[w] >> 33) == round;
        p.at[w] = (uint32_t)word[w];
    }
    *start = (word[0] >> 32 & 1u) != 0;
    *value = p.value();
    return there;
}

/* The operand types of the chain: elements, or elements with a segment start. */
template <typename Op> struct chain_plain {
    using type = typename Op::type;
    using value = type;
    static __device__ type make(value v, bool)
    {
        return v;
    }
    static __device__ value value_of(type x)
    {
        return x;
    }
    static __device__ bool starts(type)
    {
        return false;
    }
    __device__ type operator()(type earlier, type later) const
    {
        return Op()(earlier, later);
    }
    static __device__ type identity()
    {
        return Op::identity();
    }
};

template <typename Op> struct chain_segmented : combine_segments<Op> {
    using type = typename combine_segments<Op>::type;
    using value = typename Op::type;
    static __device__ type make(value v, bool start)
    {
        return {v, start ? 1 : 0};
    }
    static __device__ value value_of(type x)
    {
        return x.value;
    }
    static __device__ bool starts(type x)
    {
        return x.start != 0;
    }
};

/* In shared memory of the chain block: the carry that each warp receives from the warp of the
 * window before. */
template <typename Fold> struct chain_cells {
    arrival handed[CHAIN_WARPS];
    typename Fold::type carry[CHAIN_WARPS]; /* the fold of all windows before the warp's next one */

    /* Called by all lanes of a warp, then engine_prepared, then a barrier. */
    __device__ void prepare()
    {
        engine_prepare(handed, CHAIN_WARPS);
        if (threadIdx.x % warp_lanes == 0)
            hand(0, Fold::identity());
    }

    __device__ void hand(int warp, typename Fold::type carry_of_all_before)
    {
        carry[warp] = carry_of_all_before;
        engine_expect_nothing(&handed[warp]);
    }
};

/* The tiles of a launch. */
template <typename Fold> struct chain {
    using T = typename Fold::value;
    chain_memory *memory;
    int64_t tiles;
    unsigned first_round;

    /* Called by all threads first. */
    __device__ void begin()
    {
        first_round = memory->round + 1u;
    }

    __device__ unsigned round_of(int64_t tile) const
    {
        return first_round + (unsigned)(tile / CHAIN_RING);
    }

    /* Whether each block has one tile or is the chain block. Then a block's number is that of its
     * index. */
    __device__ bool one_each() const
    {
        return gridDim.x == 1 || (int64_t)gridDim.x == tiles + 1;
    }

    __device__ int64_t draw() const /* Returns -1 for the chain block. Called by one thread. */
    {
        return (int64_t)atomicAdd(&memory->drawn, 1) - 1;
    }

    __device__ void publish(int64_t tile, T value, bool start) const
    {
        SPMV_SEAM(Fold, (void)0, before_publishing((int)tile));
        chain_put(memory->aggregates, (int)(tile % CHAIN_RING), round_of(tile), start, value);
    }

    /* Returns whether the tile's prefix is there, and reads it. Call it until it returns true, then
     * no more. Called by one thread. */
    __device__ bool pick_up(int64_t tile, T *prefix) const
    {
        bool start;
        const int cell = (int)(tile % CHAIN_RING);
        const bool there = chain_get(memory->prefixes, cell, round_of(tile), &start, prefix);
        if (there)
            store_relaxed(&memory->prefixes[0][cell], (uint64_t)0);
        return there;
    }

    /* The chain block: all its warps, at most CHAIN_WARPS. */
    __device__ void run(chain_cells<Fold> *cells) const;

    /* Whether a block may call end as soon as it draws no more. It may not if the cells are to be
     * cleared, because this launch still reads them. Otherwise it may, because the next launch
     * starts only after this one has finished. */
    __device__ bool may_end_early() const
    {
        return first_round < CHAIN_LAST_ROUND;
    }

    /* Called by one thread of each block at its end. The last one resets the counters for the next
     * launch. */
    __device__ void end() const
    {
        if (atomicAdd(&memory->ended, 1) != (int)gridDim.x - 1)
            return;
        memory->drawn = 0;
        memory->ended = 0;
        memory->round = first_round - 1u + (unsigned)((tiles + CHAIN_RING - 1) / CHAIN_RING);
        if (memory->round < CHAIN_LAST_ROUND)
            return;
        memory->round = 0;
        for (int p = 0; p < CHAIN_WORDS; p++)
            for (int c = 0; c < CHAIN_RING; c++)
                memory->aggregates[p][c] = 0;
    }
};

template <typename Fold> __device__ void chain<Fold>::run(chain_cells<Fold> *cells) const
{
#if SPMV_HAVE_COPY_ENGINE
    using X = typename Fold::type;
    const Fold fold{};
    const int lane = (int)threadIdx.x % warp_lanes, warp = (int)threadIdx.x / warp_lanes,
              warps = (int)blockDim.x / warp_lanes;
    for (int64_t round = 0, window = warp; window * warp_lanes < tiles; round++, window += warps) {
        const int64_t tile = window * warp_lanes + lane;
        const int at = (int)(tile % CHAIN_RING);
        bool there = tile >= tiles, told = there, room = there, turn = false, passed = false, spread = false;
        int ready = 0; /* the first ready aggregates are there and folded into through */
        X mine = Fold::identity(), through = mine, earlier = mine, carry = mine;
        while (!passed || !__all_sync(0xffffffffu, told)) {
            if (ready < warp_lanes) {
                if (!there) {
                    T value;
                    bool start;
                    there = chain_get(memory->aggregates, at, round_of(tile), &start, &value);
                    if (there)
                        mine = Fold::make(value, start);
                }
                const unsigned missing = ~__ballot_sync(0xffffffffu, there);
                const int now = missing == 0 ? warp_lanes : __ffs((int)missing) - 1;
                if (now > ready) {
                    ready = now;
                    through = warp_inclusive(fold, mine);
                    earlier = shuffle_up(through, 1);
                }
            }
            if (!room)
                room = load_relaxed(&memory->prefixes[0][at]) == 0;
            if (!turn) {
                /* Nothing else to do. A loop would take instructions from the warp whose turn it is. */
                if (ready == warp_lanes && __all_sync(0xffffffffu, room))
                    engine_await(&cells->handed[warp], (unsigned)round);
                turn = __all_sync(0xffffffffu, engine_arrived(&cells->handed[warp], (unsigned)round));
                if (turn && lane == warp_lanes - 1)
                    carry = cells->carry[warp];
            }
            /* comes first because the next window waits for it */
            if (turn && ready == warp_lanes && !passed) {
                passed = true;
                if (lane == warp_lanes - 1)
                    cells->hand(warp + 1 < warps ? warp + 1 : 0, fold(carry, through));
            }
            if (turn && !spread) {
                spread = true;
                carry = shuffle_by(carry, [](auto word) { return __shfl_sync(0xffffffffu, word, warp_lanes - 1); });
            }
            if (!told && turn && room && lane <= ready) {
                chain_put(memory->prefixes, at, round_of(tile), false,
                          Fold::value_of(lane == 0 ? carry : fold(carry, earlier)));
                told = true;
            }
        }
    }
#else /* not possible on the host: blocks run one after the other and cannot wait for later ones */
    (void)cells;
#endif
}

/* Blocks of a launch: as many as the device runs at once, limited by the tiles and the ring. */
inline int chain_blocks(const spmv_context *ctx, int each_multiprocessor, int64_t tiles)
{
    const int64_t full = (int64_t)((const cuda_state *)ctx->device)->multiprocessors * each_multiprocessor;
    const int64_t most = (CHAIN_RING - warp_lanes) / CHAIN_HELD;
    const int64_t blocks = full < most ? full : most;
    return (int)(blocks < tiles + 1 ? blocks : tiles + 1);
}

inline chain_memory *chain_of(const spmv_context *ctx)
{
    return (chain_memory *)((const cuda_state *)ctx->device)->chain;
}

#endif

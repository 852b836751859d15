/* Decoupled look-back: the tiles of one launch compute their prefixes, with bitwise repeatable
 * results.
 *
 * Each tile has a state: EMPTY; AGGREGATE, the fold of the tile alone; or PREFIX, the fold of
 * everything up to the tile's end. A tile publishes its aggregate as soon as it has it. It then
 * looks back over its predecessors to the nearest prefix, folds the aggregates after that prefix
 * onto it, and publishes its own prefix. So a tile waits for the loads of its predecessors, not for
 * their look-back.
 *
 * Bits: the prefix before tile k is P = ((carry op A_0) op A_1) ... op A_{k-1}. Every prefix that a
 * look-back finds was folded in that order, and the aggregates after it are folded onto it from
 * left to right. So the result does not depend on where the look-back stopped.
 *
 * Progress: a tile's number is drawn from a counter when its block starts, so all smaller numbers
 * belong to blocks that run or have finished. A tile waits only for smaller numbers. The block with
 * the smallest unfinished number waits for no other and finishes; the rest follows by induction,
 * whatever the order in which the device starts and delays blocks.
 *
 * Memory order: a state has one 64-bit word for each 32 bits of the element, with the status in the
 * other half. A word is read and written in one access, and a reader accepts an element only if all
 * its words have the same status. So no word guards data elsewhere, and relaxed accesses suffice.
 * (A tile writes its AGGREGATE words, then its PREFIX words, one value each: equal statuses mean
 * parts of one value.)
 *
 * Sizes: a launch has at most most_tiles states, so the scratch has a constant size. Longer arrays
 * take several launches, which pass the prefix on in memory.
 * Source: D. Merrill, M. Garland, "Single-pass parallel prefix scan with decoupled look-back",
 * NVR-2016-002, 2016.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SPMV_LOOKBACK_CUH
#define SPMV_LOOKBACK_CUH

#include "device/launch.cuh"
#include "device/tiles.cuh"

/* Bytes of states: one launch processes 2^28 elements of 4 or 8 bytes. Tests build with fewer
 * bytes, to have several launches at small n. */
#ifndef SPMV_LOOKBACK_BYTES
#define SPMV_LOOKBACK_BYTES (1 << 20)
#endif
enum { lookback_bytes = SPMV_LOOKBACK_BYTES, lookback_header = 256 };

/* Where tests change the code, for operators of their own (tests/device/lookback_delays.cuh).
 * Otherwise only `usual`. */
#ifndef SPMV_SEAM
#define SPMV_SEAM(Op, usual, delayed) (usual)
#endif

enum lookback_status { lookback_empty = 0, lookback_aggregate = 1, lookback_prefix = 2 };

/* Word: uint32_t or uint64_t. */
template <typename Word> __device__ inline Word load_relaxed(const Word *word)
{
#ifdef __CUDA_ARCH__
    Word value;
    if constexpr (sizeof(Word) == sizeof(uint64_t))
        asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(value) : "l"(word) : "memory");
    else
        asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(word) : "memory");
    return value;
#else
    return *(const volatile Word *)word;
#endif
}

template <typename Word> __device__ inline void store_relaxed(Word *word, Word value)
{
#ifdef __CUDA_ARCH__
    if constexpr (sizeof(Word) == sizeof(uint64_t))
        asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(word), "l"(value) : "memory");
    else
        asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" ::"l"(word), "r"(value) : "memory");
#else
    *(volatile Word *)word = value;
#endif
}

/* An element as 32-bit parts, for state words and shuffles. */
template <typename Type> struct element_words {
    static constexpr int count = (int)(sizeof(Type) / sizeof(uint32_t));
    static_assert(sizeof(Type) % sizeof(uint32_t) == 0, "whole words");
    uint32_t at[count];

    static __device__ element_words of(Type value)
    {
        element_words p;
        memcpy(p.at, &value, sizeof value);
        return p;
    }
    __device__ Type value() const
    {
        Type v;
        memcpy(&v, at, sizeof v);
        return v;
    }
    /* The lane's value, in all lanes of the warp. */
    __device__ Type from_lane(int lane) const
    {
        element_words p;
#pragma unroll
        for (int w = 0; w < count; w++)
            p.at[w] = __shfl_sync(0xffffffffu, at[w], lane);
        return p.value();
    }
};

/* The tiles of one launch. */
template <typename Type> struct lookback_states {
    static constexpr int most_tiles = lookback_bytes / (int)sizeof(uint64_t) / element_words<Type>::count;

    uint64_t *words;      /* words[part * tiles + tile] */
    int *ticket;          /* the next number to draw */
    const Type *carry_in; /* the prefix before tile 0; NULL: the identity */
    Type *carry_out;      /* the prefix after the last tile */
    int tiles;

    __device__ void publish(int tile, lookback_status status, Type value) const
    {
        const element_words<Type> p = element_words<Type>::of(value);
#pragma unroll
        for (int w = 0; w < element_words<Type>::count; w++)
            store_relaxed(words + (int64_t)w * tiles + tile, (uint64_t)status << 32 | p.at[w]);
    }

    /* The status of a tile, and its value unless EMPTY. */
    __device__ lookback_status look(int tile, element_words<Type> *value) const
    {
        uint64_t word[element_words<Type>::count];
#pragma unroll
        for (int w = 0; w < element_words<Type>::count; w++)
            word[w] = load_relaxed(words + (int64_t)w * tiles + tile);
        bool whole = true;
#pragma unroll
        for (int w = 0; w < element_words<Type>::count; w++) {
            value->at[w] = (uint32_t)word[w];
            whole = whole && word[w] >> 32 == word[0] >> 32;
        }
        return whole ? (lookback_status)(word[0] >> 32) : lookback_empty;
    }
};

/* Predecessors that a look-back reads at once: lookback_windows for each lane. A tile that finds no
 * prefix among them waits until there is one (see Progress). At full speed the nearest prefix is
 * some 60 tiles away: the tiles that the device finishes in the microsecond that a state takes from
 * one multiprocessor to another. */
enum { lookback_windows = 4, lookback_depth = lookback_windows * warp_lanes };

/* Returns the prefix before tile > 0, the same in all lanes. Called by one whole warp. */
template <typename Op>
__device__ typename Op::type warp_look_back(Op op, const lookback_states<typename Op::type> &states, int tile,
                                            int pause_ns)
{
    using Type = typename Op::type;
    const int lane = (int)threadIdx.x % warp_lanes;
    /* the state of tile - lookback_depth + warp_lanes w + lane */
    element_words<Type> seen[lookback_windows];
    int nearest = -1; /* index of the nearest prefix, counted likewise */
    for (int attempt = 0; nearest < 0; attempt++) {
        if (attempt > 0 && pause_ns > 0) {
#ifdef __CUDA_ARCH__
            __nanosleep((unsigned)pause_ns);
#endif
        }
        lookback_status status[lookback_windows];
#pragma unroll
        for (int w = 0; w < lookback_windows; w++) {
            const int other = tile - lookback_depth + warp_lanes * w + lane;
            seen[w] = element_words<Type>::of(Op::identity());
            status[w] = other >= 0 ? states.look(other, &seen[w]) : lookback_empty;
            if (!SPMV_SEAM(Op, true, sees(other, attempt)))
                status[w] = lookback_empty;
        }
        /* all states nearer than this window are there, and none is a prefix */
        bool complete = true;
#pragma unroll
        for (int w = lookback_windows - 1; w >= 0; w--) {
            const unsigned prefixes = __ballot_sync(0xffffffffu, status[w] == lookback_prefix);
            const unsigned missing = __ballot_sync(0xffffffffu, status[w] == lookback_empty);
            if (complete && prefixes > missing) /* true if the highest bit is a prefix's */
                nearest = warp_lanes * w + warp_lanes - 1 - __clz((int)prefixes);
            complete = complete && prefixes == 0 && missing == 0;
        }
    }
    Type sum = Op::identity();
#pragma unroll
    for (int w = 0; w < lookback_windows; w++) {
        if (warp_lanes * (w + 1) <= nearest)
            continue;
#pragma unroll 8
        for (int l = 0; l < warp_lanes; l++) {
            const Type next = seen[w].from_lane(l);
            if (warp_lanes * w + l == nearest)
                sum = next;
            else if (warp_lanes * w + l > nearest)
                sum = op(sum, next);
        }
    }
    return sum;
}

/* Returns the prefix before the block's tile to all threads of the block. aggregate: the fold of
 * the tile. fresh: a segment starts in the tile, so the aggregate is already the prefix. cell: one
 * element of shared memory. */
template <typename Op>
__device__ typename Op::type block_look_back(Op op, const lookback_states<typename Op::type> &states, int tile,
                                             typename Op::type aggregate, bool fresh, typename Op::type *cell,
                                             int pause_ns)
{
    using Type = typename Op::type;
    if (threadIdx.x < warp_lanes) {
        const bool first = threadIdx.x == 0;
        if (first && (tile > 0 || fresh)) {
            SPMV_SEAM(Op, (void)0, before_publishing(tile));
            states.publish(tile, fresh ? lookback_prefix : lookback_aggregate, aggregate);
        }
        Type before = Op::identity();
        if (tile > 0)
            before = warp_look_back(op, states, tile, pause_ns);
        else if (states.carry_in != NULL)
            before = *states.carry_in;
        if (first) {
            const Type through = fresh ? aggregate : op(before, aggregate);
            if (!fresh && (tile == 0 || SPMV_SEAM(Op, true, publishes_prefix(tile)))) {
                SPMV_SEAM(Op, (void)0, before_publishing(tile));
                states.publish(tile, lookback_prefix, through);
            }
            if (tile == states.tiles - 1)
                *states.carry_out = through;
            *cell = before;
        }
    }
    __syncthreads();
    return *cell;
}

/* Returns the number of the block's tile. cell: in shared memory. */
template <typename Op> __device__ int block_draw_ticket(const lookback_states<typename Op::type> &states, int *cell)
{
    if (threadIdx.x == 0) {
        const int drawn = atomicAdd(states.ticket, 1);
        *cell = SPMV_SEAM(Op, drawn, tile_of(drawn, states.tiles));
    }
    __syncthreads();
    return *cell;
}

/* Sets all states to EMPTY and the counter to 0. */
[[maybe_unused]] static __global__ void __launch_bounds__(block_threads)
    lookback_reset(uint64_t *words, int64_t count, int *ticket)
{
    if (blockIdx.x == 0 && threadIdx.x == 0)
        *ticket = 0;
    for (int64_t i = (int64_t)blockIdx.x * block_threads + threadIdx.x; i < count;
         i += (int64_t)gridDim.x * block_threads)
        words[i] = 0;
}

/* Bytes of scratch for tiles tiles of elements of element_bytes: a header with the counter and two
 * carries, and the states. */
inline int64_t lookback_scratch(int64_t element_bytes, int64_t tiles)
{
    const int64_t words = tiles * (element_bytes / (int64_t)sizeof(uint32_t)) * (int64_t)sizeof(uint64_t);
    return lookback_header + (words < lookback_bytes ? words : (int64_t)lookback_bytes);
}

/* Calls body(first tile, states) for each launch that the tiles need, after resetting its states. A
 * single tile needs no reset. */
template <typename Type, typename Body>
spmv_status lookback_launches(spmv_context *ctx, int64_t tiles, void *scratch, const Body &body)
{
    static_assert(64 + 2 * sizeof(Type) <= lookback_header, "the header has room for the carries");
    Type *const carry = (Type *)((char *)scratch + 64);
    lookback_states<Type> states = {(uint64_t *)((char *)scratch + lookback_header), (int *)scratch, NULL, carry,
                                    (int)tiles};
    spmv_status st = SPMV_OK;
    int launches = 0;
    for (int64_t first = 0; first < tiles && st == SPMV_OK; first += states.tiles, launches++) {
        states.tiles = tiles - first < states.most_tiles ? (int)(tiles - first) : (int)states.most_tiles;
        states.carry_in = launches > 0 ? carry + (launches - 1) % 2 : NULL;
        states.carry_out = carry + launches % 2;
        const int64_t words = (int64_t)states.tiles * element_words<Type>::count;
        if (tiles > 1)
            st = launch(ctx, "lookback_reset", grid_for(words, 4 * block_threads), block_threads, lookback_reset,
                        states.words, words, states.ticket);
        if (st == SPMV_OK)
            st = body(first, states);
    }
    return st;
}

#endif

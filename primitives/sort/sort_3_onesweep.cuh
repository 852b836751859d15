/* sort, rung 3: one sweep over the elements per digit.
 *
 * idea      one initial pass counts all digits, so the start of each digit's range in the output of
 *           each pass is known. A pass is then one launch. A block counts the digits of its tile
 *           and publishes the counts. It ranks its elements, and meanwhile the counts of the tiles
 *           before it arrive. A thread per digit looks back over them to the nearest tile whose
 *           sum over all tiles up to it is known. The lanes of a warp with the same digit find
 *           each other by setting their bits in a word of shared memory.
 * work      about 25 n per pass of 8 bits
 * depth     n / (7680 resident blocks) per pass
 * launches  3, and 1 per pass
 * bytes     n k once, n (2 k + 2 v) per pass (k, v: the sizes of key and value), and 1 KiB for
 *           each tile of at most 7680 elements, four times
 * changed   keys are not read a second time for counts; no scan of counts between launches
 * wins      always
 * order     stable, so all rungs and backends give the same result
 * source    A. Adinets, D. Merrill, "Onesweep: a faster least significant digit radix sort for
 *           GPUs", arXiv:2206.01784, 2022
 *
 * Progress: as in lookback.cuh. A tile's number is drawn when its block starts, and a tile waits
 * only for smaller numbers.
 *
 * Memory order: a state is one 32-bit word, a status and a count, so relaxed accesses suffice.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SPMV_SORT_3_ONESWEEP_CUH
#define SPMV_SORT_3_ONESWEEP_CUH

#include "device/lookback.cuh"
#include "primitives/sort/sort_2_radix.cuh"

/* Tiles of a launch, which bounds the memory of the states. Longer arrays take several launches per
 * pass. Tests build with few. */
#ifndef SPMV_ONESWEEP_TILES
#define SPMV_ONESWEEP_TILES (1 << 15)
#endif

namespace onesweep
{

enum {
    THREADS = 384,
    WARPS = THREADS / warp_lanes,
    MOST_TILES = SPMV_ONESWEEP_TILES,
    MOST_PASSES = 8, /* of keys of 64 bits */
    COUNT_BITS = 30, /* of a state; the status is above */
    WINDOW = 4,      /* predecessors whose states a thread loads at once */
};

template <typename Key, typename Value> struct tile {
    static constexpr int bytes = (int)(sizeof(Key) > sizeof(Value) ? sizeof(Key) : sizeof(Value));
    static constexpr int items = bytes == 4 ? 20 : 15; /* at most 48 KiB of shared memory */
    static constexpr int size = THREADS * items;
    static constexpr int blocks = bytes == 4 && !has_value<Value> ? 3 : 2; /* of a multiprocessor */
    static_assert((int64_t)MOST_TILES * size < 1 << COUNT_BITS, "a launch's counts fit a state");
};

/* The states of a launch, RADIX for each tile, and the next tile to draw. All are 0 before. */
struct tile_states {
    int *ticket;
    uint32_t *of;
};

/* The scratch memory. */
struct memory {
    /* RADIX for each pass; then the start of each digit's range */
    unsigned long long *counts;
    /* the starts of the second and later launches of a pass, RADIX, used alternately */
    unsigned long long *carry[2];
    tile_states states[2]; /* used alternately: a launch clears those of the next */

    static int64_t bytes(int64_t tiles)
    {
        return (MOST_PASSES + 2) * RADIX * (int64_t)sizeof(unsigned long long) + 2 * state_bytes(tiles);
    }

    /* A multiple of 8. */
    static int64_t state_bytes(int64_t tiles)
    {
        return lookback_header + tiles * RADIX * (int64_t)sizeof(uint32_t);
    }

    memory(void *scratch, int64_t tiles) : counts((unsigned long long *)scratch)
    {
        char *at = (char *)(counts + (MOST_PASSES + 2) * RADIX);
        for (int i = 0; i < 2; i++, at += state_bytes(tiles)) {
            carry[i] = counts + (MOST_PASSES + i) * RADIX;
            states[i] = {(int *)at, (uint32_t *)(at + lookback_header)};
        }
    }
};

/* The tiles of the longest launch. */
template <typename Key, typename Value> int64_t most_tiles(int64_t n)
{
    const int64_t tiles = (n - 1) / tile<Key, Value>::size + 1;
    return tiles < MOST_TILES ? tiles : (int64_t)MOST_TILES;
}

/* The digits of a key in all passes. */
struct digits {
    int begin_bit, end_bit, passes;
};

/* counts[pass * RADIX + digit] += the keys with that digit. */
template <typename Key>
__global__ void __launch_bounds__(block_threads)
    count(const Key *keys, key_digit<Key> whole, digits d, int64_t n, unsigned long long *counts)
{
    enum { PASSES = (int)sizeof(Key), AT_ONCE = 8 };
    __shared__ unsigned in_block[PASSES][RADIX];
    for (int p = 0; p < PASSES; p++)
        in_block[p][threadIdx.x] = 0;
    __syncthreads();
    const int64_t stride = (int64_t)gridDim.x * block_threads;
    for (int64_t at = (int64_t)blockIdx.x * block_threads + threadIdx.x; at < n; at += AT_ONCE * stride) {
        Key key[AT_ONCE];
#pragma unroll
        for (int k = 0; k < AT_ONCE; k++)
            key[k] = at + k * stride < n ? keys[at + k * stride] : Key(0);
#pragma unroll
        for (int k = 0; k < AT_ONCE; k++) {
            if (at + k * stride >= n)
                break;
            const Key order = whole.order(key[k]);
#pragma unroll
            for (int p = 0; p < PASSES; p++) {
                const int shift = d.begin_bit + p * RADIX_BITS, width = d.end_bit - shift;
                if (p < d.passes)
                    atomicAdd(&in_block[p][(unsigned)(order >> shift) & ((1u << (width < 8 ? width : 8)) - 1u)], 1u);
            }
        }
    }
    __syncthreads();
    for (int p = 0; p < d.passes; p++)
        if (in_block[p][threadIdx.x] > 0)
            atomicAdd(&counts[p * RADIX + threadIdx.x], (unsigned long long)in_block[p][threadIdx.x]);
}

/* Counts become starts. A block a pass. */
static __global__ void __launch_bounds__(block_threads) starts(unsigned long long *counts)
{
    __shared__ int64_t warp_sums[block_warps];
    unsigned long long *const mine = counts + (int64_t)blockIdx.x * RADIX + threadIdx.x;
    int64_t all;
    *mine = (unsigned long long)block_exclusive(op_add_i64(), (int64_t)*mine, warp_sums, &all);
}

/* The sum of a digit's counts in the tiles before tile > 0 of the launch. states: those of the
 * digit. */
__device__ inline unsigned look_back(const uint32_t *states, int tile)
{
    unsigned sum = 0;
    int other = tile - 1; /* the next to add; tile 0 has a prefix */
    for (;;) {
        uint32_t state[WINDOW];
#pragma unroll
        for (int w = 0; w < WINDOW; w++)
            state[w] = other >= w ? load_relaxed(states + (int64_t)(other - w) * RADIX) : 0;
#pragma unroll
        for (int w = 0; w < WINDOW; w++) {
            const uint32_t status = state[w] >> COUNT_BITS;
            if (status == lookback_empty)
                break;
            sum += state[w] & ((1u << COUNT_BITS) - 1u);
            if (status == lookback_prefix)
                return sum;
            other--;
        }
    }
}

__device__ inline void publish(uint32_t *states, int tile, lookback_status status, unsigned count)
{
    store_relaxed(states + (int64_t)tile * RADIX, (uint32_t)status << COUNT_BITS | count);
}

/* Of a warp, for each digit. */
struct ranking {
    unsigned count[RADIX]; /* first the elements with the digit, then the rank of the next of them */
    unsigned lanes[RADIX]; /* the lanes that have it now; 0 between uses */
};

/* First rankings, then keys or values in the order of their ranks. */
template <typename Key, typename Value> union stage {
    ranking warp[WARPS];
    Key keys[tile<Key, Value>::size];
    Value values[tile<Key, Value>::size];
};

/* Ranks within the block. */
template <int ITEMS>
__device__ __forceinline__ void rank_items(const unsigned (&of)[ITEMS], ranking *warp, unsigned (&rank)[ITEMS])
{
    const unsigned lane = threadIdx.x % warp_lanes, bit = 1u << lane;
#pragma unroll
    for (int k = 0; k < ITEMS; k++) {
        atomicOr(&warp->lanes[of[k]], bit);
        __syncwarp();
        const unsigned peers = warp->lanes[of[k]], below = (unsigned)__popc(peers & (bit - 1u));
        const unsigned leader = 31u - (unsigned)__clz((int)peers);
        unsigned before = 0;
        if (lane == leader) {
            before = warp->count[of[k]];
            warp->count[of[k]] = before + below + 1u;
        }
        before = __shfl_sync(0xffffffffu, before, (int)leader);
        if (lane == leader)
            warp->lanes[of[k]] = 0;
        __syncwarp();
        rank[k] = before + below;
    }
}

/* Elements of a thread are warp_lanes apart, and a warp's together. valid: elements of the tile that
 * there are; FULL: all. */
template <bool FULL, typename Element, int ITEMS>
__device__ __forceinline__ void load_items(const Element *from, int first, int valid, Element (&item)[ITEMS])
{
#pragma unroll
    for (int k = 0; k < ITEMS; k++)
        item[k] = FULL || first + k * warp_lanes < valid ? from[first + k * warp_lanes] : Element(0);
}

/* The arrays of a pass. from: the start of each digit's range for the launch's first tile; next: for
 * the first tile of the next launch. */
template <typename Key, typename Value> struct moving {
    const Key *keys;
    const Value *values;
    Key *to_keys;
    Value *to_values;
    key_digit<Key> digit;
    int64_t n, first_tile;
    int tiles, most_tiles; /* of the launch; of the longest one */
    const unsigned long long *from;
    unsigned long long *next;
    tile_states states, next_states;
};

template <bool FULL, typename Key, typename Value>
__device__ __forceinline__ void move_tile(const moving<Key, Value> &job, int number, stage<Key, Value> *staged,
                                          int64_t *shift, int *warp_sums)
{
    constexpr int ITEMS = tile<Key, Value>::items, SIZE = tile<Key, Value>::size;
    const int t = (int)threadIdx.x, warp = t / warp_lanes, mine = warp * warp_lanes * ITEMS + t % warp_lanes;
    const int64_t begin = (job.first_tile + number) * SIZE;
    const int valid = FULL ? SIZE : (int)(job.n - begin);
    Key key[ITEMS];
    unsigned of[ITEMS], rank[ITEMS];
    load_items<FULL>(job.keys + begin, mine, valid, key);
#pragma unroll
    for (int k = 0; k < ITEMS; k++) {
        /* after the last element, the largest digit: its ranks are at least valid */
        of[k] = FULL || mine + k * warp_lanes < valid ? job.digit(key[k]) : RADIX - 1;
        atomicAdd(&staged->warp[warp].count[of[k]], 1u);
    }
    __syncthreads();
    unsigned in_tile = 0; /* of digit t */
    if (t < RADIX) {
#pragma unroll
        for (int w = 0; w < WARPS; w++) {
            const unsigned in_this = staged->warp[w].count[t];
            staged->warp[w].count[t] = in_tile;
            in_tile += in_this;
        }
        publish(job.states.of + t, number, number == 0 ? lookback_prefix : lookback_aggregate, in_tile);
    }
    int all;
    const int before = block_exclusive<WARPS>(add_counts(), t < RADIX ? (int)in_tile : 0, warp_sums, &all);
    if (t < RADIX) {
#pragma unroll
        for (int w = 0; w < WARPS; w++)
            staged->warp[w].count[t] += (unsigned)before;
    }
    __syncthreads();
    rank_items(of, &staged->warp[warp], rank);
    __syncthreads(); /* the stage changes its use */
#pragma unroll
    for (int k = 0; k < ITEMS; k++)
        staged->keys[rank[k]] = key[k];
    if (t < RADIX) {
        unsigned ahead = 0;
        if (number > 0) {
            ahead = look_back(job.states.of + t, number);
            publish(job.states.of + t, number, lookback_prefix, ahead + in_tile);
        }
        const unsigned long long start = job.from[t] + ahead;
        shift[t] = (int64_t)start - before;
        if (number == job.tiles - 1)
            job.next[t] = start + in_tile;
    }
    __syncthreads();
    unsigned packed[(ITEMS + 3) / 4] = {}; /* the digits of the moved keys, four in a register */
#pragma unroll
    for (int k = 0; k < ITEMS; k++) {
        const int i = k * THREADS + t;
        if (FULL || i < valid) {
            const Key moved = staged->keys[i];
            const unsigned digit = job.digit(moved);
            packed[k / 4] |= digit << 8 * (k % 4);
            job.to_keys[shift[digit] + i] = moved;
        }
    }
    if constexpr (has_value<Value>) {
        Value value[ITEMS];
        load_items<FULL>(job.values + begin, mine, valid, value);
        __syncthreads(); /* all have read their keys */
#pragma unroll
        for (int k = 0; k < ITEMS; k++)
            staged->values[rank[k]] = value[k];
        __syncthreads();
#pragma unroll
        for (int k = 0; k < ITEMS; k++) {
            const int i = k * THREADS + t;
            if (FULL || i < valid)
                job.to_values[shift[packed[k / 4] >> 8 * (k % 4) & (RADIX - 1u)] + i] = staged->values[i];
        }
    }
}

template <typename Key, typename Value>
__global__ void __launch_bounds__(THREADS, tile<Key, Value>::blocks) pass(moving<Key, Value> job)
{
    __shared__ stage<Key, Value> staged;
    __shared__ int64_t shift[RADIX]; /* from a rank in the tile to the place in the output */
    __shared__ int warp_sums[WARPS], drawn;
    if (threadIdx.x == 0) {
        drawn = job.tiles > 1 ? atomicAdd(job.states.ticket, 1) : 0;
        if (blockIdx.x == 0)
            *job.next_states.ticket = 0;
    }
    if (threadIdx.x < RADIX)
        for (int tile = (int)blockIdx.x; tile < job.most_tiles; tile += job.tiles)
            job.next_states.of[tile * RADIX + (int)threadIdx.x] = 0;
    for (int i = (int)threadIdx.x; i < WARPS * RADIX; i += THREADS) {
        ranking *const warp = &staged.warp[i / RADIX];
        warp->count[i % RADIX] = warp->lanes[i % RADIX] = 0;
    }
    __syncthreads();
    if ((job.first_tile + drawn + 1) * tile<Key, Value>::size <= job.n)
        move_tile<true>(job, drawn, &staged, shift, warp_sums);
    else
        move_tile<false>(job, drawn, &staged, shift, warp_sums);
}

/* launches: of the sort so far. */
template <typename Key, typename Value>
spmv_status run_pass(spmv_context *ctx, const sort_request *r, const sort_pass &p, const unsigned long long *starts,
                     const memory &m, int *launches)
{
    const int64_t tiles = (r->n - 1) / tile<Key, Value>::size + 1;
    const int most = (int)most_tiles<Key, Value>(r->n);
    spmv_status st = SPMV_OK;
    for (int64_t first = 0; st == SPMV_OK && first < tiles; first += most, ++*launches) {
        const int now = *launches % 2, tiles_now = (int)(tiles - first < most ? tiles - first : most);
        const moving<Key, Value> job = {(const Key *)p.keys,
                                        (const Value *)p.values,
                                        (Key *)p.to_keys,
                                        (Value *)p.to_values,
                                        digit_of<Key>(r, p),
                                        r->n,
                                        first,
                                        tiles_now,
                                        most,
                                        first == 0 ? starts : m.carry[1 - now],
                                        m.carry[now],
                                        m.states[now],
                                        m.states[1 - now]};
        st = launch(ctx, "onesweep", tiles_now, THREADS, pass<Key, Value>, job);
    }
    return st;
}

} // namespace onesweep

template <typename Key, typename Value> int64_t sort_3_scratch(const sort_request *r)
{
    return onesweep::memory::bytes(onesweep::most_tiles<Key, Value>(r->n));
}

template <typename Key, typename Value>
spmv_status sort_3_launch(spmv_context *ctx, const sort_request *r, void *scratch)
{
    const int64_t tiles = onesweep::most_tiles<Key, Value>(r->n);
    const onesweep::memory m(scratch, tiles);
    const onesweep::digits d = {r->begin_bit, r->end_bit, sort_passes(r, RADIX_BITS)};
    /* the counts, what follows, and the first states lie together */
    const int64_t words =
        (onesweep::memory::bytes(tiles) - onesweep::memory::state_bytes(tiles)) / (int64_t)sizeof(uint64_t);
    /* each block adds all its counts to those of the grid, so no more than run at once */
    const int most = 8 * ((const cuda_state *)ctx->device)->multiprocessors;
    const int needed = grid_for(r->n, 8 * block_threads);
    spmv_status st = launch(ctx, "onesweep reset", grid_for(words, 4 * block_threads), block_threads, lookback_reset,
                            (uint64_t *)m.counts, words, m.states[0].ticket);
    if (st == SPMV_OK)
        st = launch(ctx, "onesweep count", needed < most ? needed : most, block_threads, onesweep::count<Key>,
                    (const Key *)r->in_keys, digit_of<Key>(r, sort_pass_of(r, RADIX_BITS, 0)), d, r->n, m.counts);
    if (st == SPMV_OK)
        st = launch(ctx, "onesweep starts", d.passes, block_threads, onesweep::starts, m.counts);
    int launches = 0;
    for (int p = 0; st == SPMV_OK && p < d.passes; p++)
        st = onesweep::run_pass<Key, Value>(ctx, r, sort_pass_of(r, RADIX_BITS, p), m.counts + p * RADIX, m, &launches);
    return st;
}

#endif

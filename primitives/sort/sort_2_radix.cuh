/* sort, rung 2: digits of 8 bits.
 *
 * idea      as rung 1, with 256 digits in place of 2. A block counts the digits of its chunk. A
 *           scan of the counts, digit by digit and within a digit chunk by chunk, gives the
 *           destination of each chunk's first element of a digit. Then each block processes its
 *           chunk again, tile by tile. An element's rank within a tile takes two steps: the lanes
 *           of a warp with the same digit find each other (match), and the warps' counts are
 *           scanned. The element is staged in shared memory by its rank, so the elements of one
 *           digit leave the block as one contiguous range.
 * work      about 30 n per pass of 8 bits
 * depth     n / 2048 / 256 + log per pass
 * launches  5 per pass
 * bytes     n (3 k + 2 v) per pass (k, v: the sizes of key and value), and five times the counts,
 *           at most 4 MiB
 * changed   8 bits per pass instead of 1; scans counts instead of elements; ranks within a tile
 *           stay in the block
 * wins      never: rung 3 counts all digits in one initial pass and gets its offsets by look-back, so
 *           it moves n (2 k + 2 v)
 * order     stable, so all rungs and backends give the same result
 * source    M. Zagha, G. E. Blelloch 1991; N. Satish, M. Harris, M. Garland, "Designing efficient
 *           sorting algorithms for manycore GPUs", IPDPS 2009; the rank by matching lanes: A.
 *           Adinets, D. Merrill, "Onesweep", 2022
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SPMV_SORT_2_RADIX_CUH
#define SPMV_SORT_2_RADIX_CUH

#include "primitives/scan/scan_3_chunks.cuh"
#include "primitives/sort/sort_keys.cuh"

enum { RADIX_BITS = 8, RADIX = 1 << RADIX_BITS };
static_assert((int)RADIX == (int)block_threads, "each thread looks after one digit");

/* A thread holds 64 bytes of the wider of keys and values. */
template <typename Key, typename Value> struct radix_tile {
    static constexpr int items = 64 / (int)(sizeof(Key) > sizeof(Value) ? sizeof(Key) : sizeof(Value));
    static constexpr int size = block_threads * items;
};

/* counts[digit * chunks + chunk] = the number of the chunk's keys with that digit. Each warp has
 * its own counts, so that fewer threads update the same count. */
template <typename Key>
__global__ void __launch_bounds__(block_threads)
    radix_count(const Key *keys, key_digit<Key> digit, int64_t n, int tile_size, chunking cut, int64_t *counts)
{
    __shared__ unsigned in_warp[block_warps][RADIX];
    const int chunk = (int)blockIdx.x, warp = (int)threadIdx.x / warp_lanes;
    for (int w = 0; w < block_warps; w++)
        in_warp[w][threadIdx.x] = 0;
    __syncthreads();
    const int64_t last = cut.first_tile(chunk + 1) * tile_size, end = last < n ? last : n;
#pragma unroll 4
    for (int64_t i = cut.first_tile(chunk) * tile_size + threadIdx.x; i < end; i += block_threads)
        atomicAdd(&in_warp[warp][digit(keys[i])], 1u);
    __syncthreads();
    int64_t all = 0;
    for (int w = 0; w < block_warps; w++)
        all += in_warp[w][threadIdx.x];
    counts[(int64_t)threadIdx.x * gridDim.x + chunk] = all;
}

/* Adds the number of lanes with the same digit to its count. Returns the earlier count plus the
 * number of lower lanes with the same digit. */
__device__ inline unsigned warp_rank(unsigned digit, unsigned *counts)
{
    const int lane = (int)threadIdx.x % warp_lanes;
    const unsigned peers = __match_any_sync(0xffffffffu, digit), below = peers & ((1u << lane) - 1u);
    unsigned before = 0;
    if (below == 0) {
        before = counts[digit];
        counts[digit] = before + (unsigned)__popc(peers);
    }
    before = __shfl_sync(0xffffffffu, before, __ffs((int)peers) - 1);
    __syncwarp(); /* another lane may update the count next */
    return before + (unsigned)__popc(below);
}

/* Moves the elements of each chunk. first[digit * chunks + chunk]: the destination of the chunk's
 * first element with that digit. */
template <typename Key, typename Value>
__global__ void __launch_bounds__(block_threads)
    radix_scatter(const Key *keys, const Value *values, key_digit<Key> digit, const int64_t *first, int64_t n,
                  chunking cut, Key *to_keys, Value *to_values)
{
    using tile = radix_tile<Key, Value>;
    __shared__ union {
        Key keys[tile::size];
        Value values[tile::size];
    } stage;
    __shared__ unsigned in_warp[block_warps]
                               /* a warp's counts; then the rank in the tile of its first element of
                                * a digit */
                               [RADIX];
    __shared__ int64_t shift[RADIX]; /* from a rank in the tile to the place in the output */
    __shared__ int warp_sums[block_warps];
    const int chunk = (int)blockIdx.x, t = (int)threadIdx.x, warp = t / warp_lanes, lane = t % warp_lanes;
    int64_t next = first[(int64_t)t * gridDim.x + chunk]; /* for digit t */
    for (int64_t at = cut.first_tile(chunk); at < cut.first_tile(chunk + 1); at++) {
        const int64_t begin = at * tile::size, mine = begin + warp * warp_lanes * tile::items + lane;
        const int valid = tile_valid(begin, n, tile::size);
        for (int w = 0; w < block_warps; w++)
            in_warp[w][t] = 0;
        __syncthreads();
        Key key[tile::items];
        unsigned rank[tile::items], of[tile::items];
#pragma unroll
        for (int k = 0; k < tile::items; k++)
            key[k] = mine + k * warp_lanes < n ? keys[mine + k * warp_lanes] : Key(0);
#pragma unroll
        for (int k = 0; k < tile::items; k++) {
            /* after the last element, the largest digit: its ranks are at least valid */
            of[k] = mine + k * warp_lanes < n ? digit(key[k]) : RADIX - 1;
            rank[k] = warp_rank(of[k], in_warp[warp]);
        }
        __syncthreads();
        unsigned count = 0;
        for (int w = 0; w < block_warps; w++) {
            const unsigned in_this = in_warp[w][t];
            in_warp[w][t] = count;
            count += in_this;
        }
        int all;
        const int before = block_exclusive(add_counts(), (int)count, warp_sums, &all);
        for (int w = 0; w < block_warps; w++)
            in_warp[w][t] += (unsigned)before;
        shift[t] = next - before;
        next += count;
        __syncthreads();
#pragma unroll
        for (int k = 0; k < tile::items; k++) {
            rank[k] += in_warp[warp][of[k]];
            stage.keys[rank[k]] = key[k];
        }
        __syncthreads();
        int64_t to[tile::items];
#pragma unroll
        for (int k = 0; k < tile::items; k++) {
            const int i = k * block_threads + t;
            to[k] = -1;
            if (i < valid) {
                const Key moved = stage.keys[i];
                to[k] = shift[digit(moved)] + i;
                to_keys[to[k]] = moved;
            }
        }
        if constexpr (has_value<Value>) {
            Value value[tile::items];
#pragma unroll
            for (int k = 0; k < tile::items; k++)
                value[k] = mine + k * warp_lanes < n ? values[mine + k * warp_lanes] : Value(0);
            __syncthreads(); /* all have read their keys */
#pragma unroll
            for (int k = 0; k < tile::items; k++)
                stage.values[rank[k]] = value[k];
            __syncthreads();
#pragma unroll
            for (int k = 0; k < tile::items; k++)
                if (to[k] >= 0)
                    to_values[to[k]] = stage.values[k * block_threads + t];
        }
    }
}

/* Bytes of scratch: a count for each digit and chunk, and the scratch of their scan. */
inline int64_t sort_2_scratch(const sort_request *r)
{
    const int wider = r->key_bytes > r->value_bytes ? r->key_bytes : r->value_bytes;
    const chunking cut = cut_into_chunks(r->n, block_threads * (64 / wider));
    return (SCAN_3_SCRATCH_ELEMENTS + (int64_t)RADIX * cut.count) * (int64_t)sizeof(int64_t);
}

template <typename Key, typename Value>
spmv_status sort_2_launch(spmv_context *ctx, const sort_request *r, void *scratch)
{
    constexpr int SIZE = radix_tile<Key, Value>::size;
    const chunking cut = cut_into_chunks(r->n, SIZE);
    int64_t *const counts = (int64_t *)scratch + SCAN_3_SCRATCH_ELEMENTS;
    spmv_status st = SPMV_OK;
    for (int pass = 0; st == SPMV_OK && pass < sort_passes(r, RADIX_BITS); pass++) {
        const sort_pass p = sort_pass_of(r, RADIX_BITS, pass);
        const key_digit<Key> digit = digit_of<Key>(r, p);
        const Key *const keys = (const Key *)p.keys;
        st = launch(ctx, "radix_count", cut.count, block_threads, radix_count<Key>, keys, digit, r->n, SIZE, cut,
                    counts);
        if (st == SPMV_OK)
            st = scan_3_launch<op_add_i64>(ctx, load_array<int64_t>{counts}, store_array<int64_t>{counts},
                                           (int64_t)RADIX * cut.count, true, scratch);
        if (st == SPMV_OK)
            st = launch(ctx, "radix_scatter", cut.count, block_threads, radix_scatter<Key, Value>, keys,
                        (const Value *)p.values, digit, (const int64_t *)counts, r->n, cut, (Key *)p.to_keys,
                        (Value *)p.to_values);
    }
    return st;
}

#endif

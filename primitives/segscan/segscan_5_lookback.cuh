/* segmented scan, rung 5: one pass, tiles look back.
 *
 * idea      scan, rung 5, on (value, start) pairs. Flag bytes are loaded 16 at a time and converted
 *           to one bit per element in shared memory. Positions are converted to bits too
 *           (segments.cuh); the first one is found by one round of probes if segments have similar
 *           lengths, otherwise by a search. If a segment starts in a tile, its aggregate does not
 *           depend on earlier tiles: the tile publishes a prefix at once, and later tiles look back
 *           no further. So states need no start flag: an aggregate never has a start.
 * work      as scan, rung 5
 * depth     as scan, rung 5
 * launches  1 for a single tile, else 2, and 2 more for every 2^17 tiles of 28 KiB (2^16 with
 *           8-byte elements)
 * bytes     2 n v and once the flags or positions
 * changed   everything is read once; blocks wait for each other
 * wins      everywhere
 * order     keeps the order of the operands; bits depend on n alone
 * source    Schwartz 1980; Sengupta et al. 2007; Merrill, Garland 2016
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SPMV_SEGSCAN_5_LOOKBACK_CUH
#define SPMV_SEGSCAN_5_LOOKBACK_CUH

#include "device/lookback.cuh"
#include "device/segments.cuh"
#include "device/vector_tiles.cuh"

/* 28 elements of 4 bytes per thread: their bits fit in one word. */
using segscan_5_shape = lookback_shape<block_threads, 7, 5>;
/* The best of five shapes on an H100 with byte flags, 2^28 elements and segments of 32. One block
 * more per multiprocessor spills registers. */
using segscan_5_best = lookback_shape<block_threads, 7, 4>;

/* Bit b: byte b of the four is not 0. */
__device__ inline unsigned nonzero_bytes(unsigned four)
{
    const unsigned high = (((four & 0x7f7f7f7fu) + 0x7f7f7f7fu) | four) & 0x80808080u;
    return (high >> 7) * 0x10204080u >> 28; /* gathers bits 0, 8, 16, 24 */
}

struct alignas(16) flag_bytes {
    unsigned four[4];
};

/* The thread's bits; each thread has items of them. words: one word more than the bits need. */
__device__ inline unsigned bits_of_thread(const unsigned *words, int items)
{
    const int bit = (int)threadIdx.x * items;
    const uint64_t two = (uint64_t)words[bit / 32 + 1] << 32 | words[bit / 32];
    return (unsigned)(two >> (bit % 32)) & (0xffffffffu >> (32 - items));
}

/* The flags of elements begin + 32 t ... begin + 32 t + 31 as one word. */
__device__ inline unsigned load_flags(const unsigned char *flags, int64_t begin, int valid, int t = (int)threadIdx.x)
{
    const int first = 32 * t;
    unsigned word = 0;
    if (first + 32 <= valid && (uintptr_t)flags % 16 == 0) { /* begin is a multiple of 16 */
        const flag_bytes *const from = (const flag_bytes *)(flags + begin + first);
        const flag_bytes half[2] = {load_streaming(from), load_streaming(from + 1)};
#pragma unroll
        for (int k = 0; k < 8; k++)
            word |= nonzero_bytes(half[k / 4].four[k % 4]) << (4 * k);
    } else {
        for (int j = 0; j < 32; j++)
            if (first + j < valid && flags[begin + first + j] != 0)
                word |= 1u << j;
    }
    return word;
}

/* The same for flags that are bits; begin is a multiple of 32. Bits after the last element affect
 * no stored result. */
__device__ inline unsigned load_flag_bits(const unsigned *flags, int64_t begin, int valid, int t = (int)threadIdx.x)
{
    const int first = 32 * t;
    return first < valid ? flags[(begin + first) / 32] : 0;
}

/* As block_lower_bound(position, 0, count, target), but first probes near a fraction of count. */
template <typename Position>
__device__ int64_t block_lower_bound_near(const Position &position, int64_t count, double fraction, int64_t target)
{
    int64_t lo = (int64_t)(fraction * (double)count) - block_threads / 2;
    lo = lo < 0 ? 0 : lo;
    const int64_t hi = lo + block_threads < count ? lo + block_threads : count;
    const int64_t s = lo + threadIdx.x;
    const int below = __syncthreads_count(s < hi && position(s) < target);
    if (below == 0 && lo > 0)
        return block_lower_bound(position, 0, lo, target);
    if (lo + below == hi)
        return block_lower_bound(position, hi, count, target);
    return lo + below;
}

/* store(i, the segmented scan up to i) for the tiles of one launch, which starts at tile
 * first_tile. */
template <typename Op, typename Shape, typename Load, typename Store>
__global__ void __launch_bounds__(Shape::threads, Shape::blocks)
    segscan_lookback(Load load, Store store, segment_starts segments, int64_t n, int64_t first_tile,
                     lookback_states<typename Op::type> states, bool exclusive)
{
    if constexpr (Shape::left_empty)
        return;
    using Type = typename Op::type;
    using tile = vector_tile<Type, Shape>;
    constexpr int word_count = tile::size / 32;
    static_assert(tile::items <= 32 && word_count <= Shape::threads && Shape::threads == block_threads,
                  "a word of bits a thread");
    __shared__ typename tile::vector stage[Shape::threads * tile::vectors];
    __shared__ segmented<Type> warp_sums[Shape::warps];
    __shared__ unsigned words[word_count + 1];
    __shared__ Type before_tile;
    __shared__ int number;
    const Op op{};
    const int mine = states.tiles > 1 ? block_draw_ticket<Op>(states, &number) : 0;
    const int64_t begin = (first_tile + mine) * tile::size;
    const int valid = tile_valid(begin, n, tile::size);
    {
        typename tile::vector striped[tile::vectors];
        unsigned word = 0;
        if (segments.form == SPMV_SEGMENT_FLAGS && threadIdx.x < word_count)
            word = segments.bits == 1 ? load_flag_bits((const unsigned *)segments.heads, begin, valid)
                                      : load_flags((const unsigned char *)segments.heads, begin, valid);
        tile_load<Shape>(load, begin, valid, Op::identity(), striped);
        if (segments.form != SPMV_SEGMENT_FLAGS)
            block_mark_words(segments,
                             block_lower_bound_near(segments, segments.count, (double)begin / (double)n, begin),
                             segments.count, begin, valid, words, word_count);
        else if (threadIdx.x < word_count)
            words[threadIdx.x] = word;
        tile_stage<Shape, Type>(load, valid, striped, stage);
    }
    const unsigned starts = bits_of_thread(words, tile::items);
    typename tile::vector *const row = tile_row<Shape, Type>(stage);
    segmented<Type> sum = {Op::identity(), starts != 0}, all;
#pragma unroll
    for (int k = 0; k < tile::vectors; k++) {
        const typename tile::vector v = row[k];
#pragma unroll
        for (int j = 0; j < tile::each; j++) {
            const bool first = k + j == 0, start = starts >> (k * tile::each + j) & 1u;
            sum.value = first || start ? v.at[j] : op(sum.value, v.at[j]);
        }
    }
    const segmented<Type> earlier = block_exclusive<Shape::warps>(combine_segments<Op>(), sum, warp_sums, &all);
    const Type before = block_look_back(op, states, mine, all.value, all.start != 0, &before_tile, Shape::pause_ns);
    Type through = earlier.start ? earlier.value : op(before, earlier.value);
#pragma unroll
    for (int k = 0; k < tile::vectors; k++) {
        typename tile::vector v = row[k];
#pragma unroll
        for (int j = 0; j < tile::each; j++) {
            const bool start = starts >> (k * tile::each + j) & 1u;
            const Type preceding = start ? Op::identity() : through;
            through = start ? v.at[j] : op(through, v.at[j]);
            v.at[j] = exclusive ? preceding : through;
        }
        row[k] = v;
    }
    tile_store<Shape, Type>(store, begin, valid, stage);
}

/* Enough for every shape with tiles of at least 12 KiB. */
inline int64_t segscan_5_scratch(int64_t element_bytes, int64_t n)
{
    return lookback_scratch(element_bytes, n / (12 * 1024 / element_bytes) + 1);
}

/* store(i, the scan of load, restarted at each start), n > 0. Load and store may access the same
 * memory. */
template <typename Op, typename Shape = segscan_5_best, typename Load, typename Store>
spmv_status segscan_5_launch(spmv_context *ctx, Load load, Store store, segment_starts segments, int64_t n,
                             bool exclusive, void *scratch)
{
    using Type = typename Op::type;
    const int64_t size = vector_tile<Type, Shape>::size;
    return lookback_launches<Type>(ctx, n / size + (n % size != 0), scratch,
                                   [=](int64_t first_tile, lookback_states<Type> states) {
                                       return launch(ctx, "segscan_lookback", states.tiles, Shape::threads,
                                                     segscan_lookback<Op, Shape, Load, Store>, load, store, segments, n,
                                                     first_tile, states, exclusive);
                                   });
}

#endif

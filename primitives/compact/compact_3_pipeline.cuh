/* compact, rung 3: one pass with persistent blocks; the copy engine loads.
 *
 * idea      as scan, rung 6. The copy engine loads the next tile (and its flags) into shared
 *           memory. The block counts the kept elements of the current tile, publishes the count,
 *           and compacts them in the tile's own buffer. It then writes the previous tile, whose
 *           place has arrived from the chain in the meantime (pipeline.cuh), with coalesced
 *           accesses.
 * work      2 n
 * depth     that of a tile, and the chain
 * launches  1
 * bytes     flags and elements once, kept elements once
 * changed   flags (with a predicate: elements) are read once, not twice; elements that are not kept
 *           are read too
 * wins      unless almost nothing is kept, on devices with a copy engine (9.0 to 11)
 * order     only integers are added, so the order of additions is irrelevant
 * source    Merrill, Garland 2016 (compaction in a single pass)
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SPMV_COMPACT_3_PIPELINE_CUH
#define SPMV_COMPACT_3_PIPELINE_CUH

#include "compact_2_count_write.cuh"
#include "pipeline.cuh"

/* 28 KiB of elements per tile. */
using compact_3_shape = lookback_shape<block_threads, 7, 2>;

/* Bit j: the thread's element j is kept. The thread has ITEMS neighbouring elements, at items; the
 * first is element i of the array. staged: the thread's flags in shared memory, or NULL. */
template <int ITEMS, typename T>
__device__ unsigned kept_items(const keep_flagged<T> &keep, const unsigned char *staged, const T *, int64_t i,
                               int64_t n)
{
    unsigned set = 0;
    if (staged != NULL && ITEMS % 4 == 0) {
#pragma unroll
        for (int k = 0; k < ITEMS / 4; k++)
            set |= bytes_set(((const unsigned *)staged)[k]) << (4 * k);
    } else if (staged != NULL && ITEMS % 2 == 0) {
#pragma unroll
        for (int k = 0; k < ITEMS / 2; k++)
            set |= bytes_set(((const unsigned short *)staged)[k]) << (2 * k);
    } else {
#pragma unroll
        for (int k = 0; k < ITEMS; k++)
            if (staged != NULL ? staged[k] != 0 : i + k < n && keep.flags[i + k] != 0)
                set |= 1u << k;
    }
    return set;
}

template <int ITEMS, typename T>
__device__ unsigned kept_items(const keep_bits<T> &keep, const unsigned char *, const T *, int64_t i, int64_t n)
{
    const int64_t words = (n + 31) / 32, at = i / 32;
    const unsigned low = at < words ? keep.flags[at] : 0, high = at + 1 < words ? keep.flags[at + 1] : 0;
    const unsigned set = (unsigned)(((uint64_t)high << 32 | low) >> (i % 32)) & (0xffffffffu >> (32 - ITEMS));
    const int64_t there = n - i;
    return there >= ITEMS ? set : there > 0 ? set & ((1u << there) - 1u) : 0;
}

template <int ITEMS, typename T, typename Test>
__device__ unsigned kept_items(const keep_if<T, Test> &keep, const unsigned char *, const T *items, int64_t i,
                               int64_t n)
{
    unsigned set = 0;
#pragma unroll
    for (int k = 0; k < ITEMS; k++)
        set |= (unsigned)(i + k < n && keep.test(items[k])) << k;
    return set;
}

/* Flags that the engine can load; NULL: none. */
template <typename Keep> __device__ const uint8_t *flags_for_engine(const Keep &)
{
    return NULL;
}
template <typename T> __device__ const uint8_t *flags_for_engine(const keep_flagged<T> &keep)
{
    return keep.flags;
}
template <typename Keep> struct has_flags {
    static constexpr bool YES = false;
};
template <typename T> struct has_flags<keep_flagged<T>> {
    static constexpr bool YES = true;
};

/* A block's shared memory. */
template <typename Keep, typename Shape> struct compact_3_stage {
    using T = typename Keep::type;
    using tile = vector_tile<T, Shape>;
    struct alignas(16) buffer {
        typename tile::vector elements[Shape::threads * tile::vectors];
        unsigned char flags[has_flags<Keep>::YES ? tile::size : 16];
    };
    buffer stage[PIPELINE_BUFFERS];
    int warp_sums[2][Shape::warps]; /* used alternately */
};

template <typename Keep, typename Shape>
struct compact_memory : compact_3_stage<Keep, Shape>, pipeline_state<chain_plain<add_places>> {
};

/* The work of a block on a tile. */
template <typename Keep, typename Shape> struct compact_3_work {
    using T = typename Keep::type;
    using memory = compact_memory<Keep, Shape>;
    using tile = typename memory::tile;
    using fold = chain_plain<add_places>;
    static constexpr int THREADS = Shape::threads, ITEMS = tile::items;
    static constexpr bool ENGINE_STORES = false;
    static constexpr unsigned BYTES = tile::size * sizeof(T);
    static_assert(ITEMS <= 32, "a word of bits a thread");
    struct left {
        int kept = 0; /* kept elements of the tile, in its buffer */
    };

    memory &m;
    const Keep &keep;
    const T *in;
    T *out;
    int64_t *count;
    const chain<fold> &tiles;
    int64_t n, whole;     /* elements; tiles without a short last one */
    const uint8_t *flags; /* NULL: the engine loads none */
    bool engine;

    __device__ __forceinline__ void bring(int64_t number, int buffer) const
    {
        if (number >= tiles.tiles)
            return;
        if (!engine || number >= whole) {
            engine_expect_nothing(&m.arrived[buffer]);
            return;
        }
        engine_expect(&m.arrived[buffer], BYTES + (flags != NULL ? tile::size : 0));
        engine_load(m.stage[buffer].elements, in + number * tile::size, BYTES, &m.arrived[buffer]);
        if (flags != NULL)
            engine_load(m.stage[buffer].flags, flags + number * tile::size, tile::size, &m.arrived[buffer]);
    }

    /* Counts the tile's kept elements, publishes the count, and compacts them in the buffer. */
    __device__ __forceinline__ left take(int64_t number, int step) const
    {
        const int buffer = step % PIPELINE_BUFFERS;
        const int64_t begin = number * tile::size;
        const bool by_engine = engine && number < whole;
        T *const cells = m.stage[buffer].elements[0].at;
        engine_await(&m.arrived[buffer], (unsigned)(step / PIPELINE_BUFFERS));
        if (!by_engine) {
            for (int i = (int)threadIdx.x; i < tile::size; i += Shape::threads)
                if (begin + i < n)
                    cells[i] = in[begin + i];
            __syncthreads();
        }
        T item[ITEMS];
        const auto *const row = tile_row<Shape, T>(m.stage[buffer].elements);
#pragma unroll
        for (int k = 0; k < tile::vectors; k++) {
            const typename tile::vector v = row[k];
#pragma unroll
            for (int j = 0; j < tile::each; j++)
                item[k * tile::each + j] = v.at[j];
        }
        const unsigned char *const staged =
            by_engine && flags != NULL ? m.stage[buffer].flags + (int)threadIdx.x * ITEMS : NULL;
        const unsigned set = kept_items<ITEMS>(keep, staged, item, begin + (int)threadIdx.x * ITEMS, n);
        left mine;
        int to = block_exclusive_once<Shape::warps>(add_counts(), __popc(set), m.warp_sums[step % 2], &mine.kept);
        if (threadIdx.x == 0 && tiles.tiles != 1)
            tiles.publish(number, mine.kept, false);
#pragma unroll
        for (int j = 0; j < ITEMS; j++)
            if (set >> j & 1u)
                cells[to++] = item[j];
        return mine;
    }

    /* Writes the tile's kept elements to their place. */
    __device__ __forceinline__ void finish(int64_t number, int buffer, left of) const
    {
        const int64_t place = m.before;
        const T *const cells = m.stage[buffer].elements[0].at;
        /* each warp writes whole lines of 128 bytes; the first may be partial */
        const int skew = (int)(((uintptr_t)(out + place) / sizeof(T)) % warp_lanes);
        for (int i = (int)threadIdx.x - skew; i < of.kept; i += Shape::threads)
            if (i >= 0)
                out[place + i] = cells[i];
        if (threadIdx.x == 0 && number == tiles.tiles - 1)
            *count = place + of.kept;
    }
};

template <typename Keep, typename Shape>
__global__ void __launch_bounds__(Shape::threads, Shape::blocks)
    compact_pipeline([[maybe_unused]] Keep keep, [[maybe_unused]] const typename Keep::type *in,
                     [[maybe_unused]] typename Keep::type *out, [[maybe_unused]] int64_t *count,
                     [[maybe_unused]] int64_t n, [[maybe_unused]] chain<chain_plain<add_places>> tiles)
{
#if SPMV_HAVE_COPY_ENGINE
    using work = compact_3_work<Keep, Shape>;
    extern __shared__ unsigned char dynamic_shared[];
    const uint8_t *const flags = flags_for_engine(keep);
    work of_block = {
        *(typename work::memory *)dynamic_shared,    keep, in, out, count, tiles, n, n / work::tile::size, flags,
        in_vectors(in) && (uintptr_t)flags % 16 == 0};
    pipeline_run(of_block, tiles);
#endif
}

/* n > 0. Requires engine_there(ctx). */
template <typename Keep, typename Shape = compact_3_shape>
spmv_status compact_3_launch(spmv_context *ctx, Keep keep, const void *in, void *out, int64_t *count, int64_t n)
{
    using T = typename Keep::type;
    const int64_t size = vector_tile<T, Shape>::size, tiles = n / size + (n % size != 0);
    const chain<chain_plain<add_places>> states = {chain_of(ctx), tiles, 0};
    const int blocks = tiles == 1 ? 1 : chain_blocks(ctx, Shape::blocks, tiles);
    return launch_with_shared<compact_pipeline<Keep, Shape>>(
        ctx, "compact_pipeline", {blocks, Shape::threads, (int)sizeof(compact_memory<Keep, Shape>), true}, keep,
        (const T *)in, (T *)out, count, n, states);
}

#endif

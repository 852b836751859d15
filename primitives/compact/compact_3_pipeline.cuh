/* compact, rung 3: one pass with persistent blocks; the copy engine loads.
 *
 * idea      the roles of scan, rung 6 (pipeline.cuh). The copy engine loads tiles and their flags
 *           into shared memory. Takers count a tile's kept elements and compact them in the tile's
 *           own buffer. Finishers write them with coalesced accesses, to the place that has arrived
 *           from the chain in the meantime.
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

#include "device/pipeline.cuh"
#include "primitives/compact/compact_2_count_write.cuh"

/* 28 KiB of elements per tile. */
using compact_3_shape = pipeline_shape<7>;

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

/* A tile in shared memory. */
template <typename Keep, typename Shape> struct compact_3_buffer {
    using tile = vector_tile<typename Keep::type, Shape>;
    alignas(128) typename tile::vector elements[Shape::threads * tile::vectors];
    alignas(16) unsigned char flags[has_flags<Keep>::YES ? tile::size : 16];
};

template <typename Keep, typename Shape> struct compact_3_memory {
    using buffer = compact_3_buffer<Keep, Shape>;
    static constexpr int BUFFERS = pipeline_buffers((int)sizeof(buffer), CHAIN_HELD);
    buffer stage[BUFFERS];
    pipeline_state<chain_plain<add_places>, BUFFERS> state;
};

/* The work of the roles on a tile. */
template <typename Keep, typename Shape> struct compact_3_work {
    using T = typename Keep::type;
    using memory = compact_3_memory<Keep, Shape>;
    using tile = vector_tile<T, Shape>;
    using fold = chain_plain<add_places>;
    static constexpr int TAKERS = Shape::takers, FINISHERS = 1, BUFFERS = memory::BUFFERS, ITEMS = tile::items;
    static constexpr bool LOADS_APART = false, ENGINE_STORES = false;
    static constexpr unsigned BYTES = tile::size * sizeof(T);
    static_assert(ITEMS <= 32, "a word of bits a thread");

    pipeline_state<fold, BUFFERS> &m;
    typename memory::buffer *stage;
    const Keep &keep;
    const T *in;
    T *out;
    int64_t *count;
    int64_t n, whole;     /* elements; tiles without a short last one */
    const uint8_t *flags; /* NULL: the engine loads none */
    bool engine;

    __device__ __forceinline__ void bring(int64_t number, int buffer, int) const
    {
        if (!engine || number >= whole) {
            engine_expect_nothing(&m.full[buffer]);
            return;
        }
        engine_expect(&m.full[buffer], BYTES + (flags != NULL ? tile::size : 0));
        engine_load(stage[buffer].elements, in + number * tile::size, BYTES, &m.full[buffer]);
        if (flags != NULL)
            engine_load(stage[buffer].flags, flags + number * tile::size, tile::size, &m.full[buffer]);
    }

    /* Counts the tile's kept elements and compacts them in the buffer. */
    __device__ __forceinline__ void take(int64_t number, int buffer, unsigned phase, int) const
    {
        const int64_t begin = number * tile::size;
        const bool by_engine = engine && number < whole;
        const int thread = pipeline_thread(), warp = thread / warp_lanes;
        T *const cells = stage[buffer].elements[0].at;
        if (!by_engine) {
            for (int i = thread; i < tile::size; i += Shape::threads)
                if (begin + i < n)
                    cells[i] = in[begin + i];
            pipeline_sync();
        }
        T item[ITEMS];
        const auto *const row = stage[buffer].elements + thread * tile::vectors;
#pragma unroll
        for (int k = 0; k < tile::vectors; k++) {
            const typename tile::vector v = row[k];
#pragma unroll
            for (int j = 0; j < tile::each; j++)
                item[k * tile::each + j] = v.at[j];
        }
        const unsigned char *const staged = by_engine && flags != NULL ? stage[buffer].flags + thread * ITEMS : NULL;
        const unsigned set = kept_items<ITEMS>(keep, staged, item, begin + thread * ITEMS, n);
        const int through = warp_inclusive(add_counts(), __popc(set));
        __syncwarp(); /* the warp has read its rows */
        m.hand_sum(buffer, through);
        engine_await(&m.summed[buffer], phase); /* all have read their rows */
        int to = through - __popc(set);
#pragma unroll
        for (int w = 0; w < block_warps - 1; w++)
            to += w < warp ? (int)m.warp_sums[buffer][w] : 0;
#pragma unroll
        for (int j = 0; j < ITEMS; j++)
            if (set >> j & 1u)
                cells[to++] = item[j];
    }

    /* Writes the tile's kept elements to their place. */
    __device__ __forceinline__ void finish(int64_t number, int buffer) const
    {
        const int64_t place = m.before[buffer];
        int kept = 0;
#pragma unroll
        for (int w = 0; w < block_warps; w++)
            kept += (int)m.warp_sums[buffer][w];
        const T *const cells = stage[buffer].elements[0].at;
        /* each warp writes whole lines of 128 bytes; the first may be partial */
        const int skew = (int)(((uintptr_t)(out + place) / sizeof(T)) % warp_lanes);
        for (int i = pipeline_thread() - skew; i < kept; i += Shape::threads)
            if (i >= 0)
                out[place + i] = cells[i];
        if (pipeline_thread() == 0 && number * tile::size + tile::size >= n)
            *count = place + kept;
    }
};

template <typename Keep, typename Shape>
__global__ void __launch_bounds__(pipeline_threads(Shape::takers, 1), 1)
    compact_pipeline([[maybe_unused]] Keep keep, [[maybe_unused]] const typename Keep::type *in,
                     [[maybe_unused]] typename Keep::type *out, [[maybe_unused]] int64_t *count,
                     [[maybe_unused]] int64_t n, [[maybe_unused]] chain<chain_plain<add_places>> tiles)
{
#if SPMV_HAVE_COPY_ENGINE
    using work = compact_3_work<Keep, Shape>;
    extern __shared__ unsigned char dynamic_shared[];
    const uint8_t *const flags = flags_for_engine(keep);
    auto &memory = *(typename work::memory *)dynamic_shared;
    work of_block = {memory.state,
                     memory.stage,
                     keep,
                     in,
                     out,
                     count,
                     n,
                     n / work::tile::size,
                     flags,
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
    const int blocks = tiles == 1 ? 1 : chain_blocks(ctx, 1, tiles);
    return launch_with_shared<compact_pipeline<Keep, Shape>>(
        ctx, "compact_pipeline",
        {blocks, pipeline_threads(Shape::takers, 1), (int)sizeof(compact_3_memory<Keep, Shape>), true}, keep,
        (const T *)in, (T *)out, count, n, states);
}

#endif

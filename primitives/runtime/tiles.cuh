/* How n elements are cut into tiles and chunks, and how a tile comes in and goes out.
 *
 * A tile is what one block works on at a time: items elements a thread, 64 bytes of them. A chunk is a run of
 * neighbouring tiles; one block walks through it and carries its result from tile to tile. There are at most most_chunks
 * chunks, whatever n: so the results of all chunks fit one block, two-level algorithms suffice for every size, scratch
 * is a constant, and the cut depends on n alone, not on the device (the bits of floating-point results follow the cut).
 *
 * Threads hold items neighbouring elements each ("blocked"), because order matters; memory wants neighbouring threads
 * at neighbouring addresses ("striped"). Tiles turn from one to the other in shared memory, one cell of padding a
 * thread keeping both ways free of bank conflicts.
 * D. Merrill, A. Grimshaw, "Parallel scan for stream architectures", CS2009-14, University of Virginia, 2009.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SPMV_TILES_CUH
#define SPMV_TILES_CUH

#include "block.cuh"

/* Enough to fill a large device several times over, and the results of all chunks are still one tile. Tests build with
 * fewer, to have chunks of several tiles at small n. */
#ifndef SPMV_CHUNKS
#define SPMV_CHUNKS 2048
#endif
enum { most_chunks = SPMV_CHUNKS };

template <typename Type> struct tile_of {
    static constexpr int items = 64 / (int)sizeof(Type);
    static constexpr int size = block_threads * items;
    static constexpr int cells = size + block_threads;

    /* The cell in which element i of a tile is staged. */
    static __host__ __device__ int cell(int i)
    {
        return i + i / items;
    }
};

/* tiles in count chunks, the first of which are one tile longer where it does not divide evenly. */
struct chunking {
    int64_t tiles_each, longer;
    int count;

    __host__ __device__ int64_t first_tile(int chunk) const
    {
        return chunk * tiles_each + (chunk < longer ? chunk : longer);
    }
};

inline chunking cut_into_chunks(int64_t n, int tile_size)
{
    const int64_t tiles = n / tile_size + (n % tile_size != 0);
    const int count = tiles < most_chunks ? (int)tiles : (int)most_chunks;
    return {tiles / count, tiles % count, count};
}

inline chunking one_chunk(int64_t n, int tile_size)
{
    return {n / tile_size + (n % tile_size != 0), 0, 1};
}

/* Elements of the tile that begins at begin, when n are there in all. */
__host__ __device__ inline int tile_valid(int64_t begin, int64_t n, int tile_size)
{
    return n - begin < tile_size ? (int)(n - begin) : tile_size;
}

/* stage[cell(i)] = load(begin + i) for i < valid, pad for the rest of the tile. All loads are under way before the
 * first is waited for. A thread writes cells i with i % block_threads its own number: the very cells it read if the stage was
 * last read that way; after any other reading a barrier must lie behind all threads. */
template <typename Type, typename Load>
__device__ void block_stage_in(const Load &load, int64_t begin, int valid, Type pad, Type *stage)
{
    using tile = tile_of<Type>;
    Type striped[tile::items];
#pragma unroll
    for (int k = 0; k < tile::items; k++) {
        const int i = k * block_threads + (int)threadIdx.x;
        striped[k] = i < valid ? load(begin + i) : pad;
    }
#pragma unroll
    for (int k = 0; k < tile::items; k++)
        stage[tile::cell(k * block_threads + (int)threadIdx.x)] = striped[k];
    __syncthreads();
}

/* The thread's items neighbouring elements of the tile that begins at begin. */
template <typename Type, typename Load>
__device__ void block_load_tile(const Load &load, int64_t begin, int valid, Type pad, Type *stage, Type *items)
{
    using tile = tile_of<Type>;
    block_stage_in(load, begin, valid, pad, stage);
#pragma unroll
    for (int j = 0; j < tile::items; j++)
        items[j] = stage[tile::cell((int)threadIdx.x * tile::items + j)];
}

/* The way back. A thread writes the very cells that it alone read in block_load_tile, so nothing is waited for between
 * the two. */
template <typename Type, typename Store>
__device__ void block_store_tile(const Store &store, int64_t begin, int valid, Type *stage, const Type *items)
{
    using tile = tile_of<Type>;
#pragma unroll
    for (int j = 0; j < tile::items; j++)
        stage[tile::cell((int)threadIdx.x * tile::items + j)] = items[j];
    __syncthreads();
#pragma unroll
    for (int k = 0; k < tile::items; k++) {
        const int i = k * block_threads + (int)threadIdx.x;
        if (i < valid)
            store(begin + i, stage[tile::cell(i)]);
    }
}

#endif

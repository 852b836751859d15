/* Division of n elements into tiles and chunks, and loading and storing of a tile.
 *
 * A block works on one tile at a time: items elements per thread, 64 bytes of them. A chunk is
 * neighbouring tiles; one block processes it in order and carries its result from tile to
 * tile. There are at most most_chunks chunks, whatever n. So the results of all chunks fit in one
 * block, two-level algorithms suffice for every size, the scratch is constant, and the division
 * depends on n alone, not on the device. (The bits of floating-point results depend on the
 * division.)
 *
 * A thread holds items neighbouring elements ("blocked"), because order matters; coalesced access
 * needs neighbouring threads at neighbouring addresses ("striped"). Tiles are transposed in shared
 * memory. One padding cell per thread avoids bank conflicts in both directions.
 * Source: D. Merrill, A. Grimshaw, "Parallel scan for stream architectures", CS2009-14, University
 * of Virginia, 2009.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SPMV_TILES_CUH
#define SPMV_TILES_CUH

#include "device/block.cuh"

/* Enough to fill a large device several times over, while the results of all chunks still fit in
 * one tile. Tests build with fewer, to have chunks of several tiles at small n. */
#ifndef SPMV_CHUNKS
#define SPMV_CHUNKS 2048
#endif
enum { most_chunks = SPMV_CHUNKS };

template <typename Type> struct tile_of {
    static constexpr int items = 64 / (int)sizeof(Type);
    static constexpr int size = block_threads * items;
    static constexpr int cells = size + block_threads;

    /* The cell that stages element i of a tile. */
    static __host__ __device__ int cell(int i)
    {
        return i + i / items;
    }
};

/* Tiles in count chunks. The first `longer` chunks have one tile more. */
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

/* Elements of the tile that starts at begin, of n elements in all. */
__host__ __device__ inline int tile_valid(int64_t begin, int64_t n, int tile_size)
{
    return n - begin < tile_size ? (int)(n - begin) : tile_size;
}

/* Sets stage[cell(i)] to load(begin + i) for i < valid, and to pad in the rest of the tile. All
 * loads start before the first is waited for. Thread t writes the cells of elements i with i %
 * block_threads == t. If the stage was last read in that order, no barrier is needed before;
 * otherwise one is. */
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

/* Loads the thread's items neighbouring elements of the tile that starts at begin. */
template <typename Type, typename Load>
__device__ void block_load_tile(const Load &load, int64_t begin, int valid, Type pad, Type *stage, Type *items)
{
    using tile = tile_of<Type>;
    block_stage_in(load, begin, valid, pad, stage);
#pragma unroll
    for (int j = 0; j < tile::items; j++)
        items[j] = stage[tile::cell((int)threadIdx.x * tile::items + j)];
}

/* Stores a tile. A thread writes the cells that only it has read in block_load_tile, so no barrier
 * is needed between the two. */
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

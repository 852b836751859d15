/* Delays in the look-back and the chain, inserted at their seam (SPMV_SEAM in lookback.cuh). For
 * the operator delayed<Op>, states are published late and hidden from readers at random, and
 * tickets map to tiles in another order. Include this header before the rungs.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SPMV_LOOKBACK_DELAYS_CUH
#define SPMV_LOOKBACK_DELAYS_CUH

#define SPMV_SEAM(Op, usual, delayed) delays<Op>::delayed

#include "device/launch.cuh"

/* Op under another type. The library compiles no rung for it. */
template <typename Op> struct delayed : Op {
};

/* No delays for other operators. */
template <typename Op> struct delays {
    static __device__ int tile_of(int drawn, int)
    {
        return drawn;
    }
    static __device__ void before_publishing(int)
    {
    }
    static __device__ bool publishes_prefix(int)
    {
        return true;
    }
    static __device__ bool sees(int, int)
    {
        return true;
    }
};

/* The chain wraps an operator in one of these. */
template <typename Op> struct chain_plain;
template <typename Op> struct chain_segmented;
template <typename Op> struct delays<chain_plain<Op>> : delays<Op> {
};
template <typename Op> struct delays<chain_segmented<Op>> : delays<Op> {
};

static __device__ uint32_t delay_seed;

static __global__ void set_delay_seed(uint32_t seed)
{
    delay_seed = seed;
}

template <typename Op> struct delays<delayed<Op>> {
    enum { RUN_OF_TICKETS = 16 };

    static __device__ uint32_t random(uint32_t a, uint32_t b)
    {
        uint32_t z = delay_seed + a * 0x9e3779b9u + b * 0x85ebca6bu;
        z = (z ^ z >> 16) * 0x7feb352du;
        z = (z ^ z >> 15) * 0x846ca68bu;
        return z ^ z >> 16;
    }
    /* Tile of the block that drew this ticket, of `tiles` tickets. Each group of RUN_OF_TICKETS
     * tickets is permuted at random, so a tile may wait for one that no block has drawn yet. A
     * ticket must move less far than the number of resident blocks, so the host, which runs one
     * block after the other, does not permute. */
    static __device__ int tile_of(int drawn, int tiles)
    {
#ifdef __CUDA_ARCH__
        const int first = drawn / RUN_OF_TICKETS * RUN_OF_TICKETS;
        if (first + RUN_OF_TICKETS > tiles)
            return drawn;
        /* odd factor: a permutation of 0 ... RUN_OF_TICKETS - 1 */
        const uint32_t r = random((uint32_t)first, 4u);
        return first + (int)(((uint32_t)(drawn - first) * (2u * (r >> 8) + 1u) + r) % RUN_OF_TICKETS);
#else
        (void)tiles;
        return drawn;
#endif
    }
    static __device__ void before_publishing(int tile)
    {
#ifdef __CUDA_ARCH__
        const uint32_t r = random((uint32_t)tile, 1u);
        if (r % 4 == 0)
            __nanosleep(r / 4 % 20000);
#else
        (void)tile;
#endif
    }
    /* Whether the tile's prefix is published. Leaving some out is correct if one tile in
     * lookback_depth publishes: later tiles look further back. */
    static __device__ bool publishes_prefix(int tile)
    {
        return tile % 97 == 0 || random((uint32_t)tile / 16u, 2u) % 4 == 0;
    }
    /* Whether the reader accepts the state of a tile that it read at this attempt. */
    static __device__ bool sees(int tile, int attempt)
    {
        return attempt > 3 || random((uint32_t)tile + threadIdx.x, (uint32_t)attempt + 3u) % 8 != 0;
    }
};

/* Changes the random delays for later kernels in the stream. */
inline spmv_status new_delays(spmv_context *ctx)
{
    static uint32_t calls = 0;
    return launch(ctx, "set_delay_seed", 1, 1, set_delay_seed, ++calls * 0x9e3779b9u);
}

#endif

/* Delays for the look-back and the chain, at their seam (SPMV_SEAM of lookback.cuh): for delayed<Op> states are
 * published late and held back at random, as a busy device would, only worse; and numbers are drawn in another order.
 * To be included before the rungs.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SPMV_LOOKBACK_DELAYS_CUH
#define SPMV_LOOKBACK_DELAYS_CUH

#define SPMV_SEAM(Op, usual, delayed) delays<Op>::delayed

#include "launch.cuh"

/* The operator itself: no rung in the library is compiled for it. */
template <typename Op> struct delayed : Op {
};

/* Nothing happens to other operators. */
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

/* What the chain folds with an operator. */
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
    /* The tile of a block that drew this number, of tiles numbers: whole runs of RUN_OF_TICKETS of them are permuted,
     * each in a way of its own, so that a tile waits for one that nobody has drawn yet. A number must move less far
     * than there are blocks that run at once; so not on the host, where blocks run one after the other. */
    static __device__ int tile_of(int drawn, int tiles)
    {
#ifdef __CUDA_ARCH__
        const int first = drawn / RUN_OF_TICKETS * RUN_OF_TICKETS;
        if (first + RUN_OF_TICKETS > tiles)
            return drawn;
        const uint32_t r = random((uint32_t)first, 4u); /* odd factor: a permutation of 0 ... RUN_OF_TICKETS - 1 */
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
    /* May the tile's prefix be published? Not to do so is no error as long as one tile in lookback_depth does: later
     * tiles then look further back. */
    static __device__ bool publishes_prefix(int tile)
    {
        return tile % 97 == 0 || random((uint32_t)tile / 16u, 2u) % 4 == 0;
    }
    /* Is what was read of a tile at the given attempt taken note of? */
    static __device__ bool sees(int tile, int attempt)
    {
        return attempt > 3 || random((uint32_t)tile + threadIdx.x, (uint32_t)attempt + 3u) % 8 != 0;
    }
};

/* From here on in the stream delays are others. */
inline spmv_status new_delays(spmv_context *ctx)
{
    static uint32_t calls = 0;
    return launch(ctx, "set_delay_seed", 1, 1, set_delay_seed, ++calls * 0x9e3779b9u);
}

#endif

/* Tiles: how the work of a primitive is shared by OpenMP threads so that results do not depend on their number.
 *
 * Work is cut into tiles of a fixed size, whatever the team. The threads that were got share the tiles; what a tile
 * computes depends on its number alone, and partial results are combined in tile order. So every team, one thread
 * included, does the same operations on the same operands in the same order.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef HOST_TILES_H
#define HOST_TILES_H

#include "threads.h"

/* Elements (merge-path items in the segmented primitives) of a tile: 64 KB of f64. Long enough that the cost of a tile
 * beyond its loop vanishes, short enough that a tile stays in its core's level-2 cache between two passes over it. */
enum { HOST_TILE = 8192 };

/* Fewer tiles than this run serially. */
enum { HOST_PARALLEL_TILES = TEAM_WORTH_AWAKE / HOST_TILE };

/* Computes one tile. */
typedef void tile_fn(void *state, int64_t tile);

/* body(state, t) for 0 <= t < tiles, shared by at most ctx->threads threads, in any order. */
void tiles_each(const spmv_context *ctx, int64_t tiles, tile_fn *body, void *state);

/* For each tile t: first(state, t), then combine(state, t), then second(state, t), the first and the last by one
 * thread. The calls of combine are made one after the other, for t = 0, 1, 2 ..., by any thread: each sees all that
 * first(state, t) and the calls for smaller t have written. */
void tiles_chain(const spmv_context *ctx, int64_t tiles, tile_fn *first, tile_fn *combine, tile_fn *second,
                 void *state);

struct range {
    int64_t begin, end;
};

/* Element i of an array of elements of so many bytes. */
static inline const void *element(const void *base, size_t size, int64_t i)
{
    return (const char *)base + (size_t)i * size;
}

static inline void *element_out(void *base, size_t size, int64_t i)
{
    return (char *)base + (size_t)i * size;
}

/* Tiles of n items. */
static inline int64_t tiles_of(int64_t n)
{
    return ceil_divide(n, HOST_TILE);
}

/* The items of a tile of n items. */
static inline struct range tile_range(int64_t tile, int64_t n)
{
    const int64_t begin = tile * HOST_TILE;
    return (struct range){begin, n - begin < HOST_TILE ? n : begin + HOST_TILE};
}

#endif

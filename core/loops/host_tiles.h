/* Tiles: distribute the work of a primitive over OpenMP threads so that results do not depend on
 * the number of threads.
 *
 * Work is divided into tiles of a fixed size. The result of a tile depends only on its number, and
 * partial results are combined in tile order. So every team, including a single thread, does the
 * same operations on the same operands in the same order.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef HOST_TILES_H
#define HOST_TILES_H

#include "core/threads.h"

/* Elements of a tile (merge-path items in the segmented primitives): 64 KB of f64. Long enough to
 * hide the fixed cost of a tile; short enough to stay in its core's level-2 cache between two
 * passes. */
enum { HOST_TILE = 8192 };

/* Work of fewer tiles runs serially. */
enum { HOST_PARALLEL_TILES = TEAM_WORTH_AWAKE / HOST_TILE };

/* Computes one tile. */
typedef void tile_fn(void *state, int64_t tile);

/* Calls body(state, t) for 0 <= t < tiles in any order, with at most ctx->threads threads. */
void tiles_each(const spmv_context *ctx, int64_t tiles, tile_fn *body, void *state);

/* The same for tiles of another size, which in all take as long as this many elements (core/threads.h). */
void tiles_each_of(const spmv_context *ctx, int64_t tiles, int64_t elements, tile_fn *body, void *state);

/* For each tile t: calls first(state, t), combine(state, t) and second(state, t). One thread calls
 * first and second. Any thread calls combine, one tile after the other in the order t = 0, 1, 2,
 * ...; combine sees everything that first(state, t) and the calls for smaller t have written. */
void tiles_chain(const spmv_context *ctx, int64_t tiles, tile_fn *first, tile_fn *combine, tile_fn *second,
                 void *state);

/* A number for each tile, and the sum of those that tiles_place has reached. */
struct tile_numbers {
    int64_t *number, all;
};

/* As combine: the number of a tile becomes the sum of the numbers before it. state: a struct
 * tile_numbers, or a struct that begins with one. */
static inline void tiles_place(void *state, int64_t tile)
{
    struct tile_numbers *const t = state;
    const int64_t before = t->all;
    t->all += t->number[tile];
    t->number[tile] = before;
}

struct range {
    int64_t begin, end;
};

/* Element i of an array with elements of size bytes. */
static inline const void *element(const void *base, size_t size, int64_t i)
{
    return (const char *)base + (size_t)i * size;
}

static inline void *element_out(void *base, size_t size, int64_t i)
{
    return (char *)base + (size_t)i * size;
}

/* The number of tiles of n items. */
static inline int64_t tiles_of(int64_t n)
{
    return ceil_divide(n, HOST_TILE);
}

/* The items of one of the tiles of n items. */
static inline struct range tile_range(int64_t tile, int64_t n)
{
    const int64_t begin = tile * HOST_TILE;
    return (struct range){begin, n - begin < HOST_TILE ? n : begin + HOST_TILE};
}

#endif

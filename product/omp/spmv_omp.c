/* Method "tiles" of the backend omp: tiles of equal work, where work is rows plus nonzeros. Neither
 * one long row nor a million empty rows leave a thread idle.
 *
 * The tiles are sections of the merge path of row ends and nonzeros: each step finishes a row or
 * takes a nonzero, and the plan cuts the path every TILE_WORK steps. Rows that cross a boundary are
 * added in tile order after the parallel loop. The tiles depend on the matrix alone, so the bits do
 * not depend on the number of threads. D. Merrill, M. Garland, "Merge-based parallel sparse
 * matrix-vector multiplication", SC16.
 *
 * Products of large matrices are limited by memory bandwidth, so the plan (spmv_omp_look.c) reduces
 * the bytes read, without loss. In a stretch of rows whose columns follow from those of its first
 * row, only the columns of the first row are read. Elsewhere, 16-bit columns relative to a base
 * replace 32-bit columns where they fit and where the matrix exceeds the caches. Where columns are
 * scattered over a long x, entries ahead are prefetched.
 *
 * Products of short rows are limited by mispredicted row ends. Where the lengths are unpredictable,
 * the rows of a tile are processed in order of length, with one loop for each length.
 *
 * The assignment of entries to partial sums depends on the length of the row alone
 * (spmv_omp_typed.h). So the kind of stretch, the order of the rows, the width of columns and the
 * instruction set do not change the bits.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <omp.h>
#include <string.h>
#ifdef __x86_64__
#include <immintrin.h>
#endif

#include "product/omp/spmv_omp.h"

/* A thread claims one tile at a time, or MOST_CLAIMED (about 10 us) where each thread has at least
 * CLAIMS times as many. */
enum { MOST_CLAIMED = 2, CLAIMS = 16 };

/* The prefetch distance of x in entries: about 100 ns at 1.5 ns an entry. */
enum { AHEAD = 64 };

/* The prefetch distance of values in bytes; columns use half of it. The hardware prefetcher stops
 * at the end of a page. */
enum { VALUES_AHEAD = 2048 };

#define ALWAYS_INLINE inline __attribute__((always_inline))

/* A vector of the processor; GCC and Clang support them on every machine. */
typedef int32_t pack_i32 __attribute__((vector_size(4 * SPOTS)));

/* How a tile is read and written; constants after inlining. */
struct reading {
    bool pattern; /* no values: all are 1 */
    bool narrow;  /* 16-bit columns */
    bool far;     /* x is prefetched */
    bool stream;  /* y is written with streaming stores */
};

/* X(length) for the lengths 1 to 6, 8 or 9. */
#define LENGTHS_6(X) X(1) X(2) X(3) X(4) X(5) X(6)
#define LENGTHS_8(X) LENGTHS_6(X) X(7) X(8)
#define LENGTHS_9(X) LENGTHS_8(X) X(9)

/* Prefetches the address at this many bytes after from, which may lie beyond the end of the
 * array. */
static ALWAYS_INLINE void prefetch(const void *from, int64_t bytes)
{
    __builtin_prefetch((const void *)((uintptr_t)from + (uintptr_t)bytes));
}

static ALWAYS_INLINE int64_t column_at(const void *col, bool narrow, int64_t k)
{
    return narrow ? (int64_t)((const uint16_t *)col)[k] : (int64_t)((const int32_t *)col)[k];
}

/* Divides the tiles among the threads by bytes, not by number, since some tiles read half as many
 * bytes as others. */
static void cut_shares(struct omp_tiles *tiles, int threads)
{
    const int64_t total = tiles->tile[tiles->count].bytes;
    int64_t t = 0;
    for (int p = 0; p < threads; p++) {
        while (t < tiles->count && tiles->tile[t].bytes < total / threads * p + total % threads * p / threads)
            t++;
        tiles->share[p].begin = t;
        if (p > 0)
            tiles->share[p - 1].end = t;
    }
    tiles->share[threads - 1].end = tiles->count;
    tiles->shares = threads;
}

/* Each thread has the same range of tiles in every product and processes it in order, so it finds
 * the elements of x that the tile before has read in its caches, and the matrix itself where it
 * fits. A finished thread takes tiles from the others, so one delayed thread does not stall the
 * product. */
void tiles_share_out(struct omp_tiles *tiles, tile_function *function, const void *source)
{
    const int64_t count = tiles->count;
    const int threads = tiles->threads;
    if (threads == 1) {
        for (int64_t t = 0; t < count; t++)
            function(tiles, t, source);
        return;
    }
    const int64_t claim = max_i64(1, min_i64(MOST_CLAIMED, count / threads / CLAIMS));
    if (tiles->shares != threads)
        cut_shares(tiles, threads);
    for (int p = 0; p < threads; p++)
        tiles->share[p].next = tiles->share[p].begin;
#pragma omp parallel num_threads(threads)
    {
        const int me = omp_get_thread_num();
        for (int i = 0; i < threads; i++) {
            const int p = (me + i) % threads;
            const int64_t end = tiles->share[p].end;
            const int64_t its = i == 0 ? claim : 1; /* single tiles near the end */
            int64_t *next = &tiles->share[p].next;
            for (;;) {
                int64_t t;
#pragma omp atomic capture
                {
                    t = *next;
                    *next += its;
                }
                if (t >= end)
                    break;
                for (const int64_t stop = min_i64(t + its, end); t < stop; t++)
                    function(tiles, t, source);
            }
        }
    }
}

/* for spmv_omp_epilogue.h */
#define ZERO 0
#define PLUS(a, b) ((a) + (b))
#define SCALE(a, b) ((a) * (b))
#define CONJUGATE(a) (a)

#define VALUE double
#define VALUE_BITS uint64_t
#define STORED double
#define TYPED(name) name##_f64
#include "product/omp/spmv_omp_typed.h"
#undef STORED
#undef TYPED
#define STORED float
#define TYPED(name) name##_mixed
#include "product/omp/spmv_omp_typed.h"
#undef VALUE
#undef VALUE_BITS
#undef TYPED
#define VALUE float
#define VALUE_BITS uint32_t
#define TYPED(name) name##_f32
#include "product/omp/spmv_omp_typed.h"
#undef VALUE
#undef VALUE_BITS
#undef STORED
#undef TYPED

void tiles_omp_release(spmv_plan *plan)
{
    const struct omp_tiles *tiles = plan->state;
    context_free_all(plan->ctx, tiles->tile, tiles->stretch, tiles->col, tiles->group, tiles->place, tiles->spot,
                     tiles->code, tiles->head, tiles->tail, tiles->dots, tiles->share);
}

spmv_status tiles_omp_apply(const spmv_plan *plan, const struct plan_product *product)
{
    const struct omp_tiles *tiles = plan->state;
    if (tiles->columns) {
        columns_omp_product(plan, product);
        return SPMV_OK;
    }
    switch (plan->types) {
    case PLAN_f32:
        product_f32(plan, product);
        return SPMV_OK;
    case PLAN_f64:
        product_f64(plan, product);
        return SPMV_OK;
    case PLAN_mixed:
        product_mixed(plan, product);
        return SPMV_OK;
    case PLAN_c64:
    case PLAN_c128: /* these use columns_omp_product */
    case PLAN_TYPES:
        break;
    }
    return SPMV_ERROR_TYPE;
}

void tiles_omp_loop(const spmv_plan *plan, const void *x, void *y, const spmv_epilogue *epilogue,
                    struct tile_loop *loop)
{
    const struct omp_tiles *tiles = plan->state;
    loop->tiles = tiles;
    if (tiles->columns) {
        columns_omp_loop(plan, x, y, loop);
        return;
    }
    switch (plan->types) {
    case PLAN_f32:
        loop_f32(plan, x, y, epilogue, loop);
        return;
    case PLAN_f64:
        loop_f64(plan, x, y, epilogue, loop);
        return;
    case PLAN_mixed:
        loop_mixed(plan, x, y, epilogue, loop);
        return;
    case PLAN_c64:
    case PLAN_c128:
    case PLAN_TYPES: /* the solvers have no loops in these types */
        return;
    }
}

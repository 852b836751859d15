/* Method "tiles" of the backend omp: tiles of equal work, work being rows plus nonzeros, so that neither one long row
 * nor a million empty ones idles a thread.
 *
 * Think of the merge of the row ends with the nonzeros: each step finishes a row or takes a nonzero. The plan cuts that
 * path every TILE_WORK steps; a tile knows from which (row, nonzero) to which it goes. Rows that cross a border are
 * added up in tile order after the parallel loop. The tiles depend on the matrix alone, so the bits do not depend on
 * the number of threads. D. Merrill, M. Garland, "Merge-based parallel sparse matrix-vector multiplication", SC16.
 *
 * Products of large matrices wait for memory, so what is left is to read less (spmv_omp_look.c, which looks at the
 * tiles once): in stretches of rows whose columns follow from those of the first, only these are read; elsewhere
 * columns of 16 bits from a base of the tile take the place of those of 32 where they fit and where caches are too
 * small for the matrix. Both are exact. Where columns jump about in a long x, entries ahead are prefetched.
 *
 * Products of short rows wait for wrong guesses of where a row ends. Where lengths are such that a processor cannot
 * foresee them, a tile's rows are taken by length: one loop a length, whose end is known.
 *
 * Which entry of a row meets which sum is a function of the row's length alone (spmv_omp_typed.h): neither kind of
 * stretch, order of the rows, nor width of columns, nor instruction set shows in the bits.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <omp.h>
#include <string.h>
#ifdef __x86_64__
#include <immintrin.h>
#endif

#include "spmv_omp.h"

/* A thread claims its tiles one after the other, or up to so many at once where each has many more: some 10 us. */
enum { MOST_CLAIMED = 2, CLAIMS = 16 };

/* So many entries ahead x is prefetched: some 100 ns at 1.5 ns an entry. */
enum { AHEAD = 64 };

/* So many bytes ahead values are prefetched, columns half as many: the processor itself stops at the end of a page. */
enum { VALUES_AHEAD = 2048 };

#define ALWAYS_INLINE inline __attribute__((always_inline))

/* A vector of the processor; GCC and Clang have them on every machine. */
typedef int32_t pack_i32 __attribute__((vector_size(4 * SPOTS)));

/* How a tile's columns are read: constants once they are inlined. */
struct reading {
    bool pattern; /* no values: all are 1 */
    bool narrow;  /* columns of 16 bits */
    bool far;     /* x is prefetched */
    bool stream;  /* y is written past the caches */
};

/* What lies so many bytes behind from, which may be the end of an array and beyond. */
static ALWAYS_INLINE void prefetch(const void *from, int64_t bytes)
{
    __builtin_prefetch((const void *)((uintptr_t)from + (uintptr_t)bytes));
}

static ALWAYS_INLINE int64_t column_at(const void *col, bool narrow, int64_t k)
{
    return narrow ? (int64_t)((const uint16_t *)col)[k] : (int64_t)((const int32_t *)col)[k];
}

/* Parts of equal bytes, up to a tile: not of as many tiles, as some read half of what others do. */
static void cut_parts(struct tiles *tiles, int threads)
{
    const int64_t total = tiles->tile[tiles->count].bytes;
    int64_t t = 0;
    for (int p = 0; p < threads; p++) {
        while (t < tiles->count && tiles->tile[t].bytes < total / threads * p + total % threads * p / threads)
            t++;
        tiles->part[p].begin = t;
        if (p > 0)
            tiles->part[p - 1].end = t;
    }
    tiles->part[threads - 1].end = tiles->count;
    tiles->parts = threads;
}

/* All tiles, by all threads. Each thread has a part of them, always the same, which it goes through from begin to end,
 * so that it finds in its caches what the tile before has read of x, and the part itself where it fits. Who is done
 * helps the others, so that a thread that something else holds up does not hold up all. */
void tiles_share_out(struct tiles *tiles, tile_function *function, const void *source)
{
    const int64_t count = tiles->count;
    const int threads = tiles->threads;
    if (threads == 1) {
        for (int64_t t = 0; t < count; t++)
            function(tiles, t, source);
        return;
    }
    const int64_t claim = max_i64(1, min_i64(MOST_CLAIMED, count / threads / CLAIMS));
    if (tiles->parts != threads)
        cut_parts(tiles, threads);
    for (int p = 0; p < threads; p++)
        tiles->part[p].next = tiles->part[p].begin;
#pragma omp parallel num_threads(threads)
    {
        const int me = omp_get_thread_num();
        for (int i = 0; i < threads; i++) {
            const int p = (me + i) % threads;
            const int64_t end = tiles->part[p].end;
            const int64_t its = i == 0 ? claim : 1; /* one at a time at the end, when all wait for the last */
            int64_t *next = &tiles->part[p].next;
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

/* Of spmv_omp_epilogue.h */
#define ZERO 0
#define PLUS(a, b) ((a) + (b))
#define SCALE(a, b) ((a) * (b))
#define CONJUGATE(a) (a)

#define VALUE double
#define VALUE_BITS uint64_t
#define STORED double
#define TYPED(name) name##_f64
#include "spmv_omp_typed.h"
#undef STORED
#undef TYPED
#define STORED float
#define TYPED(name) name##_mixed
#include "spmv_omp_typed.h"
#undef VALUE
#undef VALUE_BITS
#undef TYPED
#define VALUE float
#define VALUE_BITS uint32_t
#define TYPED(name) name##_f32
#include "spmv_omp_typed.h"
#undef VALUE
#undef VALUE_BITS
#undef STORED
#undef TYPED

void tiles_omp_release(spmv_plan *plan)
{
    struct tiles *tiles = plan->state;
    if (tiles == NULL)
        return;
    spmv_free(plan->ctx, tiles->tile);
    spmv_free(plan->ctx, tiles->stretch);
    spmv_free(plan->ctx, tiles->col);
    spmv_free(plan->ctx, tiles->group);
    spmv_free(plan->ctx, tiles->place);
    spmv_free(plan->ctx, tiles->spot);
    spmv_free(plan->ctx, tiles->code);
    spmv_free(plan->ctx, tiles->head);
    spmv_free(plan->ctx, tiles->tail);
    spmv_free(plan->ctx, tiles->dots);
    spmv_free(plan->ctx, tiles->part);
    host_free(tiles);
    plan->state = NULL;
}

spmv_status tiles_omp_apply(const spmv_plan *plan, const struct plan_product *product)
{
    const struct tiles *tiles = plan->state;
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
    case PLAN_c128: /* always as columns */
    case PLAN_TYPES:
        break;
    }
    return SPMV_ERROR_TYPE;
}

void tiles_omp_pieces(const spmv_plan *plan, const void *x, void *y, const spmv_epilogue *epilogue,
                      struct pieces *pieces)
{
    const struct tiles *tiles = plan->state;
    pieces->tiles = tiles;
    if (tiles->columns) {
        columns_omp_pieces(plan, x, y, pieces);
        return;
    }
    switch (plan->types) {
    case PLAN_f32:
        pieces_f32(plan, x, y, epilogue, pieces);
        return;
    case PLAN_f64:
        pieces_f64(plan, x, y, epilogue, pieces);
        return;
    case PLAN_mixed:
        pieces_mixed(plan, x, y, epilogue, pieces);
        return;
    case PLAN_c64:
    case PLAN_c128:
    case PLAN_TYPES: /* no pieces */
        return;
    }
}

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
 * Which entry of a row meets which sum is a function of the row's length alone (spmv_omp_typed.h): neither kind of
 * stretch, nor width of columns, nor instruction set shows in the bits.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "plan_internal.h"

#include <string.h>
#ifdef __x86_64__
#include <immintrin.h>
#endif

#include "spmv_omp.h"

/* Fewer tiles than this are done by one thread: starting a team costs as much as some 8 tiles. */
enum { PARALLEL_TILES = 8 };

/* A thread claims its tiles in some 32 pieces, so that one that others hold up leaves the rest to the others, but not
 * more than 16 tiles at once. */
enum { CLAIMS = 32, MOST_CLAIMED = 16 };

/* Rows of up to so many entries are summed without branches. */
enum { BRIEF = 4 };

/* So many entries ahead x is prefetched: some 100 ns at 1.5 ns an entry. */
enum { AHEAD = 64 };

#define ALWAYS_INLINE inline __attribute__((always_inline))
#ifdef __x86_64__
#define WITH(set) __attribute__((target(set)))
#endif

struct scaling {
    const void *alpha, *beta;
    bool beta_zero;
};

/* How a tile's columns are read: constants once they are inlined. */
struct reading {
    bool pattern; /* no values: all are 1 */
    bool narrow;  /* columns of 16 bits */
    bool far;     /* x is prefetched */
    bool stream;  /* y is written past the caches */
};

static ALWAYS_INLINE int64_t column_at(const void *col, bool narrow, int64_t k)
{
    return narrow ? (int64_t)((const uint16_t *)col)[k] : (int64_t)((const int32_t *)col)[k];
}

#define VALUE double
#define VALUE_BITS uint64_t
#define OFFSET int32_t
#define TYPED(name) name##_f64_32
#include "spmv_omp_typed.h"
#undef OFFSET
#undef TYPED
#define OFFSET int64_t
#define TYPED(name) name##_f64_64
#include "spmv_omp_typed.h"
#undef VALUE
#undef VALUE_BITS
#undef OFFSET
#undef TYPED
#define VALUE float
#define VALUE_BITS uint32_t
#define OFFSET int32_t
#define TYPED(name) name##_f32_32
#include "spmv_omp_typed.h"
#undef OFFSET
#undef TYPED
#define OFFSET int64_t
#define TYPED(name) name##_f32_64
#include "spmv_omp_typed.h"
#undef VALUE
#undef VALUE_BITS
#undef OFFSET
#undef TYPED

void tiles_omp_release(spmv_plan *plan)
{
    struct tiles *tiles = plan->state;
    if (tiles == NULL)
        return;
    spmv_free(plan->ctx, tiles->tile);
    spmv_free(plan->ctx, tiles->stretch);
    spmv_free(plan->ctx, tiles->col);
    spmv_free(plan->ctx, tiles->head);
    spmv_free(plan->ctx, tiles->tail);
    host_free(tiles);
    plan->state = NULL;
}

spmv_status tiles_omp_apply(const spmv_plan *plan, const void *alpha, const void *x, const void *beta, bool beta_zero,
                            void *y)
{
    const struct scaling scaling = {.alpha = alpha, .beta = beta, .beta_zero = beta_zero};
    const bool narrow = plan->a.row_ptr_bits == 32;
    if (plan->type == SPMV_F32)
        (narrow ? product_f32_32 : product_f32_64)(plan, scaling, x, y);
    else
        (narrow ? product_f64_32 : product_f64_64)(plan, scaling, x, y);
    return SPMV_OK;
}

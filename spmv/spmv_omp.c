/* Method "tiles" of the backend omp: tiles of equal work, work being rows plus nonzeros, so that neither one long row
 * nor a million empty ones idles a thread.
 *
 * Think of the merge of the row ends with the nonzeros: each step finishes a row or takes a nonzero. The plan cuts that
 * path every TILE_WORK steps; a tile knows from which (row, nonzero) to which it goes. Rows that cross a border are
 * added up in tile order after the parallel loop. The tiles depend on the matrix alone, so the bits do not depend on
 * the number of threads. D. Merrill, M. Garland, "Merge-based parallel sparse matrix-vector multiplication", SC16.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "plan_internal.h"

#include <string.h>

/* 4096 steps are some 48 KB of matrix in f64: long enough to hide what a tile costs (two searches in the plan, two
 * partial sums, a claim of the scheduler), short enough that small matrices still give each thread several. */
enum { TILE_WORK = 4096 };

/* Fewer tiles than this are done by one thread: starting a team costs as much as some 8 tiles. */
enum { PARALLEL_TILES = 8 };

/* Rows of up to so many entries are summed without branches. */
enum { BRIEF = 4 };

struct position {
    int64_t row, k; /* the next row to finish, the next nonzero to take */
};

struct tiles {
    int64_t count;
    struct position *begin; /* count + 1 */
    void *head, *tail;      /* count partial sums each, of the plan's type */
};

struct scaling {
    const void *alpha, *beta;
    bool beta_zero;
};

/* Whether the row to finish next has nonzeros before this position. */
static bool begun_before(const spmv_csr *a, struct position p)
{
    return p.row < a->rows && offset_at(a->row_ptr, a->row_ptr_bits, p.row) < p.k;
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

/* Where the merge path is after so many steps: the first row whose end lies beyond the nonzeros taken. A row end comes
 * before the nonzero of the same number. */
static struct position path_at(const spmv_csr *a, int64_t steps)
{
    int64_t low = max_i64(0, steps - a->nnz), high = min_i64(steps, a->rows);
    while (low < high) {
        const int64_t row = low + (high - low) / 2;
        if (offset_at(a->row_ptr, a->row_ptr_bits, row + 1) <= steps - row - 1)
            low = row + 1;
        else
            high = row;
    }
    return (struct position){.row = low, .k = steps - low};
}

spmv_status tiles_omp_prepare(spmv_plan *plan)
{
    spmv_status st = SPMV_OK;
    const spmv_csr *a = &plan->a;
    const int64_t work = a->rows + a->nnz, size = (int64_t)spmv_type_size(plan->type);
    struct tiles *tiles = NULL;
    TRY(host_alloc(plan->ctx, sizeof *tiles, "a plan", &plan->state));
    tiles = plan->state;
    *tiles = (struct tiles){.count = ceil_divide(work, TILE_WORK)};
    TRY(plan_alloc(plan, (tiles->count + 1) * (int64_t)sizeof *tiles->begin, (void **)&tiles->begin));
    TRY(plan_alloc(plan, tiles->count * size, &tiles->head));
    TRY(plan_alloc(plan, tiles->count * size, &tiles->tail));
#pragma omp parallel for num_threads(plan->ctx->threads) if (tiles->count >= 1000)
    for (int64_t t = 0; t <= tiles->count; t++)
        tiles->begin[t] = path_at(a, min_i64(t * TILE_WORK, work));
done:
    return st;
}

void tiles_omp_release(spmv_plan *plan)
{
    struct tiles *tiles = plan->state;
    if (tiles == NULL)
        return;
    spmv_free(plan->ctx, tiles->begin);
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

/* Method "tiles" of the backend omp: tiles of equal work, where work is rows plus nonzeros. Neither
 * one long row nor a million empty rows leave a thread idle.
 *
 * The tiles are sections of the merge path of row ends and nonzeros: each step finishes a row or
 * takes a nonzero, and the plan cuts the path every TILE_WORK steps. Rows that cross a boundary are
 * added in tile order after the parallel loop. The tiles depend on the matrix alone, so the bits do
 * not depend on the number of threads. D. Merrill, M. Garland, "Merge-based parallel sparse
 * matrix-vector multiplication", SC16.
 *
 * The product of a tile is in spmv_omp_vector.c and spmv_omp_columns.c; spmv_omp_variants.h lists
 * its variants. The assignment of entries to partial sums depends on the length of the row alone
 * (SERIAL there). So the kind of stretch, the order of the rows, the width of columns and the
 * instruction set do not change the bits.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <omp.h>
#include <string.h>

#include "product/omp/spmv_omp_variants.h"

/* A thread claims one tile at a time, or MOST_CLAIMED (about 10 us) where each thread has at least
 * CLAIMS times as many. */
enum { MOST_CLAIMED = 2, CLAIMS = 16 };

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
#pragma omp atomic read
                t = *next;
                if (t >= end) /* mostly so: no cache line changes hands */
                    break;
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

/* Whether a product may write y with streaming stores. */
static bool streams(const spmv_plan *plan, const struct plan_product *product)
{
    const struct omp_tiles *tiles = plan->state;
    return tiles->stream && product->beta_zero && plan->a.val != NULL;
}

#define TEMPLATE "product/omp/spmv_omp_typed.h"
#include "product/each_plan_type.h"
#undef TEMPLATE
#define TEMPLATE "product/omp/spmv_omp_join.h"
#include "product/each_plan_type.h"

void tiles_omp_release(spmv_plan *plan)
{
    const struct omp_tiles *tiles = plan->state;
    context_free_all(plan->ctx, tiles->tile, tiles->stretch, tiles->col, tiles->bucket, tiles->place, tiles->spot,
                     tiles->code, tiles->head, tiles->tail, tiles->dots, tiles->share, tiles->lanes.tile,
                     tiles->lanes.slice, tiles->lanes.val, tiles->lanes.offset, tiles->lanes.col, tiles->lanes.row);
}

spmv_status tiles_omp_update(spmv_plan *plan)
{
    lanes_fill(plan, plan->state);
    return SPMV_OK;
}

static void fill_loop(const spmv_plan *plan, const struct plan_product *product, struct tile_loop *loop)
{
#define ROW(name, STORED, VECTORS) [PLAN_##name] = fill_source_##name,
    static void (*const fill_source[])(const spmv_plan *, const struct plan_product *,
                                       void *source) = {PLAN_TYPES_LIST(ROW)};
#undef ROW
    const struct omp_tiles *tiles = plan->state;
    const bool pattern = plan->a.val == NULL;
    fill_source[plan->types](plan, product, loop->source);
    loop->tiles = tiles;
    loop->function = tiles->columns ? columns_function(plan->types)
                                    : vector_function(plan->types, tiles->avx2, pattern,
                                                      streams(plan, product) && product->epilogue == NULL);
}

spmv_status tiles_omp_apply(const spmv_plan *plan, const struct plan_product *product)
{
#define ROW(name, STORED, VECTORS) [PLAN_##name] = join_##name,
    static void (*const join[])(const struct omp_tiles *, const void *source) = {PLAN_TYPES_LIST(ROW)};
#undef ROW
    struct tile_loop loop;
    fill_loop(plan, product, &loop);
    tiles_share_out(plan->state, loop.function, loop.source);
    join[plan->types](plan->state, loop.source);
    return SPMV_OK;
}

void tiles_omp_loop(const spmv_plan *plan, const void *x, void *y, const spmv_epilogue *epilogue,
                    struct tile_loop *loop)
{
    struct plan_product product = plan_product_of(plan, NULL, x, NULL, y);
    product.epilogue = epilogue;
    fill_loop(plan, &product, loop);
}

/* Sharing tiles among the threads of a team.
 *
 * tiles_each schedules statically: each thread streams through one run of neighbouring tiles. tiles_chain hands tiles
 * out in order and lets what a tile needs of its predecessors run along them, while the tile waits in the cache of its
 * core. So memory sees each element read once and written once, and no barrier is needed. D. Merrill, M. Garland,
 * "Single-pass parallel prefix scan with decoupled look-back", NVR-2016-002; here without the looking back, since a
 * core's tile takes far longer than the step from tile to tile.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "host_tiles.h"

#include <sched.h>
#include <stdatomic.h>

/* Looks at a counter before a waiting thread lets others run: about a microsecond. The thread waited for may have been
 * put aside by the system, perhaps for the one that waits. */
enum { PATIENCE = 1000 };

static int team_for(const spmv_context *ctx, int64_t tiles)
{
    return tiles < HOST_PARALLEL_TILES ? 1 : (int)min_i64(ctx->threads, tiles);
}

void tiles_each(const spmv_context *ctx, int64_t tiles, tile_fn *body, void *state)
{
    const int team = team_for(ctx, tiles);
    if (team == 1) {
        for (int64_t t = 0; t < tiles; t++)
            body(state, t);
        return;
    }
#pragma omp parallel for schedule(static) num_threads(team)
    for (int64_t t = 0; t < tiles; t++)
        body(state, t);
}

static void wait_until(const atomic_llong *counter, int64_t value)
{
    for (int looks = 1; atomic_load_explicit(counter, memory_order_acquire) != value; looks++)
        if (looks % PATIENCE == 0)
            sched_yield();
}

void tiles_chain(const spmv_context *ctx, int64_t tiles, tile_fn *first, tile_fn *combine, tile_fn *second, void *state)
{
    atomic_llong taken = 0, combined = 0;
    const int team = team_for(ctx, tiles);
#pragma omp parallel num_threads(team) if (team > 1)
    /* Tiles are taken in order, so the tile waited for is in the hands of a thread that runs already, and that one
     * waits for smaller tiles only: the smallest tile in work never waits. */
    for (int64_t t; (t = atomic_fetch_add(&taken, 1)) < tiles;) {
        first(state, t);
        wait_until(&combined, t);
        combine(state, t);
        atomic_store_explicit(&combined, t + 1, memory_order_release);
        second(state, t);
    }
}

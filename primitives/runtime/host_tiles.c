/* Sharing tiles among the threads of a team.
 *
 * tiles_each cuts the tiles into one run of neighbours a thread, through which it streams; who is done helps with the
 * runs of others, so that a thread put aside by the system does not hold up all. tiles_chain hands tiles
 * out in order and lets what a tile needs of its predecessors run along them, while the tile waits in the cache of its
 * core. So memory sees each element read once and written once, and no barrier is needed. A thread whose tile has to
 * wait for another's goes on to the next tile, so that one thread put aside by the system does not hold up all.
 * D. Merrill, M. Garland, "Single-pass parallel prefix scan with decoupled look-back", NVR-2016-002; here without the
 * looking back, since a core's tile takes far longer than the step from tile to tile.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "host_tiles.h"

#include <omp.h>
#include <sched.h>
#include <stdatomic.h>

/* Rounds that find nothing to do before a waiting thread lets others run: some microseconds. The thread waited for may
 * have been put aside by the system, perhaps for the one that waits. */
enum { PATIENCE = 1000 };

/* How many tiles tiles_chain begins beyond the first that is not combined: 64 MB of f32, what a few cores read while
 * the system has one of them do something else. */
enum { AHEAD = 2048 };

static int team_for(const spmv_context *ctx, int64_t tiles)
{
    return team_threads(ctx, tiles, HOST_PARALLEL_TILES);
}

/* Runs of tiles, and how many tiles of one are taken at a time: some hundred microseconds. */
enum { RUNS = 64, TAKEN = 8 };

struct run_of_tiles {
    _Alignas(64) atomic_llong next; /* a cache line each */
    int64_t end;
};

static void run_tiles(struct run_of_tiles *run, tile_fn *body, void *state)
{
    for (;;) {
        const int64_t begin = atomic_fetch_add_explicit(&run->next, TAKEN, memory_order_relaxed);
        for (int64_t t = begin; t < min_i64(begin + TAKEN, run->end); t++)
            body(state, t);
        if (begin + TAKEN >= run->end)
            return;
    }
}

void tiles_each(const spmv_context *ctx, int64_t tiles, tile_fn *body, void *state)
{
    const int team = team_for(ctx, tiles);
    if (team == 1) {
        for (int64_t t = 0; t < tiles; t++)
            body(state, t);
        return;
    }
    const int runs = team < RUNS ? team : RUNS;
    struct run_of_tiles run[RUNS];
    for (int r = 0; r < runs; r++) {
        atomic_init(&run[r].next, tiles / runs * r + min_i64(r, tiles % runs));
        run[r].end = tiles / runs * (r + 1) + min_i64(r + 1, tiles % runs);
    }
#pragma omp parallel num_threads(team)
    {
        const int own = (int)((int64_t)omp_get_thread_num() * runs / omp_get_num_threads());
        for (int r = 0; r < runs; r++)
            run_tiles(&run[(own + r) % runs], body, state);
    }
}

struct chain {
    int64_t tiles;
    tile_fn *first, *combine, *second;
    void *state;
    atomic_llong taken;        /* tiles handed out */
    atomic_llong combined;     /* combine is done for the tiles below */
    atomic_flag combining;     /* held by the thread that calls combine */
    atomic_llong begun[AHEAD]; /* begun[t % AHEAD] == t + 1: first is done for tile t */
};

static bool may_combine(const struct chain *chain, int64_t t)
{
    return t < chain->tiles && atomic_load_explicit(&chain->begun[t % AHEAD], memory_order_acquire) == t + 1;
}

/* Calls combine for all tiles whose turn it is, unless another thread is at it. */
static void combine_begun(struct chain *chain)
{
    if (!may_combine(chain, atomic_load_explicit(&chain->combined, memory_order_relaxed)) ||
        atomic_flag_test_and_set_explicit(&chain->combining, memory_order_acquire))
        return;
    for (int64_t t = atomic_load_explicit(&chain->combined, memory_order_relaxed); may_combine(chain, t); t++) {
        chain->combine(chain->state, t);
        atomic_store_explicit(&chain->combined, t + 1, memory_order_release);
    }
    atomic_flag_clear_explicit(&chain->combining, memory_order_release);
}

/* Takes the next tile if there is one below limit. Not before a thread can begin with it: those behind it wait. */
static bool take(struct chain *chain, int64_t limit, int64_t *tile)
{
    long long next = atomic_load_explicit(&chain->taken, memory_order_relaxed);
    while (next < min_i64(chain->tiles, limit)) {
        *tile = next;
        if (atomic_compare_exchange_weak_explicit(&chain->taken, &next, next + 1, memory_order_relaxed,
                                                  memory_order_relaxed))
            return true;
    }
    return false;
}

/* What one thread does. A tile is taken only below combined + AHEAD, so that its place in begun is free. The first tile
 * that is not combined is in the hands of a thread that runs first on it or comes back here, where every thread with
 * work left tries to combine: so some thread always gets on. */
static void run_chain(struct chain *chain)
{
    int64_t waiting[AHEAD], oldest = 0, newest = 0; /* tiles of this thread between first and second */
    int64_t next;
    for (int idle = 1; oldest < newest || atomic_load(&chain->taken) < chain->tiles;) {
        combine_begun(chain);
        const int64_t combined = atomic_load_explicit(&chain->combined, memory_order_acquire);
        if (oldest < newest && waiting[oldest % AHEAD] < combined) {
            chain->second(chain->state, waiting[oldest++ % AHEAD]);
        } else if (take(chain, combined + AHEAD, &next)) {
            chain->first(chain->state, next);
            atomic_store_explicit(&chain->begun[next % AHEAD], next + 1, memory_order_release);
            waiting[newest++ % AHEAD] = next;
        } else if (idle++ % PATIENCE == 0) {
            sched_yield();
        }
    }
}

void tiles_chain(const spmv_context *ctx, int64_t tiles, tile_fn *first, tile_fn *combine, tile_fn *second, void *state)
{
    const int team = team_for(ctx, tiles);
    if (team == 1) {
        for (int64_t t = 0; t < tiles; t++) {
            first(state, t);
            combine(state, t);
            second(state, t);
        }
        return;
    }
    struct chain chain;
    chain.tiles = tiles;
    chain.first = first;
    chain.combine = combine;
    chain.second = second;
    chain.state = state;
    atomic_init(&chain.taken, 0);
    atomic_init(&chain.combined, 0);
    atomic_flag_clear(&chain.combining);
    for (int64_t t = 0; t < min_i64(tiles, AHEAD); t++)
        atomic_init(&chain.begun[t], 0);
#pragma omp parallel num_threads(team)
    run_chain(&chain);
}

/* Distributes tiles over the threads of a team.
 *
 * tiles_each splits the tiles into one contiguous share per thread. A finished thread takes tiles
 * from the shares of others, so one delayed thread does not stall the team. tiles_chain hands out
 * tiles in order and passes a carry from tile to tile while the tile's data stays in its core's
 * cache. So each element is read once from memory and written once, without a barrier. A thread
 * whose tile waits for another tile continues with the next tile.
 * Source: D. Merrill, M. Garland, "Single-pass parallel prefix scan with decoupled look-back",
 * NVR-2016-002. Here without look-back, because a tile on a core takes far longer than a step of
 * the carry.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "core/loops/host_tiles.h"

#include <omp.h>
#include <sched.h>
#include <stdatomic.h>

/* Iterations without work before a waiting thread yields: some microseconds. The system may have
 * suspended the thread that it waits for. */
enum { PATIENCE = 1000 };

/* How many tiles tiles_chain starts beyond the first that is not combined: 64 MB of f32, so that
 * the other threads have work while the system suspends one. */
enum { AHEAD = 2048 };

static int team_for(const spmv_context *ctx, int64_t elements)
{
    return team_threads(ctx, elements, TEAM_WORTH_AWAKE);
}

/* The largest number of shares, and the tiles taken from one at a time: some hundred microseconds of
 * work. */
enum { SHARES = 64, TAKEN = 8 };

struct share {
    _Alignas(64) atomic_llong next; /* a cache line each */
    int64_t end;
};

static void run_tiles(struct share *share, tile_fn *body, void *state)
{
    for (;;) {
        const int64_t begin = atomic_fetch_add_explicit(&share->next, TAKEN, memory_order_relaxed);
        for (int64_t t = begin; t < min_i64(begin + TAKEN, share->end); t++)
            body(state, t);
        if (begin + TAKEN >= share->end)
            return;
    }
}

void tiles_each(const spmv_context *ctx, int64_t tiles, tile_fn *body, void *state)
{
    tiles_each_of(ctx, tiles, tiles * HOST_TILE, body, state);
}

void tiles_each_of(const spmv_context *ctx, int64_t tiles, int64_t elements, tile_fn *body, void *state)
{
    const int team = team_for(ctx, elements);
    if (team == 1) {
        for (int64_t t = 0; t < tiles; t++)
            body(state, t);
        return;
    }
    const int shares = team < SHARES ? team : SHARES;
    struct share share[SHARES];
    for (int r = 0; r < shares; r++) {
        atomic_init(&share[r].next, tiles / shares * r + min_i64(r, tiles % shares));
        share[r].end = tiles / shares * (r + 1) + min_i64(r + 1, tiles % shares);
    }
#pragma omp parallel num_threads(team)
    {
        const int own = (int)((int64_t)omp_get_thread_num() * shares / omp_get_num_threads());
        for (int r = 0; r < shares; r++)
            run_tiles(&share[(own + r) % shares], body, state);
    }
}

struct chain {
    int64_t tiles;
    tile_fn *first, *combine, *second;
    void *state;
    atomic_llong taken;        /* tiles handed out */
    atomic_llong combined;     /* combine is done for all smaller tiles */
    atomic_flag combining;     /* held by the thread that calls combine */
    atomic_llong begun[AHEAD]; /* begun[t % AHEAD] == t + 1: first is done for tile t */
};

static bool may_combine(const struct chain *chain, int64_t t)
{
    return t < chain->tiles && atomic_load_explicit(&chain->begun[t % AHEAD], memory_order_acquire) == t + 1;
}

/* Calls combine for all tiles whose turn it is, unless another thread is doing so. */
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

/* Takes the next tile if there is one below limit. Call it only when the thread can start the tile
 * at once, because later tiles wait for it. */
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

/* The loop of one thread. A tile is taken only below combined + AHEAD, so its entry in begun is
 * free. Progress: the first tile that is not combined belongs to a thread that is running first on
 * it or returns to this loop, and every thread in this loop tries to combine. */
static void run_chain(struct chain *chain)
{
    /* tiles of this thread between first and second */
    int64_t waiting[AHEAD], oldest = 0, newest = 0;
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
    const int team = team_for(ctx, tiles * HOST_TILE);
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

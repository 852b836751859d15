/* Sharing tiles among the threads of a team.
 *
 * Both loops are statically scheduled: each thread gets one run of neighbouring tiles, so memory is streamed, and in a
 * wave the second pass finds the tiles of the first in the thread's own cache (OpenMP 4.5, 2.7.1: loops of the same
 * length and schedule in one parallel region are shared out alike).
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "host_tiles.h"

#include <omp.h>

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

static void serial_wave(int64_t from, int64_t to, tile_fn *first, tiles_fn *combine, tile_fn *second, void *state)
{
    for (int64_t t = from; t < to; t++)
        first(state, t);
    combine(state, from, to);
    for (int64_t t = from; t < to; t++)
        second(state, t);
}

void tiles_waves(const spmv_context *ctx, int64_t tiles, tile_fn *first, tiles_fn *combine, tile_fn *second,
                 void *state)
{
    const int team = team_for(ctx, tiles);
    if (team == 1) {
        for (int64_t from = 0; from < tiles; from += HOST_WAVE_TILES)
            serial_wave(from, min_i64(from + HOST_WAVE_TILES, tiles), first, combine, second, state);
        return;
    }
#pragma omp parallel num_threads(team)
    {
        const int64_t wave = (int64_t)HOST_WAVE_TILES * omp_get_num_threads();
        for (int64_t from = 0; from < tiles; from += wave) {
            const int64_t to = min_i64(from + wave, tiles);
#pragma omp for schedule(static)
            for (int64_t t = from; t < to; t++)
                first(state, t);
#pragma omp single
            combine(state, from, to);
            /* no barrier behind: the next wave's first pass reads other tiles, its combine waits for that pass */
#pragma omp for schedule(static) nowait
            for (int64_t t = from; t < to; t++)
                second(state, t);
        }
    }
}

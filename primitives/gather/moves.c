/* Moves tile by tile of the index: see moves.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "moves.h"

#include "host_tiles.h"

struct move_job {
    const struct move *move;
    move_part *part;
};

static void move_tile(void *state, int64_t tile)
{
    const struct move_job *job = state;
    const struct range r = tile_range(tile, job->move->n);
    job->part(job->move, r.begin, r.end);
}

void move_serially(const struct move *move, move_part *part)
{
    struct move_job job = {.move = move, .part = part};
    for (int64_t tile = 0; tile < tiles_of(move->n); tile++)
        move_tile(&job, tile);
}

void move_in_tiles(const spmv_context *ctx, const struct move *move, move_part *part)
{
    struct move_job job = {.move = move, .part = part};
    tiles_each(ctx, tiles_of(move->n), move_tile, &job);
}

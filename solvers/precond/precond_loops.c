/* The loops of preconditioners on the host.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "solvers/precond/precond_loops.h"

#include "core/loops/host_tiles.h"
#include "core/loops/ops.h"

#define TEMPLATE "solvers/precond/precond_loops_typed.h"
#include "core/each/each_real.h"

void precond_blocks_loop(spmv_type type, const struct precond_blocks *blocks, const void *r, void *z, int64_t begin,
                         int64_t end)
{
    static void (*const run[SPMV_TYPE_LIMIT])(const struct precond_blocks *, const void *, void *, int64_t, int64_t) =
        REAL_TABLE(blocks);
    run[type](blocks, r, z, begin, end);
}

void precond_step_loop(spmv_type type, const struct precond_step *step, int64_t begin, int64_t end)
{
    static void (*const run[SPMV_TYPE_LIMIT])(const struct precond_step *, int64_t, int64_t) = REAL_TABLE(step);
    run[type](step, begin, end);
}

struct rows_of_step {
    spmv_type type;
    int64_t n, tile; /* rows, and those of a tile */
    const struct precond_step *step;
};

static void step_tile(void *state, int64_t tile)
{
    const struct rows_of_step *s = state;
    precond_step_loop(s->type, s->step, tile * s->tile, min_i64(s->n, (tile + 1) * s->tile));
}

spmv_status precond_smooth_step(spmv_context *ctx, spmv_type type, const struct precond_step *step, int64_t n)
{
    if (context_on_device(ctx))
        return precond_step_cuda(ctx, type, step, n);
    struct rows_of_step state = {type, n, max_i64(1, HOST_TILE / max_i64(1, step->columns)), step};
    tiles_each(ctx, ceil_divide(n, state.tile), step_tile, &state);
    return SPMV_OK;
}

void precond_triangle_loop(spmv_type type, const struct precond_triangle *triangle, const void *in, void *out,
                           int64_t begin, int64_t end)
{
    static void (*const run[SPMV_TYPE_LIMIT])(const struct precond_triangle *, const void *, void *, int64_t, int64_t) =
        REAL_TABLE(triangle);
    run[type](triangle, in, out, begin, end);
}

/* reduce on OpenMP: folds each tile, then folds the tiles' results in tile order.
 *
 * Reads the input once. With a function, the tile is first mapped into a buffer, so that the bits
 * equal those of a map followed by a reduce.
 * Source: G. E. Blelloch, "Prefix sums and their applications", CMU-CS-90-190, 1990.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "core/backend.h"
#include "core/loops/host_tiles.h"
#include "core/loops/loops.h"
#include "primitives/map/map_loops.h"
#include "primitives/reduce/reduce_ladder.h"

int64_t reduce_scratch_omp(const spmv_context *ctx, spmv_type type, int64_t n)
{
    (void)ctx;
    return tiles_of(n) * (int64_t)spmv_type_size(type);
}

struct map_reduce_job {
    struct tile_folds folds;
    map_loop *map;
};

static void fold_mapped_tile(void *state, int64_t tile)
{
    const struct map_reduce_job *job = state;
    const struct tile_folds *f = &job->folds;
    const struct range r = tile_range(tile, f->n);
    union any_element mapped[HOST_TILE]; /* 64 KB: stays in the core's cache */
    job->map(element(f->in, f->loops->size, r.begin), mapped, 0, r.end - r.begin);
    f->loops->fold(mapped, 0, r.end - r.begin, element_out(f->part, f->loops->size, tile));
}

spmv_status reduce_omp(spmv_context *ctx, spmv_op op, spmv_type type, const void *in, void *out, int64_t n,
                       void *scratch)
{
    struct tile_folds job = {.loops = op_loops(op, type), .in = in, .part = scratch, .n = n};
    tiles_each(ctx, tiles_of(n), tiles_fold, &job);
    job.loops->fold(scratch, 0, tiles_of(n), out);
    return SPMV_OK;
}

spmv_status map_reduce_omp(spmv_context *ctx, spmv_function function, spmv_op op, spmv_type type, const void *in,
                           void *out, int64_t n, void *scratch)
{
    struct map_reduce_job job = {.folds = {.loops = op_loops(op, type), .in = in, .part = scratch, .n = n},
                                 .map = map_loop_function(function, type)};
    tiles_each(ctx, tiles_of(n), fold_mapped_tile, &job);
    job.folds.loops->fold(scratch, 0, tiles_of(n), out);
    return SPMV_OK;
}

static spmv_status run_tiles(spmv_context *ctx, enum reduce_finish finish, spmv_op op, spmv_type type, const void *in,
                             void *out, int64_t n, void *scratch)
{
    (void)finish;
    return reduce_omp(ctx, op, type, in, out, n, scratch);
}

static const struct reduce_rung rungs[] = {{.name = "tiles", .scratch = reduce_scratch_omp, .run = run_tiles},
                                           {.name = NULL}};

const struct reduce_rung *reduce_rungs_omp(void)
{
    return rungs;
}

/* scan on OpenMP, reduce-then-scan: folds each tile; scans the folds in tile order; scans each tile
 * starting with its prefix.
 *
 * A tile stays in its core's cache between the two passes (tiles_chain), so each element is read
 * once from memory and written once.
 * Source: G. E. Blelloch, "Prefix sums and their applications", CMU-CS-90-190, 1990, section 1.2.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "core/backend.h"
#include "core/loops/host_tiles.h"
#include "core/loops/loops.h"
#include "primitives/map/map_loops.h"

int64_t scan_scratch_omp(const spmv_context *ctx, spmv_type type, int64_t n)
{
    (void)ctx;
    return tiles_of(n) * (int64_t)spmv_type_size(type);
}

struct scan_job {
    struct tile_folds folds; /* of each tile, then its prefix; first: see tiles_fold */
    map_loop *map;           /* NULL: none */
    spmv_scan_kind kind;
    void *out;
    bool stream;        /* bypass the caches */
    struct carry carry; /* prefix of the next tile */
};

/* Maps into out, which the second pass over the tile scans in place. */
static void map_tile(void *state, int64_t tile)
{
    const struct scan_job *job = state;
    const struct tile_folds *f = &job->folds;
    const struct range r = tile_range(tile, f->n);
    job->map(f->in, job->out, r.begin, r.end);
    f->loops->fold(job->out, r.begin, r.end, element_out(f->part, f->loops->size, tile));
}

static void scan_part(void *state, int64_t tile)
{
    struct scan_job *job = state;
    const struct op_loops *loops = job->folds.loops;
    void *part = element_out(job->folds.part, loops->size, tile);
    const struct carry before = job->carry;
    carry_join(loops, &job->carry, part);
    memcpy(part, &before.value, loops->size);
}

static void scan_tile(void *state, int64_t tile)
{
    const struct scan_job *job = state;
    const struct tile_folds *f = &job->folds;
    const struct range r = tile_range(tile, f->n);
    struct carry before = {.some = tile > 0 || job->kind == SPMV_EXCLUSIVE};
    memcpy(&before.value, element(f->part, f->loops->size, tile), f->loops->size);
    scan_from(f->loops, job->kind, &before, NULL, job->map != NULL ? job->out : f->in, job->out, r.begin, r.end,
              job->stream);
}

spmv_status scan_omp(spmv_context *ctx, spmv_scan_kind kind, spmv_op op, spmv_type type, const void *in, void *out,
                     int64_t n, void *scratch)
{
    const struct op_loops *loops = op_loops(op, type);
    struct scan_job job = {.folds = {.loops = loops, .in = in, .part = scratch, .n = n}, .kind = kind, .out = out};
    job.stream = scan_streams(loops, in, out, n);
    carry_restart(loops, kind, &job.carry);
    tiles_chain(ctx, tiles_of(n), tiles_fold, scan_part, scan_tile, &job);
    return SPMV_OK;
}

spmv_status map_scan_omp(spmv_context *ctx, spmv_function function, spmv_scan_kind kind, spmv_op op, spmv_type type,
                         const void *in, void *out, int64_t n, void *scratch)
{
    const struct op_loops *loops = op_loops(op, type);
    struct scan_job job = {.folds = {.loops = loops, .in = in, .part = scratch, .n = n},
                           .map = map_loop_function(function, type),
                           .kind = kind,
                           .out = out};
    carry_restart(loops, kind, &job.carry);
    tiles_chain(ctx, tiles_of(n), map_tile, scan_part, scan_tile, &job);
    return SPMV_OK;
}

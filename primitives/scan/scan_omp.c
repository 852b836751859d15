/* scan on OpenMP, reduce-then-scan: folds each tile; scans the folds in tile order; scans each tile
 * starting with its prefix.
 *
 * A tile stays in its core's cache between the two passes (tiles_chain), so each element is read
 * once from memory and written once.
 * Source: G. E. Blelloch, "Prefix sums and their applications", CMU-CS-90-190, 1990, section 1.2.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "backend.h"
#include "host_tiles.h"
#include "loops.h"
#include "map_loops.h"

int64_t scan_scratch_omp(const spmv_context *ctx, spmv_type type, int64_t n)
{
    (void)ctx;
    return tiles_of(n) * (int64_t)spmv_type_size(type);
}

struct scan_job {
    const struct op_loops *loops;
    map_loop *map; /* NULL: none */
    spmv_scan_kind kind;
    const void *in;
    void *out;
    void *part; /* the fold of each tile, then its prefix */
    int64_t n;
    bool stream;        /* bypass the caches */
    struct carry carry; /* prefix of the next tile */
};

static void fold_tile(void *state, int64_t tile)
{
    const struct scan_job *job = state;
    const struct range r = tile_range(tile, job->n);
    job->loops->fold(job->in, r.begin, r.end, element_out(job->part, job->loops->size, tile));
}

/* Maps into out, which the second pass over the tile scans in place. */
static void map_tile(void *state, int64_t tile)
{
    const struct scan_job *job = state;
    const struct range r = tile_range(tile, job->n);
    job->map(job->in, job->out, r.begin, r.end);
    job->loops->fold(job->out, r.begin, r.end, element_out(job->part, job->loops->size, tile));
}

static void scan_part(void *state, int64_t tile)
{
    struct scan_job *job = state;
    void *part = element_out(job->part, job->loops->size, tile);
    const struct carry before = job->carry;
    carry_join(job->loops, &job->carry, part);
    memcpy(part, &before.value, job->loops->size);
}

static void scan_tile(void *state, int64_t tile)
{
    const struct scan_job *job = state;
    const struct range r = tile_range(tile, job->n);
    struct carry before = {.some = tile > 0 || job->kind == SPMV_EXCLUSIVE};
    memcpy(&before.value, element(job->part, job->loops->size, tile), job->loops->size);
    scan_from(job->loops, job->kind, &before, NULL, job->map != NULL ? job->out : job->in, job->out, r.begin, r.end,
              job->stream);
}

spmv_status scan_omp(spmv_context *ctx, spmv_scan_kind kind, spmv_op op, spmv_type type, const void *in, void *out,
                     int64_t n, void *scratch)
{
    struct scan_job job = {.loops = op_loops(op, type), .kind = kind, .in = in, .out = out, .part = scratch, .n = n};
    job.stream = scan_streams(job.loops, in, out, n);
    carry_restart(job.loops, kind, &job.carry);
    tiles_chain(ctx, tiles_of(n), fold_tile, scan_part, scan_tile, &job);
    return SPMV_OK;
}

spmv_status map_scan_omp(spmv_context *ctx, spmv_function function, spmv_scan_kind kind, spmv_op op, spmv_type type,
                         const void *in, void *out, int64_t n, void *scratch)
{
    struct scan_job job = {.loops = op_loops(op, type),
                           .map = map_loop_function(function, type),
                           .kind = kind,
                           .in = in,
                           .out = out,
                           .part = scratch,
                           .n = n};
    carry_restart(job.loops, kind, &job.carry);
    tiles_chain(ctx, tiles_of(n), map_tile, scan_part, scan_tile, &job);
    return SPMV_OK;
}

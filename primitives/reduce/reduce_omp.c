/* reduce on OpenMP: the fold of each tile, then the fold of those, in tile order.
 *
 * One read of the input. G. E. Blelloch, "Prefix sums and their applications", CMU-CS-90-190, 1990.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "backend.h"
#include "host_tiles.h"
#include "loops.h"

int64_t reduce_scratch_omp(const spmv_context *ctx, spmv_type type, int64_t n)
{
    (void)ctx;
    return tiles_of(n) * (int64_t)spmv_type_size(type);
}

struct reduce_job {
    const struct op_loops *loops;
    const void *in;
    void *part; /* the fold of each tile */
    int64_t n;
};

static void fold_tile(void *state, int64_t tile)
{
    const struct reduce_job *job = state;
    const struct range r = tile_range(tile, job->n);
    job->loops->fold(job->in, r.begin, r.end, element_out(job->part, job->loops->size, tile));
}

spmv_status reduce_omp(spmv_context *ctx, spmv_op op, spmv_type type, const void *in, void *out, int64_t n,
                       void *scratch)
{
    struct reduce_job job = {.loops = op_loops(op, type), .in = in, .part = scratch, .n = n};
    tiles_each(ctx, tiles_of(n), fold_tile, &job);
    job.loops->fold(scratch, 0, tiles_of(n), out);
    return SPMV_OK;
}

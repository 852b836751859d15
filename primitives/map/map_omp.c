/* map on OpenMP: the loop, tile by tile.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "core/backend.h"
#include "core/loops/host_tiles.h"
#include "primitives/map/map_loops.h"

struct map_job {
    map_loop *loop;
    map_pair_loop *pair_loop;
    const void *a, *b;
    void *out;
    int64_t n;
};

static void map_tile(void *state, int64_t tile)
{
    const struct map_job *job = state;
    const struct range r = tile_range(tile, job->n);
    job->loop(job->a, job->out, r.begin, r.end);
}

static void pair_tile(void *state, int64_t tile)
{
    const struct map_job *job = state;
    const struct range r = tile_range(tile, job->n);
    job->pair_loop(job->a, job->b, job->out, r.begin, r.end);
}

spmv_status map_omp(spmv_context *ctx, spmv_function function, spmv_type type, const void *in, void *out, int64_t n)
{
    struct map_job job = {.loop = map_loop_function(function, type), .a = in, .out = out, .n = n};
    tiles_each(ctx, tiles_of(n), map_tile, &job);
    return SPMV_OK;
}

static spmv_status map_pair(const spmv_context *ctx, map_pair_loop *loop, const void *a, const void *b, void *out,
                            int64_t n)
{
    struct map_job job = {.pair_loop = loop, .a = a, .b = b, .out = out, .n = n};
    tiles_each(ctx, tiles_of(n), pair_tile, &job);
    return SPMV_OK;
}

spmv_status map_binary_omp(spmv_context *ctx, spmv_op op, spmv_type type, const void *a, const void *b, void *out,
                           int64_t n)
{
    return map_pair(ctx, map_loop_binary(op, type), a, b, out, n);
}

spmv_status map_scalar_omp(spmv_context *ctx, spmv_op op, spmv_type type, const void *host_scalar, const void *in,
                           void *out, int64_t n)
{
    return map_pair(ctx, map_loop_scalar(op, type), host_scalar, in, out, n);
}

spmv_status map_index_omp(spmv_context *ctx, spmv_type type, const void *host_first, const void *host_step, void *out,
                          int64_t n)
{
    return map_pair(ctx, map_loop_index(type), host_first, host_step, out, n);
}

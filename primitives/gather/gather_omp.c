/* gather on OpenMP: the loop, tile by tile of the index.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "backend.h"
#include "gather_loops.h"
#include "host_tiles.h"

struct gather_job {
    gather_loop *loop;
    const void *in, *index;
    void *out;
    int64_t in_n, n;
};

static void gather_tile(void *state, int64_t tile)
{
    const struct gather_job *job = state;
    const struct range r = tile_range(tile, job->n);
    job->loop(job->in, job->in_n, job->index, job->out, r.begin, r.end);
}

spmv_status gather_omp(spmv_context *ctx, spmv_type type, const void *in, int64_t in_n, const void *index,
                       int index_bits, void *out, int64_t n)
{
    struct gather_job job = {
        .loop = gather_loop_for(type, index_bits), .in = in, .index = index, .out = out, .in_n = in_n, .n = n};
    tiles_each(ctx, tiles_of(n), gather_tile, &job);
    return SPMV_OK;
}

struct filtered_job {
    const struct filter *filter;
    spmv_type type;
    int index_bits;
    const void *in, *index;
    void *out;
    int64_t in_n, n;
};

static void filtered_tile(void *state, int64_t tile)
{
    const struct filtered_job *job = state;
    const struct range r = tile_range(tile, job->n);
    gather_filtered_part(job->filter, job->type, job->in, job->in_n, job->index, job->index_bits, job->out, r.begin,
                         r.end);
}

spmv_status gather_filtered_omp(spmv_context *ctx, const struct filter *filter, spmv_type type, const void *in,
                                int64_t in_n, const void *index, int index_bits, void *out, int64_t n)
{
    struct filtered_job job = {.filter = filter,
                               .type = type,
                               .index_bits = index_bits,
                               .in = in,
                               .index = index,
                               .out = out,
                               .in_n = in_n,
                               .n = n};
    tiles_each(ctx, tiles_of(n), filtered_tile, &job);
    return SPMV_OK;
}

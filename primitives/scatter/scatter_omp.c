/* scatter on OpenMP: the loop, tile by tile of the index. No index occurs twice, so threads never write the same cell.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "backend.h"
#include "host_tiles.h"
#include "scatter_loops.h"

struct scatter_job {
    scatter_loop *loop;
    const void *in, *index;
    void *out;
    int64_t out_n, n;
};

static void scatter_tile(void *state, int64_t tile)
{
    const struct scatter_job *job = state;
    const struct range r = tile_range(tile, job->n);
    job->loop(job->in, job->index, job->out, job->out_n, r.begin, r.end);
}

spmv_status scatter_omp(spmv_context *ctx, spmv_type type, const void *in, const void *index, int index_bits, void *out,
                        int64_t out_n, int64_t n)
{
    struct scatter_job job = {
        .loop = scatter_loop_for(type, index_bits), .in = in, .index = index, .out = out, .out_n = out_n, .n = n};
    tiles_each(ctx, tiles_of(n), scatter_tile, &job);
    return SPMV_OK;
}

struct filtered_job {
    const struct filter *filter;
    spmv_type type;
    int index_bits;
    const void *in, *index;
    void *out;
    int64_t out_n, n;
};

static void filtered_tile(void *state, int64_t tile)
{
    const struct filtered_job *job = state;
    const struct range r = tile_range(tile, job->n);
    scatter_filtered_part(job->filter, job->type, job->in, job->index, job->index_bits, job->out, job->out_n, r.begin,
                          r.end);
}

spmv_status scatter_filtered_omp(spmv_context *ctx, const struct filter *filter, spmv_type type, const void *in,
                                 const void *index, int index_bits, void *out, int64_t out_n, int64_t n)
{
    struct filtered_job job = {.filter = filter,
                               .type = type,
                               .index_bits = index_bits,
                               .in = in,
                               .index = index,
                               .out = out,
                               .out_n = out_n,
                               .n = n};
    tiles_each(ctx, tiles_of(n), filtered_tile, &job);
    return SPMV_OK;
}

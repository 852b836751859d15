/* compact on OpenMP: each tile counts its kept elements, gets its place from the tile before, and
 * writes them while flags and elements are still in its core's cache (tiles_chain).
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "core/backend.h"
#include "core/loops/host_tiles.h"
#include "primitives/compact/compact_loops.h"

struct compact_job {
    struct tile_numbers kept; /* of each tile, then its place; first: see tiles_place */
    const struct filter *filter;
    spmv_type type;
    const void *in;
    void *out;
    int64_t *numbers; /* for filter_map only */
    int64_t n;
};

int64_t compact_scratch_omp(const spmv_context *ctx, spmv_type type, int64_t n)
{
    (void)ctx;
    (void)type;
    return tiles_of(n) * (int64_t)sizeof(int64_t);
}

static void count_tile(void *state, int64_t tile)
{
    const struct compact_job *job = state;
    const struct range r = tile_range(tile, job->n);
    job->kept.number[tile] = compact_count_range(job->filter, job->type, job->in, r.begin, r.end);
}

static void write_tile(void *state, int64_t tile)
{
    const struct compact_job *job = state;
    const struct range r = tile_range(tile, job->n);
    compact_write_range(job->filter, job->type, job->in, r.begin, r.end,
                        element_out(job->out, spmv_type_size(job->type), job->kept.number[tile]));
}

spmv_status compact_omp(spmv_context *ctx, const struct filter *filter, spmv_type type, const void *in, void *out,
                        int64_t *count, int64_t n, void *scratch)
{
    struct compact_job job = {
        .filter = filter, .type = type, .in = in, .out = out, .n = n, .kept = {.number = scratch}};
    tiles_chain(ctx, tiles_of(n), count_tile, tiles_place, write_tile, &job);
    *count = job.kept.all;
    return SPMV_OK;
}

static void map_tile(void *state, int64_t tile)
{
    const struct compact_job *job = state;
    const struct range r = tile_range(tile, job->n);
    compact_map_range(job->filter, job->type, job->in, r.begin, r.end, job->numbers);
}

spmv_status filter_map_omp(spmv_context *ctx, const struct filter *filter, spmv_type type, const void *in,
                           int64_t *numbers, int64_t n)
{
    struct compact_job job = {.filter = filter, .type = type, .in = in, .numbers = numbers, .n = n};
    tiles_each(ctx, tiles_of(n), map_tile, &job);
    numbers[n] = 0;
    return SPMV_OK;
}

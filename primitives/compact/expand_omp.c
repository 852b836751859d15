/* Generalised compact on OpenMP: offsets by a scan of tiles (tiles_chain); scatter by tiles of
 * elements; gather by tiles of outputs, each of which searches once for its first element. If few
 * elements make most outputs, gather balances the work and scatter does not.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "core/loops/host_tiles.h"
#include "primitives/compact/expand_loops.h"

struct offsets_job {
    struct tile_numbers sum; /* of each tile, then of those before it; first: see tiles_place */
    const void *counts;
    int count_bits;
    int64_t *offsets;
    int64_t n;
};

int64_t expand_scratch_omp(const spmv_context *ctx, int64_t n)
{
    (void)ctx;
    return tiles_of(n) * (int64_t)sizeof(int64_t);
}

static void sum_tile(void *state, int64_t tile)
{
    const struct offsets_job *job = state;
    const struct range r = tile_range(tile, job->n);
    int64_t sum = 0;
    for (int64_t i = r.begin; i < r.end; i++)
        sum += expand_count(job->counts, job->count_bits, i);
    job->sum.number[tile] = sum;
}

static void offsets_tile(void *state, int64_t tile)
{
    const struct offsets_job *job = state;
    const struct range r = tile_range(tile, job->n);
    int64_t before = job->sum.number[tile];
    for (int64_t i = r.begin; i < r.end; i++) {
        /* offsets and counts may be the same array */
        const int64_t count = expand_count(job->counts, job->count_bits, i);
        job->offsets[i] = before;
        before += count;
    }
}

spmv_status expand_offsets_omp(spmv_context *ctx, const void *counts, int count_bits, int64_t *offsets, int64_t n,
                               void *scratch)
{
    struct offsets_job job = {
        .counts = counts, .count_bits = count_bits, .offsets = offsets, .sum = {.number = scratch}, .n = n};
    tiles_chain(ctx, tiles_of(n), sum_tile, tiles_place, offsets_tile, &job);
    offsets[n] = job.sum.all;
    return SPMV_OK;
}

static void elements_tile(void *state, int64_t tile)
{
    const struct expansion *e = state;
    const struct range r = tile_range(tile, e->n);
    expand_elements(e, r.begin, r.end);
}

static void outputs_tile(void *state, int64_t tile)
{
    const struct expansion *e = state;
    const struct range r = tile_range(tile, e->total);
    expand_outputs(e, r.begin, r.end);
}

spmv_status expand_omp(spmv_context *ctx, spmv_expand_form form, const struct expansion *expansion)
{
    struct expansion e = *expansion;
    if (e.offsets[e.n] < e.total)
        e.total = e.offsets[e.n];
    if (form == SPMV_EXPAND_SCATTER)
        tiles_each(ctx, tiles_of(e.n), elements_tile, &e);
    else
        tiles_each(ctx, tiles_of(e.total), outputs_tile, &e);
    return SPMV_OK;
}

/* segmented reduce on OpenMP: tiles along the merge path of heads and elements.
 *
 * A tile writes the result of each segment that starts and ends in it. For the segment open at its
 * start it keeps the fold up to the tile's first head; for the segment open at its end, the fold
 * after its last head. After the parallel loop these are joined in tile order, for segments that
 * cross any number of tiles.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "core/loops/host_tiles.h"
#include "core/loops/loops.h"
#include "primitives/segscan/segments_host.h"

struct seg_part {
    struct segment_tile tile;
    struct carry lead; /* the fold before its first head; unused if it has none */
    struct carry tail; /* the fold after its last head, or of all */
};

int64_t segreduce_scratch_omp(const spmv_context *ctx, spmv_type type, const spmv_segments *segments, int64_t n)
{
    (void)ctx;
    (void)type;
    return segment_tiles(segments, n) * (int64_t)sizeof(struct seg_part);
}

struct segreduce_job {
    const struct op_loops *loops;
    const spmv_segments *segments;
    const void *in;
    void *out;
    struct seg_part *part;
    int64_t n;
};

static struct carry fold_of(const struct segreduce_job *job, int64_t begin, int64_t end)
{
    struct carry fold = {.some = begin < end};
    if (fold.some)
        job->loops->fold(job->in, begin, end, &fold.value);
    return fold;
}

static void reduce_tile(void *state, int64_t t)
{
    const struct segreduce_job *job = state;
    const spmv_segments *segments = job->segments;
    struct seg_part *part = &job->part[t];
    const struct segment_tile tile = segment_tile_at(segments, t, job->n);
    part->tile = tile;
    if (tile.first == tile.last) {
        part->tail = fold_of(job, tile.begin, tile.end);
        return;
    }
    part->lead = fold_of(job, tile.begin, segment_begin(segments, tile.first, job->n));
    job->loops->segments(job->in, job->n, segments->heads, segments->bits, tile.first, tile.last - 1, job->out);
    part->tail = fold_of(job, segment_begin(segments, tile.last - 1, job->n), tile.end);
}

static void close_segment(const struct segreduce_job *job, int64_t s, const struct carry *all)
{
    void *out = element_out(job->out, job->loops->size, s);
    if (all->some)
        memcpy(out, &all->value, job->loops->size);
    else
        job->loops->identity(out);
}

/* Computes the results of the segments that are open at the end of a tile. */
static void join_tiles(const struct segreduce_job *job, int64_t tiles)
{
    struct carry open = {.some = false};
    for (int64_t t = 0; t < tiles; t++) {
        const struct seg_part *part = &job->part[t];
        if (part->tile.first < part->tile.last) {
            if (part->lead.some)
                carry_join(job->loops, &open, &part->lead.value);
            if (part->tile.first > 0)
                close_segment(job, part->tile.first - 1, &open);
            open.some = false;
        }
        if (part->tail.some)
            carry_join(job->loops, &open, &part->tail.value);
    }
    close_segment(job, job->segments->count - 1, &open);
}

spmv_status segreduce_omp(spmv_context *ctx, spmv_op op, spmv_type type, const spmv_segments *segments, const void *in,
                          void *out, int64_t n, void *scratch)
{
    const int64_t tiles = segment_tiles(segments, n);
    struct segreduce_job job = {
        .loops = op_loops(op, type), .segments = segments, .in = in, .out = out, .part = scratch, .n = n};
    tiles_each(ctx, tiles, reduce_tile, &job);
    join_tiles(&job, tiles);
    return SPMV_OK;
}

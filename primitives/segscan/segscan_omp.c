/* segmented scan on OpenMP, reduce-then-scan over tiles.
 *
 * The carry out of a tile is the fold of the elements after its last head; without a head, the fold
 * of its carry in and all its elements. Carries are computed in tile order; then each tile is
 * scanned from its carry in. So the first pass reads only the elements after a tile's last head.
 * Source: S. Sengupta et al., "Scan primitives for GPU computing", Graphics Hardware 2007.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "core/loops/host_tiles.h"
#include "core/loops/loops.h"
#include "primitives/segscan/segments_host.h"
#include "primitives/segscan/segscan_ladder.h"

/* The state of a tile between the passes. */
struct seg_part {
    struct segment_tile tile;
    bool head;          /* whether it has a head, which may be just after its last element */
    struct carry carry; /* the fold after its last head, later its carry in */
};

int64_t segscan_scratch_omp(const spmv_context *ctx, spmv_type type, const spmv_segments *segments, int64_t n)
{
    (void)ctx;
    (void)type;
    return segment_tiles(segments, n) * (int64_t)sizeof(struct seg_part);
}

struct segscan_job {
    const struct op_loops *loops;
    spmv_scan_kind kind;
    const spmv_segments *segments;
    const void *in;
    void *out;
    struct seg_part *part;
    int64_t n;
    bool stream;        /* bypass the caches */
    struct carry carry; /* carry into the next tile */
};

/* The last head of a tile, or -1 if it has none. Element 0 needs no flag because no element
 * precedes it. */
static int64_t last_head(const spmv_segments *segments, const struct segment_tile *tile)
{
    if (segments->form != SPMV_SEGMENT_FLAGS)
        return tile->first < tile->last ? offset_at(segments->heads, segments->bits, tile->last - 1) : -1;
    int64_t head = tile->end - 1;
    while (head >= tile->begin && !segment_flag(segments, head))
        head--;
    return head >= tile->begin ? head : -1;
}

static void fold_tile(void *state, int64_t t)
{
    const struct segscan_job *job = state;
    struct seg_part *part = &job->part[t];
    part->tile = segment_tile_at(job->segments, t, job->n);
    const int64_t head = last_head(job->segments, &part->tile), begin = max_i64(head, part->tile.begin);
    part->head = head >= 0;
    part->carry.some = begin < part->tile.end;
    if (part->carry.some)
        job->loops->fold(job->in, begin, part->tile.end, &part->carry.value);
}

static void carry_on(void *state, int64_t t)
{
    struct segscan_job *job = state;
    const struct carry own = job->part[t].carry;
    job->part[t].carry = job->carry;
    if (job->part[t].head)
        carry_restart(job->loops, job->kind, &job->carry);
    if (own.some)
        carry_join(job->loops, &job->carry, &own.value);
}

static void scan_tile(void *state, int64_t t)
{
    const struct segscan_job *job = state;
    const struct seg_part *part = &job->part[t];
    const struct segment_tile *tile = &part->tile;
    const spmv_segments *segments = job->segments;
    uint8_t marks[HOST_TILE];
    const uint8_t *heads = NULL;
    if (part->head && segments->form == SPMV_SEGMENT_FLAGS && segments->bits == 8) {
        heads = (const uint8_t *)segments->heads + tile->begin;
    } else if (part->head && segments->form == SPMV_SEGMENT_FLAGS) {
        for (int64_t i = tile->begin; i < tile->end; i++)
            marks[i - tile->begin] = flag_bit(segments->heads, i);
        heads = marks;
    } else if (part->head) {
        memset(marks, 0, (size_t)(tile->end - tile->begin));
        for (int64_t s = tile->first; s < tile->last; s++) {
            const int64_t head = offset_at(segments->heads, segments->bits, s);
            if (head < tile->end)
                marks[head - tile->begin] = 1;
        }
        heads = marks;
    }
    scan_from(job->loops, job->kind, &part->carry, heads, job->in, job->out, tile->begin, tile->end, job->stream);
}

spmv_status segscan_omp(spmv_context *ctx, spmv_scan_kind kind, spmv_op op, spmv_type type,
                        const spmv_segments *segments, const void *in, void *out, int64_t n, void *scratch)
{
    struct segscan_job job = {
        .loops = op_loops(op, type), .kind = kind, .segments = segments, .in = in, .out = out, .part = scratch, .n = n};
    job.stream = scan_streams(job.loops, in, out, n);
    carry_restart(job.loops, kind, &job.carry);
    tiles_chain(ctx, segment_tiles(segments, n), fold_tile, carry_on, scan_tile, &job);
    return SPMV_OK;
}

/* ---------------------------------------------------------------- by name */

static int64_t tiles_scratch(const spmv_context *ctx, const struct scan_request *r)
{
    const spmv_segments segments = segments_of_request(r);
    return segscan_scratch_omp(ctx, r->type, &segments, r->n);
}

static spmv_status run_tiles(spmv_context *ctx, const struct scan_request *r)
{
    const spmv_segments segments = segments_of_request(r);
    return segscan_omp(ctx, r->kind, r->op, r->type, &segments, r->in, r->out, r->n, r->scratch);
}

static const struct scan_rung rungs[] = {
    {.name = "tiles", .scratch = tiles_scratch, .run = run_tiles},
    {.name = NULL},
};

const struct scan_rung *segscan_rungs_omp(void)
{
    return rungs;
}

/* segmented scan and segmented reduce on OpenMP.
 *
 * segscan, reduce-then-scan over tiles of elements: what each tile hands to the next is the fold since its last head,
 * or of the whole tile joined to what it was handed itself; with that each tile is scanned on its own. segreduce cuts
 * the merge of the segments' ends with the elements into tiles of equal work (D. Merrill, M. Garland, SC16), so that
 * neither one giant segment nor a million empty ones idles a thread; segments that cross tiles are joined in tile
 * order. Tiles depend on the sizes and the segments alone: the bits are the same for any number of threads.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "host_tiles.h"
#include "loops.h"
#include "segments_host.h"

/* --------------------------------------------------------------- segmented scan */

int64_t segscan_scratch_omp(const spmv_context *ctx, spmv_type type, const spmv_segments *segments, int64_t n)
{
    (void)ctx;
    (void)segments;
    return ceil_divide(n, HOST_TILE) * (int64_t)spmv_type_size(type);
}

/* Where the segment of element end - 1 begins, or `begin` when that is before it. */
static int64_t last_head(const spmv_segments *segments, int64_t begin, int64_t end, int64_t n)
{
    if (segments->form != SPMV_SEGMENT_FLAGS)
        return max_i64(begin, segment_begin(segments, segment_of(segments, end - 1), n));
    const uint8_t *flags = segments->heads;
    int64_t head = end - 1;
    while (head > begin && flags[head] == 0)
        head--;
    return head;
}

/* Whether element i > 0 continues the segment of the element before it. */
static bool continues(const spmv_segments *segments, int64_t i, int64_t n)
{
    if (i == 0)
        return false;
    if (segments->form == SPMV_SEGMENT_FLAGS)
        return ((const uint8_t *)segments->heads)[i] == 0;
    return segment_begin(segments, segment_of(segments, i), n) < i;
}

/* One tile, with what stands to the left of its first element (NULL: nothing). */
static void scan_tile(const struct op_loops *loops, spmv_scan_kind kind, const spmv_segments *segments,
                      const void *carry, const void *in, void *out, int64_t begin, int64_t end, int64_t n)
{
    const size_t size = loops->size;
    if (segments->form == SPMV_SEGMENT_FLAGS) {
        loops->segscan_flags(kind, carry, (const uint8_t *)segments->heads + begin, element(in, size, begin),
                             element_out(out, size, begin), end - begin);
        return;
    }
    int64_t s = segment_of(segments, begin);
    for (int64_t from = begin; from < end; s++) {
        const int64_t to = min_i64(end, segment_begin(segments, s + 1, n));
        if (to > from)
            loops->scan(kind, from == begin ? carry : NULL, element(in, size, from), element_out(out, size, from),
                        to - from);
        from = to;
    }
}

spmv_status segscan_omp(spmv_context *ctx, spmv_scan_kind kind, spmv_op op, spmv_type type,
                        const spmv_segments *segments, const void *in, void *out, int64_t n, void *scratch)
{
    const struct op_loops *loops = op_loops(op, type);
    const size_t size = loops->size;
    const int64_t tiles = ceil_divide(n, HOST_TILE);
    /* what each tile but the last hands on, by itself */
#pragma omp parallel for schedule(static) num_threads(ctx->threads) if (n >= HOST_PARALLEL)
    for (int64_t t = 0; t < tiles - 1; t++) {
        const int64_t begin = t * HOST_TILE, end = begin + HOST_TILE, head = last_head(segments, begin, end, n);
        loops->fold(element(in, size, head), end - head, element_out(scratch, size, t));
    }
    /* ... and joined to what it was handed, where no head cuts it off */
    for (int64_t t = 1; t < tiles - 1; t++) {
        const int64_t begin = t * HOST_TILE;
        if (last_head(segments, begin, begin + HOST_TILE, n) == begin && continues(segments, begin, n))
            loops->combine(element(scratch, size, t - 1), element(scratch, size, t), element_out(scratch, size, t));
    }
#pragma omp parallel for schedule(static) num_threads(ctx->threads) if (n >= HOST_PARALLEL)
    for (int64_t t = 0; t < tiles; t++) {
        const int64_t begin = t * HOST_TILE, end = min_i64(n, begin + HOST_TILE);
        const void *carry = continues(segments, begin, n) ? element(scratch, size, t - 1) : NULL;
        scan_tile(loops, kind, segments, carry, in, out, begin, end, n);
    }
    return SPMV_OK;
}

/* ------------------------------------------------------------- segmented reduce */

/* The next segment to end and the next element to take. */
struct position {
    int64_t segment, element;
};

/* Where the merge path is after so many steps: a segment's end comes before the element of the same number. */
static struct position path_at(const spmv_segments *segments, int64_t steps, int64_t n)
{
    int64_t low = max_i64(0, steps - n), high = min_i64(steps, segments->count);
    while (low < high) {
        const int64_t s = low + (high - low) / 2;
        if (segment_begin(segments, s + 1, n) <= steps - s - 1)
            low = s + 1;
        else
            high = s;
    }
    return (struct position){.segment = low, .element = steps - low};
}

static int64_t work_tiles(const spmv_segments *segments, int64_t n)
{
    return ceil_divide(segments->count + n, HOST_TILE);
}

/* Of each tile: the fold of the elements of a segment begun before it, and of one that ends after it. */
int64_t segreduce_scratch_omp(const spmv_context *ctx, spmv_type type, const spmv_segments *segments, int64_t n)
{
    (void)ctx;
    return 2 * work_tiles(segments, n) * (int64_t)spmv_type_size(type);
}

/* out = fold of in[begin] .. in[end-1], the identity when there are none */
static void fold_or_identity(const struct op_loops *loops, const void *in, int64_t begin, int64_t end, void *out)
{
    if (begin < end)
        loops->fold(element(in, loops->size, begin), end - begin, out);
    else
        loops->identity(out);
}

static void reduce_tile(const struct op_loops *loops, const spmv_segments *segments, const void *in, void *out,
                        struct position from, struct position to, int64_t n, void *head, void *tail)
{
    int64_t at = from.element;
    for (int64_t s = from.segment; s < to.segment; s++) {
        const int64_t end = segment_begin(segments, s + 1, n);
        const bool begun_before = s == from.segment && segment_begin(segments, s, n) < from.element;
        fold_or_identity(loops, in, at, end, begun_before ? head : element_out(out, loops->size, s));
        at = end;
    }
    fold_or_identity(loops, in, at, to.element, tail);
}

/* The results of the segments that cross tiles. Parts without elements are left out, not joined as identities. */
static void join_tiles(const struct op_loops *loops, const spmv_segments *segments, void *out, const void *scratch,
                       int64_t tiles, int64_t n)
{
    const size_t size = loops->size;
    char open[LOOPS_WIDEST];
    for (int64_t t = 0; t < tiles; t++) {
        const struct position from = path_at(segments, t * HOST_TILE, n);
        const struct position to = path_at(segments, min_i64((t + 1) * HOST_TILE, segments->count + n), n);
        const void *head = element(scratch, size, 2 * t), *tail = element(scratch, size, 2 * t + 1);
        const bool begun_before =
            from.segment < segments->count && segment_begin(segments, from.segment, n) < from.element;
        if (from.segment == to.segment) {
            if (begun_before)
                loops->combine(open, tail, open);
            else
                memcpy(open, tail, size);
            continue;
        }
        if (begun_before && segment_begin(segments, from.segment + 1, n) > from.element)
            loops->combine(open, head, element_out(out, size, from.segment));
        else if (begun_before)
            memcpy(element_out(out, size, from.segment), open, size);
        memcpy(open, tail, size);
    }
}

spmv_status segreduce_omp(spmv_context *ctx, spmv_op op, spmv_type type, const spmv_segments *segments, const void *in,
                          void *out, int64_t n, void *scratch)
{
    const struct op_loops *loops = op_loops(op, type);
    const int64_t work = segments->count + n, tiles = work_tiles(segments, n);
#pragma omp parallel for schedule(static) num_threads(ctx->threads) if (work >= HOST_PARALLEL)
    for (int64_t t = 0; t < tiles; t++)
        reduce_tile(loops, segments, in, out, path_at(segments, t * HOST_TILE, n),
                    path_at(segments, min_i64((t + 1) * HOST_TILE, work), n), n,
                    element_out(scratch, loops->size, 2 * t), element_out(scratch, loops->size, 2 * t + 1));
    join_tiles(loops, segments, out, scratch, tiles, n);
    return SPMV_OK;
}

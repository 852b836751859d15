/* Segments in host memory: tiles along the merge path, and the check of positions.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "segments_host.h"

#include "host_tiles.h"

int64_t segment_tiles(const spmv_segments *segments, int64_t n)
{
    return tiles_of(segments->form == SPMV_SEGMENT_FLAGS ? n : n + segments->count);
}

/* The number of heads among the first `steps` steps of the merge path, known to be low at least: head s comes before
 * element steps - 1 - s exactly if it does not lie behind it. */
static int64_t heads_before(const spmv_segments *segments, int64_t low, int64_t steps, int64_t n)
{
    int64_t high = min_i64(steps, segments->count);
    low = max_i64(low, steps - n);
    while (low < high) {
        const int64_t s = low + (high - low) / 2;
        if (offset_at(segments->heads, segments->bits, s) <= steps - 1 - s)
            low = s + 1;
        else
            high = s;
    }
    return low;
}

struct segment_tile segment_tile_at(const spmv_segments *segments, int64_t tile, int64_t n)
{
    if (segments->form == SPMV_SEGMENT_FLAGS) {
        const struct range r = tile_range(tile, n);
        return (struct segment_tile){.begin = r.begin, .end = r.end};
    }
    const struct range steps = tile_range(tile, n + segments->count);
    const int64_t first = heads_before(segments, 0, steps.begin, n);
    const int64_t last = heads_before(segments, first, steps.end, n);
    return (struct segment_tile){.begin = steps.begin - first, .end = steps.end - last, .first = first, .last = last};
}

/* ---------------------------------------------------------------- the check */

struct check_job {
    const spmv_segments *segments;
    int64_t entries;
    int wrong; /* nonzero when a tile has an entry that does not ascend */
};

/* The first entry of a range that is smaller than the one before it, or end. */
static int64_t first_descent(const spmv_segments *segments, int64_t begin, int64_t end)
{
    int64_t s = max_i64(begin, 1);
    while (s < end &&
           offset_at(segments->heads, segments->bits, s) >= offset_at(segments->heads, segments->bits, s - 1))
        s++;
    return max_i64(s, begin);
}

static void check_tile(void *state, int64_t tile)
{
    struct check_job *job = state;
    const struct range r = tile_range(tile, job->entries);
    if (first_descent(job->segments, r.begin, r.end) < r.end) {
#pragma omp atomic write
        job->wrong = 1;
    }
}

spmv_status segments_check_host(spmv_context *ctx, const spmv_segments *segments, int64_t n)
{
    const int64_t entries = segments->count + (segments->form == SPMV_SEGMENT_OFFSETS);
    struct check_job job = {.segments = segments, .entries = entries};
    if (entries == 0)
        return SPMV_OK;
    const int64_t start = offset_at(segments->heads, segments->bits, 0);
    if (start != 0)
        return context_fail(ctx, SPMV_ERROR_SIZE, "segments: entry 0 is %lld, but the first segment must begin at 0",
                            (long long)start);
    tiles_each(ctx, tiles_of(entries), check_tile, &job);
    if (job.wrong) {
        const int64_t s = first_descent(segments, 0, entries);
        return context_fail(ctx, SPMV_ERROR_SIZE, "segments: entry %lld is %lld, less than the %lld before it",
                            (long long)s, (long long)offset_at(segments->heads, segments->bits, s),
                            (long long)offset_at(segments->heads, segments->bits, s - 1));
    }
    /* they ascend, so the last is the largest */
    const int64_t end = offset_at(segments->heads, segments->bits, entries - 1);
    if (segments->form == SPMV_SEGMENT_OFFSETS && end != n)
        return context_fail(ctx, SPMV_ERROR_SIZE, "segments: entry %lld, the closing one, is %lld instead of n = %lld",
                            (long long)(entries - 1), (long long)end, (long long)n);
    if (end > n) {
        int64_t s = entries - 1;
        while (s > 0 && offset_at(segments->heads, segments->bits, s - 1) > n)
            s--;
        return context_fail(ctx, SPMV_ERROR_SIZE, "segments: entry %lld is %lld, beyond n = %lld", (long long)s,
                            (long long)offset_at(segments->heads, segments->bits, s), (long long)n);
    }
    return SPMV_OK;
}

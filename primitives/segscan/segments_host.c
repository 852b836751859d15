/* Segments in host memory: tiles along the merge path, and the check of positions.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "primitives/segscan/segments_host.h"

#include "core/loops/host_tiles.h"

int64_t segment_tiles(const spmv_segments *segments, int64_t n)
{
    return tiles_of(segments->form == SPMV_SEGMENT_FLAGS ? n : n + segments->count);
}

/* Whether head s is among the first `steps` steps of the merge path: true if its position is at
 * most steps - 1 - s. Otherwise element steps - 1 - s takes its place. */
static bool comes_before(const spmv_segments *segments, int64_t s, int64_t steps)
{
    return offset_at(segments->heads, segments->bits, s) <= steps - 1 - s;
}

/* Returns the number of heads among the first `steps` steps, which is in low .. high. Searches from
 * the guess with doubling strides, so a good guess needs few probes, close to each other; then
 * bisects. */
static int64_t heads_before(const spmv_segments *segments, int64_t low, int64_t guess, int64_t high, int64_t steps)
{
    guess = max_i64(low, min_i64(guess, high));
    if (guess < high && comes_before(segments, guess, steps)) {
        low = guess + 1;
        for (int64_t stride = 1; low < high; stride *= 2) {
            const int64_t s = min_i64(low + stride, high) - 1;
            if (!comes_before(segments, s, steps)) {
                high = s;
                break;
            }
            low = s + 1;
        }
    } else {
        high = guess;
        for (int64_t stride = 1; low < high; stride *= 2) {
            const int64_t s = max_i64(low, high - stride);
            if (comes_before(segments, s, steps)) {
                low = s + 1;
                break;
            }
            high = s;
        }
    }
    while (low < high) {
        const int64_t s = low + (high - low) / 2;
        if (comes_before(segments, s, steps))
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
    const int64_t count = segments->count;
    const struct range steps = tile_range(tile, n + count);
    /* assumes segments of equal length */
    const double heads_a_step = (double)count / (double)(n + count);
    const int64_t first =
        heads_before(segments, max_i64(0, steps.begin - n), (int64_t)(heads_a_step * (double)steps.begin),
                     min_i64(steps.begin, count), steps.begin);
    const int64_t last =
        heads_before(segments, max_i64(first, steps.end - n), first + (int64_t)(heads_a_step * HOST_TILE),
                     min_i64(first + (steps.end - steps.begin), count), steps.end);
    return (struct segment_tile){.begin = steps.begin - first, .end = steps.end - last, .first = first, .last = last};
}

/* ---------------------------------------------------------------- the check */

struct check_job {
    const spmv_segments *segments;
    int64_t entries;
    int wrong; /* nonzero if a tile has a descending entry */
};

/* Whether an entry of a range is smaller than the one before it, without a branch per entry;
 * begin > 0. */
#define DEFINE_DESCENDS(bits)                                                                                          \
    static bool descends_##bits(const int##bits##_t *head, int64_t begin, int64_t end)                                 \
    {                                                                                                                  \
        int##bits##_t any = 0;                                                                                         \
        for (int64_t s = begin; s < end; s++)                                                                          \
            any |= head[s] < head[s - 1];                                                                              \
        return any != 0;                                                                                               \
    }
DEFINE_DESCENDS(32)
DEFINE_DESCENDS(64)

/* The first entry that is smaller than the one before it, which must exist. */
static int64_t first_descent(const spmv_segments *segments)
{
    int64_t s = 1;
    while (offset_at(segments->heads, segments->bits, s) >= offset_at(segments->heads, segments->bits, s - 1))
        s++;
    return s;
}

static void check_tile(void *state, int64_t tile)
{
    struct check_job *job = state;
    const struct range r = tile_range(tile, job->entries);
    const int64_t begin = max_i64(r.begin, 1);
    if (job->segments->bits == 32 ? descends_32(job->segments->heads, begin, r.end)
                                  : descends_64(job->segments->heads, begin, r.end)) {
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
        const int64_t s = first_descent(segments);
        return context_fail(ctx, SPMV_ERROR_SIZE, "segments: entry %lld is %lld, less than the %lld before it",
                            (long long)s, (long long)offset_at(segments->heads, segments->bits, s),
                            (long long)offset_at(segments->heads, segments->bits, s - 1));
    }
    /* they ascend, so the last is the largest */
    const int64_t end = offset_at(segments->heads, segments->bits, entries - 1);
    if (segments->form == SPMV_SEGMENT_OFFSETS && end != n)
        return context_fail(ctx, SPMV_ERROR_SIZE, "segments: entry %lld, the last one, is %lld, must be n = %lld",
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

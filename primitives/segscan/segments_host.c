/* Segments given by positions: search and check.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "segments_host.h"

#include "host_tiles.h"

int64_t segment_of(const spmv_segments *segments, int64_t i)
{
    int64_t low = 0, high = segments->count; /* the first segment that begins after i lies in low .. high */
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (offset_at(segments->heads, segments->bits, middle) <= i)
            low = middle + 1;
        else
            high = middle;
    }
    return low - 1;
}

spmv_status segments_check_host(spmv_context *ctx, const spmv_segments *segments, int64_t n)
{
    const void *heads = segments->heads;
    const int bits = segments->bits;
    const int64_t entries = segments->count + (segments->form == SPMV_SEGMENT_OFFSETS ? 1 : 0);
    int64_t wrong = entries; /* the first entry that does not ascend or lies beyond n */
#pragma omp parallel for reduction(min : wrong) num_threads(ctx->threads) if (entries >= HOST_PARALLEL)
    for (int64_t s = 0; s < entries; s++) {
        const int64_t at = offset_at(heads, bits, s), before = s > 0 ? offset_at(heads, bits, s - 1) : 0;
        if (at < before || at > n)
            wrong = min_i64(wrong, s);
    }
    if (offset_at(heads, bits, 0) != 0)
        return context_fail(ctx, SPMV_ERROR_SIZE, "segments: entry 0 is %lld, the first segment must begin at 0",
                            (long long)offset_at(heads, bits, 0));
    if (wrong < entries)
        return context_fail(ctx, SPMV_ERROR_SIZE, "segments: entry %lld is %lld, after %lld and with %lld elements",
                            (long long)wrong, (long long)offset_at(heads, bits, wrong),
                            (long long)offset_at(heads, bits, wrong - 1), (long long)n);
    if (segments->form == SPMV_SEGMENT_OFFSETS && offset_at(heads, bits, entries - 1) != n)
        return context_fail(ctx, SPMV_ERROR_SIZE,
                            "segments: the closing entry %lld is %lld, but there are %lld elements",
                            (long long)(entries - 1), (long long)offset_at(heads, bits, entries - 1), (long long)n);
    return SPMV_OK;
}

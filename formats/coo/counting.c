/* The stable parallel counting sort: choice of shares, and counts turned into positions.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "formats/coo/counting.h"

#include <stdio.h>

static int64_t add_saturated(int64_t a, int64_t b)
{
    return a <= INT64_MAX - b ? a + b : INT64_MAX;
}

spmv_status counting_begin(spmv_context *ctx, int64_t entries, int64_t bins, int64_t budget, struct counting *counting)
{
    int64_t bytes_of_share;
    void *counts = NULL;
    *counting = (struct counting){.entries = entries, .bins = bins, .shares = 1};
    if (!multiply_fits(bins, sizeof(int64_t), &bytes_of_share))
        return context_fail(ctx, SPMV_ERROR_LIMIT, "counting %lld rows or columns overflows 64 bits", (long long)bins);
    if (bytes_of_share > 0)
        counting->shares = max_i64(1, min_i64(heavy_team(ctx, entries), budget / bytes_of_share));
    char what[128];
    snprintf(what, sizeof what, "counting the entries of %lld rows or columns", (long long)bins);
    /* no overflow: one share, or within the budget */
    const int64_t bytes = counting->shares * bytes_of_share;
    /* The result has offsets of the same size as the counts of one share. */
    spmv_status st = matrix_memory_check(ctx, what, add_saturated(add_saturated(bytes, bytes_of_share), budget));
    if (st == SPMV_OK)
        st = host_alloc(ctx, bytes, what, &counts);
    counting->counts = counts;
    return st;
}

void counting_end(struct counting *counting)
{
    host_free(counting->counts);
    counting->counts = NULL;
}

spmv_status counting_offsets(spmv_context *ctx, struct counting *counting, int64_t *offsets)
{
    const int64_t bins = counting->bins, shares = counting->shares;
    int64_t *const counts = counting->counts;
#pragma omp parallel for num_threads(host_team(ctx, bins)) schedule(static)
    for (int64_t b = 0; b < bins; b++) {
        offsets[b] = 0;
        for (int64_t p = 0; p < shares; p++)
            offsets[b] += counts[p * bins + b];
    }
    const spmv_status st = offsets_from_counts(ctx, offsets, bins);
    if (st != SPMV_OK)
        return st;
#pragma omp parallel for num_threads(host_team(ctx, bins)) schedule(static)
    for (int64_t b = 0; b < bins; b++) {
        int64_t first = offsets[b];
        for (int64_t p = 0; p < shares; p++) {
            const int64_t count = counts[p * bins + b];
            counts[p * bins + b] = first;
            first += count;
        }
    }
    return SPMV_OK;
}

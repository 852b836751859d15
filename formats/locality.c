/* Bandwidth, neighbours and similarity of rows: one pass that compares each row with the next.
 *
 * All sums are integers, shares of a row in units of 2^-30, so the figures do not depend on the
 * distribution of rows to threads.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "formats/locality.h"

/* a row's columns (below 2^31) times 2^30 fit in 64 bits; so do the shares of 2^33 rows */
enum { SHARE_BITS = 30 };

int64_t locality_matches(const int32_t *col, int64_t n, const int32_t *other, int64_t m)
{
    int64_t matches = 0;
    for (int64_t k = 0, l = 0; k < n && l < m; k++) {
        while (l < m && other[l] < col[k] - 1)
            l++;
        matches += l < m && other[l] <= (int64_t)col[k] + 1;
    }
    return matches;
}

/* The share of a row's columns that the next non-empty row has too. */
static uint64_t similarity(const spmv_csr *a, int64_t row)
{
    const int64_t first = row_first(a, row), end = row_first(a, row + 1);
    int64_t next = row + 1;
    while (next < a->rows && row_first(a, next + 1) == end)
        next++;
    if (next == a->rows)
        return 0;
    const int64_t matches = locality_matches(a->col + first, end - first, a->col + end, row_first(a, next + 1) - end);
    return ((uint64_t)matches << SHARE_BITS) / (uint64_t)(end - first);
}

void matrix_locality(spmv_context *ctx, const spmv_csr *a, struct matrix_locality *locality)
{
    int64_t extent = 0, pairs = 0, filled = 0;
    uint64_t shares = 0;
#pragma omp parallel for num_threads(host_team(ctx, a->rows + a->nnz)) schedule(dynamic, 512) \
    reduction(+ : extent, pairs, filled, shares)
    for (int64_t row = 0; row < a->rows; row++) {
        const int64_t first = row_first(a, row), end = row_first(a, row + 1);
        if (first == end)
            continue;
        filled++;
        extent += (int64_t)a->col[end - 1] - a->col[first] + 1;
        for (int64_t k = first + 1; k < end; k++)
            pairs += a->col[k] == a->col[k - 1] + 1;
        shares += similarity(a, row);
    }
    *locality = (struct matrix_locality){0, 0, 0};
    if (filled == 0)
        return;
    locality->bw_frac = (double)extent / (double)a->rows / (double)a->cols;
    locality->avg_neighbours = 2.0 * (double)pairs / (double)a->nnz;
    locality->cross_row_similarity = (double)shares / (double)filled / (double)(1 << SHARE_BITS);
}

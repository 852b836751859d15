/* The three figures of locality by their definitions, with one search per column.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SUPPORT_LOCALITY_H
#define SUPPORT_LOCALITY_H

#include <math.h>

#include "formats/locality.h"
#include "tests/support/support.h"

/* Whether the row has the column, by bisection. */
static inline int support_has(const spmv_csr *a, int64_t row, int64_t column)
{
    int64_t low = row_first(a, row), high = row_first(a, row + 1);
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (a->col[middle] == column)
            return 1;
        if (a->col[middle] < column)
            low = middle + 1;
        else
            high = middle;
    }
    return 0;
}

static inline struct matrix_locality support_locality(const spmv_csr *a)
{
    double extents = 0, neighbours = 0, shares = 0;
    int64_t filled = 0, above = -1;
    for (int64_t row = 0; row < a->rows; row++) {
        const int64_t first = row_first(a, row), end = row_first(a, row + 1);
        if (first == end)
            continue;
        extents += (double)(a->col[end - 1] - a->col[first] + 1);
        for (int64_t k = first; k < end; k++)
            neighbours += support_has(a, row, (int64_t)a->col[k] - 1) + support_has(a, row, (int64_t)a->col[k] + 1);
        if (above >= 0) {
            const int64_t above_first = row_first(a, above), above_end = row_first(a, above + 1);
            int64_t shared = 0;
            for (int64_t k = above_first; k < above_end; k++)
                shared += support_has(a, row, (int64_t)a->col[k] - 1) || support_has(a, row, a->col[k]) ||
                          support_has(a, row, (int64_t)a->col[k] + 1);
            shares += (double)shared / (double)(above_end - above_first);
        }
        above = row;
        filled++;
    }
    if (filled == 0)
        return (struct matrix_locality){0, 0, 0};
    return (struct matrix_locality){extents / (double)a->rows / (double)a->cols, neighbours / (double)a->nnz,
                                    shares / (double)filled};
}

/* The shares of a row are counted in units of 2^-30, hence the tolerance. */
static inline void assert_near(double got, double expected)
{
    if (!(fabs(got - expected) <= 1e-8))
        fail_msg("%.17g instead of %.17g", got, expected);
}

#endif

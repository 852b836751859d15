/* Putting the rows of a matrix in order: columns ascending, none twice.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef ROWS_H
#define ROWS_H

#include "matrix_internal.h"

struct repeats {
    int64_t all;   /* entries whose column stands in their row already */
    int64_t lower; /* those of them with column <= row */
};

/* Sorts each row by column; entries of one column keep their order. Counts the repeated ones. A row of more than a few
 * entries that is not sorted takes memory as large as itself: SPMV_ERROR_MEMORY where the threads' rows would take more
 * than spare_bytes. */
spmv_status rows_sort(spmv_context *ctx, spmv_matrix *matrix, int64_t spare_bytes, struct repeats *repeats);

/* The same for the rows begin <= row < begin + rows, whose last one ends at end, by one thread and without memory: rows
 * that would take some stay as they are; false where there are such, and repeats then says nothing. */
bool rows_sort_short(spmv_matrix *matrix, int64_t begin, int64_t rows, int64_t end, struct repeats *repeats);

/* Adds the entries of one column into one, from the first to the last (a pattern's become one), in place. Rows must be
 * sorted and hold so many such entries as rows_sort counted. */
void rows_merge(spmv_context *ctx, spmv_matrix *matrix, int64_t repeated);

#endif

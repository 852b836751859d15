/* Sorts the rows of a matrix: columns ascending, none twice.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef ROWS_H
#define ROWS_H

#include "formats/matrix_internal.h"

struct repeats {
    int64_t all;   /* entries whose column already occurs in their row */
    int64_t lower; /* those with column <= row */
};

/* Sorts each row by column; entries of one column keep their order. Counts the repeats. An unsorted
 * row of more than a few entries needs memory of its own size: SPMV_ERROR_MEMORY if the threads'
 * rows would need more than spare_bytes. */
spmv_status rows_sort(spmv_context *ctx, spmv_matrix *matrix, int64_t spare_bytes, struct repeats *repeats);

/* As rows_sort for the rows begin <= row < begin + rows, of which the last ends at end; with one
 * thread and no memory. Rows that need memory stay unsorted; the function then returns false and
 * *repeats is not valid. */
bool rows_sort_short(spmv_matrix *matrix, int64_t begin, int64_t rows, int64_t end, struct repeats *repeats);

/* Adds the entries of one column into one, from the first to the last, in place; in a pattern they
 * become one. Rows must be sorted. repeated: the number that rows_sort counted. */
void rows_merge(spmv_context *ctx, spmv_matrix *matrix, int64_t repeated);

#endif

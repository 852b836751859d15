/* Maps between the cells of a Matrix Market array and its numbers, and makes matrices of arrays.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef ARRAYS_H
#define ARRAYS_H

#include "formats/io/mtx/mtx_header.h"

struct array_cell {
    int64_t row, col;
};

/* The count of numbers that the array stores before column col. Each column is stored completely,
 * or from (below) the diagonal on. */
int64_t array_before(const struct mtx_header *header, int64_t col);

/* The cell of number k. */
struct array_cell array_cell(const struct mtx_header *header, int64_t k);

/* Counts the cells that are not 0: row_ptr (rows + 1 numbers) becomes the row offsets of the
 * matrix. values: all numbers of the array, of the type. */
spmv_status array_count(spmv_context *ctx, const struct mtx_header *header, const void *values, spmv_type type,
                        int64_t *row_ptr);

/* Makes the matrix with the offsets from array_count. */
spmv_status array_to_matrix(spmv_context *ctx, const struct mtx_header *header, const void *values, spmv_type type,
                            const int64_t *row_ptr, spmv_matrix **matrix);

/* Writes all cells, row by row. */
void array_to_rows(spmv_context *ctx, const struct mtx_header *header, const void *values, spmv_type type, void *cells);

#endif

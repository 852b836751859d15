/* The inside of spmv_matrix, for files of formats/ and formats/io/.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef MATRIX_INTERNAL_H
#define MATRIX_INTERNAL_H

#include <spmv/matrix.h>

#include "runtime.h"

struct spmv_matrix {
    int64_t rows, cols, nnz;
    int64_t *row_ptr; /* rows + 1 */
    int32_t *col;     /* nnz; NULL when nnz == 0 */
    void *val;        /* nnz values of the type; NULL for a pattern */
    spmv_type type;
    bool pattern;
};

/* An empty shell with arrays of these sizes, contents undefined. Checks 0 <= rows, 0 <= cols <= INT32_MAX, 0 <= nnz
 * (SPMV_ERROR_LIMIT) and computes every size in 64 bits. */
spmv_status matrix_allocate(spmv_context *ctx, int64_t rows, int64_t cols, int64_t nnz, spmv_type type, bool pattern,
                            spmv_matrix **matrix);

#endif

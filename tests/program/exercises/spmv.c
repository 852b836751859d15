/* A right solution of the exercise spmv; test_exercise.py makes wrong ones from it.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdint.h>
#include <stdlib.h>

void spmv(int64_t rows, const int64_t *row_ptr, const int32_t *col, const double *val, const double *x, double *y)
{
    const int64_t nnz = row_ptr[rows];
    double *scanned = malloc((nnz + 1) * sizeof *scanned);
    char *head = calloc(nnz + 1, 1);

    for (int64_t k = 0; k < nnz; k++)
        scanned[k] = val[k] * x[col[k]];
    for (int64_t i = 0; i < rows; i++)
        head[row_ptr[i]] = 1; /* an empty row marks the start of the next one */
    for (int64_t k = 1; k < nnz; k++)
        scanned[k] = head[k] ? scanned[k] : scanned[k - 1] + scanned[k];
    for (int64_t i = 0; i < rows; i++)
        y[i] = row_ptr[i] < row_ptr[i + 1] ? scanned[row_ptr[i + 1] - 1] : 0;
    free(scanned);
    free(head);
}

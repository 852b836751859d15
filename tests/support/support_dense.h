/* Small matrices given as dense arrays, as CSR.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SUPPORT_DENSE_H
#define SUPPORT_DENSE_H

#include <stdlib.h>

#include "tests/support/support.h"

/* The nonzeros of a row-major n x n matrix as CSR. The caller frees the three arrays. */
static inline spmv_csr support_csr_of_dense(int64_t n, const double *dense, int32_t **row_ptr, int32_t **col,
                                            double **val)
{
    *row_ptr = calloc((size_t)n + 1, sizeof **row_ptr);
    *col = calloc((size_t)(n * n) + 1, sizeof **col);
    *val = calloc((size_t)(n * n) + 1, sizeof **val);
    for (int64_t i = 0; i < n; i++) {
        (*row_ptr)[i + 1] = (*row_ptr)[i];
        for (int64_t j = 0; j < n; j++)
            if (dense[i * n + j] != 0) {
                (*col)[(*row_ptr)[i + 1]] = (int32_t)j;
                (*val)[(*row_ptr)[i + 1]++] = dense[i * n + j];
            }
    }
    return support_csr(n, n, *row_ptr, *col, *val);
}

#endif

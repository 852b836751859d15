/* Matrices of finite elements.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SUPPORT_ELEMENTS_H
#define SUPPORT_ELEMENTS_H

#include "tests/support/support.h"

/* Bilinear elements on a grid of side x side inner points, across^(-1/2) times as long as wide. From
 * 10^(1/2) on, a third of the entries beside the diagonal are positive. */
static inline spmv_csr support_elements(int64_t side, double across)
{
    const int64_t n = side * side;
    int64_t *const ptr = support_zeros(n + 1, 8), nnz = 0;
    int32_t *const col = support_zeros(9 * n, 4);
    double *const val = support_zeros(9 * n, 8);
    for (int64_t i = 0; i < n; i++) {
        for (int64_t y = i / side - 1; y <= i / side + 1; y++)
            for (int64_t x = i % side - 1; x <= i % side + 1; x++)
                if (x >= 0 && x < side && y >= 0 && y < side) {
                    const double stiff_x = x == i % side ? 2 : -1, stiff_y = y == i / side ? 2 : -1;
                    const double mass_x = x == i % side ? 4 : 1, mass_y = y == i / side ? 4 : 1;
                    col[nnz] = (int32_t)(y * side + x);
                    val[nnz++] = stiff_x * mass_y + across * mass_x * stiff_y;
                }
        ptr[i + 1] = nnz;
    }
    return support_csr_with(n, n, nnz, ptr, 64, col, val, SPMV_F64);
}

static inline void support_free_elements(const spmv_csr *a)
{
    support_free((void *)(uintptr_t)a->row_ptr, (void *)(uintptr_t)a->col, (void *)(uintptr_t)a->val);
}

#endif

/* Preconditioners that are products with sparse factors: M^-1 = G' G ("fsai", "isai"), or S F ("isai").
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef PRECOND_PRODUCTS_H
#define PRECOND_PRODUCTS_H

#include "solvers/precond/precond_internal.h"

/* Factors in the context's memory. */
struct products_factors {
    spmv_matrix *first, *second; /* second NULL: the transpose of first */
    /* triangles of which first and second are approximate inverses; used with steps > 0 */
    spmv_matrix *of_first, *of_second;
    int steps; /* of refinement in each application */
};

/* Copies a square factor in host memory, with 64-bit offsets and values in f64, to the context's memory. Stored in
 * the type of m, or in f32 if narrow: the entries are in the range of f32. */
spmv_status products_take(const spmv_preconditioner *m, int64_t rows, const int64_t *ptr, const int32_t *col,
                          const double *val, bool narrow, spmv_matrix **factor);

/* Lets m apply z = second (first r), where each product y = F r is followed by the steps y = y + F (r - T y), T the
 * triangle of which F is an approximate inverse. Sets self, apply, destroy, and with one factor and no steps factors.
 * Adds to the layout what the factors are, how many entries they have, and in which type.
 *
 *   f     released with m, also after an error
 *   what  such as "a factor of"
 *   nnz   entries of A */
spmv_status products_make(spmv_preconditioner *m, const struct products_factors *f, const char *what, int64_t nnz);
void products_release(struct products_factors *f);

#endif

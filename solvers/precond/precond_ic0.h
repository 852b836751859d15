/* The incomplete Cholesky factor on the host.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef PRECOND_IC0_H
#define PRECOND_IC0_H

#include "solvers/precond/precond_triangles.h"

/* Computes factor->val: L with (L L')_ij = a_ij + shift (i == j) a_ii at every place of the
 * pattern. *failed: the first row whose pivot is not positive (or nearly), and *pivot its pivot;
 * rows if there is none. least: of a pivot, relative to a_ii. */
spmv_status lower_factor(spmv_context *ctx, const struct host_rows *a, double shift, double least, double *factor,
                         int64_t *failed, double *pivot);

/* The factor L of ic0, to be released, also after an error. Sets m->layout, m->shift and m->fallen. */
spmv_status ic0_factor(spmv_preconditioner *m, const struct precond_source *source, struct host_rows *lower);

/* The transpose of a triangle, with ascending columns: of a lower one, the diagonal entry is the first of its row. */
spmv_status lower_transpose(spmv_context *ctx, const struct host_rows *lower, struct host_rows *upper);

#endif

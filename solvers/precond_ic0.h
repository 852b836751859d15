/* The incomplete Cholesky factor on the host, and the order in which its triangles are solved.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef PRECOND_IC0_H
#define PRECOND_IC0_H

#include "precond_internal.h"

/* The lower triangle of a symmetric matrix, or its factor. Columns ascend; the diagonal entry is
 * the last of its row. */
struct lower {
    int64_t rows;
    int64_t *ptr;
    int32_t *col;
    double *val;
};

/* The lower triangle of source->host. Duplicate entries are added. */
spmv_status lower_take(spmv_context *ctx, const struct precond_source *source, struct lower *lower);

/* Computes factor->val: L with (L L')_ij = a_ij + shift (i == j) a_ii at every place of the
 * pattern. *failed: the first row whose pivot is not positive (or nearly), and *pivot its pivot;
 * rows if there is none. u: the unit roundoff. */
spmv_status lower_factor(spmv_context *ctx, const struct lower *a, double shift, double u, double *factor,
                         int64_t *failed, double *pivot);

void lower_release(struct lower *lower);

/* The transpose of a factor; the diagonal entry is the first of its row. */
spmv_status lower_transpose(spmv_context *ctx, const struct lower *lower, struct lower *upper);

/* The rows of a triangle by level: row[p] is the row at position p. Rows of a level need rows of
 * earlier levels only, and ascend (descend if backward). first: levels + 1 positions. */
struct levels {
    int64_t count;
    int32_t *row;
    int64_t *first;
};

spmv_status levels_of(spmv_context *ctx, const struct lower *triangle, bool backward, struct levels *levels);
void levels_release(struct levels *levels);

#endif

/* Small dense matrices in host memory, by rows: numbers are double (parts 1) or pairs of them (parts 2).
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef EIGEN_SMALL_H
#define EIGEN_SMALL_H

#include "core/runtime.h"

/* A matrix, or a part of one: rows are `stride` numbers apart. */
struct small {
    int parts;
    int rows, columns, stride;
    double *at;
};

static inline struct small small_of(int parts, int rows, int columns, double *at)
{
    return (struct small){parts, rows, columns, columns, at};
}
static inline struct small small_part(struct small m, int row, int column, int rows, int columns)
{
    return (struct small){m.parts, rows, columns, m.stride, m.at + ((int64_t)row * m.stride + column) * m.parts};
}
static inline double *small_at(struct small m, int row, int column)
{
    return m.at + ((int64_t)row * m.stride + column) * m.parts;
}

/* c = c + sign a b, sign a'b (adjoint of a) if a_adjoint; sign 0: c = a b. No overlap. */
void small_multiply(struct small a, bool a_adjoint, struct small b, int sign, struct small c);
void small_copy(struct small from, struct small to);
void small_clear(struct small m);
/* Column j of m times by[j]. */
void small_scale_columns(struct small m, const double *by);
/* Row j of m times by[j]. */
void small_scale_rows(struct small m, const double *by);
/* m = (m + m') / 2 */
void small_make_hermitian(struct small m);

/* Eigenvalues of the Hermitian matrix a, which is overwritten, in ascending order, and eigenvectors number `first` to
 * first + vectors.columns - 1 in the columns of vectors (a.rows rows). Householder's reduction to a tridiagonal matrix
 * and the implicit QL method (docs/design/solvers.md). SPMV_ERROR_NOT_FINITE if a is not finite; SPMV_ERROR_MEMORY. */
spmv_status small_eigen(spmv_context *ctx, struct small a, double *values, int first, struct small vectors);

/* to (g.rows x *rank) with to' g to = I, for a Gram matrix g, which is overwritten: g is scaled to a diagonal of ones;
 * to = D U L^-1/2 of those of its eigenvalues that are above `drop`. *least: the smallest of those, of a diagonal of
 * ones. to has room for g.rows columns; its stride becomes *rank.
 * Source: A. Stathopoulos, K. Wu, "A block orthogonalization procedure with constant synchronization requirements",
 * SIAM J. Sci. Comput. 23, 2002. */
spmv_status small_orthonormalise(spmv_context *ctx, struct small g, double drop, struct small *to, int *rank,
                                 double *least);

#endif

/* The computations of preconditioners in f64 and f32: loops over a part of the rows for ref and
 * omp, and the same on the device (precond_cuda.cu, precond_triangles_cuda.cu). Each element is
 * computed in a fixed order, so results do not depend on the distribution of the work.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef PRECOND_LOOPS_H
#define PRECOND_LOOPS_H

#include "solvers/precond/precond_internal.h"

/* The inverses of the blocks along a diagonal. Element (i, j) of block b, which has rows b block to
 * (b + 1) block - 1, is inverse[(b block + j) block + i]: neighbours in i are adjacent and belong
 * to neighbouring threads. Rows and columns beyond the last are zero. */
struct precond_blocks {
    int64_t rows;
    int block;
    const void *inverse;
};

/* z = blocks r for blocks begin to end - 1 */
void precond_blocks_loop(spmv_type type, const struct precond_blocks *blocks, const void *r, void *z, int64_t begin,
                         int64_t end);

/* d_i = before d_i + factor (inverse_i residual_i), z_i = z_i + d_i; first: d_i = factor (...), z_i
 * = d_i. columns: vectors of which each row has the elements side by side, and one element of inverse; 0: one. */
struct precond_step {
    bool first;
    int columns;
    double before, factor;
    const void *inverse, *residual;
    void *d, *z;
};

/* The step for n rows, on any backend. Queued. */
spmv_status precond_smooth_step(spmv_context *ctx, spmv_type type, const struct precond_step *step, int64_t n);

void precond_step_loop(spmv_type type, const struct precond_step *step, int64_t begin, int64_t end); /* rows */

/* The factors of precond_step in step k of the Chebyshev iteration for eigenvalues from lowest to
 * highest, 0 <= k <= degree (Saad 2003, algorithm 12.1). */
struct precond_coefficients {
    double before, factor;
};

void precond_chebyshev_steps(double lowest, double highest, int degree, struct precond_coefficients *step);

/* Eigenvalue number `index`, in ascending order from 0, of the symmetric tridiagonal matrix with this diagonal of n > 0
 * elements, and n - 1 beside it (precond_chebyshev.c). */
double precond_eigenvalue(const double *diagonal, const double *beside, int n, int index);

/* Rows of a triangle that a block of a GPU solves: positions begin to end - 1. gate: a row of an
 * earlier tile that is solved some levels before; -1: none. inside: whether rows may need others
 * of the tile. The column of such an entry is stored as -1 - (position - begin), that of others
 * as it is. */
struct precond_tile {
    int32_t begin, end, gate, inside;
};

/* For the solve of a triangle on a GPU. Arrays are in its memory. */
struct precond_tiles {
    int64_t count;
    const struct precond_tile *tile;
    int lanes;               /* that share a row: 1, 2, 4, 8, 16 or 32 */
    int inside;              /* the most rows of a tile with `inside` */
    int *drawn, *drawn_next; /* tiles begun, of this triangle and of the other one */
};

/* A triangle in the order of its solve. Position p is row row[p]. Its off-diagonal entries are
 * ptr[p] <= k < ptr[p + 1], all in rows of earlier positions; inverse[p] is the reciprocal of its
 * diagonal entry. */
struct precond_triangle {
    int64_t rows;
    const int64_t *ptr;
    const int32_t *col, *row;
    const void *val, *inverse;
    struct precond_tiles tiles; /* cuda only */
};

/* out_i = (in_i - sum of val out_col) inverse for the rows at positions begin to end - 1; out may
 * equal in. */
void precond_triangle_loop(spmv_type type, const struct precond_triangle *triangle, const void *in, void *out,
                           int64_t begin, int64_t end);

spmv_status precond_blocks_cuda(spmv_context *ctx, spmv_type type, const struct precond_blocks *blocks, const void *r,
                                void *z) CUDA_ONLY(SPMV_ERROR_NO_DEVICE);
spmv_status precond_step_cuda(spmv_context *ctx, spmv_type type, const struct precond_step *step, int64_t n)
    CUDA_ONLY(SPMV_ERROR_NO_DEVICE);

/* The same for all rows, in one launch. Before it all bits of out are 1, and *drawn is 0.
 * Afterwards this holds for blank and *drawn_next, which are those of the other triangle. blank
 * may equal in; out may not. */
spmv_status precond_triangle_cuda(spmv_context *ctx, spmv_type type, const struct precond_triangle *triangle,
                                  const void *in, void *out, void *blank) CUDA_ONLY(SPMV_ERROR_NO_DEVICE);

/* Sets all bits of the `bytes` of between to 1, and drawn[0] and drawn[1] to 0. Queued. */
spmv_status precond_triangles_begin_cuda(spmv_context *ctx, void *between, int64_t bytes, int *drawn)
    CUDA_ONLY(SPMV_ERROR_NO_DEVICE);

/* diagonal[i] = the sum of the diagonal entries of row i, in the order of the row. All arrays are
 * in the device's memory. */
spmv_status precond_diagonal_cuda(spmv_context *ctx, const spmv_csr *a, double *diagonal)
    CUDA_ONLY(SPMV_ERROR_NO_DEVICE);

/* The numbers for "auto" (precond_internal.h), on the device. diagonal: of precond_diagonal_cuda. All
 * entries must be positive and finite. Waits. */
spmv_status precond_look_cuda(spmv_context *ctx, const spmv_csr *a, int64_t first, const double *diagonal,
                              struct precond_look *look) CUDA_ONLY(SPMV_ERROR_NO_DEVICE);
spmv_status precond_ball_cuda(spmv_context *ctx, const spmv_csr *a, struct precond_ball *ball)
    CUDA_ONLY(SPMV_ERROR_NO_DEVICE);

/* reciprocals[i] = 1 / diagonal[i], rounded to the type */
spmv_status precond_reciprocals_cuda(spmv_context *ctx, spmv_type type, const double *diagonal, void *reciprocals,
                                     int64_t n) CUDA_ONLY(SPMV_ERROR_NO_DEVICE);

#endif

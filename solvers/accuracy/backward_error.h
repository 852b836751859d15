/* The component-wise backward error of a solution: the smallest relative change of entries of A and
 * b, row by row, after which x is exact.
 *
 * Why. The stop test ||b - A x|| <= rtol ||b|| is one number for all rows. A row whose numbers are
 * small beside those of other rows, such as all rows next to a Dirichlet value that is set by a large
 * diagonal entry, may be wrong by 100 % and still pass. With r = b - A x,
 *
 *     omega_i = |r_i| / (|A| |x| + |b|)_i                            if that is not tiny,
 *     omega_i = |r_i| / ((|A| |x|)_i + ||A_i||_1 ||x||_inf)          otherwise,
 *
 * where ||A_i||_1 is the sum of |a_ij| of row i. omega = max omega_i is the figure of M. Arioli, J. W.
 * Demmel, I. S. Duff, "Solving sparse linear systems with sparse backward error", SIAM J. Matrix Anal.
 * Appl. 10, 1989. There, tiny means a few units of roundoff.
 *
 * What is tiny here. An iterative method stops at a tolerance in the norm. Where x and b decay by many
 * orders of magnitude, as around a point source, rows far away have r_i as large as their own terms, and
 * x is right by every measure that its user asked for. So tiny must follow from what x itself proves.
 * Let e = A^-1 b - x. Since r_i = (A e)_i,
 *
 *     |r_i| <= ||A_i||_1 ||e||_inf ,
 *
 * so |r_i| / (||A_i||_1 ||x||_inf) is a lower bound of the relative error of x in the maximum norm. For
 * tiny rows omega_i is not larger than this bound: a tiny row with omega_i > t proves that x is wrong
 * by more than t of its largest element. A row is tiny if its terms (|A| |x| + |b|)_i are at most theta
 * ||A_i||_1 ||x||_inf; a row that is not tiny proves an error of theta t. backward_error_bound and
 * BACKWARD_TINY give t and theta. A row without entries, which no x can change, is left to the norm.
 *
 * t. A norm of the residual of rtol ||b|| leaves, with rows of similar size, an omega of about rtol or
 * less. t = sqrt(rtol) is half of the digits that rtol asks for: larger than rtol by so much that only
 * rows whose sizes differ by about 1 / sqrt(rtol) can exceed it, and small enough that an x without any
 * correct digit in some rows never passes. rtol counts as at least the unit roundoff.
 *
 * The quick pass. In tiny rows the second denominator is larger than the first, so for every row
 *
 *     omega_i <= |r_i| / (|A| |x| + |b|)_i .
 *
 * The right side needs no ||x||_inf and no ||A_i||_1: half of the sums of the exact pass, and no pass over
 * x before. If it is at most t in all rows, all omega_i are, and that decides nearly all solves. Otherwise,
 * as around a point source, and where a row's numbers leave a range in which nothing overflows or
 * underflows, the exact pass follows, which scales them. So the decision is that of the exact pass.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef BACKWARD_ERROR_H
#define BACKWARD_ERROR_H

#include <spmv/matrix.h>

#include "core/runtime.h"
#include "product/plan_internal.h"
#include "solvers/accuracy/backward_error_row.h"

#define BACKWARD_TINY 0.01 /* theta */

struct backward_error {
    /* the largest omega_i, or from the quick pass the upper bound of it above; 0 without rows, infinite if a
     * row is not finite */
    double omega;
    int64_t row; /* the first row that has it, from 0; -1 without rows */
    double norm; /* ||b - A x||, summed in f64; no square leaves its range */
};

/* t for a solve that stopped at ||b - A x|| <= tolerance. */
static inline double backward_error_bound(spmv_type type, double tolerance, double norm_b)
{
    const double least = real_limits_of(type_part(type)).roundoff, rtol = norm_b > 0 ? tolerance / norm_b : 0;
    return sqrt(rtol > least ? rtol : least);
}

/* Computes the backward error of each column of x: by the quick pass over A if it proves that every column
 * is within its bound, otherwise by the exact pass. Sums are in f64, and numbers that leave its range are
 * scaled by powers of two.
 *
 *   a        in the context's memory; a pattern, of the type, or f32 with vectors in f64
 *   type     of b and x: f32, f64, c64, c128 (1 column)
 *   b, x     rows times columns elements in the context's memory
 *   bounds   columns numbers, the largest omega that is wanted; NULL: the exact pass
 *   errors   columns results
 *
 * Waits. Determinism: same bits for any number of threads. Errors: SPMV_ERROR_MEMORY,
 * SPMV_ERROR_DEVICE. */
spmv_status backward_error_find(spmv_context *ctx, const spmv_csr *a, spmv_type type, int columns, const void *b,
                                const void *x, const double *bounds, struct backward_error *errors);

/* The same of a plan for the rows of one of several ranks, for one right-hand side. Together. x has room for
 * elements of other ranks, which it gets. error: the same on all ranks, with the same bits for any number of them; row:
 * of the whole matrix. */
spmv_status backward_error_of_ranks(const spmv_plan *plan, const void *b, void *x, double bound,
                                    struct backward_error *error);

/* ------------------------------------------------------------- inside */

/* What a pass is about. Partial results: tile c has those of its columns at parts[c * columns]. */
struct backward_job {
    const spmv_csr *a;
    const struct plan_ranks *ranks; /* that have other rows: the tiles are their chunks; NULL: none */
    spmv_type type;
    int columns;
    const void *b, *x;
    /* of each column: a power of two that makes the largest |x_i| about 1; that |x_i|, scaled */
    const double *scale, *largest;
};

struct backward_part {
    double omega;
    int64_t row;
    struct error_norm norm; /* of r, scaled */
};

/* On CUDA. Scale and largest of the job are not read. Sets largest, of each column the largest |x_i|, in
 * host memory; *parts, in host memory (host_free); and the number of tiles. */
spmv_status backward_parts_cuda(spmv_context *ctx, const struct backward_job *job, double *largest,
                                struct backward_part **parts, int64_t *tiles) CUDA_ONLY(SPMV_ERROR_NO_DEVICE);

/* The quick pass on CUDA. Scale and largest of the job are not read. Sets found of each column, with ranks of each
 * chunk, in host memory. */
spmv_status backward_quick_cuda(spmv_context *ctx, const struct backward_job *job, struct error_quick *found)
    CUDA_ONLY(SPMV_ERROR_NO_DEVICE);

#endif

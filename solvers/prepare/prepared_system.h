/* The preparation of a square system A x = b for iterative methods: scaling of rows and
 * columns, a permutation that brings large entries to the diagonal, and an order that keeps
 * neighbours near each other.
 *
 * The new system is C y = c with C = P R A S Q, c = P R b and x = S Q y: R and S are diagonal,
 * their entries powers of two from 2^-511 to 2^511 (vectors of f32: 2^-63 to 2^63), so every
 * product with them is exact. P and Q are permutations. After a matching, all diagonal entries of C
 * are from 0.5 to 2 in absolute value and no entry is above 2, unless a factor is at its limit.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef PREPARED_SYSTEM_H
#define PREPARED_SYSTEM_H

#include <spmv/matrix.h>

#include "core/backend.h"
#include "core/reals.h"

struct prepared_system;

/* Which steps are on. All zeros are the defaults. */
struct prepared_system_options {
    spmv_type type; /* of b and x: f64 or f32; SPMV_TYPE_DEFAULT: that of the matrix */
    bool no_equilibration;
    /* auto: if a diagonal entry of the scaled matrix is tiny or missing */
    enum prepare_matching { MATCHING_AUTO, MATCHING_ON, MATCHING_OFF } matching;
    bool no_order;
};

/* Prepares the system. May wait.
 *
 *   a  square, f64, f32 or a pattern; read during the call. Columns in any order; repeated entries
 *      are added. All values are finite.
 *
 * Errors: SPMV_ERROR_SINGULAR (a matching found that A is singular whatever its values are; the
 * message has the structural rank), SPMV_ERROR_NOT_FINITE, SPMV_ERROR_NOT_SQUARE, SPMV_ERROR_TYPE,
 * SPMV_ERROR_SIZE, SPMV_ERROR_ARGUMENT, SPMV_ERROR_LIMIT, SPMV_ERROR_MEMORY.
 * Determinism: the same bits every run, on every backend and for any number of threads. */
spmv_status prepared_system_create(spmv_context *ctx, const spmv_csr *a, const struct prepared_system_options *options,
                                   struct prepared_system **system);
void prepared_system_destroy(struct prepared_system *s);

/* C, in host memory, of the matrix's type (f64 for a pattern), columns ascending. It is valid until
 * the system is destroyed. */
spmv_csr prepared_system_matrix(const struct prepared_system *s);

/* One sentence: which steps were done. */
const char *prepared_system_describe(const struct prepared_system *s);

/* Vectors of rows elements in the context's memory, which do not overlap. Queued.
 *   rhs       c = P R b
 *   solution  x = S Q y */
spmv_status prepared_system_rhs(const struct prepared_system *s, const void *b, void *c);
spmv_status prepared_system_solution(const struct prepared_system *s, const void *y, void *x);

/* The same for C' y = c, which is A' x = b with c = Q' S b and x = R P' y. b, c and work, or y, x and work, are three
 * vectors. */
spmv_status prepared_system_rhs_transposed(const struct prepared_system *s, const void *b, void *work, void *c);
spmv_status prepared_system_solution_transposed(const struct prepared_system *s, const void *y, void *work, void *x);

/* ------------------------------------------------------------ the steps, for tests as well */

/* A square matrix by the base-2 logarithms of its absolute values, in host memory: columns ascend;
 * zeros are left out. */
struct magnitudes {
    int64_t rows;
    int64_t *ptr;
    int32_t *col;
    double *log2;
};

/* Several ranks, each with rows of the matrix. Both functions are called together. */
struct magnitudes_ranks {
    void *self;
    int64_t cols;                                     /* columns that these rows have */
    spmv_status (*join)(void *self, double *in_col);  /* numbers of these columns become the largest of all ranks */
    spmv_status (*largest)(void *self, double *most); /* the same of one number */
};

/* Scale factors 2^row[i] and 2^col[j] with which the largest entry of each row and column is near
 * 1. D. Ruiz, "A scaling algorithm to equilibrate both rows and columns norms in matrices", report
 * RAL-TR-2001-034. ranks: NULL, or those that have the other rows; then the same bits as without. */
spmv_status prepare_equilibrate(spmv_context *ctx, const struct magnitudes *a, const struct magnitudes_ranks *ranks,
                                double *row, double *col);

/* A matching of rows and columns whose product of absolute values is the largest. row_of[j]: the
 * row matched to column j, -1 without one. *rank: how many are matched. If all are, row and col
 * are scale factors as above with which matched entries are 1 and all others at most 1. */
spmv_status prepare_match(spmv_context *ctx, const struct magnitudes *a, int32_t *row_of, int64_t *rank, double *row,
                          double *col);

/* The reverse Cuthill-McKee order of the pattern of B + B', where row j of B is row row_of[j] of A:
 * order[k] is the row of B at place k. */
spmv_status prepare_order(spmv_context *ctx, const struct magnitudes *a, const int32_t *row_of, int32_t *order);

#endif

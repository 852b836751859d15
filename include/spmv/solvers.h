/* Iterative solvers for A x = b.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SPMV_SOLVERS_H
#define SPMV_SOLVERS_H

#include <spmv/operator.h>

SPMV_BEGIN_DECLS

/* Called after each iteration, and with iteration 0 before the first, with the norm of the recurrence's residual.
 * Return 0 to go on; anything else stops the solve with SPMV_CANCELLED (x then holds the iterate reached). */
typedef int (*spmv_cg_fn)(int64_t iteration, double residual, void *user);

typedef struct spmv_cg_options {
    size_t size;
    double rtol;             /* default 1e-8 */
    double atol;             /* default 0 */
    int64_t max_iterations;  /* default 0: 10 rows, at least 100 */
    int zero_start;          /* 1: x is not read, the start is 0; default 0 */
    spmv_cg_fn on_iteration; /* default NULL */
    void *user;
} spmv_cg_options;

SPMV_API void spmv_cg_options_init(spmv_cg_options *options, size_t size);

typedef struct spmv_cg_result {
    size_t size;
    int64_t iterations; /* products with A inside the recurrence */
    int64_t restarts;   /* times the recurrence was done and the true residual was not: see below */
    double norm_b;
    double tolerance;           /* max(rtol ||b||, atol); atol where b'b overflows */
    double recurrence_residual; /* ||r|| as the recurrence has it */
    double true_residual;       /* ||b - A x||, computed from the x returned */
} spmv_cg_result;

/* Solves A x = b for a symmetric positive definite A (the plan's op(A)) by conjugate gradients, starting from the x
 * handed in: r = b - A x, p = r;  repeat  q = A p, alpha = r'r / p'q, x += alpha p, r -= alpha q, beta = r'r / (old
 * r'r), p = r + beta p until ||b - A x|| <= max(rtol ||b||, atol) in the Euclidean norm. Where the recurrence says so
 * but the true residual does not, or the recurrence's residual has shrunk by the unit roundoff since it started, the
 * method restarts from the true one as long as that halves it. b, x: rows elements of the plan's type in the context's
 * memory, no overlap. b == 0 gives x = 0. alpha and beta never leave the context's memory; one wait an iteration reads
 * r'r and p'q for the tests. Workspace of four vectors is allocated before and released after the loop. Same bits every
 * run, and on omp for any number of threads.
 *
 * Returns SPMV_OK when the true residual keeps the tolerance; else one of the following, *result being filled all the
 * same, true_residual for the x returned: SPMV_ERROR_ITERATIONS (limit; x is the last iterate), SPMV_ERROR_STAGNATION
 * (restarts no longer halve the true residual; x has the smallest of them; also when b is so small that b'b is 0),
 * SPMV_ERROR_NOT_FINITE (the sentence says at which iteration; x is the last iterate, or where the recurrence last
 * started if that one's residual is smaller), SPMV_ERROR_NOT_POSITIVE (p'Ap <= 0: A is not positive definite; the
 * sentence says at which iteration; x is the last iterate), SPMV_CANCELLED. Before any work: SPMV_ERROR_NOT_SQUARE,
 * SPMV_ERROR_ARGUMENT, SPMV_ERROR_TYPE (complex), SPMV_ERROR_UNSUPPORTED (a plan for several vectors or with strides),
 * SPMV_ERROR_MEMORY. Symmetry is the caller's promise (spmv_matrix_statistics looks).
 *
 * M. R. Hestenes, E. Stiefel, "Methods of conjugate gradients for solving linear systems", J. Res. NBS 49(6), 1952. */
SPMV_API spmv_status spmv_cg(spmv_plan *plan, const void *b, void *x, const spmv_cg_options *options,
                             spmv_cg_result *result, size_t size);

SPMV_END_DECLS

#endif

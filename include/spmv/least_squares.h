/* Least squares: min ||A x - b|| with any A, also rectangular or without full rank, by LSMR, LSQR
 * and CGLS.
 *
 *     spmv_least_squares *solver;
 *     spmv_least_squares_result result;
 *     spmv_least_squares_create(ctx, &a, NULL, &solver);          (a: spmv_csr, see matrix.h)
 *     spmv_least_squares_solve(solver, b, x, &result, sizeof result);
 *     spmv_least_squares_destroy(solver);
 *
 * examples/least_squares.c is a whole program. docs/solvers.md says when to take which solver.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SPMV_LEAST_SQUARES_H
#define SPMV_LEAST_SQUARES_H

#include <spmv/plan.h>

SPMV_BEGIN_DECLS

/* Why a solve stopped. The values are those of `istop` in SciPy's lsmr and lsqr. */
typedef enum spmv_least_squares_stop {
    SPMV_STOP_START = 0,         /* the start is a solution: A'r = 0 */
    SPMV_STOP_CONSISTENT = 1,    /* ||r|| <= btol ||b|| + atol ||A|| ||x||: A x = b has a solution */
    SPMV_STOP_LEAST_SQUARES = 2, /* ||A'r|| <= atol ||A|| ||r|| */
    SPMV_STOP_CONDITION = 3,     /* the condition number of A exceeds conlim */
    /* as 1, 2 and 3 with the unit roundoff of the type in place of atol, btol and 1 / conlim */
    SPMV_STOP_CONSISTENT_ROUNDOFF = 4,
    SPMV_STOP_LEAST_SQUARES_ROUNDOFF = 5,
    SPMV_STOP_CONDITION_ROUNDOFF = 6,
    SPMV_STOP_ITERATIONS = 7, /* the limit of iterations */
    SPMV_STOP_FAILED = 8      /* none of these: the status has the reason */
} spmv_least_squares_stop;

/* Whether the columns of A are scaled. */
typedef enum spmv_column_scaling {
    SPMV_SCALING_AUTO = 0, /* scaled where that cannot change the solution; see spmv_least_squares_solve */
    SPMV_SCALING_NONE = 1,
    SPMV_SCALING_COLUMNS = 2 /* always; needs damp = 0. Without full column rank, another solution than
                                that of smallest norm. */
} spmv_column_scaling;

/* A callback that is called before the first iteration (iteration 0) and after each one.
 *
 *   iteration  iterations done
 *   residual   norm of the residual of the recurrence; with damp, of the damped system
 *   gradient   ||A'r|| of the recurrence; with scaled columns, of the scaled system
 * Both are the largest of the right-hand sides that are solved together and have made the iteration.
 *
 * It returns 0 to continue. Any other value stops the solve with SPMV_CANCELLED; x is then the
 * iterate reached. It may call the library on the context of the solve (context.h, Callbacks). */
typedef int (*spmv_least_squares_fn)(int64_t iteration, double residual, double gradient, void *user);

typedef struct spmv_least_squares_options {
    size_t size; /* sizeof(spmv_least_squares_options), set by spmv_least_squares_options_init */

    /* A name of spmv_least_squares_name. Default NULL or "auto": lsmr. */
    const char *solver;

    /* The type of b and x, as in spmv_plan_options. Default: the type of the matrix, f64 for a
     * pattern. */
    spmv_type type;

    int vectors;                        /* right-hand sides, from 1; default 1 */
    double damp;                        /* at least 0; default 0 */
    double atol, btol;                  /* relative errors of A and b, at least 0; default 1e-8 */
    double conlim;                      /* limit of the condition number; 0: none; default 1e8 */
    int64_t max_iterations;             /* default 0: 10 times the smaller size of A, at least 100 */
    int zero_start;                     /* 1: start at x = 0, x is not read; default 0: start at the given x */
    int scaling;                        /* a spmv_column_scaling; default SPMV_SCALING_AUTO */
    spmv_least_squares_fn on_iteration; /* callback; default NULL: none */
    void *user;                         /* passed to on_iteration; default NULL */
} spmv_least_squares_options;

/* Fills options with the defaults. size: sizeof(spmv_least_squares_options). */
SPMV_API void spmv_least_squares_options_init(spmv_least_squares_options *options, size_t size);

/* The names of the solvers; NULL after the last. Static storage.
 *
 *   name  for                                   source
 *   ----  ------------------------------------  --------------------------------------------------
 *   lsmr  any A: ||A'r|| falls at each step,    D. C.-L. Fong, M. A. Saunders, SIAM J. Sci. Comput.
 *         so a solve may stop earlier           33(5), 2011
 *   lsqr  any A: ||r|| is smaller at each step  C. C. Paige, M. A. Saunders, ACM TOMS 8(1), 1982
 *   cgls  as lsqr in exact arithmetic; fewer    M. R. Hestenes, E. Stiefel, J. Res. NBS 49(6), 1952;
 *         passes over vectors; less accurate    A. Bjorck, "Numerical Methods for Least Squares
 *         with an ill-conditioned A             Problems", 1996, section 7.4 */
SPMV_API const char *spmv_least_squares_name(int index);

typedef struct spmv_least_squares spmv_least_squares;

/* Makes a solver for min ||A x - b||: plans for products with A and with its (conjugate) transpose,
 * and scaled values if columns are scaled. May wait.
 *
 *   a        of any size and of any type of values but the 16-bit ones. SPMV_MEMORY_HOST: the solver
 *            copies the arrays; they may change after the call. SPMV_MEMORY_CONTEXT: the solver
 *            borrows the arrays. They must outlive the solver and must not change. The caller
 *            guarantees ascending offsets and columns in range (spmv_matrix_check).
 *   options  NULL means defaults; the string need not outlive the call
 *   *solver  the solver; NULL after an error
 *
 * Memory: a copy of arrays in host memory, in the context's memory; the transpose (12 bytes a
 * nonzero in f64); the values once more if columns are scaled. With
 * columns scaled, or a scaling in question, entries are read on the host; on cuda this copies arrays of the
 * context's memory. Norms of columns are found there, with memory for the values and the transpose once more.
 *
 * Errors: SPMV_ERROR_METHOD (no such solver; the message lists the names), SPMV_ERROR_ARGUMENT (an
 * option out of its range; also SPMV_SCALING_COLUMNS with damp), SPMV_ERROR_NOT_FINITE (the entries
 * were read, and one is not finite; the message names it), SPMV_ERROR_TYPE, those of
 * spmv_plan_create. */
SPMV_API spmv_status spmv_least_squares_create(spmv_context *ctx, const spmv_csr *a,
                                               const spmv_least_squares_options *options, spmv_least_squares **solver);

/* Destroys a solver after the work queued on the context's stream is done. */
SPMV_API void spmv_least_squares_destroy(spmv_least_squares *solver);

/* The result of a solve, for one right-hand side. */
typedef struct spmv_least_squares_result {
    size_t size;        /* of this struct in bytes */
    int64_t iterations; /* each has one product with A and one with its transpose */
    int64_t restarts;   /* from the true residual */
    spmv_status status; /* of this right-hand side; SPMV_ERROR_ARGUMENT before the solve */
    int stop;           /* a spmv_least_squares_stop */
    double norm_b;      /* ||b|| */

    /* Computed from the x returned, with r = b - A x and the start s (0 with zero_start):
     * ||r||, sqrt(||r||^2 + damp^2 ||x - s||^2), ||A'r - damp^2 (x - s)||, ||x|| */
    double true_residual, damped_residual, true_gradient, norm_x;

    /* What the recurrence had for the second and third of these, in the units of A. */
    double recurrence_residual, recurrence_gradient;

    /* Estimates by the recurrence, of A with scaled columns if they are scaled: of the Frobenius norm
     * and of the condition number of what the Krylov space has seen of A, with damp of (A; damp I) */
    double norm_a, condition;

    double setup_seconds;  /* time of spmv_least_squares_create */
    double solve_seconds;  /* time of this solve, of all right-hand sides */
    const char *solver;    /* "" before the solve; static storage */
    int scaled;            /* 1: columns are scaled */
    char why_scaling[160]; /* one sentence: why columns are scaled, or not */
    char why_stop[256];    /* one sentence: why the solve stopped */
} spmv_least_squares_result;

/* Solves
 *
 *     min over x of ||A x - b||^2 + damp^2 ||x - s||^2        (Euclidean norms)
 *
 * where s is the start, 0 with zero_start. damp = 0: among all solutions, x is the one with the
 * smallest ||x - s||, so the one of smallest norm from 0, unless columns are scaled.
 *
 *   b       rows elements of the solver's type (rows times k for k right-hand sides, element v of row
 *           i at [i * k + v])
 *   x       cols elements (cols times k): start and solution
 *   result  NULL, or k structs (one for one right-hand side) that are size bytes apart
 *   size    sizeof(spmv_least_squares_result)
 *
 * Stops. The three tests of Fong and Saunders, after each iteration, with estimates of ||A|| and of the
 * condition number that include damp:
 *
 *     ||r||   <= btol ||b|| + atol ||A|| ||x||     x solves a system whose A and b differ by relative
 *                                                  errors of atol and btol
 *     ||A'r|| <= atol ||A|| ||r||                  x is a least-squares solution of such a system
 *     cond    >= conlim                            A has nearly lost rank
 *
 * Then r and A'r are computed from x. If they fail the test that has stopped the recurrence by more
 * than a factor of 2, and by more than the rounding errors of computing them, the solver starts again
 * from x (damp = 0), as long as that halves ||A'r|| or ||r||.
 *
 * Scaling of columns. The solver may work on A D and y with x = D y, where D has powers of two that
 * give each column of A D a norm of 1 to 2, so no digit of A changes. ||A||, the condition number and
 * A'r in the tests are then those of A D. With full column rank and without damp the solution is the
 * same, and fewer iterations are needed where the norms of columns differ. SPMV_SCALING_AUTO scales if
 *   - damp = 0, and A has no more columns than rows,
 *   - norms of columns differ by a factor of more than 4, and
 *   - A has full column rank, but for columns without entries: some of its columns can be solved for one
 *     after the other (a row has one entry in the columns that are left), and if at most 64 columns remain,
 *     their Gram matrix is clearly positive definite. If more remain, up to 300 steps of
 *     spmv_estimate_singular_values with A D must converge to a smallest singular value of at least 1e-5
 *     times the largest.
 * A whose entries are all very large or very small is scaled by one power of two, so is a large damp.
 *
 * Returns one of the following, with *result filled:
 *   SPMV_OK                    stop is 0, 1, 2, 4 or 5, and true_residual and true_gradient agree.
 *   SPMV_ERROR_CONDITION       stop is 3 or 6. x is the iterate reached: a regularised solution.
 *   SPMV_ERROR_ITERATIONS      stop is 7. x is the last iterate.
 *   SPMV_ERROR_STAGNATION      Restarts no longer help: the true residual does not follow that of the
 *                              recurrence. x is the iterate with the smaller one.
 *   SPMV_ERROR_BREAKDOWN       cgls: A p vanishes. x is the last iterate; try lsmr.
 *   SPMV_ERROR_NOT_FINITE      A value overflowed or is NaN; the message names a number of A or b that
 *                              is not finite. x is 0 or the start.
 *   SPMV_CANCELLED             Cancelled by the callback. x is the iterate reached; on cuda it may be up
 *                              to 24 iterations further.
 * Errors before any work, with x unchanged: SPMV_ERROR_ARGUMENT (NULL, b and x are the same array),
 * SPMV_ERROR_MEMORY.
 *
 * Several right-hand sides are solved together, up to 32 at a time, with one product for all: on omp if A has at
 * least 8 entries a row (and column, whichever are more), on cuda 16; else, and with complex types and on ref, one
 * after the other, which takes less time there. Each has its own tests, iterations, restarts and status. On ref and
 * omp each has the bits of a solve alone; on cuda, where products of several vectors add in another order, its bits
 * depend on how many are solved together. The status returned is that of the first one, by number, that failed; the message names
 * it. Callbacks begin with iteration 0 for each, or for those that are solved together.
 *
 * Aliasing: b and x do not overlap. Determinism: the same bits every run and, on omp, for any number
 * of threads. On cuda the scalars stay on the device: steps are queued as CUDA graphs of 8, and
 * callbacks are called for 8 iterations at a time.
 *
 * Memory during a solve: 2 vectors of rows and 4 of cols (lsqr 3), and 1 to 3 of cols more with scaled columns,
 * or with damp and a start; of several right-hand sides that many for each that is solved together, and 1 of rows and
 * 1 of cols more. It is allocated before the loop.
 *
 * Source: see spmv_least_squares_name; the tests: D. C.-L. Fong, M. A. Saunders, section 4; scaling
 * by the diagonal of A'A: A. van der Sluis, Numer. Math. 14, 1969. */
SPMV_API spmv_status spmv_least_squares_solve(spmv_least_squares *solver, const void *b, void *x,
                                              spmv_least_squares_result *result, size_t size);

/* ---------------------------------------------------------------- extreme singular values */

/* Estimates of the largest and the smallest singular value of a matrix. */
typedef struct spmv_singular_values {
    size_t size; /* of this struct in bytes */

    /* Singular values of A on a subspace: largest <= that of A, and smallest >= that of A (the smaller
     * size of A: a zero column of a tall matrix makes it 0), both up to rounding. */
    double largest, smallest;

    /* A singular value of A is within this distance of each of the two. */
    double largest_error, smallest_error;

    int64_t iterations; /* each has one product with A and one with its transpose */
    int converged;      /* 1: both distances are at most rtol times the value, or 8 unit roundoffs times largest */
    int singular; /* 1: smallest is at most (rows + cols) unit roundoffs times largest: A has lost rank to rounding */
} spmv_singular_values;

/* Estimates the extreme singular values by the bidiagonalization of Golub and Kahan from a fixed
 * pseudo-random vector, without reorthogonalization. largest / smallest is never more than the
 * condition number, up to rounding. It is near the condition number if converged is 1: the distances are to
 * any singular value, so a smaller one may be near to smallest, or the start nearly orthogonal to its vector. The smallest value converges slowly where
 * others are near to it: then the quotient is only a lower bound.
 *
 *   a               as for spmv_least_squares_create
 *   rtol            relative error wanted, above 0; 1e-3 is enough for a condition number
 *   max_iterations  0: 1000
 *   result          filled for SPMV_OK; all 0 for a matrix without rows, columns or entries
 *   size            sizeof(spmv_singular_values)
 *
 * Waits twice in each iteration. context_set_cancel of the context ends it. Memory: plans for A and its
 * transpose, a vector of rows and one of cols.
 *
 * A whose entries are all very large or very small is scaled by one power of two.
 *
 * Errors: SPMV_ERROR_ARGUMENT (also: rtol or max_iterations out of range), SPMV_ERROR_NOT_FINITE (a norm
 * is not finite), SPMV_CANCELLED, those of spmv_plan_create. Determinism: as for spmv_least_squares_solve.
 * Source: G. H. Golub, W. Kahan, SIAM J. Numer. Anal. 2, 1965; residual bound: G. W. Stewart, J.-G. Sun,
 * "Matrix Perturbation Theory", 1990. */
SPMV_API spmv_status spmv_estimate_singular_values(spmv_context *ctx, const spmv_csr *a, double rtol,
                                                   int64_t max_iterations, spmv_singular_values *result, size_t size);

SPMV_END_DECLS

#endif

/* Iterative solvers for A x = b.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SPMV_SOLVERS_H
#define SPMV_SOLVERS_H

#include <spmv/operator.h>
#include <spmv/preconditioner.h>

SPMV_BEGIN_DECLS

/* Called after each iteration, and with iteration 0 before the first, with the norm of the recurrence's residual.
 * Return 0 to go on; anything else stops the solve with SPMV_CANCELLED (x then holds the iterate reached). */
typedef int (*spmv_cg_fn)(int64_t iteration, double residual, void *user);

typedef enum spmv_symmetry_check {
    SPMV_SYMMETRY_TRUST = 0,  /* the caller promises that A is symmetric */
    SPMV_SYMMETRY_SAMPLED = 1 /* u'A v and v'A u are compared for a few vectors u, v: see spmv_cg */
} spmv_symmetry_check;

typedef struct spmv_cg_options {
    size_t size;
    double rtol;             /* default 1e-8 */
    double atol;             /* default 0 */
    int64_t max_iterations;  /* default 0: 10 rows, at least 100 */
    int zero_start;          /* 1: x is not read, the start is 0; default 0 */
    spmv_cg_fn on_iteration; /* default NULL */
    void *user;
    const char *method;           /* a rung's name (spmv_cg_method_name); default NULL or "auto": chosen from the
                                     plan, the preconditioner and the sizes */
    spmv_preconditioner *precond; /* M, of the plan's context, type and rows; default NULL: none */
    int symmetry_check;           /* of spmv_symmetry_check; default SPMV_SYMMETRY_TRUST */
    spmv_plan *inner;             /* of the same matrix in f32, for a plan of f64: the recurrence runs with this one, in
                                     f32, and the true residual in f64 takes its place now and then; precond is then one
                                     of f32; default NULL */
} spmv_cg_options;

SPMV_API void spmv_cg_options_init(spmv_cg_options *options, size_t size);

/* The names of the rungs on a backend: spmv_cg_method_name(backend, 0), ... until NULL; the first is what auto would
 * like best. */
SPMV_API const char *spmv_cg_method_name(spmv_backend backend, int index);

typedef struct spmv_cg_result {
    size_t size;
    int64_t iterations; /* products with A inside the recurrence */
    int64_t restarts;   /* times the recurrence was done and the true residual was not: see below */
    double norm_b;
    double tolerance;           /* max(rtol ||b||, atol); of several, atol where b'b overflows */
    double recurrence_residual; /* ||r|| as the recurrence has it */
    double true_residual;       /* ||b - A x||, computed from the x returned */
    spmv_status status;         /* what spmv_cg returned; SPMV_ERROR_ARGUMENT before that */
    const char *method;         /* the rung that ran, "" before that; the string lives as long as the library */
    char why[160];              /* one sentence: why this rung */
    char precond[32];           /* the preconditioner's name, "none" without */
} spmv_cg_result;

/* Solves A x = b for a symmetric positive definite A (the plan's op(A)) by conjugate gradients, starting from the x
 * handed in: r = b - A x, z = M^-1 r, p = z;  repeat  q = A p, alpha = r'z / p'q, x += alpha p, r -= alpha q,
 * z = M^-1 r, beta = r'z / (old r'z), p = z + beta p until ||b - A x|| <= max(rtol ||b||, atol) in the Euclidean norm,
 * with and without a preconditioner M. Where the recurrence says so but the true residual does not, or the recurrence's
 * residual has shrunk by the unit roundoff since it started, the method restarts from the true one as long as that
 * halves it. Where squares of numbers between ||b|| and the tolerance would overflow or lose their digits, it is a
 * power of two times b and x that is worked on, which changes no digit, from 0 where ||b - A x|| is out of range even
 * then; what is reported is in the caller's units. (Not so for several right-hand sides.) b, x: rows elements of the
 * plan's type in the context's memory, no overlap. b == 0 gives x = 0. Workspace of four to six vectors, nine for the
 * rung persistent, one more where b is scaled, is allocated before the loop, in which nothing is allocated; the context
 * keeps it for the next solve of that size, and gives it up when memory is short. Same bits every run with the same
 * rung, and on omp for any number of threads.
 *
 * The rungs: "textbook" is one library call a line, on every backend and with every preconditioner; alpha and beta
 * never leave the context's memory, one wait an iteration reads r'r and p'q for the tests. "fused" and "graph" do the
 * same arithmetic in fewer passes, and sum in an order of their own; "persistent", for systems that fit on the chip,
 * runs the pipelined predict-and-recompute form (T. Chen, E. Carson, SIAM J. Sci. Comput. 42(5), 2020), the same in
 * exact arithmetic: see docs/solvers.md. On cuda they tell the callback of 16 (graph, fused) or 256 (persistent)
 * iterations together, in order, behind them: cancelled, x and result->iterations may be up to twice that many on.
 *
 * symmetry_check: for three pairs of fixed pseudo-random vectors u, v of elements of modulus 1 to 2, |u'A v - v'A u|
 * must not exceed 32 u sqrt(nnz) (u the unit roundoff) times the largest ||A w|| met, far more than rounding explains:
 * six products and two vectors of memory. What fails is not symmetric; A - A' of so small a Frobenius norm passes.
 *
 * A plan for k vectors solves for k right-hand sides at once, with one product an iteration for all: b and x are
 * matrices of k columns as in spmv_apply, result points to k results that lie size bytes apart (NULL: none), and each
 * has its own recurrence, tolerance and status; one that is done stands still while the others go on. The callback is
 * told of the largest residual among those that are not done. What is returned is the status of the first right-hand
 * side that failed, which the sentence names. Rungs: "textbook", with every preconditioner, applied to one column after
 * the other; and with none or "jacobi" on omp "fused", on cuda "graph" and "fused". A column's bits depend on k.
 *
 * Returns SPMV_OK when the true residual keeps the tolerance; else one of the following, *result being filled all the
 * same, true_residual for the x returned: SPMV_ERROR_ITERATIONS (limit; x is the last iterate), SPMV_ERROR_STAGNATION
 * (restarts no longer halve the true residual; x has the smallest of them; also for one of several right-hand sides so
 * small that squares of its residuals vanish: x = 0 then),
 * SPMV_ERROR_NOT_FINITE (the sentence says at which iteration; x is the last iterate, or where the recurrence last
 * started if that one's residual is smaller), SPMV_ERROR_NOT_POSITIVE (p'Ap <= 0: A is not positive definite, or
 * r'M^-1 r <= 0: M is not; the sentence says which and at which iteration; x is the last iterate), SPMV_CANCELLED.
 * Before any work: SPMV_ERROR_NOT_SQUARE, SPMV_ERROR_NOT_SYMMETRIC (asked to check), SPMV_ERROR_ARGUMENT,
 * SPMV_ERROR_TYPE (complex; a preconditioner of another type), SPMV_ERROR_SIZE (a preconditioner of other rows),
 * SPMV_ERROR_METHOD (no such rung; the sentence lists them), SPMV_ERROR_UNSUPPORTED (a plan with strides, a rung that
 * cannot do it), SPMV_ERROR_MEMORY.
 *
 * M. R. Hestenes, E. Stiefel, "Methods of conjugate gradients for solving linear systems", J. Res. NBS 49(6), 1952. */
SPMV_API spmv_status spmv_cg(spmv_plan *plan, const void *b, void *x, const spmv_cg_options *options,
                             spmv_cg_result *result, size_t size);

SPMV_END_DECLS

#endif

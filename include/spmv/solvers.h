/* Iterative solvers for A x = b.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SPMV_SOLVERS_H
#define SPMV_SOLVERS_H

#include <spmv/operator.h>
#include <spmv/preconditioner.h>

SPMV_BEGIN_DECLS

/* A callback after each iteration, and before the first with iteration 0. residual: the norm of the
 * recurrence's residual. It returns 0 to go on; any other value stops the solve with SPMV_CANCELLED
 * and the iterate reached in x. */
typedef int (*spmv_cg_fn)(int64_t iteration, double residual, void *user);

typedef enum spmv_symmetry_check {
    SPMV_SYMMETRY_TRUST = 0,  /* the caller promises that A is symmetric */
    SPMV_SYMMETRY_SAMPLED = 1 /* u'A v and v'A u are compared for three pairs of vectors u, v: see
                                 spmv_cg */
} spmv_symmetry_check;

typedef struct spmv_cg_options {
    size_t size;
    double rtol;             /* default 1e-8 */
    double atol;             /* default 0 */
    int64_t max_iterations;  /* default 0: 10 rows, at least 100 */
    int zero_start;          /* 1: the start is 0 and x is not read; default 0: the start is x */
    spmv_cg_fn on_iteration; /* default NULL */
    void *user;
    const char *method;           /* a rung's name (spmv_cg_method_name); default NULL or "auto":
                                     chosen from the plan, the preconditioner and the sizes */
    spmv_preconditioner *precond; /* M, of the plan's context, type and rows; default NULL: none */
    int symmetry_check;           /* of spmv_symmetry_check; default SPMV_SYMMETRY_SAMPLED */
    spmv_plan *inner;             /* a plan of the same matrix in f32, for a plan of f64: the
                                     recurrence runs in f32, and from time to time the true residual
                                     in f64 replaces its residual; precond is then one of f32;
                                     default NULL */
} spmv_cg_options;

SPMV_API void spmv_cg_options_init(spmv_cg_options *options, size_t size);

/* The name of rung number index of a backend, counted from 0; NULL where index or backend is out of
 * range. "auto" prefers the first. */
SPMV_API const char *spmv_cg_method_name(spmv_backend backend, int index);

typedef struct spmv_cg_result {
    size_t size;
    int64_t iterations; /* products with A inside the recurrence */
    int64_t restarts;   /* how often the recurrence was done but the true residual was not: see
                           spmv_cg */
    double norm_b;
    double tolerance;           /* max(rtol ||b||, atol); of several, atol where b'b overflows */
    double recurrence_residual; /* ||r|| as the recurrence has it */
    double true_residual;       /* ||b - A x|| of the x returned */
    spmv_status status;         /* what spmv_cg returned; SPMV_ERROR_ARGUMENT before that */
    const char *method;         /* the rung that ran, "" before that; the string lives as long as
                                   the library */
    char why[160];              /* one sentence: why this rung */
    char precond[32];           /* the preconditioner's name, "none" without */
} spmv_cg_result;

/* Solves A x = b for a symmetric positive definite A (the plan's op(A)) by conjugate gradients,
 * with or without a preconditioner M, from the start x:
 *     r = b - A x, z = M^-1 r, p = z
 *     repeat  q = A p, alpha = r'z / p'q, x += alpha p, r -= alpha q, z = M^-1 r,
 *             beta = r'z / (old r'z), p = z + beta p
 * until ||b - A x|| <= max(rtol ||b||, atol) in the Euclidean norm. b == 0 gives x = 0.
 *
 * Restarts. The method restarts from the true residual where the recurrence is done but the true
 * residual is not, or where the recurrence's residual has shrunk by the unit roundoff since its
 * start. It does so as long as that halves the true residual.
 *
 * Scaling (one right-hand side). Where squares of numbers between ||b|| and the tolerance would
 * overflow or lose digits, the method works on a power of two times b and x, which changes no
 * digit. It then starts from 0 where ||b - A x|| is out of range even so. Everything reported is in
 * the caller's units.
 *
 * Symmetry. With SPMV_SYMMETRY_SAMPLED, the first solve with a plan compares u'A v and v'A u for
 * the three pairs of three fixed pseudo-random vectors with elements of modulus 1 to 2. The
 * difference must not exceed 32 u sqrt(nnz) (u the unit roundoff) times the largest ||A w|| met,
 * far more than rounding explains. What fails is not symmetric; A - A' of a Frobenius norm below
 * that bound passes. The cost is three products, three copies each way, and two vectors of memory
 * besides one on the host. The check multiplies by the plan, so it works with every plan:
 * transposed, with re-encoded values, or with borrowed arrays on a device. The plan keeps the
 * verdict until spmv_plan_update_values. Borrowed arrays that are changed without that call keep
 * the old verdict. Where a graph has captured that call, each launch may bring other values, so
 * each solve looks. Give SPMV_SYMMETRY_TRUST where symmetry is known.
 *
 * Rungs. "textbook" is one library call a line, on every backend and with every preconditioner;
 * alpha and beta stay in the context's memory, and one wait an iteration reads r'r and p'q. "fused"
 * and "graph" do the same arithmetic in fewer passes, and sum in their own order. "persistent", for
 * systems that fit on the chip, runs the pipelined predict-and-recompute form (T. Chen, E. Carson,
 * SIAM J. Sci. Comput. 42(5), 2020), the same in exact arithmetic: see docs/solvers.md. On cuda,
 * "graph" and "fused" tell the callback of 16 iterations together, "persistent" of 256, in order,
 * after them: after a cancellation, x and result->iterations may be up to twice that many further.
 *
 * Several right-hand sides. A plan for k vectors solves for k right-hand sides with one product an
 * iteration: b and x are matrices of k columns as in spmv_apply. Each column has its own
 * recurrence, tolerance and status; a column that is done stands still. The callback gets the
 * largest residual of the columns that are not done. The status returned is that of the first
 * right-hand side that failed, and the sentence names it. Rungs: "textbook" with every
 * preconditioner, applied column by column; with none or "jacobi" also "fused" on omp, "graph" and
 * "fused" on cuda. There is no scaling: a right-hand side so small that squares of its residuals
 * vanish gets x = 0.
 *
 * b, x: rows elements (times k) of the plan's type in the context's memory, without overlap.
 * options: NULL means defaults. result: NULL, or k results that are size bytes apart. size:
 * sizeof(spmv_cg_result) as the caller sees it. Workspace of four to six vectors (nine for
 * "persistent", one more where b is scaled) is allocated before the loop; the loop allocates
 * nothing. The context keeps the workspace for the next solve of that size, and releases it when
 * memory is short.
 *
 * Returns SPMV_OK when the true residual keeps the tolerance. Otherwise one of these, with *result
 * filled and true_residual that of the x returned:
 * - SPMV_ERROR_ITERATIONS: the limit; x is the last iterate.
 * - SPMV_ERROR_STAGNATION: restarts no longer halve the true residual; x is the iterate with the
 *   smallest. Also a right-hand side among several so small that squares of its residuals vanish
 *   (x = 0).
 * - SPMV_ERROR_NOT_FINITE: a number overflowed or is NaN; the sentence names the iteration. x is
 *   the last iterate, or the last start of the recurrence where its residual is smaller or b - A x
 *   is not finite. Also a solution that exceeds the range of the type: x = 0 where the sentence
 *   says so, else the last start; never infinity.
 * - SPMV_ERROR_NOT_POSITIVE: p'Ap <= 0, so A is not positive definite, or r'M^-1 r <= 0, so M is
 *   not. The sentence says which, and the iteration; x is the last iterate.
 * - SPMV_CANCELLED: by the callback.
 *
 * Before any work, with x as it was: SPMV_ERROR_NOT_SQUARE, SPMV_ERROR_NOT_SYMMETRIC,
 * SPMV_ERROR_ARGUMENT, SPMV_ERROR_TYPE (complex; a preconditioner of another type), SPMV_ERROR_SIZE
 * (a preconditioner of other rows), SPMV_ERROR_METHOD (no such rung; the sentence lists them),
 * SPMV_ERROR_UNSUPPORTED (a plan with strides, a rung that cannot do it), SPMV_ERROR_MEMORY.
 *
 * Same bits every run with the same rung, and on omp for any number of threads. The bits of a
 * column depend on k.
 *
 * M. R. Hestenes, E. Stiefel, "Methods of conjugate gradients for solving linear systems", J. Res.
 * NBS 49(6), 1952. */
SPMV_API spmv_status spmv_cg(spmv_plan *plan, const void *b, void *x, const spmv_cg_options *options,
                             spmv_cg_result *result, size_t size);

SPMV_END_DECLS

#endif

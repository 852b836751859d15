/* Solvers for A x = b, with any square A: conjugate gradients, MINRES, GMRES, BiCGStab, COCG, and LU factors.
 *
 * A solver owns what the solution of A x = b needs: the plan for products with A and the
 * preconditioner. It is made once for a matrix and solves for any number of right-hand sides:
 *
 *     spmv_solver *solver;
 *     spmv_solver_result result;
 *     spmv_solver_create(ctx, &a, NULL, &solver);                 (a: spmv_csr, see matrix.h)
 *     spmv_solver_solve(solver, b, x, &result, sizeof result);    (b, x in the context's memory)
 *     spmv_solver_destroy(solver);
 *
 * spmv_solve does this in one call. spmv_cg is conjugate gradients alone, for a plan and a
 * preconditioner of the caller:
 *
 *     spmv_cg_options options;
 *     spmv_cg_result result;
 *     spmv_cg_options_init(&options, sizeof options);
 *     options.rtol = 1e-10;
 *     spmv_cg(plan, b, x, &options, &result, sizeof result);
 *
 * examples/repeated_solves.c and examples/linear_system.c are whole programs. docs/solvers.md
 * describes the solvers.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SPMV_SOLVERS_H
#define SPMV_SOLVERS_H

#include <spmv/plan.h>
#include <spmv/preconditioner.h>

SPMV_BEGIN_DECLS

/* A callback that is called before the first iteration (iteration 0) and after each one.
 *
 *   iteration  iterations done
 *   residual   norm of the residual of the recurrence
 *
 * It returns 0 to continue. Any other value stops the solve with SPMV_CANCELLED; x is then the
 * iterate reached. It may call the library on the context of the solve (context.h, Callbacks). */
typedef int (*spmv_cg_fn)(int64_t iteration, double residual, void *user);

/* A callback that reads the iterate. It is called when spmv_cg_fn would be.
 *
 *   x  the iterate after these iterations: rows elements of the plan's type in the context's
 *      memory, to be read only, valid until the callback returns
 * Other parameters and the value returned: as for spmv_cg_fn.
 *
 * On OpenMP it runs in the calling thread, inside a parallel region. */
typedef int (*spmv_iterate_fn)(int64_t iteration, double residual, const void *x, void *user);

/* Whether spmv_cg checks that A is symmetric. */
typedef enum spmv_symmetry_check {
    SPMV_SYMMETRY_TRUST = 0,  /* no check: the caller guarantees symmetry */
    SPMV_SYMMETRY_SAMPLED = 1 /* a check by products with random vectors; see spmv_cg */
} spmv_symmetry_check;

typedef struct spmv_cg_options {
    size_t size;             /* sizeof(spmv_cg_options), set by spmv_cg_options_init */
    double rtol;             /* tolerance relative to ||b||; default 1e-8 */
    double atol;             /* absolute tolerance; default 0 */
    int64_t max_iterations;  /* default 0: 10 times the rows, at least 100 */
    int zero_start;          /* 1: start at x = 0, x is not read; default 0: start at the given x */
    spmv_cg_fn on_iteration; /* callback; default NULL: none */
    void *user;              /* passed to on_iteration; default NULL */

    /* The name of a rung (spmv_cg_rung_name). Default NULL or "auto": chosen from the plan, the
     * preconditioner and the sizes. */
    SPMV_RENAMED(const char *rung, const char *method);

    /* The preconditioner M. It has the context, type and rows of the plan (with inner: the type of
     * that plan). Default NULL: none. */
    spmv_preconditioner *precond;

    int symmetry_check; /* a spmv_symmetry_check; default SPMV_SYMMETRY_SAMPLED */

    /* A plan of type f32 for the same matrix as a plan of type f64, one right-hand side. The
     * recurrence then runs in f32. From time to time x is corrected in f64, and the true residual
     * in f64 replaces the residual of the recurrence. Default NULL. */
    spmv_plan *inner;

    /* A callback that reads x, with user; default NULL: none. Only for one right-hand side, without
     * inner, and with the rungs textbook and fused of ref and omp and textbook of cuda: fused,
     * graph and persistent on cuda report iterations when x has moved on, so "auto" then takes
     * textbook. */
    spmv_iterate_fn on_iterate;
} spmv_cg_options;

/* Fills options with the defaults. size: sizeof(spmv_cg_options). */
SPMV_API void spmv_cg_options_init(spmv_cg_options *options, size_t size);

/* The name of a rung of spmv_cg on a backend. Static storage.
 *
 *   index  0, 1, ...; NULL is returned after the last rung and for an unknown backend. "auto"
 *          takes the first rung that supports the solve; it is not in the list. */
SPMV_API const char *spmv_cg_rung_name(spmv_backend backend, int index);

/* The result of a solve, for one right-hand side. */
typedef struct spmv_cg_result {
    size_t size;                /* of this struct in bytes */
    int64_t iterations;         /* products with A in the recurrence */
    int64_t restarts;           /* restarts from the true residual */
    double norm_b;              /* ||b|| */
    double tolerance;           /* max(rtol ||b||, atol); with several right-hand sides, atol if
                                   b'b overflows */
    double recurrence_residual; /* ||r|| of the recurrence */
    double true_residual;       /* ||b - A x|| for the x returned */
    spmv_status status;         /* of this right-hand side; SPMV_ERROR_ARGUMENT before the solve */
    /* the rung used, "" before the solve; static storage */
    SPMV_RENAMED(const char *rung, const char *method);
    char why[160];         /* one sentence: why this rung */
    char precond[32];      /* name of the preconditioner, or "none" */
    double error_estimate; /* of ||x - A^-1 b||_A, see below; negative: not available */
} spmv_cg_result;

/* Solves A x = b for a symmetric positive definite A by conjugate gradients, with or without a
 * preconditioner M:
 *
 *     r = b - A x,  z = M^-1 r,  p = z
 *     repeat  q = A p,  alpha = r'z / p'q,  x += alpha p,  r -= alpha q,  z = M^-1 r,
 *             beta = r'z / (old r'z),  p = z + beta p
 *     until ||b - A x|| <= max(rtol ||b||, atol)      (Euclidean norm)
 *
 * b = 0 gives x = 0.
 *
 *   plan     products with A (the plan's op(A)), without strides
 *   b        rows elements of the plan's type (rows times k for k right-hand sides)
 *   x        the same size: start and solution
 *   options  NULL means defaults
 *   result   NULL, or k structs (one for one right-hand side) that are size bytes apart
 *   size     sizeof(spmv_cg_result)
 *
 * Aliasing: b and x do not overlap.
 *
 * Returns one of the following, with *result filled and true_residual computed for the x returned:
 *   SPMV_OK                  The true residual is within the tolerance.
 *   SPMV_ERROR_ITERATIONS    Iteration limit reached. x is the last iterate.
 *   SPMV_ERROR_STAGNATION    Restarts no longer halve the true residual. x is the iterate with the
 *                            smallest one.
 *   SPMV_ERROR_NOT_FINITE    A value overflowed or is NaN; the message names the iteration. x is
 *                            the last iterate, or the last start of the recurrence if that has a
 *                            smaller residual or b - A x is not finite.
 *                            Also: the solution exceeds the range of the type. x is then 0 if the
 *                            message says so, else the last start; it is never infinite.
 *   SPMV_ERROR_NOT_POSITIVE  p'Ap <= 0, so A is not positive definite, or r'M^-1 r <= 0, so M is
 *                            not. The message says which. x is the last iterate. Also, in textbook
 *                            and in fused on omp: the residual has grown to 2^27 times its first
 *                            value, which a positive definite A does not allow.
 *   SPMV_CANCELLED           Cancelled by the callback. x is the iterate reached.
 *
 * Errors before any work, with x unchanged: SPMV_ERROR_NOT_SQUARE, SPMV_ERROR_NOT_SYMMETRIC,
 * SPMV_ERROR_ARGUMENT, SPMV_ERROR_TYPE (a preconditioner of another type),
 * SPMV_ERROR_SIZE (a preconditioner or inner plan of another size), SPMV_ERROR_METHOD (no such
 * rung; the message lists them), SPMV_ERROR_UNSUPPORTED (a plan with strides, a rung that
 * cannot do this), SPMV_ERROR_MEMORY.
 *
 * Determinism: with the same rung the same bits every run and, on omp, for any number of threads.
 * The bits of a right-hand side depend on k.
 *
 * Restarts. The solver restarts from the true residual b - A x if the recurrence has reached the
 * tolerance and the true residual has not, or if the residual of the recurrence has shrunk by the
 * unit roundoff since its start. It goes on as long as a restart halves the true residual.
 *
 * Scaling (one right-hand side). If squares of numbers between ||b|| and the tolerance would
 * overflow or lose digits, the solver scales b and x by a power of two, which changes no digit. It
 * then starts from 0 if ||b - A x|| is still out of range. All results are in the units of the
 * caller.
 *
 * Error estimate. error_estimate is an estimate of the error of x in the energy norm, ||e||_A =
 * sqrt(e'A e), from the coefficients of the recurrence. It is not a bound: it may be below the
 * error, mostly while convergence is slow (docs/solvers.md has a table). It is available in
 * textbook, and in fused on omp, if the last run of the recurrence made a step; not with inner.
 * Source: G. Meurant, P. Tichy, Numerical Algorithms 82, 2019.
 *
 * Symmetry check. With SPMV_SYMMETRY_SAMPLED the first solve with a plan compares u'A v and v'A u
 * for the three pairs of three fixed pseudo-random vectors with elements of modulus 1 to 2. The
 * difference must not exceed 32 u sqrt(nnz) times the largest ||A w|| of the three vectors w, where
 * u is the unit roundoff. This is far more than rounding causes. A matrix that fails is not
 * symmetric. A matrix passes if the Frobenius norm of A - A' is below that bound.
 *   - Cost: three products, three copies in each direction, two vectors of the context's memory and
 *     one of host memory.
 *   - It uses products only, so it works with every plan: transposed, compressed, borrowed arrays.
 *   - The plan keeps the result until spmv_plan_update_values. If the caller changes borrowed
 *     arrays without that call, the old result stays. After that call was captured in a graph,
 *     every solve checks again, because each launch may change the values.
 *   - Choose SPMV_SYMMETRY_TRUST if A is known to be symmetric.
 *
 * Solvers (docs/solvers.md):
 *   textbook    One library call per line above, on every backend, with every plan and
 *               preconditioner. alpha and beta stay in the context's memory; one wait per iteration
 *               reads r'r and p'q.
 *   fused       The same arithmetic in fewer passes over the vectors; sums in another order. omp:
 *               plans of the method tiles, preconditioner none or jacobi. cuda: all.
 *   graph       cuda: as fused, replayed as CUDA graphs of 16 iterations (of one with a
 *               preconditioner other than none and jacobi).
 *   persistent  cuda: one kernel for systems that fit on the chip, plans of the methods slices, long,
 *               groups, padded and tiles, preconditioner none, jacobi, fsai, or isai of degree 0. It runs the pipelined
 *               predict-and-recompute form, which is the same in exact arithmetic (T. Chen,
 *               E. Carson, SIAM J. Sci. Comput. 42(5), 2020).
 * On cuda, fused and graph call the callback for 16 iterations at a time, persistent for 256, in
 * order, after they were computed. After a cancellation x and result->iterations may be up to twice
 * as many iterations further.
 *
 * Several right-hand sides. A plan for k vectors solves k systems with one product per iteration. b
 * and x are matrices of k columns as for spmv_apply. Each column has its own recurrence, tolerance
 * and status; a column that is done does not change any more.
 *   - The callback gets the largest residual of the columns that are not done.
 *   - The status returned is that of the first column that failed; the message names it.
 *   - Rungs: textbook with every preconditioner, applied column by column. With none or jacobi
 *     also fused (omp, cuda) and graph (cuda); with amg fused (omp, cuda), where each level multiplies
 *     all columns at once. There a column has the same bits whatever the columns beside it are.
 *   - There is no scaling. A column so small that the squares of its residuals underflow gets the
 *     solution 0, and SPMV_ERROR_STAGNATION if that is not within its tolerance.
 *
 * Memory. All of it is allocated before the loop. For one right-hand side it is 4 vectors, 1 more
 * with a preconditioner that has to be applied in a separate step, 5 more for persistent, 1 more if
 * b is scaled, and with inner at least 6 more in f32. For k right-hand sides it is 4 k + 2 vectors,
 * another 4 k for textbook (5 k with a preconditioner); with amg and fused 3 k for each level, in the
 * type of its hierarchy. The context keeps this memory for the next solve of the same size and releases it if memory
 * is short.
 *
 * Source: M. R. Hestenes, E. Stiefel, "Methods of conjugate gradients for solving linear systems",
 * J. Res. NBS 49(6), 1952. */
SPMV_API spmv_status spmv_cg(spmv_plan *plan, const void *b, void *x, const spmv_cg_options *options,
                             spmv_cg_result *result, size_t size);

/* ---------------------------------------------------------------- the solver of a matrix */

typedef struct spmv_solver spmv_solver;

typedef struct spmv_solver_options {
    size_t size; /* sizeof(spmv_solver_options), set by spmv_solver_options_init */

    /* A name of spmv_solver_name. Default NULL or "auto": chosen from the matrix. */
    SPMV_RENAMED(const char *solver, const char *method);

    /* The name of a preconditioner (spmv_preconditioner_name). Default NULL or "auto": chosen from
     * the matrix and the backend. */
    const char *precond;

    /* Options of the preconditioner; copied. The members type and plan are ignored: the solver sets
     * them. near_null has the type of b and x by default, and must outlive a solver that gets new
     * values; coordinates, fields and schur are read during the call. A complex system can have none of
     * these (SPMV_ERROR_UNSUPPORTED). Default NULL: defaults. */
    const spmv_preconditioner_options *precond_options;

    /* The type of b and x, as in spmv_plan_options. Default: the type of the matrix, f64 for a
     * pattern. */
    spmv_type type;

    int vectors; /* right-hand sides solved at once, from 1; complex ones one after the other; default 1 */

    /* 1: iterate in f32 and correct x in f64, as with the option inner of spmv_cg. It needs the
     * type f64 and one right-hand side. Default 0. */
    int inner;

    /* As in spmv_cg_options. */
    double rtol;             /* default 1e-8 */
    double atol;             /* default 0 */
    int64_t max_iterations;  /* default 0: 10 times the rows, at least 100 */
    int zero_start;          /* 1: start at x = 0, x is not read; default 0: start at the given x */
    spmv_cg_fn on_iteration; /* callback; default NULL: none */
    void *user;              /* passed to on_iteration; default NULL */
    int symmetry_check;      /* a spmv_symmetry_check; default SPMV_SYMMETRY_SAMPLED */
    const char *rung;        /* a name of spmv_cg_rung_name; default NULL or "auto": chosen */

    spmv_iterate_fn on_iterate; /* as in spmv_cg_options; default NULL: none */

    int restart; /* gmres: iterations between restarts, 1 to 200; default 0: 50 */

    /* A plan for products with this matrix (SPMV_OPERATION_N, no strides), whose type and number of
     * vectors the solver takes; vectors is 1 or the same number. It must outlive the solver; the
     * matrix must be in the context's memory; new values are not possible. Default NULL: the
     * solver makes its own. */
    spmv_plan *plan;

    /* A preconditioner in place of the one that precond names, such as one's own
     * (spmv_preconditioner_wrap). For a complex matrix of n rows it has 2 n rows, the real and
     * imaginary parts in turn. It must outlive the solver. Default NULL: none is given. */
    spmv_preconditioner *own_precond;

    /* Null vectors v of a singular A, A v = 0. Element i of vector j is
     * null_space[i * null_vectors + j], of the type of b and x, in the context's memory; it must
     * outlive a solver that gets new values. The solver makes them orthonormal. A vector with more than
     * ||A v|| = 2^-26 || |A| |v| || (2^-17 if A or v are in f32), or 0, is SPMV_ERROR_ARGUMENT; the
     * message names it. Without near_null and coordinates, up to 8 real ones are near_null too. Not
     * with direct. See "Singular matrices" at spmv_solver_solve. Default NULL: none. */
    const void *null_space;
    int null_vectors; /* their number, up to 64; default 0 */

    /* In place of null_space: the null vectors are constant on each of null_block unknowns of a node
     * and 0 on the others; 1: the vector of ones. It divides the rows. Default 0: none. */
    int null_block;

    /* For right-hand sides that follow each other, such as time steps: up to so many of the last solutions, less their
     * given start, span a space in which the solver looks for a better start before it iterates. See "Recycling" at
     * spmv_solver_solve. 8 is a good number. 0 to 64; default 0: none. With direct it has no effect; in a group it is not
     * supported. */
    int recycle;

    /* 1: after a solve, estimate the error of x: forward_error in the result. See "Forward error" at spmv_solver_solve.
     * Default 0. */
    int estimate_error;

    /* Decimal digits of x that are wanted: a relative error of at most 10^-accuracy. See "Forward error" at
     * spmv_solver_solve. Up to 15, and up to 6 in f32 and c64. Default 0: no number. */
    int accuracy;
} spmv_solver_options;

/* The names of the solvers; NULL after the last. Static storage. docs/solvers.md says when to take
 * which.
 *
 *   name      for                              source
 *   --------  -------------------------------  ---------------------------------------------------
 *   cg        A symmetric (Hermitian)          as for spmv_cg
 *             positive definite
 *   minres    A real symmetric; M symmetric    C. C. Paige, M. A. Saunders, SIAM J. Numer. Anal. 12,
 *             positive definite                1975
 *   gmres     any A; restarted, flexible       Y. Saad, M. H. Schultz, SIAM J. Sci. Stat. Comput. 7,
 *             right preconditioning            1986; Y. Saad, SIAM J. Sci. Comput. 14, 1993
 *   bicgstab  any A; right preconditioning     H. A. van der Vorst, SIAM J. Sci. Stat. Comput. 13,
 *                                              1992
 *   cocg      A = A' without conjugation; M    H. A. van der Vorst, J. B. M. Melissen, IEEE Trans.
 *             likewise; smoothed residuals     Magnetics 26, 1990; L. Zhou, H. F. Walker, SIAM J. Sci.
 *                                              Comput. 15, 1994
 *   direct    any A that is not singular;      factors by a library that is opened on first use, with
 *             no preconditioner                iterative refinement: the first one that is there and suits A
 *   direct:NAME                                by this one: cudss, cholmod, mumps, klu or umfpack
 *
 * "auto": for at most 200 rows, with the preconditioner "auto" too, direct with a dense factor by
 * partial pivoting, on the host and in f64 or c128, unless A is singular to rounding; no module is
 * needed. Else cg if A is symmetric with a positive diagonal, or with a real negative one (then -A
 * x = -b is solved); minres if it is symmetric otherwise; cocg if it is complex, its own transpose
 * and not Hermitian; else gmres, or bicgstab if the vectors of gmres would take more than 2 GiB. If cg finds that A is not positive definite, minres goes on
 * from the x reached. If the preconditioner is "auto" too:
 *   - If sums with the preconditioner are not finite, the solver goes on with "jacobi" or "none".
 *   - For cg and gmres, two preconditioners may race: which one goes on is found from the residuals
 *     and from counted work (docs/preconditioners.md). minres races likewise against gmres with
 *     ilut. On a host, from 4,000 rows on, small solves with a sample of the rows of a real matrix
 *     predict which one that is. The solver remembers the one that wins.
 *     Several right-hand sides that are solved together race together: the largest residual and the
 *     largest tolerance count.
 *   - For one right-hand side: where what is left is predicted to take twice as long as factors by a library
 *     that is there, direct goes on. It does so too before minres, where a sample predicts that, and after cocg or
 *     bicgstab have done the work of an analysis.
 *   - If the solver stagnates, breaks down or, after 2000 iterations, is predicted to need more than
 *     4000 others (on cuda 40,000), gmres goes on with "ilut", then direct (one right-hand side), then "ilut" of more fill-in. If
 *     neither can be made or helps, a solver that had not ended gets the rest of the iterations. Where the factors of
 *     direct do not fit the memory, it ends with SPMV_ERROR_ITERATIONS once 20,000 more are predicted, and the
 *     message has the bytes that they need.
 *   - Nothing follows if the residual is at the rounding errors of b - A x (the message says so).
 * The result names what was used last, and why. Several right-hand sides are treated like one: cg
 * solves them together, and the other solvers each one that cg has not solved. */
SPMV_API const char *spmv_solver_name(int index);

/* Fills options with the defaults. size: sizeof(spmv_solver_options). */
SPMV_API void spmv_solver_options_init(spmv_solver_options *options, size_t size);

/* Makes a solver for A x = b: a plan, and a preconditioner or factors. May wait.
 *
 *   a        square, of any type of values. SPMV_MEMORY_HOST: the solver copies the arrays; they may change after the
 *            call. SPMV_MEMORY_CONTEXT: the solver borrows the arrays. They must outlive the solver
 *            and must not change (spmv_solver_update_values replaces the values). The caller
 *            guarantees ascending offsets and columns in range (spmv_matrix_check).
 *   options  NULL means defaults; strings and precond_options need not outlive the call
 *   *solver  the solver; NULL after an error
 *
 * The preconditioner: spmv_preconditioner_create. "auto" falls back on another one if need be (the
 * text why_precond of the result has the reason); a named one that cannot be made is an error. For
 * gmres and bicgstab, "ilu0" and "ilut" are made of the prepared matrix P R A S Q: scaled, with large
 * entries on the diagonal where they are missing, reordered; so are "jacobi" and "block-jacobi" if a
 * diagonal entry is 0 (docs/preconditioners.md). "ilu0" or "ilut" with the solver "auto" means
 * gmres. For a complex matrix, the preconditioner is made of the real matrix of twice the size; for cocg of
 * the real symmetric matrix T of the same size with t_ij = +- re a_ij +- im a_ij and t_ii = |re a_ii| + |im a_ii|, the signs
 * making both sums of the diagonal positive, and applied to real and imaginary parts.
 *
 * Memory: one copy of a matrix in host memory, in the context's memory; with a negative diagonal
 * and cg a second array of values; the plan's tables, and in
 * some plans on cuda a second copy of the values (spmv_plan_info.bytes); the preconditioner; with
 * inner the values in f32. On cuda the plan looks for repeated values (SPMV_COMPRESSION_VALUES) if
 * there is one right-hand side.
 *
 * Errors: SPMV_ERROR_NOT_SQUARE, SPMV_ERROR_METHOD (no such solver, rung or preconditioner; the
 * message lists the names), SPMV_ERROR_TYPE (also: inner without f64), SPMV_ERROR_SINGULAR (no
 * factors), SPMV_ERROR_NOT_POSITIVE (direct:cholmod), SPMV_ERROR_NOT_SYMMETRIC, SPMV_ERROR_UNSUPPORTED
 * (also: inner with several right-hand sides; a plan for several complex vectors; inner or a rung with
 * another solver than cg; a preconditioner with direct; direct without a module; direct:cudss without a GPU), SPMV_ERROR_LIMIT (also:
 * inner, and a value is too large for f32), SPMV_ERROR_ARGUMENT (also: an option out of its range;
 * the message names it), SPMV_ERROR_SIZE (also: a plan for another matrix), those of
 * spmv_plan_create and spmv_preconditioner_create. */
SPMV_API spmv_status spmv_solver_create(spmv_context *ctx, const spmv_csr *a, const spmv_solver_options *options,
                                        spmv_solver **solver);

/* Makes a solver from a plan alone, without the entries of the matrix: for an operator (spmv_plan_wrap), or where the
 * plan is all that is left. The plan must outlive the solver.
 *
 *   plan     square, of one vector
 *   options  NULL means defaults. Of the preconditioners: "none", which "auto" means here, or own_precond. The solvers cg,
 *            minres, gmres, bicgstab and cocg; not direct. Not: inner, plan, type, rung, null_space, null_block.
 *   *solver  the solver; NULL after an error
 *
 * "auto" for the solver: the check of symmetry by products decides. cg if A is symmetric (Hermitian), and minres from the
 * x reached if that finds it not positive definite; cocg if it is complex and its own transpose; else gmres. With
 * SPMV_SYMMETRY_TRUST A is taken to be symmetric (Hermitian). The check of an operator that is not exact takes differences
 * of up to 32 u n ||A w|| for rounding errors.
 *
 * Solves are those of spmv_solver_solve, but without what needs entries: null vectors that are not given, the backward
 * error of rows (backward_error is negative) and corrections for it, races and other preconditioners after a failure. The
 * true residual is computed by the plan. spmv_solver_update_values is not supported.
 *
 * Errors: those of spmv_solver_create; SPMV_ERROR_UNSUPPORTED (an option that needs entries; the message names it). */
SPMV_API spmv_status spmv_solver_create_for_plan(spmv_plan *plan, const spmv_solver_options *options,
                                                 spmv_solver **solver);

/* Destroys a solver after the work queued on the context's stream is done. */
SPMV_API void spmv_solver_destroy(spmv_solver *solver);

/* The result of a solve, for one right-hand side. */
typedef struct spmv_solver_result {
    size_t size;        /* of this struct in bytes */
    int64_t iterations; /* as in spmv_cg_result, up to status */
    int64_t restarts;
    double norm_b;              /* ||b|| */
    double tolerance;           /* max(rtol ||b||, atol) */
    double recurrence_residual; /* ||r|| of the recurrence */
    double true_residual;       /* ||b - A x|| for the x returned */
    spmv_status status;         /* of this right-hand side; SPMV_ERROR_ARGUMENT before the solve */
    /* "" before the solve; static storage */
    SPMV_RENAMED(const char *solver, const char *method);
    const char *rung;     /* the rung of cg, else ""; static storage */
    double setup_seconds; /* time of spmv_solver_create or of the last new values */
    double solve_seconds; /* time of this solve, of all right-hand sides */
    char precond[32];     /* name of the preconditioner */
    /* one sentence: why this solver */
    SPMV_RENAMED(char why_solver[160], char why_method[160]);
    char why_rung[160];    /* one sentence: why this rung */
    char why_precond[512]; /* one sentence: why this preconditioner */
    double error_estimate; /* as in spmv_cg_result */

    /* The largest component-wise backward error of a row of the x returned, or an upper bound of it
     * that is small enough, and that row, from 0; see spmv_solver_solve. Negative: not computed, since
     * there is no x. */
    double backward_error;
    int64_t backward_row;

    int64_t null_vectors; /* known null vectors of A: given and found; 0: none */
    double null_part;     /* the norm of the part of b along them; negative: not computed */

    /* with the option recycle: vectors that made the start, 0: the given one; and the norm of b - A x for the given x and
     * for the start, negative: not computed */
    int64_t recycled;
    double given_residual, start_residual;

    /* with the options estimate_error or accuracy: an estimate of ||x - A^-1 b|| / ||x||; see "Forward error" at
     * spmv_solver_solve. Negative: not estimated */
    double forward_error;
} spmv_solver_result;

/* Solves A x = b. Everything that spmv_cg says about x, its statuses, the true residual, restarts,
 * the callback, scaling, the check of symmetry (cg, minres, cocg) and aliasing holds here too, except
 * that after a failure x has no larger true residual than the start; at the option's limit of
 * iterations it may have one, as long as it is below 2^27 times as large. Solvers other than cg
 * solve several right-hand sides one after the other; so does cg if the matrix has less than 8 entries
 * per row (on cuda less than 16), without the options plan and rung, because that takes less time, but
 * on omp and cuda not with amg. More than 64 right-hand sides are solved in batches of about the same
 * size, without the option plan: the callback counts each batch from iteration 0. An iteration of
 * bicgstab has two products with A. On cuda, these solvers call the callback for 8 iterations at a time; after a
 * cancellation x may be up to 16 iterations further.
 *
 *   b       rows elements of the solver's type (rows times k for k right-hand sides)
 *   x       the same size: start and solution
 *   result  NULL, or k structs (one for one right-hand side) that are size bytes apart
 *   size    sizeof(spmv_solver_result)
 *
 * Backward error. At the end the solver computes, in one pass over A and in f64,
 *
 *     max_i |b - A x|_i / (|A| |x| + |b|)_i
 *
 * where a row whose denominator is at most 0.01 ||A_i||_1 ||x||_inf has the denominator (|A| |x|)_i
 * + ||A_i||_1 ||x||_inf instead, and a row without entries does not count. The first denominator is the
 * smaller one: where it suffices in all rows for what follows, the second is not computed, and
 * backward_error is that upper bound. If an x within the tolerance has more than
 * sqrt(max(tolerance / ||b||, unit roundoff)), some rows of A are much smaller than others and x is
 * wrong there. The solver then corrects x by solves with R A C, where R and C are powers of two that
 * make the largest entry of each row and column about 1 (R = C for a symmetric A); each is limited by
 * max_iterations. It keeps that solver until new values. own_precond is not used in it: "auto" is. If
 * the backward error stays too large: SPMV_ERROR_STAGNATION, with a message that names the row, and the
 * x with the smallest one. Callbacks count on; residuals are those of the correction. Source: M. Arioli,
 * J. W. Demmel, I. S. Duff, SIAM J. Matrix Anal. Appl. 10, 1989.
 *
 * Last digits. Where restarts no longer halve the true residual, though that of the recurrence has reached the tolerance,
 * and one right-hand side is solved for, A d = b - A x is solved from 0 to a quarter of the tolerance, and x becomes
 * x + d if that has a smaller residual. This counts as a restart; on_iterate is not called in it. Source: J. H. Wilkinson,
 * Rounding Errors in Algebraic Processes, 1963.
 *
 * Forward error. With the option estimate_error, a solve that succeeded is followed by one for the error itself: A d =
 * b - A x, by the same solver and preconditioner, until a tenth of b - A x is left, or a thousandth after at most 20
 * iterations for x without symmetry, with at most twice as many iterations as x needed. forward_error is ||d|| / ||x||
 * (Euclidean norms); negative if that solve did not end so, memory for it is short, or a norm is out of range. It is an
 * estimate, mostly within a factor of 2 (docs/solvers.md), not a bound: an error that hardly changes b - A x may stay
 * hidden. One such error is looked for: where the vector that is 1 in rows without a positive diagonal entry is almost a
 * null vector of A, as in an enclosed flow whose pressure is fixed at one point, d gets the part along it by another such
 * solve (real A; not by cg or direct, not on several ranks, not with known null vectors or corrected rows). x stays, and
 * iterations and callbacks do not count it. Of several right-hand sides, one such solve for a sum of all b - A x gives
 * one number for all, about the largest.
 *
 * With the option accuracy = D, x is corrected to x + d until forward_error is at most 10^-D: iterative refinement
 * with b - A x summed in twice the precision. d is solved for with the relative tolerance of x, at most 1e-3. Where
 * that does not halve the error, d is solved for with the square of it; then, if solver and preconditioner are both
 * "auto", by direct or gmres with ilut. If nothing helps: SPMV_ERROR_ACCURACY, and the message has the error reached.
 * Each correction counts as a restart, and its iterations count; callbacks do not see them. Source: N. J. Higham,
 * "Accuracy and Stability of Numerical Algorithms", 2nd ed., 2002, chapter 12.
 *
 * true_residual of f32 and c64 is summed in f64. Solvers stop by sums in their own type, so a
 * success may have a true_residual of up to twice the tolerance in these types.
 *
 * Singular matrices. If A is symmetric (cg, minres) and the entries of each row sum to 0 up to
 * rounding, or those of a connected component, the constant on it is a null vector. The options
 * null_space and null_block give others, for any symmetry. The part of b along the null vectors
 * (null_part) is split off, and the solver solves for the rest. If that part alone exceeds the
 * tolerance, the status is SPMV_ERROR_INCONSISTENT, and x is a least-squares solution to the
 * tolerance. x is orthogonal to the null vectors, so it has the smallest norm if they are all; only
 * corrections for the backward error may add a part. If given vectors are null vectors of A and not
 * of its adjoint, b is not split, only x. Null vectors are not found otherwise. minres then ends at a
 * least-squares solution if the residual is nearly a null vector (C. C. Paige, M. A. Saunders, SIAM
 * J. Numer. Anal. 12, 1975; S.-C. T. Choi, C. C. Paige, M. A. Saunders, SIAM J. Sci. Comput. 33,
 * 2011).
 *
 * Recycling. With the option recycle = m, the solver keeps the ways d = x - (given start) of the last m solves that
 * succeeded. The next solve begins at x + d, where d is in their span: with cg the one with the smallest error in the
 * energy norm, else the one with the smallest residual. A start whose residual is not smaller than that of the given x
 * is not taken. Tolerance, statuses and the true residual are those of any other solve, so x is as good as without;
 * given_residual and start_residual tell what it gained. It pays where solutions move smoothly (docs/solvers.md).
 *   - Cost: two products with A, and some 12 m passes over a vector.
 *   - Memory: 2 (m + 1) vectors from the first solve on, in the context's memory (spmv_solver_info.bytes). Where it is short,
 *     solves begin at the given x.
 *   - Several right-hand sides are solved one after the other, each for the next one.
 *   - After new values, the products of the ways with the A of their time stay, and the start is the combination whose
 *     products are nearest to b - A x: good if A changes slowly. From the first new values on that is so for all solves,
 *     with cg too, at three products with A and some 3 m passes. A' (spmv_solver_solve_operation) has a space of
 *     its own, unless A is symmetric.
 *   - Coefficients are real, also for complex types.
 * Source: P. F. Fischer, Comput. Methods Appl. Mech. Eng. 163, 1998; T. F. Chan, W. L. Wan, SIAM J. Sci. Comput. 18,
 * 1997.
 *
 * Errors: those of spmv_cg; SPMV_ERROR_BREAKDOWN (gmres, bicgstab, cocg: the solver cannot continue; the
 * message says why); SPMV_ERROR_ACCURACY; SPMV_ERROR_INCONSISTENT (A is singular or nearly so, and b has a part that no
 * x reaches; also direct with a matrix that is singular to rounding); SPMV_ERROR_BUSY (a solve with
 * this solver has not ended: the call is in its callback; x is unchanged); the status of
 * spmv_solver_update_values if that has failed.
 * Determinism: with the same start (and, with recycle, the same solves before) the same bits every time and, on omp, for
 * any number of threads.
 * Under "auto", a first solve may find the better preconditioner, with which later ones begin: they
 * have other bits than the first, and the same bits as each other. With the preconditioner "none"
 * the bits are those of spmv_cg with a plan for the same matrix and the same options. Several right-hand sides that
 * are solved one after the other have the bits of solves alone; direct solves up to 32 at once, with other bits. */
SPMV_API spmv_status spmv_solver_solve(spmv_solver *solver, const void *b, void *x, spmv_solver_result *result,
                                       size_t size);

/* Solves op(A) x = b: A x = b (SPMV_OPERATION_N), A' x = b (T) or A^H x = b (H), with the preconditioner or the factors
 * of A. Everything that spmv_solver_solve says holds, for op(A). No preconditioner is made a second time:
 *   - A symmetric (real) or Hermitian (H), as the solvers cg and minres need it: as spmv_solver_solve. So is T of a
 *     Hermitian A, with the conjugates of b and x.
 *   - A its own transpose, as the solver cocg needs it: T as spmv_solver_solve; H with the conjugates of b and x.
 *   - Otherwise the first call makes A^H and a plan for it (16 bytes a nonzero in f64), and the transposed application
 *     of the preconditioner (spmv_preconditioner_apply_transposed). The solver is that of the last solve, or the one
 *     that would begin. direct solves with the same factors, transposed.
 *   - If the solver and the preconditioner are both "auto", and this does not converge: a solver that chooses a
 *     preconditioner for A^H goes on from the x reached, counts on, and stays until new values. why_solver says so.
 *   - Null vectors of the options are used if A is symmetric only.
 * The results have the solver and the preconditioner that were used; setup_seconds is then the time to make A^H and what
 * it needs. New values (spmv_solver_update_values) release these.
 *
 *   operation     a spmv_operation
 *   b, x, result  as for spmv_solver_solve
 *
 * Errors: those of spmv_solver_solve; SPMV_ERROR_ARGUMENT (no such operation); SPMV_ERROR_UNSUPPORTED (A is not
 * symmetric, and own_precond has no apply_transposed or the solver is of a plan alone; on_iterate where conjugates are
 * solved: T of a complex A, H with cocg); those of spmv_matrix_transpose and spmv_plan_create.
 * Determinism: as for spmv_solver_solve. */
SPMV_API spmv_status spmv_solver_solve_operation(spmv_solver *solver, spmv_operation operation, const void *b, void *x,
                                                 spmv_solver_result *result, size_t size);

/* Solves op(A) X = B for `vectors` right-hand sides in place of the option vectors, with the preconditioner or the factors
 * that the solver has. Everything that spmv_solver_solve_operation says holds, with this number. direct applies its factors
 * to up to 32 right-hand sides at once, which takes up to five times less time than one by one (UMFPACK: no less);
 * the bits then depend on their number. cg solves together as many as the option vectors says. All others
 * solve one right-hand side after the other.
 *
 *   vectors  at least 1; 1 of a solver that was made for a plan
 *   b, x     rows times vectors elements, by rows: right-hand side v of row i is element i * vectors + v
 *   result   NULL, or `vectors` structs
 *
 * Errors: those of spmv_solver_solve_operation; SPMV_ERROR_ARGUMENT (vectors below 1), SPMV_ERROR_UNSUPPORTED (more than
 * 1 of a solver for a plan), SPMV_ERROR_MEMORY.
 * Determinism: the same bits every time and for any number of threads, for the same number of right-hand sides. */
SPMV_API spmv_status spmv_solver_solve_many(spmv_solver *solver, spmv_operation operation, int vectors, const void *b,
                                            void *x, spmv_solver_result *result, size_t size);

/* The determinant and the inertia of A, from the factors of the solver direct. */
typedef struct spmv_determinant {
    size_t size;    /* of this struct in bytes */
    double log_abs; /* log |det A|, natural; -INFINITY: det A = 0 */
    /* det A / |det A|: its real and imaginary part; of a real A 1 or -1, and 0. Both are 0 if det A = 0 */
    double phase[2];
    /* the eigenvalues above 0, below 0, and 0 to rounding, of a symmetric (real) or Hermitian A; -1: not known */
    int64_t positive, negative, zero;
} spmv_determinant;

/* Tells the determinant of A: det A = exp(log_abs) (phase[0] + i phase[1]), as numpy.linalg.slogdet. Nothing is computed:
 * it comes with the factors, in f64 or c128, and log_abs has an error of some rounding errors of the sum of |log| of all
 * pivots.
 *
 *   solver       one that has factors of its present values: direct by name; "auto", where it has taken direct (for at
 *                most 200 rows from the start, otherwise after the solve that found it)
 *   determinant  the result
 *   size         sizeof(spmv_determinant)
 *
 * Inertia is known of CHOLMOD (all are positive) and of MUMPS (real A). Determinants are known of all libraries but
 * cuDSS, which replaces small pivots.
 * Errors: SPMV_ERROR_ARGUMENT (NULL), SPMV_ERROR_UNSUPPORTED (there are no factors, or the library does not tell; the
 * inertia is then set all the same if it is known), the status of spmv_solver_update_values if that has failed. A matrix
 * that is exactly singular has no factors: spmv_solver_create returns SPMV_ERROR_SINGULAR.
 * Determinism: the same bits every time. */
SPMV_API spmv_status spmv_solver_determinant(const spmv_solver *solver, spmv_determinant *determinant, size_t size);

/* Replaces the values of the matrix. The sparsity pattern stays. The plan takes the new values; on
 * cuda the first call makes another plan, one that takes values, and releases the old one after it.
 * The preconditioner is made again; "auto" chooses again, unless a solve has found which one is
 * better. With update_values in precond_options, "amg" keeps its aggregates and patterns
 * (spmv_preconditioner_update_values) instead, which takes a third of the time and a quarter more memory: the
 * preconditioner is then not that of a new solver, and fits values best that are like the first ones. Waits; cannot
 * be captured.
 *
 *   values  nnz elements of the matrix's type in the context's memory, in the order of the matrix
 *           that the solver was made from. A solver made from host arrays copies them. Any other
 *           solver borrows this array in place of the old one. It may be the old array with new
 *           contents.
 *
 * Errors that change nothing: SPMV_ERROR_ARGUMENT (NULL), SPMV_ERROR_UNSUPPORTED (a pattern has no
 * values; the solver has a plan of the caller), SPMV_ERROR_CAPTURE, SPMV_ERROR_BUSY (a solve with
 * this solver has not ended). After any other error (those of spmv_solver_create), solves fail
 * with the same status until a call succeeds. */
SPMV_API spmv_status spmv_solver_update_values(spmv_solver *solver, const void *values);

/* Replaces the callbacks of the options, for the solves that follow.
 *
 *   on_iteration, on_iterate, user  as in spmv_solver_options
 *
 * Errors: SPMV_ERROR_ARGUMENT (NULL), SPMV_ERROR_BUSY (a solve with this solver has not ended). */
SPMV_API spmv_status spmv_solver_set_callbacks(spmv_solver *solver, spmv_cg_fn on_iteration, spmv_iterate_fn on_iterate,
                                               void *user);

/* The description of a solver. Strings and objects are valid until the solver is destroyed or gets
 * new values. */
typedef struct spmv_solver_info {
    size_t size; /* of this struct in bytes */
    /* a name of spmv_solver_name */
    SPMV_RENAMED(const char *solver, const char *method);
    const char *why; /* one sentence: why this solver was chosen */
    int64_t bytes;   /* memory that the solver owns, with plan and preconditioner */
    double seconds;  /* time of spmv_solver_create or of the last new values */
    spmv_plan *plan; /* for spmv_plan_describe and products with A */
    /* for spmv_preconditioner_describe: of the last solve, before one that of the first solve; NULL
     * after a failed spmv_solver_update_values */
    const spmv_preconditioner *precond;
} spmv_solver_info;

/* Describes a solver.
 *
 *   info  the result
 *   size  sizeof(spmv_solver_info)
 *
 * Errors: SPMV_ERROR_ARGUMENT (NULL). */
SPMV_API spmv_status spmv_solver_describe(const spmv_solver *solver, spmv_solver_info *info, size_t size);

/* Solves A x = b once: spmv_solver_create, spmv_solver_solve and spmv_solver_destroy. Where the
 * context's memory is host memory, it copies no array of A. The parameters are those of the three
 * functions, and so are the errors; with an error of spmv_solver_create, x is unchanged. */
SPMV_API spmv_status spmv_solve(spmv_context *ctx, const spmv_csr *a, const void *b, void *x,
                                const spmv_solver_options *options, spmv_solver_result *result, size_t size);

#ifndef SPMV_NO_OLD_NAMES
/* ---------------------------------------------------------------- old names, until 0.11
 * Deprecated: spmv_cg_rung_name and spmv_solver_name. Also the members method and why_method above,
 * whose names are rung (spmv_cg), solver and why_solver. */
SPMV_API const char *spmv_cg_method_name(spmv_backend backend, int index);
SPMV_API const char *spmv_solver_method_name(int index);
#endif

SPMV_END_DECLS

#endif

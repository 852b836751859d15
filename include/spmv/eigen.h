/* Eigenvalues and eigenvectors of symmetric (Hermitian) matrices, also with a mass matrix, and singular values.
 *
 *     double values[6];
 *     spmv_eigen_options options;
 *     spmv_eigen_result results[6];
 *     spmv_eigen_options_init(&options, sizeof options);
 *     options.pairs = 6;
 *     spmv_eigs(ctx, &a, &options, values, NULL, results, sizeof *results);    (a: spmv_csr, see matrix.h)
 *
 * docs/solvers.md says which solver is for which problem.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SPMV_EIGEN_H
#define SPMV_EIGEN_H

#include <spmv/preconditioner.h>

SPMV_BEGIN_DECLS

/* Which eigenvalues. */
typedef enum spmv_eigen_which {
    SPMV_EIGEN_SMALLEST = 0,  /* the smallest ones, by sign and size: -3 before 1 */
    SPMV_EIGEN_LARGEST = 1,   /* the largest ones: 1 before -3 */
    SPMV_EIGEN_MAGNITUDE = 2, /* those of largest modulus: -3 before 1 */
    SPMV_EIGEN_NEAR = 3       /* those nearest to the option shift */
} spmv_eigen_which;

/* A callback that is called after each iteration.
 *
 *   iteration  iterations done, from 0
 *   pairs      the number of pairs wanted
 *   values     their values so far, in the order of the result
 *   residuals  norms of their residuals, as the iteration has them; negative: not known yet
 *
 * It returns 0 to continue. Any other value stops the solve with SPMV_CANCELLED; the pairs are then those
 * reached. It may call the library on the context of the solve (context.h, Callbacks). */
typedef int (*spmv_eigen_fn)(int64_t iteration, int pairs, const double *values, const double *residuals, void *user);

typedef struct spmv_eigen_options {
    size_t size;  /* sizeof(spmv_eigen_options), set by spmv_eigen_options_init */
    int pairs;    /* how many, from 1 to SPMV_EIGEN_MOST_PAIRS and to the rows; default 6 */
    int which;    /* a spmv_eigen_which; default SPMV_EIGEN_SMALLEST */
    double shift; /* with SPMV_EIGEN_NEAR; default 0 */

    /* M of A x = lambda M x: symmetric positive definite, of the size and type of A, in either memory. Default
     * NULL: the identity. */
    const spmv_csr *mass;

    /* A name of spmv_eigen_name. Default NULL or "auto". */
    const char *solver;

    /* lobpcg: the name of a preconditioner for A (spmv_preconditioner_name), symmetric positive definite. Default
     * NULL or "auto": amg where that can be made, else what cg would take. */
    const char *precond;
    const spmv_preconditioner_options *precond_options; /* as in spmv_solver_options; default NULL: defaults */

    /* A preconditioner in place of these; as in spmv_solver_options. Default NULL: none is given. */
    spmv_preconditioner *own_precond;

    /* The type of the vectors, as in spmv_plan_options. Default: the type of the matrix, f64 for a pattern. */
    spmv_type type;

    double rtol;            /* tolerance of residuals relative to the value; default 0: 1e-8, in f32 and c64 1e-4 */
    int64_t max_iterations; /* default 0: 1000 */
    int block;              /* vectors of a block; default 0: chosen (spmv_eigs). lobpcg: at least pairs */

    /* Start vectors: element i of vector j is start[i * starts + j], of the type, in the context's memory. More
     * are made up from fixed pseudo-random numbers. Default NULL and 0: all are. */
    const void *start;
    int starts;

    int symmetry_check;         /* a spmv_symmetry_check (solvers.h); default SPMV_SYMMETRY_SAMPLED (1) */
    spmv_eigen_fn on_iteration; /* callback; default NULL: none */
    void *user;                 /* passed to on_iteration; default NULL */
} spmv_eigen_options;

enum { SPMV_EIGEN_MOST_PAIRS = 256 };

/* Fills options with the defaults. size: sizeof(spmv_eigen_options). */
SPMV_API void spmv_eigen_options_init(spmv_eigen_options *options, size_t size);

/* The names of the solvers; NULL after the last. Static storage.
 *
 *   name     for                                      source
 *   -------  ---------------------------------------  ---------------------------------------------------
 *   lobpcg   the smallest, with a preconditioner      A. V. Knyazev, SIAM J. Sci. Comput. 23, 2001; basis:
 *                                                     U. Hetmaniuk, R. Lehoucq, J. Comput. Phys. 218, 2006;
 *                                                     J. A. Duersch, M. Shao, C. Yang, M. Gu, SIAM J. Sci.
 *                                                     Comput. 40, 2018
 *   lanczos  the largest, those of largest modulus,   K. Wu, H. Simon, SIAM J. Matrix Anal. Appl. 22, 2000;
 *            those near a shift; the smallest of an   blocks: Y. Zhou, Y. Saad, Numer. Algorithms 47, 2008
 *            indefinite A
 *   dense    small matrices: all eigenvalues on the   G. H. Golub, C. F. Van Loan, "Matrix Computations", 4th
 *            host, in f64 or c128                     ed., 2013, section 8.3 */
SPMV_API const char *spmv_eigen_name(int index);

/* What is known of a pair. */
typedef struct spmv_eigen_result {
    size_t size;        /* of this struct in bytes */
    double value;       /* lambda = x'A x with x'M x = 1 */
    double residual;    /* ||A x - lambda M x|| in the norm of M^-1, computed from the x returned */
    double tolerance;   /* of the residual */
    double error_bound; /* an eigenvalue is within this distance: the residual and the rounding of computing it */

    /* The same for values that are apart from the others: residual^2 / gap, by Kato and Temple, where gap is the distance
     * to the nearest other value computed, less its own error bound. It holds if no eigenvalue was missed there. If a
     * pair has not converged, it is error_bound. Never
     * above error_bound, and equal to it where values are too near to each other. */
    double separated_bound;

    spmv_status status; /* of this pair; SPMV_ERROR_ARGUMENT before the solve */

    /* The same for all pairs of a solve. */
    int64_t iterations;
    int64_t products;      /* vectors multiplied by A */
    int block;             /* vectors of a block */
    const char *solver;    /* "" before the solve; static storage */
    double setup_seconds;  /* plans, preconditioner, factors */
    double solve_seconds;  /* the rest */
    char precond[32];      /* "" where none is used */
    char why_solver[160];  /* one sentence: why this solver */
    char why_precond[256]; /* one sentence: why this preconditioner; "" */
    char why_stop[256];    /* one sentence: why the solve stopped */
} spmv_eigen_result;

/* Finds eigenvalues lambda and eigenvectors x of
 *
 *     A x = lambda x,  or  A x = lambda M x with a mass matrix M        x_i' M x_j = 1 for i = j, else 0
 *
 *   a        symmetric or Hermitian, of any type of values but the 16-bit ones, in either memory; not changed
 *   options  NULL means defaults
 *   values   `pairs` numbers in host memory, in the order of `which`: ascending with SMALLEST, descending with LARGEST,
 *            descending moduli with MAGNITUDE, ascending distances with NEAR; NULL: not wanted
 *   vectors  rows times pairs elements of the type in the context's memory: element i of vector j at
 *            [i * pairs + j]; NULL: not wanted
 *   results  NULL, or `pairs` structs that are size bytes apart
 *   size     sizeof(spmv_eigen_result)
 *
 * A pair has converged if
 *
 *     residual <= max(rtol |lambda|, 64 u ||A||)      u: the unit roundoff; ||A||: the largest row sum of |A| |M|^-1
 *
 * The second term is the rounding of A x itself: the value 0 of a singular matrix has no relative accuracy.
 *
 * lobpcg iterates with more vectors than pairs (block), so that values of any multiplicity are found, and the last
 * pair converges although others are near to it. Vectors that have converged stay in the basis, without new
 * directions. If A is singular and positive semidefinite, "amg" is made of it as it is, "jacobi" if that has one level.
 * lanczos works with a block of as many vectors as pairs, 4 to 32, keeps the best vectors at a restart, and orthogonalises against all.
 * When all pairs have converged, it goes on for half as many steps with as many new random vectors: a value of a higher
 * multiplicity than the block shows then, and the search goes on. With a mass matrix, it solves with M in each step; with
 * SPMV_EIGEN_NEAR with A - shift M (shift-invert: T. Ericsson, A. Ruhe, Math. Comp. 35, 1980), by the solver "auto" of
 * solvers.h to a smaller tolerance. A shift that is an eigenvalue, or so near to one that
 * solves fail, is moved for the solves, by 1e-5 or 1e-3 of it: why_solver says so.
 *
 * Returns one of the following, with values, vectors and results filled:
 *   SPMV_OK                    All pairs have converged.
 *   SPMV_ERROR_ITERATIONS      The limit of iterations. Pairs have their own status.
 *   SPMV_ERROR_STAGNATION      Residuals no longer fall: rounding, or too exacting a tolerance.
 *   SPMV_CANCELLED             Cancelled by the callback or the context.
 * Errors without a result: SPMV_ERROR_NOT_SQUARE, SPMV_ERROR_NOT_SYMMETRIC (A or M; the message says which),
 * SPMV_ERROR_NOT_POSITIVE (M is not positive definite; or the preconditioner named needs a positive definite A),
 * SPMV_ERROR_SINGULAR (solves with a moved shift fail too), SPMV_ERROR_ARGUMENT (an option out of its range; pairs
 * above the rows), SPMV_ERROR_SIZE (M has another size), SPMV_ERROR_TYPE, SPMV_ERROR_METHOD (no such solver),
 * SPMV_ERROR_UNSUPPORTED (a solver that cannot do this; the message says what to take), SPMV_ERROR_NOT_FINITE,
 * SPMV_ERROR_MEMORY, those of spmv_plan_create, spmv_preconditioner_create and spmv_solver_solve.
 *
 * Determinism: the same bits every run and, on omp, for any number of threads. The sign (phase) of a vector is that of its
 * computation. Aliasing: vectors overlaps nothing.
 *
 * Memory: lobpcg 6 blocks of vectors (9 with M), lanczos its basis and 2 blocks, and the preconditioner. */
SPMV_API spmv_status spmv_eigs(spmv_context *ctx, const spmv_csr *a, const spmv_eigen_options *options, double *values,
                               void *vectors, spmv_eigen_result *results, size_t size);

/* Finds the largest singular values sigma of any A, and singular vectors: A v = sigma u, A'u = sigma v.
 *
 *   a        of any size, as for spmv_eigs
 *   options  pairs (up to the smaller size of A), type, rtol, max_iterations, block, on_iteration and user count; start has
 *            vectors of the smaller size; which must be SPMV_EIGEN_LARGEST or SPMV_EIGEN_MAGNITUDE, which mean the same.
 *            NULL means defaults.
 *   values   `pairs` numbers in host memory, descending
 *   u, v     rows times pairs and cols times pairs elements, in the context's memory, as vectors of spmv_eigs; NULL: not
 *            wanted
 *   results  as for spmv_eigs: value is sigma, residual the norm of A'u - sigma v (or A v - sigma u if A is wide), where the
 *            other product is exact up to rounding; tolerance max(rtol sigma, 64 u ||A||)
 *
 * By lanczos with A'A or AA', whichever is smaller; small ones by dense. Singular values below sqrt(u) times the largest are
 * lost in rounding; where that makes one 0, its vector of the larger size is 0. Errors and determinism: as for spmv_eigs. Smallest singular values: SPMV_ERROR_UNSUPPORTED; take
 * spmv_estimate_singular_values (least_squares.h). */
SPMV_API spmv_status spmv_svds(spmv_context *ctx, const spmv_csr *a, const spmv_eigen_options *options, double *values,
                               void *u, void *v, spmv_eigen_result *results, size_t size);

SPMV_END_DECLS

#endif

/* Eigenvalue problems: what the files of the solvers share.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef EIGEN_INTERNAL_H
#define EIGEN_INTERNAL_H

#include <spmv/eigen.h>
#include <spmv/solvers.h>

#include "formats/matrix_internal.h"
#include "solvers/eigen/eigen_passes.h"
#include "solvers/eigen/eigen_small.h"
#include "solvers/precond/precond_internal.h"

/* A plan for `columns` vectors whose rows are these strides apart. */
struct eigen_plan {
    spmv_plan *plan;
    int columns;
    int64_t x_stride, y_stride;
};
enum { EIGEN_PLANS = 96 };

/* A matrix and its plans. */
struct eigen_matrix {
    spmv_csr a; /* in the context's memory; a.row_ptr NULL: the identity */
    struct csr_copies copies;
    spmv_operation operation;
    double norm; /* the largest row sum of moduli; with a mass matrix divided by its diagonal */
    struct eigen_plan plans[EIGEN_PLANS];
    int count;
};

struct eigen_problem;

struct eigen_solver {
    const char *name;
    spmv_status (*run)(struct eigen_problem *p);
};

struct eigen_problem {
    spmv_context *ctx;
    const char *call;
    const struct eigen_solver *solver;
    spmv_eigen_options options;
    spmv_type type;
    int parts; /* real numbers of a number */
    int64_t n; /* rows of vectors */
    int pairs;
    double unit; /* roundoff of the type */
    struct eigen_matrix a, mass;
    bool has_mass;
    struct eigen_matrix adjoint; /* singular values: products with A'; a is A */
    bool singular_values, wide;  /* wide: vectors are those of rows, u */
    double rtol;
    void *weight; /* 1 / the diagonal of M, one real number a row; NULL: no mass */
    /* The norm of N^-1, where N is M scaled to a diagonal of ones; estimated with the first true residuals. 0 before */
    double mass_growth;

    /* lobpcg. hands_over: A has a negative eigenvalue, and lanczos is to go on, since nothing was named */
    bool may_hand_over, hands_over;
    spmv_preconditioner *precond; /* NULL: none */
    spmv_preconditioner *made;    /* to be destroyed */

    /* lanczos: solves with A - shift M, or with M. shift: that of the options, moved where solves with it fail */
    spmv_solver *inverse;
    double shift;
    bool shift_failed;

    /* results: host memory */
    double *values;    /* pairs */
    double *residuals; /* pairs; of the iteration, then true ones */
    double *sizes;     /* pairs: sqrt(x'D x), D the diagonal of M; 1 without mass */
    double *shifts;    /* pairs: x'A x / x'M x less the value; 0 without mass */
    double next;       /* the nearest value beyond those wanted, or NaN */
    double next_residual;
    struct eigen_block vectors; /* pairs vectors, the caller's, or own_vectors */
    void *own_vectors;
    spmv_status status; /* why the iteration ended: SPMV_OK: all have converged */
    int64_t iterations, products;
    int block;
    double setup_seconds;
    char why_solver[160], why_precond[256], why_stop[256];
};

/* ------------------------------------------------------------- eigen_operator.c */

/* to = A from, to = M from. Queued. */
spmv_status eigen_multiply(struct eigen_problem *p, struct eigen_matrix *m, struct eigen_block from,
                           struct eigen_block to);

/* Takes a matrix of the caller, and finds its norm: the largest row sum of moduli, each times its weight (NULL: 1). */
spmv_status eigen_matrix_take(struct eigen_problem *p, const spmv_csr *a, spmv_operation operation,
                              const double *weight, struct eigen_matrix *to);
void eigen_matrix_drop(spmv_context *ctx, struct eigen_matrix *m);

/* Sets p->precond. */
spmv_status eigen_make_precond(struct eigen_problem *p);

/* The solver of lanczos: p->inverse, in place of the one before. */
spmv_status eigen_make_inverse(struct eigen_problem *p);

/* w = T r of the columns of the residuals; sizes: powers of two near their norms. */
struct eigen_preconditioning {
    struct precond_columns columns;
    int opened;     /* columns; 0: not open */
    void *in, *out; /* where it takes one vector after the other */
    int64_t bytes;
};
spmv_status eigen_precondition(struct eigen_problem *p, const struct eigen_vectors *v, struct eigen_preconditioning *t,
                               const struct block_residuals *r, const double *sizes, struct eigen_block w);
void eigen_preconditioning_close(struct eigen_problem *p, struct eigen_preconditioning *t);

/* Calls the callback with p->values and p->residuals. SPMV_CANCELLED. */
spmv_status eigen_report(struct eigen_problem *p, int64_t iteration);

/* The tolerance of a residual. */
double eigen_tolerance(const struct eigen_problem *p, double value);

/* Residual norms of the `pairs` first columns of x in the norm of M^-1, to p->residuals, with p->values; ax = A x, mx = M x.
 * With a mass matrix, by solves with it. Waits. */
spmv_status eigen_true_residuals(struct eigen_problem *p, const struct eigen_vectors *v, struct eigen_block ax,
                                 struct eigen_block mx);

/* Makes the columns of x orthonormal, in the inner product of M if there is one (then mx = M x afterwards). Columns that
 * depend on others become fixed random ones. Waits. */
spmv_status eigen_orthonormalise(struct eigen_problem *p, const struct eigen_vectors *v, struct eigen_block x,
                                 struct eigen_block mx);

/* How far a value is from the first one wanted, and the order by it for qsort. */
double eigen_rank(const struct eigen_problem *p, double value);
struct eigen_ranked {
    double rank;
    int at;
};
int eigen_by_rank(const void *a, const void *b);

/* Columns of the basis of lanczos, and of its blocks. */
int eigen_lanczos_columns(int pairs, int width);
int eigen_lanczos_width(const struct eigen_problem *p);

extern const struct eigen_solver eigen_lobpcg, eigen_lanczos, eigen_dense;

#endif

/* A solver of the rows that one of several ranks has. All ranks make it together and solve together: they see
 * the same sums, so they choose the same solvers and take the same steps. distributed/ has the functions
 * that need the rows of others.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SOLVER_RANKS_H
#define SOLVER_RANKS_H

#include <spmv/primitives.h>
#include <spmv/solvers.h>

#include "product/plan_internal.h"
#include "solvers/krylov/krylov.h"
#include "solvers/precond/precond_internal.h"

struct direct;
struct solver_ranks;

/* This rank's part of another matrix: its plan, what a solver of it asks, and a vector with room for its x. */
struct scaled_part {
    spmv_plan *plan;
    const struct solver_ranks *ranks;
    void *x;
};

/* All functions are called together, and fail on all ranks. */
struct solver_ranks {
    void *self;

    /* SPMV_OK if that is the status of all ranks. Each has its own message, or that of the one that failed. */
    spmv_status (*agree)(void *self, spmv_status status);

    /* Whether "auto" may take this one. Not together. */
    bool (*has)(void *self, enum precond_for purpose, const char *name);

    /* Makes the preconditioner of this name, or for "auto" one for the purpose. negative: of -A. chosen: the
     * caller has not named it. */
    spmv_status (*precond)(void *self, enum precond_for purpose, const char *name, bool negative, bool chosen,
                           const spmv_preconditioner_options *options, spmv_preconditioner **made);

    /* Dense factors of the whole matrix, which is small (direct_create_dense), on each rank alike. */
    spmv_status (*dense)(void *self, struct direct **direct);

    /* The smallest or the largest (SPMV_MIN, SPMV_MAX) diagonal entry of the whole matrix, which is real. */
    spmv_status (*extreme)(void *self, spmv_op which, double *extreme);

    /* A plan for -A, whose vectors have the same room. It belongs to self. */
    spmv_status (*negative)(void *self, spmv_plan **plan);

    /* R A C, in the type of the vectors: powers of two that make the largest entry of each row and column about 1. row,
     * col: their exponents of own rows and columns. It belongs to self, and the next one replaces it. */
    spmv_status (*scaled)(void *self, int *row, int *col, struct scaled_part *part);
};

/* As spmv_solver_create, of a plan for the rows of one rank. Several right-hand sides, inner iterations, the
 * solver direct and own preconditioners are not supported. x of a solve has room for the elements of other
 * ranks, as a vector that the plan multiplies. ranks must outlive the solver. */
spmv_status solver_create_for_rank(spmv_plan *plan, const struct solver_ranks *ranks,
                                   const spmv_solver_options *options, spmv_solver **solver);

/* What conjugate gradients have found for several right-hand sides at once: for each what the first run of a solve alone
 * would have found. */
struct solver_ahead {
    int columns;
    bool *known; /* else the run is to be made */
    spmv_cg_result *result;
    struct krylov_note *note;
    double *residuals; /* of note */
    const void *x;     /* by rows */
    const spmv_preconditioner *precond;
};

/* Together: *runs: whether conjugate gradients can make the first run of so many solves at once, by a plan for several
 * vectors, and whether that pays. */
spmv_status solver_runs_ahead(spmv_solver *solver, int solves, bool *runs);

/* Memory for that, and what the preconditioner needs, so that ranks can agree whether all have it. */
spmv_status solver_open_ahead(const spmv_solver *solver, int solves, struct solver_ahead *ahead);
void solver_close_ahead(struct solver_ahead *ahead); /* also of one that was not opened: all bits 0 */

/* Together: makes the run, from x, which has room as the plan needs it, for the plan's vectors. */
spmv_status solver_run_ahead(spmv_solver *solver, spmv_plan *plan, const void *b, void *x, struct solver_ahead *ahead);

/* The next solve for one right-hand side, number v of these, with the same start, takes this in place of its first run.
 * NULL: none. */
void solver_take_ahead(spmv_solver *solver, const struct solver_ahead *ahead, int v);

/* After new values of the matrix: chooses and makes everything again. plan: of the same rows; that of before
 * may be destroyed already. After a failure solves fail with it. */
spmv_status solver_renew_for_rank(spmv_solver *solver, spmv_plan *plan);

/* Makes the named preconditioner of a matrix that need not be symmetric, for gmres and bicgstab. */
spmv_status solver_make_unsymmetric(spmv_context *ctx, const char *name, const spmv_csr *a,
                                    const spmv_preconditioner_options *options, spmv_preconditioner **made);

/* The preconditioner of this name for the purpose; for "auto" the one that a solver takes. real: a is no
 * equivalent of a complex matrix. */
spmv_status solver_make_for(spmv_context *ctx, enum precond_for purpose, const char *name, const spmv_csr *a, bool real,
                            const spmv_preconditioner_options *options, spmv_preconditioner **made);

/* The real matrix that does to real and imaginary parts what a complex one does, in host memory. */
struct equivalent {
    spmv_csr a;
    int64_t *row_ptr;
    int32_t *col;
    void *val;
    struct csr_copies copies; /* of the complex matrix, if that is on a GPU */
};
spmv_status equivalent_make(spmv_context *ctx, const spmv_csr *a, struct equivalent *e);
void equivalent_free(struct equivalent *e);

#endif

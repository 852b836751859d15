/* The inside of conjugate gradients: the interface between the front (cg.c) and the rungs, and the
 * table of rungs.
 *
 * A rung is one way to run the recurrence: one file with its functions, and one row in the table in
 * cg.c, which states its backends and its numbers of right-hand sides. What is outside the
 * recurrence is the same for every rung and method: krylov.c.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef CG_INTERNAL_H
#define CG_INTERNAL_H

#include <math.h>

#include "solvers/cg/cg_error.h"
#include "solvers/krylov/krylov.h"

/* The recurrence of one right-hand side: the last values of r'r, p'Ap, r'M^-1 r. error: all 0 in
 * rungs that do not maintain it. */
struct cg_column {
    double rr, pq, rz, alpha, beta;
    struct cg_error error;
};

struct cg_rung;

/* One solve. */
struct cg {
    struct krylov s;            /* must be first: a pointer to one is a pointer to the other */
    const struct cg_rung *rung; /* the rung */
    void *p;                    /* the direction; q = A p is in s */
    struct cg_column *column;
    /* start from r and p of the run before: r becomes b - A x, and p changes by the change of M^-1
     * r */
    bool continues;
    bool keeps;  /* another run continues: keep r and p at the end */
    void *state; /* private to the rung */
};

enum { CG_ANY_COLUMNS = INT_MAX };

struct cg_rung {
    const char *name;
    const char *why;                 /* one sentence, for solves where "auto" takes the rung */
    unsigned backends;               /* the backends: bits 1 << SPMV_BACKEND_... */
    int least_columns, most_columns; /* numbers of right-hand sides */
    bool measures;                   /* as in struct krylov */

    /* Returns SPMV_OK, or SPMV_ERROR_UNSUPPORTED with the reason (size, type, preconditioner, the
     * plan's method). NULL: supports every solve. */
    spmv_status (*supports)(const struct cg *);

    /* Allocates the rung's workspace into state, once for each solve. Nothing is allocated
     * later. */
    spmv_status (*prepare)(struct cg *);

    /* Runs the recurrence, see run in struct krylov. r = b - A x and start_x are set unless the
     * rung measures. Sets each column and cg->column. Calls krylov_tell after each iteration, and
     * for iteration 0 unless an earlier run has. */
    spmv_status (*run)(struct cg *);

    /* Releases what state points to. Called if state is not NULL; it may be partly built. */
    void (*release)(struct cg *);

    /* x of one right-hand side is the iterate that krylov_tell reports, for on_iterate */
    bool shows_x;

    bool for_ranks; /* also for a plan of one of several ranks */
};

/* The rows of the table. Rows of the same name are one rung, for one right-hand side and for
 * several. */
extern const struct cg_rung cg_textbook, cg_textbook_columns;
extern const struct cg_rung cg_fused_omp, cg_fused_with_columns;
extern const struct cg_rung cg_fused_cuda, cg_fused_columns_cuda;
extern const struct cg_rung cg_graph, cg_graph_columns;
extern const struct cg_rung cg_persistent_cuda;

/* Not in the table: runs another rung in f32, for the option inner. */
extern const struct cg_rung cg_inner;

/* Checks the name of a rung for one right-hand side; what: "rung" in the words of the caller. */
spmv_status cg_check_rung(spmv_context *ctx, const char *caller, const char *what, const char *name);

/* Chooses the rung and allocates its workspace; the arguments, info and result must be set.
 * cg_close is required even after a failure. */
spmv_status cg_open(struct cg *cg);
void cg_close(struct cg *cg);

/* One run of the rung: the member run of a solve. */
spmv_status cg_run(struct krylov *s);

/* q = A p, *pq = p'q, for one right-hand side; with complex vectors Re p'q, and p'A p is real. */
spmv_status cg_multiply(const struct cg *cg, const void *p, void *q, void *pq);

/* z = M^-1 r */
spmv_status cg_precondition(const struct cg *cg, const void *r, void *z);

/* A positive definite A with condition number k bounds the growth of the residual by sqrt(k), which is
 * below this number, unless A is singular to rounding. */
#define CG_MOST_GROWTH 0x1p27

static inline bool cg_has_diverged(const struct krylov_column *c)
{
    return c->residual > CG_MOST_GROWTH * c->start_residual;
}

/* Whether the sums forbid another step. */
static inline bool cg_is_broken(const struct cg_column *c)
{
    return !isfinite(c->rr) || !isfinite(c->rz) || !isfinite(c->pq) || c->rz <= 0 || c->pq <= 0;
}

/* For rungs whose host reads the sums of each step: notes those of column v. stepped: after a step;
 * otherwise a run starts from them. */
static inline void cg_take_sums(const struct cg *cg, int v, double rr, double pq, double rz, bool stepped)
{
    struct cg_column *c = &cg->column[v];
    struct krylov_column *column = &cg->s.column[v];
    column->residual = sqrt(rr);
    if (stepped) {
        cg_error_step(&c->error, c->rz, c->pq, rz);
    } else {
        cg_error_begin(&c->error);
        column->start_residual = column->residual;
        column->enough = krylov_enough(cg->s.type, column);
    }
    c->rr = rr;
    c->pq = pq;
    c->rz = rz;
}

/* Whether a running column makes another step. If not, sets its stop. */
static inline bool cg_goes_on(const struct cg *cg, int v)
{
    struct krylov_column *c = &cg->s.column[v];
    if (isfinite(c->residual) && c->residual <= c->enough)
        c->stop = COLUMN_DONE;
    else if (cg_is_broken(&cg->column[v]) || cg_has_diverged(c))
        c->stop = COLUMN_BROKEN;
    else if (c->iterations >= c->limit)
        c->stop = COLUMN_LIMIT;
    return c->stop == COLUMN_RUNS;
}

static inline bool cg_runs(const struct cg *cg, int v)
{
    return cg->s.column[v].stop == COLUMN_RUNS;
}

/* Stops the columns that make no further step. Returns whether others run. */
static inline bool cg_any_goes_on(const struct cg *cg)
{
    bool any = false;
    for (int v = 0; v < cg->s.columns; v++)
        if (cg_runs(cg, v) && cg_goes_on(cg, v))
            any = true;
    return any;
}

#endif

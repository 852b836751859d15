/* The inside of conjugate gradients: what the front (cg.c) and the rungs share, and the table of rungs.
 *
 * A rung is one way to run the recurrence: one file with its functions, one row in the table in cg.c, which says for
 * which backends and how many right-hand sides it is. Everything around the recurrence is the same for every rung and
 * does not depend on the method: krylov.c.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef CG_INTERNAL_H
#define CG_INTERNAL_H

#include <math.h>

#include "krylov.h"

/* The recurrence of one right-hand side: r'r, p'Ap, r'M^-1 r, as last read. */
struct cg_column {
    double rr, pq, rz, alpha, beta;
};

struct cg_method;

/* One solve. */
struct cg {
    struct krylov s; /* first: a pointer to one is a pointer to the other */
    const struct cg_method *method;
    const char *rung; /* the one asked for by name; NULL or "auto": any */
    spmv_plan *inner; /* the option of that name */
    void *p;          /* the direction; q = A p is in s */
    struct cg_column *column;
    bool continues; /* start from r and p of the run before: r becomes b - A x, p moves as M^-1 r does */
    bool keeps;     /* another run continues: r and p are left as they are when it stops */
    void *state;    /* the rung's own */
};

enum { CG_ANY_COLUMNS = INT_MAX };

struct cg_method {
    const char *name;
    const char *why;                 /* one sentence: when auto takes it */
    unsigned backends;               /* 1 << SPMV_BACKEND_...: where it exists */
    int least_columns, most_columns; /* right-hand sides */
    bool measures;                   /* as in struct krylov */

    /* SPMV_OK, or SPMV_ERROR_UNSUPPORTED with the sentence why not (size, type, preconditioner, the plan's method). */
    spmv_status (*supports)(const struct cg *);

    /* Allocates what the rung needs beyond the vectors, into state, once a solve; nothing is allocated later. */
    spmv_status (*prepare)(struct cg *);

    /* The recurrence, as run in struct krylov, from r = b - A x and start_x, which are set unless the rung measures.
     * Sets each column and cg->column. Calls krylov_tell for iteration 0, unless an earlier run has, and after each. */
    spmv_status (*run)(struct cg *);

    /* Releases state, which may be half built or NULL. */
    void (*release)(struct cg *);
};

/* The table. Rows of one name are one rung, for one right-hand side and for several. */
extern const struct cg_method cg_textbook;
extern const struct cg_method cg_fused_omp;
extern const struct cg_method cg_fused_cuda, cg_fused_columns_cuda;
extern const struct cg_method cg_graph, cg_graph_columns;
extern const struct cg_method cg_persistent_cuda;

/* Not in the table: runs another one in f32, where there is the option inner. */
extern const struct cg_method cg_inner;

/* Chooses the rung and allocates its workspace, given the arguments, info and result; what is there is released even
 * after a failure. */
spmv_status cg_open(struct cg *cg);
void cg_close(struct cg *cg);

/* One run of the rung: s->run of a solve. */
spmv_status cg_run(struct krylov *s);

/* z = M^-1 r */
spmv_status cg_precondition(const struct cg *cg, const void *r, void *z);

/* What forbids another step. */
static inline bool cg_is_broken(const struct cg_column *c)
{
    return !isfinite(c->rr) || !isfinite(c->rz) || !isfinite(c->pq) || c->rz <= 0 || c->pq <= 0;
}

/* The option SPMV_SYMMETRY_SAMPLED, given ctx, plan and info: looks once for each set of values of the plan
 * (cg_symmetry.c). */
spmv_status cg_check_symmetry(const struct cg *cg);

#endif

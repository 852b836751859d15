/* The inside of a solver (solver.c), the choice of its method (solver_choose.c), its preconditioners
 * (solver_precond.c) and a solve (solver_solve.c).
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SOLVER_INTERNAL_H
#define SOLVER_INTERNAL_H

#include "backend.h"
#include "cg_internal.h"
#include "direct.h"
#include "krylov_general.h"
#include "plan_internal.h"
#include "precond_internal.h"

enum { SOLVER_RUNG = 32, SOLVER_SENTENCE = 160, SOLVER_RESORTS = 2 };

struct spmv_solver {
    spmv_context *ctx;
    spmv_solver_options options; /* strings and structs that it points to are in this struct */
    spmv_preconditioner_options precond_options;
    char precond_name[PRECOND_NAME], rung[SOLVER_RUNG];
    const struct general_method *method; /* NULL: conjugate gradients */
    bool free;                           /* the method was chosen, and may change */
    char why[SOLVER_SENTENCE];           /* of the method */
    spmv_csr a, narrow;                  /* in the context's memory; narrow: values in f32, for inner */
    /* what the solver owns of a and narrow */
    void *row_ptr, *col, *val, *narrow_val;
    int64_t bytes; /* of these */
    spmv_plan *plan, *inner;
    bool plans_update; /* the plans can take new values */
    bool borrows_plan;
    struct direct *direct;
    spmv_preconditioner *precond;              /* NULL: could not be made */
    spmv_preconditioner *ilut[SOLVER_RESORTS]; /* made when others fail; NULL: not made yet */
    struct object_use use;                     /* by a solve */
    spmv_status failed;                        /* why precond or direct could not be made, and the message */
    char sentence[512];
    double seconds;

    /* the last solve: its method and preconditioner, which may not be the first ones */
    const struct general_method *used;
    const spmv_preconditioner *used_precond;
    char why_used[SOLVER_SENTENCE];
    spmv_cg_result *results; /* one per right-hand side */
};

/* "cg" for NULL */
const char *solver_method_name(const struct general_method *method);

static inline bool solver_is_auto(const char *name)
{
    return name == NULL || strcmp(name, "auto") == 0;
}

/* Chooses the method, for the option "auto": sets s->method and s->why. The plan exists. */
spmv_status solver_choose_method(spmv_solver *s);

/* Makes a preconditioner for the method from the present values, in the type of the recurrence.
 * name: of a kind, or "auto". */
spmv_status solver_make_precond(spmv_solver *s, const struct general_method *method, const char *name,
                                spmv_preconditioner **made);

/* Solves for all right-hand sides; the context is held. Sets the results and what was used. */
spmv_status solver_solve_held(spmv_solver *s, const void *b, void *x);

#endif

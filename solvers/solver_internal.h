/* The inside of a solver (solver.c): its solvers and their choice (solver_choose.c), the system
 * that is solved (solver_system.c), its preconditioner (solver_precond.c), a solve (solver_solve.c),
 * the check of its result (solver_accuracy.c, solver_forward_error.c), and the adjoint (solver_adjoint.c).
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SOLVER_INTERNAL_H
#define SOLVER_INTERNAL_H

#include "core/backend.h"
#include "product/plan_internal.h"
#include "solvers/accuracy/backward_error.h"
#include "solvers/cg/cg_internal.h"
#include "solvers/direct/direct.h"
#include "solvers/krylov/krylov_loop.h"
#include "solvers/precond/precond_internal.h"
#include "solvers/prepare/null_space.h"
#include "solvers/solver_race.h"
#include "solvers/solver_ranks.h"
#include "solvers/solver_recycle.h"

enum {
    SOLVER_RUNG = 32,
    SOLVER_SENTENCE = 160,
    SOLVER_RESORTS = 2,
    SOLVER_OTHERS = 2 /* beside the first two of a race */
};

struct spmv_solver {
    spmv_context *ctx;
    spmv_solver_options options; /* strings and structs that it points to are in this struct */
    spmv_preconditioner_options precond_options;
    char precond_name[PRECOND_NAME], rung[SOLVER_RUNG];
    const struct krylov_solver *solver; /* the first of a solve */
    bool free;                          /* the solver was chosen, and may change */
    bool symmetric;                     /* A is taken as symmetric, of complex types Hermitian */
    bool own_transpose;                 /* A is taken as A': for cocg */
    char why[SOLVER_SENTENCE];          /* of the solver */
    spmv_csr a, narrow;                 /* in the context's memory; narrow: values in f32, for inner */
    /* what the solver owns of a and narrow */
    struct csr_copies copies;
    void *narrow_val;
    int32_t *fields; /* copies of options of schur; NULL: not given */
    spmv_matrix *schur;
    spmv_csr schur_view;
    void *modes;   /* near-null-space vectors made from the option coordinates; NULL: none */
    int64_t bytes; /* of these */
    spmv_plan *plan, *inner;
    bool plans_update; /* the plans can take new values */
    bool borrows_plan;
    bool no_entries;                  /* made from a plan: a has sizes only */
    const struct solver_ranks *ranks; /* of one of several ranks: a and plan have its rows only; else NULL */
    /* If every diagonal entry is negative, cg solves -A x = -b: -A, its values and its plan. */
    bool negates;
    spmv_csr negative;
    void *negative_val;
    spmv_plan *negative_plan;
    spmv_plan *single;             /* for one right-hand side, if the others are for several; NULL: not made yet */
    struct null_space *null_space; /* NULL: A is not known to be singular */
    bool components_known;         /* null_space_find has looked for components */
    const char *library;           /* of direct, by name; NULL: any */
    struct direct *direct;
    double
        direct_takes; /* under "auto": nanoseconds of factors, by their analysis; 0: not known, INFINITY: there are none */
    char direct_lacks[256];       /* why the present values have no factors: the memory that they need; "": not known */
    spmv_preconditioner *precond; /* NULL: could not be made */
    /* of a race (solver_race.c): the other preconditioners; whether it has ended; the solver that had been
     * chosen, the one that won and the name of its preconditioner, which are then solver and precond */
    spmv_preconditioner *rival, *others[SOLVER_OTHERS];
    bool settled;
    const struct krylov_solver *began, *won;
    char verdict[PRECOND_NAME], why_verdict[PRECOND_SENTENCE];
    /* made when others fail; NULL: not made yet. simple: jacobi or none */
    spmv_preconditioner *simple, *none, *ilut[SOLVER_RESORTS];
    struct object_use use; /* by a solve */
    spmv_status failed;    /* why precond or direct could not be made, and the message */
    char sentence[512];
    double seconds;

    const struct solver_ahead *ahead; /* of the next solve of a rank: its right-hand side ahead_of; NULL: none */
    int ahead_of;

    /* the last solve: its solver and preconditioner, which may not be the first ones */
    const struct krylov_solver *used;
    const spmv_preconditioner *used_precond;
    char why_used[SOLVER_SENTENCE];
    int room;                       /* right-hand sides that the five arrays are for */
    spmv_cg_result *results;        /* one per right-hand side */
    struct backward_error *errors;  /* the same; row -1: not computed */
    double *forward_errors;         /* the same: estimates of the relative error of x; -1: not computed */
    double *null_parts;             /* the same: norms of the parts of b along null vectors; -1: not computed */
    struct scaled_system *scaled;   /* made when rows are too inaccurate; NULL: not made yet */
    bool corrects;                  /* it is the solver of another one's scaled system */
    struct recycle *space;          /* of the option recycle; else NULL */
    struct recycle_told *told;      /* the same as results: of the start */
    struct solver_adjoint *adjoint; /* made by the first solve with the adjoint of an A that is not symmetric; NULL */
};

/* *solver = the solver of this name; NULL of "auto". */
spmv_status solver_find(spmv_context *ctx, const char *name, const struct krylov_solver **solver);

/* Rows of the whole matrix. */
static inline int64_t solver_rows(const spmv_solver *s)
{
    return s->ranks != NULL ? s->plan->ranks->rows : s->a.rows;
}

/* The smallest number of all ranks; without ranks number itself. */
spmv_status solver_smallest_of_ranks(const spmv_solver *s, double *number);

/* The smallest or the largest (SPMV_MIN, SPMV_MAX) diagonal entry of a real matrix, of ranks together. */
spmv_status solver_extreme_diagonal(const spmv_solver *s, spmv_op which, double *extreme);

/* Chooses the solver, for the option "auto": sets s->solver, s->negates and s->why. The plan
 * exists. */
spmv_status solver_choose(spmv_solver *s);

/* Sets s->negates: every diagonal entry is negative, and cg can solve -A x = -b. */
spmv_status solver_look_at_signs(spmv_solver *s);

/* A plan for A or another matrix with the same pattern. updates: it can take new values. */
spmv_status solver_make_plan(const spmv_solver *s, const spmv_csr *a, spmv_type type, int vectors, bool updates,
                             spmv_plan **plan);

/* The right-hand sides of a product: 1 if they are solved one after the other, fewer than all in batches, and
 * more if some are added that are 0. */
int solver_vectors_at_once(const spmv_solver *s);

/* The system that is solved, A x = b or -A x = -b. Make: after the choice of the solver. Drop:
 * before new values, and in the end. The single plan is made when it is first asked for. */
spmv_status solver_make_system(spmv_solver *s, bool updates);
/* Looks for null vectors of A, of ranks together. */
spmv_status solver_find_null_space(spmv_solver *s, enum null_space_rows rows);
void solver_drop_system(spmv_solver *s);
static inline const spmv_csr *solver_matrix(const spmv_solver *s)
{
    return s->negates ? &s->negative : &s->a;
}
static inline spmv_plan *solver_plan(const spmv_solver *s)
{
    return s->negates ? s->negative_plan : s->plan;
}
spmv_status solver_single_plan(spmv_solver *s, spmv_plan **plan);

/* Bytes that a solve by the solver takes besides the plan and the preconditioner. On a GPU they are
 * not host memory: 0. */
int64_t solver_room(const spmv_solver *s, const struct krylov_solver *solver);

/* What the solver needs a preconditioner for. */
enum precond_for solver_purpose(const struct krylov_solver *solver);

/* The solver that takes this preconditioner, where `first` begins. */
const struct krylov_solver *solver_with_precond(const struct krylov_solver *first, const char *name);

/* The sizes of the whole matrix, by which work is counted. */
spmv_csr solver_sizes(const spmv_solver *s);

/* Makes a preconditioner for the solver from the present values, in the type of the recurrence.
 * name: of a kind, or "auto". */
spmv_status solver_make_precond(spmv_solver *s, const struct krylov_solver *solver, const char *name,
                                spmv_preconditioner **made);

/* The end of a solve of all right-hand sides, which ended with a status and its message; the
 * results have those of each: computes the backward errors, and of f32 the true residuals in f64.
 * Corrects an x within its tolerance whose backward error is too large (solver_accuracy.c). Sets
 * the statuses. Returns the first that failed; SPMV_ERROR_STAGNATION: a backward error stays too
 * large. */
spmv_status solver_check_rows(spmv_solver *s, const void *b, void *x, spmv_status ended);

/* After that: the forward error of each x, if that is wanted, and corrections until it is small enough
 * (solver_forward_error.c). Returns ended, or SPMV_ERROR_ACCURACY: it stays too large. */
spmv_status solver_check_error(spmv_solver *s, const void *b, void *x, spmv_status ended);

/* The backward error, of one right-hand side. Over ranks it may be an upper bound that is at most `bound`. */
spmv_status solver_find_error(const spmv_solver *s, spmv_type type, const void *b, void *x, double bound,
                              struct backward_error *error);

/* d = the solution of A d = r by s->scaled, to rtol, and its result. r, d: of one right-hand side, in the context's
 * memory. Returns the status of the solve. */
spmv_status solver_solve_scaled(spmv_solver *s, const void *r, void *d, double rtol, spmv_cg_result *result);

/* The norms of b, and of b - A x. */
spmv_status solver_measure(const spmv_solver *s, spmv_plan *plan, const void *b, void *x, double *norm_b,
                           double *residual);

/* Releases the scaled system; NULL does nothing. */
void solver_scaled_destroy(struct scaled_system *scaled);

/* Its memory; 0 of NULL. */
int64_t solver_scaled_bytes(const struct scaled_system *scaled);

/* *norm: the norm of the rounding errors of b - A x for vectors of this type in the context's
 * memory, of one right-hand side (solver_rounding.c). Waits. */
spmv_status solver_rounding(const spmv_solver *s, spmv_type type, const void *b, const void *x, double *norm);

/* One right-hand side, and the solvers that solve for it one after the other. */
struct chain {
    spmv_solver *s;
    spmv_plan *plan;
    const void *b; /* that is solved for */
    void *x;
    double rtol, atol;
    bool zero_start;                      /* of the next solver */
    bool from_zero;                       /* of the first solver */
    int64_t most;                         /* iterations of all */
    int columns;                          /* right-hand sides that are solved together */
    spmv_cg_result *result;               /* columns */
    struct judge *judge;                  /* that may stop the solver that runs; NULL: none */
    struct krylov_recurrence *recurrence; /* of the solver that runs; NULL: nothing is kept */
    bool corrects;                        /* x is a correction, which on_iterate is not shown */
    bool silent;                          /* nor is on_iteration told */
    const void *ahead;                    /* direct: the solution for b, if it is known already (krylov.h) */
    struct krylov_note *note;             /* columns; NULL: not wanted */
};

/* Whether the solver direct, of which "auto" may make use, takes much less than so many nanoseconds (solver_direct.c). */
bool solver_direct_is_faster(spmv_solver *s, double left);

/* Nanoseconds that it takes, by an analysis that is made if there is none, by a library that suits so many nanoseconds;
 * infinite: there is no module, or not known. */
double solver_direct_takes(spmv_solver *s, double left);

/* If not more nanoseconds are left, the answer is no. */
double solver_worth_direct(const spmv_solver *s);

/* Whether corrections of x that take so many nanoseconds each by iterations are made by factors. */
bool solver_direct_corrects(spmv_solver *s, double each);

/* Goes on with it. If there are no factors: `before`, with the message of it. */
spmv_status solver_run_direct(struct chain *c, spmv_status before);

/* Whether a solve may try preconditioners on a sample of the matrix (solver_sample.c). */
bool solver_may_sample(const spmv_solver *s);

/* Whether this solver, with this preconditioner, races against another one; such a solve. SPMV_CANCELLED: by
 * the caller. */
bool solver_races(const spmv_solver *s, const struct krylov_solver *solver, const spmv_preconditioner *precond);
spmv_status solver_race(struct chain *c, const struct krylov_solver *solver);

/* Nanoseconds of so many iterations of the solver that x is of, as counted for the race. */
double solver_iterations_take(const struct chain *c, int64_t iterations);

/* Makes the solver that won the one that begins, with the reason. */
void solver_take_verdict(spmv_solver *s);

/* The limit of iterations of a solve: the option, or a number for the rows. */
int64_t solver_most_iterations(const spmv_solver *s);

/* The iterations so far; of several right-hand sides the most. */
int64_t solver_iterations(const struct chain *c);

/* SPMV_ERROR_ITERATIONS, also in the results, for a solve that a judge has stopped. */
spmv_status solver_fail_limit(const struct chain *c);

/* Runs a solver from the present x. The numbers of iterations and restarts go on. */
spmv_status solver_run(struct chain *c, const struct krylov_solver *solver, const spmv_preconditioner *precond,
                       int64_t most);

/* Whether the tolerance is so far below the rounding errors of b - A x that no solver reaches it. *rounding: an upper
 * bound of those (solver_rounding). */
bool solver_is_out_of_reach(const struct chain *c, double *rounding);

/* The equation A d = b - A x of the error d of an x: memory for both vectors of one right-hand side, and a solve's front
 * for sums and residuals, whose b and x the caller sets. Of ranks, all have it or none. Close after an error too. */
struct rest {
    struct krylov k;
    spmv_cg_result none;
    void *r, *d;
    int64_t numbers; /* real ones of a vector */
};
spmv_status solver_open_rest(const spmv_solver *s, spmv_plan *plan, struct rest *rest);
void solver_close_rest(const spmv_solver *s, struct rest *rest);

/* Whether the last solver, which ended with st, is so close to the tolerance that corrections of x may reach it; those
 * corrections, by the same solver. Returns the status then. */
bool solver_is_close(const struct chain *c, spmv_status st);
spmv_status solver_add_digits(struct chain *c, spmv_status st);

/* Whether another solver may follow one that ended like this. */
bool solver_may_follow(const spmv_solver *s, spmv_status st);

/* The iterations of a solver that another one may follow. */
enum { SOLVER_SHARE = 2000 };

/* From now on the judge stops a solver only after its share of the iterations. */
void solver_judge_share(const spmv_solver *s, struct judge *judge);

/* The same, for no more than its share of the iterations if another one may follow. */
spmv_status solver_run_share(struct chain *c, const struct krylov_solver *solver, const spmv_preconditioner *precond);

/* The same, or a race. */
spmv_status solver_run_or_race(struct chain *c, const struct krylov_solver *solver, const spmv_preconditioner *precond);

/* Runs the solvers that follow one that ended with st. */
spmv_status solver_follow(struct chain *c, spmv_status st);

/* Makes room for the results of so many right-hand sides, and sets the option vectors. */
spmv_status solver_set_vectors(spmv_solver *s, int vectors);

/* Solves for all right-hand sides; the context is held. Sets the results and what was used. */
spmv_status solver_solve_held(spmv_solver *s, const void *b, void *x);

/* The same for op(A) x = b. *by: the solver that has the results. */
spmv_status solver_solve_operation(spmv_solver *s, spmv_operation operation, const void *b, void *x,
                                   const spmv_solver **by);

/* Releases the solver of the adjoint: before the preconditioner that it borrows. Its memory. */
void solver_drop_adjoint(spmv_solver *s);
int64_t solver_adjoint_bytes(const spmv_solver *s);

/* A solver of values that stay. *direct: factors of A, which become its own; NULL: none. */
spmv_status solver_create_with(spmv_context *ctx, const spmv_csr *a, const spmv_solver_options *options,
                               struct direct **direct, spmv_solver **solver);

/* A solver of values that stay, for a system with the solutions of another one, which that has just solved: under "auto"
 * it begins with the solver and the preconditioner that ended there, unless that was jacobi or none. */
spmv_status solver_create_like(const spmv_solver *like, const spmv_csr *a, const spmv_solver_options *options,
                               spmv_solver **solver);

#endif

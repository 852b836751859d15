/* Shared by all Krylov methods, for one or several right-hand sides: checks of the arguments, the
 * true residual, tolerances, restarts from the true residual, the choice of the returned x, the
 * callback, statuses and their messages, and scaling. Nothing here depends on the recurrence: a
 * solver is a function that runs it.
 *
 * A vector holds k columns: row i of column v is element i * k + v, as in the plan. One right-hand
 * side is k = 1.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef KRYLOV_H
#define KRYLOV_H

#include <spmv/solvers.h>

#include "core/reals.h"
#include "core/runtime.h"

/* Whether a column runs, or why it stopped. */
enum column_stop { COLUMN_RUNS, COLUMN_DONE, COLUMN_BROKEN, COLUMN_LIMIT };

/* One right-hand side in one run of the recurrence. The front sets tolerance, limit and stop
 * (COLUMN_RUNS: to be solved), the solver the other members. */
struct krylov_column {
    double tolerance;
    /* norms: of the first residual; of a residual that ends the run (krylov_enough) */
    double start_residual, enough;
    double residual;    /* norm of the last residual of the recurrence */
    int64_t iterations; /* of this run */
    int64_t limit;      /* of iterations in this run */
    enum column_stop stop;
};

struct direct;
struct krylov_solver;
enum { KRYLOV_SENTENCE = 1024 };

/* What is noted of one of several right-hand sides beside its result. */
struct krylov_note {
    char sentence[KRYLOV_SENTENCE]; /* of a failure */
    double *residual;               /* of iteration 0 and each one after it, the first `most` of them; host memory */
    int64_t most, count;
};

/* Where conjugate gradients for one right-hand side on a host leave the residual of the recurrence and their
 * direction when the callback stops them: memory for two vectors. kept: they are there; a solve from the x that was
 * reached then goes on as if it had not been stopped. */
struct krylov_recurrence {
    void *r, *p;
    bool kept;
};

/* One solve. Vectors have rows times columns elements of the type, in the context's memory. */
struct krylov {
    const char *call; /* the public function, for messages */
    spmv_context *ctx;
    spmv_plan *plan;
    spmv_plan_info info;
    const spmv_preconditioner *precond; /* NULL: none */
    spmv_type type;
    /* of the real and imaginary parts of complex vectors; otherwise type. A vector of n complex
     * numbers is treated as one of 2 n real numbers where that is the same. */
    spmv_type part;
    int columns;      /* 1 with a complex type */
    int64_t n, count; /* rows; real numbers of a vector: rows times columns, times 2 if complex */
    const void *b;
    void *x;
    void *r;       /* b - A x at the start of a run; then private to the solver */
    void *q;       /* private to the solver during a run, to the front between runs */
    void *start_x; /* x at the start of the run */

    double rtol, atol;
    int64_t max_iterations;
    int64_t iterations_before; /* of other solves that led to this x; the callback counts on */
    bool zero_start;
    /* For solves with several solvers, which return the best x of all. If a run ends without
     * success, x returns to its start if that has a smaller true residual; at the limit of
     * iterations only if the residual has grown by more than the first factor, and where A or M is
     * not positive definite by more than the second. 0: as the public functions say. */
    double most_growth, indefinite_growth;
    spmv_cg_fn on_iteration;
    spmv_iterate_fn on_iterate; /* only with one right-hand side */
    void *user;
    struct krylov_recurrence *recurrence; /* NULL: nothing is kept */
    int symmetry_check;                   /* a spmv_symmetry_check, for solvers for symmetric matrices */

    /* What single solvers need. cg: the name of a rung, NULL or "auto": any; a plan of type f32,
     * for inner iterations (spmv_cg_options). gmres: steps of a cycle; else 0. direct: the
     * factors. */
    const char *rung;
    spmv_plan *inner;
    int restart;
    struct direct *direct;
    const void *ahead; /* direct: the solution for b, which the first run takes; NULL: it is not known yet */

    const struct krylov_solver *solver;
    spmv_cg_result *result;       /* one for each column */
    struct krylov_note *note;     /* the same; NULL: not wanted */
    struct krylov_column *column; /* one for each column */

    /* Set by the solver.
     * - run: runs the columns whose stop is COLUMN_RUNS from x until all have stopped or the
     *   callback cancels (told). It adds to iterations. It returns SPMV_OK; a failure of class 7 or
     *   more, with its message, which ends the columns that still run; or another failure, which
     *   ends the solve.
     * - fail_broken: returns the status of a column that is COLUMN_BROKEN, with its message. */
    spmv_status (*run)(struct krylov *);
    spmv_status (*fail_broken)(const struct krylov *, int v);
    /* For one right-hand side: the solver also does the front's part: x = 0 with from_zero, ||b||,
     * the tolerance, start_x, and the true residual unless cancelled. If b'b is 0, it returns
     * SPMV_OK and does nothing else. */
    bool measures;

    bool from_zero;      /* x must become 0, and no run has started yet */
    bool knows_residual; /* result->true_residual is that of x, set by a solver that measures */
    int64_t iterations;  /* of all runs, as reported to the callback */
    /* SPMV_CANCELLED: the callback cancelled the solve, at iteration told_at */
    spmv_status told;
    int64_t told_at;
    double scale;        /* scale factor applied to b and x (a power of two); 0 means unscaled */
    double wanted_scale; /* scale factor required by a solve that ended without a result; 0: none */

    /* workspace */
    /* columns scalars in the context's memory; 3 columns scalars in host memory */
    void *cells, *values;
    void *seen; /* with on_iterate: x in the caller's units while b and x are scaled */
    double *norms;
    bool *flags;
    /* with several columns: one column; the offsets of its elements from its first, 64 bits */
    void *one, *index;
    void *host;         /* with several columns, in host memory: count elements; NULL: not needed yet */
    spmv_status failed; /* the status of the last run, and its message */
    char sentence[KRYLOV_SENTENCE];
    int first; /* the lowest number of a failed column, and its message; -1: none */
    char first_sentence[KRYLOV_SENTENCE];
};

/* ------------------------------------------------------------- for a solver's front */

/* Checks the plan, b and x. */
spmv_status krylov_check(const struct krylov *s);

/* Checks a plan for a solve: square, no strides, one vector if it is complex. */
spmv_status krylov_check_plan(const char *call, const spmv_plan *plan, const spmv_plan_info *info);

/* Checks the options that all solves have. */
struct krylov_options {
    double rtol, atol;
    int64_t max_iterations;
    int zero_start, symmetry_check;
};
spmv_status krylov_check_options(spmv_context *ctx, const char *call, const struct krylov_options *options);

/* Checks the preconditioner, for a recurrence in vectors of this type, names it in the results, and
 * drops it if it is the identity. */
spmv_status krylov_take_precond(struct krylov *s, spmv_type type);
void krylov_name_precond(spmv_cg_result *result, const spmv_preconditioner *m);

/* Allocates the workspace; ctx, plan, info and result must be set. krylov_close is required even
 * after a failure. */
spmv_status krylov_open(struct krylov *s);
void krylov_close(struct krylov *s);

/* Solves; all members above must be set. Sets the status of each result. Returns the status of the
 * first column, by number, that failed; among several columns, the message names it. */
spmv_status krylov_solve(struct krylov *s);

/* The same for a system without rows, which needs no workspace. */
spmv_status krylov_solve_empty(struct krylov *s);

/* ------------------------------------------------------------- for a solver's recurrence */

/* start_x = x, r = b - A x */
spmv_status krylov_start(const struct krylov *s);

/* to = b - A x */
spmv_status krylov_residual(const struct krylov *s, void *to);

/* The norms of the columns of v. */
spmv_status krylov_norms(const struct krylov *s, const void *v, double *norms);

/* The rows of the whole matrix, of which a plan may have the rows of one rank (struct
 * plan_ranks). */
int64_t krylov_rows(const struct krylov *s);

/* Lends a vector of count real numbers that the plan can multiply: with several ranks, it has room
 * for elements of other ranks. krylov_take_back accepts NULL. part: the type of the numbers. */
spmv_status krylov_lend(const struct krylov *s, spmv_type part, int64_t count, void **vector);
void krylov_take_back(const struct krylov *s, spmv_type part, void *vector);

/* *dot = a'b in the context's memory, for vectors of one column, over the rows of all ranks; of complex ones
 * the real part. */
spmv_status krylov_dot(const struct krylov *s, const void *a, const void *b, void *dot);

/* Reads count real scalars, at most 3 for each column; waits. */
spmv_status krylov_read(const struct krylov *s, const void *from, int count, double *to);

/* Writes the scalar to *s->cells. */
spmv_status krylov_set_cell(const struct krylov *s, double value);

/* to = column v of vectors; column v of vectors = from. For several right-hand sides only. */
spmv_status krylov_take(const struct krylov *s, const void *vectors, int v, void *to);
spmv_status krylov_give(const struct krylov *s, const void *from, int v, void *vectors);

/* A run stops at the tolerance, or when its residual has shrunk by the unit roundoff since its
 * start. The true residual cannot follow further, because x is rounded to as many digits; only a
 * restart may gain more. So an unreachable tolerance leads to a restart instead of numbers that
 * shrink until they underflow. */
static inline double krylov_enough(spmv_type type, const struct krylov_column *c)
{
    const double last = real_limits_of(type_part(type)).roundoff * c->start_residual;
    return c->tolerance > last ? c->tolerance : last;
}

/* Whether the column took part in this run. */
static inline bool krylov_is_open(const struct krylov *s, int v)
{
    return s->result[v].status == SPMV_ERROR_ARGUMENT;
}

/* Reports an iteration to the callback and returns s->told. A column whose last iteration this is
 * counts as cancelled. */
spmv_status krylov_tell(struct krylov *s, int64_t iteration, double residual);

/* Reports iteration s->iterations with the largest residual of the running columns. */
spmv_status krylov_tell_running(struct krylov *s);

/* Adds the outcome of the run to the results of the columns that ran. */
void krylov_collect(struct krylov *s);

/* After krylov_collect: the status of column v, with its message in the context. SPMV_OK: the
 * recurrence has finished. */
spmv_status krylov_verdict(const struct krylov *s, int v);

/* Converts a number of the recurrence to the caller's units: one that is proportional to b, or a
 * product of two such numbers. */
double krylov_unscaled(const struct krylov *s, double value);
double krylov_unscaled_square(const struct krylov *s, double value);

/* SPMV_ERROR_STAGNATION of a true residual, and SPMV_ERROR_NOT_FINITE of a residual b - A x that is
 * not finite, with their messages. */
spmv_status krylov_fail_stagnation(const struct krylov *s, int v);
spmv_status krylov_fail_overflow(const struct krylov *s, int v);

/* After a solve with st: if that is SPMV_ERROR_NOT_FINITE and b, A or the start x has a number that
 * is not finite, stores a message that names the first one (not_finite.c). b, zero_start: those of
 * the caller. Returns st. */
spmv_status krylov_name_not_finite(const struct krylov *s, const void *b, bool zero_start, spmv_status st);

/* ------------------------------------------------------------- symmetry (krylov_symmetry.c) */

/* The option SPMV_SYMMETRY_SAMPLED: checks once for each set of values of the plan. call, ctx, plan
 * and info must be set. bilinear: of complex types that A is its transpose, not that it is Hermitian; not on ranks.
 * SPMV_ERROR_NOT_SYMMETRIC. */
spmv_status krylov_check_symmetry(const struct krylov *s, bool bilinear);

/* ------------------------------------------------------------- scaling (krylov_scale.c) */

/* Whether squares of the smallest residuals of the solve would lose digits by underflow. */
bool krylov_squares_vanish(spmv_type type, double norm_b, double tolerance);

/* Whether one right-hand side with this norm may be scaled, or is 0. */
bool krylov_may_scale(spmv_type type, double norm_b, double tolerance);

/* *x = s->x in the caller's units, for on_iterate. */
spmv_status krylov_unscaled_x(const struct krylov *s, const void **x);

/* Sets wanted_scale if b must be scaled so that squares fit, for one right-hand side. ran: the
 * solver measures, so it has already run, with success or without; x is then restored. */
spmv_status krylov_find_scale(struct krylov *s, bool ran, bool success);

/* Solves with wanted_scale. solve: the solve without scaling. */
spmv_status krylov_solve_scaled(struct krylov *s, spmv_status (*solve)(struct krylov *));

/* ------------------------------------------------------------- the solvers */

struct krylov_loop;
struct krylov_persistent_vectors;

/* A solver: a row in the table of solver_choose.c. */
struct krylov_solver {
    const char *name;
    /* Solves A x = b and fills in the results. asked: from ctx to result, but type, columns and
     * workspace, must be set; the solver works on a copy. */
    spmv_status (*solve)(const struct krylov *asked);
    bool symmetric; /* for symmetric, of complex types Hermitian A, with a symmetric M */
    bool bilinear;  /* for A and M that are their transposes, of complex types without conjugation */
    bool columns;   /* solves several right-hand sides together */

    /* The other members are for krylov_loop_solve (krylov_loop.h): vectors of the workspace;
     * s.precond and s.restart are set. */
    int (*vectors)(const struct krylov_loop *g);
    /* As in struct krylov, in place of the common run and all below; NULL: none. */
    spmv_status (*run)(struct krylov *s);
    /* Queues the start of a run or of another cycle: r = b - A x is given. */
    spmv_status (*begin)(struct krylov_loop *g);
    /* Queues step number k of a cycle. */
    spmv_status (*step)(struct krylov_loop *g, int64_t k);
    /* Queues what follows the last step of a cycle. NULL: nothing. */
    spmv_status (*end)(struct krylov_loop *g);
    /* *x = the present iterate. NULL: x itself. */
    spmv_status (*iterate)(struct krylov_loop *g, const void **x);
    /* Fills in the vectors. NULL: no kernel of many steps. */
    void (*persistent)(const struct krylov_loop *g, struct krylov_persistent_vectors *at);
    bool two_steps; /* steps alternate: a batch has an even number */
    /* Reports an iteration of this run; base iterations came before. NULL: krylov_tell. */
    void (*tell)(struct krylov_loop *g, int64_t base, int64_t iteration);
};

extern const struct krylov_solver krylov_cg, krylov_minres, krylov_gmres, krylov_bicgstab, krylov_cocg, krylov_direct;

#endif

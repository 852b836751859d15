/* What every Krylov method shares, for one right-hand side or several: checks of the arguments, the true residual,
 * tolerances, restarts from the true residual, which x is returned, the callback, statuses and their sentences, and
 * scaling. Nothing here depends on the recurrence: a method is a function that runs it.
 *
 * A vector holds k columns: row i of column v lies at i * k + v, as the plan has it. One right-hand side is k = 1.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef KRYLOV_H
#define KRYLOV_H

#include <spmv/solvers.h>

#include "runtime.h"

/* Why a column stands still. */
enum column_stop { COLUMN_RUNS, COLUMN_DONE, COLUMN_BROKEN, COLUMN_LIMIT };

/* One right-hand side in one run of the recurrence. The front sets tolerance, limit and stop (COLUMN_RUNS: to be
 * solved), the method the rest. */
struct krylov_column {
    double tolerance;
    double start_residual, enough; /* norms: of the first residual; of one that ends the run (krylov_enough) */
    double residual;               /* norm of the last residual, as the recurrence has it */
    int64_t iterations;            /* of this run */
    int64_t limit;                 /* of these */
    enum column_stop stop;
};

/* One solve. Vectors have count elements of the type in the context's memory. */
struct krylov {
    const char *call; /* the public function, for sentences */
    spmv_context *ctx;
    spmv_plan *plan;
    spmv_plan_info info;
    const spmv_preconditioner *precond; /* NULL: none */
    spmv_type type;
    int columns;
    int64_t n, count; /* rows; rows times columns */
    const void *b;
    void *x;
    void *r;       /* b - A x where a run starts; then the method's */
    void *q;       /* the method's during a run, of the front between runs */
    void *start_x; /* x where the run started */

    double rtol, atol;
    int64_t max_iterations;
    bool zero_start;
    spmv_cg_fn on_iteration;
    void *user;
    spmv_cg_result *result;       /* one a column */
    struct krylov_column *column; /* likewise */

    /* The method. run: runs the columns whose stop is COLUMN_RUNS from x until none does, or the callback cancels
     * (told). It adds to iterations. Returns SPMV_OK; a failure of class 7 or more, with its sentence, ends the columns
     * that still run; any other failure ends the solve. fail_broken: the status of a column that is COLUMN_BROKEN, with
     * its sentence. */
    spmv_status (*run)(struct krylov *);
    spmv_status (*fail_broken)(const struct krylov *, int v);
    bool measures; /* for one right-hand side: the method also does the front's part: x = 0 with from_zero, ||b||,
                      the tolerance, start_x, and, unless cancelled, the true residual. Where b'b is 0 it returns
                      SPMV_OK and does nothing else. */

    bool from_zero;      /* x is to be 0, and no run has started yet */
    bool knows_residual; /* result->true_residual is that of x: a method that measures has set it */
    int64_t iterations;  /* of all runs: what the callback is told */
    spmv_status told;    /* SPMV_CANCELLED: the callback stopped all, at iteration told_at */
    int64_t told_at;
    double scale;        /* scale factor applied to b and x (a power of two); 0 means unscaled */
    double wanted_scale; /* found by a solve that ended without a result; 0: none */

    /* workspace */
    void *cells, *values; /* columns scalars in the context's memory; 3 columns scalars in host memory */
    double *norms;
    bool *flags;
    void *one, *index;  /* several: one column; its elements' offsets from its first, 64 bits */
    void *host, *old;   /* several, in host memory: count elements each */
    spmv_status failed; /* what the last run returned, and its sentence */
    char sentence[1024];
    int first; /* the first column that failed, by number, and its sentence; -1: none */
    char first_sentence[1024];
};

/* ------------------------------------------------------------- for a method's front */

/* Checks the plan, b, x, rtol, atol and max_iterations. */
spmv_status krylov_check(const struct krylov *s);

/* Checks the preconditioner, for a recurrence in vectors of the type. */
spmv_status krylov_check_precond(const struct krylov *s, spmv_type type);

/* Allocates the workspace, given ctx, plan, info and result. What is there is released even after a failure. */
spmv_status krylov_open(struct krylov *s);
void krylov_close(struct krylov *s);

/* Solves, given all of the above. Sets the status of each result. Returns that of the first that failed, by number; the
 * sentence names it where there are several. */
spmv_status krylov_solve(struct krylov *s);

/* The same for a system of no rows, which needs no workspace. */
spmv_status krylov_solve_empty(struct krylov *s);

/* ------------------------------------------------------------- for a method's recurrence */

/* start_x = x, r = b - A x */
spmv_status krylov_start(const struct krylov *s);

/* to = b - A x */
spmv_status krylov_residual(const struct krylov *s, void *to);

/* The norms of the columns of v. */
spmv_status krylov_norms(const struct krylov *s, const void *v, double *norms);

/* Reads count scalars, at most 3 a column; waits. */
spmv_status krylov_read(const struct krylov *s, const void *from, int count, double *to);

/* Writes the scalar in *s->cells. */
spmv_status krylov_set_cell(const struct krylov *s, double value);

/* to = column v of vectors; column v of vectors = from. Several right-hand sides only. */
spmv_status krylov_take(const struct krylov *s, const void *vectors, int v, void *to);
spmv_status krylov_give(const struct krylov *s, const void *from, int v, void *vectors);

/* A run stops here: at the tolerance, or where its residual has shrunk by the unit roundoff since its start. The true
 * residual, of an x that is rounded to that many digits, cannot have followed then, and only a restart may gain more.
 * So a tolerance out of reach ends in a restart, not in numbers that shrink until they underflow. */
static inline double krylov_enough(spmv_type type, const struct krylov_column *c)
{
    const double last = (type == SPMV_F32 ? 0x1p-24 : 0x1p-53) * c->start_residual;
    return c->tolerance > last ? c->tolerance : last;
}

/* Whether the column has run in this run. */
static inline bool krylov_is_open(const struct krylov *s, int v)
{
    return s->result[v].status == SPMV_ERROR_ARGUMENT;
}

/* Tells the callback of an iteration; returns s->told. A column whose last iteration this is counts as cancelled. */
spmv_status krylov_tell(struct krylov *s, int64_t iteration, double residual);

/* The same of iteration s->iterations and the largest residual of the columns that run. */
spmv_status krylov_tell_running(struct krylov *s);

/* Adds what the run came to to the results of the columns that ran. */
void krylov_collect(struct krylov *s);

/* After that: the status of column v, with its sentence in the context. SPMV_OK: the recurrence is done. */
spmv_status krylov_verdict(const struct krylov *s, int v);

/* A number of the recurrence in the caller's units: one that goes with b, or the product of two such. */
double krylov_unscaled(const struct krylov *s, double value);
double krylov_unscaled_square(const struct krylov *s, double value);

/* SPMV_ERROR_STAGNATION and SPMV_ERROR_NOT_FINITE with their sentences: of a true residual; of a b - A x that is not
 * finite. */
spmv_status krylov_fail_stagnation(const struct krylov *s, int v);
spmv_status krylov_fail_overflow(const struct krylov *s, int v);

/* ------------------------------------------------------------- scaling (krylov_scale.c) */

/* Squares of numbers as small as the residual may have to get lose their digits. */
bool krylov_squares_vanish(spmv_type type, double norm_b, double tolerance);

/* Whether b, of one right-hand side, has to be scaled for squares to fit: then wanted_scale says by what. ran: the
 * method measures, so it has run already, with success or without; x is then put back to where it was. */
spmv_status krylov_find_scale(struct krylov *s, bool ran, bool success);

/* Solves with wanted_scale. solve: the solve without scaling. */
spmv_status krylov_solve_scaled(struct krylov *s, spmv_status (*solve)(struct krylov *));

#endif

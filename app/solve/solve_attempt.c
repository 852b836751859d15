/* spmv solve: one solve with one preconditioner, and the choice of the answer among several.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/input.h"
#include "app/options.h"
#include "app/output.h"
#include "app/solve/solve_job.h"
#include "app/stops.h"
#include "core/plural.h"
#include "core/reals.h"

/* Several right-hand sides that are solved one by one begin at iteration 0 each: the largest of
 * their residuals counts. */
static bool record(struct watch *w, int64_t iteration, double residual)
{
    if (w->several && iteration < w->count) {
        w->residuals[iteration] = fmax(w->residuals[iteration], residual);
        return true;
    }
    if (w->count == w->room) {
        const int64_t room = 2 * w->room + 1024;
        double *more = realloc(w->residuals, (size_t)room * sizeof *more);
        if (more == NULL) {
            complain("the history of %lld iteration%s: no memory for %lld bytes", (long long)w->count, plural(w->count),
                     (long long)(room * (int64_t)sizeof *more));
            w->out_of_memory = true;
            return false;
        }
        w->residuals = more;
        w->room = room;
    }
    w->residuals[w->count++] = residual;
    return true;
}

/* ", roughly 3.2 s left"; "" if unknown. Static storage. */
static const char *time_left(const struct watch *w, int64_t iteration)
{
    static char text[48];
    const double left = pace_left(&w->pace, w->goal);
    text[0] = '\0';
    if (left > 0)
        snprintf(text, sizeof text, ", about %s left", seconds_text((w->last - w->first) / (double)iteration * left));
    return text;
}

/* From the first iteration on there is an x to write, so signals are requests. */
int attempt_on_iteration(int64_t iteration, double residual, void *user)
{
    struct watch *w = ((struct attempt *)user)->watching;
    if (iteration == 0) {
        stops_defer();
        remark(LEVEL_VERBOSE, "the iterations begin");
    }
    w->last = monotonic_seconds();
    pace_add(&w->pace, iteration, residual);
    if (iteration == 0)
        w->first = w->last;
    else if (w->last - w->began > 0.5)
        progress_show(w->began, "solving: iteration %lld, residual %.3g, tolerance %.3g, %.3g iterations a second%s",
                      (long long)iteration, residual, w->goal, (double)iteration / (w->last - w->first),
                      time_left(w, iteration));
    return (w->recording && !record(w, iteration, residual)) || stops_asked();
}

static int asks_stops(void *user)
{
    (void)user;
    return stops_asked();
}

void attempt_precond_options(const struct job *job, spmv_preconditioner_options *options)
{
    const struct options *const o = job->o;
    spmv_preconditioner_options_init(options, sizeof *options);
    options->near_null = job->near_null;
    options->near_nulls = job->near_nulls;
    options->coordinates = job->coordinates;
    options->nodes = job->nodes;
    options->dimensions = job->dimensions;
    if (place_on_ranks(job->place) && job->nodes > 0) { /* those of own rows */
        const int64_t block = job->in.view.rows / job->nodes;
        options->coordinates += job->place->part.first_row / block * job->dimensions;
        options->nodes = job->place->part.own_rows / block;
    }
    options->fields = job->fields;
    options->schur = job->schur.matrix != NULL ? &job->schur.view : NULL;
    options->schur_form = job->schur_form;
    options->block = o->block;
    options->degree = o->degree;
    options->drop = o->drop;
    options->fill = o->fill;
    options->strength = o->strength;
}

/* All but the plan, and what ranks do not have. precond: receives the options of the preconditioner. */
static spmv_solver_options solver_options(const struct job *job, struct attempt *a,
                                          spmv_preconditioner_options *precond)
{
    const struct options *o = job->o;
    spmv_solver_options options;
    attempt_precond_options(job, precond);
    spmv_solver_options_init(&options, sizeof options);
    options.precond_options = precond;
    options.solver = o->solver;
    options.rung = job->rung;
    options.precond = a->name;
    options.vectors = job->columns;
    options.restart = o->restart;
    options.recycle = o->recycle;
    options.accuracy = o->accuracy;
    options.estimate_error = job->attempts == 1 && !option_given(o, "accuracy");
    options.null_space = job->null_space;
    options.null_vectors = job->null_vectors;
    options.null_block = job->null_block;
    options.rtol = o->rtol;
    options.atol = o->atol;
    options.max_iterations = o->max_iterations;
    options.zero_start = job->x0 == NULL;
    options.on_iteration = attempt_on_iteration;
    options.user = a;
    return options;
}

/* Makes the solver of the attempt. With --precond all, one whose preconditioner cannot be made is
 * skipped. */
static spmv_status make_solver(struct job *job, struct attempt *a)
{
    spmv_preconditioner_options precond;
    spmv_solver_options options = solver_options(job, a, &precond);
    const double began = monotonic_seconds();
    spmv_status st = SPMV_OK;
    if (place_on_ranks(job->place)) {
        options.on_iteration = place_writes(job->place) && a->watch.recording ? attempt_on_iteration : NULL;
        st = spmv_group_solver_create(job->place->matrix, &options, &a->together);
    } else {
        /* solved one after the other, with a plan for one vector */
        const bool in_turn = job->columns > 1 && (job->o->recycle > 0 || type_is_complex(job->type));
        options.plan = in_turn ? NULL : job->p.plan;
        options.inner = job->o->inner;
        /* every entry was compared */
        options.symmetry_check = job_is_symmetric(job) ? SPMV_SYMMETRY_TRUST : SPMV_SYMMETRY_SAMPLED;
        spmv_context_set_cancel(job->place->ctx, asks_stops, NULL);
        st = spmv_solver_create(job->place->ctx, &job->p.view, &options, &a->solver);
    }
    a->setup_seconds = monotonic_seconds() - began;
    if (st == SPMV_OK)
        return st;
    snprintf(a->failure, sizeof a->failure, "%s", spmv_last_error(job->place->ctx));
    a->stop = st;
    if (job->attempts > 1 && spmv_status_class(st) != 5 && spmv_status_class(st) != 6)
        return SPMV_OK;
    place_passed(job->place, st);
    job_tell_next(job, a, st);
    return st;
}

bool attempt_is_verdict(spmv_status st)
{
    return spmv_status_class(st) == 7 || st == SPMV_ERROR_NOT_POSITIVE || st == SPMV_CANCELLED;
}

/* Solves once. *stop: the solver's status for the system. results: one per right-hand side. x: in
 * host memory, a copy; on ranks the vector that the solver has used. */
static spmv_status solve_once(struct job *job, struct attempt *a, struct watch *w, spmv_solver_result *results, void *x,
                              spmv_status *stop, double *seconds)
{
    const bool here = !place_on_ranks(job->place);
    w->goal = job->goal;
    a->watching = w;
    spmv_status st = SPMV_OK;
    if (here && job->x0 != NULL)
        st = spmv_upload(job->place->ctx, job->x0, job->context_x, job_vector_bytes(job));
    if (st == SPMV_OK)
        st = spmv_synchronize(job->place->ctx);
    st = place_agree(job->place, place_passed(job->place, st));
    if (st != SPMV_OK)
        return st;
    w->began = w->first = w->last = monotonic_seconds();
    st = here ? spmv_solver_solve(a->solver, job->context_b, job->context_x, results, sizeof *results)
              : job_solve_on_ranks(job, a, results);
    *seconds = monotonic_seconds() - w->began;
    progress_end();
    const spmv_status recorded = place_agree(job->place, w->out_of_memory ? SPMV_ERROR_MEMORY : SPMV_OK);
    if (recorded != SPMV_OK)
        return recorded;
    *stop = st;
    const bool verdict = attempt_is_verdict(st);
    const bool unfit = st == SPMV_ERROR_UNSUPPORTED && job->attempts > 1;
    if (st == SPMV_CANCELLED)
        snprintf(a->failure, sizeof a->failure, "stopped by %s after %lld iterations, with a residual of %.3g",
                 stops_reason(), (long long)results[0].iterations, results[0].true_residual);
    else if (st != SPMV_OK && (verdict || unfit))
        snprintf(a->failure, sizeof a->failure, "%s", spmv_last_error(job->place->ctx));
    if (st != SPMV_OK && !verdict) {
        if (unfit)
            return SPMV_OK;
        place_passed(job->place, st);
        if (!here) /* whether the matrix suits is known first now */
            job_tell_next(job, a, st);
        return st;
    }
    a->ran = true;
    return here ? place_passed(job->place, spmv_download(job->place->ctx, job->context_x, x, job_vector_bytes(job)))
                : SPMV_OK;
}

/* Solves again and compares the bits of x. */
static spmv_status solve_again(struct job *job, struct attempt *a)
{
    struct watch watch = {.recording = false};
    spmv_solver_result *results = NULL;
    spmv_status stop = SPMV_OK;
    double seconds = 0;
    spmv_status st = allocate("x of a repeat", job_vector_bytes(job), 1, &a->again);
    if (st == SPMV_OK)
        st = allocate("the results of a repeat", job->columns, sizeof *results, (void **)&results);
    if (st == SPMV_OK)
        st = solve_once(job, a, &watch, results, a->again, &stop, &seconds);
    if (st == SPMV_OK)
        a->other_bits = stop != a->stop || memcmp(a->x, a->again, (size_t)job_vector_bytes(job)) != 0;
    for (int v = 0; v < job->columns && st == SPMV_OK; v++)
        a->other_bits = a->other_bits || results[v].iterations != a->each[v].iterations;
    free(results);
    return st;
}

/* The largest |x_i - solution_i| of each right-hand side; not finite if some x_i is not. Where x is. */
static spmv_status find_errors(const struct job *job, struct attempt *a)
{
    if (!a->ran || a->host_x == NULL || job->wish->count > 1)
        return SPMV_OK;
    const spmv_status st = allocate("errors of x", job->columns, sizeof *a->error, (void **)&a->error);
    for (int v = 0; v < job->columns && st == SPMV_OK; v++) {
        a->error[v] = 0;
        for (int64_t i = v; i < job->in.view.rows * job->columns; i += job->columns) {
            spmv_c128 known; /* room for all types */
            known_elements(job->type, i, 1, job_is_random(job), &known);
            const double error = job_difference(job, a->host_x, i, &known);
            if (!(error <= a->error[v]))
                a->error[v] = error;
        }
    }
    return st;
}

double attempt_largest_error(const struct attempt *a)
{
    double largest = 0;
    for (int v = 0; v < a->columns; v++)
        if (!(a->error[v] <= largest))
            largest = a->error[v];
    return largest;
}

bool attempt_has_x(const struct attempt *a)
{
    bool any = a->ran && (a->stop == SPMV_OK || spmv_status_class(a->stop) == 7 || a->stop == SPMV_CANCELLED);
    for (int v = 0; v < a->columns && any; v++)
        any = a->each[v].status != SPMV_ERROR_NOT_POSITIVE;
    return any;
}

/* Compares two attempts that have an x: solved before unsolved, then fewer iterations, for
 * unsolved ones the smaller residual. Ties keep the first. */
static bool is_better(const struct attempt *a, const struct attempt *than)
{
    if ((a->stop == SPMV_OK) != (than->stop == SPMV_OK))
        return a->stop == SPMV_OK;
    if (a->stop == SPMV_OK)
        return a->result.iterations < than->result.iterations;
    const double residual = a->result.true_residual, other = than->result.true_residual;
    return isfinite(residual) && !(isfinite(other) && other <= residual);
}

spmv_status job_solve(struct job *job, int number)
{
    struct attempt *a = &job->attempt[number];
    a->watch.several = job->columns > 1;
    a->watch.recording = job->o->history != NULL || job->o->plot != NULL;
    const bool here = !place_on_ranks(job->place);
    spmv_status st = make_solver(job, a);
    if (st != SPMV_OK || a->stop != SPMV_OK)
        return st;
    st = place_vectors(job->place, "x", SPMV_GROUP_COLS, job->columns, job_vector_bytes(job), &a->x);
    if (st == SPMV_OK)
        st = allocate("the results", job->columns, sizeof *a->each, (void **)&a->each);
    if (st == SPMV_OK)
        st = allocate("norms of residuals", job->columns, sizeof *a->checked, (void **)&a->checked);
    st = place_agree(job->place, st);
    if (st == SPMV_OK)
        st = solve_once(job, a, &a->watch, a->each, a->x, &a->stop, &a->seconds);
    if (st == SPMV_OK)
        columns_summary(a);
    if (st == SPMV_OK && (here || job->wish->answer != NULL))
        st = place_collect(job->place, SPMV_GROUP_COLS, job->type, job->in.view.rows, job->columns, a->x, &a->host_x);
    if (st == SPMV_OK)
        st = place_agree(job->place, find_errors(job, a));
    if (st == SPMV_OK && job->o->verify == VERIFY_BITWISE && a->stop != SPMV_ERROR_UNSUPPORTED)
        st = solve_again(job, a);
    if (st == SPMV_OK && (job->best < 0 || !attempt_has_x(&job->attempt[job->best]) ||
                          (attempt_has_x(a) && is_better(a, &job->attempt[job->best]))))
        job->best = number;
    return st;
}

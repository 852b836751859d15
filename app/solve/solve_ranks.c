/* spmv solve on ranks: conjugate gradients of spmv_group_cg, which is all that ranks have.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <spmv/primitives.h>
#include <stdio.h>
#include <string.h>

#include "app/input.h"
#include "app/options.h"
#include "app/output.h"
#include "app/solve/solve_job.h"
#include "core/choice.h"
#include "core/reals.h"

const char *job_refuse_ranks(const struct options *o)
{
    if (!choice_is_auto(o->solver) && strcmp(o->solver, "cg") != 0)
        return "several ranks solve by conjugate gradients only: --solver cg";
    if (o->inner)
        return "--inner is not supported on several ranks";
    if (o->vectors > 1)
        return "several ranks solve for one right-hand side only: without --vectors";
    if (o->plot != NULL)
        return "--plot is not supported on several ranks; --history writes the residuals";
    if (strcmp(o->precond, "all") == 0)
        return "the preconditioners of several ranks are none, jacobi, chebyshev and amg, and of each rank's own block "
               "ic0, cholesky, ilu0, fsai, isai and block-jacobi";
    return NULL;
}

spmv_status job_prepare_on_ranks(struct job *job, struct attempt *a)
{
    struct place *const place = job->place;
    spmv_preconditioner_info info;
    const double began = monotonic_seconds();
    spmv_preconditioner_options options;
    attempt_precond_options(job, &options);
    const spmv_status st = spmv_group_preconditioner_create_with(place->matrix, a->name, &options, &a->precond);
    const bool made = st == SPMV_OK && spmv_preconditioner_describe(a->precond, &info, sizeof info) == SPMV_OK;
    snprintf(a->result.precond, sizeof a->result.precond, "%s", made ? info.name : a->name);
    a->setup_seconds = monotonic_seconds() - began;
    if (place_passed(place, st) != SPMV_OK)
        job_tell_next(job, a, st);
    return st;
}

spmv_status job_solve_on_ranks(struct job *job, struct attempt *a, spmv_solver_result *result)
{
    struct place *const place = job->place;
    const struct options *const o = job->o;
    spmv_cg_result cg = {.why = ""};
    spmv_cg_options options;
    spmv_cg_options_init(&options, sizeof options);
    options.rtol = o->rtol;
    options.atol = o->atol;
    options.max_iterations = o->max_iterations;
    options.zero_start = o->x0 == NULL;
    options.precond = a->precond;
    options.rung = job->rung;
    options.on_iteration = place_writes(place) && a->watch.recording ? attempt_on_iteration : NULL;
    options.user = a;
    spmv_status st = SPMV_OK;
    if (job->x0 != NULL && place->part.own_cols > 0)
        st = spmv_map(place->ctx, SPMV_MAP_COPY, job->type, job->x0, a->x, place->part.own_cols);
    st = spmv_group_agree(place->group, st);
    if (st != SPMV_OK)
        return st;
    place_start(place);
    st = spmv_group_cg(place->matrix, job->b, a->x, &options, &cg, sizeof cg);
    place_stop(place);
    *result = (spmv_solver_result){.size = sizeof *result,
                                   .iterations = cg.iterations,
                                   .restarts = cg.restarts,
                                   .norm_b = cg.norm_b,
                                   .tolerance = cg.tolerance,
                                   .recurrence_residual = cg.recurrence_residual,
                                   .true_residual = cg.true_residual,
                                   .status = st,
                                   .solver = "cg",
                                   .rung = cg.rung != NULL ? cg.rung : "",
                                   .why_solver = "it is the solver of several ranks",
                                   .error_estimate = -1,
                                   .backward_error = -1,
                                   .backward_row = -1};
    memcpy(result->precond, a->result.precond, sizeof result->precond);
    memcpy(result->why_rung, cg.why, sizeof result->why_rung);
    return st;
}

spmv_status job_norm_on_ranks(const struct job *job, const void *r, double *norm)
{
    union real square = {0};
    const spmv_status st = place_passed(job->place, spmv_group_dot(job->place->matrix, r, r, &square));
    *norm = sqrt(real_at(job->type, &square, 0));
    return st;
}

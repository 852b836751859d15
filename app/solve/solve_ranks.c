/* spmv solve on ranks: what they do not have, and a solve by the solver of their group.
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
    if (strcmp(o->solver, "direct") == 0)
        return "--solver direct is not supported on several ranks: take gmres with --precond ilut or isai";
    if (options_ask_least_squares(o))
        return "least squares are not supported on several ranks";
    if (o->inner)
        return "--inner is not supported on several ranks: take --type f32 with a larger --rtol, or f64";
    if (o->vectors.most > 1)
        return "several ranks solve for one right-hand side at a time: run the command for each, or for all without "
               "ranks";
    if (o->plot != NULL)
        return "--plot is not supported on several ranks; --history writes the residuals";
    return NULL;
}

spmv_status job_solve_on_ranks(struct job *job, struct attempt *a, spmv_solver_result *result)
{
    struct place *const place = job->place;
    const int parts = type_parts(job->type);
    spmv_status st = SPMV_OK;
    if (job->x0 != NULL && place->part.own_cols > 0)
        st = spmv_map(place->ctx, SPMV_MAP_COPY, type_part(job->type), job->x0, a->x, place->part.own_cols * parts);
    st = spmv_group_agree(place->group, st);
    if (st != SPMV_OK)
        return st;
    place_start(place);
    st = spmv_group_solver_solve(a->together, job->b, a->x, result, sizeof *result);
    place_stop(place);
    return st;
}

spmv_status job_norm_on_ranks(const struct job *job, const void *r, double *norm)
{
    union real square = {0};
    const spmv_status st = place_passed(job->place, spmv_group_dot(job->place->matrix, r, r, &square));
    *norm = sqrt(real_at(type_part(job->type), &square, 0));
    return st;
}

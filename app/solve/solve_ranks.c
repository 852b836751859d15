/* spmv solve on ranks: what they do not have, and a solve by the solver of their group.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <spmv/primitives.h>
#include <stdint.h>
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
    if (strncmp(o->solver, "direct", strlen("direct")) == 0)
        return "--solver direct is not supported on several ranks: take gmres with --precond ilut or isai";
    if (options_ask_least_squares(o))
        return "least squares are not supported on several ranks: take --ranks 1, or minres with the square system "
               "(I, A; A', 0) (r; x) = (b; 0)";
    if (o->inner)
        return "--inner is not supported on several ranks: take --type f32 with a larger --rtol, or f64";
    if (o->fields != NULL || o->schur != NULL || strcmp(o->precond, "schur") == 0)
        return "--precond schur, --fields and --schur are not supported on several ranks: take minres or gmres with "
               "--precond jacobi, or --ranks 1";
    if (o->recycle > 0)
        return "--recycle is not supported on several ranks";
    if (o->plot != NULL)
        return "--plot is not supported on several ranks; --history writes the residuals";
    return NULL;
}

/* The solver takes several right-hand sides by rows. */
static spmv_status solve_several(struct job *job, struct attempt *a, spmv_solver_result *results)
{
    struct place *const place = job->place;
    void *b = NULL, *x = NULL;
    spmv_status st = place_vectors(place, "b by rows", SPMV_GROUP_ROWS, job->columns, 0, &b);
    if (st == SPMV_OK)
        st = place_vectors(place, "x by rows", SPMV_GROUP_COLS, job->columns, 0, &x);
    if (st == SPMV_OK)
        st = place_agree(place,
                         place_interleave(place, SPMV_GROUP_ROWS, job->columns, (void *)(uintptr_t)job->b, b, false));
    if (st == SPMV_OK && job->x0 != NULL)
        st = place_agree(place, place_interleave(place, SPMV_GROUP_COLS, job->columns, a->x, x, false));
    if (st == SPMV_OK) {
        place_start(place);
        st = spmv_group_solver_solve(a->together, b, x, results, sizeof *results);
        place_stop(place);
        const bool has_x = st == SPMV_OK || attempt_is_verdict(st);
        const spmv_status copied =
            has_x ? place_agree(place, place_interleave(place, SPMV_GROUP_COLS, job->columns, a->x, x, true)) : st;
        st = copied != SPMV_OK ? copied : st;
    }
    place_free(place, b);
    place_free(place, x);
    return st;
}

spmv_status job_solve_on_ranks(struct job *job, struct attempt *a, spmv_solver_result *results)
{
    struct place *const place = job->place;
    const int parts = type_parts(job->type);
    spmv_status st = SPMV_OK;
    if (job->x0 != NULL && place->part.own_cols > 0)
        st = spmv_map(place->ctx, SPMV_MAP_COPY, type_part(job->type), job->x0, a->x,
                      place->part.own_cols * job->columns * parts);
    st = spmv_group_agree(place->group, st);
    if (st != SPMV_OK)
        return st;
    if (job->columns > 1)
        return solve_several(job, a, results);
    place_start(place);
    st = spmv_group_solver_solve(a->together, job->b, a->x, results, sizeof *results);
    place_stop(place);
    return st;
}

spmv_status job_norms_on_ranks(const struct job *job, const void *r, double *norms)
{
    struct place *const place = job->place;
    spmv_status st = SPMV_OK;
    for (int v = 0; v < job->columns && st == SPMV_OK; v++) {
        union real square = {0};
        const void *const one = place_one(place, SPMV_GROUP_ROWS, r, v);
        st = place_passed(place, spmv_group_dot(place->matrix, one, one, &square));
        norms[v] = sqrt(real_at(type_part(job->type), &square, 0));
    }
    return st;
}

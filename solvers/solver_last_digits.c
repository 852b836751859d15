/* The last digits of a residual. A solver adds each of its steps to x, and each addition rounds x, so the true residual
 * stays above a bound that grows with the steps. Where it stays a little above the tolerance, the equation of the rest,
 * A d = b - A x, is solved from 0, and x + d is rounded once: iterative refinement with the residual in the type of the
 * solve (J. H. Wilkinson, "Rounding errors in algebraic processes", 1963).
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <spmv/primitives.h>

#include "solvers/krylov/krylov.h"
#include "solvers/solver_internal.h"

/* d is solved for a part of the tolerance; the rest is for the rounding of x + d, which a second correction would not
 * change. */
static const double PART = 0.25;

spmv_status solver_open_rest(const spmv_solver *s, spmv_plan *plan, struct rest *rest)
{
    rest->none = (spmv_cg_result){.status = SPMV_ERROR_MEMORY};
    rest->r = rest->d = NULL;
    rest->k = (struct krylov){.call = "spmv_solver_solve", .ctx = s->ctx, .plan = plan, .result = &rest->none};
    spmv_status st = spmv_plan_describe(plan, &rest->k.info, sizeof rest->k.info);
    if (st == SPMV_OK)
        st = krylov_open(&rest->k);
    rest->numbers = rest->k.count;
    if (st == SPMV_OK)
        st = context_lend(s->ctx, max_i64(1, rest->numbers) * (int64_t)spmv_type_size(rest->k.part), &rest->r);
    if (st == SPMV_OK)
        st = krylov_lend(&rest->k, rest->k.part, rest->numbers, &rest->d);
    return s->ranks != NULL ? s->ranks->agree(s->ranks->self, st) : st;
}

void solver_close_rest(const spmv_solver *s, struct rest *rest)
{
    context_take_back(s->ctx, rest->r);
    krylov_take_back(&rest->k, rest->k.part, rest->d);
    krylov_close(&rest->k);
}

bool solver_is_close(const struct chain *c, spmv_status st)
{
    const spmv_cg_result *const r = c->result;
    double rounding = 0;
    return st == SPMV_ERROR_STAGNATION && c->columns == 1 && !c->corrects && c->s->used != &krylov_direct &&
           solver_iterations(c) < c->most && r->tolerance > 0 && r->recurrence_residual <= r->tolerance &&
           !solver_is_out_of_reach(c, &rounding);
}

/* x = x + d if that makes the residual smaller. */
static spmv_status add(const struct chain *c, const struct rest *rest)
{
    spmv_status st = SPMV_OK;
    spmv_context *const ctx = c->s->ctx;
    const spmv_type part = rest->k.part;
    double norm_b = 0, residual = 0;
    TRY(spmv_map_axpby(ctx, part, NULL, c->x, NULL, rest->d, rest->numbers));
    TRY(solver_measure(c->s, c->plan, c->b, rest->d, &norm_b, &residual));
    if (residual < c->result->true_residual) {
        c->result->true_residual = residual;
        TRY(spmv_map(ctx, SPMV_MAP_COPY, part, rest->d, c->x, rest->numbers));
    }
done:
    return st;
}

spmv_status solver_add_digits(struct chain *c, spmv_status ended)
{
    spmv_status st = SPMV_OK;
    spmv_cg_result *const r = c->result;
    spmv_cg_result kept = *r;
    struct rest rest;
    struct chain part = *c;
    TRY(solver_open_rest(c->s, c->plan, &rest));
    rest.k.b = c->b;
    rest.k.x = c->x;
    TRY(krylov_residual(&rest.k, rest.r));
    part.judge = NULL;
    part.recurrence = NULL;
    part.corrects = part.zero_start = true;
    part.b = rest.r;
    part.x = rest.d;
    part.rtol = 0;
    part.atol = PART * r->tolerance;
    const spmv_status solved = solver_run(&part, c->s->used, c->s->used_precond, c->most - solver_iterations(c));
    kept.iterations = r->iterations; /* of both */
    kept.restarts = r->restarts + 1;
    *r = kept;
    TRY(spmv_status_class(solved) < 7 && solved != SPMV_CANCELLED ? solved : SPMV_OK);
    TRY(add(c, &rest));
    r->error_estimate = -1;
    r->status = ended = r->true_residual <= r->tolerance ? SPMV_OK : solved == SPMV_CANCELLED ? solved : ended;
    rest.k.result = r;
    if (ended == SPMV_ERROR_STAGNATION)
        ended = krylov_fail_stagnation(&rest.k, 0);
done:
    solver_close_rest(c->s, &rest);
    return st != SPMV_OK ? st : ended;
}

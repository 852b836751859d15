/* The V-cycle of a matrix that is not symmetric, transposed: M^-T with the same hierarchy. All steps of the cycle
 * (amg_cycle.c) come in reverse order, each transposed, so R' takes the place of P and P' that of R:
 *
 *     x = D^-1 f of rows that are not coarse
 *     f = f - A' x,  d = S2' f,  x = x + d      the other two steps after the correction
 *     f = f - A' d
 *     d = R' (transposed cycle of P' f)
 *     x = x + d,  f = f - A' d
 *     x = x + S1' f                             the steps before the correction
 *
 * `turned` is a second struct amg with the arrays of the first one, which own them, and plans of the transposes.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "product/plan_internal.h"
#include "solvers/amg/amg_internal.h"

struct amg_turned {
    struct amg amg;
    int64_t bytes;
};

void amg_drop_transposed(struct amg *amg)
{
    struct amg_turned *const t = amg->turned;
    if (t == NULL)
        return;
    for (int k = 0; k < t->amg.levels; k++) {
        struct amg_level *const l = &t->amg.level[k];
        spmv_plan_destroy(l->plan);
        spmv_plan_destroy(l->plan_smoother);
        spmv_plan_destroy(l->plan_after);
        spmv_plan_destroy(l->plan_p);
        spmv_plan_destroy(l->plan_r);
    }
    spmv_plan_destroy(t->amg.plan_coarsest);
    amg->m->bytes -= t->bytes;
    host_free(t);
    amg->turned = NULL;
}

static spmv_status plan_transpose(struct amg_turned *t, const spmv_csr *a, spmv_plan **plan)
{
    spmv_plan_options o;
    spmv_plan_options_init(&o, sizeof o);
    o.type = t->amg.type;
    o.operation = SPMV_OPERATION_T;
    const spmv_status st = spmv_plan_create(t->amg.ctx, a, &o, plan);
    if (st == SPMV_OK)
        t->bytes += (*plan)->bytes;
    return st;
}

spmv_status amg_make_transposed(void *self)
{
    spmv_status st = SPMV_OK;
    struct amg *const amg = self;
    struct amg_turned *t = NULL;
    TRY(host_alloc(amg->ctx, sizeof *t, "transposed multigrid", (void **)&t));
    *t = (struct amg_turned){.amg = *amg};
    amg->turned = t;
    t->amg.several = NULL;
    t->amg.turned = NULL;
    t->amg.reversed = true;
    t->amg.plan_coarsest = NULL;
    for (int k = 0; k < amg->levels; k++) {
        struct amg_level *const l = &t->amg.level[k];
        l->plan = l->plan_smoother = l->plan_after = l->plan_p = l->plan_r = NULL;
    }
    for (int k = 0; k < amg->levels; k++) {
        struct amg_level *const l = &t->amg.level[k];
        const bool last = k + 1 == amg->levels;
        if (!last || amg->coarsest_values == NULL)
            TRY(plan_transpose(t, &l->a, &l->plan));
        if (last)
            break;
        TRY(plan_transpose(t, &l->after, &l->plan_smoother));
        TRY(plan_transpose(t, &l->before, &l->plan_after));
        TRY(plan_transpose(t, &l->r, &l->plan_p));
        TRY(plan_transpose(t, &l->p, &l->plan_r));
    }
    if (amg->coarsest_values != NULL)
        TRY(plan_transpose(t, &amg->coarsest, &t->amg.plan_coarsest));
    amg->m->apply_transposed = amg_apply_transposed;
done:
    if (t != NULL)
        amg->m->bytes += t->bytes;
    if (st != SPMV_OK)
        amg_drop_transposed(amg);
    return st;
}

spmv_status amg_apply_transposed(void *self, const void *r, void *z)
{
    const struct amg *const amg = self;
    return amg_apply(&amg->turned->amg, r, z);
}

spmv_status amg_cycle_reversed(const struct amg *amg, int k, void *x)
{
    spmv_status st = SPMV_OK;
    const struct amg_level *const l = &amg->level[k], *const next = l + 1;
    const struct precond_step step = {
        .first = true, .inverse = l->fine_inverse, .residual = l->residual, .d = l->d, .z = x, .factor = 1};
    TRY(precond_smooth_step(amg->ctx, amg->type, &step, l->rows));
    TRY(amg_subtract(amg, l, l->d));
    TRY(amg_multiply_adding(amg, l->plan_smoother, NULL, l->residual, l->d, x, l->rows));
    TRY(amg_subtract(amg, l, l->d));
    TRY(spmv_apply(l->plan_r, NULL, l->residual, NULL, next->residual));
    TRY(amg_cycle(amg, k + 1, next->x));
    TRY(amg_multiply_adding(amg, l->plan_p, NULL, next->x, l->d, x, l->rows));
    TRY(amg_subtract(amg, l, l->d));
    TRY(amg_multiply_adding(amg, l->plan_after, NULL, l->residual, l->d, x, l->rows));
done:
    return st;
}

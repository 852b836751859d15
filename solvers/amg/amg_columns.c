/* The cycle for several vectors at once: the same matrices, with plans and vectors for `columns` vectors, whose
 * elements of a row are side by side. So a matrix is read once for all vectors.
 *
 * `several` is a second struct amg with the arrays of the first one, which own them, and plans of its own. Plans are
 * kept until new values come or another number of columns; vectors are lent from open to close.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "product/plan_internal.h"
#include "solvers/amg/amg_internal.h"

struct amg_several {
    struct amg amg;
    int64_t bytes;
    void *vectors; /* of all levels; NULL: not open */
};

/* A GPU loads 16 bytes at once from rows that are multiples of them. */
enum { ROW_BYTES = 16 };

static int padded(const struct amg *amg, int columns)
{
    const int64_t each = ROW_BYTES / amg_type_size(amg);
    return context_on_device(amg->ctx) ? (int)(ceil_divide(columns, each) * each) : columns;
}

void amg_drop_columns(struct amg *amg)
{
    struct amg_several *const s = amg->several;
    if (s == NULL)
        return;
    for (int k = 0; k < s->amg.levels; k++) {
        struct amg_level *const l = &s->amg.level[k];
        spmv_plan_destroy(l->plan_smoother); /* it may use the other one */
        spmv_plan_destroy(l->plan_after);
        spmv_plan_destroy(l->plan);
        spmv_plan_destroy(l->plan_p);
        spmv_plan_destroy(l->plan_r);
    }
    spmv_plan_destroy(s->amg.plan_coarsest);
    amg->m->bytes -= s->bytes;
    context_take_back(amg->ctx, s->vectors);
    host_free(s);
    amg->several = NULL;
}

static spmv_status make_plan(struct amg_several *s, const struct rank_halo *halo, spmv_csr a, spmv_plan **plan)
{
    const spmv_status st = amg_plan_for(&s->amg, halo, &a, plan);
    if (st == SPMV_OK)
        s->bytes += (*plan)->bytes;
    return st;
}

/* The plans of a level. */
static spmv_status plan_level(struct amg_several *s, struct amg_level *l, bool last)
{
    spmv_status st = SPMV_OK;
    if (!last || s->amg.coarsest_values == NULL)
        TRY(make_plan(s, l->halo, amg_own_matrix(l, l->a), &l->plan));
    if (last)
        goto done;
    TRY(make_plan(s, l->halo_p, amg_own_matrix(l, l->p), &l->plan_p));
    TRY(make_plan(s, l->halo_r, l->r, &l->plan_r));
    if (l->before_values != NULL) {
        TRY(make_plan(s, l->halo, amg_own_matrix(l, l->before), &l->plan_smoother));
        TRY(make_plan(s, l->halo, amg_own_matrix(l, l->after), &l->plan_after));
    } else if (l->smoother != NULL) {
        const spmv_csr a = amg_own_matrix(l, amg_with_values(&s->amg, l->a, l->smoother));
        TRY(plan_share(l->plan, a.val, &l->plan_smoother));
        if (l->plan_smoother == NULL)
            TRY(make_plan(s, l->halo, a, &l->plan_smoother));
    }
done:
    return st;
}

/* All plans; the vectors are not set yet. */
static spmv_status make(struct amg *amg, int columns)
{
    spmv_status st = SPMV_OK;
    struct amg_several *s = NULL;
    TRY(host_alloc(amg->ctx, sizeof *s, "multigrid for several vectors", (void **)&s));
    *s = (struct amg_several){.amg = *amg};
    amg->several = s;
    s->amg.several = NULL;
    s->amg.columns = columns;
    s->amg.updates = false;
    s->amg.plan_coarsest = NULL;
    for (int k = 0; k < amg->levels; k++) {
        struct amg_level *const l = &s->amg.level[k];
        l->plan = l->plan_smoother = l->plan_after = l->plan_p = l->plan_r = NULL;
    }
    for (int k = 0; k < amg->levels; k++)
        TRY(plan_level(s, &s->amg.level[k], k + 1 == amg->levels));
    if (amg->coarsest_values != NULL)
        TRY(make_plan(s, NULL, amg->coarsest, &s->amg.plan_coarsest));
done:
    if (amg->several != NULL)
        amg->m->bytes += s->bytes;
    if (st != SPMV_OK)
        amg_drop_columns(amg);
    return st;
}

/* The vectors of all levels in one block of memory. */
static spmv_status lend_vectors(struct amg_several *s)
{
    spmv_status st = SPMV_OK;
    struct amg *const amg = &s->amg;
    int64_t bytes = 0;
    char *next = NULL;
    for (int k = 0; k < amg->levels; k++)
        bytes += amg_place_vectors(amg, &amg->level[k], NULL);
    TRY(context_lend(amg->ctx, bytes, &s->vectors));
    next = s->vectors;
    for (int k = 0; k < amg->levels; k++)
        next += amg_place_vectors(amg, &amg->level[k], next);
done:
    return st;
}

static spmv_status open_columns(void *self, struct precond_columns *c)
{
    spmv_status st = SPMV_OK;
    struct amg *const amg = self;
    const int columns = padded(amg, c->columns);
    if (amg->several != NULL && amg->several->vectors != NULL)
        return SPMV_ERROR_UNSUPPORTED;
    if (amg->several != NULL && amg->several->amg.columns != columns)
        amg_drop_columns(amg);
    if (amg->several == NULL)
        TRY(make(amg, columns));
    TRY(lend_vectors(amg->several));
    c->type = amg->type;
    c->stride = columns;
    c->divides = amg_is_narrower(amg);
    c->factor = amg->type != amg->m->type ? amg->scale : amg->negative ? -1 : 1;
    c->in = amg_own_in(&amg->several->amg.level[0]);
    c->out = amg_own_out(&amg->several->amg);
done:
    return st;
}

static spmv_status run_columns(void *self)
{
    const struct amg *const amg = self;
    if (amg->broken)
        return context_fail(amg->ctx, SPMV_ERROR_NOT_POSITIVE, "preconditioner amg: the last new values were refused");
    return amg_whole_cycle(&amg->several->amg);
}

static void close_columns(void *self)
{
    const struct amg *const amg = self;
    context_take_back(amg->ctx, amg->several->vectors);
    amg->several->vectors = NULL;
}

const struct precond_columns_class amg_columns = {open_columns, run_columns, close_columns};

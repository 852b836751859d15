/* The V-cycle: what it needs, and its application.
 *
 * On each level, with matrix A, interpolation P and the smoother S (amg_smoother.c):
 *
 *     x = S f                       smoothing from 0
 *     f = f - A x
 *     d = P (cycle of P' f)         correction from the next level
 *     x = x + d,  f = f - A d
 *     x = x + S f                   smoothing
 *
 * Between aggregates, d is multiplied by a factor (LONGER). The last level is multiplied by its inverse. The same
 * polynomial S before and after makes M symmetric. It is positive definite, whatever this factor is, because the
 * bound of the eigenvalues is not below them (W. Hackbusch, "Multi-grid methods and applications", 1985; Y. Notay,
 * ETNA 37, 2010).
 *
 * If A is not symmetric, R takes the place of P', and the steps before and after differ. They take five products
 * with parts of A, of which two have about half of its entries.
 *
 * f is overwritten by its residual, so a level has three vectors. With degree 2, a level takes six products and
 * nothing else; with degree 3 eight, and two passes over vectors. With another degree k, an application takes 2 k
 * products with A on each level, one with P and one with P', and 6 k + 1 passes over vectors. Nothing is allocated,
 * and nothing waits.
 *
 * Under vectors of the other type, r is first divided by a power of two near its largest element, and z is
 * multiplied by it: the cycle is linear.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "core/backend.h"
#include "product/plan_internal.h"
#include "solvers/amg/amg_internal.h"

/* ------------------------------------------------------------- what it needs */

spmv_status amg_plan_for(const struct amg *amg, const struct rank_halo *halo, const spmv_csr *a, spmv_plan **plan)
{
    if (*plan != NULL)
        return spmv_plan_update_values(*plan, a->val);
    spmv_plan_options o;
    spmv_plan_options_init(&o, sizeof o);
    o.type = amg->type;
    o.update_values = amg->updates;
    o.vectors = amg->columns;
    const bool first =
        amg->ranks != NULL ? halo != NULL && halo == amg->level[0].halo : a->rows == amg->m->rows && a->cols == a->rows;
    /* the first matrix often has few different values; no digit depends on this */
    if (context_on_device(amg->ctx) && !amg->updates && first && amg->columns == 1)
        o.compression = SPMV_COMPRESSION_VALUES;
    return halo != NULL ? amg->tools->plan(halo, a, &o, plan) : spmv_plan_create(amg->ctx, a, &o, plan);
}

/* For the rows of this rank. */
static spmv_status plan_own(const struct amg *amg, const struct amg_level *l, const struct rank_halo *halo, spmv_csr a,
                            spmv_plan **plan)
{
    a = amg_own_matrix(l, a);
    return amg_plan_for(amg, halo, &a, plan);
}

int64_t amg_place_vectors(const struct amg *amg, struct amg_level *l, char *at)
{
    enum { APART = 256 }; /* bytes between multiples of which vectors begin */
    const struct rank_halo *const p = l > amg->level && l->halo != NULL ? l[-1].halo_p : NULL;
    void **const vectors[] = {&l->residual, &l->x, &l->d};
    const int64_t row = amg->columns * amg_type_size(amg);
    int64_t bytes = 0;
    for (int i = 0; i < 3; i++) {
        int64_t room = 0, rows = 0;
        amg_find_layout(l, i == 0 && l->halo_all != NULL ? l->halo_all : p, &room, &rows);
        if (at != NULL)
            *vectors[i] = at + bytes + room * row;
        bytes += ceil_divide(max_i64(1, rows * row), APART) * APART; /* each is another array, also without rows */
    }
    if (at != NULL && l->halo_all != NULL) {
        l->part = l->residual;
        l->residual = (char *)l->part - l->halo_all->first * row;
    }
    return bytes;
}

spmv_status amg_plan_cycle(struct amg *amg)
{
    spmv_status st = SPMV_OK;
    for (int k = 0; k < amg->levels; k++) {
        struct amg_level *l = &amg->level[k];
        const bool last = k + 1 == amg->levels;
        TRY(amg_open_alone(amg, l));
        if (!last || amg->coarsest_values == NULL)
            TRY(plan_own(amg, l, l->halo, l->a, &l->plan));
        TRY(amg_plan_smoother(amg, l));
        if (!last) {
            TRY(plan_own(amg, l, l->halo_p, l->p, &l->plan_p));
            TRY(amg_plan_for(amg, l->halo_r, &l->r, &l->plan_r));
        }
        if (l->d == NULL) {
            void *vectors = NULL;
            TRY(amg_alloc(&l->pool, amg_place_vectors(amg, l, NULL), &vectors));
            amg_place_vectors(amg, l, vectors);
        }
    }
    if (amg->coarsest_values != NULL)
        TRY(amg_plan_for(amg, NULL, &amg->coarsest, &amg->plan_coarsest));
done:
    return st;
}

/* ------------------------------------------------------------- application */

/* Interpolation from aggregates gives errors more energy than the best one would, so the correction is too short. */
static const double LONGER = 1.2;

spmv_status amg_multiply_adding(const struct amg *amg, spmv_plan *plan, const void *alpha, const void *x, void *y,
                                void *z, int64_t rows)
{
    spmv_status st = SPMV_OK;
    spmv_epilogue add;
    if (amg->columns > 1) {
        TRY(spmv_apply(plan, alpha, x, NULL, y));
        return amg->ctx->backend->map_axpby(amg->ctx, amg->type, NULL, y, NULL, z, rows * amg->columns);
    }
    spmv_epilogue_init(&add, sizeof add);
    add.z = z;
    st = spmv_apply_with(plan, alpha, x, NULL, y, &add);
done:
    return st;
}

spmv_status amg_cycle(const struct amg *amg, int k, void *x)
{
    spmv_status st = SPMV_OK;
    const struct amg_level *l = &amg->level[k], *next = l + 1;
    void *changed = NULL;
    if (k + 1 == amg->levels)
        return amg->plan_coarsest != NULL ? spmv_apply(amg->plan_coarsest, NULL, l->residual, NULL, x)
                                          : amg_smooth(amg, l, x, true, &changed);
    if (amg->reversed)
        return amg_cycle_reversed(amg, k, x);
    const union real longer = real_scalar(amg->type, amg->classical ? 1 : LONGER);
    TRY(amg_smooth(amg, l, x, true, &changed));
    TRY(amg_subtract(amg, l, changed));
    TRY(spmv_apply(l->plan_r, NULL, l->residual, NULL, amg_own_in(next)));
    if (next->part != NULL)
        TRY(amg->tools->spread(next->halo_all, next->part, amg->columns));
    TRY(amg_cycle(amg, k + 1, next->x));
    TRY(amg_multiply_adding(amg, l->plan_p, &longer, next->x, l->d, x, amg_own_rows(l))); /* d = P x, x = x + d */
    TRY(amg_smooth(amg, l, x, false, &changed));
done:
    return st;
}

void *amg_own_in(const struct amg_level *l)
{
    return l->part != NULL ? l->part : l->residual;
}

void *amg_own_out(const struct amg *amg)
{
    const struct amg_level *const l = &amg->level[0];
    return (char *)l->x + (l->part != NULL ? l->halo_all->first * amg->columns * amg_type_size(amg) : 0);
}

spmv_status amg_whole_cycle(const struct amg *amg)
{
    spmv_status st = SPMV_OK;
    const struct amg_level *const l = &amg->level[0];
    if (l->part != NULL)
        TRY(amg->tools->spread(l->halo_all, l->part, amg->columns));
    TRY(amg_cycle(amg, 0, l->x));
done:
    return st;
}

/* On ranks. In place of the largest element, the norm of r tells the power of two: it is a sum that does not
 * depend on the number of ranks, and on a GPU its exchange is queued. */
static spmv_status apply_ranks(const struct amg *amg, const void *r, void *z)
{
    spmv_status st = SPMV_OK;
    const spmv_preconditioner *m = amg->m;
    const struct amg_level *l = &amg->level[0];
    void *const to = amg_own_in(l);
    const void *const x = amg_own_out(amg);
    struct amg_scaling s = {.largest = amg->largest, .squared = 1, .from = r, .to = to, .factor = amg->scale};
    if (amg->largest != NULL)
        TRY(amg->ranks->dot(amg->ranks->self, m->type, r, r, amg->largest));
    if (amg->type != m->type)
        TRY(amg_run(m->ctx, AMG_NARROW, amg->type, &s, m->rows));
    else if (m->rows > 0)
        TRY(m->ctx->backend->map(m->ctx, amg->negative ? SPMV_MAP_NEG : SPMV_MAP_COPY, m->type, r, to, m->rows));
    TRY(amg_whole_cycle(amg));
    s.from = x;
    s.to = z;
    if (amg->type != m->type)
        TRY(amg_run(m->ctx, AMG_WIDEN, amg->type, &s, m->rows));
    else if (m->rows > 0)
        TRY(m->ctx->backend->map(m->ctx, SPMV_MAP_COPY, m->type, x, z, m->rows));
done:
    return st;
}

spmv_status amg_apply(void *self, const void *r, void *z)
{
    spmv_status st = SPMV_OK;
    const struct amg *amg = self;
    const spmv_preconditioner *m = amg->m;
    const struct amg_level *l = &amg->level[0];
    if (amg->broken)
        return context_fail(m->ctx, SPMV_ERROR_NOT_POSITIVE, "preconditioner amg: the last new values were refused");
    if (amg->ranks != NULL)
        return apply_ranks(amg, r, z);
    if (amg->type == m->type) {
        TRY(m->ctx->backend->map(m->ctx, amg->negative ? SPMV_MAP_NEG : SPMV_MAP_COPY, m->type, r, l->residual,
                                 m->rows));
        return amg_cycle(amg, 0, z);
    }
    if (amg->largest != NULL)
        TRY(m->ctx->backend->map_reduce(m->ctx, SPMV_MAP_ABS, SPMV_MAX, m->type, r, amg->largest, m->rows,
                                        amg->scratch));
    struct amg_scaling s = {.largest = amg->largest, .from = r, .to = l->residual, .factor = amg->scale};
    TRY(amg_run(m->ctx, AMG_NARROW, amg->type, &s, m->rows));
    TRY(amg_cycle(amg, 0, l->x));
    s.from = l->x;
    s.to = z;
    TRY(amg_run(m->ctx, AMG_WIDEN, amg->type, &s, m->rows));
done:
    return st;
}

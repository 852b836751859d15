/* The smoother of a level: k steps of the Chebyshev iteration for the upper part of the eigenvalues of
 * D^-1 A (precond_chebyshev.c), or of l1-Jacobi, where D has the row sums of |a_ij|. All of it is here:
 * what the set-up finds (amg_find_smoother), the steps (amg_plan_smoother), and the application
 * (amg_smooth). The names of smoothers are checked in precond_amg.c.
 *
 * Of a matrix that is not symmetric: Jacobi by fine (F) and coarse rows (C), F F before the correction and F C F
 * after it. The first two and F C are each a matrix (struct amg_halves).
 *
 * The usual smoother, of degree 2, is one matrix S with the pattern of A, so x = S f and x = x + S f
 * are one product each.
 *
 * The upper end of the interval is a bound of the eigenvalues, not an estimate from below: the cycle is
 * positive definite only with a bound.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>

#include "product/plan_internal.h"
#include "solvers/amg/amg_internal.h"

/* The interval of the smoother: from the bound of the eigenvalues divided by this. */
static const double INTERVAL = 8, LAST_INTERVAL = 30;

/* The degree on the last level, if it is too large to be inverted. */
enum { LAST_DEGREE = 8 };

/* With several near-null-space vectors, row sums of absolute values are far above the eigenvalues. An
 * estimate from below, times this, is used instead. The smoother stands one that is 12 % too low. */
static const double EIGENVALUE_MARGIN = 1.1;

/* The largest eigenvalue of D^-1 A, from below: by which factor the largest element of a vector grows in
 * one of the last steps of the power iteration. Maxima have no order, so all backends have the same. */
static spmv_status estimate_eigenvalue(const struct amg *amg, struct amg_level *l, struct amg_bound *s,
                                       struct amg_pool *work, void *const vectors[2], double *eigenvalue)
{
    enum { STEPS = 16, LAST = 6 };
    spmv_status st = SPMV_OK;
    double host[STEPS + 1] = {0};
    char *largest = NULL;
    TRY(amg_alloc(work, (STEPS + 1) * 8, (void **)&largest));
    s->weight_out = vectors[0];
    TRY(run_power_begin(amg, s, l->rows));
    TRY(amg_fetch_vector(amg, l, vectors[0]));
    for (int k = 0; k <= STEPS; k++) {
        const int64_t at = k * amg_type_size(amg);
        s->weight = vectors[k % 2];
        s->weight_out = vectors[(k + 1) % 2];
        TRY(spmv_map_reduce(amg->ctx, SPMV_MAP_ABS, SPMV_MAX, amg->type, s->weight, largest + at, l->rows));
        if (k < STEPS) {
            TRY(run_power(amg, s, l->rows));
            TRY(amg_fetch_vector(amg, l, s->weight_out));
        }
    }
    TRY(amg_read(amg, largest, (STEPS + 1) * amg_type_size(amg), host));
    for (int k = STEPS; k >= 0; k--) /* in place: the last first */
        host[k] = real_at(amg->type, host, k);
    TRY(amg_largest_of_ranks(amg, host, STEPS + 1));
    *eigenvalue = 0;
    for (int k = STEPS - LAST; k < STEPS; k++)
        *eigenvalue = fmax(*eigenvalue, host[k + 1] / host[k]);
done:
    return st;
}

/* Where amg->bounds has the bound of the level. */
static void *place_of_bound(const struct amg *amg, const struct amg_level *l)
{
    return (char *)amg->bounds + (l - amg->level) * amg_type_size(amg);
}

spmv_status amg_find_smoother(struct amg *amg, struct amg_level *l, bool coarsens)
{
    spmv_status st = SPMV_OK;
    struct amg_pool work = {.ctx = amg->ctx};
    const struct amg_csr a = amg_rows_of(&l->a);
    void *sums = NULL, *next = NULL, *ratio = NULL;
    if (l->diagonal == NULL) {
        TRY(amg_alloc_vector(amg, &l->pool, l->rows, &l->diagonal));
        TRY(amg_alloc_vector(amg, &l->pool, l->rows, &l->root));
        TRY(amg_alloc_vector(amg, &l->pool, l->rows, &l->inverse));
    }
    TRY(amg_alloc_vector(amg, &work, l->rows, &sums));
    TRY(amg_alloc_vector(amg, &work, l->rows, &next));
    TRY(amg_alloc_vector(amg, &work, l->rows, &ratio));
    const struct amg_diagonal d = {.a = a,
                                   .nnz = l->a.nnz,
                                   .least = l->least,
                                   .l1 = amg->l1,
                                   .bounded = amg->general,
                                   .diagonal = l->diagonal,
                                   .root = l->root,
                                   .inverse = l->inverse,
                                   .weight = sums};
    TRY(run_diagonal(amg, &d, l->rows));
    TRY(amg_fetch_vector(amg, l, l->diagonal));
    TRY(amg_fetch_vector(amg, l, l->root));
    TRY(amg_fetch_vector(amg, l, l->inverse));
    TRY(amg_fetch_vector(amg, l, sums));
    if (coarsens)
        TRY(amg_alloc_vector(amg, &l->work, l->rows, &l->strongest));
    if (amg->general) {
        l->bound = 1; /* is not used */
        goto done;
    }
    struct amg_bound b = {.a = a,
                          .nnz = l->a.nnz,
                          .diagonal = l->diagonal,
                          .root = l->root,
                          .weight = sums,
                          .weight_out = next,
                          .ratio = ratio,
                          .either = l->near_null != NULL,
                          .first = amg_first_row(l),
                          .strongest = l->strongest};
    TRY(run_bound(amg, &b, l->rows));
    if (l->strongest != NULL)
        TRY(amg_fetch_vector(amg, l, l->strongest));
    TRY(spmv_reduce(amg->ctx, SPMV_MAX, amg->type, ratio, place_of_bound(amg, l), l->rows));
    if (l->nulls > 0) {
        union real bound = {0};
        double eigenvalue = 0;
        TRY(amg_read(amg, place_of_bound(amg, l), amg_type_size(amg), &bound));
        l->bound = real_at(amg->type, &bound, 0);
        TRY(amg_largest_of_ranks(amg, &l->bound, 1));
        TRY(estimate_eigenvalue(amg, l, &b, &work, (void *[]){sums, next}, &eigenvalue));
        if (isfinite(l->bound) && EIGENVALUE_MARGIN * eigenvalue < l->bound)
            l->bound = EIGENVALUE_MARGIN * eigenvalue;
    }
done:
    amg_release(&work);
    return st;
}

/* With l1-Jacobi the eigenvalues are at most 1. */
spmv_status amg_read_bounds(struct amg *amg)
{
    spmv_status st = SPMV_OK;
    double bounds[AMG_LEVELS] = {0};
    if (!amg->l1 && !amg->general)
        TRY(amg_read(amg, amg->bounds, amg->levels * amg_type_size(amg), bounds));
    for (int k = amg->levels - 1; k >= 0; k--) /* in place: the last first */
        bounds[k] = real_at(amg->type, bounds, k);
    TRY(amg_largest_of_ranks(amg, bounds, amg->levels));
    for (int k = 0; k < amg->levels; k++) {
        struct amg_level *l = &amg->level[k];
        if (amg->l1)
            l->bound = 1;
        else if (l->nulls == 0 && !amg->general)
            l->bound = bounds[k];
        if (!isfinite(l->bound))
            return amg_not_positive(amg, l, AMG_OVERFLOWN);
    }
done:
    return st;
}

/* Two steps of a smoother are one matrix: x = (1 + before_1) factor_0 D^-1 f + factor_1 D^-1 (f -
 * factor_0 A D^-1 f). */
static spmv_status plan_as_matrix(struct amg *amg, struct amg_level *l)
{
    spmv_status st = SPMV_OK;
    if (l->smoother == NULL)
        TRY(amg_alloc_vector(amg, &l->pool, l->a.nnz, &l->smoother));
    const struct amg_smoother s = {.a = amg_rows_of(&l->a),
                                   .nnz = l->a.nnz,
                                   .inverse = l->inverse,
                                   .factor = (1 + l->step[1].before) * l->step[0].factor + l->step[1].factor,
                                   .other = l->step[0].factor * l->step[1].factor,
                                   .to = l->smoother};
    TRY(run_smoother(amg, &s, l->rows));
    const spmv_csr a = amg_own_matrix(l, amg_with_values(amg, l->a, l->smoother));
    if (l->plan_smoother == NULL)
        TRY(plan_share(l->plan, l->smoother, &l->plan_smoother));
    if (l->plan_smoother == NULL || amg->updates)
        TRY(amg_plan_for(amg, l->halo, &a, &l->plan_smoother));
done:
    return st;
}

/* Memory and plans for two steps before the correction and two after it, as matrices. */
static spmv_status plan_halves(struct amg *amg, struct amg_level *l)
{
    spmv_status st = SPMV_OK;
    struct amg_pool work = {.ctx = amg->ctx};
    struct amg_halves s = {.a = amg_rows_of(&l->a), .inverse = l->inverse, .aggregate = l->aggregate};
    if (l->fine_inverse == NULL)
        TRY(amg_alloc_vector(amg, &l->pool, l->rows, &l->fine_inverse));
    s.fine_inverse = l->fine_inverse;
    for (int k = 0; k < 2; k++)
        TRY(amg_alloc(&work, (l->rows + 1) * 8, (void **)&s.count[k]));
    TRY(run_halves_count(amg, &s, l->rows));
    if (l->before_values == NULL) {
        TRY(amg_new_rows(amg, &l->pool, l->rows, s.count[0], l->rows, INT64_MAX, &l->before, &l->before_values));
        TRY(amg_new_rows(amg, &l->pool, l->rows, s.count[1], l->rows, INT64_MAX, &l->after, &l->after_values));
    }
    s.before = amg_rows_of(&l->before);
    s.after = amg_rows_of(&l->after);
    TRY(run_halves_fill(amg, &s, l->rows));
    TRY(amg_plan_for(amg, NULL, &l->before, &l->plan_smoother));
    TRY(amg_plan_for(amg, NULL, &l->after, &l->plan_after));
done:
    amg_release(&work);
    return st;
}

spmv_status amg_plan_smoother(struct amg *amg, struct amg_level *l)
{
    const bool last = l == &amg->level[amg->levels - 1], inverted = last && amg->coarsest_values != NULL;
    l->degree = !last ? amg->degree : inverted ? 0 : (int)max_i64(LAST_DEGREE, amg->degree);
    if (amg->general && !last)
        return plan_halves(amg, l);
    if (amg->l1 || amg->general)
        for (int i = 0; i <= l->degree; i++)
            l->step[i] = (struct precond_coefficients){0, 1};
    else
        precond_chebyshev_steps(l->bound / (last ? LAST_INTERVAL : INTERVAL), l->bound, l->degree, l->step);
    return !last && l->degree == 2 ? plan_as_matrix(amg, l) : SPMV_OK;
}

/* ------------------------------------------------------------------ application */

spmv_status amg_subtract(const struct amg *amg, const struct amg_level *l, const void *v)
{
    const union real minus = real_scalar(amg->type, -1), one = real_scalar(amg->type, 1);
    return spmv_apply(l->plan, &minus, v, &one, l->residual);
}

/* Of a matrix that is not symmetric: two steps for rows that are not coarse. */
static spmv_status smooth_before(const struct amg_level *l, void *x, void **changed)
{
    *changed = x;
    return spmv_apply(l->plan_smoother, NULL, l->residual, NULL, x);
}

/* One step for these rows, one for the coarse ones, and one more for these. */
static spmv_status smooth_after(const struct amg *amg, const struct amg_level *l, void *x)
{
    spmv_status st = SPMV_OK;
    const struct precond_step step = {
        .inverse = l->fine_inverse, .residual = l->residual, .d = l->d, .z = x, .factor = 1};
    spmv_epilogue add;
    spmv_epilogue_init(&add, sizeof add);
    add.z = x;
    TRY(amg_subtract(amg, l, l->d));
    TRY(spmv_apply_with(l->plan_after, NULL, l->residual, NULL, l->d, &add)); /* d = S f, x = x + d */
    TRY(amg_subtract(amg, l, l->d));
    TRY(precond_smooth_step(amg->ctx, amg->type, &step, l->rows));
done:
    return st;
}

spmv_status amg_smooth(const struct amg *amg, const struct amg_level *l, void *x, bool from_zero, void **changed)
{
    spmv_status st = SPMV_OK;
    const union real one = real_scalar(amg->type, 1);
    if (l->plan_after != NULL)
        return from_zero ? smooth_before(l, x, changed) : smooth_after(amg, l, x);
    if (l->plan_smoother != NULL) {
        *changed = x;
        if (!from_zero)
            TRY(amg_subtract(amg, l, l->d));
        return spmv_apply(l->plan_smoother, NULL, l->residual, from_zero ? NULL : &one, x);
    }
    struct precond_step step = {
        .inverse = amg_own_part(amg, l, l->inverse), .residual = l->residual, .d = l->d, .z = x};
    *changed = l->d;
    for (int k = 0; k < l->degree; k++) {
        if (k > 0 || !from_zero)
            TRY(amg_subtract(amg, l, l->d));
        step.first = k == 0 && from_zero;
        step.before = l->step[k].before;
        step.factor = l->step[k].factor;
        if (amg_own_rows(l) > 0)
            TRY(precond_smooth_step(amg->ctx, amg->type, &step, amg_own_rows(l)));
    }
done:
    return st;
}

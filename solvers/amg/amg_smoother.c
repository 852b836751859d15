/* The smoother of a level: k steps of the Chebyshev iteration for the upper part of the eigenvalues of
 * E^-1 A (precond_chebyshev.c), where E bounds them by 1 (the step bound), or of l1-Jacobi, where E has the row sums
 * of |a_ij|. With several near-null-space vectors E is the diagonal. All of it is here:
 * what the set-up finds (amg_find_smoother), the steps (amg_plan_smoother), and the application
 * (amg_smooth). The names of smoothers are checked in precond_amg.c.
 *
 * Of a matrix that is not symmetric: Jacobi by fine (F) and coarse rows (C), F F before the correction and F C F
 * after it. The first two and F C are each a matrix (struct amg_halves).
 *
 * Two steps are one matrix S with the pattern of A, so x = S f and x = x + S f are one product each. With degree
 * 3 the third step is beside it.
 *
 * The upper end of the interval is a bound of the eigenvalues, not an estimate from below: the cycle is
 * positive definite only with a bound.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>

#include "product/plan_internal.h"
#include "solvers/amg/amg_internal.h"

/* The interval of the smoother: from the bound of the eigenvalues divided by this. */
static const double INTERVAL = 9, INTERVAL_OF_3 = 12, LAST_INTERVAL = 30;

/* The steps, unless they are given: two. With aggregates of rows, three on the coarser levels, which are small; on
 * the first level if its bound is above IRREGULAR, where an M-matrix has 2: then some rows have large positive
 * entries, and two steps leave errors there. */
enum { USUAL_DEGREE = 2, HIGHER_DEGREE = 3 };
static const double IRREGULAR = 2.25;

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
                          .strongest = l->strongest,
                          .inverse = amg->l1 || l->nulls > 0 ? NULL : l->inverse};
    TRY(run_bound(amg, &b, l->rows));
    if (l->strongest != NULL)
        TRY(amg_fetch_vector(amg, l, l->strongest));
    if (b.inverse != NULL)
        TRY(amg_fetch_vector(amg, l, b.inverse));
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

/* With l1-Jacobi and with E (see the step bound) the eigenvalues are at most 1. */
spmv_status amg_read_bounds(struct amg *amg)
{
    spmv_status st = SPMV_OK;
    double bounds[AMG_LEVELS] = {0};
    if (!amg->l1 && !amg->general)
        TRY(amg_read(amg, amg->bounds, amg->levels * amg_type_size(amg), bounds));
    for (int k = amg->levels - 1; k >= 0; k--) /* in place: the last first */
        bounds[k] = real_at(amg->type, bounds, k);
    TRY(amg_largest_of_ranks(amg, bounds, amg->levels));
    amg->irregular = bounds[0] > IRREGULAR;
    for (int k = 0; k < amg->levels; k++) {
        struct amg_level *l = &amg->level[k];
        const bool read = !amg->l1 && !amg->general && l->nulls == 0;
        if (amg->l1 || read)
            l->bound = 1;
        if (!isfinite(read ? bounds[k] : l->bound))
            return amg_not_positive(amg, l, AMG_OVERFLOWN);
    }
done:
    return st;
}

/* Two steps of a smoother are one matrix. Those of the Chebyshev iteration are the ones for its outer roots,
 * c - t and c + t: I - S A = (I - D^-1 A / (c - t)) (I - D^-1 A / (c + t)). A third step is for the root c. */
static spmv_status plan_as_matrix(struct amg *amg, struct amg_level *l, double lowest)
{
    spmv_status st = SPMV_OK;
    const double center = (l->bound + lowest) / 2, radius = (l->bound - lowest) / 2;
    const double outer = center * center - (l->degree == 2 ? 0.5 : 0.75) * radius * radius;
    if (l->smoother == NULL)
        TRY(amg_alloc_vector(amg, &l->pool, l->a.nnz, &l->smoother));
    const struct amg_smoother s = {.a = amg_rows_of(&l->a),
                                   .nnz = l->a.nnz,
                                   .inverse = l->inverse,
                                   .factor = amg->l1 ? 2 : 2 * center / outer,
                                   .other = amg->l1 ? 1 : 1 / outer,
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

/* Rows of a part of A. On ranks with a GPU by a method that needs nothing of the chunks of A. */
static spmv_status plan_half(const struct amg *amg, const struct amg_level *l, const spmv_csr *a, spmv_plan **plan)
{
    spmv_plan_options o;
    if (l->halo == NULL)
        return amg_plan_for(amg, NULL, a, plan);
    spmv_plan_options_init(&o, sizeof o);
    o.type = amg->type;
    o.method = context_on_device(amg->ctx) ? "vector" : NULL;
    return amg->tools->plan(l->halo, a, &o, plan);
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
    for (int k = 0; k < 2; k++)
        TRY(amg_clear_others(amg, l, s.count[k]));
    if (l->before_values == NULL) {
        TRY(amg_new_rows(amg, &l->pool, l->rows, s.count[0], l->rows, INT64_MAX, &l->before, &l->before_values));
        TRY(amg_new_rows(amg, &l->pool, l->rows, s.count[1], l->rows, INT64_MAX, &l->after, &l->after_values));
    }
    s.before = amg_rows_of(&l->before);
    s.after = amg_rows_of(&l->after);
    TRY(run_halves_fill(amg, &s, l->rows));
    const spmv_csr before = amg_own_matrix(l, l->before), after = amg_own_matrix(l, l->after);
    TRY(plan_half(amg, l, &before, &l->plan_smoother));
    TRY(plan_half(amg, l, &after, &l->plan_after));
done:
    amg_release(&work);
    return st;
}

static int degree_of(const struct amg *amg, const struct amg_level *l)
{
    if (amg->degree > 0)
        return amg->degree;
    const bool higher = !amg->l1 && !amg->classical && amg->nulls == 0 && (l > amg->level || amg->irregular);
    return higher ? HIGHER_DEGREE : USUAL_DEGREE;
}

spmv_status amg_plan_smoother(struct amg *amg, struct amg_level *l)
{
    const bool last = l == &amg->level[amg->levels - 1], inverted = last && amg->coarsest_values != NULL;
    if (l->degree == 0 && !inverted) /* new values do not change it */
        l->degree = last ? (int)max_i64(LAST_DEGREE, amg->degree) : degree_of(amg, l);
    if (amg->general && !last)
        return plan_halves(amg, l);
    const double lowest = l->bound / (last ? LAST_INTERVAL : l->degree == 3 ? INTERVAL_OF_3 : INTERVAL);
    if (amg->l1 || amg->general)
        for (int i = 0; i <= l->degree; i++)
            l->step[i] = (struct precond_coefficients){0, 1};
    else
        precond_chebyshev_steps(lowest, l->bound, l->degree, l->step);
    return !last && (l->degree == 2 || l->degree == 3) ? plan_as_matrix(amg, l, lowest) : SPMV_OK;
}

/* ------------------------------------------------------------------ application */

spmv_status amg_subtract(const struct amg *amg, const struct amg_level *l, const void *v)
{
    const union real minus = real_scalar(amg->type, -1), one = real_scalar(amg->type, 1);
    return spmv_apply(l->plan, &minus, v, &one, l->residual);
}

static spmv_status smooth_step(const struct amg *amg, const struct amg_level *l, const struct precond_step *step)
{
    const int64_t rows = amg_own_rows(l);
    struct precond_step of_columns = *step;
    of_columns.columns = amg->columns;
    return rows > 0 ? precond_smooth_step(amg->ctx, amg->type, &of_columns, rows) : SPMV_OK;
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
        .inverse = amg_own_part(amg, l, l->fine_inverse), .residual = l->residual, .d = l->d, .z = x, .factor = 1};
    TRY(amg_subtract(amg, l, l->d));
    /* d = S f, x = x + d */
    TRY(amg_multiply_adding(amg, l->plan_after, NULL, l->residual, l->d, x, amg_own_rows(l)));
    TRY(amg_subtract(amg, l, l->d));
    TRY(smooth_step(amg, l, &step));
done:
    return st;
}

/* Two steps as a matrix. With a third one, that is the first before the correction and the last after it. */
static spmv_status smooth_by_matrix(const struct amg *amg, const struct amg_level *l, void *x, bool from_zero,
                                    void **changed)
{
    spmv_status st = SPMV_OK;
    const union real one = real_scalar(amg->type, 1);
    struct precond_step third = {.first = from_zero,
                                 .inverse = amg_own_part(amg, l, l->inverse),
                                 .residual = l->residual,
                                 .d = l->d,
                                 .z = x,
                                 .factor = l->step[0].factor};
    *changed = l->degree == 2 ? x : l->d;
    if (l->degree == 3 && from_zero)
        TRY(smooth_step(amg, l, &third));
    if (l->degree == 3 || !from_zero)
        TRY(amg_subtract(amg, l, l->d));
    if (l->degree == 2)
        return spmv_apply(l->plan_smoother, NULL, l->residual, from_zero ? NULL : &one, x);
    /* d = S f, x = x + d */
    TRY(amg_multiply_adding(amg, l->plan_smoother, NULL, l->residual, l->d, x, amg_own_rows(l)));
    if (!from_zero) {
        TRY(amg_subtract(amg, l, l->d));
        TRY(smooth_step(amg, l, &third));
    }
done:
    return st;
}

spmv_status amg_smooth(const struct amg *amg, const struct amg_level *l, void *x, bool from_zero, void **changed)
{
    spmv_status st = SPMV_OK;
    if (l->plan_after != NULL)
        return from_zero ? smooth_before(l, x, changed) : smooth_after(amg, l, x);
    if (l->plan_smoother != NULL)
        return smooth_by_matrix(amg, l, x, from_zero, changed);
    struct precond_step step = {
        .inverse = amg_own_part(amg, l, l->inverse), .residual = l->residual, .d = l->d, .z = x};
    *changed = l->d;
    for (int k = 0; k < l->degree; k++) {
        if (k > 0 || !from_zero)
            TRY(amg_subtract(amg, l, l->d));
        step.first = k == 0 && from_zero;
        step.before = l->step[k].before;
        step.factor = l->step[k].factor;
        TRY(smooth_step(amg, l, &step));
    }
done:
    return st;
}

/* The recurrences lsmr, lsqr and cgls for min ||B y - r||, from y = 0 (or from the y whose residual is
 * r). Their scalars: krylov_scalars_least_squares.h.
 *
 * lsmr and lsqr: the bidiagonalization of Golub and Kahan,
 *     u_next = B v - alpha u,  beta = |u_next|;    v_next = B'u - beta v,  alpha = |v_next|
 * lsmr:  hbar = h - c1 hbar,  y = y + c2 hbar,  h = v - c3 h      the smallest |B'r| in the Krylov space
 * lsqr:  y = y + c1 w,  w = v - c2 w                              the smallest |r|
 * cgls:  q = B p,  r = r - alpha q,  y = y + alpha p,  s = B'r - damp^2 y,  p = s + beta p
 *
 * Work:    a step: one product with B and one with B'. Passes over vectors of rows: 3 (cgls 4 with the
 *          norm of q); of columns: lsmr 10, lsqr and cgls 8.
 * Memory:  2 vectors of rows, 4 of columns, lsqr 3, besides x and b.
 *
 * Several right-hand sides: products for all, then the passes of one after the other. A vector of a column is an array
 * of its own, so its passes have the bits of a solve alone.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "product/plan_internal.h"
#include "solvers/least_squares/least_squares_internal.h"

/* to = op(B) from, of the plan, for all columns. Does nothing once the run has ended. */
static spmv_status multiply(const struct least_squares_run *r, const spmv_plan *plan, const void *from, void *to)
{
    struct plan_product product = plan_product_of(plan, NULL, from, NULL, to);
    product.stop = r->ended;
    return plan->by_columns.vectors > 0 ? by_columns_multiply(plan, &product) : plan_multiply(plan, &product);
}

/* The first of the columns. */
static struct least_squares_run *run_of(struct krylov_loop *g)
{
    return (struct least_squares_run *)g;
}

/* pass(column), for all columns. */
static spmv_status each(const struct least_squares_run *r, spmv_status (*pass)(const struct least_squares_run *))
{
    spmv_status st = SPMV_OK;
    for (int v = 0; v < r->columns; v++)
        TRY(pass(&r[v]));
done:
    return st;
}

/* The largest numbers of the columns that have made the iteration. */
static void tell(struct krylov_loop *g, int64_t base, int64_t iteration)
{
    struct least_squares_run *const r = run_of(g);
    const double scale = g->s.scale;
    double residual = 0, gradient = 0;
    for (int v = 0; v < r->columns; v++) {
        const struct krylov_state *const state = g->states != NULL ? &g->states[v] : &g->host;
        const double *const at = &state->history[2 * iteration % KRYLOV_RING];
        if (state->iterations < iteration)
            continue;
        residual =
            v > 0 && krylov_unscaled(&r[v].g.s, at[0]) <= residual ? residual : krylov_unscaled(&r[v].g.s, at[0]);
        gradient =
            v > 0 && krylov_unscaled(&r[v].g.s, at[1]) <= gradient ? gradient : krylov_unscaled(&r[v].g.s, at[1]);
    }
    r->gradient = gradient;
    g->s.scale = 0; /* krylov_tell takes the units of this column */
    krylov_tell(&g->s, base + iteration, residual);
    g->s.scale = scale;
}

/* ------------------------------------------------------------- bidiagonalization */

static spmv_status residual_norm(const struct least_squares_run *r)
{
    return krylov_sum(&r->rows, r->vector[LS_U], r->vector[LS_U], LEAST_SQUARES_RESIDUAL); /* beta */
}

static spmv_status first_directions(const struct least_squares_run *r)
{
    spmv_status st = SPMV_OK;
    void *const v = r->vector[LS_V], *const w = r->vector[LS_W], *const h = r->vector[LS_H],
                *const hbar = r->vector[LS_HBAR];
    struct krylov_combination first = {.finish = BIDIAGONAL_BEGIN}, direction = {.finish = FINISH_NOTHING};
    pass_scale(&first, C_ATU, w, v); /* v = B'u / beta */
    pass_dot(&first, v, v);
    TRY(krylov_combine(&r->g.v, &first));
    pass_scale(&direction, C_H_V, v, h); /* h = v / alpha */
    TRY(krylov_combine(&r->g.v, &direction));
    if (hbar != NULL) /* all bits 0, also as floats */
        TRY(spmv_map_index(r->g.s.ctx, r->g.s.part, &(const double){0}, NULL, hbar, r->g.s.count));
done:
    return st;
}

/* The first u = r, v and h (lsqr: w). */
static spmv_status begin_bidiagonal(struct krylov_loop *g)
{
    spmv_status st = SPMV_OK;
    const struct least_squares_run *const r = run_of(g);
    TRY(each(r, residual_norm));
    TRY(multiply(r, r->solver->transposed, r->vector[LS_U], r->vector[LS_W]));
    TRY(each(r, first_directions));
done:
    return st;
}

static spmv_status next_u(const struct least_squares_run *r)
{
    struct krylov_combination left = {.finish = BIDIAGONAL_BETA};
    void *const u = r->vector[LS_U];
    pass_axpby(&left, C_AV, r->vector[LS_Q], C_KEEP_U, u, u);
    pass_dot(&left, u, u);
    return krylov_combine(&r->rows, &left);
}

/* u = B v - alpha u; w = B'u */
static spmv_status step_left(const struct least_squares_run *r)
{
    spmv_status st = SPMV_OK;
    TRY(multiply(r, r->solver->plan, r->vector[LS_V], r->vector[LS_Q]));
    TRY(each(r, next_u));
    TRY(multiply(r, r->solver->transposed, r->vector[LS_U], r->vector[LS_W]));
done:
    return st;
}

/* v = w - beta v */
static spmv_status next_v(const struct least_squares_run *r, enum krylov_finish finish)
{
    struct krylov_combination right = {.finish = finish};
    void *const v = r->vector[LS_V];
    pass_axpby(&right, C_ATU, r->vector[LS_W], C_KEEP_V, v, v);
    pass_dot(&right, v, v);
    return krylov_combine(&r->g.v, &right);
}

static spmv_status iterate_lsmr(const struct least_squares_run *r)
{
    spmv_status st = SPMV_OK;
    void *const v = r->vector[LS_V], *const h = r->vector[LS_H], *const hbar = r->vector[LS_HBAR], *const y = r->y;
    struct krylov_combination iterate = {.finish = LSMR_STEP};
    TRY(next_v(r, LSMR_ALPHA));
    pass_axpbypcz(&iterate, C_ONE, y, C_X_H, h, C_X_HBAR, hbar, y);
    pass_axpby(&iterate, C_ONE, h, C_HBAR, hbar, hbar);
    pass_axpby(&iterate, C_H, h, C_H_V, v, h);
    pass_dot(&iterate, y, y);
    TRY(krylov_combine(&r->g.v, &iterate));
done:
    return st;
}

static spmv_status step_lsmr(struct krylov_loop *g, int64_t k)
{
    spmv_status st = SPMV_OK;
    (void)k;
    TRY(step_left(run_of(g)));
    TRY(each(run_of(g), iterate_lsmr));
done:
    return st;
}

static spmv_status iterate_lsqr(const struct least_squares_run *r)
{
    spmv_status st = SPMV_OK;
    void *const v = r->vector[LS_V], *const w = r->vector[LS_H], *const y = r->y;
    struct krylov_combination iterate = {.finish = LSQR_STEP};
    TRY(next_v(r, LSQR_ALPHA));
    pass_axpby(&iterate, C_ONE, y, C_X_H, w, y);
    pass_axpby(&iterate, C_H, w, C_H_V, v, w);
    pass_dot(&iterate, y, y);
    pass_dot(&iterate, w, w);
    TRY(krylov_combine(&r->g.v, &iterate));
done:
    return st;
}

static spmv_status step_lsqr(struct krylov_loop *g, int64_t k)
{
    spmv_status st = SPMV_OK;
    (void)k;
    TRY(step_left(run_of(g)));
    TRY(each(run_of(g), iterate_lsqr));
done:
    return st;
}

/* ------------------------------------------------------------- cgls */

static spmv_status first_cgls(const struct least_squares_run *r)
{
    void *const s = r->vector[LS_V];
    struct krylov_combination first = {.finish = CGLS_BEGIN};
    pass_copy(&first, s, r->vector[LS_H]);
    pass_dot(&first, s, s);
    return krylov_combine(&r->g.v, &first);
}

/* The first s = B'r and p. */
static spmv_status begin_cgls(struct krylov_loop *g)
{
    spmv_status st = SPMV_OK;
    const struct least_squares_run *const r = run_of(g);
    TRY(each(r, residual_norm));
    TRY(multiply(r, r->solver->transposed, r->vector[LS_U], r->vector[LS_V]));
    TRY(each(r, first_cgls));
done:
    return st;
}

static spmv_status next_residual(const struct least_squares_run *r)
{
    spmv_status st = SPMV_OK;
    void *const residual = r->vector[LS_U], *const q = r->vector[LS_Q];
    struct krylov_combination update = {.finish = CGLS_RESIDUAL};
    TRY(krylov_sum(&r->rows, q, q, CGLS_DELTA));
    pass_axpby(&update, C_ONE, residual, C_MINUS_STEP, q, residual);
    pass_dot(&update, residual, residual);
    TRY(krylov_combine(&r->rows, &update));
done:
    return st;
}

static spmv_status iterate_cgls(const struct least_squares_run *r)
{
    spmv_status st = SPMV_OK;
    void *const s = r->vector[LS_V], *const w = r->vector[LS_W], *const p = r->vector[LS_H], *const y = r->y;
    struct krylov_combination iterate = {.finish = CGLS_STEP}, direction = {.finish = CGLS_DIRECTION};
    pass_axpby(&iterate, C_ONE, y, C_STEP, p, y);
    if (r->solver->damp > 0) /* the new y is y + alpha p */
        pass_axpbypcz(&iterate, C_ONE, w, C_DAMP, y, C_DAMP_STEP, p, s);
    else
        pass_copy(&iterate, w, s);
    pass_dot(&iterate, s, s);
    pass_dot(&iterate, y, y);
    TRY(krylov_combine(&r->g.v, &iterate));
    pass_axpby(&direction, C_ONE, s, C_CONJUGATE, p, p);
    pass_dot(&direction, p, p);
    TRY(krylov_combine(&r->g.v, &direction));
done:
    return st;
}

static spmv_status step_cgls(struct krylov_loop *g, int64_t k)
{
    spmv_status st = SPMV_OK;
    const struct least_squares_run *const r = run_of(g);
    (void)k;
    TRY(multiply(r, r->solver->plan, r->vector[LS_H], r->vector[LS_Q]));
    TRY(each(r, next_residual));
    TRY(multiply(r, r->solver->transposed, r->vector[LS_U], r->vector[LS_W]));
    TRY(each(r, iterate_cgls));
done:
    return st;
}

static int six(const struct krylov_loop *g)
{
    (void)g;
    return LS_VECTORS;
}

static int five(const struct krylov_loop *g)
{
    (void)g;
    return LS_VECTORS - 1;
}

const struct krylov_solver least_squares_lsmr = {
    .name = "lsmr", .vectors = six, .begin = begin_bidiagonal, .step = step_lsmr, .tell = tell};
const struct krylov_solver least_squares_lsqr = {
    .name = "lsqr", .vectors = five, .begin = begin_bidiagonal, .step = step_lsqr, .tell = tell};
const struct krylov_solver least_squares_cgls = {
    .name = "cgls", .vectors = five, .begin = begin_cgls, .step = step_cgls, .tell = tell};

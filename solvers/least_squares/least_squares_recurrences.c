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
 * SPDX-License-Identifier: BSD-3-Clause */
#include "product/plan_internal.h"
#include "solvers/least_squares/least_squares_internal.h"

/* to = op(B) from, of the plan. Does nothing once the run has ended. */
static spmv_status multiply(const struct least_squares_run *r, const spmv_plan *plan, const void *from, void *to)
{
    struct plan_product product = plan_product_of(plan, NULL, from, NULL, to);
    product.stop = &r->g.v.state->ending;
    return plan_multiply(plan, &product);
}

static const struct least_squares_run *run_of(const struct krylov_loop *g)
{
    return (const struct least_squares_run *)g;
}

static void tell(struct krylov_loop *g, int64_t base, int64_t iteration)
{
    struct least_squares_run *const r = (struct least_squares_run *)g;
    r->gradient = krylov_unscaled(&g->s, g->host.history[(2 * iteration + 1) % KRYLOV_RING]);
    krylov_tell(&g->s, base + iteration, g->host.history[2 * iteration % KRYLOV_RING]);
}

/* ------------------------------------------------------------- bidiagonalization */

/* The first u = r, v and h (lsqr: w). */
static spmv_status begin_bidiagonal(struct krylov_loop *g)
{
    spmv_status st = SPMV_OK;
    const struct least_squares_run *const r = run_of(g);
    void *const u = r->vector[LS_U], *const v = r->vector[LS_V], *const w = r->vector[LS_W], *const h = r->vector[LS_H],
                *const hbar = r->vector[LS_HBAR];
    struct krylov_combination first = {.finish = BIDIAGONAL_BEGIN}, direction = {.finish = FINISH_NOTHING};
    TRY(krylov_sum(&r->rows, u, u, LEAST_SQUARES_RESIDUAL)); /* beta */
    TRY(multiply(r, r->solver->transposed, u, w));
    pass_scale(&first, C_ATU, w, v); /* v = B'u / beta */
    pass_dot(&first, v, v);
    TRY(krylov_combine(&g->v, &first));
    pass_scale(&direction, C_H_V, v, h); /* h = v / alpha */
    TRY(krylov_combine(&g->v, &direction));
    if (hbar != NULL) /* all bits 0, also as floats */
        TRY(spmv_map_index(g->s.ctx, g->s.part, &(const double){0}, NULL, hbar, g->s.count));
done:
    return st;
}

static spmv_status step_bidiagonal(const struct least_squares_run *r, enum krylov_finish finish)
{
    spmv_status st = SPMV_OK;
    void *const u = r->vector[LS_U], *const q = r->vector[LS_Q], *const v = r->vector[LS_V], *const w = r->vector[LS_W];
    struct krylov_combination left = {.finish = BIDIAGONAL_BETA}, right = {.finish = finish};
    TRY(multiply(r, r->solver->plan, v, q));
    pass_axpby(&left, C_AV, q, C_KEEP_U, u, u);
    pass_dot(&left, u, u);
    TRY(krylov_combine(&r->rows, &left));
    TRY(multiply(r, r->solver->transposed, u, w));
    pass_axpby(&right, C_ATU, w, C_KEEP_V, v, v);
    pass_dot(&right, v, v);
    TRY(krylov_combine(&r->g.v, &right));
done:
    return st;
}

static spmv_status step_lsmr(struct krylov_loop *g, int64_t k)
{
    spmv_status st = SPMV_OK;
    const struct least_squares_run *const r = run_of(g);
    void *const v = r->vector[LS_V], *const h = r->vector[LS_H], *const hbar = r->vector[LS_HBAR], *const y = r->y;
    struct krylov_combination iterate = {.finish = LSMR_STEP};
    (void)k;
    TRY(step_bidiagonal(r, LSMR_ALPHA));
    pass_axpbypcz(&iterate, C_ONE, y, C_X_H, h, C_X_HBAR, hbar, y);
    pass_axpby(&iterate, C_ONE, h, C_HBAR, hbar, hbar);
    pass_axpby(&iterate, C_H, h, C_H_V, v, h);
    pass_dot(&iterate, y, y);
    TRY(krylov_combine(&g->v, &iterate));
done:
    return st;
}

static spmv_status step_lsqr(struct krylov_loop *g, int64_t k)
{
    spmv_status st = SPMV_OK;
    const struct least_squares_run *const r = run_of(g);
    void *const v = r->vector[LS_V], *const w = r->vector[LS_H], *const y = r->y;
    struct krylov_combination iterate = {.finish = LSQR_STEP};
    (void)k;
    TRY(step_bidiagonal(r, LSQR_ALPHA));
    pass_axpby(&iterate, C_ONE, y, C_X_H, w, y);
    pass_axpby(&iterate, C_H, w, C_H_V, v, w);
    pass_dot(&iterate, y, y);
    pass_dot(&iterate, w, w);
    TRY(krylov_combine(&g->v, &iterate));
done:
    return st;
}

/* ------------------------------------------------------------- cgls */

/* The first s = B'r and p. */
static spmv_status begin_cgls(struct krylov_loop *g)
{
    spmv_status st = SPMV_OK;
    const struct least_squares_run *const r = run_of(g);
    void *const residual = r->vector[LS_U], *const s = r->vector[LS_V], *const p = r->vector[LS_H];
    struct krylov_combination first = {.finish = CGLS_BEGIN};
    TRY(krylov_sum(&r->rows, residual, residual, LEAST_SQUARES_RESIDUAL));
    TRY(multiply(r, r->solver->transposed, residual, s));
    pass_copy(&first, s, p);
    pass_dot(&first, s, s);
    TRY(krylov_combine(&g->v, &first));
done:
    return st;
}

static spmv_status step_cgls(struct krylov_loop *g, int64_t k)
{
    spmv_status st = SPMV_OK;
    const struct least_squares_run *const r = run_of(g);
    void *const residual = r->vector[LS_U], *const q = r->vector[LS_Q], *const s = r->vector[LS_V],
                *const w = r->vector[LS_W], *const p = r->vector[LS_H], *const y = r->y;
    struct krylov_combination update = {.finish = CGLS_RESIDUAL}, iterate = {.finish = CGLS_STEP};
    struct krylov_combination direction = {.finish = CGLS_DIRECTION};
    (void)k;
    TRY(multiply(r, r->solver->plan, p, q));
    TRY(krylov_sum(&r->rows, q, q, CGLS_DELTA));
    pass_axpby(&update, C_ONE, residual, C_MINUS_STEP, q, residual);
    pass_dot(&update, residual, residual);
    TRY(krylov_combine(&r->rows, &update));
    TRY(multiply(r, r->solver->transposed, residual, w));
    pass_axpby(&iterate, C_ONE, y, C_STEP, p, y);
    if (r->solver->damp > 0) /* the new y is y + alpha p */
        pass_axpbypcz(&iterate, C_ONE, w, C_DAMP, y, C_DAMP_STEP, p, s);
    else
        pass_copy(&iterate, w, s);
    pass_dot(&iterate, s, s);
    pass_dot(&iterate, y, y);
    TRY(krylov_combine(&g->v, &iterate));
    pass_axpby(&direction, C_ONE, s, C_CONJUGATE, p, p);
    pass_dot(&direction, p, p);
    TRY(krylov_combine(&g->v, &direction));
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

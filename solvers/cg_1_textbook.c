/* Conjugate gradients, rung 1: the textbook, one library call a line, on every backend.
 *
 * Idea: minimise the energy norm of the error along directions that are conjugate to one another.
 * Work a step: one product with A, two dots, three vector updates; vector passes read or written a step, beside the
 * product, in which p'q rides along: 3 (x) + 3 (r) + 1 (r'r) + 3 (p) = 10. A preconditioner adds its own, and 2 (r'z).
 * What the next rungs save: passes, launches, and the wait.
 * Hestenes & Stiefel 1952; Y. Saad, "Iterative Methods for Sparse Linear Systems", 2nd ed., algorithms 6.18 and 9.1.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <spmv/primitives.h>

#include "cg_internal.h"

static spmv_status supports(const struct cg *cg)
{
    (void)cg;
    return SPMV_OK;
}

/* state: z, where there is a preconditioner */
static spmv_status prepare(struct cg *cg)
{
    if (cg->precond == NULL)
        return SPMV_OK;
    return context_lend(cg->ctx, cg->n * (int64_t)spmv_type_size(cg->type), &cg->state);
}

static void release(struct cg *cg)
{
    context_take_back(cg->ctx, cg->state);
    cg->state = NULL;
}

/* rr = r'r; with a preconditioner z = M^-1 r and *rz = r'z, else rz is rr. */
static spmv_status squares(const struct cg *cg, void *rz)
{
    spmv_status st = SPMV_OK;
    const void *r = cg->r;
    void *z = cg->state;
    if (cg->precond == NULL) {
        TRY(spmv_dot(cg->ctx, cg->type, r, r, rz, cg->n));
        goto done;
    }
    TRY(spmv_dot(cg->ctx, cg->type, r, r, cg_scalar(cg, RR), cg->n));
    TRY(cg_precondition(cg, r, z));
    TRY(spmv_dot(cg->ctx, cg->type, r, z, rz, cg->n));
done:
    return st;
}

/* The scalar that alpha and beta are made of: r'z, which is r'r without a preconditioner. */
static void *rho_of(const struct cg *cg)
{
    return cg_scalar(cg, cg->precond != NULL ? RZ : RR);
}

/* r = b - A x, p = z, rho = r'z: the recurrence starts here, and again after each restart. */
static spmv_status start(struct cg *cg)
{
    spmv_status st = SPMV_OK;
    TRY(cg_start(cg));
    TRY(squares(cg, rho_of(cg)));
    if (!cg->continues)
        TRY(spmv_map(cg->ctx, SPMV_MAP_COPY, cg->type, cg->precond != NULL ? cg->state : cg->r, cg->p, cg->n));
done:
    return st;
}

/* q = A p, pq = p'q, and what both say: a product beyond the last step is the price of a single wait. */
static spmv_status look(struct cg *cg)
{
    spmv_status st = SPMV_OK;
    double values[3] = {0, 0, 0};
    spmv_epilogue dot;
    spmv_epilogue_init(&dot, sizeof dot);
    dot.w = cg->p;
    dot.dot = cg_scalar(cg, PQ);
    /* q = A p, pq = p'q */
    TRY(spmv_apply_with(cg->plan, NULL, cg->p, NULL, cg->q, &dot));
    TRY(cg_read_scalars(cg, RR, cg->precond != NULL ? 3 : 2, values));
    cg->rr = values[0];
    cg->pq = values[1];
    cg->rz = cg->precond != NULL ? values[2] : values[0];
    cg->result->recurrence_residual = sqrt(cg->rr);
done:
    return st;
}

/* One step of the recurrence, given q = A p and pq = p'q. */
static spmv_status step(struct cg *cg)
{
    spmv_status st = SPMV_OK;
    spmv_context *ctx = cg->ctx;
    const spmv_type type = cg->type;
    const int64_t n = cg->n;
    const void *z = cg->precond != NULL ? cg->state : cg->r;
    void *rho = rho_of(cg), *pq = cg_scalar(cg, PQ), *rho_new = cg_scalar(cg, RHO_NEW);
    void *alpha = cg_scalar(cg, ALPHA), *minus_alpha = cg_scalar(cg, MINUS_ALPHA), *beta = cg_scalar(cg, BETA);
    /* alpha = rho / pq */
    TRY(spmv_map_divide(ctx, type, rho, pq, alpha, 1));
    TRY(spmv_map(ctx, SPMV_MAP_NEG, type, alpha, minus_alpha, 1));
    /* x = x + alpha p */
    TRY(spmv_map_axpby(ctx, type, alpha, cg->p, NULL, cg->x, n));
    /* r = r - alpha q */
    TRY(spmv_map_axpby(ctx, type, minus_alpha, cg->q, NULL, cg->r, n));
    /* z = M^-1 r, rho_new = r'z */
    TRY(squares(cg, rho_new));
    /* beta = rho_new / rho */
    TRY(spmv_map_divide(ctx, type, rho_new, rho, beta, 1));
    /* p = z + beta p */
    TRY(spmv_map_axpby(ctx, type, NULL, z, beta, cg->p, n));
    /* rho = rho_new */
    TRY(spmv_map(ctx, SPMV_MAP_COPY, type, rho_new, rho, 1));
done:
    return st;
}

static spmv_status run(struct cg *cg, int64_t max_iterations)
{
    spmv_status st = SPMV_OK;
    spmv_cg_result *result = cg->result;
    TRY(start(cg));
    TRY(look(cg));
    if (result->iterations == 0)
        TRY(cg_tell(cg, result->recurrence_residual));
    cg->start_residual = result->recurrence_residual;
    const double enough = cg_enough(cg);
    while (!(isfinite(cg->rr) && result->recurrence_residual <= enough)) {
        TRY(cg_look_for_breakdown(cg));
        if (result->iterations == max_iterations) {
            st = cg_fail_limit(cg);
            goto done;
        }
        TRY(step(cg));
        result->iterations++;
        TRY(look(cg));
        TRY(cg_tell(cg, result->recurrence_residual));
    }
done:
    return st;
}

const struct cg_method cg_textbook = {.name = "textbook",
                                      .why = "runs on every backend, with every plan and preconditioner",
                                      .backends = ~0u,
                                      .supports = supports,
                                      .prepare = prepare,
                                      .run = run,
                                      .release = release};

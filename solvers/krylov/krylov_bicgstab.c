/* BiCGStab: a short recurrence for matrices that are not symmetric, with right preconditioning.
 *
 *     v = A M^-1 p             alpha = rho / (r0, v)
 *     s = r - alpha v
 *     t = A M^-1 s             omega = (t, s) / (t, t)
 *     x = x + alpha M^-1 p + omega M^-1 s
 *     r = s - omega t          beta = (r0, r) / rho  alpha / omega
 *     p = r + beta (p - omega v)
 *
 * Work:    a step: two products with A and two with M^-1; 19 passes over vectors.
 * Memory:  7 vectors, 2 more with a preconditioner, besides x, b and the front's.
 * Source:  H. A. van der Vorst, SIAM J. Sci. Stat. Comput. 13(2), 1992; Y. Saad, "Iterative Methods
 *          for Sparse Linear Systems", 2nd ed., algorithm 7.7.
 *
 * If t is 0, omega is 0 and the step ends with s. If (r0, r) is only rounding, the run breaks down; if
 * it has halved the residual, the front begins another one with a new r0.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "solvers/krylov/krylov_loop.h"

enum { R, R0, P, V, S, T, P_HAT, VECTORS };

static int vectors(const struct krylov_loop *g)
{
    return g->s.precond != NULL ? VECTORS : VECTORS - 1;
}

static spmv_status begin(struct krylov_loop *g)
{
    struct krylov_combination first = {.finish = BICGSTAB_BEGIN, .always = true};
    pass_copy(&first, g->s.r, krylov_loop_vector(g, R));
    pass_copy(&first, g->s.r, krylov_loop_vector(g, R0)); /* r0 = r */
    pass_copy(&first, g->s.r, krylov_loop_vector(g, P));  /* p = r */
    pass_dot(&first, g->s.r, g->s.r);                     /* rho = r'r */
    return krylov_combine(&g->v, &first);
}

/* M^-1 r in `to`, or r without M */
static spmv_status hat(const struct krylov_loop *g, const void *r, void *to, const void **z)
{
    *z = g->s.precond != NULL ? to : r;
    return g->s.precond != NULL ? spmv_preconditioner_apply(g->s.precond, r, to) : SPMV_OK;
}

static spmv_status step(struct krylov_loop *g, int64_t k)
{
    spmv_status st = SPMV_OK;
    void *const r = krylov_loop_vector(g, R), *const r0 = krylov_loop_vector(g, R0),
                *const p = krylov_loop_vector(g, P);
    void *const v = krylov_loop_vector(g, V), *const s = krylov_loop_vector(g, S), *const t = krylov_loop_vector(g, T);
    void *const x = g->s.x;
    const void *p_hat = NULL, *s_hat = NULL;
    struct krylov_combination half = {.finish = FINISH_NOTHING}, of_omega = {.finish = BICGSTAB_OMEGA};
    struct krylov_combination iterate = {.finish = BICGSTAB_STEP}, direction = {.finish = FINISH_NOTHING};
    (void)k;

    TRY(hat(g, p, krylov_loop_vector(g, P_HAT), &p_hat)); /* p_hat = M^-1 p */
    TRY(krylov_loop_multiply(g, p_hat, v));               /* v = A p_hat */
    TRY(krylov_sum(&g->v, r0, v, BICGSTAB_ALPHA));        /* alpha = rho / (r0, v) */

    pass_axpby(&half, C_ONE, r, C_MINUS_ALPHA, v, s); /* s = r - alpha v */
    TRY(krylov_combine(&g->v, &half));

    TRY(hat(g, s, g->z, &s_hat));           /* s_hat = M^-1 s */
    TRY(krylov_loop_multiply(g, s_hat, t)); /* t = A s_hat */
    pass_dot(&of_omega, t, s);              /* omega = (t, s) / (t, t) */
    pass_dot(&of_omega, t, t);
    TRY(krylov_combine(&g->v, &of_omega));

    pass_axpbypcz(&iterate, C_ONE, x, C_ALPHA, p_hat, C_OMEGA, s_hat, x); /* x = x + alpha p_hat + omega s_hat */
    pass_axpby(&iterate, C_MINUS_OMEGA, t, C_ONE, s, r);                  /* r = s - omega t */
    pass_dot(&iterate, r0, r);                                            /* beta = (r0, r) / rho alpha / omega */
    pass_dot(&iterate, r, r);                                             /* |r| */
    TRY(krylov_combine(&g->v, &iterate));

    pass_axpbypcz(&direction, C_ONE, r, C_BETA, p, C_MINUS_BETA_OMEGA, v, p); /* p = r + beta (p - omega v) */
    TRY(krylov_combine(&g->v, &direction));
done:
    return st;
}

static void persistent(const struct krylov_loop *g, struct krylov_persistent_vectors *at)
{
    at->r = krylov_loop_vector(g, R);
    at->r0 = krylov_loop_vector(g, R0);
    at->p = krylov_loop_vector(g, P);
    at->v = krylov_loop_vector(g, V);
}

const struct krylov_solver krylov_bicgstab = {.name = "bicgstab",
                                              .solve = krylov_loop_solve,
                                              .vectors = vectors,
                                              .begin = begin,
                                              .step = step,
                                              .persistent = persistent};

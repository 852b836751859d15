/* MINRES: the smallest residual over the Krylov space of a symmetric matrix, which need not be
 * definite; with a symmetric positive definite M, in the norm of M^-1.
 *
 * The Lanczos vectors v, with z = M^-1 v, gamma = sqrt(v'z):
 *     z = z / gamma,  delta = z'A z
 *     v_next = A z - delta / gamma v - gamma / gamma_old v_old
 *     w_next = (z - a3 w_old - a2 w) / a1,  x = x + c eta w_next
 * where a1, a2, a3 are the new column of the triangle, by rotations (c, s). Without M, |eta| is the
 * norm of the residual. With M, the residual itself is updated, r = s^2 r + eta c / gamma v.
 *
 * Work:    a step: one product with A and one with M^-1; 15 passes over vectors, 21 with M.
 * Memory:  6 vectors, 2 more with a preconditioner, besides x, b and the front's.
 * Source:  C. C. Paige, M. A. Saunders, SIAM J. Numer. Anal. 12(4), 1975; H. Elman, D. Silvester,
 *          A. Wathen, "Finite Elements and Fast Iterative Solvers", 2nd ed., algorithm 4.1.
 *
 * Steps alternate between two places for v and w.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "solvers/krylov/krylov_loop.h"

enum { V0, V1, W0, W1, Z, Q, R, VECTORS };

static int vectors(const struct krylov_loop *g)
{
    return g->s.precond != NULL ? VECTORS : VECTORS - 1;
}

static spmv_status begin(struct krylov_loop *g)
{
    spmv_status st = SPMV_OK;
    const void *const r = g->s.r, *z = NULL;
    struct krylov_combination first = {.finish = MINRES_BEGIN, .always = true}, scale = {.finish = FINISH_NOTHING};
    TRY(krylov_loop_clear(g, V0, 4));
    TRY(krylov_loop_precondition(g, r, &z)); /* z = M^-1 r */

    pass_copy(&first, r, krylov_loop_vector(g, V0)); /* v = r */
    if (g->s.precond != NULL)
        pass_copy(&first, r, krylov_loop_vector(g, R));
    pass_dot(&first, r, z); /* gamma = sqrt(r'z) */
    pass_dot(&first, r, r); /* |r| */
    TRY(krylov_combine(&g->v, &first));

    pass_scale(&scale, C_SCALE, z, krylov_loop_vector(g, Z)); /* z = z / gamma */
    TRY(krylov_combine(&g->v, &scale));
done:
    return st;
}

static spmv_status step(struct krylov_loop *g, int64_t k)
{
    spmv_status st = SPMV_OK;
    const int even = k % 2 == 0;
    const bool plain = g->s.precond == NULL;
    void *const v = krylov_loop_vector(g, even ? V0 : V1), *const v_old = krylov_loop_vector(g, even ? V1 : V0);
    void *const w = krylov_loop_vector(g, even ? W0 : W1), *const w_old = krylov_loop_vector(g, even ? W1 : W0);
    void *const z = krylov_loop_vector(g, Z), *const q = krylov_loop_vector(g, Q), *const r = krylov_loop_vector(g, R);
    void *const x = g->s.x, *const v_next = v_old, *const w_next = w_old; /* in the place of the old ones */
    const void *z_next = NULL;
    struct krylov_combination lanczos = {.finish = plain ? MINRES_GAMMA : FINISH_NOTHING};
    struct krylov_combination directions = {.finish = FINISH_NOTHING}, iterate = {.finish = MINRES_STEP};

    TRY(krylov_loop_multiply(g, z, q));         /* q = A z */
    TRY(krylov_sum(&g->v, z, q, MINRES_DELTA)); /* delta = z'q */

    /* v_next = q - delta / gamma v - gamma / gamma_old v_old */
    pass_axpbypcz(&lanczos, C_ONE, q, C_V, v, C_V_OLD, v_old, v_next);
    if (plain) /* gamma_next = sqrt(v_next'v_next) */
        pass_dot(&lanczos, v_next, v_next);
    TRY(krylov_combine(&g->v, &lanczos));
    TRY(krylov_loop_precondition(g, v_next, &z_next)); /* z_next = M^-1 v_next */
    if (!plain)                                        /* gamma_next = sqrt(v_next'z_next) */
        TRY(krylov_sum(&g->v, v_next, z_next, MINRES_GAMMA));

    /* w_next = (z - a3 w_old - a2 w) / a1 */
    pass_axpbypcz(&directions, C_W_Z, z, C_W_OLD, w_old, C_W, w, w_next);
    pass_scale(&directions, C_SCALE, z_next, z); /* z = z_next / gamma_next */
    if (!plain)                                  /* r = s^2 r + eta c / gamma_next v_next */
        pass_axpby(&directions, C_R, r, C_R_V, v_next, r);
    TRY(krylov_combine(&g->v, &directions));

    /* a pass of its own, which reads the new w */
    pass_axpby(&iterate, C_ONE, x, C_X, w_next, x); /* x = x + c eta w_next */
    if (!plain)                                     /* |r| */
        pass_dot(&iterate, r, r);
    TRY(krylov_combine(&g->v, &iterate));
done:
    return st;
}

/* Its kernel begins with v in the first place. */
static void persistent(const struct krylov_loop *g, struct krylov_persistent_vectors *at)
{
    at->v = krylov_loop_vector(g, V0);
    at->v_old = krylov_loop_vector(g, V1);
    at->w = krylov_loop_vector(g, W0);
    at->w_old = krylov_loop_vector(g, W1);
    at->r = g->s.precond != NULL ? krylov_loop_vector(g, R) : NULL;
}

const struct krylov_solver krylov_minres = {.name = "minres",
                                            .solve = krylov_loop_solve,
                                            .symmetric = true,
                                            .vectors = vectors,
                                            .begin = begin,
                                            .step = step,
                                            .two_steps = true,
                                            .persistent = persistent};

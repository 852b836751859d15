/* COCG: conjugate gradients with the bilinear form (u, v) = u'v, without conjugation, for complex matrices that are
 * their own transpose and not Hermitian, with a preconditioner that is its own transpose too; and smoothed residuals.
 *
 *     q = A p             alpha = rho / (p, q)
 *     r = r - alpha q     tau = (the sum of 1 / |r|^2 over all residuals so far)^(-1/2), weight = tau^2 / |r|^2
 *     z = M^-1 r          rho = (r, z), beta = rho / the rho before
 *     y = y + alpha p,    x = x + weight (y - x),  s = s + weight (r - s)
 *     p = z + beta p
 *
 * y is the iterate of COCG, with the residual r, which may grow by orders of magnitude before it falls; x is the smoothed
 * one, with the residual s = b - A x. These weights give the iterates of the quasi-minimal residual method. y - x is
 * stored, not y.
 *
 * Work:    a step: one product with A and one with M^-1; 14 passes over vectors, 17 with M.
 * Memory:  5 vectors, 1 more with a preconditioner, besides x, b and the front's.
 * Source:  H. A. van der Vorst, J. B. M. Melissen, IEEE Trans. Magnetics 26(2), 1990; R. W. Freund, SIAM J. Sci. Stat.
 *          Comput. 13(1), 1992; L. Zhou, H. F. Walker, SIAM J. Sci. Comput. 15(2), 1994.
 *
 * (r, z) or (p, A p) may be 0 though the vectors are not ("quasi-null" vectors). The run then breaks down. If it has
 * halved the residual, the front begins another one from x.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "solvers/krylov/krylov_loop.h"

enum { R, S, P, Q, Y, VECTORS }; /* Y: y - x */

static int vectors(const struct krylov_loop *g)
{
    (void)g;
    return VECTORS;
}

/* z = M^-1 r, and the sums of rho; without M those of r have them. */
static spmv_status precondition(const struct krylov_loop *g, const void **z)
{
    spmv_status st = SPMV_OK;
    const void *const r = krylov_loop_vector(g, R);
    struct krylov_combination of_rho = {.finish = COCG_RHO};
    TRY(krylov_loop_precondition(g, r, z));
    if (g->s.precond == NULL)
        return SPMV_OK;
    pass_bilinear(&of_rho, r, *z); /* rho = (r, z) */
    pass_dot(&of_rho, *z, *z);
    TRY(krylov_combine(&g->v, &of_rho));
done:
    return st;
}

static spmv_status begin(struct krylov_loop *g)
{
    spmv_status st = SPMV_OK;
    const void *const residual = g->s.r, *z = NULL;
    void *const p = krylov_loop_vector(g, P);
    struct krylov_combination first = {.finish = COCG_BEGIN, .always = true}, direction = {.finish = COCG_FIRST};
    TRY(krylov_loop_clear(g, Y, 1));

    pass_copy(&first, residual, krylov_loop_vector(g, R));
    pass_copy(&first, residual, krylov_loop_vector(g, S)); /* s = r */
    pass_dot(&first, residual, residual);                  /* |r| */
    if (g->s.precond == NULL)
        pass_bilinear(&first, residual, residual);
    TRY(krylov_combine(&g->v, &first));

    TRY(precondition(g, &z));
    pass_copy(&direction, z, p); /* p = z */
    pass_dot(&direction, p, p);
    TRY(krylov_combine(&g->v, &direction));
done:
    return st;
}

static spmv_status step(struct krylov_loop *g, int64_t k)
{
    spmv_status st = SPMV_OK;
    void *const r = krylov_loop_vector(g, R), *const s = krylov_loop_vector(g, S), *const p = krylov_loop_vector(g, P);
    void *const q = krylov_loop_vector(g, Q), *const y = krylov_loop_vector(g, Y), *const x = g->s.x;
    const void *z = NULL;
    struct krylov_combination of_alpha = {.finish = COCG_ALPHA}, residual = {.finish = COCG_RESIDUAL};
    struct krylov_combination iterate = {.finish = COCG_STEP};
    (void)k;

    TRY(krylov_loop_multiply(g, p, q)); /* q = A p */
    pass_bilinear(&of_alpha, p, q);     /* alpha = rho / (p, q) */
    pass_dot(&of_alpha, q, q);
    TRY(krylov_combine(&g->v, &of_alpha));

    pass_axpby(&residual, C_ONE, r, C_MINUS_ALPHA, q, r); /* r = r - alpha q */
    pass_dot(&residual, r, r);                            /* weight */
    if (g->s.precond == NULL)
        pass_bilinear(&residual, r, r);
    TRY(krylov_combine(&g->v, &residual));

    TRY(precondition(g, &z)); /* z = M^-1 r */

    pass_axpbypcz(&iterate, C_ONE, x, C_WEIGHT, y, C_WEIGHT_ALPHA, p, x); /* x = x + weight (y + alpha p) */
    pass_axpby(&iterate, C_REST, y, C_REST_ALPHA, p, y);                  /* y = (1 - weight) (y + alpha p) */
    pass_axpby(&iterate, C_REST, s, C_WEIGHT, r, s);                      /* s = s + weight (r - s) */
    pass_axpby(&iterate, C_ONE, z, C_BETA, p, p);                         /* p = z + beta p */
    pass_dot(&iterate, s, s);                                             /* |s| */
    pass_dot(&iterate, p, p);
    TRY(krylov_combine(&g->v, &iterate));
done:
    return st;
}

const struct krylov_solver krylov_cocg = {
    .name = "cocg", .solve = krylov_loop_solve, .bilinear = true, .vectors = vectors, .begin = begin, .step = step};

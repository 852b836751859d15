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

enum { NEW = KRYLOV_MOST_INPUTS };

static int vectors(const struct krylov_loop *g)
{
    return g->s.precond != NULL ? VECTORS : VECTORS - 1;
}

static spmv_status begin(struct krylov_loop *g)
{
    return krylov_combine(&g->v,
                          &(const struct krylov_combination){
                              .inputs = 1,
                              .outputs = 3,
                              .sums = 1,
                              .in = {g->s.r},
                              .out = {krylov_loop_vector(g, R), krylov_loop_vector(g, R0), krylov_loop_vector(g, P)},
                              .c = {{C_ONE}, {C_ONE}, {C_ONE}},
                              .finish = BICGSTAB_BEGIN,
                              .always = true});
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
    const void *p_hat = NULL, *s_hat = NULL;
    (void)k;
    TRY(hat(g, p, krylov_loop_vector(g, P_HAT), &p_hat));
    TRY(krylov_loop_multiply(g, p_hat, v));
    TRY(krylov_combine(
        &g->v, &(const struct krylov_combination){
                   .inputs = 2, .sums = 1, .in = {r0, v}, .left = {0}, .right = {1}, .finish = BICGSTAB_ALPHA}));
    TRY(krylov_combine(&g->v, &(const struct krylov_combination){.inputs = 2,
                                                                 .outputs = 1,
                                                                 .in = {r, v},
                                                                 .out = {s},
                                                                 .c = {{C_ONE, C_MINUS_ALPHA}},
                                                                 .finish = FINISH_NOTHING}));
    TRY(hat(g, s, g->z, &s_hat));
    TRY(krylov_loop_multiply(g, s_hat, t));
    TRY(krylov_combine(
        &g->v, &(const struct krylov_combination){
                   .inputs = 2, .sums = 2, .in = {t, s}, .left = {0, 0}, .right = {1, 0}, .finish = BICGSTAB_OMEGA}));
    struct krylov_combination last = {.inputs = 6,
                                      .outputs = 2,
                                      .sums = 2,
                                      .in = {g->s.x, p_hat, s_hat, t, r0, s},
                                      .out = {g->s.x, r},
                                      .c = {{C_ONE, C_ALPHA, C_OMEGA}, {[3] = C_MINUS_OMEGA, [5] = C_ONE}},
                                      .left = {4, NEW + 1},
                                      .right = {NEW + 1, NEW + 1},
                                      .finish = BICGSTAB_STEP};
    if (s_hat == s) { /* one vector fewer to read */
        last.inputs = 5;
        last.c[1][2] = C_ONE;
    }
    TRY(krylov_combine(&g->v, &last));
    TRY(krylov_combine(&g->v, &(const struct krylov_combination){.inputs = 3,
                                                                 .outputs = 1,
                                                                 .in = {r, p, v},
                                                                 .out = {p},
                                                                 .c = {{C_ONE, C_BETA, C_MINUS_BETA_OMEGA}},
                                                                 .finish = FINISH_NOTHING}));
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

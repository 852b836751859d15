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
 * Work:    a step: one product with A and one with M^-1; 17 passes over vectors, 21 with M.
 * Memory:  6 vectors, 2 more with a preconditioner, besides x, b and the front's.
 * Source:  C. C. Paige, M. A. Saunders, SIAM J. Numer. Anal. 12(4), 1975; H. Elman, D. Silvester,
 *          A. Wathen, "Finite Elements and Fast Iterative Solvers", 2nd ed., algorithm 4.1.
 *
 * Steps alternate between two places for v and w.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "solvers/krylov/krylov_loop.h"

enum { V0, V1, W0, W1, Z, Q, R, VECTORS };

enum { NEW = KRYLOV_MOST_INPUTS };

static int vectors(const struct krylov_loop *g)
{
    return g->s.precond != NULL ? VECTORS : VECTORS - 1;
}

static spmv_status begin(struct krylov_loop *g)
{
    spmv_status st = SPMV_OK;
    const bool plain = g->s.precond == NULL;
    const void *z = NULL;
    TRY(krylov_loop_clear(g, V0, 4));
    TRY(krylov_loop_precondition(g, g->s.r, &z));
    /* the first v and r; sums r'z and r'r */
    TRY(krylov_combine(&g->v, &(const struct krylov_combination){
                                  .inputs = 2,
                                  .outputs = plain ? 1 : 2,
                                  .sums = 2,
                                  .in = {g->s.r, z},
                                  .out = {krylov_loop_vector(g, V0), plain ? NULL : krylov_loop_vector(g, R)},
                                  .c = {{C_ONE}, {C_ONE}},
                                  .left = {0, 0},
                                  .right = {1, 0},
                                  .finish = MINRES_BEGIN,
                                  .always = true}));
    TRY(krylov_combine(&g->v, &(const struct krylov_combination){.inputs = 1,
                                                                 .outputs = 1,
                                                                 .in = {z},
                                                                 .out = {krylov_loop_vector(g, Z)},
                                                                 .c = {{C_SCALE}},
                                                                 .finish = FINISH_NOTHING}));
done:
    return st;
}

static spmv_status step(struct krylov_loop *g, int64_t k)
{
    spmv_status st = SPMV_OK;
    const int even = k % 2 == 0;
    void *const v = krylov_loop_vector(g, even ? V0 : V1), *const other_v = krylov_loop_vector(g, even ? V1 : V0);
    void *const w = krylov_loop_vector(g, even ? W0 : W1), *const other_w = krylov_loop_vector(g, even ? W1 : W0);
    void *const z = krylov_loop_vector(g, Z), *const q = krylov_loop_vector(g, Q), *const x = g->s.x;
    const bool plain = g->s.precond == NULL;
    const void *next = NULL;
    TRY(krylov_loop_multiply(g, z, q));
    TRY(krylov_combine(&g->v,
                       &(const struct krylov_combination){
                           .inputs = 2, .sums = 1, .in = {z, q}, .left = {0}, .right = {1}, .finish = MINRES_DELTA}));
    /* the next v replaces the one before; without M its square is v'z */
    TRY(krylov_combine(&g->v, &(const struct krylov_combination){.inputs = 3,
                                                                 .outputs = 1,
                                                                 .sums = plain ? 1 : 0,
                                                                 .in = {q, v, other_v},
                                                                 .out = {other_v},
                                                                 .c = {{C_ONE, C_V, C_V_OLD}},
                                                                 .left = {NEW},
                                                                 .right = {NEW},
                                                                 .finish = plain ? MINRES_GAMMA : FINISH_NOTHING}));
    TRY(krylov_loop_precondition(g, other_v, &next));
    if (!plain)
        TRY(krylov_combine(
            &g->v,
            &(const struct krylov_combination){
                .inputs = 2, .sums = 1, .in = {other_v, next}, .left = {0}, .right = {1}, .finish = MINRES_GAMMA}));
    /* w, z, and r with M; x in a pass of its own, since it needs the new w */
    if (plain)
        TRY(krylov_combine(
            &g->v, &(const struct krylov_combination){.inputs = 4,
                                                      .outputs = 2,
                                                      .in = {z, other_w, w, next},
                                                      .out = {other_w, z},
                                                      .c = {{C_W_Z, C_W_OLD, C_W}, {C_ZERO, C_ZERO, C_ZERO, C_SCALE}},
                                                      .finish = FINISH_NOTHING}));
    else
        TRY(krylov_combine(
            &g->v, &(const struct krylov_combination){.inputs = 6,
                                                      .outputs = 3,
                                                      .sums = 0,
                                                      .in = {z, other_w, w, next, krylov_loop_vector(g, R), other_v},
                                                      .out = {other_w, z, krylov_loop_vector(g, R)},
                                                      .c = {{C_W_Z, C_W_OLD, C_W},
                                                            {C_ZERO, C_ZERO, C_ZERO, C_SCALE},
                                                            {C_ZERO, C_ZERO, C_ZERO, C_ZERO, C_R, C_R_V}},
                                                      .finish = FINISH_NOTHING}));
    TRY(krylov_combine(&g->v,
                       &(const struct krylov_combination){.inputs = 3,
                                                          .outputs = 1,
                                                          .sums = plain ? 0 : 1,
                                                          .in = {x, other_w, plain ? x : krylov_loop_vector(g, R)},
                                                          .out = {x},
                                                          .c = {{C_ONE, C_X}},
                                                          .left = {2},
                                                          .right = {2},
                                                          .finish = MINRES_STEP}));
done:
    return st;
}

const struct krylov_solver krylov_minres = {.name = "minres",
                                            .solve = krylov_loop_solve,
                                            .symmetric = true,
                                            .vectors = vectors,
                                            .begin = begin,
                                            .step = step,
                                            .two_steps = true};

/* GMRES(m): the smallest residual over a Krylov space of up to m dimensions, then again from the
 * residual reached. With right preconditioning, and flexible: M may change from step to step.
 *
 *     z_j = M^-1 v_j,  w = A z_j
 *     w = w - V V'w, twice              classical Gram-Schmidt; h = the coefficients, added up
 *     v_j+1 = w / |w|
 * and the new column of the Hessenberg matrix is rotated to a triangle R. At the end of a cycle x =
 * x + Z R^-1 g. Twice is enough: the basis is orthogonal to the unit roundoff (L. Giraud, J.
 * Langou, M. Rozloznik, J. van den Eshof, Numer. Math. 101, 2005).
 *
 * The norm of the last w is not a sum of its own: |w - V V'w|^2 = |w|^2 - |V'w|^2, where V'w is only
 * rounding, since w has been made orthogonal once.
 *
 * Work:    step j: one product with A and one with M^-1; the basis is read three times (the second
 *          pass subtracts and projects at once), and w five times.
 * Memory:  m + 2 vectors, m more with a preconditioner, besides x, b and the front's.
 * Source:  Y. Saad, M. H. Schultz, SIAM J. Sci. Stat. Comput. 7(3), 1986; Y. Saad, SIAM J. Sci.
 *          Comput. 14(2), 1993 (flexible); K. Swirydowicz and others, Numer. Linear Algebra Appl.
 *          28(2), 2021 (the norm).
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <spmv/primitives.h>

#include "solvers/krylov/krylov_loop.h"

/* The vectors: p, the last basis vector; w; the basis of m; with M, as many M^-1 v. */
enum { P, W, BASIS };

static int vectors(const struct krylov_loop *g)
{
    return BASIS + g->s.restart * (g->s.precond != NULL ? 2 : 1);
}

/* M^-1 of the basis, or the basis itself without M */
static void *directions(const struct krylov_loop *g)
{
    return krylov_loop_vector(g, g->s.precond != NULL ? BASIS + g->s.restart : BASIS);
}

/* The first vector of the basis, which is also the next p. */
static spmv_status begin(struct krylov_loop *g)
{
    spmv_status st = SPMV_OK;
    struct krylov_combination first = {.finish = GMRES_BEGIN, .always = true};
    pass_dot(&first, g->s.r, g->s.r);
    TRY(krylov_combine(&g->v, &first));
    TRY(krylov_store(&g->v, &(const struct krylov_storing){.factor = C_NORM,
                                                           .from = g->s.r,
                                                           .basis = krylov_loop_vector(g, BASIS),
                                                           .copy = krylov_loop_vector(g, P),
                                                           .stride = g->stride}));
done:
    return st;
}

static spmv_status step(struct krylov_loop *g, int64_t k)
{
    spmv_status st = SPMV_OK;
    void *const p = krylov_loop_vector(g, P), *const w = krylov_loop_vector(g, W),
                *const basis = krylov_loop_vector(g, BASIS);
    struct krylov_projection pass = {
        .basis = basis, .stride = g->stride, .most = g->s.restart, .w = w, .finish = GMRES_FIRST};
    const void *z = NULL;
    (void)k;
    TRY(krylov_loop_precondition(g, p, &z));
    if (g->s.precond != NULL)
        TRY(krylov_store(&g->v, &(const struct krylov_storing){
                                    .factor = C_ONE, .from = z, .basis = directions(g), .stride = g->stride}));
    TRY(krylov_loop_multiply(g, z, w));
    TRY(krylov_project(&g->v, &pass));
    pass.subtracts = true;
    pass.finish = GMRES_SECOND;
    TRY(krylov_project(&g->v, &pass));
    TRY(krylov_store(
        &g->v, &(const struct krylov_storing){
                   .factor = C_NORM, .from = w, .basis = basis, .copy = p, .stride = g->stride, .subtracts = true}));
done:
    return st;
}

static spmv_status end(struct krylov_loop *g)
{
    spmv_status st = SPMV_OK;
    TRY(krylov_solve_triangle(&g->v));
    TRY(krylov_expand(&g->v, directions(g), g->stride, g->s.x, g->s.x));
done:
    return st;
}

/* The iterate of the last step: solves for a copy of g. */
static spmv_status iterate(struct krylov_loop *g, const void **x)
{
    spmv_status st = SPMV_OK;
    const int64_t bytes = (g->s.restart + 1) * (int64_t)sizeof(struct krylov_scalar);
    void *kept = NULL;
    TRY(host_alloc(g->s.ctx, bytes, "the iterate of gmres", &kept));
    TRY(spmv_download(g->s.ctx, g->host.g, kept, bytes));
    TRY(krylov_solve_triangle(&g->v));
    TRY(krylov_expand(&g->v, directions(g), g->stride, g->s.x, g->shown));
    TRY(spmv_upload(g->s.ctx, kept, g->host.g, bytes));
    *x = g->shown;
done:
    host_free(kept);
    return st;
}

static void persistent(const struct krylov_loop *g, struct krylov_persistent_vectors *at)
{
    at->p = krylov_loop_vector(g, P);
    at->basis = krylov_loop_vector(g, BASIS);
    at->directions = g->s.precond != NULL ? directions(g) : NULL;
}

const struct krylov_solver krylov_gmres = {.name = "gmres",
                                           .solve = krylov_loop_solve,
                                           .vectors = vectors,
                                           .begin = begin,
                                           .step = step,
                                           .end = end,
                                           .iterate = iterate,
                                           .persistent = persistent};

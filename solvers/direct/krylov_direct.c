/* The solver direct: LU factors by a module (direct.h), with iterative refinement.
 *
 *     e = U^-1 L^-1 r,  x = x + e
 *
 * is one run; the front computes the true residual and restarts as long as that halves it. A run
 * counts as an iteration.
 *
 * Source: N. J. Higham, "Accuracy and Stability of Numerical Algorithms", 2nd ed., 2002, chapter
 * 12.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <spmv/primitives.h>

#include "solvers/direct/direct.h"
#include "solvers/krylov/krylov_loop.h"

static int vectors(const struct krylov_loop *g)
{
    (void)g;
    return 1;
}

static spmv_status run(struct krylov *s)
{
    spmv_status st = SPMV_OK;
    struct krylov_loop *const g = (struct krylov_loop *)s;
    struct krylov_column *const c = s->column;
    void *const e = krylov_loop_vector(g, 0);
    /* x + A^-1 (b - A x), of any x; not of a scaled b */
    const bool ahead = s->ahead != NULL && s->iterations == s->iterations_before && s->scale == 0;
    TRY(krylov_start(s));
    TRY(krylov_norms(s, s->r, &c->start_residual));
    c->residual = c->start_residual;
    c->enough = krylov_enough(s->type, c);
    c->iterations = 0;
    if (s->iterations == 0 && krylov_tell(s, 0, c->residual) != SPMV_OK)
        return SPMV_OK;
    if (c->residual <= c->enough || c->limit <= 0) {
        c->stop = c->residual <= c->enough ? COLUMN_DONE : COLUMN_LIMIT;
        return SPMV_OK;
    }
    if (ahead) {
        TRY(spmv_map(s->ctx, SPMV_MAP_COPY, s->part, s->ahead, s->x, s->count));
    } else {
        TRY(direct_solve(g->s.direct, s->type, s->r, e));
        TRY(krylov_set_cell(s, 1));
        TRY(spmv_map_axpby(s->ctx, s->part, s->cells, e, NULL, s->x, s->count));
    }
    TRY(krylov_residual(s, s->r));
    TRY(krylov_norms(s, s->r, &c->residual));
    c->iterations = 1;
    c->stop = COLUMN_DONE;
    krylov_tell(s, ++s->iterations, c->residual);
done:
    return st;
}

const struct krylov_solver krylov_direct = {
    .name = "direct", .solve = krylov_loop_solve, .vectors = vectors, .run = run};

/* Systems of tests of solvers that begin with a Laplacian: of one or more square grids of equal size that
 * are not connected, with Neumann or Dirichlet boundaries.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SUPPORT_GRID_H
#define SUPPORT_GRID_H

#include <math.h>

#include "tests/support/support.h"

struct grid {
    int64_t n;
    int64_t *row_ptr;
    int32_t *col;
    double *val, *b;
    void *typed; /* val in the type of the view */
    spmv_csr view;
};

/* shift is added to the diagonal. Neumann: each row sums to shift. */
static inline struct grid grid_new(int side, int grids, bool neumann, double shift, spmv_type type)
{
    const int64_t each = (int64_t)side * side, n = each * grids;
    struct grid g = {.n = n,
                     .row_ptr = support_zeros(n + 1, 8),
                     .col = support_zeros(5 * n, 4),
                     .val = support_zeros(5 * n, 8),
                     .b = support_zeros(n, 8)};
    int64_t nnz = 0;
    for (int64_t i = 0; i < n; i++) {
        const int64_t row = i % each / side, column = i % side;
        const int64_t step[] = {-side, -1, 0, 1, side};
        const bool there[] = {row > 0, column > 0, true, column < side - 1, row < side - 1};
        const int64_t diagonal = nnz + there[0] + there[1];
        double neighbours = 0;
        for (int k = 0; k < 5; k++)
            if (there[k]) {
                g.col[nnz] = (int32_t)(i + step[k]);
                g.val[nnz++] = -1;
                neighbours += k != 2;
            }
        g.val[diagonal] = (neumann ? neighbours : 4) + shift;
        g.row_ptr[i + 1] = nnz;
    }
    g.typed = support_as(type, g.val, nnz, 0);
    g.view = support_view(n, n, nnz, g.row_ptr, g.col, NULL, type);
    g.view.val = g.typed;
    return g;
}

/* Sets the values of the view again, from val. */
static inline void grid_retype(struct grid *g)
{
    free(g->typed);
    g->typed = support_as(g->view.type, g->val, g->view.nnz, 0);
    g->view.val = g->typed;
}

static inline void grid_free(struct grid *g)
{
    support_free(g->row_ptr, g->col, g->val, g->b, g->typed);
}

/* A solve from 0, of `vectors` right-hand sides, each of them b. x: room for n times vectors numbers. */
static inline spmv_status grid_solve(spmv_context *ctx, const struct grid *g, const spmv_solver_options *options,
                                     double *x, spmv_solver_result *results)
{
    spmv_solver_options o = *options;
    spmv_solver *solver = NULL;
    const spmv_type type = g->view.type;
    const int64_t count = g->n * o.vectors;
    double *const all = support_zeros(count, 8);
    for (int64_t i = 0; i < count; i++)
        all[i] = g->b[i / o.vectors];
    void *const b = support_upload_as(ctx, type, all, count, 0), *const there =
                                                                     support_upload_as(ctx, type, all, count, 0);
    o.zero_start = 1;
    spmv_status st = spmv_solver_create(ctx, &g->view, &o, &solver);
    if (st == SPMV_OK)
        st = spmv_solver_solve(solver, b, there, results, sizeof *results);
    support_fetch_as(ctx, type, there, count, x);
    spmv_solver_destroy(solver);
    spmv_free(ctx, b);
    spmv_free(ctx, there);
    free(all);
    return st;
}

/* ||b - A x||, and with `at` the norm of A (b - A x) in *at. */
static inline double grid_residual(const struct grid *g, const double *x, double *at)
{
    double *const r = support_zeros(g->n, 8);
    long double square = 0, squares = 0;
    for (int64_t i = 0; i < g->n; i++) {
        long double sum = g->b[i];
        for (int64_t k = g->row_ptr[i]; k < g->row_ptr[i + 1]; k++)
            sum -= (long double)g->val[k] * x[g->col[k]];
        r[i] = (double)sum;
        square += sum * sum;
    }
    for (int64_t i = 0; i < g->n && at != NULL; i++) {
        long double sum = 0;
        for (int64_t k = g->row_ptr[i]; k < g->row_ptr[i + 1]; k++)
            sum += (long double)g->val[k] * r[g->col[k]];
        squares += sum * sum;
    }
    if (at != NULL)
        *at = (double)sqrtl(squares);
    free(r);
    return (double)sqrtl(square);
}

#endif

/* The Laplacian with Dirichlet boundaries on a square or cubic grid in d dimensions, in natural
 * ordering: 2 d on the diagonal and -1 for each neighbour. Y. Saad, "Iterative Methods for Sparse
 * Linear Systems", 2nd ed., section 2.2.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "formats/generate/gen_grid.h"

static double poisson_value(const void *rule, int64_t row, int32_t col)
{
    const struct grid *const grid = rule;
    return col == row ? 2 * grid->axes : -1;
}

spmv_status generate_poisson(spmv_context *ctx, const struct generator_request *request, spmv_matrix **matrix)
{
    spmv_status st = SPMV_OK;
    struct grid grid;
    int64_t n;
    TRY(generator_integers(ctx, request, 1, &n));
    TRY(grid_make(ctx, request, n, request->self->axes, &grid));
    TRY(grid_build(ctx, request, &grid, poisson_value, matrix));
done:
    return st;
}

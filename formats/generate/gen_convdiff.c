/* Convection and diffusion: -Laplace(u) + w . grad(u) with u = 0 on the boundary, by central
 * differences for the diffusion and first-order upwind differences for the convection, on a square
 * or cubic grid of N inner points along each axis with the spacing h.
 *
 * The wind w is constant with the direction (1, 1/2[, 1/4]), so it blows from lower to higher x, y
 * and z. P_a = w_a h is the cell Peclet number along axis a: P_x = PECLET, P_y = PECLET / 2, P_z =
 * PECLET / 4. Rows are multiplied by h^2. Along each axis a, a row has
 *
 *   -(1 + P_a)   for the neighbour below (upwind)
 *   -1           for the neighbour above
 *   2 + P_a      in its share of the diagonal, also at the boundary
 *
 * Neighbours on the boundary have no column. The matrix is an M-matrix: the diagonal is positive,
 * the other entries are negative, and row sums are 0 in the interior and positive at the boundary.
 * It is not symmetric unless PECLET is 0, which gives the Laplacian of poisson2d and poisson3d.
 *
 * Y. Saad, "Iterative Methods for Sparse Linear Systems", 2nd ed., section 2.2, "Upwind Schemes";
 * S. V. Patankar, "Numerical Heat Transfer and Fluid Flow", 1980, section 5.2-2.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "formats/generate/gen_grid.h"

struct convdiff {
    struct grid grid; /* first: the rule of grid_build */
    double peclet[GRID_AXES_MAX];
};

static double convdiff_value(const void *rule, int64_t row, int32_t col)
{
    const struct convdiff *const c = rule;
    if (col > row)
        return -1;
    if (col < row)
        return -(1 + c->peclet[grid_axis_of(&c->grid, row, col)]);
    double sum = 0;
    for (int axis = 0; axis < c->grid.axes; axis++)
        sum += 2 + c->peclet[axis];
    return sum;
}

spmv_status generate_convdiff(spmv_context *ctx, const struct generator_request *request, spmv_matrix **matrix)
{
    spmv_status st = SPMV_OK;
    struct generator_argument a[2];
    struct convdiff c;
    TRY(generator_arguments(ctx, request, "nd", "with an integer N from 1 and a decimal PECLET from 0", a, NULL));
    for (int axis = 0; axis < GRID_AXES_MAX; axis++)
        c.peclet[axis] = a[1].real / (1 << axis);
    TRY(grid_make(ctx, request, a[0].n, request->self->axes, &c.grid));
    TRY(grid_build(ctx, request, &c.grid, convdiff_value, matrix));
done:
    return st;
}

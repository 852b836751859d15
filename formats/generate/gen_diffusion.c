/* Diffusion with a random coefficient: -div(K grad u) by cell-centred finite volumes on a square or
 * cubic grid of N cells along each axis, with u = 0 on the boundary.
 *
 * Cell p has the coefficient k_p, log-uniform from 1 to CONTRAST, a hash of p and the seed. K = k
 * diag(ANISO, 1[, 1]). Rows are scaled such that the cell size does not appear. The face between
 * the cells p and q has the harmonic mean of their coefficients,
 *
 *   t_pq = s 2 k_p k_q / (k_p + k_q),   s = ANISO for a face in x direction (between x and x + 1)
 *                                       s = 1 for all others
 *
 * and a face on the boundary, half a cell from the centre of its cell, has 2 s k_p. Row p has -t_pq
 * for each neighbour q, and on the diagonal the sum over all faces of p, the 4 or 6 with those on
 * the boundary. The matrix is symmetric to the bit. It is positive definite: it is diagonally
 * dominant, strictly in the rows at the boundary, and each cell is connected to one of them.
 *
 * S. V. Patankar, "Numerical Heat Transfer and Fluid Flow", 1980, section 4.2-3 (harmonic mean);
 * Y. Saad, "Iterative Methods for Sparse Linear Systems", 2nd ed., section 2.5 (finite volumes).
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>

#include "formats/generate/gen_grid.h"
#include "formats/generate/random.h"

enum { STREAM_COEFFICIENTS = 0x646966 };

struct diffusion {
    struct grid grid; /* first: the rule of grid_build */
    uint64_t seed;
    double log_contrast, aniso;
};

static double coefficient(const struct diffusion *d, int64_t cell)
{
    return exp(d->log_contrast * random_uniform(random_bits(d->seed, STREAM_COEFFICIENTS, (uint64_t)cell)));
}

static double scale(const struct diffusion *d, int axis)
{
    return axis == 0 ? d->aniso : 1;
}

/* The face between two cells. Exchanging a and b gives the same bits. */
static double inner_face(const struct diffusion *d, int axis, double a, double b)
{
    return scale(d, axis) * (2 * (a * b) / (a + b));
}

static double diagonal(const struct diffusion *d, int64_t cell)
{
    const struct grid_neighbours in = grid_neighbours_of(&d->grid, cell);
    const double k = coefficient(d, cell);
    double sum = 0;
    for (int axis = 0; axis < d->grid.axes; axis++) {
        const int64_t stride = d->grid.stride[axis];
        const double boundary = scale(d, axis) * (2 * k);
        sum += in.below[axis] ? inner_face(d, axis, k, coefficient(d, cell - stride)) : boundary;
        sum += in.above[axis] ? inner_face(d, axis, k, coefficient(d, cell + stride)) : boundary;
    }
    return sum;
}

static double diffusion_value(const void *rule, int64_t row, int32_t col)
{
    const struct diffusion *const d = rule;
    return col == row ? diagonal(d, row)
                      : -inner_face(d, grid_axis_of(&d->grid, row, col), coefficient(d, row), coefficient(d, col));
}

spmv_status generate_diffusion(spmv_context *ctx, const struct generator_request *request, spmv_matrix **matrix)
{
    spmv_status st = SPMV_OK;
    struct generator_argument a[3];
    struct diffusion d = {.seed = request->seed, .aniso = 1};
    int given;
    TRY(generator_arguments(ctx, request, "nd?d", "with an integer N from 1 and decimal numbers", a, &given));
    if (given > 2)
        d.aniso = a[2].real;
    if (a[1].real < 1 || !(d.aniso > 0)) {
        st = generator_fail(ctx, request, "with a CONTRAST from 1 and an ANISO above 0");
        goto done;
    }
    d.log_contrast = log(a[1].real);
    TRY(grid_make(ctx, request, a[0].n, request->self->axes, &d.grid));
    TRY(grid_build(ctx, request, &d.grid, diffusion_value, matrix));
done:
    return st;
}

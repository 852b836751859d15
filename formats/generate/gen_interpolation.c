/* Interpolation from aggregates of grid points to a cubic grid, as in smoothed aggregation.
 *
 * The grid of poisson3d:N is cut into aggregates of K x K x K points (fewer at the upper faces).
 * P0 has a one for each point in the column of its aggregate. P = (I - 2/3 D^-1 A) P0 with the
 * matrix A of poisson3d:N and its diagonal D = 6 I. A row of P has an entry for its own aggregate and
 * for each other aggregate with a neighbour of the point.
 *
 * P. Vanek, J. Mandel, M. Brezina, "Algebraic multigrid by smoothed aggregation for second and
 * fourth order elliptic problems", Computing 56, 1996.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "formats/generate/gen_grid.h"

struct interpolation {
    struct grid points, aggregates;
    int64_t side; /* points along each axis of an aggregate */
};

/* The coarse columns of a row, ascending, and the number of neighbours in the row's own aggregate. */
struct coupled {
    int32_t col[7];
    int count, own;
    int inside;
};

static struct coupled couple(const struct interpolation *p, int64_t row)
{
    struct coupled c = {.count = 0};
    bool below[3], above[3];
    int32_t own = 0;
    for (int axis = 0; axis < 3; axis++, row /= p->points.n) {
        const int64_t x = row % p->points.n, last = p->points.n - 1;
        below[axis] = x > 0 && x % p->side == 0;
        above[axis] = x < last && (x + 1) % p->side == 0;
        c.inside += (x > 0 && !below[axis]) + (x < last && !above[axis]);
        own += (int32_t)(x / p->side * p->aggregates.stride[axis]);
    }
    for (int axis = 2; axis >= 0; axis--)
        if (below[axis])
            c.col[c.count++] = own - (int32_t)p->aggregates.stride[axis];
    c.own = own;
    c.col[c.count++] = own;
    for (int axis = 0; axis < 3; axis++)
        if (above[axis])
            c.col[c.count++] = own + (int32_t)p->aggregates.stride[axis];
    return c;
}

static int64_t coupled_length(const void *rule, int64_t row)
{
    return couple(rule, row).count;
}

static void coupled_fill(const void *rule, int64_t row, int64_t length, int32_t *col)
{
    const struct coupled c = couple(rule, row);
    for (int64_t k = 0; k < length; k++)
        col[k] = c.col[k];
}

/* A P0 is 6 - inside in the own aggregate, and -1 in the others. */
static double coupled_value(const void *rule, int64_t row, int32_t col)
{
    const struct coupled c = couple(rule, row);
    return col == c.own ? 1 - (6 - c.inside) / 9.0 : 1 / 9.0;
}

spmv_status generate_interpolation3d(spmv_context *ctx, const struct generator_request *request, spmv_matrix **matrix)
{
    spmv_status st = SPMV_OK;
    struct interpolation p;
    int64_t sizes[2];
    TRY(generator_integers(ctx, request, 2, sizes));
    p.side = min_i64(sizes[1], sizes[0]);
    TRY(grid_make(ctx, request, sizes[0], 3, &p.points));
    TRY(grid_make(ctx, request, ceil_divide(sizes[0], p.side), 3, &p.aggregates));
    const struct generator_rows rows = {.rows = p.points.points,
                                        .cols = p.aggregates.points,
                                        .entries = (double)p.points.points * (1 + 6.0 / (double)p.side),
                                        .rule = &p,
                                        .length = coupled_length,
                                        .fill = coupled_fill,
                                        .value = coupled_value};
    TRY(generator_build(ctx, request, &rows, matrix));
done:
    return st;
}

/* Linear elasticity in a plane (plane strain) or in space: bilinear or trilinear finite elements on a
 * square or cubic grid, clamped on one side; and the rigid body modes of its nodes.
 *
 * Node p of the N x N [x N] nodes has the coordinates (x + 1, y[, z]) and 2 or 3 unknowns, its
 * displacements along the axes: rows 2 p and 2 p + 1, or 3 p to 3 p + 2. The nodes with the coordinate
 * x = 0 are clamped and are not unknowns. Young's modulus and the size of an element are 1; NU is
 * Poisson's ratio. With the Lame parameters l = NU / ((1 + NU) (1 - 2 NU)) and m = 1 / (2 (1 + NU)),
 * the element matrix is
 *
 *     k_(a i)(b j) = integral of l d_i f_a d_j f_b + m d_j f_a d_i f_b + (i = j) m grad f_a . grad f_b
 *
 * for the functions f_a of the corners a of the element. A row has an entry for each unknown of each
 * neighbour, also across diagonals. The matrix is symmetric to the bit, and positive definite.
 *
 * A rigid body mode is a displacement without strain: a translation along an axis, or a rotation around
 * the middle of the nodes. Where nothing is clamped, A times a mode is 0.
 *
 * T. J. R. Hughes, "The Finite Element Method", 1987, sections 2.7 and 2.9 (elasticity), 3.2 (elements).
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "formats/generate/gen_grid.h"

enum { CORNERS = 1 << GRID_AXES_MAX };

struct elasticity {
    struct grid grid;
    /* of an element: corners a and b, components i and j; bit axis of a corner: its place there */
    double element[CORNERS][CORNERS][GRID_AXES_MAX][GRID_AXES_MAX];
};

/* The integral over an element of f_a f_b, each of which may be derived along an axis; -1: not. */
static double integral(int axes, int a, int derived_a, int b, int derived_b)
{
    double product = 1;
    for (int axis = 0; axis < axes; axis++) {
        const int at_a = a >> axis & 1, at_b = b >> axis & 1;
        const double slope_a = at_a ? 1 : -1, slope_b = at_b ? 1 : -1;
        if (axis == derived_a && axis == derived_b)
            product *= slope_a * slope_b;
        else if (axis == derived_a)
            product *= slope_a / 2;
        else if (axis == derived_b)
            product *= slope_b / 2;
        else
            product *= at_a == at_b ? 1.0 / 3 : 1.0 / 6;
    }
    return product;
}

static void make_element(struct elasticity *e, double nu)
{
    const int axes = e->grid.axes;
    const double l = nu / ((1 + nu) * (1 - 2 * nu)), m = 1 / (2 * (1 + nu));
    for (int a = 0; a < 1 << axes; a++)
        for (int b = 0; b < 1 << axes; b++)
            for (int i = 0; i < axes; i++)
                for (int j = 0; j < axes; j++) {
                    double sum = l * integral(axes, a, i, b, j) + m * integral(axes, a, j, b, i);
                    for (int axis = 0; axis < axes && i == j; axis++)
                        sum += m * integral(axes, a, axis, b, axis);
                    e->element[a][b][i][j] = sum;
                }
}

/* The coordinates of a node in the grid of unknowns. */
static void locate(const struct grid *grid, int64_t node, int64_t *at)
{
    for (int axis = 0; axis < grid->axes; axis++, node /= grid->n)
        at[axis] = node % grid->n;
}

static int64_t elastic_length(const void *rule, int64_t row)
{
    const struct grid *const grid = rule;
    const struct grid_neighbours in = grid_neighbours_of(grid, row / grid->axes);
    int64_t length = grid->axes;
    for (int axis = 0; axis < grid->axes; axis++)
        length *= 1 + in.below[axis] + in.above[axis];
    return length;
}

static void elastic_fill(const void *rule, int64_t row, int64_t length, int32_t *col)
{
    const struct grid *const grid = rule;
    const int64_t node = row / grid->axes;
    const struct grid_neighbours in = grid_neighbours_of(grid, node);
    int64_t nodes[27], count = 1;
    nodes[0] = node;
    for (int axis = 0; axis < grid->axes; axis++) { /* the last axis has the largest stride */
        const int64_t before = count;
        const int64_t below = in.below[axis] ? before : 0;
        for (int64_t k = before - 1; k >= 0; k--) {
            const int64_t one = nodes[k];
            nodes[below + k] = one;
            if (in.above[axis])
                nodes[below + before + k] = one + grid->stride[axis];
        }
        for (int64_t k = 0; k < below; k++)
            nodes[k] = nodes[below + k] - grid->stride[axis];
        count += below + (in.above[axis] ? before : 0);
    }
    for (int64_t k = 0; k < length; k++)
        col[k] = (int32_t)(nodes[k / grid->axes] * grid->axes + k % grid->axes);
}

/* The sum over the elements that have both nodes, by ascending place, so that exchanging row and column
 * gives the same bits. Along x, an element begins at each node and at the clamped one before the first;
 * along the other axes, none begins at the last node. */
static double elastic_value(const void *rule, int64_t row, int32_t col)
{
    const struct elasticity *const e = rule;
    const struct grid *const grid = &e->grid;
    const int axes = grid->axes;
    int64_t p[GRID_AXES_MAX], q[GRID_AXES_MAX];
    double sum = 0;
    locate(grid, row / axes, p);
    locate(grid, col / axes, q);
    for (int place = 0; place < 1 << axes; place++) {
        int a = 0, b = 0;
        bool there = true;
        for (int axis = 0; axis < axes; axis++) {
            const int64_t last = p[axis] > q[axis] ? p[axis] : q[axis]; /* an element with both begins here or before */
            const int64_t begin = last - 1 + (place >> axis & 1);
            there =
                there && begin <= p[axis] && begin <= q[axis] && begin + 1 < grid->n && begin >= (axis == 0 ? -1 : 0);
            if (there) {
                a |= (int)(p[axis] - begin) << axis;
                b |= (int)(q[axis] - begin) << axis;
            }
        }
        if (there)
            sum += e->element[a][b][row % axes][col % axes];
    }
    return sum;
}

static spmv_status read_grid(spmv_context *ctx, const struct generator_request *request, struct grid *grid, double *nu)
{
    struct generator_argument a[2];
    int given;
    static const char why[] = "with an integer N from 2 and a decimal number NU below 0.5";
    spmv_status st = generator_arguments(ctx, request, nu != NULL ? "n?d" : "n", why, a, &given);
    if (st != SPMV_OK)
        return st;
    if (a[0].n < 2 || (given > 1 && !(a[1].real < 0.5)))
        return generator_fail(ctx, request, why);
    if (given > 1)
        *nu = a[1].real;
    st = grid_make(ctx, request, a[0].n, request->self->axes, grid);
    return st != SPMV_OK ? st : generator_columns(ctx, request, grid->points * grid->axes);
}

spmv_status generate_elasticity(spmv_context *ctx, const struct generator_request *request, spmv_matrix **matrix)
{
    struct elasticity e;
    double nu = 0.3, entries = 1;
    const spmv_status st = read_grid(ctx, request, &e.grid, &nu);
    if (st != SPMV_OK)
        return st;
    make_element(&e, nu);
    for (int axis = 0; axis < e.grid.axes; axis++)
        entries *= (double)(3 * e.grid.n - 2);
    const int64_t rows = e.grid.points * e.grid.axes;
    const struct generator_rows r = {.rows = rows,
                                     .cols = rows,
                                     .entries = entries * e.grid.axes * e.grid.axes,
                                     .rule = &e,
                                     .length = elastic_length,
                                     .fill = elastic_fill,
                                     .value = elastic_value};
    return generator_build(ctx, request, &r, matrix);
}

/* The first rotation is around x (in a plane: around z), and so on; the mode of component i that a
 * rotation has is a coordinate along another axis. */
static int64_t rigid_length(const void *rule, int64_t row)
{
    (void)row;
    return ((const struct grid *)rule)->axes;
}

static void rigid_fill(const void *rule, int64_t row, int64_t length, int32_t *col)
{
    const int axes = ((const struct grid *)rule)->axes;
    int32_t *to = col;
    *to++ = (int32_t)(row % axes);
    if (axes == 2)
        *to++ = 2;
    for (int axis = 0; axis < 3 && axes == 3; axis++)
        if (axis != row % axes)
            *to++ = (int32_t)(3 + axis);
    (void)length;
}

/* A rotation around axis r moves (.., s, t) with s, t the next axes by (.., -x_t, x_s). */
static double rigid_value(const void *rule, int64_t row, int32_t col)
{
    const struct grid *const grid = rule;
    const int axes = grid->axes, component = (int)(row % axes);
    int64_t at[GRID_AXES_MAX];
    if (col < axes)
        return 1;
    const int around = axes == 2 ? 2 : col - axes;
    const bool first = component == (around + 1) % 3;
    locate(grid, row / axes, at);
    const int other = first ? (around + 2) % 3 : (around + 1) % 3;
    const double distance = (double)at[other] - (double)(grid->n - 1) / 2;
    return first ? -distance : distance;
}

spmv_status generate_rigid(spmv_context *ctx, const struct generator_request *request, spmv_matrix **matrix)
{
    struct grid grid;
    const spmv_status st = read_grid(ctx, request, &grid, NULL);
    if (st != SPMV_OK)
        return st;
    const int64_t rows = grid.points * grid.axes;
    const struct generator_rows r = {.rows = rows,
                                     .cols = grid.axes == 2 ? 3 : 6,
                                     .entries = (double)rows * grid.axes,
                                     .rule = &grid,
                                     .length = rigid_length,
                                     .fill = rigid_fill,
                                     .value = rigid_value};
    return generator_build(ctx, request, &r, matrix);
}

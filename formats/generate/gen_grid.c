/* Grids: sizes, row lengths and columns.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "formats/generate/gen_grid.h"

spmv_status grid_make(spmv_context *ctx, const struct generator_request *request, int64_t n, int axes,
                      struct grid *grid)
{
    *grid = (struct grid){.n = n, .axes = axes, .points = 1};
    bool fits = true;
    for (int axis = 0; axis < axes && fits; axis++) {
        grid->stride[axis] = grid->points;
        fits = multiply_fits(grid->points, n, &grid->points) && grid->points <= INT32_MAX;
    }
    return fits ? SPMV_OK
                : context_fail(ctx, SPMV_ERROR_LIMIT,
                               "matrix SPEC \"%s:%.100s\": %lld^%d columns, at most %d are possible",
                               request->self->name, request->arguments, (long long)n, axes, INT32_MAX);
}

static int64_t row_length(const void *rule, int64_t row)
{
    const struct grid *const grid = rule;
    const struct grid_neighbours in = grid_neighbours_of(grid, row);
    int64_t length = 1;
    for (int axis = 0; axis < grid->axes; axis++)
        length += in.below[axis] + in.above[axis];
    return length;
}

static void fill_columns(const void *rule, int64_t row, int64_t length, int32_t *col)
{
    const struct grid *const grid = rule;
    const struct grid_neighbours in = grid_neighbours_of(grid, row);
    (void)length;
    for (int axis = grid->axes - 1; axis >= 0; axis--)
        if (in.below[axis])
            *col++ = (int32_t)(row - grid->stride[axis]);
    *col++ = (int32_t)row;
    for (int axis = 0; axis < grid->axes; axis++)
        if (in.above[axis])
            *col++ = (int32_t)(row + grid->stride[axis]);
}

spmv_status grid_build(spmv_context *ctx, const struct generator_request *request, const struct grid *grid,
                       double (*value)(const void *rule, int64_t row, int32_t col), spmv_matrix **matrix)
{
    /* Along each axis, one face of the grid lacks the neighbour below and one the neighbour
     * above. */
    const int64_t entries = (1 + 2 * grid->axes) * grid->points - 2 * grid->axes * (grid->points / grid->n);
    const struct generator_rows rows = {.rows = grid->points,
                                        .cols = grid->points,
                                        .entries = (double)entries,
                                        .rule = grid,
                                        .length = row_length,
                                        .fill = fill_columns,
                                        .value = value};
    return generator_build(ctx, request, &rows, matrix);
}

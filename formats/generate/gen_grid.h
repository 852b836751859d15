/* Square and cubic grids in natural ordering, and matrices that couple each point with its
 * neighbours along the axes.
 *
 * Row r is the grid point with r = x + N y + N^2 z. Its neighbours are r - 1 and r + 1, r - N and r
 * + N, r - N^2 and r + N^2, as far as they lie in the grid.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef GEN_GRID_H
#define GEN_GRID_H

#include "formats/generate/gen_rows.h"

enum { GRID_AXES_MAX = 3 };

struct grid {
    int64_t n; /* points along each axis */
    int axes;
    int64_t stride[GRID_AXES_MAX]; /* n^axis */
    int64_t points;                /* n^axes <= INT32_MAX */
};

/* n >= 1. SPMV_ERROR_LIMIT if there are more points than a matrix can have columns. */
spmv_status grid_make(spmv_context *ctx, const struct generator_request *request, int64_t n, int axes,
                      struct grid *grid);

/* Which neighbours of a point lie in the grid, for each axis. */
struct grid_neighbours {
    bool below[GRID_AXES_MAX], above[GRID_AXES_MAX];
};

static inline struct grid_neighbours grid_neighbours_of(const struct grid *grid, int64_t point)
{
    struct grid_neighbours in = {{false}, {false}};
    for (int axis = 0; axis < grid->axes; axis++) {
        /* Division of 32-bit numbers is faster and suffices: points <= INT32_MAX. */
        const uint32_t coordinate = (uint32_t)point / (uint32_t)grid->stride[axis] % (uint32_t)grid->n;
        in.below[axis] = coordinate > 0;
        in.above[axis] = coordinate + 1 < (uint32_t)grid->n;
    }
    return in;
}

/* The axis along which two points are neighbours. */
static inline int grid_axis_of(const struct grid *grid, int64_t point, int64_t neighbour)
{
    const int64_t distance = neighbour > point ? neighbour - point : point - neighbour;
    int axis = 0;
    while (axis + 1 < grid->axes && grid->stride[axis] != distance)
        axis++;
    return axis;
}

/* Builds the matrix with an entry for each point and each of its neighbours. value gets grid as its
 * rule, so grid may be the first member of a larger struct. */
spmv_status grid_build(spmv_context *ctx, const struct generator_request *request, const struct grid *grid,
                       double (*value)(const void *rule, int64_t row, int32_t col), spmv_matrix **matrix);

#endif

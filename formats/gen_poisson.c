/* The Laplacian with Dirichlet boundaries on a square or cubic grid in d dimensions, in natural
 * ordering: 2 d on the diagonal and -1 for each neighbour.
 *
 * Row r is the grid point with r = x + N y + N^2 z. Its neighbours along the axes are r - 1 and r +
 * 1, r - N and r + N, r - N^2 and r + N^2, as far as they lie in the grid. Y. Saad, "Iterative
 * Methods for Sparse Linear Systems", 2nd ed., section 2.2.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "generate.h"
#include "reals.h"

enum { AXES_MAX = 3 };

struct grid {
    int64_t n; /* points along each axis */
    int axes;
    int64_t stride[AXES_MAX]; /* n^axis */
    int64_t points;           /* n^axes */
};

static bool make_grid(int64_t n, int axes, struct grid *grid)
{
    *grid = (struct grid){.n = n, .axes = axes, .points = 1};
    for (int axis = 0; axis < axes; axis++) {
        grid->stride[axis] = grid->points;
        if (!multiply_fits(grid->points, n, &grid->points))
            return false;
    }
    return true;
}

/* Which neighbours of a row lie in the grid, for each axis. */
struct neighbours {
    bool below[AXES_MAX], above[AXES_MAX];
};

static inline struct neighbours neighbours_of(const struct grid *grid, int64_t row)
{
    struct neighbours in = {{false}, {false}};
    for (int axis = 0; axis < grid->axes; axis++) {
        /* Division of 32-bit numbers is faster and suffices: points <= INT32_MAX. */
        const uint32_t coordinate = (uint32_t)row / (uint32_t)grid->stride[axis] % (uint32_t)grid->n;
        in.below[axis] = coordinate > 0;
        in.above[axis] = coordinate + 1 < (uint32_t)grid->n;
    }
    return in;
}

static inline int64_t row_length(const struct grid *grid, int64_t row)
{
    const struct neighbours in = neighbours_of(grid, row);
    int64_t length = 1;
    for (int axis = 0; axis < grid->axes; axis++)
        length += in.below[axis] + in.above[axis];
    return length;
}

static inline void fill_columns(const struct grid *grid, int64_t row, int32_t *col)
{
    const struct neighbours in = neighbours_of(grid, row);
    for (int axis = grid->axes - 1; axis >= 0; axis--)
        if (in.below[axis])
            *col++ = (int32_t)(row - grid->stride[axis]);
    *col++ = (int32_t)row;
    for (int axis = 0; axis < grid->axes; axis++)
        if (in.above[axis])
            *col++ = (int32_t)(row + grid->stride[axis]);
}

static void fill_values(const spmv_matrix *m, int axes, int64_t row)
{
    for (int64_t k = m->row_ptr[row]; k < m->row_ptr[row + 1]; k++)
        real_set(m->type, m->val, k, m->col[k] == row ? 2 * axes : -1);
}

static spmv_status poisson(spmv_context *ctx, const struct generator_request *request, int axes, spmv_matrix **matrix)
{
    spmv_status st = SPMV_OK;
    spmv_matrix *m = NULL;
    struct grid grid;
    int64_t n;
    TRY(generator_integers(ctx, request, 1, &n));
    if (!make_grid(n, axes, &grid) || grid.points > INT32_MAX) {
        st = context_fail(ctx, SPMV_ERROR_LIMIT, "matrix SPEC \"%s:%lld\": %lld^%d columns, at most %d are possible",
                          request->self->name, (long long)n, (long long)n, axes, INT32_MAX);
        goto done;
    }
    /* Along each axis, one face of the grid lacks the neighbour below and one the neighbour
     * above. */
    const int64_t entries = (1 + 2 * axes) * grid.points - 2 * axes * (grid.points / n);
    TRY(generator_fits(ctx, request, grid.points, grid.points, (double)entries, 0));
    TRY(matrix_allocate(ctx, grid.points, grid.points, entries, request->type, false, &m));
#pragma omp parallel for num_threads(host_team(ctx, grid.points)) schedule(static)
    for (int64_t row = 0; row < grid.points; row++)
        m->row_ptr[row] = row_length(&grid, row);
    TRY(offsets_from_counts(ctx, m->row_ptr, m->rows));
#pragma omp parallel for num_threads(host_team(ctx, m->nnz)) schedule(static)
    for (int64_t row = 0; row < grid.points; row++) {
        fill_columns(&grid, row, m->col + m->row_ptr[row]);
        if (request->values == GENERATOR_OWN)
            fill_values(m, axes, row);
    }
    if (request->values != GENERATOR_OWN)
        generator_fill_values(ctx, request, m);
    *matrix = m;
done:
    if (st != SPMV_OK)
        spmv_matrix_destroy(m);
    return st;
}

spmv_status generate_poisson2d(spmv_context *ctx, const struct generator_request *request, spmv_matrix **matrix)
{
    return poisson(ctx, request, 2, matrix);
}

spmv_status generate_poisson3d(spmv_context *ctx, const struct generator_request *request, spmv_matrix **matrix)
{
    return poisson(ctx, request, 3, matrix);
}

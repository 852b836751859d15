/* Patterns without random choices: a 27-point stencil, bands, a diagonal, a dense matrix. Values
 * are random, except for the stencil.
 *
 * The stencil is the operator of J. Dongarra, M. A. Heroux, P. Luszczek, "HPCG benchmark",
 * University of Tennessee UT-EECS-15-736, 2015: 26 on the diagonal and -1 for each of the up to 26
 * grid points at most one step away along each axis, in natural ordering. It is symmetric. It is
 * positive definite: the rows at the faces are strictly diagonally dominant, and every point is
 * connected to one of them.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "formats/generate/gen_grid.h"

/* The points of a row's neighbourhood along one axis: from <= point <= to. */
struct span {
    int64_t from, to;
};

static struct span span_of(int64_t coordinate, int64_t n)
{
    return (struct span){max_i64(coordinate - 1, 0), min_i64(coordinate + 1, n - 1)};
}

static void spans_of(const struct grid *cube, int64_t row, struct span *span)
{
    for (int axis = 0; axis < 3; axis++, row /= cube->n)
        span[axis] = span_of(row % cube->n, cube->n);
}

static int64_t stencil27_length(const void *rule, int64_t row)
{
    struct span span[3];
    int64_t length = 1;
    spans_of(rule, row, span);
    for (int axis = 0; axis < 3; axis++)
        length *= span[axis].to - span[axis].from + 1;
    return length;
}

static void stencil27_fill(const void *rule, int64_t row, int64_t length, int32_t *col)
{
    const struct grid *cube = rule;
    struct span span[3];
    (void)length;
    spans_of(cube, row, span);
    for (int64_t z = span[2].from; z <= span[2].to; z++)
        for (int64_t y = span[1].from; y <= span[1].to; y++)
            for (int64_t x = span[0].from; x <= span[0].to; x++)
                *col++ = (int32_t)((z * cube->n + y) * cube->n + x);
}

static double stencil27_value(const void *rule, int64_t row, int32_t col)
{
    (void)rule;
    return col == row ? 26 : -1;
}

spmv_status generate_stencil27(spmv_context *ctx, const struct generator_request *request, spmv_matrix **matrix)
{
    struct grid cube;
    int64_t n;
    spmv_status st = generator_integers(ctx, request, 1, &n);
    if (st == SPMV_OK)
        st = grid_make(ctx, request, n, 3, &cube);
    if (st != SPMV_OK)
        return st;
    /* total number of neighbours along one axis, the points themselves included */
    const double along = 3 * (double)n - 2;
    const struct generator_rows rows = {.rows = cube.points,
                                        .cols = cube.points,
                                        .entries = along * along * along,
                                        .rule = &cube,
                                        .length = stencil27_length,
                                        .fill = stencil27_fill,
                                        .value = stencil27_value};
    return generator_build(ctx, request, &rows, matrix);
}

/* Consecutive columns: from max(0, row - half) to min(cols - 1, row + half). A diagonal has half =
 * 0. */
struct band {
    int64_t rows, cols, half;
};

static struct span band_of(const struct band *band, int64_t row)
{
    return (struct span){row > band->half ? row - band->half : 0,
                         band->cols - 1 - row > band->half ? row + band->half : band->cols - 1};
}

static int64_t band_length(const void *rule, int64_t row)
{
    const struct span span = band_of(rule, row);
    return span.to - span.from + 1;
}

static void band_fill(const void *rule, int64_t row, int64_t length, int32_t *col)
{
    const int64_t from = band_of(rule, row).from;
    for (int64_t k = 0; k < length; k++)
        col[k] = (int32_t)(from + k);
}

static spmv_status build_band(spmv_context *ctx, const struct generator_request *request, const struct band *band,
                              spmv_matrix **matrix)
{
    const double width = 2 * (double)band->half + 1, cols = (double)band->cols;
    const struct generator_rows rows = {.rows = band->rows,
                                        .cols = band->cols,
                                        .entries = (double)band->rows * (width < cols ? width : cols),
                                        .rule = band,
                                        .length = band_length,
                                        .fill = band_fill};
    return generator_build(ctx, request, &rows, matrix);
}

spmv_status generate_diagonal(spmv_context *ctx, const struct generator_request *request, spmv_matrix **matrix)
{
    struct band band = {0};
    const spmv_status st = generator_integers(ctx, request, 1, &band.rows);
    band.cols = band.rows;
    return st == SPMV_OK ? build_band(ctx, request, &band, matrix) : st;
}

spmv_status generate_banded(spmv_context *ctx, const struct generator_request *request, spmv_matrix **matrix)
{
    struct generator_argument a[2];
    const spmv_status st =
        generator_arguments(ctx, request, "nz", "with integers, ROWS from 1 and HALF from 0", a, NULL);
    if (st != SPMV_OK)
        return st;
    const struct band band = {.rows = a[0].n, .cols = a[0].n, .half = min_i64(a[1].n, a[0].n)};
    return build_band(ctx, request, &band, matrix);
}

static int64_t dense_length(const void *rule, int64_t row)
{
    (void)row;
    return ((const struct band *)rule)->cols;
}

static void dense_fill(const void *rule, int64_t row, int64_t length, int32_t *col)
{
    (void)rule;
    (void)row;
    for (int64_t k = 0; k < length; k++)
        col[k] = (int32_t)k;
}

spmv_status generate_dense(spmv_context *ctx, const struct generator_request *request, spmv_matrix **matrix)
{
    int64_t sizes[2];
    const spmv_status st = generator_integers(ctx, request, 2, sizes);
    if (st != SPMV_OK)
        return st;
    const struct band all = {.rows = sizes[0], .cols = sizes[1]};
    const struct generator_rows rows = {.rows = all.rows,
                                        .cols = all.cols,
                                        .entries = (double)all.rows * (double)all.cols,
                                        .rule = &all,
                                        .length = dense_length,
                                        .fill = dense_fill};
    return generator_build(ctx, request, &rows, matrix);
}

/* Heights from measured differences: surveyors measure how much higher one point of an N x N grid is
 * than its neighbour, with errors. The heights that fit best minimise ||A x - b||, where a row of A has
 * -1 and 1, and a last row that fixes the first point.
 *
 * The differences here come from a known hill and errors of up to 1 per cent. Then one point is left
 * free: A has lost rank, and x is the solution of smallest norm. Each residual is computed again here, on
 * the host, and compared with the solver's.
 *
 * usage: least_squares [N], default 60.
 *
 * By hand:
 *
 *   cc least_squares.c $(pkg-config --cflags --libs spmv) -lm -o least_squares
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdlib.h>

#include "check.h"

static double height(int i, int size)
{
    return 10 * sin(3.0 * (i % size) / size) * sin(3.0 * (i / size) / size);
}

/* A measured difference of two points: row *row of A and b. */
static void measure(int from, int to, int size, int *row, int32_t *row_ptr, int32_t *col, double *val, double *b)
{
    const double difference = height(to, size) - height(from, size);
    const int r = (*row)++;
    col[2 * r] = from;
    col[2 * r + 1] = to;
    val[2 * r] = -1;
    val[2 * r + 1] = 1;
    b[r] = difference * (1 + 0.01 * sin(1.0 + r)); /* "errors" that repeat */
    row_ptr[r + 1] = 2 * r + 2;
}

/* ||b - A x|| */
static double residual_norm(const spmv_csr *a, const double *b, const double *x)
{
    const int32_t *const row_ptr = a->row_ptr;
    const double *const val = a->val;
    double square = 0;
    for (int64_t i = 0; i < a->rows; i++) {
        double r = b[i];
        for (int32_t k = row_ptr[i]; k < row_ptr[i + 1]; k++)
            r -= val[k] * x[a->col[k]];
        square += r * r;
    }
    return sqrt(square);
}

/* Fits, prints, and compares the residual. */
static spmv_status fit(spmv_context *ctx, const spmv_csr *a, const double *host_b, double *host_x, int *wrong)
{
    spmv_status st = SPMV_OK;
    spmv_least_squares *solver = NULL;
    void *b = NULL, *x = NULL;
    spmv_least_squares_options options;
    spmv_least_squares_result result;
    spmv_least_squares_options_init(&options, sizeof options);
    options.atol = options.btol = 1e-10;
    options.zero_start = 1;
    CHECK(spmv_alloc(ctx, a->rows * (int64_t)sizeof *host_b, &b));
    CHECK(spmv_alloc(ctx, a->cols * (int64_t)sizeof *host_x, &x));
    CHECK(spmv_upload(ctx, host_b, b, a->rows * (int64_t)sizeof *host_b));
    CHECK(spmv_least_squares_create(ctx, a, &options, &solver));
    CHECK(spmv_least_squares_solve(solver, b, x, &result, sizeof result));
    CHECK(spmv_download(ctx, x, host_x, a->cols * (int64_t)sizeof *host_x));
    const double residual = residual_norm(a, host_b, host_x);
    *wrong +=
        !(fabs(residual - result.true_residual) <= 1e-12 * result.norm_b) || result.stop != SPMV_STOP_LEAST_SQUARES;
    printf("%lld x %lld: %lld iterations of %s, ||b - A x|| = %.6g, ||A'r|| = %.2g: %s\n", (long long)a->rows,
           (long long)a->cols, (long long)result.iterations, result.solver, residual, result.true_gradient,
           result.why_stop);
done:
    spmv_least_squares_destroy(solver);
    spmv_free(ctx, x);
    spmv_free(ctx, b);
    return st;
}

int main(int argc, char **argv)
{
    const int size = argc > 1 ? atoi(argv[1]) : 60;
    if (argc > 2 || size < 2 || size > 5000) {
        fprintf(stderr, "usage: least_squares [N], 2 <= N <= 5000\n");
        return 1;
    }
    const int points = size * size, most = 2 * size * (size - 1) + 1;
    spmv_status st = SPMV_OK;
    spmv_context *ctx = NULL;
    int row = 0, wrong = 0;
    int32_t *const row_ptr = calloc((size_t)most + 1, sizeof *row_ptr);
    int32_t *const col = malloc(2 * (size_t)most * sizeof *col);
    double *const val = malloc(2 * (size_t)most * sizeof *val), *const b = malloc((size_t)most * sizeof *b);
    double *const x = malloc((size_t)points * sizeof *x);
    if (row_ptr == NULL || col == NULL || val == NULL || b == NULL || x == NULL) {
        fprintf(stderr, "no memory for %d points\n", points);
        st = SPMV_ERROR_MEMORY;
        goto done;
    }
    for (int i = 0; i < points; i++) {
        if (i % size < size - 1)
            measure(i, i + 1, size, &row, row_ptr, col, val, b);
        if (i < points - size)
            measure(i, i + size, size, &row, row_ptr, col, val, b);
    }
    col[2 * row] = 0; /* the first point has the height 0 */
    val[2 * row] = 1;
    b[row] = 0;
    row_ptr[row + 1] = row_ptr[row] + 1;

    CHECK(spmv_context_create(NULL, &ctx)); /* a GPU if there is one, else OpenMP */
    spmv_csr a = {.rows = row + 1,
                  .cols = points,
                  .nnz = row_ptr[row + 1],
                  .row_ptr = row_ptr,
                  .row_ptr_bits = 32,
                  .col = col,
                  .val = val,
                  .type = SPMV_F64,
                  .memory = SPMV_MEMORY_HOST}; /* the solver copies the arrays */
    double error = 0, mean = 0;
    CHECK(fit(ctx, &a, b, x, &wrong));
    for (int i = 0; i < points; i++)
        error = fmax(error, fabs(x[i] - height(i, size)));
    printf("largest error of a height: %.3g\n", error);

    a.rows = row; /* without the row that fixes a point */
    a.nnz = row_ptr[row];
    CHECK(fit(ctx, &a, b, x, &wrong));
    for (int i = 0; i < points; i++)
        mean += x[i] / points;
    printf("mean height of the solution of smallest norm: %.1e\n", mean);
    wrong += !(error < 1 && fabs(mean) < 1e-8);
    printf("residuals: %s\n", wrong ? "WRONG" : "verified");

done:
    spmv_context_destroy(ctx);
    free(x);
    free(b);
    free(val);
    free(col);
    free(row_ptr);
    return st != SPMV_OK || wrong;
}

/* Many systems with one matrix, then with new values: heat in a square plate, by implicit Euler
 * steps.
 *
 * Each step solves (I + dt L) u_new = u + dt heat, with the Laplacian L of an N x N grid (unit
 * spacing, temperature 0 around it). The matrix stays as long as dt does, so one solver takes all
 * steps. Then dt grows: the pattern stays, and the solver gets new values.
 *
 * Each residual is computed again here, on the host, and compared with the solver's.
 *
 * usage: repeated_solves [N], default 100.
 *
 * By hand:
 *
 *   cc repeated_solves.c $(pkg-config --cflags --libs spmv) -lm -o repeated_solves
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdlib.h>

#include "check.h"

/* The arrays of I + dt L for a grid of size x size points. */
struct matrix {
    int size, rows, nnz;
    int32_t *row_ptr, *col;
    double *val;
};

static void fill_pattern(struct matrix *m)
{
    const int n = m->size;
    m->nnz = 0;
    for (int i = 0; i < m->rows; i++) {
        const int at[] = {i - n, i - 1, i, i + 1, i + n};
        const int inside[] = {i >= n, i % n > 0, 1, i % n < n - 1, i < m->rows - n};
        m->row_ptr[i] = m->nnz;
        for (int e = 0; e < 5; e++)
            if (inside[e])
                m->col[m->nnz++] = at[e];
    }
    m->row_ptr[m->rows] = m->nnz;
}

static void fill_values(struct matrix *m, double dt)
{
    for (int i = 0; i < m->rows; i++)
        for (int32_t k = m->row_ptr[i]; k < m->row_ptr[i + 1]; k++)
            m->val[k] = m->col[k] == i ? 1 + 4 * dt : -dt;
}

/* ||b - A x|| */
static double residual_norm(const struct matrix *m, const double *b, const double *x)
{
    double square = 0;
    for (int i = 0; i < m->rows; i++) {
        double r = b[i];
        for (int32_t k = m->row_ptr[i]; k < m->row_ptr[i + 1]; k++)
            r -= m->val[k] * x[m->col[k]];
        square += r * r;
    }
    return sqrt(square);
}

/* One time step: u becomes the temperature after dt. b and x have room in the context's memory.
 * *wrong counts residuals that are not as the solver reports. */
static spmv_status step(spmv_context *ctx, spmv_solver *solver, const struct matrix *m, double dt, double *u,
                        double *host_b, void *b, void *x, int *wrong)
{
    spmv_status st = SPMV_OK;
    const int64_t bytes = m->rows * (int64_t)sizeof(double);
    spmv_solver_result result;
    for (int i = 0; i < m->rows; i++)
        host_b[i] = u[i];
    host_b[m->rows / 2 + m->size / 2] += dt * 100; /* a source of heat in the middle */
    CHECK(spmv_upload(ctx, host_b, b, bytes));
    CHECK(spmv_upload(ctx, u, x, bytes)); /* the solver starts from the last temperature */
    CHECK(spmv_solver_solve(solver, b, x, &result, sizeof result));
    CHECK(spmv_download(ctx, x, u, bytes));
    const double residual = residual_norm(m, host_b, u);
    *wrong +=
        !(result.true_residual <= result.tolerance && fabs(residual - result.true_residual) <= 1e-12 * result.norm_b);
    printf("dt %-4g  %3lld iterations with %s, ||b - A x|| = %.3e, tolerance %.3e, %.3g at the centre\n", dt,
           (long long)result.iterations, result.precond, residual, result.tolerance, u[m->rows / 2 + m->size / 2]);
done:
    return st;
}

int main(int argc, char **argv)
{
    const int size = argc > 1 ? atoi(argv[1]) : 100;
    if (argc > 2 || size < 1 || size > 10000) {
        fprintf(stderr, "usage: repeated_solves [N], 1 <= N <= 10000\n");
        return 1;
    }
    struct matrix m = {.size = size, .rows = size * size};
    const int64_t bytes = m.rows * (int64_t)sizeof(double);
    spmv_status st = SPMV_OK;
    spmv_context *ctx = NULL;
    spmv_solver *solver = NULL;
    void *b = NULL, *x = NULL, *values = NULL;
    int wrong = 0;

    m.row_ptr = malloc(((size_t)m.rows + 1) * sizeof *m.row_ptr);
    m.col = malloc(5 * (size_t)m.rows * sizeof *m.col);
    m.val = malloc(5 * (size_t)m.rows * sizeof *m.val);
    double *const u = calloc((size_t)m.rows, sizeof *u), *const host_b = malloc((size_t)bytes);
    if (m.row_ptr == NULL || m.col == NULL || m.val == NULL || u == NULL || host_b == NULL) {
        fprintf(stderr, "no memory for %d rows\n", m.rows);
        st = SPMV_ERROR_MEMORY;
        goto done;
    }
    fill_pattern(&m);
    fill_values(&m, 0.5);

    CHECK(spmv_context_create(NULL, &ctx)); /* a GPU if there is one, else OpenMP */
    const spmv_csr a = {.rows = m.rows,
                        .cols = m.rows,
                        .nnz = m.nnz,
                        .row_ptr = m.row_ptr,
                        .row_ptr_bits = 32,
                        .col = m.col,
                        .val = m.val,
                        .type = SPMV_F64,
                        .memory = SPMV_MEMORY_HOST}; /* the solver copies the arrays */
    spmv_solver_options options;
    spmv_solver_options_init(&options, sizeof options);
    options.rtol = 1e-10;
    CHECK(spmv_solver_create(ctx, &a, &options, &solver));
    CHECK(spmv_alloc(ctx, bytes, &b));
    CHECK(spmv_alloc(ctx, bytes, &x));
    CHECK(spmv_alloc(ctx, m.nnz * (int64_t)sizeof(double), &values));

    /* two right-hand sides with one matrix */
    CHECK(step(ctx, solver, &m, 0.5, u, host_b, b, x, &wrong));
    CHECK(step(ctx, solver, &m, 0.5, u, host_b, b, x, &wrong));

    /* new values: the plan takes them, and the preconditioner is made again */
    fill_values(&m, 50);
    CHECK(spmv_upload(ctx, m.val, values, m.nnz * (int64_t)sizeof(double)));
    CHECK(spmv_solver_update_values(solver, values));
    CHECK(step(ctx, solver, &m, 50, u, host_b, b, x, &wrong));

    spmv_solver_info info;
    spmv_preconditioner_info made;
    CHECK(spmv_solver_describe(solver, &info, sizeof info));
    CHECK(spmv_preconditioner_describe(info.precond, &made, sizeof made));
    printf("%s on %s; %s: %s\n", info.method, spmv_context_describe(ctx), made.name, made.why);
    printf("residuals: %s\n", wrong ? "WRONG" : "verified");

done:
    spmv_free(ctx, values);
    spmv_free(ctx, x);
    spmv_free(ctx, b);
    spmv_solver_destroy(solver);
    spmv_context_destroy(ctx);
    free(host_b);
    free(u);
    free(m.val);
    free(m.col);
    free(m.row_ptr);
    return st != SPMV_OK || wrong;
}

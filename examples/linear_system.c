/* A linear system A x = b by conjugate gradients: the Laplacian of an N x N grid, with b made from
 * a known x.
 *
 * The solver reports the norm of the residual b - A x. Here the error of x is also bounded, because
 * the smallest eigenvalue of A is known, 8 sin^2(pi / (2 (N + 1))) (Y. Saad, "Iterative Methods for
 * Sparse Linear Systems", 2nd ed., section 13.2): ||x - exact|| = ||A^-1 (b - A x)|| <= ||b - A x||
 * / smallest eigenvalue.
 *
 * usage: linear_system [N [rtol]], default 100 and 1e-10.
 *
 * By hand:
 *
 *   cc linear_system.c $(pkg-config --cflags --libs spmv) -lm -o linear_system
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdlib.h>

#include "check.h"

/* Called with iteration 0 before the first iteration and after each one. A nonzero result stops the
 * solver. */
static int on_iteration(int64_t iteration, double residual, void *user)
{
    const int every = *(const int *)user;
    if (iteration % every == 0)
        printf("%6lld  %.3e\n", (long long)iteration, residual);
    return 0;
}

static double distance(const double *a, const double *b, int64_t n)
{
    double square = 0;
    for (int64_t i = 0; i < n; i++)
        square += (a[i] - b[i]) * (a[i] - b[i]);
    return sqrt(square);
}

int main(int argc, char **argv)
{
    const int size = argc > 1 ? atoi(argv[1]) : 100;
    const double rtol = argc > 2 ? atof(argv[2]) : 1e-10;
    if (argc > 3 || size < 1 || size > 10000 || !(rtol >= 0)) {
        fprintf(stderr, "usage: linear_system [N [rtol]], 1 <= N <= 10000, rtol >= 0\n");
        return 1;
    }
    char spec[32];
    snprintf(spec, sizeof spec, "poisson2d:%d", size);

    spmv_status st = SPMV_OK;
    spmv_context *ctx = NULL;
    spmv_matrix *matrix = NULL;
    spmv_plan *plan = NULL;
    void *b = NULL, *x = NULL;
    double *exact = NULL, *solution = NULL;
    int wrong = 0;

    CHECK(spmv_context_create(NULL, &ctx)); /* a GPU if there is one, else OpenMP */
    CHECK(spmv_matrix_generate(ctx, spec, SPMV_F64, &matrix));
    spmv_csr a;
    spmv_matrix_view(matrix, &a);
    CHECK(spmv_plan_create(ctx, &a, NULL, &plan));

    const int64_t n = a.rows, bytes = n * (int64_t)sizeof(double);
    exact = malloc((size_t)bytes);
    solution = malloc((size_t)bytes);
    if (exact == NULL || solution == NULL) {
        fprintf(stderr, "no memory for 2 * %lld bytes\n", (long long)bytes);
        st = SPMV_ERROR_MEMORY;
        goto done;
    }
    for (int64_t i = 0; i < n; i++)
        exact[i] = (double)(i * 7919 % 1009) / 1009;

    /* b = A exact */
    CHECK(spmv_alloc(ctx, bytes, &b));
    CHECK(spmv_alloc(ctx, bytes, &x));
    CHECK(spmv_upload(ctx, exact, x, bytes));
    CHECK(spmv_apply(plan, NULL, x, NULL, b));

    spmv_cg_options options;
    spmv_cg_options_init(&options, sizeof options);
    options.rtol = rtol;
    options.zero_start = 1; /* otherwise the solver starts from x, here the solution */
    int every = 50;
    options.on_iteration = on_iteration;
    options.user = &every;
    spmv_cg_result result;
    printf("%s: %lld rows, %lld nonzeros, %s\n", spec, (long long)n, (long long)a.nnz, spmv_context_describe(ctx));
    CHECK(spmv_cg(plan, b, x, &options, &result, sizeof result));
    CHECK(spmv_download(ctx, x, solution, bytes));

    const double s = sin(3.14159265358979323846 / (2.0 * (size + 1)));
    const double error = distance(solution, exact, n);
    const double bound = result.true_residual / (8 * s * s);
    /* b is rounded, by at most 8 eps per element, and so are the sums of the residual */
    const double rounding = 16 * 0x1p-53 * result.norm_b / (8 * s * s);
    wrong = !(result.true_residual <= result.tolerance && error <= bound + rounding);
    printf("%lld iterations: ||b - A x|| = %.3e, allowed %.3e\n", (long long)result.iterations, result.true_residual,
           result.tolerance);
    printf("||x - exact|| = %.3e, at most %.3e: %s\n", error, bound, wrong ? "WRONG" : "verified");

done:
    free(solution);
    free(exact);
    spmv_free(ctx, x);
    spmv_free(ctx, b);
    spmv_plan_destroy(plan);
    spmv_matrix_destroy(matrix);
    spmv_context_destroy(ctx);
    return st != SPMV_OK || wrong;
}

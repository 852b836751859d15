/* One plan, many products: the power method for the largest eigenvalue of the Laplacian of an N x N
 * grid.
 *
 * Each step is one product y = A x, one dot product and one scaling, all on vectors that stay in
 * context memory. With x'x = 1, lambda = x'(A x) is the Rayleigh quotient. The eigenvalues are
 * known in closed form; the largest is 8 sin^2(N pi / (2 (N + 1))) (Y. Saad, "Iterative Methods for
 * Sparse Linear Systems", 2nd ed., section 13.2), and the quotient approaches it from below. The
 * power method: G. H. Golub, C. F. Van Loan, "Matrix Computations", 4th ed., section 7.3.1.
 *
 * usage: repeat [N [steps]], default 30 and 2000.
 *
 * By hand:
 *
 *   cc repeat.c $(pkg-config --cflags --libs spmv) -lm -o repeat
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#define _POSIX_C_SOURCE 199309L
#include <math.h>
#include <stdlib.h>
#include <time.h>

#include "check.h"

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* *host_sum = a'b. product: scratch of n elements; sum: one element. */
static spmv_status dot(spmv_context *ctx, const void *a, const void *b, void *product, void *sum, double *host_sum,
                       int64_t n)
{
    spmv_status st = spmv_map_binary(ctx, SPMV_MUL, SPMV_F64, a, b, product, n);
    if (st == SPMV_OK)
        st = spmv_reduce(ctx, SPMV_ADD, SPMV_F64, product, sum, n);
    if (st == SPMV_OK)
        st = spmv_download(ctx, sum, host_sum, sizeof *host_sum);
    return st;
}

/* y = A x; lambda = x'y; x = y / |y| */
static spmv_status power_step(spmv_context *ctx, spmv_plan *plan, void *x, void *y, void *work, void *sum,
                              double *lambda, int64_t n)
{
    double square = 0;
    spmv_status st = spmv_apply(plan, NULL, x, NULL, y);
    if (st == SPMV_OK)
        st = dot(ctx, x, y, work, sum, lambda, n);
    if (st == SPMV_OK)
        st = dot(ctx, y, y, work, sum, &square, n);
    const double scale = 1 / sqrt(square);
    if (st == SPMV_OK)
        st = spmv_map_scalar(ctx, SPMV_MUL, SPMV_F64, &scale, y, x, n);
    return st;
}

int main(int argc, char **argv)
{
    long long number[] = {30, 2000};
    if (!numbers_read(argc, argv, 10000, "repeat [N [steps]], 1 <= N <= 10000, steps >= 1", number))
        return 1;
    const int size = (int)number[0], steps = (int)number[1];
    char spec[32];
    snprintf(spec, sizeof spec, "poisson2d:%d", size);
    const double pi = 3.14159265358979323846;
    const double s = sin(size * pi / (2.0 * (size + 1)));
    const double exact = 8 * s * s;

    spmv_status st = SPMV_OK;
    spmv_context *ctx = NULL;
    spmv_matrix *matrix = NULL;
    spmv_plan *plan = NULL;
    void *x = NULL, *y = NULL, *work = NULL, *sum = NULL;
    double *host_x = NULL;
    double lambda = 0;
    int wrong = 0;

    CHECK(spmv_context_create(NULL, &ctx));
    CHECK(spmv_matrix_generate(ctx, spec, SPMV_F64, &matrix));
    spmv_csr a;
    spmv_matrix_view(matrix, &a);
    CHECK(spmv_plan_create(ctx, &a, NULL, &plan));
    const int64_t n = a.rows, bytes = n * (int64_t)sizeof(double);
    CHECK(spmv_alloc(ctx, bytes, &x));
    CHECK(spmv_alloc(ctx, bytes, &y));
    CHECK(spmv_alloc(ctx, bytes, &work));
    CHECK(spmv_alloc(ctx, sizeof(double), &sum));

    /* Any start that is not orthogonal to the eigenvector. The first step normalizes it. */
    host_x = malloc((size_t)bytes);
    if (host_x == NULL) {
        fprintf(stderr, "no memory for %lld bytes\n", (long long)bytes);
        st = SPMV_ERROR_MEMORY;
        goto done;
    }
    for (int64_t i = 0; i < n; i++)
        host_x[i] = (double)(i * 7919 % 1009) / 1009 - 0.5;
    CHECK(spmv_upload(ctx, host_x, x, bytes));
    CHECK(power_step(ctx, plan, x, y, work, sum, &lambda, n));

    const double start = now();
    double before = 0;
    for (int k = 0; k < steps; k++) {
        before = lambda;
        CHECK(power_step(ctx, plan, x, y, work, sum, &lambda, n));
    }
    CHECK(spmv_synchronize(ctx));
    const double seconds = now() - start;

    /* From the second quotient on, lambda only rises towards the largest eigenvalue (A is symmetric
     * positive definite). */
    const double rounding = 1e-12 * exact;
    wrong = !(lambda <= exact + rounding) || (steps > 1 && !(lambda >= before - rounding));
    if (argc == 1)
        /* 2000 steps on a 30 x 30 grid reach this */
        wrong |= !(fabs(lambda - exact) <= 1e-3 * exact);
    printf("%s: %lld rows, %lld nonzeros, %s\n", spec, (long long)a.rows, (long long)a.nnz, spmv_context_describe(ctx));
    printf("%d steps in %.3f s, %.1f microseconds each\n", steps, seconds, 1e6 * seconds / steps);
    printf("largest eigenvalue %.9f, exact %.9f: %s\n", lambda, exact, wrong ? "WRONG" : "verified");

done:
    free(host_x);
    spmv_free(ctx, sum);
    spmv_free(ctx, work);
    spmv_free(ctx, y);
    spmv_free(ctx, x);
    spmv_plan_destroy(plan);
    spmv_matrix_destroy(matrix);
    spmv_context_destroy(ctx);
    return st != SPMV_OK || wrong;
}

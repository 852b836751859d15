/* A right solution of the exercise cg; test_exercise.py makes wrong ones from it.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

static double dot(const double *a, const double *b, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

int64_t cg(void (*product)(const double *p, double *q), int64_t n, const double *b, double *x, double rtol,
           int64_t most)
{
    double *r = malloc((n + 1) * sizeof *r), *q = malloc((n + 1) * sizeof *q), *p = malloc((n + 1) * sizeof *p);
    const double goal = rtol * sqrt(dot(b, b, n));
    int64_t k = 0;
    product(x, q);
    for (int64_t i = 0; i < n; i++)
        p[i] = r[i] = b[i] - q[i];
    double rho = dot(r, r, n);
    while (k < most && sqrt(rho) > goal) {
        product(p, q);
        const double alpha = rho / dot(p, q, n), before = rho;
        for (int64_t i = 0; i < n; i++) {
            x[i] += alpha * p[i];
            r[i] -= alpha * q[i];
        }
        rho = dot(r, r, n);
        for (int64_t i = 0; i < n; i++)
            p[i] = r[i] + rho / before * p[i];
        k++;
    }
    free(r);
    free(q);
    free(p);
    return k;
}

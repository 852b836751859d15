/* The exercise cg: conjugate gradients.
 *
 * The student's code gets the product as a function, which counts its calls. The tests compare with
 * the textbook's recurrence (M. R. Hestenes, E. Stiefel, 1952), run here.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/exercise/exercise.h"

typedef void product(const double *p, double *q);
typedef int64_t solver(product *apply, int64_t n, const double *b, double *x, double rtol, int64_t most);

enum { N_MOST = 400, GRID = 20, MOST = 1000 };

/* A matrix by its product. distinct: a diagonal with so many values; 0: the Laplacian of a grid of
 * n = columns x lines points. */
static struct {
    int64_t n, distinct, columns;
    int64_t products, allowed; /* calls; the most of them */
} matrix;

static void multiply(const double *p, double *q)
{
    const int64_t n = matrix.n, width = matrix.columns;
    for (int64_t i = 0; i < n; i++) {
        if (matrix.distinct > 0) {
            q[i] = (double)(1 + i % matrix.distinct) * p[i];
            continue;
        }
        q[i] = (n > width ? 4 : 2) * p[i];
        q[i] -= i % width > 0 ? p[i - 1] : 0;
        q[i] -= i % width < width - 1 ? p[i + 1] : 0;
        q[i] -= i >= width ? p[i - width] : 0;
        q[i] -= i + width < n ? p[i + width] : 0;
    }
}

/* The product that the student's code calls. */
static void counted_multiply(const double *p, double *q)
{
    if (matrix.products == matrix.allowed)
        case_wrong(NULL, "more than %lld products; conjugate gradients need no more than that here",
                   (long long)matrix.allowed);
    matrix.products++;
    for (int64_t i = 0; i < matrix.n; i++)
        if (!isfinite(p[i]))
            case_wrong(NULL, "p[%lld] is %g in product %lld: was a number divided by 0?", (long long)i, fabs(p[i]),
                       (long long)matrix.products);
    multiply(p, q);
}

static double dot(const double *a, const double *b, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

static double residual(const double *b, const double *x, double *r, int64_t n)
{
    multiply(x, r);
    for (int64_t i = 0; i < n; i++)
        r[i] = b[i] - r[i];
    return sqrt(dot(r, r, n));
}

/* The iterations of the textbook's recurrence. */
static int64_t iterations_of(const double *b, const double *start, double rtol, int64_t most)
{
    static double x[N_MOST], r[N_MOST], p[N_MOST], q[N_MOST];
    const int64_t n = matrix.n;
    const double goal = rtol * sqrt(dot(b, b, n));
    memcpy(x, start, (size_t)n * sizeof *x);
    residual(b, x, r, n);
    memcpy(p, r, (size_t)n * sizeof *p);
    double rho = dot(r, r, n);
    int64_t k = 0;
    for (; k < most && sqrt(rho) > goal; k++) {
        multiply(p, q);
        const double alpha = rho / dot(p, q, n), before = rho;
        for (int64_t i = 0; i < n; i++) {
            x[i] += alpha * p[i];
            r[i] -= alpha * q[i];
        }
        rho = dot(r, r, n);
        for (int64_t i = 0; i < n; i++)
            p[i] = r[i] + rho / before * p[i];
    }
    return k;
}

/* Which b and start. */
enum start { RANDOM, B_IS_ZERO, START_RANDOM, START_SOLUTION, FEW_ITERATIONS };

static const struct system_case {
    const char *name;
    int64_t n, distinct, columns;
    enum start start;
} systems[] = {{"n = 0", 0, 1, 1, RANDOM},
               {"n = 1, A = (2)", 1, 0, 1, RANDOM},
               {"the identity, n = 5", 5, 1, 1, RANDOM},
               {"a diagonal with 3 different values, n = 12", 12, 3, 1, RANDOM},
               {"b = 0", 5, 3, 1, B_IS_ZERO},
               {"a line of 33 points", 33, 0, 33, RANDOM},
               {"a grid of 20 x 20 points", N_MOST, 0, GRID, RANDOM},
               {"a grid of 20 x 20 points, start x = random numbers", N_MOST, 0, GRID, START_RANDOM},
               {"a grid of 20 x 20 points, start x = the solution", N_MOST, 0, GRID, START_SOLUTION},
               {"a grid of 20 x 20 points, most = 5", N_MOST, 0, GRID, FEW_ITERATIONS}};

static void run_cg(void *const *functions)
{
    static double b[N_MOST], start[N_MOST], r[N_MOST];
    const double rtol = 1e-8;
    solver *student;
    memcpy(&student, functions, sizeof student); /* C has no cast from an object pointer to a function pointer */
    for (size_t s = 0; s < sizeof systems / sizeof systems[0]; s++) {
        const struct system_case *const c = &systems[s];
        const int64_t n = c->n, most = c->start == FEW_ITERATIONS ? 5 : MOST;
        uint64_t state = 1952;
        case_begin("%s", c->name);
        matrix.n = n;
        matrix.distinct = c->distinct;
        matrix.columns = c->columns;
        for (int64_t i = 0; i < n; i++) {
            b[i] = c->start == B_IS_ZERO ? 0 : (double)(random_below(&state, 19) - 9);
            start[i] = c->start == START_RANDOM || c->start == START_SOLUTION ? (double)random_below(&state, 9) : 0;
        }
        if (c->start == START_SOLUTION)
            multiply(start, b);
        const int64_t needed = iterations_of(b, start, rtol, most);
        double *const x = case_output("x", n, sizeof *x);
        memcpy(x, start, (size_t)n * sizeof *x);
        matrix.products = 0;
        matrix.allowed = needed + needed / 10 + 3; /* other roundings, the first and a last residual */
        const int64_t said = student(counted_multiply, n, case_input("b", b, n, sizeof *b), x, rtol, most);
        case_end();
        const double norm = sqrt(dot(b, b, n)), left = fabs(residual(b, x, r, n)); /* no "-nan" */
        if (most == MOST && !(left <= 1.01 * rtol * norm))
            case_wrong(NULL, "||b - A x|| is %g; at most rtol ||b|| = %g is asked", left, rtol * norm);
        if (said != needed && !(most == MOST && said >= needed - 1 && said <= needed + needed / 10 + 1 && needed > 3))
            case_wrong(NULL, "returns %lld iterations; %lld are needed", (long long)said, (long long)needed);
        if (most != MOST && !(left < norm))
            case_wrong(NULL, "||b - A x|| is %g after %lld iterations; ||b|| is %g", left, (long long)most, norm);
    }
    case_passed("n from 0 to 400, b = 0, several starts, a limit of iterations");
}

const struct exercise exercise_cg = {
    "cg",
    "5-conjugate-gradients.md",
    "conjugate gradients, by products, dot products and maps",
    {"cg"},
    false,
    run_cg,
    "/* Exercise cg (docs/lessons/5-conjugate-gradients.md): A x = b by conjugate gradients.\n"
    " *\n"
    " * A is symmetric positive definite, n x n. product(p, q) computes q = A p.\n"
    " * x: on entry the start, on return the solution.\n"
    " * Stop when ||r|| <= rtol ||b||, r = b - A x, or after `most` iterations.\n"
    " * Returns the number of iterations: 0 if the start is good enough. n may be 0, b may be 0.\n"
    " *\n"
    " * Test it: spmv exercise cg cg.c */\n"
    "#include <math.h>\n"
    "#include <stdint.h>\n"
    "#include <stdlib.h>\n"
    "\n"
    "int64_t cg(void (*product)(const double *p, double *q), int64_t n, const double *b, double *x, double rtol,\n"
    "           int64_t most)\n"
    "{\n"
    "    double *r = malloc((n + 1) * sizeof *r), *q = malloc((n + 1) * sizeof *q);\n"
    "    product(x, q);\n"
    "    for (int64_t i = 0; i < n; i++)\n"
    "        r[i] = b[i] - q[i];\n"
    "\n"
    "    /* Your code here, with a third vector p: alpha, x, r, beta, p, in a loop. */\n"
    "\n"
    "    free(r);\n"
    "    free(q);\n"
    "    return 0;\n"
    "}\n"};

/* Least squares by lsmr, lsqr and cgls, against closed forms and the augmented system. The residuals
 * reported are compared with those of the x returned, for every solve.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>

#include "tests/support/support.h"
#include "tests/support/support_slow.h"
#ifdef HOST_CUDA
#include <cuda_runtime_api.h>
#endif

SUPPORT_OPTIONS(least_squares)

static const char *const names[] = {"lsmr", "lsqr", "cgls"};
enum { NAMES = 3 };

/* A dense table of m x n numbers as CSR, without its zeros. Complex ones: pairs. */
struct table {
    int64_t m, n, nnz;
    spmv_type type;
    int parts;
    double *dense;
    int64_t *row_ptr;
    int32_t *col;
    void *val;
};

static struct table table_new(int64_t m, int64_t n, spmv_type type)
{
    struct table t = {.m = m, .n = n, .type = type, .parts = type_parts(type)};
    t.dense = support_zeros(m * n * t.parts, 8);
    t.row_ptr = support_zeros(m + 1, 8);
    t.col = support_zeros(m * n, 4);
    t.val = support_zeros(m * n * t.parts, 8);
    return t;
}

static double *at(struct table *t, int64_t i, int64_t j)
{
    return &t->dense[(i * t->n + j) * t->parts];
}

static void table_free(struct table *t)
{
    support_free(t->dense, t->row_ptr, t->col, t->val);
}

static spmv_csr view_of(struct table *t)
{
    t->nnz = 0;
    for (int64_t i = 0; i < t->m; i++) {
        for (int64_t j = 0; j < t->n; j++) {
            const double *const value = at(t, i, j);
            if (value[0] == 0 && value[t->parts - 1] == 0)
                continue;
            for (int p = 0; p < t->parts; p++)
                real_set(type_part(t->type), t->val, t->nnz * t->parts + p, value[p]);
            t->col[t->nnz++] = (int32_t)j;
        }
        t->row_ptr[i + 1] = t->nnz;
    }
    return support_view(t->m, t->n, t->nnz, t->row_ptr, t->col, t->val, t->type);
}

/* In long double: r = b - A x, g = A'r - damp^2 (x - s); their norms. */
struct truth {
    double residual, damped, gradient;
};
static struct truth truth_of(struct table *t, double damp, const double *b, const double *x, const double *s)
{
    const int parts = t->parts;
    long double *const r = support_zeros(2 * t->m, sizeof *r), sum[2], rr = 0, gg = 0, dd = 0;
    for (int64_t i = 0; i < t->m; i++) {
        for (int p = 0; p < parts; p++)
            r[2 * i + p] = b[i * parts + p];
        for (int64_t j = 0; j < t->n; j++) {
            const double *const a = at(t, i, j), *const xj = &x[j * parts];
            r[2 * i] -= (long double)a[0] * xj[0] - (parts > 1 ? (long double)a[1] * xj[1] : 0);
            if (parts > 1)
                r[2 * i + 1] -= (long double)a[0] * xj[1] + (long double)a[1] * xj[0];
        }
        rr += r[2 * i] * r[2 * i] + r[2 * i + 1] * r[2 * i + 1];
    }
    for (int64_t j = 0; j < t->n; j++) {
        sum[0] = sum[1] = 0;
        for (int64_t i = 0; i < t->m; i++) {
            const double *const a = at(t, i, j);
            const long double im = parts > 1 ? a[1] : 0;
            sum[0] += a[0] * r[2 * i] + im * r[2 * i + 1];
            sum[1] += a[0] * r[2 * i + 1] - im * r[2 * i];
        }
        for (int p = 0; p < parts; p++) {
            const long double d = x[j * parts + p] - (s != NULL ? s[j * parts + p] : 0);
            sum[p] -= (long double)damp * damp * d;
            dd += d * d;
        }
        gg += sum[0] * sum[0] + (parts > 1 ? sum[1] * sum[1] : 0);
    }
    free(r);
    return (struct truth){(double)sqrtl(rr), (double)sqrtl(rr + damp * damp * dd), (double)sqrtl(gg)};
}

/* Solves for b (m numbers of f64, pairs if complex), from x or from 0, and compares what is reported with
 * the truth. */
static spmv_status solve(spmv_context *ctx, struct table *t, const spmv_least_squares_options *o, const double *b,
                         double *x, spmv_least_squares_result *result)
{
    const spmv_csr a = view_of(t);
    const int64_t m = t->m * t->parts, n = t->n * t->parts;
    const spmv_type part = type_part(t->type);
    spmv_least_squares *solver = NULL;
    double *const start = support_zeros(n, 8);
    memcpy(start, x, (size_t)n * 8);
    assert_ok(ctx, spmv_least_squares_create(ctx, &a, o, &solver));
    void *const there_b = support_upload_as(ctx, part, b, m, 0), *const there_x = support_upload_as(ctx, part, x, n, 0);
    const spmv_status st = spmv_least_squares_solve(solver, there_b, there_x, result, sizeof *result);
    support_fetch_as(ctx, part, there_x, n, x);
    const struct truth truth = truth_of(t, o->damp, b, x, o->zero_start ? NULL : start);
    double size = 0, scale = 0, large = 0;
    for (int64_t k = 0; k < t->m * t->n * t->parts; k++)
        large = fmax(large, fabs(t->dense[k]));
    for (int64_t i = 0; i < m; i++)
        size += b[i] / (large > 0 ? large : 1) * (b[i] / (large > 0 ? large : 1));
    for (int64_t j = 0; j < n; j++)
        scale += x[j] * x[j];
    const double unit = real_limits_of(part).roundoff * (double)(t->m + t->n + 8),
                 terms = unit * large * (sqrt(size) + (double)t->n * sqrt(scale)), of_g = terms * large * (double)t->m;
    if (st != result->status || (isfinite(truth.residual) && isfinite(terms) &&
                                 (!(fabs(truth.residual - result->true_residual) <= terms + unit * truth.residual) ||
                                  !(fabs(truth.damped - result->damped_residual) <= terms + unit * truth.damped) ||
                                  !(fabs(truth.gradient - result->true_gradient) <=
                                    of_g + o->damp * o->damp * unit * sqrt(scale) + unit * truth.gradient))))
        fail_msg("%s: status %s, residual %.17g (%.17g), damped %.17g (%.17g), gradient %.17g (%.17g), allowed %g %g",
                 result->solver, spmv_status_name(st), result->true_residual, truth.residual, result->damped_residual,
                 truth.damped, result->true_gradient, truth.gradient, terms, of_g);
    support_free_in(ctx, there_b, there_x);
    free(start);
    spmv_least_squares_destroy(solver);
    return st;
}

static void assert_near(const double *x, const double *known, int64_t n, double most, const char *what)
{
    for (int64_t i = 0; i < n; i++)
        if (!(fabs(x[i] - known[i]) <= most))
            fail_msg("%s: element %d is %.17g, not %.17g", what, (int)i, x[i], known[i]);
}

static spmv_least_squares_options options_of(const char *name, double tolerance)
{
    spmv_least_squares_options o = support_least_squares_options();
    o.solver = name;
    o.atol = o.btol = tolerance;
    o.zero_start = 1;
    return o;
}

/* A parabola through the points (-2, 4), (-1, 1), (0, 1), (1, 0), (2, 6): the coefficients are
 * rational, and so is ||r||^2. */
static void parabola(void **state)
{
    static const double b[] = {4, 1, 1, 0, 6}, known[] = {-1. / 35, .3, 17. / 14};
    spmv_context *ctx = *state;
    struct table t = table_new(5, 3, SPMV_F64);
    for (int i = 0; i < 5; i++)
        for (int j = 0; j < 3; j++)
            *at(&t, i, j) = pow(i - 2, j);
    for (int k = 0; k < NAMES; k++)
        for (int scaling = SPMV_SCALING_AUTO; scaling <= SPMV_SCALING_COLUMNS; scaling++) {
            spmv_least_squares_options o = options_of(names[k], 1e-12);
            spmv_least_squares_result r;
            double x[3] = {9, 9, 9};
            o.scaling = scaling;
            assert_ok(ctx, solve(ctx, &t, &o, b, x, &r));
            assert_near(x, known, 3, 1e-10, names[k]);
            assert_int_equal(r.stop, SPMV_STOP_LEAST_SQUARES);
            assert_true(r.iterations <= 4 && r.restarts == 0);
            assert_string_equal(r.solver, names[k]);
            assert_int_equal(r.scaled, scaling == SPMV_SCALING_COLUMNS);
        }
    table_free(&t);
}

/* Differences of the nodes of a path: fewer equations than unknowns. Of all solutions i + c the one of
 * smallest norm has mean 0. From a start, the mean of the start. */
static void path(void **state)
{
    enum { N = SLOW ? 12 : 40 };
    spmv_context *ctx = *state;
    struct table t = table_new(N - 1, N, SPMV_F64);
    double b[N], known[N], x[N];
    for (int i = 0; i < N - 1; i++) {
        *at(&t, i, i) = -1;
        *at(&t, i, i + 1) = 1;
        b[i] = 1;
    }
    for (int k = 0; k < NAMES; k++)
        for (int start = 0; start < 2; start++) {
            spmv_least_squares_options o = options_of(names[k], 1e-12);
            spmv_least_squares_result r;
            o.zero_start = !start;
            for (int i = 0; i < N; i++) {
                x[i] = 3;
                known[i] = i - .5 * (N - 1) + (start ? 3 : 0);
            }
            assert_ok(ctx, solve(ctx, &t, &o, b, x, &r));
            assert_near(x, known, N, 1e-8, names[k]);
            assert_true(r.stop == SPMV_STOP_CONSISTENT && r.scaled == 0);
        }
    table_free(&t);
}

/* Differences along a ring: as many equations as unknowns, rank N - 1. The constant flow around it is
 * orthogonal to all differences, so it is the residual. */
static void ring(void **state)
{
    enum { N = SLOW ? 10 : 30 };
    spmv_context *ctx = *state;
    struct table t = table_new(N, N, SPMV_F64);
    double b[N], known[N], x[N];
    for (int i = 0; i < N; i++)
        known[i] = cos(2 * 3.14159265358979323846 * i / N);
    for (int i = 0; i < N; i++) {
        *at(&t, i, i) = -1;
        *at(&t, i, (i + 1) % N) = 1;
        b[i] = known[(i + 1) % N] - known[i] + .25;
    }
    for (int k = 0; k < NAMES; k++) {
        const spmv_least_squares_options o = options_of(names[k], 1e-12);
        spmv_least_squares_result r;
        assert_ok(ctx, solve(ctx, &t, &o, b, x, &r));
        assert_near(x, known, N, 1e-9, names[k]);
        assert_int_equal(r.stop, SPMV_STOP_LEAST_SQUARES);
        assert_true(fabs(r.true_residual / (.25 * sqrt(N)) - 1) < 1e-12);
    }
    table_free(&t);
}

static void fill_random(struct table *t, uint64_t seed, int of)
{
    for (int64_t k = 0; k < t->m * t->n * t->parts; k++)
        t->dense[k] = k / t->parts % of == 0 ? support_uniform(&seed) : 0;
}

/* Damping is the same as rows damp * I below A. */
static void augmented(void **state)
{
    enum { M = 9, N = 6 };
    static const double damps[] = {1e-3, .5, 30};
    spmv_context *ctx = *state;
    for (int wide = 0; wide < 2; wide++)
        for (size_t d = 0; d < sizeof damps / sizeof *damps; d++)
            for (int k = 0; k < NAMES; k++) {
                const int m = wide ? N : M, n = wide ? M : N;
                struct table t = table_new(m, n, SPMV_F64), both = table_new(m + n, n, SPMV_F64);
                double b[2 * M] = {0}, b_both[2 * M] = {0}, x[M], start[M], known[M] = {0};
                uint64_t seed = 5;
                fill_random(&t, 7, 1);
                memcpy(both.dense, t.dense, (size_t)(m * n) * 8);
                for (int j = 0; j < n; j++) {
                    *at(&both, m + j, j) = damps[d];
                    x[j] = start[j] = support_uniform(&seed);
                }
                for (int i = 0; i < m; i++)
                    b[i] = b_both[i] = support_uniform(&seed);
                for (int from = 0; from < 2; from++) { /* from 0, from a start */
                    spmv_least_squares_options o = options_of(names[k], 1e-13);
                    spmv_least_squares_result r;
                    o.zero_start = 1;
                    for (int j = 0; j < n; j++)
                        b_both[m + j] = from ? damps[d] * start[j] : 0;
                    assert_ok(ctx, solve(ctx, &both, &o, b_both, known, &r));
                    o.damp = damps[d];
                    o.zero_start = !from;
                    memcpy(x, start, sizeof x);
                    assert_ok(ctx, solve(ctx, &t, &o, b, x, &r));
                    assert_near(x, known, n, 1e-8, names[k]);
                    assert_int_equal(r.scaled, 0);
                }
                table_free(&t);
                table_free(&both);
            }
}

/* Two equal columns share the coefficient of one; a column and a row without entries change nothing. */
static void rank_loss(void **state)
{
    enum { M = 6, N = 4 };
    spmv_context *ctx = *state;
    struct table t = table_new(M, N, SPMV_F64);
    double b[M], known[N] = {1, 1, 0, -3};
    for (int i = 0; i < M; i++) {
        if (i != 2) {
            *at(&t, i, 0) = *at(&t, i, 1) = i + 1;
            *at(&t, i, 3) = i % 2 ? 100 : -100;
        }
        b[i] = i != 2 ? 2 * *at(&t, i, 0) - 3 * *at(&t, i, 3) : 5; /* row 2 is out of reach */
    }
    for (int k = 0; k < NAMES; k++) {
        const spmv_least_squares_options o = options_of(names[k], 1e-12);
        spmv_least_squares_result r;
        double x[N];
        assert_ok(ctx, solve(ctx, &t, &o, b, x, &r));
        assert_near(x, known, N, 1e-9, names[k]);
        assert_true(fabs(r.true_residual - 5) < 1e-12 && r.stop == SPMV_STOP_LEAST_SQUARES && r.scaled == 0);
        assert_non_null(strstr(r.why_scaling, "A has lost rank, or almost"));
    }
    table_free(&t);
}

/* Columns of very different norms: scaled where A certainly has full column rank, by its pattern or by a
 * factorization. The solution is the same, with fewer iterations. */
static void scaled(void **state)
{
    enum { M = SLOW ? 24 : 80, N = SLOW ? 12 : 70 };
    spmv_context *ctx = *state;
    for (int dense = 0; dense < 2; dense++) {
        const int n = dense ? 8 : N;
        struct table t = table_new(M, n, SPMV_F64);
        double b[M] = {0}, known[N], x[N];
        uint64_t seed = 3;
        for (int j = 0; j < n; j++) {
            const double size = pow(10, 4. * (j % 5) - 8);
            for (int i = 0; i < M; i++)
                *at(&t, i, j) = dense                                           ? size * support_uniform(&seed)
                                : i == j || i == j + 1 || (i > N && j % 7 == 0) ? size * (i == j ? 3 : -1)
                                                                                : 0;
            known[j] = (1 + j % 3) / size;
        }
        for (int i = 0; i < M; i++)
            for (int j = 0; j < n; j++)
                b[i] += *at(&t, i, j) * known[j];
        for (int k = 0; k < NAMES; k++) {
            spmv_least_squares_options o = options_of(names[k], 1e-11);
            spmv_least_squares_result r;
            assert_ok(ctx, solve(ctx, &t, &o, b, x, &r));
            assert_int_equal(r.scaled, 1);
            assert_non_null(strstr(r.why_scaling, "A has full column rank"));
            assert_true(r.stop == SPMV_STOP_CONSISTENT && r.iterations <= 2 * N && r.condition < 1e4);
            for (int j = 0; j < n; j++)
                assert_true(fabs(x[j] / known[j] - 1) < 1e-6);
            o.scaling = SPMV_SCALING_NONE; /* the condition number is 1e8 times as large */
            o.max_iterations = 2 * r.iterations;
            solve(ctx, &t, &o, b, x, &r);
            assert_int_equal(r.scaled, 0);
            o.scaling = SPMV_SCALING_AUTO;
            o.damp = 1e-3; /* another problem if columns are scaled */
            o.max_iterations = 3;
            solve(ctx, &t, &o, b, x, &r);
            assert_int_equal(r.scaled, 0);
        }
        table_free(&t);
    }
}

/* Arrays in the context's memory, which stay as they are; two solves with one solver. */
static void borrowed(void **state)
{
    static const int32_t row_ptr[] = {0, 2, 4, 5, 6}, col[] = {0, 1, 0, 1, 1, 0};
    static const double val[] = {1, 100, 2, -100, 300, 5}, b[] = {-99, 102, -300, 5};
    spmv_context *ctx = *state;
    void *const there[] = {support_upload(ctx, row_ptr, sizeof row_ptr), support_upload(ctx, col, sizeof col),
                           support_upload(ctx, val, sizeof val), support_upload(ctx, b, sizeof b),
                           support_upload(ctx, b, 2 * sizeof *b)};
    const spmv_csr a = support_csr_there(4, 2, 6, there[0], 32, there[1], there[2], SPMV_F64);
    const spmv_least_squares_options o = options_of(NULL, 1e-12);
    spmv_least_squares *solver = NULL;
    spmv_least_squares_result r;
    double x[2];
    assert_ok(ctx, spmv_least_squares_create(ctx, &a, &o, &solver));
    for (int k = 0; k < 2; k++) {
        assert_ok(ctx, spmv_least_squares_solve(solver, there[3], there[4], &r, sizeof r));
        support_fetch_as(ctx, SPMV_F64, there[4], 2, x);
        assert_true(fabs(x[0] - 1) < 1e-11 && fabs(x[1] + 1) < 1e-11 && r.scaled && r.stop == SPMV_STOP_CONSISTENT);
    }
    assert_holds(ctx, there[2], val, sizeof val);
    spmv_least_squares_destroy(solver);
    support_free_each_in(ctx, there, sizeof there / sizeof *there);
}

/* More columns than the dense factorization takes: their singular values tell whether A has full rank. With
 * two parallel columns it has not, columns stay as they are, and x has the smallest norm. */
static void doubtful_rank(void **state)
{
    enum { M = 90, N = 70 };
    spmv_context *ctx = *state;
    for (int lost = 0; lost < 2; lost++) {
        struct table t = table_new(M, N, SPMV_F64);
        double b[M] = {0}, known[N], x[N];
        spmv_least_squares_options o = options_of("lsmr", 1e-12);
        spmv_least_squares_result r;
        fill_random(&t, 47, 1);
        for (int i = 0; i < M; i++) {
            for (int j = 0; j < N; j++)
                *at(&t, i, j) *= pow(4, j % 3);
            if (lost)
                *at(&t, i, 2) = 2 * *at(&t, i, 1);
            for (int j = 0; j < N; j++) {
                known[j] = lost && j == 2 ? 2 : 1;
                b[i] += *at(&t, i, j) * known[j];
            }
        }
        o.conlim = 0;
        o.max_iterations = 3000;
        assert_ok(ctx, solve(ctx, &t, &o, b, x, &r));
        assert_int_equal(r.scaled, !lost);
        assert_non_null(strstr(r.why_scaling, lost ? "differ by a factor of" : "as far as its singular values tell"));
        assert_near(x, known, N, lost ? 1e-5 : 1e-8, "doubtful");
        table_free(&t);
    }
}

/* The Hilbert matrix of order 12 has a condition number of 1e16: named, with the iterate reached. */
static void condition(void **state)
{
    enum { N = 12 };
    spmv_context *ctx = *state;
    struct table t = table_new(N, N, SPMV_F64);
    double b[N];
    for (int i = 0; i < N; i++) {
        b[i] = i % 2 ? 1 : -1;
        for (int j = 0; j < N; j++)
            *at(&t, i, j) = 1. / (i + j + 1);
    }
    for (int k = 0; k < NAMES; k++) {
        spmv_least_squares_options o = options_of(names[k], 1e-15);
        spmv_least_squares_result r;
        double x[N];
        o.conlim = 1e4;
        assert_fails(ctx, solve(ctx, &t, &o, b, x, &r), SPMV_ERROR_CONDITION, "nearly lost rank");
        assert_true(r.stop == SPMV_STOP_CONDITION && r.condition >= 1e4 && r.norm_x > 1 && r.iterations > 1);
        o.conlim = 0;
        o.max_iterations = 2;
        assert_fails(ctx, solve(ctx, &t, &o, b, x, &r), SPMV_ERROR_ITERATIONS, "after 2 iterations, the limit");
        assert_true(r.stop == SPMV_STOP_ITERATIONS && r.iterations == 2);
        o.damp = .1; /* regularised */
        o.atol = 1e-8;
        o.max_iterations = 0;
        assert_ok(ctx, solve(ctx, &t, &o, b, x, &r));
    }
    table_free(&t);
}

/* b = 0, a start that is a solution, one element, no rows, no columns, no entries. */
static void small(void **state)
{
    spmv_context *ctx = *state;
    for (int k = 0; k < NAMES; k++) {
        spmv_least_squares_options o = options_of(names[k], 1e-12);
        spmv_least_squares_result r;
        struct table t = table_new(3, 2, SPMV_F64);
        double b[3] = {0, 0, 0}, x[2] = {1, 1};
        *at(&t, 0, 0) = *at(&t, 1, 1) = *at(&t, 2, 1) = 1;
        assert_ok(ctx, solve(ctx, &t, &o, b, x, &r));
        assert_true(x[0] == 0 && x[1] == 0 && r.iterations == 0 && r.stop == SPMV_STOP_START);
        o.zero_start = 0;
        b[0] = x[0] = 4;
        b[1] = 1;
        b[2] = x[1] = 0;
        assert_ok(ctx, solve(ctx, &t, &o, b, x, &r));
        assert_true(x[0] == 4 && fabs(x[1] - .5) < 1e-14 && fabs(r.true_residual - sqrt(.5)) < 1e-14);
        assert_ok(ctx, solve(ctx, &t, &o, b, x, &r));
        assert_true(x[0] == 4 && fabs(x[1] - .5) < 1e-14 && r.iterations <= 1);
        table_free(&t);

        t = table_new(1, 1, SPMV_F64);
        *at(&t, 0, 0) = -8;
        b[0] = 2;
        o.zero_start = 1;
        assert_ok(ctx, solve(ctx, &t, &o, b, x, &r));
        assert_true(x[0] == -.25 && r.iterations == 1 && r.stop == SPMV_STOP_CONSISTENT);
        table_free(&t);

        t = table_new(3, 2, SPMV_F64); /* no entries */
        assert_ok(ctx, solve(ctx, &t, &o, b, x, &r));
        assert_true(x[0] == 0 && x[1] == 0 && r.stop == SPMV_STOP_START);
        table_free(&t);
        t = table_new(0, 2, SPMV_F64);
        assert_ok(ctx, solve(ctx, &t, &o, b, x, &r));
        assert_true(x[0] == 0 && x[1] == 0 && r.true_residual == 0);
        table_free(&t);
        t = table_new(2, 0, SPMV_F64);
        assert_ok(ctx, solve(ctx, &t, &o, b, x, &r));
        assert_true(fabs(r.true_residual - hypot(b[0], b[1])) < 1e-15 && r.iterations == 0);
        table_free(&t);
    }
}

/* Entries and right-hand sides whose squares are out of range. */
static void out_of_range(void **state)
{
    static const double sizes[][2] = {{1e-200, 1}, {1e200, 1},       {1, 1e-250},
                                      {1, 1e250},  {1e-120, 1e-150}, {1e180, 1e170}};
    spmv_context *ctx = *state;
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        for (int k = 0; k < NAMES; k++) {
            const spmv_least_squares_options o = options_of(names[k], 1e-12);
            spmv_least_squares_result r;
            struct table t = table_new(3, 2, SPMV_F64);
            double b[3], x[2];
            *at(&t, 0, 0) = *at(&t, 1, 0) = *at(&t, 1, 1) = *at(&t, 2, 1) = sizes[s][0];
            b[0] = b[2] = sizes[s][1];
            b[1] = -sizes[s][1];
            const spmv_csr a = view_of(&t);
            spmv_least_squares *solver = NULL;
            assert_ok(ctx, spmv_least_squares_create(ctx, &a, &o, &solver));
            void *const there_b = support_upload(ctx, b, sizeof b), *const there_x = support_upload(ctx, x, sizeof x);
            assert_ok(ctx, spmv_least_squares_solve(solver, there_b, there_x, &r, sizeof r));
            support_fetch_as(ctx, SPMV_F64, there_x, 2, x);
            /* x1 + x2 = -1, 2 x1 + x2 = 0 and so on: x = 0 and r = b, or solved exactly */
            const double by = sizes[s][1] / sizes[s][0];
            assert_true(fabs(x[0]) <= 1e-11 * by && fabs(x[1]) <= 1e-11 * by);
            assert_true(fabs(r.true_residual / (sqrt(3) * sizes[s][1]) - 1) < 1e-11);
            b[1] = 2 * sizes[s][1];
            assert_ok(ctx, spmv_upload(ctx, b, there_b, sizeof b));
            assert_ok(ctx, spmv_least_squares_solve(solver, there_b, there_x, &r, sizeof r));
            support_fetch_as(ctx, SPMV_F64, there_x, 2, x);
            assert_true(fabs(x[0] / by - 1) <= 1e-11 && fabs(x[1] / by - 1) <= 1e-11);
            assert_true(fabs(r.norm_b / (sqrt(6) * sizes[s][1]) - 1) < 1e-11);
            assert_true(fabs(r.norm_x / (sqrt(2) * by) - 1) < 1e-11);
            support_free_in(ctx, there_b, there_x);
            spmv_least_squares_destroy(solver);
            table_free(&t);
        }
    /* the solution is 1e400 */
    struct table t = table_new(2, 1, SPMV_F64);
    const spmv_least_squares_options o = options_of(NULL, 1e-12);
    spmv_least_squares_result r;
    spmv_least_squares *solver = NULL;
    double b[2] = {1e200, 1e200}, x[1] = {3};
    *at(&t, 0, 0) = *at(&t, 1, 0) = 1e-200;
    const spmv_csr a = view_of(&t);
    assert_ok(ctx, spmv_least_squares_create(ctx, &a, &o, &solver));
    void *const there_b = support_upload(ctx, b, sizeof b), *const there_x = support_upload(ctx, x, sizeof x);
    assert_fails(ctx, spmv_least_squares_solve(solver, there_b, there_x, &r, sizeof r), SPMV_ERROR_NOT_FINITE,
                 "exceeds the range of f64");
    support_fetch_as(ctx, SPMV_F64, there_x, 1, x);
    assert_true(x[0] == 0 && r.norm_x == 0 && fabs(r.true_residual / (sqrt(2) * b[0]) - 1) < 1e-14);
    b[1] = NAN;
    assert_ok(ctx, spmv_upload(ctx, b, there_b, sizeof b));
    assert_fails(ctx, spmv_least_squares_solve(solver, there_b, there_x, &r, sizeof r), SPMV_ERROR_NOT_FINITE,
                 "b has nan in row 1");
    support_fetch_as(ctx, SPMV_F64, there_x, 1, x);
    assert_true(x[0] == 0);
    support_free_in(ctx, there_b, there_x);
    spmv_least_squares_destroy(solver);
    table_free(&t);
}

/* Only x is in range, not D y or b scaled; norms of columns are not; the square of damp is not. min of
 * |A x - b|^2 + damp^2 x^2 for columns of two equal numbers: x = 2 a b / (2 a^2 + damp^2). */
static void edges_of_range(void **state)
{
    static const struct {
        double a, b, damp, x;
    } cases[] = {{0x1p-1030, 0x1p-1000, 0, 0x1p30},    {0x1p-1022, 0x1p-1022, 0, 1},
                 {0x1.8p1023, 0x1.8p1000, 0, 0x1p-23}, {0x1p-700, 1, 1, 0x1p-699},
                 {1, 0x1p300, 0x1p600, 0x1p-899},      {0x1p600, 0x1p600, 0x1p600, 2. / 3}};
    spmv_context *ctx = *state;
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++)
        for (int k = 0; k < NAMES; k++) {
            spmv_least_squares_options o = options_of(names[k], 1e-12);
            spmv_least_squares_result r;
            struct table t = table_new(2, 1, SPMV_F64);
            const double b[2] = {cases[c].b, cases[c].b};
            double x[1] = {0};
            o.damp = cases[c].damp;
            *at(&t, 0, 0) = *at(&t, 1, 0) = cases[c].a;
            const spmv_csr a = view_of(&t);
            spmv_least_squares *solver = NULL;
            for (int from = 0; from < 2; from++) { /* from 0, from x */
                o.zero_start = !from;
                assert_ok(ctx, spmv_least_squares_create(ctx, &a, &o, &solver));
                void *const there_b = support_upload(ctx, b, sizeof b), *const there_x =
                                                                            support_upload(ctx, x, sizeof x);
                assert_ok(ctx, spmv_least_squares_solve(solver, there_b, there_x, &r, sizeof r));
                support_fetch_as(ctx, SPMV_F64, there_x, 1, x);
                spmv_least_squares_destroy(solver);
                support_free_in(ctx, there_b, there_x);
                if (!(from && o.damp > 0) && !(fabs(x[0] / cases[c].x - 1) <= 1e-11))
                    fail_msg("%s, case %d: x is %g, not %g", names[k], (int)c, x[0], cases[c].x);
            }
            table_free(&t);
        }
}

/* Two equal rows (1, 100) with many repeated entries: A has lost rank, so x = (1, 100) b / 10001. */
static void repeated_entries(void **state)
{
    enum { REPEATS = 64, ROW = REPEATS + 1 };
    spmv_context *ctx = *state;
    static const double known[] = {1. / 10001, 100. / 10001};
    const int64_t row_ptr[] = {0, ROW, 2 * ROW};
    int32_t col[2 * ROW];
    double val[2 * ROW], b[] = {1, 1}, x[2];
    for (int i = 0; i < 2; i++)
        for (int k = 0; k < ROW; k++) {
            col[i * ROW + k] = k < REPEATS ? i : 1 - i;
            val[i * ROW + k] = (col[i * ROW + k] == 0 ? 1. : 100.) / (k < REPEATS ? REPEATS : 1);
        }
    const spmv_csr a = support_view(2, 2, 2 * ROW, row_ptr, col, val, SPMV_F64);
    const spmv_least_squares_options o = options_of(NULL, 1e-12);
    spmv_least_squares *solver = NULL;
    spmv_least_squares_result r;
    assert_ok(ctx, spmv_least_squares_create(ctx, &a, &o, &solver));
    void *const there_b = support_upload(ctx, b, sizeof b), *const there_x = support_upload(ctx, x, sizeof x);
    assert_ok(ctx, spmv_least_squares_solve(solver, there_b, there_x, &r, sizeof r));
    support_fetch_as(ctx, SPMV_F64, there_x, 2, x);
    assert_true(!r.scaled);
    assert_near(x, known, 2, 1e-14, "repeated entries");
    support_free_in(ctx, there_b, there_x);
    spmv_least_squares_destroy(solver);
}

/* All types: random systems, tall and wide, against the normal equations (the gradient). */
static void types(void **state)
{
    static const spmv_type all[] = {SPMV_F64, SPMV_F32, SPMV_C128, SPMV_C64};
    enum { M = SLOW ? 15 : 41, N = SLOW ? 9 : 25 }; /* odd: every second element is 0 */
    spmv_context *ctx = *state;
    for (size_t k = 0; k < 4 * NAMES; k++)
        for (int wide = 0; wide < 2; wide++) {
            const spmv_type type = all[k / NAMES];
            const double tolerance = type_part(type) == SPMV_F32 ? 1e-5 : 1e-11;
            spmv_least_squares_options o = options_of(names[k % NAMES], tolerance);
            spmv_least_squares_result r;
            struct table t = table_new(wide ? N : M, wide ? M : N, type);
            double b[2 * M], x[2 * M] = {0};
            uint64_t seed = 11;
            fill_random(&t, 17, 2);
            for (int64_t i = 0; i < t.m * t.n * t.parts; i++)
                t.dense[i] = (float)t.dense[i];
            for (int i = 0; i < 2 * M; i++)
                b[i] = (float)support_uniform(&seed);
            assert_ok(ctx, solve(ctx, &t, &o, b, x, &r));
            const struct truth truth = truth_of(&t, 0, b, x, NULL);
            assert_true(truth.gradient <= 3 * tolerance * r.norm_a * r.norm_b);
            assert_int_equal(r.stop, wide ? SPMV_STOP_CONSISTENT : SPMV_STOP_LEAST_SQUARES);
            table_free(&t);
        }
}

/* Several right-hand sides: the bits of each are those of a solve alone; the first failure is named. */
static void several(void **state)
{
    enum { M = 12, N = 7, K = 3 };
    spmv_context *ctx = *state;
    for (int complex = 0; complex < 2; complex++) {
        const spmv_type type = complex ? SPMV_C128 : SPMV_F64;
        const int parts = complex + 1;
        struct table t = table_new(M, N, type);
        double b[2 * M * K], x[2 * N * K] = {0}, one_b[2 * M], one_x[2 * N];
        spmv_least_squares_options o = options_of(NULL, 1e-10);
        spmv_least_squares_result r[K], one;
        spmv_least_squares *solver = NULL;
        uint64_t seed = 2;
        fill_random(&t, 23, 1);
        for (int i = 0; i < 2 * M * K; i++)
            b[i] = support_uniform(&seed);
        for (int i = 0; i < M; i++)
            for (int p = 0; p < parts; p++)
                b[(i * K + 1) * parts + p] = 0;
        const spmv_csr a = view_of(&t);
        o.vectors = K;
        assert_ok(ctx, spmv_least_squares_create(ctx, &a, &o, &solver));
        void *const there_b = support_upload(ctx, b, sizeof b), *const there_x = support_upload(ctx, x, sizeof x);
        assert_ok(ctx, spmv_least_squares_solve(solver, there_b, there_x, r, sizeof *r));
        support_fetch_as(ctx, SPMV_F64, there_x, 2 * N * K, x);
        for (int v = 0; v < K; v++) {
            for (int i = 0; i < M * parts; i++)
                one_b[i] = b[(i / parts * K + v) * parts + i % parts];
            o.vectors = 1;
            assert_ok(ctx, solve(ctx, &t, &o, one_b, one_x, &one));
            for (int j = 0; j < N * parts; j++)
                assert_true(x[(j / parts * K + v) * parts + j % parts] == one_x[j]);
            assert_true(r[v].iterations == one.iterations && r[v].true_residual == one.true_residual);
        }
        b[(2 * K + 2) * parts] = INFINITY;
        assert_ok(ctx, spmv_upload(ctx, b, there_b, sizeof b));
        assert_fails(ctx, spmv_least_squares_solve(solver, there_b, there_x, r, sizeof *r), SPMV_ERROR_NOT_FINITE,
                     "right-hand side 3 of 3");
        assert_true(r[0].status == SPMV_OK && r[1].status == SPMV_OK && r[2].status == SPMV_ERROR_NOT_FINITE);
        support_free_in(ctx, there_b, there_x);
        spmv_least_squares_destroy(solver);
        table_free(&t);
    }
}

/* Many entries a row: right-hand sides are solved together, in two batches. Each has its own iterations and status, and on
 * a host the bits of a solve alone. Among them are b = 0, a consistent system, and a b that is scaled. */
static void together(void **state)
{
    enum { M = 40, N = SLOW ? 17 : 24, K = SLOW ? 4 : 34, FORMS = 4 };
    spmv_context *ctx = *state;
    const bool host = support_backend != SPMV_BACKEND_CUDA;
    for (int k = 0; k < NAMES * 3; k++) {
        const spmv_type type = k / NAMES == 2 ? SPMV_F32 : SPMV_F64;
        struct table t = table_new(M, N, type);
        double *const b = support_zeros(M * K, 8), *const x = support_zeros(N * K, 8), one_b[M], one_x[N];
        spmv_least_squares_result r[K], one;
        spmv_least_squares *solver = NULL;
        uint64_t seed = 77;
        spmv_least_squares_options o = options_of(names[k % NAMES], type == SPMV_F32 ? 0 : 1e-10);
        o.damp = k / NAMES == 1 ? 0.3 : 0;
        o.zero_start = k / NAMES == 2;
        o.vectors = K;
        fill_random(&t, 41, 1);
        for (int v = 0; v < K; v++)
            for (int i = 0; i < M; i++) {
                double sum = 0;
                for (int j = 0; j < N; j++)
                    sum += *at(&t, i, j);
                b[i * K + v] = v % FORMS == 1   ? 0
                               : v % FORMS == 2 ? sum
                               : v % FORMS == 3 ? support_uniform(&seed) * (type == SPMV_F32 ? 1e-18 : 1e-120)
                                                : support_uniform(&seed);
            }
        for (int i = 0; i < N * K; i++)
            x[i] = i % K % FORMS == 0 ? support_uniform(&seed) : 0;
        const spmv_csr a = view_of(&t);
        assert_ok(ctx, spmv_least_squares_create(ctx, &a, &o, &solver));
        void *const there_b = support_upload_as(ctx, type, b, M * K, 0);
        void *const there_x = support_upload_as(ctx, type, x, N * K, 0);
        double *const together_x = support_zeros(N * K, 8);
        assert_ok(ctx, spmv_least_squares_solve(solver, there_b, there_x, r, sizeof *r));
        support_fetch_as(ctx, type, there_x, N * K, together_x);
        o.vectors = 1;
        for (int v = 0; v < K; v++) {
            for (int i = 0; i < M; i++)
                one_b[i] = b[i * K + v];
            for (int j = 0; j < N; j++)
                one_x[j] = x[j * K + v];
            assert_ok(ctx, solve(ctx, &t, &o, one_b, one_x, &one));
            double largest = 0;
            for (int j = 0; j < N; j++)
                largest = fmax(largest, fabs(one_x[j]));
            for (int j = 0; j < N; j++) {
                const double got = together_x[j * K + v];
                assert_true(host ? got == one_x[j]
                                 : fabs(got - one_x[j]) <= (type == SPMV_F32 ? 1e-3 : 1e-8) * largest);
            }
            assert_true(!host || (r[v].iterations == one.iterations && r[v].restarts == one.restarts &&
                                  r[v].true_residual == one.true_residual && r[v].condition == one.condition));
            assert_true(r[v].stop == one.stop || !host);
            assert_string_equal(r[v].solver, names[k % NAMES]);
        }
        if (type == SPMV_F64) { /* one fails, others do not */
            b[2 * K + 2] = NAN;
            assert_ok(ctx, spmv_upload(ctx, b, there_b, M * K * 8));
            assert_fails(ctx, spmv_least_squares_solve(solver, there_b, there_x, r, sizeof *r), SPMV_ERROR_NOT_FINITE,
                         "right-hand side 3 of");
            for (int v = 0; v < K; v++)
                assert_int_equal(r[v].status, v == 2 ? SPMV_ERROR_NOT_FINITE : SPMV_OK);
        }
        support_free_in(ctx, there_b, there_x);
        spmv_least_squares_destroy(solver);
        support_free(b, x, together_x);
        table_free(&t);
    }
}

struct watch {
    int64_t calls, stop_at;
    double residual, gradient;
    bool falls;
};

static int watch(int64_t iteration, double residual, double gradient, void *user)
{
    struct watch *const w = user;
    assert_int_equal(iteration, w->calls);
    if (iteration > 0)
        w->falls = w->falls && residual <= w->residual * (1 + 1e-12) && gradient <= w->gradient * (1 + 1e-12);
    w->residual = residual;
    w->gradient = gradient;
    w->calls++;
    return w->stop_at >= 0 && iteration >= w->stop_at;
}

/* Both norms of lsmr fall at each step; the callback sees each iteration once, and can cancel. */
static void callbacks(void **state)
{
    enum { M = SLOW ? 30 : 200, N = SLOW ? 20 : 150 };
    spmv_context *ctx = *state;
    struct table t = table_new(M, N, SPMV_F64);
    double b[M], x[N];
    struct watch w = {.stop_at = -1, .falls = true};
    spmv_least_squares_options o = options_of("lsmr", 1e-9);
    spmv_least_squares_result r;
    uint64_t seed = 31;
    fill_random(&t, 29, 4);
    for (int i = 0; i < M; i++)
        b[i] = support_uniform(&seed);
    o.on_iteration = watch;
    o.user = &w;
    assert_ok(ctx, solve(ctx, &t, &o, b, x, &r));
    assert_true(w.calls == r.iterations + 1 && w.falls);
    assert_true(w.residual == r.recurrence_residual && w.gradient == r.recurrence_gradient);
    for (int k = 0; k < NAMES; k++) {
        o.solver = names[k];
        w = (struct watch){.stop_at = 3, .falls = true};
        assert_fails(ctx, solve(ctx, &t, &o, b, x, &r), SPMV_CANCELLED, "cancelled by its callback at iteration 3");
        assert_true(r.status == SPMV_CANCELLED && r.iterations >= 3 && w.calls == 4);
    }
    table_free(&t);
}

/* The callback of right-hand sides that are solved together: the largest norms, each iteration once; a cancellation
 * ends those that run, and those that are done stay so. */
static void callbacks_together(void **state)
{
    if (support_backend == SPMV_BACKEND_REF) /* solves one after the other */
        return;
    enum { M = 40, N = 24, K = 3 };
    spmv_context *ctx = *state;
    struct table t = table_new(M, N, SPMV_F64);
    double b[M * K] = {0}, x[N * K] = {0};
    spmv_least_squares_result r[K];
    uint64_t seed = 31;
    fill_random(&t, 29, 1);
    for (int i = 0; i < M; i++)
        b[i * K] = support_uniform(&seed), b[i * K + 2] = 100 * support_uniform(&seed);
    const spmv_csr a = view_of(&t);
    void *const there_b = support_upload(ctx, b, sizeof b), *const there_x = support_upload(ctx, x, sizeof x);
    for (int cancel = 0; cancel < 2; cancel++) {
        struct watch w = {.stop_at = cancel ? 3 : -1, .falls = true};
        spmv_least_squares_options o = options_of("lsmr", 1e-9);
        spmv_least_squares *solver = NULL;
        o.vectors = K;
        o.on_iteration = watch;
        o.user = &w;
        assert_ok(ctx, spmv_least_squares_create(ctx, &a, &o, &solver));
        const spmv_status st = spmv_least_squares_solve(solver, there_b, there_x, r, sizeof *r);
        assert_int_equal(st, cancel ? SPMV_CANCELLED : SPMV_OK);
        assert_int_equal(r[1].status, SPMV_OK);
        assert_int_equal(r[2].status, st);
        assert_true(w.falls);
        assert_int_equal(w.calls, cancel ? 4 : (r[0].iterations > r[2].iterations ? r[0] : r[2]).iterations + 1);
        spmv_least_squares_destroy(solver);
    }
    support_free_in(ctx, there_b, there_x);
    table_free(&t);
}

/* The same bits every run, and for any number of threads. */
static void same_bits(void **state)
{
    enum { M = SLOW ? 60 : 20000, N = SLOW ? 40 : 15000 };
    spmv_context *ctx = *state, *other = support_context_on(support_backend, 3);
    int64_t *const row_ptr = support_zeros(M + 1, 8);
    int32_t *const col = support_zeros(4 * M, 4);
    double *const val = support_zeros(4 * M, 8), *const b = support_zeros(M, 8);
    double *const x = support_zeros(N, 8), *const again = support_zeros(N, 8);
    uint64_t seed = 37;
    for (int i = 0; i < M; i++) {
        for (int k = 0; k < 4; k++) {
            col[4 * i + k] = (int32_t)((i + (int64_t)k * (N / 4)) % N / 1);
            val[4 * i + k] = support_uniform(&seed);
        }
        for (int k = 1; k < 4; k++) /* ascending */
            for (int l = k; l > 0 && col[4 * i + l] < col[4 * i + l - 1]; l--) {
                const int32_t swap = col[4 * i + l];
                col[4 * i + l] = col[4 * i + l - 1];
                col[4 * i + l - 1] = swap;
            }
        row_ptr[i + 1] = 4 * (i + 1);
        b[i] = support_uniform(&seed);
    }
    const spmv_csr a = support_view(M, N, 4 * M, row_ptr, col, val, SPMV_F64);
    for (int k = 0; k < NAMES; k++) {
        spmv_least_squares_options o = options_of(names[k], 1e-9);
        o.max_iterations = 20;
        for (int run = 0; run < 3; run++) {
            spmv_context *const where = run < 2 ? ctx : other;
            spmv_least_squares *solver = NULL;
            spmv_least_squares_result r;
            assert_ok(where, spmv_least_squares_create(where, &a, &o, &solver));
            void *const there_b = support_upload(where, b, M * 8), *const there_x = support_upload(where, x, N * 8);
            const spmv_status st = spmv_least_squares_solve(solver, there_b, there_x, &r, sizeof r);
            assert_true(st == SPMV_OK || st == SPMV_ERROR_ITERATIONS);
            if (run == 0)
                support_fetch_as(where, SPMV_F64, there_x, N, again);
            else
                assert_holds(where, there_x, again, N * 8);
            support_free_in(where, there_b, there_x);
            spmv_least_squares_destroy(solver);
        }
    }
    support_free(row_ptr, col, val, b, x, again);
    spmv_context_destroy(other);
}

/* Whether kernels whose blocks wait for each other may have several blocks, on a host that plays the GPU. */
static void let_blocks_wait(bool wait)
{
#ifdef HOST_CUDA
    host_cuda.cooperative = wait;
#else
    (void)wait;
#endif
}

enum { PATH = 300, PATH_STEPS = 125 };

/* x of an iteration before the last. */
static spmv_least_squares_result stopped(const spmv_csr *a, const spmv_least_squares_options *o, const double *b,
                                         spmv_backend backend, double *x)
{
    spmv_context *const ctx = support_context_on(backend, 1);
    spmv_least_squares *solver = NULL;
    spmv_least_squares_result r;
    double *const zero = support_zeros(PATH, 8);
    assert_ok(ctx, spmv_least_squares_create(ctx, a, o, &solver));
    void *const there_b = support_upload(ctx, b, (PATH + 1) * 8), *const there_x = support_upload(ctx, zero, PATH * 8);
    assert_int_equal(spmv_least_squares_solve(solver, there_b, there_x, &r, sizeof r), SPMV_ERROR_ITERATIONS);
    support_fetch_as(ctx, SPMV_F64, there_x, PATH, x);
    support_free_in(ctx, there_b, there_x);
    spmv_least_squares_destroy(solver);
    spmv_context_destroy(ctx);
    free(zero);
    return r;
}

/* Differences along a path with both ends held, of which a GPU makes many steps in one kernel: here in several blocks,
 * and more steps than one launch has. As on ref up to rounding, and the same bits each time. */
static void many_steps(void **state)
{
    (void)state;
    int64_t *const row_ptr = support_zeros(PATH + 2, 8);
    int32_t *const col = support_zeros(2 * PATH, 4);
    double *const val = support_zeros(2 * PATH, 8), *const b = support_zeros(PATH + 1, 8), x[3][PATH];
    uint64_t seed = 41;
    for (int i = 0, k = 0; i <= PATH; i++) {
        for (int j = i - 1; j <= i; j++)
            if (j >= 0 && j < PATH) {
                col[k] = j;
                val[k++] = j < i ? -1 : 1;
            }
        row_ptr[i + 1] = k;
        b[i] = support_uniform(&seed);
    }
    const spmv_csr a = support_view(PATH + 1, PATH, 2 * PATH, row_ptr, col, val, SPMV_F64);
    for (int k = 0; k < NAMES + 1; k++) {
        spmv_least_squares_options o = options_of(names[k < NAMES ? k : NAMES - 1], 1e-12);
        o.max_iterations = PATH_STEPS;
        o.damp = k < NAMES - 1 ? 0 : k < NAMES ? 0.01 : 0;
        const spmv_least_squares_result known = stopped(&a, &o, b, SPMV_BACKEND_REF, x[0]);
        for (int run = 0; run < 3; run++) {
            let_blocks_wait(run > 0);
            const spmv_least_squares_result r = stopped(&a, &o, b, support_backend, x[run == 2 ? 2 : 1]);
            assert_int_equal(r.iterations, known.iterations);
            assert_true(fabs(r.recurrence_residual - known.recurrence_residual) <= 1e-10 * r.norm_b);
            assert_true(fabs(r.recurrence_gradient - known.recurrence_gradient) <= 1e-10 * r.norm_b);
            assert_true(fabs(r.norm_a - known.norm_a) <= 1e-10 * r.norm_a);
            assert_true(fabs(r.condition - known.condition) <= 1e-8 * r.condition);
            for (int j = 0; j < PATH; j++)
                assert_true(fabs(x[0][j] - x[run == 2 ? 2 : 1][j]) <= 1e-9 * r.norm_x);
        }
        assert_memory_equal(x[1], x[2], sizeof x[1]);
    }
    let_blocks_wait(false);
    support_free(row_ptr, col, val, b);
}

/* A tolerance below the roundoff: the solve ends, with what the precision permits. */
static void roundoff(void **state)
{
    enum { M = 20, N = 10 };
    spmv_context *ctx = *state;
    struct table t = table_new(M, N, SPMV_F64);
    double b[M], x[N];
    uint64_t seed = 41;
    fill_random(&t, 43, 1);
    for (int i = 0; i < M; i++)
        b[i] = support_uniform(&seed);
    for (int k = 0; k < NAMES; k++) {
        spmv_least_squares_options o = options_of(names[k], 0);
        spmv_least_squares_result r;
        assert_ok(ctx, solve(ctx, &t, &o, b, x, &r));
        assert_true(r.stop == SPMV_STOP_LEAST_SQUARES_ROUNDOFF || r.stop == SPMV_STOP_LEAST_SQUARES);
        assert_true(r.true_gradient < 1e-13 * r.norm_a * r.norm_b);
    }
    table_free(&t);
}

static void errors(void **state)
{
    spmv_context *ctx = *state;
    struct table t = table_new(3, 2, SPMV_F64);
    spmv_least_squares *solver = NULL;
    *at(&t, 0, 0) = *at(&t, 1, 1) = 1;
    spmv_csr a = view_of(&t);
    const struct {
        double damp, atol, btol, conlim;
        int scaling;
        const char *text;
    } wrong[] = {{-1, 0, 0, 0, 0, "option damp -1"},
                 {NAN, 0, 0, 0, 0, "option damp"},
                 {0, -1, 0, 0, 0, "option atol"},
                 {0, 0, INFINITY, 0, 0, "option btol"},
                 {0, 0, 0, NAN, 0, "option conlim"},
                 {0, 0, 0, 0, 3, "option scaling"},
                 {1, 0, 0, 0, SPMV_SCALING_COLUMNS, "with damp, columns cannot be scaled"}};
    for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++) {
        spmv_least_squares_options o = options_of(NULL, 0);
        o.damp = wrong[k].damp;
        o.atol = wrong[k].atol;
        o.btol = wrong[k].btol;
        o.conlim = wrong[k].conlim;
        o.scaling = wrong[k].scaling;
        assert_fails(ctx, spmv_least_squares_create(ctx, &a, &o, &solver), SPMV_ERROR_ARGUMENT, wrong[k].text);
        assert_null(solver);
    }
    spmv_least_squares_options o = options_of("cg", 0);
    assert_fails(ctx, spmv_least_squares_create(ctx, &a, &o, &solver), SPMV_ERROR_METHOD, "lsmr, lsqr, cgls");
    *at(&t, 1, 1) = NAN;
    a = view_of(&t);
    assert_fails(ctx, spmv_least_squares_create(ctx, &a, NULL, &solver), SPMV_ERROR_NOT_FINITE,
                 "A has nan in row 1, column 1");
    *at(&t, 1, 1) = 1;
    a = view_of(&t);
    assert_ok(ctx, spmv_least_squares_create(ctx, &a, NULL, &solver));
    double x[3];
    spmv_least_squares_result r;
    assert_fails(ctx, spmv_least_squares_solve(solver, NULL, x, &r, sizeof r), SPMV_ERROR_ARGUMENT, "b is NULL");
    assert_fails(ctx, spmv_least_squares_solve(solver, x, NULL, &r, sizeof r), SPMV_ERROR_ARGUMENT, "x is NULL");
    assert_fails(ctx, spmv_least_squares_solve(solver, x, x, &r, sizeof r), SPMV_ERROR_ARGUMENT, "the same array");
    assert_int_equal(r.status, SPMV_ERROR_ARGUMENT);
    spmv_least_squares_destroy(solver);
    for (int k = 0; k < NAMES; k++)
        assert_string_equal(spmv_least_squares_name(k), names[k]);
    assert_true(spmv_least_squares_name(NAMES) == NULL && spmv_least_squares_name(-1) == NULL);
    table_free(&t);
}

SUPPORT_MAIN(with_context(parabola), with_context(path), with_context(ring), with_context(augmented),
             with_context(rank_loss), with_context(scaled), with_context(borrowed), with_context(doubtful_rank),
             with_context(condition), with_context(small), with_context(out_of_range), with_context(edges_of_range),
             with_context(repeated_entries), with_context(types), with_context(several), with_context(together),
             with_context(callbacks), with_context(callbacks_together), with_context(same_bits),
             cmocka_unit_test(many_steps), with_context(roundoff), with_context(errors))

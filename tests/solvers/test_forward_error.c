/* The forward error of x: residuals in twice the precision, the estimate beside the true error, also where a rough solve
 * for the error does not find it, digits that are asked for, those that cannot be had, several right-hand sides, and what an
 * estimate leaves alone.
 *
 * Matrices and solutions are small integers, so b = A x is exact and x is the exact solution.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <float.h>
#include <math.h>

#include "solvers/accuracy/wide_residual.h"
#include "solvers/solver_internal.h"
#include "tests/support/support_fails.h"
#include "tests/support/support_precond.h"
#include "tests/support/support_slow.h"

enum { MOST = 400, BAND = 5 };

/* A band matrix of integers, and integers x. */
struct band {
    int n;
    int64_t row_ptr[MOST + 1];
    int32_t col[MOST * BAND];
    double val[MOST * BAND];
    float narrow[MOST * BAND];    /* val */
    double wide[2 * MOST * BAND]; /* val */
    double x[MOST], b[MOST];
    spmv_csr view;
};

/* A square matrix in these arrays. */
static spmv_csr host_view(int64_t n, const int64_t *row_ptr, const int32_t *col, const double *val)
{
    return (spmv_csr){.rows = n,
                      .cols = n,
                      .nnz = row_ptr[n],
                      .row_ptr = row_ptr,
                      .row_ptr_bits = 64,
                      .col = col,
                      .val = val,
                      .type = SPMV_F64,
                      .memory = SPMV_MEMORY_HOST};
}

/* b = A x */
static void multiply_band(struct band *m)
{
    for (int i = 0; i < m->n; i++) {
        m->b[i] = 0;
        for (int64_t k = m->row_ptr[i]; k < m->row_ptr[i + 1]; k++)
            m->b[i] += m->val[k] * m->x[m->col[k]];
    }
}

/* sign tridiag(-1, 2, -1) (condition number 0.4 n^2), its square (0.16 n^4), or with -1 - skew and -1 + skew beside the
 * diagonal. */
static void fill(struct band *m, int n, int sign, bool square, double skew)
{
    int64_t at = 0;
    m->n = n;
    for (int i = 0; i < n; i++) {
        m->row_ptr[i] = at;
        m->x[i] = (double)((i * 7919) % 17 - 8);
        for (int j = i - 2; j <= i + 2; j++) {
            const int d = abs(i - j);
            if (j < 0 || j >= n || (d == 2 && !square))
                continue;
            m->col[at] = j;
            m->val[at++] = square ? (d == 0   ? (i == 0 || i == n - 1 ? 5 : 6)
                                     : d == 1 ? -4
                                              : 1)
                                  : sign * (d == 0 ? 2 : -1 + (j < i ? -skew : skew));
        }
    }
    m->row_ptr[n] = at;
    for (int64_t k = 0; k < at; k++)
        m->narrow[k] = (float)(m->wide[2 * k] = m->val[k]);
    multiply_band(m);
    m->view = host_view(n, m->row_ptr, m->col, m->val);
}

/* For vectors of this type. */
static spmv_csr view_for(const struct band *m, spmv_type type)
{
    spmv_csr a = m->view;
    if (type == SPMV_F32) {
        a.type = SPMV_F32;
        a.val = m->narrow;
    } else if (type == SPMV_C128) {
        a.type = type;
        a.val = m->wide;
    }
    return a;
}

static double error_of(const struct band *m, const double *x, int stride)
{
    double square = 0, norm = 0;
    for (int i = 0; i < m->n; i++) {
        square += (x[i * stride] - m->x[i]) * (x[i * stride] - m->x[i]);
        norm += m->x[i] * m->x[i];
    }
    return sqrt(square / norm);
}

/* Solves, and returns the true relative error. */
static double solve(spmv_context *ctx, const struct band *m, const spmv_solver_options *o, spmv_type type, double *x,
                    spmv_status *st, spmv_solver_result *r)
{
    spmv_solver_options options = *o;
    spmv_solver *solver = NULL;
    options.type = type;
    options.zero_start = 1;
    const spmv_csr a = view_for(m, type);
    assert_ok(ctx, spmv_solver_create(ctx, &a, &options, &solver));
    const spmv_type part = type_part(type);
    const int parts = type_parts(type);
    double both[2 * MOST] = {0};
    for (int i = 0; i < m->n; i++)
        both[i * parts] = m->b[i];
    void *const b = support_upload_as(ctx, part, both, m->n * parts, 0);
    void *const there = support_upload_as(ctx, part, both, m->n * parts, 0);
    *st = spmv_solver_solve(solver, b, there, r, sizeof *r);
    support_fetch_as(ctx, part, there, m->n * parts, both);
    for (int i = 0; i < m->n; i++) {
        x[i] = both[i * parts];
        assert_true(parts == 1 || fabs(both[i * parts + 1]) <= 1e-4);
    }
    support_free_in(ctx, b, there);
    spmv_solver_destroy(solver);
    return error_of(m, x, 1);
}

/* ------------------------------------------------------------- residuals */

/* b - A x whose plain sum is 0 or rounding. */
static void residual_has_twice_the_digits(void **state)
{
    spmv_context *ctx = *state;
    const double e = 0x1p-30;
    const int64_t row_ptr[] = {0, 3, 4, 4};
    const int32_t col[] = {0, 1, 2, 0};
    const double val[] = {0x1p40, 1 + e, -0x1p40, 1 + e}, x[] = {1 + e, 1 + e, 1 + e}, b[] = {1 + 2 * e, 1 + 2 * e, 3};
    const double expected[] = {-e * e, -e * e, 3};
    for (int type = 0; type < 2; type++) {
        const spmv_type of = type == 0 ? SPMV_F64 : SPMV_C128;
        const int parts = type_parts(of);
        double v[8] = {0}, xs[6] = {0}, bs[6] = {0}, r[6];
        for (int i = 0; i < 4; i++) /* of complex numbers: i A, x, i b */
            v[i * parts + parts - 1] = val[i];
        for (int i = 0; i < 3; i++) {
            xs[i * parts] = x[i];
            bs[i * parts + parts - 1] = b[i];
        }
        const spmv_csr host = {.rows = 3,
                               .cols = 3,
                               .nnz = 4,
                               .row_ptr = row_ptr,
                               .row_ptr_bits = 64,
                               .col = col,
                               .val = v,
                               .type = of,
                               .memory = SPMV_MEMORY_HOST};
        spmv_matrix *there = NULL;
        spmv_csr a;
        assert_ok(ctx, spmv_matrix_copy(ctx, &host, SPMV_MEMORY_CONTEXT, &there));
        spmv_matrix_view(there, &a);
        void *const b_there = support_upload(ctx, bs, (int64_t)sizeof(double) * 3 * parts);
        void *const x_there = support_upload(ctx, xs, (int64_t)sizeof(double) * 3 * parts);
        void *const r_there = support_upload(ctx, xs, (int64_t)sizeof(double) * 3 * parts);
        assert_ok(ctx, wide_residual(ctx, &a, of, b_there, x_there, r_there));
        assert_ok(ctx, spmv_download(ctx, r_there, r, (int64_t)sizeof(double) * 3 * parts));
        for (int i = 0; i < 3; i++)
            assert_true(r[i * parts + parts - 1] == expected[i] && (parts == 1 || r[i * parts] == 0));
        support_free_in(ctx, b_there, x_there, r_there);
        spmv_matrix_destroy(there);
    }
}

/* f32 vectors; a pattern; f32 values with f64 vectors. */
static void residual_of_other_types(void **state)
{
    spmv_context *ctx = *state;
    const int64_t row_ptr[] = {0, 2};
    const int32_t col[] = {0, 1};
    const float val[] = {0x1p30F, 1};
    const float x32[] = {1, 0x1p-20F}, b32[] = {0x1p30F};
    const double x64[] = {1, 0x1p-40}, b64[] = {0x1p30};
    for (int c = 0; c < 3; c++) {
        const bool pattern = c == 1, narrow = c == 0;
        const double b_one = 1;
        const spmv_csr host = {.rows = 1,
                               .cols = 2,
                               .nnz = 2,
                               .row_ptr = row_ptr,
                               .row_ptr_bits = 64,
                               .col = col,
                               .val = pattern ? NULL : val,
                               .type = SPMV_F32,
                               .memory = SPMV_MEMORY_HOST};
        spmv_matrix *there = NULL;
        spmv_csr a;
        double r64 = 7;
        float r32 = 7;
        assert_ok(ctx, spmv_matrix_copy(ctx, &host, SPMV_MEMORY_CONTEXT, &there));
        spmv_matrix_view(there, &a);
        void *const b = narrow ? support_upload(ctx, b32, 4) : support_upload(ctx, pattern ? &b_one : b64, 8);
        void *const x = narrow ? support_upload(ctx, x32, 8) : support_upload(ctx, x64, 16);
        void *const r = support_upload(ctx, &r64, 8);
        assert_ok(ctx, wide_residual(ctx, &a, narrow ? SPMV_F32 : SPMV_F64, b, x, r));
        assert_ok(ctx, spmv_download(ctx, r, narrow ? (void *)&r32 : (void *)&r64, narrow ? 4 : 8));
        assert_true(narrow ? r32 == -0x1p-20F : r64 == -0x1p-40);
        support_free_in(ctx, b, x, r);
        spmv_matrix_destroy(there);
    }
}

struct band_case {
    const char *solver, *precond;
    int n, sign;
    bool square;
    double skew;
    spmv_type type;
    double rtol;
    int digits; /* 0: an estimate only */
};

static spmv_solver_options open_case(const struct band_case *c, struct band *m)
{
    spmv_solver_options o = support_solver_options();
    fill(m, c->n, c->sign, c->square, c->skew);
    o.solver = c->solver;
    o.precond = c->precond;
    o.rtol = c->rtol;
    o.accuracy = c->digits;
    return o;
}

/* ------------------------------------------------------------- the estimate */

static void estimate_is_near(void **state)
{
    spmv_context *ctx = *state;
    static const struct band_case cases[] = {
        {"cg", "none", 250, 1, false, 0, SPMV_F64, 1e-4, 0},
        {"cg", "jacobi", 250, 1, false, 0, SPMV_F64, 1e-8, 0},
        {"auto", "auto", 250, -1, false, 0, SPMV_F64, 1e-6, 0},
        {"minres", "none", 250, 1, false, 0, SPMV_F64, 1e-6, 0},
        {"gmres", "ilu0", 250, 1, false, 0.5, SPMV_F64, 0.5, 0},
        {"bicgstab", "jacobi", 210, 1, false, 0.5, SPMV_F64, 1e-6, 0},
        {"cg", "none", 250, 1, false, 0, SPMV_F32, 1e-3, 0},
        {"cg", "jacobi", 250, 1, false, 0, SPMV_C128, 1e-6, 0},
        {"cg", "jacobi", 220, 1, true, 0, SPMV_F64, 1e-8, 0},
    };
    struct band *const m = support_zeros(1, sizeof *m);
    double x[MOST], plain[MOST];
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        spmv_solver_options o;
        spmv_solver_result r, without;
        spmv_status st = SPMV_OK;
        if (SLOW && c % 3 != 0)
            continue;
        o = open_case(&cases[c], m);
        solve(ctx, m, &o, cases[c].type, plain, &st, &without);
        assert_ok(ctx, st);
        assert_true(without.forward_error < 0);
        o.estimate_error = 1;
        const double error = solve(ctx, m, &o, cases[c].type, x, &st, &r);
        assert_ok(ctx, st);
        /* an exact factor leaves rounding errors only */
        if (!(r.forward_error <= 4 * error + 4 * DBL_EPSILON && r.forward_error >= 0.25 * error - 4 * DBL_EPSILON))
            fail_msg("case %d: the error is %g, the estimate %g", (int)c, error, r.forward_error);
        assert_memory_equal(x, plain, (size_t)m->n * sizeof *x);
        assert_true(r.iterations == without.iterations && r.restarts == without.restarts &&
                    r.true_residual == without.true_residual);
    }
    free(m);
}

static int count_calls(int64_t iteration, double residual, void *user)
{
    (void)iteration;
    (void)residual;
    ++*(int *)user;
    return 0;
}

/* Callbacks do not see it; b = 0; a failure has none. */
static void estimate_is_silent(void **state)
{
    spmv_context *ctx = *state;
    struct band *const m = support_zeros(1, sizeof *m);
    spmv_solver_options o = support_solver_options();
    spmv_solver_result r;
    spmv_status st = SPMV_OK;
    double x[MOST];
    int calls[2] = {0, 0};
    fill(m, 210, 1, false, 0);
    o.solver = "cg";
    o.precond = "none";
    o.on_iteration = count_calls;
    for (int with = 0; with < 2; with++) {
        o.estimate_error = with;
        o.user = &calls[with];
        solve(ctx, m, &o, SPMV_F64, x, &st, &r);
        assert_ok(ctx, st);
    }
    assert_true(calls[0] > 10 && calls[0] == calls[1] && r.forward_error >= 0);
    o.max_iterations = 10;
    solve(ctx, m, &o, SPMV_F64, x, &st, &r);
    assert_true(st == SPMV_ERROR_ITERATIONS && r.forward_error < 0);
    o.max_iterations = 0;
    memset(m->b, 0, sizeof m->b);
    solve(ctx, m, &o, SPMV_F64, x, &st, &r);
    assert_true(st == SPMV_OK && r.forward_error == 0);
    free(m);
}

/* Memory that is short for the estimate alone fails nothing: x has the bits of a solve without it. */
static void estimate_without_memory(void **state)
{
    spmv_context *ctx = *state;
    struct band *const m = support_zeros(1, sizeof *m);
    spmv_solver_options o = support_solver_options();
    spmv_solver *solver = NULL;
    spmv_solver_result r = {.forward_error = -1};
    double plain[MOST], x[MOST];
    spmv_status st = SPMV_OK;
    int without = 0;
    fill(m, 220, 1, false, 0);
    o.solver = "cg";
    o.precond = "jacobi";
    solve(ctx, m, &o, SPMV_F64, plain, &st, &r);
    assert_ok(ctx, st);
    o.zero_start = 1;
    o.estimate_error = 1;
    assert_ok(ctx, spmv_solver_create(ctx, &m->view, &o, &solver));
    void *const b = support_upload(ctx, m->b, m->n * 8), *const there = support_upload(ctx, m->b, m->n * 8);
    r.forward_error = -1;
    for (int k = 1; !(st == SPMV_OK && r.forward_error >= 0); k++) {
        fails_at = k;
        st = spmv_solver_solve(solver, b, there, &r, sizeof r);
        fails_at = 0;
        assert_true(k < 1000 && (st == SPMV_OK || st == SPMV_ERROR_MEMORY));
        if (st != SPMV_OK)
            continue;
        without += r.forward_error < 0;
        support_fetch_as(ctx, SPMV_F64, there, m->n, x);
        assert_memory_equal(x, plain, (size_t)m->n * sizeof *x);
    }
    assert_true(without > 0);
    support_free_in(ctx, b, there);
    spmv_solver_destroy(solver);
    free(m);
}

/* ------------------------------------------------------------- errors that b - A x hardly shows */

/* An enclosed flow on SIDE x SIDE cells with staggered velocities (MAC): Poisson matrices for both, and differences of the
 * pressure, all integers but for one entry, which is 1 - weak. weak = 0: a constant pressure is a null vector; else it
 * almost is one. x: integers. */
enum { SIDE = 8, FLOWS = SIDE * (SIDE - 1), CAVITY = 2 * FLOWS + SIDE * SIDE };

struct cavity {
    double dense[CAVITY * CAVITY], val[9 * CAVITY], x[CAVITY], b[CAVITY];
    int64_t row_ptr[CAVITY + 1];
    int32_t col[9 * CAVITY];
    spmv_csr view;
};

/* Velocity i of line j: along the lines (way 0), or across (way 1). */
static int flow(int way, int i, int j)
{
    return way * FLOWS + i * SIDE + j;
}

static int pressure(int way, int i, int j)
{
    return 2 * FLOWS + (way == 0 ? i * SIDE + j : j * SIDE + i);
}

static void fill_cavity(struct cavity *m, double weak)
{
    int64_t at = 0;
    memset(m->dense, 0, sizeof m->dense);
    for (int way = 0; way < 2; way++)
        for (int i = 0; i < SIDE - 1; i++)
            for (int j = 0; j < SIDE; j++) {
                const int row = flow(way, i, j), beside[] = {pressure(way, i, j), pressure(way, i + 1, j)};
                double *const a = m->dense + (int64_t)row * CAVITY;
                a[row] = 4;
                if (i > 0)
                    a[flow(way, i - 1, j)] = -1;
                if (i < SIDE - 2)
                    a[flow(way, i + 1, j)] = -1;
                if (j > 0)
                    a[flow(way, i, j - 1)] = -1;
                if (j < SIDE - 1)
                    a[flow(way, i, j + 1)] = -1;
                a[beside[0]] = row == 0 ? 1 - weak : 1;
                a[beside[1]] = -1;
                for (int k = 0; k < 2; k++)
                    m->dense[(int64_t)beside[k] * CAVITY + row] = a[beside[k]];
            }
    for (int i = 0; i < CAVITY; i++) {
        m->x[i] = (double)((i * 7919) % 17 - (i < 2 * FLOWS ? 8 : 2));
        m->row_ptr[i] = at;
        for (int j = 0; j < CAVITY; j++)
            if (m->dense[i * CAVITY + j] != 0) {
                m->col[at] = j;
                m->val[at++] = m->dense[i * CAVITY + j];
            }
    }
    m->row_ptr[CAVITY] = at;
    for (int i = 0; i < CAVITY; i++) {
        m->b[i] = 0;
        for (int64_t k = m->row_ptr[i]; k < m->row_ptr[i + 1]; k++)
            m->b[i] += m->val[k] * m->x[m->col[k]];
    }
    m->view = host_view(CAVITY, m->row_ptr, m->col, m->val);
}

/* Solves for copies of b; returns the true relative error of the last x. */
static double solve_cavity(spmv_context *ctx, const struct cavity *m, const char *solver, int vectors, bool estimate,
                           double *x, spmv_solver_result *r)
{
    enum { MOST_VECTORS = 2 };
    double b[MOST_VECTORS * CAVITY], square = 0, norm = 0;
    spmv_solver_options o = support_solver_options();
    spmv_solver *s = NULL;
    o.solver = solver;
    o.precond = "none";
    o.vectors = vectors;
    o.zero_start = 1;
    o.estimate_error = estimate;
    for (int i = 0; i < CAVITY * vectors; i++)
        b[i] = m->b[i / vectors];
    assert_ok(ctx, spmv_solver_create(ctx, &m->view, &o, &s));
    void *const b_there = support_upload(ctx, b, (int64_t)sizeof(double) * CAVITY * vectors);
    void *const there = support_upload(ctx, b, (int64_t)sizeof(double) * CAVITY * vectors);
    assert_ok(ctx, spmv_solver_solve(s, b_there, there, r, sizeof *r));
    assert_ok(ctx, spmv_download(ctx, there, b, (int64_t)sizeof(double) * CAVITY * vectors));
    for (int i = 0; i < CAVITY; i++) {
        x[i] = b[i * vectors + vectors - 1];
        square += (x[i] - m->x[i]) * (x[i] - m->x[i]);
        norm += m->x[i] * m->x[i];
    }
    support_free_in(ctx, b_there, there);
    spmv_solver_destroy(s);
    return sqrt(square / norm);
}

/* The error is along a constant pressure, which neither x nor a rough solve for its error has found. */
static void hidden_constant_is_told(void **state)
{
    spmv_context *ctx = *state;
    static const struct {
        const char *solver;
        int vectors;
    } cases[] = {{"minres", 1}, {"gmres", 1}, {"minres", 2}};
    struct cavity *const m = support_zeros(1, sizeof *m);
    double x[CAVITY], plain[CAVITY];
    spmv_solver_result r[2];
    fill_cavity(m, 0x1p-10);
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        if (SLOW && c > 0)
            continue;
        solve_cavity(ctx, m, cases[c].solver, cases[c].vectors, false, plain, r);
        const double error = solve_cavity(ctx, m, cases[c].solver, cases[c].vectors, true, x, r);
        assert_true(error > 0.1 && r->backward_error < 1e-6);
        if (!(r->forward_error >= 0.25 * error && r->forward_error <= 4 * error))
            fail_msg("case %d: the error is %g, the estimate %g", (int)c, error, r->forward_error);
        assert_memory_equal(x, plain, sizeof x);
    }
    /* a null vector: x may have any part along it */
    fill_cavity(m, 0);
    solve_cavity(ctx, m, "minres", 1, true, x, r);
    assert_true(r->forward_error >= 0 && r->forward_error < 1e-5);
    free(m);
}

/* A has a small singular value, which the few iterations for x leave out, as b hardly has a part there; the other values
 * are few. */
static void error_after_few_iterations_is_told(void **state)
{
    enum { N = 100 };
    static const struct {
        const char *solver;
        double coupling, small;
    } cases[] = {{"gmres", 1, 0x1p-10}, {"cg", 0, 0x1p-6}};
    spmv_context *ctx = *state;
    struct band *const m = support_zeros(1, sizeof *m);
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        spmv_solver_options o = support_solver_options();
        spmv_solver_result r;
        spmv_status st = SPMV_OK;
        double x[MOST];
        fill(m, N, 1, false, 0);
        for (int i = 0; i < N; i++)
            for (int64_t k = m->row_ptr[i]; k < m->row_ptr[i + 1]; k++)
                m->val[k] = m->col[k] == i ? i % 7 + 1 : i == 1 && m->col[k] == 0 ? cases[c].coupling : 0;
        /* the last two rows: 1 1 / 1 1 + small; before them is a 0 */
        const int64_t last = m->row_ptr[N];
        for (int64_t k = last - 4; k < last; k++)
            m->val[k] = k == last - 1 ? 1 + cases[c].small : 1;
        m->x[N - 2] = -5;
        m->x[N - 1] = 11;
        multiply_band(m);
        o.solver = cases[c].solver;
        o.precond = "none";
        o.rtol = 1e-2;
        o.estimate_error = 1;
        const double error = solve(ctx, m, &o, SPMV_F64, x, &st, &r);
        assert_ok(ctx, st);
        assert_true(error > 0.1 && r.iterations <= 20);
        if (!(r.forward_error >= 0.25 * error && r.forward_error <= 4 * error))
            fail_msg("case %d: the error is %g, the estimate %g", (int)c, error, r.forward_error);
    }
    free(m);
}

/* ------------------------------------------------------------- digits */

static void digits_are_met(void **state)
{
    spmv_context *ctx = *state;
    static const struct band_case cases[] = {
        {"cg", "jacobi", 250, 1, false, 0, SPMV_F64, 1e-6, 15},
        {"cg", "jacobi", 220, 1, true, 0, SPMV_F64, 1e-6, 12},
        {"auto", "auto", 300, -1, false, 0, SPMV_F64, 1e-6, 14},
        {"auto", "auto", 300, 1, true, 0, SPMV_F64, 1e-6, 13},
        {"gmres", "ilu0", 250, 1, false, 0.5, SPMV_F64, 1e-6, 15},
        {"cg", "none", 210, 1, false, 0, SPMV_F32, 1e-3, 6},
        {"cg", "jacobi", 210, 1, false, 0, SPMV_C128, 1e-6, 14},
        {"auto", "auto", 100, 1, true, 0, SPMV_F64, 1e-6, 14},
    };
    struct band *const m = support_zeros(1, sizeof *m);
    double x[MOST];
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        spmv_solver_options o = support_solver_options();
        spmv_solver_result r;
        spmv_status st = SPMV_OK;
        if (SLOW && c % 3 != 1)
            continue;
        o = open_case(&cases[c], m);
        const double error = solve(ctx, m, &o, cases[c].type, x, &st, &r), wanted = pow(10, -o.accuracy);
        assert_ok(ctx, st);
        if (!(error <= 1.5 * wanted && r.forward_error <= wanted && r.forward_error >= 0))
            fail_msg("case %d: the error is %g, the estimate %g", (int)c, error, r.forward_error);
        assert_true(r.true_residual <= r.tolerance && r.status == SPMV_OK);
    }
    free(m);
}

/* A Hilbert matrix has no 15 digits for conjugate gradients: told, with the x of a residual within the tolerance. */
static void digits_are_missed(void **state)
{
    spmv_context *ctx = *state;
    enum { N = 12 };
    int64_t row_ptr[N + 1];
    int32_t col[N * N];
    double val[N * N], b[N], x[N] = {0};
    for (int i = 0; i <= N; i++)
        row_ptr[i] = i * N;
    for (int i = 0; i < N; i++) {
        b[i] = 0;
        for (int j = 0; j < N; j++) {
            col[i * N + j] = j;
            val[i * N + j] = 1.0 / (i + j + 1);
            b[i] += val[i * N + j];
        }
    }
    const spmv_csr a = {.rows = N,
                        .cols = N,
                        .nnz = N * N,
                        .row_ptr = row_ptr,
                        .row_ptr_bits = 64,
                        .col = col,
                        .val = val,
                        .type = SPMV_F64,
                        .memory = SPMV_MEMORY_HOST};
    spmv_solver_options o = support_solver_options();
    spmv_solver *solver = NULL;
    spmv_solver_result r;
    o.solver = "cg";
    o.precond = "none";
    o.rtol = 1e-3;
    o.accuracy = 15;
    o.zero_start = 1;
    assert_ok(ctx, spmv_solver_create(ctx, &a, &o, &solver));
    void *const b_there = support_upload(ctx, b, (int64_t)sizeof b), *const there =
                                                                         support_upload(ctx, x, (int64_t)sizeof x);
    assert_fails(ctx, spmv_solver_solve(solver, b_there, there, &r, sizeof r), SPMV_ERROR_ACCURACY,
                 "15 digits were asked for");
    assert_true(r.status == SPMV_ERROR_ACCURACY && r.true_residual <= r.tolerance);
    assert_true(r.forward_error < 0 || r.forward_error > 1e-15);
    support_free_in(ctx, b_there, there);
    spmv_solver_destroy(solver);
}

/* ------------------------------------------------------------- several right-hand sides */

static void several(void **state)
{
    enum { VECTORS = 3, N = 240 };
    spmv_context *ctx = *state;
    struct band *const m = support_zeros(1, sizeof *m);
    double b[N * VECTORS], x[N * VECTORS] = {0};
    fill(m, N, 1, false, 0);
    for (int i = 0; i < N; i++)
        for (int v = 0; v < VECTORS; v++) /* powers of two times the same: the same relative errors */
            b[i * VECTORS + v] = ldexp(m->b[i], 40 * v);
    for (int digits = 0; digits <= 13; digits += 13) {
        spmv_solver_options o = support_solver_options();
        spmv_solver *solver = NULL;
        spmv_solver_result r[VECTORS];
        o.solver = "cg";
        o.precond = "jacobi";
        o.rtol = 1e-6;
        o.vectors = VECTORS;
        o.zero_start = 1;
        o.estimate_error = 1;
        o.accuracy = digits;
        assert_ok(ctx, spmv_solver_create(ctx, &m->view, &o, &solver));
        void *const b_there = support_upload(ctx, b, (int64_t)sizeof b);
        void *const there = support_upload(ctx, x, (int64_t)sizeof x);
        assert_ok(ctx, spmv_solver_solve(solver, b_there, there, r, sizeof *r));
        assert_ok(ctx, spmv_download(ctx, there, x, (int64_t)sizeof x));
        for (int v = 0; v < VECTORS; v++) {
            double one[N];
            for (int i = 0; i < N; i++)
                one[i] = ldexp(x[i * VECTORS + v], -40 * v);
            const double error = error_of(m, one, 1);
            if (digits > 0)
                assert_true(error <= 1.5e-13 && r[v].forward_error <= 1e-13 && r[v].status == SPMV_OK);
            else
                assert_true(r[v].forward_error >= 0.25 * error && r[v].forward_error <= 8 * error);
        }
        support_free_in(ctx, b_there, there);
        spmv_solver_destroy(solver);
    }
    free(m);
}

static void errors(void **state)
{
    spmv_context *ctx = *state;
    struct band *const m = support_zeros(1, sizeof *m);
    spmv_solver *solver = NULL;
    static const struct {
        int estimate, accuracy;
        spmv_type type;
        const char *named;
    } cases[] = {{2, 0, SPMV_F64, "estimate_error"},
                 {-1, 0, SPMV_F64, "estimate_error"},
                 {0, 16, SPMV_F64, "accuracy"},
                 {0, -1, SPMV_F64, "accuracy"},
                 {0, 7, SPMV_F32, "up to 6 digits"}};
    fill(m, 20, 1, false, 0);
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        spmv_solver_options o = support_solver_options();
        o.estimate_error = cases[c].estimate;
        o.accuracy = cases[c].accuracy;
        o.type = cases[c].type;
        const spmv_csr a = view_for(m, o.type);
        assert_fails(ctx, spmv_solver_create(ctx, &a, &o, &solver), SPMV_ERROR_ARGUMENT, cases[c].named);
        assert_null(solver);
    }
    free(m);
}

SUPPORT_MAIN(with_context(residual_has_twice_the_digits), with_context(residual_of_other_types),
             with_context(estimate_is_near), with_context(estimate_is_silent), with_context(estimate_without_memory),
             with_context(hidden_constant_is_told), with_context(error_after_few_iterations_is_told),
             with_context(digits_are_met), with_context(digits_are_missed), with_context(several), with_context(errors))

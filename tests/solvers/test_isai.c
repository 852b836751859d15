/* Preconditioner isai: equal to its definition in dense arithmetic, of general and of symmetric matrices, with and
 * without steps of refinement; exact where the inverses of the factors have no other entries; about the iterations of
 * ilu0 and ic0; full rows, replaced pivots, ranges of numbers; the same bits for any number of threads; complex
 * systems, several right-hand sides and new values.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <float.h>
#include <math.h>
#include <stdbool.h>

#include "tests/support/support_precond.h"
#include "tests/support/support_slow.h"

/* ----------------------------------------------------------------- helpers */

static spmv_preconditioner *make(spmv_context *ctx, const char *name, const spmv_csr *a, int general, int degree)
{
    spmv_preconditioner_options options;
    spmv_preconditioner *m = NULL;
    spmv_preconditioner_options_init(&options, sizeof options);
    options.general = general;
    options.degree = degree;
    assert_ok(ctx, spmv_preconditioner_create(ctx, name, a, &options, &m));
    return m;
}

static const char *layout_of(spmv_context *ctx, const spmv_preconditioner *m)
{
    spmv_preconditioner_info info;
    assert_ok(ctx, spmv_preconditioner_describe(m, &info, sizeof info));
    return info.layout;
}

/* Nonzeros in about `share` of the cells, and a dominant diagonal; symmetric with positive signs, or not. */
static double *random_matrix(int n, double share, bool symmetric, uint64_t seed)
{
    double *const dense = support_zeros(n * n, sizeof *dense);
    for (int i = 0; i < n; i++)
        for (int j = 0; j < i; j++)
            for (int side = 0; side < 2; side++) {
                const double value = (float)support_uniform(&seed);
                if (fabs(support_uniform(&seed)) < share)
                    dense[side == 0 ? i * n + j : j * n + i] = value;
            }
    for (int i = 0; i < n && symmetric; i++)
        for (int j = 0; j < i; j++)
            dense[j * n + i] = dense[i * n + j];
    for (int i = 0; i < n; i++) {
        double sum = 0.5;
        for (int j = 0; j < n; j++)
            sum += fabs(dense[i * n + j]);
        dense[i * n + i] = (float)(!symmetric && i % 4 == 0 ? -sum : sum);
    }
    return dense;
}

typedef long double real;

/* Factors without fill-in: L with ones, U; or both with roots, if symmetric. */
static void incomplete_factors(const double *a, int n, bool symmetric, real *l, real *u)
{
    for (int k = 0; k < n * n; k++)
        u[k] = a[k];
    for (int i = 0; i < n; i++) {
        l[i * n + i] = 1;
        for (int k = 0; k < i; k++) {
            l[i * n + k] = u[i * n + k] / u[k * n + k];
            u[i * n + k] = 0;
            for (int j = k + 1; j < n && l[i * n + k] != 0; j++)
                if (a[i * n + j] != 0)
                    u[i * n + j] -= l[i * n + k] * u[k * n + j];
        }
    }
    for (int k = 0; k < n && symmetric; k++) {
        const real root = sqrtl(u[k * n + k]);
        for (int i = 0; i < n; i++) {
            l[i * n + k] *= root;
            u[k * n + i] /= root;
        }
    }
}

/* c += factor a b */
static void add_product(int n, real factor, const real *a, const real *b, real *c)
{
    for (int i = 0; i < n; i++)
        for (int k = 0; k < n; k++)
            for (int j = 0; j < n && a[i * n + k] != 0; j++)
                c[i * n + j] += factor * a[i * n + k] * b[k * n + j];
}

static void transpose(int n, const real *a, real *b)
{
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++)
            b[j * n + i] = a[i * n + j];
}

/* x with the pattern of the lower triangle l, and (x l)_ij = (i == j) there: row by row, all equations at once. */
static void inverse_on_pattern(int n, const real *l, real *x)
{
    real *const system = support_zeros(n * n, sizeof *system), *const right = support_zeros(n, sizeof *right);
    int *const pattern = support_zeros(n, sizeof *pattern);
    for (int i = 0; i < n; i++) {
        int count = 0;
        for (int j = 0; j <= i; j++)
            if (l[i * n + j] != 0)
                pattern[count++] = j;
        for (int q = 0; q < count; q++) {
            right[q] = q == count - 1;
            for (int p = 0; p < count; p++)
                system[q * count + p] = l[pattern[p] * n + pattern[q]];
        }
        for (int q = count - 1; q >= 0; q--) { /* the equations are an upper triangle */
            for (int p = 0; p < q; p++)
                assert_true(system[q * count + p] == 0);
            for (int p = q + 1; p < count; p++)
                right[q] -= system[q * count + p] * right[p];
            right[q] /= system[q * count + q];
            x[i * n + pattern[q]] = right[q];
        }
    }
    support_free(system, right, pattern);
}

/* s = x + (x - x t x) + ..., with so many steps s = s + x (I - t s). */
static void refined(int n, const real *x, const real *t, int steps, real *s)
{
    real *const rest = support_zeros(n * n, sizeof *rest);
    memcpy(s, x, (size_t)(n * n) * sizeof *s);
    for (int step = 0; step < steps; step++) {
        for (int k = 0; k < n * n; k++)
            rest[k] = k % (n + 1) == 0;
        add_product(n, -1, t, s, rest);
        add_product(n, 1, x, rest, s);
    }
    free(rest);
}

/* M^-1 by its definition. */
static double *defined(const double *a, int n, bool symmetric, int steps)
{
    enum { ARRAYS = 8 };
    real *w[ARRAYS];
    double *const inverse = support_zeros(n * n, sizeof *inverse);
    for (int k = 0; k < ARRAYS; k++)
        w[k] = support_zeros(n * n, sizeof *w[k]);
    incomplete_factors(a, n, symmetric, w[0], w[1]);
    inverse_on_pattern(n, w[0], w[2]);
    refined(n, w[2], w[0], steps, w[3]);
    transpose(n, w[1], w[4]);
    inverse_on_pattern(n, w[4], w[5]);
    transpose(n, w[5], w[4]);
    refined(n, w[4], w[1], steps, w[6]);
    add_product(n, 1, w[6], w[3], w[7]);
    for (int k = 0; k < n * n; k++)
        inverse[k] = (double)w[7][k];
    for (int k = 0; k < ARRAYS; k++)
        free(w[k]);
    return inverse;
}

/* Compares M^-1 with an expected matrix, column by column. */
static void check_inverse(spmv_context *ctx, const char *what, const spmv_preconditioner *m, const double *expected)
{
    const int n = (int)precond_rows(m);
    double *const r = support_zeros(n, sizeof *r), *const z = support_zeros(n, sizeof *z);
    for (int j = 0; j < n; j++) {
        double largest = 0;
        r[j] = 1;
        apply(ctx, m, r, z);
        r[j] = 0;
        for (int i = 0; i < n; i++)
            largest = fmax(largest, fabs(expected[i * n + j]));
        for (int i = 0; i < n; i++)
            if (!(fabs(z[i] - expected[i * n + j]) <= 32 * FLT_EPSILON * largest)) /* factors are in f32 */
                fail_msg("%s: M^-1 has %.9g at (%d, %d), %.9g expected", what, z[i], i, j, expected[i * n + j]);
    }
    support_free(r, z);
}

/* ------------------------------------------------------------------- tests */

/* Both kinds, in both types of vectors, with an f32 matrix under f64 vectors; more than 8 steps count as 8. */
static void as_defined(void **state)
{
    spmv_context *ctx = *state;
    static const int steps[] = {0, 1, 2, 3, 100};
    enum { N = SLOW ? 12 : 40 };
    for (int symmetric = 0; symmetric < 2; symmetric++) {
        double *const dense = random_matrix(N, 0.15, symmetric, 5 + symmetric);
        struct sparse a = from_dense(N, dense);
        float *const narrow = support_zeros(a.view.nnz, sizeof *narrow);
        for (int64_t k = 0; k < a.view.nnz; k++)
            narrow[k] = (float)a.val[k];
        for (size_t s = 0; s < sizeof steps / sizeof *steps; s++) {
            double *const expected = defined(dense, N, symmetric, steps[s] < 8 ? steps[s] : 8);
            for (int way = 0; way < 3; way++) { /* f64, f32, and an f32 matrix with f64 vectors */
                char what[64];
                spmv_csr view = a.view;
                spmv_preconditioner *m = NULL;
                spmv_preconditioner_options o;
                spmv_preconditioner_options_init(&o, sizeof o);
                if (way > 0) {
                    view.val = narrow;
                    view.type = SPMV_F32;
                }
                o.type = way == 1 ? SPMV_F32 : SPMV_F64;
                o.general = !symmetric;
                o.degree = steps[s];
                assert_ok(ctx, spmv_preconditioner_create(ctx, "isai", &view, &o, &m));
                snprintf(what, sizeof what, "symmetric %d, %d steps, way %d", symmetric, steps[s], way);
                check_inverse(ctx, what, m, expected);
                assert_non_null(strstr(layout_of(ctx, m), "in f32"));
                assert_true((precond_factors(m) != NULL) == (symmetric && steps[s] == 0));
                spmv_preconditioner_destroy(m);
            }
            free(expected);
        }
        /* the default */
        spmv_preconditioner *const m = make(ctx, "isai", &a.view, !symmetric, -1);
        assert_non_null(
            strstr(layout_of(ctx, m), symmetric ? "and 1 step of refinement" : "and 2 steps of refinement"));
        spmv_preconditioner_destroy(m);
        free(narrow);
        release(&a);
        free(dense);
    }
}

/* Of a symmetric matrix, the general kind is symmetric too, and equal to the other one. */
static void general_of_a_symmetric_matrix(void **state)
{
    spmv_context *ctx = *state;
    enum { N = SLOW ? 12 : 30 };
    double *const dense = random_matrix(N, 0.2, true, 9), *const expected = defined(dense, N, true, 0);
    struct sparse a = from_dense(N, dense);
    spmv_preconditioner *const m = make(ctx, "isai", &a.view, 1, 0);
    check_inverse(ctx, "general", m, expected);
    spmv_preconditioner_destroy(m);
    release(&a);
    support_free(dense, expected);
}

/* |r - A M^-1 r| relative to the terms. */
static double error_of(spmv_context *ctx, const spmv_preconditioner *m, const double *dense)
{
    const int64_t n = precond_rows(m);
    double *const r = support_zeros(n, sizeof *r), *const z = support_zeros(n, sizeof *z), worst = 0, size = 0;
    uint64_t seed = 3;
    for (int64_t i = 0; i < n; i++)
        r[i] = (float)support_uniform(&seed);
    apply(ctx, m, r, z);
    for (int64_t i = 0; i < n; i++) {
        long double sum = -r[i];
        for (int64_t j = 0; j < n; j++) {
            sum += (long double)dense[i * n + j] * z[j];
            size = fmax(size, fabs(dense[i * n + j] * z[j]));
        }
        worst = fmax(worst, fabs((double)sum));
    }
    support_free(r, z);
    return worst / size;
}

/* Full blocks along the diagonal have factors whose inverses have the same pattern. A chain of n rows has full
 * inverses: n / 2 - 1 steps make them exact, and less do not. */
static void exact(void **state)
{
    spmv_context *ctx = *state;
    enum { N = 21, BLOCK = 5 };
    double *const blocks = random_matrix(N, 2, false, 3);
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++)
            if (i / BLOCK != j / BLOCK)
                blocks[i * N + j] = 0;
    struct sparse a = from_dense(N, blocks);
    spmv_preconditioner *m = make(ctx, "isai", &a.view, 1, 0);
    assert_true(error_of(ctx, m, blocks) <= 32 * FLT_EPSILON);
    spmv_preconditioner_destroy(m);
    release(&a);
    free(blocks);
    for (int n = 1; n <= 8; n++)
        for (int symmetric = 0; symmetric < 2; symmetric++) {
            double *const chain = support_zeros(n * n, sizeof *chain);
            for (int i = 0; i < n; i++)
                for (int j = i > 0 ? i - 1 : 0; j <= i + 1 && j < n; j++)
                    chain[i * n + j] = i == j ? 2.5 : j > i && !symmetric ? 0.5 : -1;
            a = from_dense(n, chain);
            const int steps = (n - 1) / 2;
            m = make(ctx, "isai", &a.view, !symmetric, steps);
            assert_true(error_of(ctx, m, chain) <= 32 * FLT_EPSILON);
            spmv_preconditioner_destroy(m);
            if (steps > 0) {
                m = make(ctx, "isai", &a.view, !symmetric, steps - 1);
                assert_true(error_of(ctx, m, chain) >= 1e-5);
                spmv_preconditioner_destroy(m);
            }
            release(&a);
            free(chain);
        }
}

/* Numbers out of the range of f32 keep the factors in f64; out of that of the vectors, they are refused. */
static void ranges(void **state)
{
    spmv_context *ctx = *state;
    enum { N = 20 };
    spmv_preconditioner *m = NULL;
    spmv_preconditioner_options o;
    spmv_preconditioner_options_init(&o, sizeof o);
    o.general = 1;
    double *const dense = random_matrix(N, 0.3, false, 4), *const expected = defined(dense, N, false, 2);
    for (int k = 0; k < N * N; k++)
        dense[k] *= 0x1p300;
    for (int k = 0; k < N * N; k++)
        expected[k] *= 0x1p-300;
    struct sparse a = from_dense(N, dense);
    assert_ok(ctx, spmv_preconditioner_create(ctx, "isai", &a.view, &o, &m));
    assert_non_null(strstr(layout_of(ctx, m), "in f64"));
    check_inverse(ctx, "2^300", m, expected);
    spmv_preconditioner_destroy(m);
    release(&a);
    support_free(dense, expected);
    a = from_dense(2, (const double[]){1, 0, 0, 1e-310});
    assert_fails(ctx, spmv_preconditioner_create(ctx, "isai", &a.view, &o, &m), SPMV_ERROR_NOT_FINITE,
                 "row 1 (counted from 0) of a factor or of its inverse is out of the range of f64");
    assert_null(m);
    release(&a);
    a = from_dense(2, (const double[]){1, NAN, 1, 4});
    assert_fails(ctx, spmv_preconditioner_create(ctx, "isai", &a.view, &o, &m), SPMV_ERROR_NOT_FINITE,
                 "row 0, column 1 (counted from 0) is nan");
    release(&a);
    a = from_dense(2, (const double[]){0, 2, 2, 0}); /* both pivots vanish */
    assert_ok(ctx, spmv_preconditioner_create(ctx, "isai", &a.view, &o, &m));
    assert_non_null(strstr(layout_of(ctx, m), "replaced pivots: 1 (the first, of row 0 (counted from 0), was 0)"));
    spmv_preconditioner_destroy(m);
    o.general = 0;
    assert_fails(ctx, spmv_preconditioner_create(ctx, "isai", &a.view, &o, &m), SPMV_ERROR_NOT_POSITIVE,
                 "row 0 (counted from 0) is 0");
    release(&a);
    /* positive definite, but its factor without fill-in has a negative pivot: D. S. Kershaw, 1978 */
    a = from_dense(4, (const double[]){3, -2, 0, 2, -2, 3, -2, 0, 0, -2, 3, -2, 2, 0, -2, 3});
    m = make(ctx, "isai", &a.view, 0, 0);
    spmv_preconditioner_info info;
    assert_ok(ctx, spmv_preconditioner_describe(m, &info, sizeof info));
    assert_true(info.shift > 0 && info.fallen > 0 && info.levels == 0);
    assert_non_null(strstr(info.layout, "an approximate inverse of 8 entries"));
    spmv_preconditioner_destroy(m);
    release(&a);
}

/* A full row and a full column, first, in the middle or last: work in proportion to the entries. */
static void full_rows(void **state)
{
    spmv_context *ctx = *state;
    enum { N = SLOW ? 1000 : 20000, WORK = 400 };
    const int32_t full[] = {0, N / 2, N - 1};
    int32_t *const ptr = support_zeros(N + 1, sizeof *ptr), *const col = support_zeros(5 * N, sizeof *col);
    double *const val = support_zeros(5 * N, sizeof *val);
    for (int c = 0; c < 3; c++) {
        int32_t end = 0;
        for (int32_t i = 0; i < N; i++) {
            for (int32_t j = i == full[c] ? 0 : i; j < (i == full[c] ? N : i + 1); j++) {
                if (i != full[c] && full[c] < i) {
                    col[end] = full[c];
                    val[end++] = 1;
                }
                col[end] = j;
                val[end++] = i != j ? 1 : i == full[c] ? 2 * N : 4;
                if (i != full[c] && full[c] > i) {
                    col[end] = full[c];
                    val[end++] = 1;
                }
            }
            ptr[i + 1] = end;
        }
        const spmv_csr a = support_csr(N, N, ptr, col, val);
        for (int general = 0; general < 2; general++) {
            context_budget(ctx, (int64_t)WORK * end);
            spmv_preconditioner *const m = make(ctx, "isai", &a, general, -1);
            context_budget(ctx, 0);
            spmv_preconditioner_destroy(m);
        }
        if (c == 1) { /* the work of all parts is counted */
            spmv_preconditioner *m = (void *)ctx;
            context_budget(ctx, end / 2);
            const spmv_status st = spmv_preconditioner_create(ctx, "isai", &a, NULL, &m);
            context_budget(ctx, 0);
            assert_fails(ctx, st, SPMV_ERROR_LIMIT, "preconditioner");
            assert_null(m);
        }
    }
    support_free(ptr, col, val);
}

/* The same bits for each number of threads, with several blocks of rows, in each application. */
static void same_bits(void **state)
{
    (void)state;
    for (int general = 0; general < 2; general++) {
        double *first = NULL;
        for (int threads = 1; threads <= (support_backend == SPMV_BACKEND_OMP ? 4 : 1); threads++) {
            spmv_context *const ctx = support_context_on(support_backend, threads);
            spmv_matrix *matrix = NULL;
            spmv_csr a;
            assert_ok(ctx, spmv_matrix_generate(ctx,
                                                general ? (SLOW ? "convdiff2d:12,1" : "convdiff3d:40,0.7")
                                                        : (SLOW ? "poisson2d:12" : "elasticity2d:80"),
                                                SPMV_F64, &matrix));
            spmv_matrix_view(matrix, &a);
            spmv_preconditioner *const m = make(ctx, "isai", &a, general, -1);
            double *const r = support_zeros(a.rows, sizeof *r), *const z = support_zeros(a.rows, sizeof *z);
            for (int64_t i = 0; i < a.rows; i++)
                r[i] = (double)(i % 97) - 48;
            for (int repeat = 0; repeat < 2; repeat++) {
                apply(ctx, m, r, z);
                if (first == NULL) {
                    first = support_zeros(a.rows, sizeof *first);
                    memcpy(first, z, (size_t)a.rows * sizeof *z);
                }
                assert_memory_equal(z, first, (size_t)a.rows * sizeof *z);
            }
            support_free(r, z);
            spmv_preconditioner_destroy(m);
            spmv_matrix_destroy(matrix);
            spmv_context_destroy(ctx);
        }
        free(first);
    }
}

/* ---------------------------------------------------------------- with solvers */

/* Solves A x = b for a known x; returns the iterations. vectors: right-hand sides; renewed: with other values first,
 * which are replaced. */
static int64_t solve(spmv_context *ctx, const spmv_csr *a, const char *solver, const char *precond, int degree,
                     int vectors, bool renewed)
{
    enum { MOST = 3 };
    const spmv_type type = a->type;
    const int64_t n = a->rows * vectors, size = (int64_t)spmv_type_size(type);
    const int parts = type_is_complex(type) ? 2 : 1;
    const bool narrow = type_part(type) == SPMV_F32;
    spmv_solver_options o;
    spmv_preconditioner_options p = support_preconditioner_options();
    spmv_solver *s = NULL;
    spmv_solver_result result[MOST];
    spmv_plan *plan = NULL;
    spmv_plan_options plan_options = support_plan_options();
    double *const known = support_zeros(n * parts, sizeof *known), *const got = support_zeros(n * parts, sizeof *got);
    for (int64_t i = 0; i < n * parts; i++)
        known[i] = 1 + (double)(i % 7) / 8;
    spmv_solver_options_init(&o, sizeof o);
    p.degree = degree;
    o.solver = solver;
    o.precond = precond;
    o.precond_options = &p;
    o.vectors = vectors;
    o.rtol = narrow ? 1e-5 : 1e-9;
    plan_options.vectors = vectors;
    void *const x = support_upload_as(ctx, type_part(type), known, n * parts, 0), *const b = support_upload_as(
                                                                                      ctx, type_part(type), known,
                                                                                      n * parts, 0);
    assert_ok(ctx, spmv_plan_create(ctx, a, &plan_options, &plan));
    assert_ok(ctx, spmv_apply(plan, NULL, x, NULL, b));
    spmv_plan_destroy(plan);
    for (int64_t i = 0; i < n * parts; i++)
        got[i] = 0;
    void *const start = support_upload_as(ctx, type_part(type), got, n * parts, 0);
    if (renewed) {
        char *const other = support_zeros(a->nnz, (size_t)size), *const mine = support_zeros(a->nnz, (size_t)size);
        spmv_csr first = *a;
        assert_ok(ctx, spmv_download(ctx, a->val, mine, a->nnz * size));
        for (int64_t k = 0; k < a->nnz * parts; k++)
            real_set(type_part(type), other, k, 1 + (double)(k % 5) * real_at(type_part(type), mine, k));
        void *const there = support_upload(ctx, other, a->nnz * size);
        first.val = there;
        assert_ok(ctx, spmv_solver_create(ctx, &first, &o, &s));
        assert_ok(ctx, spmv_solver_update_values(s, a->val));
        spmv_free(ctx, there);
        support_free(other, mine);
    } else {
        assert_ok(ctx, spmv_solver_create(ctx, a, &o, &s));
    }
    assert_ok(ctx, spmv_solver_solve(s, b, start, result, sizeof *result));
    assert_string_equal(result[0].precond, precond);
    assert_string_equal(result[0].solver, solver);
    support_fetch_as(ctx, type_part(type), start, n * parts, got);
    for (int64_t i = 0; i < n * parts; i++)
        if (!(fabs(got[i] - known[i]) <= (narrow ? 1e-2 : 1e-5)))
            fail_msg("%s with %s: x has %g in place %lld, %g expected", solver, precond, got[i], (long long)i,
                     known[i]);
    support_free_in(ctx, x, b, start);
    support_free(known, got);
    spmv_solver_destroy(s);
    return result[0].iterations;
}

/* Iterations beside those of ilu0 and ic0; each step of refinement saves some. */
static void iterations(void **state)
{
    spmv_context *ctx = *state;
    static const struct {
        const char *spec, *solver, *exact;
    } systems[] = {{SLOW ? "convdiff2d:9,1" : "convdiff2d:50,1", "gmres", "ilu0"},
                   {SLOW ? "convdiff3d:5,10" : "convdiff3d:16,10", "gmres", "ilu0"},
                   {SLOW ? "convdiff2d:9,0.1" : "convdiff2d:40,0.1", "bicgstab", "ilu0"},
                   {SLOW ? "diffusion2d:9,100" : "diffusion2d:50,100", "cg", "ic0"},
                   {SLOW ? "elasticity2d:5" : "elasticity2d:20", "cg", "ic0"}};
    for (size_t k = 0; k < sizeof systems / sizeof *systems; k++) {
        spmv_matrix *matrix = NULL;
        spmv_csr a;
        int64_t by_degree[5];
        if (SLOW && k % 3 != 0) /* one for each kind */
            continue;
        assert_ok(ctx, spmv_matrix_generate(ctx, systems[k].spec, SPMV_F64, &matrix));
        spmv_matrix_view(matrix, &a);
        for (int degree = 0; degree < 5; degree++)
            by_degree[degree] = solve(ctx, &a, systems[k].solver, "isai", degree, 1, false);
        const bool cpu = support_backend != SPMV_BACKEND_CUDA || !is_on_cpu_only(systems[k].exact);
        const int64_t exact_ones =
                          cpu ? solve(ctx, &a, systems[k].solver, systems[k].exact, -1, 1, false) : by_degree[4],
                      jacobi = solve(ctx, &a, systems[k].solver, "jacobi", -1, 1, false);
        if (!(by_degree[0] < jacobi && by_degree[1] < by_degree[0] && by_degree[2] <= by_degree[1] &&
              2 * by_degree[2] <= 3 * exact_ones && 10 * by_degree[4] <= 11 * exact_ones + 20))
            fail_msg("%s: %lld, %lld, %lld, %lld, %lld iterations; %s %lld, jacobi %lld", systems[k].spec,
                     (long long)by_degree[0], (long long)by_degree[1], (long long)by_degree[2], (long long)by_degree[3],
                     (long long)by_degree[4], systems[k].exact, (long long)exact_ones, (long long)jacobi);
        spmv_matrix_destroy(matrix);
    }
}

/* In every type, for several right-hand sides, with new values, and by each solver: of a matrix with a phase if
 * complex. */
static void types_and_values(void **state)
{
    spmv_context *ctx = *state;
    static const spmv_type types[] = {SPMV_F64, SPMV_F32, SPMV_C128, SPMV_C64};
    static const char *const solvers[] = {"gmres", "bicgstab", "cg", "minres"};
    for (int t = 0; t < 4; t++)
        for (int k = 0; k < 4; k++) {
            spmv_matrix *real_one = NULL, *matrix = NULL;
            spmv_csr a, there;
            const bool symmetric = k >= 2, complex_one = type_is_complex(types[t]);
            if (SLOW && (t + k) % 4 != 0) /* each type and each solver once */
                continue;
            assert_ok(ctx, spmv_matrix_generate(ctx,
                                                symmetric ? (SLOW ? "poisson2d:6" : "poisson2d:20")
                                                          : (SLOW ? "convdiff2d:6,1" : "convdiff2d:20,1"),
                                                type_part(types[t]), &real_one));
            spmv_matrix_view(real_one, &a);
            char *const val = support_zeros(a.nnz, 16);
            for (int64_t e = 0; e < a.nnz && complex_one; e++) {
                real_set(type_part(types[t]), val, 2 * e, precond_value(&a, e));
                real_set(type_part(types[t]), val, 2 * e + 1, symmetric ? 0 : 0.3 * precond_value(&a, e));
            }
            if (complex_one) {
                a.val = val;
                a.type = types[t];
            }
            assert_ok(ctx, spmv_matrix_copy(ctx, &a, SPMV_MEMORY_CONTEXT, &matrix));
            spmv_matrix_view(matrix, &there);
            const int64_t alone = solve(ctx, &there, solvers[k], "isai", -1, 1, false);
            assert_int_equal(solve(ctx, &there, solvers[k], "isai", -1, 1, true), alone);
            if (!complex_one)
                solve(ctx, &there, solvers[k], "isai", -1, SLOW ? 2 : 3, false);
            assert_true(alone <= 40);
            free(val);
            spmv_matrix_destroy(matrix);
            spmv_matrix_destroy(real_one);
        }
}

SUPPORT_MAIN(with_context(as_defined), with_context(general_of_a_symmetric_matrix), with_context(exact),
             with_context(ranges), with_context(full_rows), cmocka_unit_test(same_bits), with_context(iterations),
             with_context(types_and_values))

/* The methods minres, gmres, bicgstab, cocg and direct of a solver, and what "auto" chooses: known
 * answers in all types and with all preconditioners, every failure from a matrix that provokes it,
 * statuses, callbacks, several right-hand sides, bits.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>

#include "core/runtime.h"
#include "formats/matrix_internal.h"
#include "tests/support/support.h"
#include "tests/support/support_module.h"
#include "tests/support/support_slow.h"
#ifdef HOST_CUDA
#include <cuda_runtime_api.h>
#endif

enum { SIZE = SLOW ? 40 : 700, ROWS = SLOW ? 210 : SIZE }; /* ROWS: auto takes no dense factor */

enum { ENTRIES = 5, RUNS = SLOW ? 3 : 51 };

/* A matrix by rows, with complex numbers; and its view. */
struct matrix {
    int64_t n, nnz;
    spmv_type type;
    int32_t *row_ptr, *col;
    double *val; /* 2 a number */
    void *typed; /* in host memory */
    spmv_csr view;
};

static void add(struct matrix *a, int64_t row, int64_t col, double re, double im)
{
    if (col < 0 || col >= a->n)
        return;
    a->col[a->nnz] = (int32_t)col;
    a->val[2 * a->nnz] = re;
    a->val[2 * a->nnz + 1] = im;
    a->row_ptr[row + 1] = (int32_t)++a->nnz;
}

static struct matrix new_matrix(int64_t n, int64_t entries, spmv_type type)
{
    return (struct matrix){.n = n,
                           .type = type,
                           .row_ptr = support_zeros(n + 1, 4),
                           .col = support_zeros(entries, 4),
                           .val = support_zeros(2 * entries, 8)};
}

static int parts_of(spmv_type type)
{
    return type_parts(type);
}

/* Numbers of the type, from complex ones. */
static void *typed(spmv_type type, const double *pairs, int64_t n)
{
    double *const chosen = support_zeros(2 * n, 8);
    const int parts = parts_of(type);
    for (int64_t i = 0; i < n; i++)
        for (int p = 0; p < parts; p++)
            chosen[i * parts + p] = pairs[2 * i + p];
    void *const numbers = support_as(type_part(type), chosen, n * parts, 0);
    free(chosen);
    return numbers;
}

static void finish(struct matrix *a)
{
    for (int64_t i = 0; i < a->n; i++) /* rows without entries */
        if (a->row_ptr[i + 1] < a->row_ptr[i])
            a->row_ptr[i + 1] = a->row_ptr[i];
    a->typed = typed(a->type, a->val, a->nnz);
    a->view = support_csr(a->n, a->n, a->row_ptr, a->col, NULL);
    a->view.nnz = a->nnz;
    a->view.val = a->typed;
    a->view.type = a->type;
}

static void release(struct matrix *a)
{
    support_free(a->row_ptr, a->col, a->val, a->typed);
}

/* Five diagonals: `diagonal` (of sign `sign` in every second row), lower and upper neighbours with
 * different values, and two farther ones. skew: imaginary part of neighbours, Hermitian if lower
 * equals upper. */
static struct matrix diagonals(int64_t n, spmv_type type, double diagonal, double sign, double lower, double upper,
                               double skew)
{
    struct matrix a = new_matrix(n, n * ENTRIES, type);
    for (int64_t i = 0; i < n; i++) {
        add(&a, i, i - 7, -0.25, 0);
        add(&a, i, i - 1, lower, -skew);
        add(&a, i, i, (i % 2 == 0 ? 1 : sign) * diagonal * (1 + (double)(i % 3) / 4), 0);
        add(&a, i, i + 1, upper, skew);
        add(&a, i, i + 7, -0.25, 0);
    }
    finish(&a);
    return a;
}

static struct matrix nonsymmetric(int64_t n, spmv_type type)
{
    return diagonals(n, type, 3, 1, -1.5, -0.5, 0.25);
}

static struct matrix indefinite(int64_t n, spmv_type type)
{
    return diagonals(n, type, 3, -1, -1, -1, 0.25);
}

static struct matrix definite(int64_t n, spmv_type type)
{
    return diagonals(n, type, 3, 1, -1, -1, 0.25);
}

/* Of complex types its own transpose, and not Hermitian. */
static struct matrix complex_symmetric(int64_t n, spmv_type type)
{
    struct matrix a = new_matrix(n, n * ENTRIES, type);
    for (int64_t i = 0; i < n; i++) {
        add(&a, i, i - 7, -0.25, -0.125);
        add(&a, i, i - 1, -1, 0.25);
        add(&a, i, i, 3 + (double)(i % 3) / 4, i % 2 == 0 ? 1 : -0.25);
        add(&a, i, i + 1, -1, 0.25);
        add(&a, i, i + 7, -0.25, -0.125);
    }
    finish(&a);
    return a;
}

/* The cyclic shift: A e_i = e_i+1. */
static struct matrix shift(int64_t n)
{
    struct matrix a = new_matrix(n, n, SPMV_F64);
    for (int64_t i = 0; i < n; i++)
        add(&a, i, (i + n - 1) % n, 1, 0);
    finish(&a);
    return a;
}

/* A system with a known solution. Vectors in the context's memory. */
struct system {
    spmv_context *ctx;
    const struct matrix *a;
    double *solution, *b; /* 2 n */
    void *b_there, *x_there;
};

static int64_t vector_bytes(const struct matrix *a)
{
    return a->n * (int64_t)spmv_type_size(a->type);
}

/* b = A solution, in double precision. */
static struct system new_system(spmv_context *ctx, const struct matrix *a)
{
    struct system s = {.ctx = ctx, .a = a, .solution = support_zeros(2 * a->n, 8), .b = support_zeros(2 * a->n, 8)};
    for (int64_t i = 0; i < 2 * a->n; i++)
        s.solution[i] = i % 2 == 1 && parts_of(a->type) == 1 ? 0 : 1 + (double)(i * 13 % 17) / 16;
    for (int64_t i = 0; i < a->n; i++)
        for (int32_t k = a->row_ptr[i]; k < a->row_ptr[i + 1]; k++) {
            const double re = a->val[2 * k], im = parts_of(a->type) == 2 ? a->val[2 * k + 1] : 0;
            const double *const x = &s.solution[2 * (int64_t)a->col[k]];
            s.b[2 * i] += re * x[0] - im * x[1];
            s.b[2 * i + 1] += re * x[1] + im * x[0];
        }
    void *const b = typed(a->type, s.b, a->n);
    s.b_there = support_upload(ctx, b, vector_bytes(a));
    s.x_there = support_upload(ctx, b, vector_bytes(a));
    free(b);
    return s;
}

static void close_system(struct system *s)
{
    support_free_in(s->ctx, s->b_there, s->x_there);
    support_free(s->solution, s->b);
}

/* Part p of x_i, from host memory. */
static double part_at(const struct system *s, const void *x, int64_t i, int p)
{
    const spmv_type type = s->a->type;
    return p < parts_of(type) ? real_at(type_part(type), x, i * parts_of(type) + p) : 0;
}

static void *take_x(const struct system *s)
{
    void *const x = support_zeros(vector_bytes(s->a), 1);
    assert_ok(s->ctx, spmv_download(s->ctx, s->x_there, x, vector_bytes(s->a)));
    return x;
}

/* ||b - A x|| / ||b||, computed here. */
static double relative_residual(const struct system *s, const void *x)
{
    const struct matrix *const a = s->a;
    long double residual = 0, norm = 0;
    for (int64_t i = 0; i < a->n; i++) {
        long double re = s->b[2 * i], im = s->b[2 * i + 1];
        for (int32_t k = a->row_ptr[i]; k < a->row_ptr[i + 1]; k++) {
            const double v = a->val[2 * k], w = parts_of(a->type) == 2 ? a->val[2 * k + 1] : 0;
            const double p = part_at(s, x, a->col[k], 0), q = part_at(s, x, a->col[k], 1);
            re -= (long double)v * p - (long double)w * q;
            im -= (long double)v * q + (long double)w * p;
        }
        residual += re * re + im * im;
        norm += (long double)s->b[2 * i] * s->b[2 * i] + (long double)s->b[2 * i + 1] * s->b[2 * i + 1];
    }
    return (double)sqrtl(residual / norm);
}

static double largest_error(const struct system *s, const void *x)
{
    double largest = 0;
    for (int64_t i = 0; i < s->a->n; i++)
        for (int p = 0; p < parts_of(s->a->type); p++)
            largest = fmax(largest, fabs(part_at(s, x, i, p) - s->solution[2 * i + p]));
    return largest;
}

static spmv_solver_options options_of(const char *method, const char *precond)
{
    spmv_solver_options o;
    spmv_solver_options_init(&o, sizeof o);
    o.solver = method;
    o.precond = precond;
    o.zero_start = 1;
    return o;
}

static spmv_status solve(const struct system *s, const spmv_solver_options *o, spmv_solver_result *result)
{
    return spmv_solve(s->ctx, &s->a->view, s->b_there, s->x_there, o, result, sizeof *result);
}

static bool direct_is_missing(spmv_context *ctx)
{
    struct matrix a = definite(3, SPMV_F64);
    spmv_solver *solver = NULL;
    const spmv_solver_options o = options_of("direct", NULL);
    const spmv_status st = spmv_solver_create(ctx, &a.view, &o, &solver);
    spmv_solver_destroy(solver);
    release(&a);
    return st == SPMV_ERROR_UNSUPPORTED;
}

/* Each method in each type. */
static void known_answers(void **state)
{
    static const struct {
        const char *method;
        struct matrix (*make)(int64_t n, spmv_type type);
        bool complex;
    } cases[] = {{"cg", definite, true},           {"minres", indefinite, false},  {"minres", definite, false},
                 {"gmres", nonsymmetric, true},    {"gmres", indefinite, true},    {"bicgstab", nonsymmetric, true},
                 {"bicgstab", definite, true},     {"direct", nonsymmetric, true}, {"direct", indefinite, true},
                 {"cocg", complex_symmetric, true}};
    static const spmv_type types[] = {SPMV_F64, SPMV_F32, SPMV_C128, SPMV_C64};
    spmv_context *ctx = *state;
    const bool no_direct = direct_is_missing(ctx);
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++)
        for (size_t t = 0; t < sizeof types / sizeof types[0]; t++) {
            const bool narrow = type_part(types[t]) == SPMV_F32;
            if ((!cases[c].complex && type_is_complex(types[t])) ||
                (no_direct && strcmp(cases[c].method, "direct") == 0))
                continue;
            struct matrix a = cases[c].make(SIZE, types[t]);
            struct system s = new_system(ctx, &a);
            spmv_solver_options o = options_of(cases[c].method, NULL);
            o.rtol = narrow ? 1e-5 : 1e-10;
            spmv_solver_result result;
            assert_ok(ctx, solve(&s, &o, &result));
            void *const x = take_x(&s);
            const double residual = relative_residual(&s, x), eps = narrow ? 1e-6 : 1e-14;
            assert_true(residual <= o.rtol + eps);
            assert_true(fabs(residual - result.true_residual / result.norm_b) <= eps);
            assert_true(largest_error(&s, x) <= 20 * o.rtol);
            assert_string_equal(result.solver, cases[c].method);
            assert_true(result.iterations > 0 && result.status == SPMV_OK);
            free(x);
            close_system(&s);
            release(&a);
        }
}

/* gmres and bicgstab of sizes for which a GPU takes one kernel for many steps, of one block to all
 * of them, with the basis of gmres in shared memory, partly there, and longer than that; and of
 * larger ones. Short cycles end before the tolerance is reached. */
static void sizes(void **state)
{
    static const int64_t rows[] = {1, 2, 31, SLOW ? 33 : 257, SLOW ? 65 : 33600, SLOW ? 66 : 80000, SLOW ? 67 : 700001};
    static const char *const methods[] = {"gmres", "bicgstab"}, *const preconds[] = {"none", "jacobi"};
    static const int restarts[] = {50, 5};
    spmv_context *ctx = *state;
    const int count = support_backend == SPMV_BACKEND_CUDA ? 7 : 4;
    for (int k = 0; k < count; k++) {
        const spmv_type type = k % 2 == 0 ? SPMV_F64 : SPMV_F32;
        struct matrix a = nonsymmetric(rows[k], type);
        struct system s = new_system(ctx, &a);
        for (int m = 0; m < 2; m++)
            for (int c = 0; c < 2; c++)
                for (int r = 0; r < 2; r++) {
                    spmv_solver_options o = options_of(methods[m], preconds[c]);
                    o.rtol = type == SPMV_F64 ? 1e-10 : 1e-5;
                    o.restart = restarts[r];
                    spmv_solver_result result;
                    assert_ok(ctx, solve(&s, &o, &result));
                    void *const x = take_x(&s);
                    const double residual = relative_residual(&s, x), eps = type == SPMV_F64 ? 1e-13 : 1e-6;
                    assert_true(residual <= o.rtol + eps);
                    assert_true(fabs(residual - result.true_residual / result.norm_b) <= eps);
                    assert_true(largest_error(&s, x) <= 20 * o.rtol * sqrt((double)a.n));
                    free(x);
                }
        close_system(&s);
        release(&a);
    }
}

/* Eigenvalues that crowd at 1 and reach down to 1/1000, far from normal: with one pass of Gram-Schmidt
 * a step, gmres does not get below 1 % in n steps. */
static struct matrix crowded(int64_t n, spmv_type type)
{
    struct matrix a = new_matrix(n, n * ENTRIES, type);
    for (int64_t i = 0; i < n; i++) {
        add(&a, i, i, pow(10, -3 * pow((double)i / (double)n, 3)), 0);
        add(&a, i, i + 1, 0.1, 0.02);
    }
    finish(&a);
    return a;
}

/* The basis of gmres stays orthogonal, and its triangle is that of A: the residual of the recurrence
 * is the true one, in one run. */
static void recurrence(void **state)
{
    static const spmv_type types[] = {SPMV_F64, SPMV_C128};
    static const char *const preconds[] = {"none", "jacobi"};
    spmv_context *ctx = *state;
    for (int t = 0; t < 2; t++)
        for (int p = 0; p < 2; p++) {
            struct matrix a = p == 0 ? crowded(60, types[t]) : nonsymmetric(60, types[t]);
            struct system s = new_system(ctx, &a);
            spmv_solver_options o = options_of("gmres", preconds[p]);
            o.rtol = 1e-11;
            o.restart = 100;
            spmv_solver_result result;
            assert_ok(ctx, solve(&s, &o, &result));
            assert_true(result.iterations <= 60);
            assert_true(fabs(result.true_residual - result.recurrence_residual) <= 1e-13 * result.norm_b);
            close_system(&s);
            release(&a);
        }
}

/* gmres and bicgstab with each preconditioner that can be made. */
static void preconditioners(void **state)
{
    spmv_context *ctx = *state;
    static const spmv_type types[] = {SPMV_F64, SPMV_C128};
    int made = 0;
    for (size_t t = 0; t < sizeof types / sizeof types[0]; t++) {
        struct matrix a = nonsymmetric(SIZE, types[t]);
        struct system s = new_system(ctx, &a);
        for (int kind = 0; spmv_preconditioner_name(kind) != NULL; kind++)
            for (int m = 0; m < 2; m++) {
                const char *const name = spmv_preconditioner_name(kind);
                const spmv_solver_options o = options_of(m == 0 ? "gmres" : "bicgstab", name);
                spmv_solver_result result;
                const spmv_status st = solve(&s, &o, &result);
                /* these are for symmetric positive definite matrices */
                if (st != SPMV_OK) {
                    assert_true(strcmp(name, "amg") == 0 || strcmp(name, "chebyshev") == 0 ||
                                strcmp(name, "ic0") == 0 || strcmp(name, "cholesky") == 0 ||
                                strcmp(name, "schur") == 0);
                    continue;
                }
                void *const x = take_x(&s);
                assert_true(relative_residual(&s, x) <= 1.001e-8);
                assert_string_equal(result.precond, name);
                if (strcmp(name, "ilut") == 0)
                    assert_true(result.iterations <= 8);
                made++;
                free(x);
            }
        close_system(&s);
        release(&a);
    }
    assert_true(made >= 2 * 2 * 5);
}

/* In n steps without restart, gmres is exact; on the shift it makes no progress before. */
static void exact_after_n_steps(void **state)
{
    enum { N = 20, LARGE = 220 /* more rows than a dense factor has */ };
    spmv_context *ctx = *state;
    struct matrix a = shift(N);
    struct system s = new_system(ctx, &a);
    /* b = e_1 */
    memset(s.b, 0, 2 * N * sizeof *s.b);
    s.b[0] = 1;
    void *const b = typed(a.type, s.b, N);
    assert_ok(ctx, spmv_upload(ctx, b, s.b_there, vector_bytes(&a)));
    free(b);
    spmv_solver_options o = options_of("gmres", "none");
    spmv_solver_result result;
    assert_ok(ctx, solve(&s, &o, &result));
    assert_int_equal(result.iterations, N);
    /* restarted earlier it stagnates at the first residual */
    o.restart = N - 1;
    assert_fails(ctx, solve(&s, &o, &result), SPMV_ERROR_STAGNATION, "stays at 1");
    assert_true(result.true_residual == 1);
    /* auto goes on with ilut, which permutes the rows to the diagonal */
    close_system(&s);
    release(&a);
    a = shift(LARGE);
    s = new_system(ctx, &a);
    o = options_of("auto", "auto");
    assert_ok(ctx, solve(&s, &o, &result));
    assert_string_equal(result.solver, "gmres");
    close_system(&s);
    release(&a);
}

/* After n steps the rest of A v is only rounding. It counts as 0, so the residual of the recurrence is 0. */
static void space_ends_up_to_rounding(void **state)
{
    enum { N = 3 };
    spmv_context *ctx = *state;
    uint64_t random = 11;
    for (int k = 0; k < 8; k++) {
        struct matrix a = new_matrix(N, N * N, SPMV_F64);
        for (int64_t i = 0; i < N; i++)
            for (int64_t j = 0; j < N; j++)
                add(&a, i, j, (double)(support_random(&random) >> 40) / (1 << 24) + (i == j ? 1 : 0), 0);
        finish(&a);
        struct system s = new_system(ctx, &a);
        const spmv_solver_options o = options_of("gmres", "none");
        spmv_solver_result result;
        assert_ok(ctx, solve(&s, &o, &result));
        assert_int_equal(result.iterations, N);
        assert_true(result.recurrence_residual <= (support_backend == SPMV_BACKEND_CUDA ? 1e-14 * result.norm_b : 0));
        close_system(&s);
        release(&a);
    }
}

static spmv_status negate(void *self, const void *r, void *z)
{
    spmv_context *const ctx = self;
    return spmv_map(ctx, SPMV_MAP_NEG, SPMV_F64, r, z, SIZE);
}

/* Solves, with this b if it is not NULL, and expects a breakdown, or with minres a least-squares solution,
 * with these words. */
static spmv_solver_result assert_breaks_down(spmv_context *ctx, const struct matrix *a, const double *b,
                                             const char *method, const char *words)
{
    const spmv_status expected = strcmp(method, "minres") == 0 ? SPMV_ERROR_INCONSISTENT : SPMV_ERROR_BREAKDOWN;
    const spmv_solver_options o = options_of(method, "none");
    spmv_solver_result result;
    struct system s = new_system(ctx, a);
    if (b != NULL)
        assert_ok(ctx, spmv_upload(ctx, b, s.b_there, vector_bytes(a)));
    assert_fails(ctx, solve(&s, &o, &result), expected, words);
    assert_int_equal(result.status, expected);
    close_system(&s);
    return result;
}

/* A 2 x 2 matrix of the entries that are not 0. */
static struct matrix two_by_two(const double dense[4])
{
    struct matrix a = new_matrix(2, 4, SPMV_F64);
    for (int k = 0; k < 4; k++)
        if (dense[k] != 0)
            add(&a, k / 2, k % 2, dense[k], 0);
    finish(&a);
    return a;
}

/* Every breakdown, each from a matrix of two rows. */
static void breakdowns(void **state)
{
    static const struct {
        double dense[4];
        bool given; /* b; otherwise that of new_system */
        double b[2];
        const char *method, *words;
        double residual, tolerance; /* expected; residual < 0: any */
    } cases[] = {
        /* a rotation by 90 degrees: (r0, A r0) = 0 */
        {{0, 1, -1, 0}, false, {0}, "bicgstab", "product with the first residual is 0 at iteration 0", -1, 0},
        /* a nilpotent matrix: the Krylov space of b = e_1 ends with A e_1 = 0 */
        {{0, 1, 0, 0}, false, {0}, "gmres", "Krylov space ends at iteration 0", -1, 0},
        {{0, 1, 0, 0}, false, {0}, "bicgstab", "bicgstab", -1, 0},
        /* the second column of the Hessenberg matrix depends on the first up to rounding: x is that of
         * the smallest residual, (-1/2, 1/2) */
        {{1, 0, 1, 0}, true, {1, 2}, "gmres", "Krylov space ends at iteration", 0.70710678118654752, 1e-14},
        /* s = -e_2 and A s = -e_1 are orthogonal, so omega = 0 */
        {{1, 1, 1, 0}, true, {1, 0}, "bicgstab", "omega is 0 at iteration 1", 1, 0},
        /* A maps b to 0 */
        {{1, 0, 0, 0}, true, {0, 1}, "minres", "b has a part that no x reaches", -1, 0},
    };
    spmv_context *ctx = *state;
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        struct matrix a = two_by_two(cases[c].dense);
        const spmv_solver_result result =
            assert_breaks_down(ctx, &a, cases[c].given ? cases[c].b : NULL, cases[c].method, cases[c].words);
        if (strstr(cases[c].words, "at iteration 0") != NULL)
            assert_int_equal(result.iterations, 0);
        if (cases[c].residual >= 0)
            assert_true(fabs(result.true_residual - cases[c].residual) <= cases[c].tolerance);
        release(&a);
    }
}

/* cocg with each preconditioner that can be made: all but those that are not symmetric. */
static void preconditioners_of_cocg(void **state)
{
    static const spmv_type types[] = {SPMV_C128, SPMV_C64};
    spmv_context *ctx = *state;
    int made = 0;
    for (int t = 0; t < 2; t++) {
        struct matrix a = complex_symmetric(SIZE, types[t]);
        struct system s = new_system(ctx, &a);
        spmv_solver_options o = options_of("cocg", "none");
        o.rtol = t == 0 ? 1e-9 : 1e-5;
        spmv_solver_result result, plain;
        assert_ok(ctx, solve(&s, &o, &plain));
        for (int kind = 0; spmv_preconditioner_name(kind) != NULL; kind++) {
            const char *const name = spmv_preconditioner_name(kind);
            o.precond = name;
            const spmv_status st = solve(&s, &o, &result);
            if (strcmp(name, "ilu0") == 0 || strcmp(name, "ilut") == 0) {
                assert_fails(ctx, st, SPMV_ERROR_UNSUPPORTED, "is not symmetric: cocg cannot use it");
                continue;
            }
            if (st == SPMV_ERROR_UNSUPPORTED) { /* ic0, cholesky; schur: a single field */
                assert_true(support_backend == SPMV_BACKEND_CUDA || strcmp(name, "schur") == 0);
                continue;
            }
            assert_ok(ctx, st);
            void *const x = take_x(&s);
            assert_true(relative_residual(&s, x) <= (t == 0 ? 1.001e-9 : 1.2e-5));
            assert_string_equal(result.precond, name);
            if (strcmp(name, "none") != 0 && result.iterations > plain.iterations + 2)
                fail_msg("%s: %lld iterations, without it %lld", name, (long long)result.iterations,
                         (long long)plain.iterations);
            made++;
            free(x);
        }
        close_system(&s);
        release(&a);
    }
    assert_true(made >= 2 * 6);
}

/* A diagonal of five numbers: COCG ends after five steps. The residual of the recurrence is the true one. */
static void cocg_ends(void **state)
{
    enum { N = 300, DIFFERENT = 5 };
    spmv_context *ctx = *state;
    struct matrix a = new_matrix(N, N, SPMV_C128);
    for (int64_t i = 0; i < N; i++)
        add(&a, i, i, (double)(i % DIFFERENT) - 1.5, 0.25 + (double)(i % DIFFERENT) / 4);
    finish(&a);
    struct system s = new_system(ctx, &a);
    const spmv_solver_options o = options_of("cocg", "none");
    spmv_solver_result result;
    assert_ok(ctx, solve(&s, &o, &result));
    assert_int_equal(result.iterations, DIFFERENT);
    assert_true(fabs(result.true_residual - result.recurrence_residual) <= 1e-12 * result.norm_b);
    void *const x = take_x(&s);
    assert_true(largest_error(&s, x) <= 1e-8);
    free(x);
    close_system(&s);
    release(&a);
}

/* Solves with cocg for b in host memory. */
static spmv_status solve_for(struct system *s, const double *b, const char *method, spmv_solver_result *result)
{
    const spmv_solver_options o = options_of(method, "none");
    assert_ok(s->ctx, spmv_upload(s->ctx, b, s->b_there, vector_bytes(s->a)));
    memcpy(s->b, b, (size_t)vector_bytes(s->a));
    return solve(s, &o, result);
}

/* Vectors whose product with themselves is 0 without conjugation: told, and never a success; gmres, and so auto, solves
 * the same systems. */
static void quasi_null_vectors(void **state)
{
    enum { ROWS_OF_AUTO = 210 };
    spmv_context *ctx = *state;
    spmv_solver_result result;
    /* (b, b) = 1 + i^2 = 0 */
    static const double of_b[4] = {1, 0, 0, 1};
    struct matrix a = new_matrix(2, 4, SPMV_C128);
    add(&a, 0, 0, 2, 0);
    add(&a, 0, 1, 0, 1);
    add(&a, 1, 0, 0, 1);
    add(&a, 1, 1, 3, 0);
    finish(&a);
    struct system s = new_system(ctx, &a);
    assert_fails(ctx, solve_for(&s, of_b, "cocg", &result), SPMV_ERROR_BREAKDOWN,
                 "cocg: a product without conjugation is 0 at iteration 0");
    assert_true(result.iterations == 0 && result.status == SPMV_ERROR_BREAKDOWN);
    assert_true(result.true_residual == result.norm_b);
    assert_ok(ctx, solve_for(&s, of_b, "gmres", &result));
    close_system(&s);
    release(&a);
    /* b = e_1, (p, A p) = a_11 = 0 */
    static const double of_first[4] = {1, 0, 0, 0};
    a = new_matrix(2, 2, SPMV_C128);
    add(&a, 0, 1, 0, 1);
    add(&a, 1, 0, 0, 1);
    finish(&a);
    s = new_system(ctx, &a);
    assert_fails(ctx, solve_for(&s, of_first, "cocg", &result), SPMV_ERROR_BREAKDOWN, "at iteration 0");
    close_system(&s);
    release(&a);
    /* the same in the first rows of a larger matrix: another solver follows under auto */
    a = complex_symmetric(ROWS_OF_AUTO, SPMV_C128);
    s = new_system(ctx, &a);
    double *const b = support_zeros(2 * a.n, 8);
    b[0] = 1;
    b[3] = 1;
    assert_fails(ctx, solve_for(&s, b, "cocg", &result), SPMV_ERROR_BREAKDOWN, "is 0 at iteration 0");
    const spmv_solver_options o = options_of(NULL, NULL);
    assert_ok(ctx, solve(&s, &o, &result));
    void *const x = take_x(&s);
    assert_true(relative_residual(&s, x) <= 1.001e-8);
    support_free(x, b);
    close_system(&s);
    release(&a);
}

/* cocg refuses matrices that are not their own transposes, Hermitian ones too; without the check it ends with a status that
 * the true residual bears out. */
static void cocg_needs(void **state)
{
    static struct matrix (*const make[])(int64_t n, spmv_type type) = {nonsymmetric, definite};
    spmv_context *ctx = *state;
    for (int m = 0; m < 2; m++) {
        struct matrix a = make[m](SIZE, SPMV_C128);
        struct system s = new_system(ctx, &a);
        spmv_solver_options o = options_of("cocg", "none");
        spmv_solver_result result;
        assert_fails(ctx, solve(&s, &o, &result), SPMV_ERROR_NOT_SYMMETRIC,
                     "the matrix is not symmetric: |u'Av - v'Au|");
        o.symmetry_check = SPMV_SYMMETRY_TRUST;
        o.max_iterations = 50;
        const spmv_status st = solve(&s, &o, &result);
        void *const x = take_x(&s);
        const double residual = relative_residual(&s, x);
        assert_true(st == SPMV_OK ? residual <= 1.001e-8 : residual <= 1.001);
        free(x);
        close_system(&s);
        release(&a);
    }
    /* a real matrix is symmetric in both senses */
    struct matrix a = indefinite(SIZE, SPMV_F64);
    struct system s = new_system(ctx, &a);
    const spmv_solver_options o = options_of("cocg", "none");
    spmv_solver_result result;
    assert_ok(ctx, solve(&s, &o, &result));
    close_system(&s);
    release(&a);
}

/* gmres solves the rotation, on which bicgstab breaks down. */
static void rotation(void **state)
{
    spmv_context *ctx = *state;
    struct matrix a = two_by_two((const double[]){0, 1, -1, 0});
    struct system s = new_system(ctx, &a);
    const spmv_solver_options o = options_of("gmres", "none");
    spmv_solver_result result;
    assert_ok(ctx, solve(&s, &o, &result));
    assert_int_equal(result.iterations, 2);
    close_system(&s);
    release(&a);
}

/* Rank 1, and b is not in the range: the Krylov space ends, up to rounding. */
static void rank_1(void **state)
{
    spmv_context *ctx = *state;
    const spmv_solver_options o = options_of("gmres", "none");
    spmv_solver_result result;
    struct matrix a = new_matrix(3, 9, SPMV_F64);
    for (int64_t i = 0; i < 3; i++)
        for (int64_t j = 0; j < 3; j++)
            add(&a, i, j, (0.1 + 0.3 * (double)i) * (0.7 - 0.2 * (double)j), 0);
    finish(&a);
    struct system s = new_system(ctx, &a);
    s.b[0] += 1;
    double *const outside = typed(a.type, s.b, a.n);
    assert_ok(ctx, spmv_upload(ctx, outside, s.b_there, vector_bytes(&a)));
    free(outside);
    const spmv_status st = solve(&s, &o, &result);
    assert_true((st == SPMV_ERROR_BREAKDOWN || st == SPMV_ERROR_STAGNATION) && result.iterations <= 2);
    close_system(&s);
    release(&a);
}

/* The Laplacian of a path, whose null vector is 1: the smallest residual of any b is its mean. */
static void singular_path(void **state)
{
    enum { N = 30 };
    spmv_context *ctx = *state;
    struct matrix a = new_matrix(N, 3 * N, SPMV_F64);
    double b[N], mean = 0;
    for (int64_t i = 0; i < N; i++) {
        add(&a, i, i - 1, -1, 0);
        add(&a, i, i, i == 0 || i == N - 1 ? 1 : 2, 0);
        add(&a, i, i + 1, -1, 0);
        b[i] = (double)(i * i % 7);
        mean += b[i] / N;
    }
    finish(&a);
    const spmv_solver_result result = assert_breaks_down(ctx, &a, b, "minres", "every row sums to 0");
    assert_true(fabs(result.true_residual / (mean * sqrt(N)) - 1) <= 1e-8);
    release(&a);
}

static void infinite_entries(void **state)
{
    static const char *const methods[] = {"minres", "gmres", "bicgstab"};
    spmv_context *ctx = *state;
    for (int m = 0; m < 3; m++) {
        struct matrix a = definite(SIZE, SPMV_F64);
        struct system s = new_system(ctx, &a);
        ((double *)a.typed)[3] = INFINITY;
        spmv_solver_options o = options_of(methods[m], "none");
        spmv_solver_result result;
        o.symmetry_check = SPMV_SYMMETRY_TRUST;
        assert_fails(ctx, solve(&s, &o, &result), SPMV_ERROR_NOT_FINITE, "");
        close_system(&s);
        release(&a);
    }
}

/* A generated matrix, b = A 1, and room for x. */
struct generated {
    spmv_matrix *matrix;
    spmv_csr a;
    void *b, *x;
};

static struct generated generate(spmv_context *ctx, const char *spec, spmv_type type)
{
    struct generated g = {.matrix = NULL};
    assert_ok(ctx, spmv_matrix_generate(ctx, spec, type, &g.matrix));
    spmv_matrix_view(g.matrix, &g.a);
    assert_int_equal(g.a.row_ptr_bits, 64);
    const int64_t *const row_ptr = g.a.row_ptr, bytes = g.a.rows * (int64_t)spmv_type_size(type);
    double *const pairs = support_zeros(2 * g.a.rows, 8);
    for (int64_t i = 0; i < g.a.rows; i++)
        for (int64_t k = row_ptr[i]; k < row_ptr[i + 1]; k++)
            pairs[2 * i] += real_at(type, g.a.val, k);
    void *const values = typed(type, pairs, g.a.rows);
    g.b = support_upload(ctx, values, bytes);
    g.x = support_upload(ctx, values, bytes);
    free(values);
    free(pairs);
    return g;
}

static void release_generated(spmv_context *ctx, struct generated *g)
{
    spmv_free(ctx, g->b);
    spmv_free(ctx, g->x);
    spmv_matrix_destroy(g->matrix);
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

/* Kernels of many steps whose blocks wait for each other: the iterations of one block, and the same bits
 * each time. gmres: cycles that end, and more basis vectors than shared memory holds. */
static void blocks_that_wait(void **state)
{
    (void)state;
    static const struct {
        const char *method;
        spmv_type type;
        int restart;
    } cases[] = {{"gmres", SPMV_F64, 100},
                 {"gmres", SPMV_F32, 20},
                 {"minres", SPMV_F64, 0},
                 {"bicgstab", SPMV_F64, 0},
                 {"cg", SPMV_F64, 0}};
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        const bool is_f32 = cases[c].type == SPMV_F32;
        spmv_solver_options o = options_of(cases[c].method, "jacobi");
        o.rtol = is_f32 ? 1e-4 : 1e-8;
        o.restart = cases[c].restart;
        int64_t alone = 0;
        void *first = NULL;
        for (int run = 0; run < 3; run++) {
            let_blocks_wait(run > 0);
            spmv_context *const ctx = support_context();
            const bool symmetric = strcmp(cases[c].method, "cg") == 0 || strcmp(cases[c].method, "minres") == 0;
            struct generated g = generate(ctx, symmetric ? "poisson2d:27" : "convdiff2d:27,1", cases[c].type);
            const size_t bytes = (size_t)g.a.rows * spmv_type_size(cases[c].type);
            void *const x = support_zeros((int64_t)bytes, 1);
            spmv_solver_result result;
            assert_ok(ctx, spmv_solve(ctx, &g.a, g.b, g.x, &o, &result, sizeof result));
            assert_ok(ctx, spmv_download(ctx, g.x, x, (int64_t)bytes));
            if (run == 0)
                alone = result.iterations;
            assert_true(llabs(result.iterations - alone) <= 2);
            assert_true(result.true_residual <= o.rtol * result.norm_b);
            if (run == 2)
                assert_memory_equal(x, first, bytes);
            free(first);
            first = x;
            release_generated(ctx, &g);
            spmv_context_destroy(ctx);
        }
        free(first);
    }
    let_blocks_wait(false);
}

/* b = A 1 is not 0 at the boundary alone, and the flow carries the residual away from there: its
 * product with the first one falls below the roundoff of their norms, and is right. */
static void residuals_that_move(void **state)
{
    spmv_context *ctx = *state;
    static const struct {
        const char *spec;
        spmv_type type;
        double rtol;
    } cases[] = {{"convdiff2d:60,10", SPMV_F64, 1e-8}, {"convdiff2d:40,10", SPMV_F32, 1e-4}};
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        struct generated g = generate(ctx, cases[c].spec, cases[c].type);
        spmv_solver_options o = options_of("bicgstab", "none");
        o.rtol = cases[c].rtol;
        spmv_solver_result result;
        assert_ok(ctx, spmv_solve(ctx, &g.a, g.b, g.x, &o, &result, sizeof result));
        assert_true(result.status == SPMV_OK && result.true_residual <= cases[c].rtol * result.norm_b);
        release_generated(ctx, &g);
    }
}

/* Iterations to 1e-8 of SciPy 1.16.3 for the same system, gmres with restart 50: within
 * 10 % + 3. */
static void counts_as_scipy(void **state)
{
    static const struct {
        const char *spec;
        int minres, gmres, bicgstab; /* 0: not symmetric */
    } cases[] = {{"poisson2d:20", 38, 38, 27},    {"convdiff3d:12,1", 0, 54, 33},   {"convdiff2d:20,1", 0, 75, 39},
                 {"poisson2d:40", 77, 137, 56},   {"convdiff2d:40,1", 0, 239, 76},  {"convdiff2d:40,0.1", 0, 198, 99},
                 {"convdiff3d:22,1", 0, 100, 54}, {"poisson2d:100", 180, 754, 141}, {"convdiff2d:100,1", 0, 584, 168}};
    static const char *const methods[] = {"minres", "gmres", "bicgstab"};
    spmv_context *ctx = *state;
    for (size_t c = 0; c < (SLOW ? 1 : sizeof cases / sizeof cases[0]); c++) {
        struct generated g = generate(ctx, cases[c].spec, SPMV_F64);
        const int expected[] = {cases[c].minres, cases[c].gmres, cases[c].bicgstab};
        for (int m = 0; m < 3; m++) {
            const spmv_solver_options o = options_of(methods[m], "none");
            spmv_solver_result result;
            if (expected[m] == 0)
                continue;
            assert_ok(ctx, spmv_solve(ctx, &g.a, g.b, g.x, &o, &result, sizeof result));
            if (fabs((double)result.iterations - expected[m]) > 0.1 * expected[m] + 3)
                fail_msg("%s, %s: %lld iterations, expected %d", cases[c].spec, methods[m],
                         (long long)result.iterations, expected[m]);
        }
        release_generated(ctx, &g);
    }
}

/* minres refuses a preconditioner that is not positive definite, and a matrix that is not symmetric.
 */
static void minres_needs(void **state)
{
    spmv_context *ctx = *state;
    struct matrix a = nonsymmetric(SIZE, SPMV_F64);
    struct system s = new_system(ctx, &a);
    spmv_solver_options o = options_of("minres", "none");
    spmv_solver_result result;
    assert_fails(ctx, solve(&s, &o, &result), SPMV_ERROR_NOT_SYMMETRIC, "not symmetric");
    close_system(&s);
    release(&a);
    a = indefinite(SIZE, SPMV_F64);
    s = new_system(ctx, &a);
    o.precond = "jacobi";
    assert_fails(ctx, solve(&s, &o, &result), SPMV_ERROR_NOT_POSITIVE, "row 1 (counted from 0)");
    o.precond = NULL;
    assert_ok(ctx, solve(&s, &o, &result));
    assert_string_equal(result.precond, "none");
    assert_non_null(strstr(result.why_precond, "row 1 (counted from 0)"));
    const spmv_preconditioner_class methods = {.size = sizeof methods, .name = "minus", .apply = negate};
    assert_ok(ctx, spmv_preconditioner_wrap(ctx, SPMV_F64, SIZE, &methods, ctx, &o.own_precond));
    assert_fails(ctx, solve(&s, &o, &result), SPMV_ERROR_NOT_POSITIVE, "preconditioner is not positive definite");
    assert_string_equal(result.precond, "minus");
    /* gmres takes it */
    o.solver = "gmres";
    assert_ok(ctx, solve(&s, &o, &result));
    spmv_preconditioner_destroy(o.own_precond);
    close_system(&s);
    release(&a);
}

/* What auto chooses, and why. */
static void choice(void **state)
{
    static const struct {
        struct matrix (*make)(int64_t n, spmv_type type);
        spmv_type type;
        const char *method, *why;
    } cases[] = {{definite, SPMV_F64, "cg", "diagonal is positive"},
                 {indefinite, SPMV_F64, "minres", "a diagonal entry is -"},
                 {nonsymmetric, SPMV_F64, "gmres", "not symmetric"},
                 {definite, SPMV_C128, "cg", "Hermitian"},
                 {nonsymmetric, SPMV_C64, "gmres", "not Hermitian"},
                 {complex_symmetric, SPMV_C128, "cocg", "its own transpose"},
                 {complex_symmetric, SPMV_C64, "cocg", "its own transpose"}};
    spmv_context *ctx = *state;
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        struct matrix a = cases[c].make(ROWS, cases[c].type);
        struct system s = new_system(ctx, &a);
        spmv_solver_options o = options_of(NULL, NULL);
        o.rtol = 1e-4;
        spmv_solver_result result;
        assert_ok(ctx, solve(&s, &o, &result));
        assert_string_equal(result.solver, cases[c].method);
        assert_non_null(strstr(result.why_solver, cases[c].why));
        close_system(&s);
        release(&a);
    }
    /* a positive diagonal does not make this one definite: cg finds out, minres goes on */
    struct matrix a = diagonals(SIZE, SPMV_F64, 0.5, 1, -1, -1, 0);
    struct system s = new_system(ctx, &a);
    spmv_solver_options o = options_of(NULL, "none");
    spmv_solver_result result;
    assert_ok(ctx, solve(&s, &o, &result));
    assert_string_equal(result.solver, "minres");
    assert_non_null(strstr(result.why_solver, "conjugate gradients found"));
    void *const x = take_x(&s);
    assert_true(relative_residual(&s, x) <= 1.001e-8);
    free(x);
    o.solver = "cg";
    assert_fails(ctx, solve(&s, &o, &result), SPMV_ERROR_NOT_POSITIVE, "not positive definite");
    close_system(&s);
    release(&a);
}

struct seen {
    int64_t next, stop_at;
    double before;
    bool falls;
    double eps; /* of residuals relative to b */
    struct system *s;
};

static int watch(int64_t iteration, double residual, void *user)
{
    struct seen *const seen = user;
    assert_int_equal(iteration, seen->next);
    seen->next++;
    seen->falls = seen->falls && residual <= seen->before * (1 + seen->eps);
    seen->before = residual;
    return iteration == seen->stop_at;
}

/* The residual that is reported is that of the x that is shown. */
static int compare(int64_t iteration, double residual, const void *x, void *user)
{
    struct seen *const seen = user;
    void *const copy = support_zeros(vector_bytes(seen->s->a), 1);
    (void)iteration;
    assert_ok(seen->s->ctx, spmv_download(seen->s->ctx, x, copy, vector_bytes(seen->s->a)));
    double norm = 0;
    for (int64_t i = 0; i < 2 * seen->s->a->n; i++)
        norm += seen->s->b[i] * seen->s->b[i];
    assert_true(fabs(relative_residual(seen->s, copy) * sqrt(norm) - residual) <= 100 * seen->eps * sqrt(norm));
    seen->next++;
    free(copy);
    return 0;
}

/* Iterations are reported in order, once each; residuals of minres and gmres do not grow; a
 * cancelled solve, the limit, and the iterates. */
static void check_callbacks(spmv_context *ctx, const char *method, const char *precond, const struct matrix *a)
{
    struct system s = new_system(ctx, a);
    const bool narrow = type_part(a->type) == SPMV_F32;
    const struct seen fresh = {.stop_at = -1, .before = INFINITY, .falls = true, .eps = narrow ? 1e-6 : 1e-12, .s = &s};
    struct seen seen = fresh;
    spmv_solver_options o = options_of(method, precond);
    spmv_solver_result result, stopped;
    o.rtol = narrow ? 1e-4 : 1e-8;
    o.on_iteration = watch;
    o.user = &seen;
    o.restart = 5;
    assert_ok(ctx, solve(&s, &o, &result));
    assert_int_equal(seen.next, result.iterations + 1);
    assert_true(seen.falls || strcmp(method, "bicgstab") == 0 || strcmp(method, "cocg") == 0);
    seen = fresh;
    seen.stop_at = 3;
    assert_int_equal(solve(&s, &o, &stopped), SPMV_CANCELLED);
    assert_true(stopped.iterations >= 3 && stopped.iterations <= result.iterations && seen.next == 4);
    void *const x = take_x(&s);
    assert_true(fabs(relative_residual(&s, x) - stopped.true_residual / stopped.norm_b) <= fresh.eps);
    free(x);
    o.on_iteration = NULL;
    o.max_iterations = 2;
    assert_fails(ctx, solve(&s, &o, &stopped), SPMV_ERROR_ITERATIONS, "after 2 iterations");
    assert_int_equal(stopped.iterations, 2);
    o.max_iterations = 0;
    o.on_iterate = compare;
    seen = fresh;
    assert_ok(ctx, solve(&s, &o, &stopped));
    assert_int_equal(seen.next, stopped.iterations + 1);
    close_system(&s);
}

static void callbacks(void **state)
{
    static const spmv_type types[] = {SPMV_F64, SPMV_C128, SPMV_F32};
    spmv_context *ctx = *state;
    for (int t = 0; t < (SLOW ? 2 : 3); t++) {
        struct matrix a = indefinite(SIZE, types[t]), b = nonsymmetric(SIZE, types[t]);
        struct matrix c = complex_symmetric(SIZE, types[t]);
        if (!type_is_complex(types[t]))
            check_callbacks(ctx, "minres", "none", &a);
        for (int precond = 0; precond < 2; precond++) {
            check_callbacks(ctx, "gmres", precond == 0 ? "none" : "jacobi", &b);
            check_callbacks(ctx, "bicgstab", precond == 0 ? "none" : "jacobi", &b);
            check_callbacks(ctx, "cocg", precond == 0 ? "none" : "jacobi", &c);
        }
        release(&a);
        release(&b);
        release(&c);
    }
}

/* b = 0 gives x = 0; tiny and huge b give the digits of b. */
static void extremes(void **state)
{
    static const char *const methods[] = {"minres", "gmres", "bicgstab", "cocg"};
    spmv_context *ctx = *state;
    struct matrix a = definite(SIZE, SPMV_F64);
    for (int m = 0; m < 4; m++) {
        struct system s = new_system(ctx, &a);
        const spmv_solver_options o = options_of(methods[m], "none");
        spmv_solver_result result;
        assert_ok(ctx, solve(&s, &o, &result));
        double *const x = take_x(&s), *const b = typed(a.type, s.b, a.n);
        static const double scales[] = {0x1p-1000, 0x1p900, 0};
        for (int k = 0; k < 3; k++) {
            for (int64_t i = 0; i < a.n; i++)
                b[i] = scales[k] * s.b[2 * i];
            assert_ok(ctx, spmv_upload(ctx, b, s.b_there, vector_bytes(&a)));
            assert_ok(ctx, solve(&s, &o, &result));
            double *const y = take_x(&s);
            for (int64_t i = 0; i < a.n; i++)
                assert_true(fabs(y[i] - scales[k] * x[i]) <= 1e-6 * scales[k]);
            free(y);
        }
        support_free(x, b);
        close_system(&s);
    }
    release(&a);
}

/* Several right-hand sides: each as alone. */
static void several(void **state)
{
    enum { K = 3 };
    spmv_context *ctx = *state;
    struct matrix a = nonsymmetric(SIZE, SPMV_F64);
    struct system s = new_system(ctx, &a);
    double *const b = support_zeros(K * a.n, 8), *const x = support_zeros(K * a.n, 8);
    for (int64_t i = 0; i < a.n; i++)
        for (int v = 0; v < K; v++)
            b[i * K + v] = (v + 1) * s.b[2 * i];
    void *const bs = support_upload(ctx, b, K * vector_bytes(&a)), *const xs =
                                                                       support_upload(ctx, b, K * vector_bytes(&a));
    spmv_solver_options o = options_of(NULL, NULL);
    spmv_solver_result result[K], alone;
    assert_ok(ctx, solve(&s, &o, &alone));
    double *const one = take_x(&s);
    o.vectors = K;
    assert_ok(ctx, spmv_solve(ctx, &a.view, bs, xs, &o, result, sizeof *result));
    assert_ok(ctx, spmv_download(ctx, xs, x, K * vector_bytes(&a)));
    for (int v = 0; v < K; v++) {
        assert_true(result[v].status == SPMV_OK && result[v].iterations == alone.iterations);
        for (int64_t i = 0; i < a.n; i++)
            assert_true(fabs(x[i * K + v] - (v + 1) * one[i]) <= 1e-6);
    }
    /* a limit names the first */
    o.max_iterations = 1;
    o.precond = "none";
    assert_fails(ctx, spmv_solve(ctx, &a.view, bs, xs, &o, result, sizeof *result), SPMV_ERROR_ITERATIONS,
                 "right-hand side 1 of 3");
    support_free(b, x, one);
    support_free_in(ctx, bs, xs);
    close_system(&s);
    release(&a);
}

/* The same bits in every run and for any number of threads. */
static void bits(void **state)
{
    (void)state;
    static const struct {
        const char *method, *precond;
        struct matrix (*make)(int64_t n, spmv_type type);
        spmv_type type;
    } cases[] = {{"minres", "none", indefinite, SPMV_F64},     {"minres", "jacobi", definite, SPMV_F32},
                 {"gmres", NULL, nonsymmetric, SPMV_F64},      {"gmres", "block-jacobi", nonsymmetric, SPMV_F32},
                 {"gmres", "ilu0", nonsymmetric, SPMV_C128},   {"bicgstab", NULL, nonsymmetric, SPMV_F64},
                 {"bicgstab", "ilu0", nonsymmetric, SPMV_F32}, {"bicgstab", "none", nonsymmetric, SPMV_C128},
                 {"cocg", NULL, complex_symmetric, SPMV_C128}};
    static const int teams[] = {1, 2, 5};
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        void *first = NULL;
        for (int t = 0; t < (SLOW ? 2 : 3); t++) {
            spmv_context *ctx = support_context_on(support_backend, teams[t]);
            struct matrix a = cases[c].make(SIZE, cases[c].type);
            struct system s = new_system(ctx, &a);
            spmv_solver_options o = options_of(cases[c].method, cases[c].precond);
            o.rtol = type_part(cases[c].type) == SPMV_F32 ? 1e-4 : 1e-8;
            spmv_solver *solver = NULL;
            spmv_solver_result result;
            assert_ok(ctx, spmv_solver_create(ctx, &a.view, &o, &solver));
            for (int run = 0; run < RUNS / 3; run++) {
                assert_ok(ctx, spmv_solver_solve(solver, s.b_there, s.x_there, &result, sizeof result));
                void *const x = take_x(&s);
                if (first != NULL)
                    assert_memory_equal(x, first, (size_t)vector_bytes(&a));
                else
                    first = x;
                if (x != first)
                    free(x);
            }
            spmv_solver_destroy(solver);
            close_system(&s);
            release(&a);
            spmv_context_destroy(ctx);
        }
        free(first);
    }
}

/* A singular matrix whose right-hand side is consistent, by structure and by values. */
static void singular(void **state)
{
    spmv_context *ctx = *state;
    struct matrix a = definite(SIZE, SPMV_F64);
    /* the last row and column become zero */
    for (int64_t i = 0; i < a.n; i++)
        for (int32_t k = a.row_ptr[i]; k < a.row_ptr[i + 1]; k++)
            if (a.col[k] == a.n - 1 || i == a.n - 1)
                a.val[2 * k] = 0;
    free(a.typed);
    finish(&a);
    struct system s = new_system(ctx, &a);
    spmv_solver_options o = options_of("gmres", NULL);
    spmv_solver_result result;
    assert_ok(ctx, solve(&s, &o, &result));
    assert_string_equal(result.precond, "jacobi"); /* it leaves the row alone */
    assert_non_null(strstr(result.why_precond, support_backend == SPMV_BACKEND_CUDA ? "on a GPU" : "ilut"));
    void *const x = take_x(&s);
    assert_true(relative_residual(&s, x) <= 1.001e-8);
    free(x);
    o.precond = "ilut";
    assert_fails(ctx, solve(&s, &o, &result), SPMV_ERROR_SINGULAR, "singular");
    if (!direct_is_missing(ctx)) {
        o = options_of("direct", NULL);
        assert_fails(ctx, solve(&s, &o, &result), SPMV_ERROR_SINGULAR, "");
    }
    close_system(&s);
    release(&a);
}

SUPPORT_MAIN_WITHOUT_MODULES(with_context(known_answers), with_context(sizes), with_context(recurrence),
                             with_context(preconditioners), with_context(exact_after_n_steps),
                             with_context(space_ends_up_to_rounding), with_context(breakdowns),
                             with_context(preconditioners_of_cocg), with_context(cocg_ends),
                             with_context(quasi_null_vectors), with_context(cocg_needs), with_context(rotation),
                             with_context(rank_1), with_context(singular_path), with_context(infinite_entries),
                             with_context(residuals_that_move), cmocka_unit_test(blocks_that_wait),
                             with_context(counts_as_scipy), with_context(minres_needs), with_context(choice),
                             with_context(callbacks), with_context(extremes), with_context(several),
                             cmocka_unit_test(bits), with_context(singular))

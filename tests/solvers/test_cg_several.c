/* Conjugate gradients for several right-hand sides with preconditioners: every kind, by every rung,
 * compared with single solves; columns with different ends; bits.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "tests/support/support.h"
#include "tests/support/support_slow.h"

/* The host emulation of CUDA runs only small cases. */
#ifdef HOST_CUDA
enum { SIDE = 7 };
#else
enum { SIDE = 30 };
#endif

enum { K = 3, MOST = 5 };

/* S (L + I) S, L the 5-point Laplacian: badly scaled, which Jacobi corrects, and else
 * well-conditioned, so that rounding does not change counts. */
struct system {
    spmv_context *ctx;
    spmv_type type;
    int64_t n;
    int32_t *row_ptr, *col;
    void *val;
    spmv_csr a;
    spmv_plan *one, *several; /* for one vector and for k */
    int k;
    void *b, *x; /* n k elements in context memory */
    void *b_one, *x_one;
    double *host; /* n k elements */
};

static int64_t bytes_of(const struct system *s, int64_t count)
{
    return count * (int64_t)spmv_type_size(s->type);
}

static double scale_of(int64_t i)
{
    return 1 + (double)(i * 7 % 10) / 4;
}

static spmv_plan *plan_for(const struct system *s, int vectors)
{
    spmv_plan *plan = NULL;
    spmv_plan_options options = support_plan_options();
    options.vectors = vectors;
    assert_ok(s->ctx, spmv_plan_create(s->ctx, &s->a, &options, &plan));
    return plan;
}

static struct system make(spmv_context *ctx, spmv_type type, int64_t side, int k)
{
    struct system s = {.ctx = ctx, .type = type, .n = side * side, .k = k};
    int32_t nnz = 0;
    s.row_ptr = malloc(((size_t)s.n + 1) * sizeof *s.row_ptr);
    s.col = malloc(5 * (size_t)s.n * sizeof *s.col);
    s.val = malloc(5 * (size_t)s.n * 8);
    s.row_ptr[0] = 0;
    for (int64_t i = 0; i < s.n; i++) {
        const int64_t c = i % side, at[] = {i - side, i - 1, i, i + 1, i + side};
        const bool there[] = {i >= side, c > 0, true, c < side - 1, i < s.n - side};
        for (int e = 0; e < 5; e++)
            if (there[e]) {
                s.col[nnz] = (int32_t)at[e];
                real_set(s.type, s.val, nnz++, (e == 2 ? 5 : -1) * scale_of(i) * scale_of(at[e]));
            }
        s.row_ptr[i + 1] = nnz;
    }
    s.a = support_csr_with(s.n, s.n, nnz, s.row_ptr, 32, s.col, s.val, type);
    s.one = plan_for(&s, 1);
    s.several = plan_for(&s, k);
    s.host = calloc((size_t)(s.n * k), 8);
    s.b = support_upload(ctx, s.host, bytes_of(&s, s.n * k));
    s.x = support_upload(ctx, s.host, bytes_of(&s, s.n * k));
    s.b_one = support_upload(ctx, s.host, bytes_of(&s, s.n));
    s.x_one = support_upload(ctx, s.host, bytes_of(&s, s.n));
    return s;
}

static void release(struct system *s)
{
    void *const memory[] = {s->b, s->x, s->b_one, s->x_one};
    for (int i = 0; i < 4; i++)
        spmv_free(s->ctx, memory[i]);
    spmv_plan_destroy(s->one);
    spmv_plan_destroy(s->several);
    support_free(s->row_ptr, s->col, s->val, s->host);
}

/* Element i of the exact solution of column v: between 1 and 2 for v = 0; larger and of both signs
 * for the others. */
static double solution(int64_t i, int v)
{
    return v == 0 ? 1 + (double)(i % 11) / 11 : pow(10, v) * ((double)(i * 7919 % 2003) / 1001 - 1);
}

/* Stores b of column v as column `place` of s->host, which has `columns` columns. */
static void make_b(const struct system *s, int v, int columns, int place)
{
    for (int64_t i = 0; i < s->n; i++) {
        double sum = 0;
        for (int32_t e = s->row_ptr[i]; e < s->row_ptr[i + 1]; e++)
            sum += real_at(s->type, s->val, e) * solution(s->col[e], v);
        real_set(s->type, s->host, i * columns + place, sum);
    }
}

static void make_all_b(const struct system *s)
{
    for (int v = 0; v < s->k; v++)
        make_b(s, v, s->k, v);
    assert_ok(s->ctx, spmv_upload(s->ctx, s->host, s->b, bytes_of(s, s->n * s->k)));
}

static void fetch_x(const struct system *s, double *x)
{
    assert_ok(s->ctx, spmv_download(s->ctx, s->x, s->host, bytes_of(s, s->n * s->k)));
    for (int64_t i = 0; i < s->n * s->k; i++)
        x[i] = real_at(s->type, s->host, i);
}

/* ------------------------------------------------------------- preconditioners */

/* z = r / 4, or another factor at one call. */
struct own {
    const struct system *s;
    double other;
    int calls, other_at; /* -1: at no call */
};

static spmv_status own_apply(void *self, const void *r, void *z)
{
    struct own *own = self;
    const double factor = own->calls++ == own->other_at ? own->other : 0.25;
    const float narrow = (float)factor;
    const bool single = own->s->type == SPMV_F32;
    return spmv_map_scalar(own->s->ctx, SPMV_MUL, own->s->type, single ? (const void *)&narrow : (const void *)&factor,
                           r, z, own->s->n);
}

static const spmv_preconditioner_class own_class = {.size = sizeof own_class, .name = "own", .apply = own_apply};

/* The preconditioner with this index; after the built-in ones comes a user-defined one. NULL: not on
 * this backend. */
static spmv_preconditioner *make_kind(const struct system *s, int index, struct own *own)
{
    spmv_preconditioner *m = NULL;
    const char *name = spmv_preconditioner_name(index);
    *own = (struct own){.s = s, .other_at = -1};
    if (name == NULL) {
        assert_ok(s->ctx, spmv_preconditioner_wrap(s->ctx, s->type, s->n, &own_class, own, &m));
        return m;
    }
    const spmv_status st = spmv_preconditioner_create(s->ctx, name, &s->a, NULL, &m);
    if ((support_backend == SPMV_BACKEND_CUDA && (strcmp(name, "ic0") == 0 || strcmp(name, "cholesky") == 0)) ||
        strcmp(name, "schur") == 0)
        assert_int_equal(st, SPMV_ERROR_UNSUPPORTED);
    else
        assert_ok(s->ctx, st);
    return m;
}

/* Sets the i-th rung of the backend, then auto, in options; false if there is none. */
static bool with_rung(int i, spmv_cg_options *options)
{
    spmv_cg_options_init(options, sizeof *options);
    options->zero_start = 1;
    options->rung = spmv_cg_rung_name(support_backend, i);
    if (options->rung == NULL && i > 0 && spmv_cg_rung_name(support_backend, i - 1) != NULL)
        options->rung = "auto";
    return options->rung != NULL;
}

/* Whether the rung must support several right-hand sides with this preconditioner. */
static bool must_run(const char *rung, const char *precond)
{
    const bool jacobi = strcmp(precond, "jacobi") == 0 || strcmp(precond, "none") == 0;
    const bool fused = strcmp(rung, "fused") == 0, graph = strcmp(rung, "graph") == 0;
    const bool takes_columns = strcmp(precond, "amg") == 0 && support_backend != SPMV_BACKEND_REF;
    return strcmp(rung, "textbook") == 0 || strcmp(rung, "auto") == 0 || (takes_columns && fused) ||
           (jacobi && ((support_backend == SPMV_BACKEND_OMP && fused) ||
                       (support_backend == SPMV_BACKEND_CUDA && (fused || graph))));
}

/* A single solve of column v with the same M: returns the result and x. */
static spmv_cg_result solve_one(const struct system *s, int v, const spmv_cg_options *options, double *x)
{
    spmv_cg_result result;
    spmv_cg_options single = *options;
    single.rung = "textbook";
    make_b(s, v, 1, 0);
    assert_ok(s->ctx, spmv_upload(s->ctx, s->host, s->b_one, bytes_of(s, s->n)));
    const spmv_status st = spmv_cg(s->one, s->b_one, s->x_one, &single, &result, sizeof result);
    if (st != SPMV_ERROR_ITERATIONS)
        assert_ok(s->ctx, st);
    assert_ok(s->ctx, spmv_download(s->ctx, s->x_one, s->host, bytes_of(s, s->n)));
    for (int64_t i = 0; i < s->n; i++)
        x[i] = real_at(s->type, s->host, i);
    return result;
}

/* Compares with single solves: iterations within 1, and x. Both solve to a residual of rtol ||b||,
 * and the smallest eigenvalue is above 1, so the errors differ by at most 2 rtol ||b||. */
static void compare(const struct system *s, const spmv_cg_options *options, const char *name)
{
    spmv_cg_result results[K];
    double *x = malloc((size_t)(s->n * K) * sizeof *x), *x_one = malloc((size_t)s->n * sizeof *x_one);
    make_all_b(s);
    const spmv_status st = spmv_cg(s->several, s->b, s->x, options, results, sizeof *results);
    if (st != SPMV_OK)
        fail_msg("%s, %s: %s", options->rung, name, spmv_last_error(s->ctx));
    fetch_x(s, x);
    for (int v = 0; v < K; v++) {
        const spmv_cg_result one = solve_one(s, v, options, x_one);
        assert_string_equal(results[v].precond, name);
        assert_true(results[v].status == SPMV_OK && results[v].true_residual <= results[v].tolerance);
        if (llabs(results[v].iterations - one.iterations) > 1 || one.iterations < 1)
            fail_msg("%s, %s, column %d: %lld iterations, alone %lld", options->rung, name, v,
                     (long long)results[v].iterations, (long long)one.iterations);
        for (int64_t i = 0; i < s->n; i++)
            if (!(fabs(x[i * K + v] - x_one[i]) <= 2 * options->rtol * one.norm_b))
                fail_msg("%s, %s, column %d: x[%lld] = %g, alone %g", options->rung, name, v, (long long)i,
                         x[i * K + v], x_one[i]);
    }
    support_free(x, x_one);
}

static void every_kind(void **state)
{
    spmv_context *ctx = *state;
    spmv_cg_options options;
    for (int type = 0; type < 2; type++) {
        struct system s = make(ctx, type == 0 ? SPMV_F64 : SPMV_F32, SIDE, K);
        int done = 0;
        for (int kind = 0; kind == 0 || spmv_preconditioner_name(kind - 1) != NULL; kind++) {
            struct own own;
            spmv_preconditioner *m = make_kind(&s, kind, &own);
            const char *name = spmv_preconditioner_name(kind) != NULL ? spmv_preconditioner_name(kind) : "own";
            for (int i = 0; m != NULL && with_rung(i, &options); i++) {
                options.precond = m;
                options.rtol = type == 0 ? 1e-10 : 1e-4;
                if (must_run(options.rung, name)) {
                    compare(&s, &options, name);
                    done++;
                    continue;
                }
                spmv_cg_result results[K];
                assert_fails(ctx, spmv_cg(s.several, s.b, s.x, &options, results, sizeof *results),
                             SPMV_ERROR_UNSUPPORTED, options.rung);
                assert_true(results[0].status == SPMV_ERROR_UNSUPPORTED &&
                            results[K - 1].status == SPMV_ERROR_UNSUPPORTED);
            }
            spmv_preconditioner_destroy(m);
        }
        assert_true(done >= 12); /* six kinds, by name and by auto */
        release(&s);
    }
}

/* ------------------------------------------------------------ multigrid of all columns at once */

/* Solves with amg for the columns whose solutions have these numbers; x: the solutions by rows. */
static void solve_with_amg(spmv_context *ctx, int k, const int *numbers, double *x, spmv_cg_result *results)
{
    struct system s = make(ctx, SPMV_F64, SIDE, k);
    struct own own;
    spmv_cg_options options = support_cg_options();
    int amg = 0;
    while (strcmp(spmv_preconditioner_name(amg), "amg") != 0)
        amg++;
    options.precond = make_kind(&s, amg, &own);
    options.zero_start = 1;
    for (int v = 0; v < k; v++)
        make_b(&s, numbers[v], k, v);
    assert_ok(ctx, spmv_upload(ctx, s.host, s.b, bytes_of(&s, s.n * k)));
    assert_ok(ctx, spmv_cg(s.several, s.b, s.x, &options, results, sizeof *results));
    fetch_x(&s, x);
    spmv_preconditioner_destroy(options.precond);
    release(&s);
}

/* A column keeps its bits when the columns beside it change; on a host also with another number of columns. It stops
 * on its own. */
static void neighbours(void **state)
{
    enum { FIRST = 5, SECOND = 5, THIRD = 9 };
    static const int first[FIRST] = {0, 1, 2, 3, 1}, second[SECOND] = {3, 3, 2, 0, 0},
                     third[THIRD] = {0, 0, 2, 1, 1, 1, 3, 3, 0};
    spmv_context *ctx = *state;
    const int64_t n = SIDE * SIDE;
    double *x = malloc((size_t)(n * THIRD) * sizeof *x), *other = malloc((size_t)(n * THIRD) * sizeof *other);
    spmv_cg_result r[THIRD], other_r[THIRD];
    solve_with_amg(ctx, FIRST, first, x, r);
    for (int i = 0; i < n; i++)
        for (int v = 0; v < FIRST; v++)
            assert_true(fabs(x[i * FIRST + v] - solution(i, first[v])) <= 1e-5 * pow(10, first[v]));
    for (int again = 0; again < 2; again++) {
        const int k = again == 0 ? SECOND : THIRD;
        solve_with_amg(ctx, k, again == 0 ? second : third, other, other_r);
        assert_true(other_r[2].iterations == r[2].iterations || support_backend == SPMV_BACKEND_CUDA);
        for (int64_t i = 0; i < n && (again == 0 || support_backend != SPMV_BACKEND_CUDA); i++)
            assert_true(x[i * FIRST + 2] == other[i * k + 2]);
    }
    support_free(x, other);
}

/* More right-hand sides than are solved at once: each has its own result, also one that is 0 and those of the last
 * batch. New values of the matrix, and a number that is not finite. */
static void batches(void **state)
{
    enum { COLUMNS = 67, ZERO = 3, LAST = COLUMNS - 1, LENGTH = 7 };
    spmv_context *ctx = *state;
    struct system s = make(ctx, SPMV_F64, LENGTH, COLUMNS);
    spmv_solver_options options;
    spmv_solver_result r[COLUMNS];
    spmv_solver *solver = NULL;
    double *x = malloc((size_t)(s.n * COLUMNS) * sizeof *x), *twice = malloc((size_t)s.row_ptr[s.n] * sizeof *twice);
    void *values = NULL;
    spmv_preconditioner_options precond;
    spmv_preconditioner_options_init(&precond, sizeof precond);
    precond.update_values = 1;
    spmv_solver_options_init(&options, sizeof options);
    options.precond_options = &precond;
    options.precond = "amg";
    options.solver = "cg";
    options.vectors = COLUMNS;
    options.zero_start = 1;
    assert_ok(ctx, spmv_solver_create(ctx, &s.a, &options, &solver));
    for (int times = 0; times < 3; times++) {
        for (int v = 0; v < COLUMNS; v++)
            make_b(&s, v % 4, COLUMNS, v);
        for (int64_t i = 0; i < s.n; i++)
            s.host[i * COLUMNS + ZERO] = 0;
        if (times == 2)
            s.host[LAST] = INFINITY;
        assert_ok(ctx, spmv_upload(ctx, s.host, s.b, bytes_of(&s, s.n * COLUMNS)));
        const spmv_status st = spmv_solver_solve(solver, s.b, s.x, r, sizeof *r);
        assert_int_equal(st, times == 2 ? SPMV_ERROR_NOT_FINITE : SPMV_OK);
        fetch_x(&s, x);
        for (int v = 0; v < COLUMNS; v++) {
            assert_int_equal(r[v].status, times == 2 && v == LAST ? SPMV_ERROR_NOT_FINITE : SPMV_OK);
            assert_true(v == ZERO ? r[v].iterations == 0 : r[v].iterations > 1 || (times == 2 && v == LAST));
            for (int64_t i = 0; i < s.n && !(times == 2 && v == LAST); i++)
                assert_true(fabs(x[i * COLUMNS + v] - (v == ZERO ? 0 : solution(i, v % 4) / (times > 0 ? 2 : 1))) <=
                            1e-5 * pow(10, v % 4));
        }
        if (times > 0)
            continue;
        for (int32_t e = 0; e < s.row_ptr[s.n]; e++)
            twice[e] = 2 * ((double *)s.val)[e];
        values = support_upload(ctx, twice, bytes_of(&s, s.row_ptr[s.n]));
        assert_ok(ctx, spmv_solver_update_values(solver, values));
    }
    spmv_solver_destroy(solver);
    spmv_free(ctx, values);
    free(twice);
    support_free(x);
    release(&s);
}

/* ------------------------------------------------------------ different ends */

/* With M, one column each: ordinary, zeros, an exact start, a number that is not finite, one far
 * larger. */
static void unlike_columns(void **state)
{
    spmv_context *ctx = *state;
    struct system s = make(ctx, SPMV_F64, SIDE, MOST);
    double *b = calloc((size_t)(s.n * MOST), sizeof *b), *x = malloc((size_t)(s.n * MOST) * sizeof *x);
    for (int kind = 0; kind == 0 || spmv_preconditioner_name(kind - 1) != NULL; kind++) {
        struct own own;
        spmv_cg_options options;
        spmv_cg_result r[MOST];
        spmv_preconditioner *m = make_kind(&s, kind, &own);
        if (m == NULL)
            continue;
        spmv_cg_options_init(&options, sizeof options);
        options.precond = m;
        for (int v = 0; v < MOST; v++)
            make_b(&s, v == 4 ? 2 : 0, MOST, v);
        memcpy(b, s.host, (size_t)(s.n * MOST) * sizeof *b);
        for (int64_t i = 0; i < s.n; i++) {
            b[i * MOST + 1] = 0;
            b[i * MOST + 3] = i == s.n / 2 ? NAN : 1;
            b[i * MOST + 4] *= 1e12;
            x[i * MOST] = x[i * MOST + 1] = (double)(i % 3);
            x[i * MOST + 2] = solution(i, 0);
            x[i * MOST + 3] = 5;
            x[i * MOST + 4] = 0;
        }
        assert_ok(ctx, spmv_upload(ctx, b, s.b, bytes_of(&s, s.n * MOST)));
        assert_ok(ctx, spmv_upload(ctx, x, s.x, bytes_of(&s, s.n * MOST)));
        const spmv_status st = spmv_cg(s.several, s.b, s.x, &options, r, sizeof *r);
        assert_int_equal(st, SPMV_ERROR_NOT_FINITE);
        assert_non_null(strstr(spmv_last_error(ctx), "right-hand side 4 of 5"));
        fetch_x(&s, x);
        for (int v = 0; v < MOST; v++)
            assert_int_equal(r[v].status, v == 3 ? SPMV_ERROR_NOT_FINITE : SPMV_OK);
        assert_true(r[0].iterations > 0 && r[1].iterations == 0 && r[2].iterations == 0 && r[3].iterations == 0 &&
                    r[4].iterations > 0);
        for (int64_t i = 0; i < s.n; i++) {
            assert_true(fabs(x[i * MOST] - solution(i, 0)) < 1e-4 && x[i * MOST + 1] == 0);
            assert_true(x[i * MOST + 2] == solution(i, 0) && x[i * MOST + 3] == 5);
            assert_true(fabs(x[i * MOST + 4] - 1e12 * solution(i, 2)) < 1e10);
        }
        spmv_preconditioner_destroy(m);
    }
    support_free(b, x);
    release(&s);
}

/* M fails for the second of two columns in its fourth application. That column keeps its iterate,
 * the first continues, also through restarts (rtol out of reach). */
static void broken_late(void **state)
{
    static const struct {
        double factor, rtol;
        spmv_status status, first;
        const char *words;
    } cases[] = {{NAN, 1e-10, SPMV_ERROR_NOT_FINITE, SPMV_OK, "in the preconditioner"},
                 {NAN, 1e-30, SPMV_ERROR_NOT_FINITE, SPMV_ERROR_STAGNATION, "right-hand side 1 of 2"},
                 {-0.25, 1e-10, SPMV_ERROR_NOT_POSITIVE, SPMV_OK, "the preconditioner is not positive definite"}};
    spmv_context *ctx = *state;
    struct system s = make(ctx, SPMV_F64, SIDE, 2);
    double *x = malloc((size_t)(s.n * 2) * sizeof *x), *x_one = malloc((size_t)s.n * sizeof *x_one);
    struct own own = {.s = &s};
    spmv_cg_options options = support_cg_options();
    options.zero_start = 1;
    assert_ok(ctx, spmv_preconditioner_wrap(ctx, SPMV_F64, s.n, &own_class, &own, &options.precond));
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        spmv_cg_result r[2];
        make_all_b(&s);
        own = (struct own){.s = &s, .other = cases[c].factor, .other_at = 7};
        options.rtol = cases[c].rtol;
        options.max_iterations = 0;
        const spmv_status st = spmv_cg(s.several, s.b, s.x, &options, r, sizeof *r);
        assert_int_equal(st, cases[c].first != SPMV_OK ? cases[c].first : cases[c].status);
        if (strstr(spmv_last_error(ctx), cases[c].words) == NULL)
            fail_msg("factor %g: %s", cases[c].factor, spmv_last_error(ctx));
        assert_true(r[0].status == cases[c].first && r[1].status == cases[c].status);
        assert_true(r[1].iterations == 3 && r[0].iterations > 10);
        assert_true(cases[c].first == SPMV_OK || r[0].restarts > 0);
        fetch_x(&s, x);
        own.other_at = -1;
        options.max_iterations = 3;
        const spmv_cg_result one = solve_one(&s, 1, &options, x_one);
        assert_int_equal(one.status, SPMV_ERROR_ITERATIONS);
        for (int64_t i = 0; i < s.n; i++) {
            assert_true(fabs(x[2 * i] - solution(i, 0)) < 1e-6);
            assert_true(fabs(x[2 * i + 1] - x_one[i]) <= 1e-12 * one.norm_b);
        }
        assert_true(fabs(r[1].true_residual - one.true_residual) <= 1e-10 * one.norm_b);
    }
    spmv_preconditioner_destroy(options.precond);
    support_free(x, x_one);
    release(&s);
}

/* Iterations that made a column worse are undone: one that overflowed and, if the tolerance is out
 * of reach, any. The other columns keep theirs. By every rung, with and without M. */
static void steps_taken_back(void **state)
{
    static const int32_t row_ptr[] = {0, 1, 2}, col[] = {0, 1};
    static const double val[] = {1e-310, 4}, b[] = {1, 0, 0, 8}, start[] = {5, 1, 0, 1};
    spmv_context *ctx = *state;
    spmv_cg_options options;
    for (int i = 0; with_rung(i, &options); i++) {
        double x[4];
        spmv_cg_result r[2];
        const spmv_csr a = support_csr(2, 2, row_ptr, col, val);
        struct system s = {.ctx = ctx, .type = SPMV_F64, .a = a};
        spmv_plan *plan = plan_for(&s, 2);
        void *there_b = support_upload(ctx, b, sizeof b), *there_x = support_upload(ctx, start, sizeof start);
        options.zero_start = 0;
        const spmv_status st = spmv_cg(plan, there_b, there_x, &options, r, sizeof *r);
        assert_int_equal(st, must_run(options.rung, "jacobi") ? SPMV_ERROR_NOT_FINITE : SPMV_ERROR_UNSUPPORTED);
        assert_ok(ctx, spmv_download(ctx, there_x, x, sizeof x));
        if (st != SPMV_ERROR_UNSUPPORTED) { /* 1 / 1e-310 overflows */
            assert_true(x[0] == 5 && x[2] == 0 && r[0].iterations == 1 && r[0].true_residual == 1);
            assert_true(r[1].status == SPMV_OK && fabs(x[3] - 2) < 1e-7);
        }
        support_free_in(ctx, there_b, there_x);
        spmv_plan_destroy(plan);
    }
    struct system s = make(ctx, SPMV_F64, SIDE, K);
    for (int i = 0; with_rung(i, &options); i++)
        for (int kind = 0; kind < 2; kind++) {
            struct own own;
            double before[K] = {INFINITY, INFINITY, INFINITY};
            uint64_t seed = 3;
            options.precond = kind == 0 ? NULL : make_kind(&s, kind, &own); /* jacobi */
            options.rtol = 0;
            for (int64_t j = 0; j < s.n * K; j++)
                real_set(s.type, s.host, j, support_uniform(&seed));
            assert_ok(ctx, spmv_upload(ctx, s.host, s.b, bytes_of(&s, s.n * K)));
            for (int solve = 0; solve < (SIDE < 10 ? 4 : 12) && must_run(options.rung, "jacobi"); solve++) {
                spmv_cg_result r[K];
                options.zero_start = solve == 0;
                /* column 0 starts again, while the others have converged */
                assert_ok(ctx, spmv_download(ctx, s.x, s.host, bytes_of(&s, s.n * K)));
                for (int64_t j = 0; j < s.n; j++)
                    real_set(s.type, s.host, j * K, 0);
                assert_ok(ctx, spmv_upload(ctx, s.host, s.x, bytes_of(&s, s.n * K)));
                before[0] = INFINITY;
                assert_int_equal(spmv_cg(s.several, s.b, s.x, &options, r, sizeof *r), SPMV_ERROR_STAGNATION);
                for (int v = 0; v < K; v++) {
                    if (!(r[v].true_residual <= before[v]) || r[v].true_residual > 1e-12 * r[v].norm_b)
                        fail_msg("%s, column %d: a true residual of %g, after %g", options.rung, v, r[v].true_residual,
                                 before[v]);
                    before[v] = r[v].true_residual;
                }
            }
            spmv_preconditioner_destroy(options.precond);
        }
    release(&s);
}

/* Each column has its own iteration limit. */
static void limits(void **state)
{
    spmv_context *ctx = *state;
    struct system s = make(ctx, SPMV_F64, SIDE, K);
    struct own own;
    for (int kind = 0; kind < 5; kind++) {
        spmv_cg_options options;
        spmv_cg_result r[K];
        spmv_preconditioner *m = make_kind(&s, kind, &own);
        spmv_cg_options_init(&options, sizeof options);
        options.precond = m;
        options.rtol = 1e-12;
        options.max_iterations = 2;
        options.zero_start = 1;
        make_all_b(&s);
        for (int64_t i = 0; i < s.n; i++)
            real_set(s.type, s.host, i * K, 0);
        assert_ok(ctx, spmv_upload(ctx, s.host, s.b, bytes_of(&s, s.n * K)));
        assert_fails(ctx, spmv_cg(s.several, s.b, s.x, &options, r, sizeof *r), SPMV_ERROR_ITERATIONS,
                     "right-hand side 2 of 3");
        assert_true(r[0].status == SPMV_OK && r[0].iterations == 0);
        for (int v = 1; v < K; v++)
            assert_true(r[v].status == SPMV_ERROR_ITERATIONS && r[v].iterations == 2 && isfinite(r[v].true_residual));
        spmv_preconditioner_destroy(m);
    }
    release(&s);
}

/* ----------------------------------------------------------------------- bits */

static void same_bits(void **state)
{
    (void)state;
    double *first = NULL;
    const int threads[] = {1, 2, 3, 4, 4};
    for (int kind = 1; kind < 5; kind++) {
        for (size_t t = 0; t < sizeof threads / sizeof *threads; t++) {
            spmv_context *ctx = support_context_on(support_backend, threads[t]);
            struct system s = make(ctx, SPMV_F64, SIDE, K);
            struct own own;
            spmv_cg_options options;
            spmv_cg_result r[K];
            double *x = malloc((size_t)(s.n * K) * sizeof *x);
            spmv_preconditioner *m = make_kind(&s, kind, &own);
            spmv_cg_options_init(&options, sizeof options);
            options.precond = m;
            options.zero_start = 1;
            options.rung = "textbook";
            make_all_b(&s);
            assert_ok(ctx, spmv_cg(s.several, s.b, s.x, &options, r, sizeof *r));
            fetch_x(&s, x);
            if (first == NULL) {
                first = x;
            } else {
                assert_memory_equal(first, x, (size_t)(s.n * K) * sizeof *x);
                free(x);
            }
            spmv_preconditioner_destroy(m);
            release(&s);
            spmv_context_destroy(ctx);
        }
        free(first);
        first = NULL;
    }
}

/* --------------------------------------------------------- many right-hand sides */

/* Counts allocations of host memory, of context memory, and of what a context keeps. */
static int64_t allocations;

spmv_status __real_host_alloc(spmv_context *ctx, int64_t bytes, const char *what, void **memory);
spmv_status __wrap_host_alloc(spmv_context *ctx, int64_t bytes, const char *what, void **memory);
spmv_status __real_spmv_alloc(spmv_context *ctx, int64_t bytes, void **memory);
spmv_status __wrap_spmv_alloc(spmv_context *ctx, int64_t bytes, void **memory);
spmv_status __real_context_lend(spmv_context *ctx, int64_t bytes, void **memory);
spmv_status __wrap_context_lend(spmv_context *ctx, int64_t bytes, void **memory);

spmv_status __wrap_host_alloc(spmv_context *ctx, int64_t bytes, const char *what, void **memory)
{
    allocations++;
    return __real_host_alloc(ctx, bytes, what, memory);
}

spmv_status __wrap_spmv_alloc(spmv_context *ctx, int64_t bytes, void **memory)
{
    allocations++;
    return __real_spmv_alloc(ctx, bytes, memory);
}

spmv_status __wrap_context_lend(spmv_context *ctx, int64_t bytes, void **memory)
{
    allocations++;
    return __real_context_lend(ctx, bytes, memory);
}

/* On the host emulation of CUDA, graph equals fused, and auto selects it. */
static bool is_repetition(const char *rung)
{
    return SIDE < 10 && (strcmp(rung, "graph") == 0 || strcmp(rung, "auto") == 0);
}

/* Sets the next rung that supports several right-hand sides. */
static bool with_rung_of_several(int *i, spmv_cg_options *options)
{
    while (with_rung(*i, options) && (!must_run(options->rung, "jacobi") || is_repetition(options->rung)))
        ++*i;
    return with_rung((*i)++, options);
}

/* The rung that a name selects. */
static const char *rung_of(const char *method)
{
    return strcmp(method, "auto") != 0            ? method
           : support_backend == SPMV_BACKEND_CUDA ? "graph"
           : support_backend == SPMV_BACKEND_OMP  ? "fused"
                                                  : "textbook";
}

/* Column v starts at a fraction of its solution, from nothing to all but 1e-5 of it. */
static double start_of(int64_t i, int v)
{
    return (1 - pow(10, -(double)(v % 6))) * solution(i, v % 4);
}

static void put_starts(const struct system *s)
{
    for (int64_t i = 0; i < s->n * s->k; i++)
        real_set(s->type, s->host, i, start_of(i / s->k, (int)(i % s->k)));
    assert_ok(s->ctx, spmv_upload(s->ctx, s->host, s->x, bytes_of(s, s->n * s->k)));
}

static void put_right_hand_sides(const struct system *s)
{
    for (int v = 0; v < s->k; v++)
        make_b(s, v % 4, s->k, v);
    assert_ok(s->ctx, spmv_upload(s->ctx, s->host, s->b, bytes_of(s, s->n * s->k)));
}

/* Solves each column alone: results, and x as column v of x. */
static void solve_each(const struct system *s, const spmv_cg_options *options, spmv_cg_result *one, double *x)
{
    spmv_cg_options single = *options;
    single.rung = "textbook";
    for (int v = 0; v < s->k; v++) {
        make_b(s, v % 4, 1, 0);
        assert_ok(s->ctx, spmv_upload(s->ctx, s->host, s->b_one, bytes_of(s, s->n)));
        for (int64_t i = 0; i < s->n; i++)
            real_set(s->type, s->host, i, start_of(i, v));
        assert_ok(s->ctx, spmv_upload(s->ctx, s->host, s->x_one, bytes_of(s, s->n)));
        assert_ok(s->ctx, spmv_cg(s->one, s->b_one, s->x_one, &single, &one[v], sizeof *one));
        assert_ok(s->ctx, spmv_download(s->ctx, s->x_one, s->host, bytes_of(s, s->n)));
        for (int64_t i = 0; i < s->n; i++)
            x[i * s->k + v] = real_at(s->type, s->host, i);
    }
}

/* From these starts, with and without M, by every rung: each column as if solved alone. */
static void compare_starts(const struct system *s, spmv_preconditioner *m)
{
    const size_t count = (size_t)(s->n * s->k);
    spmv_cg_options options;
    spmv_cg_result *one = malloc((size_t)s->k * sizeof *one), *r = malloc((size_t)s->k * sizeof *r);
    double *x = malloc(count * sizeof *x), *x_one = malloc(count * sizeof *x_one);
    spmv_cg_options_init(&options, sizeof options);
    options.rtol = s->type == SPMV_F64 ? 1e-10 : 1e-4;
    options.precond = m;
    solve_each(s, &options, one, x_one);
    for (int i = 0; with_rung_of_several(&i, &options);) {
        if (SIDE < 10 && s->k > 4 && strcmp(options.rung, "textbook") == 0)
            continue; /* too long */
        options.rtol = s->type == SPMV_F64 ? 1e-10 : 1e-4;
        options.precond = m;
        options.zero_start = 0;
        put_right_hand_sides(s);
        put_starts(s);
        const spmv_status st = spmv_cg(s->several, s->b, s->x, &options, r, sizeof *r);
        if (st != SPMV_OK)
            fail_msg("%s, %d columns of %lld: %s", options.rung, s->k, (long long)s->n, spmv_last_error(s->ctx));
        fetch_x(s, x);
        for (int v = 0; v < s->k; v++) {
            assert_true(r[v].status == SPMV_OK && r[v].true_residual <= r[v].tolerance && r[v].restarts == 0);
            assert_true(s->k == 1 || strcmp(r[v].rung, rung_of(options.rung)) == 0);
            if (llabs(r[v].iterations - one[v].iterations) > (s->n > 1))
                fail_msg("%s, column %d of %d of %lld: %lld iterations, alone %lld", options.rung, v, s->k,
                         (long long)s->n, (long long)r[v].iterations, (long long)one[v].iterations);
            for (int64_t j = v; j < (int64_t)count; j += s->k)
                if (!(fabs(x[j] - x_one[j]) <= 2 * options.rtol * one[v].norm_b))
                    fail_msg("%s, column %d of %d: x[%lld] = %g, alone %g", options.rung, v, s->k,
                             (long long)(j / s->k), x[j], x_one[j]);
        }
    }
    support_free(one, r, x, x_one);
}

/* Numbers of columns around the width of a panel; 1 and 36 rows: fewer than those of a block, and
 * more with many columns. */
static void every_width(void **state)
{
    const int widths[] = {1, 2, 3, 4, 8, 16, 17, 33};
    spmv_context *ctx = *state;
    for (int type = 0; type < 2; type++)
        for (size_t w = 0; w < sizeof widths / sizeof *widths; w++)
            for (int side = 1; side <= 6; side += 5) {
                if (SLOW && ((size_t)type + w + (size_t)side / 5) % 2 != 0)
                    continue; /* an emulated GPU: every other one */
                struct system s = make(ctx, type == 0 ? SPMV_F64 : SPMV_F32, side, widths[w]);
                struct own own;
                spmv_preconditioner *jacobi = make_kind(&s, 1, &own);
                compare_starts(&s, NULL);
                compare_starts(&s, jacobi);
                spmv_preconditioner_destroy(jacobi);
                release(&s);
            }
}

/* A matrix in f32 with vectors in f64 gives the same as that matrix in f64. */
static void mixed_types(void **state)
{
    spmv_context *ctx = *state;
    struct system s = make(ctx, SPMV_F64, SIDE, K);
    float *narrow = malloc((size_t)s.a.nnz * sizeof *narrow);
    double *wide = s.val, *x = malloc((size_t)(s.n * K) * sizeof *x), *x_wide = malloc((size_t)(s.n * K) * sizeof *x);
    spmv_plan *mixed = NULL;
    spmv_plan_options plan_options;
    spmv_cg_options options;
    for (int64_t e = 0; e < s.a.nnz; e++)
        wide[e] = narrow[e] = (float)wide[e] / 3;
    spmv_plan_destroy(s.several);
    s.several = plan_for(&s, K);
    spmv_csr a = s.a;
    a.val = narrow;
    a.type = SPMV_F32;
    spmv_plan_options_init(&plan_options, sizeof plan_options);
    plan_options.vectors = K;
    plan_options.type = SPMV_F64;
    assert_ok(ctx, spmv_plan_create(ctx, &a, &plan_options, &mixed));
    for (int i = 0; with_rung_of_several(&i, &options);) {
        spmv_cg_result r[K], r_wide[K];
        options.zero_start = 0;
        put_right_hand_sides(&s);
        put_starts(&s);
        assert_ok(ctx, spmv_cg(s.several, s.b, s.x, &options, r_wide, sizeof *r_wide));
        fetch_x(&s, x_wide);
        put_starts(&s);
        assert_ok(ctx, spmv_cg(mixed, s.b, s.x, &options, r, sizeof *r));
        fetch_x(&s, x);
        for (int v = 0; v < K; v++) {
            assert_true(r[v].iterations > 1 && llabs(r[v].iterations - r_wide[v].iterations) <= 1);
            for (int64_t j = v; j < s.n * K; j += K) /* the smallest eigenvalue is above 1/3 */
                assert_true(fabs(x[j] - x_wide[j]) <= 6 * options.rtol * r[v].norm_b);
        }
    }
    spmv_plan_destroy(mixed);
    support_free(narrow, x, x_wide);
    release(&s);
}

/* A converged column no longer changes: x has the bits that it has if all columns stop at that
 * iteration, and counts agree. The same bits in every run. */
static void stands_still(void **state)
{
    enum { MANY = 18 };
    spmv_context *ctx = *state;
    spmv_cg_options options;
    for (int type = 0; type < 2; type++)
        for (int kind = 0; kind < 2; kind++) {
            struct system s = make(ctx, type == 0 ? SPMV_F64 : SPMV_F32, SIDE, MANY);
            struct own own;
            spmv_preconditioner *jacobi = make_kind(&s, 1, &own);
            const size_t bytes = (size_t)(s.n * MANY) * sizeof(double);
            double *x = malloc(bytes), *again = malloc(bytes);
            for (int i = 0; with_rung_of_several(&i, &options);) {
                spmv_cg_result r[MANY], r_again[MANY];
                int64_t least = INT64_MAX, most = 0;
                if (SIDE < 10 && strcmp(options.rung, "textbook") == 0)
                    continue; /* too long */
                options.precond = kind == 0 ? NULL : jacobi;
                options.rtol = type == 0 ? 1e-10 : 1e-4;
                options.zero_start = 0;
                put_right_hand_sides(&s);
                for (int run = 0; run < 3; run++) {
                    put_starts(&s);
                    assert_ok(ctx, spmv_cg(s.several, s.b, s.x, &options, r, sizeof *r));
                    fetch_x(&s, run == 0 ? x : again);
                    if (run > 0)
                        assert_memory_equal(x, again, bytes);
                }
                for (int v = 0; v < MANY; v++) {
                    least = r[v].iterations < least ? r[v].iterations : least;
                    most = r[v].iterations > most ? r[v].iterations : most;
                }
                assert_true(least + 3 < most);
                for (int64_t limit = least > 0 ? least : 1; limit < most;
                     limit += support_backend == SPMV_BACKEND_OMP ? 1 : 3) {
                    /* limit 0 would mean none */
                    options.max_iterations = limit;
                    put_starts(&s);
                    assert_int_equal(spmv_cg(s.several, s.b, s.x, &options, r_again, sizeof *r), SPMV_ERROR_ITERATIONS);
                    fetch_x(&s, again);
                    for (int v = 0; v < MANY; v++) {
                        const bool done = r[v].iterations <= limit;
                        assert_int_equal(r_again[v].status, done ? SPMV_OK : SPMV_ERROR_ITERATIONS);
                        assert_int_equal(r_again[v].iterations, done ? r[v].iterations : limit);
                        for (int64_t j = v; j < s.n * MANY && done; j += MANY)
                            if (x[j] != again[j])
                                fail_msg("%s, column %d at limit %lld: x[%lld] = %g, not %g", options.rung, v,
                                         (long long)limit, (long long)(j / MANY), again[j], x[j]);
                    }
                }
            }
            support_free(x, again);
            spmv_preconditioner_destroy(jacobi);
            release(&s);
        }
}

/* Two systems in one matrix, the second with a negative eigenvalue. Columns in the first are
 * solved; the column in the second breaks down at the same iteration as alone and keeps its x. */
static void breaks_late(void **state)
{
    spmv_context *ctx = *state;
    struct system s = make(ctx, SPMV_F64, SIDE, K);
    const int64_t half = s.n / 2;
    double *val = s.val, *b = calloc((size_t)(s.n * K), sizeof *b), *x = malloc((size_t)(s.n * K) * sizeof *x);
    double *x_one = malloc((size_t)s.n * sizeof *x_one), *column = calloc((size_t)s.n, sizeof *column);
    spmv_cg_options options;
    spmv_cg_result one;
    for (int64_t i = 0; i < s.n; i++)
        for (int32_t e = s.row_ptr[i]; e < s.row_ptr[i + 1]; e++)
            val[e] = (i < half) != (s.col[e] < half) ? 0
                     : i >= half && s.col[e] == i    ? val[e] - 4.9 * scale_of(i) * scale_of(i)
                                                     : val[e];
    spmv_plan_destroy(s.one);
    spmv_plan_destroy(s.several);
    s.one = plan_for(&s, 1);
    s.several = plan_for(&s, K);
    for (int64_t i = 0; i < s.n; i++) {
        b[i * K] = b[i * K + 2] = i < half ? 1 + (double)(i % 5) : 0;
        b[i * K + 1] = column[i] = i < half ? 0 : i == s.n - 1 ? 1 : 0.25 * (double)(i % 2);
    }
    assert_ok(ctx, spmv_upload(ctx, b, s.b, bytes_of(&s, s.n * K)));
    assert_ok(ctx, spmv_upload(ctx, column, s.b_one, bytes_of(&s, s.n)));
    spmv_cg_options_init(&options, sizeof options);
    options.zero_start = 1;
    options.rung = "textbook";
    assert_int_equal(spmv_cg(s.one, s.b_one, s.x_one, &options, &one, sizeof one), SPMV_ERROR_NOT_POSITIVE);
    assert_ok(ctx, spmv_download(ctx, s.x_one, x_one, bytes_of(&s, s.n)));
    for (int i = 0; with_rung_of_several(&i, &options);) {
        spmv_cg_result r[K];
        assert_fails(ctx, spmv_cg(s.several, s.b, s.x, &options, r, sizeof *r), SPMV_ERROR_NOT_POSITIVE,
                     "right-hand side 2 of 3: p'Ap = ");
        fetch_x(&s, x);
        assert_true(r[0].status == SPMV_OK && r[1].status == SPMV_ERROR_NOT_POSITIVE && r[2].status == SPMV_OK);
        assert_true(r[0].iterations > one.iterations && r[0].iterations == r[2].iterations);
        assert_int_equal(r[1].iterations, one.iterations);
        assert_true(fabs(r[1].true_residual - one.true_residual) <= 1e-9 * one.true_residual);
        for (int64_t j = 0; j < s.n; j++) {
            assert_true(fabs(x[j * K + 1] - x_one[j]) <= 1e-9 * one.norm_b);
            assert_true(x[j * K] == x[j * K + 2] && (j < half || x[j * K] == 0));
        }
    }
    support_free(b, x, x_one, column);
    release(&s);
}

/* ------------------------------------------------------------ the callback */

struct history {
    int64_t next, cancel_at, allocations; /* -1: none */
    double residual[400];
};

static int note_iteration(int64_t iteration, double residual, void *user)
{
    struct history *h = user;
    assert_int_equal(iteration, h->next);
    assert_true(h->next < (int64_t)(sizeof h->residual / sizeof *h->residual));
    if (iteration == 0)
        h->allocations = allocations;
    assert_int_equal(allocations, h->allocations); /* from the first iteration to the last */
    h->residual[h->next++] = residual;
    return iteration == h->cancel_at;
}

/* The first column starts closest to its solution; others have the largest residual. */
static void put_other_starts(const struct system *s)
{
    for (int64_t i = 0; i < s->n * s->k; i++) {
        const int v = (int)(i % s->k);
        real_set(s->type, s->host, i, (1 - pow(10, v + 1 - s->k)) * solution(i / s->k, v % 4));
    }
    assert_ok(s->ctx, spmv_upload(s->ctx, s->host, s->x, bytes_of(s, s->n * s->k)));
}

/* The callback gets every iteration once, in order, with the largest residual, which agrees with
 * that of the textbook rung. It can cancel. No memory is allocated meanwhile, and the number of
 * allocations does not depend on the number of iterations. */
static void told(void **state)
{
    spmv_context *ctx = *state;
    struct system s = make(ctx, SPMV_F64, SIDE, MOST);
    struct history *first = malloc(sizeof *first), *h = malloc(sizeof *h);
    spmv_cg_options options;
    spmv_cg_result r[MOST];
    put_right_hand_sides(&s);
    for (int i = 0; with_rung_of_several(&i, &options);) {
        int64_t most = 0, before = 0;
        options.zero_start = 0;
        options.rtol = 1e-12;
        options.on_iteration = note_iteration;
        options.user = first;
        options.rung = "textbook";
        *first = (struct history){.cancel_at = -1};
        put_other_starts(&s);
        assert_ok(ctx, spmv_cg(s.several, s.b, s.x, &options, r, sizeof *r));
        i--; /* with_rung_of_several advances to the rung itself */
        assert_true(with_rung_of_several(&i, &options));
        options.zero_start = 0;
        options.rtol = 1e-12;
        options.on_iteration = note_iteration;
        options.user = h;
        for (int64_t limit = 0; limit < 60; limit += 20) { /* 0: none */
            *h = (struct history){.cancel_at = -1};
            options.max_iterations = limit == 0 ? 0 : limit - 12;
            put_other_starts(&s);
            const int64_t so_far = allocations;
            const spmv_status st = spmv_cg(s.several, s.b, s.x, &options, r, sizeof *r);
            assert_true(st == (limit == 20 ? SPMV_ERROR_ITERATIONS : st) && (limit != 0 || st == SPMV_OK));
            assert_true(limit == 0 || allocations - so_far == before);
            before = allocations - so_far;
            assert_true(before > 5); /* they are counted */
            most = 0;
            for (int v = 0; v < MOST; v++)
                most = r[v].iterations > most ? r[v].iterations : most;
            assert_int_equal(h->next, most + 1);
            for (int64_t t = 0; t < h->next && t < first->next; t++)
                if (!(fabs(h->residual[t] - first->residual[t]) <=
                      1e-3 * first->residual[t] + 1e-11 * first->residual[0]))
                    fail_msg("%s, iteration %lld: a residual of %g, not %g", options.rung, (long long)t, h->residual[t],
                             first->residual[t]);
        }
        *h = (struct history){.cancel_at = 3};
        options.max_iterations = 0;
        put_other_starts(&s);
        assert_fails(ctx, spmv_cg(s.several, s.b, s.x, &options, r, sizeof *r), SPMV_CANCELLED,
                     "right-hand side 1 of 5");
        assert_true(h->next == 4 && r[0].iterations >= 3 && r[0].true_residual < r[0].norm_b);
        for (int v = 0; v < MOST; v++)
            assert_int_equal(r[v].status, SPMV_CANCELLED);
    }
    support_free(first, h);
    release(&s);
}

/* The callback of a solve with several columns behaves as that of a single one: it gets iteration 0
 * if every b is 0, and the last iteration of a column, which it can cancel; a column that stopped
 * before is not cancelled. */
static void told_as_one_is(void **state)
{
    spmv_context *ctx = *state;
    struct system s = make(ctx, SPMV_F64, SIDE, K);
    struct history *h = malloc(sizeof *h);
    spmv_cg_options options;
    spmv_cg_result r[K];
    for (int i = 0; with_rung_of_several(&i, &options);) {
        options.on_iteration = note_iteration;
        options.user = h;
        memset(s.host, 0, (size_t)bytes_of(&s, s.n * K));
        assert_ok(ctx, spmv_upload(ctx, s.host, s.b, bytes_of(&s, s.n * K)));
        *h = (struct history){.cancel_at = -1};
        assert_ok(ctx, spmv_cg(s.several, s.b, s.x, &options, r, sizeof *r));
        assert_true(h->next == 1 && h->residual[0] == 0);
        *h = (struct history){.cancel_at = 0};
        assert_fails(ctx, spmv_cg(s.several, s.b, s.x, &options, r, sizeof *r), SPMV_CANCELLED, "at iteration 0");
        make_all_b(&s);
        for (int64_t j = 0; j < s.n; j++)
            real_set(s.type, s.host, j * K + 1, 0); /* which converges before the first iteration */
        assert_ok(ctx, spmv_upload(ctx, s.host, s.b, bytes_of(&s, s.n * K)));
        *h = (struct history){.cancel_at = -1};
        assert_ok(ctx, spmv_cg(s.several, s.b, s.x, &options, r, sizeof *r));
        const int64_t last = h->next - 1;
        assert_true(last > 2 && (r[0].iterations == last || r[2].iterations == last));
        *h = (struct history){.cancel_at = last};
        assert_fails(ctx, spmv_cg(s.several, s.b, s.x, &options, r, sizeof *r), SPMV_CANCELLED, "cancelled by");
        assert_true(h->next == last + 1 && r[1].status == SPMV_OK);
        for (int v = 0; v < K; v += 2)
            assert_int_equal(r[v].status, r[v].iterations == last ? SPMV_CANCELLED : SPMV_OK);
    }
    free(h);
    release(&s);
}

/* ------------------------------------------------------- more than one thread's share */

/* Some iterations from x = 0, in sequential loops. */
static void plain_steps(const struct system *s, int v, int steps, double *x)
{
    const size_t bytes = (size_t)s->n * sizeof *x;
    double *r = malloc(bytes), *p = malloc(bytes), *q = malloc(bytes), rr = 0;
    make_b(s, v, 1, 0);
    for (int64_t i = 0; i < s->n; i++) {
        x[i] = 0;
        p[i] = r[i] = real_at(s->type, s->host, i);
        rr += r[i] * r[i];
    }
    for (int step = 0; step < steps; step++) {
        double pq = 0, old = rr;
        for (int64_t i = 0; i < s->n; i++) {
            q[i] = 0;
            for (int32_t e = s->row_ptr[i]; e < s->row_ptr[i + 1]; e++)
                q[i] += real_at(s->type, s->val, e) * p[s->col[e]];
            pq += p[i] * q[i];
        }
        rr = 0;
        for (int64_t i = 0; i < s->n; i++) {
            x[i] += old / pq * p[i];
            r[i] -= old / pq * q[i];
            rr += r[i] * r[i];
        }
        for (int64_t i = 0; i < s->n; i++)
            p[i] = r[i] + rr / old * p[i];
    }
    support_free(r, p, q);
}

/* More blocks than a thread adds at once, more than a block adds in all, and blocks with more rows
 * than a thread processes at once. */
static void many_rows(void **state)
{
    enum { STEPS = SLOW ? 2 : 3 };
    const struct {
        int side, k;
    } sizes[] = {{66, 16}, {46, 160}, {46, 2}};
    spmv_context *ctx = *state;
    for (size_t c = 0; c < sizeof sizes / sizeof *sizes; c++) {
        const int k = sizes[c].k;
        struct system s = make(ctx, SPMV_F64, sizes[c].side, k);
        double *x = malloc((size_t)(s.n * k) * sizeof *x), *plain = malloc(4 * (size_t)s.n * sizeof *x);
        spmv_cg_result *r = malloc((size_t)k * sizeof *r);
        spmv_cg_options options;
        for (int v = 0; v < 4; v++)
            plain_steps(&s, v, STEPS, plain + v * s.n);
        put_right_hand_sides(&s);
        for (int i = 0; with_rung_of_several(&i, &options);) {
            if (k > 2 && strcmp(rung_of(options.rung), "textbook") == 0)
                continue; /* too slow: one call of a primitive per column */
            options.max_iterations = STEPS;
            assert_int_equal(spmv_cg(s.several, s.b, s.x, &options, r, sizeof *r), SPMV_ERROR_ITERATIONS);
            fetch_x(&s, x);
            for (int64_t j = 0; j < s.n * k; j++) {
                const int v = (int)(j % k);
                if (!(fabs(x[j] - plain[v % 4 * s.n + j / k]) <= 1e-11 * pow(10, v % 4)))
                    fail_msg("%s, column %d of %d: x[%lld] = %g, not %g", options.rung, v, k, (long long)(j / k), x[j],
                             plain[v % 4 * s.n + j / k]);
            }
            for (int v = 0; v < k; v++)
                assert_int_equal(r[v].iterations, STEPS);
        }
        support_free(x, plain, r);
        release(&s);
    }
}

/* A row as long as the matrix: an arrow matrix. */
static void long_row(void **state)
{
    enum { N = 300 };
    static int32_t row_ptr[N + 1], col[4 * N];
    static double val[4 * N], b[N * K], x[N * K], x_one[N];
    spmv_context *ctx = *state;
    int32_t nnz = 0;
    for (int i = 0; i < N; i++) {
        for (int j = 0; j < N; j++)
            if (i == 0 || j == 0 || i == j) {
                col[nnz] = j;
                val[nnz++] = i != j ? 1 : i == 0 ? N : 2 + i % 3;
            }
        row_ptr[i + 1] = nnz;
    }
    struct system s = {.ctx = ctx, .type = SPMV_F64, .n = N, .k = K, .a = support_csr(N, N, row_ptr, col, val)};
    spmv_cg_options options;
    spmv_cg_result r[K], one;
    s.one = plan_for(&s, 1);
    s.several = plan_for(&s, K);
    for (int j = 0; j < N * K; j++)
        b[j] = 1 + j % 7;
    void *there_b = support_upload(ctx, b, sizeof b), *there_x = support_upload(ctx, b, sizeof b);
    for (int i = 0; with_rung_of_several(&i, &options);) {
        assert_ok(ctx, spmv_cg(s.several, there_b, there_x, &options, r, sizeof *r));
        assert_ok(ctx, spmv_download(ctx, there_x, x, sizeof x));
        for (int v = 0; v < K; v++) {
            for (int j = 0; j < N; j++)
                x_one[j] = b[j * K + v];
            void *one_b = support_upload(ctx, x_one, sizeof x_one), *one_x = support_upload(ctx, x_one, sizeof x_one);
            options.rung = "textbook";
            options.zero_start = 1;
            assert_ok(ctx, spmv_cg(s.one, one_b, one_x, &options, &one, sizeof one));
            assert_ok(ctx, spmv_download(ctx, one_x, x_one, sizeof x_one));
            support_free_in(ctx, one_b, one_x);
            assert_true(one.iterations > 2 && llabs(r[v].iterations - one.iterations) <= 1);
            for (int j = 0; j < N; j++) /* the smallest eigenvalue is above 1 */
                assert_true(fabs(x[j * K + v] - x_one[j]) <= 2 * options.rtol * one.norm_b);
        }
    }
    support_free_in(ctx, there_b, there_x);
    spmv_plan_destroy(s.one);
    spmv_plan_destroy(s.several);
}

/* "auto" and the reason that it reports. */
static void choice(void **state)
{
    spmv_context *ctx = *state;
    struct system s = make(ctx, SPMV_F64, 5, K);
    for (int kind = 0; kind < 3; kind++) { /* none, jacobi, user-defined */
        spmv_cg_options options;
        spmv_cg_result r[K];
        struct own own = {.s = &s, .other_at = -1};
        spmv_preconditioner *m = NULL;
        spmv_cg_options_init(&options, sizeof options);
        if (kind == 2)
            assert_ok(ctx, spmv_preconditioner_wrap(ctx, s.type, s.n, &own_class, &own, &m));
        else if (kind == 1)
            m = make_kind(&s, 1, &own);
        options.precond = m;
        options.zero_start = 1;
        make_all_b(&s);
        assert_ok(ctx, spmv_cg(s.several, s.b, s.x, &options, r, sizeof *r));
        assert_string_equal(r[K - 1].rung, kind == 2 ? "textbook" : rung_of("auto"));
        const char *const words = support_backend == SPMV_BACKEND_REF   ? "on every backend"
                                  : kind == 2                           ? "textbook supports all"
                                  : support_backend == SPMV_BACKEND_OMP ? "one parallel region"
                                                                        : "all right-hand sides";
        assert_non_null(strstr(r[K - 1].why, words));
        options.rung = "textbook";
        assert_ok(ctx, spmv_cg(s.several, s.b, s.x, &options, r, sizeof *r));
        assert_string_equal(r[0].rung, "textbook");
        assert_string_equal(r[0].why, "requested by name");
        options.rung = "persistent"; /* a rung for one right-hand side, or of another backend */
        assert_fails(ctx, spmv_cg(s.several, s.b, s.x, &options, r, sizeof *r),
                     support_backend == SPMV_BACKEND_CUDA ? SPMV_ERROR_UNSUPPORTED : SPMV_ERROR_METHOD,
                     "there are: auto");
        options.rung = "none such";
        assert_fails(ctx, spmv_cg(s.several, s.b, s.x, &options, r, sizeof *r), SPMV_ERROR_METHOD, "there are: auto");
        spmv_preconditioner_destroy(m);
    }
    release(&s);
}

/* "brief": a few iterations by every rung, with and without M, in both types; with p'q fused into
 * the product, and with more columns than a panel, where it is not. */
static void few_steps(void **state)
{
    const int widths[] = {2, 5, 17};
    spmv_context *ctx = *state;
    int done = 0;
    for (int type = 0; type < 2; type++)
        for (size_t w = 0; w < sizeof widths / sizeof *widths; w++) {
            struct system s = make(ctx, type == 0 ? SPMV_F64 : SPMV_F32, SIDE, widths[w]);
            struct own own;
            spmv_cg_result r[17];
            spmv_preconditioner *jacobi = make_kind(&s, 1, &own);
            put_right_hand_sides(&s);
            for (int kind = 0; kind < 2; kind++) {
                spmv_cg_options options;
                for (int i = 0; with_rung_of_several(&i, &options);) {
                    options.precond = kind == 0 ? NULL : jacobi;
                    options.max_iterations = 3;
                    options.rtol = 0;
                    assert_int_equal(spmv_cg(s.several, s.b, s.x, &options, r, sizeof *r), SPMV_ERROR_ITERATIONS);
                    for (int v = 0; v < s.k; v++)
                        assert_true(r[v].iterations == 3 && r[v].true_residual < 0.9 * r[v].norm_b);
                    done++;
                }
            }
            spmv_preconditioner_destroy(jacobi);
            release(&s);
        }
    assert_true(done >= 12);
}

/* First residuals within the tolerance end all columns before their first iteration, for every
 * rung: x stays and the count is 0. Each solve has its own context, so its workspace is new memory:
 * "brief" under a checker shows that no kernel reads unwritten memory. */
static void ended_at_the_start(void **state)
{
    (void)state;
    const int widths[] = {2, 17};
    for (int w = 0; w < 2; w++)
        for (int kind = 0; kind < 2; kind++) {
            spmv_cg_options options;
            for (int i = 0; with_rung_of_several(&i, &options);) {
                spmv_context *ctx = support_context();
                struct system s = make(ctx, SPMV_F64, SIDE, widths[w]);
                struct own own;
                spmv_cg_result r[17];
                spmv_preconditioner *jacobi = make_kind(&s, 1, &own);
                put_right_hand_sides(&s);
                options.precond = kind == 0 ? NULL : jacobi;
                options.atol = 1e30;
                assert_ok(ctx, spmv_cg(s.several, s.b, s.x, &options, r, sizeof *r));
                for (int v = 0; v < s.k; v++)
                    assert_true(r[v].iterations == 0 && fabs(r[v].true_residual - r[v].norm_b) <= 1e-12 * r[v].norm_b);
                spmv_preconditioner_destroy(jacobi);
                release(&s);
                spmv_context_destroy(ctx);
            }
        }
}

SUPPORT_MAIN_OR_BRIEF((cmocka_unit_test(ended_at_the_start), with_context(few_steps), with_context(long_row)),
                      with_context(every_kind), with_context(neighbours), with_context(batches),
                      with_context(unlike_columns), with_context(broken_late), with_context(steps_taken_back),
                      with_context(limits), cmocka_unit_test(same_bits), with_context(every_width),
                      with_context(mixed_types), with_context(stands_still), with_context(breaks_late),
                      with_context(told), with_context(told_as_one_is), with_context(many_rows), with_context(long_row),
                      with_context(choice), with_context(few_steps), cmocka_unit_test(ended_at_the_start))

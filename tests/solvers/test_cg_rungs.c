/* Conjugate gradients by every rung of a backend: every way to stop, each caused by a matrix of a
 * few rows; iteration counts; bits; preconditioners; inner iterations in f32; several right-hand
 * sides.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdbool.h>

#include "tests/support/support_cg.h"
#include "tests/support/support_dense.h"
#include "tests/support/support_slow.h"

#ifdef HOST_CUDA
#include <cuda_runtime_api.h> /* the host emulation can simulate a stream capture */
#endif

/* ------------------------------------------------------------------ systems */

/* A matrix A, and vectors of rows x columns elements. */
struct system {
    spmv_context *ctx;
    spmv_matrix *matrix;
    spmv_csr a;
    int32_t *row_ptr, *col; /* if the matrix was made here */
    double *val;
    spmv_plan *plan;
    spmv_preconditioner *jacobi; /* NULL: none */
    int columns;
    int64_t count; /* elements in a vector */
    void *b, *x;
};

static void make_plan(struct system *s, int columns)
{
    spmv_plan_options options = support_plan_options();
    options.vectors = s->columns = columns;
    assert_ok(s->ctx, spmv_plan_create(s->ctx, &s->a, &options, &s->plan));
    s->count = s->a.rows * columns;
    void *zeros = calloc((size_t)s->count + 1, 8);
    const int64_t bytes = s->count * (int64_t)spmv_type_size(s->a.type);
    s->b = support_upload(s->ctx, zeros, bytes);
    s->x = support_upload(s->ctx, zeros, bytes);
    free(zeros);
}

static void release(struct system *s)
{
    support_free_in(s->ctx, s->b, s->x);
    spmv_plan_destroy(s->plan);
    spmv_preconditioner_destroy(s->jacobi);
    spmv_matrix_destroy(s->matrix);
    support_free(s->row_ptr, s->col, s->val);
}

/* A system of a dense matrix with up to 16 rows. */
static struct system from_dense(spmv_context *ctx, int64_t n, const double *dense, int columns)
{
    struct system s = {.ctx = ctx};
    s.a = support_csr_of_dense(n, dense, &s.row_ptr, &s.col, &s.val);
    make_plan(&s, columns);
    return s;
}

static struct system generated(spmv_context *ctx, const char *spec, spmv_type type, int columns)
{
    struct system s = {.ctx = ctx};
    assert_ok(ctx, spmv_matrix_generate(ctx, spec, type, &s.matrix));
    spmv_matrix_view(s.matrix, &s.a);
    make_plan(&s, columns);
    return s;
}

/* A matrix times a number. */
static struct system multiplied(spmv_context *ctx, const char *spec, spmv_type type, double factor)
{
    struct system s = {.ctx = ctx};
    assert_ok(ctx, spmv_matrix_generate(ctx, spec, type, &s.matrix));
    spmv_matrix_view(s.matrix, &s.a);
    s.val = malloc((size_t)s.a.nnz * 8);
    for (int64_t k = 0; k < s.a.nnz; k++)
        real_set(type, s.val, k, factor * real_at(type, s.a.val, k));
    s.a.val = s.val;
    make_plan(&s, 1);
    return s;
}

/* S A S with S = diag(1 + 7 i mod 10): badly scaled, which Jacobi corrects. */
static struct system scaled(spmv_context *ctx, const char *spec)
{
    struct system s = {.ctx = ctx};
    spmv_csr a;
    assert_ok(ctx, spmv_matrix_generate(ctx, spec, SPMV_F64, &s.matrix));
    spmv_matrix_view(s.matrix, &a);
    assert_int_equal(a.row_ptr_bits, 64);
    s.val = malloc((size_t)a.nnz * sizeof *s.val);
    const int64_t *row_ptr = a.row_ptr;
    for (int64_t i = 0; i < a.rows; i++)
        for (int64_t k = row_ptr[i]; k < row_ptr[i + 1]; k++)
            s.val[k] = (double)(1 + i * 7 % 10) * (double)(1 + a.col[k] * 7 % 10) * ((const double *)a.val)[k];
    s.a = a;
    s.a.val = s.val;
    make_plan(&s, 1);
    assert_ok(ctx, spmv_preconditioner_create(ctx, "jacobi", &s.a, NULL, &s.jacobi));
    return s;
}

static void set(const struct system *s, void *vector, const double *values)
{
    assert_ok(s->ctx, spmv_upload(s->ctx, values, vector, s->count * 8));
}

/* Element i of a vector, f64 or f32. */
static double at(const struct system *s, const void *vector, int64_t i)
{
    const int64_t size = (int64_t)spmv_type_size(s->a.type);
    union real got;
    assert_ok(s->ctx, spmv_download(s->ctx, (const char *)vector + i * size, &got, size));
    return real_at(s->a.type, &got, 0);
}

/* Sets x = 0 and b so that every element of column k of the solution is k + 1. */
static void ask_for_ones(const struct system *s)
{
    void *x = malloc((size_t)s->count * 8);
    const int64_t bytes = s->count * (int64_t)spmv_type_size(s->a.type);
    for (int64_t i = 0; i < s->count; i++)
        real_set(s->a.type, x, i, (double)(1 + i % s->columns));
    assert_ok(s->ctx, spmv_upload(s->ctx, x, s->x, bytes));
    assert_ok(s->ctx, spmv_apply(s->plan, NULL, s->x, NULL, s->b));
    memset(x, 0, (size_t)s->count * 8);
    assert_ok(s->ctx, spmv_upload(s->ctx, x, s->x, bytes));
    free(x);
}

static bool is_rung(const char *name)
{
    for (int i = 0; spmv_cg_rung_name(support_backend, i) != NULL; i++)
        if (strcmp(spmv_cg_rung_name(support_backend, i), name) == 0)
            return true;
    return false;
}

/* ------------------------------------------------------------ the table of rungs */

static void names_and_choice(void **state)
{
    spmv_context *ctx = *state;
    struct system s = generated(ctx, "poisson2d:8", SPMV_F64, 1);
    spmv_cg_options options;
    spmv_cg_result result;
    assert_true(is_rung("textbook"));
    assert_true(is_rung("fused") || support_backend != SPMV_BACKEND_OMP);
    ask_for_ones(&s);
    spmv_cg_options_init(&options, sizeof options);
    options.zero_start = 1;
    assert_ok(ctx, spmv_cg(s.plan, s.b, s.x, &options, &result, sizeof result));
    assert_true(is_rung(result.rung) && strlen(result.why) > 10 && result.status == SPMV_OK);
    assert_string_equal(result.precond, "none");
    if (support_backend == SPMV_BACKEND_OMP)
        assert_string_equal(result.rung, "fused");
    for (int i = 0; with_rung(i, &options); i++) {
        assert_ok(ctx, spmv_cg(s.plan, s.b, s.x, &options, &result, sizeof result));
        assert_string_equal(result.rung, options.rung);
        assert_string_equal(result.why, "requested by name");
    }
    options.rung = "no-such-rung";
    assert_fails(ctx, spmv_cg(s.plan, s.b, s.x, &options, &result, sizeof result), SPMV_ERROR_METHOD, "textbook");
    assert_true(result.status == SPMV_ERROR_METHOD);
    release(&s);
    if (support_backend == SPMV_BACKEND_OMP) {
        /* the reported reason is why the preferred rung cannot be used */
        spmv_plan_options staged = support_plan_options();
        staged.method = "staged";
        s = generated(ctx, "poisson2d:8", SPMV_F64, 1);
        spmv_plan *plan = NULL;
        assert_ok(ctx, spmv_plan_create(ctx, &s.a, &staged, &plan));
        spmv_cg_options_init(&options, sizeof options);
        ask_for_ones(&s);
        assert_ok(ctx, spmv_cg(plan, s.b, s.x, &options, &result, sizeof result));
        assert_string_equal(result.rung, "textbook");
        assert_non_null(strstr(result.why, "staged"));
        options.rung = "fused";
        assert_fails(ctx, spmv_cg(plan, s.b, s.x, &options, &result, sizeof result), SPMV_ERROR_UNSUPPORTED, "staged");
        spmv_plan_destroy(plan);
        release(&s);
    }
}

/* ---------------------------------------------------------- every way to stop */

static int cancel_at_three(int64_t iteration, double residual, void *user)
{
    *(int64_t *)user = iteration;
    assert_true(residual >= 0);
    return iteration == 3;
}

/* Expected end of a solve of A x = b: status, words of the message, number of iterations (-1: any),
 * and x (NULL: any that is finite). */
struct ending {
    const char *name;
    int64_t n;
    double a[16], b[4], start[4];
    double rtol;
    int64_t max_iterations;
    spmv_status status;
    const char *words;
    int64_t iterations;
    bool same_x; /* x is the start */
    double x[4];
};

static const struct ending endings[] = {
    {"indefinite", 2, {1, 0, 0, -2}, {1, 1}, {0}, 1e-8, 0, SPMV_ERROR_NOT_POSITIVE, "p'Ap", 0, true, {0}},
    {"indefinite, seen late",
     3,
     {1, 0, 0, 0, 2, 0, 0, 0, -0.5},
     {1, 1, 0.5},
     {0},
     1e-8,
     0,
     SPMV_ERROR_NOT_POSITIVE,
     "at iteration",
     -2,
     false,
     {0}},
    {"singular, b outside its range",
     2,
     {1, 0, 0, 0},
     {0, 1},
     {0},
     1e-8,
     0,
     SPMV_ERROR_NOT_POSITIVE,
     "p'Ap = 0",
     0,
     true,
     {0}},
    {"skew", 2, {0, 1, -1, 0}, {1, 1}, {0}, 1e-8, 0, SPMV_ERROR_NOT_POSITIVE, "iteration 0", 0, true, {0}},
    {"not a number in A",
     2,
     {1, 0, 0, NAN},
     {1, 1},
     {0},
     1e-8,
     0,
     SPMV_ERROR_NOT_FINITE,
     "A has nan in row 1, column 1",
     0,
     false,
     {0}},
    {"not a number in b",
     2,
     {1, 0, 0, 2},
     {1, NAN},
     {0},
     1e-8,
     0,
     SPMV_ERROR_NOT_FINITE,
     "b has nan in row 1",
     0,
     true,
     {0}},
    {"b'b overflows", 1, {4}, {1e200}, {3}, 1e-8, 0, SPMV_OK, "", 1, false, {2.5e199}},
    {"b'b vanishes", 1, {4}, {1e-200}, {3}, 1e-8, 0, SPMV_OK, "", 1, false, {2.5e-201}},
    {"a quotient overflows", 1, {1e-310}, {1}, {5}, 1e-8, 0, SPMV_ERROR_NOT_FINITE, "iteration 1", 1, true, {0}},
    {"limit",
     3,
     {2, -1, 0, -1, 2, -1, 0, -1, 2},
     {1, 2, 3},
     {0},
     1e-8,
     1,
     SPMV_ERROR_ITERATIONS,
     "after 1 iteration;",
     1,
     false,
     {0}},
    {"out of reach",
     4,
     {1, 1. / 2, 1. / 3, 1. / 4, 1. / 2, 1. / 3, 1. / 4, 1. / 5, 1. / 3, 1. / 4, 1. / 5, 1. / 6, 1. / 4, 1. / 5, 1. / 6,
      1. / 7},
     {1. / 3, 1. / 7, 1. / 11, 1. / 13},
     {0},
     1e-300,
     0,
     SPMV_ERROR_STAGNATION,
     "true residual",
     -2,
     false,
     {0}},
    {"b is zero", 2, {2, 0, 0, 8}, {0, 0}, {5, -7}, 1e-8, 0, SPMV_OK, "", 0, false, {0, 0}},
    {"exact start", 2, {2, 0, 0, 8}, {2, 24}, {1, 3}, 1e-8, 0, SPMV_OK, "", 0, true, {1, 3}},
    {"far start", 2, {2, 0, 0, 8}, {2, 24}, {-7, 1e3}, 1e-8, 0, SPMV_OK, "", -1, false, {1, 3}},
    {"1 x 1", 1, {4}, {2}, {0}, 1e-8, 0, SPMV_OK, "", 1, false, {0.5}},
};

static void check_ending(const struct ending *e, const spmv_cg_options *options, struct system *s)
{
    spmv_cg_result result;
    spmv_cg_options o = *options;
    o.rtol = e->rtol;
    o.max_iterations = e->max_iterations;
    o.symmetry_check = SPMV_SYMMETRY_TRUST; /* so that the recurrence itself must detect it */
    set(s, s->b, e->b);
    set(s, s->x, e->start);
    const spmv_status st = spmv_cg(s->plan, s->b, s->x, &o, &result, sizeof result);
    const char *sentence = spmv_last_error(s->ctx);
    if (st != e->status || (st != SPMV_OK && strstr(sentence, e->words) == NULL))
        fail_msg("%s by %s: %s (%s)", e->name, o.rung, spmv_status_name(st), st != SPMV_OK ? sentence : "");
    if ((e->iterations >= 0 && result.iterations != e->iterations) || (e->iterations == -2 && result.iterations < 1))
        fail_msg("%s by %s: %lld iterations", e->name, o.rung, (long long)result.iterations);
    assert_true(result.status == st);
    for (int64_t i = 0; i < e->n; i++) {
        const double x = at(s, s->x, i);
        if (e->same_x && x != e->start[i])
            fail_msg("%s by %s: x[%d] is %g", e->name, o.rung, (int)i, x);
        if (st == SPMV_OK && !(fabs(x - e->x[i]) <= 1e-6 * fabs(e->x[i])))
            fail_msg("%s by %s: x[%d] is %g instead of %g", e->name, o.rung, (int)i, x, e->x[i]);
        if (st != SPMV_ERROR_NOT_FINITE)
            assert_true(isfinite(x));
    }
    if (st == SPMV_OK)
        assert_true(result.true_residual <= result.tolerance);
}

static void every_ending(void **state)
{
    spmv_context *ctx = *state;
    spmv_cg_options options;
    for (int i = 0; with_rung(i, &options); i++)
        for (size_t e = 0; e < sizeof endings / sizeof *endings; e++) {
            struct system s = from_dense(ctx, endings[e].n, endings[e].a, 1);
            check_ending(&endings[e], &options, &s);
            release(&s);
        }
}

static void cancelled(void **state)
{
    spmv_context *ctx = *state;
    spmv_cg_options options;
    spmv_cg_result result;
    for (int i = 0; with_rung(i, &options); i++) {
        struct system s = generated(ctx, "poisson2d:10", SPMV_F64, 1);
        int64_t last = -1;
        ask_for_ones(&s);
        options.on_iteration = cancel_at_three;
        options.user = &last;
        assert_fails(ctx, spmv_cg(s.plan, s.b, s.x, &options, &result, sizeof result), SPMV_CANCELLED, "iteration 3");
        assert_true(last == 3 && result.iterations >= 3);
        /* x is the last iterate */
        assert_true(result.true_residual > 0 || result.recurrence_residual > 0);
        assert_true(at(&s, s.x, 50) != 0);
        release(&s);
    }
}

/* Symmetry by samples: an asymmetric matrix is refused by name, a symmetric one passes, in both
 * types, also with rounded sums. */
static void symmetry(void **state)
{
    spmv_context *ctx = *state;
    spmv_cg_options options = support_cg_options();
    spmv_cg_result result;
    assert_int_equal(options.symmetry_check, SPMV_SYMMETRY_SAMPLED); /* by default */
    const double bad[] = {2, 1, 0, 0, 2, 0, 0, 0, 2}, nearly[] = {2, 1, 0, 1 + 1e-9, 2, 0, 0, 0, 2};
    for (int i = 0; i < 2; i++) {
        struct system s = from_dense(ctx, 3, i == 0 ? bad : nearly, 1);
        assert_fails(ctx, spmv_cg(s.plan, s.b, s.x, &options, &result, sizeof result), SPMV_ERROR_NOT_SYMMETRIC,
                     "not symmetric");
        assert_fails(ctx, spmv_cg(s.plan, s.b, s.x, NULL, &result, sizeof result), SPMV_ERROR_NOT_SYMMETRIC,
                     "not symmetric"); /* without options, and by the result stored in the plan */
        assert_true(result.status == SPMV_ERROR_NOT_SYMMETRIC && result.iterations == 0);
        options.symmetry_check = SPMV_SYMMETRY_TRUST;
        assert_int_not_equal(spmv_cg(s.plan, s.b, s.x, &options, &result, sizeof result), SPMV_ERROR_NOT_SYMMETRIC);
        options.symmetry_check = SPMV_SYMMETRY_SAMPLED;
        release(&s);
    }
    for (int type = 0; type < 2; type++)
        for (int columns = 1; columns < 4; columns += 2) {
            struct system s =
                generated(ctx, SLOW ? "poisson2d:9" : "stencil27:12", type == 0 ? SPMV_F64 : SPMV_F32, columns);
            ask_for_ones(&s);
            options.rtol = 1e-4;
            spmv_cg_result results[3];
            assert_ok(ctx, spmv_cg(s.plan, s.b, s.x, &options, results, sizeof *results));
            release(&s);
        }
    /* subnormal numbers, whose products have rounding errors larger than themselves */
    double tiny[9];
    for (int k = 0; k < 9; k++)
        tiny[k] = (k % 4 == 0 ? 3 : 1) * 0x1.8p-1072;
    struct system small = from_dense(ctx, 3, tiny, 1);
    assert_int_not_equal(spmv_cg(small.plan, small.b, small.x, NULL, &result, sizeof result), SPMV_ERROR_NOT_SYMMETRIC);
    release(&small);
    options.symmetry_check = 2;
    struct system s = from_dense(ctx, 3, bad, 1);
    assert_fails(ctx, spmv_cg(s.plan, s.b, s.x, &options, &result, sizeof result), SPMV_ERROR_ARGUMENT,
                 "symmetry_check");
    release(&s);
}

/* ------------------------------------------------------- counts, accuracy, bits */

/* The plan checks the symmetry of each set of values once. The test changes borrowed values in
 * place to show this. */
static void symmetry_is_remembered(void **state)
{
    spmv_context *ctx = *state;
    const double good[] = {2, 1, 1, 2}, bad[] = {2, 1, 0.5, 2}, b[] = {3, 3};
    const int32_t row_ptr[] = {0, 2, 4}, col[] = {0, 1, 0, 1};
    spmv_csr a = support_csr(2, 2, row_ptr, col, good);
    spmv_plan_options options;
    spmv_plan *plan = NULL;
    double x[2];
    spmv_plan_options_init(&options, sizeof options);
    options.update_values = 1;
    a.row_ptr = support_upload(ctx, row_ptr, sizeof row_ptr);
    a.col = support_upload(ctx, col, sizeof col);
    void *const val = support_upload(ctx, good, sizeof good);
    a.val = val;
    a.memory = SPMV_MEMORY_CONTEXT;
    void *const there_b = support_upload(ctx, b, sizeof b), *const there_x = support_upload(ctx, b, sizeof b);
    assert_ok(ctx, spmv_plan_create(ctx, &a, &options, &plan));
    assert_ok(ctx, spmv_cg(plan, there_b, there_x, NULL, NULL, 0));
    assert_ok(ctx, spmv_download(ctx, there_x, x, sizeof x));
    assert_true(fabs(x[0] - 1) < 1e-8 && fabs(x[1] - 1) < 1e-8);
    assert_ok(ctx, spmv_upload(ctx, bad, val, sizeof bad));
    assert_int_not_equal(spmv_cg(plan, there_b, there_x, NULL, NULL, 0), SPMV_ERROR_NOT_SYMMETRIC);
    assert_ok(ctx, spmv_plan_update_values(plan, val));
    assert_fails(ctx, spmv_cg(plan, there_b, there_x, NULL, NULL, 0), SPMV_ERROR_NOT_SYMMETRIC, "not symmetric");
    assert_ok(ctx, spmv_upload(ctx, good, val, sizeof good));
    assert_fails(ctx, spmv_cg(plan, there_b, there_x, NULL, NULL, 0), SPMV_ERROR_NOT_SYMMETRIC, "not symmetric");
    assert_ok(ctx, spmv_plan_update_values(plan, val));
    assert_ok(ctx, spmv_cg(plan, there_b, there_x, NULL, NULL, 0));
#ifdef HOST_CUDA
    /* values that a graph replaces: each launch may bring others, so each solve checks */
    host_cuda.capturing = true;
    assert_ok(ctx, spmv_plan_update_values(plan, val));
    host_cuda.capturing = false;
    assert_ok(ctx, spmv_cg(plan, there_b, there_x, NULL, NULL, 0));
    assert_ok(ctx, spmv_upload(ctx, bad, val, sizeof bad));
    assert_fails(ctx, spmv_cg(plan, there_b, there_x, NULL, NULL, 0), SPMV_ERROR_NOT_SYMMETRIC, "not symmetric");
#endif
    spmv_plan_destroy(plan);
    void *const memory[] = {(void *)a.row_ptr, (void *)a.col, val, there_b, there_x};
    for (size_t i = 0; i < sizeof memory / sizeof *memory; i++)
        spmv_free(ctx, memory[i]);
}

/* Iterations to a residual of 1e-8 relative to b = A * ones from x = 0, as counted by
 * scipy.sparse.linalg.cg (SciPy 1.17.1); jacobi with M = diag(A). */
static void counts_as_scipy(void **state)
{
    spmv_context *ctx = *state;
    static const struct {
        const char *spec;
        bool scaled, jacobi;
        int64_t count;
    } known[] = {{"poisson2d:20", false, false, 38}, {"poisson2d:20", true, true, 54},
                 {"poisson3d:20", false, false, 51}, {"poisson2d:100", false, false, 183},
                 {"stencil27:20", false, false, 30}, {"poisson2d:32", true, false, 213},
                 {"poisson2d:32", true, true, 81},   {"poisson2d:100", true, true, 218},
                 {"poisson3d:50", true, true, 145},  {"stencil27:20", true, true, 38}};
    spmv_cg_options options;
    spmv_cg_result result;
    for (int i = 0; with_rung(i, &options); i++)
        for (size_t k = 0; k < sizeof known / sizeof *known && !(SLOW && k > 1); k++) {
            struct system s = known[k].scaled ? scaled(ctx, known[k].spec) : generated(ctx, known[k].spec, SPMV_F64, 1);
            ask_for_ones(&s);
            options.precond = known[k].jacobi ? s.jacobi : NULL;
            const spmv_status st = spmv_cg(s.plan, s.b, s.x, &options, &result, sizeof result);
            if (st == SPMV_ERROR_UNSUPPORTED && known[k].jacobi) {
                /* the rung has no preconditioners */
                release(&s);
                continue;
            }
            assert_ok(ctx, st);
            assert_string_equal(result.precond, known[k].jacobi ? "jacobi" : "none");
            if (llabs(result.iterations - known[k].count) > 2 + known[k].count / 50)
                fail_msg("%s by %s: %lld iterations, expected %lld", known[k].spec, options.rung,
                         (long long)result.iterations, (long long)known[k].count);
            release(&s);
        }
}

/* ||x - ones|| <= ||b - A x|| / lambda_min, where lambda_min = 8 sin^2(pi / (2 (m + 1))) for
 * poisson2d:m. */
static void error_bound(void **state)
{
    spmv_context *ctx = *state;
    spmv_cg_options options;
    spmv_cg_result result;
    const int m = SLOW ? 9 : 40;
    char spec[32];
    snprintf(spec, sizeof spec, "poisson2d:%d", m);
    const double angle = 3.14159265358979323846 / (2 * (m + 1)), lowest = 8 * sin(angle) * sin(angle);
    for (int i = 0; with_rung(i, &options); i++)
        for (int step = 0; step < 3; step++) {
            struct system s = generated(ctx, spec, SPMV_F64, 1);
            ask_for_ones(&s);
            options.rtol = step == 0 ? 1e-4 : step == 1 ? 1e-8 : 1e-12;
            assert_ok(ctx, spmv_cg(s.plan, s.b, s.x, &options, &result, sizeof result));
            double square = 0;
            for (int64_t j = 0; j < s.count; j++)
                square += (at(&s, s.x, j) - 1) * (at(&s, s.x, j) - 1);
            /* b and b - A x have rounding errors: 10 terms per row */
            const double rounding = 10 * 0x1p-53 * 8 * sqrt((double)s.count);
            if (!(sqrt(square) <= (result.true_residual + rounding) / lowest))
                fail_msg("%s, rtol %g: the error is %g, its bound %g", options.rung, options.rtol, sqrt(square),
                         result.true_residual / lowest);
            /* so that the bound is not trivial */
            assert_true(sqrt(square) > 0.01 * result.true_residual);
            release(&s);
        }
}

/* One hash of the bits of x and of the residuals of a solve. */
static uint64_t fingerprint(const struct system *s, const spmv_cg_result *result)
{
    const int64_t bytes = s->count * (int64_t)spmv_type_size(s->a.type);
    unsigned char *x = malloc((size_t)bytes);
    uint64_t hash = 14695981039346656037u; /* FNV-1a */
    assert_ok(s->ctx, spmv_download(s->ctx, s->x, x, bytes));
    for (int64_t i = 0; i < bytes; i++)
        hash = (hash ^ x[i]) * 1099511628211u;
    free(x);
    uint64_t residual = 0;
    memcpy(&residual, &result->true_residual, sizeof residual);
    return hash ^ residual ^ (uint64_t)result->iterations << 1;
}

/* 50 solves have the same bits, on omp also with 1 to 4 threads and with more threads than
 * processors: plain, with jacobi, in f32, with three columns. Sizes with one group per tile on omp,
 * and with several. */
static void bits(void **state)
{
    (void)state;
    spmv_cg_options options;
    spmv_cg_result results[3];
    for (int i = 0; with_rung(i, &options); i++)
        for (int form = 0; form < 5; form++) {
            uint64_t first = 0;
            /* ref has no threads; omp has each number of them, in the first form twice */
            const int repeats = SLOW ? 3 : support_backend == SPMV_BACKEND_REF ? 2 : form > 0 ? 5 : 10;
            for (int run = 0; run < repeats; run++) {
                static const int threads[] = {1, 2, 3, 4, 9};
                spmv_context *ctx = support_context_on(support_backend, threads[run % 5]);
                struct system s = form == 1 ? scaled(ctx, SLOW ? "poisson2d:9" : "poisson2d:61")
                                            : generated(ctx,
                                                        SLOW        ? "poisson2d:9"
                                                        : form == 4 ? "poisson2d:450"
                                                                    : "poisson2d:101",
                                                        form == 2 ? SPMV_F32 : SPMV_F64, form == 3 ? 3 : 1);
                ask_for_ones(&s);
                options.precond = s.jacobi;
                options.max_iterations = form == 4 ? 12 : 0;
                options.rtol = 1e-5;
                const spmv_status st = spmv_cg(s.plan, s.b, s.x, &options, results, sizeof *results);
                if (st == SPMV_ERROR_UNSUPPORTED && (s.jacobi != NULL || form == 3))
                    run = repeats; /* not supported by this rung */
                else if (form != 4)
                    assert_ok(ctx, st);
                const uint64_t now = fingerprint(&s, &results[0]);
                first = run == 0 ? now : first;
                if (run < repeats && now != first)
                    fail_msg("%s, form %d, repeat %d on %d threads: other bits", options.rung, form, run,
                             threads[run % 5]);
                release(&s);
                spmv_context_destroy(ctx);
            }
        }
}

/* Large systems alternate between two directions, which takes a vector more. Without memory for it the
 * solve has the same bits, after odd and even numbers of steps, and leaves no message. The solve fails
 * where other memory is refused. */
static void two_directions(void **state)
{
    (void)state;
#ifdef HOST_CUDA
    for (int64_t steps = 1; steps <= 5; steps++) {
        uint64_t expected = 0;
        int without = 0, refused = 0;
        for (int granted = -1; granted < 12; granted++) {
            spmv_context *ctx = support_context();
            struct system s = generated(ctx, "poisson2d:30", SPMV_F64, 1); /* SPMV_CG_TWO_FROM is less */
            spmv_cg_options options;
            spmv_cg_result result;
            ask_for_ones(&s);
            spmv_cg_options_init(&options, sizeof options);
            options.rung = "graph";
            options.max_iterations = steps;
            options.symmetry_check = SPMV_SYMMETRY_TRUST;
            host_cuda.granted = granted < 0 ? 0 : granted;
            host_cuda.refused = granted < 0 ? 0 : 2; /* the second attempt comes after the pool is trimmed */
            const spmv_status st = spmv_cg(s.plan, s.b, s.x, &options, &result, sizeof result);
            const bool all = host_cuda.refused == 0;
            host_cuda.granted = host_cuda.refused = 0;
            if (st == SPMV_ERROR_ITERATIONS) {
                expected = granted < 0 ? fingerprint(&s, &result) : expected;
                assert_true(fingerprint(&s, &result) == expected);
                assert_int_equal(result.iterations, steps);
                without += granted >= 0 && all;
            } else {
                assert_int_equal(st, SPMV_ERROR_MEMORY);
                refused++;
            }
            release(&s);
            spmv_context_destroy(ctx);
        }
        assert_int_equal(without, 1);
        assert_true(refused >= 3);
    }
#endif
}

/* A grid with as many rows as a GPU needs to alternate between two directions; few on an emulated one. */
static const char *large_grid(void)
{
    return SLOW ? "poisson2d:30" : support_backend == SPMV_BACKEND_CUDA ? "poisson2d:1450" : "poisson2d:60";
}

/* The same x from all rungs after some steps, with equal bits by fused and graph on a GPU: none and jacobi, with a
 * table of values and without. */
static void same_steps(void **state)
{
    spmv_context *ctx = *state;
    for (int form = 0; form < 4; form++) {
        struct system s = generated(ctx, large_grid(), SPMV_F64, 1);
        spmv_plan_options plan = support_plan_options();
        spmv_preconditioner *jacobi = NULL;
        spmv_cg_options options;
        spmv_cg_result result;
        double x[3] = {0}; /* of the first rung */
        bool begun = false;
        uint64_t bits_of_fused = 0;
        if (form % 2 == 0 && support_backend == SPMV_BACKEND_CUDA)
            plan.compression = SPMV_COMPRESSION_VALUES;
        spmv_plan_destroy(s.plan);
        assert_ok(ctx, spmv_plan_create(ctx, &s.a, &plan, &s.plan));
        assert_ok(ctx, spmv_preconditioner_create(ctx, "jacobi", &s.a, NULL, &jacobi));
        ask_for_ones(&s);
        for (int i = 0; with_rung(i, &options); i++) {
            options.precond = form < 2 ? NULL : jacobi;
            options.max_iterations = 9;
            options.zero_start = 1;
            const spmv_status st = spmv_cg(s.plan, s.b, s.x, &options, &result, sizeof result);
            if (st == SPMV_ERROR_UNSUPPORTED || strcmp(result.rung, "persistent") == 0)
                continue;
            assert_int_equal(st, SPMV_ERROR_ITERATIONS);
            assert_int_equal(result.iterations, 9);
            for (int k = 0; k < 3; k++) {
                const double now = at(&s, s.x, k * (s.a.rows - 1) / 2);
                x[k] = begun ? x[k] : now;
                if (!(fabs(now - x[k]) <= 1e-10 * fabs(x[k])))
                    fail_msg("form %d, %s: element %d is %.17g, not %.17g", form, result.rung, k, now, x[k]);
            }
            begun = true;
            if (strcmp(result.rung, "fused") == 0)
                bits_of_fused = fingerprint(&s, &result);
            if (strcmp(result.rung, "graph") == 0 && bits_of_fused != 0)
                assert_true(fingerprint(&s, &result) == bits_of_fused);
        }
        spmv_preconditioner_destroy(jacobi);
        release(&s);
    }
}

/* With k different eigenvalues, k steps solve. In the last one the residual falls to roundoff, which no prediction
 * of its square from larger numbers shows. */
static void few_eigenvalues(void **state)
{
    static const double eigenvalues[] = {3, 7, 0.5};
    const int64_t n = SLOW ? 900 : support_backend == SPMV_BACKEND_CUDA ? 2100000 : 3000;
    spmv_context *ctx = *state;
    spmv_cg_options options;
    spmv_cg_result result;
    for (int k = 1; k <= 3; k++) {
        int32_t *const row_ptr = malloc((size_t)(n + 1) * sizeof *row_ptr), *const col =
                                                                                malloc((size_t)n * sizeof *col);
        double *const val = malloc((size_t)n * sizeof *val);
        for (int64_t i = 0; i < n; i++) {
            row_ptr[i] = col[i] = (int32_t)i;
            val[i] = eigenvalues[i % k];
        }
        row_ptr[n] = (int32_t)n;
        struct system s = {.ctx = ctx, .a = support_csr(n, n, row_ptr, col, val)};
        make_plan(&s, 1);
        ask_for_ones(&s);
        for (int i = 0; with_rung(i, &options); i++) {
            options.zero_start = 1;
            options.rtol = 1e-13;
            const spmv_status st = spmv_cg(s.plan, s.b, s.x, &options, &result, sizeof result);
            if (st == SPMV_ERROR_UNSUPPORTED)
                continue;
            assert_ok(ctx, st);
            assert_int_equal(result.iterations, k);
            for (int64_t j = 0; j < n; j += n / 7)
                assert_true(fabs(at(&s, s.x, j) - 1) < 1e-12);
        }
        release(&s);
        support_free(row_ptr, col, val);
    }
}

/* A times 2^e: the residual falls as for A, also where squares of A p would overflow or vanish. */
static void far_scales(void **state)
{
    spmv_context *ctx = *state;
    spmv_cg_options options;
    spmv_cg_result result;
    for (int type = 0; type < 2; type++) {
        const spmv_type t = type == 0 ? SPMV_F64 : SPMV_F32;
        const int far = type == 0 ? 600 : 75;
        double usual[8] = {0};
        for (int e = 0; e < 3; e++) {
            struct system s = multiplied(ctx, large_grid(), t, ldexp(1, e == 0 ? 0 : e == 1 ? far : -far));
            ask_for_ones(&s);
            for (int i = 0; with_rung(i, &options); i++) {
                options.zero_start = 1;
                options.max_iterations = 12;
                const spmv_status st = spmv_cg(s.plan, s.b, s.x, &options, &result, sizeof result);
                if (st == SPMV_ERROR_UNSUPPORTED || strcmp(result.rung, "persistent") == 0)
                    continue; /* the squares of persistent overflow */
                if (st != SPMV_ERROR_ITERATIONS)
                    fail_msg("type %d, scale %d, %s: %s (%s)", type, e, result.rung, spmv_status_name(st),
                             spmv_last_error(ctx));
                assert_true(i < 8);
                const double fall = result.true_residual / result.norm_b;
                usual[i] = e == 0 ? fall : usual[i];
                if (!(fabs(fall - usual[i]) <= 0.2 * usual[i]))
                    fail_msg("type %d, scale %d, %s: residual %g instead of %g", type, e, result.rung, fall, usual[i]);
            }
            release(&s);
        }
    }
}

/* Rows over several tiles, and one as long as the matrix: an arrow matrix, positive definite by a
 * large diagonal. */
static void long_rows(void **state)
{
    enum { N = SLOW ? 60 : 30011 };
    spmv_context *ctx = *state;
    int32_t *row_ptr = calloc(N + 1, sizeof *row_ptr), *col = calloc(3 * N, sizeof *col);
    double *val = calloc(3 * N, sizeof *val);
    int32_t k = 0;
    for (int32_t i = 0; i < N; i++) {
        const bool middle = i == N / 2;
        for (int32_t j = middle ? 0 : i; j < (middle ? N : i + 1); j++) {
            if (!middle && i > N / 2 && j == i) {
                col[k] = N / 2;
                val[k++] = 1;
            }
            col[k] = j;
            val[k++] = j == i ? (i == N / 2 ? 2. * N : 4 + i % 3) : 1;
            if (!middle && i < N / 2) {
                col[k] = N / 2;
                val[k++] = 1;
            }
        }
        row_ptr[i + 1] = k;
    }
    spmv_cg_options options;
    spmv_cg_result results[3];
    for (int i = 0; with_rung(i, &options); i++)
        for (int columns = 1; columns < 4; columns += 2) {
            struct system s = {.ctx = ctx, .a = support_csr(N, N, row_ptr, col, val)};
            make_plan(&s, columns);
            ask_for_ones(&s);
            options.rtol = 1e-12;
            const spmv_status st = spmv_cg(s.plan, s.b, s.x, &options, results, sizeof *results);
            const bool fits = options.rung == NULL || strcmp(options.rung, "persistent") != 0;
            assert_true(fits || SLOW || st == SPMV_ERROR_UNSUPPORTED); /* a row has 30011 entries */
            if (fits && !(columns > 1 && st == SPMV_ERROR_UNSUPPORTED)) {
                assert_ok(ctx, st);
                for (int64_t j = 0; j < s.count; j += SLOW ? 1 : 17)
                    assert_true(fabs(at(&s, s.x, j) - (double)(1 + j % columns)) < 1e-9);
                assert_true(results[0].iterations > 3 && results[0].iterations < 60);
            }
            release(&s);
        }
    support_free(row_ptr, col, val);
}

/* ------------------------------------------------------------- preconditioners */

struct own {
    spmv_context *ctx;
    int64_t n;
    double factor;
};

/* z = factor r */
static spmv_status own_apply(void *self, const void *r, void *z)
{
    const struct own *own = self;
    return spmv_map_scalar(own->ctx, SPMV_MUL, SPMV_F64, &own->factor, r, z, own->n);
}

/* Invalid preconditioners are reported, each in its way. */
static void bad_preconditioners(void **state)
{
    (void)state;
    spmv_context *ctx = support_context(), *other = support_context();
    static const spmv_preconditioner_class class = {.size = sizeof class, .name = "own", .apply = own_apply};
    struct system s = generated(ctx, "poisson2d:6", SPMV_F64, 1);
    spmv_cg_options options;
    spmv_cg_result result;
    ask_for_ones(&s);
    static const struct {
        double factor;
        spmv_status status;
        const char *words;
    } cases[] = {{-1, SPMV_ERROR_NOT_POSITIVE, "the preconditioner is not positive definite"},
                 {0, SPMV_ERROR_NOT_POSITIVE, "the preconditioner is not positive definite"},
                 {NAN, SPMV_ERROR_NOT_FINITE, "in the preconditioner"},
                 {0.25, SPMV_OK, ""}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct own own = {.ctx = ctx, .n = s.count, .factor = cases[i].factor};
        spmv_cg_options_init(&options, sizeof options);
        options.zero_start = 1;
        assert_ok(ctx, spmv_preconditioner_wrap(ctx, SPMV_F64, s.count, &class, &own, &options.precond));
        const spmv_status st = spmv_cg(s.plan, s.b, s.x, &options, &result, sizeof result);
        if (st != cases[i].status || (st != SPMV_OK && strstr(spmv_last_error(ctx), cases[i].words) == NULL))
            fail_msg("factor %g: %s (%s)", cases[i].factor, spmv_status_name(st), spmv_last_error(ctx));
        assert_string_equal(result.precond, "own");
        assert_string_equal(result.rung, support_backend == SPMV_BACKEND_CUDA ? "graph" : "textbook");
        assert_true(st == SPMV_OK || result.iterations == 0);
        spmv_preconditioner_destroy(options.precond);
    }
    /* another number of rows, another type, another context */
    struct own own = {.ctx = ctx, .n = s.count, .factor = 1};
    assert_ok(ctx, spmv_preconditioner_wrap(ctx, SPMV_F64, s.count + 1, &class, &own, &options.precond));
    assert_fails(ctx, spmv_cg(s.plan, s.b, s.x, &options, &result, sizeof result), SPMV_ERROR_SIZE, "37 rows");
    spmv_preconditioner_destroy(options.precond);
    assert_ok(ctx, spmv_preconditioner_wrap(ctx, SPMV_F32, s.count, &class, &own, &options.precond));
    assert_fails(ctx, spmv_cg(s.plan, s.b, s.x, &options, &result, sizeof result), SPMV_ERROR_TYPE, "f32");
    spmv_preconditioner_destroy(options.precond);
    assert_ok(other, spmv_preconditioner_wrap(other, SPMV_F64, s.count, &class, &own, &options.precond));
    assert_fails(ctx, spmv_cg(s.plan, s.b, s.x, &options, &result, sizeof result), SPMV_ERROR_ARGUMENT, "context");
    spmv_preconditioner_destroy(options.precond);
    release(&s);
    spmv_context_destroy(other);
    spmv_context_destroy(ctx);
}

/* ------------------------------------------------------------------ precisions */

static spmv_plan *plan_of_type(spmv_context *ctx, const spmv_csr *a, spmv_type type)
{
    spmv_plan *plan = NULL;
    spmv_plan_options options = support_plan_options();
    options.type = type;
    assert_ok(ctx, spmv_plan_create(ctx, a, &options, &plan));
    return plan;
}

/* f32 values with f64 vectors; and f32 inner iterations that reach a residual f32 alone cannot. */
static void precisions(void **state)
{
    spmv_context *ctx = *state;
    spmv_cg_options options;
    spmv_cg_result result;
    const char *spec = SLOW ? "poisson2d:9" : "poisson2d:60";
    for (int i = 0; with_rung(i, &options); i++)
        for (int jacobi = 0; jacobi < 2; jacobi++) {
            struct system s = generated(ctx, spec, SPMV_F64, 1), narrow = generated(ctx, spec, SPMV_F32, 1);
            spmv_plan *mixed = plan_of_type(ctx, &narrow.a, SPMV_F64);
            spmv_preconditioner *m = NULL;
            ask_for_ones(&s);
            options.zero_start = 1;
            options.rtol = 1e-12;
            options.inner = NULL;
            options.precond = NULL;
            assert_ok(ctx, spmv_cg(mixed, s.b, s.x, &options, &result, sizeof result));
            const int64_t plain = result.iterations;
            assert_true(fabs(at(&s, s.x, 7) - 1) < 1e-9);
            options.inner = narrow.plan;
            if (jacobi) {
                assert_ok(ctx, spmv_preconditioner_create(ctx, "jacobi", &narrow.a, NULL, &m));
                options.precond = m;
            }
            const spmv_status st = spmv_cg(s.plan, s.b, s.x, &options, &result, sizeof result);
            if (st != SPMV_ERROR_UNSUPPORTED) {
                assert_ok(ctx, st);
                assert_string_equal(result.rung, options.rung);
                assert_true(result.true_residual <= 1e-12 * result.norm_b && result.restarts == 0);
                assert_true(result.iterations >= plain - 2 && result.iterations <= 3 * plain + 5);
                for (int64_t j = 0; j < s.count; j += 11)
                    assert_true(fabs(at(&s, s.x, j) - 1) < 1e-9);
            }
            spmv_preconditioner_destroy(m);
            spmv_plan_destroy(mixed);
            release(&narrow);
            release(&s);
        }
}

/* Failures of inner iterations come from the matrix, not from the type. */
static void inner_failures(void **state)
{
    spmv_context *ctx = *state;
    spmv_cg_options options = support_cg_options();
    spmv_cg_result result;
    for (size_t e = 0; e < sizeof endings / sizeof *endings; e++) {
        struct system s = from_dense(ctx, endings[e].n, endings[e].a, 1);
        float values[16];
        for (int64_t k = 0; k < s.a.nnz; k++)
            values[k] = (float)s.val[k];
        spmv_csr narrow = s.a;
        narrow.val = values;
        narrow.type = SPMV_F32;
        options.inner = plan_of_type(ctx, &narrow, SPMV_F32);
        options.rtol = endings[e].rtol;
        options.max_iterations = endings[e].max_iterations;
        /* so that the recurrence itself must detect it */
        options.symmetry_check = SPMV_SYMMETRY_TRUST;
        set(&s, s.b, endings[e].b);
        set(&s, s.x, endings[e].start);
        const spmv_status st = spmv_cg(s.plan, s.b, s.x, &options, &result, sizeof result);
        /* 1e-310 is 0 in f32, so the matrix is not positive definite there; in f64 it is */
        const spmv_status expected = strstr(endings[e].name, "quotient") ? SPMV_ERROR_STAGNATION : endings[e].status;
        if (st != expected)
            fail_msg("%s: %s (%s)", endings[e].name, spmv_status_name(st), spmv_last_error(ctx));
        if (st == SPMV_OK)
            assert_true(result.true_residual <= result.tolerance);
        spmv_plan_destroy(options.inner);
        release(&s);
    }
    /* incompatible plans */
    struct system s = generated(ctx, "poisson2d:6", SPMV_F64, 1), small = generated(ctx, "poisson2d:5", SPMV_F32, 1);
    options.inner = s.plan;
    assert_fails(ctx, spmv_cg(s.plan, s.b, s.x, &options, &result, sizeof result), SPMV_ERROR_TYPE, "f32");
    options.inner = small.plan;
    assert_fails(ctx, spmv_cg(s.plan, s.b, s.x, &options, &result, sizeof result), SPMV_ERROR_SIZE, "25 x 25");
    release(&s);
    release(&small);
}

/* ------------------------------------------------------ several right-hand sides */

/* Columns with different ends: an ordinary one, zeros, an exact start, a tolerance of another
 * size. */
static void unlike_columns(void **state)
{
    enum { K = 4 };
    spmv_context *ctx = *state;
    spmv_cg_options options;
    for (int i = 0; with_rung(i, &options); i++) {
        struct system s = generated(ctx, SLOW ? "poisson2d:7" : "poisson2d:50", SPMV_F64, K);
        struct system one = generated(ctx, SLOW ? "poisson2d:7" : "poisson2d:50", SPMV_F64, 1);
        spmv_cg_result results[K], alone;
        double *b = malloc((size_t)s.count * 8), *x = calloc((size_t)s.count, 8), *column = malloc((size_t)s.count * 8);
        uint64_t seed = 11;
        ask_for_ones(&one);
        assert_ok(ctx, spmv_download(ctx, one.b, column, one.count * 8));
        for (int64_t row = 0; row < s.a.rows; row++) {
            b[row * K] = column[row];
            b[row * K + 1] = 0;
            x[row * K + 1] = support_uniform(&seed);
            b[row * K + 2] = column[row];
            x[row * K + 2] = 1;
            b[row * K + 3] = 1e9 * support_uniform(&seed);
        }
        set(&s, s.b, b);
        set(&s, s.x, x);
        const spmv_status st = spmv_cg(s.plan, s.b, s.x, &options, results, sizeof *results);
        if (st == SPMV_ERROR_UNSUPPORTED) {
            assert_true(strcmp(options.rung, "textbook") != 0 && support_backend == SPMV_BACKEND_CUDA);
        } else {
            assert_ok(ctx, st);
            assert_ok(ctx, spmv_cg(one.plan, one.b, one.x, &options, &alone, sizeof alone));
            assert_true(llabs(results[0].iterations - alone.iterations) <= 1);
            assert_true(results[1].iterations == 0 && results[2].iterations == 0 && results[3].iterations > 5);
            for (int v = 0; v < K; v++)
                assert_true(results[v].status == SPMV_OK && results[v].true_residual <= results[v].tolerance);
            for (int64_t row = 0; row < s.a.rows; row += SLOW ? 1 : 13) {
                assert_true(fabs(at(&s, s.x, row * K) - at(&one, one.x, row)) < 1e-7);
                assert_true(at(&s, s.x, row * K + 1) == 0 && at(&s, s.x, row * K + 2) == 1);
            }
        }
        support_free(b, x, column);
        release(&s);
        release(&one);
    }
}

/* One column fails and the others are solved; the message names the column. */
static void columns_that_fail(void **state)
{
    spmv_context *ctx = *state;
    const double a[] = {1, 0, 0, 0, 2, 0, 0, 0, -2};
    const double b[] = {1, 1, 0, 2, 0, 0, 0, 1, 0}; /* columns (1, 2, 0), (1, 0, 1), (0, 0, 0) */
    spmv_cg_options options;
    for (int i = 0; with_rung(i, &options); i++) {
        struct system s = from_dense(ctx, 3, a, 3);
        spmv_cg_result results[3];
        set(&s, s.b, b);
        const spmv_status st = spmv_cg(s.plan, s.b, s.x, &options, results, sizeof *results);
        if (st != SPMV_ERROR_UNSUPPORTED) {
            assert_true(st == SPMV_ERROR_NOT_POSITIVE);
            assert_non_null(strstr(spmv_last_error(ctx), "right-hand side 2 of 3"));
            assert_true(results[0].status == SPMV_OK && results[1].status == SPMV_ERROR_NOT_POSITIVE &&
                        results[2].status == SPMV_OK);
            assert_true(fabs(at(&s, s.x, 0) - 1) < 1e-12 && fabs(at(&s, s.x, 3) - 1) < 1e-12);
            assert_true(isfinite(at(&s, s.x, 1)) && isfinite(at(&s, s.x, 7)));
        }
        release(&s);
    }
    /* the limit, for columns that did not converge */
    for (int i = 0; with_rung(i, &options); i++) {
        struct system s = generated(ctx, "poisson2d:9", SPMV_F64, 2);
        spmv_cg_result results[2];
        ask_for_ones(&s);
        options.max_iterations = 4;
        const spmv_status st = spmv_cg(s.plan, s.b, s.x, &options, results, sizeof *results);
        if (st != SPMV_ERROR_UNSUPPORTED) {
            assert_true(st == SPMV_ERROR_ITERATIONS && results[1].status == SPMV_ERROR_ITERATIONS);
            assert_true(results[0].iterations == 4 && results[1].iterations == 4);
        }
        release(&s);
    }
}

/* "brief": a few iterations by every rung, without a preconditioner, with a diagonal, and with
 * products, in both types, on a system with more rows than one block processes. */
static void few_steps(void **state)
{
    static const char *const preconds[] = {"none", "jacobi", "chebyshev", "block-jacobi", "amg"};
    spmv_context *ctx = *state;
    spmv_cg_options options;
    spmv_cg_result result;
    int done = 0;
    for (int type = 0; type < 2; type++) {
        struct system s = generated(ctx, "poisson2d:50", type == 0 ? SPMV_F64 : SPMV_F32, 1);
        ask_for_ones(&s);
        for (size_t m = 0; m < sizeof preconds / sizeof *preconds; m++) {
            spmv_preconditioner *precond = NULL;
            assert_ok(ctx, spmv_preconditioner_create(ctx, preconds[m], &s.a, NULL, &precond));
            for (int i = 0; with_rung(i, &options); i++) {
                if (SLOW && (type + (int)m + i) % 2 != 0)
                    continue; /* an emulated GPU: every other one */
                options.precond = m == 0 ? NULL : precond;
                options.max_iterations = 3;
                options.zero_start = 1;
                const spmv_status st = spmv_cg(s.plan, s.b, s.x, &options, &result, sizeof result);
                if (st == SPMV_ERROR_UNSUPPORTED)
                    continue;
                assert_int_equal(st, SPMV_ERROR_ITERATIONS);
                assert_true(result.iterations == 3 && result.true_residual < 0.9 * result.norm_b);
                done++;
            }
            spmv_preconditioner_destroy(precond);
        }
        release(&s);
    }
    assert_true(done >= 10);
}

/* A first residual within the tolerance ends the solve before its first iteration, for every rung:
 * x stays and the count is 0. Each rung has its own context, so its workspace is new memory:
 * "brief" under a checker shows that no kernel reads unwritten memory. */
static void ended_at_the_start(void **state)
{
    (void)state;
    static const char *const preconds[] = {"none", "jacobi", "chebyshev"};
    for (int m = 0; m < 3; m++) {
        spmv_cg_options options;
        for (int i = 0; with_rung(i, &options); i++) {
            spmv_context *ctx = support_context();
            struct system s = generated(ctx, "poisson2d:50", SPMV_F64, 1);
            spmv_cg_result result;
            ask_for_ones(&s);
            assert_ok(ctx, spmv_preconditioner_create(ctx, preconds[m], &s.a, NULL, &options.precond));
            options.atol = 1e6;
            const spmv_status st = spmv_cg(s.plan, s.b, s.x, &options, &result, sizeof result);
            if (st != SPMV_ERROR_UNSUPPORTED) {
                assert_ok(ctx, st);
                assert_int_equal(result.iterations, 0);
                assert_true(fabs(result.true_residual - result.norm_b) <= 1e-12 * result.norm_b);
                for (int64_t k = 0; k < s.a.rows; k += 7)
                    assert_true(at(&s, s.x, k) == 0);
            }
            spmv_preconditioner_destroy(options.precond);
            release(&s);
            spmv_context_destroy(ctx);
        }
    }
}

SUPPORT_MAIN_OR_BRIEF((cmocka_unit_test(ended_at_the_start), with_context(few_steps)), with_context(names_and_choice),
                      with_context(every_ending), with_context(cancelled), with_context(symmetry),
                      with_context(symmetry_is_remembered), with_context(counts_as_scipy), with_context(error_bound),
                      cmocka_unit_test(bits), cmocka_unit_test(two_directions), with_context(same_steps),
                      with_context(few_eigenvalues), with_context(far_scales), with_context(long_rows),
                      cmocka_unit_test(bad_preconditioners), with_context(precisions), with_context(inner_failures),
                      with_context(unlike_columns), with_context(columns_that_fail), with_context(few_steps),
                      cmocka_unit_test(ended_at_the_start))

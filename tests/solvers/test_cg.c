/* Vector operations of the solvers, and conjugate gradients: known solutions, known iteration
 * counts, every way to stop.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdbool.h>

#include "formats/matrix_internal.h"
#include "tests/support/support.h"
#include "tests/support/support_slow.h"

/* ------------------------------------------------------- divide, axpby, dot */

/* At sizes where tiles and teams begin, against loops in long double. */
static void vector_operations(void **state)
{
    spmv_context *ctx = *state;
    const int64_t sizes[] = {1, 2, 7, 8, 9, 31, 32, 33, 8191, 8192, 8193, 24583, 32767, 32768, 100003};
    uint64_t seed = 4;
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0] && !(SLOW && sizes[s] > 9000); s++) {
        const int64_t n = sizes[s];
        double *x = malloc((size_t)n * 8), *y = malloc((size_t)n * 8), *out = malloc((size_t)n * 8);
        long double dot = 0, magnitude = 0;
        for (int64_t i = 0; i < n; i++) {
            x[i] = support_uniform(&seed);
            y[i] = support_uniform(&seed) + 2;
            dot += (long double)x[i] * y[i];
            magnitude += fabsl((long double)x[i] * y[i]);
        }
        const double scalars[] = {-0.75, 3};
        double result = NAN;
        void *dx = support_upload(ctx, x, n * 8), *dy = support_upload(ctx, y, n * 8);
        char *ds = support_upload(ctx, scalars, sizeof scalars);
        void *dr = support_upload(ctx, &result, 8);
        assert_ok(ctx, spmv_dot(ctx, SPMV_F64, dx, dy, dr, n));
        assert_ok(ctx, spmv_download(ctx, dr, &result, 8));
        assert_true(fabsl(result - dot) <= (long double)n * 0x1p-53L * magnitude);
        assert_ok(ctx, spmv_map_axpby(ctx, SPMV_F64, ds, dx, ds + 8, dy, n));
        assert_ok(ctx, spmv_download(ctx, dy, out, n * 8));
        for (int64_t i = 0; i < n; i++)
            assert_true(fabs(out[i] - (-0.75 * x[i] + 3 * y[i])) <= 4 * 0x1p-53 * (fabs(x[i]) + 3 * fabs(y[i])));
        assert_ok(ctx, spmv_map_axpby(ctx, SPMV_F64, NULL, dx, NULL, dy, n)); /* y += x */
        assert_ok(ctx, spmv_map_divide(ctx, SPMV_F64, dx, dy, dx, n));        /* in place */
        double *quotient = malloc((size_t)n * 8);
        assert_ok(ctx, spmv_download(ctx, dx, quotient, n * 8));
        for (int64_t i = 0; i < n; i++)
            assert_true(quotient[i] == x[i] / (x[i] + out[i]));
        free(quotient);
        support_free_in(ctx, dx, dy, ds, dr);
        support_free(x, y, out);
    }
}

static void vector_operations_single(void **state)
{
    spmv_context *ctx = *state;
    const float x[] = {1, 2, 3}, y[] = {4, 5, 6};
    float out[3], result = 0;
    void *dx = support_upload(ctx, x, sizeof x), *dy = support_upload(ctx, y, sizeof y);
    void *dr = support_upload(ctx, &result, sizeof result);
    assert_ok(ctx, spmv_dot(ctx, SPMV_F32, dx, dy, dr, 3));
    assert_ok(ctx, spmv_download(ctx, dr, &result, sizeof result));
    assert_true(result == 32);
    assert_ok(ctx, spmv_map_axpby(ctx, SPMV_F32, dr, dx, NULL, dy, 3));
    assert_ok(ctx, spmv_download(ctx, dy, out, sizeof out));
    assert_true(out[0] == 36 && out[1] == 69 && out[2] == 102);
    assert_ok(ctx, spmv_map_divide(ctx, SPMV_F32, dy, dx, dy, 3));
    assert_ok(ctx, spmv_download(ctx, dy, out, sizeof out));
    assert_true(out[0] == 36 && out[1] == 34.5f && out[2] == 34);
    assert_ok(ctx, spmv_dot(ctx, SPMV_F32, NULL, NULL, dr, 0));
    assert_ok(ctx, spmv_download(ctx, dr, &result, sizeof result));
    assert_true(result == 0);
    assert_fails(ctx, spmv_dot(ctx, SPMV_I32, dx, dy, dr, 3), SPMV_ERROR_TYPE, "i32");
    assert_fails(ctx, spmv_dot(ctx, SPMV_F32, dx, dy, NULL, 3), SPMV_ERROR_ARGUMENT, "NULL");
    assert_fails(ctx, spmv_map_axpby(ctx, SPMV_F32, NULL, dx, NULL, dy, -1), SPMV_ERROR_ARGUMENT, "-1");
    assert_fails(ctx, spmv_map_divide(ctx, SPMV_F32, NULL, dx, dy, 1), SPMV_ERROR_ARGUMENT, "NULL");
    support_free_in(ctx, dx, dy, dr);
}

/* ------------------------------------------------------------------- solves */

struct system {
    spmv_context *ctx;
    spmv_matrix *matrix;
    spmv_plan *plan;
    spmv_type type;
    int64_t n;
    void *b, *x;
};

/* A plan for the host arrays, vectors of n elements of zeros. */
static struct system system_of(spmv_context *ctx, const spmv_csr *a)
{
    struct system s = {.ctx = ctx, .type = a->type, .n = a->rows};
    assert_ok(ctx, spmv_plan_create(ctx, a, NULL, &s.plan));
    void *zeros = calloc((size_t)s.n + 1, 8);
    s.b = support_upload(ctx, zeros, s.n * (int64_t)spmv_type_size(s.type));
    s.x = support_upload(ctx, zeros, s.n * (int64_t)spmv_type_size(s.type));
    free(zeros);
    return s;
}

/* A generated matrix with b = A * ones. */
static struct system system_ones(spmv_context *ctx, const char *spec, spmv_type type)
{
    spmv_matrix *matrix = NULL;
    spmv_csr a;
    assert_ok(ctx, spmv_matrix_generate(ctx, spec, type, &matrix));
    spmv_matrix_view(matrix, &a);
    struct system s = system_of(ctx, &a);
    s.matrix = matrix;
    const union real one = real_scalar(type, 1);
    void *ones = NULL;
    assert_ok(ctx, spmv_alloc(ctx, s.n * (int64_t)spmv_type_size(type), &ones));
    assert_ok(ctx, spmv_map_index(ctx, type, &one, NULL, ones, s.n));
    assert_ok(ctx, spmv_apply(s.plan, NULL, ones, NULL, s.b));
    spmv_free(ctx, ones);
    return s;
}

static void release(struct system *s)
{
    support_free_in(s->ctx, s->b, s->x);
    spmv_plan_destroy(s->plan);
    spmv_matrix_destroy(s->matrix);
}

static double value(const struct system *s, const void *vector, int64_t i)
{
    const int64_t size = (int64_t)spmv_type_size(s->type);
    double f64 = 0;
    float f32 = 0;
    assert_ok(s->ctx, spmv_download(s->ctx, (const char *)vector + i * size,
                                    s->type == SPMV_F32 ? (void *)&f32 : (void *)&f64, size));
    return s->type == SPMV_F32 ? f32 : f64;
}

static double worst_error_from_ones(const struct system *s)
{
    double worst = 0;
    for (int64_t i = 0; i<s->n; i += s->n> 2000 ? 97 : 1)
        worst = fmax(worst, fabs(value(s, s->x, i) - 1));
    return worst;
}

/* Iterations to a residual of 1e-8 relative to b, from x = 0 with b = A * ones, as counted by
 * scipy.sparse.linalg.cg (SciPy 1.17.1). */
static void poisson_as_others_solve_it(void **state)
{
    spmv_context *ctx = *state;
    const struct {
        const char *spec;
        int64_t iterations;
    } known[] = {{"poisson2d:32", 62}, {"poisson2d:100", 183}, {"poisson3d:50", 125}};
    for (size_t k = 0; k < sizeof known / sizeof known[0] && !(SLOW && k > 0); k++) {
        struct system s = system_ones(ctx, known[k].spec, SPMV_F64);
        spmv_cg_result result;
        assert_ok(ctx, spmv_cg(s.plan, s.b, s.x, NULL, &result, sizeof result));
        const int64_t slack = 2 + known[k].iterations / 50;
        if (result.iterations < known[k].iterations - slack || result.iterations > known[k].iterations + slack)
            fail_msg("%s: %lld iterations, expected %lld", known[k].spec, (long long)result.iterations,
                     (long long)known[k].iterations);
        assert_true(result.true_residual <= result.tolerance && result.tolerance == 1e-8 * result.norm_b);
        assert_true(fabs(result.true_residual - result.recurrence_residual) <= 1e-3 * result.true_residual);
        assert_true(result.restarts == 0);
        assert_true(worst_error_from_ones(&s) < 1e-5);
        release(&s);
    }
}

static void single_precision(void **state)
{
    spmv_context *ctx = *state;
    struct system s = system_ones(ctx, "poisson2d:40", SPMV_F32);
    spmv_cg_options options = support_cg_options();
    options.rtol = 1e-5;
    spmv_cg_result result;
    assert_ok(ctx, spmv_cg(s.plan, s.b, s.x, &options, &result, sizeof result));
    assert_true(result.true_residual <= result.tolerance && result.iterations > 10);
    assert_true(worst_error_from_ones(&s) < 1e-2);
    /* below what single precision can reach: an error status, and a good x */
    options.rtol = 1e-12;
    assert_fails(ctx, spmv_cg(s.plan, s.b, s.x, &options, &result, sizeof result), SPMV_ERROR_STAGNATION,
                 "true residual");
    assert_true(result.true_residual < 1e-5 * result.norm_b && result.true_residual > result.tolerance);
    release(&s);
}

/* The same bits in a second solve, and on omp for any number of threads. */
static void bits_repeat(void **state)
{
    (void)state;
    double first[3] = {0};
    int64_t iterations = 0;
    const int threads[] = {1, 2, 3, 4, 4};
    for (int run = 0; run < 5; run++) {
        spmv_context *ctx = support_context_on(support_backend, threads[run]);
        struct system s = system_ones(ctx, SLOW ? "poisson2d:12" : "poisson2d:200", SPMV_F64);
        spmv_cg_result result;
        assert_ok(ctx, spmv_cg(s.plan, s.b, s.x, NULL, &result, sizeof result));
        const double now[] = {value(&s, s.x, 0), value(&s, s.x, s.n / 3), result.true_residual};
        if (run == 0) {
            memcpy(first, now, sizeof now);
            iterations = result.iterations;
        }
        assert_memory_equal(first, now, sizeof now);
        assert_true(iterations == result.iterations);
        release(&s);
        spmv_context_destroy(ctx);
    }
}

/* sqrt((x - u)'A (x - u)) for the x of the system. */
static double energy_error(const struct system *s, const double *u, double factor)
{
    spmv_csr a;
    spmv_matrix_view(s->matrix, &a);
    double *e = malloc((size_t)s->n * sizeof *e);
    long double sum = 0;
    assert_ok(s->ctx, spmv_download(s->ctx, s->x, e, s->n * 8));
    for (int64_t i = 0; i < s->n; i++)
        e[i] = e[i] / factor - u[i];
    for (int64_t i = 0; i < s->n; i++)
        for (int64_t k = row_first(&a, i); k < row_first(&a, i + 1); k++)
            sum += (long double)e[i] * ((const double *)a.val)[k] * e[a.col[k]];
    free(e);
    return (double)sqrtl(sum);
}

/* Sets b = factor A u for pseudo-random u. */
static double *random_solution(const struct system *s, double factor)
{
    double *u = malloc((size_t)s->n * sizeof *u);
    uint64_t seed = 11;
    for (int64_t i = 0; i < s->n; i++)
        u[i] = support_uniform(&seed);
    void *there = support_upload(s->ctx, u, s->n * 8);
    assert_ok(s->ctx, spmv_apply(s->plan, &factor, there, NULL, s->b));
    spmv_free(s->ctx, there);
    return u;
}

/* The estimate of the error in the energy norm, in the rungs that have one. */
static void error_estimates(void **state)
{
    spmv_context *ctx = *state;
    static const char *const specs[] = {"poisson2d:30", "diffusion2d:24,10000", "poisson3d:9"};
    static const char *const preconds[] = {"none", "jacobi", "chebyshev"};
    static const double rtols[] = {1e-2, 1e-5, 1e-8};
    const char *rung = NULL;
    for (size_t p = 0; p < sizeof specs / sizeof specs[0] && !(SLOW && p > 0); p++)
        for (int i = 0; (rung = spmv_cg_rung_name(support_backend, i)) != NULL; i++)
            for (size_t m = 0; m < (SLOW ? 1 : sizeof preconds / sizeof preconds[0]); m++) {
                struct system s = system_ones(ctx, SLOW ? "poisson2d:9" : specs[p], SPMV_F64);
                double *const u = random_solution(&s, 1);
                const bool has = strcmp(rung, "textbook") == 0 ||
                                 (strcmp(rung, "fused") == 0 && support_backend != SPMV_BACKEND_CUDA);
                spmv_csr a;
                spmv_matrix_view(s.matrix, &a);
                spmv_cg_options options = support_cg_options();
                options.zero_start = 1;
                options.rung = rung;
                assert_ok(ctx, spmv_preconditioner_create(ctx, preconds[m], &a, NULL, &options.precond));
                for (size_t t = 0; t < sizeof rtols / sizeof rtols[0]; t++) {
                    spmv_cg_result result;
                    options.rtol = rtols[t];
                    const spmv_status st = spmv_cg(s.plan, s.b, s.x, &options, &result, sizeof result);
                    if (st == SPMV_ERROR_UNSUPPORTED) /* chebyshev in some rungs */
                        break;
                    assert_int_equal(st, SPMV_OK);
                    const double error = energy_error(&s, u, 1), estimate = result.error_estimate;
                    assert_true(has ? estimate > 0.3 * error && estimate < 5 * error : estimate == -1);
                }
                spmv_preconditioner_destroy(options.precond);
                free(u);
                release(&s);
            }
}

/* The units of the estimate, and solves without one. */
static void ends_of_error_estimates(void **state)
{
    spmv_context *ctx = *state;
    struct system s = system_ones(ctx, "poisson2d:12", SPMV_F64);
    spmv_cg_options options = support_cg_options();
    options.rung = "textbook";
    options.zero_start = 1;
    spmv_cg_result result;
    double of_one = 0;
    for (int tiny = 0; tiny < 2; tiny++) { /* a solve that is scaled inside */
        const double factor = tiny ? 0x1p-700 : 1;
        double *const u = random_solution(&s, factor);
        assert_ok(ctx, spmv_cg(s.plan, s.b, s.x, &options, &result, sizeof result));
        const double error = energy_error(&s, u, factor), estimate = result.error_estimate / factor;
        assert_true(estimate > 0.3 * error && estimate < 6 * error);
        if (tiny)
            assert_true(fabs(result.error_estimate / factor - of_one) < 1e-9 * of_one);
        of_one = result.error_estimate;
        free(u);
    }
    /* a start at the solution: no step was made */
    options.zero_start = 0;
    assert_ok(ctx, spmv_cg(s.plan, s.b, s.x, &options, &result, sizeof result));
    assert_true(result.iterations == 0 && result.error_estimate == -1);
    /* b = 0: x is exact */
    assert_ok(ctx, spmv_map_index(ctx, SPMV_F64, &(const double){0}, NULL, s.b, s.n));
    assert_ok(ctx, spmv_cg(s.plan, s.b, s.x, &options, &result, sizeof result));
    assert_true(result.error_estimate == 0);
    release(&s);
}

static const int32_t diagonal_ptr[] = {0, 1, 2}, diagonal_col[] = {0, 1};

static void starts(void **state)
{
    spmv_context *ctx = *state;
    const double val[] = {2, 8}, b[] = {2, 24}, exact[] = {1, 3}, far[] = {-7, 1e3}, zero[] = {0, 0};
    const spmv_csr a = support_csr(2, 2, diagonal_ptr, diagonal_col, val);
    struct system s = system_of(ctx, &a);
    spmv_cg_result result;
    spmv_cg_options options = support_cg_options();
    assert_ok(ctx, spmv_upload(ctx, b, s.b, sizeof b));
    /* an exact start needs no iteration */
    assert_ok(ctx, spmv_upload(ctx, exact, s.x, sizeof exact));
    assert_ok(ctx, spmv_cg(s.plan, s.b, s.x, &options, &result, sizeof result));
    assert_true(result.iterations == 0 && result.true_residual == 0 && value(&s, s.x, 1) == 3);
    /* two distinct eigenvalues: two iterations from any start */
    assert_ok(ctx, spmv_upload(ctx, far, s.x, sizeof far));
    assert_ok(ctx, spmv_cg(s.plan, s.b, s.x, &options, &result, sizeof result));
    assert_true(result.iterations <= 3 && fabs(value(&s, s.x, 0) - 1) < 1e-6 && fabs(value(&s, s.x, 1) - 3) < 1e-6);
    /* zero_start: x is not read */
    const double poison[] = {NAN, INFINITY};
    assert_ok(ctx, spmv_upload(ctx, poison, s.x, sizeof poison));
    options.zero_start = 1;
    assert_ok(ctx, spmv_cg(s.plan, s.b, s.x, &options, &result, sizeof result));
    assert_true(fabs(value(&s, s.x, 0) - 1) < 1e-6);
    /* b = 0 */
    assert_ok(ctx, spmv_upload(ctx, zero, s.b, sizeof zero));
    assert_ok(ctx, spmv_cg(s.plan, s.b, s.x, &options, &result, sizeof result));
    assert_true(result.iterations == 0 && value(&s, s.x, 0) == 0 && value(&s, s.x, 1) == 0);
    /* atol alone */
    assert_ok(ctx, spmv_upload(ctx, b, s.b, sizeof b));
    options.rtol = 0;
    options.atol = 100;
    assert_ok(ctx, spmv_cg(s.plan, s.b, s.x, &options, &result, sizeof result));
    assert_true(result.iterations == 0 && result.tolerance == 100);
    release(&s);
}

static int count_calls(int64_t iteration, double residual, void *user)
{
    int64_t *calls = user;
    assert_true(iteration == *calls && residual >= 0);
    ++*calls;
    return *calls == 6;
}

static void every_failure(void **state)
{
    spmv_context *ctx = *state;
    spmv_cg_result result;
    spmv_cg_options options;
    const double b[] = {1, 1}, indefinite[] = {1, -2}, not_finite[] = {1, NAN}, good[] = {1, 2};

    spmv_csr a = support_csr(2, 2, diagonal_ptr, diagonal_col, indefinite);
    struct system s = system_of(ctx, &a);
    assert_ok(ctx, spmv_upload(ctx, b, s.b, sizeof b));
    assert_fails(ctx, spmv_cg(s.plan, s.b, s.x, NULL, &result, sizeof result), SPMV_ERROR_NOT_POSITIVE,
                 "at iteration 0");
    assert_true(value(&s, s.x, 0) == 0 && value(&s, s.x, 1) == 0 && result.true_residual == result.norm_b);
    release(&s);

    a.val = not_finite;
    s = system_of(ctx, &a);
    assert_ok(ctx, spmv_upload(ctx, b, s.b, sizeof b));
    assert_fails(ctx, spmv_cg(s.plan, s.b, s.x, NULL, &result, sizeof result), SPMV_ERROR_NOT_FINITE,
                 "A has nan in row 1, column 1 (counted from 0)");
    release(&s);

    a.val = good;
    a.cols = 3;
    s = system_of(ctx, &a);
    assert_fails(ctx, spmv_cg(s.plan, s.b, s.x, NULL, &result, sizeof result), SPMV_ERROR_NOT_SQUARE,
                 "2 rows and 3 columns");
    release(&s);

    a.cols = 2;
    s = system_of(ctx, &a);
    assert_fails(ctx, spmv_cg(s.plan, NULL, s.x, NULL, &result, sizeof result), SPMV_ERROR_ARGUMENT, "b is NULL");
    assert_fails(ctx, spmv_cg(s.plan, s.b, s.b, NULL, &result, sizeof result), SPMV_ERROR_ARGUMENT, "same array");
    spmv_cg_options_init(&options, sizeof options);
    options.rtol = -1;
    assert_fails(ctx, spmv_cg(s.plan, s.b, s.x, &options, &result, sizeof result), SPMV_ERROR_ARGUMENT, "rtol -1");
    options.size = 1;
    assert_fails(ctx, spmv_cg(s.plan, s.b, s.x, &options, &result, sizeof result), SPMV_ERROR_ARGUMENT, "options_init");
    release(&s);

    s = system_ones(ctx, "poisson2d:30", SPMV_F64);
    spmv_cg_options_init(&options, sizeof options);
    options.max_iterations = 7;
    assert_fails(ctx, spmv_cg(s.plan, s.b, s.x, &options, &result, sizeof result), SPMV_ERROR_ITERATIONS,
                 "7 iterations");
    assert_true(result.iterations == 7 && result.true_residual > result.tolerance &&
                result.true_residual < result.norm_b);
    int64_t calls = 0;
    options.on_iteration = count_calls;
    options.user = &calls;
    options.max_iterations = 0;
    options.zero_start = 1;
    assert_fails(ctx, spmv_cg(s.plan, s.b, s.x, &options, &result, sizeof result), SPMV_CANCELLED, "iteration 5");
    assert_true(calls == 6 && result.iterations >= 5); /* x may be a few iterations ahead */
    release(&s);
}

/* The iterates that a callback reads. */
struct iterates {
    spmv_context *ctx;
    int64_t n, calls, keep; /* keep: the iteration whose x is kept */
    double *x;
};

static int read_iterate(int64_t iteration, double residual, const void *x, void *user)
{
    struct iterates *seen = user;
    (void)residual;
    seen->calls++;
    return iteration == seen->keep &&
           spmv_download(seen->ctx, x, seen->x, seen->n * (int64_t)sizeof(double)) != SPMV_OK;
}

/* The x that on_iterate reads is the x of a solve that stops after as many iterations, also while
 * the solve works on scaled numbers; methods that cannot show it say so. */
static void callback_reads_iterates(void **state)
{
    spmv_context *ctx = *state;
    enum { SIDE = 12, N = SIDE * SIDE };
    struct system s = system_ones(ctx, "poisson2d:12", SPMV_F64);
    double b[N], shown[N], reached[N];
    struct iterates seen = {.ctx = ctx, .n = N, .x = shown};
    spmv_cg_options options;
    spmv_cg_result result;
    assert_ok(ctx, spmv_download(ctx, s.b, b, sizeof b));
    for (int scaled = 0; scaled < 2; scaled++) {
        for (int i = 0; i < N && scaled; i++)
            b[i] *= 0x1p-600;
        assert_ok(ctx, spmv_upload(ctx, b, s.b, sizeof b));
        for (int m = 0; m < 8 && spmv_cg_rung_name(support_backend, m) != NULL; m++) {
            const char *method = spmv_cg_rung_name(support_backend, m);
            const bool shows = strcmp(method, "textbook") == 0 ||
                               (support_backend == SPMV_BACKEND_OMP && strcmp(method, "fused") == 0);
            for (int64_t k = 0; k <= 10; k += 5) {
                spmv_cg_options_init(&options, sizeof options);
                options.rung = method;
                options.zero_start = 1;
                options.on_iterate = read_iterate;
                options.user = &seen;
                seen.calls = 0;
                seen.keep = k;
                const spmv_status st = spmv_cg(s.plan, s.b, s.x, &options, &result, sizeof result);
                if (!shows) {
                    assert_int_equal(st, SPMV_ERROR_UNSUPPORTED);
                    assert_non_null(strstr(spmv_last_error(ctx), "on_iterate"));
                    continue;
                }
                assert_ok(ctx, st);
                assert_true(seen.calls == result.iterations + 1);
                options.on_iterate = NULL;
                options.max_iterations = k;
                if (k > 0)
                    assert_int_equal(spmv_cg(s.plan, s.b, s.x, &options, &result, sizeof result),
                                     SPMV_ERROR_ITERATIONS);
                else
                    assert_ok(ctx, spmv_map_index(ctx, SPMV_F64, &(const double){0}, NULL, s.x, N));
                assert_ok(ctx, spmv_download(ctx, s.x, reached, sizeof reached));
                assert_memory_equal(shown, reached, sizeof shown);
            }
        }
        /* "auto" takes a method that shows x */
        spmv_cg_options_init(&options, sizeof options);
        options.on_iterate = read_iterate;
        options.user = &seen;
        options.zero_start = 1;
        seen.calls = 0;
        assert_ok(ctx, spmv_cg(s.plan, s.b, s.x, &options, &result, sizeof result));
        assert_true(seen.calls == result.iterations + 1);
    }
    options.inner = s.plan; /* refused for its type first */
    assert_int_equal(spmv_cg(s.plan, s.b, s.x, &options, &result, sizeof result), SPMV_ERROR_TYPE);
    release(&s);
}

/* Solves one equation a x = b from a start value. */
static spmv_status solve_one(spmv_context *ctx, double a, double b, double start, double *x, spmv_cg_result *result)
{
    static const int32_t ptr[] = {0, 1}, col[] = {0};
    const spmv_csr view = support_csr(1, 1, ptr, col, &a);
    struct system s = system_of(ctx, &view);
    assert_ok(ctx, spmv_upload(ctx, &b, s.b, sizeof b));
    assert_ok(ctx, spmv_upload(ctx, &start, s.x, sizeof start));
    const spmv_status st = spmv_cg(s.plan, s.b, s.x, NULL, result, sizeof *result);
    char sentence[256];
    snprintf(sentence, sizeof sentence, "%s", spmv_last_error(ctx));
    *x = value(&s, s.x, 0);
    release(&s);
    if (st != SPMV_OK)
        assert_non_null(strstr(sentence, isnan(b) ? "b has nan in row 0 (counted from 0)" : "at iteration"));
    return st;
}

/* Quotients beyond the type's range end with a status, never with a wrong solution; x is then the
 * start value. Squares may exceed the range. */
static void ends_of_the_range(void **state)
{
    spmv_context *ctx = *state;
    spmv_cg_result result;
    double x = 0;
    assert_int_equal(solve_one(ctx, 4, 1e200, 3, &x, &result), SPMV_OK);
    assert_true(x == 1e200 / 4 && result.iterations == 1 && fabs(result.tolerance - 1e192) < 1e178);
    assert_int_equal(solve_one(ctx, 4, NAN, 3, &x, &result), SPMV_ERROR_NOT_FINITE);
    assert_true(x == 3 && isnan(result.true_residual));
    /* 1 / 1e-310 overflows */
    assert_int_equal(solve_one(ctx, 1e-310, 1, 5, &x, &result), SPMV_ERROR_NOT_FINITE);
    assert_true(x == 5 && result.iterations == 1 && result.true_residual == 1);
    /* starts from 0, because 3 is too far away to be of use */
    assert_int_equal(solve_one(ctx, 4, 1e-200, 3, &x, &result), SPMV_OK);
    assert_true(x == 1e-200 / 4 && result.iterations == 1 && result.norm_b == 1e-200);
}

/* A tolerance below rounding errors ends with a status after a bounded number of iterations, with
 * the most exact x. */
static void tolerance_out_of_reach(void **state)
{
    spmv_context *ctx = *state;
    struct system s = system_ones(ctx, SLOW ? "poisson2d:10" : "poisson2d:30", SPMV_F64);
    spmv_cg_result result, again;
    spmv_cg_options options = support_cg_options();
    options.rtol = 0;
    const spmv_status st = spmv_cg(s.plan, s.b, s.x, &options, &result, sizeof result);
    assert_true(st == SPMV_ERROR_STAGNATION || (st == SPMV_OK && result.true_residual == 0));
    assert_true(result.true_residual < 1e-13 * result.norm_b && result.iterations < 1000);
    assert_true(worst_error_from_ones(&s) < 1e-12);
    /* a solve from there does not make x worse */
    (void)spmv_cg(s.plan, s.b, s.x, &options, &again, sizeof again);
    assert_true(again.true_residual <= result.true_residual);
    release(&s);
}

/* If the tolerance cannot be reached, a solve restarts until a restart gains nothing, reports the
 * number of restarts, and never returns an x worse than its start. For every rung, each time from
 * its previous x. */
static void nothing_gets_worse(void **state)
{
    spmv_context *ctx = *state;
    spmv_cg_options options = support_cg_options();
    options.rtol = 0;
    for (int i = 0; (options.rung = spmv_cg_rung_name(support_backend, i)) != NULL; i++) {
        struct system s = system_ones(ctx, SLOW ? "poisson2d:7" : "poisson2d:30", SPMV_F64);
        double *b = malloc((size_t)s.n * sizeof *b), before = INFINITY;
        int64_t restarts = 0;
        uint64_t seed = 17;
        for (int64_t j = 0; j < s.n; j++) /* so that no x of this type is exact */
            b[j] = support_uniform(&seed);
        assert_ok(ctx, spmv_upload(ctx, b, s.b, s.n * 8));
        for (int solve = 0; solve < (SLOW ? 4 : 12); solve++) {
            spmv_cg_result result;
            const spmv_status st = spmv_cg(s.plan, s.b, s.x, &options, &result, sizeof result);
            if (st != SPMV_ERROR_STAGNATION)
                fail_msg("%s: %s (%s)", options.rung, spmv_status_name(st), spmv_last_error(ctx));
            if (!(result.true_residual <= before) || result.true_residual > 1e-12 * result.norm_b)
                fail_msg("%s: a true residual of %g, after %g", options.rung, result.true_residual, before);
            before = result.true_residual;
            restarts += result.restarts;
        }
        assert_true(restarts >= 1);
        free(b);
        release(&s);
    }
}

/* An entry a_ij without its a_ji is detected at every position. */
static void one_entry_alone(void **state)
{
    enum { N = 16 };
    spmv_context *ctx = *state;
    spmv_cg_options options = support_cg_options();
    options.symmetry_check = SPMV_SYMMETRY_SAMPLED;
    options.max_iterations = 1;
    int found = 0, places = 0;
    for (int32_t i = 0; i < N; i++)
        for (int32_t j = i + 1; j < N; j++) {
            int32_t row_ptr[N + 1] = {0}, col[N + 1], k = 0;
            double val[N + 1];
            for (int32_t row = 0; row < N; row++) {
                col[k] = row;
                val[k++] = 4;
                if (row == i) {
                    col[k] = j;
                    val[k++] = 1;
                }
                row_ptr[row + 1] = k;
            }
            const spmv_csr a = support_csr(N, N, row_ptr, col, val);
            struct system s = system_of(ctx, &a);
            found += spmv_cg(s.plan, s.b, s.x, &options, NULL, 0) == SPMV_ERROR_NOT_SYMMETRIC;
            places++;
            release(&s);
        }
    assert_int_equal(found, places);
}

/* 0 x 0 and 1 x 1. */
static void tiny_systems(void **state)
{
    spmv_context *ctx = *state;
    const int32_t ptr[] = {0, 1}, col[] = {0};
    const double val[] = {4}, b[] = {2};
    spmv_csr a = support_csr(1, 1, ptr, col, val);
    struct system s = system_of(ctx, &a);
    spmv_cg_result result;
    assert_ok(ctx, spmv_upload(ctx, b, s.b, sizeof b));
    assert_ok(ctx, spmv_cg(s.plan, s.b, s.x, NULL, &result, sizeof result));
    assert_true(result.iterations == 1 && value(&s, s.x, 0) == 0.5);
    release(&s);
    a = support_csr(0, 0, ptr, col, val);
    s = system_of(ctx, &a);
    int64_t calls = 0;
    spmv_cg_options options = support_cg_options();
    options.on_iteration = count_calls;
    options.user = &calls;
    assert_ok(ctx, spmv_cg(s.plan, s.b, s.x, &options, &result, sizeof result));
    assert_true(result.iterations == 0 && calls == 1);
    release(&s);
}

/* "brief": small vectors, and systems of a few rows */
SUPPORT_MAIN_OR_BRIEF((with_context(vector_operations), with_context(every_failure), with_context(tiny_systems)),
                      with_context(vector_operations), with_context(vector_operations_single),
                      with_context(poisson_as_others_solve_it), with_context(single_precision),
                      cmocka_unit_test(bits_repeat), with_context(starts), with_context(error_estimates),
                      with_context(ends_of_error_estimates), with_context(callback_reads_iterates),
                      with_context(every_failure), with_context(ends_of_the_range),
                      with_context(tolerance_out_of_reach), with_context(nothing_gets_worse),
                      with_context(one_entry_alone), with_context(tiny_systems))

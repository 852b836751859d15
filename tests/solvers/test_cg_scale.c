/* Conjugate gradients with numbers far from 1. A power of two in A or b changes no digit of the
 * result and no count, even where squares would exceed the type's range. Also what is reported for
 * a tolerance, a limit and a failure then.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "tests/support/support_cg.h"
#include "tests/support/support_slow.h"
#include "tests/support/support_types.h"

#define SPEC (SLOW ? "poisson2d:5" : "poisson2d:30")
enum { N = SLOW ? 25 : 900 };

/* A system whose matrix is 2^a times a generated one. */
struct system {
    spmv_context *ctx;
    spmv_type type;
    spmv_matrix *matrix;
    spmv_csr a;
    void *val;
    spmv_plan *plan;
    void *b, *x;
};

static struct system make(spmv_context *ctx, spmv_type type, int exponent)
{
    struct system s = {.ctx = ctx, .type = type};
    const int64_t size = (int64_t)spmv_type_size(type);
    assert_ok(ctx, spmv_matrix_generate(ctx, SPEC, type, &s.matrix));
    spmv_matrix_view(s.matrix, &s.a);
    assert_int_equal(s.a.rows, N);
    s.val = malloc((size_t)(s.a.nnz * size));
    for (int64_t k = 0; k < s.a.nnz; k++)
        put(type, s.val, k, ldexp((double)element(type, s.a.val, k).re, exponent), 0);
    s.a.val = s.val;
    assert_ok(ctx, spmv_plan_create(ctx, &s.a, NULL, &s.plan));
    void *zeros = calloc(N, (size_t)size);
    s.b = support_upload(ctx, zeros, N * size);
    s.x = support_upload(ctx, zeros, N * size);
    free(zeros);
    return s;
}

static void release(struct system *s)
{
    support_free_in(s->ctx, s->b, s->x);
    spmv_plan_destroy(s->plan);
    spmv_matrix_destroy(s->matrix);
    free(s->val);
}

/* Integers over 1024, times 2^exponent: exact in both types. */
static void set(const struct system *s, void *vector, uint64_t seed, int exponent)
{
    double v[N];
    for (int64_t i = 0; i < N; i++)
        put(s->type, v, i, ldexp((double)(int)(support_uniform(&seed) * 1024) + 1, exponent - 10), 0);
    assert_ok(s->ctx, spmv_upload(s->ctx, v, vector, N * (int64_t)spmv_type_size(s->type)));
}

/* x = 2^-exponent times the result of the solve */
static void read_scaled(const struct system *s, int exponent, double *x)
{
    double v[N];
    assert_ok(s->ctx, spmv_download(s->ctx, s->x, v, N * (int64_t)spmv_type_size(s->type)));
    for (int64_t i = 0; i < N; i++)
        x[i] = ldexp((double)element(s->type, v, i).re, -exponent);
}

/* ||b - A x|| and ||b|| in long double. */
static long double residual_of(const struct system *s, long double *norm_b)
{
    double b[N], x[N];
    const int64_t bytes = N * (int64_t)spmv_type_size(s->type), *row_ptr = s->a.row_ptr;
    long double square = 0, square_b = 0;
    assert_int_equal(s->a.row_ptr_bits, 64);
    assert_ok(s->ctx, spmv_download(s->ctx, s->b, b, bytes));
    assert_ok(s->ctx, spmv_download(s->ctx, s->x, x, bytes));
    for (int64_t i = 0; i < N; i++) {
        long double r = element(s->type, b, i).re;
        square_b += r * r;
        for (int64_t k = row_ptr[i]; k < row_ptr[i + 1]; k++)
            r -= element(s->type, s->val, k).re * element(s->type, x, s->a.col[k]).re;
        square += r * r;
    }
    *norm_b = sqrtl(square_b);
    return sqrtl(square);
}

struct told {
    int64_t calls;
    double first, last;
};

static int tell(int64_t iteration, double residual, void *user)
{
    struct told *told = user;
    if (iteration == 0)
        told->first = residual;
    told->last = residual;
    told->calls++;
    return 0;
}

/* ------------------------------------------------------------------- one side */

/* The rung persistent also adds squares of A r, which lose digits in f32 if A is this small. */
static bool sums_lose_digits(const spmv_cg_options *options, spmv_type type, int a)
{
    return strcmp(options->rung, "persistent") == 0 && type == SPMV_F32 && a < -45;
}

/* With A scaled by 2^a, and b and the start by 2^b, x is scaled by 2^(b - a). */
static void powers_of_two_change_nothing(void **state)
{
    static const struct {
        spmv_type type;
        int a, b;
    } cases[] = {
        {SPMV_F32, 0, -66},   {SPMV_F32, 0, -100},    {SPMV_F32, 0, 60},     {SPMV_F32, 0, 100},  {SPMV_F32, -40, -40},
        {SPMV_F32, -53, -53}, {SPMV_F32, -20, 0},     {SPMV_F32, 40, 0},     {SPMV_F64, 0, -525}, {SPMV_F64, 0, -800},
        {SPMV_F64, 0, 600},   {SPMV_F64, -200, -200}, {SPMV_F64, 300, -300},
    };
    spmv_context *ctx = *state;
    spmv_cg_options options;
    for (int i = 0; with_rung(i, &options); i++)
        for (size_t c = 0; c < sizeof cases / sizeof *cases; c++)
            for (int started = SLOW ? (int)c % 2 : 0; started < (SLOW ? (int)c % 2 + 1 : 2); started++) {
                double x[2][N];
                spmv_cg_result result[2];
                struct told told[2] = {{0}};
                for (int moved = 0; moved < 2; moved++) {
                    const int a = moved ? cases[c].a : 0, b = moved ? cases[c].b : 0;
                    struct system s = make(ctx, cases[c].type, a);
                    long double norm_b = 0;
                    set(&s, s.b, 7, b);
                    set(&s, s.x, 8, b - a);
                    options.zero_start = !started;
                    options.rtol = cases[c].type == SPMV_F32 ? 1e-5 : 1e-10;
                    options.on_iteration = tell;
                    options.user = &told[moved];
                    assert_ok(ctx, spmv_cg(s.plan, s.b, s.x, &options, &result[moved], sizeof *result));
                    read_scaled(&s, b - a, x[moved]);
                    const long double residual = residual_of(&s, &norm_b);
                    assert_true(fabsl(result[moved].norm_b - norm_b) <= 1e-5L * norm_b);
                    assert_true(fabsl(result[moved].tolerance - options.rtol * norm_b) <=
                                1e-5L * options.rtol * norm_b);
                    assert_true(residual <= 1.01L * options.rtol * norm_b);
                    /* the residual is calculated in f32, so it has rounding errors of f32 */
                    assert_true(fabsl(result[moved].true_residual - residual) <= 0.2L * options.rtol * norm_b);
                    assert_true(result[moved].true_residual <= result[moved].tolerance);
                    told[moved].first = ldexp(told[moved].first, -b);
                    told[moved].last = ldexp(told[moved].last, -b);
                    release(&s);
                }
                if (result[0].iterations != result[1].iterations || result[0].restarts != result[1].restarts)
                    fail_msg("%s, case %zu: %lld and %lld iterations", options.rung, c, (long long)result[0].iterations,
                             (long long)result[1].iterations);
                if (sums_lose_digits(&options, cases[c].type, cases[c].a))
                    continue; /* but the checks of the residual hold */
                if (memcmp(x[0], x[1], sizeof *x) != 0)
                    fail_msg("%s, case %zu: x differs", options.rung, c);
                if (told[0].first != told[1].first || told[0].last != told[1].last)
                    fail_msg("%s, case %zu: told of %.17g ... %.17g and %.17g ... %.17g", options.rung, c,
                             told[0].first, told[0].last, told[1].first, told[1].last);
            }
}

/* A b whose squares underflow, and atol: x = 0 is accepted or not. */
static void absolute_tolerance(void **state)
{
    spmv_context *ctx = *state;
    spmv_cg_options options;
    spmv_cg_result result;
    for (int i = 0; with_rung(i, &options); i++) {
        struct system s = make(ctx, SPMV_F64, 0);
        long double norm_b = 0;
        set(&s, s.b, 7, -700);
        options.zero_start = 1;
        options.atol = ldexp(1, -600);
        assert_ok(ctx, spmv_cg(s.plan, s.b, s.x, &options, &result, sizeof result));
        const long double residual = residual_of(&s, &norm_b);
        assert_true(result.iterations == 0 && residual == norm_b && result.tolerance == options.atol);
        assert_true(fabsl(result.true_residual - norm_b) <= 1e-14L * norm_b);
        options.atol = ldexp(1, -710);
        assert_ok(ctx, spmv_cg(s.plan, s.b, s.x, &options, &result, sizeof result));
        assert_true(result.iterations > 0 && result.tolerance == options.atol);
        assert_true(residual_of(&s, &norm_b) <= 1.01L * options.atol);
        release(&s);
    }
}

/* Two right-hand sides, one so small that the squares of its residuals underflow: it counts as
 * solved only if x = 0 solves it. */
static void one_of_several(void **state)
{
    spmv_context *ctx = *state;
    struct system s = make(ctx, SPMV_F32, 0);
    spmv_cg_options options;
    spmv_plan_options plan_options;
    spmv_plan *plan = NULL;
    spmv_cg_result result[2];
    float b[2 * N], x[2 * N];
    double square = 0;
    spmv_plan_options_init(&plan_options, sizeof plan_options);
    plan_options.vectors = 2;
    assert_ok(ctx, spmv_plan_create(ctx, &s.a, &plan_options, &plan));
    for (int i = 0; i < N; i++) {
        b[2 * i] = 1 + (float)(i % 7);
        b[2 * i + 1] = ldexpf(b[2 * i], -60);
        square += (double)b[2 * i] * b[2 * i];
    }
    void *const there_b = support_upload(ctx, b, sizeof b), *const there_x = support_upload(ctx, b, sizeof b);
    spmv_cg_options_init(&options, sizeof options);
    options.zero_start = 1;
    options.rtol = 1e-5;
    for (int allowed = 0; allowed < 2; allowed++) {
        options.atol = allowed ? ldexp(1, -40) : 0;
        const spmv_status st = spmv_cg(plan, there_b, there_x, &options, result, sizeof *result);
        assert_int_equal(st, allowed ? SPMV_OK : SPMV_ERROR_STAGNATION);
        assert_true(allowed || strstr(spmv_last_error(ctx), "right-hand side 2 of 2") != NULL);
        assert_true(allowed || strstr(spmv_last_error(ctx), "scale b") != NULL);
        assert_true(result[0].status == SPMV_OK && result[0].true_residual <= result[0].tolerance);
        assert_true(result[1].status == st && result[1].iterations == 0);
        assert_true(fabs(result[1].norm_b - ldexp(sqrt(square), -60)) <= 1e-6 * result[1].norm_b);
        assert_true(result[1].true_residual == result[1].norm_b);
        assert_ok(ctx, spmv_download(ctx, there_x, x, sizeof x));
        for (int i = 0; i < N; i++)
            assert_true(x[2 * i] > 0 && x[2 * i + 1] == 0);
    }
    support_free_in(ctx, there_b, there_x);
    spmv_plan_destroy(plan);
    release(&s);
}

/* Messages and results of a failed solve are in the caller's units. */
static void failures_in_the_callers_units(void **state)
{
    spmv_context *ctx = *state;
    spmv_cg_options options;
    spmv_cg_result result, scaled;
    char sentence[2][200];
    for (int i = 0; with_rung(i, &options); i++) {
        options.max_iterations = 3;
        for (int moved = 0; moved < 2; moved++) {
            struct system s = make(ctx, SPMV_F64, 0);
            long double norm_b = 0;
            set(&s, s.b, 7, moved ? -800 : 0);
            const spmv_status st = spmv_cg(s.plan, s.b, s.x, &options, moved ? &scaled : &result, sizeof result);
            assert_int_equal(st, SPMV_ERROR_ITERATIONS);
            snprintf(sentence[moved], sizeof *sentence, "%s", spmv_last_error(ctx));
            assert_true(fabsl((moved ? scaled : result).true_residual - residual_of(&s, &norm_b)) <= 1e-12L * norm_b);
            release(&s);
        }
        /* the residual of x may be summed in another order */
        assert_int_equal(scaled.iterations, 3);
        assert_true(fabs(ldexp(scaled.true_residual, 800) - result.true_residual) <= 1e-12 * result.true_residual);
        assert_true(ldexp(scaled.recurrence_residual, 800) == result.recurrence_residual);
        char expected[200];
        snprintf(expected, sizeof expected, "spmv_cg: the residual is %.3g after 3 iterations; the tolerance is %.3g",
                 scaled.recurrence_residual, scaled.tolerance);
        assert_string_equal(sentence[1], expected);
        assert_string_not_equal(sentence[0], expected);
    }
}

/* NaN is detected whatever the scale of the other numbers. */
static void not_a_number(void **state)
{
    spmv_context *ctx = *state;
    spmv_cg_options options;
    spmv_cg_result result;
    const double bad = NAN;
    for (int i = 0; with_rung(i, &options); i++)
        for (int in_b = 0; in_b < 2; in_b++) {
            struct system s = make(ctx, SPMV_F64, 0);
            set(&s, s.b, 7, -800);
            assert_ok(ctx, spmv_upload(ctx, &bad, in_b ? s.b : s.x, sizeof bad));
            assert_int_equal(spmv_cg(s.plan, s.b, s.x, &options, &result, sizeof result), SPMV_ERROR_NOT_FINITE);
            release(&s);
        }
}

/* A solution outside the type's range: the status reports it, and x is 0 or the start, never
 * infinity. */
static void solutions_out_of_range(void **state)
{
    static const struct {
        const char *name;
        spmv_type type;
        double a, b;
        const char *words;
    } cases[] = {
        {"1e600", SPMV_F64, 1e-300, 1e300, "1e+600"},
        {"-1e600", SPMV_F64, 1e-300, -1e300, "1e+600"},
        {"1e310 without a scale", SPMV_F64, 1e-300, 1e10, "range of f64"},
        {"1e60", SPMV_F32, 1e-30, 1e30, "1e+60"},
        {"1e40", SPMV_F32, 1e-30, 1e10, "range of f32"},
    };
    spmv_context *ctx = *state;
    spmv_cg_options options;
    for (int i = 0; with_rung(i, &options); i++)
        for (size_t c = 0; c < sizeof cases / sizeof *cases; c++)
            for (int columns = 1; columns < 3; columns++) {
                enum { ROWS = 3 };
                const int32_t row_ptr[ROWS + 1] = {0, 1, 2, 3}, col[ROWS] = {0, 1, 2};
                double val[ROWS], b[2 * ROWS], x[2 * ROWS];
                spmv_plan_options plan_options;
                spmv_cg_result result[2];
                spmv_plan *plan = NULL;
                const spmv_type type = cases[c].type;
                const int64_t bytes = ROWS * columns * (int64_t)spmv_type_size(type);
                for (int k = 0; k < ROWS; k++)
                    put(type, val, k, cases[c].a, 0);
                for (int k = 0; k < ROWS * columns; k++)
                    put(type, b, k, cases[c].b, 0);
                spmv_csr a = support_csr(ROWS, ROWS, row_ptr, col, val);
                a.type = type;
                spmv_plan_options_init(&plan_options, sizeof plan_options);
                plan_options.vectors = columns;
                assert_ok(ctx, spmv_plan_create(ctx, &a, &plan_options, &plan));
                void *const there_b = support_upload(ctx, b, bytes), *const there_x = support_upload(ctx, b, bytes);
                options.zero_start = 1;
                const spmv_status st = spmv_cg(plan, there_b, there_x, &options, result, sizeof *result);
                const char *sentence = spmv_last_error(ctx);
                if (columns == 2 && st == SPMV_ERROR_UNSUPPORTED) {
                    /* the rung takes one right-hand side only */
                    spmv_plan_destroy(plan);
                    support_free_in(ctx, there_b, there_x);
                    continue;
                }
                if (st != SPMV_ERROR_NOT_FINITE ||
                    (columns == 1 && strstr(sentence, cases[c].words) == NULL && strstr(sentence, "p'Ap") == NULL))
                    fail_msg("%s by %s, %d columns: %s (%s)", cases[c].name, options.rung, columns,
                             spmv_status_name(st), sentence);
                assert_true(result[0].status == st);
                assert_ok(ctx, spmv_download(ctx, there_x, x, bytes));
                for (int k = 0; k < ROWS * columns; k++)
                    if ((double)element(type, x, k).re != 0)
                        fail_msg("%s by %s: x[%d] is %g", cases[c].name, options.rung, k,
                                 (double)element(type, x, k).re);
                if (columns == 1 && strstr(cases[c].words, "1e+") != NULL)
                    assert_true(result[0].true_residual == result[0].norm_b && isfinite(result[0].norm_b));
                spmv_plan_destroy(plan);
                support_free_in(ctx, there_b, there_x);
            }
}

/* ------------------------------------------------------- inner iterations in f32 */

/* The number of iterations does not depend on the scale of M. */
static void inner_with_preconditioners(void **state)
{
    spmv_context *ctx = *state;
    spmv_cg_options options;
    const double rtol = SLOW ? 1e-8 : 1e-11; /* both need corrections in f64 */
    for (int i = 0; with_rung(i, &options); i++)
        for (int p = 0; spmv_preconditioner_name(p) != NULL; p++) {
            /* an emulated GPU: a third of the pairs, with every rung and every preconditioner */
            if (SLOW && (i + p) % 3 != 0)
                continue;
            int64_t iterations = -1;
            for (int exponent = -40; exponent <= 40; exponent += SLOW ? 80 : 20) {
                struct system s = make(ctx, SPMV_F64, exponent), narrow = make(ctx, SPMV_F32, exponent);
                spmv_cg_result result;
                long double norm_b = 0;
                options.precond = NULL;
                spmv_status st =
                    spmv_preconditioner_create(ctx, spmv_preconditioner_name(p), &narrow.a, NULL, &options.precond);
                if (st == SPMV_OK) {
                    set(&s, s.b, 7, exponent);
                    options.zero_start = 1;
                    options.rtol = rtol;
                    options.inner = narrow.plan;
                    st = spmv_cg(s.plan, s.b, s.x, &options, &result, sizeof result);
                }
                if (st != SPMV_ERROR_UNSUPPORTED) {
                    /* else this rung does not support it */
                    if (st != SPMV_OK)
                        fail_msg("%s with %s at 2^%d: %s", options.rung, spmv_preconditioner_name(p), exponent,
                                 spmv_last_error(ctx));
                    assert_true(residual_of(&s, &norm_b) <= 1.01L * rtol * norm_b);
                    assert_true(iterations < 0 || iterations == result.iterations);
                    iterations = result.iterations;
                }
                spmv_preconditioner_destroy(options.precond);
                release(&narrow);
                release(&s);
            }
        }
}

/* With any iteration limit, the status says whether x meets the tolerance. */
static void the_limit_and_the_tolerance(void **state)
{
    spmv_context *ctx = *state;
    struct system s = make(ctx, SPMV_F64, 0), narrow = make(ctx, SPMV_F32, 0);
    spmv_cg_options options;
    spmv_cg_result result;
    int solved = 0, stopped = 0;
    spmv_cg_options_init(&options, sizeof options);
    options.zero_start = 1;
    options.inner = narrow.plan;
    set(&s, s.b, 7, 0);
    assert_ok(ctx, spmv_cg(s.plan, s.b, s.x, &options, &result, sizeof result));
    const int64_t needed = result.iterations;
    for (options.max_iterations = needed / 2 + 1; options.max_iterations <= needed; options.max_iterations++) {
        const spmv_status st = spmv_cg(s.plan, s.b, s.x, &options, &result, sizeof result);
        const bool good = result.true_residual <= result.tolerance;
        assert_int_equal(st, good ? SPMV_OK : SPMV_ERROR_ITERATIONS);
        solved += good;
        stopped += !good;
    }
    assert_true(solved > 0 && stopped > 0);
    release(&narrow);
    release(&s);
}

/* ------------------------------------------------------------- preconditioners */

/* M = I for a number of calls, then a failure. */
struct failing {
    spmv_context *ctx;
    int64_t rows;
    int left;
    spmv_status with;
};

static spmv_status fail_later(void *self, const void *r, void *z)
{
    struct failing *f = self;
    if (f->left-- <= 0)
        return f->with;
    return spmv_map(f->ctx, SPMV_MAP_COPY, SPMV_F64, r, z, f->rows);
}

/* The calls after which the preconditioner fails late. On cuda the steps are a graph, so apply is
 * called only before the first step and while the step is captured. */
static int late_call(const spmv_context *ctx)
{
    return spmv_context_backend(ctx) == SPMV_BACKEND_CUDA ? 1 : 7;
}

static const spmv_preconditioner_class failing_class = {
    .size = sizeof failing_class, .name = "failing", .apply = fail_later};

/* A preconditioner that fails: the report describes the current x, for one right-hand side and for
 * two. */
static void preconditioner_gives_up(void **state)
{
    spmv_context *ctx = *state;
    for (int late = 0; late < 2; late++) {
        const int calls = late ? late_call(ctx) : 0;
        struct system s = make(ctx, SPMV_F64, 0);
        struct failing self = {ctx, N, calls, SPMV_ERROR_NOT_FINITE};
        spmv_cg_options options;
        spmv_cg_result result;
        long double norm_b = 0;
        spmv_cg_options_init(&options, sizeof options);
        options.zero_start = 1;
        assert_ok(ctx, spmv_preconditioner_wrap(ctx, SPMV_F64, N, &failing_class, &self, &options.precond));
        set(&s, s.b, 7, 0);
        assert_int_equal(spmv_cg(s.plan, s.b, s.x, &options, &result, sizeof result), SPMV_ERROR_NOT_FINITE);
        assert_string_equal(spmv_last_error(ctx), "");
        assert_true(fabsl(result.true_residual - residual_of(&s, &norm_b)) <= 1e-12L * norm_b);
        assert_true(result.true_residual > 0);
        spmv_preconditioner_destroy(options.precond);
        release(&s);
    }
}

/* A preconditioner that fails while the right-hand side is scaled: x is the current iterate in the
 * caller's units. */
static void preconditioner_ends_a_scaled_solve(void **state)
{
    spmv_context *ctx = *state;
    for (int late = 0; late < 2; late++) {
        const int calls = late ? late_call(ctx) : 0;
        double x[2][N];
        for (int moved = 0; moved < 2; moved++) {
            struct system s = make(ctx, SPMV_F64, 0);
            struct failing self = {ctx, N, calls, SPMV_ERROR_MEMORY};
            spmv_cg_options options = support_cg_options();
            spmv_cg_result result;
            assert_ok(ctx, spmv_preconditioner_wrap(ctx, SPMV_F64, N, &failing_class, &self, &options.precond));
            set(&s, s.b, 7, moved ? -800 : 0);
            set(&s, s.x, 9, moved ? -800 : 0);
            assert_int_equal(spmv_cg(s.plan, s.b, s.x, &options, &result, sizeof result), SPMV_ERROR_MEMORY);
            assert_true(self.left < 0);
            read_scaled(&s, moved ? -800 : 0, x[moved]);
            spmv_preconditioner_destroy(options.precond);
            release(&s);
        }
        assert_memory_equal(x[0], x[1], sizeof x[0]);
    }
}

/* A preconditioner object that does nothing is accepted by every rung. */
static void no_preconditioner(void **state)
{
    spmv_context *ctx = *state;
    spmv_cg_options options;
    for (int i = 0; with_rung(i, &options); i++) {
        struct system s = make(ctx, SPMV_F64, 0);
        spmv_cg_result result[2];
        double x[2][N];
        for (int object = 0; object < 2; object++) {
            options.zero_start = 1;
            set(&s, s.b, 7, 0);
            if (object)
                assert_ok(ctx, spmv_preconditioner_create(ctx, "none", &s.a, NULL, &options.precond));
            assert_ok(ctx, spmv_cg(s.plan, s.b, s.x, &options, &result[object], sizeof *result));
            assert_string_equal(result[object].rung, options.rung);
            assert_string_equal(result[object].precond, "none");
            read_scaled(&s, 0, x[object]);
        }
        assert_memory_equal(x[0], x[1], sizeof *x);
        assert_int_equal(result[0].iterations, result[1].iterations);
        spmv_preconditioner_destroy(options.precond);
        release(&s);
    }
}

/* "brief": a few solves of each kind that the rungs scale, stop early or refuse */
SUPPORT_MAIN_OR_BRIEF((with_context(absolute_tolerance), with_context(not_a_number), with_context(no_preconditioner)),
                      with_context(powers_of_two_change_nothing), with_context(absolute_tolerance),
                      with_context(one_of_several), with_context(failures_in_the_callers_units),
                      with_context(solutions_out_of_range), with_context(not_a_number),
                      with_context(inner_with_preconditioners), with_context(the_limit_and_the_tolerance),
                      with_context(preconditioner_gives_up), with_context(preconditioner_ends_a_scaled_solve),
                      with_context(no_preconditioner))

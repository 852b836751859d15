/* direct under "auto" (solver_direct.c): where iterations take much longer, after a failure, for other right-hand sides and
 * new values; not where it is slower, and not without modules.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>

#include "core/runtime.h"
#include "formats/matrix_internal.h"
#include "solvers/solver_internal.h"
#include "tests/support/support.h"
#include "tests/support/support_module.h"
#include "tests/support/support_slow.h"

struct system {
    spmv_matrix *matrix;
    spmv_csr a;
    double *val, *known, *x;
    void *b, *there;
};

/* A generated matrix with `shift` subtracted from its diagonal; b = A known. */
static struct system open_system(spmv_context *ctx, const char *spec, double shift)
{
    struct system s = {0};
    assert_ok(ctx, spmv_matrix_generate(ctx, spec, SPMV_F64, &s.matrix));
    spmv_matrix_view(s.matrix, &s.a);
    s.val = support_zeros(s.a.nnz, 8);
    s.known = support_zeros(s.a.rows, 8);
    s.x = support_zeros(s.a.rows, 8);
    double *const b = support_zeros(s.a.rows, 8);
    for (int64_t i = 0; i < s.a.rows; i++)
        s.known[i] = cos((double)i);
    for (int64_t i = 0; i < s.a.rows; i++)
        for (int64_t k = row_first(&s.a, i); k < row_first(&s.a, i + 1); k++) {
            const bool negative = shift > 0 && k == s.a.nnz - 1; /* minres begins, without a preconditioner */
            s.val[k] = negative ? -1 : real_at(s.a.type, s.a.val, k) - (s.a.col[k] == i ? shift : 0);
            b[i] += s.val[k] * s.known[s.a.col[k]];
        }
    s.a.val = s.val;
    s.b = support_upload(ctx, b, 8 * s.a.rows);
    s.there = support_upload(ctx, s.x, 8 * s.a.rows);
    free(b);
    return s;
}

static void close_system(spmv_context *ctx, struct system *s)
{
    support_free_in(ctx, s->b, s->there);
    support_free(s->val, s->known, s->x);
    spmv_matrix_destroy(s->matrix);
}

static spmv_solver *open_solver(spmv_context *ctx, const struct system *s)
{
    spmv_solver *solver = NULL;
    spmv_solver_options o;
    spmv_solver_options_init(&o, sizeof o);
    o.zero_start = 1;
    assert_ok(ctx, spmv_solver_create(ctx, &s->a, &o, &solver));
    return solver;
}

/* Solves, and checks x within this error. */
static spmv_solver_result solve(spmv_context *ctx, spmv_solver *solver, const struct system *s, double error)
{
    spmv_solver_result r;
    assert_ok(ctx, spmv_solver_solve(solver, s->b, s->there, &r, sizeof r));
    assert_true(r.true_residual <= r.tolerance);
    assert_ok(ctx, spmv_download(ctx, s->there, s->x, 8 * s->a.rows));
    for (int64_t i = 0; i < s->a.rows; i++)
        if (!(fabs(s->x[i] - s->known[i]) <= error))
            fail_msg("%s, %s: x[%lld] is %.17g, not %.17g", r.solver, r.why_solver, (long long)i, s->x[i], s->known[i]);
    return r;
}

/* An indefinite grid, on which minres takes more than 2000 iterations. */
#define INDEFINITE "poisson2d:120"
static const double SHIFT = 0.2;

static void takes_direct(void **state)
{
    spmv_context *ctx = *state;
    struct system s = open_system(ctx, INDEFINITE, SHIFT), new = open_system(ctx, INDEFINITE, 0.21);
    spmv_solver *const solver = open_solver(ctx, &s);
    spmv_solver_info info;
    const spmv_solver_result first = solve(ctx, solver, &s, 1e-6);
    assert_string_equal(first.solver, "direct");
    assert_non_null(strstr(first.why_solver, "found while solving"));
    assert_true(strstr(first.why_solver, "MUMPS") != NULL || strstr(first.why_solver, "UMFPACK") != NULL ||
                strstr(first.why_solver, "KLU") != NULL);
    assert_true(first.iterations < 1500);
    /* the factors stay */
    assert_int_equal(solve(ctx, solver, &s, 1e-9).iterations, 1);
    assert_ok(ctx, spmv_solver_describe(solver, &info, sizeof info));
    assert_string_equal(info.solver, "direct");
    assert_true(info.bytes > 8 * 100000); /* of the factors */
    /* other values: others */
    assert_ok(ctx, spmv_solver_update_values(solver, new.val));
    const spmv_solver_result renewed = solve(ctx, solver, &new, 1e-9);
    assert_string_equal(renewed.solver, "direct");
    assert_int_equal(renewed.iterations, 1);
    /* the same bits */
    spmv_solver *const again = open_solver(ctx, &s);
    double *const x = support_zeros(s.a.rows, 8);
    solve(ctx, again, &s, 1e-6);
    memcpy(x, s.x, 8 * (size_t)s.a.rows);
    spmv_solver *const third = open_solver(ctx, &s);
    assert_int_equal(solve(ctx, third, &s, 1e-6).iterations, first.iterations);
    assert_memory_equal(x, s.x, 8 * (size_t)s.a.rows);
    spmv_solver_destroy(again);
    spmv_solver_destroy(third);
    spmv_solver_destroy(solver);
    free(x);
    close_system(ctx, &s);
    close_system(ctx, &new);
}

/* A grid on which cg ends soon. */
static void leaves_it(void **state)
{
    spmv_context *ctx = *state;
    struct system s = open_system(ctx, "poisson2d:60", 0);
    spmv_solver *const solver = open_solver(ctx, &s);
    assert_string_equal(solve(ctx, solver, &s, 1e-4).solver, "cg");
    spmv_solver_destroy(solver);
    close_system(ctx, &s);
}

/* With digits of x wanted, cg ends soon, but corrections that take longer than factors are made by those. */
static void corrects_by_factors(void **state)
{
    spmv_context *ctx = *state;
    struct system s = open_system(ctx, "poisson2d:40", 0);
    spmv_solver *solver = NULL;
    spmv_solver_options o;
    spmv_solver_options_init(&o, sizeof o);
    o.zero_start = 1;
    o.accuracy = 10;
    assert_ok(ctx, spmv_solver_create(ctx, &s.a, &o, &solver));
    assert_string_equal(solve(ctx, solver, &s, 1e-10).solver, "cg");
    assert_false(solver_direct_corrects(solver, 1)); /* nanoseconds */
    assert_true(solver_direct_corrects(solver, 1e9));
    const spmv_solver_result r = solve(ctx, solver, &s, 1e-10);
    assert_string_equal(r.solver, "direct");
    assert_string_equal(r.precond, "none");
    assert_non_null(strstr(r.why_solver, "would take longer"));
    assert_true(r.forward_error >= 0 && r.forward_error <= 1e-10);
    /* no factors of the last values */
    assert_ok(ctx, spmv_solver_update_values(solver, s.val));
    assert_string_equal(solve(ctx, solver, &s, 1e-10).solver, "cg");
    spmv_solver_destroy(solver);
    close_system(ctx, &s);
}

/* Complex, its own transpose: cocg begins, and direct goes on. */
static void takes_direct_from_cocg(void **state)
{
    spmv_context *ctx = *state;
    struct system s = open_system(ctx, INDEFINITE, SHIFT);
    const int64_t n = s.a.rows;
    double *const val = support_zeros(2 * s.a.nnz, 8), *const x = support_zeros(2 * n, 8),
                  *const b = support_zeros(2 * n, 8);
    for (int64_t i = 0; i < n; i++)
        for (int64_t k = row_first(&s.a, i); k < row_first(&s.a, i + 1); k++) {
            val[2 * k] = s.val[k];
            val[2 * k + 1] = s.a.col[k] == i ? 1e-3 : 0;
            b[2 * i] += val[2 * k] * s.known[s.a.col[k]];
            b[2 * i + 1] += val[2 * k + 1] * s.known[s.a.col[k]];
        }
    spmv_csr a = s.a;
    a.val = val;
    a.type = SPMV_C128;
    spmv_solver_options o;
    spmv_solver_options_init(&o, sizeof o);
    o.zero_start = 1;
    spmv_solver_result r[2];
    void *const of_b = support_upload(ctx, b, 16 * n), *const there = support_upload(ctx, x, 16 * n);
    spmv_solver *solver = NULL;
    assert_ok(ctx, spmv_solver_create(ctx, &a, &o, &solver));
    assert_ok(ctx, spmv_solver_solve(solver, of_b, there, &r[0], sizeof *r));
    assert_string_equal(r[0].solver, "direct");
    assert_non_null(strstr(r[0].why_solver, "less work than cocg"));
    assert_ok(ctx, spmv_solver_solve(solver, of_b, there, &r[1], sizeof *r));
    assert_int_equal(r[1].iterations, 1);
    assert_ok(ctx, spmv_download(ctx, there, x, 16 * n));
    for (int64_t i = 0; i < n; i++)
        assert_true(fabs(x[2 * i] - s.known[i]) <= 1e-8 && fabs(x[2 * i + 1]) <= 1e-8);
    spmv_solver_destroy(solver);
    support_free_in(ctx, of_b, there);
    support_free(val, x, b);
    close_system(ctx, &s);
}

/* Factors that do not fit the memory: the solve ends soon, and the message says what they need. */
static void beyond_memory(void **state)
{
    spmv_context *ctx = *state;
    struct system s = open_system(ctx, INDEFINITE, 2.3);
    spmv_solver_result r;
    int64_t limit = 0;
    spmv_memory_limit(INT64_MAX / 2);
    const int64_t used = INT64_MAX / 2 - memory_limit_left(&limit);
    spmv_memory_limit(used + 6500000);
    spmv_solver *const solver = open_solver(ctx, &s);
    const spmv_status st = spmv_solver_solve(solver, s.b, s.there, &r, sizeof r);
    spmv_memory_limit(0);
    assert_int_equal(st, SPMV_ERROR_ITERATIONS);
    assert_int_equal(r.status, st);
    assert_true(r.iterations < 12000); /* of the 144,000 that are allowed */
    if (strstr(spmv_last_error(ctx), "; direct: ") == NULL || strstr(spmv_last_error(ctx), " bytes ") == NULL)
        fail_msg("%s", spmv_last_error(ctx));
    spmv_solver_destroy(solver);
    close_system(ctx, &s);
}

static void without_modules(void **state)
{
    spmv_context *ctx = *state;
    /* on an emulated GPU, where minres takes a thread of the host for each row, a smaller grid */
    struct system s = open_system(ctx, SLOW ? "poisson2d:40" : INDEFINITE, SHIFT);
    spmv_solver *const solver = open_solver(ctx, &s);
    const spmv_solver_result r = solve(ctx, solver, &s, 1e-4);
    assert_string_not_equal(r.solver, "direct");
    assert_null(strstr(spmv_last_error(ctx), "direct"));
    spmv_solver_destroy(solver);
    close_system(ctx, &s);
}

int main(int argc, char **argv)
{
    support_begin(argc, argv);
    const struct CMUnitTest with[] = {with_context(takes_direct), with_context(leaves_it),
                                      with_context(corrects_by_factors), with_context(takes_direct_from_cocg),
                                      with_context(beyond_memory)};
    const struct CMUnitTest without[] = {with_context(without_modules), with_context(leaves_it)};
    const char *const built = getenv("SPMV_DIRECT_BUILT");
    const bool gpu = support_backend == SPMV_BACKEND_CUDA; /* whose iterations take less than an analysis */
    int failed = !gpu && built != NULL && strstr(built, "umfpack") != NULL && strstr(built, "cholmod") != NULL
                     ? cmocka_run_group_tests(with, NULL, NULL)
                     : 0;
    no_modules();
    failed += cmocka_run_group_tests(without, NULL, NULL);
    return failed != 0;
}

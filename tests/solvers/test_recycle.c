/* Recycling: the space is that of the last solutions, a start never has a larger residual than the given one, sequences
 * save steps and have true residuals, new values, types, several right-hand sides, memory, and errors.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>

#include "solvers/solver_internal.h"
#include "tests/support/support_precond.h"
#include "tests/support/support_slow.h"

enum { SIDE = SLOW ? 12 : 40, N = SIDE * SIDE };

/* ||b - A x|| of host arrays. */
static double residual(const spmv_csr *a, const double *b, const double *x)
{
    double sum = 0;
    for (int64_t i = 0; i < a->rows; i++) {
        double r = b[i];
        for (int64_t k = row_first(a, i); k < row_first(a, i + 1); k++)
            r -= precond_value(a, k) * x[a->col[k]];
        sum += r * r;
    }
    return sqrt(sum);
}

/* Right-hand side number k of a source that moves along a circle. */
static void source(int k, double *b)
{
    for (int i = 0; i < SIDE; i++)
        for (int j = 0; j < SIDE; j++) {
            const double u = (double)i / SIDE - 0.5 - 0.3 * cos(0.02 * k),
                         v = (double)j / SIDE - 0.5 - 0.3 * sin(0.02 * k);
            b[i * SIDE + j] = exp(-40 * (u * u + v * v)) + 0.01 * k;
        }
}

struct sequence {
    const char *spec, *solver, *precond;
    spmv_type type;
    int recycle, steps;
    bool last;   /* begins at the last x */
    bool values; /* new values before each step */
    double rtol;
};

/* The iterations of all steps but the first. */
static int64_t run(spmv_context *ctx, const struct sequence *q)
{
    spmv_matrix *matrix = NULL;
    spmv_csr a;
    spmv_solver *solver = NULL;
    spmv_solver_result r;
    spmv_solver_options o = support_solver_options();
    double *const b = support_zeros(N, 8), *const x = support_zeros(N, 8);
    int64_t iterations = 0;
    assert_ok(ctx, spmv_matrix_generate(ctx, q->spec, q->type, &matrix));
    spmv_matrix_view(matrix, &a);
    double *const val = support_zeros(a.nnz, 8);
    o.solver = q->solver;
    o.precond = q->precond;
    o.recycle = q->recycle;
    o.rtol = q->rtol;
    o.zero_start = !q->last;
    assert_ok(ctx, spmv_solver_create(ctx, &a, &o, &solver));
    void *const there = support_upload_as(ctx, q->type, x, N, 0);
    for (int64_t e = 0; e < a.nnz; e++)
        val[e] = precond_value(&a, e);
    void *values = NULL;
    for (int k = 0; k < q->steps; k++) {
        source(k, b);
        if (q->values && k > 0) {
            void *const before = values;
            for (int64_t i = 0; i < N; i++)
                for (int64_t e = row_first(&a, i); e < row_first(&a, i + 1); e++)
                    val[e] = precond_value(&a, e) + (a.col[e] == i ? 0.002 * k * sin(1 + (double)i) : 0);
            values = support_upload_as(ctx, q->type, val, a.nnz, 0);
            assert_ok(ctx, spmv_solver_update_values(solver, values));
            spmv_free(ctx, before);
        }
        void *const rhs = support_upload_as(ctx, q->type, b, N, 0);
        assert_ok(ctx, spmv_solver_solve(solver, rhs, there, &r, sizeof r));
        support_fetch_as(ctx, q->type, there, N, x);
        const double true_one = q->values ? residual(&(spmv_csr){.rows = N,
                                                                 .cols = N,
                                                                 .nnz = a.nnz,
                                                                 .row_ptr = a.row_ptr,
                                                                 .row_ptr_bits = a.row_ptr_bits,
                                                                 .col = a.col,
                                                                 .val = val,
                                                                 .type = SPMV_F64,
                                                                 .memory = SPMV_MEMORY_HOST},
                                                     b, x)
                                          : residual(&a, b, x);
        if (!(true_one <= 2.1 * r.tolerance))
            fail_msg("%s, %s, step %d: residual %g, tolerance %g", q->spec, q->precond, k, true_one, r.tolerance);
        if (q->recycle == 0 || k == 0)
            assert_true(r.recycled == 0 && r.given_residual < 0 && r.start_residual < 0);
        else
            assert_true(r.recycled <= q->recycle && r.recycled <= k && r.start_residual <= r.given_residual &&
                        (r.recycled == 0) == (r.start_residual == r.given_residual));
        iterations += k > 0 ? r.iterations : 0;
        spmv_free(ctx, rhs);
    }
    if (q->recycle > 0)
        assert_true(r.recycled == (q->recycle < q->steps - 1 ? q->recycle : q->steps - 1));
    spmv_solver_destroy(solver);
    spmv_matrix_destroy(matrix);
    support_free(b, x, val);
    support_free_in(ctx, there, values);
    return iterations;
}

/* Each solver by its own norm, from the last x and from 0, with new values, in both real types. */
static void saves_steps(void **state)
{
    spmv_context *ctx = *state;
    char symmetric[32], general[32];
    snprintf(symmetric, sizeof symmetric, "poisson2d:%d", SIDE);
    snprintf(general, sizeof general, "convdiff2d:%d,5", SIDE);
    const struct {
        struct sequence q;
        double most; /* of the iterations without */
    } cases[] = {
        {{symmetric, "cg", "jacobi", SPMV_F64, 6, 14, true, false, 1e-8}, 0.5},
        {{symmetric, "cg", "jacobi", SPMV_F64, 6, 14, false, false, 1e-8}, 0.5},
        {{symmetric, "cg", "jacobi", SPMV_F64, 6, 14, true, true, 1e-8}, 0.9},
        {{symmetric, "minres", "none", SPMV_F64, 6, 14, true, false, 1e-8}, 0.5},
        {{symmetric, "cg", "amg", SPMV_F64, 6, 14, true, false, 1e-8}, 0.6},
        {{symmetric, "cg", "jacobi", SPMV_F32, 6, 14, true, false, 1e-4}, 0.6},
        {{general, "gmres", "ilu0", SPMV_F64, 6, 14, true, false, 1e-8}, 0.6},
        {{general, "bicgstab", "jacobi", SPMV_F64, 4, 14, true, false, 1e-8}, 0.8},
        {{general, "gmres", "ilu0", SPMV_F64, 6, 14, true, true, 1e-8}, 0.9},
        {{symmetric, "cg", "jacobi", SPMV_F64, 1, 5, true, false, 1e-8}, 1},
    };
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        struct sequence without = cases[c].q;
        if (SLOW && c % 3 != 0)
            continue;
        without.recycle = 0;
        const int64_t with = run(ctx, &cases[c].q), plain = run(ctx, &without);
        if (!((double)with <= cases[c].most * (double)plain))
            fail_msg("case %d: %lld iterations, without %lld", (int)c, (long long)with, (long long)plain);
    }
}

/* Solutions in a space of two dimensions are found without an iteration, also after the oldest way was left out. */
static void space_of_the_last(void **state)
{
    spmv_context *ctx = *state;
    enum { VECTORS = 3, STEPS = 9 };
    spmv_matrix *matrix = NULL;
    spmv_csr a;
    double *const b = support_zeros(N, 8), *const c = support_zeros(N, 8);
    assert_ok(ctx, spmv_matrix_generate(ctx, SLOW ? "poisson2d:12" : "poisson2d:40", SPMV_F64, &matrix));
    spmv_matrix_view(matrix, &a);
    for (int energy = 0; energy < 2; energy++) {
        spmv_plan *const plan = support_plan(ctx, &a, NULL, SPMV_OPERATION_N, SPMV_F64);
        struct recycle *space = NULL;
        struct recycle_told told;
        assert_ok(ctx, recycle_create(ctx, SPMV_F64, N, VECTORS, &space));
        for (int k = 0; k < STEPS; k++) {
            /* x_k = a unit vector for each of three steps, then their sum, which is in the space of the last three */
            for (int i = 0; i < N; i++)
                c[i] = k % 4 == 3 ? i == 10 * (k - 3) || i == 10 * (k - 2) || i == 10 * (k - 1) : i == 10 * k;
            for (int64_t i = 0; i < N; i++) {
                b[i] = 0;
                for (int64_t e = row_first(&a, i); e < row_first(&a, i + 1); e++)
                    b[i] += precond_value(&a, e) * c[a.col[e]];
            }
            void *const rhs = support_upload(ctx, b, N * 8), *const x = support_upload(ctx, c, N * 8);
            void *const solution = support_upload(ctx, c, N * 8);
            assert_ok(ctx, recycle_start(space, plan, energy != 0, true, rhs, x, &told));
            if (k % 4 == 3)
                assert_true(told.vectors == VECTORS && told.start <= 1e-13 * told.given);
            else
                assert_true(k == 0 || (told.start <= told.given && told.start > 0.1 * told.given));
            assert_ok(ctx, recycle_add(space, plan, solution, true));
            support_free_in(ctx, rhs, x, solution);
        }
        recycle_destroy(space);
        spmv_plan_destroy(plan);
    }
    spmv_matrix_destroy(matrix);
    support_free(b, c);
}

/* New values: ways have their products with the A of their time. A solution in their span is found up to the change of A,
 * is not taken where A has become twice as large, and is found again once all ways are of the new A. */
static void new_values(void **state)
{
    spmv_context *ctx = *state;
    enum { VECTORS = 3, STEPS = 9, CHANGE = 3 };
    static const double factors[] = {1.01, 2};
    spmv_matrix *matrix = NULL;
    spmv_csr a;
    double *const b = support_zeros(N, 8), *const c = support_zeros(N, 8);
    assert_ok(ctx, spmv_matrix_generate(ctx, SLOW ? "poisson2d:12" : "poisson2d:40", SPMV_F64, &matrix));
    spmv_matrix_view(matrix, &a);
    double *const val = support_zeros(a.nnz, 8);
    for (int form = 0; form < 4; form++) {
        const double factor = factors[form % 2];
        for (int64_t e = 0; e < a.nnz; e++)
            val[e] = factor * precond_value(&a, e);
        spmv_csr changed = a;
        changed.val = val;
        spmv_plan *const plans[] = {support_plan(ctx, &a, NULL, SPMV_OPERATION_N, SPMV_F64),
                                    support_plan(ctx, &changed, NULL, SPMV_OPERATION_N, SPMV_F64)};
        struct recycle *space = NULL;
        struct recycle_told told;
        assert_ok(ctx, recycle_create(ctx, SPMV_F64, N, VECTORS, &space));
        for (int k = 0; k < STEPS; k++) {
            const spmv_csr *const now = k < CHANGE ? &a : &changed;
            /* three unit vectors; from then on combinations of them */
            for (int i = 0; i < N; i++)
                c[i] = k < CHANGE ? i == 10 * k : (i == 0) + (i == 10) * 0.5 * k - (i == 20) * cos(k);
            for (int64_t i = 0; i < N; i++) {
                b[i] = 0;
                for (int64_t e = row_first(now, i); e < row_first(now, i + 1); e++)
                    b[i] += precond_value(now, e) * c[now->col[e]];
            }
            void *const rhs = support_upload(ctx, b, N * 8), *const x = support_upload(ctx, c, N * 8);
            void *const solution = support_upload(ctx, c, N * 8);
            if (k == CHANGE)
                recycle_renew(space);
            assert_ok(ctx, recycle_start(space, plans[k >= CHANGE], form < 2, true, rhs, x, &told));
            if (k == CHANGE && factor < 2)
                assert_true(told.vectors == VECTORS && fabs(told.start / told.given - 0.01) < 1e-6);
            else if (k == CHANGE) /* the residual would be as large as before, and its rounding decides */
                assert_true(told.start >= 0.999 * told.given);
            else if (k >= CHANGE + VECTORS)
                assert_true(told.vectors == VECTORS && told.start <= 1e-8 * told.given);
            assert_ok(ctx, recycle_add(space, plans[k >= CHANGE], solution, true));
            support_free_in(ctx, rhs, x, solution);
        }
        recycle_destroy(space);
        spmv_plan_destroy(plans[0]);
        spmv_plan_destroy(plans[1]);
    }
    spmv_matrix_destroy(matrix);
    support_free(b, c, val);
}

/* Several right-hand sides in one call help each other; so do those of A' in a space of their own. A failed solve adds
 * nothing. The memory is counted. */
static void several_and_transposed(void **state)
{
    enum { VECTORS = 5 };
    spmv_context *ctx = *state;
    spmv_matrix *matrix = NULL;
    spmv_csr a;
    spmv_solver *solver = NULL;
    spmv_solver_result r[VECTORS], before;
    spmv_solver_info first, info;
    spmv_solver_options o = support_solver_options();
    double *const b = support_zeros(N, 8), *const all = support_zeros(N * VECTORS, 8);
    for (int k = 0; k < VECTORS; k++) {
        source(k, b);
        for (int i = 0; i < N; i++)
            all[i * VECTORS + k] = b[i];
    }
    assert_ok(ctx, spmv_matrix_generate(ctx, SLOW ? "convdiff2d:12,5" : "convdiff2d:40,5", SPMV_F64, &matrix));
    spmv_matrix_view(matrix, &a);
    void *const rhs = support_upload(ctx, all, N * VECTORS * 8), *const x = support_upload(ctx, all, N * VECTORS * 8);
    o.solver = "gmres";
    o.precond = "ilu0";
    o.recycle = 4;
    o.vectors = VECTORS;
    o.zero_start = 1;
    assert_ok(ctx, spmv_solver_create(ctx, &a, &o, &solver));
    assert_ok(ctx, spmv_solver_describe(solver, &first, sizeof first));
    for (int turn = 0; turn < 2; turn++) {
        assert_ok(ctx, spmv_solver_solve_operation(solver, turn == 0 ? SPMV_OPERATION_N : SPMV_OPERATION_T, rhs, x, r,
                                                   sizeof *r));
        for (int k = 0; k < VECTORS; k++)
            assert_true(r[k].status == SPMV_OK && r[k].recycled == k && r[k].true_residual <= r[k].tolerance);
        assert_true(r[VECTORS - 1].iterations < r[0].iterations);
        if (turn == 0) {
            assert_ok(ctx, spmv_solver_describe(solver, &info, sizeof info));
            assert_true(info.bytes == first.bytes + (int64_t)10 * N * 8);
        }
    }
    spmv_solver_destroy(solver);
    o.vectors = 1;
    o.max_iterations = 2;
    assert_ok(ctx, spmv_solver_create(ctx, &a, &o, &solver));
    for (int turn = 0; turn < 2; turn++) {
        assert_int_equal(spmv_solver_solve(solver, rhs, x, &before, sizeof before), SPMV_ERROR_ITERATIONS);
        assert_true(before.recycled == 0 && before.given_residual < 0);
    }
    spmv_solver_destroy(solver);
    spmv_matrix_destroy(matrix);
    support_free(b, all);
    support_free_in(ctx, rhs, x);
}

/* A b without a part in the space: the given x stays. */
static void unrelated(void **state)
{
    spmv_context *ctx = *state;
    spmv_matrix *matrix = NULL;
    spmv_csr a;
    spmv_solver *solver = NULL;
    spmv_solver_result r;
    spmv_solver_options o = support_solver_options();
    double *const b = support_zeros(4, 8);
    assert_ok(ctx, spmv_matrix_generate(ctx, "diagonal:4", SPMV_F64, &matrix));
    spmv_matrix_view(matrix, &a);
    o.solver = "gmres";
    o.precond = "none";
    o.recycle = 4;
    o.zero_start = 1;
    assert_ok(ctx, spmv_solver_create(ctx, &a, &o, &solver));
    for (int k = 0; k < 4; k++) {
        for (int i = 0; i < 4; i++)
            b[i] = i == k;
        void *const rhs = support_upload(ctx, b, 32), *const x = support_upload(ctx, b, 32);
        assert_ok(ctx, spmv_solver_solve(solver, rhs, x, &r, sizeof r));
        assert_true(r.recycled == 0 && r.iterations == 1);
        assert_true(k == 0 || (r.given_residual == 1 && r.start_residual == 1));
        support_free_in(ctx, rhs, x);
    }
    spmv_solver_destroy(solver);
    spmv_matrix_destroy(matrix);
    free(b);
}

/* Hermitian and other complex systems. */
static void complex_numbers(void **state)
{
    spmv_context *ctx = *state;
    for (int hermitian = 0; hermitian < 2; hermitian++) {
        spmv_matrix *matrix = NULL;
        spmv_csr a;
        spmv_solver *solver = NULL;
        spmv_solver_result r;
        spmv_solver_options o = support_solver_options();
        int64_t iterations[8];
        double *const b = support_zeros(N, 8), *const both = support_zeros(2 * N, 8);
        assert_ok(ctx, spmv_matrix_generate(ctx, SLOW ? "poisson2d:12" : "poisson2d:40", SPMV_F64, &matrix));
        spmv_matrix_view(matrix, &a);
        double *const val = support_zeros(2 * a.nnz, 8);
        for (int64_t i = 0; i < N; i++)
            for (int64_t e = row_first(&a, i); e < row_first(&a, i + 1); e++) {
                const double turn = hermitian ? (a.col[e] > i) - (a.col[e] < i) : a.col[e] == i;
                val[2 * e] = precond_value(&a, e) * (a.col[e] == i ? 1 : 0.98);
                val[2 * e + 1] = 0.1 * turn * val[2 * e];
            }
        a.val = val;
        a.type = SPMV_C128;
        o.solver = hermitian ? "cg" : "gmres";
        o.precond = "jacobi";
        o.recycle = 5;
        assert_ok(ctx, spmv_solver_create(ctx, &a, &o, &solver));
        void *const x = support_upload(ctx, both, N * 16);
        for (int k = 0; k < 8; k++) {
            source(k, b);
            for (int i = 0; i < N; i++) {
                both[2 * i] = b[i];
                both[2 * i + 1] = 0.5 * b[(i + 7) % N];
            }
            void *const rhs = support_upload(ctx, both, N * 16);
            assert_ok(ctx, spmv_solver_solve(solver, rhs, x, &r, sizeof r));
            assert_true(r.true_residual <= r.tolerance);
            iterations[k] = r.iterations;
            spmv_free(ctx, rhs);
        }
        assert_true(r.recycled == 5 && 2 * iterations[7] <= iterations[1]);
        spmv_solver_destroy(solver);
        spmv_matrix_destroy(matrix);
        spmv_free(ctx, x);
        support_free(b, both, val);
    }
}

static void errors(void **state)
{
    spmv_context *ctx = *state;
    spmv_matrix *matrix = NULL, *there = NULL;
    spmv_csr a, at;
    spmv_solver *solver = NULL;
    assert_ok(ctx, spmv_matrix_generate(ctx, "poisson2d:16", SPMV_F64, &matrix));
    spmv_matrix_view(matrix, &a);
    assert_ok(ctx, spmv_matrix_copy(ctx, &a, SPMV_MEMORY_CONTEXT, &there));
    spmv_matrix_view(there, &at);
    for (int wrong = -1; wrong <= 65; wrong += 66) {
        spmv_solver_options o = support_solver_options();
        o.recycle = wrong;
        assert_fails(ctx, spmv_solver_create(ctx, &a, &o, &solver), SPMV_ERROR_ARGUMENT, "recycle");
    }
    spmv_solver_options o = support_solver_options();
    spmv_plan_options p = support_plan_options();
    spmv_plan *plan = NULL;
    p.vectors = 2;
    assert_ok(ctx, spmv_plan_create(ctx, &at, &p, &plan));
    o.plan = plan;
    o.recycle = 2;
    assert_fails(ctx, spmv_solver_create(ctx, &at, &o, &solver), SPMV_ERROR_UNSUPPORTED, "recycle");
    spmv_plan_destroy(plan);
    spmv_matrix_destroy(there);
    spmv_matrix_destroy(matrix);
}

/* The same bits for any number of threads. */
static void same_bits(void **state)
{
    (void)state;
    enum { M = 300 * 300, STEPS = 5 };
    double *x[2] = {NULL, NULL};
    if (support_backend != SPMV_BACKEND_OMP)
        skip();
    for (int t = 0; t < 2; t++) {
        spmv_context *const ctx = support_context_on(SPMV_BACKEND_OMP, t == 0 ? 1 : 5);
        spmv_matrix *matrix = NULL;
        spmv_csr a;
        spmv_solver *solver = NULL;
        spmv_solver_options o = support_solver_options();
        double *const b = support_zeros(M, 8);
        x[t] = support_zeros(M, 8);
        assert_ok(ctx, spmv_matrix_generate(ctx, "poisson2d:300", SPMV_F64, &matrix));
        spmv_matrix_view(matrix, &a);
        o.solver = "cg";
        o.precond = "amg";
        o.recycle = 3;
        assert_ok(ctx, spmv_solver_create(ctx, &a, &o, &solver));
        double *const val = support_zeros(a.nnz, 8);
        for (int k = 0; k < STEPS; k++) {
            for (int64_t e = 0; e < a.nnz && k == 3; e++)
                val[e] = 1.001 * precond_value(&a, e);
            if (k == 3) /* from here on with values that have changed */
                assert_ok(ctx, spmv_solver_update_values(solver, val));
            for (int i = 0; i < M; i++)
                b[i] = sin(0.001 * i + 0.01 * k);
            assert_ok(ctx, spmv_solver_solve(solver, b, x[t], NULL, 0));
        }
        spmv_solver_destroy(solver);
        spmv_matrix_destroy(matrix);
        spmv_context_destroy(ctx);
        support_free(b, val);
    }
    assert_memory_equal(x[0], x[1], M * sizeof **x);
    support_free(x[0], x[1]);
}

SUPPORT_MAIN(with_context(saves_steps), with_context(space_of_the_last), with_context(new_values),
             with_context(several_and_transposed), with_context(unrelated), with_context(complex_numbers),
             with_context(errors), cmocka_unit_test(same_bits))

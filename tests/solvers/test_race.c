/* The race between two preconditioners under "auto" (solver_race.c): predictions, a race that the second
 * one wins, one that the first one wins, what the solver remembers, the same bits for any number of
 * threads; nodes of several rows, which amg finds; a solver that is nearly there is not stopped.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "solvers/solver_race.h"

#include <math.h>

#include "core/splitmix.h"
#include "formats/matrix_internal.h"
#include "solvers/amg/amg_internal.h"
#include "solvers/precond/precond_internal.h"
#include "solvers/solver_internal.h"
#include "tests/support/support.h"
#include "tests/support/support_generate.h"
#include "tests/support/support_module.h"
#include "tests/support/support_slow.h"

/* ---------------------------------------------------------------------- predictions */

static int cancel_at(int64_t iteration, double residual, void *user)
{
    (void)residual;
    return iteration >= *(const int64_t *)user;
}

/* Tells a judge residuals that fall by this factor an iteration. Returns the iteration at which it stops. */
static int64_t tell(struct judge *j, int64_t begin, int64_t most, double factor)
{
    double residual = 1;
    for (int64_t i = 0; i <= most; i++, residual *= factor)
        if (judge_tell(begin + i, residual, j) != 0)
            return i;
    return -1;
}

static void predictions(void **state)
{
    (void)state;
    const spmv_cg_result result = {.tolerance = 1e-8};
    const double factor = pow(1e-8, 1.0 / 1000); /* 1000 iterations in all */
    struct judge j = judge_of(NULL, NULL, &result, 0, 100, 800);
    assert_int_equal(tell(&j, 0, 2000, factor), 108); /* the first mark from 100 on; its width is 12 */
    assert_true(j.stopped && fabs(j.left - 892) < 1);
    j = judge_of(NULL, NULL, &result, 0, 100, 2600);
    assert_int_equal(tell(&j, 0, 999, factor), -1);
    assert_true(!j.stopped && j.left < 60);
    /* later, less may be left: (1000 - i) i > 2400 * 100 from i = 400 on */
    j = judge_of(NULL, NULL, &result, 0, 100, 2400);
    const int64_t late = tell(&j, 0, 999, factor);
    assert_true(late >= 400 && late <= 432);
    /* earlier, in proportion more must be left: 1000 - i > 200 * 400 / i from 88 on */
    j = judge_of(NULL, NULL, &result, 0, 400, 200);
    j.first = 40;
    j.width = 10;
    const int64_t early = tell(&j, 0, 2000, factor);
    assert_true(early >= 80 && early <= 90);
    /* residuals that fall evenly: 1000 - i > 300 * sqrt(400 / i) from 42 on, and > 340 * sqrt(400 / i) from 52 on */
    j = judge_of(NULL, NULL, &result, 0, 400, 300);
    j.first = 48;
    j.width = 12;
    j.even = true;
    assert_int_equal(tell(&j, 0, 2000, factor), 48);
    j = judge_of(NULL, NULL, &result, 0, 400, 340);
    j.first = 48;
    j.width = 12;
    j.even = true;
    assert_int_equal(tell(&j, 0, 2000, factor), 60);
    /* that there is no progress yet is no prediction, unless residuals fall evenly */
    for (int even = 0; even < 2; even++) {
        j = judge_of(NULL, NULL, &result, 0, 100, 10);
        j.first = 20;
        j.width = 5;
        j.even = even;
        assert_int_equal(tell(&j, 0, 2000, 1), even ? 20 : 100);
    }
    /* other iterations came before; no progress; a residual that grows */
    j = judge_of(NULL, NULL, &result, 5000, 100, 800);
    assert_int_equal(tell(&j, 5000, 2000, factor), 108);
    j = judge_of(NULL, NULL, &result, 0, 20, 1e9);
    assert_int_equal(tell(&j, 0, 100, 1), 20);
    assert_true(isinf(j.left));
    j = judge_of(NULL, NULL, &result, 0, 20, 1e9);
    assert_int_equal(tell(&j, 0, 100, 1.1), 20);
    /* many marks are merged, and predict the same */
    j = judge_of(NULL, NULL, &result, 0, 8, 1e9);
    assert_int_equal(tell(&j, 0, 700, factor), -1);
    assert_true(fabs(j.left - 300) <= 64);
    /* without a tolerance there is nothing to predict */
    const spmv_cg_result none = {.tolerance = 0};
    j = judge_of(NULL, NULL, &none, 0, 8, 1);
    assert_int_equal(tell(&j, 0, 100, 1), -1);
    /* the caller's callback is asked first, and cancels without a verdict */
    int64_t at = 7;
    j = judge_of(cancel_at, &at, &result, 0, 8, 1e9);
    assert_int_equal(tell(&j, 0, 100, 1), 7);
    assert_false(j.stopped);
}

/* ---------------------------------------------------------------------- races */

struct solve {
    spmv_solver *solver;
    void *b, *x;
    int64_t n;
    spmv_solver_result r;
};

static struct solve open_solve(spmv_context *ctx, const spmv_csr *a, const char *precond)
{
    struct solve s = {.n = a->rows};
    double *const host = support_zeros(a->rows, 8);
    spmv_solver_options o;
    spmv_solver_options_init(&o, sizeof o);
    o.precond = precond;
    o.zero_start = 1;
    for (int64_t i = 0; i < a->rows; i++)
        host[i] = 1 + 0.5 * cos((double)i);
    s.b = support_upload(ctx, host, 8 * a->rows);
    s.x = support_upload(ctx, host, 8 * a->rows);
    free(host);
    assert_ok(ctx, spmv_solver_create(ctx, a, &o, &s.solver));
    return s;
}

static void run(spmv_context *ctx, struct solve *s)
{
    assert_ok(ctx, spmv_solver_solve(s->solver, s->b, s->x, &s->r, sizeof s->r));
    assert_true(s->r.true_residual <= s->r.tolerance);
}

static void close_solve(spmv_context *ctx, struct solve *s)
{
    spmv_solver_destroy(s->solver);
    support_free_in(ctx, s->b, s->x);
}

/* Its coefficients jump, so jacobi needs more iterations than the grid has steps. */
static spmv_matrix *race_matrix(spmv_context *ctx, spmv_csr *a)
{
    spmv_matrix *matrix = NULL;
    assert_ok(ctx, spmv_matrix_generate(ctx, "diffusion2d:104,100000", SPMV_F64, &matrix));
    spmv_matrix_view(matrix, a);
    return matrix;
}

/* cg with jacobi begins; amg has less to do, wins, and is remembered. */
static void second_wins(void **state)
{
    spmv_context *ctx = *state;
    spmv_csr a;
    if (support_backend == SPMV_BACKEND_CUDA)
        skip(); /* whose kernels finish such a system before */
    spmv_matrix *const matrix = race_matrix(ctx, &a);
    struct solve s = open_solve(ctx, &a, NULL);
    spmv_solver_info info;
    double *const values = support_zeros(a.nnz, 8);
    assert_ok(ctx, spmv_solver_describe(s.solver, &info, sizeof info));
    assert_string_equal(precond_name(info.precond), "jacobi");
    run(ctx, &s);
    assert_string_equal(s.r.precond, "amg");
    assert_non_null(strstr(s.r.why_precond, "found while solving: "));
    assert_non_null(strstr(s.r.why_precond, "with jacobi"));
    const int64_t both = s.r.iterations;
    for (int turn = 0; turn < 2; turn++) { /* another solve, and one with other values */
        run(ctx, &s);
        assert_string_equal(s.r.precond, "amg");
        assert_non_null(strstr(s.r.why_precond, "found while solving"));
        assert_true(s.r.iterations < 30 && s.r.iterations <= both);
        for (int64_t k = 0; k < a.nnz; k++)
            values[k] = 2 * real_at(a.type, a.val, k);
        assert_ok(ctx, spmv_solver_update_values(s.solver, values));
    }
    /* a solver of a system like it, as that with scaled rows, begins with it */
    spmv_solver_options o;
    spmv_solver *like = NULL;
    spmv_solver_options_init(&o, sizeof o);
    run(ctx, &s);
    assert_ok(ctx, solver_create_like(s.solver, &a, &o, &like));
    assert_ok(ctx, spmv_solver_describe(like, &info, sizeof info));
    assert_string_equal(precond_name(info.precond), "amg");
    spmv_solver_destroy(like);
    close_solve(ctx, &s);
    free(values);
    spmv_matrix_destroy(matrix);
}

/* Where a limit of the memory leaves no room to keep what a race needs, the first one solves alone. */
static void no_room_for_a_race(void **state)
{
    spmv_context *ctx = *state;
    spmv_csr a;
    if (support_backend != SPMV_BACKEND_OMP)
        skip(); /* the limit is that of the host, and ref is slow */
    spmv_matrix *const matrix = race_matrix(ctx, &a);
    spmv_status st = SPMV_ERROR_MEMORY;
    bool alone = false;
    for (int64_t vectors = 1; st == SPMV_ERROR_MEMORY && vectors < 40; vectors++) {
        int64_t limit = 0;
        spmv_context *const own = support_context_on(SPMV_BACKEND_OMP, 1); /* without memory of other solves */
        struct solve s = open_solve(own, &a, NULL);
        spmv_memory_limit((int64_t)1 << 40);
        const int64_t left = memory_limit_left(&limit);
        spmv_memory_limit(limit - left + 8 * vectors * s.n);
        st = spmv_solver_solve(s.solver, s.b, s.x, &s.r, sizeof s.r);
        spmv_memory_limit(0);
        alone = strcmp(s.r.precond, "jacobi") == 0 && strstr(s.r.why_precond, "found while solving") == NULL;
        close_solve(own, &s);
        spmv_context_destroy(own);
    }
    assert_int_equal(st, SPMV_OK);
    assert_true(alone);
    spmv_matrix_destroy(matrix);
}

/* The squared Laplacian of a grid of rows times columns points, on the host. */
static spmv_matrix *plate(spmv_context *ctx, int64_t columns, int64_t rows, spmv_csr *a)
{
    const int64_t n = rows * columns;
    int64_t *const row_ptr = support_zeros(n + 1, 8), nnz = 0;
    int32_t *const col = support_zeros(5 * n, 4);
    double *const val = support_zeros(5 * n, 8);
    for (int64_t i = 0; i < n; i++) {
        const int64_t beside[5] = {i - columns, i % columns > 0 ? i - 1 : -1, i, i % columns < columns - 1 ? i + 1 : -1,
                                   i + columns};
        for (int t = 0; t < 5; t++)
            if (beside[t] >= 0 && beside[t] < n) {
                col[nnz] = (int32_t)beside[t];
                val[nnz++] = t == 2 ? 4 : -1;
            }
        row_ptr[i + 1] = nnz;
    }
    const spmv_csr laplacian = {.rows = n,
                                .cols = n,
                                .nnz = nnz,
                                .row_ptr = row_ptr,
                                .row_ptr_bits = 64,
                                .col = col,
                                .val = val,
                                .type = SPMV_F64,
                                .memory = SPMV_MEMORY_HOST};
    spmv_matrix *square = NULL;
    assert_ok(ctx, spmv_spgemm(ctx, &laplacian, &laplacian, NULL, &square));
    spmv_matrix_view(square, a);
    free(row_ptr);
    free(col);
    free(val);
    return square;
}

/* A grid of rows times columns points, coupled by 1 along its rows and by `weak` from row to row, on the host. */
static spmv_matrix *layered(spmv_context *ctx, int64_t columns, int64_t rows, double weak, spmv_csr *a)
{
    const int64_t n = rows * columns;
    int64_t *const row = support_zeros(5 * n, 8), *const column = support_zeros(5 * n, 8), nnz = 0;
    double *const val = support_zeros(5 * n, 8);
    spmv_matrix *matrix = NULL;
    for (int64_t i = 0; i < n; i++) {
        const int64_t beside[5] = {i, i % columns > 0 ? i - 1 : -1, i % columns < columns - 1 ? i + 1 : -1, i - columns,
                                   i + columns};
        for (int t = 0; t < 5; t++)
            if (beside[t] >= 0 && beside[t] < n) {
                row[nnz] = i;
                column[nnz] = beside[t];
                val[nnz++] = t == 0 ? 2 + 2 * weak : t < 3 ? -1 : -weak;
            }
    }
    int32_t *const col = support_zeros(nnz, 4);
    for (int64_t k = 0; k < nnz; k++)
        col[k] = (int32_t)column[k];
    assert_ok(ctx, spmv_matrix_from_coo(ctx, n, n, nnz, row, col, val, SPMV_F64, &matrix, NULL));
    spmv_matrix_view(matrix, a);
    support_free(row, column, val, col);
    return matrix;
}

/* amg takes many iterations of a plate. A complete factor, whose work is known, bounds them; one that would be too
 * large is not made. */
static void factor_wins(void **state)
{
    spmv_context *ctx = *state;
    if (support_backend == SPMV_BACKEND_CUDA)
        skip(); /* where factors are no rivals */
    for (int wide = 0; wide < 2; wide++) {
        spmv_csr a;
        spmv_matrix *const matrix = wide ? plate(ctx, 120, 120, &a) : plate(ctx, 72, 280, &a);
        struct solve s = open_solve(ctx, &a, NULL);
        spmv_solver_info info;
        assert_ok(ctx, spmv_solver_describe(s.solver, &info, sizeof info));
        assert_string_equal(precond_name(info.precond), "jacobi");
        run(ctx, &s);
        if (wide) {
            assert_string_not_equal(s.r.precond, "cholesky");
        } else {
            assert_string_equal(s.r.precond, "cholesky");
            assert_true(s.r.iterations < 60);
            run(ctx, &s);
            assert_true(s.r.iterations <= 2);
        }
        close_solve(ctx, &s);
        spmv_matrix_destroy(matrix);
    }
}

/* Multiplies row i and column i by 1 or 2 and the sign of cos(i): errors are then not smooth. The copy of the
 * values. */
static double *turn_signs(spmv_csr *a)
{
    double *const val = support_zeros(a->nnz, 8), *const by = support_zeros(a->rows, 8);
    for (int64_t i = 0; i < a->rows; i++)
        by[i] = copysign((double)(1 + i % 2), cos((double)i));
    for (int64_t i = 0; i < a->rows; i++)
        for (int64_t k = row_first(a, i); k < row_first(a, i + 1); k++)
            val[k] = by[i] * real_at(a->type, a->val, k) * by[a->col[k]];
    a->val = val;
    free(by);
    return val;
}

/* What a sample finds: conjugate gradients with jacobi begin; what ends soon is not sampled, a complete factor is
 * taken where it is narrow, ic0 where couplings are mostly along the rows of a grid, and multigrid where it works. */
static void by_sample(void **state)
{
    spmv_context *ctx = *state;
    static const struct {
        int64_t columns, rows; /* 0: elasticity */
        double weak;           /* 0: a plate */
        const char *takes;
    } cases[] = {{95, 100, 0, "cholesky"}, {250, 160, 0.01, "ic0"}, {0, 0, 0, "amg"}};
    if (support_backend != SPMV_BACKEND_OMP)
        skip(); /* on a GPU there is no sample, and ref is slow */
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        spmv_csr a;
        spmv_matrix *matrix = NULL;
        if (cases[i].weak != 0)
            matrix = layered(ctx, cases[i].columns, cases[i].rows, cases[i].weak, &a);
        else if (cases[i].rows > 0)
            matrix = plate(ctx, cases[i].columns, cases[i].rows, &a);
        else
            assert_ok(ctx, spmv_matrix_generate(ctx, "elasticity2d:110", SPMV_F64, &matrix));
        spmv_matrix_view(matrix, &a);
        double *const val = cases[i].rows > 0 ? turn_signs(&a) : NULL;
        struct solve s = open_solve(ctx, &a, NULL), jacobi = open_solve(ctx, &a, "jacobi");
        spmv_solver_info info;
        assert_ok(ctx, spmv_solver_describe(s.solver, &info, sizeof info));
        assert_string_equal(precond_name(info.precond), "jacobi");
        run(ctx, &jacobi);
        run(ctx, &s);
        assert_string_equal(s.r.precond, cases[i].takes);
        assert_non_null(strstr(s.r.why_precond, "a sample of "));
        assert_non_null(strstr(s.r.why_precond, "iterations with jacobi"));
        assert_true(s.r.iterations < jacobi.r.iterations);
        const int64_t first = s.r.iterations;
        run(ctx, &s); /* the winner is remembered */
        assert_string_equal(s.r.precond, cases[i].takes);
        assert_true(s.r.iterations <= first);
        close_solve(ctx, &jacobi);
        close_solve(ctx, &s);
        spmv_matrix_destroy(matrix);
        free(val);
    }
}

/* Normal equations: each observation couples 8 unknowns among 110 neighbours. */
static spmv_matrix *observations(spmv_context *ctx, int64_t n, spmv_csr *a)
{
    enum { UNKNOWNS = 8, NEIGHBOURS = 110 };
    const int64_t count = 6 * n / 5, most = count * UNKNOWNS * UNKNOWNS + n;
    int64_t *const row = support_zeros(most, 8), nnz = 0;
    int32_t *const col = support_zeros(most, 4);
    double *const val = support_zeros(most, 8);
    for (int64_t k = 0; k < count; k++) {
        int64_t at[UNKNOWNS];
        double of[UNKNOWNS];
        for (int64_t u = 0; u < UNKNOWNS; u++) {
            const uint64_t number = splitmix_at(7, k * UNKNOWNS + u);
            at[u] = k * (n - NEIGHBOURS) / count + (int64_t)(number % NEIGHBOURS);
            of[u] = (double)(number >> 40) * 0x1p-24 - 0.5;
        }
        for (int i = 0; i < UNKNOWNS; i++)
            for (int j = 0; j < UNKNOWNS; j++) {
                row[nnz] = at[i];
                col[nnz] = (int32_t)at[j];
                val[nnz++] = of[i] * of[j];
            }
    }
    for (int64_t i = 0; i < n; i++) {
        row[nnz] = i;
        col[nnz] = (int32_t)i;
        val[nnz++] = 1e-6;
    }
    spmv_matrix *matrix = NULL;
    assert_ok(ctx, spmv_matrix_from_coo(ctx, n, n, nnz, row, col, val, SPMV_F64, &matrix, NULL));
    spmv_matrix_view(matrix, a);
    support_free(row, col, val);
    return matrix;
}

/* A complete factor that takes no longer than a sample is made without one, where jacobi has much to do. */
static void factor_without_a_sample(void **state)
{
    spmv_context *ctx = *state;
    spmv_csr a;
    if (support_backend != SPMV_BACKEND_OMP)
        skip();
    spmv_matrix *const matrix = observations(ctx, 4500, &a);
    struct solve s = open_solve(ctx, &a, NULL);
    run(ctx, &s);
    assert_string_equal(s.r.precond, "cholesky");
    assert_non_null(strstr(s.r.why_precond, "found while solving: after "));
    assert_null(strstr(s.r.why_precond, "a sample of "));
    assert_true(s.r.iterations > 30 && s.r.iterations < 40);
    close_solve(ctx, &s);
    spmv_matrix_destroy(matrix);
}

/* A limit of the iterations that leaves no room for another one: the x and the residual of jacobi. */
static void sample_within_a_limit(void **state)
{
    enum { MOST = 25 };
    spmv_context *ctx = *state;
    spmv_csr a;
    if (support_backend != SPMV_BACKEND_OMP)
        skip();
    spmv_matrix *const matrix = plate(ctx, 104, 104, &a);
    double *const val = turn_signs(&a), *const b = support_zeros(a.rows, 8), *const x = support_zeros(a.rows, 8);
    spmv_solver_options o;
    spmv_solver_result r;
    spmv_solver *solver = NULL;
    spmv_solver_options_init(&o, sizeof o);
    o.max_iterations = MOST;
    o.zero_start = 1;
    for (int64_t i = 0; i < a.rows; i++)
        b[i] = 1 + 0.5 * cos((double)i);
    assert_ok(ctx, spmv_solver_create(ctx, &a, &o, &solver));
    assert_int_equal(spmv_solver_solve(solver, b, x, &r, sizeof r), SPMV_ERROR_ITERATIONS);
    assert_string_equal(r.precond, "jacobi");
    assert_int_equal(r.iterations, MOST);
    double squares = 0;
    for (int64_t i = 0; i < a.rows; i++) {
        double left = b[i];
        for (int64_t k = row_first(&a, i); k < row_first(&a, i + 1); k++)
            left -= val[k] * x[a.col[k]];
        squares += left * left;
    }
    assert_true(fabs(sqrt(squares) - r.true_residual) <= 1e-6 * r.true_residual);
    spmv_solver_destroy(solver);
    spmv_matrix_destroy(matrix);
    support_free(val, b, x);
}

/* Elongated cells: most rows have two couplings far above the others. ic0 begins, and ends before multigrid is made. */
static void along_lines(void **state)
{
    spmv_context *ctx = *state;
    spmv_csr a;
    if (support_backend == SPMV_BACKEND_CUDA)
        skip(); /* where factors are not chosen */
    for (int elongated = 0; elongated < 2; elongated++) {
        spmv_matrix *const matrix = layered(ctx, 250, 260, elongated ? 0.001 : 0.9, &a);
        struct solve s = open_solve(ctx, &a, NULL);
        spmv_solver_info info;
        assert_ok(ctx, spmv_solver_describe(s.solver, &info, sizeof info));
        assert_string_equal(precond_name(info.precond), elongated ? "ic0" : "amg");
        assert_string_equal(precond_rival(info.precond), elongated ? "amg" : "ic0");
        run(ctx, &s);
        assert_string_equal(s.r.precond, elongated ? "ic0" : "amg");
        assert_true(s.r.iterations < 60);
        assert_true(s.r.true_residual <= s.r.tolerance);
        close_solve(ctx, &s);
        spmv_matrix_destroy(matrix);
    }
}

/* The same with entries 0 beside the others: more than 8 a row, so that cg solves several right-hand sides
 * together. */
static spmv_csr with_zeros(const spmv_csr *a, int64_t side)
{
    const int64_t beside[] = {-side - 1, -side, -2, -1, 0, 1, 2, side, side + 1};
    enum { BESIDE = sizeof beside / sizeof beside[0] };
    spmv_csr to = *a;
    int64_t *const row_ptr = support_zeros(a->rows + 1, 8), nnz = 0;
    int32_t *const col = support_zeros(BESIDE * a->rows, 4);
    double *const val = support_zeros(BESIDE * a->rows, 8);
    for (int64_t i = 0; i < a->rows; i++) {
        int64_t k = row_first(a, i);
        for (int t = 0; t < BESIDE; t++) {
            const int64_t j = i + beside[t];
            if (j < 0 || j >= a->rows)
                continue;
            const bool there = k < row_first(a, i + 1) && a->col[k] == j;
            val[nnz] = there ? real_at(a->type, a->val, k) : 0;
            col[nnz++] = (int32_t)j;
            k += there;
        }
        assert_int_equal(k, row_first(a, i + 1));
        row_ptr[i + 1] = nnz;
    }
    to.row_ptr = row_ptr;
    to.row_ptr_bits = 64;
    to.col = col;
    to.val = val;
    to.nnz = nnz;
    to.type = SPMV_F64;
    return to;
}

/* Three right-hand sides of very different size, solved together: amg wins, each residual is below its own
 * tolerance, and each x is that of a solve of its own up to the tolerance. A column that is solved before the
 * verdict stays solved. */
static void several(void **state)
{
    enum { K = 3 };
    spmv_context *ctx = *state;
    spmv_csr a;
    if (support_backend == SPMV_BACKEND_CUDA)
        skip();
    spmv_matrix *const matrix = race_matrix(ctx, &a);
    const spmv_csr full = with_zeros(&a, 104);
    static const double size[K] = {1, 1e6, 0};
    double *const b = support_zeros(a.rows * K, 8), *const x = support_zeros(a.rows * K, 8);
    spmv_solver_result r[K];
    spmv_solver_options o;
    spmv_solver *solver = NULL;
    spmv_solver_options_init(&o, sizeof o);
    o.vectors = K;
    for (int64_t i = 0; i < a.rows; i++)
        for (int v = 0; v < K; v++)
            b[i * K + v] = size[v] * (1 + 0.5 * cos((double)((v + 1) * i)));
    assert_ok(ctx, spmv_solver_create(ctx, &full, &o, &solver));
    assert_ok(ctx, spmv_solver_solve(solver, b, x, r, sizeof r[0]));
    for (int v = 0; v < K; v++) {
        assert_ok(ctx, r[v].status);
        assert_string_equal(r[v].precond, "amg");
        assert_true(r[v].true_residual <= r[v].tolerance);
    }
    assert_true(r[0].iterations > 0 && r[1].iterations > 0 && r[2].iterations == 0);
    assert_non_null(strstr(r[0].why_precond, "with jacobi"));
    struct solve one = open_solve(ctx, &a, "amg");
    run(ctx, &one);
    for (int64_t i = 0; i < a.rows; i++) {
        const double value = ((double *)one.x)[i];
        assert_true(fabs(x[i * K] - value) <= 1e-5 * fabs(value));
        assert_true(x[i * K + 2] == 0);
    }
    close_solve(ctx, &one);
    /* the next ones begin with the winner */
    memset(x, 0, (size_t)a.rows * K * 8);
    assert_ok(ctx, spmv_solver_solve(solver, b, x, r, sizeof r[0]));
    assert_true(r[0].iterations < 30 && r[1].iterations < 30 && r[2].iterations == 0);
    spmv_solver_destroy(solver);
    free(b);
    free(x);
    free((void *)full.row_ptr);
    free((void *)full.col);
    free((void *)full.val);
    spmv_matrix_destroy(matrix);
}

/* A beam of two materials on a weak foundation: D'E D + k I, where D are second differences. Five entries a row. */
static spmv_matrix *beam(spmv_context *ctx, int64_t n, spmv_csr *a)
{
    static const double along[3] = {1, -2, 1};
    int64_t *const row = support_zeros(5 * n, 8), *const column = support_zeros(5 * n, 8), nnz = 0;
    double *const band = support_zeros(5 * n, 8), *const val = support_zeros(5 * n, 8);
    for (int64_t k = 0; k < n; k++)
        for (int i = 0; i < 3; i++)
            for (int j = 0; j < 3; j++)
                if (k + i - 1 >= 0 && k + i - 1 < n && k + j - 1 >= 0 && k + j - 1 < n)
                    band[5 * (k + i - 1) + j - i + 2] += along[i] * along[j] * (k % 100 < 50 ? 1 : 100);
    for (int64_t i = 0; i < n; i++)
        for (int64_t d = -2; d <= 2; d++)
            if (i + d >= 0 && i + d < n) {
                row[nnz] = i;
                column[nnz] = i + d;
                val[nnz++] = band[5 * i + d + 2] + (d == 0 ? 1e-4 : 0);
            }
    int32_t *const col = support_zeros(nnz, 4);
    for (int64_t k = 0; k < nnz; k++)
        col[k] = (int32_t)column[k];
    spmv_matrix *matrix = NULL;
    assert_ok(ctx, spmv_matrix_from_coo(ctx, n, n, nnz, row, col, val, SPMV_F64, &matrix, NULL));
    spmv_matrix_view(matrix, a);
    support_free(row, column, band, val, col);
    return matrix;
}

/* Scales rows and columns, so that errors are not smooth, and jacobi does little. */
static void scale(const spmv_csr *a)
{
    for (int64_t i = 0; i < a->rows; i++)
        for (int64_t k = row_first(a, i); k < row_first(a, i + 1); k++)
            real_set(a->type, (void *)a->val, k,
                     real_at(a->type, a->val, k) * pow(10, 2 * cos((double)i) + 2 * cos(3.0 * a->col[k])));
}

/* jacobi begins; amg, which is tried next, is slow too; fsai, which is tried last, takes few steps, wins, and is
 * remembered. Of matrices that are not symmetric, isai is tried next, and ilut where that does not do either. */
static void three_on_a_gpu(void **state)
{
    static const struct {
        const char *spec, *solver, *precond;
        bool scaled;
        int64_t least, most; /* iterations: of the first solve; of the next one */
    } cases[] = {{NULL, "cg", "fsai", false, 300, 300},
                 {"banded:1500,3", "gmres", "ilut", false, 40, 5},
                 {"convdiff2d:40,0.1", "gmres", "isai", true, 60, 200}};
    spmv_context *ctx = *state;
    if (support_backend != SPMV_BACKEND_CUDA)
        skip();
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        spmv_matrix *matrix = NULL;
        spmv_csr a;
        if (cases[c].spec != NULL) {
            assert_ok(ctx, spmv_matrix_generate(ctx, cases[c].spec, SPMV_F64, &matrix));
            spmv_matrix_view(matrix, &a);
            if (cases[c].scaled)
                scale(&a);
        } else {
            matrix = beam(ctx, 400, &a);
        }
        struct solve s = open_solve(ctx, &a, NULL);
        run(ctx, &s);
        assert_string_equal(s.r.solver, cases[c].solver);
        assert_string_equal(s.r.precond, cases[c].precond);
        assert_non_null(strstr(s.r.why_precond, "found while solving: after "));
        assert_non_null(strstr(s.r.why_precond, "iterations with jacobi"));
        assert_true(s.r.iterations > cases[c].least);
        run(ctx, &s); /* with the winner */
        assert_string_equal(s.r.precond, cases[c].precond);
        assert_true(s.r.iterations <= cases[c].most);
        close_solve(ctx, &s);
        spmv_matrix_destroy(matrix);
    }
}

struct heard {
    int64_t iterations, iterates;
    const void *last;
};

static int hear_iteration(int64_t iteration, double residual, void *user)
{
    struct heard *const h = user;
    (void)residual;
    h->iterations = iteration;
    return 0;
}

static int hear_iterate(int64_t iteration, double residual, const void *x, void *user)
{
    struct heard *const h = user;
    (void)residual;
    h->iterates = iteration;
    h->last = x;
    return 0;
}

/* Both callbacks of the caller are called through a race, with the caller's pointer, and the numbers of
 * iterations go on. So they are through minres, which is judged alone. */
static void callbacks(void **state)
{
    spmv_context *ctx = *state;
    spmv_csr a;
    if (support_backend == SPMV_BACKEND_CUDA)
        skip();
    spmv_matrix *const matrix = race_matrix(ctx, &a);
    for (int with = 0; with < 2; with++) {
        struct heard h = {0};
        struct solve s = open_solve(ctx, &a, NULL);
        assert_ok(ctx, spmv_solver_set_callbacks(s.solver, hear_iteration, with ? hear_iterate : NULL, &h));
        run(ctx, &s);
        assert_string_equal(s.r.precond, "amg");
        assert_int_equal(h.iterations, s.r.iterations);
        assert_int_equal(h.iterates, with ? s.r.iterations : 0);
        assert_true((h.last != NULL) == (with == 1));
        close_solve(ctx, &s);
    }
    spmv_matrix_destroy(matrix);
}

/* Elasticity whose unknowns are numbered by direction, so that amg finds no nodes and is slow. skew: added to one
 * entry. */
static spmv_matrix *by_direction(spmv_context *ctx, double skew, spmv_csr *a)
{
    spmv_matrix *matrix = NULL, *to = NULL;
    spmv_csr of;
    assert_ok(ctx, spmv_matrix_generate(ctx, "elasticity2d:70", SPMV_F64, &matrix));
    spmv_matrix_view(matrix, &of);
    int64_t *const row = support_zeros(of.nnz, 8);
    int32_t *const col = support_zeros(of.nnz, 4);
    double *const val = support_zeros(of.nnz, 8);
    for (int64_t i = 0; i < of.rows; i++)
        for (int64_t k = row_first(&of, i); k < row_first(&of, i + 1); k++) {
            row[k] = i % 2 * (of.rows / 2) + i / 2;
            col[k] = (int32_t)(of.col[k] % 2 * (of.rows / 2) + of.col[k] / 2);
            val[k] = real_at(of.type, of.val, k) + (i == 200 && of.col[k] == 202 ? skew : 0);
        }
    assert_ok(ctx, spmv_matrix_from_coo(ctx, of.rows, of.cols, of.nnz, row, col, val, SPMV_F64, &to, NULL));
    spmv_matrix_view(to, a);
    spmv_matrix_destroy(matrix);
    support_free(row, col, val);
    return to;
}

/* amg begins, and jacobi, which has less to do, is tried. */
static void first_is_slow(void **state)
{
    spmv_context *ctx = *state;
    spmv_csr a;
    if (support_backend == SPMV_BACKEND_CUDA)
        skip(); /* jacobi begins */
    spmv_matrix *const matrix = by_direction(ctx, 0, &a);
    struct solve s = open_solve(ctx, &a, NULL);
    run(ctx, &s);
    struct solve named = open_solve(ctx, &a, "amg");
    run(ctx, &named);
    assert_true(named.r.iterations > 100);
    assert_non_null(strstr(s.r.why_precond, "found while solving"));
    close_solve(ctx, &named);
    close_solve(ctx, &s);
    spmv_matrix_destroy(matrix);
}

/* Not symmetric: a sample tells what each takes, and the best begins; where it is slow, within a race. */
static void unsymmetric_by_sample(void **state)
{
    spmv_context *ctx = *state;
    spmv_csr a;
    if (support_backend != SPMV_BACKEND_OMP)
        skip(); /* on a GPU jacobi begins, and ref is slow */
    spmv_matrix *const matrix = by_direction(ctx, 0.01, &a);
    struct solve s = open_solve(ctx, &a, NULL);
    spmv_solver_info info;
    assert_ok(ctx, spmv_solver_describe(s.solver, &info, sizeof info));
    assert_string_equal(info.solver, "gmres");
    assert_string_equal(precond_name(info.precond), "ilu0");
    assert_non_null(strstr(info.precond->why, "a sample of 613 rows predicts about"));
    assert_non_null(strstr(info.precond->why, "iterations with ilu0"));
    assert_non_null(strstr(info.precond->why, "iterations with ilut"));
    run(ctx, &s);
    assert_string_equal(s.r.precond, "ilut");
    assert_non_null(strstr(s.r.why_precond, "iterations with ilu0 about"));
    assert_true(s.r.iterations < 200);
    close_solve(ctx, &s);
    spmv_matrix_destroy(matrix);
}

/* ilu0 begins, and multigrid takes over. */
static spmv_matrix *convection_matrix(spmv_context *ctx, spmv_csr *a)
{
    spmv_matrix *matrix = NULL;
    assert_ok(ctx, spmv_matrix_generate(ctx, "convdiff2d:150,1", SPMV_F64, &matrix));
    spmv_matrix_view(matrix, a);
    return matrix;
}

/* A saddle point problem: the Laplacian of a grid of 40 x 40 points, and constraints on the differences of points of the
 * same row. Symmetric, with zeros on the diagonal. */
static spmv_matrix *saddle(spmv_context *ctx, spmv_csr *a)
{
    enum { SIDE = 40, N = SIDE * SIDE, CONSTRAINTS = N / 8, MOST = 5 * N + 4 * CONSTRAINTS };
    int64_t *const row = support_zeros(MOST, 8), nnz = 0;
    int32_t *const col = support_zeros(MOST, 4);
    double *const val = support_zeros(MOST, 8);
    spmv_matrix *matrix = NULL;
    for (int64_t i = 0; i < N; i++) {
        const int64_t beside[5] = {i, i % SIDE > 0 ? i - 1 : -1, i % SIDE < SIDE - 1 ? i + 1 : -1, i - SIDE, i + SIDE};
        for (int t = 0; t < 5; t++)
            if (beside[t] >= 0 && beside[t] < N) {
                row[nnz] = i;
                col[nnz] = (int32_t)beside[t];
                val[nnz++] = t == 0 ? 4.001 : -1;
            }
    }
    for (int64_t c = 0; c < CONSTRAINTS; c++)
        for (int64_t t = 0; t < 2; t++) {
            const int64_t at = 8 * c + 3 * t;
            row[nnz] = N + c;
            col[nnz] = (int32_t)at;
            val[nnz++] = t == 0 ? 1 : -1;
            row[nnz] = at;
            col[nnz] = (int32_t)(N + c);
            val[nnz++] = t == 0 ? 1 : -1;
        }
    assert_ok(ctx,
              spmv_matrix_from_coo(ctx, N + CONSTRAINTS, N + CONSTRAINTS, nnz, row, col, val, SPMV_F64, &matrix, NULL));
    spmv_matrix_view(matrix, a);
    support_free(row, col, val);
    return matrix;
}

/* minres begins without a preconditioner. A sample tells that gmres with ilut takes less work, and the solver keeps
 * that. */
static void saddle_by_sample(void **state)
{
    spmv_context *ctx = *state;
    spmv_csr a;
    spmv_solver_info info;
    if (support_backend != SPMV_BACKEND_OMP)
        skip(); /* on a GPU there is no sample, and ref is slow */
    spmv_matrix *const matrix = saddle(ctx, &a);
    struct solve s = open_solve(ctx, &a, NULL);
    assert_ok(ctx, spmv_solver_describe(s.solver, &info, sizeof info));
    assert_string_equal(info.solver, "minres");
    run(ctx, &s);
    assert_string_equal(s.r.solver, "gmres");
    assert_string_equal(s.r.precond, "ilut");
    assert_non_null(strstr(s.r.why_precond, "a sample of 113 rows predicts about"));
    assert_non_null(strstr(s.r.why_precond, "iterations with none"));
    const int64_t first = s.r.iterations;
    assert_true(first < 400);
    run(ctx, &s);
    assert_string_equal(s.r.solver, "gmres");
    assert_string_equal(s.r.precond, "ilut");
    assert_true(s.r.iterations + 60 <= first);
    close_solve(ctx, &s);
    spmv_matrix_destroy(matrix);
}

/* The same bits for one thread and for three, and in two runs. */
static void bits(void **state)
{
    (void)state;
    if (support_backend != SPMV_BACKEND_OMP)
        skip();
    static const int threads[] = {1, 3, 3};
    for (int which = 0; which < 3; which++) {
        double *x[3];
        int64_t n = 0;
        for (int i = 0; i < 3; i++) {
            static const char *const takes[] = {"amg", "amg", "ilut"};
            spmv_context *const ctx = support_context_on(SPMV_BACKEND_OMP, threads[i]);
            spmv_csr a;
            spmv_matrix *const matrix = which == 0   ? race_matrix(ctx, &a)
                                        : which == 1 ? convection_matrix(ctx, &a)
                                                     : saddle(ctx, &a);
            struct solve s = open_solve(ctx, &a, NULL);
            n = a.rows;
            x[i] = support_zeros(n, 8);
            run(ctx, &s);
            assert_string_equal(s.r.precond, takes[which]);
            assert_ok(ctx, spmv_download(ctx, s.x, x[i], 8 * n));
            close_solve(ctx, &s);
            spmv_matrix_destroy(matrix);
            spmv_context_destroy(ctx);
        }
        assert_memory_equal(x[0], x[1], 8 * (size_t)n);
        assert_memory_equal(x[1], x[2], 8 * (size_t)n);
        support_free(x[0], x[1], x[2]);
    }
}

/* ---------------------------------------------------------------------- nodes */

static void check_nodes(spmv_context *ctx, const spmv_csr *a, int block, const char *words)
{
    spmv_preconditioner_options o;
    spmv_preconditioner_options_init(&o, sizeof o);
    spmv_preconditioner *m = NULL;
    spmv_preconditioner_info info;
    double *r = support_zeros(a->rows, 8), *z[2];
    for (int64_t i = 0; i < a->rows; i++)
        r[i] = sin((double)i);
    void *const there = support_upload(ctx, r, 8 * a->rows), *const to = support_upload(ctx, r, 8 * a->rows);
    for (int named = 0; named < 2; named++) {
        o.block = named ? block : 0;
        z[named] = support_zeros(a->rows, 8);
        assert_ok(ctx, spmv_preconditioner_create(ctx, "amg", a, &o, &m));
        assert_ok(ctx, spmv_preconditioner_describe(m, &info, sizeof info));
        assert_true((strstr(info.layout, "nodes of") != NULL) == (block > 1));
        assert_non_null(strstr(info.layout, words));
        assert_ok(ctx, spmv_preconditioner_apply(m, there, to));
        assert_ok(ctx, spmv_download(ctx, to, z[named], 8 * a->rows));
        spmv_preconditioner_destroy(m);
    }
    assert_memory_equal(z[0], z[1], 8 * (size_t)a->rows);
    support_free(z[0], z[1], r);
    support_free_in(ctx, there, to);
}

/* amg finds the unknowns of a node, also where entries that are 0 are left out and where a row has a
 * boundary value; of a grid it finds none. */
static void nodes(void **state)
{
    spmv_context *ctx = *state;
    static const struct {
        const char *spec, *words;
        int block;
    } cases[] = {{"elasticity2d:16", "nodes of 2 rows; ", 2},
                 {"elasticity3d:6", "nodes of 3 rows; ", 3},
                 {"poisson2d:24", "chebyshev", 1}};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        spmv_matrix *matrix = NULL, *thin = NULL;
        spmv_csr a;
        assert_ok(ctx, spmv_matrix_generate(ctx, cases[c].spec, SPMV_F64, &matrix));
        spmv_matrix_view(matrix, &a);
        check_nodes(ctx, &a, cases[c].block, cases[c].words);
        int64_t *const row = support_zeros(a.nnz, 8), nnz = 0;
        int32_t *const col = support_zeros(a.nnz, 4);
        double *const val = support_zeros(a.nnz, 8);
        const double *const values = a.val;
        for (int64_t i = 0; i < a.rows; i++)
            for (int64_t k = row_first(&a, i); k < row_first(&a, i + 1); k++) {
                const bool boundary = i == 5 || a.col[k] == 5, weak = (i + a.col[k]) % 7 == 3 && i % 2 != a.col[k] % 2;
                /* no coupling at all between row 300 and the node beside its own */
                const bool vanishes = (i == 300 && a.col[k] / 3 == 101) || (a.col[k] == 300 && i / 3 == 101);
                if (a.col[k] != i && (boundary || (cases[c].block == 3 && vanishes) ||
                                      (cases[c].block > 1 && weak && i / cases[c].block != a.col[k] / cases[c].block)))
                    continue;
                row[nnz] = i;
                col[nnz] = a.col[k];
                val[nnz++] = (a.col[k] == i ? 2 : 1) * values[k]; /* still positive definite */
            }
        assert_true(nnz < a.nnz);
        assert_ok(ctx, spmv_matrix_from_coo(ctx, a.rows, a.cols, nnz, row, col, val, SPMV_F64, &thin, NULL));
        spmv_matrix_view(thin, &a);
        check_nodes(ctx, &a, cases[c].block, cases[c].words);
        spmv_matrix_destroy(thin);
        spmv_matrix_destroy(matrix);
        support_free(row, col, val);
    }
}

/* A body whose first nodes move in fewer directions: node i of the first `few` loses its first component, or the
 * first 1 + i mod (block - 1). component: of each row that is left. */
static spmv_matrix *on_rollers(spmv_context *ctx, const char *spec, int block, int64_t few, int **component)
{
    spmv_matrix *matrix = NULL, *made = NULL;
    spmv_csr a;
    assert_ok(ctx, spmv_matrix_generate(ctx, spec, SPMV_F64, &matrix));
    spmv_matrix_view(matrix, &a);
    int64_t *const row = support_zeros(a.nnz, 8), *const number = support_zeros(a.rows, 8), nnz = 0, rows = 0;
    int32_t *const col = support_zeros(a.nnz, 4);
    double *const val = support_zeros(a.nnz, 8);
    *component = support_zeros(a.rows, sizeof **component);
    for (int64_t i = 0; i < a.rows; i++) {
        (*component)[rows] = (int)(i % block);
        number[i] = i / block < few && i % block <= i / block % (block - 1) ? -1 : rows++;
    }
    for (int64_t i = 0; i < a.rows; i++)
        for (int64_t k = row_first(&a, i); k < row_first(&a, i + 1); k++)
            if (number[i] >= 0 && number[a.col[k]] >= 0) {
                row[nnz] = number[i];
                col[nnz] = (int32_t)number[a.col[k]];
                val[nnz++] = real_at(a.type, a.val, k);
            }
    assert_true(rows < a.rows);
    assert_ok(ctx, spmv_matrix_from_coo(ctx, rows, rows, nnz, row, col, val, SPMV_F64, &made, NULL));
    spmv_matrix_destroy(matrix);
    support_free(row, number, col, val);
    return made;
}

/* amg finds nodes of fewer rows than others, and their components. It takes about as many iterations as for full
 * ones. */
static void nodes_of_fewer_rows(void **state)
{
    spmv_context *ctx = *state;
    const struct {
        const char *spec, *words;
        int block;
        int64_t few;
    } cases[] = {{SLOW ? "elasticity2d:16" : "elasticity2d:30", "nodes of up to 2 rows; ", 2, SLOW ? 16 : 30},
                 {SLOW ? "elasticity3d:6" : "elasticity3d:8", "nodes of up to 3 rows; ", 3, SLOW ? 36 : 64}};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        int64_t iterations[2];
        spmv_solver_info info;
        spmv_preconditioner_info of;
        for (int fewer = 0; fewer < 2; fewer++) {
            int *component = NULL;
            spmv_matrix *const matrix =
                on_rollers(ctx, cases[c].spec, cases[c].block, fewer ? cases[c].few : 1, &component);
            spmv_csr a;
            spmv_matrix_view(matrix, &a);
            struct solve s = open_solve(ctx, &a, "amg");
            run(ctx, &s);
            iterations[fewer] = s.r.iterations;
            assert_ok(ctx, spmv_solver_describe(s.solver, &info, sizeof info));
            assert_ok(ctx, spmv_preconditioner_describe(info.precond, &of, sizeof of));
            assert_non_null(strstr(of.layout, cases[c].words));
            const struct amg *const amg = info.precond->self;
            assert_true(amg->levels > 1);
            int32_t *const slot = support_zeros(a.rows, 4);
            assert_ok(ctx, spmv_download(ctx, amg->slot, slot, 4 * a.rows));
            int64_t wrong = 0;
            for (int64_t i = 0; i < a.rows; i++)
                wrong += slot[i] % cases[c].block != component[i];
            assert_int_equal(wrong, 0);
            close_solve(ctx, &s);
            spmv_matrix_destroy(matrix);
            support_free(component, slot);
        }
        if (iterations[1] > iterations[0] + 3 || iterations[1] > 40)
            fail_msg("%s: %lld iterations with nodes of fewer rows, %lld with two of them", cases[c].spec,
                     (long long)iterations[1], (long long)iterations[0]);
    }
}

/* ---------------------------------------------------------------------- a solver that is nearly there */

/* A grid with all diagonal entries reduced. The symmetric matrix has some negative eigenvalues. */
static spmv_matrix *shifted(spmv_context *ctx, const char *spec, double shift, spmv_csr *a, double **val)
{
    spmv_matrix *matrix = NULL;
    assert_ok(ctx, spmv_matrix_generate(ctx, spec, SPMV_F64, &matrix));
    spmv_matrix_view(matrix, a);
    *val = support_zeros(a->nnz, 8);
    for (int64_t i = 0; i < a->rows; i++)
        for (int64_t k = row_first(a, i); k < row_first(a, i + 1); k++)
            (*val)[k] = real_at(a->type, a->val, k) - (a->col[k] == i ? shift : 0);
    a->val = *val;
    return matrix;
}

/* minres takes more than 2000 iterations, and less than the factors that would follow: those of a race take
 * too much work. */
static void nearly_there(void **state)
{
    spmv_context *ctx = *state;
    spmv_csr a;
    double *val = NULL;
    if (SLOW)
        skip();
    spmv_matrix *const matrix = shifted(ctx, "poisson2d:120", 0.2, &a, &val);
    val[a.nnz - 1] = -1; /* no factor of a positive definite matrix is tried */
    struct solve s = open_solve(ctx, &a, NULL);
    run(ctx, &s);
    assert_string_equal(s.r.solver, "minres");
    assert_string_equal(s.r.precond, "none");
    assert_true(s.r.iterations > 2000);
    close_solve(ctx, &s);
    spmv_matrix_destroy(matrix);
    free(val);
}

/* cg finds an indefinite matrix, minres goes on, and gmres with ilut takes less work than both: the solver
 * keeps it, for other right-hand sides and for new values. */
static void indefinite(void **state)
{
    spmv_context *ctx = *state;
    spmv_csr a;
    double *val = NULL;
    if (support_backend == SPMV_BACKEND_CUDA || SLOW)
        skip(); /* nothing races against minres */
    spmv_matrix *const matrix = shifted(ctx, "banded:2500,3", 0, &a, &val);
    /* the tridiagonal part, of both signs: factors without fill-in are exact */
    for (int64_t i = 0; i < a.rows; i++)
        for (int64_t k = row_first(&a, i); k < row_first(&a, i + 1); k++)
            val[k] = a.col[k] == i ? 1 + 0.5 * sin((double)i) : a.col[k] == i + 1 || a.col[k] == i - 1 ? 1 : 0;
    struct solve s = open_solve(ctx, &a, NULL);
    run(ctx, &s);
    assert_string_equal(s.r.solver, "gmres");
    assert_string_equal(s.r.precond, "ilut");
    assert_non_null(strstr(s.r.why_precond, "found while solving: after "));
    assert_non_null(strstr(s.r.why_solver, "it takes less work than"));
    const int64_t all = s.r.iterations;
    assert_true(all > 100);
    for (int turn = 0; turn < 2; turn++) {
        run(ctx, &s);
        assert_string_equal(s.r.solver, "gmres");
        assert_string_equal(s.r.precond, "ilut");
        assert_non_null(strstr(s.r.why_solver, "it takes less work than"));
        assert_true(s.r.iterations < 10);
        for (int64_t k = 0; k < a.nnz; k++)
            val[k] *= 2;
        assert_ok(ctx, spmv_solver_update_values(s.solver, val));
    }
    /* values for which another solver is chosen: the verdict was about minres */
    for (int64_t i = 0; i < a.rows; i++)
        for (int64_t k = row_first(&a, i); k < row_first(&a, i + 1); k++)
            val[k] = a.col[k] == i ? 10 : a.col[k] == i + 1 ? 1 : 0;
    assert_ok(ctx, spmv_solver_update_values(s.solver, val));
    run(ctx, &s);
    assert_null(strstr(s.r.why_solver, "it takes less work than"));
    close_solve(ctx, &s);
    spmv_matrix_destroy(matrix);
    free(val);
}

/* ---------------------------------------------------------------------- not symmetric */

/* Convection and diffusion. On a CPU, a factor without fill-in solves small systems, and those for which a sample says so;
 * residuals correct that, and multigrid takes over. On a GPU, jacobi solves small systems before a hierarchy is made, and
 * shows soon that others need one. */
static void convection(void **state)
{
    static const struct {
        const char *spec, *precond, *why;
        bool gpu;
    } cases[] = {{"convdiff2d:62,100", "ilu0", "a factor without fill-in takes few iterations", false},
                 {"convdiff2d:100,0.1", "amg", "a sample of 625 rows predicts about", false},
                 {"convdiff3d:25,1", "ilu0", "a sample of 977 rows predicts about", false},
                 {"convdiff2d:200,100", "ilut", "about 8 iterations with ilut", false},
                 {"convdiff2d:150,1", "amg", "found while solving: after ", false},
                 {"convdiff2d:300,1", "amg", "a sample of 1407 rows predicts about", false},
                 {"convdiff2d:700,1", "amg", "errors are smooth, and multigrid reduces them", true},
                 {"convdiff2d:400,1", "amg", "found while solving: after ", true},
                 {"convdiff2d:60,1", "jacobi", "show whether multigrid pays, take little", true}};
    spmv_context *ctx = *state;
    const bool gpu = support_backend == SPMV_BACKEND_CUDA;
    if (SLOW)
        skip();
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        spmv_matrix *matrix = NULL;
        spmv_csr a;
        if (cases[c].gpu != gpu)
            continue;
        assert_ok(ctx, spmv_matrix_generate(ctx, cases[c].spec, SPMV_F64, &matrix));
        spmv_matrix_view(matrix, &a);
        struct solve s = open_solve(ctx, &a, NULL);
        run(ctx, &s);
        assert_string_equal(s.r.solver, "gmres");
        assert_string_equal(s.r.precond, cases[c].precond);
        assert_non_null(strstr(s.r.why_precond, cases[c].why));
        assert_true(s.r.iterations <= 80 || strcmp(cases[c].precond, "jacobi") == 0);
        close_solve(ctx, &s);
        spmv_matrix_destroy(matrix);
    }
}

/* What is read of A is read of -A too, and of A with some rows of the other sign. */
static void sign_of_the_diagonal(void **state)
{
    spmv_context *ctx = *state;
    const bool gpu = support_backend == SPMV_BACKEND_CUDA;
    for (int every = 1; every <= 3; every += 2) {
        spmv_csr a;
        spmv_matrix *matrix = NULL;
        assert_ok(ctx, spmv_matrix_generate(ctx, "convdiff2d:50,1", SPMV_F64, &matrix));
        spmv_matrix_view(matrix, &a);
        for (int64_t i = 0; i < a.rows; i += every)
            for (int64_t k = row_first(&a, i); k < row_first(&a, i + 1); k++)
                real_set(a.type, (void *)a.val, k, -real_at(a.type, a.val, k));
        struct solve s = open_solve(ctx, &a, NULL);
        assert_string_equal(precond_name(s.solver->precond), gpu ? "jacobi" : "ilu0");
        assert_non_null(strstr(s.solver->precond->why, gpu ? "errors are smooth" : "rows that mostly have the sum 0"));
        close_solve(ctx, &s);
        spmv_matrix_destroy(matrix);
    }
}

/* ---------------------------------------------------------------------- the share of memory */

/* Factors that "auto" makes take half of what a limit of the memory leaves; by name they take what they need. */
static void share_of_memory(void **state)
{
    enum { LEFT = 1500000 };
    spmv_context *ctx = *state;
    spmv_matrix *matrix = NULL;
    spmv_csr a;
    spmv_solver_info info;
    spmv_preconditioner_info of;
    int64_t bytes[2];
    if (support_backend == SPMV_BACKEND_CUDA)
        skip(); /* jacobi is taken */
    assert_ok(ctx, spmv_matrix_generate(ctx, "convdiff2d:60,1", SPMV_F64, &matrix));
    spmv_matrix_view(matrix, &a);
    double *const values = support_mixed_signs(&a);
    for (int limited = 0; limited < 2; limited++) {
        struct solve s = open_solve(ctx, &a, limited ? "auto" : "ilut");
        if (limited) {
            close_solve(ctx, &s);
            int64_t limit = 0;
            spmv_memory_limit((int64_t)1 << 40);
            const int64_t left = memory_limit_left(&limit);
            spmv_memory_limit(limit - left + LEFT);
            s = open_solve(ctx, &a, "auto");
        }
        assert_ok(ctx, spmv_solver_describe(s.solver, &info, sizeof info));
        assert_ok(ctx, spmv_preconditioner_describe(info.precond, &of, sizeof of));
        assert_string_equal(of.name, "ilut");
        bytes[limited] = of.bytes;
        run(ctx, &s);
        close_solve(ctx, &s);
    }
    spmv_memory_limit(0);
    assert_true(bytes[1] < bytes[0] && bytes[1] < LEFT);
    free(values);
    spmv_matrix_destroy(matrix);
}

SUPPORT_MAIN_WITHOUT_MODULES(with_context(predictions), with_context(by_sample), with_context(along_lines),
                             with_context(sample_within_a_limit), with_context(factor_without_a_sample),
                             with_context(second_wins), with_context(no_room_for_a_race), with_context(several),
                             with_context(factor_wins), with_context(callbacks), with_context(three_on_a_gpu),
                             with_context(first_is_slow), with_context(unsymmetric_by_sample),
                             with_context(saddle_by_sample), with_context(bits), with_context(nodes),
                             with_context(nodes_of_fewer_rows), with_context(nearly_there), with_context(indefinite),
                             with_context(convection), with_context(sign_of_the_diagonal),
                             with_context(share_of_memory))

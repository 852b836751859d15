/* The methods and preconditioners that follow one that fails: factors that are unstable are refused, a
 * method goes on where no other helps, a preconditioner that fails gives way to jacobi, several
 * right-hand sides are treated as each alone, a negative definite matrix is solved as its negative, and
 * rounding errors are named.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "tests/support/support_grid.h"
#include "tests/support/support_module.h"
#include "tests/support/support_slow.h"

static spmv_solver_options options_of(const char *method, const char *precond)
{
    spmv_solver_options o;
    spmv_solver_options_init(&o, sizeof o);
    o.solver = method;
    o.precond = precond;
    return o;
}

/* b = A 1 */
static void set_image(struct grid *g)
{
    for (int64_t i = 0; i < g->n; i++) {
        g->b[i] = 0;
        for (int64_t k = g->row_ptr[i]; k < g->row_ptr[i + 1]; k++)
            g->b[i] += g->val[k];
    }
}

/* Indefinite, with a diagonal of 0.1 and neighbours of -1: incomplete factors without pivoting grow
 * exponentially along the grid. */
static void unstable_factors(void **state)
{
    static const struct {
        const char *name;
        int side;
    } cases[] = {{"ilu0", 120}, {"ilut", 60}};
    spmv_context *ctx = *state;
    for (int c = 0; c < 2; c++) {
        struct grid g = grid_new(cases[c].side, 1, false, -3.9, SPMV_F64);
        double *const x = support_zeros(g.n, 8);
        const spmv_solver_options named = options_of("gmres", cases[c].name);
        spmv_preconditioner *m = NULL;
        spmv_solver_result r;
        char words[64];
        snprintf(words, sizeof words, "preconditioner %s: its factors are unstable", cases[c].name);
        assert_fails(ctx, grid_solve(ctx, &g, &named, x, &r), SPMV_ERROR_NOT_FINITE, words);
        spmv_csr there = support_csr_there(g.n, g.n, g.view.nnz, support_upload(ctx, g.row_ptr, 8 * (g.n + 1)), 64,
                                           support_upload(ctx, g.col, 4 * g.view.nnz),
                                           support_upload(ctx, g.val, 8 * g.view.nnz), SPMV_F64);
        assert_fails(ctx, spmv_preconditioner_create(ctx, cases[c].name, &there, NULL, &m), SPMV_ERROR_NOT_FINITE,
                     words);
        assert_null(m);
        support_free_in(ctx, (void *)there.row_ptr, (void *)there.col, (void *)there.val);
        free(x);
        grid_free(&g);
    }
}

/* Indefinite, with eigenvalues of both signs down to 1 / n, and with three rows that have no perfect
 * matching: no incomplete factors can be made, and minres needs more than its share of the
 * iterations. An emulated GPU: fewer rows and eigenvalues down to n^-1.6. The right-hand side is
 * consistent. */
static void rest_of_the_iterations(void **state)
{
    enum { N = SLOW ? 401 : 1500 };
    spmv_context *ctx = *state;
    int32_t *const row_ptr = support_zeros(N + 1, 4), *const col = support_zeros(N + 1, 4);
    double *const val = support_zeros(N + 1, 8), *const b = support_zeros(N, 8);
    const int far = N - 3;
    int nnz = 0;
    for (int i = 0; i < N; i++) {
        if (i == far)
            col[nnz++] = far + 1;
        col[nnz++] = i < far ? i : i == far ? far + 2 : far;
        row_ptr[i + 1] = nnz;
        b[i] = i == far + 2 ? b[far + 1] : cos(i);
    }
    for (int k = 0; k < nnz; k++)
        val[k] = k < far ? (k % 2 == 0 ? 1 : -1) * pow((1 + (double)k) / N, SLOW ? 1.6 : 1) : 1;
    const spmv_csr a = support_csr(N, N, row_ptr, col, val);
    spmv_solver_options o = options_of(NULL, NULL);
    spmv_solver *solver = NULL;
    spmv_solver_result r;
    void *const there = support_upload(ctx, b, 8 * N), *const x = support_upload(ctx, b, 8 * N);
    o.zero_start = 1;
    assert_ok(ctx, spmv_solver_create(ctx, &a, &o, &solver));
    assert_ok(ctx, spmv_solver_solve(solver, there, x, &r, sizeof r));
    assert_string_equal(r.solver, "minres");
    assert_true(r.iterations > 2000);
    spmv_solver_destroy(solver);
    support_free(row_ptr, col, val, b);
    support_free_in(ctx, there, x);
}

/* All of an indefinite matrix with a positive diagonal: each of several right-hand sides is solved as it
 * is alone. */
static void several(void **state)
{
    enum { VECTORS = 3 };
    spmv_context *ctx = *state;
    struct grid g = grid_new(16, 1, false, -3, SPMV_F64);
    double *const x = support_zeros(g.n * VECTORS, 8), *const one = support_zeros(g.n, 8);
    spmv_solver_options o = options_of(NULL, NULL);
    spmv_solver_result r[VECTORS];
    set_image(&g);
    g.b[3] += 1;
    assert_ok(ctx, grid_solve(ctx, &g, &o, x, r));
    assert_string_not_equal(r->solver, "cg"); /* minres or, in a race, gmres */
    o.vectors = VECTORS;
    assert_ok(ctx, grid_solve(ctx, &g, &o, x, r));
    for (int v = 0; v < VECTORS; v++) {
        for (int64_t i = 0; i < g.n; i++)
            one[i] = x[i * VECTORS + v];
        assert_true(r[v].status == SPMV_OK && grid_residual(&g, one, NULL) <= 1.01 * r[v].tolerance);
    }
    /* with a preconditioner by name as well */
    o.precond = "jacobi";
    assert_ok(ctx, grid_solve(ctx, &g, &o, x, r));
    support_free(x, one);
    grid_free(&g);
}

/* -A x = -b by cg has the bits of A x = b with the negative of both, with every preconditioner; named or
 * chosen, one right-hand side or two, and after new values of either sign. */
static void negative_definite(void **state)
{
    static const char *const names[] = {"none", "jacobi", "ic0", "amg", "auto"};
    spmv_context *ctx = *state;
    struct grid g = grid_new(SLOW ? 15 : 30, 1, false, 0, SPMV_F64);
    double *const x = support_zeros(2 * g.n, 8), *const y = support_zeros(2 * g.n, 8);
    spmv_solver_result r[2], of[2];
    for (int64_t i = 0; i < g.n; i++)
        g.b[i] = cos((double)i);
    for (size_t m = 0; m < sizeof names / sizeof names[0]; m++)
        for (int vectors = 1; vectors <= 2; vectors++) {
            spmv_solver_options o = options_of(m % 2 == 0 ? NULL : "cg", names[m]);
            o.vectors = vectors;
            if (support_backend == SPMV_BACKEND_CUDA && strcmp(names[m], "ic0") == 0)
                continue;
            for (int turn = 0; turn < 2; turn++) { /* after two turns both have their old signs */
                assert_ok(ctx, grid_solve(ctx, &g, &o, turn == 0 ? x : y, turn == 0 ? r : of));
                assert_true(vectors > 1 || grid_residual(&g, turn == 0 ? x : y, NULL) <= 1.01 * r->tolerance);
                for (int64_t i = 0; i < g.n; i++)
                    g.b[i] = -g.b[i];
                for (int64_t k = 0; k < g.view.nnz; k++)
                    g.val[k] = -g.val[k];
                grid_retype(&g);
            }
            assert_memory_equal(x, y, (size_t)(8 * vectors * g.n));
            assert_int_equal(r->iterations, of->iterations);
            assert_string_equal(of->solver, "cg");
        }
    support_free(x, y);
    grid_free(&g);
}

static void new_signs(void **state)
{
    enum { SIDE = SLOW ? 10 : 20 };
    spmv_context *ctx = *state;
    struct grid g = grid_new(SIDE, 1, false, 0, SPMV_F64);
    double *const x = support_zeros(g.n, 8), *const negative = support_zeros(g.view.nnz, 8);
    spmv_solver *solver = NULL;
    spmv_preconditioner_options p;
    spmv_preconditioner_options_init(&p, sizeof p);
    p.update_values = 1;
    for (int renews = 0; renews < 2; renews++) {
        spmv_solver_options o = options_of(NULL, "amg");
        spmv_solver_result r;
        o.zero_start = 1;
        o.precond_options = renews ? &p : NULL;
        for (int64_t i = 0; i < g.n; i++)
            g.b[i] = 1;
        for (int64_t k = 0; k < g.view.nnz; k++)
            negative[k] = -g.val[k];
        void *const b = support_upload(ctx, g.b, 8 * g.n), *const there = support_upload(ctx, g.b, 8 * g.n);
        void *const signs[] = {support_upload(ctx, negative, 8 * g.view.nnz),
                               support_upload(ctx, g.val, 8 * g.view.nnz)};
        spmv_solver_info info;
        assert_ok(ctx, spmv_solver_create(ctx, &g.view, &o, &solver));
        assert_ok(ctx, spmv_solver_describe(solver, &info, sizeof info));
        const int64_t before = info.bytes;
        for (int turn = 0; turn < (SLOW ? 3 - renews : 4); turn++) {
            assert_ok(ctx, spmv_solver_update_values(solver, signs[turn % 2]));
            assert_ok(ctx, spmv_solver_describe(solver, &info, sizeof info));
            assert_true(turn > 0 || info.bytes >= before + 8 * g.view.nnz); /* the values of -A */
            assert_ok(ctx, spmv_solver_solve(solver, b, there, &r, sizeof r));
            assert_string_equal(r.solver, "cg");
            assert_true((strstr(r.why_solver, "-A x = -b") != NULL) == (turn % 2 == 0));
            support_fetch_as(ctx, SPMV_F64, there, g.n, x);
            assert_true((x[g.n / 2] < 0) == (turn % 2 == 0));
        }
        spmv_solver_destroy(solver);
        support_free_in(ctx, b, there, signs[0], signs[1]);
    }
    support_free(x, negative);
    grid_free(&g);
}

/* A wide range of scales in f32, for which auto takes amg, whose sums overflow in the first step. */
static void failing_preconditioner(void **state)
{
    spmv_context *ctx = *state;
    const int side = SLOW ? 24 : 120;
    struct grid g = grid_new(side, 1, false, 0, SPMV_F32);
    double *const x = support_zeros(g.n, 8);
    spmv_solver_options o = options_of(NULL, NULL);
    spmv_solver_result r;
    for (int64_t i = 0; i < g.n; i++) {
        const bool edge = i % side == 0;
        for (int64_t k = g.row_ptr[i]; k < g.row_ptr[i + 1]; k++)
            g.val[k] = edge && g.col[k] == i ? 1e20 : g.val[k];
        g.b[i] = edge ? 1e20 : 0;
    }
    grid_retype(&g);
    o.rtol = 1e-4;
    const spmv_status st = grid_solve(ctx, &g, &o, x, &r);
    assert_true(st != SPMV_ERROR_NOT_FINITE && r.iterations > 0);
    for (int64_t i = 0; i < g.n; i++)
        assert_true(isfinite(x[i]));
    free(x);
    grid_free(&g);
}

/* f32 has too few digits for this tolerance: no method with incomplete factors follows. */
static void at_the_rounding_errors(void **state)
{
    spmv_context *ctx = *state;
    struct grid g = grid_new(SLOW ? 40 : 120, 1, false, 0, SPMV_F32);
    double *const x = support_zeros(g.n, 8);
    spmv_solver_options o = options_of(NULL, NULL);
    spmv_solver_result r;
    for (int64_t i = 0; i < g.n; i++)
        g.b[i] = 1;
    o.rtol = 1e-7;
    assert_fails(ctx, grid_solve(ctx, &g, &o, x, &r), SPMV_ERROR_STAGNATION, "at the rounding errors of b - A x");
    assert_string_equal(r.solver, "cg");
    assert_true(grid_residual(&g, x, NULL) < 1e-2 * r.norm_b);
    free(x);
    grid_free(&g);
}

/* The square of a Poisson matrix and a tenth of it, by 13 points, with signs like a chessboard: the recurrence
 * of cg reaches the tolerance far below the true residual, which no method with incomplete factors mends. */
static void below_the_rounding_errors(void **state)
{
    enum { SIDE = SLOW ? 30 : 90, POINTS = 13, ROWS = SIDE * SIDE };
    static const int step[POINTS][2] = {{-2, 0}, {-1, -1}, {-1, 0}, {-1, 1}, {0, -2}, {0, -1}, {0, 0},
                                        {0, 1},  {0, 2},   {1, -1}, {1, 0},  {1, 1},  {2, 0}};
    spmv_context *ctx = *state;
    int64_t *const ptr = support_zeros(ROWS + 1, 8), nnz = 0;
    int32_t *const col = support_zeros(POINTS * ROWS, 4);
    float *const val = support_zeros(POINTS * ROWS, 4), *const b = support_zeros(ROWS, 4);
    for (int64_t i = 0; i < ROWS; i++) {
        const int64_t y = i / SIDE, x = i % SIDE;
        const int beside = (y > 0) + (y + 1 < SIDE) + (x > 0) + (x + 1 < SIDE);
        for (int p = 0; p < POINTS; p++) {
            const int64_t to_y = y + step[p][0], to_x = x + step[p][1];
            const int far = abs(step[p][0]) + abs(step[p][1]);
            if (to_y < 0 || to_y >= SIDE || to_x < 0 || to_x >= SIDE)
                continue;
            col[nnz] = (int32_t)(to_y * SIDE + to_x);
            val[nnz++] = far == 0                             ? 16.4F + (float)beside
                         : far == 1                           ? 8.1F
                         : step[p][0] != 0 && step[p][1] != 0 ? 2
                                                              : 1;
        }
        ptr[i + 1] = nnz;
        b[i] = (x + y) % 2 == 0 ? 1 : -1;
    }
    const spmv_csr a = support_csr_with(ROWS, ROWS, nnz, ptr, 64, col, val, SPMV_F32);
    void *const there = support_upload(ctx, b, ROWS * 4), *const x = support_upload(ctx, b, ROWS * 4);
    spmv_solver_options o = options_of(NULL, NULL);
    spmv_solver *solver = NULL;
    spmv_solver_result r;
    o.rtol = 1e-4;
    o.zero_start = 1;
    assert_ok(ctx, spmv_solver_create(ctx, &a, &o, &solver));
    assert_fails(ctx, spmv_solver_solve(solver, there, x, &r, sizeof r), SPMV_ERROR_STAGNATION,
                 "rounding errors of b - A x");
    assert_string_equal(r.solver, "cg");
    if (support_backend == SPMV_BACKEND_OMP) /* others round otherwise */
        assert_true(r.recurrence_residual <= r.tolerance && r.true_residual > 10 * r.tolerance);
    spmv_solver_destroy(solver);
    support_free_in(ctx, there, x);
    support_free(ptr, col, val, b);
}

static int sees(int64_t iteration, double residual, const void *x, void *user)
{
    (void)residual;
    (void)x;
    *(int64_t *)user = iteration;
    return 0;
}

/* Second differences of 1000 numbers, and a smooth b: the true residual of minres stays twice as large as this tolerance,
 * since a thousand steps have rounded x. A correction, which the callback does not see, reaches it. */
static void last_digits(void **state)
{
    enum { ROWS = 1000 };
    spmv_context *ctx = *state;
    int64_t ptr[ROWS + 1] = {0}, nnz = 0, seen = 0;
    int32_t col[3 * ROWS];
    double val[3 * ROWS], b[ROWS], x[ROWS] = {0};
    for (int i = 0; i < ROWS; i++) {
        for (int j = i > 0 ? i - 1 : 0; j <= i + 1 && j < ROWS; j++) {
            col[nnz] = j;
            val[nnz++] = j == i ? 2 : -1;
        }
        ptr[i + 1] = nnz;
        b[i] = exp(-pow((i - ROWS / 3.0) / 50, 2));
    }
    const spmv_csr a =
        support_csr_there(ROWS, ROWS, nnz, support_upload(ctx, ptr, sizeof ptr), 64, support_upload(ctx, col, 4 * nnz),
                          support_upload(ctx, val, 8 * nnz), SPMV_F64);
    void *const b_there = support_upload(ctx, b, sizeof b), *const x_there = support_upload(ctx, x, sizeof x);
    spmv_solver_options o = options_of("minres", "none");
    spmv_solver *solver = NULL;
    spmv_solver_result r;
    o.rtol = 1e-11;
    o.on_iterate = sees;
    o.user = &seen;
    assert_ok(ctx, spmv_solver_create(ctx, &a, &o, &solver));
    assert_ok(ctx, spmv_solver_solve(solver, b_there, x_there, &r, sizeof r));
    assert_ok(ctx, spmv_download(ctx, x_there, x, sizeof x));
    long double square = 0;
    for (int i = 0; i < ROWS; i++) {
        const long double left = i > 0 ? x[i - 1] : 0, right = i + 1 < ROWS ? x[i + 1] : 0;
        const long double rest = b[i] - 2.0L * x[i] + left + right;
        square += rest * rest;
    }
    assert_true(sqrtl(square) <= 1.01L * r.tolerance && r.true_residual <= r.tolerance);
    if (support_backend == SPMV_BACKEND_OMP) /* others round otherwise */
        assert_true(r.restarts >= 1 && seen > 900 && seen < r.iterations);
    spmv_solver_destroy(solver);
    support_free_in(ctx, b_there, x_there, (void *)a.row_ptr, (void *)a.col, (void *)a.val);
}

/* The caller's limit ends a solve with the last x, so that a next solve goes on; a method that "auto"
 * would follow returns no larger residual than that of 0. */
static void limits(void **state)
{
    spmv_context *ctx = *state;
    struct grid g = grid_new(30, 1, false, 0, SPMV_F64);
    double *const x = support_zeros(g.n, 8);
    spmv_solver_options o = options_of("cg", "none");
    spmv_solver_result r;
    g.b[0] = 1;
    o.max_iterations = 7;
    assert_fails(ctx, grid_solve(ctx, &g, &o, x, &r), SPMV_ERROR_ITERATIONS, "after 7 iterations");
    assert_true(r.iterations == 7 && fabs(grid_residual(&g, x, NULL) - r.true_residual) < 1e-12);
    free(x);
    grid_free(&g);
    g = grid_new(30, 1, false, -3.999, SPMV_F64);
    double *const z = support_zeros(g.n, 8);
    set_image(&g);
    o = options_of(NULL, NULL);
    o.max_iterations = 3;
    assert_int_equal(spmv_status_class(grid_solve(ctx, &g, &o, z, &r)), 7);
    assert_true(fabs(grid_residual(&g, z, NULL) - r.true_residual) < 1e-9 * r.norm_b);
    free(z);
    grid_free(&g);
}

SUPPORT_MAIN_WITHOUT_MODULES(with_context(unstable_factors), with_context(rest_of_the_iterations),
                             with_context(several), with_context(negative_definite), with_context(new_signs),
                             with_context(failing_preconditioner), with_context(at_the_rounding_errors),
                             with_context(below_the_rounding_errors), with_context(last_digits), with_context(limits))

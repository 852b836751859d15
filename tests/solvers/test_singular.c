/* Solves with a singular symmetric matrix: known null vectors (rows that sum to 0), unknown ones, right-hand
 * sides that are consistent, up to rounding, nearly, and not at all. The residual reported is the true
 * one, x stays bounded, and no number is lost.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "tests/support/support_grid.h"
#include "tests/support/support_slow.h"

static const char known[] = "every row sums to 0";

static spmv_solver_options options_of(const char *method, const char *precond)
{
    spmv_solver_options o;
    spmv_solver_options_init(&o, sizeof o);
    o.solver = method;
    o.precond = precond;
    return o;
}

static double largest_of(const double *x, int64_t n)
{
    double largest = 0;
    for (int64_t i = 0; i < n; i++)
        if (!(fabs(x[i]) <= largest))
            largest = fabs(x[i]);
    return largest;
}

/* A source of 1 at one end and a sink of mismatch - 1 at the other. */
static void set_source(struct grid *g, double mismatch)
{
    for (int64_t i = 0; i < g->n; i++)
        g->b[i] = 0;
    g->b[0] = 1;
    g->b[g->n - 1] += mismatch - 1;
}

/* The smallest possible residual is mismatch / sqrt(n). Below the tolerance the system is solved, above
 * it x is the least-squares solution. */
static void nearly_consistent(void **state)
{
    static const int sides[] = {8, 15, SLOW ? 16 : 32};
    static const double mismatches[] = {0, 1e-12, 1e-7, 1e-5, 1};
    static const char *const methods[][2] = {{"auto", "auto"}, {"auto", "none"},   {"auto", "jacobi"}, {"auto", "ic0"},
                                             {"auto", "amg"},  {"minres", "none"}, {"minres", "amg"}};
    spmv_context *ctx = *state;
    const bool gpu = support_backend == SPMV_BACKEND_CUDA;
    for (size_t s = 0; s < sizeof sides / sizeof sides[0]; s++) {
        struct grid g = grid_new(sides[s], 1, true, 0, SPMV_F64);
        double *const x = support_zeros(g.n, 8);
        for (size_t m = 0; m < sizeof mismatches / sizeof mismatches[0]; m++) {
            set_source(&g, mismatches[m]);
            for (size_t k = 0; k < sizeof methods / sizeof methods[0]; k++) {
                const spmv_solver_options o = options_of(methods[k][0], methods[k][1]);
                const double least = mismatches[m] / sqrt((double)g.n);
                spmv_solver_result r;
                if (gpu && strcmp(methods[k][1], "ic0") == 0)
                    continue;
                /* an emulated GPU: a quarter of the mismatches of each side and method, in turn */
                if (SLOW && (s + m + k) % 4 != 0)
                    continue;
                const spmv_status st = grid_solve(ctx, &g, &o, x, &r);
                const double residual = grid_residual(&g, x, NULL);
                if (st != r.status || st != (least < r.tolerance ? SPMV_OK : SPMV_ERROR_INCONSISTENT) ||
                    !(residual <= sqrt(least * least + 1.1 * r.tolerance * r.tolerance)) ||
                    fabs(residual - r.true_residual) > 1e-6 * residual + 1e-14 || !(largest_of(x, g.n) < 1e3))
                    fail_msg("side %d, mismatch %g, %s with %s: %s, residual %g (reported %g, least %g), |x| %g: %s",
                             sides[s], mismatches[m], methods[k][0], methods[k][1], spmv_status_name(st), residual,
                             r.true_residual, least, largest_of(x, g.n), spmv_last_error(ctx));
                if (st != SPMV_OK)
                    assert_non_null(strstr(spmv_last_error(ctx), known));
            }
        }
        free(x);
        grid_free(&g);
    }
}

/* b in f32 sums to 0 only up to its rounding. */
static void single_precision(void **state)
{
    spmv_context *ctx = *state;
    struct grid g = grid_new(SLOW ? 15 : 50, 1, true, 0, SPMV_F32);
    double *const x = support_zeros(g.n, 8);
    spmv_solver_options o = options_of(NULL, "amg");
    spmv_solver_result r;
    uint64_t seed = 3;
    double sum = 0;
    for (int64_t i = 0; i < g.n; i++)
        sum += g.b[i] = support_uniform(&seed);
    for (int64_t i = 0; i < g.n; i++)
        g.b[i] = (float)(g.b[i] - sum / (double)g.n);
    o.rtol = 1e-4;
    assert_ok(ctx, grid_solve(ctx, &g, &o, x, &r));
    assert_true(grid_residual(&g, x, NULL) <= 1.01 * r.tolerance);
    free(x);
    grid_free(&g);
}

/* Two grids that are not connected, so that b needs a mean of 0 on each; right-hand sides together. */
static void components(void **state)
{
    enum { SIDE = 12, VECTORS = 2 };
    spmv_context *ctx = *state;
    struct grid g = grid_new(SIDE, 2, true, 0, SPMV_F64);
    double *const x = support_zeros(g.n * VECTORS, 8);
    spmv_solver_result r[VECTORS];
    for (int vectors = 1; vectors <= VECTORS; vectors++) {
        spmv_solver_options o = options_of(NULL, NULL);
        o.vectors = vectors;
        for (int64_t i = 0; i < g.n; i++)
            g.b[i] = 0;
        g.b[0] = g.b[g.n / 2] = 1;
        g.b[1] = g.b[g.n / 2 + 1] = -1 + 1e-12;
        assert_ok(ctx, grid_solve(ctx, &g, &o, x, r));
        /* a sum of 0 over both is not enough */
        g.b[1] = -1;
        g.b[0] = 3;
        g.b[g.n / 2] = -1;
        assert_fails(ctx, grid_solve(ctx, &g, &o, x, r), SPMV_ERROR_INCONSISTENT, known);
        for (int v = 0; v < vectors; v++)
            assert_true(r[v].status == SPMV_ERROR_INCONSISTENT &&
                        fabs(r[v].true_residual / (sqrt(2) * 2 / SIDE) - 1) < 1e-9);
    }
    /* the second grid is not singular: the first failure looks for components */
    for (int64_t i = g.n / 2; i < g.n; i++)
        for (int64_t k = g.row_ptr[i]; k < g.row_ptr[i + 1]; k++)
            g.val[k] += g.col[k] == i ? 0.5 : 0;
    grid_retype(&g);
    const spmv_solver_options o = options_of(NULL, NULL);
    assert_fails(ctx, grid_solve(ctx, &g, &o, x, r), SPMV_ERROR_INCONSISTENT, "every row of a part of it sums to 0");
    assert_true(fabs(r->true_residual / (2. / SIDE) - 1) < 1e-9);
    free(x);
    grid_free(&g);
}

/* The constant is a null vector of this A, but not of its transpose: the mean of b says nothing. */
static void not_symmetric(void **state)
{
    enum { N = 40 };
    spmv_context *ctx = *state;
    struct grid g = grid_new(N, 1, true, 0, SPMV_F64);
    double *const x = support_zeros(g.n, 8), *const image = support_zeros(g.n, 8);
    spmv_solver_result r;
    for (int64_t i = 0; i < g.n; i++)
        for (int64_t k = g.row_ptr[i]; k < g.row_ptr[i + 1]; k++)
            g.val[k] *= 1 + (double)(i % 5);
    grid_retype(&g);
    for (int64_t i = 0; i < g.n; i++)
        image[i] = sin((double)i);
    for (int64_t i = 0; i < g.n; i++)
        for (int64_t k = g.row_ptr[i]; k < g.row_ptr[i + 1]; k++)
            g.b[i] += g.val[k] * image[g.col[k]];
    const spmv_solver_options o = options_of(NULL, "jacobi");
    assert_ok(ctx, grid_solve(ctx, &g, &o, x, &r));
    assert_true(grid_residual(&g, x, NULL) <= 1.01 * r.tolerance);
    support_free(x, image);
    grid_free(&g);
}

/* D A D has the null vector D^-1 1, which is not looked for. minres ends at a least-squares solution, with
 * and without a preconditioner, and so does auto. */
static void unknown_null_vector(void **state)
{
    static const int sides[] = {7, 8, SLOW ? 15 : 20};
    static const char *const methods[][2] = {
        {"minres", "none"}, {"minres", "jacobi"}, {"minres", "amg"}, {"auto", "auto"}};
    spmv_context *ctx = *state;
    const bool gpu = support_backend == SPMV_BACKEND_CUDA;
    for (size_t s = 0; s < sizeof sides / sizeof sides[0]; s++) {
        struct grid g = grid_new(sides[s], 1, true, 0, SPMV_F64);
        double *const x = support_zeros(g.n, 8);
        double null = 0;
        for (int64_t i = 0; i < g.n; i++) {
            null += pow(1 + (double)(i % 3), -2);
            for (int64_t k = g.row_ptr[i]; k < g.row_ptr[i + 1]; k++)
                g.val[k] *= (double)((1 + i % 3) * (1 + g.col[k] % 3));
        }
        grid_retype(&g);
        set_source(&g, 0);
        g.b[g.n - 1] = 0;
        for (size_t m = 0; m < sizeof methods / sizeof methods[0]; m++) {
            if (SLOW && (s + m) % 2 != 0) /* in turn */
                continue;
            spmv_solver_result r;
            const spmv_solver_options o = options_of(methods[m][0], methods[m][1]);
            const double least = 1 / sqrt(null);
            const spmv_status st = grid_solve(ctx, &g, &o, x, &r);
            double at = 0;
            const double residual = grid_residual(&g, x, &at);
            /* with a preconditioner, the least residual is that in another norm; a GPU looks after some
             * steps */
            const bool plain = strcmp(methods[m][1], "none") == 0;
            const double most = gpu ? 1 : plain ? 1.001 * least : 1;
            if (spmv_status_class(st) != 7 || st == SPMV_ERROR_NOT_FINITE || !(residual <= most) ||
                fabs(residual - r.true_residual) > 1e-9 * residual || !(largest_of(x, g.n) < 1e4))
                fail_msg("side %d, %s with %s: %s, residual %g (reported %g, least %g), |A r| %g, |x| %g: %s", sides[s],
                         methods[m][0], methods[m][1], spmv_status_name(st), residual, r.true_residual, least, at,
                         largest_of(x, g.n), spmv_last_error(ctx));
            if (plain && !gpu)
                assert_true(st == SPMV_ERROR_INCONSISTENT && at <= 1e-3 * residual);
        }
        free(x);
        grid_free(&g);
    }
}

/* A matrix of rank 2 of three rows, whose diagonal is positive. */
static void rank_2(void **state)
{
    static const int32_t row_ptr[] = {0, 3, 6, 9}, col[] = {0, 1, 2, 0, 1, 2, 0, 1, 2};
    static const double val[] = {1, 2, 0, 2, 4, 0, 0, 0, 3}, ones[] = {1, 1, 1};
    static const char *const methods[] = {"auto", "cg", "minres", "gmres", "bicgstab"};
    spmv_context *ctx = *state;
    spmv_csr a = support_csr(3, 3, row_ptr, col, val);
    for (size_t m = 0; m < sizeof methods / sizeof methods[0]; m++) {
        spmv_solver_options o = options_of(methods[m], m == 0 ? NULL : "none");
        spmv_solver *solver = NULL;
        spmv_solver_result r;
        double x[3];
        void *const b = support_upload(ctx, ones, sizeof ones), *const there = support_upload(ctx, ones, sizeof ones);
        o.zero_start = 1;
        assert_ok(ctx, spmv_solver_create(ctx, &a, &o, &solver));
        const spmv_status st = spmv_solver_solve(solver, b, there, &r, sizeof r);
        assert_ok(ctx, spmv_download(ctx, there, x, sizeof x));
        const double residual = hypot(hypot(1 - x[0] - 2 * x[1], 1 - 2 * x[0] - 4 * x[1]), 1 - 3 * x[2]);
        /* x of bicgstab may be so large that the residual depends on the order of its sums */
        const bool exact = strcmp(methods[m], "bicgstab") != 0;
        if (st == SPMV_OK || !(r.true_residual <= 1.000001 * sqrt(3)) ||
            (exact && fabs(residual - r.true_residual) > 1e-9))
            fail_msg("%s: %s, residual %g (reported %g): %s", methods[m], spmv_status_name(st), residual,
                     r.true_residual, spmv_last_error(ctx));
        if (m == 0 || m == 2)
            assert_true(st == SPMV_ERROR_INCONSISTENT && fabs(residual - 1 / sqrt(5)) < 1e-9);
        spmv_solver_destroy(solver);
        spmv_free(ctx, b);
        spmv_free(ctx, there);
    }
}

static spmv_status nothing(void *self, const void *r, void *z)
{
    (void)r;
    return spmv_map_index(self, SPMV_F64, &(const double){0}, NULL, z, 64);
}

/* M^-1 = 0: minres has no space to search, and divides by nothing. */
static void no_space(void **state)
{
    spmv_context *ctx = *state;
    struct grid g = grid_new(8, 1, false, 0, SPMV_F64);
    double x[64];
    spmv_preconditioner *m = NULL;
    const spmv_preconditioner_class methods = {.size = sizeof methods, .name = "nothing", .apply = nothing};
    assert_ok(ctx, spmv_preconditioner_wrap(ctx, SPMV_F64, g.n, &methods, ctx, &m));
    spmv_solver_options o = options_of("minres", NULL);
    spmv_solver_result r;
    o.own_precond = m;
    g.b[5] = 1;
    assert_fails(ctx, grid_solve(ctx, &g, &o, x, &r), SPMV_ERROR_STAGNATION, "the true residual stays at 1");
    assert_true(r.true_residual == 1 && largest_of(x, g.n) == 0);
    spmv_preconditioner_destroy(m);
    grid_free(&g);
}

/* b = 0 has the solution 0 whatever the start, though each vector of equal numbers is one too; the reason
 * says so, unless the start is 0. */
static void zero_right_side(void **state)
{
    static const char *const methods[] = {"auto", "cg", "minres", "gmres", "bicgstab"};
    spmv_context *ctx = *state;
    enum { SIDE = SLOW ? 4 : 15 };
    struct grid g = grid_new(SIDE, 1, true, 0, SPMV_F64);
    double ones[SIDE * SIDE], x[SIDE * SIDE];
    for (int64_t i = 0; i < g.n; i++)
        ones[i] = 1;
    void *const b = support_upload_as(ctx, SPMV_F64, g.b, g.n, 0);
    for (size_t m = 0; m < sizeof methods / sizeof methods[0]; m++)
        for (int from_zero = 0; from_zero < 2; from_zero++) {
            spmv_solver_options o = options_of(methods[m], NULL);
            spmv_solver_result r;
            spmv_solver *solver = NULL;
            void *const there = support_upload_as(ctx, SPMV_F64, ones, g.n, 0);
            o.zero_start = from_zero;
            assert_ok(ctx, spmv_solver_create(ctx, &g.view, &o, &solver));
            assert_ok(ctx, spmv_solver_solve(solver, b, there, &r, sizeof r));
            support_fetch_as(ctx, SPMV_F64, there, g.n, x);
            assert_true(largest_of(x, g.n) == 0 && r.norm_b == 0 && r.true_residual == 0);
            const char *const said = strstr(r.why_solver, "b is 0, so x is 0 whatever the start; any other x with "
                                                          "A x = 0 is an eigenvector for the eigenvalue 0");
            assert_true((said != NULL) == !from_zero);
            spmv_solver_destroy(solver);
            spmv_free(ctx, there);
        }
    spmv_free(ctx, b);
    grid_free(&g);
}

/* A graph with a vertex without edges, as an empty row or as an explicit 0: each preconditioner leaves it
 * alone. A b that is not 0 there has no solution, and the rest is solved. */
static void isolated_vertex(void **state)
{
    static const char *const preconds[] = {"auto", "none", "jacobi", "block-jacobi", "ic0", "fsai", "isai", "amg"};
    static const char *const methods[] = {"auto", "cg", "minres"};
    enum { SIDE = SLOW ? 4 : 16, ALONE = SIDE * SIDE };
    spmv_context *ctx = *state;
    struct grid g = grid_new(SIDE, 1, true, 0, SPMV_F64);
    int32_t *const row_ptr = support_zeros(ALONE + 2, 4), *const col = support_zeros(g.view.nnz + 1, 4);
    double *const val = support_zeros(g.view.nnz + 1, 8), b[ALONE + 1] = {0}, x[ALONE + 1], left[ALONE + 1];
    for (int64_t i = 0; i <= g.n; i++)
        row_ptr[i] = (int32_t)g.row_ptr[i];
    memcpy(col, g.view.col, (size_t)g.view.nnz * 4);
    memcpy(val, g.view.val, (size_t)g.view.nnz * 8);
    col[g.view.nnz] = ALONE;
    b[0] = 1;
    b[ALONE - 1] = -1;
    for (int explicit_zero = 0; explicit_zero < 2; explicit_zero++) {
        row_ptr[ALONE + 1] = row_ptr[ALONE] + explicit_zero;
        const spmv_csr a = support_csr(ALONE + 1, ALONE + 1, row_ptr, col, val);
        for (size_t k = 0; k < 21; k++)
            for (int inconsistent = 0; inconsistent < 2; inconsistent++) {
                const char *const precond = preconds[k / 3];
                /* an emulated GPU: one of the four cases of each method and preconditioner */
                if (SLOW && (k + 2 * (size_t)explicit_zero + (size_t)inconsistent) % 4 != 0)
                    continue;
                if (support_backend == SPMV_BACKEND_CUDA && strcmp(precond, "ic0") == 0)
                    continue;
                spmv_solver_options o = options_of(methods[k % 3], precond);
                spmv_solver_result r;
                spmv_solver *solver = NULL;
                spmv_solver_info info;
                spmv_preconditioner_info m;
                char named[80];
                o.zero_start = 1;
                b[ALONE] = inconsistent;
                assert_ok(ctx, spmv_solver_create(ctx, &a, &o, &solver));
                assert_ok(ctx, spmv_solver_describe(solver, &info, sizeof info));
                assert_ok(ctx, spmv_preconditioner_describe(info.precond, &m, sizeof m));
                snprintf(named, sizeof named, "1 row without entries, left alone: row %d (counted from 0)", ALONE);
                if (k >= 6)
                    assert_non_null(strstr(m.layout, named));
                void *const of_b = support_upload_as(ctx, SPMV_F64, b, ALONE + 1, 0);
                void *const there = support_upload_as(ctx, SPMV_F64, b, ALONE + 1, 0);
                const spmv_status st = spmv_solver_solve(solver, of_b, there, &r, sizeof r);
                if (inconsistent)
                    assert_fails(ctx, st, SPMV_ERROR_INCONSISTENT, "b has a part that no x reaches");
                else
                    assert_ok(ctx, st);
                support_fetch_as(ctx, SPMV_F64, there, ALONE + 1, x);
                memcpy(left, x, sizeof left);
                struct grid rest = g;
                rest.b = b;
                assert_true(grid_residual(&rest, left, NULL) <= 1e-7);
                assert_true(fabs(r.true_residual - inconsistent) <= 1e-7 && x[ALONE] == 0);
                spmv_solver_destroy(solver);
                support_free_in(ctx, of_b, there);
            }
    }
    support_free(row_ptr, col, val);
    grid_free(&g);
}

SUPPORT_MAIN(with_context(zero_right_side), with_context(isolated_vertex), with_context(nearly_consistent),
             with_context(single_precision), with_context(components), with_context(not_symmetric),
             with_context(unknown_null_vector), with_context(rank_2), with_context(no_space))

/* Messages: rows counted from 0 or from 1; the number that is not finite in b, A or the start; rows
 * without entries, which preconditioners leave alone and name.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>

#include "tests/support/support_precond.h"

enum { N = 40, ALONE = 11 };

static spmv_context *context_from(int first_index)
{
    spmv_context_options options = support_context_options();
    options.backend = support_backend;
    options.first_index = first_index;
    return support_context_with(&options);
}

/* The 1-D Laplacian; with alone >= 0 that row and column are 0, and the ends of the two parts have no
 * boundary, so that A is singular. */
static struct sparse laplacian(int alone)
{
    static double dense[N * N];
    memset(dense, 0, sizeof dense);
    for (int i = 0; i < N; i++)
        for (int j = i - 1; j <= i + 1; j += 2)
            if (i != alone && j != alone && j >= 0 && j < N) {
                dense[i * N + j] = -1;
                dense[i * N + i] += 1;
            }
    for (int i = 0; i < N && alone < 0; i++)
        dense[i * N + i] = 2;
    return from_dense(N, dense);
}

static void contains(const spmv_context *ctx, const char *words)
{
    if (strstr(spmv_last_error(ctx), words) == NULL)
        fail_msg("\"%s\" is not in \"%s\"", words, spmv_last_error(ctx));
}

static void rows_are_counted_from_the_first_index(void **state)
{
    (void)state;
    static const char *const words[2][2] = {
        {"the diagonal entry of row 2 (counted from 0) is -5", "row 3, column 3 (counted from 0) is nan"},
        {"the diagonal entry of row 3 is -5", "row 4, column 4 is nan"}};
    for (int from = 0; from < 2; from++) {
        spmv_context *const ctx = context_from(from);
        struct sparse a = laplacian(-1);
        spmv_preconditioner *m = NULL;
        a.val[a.row_ptr[2] + 1] = -5;
        assert_int_equal(spmv_preconditioner_create(ctx, "jacobi", &a.view, NULL, &m), SPMV_ERROR_NOT_POSITIVE);
        contains(ctx, words[from][0]);
        a.val[a.row_ptr[3] + 1] = NAN;
        assert_int_equal(spmv_preconditioner_create(ctx, "ilu0", &a.view, NULL, &m), SPMV_ERROR_NOT_FINITE);
        contains(ctx, words[from][1]);
        release(&a);
        spmv_context_destroy(ctx);
    }
    spmv_context_options options = support_context_options();
    spmv_context *ctx = NULL;
    options.first_index = 2;
    assert_int_equal(spmv_context_create(&options, &ctx), SPMV_ERROR_ARGUMENT);
    contains(NULL, "first_index is 2");
}

/* Solves with vectors of which one element is not finite. cg has two right-hand sides; rung: not NULL
 * solves for both at once. The message has the words and no other number that is not finite. */
static void fails_by(spmv_context *ctx, const char *method, const char *rung, int bad_b, int bad_x, double bad_value,
                     const char *words)
{
    struct sparse a = laplacian(-1);
    if (bad_b < 0 && bad_x < 0)
        a.val[a.row_ptr[5] + 1] = bad_value;
    double b[2 * N], x[2 * N];
    for (int i = 0; i < 2 * N; i++) {
        b[i] = i == bad_b ? bad_value : 1 + i % 3;
        x[i] = i == bad_x ? bad_value : 0.5;
    }
    const int vectors = method != NULL && strcmp(method, "cg") == 0 ? 2 : 1;
    spmv_matrix *there = NULL;
    spmv_csr view;
    assert_ok(ctx, spmv_matrix_copy(ctx, &a.view, SPMV_MEMORY_CONTEXT, &there));
    spmv_matrix_view(there, &view);
    spmv_solver_options options;
    spmv_solver *solver = NULL;
    spmv_solver_options_init(&options, sizeof options);
    options.solver = method;
    options.rung = rung;
    options.precond = method != NULL ? "none" : NULL;
    options.vectors = vectors;
    options.symmetry_check = SPMV_SYMMETRY_TRUST;
    assert_ok(ctx, spmv_solver_create(ctx, &view, &options, &solver));
    void *db = support_upload_as(ctx, SPMV_F64, b, vectors * N, 0);
    void *dx = support_upload_as(ctx, SPMV_F64, x, vectors * N, 0);
    assert_fails(ctx, spmv_solver_solve(solver, db, dx, NULL, 0), SPMV_ERROR_NOT_FINITE, words);
    const char *const named = strstr(spmv_last_error(ctx), isnan(bad_value) ? "nan" : "inf");
    if (named == NULL || strstr(named + 1, "nan") != NULL || strstr(named + 1, "inf") != NULL)
        fail_msg("\"%s\" does not name one number", spmv_last_error(ctx));
    support_free_in(ctx, db, dx);
    spmv_solver_destroy(solver);
    spmv_matrix_destroy(there);
    release(&a);
}

static void numbers_that_are_not_finite_are_named(void **state)
{
    (void)state;
    static const char *const methods[] = {"minres", "gmres", "bicgstab", NULL}; /* NULL: auto */
    spmv_context *const zero = context_from(0), *const one = context_from(1);
    for (int m = 0; m < 4; m++) {
        fails_by(zero, methods[m], NULL, 7, -1, NAN, "b has nan in row 7 (counted from 0)");
        fails_by(one, methods[m], NULL, -1, 7, INFINITY, "the start x has inf in row 8");
        fails_by(one, methods[m], NULL, -1, -1, NAN, "A has nan in row 6, column 6");
    }
    /* two right-hand sides, on a CPU one after the other, and both at once */
    if (support_backend != SPMV_BACKEND_CUDA) {
        fails_by(zero, "cg", NULL, 2 * 7 + 1, -1, NAN,
                 "right-hand side 2 of 2: spmv_cg: b has nan in row 7 (counted from 0)");
        fails_by(one, "cg", NULL, -1, 2 * 7, -INFINITY,
                 "right-hand side 1 of 2: spmv_cg: the start x has -inf in row 8");
        fails_by(one, "cg", NULL, -1, -1, NAN, "A has nan in row 6, column 6");
    }
    fails_by(zero, "cg", "textbook", 2 * 7 + 1, -1, NAN,
             "b has nan in row 7 of right-hand side 2 of 2 (counted from 0)");
    fails_by(one, "cg", "textbook", -1, 2 * 7, -INFINITY, "the start x has -inf in row 8 of right-hand side 1 of 2");
    fails_by(one, "cg", "textbook", -1, -1, NAN, "A has nan in row 6, column 6");
    spmv_context_destroy(zero);
    spmv_context_destroy(one);
}

static void rows_without_entries_are_left_alone(void **state)
{
    (void)state;
    static const char *const names[] = {"jacobi", "block-jacobi", "ic0", "fsai", "isai", "amg", "auto"};
    spmv_context *const ctx = context_from(0);
    struct sparse a = laplacian(ALONE);
    spmv_matrix *there = NULL;
    spmv_csr view;
    assert_ok(ctx, spmv_matrix_copy(ctx, &a.view, SPMV_MEMORY_CONTEXT, &there));
    spmv_matrix_view(there, &view);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        spmv_preconditioner *m = NULL;
        spmv_preconditioner_info info;
        double r[N], z[N];
        if (is_on_cpu_only(names[i]) && support_backend == SPMV_BACKEND_CUDA)
            continue;
        assert_ok(ctx, spmv_preconditioner_create(ctx, names[i], &view, NULL, &m));
        assert_ok(ctx, spmv_preconditioner_describe(m, &info, sizeof info));
        if (strcmp(names[i], "amg") != 0 && strcmp(names[i], "auto") != 0) /* amg inverts so small a matrix */
            assert_non_null(strstr(info.layout, "1 row without entries, left alone: row 11 (counted from 0)"));
        for (int k = 0; k < N; k++)
            r[k] = k == ALONE ? 3 : 0;
        apply(ctx, m, r, z);
        for (int k = 0; k < N; k++)
            assert_true(isfinite(z[k]));
        if (strcmp(names[i], "jacobi") == 0 || strcmp(names[i], "ic0") == 0)
            assert_true(fabs(z[ALONE] - 3) < 0.01); /* ic0 has a shift */
        spmv_preconditioner_destroy(m);
    }
    /* a diagonal of 0 with other entries in the row is still refused */
    a.val[a.row_ptr[3] + 1] = 0;
    spmv_preconditioner *m = NULL;
    assert_int_equal(spmv_preconditioner_create(ctx, "jacobi", &a.view, NULL, &m), SPMV_ERROR_NOT_POSITIVE);
    contains(ctx, "row 3 (counted from 0) is 0");
    spmv_matrix_destroy(there);
    release(&a);
    spmv_context_destroy(ctx);
}

static void rows_of_general_matrices_are_left_alone_too(void **state)
{
    (void)state;
    spmv_context *const ctx = context_from(1);
    struct sparse a = laplacian(ALONE);
    spmv_preconditioner_options options;
    spmv_preconditioner *m = NULL;
    spmv_preconditioner_options_init(&options, sizeof options);
    options.general = 1; /* a general matrix: the same rows */
    assert_ok(ctx, spmv_preconditioner_create(ctx, "jacobi", &a.view, &options, &m));
    spmv_preconditioner_destroy(m);
    release(&a);
    spmv_context_destroy(ctx);
}

SUPPORT_MAIN(cmocka_unit_test(rows_are_counted_from_the_first_index),
             cmocka_unit_test(numbers_that_are_not_finite_are_named),
             cmocka_unit_test(rows_without_entries_are_left_alone),
             cmocka_unit_test(rows_of_general_matrices_are_left_alone_too))

/* Options out of their range are refused, whichever struct they are in: a table of members with a
 * value below, one above and the values at both ends. Plans of the caller are checked when a
 * solver is made as when it solves.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>

#include "tests/support/support.h"

/* [1 0; 0 2] */
static const int32_t row_ptr[] = {0, 1, 2}, col[] = {0, 1};
static const double val[] = {1, 2};

union options {
    spmv_solver_options solver;
    spmv_cg_options cg;
    spmv_preconditioner_options precond;
    spmv_plan_options plan;
    spmv_spgemm_options spgemm;
    spmv_generate_options generate;
    spmv_read_options read;
    spmv_write_options write;
    spmv_context_options context;
};

/* One call with the options; what it makes is destroyed. */
typedef spmv_status make_fn(spmv_context *ctx, const spmv_csr *a, const union options *o);

static spmv_status make_solver(spmv_context *ctx, const spmv_csr *a, const union options *o)
{
    spmv_solver *solver = NULL;
    const spmv_status st = spmv_solver_create(ctx, a, &o->solver, &solver);
    assert_true((st == SPMV_OK) == (solver != NULL));
    spmv_solver_destroy(solver);
    return st;
}

static spmv_status make_solver_of_options(spmv_context *ctx, const spmv_csr *a, const union options *o)
{
    spmv_solver_options solver = support_solver_options();
    solver.precond = "jacobi";
    solver.precond_options = &o->precond;
    return make_solver(ctx, a, &(const union options){.solver = solver});
}

static spmv_status make_cg(spmv_context *ctx, const spmv_csr *a, const union options *o)
{
    const double ones[] = {1, 1};
    void *const b = support_upload(ctx, ones, sizeof ones), *const x = support_upload(ctx, ones, sizeof ones);
    spmv_plan *const plan = support_plan(ctx, a, NULL, SPMV_OPERATION_N, SPMV_F64);
    const spmv_status st = spmv_cg(plan, b, x, &o->cg, NULL, 0);
    spmv_plan_destroy(plan);
    support_free_in(ctx, b, x);
    return st == SPMV_ERROR_ITERATIONS ? SPMV_OK : st;
}

static spmv_status make_precond(spmv_context *ctx, const spmv_csr *a, const union options *o)
{
    spmv_preconditioner *m = NULL;
    const spmv_status st = spmv_preconditioner_create(ctx, "jacobi", a, &o->precond, &m);
    spmv_preconditioner_destroy(m);
    return st;
}

static spmv_status make_plan(spmv_context *ctx, const spmv_csr *a, const union options *o)
{
    spmv_plan *plan = NULL;
    const spmv_status st = spmv_plan_create(ctx, a, &o->plan, &plan);
    spmv_plan_destroy(plan);
    return st;
}

static spmv_status make_product(spmv_context *ctx, const spmv_csr *a, const union options *o)
{
    spmv_spgemm_plan *plan = NULL;
    const spmv_status st = spmv_spgemm_plan_create(ctx, a, a, &o->spgemm, &plan);
    spmv_spgemm_plan_destroy(plan);
    return st == SPMV_ERROR_MEMORY ? SPMV_OK : st; /* a limit of one byte is in the range */
}

static spmv_status make_matrix(spmv_context *ctx, const spmv_csr *a, const union options *o)
{
    spmv_matrix *matrix = NULL;
    (void)a;
    const spmv_status st = spmv_matrix_generate_within(ctx, "diagonal:9", &o->generate, &matrix);
    spmv_matrix_destroy(matrix);
    return st == SPMV_ERROR_MEMORY ? SPMV_OK : st;
}

/* There is no such file, which is the second thing to be found. */
static spmv_status make_reading(spmv_context *ctx, const spmv_csr *a, const union options *o)
{
    spmv_matrix *matrix = NULL;
    (void)a;
    const spmv_status st = spmv_matrix_read(ctx, "/nowhere/a.mtx", &o->read, &matrix, NULL, 0);
    return st == SPMV_ERROR_OPEN ? SPMV_OK : st;
}

static spmv_status make_context(spmv_context *ctx, const spmv_csr *a, const union options *o)
{
    spmv_context_options options = o->context;
    spmv_context *other = NULL;
    (void)a;
    options.backend = SPMV_BACKEND_REF;
    const spmv_status st = spmv_context_create(&options, &other);
    spmv_context_destroy(other);
    if (st != SPMV_OK) /* the message is not in the context yet */
        (void)spmv_context_report(ctx, st, spmv_last_error(NULL));
    return st;
}

/* X(kind, make, member, C type, a value below, one above, the least, the most); NAN: no such value */
#define TABLE(X)                                                                                                       \
    X(solver, make_solver, vectors, int, 0, NAN, 1, 3)                                                                 \
    X(solver, make_solver, inner, int, -1, 2, 0, 1)                                                                    \
    X(solver, make_solver, rtol, double, -1e-9, INFINITY, 0, 1)                                                        \
    X(solver, make_solver, atol, double, -1e-9, INFINITY, 0, 1)                                                        \
    X(solver, make_solver, max_iterations, int64_t, -1, NAN, 0, 9e15)                                                  \
    X(solver, make_solver, zero_start, int, -1, 2, 0, 1)                                                               \
    X(solver, make_solver, symmetry_check, int, -1, 9, 0, 1)                                                           \
    X(solver, make_solver, restart, int, -1, 201, 0, 200)                                                              \
    X(cg, make_cg, rtol, double, -1, INFINITY, 0.5, 1)                                                                 \
    X(cg, make_cg, atol, double, -1, INFINITY, 0, 1)                                                                   \
    X(cg, make_cg, max_iterations, int64_t, -1, NAN, 0, 9e15)                                                          \
    X(cg, make_cg, zero_start, int, -1, 2, 0, 1)                                                                       \
    X(cg, make_cg, symmetry_check, int, -1, 9, 0, 1)                                                                   \
    X(precond, make_precond, block, int, -1, 65, 0, 64)                                                                \
    X(precond, make_precond, degree, int, -2, 101, -1, 100)                                                            \
    X(precond, make_precond, steps, int, -1, 1001, 0, 1000)                                                            \
    X(precond, make_precond, shift, double, -0.1, INFINITY, 0, 1)                                                      \
    X(precond, make_precond, strength, double, -0.1, 1.1, 0, 1)                                                        \
    X(precond, make_precond, near_nulls, int, -1, 9, 0, 8)                                                             \
    X(precond, make_precond, update_values, int, -1, 2, 0, 1)                                                          \
    X(precond, make_precond, general, int, -1, 2, 0, 1)                                                                \
    X(precond, make_precond, drop, double, -2, 1, 0, 0.999)                                                            \
    X(precond, make_precond, fill, double, 0.5, 1e7, 1, 1e6)                                                           \
    X(precond, make_precond, near_null_type, spmv_type, SPMV_I32, SPMV_C64, SPMV_F32, SPMV_F64)                        \
    X(precond, make_precond, nodes, int64_t, -1, NAN, 0, 9e15)                                                         \
    X(precond, make_precond, dimensions, int, -1, 4, 0, 3)                                                             \
    X(precond, make_solver_of_options, block, int, -1, 65, 0, 64)                                                      \
    X(precond, make_solver_of_options, drop, double, -2, 1, 0, 0.999)                                                  \
    X(plan, make_plan, operation, spmv_operation, 3, 99, 0, 2)                                                         \
    X(plan, make_plan, vectors, int, 0, NAN, 1, 3)                                                                     \
    X(plan, make_plan, symmetric, int, -1, 2, 0, 0)                                                                    \
    X(plan, make_plan, update_values, int, -1, 2, 0, 1)                                                                \
    X(plan, make_plan, compression, int, -2, 3, -1, 0)                                                                 \
    X(plan, make_plan, x_stride, int64_t, -1, NAN, 0, 4)                                                               \
    X(plan, make_plan, y_stride, int64_t, -1, NAN, 0, 4)                                                               \
    X(plan, make_plan, x_layout, int, -1, 2, 0, 1)                                                                     \
    X(plan, make_plan, y_layout, int, -1, 2, 0, 1)                                                                     \
    X(spgemm, make_product, max_bytes, int64_t, -1, NAN, 0, 9e15)                                                      \
    X(generate, make_matrix, max_bytes, int64_t, -1, NAN, 0, 9e15)                                                     \
    X(generate, make_matrix, part, int, -1, 1, 0, 0)                                                                   \
    X(generate, make_matrix, parts, int, -1, NAN, 0, 2)                                                                \
    X(read, make_reading, max_bytes, int64_t, -1, NAN, 0, 9e15)                                                        \
    X(read, make_reading, max_unpacked_bytes, int64_t, -1, NAN, 0, 9e15)                                               \
    X(read, make_reading, max_unpacked_ratio, int64_t, -1, NAN, 0, 9e15)                                               \
    X(read, make_reading, comments, int, -1, 2, 0, 1)                                                                  \
    X(context, make_context, threads, int, -1, SPMV_MAX_THREADS + 1, 0, 1)                                             \
    X(context, make_context, device, int, -2, NAN, -1, 3)

#define SETTER(kind, make, member, type, below, above, least, most)                                                    \
    static void set_##make##_##kind##_##member(union options *o, double value)                                         \
    {                                                                                                                  \
        o->kind = support_##kind##_options();                                                                          \
        o->kind.member = (type)value;                                                                                  \
    }
#define support_precond_options support_preconditioner_options
TABLE(SETTER)

static const struct {
    const char *name;
    make_fn *make;
    void (*set)(union options *, double);
    double below, above, least, most;
    bool real;
} table[] = {
#define ROW(kind, make, member, type, below, above, least, most)                                                       \
    {#member, make, set_##make##_##kind##_##member, below, above, least, most, (type)0.5 != 0},
    TABLE(ROW)};

static void ranges(void **state)
{
    spmv_context *const ctx = *state;
    const spmv_csr a = support_csr(2, 2, row_ptr, col, val);
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        const double wrong[] = {table[i].below, table[i].above, NAN}, right[] = {table[i].least, table[i].most};
        union options o;
        for (int w = 0; w < (table[i].real ? 3 : 2); w++) {
            if (isnan(wrong[w]) && w < 2)
                continue;
            memset(&o, 0, sizeof o);
            table[i].set(&o, wrong[w]);
            const spmv_status st = table[i].make(ctx, &a, &o);
            if ((st != SPMV_ERROR_ARGUMENT && st != SPMV_ERROR_TYPE) ||
                strstr(spmv_last_error(ctx), table[i].name) == NULL)
                fail_msg("%s %g: %s: %s", table[i].name, wrong[w], spmv_status_name(st), spmv_last_error(ctx));
        }
        for (int r = 0; r < 2; r++) {
            memset(&o, 0, sizeof o);
            table[i].set(&o, right[r]);
            const spmv_status st = table[i].make(ctx, &a, &o);
            if (st != SPMV_OK)
                fail_msg("%s %g: %s: %s", table[i].name, right[r], spmv_status_name(st), spmv_last_error(ctx));
        }
    }
}

/* ------------------------------------------------------------- plans of the caller */

static void callers_plan(void **state)
{
    spmv_context *const ctx = *state;
    static const struct {
        int64_t x_stride, y_stride;
        int vectors, solver_vectors;
        spmv_operation operation;
        spmv_status expected;
        const char *text;
    } cases[] = {{0, 0, 1, 1, SPMV_OPERATION_N, SPMV_OK, ""},
                 {0, 0, 3, 1, SPMV_OPERATION_N, SPMV_OK, ""},
                 {0, 0, 3, 3, SPMV_OPERATION_N, SPMV_OK, ""},
                 {2, 2, 1, 1, SPMV_OPERATION_N, SPMV_ERROR_UNSUPPORTED, "strides 2 and 2"},
                 {1, 100000000, 1, 1, SPMV_OPERATION_N, SPMV_ERROR_UNSUPPORTED, "strides 1 and 100000000"},
                 {100000000, 1, 1, 1, SPMV_OPERATION_N, SPMV_ERROR_UNSUPPORTED, "strides are not supported"},
                 {4, 3, 3, 3, SPMV_OPERATION_N, SPMV_ERROR_UNSUPPORTED, "strides 4 and 3"},
                 {0, 0, 3, 2, SPMV_OPERATION_N, SPMV_ERROR_SIZE, "the plan is for 3 vectors"},
                 {0, 0, 1, 1, SPMV_OPERATION_T, SPMV_ERROR_UNSUPPORTED, "transpose"}};
    static const char *const methods[] = {"auto", "cg", "minres", "gmres", "bicgstab"};
    const spmv_csr host = support_csr(2, 2, row_ptr, col, val);
    spmv_csr a = host;
    a.memory = SPMV_MEMORY_CONTEXT;
    a.row_ptr = support_upload(ctx, row_ptr, sizeof row_ptr);
    a.col = support_upload(ctx, col, sizeof col);
    a.val = support_upload(ctx, val, sizeof val);
    const double ones[6] = {1, 1, 1, 1, 1, 1};
    void *const b = support_upload(ctx, ones, sizeof ones), *const x = support_upload(ctx, ones, sizeof ones);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        spmv_plan_options o = support_plan_options();
        spmv_plan *plan = NULL;
        o.x_stride = cases[i].x_stride;
        o.y_stride = cases[i].y_stride;
        o.vectors = cases[i].vectors;
        o.operation = cases[i].operation;
        assert_ok(ctx, spmv_plan_create(ctx, &a, &o, &plan));
        for (int m = 0; m < 5; m++) {
            spmv_solver_options options = support_solver_options();
            spmv_solver *solver = NULL;
            options.solver = methods[m];
            options.vectors = cases[i].solver_vectors;
            options.plan = plan;
            const spmv_status st = spmv_solver_create(ctx, &a, &options, &solver);
            if (st != cases[i].expected || (st != SPMV_OK && strstr(spmv_last_error(ctx), cases[i].text) == NULL))
                fail_msg("case %zu, %s: %s: %s", i, methods[m], spmv_status_name(st), spmv_last_error(ctx));
            if (st == SPMV_OK) { /* all columns of the plan are solved */
                double got[6] = {0};
                assert_ok(ctx, spmv_upload(ctx, ones, x, sizeof ones));
                assert_ok(ctx, spmv_solver_solve(solver, b, x, NULL, 0));
                assert_ok(ctx, spmv_download(ctx, x, got, sizeof got));
                for (int v = 0; v < cases[i].vectors; v++)
                    assert_true(fabs(got[v] - 1) < 1e-7 && fabs(got[cases[i].vectors + v] - 0.5) < 1e-7);
            }
            spmv_solver_destroy(solver);
        }
        spmv_plan_destroy(plan);
    }
    support_free_in(ctx, (void *)a.row_ptr, (void *)a.col, (void *)a.val, b, x);
}

SUPPORT_MAIN(with_context(ranges), with_context(callers_plan))

/* Operators (spmv_plan_wrap): products with scalars, the solvers that need no entries and what "auto" takes, beside the
 * same matrix with entries; failures, numbers that are not finite and wrong shapes of callbacks; what needs entries is
 * refused.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>

#include "tests/support/support_generate.h"

enum { SIDE = 12, N = SIDE * SIDE };

/* An operator that multiplies with a plan, and what it is to do wrong. */
struct product {
    spmv_context *ctx;
    spmv_plan *plan;
    int64_t calls, fails_at, nan_at; /* numbers of calls, from 1; 0: never */
    const char *says;                /* a message of its own; NULL: none */
    int destroyed;
};

static spmv_status multiply(void *self, spmv_operation operation, const void *x, void *y)
{
    struct product *const p = self;
    assert_int_equal(operation, SPMV_OPERATION_N);
    p->calls++;
    if (p->calls == p->fails_at)
        return p->says != NULL ? spmv_alloc(p->ctx, -1, (void **)&p->says) : SPMV_ERROR_READ;
    const spmv_status st = spmv_apply(p->plan, NULL, x, NULL, y);
    const double nan = NAN;
    return st == SPMV_OK && p->calls == p->nan_at ? spmv_upload(p->ctx, &nan, y, (int64_t)sizeof nan) : st;
}

static void count_destroy(void *self)
{
    ((struct product *)self)->destroyed++;
}

static const spmv_operator_class class = {
    .size = sizeof class, .name = "counting", .apply = multiply, .destroy = count_destroy};

/* A matrix with its plan and the operator of it, b and x. */
struct setting {
    spmv_context *ctx;
    spmv_matrix *m;
    spmv_csr a;
    struct product *product; /* of its own: the operator points to it */
    spmv_plan *plan;         /* the operator */
    spmv_type type;
    void *b, *x;
    int64_t bytes;
};

static int64_t parts(const struct setting *s)
{
    return type_parts(s->type);
}

/* kind: 'd' definite (Poisson), 'i' indefinite, 'u' not symmetric, 'c' complex symmetric, 'h' Hermitian. */
static struct setting open_setting(spmv_context *ctx, char kind, spmv_type type)
{
    struct setting s = {.ctx = ctx, .type = type, .product = calloc(1, sizeof *s.product)};
    s.product->ctx = ctx;
    s.m = NULL;
    assert_ok(ctx, spmv_matrix_generate(ctx, kind == 'u' ? "convdiff2d:12,5" : "poisson2d:12", SPMV_F64, &s.m));
    spmv_matrix_view(s.m, &s.a);
    double *const pairs = calloc((size_t)(2 * s.a.nnz), sizeof *pairs);
    for (int64_t i = 0; i < s.a.rows; i++)
        for (int64_t k = row_first(&s.a, i); k < row_first(&s.a, i + 1); k++) {
            const double value = support_value(&s.a, k);
            const int64_t at = k * parts(&s);
            pairs[at] = value - (s.a.col[k] != i ? 0 : kind == 'i' ? 2.5 : kind == 'h' ? -1 : 0);
            if (kind == 'c' && s.a.col[k] == i)
                pairs[at + 1] = i % 3 == 0 ? 1 : 0.25;
            if (kind == 'h' && s.a.col[k] != i)
                pairs[at + 1] = s.a.col[k] > i ? 0.25 : -0.25;
        }
    void *const values = support_as(type_part(type), pairs, s.a.nnz * parts(&s), 0);
    spmv_csr a = s.a;
    a.val = values;
    a.type = type;
    assert_ok(ctx, spmv_plan_create(ctx, &a, NULL, &s.product->plan));
    assert_ok(ctx, spmv_plan_wrap(ctx, type, N, N, SPMV_OPERATION_N, &class, s.product, &s.plan));
    s.a = a; /* values: freed at the end */
    double *const b = calloc(2 * N, sizeof *b);
    for (int64_t i = 0; i < N * parts(&s); i++)
        b[i] = 1 + (double)(i * 7 % 11) / 8;
    s.bytes = N * (int64_t)spmv_type_size(type);
    void *const typed = support_as(type_part(type), b, N * parts(&s), 0);
    s.b = support_upload(ctx, typed, s.bytes);
    s.x = support_upload(ctx, typed, s.bytes);
    free(pairs);
    free(b);
    free(typed);
    return s;
}

static void close_setting(struct setting *s)
{
    spmv_plan_destroy(s->plan);
    assert_int_equal(s->product->destroyed, 1);
    spmv_plan_destroy(s->product->plan);
    free(s->product);
    support_free_in(s->ctx, s->b, s->x);
    free((void *)s->a.val);
    spmv_matrix_destroy(s->m);
}

static spmv_solver_options options_of(const char *solver)
{
    spmv_solver_options o = support_solver_options();
    o.solver = solver;
    o.zero_start = 1;
    return o;
}

static spmv_status solve(struct setting *s, const spmv_solver_options *o, spmv_solver_result *result)
{
    spmv_solver *solver = NULL;
    const spmv_status st = spmv_solver_create_for_plan(s->plan, o, &solver);
    if (st != SPMV_OK) {
        assert_null(solver);
        return st;
    }
    const spmv_status ended = spmv_solver_solve(solver, s->b, s->x, result, sizeof *result);
    spmv_solver_destroy(solver);
    return ended;
}

/* ||b - A x|| / ||b|| by the plan with entries. */
static double relative_residual(struct setting *s)
{
    double *const b = support_download_as(s->ctx, type_part(s->type), s->b, N * parts(s));
    void *const y = support_upload(s->ctx, b, s->bytes);
    assert_ok(s->ctx, spmv_apply(s->product->plan, NULL, s->x, NULL, y));
    double *const ax = support_download_as(s->ctx, type_part(s->type), y, N * parts(s));
    double residual = 0, norm = 0;
    for (int64_t i = 0; i < N * parts(s); i++) {
        residual += (b[i] - ax[i]) * (b[i] - ax[i]);
        norm += b[i] * b[i];
    }
    free(b);
    free(ax);
    support_free_in(s->ctx, y);
    return sqrt(residual / norm);
}

/* Each solver, named, in each type: as with the entries, product for product. */
static void solvers(void **state)
{
    static const struct {
        const char *solver;
        char kind;
        spmv_type type;
    } cases[] = {{"cg", 'd', SPMV_F64},       {"cg", 'd', SPMV_F32},    {"cg", 'h', SPMV_C128},
                 {"minres", 'i', SPMV_F64},   {"gmres", 'u', SPMV_F64}, {"gmres", 'c', SPMV_C64},
                 {"bicgstab", 'u', SPMV_F64}, {"cocg", 'c', SPMV_C128}, {"bicgstab", 'c', SPMV_C128}};
    spmv_context *ctx = *state;
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        struct setting s = open_setting(ctx, cases[c].kind, cases[c].type);
        spmv_solver_options o = options_of(cases[c].solver);
        spmv_solver_result result, known;
        const bool narrow = type_part(cases[c].type) == SPMV_F32;
        o.rtol = narrow ? 1e-4 : 1e-9;
        assert_ok(ctx, solve(&s, &o, &result));
        assert_true(relative_residual(&s) <= (narrow ? 2 : 1.001) * o.rtol);
        assert_true(fabs(relative_residual(&s) - result.true_residual / result.norm_b) <= (narrow ? 1e-6 : 1e-13));
        assert_string_equal(result.solver, cases[c].solver);
        assert_string_equal(result.precond, "none");
        assert_true(result.backward_error < 0 && result.status == SPMV_OK);
        assert_true(s.product->calls >= result.iterations);
        o.precond = "none";
        assert_ok(ctx, spmv_solve(ctx, &s.a, s.b, s.x, &o, &known, sizeof known));
        assert_true(llabs(result.iterations - known.iterations) <= 2 + known.iterations / 20);
        close_setting(&s);
    }
}

/* What "auto" takes, by products alone. */
static void automatic(void **state)
{
    static const struct {
        char kind;
        spmv_type type;
        const char *solver, *why;
    } cases[] = {{'d', SPMV_F64, "cg", "products say that the operator is symmetric"},
                 {'i', SPMV_F64, "minres", "conjugate gradients found"},
                 {'u', SPMV_F64, "gmres", "not symmetric"},
                 {'h', SPMV_C128, "cg", "Hermitian"},
                 {'c', SPMV_C128, "cocg", "its own transpose"}};
    spmv_context *ctx = *state;
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        struct setting s = open_setting(ctx, cases[c].kind, cases[c].type);
        spmv_solver_options o = options_of(NULL);
        spmv_solver_result result;
        assert_ok(ctx, solve(&s, &o, &result));
        assert_string_equal(result.solver, cases[c].solver);
        assert_non_null(strstr(result.why_solver, cases[c].why));
        assert_true(relative_residual(&s) <= 1.001e-8);
        close_setting(&s);
    }
    /* trusted, it is taken to be symmetric: told by the true residual if it is not */
    struct setting s = open_setting(ctx, 'u', SPMV_F64);
    spmv_solver_options o = options_of(NULL);
    spmv_solver_result result;
    o.symmetry_check = SPMV_SYMMETRY_TRUST;
    const spmv_status st = solve(&s, &o, &result);
    assert_true(st == SPMV_OK ? relative_residual(&s) <= 1.001e-8 : result.status == st);
    o.solver = "cg";
    o.symmetry_check = SPMV_SYMMETRY_SAMPLED;
    assert_fails(ctx, solve(&s, &o, &result), SPMV_ERROR_NOT_SYMMETRIC, "not symmetric");
    close_setting(&s);
}

/* y = alpha A x + beta y, also of a rectangle and its transpose; scalars that are not real are refused. */
static spmv_status two_by_three(void *self, spmv_operation operation, const void *x, void *y)
{
    spmv_context *const ctx = self;
    static const double a[2][3] = {{1, 2, 3}, {4, 5, 6}};
    const bool turned = operation != SPMV_OPERATION_N;
    double from[3] = {0}, to[3] = {0};
    spmv_status st = spmv_download(ctx, x, from, (turned ? 2 : 3) * 8);
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 3; j++)
            to[turned ? j : i] += a[i][j] * from[turned ? i : j];
    return st != SPMV_OK ? st : spmv_upload(ctx, to, y, (turned ? 3 : 2) * 8);
}

static void products(void **state)
{
    static const double x[3] = {1, -1, 2}, y0[3] = {10, 20, 30}, nans[3] = {NAN, NAN, NAN};
    static const spmv_operator_class own = {.size = sizeof own, .name = "2 x 3", .apply = two_by_three};
    spmv_context *ctx = *state;
    for (int t = 0; t < 2; t++) {
        const int n = t == 0 ? 2 : 3;
        spmv_plan *plan = NULL;
        spmv_plan_info info;
        double y[3] = {0};
        assert_ok(ctx,
                  spmv_plan_wrap(ctx, SPMV_F64, 2, 3, t == 0 ? SPMV_OPERATION_N : SPMV_OPERATION_T, &own, ctx, &plan));
        assert_ok(ctx, spmv_plan_describe(plan, &info, sizeof info));
        assert_true(info.rows == n && info.cols == 5 - n && info.nnz == 0);
        assert_string_equal(info.method, "operator");
        assert_non_null(strstr(info.layout, "2 x 3"));
        void *const from = support_upload(ctx, x, sizeof x), *const to = support_upload(ctx, nans, sizeof nans);
        assert_ok(ctx, spmv_apply(plan, NULL, from, NULL, to));
        assert_ok(ctx, spmv_download(ctx, to, y, n * 8));
        const double once[2][3] = {{5, 11, 0}, {-3, -3, -3}};
        for (int i = 0; i < n; i++)
            assert_true(y[i] == once[t][i]);
        /* beta = 0 reads no y */
        const double two = 2, zero = 0, minus = -1, one = 1;
        assert_ok(ctx, spmv_upload(ctx, nans, to, sizeof nans));
        assert_ok(ctx, spmv_apply(plan, &two, from, &zero, to));
        assert_ok(ctx, spmv_download(ctx, to, y, n * 8));
        for (int i = 0; i < n; i++)
            assert_true(y[i] == 2 * once[t][i]);
        assert_ok(ctx, spmv_upload(ctx, y0, to, sizeof y0));
        assert_ok(ctx, spmv_apply(plan, &minus, from, &one, to));
        assert_ok(ctx, spmv_download(ctx, to, y, n * 8));
        for (int i = 0; i < n; i++)
            assert_true(y[i] == y0[i] - once[t][i]);
        assert_fails(ctx, spmv_plan_update_values(plan, from), SPMV_ERROR_UNSUPPORTED, "update_values");
        spmv_solver *solver = NULL;
        assert_fails(ctx, spmv_solver_create_for_plan(plan, NULL, &solver), SPMV_ERROR_NOT_SQUARE, "");
        assert_null(solver);
        spmv_plan_destroy(plan);
        support_free_in(ctx, from, to);
    }
    struct setting s = open_setting(ctx, 'c', SPMV_C128);
    const double i[2] = {0, 1};
    assert_fails(ctx, spmv_apply(s.plan, i, s.b, NULL, s.x), SPMV_ERROR_UNSUPPORTED, "must be real");
    close_setting(&s);
}

/* A callback that fails, with and without words, and one that gives NaN, at any call: the status, and a plan that still
 * works. */
static void failures(void **state)
{
    static const char *const methods[] = {"cg", "gmres", "bicgstab", "cocg", "minres"};
    spmv_context *ctx = *state;
    for (int m = 0; m < 5; m++) {
        struct setting s = open_setting(ctx, 'd', SPMV_F64);
        spmv_solver_options o = options_of(methods[m]);
        spmv_solver_result result;
        o.symmetry_check = SPMV_SYMMETRY_TRUST;
        assert_ok(ctx, solve(&s, &o, &result));
        const int64_t all = s.product->calls;
        for (int64_t at = 1; at <= all; at += at < 4 ? 1 : all / 4) {
            *s.product = (struct product){.ctx = ctx, .plan = s.product->plan, .fails_at = at};
            assert_fails(ctx, solve(&s, &o, &result), SPMV_ERROR_READ, "operator counting: its product failed");
            assert_true(s.product->calls == at && result.status == SPMV_ERROR_READ);
            *s.product = (struct product){.ctx = ctx, .plan = s.product->plan, .fails_at = at, .says = ""};
            assert_fails(ctx, solve(&s, &o, &result), SPMV_ERROR_ARGUMENT, "spmv_alloc");
            *s.product = (struct product){.ctx = ctx, .plan = s.product->plan, .nan_at = at};
            const spmv_status st = solve(&s, &o, &result);
            /* a NaN in the residual at the end of a run is followed by another run */
            assert_true(st == SPMV_OK ? relative_residual(&s) <= 1.001e-8 : st == SPMV_ERROR_NOT_FINITE);
        }
        *s.product = (struct product){.ctx = ctx, .plan = s.product->plan};
        assert_ok(ctx, solve(&s, &o, &result));
        close_setting(&s);
    }
}

/* M^-1 by a callback too. */
static spmv_status copy_residual(void *self, const void *r, void *z)
{
    const struct setting *const s = self;
    return spmv_map(s->ctx, SPMV_MAP_COPY, SPMV_F64, r, z, N);
}

/* What needs entries is refused with its name. An own preconditioner is taken; spmv_cg takes the plan. */
static void refused(void **state)
{
    spmv_context *ctx = *state;
    struct setting s = open_setting(ctx, 'd', SPMV_F64);
    spmv_solver_result result;
    spmv_solver_options o = options_of("direct");
    assert_fails(ctx, solve(&s, &o, &result), SPMV_ERROR_UNSUPPORTED, "the solver direct: that needs the entries");
    static const char *const names[] = {"jacobi", "ilu0", "amg"};
    for (int i = 0; i < 3; i++) {
        o = options_of("gmres");
        o.precond = names[i];
        assert_fails(ctx, solve(&s, &o, &result), SPMV_ERROR_UNSUPPORTED, "own_precond takes a function");
    }
    o = options_of("cg");
    o.inner = 1;
    assert_fails(ctx, solve(&s, &o, &result), SPMV_ERROR_UNSUPPORTED, "inner");
    o = options_of("cg");
    o.null_block = 1;
    assert_fails(ctx, solve(&s, &o, &result), SPMV_ERROR_UNSUPPORTED, "null vectors");
    o = options_of("no such");
    assert_fails(ctx, solve(&s, &o, &result), SPMV_ERROR_METHOD, "cocg");
    o = options_of("cg");
    o.type = SPMV_F32;
    assert_fails(ctx, solve(&s, &o, &result), SPMV_ERROR_TYPE, "f32");
    o = options_of("cg");
    o.vectors = 2;
    assert_fails(ctx, solve(&s, &o, &result), SPMV_ERROR_UNSUPPORTED, "one vector");

    const spmv_preconditioner_class functions = {.size = sizeof functions, .name = "same", .apply = copy_residual};
    o = options_of("cg");
    assert_ok(ctx, spmv_preconditioner_wrap(ctx, SPMV_F64, N, &functions, &s, &o.own_precond));
    assert_ok(ctx, solve(&s, &o, &result));
    assert_string_equal(result.precond, "same");
    spmv_preconditioner_destroy(o.own_precond);

    spmv_solver *solver = NULL;
    o = options_of("cg");
    assert_ok(ctx, spmv_solver_create_for_plan(s.plan, &o, &solver));
    assert_fails(ctx, spmv_solver_update_values(solver, s.b), SPMV_ERROR_UNSUPPORTED, "a plan of the caller");
    spmv_solver_destroy(solver);

    spmv_cg_options of_cg = support_cg_options();
    spmv_cg_result done;
    of_cg.zero_start = 1;
    assert_ok(ctx, spmv_cg(s.plan, s.b, s.x, &of_cg, &done, sizeof done));
    assert_string_equal(done.rung, "textbook");
    if (support_backend != SPMV_BACKEND_REF) {
        of_cg.rung = "fused";
        assert_int_equal(spmv_cg(s.plan, s.b, s.x, &of_cg, &done, sizeof done), SPMV_ERROR_UNSUPPORTED);
    }

    /* a class without a product, sizes and types that are none: self stays with the caller */
    spmv_operator_class none = class;
    spmv_plan *plan = NULL;
    none.apply = NULL;
    assert_fails(ctx, spmv_plan_wrap(ctx, SPMV_F64, 2, 2, SPMV_OPERATION_N, &none, s.product, &plan),
                 SPMV_ERROR_ARGUMENT, "apply");
    assert_fails(ctx, spmv_plan_wrap(ctx, SPMV_F64, -1, 2, SPMV_OPERATION_N, &class, s.product, &plan),
                 SPMV_ERROR_ARGUMENT, "-1 rows");
    assert_fails(ctx, spmv_plan_wrap(ctx, SPMV_I32, 2, 2, SPMV_OPERATION_N, &class, s.product, &plan), SPMV_ERROR_TYPE,
                 "i32");
    assert_true(plan == NULL && s.product->destroyed == 0);
    close_setting(&s);
}

/* No rows. */
static void empty(void **state)
{
    spmv_context *ctx = *state;
    spmv_plan *plan = NULL;
    spmv_solver *solver = NULL;
    spmv_solver_result result;
    struct product product = {.ctx = ctx};
    assert_ok(ctx, spmv_plan_wrap(ctx, SPMV_F64, 0, 0, SPMV_OPERATION_N, &class, &product, &plan));
    assert_ok(ctx, spmv_solver_create_for_plan(plan, NULL, &solver));
    assert_ok(ctx, spmv_solver_solve(solver, NULL, NULL, &result, sizeof result));
    assert_int_equal(product.calls, 0);
    spmv_solver_destroy(solver);
    spmv_plan_destroy(plan);
}

SUPPORT_MAIN(with_context(solvers), with_context(automatic), with_context(products), with_context(failures),
             with_context(refused), with_context(empty))

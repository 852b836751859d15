/* Objects in use: calls of the library from the callbacks of a solve and from a preconditioner of
 * the caller. A call that would change what the solve uses returns SPMV_ERROR_BUSY and changes
 * nothing; a destroyed object lives until the solve ends; others work. Each combination of method,
 * preconditioner, callback and call gives the bits of a solve without calls.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "tests/support/support.h"
#include "tests/support/support_slow.h"
#include <math.h>

enum { SIDE = SLOW ? 4 : 12, N = SIDE * SIDE };

/* The system, its objects, and what the callback does. */
struct scene {
    spmv_context *ctx;
    spmv_matrix *matrix;
    spmv_csr a; /* in the context's memory */
    void *arrays[3], *values, *b, *x, *other_b, *other_x;
    spmv_plan *plan; /* with update_values, and one that uses it */
    spmv_preconditioner *own, *chebyshev;
    spmv_solver *solver;
    void (*act)(struct scene *);
    int calls;
};

static void open_scene(struct scene *s, spmv_context *ctx)
{
    *s = (struct scene){.ctx = ctx};
    spmv_csr host;
    char spec[32];
    double numbers[N];
    snprintf(spec, sizeof spec, "poisson2d:%d", SIDE);
    assert_ok(ctx, spmv_matrix_generate(ctx, spec, SPMV_F64, &s->matrix));
    spmv_matrix_view(s->matrix, &host);
    s->a = host;
    s->a.memory = SPMV_MEMORY_CONTEXT;
    s->a.row_ptr = s->arrays[0] = support_upload(ctx, host.row_ptr, (N + 1) * host.row_ptr_bits / 8);
    s->a.col = s->arrays[1] = support_upload(ctx, host.col, host.nnz * 4);
    s->a.val = s->arrays[2] = support_upload(ctx, host.val, host.nnz * 8);
    double *const twice = support_zeros(host.nnz, 8);
    for (int64_t k = 0; k < host.nnz; k++)
        twice[k] = 2 * ((const double *)host.val)[k];
    s->values = support_upload(ctx, twice, host.nnz * 8);
    free(twice);
    uint64_t random = 3;
    for (int i = 0; i < N; i++)
        numbers[i] = support_uniform(&random);
    s->b = support_upload(ctx, numbers, sizeof numbers);
    s->x = support_upload(ctx, numbers, sizeof numbers);
    for (int i = 0; i < N; i++)
        numbers[i] *= 1e12;
    s->other_b = support_upload(ctx, numbers, sizeof numbers);
    s->other_x = support_upload(ctx, numbers, sizeof numbers);
}

static void close_scene(struct scene *s)
{
    support_free_in(s->ctx, s->arrays[0], s->arrays[1], s->arrays[2], s->values, s->b, s->x, s->other_b, s->other_x);
    spmv_matrix_destroy(s->matrix);
}

/* ------------------------------------------------------------- what a callback does */

static void nothing(struct scene *s)
{
    (void)s;
}

static void solve_again(struct scene *s)
{
    spmv_solver_result result;
    assert_fails(s->ctx, spmv_solver_solve(s->solver, s->other_b, s->other_x, &result, sizeof result), SPMV_ERROR_BUSY,
                 "uses the solver");
    assert_int_equal(result.status, SPMV_ERROR_BUSY);
}

static void update_solver(struct scene *s)
{
    assert_fails(s->ctx, spmv_solver_update_values(s->solver, s->values), SPMV_ERROR_BUSY, "uses the solver");
}

static void replace_callbacks(struct scene *s)
{
    assert_fails(s->ctx, spmv_solver_set_callbacks(s->solver, NULL, NULL, NULL), SPMV_ERROR_BUSY, "uses the solver");
}

static void destroy_solver(struct scene *s)
{
    spmv_solver_destroy(s->solver);
}

static void destroy_context(struct scene *s)
{
    spmv_context_destroy(s->ctx);
    assert_non_null(strstr(spmv_last_error(s->ctx), "spmv_context_destroy: a call on the context has not ended"));
}

/* Calls that a callback may make. */
static void use(struct scene *s)
{
    spmv_solver_info info;
    spmv_preconditioner_info precond;
    spmv_solver *other = NULL;
    assert_ok(s->ctx, spmv_solver_describe(s->solver, &info, sizeof info));
    assert_true(info.bytes >= 0);
    assert_ok(s->ctx, spmv_preconditioner_describe(info.precond, &precond, sizeof precond));
    assert_ok(s->ctx, spmv_apply(info.plan, NULL, s->other_b, NULL, s->other_x));
    assert_ok(s->ctx, spmv_preconditioner_apply(info.precond, s->other_b, s->other_x));
    assert_ok(s->ctx, spmv_cg(info.plan, s->other_b, s->other_x, NULL, NULL, 0));
    assert_ok(s->ctx, spmv_solver_create(s->ctx, &s->a, NULL, &other));
    assert_ok(s->ctx, spmv_solver_solve(other, s->other_b, s->other_x, NULL, 0));
    assert_ok(s->ctx, spmv_solver_update_values(other, s->values));
    assert_ok(s->ctx, spmv_solver_solve(other, s->other_b, s->other_x, NULL, 0));
    spmv_solver_destroy(other);
}

static void update_plan(struct scene *s)
{
    assert_fails(s->ctx, spmv_plan_update_values(s->plan, s->values), SPMV_ERROR_BUSY, "uses the plan");
}

static void destroy_plan(struct scene *s)
{
    spmv_plan_destroy(s->plan);
}

static void update_precond(struct scene *s)
{
    assert_fails(s->ctx, spmv_preconditioner_update_values(s->own, s->values), SPMV_ERROR_BUSY,
                 "uses the preconditioner");
}

static void destroy_precond(struct scene *s)
{
    spmv_preconditioner_destroy(s->own);
}

/* In the second call; both callbacks count. */
static int act_once(struct scene *s)
{
    if (++s->calls == 2)
        s->act(s);
    return 0;
}

static int on_iteration(int64_t iteration, double residual, void *user)
{
    (void)iteration;
    assert_true(residual >= 0);
    return act_once(user);
}

static int on_iterate(int64_t iteration, double residual, const void *x, void *user)
{
    assert_non_null(x);
    return on_iteration(iteration, residual, user);
}

/* ------------------------------------------------------------- solvers */

static const struct {
    const char *method, *precond;
    int inner;
} solvers[] = {{"cg", "none", 0},      {"cg", "jacobi", 0},  {"cg", "amg", 0},
               {"cg", "chebyshev", 0}, {"cg", "jacobi", 1},  {"minres", "amg", 0},
               {"gmres", "none", 0},   {"gmres", "ilut", 0}, {"bicgstab", "ilu0", 0}};

/* Solves with a solver of the caller's plan or its own, and writes x. */
static void solve_with(struct scene *s, int which, bool shows, bool given, double *x)
{
    spmv_solver_options o = support_solver_options();
    spmv_preconditioner_options precond = support_preconditioner_options();
    precond.update_values = strcmp(solvers[which].precond, "amg") == 0;
    o.solver = solvers[which].method;
    o.precond = solvers[which].precond;
    o.inner = solvers[which].inner;
    o.precond_options = &precond;
    o.zero_start = 1;
    o.user = s;
    if (shows)
        o.on_iterate = on_iterate;
    else
        o.on_iteration = on_iteration;
    if (given) {
        spmv_plan_options plan = support_plan_options();
        plan.update_values = 1;
        assert_ok(s->ctx, spmv_plan_create(s->ctx, &s->a, &plan, &s->plan));
        o.plan = s->plan;
    }
    s->calls = 0;
    assert_ok(s->ctx, spmv_solver_create(s->ctx, &s->a, &o, &s->solver));
    spmv_solver_result result;
    const spmv_status st = spmv_solver_solve(s->solver, s->b, s->x, &result, sizeof result);
    if (st != SPMV_OK || s->calls < 2)
        fail_msg("%s with %s: %s, %d calls of the callback: %s", o.solver, o.precond, spmv_status_name(st), s->calls,
                 spmv_last_error(s->ctx));
    assert_int_equal(result.status, SPMV_OK);
    if (s->act != destroy_solver)
        spmv_solver_destroy(s->solver);
    if (given && s->act != destroy_plan)
        spmv_plan_destroy(s->plan);
    assert_ok(s->ctx, spmv_download(s->ctx, s->x, x, N * 8));
}

/* Whether the combination is possible. */
static bool is_possible(const struct scene *s, int which, bool shows)
{
    const bool cuda = spmv_context_backend(s->ctx) == SPMV_BACKEND_CUDA;
    return !(shows && solvers[which].inner != 0) && !(cuda && solvers[which].inner != 0);
}

static void solver_in_use(void **state)
{
    static void (*const acts[])(struct scene *) = {solve_again,    update_solver,   replace_callbacks, use,
                                                   destroy_solver, destroy_context, update_plan,       destroy_plan};
    double expected[N], x[N];
    struct scene s;
    open_scene(&s, *state);
    for (int which = 0; which < (int)(sizeof solvers / sizeof *solvers); which++)
        for (int shows = 0; shows < 2; shows++) {
            if (!is_possible(&s, which, shows != 0))
                continue;
            s.act = nothing;
            solve_with(&s, which, shows != 0, false, expected);
            for (size_t a = 0; a < sizeof acts / sizeof *acts; a++) {
                if (SLOW && (a + (size_t)which + (size_t)shows) % 4 != 0)
                    continue;
                s.act = acts[a];
                solve_with(&s, which, shows != 0, a >= 6, x);
                if (memcmp(x, expected, sizeof x) != 0)
                    fail_msg("%s with %s, callback %d, call %zu: other bits", solvers[which].method,
                             solvers[which].precond, shows, a);
            }
        }
    close_scene(&s);
}

/* ------------------------------------------------------------- spmv_cg */

static void cg_in_use(void **state)
{
    static void (*const acts[])(struct scene *) = {nothing,         update_plan,    destroy_plan,
                                                   destroy_precond, update_precond, destroy_context};
    double expected[N], x[N];
    struct scene s;
    open_scene(&s, *state);
    for (int kind = 0; kind < 2; kind++) /* amg, then chebyshev, which multiplies with the plan */
        for (int shows = 0; shows < 2; shows++)
            for (size_t a = 0; a < sizeof acts / sizeof *acts; a++) {
                if (SLOW && a > 0 && (a + (size_t)(2 * kind + shows)) % 3 != 0)
                    continue;
                spmv_plan_options plan = support_plan_options();
                spmv_preconditioner_options precond = support_preconditioner_options();
                spmv_cg_options o = support_cg_options();
                plan.update_values = 1;
                assert_ok(s.ctx, spmv_plan_create(s.ctx, &s.a, &plan, &s.plan));
                precond.update_values = kind == 0;
                precond.plan = kind == 1 ? s.plan : NULL;
                assert_ok(s.ctx,
                          spmv_preconditioner_create(s.ctx, kind == 0 ? "amg" : "chebyshev", &s.a, &precond, &s.own));
                s.act = acts[a];
                s.calls = 0;
                o.precond = s.own;
                o.zero_start = 1;
                o.user = &s;
                if (shows)
                    o.on_iterate = on_iterate;
                else
                    o.on_iteration = on_iteration;
                assert_ok(s.ctx, spmv_cg(s.plan, s.b, s.x, &o, NULL, 0));
                assert_true(s.calls >= 2);
                assert_ok(s.ctx, spmv_download(s.ctx, s.x, x, sizeof x));
                if (a == 0)
                    memcpy(expected, x, sizeof x);
                assert_memory_equal(x, expected, sizeof x);
                if (s.act != destroy_precond)
                    spmv_preconditioner_destroy(s.own);
                if (s.act != destroy_plan)
                    spmv_plan_destroy(s.plan);
            }
    close_scene(&s);
}

/* ------------------------------------------------------------- a preconditioner of the caller */

/* z = r, after calls that name the preconditioner itself and the solver that runs it. */
static spmv_status apply_own(void *self, const void *r, void *z)
{
    struct scene *const s = self;
    /* a GPU may record one application and repeat it */
    if (++s->calls == (support_backend == SPMV_BACKEND_CUDA ? 1 : 2)) {
        assert_fails(s->ctx, spmv_preconditioner_apply(s->own, s->other_b, s->other_x), SPMV_ERROR_BUSY,
                     "inside an application");
        update_precond(s);
        if (s->solver != NULL) {
            solve_again(s);
            update_solver(s);
            replace_callbacks(s);
        }
        /* another solver, as an own preconditioner may have one inside; a method that records its steps as
         * a CUDA graph refuses the allocations of a new one */
        const spmv_status inner = spmv_solve(s->ctx, &s->a, s->other_b, s->other_x, NULL, NULL, 0);
        if (support_backend != SPMV_BACKEND_CUDA || inner != SPMV_ERROR_CAPTURE)
            assert_ok(s->ctx, inner);
        if (s->act == destroy_precond)
            spmv_preconditioner_destroy(s->own);
    }
    return spmv_map(s->ctx, SPMV_MAP_COPY, SPMV_F64, r, z, N);
}

static void own_preconditioner(void **state)
{
    static const char *const methods[] = {"cg", "minres", "gmres", "bicgstab"};
    struct scene s;
    double x[N], expected[N];
    const spmv_preconditioner_class class = {.size = sizeof class, .name = "own", .apply = apply_own};
    open_scene(&s, *state);
    for (int m = 0; m < 4; m++)
        for (int destroys = 0; destroys < 2; destroys++) {
            spmv_solver_options o = support_solver_options();
            s.calls = 0;
            s.act = destroys ? destroy_precond : nothing;
            assert_ok(s.ctx, spmv_preconditioner_wrap(s.ctx, SPMV_F64, N, &class, &s, &s.own));
            o.solver = methods[m];
            o.rung = m == 0 ? "textbook" : NULL;
            o.own_precond = s.own;
            o.zero_start = 1;
            assert_ok(s.ctx, spmv_solver_create(s.ctx, &s.a, &o, &s.solver));
            assert_ok(s.ctx, spmv_solver_solve(s.solver, s.b, s.x, NULL, 0));
            assert_true(s.calls >= (support_backend == SPMV_BACKEND_CUDA ? 1 : 2));
            assert_ok(s.ctx, spmv_download(s.ctx, s.x, destroys ? x : expected, sizeof x));
            spmv_solver_destroy(s.solver);
            if (!destroys)
                spmv_preconditioner_destroy(s.own);
        }
    assert_memory_equal(x, expected, sizeof x);
    /* a call of its own, in which it destroys itself */
    s.solver = NULL;
    s.calls = 1;
    assert_ok(s.ctx, spmv_preconditioner_wrap(s.ctx, SPMV_F64, N, &class, &s, &s.own));
    assert_ok(s.ctx, spmv_preconditioner_apply(s.own, s.b, s.x));
    close_scene(&s);
}

/* ------------------------------------------------------------- new callbacks, failed values */

static int count_calls(int64_t iteration, double residual, void *user)
{
    (void)iteration;
    (void)residual;
    ++*(int *)user;
    return 0;
}

static int count_iterates(int64_t iteration, double residual, const void *x, void *user)
{
    assert_non_null(x);
    return count_calls(iteration, residual, user);
}

/* One solver with and without callbacks: the same system, and after failed values no solve succeeds. */
static void callbacks_of_a_call(void **state)
{
    struct scene s;
    open_scene(&s, *state);
    for (int which = 0; which < (int)(sizeof solvers / sizeof *solvers); which += SLOW ? 2 : 1) {
        spmv_solver_options o = support_solver_options();
        spmv_solver *solver = NULL;
        int seen = 0, shown = 0;
        o.solver = solvers[which].method;
        o.precond = solvers[which].precond;
        o.zero_start = 1;
        assert_ok(s.ctx, spmv_solver_create(s.ctx, &s.a, &o, &solver));
        assert_ok(s.ctx, spmv_solver_solve(solver, s.b, s.x, NULL, 0));
        assert_ok(s.ctx, spmv_solver_set_callbacks(solver, count_calls, NULL, &seen));
        assert_ok(s.ctx, spmv_solver_solve(solver, s.b, s.x, NULL, 0));
        assert_ok(s.ctx, spmv_solver_set_callbacks(solver, NULL, count_iterates, &shown));
        assert_ok(s.ctx, spmv_solver_solve(solver, s.b, s.x, NULL, 0));
        assert_true(seen >= 2 && shown >= 2);
        if (strcmp(o.precond, "none") != 0) { /* which these values do not have */
            double *const broken = support_zeros(s.a.nnz, 8);
            for (int64_t k = 0; k < s.a.nnz; k++)
                broken[k] = NAN;
            assert_ok(s.ctx, spmv_upload(s.ctx, broken, s.values, s.a.nnz * 8));
            free(broken);
            const spmv_status failed = spmv_solver_update_values(solver, s.values);
            assert_true(failed != SPMV_OK);
            const int before = shown;
            assert_int_equal(spmv_solver_solve(solver, s.b, s.x, NULL, 0), failed);
            assert_ok(s.ctx, spmv_solver_set_callbacks(solver, NULL, NULL, NULL));
            assert_int_equal(spmv_solver_solve(solver, s.b, s.x, NULL, 0), failed);
            assert_int_equal(shown, before);
            assert_ok(s.ctx, spmv_solver_update_values(solver, s.arrays[2]));
            assert_ok(s.ctx, spmv_solver_solve(solver, s.b, s.x, NULL, 0));
        }
        spmv_solver_destroy(solver);
    }
    close_scene(&s);
}

SUPPORT_MAIN(with_context(solver_in_use), with_context(cg_in_use), with_context(own_preconditioner),
             with_context(callbacks_of_a_call))

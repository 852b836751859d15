/* libFuzzer target for calls from callbacks. The input is a script: the solver, the
 * preconditioner, and one action for each call of a callback, of the preconditioner of the caller
 * too. Whatever the actions are, the solve ends, x is that of a solve without actions, and
 * nothing that it uses is freed too early.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "tests/fuzz/fuzz_target.h"

#include <string.h>

enum { SIDE = 6, N = SIDE * SIDE };

struct script {
    const uint8_t *data;
    size_t size, at;
    spmv_context *ctx;
    spmv_csr a;
    spmv_solver *solver;
    spmv_plan *plan;
    spmv_preconditioner *own;
    double *values; /* twice those of A */
    int destroyed;  /* bits: solver, plan, preconditioner */
};

static uint8_t next(struct script *s)
{
    return s->at < s->size ? s->data[s->at++] : 255;
}

static void refused(struct script *s, spmv_status st)
{
    require(st == SPMV_ERROR_BUSY, "a call is not refused", spmv_status_name(st));
    require(strstr(spmv_last_error(s->ctx), "inside") != NULL, "no reason", spmv_last_error(s->ctx));
}

static void destroy(struct script *s, int bit)
{
    if ((s->destroyed & bit) != 0)
        return;
    s->destroyed |= bit;
    if (bit == 1)
        spmv_solver_destroy(s->solver);
    else if (bit == 2)
        spmv_plan_destroy(s->plan);
    else
        spmv_preconditioner_destroy(s->own);
}

static void act(struct script *s)
{
    double b[N], x[N] = {0};
    spmv_solver *other = NULL;
    for (int i = 0; i < N; i++)
        b[i] = i + 1;
    switch (next(s) % 16) {
    case 0:
        refused(s, spmv_solver_solve(s->solver, b, x, NULL, 0));
        break;
    case 1:
        refused(s, spmv_solver_update_values(s->solver, s->values));
        break;
    case 2:
        refused(s, spmv_solver_set_callbacks(s->solver, NULL, NULL, NULL));
        break;
    case 3:
        refused(s, spmv_plan_update_values(s->plan, s->values));
        break;
    case 4:
        refused(s, spmv_preconditioner_update_values(s->own, s->values));
        break;
    case 5:
        destroy(s, 1);
        break;
    case 6:
        destroy(s, 2);
        break;
    case 7:
        destroy(s, 4);
        break;
    case 8:
        spmv_context_destroy(s->ctx);
        break;
    case 9:
        require(spmv_apply(s->plan, NULL, b, NULL, x) == SPMV_OK, "a product fails", spmv_last_error(s->ctx));
        break;
    case 10:
        require(spmv_cg(s->plan, b, x, NULL, NULL, 0) == SPMV_OK, "cg fails", spmv_last_error(s->ctx));
        break;
    case 11:
        require(spmv_solver_create(s->ctx, &s->a, NULL, &other) == SPMV_OK &&
                    spmv_solver_update_values(other, s->values) == SPMV_OK &&
                    spmv_solver_solve(other, b, x, NULL, 0) == SPMV_OK,
                "another solver fails", spmv_last_error(s->ctx));
        spmv_solver_destroy(other);
        break;
    default: /* nothing */
        break;
    }
}

static int on_iteration(int64_t iteration, double residual, void *user)
{
    (void)iteration;
    (void)residual;
    act(user);
    return 0;
}

static int on_iterate(int64_t iteration, double residual, const void *x, void *user)
{
    (void)x;
    return on_iteration(iteration, residual, user);
}

static spmv_status apply(void *self, const void *r, void *z)
{
    struct script *const s = self;
    memcpy(z, r, N * sizeof(double));
    if (s->own != NULL && s->solver != NULL)
        act(s);
    return SPMV_OK;
}

/* One solve. script: with its actions. */
static void solve(struct script *s, const spmv_solver_options *given, int wraps, double *x)
{
    spmv_solver_options o = *given;
    spmv_plan_options plan;
    spmv_preconditioner_options precond;
    const spmv_preconditioner_class class = {.size = sizeof class, .name = "own", .apply = apply};
    double b[N];
    for (int i = 0; i < N; i++)
        b[i] = (i * 7 % 11) - 4;
    s->destroyed = 0;
    s->solver = NULL;
    spmv_plan_options_init(&plan, sizeof plan);
    plan.update_values = 1;
    require(spmv_plan_create(s->ctx, &s->a, &plan, &s->plan) == SPMV_OK, "no plan", spmv_last_error(s->ctx));
    spmv_preconditioner_options_init(&precond, sizeof precond);
    precond.update_values = 1;
    const spmv_status made = wraps ? spmv_preconditioner_wrap(s->ctx, SPMV_F64, N, &class, s, &s->own)
                                   : spmv_preconditioner_create(s->ctx, "amg", &s->a, &precond, &s->own);
    require(made == SPMV_OK, "no preconditioner", spmv_last_error(s->ctx));
    o.plan = s->plan;
    o.own_precond = s->own;
    o.user = s;
    o.zero_start = 1;
    require(spmv_solver_create(s->ctx, &s->a, &o, &s->solver) == SPMV_OK, "no solver", spmv_last_error(s->ctx));
    require(spmv_solver_solve(s->solver, b, x, NULL, 0) == SPMV_OK, "the solve fails", spmv_last_error(s->ctx));
    destroy(s, 1);
    destroy(s, 4);
    destroy(s, 2);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const solvers[] = {"cg", "minres", "gmres", "bicgstab"};
    static spmv_matrix *matrix;
    struct script s = {.ctx = fuzz_context()};
    spmv_solver_options o;
    double expected[N], x[N];
    if (size < 2)
        return 0;
    if (matrix == NULL)
        require(spmv_matrix_generate(s.ctx, "poisson2d:6", SPMV_F64, &matrix) == SPMV_OK, "no matrix", "");
    spmv_matrix_view(matrix, &s.a);
    s.a.memory = SPMV_MEMORY_CONTEXT;
    s.values = malloc((size_t)s.a.nnz * sizeof *s.values);
    require(s.values != NULL, "no memory", "");
    for (int64_t k = 0; k < s.a.nnz; k++)
        s.values[k] = 2 * ((const double *)s.a.val)[k];
    spmv_solver_options_init(&o, sizeof o);
    o.solver = solvers[data[0] % 4];
    if ((data[0] & 4) != 0)
        o.on_iterate = on_iterate;
    if ((data[0] & 8) != 0)
        o.on_iteration = on_iteration;
    const int wraps = (data[0] & 16) != 0;
    solve(&s, &o, wraps, expected); /* the script is empty */
    s.data = data + 1;
    s.size = size - 1;
    solve(&s, &o, wraps, x);
    require(memcmp(x, expected, sizeof x) == 0, "another x", o.solver);
    free(s.values);
    return 0;
}

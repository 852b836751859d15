/* Conjugate gradients as an operation: A x = b, b = A times ones, from x = 0. What is measured, and
 * how it is checked: work_system.h.
 *
 * Bytes of an iteration: the product's matrix once, and ten passes over vectors. That is what three
 * fused kernels need: product with p'Ap: p, q; r with r'r: r, q, r; x and p: x, p, x, r, p.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>

#include "bench/ops/work_system.h"

enum { VECTOR_PASSES = 10 };

static spmv_status setup(struct work *work)
{
    const struct peer_problem *const p = &work->problem;
    struct work_system *const system = work_state(work, sizeof *system);
    if (system == NULL)
        return SPMV_ERROR_MEMORY;
    *system = (struct work_system){.label = "conjugate gradients", .symmetric = true, .factor = 2};
    const spmv_status st = work_system_make(work, system);
    work->model_bytes =
        work_system_matrix_bytes(work) + VECTOR_PASSES * (double)spmv_type_size(work->type) * (double)p->rows;
    return st;
}

/* ---------------------------------------------------------------- spmv's rungs */

struct solve {
    spmv_plan *plan;
    spmv_plan_info info;
    spmv_cg_options options;
    spmv_cg_result result; /* of the last run */
    char method[64];       /* requested name */
    char precond[64];      /* requested name; "": none */
};

static void close_solve(struct method *method)
{
    struct solve *const solve = method->state;
    if (solve != NULL)
        spmv_plan_destroy(solve->plan);
    free(solve);
}

/* Makes the preconditioner if one is requested, solves, and releases it. */
static spmv_status solve_once(struct method *method)
{
    struct solve *const solve = method->state;
    struct work *const work = method->work;
    const struct work_system *const system = work->state;
    spmv_preconditioner_options options;
    spmv_status st = SPMV_OK;
    const double began = monotonic_seconds();
    spmv_preconditioner_options_init(&options, sizeof options);
    options.type = work->type;
    options.plan = solve->plan;
    if (solve->precond[0] != '\0')
        st = spmv_preconditioner_create(work->ctx, solve->precond, &system->matrix.sent, &options,
                                        &solve->options.precond);
    method->figures.setup_seconds = solve->precond[0] != '\0' ? monotonic_seconds() - began : 0;
    if (st == SPMV_OK)
        st = spmv_cg(solve->plan, work->problem.b, work->problem.y, &solve->options, &solve->result,
                     sizeof solve->result);
    spmv_preconditioner_destroy(solve->options.precond);
    solve->options.precond = NULL;
    return st;
}

/* Tries a solve with at most one iteration, to find out whether the rung exists and which one is
 * selected. */
static spmv_status try_method(struct method *method)
{
    struct solve *const solve = method->state;
    solve->options.max_iterations = 1;
    const spmv_status st = solve_once(method);
    solve->options.max_iterations = method->work->problem.max_iterations;
    return st == SPMV_ERROR_ITERATIONS ? SPMV_OK : st;
}

static spmv_status open_solve(struct work *work, const char *name, struct method *method)
{
    struct solve *const solve = calloc(1, sizeof *solve);
    if (solve == NULL)
        return work_out_of_memory(work, "a solve", (int64_t)sizeof *solve);
    snprintf(solve->method, sizeof solve->method, "%s", name);
    snprintf(solve->precond, sizeof solve->precond, "%s", work->precond != NULL ? work->precond : "");
    spmv_cg_options_init(&solve->options, sizeof solve->options);
    solve->options.rung = solve->method;
    solve->options.rtol = work->problem.rtol;
    solve->options.zero_start = 1;
    solve->options.on_iteration = work->on_iteration;
    solve->options.user = work->user;
    solve->options.symmetry_check = SPMV_SYMMETRY_TRUST; /* work_system_make has checked every entry */
    const struct work_system *const system = work->state;
    spmv_status st = work_make_plan(work, &system->matrix, 1, "auto", &solve->plan, &solve->info);
    *method = (struct method){.work = work, .state = solve};
    if (st == SPMV_OK && (st = try_method(method)) != SPMV_OK)
        work_fail(work, work->ctx, st);
    if (st != SPMV_OK) {
        close_solve(method);
        return st;
    }
    method->name = solve->result.rung;
    method->why = solve->result.why;
    method->layout = solve->info.layout;
    method->figures.plan_bytes = solve->info.bytes;
    method->precond = solve->precond[0] != '\0' ? solve->result.precond : NULL;
    return SPMV_OK;
}

static int run(void *state)
{
    struct method *const method = state;
    struct solve *const solve = method->state;
    const spmv_status st = solve_once(method);
    return work_system_solved(method, st, solve->result.iterations, solve->result.recurrence_residual,
                              solve->result.norm_b);
}

const struct operation operation_cg = {.name = "cg",
                                       .formula = "A x = A 1 by conjugate gradients from x = 0",
                                       .on_matrix = true,
                                       .solver = true,
                                       .peer_op = PEER_CG,
                                       .methods = {spmv_cg_rung_name, open_solve, run, close_solve, NULL},
                                       .setup = setup,
                                       .check = work_system_check,
                                       .adapt = work_system_adapt};

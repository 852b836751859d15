/* Restarted GMRES and BiCGStab as operations on a square matrix, symmetric or not. What is measured,
 * and how it is checked: work_system.h. The methods of spmv are those of the product.
 *
 * Bytes of an iteration, in vectors of n elements besides the matrix:
 *   gmres     step j reads the basis of j vectors three times: for the first projection, for the
 *             second one with the first subtraction, and for the second subtraction. Besides: the
 *             product reads v_j and writes w; the projections read w, read it, and write it; the
 *             last pass reads it and writes v_j+1. On average over the steps of a solve.
 *   bicgstab  the matrix twice, and 19 passes, which five fused kernels need: product with (r0, v):
 *             p, v, r0; s: r, v, s; product with (t, s), t't: s, t; x and r: x, p, s, t, r0, x, r;
 *             p: r, p, v, p.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>

#include "bench/ops/work_system.h"

enum { GMRES_RESTART = 50, GMRES_BASIS_PASSES = 3, GMRES_PASSES = 7, BICGSTAB_PASSES = 19 };

/* ---------------------------------------------------------------- the work */

/* The mean size of the basis over the first steps of restarted GMRES. */
static double mean_basis(int64_t steps, int64_t restart)
{
    const double whole = (double)(steps / restart), m = (double)restart, rest = (double)(steps % restart);
    return (whole * m * (m + 1) + rest * (rest + 1)) / (2 * (double)steps);
}

static double gmres_bytes(const struct work *work, int64_t steps)
{
    const struct peer_problem *const p = &work->problem;
    const double vector = (double)p->rows * (double)spmv_type_size(work->type);
    return work_system_matrix_bytes(work) +
           (GMRES_PASSES + GMRES_BASIS_PASSES * mean_basis(steps, p->restart)) * vector;
}

static struct work_system *make_state(struct work *work, const char *label, double factor)
{
    struct work_system *const system = work_state(work, sizeof *system);
    if (system != NULL)
        *system = (struct work_system){.label = label, .factor = factor};
    return system;
}

static spmv_status setup_gmres(struct work *work)
{
    struct work_system *const system = make_state(work, "gmres", 2);
    if (system == NULL)
        return SPMV_ERROR_MEMORY;
    const spmv_status st = work_system_make(work, system);
    work->problem.restart = work->restart > 0 ? work->restart : GMRES_RESTART;
    work->model_bytes = gmres_bytes(work, work->problem.restart);
    return st;
}

/* A solve that ends in the first cycle, or within a later one, reads fewer vectors on average. */
static spmv_status check_gmres(struct work *work, const void *host_result, struct check *check)
{
    const struct work_system *const system = work->state;
    if (system->solved.iterations > 0)
        work->model_bytes = gmres_bytes(work, system->solved.iterations);
    return work_system_check(work, host_result, check);
}

/* The residuals of BiCGStab vary by orders of magnitude, so that its recurrence loses more digits
 * than others: the check allows a factor of 10. */
static spmv_status setup_bicgstab(struct work *work)
{
    struct work_system *const system = make_state(work, "bicgstab", 10);
    if (system == NULL)
        return SPMV_ERROR_MEMORY;
    const spmv_status st = work_system_make(work, system);
    work->model_bytes = 2 * work_system_matrix_bytes(work) +
                        BICGSTAB_PASSES * (double)spmv_type_size(work->type) * (double)work->problem.rows;
    return st;
}

/* ---------------------------------------------------------------- spmv's solver */

struct solve {
    spmv_plan *plan;
    spmv_plan_info info;
    spmv_solver *solver; /* between runs only without a preconditioner */
    spmv_solver_options options;
    spmv_solver_result result; /* of the last run */
    char precond[64];          /* requested name; "none" */
};

static void close_solve(struct method *method)
{
    struct solve *const solve = method->state;
    if (solve != NULL) {
        spmv_solver_destroy(solve->solver);
        spmv_plan_destroy(solve->plan);
    }
    free(solve);
}

static spmv_status make_solver(struct method *method)
{
    struct solve *const solve = method->state;
    const struct work_system *const system = method->work->state;
    return spmv_solver_create(method->work->ctx, &system->matrix.sent, &solve->options, &solve->solver);
}

static void drop_solver(struct solve *solve)
{
    spmv_solver_destroy(solve->solver);
    solve->solver = NULL;
}

/* The solver is made here only to find out whether it can be; with a preconditioner each run makes
 * it again. */
static spmv_status open_solve(struct work *work, const char *name, struct method *method)
{
    struct solve *const solve = calloc(1, sizeof *solve);
    if (solve == NULL)
        return work_out_of_memory(work, "a solve", (int64_t)sizeof *solve);
    const bool preconditioned = work->precond != NULL && work->precond[0] != '\0';
    snprintf(solve->precond, sizeof solve->precond, "%s", preconditioned ? work->precond : "none");
    *method = (struct method){.work = work, .state = solve};
    const struct work_system *const system = work->state;
    spmv_status st = work_make_plan(work, &system->matrix, 1, name, &solve->plan, &solve->info);
    spmv_solver_options_init(&solve->options, sizeof solve->options);
    solve->options.solver = work->operation->name;
    solve->options.precond = solve->precond;
    solve->options.rtol = work->problem.rtol;
    solve->options.max_iterations = work->problem.max_iterations;
    solve->options.zero_start = 1;
    solve->options.restart = work->problem.restart;
    solve->options.plan = solve->plan;
    solve->options.on_iteration = work->on_iteration;
    solve->options.user = work->user;
    if (st == SPMV_OK && (st = make_solver(method)) != SPMV_OK)
        work_fail(work, work->ctx, st);
    if (st != SPMV_OK) {
        close_solve(method);
        return st;
    }
    if (preconditioned)
        drop_solver(solve);
    method->name = solve->info.method;
    method->why = solve->info.why;
    method->layout = solve->info.layout;
    method->figures.plan_bytes = solve->info.bytes;
    method->precond = preconditioned ? solve->result.precond : NULL;
    return SPMV_OK;
}

static int run(void *state)
{
    struct method *const method = state;
    struct solve *const solve = method->state;
    struct work *const work = method->work;
    const bool makes = solve->solver == NULL;
    const double began = monotonic_seconds();
    spmv_status st = makes ? make_solver(method) : SPMV_OK;
    method->figures.setup_seconds = makes ? monotonic_seconds() - began : 0;
    if (st == SPMV_OK)
        st = spmv_solver_solve(solve->solver, work->problem.b, work->problem.y, &solve->result, sizeof solve->result);
    if (makes)
        drop_solver(solve);
    return work_system_solved(method, st, solve->result.iterations, solve->result.recurrence_residual,
                              solve->result.norm_b);
}

#define OPERATION(row, text, peer, checker)                                                                            \
    const struct operation operation_##row = {                                                                         \
        .name = #row,                                                                                                  \
        .formula = (text),                                                                                             \
        .on_matrix = true,                                                                                             \
        .solver = true,                                                                                                \
        .unsymmetric = true,                                                                                           \
        .peer_op = (peer),                                                                                             \
        .methods = {spmv_method_name, open_solve, run, close_solve, NULL},                                             \
        .setup = setup_##row,                                                                                          \
        .check = checker,                                                                                              \
        .adapt = work_system_adapt,                                                                                    \
    };
OPERATION(gmres, "A x = A 1 by restarted GMRES from x = 0", PEER_GMRES, check_gmres)
OPERATION(bicgstab, "A x = A 1 by BiCGStab from x = 0", PEER_BICGSTAB, work_system_check)

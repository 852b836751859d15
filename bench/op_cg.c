/* Conjugate gradients as an operation: A x = b, b = A times ones, from x = 0.
 *
 * A run is a whole solve. Everything that the interface allows is allocated before. The reported
 * time is that of a run divided by its iterations. With a preconditioner, a run makes it, solves
 * and releases it, and the time of the whole run is reported, because iterations with different
 * preconditioners are not comparable. Peers have no preconditioner. All stop by the same rule,
 * ||r|| <= rtol ||b|| with r by the recurrence, or at the same limit. The true residual of each x
 * is computed here, in f64 and with the same code for all.
 *
 * Bytes of an iteration: the product's matrix once, and ten passes over vectors. That is what three
 * fused kernels need: product with p'Ap: p, q; r with r'r: r, q, r; x and p: x, p, x, r, p.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "measure.h"
#include "work_matrix.h"

enum { MOST_ITERATIONS = 3000, VECTOR_PASSES = 10 };

struct state {
    struct work_matrix matrix;
    void *b;                   /* host memory */
    struct peer_solved solved; /* of the last run; problem.solved points to it */
};

/* In f32, rounding in the products limits the residual. */
static double tolerance(spmv_type type)
{
    return type == SPMV_F32 ? 1e-4 : 1e-8;
}

/* The sum of a_ij x_j over row i, in f64; x NULL: ones. */
static double row_times(const spmv_csr *a, const void *x, int64_t i)
{
    const int64_t *const row_ptr = a->row_ptr;
    double sum = 0;
    for (int64_t k = row_ptr[i]; k < row_ptr[i + 1]; k++)
        sum += real_at(a->type, a->val, k) * (x != NULL ? real_at(a->type, x, a->col[k]) : 1);
    return sum;
}

static spmv_status make_b(struct work *work, struct state *state)
{
    const spmv_csr *const a = &state->matrix.host;
    const int64_t bytes = a->rows * (int64_t)spmv_type_size(work->type);
    void *const b = state->b = work_keep(work, malloc((size_t)bytes + 1));
    if (b == NULL)
        return work_out_of_memory(work, "the right-hand side", bytes);
#pragma omp parallel for num_threads(spmv_context_threads(work->checker)) schedule(static)
    for (int64_t i = 0; i < a->rows; i++)
        real_set(work->type, b, i, row_times(a, NULL, i));
    return work_array(work, b, bytes, &work->problem.b);
}

/* Rejects unsuitable matrices: peers do not check them, and their behaviour would be undefined. */
static spmv_status refuse_others(struct work *work)
{
    const spmv_csr *const a = work->operand->matrix;
    spmv_statistics s;
    if (type_parts(work->type) > 1) {
        snprintf(work->error, sizeof work->error, "conjugate gradients are measured only in real types");
        return SPMV_ERROR_TYPE;
    }
    if (a->rows != a->cols) {
        snprintf(work->error, sizeof work->error, "conjugate gradients: the matrix has %lld rows and %lld columns",
                 (long long)a->rows, (long long)a->cols);
        return SPMV_ERROR_NOT_SQUARE;
    }
    const spmv_status st = spmv_matrix_statistics(work->checker, a, &s, sizeof s);
    if (st != SPMV_OK)
        return work_fail(work, work->checker, st);
    if (s.symmetric)
        return SPMV_OK;
    snprintf(work->error, sizeof work->error, "conjugate gradients: the matrix is not symmetric");
    return SPMV_ERROR_NOT_SYMMETRIC;
}

static spmv_status setup(struct work *work)
{
    struct peer_problem *const p = &work->problem;
    const double v = (double)spmv_type_size(work->type);
    struct state *const state = work_state(work, sizeof *state);
    if (state == NULL)
        return SPMV_ERROR_MEMORY;
    spmv_status st = refuse_others(work);
    if (st == SPMV_OK)
        st = work_send_matrix(work, &state->matrix);
    if (st == SPMV_OK)
        st = make_b(work, state);
    p->solved = &state->solved;
    p->rtol = tolerance(work->type);
    p->max_iterations = MOST_ITERATIONS;
    work->model_bytes = (double)p->nnz * (4 + v) + 4 * ((double)p->rows + 1) + VECTOR_PASSES * v * (double)p->rows;
    work->result_bytes = p->rows * (int64_t)v;
    if (st == SPMV_OK)
        st = work_array(work, NULL, work->result_bytes, (const void **)&p->y);
    work->result = p->y;
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
    const struct state *const state = work->state;
    spmv_preconditioner_options options;
    spmv_status st = SPMV_OK;
    const double began = monotonic_seconds();
    spmv_preconditioner_options_init(&options, sizeof options);
    options.type = work->type;
    options.plan = solve->plan;
    if (solve->precond[0] != '\0')
        st = spmv_preconditioner_create(work->ctx, solve->precond, &state->matrix.sent, &options,
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
    solve->options.method = solve->method;
    solve->options.rtol = work->problem.rtol;
    solve->options.zero_start = 1;
    solve->options.symmetry_check = SPMV_SYMMETRY_TRUST; /* refuse_others has checked every entry */
    const struct state *const state = work->state;
    spmv_status st = work_make_plan(work, &state->matrix, 1, "auto", &solve->plan, &solve->info);
    *method = (struct method){.work = work, .state = solve};
    if (st == SPMV_OK) {
        st = try_method(method);
        if (st != SPMV_OK)
            work_fail(work, work->ctx, st);
    }
    if (st != SPMV_OK) {
        close_solve(method);
        return st;
    }
    method->name = solve->result.method;
    method->why = solve->result.why;
    method->layout = solve->info.layout;
    method->figures.plan_bytes = solve->info.bytes;
    method->precond = solve->precond[0] != '\0' ? solve->result.precond : NULL;
    return SPMV_OK;
}

/* A solve that reaches the limit of iterations is not a failure: its time is still comparable. */
static int run(void *state)
{
    struct method *const method = state;
    struct solve *const solve = method->state;
    struct work *const work = method->work;
    const spmv_status st = solve_once(method);
    *work->problem.solved = (struct peer_solved){
        .iterations = solve->result.iterations,
        .residual = solve->result.norm_b > 0 ? solve->result.recurrence_residual / solve->result.norm_b : 0};
    return st == SPMV_OK || st == SPMV_ERROR_ITERATIONS ? 0 : -1;
}

/* ---------------------------------------------------------------- checks */

/* Sums the squares of b - A x and of b in parts of PART rows, so that the order is the same for any
 * number of threads. */
enum { PART = 4096 };

static spmv_status true_residual(const struct work *work, const void *x, struct check *check)
{
    const struct state *const state = work->state;
    const spmv_csr *const a = &state->matrix.host;
    const int64_t parts = (a->rows + PART - 1) / PART;
    double *const sums = malloc((size_t)(2 * parts + 1) * sizeof *sums);
    double rr = 0, bb = 0;
    if (sums == NULL)
        return SPMV_ERROR_MEMORY;
#pragma omp parallel for num_threads(spmv_context_threads(work->checker)) schedule(static)
    for (int64_t part = 0; part < parts; part++) {
        sums[2 * part] = sums[2 * part + 1] = 0;
        for (int64_t i = part * PART; i < a->rows && i < (part + 1) * PART; i++) {
            const double b = real_at(work->type, state->b, i), r = b - row_times(a, x, i);
            sums[2 * part] += r * r;
            sums[2 * part + 1] += b * b;
        }
    }
    for (int64_t part = 0; part < parts; part++) {
        rr += sums[2 * part];
        bb += sums[2 * part + 1];
    }
    free(sums);
    check->norm_b = sqrt(bb);
    check->true_residual = bb > 0 ? sqrt(rr / bb) : sqrt(rr);
    return SPMV_OK;
}

/* Rounding separates the residual of the recurrence from the true one, but little at these
 * tolerances: the check allows a factor of 2. A solve that stops before both the tolerance and the
 * limit is wrong. */
static spmv_status check(struct work *work, const void *host_result, struct check *check)
{
    const struct peer_solved *const solved = work->problem.solved;
    const double rtol = work->problem.rtol;
    *check = (struct check){.at = -1};
    if (true_residual(work, host_result, check) != SPMV_OK)
        return work_out_of_memory(work, "the true residual's sums", work->problem.rows / PART * 16);
    check->ratio = check->true_residual / (2 * fmax(rtol, solved->residual));
    if (solved->iterations < 0 || solved->iterations > work->problem.max_iterations ||
        (!(solved->residual <= rtol) && solved->iterations < work->problem.max_iterations))
        check->ratio = INFINITY;
    if (check->ratio <= 1)
        return SPMV_OK;
    snprintf(work->error, sizeof work->error, "cg: true residual %.3g of ||b||, reported %.3g after %lld iterations",
             check->true_residual, solved->residual, (long long)solved->iterations);
    return SPMV_ERROR_CHECK;
}

/* No flushed runs, because an iteration uses what the previous one left in the caches. */
static void adapt(struct measure_options *options)
{
    options->flushed_rounds = 0;
    options->long_seconds = LONG_RUN_SECONDS;
}

const struct operation operation_cg = {.name = "cg",
                                       .formula = "A x = A 1 by conjugate gradients from x = 0",
                                       .on_matrix = true,
                                       .solver = true,
                                       .peer_op = PEER_CG,
                                       .method_name = spmv_cg_method_name,
                                       .setup = setup,
                                       .open = open_solve,
                                       .close = close_solve,
                                       .run = run,
                                       .check = check,
                                       .adapt = adapt};

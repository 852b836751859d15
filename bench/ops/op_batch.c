/* Batches of systems with the pattern of the matrix as an operation (batch), --vectors of them.
 *
 * Matrix k is D (A + s_k diag(A)) D, with a random diagonal matrix D of 0.9 to 1.1 and a random shift s_k of 0 to 1/2,
 * more often a small one. So it is symmetric positive definite if A is, each system has other values, and
 * the numbers of iterations differ. b is random. A run is the solution of all systems from x = 0 with the
 * preconditioner jacobi. All x are checked by the residual in f64.
 *
 * The methods "loop-..." solve the same systems one by one with spmv_solver, in LOOPS threads with a context (on a
 * GPU a stream) of their own; the solvers get the values of one system after the other.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/ops/work_matrix.h"
#include "core/splitmix.h"

enum { STREAM_B = 0x71, LOOPS = 8, MOST_ITERATIONS = 3000 };

#define LOOP "loop-"
static const char *const names[] = {"cg", "bicgstab", "gmres", LOOP "cg", LOOP "bicgstab", LOOP "gmres"};

struct state {
    struct work_matrix matrix;
    void *val, *b; /* host memory */
    int64_t count;
    double rtol;
};

/* Uniform in [0, 1). */
static double uniform(uint64_t *random)
{
    return (double)(splitmix_next(random) >> 11) * 0x1p-53;
}

/* The values of matrix k. */
static void fill_system(const struct work *work, const struct state *state, int64_t k, double *d)
{
    const spmv_csr *const a = &state->matrix.host;
    const int64_t *const row_ptr = a->row_ptr;
    uint64_t random = work->operand->seed * 1000003 + (uint64_t)k;
    const double root = uniform(&random), shift = root * root / 2;
    for (int64_t i = 0; i < a->rows; i++)
        d[i] = 0.9 + 0.2 * uniform(&random);
    for (int64_t i = 0; i < a->rows; i++)
        for (int64_t e = row_ptr[i]; e < row_ptr[i + 1]; e++)
            real_set(work->type, state->val, k * a->nnz + e,
                     real_at(work->type, a->val, e) * d[i] * d[a->col[e]] * (a->col[e] == i ? 1 + shift : 1));
}

static spmv_status fill_systems(struct work *work, const struct state *state)
{
    double *const d = malloc((size_t)state->matrix.host.rows * sizeof *d + 1);
    if (d == NULL)
        return work_out_of_memory(work, "a diagonal", state->matrix.host.rows * (int64_t)sizeof *d);
    for (int64_t k = 0; k < state->count; k++)
        fill_system(work, state, k, d);
    free(d);
    return SPMV_OK;
}

static spmv_status setup(struct work *work)
{
    struct peer_problem *const p = &work->problem;
    const int64_t size = (int64_t)spmv_type_size(work->type);
    struct state *const state = work_state(work, sizeof *state);
    if (state == NULL)
        return SPMV_ERROR_MEMORY;
    if (!type_is_real(work->type)) {
        snprintf(work->error, sizeof work->error, "batch is measured only in f64 and f32");
        return SPMV_ERROR_TYPE;
    }
    spmv_status st = work_send_matrix(work, work->operand->matrix, &state->matrix);
    if (st != SPMV_OK)
        return st;
    if (p->rows != p->cols) {
        snprintf(work->error, sizeof work->error, "batch: the matrix has %lld rows and %lld columns",
                 (long long)p->rows, (long long)p->cols);
        return SPMV_ERROR_NOT_SQUARE;
    }
    state->count = work->vectors > 1 ? work->vectors : 1;
    state->rtol = real_limits_of(work->type).tolerance;
    const int64_t vectors = state->count * p->rows, values = state->count * p->nnz;
    work->model_bytes = (double)size * ((double)values + 2 * (double)vectors);
    work->result_bytes = vectors * size;
    state->b = work_keep(work, work_values(work, vectors, STREAM_B, false));
    state->val = work_keep(work, malloc((size_t)(values * size) + 1));
    if (state->b == NULL || state->val == NULL)
        return work_out_of_memory(work, "the systems", (vectors + values) * size);
    st = fill_systems(work, state);
    if (st == SPMV_OK)
        st = work_array(work, state->val, values * size, &p->x);
    if (st == SPMV_OK)
        st = work_array(work, state->b, vectors * size, &p->b);
    if (st == SPMV_OK)
        st = work_array(work, NULL, work->result_bytes, (const void **)&p->y);
    work->result = p->y;
    return st;
}

/* ---------------------------------------------------------------- spmv's methods */

struct solve {
    spmv_batch *batch;
    spmv_batch_result *results;
    /* loops */
    spmv_context *ctx[LOOPS];
    spmv_solver *solver[LOOPS];
    char why[96];
};

static const char *name_of(spmv_backend backend, int index)
{
    (void)backend;
    return index < (int)(sizeof names / sizeof names[0]) ? names[index] : NULL;
}

static void close_solve(struct method *method)
{
    struct solve *const solve = method->state;
    if (solve == NULL)
        return;
    for (int t = 0; t < LOOPS; t++) {
        spmv_solver_destroy(solve->solver[t]);
        spmv_context_destroy(solve->ctx[t]);
    }
    spmv_batch_destroy(solve->batch);
    free(solve->results);
    free(solve);
}

static spmv_status open_batch(struct work *work, const char *name, struct solve *solve)
{
    const struct state *const state = work->state;
    spmv_batch_options options;
    spmv_batch_options_init(&options, sizeof options);
    options.solver = name;
    options.precond = "jacobi";
    options.type = work->type;
    options.rtol = state->rtol;
    options.max_iterations = MOST_ITERATIONS;
    options.zero_start = 1;
    solve->results = calloc((size_t)state->count, sizeof *solve->results);
    if (solve->results == NULL)
        return work_out_of_memory(work, "results", state->count * (int64_t)sizeof *solve->results);
    const spmv_status st = spmv_batch_create(work->ctx, &state->matrix.sent, &options, &solve->batch);
    return st == SPMV_OK ? st : work_fail(work, work->ctx, st);
}

/* A context and a solver for each thread of the loop. */
static spmv_status open_loop(struct work *work, const char *name, struct solve *solve)
{
    const struct state *const state = work->state;
    spmv_solver_options options;
    spmv_context_options of_context;
    spmv_solver_options_init(&options, sizeof options);
    spmv_context_options_init(&of_context, sizeof of_context);
    options.solver = name;
    options.precond = "jacobi";
    options.rtol = state->rtol;
    options.max_iterations = MOST_ITERATIONS;
    options.zero_start = 1;
    options.symmetry_check = SPMV_SYMMETRY_TRUST;
    of_context.backend = spmv_context_backend(work->ctx);
    of_context.threads = 1;
    for (int t = 0; t < LOOPS; t++) {
        spmv_csr a = state->matrix.sent;
        a.val = work->problem.x;
        spmv_status st = spmv_context_create(&of_context, &solve->ctx[t]);
        if (st != SPMV_OK)
            return work_fail(work, NULL, st);
        st = spmv_solver_create(solve->ctx[t], &a, &options, &solve->solver[t]);
        if (st != SPMV_OK)
            return work_fail(work, solve->ctx[t], st);
    }
    return SPMV_OK;
}

static int run(void *state);

static spmv_status open_solve(struct work *work, const char *name, struct method *method)
{
    const struct state *const state = work->state;
    const bool loop = strncmp(name, LOOP, strlen(LOOP)) == 0;
    struct solve *const solve = calloc(1, sizeof *solve);
    if (solve == NULL)
        return work_out_of_memory(work, "a solve", (int64_t)sizeof *solve);
    name = strcmp(name, "auto") == 0 ? "bicgstab" : name;
    *method = (struct method){.work = work, .state = solve, .name = name, .precond = "jacobi"};
    spmv_status st = loop ? open_loop(work, name + strlen(LOOP), solve) : open_batch(work, name, solve);
    if (st == SPMV_OK && !loop) {
        int64_t sum = 0, most = 0;
        run(method); /* a failure is seen by the check */
        for (int64_t k = 0; k < state->count; k++) {
            sum += solve->results[k].iterations;
            most = solve->results[k].iterations > most ? solve->results[k].iterations : most;
        }
        snprintf(solve->why, sizeof solve->why, "%.1f iterations on average, at most %lld",
                 (double)sum / (double)state->count, (long long)most);
        method->figures.plan_bytes = spmv_batch_bytes(solve->batch);
    }
    method->why = loop ? "one system after the other, on several streams or threads" : solve->why;
    if (st != SPMV_OK)
        close_solve(method);
    return st;
}

static int run_loop(const struct work *work, const struct solve *solve)
{
    const struct state *const state = work->state;
    const int64_t size = (int64_t)spmv_type_size(work->type), vector = work->problem.rows * size;
    spmv_status first = SPMV_OK;
#pragma omp parallel for schedule(static, 1) num_threads(LOOPS)
    for (int t = 0; t < LOOPS; t++)
        for (int64_t k = t; k < state->count; k += LOOPS) {
            spmv_status st = spmv_solver_update_values(solve->solver[t],
                                                       (const char *)work->problem.x + k * work->problem.nnz * size);
            if (st == SPMV_OK)
                st = spmv_solver_solve(solve->solver[t], (const char *)work->problem.b + k * vector,
                                       (char *)work->problem.y + k * vector, NULL, 0);
            if (st != SPMV_OK) {
#pragma omp critical
                first = first == SPMV_OK ? spmv_context_report(work->ctx, st, spmv_last_error(solve->ctx[t])) : first;
            }
        }
    return first == SPMV_OK ? 0 : -1;
}

static int run(void *state)
{
    const struct method *const method = state;
    const struct work *const work = method->work;
    struct solve *const solve = method->state;
    const struct state *const of_work = work->state;
    if (solve->batch == NULL)
        return run_loop(work, solve);
    return spmv_batch_solve(solve->batch, work->problem.x, work->problem.b, work->problem.y, of_work->count,
                            solve->results, sizeof *solve->results) == SPMV_OK
               ? 0
               : -1;
}

/* ||b - A x|| / ||b|| of system k; at_x: of x. */
static double residual_of(const struct work *work, const struct state *state, const void *x, int64_t k)
{
    const spmv_csr *const a = &state->matrix.host;
    const int64_t *const row_ptr = a->row_ptr;
    double squares = 0, of_b = 0;
    for (int64_t i = 0; i < a->rows; i++) {
        const double b = real_at(work->type, state->b, k * a->rows + i);
        double left = b;
        for (int64_t e = row_ptr[i]; e < row_ptr[i + 1]; e++)
            left -= real_at(work->type, state->val, k * a->nnz + e) * real_at(work->type, x, k * a->rows + a->col[e]);
        squares += left * left;
        of_b += b * b;
    }
    return of_b > 0 ? sqrt(squares / of_b) : squares > 0 ? INFINITY : 0;
}

/* A solver of a loop of f32 stops by sums in f32. */
static spmv_status check(struct work *work, const void *host_result, struct check *check)
{
    const struct state *const state = work->state;
    *check = (struct check){.ratio = 0, .at = -1};
    for (int64_t k = 0; k < state->count; k++) {
        const double ratio = residual_of(work, state, host_result, k) / (2 * state->rtol);
        if (!(ratio <= check->ratio)) {
            check->ratio = ratio <= HUGE_VAL ? ratio : HUGE_VAL;
            check->at = k;
        }
    }
    if (check->ratio <= 1)
        return SPMV_OK;
    snprintf(work->error, sizeof work->error, "batch: the residual of a system is too large");
    return SPMV_ERROR_CHECK;
}

const struct operation operation_batch = {
    .name = "batch",
    .formula = "A_k x_k = b_k with one pattern",
    .on_matrix = true,
    .keeps_values = true,
    .peer_op = -1,
    .methods = {name_of, open_solve, run, close_solve, NULL},
    .setup = setup,
    .check = check,
};

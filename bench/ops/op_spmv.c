/* The product y = A x as an operation: plain (spmv), for several vectors at once (spmm), and with a
 * dot product as in a step of conjugate gradients (spmv-dot). The dot product is stored after y in
 * the result.
 *
 * The plans of spmv borrow the arrays that peers read: plain CSR, with 32-bit offsets below 2^31
 * entries. A pattern matrix has ones as values for peers and stays a pattern for spmv; its bytes
 * are counted with values for both.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/ops/work_matrix.h"

/* Of several vectors so many are checked: as many as have CHECKED_PRODUCTS products in all, within limits. */
enum { STREAM_X = 0x78, STREAM_W = 0x77, LEAST_CHECKED = 2, MOST_CHECKED = 16, CHECKED_PRODUCTS = 1 << 26 };

struct state {
    struct work_matrix matrix;
    int vectors;
    bool dot;    /* spmv-dot */
    void *x, *w; /* host memory */
};

static double model_bytes(const struct work *work, const struct state *state)
{
    const spmv_csr *const a = &state->matrix.host;
    const double v = (double)spmv_type_size(work->type), rows = (double)a->rows, cols = (double)a->cols;
    return (double)a->nnz * (4 + v) + 4 * (rows + 1) + v * (rows + cols) * state->vectors +
           (state->dot ? v * (rows + 1) : 0);
}

static spmv_status setup(struct work *work, int vectors, bool dot)
{
    struct peer_problem *const p = &work->problem;
    const int64_t size = (int64_t)spmv_type_size(work->type), k = vectors;
    struct state *const state = work_state(work, sizeof *state);
    if (state == NULL)
        return SPMV_ERROR_MEMORY;
    state->vectors = vectors;
    state->dot = dot;
    spmv_status st = work_send_matrix(work, work->operand->matrix, &state->matrix);
    if (st != SPMV_OK)
        return st;
    p->vectors = vectors;
    p->by_columns = work->layout == SPMV_LAYOUT_COLUMNS;
    work->model_bytes = model_bytes(work, state);
    work->products = (double)p->nnz * vectors;
    work->result_bytes = (p->rows * k + (dot ? 1 : 0)) * size;
    state->x = work_keep(work, work_values(work, p->cols * k, STREAM_X, false));
    if (state->x == NULL)
        return work_out_of_memory(work, "the vector x", p->cols * k * size);
    if (dot && (state->w = work_keep(work, work_values(work, p->rows, STREAM_W, false))) == NULL)
        return work_out_of_memory(work, "the vector w", p->rows * size);
    st = work_array(work, state->x, p->cols * k * size, &p->x);
    if (st == SPMV_OK && dot)
        st = work_array(work, state->w, p->rows * size, &p->w);
    if (st == SPMV_OK)
        st = work_array(work, NULL, work->result_bytes, (const void **)&p->y);
    work->result = p->y;
    return st;
}

static spmv_status setup_spmv(struct work *work)
{
    return setup(work, 1, false);
}

static spmv_status setup_spmm(struct work *work)
{
    return setup(work, work->vectors > 1 ? work->vectors : 1, false);
}

static spmv_status setup_spmv_dot(struct work *work)
{
    if (type_parts(work->type) == 1)
        return setup(work, 1, true);
    snprintf(work->error, sizeof work->error, "spmv-dot is measured only in real types");
    return SPMV_ERROR_TYPE;
}

static spmv_status open_plan(struct work *work, const char *name, struct method *method)
{
    spmv_plan_info info;
    spmv_plan *plan = NULL;
    const struct state *const state = work->state;
    const spmv_status st = work_make_plan(work, &state->matrix, state->vectors, name, &plan, &info);
    if (st != SPMV_OK)
        return st;
    *method = (struct method){.name = info.method,
                              .why = info.why,
                              .layout = info.layout,
                              .figures = {.plan_bytes = info.bytes},
                              .work = work,
                              .state = plan};
    return SPMV_OK;
}

static void close_plan(struct method *method)
{
    spmv_plan_destroy(method->state);
}

static int run(void *state)
{
    const struct method *const method = state;
    return spmv_apply(method->state, NULL, method->work->problem.x, NULL, method->work->problem.y) == SPMV_OK ? 0 : -1;
}

static int run_dot(void *state)
{
    const struct method *const method = state;
    const struct peer_problem *const p = &method->work->problem;
    spmv_epilogue e;
    spmv_epilogue_init(&e, sizeof e);
    e.w = p->w;
    e.dot = (char *)p->y + (size_t)p->rows * spmv_type_size(method->work->type);
    return spmv_apply_with(method->state, NULL, p->x, NULL, p->y, &e) == SPMV_OK ? 0 : -1;
}

static spmv_status verify(struct work *work, const void *x, const void *y, struct check *check)
{
    const struct state *const state = work->state;
    spmv_verify_result result = {0};
    const spmv_status st = spmv_verify(work->checker, &state->matrix.host, SPMV_OPERATION_N, NULL, x, NULL, NULL, y,
                                       work->type, &result, sizeof result);
    *check = (struct check){.ratio = result.worst_ratio, .at = result.worst_row};
    return st == SPMV_OK ? st : work_fail(work, work->checker, st);
}

static spmv_status check_y(struct work *work, const void *host_result, struct check *check)
{
    return verify(work, ((const struct state *)work->state)->x, host_result, check);
}

/* Copies column v of an array of rows with k elements each, or of k columns. */
static void take_column(const struct work *work, const char *from, int64_t rows, int v, char *to)
{
    const bool by_columns = work->layout == SPMV_LAYOUT_COLUMNS;
    const size_t size = spmv_type_size(work->type);
    const int64_t first = by_columns ? v * rows : v, step = by_columns ? 1 : work->problem.vectors;
#pragma omp parallel for num_threads(spmv_context_threads(work->checker)) schedule(static)
    for (int64_t i = 0; i < rows; i++)
        memcpy(to + (size_t)i * size, from + (size_t)(first + i * step) * size, size);
}

static int checked_columns(int64_t nnz, int vectors)
{
    const int64_t affordable = nnz > 0 ? CHECKED_PRODUCTS / nnz : MOST_CHECKED;
    const int checked = affordable > MOST_CHECKED    ? MOST_CHECKED
                        : affordable < LEAST_CHECKED ? LEAST_CHECKED
                                                     : (int)affordable;
    return checked < vectors ? checked : vectors;
}

/* Column i of the `checked` ones: all, or some from all over x and of different places in a lane's load and in a
 * line. */
static int checked_column(int i, int checked, int vectors)
{
    return (int)((int64_t)i * vectors / checked + i % (vectors / checked));
}

static spmv_status check_columns(struct work *work, const void *host_result, struct check *check)
{
    const struct state *const state = work->state;
    const spmv_csr *const a = &state->matrix.host;
    const size_t size = spmv_type_size(work->type);
    const int k = state->vectors, checked = checked_columns(a->nnz, k);
    char *const x = malloc((size_t)a->cols * size + 1), *const y = malloc((size_t)a->rows * size + 1);
    spmv_status st =
        x == NULL || y == NULL ? work_out_of_memory(work, "a column", (a->rows + a->cols) * (int64_t)size) : SPMV_OK;
    *check = (struct check){.ratio = 0};
    for (int i = 0; i < checked && st == SPMV_OK; i++) {
        const int v = checked_column(i, checked, k);
        struct check column;
        take_column(work, state->x, a->cols, v, x);
        take_column(work, host_result, a->rows, v, y);
        st = verify(work, x, y, &column);
        if (column.ratio > check->ratio || st != SPMV_OK)
            *check = column;
    }
    free(x);
    free(y);
    return st;
}

/* Number i of an array of real numbers. */
static long double number(const struct work *work, const void *array, int64_t i)
{
    return real_at(work->type, array, i);
}

/* Checks y, and its dot product with w: bound (n + 2) u sum |w_i| |y_i| (operator.h). */
static spmv_status check_dot(struct work *work, const void *host_result, struct check *check)
{
    const struct state *const state = work->state;
    const int64_t rows = state->matrix.host.rows;
    const spmv_status st = verify(work, state->x, host_result, check);
    if (st != SPMV_OK)
        return st;
    long double exact = 0, all = 0;
    for (int64_t i = 0; i < rows; i++) {
        const long double term = number(work, state->w, i) * number(work, host_result, i);
        exact += term;
        all += fabsl(term);
    }
    const long double roundoff = real_limits_of(work->type).roundoff;
    const long double bound = 1.001L * ((long double)rows + 2) * roundoff * all;
    const long double error = fabsl(number(work, host_result, rows) - exact);
    const double worst = error == 0 ? 0 : error / bound <= HUGE_VALL ? (double)(error / bound) : INFINITY;
    if (!(worst > check->ratio))
        return SPMV_OK;
    *check = (struct check){.ratio = worst, .at = rows};
    if (worst <= 1)
        return SPMV_OK;
    snprintf(work->error, sizeof work->error, "spmv-dot: the dot product is wrong");
    return SPMV_ERROR_CHECK;
}

/* The methods that take several vectors. */
static const char *spmm_method(spmv_backend backend, int index)
{
    static const char *const cuda[] = {"columns", "octets", "abreast", "wide", "panels", NULL};
    return backend == SPMV_BACKEND_CUDA  ? cuda[index]
           : index > 0                   ? NULL
           : backend == SPMV_BACKEND_OMP ? "tiles"
                                         : "definition";
}

#define OPERATION(row, text, title, peer, names, runner, checker)                                                      \
    const struct operation operation_##row = {                                                                         \
        .name = (text),                                                                                                \
        .formula = (title),                                                                                            \
        .on_matrix = true,                                                                                             \
        .peer_op = (peer),                                                                                             \
        .methods = {names, open_plan, runner, close_plan, NULL},                                                       \
        .setup = setup_##row,                                                                                          \
        .check = checker,                                                                                              \
    };
OPERATION(spmv, "spmv", "y = A x", PEER_SPMV, spmv_method_name, run, check_y)
OPERATION(spmm, "spmm", "Y = A X, several vectors at once", PEER_SPMM, spmm_method, run, check_columns)
OPERATION(spmv_dot, "spmv-dot", "y = A x, and w'y", PEER_SPMV_DOT, spmv_method_name, run_dot, check_dot)

/* The product of a square sparse matrix with itself, C = A A, as an operation: both phases (spgemm),
 * or the numeric phase of a plan (spgemm-numeric). The result is the values of C.
 *
 * Check: the product by another backend, with an error of at most 2 (n + 3) u |A| |A| per entry,
 * where n is the length of the row of A and u the unit roundoff. Each of the two sums has at most
 * half of this (N. J. Higham, "Accuracy and stability of numerical algorithms", 2nd ed., 3.1).
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "work_matrix.h"

struct state {
    struct work_matrix matrix;
    spmv_matrix *right, *size; /* A A, and |A| |A|, in host memory */
};

/* Absolute values of n numbers; NULL: out of memory. */
static void *absolute(spmv_type type, const void *values, int64_t n)
{
    void *const to = malloc((size_t)n * spmv_type_size(type) + 1);
    for (int64_t k = 0; to != NULL && k < n; k++)
        real_set(type, to, k, fabs(real_at(type, values, k)));
    return to;
}

/* The products that results are compared with. */
static spmv_status make_reference(struct work *work, struct state *state)
{
    spmv_csr a = state->matrix.host;
    spmv_status st = spmv_multiply(work->checker, &a, &a, NULL, &state->right);
    if (st != SPMV_OK)
        return work_fail(work, work->checker, st);
    void *const values = absolute(work->type, a.val, a.nnz);
    if (values == NULL)
        return work_out_of_memory(work, "absolute values", a.nnz * (int64_t)spmv_type_size(work->type));
    a.val = values;
    st = spmv_multiply(work->checker, &a, &a, NULL, &state->size);
    free(values);
    return st == SPMV_OK ? st : work_fail(work, work->checker, st);
}

static spmv_status setup(struct work *work)
{
    struct peer_problem *const p = &work->problem;
    struct state *const state = work_state(work, sizeof *state);
    const spmv_csr *const operand = work->operand->matrix;
    if (state == NULL)
        return SPMV_ERROR_MEMORY;
    if (operand->rows != operand->cols || type_parts(work->type) != 1) {
        snprintf(work->error, sizeof work->error, "%s is measured on square matrices in real types",
                 work->operation->name);
        return operand->rows != operand->cols ? SPMV_ERROR_SIZE : SPMV_ERROR_TYPE;
    }
    spmv_status st = work_send_matrix(work, &state->matrix);
    if (st == SPMV_OK)
        st = make_reference(work, state);
    if (st != SPMV_OK)
        return st;
    spmv_csr c;
    spmv_matrix_view(state->right, &c);
    const double v = (double)spmv_type_size(work->type), rows = (double)p->rows;
    work->result_bytes = c.nnz * (int64_t)spmv_type_size(work->type);
    work->model_bytes = (double)p->nnz * (4 + v) + 4 * (rows + 1) + (double)c.nnz * (4 + v) + 8 * (rows + 1);
    const int64_t *const row_ptr = operand->row_ptr;
    for (int64_t k = 0; k < operand->nnz; k++)
        work->products += (double)(row_ptr[operand->col[k] + 1] - row_ptr[operand->col[k]]);
    st = work_array(work, NULL, work->result_bytes, (const void **)&p->y);
    work->result = p->y;
    return st;
}

static void release(struct work *work)
{
    struct state *const state = work->state;
    if (state == NULL)
        return;
    spmv_matrix_destroy(state->right);
    spmv_matrix_destroy(state->size);
}

/* ---------------------------------------------------------------------------- methods */

static spmv_status make_plan(struct work *work, const char *name, spmv_multiply_plan **plan)
{
    const spmv_csr *const a = &((const struct state *)work->state)->matrix.sent;
    spmv_multiply_options options;
    spmv_multiply_options_init(&options, sizeof options);
    options.method = name;
    return spmv_multiply_plan_create(work->ctx, a, a, &options, plan);
}

static spmv_status open(struct work *work, const char *name, struct method *method)
{
    spmv_multiply_plan *plan = NULL;
    spmv_multiply_info info;
    spmv_status st = make_plan(work, name, &plan);
    if (st == SPMV_OK)
        st = spmv_multiply_describe(plan, &info, sizeof info);
    if (st != SPMV_OK)
        return work_fail(work, work->ctx, st);
    *method = (struct method){
        .name = info.method, .why = info.why, .figures = {.plan_bytes = info.bytes}, .work = work, .state = plan};
    return SPMV_OK;
}

static void close_plan(struct method *method)
{
    spmv_multiply_plan_destroy(method->state);
}

static int run_numeric(void *state)
{
    const struct method *const method = state;
    const void *const values = ((const struct state *)method->work->state)->matrix.sent.val;
    return spmv_multiply_values(method->state, values, values, method->work->result) == SPMV_OK ? 0 : -1;
}

/* Both phases, by the method of the plan that was opened. */
static int run_both(void *state)
{
    const struct method *const method = state;
    const void *const values = ((const struct state *)method->work->state)->matrix.sent.val;
    spmv_multiply_plan *plan = NULL;
    spmv_status st = make_plan(method->work, method->name, &plan);
    if (st == SPMV_OK)
        st = spmv_multiply_values(plan, values, values, method->work->result);
    spmv_multiply_plan_destroy(plan);
    return st == SPMV_OK ? 0 : -1;
}

/* ------------------------------------------------------------------------------ check */

static spmv_status check(struct work *work, const void *host_result, struct check *check)
{
    const struct state *const state = work->state;
    const double unit = real_limits_of(work->type).roundoff;
    const int64_t *const row_ptr = state->matrix.host.row_ptr;
    spmv_csr right, size;
    spmv_matrix_view(state->right, &right);
    spmv_matrix_view(state->size, &size);
    *check = (struct check){.ratio = 0};
    for (int64_t i = 0; i < right.rows; i++) {
        const double factor = 2 * (double)(row_ptr[i + 1] - row_ptr[i] + 3) * unit;
        for (int64_t e = ((const int64_t *)right.row_ptr)[i]; e < ((const int64_t *)right.row_ptr)[i + 1]; e++) {
            const double error = fabs(real_at(work->type, host_result, e) - real_at(work->type, right.val, e));
            const double bound = factor * real_at(work->type, size.val, e);
            const double ratio = error == 0 ? 0 : error / bound <= DBL_MAX ? error / bound : INFINITY;
            if (ratio > check->ratio)
                *check = (struct check){.ratio = ratio, .at = i};
        }
    }
    if (check->ratio <= 1)
        return SPMV_OK;
    snprintf(work->error, sizeof work->error, "%s: row %lld of the product is wrong", work->operation->name,
             (long long)check->at);
    return SPMV_ERROR_CHECK;
}

const struct operation operation_spgemm = {.name = "spgemm",
                                           .formula = "C = A A, both phases",
                                           .on_matrix = true,
                                           .peer_op = PEER_SPGEMM,
                                           .method_name = spmv_multiply_method_name,
                                           .setup = setup,
                                           .release = release,
                                           .open = open,
                                           .close = close_plan,
                                           .run = run_both,
                                           .check = check};

const struct operation operation_spgemm_numeric = {.name = "spgemm-numeric",
                                                   .formula = "C = A A, the numeric phase of a plan",
                                                   .on_matrix = true,
                                                   .peer_op = PEER_SPGEMM_NUMERIC,
                                                   .method_name = spmv_multiply_method_name,
                                                   .setup = setup,
                                                   .release = release,
                                                   .open = open,
                                                   .close = close_plan,
                                                   .run = run_numeric,
                                                   .check = check};

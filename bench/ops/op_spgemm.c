/* Products of sparse matrices as operations: both phases (spgemm), or the numeric phase of a plan
 * (spgemm-numeric). The result is the values of C.
 *
 *     C = A A        A square
 *     C = A B        with operand->right
 *     C = P' (A P)   with operand->project; A P is made before
 *
 * Check: the product by another backend, with an error of at most 2 (n + 3) u |A| |B| per entry,
 * where n is the length of the row of A and u the unit roundoff. Each of the two sums has at most
 * half of this (N. J. Higham, "Accuracy and stability of numerical algorithms", 2nd ed., 3.1).
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/ops/work_matrix.h"

struct state {
    struct work_matrix a, b;
    spmv_matrix *factor[2];    /* P' and A P; NULL: the operand's matrices are multiplied */
    spmv_matrix *right, *size; /* A B, and |A| |B|, in host memory */
    spmv_matrix *product;      /* of the last run; NULL: the run wrote to the result */
};

/* Absolute values of n numbers; NULL: out of memory. */
static void *absolute(spmv_type type, const void *values, int64_t n)
{
    void *const to = malloc((size_t)n * spmv_type_size(type) + 1);
    for (int64_t k = 0; to != NULL && k < n; k++)
        real_set(type, to, k, fabs(real_at(type, values, k)));
    return to;
}

/* |A| |B|; a and b may be the same matrix. */
static spmv_status multiply_absolute(struct work *work, spmv_csr a, spmv_csr b, spmv_matrix **size)
{
    const bool same = a.val == b.val;
    void *const a_values = absolute(work->type, a.val, a.nnz);
    void *const b_values = same ? a_values : absolute(work->type, b.val, b.nnz);
    spmv_status st = SPMV_OK;
    if (a_values == NULL || b_values == NULL)
        st = work_out_of_memory(work, "absolute values", (a.nnz + b.nnz) * (int64_t)spmv_type_size(work->type));
    a.val = a_values;
    b.val = b_values;
    if (st == SPMV_OK && (st = spmv_spgemm(work->checker, &a, &b, NULL, size)) != SPMV_OK)
        work_fail(work, work->checker, st);
    free(a_values);
    if (!same)
        free(b_values);
    return st;
}

/* The products that results are compared with. */
static spmv_status make_reference(struct work *work, struct state *state)
{
    const spmv_status st = spmv_spgemm(work->checker, &state->a.host, &state->b.host, NULL, &state->right);
    return st == SPMV_OK ? multiply_absolute(work, state->a.host, state->b.host, &state->size)
                         : work_fail(work, work->checker, st);
}

/* The two factors: P' and A P are made if P is given. */
static spmv_status choose_factors(struct work *work, struct state *state, spmv_csr *a, spmv_csr *b)
{
    const struct operand *const operand = work->operand;
    *a = *operand->matrix;
    *b = operand->right != NULL ? *operand->right : *a;
    if (operand->project != NULL) {
        spmv_status st = spmv_spgemm(work->checker, a, operand->project, NULL, &state->factor[1]);
        if (st == SPMV_OK)
            st = spmv_matrix_transpose(work->checker, operand->project, &state->factor[0]);
        if (st != SPMV_OK)
            return work_fail(work, work->checker, st);
        spmv_matrix_view(state->factor[0], a);
        spmv_matrix_view(state->factor[1], b);
    }
    if (type_parts(work->type) != 1) {
        snprintf(work->error, sizeof work->error, "%s is measured in real types", work->operation->name);
        return SPMV_ERROR_TYPE;
    }
    if (a->cols == b->rows)
        return SPMV_OK;
    snprintf(work->error, sizeof work->error,
             "%s: the first factor has %lld columns, the second one %lld rows: they must be equal",
             work->operation->name, (long long)a->cols, (long long)b->rows);
    return SPMV_ERROR_SIZE;
}

static spmv_status send_factors(struct work *work, struct state *state)
{
    struct peer_problem *const p = &work->problem;
    spmv_csr a, b;
    spmv_status st = choose_factors(work, state, &a, &b);
    if (st == SPMV_OK)
        st = work_send_matrix(work, &a, &state->a);
    if (st != SPMV_OK || a.row_ptr != b.row_ptr)
        return st != SPMV_OK ? st : work_send_right(work, &b, &state->b);
    state->b = state->a;
    p->right_cols = p->cols;
    p->right_nnz = p->nnz;
    p->right_row_ptr = p->row_ptr;
    p->right_col = p->col;
    p->right_val = p->val;
    return SPMV_OK;
}

/* Bytes of a matrix with this width of its offsets. */
static double bytes_of(const struct work *work, int64_t rows, int64_t nnz, int offset)
{
    return (double)nnz * (4 + (double)spmv_type_size(work->type)) + offset * ((double)rows + 1);
}

static spmv_status setup(struct work *work)
{
    struct peer_problem *const p = &work->problem;
    struct state *const state = work_state(work, sizeof *state);
    if (state == NULL)
        return SPMV_ERROR_MEMORY;
    spmv_status st = send_factors(work, state);
    if (st == SPMV_OK)
        st = make_reference(work, state);
    if (st != SPMV_OK)
        return st;
    spmv_csr c;
    spmv_matrix_view(state->right, &c);
    const spmv_csr *const a = &state->a.host, *const b = &state->b.host;
    work->result_bytes = c.nnz * (int64_t)spmv_type_size(work->type);
    work->model_bytes = bytes_of(work, a->rows, a->nnz, 4) + bytes_of(work, c.rows, c.nnz, 8) +
                        (a->row_ptr != b->row_ptr ? bytes_of(work, b->rows, b->nnz, 4) : 0);
    const int64_t *const row_ptr = b->row_ptr;
    for (int64_t k = 0; k < a->nnz; k++)
        work->products += (double)(row_ptr[a->col[k] + 1] - row_ptr[a->col[k]]);
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
    spmv_matrix_destroy(state->product);
    for (int i = 0; i < 2; i++)
        spmv_matrix_destroy(state->factor[i]);
}

/* ---------------------------------------------------------------------------- methods */

static spmv_status make_plan(struct work *work, const char *name, spmv_spgemm_plan **plan)
{
    const struct state *const state = work->state;
    spmv_spgemm_options options;
    spmv_spgemm_options_init(&options, sizeof options);
    options.method = name;
    return spmv_spgemm_plan_create(work->ctx, &state->a.sent, &state->b.sent, &options, plan);
}

static spmv_status open(struct work *work, const char *name, struct method *method)
{
    spmv_spgemm_plan *plan = NULL;
    spmv_spgemm_info info;
    spmv_status st = make_plan(work, name, &plan);
    if (st == SPMV_OK)
        st = spmv_spgemm_describe(plan, &info, sizeof info);
    if (st != SPMV_OK)
        return work_fail(work, work->ctx, st);
    *method = (struct method){
        .name = info.method, .why = info.why, .figures = {.plan_bytes = info.bytes}, .work = work, .state = plan};
    return SPMV_OK;
}

static void close_plan(struct method *method)
{
    spmv_spgemm_plan_destroy(method->state);
}

static spmv_status compute(const struct method *method, spmv_spgemm_plan *plan)
{
    const struct state *const state = method->work->state;
    return spmv_spgemm_values(plan, state->a.sent.val, state->b.sent.val, method->work->result);
}

static int run_numeric(void *state)
{
    const struct method *const method = state;
    return compute(method, method->state) == SPMV_OK ? 0 : -1;
}

/* C = A B in one call, which may compute pattern and values together. As for peers, C is new. */
static int run_new_matrix(struct work *work, const char *name)
{
    struct state *const state = work->state;
    spmv_spgemm_options options;
    spmv_spgemm_options_init(&options, sizeof options);
    options.method = name;
    spmv_matrix_destroy(state->product);
    state->product = NULL;
    return spmv_spgemm(work->ctx, &state->a.sent, &state->b.sent, &options, &state->product) == SPMV_OK ? 0 : -1;
}

/* Both phases, by the method of the plan that was opened. On a GPU the values go to the result. */
static int run_both(void *state)
{
    const struct method *const method = state;
    spmv_spgemm_plan *plan = NULL;
    if (spmv_context_backend(method->work->ctx) != SPMV_BACKEND_CUDA)
        return run_new_matrix(method->work, method->name);
    spmv_status st = make_plan(method->work, method->name, &plan);
    if (st == SPMV_OK)
        st = compute(method, plan);
    spmv_spgemm_plan_destroy(plan);
    return st == SPMV_OK ? 0 : -1;
}

/* Copies the values of a new matrix to the result. */
static void fetch_product(struct work *work)
{
    const struct state *const state = work->state;
    spmv_csr c;
    if (state->product == NULL)
        return;
    spmv_matrix_view(state->product, &c);
    if (c.nnz * (int64_t)spmv_type_size(work->type) == work->result_bytes)
        memcpy(work->result, c.val, (size_t)work->result_bytes);
}

/* ------------------------------------------------------------------------------ check */

static spmv_status check(struct work *work, const void *host_result, struct check *check)
{
    const struct state *const state = work->state;
    const double roundoff = real_limits_of(work->type).roundoff;
    const int64_t *const row_ptr = state->a.host.row_ptr;
    spmv_csr right, size;
    spmv_matrix_view(state->right, &right);
    spmv_matrix_view(state->size, &size);
    *check = (struct check){.ratio = 0};
    for (int64_t i = 0; i < right.rows; i++) {
        const double factor = 2 * (double)(row_ptr[i + 1] - row_ptr[i] + 3) * roundoff;
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
             (long long)check->at + 1);
    return SPMV_ERROR_CHECK;
}

#define OPERATION(row, text, title, peer, runner, fetcher)                                                             \
    const struct operation operation_##row = {                                                                         \
        .name = (text),                                                                                                \
        .formula = (title),                                                                                            \
        .allocates = true,                                                                                             \
        .on_matrix = true,                                                                                             \
        .peer_op = (peer),                                                                                             \
        .methods = {spmv_spgemm_method_name, open, runner, close_plan, fetcher},                                       \
        .setup = setup,                                                                                                \
        .release = release,                                                                                            \
        .check = check,                                                                                                \
    };
OPERATION(spgemm, "spgemm", "C = A B, both phases", PEER_SPGEMM, run_both, fetch_product)
OPERATION(spgemm_numeric, "spgemm-numeric", "C = A B, the numeric phase of a plan", PEER_SPGEMM_NUMERIC, run_numeric,
          NULL)

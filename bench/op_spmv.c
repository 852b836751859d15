/* The product y = A x as something to measure.
 *
 * Our plans borrow the arrays that the peers read: plain CSR, 32-bit offsets below 2^31 entries. A pattern matrix is
 * ones to peers and stays a pattern to us; its bytes are counted with values for both.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>

#include "work.h"

enum { STREAM_X = 0x78 };

static double model_bytes(const spmv_csr *a, spmv_type type)
{
    const double v = (double)spmv_type_size(type), rows = (double)a->rows, cols = (double)a->cols;
    return (double)a->nnz * (4 + v) + 4 * (rows + 1) + v * (rows + cols);
}

/* The operand's values in the type, the real ones of a complex type with imaginary parts of 0; ones for a pattern. */
static spmv_status make_values(struct work *work)
{
    const spmv_csr *const a = work->operand->matrix;
    const double *const from = a->val;
    work->host_matrix = *a;
    if (from != NULL && work->type == a->type)
        return SPMV_OK;
    const bool narrow = type_of_parts(work->type) == SPMV_F32;
    const int parts = type_parts(work->type), given = from != NULL ? type_parts(a->type) : 1;
    const int64_t bytes = a->nnz * (int64_t)spmv_type_size(work->type);
    work->host_values = malloc((size_t)bytes + 1);
    if (work->host_values == NULL)
        return work_out_of_memory(work, "the matrix's values", bytes);
#pragma omp parallel for num_threads(spmv_context_threads(work->checker)) schedule(static)
    for (int64_t i = 0; i < a->nnz * parts; i++) {
        const int64_t k = i / parts, part = i % parts;
        const double value = part >= given ? 0 : from != NULL ? from[k * given + part] : 1;
        if (narrow)
            ((float *)work->host_values)[i] = (float)value;
        else
            ((double *)work->host_values)[i] = value;
    }
    work->host_matrix.val = work->host_values;
    work->host_matrix.type = work->type;
    return SPMV_OK;
}

/* The row offsets: 32 bits where they fit, which is what peers take, else 64 for us alone. */
static spmv_status send_offsets(struct work *work)
{
    const spmv_csr *const a = &work->host_matrix;
    const int64_t *const wide = a->row_ptr;
    const void *array = NULL;
    spmv_status st;
    if (a->nnz > INT32_MAX) {
        st = work_array(work, wide, (a->rows + 1) * 8, &array);
        work->matrix.row_ptr_bits = 64;
    } else {
        int32_t *const narrow = malloc((size_t)(a->rows + 1) * sizeof *narrow);
        if (narrow == NULL)
            return work_out_of_memory(work, "the row offsets", (a->rows + 1) * 4);
        for (int64_t i = 0; i <= a->rows; i++)
            narrow[i] = (int32_t)wide[i];
        st = work_array(work, narrow, (a->rows + 1) * 4, &array);
        free(narrow);
        work->problem.row_ptr = array;
        work->matrix.row_ptr_bits = 32;
    }
    work->matrix.row_ptr = array;
    return st;
}

static spmv_status setup(struct work *work)
{
    struct peer_problem *const p = &work->problem;
    const int64_t size = (int64_t)spmv_type_size(work->type);
    spmv_status st = make_values(work);
    if (st != SPMV_OK)
        return st;
    const spmv_csr *const a = &work->host_matrix;
    p->rows = a->rows;
    p->cols = a->cols;
    p->nnz = a->nnz;
    work->matrix = *a;
    work->matrix.row_ptr = NULL;
    work->model_bytes = model_bytes(a, work->type);
    work->result_bytes = a->rows * size;
    work->host_x = work_values(work, a->cols, STREAM_X, false);
    if (work->host_x == NULL)
        return work_out_of_memory(work, "the vector x", a->cols * size);
    st = send_offsets(work);
    if (st == SPMV_OK)
        st = work_array(work, a->col, a->nnz * 4, (const void **)&p->col);
    if (st == SPMV_OK)
        st = work_array(work, a->val, a->nnz * size, &p->val);
    if (st == SPMV_OK)
        st = work_array(work, work->host_x, a->cols * size, &p->x);
    if (st == SPMV_OK)
        st = work_array(work, NULL, work->result_bytes, (const void **)&p->y);
    work->matrix.col = p->col;
    work->matrix.val = work->operand->matrix->val != NULL ? p->val : NULL;
    work->matrix.memory = SPMV_MEMORY_CONTEXT;
    work->result = p->y;
    return st;
}

static spmv_status open_plan(struct work *work, const char *method, struct own *own)
{
    spmv_plan_options options;
    spmv_plan_info info;
    spmv_plan *plan = NULL;
    spmv_plan_options_init(&options, sizeof options);
    options.method = method;
    options.type = work->type;
    options.compression = work->uncompressed ? 0 : work->compressed ? 1 : -1;
    spmv_status st = spmv_plan_create(work->ctx, &work->matrix, &options, &plan);
    if (st == SPMV_OK)
        st = spmv_synchronize(work->ctx);
    if (st == SPMV_OK)
        st = spmv_plan_describe(plan, &info, sizeof info);
    if (st != SPMV_OK) {
        work_fail(work, work->ctx, st);
        spmv_plan_destroy(plan);
        return st;
    }
    *own = (struct own){.method = info.method,
                        .why = info.why,
                        .layout = info.layout,
                        .plan_bytes = info.bytes,
                        .work = work,
                        .plan = plan};
    return SPMV_OK;
}

static void close_plan(struct own *own)
{
    spmv_plan_destroy(own->plan);
}

static int run(void *state)
{
    const struct own *const own = state;
    return spmv_apply(own->plan, NULL, own->work->problem.x, NULL, own->work->problem.y) == SPMV_OK ? 0 : -1;
}

static spmv_status check(struct work *work, const void *host_result, double *ratio, int64_t *at)
{
    spmv_verify_result result = {0};
    const spmv_status st = spmv_verify(work->checker, &work->host_matrix, SPMV_OPERATION_N, NULL, work->host_x, NULL,
                                       NULL, host_result, work->type, &result, sizeof result);
    *ratio = result.worst_ratio;
    *at = result.worst_row;
    return st == SPMV_OK ? st : work_fail(work, work->checker, st);
}

const struct operation operation_spmv = {.name = "spmv",
                                         .formula = "y = A x",
                                         .on_matrix = true,
                                         .peer_op = PEER_SPMV,
                                         .method = spmv_method_name,
                                         .setup = setup,
                                         .open = open_plan,
                                         .close = close_plan,
                                         .run = run,
                                         .check = check};

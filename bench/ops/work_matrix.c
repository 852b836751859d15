/* The matrix of an operation: its values in the type, a copy in the context's memory, and plans.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "bench/ops/work_matrix.h"

#include <stdlib.h>

/* Converts the values to the type; for a complex type with imaginary parts of 0, for a pattern
 * ones. */
static spmv_status make_values(struct work *work, const spmv_csr *a, spmv_csr *to)
{
    const double *const from = a->val;
    *to = *a;
    if (from != NULL && work->type == a->type)
        return SPMV_OK;
    const spmv_type part_type = type_part(work->type);
    const int parts = type_parts(work->type), given = from != NULL ? type_parts(a->type) : 1;
    const int64_t bytes = a->nnz * (int64_t)spmv_type_size(work->type);
    void *const values = work_keep(work, malloc((size_t)bytes + 1));
    if (values == NULL)
        return work_out_of_memory(work, "the matrix's values", bytes);
#pragma omp parallel for num_threads(spmv_context_threads(work->checker)) schedule(static)
    for (int64_t i = 0; i < a->nnz * parts; i++) {
        const int64_t k = i / parts, part = i % parts;
        real_set(part_type, values, i, part >= given ? 0 : from != NULL ? from[k * given + part] : 1);
    }
    to->val = values;
    to->type = work->type;
    return SPMV_OK;
}

/* Sends the row offsets: with 32 bits if they fit, which peers need (*narrow_sent), else with 64
 * bits, only for us. */
static spmv_status send_offsets(struct work *work, const spmv_csr *a, spmv_csr *to, const int32_t **narrow_sent)
{
    const int64_t *const wide = a->row_ptr;
    const void *array = NULL;
    spmv_status st;
    if (a->nnz > INT32_MAX) {
        st = work_array(work, wide, (a->rows + 1) * 8, &array);
        to->row_ptr_bits = 64;
    } else {
        int32_t *const narrow = malloc((size_t)(a->rows + 1) * sizeof *narrow);
        if (narrow == NULL)
            return work_out_of_memory(work, "the row offsets", (a->rows + 1) * 4);
        for (int64_t i = 0; i <= a->rows; i++)
            narrow[i] = (int32_t)wide[i];
        st = work_array(work, narrow, (a->rows + 1) * 4, &array);
        free(narrow);
        *narrow_sent = array;
        to->row_ptr_bits = 32;
    }
    to->row_ptr = array;
    return st;
}

/* Makes host and sent. The arrays are also stored for the peers; values of a pattern are sent for
 * them only. */
static spmv_status send(struct work *work, const spmv_csr *from, struct work_matrix *matrix, const int32_t **row_ptr,
                        const int32_t **col, const void **val)
{
    const int64_t size = (int64_t)spmv_type_size(work->type);
    spmv_csr *const sent = &matrix->sent;
    spmv_status st = make_values(work, from, &matrix->host);
    if (st != SPMV_OK)
        return st;
    const spmv_csr *const a = &matrix->host;
    *sent = *a;
    sent->row_ptr = NULL;
    st = send_offsets(work, a, sent, row_ptr);
    if (st == SPMV_OK)
        st = work_array(work, a->col, a->nnz * 4, (const void **)col);
    if (st == SPMV_OK)
        st = work_array(work, a->val, a->nnz * size, val);
    sent->col = *col;
    sent->val = from->val != NULL ? *val : NULL;
    sent->memory = SPMV_MEMORY_CONTEXT;
    return st;
}

spmv_status work_send_matrix(struct work *work, const spmv_csr *from, struct work_matrix *matrix)
{
    struct peer_problem *const p = &work->problem;
    p->rows = from->rows;
    p->cols = from->cols;
    p->nnz = from->nnz;
    return send(work, from, matrix, &p->row_ptr, &p->col, &p->val);
}

spmv_status work_send_right(struct work *work, const spmv_csr *from, struct work_matrix *matrix)
{
    struct peer_problem *const p = &work->problem;
    p->right_cols = from->cols;
    p->right_nnz = from->nnz;
    const spmv_status st = send(work, from, matrix, &p->right_row_ptr, &p->right_col, &p->right_val);
    if (p->right_row_ptr == NULL) /* too large for peers */
        p->row_ptr = NULL;
    return st;
}

spmv_status work_make_plan(struct work *work, const struct work_matrix *matrix, int vectors, const char *method,
                           spmv_plan **plan, spmv_plan_info *info)
{
    spmv_plan_options options;
    *plan = NULL;
    spmv_plan_options_init(&options, sizeof options);
    options.method = method;
    options.type = work->type;
    options.vectors = vectors;
    options.compression = work->compression;
    options.x_layout = options.y_layout = work->layout;
    spmv_status st = spmv_plan_create(work->ctx, &matrix->sent, &options, plan);
    if (st == SPMV_OK)
        st = spmv_plan_describe(*plan, info, sizeof *info);
    if (st != SPMV_OK) {
        work_fail(work, work->ctx, st);
        spmv_plan_destroy(*plan);
        *plan = NULL;
    }
    return st;
}

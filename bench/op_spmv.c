/* The product y = A x as something to measure: by itself, for several vectors at once (spmm), and with a dot product
 * (spmv-dot), as in a step of conjugate gradients, which stands behind y in the result.
 *
 * Our plans borrow the arrays that the peers read: plain CSR, 32-bit offsets below 2^31 entries. A pattern matrix is
 * ones to peers and stays a pattern to us; its bytes are counted with values for both.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "work.h"

extern const struct operation operation_spmm, operation_spmv_dot;

enum { STREAM_X = 0x78, STREAM_W = 0x77 };

static int vectors_of(const struct work *work)
{
    return work->operation == &operation_spmm && work->vectors > 1 ? work->vectors : 1;
}

static bool has_dot(const struct work *work)
{
    return work->operation == &operation_spmv_dot;
}

static double model_bytes(const struct work *work, const spmv_csr *a)
{
    const double v = (double)spmv_type_size(work->type), rows = (double)a->rows, cols = (double)a->cols;
    return (double)a->nnz * (4 + v) + 4 * (rows + 1) + v * (rows + cols) * vectors_of(work) +
           (has_dot(work) ? v * (rows + 1) : 0);
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

spmv_status work_send_matrix(struct work *work)
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
    st = send_offsets(work);
    if (st == SPMV_OK)
        st = work_array(work, a->col, a->nnz * 4, (const void **)&p->col);
    if (st == SPMV_OK)
        st = work_array(work, a->val, a->nnz * size, &p->val);
    work->matrix.col = p->col;
    work->matrix.val = work->operand->matrix->val != NULL ? p->val : NULL;
    work->matrix.memory = SPMV_MEMORY_CONTEXT;
    return st;
}

static spmv_status setup(struct work *work)
{
    struct peer_problem *const p = &work->problem;
    const int64_t size = (int64_t)spmv_type_size(work->type), k = vectors_of(work);
    spmv_status st = work_send_matrix(work);
    if (st != SPMV_OK)
        return st;
    p->vectors = (int)k;
    work->model_bytes = model_bytes(work, &work->host_matrix);
    work->result_bytes = (p->rows * k + (has_dot(work) ? 1 : 0)) * size;
    work->host_x = work_values(work, p->cols * k, STREAM_X, false);
    if (work->host_x == NULL)
        return work_out_of_memory(work, "the vector x", p->cols * k * size);
    if (has_dot(work) && (work->host_w = work_values(work, p->rows, STREAM_W, false)) == NULL)
        return work_out_of_memory(work, "the vector w", p->rows * size);
    st = work_array(work, work->host_x, p->cols * k * size, &p->x);
    if (st == SPMV_OK && has_dot(work))
        st = work_array(work, work->host_w, p->rows * size, &p->w);
    if (st == SPMV_OK)
        st = work_array(work, NULL, work->result_bytes, (const void **)&p->y);
    work->result = p->y;
    return st;
}

spmv_status work_make_plan(struct work *work, const char *method, spmv_plan **plan, spmv_plan_info *info)
{
    spmv_plan_options options;
    *plan = NULL;
    spmv_plan_options_init(&options, sizeof options);
    options.method = method;
    options.type = work->type;
    options.vectors = vectors_of(work);
    options.compression = work->compression;
    spmv_status st = spmv_plan_create(work->ctx, &work->matrix, &options, plan);
    if (st == SPMV_OK)
        st = spmv_plan_describe(*plan, info, sizeof *info);
    if (st != SPMV_OK) {
        work_fail(work, work->ctx, st);
        spmv_plan_destroy(*plan);
        *plan = NULL;
    }
    return st;
}

static spmv_status open_plan(struct work *work, const char *method, struct own *own)
{
    spmv_plan_info info;
    spmv_plan *plan = NULL;
    const spmv_status st = work_make_plan(work, method, &plan, &info);
    if (st != SPMV_OK)
        return st;
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

static int run_dot(void *state)
{
    const struct own *const own = state;
    const struct peer_problem *const p = &own->work->problem;
    spmv_epilogue e;
    spmv_epilogue_init(&e, sizeof e);
    e.w = p->w;
    e.dot = (char *)p->y + (size_t)p->rows * spmv_type_size(own->work->type);
    return spmv_apply_with(own->plan, NULL, p->x, NULL, p->y, &e) == SPMV_OK ? 0 : -1;
}

static spmv_status verify(struct work *work, const void *x, const void *y, double *ratio, int64_t *at)
{
    spmv_verify_result result = {0};
    const spmv_status st = spmv_verify(work->checker, &work->host_matrix, SPMV_OPERATION_N, NULL, x, NULL, NULL, y,
                                       work->type, &result, sizeof result);
    *ratio = result.worst_ratio;
    *at = result.worst_row;
    return st == SPMV_OK ? st : work_fail(work, work->checker, st);
}

static spmv_status check(struct work *work, const void *host_result, double *ratio, int64_t *at)
{
    return verify(work, work->host_x, host_result, ratio, at);
}

/* Column v of rows of k elements. */
static void take_column(const char *from, int64_t rows, int k, int v, size_t size, char *to)
{
    for (int64_t i = 0; i < rows; i++)
        memcpy(to + (size_t)i * size, from + ((size_t)i * (size_t)k + (size_t)v) * size, size);
}

static spmv_status check_columns(struct work *work, const void *host_result, double *ratio, int64_t *at)
{
    const spmv_csr *const a = &work->host_matrix;
    const size_t size = spmv_type_size(work->type);
    const int k = vectors_of(work);
    char *const x = malloc((size_t)a->cols * size + 1), *const y = malloc((size_t)a->rows * size + 1);
    spmv_status st =
        x == NULL || y == NULL ? work_out_of_memory(work, "a column", (a->rows + a->cols) * (int64_t)size) : SPMV_OK;
    *ratio = 0;
    *at = 0;
    for (int v = 0; v < k && st == SPMV_OK; v++) {
        double worst;
        int64_t row;
        take_column(work->host_x, a->cols, k, v, size, x);
        take_column(host_result, a->rows, k, v, size, y);
        st = verify(work, x, y, &worst, &row);
        if (worst > *ratio || st != SPMV_OK) {
            *ratio = worst;
            *at = row;
        }
    }
    free(x);
    free(y);
    return st;
}

/* Number i of an array of real numbers. */
static long double number(const struct work *work, const void *array, int64_t i)
{
    return work->type == SPMV_F32 ? (long double)((const float *)array)[i] : (long double)((const double *)array)[i];
}

/* y, and its dot product with w: (n + 2) u sum |w_i| |y_i| (operator.h). */
static spmv_status check_dot(struct work *work, const void *host_result, double *ratio, int64_t *at)
{
    const int64_t rows = work->host_matrix.rows;
    const spmv_status st = verify(work, work->host_x, host_result, ratio, at);
    if (st != SPMV_OK)
        return st;
    long double exact = 0, all = 0;
    for (int64_t i = 0; i < rows; i++) {
        const long double term = number(work, work->host_w, i) * number(work, host_result, i);
        exact += term;
        all += fabsl(term);
    }
    const long double unit = work->type == SPMV_F32 ? 0x1p-24L : 0x1p-53L;
    const long double bound = 1.001L * ((long double)rows + 2) * unit * all;
    const long double error = fabsl(number(work, host_result, rows) - exact);
    const double worst = error == 0 ? 0 : error / bound <= HUGE_VALL ? (double)(error / bound) : INFINITY;
    if (!(worst > *ratio))
        return SPMV_OK;
    *ratio = worst;
    *at = rows;
    if (worst <= 1)
        return SPMV_OK;
    snprintf(work->error, sizeof work->error, "spmv-dot: the dot product is wrong");
    return SPMV_ERROR_CHECK;
}

/* Those that take several vectors. */
static const char *spmm_method(spmv_backend backend, int index)
{
    return index > 0                      ? NULL
           : backend == SPMV_BACKEND_CUDA ? "columns"
           : backend == SPMV_BACKEND_OMP  ? "tiles"
                                          : "definition";
}

static spmv_status setup_real(struct work *work)
{
    if (type_parts(work->type) == 1)
        return setup(work);
    snprintf(work->error, sizeof work->error, "spmv-dot is measured in real types");
    return SPMV_ERROR_TYPE;
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

const struct operation operation_spmm = {.name = "spmm",
                                         .formula = "Y = A X, several vectors at once",
                                         .on_matrix = true,
                                         .peer_op = PEER_SPMM,
                                         .method = spmm_method,
                                         .setup = setup,
                                         .open = open_plan,
                                         .close = close_plan,
                                         .run = run,
                                         .check = check_columns};

const struct operation operation_spmv_dot = {.name = "spmv-dot",
                                             .formula = "y = A x, and w'y",
                                             .on_matrix = true,
                                             .peer_op = PEER_SPMV_DOT,
                                             .method = spmv_method_name,
                                             .setup = setup_real,
                                             .open = open_plan,
                                             .close = close_plan,
                                             .run = run_dot,
                                             .check = check_dot};

/* Sampled products Y = A B' at the entries of a pattern as an operation (sddmm).
 *
 * The pattern is that of the matrix; its values are left out, because peers do not multiply by them. Y
 * is checked entry by entry in long double, with many products at evenly spread entries.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench/ops/work_matrix.h"

enum { STREAM_A = 0x61, STREAM_B = 0x62, CHECKED_PRODUCTS = 1 << 26 };

struct state {
    struct work_matrix matrix;
    void *a, *b; /* host memory */
};

static spmv_status setup(struct work *work)
{
    struct peer_problem *const p = &work->problem;
    const int64_t size = (int64_t)spmv_type_size(work->type), k = work->vectors > 1 ? work->vectors : 1;
    struct state *const state = work_state(work, sizeof *state);
    if (state == NULL)
        return SPMV_ERROR_MEMORY;
    if (type_parts(work->type) > 1) {
        snprintf(work->error, sizeof work->error, "sddmm is measured only in real types");
        return SPMV_ERROR_TYPE;
    }
    spmv_status st = work_send_matrix(work, work->operand->matrix, &state->matrix);
    if (st != SPMV_OK)
        return st;
    p->vectors = (int)k;
    work->model_bytes = (double)p->nnz * (4 + (double)size) + 4 * ((double)p->rows + 1) +
                        (double)size * (double)k * (double)(p->rows + p->cols);
    work->products = (double)p->nnz * (double)k;
    work->result_bytes = p->nnz * size;
    state->a = work_keep(work, work_values(work, p->rows * k, STREAM_A, false));
    state->b = work_keep(work, work_values(work, p->cols * k, STREAM_B, false));
    if (state->a == NULL || state->b == NULL)
        return work_out_of_memory(work, "the dense matrices", (p->rows + p->cols) * k * size);
    st = work_array(work, state->a, p->rows * k * size, &p->w);
    if (st == SPMV_OK)
        st = work_array(work, state->b, p->cols * k * size, &p->x);
    if (st == SPMV_OK)
        st = work_array(work, NULL, work->result_bytes, (const void **)&p->y);
    work->result = p->y;
    return st;
}

static spmv_status open_sampled(struct work *work, const char *name, struct method *method)
{
    const struct state *const state = work->state;
    spmv_sddmm_options options;
    spmv_sddmm *made = NULL;
    spmv_csr pattern = state->matrix.sent;
    spmv_status st = work_open_only(work, name, method);
    if (st != SPMV_OK)
        return st;
    pattern.val = NULL;
    spmv_sddmm_options_init(&options, sizeof options);
    options.type = work->type;
    options.vectors = work->problem.vectors;
    st = spmv_sddmm_create(work->ctx, &pattern, &options, &made);
    if (st != SPMV_OK)
        return work_fail(work, work->ctx, st);
    method->figures.plan_bytes = spmv_sddmm_bytes(made);
    method->state = made;
    return SPMV_OK;
}

static void close_sampled(struct method *method)
{
    spmv_sddmm_destroy(method->state);
}

static int run(void *state)
{
    const struct method *const method = state;
    const struct peer_problem *const p = &method->work->problem;
    return spmv_sddmm_apply(method->state, p->w, p->x, p->y) == SPMV_OK ? 0 : -1;
}

/* Error of entry e in row i over its bound (k + 2) u sum |a| |b|, u: of the sums; of 16-bit types there is one
 * rounding more. */
static double ratio_of(const struct work *work, const void *host_result, int64_t i, int64_t e)
{
    const struct state *const state = work->state;
    const int64_t k = work->problem.vectors, j = state->matrix.host.col[e];
    long double exact = 0, all = 0;
    for (int64_t c = 0; c < k; c++) {
        const long double product = real_at(work->type, state->a, i * k + c) * real_at(work->type, state->b, j * k + c);
        exact += product;
        all += fabsl(product);
    }
    const long double error = fabsl(real_at(work->type, host_result, e) - exact);
    const struct real_limits sums = real_limits_of(type_of_sums(work->type)), last = real_limits_of(work->type);
    const long double rounding =
        type_is_half(work->type) ? (long double)last.roundoff * fabsl(exact) + (long double)last.subnormal : 0;
    const long double bound = 1.001L * (((long double)k + 2) * (long double)sums.roundoff * all + rounding);
    return error == 0 ? 0 : error / bound <= HUGE_VALL ? (double)(error / bound) : INFINITY;
}

static spmv_status check(struct work *work, const void *host_result, struct check *check)
{
    const spmv_csr *const a = &((const struct state *)work->state)->matrix.host;
    const int64_t *const row_ptr = a->row_ptr;
    const int64_t step = 1 + (int64_t)(work->products / CHECKED_PRODUCTS);
    struct check worst = {.ratio = 0, .at = -1};
#pragma omp parallel num_threads(spmv_context_threads(work->checker))
    {
        struct check mine = {.ratio = 0, .at = -1};
#pragma omp for schedule(dynamic, 1024) nowait
        for (int64_t i = 0; i < a->rows; i++)
            for (int64_t e = (row_ptr[i] + step - 1) / step * step; e < row_ptr[i + 1]; e += step) {
                const double ratio = ratio_of(work, host_result, i, e);
                if (!(ratio <= mine.ratio))
                    mine = (struct check){.ratio = ratio, .at = e};
            }
#pragma omp critical
        if (!(mine.ratio <= worst.ratio) || (mine.ratio == worst.ratio && mine.at < worst.at))
            worst = mine;
    }
    *check = worst;
    if (check->ratio <= 1)
        return SPMV_OK;
    snprintf(work->error, sizeof work->error, "sddmm: an entry is wrong");
    return SPMV_ERROR_CHECK;
}

const struct operation operation_sddmm = {
    .name = "sddmm",
    .formula = "Y = A B' at the entries of a pattern",
    .on_matrix = true,
    .peer_op = PEER_SDDMM,
    .methods = {work_no_names, open_sampled, run, close_sampled, NULL},
    .setup = setup,
    .check = check,
};

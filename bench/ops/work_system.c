/* The system of work_system.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "bench/ops/work_system.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST_ITERATIONS = 3000 };

/* The sum of a_ij x_j over row i, in f64; x NULL: ones. */
static double row_times(const spmv_csr *a, const void *x, int64_t i)
{
    const int64_t *const row_ptr = a->row_ptr;
    double sum = 0;
    for (int64_t k = row_ptr[i]; k < row_ptr[i + 1]; k++)
        sum += real_at(a->type, a->val, k) * (x != NULL ? real_at(a->type, x, a->col[k]) : 1);
    return sum;
}

static spmv_status make_b(struct work *work, struct work_system *system)
{
    const spmv_csr *const a = &system->matrix.host;
    const int64_t bytes = a->rows * (int64_t)spmv_type_size(work->type);
    void *const b = system->b = work_keep(work, malloc((size_t)bytes + 1));
    if (b == NULL)
        return work_out_of_memory(work, "the right-hand side", bytes);
#pragma omp parallel for num_threads(spmv_context_threads(work->checker)) schedule(static)
    for (int64_t i = 0; i < a->rows; i++)
        real_set(work->type, b, i, row_times(a, NULL, i));
    return work_array(work, b, bytes, &work->problem.b);
}

/* Rejects unsuitable matrices: peers do not check them, and their behaviour would be undefined. */
static spmv_status refuse_others(struct work *work, const struct work_system *system)
{
    const spmv_csr *const a = work->operand->matrix;
    spmv_statistics s;
    if (type_parts(work->type) > 1) {
        snprintf(work->error, sizeof work->error, "%s: only real types are measured", system->label);
        return SPMV_ERROR_TYPE;
    }
    if (a->rows != a->cols) {
        snprintf(work->error, sizeof work->error, "%s: the matrix has %lld rows and %lld columns", system->label,
                 (long long)a->rows, (long long)a->cols);
        return SPMV_ERROR_NOT_SQUARE;
    }
    if (!system->symmetric)
        return SPMV_OK;
    const spmv_status st = spmv_matrix_statistics(work->checker, a, &s, sizeof s);
    if (st != SPMV_OK)
        return work_fail(work, work->checker, st);
    if (s.symmetric)
        return SPMV_OK;
    snprintf(work->error, sizeof work->error, "%s: the matrix is not symmetric", system->label);
    return SPMV_ERROR_NOT_SYMMETRIC;
}

spmv_status work_system_make(struct work *work, struct work_system *system)
{
    struct peer_problem *const p = &work->problem;
    spmv_status st = refuse_others(work, system);
    if (st == SPMV_OK)
        st = work_send_matrix(work, work->operand->matrix, &system->matrix);
    if (st == SPMV_OK)
        st = make_b(work, system);
    p->solved = &system->solved;
    p->rtol = real_limits_of(work->type).tolerance;
    p->max_iterations = work->max_iterations > 0 ? work->max_iterations : MOST_ITERATIONS;
    work->result_bytes = p->rows * (int64_t)spmv_type_size(work->type);
    if (st == SPMV_OK)
        st = work_array(work, NULL, work->result_bytes, (const void **)&p->y);
    work->result = p->y;
    return st;
}

double work_system_matrix_bytes(const struct work *work)
{
    const struct peer_problem *const p = &work->problem;
    return (double)p->nnz * (4 + (double)spmv_type_size(work->type)) + 4 * ((double)p->rows + 1);
}

/* ---------------------------------------------------------------- checks */

/* Sums the squares of b - A x and of b in parts of PART rows, so that the order is the same for any
 * number of threads. */
enum { PART = 4096 };

static spmv_status true_residual(const struct work *work, const void *x, struct check *check)
{
    const struct work_system *const system = work->state;
    const spmv_csr *const a = &system->matrix.host;
    const int64_t parts = (a->rows + PART - 1) / PART;
    double *const sums = malloc((size_t)(2 * parts + 1) * sizeof *sums);
    double rr = 0, bb = 0;
    if (sums == NULL)
        return SPMV_ERROR_MEMORY;
#pragma omp parallel for num_threads(spmv_context_threads(work->checker)) schedule(static)
    for (int64_t part = 0; part < parts; part++) {
        sums[2 * part] = sums[2 * part + 1] = 0;
        for (int64_t i = part * PART; i < a->rows && i < (part + 1) * PART; i++) {
            const double b = real_at(work->type, system->b, i), r = b - row_times(a, x, i);
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

int work_system_solved(struct method *method, spmv_status status, int64_t iterations, double residual, double norm_b)
{
    *method->work->problem.solved =
        (struct peer_solved){.iterations = iterations, .residual = norm_b > 0 ? residual / norm_b : 0};
    method->failed = status;
    return status == SPMV_OK || status == SPMV_ERROR_ITERATIONS ? 0 : -1;
}

/* Rounding separates the residual of the recurrence from the true one, but little at these
 * tolerances: the check allows a small factor. A solve that stops before both the tolerance and the
 * limit is wrong. */
spmv_status work_system_check(struct work *work, const void *host_result, struct check *check)
{
    const struct work_system *const system = work->state;
    const struct peer_solved *const solved = &system->solved;
    const double rtol = work->problem.rtol;
    *check = (struct check){.at = -1};
    if (true_residual(work, host_result, check) != SPMV_OK)
        return work_out_of_memory(work, "the true residual's sums", work->problem.rows / PART * 16);
    check->ratio = check->true_residual / (system->factor * fmax(rtol, solved->residual));
    if (solved->iterations < 0 || solved->iterations > work->problem.max_iterations ||
        (!(solved->residual <= rtol) && solved->iterations < work->problem.max_iterations))
        check->ratio = INFINITY;
    if (check->ratio <= 1)
        return SPMV_OK;
    snprintf(work->error, sizeof work->error, "%s: true residual %.3g of ||b||, reported %.3g after %lld iterations",
             work->operation->name, check->true_residual, solved->residual, (long long)solved->iterations);
    return SPMV_ERROR_CHECK;
}

/* No flushed runs, because an iteration uses what the previous one left in the caches. */
void work_system_adapt(struct measure_options *options)
{
    options->flushed_rounds = 0;
    options->long_seconds = LONG_RUN_SECONDS;
}

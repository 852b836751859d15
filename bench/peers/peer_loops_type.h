/* The loops of peer_loops.c for one type of the values, VALUE; NAME makes the functions' names. Included once a type.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
/* No include guard: included once a type. */

static void NAME(rows_static)(const struct peer_problem *problem)
{
    const int32_t *const row_ptr = problem->row_ptr, *const col = problem->col;
    const VALUE *const val = problem->val, *const x = problem->x;
    VALUE *const y = problem->y;
    const int64_t rows = problem->rows;
#pragma omp parallel for schedule(static) num_threads(problem->threads)
    for (int64_t i = 0; i < rows; i++) {
        VALUE sum = 0;
        for (int32_t k = row_ptr[i]; k < row_ptr[i + 1]; k++)
            sum += val[k] * x[col[k]];
        y[i] = sum;
    }
}

static void NAME(rows_guided)(const struct peer_problem *problem)
{
    const int32_t *const row_ptr = problem->row_ptr, *const col = problem->col;
    const VALUE *const val = problem->val, *const x = problem->x;
    VALUE *const y = problem->y;
    const int64_t rows = problem->rows;
#pragma omp parallel for schedule(guided) num_threads(problem->threads)
    for (int64_t i = 0; i < rows; i++) {
        VALUE sum = 0;
        for (int32_t k = row_ptr[i]; k < row_ptr[i + 1]; k++)
            sum += val[k] * x[col[k]];
        y[i] = sum;
    }
}

/* A row that several parts share: the last of them sets y, the earlier ones leave their share as a carry. */
static void NAME(merge)(const struct peer_problem *problem, struct part *parts)
{
    const int32_t *const row_ptr = problem->row_ptr, *const col = problem->col;
    const VALUE *const val = problem->val, *const x = problem->x;
    VALUE *const y = problem->y;
    const int count = problem->threads;
#pragma omp parallel for schedule(static, 1) num_threads(count)
    for (int p = 0; p < count; p++) {
        const struct point end = parts[p].end;
        int64_t k = parts[p].begin.k;
        for (int64_t i = parts[p].begin.row; i < end.row; i++) {
            VALUE sum = 0;
            for (; k < row_ptr[i + 1]; k++)
                sum += val[k] * x[col[k]];
            y[i] = sum;
        }
        VALUE sum = 0;
        for (; k < end.k; k++)
            sum += val[k] * x[col[k]];
        parts[p].carry = (double)sum;
    }
    for (int p = 0; p < count; p++)
        if (parts[p].end.row < problem->rows)
            y[parts[p].end.row] += (VALUE)parts[p].carry;
}

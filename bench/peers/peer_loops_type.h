/* The loops of peer_loops.c for one type of values, VALUE. NAME forms the names of the functions.
 * Included once per type.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
/* No include guard: included once per type. */

/* The sum over entries k to end - 1. */
static inline VALUE NAME(sum)(const int32_t *col, const VALUE *val, const VALUE *x, int64_t k, int64_t end)
{
    VALUE sum = 0;
    for (; k < end; k++)
        sum += val[k] * x[col[k]];
    return sum;
}

static void NAME(rows)(const struct peer_problem *problem, bool guided)
{
    const int32_t *const row_ptr = problem->row_ptr, *const col = problem->col;
    const VALUE *const val = problem->val, *const x = problem->x;
    VALUE *const y = problem->y;
    const int64_t rows = problem->rows;
    if (guided) {
#pragma omp parallel for schedule(guided) num_threads(problem->threads)
        for (int64_t i = 0; i < rows; i++)
            y[i] = NAME(sum)(col, val, x, row_ptr[i], row_ptr[i + 1]);
    } else {
#pragma omp parallel for schedule(static) num_threads(problem->threads)
        for (int64_t i = 0; i < rows; i++)
            y[i] = NAME(sum)(col, val, x, row_ptr[i], row_ptr[i + 1]);
    }
}

/* If several threads share a row, the last of them sets y, and the others leave their partial sums
 * as carries. */
static void NAME(merge)(const struct peer_problem *problem, struct share *shares)
{
    const int32_t *const row_ptr = problem->row_ptr, *const col = problem->col;
    const VALUE *const val = problem->val, *const x = problem->x;
    VALUE *const y = problem->y;
    const int count = problem->threads;
#pragma omp parallel for schedule(static, 1) num_threads(count)
    for (int p = 0; p < count; p++) {
        const struct point end = shares[p].end;
        int64_t k = shares[p].begin.k;
        for (int64_t i = shares[p].begin.row; i < end.row; i++) {
            y[i] = NAME(sum)(col, val, x, k, row_ptr[i + 1]);
            k = row_ptr[i + 1];
        }
        shares[p].carry = (double)NAME(sum)(col, val, x, k, end.k);
    }
    for (int p = 0; p < count; p++)
        if (shares[p].end.row < problem->rows)
            y[shares[p].end.row] += (VALUE)shares[p].carry;
}

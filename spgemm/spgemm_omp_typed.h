/* The numeric phase of spgemm_omp.c for one type (each_floating.h). a or b is NULL for a pattern.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "spgemm/floating_typed.h"

/* A row of C with n entries whose columns start at col[0]; sums has an element for each column from
 * there on. */
static inline void TYPED(row_over_span)(const struct spmv_spgemm_plan *plan, int64_t i, const T *a, const T *b,
                                        const int32_t *col, int64_t n, T *restrict sums, T *restrict c)
{
    const int32_t from = col[0];
    const int32_t *const b_col = plan->b.col;
    for (int64_t e = 0; e < n; e++)
        sums[col[e] - from] = TYPED(neutral)();
    const int64_t end = row_first(&plan->a, i + 1);
    for (int64_t k = row_first(&plan->a, i); k < end; k++) {
        const int64_t row = plan->a.col[k], last = row_first(&plan->b, row + 1);
        for (int64_t l = row_first(&plan->b, row); l < last; l++) {
            T *const sum = &sums[b_col[l] - from];
            *sum = TYPED(plus)(*sum, TYPED(term)(a, k, b, l));
        }
    }
    for (int64_t e = 0; e < n; e++)
        c[e] = sums[col[e] - from];
}

/* A row of A with one entry: a multiple of a row of B. */
static inline void TYPED(row_of_one)(const struct spmv_spgemm_plan *plan, int64_t k, const T *a, const T *b, int64_t n,
                                     T *restrict c)
{
    const int64_t first = row_first(&plan->b, plan->a.col[k]);
    for (int64_t e = 0; e < n; e++)
        c[e] = TYPED(term)(a, k, b, first + e);
}

/* The rows begin <= i < end. */
static inline void TYPED(rows)(const struct spmv_spgemm_plan *plan, const T *a, const T *b, T *values, char *memory,
                               int64_t begin, int64_t end)
{
    for (int64_t i = begin; i < end; i++) {
        const int64_t first = plan->row_ptr[i], n = plan->row_ptr[i + 1] - first;
        const int64_t k = row_first(&plan->a, i);
        const int32_t *const col = plan->col + first;
        if (n == 0)
            continue;
        if (row_first(&plan->a, i + 1) - k == 1)
            TYPED(row_of_one)(plan, k, a, b, n, values + first);
        else
            TYPED(row_over_span)(plan, i, a, b, col, n, (T *)(void *)memory, values + first);
    }
}

static void TYPED(numeric)(const struct spmv_spgemm_plan *plan, const void *a, const void *b, void *c)
{
    const struct rows_state *const state = plan->state;
#pragma omp parallel for num_threads(state->threads) schedule(dynamic, 1)
    for (int64_t task = 0; task < state->tasks.n; task++) {
        char *const memory = state->memory + omp_get_thread_num() * state->room;
        const int64_t begin = state->tasks.first_row[task], end = state->tasks.first_row[task + 1];
        /* With NULL as a constant the compiler leaves the factor out of the loops. */
        if (a != NULL && b != NULL)
            TYPED(rows)(plan, a, b, c, memory, begin, end);
        else if (a != NULL)
            TYPED(rows)(plan, a, NULL, c, memory, begin, end);
        else
            TYPED(rows)(plan, NULL, b, c, memory, begin, end);
    }
}

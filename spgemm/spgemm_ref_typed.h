/* The typed part of spgemm_ref.c (each_floating.h).
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "spgemm/floating_typed.h"

static spmv_status TYPED(numeric)(struct spmv_spgemm_plan *plan, const void *a_values, const void *b_values,
                                  void *c_values)
{
    const spmv_csr *const a = &plan->a, *const b = &plan->b;
    T *const values = c_values;
    for (int64_t i = 0; i < a->rows; i++) {
        const int64_t first = plan->row_ptr[i], n = plan->row_ptr[i + 1] - first;
        T *const c = values + first;
        for (int64_t e = 0; e < n; e++)
            c[e] = TYPED(neutral)();
        for (int64_t k = row_first(a, i); k < row_first(a, i + 1); k++)
            for (int64_t l = row_first(b, a->col[k]); l < row_first(b, a->col[k] + 1); l++) {
                const int64_t e = first_column_from(plan->col + first, 0, n, b->col[l]);
                c[e] = TYPED(plus)(c[e], TYPED(term)(a_values, k, b_values, l));
            }
    }
    return SPMV_OK;
}

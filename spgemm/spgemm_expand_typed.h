/* The typed part of spgemm_expand_sums.c (each_floating.h).
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "spgemm/floating_typed.h"

static void TYPED(expand_sums)(spmv_context *ctx, const struct spgemm_sums *s)
{
    const T *const a = s->a_values, *const b = s->b_values;
    T *const c = s->c_values;
#pragma omp parallel for num_threads(host_team(ctx, s->products)) schedule(static)
    for (int64_t e = 0; e < s->entries; e++) {
        const int64_t end = e + 1 < s->entries ? s->start[e + 1] : s->products;
        T sum = TYPED(neutral)();
        for (int64_t p = s->start[e]; p < end; p++) {
            const int64_t q = s->order[p];
            sum = TYPED(plus)(sum, TYPED(term)(a, s->a[q], b, s->b[q]));
        }
        c[e] = sum;
    }
}

/* Method "definition" of the backend ref: y_i = alpha sum_j a_ij x_j + beta y_i, a row after the other, in the order in
 * which the entries are stored, every product and sum in long double, rounded once at the end. What all else is tested
 * against.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "plan_internal.h"

#define DEFINE(name, T)                                                                                                \
    static void definition_##name(const spmv_csr *a, long double alpha, const T *x, long double beta, bool beta_zero,  \
                                  T *y)                                                                                \
    {                                                                                                                  \
        for (int64_t i = 0; i < a->rows; i++) {                                                                        \
            long double sum = 0;                                                                                       \
            for (int64_t k = offset_at(a->row_ptr, a->row_ptr_bits, i);                                                \
                 k < offset_at(a->row_ptr, a->row_ptr_bits, i + 1); k++)                                               \
                sum += (a->val != NULL ? (long double)((const T *)a->val)[k] : 1) * (long double)x[a->col[k]];         \
            y[i] = (T)(beta_zero ? alpha * sum : alpha * sum + beta * (long double)y[i]);                              \
        }                                                                                                              \
    }
DEFINE(f32, float)
DEFINE(f64, double)
#undef DEFINE

spmv_status definition_ref_apply(const spmv_plan *plan, const void *alpha, const void *x, const void *beta,
                                 bool beta_zero, void *y)
{
    if (plan->type == SPMV_F32)
        definition_f32(&plan->a, *(const float *)alpha, x, *(const float *)beta, beta_zero, y);
    else
        definition_f64(&plan->a, (long double)*(const double *)alpha, x, (long double)*(const double *)beta, beta_zero,
                       y);
    return SPMV_OK;
}

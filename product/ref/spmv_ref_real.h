/* The definition of a product of real numbers (spmv_ref.c), included once for each pair of types
 * (each_plan_type.h).
 *
 * SPDX-License-Identifier: BSD-3-Clause */
static void TYPED(definition)(const spmv_plan *plan, int v, const struct plan_product *p)
{
    const spmv_csr *a = &plan->a;
    const T alpha = *(const T *)p->alpha, *x = p->x;
    T *const y = p->y;
    const STORED *val = a->val;
    for (int64_t i = 0; i < a->rows; i++) {
        long double sum = 0;
        for (int64_t k = offset_at(a->row_ptr, a->row_ptr_bits, i); k < offset_at(a->row_ptr, a->row_ptr_bits, i + 1);
             k++)
            sum += (val != NULL ? (long double)val[k] : 1) * (long double)x[a->col[k] * plan->x_stride + v];
        sum *= (long double)alpha;
        T *out = &y[i * plan->y_stride + v];
        *out = (T)(p->beta_zero ? sum : sum + (long double)*(const T *)p->beta * (long double)*out);
    }
}

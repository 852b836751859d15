/* The typed part of wide_residual.c, included once for each type of vectors (each_floating.h).
 *
 * SPDX-License-Identifier: BSD-3-Clause */

/* Rows first ... last - 1 of r. */
static void TYPED(rows)(const spmv_csr *a, bool narrow, const void *b_array, const void *x_array, void *r_array,
                        int64_t first, int64_t last)
{
    const T *const b = b_array, *const x = x_array;
    T *const r = r_array;
    for (int64_t i = first; i < last; i++) {
        const int64_t end = row_first(a, i + 1);
#if IS_COMPLEX
        struct wide_sum re = {(double)b[i].re, 0}, im = {(double)b[i].im, 0};
        for (int64_t k = row_first(a, i); k < end; k++) {
            const T value = a->val != NULL ? ((const T *)a->val)[k] : (T){1, 0}, of = x[a->col[k]];
            wide_add_product(&re, -(double)value.re, (double)of.re);
            wide_add_product(&re, (double)value.im, (double)of.im);
            wide_add_product(&im, -(double)value.re, (double)of.im);
            wide_add_product(&im, -(double)value.im, (double)of.re);
        }
        r[i].re = (PART)wide_value(re);
        r[i].im = (PART)wide_value(im);
        (void)narrow;
#else
        struct wide_sum sum = {(double)b[i], 0};
        for (int64_t k = row_first(a, i); k < end; k++) {
            const double value = a->val == NULL ? 1
                                 : narrow       ? (double)((const float *)a->val)[k]
                                                : (double)((const T *)a->val)[k];
            wide_add_product(&sum, -value, (double)x[a->col[k]]);
        }
        r[i] = (T)wide_value(sum);
#endif
    }
}

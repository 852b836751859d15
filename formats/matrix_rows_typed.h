/* The typed part of matrix_rows.c, included once per type of values (each_value.h).
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "formats/coo/value_sum_typed.h"

#if IS_COMPLEX
#define NUMBER(n) ((T){n, 0})
#else
#define NUMBER(n) ((T)(n))
#endif

static void TYPED(diagonal)(spmv_context *ctx, const spmv_csr *a, void *to)
{
    T *const diagonal = to;
    const T *const val = a->val;
#pragma omp parallel for num_threads(host_team(ctx, a->nnz)) schedule(dynamic, 512)
    for (int64_t i = 0; i < min_i64(a->rows, a->cols); i++) {
        const int64_t end = row_first(a, i + 1);
        int64_t k = row_first(a, i);
        while (k < end && a->col[k] != i)
            k++;
        diagonal[i] = k == end ? NUMBER(0) : val != NULL ? val[k] : NUMBER(1);
    }
}

static void TYPED(row_sums)(spmv_context *ctx, const spmv_csr *a, void *to)
{
    T *const sums = to;
    const T *const val = a->val;
#pragma omp parallel for num_threads(host_team(ctx, a->nnz)) schedule(dynamic, 512)
    for (int64_t i = 0; i < a->rows; i++) {
        const int64_t begin = row_first(a, i), end = row_first(a, i + 1);
        T sum = begin == end || val != NULL ? NUMBER(0) : NUMBER((end - begin));
        if (val != NULL && begin < end)
            sum = val[begin];
        for (int64_t k = begin + 1; k < end && val != NULL; k++)
            sum = TYPED(sum)(sum, val[k]);
        sums[i] = sum;
    }
}

#undef NUMBER

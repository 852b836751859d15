/* The rows of spgemm_omp_at_once.c for one type (each_floating.h). a or b is NULL for a pattern.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "floating_typed.h"

/* Writes the columns of the row of C of the entries begin <= k < end of A, in the order of their first
 * products, and returns their number. bits: those of the offsets of B. */
static inline int64_t TYPED(add_products)(const struct spmv_multiply_plan *plan, int64_t begin, int64_t end, int bits,
                                          const T *a, const T *b, uint8_t *restrict found, T *restrict sums,
                                          int32_t *restrict col)
{
    const int32_t *const a_col = plan->a.col, *const b_col = plan->b.col;
    const void *const b_row_ptr = plan->b.row_ptr;
    int64_t n = 0;
    for (int64_t k = begin; k < end; k++) {
        const int64_t last = offset_at(b_row_ptr, bits, a_col[k] + 1);
        const int64_t later = offset_at(b_row_ptr, bits, a_col[min_i64(k + AHEAD, plan->a.nnz - 1)]);
        __builtin_prefetch(&b_col[later]);
        if (b != NULL)
            __builtin_prefetch(&b[later]);
        for (int64_t l = offset_at(b_row_ptr, bits, a_col[k]); l < last; l++) {
            const int32_t j = b_col[l];
            const T term = TYPED(term)(a, k, b, l);
            if (found[j] != 0) {
                sums[j] = TYPED(plus)(sums[j], term);
            } else {
                found[j] = 1;
                sums[j] = term;
                col[n++] = j;
            }
        }
    }
    return n;
}

/* The row of C of these entries of A. Returns the number of its entries. */
static inline int64_t TYPED(row_at_once)(const struct spmv_multiply_plan *plan, int64_t begin, int64_t end, int bits,
                                         const T *a, const T *b, const struct worker *w, int32_t *restrict col,
                                         T *restrict val)
{
    uint8_t *const restrict found = w->found;
    T *const restrict sums = w->sums;
    if (end - begin == 1) { /* a multiple of a row of B */
        const int64_t row = plan->a.col[begin], first = row_first(&plan->b, row);
        const int64_t n = row_first(&plan->b, row + 1) - first;
        for (int64_t e = 0; e < n; e++) {
            col[e] = plan->b.col[first + e];
            val[e] = TYPED(term)(a, begin, b, first + e);
        }
        return n;
    }
    const int64_t n = TYPED(add_products)(plan, begin, end, bits, a, b, found, sums, col);
    sort_columns(col, n, marks_in(w->marks, plan->b.cols));
    for (int64_t e = 0; e < n; e++) {
        val[e] = sums[col[e]];
        found[col[e]] = 0;
    }
    return n;
}

/* The rows of a chunk. */
static inline int64_t TYPED(rows_at_once)(const struct at_once *s, int64_t c, int bits, const T *a, const T *b,
                                          const struct worker *w, int32_t *col, T *val)
{
    const struct spmv_multiply_plan *const plan = s->plan;
    int64_t n = 0;
    for (int64_t i = s->chunks.first_row[c]; i < s->chunks.first_row[c + 1]; i++) {
        const int64_t length = TYPED(row_at_once)(plan, row_first(&plan->a, i), row_first(&plan->a, i + 1), bits, a, b,
                                                  w, col + n, val + n);
        plan->row_ptr[i] = length;
        n += length;
    }
    return n;
}

/* With NULL and the bits as constants the compiler leaves factors and branches out of the loops. */
static inline int64_t TYPED(values_at_once)(const struct at_once *s, int64_t c, int bits, const struct worker *w,
                                            int32_t *col, T *val)
{
    if (s->a != NULL && s->b != NULL)
        return TYPED(rows_at_once)(s, c, bits, s->a, s->b, w, col, val);
    if (s->a != NULL)
        return TYPED(rows_at_once)(s, c, bits, s->a, NULL, w, col, val);
    return TYPED(rows_at_once)(s, c, bits, NULL, s->b, w, col, val);
}

/* The rows of chunk c. Writes their entries and lengths, and returns the number of entries. */
static int64_t TYPED(chunk_at_once)(const struct at_once *s, int64_t c, const struct worker *w, int32_t *col, void *val)
{
    if (s->plan->b.row_ptr_bits == 32)
        return TYPED(values_at_once)(s, c, 32, w, col, val);
    return TYPED(values_at_once)(s, c, 64, w, col, val);
}

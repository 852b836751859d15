/* The rows of spgemm_omp_at_once.c for one type (each_floating.h). a or b is NULL for a pattern.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "spgemm/floating_typed.h"

#undef ALWAYS
#define ALWAYS __attribute__((always_inline))

/* All sums become -0. */
static void TYPED(neutral_sums)(void *sums, int64_t n)
{
    for (int64_t j = 0; j < n; j++)
        ((T *)sums)[j] = TYPED(neutral)();
}

/* Adds the products of the entries begin <= k < end of A to the sums of their columns. NEW_LISTED: writes
 * the columns in the order of their first products, and returns their number. Otherwise sums start from
 * -0. NEW_MARKED: sets the bytes of the columns. NEW_SEEN: returns 1 if a column without a byte has a
 * product, else 0. bits: those of the offsets of B. */
static inline ALWAYS int64_t TYPED(add_products)(const struct spmv_spgemm_plan *plan, int64_t begin, int64_t end,
                                                 int bits, enum new_columns mode, const T *a, const T *b,
                                                 uint8_t *restrict found, T *restrict sums, int32_t *restrict col)
{
    const int32_t *const a_col = plan->a.col, *const b_col = plan->b.col;
    const void *const b_row_ptr = plan->b.row_ptr;
    unsigned known = 1;
    int64_t n = 0;
    for (int64_t k = begin; k < end; k++) {
        const int64_t last = offset_at(b_row_ptr, bits, a_col[k] + 1);
        const int64_t later = offset_at(b_row_ptr, bits, a_col[min_i64(k + AHEAD, plan->a.nnz - 1)]);
        const T factor = TYPED(term)(a, k, NULL, 0);
        __builtin_prefetch(&b_col[later]);
        if (b != NULL)
            __builtin_prefetch(&b[later]);
        for (int64_t l = offset_at(b_row_ptr, bits, a_col[k]); l < last; l++) {
            const int32_t j = b_col[l];
            const T term = TYPED(term)(a != NULL ? &factor : NULL, 0, b, l);
            if (mode == NEW_LISTED && __builtin_expect(found[j] == 0, 0)) {
                found[j] = 1;
                sums[j] = term;
                col[n++] = j;
                continue;
            }
            sums[j] = TYPED(plus)(sums[j], term);
            if (mode == NEW_MARKED)
                found[j] = 1;
            else if (mode == NEW_SEEN)
                known &= found[j];
        }
    }
    return mode == NEW_SEEN ? !known : n;
}

/* Writes the entries of a row whose sums are ready and whose columns have a byte in found. Returns their
 * number. */
static inline int64_t TYPED(take_row)(uint8_t *restrict found, T *restrict sums, struct span span,
                                      int32_t *restrict col, T *restrict val)
{
    int64_t n = 0;
    for (int64_t from = span.first / BLOCK * BLOCK; from <= span.last; from += BLOCK)
        for (uint64_t there = take_found(found + from); there != 0; n++) {
            const int64_t j = from + take_bit(&there);
            col[n] = (int32_t)j;
            val[n] = sums[j];
            sums[j] = TYPED(neutral)();
        }
    return n;
}

/* Stores the sums of n columns, and clears what belongs to the row. */
static inline ALWAYS void TYPED(take_listed)(uint8_t *restrict found, T *restrict sums, int64_t n,
                                             const int32_t *restrict col, T *restrict val)
{
    for (int64_t e = 0; e < n; e++) {
        val[e] = sums[col[e]];
        sums[col[e]] = TYPED(neutral)();
        found[col[e]] = 0;
    }
}

/* Whether each column of a guess surely has a product: a sum of none is -0, other sums seldom are. */
static inline ALWAYS bool TYPED(guess_holds)(const struct guess *guess, const T *restrict sums)
{
    const T none = TYPED(neutral)();
    bool holds = true;
    for (int64_t e = 0; e < guess->n; e++)
        holds = holds && memcmp(&sums[guess->col[e] + guess->shift], &none, sizeof none) != 0;
    return holds;
}

/* Row i of C with a list of its columns. */
static inline ALWAYS int64_t TYPED(row_listed)(const struct spmv_spgemm_plan *plan, int64_t begin, int64_t end,
                                               int bits, const T *a, const T *b, const struct worker *w,
                                               struct guess *guess, int32_t *restrict col, T *restrict val)
{
    uint8_t *const restrict found = w->found;
    T *const restrict sums = w->sums;
    const bool guessed = w->neutral && make_guess(guess, plan, begin, end, found);
    int64_t n = guessed ? TYPED(add_products)(plan, begin, end, bits, NEW_SEEN, a, b, found, sums, col)
                        : TYPED(add_products)(plan, begin, end, bits, NEW_LISTED, a, b, found, sums, col);
    if (guessed && n == 0 && TYPED(guess_holds)(guess, sums)) {
        n = guess->n;
        for (int64_t e = 0; e < n; e++)
            col[e] = guess->col[e] + (int32_t)guess->shift;
    } else {
        if (guessed)
            n = list_again(plan, begin, end, guess, found, col);
        sort_columns(col, n, w->marks, plan->b.cols);
        judge_guess(guess, col, n);
    }
    guess->col = col;
    guess->n = n;
    TYPED(take_listed)(found, sums, n, col, val);
    return n;
}

/* Row i of C. Returns the number of its entries. */
static inline ALWAYS int64_t TYPED(row_at_once)(const struct spmv_spgemm_plan *plan, int64_t i, int bits, const T *a,
                                                const T *b, const struct worker *w, struct guess *guess,
                                                int32_t *restrict col, T *restrict val)
{
    const int64_t begin = row_first(&plan->a, i), end = row_first(&plan->a, i + 1);
    struct span span;
    if (end - begin == 1) { /* a multiple of a row of B */
        const int64_t row = plan->a.col[begin], first = row_first(&plan->b, row);
        const int64_t n = row_first(&plan->b, row + 1) - first;
        for (int64_t e = 0; e < n; e++) {
            col[e] = plan->b.col[first + e];
            val[e] = TYPED(term)(a, begin, b, first + e);
        }
        return n;
    }
    if (w->neutral && is_dense(plan, i, &span)) {
        TYPED(add_products)(plan, begin, end, bits, NEW_MARKED, a, b, w->found, w->sums, col);
        return TYPED(take_row)(w->found, w->sums, span, col, val);
    }
    return TYPED(row_listed)(plan, begin, end, bits, a, b, w, guess, col, val);
}

/* The rows of a task. */
static inline ALWAYS int64_t TYPED(rows_at_once)(const struct at_once *s, int64_t c, int bits, const T *a, const T *b,
                                                 const struct worker *w, int32_t *col, T *val)
{
    const struct spmv_spgemm_plan *const plan = s->plan;
    struct guess guess = {.n = 0};
    int64_t n = 0;
    for (int64_t i = s->tasks.first_row[c]; i < s->tasks.first_row[c + 1]; i++) {
        const int64_t length = TYPED(row_at_once)(plan, i, bits, a, b, w, &guess, col + n, val + n);
        plan->row_ptr[i] = length;
        n += length;
    }
    return n;
}

/* With NULL and the bits as constants the compiler leaves factors and branches out of the loops. */
static inline ALWAYS int64_t TYPED(values_at_once)(const struct at_once *s, int64_t c, int bits, const struct worker *w,
                                                   int32_t *col, T *val)
{
    if (s->a != NULL && s->b != NULL)
        return TYPED(rows_at_once)(s, c, bits, s->a, s->b, w, col, val);
    if (s->a != NULL)
        return TYPED(rows_at_once)(s, c, bits, s->a, NULL, w, col, val);
    return TYPED(rows_at_once)(s, c, bits, NULL, s->b, w, col, val);
}

/* The rows of task c. Writes their entries and lengths, and returns the number of entries. */
static int64_t TYPED(task_at_once)(const struct at_once *s, int64_t c, const struct worker *w, int32_t *col, void *val)
{
    if (s->plan->b.row_ptr_bits == 32)
        return TYPED(values_at_once)(s, c, 32, w, col, val);
    return TYPED(values_at_once)(s, c, 64, w, col, val);
}

/* Rows of the matrix, and elements of vectors, as the caller gives them (amg_given.c, amg_cycle.c).
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef AMG_GIVEN_ROWS_H
#define AMG_GIVEN_ROWS_H

#include "solvers/amg/amg_common.h"

/* A matrix that may be wrong. */
struct amg_given {
    struct amg_csr a; /* without values */
    int64_t n, nnz;
    const void *values; /* of a, or NULL: ones */
    spmv_type type;     /* of them */
    int sign;           /* 1 or -1: of the diagonal */
    int only_order;     /* check: the order of the columns alone */
    int64_t *verdict;   /* see check and alone */
};

struct amg_conversion {
    const void *source; /* or NULL: ones */
    spmv_type type;     /* of source */
    double factor;
    void *to; /* T */
};

/* A valid matrix with ascending columns. */
struct amg_symmetry {
    struct amg_csr a;
    struct amg_csr t;     /* A'; without arrays: rows of A are looked up */
    const void *diagonal; /* T: of a */
    int64_t *differs;     /* see symmetry */
};

/* |a_ij - a_ji| up to this, relative to sqrt(a_ii a_jj), is taken for rounding errors. */
#define AMG_ROUNDING 0x1p-20

/* A vector on its way to the hierarchy's type (narrow), or back (widen). The vectors have the other real
 * type. */
struct amg_scaling {
    const void *largest; /* f64: max |r_i|; NULL: vectors of f32 */
    int squared;         /* largest is the square of a number that takes its place */
    double factor;       /* narrow: is set. widen: the scale of the hierarchy */
    const void *from;
    void *to;
};

/* The power of two near the largest element. */
AMG_ROW double amg_size_of(const struct amg_scaling *s)
{
    const double largest = *(const double *)s->largest;
    return amg_power_of_two(s->squared ? sqrt(largest) : largest);
}

/* The factors of narrow and widen. Vectors of f32 fit f64 as they are. */
AMG_ROW double amg_narrowing(const struct amg_scaling *s)
{
    return s->largest != (const void *)0 ? 1 / amg_size_of(s) : 1;
}

AMG_ROW double amg_widening(const struct amg_scaling *s)
{
    return s->largest != (const void *)0 ? amg_size_of(s) * s->factor : s->factor;
}

#endif

#ifdef TYPED

/* verdict_i = INT64_MAX for a valid row, else 4 i + what is wrong: 0 offsets or a column, 1 the
 * diagonal, 2 columns that do not ascend. Rows are checked before anything else is read of them. */
AMG_ROW void TYPED(amg_check)(const struct amg_given *s, int64_t i)
{
    const int64_t begin = amg_offset(&s->a, i), end = amg_offset(&s->a, i + 1);
    s->verdict[i] = 4 * i;
    if (begin < 0 || end < begin || end > s->nnz || (i == 0 && begin != 0) || (i == s->n - 1 && end != s->nnz))
        return;
    double diagonal = 0;
    int sorted = 1;
    for (int64_t k = begin; k < end; k++) {
        const int32_t column = s->a.col[k];
        if (column < 0 || column >= s->n)
            return;
        if (k > begin && column <= s->a.col[k - 1])
            sorted = 0;
        if (column == i)
            diagonal += s->sign * amg_source(s->type, s->values, k);
    }
    if (s->only_order)
        s->verdict[i] = sorted ? INT64_MAX : 4 * i + 2;
    else
        s->verdict[i] = !(diagonal > 0 && diagonal <= 0x1.fffffffffffffp1023) ? 4 * i + 1
                        : !sorted                                             ? 4 * i + 2
                                                                              : INT64_MAX;
}

/* Entry (i, j); 0 if there is none. */
AMG_ROW T TYPED(amg_entry)(const struct amg_csr *a, int64_t i, int64_t j)
{
    const int64_t end = amg_offset(a, i + 1), at = first_column_from(a->col, amg_offset(a, i), end, j);
    return at < end && a->col[at] == j ? ((const T *)a->val)[at] : 0;
}

/* differs_i: whether an entry a_ij is not a_ji. */
AMG_ROW void TYPED(amg_symmetry)(const struct amg_symmetry *s, int64_t i)
{
    const T *diagonal = (const T *)s->diagonal;
    const int there = s->t.col != (const int32_t *)0;
    const int64_t end = amg_offset(&s->a, i + 1);
    int64_t differs = 0;
    for (int64_t k = amg_offset(&s->a, i); k < end && !differs; k++) {
        const int64_t j = s->a.col[k];
        const T other = there ? TYPED(amg_entry)(&s->t, i, j) : TYPED(amg_entry)(&s->a, j, i);
        const double difference = (double)((const T *)s->a.val)[k] - (double)other;
        if (difference != 0)
            differs = difference * difference > AMG_ROUNDING * AMG_ROUNDING * (double)diagonal[i] * (double)diagonal[j];
    }
    s->differs[i] = differs;
}

/* verdict_i = 1 if row i has no entry but 0 beside the diagonal, as a row of a Dirichlet value,
 * else 0. */
AMG_ROW void TYPED(amg_alone)(const struct amg_given *s, int64_t i)
{
    const int64_t begin = amg_offset(&s->a, i), end = amg_offset(&s->a, i + 1);
    s->verdict[i] = 0;
    if (begin < 0 || end < begin || end > s->nnz)
        return;
    for (int64_t k = begin; k < end; k++)
        if (s->a.col[k] != i && amg_source(s->type, s->values, k) != 0)
            return;
    s->verdict[i] = 1;
}

/* to_k = source_k times the factor */
AMG_ROW void TYPED(amg_convert)(const struct amg_conversion *s, int64_t k)
{
    ((T *)s->to)[k] = (T)(amg_source(s->type, s->source, k) * s->factor);
}

/* to_i = from_i in T, times the factor amg_narrowing (on cuda: scale_kernel). */
AMG_ROW void TYPED(amg_narrow)(const struct amg_scaling *s, int64_t i)
{
    ((T *)s->to)[i] = (T)(amg_source(sizeof(T) == sizeof(float) ? SPMV_F64 : SPMV_F32, s->from, i) * s->factor);
}

/* The same backwards, times the factor amg_widening. */
AMG_ROW void TYPED(amg_widen)(const struct amg_scaling *s, int64_t i)
{
    const double value = (double)((const T *)s->from)[i] * s->factor;
    if (sizeof(T) == sizeof(float))
        ((double *)s->to)[i] = value;
    else
        ((float *)s->to)[i] = (float)value;
}

#endif

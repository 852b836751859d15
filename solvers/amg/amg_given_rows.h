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
    int64_t *verdict;   /* see check and alone */
};

struct amg_conversion {
    const void *source; /* or NULL: ones */
    spmv_type type;     /* of source */
    double factor;
    void *to; /* T */
};

/* A vector on its way to the hierarchy's type (narrow), or back (widen). The vectors have the other real
 * type. */
struct amg_scaling {
    const void *largest; /* f64: max |r_i|; NULL: vectors of f32 */
    double factor;       /* narrow: is set. widen: the scale of the hierarchy */
    const void *from;
    void *to;
};

/* The factors of narrow and widen. Vectors of f32 fit f64 as they are. */
AMG_ROW double amg_narrowing(const struct amg_scaling *s)
{
    return s->largest != (const void *)0 ? 1 / amg_power_of_two(*(const double *)s->largest) : 1;
}

AMG_ROW double amg_widening(const struct amg_scaling *s)
{
    return s->largest != (const void *)0 ? amg_power_of_two(*(const double *)s->largest) * s->factor : s->factor;
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
            diagonal += amg_source(s->type, s->values, k);
    }
    s->verdict[i] = !(diagonal > 0 && diagonal <= 0x1.fffffffffffffp1023) ? 4 * i + 1 : !sorted ? 4 * i + 2 : INT64_MAX;
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

/* Rows of the interpolation P from aggregates: in one step, or by way of the tentative P0 (amg_prolong.c).
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef AMG_PROLONG_ROWS_H
#define AMG_PROLONG_ROWS_H

#include "solvers/amg/amg_common.h"

/* Rows of F with more entries are too long for prolong_fill. */
#define AMG_PROLONG_MOST 128

struct amg_prolongation {
    struct amg_csr f;         /* strong couplings */
    struct amg_csr p0, p;     /* tentative and smoothed interpolation */
    int64_t nnz;              /* of the level's matrix */
    const int32_t *aggregate; /* of each row, or -1 */
    const void *near_null;    /* T: the near-null-space vector; NULL: ones */
    const void *inverse;      /* T: D^-1 */
    double omega;
    int64_t *count; /* entries of each row of p or p0 */
    int gathered;   /* col and val of f: aggregates and terms of P (see amg_cuda.cu) */
};

#endif

#ifdef TYPED

AMG_ROW T TYPED(amg_near_null)(const struct amg_prolongation *s, int64_t i)
{
    return s->near_null != (const void *)0 ? ((const T *)s->near_null)[i] : 1;
}

/* The aggregate of the column of entry k of F. */
AMG_ROW int32_t TYPED(amg_aggregate)(const struct amg_prolongation *s, int64_t k)
{
    return s->gathered ? s->f.col[k] : s->aggregate[s->f.col[k]];
}

/* The product of entry k of F and the entry of P0 in its column. */
AMG_ROW T TYPED(amg_term)(const struct amg_prolongation *s, int64_t k)
{
    const T value = ((const T *)s->f.val)[k];
    return s->gathered ? value : value * TYPED(amg_near_null)(s, s->f.col[k]);
}

/* The smallest aggregate above `last` beside row i; INT32_MAX: there is none. *sum, if it is not NULL:
 * the sum of the terms of `last`. It starts with -0, so it has the bits of one that its first term
 * starts. */
AMG_ROW int32_t TYPED(amg_next_aggregate)(const struct amg_prolongation *s, int64_t i, int32_t last, T *sum)
{
    const int64_t end = amg_offset(&s->f, i + 1);
    int32_t next = INT32_MAX;
    T terms = -(T)0;
    for (int64_t k = amg_offset(&s->f, i); k < end; k++) {
        const int32_t other = TYPED(amg_aggregate)(s, k);
        if (other > last)
            next = other < next ? other : next;
        else if (sum != (T *)0 && other == last)
            terms += TYPED(amg_term)(s, k);
    }
    if (sum != (T *)0)
        *sum = terms;
    return next;
}

/* count_i = the aggregates beside row i, which are the columns of its row of P. A row that is too long
 * gets more than all rows together can have. */
AMG_ROW void TYPED(amg_prolong_count)(const struct amg_prolongation *s, int64_t i)
{
    int64_t count = 0;
    if (amg_offset(&s->f, i + 1) - amg_offset(&s->f, i) > AMG_PROLONG_MOST)
        count = s->nnz + 1;
    else
        for (int32_t j = TYPED(amg_next_aggregate)(s, i, -1, (T *)0); j != INT32_MAX; count++)
            j = TYPED(amg_next_aggregate)(s, i, j, (T *)0);
    s->count[i] = count;
}

/* Row i of P = P0 - omega D^-1 (F P0) in one step, which is much cheaper than a product of sparse
 * matrices: P0 has at most one entry in a row. It is near_null_k in the column of the aggregate of row
 * k. The terms are added in the order of k. */
AMG_ROW void TYPED(amg_prolong_fill)(const struct amg_prolongation *s, int64_t i)
{
    const T scale = (T)s->omega * ((const T *)s->inverse)[i];
    int64_t to = amg_offset(&s->p, i);
    for (int32_t j = TYPED(amg_next_aggregate)(s, i, -1, (T *)0); j != INT32_MAX; to++) {
        T sum;
        const int32_t next = TYPED(amg_next_aggregate)(s, i, j, &sum);
        const T tentative = j == s->aggregate[i] ? TYPED(amg_near_null)(s, i) : 0;
        s->p.col[to] = j;
        ((T *)s->p.val)[to] = tentative - scale * sum;
        j = next;
    }
}

/* New values of a row of P, whose columns stay: the same sums as prolong_fill, in the same order, in one
 * pass over the row of F. */
AMG_ROW void TYPED(amg_prolong_values)(const struct amg_prolongation *s, int64_t i)
{
    T *const val = (T *)s->p.val;
    const T *const f = (const T *)s->f.val, *const near_null = (const T *)s->near_null;
    const int32_t *const col = s->p.col, *const aggregate = s->aggregate, *const f_col = s->f.col;
    const int64_t begin = amg_offset(&s->p, i), end = amg_offset(&s->p, i + 1), last = amg_offset(&s->f, i + 1);
    const T scale = (T)s->omega * ((const T *)s->inverse)[i];
    int64_t to = begin;
    for (int64_t e = begin; e < end; e++)
        val[e] = -(T)0;
    for (int64_t k = amg_offset(&s->f, i); k < last; k++) {
        const int32_t j = aggregate[f_col[k]];
        if (j < 0)
            continue;
        if (col[to] != j) /* often that of the entry before */
            for (to = begin; col[to] != j; to++)
                ;
        val[to] += near_null != (const T *)0 ? f[k] * near_null[f_col[k]] : f[k];
    }
    for (int64_t e = begin; e < end; e++)
        val[e] = (col[e] == aggregate[i] ? TYPED(amg_near_null)(s, i) : 0) - scale * val[e];
}

AMG_ROW void TYPED(amg_tentative_count)(const struct amg_prolongation *s, int64_t i)
{
    s->count[i] = s->aggregate[i] >= 0;
}

/* P0: the near-null-space vector, cut into the aggregates. So P0 times ones is the vector, and the
 * vector of the next level is ones. */
AMG_ROW void TYPED(amg_tentative_fill)(const struct amg_prolongation *s, int64_t i)
{
    if (s->aggregate[i] >= 0) {
        const int64_t k = amg_offset(&s->p0, i);
        s->p0.col[k] = s->aggregate[i];
        ((T *)s->p0.val)[k] = TYPED(amg_near_null)(s, i);
    }
}

/* P = P0 - omega D^-1 (F P0), in place of F P0. The row of F P0 has the columns of P0,
 * which are consecutive, because F has the diagonal. */
AMG_ROW void TYPED(amg_tentative_smooth)(const struct amg_prolongation *s, int64_t i)
{
    T *val = (T *)s->p.val;
    const int64_t end = amg_offset(&s->p, i + 1), own = amg_offset(&s->p0, i), last = amg_offset(&s->p0, i + 1);
    const T scale = (T)s->omega * ((const T *)s->inverse)[i];
    for (int64_t k = amg_offset(&s->p, i); k < end; k++) {
        const int64_t at = own < last && s->p.col[k] >= s->p0.col[own] ? own + (s->p.col[k] - s->p0.col[own]) : last;
        const T tentative = at < last ? ((const T *)s->p0.val)[at] : 0;
        val[k] = tentative - scale * val[k];
    }
}

#endif

/* Rows of the smoother: the diagonal, the bound of the eigenvalues, and two steps as one matrix
 * (amg_smoother.c).
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef AMG_SMOOTHER_ROWS_H
#define AMG_SMOOTHER_ROWS_H

#include "solvers/amg/amg_common.h"

/* A step of Jacobi with a tiny diagonal entry would overflow. */
#define AMG_LARGEST_SUM 0x1p14

struct amg_diagonal {
    struct amg_csr a;
    int64_t nnz;         /* of a */
    const double *least; /* diagonal entries up to this are taken as 0; NULL: 0 */
    int l1;              /* inverse: of the row sums of |a_ij| */
    int bounded;         /* inverse: of sum_j |a_ij| / AMG_LARGEST_SUM, if that is above the diagonal entry */
    void *diagonal;      /* T: of a; 0 for rows that the hierarchy leaves out */
    void *root;          /* T: its square roots */
    void *inverse;       /* T: its reciprocals, 0 for 0 */
    void *weight;        /* T: the first weights of bound */
};

struct amg_bound {
    struct amg_csr a;
    int64_t nnz;
    const void *diagonal, *root; /* T: see above */
    const void *weight;          /* T: a vector w */
    void *weight_out, *ratio;    /* T: see bound */
    void *strongest;             /* T: the strongest coupling of a row; NULL: not wanted */
    int either;                  /* see amg_coupling */
    int64_t first;               /* the number of row 0 in the whole level */
    void *inverse;               /* T: see bound; NULL: not wanted */
};

struct amg_smoother {
    struct amg_csr a;
    int64_t nnz;
    const void *inverse; /* T: D^-1 */
    double factor, other;
    void *to; /* T: values with the pattern of a */
};

/* The smoother of a matrix that is not symmetric: coarse rows (C) and others (F). */
struct amg_halves {
    struct amg_csr a;
    const void *inverse;      /* T: D^-1 */
    const int32_t *aggregate; /* -1: not a coarse row */
    void *fine_inverse;       /* T: the same, 0 for coarse rows */
    int64_t *count[2];        /* entries of each row of before and after */
    struct amg_csr before, after;
};

#endif

#ifdef TYPED

/* The diagonal entry, its root, its reciprocal, and the weights w = |A| 1 / D for bound. */
AMG_ROW void TYPED(amg_diagonal)(const struct amg_diagonal *s, int64_t i)
{
    const T *val = (const T *)s->a.val;
    const int64_t end = amg_offset(&s->a, i + 1);
    T diagonal = 0, sum = 0;
    for (int64_t k = amg_offset(&s->a, i); k < end; k++) {
        sum += TYPED(amg_abs)(val[k]);
        if (s->a.col[k] == i)
            diagonal = val[k];
    }
    const double least = s->least != (const double *)0 ? s->least[i] : 0;
    if (!((double)diagonal > least))
        diagonal = 0;
    ((T *)s->diagonal)[i] = diagonal;
    ((T *)s->root)[i] = (T)sqrt((double)diagonal);
    const T divisor = s->l1 ? sum : s->bounded && sum > AMG_LARGEST_SUM * diagonal ? sum / AMG_LARGEST_SUM : diagonal;
    ((T *)s->inverse)[i] = diagonal > 0 ? 1 / divisor : 0;
    ((T *)s->weight)[i] = diagonal > 0 ? sum / diagonal : 1;
}

AMG_ROW T TYPED(amg_strength_of)(T value, int either)
{
    return either ? TYPED(amg_abs)(value) : -value;
}

/* -a_ij / sqrt(a_ii a_jj) for entry k of row i, if that is positive, or with `either` its absolute value; 0 for
 * the diagonal entry and rows that are left out. root: of a_ii. */
AMG_ROW T TYPED(amg_coupling)(const struct amg_csr *a, const T *root, int64_t i, int64_t k, int either)
{
    const int64_t j = a->col[k];
    const T own = root[i], other = root[j];
    const T value = TYPED(amg_strength_of)(((const T *)a->val)[k], either);
    return own > 0 && other > 0 && j != i && value > 0 ? value / own / other : 0;
}

/* weight_out_i = sum_j |a_ij| w_j / a_ii and ratio_i = weight_out_i / w_i. For any w > 0 the
 * largest ratio bounds all eigenvalues of D^-1 A (L. Collatz, Math. Z. 48, 1942). So those of E^-1 A with
 * e_i = a_ii ratio_i are at most 1; inverse_i = 1 / e_i. strongest as in amg_strongest. */
AMG_ROW void TYPED(amg_bound)(const struct amg_bound *s, int64_t i)
{
    const T *val = (const T *)s->a.val, *weight = (const T *)s->weight;
    const T diagonal = ((const T *)s->diagonal)[i];
    const int64_t end = amg_offset(&s->a, i + 1);
    T sum = 0, most = 0;
    if (diagonal > 0)
        for (int64_t k = amg_offset(&s->a, i); k < end; k++) {
            sum += TYPED(amg_abs)(val[k]) * weight[s->a.col[k]];
            if (s->strongest != (void *)0) {
                const T coupling = TYPED(amg_coupling)(&s->a, (const T *)s->root, i, k, s->either);
                most = coupling > most ? coupling : most;
            }
        }
    ((T *)s->weight_out)[i] = diagonal > 0 ? sum / diagonal : weight[i];
    ((T *)s->ratio)[i] = diagonal > 0 ? sum / diagonal / weight[i] : 1;
    if (s->inverse != (void *)0)
        ((T *)s->inverse)[i] = diagonal > 0 ? weight[i] / sum : 0;
    if (s->strongest != (void *)0)
        ((T *)s->strongest)[i] = most;
}

/* A start vector for the power iteration: numbers of -1 to 1 from the hash of the row. */
AMG_ROW void TYPED(amg_power_begin)(const struct amg_bound *s, int64_t i)
{
    const uint64_t hash = amg_key(0, s->first + i) >> 32;
    ((T *)s->weight_out)[i] = (T)((double)hash * 0x1p-27 - 1);
}

/* weight_out = D^-1 A weight */
AMG_ROW void TYPED(amg_power)(const struct amg_bound *s, int64_t i)
{
    const T *val = (const T *)s->a.val, *weight = (const T *)s->weight;
    const T diagonal = ((const T *)s->diagonal)[i];
    const int64_t end = amg_offset(&s->a, i + 1);
    T sum = 0;
    if (diagonal > 0)
        for (int64_t k = amg_offset(&s->a, i); k < end; k++)
            sum += val[k] * weight[s->a.col[k]];
    ((T *)s->weight_out)[i] = diagonal > 0 ? sum / diagonal : 0;
}

/* Row i of the smoother as a matrix: S = factor D^-1 - other D^-1 A D^-1, with the pattern of A. */
AMG_ROW void TYPED(amg_smoother)(const struct amg_smoother *s, int64_t i)
{
    const T *val = (const T *)s->a.val, *inverse = (const T *)s->inverse;
    T *to = (T *)s->to;
    const int64_t end = amg_offset(&s->a, i + 1);
    for (int64_t k = amg_offset(&s->a, i); k < end; k++) {
        const T both = inverse[i] * inverse[s->a.col[k]];
        to[k] = (s->a.col[k] == i ? (T)s->factor * inverse[i] : 0) - (T)s->other * (both * val[k]);
    }
}

/* The rows of F have an entry of `before` for each of F, and one of `after`. Coarse rows have entries of `after`
 * only, for rows of F and the diagonal. */
AMG_ROW void TYPED(amg_halves_count)(const struct amg_halves *s, int64_t i)
{
    const int64_t end = amg_offset(&s->a, i + 1);
    const int coarse = s->aggregate[i] >= 0;
    int64_t count = 0;
    for (int64_t k = amg_offset(&s->a, i); k < end; k++)
        count += s->aggregate[s->a.col[k]] < 0 || s->a.col[k] == i;
    s->count[0][i] = coarse ? 0 : count;
    s->count[1][i] = coarse ? count : 1;
    ((T *)s->fine_inverse)[i] = coarse ? 0 : ((const T *)s->inverse)[i];
}

/* Row i of before = 2 D_F^-1 - D_F^-1 A D_F^-1, and of after = D_F^-1 + D_C^-1 - D_C^-1 A D_F^-1. D_F^-1 is
 * D^-1 in rows of F, and 0 in the coarse ones; D_C^-1 is the rest. */
AMG_ROW void TYPED(amg_halves_fill)(const struct amg_halves *s, int64_t i)
{
    const T *val = (const T *)s->a.val, *inverse = (const T *)s->inverse;
    const int64_t end = amg_offset(&s->a, i + 1);
    const int coarse = s->aggregate[i] >= 0;
    const struct amg_csr *to = coarse ? &s->after : &s->before;
    int64_t at = amg_offset(to, i);
    for (int64_t k = amg_offset(&s->a, i); k < end; k++) {
        const int64_t j = s->a.col[k];
        const int fine = s->aggregate[j] < 0;
        if (!fine && j != i)
            continue;
        to->col[at] = (int32_t)j;
        ((T *)to->val)[at++] =
            (j == i ? (fine ? 2 : 1) * inverse[i] : 0) - (fine ? inverse[i] * inverse[j] * val[k] : 0);
    }
    at = amg_offset(&s->after, i);
    if (!coarse && at < amg_offset(&s->after, i + 1)) { /* not a row of another rank */
        s->after.col[at] = (int32_t)i;
        ((T *)s->after.val)[at] = inverse[i];
    }
}

#endif

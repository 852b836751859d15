/* Elements of the coarsest level's matrix as a dense one, and of its inverse (amg_coarsest.c).
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef AMG_COARSEST_ROWS_H
#define AMG_COARSEST_ROWS_H

#include "solvers/amg/amg_common.h"

/* A symmetric matrix, which amg_invert replaces by its inverse times -1; or another one (general), which it
 * replaces by its inverse. Arrays in the context's memory. */
struct amg_dense {
    int64_t n;
    int general;
    double *element;   /* n x n by rows; of a symmetric matrix only those of the lower triangle are used */
    double *own;       /* n: the diagonal */
    double *column[2]; /* n each; the first has column 0 */
    double *row[2];    /* n each; general: the first has row 0 */
    double *pivot;     /* n, set by amg_invert: pivots, relative to the diagonal */
    double tolerance;  /* a pivot not larger than this is taken as 0, and its unknown is left out */
    unsigned *arrived; /* on cuda: a counter, 0 */
};

/* The step of amg_invert that exchanges unknown k, in the order of k: with the column c before,
 *
 *   w_kk = -1 / c_k,   w_ik = w_ki = c_i / c_k,   w_ij = w_ij - c_i c_j / c_k
 *
 * for i, j != k. If the unknown is left out, row and column k become 0. (A. E. Beaton, ETS Research
 * Bulletin RB-64-51, 1964; J. H. Goodnight, The American Statistician 33(3), 1979.) In general, with the row r
 * before (Gauss and Jordan, without an exchange of rows),
 *
 *   w_kk = 1 / c_k,   w_ik = -c_i / c_k,   w_kj = r_j / c_k,   w_ij = w_ij - c_i (r_j / c_k) */
struct amg_sweep {
    int used;
    double ratio;  /* the pivot, relative to the diagonal; general: its absolute value */
    double factor; /* 1 / sqrt(c_k); general: 1 / c_k */
};

AMG_ROW struct amg_sweep amg_sweep_of(const struct amg_dense *d, double pivot, double own)
{
    const double relative = own > 0 ? pivot / own : 0, ratio = d->general && relative < 0 ? -relative : relative;
    const int used = ratio > d->tolerance;
    const struct amg_sweep sweep = {used, ratio, used ? 1 / (d->general ? pivot : sqrt(pivot)) : 0};
    return sweep;
}

/* Element (i, j) after the step for unknown k, in general. w: before; c_i and r_j: see above. */
AMG_ROW double amg_exchanged(const struct amg_sweep *s, double w, int64_t i, int64_t j, int64_t k, double ci, double rj)
{
    if (i != k && j != k)
        return w - ci * (rj * s->factor); /* factor: 0 if the unknown is left out */
    return i != k ? -(ci * s->factor) : j != k ? rj * s->factor : s->factor;
}

struct amg_coarsest {
    struct amg_csr a;       /* n rows */
    struct amg_csr inverse; /* n x n, with all entries */
    int64_t *offset;        /* its row offsets */
    const void *diagonal;   /* T: of a; 0 for rows that the hierarchy leaves out */
    struct amg_dense dense;
};

#endif

#ifdef TYPED

AMG_ROW void TYPED(amg_dense_clear)(const struct amg_coarsest *s, int64_t k)
{
    s->dense.element[k] = 0;
}

/* Row i, of a symmetric matrix up to the diagonal, and element i of column 0 and of row 0. */
AMG_ROW void TYPED(amg_dense_fill)(const struct amg_coarsest *s, int64_t i)
{
    const T *val = (const T *)s->a.val;
    double *row = s->dense.element + i * s->dense.n;
    double own = 0;
    for (int64_t k = amg_offset(&s->a, i), end = amg_offset(&s->a, i + 1); k < end; k++)
        if (s->a.col[k] <= i || s->dense.general)
            row[s->a.col[k]] = (double)val[k];
    if (((const T *)s->diagonal)[i] > 0)
        own = row[i];
    row[i] = own;
    s->dense.own[i] = own;
    s->dense.column[0][i] = row[0];
    if (i == 0 && s->dense.general)
        for (int64_t j = 0; j < s->dense.n; j++)
            s->dense.row[0][j] = row[j];
}

/* Entry k = i n + j of the inverse, as a sparse matrix with all entries. */
AMG_ROW void TYPED(amg_dense_take)(const struct amg_coarsest *s, int64_t k)
{
    const uint32_t n = (uint32_t)s->dense.n, i = (uint32_t)k / n, j = (uint32_t)k % n; /* n^2 < 2^32 */
    const double *w = s->dense.element;
    s->inverse.col[k] = (int32_t)j;
    ((T *)s->inverse.val)[k] = (T)(s->dense.general ? w[k] : -w[i > j ? (int64_t)i * n + j : (int64_t)j * n + i]);
    if (j == 0)
        s->offset[i] = k;
    if (k == s->dense.n * s->dense.n - 1)
        s->offset[n] = s->dense.n * s->dense.n;
}

#endif

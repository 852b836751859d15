/* Rows of the strong couplings F (amg_strength.c).
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef AMG_STRENGTH_ROWS_H
#define AMG_STRENGTH_ROWS_H

#include "solvers/amg/amg_smoother_rows.h" /* amg_coupling */

struct amg_strength {
    struct amg_csr a, f;
    int64_t nnz;                 /* of a */
    const void *diagonal, *root; /* T: of a, and its square roots */
    double threshold;            /* of a strong coupling */
    int either;                  /* positive entries can be strong too */
    void *strongest;             /* T: see strongest */
    int64_t *count;              /* entries of each row of f */
    int by_diagonal;             /* see inverse */
    void *inverse;               /* T: the reciprocals of sum_j |f_ij|, or of f's diagonal */
    int all_strong;              /* f is a */
};

#endif

#ifdef TYPED

/* strongest_i = the largest coupling of row i */
AMG_ROW void TYPED(amg_strongest)(const struct amg_strength *s, int64_t i)
{
    const int64_t end = amg_offset(&s->a, i + 1);
    T most = 0;
    for (int64_t k = amg_offset(&s->a, i); k < end; k++) {
        const T coupling = TYPED(amg_coupling)(&s->a, (const T *)s->root, i, k, s->either);
        most = coupling > most ? coupling : most;
    }
    ((T *)s->strongest)[i] = most;
}

/* -a_ij, or |a_ij|, > threshold min(strongest_i, strongest_j) sqrt(a_ii a_jj): symmetric, and the same for
 * S A S with a positive diagonal S. */
AMG_ROW int TYPED(amg_is_strong)(const struct amg_strength *s, int64_t i, int64_t k)
{
    const T *root = (const T *)s->root;
    const T *strongest = (const T *)s->strongest;
    const int64_t j = s->a.col[k];
    const T least = strongest[i] < strongest[j] ? strongest[i] : strongest[j];
    return root[i] > 0 && root[j] > 0 &&
           TYPED(amg_strength_of)(((const T *)s->a.val)[k], s->either) > (T)s->threshold * least * root[i] * root[j];
}

/* The diagonal entry of F: weak couplings are added to that of A, which keeps the row's sum, unless little is left.
 * Without the sum, P does not interpolate a constant. */
AMG_ROW T TYPED(amg_lump)(T diagonal, T weak)
{
    const T lumped = diagonal + weak;
    return lumped > diagonal / 16 ? lumped : diagonal;
}

/* strong: the sum of |f_ij| beside the diagonal. */
AMG_ROW void TYPED(amg_store_strong)(const struct amg_strength *s, int64_t i, T diagonal, T lumped, T strong)
{
    ((T *)s->inverse)[i] = diagonal > 0 ? 1 / (s->by_diagonal ? lumped : lumped + strong) : 0;
}

/* count_i = strong couplings and the diagonal entry; see also amg_store_strong */
AMG_ROW void TYPED(amg_strong_count)(const struct amg_strength *s, int64_t i)
{
    const T *val = (const T *)s->a.val;
    const T diagonal = ((const T *)s->diagonal)[i];
    const int64_t end = amg_offset(&s->a, i + 1);
    T weak = 0, strong = 0;
    int64_t count = 0;
    for (int64_t k = amg_offset(&s->a, i); k < end; k++) {
        const int own = s->a.col[k] == i, is_strong = TYPED(amg_is_strong)(s, i, k);
        count += own || is_strong;
        if (!own && is_strong)
            strong += TYPED(amg_abs)(val[k]);
        else if (!own)
            weak += val[k];
    }
    s->count[i] = count;
    TYPED(amg_store_strong)(s, i, diagonal, TYPED(amg_lump)(diagonal, weak), strong);
}

/* Columns and values of F. */
AMG_ROW void TYPED(amg_strong_fill)(const struct amg_strength *s, int64_t i)
{
    const T *val = (const T *)s->a.val;
    T *to = (T *)s->f.val;
    const int64_t end = amg_offset(&s->a, i + 1);
    int64_t at = amg_offset(&s->f, i), middle = -1;
    T weak = 0;
    for (int64_t k = amg_offset(&s->a, i); k < end; k++) {
        const int own = s->a.col[k] == i;
        if (own || TYPED(amg_is_strong)(s, i, k)) {
            middle = own ? at : middle;
            s->f.col[at] = s->a.col[k];
            to[at++] = val[k];
        } else {
            weak += val[k];
        }
    }
    const T diagonal = ((const T *)s->diagonal)[i];
    if (diagonal > 0 && middle >= 0) /* a row of another rank has no entries */
        to[middle] = TYPED(amg_lump)(diagonal, weak);
}

/* New values of F, whose pattern stays. If f is a, nothing is written to it. */
AMG_ROW void TYPED(amg_strong_values)(const struct amg_strength *s, int64_t i)
{
    const T *val = (const T *)s->a.val;
    T *to = (T *)s->f.val;
    const int64_t begin = amg_offset(&s->f, i), end = amg_offset(&s->f, i + 1), last = amg_offset(&s->a, i + 1);
    const T diagonal = ((const T *)s->diagonal)[i];
    T weak = 0, strong = 0;
    int64_t at = begin, middle = begin;
    for (int64_t k = amg_offset(&s->a, i); k < last; k++)
        if (at < end && s->f.col[at] == s->a.col[k]) {
            if (s->a.col[k] == i)
                middle = at;
            else
                strong += TYPED(amg_abs)(val[k]);
            if (!s->all_strong)
                to[at] = val[k];
            at++;
        } else
            weak += val[k];
    const T lumped = TYPED(amg_lump)(diagonal, weak);
    if (diagonal > 0 && !s->all_strong)
        to[middle] = lumped;
    TYPED(amg_store_strong)(s, i, diagonal, lumped, strong);
}

#endif

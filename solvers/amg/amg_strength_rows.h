/* Rows of the strong couplings F (amg_strength.c).
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef AMG_STRENGTH_ROWS_H
#define AMG_STRENGTH_ROWS_H

#include "solvers/amg/amg_given_rows.h"    /* amg_entry */
#include "solvers/amg/amg_smoother_rows.h" /* amg_coupling */

/* Positive entries of longer rows are left out and not moved. */
#define AMG_MOVE_MOST 128

/* Positive entries are moved if this makes more than one of so many rows differ (move_sample). */
#define AMG_MOVE_WEIGHT 8

struct amg_strength {
    struct amg_csr a, f;
    struct amg_csr others;       /* rows from own_end on and in front of own_begin: see rank_tools.h, fetch_others */
    int64_t own_begin, own_end;  /* rows of a; without ranks all */
    int64_t nnz;                 /* of a */
    const void *diagonal, *root; /* T: of a, and its square roots */
    double threshold;            /* of a strong coupling */
    int either;                  /* positive entries can be strong too */
    void *strongest;             /* T: see strongest */
    int64_t *count;              /* entries of each row of f */
    int by_diagonal;             /* see inverse */
    void *inverse;               /* T: the reciprocals of sum_j |f_ij|, or of f's diagonal */
    int all_strong;              /* f is a */
    void *moved;                 /* T: see moved_of; for each entry of a */
    void *measure;               /* T: what is compared in place of a's values; NULL: those */
    int64_t begin, stride;       /* of a sample of rows */
    int64_t *balance;            /* see move_sample */
    int32_t *needed;             /* see move_needed */
};

AMG_ROW int amg_has_row(const struct amg_strength *s, int64_t i)
{
    return i >= s->own_begin && i < s->own_end;
}

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
    const T value = ((const T *)(s->measure != (const void *)0 ? s->measure : s->a.val))[k];
    return root[i] > 0 && root[j] > 0 &&
           TYPED(amg_strength_of)(value, s->either) > (T)s->threshold * least * root[i] * root[j];
}

/* The sum of b_jk over the neighbours k that row i of a and row j of b have in common by negative entries. to:
 * entries of row i, those of these k get share b_jk; NULL: none. */
AMG_ROW T TYPED(amg_common)(const struct amg_csr *a, int64_t i, const struct amg_csr *b, int64_t j, T share, T *to)
{
    const T *val = (const T *)a->val, *other_val = (const T *)b->val;
    const int64_t end = amg_offset(a, i + 1), other_end = amg_offset(b, j + 1);
    int64_t at = amg_offset(a, i), other = amg_offset(b, j);
    T sum = 0;
    while (at < end && other < other_end) {
        const int32_t own_column = a->col[at], other_column = b->col[other];
        if (own_column == other_column && own_column != i && val[at] < 0 && other_val[other] < 0) {
            sum += other_val[other];
            if (to != (T *)0)
                to[at] += share * other_val[other];
        }
        at += own_column <= other_column;
        other += other_column <= own_column;
    }
    return sum;
}

/* Row i of a without its positive entries. An error that the smoother leaves is in row j nearly the mean of its
 * neighbours, with weights -a_jk. So a_ij > 0 is moved to the k that row i has too, in these shares. If there are
 * none, or rows are long, it is left out. */
AMG_ROW void TYPED(amg_moved_of)(const struct amg_strength *s, int64_t i, T *moved)
{
    const struct amg_csr *const a = &s->a;
    const T *val = (const T *)a->val;
    const int64_t begin = amg_offset(a, i), end = amg_offset(a, i + 1);
    for (int64_t k = begin; k < end; k++)
        moved[k] = a->col[k] != i && val[k] > 0 ? 0 : val[k];
    for (int64_t k = begin; k < end && end - begin <= AMG_MOVE_MOST; k++) {
        const int64_t j = a->col[k];
        const struct amg_csr *const b = amg_has_row(s, j) ? a : &s->others;
        if (j == i || !(val[k] > 0) || amg_offset(b, j + 1) - amg_offset(b, j) > AMG_MOVE_MOST)
            continue;
        const T sum = TYPED(amg_common)(a, i, b, j, 0, (T *)0);
        if (sum < 0)
            (void)TYPED(amg_common)(a, i, b, j, val[k] / sum, moved);
    }
}

AMG_ROW void TYPED(amg_move)(const struct amg_strength *s, int64_t i)
{
    TYPED(amg_moved_of)(s, i, (T *)s->moved);
}

/* measure = (moved + moved') / 2; others: the moved entries of these rows */
AMG_ROW void TYPED(amg_move_mean)(const struct amg_strength *s, int64_t i)
{
    struct amg_csr moved = s->a;
    const int64_t end = amg_offset(&s->a, i + 1);
    moved.val = s->moved;
    for (int64_t k = amg_offset(&s->a, i); k < end; k++) {
        const int64_t j = s->a.col[k];
        const T other = TYPED(amg_entry)(amg_has_row(s, j) ? &moved : &s->others, j, i);
        ((T *)s->measure)[k] = (((const T *)s->moved)[k] + other) / 2;
    }
}

/* needed: for row `begin` and t times `stride`, the AMG_MOVE_MOST places from t AMG_MOVE_MOST on: the rows of other
 * ranks that moved_of reads; otherwise -1. */
AMG_ROW void TYPED(amg_move_needed)(const struct amg_strength *s, int64_t t)
{
    const int64_t i = s->begin + t * s->stride, begin = amg_offset(&s->a, i), end = amg_offset(&s->a, i + 1);
    int32_t *needed = s->needed + t * AMG_MOVE_MOST;
    for (int64_t k = 0; k < AMG_MOVE_MOST; k++) {
        const int reads = end - begin <= AMG_MOVE_MOST && k < end - begin && ((const T *)s->a.val)[begin + k] > 0;
        needed[k] = reads && !amg_has_row(s, s->a.col[begin + k]) ? s->a.col[begin + k] : -1;
    }
}

/* balance: 1 for row `begin` and t times `stride`, less AMG_MOVE_WEIGHT if at least half of its strong
 * couplings are weak after moving the positive entries. Its entries of `moved` are scratch memory. */
AMG_ROW void TYPED(amg_move_sample)(const struct amg_strength *s, int64_t t)
{
    const int64_t i = s->begin + t * s->stride, begin = amg_offset(&s->a, i), end = amg_offset(&s->a, i + 1);
    const T *root = (const T *)s->root;
    struct amg_csr moved = s->a;
    int64_t strong = 0, weak = 0;
    T most = 0;
    moved.val = s->moved;
    TYPED(amg_moved_of)(s, i, (T *)s->moved);
    for (int64_t k = begin; k < end; k++) {
        const T coupling = TYPED(amg_coupling)(&moved, root, i, k, 0);
        most = coupling > most ? coupling : most;
    }
    for (int64_t k = begin; k < end; k++)
        if (s->a.col[k] != i && TYPED(amg_is_strong)(s, i, k)) {
            const int stays = TYPED(amg_coupling)(&moved, root, i, k, 0) > (T)s->threshold * most;
            strong++;
            weak += !stays;
        }
    s->balance[t] = 2 * weak >= strong && weak > 0 ? 1 - AMG_MOVE_WEIGHT : 1;
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

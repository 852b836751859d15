/* Rows of the next level's matrix P'AP, and of R = P' (amg_galerkin.c).
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef AMG_GALERKIN_ROWS_H
#define AMG_GALERKIN_ROWS_H

#include "solvers/amg/amg_common.h"

struct amg_transposed {
    struct amg_csr p, r;
    const void *entry; /* of each entry of r: its number in p */
    int entry_bits;
};

struct amg_coarse {
    struct amg_csr r, c;   /* c = r A r' */
    const void *diagonal;  /* T: of A */
    double *mass;          /* see coarse_mass */
    double *ratio, *least; /* see coarse_check */
    double tolerance;
    int nulls; /* near-null-space vectors; 0: one */
};

/* A matrix without its small entries. */
struct amg_filter {
    struct amg_csr a, to;
    double threshold; /* an entry a_ij is small up to this times the smaller of `largest` of i and j */
    void *largest;    /* T: see filter_begin */
    int64_t *count;   /* entries of each row of `to` */
};

/* A ratio of numbers that are not finite. */
#define AMG_OVERFLOWN (-1e308)

/* A sum of a_ii p_i^2 with one more term. */
AMG_ROW double amg_add_mass(double sum, double diagonal, double p)
{
    return sum + diagonal * (p * p);
}

#endif

#ifdef TYPED

/* Entry k of R = P'. */
AMG_ROW void TYPED(amg_transpose)(const struct amg_transposed *s, int64_t k)
{
    ((T *)s->r.val)[k] = ((const T *)s->p.val)[amg_number(s->entry, s->entry_bits, k)];
}

/* mass_j: the sum of a_ii p_i^2 over column j of P. */
AMG_ROW void TYPED(amg_coarse_mass)(const struct amg_coarse *s, int64_t j)
{
    const T *r = (const T *)s->r.val, *diagonal = (const T *)s->diagonal;
    double mass = 0;
    for (int64_t k = amg_offset(&s->r, j), end = amg_offset(&s->r, j + 1); k < end; k++)
        mass = amg_add_mass(mass, (double)diagonal[s->r.col[k]], (double)r[k]);
    s->mass[j] = mass;
}

/* Row j of C = P'AP. p'Ap is 0 if p is in the null space of A, up to rounding relative to the mass of p.
 * ratio: p'Ap over the mass, AMG_OVERFLOWN for numbers that are not finite. least: the largest entry that counts
 * as 0. Row and column of a near-null-space vector that was left out of an aggregate are 0; its diagonal
 * entry becomes 1, so the matrix stays regular. */
AMG_ROW void TYPED(amg_coarse_check)(const struct amg_coarse *s, int64_t j)
{
    T *val = (T *)s->c.val;
    const double mass = s->mass[j];
    const int64_t last = amg_offset(&s->c, j + 1);
    const int64_t at = first_column_from(s->c.col, amg_offset(&s->c, j), last, j);
    const int left_out = s->nulls > 0 && mass == 0 && at < last && s->c.col[at] == j;
    if (left_out)
        val[at] = 1;
    const double own = at < last && s->c.col[at] == j ? (double)val[at] : 0;
    const double ratio = mass > 0 ? own / mass : left_out;
    s->ratio[j] = ratio >= -1e300 && ratio <= 1e300 && mass <= 0x1.fffffffffffffp1023 ? ratio : AMG_OVERFLOWN;
    s->least[j] = mass * s->tolerance;
}

/* largest_i = the largest |a_ik| beside the diagonal */
AMG_ROW void TYPED(amg_filter_begin)(const struct amg_filter *s, int64_t i)
{
    T most = 0;
    for (int64_t k = amg_offset(&s->a, i), end = amg_offset(&s->a, i + 1); k < end; k++) {
        const T size = TYPED(amg_abs)(((const T *)s->a.val)[k]);
        most = s->a.col[k] != i && size > most ? size : most;
    }
    ((T *)s->largest)[i] = most;
}

/* Whether entry k of row i is small, compared with both rows. */
AMG_ROW int TYPED(amg_is_small)(const struct amg_filter *s, int64_t i, int64_t k)
{
    const T *largest = (const T *)s->largest;
    const int64_t j = s->a.col[k];
    const T most = largest[i] < largest[j] ? largest[i] : largest[j];
    return j != i && TYPED(amg_abs)(((const T *)s->a.val)[k]) <= most * (T)s->threshold;
}

/* count_i: the entries of row i that are not small. */
AMG_ROW void TYPED(amg_filter_count)(const struct amg_filter *s, int64_t i)
{
    int64_t count = 0;
    for (int64_t k = amg_offset(&s->a, i), end = amg_offset(&s->a, i + 1); k < end; k++)
        count += !TYPED(amg_is_small)(s, i, k);
    s->count[i] = count;
}

/* Row i without the small entries, which are added to the diagonal entry. */
AMG_ROW void TYPED(amg_filter_fill)(const struct amg_filter *s, int64_t i)
{
    const T *val = (const T *)s->a.val;
    T *to = (T *)s->to.val;
    T sum = 0;
    int64_t at = amg_offset(&s->to, i), middle = -1;
    for (int64_t k = amg_offset(&s->a, i), end = amg_offset(&s->a, i + 1); k < end; k++)
        if (!TYPED(amg_is_small)(s, i, k)) {
            middle = s->a.col[k] == i ? at : middle;
            s->to.col[at] = s->a.col[k];
            to[at++] = val[k];
        } else {
            sum += val[k];
        }
    if (middle >= 0)
        to[middle] += sum;
}

/* The same for new values: the pattern of `to` stays. */
AMG_ROW void TYPED(amg_filter_values)(const struct amg_filter *s, int64_t i)
{
    const T *val = (const T *)s->a.val;
    T *to = (T *)s->to.val;
    T sum = 0;
    int64_t at = amg_offset(&s->to, i), middle = -1;
    const int64_t last = amg_offset(&s->to, i + 1);
    for (int64_t k = amg_offset(&s->a, i), end = amg_offset(&s->a, i + 1); k < end; k++)
        if (at < last && s->to.col[at] == s->a.col[k]) {
            middle = s->a.col[k] == i ? at : middle;
            to[at++] = val[k];
        } else {
            sum += val[k];
        }
    if (middle >= 0)
        to[middle] += sum;
}

#endif

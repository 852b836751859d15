/* Rows of the aggregates: a maximal independent set of distance 2 in the graph of F, and the rows that
 * join its members (amg_aggregate.c).
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef AMG_AGGREGATE_ROWS_H
#define AMG_AGGREGATE_ROWS_H

#include "solvers/amg/amg_common.h"

struct amg_aggregates {
    struct amg_csr f;
    int64_t nnz;           /* of the level's matrix */
    const void *diagonal;  /* T: of that matrix */
    const int64_t *count;  /* entries of each row of f */
    int64_t first;         /* the number of row 0 in the whole level */
    uint64_t *key;         /* state and priority of a row */
    uint64_t *near_key;    /* the largest key of a row and its neighbours */
    int32_t *undecided;    /* 1: the row is neither a root nor excluded */
    const int32_t *joined; /* number of the aggregate of a root and its neighbours, else -1 */
    int32_t *aggregate;    /* number of the aggregate of a row, or -1 */
};

/* The numbers of roots, also of coarse rows. */
struct amg_roots {
    const uint64_t *key, *near_key;
    int64_t *count;        /* 1 for a root, else 0 */
    const int64_t *offset; /* exclusive sums of count; with ranks those of all rows, in the layout of the level */
    struct amg_numbers numbers;
    int32_t *aggregate; /* the number of a root, or of the root beside a row; or -1 */
};

/* Whether the largest key of a row and its neighbours stays as it is: that of a root, since no other
 * root is within distance 2, or all are excluded. 0: not known yet. */
AMG_ROW int amg_spread_is_final(uint64_t near_key)
{
    const uint64_t state = amg_state(near_key);
    return state == AMG_ROOT_STATE || (state == AMG_EXCLUDED && near_key != 0);
}

#endif

#ifdef TYPED

/* Rows without a strong coupling are excluded: the smoother suffices for them. count: of strong couplings
 * and the diagonal entry. */
AMG_ROW void TYPED(amg_mis_begin)(const struct amg_aggregates *s, int64_t i)
{
    const int coupled = ((const T *)s->diagonal)[i] > 0 && s->count[i] > 1;
    s->key[i] = amg_key(coupled ? AMG_UNDECIDED : AMG_EXCLUDED, s->first + i);
    s->near_key[i] = 0;
}

/* The largest of this key and the keys of the row's neighbours. */
AMG_ROW uint64_t TYPED(amg_largest_key)(const struct amg_aggregates *s, int64_t i, const uint64_t *key, uint64_t most)
{
    const int64_t end = amg_offset(&s->f, i + 1);
    for (int64_t k = amg_offset(&s->f, i); k < end; k++) {
        const uint64_t near_key = key[s->f.col[k]];
        most = near_key > most ? near_key : most;
    }
    return most;
}

/* The largest key of a row and its neighbours. */
AMG_ROW void TYPED(amg_mis_spread)(const struct amg_aggregates *s, int64_t i)
{
    if (amg_spread_is_final(s->near_key[i]))
        return;
    s->near_key[i] = TYPED(amg_largest_key)(s, i, s->key, s->key[i]);
}

/* A row becomes a root if its key is the largest within distance 2, and is excluded if a root is
 * within distance 2. */
AMG_ROW void TYPED(amg_mis_decide)(const struct amg_aggregates *s, int64_t i)
{
    const uint64_t key = s->key[i];
    s->undecided[i] = 0;
    if (amg_state(key) != AMG_UNDECIDED)
        return;
    const uint64_t most = TYPED(amg_largest_key)(s, i, s->near_key, s->near_key[i]);
    if (most == key)
        s->key[i] = amg_with_state(key, AMG_ROOT_STATE);
    else if (amg_state(most) == AMG_ROOT_STATE)
        s->key[i] = amg_with_state(key, AMG_EXCLUDED);
    else
        s->undecided[i] = 1;
}

AMG_ROW void TYPED(amg_root)(const struct amg_roots *s, int64_t i)
{
    s->count[i] = amg_state(s->key[i]) == AMG_ROOT_STATE;
}

/* A root and its neighbours make an aggregate; offset has the numbers of the roots. No row has two
 * roots beside it, unless the strong couplings are not symmetric; then the first one found counts. */
AMG_ROW void TYPED(amg_join_root)(const struct amg_roots *s, int64_t i)
{
    const uint64_t own = s->key[i]; /* near_key: of a spread after all decisions */
    const uint64_t most = amg_state(own) == AMG_ROOT_STATE ? own : s->near_key[i];
    s->aggregate[i] = amg_state(most) == AMG_ROOT_STATE
                          ? (int32_t)s->offset[amg_place(&s->numbers, (int64_t)(most & UINT64_C(0xffffffff)))]
                          : -1;
}

/* Every other row with a strong coupling joins the aggregate of its strongest neighbour that is in
 * one, the first of equals. */
AMG_ROW void TYPED(amg_join_near)(const struct amg_aggregates *s, int64_t i)
{
    const T *val = (const T *)s->f.val;
    const int64_t end = amg_offset(&s->f, i + 1);
    int32_t own = s->joined[i];
    T most = -1;
    if (own < 0 && ((const T *)s->diagonal)[i] > 0)
        for (int64_t k = amg_offset(&s->f, i); k < end; k++) {
            const int32_t other = s->joined[s->f.col[k]];
            if (other >= 0 && TYPED(amg_abs)(val[k]) > most) {
                most = TYPED(amg_abs)(val[k]);
                own = other;
            }
        }
    s->aggregate[i] = own;
}

#endif

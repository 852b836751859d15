/* Rows of a level of several ranks that is gathered (amg_ranks.c).
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef AMG_RANKS_ROWS_H
#define AMG_RANKS_ROWS_H

#include "solvers/amg/amg_common.h"

struct amg_renumbering {
    struct amg_numbers numbers;
    const int32_t *from; /* places in the layout of a rank */
    int32_t *to;         /* numbers in the whole level */
};

struct amg_lengths {
    struct amg_csr a;
    int64_t *length; /* entries of each row */
};

/* The columns of two matrices with as many rows, as those of one: row i has those of A, then those of T. */
struct amg_both {
    struct amg_csr a, t;
    int64_t rows;
    int64_t *row_ptr; /* of both */
    int32_t *col;
    int back; /* 1: from col to A and T */
};

#endif

#ifdef TYPED

AMG_ROW void TYPED(amg_renumber)(const struct amg_renumbering *s, int64_t k)
{
    s->to[k] = (int32_t)amg_number_at(&s->numbers, s->from[k]);
}

AMG_ROW void TYPED(amg_lengths)(const struct amg_lengths *s, int64_t i)
{
    s->length[i] = amg_offset(&s->a, i + 1) - amg_offset(&s->a, i);
}

/* For i = rows the last offset. */
AMG_ROW void TYPED(amg_both)(const struct amg_both *s, int64_t i)
{
    const struct amg_csr *part[] = {&s->a, &s->t};
    int64_t at = amg_offset(&s->a, i) + amg_offset(&s->t, i);
    s->row_ptr[i] = at;
    for (int m = 0; m < 2 && i < s->rows; m++)
        for (int64_t k = amg_offset(part[m], i), end = amg_offset(part[m], i + 1); k < end; k++, at++)
            if (s->back)
                part[m]->col[k] = s->col[at];
            else
                s->col[at] = part[m]->col[k];
}

#endif

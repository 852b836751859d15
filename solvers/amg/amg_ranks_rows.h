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

#endif

/* The loop of gather over a range of the index, for every type and both index widths, shared by the
 * host backends.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "core/loops/ops.h"
#include "primitives/gather/moves.h"

#define TEMPLATE "primitives/gather/gather_typed.h"
#include "core/each/each_type.h"
#undef TEMPLATE
#define TEMPLATE "primitives/gather/gather_if_typed.h"
#include "core/each/each_predicate.h"
#undef TEMPLATE

static move_range *const table[SPMV_TYPE_LIMIT] = TYPE_TABLE(gather);
#define ENTRY(pair) gather_if_##pair
static move_range *const if_table[SPMV_PREDICATE_LIMIT][SPMV_TYPE_LIMIT] = PREDICATE_TABLE;
#undef ENTRY

void gather_range(const struct move *m, int64_t from, int64_t to)
{
    const struct filter *const f = m->filter;
    if (f == NULL || f->mask != NULL)
        table[m->type](m, from, to);
    else
        if_table[f->predicate][m->type](m, from, to);
}

/* The loop of scatter over a range of the index, for every type and both index widths, shared by the
 * host backends.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "core/loops/host_tiles.h"
#include "core/loops/ops.h"
#include "primitives/gather/moves.h"

#define TEMPLATE "primitives/scatter/scatter_typed.h"
#include "core/each/each_type.h"

/* flags: NULL, or flags[i - from] != 0 if element i is taken */
typedef void scatter_loop(const struct move *m, const uint8_t *flags, int64_t from, int64_t to);
static scatter_loop *const table[SPMV_TYPE_LIMIT] = TYPE_TABLE(scatter);

void scatter_range(const struct move *m, int64_t from, int64_t to)
{
    uint8_t room[HOST_TILE];
    const uint8_t *const flags = m->filter == NULL ? NULL : filter_flags(m->filter, m->type, m->in, from, to, room);
    table[m->type](m, flags, from, to);
}

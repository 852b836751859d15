/* The loops of compact: see compact_loops.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "primitives/compact/compact_loops.h"

#include "core/loops/host_tiles.h"
#include "core/loops/ops.h"

int64_t compact_count_range(const struct filter *filter, spmv_type type, const void *in, int64_t begin, int64_t end)
{
    uint8_t room[HOST_TILE];
    const uint8_t *const flags = filter_flags(filter, type, in, begin, end, room);
    int64_t count = 0;
    for (int64_t i = 0; i < end - begin; i++)
        count += flags[i] != 0;
    return count;
}

#define TEMPLATE "primitives/compact/compact_typed.h"
#include "core/each/each_type.h"

int64_t compact_write_range(const struct filter *filter, spmv_type type, const void *in, int64_t begin, int64_t end,
                            void *out)
{
    static int64_t (*const write[SPMV_TYPE_LIMIT])(const void *, const uint8_t *, int64_t, int64_t, void *) =
        TYPE_TABLE(write);
    uint8_t room[HOST_TILE];
    return write[type](in, filter_flags(filter, type, in, begin, end, room), begin, end, out);
}

void compact_map_range(const struct filter *filter, spmv_type type, const void *in, int64_t begin, int64_t end,
                       int64_t *numbers)
{
    uint8_t room[HOST_TILE];
    const uint8_t *const flags = filter_flags(filter, type, in, begin, end, room);
    for (int64_t i = begin; i < end; i++)
        numbers[i] = flags[i - begin] != 0;
}

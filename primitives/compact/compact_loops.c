/* compact's loops: see compact_loops.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "compact_loops.h"

#include "host_tiles.h"

int64_t compact_count_part(const struct filter *filter, spmv_type type, const void *in, int64_t begin, int64_t end)
{
    uint8_t room[HOST_TILE];
    const uint8_t *const flags = filter_flags(filter, type, in, begin, end, room);
    int64_t count = 0;
    for (int64_t i = 0; i < end - begin; i++)
        count += flags[i] != 0;
    return count;
}

/* Every element is written, and the place moves on where it is kept: no branch to guess. So into room of its own first,
 * since what is written last may lie behind the elements kept. */
#define DEFINE(NAME, name, value, T, D, CLASS, ARG)                                                                    \
    static int64_t write_##name(const void *in, const uint8_t *flags, int64_t begin, int64_t end, void *out)           \
    {                                                                                                                  \
        const T *const x = (const T *)in + begin;                                                                      \
        T room[HOST_TILE];                                                                                             \
        int64_t kept = 0;                                                                                              \
        for (int64_t i = 0; i < end - begin; i++) {                                                                    \
            room[kept] = x[i];                                                                                         \
            kept += flags[i] != 0;                                                                                     \
        }                                                                                                              \
        memcpy(out, room, (size_t)kept * sizeof(T));                                                                   \
        return kept;                                                                                                   \
    }
SPMV_TYPE_LIST(DEFINE, )

int64_t compact_write_part(const struct filter *filter, spmv_type type, const void *in, int64_t begin, int64_t end,
                           void *out)
{
#define ROW(NAME, name, value, T, D, CLASS, ARG) [value] = write_##name,
    static int64_t (*const write[SPMV_TYPE_LIMIT])(const void *, const uint8_t *, int64_t, int64_t,
                                                   void *) = {SPMV_TYPE_LIST(ROW, )};
#undef ROW
    uint8_t room[HOST_TILE];
    return write[type](in, filter_flags(filter, type, in, begin, end, room), begin, end, out);
}

void compact_map_part(const struct filter *filter, spmv_type type, const void *in, int64_t begin, int64_t end,
                      int64_t *numbers)
{
    uint8_t room[HOST_TILE];
    const uint8_t *const flags = filter_flags(filter, type, in, begin, end, room);
    for (int64_t i = begin; i < end; i++)
        numbers[i] = flags[i - begin] != 0;
}

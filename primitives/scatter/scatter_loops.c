/* scatter's loops: see scatter_loops.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "scatter_loops.h"

#include "host_tiles.h"

/* One unsigned comparison tells: a negative index becomes too large a number. */
#define DEFINE_FOR(name, T, Index)                                                                                     \
    static void name(const void *in, const void *index, void *out, int64_t out_n, int64_t from, int64_t to)            \
    {                                                                                                                  \
        for (int64_t i = from; i < to; i++) {                                                                          \
            const int64_t at = ((const Index *)index)[i];                                                              \
            if ((uint64_t)at < (uint64_t)out_n)                                                                        \
                ((T *)out)[at] = ((const T *)in)[i];                                                                   \
        }                                                                                                              \
    }
#define DEFINE(NAME, name, value, T, D, CLASS, ARG)                                                                    \
    DEFINE_FOR(scatter_##name##_32, T, int32_t)                                                                        \
    DEFINE_FOR(scatter_##name##_64, T, int64_t)
SPMV_TYPE_LIST(DEFINE, )

#define ROW(NAME, name, value, T, D, CLASS, ARG) [value] = {scatter_##name##_32, scatter_##name##_64},
static scatter_loop *const table[SPMV_TYPE_LIMIT][2] = {SPMV_TYPE_LIST(ROW, )};

scatter_loop *scatter_loop_for(spmv_type type, int index_bits)
{
    return table[type][index_bits == 64];
}

/* flags[i - from] != 0: element i is taken */
#define DEFINE_FLAGGED(name, T, Index)                                                                                 \
    static void name(const void *in, const void *index, const uint8_t *flags, void *out, int64_t out_n, int64_t from,  \
                     int64_t to)                                                                                       \
    {                                                                                                                  \
        for (int64_t i = from; i < to; i++) {                                                                          \
            const int64_t at = ((const Index *)index)[i];                                                              \
            if (flags[i - from] != 0 && (uint64_t)at < (uint64_t)out_n)                                                \
                ((T *)out)[at] = ((const T *)in)[i];                                                                   \
        }                                                                                                              \
    }
#undef DEFINE
#define DEFINE(NAME, name, value, T, D, CLASS, ARG)                                                                    \
    DEFINE_FLAGGED(scatter_flagged_##name##_32, T, int32_t)                                                            \
    DEFINE_FLAGGED(scatter_flagged_##name##_64, T, int64_t)
SPMV_TYPE_LIST(DEFINE, )

typedef void flagged_loop(const void *in, const void *index, const uint8_t *flags, void *out, int64_t out_n,
                          int64_t from, int64_t to);
#undef ROW
#define ROW(NAME, name, value, T, D, CLASS, ARG) [value] = {scatter_flagged_##name##_32, scatter_flagged_##name##_64},
static flagged_loop *const flagged_table[SPMV_TYPE_LIMIT][2] = {SPMV_TYPE_LIST(ROW, )};

void scatter_filtered_part(const struct filter *filter, spmv_type type, const void *in, const void *index,
                           int index_bits, void *out, int64_t out_n, int64_t from, int64_t to)
{
    uint8_t room[HOST_TILE];
    const uint8_t *const flags = filter_flags(filter, type, in, from, to, room);
    flagged_table[type][index_bits == 64](in, index, flags, out, out_n, from, to);
}

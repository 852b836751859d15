/* scatter's loop over a part of the index, for every type and both widths: what both host backends run.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "host_tiles.h"
#include "moves.h"

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
typedef void scatter_loop(const void *in, const void *index, void *out, int64_t out_n, int64_t from, int64_t to);
static scatter_loop *const table[SPMV_TYPE_LIMIT][2] = {SPMV_TYPE_LIST(ROW, )};

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

void scatter_part(const struct move *m, int64_t from, int64_t to)
{
    const int wide = m->index_bits == 64;
    if (m->filter == NULL) {
        table[m->type][wide](m->in, m->index, m->out, m->cells, from, to);
        return;
    }
    uint8_t room[HOST_TILE];
    const uint8_t *const flags = filter_flags(m->filter, m->type, m->in, from, to, room);
    flagged_table[m->type][wide](m->in, m->index, flags, m->out, m->cells, from, to);
}

/* gather's loops: see gather_loops.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "gather_loops.h"

/* One unsigned comparison tells: a negative index becomes too large a number. */
#define DEFINE_FOR(name, T, Index)                                                                                     \
    static void name(const void *in, int64_t in_n, const void *index, void *out, int64_t from, int64_t to)             \
    {                                                                                                                  \
        for (int64_t i = from; i < to; i++) {                                                                          \
            const int64_t at = ((const Index *)index)[i];                                                              \
            if ((uint64_t)at < (uint64_t)in_n)                                                                         \
                ((T *)out)[i] = ((const T *)in)[at];                                                                   \
        }                                                                                                              \
    }
#define DEFINE(NAME, name, value, T, D, CLASS, ARG)                                                                    \
    DEFINE_FOR(gather_##name##_32, T, int32_t)                                                                         \
    DEFINE_FOR(gather_##name##_64, T, int64_t)
SPMV_TYPE_LIST(DEFINE, )

#define ROW(NAME, name, value, T, D, CLASS, ARG) [value] = {gather_##name##_32, gather_##name##_64},
static gather_loop *const table[SPMV_TYPE_LIMIT][2] = {SPMV_TYPE_LIST(ROW, )};

gather_loop *gather_loop_for(spmv_type type, int index_bits)
{
    return table[type][index_bits == 64];
}

/* scatter's loops: see scatter_loops.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "scatter_loops.h"

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

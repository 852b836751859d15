/* gather's loop over a part of the index, for every type and both widths: what both host backends run.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "moves.h"

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
typedef void gather_loop(const void *in, int64_t in_n, const void *index, void *out, int64_t from, int64_t to);
static gather_loop *const table[SPMV_TYPE_LIMIT][2] = {SPMV_TYPE_LIST(ROW, )};

#define DEFINE_MASKED(name, T, Index)                                                                                  \
    static void name(const void *in, int64_t in_n, const void *index, const uint8_t *mask, void *out, int64_t from,    \
                     int64_t to)                                                                                       \
    {                                                                                                                  \
        for (int64_t i = from; i < to; i++) {                                                                          \
            const int64_t at = ((const Index *)index)[i];                                                              \
            if (mask[i] != 0 && (uint64_t)at < (uint64_t)in_n)                                                         \
                ((T *)out)[i] = ((const T *)in)[at];                                                                   \
        }                                                                                                              \
    }
#undef DEFINE
#define DEFINE(NAME, name, value, T, D, CLASS, ARG)                                                                    \
    DEFINE_MASKED(gather_masked_##name##_32, T, int32_t)                                                               \
    DEFINE_MASKED(gather_masked_##name##_64, T, int64_t)
SPMV_TYPE_LIST(DEFINE, )
#undef DEFINE

#undef ROW
#define ROW(NAME, name, value, T, D, CLASS, ARG) [value] = {gather_masked_##name##_32, gather_masked_##name##_64},
typedef void gather_masked_loop(const void *in, int64_t in_n, const void *index, const uint8_t *mask, void *out,
                                int64_t from, int64_t to);
static gather_masked_loop *const masked_table[SPMV_TYPE_LIMIT][2] = {SPMV_TYPE_LIST(ROW, )};
#undef ROW

#define DEFINE_IF(name, T, Index, predicate)                                                                           \
    static void name(const void *in, int64_t in_n, const void *index, const void *scalar, bool when, void *out,        \
                     int64_t from, int64_t to)                                                                         \
    {                                                                                                                  \
        const T s = *(const T *)scalar;                                                                                \
        for (int64_t i = from; i < to; i++) {                                                                          \
            const int64_t at = ((const Index *)index)[i];                                                              \
            if ((uint64_t)at < (uint64_t)in_n && predicate(((const T *)in)[at], s) == when)                            \
                ((T *)out)[i] = ((const T *)in)[at];                                                                   \
        }                                                                                                              \
    }
#define DEFINE(NAME, name, TYPE, type, T, D, CLASS)                                                                    \
    DEFINE_IF(gather_##name##_##type##_32, T, int32_t, predicate_##name##_##type)                                      \
    DEFINE_IF(gather_##name##_##type##_64, T, int64_t, predicate_##name##_##type)
SPMV_PREDICATE_PAIR_LIST(DEFINE)

#define ROW(NAME, name, TYPE, type, T, D, CLASS)                                                                       \
    [SPMV_IS_##NAME][SPMV_##TYPE] = {gather_##name##_##type##_32, gather_##name##_##type##_64},
typedef void gather_if_loop(const void *in, int64_t in_n, const void *index, const void *scalar, bool when, void *out,
                            int64_t from, int64_t to);
static gather_if_loop *const if_table[SPMV_PREDICATE_LIMIT][SPMV_TYPE_LIMIT][2] = {SPMV_PREDICATE_PAIR_LIST(ROW)};

void gather_part(const struct move *m, int64_t from, int64_t to)
{
    const struct filter *const f = m->filter;
    const int wide = m->index_bits == 64;
    if (f == NULL)
        table[m->type][wide](m->in, m->cells, m->index, m->out, from, to);
    else if (f->mask != NULL)
        masked_table[m->type][wide](m->in, m->cells, m->index, f->mask, m->out, from, to);
    else
        if_table[f->predicate][m->type][wide](m->in, m->cells, m->index, &f->scalar, f->when, m->out, from, to);
}

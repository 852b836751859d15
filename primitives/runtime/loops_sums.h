/* The serial loops of sums of numbers, on vectors of 16 bytes: see loops.h for what they compute and loops_sums.c for
 * how. Sums are what most callers ask for; addition commutes, so a fold may share its elements out to lanes.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef LOOPS_SUMS_H
#define LOOPS_SUMS_H

#include <spmv/types.h>
#include <stdbool.h>

/* X(TYPE, type, C type, type of a lane, type of its mask, lanes of 16 bytes, class). Integers wrap, so their lanes have
 * no sign. */
#define SUM_LIST(X)                                                                                                    \
    X(I32, i32, int32_t, uint32_t, int32_t, 4, INTEGER)                                                                \
    X(I64, i64, int64_t, uint64_t, int64_t, 2, INTEGER)                                                                \
    X(F32, f32, float, float, int32_t, 4, REAL)                                                                        \
    X(F64, f64, double, double, int64_t, 2, REAL)

/* Segments that are summed side by side. */
enum { SUM_GROUP = 8 };

#define SUM_PROTOTYPES_(TYPE, type, T, Lane, Mask, lanes, CLASS)                                                         \
    /* in[begin] + ... + in[end-1], begin < end <= limit; elements before limit may be read */                           \
    T sum_run_##type(const T *in, int64_t begin, int64_t end, int64_t limit);                                            \
    /* out[j] = in[head[j]] + ... + in[head[j + 1] - 1], 0 when there are none, 0 <= j < SUM_GROUP; none has more than \
     * longest; that many elements behind head[SUM_GROUP] may be read */ \
    void sum_side_by_side_##type(const T *in, const int64_t *head, int64_t longest, T *out);                             \
    void sum_fold_##type(const void *in, int64_t begin, int64_t end, void *out);                                         \
    void sum_inclusive_##type(const void *carry, const void *in, void *out, int64_t begin, int64_t end, bool stream);    \
    void sum_exclusive_##type(const void *carry, const void *in, void *out, int64_t begin, int64_t end, bool stream);    \
    void sum_seg_inclusive_##type(const void *carry, const uint8_t *heads, const void *in, void *out, int64_t begin,     \
                                  int64_t end, bool stream);                                                             \
    void sum_seg_exclusive_##type(const void *carry, const uint8_t *heads, const void *in, void *out, int64_t begin,     \
                                  int64_t end, bool stream);
SUM_LIST(SUM_PROTOTYPES_)
#undef SUM_PROTOTYPES_

#endif

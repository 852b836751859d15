/* Shared by the teaching rungs of reduce: launches level after level until one result is left, or
 * few enough for the host. A level is a program of steps.cuh that folds EACH neighbours, or a
 * block's share, to one.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SPMV_REDUCE_LEVELS_CUH
#define SPMV_REDUCE_LEVELS_CUH

#include <stdio.h>

#include "device/ops.cuh"
#include "device/steps.cuh"

/* Threads of a block, and the number of steps in which they fold their elements to one. */
enum { REDUCE_THREADS = 256, REDUCE_HALVINGS = 8 };
static_assert(1 << REDUCE_HALVINGS == REDUCE_THREADS, "a block is halved until one is left");

/* Partial results in order, in the memory of the place. If count is 1, the result, already in its
 * final place. */
template <typename T> struct reduce_left {
    const T *sums;
    int64_t count;
};

inline int64_t reduce_ceil(int64_t n, int64_t each)
{
    return n / each + (n % each != 0);
}

/* Cells of a block that a trace shows; the others have no elements. */
inline int reduce_room(int64_t left)
{
    return left < REDUCE_THREADS ? (int)left : (int)REDUCE_THREADS;
}

/* Whether step s of a block, which folds cells at distance apart, folds only the identity into the
 * cells with elements. */
inline bool reduce_idle(int s, int apart, int64_t left)
{
    return s >= 1 && s <= REDUCE_HALVINGS && apart >= reduce_room(left);
}

/* Elements of scratch for reduce_levels: two levels of results, because a level reads those of the
 * level before. */
inline int64_t reduce_levels_scratch(int64_t n, int64_t each)
{
    return reduce_ceil(n, each) + reduce_ceil(reduce_ceil(n, each), each);
}

/* Folds n elements to at most `few`, n > 0. If few is 1, the result is in out. */
template <typename Level, typename Place>
spmv_status reduce_levels(Place &place, const typename Level::T *in, typename Level::T *out, int64_t n,
                          typename Level::T *scratch, int64_t few, reduce_left<typename Level::T> *left)
{
    using T = typename Level::T;
    T *const rooms[2] = {scratch, scratch + reduce_ceil(n, Level::EACH)};
    *left = {in, n};
    for (int level = 0; left->count > few || (level == 0 && few == 1); level++) {
        const int64_t count = left->count, next = reduce_ceil(count, Level::EACH);
        T *const to = next == 1 && few == 1 ? out : rooms[level % 2];
        const spmv_status st = place.run(Level::name(), Level{left->sums, to, count},
                                         reduce_ceil(count, Level::BLOCK_ELEMENTS), REDUCE_THREADS);
        if (st != SPMV_OK)
            return st;
        *left = {to, next};
    }
    return SPMV_OK;
}

/* Shared memory of a block with one element per thread. */
template <typename T> struct reduce_cells {
    T x[REDUCE_THREADS];
};

struct reduce_nothing {
};

#endif

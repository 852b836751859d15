/* How many OpenMP threads a context has, and how many a loop uses.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef THREADS_H
#define THREADS_H

#include "core/runtime.h"

/* Starting a team costs more than the iterations of a short loop. These are the shortest loops, in
 * elements (some 0.5 to 1 ns each), that are worth a team. Measured in
 * docs/notebook/cpu-threads.md.
 * TEAM_WORTH_AWAKE: for loops in quick succession, as in a solver. The threads still spin, and a
 * team starts in a few microseconds.
 * TEAM_WORTH_ASLEEP: for single loops, such as counting or filling. The threads sleep, and waking
 * them takes 50 microseconds, on a busy machine 200 and more. */
enum { TEAM_WORTH_AWAKE = 1 << 16, TEAM_WORTH_ASLEEP = 1 << 18 };

/* Threads for a loop over this many elements, with `worth` the smallest number that is worth a
 * team: all threads of the context, or one. There is only one team size because libgomp ends and
 * starts threads whenever the size changes, which costs more than such a loop. No result may depend
 * on it. */
static inline int team_threads(const spmv_context *ctx, int64_t elements, int64_t worth)
{
    return elements >= worth ? ctx->threads : 1;
}

/* The same for a single loop. */
static inline int host_team(const spmv_context *ctx, int64_t elements)
{
    return team_threads(ctx, elements, TEAM_WORTH_ASLEEP);
}

/* The same for a loop whose elements cost some eight times as much: a product that goes into a table, a search, or an
 * entry that is moved to a place found by counting. */
static inline int heavy_team(const spmv_context *ctx, int64_t elements)
{
    return team_threads(ctx, elements, TEAM_WORTH_ASLEEP / 8);
}

/* Sets ctx->threads. If asked is 0: OpenMP's default (OMP_NUM_THREADS, else the processors of the
 * affinity mask), limited by the CPU quota of the control groups and by what can be started; the
 * latter with a warning event. Another value (at most SPMV_MAX_THREADS) is used unchanged, or the
 * call fails: SPMV_ERROR_ARGUMENT if the stacks of OpenMP's threads are too small,
 * SPMV_ERROR_MEMORY if the system does not start that many threads. OpenMP would end the process in
 * both cases. */
spmv_status context_set_threads(spmv_context *ctx, int asked);

#endif

/* How many OpenMP threads a context has, and how many a loop asks for.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef THREADS_H
#define THREADS_H

#include "runtime.h"

/* A loop that begins a team costs more than its iterations when it is short. These are the shortest loops that are
 * worth a team, in elements (some 0.5 to 1 ns each). Measured in docs/notebook/cpu-threads.md.
 *   TEAM_WORTH_AWAKE: loops that follow each other at once, as in a solver: the threads still spin, and a team begins
 *   in a few microseconds.
 *   TEAM_WORTH_ASLEEP: loops of their own, such as counting or filling: the threads sleep, and waking them takes 50
 *   microseconds, on a busy machine 200 and more. */
enum { TEAM_WORTH_AWAKE = 1 << 16, TEAM_WORTH_ASLEEP = 1 << 18 };

/* Threads for a loop over so many elements, of which `worth` make a team worth its start: all threads of the context or
 * one. Teams of one size only, because libgomp ends and starts threads each time that the size changes, which costs
 * more than such a loop. No result may depend on it. */
static inline int team_threads(const spmv_context *ctx, int64_t elements, int64_t worth)
{
    return elements >= worth ? ctx->threads : 1;
}

/* The same for a loop of its own. */
static inline int host_team(const spmv_context *ctx, int64_t elements)
{
    return team_threads(ctx, elements, TEAM_WORTH_ASLEEP);
}

/* Sets ctx->threads. asked 0: what OpenMP offers (OMP_NUM_THREADS, else the processors of the affinity mask), at most
 * what the CPU quota of the control groups is worth and what can be started, with a warning event for the latter. A
 * number that the caller asks for (at most SPMV_MAX_THREADS) is kept or refused: SPMV_ERROR_ARGUMENT where the stacks of
 * OpenMP's threads are too small, SPMV_ERROR_MEMORY where the system does not let so many threads start. OpenMP would
 * end the process in both cases. */
spmv_status context_set_threads(spmv_context *ctx, int asked);

#endif

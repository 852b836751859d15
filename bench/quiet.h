/* The load by other processes, and whether it makes measured times unreliable.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef BENCH_QUIET_H
#define BENCH_QUIET_H

#include <stdbool.h>
#include <stddef.h>

#include "bench/timing.h"

/* Time of a set of processors, in clock ticks since boot. */
struct processor_ticks {
    double busy, total;
};

/* Adds a line of /proc/stat if it is that of one processor of the list ("0-3,8"; "": every
 * processor). Steal time of a virtual machine counts as busy. False: not such a line. */
bool processor_ticks_add(const char *line, const char *list, struct processor_ticks *ticks);

/* The share of the processors, 0 to 1, used by other processes between two readings. own: the ticks
 * that this process used. Returns -1 if no time passed. */
double others_share(const struct processor_ticks *before, const struct processor_ticks *after, double own);

struct machine_load {
    double load_average;    /* of the last minute, of the whole machine; -1: unknown */
    double others_share;    /* of the processors of this process; -1: unknown */
    int processors;         /* that this process may use */
    int machine_processors; /* online processors */
};

/* Measures the load for 0.2 seconds. The caller should have no work running meanwhile. */
struct machine_load machine_load_measure(void);

/* The reason why times of this many threads are unreliable under this load, without a full stop;
 * "": none. Limits: a tenth of the processors used by others, a load average of 1.5 per
 * processor. */
void machine_load_doubt(const struct machine_load *load, int threads, char *text, size_t size);

/* median / minimum - 1; 0 if nothing was measured. */
double timing_spread(const struct timing *t);

/* Whether the spread is at most a fifth, so that the times are comparable. */
bool timing_steady(const struct timing *t);

#endif

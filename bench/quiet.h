/* How busy the machine is with other work, and what that means for measured times.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef BENCH_QUIET_H
#define BENCH_QUIET_H

#include <stdbool.h>
#include <stddef.h>

#include "timing.h"

/* Time that a set of processors spent, in clock ticks since the machine started. */
struct processor_ticks {
    double busy, total;
};

/* Adds a line of /proc/stat if it is that of one processor of the list ("0-3,8"; "": every
 * processor). Time that a virtual machine's host took away counts as busy. False: it is no such
 * line. */
bool processor_ticks_add(const char *line, const char *list, struct processor_ticks *ticks);

/* The share of the processors, 0 to 1, that other processes used between two readings; own: the
 * ticks that this process used. Returns -1 when no time passed. */
double others_share(const struct processor_ticks *before, const struct processor_ticks *after, double own);

struct machine_load {
    double load_average;    /* of the last minute, of the whole machine; -1: not known */
    double others_share;    /* of the processors of this process; -1: not known */
    int processors;         /* that this process may use */
    int machine_processors; /* that are switched on */
};

/* Watches the machine for a fifth of a second, in which the caller should have no work under
 * way. */
struct machine_load machine_load_measure(void);

/* Why times that so many threads take cannot be trusted under this load, without a full stop; "":
 * nothing is known against them. Others may use a tenth of the processors; the load average may be
 * 1.5 a processor. */
void machine_load_doubt(const struct machine_load *load, int threads, char *text, size_t size);

/* Median over minimum, less 1. 0 where nothing was measured. */
double timing_spread(const struct timing *t);

/* The spread is at most a fifth: the times can be compared with others. */
bool timing_steady(const struct timing *t);

#endif

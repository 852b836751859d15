/* The clocks of all measured times.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef CLOCK_H
#define CLOCK_H

#include <time.h>

static inline double clock_seconds(clockid_t clock)
{
    struct timespec t = {0};
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Seconds since a fixed moment; never decreases. */
static inline double monotonic_seconds(void)
{
    return clock_seconds(CLOCK_MONOTONIC);
}

/* Seconds that the processors have worked for this process. */
static inline double processor_seconds(void)
{
    return clock_seconds(CLOCK_PROCESS_CPUTIME_ID);
}

#endif

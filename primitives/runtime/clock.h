/* The clock of all measured times.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef CLOCK_H
#define CLOCK_H

#include <time.h>

/* Seconds since a fixed moment; never decreases. */
static inline double monotonic_seconds(void)
{
    struct timespec t = {0};
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

#endif

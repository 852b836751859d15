/* Timing: a clock and the summary of repeated measurements.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef BENCH_TIMING_H
#define BENCH_TIMING_H

#include "core/clock.h"

struct timing {
    /* seconds; the median of an even number of samples is the mean of the middle two */
    double median, min, max;
    int repeats;
};

/* The summary of n samples, which are sorted. n == 0: all zeros. */
struct timing timing_summary(double *samples, int n);

#endif

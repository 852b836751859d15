/* Timing: a clock and the summary of repeated measurements.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef BENCH_TIMING_H
#define BENCH_TIMING_H

struct timing {
    /* seconds; the median of an even number of samples is the mean of the middle two */
    double median, min, max;
    int repeats;
};

/* Seconds since a fixed moment; never decreases. */
double monotonic_seconds(void);

/* The summary of n samples, which are sorted. n == 0: all zeros. */
struct timing timing_summary(double *samples, int n);

#endif

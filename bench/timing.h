/* Timing: a clock and the summary of repeated measurements.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef BENCH_TIMING_H
#define BENCH_TIMING_H

struct timing {
    double median, min, max; /* seconds; the median of an even number of samples is the mean of the middle two */
    int repeats;
};

/* Seconds since some fixed moment; never goes back. */
double monotonic_seconds(void);

/* The summary of n samples, which it sorts. n == 0: all zeros. */
struct timing timing_summary(double *samples, int n);

#endif

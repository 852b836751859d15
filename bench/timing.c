/* The summary of repeated measurements.
 *
 * The median is used and not the mean, because it is insensitive to single interruptions.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "bench/timing.h"

#include <stdlib.h>

static int compare_doubles(const void *left, const void *right)
{
    const double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

struct timing timing_summary(double *samples, int n)
{
    struct timing t = {.repeats = n};
    if (n > 0) {
        qsort(samples, (size_t)n, sizeof *samples, compare_doubles);
        t.min = samples[0];
        t.max = samples[n - 1];
        t.median = 0.5 * (samples[(n - 1) / 2] + samples[n / 2]);
    }
    return t;
}

/* Measures several systems that do the same work: in turn, until the results are stable.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef BENCH_MEASURE_H
#define BENCH_MEASURE_H

#include <stdbool.h>

#include "bench/devices/device.h"
#include "bench/timing.h"

/* A system that can be run and timed. run and run_timed as in struct peer. */
struct contender {
    int (*run)(void *state);
    int (*run_timed)(void *state, int repeats, double *seconds); /* NULL: by the device's clock */
    void *state;
    /* set by measure */
    struct timing warm; /* seconds per run in consecutive runs; repeats: number of batches */
    /* seconds of single runs, each with emptied caches; repeats 0: not measured */
    struct timing flushed;
    int batch;   /* runs per batch */
    double last; /* seconds per run in the last batch */
    bool failed; /* with the reason in why; all times are then 0 */
    char why[WHY_SIZE];
};

/* Runs from this length on are repeated less often and need no untimed run before them. */
#define LONG_RUN_SECONDS 0.5

struct measure_options {
    double batch_seconds; /* least duration of a batch, unless it has most_runs */
    int most_runs;        /* per batch */
    /* rounds of the warm measurement, with a batch of every contender each */
    int least_rounds, most_rounds;
    double spread;                    /* relative error of each median that ends the measurement */
    int flushed_rounds, flushed_runs; /* rounds, and runs per contender and round; 0: none */
    double budget_seconds;            /* no round begins later, except the first least_rounds */
    /* runs of this length need no untimed run before them; 0: all need one */
    double long_seconds;
};

/* Defaults for the GPU (short batches between events) or the CPU. */
void measure_defaults(bool gpu, struct measure_options *options);

/* The relative error of the median of n samples, from their quartiles: 1.58 (q3 - q1) / (sqrt(n)
 * median), the notch of a box plot (McGill, Tukey, Larsen, "Variations of box plots", 1978). Sorts
 * the samples. */
double measure_spread(double *samples, int n);

/* Called before each batch. A result other than 0 ends the measurement early; contenders keep the
 * results so far. */
typedef int (*measure_tick)(void *user, int contender);

/* Measures count contenders. Each is warmed up until two batches agree within 5 %. Then follow
 * rounds with a batch of every contender, in an order that rotates by one each round, and then
 * rounds of flushed runs. Returns 0, or -1 with a message in why if memory is out or the device
 * failed. A contender that fails is skipped from then on. */
int measure(struct device *device, struct contender *contenders, int count, const struct measure_options *options,
            measure_tick tick, void *user, char *why);

#endif

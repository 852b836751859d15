/* Measuring several systems that do the same work: in turn, until the figures stand still.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef BENCH_MEASURE_H
#define BENCH_MEASURE_H

#include <stdbool.h>

#include "device.h"
#include "timing.h"

/* Something that can be run and timed. run and run_timed as in struct peer. */
struct contender {
    int (*run)(void *state);
    int (*run_timed)(void *state, int repeats, double *seconds); /* NULL: by the device's clock */
    void *state;
    /* set by measure */
    struct timing warm;    /* seconds a run, one directly after the other; repeats: of batches */
    struct timing flushed; /* seconds of single runs, each after the caches were overwritten; repeats 0: not measured */
    int batch;             /* runs that a batch has */
    double last;           /* seconds a run that the last batch took */
    bool failed;           /* why says so; the figures are then all zeros */
    char why[WHY_SIZE];
};

/* Seconds from which a run is long: it is repeated less often, and warms itself up. */
#define LONG_RUN_SECONDS 0.5

struct measure_options {
    double batch_seconds;             /* a batch lasts at least so long, unless it has most_runs */
    int most_runs;                    /* runs of a batch */
    int least_rounds, most_rounds;    /* rounds of the warm measurement: a batch of every contender */
    double spread;                    /* done when the median of each is known to this relative error */
    int flushed_rounds, flushed_runs; /* rounds, and runs of each contender a round; 0: none */
    double budget_seconds;            /* no round begins later than that, except the first least_rounds */
    double long_seconds;              /* a run that lasts so long warms itself up: none goes before it; 0: no such */
};

/* Asked for the GPU (short batches between events) or the CPU. */
void measure_defaults(bool gpu, struct measure_options *options);

/* The relative error of the median of n samples, from the distance of their quartiles: 1.58 (q3 - q1) / (sqrt(n)
 * median), the notch of a box plot (McGill, Tukey, Larsen, "Variations of box plots", 1978). Sorts them. */
double measure_spread(double *samples, int n);

/* Called before each batch; anything but 0 ends the measurement early: the contenders keep what is there. */
typedef int (*measure_tick)(void *user, int contender);

/* Measures count contenders: each is warmed up until two batches agree within 5 %, then come rounds in which every
 * contender has a batch, in an order that turns by one each round; then rounds of flushed runs. Returns 0, or -1 with a
 * sentence in why when memory is out or the device failed; a contender that fails is left out from then on. */
int measure(struct device *device, struct contender *contenders, int count, const struct measure_options *options,
            measure_tick tick, void *user, char *why);

#endif

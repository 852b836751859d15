/* The rounds of a measurement.
 *
 * Contenders take turns, so that a temporary disturbance of the machine affects all of them. Each
 * makes one untimed run before its batch, so that it does not start with the cache contents of the
 * one before.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "bench/measure.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/faults.h"

enum { WARM_UPS = 8, MOST_ROUNDS = 64 };
static const double agreement = 0.05; /* relative difference of two batches that ends the warm-up */

void measure_defaults(bool gpu, struct measure_options *options)
{
    *options = (struct measure_options){.batch_seconds = gpu ? 1e-3 : 10e-3,
                                        .most_runs = gpu ? 512 : 4096,
                                        .least_rounds = 5,
                                        .most_rounds = gpu ? 25 : 15,
                                        .spread = 0.01,
                                        .flushed_rounds = 3,
                                        .flushed_runs = gpu ? 7 : 3,
                                        .budget_seconds = gpu ? 2 : 1.5};
    if (fault_text(FAULT_SHORT_TIMES) != NULL) {
        options->batch_seconds /= 10;
        options->budget_seconds /= 10;
    }
}

double measure_spread(double *samples, int n)
{
    if (n < 2)
        return INFINITY;
    const double median = timing_summary(samples, n).median;
    const double q1 = samples[(n - 1) / 4], q3 = samples[n - 1 - (n - 1) / 4];
    return median > 0 ? 1.58 * (q3 - q1) / (sqrt((double)n) * median) : 0;
}

struct turn {
    struct device *device;
    struct contender *contenders;
    int count;
    const struct measure_options *options;
    measure_tick tick;
    void *user;
    double *samples; /* of contender c: from index c * MOST_ROUNDS on */
    int *taken;      /* number of samples of each */
    bool ended;
};

static bool tick(struct turn *t, int c)
{
    t->ended = t->ended || (t->tick != NULL && t->tick(t->user, c) != 0);
    return !t->ended;
}

/* Removes a contender that failed. */
static void drop(struct contender *c, const char *why)
{
    c->failed = true;
    c->warm = c->flushed = (struct timing){0};
    if (why != c->why)
        snprintf(c->why, sizeof c->why, "%s", why);
}

/* *seconds of a batch of this many runs. False: the contender failed. */
static bool time_batch(struct turn *t, struct contender *c, int runs, double *seconds)
{
    c->why[0] = '\0';
    const int failed = c->run_timed != NULL
                           ? c->run_timed(c->state, runs, seconds)
                           : t->device->functions->time_batch(t->device, c->run, c->state, runs, seconds, c->why);
    if (failed != 0)
        drop(c, c->why[0] != '\0' ? c->why : "a run failed");
    return failed == 0;
}

static bool is_long(const struct turn *t, const struct contender *c)
{
    return t->options->long_seconds > 0 && c->last >= t->options->long_seconds;
}

/* Finds the number of runs that last long enough, and repeats such batches until two of them
 * agree. */
static void warm_up(struct turn *t, struct contender *c)
{
    double seconds = 0, before = 0;
    const struct measure_options *o = t->options;
    for (c->batch = 1;;) {
        if (!time_batch(t, c, c->batch, &seconds))
            return;
        c->last = seconds / c->batch;
        if (seconds >= o->batch_seconds || c->batch >= o->most_runs)
            break;
        const double wanted = seconds > 0 ? 1.2 * o->batch_seconds / seconds * c->batch : 8.0 * c->batch;
        const double runs = fmin(fmax(wanted, 2.0 * c->batch), fmin(8.0 * c->batch, o->most_runs));
        c->batch = (int)runs;
    }
    for (int i = 0; i < WARM_UPS && !is_long(t, c); i++) {
        before = seconds;
        if (!time_batch(t, c, c->batch, &seconds) || fabs(seconds - before) <= agreement * before)
            return;
    }
}

/* Times one batch of a contender, after an untimed run. */
static void take_warm_sample(struct turn *t, int number)
{
    struct contender *const c = &t->contenders[number];
    double seconds = 0;
    if (c->failed || (!is_long(t, c) && !time_batch(t, c, 1, &seconds)) || !time_batch(t, c, c->batch, &seconds))
        return;
    c->last = seconds / c->batch;
    t->samples[number * MOST_ROUNDS + t->taken[number]++] = seconds / c->batch;
}

/* Whether every median is known accurately enough. Sorts the samples. */
static bool stands_still(const struct turn *t)
{
    for (int c = 0; c < t->count; c++)
        if (!t->contenders[c].failed &&
            measure_spread(t->samples + (ptrdiff_t)c * MOST_ROUNDS, t->taken[c]) > t->options->spread)
            return false;
    return true;
}

static void measure_warm(struct turn *t)
{
    const double began = monotonic_seconds();
    const int most = t->options->most_rounds < MOST_ROUNDS ? t->options->most_rounds : MOST_ROUNDS;
    for (int round = 0; round < most && !t->ended; round++) {
        if (round >= t->options->least_rounds &&
            (stands_still(t) || monotonic_seconds() - began > t->options->budget_seconds))
            break;
        for (int i = 0; i < t->count; i++) {
            const int c = (i + round) % t->count;
            if (!tick(t, c))
                break;
            take_warm_sample(t, c);
        }
    }
    for (int c = 0; c < t->count; c++)
        if (!t->contenders[c].failed)
            t->contenders[c].warm = timing_summary(t->samples + (ptrdiff_t)c * MOST_ROUNDS, t->taken[c]);
}

/* Times this many single runs, each with cold caches. */
static void take_flushed_samples(struct turn *t, int number, int runs)
{
    struct contender *const c = &t->contenders[number];
    double *const to = t->samples + (ptrdiff_t)number * MOST_ROUNDS + t->taken[number];
    int failed = 0;
    if (c->failed)
        return;
    c->why[0] = '\0';
    if (c->run_timed == NULL)
        failed = t->device->functions->time_flushed(t->device, c->run, c->state, runs, to, c->why);
    for (int i = 0; c->run_timed != NULL && i < runs && failed == 0; i++) {
        failed = t->device->functions->flush(t->device, c->why);
        if (failed == 0)
            failed = c->run_timed(c->state, 1, &to[i]);
    }
    if (failed != 0)
        drop(c, c->why[0] != '\0' ? c->why : "a run failed");
    else
        t->taken[number] += runs;
}

static void measure_flushed(struct turn *t)
{
    const int runs = t->options->flushed_runs, rounds = t->options->flushed_rounds;
    const double began = monotonic_seconds();
    memset(t->taken, 0, (size_t)t->count * sizeof *t->taken);
    for (int round = 0; round < rounds && (round + 1) * runs <= MOST_ROUNDS && !t->ended; round++) {
        if (round > 0 && monotonic_seconds() - began > t->options->budget_seconds)
            break;
        for (int i = 0; i < t->count; i++) {
            const int c = (i + round) % t->count;
            if (!tick(t, c))
                break;
            take_flushed_samples(t, c, runs);
        }
    }
    for (int c = 0; c < t->count; c++)
        if (!t->contenders[c].failed)
            t->contenders[c].flushed = timing_summary(t->samples + (ptrdiff_t)c * MOST_ROUNDS, t->taken[c]);
}

int measure(struct device *device, struct contender *contenders, int count, const struct measure_options *options,
            measure_tick tick_function, void *user, char *why)
{
    struct turn t = {.device = device,
                     .contenders = contenders,
                     .count = count,
                     .options = options,
                     .tick = tick_function,
                     .user = user,
                     .samples = calloc((size_t)count * MOST_ROUNDS + 1, sizeof(double)),
                     .taken = calloc((size_t)count + 1, sizeof(int))};
    int failed = t.samples == NULL || t.taken == NULL ? -1 : 0;
    if (failed != 0)
        snprintf(why, WHY_SIZE, "measuring %d systems: no memory for %d samples", count, count * MOST_ROUNDS);
    for (int c = 0; failed == 0 && c < count; c++)
        if (!contenders[c].failed && tick(&t, c))
            warm_up(&t, &contenders[c]);
    if (failed == 0 && count > 0) {
        measure_warm(&t);
        measure_flushed(&t);
        failed = device->functions->wait(device, why);
    }
    free(t.samples);
    free(t.taken);
    return failed;
}

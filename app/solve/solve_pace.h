/* Estimates the remaining iterations of a solve, without a clock. See solve_pace.c.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SOLVE_PACE_H
#define SOLVE_PACE_H

#include <stdbool.h>
#include <stdint.h>

/* Enough for windows of an eighth of the iterations. */
enum { PACE_SAMPLES = 512 };

struct pace {
    double samples[PACE_SAMPLES]; /* log of the lowest residual up to iteration i stride */
    double lowest;
    int64_t iteration, stride;
    int count;
};

/* Adds the residual of iteration 0, 1, ...; 0 starts again. */
void pace_add(struct pace *p, int64_t iteration, double residual);

/* Iterations until the residual reaches goal; -1 if unknown. */
double pace_left(const struct pace *p, double goal);

#endif

/* spmv solve: estimates the remaining iterations from the residuals so far.
 *
 * Residuals of conjugate gradients oscillate. So the lowest residual so far is stored, as a
 * logarithm, at up to PACE_SAMPLES iterations; a full table drops every second sample. A line
 * through the last half of the iterations and one through the last quarter each give the remaining
 * iterations, and the estimate is their geometric mean. It counts as stable if
 *
 *   - the totals estimated at half and at three quarters of the iterations agree with the
 *     present one, and
 *   - it is at most a few times the iterations done.
 *
 * A residual that stagnates and then falls fails these tests.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>

#include "app/solve/solve_pace.h"

/* Chosen on 22 recorded solves (docs/notebook/conjugate-gradients.md). */
static const double total_agree = 1.25, far_ahead = 4;

/* Below this number of iterations there is no estimate. */
enum { LEAST_ITERATIONS = 64 };

void pace_add(struct pace *p, int64_t iteration, double residual)
{
    if (iteration <= 0 || p->stride == 0)
        *p = (struct pace){.stride = 1, .lowest = INFINITY};
    if (residual > 0 && log(residual) < p->lowest)
        p->lowest = log(residual);
    p->iteration = iteration;
    if (iteration % p->stride != 0)
        return;
    if (p->count == PACE_SAMPLES) {
        for (int i = 0; i < PACE_SAMPLES / 2; i++)
            p->samples[i] = p->samples[2 * i];
        p->count = PACE_SAMPLES / 2;
        p->stride *= 2;
        if (iteration % p->stride != 0)
            return;
    }
    p->samples[p->count++] = p->lowest;
}

/* Remaining samples from sample last on, by the line from sample first to it; infinite if the
 * residual did not fall. */
static double left_by(const struct pace *p, int first, int last, double goal)
{
    const double fallen = p->samples[first] - p->samples[last];
    return fallen > 0 ? (p->samples[last] - goal) * (last - first) / fallen : INFINITY;
}

static bool alike(double a, double b, double factor)
{
    return isfinite(a) && isfinite(b) && a <= factor * b && b <= factor * a;
}

double pace_left(const struct pace *p, double goal)
{
    const int last = p->count - 1;
    if (p->iteration < LEAST_ITERATIONS || last < 8 || !(goal > 0) || !isfinite(p->samples[last]))
        return -1;
    const double end = log(goal);
    if (p->samples[last] <= end)
        return 0;
    const double half = left_by(p, last / 2, last, end), quarter = left_by(p, last / 4 * 3, last, end);
    const double left = sqrt(half * quarter);
    if (!(left <= far_ahead * last))
        return -1;
    const int earlier[] = {last / 2, last / 4 * 3};
    for (int i = 0; i < 2; i++)
        if (!alike(earlier[i] + left_by(p, earlier[i] / 2, earlier[i], end), last + left, total_agree))
            return -1;
    return left * (double)p->stride;
}

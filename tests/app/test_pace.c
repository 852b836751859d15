/* Estimates the remaining iterations of a solve from its residuals (app/solve/solve_pace.c).
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>

#include "app/solve/solve_pace.h"
#include "tests/support/support.h"

static struct pace pace;

/* Adds the residuals of iterations 0 to last and returns the estimate. */
static double after(int64_t last, double (*residual)(int64_t iteration), double goal)
{
    for (int64_t i = 0; i <= last; i++)
        pace_add(&pace, i, residual(i));
    return pace_left(&pace, goal);
}

/* Falls by a factor of 10 in 100 iterations. */
static double steady(int64_t i)
{
    return 3e4 * pow(10, -(double)i / 100);
}

/* Falls by a factor of 10 in 10000 iterations. */
static double gentle(int64_t i)
{
    return pow(10, -(double)i / 10000);
}

/* Like steady, with jumps of up to a factor of 100. */
static double jumping(int64_t i)
{
    return steady(i) * (i % 7 == 0 ? 1 : i % 3 == 0 ? 100 : 8);
}

/* Stagnates for 1000 iterations, then like steady. */
static double late(int64_t i)
{
    return i < 1000 ? 3e4 + (double)(i % 5) : steady(i - 1000);
}

/* Slows down: a power of the iteration. */
static double slowing(int64_t i)
{
    return 1 / (1 + (double)i);
}

/* Accelerates. */
static double hastening(int64_t i)
{
    return exp(-1e-5 * (double)i * (double)i);
}

static double growing(int64_t i)
{
    return 1 + (double)i;
}

static void steady_residuals_are_foreseen(void **state)
{
    (void)state;
    /* From 3e4 to 3e-6 takes 1000 iterations. */
    const int64_t lasts[] = {400, 511, 512, 513, 700, 950};
    for (size_t k = 0; k < sizeof lasts / sizeof *lasts; k++) {
        assert_true(fabs(after(lasts[k], steady, 3e-6) - (double)(1000 - lasts[k])) <= 4);
        assert_true(fabs(after(lasts[k], jumping, 3e-6) - (double)(1000 - lasts[k])) <= 0.1 * 1000);
    }
    /* More samples than there is room for, so they are halved several times. */
    assert_true(fabs(after(50000, gentle, 1e-6) - 10000) <= 300);
}

static void what_is_not_stable_is_not_told(void **state)
{
    (void)state;
    for (int64_t last = 0; last < 64; last++)
        assert_true(after(last, steady, 3e-6) == -1);
    for (int64_t last = 0; last < 1500; last += 100)
        assert_true(after(last, late, 3e-6) == -1);
    for (int64_t last = 100; last < 20000; last += 700) {
        assert_true(after(last, slowing, 1e-8) == -1);
        assert_true(after(last, growing, 1e-8) == -1);
    }
    for (int64_t last = 100; last < 900; last += 100)
        assert_true(after(last, hastening, exp(-10)) == -1);
    /* A goal further ahead than 4 times the iterations so far. */
    assert_true(after(100, gentle, 1e-6) == -1);
    assert_true(after(100, gentle, gentle(400)) > 0);
}

static void odd_numbers(void **state)
{
    (void)state;
    assert_true(after(400, steady, 0) == -1);
    assert_true(after(400, steady, NAN) == -1);
    assert_true(after(400, steady, INFINITY) == 0);
    assert_true(after(400, steady, steady(300)) == 0);
    pace_add(&pace, 401, NAN);
    pace_add(&pace, 402, 0);
    pace_add(&pace, 403, INFINITY);
    assert_true(fabs(pace_left(&pace, 3e-6) - 600) <= 20);
    pace = (struct pace){.count = 0};
    assert_true(pace_left(&pace, 1) == -1);
    pace_add(&pace, 1, 5); /* iteration 0 is missing */
    assert_true(pace_left(&pace, 1) == -1);
    assert_true(pace.count >= 0 && pace.stride == 1);
}

static void iteration_0_begins_anew(void **state)
{
    (void)state;
    (void)after(400, growing, 1);
    assert_true(fabs(after(700, steady, 3e-6) - 300) <= 4);
}

SUPPORT_MAIN(cmocka_unit_test(steady_residuals_are_foreseen), cmocka_unit_test(what_is_not_stable_is_not_told),
             cmocka_unit_test(odd_numbers), cmocka_unit_test(iteration_0_begins_anew))

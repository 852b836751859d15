/* The serial loops of sums of numbers, on vectors of 16 bytes: see loops.h for what they compute and loops_sums.c for
 * how. Sums are what most callers ask for; addition commutes, so a fold may share its elements out to lanes.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef LOOPS_SUMS_H
#define LOOPS_SUMS_H

#include <spmv/types.h>
#include <stdbool.h>

/* Segments that are summed side by side. */
enum { SUM_GROUP = 8 };

/* run_add_f64 ... */
#define TEMPLATE "loops_sums_declared.h"
#include "each_sum.h"
#undef TEMPLATE

#endif

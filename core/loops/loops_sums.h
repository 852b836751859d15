/* The serial loops of sums of numbers, with vectors of 16 bytes: loops.h defines the results,
 * loops_sums.c explains the method. Sums are the most frequent operation, and addition commutes, so
 * a fold may distribute its elements over lanes.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef LOOPS_SUMS_H
#define LOOPS_SUMS_H

#include <spmv/types.h>
#include <stdbool.h>

/* Segments that are summed side by side. */
enum { SUMS_AT_ONCE = 8 };

/* Declares total_add_f64 and the like. */
#define TEMPLATE "core/loops/loops_sums_declared.h"
#include "core/each/each_sum.h"
#undef TEMPLATE

#endif

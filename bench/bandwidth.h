/* The memory bandwidth that OpenMP threads of this machine reach: the yardstick for everything
 * bound by memory.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef BENCH_BANDWIDTH_H
#define BENCH_BANDWIDTH_H

#include <stdint.h>

struct bandwidth {
    double copy_gbs, read_gbs, triad_gbs; /* 1e9 bytes a second, medians */
    int64_t array_bytes;                  /* the size of each of the three arrays */
    int threads;                          /* that the regions ran with */
};

/* Bytes of all last-level caches of this machine together; 0 when the system does not say. */
int64_t last_level_cache_bytes(void);

/* Bytes of each array that bandwidth_measure should use here: four times the last-level caches, at
 * least 64 MiB, at most 1 GiB and a sixteenth of the physical memory. */
int64_t bandwidth_array_bytes(void);

/* Measures with at most so many threads, three arrays of array_bytes each (rounded down to whole
 * doubles), median of repeats. Returns 0; -1 when the memory for the arrays is not there (*result
 * is then all zeros); -2 when a kernel computed a wrong sum. */
int bandwidth_measure(int threads, int64_t array_bytes, int repeats, struct bandwidth *result);

#endif

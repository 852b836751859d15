/* The memory bandwidth that OpenMP threads of this machine reach: the reference for all
 * memory-bound work.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef BENCH_BANDWIDTH_H
#define BENCH_BANDWIDTH_H

#include <stdint.h>

struct bandwidth {
    double copy_gbs, read_gbs, triad_gbs; /* 1e9 bytes per second, medians */
    int64_t array_bytes;                  /* the size of each of the three arrays */
    int threads;                          /* number of threads used */
};

/* Total bytes of all last-level caches of this machine; 0 if unknown. */
int64_t last_level_cache_bytes(void);

/* The least bytes of an array that is to be larger than most caches: 64 MiB; 0 if a test sets the
 * size of the caches. */
int64_t least_array_bytes(void);

/* The recommended bytes of each array of bandwidth_measure: four times the last-level caches, at
 * least least_array_bytes(), at most 1 GiB and 1/16 of the physical memory. */
int64_t bandwidth_array_bytes(void);

/* Measures with at most this many threads and three arrays of array_bytes each (rounded down to
 * whole doubles); median of repeats. Returns 0; -1 without memory for the arrays (*result is then
 * all zeros); -2 if a kernel computed a wrong sum. */
int bandwidth_measure(int threads, int64_t array_bytes, int repeats, struct bandwidth *result);

#endif

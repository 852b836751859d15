/* A place to measure on: a clock around batches of runs, caches
 * that can be emptied, and its memory bandwidth. One for the CPU, one for a GPU.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef BENCH_DEVICE_H
#define BENCH_DEVICE_H

#include <spmv/types.h>
#include <stddef.h>
#include <stdint.h>

#include "bandwidth.h"

struct device {
    char name[128];      /* the processor's or the GPU's */
    char software[128];  /* on a GPU: "driver 580.159, CUDA 13.0"; "" on a CPU */
    char identity[40];   /* on a GPU: its UUID in hexadecimal digits; "" on a CPU */
    void *stream;        /* on a GPU: cudaStream_t, owned; NULL on a CPU */
    int64_t cache_bytes; /* of the last level: what flush overwrites; 0: not known */
    int64_t memory_bytes;
    int threads; /* on a CPU */
    const struct device_functions *functions;
    void *state; /* the implementation's */
};

/* run and state: a peer's or a method's, which queues or does the work once and returns 0, or -1
 * when it failed. All return 0, or -1 with a sentence in why (of WHY_SIZE characters). */
enum { WHY_SIZE = 1024 }; /* room for the names of all peers */

struct device_functions {
    /* *seconds that so many runs took, one directly after the other: between two events of the
     * stream, or by the monotonic clock. */
    int (*time_batch)(struct device *device, int (*run)(void *), void *state, int repeats, double *seconds, char *why);

    /* repeats times: overwrite the last-level cache, then one run by itself, whose time becomes
     * samples[i]. */
    int (*time_flushed)(struct device *device, int (*run)(void *), void *state, int repeats, double *samples,
                        char *why);

    /* Overwrites the last-level cache, and waits for that. */
    int (*flush)(struct device *device, char *why);

    /* Waits for all that was queued. */
    int (*wait)(struct device *device, char *why);

    /* Copy and read bandwidth of this very device's memory, now. triad_gbs is 0 on a GPU. */
    int (*bandwidth)(struct device *device, struct bandwidth *result, char *why);

    void (*close)(struct device *device);
};

/* The CPU with so many threads; the GPU with that number (-1: CUDA's current one), which becomes
 * the current one. -1 with a sentence in why; SPMV_HAVE_CUDA undefined: device_open_cuda says
 * so. */
int device_open_cpu(int threads, struct device *device, char *why);
int device_open_cuda(int number, struct device *device, char *why);
void device_close(struct device *device);

#endif

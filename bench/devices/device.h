/* A device to measure on: a clock around batches of runs, caches that can be emptied, and a memory
 * bandwidth. Implemented for the CPU and for a GPU.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef BENCH_DEVICE_H
#define BENCH_DEVICE_H

#include <spmv/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bench/devices/bandwidth.h"

struct device {
    char name[128];      /* name of the processor or the GPU */
    char software[128];  /* on a GPU: "driver 580.159, CUDA 13.0"; "" on a CPU */
    char identity[40];   /* on a GPU: its UUID in hexadecimal digits; "" on a CPU */
    void *stream;        /* on a GPU: cudaStream_t, owned; NULL on a CPU */
    int64_t cache_bytes; /* of the last level; flush overwrites them; 0: unknown */
    int64_t memory_bytes;
    int threads; /* on a CPU */
    const struct device_functions *functions;
    void *state; /* owned by the implementation */
};

/* run and state belong to a peer or a method. run queues or does the work once and returns 0, or -1
 * after a failure. All functions return 0, or -1 with a message in why (WHY_SIZE characters). */
enum { WHY_SIZE = 1024 }; /* room for the names of all peers */

struct device_functions {
    /* *seconds: the time of repeats consecutive runs, between two events of the stream or by the
     * monotonic clock. */
    int (*time_batch)(struct device *device, int (*run)(void *), void *state, int repeats, double *seconds, char *why);

    /* Repeats the following repeats times: overwrite the last-level cache, then time one run as
     * samples[i]. */
    int (*time_flushed)(struct device *device, int (*run)(void *), void *state, int repeats, double *samples,
                        char *why);

    /* Overwrites the last-level cache and waits. */
    int (*flush)(struct device *device, char *why);

    /* Waits for all queued work. */
    int (*wait)(struct device *device, char *why);

    /* Sets each byte; copies; *same: whether the bytes are the same. In the device's memory, after all queued work. */
    int (*fill)(struct device *device, int byte, void *memory, int64_t bytes, char *why);
    int (*copy)(struct device *device, const void *from, void *to, int64_t bytes, char *why);
    int (*same)(struct device *device, const void *a, const void *b, int64_t bytes, bool *same, char *why);

    /* Measures copy and read bandwidth of this device's memory now. triad_gbs is 0 on a GPU. */
    int (*bandwidth)(struct device *device, struct bandwidth *result, char *why);

    /* NULL on a GPU. The most memory that this process had since memory_begin, above what it had
     * then, in bytes; 0: unknown. memory_begin also resets what the system says of the process's
     * peak. */
    void (*memory_begin)(struct device *device);
    int64_t (*memory_end)(struct device *device);

    void (*close)(struct device *device);
};

/* Opens the CPU with this many threads, or the GPU of this number (-1: CUDA's current one), which
 * becomes the current one. Returns -1 with a message in why; device_open_cuda always does in a
 * build without CUDA (device_no_cuda.c). */
int device_open_cpu(int threads, struct device *device, char *why);
int device_open_cuda(int number, struct device *device, char *why);
void device_close(struct device *device);

#endif

/* The CPU as a device: the monotonic clock around runs; caches emptied by the threads that the runs
 * use.
 *
 * Emptying writes a buffer twice as large as all last-level caches and then reads it. After the
 * reads, the caches have only clean lines; otherwise the next run would be charged for writing back
 * dirty ones.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "bench/devices/device.h"
#include "bench/devices/machine.h"
#include "bench/process_memory.h"
#include "bench/timing.h"

enum { BANDWIDTH_REPEATS = 9 };

struct cpu_state {
    int64_t begin_bytes; /* in use at memory_begin; 0: unknown */
    uint64_t *buffer;    /* overwritten by flush; allocated by the first flush */
    int64_t words;
    uint64_t pattern, sum; /* pattern of the last write; sum of the last read */
};

static int time_batch(struct device *device, int (*run)(void *), void *state, int repeats, double *seconds, char *why)
{
    (void)device;
    *seconds = 0;
    const double began = monotonic_seconds();
    for (int r = 0; r < repeats; r++) {
        if (run(state) != 0) {
            snprintf(why, WHY_SIZE, "run %d of %d failed", r + 1, repeats);
            return -1;
        }
    }
    *seconds = monotonic_seconds() - began;
    return 0;
}

static int64_t flush_bytes(const struct device *device)
{
    const int64_t least = least_array_bytes();
    int64_t bytes = 2 * device->cache_bytes;
    bytes = bytes < least ? least : bytes;
    return device->memory_bytes > 0 && bytes > device->memory_bytes / 8 ? device->memory_bytes / 8 : bytes;
}

static int flush(struct device *device, char *why)
{
    struct cpu_state *const cpu = device->state;
    if (cpu->buffer == NULL) {
        const size_t bytes = (size_t)flush_bytes(device) / 64 * 64;
        cpu->buffer = aligned_alloc(64, bytes);
        if (cpu->buffer == NULL) {
            snprintf(why, WHY_SIZE, "no memory to flush the caches: %zu bytes needed", bytes);
            return -1;
        }
        cpu->words = (int64_t)(bytes / sizeof *cpu->buffer);
    }
    uint64_t *const buffer = cpu->buffer;
    const int64_t n = cpu->words;
    const uint64_t pattern = ++cpu->pattern;
    uint64_t sum = 0;
#pragma omp parallel num_threads(device->threads) reduction(+ : sum)
    {
#pragma omp for schedule(static)
        for (int64_t i = 0; i < n; i++)
            buffer[i] = pattern;
#pragma omp for schedule(static)
        for (int64_t i = 0; i < n; i++)
            sum += buffer[i];
    }
    cpu->sum = sum;
    if (sum != pattern * (uint64_t)n) {
        snprintf(why, WHY_SIZE, "flushing the caches read other values than it wrote: check this machine's memory");
        return -1;
    }
    return 0;
}

static int time_flushed(struct device *device, int (*run)(void *), void *state, int repeats, double *samples, char *why)
{
    for (int r = 0; r < repeats; r++)
        if (flush(device, why) != 0 || time_batch(device, run, state, 1, &samples[r], why) != 0)
            return -1;
    return 0;
}

/* Runs are complete when they return. */
static int wait_cpu(struct device *device, char *why)
{
    (void)device;
    (void)why;
    return 0;
}

static int bandwidth(struct device *device, struct bandwidth *result, char *why)
{
    const int64_t bytes = bandwidth_array_bytes();
    const int failed = bandwidth_measure(device->threads, bytes, BANDWIDTH_REPEATS, result);
    if (failed == -1)
        snprintf(why, WHY_SIZE, "no memory to measure the bandwidth: three arrays of %lld bytes", (long long)bytes);
    else if (failed != 0)
        snprintf(why, WHY_SIZE, "the bandwidth measurement computed wrong sums");
    return failed == 0 ? 0 : -1;
}

/* Free memory goes back to the system first, so that using it again counts. */
static void memory_begin(struct device *device)
{
    struct cpu_state *const cpu = device->state;
#ifdef __GLIBC__
    malloc_trim(0);
#endif
    cpu->begin_bytes = process_memory_reset_peak() ? process_memory("VmRSS") : 0;
}

static int64_t memory_end(struct device *device)
{
    const struct cpu_state *const cpu = device->state;
    const int64_t peak = process_memory("VmHWM");
    return cpu->begin_bytes > 0 && peak > cpu->begin_bytes ? peak - cpu->begin_bytes : 0;
}

static void close_cpu(struct device *device)
{
    struct cpu_state *const cpu = device->state;
    free(cpu->buffer);
    free(cpu);
}

static int fill(struct device *device, int byte, void *memory, int64_t bytes, char *why)
{
    (void)device;
    (void)why;
    memset(memory, byte, (size_t)bytes);
    return 0;
}

static int copy(struct device *device, const void *from, void *to, int64_t bytes, char *why)
{
    (void)device;
    (void)why;
    memcpy(to, from, (size_t)bytes);
    return 0;
}

static int same(struct device *device, const void *a, const void *b, int64_t bytes, bool *same_bytes, char *why)
{
    (void)device;
    (void)why;
    *same_bytes = memcmp(a, b, (size_t)bytes) == 0;
    return 0;
}

static const struct device_functions cpu_functions = {
    .time_batch = time_batch,
    .time_flushed = time_flushed,
    .flush = flush,
    .wait = wait_cpu,
    .fill = fill,
    .copy = copy,
    .same = same,
    .bandwidth = bandwidth,
    .memory_begin = memory_begin,
    .memory_end = memory_end,
    .close = close_cpu,
};

int device_open_cpu(int threads, struct device *device, char *why)
{
    *device = (struct device){.threads = threads > 0 ? threads : 1};
    device->state = calloc(1, sizeof(struct cpu_state));
    if (device->state == NULL) {
        snprintf(why, WHY_SIZE, "no memory");
        return -1;
    }
    snprintf(device->name, sizeof device->name, "%s", cpu_name());
    device->cache_bytes = last_level_cache_bytes();
    device->memory_bytes = (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
    device->functions = &cpu_functions;
    return 0;
}

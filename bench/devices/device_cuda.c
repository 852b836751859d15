/* A GPU as a device: events of one stream around runs; its level-2 cache is emptied in between.
 *
 * A measurement is queued without waiting, so the host runs ahead of the device. The launch time on
 * the host then overlaps with earlier work: with the runs before, or with the emptying of the
 * cache.
 *
 * Emptying writes a buffer twice as large as the cache and then reads it. After the reads, the
 * cache has only clean lines; otherwise the next run would be charged for writing back dirty ones.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench/devices/bandwidth_cuda.h"
#include "bench/devices/device.h"
#include "bench/timing.h"

enum {
    BLOCKS_A_PROCESSOR = 8, /* of 256 threads: the maximum per multiprocessor */
    SAMPLES = 9,            /* per bandwidth */
    /* consecutive, so that the launch time of the first one is small in comparison */
    RUNS_A_SAMPLE = 4
};
static const size_t LEAST_ARRAY = (size_t)512 << 20, MOST_ARRAY = (size_t)8 << 30, MIB = (size_t)1 << 20;

struct cuda_state {
    int blocks;
    cudaEvent_t *events; /* pool that grows */
    int event_count;
    void *buffer; /* overwritten to empty the cache; allocated at first use */
    size_t buffer_bytes;
    uint32_t pattern;        /* of the last write */
    unsigned long long *sum; /* on the device: target of words_sum */
};

/* True if the call failed, with a message in why. Clears CUDA's last error. */
static bool bad(cudaError_t error, const char *call, char *why)
{
    if (error == cudaSuccess)
        return false;
    cudaGetLastError();
    snprintf(why, WHY_SIZE, "%s: %s (%s)", call, cudaGetErrorString(error), cudaGetErrorName(error));
    return true;
}

/* ------------------------------------------------------------------ time */

/* Grows the pool to at least count events. */
static int need_events(struct cuda_state *cuda, int count, char *why)
{
    if (count <= cuda->event_count)
        return 0;
    cudaEvent_t *const events = realloc(cuda->events, (size_t)count * sizeof(cudaEvent_t));
    if (events == NULL) {
        snprintf(why, WHY_SIZE, "no memory for %d events", count);
        return -1;
    }
    cuda->events = events;
    while (cuda->event_count < count) {
        if (bad(cudaEventCreate(&events[cuda->event_count]), "cudaEventCreate", why))
            return -1;
        cuda->event_count++;
    }
    return 0;
}

static int wait_cuda(struct device *device, char *why)
{
    return bad(cudaStreamSynchronize(device->stream), "cudaStreamSynchronize", why) ? -1 : 0;
}

/* Waits after a failure, so that the caller can release the memory of queued work. Keeps the
 * message of the failure. */
static int give_up(struct device *device)
{
    if (cudaStreamSynchronize(device->stream) != cudaSuccess)
        cudaGetLastError();
    return -1;
}

/* Queues runs between two events. */
static int queue_runs(struct device *device, int (*run)(void *), void *state, int repeats, cudaEvent_t begin,
                      cudaEvent_t end, char *why)
{
    if (bad(cudaEventRecord(begin, device->stream), "cudaEventRecord", why))
        return -1;
    for (int r = 0; r < repeats; r++) {
        if (run(state) != 0) {
            const cudaError_t error = cudaGetLastError();
            snprintf(why, WHY_SIZE, "run %d of %d failed%s%s", r + 1, repeats, error != cudaSuccess ? ": " : "",
                     error != cudaSuccess ? cudaGetErrorString(error) : "");
            return -1;
        }
    }
    return bad(cudaEventRecord(end, device->stream), "cudaEventRecord", why) ? -1 : 0;
}

static int seconds_between(cudaEvent_t begin, cudaEvent_t end, double *seconds, char *why)
{
    float milliseconds = 0;
    if (bad(cudaEventElapsedTime(&milliseconds, begin, end), "cudaEventElapsedTime", why))
        return -1;
    *seconds = 1e-3 * (double)milliseconds;
    return 0;
}

static int time_batch(struct device *device, int (*run)(void *), void *state, int repeats, double *seconds, char *why)
{
    struct cuda_state *const cuda = device->state;
    *seconds = 0;
    if (need_events(cuda, 2, why) != 0)
        return -1;
    if (queue_runs(device, run, state, repeats, cuda->events[0], cuda->events[1], why) != 0 ||
        wait_cuda(device, why) != 0)
        return give_up(device);
    return seconds_between(cuda->events[0], cuda->events[1], seconds, why);
}

/* ----------------------------------------------------------------- cache */

static int need_buffer(struct device *device, char *why)
{
    struct cuda_state *const cuda = device->state;
    if (cuda->buffer != NULL)
        return 0;
    const size_t bytes = (size_t)(2 * device->cache_bytes) / 16 * 16;
    if (bad(cudaMalloc(&cuda->buffer, bytes), "cudaMalloc for emptying the cache", why)) {
        cuda->buffer = NULL;
        return -1;
    }
    cuda->buffer_bytes = bytes;
    return 0;
}

static int queue_flush(struct device *device, char *why)
{
    struct cuda_state *const cuda = device->state;
    cuda->pattern++;
    if (bad(words_write(device->stream, cuda->blocks, cuda->pattern, 0, cuda->buffer, cuda->buffer_bytes),
            "the kernel that empties the cache", why) ||
        bad(words_sum(device->stream, cuda->blocks, cuda->buffer, cuda->buffer_bytes, cuda->sum),
            "the kernel that reads what emptied the cache", why))
        return -1;
    return 0;
}

static int flush(struct device *device, char *why)
{
    if (need_buffer(device, why) != 0)
        return -1;
    if (queue_flush(device, why) != 0)
        return give_up(device);
    return wait_cuda(device, why);
}

static int time_flushed(struct device *device, int (*run)(void *), void *state, int repeats, double *samples, char *why)
{
    struct cuda_state *const cuda = device->state;
    if (need_buffer(device, why) != 0 || need_events(cuda, 2 * repeats, why) != 0)
        return -1;
    for (int r = 0; r < repeats; r++)
        if (queue_flush(device, why) != 0 ||
            queue_runs(device, run, state, 1, cuda->events[2 * r], cuda->events[2 * r + 1], why) != 0)
            return give_up(device);
    if (wait_cuda(device, why) != 0)
        return -1;
    for (int r = 0; r < repeats; r++)
        if (seconds_between(cuda->events[2 * r], cuda->events[2 * r + 1], &samples[r], why) != 0)
            return -1;
    return 0;
}

/* ------------------------------------------------------------- bandwidth */

/* Arguments of the three runs below. */
struct arrays {
    struct device *device;
    void *from, *to;
    size_t bytes; /* of each */
    cudaError_t error;
};

static int run_copy_kernel(void *state)
{
    struct arrays *const a = state;
    const struct cuda_state *const cuda = a->device->state;
    a->error = words_copy(a->device->stream, cuda->blocks, a->from, a->to, a->bytes);
    return a->error == cudaSuccess ? 0 : -1;
}

static int run_copy_call(void *state)
{
    struct arrays *const a = state;
    a->error = cudaMemcpyAsync(a->to, a->from, a->bytes, cudaMemcpyDeviceToDevice, a->device->stream);
    return a->error == cudaSuccess ? 0 : -1;
}

static int run_read(void *state)
{
    struct arrays *const a = state;
    const struct cuda_state *const cuda = a->device->state;
    a->error = words_sum(a->device->stream, cuda->blocks, a->from, a->bytes, cuda->sum);
    return a->error == cudaSuccess ? 0 : -1;
}

/* *seconds of one run: the median over several batches, after a warm-up batch. */
static int median_seconds(struct arrays *a, int (*run)(void *), const char *what, double *seconds, char *why)
{
    double samples[SAMPLES], first;
    int failed = time_batch(a->device, run, a, RUNS_A_SAMPLE, &first, why);
    for (int s = 0; s < SAMPLES && failed == 0; s++)
        failed = time_batch(a->device, run, a, RUNS_A_SAMPLE, &samples[s], why);
    if (failed != 0 && a->error != cudaSuccess)
        bad(a->error, what, why);
    if (failed == 0)
        *seconds = timing_summary(samples, SAMPLES).median / RUNS_A_SAMPLE;
    return failed;
}

/* Checks that array contains 0, 1, 2 ... . Sums modulo 2^64 of fewer than 2^32 numbers are
 * exact. */
static int check_sum(const struct arrays *a, const void *array, const char *what, char *why)
{
    const struct cuda_state *const cuda = a->device->state;
    const cudaStream_t stream = a->device->stream;
    const unsigned long long n = a->bytes / sizeof(uint32_t), expected = n * (n - 1) / 2;
    unsigned long long sum = 0;
    if (bad(cudaMemsetAsync(cuda->sum, 0, sizeof *cuda->sum, stream), "cudaMemsetAsync", why) ||
        bad(words_sum(stream, cuda->blocks, array, a->bytes, cuda->sum), "the kernel that reads", why) ||
        bad(cudaMemcpyAsync(&sum, cuda->sum, sizeof sum, cudaMemcpyDeviceToHost, stream), "cudaMemcpyAsync", why))
        return give_up(a->device);
    if (wait_cuda(a->device, why) != 0)
        return -1;
    if (sum != expected) {
        snprintf(why, WHY_SIZE, "the bandwidth measurement computed a wrong sum after %s: %llu instead of %llu", what,
                 sum, expected);
        return -1;
    }
    return 0;
}

/* *seconds of one copy, whose result is checked. */
static int measure_copy(struct arrays *a, int (*run)(void *), const char *what, double *seconds, char *why)
{
    if (bad(cudaMemsetAsync(a->to, 0, a->bytes, a->device->stream), "cudaMemsetAsync", why))
        return -1;
    return median_seconds(a, run, what, seconds, why) == 0 ? check_sum(a, a->to, what, why) : -1;
}

static int measure(struct arrays *a, struct bandwidth *result, char *why)
{
    const struct cuda_state *const cuda = a->device->state;
    const double gigabytes = 1e-9 * (double)a->bytes;
    double kernel = 0, call = 0, read = 0;
    if (bad(words_write(a->device->stream, cuda->blocks, 0, 1, a->from, a->bytes), "the kernel that writes", why) ||
        measure_copy(a, run_copy_kernel, "the kernel that copies", &kernel, why) != 0 ||
        measure_copy(a, run_copy_call, "cudaMemcpyAsync", &call, why) != 0 ||
        median_seconds(a, run_read, "the kernel that reads", &read, why) != 0 ||
        check_sum(a, a->from, "the kernel that reads", why) != 0)
        return give_up(a->device);
    result->copy_gbs = 2 * gigabytes / (kernel < call ? kernel : call);
    result->read_gbs = gigabytes / read;
    result->array_bytes = (int64_t)a->bytes;
    return 0;
}

/* Eight times the cache, at least 512 MiB; both arrays together at most half of the free memory. */
static int choose_bytes(const struct device *device, size_t *bytes, char *why)
{
    size_t free_bytes = 0, all_bytes = 0;
    if (bad(cudaMemGetInfo(&free_bytes, &all_bytes), "cudaMemGetInfo", why))
        return -1;
    *bytes = 8 * (size_t)device->cache_bytes;
    *bytes = *bytes < LEAST_ARRAY ? LEAST_ARRAY : *bytes > MOST_ARRAY ? MOST_ARRAY : *bytes;
    *bytes = (*bytes > free_bytes / 4 ? free_bytes / 4 : *bytes) / MIB * MIB;
    if (*bytes <= 2 * (size_t)device->cache_bytes) {
        snprintf(why, WHY_SIZE, "%.3g GB of the GPU's memory are free: too little to measure its bandwidth",
                 1e-9 * (double)free_bytes);
        return -1;
    }
    return 0;
}

static int bandwidth(struct device *device, struct bandwidth *result, char *why)
{
    struct arrays a = {.device = device};
    int failed = -1;
    *result = (struct bandwidth){0};
    if (choose_bytes(device, &a.bytes, why) != 0)
        return -1;
    if (!bad(cudaMalloc(&a.from, a.bytes), "cudaMalloc", why) && !bad(cudaMalloc(&a.to, a.bytes), "cudaMalloc", why))
        failed = measure(&a, result, why);
    cudaFree(a.from);
    cudaFree(a.to);
    return failed;
}

/* ---------------------------------------------------------------- memory */

static int fill(struct device *device, int byte, void *memory, int64_t bytes, char *why)
{
    return bad(cudaMemsetAsync(memory, byte, (size_t)bytes, device->stream), "cudaMemsetAsync", why) ? -1 : 0;
}

static int copy(struct device *device, const void *from, void *to, int64_t bytes, char *why)
{
    return bad(cudaMemcpyAsync(to, from, (size_t)bytes, cudaMemcpyDeviceToDevice, device->stream), "cudaMemcpyAsync",
               why)
               ? -1
               : 0;
}

static int same(struct device *device, const void *a, const void *b, int64_t bytes, bool *same_bytes, char *why)
{
    struct cuda_state *const cuda = device->state;
    unsigned long long differ = 0;
    if (bad(cudaMemsetAsync(cuda->sum, 0, sizeof differ, device->stream), "cudaMemsetAsync", why) ||
        bad(bytes_differ(device->stream, cuda->blocks, a, b, (size_t)bytes, cuda->sum), "a kernel that compares",
            why) ||
        bad(cudaMemcpyAsync(&differ, cuda->sum, sizeof differ, cudaMemcpyDeviceToHost, device->stream),
            "cudaMemcpyAsync", why) ||
        wait_cuda(device, why) != 0)
        return give_up(device);
    *same_bytes = differ == 0;
    return 0;
}

/* ------------------------------------------------------- opening, closing */

static void close_cuda(struct device *device)
{
    struct cuda_state *const cuda = device->state;
    if (device->stream != NULL)
        cudaStreamDestroy(device->stream); /* queued work still completes */
    for (int e = 0; e < cuda->event_count; e++)
        cudaEventDestroy(cuda->events[e]);
    cudaFree(cuda->buffer);
    cudaFree(cuda->sum);
    cudaGetLastError();
    free(cuda->events);
    free(cuda);
}

static const struct device_functions cuda_functions = {
    .time_batch = time_batch,
    .time_flushed = time_flushed,
    .flush = flush,
    .wait = wait_cuda,
    .fill = fill,
    .copy = copy,
    .same = same,
    .bandwidth = bandwidth,
    .close = close_cuda,
};

/* The driver's version, such as "580.159.04", from its management library; "" without that
 * library. */
static void driver_number(char *text, unsigned size)
{
    int (*start)(void) = NULL, (*stop)(void) = NULL, (*ask)(char *, unsigned) = NULL;
    text[0] = '\0';
    void *const library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == NULL)
        return;
    *(void **)&start = dlsym(library, "nvmlInit_v2");
    *(void **)&stop = dlsym(library, "nvmlShutdown");
    *(void **)&ask = dlsym(library, "nvmlSystemGetDriverVersion");
    if (start != NULL && stop != NULL && ask != NULL && start() == 0) {
        if (ask(text, size) != 0)
            text[0] = '\0';
        stop();
    }
    dlclose(library);
}

static int choose_device(int wanted, int *number, char *why)
{
    int count = 0;
    if (bad(cudaGetDeviceCount(&count), "no usable GPU: cudaGetDeviceCount", why))
        return -1;
    if (count == 0 || wanted < -1 || wanted >= count) {
        snprintf(why, WHY_SIZE, "no GPU %d: there %s %d", wanted, count == 1 ? "is" : "are", count);
        return -1;
    }
    *number = wanted;
    if (wanted == -1 && bad(cudaGetDevice(number), "cudaGetDevice", why))
        return -1;
    return bad(cudaSetDevice(*number), "cudaSetDevice", why) ? -1 : 0;
}

static int describe(struct device *device, int number, char *why)
{
    struct cuda_state *const cuda = device->state;
    struct cudaDeviceProp properties;
    int version = 0, cache = 0;
    char driver[96];
    if (bad(cudaGetDeviceProperties(&properties, number), "cudaGetDeviceProperties", why) ||
        bad(cudaRuntimeGetVersion(&version), "cudaRuntimeGetVersion", why) ||
        bad(cudaDeviceGetAttribute(&cache, cudaDevAttrL2CacheSize, number), "cudaDeviceGetAttribute", why))
        return -1;
    driver_number(driver, sizeof driver);
    snprintf(device->name, sizeof device->name, "%.120s", properties.name);
    snprintf(device->software, sizeof device->software, "%s%s%sCUDA %d.%d", driver[0] != '\0' ? "driver " : "", driver,
             driver[0] != '\0' ? ", " : "", version / 1000, version % 1000 / 10);
    for (size_t i = 0; i < sizeof properties.uuid.bytes; i++)
        snprintf(device->identity + 2 * i, 3, "%02x", (unsigned)(unsigned char)properties.uuid.bytes[i]);
    device->cache_bytes = cache;
    device->memory_bytes = (int64_t)properties.totalGlobalMem;
    cuda->blocks = BLOCKS_A_PROCESSOR * properties.multiProcessorCount;
    return 0;
}

/* Runs a first kernel on the 16 bytes at sum, to test whether this GPU can run the code of this
 * build. */
static int make_ready(struct device *device, char *why)
{
    struct cuda_state *const cuda = device->state;
    cudaStream_t stream = NULL;
    if (bad(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags", why))
        return -1;
    device->stream = stream;
    if (bad(cudaMalloc((void **)&cuda->sum, 16), "cudaMalloc", why) ||
        bad(words_write(stream, 1, 0, 0, cuda->sum, 16), "a first kernel", why))
        return -1;
    return wait_cuda(device, why);
}

int device_open_cuda(int number, struct device *device, char *why)
{
    *device = (struct device){0};
    if (choose_device(number, &number, why) != 0)
        return -1;
    device->state = calloc(1, sizeof(struct cuda_state));
    if (device->state == NULL) {
        snprintf(why, WHY_SIZE, "no memory");
        return -1;
    }
    device->functions = &cuda_functions;
    if (describe(device, number, why) == 0 && make_ready(device, why) == 0)
        return 0;
    device_close(device);
    return -1;
}

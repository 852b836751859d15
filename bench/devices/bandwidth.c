/* Copy, read and triad bandwidth on OpenMP.
 *
 * Three arrays of doubles, first touched by the threads that use them, several times larger than
 * the caches. Bytes are counted as in J. D. McCalpin's STREAM (each array in the loop once, no
 * write-allocate): copy c = a 16 n, triad a = b + s c 24 n; read sums one array, 8 n. One warm-up,
 * then the median.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "bench/devices/bandwidth.h"

#include <omp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "bench/devices/machine.h"
#include "bench/faults.h"
#include "bench/timing.h"

enum { MAX_REPEATS = 32 };

struct arrays {
    double *a, *b, *c;
    int64_t n;
    int threads;
    double sum; /* result of the last read */
};

/* Reads the first line of a file in cpu0's cache folder; "" if it cannot be read. */
static void cache_property(int index, const char *name, char *line, int size)
{
    char path[128];
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/%s", index, name);
    line[0] = '\0';
    FILE *file = fopen(path, "r");
    if (file == NULL)
        return;
    if (fgets(line, size, file) == NULL)
        line[0] = '\0';
    fclose(file);
}

int64_t last_level_cache_bytes(void)
{
    const char *told = fault_text(FAULT_CACHE_BYTES);
    if (told != NULL && strtoll(told, NULL, 10) > 0)
        return strtoll(told, NULL, 10);
    char line[256];
    int64_t size = 0, sharing = 1;
    for (int index = 0;; index++) {
        cache_property(index, "size", line, sizeof line);
        if (line[0] == '\0')
            break;
        char *unit = NULL;
        const int64_t number = strtoll(line, &unit, 10);
        const int64_t bytes = *unit == 'K' ? number << 10 : *unit == 'M' ? number << 20 : number;
        if (bytes > size) {
            size = bytes;
            cache_property(index, "shared_cpu_list", line, sizeof line);
            sharing = processor_list_count(line);
        }
    }
    const int64_t processors = sysconf(_SC_NPROCESSORS_ONLN);
    const int64_t caches = sharing > 0 && processors > sharing ? (processors + sharing - 1) / sharing : 1;
    return size * caches;
}

int64_t least_array_bytes(void)
{
    return fault_text(FAULT_CACHE_BYTES) != NULL ? 0 : (int64_t)64 << 20;
}

int64_t bandwidth_array_bytes(void)
{
    const int64_t least = least_array_bytes(), most = (int64_t)1 << 30;
    const int64_t memory = (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
    int64_t bytes = 4 * last_level_cache_bytes();
    bytes = bytes < least ? least : bytes;
    bytes = bytes > most ? most : bytes;
    return memory > 0 && bytes > memory / 16 ? memory / 16 : bytes;
}

static void fill(struct arrays *s)
{
#pragma omp parallel for num_threads(s->threads) schedule(static)
    for (int64_t i = 0; i < s->n; i++) {
        s->a[i] = 1;
        s->b[i] = 2;
        s->c[i] = 0;
    }
}

static void copy(struct arrays *s)
{
#pragma omp parallel for num_threads(s->threads) schedule(static)
    for (int64_t i = 0; i < s->n; i++)
        s->c[i] = s->a[i];
}

static void triad(struct arrays *s)
{
#pragma omp parallel for num_threads(s->threads) schedule(static)
    for (int64_t i = 0; i < s->n; i++)
        s->a[i] = s->b[i] + 3 * s->c[i];
}

/* Eight partial sums, so that the loop is limited by memory and not by the latency of additions. */
static void sum_all(struct arrays *s)
{
    double sum = 0;
    const int64_t n = s->n / 8 * 8;
    const double *b = s->b;
#pragma omp parallel num_threads(s->threads) reduction(+ : sum)
    {
        double part[8] = {0};
#pragma omp for schedule(static)
        for (int64_t i = 0; i < n; i += 8)
            for (int64_t j = 0; j < 8; j++)
                part[j] += b[i + j];
        for (int j = 0; j < 8; j++)
            sum += part[j];
    }
    s->sum = sum;
}

static double median_seconds(void (*kernel)(struct arrays *), struct arrays *s, int repeats)
{
    double samples[MAX_REPEATS];
    kernel(s);
    for (int r = 0; r < repeats; r++) {
        const double began = monotonic_seconds();
        kernel(s);
        samples[r] = monotonic_seconds() - began;
    }
    return timing_summary(samples, repeats).median;
}

static int team_size(int threads)
{
    int team = 1;
#pragma omp parallel num_threads(threads)
#pragma omp single
    team = omp_get_num_threads();
    return team;
}

/* Whether the kernels computed the right values: integers this small are exact in any order. */
static bool computed_right(const struct arrays *s)
{
    const int64_t last = s->n - 1;
    return s->sum == 2.0 * (double)(s->n / 8 * 8) && s->c[0] == 1 && s->c[last] == 1 && s->a[0] == 5 && s->a[last] == 5;
}

int bandwidth_measure(int threads, int64_t array_bytes, int repeats, struct bandwidth *result)
{
    const size_t bytes = (size_t)(array_bytes > 64 ? array_bytes : 64) / 64 * 64;
    struct arrays s = {.n = (int64_t)(bytes / sizeof(double)), .threads = threads > 0 ? threads : 1};
    int failed = -1;
    *result = (struct bandwidth){0};
    repeats = repeats < 1 ? 1 : repeats > MAX_REPEATS ? MAX_REPEATS : repeats;
    s.a = aligned_alloc(64, bytes);
    s.b = aligned_alloc(64, bytes);
    s.c = aligned_alloc(64, bytes);
    if (s.a == NULL || s.b == NULL || s.c == NULL)
        goto done;
    fill(&s);
    const double gigabytes = 1e-9 * (double)bytes;
    result->copy_gbs = 2 * gigabytes / median_seconds(copy, &s, repeats);
    result->read_gbs = gigabytes / median_seconds(sum_all, &s, repeats);
    result->triad_gbs = 3 * gigabytes / median_seconds(triad, &s, repeats);
    result->array_bytes = (int64_t)bytes;
    result->threads = team_size(s.threads);
    failed = computed_right(&s) ? 0 : -2;
done:
    free(s.a);
    free(s.b);
    free(s.c);
    return failed;
}

/* The memory of this process, from /proc (man 5 proc).
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef BENCH_PROCESS_MEMORY_H
#define BENCH_PROCESS_MEMORY_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* The bytes in a line of /proc/self/status: "VmRSS", resident now, or "VmHWM", the peak. 0 if
 * unknown. */
static inline int64_t process_memory(const char *name)
{
    char line[256];
    long long kilobytes = 0;
    const size_t length = strlen(name);
    FILE *const file = fopen("/proc/self/status", "r");
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, name, length) == 0 && sscanf(line + length, ": %lld", &kilobytes) == 1)
            break;
    if (file != NULL)
        fclose(file);
    return 1024 * (int64_t)kilobytes;
}

/* Sets the peak to the memory that is resident now; false if the system cannot. */
static inline bool process_memory_reset_peak(void)
{
    FILE *const file = fopen("/proc/self/clear_refs", "w");
    const bool written = file != NULL && fputs("5", file) >= 0;
    return file != NULL && fclose(file) == 0 && written;
}

#endif

/* Limits of this process: processors and memory, from /proc and the control groups of Linux.
 *
 * Every function takes the folder that contains proc and sys: "" for the machine's; tests create
 * their own. A missing file sets no limit.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SYSTEM_LIMITS_H
#define SYSTEM_LIMITS_H

#include <stdint.h>

/* The number of processors that the CPU quota of the control groups allows (cpu.max, or
 * cpu.cfs_quota_us over cpu.cfs_period_us), rounded up, at least 1: the minimum over the group and
 * those above it. INT_MAX: no quota. */
int machine_cpu_quota(const char *root);

/* Bytes that this process can still allocate: the minimum of
 * - what RLIMIT_AS leaves,
 * - what each control group leaves (memory.max or memory.limit_in_bytes, less the used memory that
 *   cannot be dropped),
 * - the free memory of the machine (MemAvailable + SwapFree; if unknown, all of its memory).
 * *limit: the name of the limit that applies, a static string. */
int64_t machine_memory_available(const char *root, const char **limit);

/* Bytes of memory that this process uses (VmRSS); 0 if unknown. */
int64_t machine_memory_used(const char *root);

/* Bytes of it that belong to no file; *files (may be NULL): the others, such as program text and
 * mapped files, which the system can drop. From /proc/self/statm; 0 if unknown. */
int64_t machine_memory_anonymous(const char *root, int64_t *files);

#endif

/* What the system lets this process use: processors and memory, from /proc and the control groups of Linux.
 *
 * Every function takes the folder under which proc and sys are found: "" for those of the machine; tests make their
 * own. A file that is absent sets no limit.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef SYSTEM_LIMITS_H
#define SYSTEM_LIMITS_H

#include <stdint.h>

/* The processors that the CPU quota of the control groups is worth (cpu.max, or cpu.cfs_quota_us over
 * cpu.cfs_period_us), rounded up, at least 1: the smallest of the group and those above it. INT_MAX: no quota. */
int machine_cpu_quota(const char *root);

/* Bytes that this process can still get: the smallest of what RLIMIT_AS leaves, what each control group leaves
 * (memory.max or memory.limit_in_bytes, less what is used and cannot be dropped), and the free memory of the machine
 * (MemAvailable + SwapFree; where the system does not tell, all of its memory). *limit: which of them it is, in words,
 * static. */
int64_t machine_memory_available(const char *root, const char **limit);

/* Bytes of memory that this process has in use (VmRSS); 0 where the system does not tell. */
int64_t machine_memory_used(const char *root);

#endif

/* Cache of bandwidths measured by earlier runs on this machine, valid for an hour and until the
 * next boot.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef BENCH_BANDWIDTH_CACHE_H
#define BENCH_BANDWIDTH_CACHE_H

#include <stdbool.h>

#include "bench/devices/device.h"

enum { BANDWIDTH_KEPT_SECONDS = 3600, BANDWIDTH_KEY_SIZE = 2048 };

/* The key of a measurement, as text: boot, device, threads and processors, size of the arrays. */
void bandwidth_key(const struct device *device, char *key);

/* Finds the figures of the key that are at most an hour old at now (seconds since 1970), and their
 * age in seconds. False: there are none. Invalid files, and files that another user can write, are
 * ignored. folder: the cache's own. */
bool bandwidth_recall(const char *folder, const char *key, int64_t now, struct bandwidth *result, int64_t *age);

/* Stores the figures; creates the folder. False if that is not possible, which is not an error of
 * the measurement. */
bool bandwidth_keep(const char *folder, const char *key, int64_t now, const struct bandwidth *result);

/* The folder spmv in the user's cache folder: XDG_CACHE_HOME if that is an absolute path, else
 * ~/.cache. False: neither is known, or the name is longer than size. */
bool user_cache_folder(char *folder, size_t size);

#endif

/* The bandwidth that an earlier run measured on this machine, kept for an hour or until the machine
 * starts again.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef BENCH_BANDWIDTH_CACHE_H
#define BENCH_BANDWIDTH_CACHE_H

#include <stdbool.h>

#include "device.h"

enum { BANDWIDTH_KEPT_SECONDS = 3600, BANDWIDTH_KEY_SIZE = 2048 };

/* What a figure depends on, as text: the boot, the device, its threads and processors, the size of
 * the arrays. */
void bandwidth_key(const struct device *device, char *key);

/* The figures under the key that are at most an hour old at now (seconds since 1970), and their age
 * in seconds. False: there are none; what is no such file, or may be another user's work, counts as
 * none. folder: the cache's own. */
bool bandwidth_recall(const char *folder, const char *key, int64_t now, struct bandwidth *result, int64_t *age);

/* Keeps them; makes the folder. False: that was not possible, which is no failure of a
 * measurement. */
bool bandwidth_keep(const char *folder, const char *key, int64_t now, const struct bandwidth *result);

/* spmv in the folder of the user's caches: XDG_CACHE_HOME where it is an absolute path, else
 * ~/.cache. False: neither is known, or the name is longer than size. */
bool user_cache_folder(char *folder, size_t size);

#endif

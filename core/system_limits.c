/* Limits of processors and memory (system_limits.h).
 *
 * A process belongs to a control group, a folder of files with limits, and all groups above it
 * limit it as well. The folder is the mount point of the hierarchy (/proc/self/mountinfo) followed
 * by the path of the group (/proc/self/cgroup). Version 2 has one hierarchy, version 1 one for each
 * controller. A container may see only a part of the hierarchy: the root of its mount is then
 * removed from the path.
 * Source: https://docs.kernel.org/admin-guide/cgroup-v2.html, .../cgroup-v1/memory.html;
 * cgroups(7), proc(5).
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "core/system_limits.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "core/runtime.h"

enum { PATH_BYTES = 4096, LINE_BYTES = 8192 };

/* ---------------------------------------------------------------- files */

static FILE *open_under(const char *root, const char *path)
{
    char name[2 * PATH_BYTES];
    const int n = snprintf(name, sizeof name, "%s%s", root, path);
    return n > 0 && (size_t)n < sizeof name ? fopen(name, "re") : NULL;
}

/* Reads the number after the word that begins a line; word "": the first number of the file.
 * Returns false if there is none. */
static bool read_number(const char *root, const char *path, const char *word, int64_t *value)
{
    char line[LINE_BYTES];
    bool found = false;
    FILE *const file = open_under(root, path);
    while (file != NULL && !found && fgets(line, sizeof line, file) != NULL) {
        char *end = NULL;
        if (strncmp(line, word, strlen(word)) != 0)
            continue;
        const char *const text = line + strlen(word);
        *value = strtoll(text, &end, 10);
        found = end != text;
        if (word[0] == '\0')
            break;
    }
    if (file != NULL)
        fclose(file);
    return found;
}

/* ---------------------------------------------------------------- control groups */

/* A group of a hierarchy. go_up replaces its folder by that of the group above it, up to the mount
 * point. */
struct cgroup {
    char folder[PATH_BYTES];
    size_t mount_length;
};

static bool has_word(const char *list, const char *word)
{
    const size_t length = strlen(word);
    for (const char *at = list; at != NULL; at = strchr(at, ',')) {
        at += *at == ',';
        if (strncmp(at, word, length) == 0 && (at[length] == ',' || at[length] == '\0'))
            return true;
    }
    return false;
}

/* Finds the path of this process's group in the hierarchy of the controller; NULL: of version 2. */
static bool find_path(const char *root, const char *controller, char path[PATH_BYTES])
{
    char line[LINE_BYTES];
    bool found = false;
    FILE *const file = open_under(root, "/proc/self/cgroup");
    while (file != NULL && !found && fgets(line, sizeof line, file) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        char *const controllers = strchr(line, ':');
        char *const its_path = controllers != NULL ? strchr(controllers + 1, ':') : NULL;
        if (its_path == NULL || strlen(its_path + 1) >= PATH_BYTES)
            continue;
        *its_path = '\0';
        found = controller == NULL ? controllers[1] == '\0' : has_word(controllers + 1, controller);
        if (found)
            strcpy(path, its_path + 1);
    }
    if (file != NULL)
        fclose(file);
    return found;
}

/* Finds the mount point of that hierarchy, and which part of it is mounted. */
static bool find_mount(const char *root, const char *controller, char mount[PATH_BYTES], char part[PATH_BYTES])
{
    char line[LINE_BYTES];
    bool found = false;
    FILE *const file = open_under(root, "/proc/self/mountinfo");
    while (file != NULL && !found && fgets(line, sizeof line, file) != NULL) {
        char kind[64] = "", options[512] = "";
        const char *const rest = strstr(line, " - ");
        if (rest == NULL || sscanf(line, "%*s %*s %*s %4095s %4095s", part, mount) != 2 ||
            sscanf(rest, " - %63s %*s %511s", kind, options) < 1)
            continue;
        found = controller == NULL ? strcmp(kind, "cgroup2") == 0
                                   : strcmp(kind, "cgroup") == 0 && has_word(options, controller);
    }
    if (file != NULL)
        fclose(file);
    return found;
}

static bool find_cgroup(const char *root, const char *controller, struct cgroup *cgroup)
{
    char path[PATH_BYTES], mount[PATH_BYTES], part[PATH_BYTES];
    if (!find_path(root, controller, path) || !find_mount(root, controller, mount, part))
        return false;
    const size_t hidden = strcmp(part, "/") == 0 ? 0 : strlen(part);
    const bool below = strncmp(path, part, hidden) == 0 && (path[hidden] == '/' || path[hidden] == '\0');
    const char *const rest = !below || strstr(path, "/..") != NULL || strcmp(path, "/") == 0 ? "" : path + hidden;
    cgroup->mount_length = strlen(mount);
    return snprintf(cgroup->folder, sizeof cgroup->folder, "%s%s", mount, rest) < (int)sizeof cgroup->folder;
}

/* Returns false if there is no group above it. */
static bool go_up(struct cgroup *cgroup)
{
    char *const slash = strrchr(cgroup->folder, '/');
    if (slash == NULL || strlen(cgroup->folder) <= cgroup->mount_length)
        return false;
    *slash = '\0';
    return true;
}

static bool read_cgroup(const char *root, const struct cgroup *cgroup, const char *name, const char *word,
                        int64_t *value)
{
    char path[PATH_BYTES + 64];
    return snprintf(path, sizeof path, "%s/%s", cgroup->folder, name) < (int)sizeof path &&
           read_number(root, path, word, value);
}

/* ---------------------------------------------------------------- processors */

/* cpu.max contains the quota ("max": none) and the period in microseconds. */
static bool read_cpu_max(const char *root, const struct cgroup *cgroup, int64_t *quota, int64_t *period)
{
    char path[PATH_BYTES + 64];
    long long q = 0, p = 0;
    if (snprintf(path, sizeof path, "%s/cpu.max", cgroup->folder) >= (int)sizeof path)
        return false;
    FILE *const file = open_under(root, path);
    const bool some = file != NULL && fscanf(file, "%lld %lld", &q, &p) == 2;
    if (file != NULL)
        fclose(file);
    *quota = q;
    *period = p;
    return some;
}

int machine_cpu_quota(const char *root)
{
    struct cgroup cgroup;
    int most = INT_MAX;
    int64_t quota = 0, period = 0;
    for (int version = 1; version <= 2; version++)
        for (bool more = find_cgroup(root, version == 1 ? "cpu" : NULL, &cgroup); more; more = go_up(&cgroup)) {
            const bool some = version == 2 ? read_cpu_max(root, &cgroup, &quota, &period)
                                           : read_cgroup(root, &cgroup, "cpu.cfs_quota_us", "", &quota) &&
                                                 read_cgroup(root, &cgroup, "cpu.cfs_period_us", "", &period);
            if (some && quota > 0 && period > 0)
                most = (int)min_i64(most, ceil_divide(quota, period));
        }
    return most;
}

/* ---------------------------------------------------------------- memory */

struct smallest {
    int64_t bytes;
    const char *limit;
};

static void consider(struct smallest *smallest, int64_t bytes, const char *limit)
{
    if (bytes < smallest->bytes)
        *smallest = (struct smallest){max_i64(bytes, 0), limit};
}

/* Inactive file pages count as used, but the system drops them when memory is needed. */
static void consider_cgroups(struct smallest *smallest, const char *root, int version)
{
    struct cgroup cgroup;
    for (bool more = find_cgroup(root, version == 1 ? "memory" : NULL, &cgroup); more; more = go_up(&cgroup)) {
        int64_t most = 0, used = 0, droppable = 0;
        if (!read_cgroup(root, &cgroup, version == 1 ? "memory.limit_in_bytes" : "memory.max", "", &most))
            continue;
        read_cgroup(root, &cgroup, version == 1 ? "memory.usage_in_bytes" : "memory.current", "", &used);
        read_cgroup(root, &cgroup, "memory.stat", version == 1 ? "total_inactive_file " : "inactive_file ", &droppable);
        consider(smallest, most - max_i64(0, used - droppable), "the memory limit of the control group");
    }
}

int64_t machine_memory_available(const char *root, const char **limit)
{
    struct smallest smallest = {host_memory_bytes(), "the memory of this machine"};
    struct rlimit space;
    int64_t kilobytes = 0, swap = 0, pages = 0;
    if (read_number(root, "/proc/meminfo", "MemAvailable:", &kilobytes)) {
        read_number(root, "/proc/meminfo", "SwapFree:", &swap);
        smallest = (struct smallest){1024 * (kilobytes + swap), "the free memory of this machine"};
    }
    if (getrlimit(RLIMIT_AS, &space) == 0 && space.rlim_cur != RLIM_INFINITY && space.rlim_cur <= INT64_MAX) {
        read_number(root, "/proc/self/statm", "", &pages);
        consider(&smallest, (int64_t)space.rlim_cur - pages * sysconf(_SC_PAGESIZE),
                 "the limit of the address space, ulimit -v");
    }
    consider_cgroups(&smallest, root, 1);
    consider_cgroups(&smallest, root, 2);
    if (limit != NULL)
        *limit = smallest.limit;
    return smallest.bytes;
}

int64_t machine_memory_used(const char *root)
{
    int64_t kilobytes = 0;
    return read_number(root, "/proc/self/status", "VmRSS:", &kilobytes) ? 1024 * kilobytes : 0;
}

int64_t machine_memory_anonymous(const char *root, int64_t *files)
{
    long long pages = 0, of_files = 0;
    FILE *const file = open_under(root, "/proc/self/statm");
    if (file == NULL || fscanf(file, "%*s %lld %lld", &pages, &of_files) != 2)
        pages = of_files = 0;
    if (file != NULL)
        fclose(file);
    const int64_t page = sysconf(_SC_PAGESIZE);
    if (files != NULL)
        *files = of_files * page;
    return max_i64(0, pages - of_files) * page;
}

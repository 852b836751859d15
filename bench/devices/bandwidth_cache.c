/* The cache of measured bandwidths: a small text file for each device and number of threads.
 *
 * A file has two lines: the key, and "TIME COPY READ TRIAD BYTES THREADS", integers, bandwidths in
 * bytes per second. The name of a file is a checksum of the key without the boot id, so files of an
 * earlier boot are replaced.
 *
 * Folder and file must belong to the effective user and be writable by nobody else; links are not
 * followed. A file is written under another name and renamed.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "bench/devices/bandwidth_cache.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench/devices/machine.h"
#include "core/trust.h"

enum { FILE_SIZE = BANDWIDTH_KEY_SIZE + 256, NAME_SIZE = 64 };
static const long long MOST_BYTES_A_SECOND = 1000000000000000;

/* ---------------------------------------------------------------- keys */

/* The id of this boot; "" if unknown, and then nothing is cached. */
static void boot_id(char *id, size_t size)
{
    FILE *const file = fopen("/proc/sys/kernel/random/boot_id", "r");
    id[0] = '\0';
    if (file != NULL && fgets(id, (int)size, file) == NULL)
        id[0] = '\0';
    if (file != NULL)
        fclose(file);
    id[strcspn(id, "\n")] = '\0';
}

void bandwidth_key(const struct device *device, char *key)
{
    char id[64];
    const bool gpu = device->stream != NULL;
    boot_id(id, sizeof id);
    key[0] = '\0';
    if (id[0] == '\0')
        return;
    const int length =
        snprintf(key, BANDWIDTH_KEY_SIZE, "%s;spmv bandwidth 1;%s;%s;%s;%d threads;processors %s;%lld bytes", id,
                 device->name, device->software, device->identity, device->threads, gpu ? "" : processors_allowed(),
                 gpu ? 0LL : (long long)bandwidth_array_bytes());
    if (length >= BANDWIDTH_KEY_SIZE || strchr(key, '\n') != NULL)
        key[0] = '\0';
}

/* FNV-1a of the key after the boot id (G. Fowler, L. C. Noll, K.-P. Vo). */
static void file_name(const char *key, char *name)
{
    uint64_t sum = 14695981039346656037u;
    for (const char *c = key + strcspn(key, ";"); *c != '\0'; c++)
        sum = (sum ^ (unsigned char)*c) * 1099511628211u;
    snprintf(name, NAME_SIZE, "bandwidth-%016llx", (unsigned long long)sum);
}

/* ---------------------------------------------------------------- files */

static bool is_ours(const struct stat *s)
{
    return distrust(s, geteuid()) == NULL;
}

/* Opens the folder if it can be trusted; else -1. */
static int open_folder(const char *folder)
{
    struct stat s;
    const int fd = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0 && fstat(fd, &s) == 0 && is_ours(&s))
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

/* Reads the file's text and ends it with a zero byte; "" if it is missing or cannot be trusted. */
static void read_text(int folder, const char *name, char *text)
{
    struct stat s;
    size_t length = 0;
    const int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd >= 0 && fstat(fd, &s) == 0 && S_ISREG(s.st_mode) && is_ours(&s))
        for (ssize_t n = 1; n > 0 && length<FILE_SIZE - 1; length += n> 0 ? (size_t)n : 0)
            n = read(fd, text + length, FILE_SIZE - 1 - length);
    text[length] = '\0';
    if (fd >= 0)
        close(fd);
}

static bool write_file(int folder, const char *name, const char *text)
{
    char beside[NAME_SIZE + 32];
    snprintf(beside, sizeof beside, "%s.%ld.tmp", name, (long)getpid());
    unlinkat(folder, beside, 0); /* left by an earlier process with this number */
    const int fd = openat(folder, beside, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, S_IRUSR | S_IWUSR);
    if (fd < 0)
        return false;
    const size_t length = strlen(text);
    const bool written = write(fd, text, length) == (ssize_t)length;
    const bool closed = close(fd) == 0;
    if (written && closed && renameat(folder, beside, folder, name) == 0)
        return true;
    unlinkat(folder, beside, 0);
    return false;
}

/* Creates the folder and its parent, with access only for the user. */
static void make_folder(const char *folder)
{
    char around[1024];
    const char *const slash = strrchr(folder, '/');
    const size_t length = slash != NULL ? (size_t)(slash - folder) : 0;
    if (length > 0 && length < sizeof around) {
        memcpy(around, folder, length);
        around[length] = '\0';
        mkdir(around, S_IRWXU);
    }
    mkdir(folder, S_IRWXU); /* a failure shows when the folder is opened */
}

/* ---------------------------------------------------------------- figures */

static bool plausible(long long bytes_a_second, bool may_be_0)
{
    return bytes_a_second >= (may_be_0 ? 0 : 1) && bytes_a_second <= MOST_BYTES_A_SECOND;
}

bool bandwidth_recall(const char *folder, const char *key, int64_t now, struct bandwidth *result, int64_t *age)
{
    char name[NAME_SIZE], text[FILE_SIZE];
    long long then, copy, read_, triad, bytes;
    int threads, end = 0;
    const size_t length = strlen(key);
    const int fd = length > 0 ? open_folder(folder) : -1;
    if (fd < 0)
        return false;
    file_name(key, name);
    read_text(fd, name, text);
    close(fd);
    if (strncmp(text, key, length) != 0 || text[length] != '\n' ||
        sscanf(text + length + 1, "%19lld %19lld %19lld %19lld %19lld %9d\n%n", &then, &copy, &read_, &triad, &bytes,
               &threads, &end) != 6 ||
        text[length + 1 + (size_t)end] != '\0')
        return false;
    if (then > now || now - then > BANDWIDTH_KEPT_SECONDS || !plausible(copy, false) || !plausible(read_, false) ||
        !plausible(triad, true) || bytes < 0 || threads < 0)
        return false;
    *age = now - then;
    *result = (struct bandwidth){.copy_gbs = 1e-9 * (double)copy,
                                 .read_gbs = 1e-9 * (double)read_,
                                 .triad_gbs = 1e-9 * (double)triad,
                                 .array_bytes = bytes,
                                 .threads = threads};
    return true;
}

bool bandwidth_keep(const char *folder, const char *key, int64_t now, const struct bandwidth *result)
{
    char name[NAME_SIZE], text[FILE_SIZE];
    if (key[0] == '\0')
        return false;
    make_folder(folder);
    const int fd = open_folder(folder);
    if (fd < 0)
        return false;
    file_name(key, name);
    snprintf(text, sizeof text, "%s\n%lld %.0f %.0f %.0f %lld %d\n", key, (long long)now, 1e9 * result->copy_gbs,
             1e9 * result->read_gbs, 1e9 * result->triad_gbs, (long long)result->array_bytes, result->threads);
    const bool kept = write_file(fd, name, text);
    close(fd);
    return kept;
}

bool user_cache_folder(char *folder, size_t size)
{
    const char *base = getenv("XDG_CACHE_HOME"), *middle = "/spmv";
    if (base == NULL || base[0] != '/') {
        base = getenv("HOME");
        middle = "/.cache/spmv";
    }
    return base != NULL && base[0] == '/' && (size_t)snprintf(folder, size, "%s%s", base, middle) < size;
}

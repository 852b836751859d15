/* Unfinished files. A name consists of a clock value, the process number and a counter; O_EXCL
 * decides whether it is free, and does not follow links. A slot of the list holds only numbers, in
 * lock-free atomics, so that a signal handler may read it at any time. At worst, a handler that
 * reads a slot during a change unlinks a name that does not exist.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
/* flock is not part of POSIX */
#define _DEFAULT_SOURCE
#include "formats/io/unfinished.h"

#include <errno.h>
#include <fcntl.h>
#include <spmv/io.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "formats/io/binary/checksum.h"
#include "formats/io/output_form.h"

enum { SLOTS = 64 };

/* id 0: free; 1: being filled; else the id of a file. process: after a fork, the handler of the
 * child skips the files of the parent. */
static struct {
    _Atomic uint64_t id;
    atomic_int folder, process;
} slots[SLOTS];

/* Does not use snprintf, which is not async-signal-safe. */
static void make_name(uint64_t id, char name[UNFINISHED_NAME])
{
    memcpy(name, "spmv-", 5);
    for (int i = 0; i < 16; i++)
        name[5 + i] = "0123456789abcdef"[id >> (60 - 4 * i) & 15];
    memcpy(name + 21, ".part", 6);
}

static uint64_t next_id(void)
{
    static _Atomic uint64_t count;
    struct timespec now = {0, 0};
    clock_gettime(CLOCK_REALTIME, &now);
    uint64_t id = checksum_mix((uint64_t)now.tv_sec, (uint64_t)now.tv_nsec);
    id = checksum_mix(id, (uint64_t)getpid());
    id = checksum_mix(id, atomic_fetch_add(&count, 1));
    return id > 1 ? id : 2;
}

static int list_add(int folder, uint64_t id)
{
    for (int i = 0; i < SLOTS; i++) {
        uint64_t free_id = 0;
        if (!atomic_compare_exchange_strong(&slots[i].id, &free_id, 1))
            continue;
        atomic_store(&slots[i].folder, folder);
        atomic_store(&slots[i].process, (int)getpid());
        atomic_store(&slots[i].id, id);
        return i;
    }
    return -1;
}

static void list_drop(struct unfinished *file)
{
    if (file->slot >= 0)
        atomic_store(&slots[file->slot].id, 0);
    file->id = 0;
}

void spmv_remove_unfinished(void)
{
    const int before = errno, process = (int)getpid();
    char name[UNFINISHED_NAME];
    for (int i = 0; i < SLOTS; i++) {
        const uint64_t id = atomic_load(&slots[i].id);
        if (id <= 1 || atomic_load(&slots[i].process) != process)
            continue;
        make_name(id, name);
        unlinkat(atomic_load(&slots[i].folder), name, 0);
    }
    errno = before;
}

/* False if another process holds the lock or has removed the file as a leftover. On file systems
 * without locks, returns true. */
static bool lock(int fd)
{
    struct stat s;
    if (flock(fd, LOCK_EX | LOCK_NB) != 0)
        return errno != EWOULDBLOCK;
    return fstat(fd, &s) != 0 || s.st_nlink > 0;
}

int unfinished_create(int folder, mode_t mode, struct unfinished *file)
{
    enum { TRIES = 1000 };
    char name[UNFINISHED_NAME];
    *file = (struct unfinished){.has_folder = true, .folder = folder};
    for (int k = 0; k < TRIES; k++) {
        file->id = next_id();
        /* Before the file exists, so that a signal cannot come in between. */
        file->slot = list_add(folder, file->id);
        make_name(file->id, name);
        const int fd = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
        if (fd >= 0 && lock(fd))
            return fd;
        const int why = fd >= 0 ? EEXIST : errno;
        if (fd >= 0)
            close(fd);
        list_drop(file);
        errno = why;
        if (why != EEXIST && why != EINTR)
            break;
    }
    return -1;
}

int unfinished_rename(struct unfinished *file, const char *name)
{
    char own[UNFINISHED_NAME];
    make_name(file->id, own);
    if (renameat(file->folder, own, file->folder, name) != 0)
        return -1;
    list_drop(file);
    return 0;
}

void unfinished_end(struct unfinished *file)
{
    const int before = errno;
    char name[UNFINISHED_NAME];
    if (file->id != 0) {
        make_name(file->id, name);
        unlinkat(file->folder, name, 0);
        list_drop(file);
    }
    if (file->has_folder)
        close(file->folder);
    file->has_folder = false;
    errno = before;
}

void unfinished_remove_left_over(int folder, const char *name)
{
    struct stat s;
    if (!path_ends_with(name, strlen(name), ".part"))
        return;
    const int fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return;
    if (fstat(fd, &s) == 0 && S_ISREG(s.st_mode) && s.st_uid == geteuid() && flock(fd, LOCK_EX | LOCK_NB) == 0)
        unlinkat(folder, name, 0);
    close(fd);
}

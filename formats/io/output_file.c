/* Output: a new file with a name of its own beside the target (O_EXCL, so a link planted there is not followed), fsync,
 * rename. The mode is that of the file replaced, else what the umask leaves of 0666.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
/* realpath and fchmod belong to X/Open */
#define _XOPEN_SOURCE 700
#include "output_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static spmv_status fail_open(const struct output_file *output)
{
    return context_fail(output->ctx, SPMV_ERROR_OPEN, "%s: cannot open for writing: %s", output->name, strerror(errno));
}

static spmv_status fail_write(const struct output_file *output)
{
    const int why = errno;
    const spmv_status st =
        context_fail(output->ctx, SPMV_ERROR_WRITE, "%s: cannot write: %s", output->name, strerror(why));
    errno = why;
    return st;
}

/* path with its links followed, into output->target; path itself when nothing is there yet. */
static spmv_status resolve(struct output_file *output, const char *path, bool exists)
{
    const size_t bytes = exists ? PATH_MAX : strlen(path) + 1;
    output->target = malloc(bytes);
    if (output->target == NULL)
        return context_fail_memory(output->ctx, "a file name", (int64_t)bytes);
    if (!exists)
        memcpy(output->target, path, bytes);
    else if (realpath(path, output->target) == NULL)
        return fail_open(output);
    return SPMV_OK;
}

/* Creates output->beside: a name that no file has, of the target's or, where that leaves no room, of a short one. */
static spmv_status create_beside(struct output_file *output)
{
    enum { TRIES = 1000, SUFFIX = 48 };
    const size_t bytes = strlen(output->target) + SUFFIX;
    output->beside = malloc(bytes);
    if (output->beside == NULL)
        return context_fail_memory(output->ctx, "a file name", (int64_t)bytes);
    output->fd = -1;
    const char *const slash = strrchr(output->target, '/'), *const name = slash != NULL ? slash + 1 : output->target;
    const char *stem = name;
    for (int k = 0; k < TRIES && output->fd < 0; k++) {
        snprintf(output->beside, bytes, "%.*s%s.%ld.%d.part", (int)(name - output->target), output->target, stem,
                 (long)getpid(), k);
        output->fd = open(output->beside, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (output->fd < 0 && errno == ENAMETOOLONG && stem == name) {
            stem = "spmv";
            continue;
        }
        if (output->fd < 0 && errno != EEXIST && errno != EINTR)
            break;
    }
    if (output->fd >= 0)
        return SPMV_OK;
    free(output->beside);
    output->beside = NULL;
    return fail_open(output);
}

static spmv_status open_path(struct output_file *output, const char *path)
{
    struct stat s, link;
    const bool exists = stat(path, &s) == 0;
    if (!exists && errno == ENAMETOOLONG)
        return fail_open(output);
    if (!exists && lstat(path, &link) == 0)
        return context_fail(output->ctx, SPMV_ERROR_OPEN,
                            "%s: cannot open for writing: a link to a file that is not there", path);
    output->owns_fd = true;
    if (exists && !S_ISREG(s.st_mode)) {
        output->fd = open(path, O_WRONLY | O_CLOEXEC);
        return output->fd >= 0 ? SPMV_OK : fail_open(output);
    }
    if (exists && access(path, W_OK) != 0)
        return fail_open(output);
    spmv_status st = resolve(output, path, exists);
    if (st == SPMV_OK)
        st = create_beside(output);
    if (st == SPMV_OK && exists && fchmod(output->fd, s.st_mode & 07777) != 0)
        return fail_open(output);
    return st;
}

spmv_status output_open(spmv_context *ctx, const char *path, int64_t items, struct output_file *output)
{
    *output = (struct output_file){.ctx = ctx, .name = path, .fd = -1, .items_total = items};
    void *memory = NULL;
    spmv_status st = host_alloc(ctx, OUTPUT_BUFFER, "writing a file", &memory);
    if (st != SPMV_OK)
        return st;
    output->buffer = memory;
    if (strcmp(path, "-") != 0)
        return open_path(output, path);
    output->name = "standard output";
    output->fd = STDOUT_FILENO;
    return fflush(stdout) == 0 ? SPMV_OK : fail_write(output);
}

static spmv_status write_all(struct output_file *output, const char *bytes, int64_t count)
{
    enum { AT_ONCE = 1 << 30 }; /* the system takes less than 2 GiB in one call */
    for (int64_t done = 0; done < count;) {
        const ssize_t n = write(output->fd, bytes + done, (size_t)min_i64(count - done, AT_ONCE));
        if (n < 0 && errno != EINTR)
            return fail_write(output);
        done += n > 0 ? n : 0;
    }
    return SPMV_OK;
}

static spmv_status flush(struct output_file *output)
{
    const spmv_status st = write_all(output, output->buffer, output->used);
    output->used = 0;
    return st;
}

static spmv_status tell(struct output_file *output)
{
    char text[256];
    if (output->ctx->on_event == NULL)
        return SPMV_OK;
    snprintf(text, sizeof text, "writing %.200s", output->name);
    return context_event(output->ctx, SPMV_EVENT_PROGRESS, text, output->items, output->items_total);
}

spmv_status output_room(struct output_file *output, char **room)
{
    if (OUTPUT_BUFFER - output->used < OUTPUT_ITEM) {
        spmv_status st = flush(output);
        if (st == SPMV_OK)
            st = tell(output);
        if (st != SPMV_OK)
            return st;
    }
    *room = output->buffer + output->used;
    return SPMV_OK;
}

spmv_status output_put(struct output_file *output, const void *bytes, int64_t n, int64_t items)
{
    spmv_status st = flush(output);
    if (st == SPMV_OK)
        st = write_all(output, bytes, n);
    output->items += items;
    return st == SPMV_OK ? tell(output) : st;
}

void output_took(struct output_file *output, const char *end)
{
    output->used = end - output->buffer;
    output->items++;
}

/* Everything is in the file: makes it last, and gives it its name. */
static spmv_status settle(struct output_file *output)
{
    /* devices and pipes cannot be synchronised, and need not */
    if (output->beside != NULL && fsync(output->fd) != 0)
        return fail_write(output);
    const bool owned = output->owns_fd;
    output->owns_fd = false;
    if (owned && close(output->fd) != 0)
        return fail_write(output);
    if (output->beside != NULL && rename(output->beside, output->target) != 0)
        return fail_write(output);
    free(output->beside);
    output->beside = NULL;
    return SPMV_OK;
}

spmv_status output_close(struct output_file *output, spmv_status status)
{
    if (status == SPMV_OK)
        status = flush(output);
    if (status == SPMV_OK)
        status = settle(output);
    const int why = errno;
    if (output->owns_fd && output->fd >= 0)
        close(output->fd);
    if (output->beside != NULL)
        unlink(output->beside);
    free(output->beside);
    free(output->target);
    host_free(output->buffer);
    *output = (struct output_file){.fd = -1};
    errno = why;
    return status;
}

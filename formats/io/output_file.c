/* Output: a new file beside the target (unfinished.h), then fsync and rename.
 *
 * A new file has mode 0666 less the umask. A file that replaces another takes over its owner, group
 * and permissions, except set-id bits, because the contents are new. If the group cannot be kept,
 * the new group gets at most the permissions that all others had.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
/* realpath and fchmod are part of X/Open; O_PATH opens a folder with write but no read
 * permission */
#define _GNU_SOURCE
#include "formats/io/output_file.h"

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

/* Resolves the links of path; the caller frees the result. A path that does not exist is copied. */
static spmv_status resolve(struct output_file *output, const char *path, bool exists, char **whole)
{
    const size_t bytes = exists ? PATH_MAX : strlen(path) + 1;
    *whole = malloc(bytes);
    if (*whole == NULL)
        return context_fail_memory(output->ctx, "a file name", (int64_t)bytes);
    if (!exists)
        memcpy(*whole, path, bytes);
    else if (realpath(path, *whole) == NULL)
        return fail_open(output);
    return SPMV_OK;
}

/* Opens the folder of the target and creates the new file in it. Cuts whole at its last slash. */
static spmv_status create_beside(struct output_file *output, char *whole, bool exists)
{
    char *const slash = strrchr(whole, '/');
    const char *const name = slash != NULL ? slash + 1 : whole;
    output->target = malloc(strlen(name) + 1);
    if (output->target == NULL)
        return context_fail_memory(output->ctx, "a file name", (int64_t)strlen(name) + 1);
    strcpy(output->target, name);
    if (slash != NULL)
        *slash = '\0';
    const char *const folder = slash == NULL ? "." : slash == whole ? "/" : whole;
    const int fd = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return fail_open(output);
    output->fd = unfinished_create(fd, exists ? 0600 : 0666, &output->beside);
    return output->fd >= 0 ? SPMV_OK : fail_open(output);
}

static spmv_status take_over(struct output_file *output, const struct stat *old)
{
    struct stat own;
    mode_t mode = old->st_mode & 0777;
    /* Only root may change the owner; other users may set one of their groups. */
    bool kept = fchown(output->fd, old->st_uid, old->st_gid) == 0;
    if (!kept)
        kept = fchown(output->fd, (uid_t)-1, old->st_gid) == 0;
    if (!kept && fstat(output->fd, &own) != 0)
        return fail_open(output);
    if (!kept && own.st_gid != old->st_gid)
        mode &= 0707 | (mode & 07) << 3;
    return fchmod(output->fd, mode) == 0 ? SPMV_OK : fail_open(output);
}

static spmv_status open_path(struct output_file *output, const char *path)
{
    struct stat s, link;
    char *whole = NULL;
    const bool exists = stat(path, &s) == 0;
    if (!exists && errno == ENAMETOOLONG)
        return fail_open(output);
    if (!exists && lstat(path, &link) == 0)
        return context_fail(output->ctx, SPMV_ERROR_OPEN, "%s: cannot open for writing: a link to a missing file",
                            path);
    output->owns_fd = true;
    if (exists && !S_ISREG(s.st_mode)) {
        output->fd = open(path, O_WRONLY | O_CLOEXEC);
        return output->fd >= 0 ? SPMV_OK : fail_open(output);
    }
    if (exists && access(path, W_OK) != 0)
        return fail_open(output);
    spmv_status st = resolve(output, path, exists, &whole);
    if (st == SPMV_OK)
        st = create_beside(output, whole, exists);
    if (st == SPMV_OK && exists)
        st = take_over(output, &s);
    free(whole);
    return st;
}

spmv_status output_open(spmv_context *ctx, const char *path, int64_t items, struct output_file *output)
{
    *output = (struct output_file){.ctx = ctx, .name = path, .fd = -1, .items_total = items};
    if (strcmp(path, "-") != 0)
        return open_path(output, path);
    output->name = "standard output";
    output->fd = STDOUT_FILENO;
    return fflush(stdout) == 0 ? SPMV_OK : fail_write(output);
}

static spmv_status write_all(struct output_file *output, const char *bytes, int64_t count)
{
    enum { AT_ONCE = 1 << 30 }; /* one call writes less than 2 GiB */
    for (int64_t done = 0; done < count;) {
        const ssize_t n = write(output->fd, bytes + done, (size_t)min_i64(count - done, AT_ONCE));
        if (n < 0 && errno != EINTR)
            return fail_write(output);
        done += n > 0 ? n : 0;
    }
    return SPMV_OK;
}

static spmv_status tell(struct output_file *output)
{
    char text[256];
    if (output->ctx->on_event == NULL)
        return SPMV_OK;
    snprintf(text, sizeof text, "writing %.200s", output->name);
    return context_event(output->ctx, SPMV_EVENT_PROGRESS, text, output->items, output->items_total);
}

spmv_status output_put(struct output_file *output, const void *bytes, int64_t n, int64_t items)
{
    const spmv_status st = write_all(output, bytes, n);
    output->items += items;
    return st == SPMV_OK ? tell(output) : st;
}

/* Syncs the complete file to disk and renames it. Then closes it, which also unlocks it. */
static spmv_status settle(struct output_file *output)
{
    const bool beside = output->beside.id != 0, owned = output->owns_fd;
    /* Devices and pipes cannot be synced. */
    if (beside && fsync(output->fd) != 0)
        return fail_write(output);
    if (beside && unfinished_rename(&output->beside, output->target) != 0)
        return fail_write(output);
    output->owns_fd = false;
    return !owned || close(output->fd) == 0 ? SPMV_OK : fail_write(output);
}

spmv_status output_close(struct output_file *output, spmv_status status)
{
    if (status == SPMV_OK)
        status = settle(output);
    const int why = errno;
    unfinished_end(&output->beside);
    if (output->owns_fd && output->fd >= 0)
        close(output->fd);
    free(output->target);
    *output = (struct output_file){.fd = -1};
    errno = why;
    return status;
}

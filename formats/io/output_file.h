/* A file that is written beside its target and then renamed, so that the target is never
 * incomplete; or standard output.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef OUTPUT_FILE_H
#define OUTPUT_FILE_H

#include "formats/io/unfinished.h"

struct output_file {
    spmv_context *ctx;
    const char *name;         /* for messages; owned by the caller */
    char *target;             /* name in the folder of beside; NULL: written in place */
    struct unfinished beside; /* the unfinished file */
    int fd;
    bool owns_fd;
    int64_t items, items_total; /* for progress */
};

/* Opens path ("-": standard output, which is flushed first and never closed). Anything but a
 * regular file (a device, a FIFO) is written in place. items: total number, for progress. Errors:
 * SPMV_ERROR_OPEN, SPMV_ERROR_MEMORY. Call output_close also after an error. */
spmv_status output_open(spmv_context *ctx, const char *path, int64_t items, struct output_file *output);

/* Writes n bytes, which count as items for progress, and reports the progress. Errors:
 * SPMV_ERROR_WRITE, SPMV_CANCELLED. */
spmv_status output_put(struct output_file *output, const void *bytes, int64_t n, int64_t items);

/* status SPMV_OK: moves the file to its place and returns the result; otherwise removes the file
 * and returns status. After a failed write, errno has the system's reason (EPIPE, ENOSPC,
 * EFBIG). */
spmv_status output_close(struct output_file *output, spmv_status status);

#endif

/* A file that is written beside its target and renamed, so that the target never holds half of it;
 * or standard output.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef OUTPUT_FILE_H
#define OUTPUT_FILE_H

#include "unfinished.h"

struct output_file {
    spmv_context *ctx;
    const char *name;         /* in sentences; of the caller */
    char *target;             /* name in the folder of beside; NULL: written in place */
    struct unfinished beside; /* where it is written meanwhile */
    int fd;
    bool owns_fd;
    int64_t items, items_total; /* for progress */
};

/* Opens path ("-": standard output, which is flushed first and never closed). What is not a regular file (a device, a
 * FIFO) is written in place. items: how many will be written, for progress. Errors: SPMV_ERROR_OPEN,
 * SPMV_ERROR_MEMORY; output_close in any case. */
spmv_status output_open(spmv_context *ctx, const char *path, int64_t items, struct output_file *output);

/* Writes bytes of any number, items of them counted as written, and tells the progress. Errors:
 * SPMV_ERROR_WRITE, SPMV_CANCELLED. */
spmv_status output_put(struct output_file *output, const void *bytes, int64_t n, int64_t items);

/* status SPMV_OK: puts the file in its place, and returns how that went; otherwise removes what
 * was written and returns status. After a failed write errno is what the system said (EPIPE,
 * ENOSPC, EFBIG). */
spmv_status output_close(struct output_file *output, spmv_status status);

#endif

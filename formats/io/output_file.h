/* A file that is written beside its place and renamed, so that the place never holds half of it; or standard output.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef OUTPUT_FILE_H
#define OUTPUT_FILE_H

#include "runtime.h"

/* Room in the buffer: no single item may be longer. */
enum { OUTPUT_ITEM = 4096, OUTPUT_BUFFER = 1 << 20 };

struct output_file {
    spmv_context *ctx;
    const char *name; /* in sentences; of the caller */
    char *target;     /* the file that is to be replaced: the path with links followed; NULL: written in place */
    char *beside;     /* where it is written meanwhile; NULL: nothing to remove */
    int fd;
    bool owns_fd;
    char *buffer;
    int64_t used;
    int64_t items, items_total; /* for progress */
};

/* Opens path ("-": standard output, which is flushed first and never closed). What is not a regular file (a device, a
 * FIFO) is written in place. items: how many will be written, for progress. Errors: SPMV_ERROR_OPEN,
 * SPMV_ERROR_MEMORY; output_close in any case. */
spmv_status output_open(spmv_context *ctx, const char *path, int64_t items, struct output_file *output);

/* At least OUTPUT_ITEM bytes of room, to be filled and handed over: output_room, write, output_took(end). Errors of
 * output_room: SPMV_ERROR_WRITE, SPMV_CANCELLED. */
spmv_status output_room(struct output_file *output, char **room);
void output_took(struct output_file *output, const char *end);

/* Writes bytes of any number, items of them counted as written, and tells the progress. Errors as output_room. */
spmv_status output_put(struct output_file *output, const void *bytes, int64_t n, int64_t items);

/* status SPMV_OK: writes what is left, puts the file in its place, and returns how that went; otherwise removes what
 * was written and returns status. After a failed write errno is what the system said (EPIPE, ENOSPC). */
spmv_status output_close(struct output_file *output, spmv_status status);

#endif

/* Writes arbitrary bytes with the mechanism of the library's own files.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include <spmv/io.h>
#include <stdlib.h>

#include "formats/io/output_file.h"

struct spmv_file {
    struct output_file output;
    spmv_status failed; /* the first write that failed */
    char path[];        /* for messages */
};

spmv_status spmv_file_create(spmv_context *ctx, const char *path, spmv_file **file)
{
    if (file != NULL)
        *file = NULL;
    if (ctx == NULL || path == NULL || file == NULL)
        return context_fail(ctx, SPMV_ERROR_ARGUMENT, "spmv_file_create: context, path and file must be given");
    const size_t length = strlen(path) + 1;
    struct spmv_file *const f = malloc(sizeof *f + length);
    if (f == NULL)
        return context_fail_memory(ctx, "writing a file", (int64_t)(sizeof *f + length));
    f->failed = SPMV_OK;
    memcpy(f->path, path, length);
    const spmv_status st = output_open(ctx, f->path, 0, &f->output);
    if (st == SPMV_OK) {
        *file = f;
        return SPMV_OK;
    }
    output_close(&f->output, st);
    free(f);
    return st;
}

spmv_status spmv_file_write(spmv_file *file, const void *bytes, int64_t n)
{
    if (file == NULL)
        return SPMV_ERROR_ARGUMENT;
    if (n < 0 || (n > 0 && bytes == NULL))
        return context_fail(file->output.ctx, SPMV_ERROR_ARGUMENT, "%s: spmv_file_write: %lld bytes missing",
                            file->path, (long long)n);
    if (file->failed == SPMV_OK)
        file->failed = output_put(&file->output, bytes, n, n);
    return file->failed;
}

spmv_status spmv_file_close(spmv_file *file, int keep)
{
    if (file == NULL)
        return SPMV_OK;
    const bool good = keep && file->failed == SPMV_OK;
    const spmv_status st = output_close(&file->output, good ? SPMV_OK : SPMV_CANCELLED);
    const spmv_status failed = file->failed;
    free(file);
    return good ? st : keep ? failed : SPMV_OK;
}

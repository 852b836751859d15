/* The binary form of vectors: their numbers, row by row, after a head of 64 bytes.
 * docs/binary-form.md describes it byte by byte.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef BINARY_VECTOR_H
#define BINARY_VECTOR_H

#include <spmv/io.h>

#include "core/runtime.h"

/* Whether the file opened as fd begins with the magic number of this form. */
bool binary_vector_begins(int fd);

/* Reads rows of cols numbers, converted to the type (real ones also to complex), into new memory
 * (host_free) of at most max_bytes. Errors: SPMV_ERROR_FORMAT, SPMV_ERROR_UNSUPPORTED (a later
 * version, a big-endian machine), SPMV_ERROR_READ, SPMV_ERROR_LIMIT, SPMV_ERROR_MEMORY,
 * SPMV_ERROR_TYPE (complex numbers as real ones). */
spmv_status binary_vector_read(spmv_context *ctx, const char *name, int fd, spmv_type type, int64_t max_bytes,
                               void **values, int64_t *rows, int64_t *cols);

/* As binary_vector_read, for bytes in memory. */
spmv_status binary_vector_read_memory(spmv_context *ctx, const char *name, const void *memory, int64_t bytes,
                                      spmv_type type, int64_t max_bytes, void **values, int64_t *rows, int64_t *cols);

/* As spmv_vectors_write, whose arguments have been checked. */
spmv_status binary_vector_write(spmv_context *ctx, const char *path, spmv_type type, const void *values, int64_t rows,
                                int64_t cols);

#endif
